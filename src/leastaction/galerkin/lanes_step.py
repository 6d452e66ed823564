"""Rollouts of ``Galerkin(2)`` for many environments, four at a time, one lane each (screws only, no forces on bodies).

The decisions of Newton's method are those of ``galerkin.step.solve_galerkin``, taken for each lane by itself: a lane
that has converged keeps its iterate while the others go on, a lane whose line search cuts keeps its direction. A lane
that fails stops at its last good state; the caller redoes it alone with the scalar kernel.

    x (nx, 4), p (nu, 4)  coordinates and momenta       past (nu, 3, 4)  displacements of the last three steps
    Symbols of one step are those of ``galerkin.residual``; the state of a lane's Newton iteration is in ``Search``.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.forces.joints import joint_forces
from leastaction.galerkin.lanes import direction_lanes, make_lane_work
from leastaction.galerkin.residual import Nodes, gravity, move, next_momentum, place, residual
from leastaction.galerkin.step import EULER, HOLD, NOT_CONVERGED, NOT_FINITE, QUADRATIC
from leastaction.galerkin.tolerance import terms
from leastaction.jit.calls import call_law
from leastaction.jit.decorators import entry, kernel, memory, sweep
from leastaction.jit.lanes import LANES, ld, ld1, ld3, ld6, number, st, st1, st3, st6
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST
from leastaction.solve.guess import extrapolation
from leastaction.spatial._source.scalar import pick
from leastaction.tree.coordinates import forces_in, positions_out, rates_out
from leastaction.tree.kinematics import set_origin
from leastaction.tree.lanes import lane_rates, load_lanes, store_lanes
from leastaction.tree.layout import IU, IX, Floats
from leastaction.tree.tolerance import Zero, over_limits, set_tolerances


class Search(NamedTuple):
    """Newton iterations of four lanes.

    numbers  (6, 4)   sum of squares of the residual and its largest entry over its rounding at the point where the
                      direction was taken, step length; sum of squares and largest entries of the trial, see
                      ``tree.tolerance``
    masks    (1, 3, 4) 1.0 where a lane is alive, still running, takes a new direction
    steps    (4,)     directions taken
    good     (4,)     whether a lane has converged
    old      (nu, 4)  point where the direction was taken
    along    (nu, 4)  direction of each lane
    damping  (nu, 4)  derivatives of joint impulses by the rates at the start
    xa, ua   (nx, 4), (nu, 4) coordinates and rates at a node
    control  (nu, 4)  the user's forces of this step
    zero              what counts as zero, see ``tree.tolerance``
    """

    numbers: Floats
    masks: Floats
    steps: Floats
    good: Floats
    old: Floats
    along: Floats
    damping: Floats
    xa: Floats
    ua: Floats
    control: Floats
    zero: Zero


BEFORE, ROUGH_BEFORE, ALPHA, SQUARES, LARGEST, ROUGH = 0, 1, 2, 3, 4, 5
ALIVE, RUNNING, FRESH = 0, 1, 2


@memory
def make_search(nx, nu, parts):
    """Memory of the iterations, and no forces."""
    return Search(
        np.zeros((6, LANES)), np.zeros((1, 3, LANES)), np.zeros(LANES, np.int64), np.zeros(LANES, np.bool_),
        np.zeros((nu, LANES)), np.zeros((nu, LANES)), np.zeros((nu, LANES)), np.zeros((nx, LANES)),
        np.zeros((nu, LANES)), np.zeros((nu, LANES)),
        Zero(np.zeros((nu, LANES)), np.zeros((parts, 8, LANES)), np.zeros((nu, 3, LANES))),
    )  # fmt: skip


# --- parts of a step -------------------------------------------------------------------------------------------------
@sweep
def lane_impulses(system, nodes, x, w, f, g):
    """w.tau at both nodes: control, springs, dampers and laws; and their derivatives by the rates at the start."""
    tree, p, c = system.tree, system.passive, system.coordinates
    for a in range(len(nodes.w)):
        wh = nodes.w[a] * nodes.h
        for i in range(1, tree.rows.shape[0]):
            k, d = tree.rows[i, IX], tree.rows[i, IU]
            st1(g.xa, k, ld1(x, k) + ld(w.xi, d, a))
            st1(g.ua, d, ld(w.xid, d, a))
        positions_out(c, g.xa, f.q)
        rates_out(c, g.xa, g.ua, f.v)
        for d in range(tree.rates.shape[0]):
            st1(f.tau, d, ld1(g.control, d))
        joint_forces(p, f.q, f.v, f.tau)
        forces_in(c, g.xa, f.tau, f.f)
        for d in range(tree.rates.shape[0]):
            st(w.tau, d, a, wh * ld1(f.f, d))
            if a == 0:
                st1(g.damping, d, number(w.pn, 0.0))
        # f.v still holds the rates at the start
        for j in range(p.screw.shape[0] if a == 0 else 0):
            for d in range(c.v.size):
                if c.v[d] == p.screw[j, 1]:
                    st1(g.damping, d, ld1(g.damping, d) - wh * p.spring[j, 2])
                    if p.law[j, 4] != 0:
                        st1(g.damping, d, ld1(g.damping, d) + wh * call_law(p.law[j, 4], ld1(f.v, p.screw[j, 1])))


@kernel
def judge_lanes(most, g, count, first):
    """Decide for each running lane: converged, a new direction, a shorter step, or given up.

    Returns whether any lane goes on, and whether any takes a new direction.
    """
    more, renew, a = False, False, g.numbers
    for k in range(LANES):
        if g.masks[0, RUNNING, k] == 0.0:
            continue
        count[first + k, EVALUATIONS] += 1
        largest, rough, squares = a[LARGEST, k], a[ROUGH, k], a[SQUARES, k]
        goes_on, g.masks[0, FRESH, k], finite = True, 0.0, math.isfinite(squares)
        if finite and largest <= 1.0:
            goes_on = False
        elif finite and squares <= (1.0 - 1.0e-4 * a[ALPHA, k]) * a[BEFORE, k]:
            # a point to go on from: the sum of squares descends along the Newton direction
            if g.steps[k] == most:
                goes_on = False
            else:
                g.steps[k] += 1
                g.masks[0, FRESH, k] = 1.0
                a[BEFORE, k], a[ROUGH_BEFORE, k], a[ALPHA, k] = squares, rough, 1.0
                renew = True
        elif g.steps[k] == 0 or a[ALPHA, k] < 1.0e-3:
            goes_on = False
        else:
            # backtrack, until only rounding can be to blame
            a[ALPHA, k] *= 0.5
            count[first + k, CUTS] += 1
        if goes_on:
            more = True
        else:
            # rounding may stop the descent just above the tolerance
            g.good[k] = finite and (largest <= 1.0 or (a[ROUGH_BEFORE, k] <= 100.0 and rough <= 100.0))
            g.masks[0, RUNNING, k] = 0.0
            count[first + k, ITERATIONS] += g.steps[k]
            count[first + k, MOST] = max(count[first + k, MOST], g.steps[k])
    return more, renew


@kernel
def solve_four(system, nodes, x, p, active, rtol, most, w, f, g, count, first):
    """Newton with backtracking from the guess in w.xi; g.good says which lanes have converged."""
    tree, begun = system.tree, False
    for k in range(LANES):
        g.masks[0, RUNNING, k] = g.masks[0, ALIVE, k]
        g.numbers[BEFORE, k], g.numbers[ROUGH_BEFORE, k], g.numbers[ALPHA, k] = math.inf, math.inf, 1.0
        g.steps[k], g.good[k] = 0, False
    while True:
        # residual of the trial
        place(tree, x, w, 1)
        move(tree, nodes, w)
        if active:
            lane_impulses(system, nodes, x, w, f, g)
        residual(tree, nodes, p, w)
        if not begun:
            terms(tree, p, w, g.zero)
            set_tolerances(tree, x, w.P, nodes.h, p, rtol, g.zero)
            begun = True
        largest, rough, squares = over_limits(w.r, g.zero)
        st1(g.numbers, LARGEST, largest)
        st1(g.numbers, ROUGH, rough)
        st1(g.numbers, SQUARES, squares)
        more, renew = judge_lanes(most, g, count, first)
        if not more:
            break
        # the next trial
        if renew:
            direction_lanes(tree, nodes, w, g.damping)
        running, fresh = ld(g.masks, 0, RUNNING), ld(g.masks, 0, FRESH)
        alpha = ld1(g.numbers, ALPHA)
        for d in range(tree.rates.shape[0]):
            xi = ld(w.xi, d, 1)
            old, along = pick(fresh, 0.5, xi, ld1(g.old, d)), pick(fresh, 0.5, ld1(w.y, d), ld1(g.along, d))
            st1(g.old, d, old)
            st1(g.along, d, along)
            st(w.xi, d, 1, pick(running, 0.5, old + alpha * along, xi))


@sweep
def lane_start(tree, nodes, x, w):
    """Tables of node 0, about a new origin."""
    set_origin(tree, x, w.P)
    for d in range(tree.rates.shape[0]):
        st(w.xi, d, 0, number(x, 0.0))
    place(tree, x, w, 0)
    gravity(tree, nodes, w, 0)


@kernel
def begin_step(tree, nodes, x, w, moved):
    """Tables of node 0: those of the end of the last step, unless a lane failed there or the origin moves along."""
    if not moved or tree.moves.size > 0:
        lane_start(tree, nodes, x, w)
        return
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        for e in range(0, 12, 3):
            st3(w.P, i, e, ld3(w.P, i, 12 + e))
        st6(w.M, i, 0, ld6(w.M, i, 9))
        st3(w.M, i, 6, ld3(w.M, i, 15))
        st6(w.S, d, 0, ld6(w.S, d, 6))
        st(w.pull, d, 0, ld(w.pull, d, 1))


@kernel
def guess_four(tree, nodes, mode, known, u, past, lengths, w, g):
    """First iterate in w.xi; a lane that has failed stays where it is."""
    alive = ld(g.masks, 0, ALIVE)
    e1, e2, e3 = extrapolation(nodes.h, lengths, min(known, 2) if mode == QUADRATIC else known)
    for d in range(tree.rates.shape[0]):
        if mode == HOLD:
            xi = number(u, 0.0)
        elif mode == EULER or known == 0:
            xi = nodes.c[1] * nodes.h * ld1(u, d)
        else:
            xi = e1 * ld(past, d, 0) + e2 * ld(past, d, 1) + e3 * ld(past, d, 2)
        st(w.xi, d, 1, pick(alive, 0.5, xi, number(u, 0.0)))


@kernel
def finish_step(tree, x, p, past, w, g, status, first, k, done):
    """Take the step in the lanes that have converged to finite momenta. Returns False if one failed in this step."""
    sound = True
    for e in range(LANES):
        if g.masks[0, ALIVE, e] > 0.0:
            finite = True
            for d in range(tree.rates.shape[0]):
                finite = finite and math.isfinite(w.pn[d, e])
            if g.good[e] and finite:
                done[first + e] = k + 1
            else:
                status[first + e] = NOT_FINITE if g.good[e] else NOT_CONVERGED
                g.masks[0, ALIVE, e] = 0.0
                sound = False
    alive = ld(g.masks, 0, ALIVE)
    for i in range(1, tree.rows.shape[0]):
        c, d = tree.rows[i, IX], tree.rows[i, IU]
        xi = ld(w.xi, d, 1)
        st1(x, c, pick(alive, 0.5, ld1(x, c) + xi, ld1(x, c)))
        st1(p, d, pick(alive, 0.5, ld1(w.pn, d), ld1(p, d)))
        st(past, d, 2, pick(alive, 0.5, ld(past, d, 1), ld(past, d, 2)))
        st(past, d, 1, pick(alive, 0.5, ld(past, d, 0), ld(past, d, 1)))
        st(past, d, 0, pick(alive, 0.5, xi, ld(past, d, 0)))
    return sound


# --- rollouts --------------------------------------------------------------------------------------------------------
@kernel
def save_states(system, x, p, f, u, g, first, row, out_q, out_v):
    """The user's states of the lanes that are alive."""
    lane_rates(system.tree, x, p, f, u)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    for e in range(LANES):
        if g.masks[0, ALIVE, e] > 0.0:
            for k in range(f.q.shape[0]):
                out_q[first + e, row, k] = f.q[k, e]
            for k in range(f.v.shape[0]):
                out_v[first + e, row, k] = f.v[k, e]


