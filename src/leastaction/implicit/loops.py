"""Closed loops and equality constraints of the user in a stage of the implicit methods.

Positions and velocities both keep the constraints g = 0 (Gear, Gupta and Leimkuhler 1985): the stage of
``implicit.stage`` has, with J = dg/dx by displacements of the rows, forces J^T lam and drifts J^T mu,

    u = E y / gh - W J^T mu            a = (u - uh) / gh
    gh^2 (r - J^T lam) = 0             g = 0             gh J u = 0                                     (15)

mu is of the size of the error of the step. W makes rates of slides and of turns comparable: 1 for a turn, the square of
an arm of the body for a slide, so that a drift does not depend on the unit of length. With l = gh^2 lam, m = gh mu,
N = M + gh Ku, B(l) = d(J^T l)/dx and D = d(J u)/dx, Newton's step is

    (H - (N W B(m) + B(l)) E) dxi - J^T dl - N W J^T dm = -gh^2 (r - J^T lam)
    J E dxi = -g          (gh D E + J U - J W B(m) E) dxi - J W J^T dm = -gh J u                        (16)

The multipliers follow from a Schur complement whose rows are combined so that its diagonal blocks are about J H^-1 J^T
and J W J^T. Redundant rows are met by the proximal term alone, as in the other methods, relative to sizes of the rows:
``loops.rows.mobility``, and the same with W in place of the inverse inertia of the rates.
B and D come from the second derivatives C of the rows (``loops.curvatures``).

    J, D, Q, T (m, nu)   rows; D; rows of (16) by dxi         C      (m, 36 B B)  by row, B bodies each
    l, dl, old_l (m,)    and the same for m                   W      (6B, 6B)     scratch
    Yl, Ym     (m, nu)   columns H^-1 J^T and H^-1 N W J^T    Sc, LU (2m, 2m)
    measure    (nu,)     W                                    size, unit (2m,)    sizes, and one over their roots
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, memory, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9
from leastaction.loops.curvatures import bend, curvatures, row_changes
from leastaction.loops.nodes import LoopNodes, gap_of, make_loop_nodes, node_rows, row_size
from leastaction.loops.rows import RHO, SWEEPS, size_or_one
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.spatial._source.vector import add3, ang, cross, dot3, dot6, lin, matvec, sub3
from leastaction.tree.arrays import scalar_product
from leastaction.tree.blocks import add_dense_block
from leastaction.tree.kinematics import arm_of, kinematics, last_rate, velocities
from leastaction.tree.layout import BALL, COM, INERTIA, IU, IX, KIND, MASS, PARENT, PRISMATIC, Floats, Ints


class StageLinks(NamedTuple):
    """Tables of the constraints of one stage; see the symbol table of this file."""

    L: LoopNodes
    J: Floats
    D: Floats
    Q: Floats
    T: Floats
    C: Floats
    W: Floats
    X: Floats
    B1: Floats
    B2: Floats
    l: Floats
    m: Floats
    old_l: Floats
    old_m: Floats
    Yl: Floats
    Ym: Floats
    Sc: Floats
    LU: Floats
    pivot: Ints
    rhs: Floats
    rest: Floats
    x: Floats
    V: Floats
    F: Floats
    t: Floats
    given: Floats
    measure: Floats
    size: Floats
    unit: Floats


@memory
def measures(tree):
    """W (nu,): 1 for rates of turns, the square of an arm of the body for those of slides."""
    n, C, out = tree.rows.shape[0], tree.const, np.ones(tree.rates.shape[0])
    # of every row, or of the next one with mass that it carries
    arm = np.zeros(n)
    for i in range(n - 1, 0, -1):
        mass, p = C[i, MASS], tree.rows[i, PARENT]
        if mass > 0.0:
            moment = (C[i, INERTIA] + C[i, INERTIA + 3] + C[i, INERTIA + 5]) / 3.0
            away = C[i, COM] * C[i, COM] + C[i, COM + 1] * C[i, COM + 1] + C[i, COM + 2] * C[i, COM + 2]
            arm[i] = away if away > 0.01 * moment / mass else moment / mass
        if arm[p] == 0.0 and not C[p, MASS] > 0.0:
            arm[p] = arm[i]
        if tree.rows[i, KIND] == PRISMATIC and arm[i] > 0.0:
            out[tree.rows[i, IU]] = arm[i]
    return out


@optional(None, MEMORY_OPTIONS)
def make_stage_loops(loops, constraints, tree):
    """Tables; none for a tree."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    L = make_loop_nodes(loops, constraints, tree, 1)
    m, B = L.kind.size, L.ends.shape[1]
    return StageLinks(
        L, np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((m, 36 * B * B)),
        np.zeros((6 * B, 6 * B)), np.zeros((m, nu)), np.zeros((nu, nu)), np.zeros((nu, nu)), np.zeros(m), np.zeros(m),
        np.zeros(m), np.zeros(m), np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((2 * m, 2 * m)),
        np.zeros((2 * m, 2 * m)), np.zeros(2 * m, np.int64), np.zeros(2 * m), np.zeros(2 * m), np.zeros(2 * m),
        np.zeros((n, 6)), np.zeros((n, 6)), np.zeros(6 * B), np.zeros(18 * B), measures(tree), np.ones(2 * m),
        np.ones(2 * m),
    )  # fmt: skip


