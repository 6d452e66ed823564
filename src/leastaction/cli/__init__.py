"""The command line: one file per command, and ``app`` with the way errors become one line and an exit code."""

from __future__ import annotations

from leastaction.cli.app import app, main, run_app

__all__ = ["app", "main", "run_app"]
