"""Hermite-Simpson collocation of (q, v) as a first-order system: steps, Newton with dense matrices, rollouts.

Around the start of a step every row has local coordinates xi with xi = 0 at the start: the displacement of a screw, or
for a ball the rotation vector of exp(xi) behind the start (child side). With g = xidot the rates of xi (g = u for a
screw, g = dexp_right(xi)^-1 u for a ball) and a = udot the accelerations, at the points 0, m (middle) and 1 (end):

    xi_m = xi_1 / 2 + h/8 (g_0 - g_1)          u_m = (u_0 + u_1) / 2 + h/8 (a_0 - a_1)                  (1) Hermite
    rx = xi_1 - h/6 (g_0 + 4 g_m + g_1)        ru = u_1 - u_0 - h/6 (a_0 + 4 a_m + a_1)                 (2) Simpson
    rd_m, rd_1 = inverse dynamics(x, u, a) - forces                                                     (3)

The explicit form has unknowns xi_1, u_1 and takes a from forward dynamics; its matrix needs M^-1 times derivatives.
The implicit form keeps a_m, a_1 as further unknowns with the rows (3) and needs no inverse of M; what is linear in
them is eliminated first. a_0 has a row of its own, which is solved before. Both solve a dense 2n x 2n system: O(n^3).

    Gx, Gu  (nu, 3)   dg / dxi and dg / du: one number for a screw, a 3x3 block of rows d..d+2 for a ball
    E       (nu, 3)   displacement in child axes by xi: 1, or dexp_right(xi), in the same form
    H       (nu, nu)  mass matrix      Kx, Ku  (nu, nu)  derivatives of (3) by xi and u
Derivatives: Carpentier and Mansard 2018, see ``tree/derivatives.py``. The method is Lobatto IIIA with three stages,
order 4 (Hairer, Norsett and Wanner 1993, II.7).
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import acceleration
from leastaction.forces.bodies import body_forces
from leastaction.forces.joints import ball_stiffness, joint_forces
from leastaction.jit.calls import call_law
from leastaction.jit.decorators import memory, sweep
from leastaction.solve.dense import cholesky, lu_factor, lu_solve
from leastaction.spatial._source.so3 import dexp_inv_derivative, dexp_right, dexp_right_inv, hat
from leastaction.spatial._source.vector import matmul
from leastaction.tree.arrays import copy
from leastaction.tree.blocks import (
    add_block,
    add_dense_block,
    block_inverse,
    block_product,
    block_times,
    cholesky_solve_rows,
    scale_block,
    set_block,
)
from leastaction.tree.composite import mass_matrix, subtree_inertias
from leastaction.tree.coordinates import forces_in, free_rotation, get3, positions_out, rate_of, rates_out
from leastaction.tree.derivatives import inverse_dynamics_derivatives, subtree_bias
from leastaction.tree.kinematics import add_armature, inward, outward
from leastaction.tree.layout import BALL, IU, KIND, Floats, Ints
from leastaction.tree.retraction import local_rates, retract
from leastaction.tree.splines import spline_derivatives

# A rotation of 270 degrees in one step is a failed step.
FARTHEST = 4.71


class Point(NamedTuple):
    """One point of a step; see the symbol table of this file. r (nu,) is row (3)."""

    x: Floats
    xi: Floats
    u: Floats
    g: Floats
    a: Floats
    r: Floats
    Gx: Floats
    Gu: Floats
    E: Floats
    H: Floats
    Kx: Floats
    Ku: Floats


class StepWork(NamedTuple):
    """Scratch memory of one step.

    rx, ru: rows (2). J (2 nu, 2 nu), swaps, y: the dense system. b0..b5 (nu, 3): blocks. A, L (nu, nu): scratch.
    weight (nu,): inverse size of rows (3). old (4, nu): xi_1, u_1, a_m, a_1 before a step of Newton.
    B, T, m, tau: scratch of the derivatives.
    """

    rx: Floats
    ru: Floats
    J: Floats
    swaps: Ints
    y: Floats
    b0: Floats
    b1: Floats
    b2: Floats
    b3: Floats
    b4: Floats
    b5: Floats
    A: Floats
    L: Floats
    weight: Floats
    old: Floats
    B: Floats
    T: Floats
    m: Floats
    tau: Floats


@memory
def make_point(nx, nu):
    """Tables of one point."""
    return Point(
        np.zeros(nx), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros((nu, 3)),
        np.zeros((nu, 3)), np.zeros((nu, 3)), np.zeros((nu, nu)), np.zeros((nu, nu)), np.zeros((nu, nu)),
    )  # fmt: skip


@memory
def make_middle_work(tree):
    """Scratch memory of a step."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    return StepWork(
        np.zeros(nu), np.zeros(nu), np.zeros((2 * nu, 2 * nu)), np.zeros(2 * nu, np.int64), np.zeros(2 * nu),
        np.zeros((nu, 3)), np.zeros((nu, 3)), np.zeros((nu, 3)), np.zeros((nu, 3)), np.zeros((nu, 3)),
        np.zeros((nu, 3)), np.zeros((nu, nu)), np.zeros((nu, nu)), np.zeros(nu), np.zeros((4, nu)),
        np.zeros((n, 36)), np.zeros((nu, 18)), np.zeros(n), np.zeros(nu),
    )  # fmt: skip


