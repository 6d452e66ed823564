"""The variational step of ``Maximal``: momenta of bodies, and one 6x6 recursion for its Newton direction.

Every body keeps its own pose during the iteration (maximal coordinates: Bruedigam et al. 2020, 2023); a joint and its
child are eliminated as one pivot along the joint's motion, so the direction costs what minimal coordinates cost. The
discrete Lagrangian of a body over [k, k+1] is that of Moser and Veselov (1991), the same as that of the quaternions of
Bruedigam et al. without its square root. In world axes about an origin near the mechanism, with x the centre of mass,
R the rotation, J = tr(I)/2 - I and h the step:

    A = R1 J R0^T              l = vee(A - A^T) / h         f = m (x1 - x0) / h
    L = (l + x0 x f; f)        the same spatial momentum at both ends of the step
    W = L - h/2 F0             F0: smooth wrench at k
    dW = D eta                 eta = (w; v) spatial variation of the pose at k+1 (dR = [w] R, dx = v + w x x)
    D = [(tr A - A)/h - m/h [x0][x1], m/h [x0]; -m/h [x1], m/h]

    r_d = S0_d . sum over the subtree of W + c_d              S0: axes at k; c_d: impulses in the joint, minus p_d
    eta_i = eta_parent + S1 dq + rho                          S1: axes at k+1; rho: twist that closes the joint

Tables (row 0 is the world):
    P0, P1 (n+1, 12)  poses at k and k+1                S0, S1 (nu, 6)   axes
    X0     (n+1, 12)  R0 J (9) and x0 (3)               A  (n+1, 12)     A (9) and x1 (3)
    L      (n+1, 6)   spatial momenta                   F0 (n+1, 6)      smooth wrenches at k
    W, D   (n+1, 6), (n+1, 36)  what contacts and subtrees add; D as four 3x3 blocks ww, wv, vw, vv
    rho, eta (n+1, 6)                                   y (nu,), Y (nu, 6)  dq = y - Y . eta_parent
    r (nu,), sum (n+1, 6)  residual, and W - h/2 F0 + L of subtrees
    x1, xi, guess       coordinates at k+1, displacements of the joints, and those that were guessed
    old, oldx           poses and coordinates before a step of the iteration
    q (nq,)             the user's coordinates at the other end of the step, where springs want both
    c (nu,), K (nu, 3)  impulse in the joint and its derivative by dq (a ball has three rows)
    T                   tendons, see ``maximal.tendons``
    unit (2,)           a length, the typical arm of the bodies, and the mass times its square: residuals are compared
                        as angular momenta and gaps as angles, so that no tolerance depends on the size of a mechanism
Handed tables with lanes, most of this works on four environments at once (``maximal.lanes``).
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, ld9, number, st, st1, st3, st6, st9
from leastaction.spatial._source.mrp import add9, outer, scale9, spread
from leastaction.spatial._source.scalar import absolute, sincos
from leastaction.spatial._source.so3 import mrp_to_quat, quat_conj, quat_mul, quat_normalize, quat_to_mrp
from leastaction.spatial._source.vector import (
    add3,
    add6,
    ang,
    axpy3,
    axpy6,
    cross,
    dot6,
    join,
    lin,
    matmul,
    matvec,
    scale3,
    sub3,
    transpose,
)
from leastaction.tree.coordinates import get3, put3
from leastaction.tree.kinematics import joint_frame, turn, turn_by_quaternion
from leastaction.tree.layout import BALL, COM, INERTIA, IU, IX, KIND, MASS, PARENT, PITCH, PRISMATIC, REVOLUTE, Floats


class Bodies(NamedTuple):
    """Scratch memory of a step; see the symbol table of this file."""

    P0: Floats
    S0: Floats
    P1: Floats
    S1: Floats
    X0: Floats
    A: Floats
    L: Floats
    F0: Floats
    W: Floats
    D: Floats
    rho: Floats
    eta: Floats
    y: Floats
    Y: Floats
    c: Floats
    K: Floats
    r: Floats
    sum: Floats
    x1: Floats
    xi: Floats
    guess: Floats
    old: Floats
    oldx: Floats
    q: Floats
    T: Floats
    unit: Floats


@memory
def size_of(tree):
    """(2,) typical arm of the bodies, and the mass times its square; ones for a mechanism without mass."""
    mass, moment, unit = 0.0, 0.0, np.ones(2)
    for i in range(1, tree.rows.shape[0]):
        m = tree.const[i, MASS]
        if m > 0.0:
            c = (tree.const[i, COM], tree.const[i, COM + 1], tree.const[i, COM + 2])
            turning = 0.5 * (tree.const[i, INERTIA] + tree.const[i, INERTIA + 3] + tree.const[i, INERTIA + 5])
            mass += m
            moment += turning + m * (c[0] * c[0] + c[1] * c[1] + c[2] * c[2])
    if moment > 0.0:
        unit[0], unit[1] = np.sqrt(moment / mass), moment
    return unit


@memory
def make_bodies(tree, x, nodes, tendons):
    """Scratch memory of a step; ``nodes`` further nodes stand behind the rows (see ``maximal.graph``).

    tendons: shape of their table.
    """
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    N = n + nodes
    return Bodies(
        np.zeros((n, 12)), np.zeros((nu, 6)), np.zeros((n, 12)), np.zeros((nu, 6)), np.zeros((n, 12)),
        np.zeros((n, 12)), np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((N, 6)), np.zeros((n, 36)),
        np.zeros((n, 6)), np.zeros((N, 6)), np.zeros(nu), np.zeros((nu, 6)), np.zeros(nu), np.zeros((nu, 3)),
        np.zeros(nu), np.zeros((n, 6)), np.zeros(x.size), np.zeros(nu), np.zeros(nu), np.zeros((n, 12)),
        np.zeros(x.size), np.zeros(x.size), np.zeros(tendons), size_of(tree),
    )  # fmt: skip


@kernel
def get4(x, k):
    """Quaternion of a ball whose first coordinate is k."""
    return (ld1(x, k), ld1(x, k + 1), ld1(x, k + 2), ld1(x, k + 3))


@kernel
def put4(x, k, q):
    """Store a quaternion."""
    st1(x, k, q[0])
    st1(x, k + 1, q[1])
    st1(x, k + 2, q[2])
    st1(x, k + 3, q[3])


@kernel
def larger3(a, v):
    """The largest of a and the sizes of three numbers."""
    return max(max(max(a, absolute(v[0])), absolute(v[1])), absolute(v[2]))


# --- the start of a step --------------------------------------------------------------------------------------------
@kernel
def second_moments(C, i):
    """J = tr(I)/2 - I of the body on row i, in row axes."""
    half = 0.5 * (C[i, INERTIA] + C[i, INERTIA + 3] + C[i, INERTIA + 5])
    a, b, c = -C[i, INERTIA + 1], -C[i, INERTIA + 2], -C[i, INERTIA + 4]
    return (half - C[i, INERTIA], a, b, a, half - C[i, INERTIA + 3], c, b, c, half - C[i, INERTIA + 5])


@kernel
def centre(C, i, R, p):
    """Centre of mass of the body on row i."""
    return add3(p, matvec(R, (C[i, COM], C[i, COM + 1], C[i, COM + 2])))


@sweep
def start_bodies(tree, B):
    """X0 from the poses P0, and gravity in F0."""
    C, zero = tree.const, number(B.c, 0.0)
    g = (number(B.c, tree.gravity[0]), number(B.c, tree.gravity[1]), number(B.c, tree.gravity[2]))
    for i in range(1, tree.rows.shape[0]):
        m = C[i, MASS]
        if m > 0.0:
            R = ld9(B.P0, i, 0)
            x = centre(C, i, R, ld3(B.P0, i, 9))
            st9(B.X0, i, 0, matmul(R, second_moments(C, i)))
            st3(B.X0, i, 9, x)
            f = scale3(m, g)
            st6(B.F0, i, 0, join(cross(x, f), f))
        else:
            st6(B.F0, i, 0, (zero, zero, zero, zero, zero, zero))


# --- poses at the end -----------------------------------------------------------------------------------------------
@kernel
def axes_at(tree, i, x, P, S):
    """Pose of row i from its parent's pose and its coordinates; stores its axes. Returns (R, p)."""
    C = tree.const
    R, p = joint_frame(C, i, P, tree.rows[i, PARENT], 0)
    kind, k, d = tree.rows[i, KIND], tree.rows[i, IX], tree.rows[i, IU]
    if kind == REVOLUTE:
        s, c = sincos(ld1(x, k))
        R = turn(R, s, c)
        a = (R[2], R[5], R[8])
        st6(S, d, 0, join(a, cross(p, a)))
    elif kind == PRISMATIC:
        a = (R[2], R[5], R[8])
        p = axpy3(ld1(x, k), a, p)
        zero = number(x, 0.0)
        st6(S, d, 0, (zero, zero, zero, a[0], a[1], a[2]))
    elif kind == BALL:
        q = get4(x, k)
        R = turn_by_quaternion(R, q[0], q[1], q[2], q[3])
        a, b, e = (R[0], R[3], R[6]), (R[1], R[4], R[7]), (R[2], R[5], R[8])
        st6(S, d, 0, join(a, cross(p, a)))
        st6(S, d + 1, 0, join(b, cross(p, b)))
        st6(S, d + 2, 0, join(e, cross(p, e)))
    else:
        s, c = sincos(ld1(x, k))
        R = turn(R, s, c)
        a = (R[2], R[5], R[8])
        p = axpy3(C[i, PITCH] * ld1(x, k), a, p)
        st6(S, d, 0, join(a, axpy3(C[i, PITCH], a, cross(p, a))))
    return R, p