@entry
def rollout_lanes(
    system, weights, tables, across, h, xs, ps, pasts, steps, every, controls, passive, mode, rtol, most,
    out_q, out_v, done, status, count,
):  # fmt: skip
    """Advance E environments by up to ``steps`` steps from their first state, with no past; four at a time.

    tables: (b, c, balance). xs (E, nx), ps (E, nu) move on in place, pasts (E, 3, nu) get the last displacements;
    controls is (E or 1, steps, nu) or has no rows. out_q and out_v (E, rows, ...) get every ``every``-th state. done,
    status (E,) and count (E, 4) say how far each one came; one that failed is left at its last good state.
    """
    tree, nx, nu = system.tree, xs.shape[1], ps.shape[1]
    b, c, balance = tables
    nodes = Nodes(weights, (), b, c, h, across, balance)
    w, g = make_lane_work(tree, weights), make_search(nx, nu, tree.parts.shape[0])
    x, p, past, lengths = np.zeros((nx, LANES)), np.zeros((nu, LANES)), np.zeros((nu, 3, LANES)), np.ones(3)
    u, f = np.zeros((nu, LANES)), make_work(system, x)
    for first in range(0, xs.shape[0], LANES):
        size = min(LANES, xs.shape[0] - first)
        load_lanes(xs, first, size, x)
        load_lanes(ps, first, size, p)
        for e in range(LANES):
            g.masks[0, ALIVE, e] = 1.0 if e < size else 0.0
        moved, row = False, 0
        for j in range(3):
            lengths[j] = 1.0
        for k in range(steps):
            if controls.shape[0] > 0:
                for e in range(size):
                    for d in range(nu):
                        g.control[d, e] = controls[first + e if controls.shape[0] > 1 else 0, k, d]
            # step
            begin_step(tree, nodes, x, w, moved)
            if mode == EULER or k == 0:
                lane_rates(tree, x, p, f, u)
            guess_four(tree, nodes, mode, min(k, 3), u, past, lengths, w, g)
            active = passive or controls.shape[0] > 0
            solve_four(system, nodes, x, p, active, rtol, most, w, f, g, count, first)
            next_momentum(tree, nodes, p, w)
            moved = finish_step(tree, x, p, past, w, g, status, first, k, done)
            lengths[2], lengths[1], lengths[0] = lengths[1], lengths[0], h
            # what came of it
            if not moved:
                left = 0
                for e in range(size):
                    left += 1 if g.masks[0, ALIVE, e] > 0.0 else 0
                if left == 0:
                    break
            if (k + 1) % every == 0:
                save_states(system, x, p, f, u, g, first, row, out_q, out_v)
                row += 1
        store_lanes(x, first, size, xs)
        store_lanes(p, first, size, ps)
        for e in range(size):
            for d in range(nu):
                for j in range(3):
                    pasts[first + e, j, d] = past[d, j, e]
