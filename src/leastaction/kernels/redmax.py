"""Reduced and maximal velocities of one tree, joined by a Jacobian (Sueda 2021, sections 2.1, 2.2, 2.10, 3.1).

The maximal velocities are the twists phi_b = J_b v of body frames, in their own axes. The user's velocities v are
taken as they are: rate d of a joint has the axis S_d, constant in its *carrier*, the row whose motion it ends. A free
joint's six axes are those of its child frame, carried by its last row. Everything is in world axes about the kernels'
origin; Ad is the adjoint of a body frame's pose there.

    S       (nu, 6)   axes, in row order; x[k] belongs to the user's velocity c.v[k]
    carrier (nu, 2)   row that carries an axis, and the row before its joint part
    spans   (n+1, 2)  first rate that a row carries, and the one behind the last
    V       (n+1, 12) twists of the rows in the first six columns

With k, d rates that move body b, W = V_b - V_c(d), and V_p(k) the twist before rate k:

    J_bd = Ad^-1 S_d                        Jdot_bd = -Ad^-1 ad(W) S_d
    dJ_bd / dq_k = -Ad^-1 ad(S_k) S_d       for k behind d, else 0
    dJdot_bd / dq_k = Ad^-1 (ad(S_k) ad(W) - ad(ad(S_k) (V_b - V_p(k)))) S_d     likewise
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.kernels._jit import entry, kernel, sweep
from leastaction.kernels._lanes import ld3, ld6, ld9, st6
from leastaction.kernels.coordinates import positions_in, rates_in
from leastaction.kernels.forces import row3, row9, world_point
from leastaction.kernels.layout import PARENT
from leastaction.kernels.loops import last_rate
from leastaction.kernels.tree import kinematics, velocities
from leastaction.spatial._source.vector import (
    ad,
    add3,
    add6,
    ang,
    axpy6,
    cross,
    dot6,
    join,
    lin,
    matmul,
    matvec,
    scale6,
    sub3,
    sub6,
    tmatvec,
)


@sweep
def user_axes(c, tree, P, S):
    """Put the axes of the user's velocities in place of the rows': they differ for free joints."""
    zero = (0.0, 0.0, 0.0)
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        i = tree.rates[d + 3, 0]
        R = ld9(P, i, 0)
        p = sub3(ld3(P, i, 9), matvec(R, row3(c.offset, j, 0)))
        for e in range(3):
            a = (R[e], R[3 + e], R[6 + e])
            st6(S, d + e, 0, join(zero, a))
            st6(S, d + 3 + e, 0, join(a, cross(p, a)))


@kernel
def frame_at(frames, k, P, i):
    """Rotation and position of frame k, which row i carries."""
    return matmul(ld9(P, i, 0), row9(frames, k, 0)), world_point(P, i, row3(frames, k, 9))


@kernel
def into_frame(R, p, s):
    """``Ad^-1 s``: a spatial twist in the axes of a frame, at its origin."""
    return join(tmatvec(R, ang(s)), tmatvec(R, add3(lin(s), cross(ang(s), p))))


@sweep
def prepare(system, q, v, x, u, P, S, V):
    """Poses, the user's axes and twists."""
    c, tree = system.coordinates, system.tree
    positions_in(c, q, x)
    rates_in(c, x, v, u)
    kinematics(tree, x, P, S)
    velocities(tree, u, S, V)
    user_axes(c, tree, P, S)


@sweep
def product_sweep(c, tree, carrier, S, V, x, C, Y, A):
    """Algorithm 5: Y = sum of S x and A = sum of ad(V_c) S x over the rates that move a row."""
    for i in range(C.shape[0]):
        for e in range(6):
            C[i, e] = 0.0
            Y[i, e] = 0.0
            A[i, e] = 0.0
    for d in range(tree.rates.shape[0]):
        i = carrier[d, 0]
        st6(C, i, 0, axpy6(x[c.v[d]], ld6(S, d, 0), ld6(C, i, 0)))
    for i in range(1, C.shape[0]):
        j, s = tree.rows[i, PARENT], ld6(C, i, 0)
        st6(Y, i, 0, add6(ld6(Y, j, 0), s))
        st6(A, i, 0, add6(ld6(A, j, 0), ad(ld6(V, i, 0), s)))


