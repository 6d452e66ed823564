"""Rollouts of ``Maximal`` for many environments, four at a time, one lane each: trees in smooth motion.

The decisions of Newton's method are those of ``maximal.step``, taken for each lane by itself. A lane that fails stops
at its last good state; the caller redoes it alone with the scalar kernel, which has another try from the rates.

    x (nx, 4), p (nu, 4)  coordinates and momenta       past (nu, 3, 4)  displacements of the last three steps
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.jit.decorators import entry, kernel
from leastaction.jit.lanes import LANES, ld, ld1, st, st1
from leastaction.jit.status import NOT_CONVERGED, NOT_FINITE, TURNED_TOO_FAR
from leastaction.maximal.bodies import end_momenta, move_bodies, out_of_hand, shift_of, shifted
from leastaction.maximal.forces import joint_end, weights
from leastaction.maximal.lanes import (
    ALIVE,
    ALPHA,
    BEFORE,
    FAR,
    FRESH,
    GAP,
    GAP_BEFORE,
    LARGEST,
    REACH,
    RUNNING,
    SCALE,
    SIZE_BEFORE,
    SQUARES,
    aim_lanes,
    begin_lanes,
    evaluate_lanes,
    guess_lanes,
    least_cosines,
    make_lane_bodies,
    make_turns,
    to_axes,
)
from leastaction.maximal.recursion import inward_bodies, outward_bodies
from leastaction.maximal.residual import tolerances
from leastaction.maximal.springs import free_blocks
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST
from leastaction.solve.guess import extrapolation
from leastaction.spatial._source.scalar import pick
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.lanes import lane_rates, load_lanes, store_lanes

# As in ``maximal.step``.
LEAST_COSINE = 0.0


@kernel
def judge(h, B, nu, rtol, most, straight, g, count, first):
    """Decide for each running lane: converged, a new direction, a shorter step, or given up.

    straight: no shorter steps. Returns whether any lane goes on, and whether any takes a new direction.
    """
    more, renew, a = False, False, g.numbers
    weight = (B.unit[1] / h) * (B.unit[1] / h)
    for k in range(LANES):
        if g.masks[0, RUNNING, k] == 0.0:
            continue
        count[first + k, EVALUATIONS] += 1
        largest, gap, scale, reach = a[LARGEST, k], a[GAP, k], a[SCALE, k], a[REACH, k]
        limit, widest, floor, coarse = tolerances(B, rtol, scale, reach, a[FAR, k], h, nu)
        small = a[SIZE_BEFORE, k] <= floor and largest <= floor
        apart = max(gap, a[GAP_BEFORE, k])
        merit = a[SQUARES, k] + weight * (gap * gap)
        goes_on, g.masks[0, FRESH, k] = True, 0.0
        if g.steps[k] > 0 and largest <= limit and gap <= widest:
            goes_on = False
        elif math.isfinite(merit) and merit <= (1.0 - 1.0e-4 * a[ALPHA, k]) * a[BEFORE, k]:
            if g.steps[k] == most:
                goes_on = False
            else:
                g.steps[k] += 1
                g.masks[0, FRESH, k] = 1.0
                a[BEFORE, k], a[SIZE_BEFORE, k], a[GAP_BEFORE, k], a[ALPHA, k] = merit, largest, gap, 1.0
                renew = True
        elif g.steps[k] == 0 or a[ALPHA, k] < 1.0e-3 or (small and apart <= coarse):
            goes_on = False
        else:
            # backtrack, until only rounding can be to blame
            a[ALPHA, k] *= 0.5
            count[first + k, CUTS] += 1
            goes_on = not straight
        if goes_on:
            more = True
        else:
            g.good[k] = (largest <= limit and gap <= widest) or (small and apart <= 100.0 * coarse)
            g.masks[0, RUNNING, k] = 0.0
            count[first + k, ITERATIONS] += g.steps[k]
            count[first + k, MOST] = max(count[first + k, MOST], g.steps[k])
    return more, renew


@kernel
def solve_lanes(system, h, x, active, rate_of, rtol, most, straight, B, f, g, count, first):
    """Newton from the guess in B.guess, with backtracking or ``straight``; g.good says which lanes have converged."""
    tree, closed = system.tree, True
    for k in range(LANES):
        g.masks[0, RUNNING, k] = g.masks[0, ALIVE, k]
        g.numbers[BEFORE, k], g.numbers[SIZE_BEFORE, k], g.numbers[GAP_BEFORE, k] = math.inf, math.inf, math.inf
        g.numbers[ALPHA, k], g.numbers[FAR, k] = 1.0, 0.0
        g.steps[k], g.good[k] = 0, False
        for e in range(x.shape[0]):
            g.numbers[FAR, k] = max(g.numbers[FAR, k], abs(x[e, k]))
    shifted(tree, x, B.guess, B.x1)
    while True:
        evaluate_lanes(system, h, x, active, rate_of, closed, B, f, g)
        more, renew = judge(h, B, tree.rates.shape[0], rtol, most, straight, g, count, first)
        if not more:
            break
        if renew:
            free_blocks(system, None, B, None, h)
            inward_bodies(tree, B, h)
            outward_bodies(tree, B)
        aim_lanes(tree, B, g)
        move_bodies(tree, B, ld1(g.numbers, ALPHA))
        closed = False


@kernel
def end_lanes(system, h, x, active, B, f, g):
    """g.pn: momenta along parent axes at the end of the step."""
    tree = system.tree
    shift_of(tree, x, B.x1, B.xi)
    joint_end(system, B, x, g.control, active, h, f, g.ua, g.c1)
    weights(tree, B.P1, g.F1)
    end_momenta(tree, B, h, g.F1, g.c1, g.ua)
    to_axes(tree, B.x1, g.ua, False, g.pn)


@kernel
def take_lanes(tree, x, p, past, B, g, status, first, k, done):
    """Take the step in the lanes that have converged to finite momenta. Returns how many lanes are alive."""
    left = 0
    st1(g.numbers, GAP, least_cosines(tree, B))
    for e in range(LANES):
        if g.masks[0, ALIVE, e] > 0.0:
            finite = not out_of_hand(B.x1[:, e], B.unit)
            for d in range(tree.rates.shape[0]):
                finite = finite and math.isfinite(g.pn[d, e])
            if not g.good[e]:
                status[first + e] = NOT_CONVERGED
            elif not g.numbers[GAP, e] > LEAST_COSINE:
                status[first + e] = TURNED_TOO_FAR
            elif not finite:
                status[first + e] = NOT_FINITE
            else:
                done[first + e] = k + 1
                left += 1
                continue
            g.masks[0, ALIVE, e] = 0.0
    alive = ld(g.masks, 0, ALIVE)
    for c in range(x.shape[0]):
        st1(x, c, pick(alive, 0.5, ld1(B.x1, c), ld1(x, c)))
    for d in range(tree.rates.shape[0]):
        st1(p, d, pick(alive, 0.5, ld1(g.pn, d), ld1(p, d)))
        st(past, d, 2, pick(alive, 0.5, ld(past, d, 1), ld(past, d, 2)))
        st(past, d, 1, pick(alive, 0.5, ld(past, d, 0), ld(past, d, 1)))
        st(past, d, 0, pick(alive, 0.5, ld1(B.xi, d), ld(past, d, 0)))
    return left


@kernel
def save_lanes(system, x, p, f, u, g, first, row, out_q, out_v):
    """The user's states of the lanes that are alive."""
    to_axes(system.tree, x, p, True, g.pc)
    lane_rates(system.tree, x, g.pc, f, u)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    for e in range(LANES):
        if g.masks[0, ALIVE, e] > 0.0:
            for k in range(f.q.shape[0]):
                out_q[first + e, row, k] = f.q[k, e]
            for k in range(f.v.shape[0]):
                out_v[first + e, row, k] = f.v[k, e]


