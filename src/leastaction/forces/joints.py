"""Springs, dampers and laws in the joints, in the user's coordinates, and their energy."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.calls import call_law
from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld1, number, st1
from leastaction.spatial._source.mrp import add9, scale9
from leastaction.spatial._source.so3 import (
    dexp_inv,
    dexp_inv_derivative,
    dexp_inv_times,
    dexp_right_inv,
    quat_conj,
    quat_log,
    quat_mul,
    quat_normalize,
    quat_rotate,
)
from leastaction.spatial._source.vector import matmul, transpose


@kernel
def ball_angle(q, k, rest):
    """Rotation vector from the rest orientation to the present one."""
    now = quat_normalize((ld1(q, k), ld1(q, k + 1), ld1(q, k + 2), ld1(q, k + 3)))
    return quat_log(quat_mul(quat_conj(rest), now))


@kernel
def ball_rest(p, j):
    """Rest quaternion of ball j."""
    return (p.ball_data[j, 3], p.ball_data[j, 4], p.ball_data[j, 5], p.ball_data[j, 6])


@sweep
def joint_forces(p, q, v, tau):
    """Add the forces of springs and dampers to tau."""
    screw_forces(p, q, v, tau)
    for j in range(p.ball.shape[0]):
        theta = ball_angle(q, p.ball[j, 0], ball_rest(p, j))
        ball_force(p, j, theta, theta, v, tau)
    free_forces(p, q, v, tau)


@sweep
def screw_forces(p, q, v, tau):
    """Single coordinates: -k (q - rest) - d v, and laws."""
    for j in range(p.screw.shape[0]):
        k, d = p.screw[j, 0], p.screw[j, 1]
        x, w = ld1(q, k), ld1(v, d)
        f = -p.spring[j, 0] * (x - p.spring[j, 1]) - p.spring[j, 2] * w
        if p.law[j, 0] != 0:
            f = f + call_law(p.law[j, 0], x)
        if p.law[j, 2] != 0:
            f = f + call_law(p.law[j, 2], w)
        st1(tau, d, ld1(tau, d) + f)


@kernel
def ball_force(p, j, theta, stretch, v, tau):
    """Ball j at the rotation vector theta, its spring turned by ``stretch``.

    V = 1/2 sum k theta^2, so with stretch = theta it is tau = -dexp_right(theta)^-T K theta.
    """
    a, d = p.ball_data, p.ball[j, 1]
    f = dexp_inv_times(theta, (a[j, 0] * stretch[0], a[j, 1] * stretch[1], a[j, 2] * stretch[2]))
    for i in range(3):
        st1(tau, d + i, ld1(tau, d + i) - f[i] - a[j, 7 + i] * ld1(v, d + i))


@sweep
def free_forces(p, q, v, tau):
    """Translation of free joints: spring along parent axes, damper along child axes."""
    for j in range(p.free.shape[0]):
        k, d = p.free[j, 0], p.free[j, 1]
        a = p.free_data
        f = (
            -a[j, 0] * (ld1(q, k) - a[j, 3]),
            -a[j, 1] * (ld1(q, k + 1) - a[j, 4]),
            -a[j, 2] * (ld1(q, k + 2) - a[j, 5]),
        )
        turn = quat_normalize((ld1(q, k + 3), ld1(q, k + 4), ld1(q, k + 5), ld1(q, k + 6)))
        f = quat_rotate(quat_conj(turn), f)
        for i in range(3):
            st1(tau, d + i, ld1(tau, d + i) + f[i] - a[j, 6 + i] * ld1(v, d + i))


@sweep
def joint_energy(p, q):
    """Potential energy of the springs."""
    e = number(q, 0.0)
    for j in range(p.screw.shape[0]):
        x = ld1(q, p.screw[j, 0])
        r = x - p.spring[j, 1]
        e = e + 0.5 * p.spring[j, 0] * r * r
        if p.law[j, 1] != 0:
            e = e + call_law(p.law[j, 1], x)
    for j in range(p.ball.shape[0]):
        a = p.ball_data
        theta = ball_angle(q, p.ball[j, 0], ball_rest(p, j))
        e = e + 0.5 * (a[j, 0] * theta[0] * theta[0] + a[j, 1] * theta[1] * theta[1] + a[j, 2] * theta[2] * theta[2])
    for j in range(p.free.shape[0]):
        for i in range(3):
            r = ld1(q, p.free[j, 0] + i) - p.free_data[j, 3 + i]
            e = e + 0.5 * p.free_data[j, i] * r * r
    return e


@kernel
def turned_matrix(R, A):
    """``R A R^T``."""
    return matmul(R, matmul(A, transpose(R)))


@kernel
def ball_stiffness(p, j, q):
    """Derivative of the spring torque -dexp_inv(theta) K theta by a displacement, child axes."""
    b = p.ball_data
    theta = ball_angle(q, p.ball[j, 0], ball_rest(p, j))
    k = (b[j, 0] * theta[0], b[j, 1] * theta[1], b[j, 2] * theta[2])
    diagonal = (b[j, 0], 0.0, 0.0, 0.0, b[j, 1], 0.0, 0.0, 0.0, b[j, 2])
    by_theta = add9(dexp_inv_derivative(theta, k), matmul(dexp_inv(theta), diagonal))
    return scale9(-1.0, matmul(by_theta, dexp_right_inv(theta)))