@entry
def products(system, carrier, q, v, rows, frames, X, Y, Z):
    """Y = J x and Z = Jdot x (m, nb, 6) for vectors X (m, nv), at one state. O(n) each."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u = np.empty(q.size), np.empty(nu)
    P, S, V = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12))
    C, sums, turns = np.empty((n, 6)), np.empty((n, 6)), np.empty((n, 6))
    prepare(system, q, v, x, u, P, S, V)
    for r in range(X.shape[0]):
        product_sweep(c, tree, carrier, S, V, X[r], C, sums, turns)
        for k in range(rows.size):
            i = rows[k]
            R, p = frame_at(frames, k, P, i)
            y = ld6(sums, i, 0)
            st6(Y[r], k, 0, into_frame(R, p, y))
            # Jdot x = Ad^-1 (sum of ad(V_c) S x - ad(V_b) J x)
            st6(Z[r], k, 0, into_frame(R, p, sub6(ld6(turns, i, 0), ad(ld6(V, i, 0), y))))


@entry
def transposed(system, carrier, q, rows, frames, W, out):
    """Algorithm 6: J^T w (m, nv) for wrenches W (m, nb, 6) in the axes of the frames. O(n) each."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u, v = np.empty(q.size), np.empty(nu), np.zeros(nu)
    P, S, V, F = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12)), np.empty((n, 6))
    prepare(system, q, v, x, u, P, S, V)
    for r in range(W.shape[0]):
        for i in range(n):
            for e in range(6):
                F[i, e] = 0.0
        # wrenches about the origin, then their sums over subtrees
        for k in range(rows.size):
            i = rows[k]
            R, p = frame_at(frames, k, P, i)
            h = ld6(W[r], k, 0)
            force = matvec(R, lin(h))
            st6(F, i, 0, add6(ld6(F, i, 0), join(add3(matvec(R, ang(h)), cross(p, force)), force)))
        for i in range(n - 1, 0, -1):
            j = tree.rows[i, PARENT]
            st6(F, j, 0, add6(ld6(F, j, 0), ld6(F, i, 0)))
        for d in range(nu):
            out[r, c.v[d]] = dot6(ld6(S, d, 0), ld6(F, carrier[d, 0], 0))


@entry
def jacobians(system, carrier, q, v, rows, frames, J, Jdot):
    """Algorithms 1 and 2: J and Jdot (nb, 6, nv), zeroed by the caller."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u = np.empty(q.size), np.empty(nu)
    P, S, V = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12))
    prepare(system, q, v, x, u, P, S, V)
    for b in range(rows.size):
        R, p = frame_at(frames, b, P, rows[b])
        d = last_rate(tree, rows[b])
        while d >= 0:
            s = ld6(S, d, 0)
            w = sub6(ld6(V, carrier[d, 0], 0), ld6(V, rows[b], 0))
            column, rate = into_frame(R, p, s), into_frame(R, p, ad(w, s))
            for e in range(6):
                J[b, e, c.v[d]] = column[e]
                Jdot[b, e, c.v[d]] = rate[e]
            d = tree.rates[d, 1]


@entry
def jacobian_derivatives(system, carrier, q, v, rows, frames, dJ, dJdot):
    """Algorithm 11: dJ / dq and dJdot / dq (nb, 6, nv, nv), the last axis that of q; zeroed by the caller."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u = np.empty(q.size), np.empty(nu)
    P, S, V = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12))
    prepare(system, q, v, x, u, P, S, V)
    for b in range(rows.size):
        R, p = frame_at(frames, b, P, rows[b])
        vb = ld6(V, rows[b], 0)
        k = last_rate(tree, rows[b])
        while k >= 0:
            sk = ld6(S, k, 0)
            # what rate k turns: the twist of b relative to the row before k
            turned = ad(sk, sub6(vb, ld6(V, carrier[k, 1], 0)))
            d = tree.rates[k, 1]
            while d >= 0:
                if carrier[d, 0] != carrier[k, 0]:
                    sd = ld6(S, d, 0)
                    w = sub6(vb, ld6(V, carrier[d, 0], 0))
                    moved = into_frame(R, p, scale6(-1.0, ad(sk, sd)))
                    rate = into_frame(R, p, sub6(ad(sk, ad(w, sd)), ad(turned, sd)))
                    for e in range(6):
                        dJ[b, e, c.v[d], c.v[k]] = moved[e]
                        dJdot[b, e, c.v[d], c.v[k]] = rate[e]
                d = tree.rates[d, 1]
            k = tree.rates[k, 1]
