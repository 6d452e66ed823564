"""Moving on the space of configurations: displacements in the user's coordinates, in plain NumPy."""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.joints import layout
from leastaction.model.model import Model
from leastaction.spatial import quaternion


def retract(model: Model, q: FloatArray, xi: FloatArray) -> FloatArray:
    """Coordinates q (nq,) displaced by xi (nv,): what a unit time at constant v = xi leads to, for each factor alone.

    Screws add; a ball turns by exp(xi) behind; a free joint moves by (rotation vector; displacement) in child axes.
    """
    out = q.copy()
    for view in model.joints.values():
        here, move = q[view.q], xi[view.v]
        if view.kind == "free":
            out[view.q.start : view.q.start + 3] = here[:3] + quaternion.rotate(here[3:], move[3:])
            out[view.q.start + 3 : view.q.stop] = quaternion.retract(here[3:], move[:3])
            continue
        for piece in layout(view.joint):
            where = slice(view.q.start + piece.q.start, view.q.start + piece.q.stop)
            ball = piece.factor == "ball"
            out[where] = quaternion.retract(here[piece.q], move[piece.v]) if ball else here[piece.q] + move[piece.v]
    return out


def difference(model: Model, q0: FloatArray, q1: FloatArray) -> FloatArray:
    """Displacement xi (nv,) with ``retract(model, q0, xi) = q1``; rotations take the shorter way."""
    out = np.zeros(model.nv)
    for view in model.joints.values():
        a, b = q0[view.q], q1[view.q]
        if view.kind == "free":
            back = quaternion.conjugate(a[3:])
            out[view.v] = np.concatenate([quaternion.local(a[3:], b[3:]), quaternion.rotate(back, b[:3] - a[:3])])
            continue
        for piece in layout(view.joint):
            where = slice(view.v.start + piece.v.start, view.v.start + piece.v.stop)
            ball = piece.factor == "ball"
            out[where] = quaternion.local(a[piece.q], b[piece.q]) if ball else b[piece.q] - a[piece.q]
    return out
