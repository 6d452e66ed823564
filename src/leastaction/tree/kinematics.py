"""Kinematics and inverse dynamics of a tree (RNEA).

Everything is expressed in world axes about an origin o near the mechanism, so no sweep transforms a 6x6 matrix and
a robot a kilometre away loses no digits. Row 0 of every table is the world.

    P    (n+1, 12) pose of each row: rotation, position relative to o
    S    (nu, 6)   axis of each rate (a ball has three, along its child axes); of splines: ``tree/splines.py``
    M    (n+1, 9)  inertia of each row about o: second moment (6) and first moment (3)
    V    (n+1, 12) twist and acceleration of each row
    F    (n+1, 6)  force needed by each row; after the inward sweep, by its subtree
Algorithm: Featherstone 2008, Rigid Body Dynamics Algorithms, Table 5.1, in the world frame.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, ld9, number, st1, st3, st6, st9
from leastaction.spatial._source.scalar import sincos
from leastaction.spatial._source.vector import (
    ad,
    ad_dual,
    add6,
    axpy3,
    axpy6,
    cross,
    dot3,
    dot6,
    inertia_times,
    join,
    scale6,
    sub6,
)
from leastaction.tree.layout import (
    BALL,
    COM,
    HELICAL,
    INERTIA,
    IU,
    IX,
    KIND,
    MASS,
    PARENT,
    PITCH,
    POS,
    PRISMATIC,
    REVOLUTE,
)
from leastaction.tree.splines import spline_bias, spline_motion


@kernel
def set_origin(tree, x, P):
    """Put the world (row 0 of P) so that all positions are relative to the origin near the mechanism."""
    o = (number(x, tree.origin[0, 0]), number(x, tree.origin[0, 1]), number(x, tree.origin[0, 2]))
    for k in range(tree.moves.size):
        o = axpy3(ld1(x, tree.moves[k]), (tree.origin[k + 1, 0], tree.origin[k + 1, 1], tree.origin[k + 1, 2]), o)
    one, zero = number(x, 1.0), number(x, 0.0)
    st9(P, 0, 0, (one, zero, zero, zero, one, zero, zero, zero, one))
    st3(P, 0, 9, (-o[0], -o[1], -o[2]))


@kernel
def joint_frame(C, i, P, j, o):
    """Pose of row i before its motion, from the pose of its parent j, which begins at column o of P."""
    r0, r1, r2 = ld3(P, j, o), ld3(P, j, o + 3), ld3(P, j, o + 6)
    c0, c1, c2 = (C[i, 0], C[i, 3], C[i, 6]), (C[i, 1], C[i, 4], C[i, 7]), (C[i, 2], C[i, 5], C[i, 8])
    t = (C[i, POS], C[i, POS + 1], C[i, POS + 2])
    R = (
        dot3(r0, c0), dot3(r0, c1), dot3(r0, c2),
        dot3(r1, c0), dot3(r1, c1), dot3(r1, c2),
        dot3(r2, c0), dot3(r2, c1), dot3(r2, c2),
    )  # fmt: skip
    p = (ld(P, j, o + 9) + dot3(r0, t), ld(P, j, o + 10) + dot3(r1, t), ld(P, j, o + 11) + dot3(r2, t))
    return R, p


@kernel
def turn(R, s, c):
    """``R`` after a turn about its own z axis."""
    return (
        R[0] * c + R[1] * s, R[1] * c - R[0] * s, R[2],
        R[3] * c + R[4] * s, R[4] * c - R[3] * s, R[5],
        R[6] * c + R[7] * s, R[7] * c - R[6] * s, R[8],
    )  # fmt: skip


@kernel
def turn_by_quaternion(R, w, x, y, z):
    """``R`` times the rotation of a quaternion, which need not be exactly normalised."""
    n = 2.0 / (w * w + x * x + y * y + z * z)
    q0, q1, q2 = 1.0 - n * (y * y + z * z), n * (x * y - w * z), n * (x * z + w * y)
    q3, q4, q5 = n * (x * y + w * z), 1.0 - n * (x * x + z * z), n * (y * z - w * x)
    q6, q7, q8 = n * (x * z - w * y), n * (y * z + w * x), 1.0 - n * (x * x + y * y)
    return (
        R[0] * q0 + R[1] * q3 + R[2] * q6, R[0] * q1 + R[1] * q4 + R[2] * q7, R[0] * q2 + R[1] * q5 + R[2] * q8,
        R[3] * q0 + R[4] * q3 + R[5] * q6, R[3] * q1 + R[4] * q4 + R[5] * q7, R[3] * q2 + R[4] * q5 + R[5] * q8,
        R[6] * q0 + R[7] * q3 + R[8] * q6, R[6] * q1 + R[7] * q4 + R[8] * q7, R[6] * q2 + R[7] * q5 + R[8] * q8,
    )  # fmt: skip


@kernel
def move_row(tree, i, x, P, S):
    """Pose and axes of row i. Returns (R, p)."""
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
        R = turn_by_quaternion(R, ld1(x, k), ld1(x, k + 1), ld1(x, k + 2), ld1(x, k + 3))
        a, b, c3 = (R[0], R[3], R[6]), (R[1], R[4], R[7]), (R[2], R[5], R[8])
        st6(S, d, 0, join(a, cross(p, a)))
        st6(S, d + 1, 0, join(b, cross(p, b)))
        st6(S, d + 2, 0, join(c3, cross(p, c3)))
    elif kind == HELICAL:
        s, c = sincos(ld1(x, k))
        R = turn(R, s, c)
        a = (R[2], R[5], R[8])
        p = axpy3(C[i, PITCH] * ld1(x, k), a, p)
        st6(S, d, 0, join(a, axpy3(C[i, PITCH], a, cross(p, a))))
    R, p = spline_motion(tree.splines, tree, i, x, S, R, p)
    st9(P, i, 0, R)
    st3(P, i, 9, p)
    return R, p


@kernel
def row_inertia(C, i, R, p):
    """Second moment (6) and first moment (3) about the origin of the body on row i."""
    m = C[i, MASS]
    r0, r1, r2 = (R[0], R[1], R[2]), (R[3], R[4], R[5]), (R[6], R[7], R[8])
    c = (C[i, COM], C[i, COM + 1], C[i, COM + 2])
    w = (p[0] + dot3(r0, c), p[1] + dot3(r1, c), p[2] + dot3(r2, c))
    h = (m * w[0], m * w[1], m * w[2])
    # rotate the second moment: R I R^T
    i0 = (C[i, INERTIA], C[i, INERTIA + 1], C[i, INERTIA + 2])
    i1 = (C[i, INERTIA + 1], C[i, INERTIA + 3], C[i, INERTIA + 4])
    i2 = (C[i, INERTIA + 2], C[i, INERTIA + 4], C[i, INERTIA + 5])
    b0, b1, b2 = (
        (dot3(r0, i0), dot3(r0, i1), dot3(r0, i2)),
        (dot3(r1, i0), dot3(r1, i1), dot3(r1, i2)),
        (dot3(r2, i0), dot3(r2, i1), dot3(r2, i2)),
    )
    xx, yy, zz = h[0] * w[0], h[1] * w[1], h[2] * w[2]
    I = (
        dot3(b0, r0) + yy + zz,
        dot3(b0, r1) - h[0] * w[1],
        dot3(b0, r2) - h[0] * w[2],
        dot3(b1, r1) + xx + zz,
        dot3(b1, r2) - h[1] * w[2],
        dot3(b2, r2) + xx + yy,
    )  # fmt: skip
    return I, h


@sweep
def kinematics(tree, x, P, S):
    """Poses and axes of all rows."""
    set_origin(tree, x, P)
    for i in range(1, tree.rows.shape[0]):
        move_row(tree, i, x, P, S)


@sweep
def inertias(tree, x, P, M):
    """Inertia of every row about the origin: second and first moments. The mass stays in ``tree.const``."""
    zero = number(x, 0.0)
    st9(M, 0, 0, (zero, zero, zero, zero, zero, zero, zero, zero, zero))
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            I, h = row_inertia(tree.const, i, ld9(P, i, 0), ld3(P, i, 9))
            st6(M, i, 0, I)
            st3(M, i, 6, h)
        else:
            st9(M, i, 0, (zero, zero, zero, zero, zero, zero, zero, zero, zero))


@kernel
def joint_twist(kind, S, d, u):
    """Twist of a row relative to its parent, from its rates."""
    w = scale6(ld1(u, d), ld6(S, d, 0))
    if kind == BALL:
        w = axpy6(ld1(u, d + 2), ld6(S, d + 2, 0), axpy6(ld1(u, d + 1), ld6(S, d + 1, 0), w))
    return w


@sweep
def velocities(tree, u, S, V):
    """Twist of every row, in the first six columns of V."""
    zero = number(u, 0.0)
    st6(V, 0, 0, (zero, zero, zero, zero, zero, zero))
    for i in range(1, tree.rows.shape[0]):
        w = joint_twist(tree.rows[i, KIND], S, tree.rows[i, IU], u)
        st6(V, i, 0, add6(ld6(V, tree.rows[i, PARENT], 0), w))


@sweep
def outward(tree, x, u, udot, P, S, M, V, F):
    """Outward sweep: poses, axes, inertias, twists, accelerations (gravity included) and the forces they need.

    With ``udot=None`` the joint accelerations are zero and F are the bias forces.
    """
    C = tree.const
    set_origin(tree, x, P)
    zero = number(x, 0.0)
    g = tree.gravity
    st6(V, 0, 0, (zero, zero, zero, zero, zero, zero))
    st6(V, 0, 6, (zero, zero, zero, zero - g[0], zero - g[1], zero - g[2]))
    st6(F, 0, 0, (zero, zero, zero, zero, zero, zero))
    st9(M, 0, 0, (zero, zero, zero, zero, zero, zero, zero, zero, zero))
    for i in range(1, tree.rows.shape[0]):
        j, kind, d = tree.rows[i, PARENT], tree.rows[i, KIND], tree.rows[i, IU]
        R, p = move_row(tree, i, x, P, S)
        # a_i = a_j + ad(v_j) S u + S udot  (the rates of a ball are components in child axes)
        vj = ld6(V, j, 0)
        w = joint_twist(kind, S, d, u)
        v = add6(vj, w)
        a = spline_bias(tree.splines, tree, i, x, u, P, add6(ld6(V, j, 6), ad(vj, w)))
        if udot is not None:
            a = add6(a, joint_twist(kind, S, d, udot))
        st6(V, i, 0, v)
        st6(V, i, 6, a)
        # f = I a - ad(v)^T I v
        m = C[i, MASS]
        if m > 0.0:
            I, h = row_inertia(C, i, R, p)
            st6(M, i, 0, I)
            st3(M, i, 6, h)
            st6(F, i, 0, sub6(inertia_times(I, h, m, a), ad_dual(v, inertia_times(I, h, m, v))))
        else:
            st9(M, i, 0, (zero, zero, zero, zero, zero, zero, zero, zero, zero))
            st6(F, i, 0, (zero, zero, zero, zero, zero, zero))


@sweep
def inward(tree, S, F, tau):
    """Inward sweep: subtree forces, and the joint forces tau = S . F they need."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        f = ld6(F, i, 0)
        d, j = tree.rows[i, IU], tree.rows[i, PARENT]
        st1(tau, d, dot6(ld6(S, d, 0), f))
        if tree.rows[i, KIND] == BALL:
            st1(tau, d + 1, dot6(ld6(S, d + 1, 0), f))
            st1(tau, d + 2, dot6(ld6(S, d + 2, 0), f))
        st6(F, j, 0, add6(ld6(F, j, 0), f))


