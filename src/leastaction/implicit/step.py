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

from leastaction.dynamics.forward import make_work
from leastaction.forces.columns import make_columns
from leastaction.implicit.loops import loop_linear, loop_matrix, make_stage_loops, set_loops
from leastaction.implicit.stage import (
    dynamics,
    dynamics_derivatives,
    evaluate_stage,
    guess_stage,
    make_stage,
    matrix,
    solve_stage,
)
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import entry, kernel, sweep
from leastaction.jit.status import DONE, LEFT_SPLINE, NOT_CONVERGED, NOT_FINITE, SINGULAR_CHART
from leastaction.solve.clock import tick
from leastaction.solve.counts import ITERATIONS, LAST, MOST, TOTALS
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.charts import choose_charts, other_coordinates, place_coordinates, start_coordinates
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.layout import Floats, Ints
from leastaction.tree.splines import on_splines

# What a rollout returns besides the number of steps done.

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


@kernel
def two_step(h, past):
    """gh, c_0 and c_1 of BDF2, eq. (7)."""
    z = h / past
    e = 1.0 / (1.0 + 2.0 * z)
    return h * (1.0 + z) * e, (1.0 + z) * (1.0 + z) * e, -z * z * e


@sweep
def try_stage(system, chart, t, gh, x0, xi0, xih, uh, control, rtol, most, past, s, f, w, links, count):
    """A stage from the past acceleration; if that fails, from none, and at last by continuation in gh.

    The acceleration it found is the next past.
    """
    for _ in range(2):
        guess_stage(system, chart, gh, xi0, xih, uh, past, s, links)
        if solve_stage(system, chart, t, gh, x0, xih, uh, control, rtol, most, s, f, w, links, count):
            copy(s.a, past)
            return True
        for d in range(past.size):
            past[d] = 0.0
    # the solution for a small gh is near; it is followed to the full one
    for part in range(1, PARTS + 1):
        short = gh * part / PARTS
        if part == 1:
            guess_stage(system, chart, short, xi0, xih, uh, past, s, links)
        else:
            for d in range(uh.size):
                s.xi[d] = xih[d] + (s.xi[d] - xih[d]) * part / (part - 1.0)
        if not solve_stage(system, chart, t, short, x0, xih, uh, control, rtol, most, s, f, w, links, count):
            return False
    copy(s.a, past)
    return True


@sweep
def linear_step(system, t, h, share, x0, u0, control, s, f, w, links):
    """Equation (8): s.xi and s.u of the end. Loops close by ``share`` of their gap at the start."""
    nu = u0.size
    copy(x0, s.x)
    copy(u0, s.u)
    for d in range(nu):
        s.a[d] = 0.0
    dynamics(system, t, control, s, f)
    dynamics_derivatives(system, t, s, f, w, False)
    for i in range(nu):
        s.step[i] = -h * s.r[i]
        for j in range(nu):
            s.step[i] -= h * h * s.Kx[i, j] * u0[j]
            s.H[i, j] = s.M[i, j] + h * s.Ku[i, j] + h * h * s.Kx[i, j]
    if not lu_factor(s.H, s.swaps):
        return False
    lu_solve(s.H, s.swaps, s.step)
    if not loop_linear(system.loops, system, t, h, share, u0, s, f, links):
        return False
    for d in range(nu):
        s.u[d] = u0[d] + s.step[d]
        s.xi[d] = h * s.u[d]
    return True


@sweep
def implicit_step(
    system, method, chart, t, h, share, x, u, past_x, past_u, past_h, known, past, control, rtol, most, s, f, w, links,
    v, count,
):  # fmt: skip
    """One step from x, u; its end is in s.x, s.u, the coordinates of the stages in v[0] and v[1]."""
    tree, nu = system.tree, u.size
    xi0, xih, uh = v[2], v[3], v[4]
    start_coordinates(tree, chart, x, xi0)
    if method == LINEAR:
        good = linear_step(system, t, h, share, x, u, control, s, f, w, links) and place_coordinates(
            tree, chart, x, s.xi, s.x
        )
        copy(s.xi, v[1])
        count[ITERATIONS] += 1
        return good
    double = method == SDIRK2 or (method == BDF2 and known == 0)
    gh, c0, c1 = ALPHA * h if double else h, 1.0, 0.0
    copy(x, s.x)
    if method == BDF2 and not double:
        # equation (7): history is the state before
        gh, c0, c1 = two_step(h, past_h)
        other_coordinates(tree, chart, x, xi0, past_x, v[0])
        copy(past_u, s.u)
    for stage in range(0 if double else 1, 2):
        for d in range(nu):
            xih[d] = c0 * xi0[d] + c1 * v[0, d]
            uh[d] = c0 * u[d] + c1 * s.u[d]
        end = t + gh if stage == 0 else t + h
        if not try_stage(system, chart, end, gh, x, xi0, xih, uh, control, rtol, most, past, s, f, w, links, count):
            return False
        copy(s.xi, v[stage])
        # equations (5), (6): history is stage a
        c1 = (1.0 - ALPHA) / ALPHA
        c0 = 1.0 - c1
    return True


