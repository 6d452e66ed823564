"""Coordinates of balls inside a step of the implicit methods: exponential, or one of the twelve Euler charts.

A screw has xi = x - x0, its displacement in the step. A ball has three coordinates xi:

    EXP     x = x0 exp(xi), so xi = 0 at the start of the step                    E = dexp_right(xi)
    Euler   x = exp(xi_1 e_a) exp(xi_2 e_b) exp(xi_3 e_c), whatever x0 is         E = (R_c^T R_b^T e_a, R_c^T e_b, e_c)

with rates u = E xidot along child axes (Sueda 2021, Tables 1 to 3, eq. 2.48). An Euler chart has the code 9a + 3b + c,
that of EXP is -1; chart (n+1,) has one code for each row of the tree. |det E| of an Euler chart is |cos xi_2| where its
three axes differ and |sin xi_2| where the first is the last.

    E, U    (nu, 3)  blocks of ``tree.blocks``: E, and U = d(E y)/dxi + E at a given y
    A       (nu, 3)  by what x moves, in child axes, if x0 moves and xi is fixed: 1, exp(-xi), or 0 for an Euler chart
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.so3 import (
    dexp_derivative,
    dexp_right,
    exp,
    quat_conj,
    quat_exp,
    quat_log,
    quat_mul,
    quat_normalize,
    quat_rotate,
    quat_to_matrix,
)
from leastaction.spatial._source.vector import cross
from leastaction.tree.coordinates import get3, put3
from leastaction.tree.layout import BALL, IU, IX, KIND

EXP = -1

# How charts are chosen: all exponential, one Euler chart, or the best Euler chart where the present one is poor.
CHART_EXP, CHART_FIXED, CHART_AUTO = 0, 1, 2

# An Euler chart is left below the first, and is no chart at all below the second value of |det E|.
POOR, SINGULAR = 0.3, 1.0e-3

# Largest rotation in one step of the exponential chart, radians.
FARTHEST = 4.71


@kernel
def ball_at(x, k):
    """Quaternion of the ball whose first coordinate is k."""
    return (x[k], x[k + 1], x[k + 2], x[k + 3])


@kernel
def put_ball(x, k, q):
    """Store a quaternion."""
    for e in range(4):
        x[k + e] = q[e]


@kernel
def axes_of(code):
    """The three axes of an Euler chart, 0 to 2."""
    return code // 9, (code // 3) % 3, code % 3


@kernel
def unit(a):
    """Unit vector of an axis."""
    return (1.0 if a == 0 else 0.0, 1.0 if a == 1 else 0.0, 1.0 if a == 2 else 0.0)


@kernel
def about(a, angle):
    """Quaternion of a turn about an axis."""
    e = unit(a)
    return quat_exp((angle * e[0], angle * e[1], angle * e[2]))


@kernel
def euler_quat(code, z):
    """Quaternion of Euler angles."""
    a, b, c = axes_of(code)
    return quat_mul(quat_mul(about(a, z[0]), about(b, z[1])), about(c, z[2]))


@kernel
def nearest_turn(angle, near):
    """The angle that differs by full turns and is nearest to another one."""
    return angle - 2.0 * math.pi * math.floor((angle - near) / (2.0 * math.pi) + 0.5)


@kernel
def euler_angles(code, q, near):
    """Angles of a quaternion, the branch nearest to ``near`` (Sueda 2021, Tables 1 to 3)."""
    R = quat_to_matrix(q)
    a, b, c = axes_of(code)
    third = 3 - a - b
    s = 1.0 if b == (a + 1) % 3 else -1.0
    if c == a:
        one = math.atan2(R[3 * b + a], -s * R[3 * third + a])
        two = math.atan2(math.sqrt(R[3 * b + a] ** 2 + R[3 * third + a] ** 2), R[3 * a + a])
        three = math.atan2(R[3 * a + b], s * R[3 * a + third])
        # the same rotation: (one + pi, -two, three + pi)
        other = -two
    else:
        one = math.atan2(-s * R[3 * b + c], R[3 * c + c])
        two = math.atan2(s * R[3 * a + c], math.sqrt(R[3 * a + a] ** 2 + R[3 * a + b] ** 2))
        three = math.atan2(-s * R[3 * a + b], R[3 * a + a])
        # the same rotation: (one + pi, pi - two, three + pi)
        other = math.pi - two
    first = (nearest_turn(one, near[0]), nearest_turn(two, near[1]), nearest_turn(three, near[2]))
    second = (
        nearest_turn(one + math.pi, near[0]), nearest_turn(other, near[1]), nearest_turn(three + math.pi, near[2]),
    )  # fmt: skip
    d1, d2 = 0.0, 0.0
    for e in range(3):
        d1 += (first[e] - near[e]) ** 2
        d2 += (second[e] - near[e]) ** 2
    return first if d1 <= d2 else second


@kernel
def euler_columns(code, z):
    """Axes S1, S2, S3 of the three turns in child axes: the columns of E."""
    a, b, c = axes_of(code)
    back = quat_conj(about(c, z[2]))
    return quat_rotate(back, quat_rotate(quat_conj(about(b, z[1])), unit(a))), quat_rotate(back, unit(b)), unit(c)


@kernel
def euler_quality(code, z):
    """|det E| of an Euler chart."""
    return abs(math.sin(z[1])) if code // 9 == code % 3 else abs(math.cos(z[1]))


@kernel
def put_chart_block(B, d, r0, r1, r2):
    """Store a 3x3 block by rows."""
    for e in range(3):
        B[d, e] = r0[e]
        B[d + 1, e] = r1[e]
        B[d + 2, e] = r2[e]


@kernel
def put_nine(B, d, M):
    """Store nine numbers as a block."""
    put_chart_block(B, d, (M[0], M[1], M[2]), (M[3], M[4], M[5]), (M[6], M[7], M[8]))


@kernel
def put_columns(B, d, a, b, c):
    """Store a block by columns."""
    put_chart_block(B, d, (a[0], b[0], c[0]), (a[1], b[1], c[1]), (a[2], b[2], c[2]))


@kernel
def plus3(a, b):
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def times3(s, a):
    """Multiple."""
    return (s * a[0], s * a[1], s * a[2])


@sweep
def choose_charts(tree, mode, code, x, chart):
    """Charts of a step that begins at x. Returns the row of a ball whose fixed chart is singular there, or 0."""
    for i in range(1, tree.rows.shape[0]):
        if tree.rows[i, KIND] != BALL or mode == CHART_EXP:
            chart[i] = EXP
            continue
        q, zero = quat_normalize(ball_at(x, tree.rows[i, IX])), (0.0, 0.0, 0.0)
        if mode == CHART_FIXED:
            chart[i] = code
            if not euler_quality(code, euler_angles(code, q, zero)) > SINGULAR:
                return i
            continue
        # keep the chart while it is good, else take the best of the twelve
        if chart[i] == EXP or not euler_quality(chart[i], euler_angles(chart[i], q, zero)) > POOR:
            best = -1.0
            for one in range(27):
                a, b, c = axes_of(one)
                if a != b and b != c:
                    quality = euler_quality(one, euler_angles(one, q, zero))
                    if quality > best:
                        best = quality
                        chart[i] = one
    return 0


@sweep
def start_coordinates(tree, chart, x0, xi0):
    """Coordinates of the start of the step."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            z = (0.0, 0.0, 0.0)
            if chart[i] != EXP:
                z = euler_angles(chart[i], quat_normalize(ball_at(x0, k)), z)
            put3(xi0, d, z)
        else:
            xi0[d] = 0.0


