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

For rates of one spline joint G (``tree/splines.py``: D, e_d = sum over G of D_dj u_j, and h_dj the same in joint axes):

    Jdot_bd += Ad^-1 e_d     dJ_bd / dq_k += Ad^-1 D_dk                                    d, k in G
    dJdot_bd / dq_k += Ad^-1 (Ad sum dh_dj/dq_k u_j - ad(W) D_dk - ad(D_nk u_n) S_d)       d, k in G, n behind d in G
    dJdot_bd / dq_k -= Ad^-1 ad(e_k) S_d      k in G, d before G           -= Ad^-1 ad(S_k) e_d      d in G, k behind G
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.forces.bodies import row3, row9, world_point
from leastaction.jit.decorators import PART_OPTIONS, either, entry, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st6
from leastaction.spatial._source.se3 import Ad
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
from leastaction.tree.coordinates import positions_in, rates_in
from leastaction.tree.kinematics import kinematics, last_rate, velocities
from leastaction.tree.layout import IU, IX, KIND, PARENT, SPLINE
from leastaction.tree.splines import ROW, SIZE, corrections, pose_of, rate_pair, same_last, spline_terms


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
def prepare_axes(system, q, v, x, u, P, S, V):
    """Poses, the user's axes and twists."""
    c, tree = system.coordinates, system.tree
    positions_in(c, q, x)
    rates_in(c, x, v, u)
    kinematics(tree, x, P, S)
    velocities(tree, u, S, V)
    user_axes(c, tree, P, S)


@kernel
def turning_axes(splines, tree, j, q, u, P):
    """e_1 and e_2 of spline j, at row coordinates q and rates u."""
    i = splines.kind[j, ROW]
    D11, D12, D22 = corrections(splines, j, q, tree.rows[i, IX], pose_of(P, i))
    u1, u2 = rate_pair(splines, j, u, tree.rows[i, IU])
    return axpy6(u1, D11, scale6(u2, D12)), axpy6(u1, D12, scale6(u2, D22))


@either(same_last, PART_OPTIONS)
def turning_product(splines, c, tree, i, q, u, P, x, a):
    """a and, if row i is the first one of a spline joint, the sum of e_d x_d."""
    if tree.rows[i, KIND] == SPLINE:
        j, d = splines.number[i], tree.rows[i, IU]
        e1, e2 = turning_axes(splines, tree, j, q, u, P)
        a = axpy6(x[c.v[d]], e1, a)
        if splines.kind[j, SIZE] == 2:
            a = axpy6(x[c.v[d + 1]], e2, a)
    return a


@sweep
def product_sweep(c, tree, carrier, q, u, P, S, V, x, C, Y, A):
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
        a = add6(ld6(A, j, 0), ad(ld6(V, i, 0), s))
        st6(A, i, 0, turning_product(tree.splines, c, tree, i, q, u, P, x, a))