# --- rows and residuals ---------------------------------------------------------------------------------------------
@sweep
def stage_rows(system, t, x, f, k):
    """Gaps k.L.g[0] and rows k.J, from the coordinates, poses, axes and twists in f."""
    tree, L = system.tree, k.L
    node_rows(system, t, 1.0, x, f, L, 0)
    for r in range(L.kind.size):
        for d in range(k.J.shape[1]):
            k.J[r, d] = 0.0
        for e in range(L.ends.shape[1]):
            if L.ends[r, e] > 0:
                row, d = ld6(L.G, r, 6 * e), last_rate(tree, L.ends[r, e])
                while d >= 0:
                    k.J[r, d] += dot6(row, ld6(f.S, d, 0))
                    d = tree.rates[d, 1]


@sweep
def stage_sizes(tree, f, k):
    """k.size: of the rows at the poses f.P, for forces and for drifts."""
    L, m, C = k.L, k.l.size, tree.const
    for r in range(m):
        k.size[r] = L.size[r]
        total = 0.0
        for e in range(L.ends.shape[1]):
            i = L.ends[r, e]
            if i > 0:
                row, d = ld6(L.G, r, 6 * e), last_rate(tree, i)
                x = add3(ld3(f.P, i, 9), matvec(ld9(f.P, i, 0), (C[i, COM], C[i, COM + 1], C[i, COM + 2])))
                turn = sub3(ang(row), cross(x, lin(row)))
                while d >= 0:
                    S = ld6(f.S, d, 0)
                    v = add3(lin(S), cross(ang(S), x))
                    by = math.sqrt(dot3(turn, turn) * dot3(ang(S), ang(S)))
                    by += math.sqrt(dot3(lin(row), lin(row)) * dot3(v, v))
                    total += k.measure[d] * by * by
                    d = tree.rates[d, 1]
        k.size[m + r] = size_or_one(total)


@optional(None)
def rates_in_loops(loops, system, t, gh, s, f, k):
    """Rows at s.x, and s.u = E y / gh - W J^T mu."""
    kinematics(system.tree, s.x, f.P, f.S)
    velocities(system.tree, s.u, f.S, f.V)
    stage_rows(system, t, s.x, f, k)
    for r in range(k.m.size):
        for d in range(s.u.size):
            s.u[d] -= k.measure[d] * k.J[r, d] * k.m[r] / gh


