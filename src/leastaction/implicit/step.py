"""Steps of BDF1, BDF2, SDIRK2 and the linearly implicit Euler method: whole rollouts in one call. See ``stage``.

With c = (1 - alpha) / alpha, alpha = 1 - 1/sqrt(2), xi_0 the coordinates of the start (zero in the exponential chart),
h the step, h_p the one before it and z = h / h_p:

    BDF1      gh = h          xih = xi_0                          uh = u_0                              (4)
    SDIRK2    gh = alpha h    xih = xi_0                          uh = u_0                 stage a      (5)
              gh = alpha h    xih = xi_0 + c (xi_a - xi_0)        uh = u_0 + c (u_a - u_0)              (6)
    BDF2      gh = h (1+z)/(1+2z)   xih = c_0 xi_0 + c_1 xi_p     uh = c_0 u_0 + c_1 u_p                (7)
              c_0 = (1+z)^2/(1+2z)  c_1 = -z^2/(1+2z)
    linearly  (M + h Ku + h^2 Kx) (u_1 - u_0) = -h r(x_0, u_0, a=0) - h^2 Kx u_0,   xi = h u_1          (8)

with Kx, Ku of (8) those of the laws of the forces alone: neither inertia nor the turning of forces with their bodies
(Sueda 2021, eqs. 3.64, 3.69, 3.74, 3.80 for equal steps, 2.84 for the last.) xi_p are the coordinates of the state
before the last in the chart of this step. BDF2 starts with a step of SDIRK2. Forces count at the end of a stage, in
(8) at the start of the step; the control is held over the step. Loops and constraints: see ``implicit.loops``; in (8)
they hold for the velocities at the start of the step.

    trace     x (steps+2, nx), u (steps+2, nu)  the state before the first, the first, and those after each step
              xi (steps, 2, nu)                 xi_a and xi of each step          chart (steps, n+1)
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import Work, make_work
from leastaction.forces.columns import Columns, make_columns
from leastaction.implicit.loops import StageLinks, loop_linear, loop_matrix, make_stage_loops, set_loops
from leastaction.implicit.stage import (
    Known,
    Solver,
    Stage,
    dynamics,
    dynamics_derivatives,
    evaluate_stage,
    guess_stage,
    make_stage,
    matrix,
    solve_stage,
)
from leastaction.jit.decorators import entry, kernel, memory, sweep
from leastaction.jit.status import DONE, LEFT_SPLINE, NOT_CONVERGED, NOT_FINITE, SINGULAR_CHART
from leastaction.solve.counts import ITERATIONS, LAST, MOST
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.solve.rollout import never_undone, rollout
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.charts import choose_charts, other_coordinates, place_coordinates, start_coordinates
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.layout import Floats, Ints, System
from leastaction.tree.splines import on_splines

# Methods.
BDF1, BDF2, SDIRK2, LINEAR = 0, 1, 2, 3

ALPHA = 1.0 - math.sqrt(0.5)

# Parts in which gh grows where Newton's method fails.
PARTS = 8


class Trace(NamedTuple):
    """What the adjoint needs of a rollout; see the symbol table of this file. All empty where nothing is kept."""

    x: Floats
    u: Floats
    xi: Floats
    chart: Ints


class State(NamedTuple):
    """What goes on from step to step.

    x (nx,), u (nu,); past_x, past_u, past_h (1,) and known (1,): the state before and the last step length; past (nu,)
    the last acceleration, chart (n+1,) the charts of the last step.
    """

    x: Floats
    u: Floats
    past_x: Floats
    past_u: Floats
    past_h: Floats
    known: Ints
    past: Floats
    chart: Ints


class Rule(NamedTuple):
    """Method, choice of charts, and the share of their gap by which loops close, see ``linear_step``."""

    method: int
    chart_mode: int
    chart_code: int
    share: float


class Scratch(NamedTuple):
    """v (5, nu): coordinates of the stages, xi_0, xih, uh; guess (nu,) and charts (n+1,) of the step.

    note (2,): row of a ball at a singular chart, steps that are in the trace.
    """

    v: Floats
    guess: Floats
    charts: Ints
    note: Ints


class Step(NamedTuple):
    """Everything of one step: s tables of a stage, f of forward dynamics, w of derivatives, links of loops."""

    system: System
    rule: Rule
    state: State
    solver: Solver
    t: float
    h: float
    control: Floats
    s: Stage
    f: Work
    w: Columns
    links: StageLinks | None
    scratch: Scratch
    count: Ints
    trace: Trace


@kernel
def two_step(h, past):
    """gh, c_0 and c_1 of BDF2, eq. (7)."""
    z = h / past
    e = 1.0 / (1.0 + 2.0 * z)
    return h * (1.0 + z) * e, (1.0 + z) * (1.0 + z) * e, -z * z * e


@kernel
def at(b, t, h, active):
    """The step at a time."""
    return Step(
        b.system, b.rule, b.state, b.solver, t, h, b.control, b.s, b.f, b.w, b.links, b.scratch, b.count, b.trace
    )


@sweep
def try_stage(known, step):
    """A stage from the past acceleration; if that fails, from none, and at last by continuation in gh.

    The acceleration it found is the next past.
    """
    solver, s, f, w, links, count = step.solver, step.s, step.f, step.w, step.links, step.count
    xi0, past = step.scratch.v[2], step.scratch.guess
    for _ in range(2):
        guess_stage(known, xi0, past, s, links)
        if solve_stage(known, solver, s, f, w, links, count):
            copy(s.a, past)
            return True
        for d in range(past.size):
            past[d] = 0.0
    # the solution for a small gh is near; it is followed to the full one
    for part in range(1, PARTS + 1):
        gh = known.gh * part / PARTS
        short = Known(known.system, known.chart, known.t, gh, known.x0, known.xih, known.uh, known.control)
        if part == 1:
            guess_stage(short, xi0, past, s, links)
        else:
            for d in range(past.size):
                s.xi[d] = known.xih[d] + (s.xi[d] - known.xih[d]) * part / (part - 1.0)
        if not solve_stage(short, solver, s, f, w, links, count):
            return False
    copy(s.a, past)
    return True


@sweep
def linear_step(step):
    """Equation (8): s.xi and s.u of the end. Loops close by a share of their gap at the start."""
    system, t, h, s, f, u0, nu = step.system, step.t, step.h, step.s, step.f, step.state.u, step.state.u.size
    copy(step.state.x, s.x)
    copy(u0, s.u)
    for d in range(nu):
        s.a[d] = 0.0
    dynamics(system, t, step.control[0], s, f)
    dynamics_derivatives(system, t, s, f, step.w, False)
    for i in range(nu):
        s.step[i] = -h * s.r[i]
        for j in range(nu):
            s.step[i] -= h * h * s.Kx[i, j] * u0[j]
            s.H[i, j] = s.M[i, j] + h * s.Ku[i, j] + h * h * s.Kx[i, j]
    if not lu_factor(s.H, s.swaps):
        return False
    lu_solve(s.H, s.swaps, s.step)
    if not loop_linear(system.loops, system, t, h, step.rule.share, u0, s, f, step.links):
        return False
    for d in range(nu):
        s.u[d] = u0[d] + s.step[d]
        s.xi[d] = h * s.u[d]
    return True


@sweep
def implicit_step(step):
    """One step; its end is in s.x, s.u, the coordinates of the stages in v[0] and v[1]."""
    tree, y, s, v, t, h = step.system.tree, step.state, step.s, step.scratch.v, step.t, step.h
    chart, method, x, u, nu = step.scratch.charts, step.rule.method, y.x, y.u, y.u.size
    xi0, xih, uh = v[2], v[3], v[4]
    start_coordinates(tree, chart, x, xi0)
    if method == LINEAR:
        good = linear_step(step)
        good = good and place_coordinates(tree, chart, x, s.xi, s.x)
        copy(s.xi, v[1])
        step.count[ITERATIONS] += 1
        return good
    double = method == SDIRK2 or (method == BDF2 and y.known[0] == 0)
    gh, c0, c1 = ALPHA * h if double else h, 1.0, 0.0
    copy(x, s.x)
    if method == BDF2 and not double:
        # equation (7): history is the state before
        gh, c0, c1 = two_step(h, y.past_h[0])
        other_coordinates(tree, chart, x, xi0, y.past_x, v[0])
        copy(y.past_u, s.u)
    for stage in range(0 if double else 1, 2):
        for d in range(nu):
            xih[d] = c0 * xi0[d] + c1 * v[0, d]
            uh[d] = c0 * u[d] + c1 * s.u[d]
        end = t + gh if stage == 0 else t + h
        if not try_stage(Known(step.system, chart, end, gh, x, xih, uh, step.control[0]), step):
            return False
        copy(s.xi, v[stage])
        # equations (5), (6): history is stage a
        c1 = (1.0 - ALPHA) / ALPHA
        c0 = 1.0 - c1
    return True


@kernel
def begin(step):
    """Charts of this step."""
    y, charts, rule = step.state, step.scratch.charts, step.rule
    copy(y.chart, charts)
    row = choose_charts(step.system.tree, rule.chart_mode, rule.chart_code, y.x, charts)
    step.scratch.note[0] = row
    return SINGULAR_CHART if row > 0 else DONE


@kernel
def solve(step):
    """The step from the last acceleration."""
    s, count = step.s, step.count
    copy(step.state.past, step.scratch.guess)
    before = count[ITERATIONS]
    good = implicit_step(step)
    count[LAST] = count[ITERATIONS] - before
    count[MOST] = max(count[MOST], count[LAST])
    if not good:
        return NOT_CONVERGED if all_finite(s.r) else NOT_FINITE
    if not on_splines(step.system.tree.splines, step.system.tree, s.x):
        return LEFT_SPLINE
    return DONE if all_finite(s.x) and all_finite(s.u) else NOT_FINITE


@kernel
def end(step):
    """Take the step, and keep it in the trace if there is one."""
    y, s, v, trace, k = step.state, step.s, step.scratch, step.trace, step.scratch.note[1]
    copy(y.x, y.past_x)
    copy(y.u, y.past_u)
    copy(s.x, y.x)
    copy(s.u, y.u)
    copy(v.guess, y.past)
    copy(v.charts, y.chart)
    y.past_h[0] = step.h
    y.known[0] = 1
    if trace.x.shape[0] > 0:
        copy(y.x, trace.x[k + 2])
        copy(y.u, trace.u[k + 2])
        copy(v.v[0], trace.xi[k, 0])
        copy(v.v[1], trace.xi[k, 1])
        copy(v.charts, trace.chart[k])
        v.note[1] = k + 1
    return DONE


@kernel
def see(step, t, q, v):
    """The user's state."""
    positions_out(step.system.coordinates, step.state.x, q)
    rates_out(step.system.coordinates, step.state.x, step.state.u, v)
    return True