@kernel
def turn_between(R, Q):
    """Rotation vector, to second order, that carries rotation Q to R."""
    E = matmul(R, transpose(Q))
    return (0.5 * (E[7] - E[5]), 0.5 * (E[2] - E[6]), 0.5 * (E[3] - E[1]))


@sweep
def place_bodies(tree, B, closed, h):
    """Axes, gaps rho, momenta; ``closed`` puts every body where its joint wants it.

    Returns the largest gap and the reach, both with lengths in ``unit``. Each joint is measured from the present pose
    of its parent, so an error does not travel down a chain.
    """
    C, widest, apart, reach = tree.const, number(B.x1, 0.0), number(B.x1, 0.0), number(B.x1, 0.0)
    for i in range(1, tree.rows.shape[0]):
        R, p = axes_at(tree, i, B.x1, B.P1, B.S1)
        if closed:
            st9(B.P1, i, 0, R)
            st3(B.P1, i, 9, p)
        else:
            Q, q = ld9(B.P1, i, 0), ld3(B.P1, i, 9)
            w = turn_between(R, Q)
            v = sub3(sub3(p, q), cross(w, q))
            st6(B.rho, i, 0, join(w, v))
            widest, apart = larger3(widest, w), larger3(apart, sub3(p, q))
            R, p = Q, q
        m = C[i, MASS]
        if m > 0.0:
            x0, x1 = ld3(B.X0, i, 9), centre(C, i, R, p)
            A = matmul(R, transpose(ld9(B.X0, i, 0)))
            st9(B.A, i, 0, A)
            st3(B.A, i, 9, x1)
            f = scale3(m / h, sub3(x1, x0))
            l = scale3(1.0 / h, (A[7] - A[5], A[2] - A[6], A[3] - A[1]))
            st6(B.L, i, 0, join(add3(l, cross(x0, f)), f))
            reach = larger3(reach, x1)
    return max(widest, apart / B.unit[0]), reach / B.unit[0]