@kernel
def add_armature(tree, udot, tau):
    """Rotor inertia in inverse dynamics."""
    for d in range(tree.armature.size):
        st1(tau, d, ld1(tau, d) + tree.armature[d] * ld1(udot, d))


@kernel
def arm_of(tree):
    """A length, the typical arm of the bodies; 1 for a mechanism without mass or size."""
    mass, moment, C = 0.0, 0.0, tree.const
    for i in range(1, tree.rows.shape[0]):
        if C[i, MASS] > 0.0:
            turning = 0.5 * (C[i, INERTIA] + C[i, INERTIA + 3] + C[i, INERTIA + 5])
            arm = C[i, COM] * C[i, COM] + C[i, COM + 1] * C[i, COM + 1] + C[i, COM + 2] * C[i, COM + 2]
            mass, moment = mass + C[i, MASS], moment + turning + C[i, MASS] * arm
    return math.sqrt(moment / mass) if moment > 0.0 else 1.0


@kernel
def last_rate(tree, i):
    """The last rate that moves row i, or -1 for the world."""
    if i == 0:
        return -1
    return tree.rows[i, 3] + (2 if tree.rows[i, 1] == 3 else 0)


@kernel
def farthest(tree, x):
    """Largest angle of a screw."""
    largest = 0.0
    for i in range(1, tree.rows.shape[0]):
        if tree.rows[i, KIND] != BALL and tree.rows[i, KIND] != PRISMATIC:
            largest = max(largest, abs(x[tree.rows[i, IX]]))
    return largest
