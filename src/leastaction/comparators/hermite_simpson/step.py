"""Steps of Hermite-Simpson collocation: guess, Newton with backtracking, rollouts. See ``residual``."""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.comparators.hermite_simpson.residual import (
    evaluate_middle,
    make_middle_work,
    make_point,
    middle_direction,
    point_derivatives,
)
from leastaction.dynamics.forward import acceleration, make_work
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import entry, kernel, sweep
from leastaction.jit.status import DONE, NOT_CONVERGED, NOT_FINITE
from leastaction.solve.clock import tick
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST, TOTALS
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.composite import mass_matrix, subtree_inertias
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.kinematics import inertias, kinematics

# What a rollout returns besides the number of steps done.

# Relative residual below which a descent that stops is put down to rounding.
STALL = 1.0e-9


@kernel
def relative_sizes(implicit, h, scale, middle, end, w):
    """Largest row and sum of squares, relative to ``scale`` (a rate)."""
    largest, squares = 0.0, 0.0
    for d in range(w.rx.size):
        a, b = abs(w.rx[d]) / (h * scale), abs(w.ru[d]) / scale
        largest, squares = max(largest, a, b), squares + a * a + b * b
        if implicit:
            a, b = h * abs(middle.r[d]) * w.weight[d] / scale, h * abs(end.r[d]) * w.weight[d] / scale
            largest, squares = max(largest, a, b), squares + a * a + b * b
    return largest, squares


@sweep
def add_explicit(alpha, end, w):
    """xi_1, u_1 from their old values and the direction y."""
    nu = w.rx.size
    for d in range(nu):
        end.xi[d] = w.old[0, d] + alpha * w.y[d]
        end.u[d] = w.old[1, d] + alpha * w.y[nu + d]


@sweep
def add_implicit(alpha, middle, end, w):
    """All unknowns from their old values and the direction."""
    nu = w.rx.size
    for d in range(nu):
        end.xi[d] = w.old[0, d] + alpha * w.b4[d, 0]
        end.u[d] = w.old[1, d] + alpha * w.b5[d, 0]
        middle.a[d] = w.old[2, d] + alpha * w.y[d]
        end.a[d] = w.old[3, d] + alpha * w.y[nu + d]


@sweep
def rate_scale(tree, h, x0, u0, a0, f, w):
    """A rate that residuals are compared with; w.weight from the diagonal of the mass matrix."""
    kinematics(tree, x0, f.P, f.S)
    inertias(tree, x0, f.P, f.M)
    subtree_inertias(tree, f.M, w.m)
    mass_matrix(tree, f.S, f.M, w.m, w.L)
    u, a, g = 0.0, 0.0, 0.0
    for d in range(u0.size):
        u, a = max(u, abs(u0[d])), max(a, abs(a0[d]))
        w.weight[d] = 1.0 / max(w.L[d, d], 1.0e-300)
    for e in range(3):
        g = max(g, abs(tree.gravity[e]))
    return u + h * (a + g) + 1.0e-300


@sweep
def solve_middle(system, implicit, t, h, x0, u0, a0, middle, end, control, rtol, most, f, w, count):
    """Newton with backtracking from the guess in ``end`` (and middle.a). True if it converged."""
    scale = rate_scale(system.tree, h, x0, u0, a0, f, w)
    before, size_before, alpha, steps = math.inf, math.inf, 1.0, 0
    while True:
        largest, squares = math.inf, math.inf
        if evaluate_middle(system, implicit, t, h, x0, u0, a0, middle, end, control, f, w):
            largest, squares = relative_sizes(implicit, h, scale, middle, end, w)
        count[EVALUATIONS] += 1
        good = math.isfinite(squares)
        if good and largest <= rtol:
            break
        if good and squares <= (1.0 - 1.0e-4 * alpha) * before:
            # a point to go on from
            if steps == most:
                break
            copy(end.xi, w.old[0])
            copy(end.u, w.old[1])
            copy(middle.a, w.old[2])
            copy(end.a, w.old[3])
            before, size_before, alpha = squares, largest, 1.0
            steps += 1
            if not middle_direction(system, implicit, t, h, middle, end, control, f, w):
                count[ITERATIONS] += steps
                return False
        else:
            # backtrack, until only rounding can be to blame
            if steps == 0 or alpha < 1.0e-3 or size_before < STALL:
                break
            alpha *= 0.5
            count[CUTS] += 1
        if implicit:
            add_implicit(alpha, middle, end, w)
        else:
            add_explicit(alpha, end, w)
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    # rounding may stop the descent above the tolerance
    return good and (largest <= rtol or (size_before < STALL and largest < STALL))