roll = rollout(at=at, begin=begin, solve=solve, end=end, see=see, undo=never_undone)


@memory
def make_scratch(nu, rows):
    """Vectors of a step."""
    return Scratch(np.zeros((5, nu)), np.zeros(nu), np.zeros(rows, np.int64), np.zeros(2, np.int64))


@kernel
def roll_from(system, rule, state, solver, control, tables, scratch, count, trace, drive, out):
    """The rollout; the tuple is put together where references are not counted."""
    s, f, w, links = tables
    base = Step(system, rule, state, solver, 0.0, 0.0, control, s, f, w, links, scratch, count, trace)
    return roll(base, drive, out)


@entry
def implicit_rollout(system, rule, state, solver, drive, out, count, trace):
    """Steps of a rule, see ``solve.rollout``; state moves on in place.

    Returns (steps done, status, row of a ball at a singular chart).
    """
    nu, v = state.u.size, make_scratch(state.u.size, state.chart.size)
    f, s, w = make_work(system, state.x), make_stage(system.tree, state.x.size), make_columns(system)
    links = make_stage_loops(system.loops, system.constraints, system.tree)
    if trace.x.shape[0] > 0:
        copy(state.past_x, trace.x[0])
        copy(state.past_u, trace.u[0])
        copy(state.x, trace.x[1])
        copy(state.u, trace.u[1])
    tables = (s, f, w, links)
    done, status = roll_from(system, rule, state, solver, np.zeros((1, nu)), tables, v, count, trace, drive, out)
    return done, status, v.note[0]


class Probe(NamedTuple):
    """Residual r (nu,) of a stage and its matrix H (nu, nu); Kx, Ku (nu, nu) by displacements and rates."""

    r: Floats
    H: Floats
    Kx: Floats
    Ku: Floats


@entry
def stage_probe(known, xi, l, m, out):
    """A stage at given coordinates. False if a ball turned too far.

    l, m: multipliers of loops and constraints, scaled as in ``implicit.loops``; empty for a tree.
    """
    system, t, gh = known.system, known.t, known.gh
    f, s, w = make_work(system, known.x0), make_stage(system.tree, known.x0.size), make_columns(system)
    links = make_stage_loops(system.loops, system.constraints, system.tree)
    copy(xi, s.xi)
    set_loops(system.loops, links, l, m)
    good = evaluate_stage(known, s, f, links)
    dynamics_derivatives(system, t, s, f, w, True)
    matrix(system.tree, gh, s)
    loop_matrix(system.loops, system, t, gh, s, f, links)
    copy(s.r, out.r)
    for i in range(out.r.size):
        copy(s.H[i], out.H[i])
        copy(s.Kx[i], out.Kx[i])
        copy(s.Ku[i], out.Ku[i])
    return good
