"""One stage of an implicit step on the reduced equations of motion: residual, exact Newton matrix, Newton's method.

Inside a step every row has coordinates xi (``tree.charts``) with rates u = E xidot. Every stage of BDF1, BDF2 and
SDIRK2 has the form, with known xih, uh and gh = gamma h (Sueda 2021, eqs. 3.64, 3.69, 3.74, 3.80),

    u = E(xi) y / gh,  y = xi - xih            a = (u - uh) / gh                                        (1)
    r = inverse dynamics(x(xi), u, a) - forces(t, x, u) = 0                                             (2)

so the only unknown is xi. As a matrix of gh r by xi / gh, with U = d(E y)/dxi + E:

    H = (M + gh Ku) U + gh^2 Kx E                                                                       (3)

    M    (nu, nu)  mass matrix       Kx, Ku  (nu, nu)  derivatives of (2) by displacements in child axes, and by rates

For screws E = U = 1, and (3) is the paper's H = M + (dM/dq) dq - gh D - gh^2 K. For balls the paper differentiates the
rates of the chart; here a is the rate of u, the angular velocity in child axes, so that no second derivative of the
chart is needed.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.forces.bodies import body_forces
from leastaction.forces.columns import add_body_derivatives, add_joint_derivatives
from leastaction.forces.joints import joint_forces
from leastaction.implicit.loops import (
    loop_forces,
    loop_keep,
    loop_matrix,
    loop_move,
    loop_reset,
    loop_scales,
    loop_sizes,
    loop_step,
    rates_in_loops,
)
from leastaction.jit.decorators import memory, sweep
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.tree.arrays import copy
from leastaction.tree.blocks import add_dense_block, block_inverse, block_times
from leastaction.tree.charts import chart_blocks, place_coordinates
from leastaction.tree.composite import mass_matrix, subtree_inertias
from leastaction.tree.coordinates import forces_in, positions_out, rates_out
from leastaction.tree.derivatives import inverse_dynamics_derivatives, subtree_bias
from leastaction.tree.kinematics import add_armature, arm_of, inward, outward
from leastaction.tree.layout import BALL, IU, KIND, MASS, PRISMATIC, Floats, Ints, System
from leastaction.tree.splines import spline_derivatives

# Relative residual below which a descent that stops is put down to rounding.
STALL = 1.0e-9


class Stage(NamedTuple):
    """Tables of one stage; see the symbol table of this file.

    x (nx,); xi, y, u, a, r, tau (nu,); E, U (nu, 3); M, Kx, Ku, H (nu, nu) with H factorised by ``stage_direction``;
    swaps (nu,); step, old (nu,) Newton's direction and the iterate before; B, T, m scratch of the derivatives;
    b0, b1 (nu, 3), v0, v1 (nu,) scratch.
    """

    x: Floats
    xi: Floats
    y: Floats
    u: Floats
    a: Floats
    r: Floats
    tau: Floats
    E: Floats
    U: Floats
    M: Floats
    Kx: Floats
    Ku: Floats
    H: Floats
    swaps: Ints
    step: Floats
    old: Floats
    B: Floats
    T: Floats
    m: Floats
    b0: Floats
    b1: Floats
    v0: Floats
    v1: Floats


class Known(NamedTuple):
    """What a stage starts from: equation (1), the end t of the stage, x0 at the start of the step, the user's control.

    chart (n+1,) as in ``tree.charts``.
    """

    system: System
    chart: Ints
    t: float
    gh: float
    x0: Floats
    xih: Floats
    uh: Floats
    control: Floats


class Solver(NamedTuple):
    """Tolerance relative to the momenta, most iterations."""

    rtol: float
    most: int


@memory
def make_stage(tree, nx):
    """Tables of a stage."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    return Stage(
        np.zeros(nx), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu),
        np.zeros((nu, 3)), np.zeros((nu, 3)), np.zeros((nu, nu)), np.zeros((nu, nu)), np.zeros((nu, nu)),
        np.zeros((nu, nu)), np.zeros(nu, np.int64), np.zeros(nu), np.zeros(nu), np.zeros((n, 36)),
        np.zeros((nu, 18)), np.zeros(n), np.zeros((nu, 3)), np.zeros((nu, 3)), np.zeros(nu), np.zeros(nu),
    )  # fmt: skip


