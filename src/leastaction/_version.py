"""The one place where the version stands; ``pyproject.toml`` reads it from here."""

from __future__ import annotations

__version__ = "0.2.0"
