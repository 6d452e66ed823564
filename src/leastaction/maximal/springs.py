"""Springs of balls and of the translation of free joints in a maximal step: at the middle of it, and so implicit.

A ball has V = 1/2 sum k th^2 with th the rotation vector from rest; in a step it is taken at (th0 + th1)/2, and a free
joint at the mean of its positions b in parent axes. These are discrete potentials, and half of their forces acts at
each end:

    ball    tau_0 = -J0 K (th0 + th1)/2,     J = dexp_inv(th)         dtau_0 = -J0 K J1^T dq / 2
    free    F_0 = -P0 K ((b0 + b1)/2 - rest) at the child frame's origin, and the opposite on the parent
            dF_0 = -P0 K P1^T (dz_child - dz_parent)/2,                P: parent axes,  dz: of a point there

At each end the other angle is continued from that end's, also beyond half a turn, where V has a ridge: so the equations
of a step have no jump, and a step across the ridge is the same from either end.

    M    four 3x3 blocks, what the motion of a body at k+1 does to the wrench on a body
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.joints import ball_force, ball_rest, free_forces
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, number, st1, st6
from leastaction.maximal.bodies import get4
from leastaction.maximal.graph import add_to
from leastaction.maximal.recursion import add_blocks, load_block, store_block, times
from leastaction.spatial._source.mrp import add9, scale9, spread
from leastaction.spatial._source.scalar import pick
from leastaction.spatial._source.so3 import (
    dexp_inv,
    quat_canonical,
    quat_conj,
    quat_mul,
    quat_normalize,
    sheet_log,
)
from leastaction.spatial._source.vector import add3, add6, axpy6, matmul, matvec, scale3, sub3, transpose
from leastaction.tree.coordinates import offset_of
from leastaction.tree.layout import PARENT


# --- balls ----------------------------------------------------------------------------------------------------------
@kernel
def ball_angles(p, j, here, there):
    """Rotation vectors of ball j at one end of a step and at the other, which is continued from the first."""
    k, back = p.ball[j, 0], quat_conj(ball_rest(p, j))
    a = quat_canonical(quat_mul(back, quat_normalize(get4(here, k))))
    b = quat_mul(back, quat_normalize(get4(there, k)))
    one = number(here, 1.0)
    s = pick(a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3], 0.0, one, -one)
    return sheet_log(a), sheet_log((s * b[0], s * b[1], s * b[2], s * b[3]))


@kernel
def ball_slope(p, j, q0, q1, h):
    """Derivative (3, 3) of minus half the impulse of ball j at k by its turn at k+1: spring, and damper along axes."""
    a = p.ball_data
    th0, th1 = ball_angles(p, j, q0, q1)
    stiff = (0.25 * h * a[j, 0], 0.0, 0.0, 0.0, 0.25 * h * a[j, 1], 0.0, 0.0, 0.0, 0.25 * h * a[j, 2])
    damp = (0.5 * a[j, 7], 0.0, 0.0, 0.0, 0.5 * a[j, 8], 0.0, 0.0, 0.0, 0.5 * a[j, 9])
    return add9(matmul(dexp_inv(th0), matmul(stiff, transpose(dexp_inv(th1)))), damp)


@sweep
def middle_forces(p, there, q, v, tau):
    """Add the forces of balls and of translations at one end of the step to tau.

    q, there (nq,): the user's coordinates at this end and at the other one. Positions of free joints in q become means.
    """
    for j in range(p.ball.shape[0]):
        theta, other = ball_angles(p, j, q, there)
        ball_force(p, j, theta, scale3(0.5, add3(theta, other)), v, tau)
    for j in range(p.free.shape[0]):
        for k in range(p.free[j, 0], p.free[j, 0] + 3):
            st1(q, k, 0.5 * (ld1(q, k) + ld1(there, k)))
    free_forces(p, q, v, tau)


# --- translation of free joints -------------------------------------------------------------------------------------
@kernel
def between(N, p0, p1):
    """L0^T N L1 with L = [-p^, 1]: what a force N dp1 at p0 does, by the motion of the body at p1."""
    by_turn, arm = matmul(N, spread(0.0, scale3(-1.0, p1))), spread(0.0, p0)
    return (matmul(arm, by_turn), matmul(arm, N), by_turn, N)


@kernel
def minus(M):
    """The opposite block."""
    return (scale9(-1.0, M[0]), scale9(-1.0, M[1]), scale9(-1.0, M[2]), scale9(-1.0, M[3]))


@kernel
def add_block_to(D, i, M):
    """Add a block to the diagonal."""
    store_block(D, i, add_blocks(load_block(D, i), M))


@optional(None)
def couple(plan, E, D, i, j, M):
    """Add a block between two bodies."""
    add_to(plan, E, D, i, j, M)


@kernel
def columns3(S, d, k):
    """The three parts from column k on of the axes from d on, side by side: child axes of a ball, or parent axes."""
    return (
        ld(S, d, k), ld(S, d + 1, k), ld(S, d + 2, k),
        ld(S, d, k + 1), ld(S, d + 1, k + 1), ld(S, d + 2, k + 1),
        ld(S, d, k + 2), ld(S, d + 1, k + 2), ld(S, d + 2, k + 2),
    )  # fmt: skip


@kernel
def free_block(system, m, j, B, h):
    """M of the spring and damper j in the translation of free joint m."""
    d, a, c = system.coordinates.free[m, 1], system.passive.free_data, offset_of(system.coordinates, m)
    i = system.tree.rates[d + 3, 0]
    P0, P1, R0, R1 = columns3(B.S0, d, 3), columns3(B.S1, d, 3), columns3(B.S0, d + 3, 0), columns3(B.S1, d + 3, 0)
    stiff = (0.25 * h * a[j, 0], 0.0, 0.0, 0.0, 0.25 * h * a[j, 1], 0.0, 0.0, 0.0, 0.25 * h * a[j, 2])
    damp = (0.5 * a[j, 6], 0.0, 0.0, 0.0, 0.5 * a[j, 7], 0.0, 0.0, 0.0, 0.5 * a[j, 8])
    # a damper acts along child axes at k
    N = add9(matmul(P0, stiff), matmul(R0, matmul(damp, matmul(transpose(R0), P0))))
    z0, z1 = sub3(ld3(B.P0, i, 9), matvec(R0, c)), sub3(ld3(B.P1, i, 9), matvec(R1, c))
    return between(matmul(N, transpose(P1)), z0, z1)


@sweep
def free_blocks(system, plan, B, E, h):
    """Derivatives of springs and dampers in the translation of free joints, on the blocks of both bodies.

    The coordinates know nothing of gaps rho of the joint, so what the blocks make of them is taken off B.W.
    """
    rows, free, p = system.tree.rows, system.coordinates.free, system.passive
    for j in range(p.free.shape[0]):
        for m in range(free.shape[0]):
            if system.coordinates.v[free[m, 1]] == p.free[j, 1]:
                M = free_block(system, m, j, B, h)
                i = system.tree.rates[free[m, 1] + 3, 0]
                # the ball and three translations
                k, rho = rows[i, PARENT], ld6(B.rho, i, 0)
                for _ in range(3):
                    k, rho = rows[k, PARENT], add6(rho, ld6(B.rho, k, 0))
                off = times(M, rho)
                add_block_to(B.D, i, M)
                st6(B.W, i, 0, axpy6(-1.0, off, ld6(B.W, i, 0)))
                if k > 0:
                    add_block_to(B.D, k, M)
                    st6(B.W, k, 0, add6(off, ld6(B.W, k, 0)))
                    couple(plan, E, B.D, i, k, minus(M))
                    couple(plan, E, B.D, k, i, minus(M))