@sweep
def own_residuals(tree, B, h):
    """Largest |r_d| with what W holds from contacts, sum of squares, and the largest term in it; r is left in B.r.

    What acts along a slide is multiplied by the length of ``unit``.
    """
    n, zero = tree.rows.shape[0], number(B.c, 0.0)
    for i in range(n):
        st6(B.sum, i, 0, (zero, zero, zero, zero, zero, zero))
    largest, squares, scale = zero, zero, zero
    for i in range(n - 1, 0, -1):
        l = add6(ld6(B.sum, i, 0), ld6(B.W, i, 0))
        if tree.const[i, MASS] > 0.0:
            l = axpy6(-0.5 * h, ld6(B.F0, i, 0), add6(l, ld6(B.L, i, 0)))
        d, j = tree.rows[i, IU], tree.rows[i, PARENT]
        for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            c, arm = ld1(B.c, e), B.unit[0] if tree.rows[i, KIND] == PRISMATIC else 1.0
            r = dot6(ld6(B.S0, e, 0), l) + c
            st1(B.r, e, r)
            size = arm * absolute(r)
            largest = max(largest, size)
            squares += size * size
            scale = max(max(scale, arm * absolute(c)), arm * absolute(r - c))
        st6(B.sum, j, 0, add6(ld6(B.sum, j, 0), l))
    return largest, squares, scale


