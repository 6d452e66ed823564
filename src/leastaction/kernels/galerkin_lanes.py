"""The Newton recursion of ``galerkin_screw`` for four environments at once: every number is a pack, one lane each.

    D      (buffers, 144, 4)   matrix handed from row to row     l  (buffers, 12, 4)  its right-hand side
    B,H,X  (nu + 1, 12, 4)     columns of a rate; the last row is zero and stands for "no child"
    y      (nu, 4)             direction                         z  (n + 1, 12, 4)    variation of the twists
Other symbols are those of ``galerkin``. The sums are taken in the order of the scalar recursion, whose registers hold
four neighbouring columns, so that a lane gives the same bits as one environment alone: a product of twelve is
t_j = a_j b_j + a_(j+4) b_(j+4) + a_(j+8) b_(j+8), then the t_j in pairs. So columns are taken in two groups of six,
j, j+4, j+8, j+1, j+5, j+9 with j = 0 and j = 2.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.kernels._jit import kernel, memory
from leastaction.kernels._lanes import LANES, ld, ld1, ld3, ld6, number, st, st1, st6
from leastaction.kernels._packs import times
from leastaction.kernels.galerkin import make_step_work
from leastaction.kernels.layout import IU, MASS, PARENT, Floats, Ints
from leastaction.spatial._source.vector import ad_dual, axpy6, scale6


class LaneWork(NamedTuple):
    """Scratch memory of a step of four environments; the first sixteen are those of ``galerkin.StepWork``."""

    xi: Floats
    xid: Floats
    P: Floats
    S: Floats
    Sd: Floats
    Q: Floats
    M: Floats
    c: Floats
    V: Floats
    mu: Floats
    tau: Floats
    pull: Floats
    G: Floats
    r: Floats
    pn: Floats
    mass: Floats
    D: Floats
    l: Floats
    B: Floats
    H: Floats
    X: Floats
    y: Floats
    z: Floats
    slot: Ints
    first: Ints
    pending: Ints


@memory
def make_lane_work(tree, w):
    """Scratch memory for steps of second order; w are the two weights."""
    n, nu, k = tree.rows.shape[0], tree.rates.shape[0], len(w)
    plan = make_step_work(tree, w, False)
    used = plan.pending.size
    return LaneWork(
        np.zeros((nu, k, LANES)), np.zeros((nu, k, LANES)), np.zeros((n, 12 * k, LANES)),
        np.zeros((nu, 6 * k, LANES)), np.zeros((nu, 6 * k, LANES)), np.zeros((nu, 6 * k, LANES)),
        np.zeros((n, 9 * k, LANES)), np.zeros((n, 3 * k, LANES)), np.zeros((n, 6 * k, LANES)),
        np.zeros((n, 6 * k, LANES)), np.zeros((nu, k, LANES)), np.zeros((nu, k, LANES)), np.zeros((0, 6 * k, LANES)),
        np.zeros((nu, k - 1, LANES)), np.zeros((nu, LANES)), plan.mass,
        np.zeros((used, 144, LANES)), np.zeros((used, 12, LANES)), np.zeros((nu + 1, 12, LANES)),
        np.zeros((nu + 1, 12, LANES)), np.zeros((nu + 1, 12, LANES)), np.zeros((nu, LANES)), np.zeros((n, 12, LANES)),
        plan.slot, plan.first, np.full(used, nu),
    )  # fmt: skip


@kernel
def rounded6(s, v):
    """``s v`` for six packs, every product rounded by itself."""
    return (times(s, v[0]), times(s, v[1]), times(s, v[2]), times(s, v[3]), times(s, v[4]), times(s, v[5]))


@kernel
def inertia_rows(z, s, M, i, o, m):
    """Rows of s times the inertia at column o of row i of M, as six tuples of six; z is zero."""
    I, h = rounded6(s, ld6(M, i, o)), ld3(M, i, o + 6)
    g0, g1, g2, n = times(s, h[0]), times(s, h[1]), times(s, h[2]), z + s * m
    return (
        (I[0], I[1], I[2], z, -g2, g1),
        (I[1], I[3], I[4], g2, z, -g0),
        (I[2], I[4], I[5], -g1, g0, z),
        (z, g2, -g1, n, z, z),
        (-g2, z, g0, z, n, z),
        (g1, -g0, z, z, z, n),
    )


@kernel
def group(v, j):
    """Columns j, j+4, j+8, j+1, j+5, j+9 of twelve numbers."""
    if j == 0:
        return (v[0], v[4], v[8], v[1], v[5], v[9])
    return (v[2], v[6], v[10], v[3], v[7], v[11])


@kernel
def row_group(w, q, d, c, r, j, xp, own, a, b, x):
    """Six columns of row r of D: take off the child's update, add the own inertia, store; both products.

    The sum of the six products with b goes to H, the accumulated X is returned.
    """
    D, o = w.D, 12 * r + j
    hp = ld(w.H, c, r)
    r0 = ld(D, q, o) - hp * xp[0] + own[0]
    r1 = ld(D, q, o + 4) - hp * xp[1] + own[1]
    r2 = ld(D, q, o + 8) - hp * xp[2] + own[2]
    r3 = ld(D, q, o + 1) - hp * xp[3] + own[3]
    r4 = ld(D, q, o + 5) - hp * xp[4] + own[4]
    r5 = ld(D, q, o + 9) - hp * xp[5] + own[5]
    st(D, q, o, r0)
    st(D, q, o + 4, r1)
    st(D, q, o + 8, r2)
    st(D, q, o + 1, r3)
    st(D, q, o + 5, r4)
    st(D, q, o + 9, r5)
    t = (r0 * b[0] + r1 * b[1] + r2 * b[2]) + (r3 * b[3] + r4 * b[4] + r5 * b[5])
    st(w.H, d, r, t if j == 0 else ld(w.H, d, r) + t)
    return (x[0] + a * r0, x[1] + a * r1, x[2] + a * r2, x[3] + a * r3, x[4] + a * r4, x[5] + a * r5)


@kernel
def twelve_rows(w, q, d, c, j, z, M0, M1, a0, a1, b, x):
    """``row_group`` of all rows; the inertias M0, M1 are the diagonal blocks."""
    none = (z, z, z, z, z, z)
    xp = group(ld6(w.X, c, 0) + ld6(w.X, c, 6), j)
    x = row_group(w, q, d, c, 0, j, xp, group(M0[0] + none, j), a0[0], b, x)
    x = row_group(w, q, d, c, 1, j, xp, group(M0[1] + none, j), a0[1], b, x)
    x = row_group(w, q, d, c, 2, j, xp, group(M0[2] + none, j), a0[2], b, x)
    x = row_group(w, q, d, c, 3, j, xp, group(M0[3] + none, j), a0[3], b, x)
    x = row_group(w, q, d, c, 4, j, xp, group(M0[4] + none, j), a0[4], b, x)
    x = row_group(w, q, d, c, 5, j, xp, group(M0[5] + none, j), a0[5], b, x)
    x = row_group(w, q, d, c, 6, j, xp, group(none + M1[0], j), a1[0], b, x)
    x = row_group(w, q, d, c, 7, j, xp, group(none + M1[1], j), a1[1], b, x)
    x = row_group(w, q, d, c, 8, j, xp, group(none + M1[2], j), a1[2], b, x)
    x = row_group(w, q, d, c, 9, j, xp, group(none + M1[3], j), a1[3], b, x)
    x = row_group(w, q, d, c, 10, j, xp, group(none + M1[4], j), a1[4], b, x)
    return row_group(w, q, d, c, 11, j, xp, group(none + M1[5], j), a1[5], b, x)


@kernel
def dot12(a, b):
    """Product of twelve, in the order of ``hsum``."""
    t0 = a[0] * b[0] + a[4] * b[4] + a[8] * b[8]
    t1 = a[1] * b[1] + a[5] * b[5] + a[9] * b[9]
    t2 = a[2] * b[2] + a[6] * b[6] + a[10] * b[10]
    t3 = a[3] * b[3] + a[7] * b[7] + a[11] * b[11]
    return (t0 + t2) + (t1 + t3)


@kernel
def ld12(a, i):
    """Row i of a table with twelve columns."""
    return ld6(a, i, 0) + ld6(a, i, 6)


@kernel
def eliminate_lanes(nodes, w, i, d, m, rotor, damping):
    """Columns, products and pivot of one screw, as ``eliminate_screw``."""
    h, q, z = nodes.h, w.slot[i], number(w.pn, 0.0)
    w0, w1 = nodes.w[0] * h, nodes.w[1] * h
    S0, S1, Sd0, Sd1 = ld6(w.S, d, 0), ld6(w.S, d, 6), ld6(w.Sd, d, 0), ld6(w.Sd, d, 6)
    # columns: A of row 0, B of the unknown at node 1
    a0, a1 = axpy6(nodes.b[0, 0] / h, S0, Sd0), scale6(nodes.b[1, 0] / h, S1)
    b0, b1 = scale6(nodes.b[0, 1] / h, S0), axpy6(nodes.b[1, 1] / h, S1, Sd1)
    e0, e1 = rounded6(-w0, ad_dual(S0, ld6(w.mu, i, 0))), rounded6(-w1, ad_dual(S1, ld6(w.mu, i, 6)))
    st6(w.B, d, 0, b0)
    st6(w.B, d, 6, b1)
    # D with the own inertia, H = D B, X = D^T A
    M0, M1 = inertia_rows(z, w0, w.M, i, 0, m), inertia_rows(z, w1, w.M, i, 9, m)
    b, c = b0 + b1, w.pending[q]
    u = twelve_rows(w, q, d, c, 0, z, M0, M1, a0, a1, group(b, 0), (e0[0], e0[4], z, e0[1], e0[5], z))
    v = twelve_rows(w, q, d, c, 2, z, M0, M1, a0, a1, group(b, 2), (e0[2], z, z, e0[3], z, z))
    for k in range(6):
        st(w.H, d, 6 + k, ld(w.H, d, 6 + k) + e1[k])
    # the pivot
    a = a0 + a1
    own = ld1(damping, d) * nodes.b[0, 1] / h
    own += rotor * (nodes.w[0] * nodes.b[0, 0] * nodes.b[0, 1] + nodes.w[1] * nodes.b[1, 0] * nodes.b[1, 1]) / h
    f = 1.0 / (dot12(a, ld12(w.H, d)) + own)
    st1(w.y, d, -f * (ld(w.r, d, 0) + dot12(a, ld12(w.l, q))))
    st6(w.X, d, 0, (f * u[0], f * u[3], f * v[0], f * v[3], f * u[1], f * u[4]))
    st6(w.X, d, 6, (f * v[1], f * v[4], f * u[2], f * u[5], f * v[2], f * v[5]))


@kernel
def hand_over_lanes(w, q, to, d):
    """D - H X^T and l + H y added to the parent's buffer."""
    y = ld1(w.y, d)
    for r in range(12):
        hr = ld(w.H, d, r)
        st(w.l, to, r, ld(w.l, q, r) + y * hr + ld(w.l, to, r))
        for e in range(12):
            o = 12 * r + e
            st(w.D, to, o, ld(w.D, q, o) - hr * ld(w.X, d, e) + ld(w.D, to, o))


