"""Joints that close loops: gap, Jacobian rows, and accelerations that keep them closed.

Every constraint g of a loop joint depends on the relative motion of its two bodies only, so its rate is
gdot = G . (v_b - v_a) with one wrench-like row G about the origin, and its second derivative
G . (a_b - a_a) + Gdot . (v_b - v_a). Rows are those of Bruedigam et al. 2023, appendix B, with its (B.3) corrected:
position in the axes of the parent side, twice the vector part of the relative quaternion, and one row each for
universal and helical joints.

    g     (m,)    gap of each constraint, metres or radians
    G     (m, 6)  its row
    bias  (m,)    Gdot . (v_b - v_a)
    ends  (m, 2)  rows a, b of the tree
    own   (n+1, 2) mass, and moment of inertia, of what a row carries by itself

How far a unit of a constraint's force moves its bodies, as if nothing else held them, is the size of its row
(``mobility``): what is added to a redundant row, and what is compared with it, is a part of that. So no number depends
on units, nor on other parts of the mechanism.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.forces.bodies import row3, row9, world_point
from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, number, st6
from leastaction.spatial._source.so3 import matrix_to_quat
from leastaction.spatial._source.vector import (
    add3,
    ang,
    axpy3,
    cross,
    dot3,
    dot6,
    join,
    lin,
    matmul,
    matvec,
    scale3,
    sub3,
    sub6,
    tmatvec,
    transpose,
)
from leastaction.tree.kinematics import last_rate
from leastaction.tree.layout import BALL, COM, HELICAL_COUPLING, INERTIA, IU, KIND, MASS, PARENT, UNIVERSAL

# The proximal term of redundant loops: its part of the size of a row, and number of sweeps.
RHO, SWEEPS = 1.0e-9, 4


# --- sizes of rows --------------------------------------------------------------------------------------------------
@optional(None, MEMORY_OPTIONS)
def own_inertias(loops, tree):
    """own (n+1, 2): mass and mean moment of every row; a row without takes those of its children, or of its rotor."""
    n, C = tree.rows.shape[0], tree.const
    own = np.zeros((n, 2))
    for i in range(n - 1, 0, -1):
        mass, d, p = C[i, MASS], tree.rows[i, IU], tree.rows[i, PARENT]
        if mass > 0.0:
            moment = (C[i, INERTIA] + C[i, INERTIA + 3] + C[i, INERTIA + 5]) / 3.0
            arm = C[i, COM] * C[i, COM] + C[i, COM + 1] * C[i, COM + 1] + C[i, COM + 2] * C[i, COM + 2]
            # a point has the moment about its joint
            own[i, 0] = mass
            own[i, 1] = moment if moment > 1.0e-9 * mass * arm else max(mass * arm, own[i, 1])
        if not own[i, 1] > 0.0:
            for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
                own[i, 1] = max(own[i, 1], tree.armature[e])
        if p > 0 and not C[p, MASS] > 0.0:
            own[p, 0] += own[i, 0]
            own[p, 1] += own[i, 1]
    return own


@kernel
def mobility(C, own, P, i, row):
    """How a unit force along ``row`` moves the body on row i along it, as if it were free."""
    if i <= 0:
        return 0.0
    push, total = lin(row), 0.0
    x = add3(ld3(P, i, 9), matvec(ld9(P, i, 0), (C[i, COM], C[i, COM + 1], C[i, COM + 2])))
    turn = sub3(ang(row), cross(x, push))
    if own[i, 0] > 0.0:
        total += dot3(push, push) / own[i, 0]
    if own[i, 1] > 0.0:
        total += dot3(turn, turn) / own[i, 1]
    return total


@kernel
def size_or_one(size):
    """A size, or 1 of a row that moves nothing."""
    return size if size > 0.0 else 1.0


# --- rows -----------------------------------------------------------------------------------------------------------
@kernel
def put_loop_row(k, a, b, gap, row, rate, w, g, G, bias, ends):
    """Store one constraint; w is the relative twist v_b - v_a. Without a table for the bias nothing is done for it."""
    g[k] = gap
    st6(G, k, 0, row)
    if bias is not None:
        bias[k] = dot6(rate, w)
    ends[k, 0] = a
    ends[k, 1] = b


@sweep
def loop_rows(loops, P, V, g, G, bias, ends):
    """Gaps, rows and, unless ``bias`` is None, velocity biases of all loop joints."""
    for k in range(loops.rows.shape[0]):
        a, b, r = loops.rows[k, 0], loops.rows[k, 1], loops.rows[k, 2]
        # the two joint frames about the origin, and the relative twist
        Ra = matmul(ld9(P, a, 0), row9(loops.frame, k, 0))
        Rb = matmul(ld9(P, b, 0), row9(loops.frame, k, 12))
        xa, xb = world_point(P, a, row3(loops.frame, k, 9)), world_point(P, b, row3(loops.frame, k, 21))
        va, vb = ld6(V, a, 0), ld6(V, b, 0)
        w = sub6(vb, va)
        xb_rate = add3(lin(vb), cross(ang(vb), xb))
        # relative rotation as a quaternion (c, s) with c >= 0, and its rate: sdot = (c w + w x s) / 2, cdot = -s.w / 2
        quat = matrix_to_quat(matmul(transpose(Ra), Rb))
        c, s = quat[0], (quat[1], quat[2], quat[3])
        wa = tmatvec(Ra, ang(w))
        c_rate, s_rate = -0.5 * dot3(s, wa), scale3(0.5, axpy3(c, wa, cross(wa, s)))
        # translation: g = e . Ra^T (xb - xa)
        for i in range(loops.rows[k, 3]):
            e = matvec(Ra, row3(loops.select, k, 3 * i))
            e_rate = cross(ang(va), e)
            row = join(cross(xb, e), e)
            rate = join(add3(cross(xb_rate, e), cross(xb, e_rate)), e_rate)
            put_loop_row(r, a, b, dot3(e, sub3(xb, xa)), row, rate, w, g, G, bias, ends)
            r += 1
        # rotation: g = 2 e . s,  gdot = (c e + s x e) . wa
        zero = (0.0, 0.0, 0.0)
        for i in range(loops.rows[k, 4]):
            e = row3(loops.select, k, 9 + 3 * i)
            n = matvec(Ra, axpy3(c, e, cross(s, e)))
            n_rate = add3(cross(ang(va), n), matvec(Ra, axpy3(c_rate, e, cross(s_rate, e))))
            put_loop_row(r, a, b, 2.0 * dot3(e, s), join(n, zero), join(n_rate, zero), w, g, G, bias, ends)
            r += 1
        # coupling
        kind = loops.rows[k, 5]
        if kind == UNIVERSAL:
            # g = (Ra axis) . (Rb axis2) - cosine
            u, v = matvec(Ra, row3(loops.coupling, k, 0)), matvec(Rb, row3(loops.coupling, k, 3))
            n = cross(v, u)
            n_rate = add3(cross(cross(ang(vb), v), u), cross(v, cross(ang(va), u)))
            gap = dot3(u, v) - loops.coupling[k, 6]
            put_loop_row(r, a, b, gap, join(n, zero), join(n_rate, zero), w, g, G, bias, ends)
        elif kind == HELICAL_COUPLING:
            helical_row(loops, k, r, a, b, Ra, xa, xb, va, xb_rate, c, s, c_rate, s_rate, w, g, G, bias, ends)


@kernel
def helical_row(loops, k, r, a, b, Ra, xa, xb, va, xb_rate, c, s, c_rate, s_rate, w, g, G, bias, ends):
    """Displacement along the axis minus pitch times the angle 2 atan2(axis . s, c), to the nearest full turn."""
    e, pitch = row3(loops.coupling, k, 0), loops.coupling[k, 6]
    axis = matvec(Ra, e)
    axis_rate = cross(ang(va), axis)
    # angle rate n . wa with n = (c (c e + s x e) + sigma s) / (sigma^2 + c^2), sigma = e . s
    sigma, sigma_rate = dot3(e, s), dot3(e, s_rate)
    d = sigma * sigma + c * c
    d_rate = 2.0 * (sigma * sigma_rate + c * c_rate)
    m = axpy3(c, e, cross(s, e))
    m_rate = axpy3(c_rate, e, cross(s_rate, e))
    n = scale3(1.0 / d, axpy3(c, m, scale3(sigma, s)))
    top_rate = add3(axpy3(c_rate, m, scale3(c, m_rate)), axpy3(sigma_rate, s, scale3(sigma, s_rate)))
    n_rate = axpy3(1.0 / d, top_rate, scale3(-d_rate / d, n))
    turn = matvec(Ra, n)
    turn_rate = add3(cross(ang(va), turn), matvec(Ra, n_rate))
    # the gap to the nearest full turn
    gap = dot3(axis, sub3(xb, xa)) - pitch * 2.0 * math.atan2(sigma, c)
    lead = 2.0 * math.pi * pitch
    if lead != 0.0:
        gap -= lead * math.floor(gap / lead + 0.5)
    row = join(axpy3(-pitch, turn, cross(xb, axis)), axis)
    rate = join(axpy3(-pitch, turn_rate, add3(cross(xb_rate, axis), cross(xb, axis_rate))), axis_rate)
    put_loop_row(r, a, b, gap, row, rate, w, g, G, bias, ends)


@sweep
def project_row(tree, S, a, b, row, out):
    """Generalised row J (nu,) of one constraint: its rate is J . u."""
    for d in range(out.size):
        out[d] = 0.0
    # rates that move b count plus, rates that move a count minus; common ones cancel
    d = last_rate(tree, b)
    while d >= 0:
        out[d] += dot6(row, ld6(S, d, 0))
        d = tree.rates[d, 1]
    d = last_rate(tree, a)
    while d >= 0:
        out[d] -= dot6(row, ld6(S, d, 0))
        d = tree.rates[d, 1]


@kernel
def relative(Z, a, b, row):
    """``row . (Z_b - Z_a)``."""
    return dot6(row, sub6(ld6(Z, b, 0), ld6(Z, a, 0)))


@kernel
def push_pair(like, L, a, b, row):
    """Right-hand side of a unit multiplier: force +row on b, -row on a, as forces needed."""
    zero = number(like, 0.0)
    for i in range(L.shape[0]):
        st6(L, i, 0, (zero, zero, zero, zero, zero, zero))
    st6(L, b, 0, sub6(ld6(L, b, 0), row))
    st6(L, a, 0, sub6(ld6(L, a, 0), (-row[0], -row[1], -row[2], -row[3], -row[4], -row[5])))


@kernel
def bias_difference(V, a, b, row):
    """``row . (a_b - a_a)`` of the bias accelerations in the last six columns of V."""
    return dot6(row, sub6(join(ld3(V, b, 6), ld3(V, b, 9)), join(ld3(V, a, 6), ld3(V, a, 9))))


@optional(0)
def pair_size(loops):
    """Number of constraints of loop joints, each between two bodies."""
    m = 0
    for k in range(loops.rows.shape[0]):
        m += loops.rows[k, 3] + loops.rows[k, 4] + (1 if loops.rows[k, 5] > 0 else 0)
    return m


@optional(0)
def loop_size(loops):
    """Number of constraints of loop joints and couplings."""
    return pair_size(loops) + loops.ties.kind.shape[0]
