"""The step of ``Maximal(4)``: poses at three nodes of a step, momenta of bodies there, and their derivatives.

Every body has a pose at the nodes c = 0, 1/2, 1. Its centre of mass moves along the parabola through three positions,
its rotation along the normalised parabola through three unit quaternions, as the first order of both is in Bruedigam et
al. (2020, 2023). With b_aj the derivative at node a of the polynomial of node j, Simpson's weights w and the step h:

    v_a = sum_j b_aj x_j / h        Om_a = 2/h sum_j b_aj s_aj        (c_aj, s_aj) = q_j q_a*        (world axes)
    action = h sum_a w_a (m |v_a|^2 + Om_a . I_a Om_a) / 2            pi_a = I_a Om_a

    f_j  = m/h sum_l k_jl x_l,  k = b^T diag(w) b                     derivative by x_j
    t_j += kap_aj, t_a -= kap_aj                                      derivatives by rotations of the nodes
           kap_aj = w_a b_aj (c_aj pi_a + s_aj x pi_a) = h w_a N_aj^T pi_a
    W_j  = (t_j + x_j x F_j; F_j),  F_j = f_j + h w_j m g             spatial, with the weight

The three wrenches of a free body without weight add up to zero: momentum is kept. Constraints hold at the nodes, so the
axes S of the joints there leave the equations

    r_0 = S_0 . sum W_0 + c_0 (with p) = 0,   r_1 = S_1 . sum W_1 + c_1 = 0,   p_next = S_2 . sum W_2 + c_2

Tables (row 0 is the world; three nodes side by side):
    x (3, nx)  coordinates         P (n+1, 36) poses       S (nu, 18)   axes          W (n+1, 18) wrenches
    Q (n+1, 12) quaternions        C (n+1, 9)  centres     V (n+1, 18)  twists        sum (n+1, 18) of subtrees
    u (3, nu)  rates of joints     c (nu, 3)   impulses in joints
    K (nu, 12) derivatives of c_0, c_1 by the coordinates at nodes 1, 2: column 6 a + 3 (l - 1) + e
    Z (12, 7)  of one body: quaternions of the nodes (4) and torques t (3); from row 3 on the turns (c_aj, s_aj)
    unit (2,)  see ``maximal.bodies``
    T (4, 9)   of one body: dt_0/dth_1, dt_0/dth_2, dt_1/dth_1, dt_1/dth_2
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6, st9
from leastaction.maximal.bodies import centre, get4, size_of
from leastaction.spatial._source.mrp import add9, outer, scale9, spread
from leastaction.spatial._source.scalar import sincos
from leastaction.spatial._source.so3 import matrix_to_quat, quat_conj, quat_mul, quat_to_matrix
from leastaction.spatial._source.vector import (
    add3,
    add6,
    axpy3,
    cross,
    dot3,
    join,
    matmul,
    matvec,
    scale3,
    sub3,
    tmatvec,
    transpose,
)
from leastaction.tree.kinematics import joint_frame, turn, turn_by_quaternion
from leastaction.tree.layout import BALL, INERTIA, IU, IX, KIND, MASS, PARENT, PITCH, PRISMATIC, REVOLUTE, Floats

# Simpson's weights; b, the derivatives at the nodes; k = b^T diag(w) b.
WEIGHTS = (1.0 / 6.0, 2.0 / 3.0, 1.0 / 6.0)
RATES = ((-3.0, 4.0, -1.0), (-1.0, 0.0, 1.0), (1.0, -4.0, 3.0))
STIFF = ((7.0 / 3.0, -8.0 / 3.0, 1.0 / 3.0), (-8.0 / 3.0, 16.0 / 3.0, -8.0 / 3.0), (1.0 / 3.0, -8.0 / 3.0, 7.0 / 3.0))


class NodeWork(NamedTuple):
    """Scratch memory of a step; see the symbol tables of this file and of ``maximal.fourth.recursion``."""

    x: Floats
    P: Floats
    S: Floats
    W: Floats
    Q: Floats
    C: Floats
    V: Floats
    sum: Floats
    u: Floats
    c: Floats
    K: Floats
    D: Floats
    H: Floats
    Y: Floats
    M: Floats
    l: Floats
    y: Floats
    eta: Floats
    old: Floats
    X: Floats
    A: Floats
    B: Floats
    Z: Floats
    T: Floats
    unit: Floats


@memory
def make_nodes(tree, nx):
    """Scratch memory of a step."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    return NodeWork(
        np.zeros((3, nx)), np.zeros((n, 36)), np.zeros((nu, 18)), np.zeros((n, 18)), np.zeros((n, 12)),
        np.zeros((n, 9)), np.zeros((n, 18)), np.zeros((n, 18)), np.zeros((3, nu)), np.zeros((nu, 3)),
        np.zeros((nu, 12)),
        np.zeros((n, 144)), np.zeros((nu, 24)), np.zeros((nu, 24)), np.zeros((n, 36)), np.zeros((n, 12)),
        np.zeros(2 * nu), np.zeros((n, 12)), np.zeros((3, nx)), np.zeros((6, 12)), np.zeros((6, 12)),
        np.zeros((6, 12)),
        np.zeros((12, 7)), np.zeros((4, 9)), size_of(tree),
    )  # fmt: skip