# --- the dynamics at a point ----------------------------------------------------------------------------------------
@sweep
def chart(tree, point):
    """Gx, Gu and E of a point."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            z, u = get3(point.xi, d), get3(point.u, d)
            back, into, along = dexp_inv_derivative((-z[0], -z[1], -z[2]), u), dexp_right_inv(z), dexp_right(z)
            for r in range(3):
                for c in range(3):
                    point.Gx[d + r, c] = -back[3 * r + c]
                    point.Gu[d + r, c] = into[3 * r + c]
                    point.E[d + r, c] = along[3 * r + c]
        else:
            point.Gx[d, 0] = 0.0
            point.Gu[d, 0] = 1.0
            point.E[d, 0] = 1.0


@sweep
def take_off_joint_derivatives(system, x, control, f, Kx, Ku):
    """Take the derivatives of the joint forces off Kx and Ku; f.q and f.v are the user's state.

    Springs and dampers of a free joint's translation count along parent axes only.
    """
    p, c = system.passive, system.coordinates
    for j in range(p.screw.shape[0]):
        d = rate_of(c, p.screw[j, 1])
        Kx[d, d] += p.spring[j, 0]
        Ku[d, d] += p.spring[j, 2]
        if p.law[j, 3] != 0:
            Kx[d, d] -= call_law(p.law[j, 3], f.q[p.screw[j, 0]])
        if p.law[j, 4] != 0:
            Ku[d, d] -= call_law(p.law[j, 4], f.v[p.screw[j, 1]])
    for j in range(p.ball.shape[0]):
        d = rate_of(c, p.ball[j, 1])
        K = ball_stiffness(p, j, f.q)
        for r in range(3):
            Ku[d + r, d + r] += p.ball_data[j, 7 + r]
            for e in range(3):
                Kx[d + r, d + e] -= K[3 * r + e]
    for j in range(p.free.shape[0]):
        for e in range(3):
            d = rate_of(c, p.free[j, 1] + e)
            Kx[d, d] += p.free_data[j, e]
            Ku[d, d] += p.free_data[j, 6 + e]
    # a free joint turns the user's force with its body
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        push = (control[c.v[d]], control[c.v[d + 1]], control[c.v[d + 2]])
        K = matmul(free_rotation(x, c.free[j, 0]), hat(push))
        for r in range(3):
            for e in range(3):
                Kx[d + r, d + 3 + e] += K[3 * r + e]


@sweep
def dynamics_rows(system, t, point, control, f, w):
    """Row (3) of a point: inverse dynamics minus forces. Leaves what ``point_derivatives`` needs in f."""
    tree = system.tree
    positions_out(system.coordinates, point.x, f.q)
    rates_out(system.coordinates, point.x, point.u, f.v)
    copy(control, f.tau)
    joint_forces(system.passive, f.q, f.v, f.tau)
    forces_in(system.coordinates, point.x, f.tau, f.f)
    outward(tree, point.x, point.u, point.a, f.P, f.S, f.M, f.V, f.F)
    body_forces(system.forces, t, f.P, f.V, f.F, f.given, f.result)
    inward(tree, f.S, f.F, w.tau)
    add_armature(tree, point.a, w.tau)
    for d in range(w.tau.size):
        point.r[d] = w.tau[d] - f.f[d]


@sweep
def point_derivatives(system, t, point, control, f, w):
    """H, Kx (by displacements in child axes) and Ku of a point; forces on bodies count as fixed to them."""
    tree, nu = system.tree, w.tau.size
    dynamics_rows(system, t, point, control, f, w)
    subtree_bias(tree, point.x, f.M, f.V, w.B)
    subtree_inertias(tree, f.M, w.m)
    for i in range(nu):
        for j in range(nu):
            point.H[i, j] = 0.0
            point.Kx[i, j] = 0.0
            point.Ku[i, j] = 0.0
    mass_matrix(tree, f.S, f.M, w.m, point.H)
    inverse_dynamics_derivatives(tree, f.S, f.M, w.m, f.V, f.F, w.B, w.T, point.Kx, point.Ku)
    spline_derivatives(
        tree.splines, tree, point.x, point.u, point.a, f.P, f.S, f.M, w.m, f.V, f.F, w.B, w.T, point.Kx, point.Ku
    )
    take_off_joint_derivatives(system, point.x, control, f, point.Kx, point.Ku)
    chart(tree, point)


# --- residual -------------------------------------------------------------------------------------------------------
@sweep
def evaluate_middle(system, implicit, t, h, x0, u0, a0, middle, end, control, f, w):
    """Rows (2), and (3) in the implicit form, at xi_1, u_1 (and a_m, a_1). False if a ball turns too far."""
    tree, nu = system.tree, u0.size
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            z = get3(end.xi, d)
            if not z[0] * z[0] + z[1] * z[1] + z[2] * z[2] < FARTHEST * FARTHEST:
                return False
    # the end, then the middle by (1)
    retract(tree, x0, end.xi, end.x)
    local_rates(tree, end.xi, end.u, end.g)
    if implicit:
        dynamics_rows(system, t + h, end, control, f, w)
    else:
        acceleration(system, t + h, end.x, end.u, control, f, end.a)
    for d in range(nu):
        middle.xi[d] = 0.5 * end.xi[d] + h / 8.0 * (u0[d] - end.g[d])
        middle.u[d] = 0.5 * (u0[d] + end.u[d]) + h / 8.0 * (a0[d] - end.a[d])
    retract(tree, x0, middle.xi, middle.x)
    local_rates(tree, middle.xi, middle.u, middle.g)
    if implicit:
        dynamics_rows(system, t + 0.5 * h, middle, control, f, w)
    else:
        acceleration(system, t + 0.5 * h, middle.x, middle.u, control, f, middle.a)
    # Simpson's rule (2); g_0 = u_0
    for d in range(nu):
        w.rx[d] = end.xi[d] - h / 6.0 * (u0[d] + 4.0 * middle.g[d] + end.g[d])
        w.ru[d] = end.u[d] - u0[d] - h / 6.0 * (a0[d] + 4.0 * middle.a[d] + end.a[d])
    return True


# --- Newton's direction ---------------------------------------------------------------------------------------------
@sweep
def explicit_system(tree, h, middle, end, w):
    """J and y = -(rx, ru) of the explicit form by xi_1, u_1. False if the mass matrix is singular."""
    nu = w.rx.size
    # accelerations by xi and u: A = -H^-1 K, kept in Kx and Ku
    for point in (middle, end):
        for i in range(nu):
            for j in range(nu):
                w.A[i, j] = 0.0
        add_dense_block(tree, -1.0, point.Kx, point.E, w.A)
        for i in range(nu):
            for j in range(nu):
                point.Kx[i, j] = w.A[i, j]
                point.Ku[i, j] = -point.Ku[i, j]
        if not cholesky(point.H, w.L):
            return False
        cholesky_solve_rows(w.L, point.Kx)
        cholesky_solve_rows(w.L, point.Ku)
    # dxi_m = P dxi_1 + Q du_1, du_m = R dxi_1 + S du_1
    P, Q = w.b0, w.b1
    set_block(tree, 0.5, P)
    add_block(-h / 8.0, end.Gx, P)
    scale_block(-h / 8.0, end.Gu, Q)
    c = h / 6.0
    J, Amx, Amu, A1x, A1u = w.J, middle.Kx, middle.Ku, end.Kx, end.Ku
    # rows of ru: -c (4 (Amx P + Amu R) + A1x) and 1 - c (4 (Amx Q + Amu S) + A1u), R = -h/8 A1x, S = 1/2 - h/8 A1u
    for i in range(nu):
        for j in range(2 * nu):
            J[i, j] = 0.0
            J[nu + i, j] = 0.0
        for j in range(nu):
            J[nu + i, j] = -c * A1x[i, j]
            J[nu + i, nu + j] = -c * (A1u[i, j] + 2.0 * Amu[i, j])
        J[nu + i, nu + i] += 1.0
        e = c * 4.0 * h / 8.0
        for k in range(nu):
            b = e * Amu[i, k]
            for j in range(nu):
                J[nu + i, j] += b * A1x[k, j]
                J[nu + i, nu + j] += b * A1u[k, j]
    add_dense_block(tree, -4.0 * c, Amx, P, J[nu:, :nu])
    add_dense_block(tree, -4.0 * c, Amx, Q, J[nu:, nu:])
    # rows of rx: 1 - c (4 (Gmx P + Gmu R) + G1x) and -c (4 (Gmx Q + Gmu S) + G1u)
    position_blocks(tree, c, middle, end, w)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        size = 3 if tree.rows[i, KIND] == BALL else 1
        for r in range(size):
            for k in range(size):
                J[d + r, d + k] += w.b2[d + r, k]
                J[d + r, nu + d + k] -= w.b3[d + r, k] + 2.0 * c * middle.Gu[d + r, k]
                b = c * 0.5 * h * middle.Gu[d + r, k]
                for j in range(nu):
                    J[d + r, j] += b * A1x[d + k, j]
                    J[d + r, nu + j] += b * A1u[d + k, j]
    for d in range(nu):
        w.y[d] = -w.rx[d]
        w.y[nu + d] = -w.ru[d]
    return True


@sweep
def position_blocks(tree, c, middle, end, w):
    """b2 = 1 - c (4 Gmx P + G1x) and b3 = c (4 Gmx Q + G1u), with P, Q in b0, b1."""
    block_product(tree, middle.Gx, w.b0, w.b4)
    set_block(tree, 1.0, w.b2)
    add_block(-4.0 * c, w.b4, w.b2)
    add_block(-c, end.Gx, w.b2)
    block_product(tree, middle.Gx, w.b1, w.b4)
    scale_block(4.0 * c, w.b4, w.b3)
    add_block(c, end.Gu, w.b3)


@sweep
def implicit_system(tree, h, middle, end, w):
    """J and y of the implicit form by a_m, a_1; w.b2, w.b3 and w.rx become what ``implicit_rest`` needs.

    du_1 = h/6 (4 da_m + da_1) - ru,  du_m = h/3 da_m - h/24 da_1 - ru/2,  and with blocks X, Y
    dxi_1 = X_m da_m + X_1 da_1 - x_c,  dxi_m = Y_m da_m + Y_1 da_1 - y_c.
    """
    nu, c, J = w.rx.size, h / 6.0, w.J
    P, Q = w.b0, w.b1
    set_block(tree, 0.5, P)
    add_block(-h / 8.0, end.Gx, P)
    scale_block(-h / 8.0, end.Gu, Q)
    position_blocks(tree, c, middle, end, w)
    # dxi_1 = N1 du_1 + N2 du_m - W^-1 rx:  N1 = W^-1 b3 in b5, N2 = W^-1 4c Gmu in b3
    block_inverse(tree, w.b2, w.b4)
    block_product(tree, w.b4, w.b3, w.b5)
    block_product(tree, w.b4, middle.Gu, w.b2)
    scale_block(4.0 * c, w.b2, w.b3)
    # x_c = W^-1 rx + (N1 + N2/2) ru, kept in rx; y_c = P x_c + Q ru
    block_times(tree, 1.0, w.b4, w.rx, w.tau)
    block_times(tree, 1.0, w.b5, w.ru, w.rx)
    for d in range(nu):
        w.tau[d] += w.rx[d]
    block_times(tree, 0.5, w.b3, w.ru, w.rx)
    for d in range(nu):
        w.rx[d] += w.tau[d]
    # X_m = 2h/3 N1 + h/3 N2 in b2, X_1 = h/6 N1 - h/24 N2 in b3
    scale_block(2.0 * h / 3.0, w.b5, w.b2)
    add_block(h / 3.0, w.b3, w.b2)
    scale_block(-h / 24.0, w.b3, w.b4)
    add_block(h / 6.0, w.b5, w.b4)
    scale_block(1.0, w.b4, w.b3)
    for i in range(nu):
        for j in range(nu):
            J[i, j] = middle.H[i, j] + h / 3.0 * middle.Ku[i, j]
            J[i, nu + j] = -h / 24.0 * middle.Ku[i, j]
            J[nu + i, j] = 2.0 * h / 3.0 * end.Ku[i, j]
            J[nu + i, nu + j] = end.H[i, j] + h / 6.0 * end.Ku[i, j]
    # rows (3) of the end: K1x E1 X
    block_product(tree, end.E, w.b2, w.b4)
    add_dense_block(tree, 1.0, end.Kx, w.b4, J[nu:, :nu])
    block_product(tree, end.E, w.b3, w.b4)
    add_dense_block(tree, 1.0, end.Kx, w.b4, J[nu:, nu:])
    # rows (3) of the middle: Kmx Em Y, Y_m = P X_m + 2h/3 Q, Y_1 = P X_1 + h/6 Q
    block_product(tree, P, w.b2, w.b4)
    add_block(2.0 * h / 3.0, Q, w.b4)
    block_product(tree, middle.E, w.b4, w.b5)
    add_dense_block(tree, 1.0, middle.Kx, w.b5, J[:nu, :nu])
    block_product(tree, P, w.b3, w.b4)
    add_block(h / 6.0, Q, w.b4)
    block_product(tree, middle.E, w.b4, w.b5)
    add_dense_block(tree, 1.0, middle.Kx, w.b5, J[:nu, nu:])
    # right-hand sides: -r_m + Kmx Em y_c + Kmu ru/2 and -r_1 + K1x E1 x_c + K1u ru
    block_times(tree, 1.0, end.E, w.rx, w.tau)
    for i in range(nu):
        s = -end.r[i]
        for j in range(nu):
            s += end.Kx[i, j] * w.tau[j] + end.Ku[i, j] * w.ru[j]
        w.y[nu + i] = s
    block_product(tree, middle.E, P, w.b4)
    block_times(tree, 1.0, w.b4, w.rx, w.tau)
    for i in range(nu):
        s = -middle.r[i]
        for j in range(nu):
            s += middle.Kx[i, j] * w.tau[j] + 0.5 * middle.Ku[i, j] * w.ru[j]
        w.y[i] = s
    block_product(tree, middle.E, Q, w.b4)
    block_times(tree, 1.0, w.b4, w.ru, w.tau)
    for i in range(nu):
        for j in range(nu):
            w.y[i] += middle.Kx[i, j] * w.tau[j]


@sweep
def implicit_rest(tree, h, w):
    """From y = (da_m, da_1): w.rx = dxi_1 and w.ru = du_1."""
    nu = w.rx.size
    block_times(tree, 1.0, w.b2, w.y[:nu], w.tau)
    for d in range(nu):
        w.rx[d] = w.tau[d] - w.rx[d]
    block_times(tree, 1.0, w.b3, w.y[nu:], w.tau)
    for d in range(nu):
        w.rx[d] += w.tau[d]
        w.ru[d] = h / 6.0 * (4.0 * w.y[d] + w.y[nu + d]) - w.ru[d]


@sweep
def middle_direction(system, implicit, t, h, middle, end, control, f, w):
    """Newton's direction from the present point: w.y, and (w.b4, w.b5)[:, 0] = (dxi_1, du_1) in the implicit form."""
    point_derivatives(system, t + 0.5 * h, middle, control, f, w)
    point_derivatives(system, t + h, end, control, f, w)
    if implicit:
        implicit_system(system.tree, h, middle, end, w)
    elif not explicit_system(system.tree, h, middle, end, w):
        return False
    if not lu_factor(w.J, w.swaps):
        return False
    lu_solve(w.J, w.swaps, w.y)
    if implicit:
        implicit_rest(system.tree, h, w)
        for d in range(w.rx.size):
            w.b4[d, 0] = w.rx[d]
            w.b5[d, 0] = w.ru[d]
    return True