@optional(None)
def loop_forces(loops, gh, s, k):
    """Take J^T lam off the residual."""
    for r in range(k.l.size):
        for d in range(s.r.size):
            s.r[d] -= k.J[r, d] * k.l[r] / (gh * gh)


@optional((0.0, 0.0))
def loop_sizes(loops, gh, s, f, k):
    """Largest gap of positions and of gh times their rates, as angles, and their sum of squares."""
    largest, squares = 0.0, 0.0
    for r in range(k.l.size):
        g, more = gap_of(k.L, 0, r, f.P)
        rate = 0.0
        for d in range(s.u.size):
            rate += k.J[r, d] * s.u[d]
        rate *= gh / row_size(k.L, r, r)
        largest = max(largest, more, abs(rate))
        squares += g * g + rate * rate
    return largest, squares


@optional((0.0, 0.0))
def loop_scales(loops, tree, gh, rtol, x, f):
    """Square of the momentum that closes a unit gap in one step, and the gap that counts as closed."""
    mass, reach, far, arm = 0.0, 0.0, 1.0, arm_of(tree)
    for i in range(1, tree.rows.shape[0]):
        mass += tree.const[i, MASS]
        reach = max(reach, abs(f.P[i, 9]), abs(f.P[i, 10]), abs(f.P[i, 11]))
        if tree.rows[i, KIND] != BALL and tree.rows[i, KIND] != PRISMATIC:
            far = max(far, abs(x[tree.rows[i, IX]]))
    push = mass * arm * arm / gh
    return push * push, rtol + 1.0e-15 * far * (1.0 + reach / arm)


@optional(None)
def loop_reset(loops, k):
    """No multipliers."""
    for r in range(k.l.size):
        k.l[r] = 0.0
        k.m[r] = 0.0


@optional(None)
def set_loops(loops, k, l, m):
    """Given multipliers, scaled."""
    for r in range(k.l.size):
        k.l[r] = l[r]
        k.m[r] = m[r]


@optional(None)
def loop_keep(loops, k):
    """Remember the multipliers."""
    for r in range(k.l.size):
        k.old_l[r] = k.l[r]
        k.old_m[r] = k.m[r]


@optional(None)
def loop_move(loops, alpha, k):
    """A part of the step of the multipliers."""
    m = k.l.size
    for r in range(m):
        k.l[r] = k.old_l[r] + alpha * k.x[r]
        k.m[r] = k.old_m[r] + alpha * k.x[m + r]


# --- Newton's step --------------------------------------------------------------------------------------------------
@optional(None)
def loop_matrix(loops, system, t, gh, s, f, k):
    """Take (N W B(m) + B(l)) E off s.H; k.B2 = W B(m), k.D stay."""
    nu = s.r.size
    curvatures(system, t, s.x, f, k)
    row_changes(system.tree, s.x, s.u, f, k)
    bend(system.tree, s.x, f, k, k.l, k.B1)
    bend(system.tree, s.x, f, k, k.m, k.B2)
    stage_sizes(system.tree, f, k)
    for i in range(nu):
        for j in range(nu):
            k.B2[i, j] *= k.measure[i]
    for i in range(nu):
        for j in range(nu):
            c = k.B1[i, j]
            for e in range(nu):
                c += (s.M[i, e] + gh * s.Ku[i, e]) * k.B2[e, j]
            k.B1[i, j] = c
    add_dense_block(system.tree, -1.0, k.B1, s.E, s.H)


@kernel
def measured(a, b, measure):
    """Scalar product in the metric W."""
    c = 0.0
    for d in range(a.size):
        c += a[d] * b[d] * measure[d]
    return c