# --- poses ----------------------------------------------------------------------------------------------------------
@kernel
def ld4(a, i, k):
    """Four numbers of row i from column k on."""
    return (a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3])


@sweep
def place_node(tree, w, a):
    """Poses, axes, centres and quaternions of all rows at node a; quaternions on the sheet of the node before."""
    C, x = tree.const, w.x[a]
    for i in range(1, tree.rows.shape[0]):
        R, p = joint_frame(C, i, w.P, tree.rows[i, PARENT], 12 * a)
        kind, k, d = tree.rows[i, KIND], tree.rows[i, IX], tree.rows[i, IU]
        if kind == BALL:
            q = get4(x, k)
            R = turn_by_quaternion(R, q[0], q[1], q[2], q[3])
            for e in range(3):
                s = (R[e], R[3 + e], R[6 + e])
                st6(w.S, d + e, 6 * a, join(s, cross(p, s)))
        elif kind == PRISMATIC:
            s = (R[2], R[5], R[8])
            p = axpy3(x[k], s, p)
            st6(w.S, d, 6 * a, (0.0, 0.0, 0.0, s[0], s[1], s[2]))
        else:
            sine, cosine = sincos(x[k])
            R = turn(R, sine, cosine)
            s, pitch = (R[2], R[5], R[8]), 0.0 if kind == REVOLUTE else C[i, PITCH]
            p = axpy3(pitch * x[k], s, p)
            st6(w.S, d, 6 * a, join(s, axpy3(pitch, s, cross(p, s))))
        st9(w.P, i, 12 * a, R)
        st3(w.P, i, 12 * a + 9, p)
        st3(w.C, i, 3 * a, centre(C, i, R, p))
        q, before = matrix_to_quat(R), ld4(w.Q, i, 4 * max(a - 1, 0))
        sign = -1.0 if a > 0 and q[0] * before[0] + q[1] * before[1] + q[2] * before[2] + q[3] * before[3] < 0 else 1.0
        for e in range(4):
            w.Q[i, 4 * a + e] = sign * q[e]


@kernel
def pair_turns(Z):
    """The turns (c_aj, s_aj) between the quaternions in Z."""
    for a in range(2):
        for j in range(a + 1, 3):
            r = quat_mul(ld4(Z, j, 0), quat_conj(ld4(Z, a, 0)))
            Z[3 + 3 * a + j, 0], Z[3 + 3 * j + a, 0] = r[0], r[0]
            st3(Z, 3 + 3 * a + j, 1, (r[1], r[2], r[3]))
            st3(Z, 3 + 3 * j + a, 1, (-r[1], -r[2], -r[3]))


@kernel
def between(Z, a, j):
    """Scalar and vector part of q_j q_a*."""
    return Z[3 + 3 * a + j, 0], ld3(Z, 3 + 3 * a + j, 1)


@kernel
def spin(Z, a, h):
    """Angular velocity at node a, world axes."""
    o = (0.0, 0.0, 0.0)
    for j in range(3):
        if j != a:
            o = axpy3(RATES[a][j], ld3(Z, 3 + 3 * a + j, 1), o)
    return scale3(2.0 / h, o)


@kernel
def load_turns(w, i):
    """Quaternions of row i, and the turns between them, into w.Z."""
    for a in range(3):
        for e in range(4):
            w.Z[a, e] = w.Q[i, 4 * a + e]
    pair_turns(w.Z)


