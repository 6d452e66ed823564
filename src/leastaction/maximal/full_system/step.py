"""Parts of a maximal step for a loop in Python: what ``maximal.step.rollout`` does in one call, cut at its solver.

The parts are the same sweeps, in the same order; between them Python solves the linear system
(``maximal.full_system.system``). ``touch`` is (T, limits, number of contacts); a mechanism without contacts and limits
has empty ones, so that one program serves both.

    now   (t, h, mass) of the step                 drive  (pc, control, active, rate_of): momenta and control of it
    room  (B, E, f, L, ua, M, A): scratch memory   found  numbers of an iterate, see FOUND
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import entry
from leastaction.jit.status import DONE, NO_RATES, NOT_CONVERGED, NOT_FINITE, TURNED_TOO_FAR
from leastaction.loops.nodes import make_loop_rows
from leastaction.maximal.arrival import arrive, make_arrival
from leastaction.maximal.barrier import START, find, find_missed, hold_all, scales, too_far
from leastaction.maximal.bodies import keep_bodies, make_bodies, move_bodies, out_of_hand, shift_of, shifted
from leastaction.maximal.contact import (
    aim_at,
    contact_directions,
    make_touch,
    move_contacts,
    products,
    report_contacts,
    rows_at_end,
    start_contacts,
)
from leastaction.maximal.forces import spring_blocks
from leastaction.maximal.full_system.system import (
    points_of,
    put_bodies,
    put_contacts,
    put_couplings,
    put_inequalities,
    put_joints,
    put_limits,
    spread,
)
from leastaction.maximal.graph import clear_couplings, make_blocks, node_count
from leastaction.maximal.loops import keep_loops, loop_blocks, move_loops
from leastaction.maximal.rates import coupled_rates, make_rates
from leastaction.maximal.residual import begin, evaluate, rounding_of
from leastaction.maximal.springs import free_blocks
from leastaction.maximal.step import finish, guess, take_over, turned_too_far
from leastaction.maximal.tendons import tendon_room
from leastaction.tree.arrays import all_finite
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.kinematics import farthest

# What ``look`` finds: largest residual, its largest term, widest gap, merit parts, reach, rounding, farthest
# coordinate; mean and largest product, those of friction and its largest force, largest |phi - s|, mean work of it.
LARGEST, SCALE, GAP, SQUARES, GAPS, REACH, ROUNDING, FARTHEST = range(8)
MEAN, MOST, ROUGH, ROUGHEST, GRIP, OFF, WORK, FOUND = range(8, 16)

# What ``look`` does besides.
PLAIN, STARTING, INSIDE = 0, 1, 2


@entry
def make_room(system, plan, contacts, kept, x):
    """Scratch memory of a rollout: bodies, couplings, forces, constraints, contacts, rates."""
    B, f = make_bodies(system.tree, x, node_count(plan), tendon_room(system.forces)), make_work(system, x)
    L, M = make_loop_rows(system.loops, system.constraints, system.tree, 2, False), make_rates(plan, system.tree, x)
    T = make_touch(contacts, kept, system.tree)
    return B, make_blocks(plan), f, L, T, M, make_arrival(T, plan, system.tree, x)


@entry
def open_step(system, plan, now, x, p, rates, rough, known, past, lengths, address, effort, pc, control, u, room):
    """Control (where ``address`` is not 0), tables at k and guess of a step; False where there are no rates.

    rates: take the guess from the rates instead of the last steps. rough: whether there may be impacts.
    """
    t, h, mass = now
    B, E, f, L, _, M, _ = room
    fresh = rates or known[0] == 0 or address != 0
    if fresh and not coupled_rates(plan, system, t, x, p, mass, M, E, f, L, u):
        return False
    if address != 0:
        positions_out(system.coordinates, x, f.q)
        rates_out(system.coordinates, x, u, f.v)
        call_control(address, t, f.q, f.v, control)
    for d in range(control.size):
        control[d] = min(max(control[d], -effort[d]), effort[d])
    begin(system, t, h, x, p, B, f, L, pc)
    guess(rough, h, 0 if rates else known[0], u, past, lengths, B.guess)
    return True


@entry
def find_contacts(contacts, tree, x, control, h, count, B, T):
    """Contacts that may close in this step; how many. count: those of the last step."""
    return find(contacts, tree, x, control, h, B, T, count)


@entry
def find_more(contacts, tree, x, h, count, late, B, T):
    """``find_missed`` as an entry. The solution is the next guess."""
    shift_of(tree, x, B.x1, B.guess)
    return find_missed(contacts, tree, h, B, T, count, late)


@entry
def hold_contacts(h, count, B, T):
    """``hold_all`` as an entry."""
    hold_all(h, B, T, count)


@entry
def is_too_far(touch, tree, B):
    """``too_far`` as an entry."""
    return too_far(tree, B, touch[0], touch[2])


@entry
def look(touch, system, now, x, drive, closed, what, warm, cold, s0, g0, room, found):
    """Residuals and products at the present iterate into ``found``; returns the scales s0 and g0 of contacts.

    what: PLAIN; STARTING gives contacts their first values, from the scales (times s0) if ``cold``; INSIDE keeps them
    inside their cones first.
    """
    t, h, mass = now
    pc, control, active, rate_of = drive
    B, _, f, L, ua, _, _ = room
    T, limits, count = touch
    if what == STARTING:
        wider, s0, g0 = s0, 1.0, 1.0
    largest, squares, scale, gap, gaps, reach = evaluate(
        (T, limits, count, what == INSIDE), system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua
    )
    found[LARGEST], found[SQUARES], found[SCALE], found[GAP], found[GAPS], found[REACH] = (
        largest, squares, scale, gap, gaps, reach,
    )  # fmt: skip
    found[ROUNDING], found[FARTHEST] = rounding_of(B, reach, h, pc.size), farthest(system.tree, x)
    if what == STARTING:
        s0, g0 = scales(system.tree, B, h, mass, count)
        s0 *= wider
        start_contacts(count, T, limits, warm, START * warm, cold, s0, g0)
    elif what == INSIDE:
        found[MEAN:FOUND] = products(count, T, limits)
    return s0, g0


@entry
def put_guess(tree, x, xi, B):
    """The first iterate: joints closed, at x moved by xi."""
    shifted(tree, x, xi, B.x1)
    B.rho[:] = 0.0


@entry
def assemble(touch, system, plan, now, kappa, exact, Z, lam, room, res, values):
    """The whole system at the present iterate; ``exact``: with nodes of contacts and limits for two barriers kappa."""
    h = now[1]
    B, E, _, L, _, _, _ = room
    T, limits, _ = touch
    res[:] = 0.0
    values[:] = 0.0
    clear_couplings(plan, E, B.W)
    spring_blocks(system.forces, plan, B, E, h)
    free_blocks(system, plan, B, E, h)
    loop_blocks(system.loops, plan, h, B, E, L)
    points_of(system.tree, B, Z.r)
    put_bodies(system.tree, Z, B, h, res, values)
    put_joints(Z, B, lam, res, values)
    put_couplings(plan, Z, B, E, res, values)
    if exact:
        aim_at(touch[2], T, kappa[0], kappa[1])
        put_contacts(Z, T, h, res, values)
        put_limits(Z, B, T, limits, h, res, values)
        put_inequalities(T.rows, Z, T, h, res, values)


@entry
def direct(touch, system, plan, Z, z, exact, room):
    """Directions of everything from the solution z; returns the largest step inside all cones."""
    B, _, _, L, _, _, _ = room
    T, limits, count = touch
    spread(system.tree, Z, B, z)
    keep_bodies(system.tree, B)
    keep_loops(system.loops, L)
    return contact_directions(count, T, limits, B.x1, B.y, B.eta) if exact else math.inf


@entry
def advance(touch, system, plan, alpha, back, s0, g0, exact, room):
    """A part alpha of the directions; ``back`` above 0 puts contacts back to the curve of that barrier."""
    B, _, _, L, _, _, _ = room
    T, limits, count = touch
    move_bodies(system.tree, B, alpha)
    move_loops(system.loops, plan, B, L, alpha)
    if exact:
        move_contacts(count, T, limits, alpha)
        if back > 0.0:
            rows_at_end(count, B, T)
            start_contacts(count, T, limits, back, back, False, s0, g0)


@entry
def close_step(touch, contacts, slowest, settled, numbers, system, plan, now, x, p, drive, past, lengths, known, u,
               out_q, out_v, saved, room):  # fmt: skip
    """Take the step over into x, p; save it where ``saved`` is a row and not -1. Returns (status, row).

    settled: whether momenta have what contacts do at the end of the step (``maximal.arrival``).
    """
    t, h, mass = now
    _, control, active, _ = drive
    B, E, f, L, ua, M, A = room
    T, limits, count = touch
    far = turned_too_far(system.tree, B)
    if far > 0:
        return TURNED_TOO_FAR, far
    c1, F1, pn = np.zeros(p.size), np.zeros((system.tree.rows.shape[0], 6)), np.zeros(p.size)
    finish(system, t, h, x, control, active, B, f, ua, c1, F1, pn)
    if not all_finite(pn) or out_of_hand(B.x1, B.unit):
        return NOT_FINITE, 0
    if settled and not arrive(
        T, contacts, limits, system, plan, t, h, numbers, slowest, mass, B, A, E, f, L, count, ua, pn
    ):
        return NOT_CONVERGED, 0
    if saved >= 0 and not coupled_rates(plan, system, t + h, B.x1, pn, mass, M, E, f, L, u):
        return NO_RATES, 0
    take_over(h, B, pn, x, p, past, lengths, known)
    if saved >= 0:
        positions_out(system.coordinates, x, out_q[saved])
        rates_out(system.coordinates, x, u, out_v[saved])
    return DONE, 0


@entry
def report(T, count, B, out_c, out_n, seen):
    """What the contacts of the step did, into out_c and out_n behind those of ``seen`` steps before it."""
    report_contacts(True, T, count, B, out_c, out_n, seen)