@sweep
def proximal_pairs(k, n):
    """k.x from k.Sc x = k.rhs, both of size n, with a proximal term relative to k.size."""
    A, pivot = k.LU[:n, :n], k.pivot[:n]
    # rows and columns in units of their size, so that no pivot depends on them
    for i in range(n):
        k.unit[i] = 1.0 / math.sqrt(max(k.size[i], abs(k.Sc[i, i])))
    for i in range(n):
        k.x[i], k.rhs[i] = 0.0, k.unit[i] * k.rhs[i]
        for j in range(n):
            k.Sc[i, j] *= k.unit[i] * k.unit[j]
            A[i, j] = k.Sc[i, j]
        A[i, i] += RHO
    if not lu_factor(A, pivot):
        return False
    for _ in range(SWEEPS):
        for i in range(n):
            c = k.rhs[i]
            for j in range(n):
                c -= k.Sc[i, j] * k.x[j]
            k.rest[i] = c
        lu_solve(A, pivot, k.rest[:n])
        for i in range(n):
            k.x[i] += k.rest[i]
    for i in range(n):
        k.x[i] *= k.unit[i]
    return True


@optional(True)
def loop_step(loops, tree, gh, s, k):
    """Equations (16) after s.step = -H^-1 gh^2 r: s.step and k.x = (dl, dm). False if they cannot be solved."""
    m, nu = k.l.size, s.r.size
    # rows by dxi
    for r in range(m):
        for d in range(nu):
            c = gh * k.D[r, d]
            for e in range(nu):
                c -= k.J[r, e] * k.B2[e, d]
            k.X[r, d] = c
            k.Q[r, d] = 0.0
            k.T[r, d] = 0.0
    add_dense_block(tree, 1.0, k.X, s.E, k.Q)
    add_dense_block(tree, 1.0, k.J, s.U, k.Q)
    add_dense_block(tree, 1.0, k.J, s.E, k.T)
    # columns
    for c in range(m):
        for d in range(nu):
            y = 0.0
            for e in range(nu):
                y += (s.M[d, e] + gh * s.Ku[d, e]) * k.measure[e] * k.J[c, e]
            k.Ym[c, d] = y
            k.Yl[c, d] = k.J[c, d]
        lu_solve(s.H, s.swaps, k.Yl[c])
        lu_solve(s.H, s.swaps, k.Ym[c])
    for r in range(m):
        rate = gh * scalar_product(k.J[r], s.u)
        by = scalar_product(k.Q[r], s.step)
        k.rhs[r] = -rate - by
        k.rhs[m + r] = rate + by - k.L.g[0, r] - scalar_product(k.T[r], s.step)
        for c in range(m):
            own = measured(k.J[r], k.J[c], k.measure)
            ql, qm = scalar_product(k.Q[r], k.Yl[c]), scalar_product(k.Q[r], k.Ym[c]) - own
            k.Sc[r, c] = ql
            k.Sc[r, m + c] = qm
            k.Sc[m + r, c] = scalar_product(k.T[r], k.Yl[c]) - ql
            k.Sc[m + r, m + c] = scalar_product(k.T[r], k.Ym[c]) - qm
    if not proximal_pairs(k, 2 * m):
        return False
    for c in range(m):
        for d in range(nu):
            s.step[d] += k.x[c] * k.Yl[c, d] + k.x[m + c] * k.Ym[c, d]
    return True


@optional(True)
def loop_linear(loops, system, t, h, share, u0, s, f, k):
    """Velocity level: s.step plus forces so that J u_1 = -share g / h at the start; s.H is factorised."""
    m, nu = k.l.size, s.r.size
    stage_rows(system, t, s.x, f, k)
    for c in range(m):
        for d in range(nu):
            k.Yl[c, d] = k.J[c, d]
        lu_solve(s.H, s.swaps, k.Yl[c])
    for r in range(m):
        k.rhs[r] = -share * k.L.g[0, r] / h - scalar_product(k.J[r], u0) - scalar_product(k.J[r], s.step)
        for c in range(m):
            k.Sc[r, c] = scalar_product(k.J[r], k.Yl[c])
    stage_sizes(system.tree, f, k)
    if not proximal_pairs(k, m):
        return False
    for c in range(m):
        for d in range(nu):
            s.step[d] += k.x[c] * k.Yl[c, d]
    return True
