"""Adjoint of the steps of BDF1, BDF2 and SDIRK2: derivatives of a result by the states become those by all the rest.

With dx a displacement in child axes, a stage (1), (2) of ``implicit.stage`` varies as (``tree.charts`` has E, U and A)

    H dxi / gh^2 = -Kx A dx_0 + (Ku + M / gh) E dxih / gh + M duh / gh + T^-T dtau - r_p dp             (9)
    dx = A dx_0 + E dxi                     du = (U dxi - E dxih) / gh                                  (10)

so derivatives lx, lu of the result by (x, u) of the stage, and l by xi itself, go back by one transposed solve:

    H^T z / gh^2 = E^T lx + U^T lu / gh + l                                                             (11)
    by x_0:  A^T (lx - Kx^T z)     by xih:  E^T ((Ku + M / gh)^T z - lu) / gh     by uh:  M z / gh      (12)
    by tau:  T^-1 z                by p:    -r_p^T z

xih and uh depend on the states by equations (4) to (7). This is the adjoint method of Sueda 2021, section 3.5, with the
history rows of (3.103) as the chain rule gives them: the stage a of the first step of BDF2 is not left out, and it
is exact across a change of chart.

    lx, lu    (steps+2, nu)  derivatives by the states of a trace, in the order of the trace; grow on the way back
    record    x (steps, 2, nx); u, a, z (steps, 2, nu); t (steps, 2)  stage a (zero where there is none) and last stage
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import Work, make_work
from leastaction.forces.columns import Columns, make_columns
from leastaction.implicit.stage import Known, Stage, dynamics_derivatives, evaluate_stage, make_stage, matrix
from leastaction.implicit.step import ALPHA, BDF2, SDIRK2, Trace, two_step
from leastaction.jit.decorators import entry, sweep
from leastaction.solve.dense import lu_factor
from leastaction.tree.arrays import copy
from leastaction.tree.blocks import block_inverse, block_size, block_times
from leastaction.tree.charts import EXP, base_blocks, chart_blocks, other_coordinates, start_coordinates
from leastaction.tree.coordinates import rates_out
from leastaction.tree.layout import BALL, IU, KIND, Floats, System


class Record(NamedTuple):
    """Stages with their multipliers z, for derivatives by parameters; see the symbol table of this file."""

    x: Floats
    u: Floats
    a: Floats
    z: Floats
    t: Floats


@sweep
def lu_solve_transposed(A, pivot, b):
    """Solve A^T x = b in place with the factors of ``lu_factor``."""
    n = A.shape[0]
    for r in range(n):
        b[r] /= A[r, r]
        for e in range(r + 1, n):
            b[e] -= A[r, e] * b[r]
    for r in range(n - 1, -1, -1):
        for e in range(r):
            b[e] -= A[r, e] * b[r]
    for c in range(n - 1, -1, -1):
        b[c], b[pivot[c]] = b[pivot[c]], b[c]


@sweep
def add_transposed(tree, s, A, x, out):
    """out += s A^T x for blocks A; out is not x."""
    for i in range(1, tree.rows.shape[0]):
        d, n = tree.rows[i, IU], block_size(tree, i)
        for c in range(n):
            t = 0.0
            for k in range(n):
                t += A[d + k, c] * x[d + k]
            out[d + c] += s * t


class Pull(NamedTuple):
    """Multipliers (nu,) of a stage: lx, lu, l of its end, z of its residual, and what it hands to its start."""

    lx: Floats
    lu: Floats
    l: Floats
    z: Floats
    to_x0: Floats
    to_xih: Floats
    to_uh: Floats


class Back(NamedTuple):
    """Everything of the way back: lx, lu (steps+2, nu) and by_control (steps, nv) are written, v (11, nu) scratch."""

    system: System
    trace: Trace
    lx: Floats
    lu: Floats
    by_control: Floats
    record: Record
    control: Floats
    v: Floats
    s: Stage
    f: Work
    w: Columns


@sweep
def adjoint_stage(known, pull, s, f, w):
    """Equations (11) and (12) at s.xi; adds to ``to_x0`` and sets z, to_xih, to_uh. False if H is singular."""
    system, chart, gh = known.system, known.chart, known.gh
    tree, nu, z, to_xih, to_uh = system.tree, known.uh.size, pull.z, pull.to_xih, pull.to_uh
    lx, lu, l, to_x0 = pull.lx, pull.lu, pull.l, pull.to_x0
    evaluate_stage(known, s, f, None)
    dynamics_derivatives(system, known.t, s, f, w, True)
    matrix(tree, gh, s)
    if not lu_factor(s.H, s.swaps):
        return False
    copy(l, z)
    add_transposed(tree, 1.0, s.E, lx, z)
    add_transposed(tree, 1.0 / gh, s.U, lu, z)
    lu_solve_transposed(s.H, s.swaps, z)
    for d in range(nu):
        z[d] *= gh * gh
    # products with the transposed matrices
    for d in range(nu):
        s.v0[d] = lx[d]
        s.v1[d] = -lu[d]
        to_uh[d] = 0.0
        to_xih[d] = 0.0
    for i in range(nu):
        e = z[i]
        for d in range(nu):
            s.v0[d] -= s.Kx[i, d] * e
            s.v1[d] += (s.Ku[i, d] + s.M[i, d] / gh) * e
            to_uh[d] += s.M[i, d] * e / gh
    base_blocks(tree, chart, s.xi, s.b0)
    add_transposed(tree, 1.0, s.b0, s.v0, to_x0)
    add_transposed(tree, 1.0 / gh, s.E, s.v1, to_xih)
    return True


@sweep
def pull_start(tree, chart, xi0, l, to_x0, s):
    """Add to ``to_x0`` what the coordinates xi_0 of an Euler chart hand on; others do not depend on x_0."""
    for d in range(l.size):
        s.y[d] = 0.0
        s.v0[d] = 0.0
    chart_blocks(tree, chart, xi0, s.y, s.E, s.U)
    block_inverse(tree, s.E, s.b0)
    add_transposed(tree, 1.0, s.b0, l, s.v0)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL and chart[i] != EXP:
            for e in range(3):
                to_x0[d + e] += s.v0[d + e]


@sweep
def pull_past(tree, chart, xip, l, to_x0, to_past, s):
    """The same for xi_p: dxi_p = E^-1 (dx_p - A dx_0) at xi_p."""
    for d in range(l.size):
        s.y[d] = 0.0
        s.v0[d] = 0.0
    chart_blocks(tree, chart, xip, s.y, s.E, s.U)
    block_inverse(tree, s.E, s.b0)
    add_transposed(tree, 1.0, s.b0, l, s.v0)
    base_blocks(tree, chart, xip, s.b1)
    add_transposed(tree, -1.0, s.b1, s.v0, to_x0)
    for d in range(l.size):
        to_past[d] += s.v0[d]


@sweep
def keep_stage(record, k, j, t, z, s):
    """Write a stage to the record, if one is kept."""
    if record.t.shape[0] > 0:
        copy(s.x, record.x[k, j])
        copy(s.u, record.u[k, j])
        copy(s.a, record.a[k, j])
        copy(z, record.z[k, j])
        record.t[k, j] = t


@sweep
def backward_step(back, double, two, t, h, past_h, k):
    """Step k of a trace: ``double`` one of SDIRK2, ``two`` one of BDF2, else of BDF1. False if H is singular."""
    system, trace, lx, lu, by_control = back.system, back.trace, back.lx, back.lu, back.by_control
    record, control, v, s, f, w = back.record, back.control, back.v, back.s, back.f, back.w
    tree, nu, coordinates = system.tree, control.size, system.coordinates
    x0, u0, chart = trace.x[k + 1], trace.u[k + 1], trace.chart[k]
    xi0, xih, uh, z, to_xih, to_uh, none, xip, l0 = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]
    start_coordinates(tree, chart, x0, xi0)
    gh, c0, c1 = h, 1.0, 0.0
    copy(xi0, xih)
    copy(u0, uh)
    for d in range(nu):
        none[d] = 0.0
    if double:
        # equations (5), (6): the history is stage a
        gh, c1 = ALPHA * h, (1.0 - ALPHA) / ALPHA
        c0 = 1.0 - c1
        copy(trace.xi[k, 0], xip)
        for d in range(nu):
            s.y[d] = xip[d] - xi0[d]
        chart_blocks(tree, chart, xip, s.y, s.E, s.U)
        block_times(tree, 1.0 / gh, s.E, s.y, s.v0)
    elif two:
        # equation (7): the history is the state before
        gh, c0, c1 = two_step(h, past_h)
        other_coordinates(tree, chart, x0, xi0, trace.x[k], xip)
        copy(trace.u[k], s.v0)
    if c1 != 0.0:
        for d in range(nu):
            xih[d] = c0 * xi0[d] + c1 * xip[d]
            uh[d] = c0 * u0[d] + c1 * s.v0[d]
    # last stage
    copy(trace.xi[k, 1], s.xi)
    pull = Pull(lx[k + 2], lu[k + 2], none, z, lx[k + 1], to_xih, to_uh)
    if not adjoint_stage(Known(system, chart, t + h, gh, x0, xih, uh, control), pull, s, f, w):
        return False
    keep_stage(record, k, 1, t + h, z, s)
    rates_out(coordinates, s.x, z, by_control[k])
    for d in range(nu):
        l0[d] = c0 * to_xih[d]
        lu[k + 1, d] += c0 * to_uh[d]
        to_xih[d] *= c1
        to_uh[d] *= c1
    if double:
        # stage a, which the result itself does not see
        copy(to_xih, v[9])
        copy(to_uh, v[10])
        copy(xi0, xih)
        copy(u0, uh)
        copy(xip, s.xi)
        pull = Pull(none, v[10], v[9], z, lx[k + 1], to_xih, to_uh)
        if not adjoint_stage(Known(system, chart, t + gh, gh, x0, xih, uh, control), pull, s, f, w):
            return False
        keep_stage(record, k, 0, t + gh, z, s)
        rates_out(coordinates, s.x, z, s.v1)
        for d in range(nu):
            by_control[k, d] += s.v1[d]
            l0[d] += to_xih[d]
            lu[k + 1, d] += to_uh[d]
    elif two:
        pull_past(tree, chart, xip, to_xih, lx[k + 1], lx[k], s)
        for d in range(nu):
            lu[k, d] += to_uh[d]
    pull_start(tree, chart, xi0, l0, lx[k + 1], s)
    return True


@entry
def backward(system, method, known, times, past_h, controls, trace, lx, lu, by_control, record):
    """All steps of a trace, the last one first. times (steps, 2) has time and length of each step.

    known: whether there is a state before the first; past_h: length of the step to it. lx, lu and by_control
    (steps, nv) are written. Returns the number of the step whose matrix is singular, or -1.
    """
    x = trace.x[0]
    steps, nu = times.shape[0], system.tree.rates.shape[0]
    f, s, w, v = make_work(system, x), make_stage(system.tree, x.size), make_columns(system), np.zeros((11, nu))
    back = Back(system, trace, lx, lu, by_control, record, np.zeros(nu), v, s, f, w)
    for k in range(steps - 1, -1, -1):
        old = known or k > 0
        double = method == SDIRK2 or (method == BDF2 and not old)
        before = times[k - 1, 1] if k > 0 else past_h
        if controls.shape[0] > 0:
            copy(controls[k], back.control)
        if not backward_step(back, double, method == BDF2 and old, times[k, 0], times[k, 1], before, k):
            return k
    return -1