@kernel
def guess_middle(h, known, u0, a0, past, middle, end):
    """First iterate: accelerations continued from the last step as a parabola, or constant."""
    for d in range(u0.size):
        am, a1 = a0[d], a0[d]
        if known > 0:
            am, a1 = 3.0 * (a0[d] - past[1, d]) + past[0, d], 6.0 * a0[d] - 8.0 * past[1, d] + 3.0 * past[0, d]
        middle.a[d], end.a[d] = am, a1
        end.u[d] = u0[d] + h / 6.0 * (a0[d] + 4.0 * am + a1)
        end.xi[d] = 0.5 * h * (u0[d] + end.u[d]) + h * h / 12.0 * (a0[d] - a1)


@entry
def hermite_simpson_rollout(
    system, implicit, uniform, clock, k0, x, u, past, known, steps, every, controls, address, rtol, most, out_q, out_v,
    count,
):  # fmt: skip
    """Advance x, u in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    uniform and clock are those of ``tick``. past (2, nu) and known (1,) are the accelerations of the last step at its
    start and middle. count: see ``solve.counts``. Returns (steps done, status); after a failure x, u are those of the
    last good step.
    """
    tree, nu = system.tree, u.size
    f, w = make_work(system, x), make_middle_work(tree)
    middle, end = make_point(x.size, nu), make_point(x.size, nu)
    a0, control = np.zeros(nu), np.zeros(nu)
    saved = 0
    for k in range(steps):
        t, h = tick(uniform, clock, k0, k)
        # control of this step
        if address != 0:
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control)
        elif controls.shape[0] > 0:
            copy(controls[k], control)
        # step
        acceleration(system, t, x, u, control, f, a0)
        if not all_finite(a0):
            return k, NOT_FINITE
        guess_middle(h, known[0], u, a0, past, middle, end)
        if not solve_middle(system, implicit, t, h, x, u, a0, middle, end, control, rtol, most, f, w, count):
            return k, NOT_CONVERGED
        copy(end.x, x)
        copy(end.u, u)
        copy(a0, past[0])
        copy(middle.a, past[1])
        known[0] = 1
        if (k0 + k + 1) % every == 0:
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE


@entry
def hermite_simpson_probe(system, implicit, h, x0, u0, xi, u, am, a1, control, rows, y, what, repeats):
    """Rows (2) and (3) as rows (4, nu) and Newton's direction y (4, nu) of (xi_1, u_1, a_m, a_1) at a given point.

    ``what`` 0 evaluates, 1 also takes the derivatives of the dynamics, 2 also solves; ``repeats`` times, for timing.
    """
    nu = u0.size
    f, w = make_work(system, x0), make_middle_work(system.tree)
    middle, end = make_point(x0.size, nu), make_point(x0.size, nu)
    a0 = np.zeros(nu)
    good = acceleration(system, 0.0, x0, u0, control, f, a0)
    for _ in range(repeats):
        copy(xi, end.xi)
        copy(u, end.u)
        copy(am, middle.a)
        copy(a1, end.a)
        good = evaluate_middle(system, implicit, 0.0, h, x0, u0, a0, middle, end, control, f, w) and good
        if what == 1:
            point_derivatives(system, 0.5 * h, middle, control, f, w)
            point_derivatives(system, h, end, control, f, w)
        copy(w.rx, rows[0])
        copy(w.ru, rows[1])
        copy(middle.r, rows[2])
        copy(end.r, rows[3])
        if what == 2:
            good = middle_direction(system, implicit, 0.0, h, middle, end, control, f, w) and good
            for d in range(nu):
                y[0, d] = w.b4[d, 0] if implicit else w.y[d]
                y[1, d] = w.b5[d, 0] if implicit else w.y[nu + d]
                y[2, d] = w.y[d] if implicit else 0.0
                y[3, d] = w.y[nu + d] if implicit else 0.0
    return good
