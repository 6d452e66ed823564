"""The Newton recursion of ``galerkin.screw`` for four environments at once: every number is a pack, one lane each.

    D      (buffers, 144, 4)   matrix handed from row to row     l  (buffers, 12, 4)  its right-hand side
    B,H,X  (nu + 1, 12, 4)     columns of a rate; the last row is zero and stands for "no child"
    y      (nu, 4)             direction                         z  (n + 1, 12, 4)    variation of the twists
    A      (1, 12, 4)          column A of the row at work       own (6, 12, 4)       its inertias at the two nodes
Other symbols are those of ``galerkin.residual``. The columns of D are taken in four groups of three, j, j+4, j+8: what
a group needs fits into the registers. A lane does the operations of ``eliminate_screw``, but rounds some of them in
another place; residual and momenta come from the same source. So all agree to rounding.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.galerkin.residual import make_step_work
from leastaction.jit import packs  # noqa: F401
from leastaction.jit.decorators import kernel, memory
from leastaction.jit.lanes import LANES, ld, ld1, ld3, ld6, number, st, st1, st3, st6
from leastaction.spatial._source.vector import ad_dual, add6, axpy6, scale6
from leastaction.tree.layout import IU, MASS, PARENT, Floats, Ints


class LaneWork(NamedTuple):
    """Scratch memory of a step of four environments; the first sixteen are those of ``galerkin.residual.StepWork``."""

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
    A: Floats
    own: Floats
    slot: Ints
    pending: Ints


@memory
def make_lane_work(tree, w):
    """Scratch memory for steps of second order; w are the two weights."""
    n, nu, k = tree.rows.shape[0], tree.rates.shape[0], len(w)
    plan = make_step_work(tree, w, (), False)
    used = plan.pending.size
    return LaneWork(
        np.zeros((nu, k, LANES)), np.zeros((nu, k, LANES)), np.zeros((n, 12 * k, LANES)),
        np.zeros((nu, 6 * k, LANES)), np.zeros((nu, 6 * k, LANES)), np.zeros((nu, 6 * k, LANES)),
        np.zeros((n, 9 * k, LANES)), np.zeros((n, 3 * k, LANES)), np.zeros((n, 6 * k, LANES)),
        np.zeros((n, 6 * k, LANES)), np.zeros((nu, k, LANES)), np.zeros((nu, k, LANES)), np.zeros((0, 6 * k, LANES)),
        np.zeros((nu, k - 1, LANES)), np.zeros((nu, LANES)), plan.mass,
        np.zeros((used, 144, LANES)), np.zeros((used, 12, LANES)), np.zeros((nu + 1, 12, LANES)),
        np.zeros((nu + 1, 12, LANES)), np.zeros((nu + 1, 12, LANES)), np.zeros((nu, LANES)), np.zeros((n, 12, LANES)),
        np.zeros((1, 12, LANES)), np.zeros((6, 12, LANES)),
        plan.slot, np.full(used, nu),
    )  # fmt: skip


@kernel
def write_inertia(own, o, s, M, i, k, m):
    """s times the inertia at column k of row i of M, as the 6 x 6 block at column o of ``own``; the rest is zero."""
    I, h, n = scale6(s, ld6(M, i, k)), ld3(M, i, k + 6), number(M[0], s * m)
    g0, g1, g2 = s * h[0], s * h[1], s * h[2]
    st3(own, 0, o, (I[0], I[1], I[2]))
    st(own, 0, o + 4, -g2)
    st(own, 0, o + 5, g1)
    st(own, 1, o, I[1])
    st3(own, 1, o + 1, (I[3], I[4], g2))
    st(own, 1, o + 5, -g0)
    st3(own, 2, o, (I[2], I[4], I[5]))
    st(own, 2, o + 3, -g1)
    st(own, 2, o + 4, g0)
    st3(own, 3, o + 1, (g2, -g1, n))
    st(own, 4, o, -g2)
    st(own, 4, o + 2, g0)
    st(own, 4, o + 4, n)
    st(own, 5, o, g1)
    st(own, 5, o + 1, -g0)
    st(own, 5, o + 5, n)


@kernel
def column_group(w, q, d, c, j):
    """Columns j, j+4, j+8 of D: take off the child's update, add the own inertia, store; both products.

    w.A holds the column A of the rate, w.B its column B, w.X the start of X, w.own the inertias of the two nodes.
    """
    D = w.D
    xp = (ld(w.X, c, j), ld(w.X, c, j + 4), ld(w.X, c, j + 8))
    b = (ld(w.B, d, j), ld(w.B, d, j + 4), ld(w.B, d, j + 8))
    x0, x1, x2 = ld(w.X, d, j), ld(w.X, d, j + 4), ld(w.X, d, j + 8)
    for r in range(6):
        # a row of node 0, whose inertia lies in columns 0..5
        o, hp, a = 12 * r + j, ld(w.H, c, r), ld(w.A, 0, r)
        r0 = ld(D, q, o) - hp * xp[0] + ld(w.own, r, j)
        r1 = ld(D, q, o + 4) - hp * xp[1]
        if j < 2:
            r1 = r1 + ld(w.own, r, j + 4)
        r2 = ld(D, q, o + 8) - hp * xp[2]
        st(D, q, o, r0)
        st(D, q, o + 4, r1)
        st(D, q, o + 8, r2)
        h = r0 * b[0] + r1 * b[1] + r2 * b[2]
        st(w.H, d, r, h if j == 0 else ld(w.H, d, r) + h)
        x0, x1, x2 = x0 + a * r0, x1 + a * r1, x2 + a * r2
    for r in range(6):
        # a row of node 1, whose inertia lies in columns 6..11
        o, hp, a = 12 * r + 72 + j, ld(w.H, c, r + 6), ld(w.A, 0, r + 6)
        r0 = ld(D, q, o) - hp * xp[0]
        r1 = ld(D, q, o + 4) - hp * xp[1]
        if j > 1:
            r1 = r1 + ld(w.own, r, j + 4)
        r2 = ld(D, q, o + 8) - hp * xp[2] + ld(w.own, r, j + 8)
        st(D, q, o, r0)
        st(D, q, o + 4, r1)
        st(D, q, o + 8, r2)
        h = r0 * b[0] + r1 * b[1] + r2 * b[2]
        st(w.H, d, r + 6, h if j == 0 else ld(w.H, d, r + 6) + h)
        x0, x1, x2 = x0 + a * r0, x1 + a * r1, x2 + a * r2
    st(w.X, d, j, x0)
    st(w.X, d, j + 4, x1)
    st(w.X, d, j + 8, x2)


@kernel
def dot12(a, b):
    """Scalar product of twelve numbers."""
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
    h, q, z = nodes.h, w.slot[i, 0], number(w.pn, 0.0)
    w0, w1 = nodes.w[0] * h, nodes.w[1] * h
    S0, S1, Sd0, Sd1 = ld6(w.S, d, 0), ld6(w.S, d, 6), ld6(w.Sd, d, 0), ld6(w.Sd, d, 6)
    # columns: A of row 0, B of the unknown at node 1
    a0, a1 = axpy6(nodes.b[0, 0] / h, S0, Sd0), scale6(nodes.b[1, 0] / h, S1)
    b0, b1 = scale6(nodes.b[0, 1] / h, S0), axpy6(nodes.b[1, 1] / h, S1, Sd1)
    e0, e1 = scale6(-w0, ad_dual(S0, ld6(w.mu, i, 0))), scale6(-w1, ad_dual(S1, ld6(w.mu, i, 6)))
    st6(w.A, 0, 0, a0)
    st6(w.A, 0, 6, a1)
    st6(w.B, d, 0, b0)
    st6(w.B, d, 6, b1)
    st6(w.X, d, 0, e0)
    st6(w.X, d, 6, (z, z, z, z, z, z))
    # D with the own inertia, H = D B, X = D^T A - EA
    write_inertia(w.own, 0, w0, w.M, i, 0, m)
    write_inertia(w.own, 6, w1, w.M, i, 9, m)
    c = w.pending[q]
    column_group(w, q, d, c, 0)
    column_group(w, q, d, c, 1)
    column_group(w, q, d, c, 2)
    column_group(w, q, d, c, 3)
    st6(w.H, d, 6, add6(ld6(w.H, d, 6), e1))
    # the pivot
    a, H = ld12(w.A, 0), ld12(w.H, d)
    own = ld1(damping, d) * nodes.b[0, 1] / h
    own += rotor * (nodes.w[0] * nodes.b[0, 0] * nodes.b[0, 1] + nodes.w[1] * nodes.b[1, 0] * nodes.b[1, 1]) / h
    f = 1.0 / (dot12(a, H) + own)
    st1(w.y, d, -f * (ld(w.r, d, 0) + dot12(a, ld12(w.l, q))))
    st6(w.X, d, 0, scale6(f, ld6(w.X, d, 0)))
    st6(w.X, d, 6, scale6(f, ld6(w.X, d, 6)))


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
        par, d, q = tree.rows[i, PARENT], tree.rows[i, IU], w.slot[i, 0]
        # the buffer: that of a child, or a new one
        if w.slot[i, 1] & 1:
            for k in range(144):
                st(w.D, q, k, zero)
            for k in range(12):
                st(w.l, q, k, zero)
            w.pending[q] = nu
        eliminate_lanes(nodes, w, i, d, tree.const[i, MASS], tree.armature[d], damping)
        w.pending[q] = nu
        if par > 0 and w.slot[i, 1] & 2:
            # the update of D is left to the parent's pass
            y = ld1(w.y, d)
            for k in range(12):
                st(w.l, q, k, ld(w.l, q, k) + y * ld(w.H, d, k))
            w.pending[q] = d
        elif par > 0:
            hand_over_lanes(w, q, w.slot[par, 0], d)
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