# --- moving along it ------------------------------------------------------------------------------------------------
@sweep
def clear_blocks(tree, B):
    """No contacts: W = 0, D = 0."""
    zero = number(B.c, 0.0)
    for i in range(tree.rows.shape[0]):
        for e in range(6):
            st(B.W, i, e, zero)
        for e in range(36):
            st(B.D, i, e, zero)


@kernel
def cayley(w):
    """Rotation near exp(w), to second order, orthonormal to rounding."""
    a = scale3(0.5, w)
    n = a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
    s = 2.0 / (1.0 + n)
    return add9(spread(1.0 - s * n, scale3(s, a)), scale9(s, outer(a, a)))


@sweep
def keep_bodies(tree, B):
    """Remember poses and coordinates before a step of the iteration."""
    for i in range(tree.rows.shape[0]):
        for e in range(12):
            st(B.old, i, e, ld(B.P1, i, e))
    for k in range(B.x1.shape[0]):
        st1(B.oldx, k, ld1(B.x1, k))


@sweep
def move_bodies(tree, B, alpha):
    """Poses and coordinates after a part alpha of the direction."""
    for i in range(1, tree.rows.shape[0]):
        eta = ld6(B.eta, i, 0)
        w, v = scale3(alpha, ang(eta)), scale3(alpha, lin(eta))
        p = ld3(B.old, i, 9)
        st9(B.P1, i, 0, matmul(cayley(w), ld9(B.old, i, 0)))
        st3(B.P1, i, 9, add3(p, add3(v, cross(w, p))))
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            z = (alpha * ld1(B.y, d), alpha * ld1(B.y, d + 1), alpha * ld1(B.y, d + 2))
            put4(B.x1, k, quat_normalize(quat_mul(get4(B.oldx, k), mrp_to_quat(z))))
        else:
            st1(B.x1, k, ld1(B.oldx, k) + alpha * ld1(B.y, d))


@kernel
def shift_of(tree, x, x1, xi):
    """Displacements xi (nu,) from x to x1: differences, and for a ball 4 tan(angle/4) about its axis in child axes."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put3(xi, d, quat_to_mrp(quat_mul(quat_conj(get4(x, k)), get4(x1, k))))
        else:
            st1(xi, d, ld1(x1, k) - ld1(x, k))


@kernel
def shifted(tree, x, xi, x1):
    """x1 = x moved by xi."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put4(x1, k, quat_normalize(quat_mul(get4(x, k), mrp_to_quat(get3(xi, d)))))
        else:
            st1(x1, k, ld1(x, k) + ld1(xi, d))


@kernel
def out_of_hand(x, unit):
    """Whether a coordinate has grown so far that its rounding is as large as the bodies, 1e15 times their arm."""
    far = 0.0
    for k in range(x.shape[0]):
        far = max(far, abs(x[k]))
    return not far < 1.0e15 * max(1.0, unit[0])


# --- the end of a step ----------------------------------------------------------------------------------------------
@sweep
def end_momenta(tree, B, h, F1, c1, p):
    """p (nu,) along child axes at the end: S1 . sum over the subtree of (L + h/2 F1), plus c1."""
    n, zero = tree.rows.shape[0], number(p, 0.0)
    for i in range(n):
        st6(B.W, i, 0, (zero, zero, zero, zero, zero, zero))
    for i in range(n - 1, 0, -1):
        l = axpy6(0.5 * h, ld6(F1, i, 0), ld6(B.W, i, 0))
        if tree.const[i, MASS] > 0.0:
            l = add6(l, ld6(B.L, i, 0))
        d, j = tree.rows[i, IU], tree.rows[i, PARENT]
        for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            st1(p, e, dot6(ld6(B.S1, e, 0), l) + ld1(c1, e))
        st6(B.W, j, 0, add6(ld6(B.W, j, 0), l))
