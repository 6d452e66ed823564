"""The Lie trapezoid: DRNEA, the residual of one step in O(n) (Lee et al. 2016, Algorithm 2, any joint).

The paper works in body frames; here everything is in world axes about an origin that is fixed during the step, which
is the same residual. With T the pose of a row, E_i = T_i^(k+1) (T_i^k)^-1 is its displacement, and W_i = log(E_i) / h
the paper's average velocity V_i, carried to world axes by Ad(T_i^k). A screw has the unknown xi = q^(k+1) - q^k, a
ball the rotation vector xi of R^(k+1) = exp(xi) R^k (parent side).

    P    (n+1, 12) poses at q^k                 M    (n+1, 9)  inertias at q^k
    S0   (nu, 6)   axes at q^k; a ball has three that are fixed to its parent
    S1   (nu, 6)   the same axes at q^(k+1)
    E    (n+1, 12) displacement: unit quaternion (4), displacement of the origin (3); coefficients e, e1 of dlog; of the
                   invariant form the displacement b of the centre of mass (3)
    Z    (n+1, 6)  h times the average twist    mu   (n+1, 6)  discrete momentum, of the subtree after (3)
    printed        whether Z is the logarithm on SE(3), as the paper has it
    G    (nu,)     half impulses at one end of the step: gravity, forces on bodies, joint forces
    p    (nu,)     momenta at q^k               r    (nu,)     residual

    E_i = E_par exp(S0_i xi_i)                       Alg. 2, l. 3                                (1)
    mu_i = dlog_Z^T M_i Z_i / h,  Z_i = log(E_i)     Alg. 2, l. 4 and 7, the printed form        (2)
    mu_i = (dlog_a^T I a / h + c x f; f)             the invariant form                          (2')
    r_i = S0_i . sum_subtree mu - p_i - G_i          Alg. 2, l. 8 and 9; minus the gradient      (3)
    p_i^(k+1) = S1_i . sum_subtree mu + G_i^(k+1),   S1_i = Ad(E_par) S0_i                       (4)
Rotors add their inertia times xi / h to both sums. Equation numbers are those of docs/theory/lie_trapezoid.

The logarithm on SE(3) sees a common velocity, as it bends the path of a body that turns. The invariant form takes the
rotation vector a of E and the displacement b of the centre of mass c each for itself: f = m b / h, I the inertia about
c, and Z = (a; b - a x c). That is the average twist at q^k; at q^(k+1) the centre of mass is at c + b.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6
from leastaction.spatial._source.angle import dexp_inv_coefficients
from leastaction.spatial._source.dlog import dlog_dual
from leastaction.spatial._source.scalar import sincos
from leastaction.spatial._source.so3 import jacobian_times, quat_exp, quat_log, quat_mul, quat_rotate
from leastaction.spatial._source.vector import (
    add3,
    add6,
    ang,
    axpy3,
    axpy6,
    cross,
    dot3,
    dot6,
    inertia_times,
    join,
    lin,
    matmul,
    matvec,
    scale3,
    scale6,
    sub3,
    tmatvec,
    transpose,
)
from leastaction.tree.coordinates import get3
from leastaction.tree.kinematics import inertias, joint_frame, kinematics
from leastaction.tree.layout import BALL, HELICAL, INERTIA, IU, KIND, MASS, PARENT, PITCH, PRISMATIC, Floats, Ints


class TrapezoidWork(NamedTuple):
    """Scratch memory of one step; see the symbol tables of this file and of ``trapezoid.newton``."""

    P: Floats
    M: Floats
    S0: Floats
    S1: Floats
    E: Floats
    Z: Floats
    mu: Floats
    G: Floats
    load: Floats
    xi: Floats
    r: Floats
    old: Floats
    D: Floats
    H: Floats
    X: Floats
    y: Floats
    eta: Floats
    damp: Floats
    J: Floats
    steps: Floats
    updates: Floats
    rate: Ints
    printed: bool


@memory
def make_trapezoid_work(system, printed, dense, ranks):
    """Scratch memory; ``dense`` with room for a full Jacobian, ``ranks`` with room for that many updates."""
    tree, c = system.tree, system.coordinates
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    m = nu if dense else 0
    # row rate of each of the user's velocities
    rate = np.zeros(nu, np.int64)
    for k in range(nu):
        rate[c.v[k]] = k
    return TrapezoidWork(
        np.zeros((n, 12)), np.zeros((n, 9)), np.zeros((nu, 6)), np.zeros((nu, 6)), np.zeros((n, 12)),
        np.zeros((n, 6)), np.zeros((n, 6)), np.zeros(nu), np.zeros((n, 6)), np.zeros(nu), np.zeros(nu), np.zeros(nu),
        np.zeros((n, 36)), np.zeros((nu, 6)), np.zeros((nu, 6)), np.zeros(nu), np.zeros((n, 6)), np.zeros((nu, 3)),
        np.zeros((m, m)), np.zeros((ranks, nu)), np.zeros((ranks, nu)), rate, printed,
    )  # fmt: skip


@sweep
def place_trapezoid(tree, x, w):
    """Poses, inertias and axes at q^k."""
    kinematics(tree, x, w.P, w.S0)
    inertias(tree, x, w.P, w.M)
    # a ball varies along axes that are fixed to its parent
    for i in range(1, tree.rows.shape[0]):
        if tree.rows[i, KIND] == BALL:
            d = tree.rows[i, IU]
            R, p = joint_frame(tree.const, i, w.P, tree.rows[i, PARENT], 0)
            for k in range(3):
                axis = (R[k], R[3 + k], R[6 + k])
                st6(w.S0, d + k, 0, join(axis, cross(p, axis)))


@kernel
def quat4(E, i):
    """Quaternion of a displacement."""
    return (E[i, 0], E[i, 1], E[i, 2], E[i, 3])


@kernel
def carried(e, t, S):
    """``Ad(E) S``: a twist carried by a displacement."""
    a = quat_rotate(e, ang(S))
    return join(a, add3(quat_rotate(e, lin(S)), cross(t, a)))


@kernel
def turned_point(q, c):
    """``c - R c`` without cancellation: how a rotation about c displaces the origin."""
    a = (q[1], q[2], q[3])
    b = cross(a, c)
    return scale3(-2.0, axpy3(q[0], b, cross(a, b)))


@kernel
def own_displacement(tree, i, d, xi, w):
    """Quaternion and translation of exp(S0 xi); False if the row turns by half a turn or more."""
    kind, S = tree.rows[i, KIND], ld6(w.S0, d, 0)
    if kind == BALL:
        z = get3(xi, d)
        turn = axpy3(z[2], ld3(w.S0, d + 2, 0), axpy3(z[1], ld3(w.S0, d + 1, 0), scale3(z[0], ang(S))))
        q = quat_exp(turn)
        return q, turned_point(q, ld3(w.P, i, 9)), dot3(z, z) < math.pi * math.pi
    if kind == PRISMATIC:
        return (1.0, 0.0, 0.0, 0.0), scale3(xi[d], lin(S)), True
    # a turn about a line: v = p x a (+ pitch a), translation v sin + (a x v) (1 - cos) (+ pitch xi a)
    s, c = sincos(0.5 * xi[d])
    a, v = ang(S), lin(S)
    slide = 0.0
    if kind == HELICAL:
        slide = tree.const[i, PITCH]
        v = axpy3(-slide, a, v)
    t = axpy3(2.0 * s * s, cross(a, v), scale3(2.0 * s * c, v))
    return (c, s * a[0], s * a[1], s * a[2]), axpy3(slide * xi[d], a, t), abs(xi[d]) < math.pi


@sweep
def displace(tree, h, loaded, xi, w):
    """Outward: E, S1, Z and mu of all rows, eq. (1) and (2). False if a joint or body turns by half a turn or more."""
    E = w.E
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    E[0, 0] = 1.0
    for e in range(1, 12):
        E[0, e] = 0.0
    st6(w.Z, 0, 0, none)
    st6(w.mu, 0, 0, none)
    inside = True
    for i in range(1, tree.rows.shape[0]):
        j, d, m = tree.rows[i, PARENT], tree.rows[i, IU], tree.const[i, MASS]
        # axes at the end of the step, eq. (4)
        ej, tj = quat4(E, j), ld3(E, j, 4)
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            st6(w.S1, k, 0, carried(ej, tj, ld6(w.S0, k, 0)))
        # displacement, eq. (1)
        q, t, less = own_displacement(tree, i, d, xi, w)
        inside = inside and less
        e, t = quat_mul(ej, q), add3(tj, quat_rotate(ej, t))
        for k in range(4):
            E[i, k] = e[k]
        st3(E, i, 4, t)
        st6(w.mu, i, 0, none)
        if m > 0.0 or loaded:
            # the scalar part is continuous from 1 on, so it says whether the logarithm is the right one
            inside = inside and e[0] > 0.0
            a = quat_log(e)
            c0, c1 = dexp_inv_coefficients(dot3(a, a))
            E[i, 7], E[i, 8] = c0, c1
            if w.printed:
                Z = join(a, jacobian_times(-0.5, c0, a, t))
                if m > 0.0:
                    momentum = inertia_times(ld6(w.M, i, 0), ld3(w.M, i, 6), m, scale6(1.0 / h, Z))
                    st6(w.mu, i, 0, dlog_dual(c0, c1, Z, momentum))
            else:
                Z = displace_apart(tree, h, i, m, e, t, a, c0, w)
            st6(w.Z, i, 0, Z)
    return inside


@kernel
def displace_apart(tree, h, i, m, e, t, a, c0, w):
    """The invariant form: Z of row i, its w.mu by eq. (2'), and b. A row without mass has its origin for c."""
    c = scale3(1.0 / m, ld3(w.M, i, 6)) if m > 0.0 else ld3(w.P, i, 9)
    b = sub3(t, turned_point(e, c))
    st3(w.E, i, 9, b)
    Z = join(a, sub3(b, cross(a, c)))
    if m > 0.0:
        f, R = scale3(m / h, b), ld9(w.P, i, 0)
        spin = scale3(1.0 / h, matvec(R, matvec(own_inertia(tree, i), tmatvec(R, a))))
        st6(w.mu, i, 0, join(add3(jacobian_times(0.5, c0, a, spin), cross(c, f)), f))
    return Z


@kernel
def own_inertia(tree, i):
    """Inertia of row i about its centre of mass, in row axes."""
    xx, xy, xz, yy, yz, zz = ld6(tree.const, i, INERTIA)
    return (xx, xy, xz, xy, yy, yz, xz, yz, zz)


@kernel
def inertia_matrix(tree, i, P):
    """The same in world axes."""
    R = ld9(P, i, 0)
    return matmul(R, matmul(own_inertia(tree, i), transpose(R)))


@sweep
def trapezoid_residual(tree, h, xi, p, w):
    """Inward: w.r by eq. (3), w.mu summed over subtrees."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j, d, mu = tree.rows[i, PARENT], tree.rows[i, IU], ld6(w.mu, i, 0)
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            w.r[k] = dot6(ld6(w.S0, k, 0), mu) + tree.armature[k] * xi[k] / h - p[k] - w.G[k]
        st6(w.mu, j, 0, add6(ld6(w.mu, j, 0), mu))


@sweep
def momenta_ahead(tree, h, xi, w, p):
    """p (nu,) = S1 . mu of the subtrees, eq. (4) without the impulses at the end."""
    for i in range(1, tree.rows.shape[0]):
        d, mu = tree.rows[i, IU], ld6(w.mu, i, 0)
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            p[k] = dot6(ld6(w.S1, k, 0), mu) + tree.armature[k] * xi[k] / h


@kernel
def add_weight(tree, i, h, w):
    """Half impulse of gravity on row i, added to w.load."""
    m = tree.const[i, MASS]
    if m > 0.0:
        g = (0.5 * h * tree.gravity[0], 0.5 * h * tree.gravity[1], 0.5 * h * tree.gravity[2])
        st6(w.load, i, 0, add6(ld6(w.load, i, 0), join(cross(ld3(w.M, i, 6), g), scale3(m, g))))


@sweep
def project_loads(tree, h, w):
    """w.G = half impulses along S0: those on the bodies in w.load and gravity, summed over subtrees."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        add_weight(tree, i, h, w)
        j, d, f = tree.rows[i, PARENT], tree.rows[i, IU], ld6(w.load, i, 0)
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            w.G[k] = dot6(ld6(w.S0, k, 0), f)
        st6(w.load, j, 0, add6(ld6(w.load, j, 0), f))


@kernel
def average_twists(tree, h, w, shift, ahead, V):
    """V (n+1, .) = Z / h about an origin that is ``shift`` away from that of the step; ``ahead`` at its end."""
    for i in range(tree.rows.shape[0]):
        Z = ld6(w.Z, i, 0)
        if ahead and not w.printed:
            Z = join(ang(Z), sub3(lin(Z), cross(ang(Z), ld3(w.E, i, 9))))
        W = scale6(1.0 / h, Z)
        st6(V, i, 0, join(ang(W), add3(lin(W), cross(ang(W), shift))))


@kernel
def origin_of(P):
    """Origin of the tables in the world."""
    return (-P[0, 9], -P[0, 10], -P[0, 11])


@kernel
def combine(S, d, n, y):
    """Sum of n axes from row d on with coefficients y."""
    out = scale6(y[d], ld6(S, d, 0))
    for k in range(d + 1, d + n):
        out = axpy6(y[k], ld6(S, k, 0), out)
    return out
