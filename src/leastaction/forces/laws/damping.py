"""Damping of a body: wrench -C twist, about the link origin in link axes.

C (6, 6) by rows are its own numbers.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.functions import force_function


@force_function
def damping_wrench(t, given, out):
    """-C twist."""
    for r in range(6):
        out[r] = 0.0
        for c in range(6):
            out[r] -= given[18 + 6 * r + c] * given[12 + c]


@force_function
def damping_derivatives(t, given, out):
    """K = 0, D = -C."""
    for e in range(36):
        out[e] = 0.0
        out[36 + e] = -given[18 + e]