@sweep
def other_coordinates(tree, chart, x0, xi0, x, xi):
    """Coordinates of another configuration x near the start."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            if chart[i] == EXP:
                put3(xi, d, quat_log(quat_normalize(quat_mul(quat_conj(ball_at(x0, k)), ball_at(x, k)))))
            else:
                put3(xi, d, euler_angles(chart[i], quat_normalize(ball_at(x, k)), get3(xi0, d)))
        else:
            xi[d] = x[k] - x0[k]


@sweep
def place_coordinates(tree, chart, x0, xi, x):
    """x from its coordinates. False if a ball turned too far for the exponential chart."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            q0, z = ball_at(x0, k), get3(xi, d)
            if chart[i] == EXP:
                if not z[0] * z[0] + z[1] * z[1] + z[2] * z[2] < FARTHEST * FARTHEST:
                    return False
                put_ball(x, k, quat_normalize(quat_mul(q0, quat_exp(z))))
            else:
                q = quat_normalize(euler_quat(chart[i], z))
                s = 1.0 if q[0] * q0[0] + q[1] * q0[1] + q[2] * q0[2] + q[3] * q0[3] >= 0.0 else -1.0
                put_ball(x, k, (s * q[0], s * q[1], s * q[2], s * q[3]))
        else:
            x[k] = x0[k] + xi[d]
    return True


@sweep
def chart_blocks(tree, chart, xi, y, E, U):
    """E and U = d(E y)/dxi + E."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] != BALL:
            E[d, 0] = 1.0
            U[d, 0] = 1.0
        elif chart[i] == EXP:
            z = get3(xi, d)
            # d(dexp_right(xi) y)/dxi = -d(dexp(w) y)/dw at w = -xi
            M, N = dexp_right(z), dexp_derivative((-z[0], -z[1], -z[2]), get3(y, d))
            put_nine(E, d, M)
            put_chart_block(
                U, d, (M[0] - N[0], M[1] - N[1], M[2] - N[2]), (M[3] - N[3], M[4] - N[4], M[5] - N[5]),
                (M[6] - N[6], M[7] - N[7], M[8] - N[8]),
            )  # fmt: skip
        else:
            a, b, c = euler_columns(chart[i], get3(xi, d))
            put_columns(E, d, a, b, c)
            # dS_j/dxi_k = S_j x S_k for k > j, else 0
            second = plus3(b, times3(y[d], cross(a, b)))
            third = plus3(c, plus3(times3(y[d], cross(a, c)), times3(y[d + 1], cross(b, c))))
            put_columns(U, d, a, second, third)


@sweep
def base_blocks(tree, chart, xi, A):
    """A: how x follows x0 at fixed xi."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] != BALL:
            A[d, 0] = 1.0
        elif chart[i] == EXP:
            z = get3(xi, d)
            put_nine(A, d, exp((-z[0], -z[1], -z[2])))
        else:
            zero = (0.0, 0.0, 0.0)
            put_chart_block(A, d, zero, zero, zero)