@kernel
def direction_lanes(tree, nodes, w, damping):
    """w.y (nu, 4) = -J^-1 r; w must hold a residual. damping (nu, 4): impulse derivatives by the rates at node 0."""
    zero, nu = number(w.pn, 0.0), tree.rates.shape[0]
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, d, q = tree.rows[i, PARENT], tree.rows[i, IU], w.slot[i]
        # the buffer: that of a child, or a new one
        if w.first[i] & 1:
            for k in range(144):
                st(w.D, q, k, zero)
            for k in range(12):
                st(w.l, q, k, zero)
            w.pending[q] = nu
        eliminate_lanes(nodes, w, i, d, tree.const[i, MASS], tree.armature[d], damping)
        w.pending[q] = nu
        if par > 0 and w.first[i] & 2:
            # the update of D is left to the parent's pass
            y = ld1(w.y, d)
            for k in range(12):
                st(w.l, q, k, ld(w.l, q, k) + y * ld(w.H, d, k))
            w.pending[q] = d
        elif par > 0:
            hand_over_lanes(w, q, w.slot[par], d)
    # back-substitution from the roots
    for k in range(12):
        st(w.z, 0, k, zero)
    for i in range(1, tree.rows.shape[0]):
        par, d = tree.rows[i, PARENT], tree.rows[i, IU]
        z = ld12(w.z, par)
        t = ld1(w.y, d) - dot12(ld12(w.X, d), z)
        st1(w.y, d, t)
        st6(w.z, i, 0, axpy6(t, ld6(w.B, d, 0), (z[0], z[1], z[2], z[3], z[4], z[5])))
        st6(w.z, i, 6, axpy6(t, ld6(w.B, d, 6), (z[6], z[7], z[8], z[9], z[10], z[11])))