@entry
def implicit_rollout(
    system, method, chart_mode, chart_code, share, uniform, clock, k0, x, u, past_x, past_u, past_h, known, past, chart,
    steps, every, controls, address, rtol, most, out_q, out_v, count, trace,
):  # fmt: skip
    """Advance x, u in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    uniform and clock are those of ``tick``, share is that of ``linear_step``. past_x, past_u, past_h (1,) and known
    (1,) are the state before and the last step length, past (nu,) the last acceleration, chart (n+1,) the charts of the
    last step; count: see ``solve.counts``. Returns (steps done, status, row of a ball at a singular chart); after a
    failure all of them are those of the last good step.
    """
    tree, nu = system.tree, u.size
    f, s, w = make_work(system, x), make_stage(tree, x.size), make_columns(system)
    links = make_stage_loops(system.loops, system.constraints, tree)
    v, control, guess, charts = np.zeros((5, nu)), np.zeros(nu), np.zeros(nu), np.zeros(chart.size, np.int64)
    saved, kept = 0, trace.x.shape[0] > 0
    if kept:
        copy(past_x, trace.x[0])
        copy(past_u, trace.u[0])
        copy(x, trace.x[1])
        copy(u, trace.u[1])
    for k in range(steps):
        t, h = tick(uniform, clock, k0, k)
        # control and charts of this step
        if address != 0:
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control)
        elif controls.shape[0] > 0:
            copy(controls[k], control)
        copy(chart, charts)
        row = choose_charts(tree, chart_mode, chart_code, x, charts)
        if row > 0:
            return k, SINGULAR_CHART, row
        # step
        copy(past, guess)
        before = count[ITERATIONS]
        good = implicit_step(
            system, method, charts, t, h, share, x, u, past_x, past_u, past_h[0], known[0], guess, control, rtol, most,
            s, f, w, links, v, count,
        )  # fmt: skip
        count[LAST] = count[ITERATIONS] - before
        count[MOST] = max(count[MOST], count[LAST])
        if not good:
            return k, NOT_CONVERGED if all_finite(s.r) else NOT_FINITE, 0
        if not on_splines(tree.splines, tree, s.x):
            return k, LEFT_SPLINE, 0
        if not (all_finite(s.x) and all_finite(s.u)):
            return k, NOT_FINITE, 0
        copy(x, past_x)
        copy(u, past_u)
        copy(s.x, x)
        copy(s.u, u)
        copy(guess, past)
        copy(charts, chart)
        past_h[0] = h
        known[0] = 1
        if kept:
            copy(x, trace.x[k + 2])
            copy(u, trace.u[k + 2])
            copy(v[0], trace.xi[k, 0])
            copy(v[1], trace.xi[k, 1])
            copy(charts, trace.chart[k])
        if (k0 + k + 1) % every == 0:
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE, 0


@entry
def stage_probe(system, chart, t, gh, x0, xi, xih, uh, control, l, m, r, H, Kx, Ku):
    """Residual r (nu,) of a stage at given coordinates and its matrix H; Kx, Ku by displacements and rates.

    l, m: multipliers of loops and constraints, scaled as in ``implicit.loops``; empty for a tree.
    """
    f, s, w = make_work(system, x0), make_stage(system.tree, x0.size), make_columns(system)
    links = make_stage_loops(system.loops, system.constraints, system.tree)
    copy(xi, s.xi)
    set_loops(system.loops, links, l, m)
    return probe_stage(system, chart, t, gh, x0, xih, uh, control, s, f, w, links, r, H, Kx, Ku)


@sweep
def probe_stage(system, chart, t, gh, x0, xih, uh, control, s, f, w, links, r, H, Kx, Ku):
    """See ``stage_probe``."""
    good = evaluate_stage(system, chart, t, gh, x0, xih, uh, control, s, f, links)
    dynamics_derivatives(system, t, s, f, w, True)
    matrix(system.tree, gh, s)
    loop_matrix(system.loops, system, t, gh, s, f, links)
    copy(s.r, r)
    for i in range(r.size):
        copy(s.H[i], H[i])
        copy(s.Kx[i], Kx[i])
        copy(s.Ku[i], Ku[i])
    return good