@kernel
def start_block(system, xs, ps, first, size, x, p, past, f, u, g):
    """Coordinates, momenta, rates and masks of the environments first..first+size."""
    load_lanes(xs, first, size, x)
    load_lanes(ps, first, size, p)
    to_axes(system.tree, x, p, True, g.pc)
    lane_rates(system.tree, x, g.pc, f, u)
    for e in range(LANES):
        g.masks[0, ALIVE, e] = 1.0 if e < size else 0.0
        for d in range(past.shape[0]):
            past[d, 0, e], past[d, 1, e], past[d, 2, e] = 0.0, 0.0, 0.0


@entry
def rollout(
    system, effort, h, xs, ps, pasts, steps, every, controls, passive, rtol, most, out_q, out_v, done, status, count
):
    """Advance E environments by up to ``steps`` steps from their first state, with no past; four at a time.

    xs (E, nx), ps (E, nu) move on in place, pasts (E, nu, 3) get the last displacements; controls is (E or 1, steps,
    nu) or has no rows, and is cut at effort (nu,). out_q and out_v (E, rows, ...) get every ``every``-th state. done,
    status (E,) and count (E, 4) say how far each one came; one that failed is left at its last good state.
    """
    tree, nx, nu = system.tree, xs.shape[1], ps.shape[1]
    B, g = make_lane_bodies(tree, nx), make_turns(tree)
    x, p, past, u = np.zeros((nx, LANES)), np.zeros((nu, LANES)), np.zeros((nu, 3, LANES)), np.zeros((nu, LANES))
    f, rate_of, lengths = make_work(system, x), np.zeros(nu, np.int64), np.full(3, h)
    for d in range(nu):
        rate_of[system.coordinates.v[d]] = d
    active = passive or controls.shape[0] > 0
    for first in range(0, xs.shape[0], LANES):
        size, row = min(LANES, xs.shape[0] - first), 0
        start_block(system, xs, ps, first, size, x, p, past, f, u, g)
        for k in range(steps):
            if controls.shape[0] > 0:
                for e in range(size):
                    for d in range(nu):
                        c = controls[first + e if controls.shape[0] > 1 else 0, k, d]
                        g.control[d, e] = min(max(c, -effort[d]), effort[d])
            # step
            begin_lanes(tree, x, p, B, g.pc)
            guess_lanes(min(k, 3), u, extrapolation(h, lengths, min(k, 3)), past, h, B.guess)
            solve_lanes(system, h, x, active, rate_of, rtol, most, k > 0, B, f, g, count, first)
            end_lanes(system, h, x, active, B, f, g)
            if take_lanes(tree, x, p, past, B, g, status, first, k, done) == 0:
                break
            if (k + 1) % every == 0:
                save_lanes(system, x, p, f, u, g, first, row, out_q, out_v)
                row += 1
        store_lanes(x, first, size, xs)
        store_lanes(p, first, size, ps)
        for e in range(size):
            for d in range(nu):
                for j in range(3):
                    pasts[first + e, d, j] = past[d, j, e]