@sweep
def twists(tree, w, h):
    """V: twist of every row at the nodes, its linear part at the origin."""
    for i in range(1, tree.rows.shape[0]):
        load_turns(w, i)
        p0, p1, p2 = ld3(w.P, i, 9), ld3(w.P, i, 21), ld3(w.P, i, 33)
        for a in range(3):
            b, o = RATES[a], spin(w.Z, a, h)
            v = scale3(1.0 / h, axpy3(b[0], p0, axpy3(b[1], p1, scale3(b[2], p2))))
            st6(w.V, i, 6 * a, join(o, sub3(v, cross(o, ld3(w.P, i, 12 * a + 9)))))


# --- one body -------------------------------------------------------------------------------------------------------
@kernel
def tensor(C, i):
    """Inertia of the body on row i about its centre, row axes."""
    xx, xy, xz, yy, yz, zz = (
        C[i, INERTIA], C[i, INERTIA + 1], C[i, INERTIA + 2], C[i, INERTIA + 3], C[i, INERTIA + 4], C[i, INERTIA + 5],
    )  # fmt: skip
    return (xx, xy, xz, xy, yy, yz, xz, yz, zz)


@kernel
def minus(s):
    """The opposite vector."""
    return (-s[0], -s[1], -s[2])


@kernel
def momentum(I, Z, a, h):
    """Momentum pi_a of a body with the inertia I in its axes, and its inertia in world axes."""
    R = quat_to_matrix(ld4(Z, a, 0))
    J = matmul(R, matmul(I, transpose(R)))
    return matvec(J, spin(Z, a, h)), J


@kernel
def rate_change(Z, a, j, h):
    """N_aj = b_aj (c - [s])/h as a number and a vector: R_a d(omega_a) = sum_j N_aj th_j; N_aa is minus the others."""
    if j != a:
        c, s = between(Z, a, j)
        k = RATES[a][j] / h
        return k * c, scale3(-k, s)
    c, s = 0.0, (0.0, 0.0, 0.0)
    for l in range(3):
        if l != a:
            k, (d, t) = RATES[a][l] / h, between(Z, a, l)
            c, s = c - k * d, axpy3(k, t, s)
    return c, s


@kernel
def back(c, s, v):
    """N^T v of N = c + [s]."""
    return axpy3(c, v, cross(v, s))


@sweep
def turning(I, Z, h):
    """Torques t_j = h sum_a w_a N_aj^T pi_a of a body with the inertia I in its axes, from the quaternions in Z."""
    for a in range(3):
        st3(Z, a, 4, (0.0, 0.0, 0.0))
    for a in range(3):
        R = quat_to_matrix(ld4(Z, a, 0))
        pi = matvec(R, matvec(I, tmatvec(R, spin(Z, a, h))))
        for j in range(3):
            c, s = rate_change(Z, a, j, h)
            st3(Z, j, 4, axpy3(h * WEIGHTS[a], back(c, s, pi), ld3(Z, j, 4)))


@sweep
def turning_slopes(I, Z, h, T):
    """Derivatives of the torques t_0, t_1 by the rotations of nodes 1 and 2 into T.

    dt_j/dth_l = h sum_a w_a (N_aj^T (J_a N_al - d_al [pi_a]) + dN_aj^T pi_a / dth_l)
    """
    none = (0.0, 0.0, 0.0)
    for r in range(4):
        st9(T, r, 0, spread(0.0, none))
    for a in range(3):
        pi, J = momentum(I, Z, a, h)
        c0, s0 = rate_change(Z, a, 0, h)
        c1, s1 = rate_change(Z, a, 1, h)
        N0, N1, wh = spread(c0, minus(s0)), spread(c1, minus(s1)), h * WEIGHTS[a]
        for l in range(1, 3):
            c, s = rate_change(Z, a, l, h)
            M = matmul(J, spread(c, s))
            if l == a:
                M = add9(M, spread(0.0, minus(pi)))
            st9(T, l - 1, 0, add9(ld9(T, l - 1, 0), scale9(wh, matmul(N0, M))))
            st9(T, l + 1, 0, add9(ld9(T, l + 1, 0), scale9(wh, matmul(N1, M))))
            for j in range(3):
                if j != a and (j < 2 or a < 2) and l in (j, a):
                    add_bending(T, a, j, l, between(Z, a, j), pi)