@sweep
def dynamics(system, t, control, s, f):
    """Residual (2) in s.r at s.x, s.u, s.a. Leaves in f what ``dynamics_derivatives`` needs."""
    tree = system.tree
    positions_out(system.coordinates, s.x, f.q)
    rates_out(system.coordinates, s.x, s.u, f.v)
    copy(control, f.tau)
    joint_forces(system.passive, f.q, f.v, f.tau)
    forces_in(system.coordinates, s.x, f.tau, f.f)
    outward(tree, s.x, s.u, s.a, f.P, f.S, f.M, f.V, f.F)
    body_forces(system.forces, t, f.P, f.V, f.F, f.given, f.result)
    inward(tree, f.S, f.F, s.tau)
    add_armature(tree, s.a, s.tau)
    for d in range(s.r.size):
        s.r[d] = s.tau[d] - f.f[d]


@sweep
def dynamics_derivatives(system, t, s, f, w, whole):
    """M, Kx and Ku after ``dynamics``; if not ``whole``, Kx and Ku of the laws of the forces alone."""
    tree, nu = system.tree, s.r.size
    subtree_bias(tree, s.x, f.M, f.V, s.B)
    subtree_inertias(tree, f.M, s.m)
    for i in range(nu):
        for j in range(nu):
            s.M[i, j] = 0.0
            s.Kx[i, j] = 0.0
            s.Ku[i, j] = 0.0
    mass_matrix(tree, f.S, f.M, s.m, s.M)
    inverse_dynamics_derivatives(tree, f.S, f.M, s.m, f.V, f.F, s.B, s.T, s.Kx, s.Ku)
    spline_derivatives(tree.splines, tree, s.x, s.u, s.a, f.P, f.S, f.M, s.m, f.V, f.F, s.B, s.T, s.Kx, s.Ku)
    if not whole:
        for i in range(nu):
            for j in range(nu):
                s.Kx[i, j] = 0.0
                s.Ku[i, j] = 0.0
    add_body_derivatives(system.forces, tree, t, f.P, f.V, f.S, s.T, f.given, f.result, w, s.Kx, s.Ku)
    add_joint_derivatives(system, s.x, s.u, f, w, s.Kx, s.Ku)


@sweep
def evaluate_stage(known, s, f, k):
    """Equations (1) and (2) at s.xi, with the constraints in k. False if a ball turned too far."""
    system, t, gh, uh, nu = known.system, known.t, known.gh, known.uh, known.uh.size
    tree = system.tree
    if not place_coordinates(tree, known.chart, known.x0, s.xi, s.x):
        return False
    for d in range(nu):
        s.y[d] = s.xi[d] - known.xih[d]
    chart_blocks(tree, known.chart, s.xi, s.y, s.E, s.U)
    block_times(tree, 1.0 / gh, s.E, s.y, s.u)
    rates_in_loops(system.loops, system, t, gh, s, f, k)
    for d in range(nu):
        s.a[d] = (s.u[d] - uh[d]) / gh
    dynamics(system, t, known.control, s, f)
    loop_forces(system.loops, gh, s, k)
    return True


@sweep
def matrix(tree, gh, s):
    """H of equation (3), after ``dynamics_derivatives``."""
    nu = s.r.size
    for i in range(nu):
        for j in range(nu):
            s.H[i, j] = 0.0
    add_dense_block(tree, 1.0, s.M, s.U, s.H)
    add_dense_block(tree, gh, s.Ku, s.U, s.H)
    add_dense_block(tree, gh * gh, s.Kx, s.E, s.H)


@sweep
def stage_direction(system, t, gh, s, f, w, k):
    """Newton's direction s.step of xi; s.H is factorised. False if it is singular."""
    dynamics_derivatives(system, t, s, f, w, True)
    matrix(system.tree, gh, s)
    loop_matrix(system.loops, system, t, gh, s, f, k)
    if not lu_factor(s.H, s.swaps):
        return False
    for d in range(s.r.size):
        s.step[d] = -gh * gh * s.r[d]
    lu_solve(s.H, s.swaps, s.step)
    return loop_step(system.loops, system.tree, gh, s, k)


@sweep
def sizes(tree, arm, gh, s):
    """Largest component and sum of squares of gh r; along slides, times an arm."""
    largest, squares = 0.0, 0.0
    for i in range(1, tree.rows.shape[0]):
        d, slide = tree.rows[i, IU], tree.rows[i, KIND] == PRISMATIC
        for j in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            e = gh * abs(s.r[j]) * (arm if slide else 1.0)
            largest, squares = max(largest, e), squares + e * e
    return largest, squares


