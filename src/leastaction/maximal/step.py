"""Steps of ``Maximal``: guess, Newton with a line search, rollouts.

``plan`` (None or Couplings) and ``contacts`` choose by their type what is compiled into a rollout.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.legendre import to_parent_axes
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import either, entry, kernel, sweep
from leastaction.jit.lanes import ld9
from leastaction.jit.status import DONE, NO_RATES, NO_ROOM, NOT_CONVERGED, NOT_FINITE, STRIKES, TURNED_TOO_FAR
from leastaction.loops.nodes import make_loop_rows
from leastaction.maximal.arrival import arrive, make_arrival
from leastaction.maximal.barrier import LOOKS, MOST_LOOKS, find, find_missed, hold_all, solve_contact
from leastaction.maximal.bodies import (
    end_momenta,
    keep_bodies,
    make_bodies,
    move_bodies,
    out_of_hand,
    shift_of,
    shifted,
)
from leastaction.maximal.bounds import relieve
from leastaction.maximal.contact import is_full, make_touch, note_full, report_contacts, worst_contact
from leastaction.maximal.forces import end_forces, joint_end, spring_blocks, weights
from leastaction.maximal.frozen import note_solution
from leastaction.maximal.graph import clear_couplings, make_blocks, node_count, solve_bodies
from leastaction.maximal.loops import keep_loops, loop_blocks, move_loops, take_care, trust_rows
from leastaction.maximal.rates import coupled_rates, make_rates
from leastaction.maximal.replan import keep_plan, own_plan
from leastaction.maximal.residual import begin, evaluate, tolerances
from leastaction.maximal.springs import free_blocks
from leastaction.maximal.strikes import strikes, take_back
from leastaction.maximal.tendons import tendon_room
from leastaction.solve.clock import tick
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST, TOTALS
from leastaction.solve.guess import extrapolation
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.kinematics import farthest, kinematics
from leastaction.tree.layout import MASS

# Cosine of the largest rotation of a body in one step: 90 degrees, where the discrete momentum has its maximum.
LEAST_COSINE = 0.0


@kernel
def since_jump(known, d0, d1, d2):
    """How many of the last displacements of a coordinate, d0 the latest, come after an impact."""
    change, bend = d0 - d1, d0 - 2.0 * d1 + d2
    if known < 3 or abs(bend) <= 0.5 * abs(change) or abs(bend) <= 0.05 * abs(d0):
        return known
    return 1 if abs(change) > 0.05 * abs(d0) else 2


@kernel
def guess(rough, h, known, u, past, lengths, xi):
    """Displacements of the next step from those of the last three (nu, 3), or from the rates u.

    rough: whether there may be impacts, before which displacements say nothing about the next.
    """
    e1, e2, e3 = extrapolation(h, lengths, known)
    for d in range(xi.size):
        d0, d1, d2 = past[d, 0], past[d, 1], past[d, 2]
        xi[d] = h * u[d] if known == 0 else e1 * d0 + e2 * d1 + e3 * d2
        count = since_jump(known, d0, d1, d2) if rough else known
        if count < known:
            f1, f2, _ = extrapolation(h, lengths, count)
            xi[d] = f1 * d0 + f2 * d1


def _solve_smooth(contacts, limits, system, plan, t, h, x, pc, control, active, rate_of, mass, numbers, most, straight,
                  touched, T, B, E, f, L, ua, count, Z):  # fmt: skip
    """Newton from the guess in B.guess, with backtracking or ``straight``, and always one iteration.

    A guess within the tolerance of the largest momentum may be far off for the last links of a long chain, and errors
    of guesses add up; after one iteration they are of second order.
    """
    tree, nu, rtol = system.tree, pc.size, numbers[0]
    shifted(tree, x, B.guess, B.x1)
    before, size_before, gap_before = math.inf, math.inf, math.inf
    alpha, steps, closed = 1.0, 0, True
    trust_rows(plan, E)
    weight = (B.unit[1] / h) * (B.unit[1] / h)
    for i in range(B.rho.shape[0]):
        for e in range(6):
            B.rho[i, e] = 0.0
    while True:
        largest, squares, scale, gap, gaps, reach = evaluate(
            None, system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua
        )
        count[EVALUATIONS] += 1
        limit, widest, floor, coarse = tolerances(B, rtol, scale, reach, farthest(tree, x), h, nu)
        small, apart = size_before <= floor and largest <= floor, max(gap, gap_before)
        if steps > 0 and largest <= limit and gap <= widest:
            break
        merit = squares + weight * gaps
        if math.isfinite(merit) and merit <= (1.0 - 1.0e-4 * alpha) * before:
            if steps == most:
                break
            clear_couplings(plan, E, B.W)
            spring_blocks(system.forces, plan, B, E, h)
            free_blocks(system, plan, B, E, h)
            loop_blocks(system.loops, plan, h, B, E, L)
            if not solve_bodies(plan, tree, B, E, h):
                break
            steps += 1
            keep_bodies(tree, B)
            keep_loops(system.loops, L)
            before, size_before, gap_before, alpha = merit, largest, gap, 1.0
        else:
            # backtrack, until only rounding can be to blame
            if steps == 0 or alpha < 1.0e-3 or (small and apart <= coarse):
                break
            count[CUTS] += 1
            if take_care(plan, E):
                # once more from the iterate before
                alpha, before = 0.0, math.inf
            elif straight:
                break
            else:
                alpha *= 0.5
        move_bodies(tree, B, alpha)
        move_loops(system.loops, plan, B, L, alpha)
        closed = False
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    return (largest <= limit and gap <= widest) or (small and apart <= 100.0 * coarse)


@either(_solve_smooth)
def solve_step(contacts, limits, system, plan, t, h, x, pc, control, active, rate_of, mass, numbers, most, straight,
               touched, T, B, E, f, L, ua, count, Z):  # fmt: skip
    """B.x1 and B.P1 at the end of the step, from the guess in B.guess; True if the residual is within tolerance.

    numbers: see ``maximal.barrier.solve_contact``. straight: give up where a whole Newton step makes the residual
    larger; without contacts only. A guess from the last steps may lie so far off that a line search from it ends at a
    solution that belongs to another motion. touched (2,): contacts of the last step, and whether there was one.
    Z: None, or where to remember the solutions that lead to the last one.
    """
    now, looks = find(contacts, system.tree, x, control, h, B, T, touched[0]), 0
    sure, again, fits = now, False, keep_plan(plan, system.tree, T, now)
    while True:
        if is_full(contacts, T) or not fits:
            note_full(contacts, T)
            return False
        good = solve_contact(
            (T, limits, now), system, plan, t, h, x, pc, control, active, rate_of, mass, numbers,
            touched[1] == 0 and looks == 0, most, B, E, f, L, ua, count,
        )  # fmt: skip
        if not good and again:
            # there is no solution with what was missed, or without what was let go
            now, looks, again = sure, MOST_LOOKS, False
            hold_all(h, B, T, now)
            continue
        sure = now
        note_solution(Z, system.loops, T, B, L, now)
        if not good or looks == MOST_LOOKS:
            break
        # once more, from here, with the contacts that were missed
        looks += 1
        shift_of(system.tree, x, B.x1, B.guess)
        now, again = find_missed(contacts, system.tree, h, B, T, sure, looks > LOOKS)
        fits = keep_plan(plan, system.tree, T, now)
        if not again:
            break
    touched[0], touched[1] = now, 1
    return good


@sweep
def turned_too_far(tree, B):
    """Row of a body that turned by 90 degrees or more in the step, or 0."""
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            R0, R1, trace = ld9(B.P0, i, 0), ld9(B.P1, i, 0), 0.0
            for e in range(9):
                trace += R0[e] * R1[e]
            if not 0.5 * (trace - 1.0) > LEAST_COSINE:
                return i
    return 0


@sweep
def finish(system, t, h, x, control, active, B, f, ua, c1, F1, pn):
    """pn (nu,): momenta along parent axes at the end of the step, without what constraints and contacts do there."""
    tree = system.tree
    shift_of(tree, x, B.x1, B.xi)
    joint_end(system, B, x, control, active, h, f, ua, c1)
    weights(tree, B.P1, F1)
    end_forces(system.forces, system, t + h, B, h, control, f, F1)
    end_momenta(tree, B, h, F1, c1, ua)
    to_parent_axes(tree, B.x1, ua, pn)


@kernel
def take_over(h, B, pn, x, p, past, lengths, known):
    """The end of a step is the start of the next one, and its displacements are the last of three that are known."""
    copy(B.x1, x)
    copy(pn, p)
    for d in range(p.size):
        past[d, 2], past[d, 1], past[d, 0] = past[d, 1], past[d, 0], B.xi[d]
    lengths[2], lengths[1], lengths[0] = lengths[1], lengths[0], h
    known[0] = min(known[0] + 1, 3)


@entry
def rollout(
    system, rest, watched, settled, outline, contacts, limits, effort, kept, uniform, clock, k0, steps, x, p, past,
    lengths, known, every, controls, address, passive, numbers, most, out_q, out_v, out_c, out_n, count,
):  # fmt: skip
    """Advance x, p in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    past (nu, 3), lengths (3,), known (4,): displacements, lengths and number of the last three steps; contacts of the
    last step; whether there was a step; 1 if the first step moves by h times the rates, as Bruedigam et al. start.
    rest: speeds below which nothing bounces, see ``maximal.strikes``; ``watched``, a step in which something does is
    not taken.
    settled: whether momenta have what contacts do at the end of a step (``maximal.arrival``).
    outline: None, a plan, or what one is made from (``maximal.replan``). contacts and limits may be None; kept: their
    variables of the last step (``make_touch``). effort (nv,): bounds of the control. out_c (contacts, 12), out_n
    (rows,): what contacts did in the steps that begin at a saved row, and how many each step has; none without rows.
    count: see ``solve.counts``.
    Returns (steps done, status, row); after a failure x, p are those of the last good step.
    """
    tree, nu, plan = system.tree, p.size, own_plan(outline, system.tree)
    f, L = make_work(system, x), make_loop_rows(system.loops, system.constraints, tree, 2, False)
    B = make_bodies(tree, x, node_count(plan), tendon_room(system.forces))
    E, T = make_blocks(plan), make_touch(contacts, kept, tree)
    if not keep_plan(plan, tree, T, 0):
        return 0, NO_ROOM, 0
    M, A = make_rates(plan, tree, x), make_arrival(T, plan, tree, x)
    pc, ua, u, c1, pn, control = np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu)
    F1, touched = np.zeros((tree.rows.shape[0], 6)), known[1:3]
    rate_of, mass, saved, seen = np.zeros(nu, np.int64), 0.0, 0, 0
    for d in range(nu):
        rate_of[system.coordinates.v[d]] = d
    for i in range(tree.rows.shape[0]):
        mass += tree.const[i, MASS]
    for k in range(steps):
        t, h = tick(uniform, clock, k0, k)
        active, had = passive, (touched[0], touched[1], count[ITERATIONS], count[CUTS])
        # control of this step
        if address != 0:
            if not coupled_rates(plan, system, t, x, p, mass, M, E, f, L, u):
                return k, NO_RATES, 0
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control)
            active = True
        elif controls.shape[0] > 0:
            copy(controls[k], control)
            active = True
        else:
            control[:] = 0.0
        for d in range(nu):
            control[d] = min(max(control[d], -effort[d]), effort[d])
        # guess
        if known[0] == 0 and not coupled_rates(plan, system, t, x, p, mass, M, E, f, L, u):
            return k, NO_RATES, 0
        begin(system, t, h, x, p, B, f, L, pc)
        guess(contacts is not None, h, known[0], u, past, lengths, B.guess)
        # step
        if known[3] == 1:
            shifted(tree, x, B.guess, B.x1)
            evaluate(None, system, t, h, x, pc, control, active, rate_of, True, B, f, L, ua)
            known[3] = 0
        else:
            good = False
            for attempt in range(2):
                # once more from the rates, where the last steps mislead
                if attempt == 1 and (good or known[0] == 0 or is_full(contacts, T)):
                    break
                if attempt == 1:
                    if not coupled_rates(plan, system, t, x, p, mass, M, E, f, L, u):
                        return k, NO_RATES, 0
                    begin(system, t, h, x, p, B, f, L, pc)
                    guess(False, h, 0, u, past, lengths, B.guess)
                good = solve_step(
                    contacts, limits, system, plan, t, h, x, pc, control, active, rate_of, mass, numbers, most,
                    attempt == 0 and known[0] > 0, touched, T, B, E, f, L, ua, count, None,
                )  # fmt: skip
            if is_full(contacts, T):
                # as the step began
                take_back(contacts, T, touched[0])
                count[ITERATIONS], count[CUTS] = had[2], had[3]
                return k, NO_ROOM, 0
            if not good:
                return k, NOT_CONVERGED, worst_contact(contacts, T, touched[0])
        far = turned_too_far(tree, B)
        if far > 0:
            return k, TURNED_TOO_FAR, far
        relieve(limits, T, control)
        finish(system, t, h, x, control, active, B, f, ua, c1, F1, pn)
        if not all_finite(pn) or out_of_hand(B.x1, B.unit):
            return k, NOT_FINITE, 0
        if watched and strikes(contacts, plan, system, t, h, x, p, mass, rest, M, E, f, L, u, B, T, touched[0]):
            take_back(contacts, T, had[0])
            touched[0], touched[1], count[ITERATIONS], count[CUTS] = had
            return k, STRIKES, 0
        if settled and not arrive(
            T, contacts, limits, system, plan, t, h, numbers, rest[0] + rest[1] * h, mass, B, A, E, f, L, touched[0],
            ua, pn,
        ):  # fmt: skip
            return k, NOT_CONVERGED, worst_contact(contacts, T, touched[0])
        save = (k0 + k + 1) % every == 0
        if save and not coupled_rates(plan, system, t + h, B.x1, pn, mass, M, E, f, L, u):
            return k, NO_RATES, 0
        if (k0 + k) % every == 0:
            report_contacts(contacts, T, touched[0], B, out_c, out_n, seen)
            seen += 1
        take_over(h, B, pn, x, p, past, lengths, known)
        if save:
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE, 0


@entry
def row_poses(tree, x, P):
    """Poses (rows, 12) of all rows about the kernels' origin."""
    kinematics(tree, x, P, np.zeros((tree.rates.shape[0], 6)))
