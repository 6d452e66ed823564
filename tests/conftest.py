"""What all tests share: a plotting backend without a screen, and Hypothesis with fixed seeds."""

from __future__ import annotations

import os

import hypothesis

os.environ.setdefault("MPLBACKEND", "Agg")

# the first example of a test may compile a kernel, so no deadline; no database, so every run is the same
hypothesis.settings.register_profile("leastaction", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("leastaction")