@sweep
def scale_of(tree, gh, arm, uh, s, f):
    """Momentum that residuals are compared with, and the rounding of its terms; after ``stage_direction``."""
    nu, scale, reach, mass, stiff = uh.size, 0.0, 0.0, 0.0, 0.0
    for i in range(1, tree.rows.shape[0]):
        first, by = tree.rows[i, IU], arm if tree.rows[i, KIND] == PRISMATIC else 1.0
        for d in range(first, first + (3 if tree.rows[i, KIND] == BALL else 1)):
            p, k = 0.0, 0.0
            for j in range(1, tree.rows.shape[0]):
                other, far = tree.rows[j, IU], arm if tree.rows[j, KIND] == PRISMATIC else 1.0
                for e in range(other, other + (3 if tree.rows[j, KIND] == BALL else 1)):
                    p += s.M[d, e] * uh[e]
                    k += far * abs(s.Kx[d, e])
            stiff = max(stiff, by * k)
            scale = max(scale, by * (abs(p) + gh * (abs(s.tau[d]) + abs(f.f[d]))))
    for i in range(1, tree.rows.shape[0]):
        reach = max(reach, abs(f.P[i, 9]), abs(f.P[i, 10]), abs(f.P[i, 11]))
        mass += tree.const[i, MASS]
    g = abs(tree.gravity[0]) + abs(tree.gravity[1]) + abs(tree.gravity[2])
    weight = gh * g * mass * (arm + reach)
    # stiff forces feel the rounding of positions
    floor = 1.0e-15 * (scale + weight + gh * stiff * (1.0 + reach / arm))
    return scale + weight, floor * math.sqrt(float(nu)) + 1.0e-300


@sweep
def solve_stage(known, solver, s, f, w, k, count):
    """Newton with backtracking from the guess in s.xi. True if it converged; s then holds the solution.

    A loop of its own, not ``solve.newton``: what counts as zero is known only with the first matrix, so that no stage
    ends without a step, and at the tolerance backtracking ends as well.
    """
    system, t, gh, uh, rtol, most = known.system, known.t, known.gh, known.uh, solver.rtol, solver.most
    before, size_before, alpha, steps, limit, scale = math.inf, math.inf, 1.0, 0, 0.0, 0.0
    weight, widest, arm = 0.0, 0.0, arm_of(system.tree)
    while True:
        largest, squares, gap = math.inf, math.inf, math.inf
        if evaluate_stage(known, s, f, k):
            largest, squares = sizes(system.tree, arm, gh, s)
            gap, more = loop_sizes(system.loops, gh, s, f, k)
            if steps == 0:
                weight, widest = loop_scales(system.loops, system.tree, gh, rtol, s.x, f)
            squares += weight * more
        count[EVALUATIONS] += 1
        good = math.isfinite(squares)
        if good and steps > 0 and largest <= limit and gap <= widest:
            break
        if good and squares <= (1.0 - 1.0e-4 * alpha) * before:
            # a point to go on from
            if steps == most or not stage_direction(system, t, gh, s, f, w, k):
                break
            if steps == 0:
                scale, rounding = scale_of(system.tree, gh, arm, uh, s, f)
                limit = rtol * scale + rounding
            copy(s.xi, s.old)
            loop_keep(system.loops, k)
            before, size_before, alpha = squares, largest, 1.0
            steps += 1
        else:
            # backtrack, until only rounding can be to blame
            if steps == 0 or alpha < 1.0e-3 or (size_before <= limit and gap <= widest):
                break
            alpha *= 0.5
            count[CUTS] += 1
        for d in range(uh.size):
            s.xi[d] = s.old[d] + alpha * s.step[d]
        loop_move(system.loops, alpha, k)
    count[ITERATIONS] += steps
    # rounding may stop the descent above the tolerance; at the tolerance a last step may find nothing better
    small = largest <= STALL * scale and size_before <= STALL * scale and gap <= 100.0 * widest
    return good and steps > 0 and ((largest <= limit and gap <= widest) or small)


@sweep
def guess_stage(known, xi0, past, s, k):
    """First iterate: the acceleration ``past`` of the stage before goes on; no multipliers."""
    tree, gh, uh = known.system.tree, known.gh, known.uh
    loop_reset(known.system.loops, k)
    for d in range(uh.size):
        s.v0[d] = uh[d] + gh * past[d]
        s.y[d] = 0.0
    chart_blocks(tree, known.chart, xi0, s.y, s.E, s.U)
    block_inverse(tree, s.E, s.b0)
    block_times(tree, gh, s.b0, s.v0, s.xi)
    for d in range(uh.size):
        s.xi[d] += known.xih[d]
