"""Contacts of one step of ``Maximal``, taken once more from its state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leastaction.methods.base import Memory
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model


def expect(model: Model, memory: Memory, end: FloatArray, dt: float) -> None:
    """Let the next step be looked for where it is known to end: as if the last one had moved as far."""
    from leastaction.kernels import bodywise_step, legendre

    x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    legendre.enter(model.system, end.copy(), np.zeros(model.nv), x, u, p)
    moved = np.zeros(model.nv)
    bodywise_step.displacement(model.system.tree, memory["x"], x, moved)
    memory["past"][:, 0], memory["lengths"][0], memory["known"][0] = moved, dt, 1


def mean_contacts(parts: Sequence[FloatArray]) -> FloatArray:
    """Contacts (n, 12) of a step from those of its equal parts, see ``kernels.bodywise_contact``.

    Forces are means over the step and act at their mean point; gaps are those at the end, slips are added up.
    """
    if len(parts) == 1:
        return parts[0]
    rows = np.concatenate(parts)
    # the same feature of the same pair, seen from the same body
    _, which = np.unique(rows[:, [0, 1, 11]], axis=0, return_inverse=True)
    out = np.zeros((int(which.max(initial=-1)) + 1, 12))
    for k in range(len(out)):
        mine = rows[which.ravel() == k]
        push = np.maximum(mine[:, 3], 1e-300)
        out[k] = mine[-1]
        out[k, 3:7] = mine[:, 3:7].sum(axis=0) / len(parts)
        out[k, 7:10] = push @ mine[:, 7:10] / push.sum()
        out[k, 10] = mine[:, 10].sum()
    return out