@kernel
def add_bending(T, a, j, l, turn, pi):
    """What changes in kap_aj = w_a b_aj (c pi + s x pi) by the rotation of node l, but for pi, to nodes j and a."""
    c, s = turn
    # dc = -s . (th_j - th_a)/2,  ds = (c (th_j - th_a) + (th_j + th_a) x s)/2,  [pi][s] = s pi^T - pi . s
    k = -0.5 if l == j else 0.5
    M = scale9(k, add9(outer(pi, s), spread(0.0, scale3(c, pi))))
    M = add9(M, add9(scale9(0.5, outer(s, pi)), spread(-0.5 * dot3(pi, s), (0.0, 0.0, 0.0))))
    M = scale9(WEIGHTS[a] * RATES[a][j], M)
    if j < 2:
        st9(T, 2 * j + l - 1, 0, add9(ld9(T, 2 * j + l - 1, 0), M))
    if a < 2:
        st9(T, 2 * a + l - 1, 0, add9(ld9(T, 2 * a + l - 1, 0), scale9(-1.0, M)))


# --- all bodies -----------------------------------------------------------------------------------------------------
@sweep
def body_wrenches(tree, w, h):
    """Add the wrenches W of all bodies, weights included. Returns the reach of their centres in ``unit``."""
    C, g, reach = tree.const, (tree.gravity[0], tree.gravity[1], tree.gravity[2]), 0.0
    for i in range(1, tree.rows.shape[0]):
        m = C[i, MASS]
        if m > 0.0:
            load_turns(w, i)
            turning(tensor(C, i), w.Z, h)
            # displacements, so that far from the origin no digits are lost
            d1, d2 = sub3(ld3(w.C, i, 3), ld3(w.C, i, 0)), sub3(ld3(w.C, i, 6), ld3(w.C, i, 0))
            for a in range(3):
                k, x = STIFF[a], ld3(w.C, i, 3 * a)
                f = scale3(m / h, axpy3(k[1], d1, scale3(k[2], d2)))
                f = axpy3(h * m * WEIGHTS[a], g, f)
                st6(w.W, i, 6 * a, add6(ld6(w.W, i, 6 * a), join(add3(ld3(w.Z, a, 4), cross(x, f)), f)))
                reach = max(reach, abs(x[0]), abs(x[1]), abs(x[2]))
    return reach / w.unit[0]


@kernel
def put_block(D, i, row, column, ww, wv, vw, vv):
    """Store a 6x6 block of the 12x12 matrix of row i."""
    for r in range(3):
        for e in range(3):
            D[i, 12 * (row + r) + column + e] = ww[3 * r + e]
            D[i, 12 * (row + r) + column + 3 + e] = wv[3 * r + e]
            D[i, 12 * (row + 3 + r) + column + e] = vw[3 * r + e]
            D[i, 12 * (row + 3 + r) + column + 3 + e] = vv[3 * r + e]


@sweep
def body_blocks(tree, w, h):
    """D of all bodies: derivatives of W_0 and W_1 by the poses at nodes 1 and 2."""
    C, g, none = tree.const, (tree.gravity[0], tree.gravity[1], tree.gravity[2]), (0.0, 0.0, 0.0)
    for i in range(1, tree.rows.shape[0]):
        m = C[i, MASS]
        if m > 0.0:
            load_turns(w, i)
            turning_slopes(tensor(C, i), w.Z, h, w.T)
            d1, d2 = sub3(ld3(w.C, i, 3), ld3(w.C, i, 0)), sub3(ld3(w.C, i, 6), ld3(w.C, i, 0))
            f = scale3(m / h, axpy3(STIFF[1][1], d1, scale3(STIFF[1][2], d2)))
            f = spread(0.0, axpy3(h * m * WEIGHTS[1], g, f))
            for a in range(2):
                xa = spread(0.0, ld3(w.C, i, 3 * a))
                for l in range(1, 3):
                    k, xl = m / h * STIFF[a][l], spread(0.0, ld3(w.C, i, 3 * l))
                    ww, wv = add9(ld9(w.T, 2 * a + l - 1, 0), scale9(-k, matmul(xa, xl))), scale9(k, xa)
                    if a == 1 and l == 1:
                        ww, wv = add9(ww, matmul(f, xl)), add9(wv, scale9(-1.0, f))
                    put_block(w.D, i, 6 * a, 6 * (l - 1), ww, wv, scale9(-k, xl), spread(k, none))
        else:
            for e in range(144):
                w.D[i, e] = 0.0
