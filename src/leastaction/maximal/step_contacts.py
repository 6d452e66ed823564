"""Contacts of one step of ``Maximal``, taken once more from its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.contact.layout import CONTACT_COLUMNS, FLOAT_WIDTH, INT_WIDTH, KINDS
from leastaction.maximal.limits import dry_table, inequality_count
from leastaction.methods.memory import TINY, Field, numbers
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model


def step_fields(model: Model, touching: Any, cone: str | int) -> dict[str, Field]:
    """What the memory holds of the last steps, and of the contacts and limits of the last one."""
    n = 0 if touching is None else touching.table.room
    # steps known, contacts of the last one, whether there was one, and whether the next one starts as in the paper
    known = numbers(np.array([3, n, 1, 1]), (4,))
    out = {"past": Field((model.nv, 3)), "lengths": Field((3,), TINY), "known": known}
    if touching is not None:
        # kind of gap, rows of both bodies, and pair
        rows, pairs = len(model.system.tree.rows), len(touching.table.contacts.pairs)
        most = np.array([KINDS - 1, rows - 1, rows - 1, max(pairs - 1, 0)])
        bounds, sides = len(touching.limits.where) + inequality_count(model), 0 if isinstance(cone, str) else cone
        out |= {
            "contacts": numbers(most, (n, INT_WIDTH)), "features": Field((n, FLOAT_WIDTH)),
            "contact_forces": Field((n, 5 + sides)), "limit_forces": Field((bounds, 2)),
            "dry_friction": Field((len(dry_table(model)[1]), 4)),
            # speed with which deep contacts open, and share of the warm barrier
            "pace": Field((2,), np.array([0.0, TINY]), np.array([np.inf, 1.0])),
        }  # fmt: skip
    return out


def mean_contacts(
    parts: Sequence[FloatArray], struck: Sequence[NDArray[np.bool_]], lengths: Sequence[float]
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Contacts (n, 13) of a step from those of its parts, and which bounce (n,); ``maximal.contact``.

    Forces are means over the step and act at their mean point; gaps are those at the end, slips are added up. Parts may
    touch at different features; one that bounces in any of them bounces.
    """
    if len(parts) == 1:
        return parts[0], struck[0]
    share = np.asarray(lengths) / sum(lengths)
    rows, bounced = np.concatenate(parts), np.concatenate(struck)
    forces = [3, 4, 5, 6, 12]
    rows[:, forces] *= np.repeat(share, [len(part) for part in parts])[:, None]
    # the same feature of the same pair, seen from the same body
    _, which = np.unique(rows[:, [0, 1, 11]], axis=0, return_inverse=True)
    out = np.zeros((int(which.max(initial=-1)) + 1, CONTACT_COLUMNS))
    bounces = np.zeros(len(out), dtype=bool)
    for k in range(len(out)):
        mine = rows[which.ravel() == k]
        push = np.maximum(mine[:, 3], 1e-300)
        out[k] = mine[-1]
        out[k, forces] = mine[:, forces].sum(axis=0)
        out[k, 7:10] = push @ mine[:, 7:10] / push.sum()
        out[k, 10] = mine[:, 10].sum()
        bounces[k] = bounced[which.ravel() == k].any()
    return out, bounces
