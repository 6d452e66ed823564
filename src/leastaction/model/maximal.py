"""Maximal coordinates of a model: one frame and one constant inertia for every body that moves and has mass."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.model.tables import flat_pose
from leastaction.tree import layout as kl


class Bodies(NamedTuple):
    """What the kernels of ``dynamics/redmax_jacobian.py`` read besides the model's own arrays.

    Attributes:
        names: bodies, in tree order.
        rows: (nb,) row of the tree that carries each of them.
        frames: (nb, 12) their frames in the row frames: rotation by rows, position.
        inertia: (nb, 6, 6) of each body with what is fixed to it, about the frame's origin in its axes.
        carrier: (nv, 2) row that carries the axis of a rate, and the row before its joint part, in row order.
        spans: (rows, 2) first rate that a row carries, and the one behind the last.
    """

    names: tuple[str, ...]
    rows: kl.Ints
    frames: FloatArray
    inertia: FloatArray
    carrier: kl.Ints
    spans: kl.Ints


@lru_cache(maxsize=64)
def maximal_bodies(model: Model, centred: bool = False) -> Bodies:
    """Frames and inertias of the moving bodies: link frames, or with ``centred`` those at the centres of mass.

    With ``centred`` bodies without mass are left out; axes are those of the links in both cases.
    """
    tree = model.system.tree
    names = [name for name in model.row_names if not centred or tree.const[model.places[name].row, kl.MASS] > 0]
    rows = np.array([model.places[name].row for name in names], dtype=np.int64)
    frames = np.zeros((len(names), 4, 4))
    inertia = np.zeros((len(names), 6, 6))
    for k, name in enumerate(names):
        const, at = tree.const[rows[k]], model.places[name].pose.copy()
        com = const[kl.COM : kl.COM + 3]
        if centred:
            at[:3, 3] = com
        frames[k] = at
        inertia[k] = _inertia(const, at)
    flat = np.array([flat_pose(frame) for frame in frames]).reshape(-1, 12)
    carrier, spans = _carriers(model)
    return Bodies(tuple(names), rows, flat, inertia, carrier, spans)


def _inertia(const: FloatArray, at: FloatArray) -> FloatArray:
    """Inertia (6, 6) of a row's body about the frame ``at`` (4, 4), in its axes."""
    from leastaction.spatial import so3

    mass, R = const[kl.MASS], at[:3, :3]
    c = so3.hat(R.T @ (const[kl.COM : kl.COM + 3] - at[:3, 3]))
    second = np.zeros((3, 3))
    second[np.triu_indices(3)] = const[kl.INERTIA : kl.INERTIA + 6]
    second = R.T @ (second + np.triu(second, 1).T) @ R
    return np.block([[second - mass * c @ c, mass * c], [-mass * c, mass * np.eye(3)]])


def _carriers(model: Model) -> tuple[kl.Ints, kl.Ints]:
    """Carrier (nv, 2) and spans (rows, 2): those of the rows, but a free joint's rates all belong to its ball."""
    tree = model.system.tree
    carrier = np.column_stack([tree.rates[:, 0], tree.rows[tree.rates[:, 0], kl.PARENT]]).astype(np.int64)
    for _, d in model.system.coordinates.free:
        carrier[d : d + 6] = tree.rates[d + 3, 0], tree.rows[tree.rates[d, 0], kl.PARENT]
    spans = np.zeros((len(tree.rows), 2), dtype=np.int64)
    for d in range(len(carrier) - 1, -1, -1):
        row = carrier[d, 0]
        spans[row] = d, spans[row, 1] if spans[row, 1] else d + 1
    return carrier, spans
