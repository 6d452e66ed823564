"""Coordinates of the rows moved by local coordinates around the start of a step, and the rates of these.

A screw has its own coordinate. A ball has a rotation vector, behind the start (child side) or ahead of it (parent
side).
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.so3 import dexp_inv_times, quat_exp, quat_mul, quat_normalize
from leastaction.tree.coordinates import get3, put3, put_quat, quat_at
from leastaction.tree.layout import BALL, IU, IX, KIND


@sweep
def retract(tree, x0, xi, x):
    """x = x0 moved by the local coordinates xi, child side."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put_quat(x, k, quat_normalize(quat_mul(quat_at(x0, k), quat_exp(get3(xi, d)))))
        else:
            x[k] = x0[k] + xi[d]


@sweep
def local_rates(tree, xi, u, out):
    """Rates of the local coordinates: u, and dexp_right(xi)^-1 u for a ball."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            back = get3(xi, d)
            put3(out, d, dexp_inv_times((-back[0], -back[1], -back[2]), get3(u, d)))
        else:
            out[d] = u[d]


@kernel
def move_on(tree, x, xi):
    """x moved by xi in place, parent side."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put_quat(x, k, quat_normalize(quat_mul(quat_exp(get3(xi, d)), quat_at(x, k))))
        else:
            x[k] += xi[d]