@entry
def jacobian_products(system, carrier, q, v, rows, frames, X, Y, Z):
    """Y = J x and Z = Jdot x (m, nb, 6) for vectors X (m, nv), at one state. O(n) each."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u = np.empty(q.size), np.empty(nu)
    P, S, V = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12))
    C, sums, turns = np.empty((n, 6)), np.empty((n, 6)), np.empty((n, 6))
    prepare_axes(system, q, v, x, u, P, S, V)
    for r in range(X.shape[0]):
        product_sweep(c, tree, carrier, x, u, P, S, V, X[r], C, sums, turns)
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
    prepare_axes(system, q, v, x, u, P, S, V)
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


@kernel
def add_to_column(out, b, d, s):
    """Add six numbers to column d of block b."""
    for e in range(6):
        out[b, e, d] += s[e]


@kernel
def add_by(out, b, d, k, s):
    """Add six numbers to column d, k of block b."""
    for e in range(6):
        out[b, e, d, k] += s[e]


@kernel
def moves_row(tree, d, row):
    """Whether rate d moves a row."""
    e = last_rate(tree, row)
    while e > d:
        e = tree.rates[e, 1]
    return e == d


@optional(None)
def spline_rates(splines, c, tree, x, u, P, rows, frames, Jdot):
    """Add e_d to Jdot for the rates of splines."""
    for j in range(splines.kind.shape[0]):
        d = tree.rows[splines.kind[j, ROW], IU]
        e1, e2 = turning_axes(splines, tree, j, x, u, P)
        for b in range(rows.size):
            if moves_row(tree, d, rows[b]):
                R, p = frame_at(frames, b, P, rows[b])
                add_to_column(Jdot, b, c.v[d], into_frame(R, p, e1))
                if splines.kind[j, SIZE] == 2:
                    add_to_column(Jdot, b, c.v[d + 1], into_frame(R, p, e2))


@optional(None)
def spline_seconds(splines, c, tree, carrier, x, u, P, S, V, rows, frames, dJ, dJdot):
    """Add to dJ / dq and dJdot / dq what the axes of splines owe."""
    for j in range(splines.kind.shape[0]):
        i, size = splines.kind[j, ROW], splines.kind[j, SIZE]
        first, E = tree.rows[i, IU], pose_of(P, i)
        e1, e2 = turning_axes(splines, tree, j, x, u, P)
        one, two = spline_terms(splines, j, x, tree.rows[i, IX])
        u1, u2 = rate_pair(splines, j, u, first)
        for b in range(rows.size):
            if not moves_row(tree, first, rows[b]):
                continue
            R, p = frame_at(frames, b, P, rows[b])
            vb = ld6(V, rows[b], 0)
            for m in range(size):
                # rate m of the joint in the place of d, and the others of the joint
                d, ed = first + m, e1 if m == 0 else e2
                W = sub6(vb, ld6(V, carrier[d, 0], 0))
                for n in range(size):
                    # the symmetric h and its derivatives by coordinate n
                    D = Ad(E, one[1] if m + n == 0 else two[1] if m + n == 1 else two[2])
                    h1 = (one[3] if n == 0 else one[4]) if m == 0 else (two[3] if n == 0 else two[4])
                    h2 = (two[3] if n == 0 else two[4]) if m == 0 else (two[4] if n == 0 else two[5])
                    change = sub6(Ad(E, axpy6(u1, h1, scale6(u2, h2))), ad(W, D))
                    if m == 0 and size == 2:
                        behind = scale6(u2, Ad(E, two[1] if n == 0 else two[2]))
                        change = sub6(change, ad(behind, ld6(S, d, 0)))
                    add_by(dJ, b, c.v[d], c.v[first + n], into_frame(R, p, D))
                    add_by(dJdot, b, c.v[d], c.v[first + n], into_frame(R, p, change))
                # rates before the joint in the place of d, this one in that of k
                k = tree.rates[first, 1]
                while k >= 0:
                    add_by(dJdot, b, c.v[k], c.v[d], into_frame(R, p, ad(ld6(S, k, 0), ed)))
                    k = tree.rates[k, 1]
                # rates behind the joint in the place of k
                k = last_rate(tree, rows[b])
                while k >= first + size:
                    add_by(dJdot, b, c.v[d], c.v[k], into_frame(R, p, ad(ed, ld6(S, k, 0))))
                    k = tree.rates[k, 1]


@entry
def jacobians(system, carrier, q, v, rows, frames, J, Jdot):
    """Algorithms 1 and 2: J and Jdot (nb, 6, nv), zeroed by the caller."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u = np.empty(q.size), np.empty(nu)
    P, S, V = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12))
    prepare_axes(system, q, v, x, u, P, S, V)
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
    spline_rates(tree.splines, c, tree, x, u, P, rows, frames, Jdot)


@entry
def jacobian_derivatives(system, carrier, q, v, rows, frames, dJ, dJdot):
    """Algorithm 11: dJ / dq and dJdot / dq (nb, 6, nv, nv), the last axis that of q; zeroed by the caller."""
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u = np.empty(q.size), np.empty(nu)
    P, S, V = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 12))
    prepare_axes(system, q, v, x, u, P, S, V)
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
    spline_seconds(tree.splines, c, tree, carrier, x, u, P, S, V, rows, frames, dJ, dJdot)
