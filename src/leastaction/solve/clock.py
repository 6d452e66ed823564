"""Time and length of a step inside a rollout.

Symbols: t time of the step's start, h length of the step, k number of the step in the rollout, k0 of its first step.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel


@kernel
def tick(uniform, table, k0, k):
    """(t, h) of step k of a rollout that begins at step k0 of the run.

    table (1, 2) with ``uniform``: first time of the run and the one step length, t = t0 + (k0 + k) h.
    table (steps, 2) otherwise: time and length of each step of the rollout.
    """
    if uniform:
        return table[0, 0] + (k0 + k) * table[0, 1], table[0, 1]
    return table[k, 0], table[k, 1]
