"""The maximal step for four environments at once: memory, momenta, and the moves of lanes that decide for themselves.

Residual and recursion are those of ``maximal.bodies`` and ``maximal.recursion``, handed tables with a last axis of four
lanes; here is what differs. A lane that has converged keeps its poses while others go on, a lane whose line search cuts
keeps its direction, so each has its own copy of both (``Turns``).

    numbers (10, 4)    see the names below                masks (1, 3, 4)  1.0: alive, still running, new direction
    steps, good (4,)   directions taken, converged        eta (n+1, 6, 4), y (nu, 4)  direction of each lane
    control, ua, pc, c1, pn (nu, 4)                       F1 (n+1, 6, 4)   weights at the end
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit import packs  # noqa: F401
from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import LANES, ld, ld1, ld9, number, st, st1
from leastaction.maximal.bodies import Bodies, clear_blocks, get4, own_residuals, place_bodies, size_of, start_bodies
from leastaction.maximal.forces import joint_terms
from leastaction.spatial._source.scalar import pick
from leastaction.spatial._source.so3 import quat_conj, quat_normalize, quat_rotate
from leastaction.tree.coordinates import get3, put3
from leastaction.tree.kinematics import kinematics
from leastaction.tree.layout import BALL, IU, IX, KIND, MASS, Floats

# Rows of ``numbers``: the residual of the trial, where the direction was taken, and the farthest coordinate.
LARGEST, SQUARES, SCALE, GAP, REACH, BEFORE, SIZE_BEFORE, GAP_BEFORE, ALPHA, FAR = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
ALIVE, RUNNING, FRESH = 0, 1, 2


class Turns(NamedTuple):
    """Newton iterations of four lanes; see the symbol table of this file."""

    numbers: Floats
    masks: Floats
    steps: Floats
    good: Floats
    eta: Floats
    y: Floats
    control: Floats
    ua: Floats
    pc: Floats
    c1: Floats
    pn: Floats
    F1: Floats


@memory
def make_turns(tree):
    """Memory of the iterations, and no forces."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    return Turns(
        np.zeros((10, LANES)), np.zeros((1, 3, LANES)), np.zeros(LANES, np.int64), np.zeros(LANES, np.bool_),
        np.zeros((n, 6, LANES)), np.zeros((nu, LANES)), np.zeros((nu, LANES)), np.zeros((nu, LANES)),
        np.zeros((nu, LANES)), np.zeros((nu, LANES)), np.zeros((nu, LANES)), np.zeros((n, 6, LANES)),
    )  # fmt: skip


@memory
def make_lane_bodies(tree, nx):
    """The tables of ``Bodies`` with lanes."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    return Bodies(
        np.zeros((n, 12, LANES)), np.zeros((nu, 6, LANES)), np.zeros((n, 12, LANES)), np.zeros((nu, 6, LANES)),
        np.zeros((n, 12, LANES)), np.zeros((n, 12, LANES)), np.zeros((n, 6, LANES)), np.zeros((n, 6, LANES)),
        np.zeros((n, 6, LANES)), np.zeros((n, 36, LANES)), np.zeros((n, 6, LANES)), np.zeros((n, 6, LANES)),
        np.zeros((nu, LANES)), np.zeros((nu, 6, LANES)), np.zeros((nu, LANES)), np.zeros((nu, 3, LANES)),
        np.zeros((nu, LANES)), np.zeros((n, 6, LANES)), np.zeros((nx, LANES)), np.zeros((nu, LANES)),
        np.zeros((nu, LANES)), np.zeros((n, 12, LANES)), np.zeros((nx, LANES)), np.zeros((nx, LANES)), np.zeros((0, 0)),
        size_of(tree),
    )  # fmt: skip


# --- residual -------------------------------------------------------------------------------------------------------
@sweep
def to_axes(tree, x, p, child, out):
    """Components of balls along child axes from those along parent axes, or the other way round."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            q = quat_normalize(get4(x, tree.rows[i, IX]))
            put3(out, d, quat_rotate(quat_conj(q) if child else q, get3(p, d)))
        else:
            st1(out, d, ld1(p, d))


@sweep
def begin_lanes(tree, x, p, B, pc):
    """Poses, axes, momenta along child axes and weights at the start of a step; no gaps."""
    kinematics(tree, x, B.P0, B.S0)
    for e in range(12):
        st(B.P1, 0, e, ld(B.P0, 0, e))
    start_bodies(tree, B)
    to_axes(tree, x, p, True, pc)
    zero = number(p, 0.0)
    for i in range(tree.rows.shape[0]):
        for e in range(6):
            st(B.rho, i, e, zero)


@sweep
def evaluate_lanes(system, h, x, active, rate_of, closed, B, f, g):
    """Residuals at B.x1 and the poses B.P1, with their sizes in g.numbers."""
    tree = system.tree
    widest, reach = place_bodies(tree, B, closed, h)
    joint_terms(system, B, x, g.pc, g.control, active, rate_of, h, f, g.ua)
    clear_blocks(tree, B)
    largest, squares, scale = own_residuals(tree, B, h)
    st1(g.numbers, LARGEST, largest)
    st1(g.numbers, SQUARES, squares)
    st1(g.numbers, SCALE, scale)
    st1(g.numbers, GAP, widest)
    st1(g.numbers, REACH, reach)


# --- moves ----------------------------------------------------------------------------------------------------------
@sweep
def aim_lanes(tree, B, g):
    """What ``move_bodies`` needs: lanes with a new direction start from here, the others from where theirs was taken.

    A lane that does not run gets no direction, and stays.
    """
    running, fresh, zero = ld(g.masks, 0, RUNNING), ld(g.masks, 0, FRESH), number(B.y, 0.0)
    here = pick(running, 0.5, fresh, zero + 1.0)
    for i in range(tree.rows.shape[0]):
        for e in range(12):
            st(B.old, i, e, pick(here, 0.5, ld(B.P1, i, e), ld(B.old, i, e)))
        for e in range(6):
            along = pick(running, 0.5, pick(fresh, 0.5, ld(B.eta, i, e), ld(g.eta, i, e)), zero)
            st(g.eta, i, e, along)
            st(B.eta, i, e, along)
    for d in range(tree.rates.shape[0]):
        along = pick(running, 0.5, pick(fresh, 0.5, ld1(B.y, d), ld1(g.y, d)), zero)
        st1(g.y, d, along)
        st1(B.y, d, along)
    for k in range(B.x1.shape[0]):
        st1(B.oldx, k, pick(here, 0.5, ld1(B.x1, k), ld1(B.oldx, k)))


@sweep
def least_cosines(tree, B):
    """The least cosine of the rotation of a body in the step, over all bodies."""
    least = number(B.y, 1.0)
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            a, b = ld9(B.P0, i, 0), ld9(B.P1, i, 0)
            trace = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4]
            cosine = 0.5 * (trace + a[5] * b[5] + a[6] * b[6] + a[7] * b[7] + a[8] * b[8] - 1.0)
            least = -max(-least, -cosine)
    return least


@kernel
def guess_lanes(known, u, weights, past, h, xi):
    """Displacements of the next step from the rates u (nu, 4), or from those of the last three steps (nu, 3, 4)."""
    for d in range(xi.shape[0]):
        last = weights[0] * ld(past, d, 0) + weights[1] * ld(past, d, 1) + weights[2] * ld(past, d, 2)
        st1(xi, d, h * ld1(u, d) if known == 0 else last)
