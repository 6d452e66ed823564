"""Derivative of the end of a step of ``Maximal`` (``maximal.arrival``) along a direction of its start.

The arrival has unknowns of its own, displacements h u, forces f and multipliers, and linear equations but for the
products. Along a direction of which ``maximal.linear`` has found the coordinates at k+1, the momenta there and the
forces of the step, they are found as it finds its own: residuals, gaps and slips by central differences, the forces of
contacts eliminated. The widened slack a and the product a gamma move with the force of the step, s gamma = kappa:

    ds = -s / gamma dgamma        da = a'(s) ds        d(a gamma) = da gamma + a dgamma

    V1, U1   contacts and bounds of the step         V2, U2   of the arrival         da (nc,), da_U (nb,)
    xi, y    displacements of the arrival, and their direction
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.legendre import to_parent_axes
from leastaction.jit.decorators import MEMORY_OPTIONS, optional, sweep
from leastaction.maximal.arrival import (
    add_end_forces,
    arrive,
    imbalance,
    loop_parts,
    loops_at_end,
    rows_of_arrival,
    scale_of_bound,
    scale_of_contact,
    stand,
    twists,
    widened,
)
from leastaction.maximal.barrier import friction_barrier
from leastaction.maximal.bounds import relieve
from leastaction.maximal.contact import BLOCKED
from leastaction.maximal.dry import copy_dry, dry_count, keep_dry_forces, swap_dry
from leastaction.maximal.graph import clear_couplings, solve_bodies
from leastaction.maximal.moves import (
    at_start,
    contact_rhs,
    keep_multipliers,
    loop_rhs,
    make_moves,
    move_forces,
    move_multipliers,
    note_gaps,
    note_loops,
    put_forces,
    put_multipliers,
    still_forces,
    still_multipliers,
)
from leastaction.maximal.step import finish
from leastaction.tree.arrays import copy
from leastaction.tree.layout import COM, INERTIA, MASS, Floats, Ints

# Corrections at most; part of the motion below which a correction is the last, and below which one is good enough.
MOST, SMALL, TOLERATED = 30, 1.0e-11, 1.0e-5


class Arrival(NamedTuple):
    """What the derivative of an arrival needs; see the symbol table of this file."""

    V1: Floats
    U1: Floats
    V2: Floats
    U2: Floats
    hold: Ints
    bound: Ints
    a: Floats
    da: Floats
    a_U: Floats
    da_U: Floats
    xi: Floats
    y: Floats
    r: Floats
    c: Floats
    control: Floats
    held: Ints
    dry1: Floats
    dry2: Floats


@optional(None, MEMORY_OPTIONS)
def make_arrival_tables(T, nu):
    """Memory for the derivative of an arrival."""
    nc, nb, width = T.V.shape[0], T.U.shape[0], T.V.shape[1]
    return Arrival(
        np.zeros((nc, width)), np.zeros((nb, 2)), np.zeros((nc, width)), np.zeros((nb, 2)), np.zeros(nc, np.int64),
        np.zeros(nb, np.int64), np.zeros(nc), np.zeros(nc), np.zeros(nb), np.zeros(nb), np.zeros(nu), np.zeros(nu),
        np.zeros((2, nu)), np.zeros(nu), np.zeros(nu), np.zeros(1, np.int64),
        np.zeros((dry_count(T.dry), 4)), np.zeros((dry_count(T.dry), 4)),
    )  # fmt: skip


@optional(None, MEMORY_OPTIONS)
def make_end_moves(T, contacts, limits):
    """Forces of the arrival along a direction."""
    return make_moves(contacts, T, limits)


@optional(0.0)
def slick_of(T, numbers, h, B, count):
    """The barrier of friction of a solved step."""
    far, grip = 0.0, 0.0
    for i in range(1, B.A.shape[0]):
        for e in range(9, 12):
            far = max(far, abs(B.A[i, e]))
    for k in range(count):
        grip = max(grip, T.mu[k] * T.V[k, 1])
    return friction_barrier(numbers[1], numbers[3], h, far, grip)


@sweep
def put_part(T, D, count, of_step):
    """Forces of the step, or of the arrival, and who takes part."""
    copy_dry(T.dry, T.drag, D.dry1 if of_step else D.dry2, True)
    for k in range(count):
        for e in range(T.V.shape[1]):
            T.V[k, e] = D.V1[k, e] if of_step else D.V2[k, e]
        T.hold[k] = T.X[k, 7] != BLOCKED if of_step else D.hold[k]
    for k in range(T.U.shape[0]):
        for e in range(2):
            T.U[k, e] = D.U1[k, e] if of_step else D.U2[k, e]
        T.bound[k] = 1 if of_step else D.bound[k]


@optional(True)
def arrive_at_base(T, D, moves, contacts, limits, system, plan, t, h, numbers, slowest, mass, B, A, E, f, L, lam, count,
                   ua, pn):  # fmt: skip
    """The arrival of the solved step; False if it has no solution. Momenta as in ``arrive``."""
    if not arrive(T, contacts, limits, system, plan, t, h, numbers, slowest, mass, B, A, E, f, L, count, ua, pn):
        return False
    copy(A.xi, D.xi)
    keep_multipliers(system.loops, L, lam)
    D.held[0] = dry_count(T.dry)
    copy_dry(T.dry, T.drag, D.dry1, False)
    swap_dry(T.dry, T.drag)
    copy_dry(T.dry, T.drag, D.dry2, False)
    keep_dry_forces(T.dry, T.drag, moves.rub)
    swap_dry(T.dry, T.drag)
    for k in range(count):
        copy(T.V[k], D.V1[k])
        copy(T.old_V[k], D.V2[k])
        D.hold[k], D.a[k] = T.end[k, 0] > 0.0, T.want[k, 0]
        D.held[0] += D.hold[k]
        for e in range(3):
            moves.force[k, e] = D.V2[k, 1 + e]
    for k in range(T.U.shape[0]):
        copy(T.U[k], D.U1[k])
        copy(T.old_U[k], D.U2[k])
        D.bound[k], D.a_U[k] = T.end_U[k] > 0.0, T.want_U[k, 0]
        D.held[0] += D.bound[k]
        moves.push[k] = D.U2[k, 1]
    return True


@sweep
def sizes_of(tree):
    """Mass of all bodies, and their moment of inertia as in ``Bodies.unit``."""
    mass, moment = 0.0, 0.0
    for i in range(1, tree.rows.shape[0]):
        m, C = tree.const[i, MASS], tree.const
        if m > 0.0:
            c = C[i, COM] * C[i, COM] + C[i, COM + 1] * C[i, COM + 1] + C[i, COM + 2] * C[i, COM + 2]
            mass += m
            moment += 0.5 * (C[i, INERTIA] + C[i, INERTIA + 3] + C[i, INERTIA + 5]) + m * c
    return mass, max(moment, 1.0e-300)


@sweep
def moving_slacks(tree, ends, limits, h, kappa, eps, T, D, count, before, moves):
    """da, and how the products of the arrival move, from the directions of the forces of the step in ``before``.

    Masses may be others at the two ends of the direction.
    """
    (mass, moment), plus, minus = sizes_of(tree), sizes_of(ends[0].tree), sizes_of(ends[1].tree)
    for k in range(count):
        s, gamma, dgamma = D.V1[k, 0], D.V1[k, 1], before.d_force[k, 0]
        _, slope = widened(s, scale_of_contact(tree, T, k, mass, kappa, h))
        more = widened(s, scale_of_contact(ends[0].tree, T, k, plus[0], kappa, h))[0]
        less = widened(s, scale_of_contact(ends[1].tree, T, k, minus[0], kappa, h))[0]
        D.da[k] = (more - less) / (2.0 * eps) - (slope * s / gamma * dgamma if gamma > 0.0 else 0.0)
        moves.aim[k] = D.da[k] * gamma + D.a[k] * dgamma
        T.aim[k, 0], T.aim[k, 1], T.aim[k, 2], T.aim[k, 3] = (
            T.want[k, 1], T.want[k, 2], T.want[k, 3], T.want[k, 4],
        )  # fmt: skip
    for k in range(T.U.shape[0]):
        s, gamma, dgamma = D.U1[k, 0], D.U1[k, 1], before.d_push[k]
        _, slope = widened(s, scale_of_bound(tree, limits, T, k, mass, kappa, h, moment))
        more = widened(s, scale_of_bound(ends[0].tree, limits, T, k, plus[0], kappa, h, plus[1]))[0]
        less = widened(s, scale_of_bound(ends[1].tree, limits, T, k, minus[0], kappa, h, minus[1]))[0]
        D.da_U[k] = (more - less) / (2.0 * eps) - (slope * s / gamma * dgamma if gamma > 0.0 else 0.0)
        moves.goal[k] = D.da_U[k] * gamma + D.a_U[k] * dgamma
        T.goal[k] = T.want_U[k, 1]


@sweep
def arrival_at(e, contacts, limits, system, plan, t, h, B, A, E, f, L, T, count, D, moves, lam, ua):
    """Residual in A.r, gaps and slips of the arrival at one end e of the direction; B, ua: what ``finish`` left."""
    put_part(T, D, count, False)
    for k in range(count):
        T.want[k, 0] = D.a[k] + e * D.da[k]
    for k in range(T.U.shape[0]):
        T.want_U[k, 0] = D.a_U[k] + e * D.da_U[k]
    put_forces(contacts, T, limits, moves, count, e)
    stand(system.tree, B, A, h)
    for d in range(D.xi.size):
        A.xi[d] = D.xi[d] + e * D.y[d]
    twists(system.tree, A, A.xi)
    rows_of_arrival(count, limits, B, T)
    loops_at_end(system.loops, system, plan, t + h, h, B, A, E, f, L)
    put_multipliers(system.loops, L, lam, e)
    imbalance(system, limits, h, B.x1, ua, False, A, f, L, T, count)


@sweep
def correct_arrival(contacts, limits, system, plan, h, eps, dmu, B, A, E, L, T, count, D, moves, lam):
    """Add to D.y and the directions of forces and multipliers what takes D.c away.

    Returns whether it could be found, how far it moves, and how far all of it does.
    """
    clear_couplings(plan, E, A.W)
    loop_parts(system.loops, plan, h, A, E, L)
    A.W[:] = 0.0
    A.L[:] = 0.0
    contact_rhs(contacts, T, limits, moves, count, B.x1, h, eps, dmu, plan, E, A, D.c)
    loop_rhs(system.loops, plan, lam, A, eps)
    copy(D.c, A.c)
    if not solve_bodies(plan, system.tree, A, E, h):
        return False, 0.0, 0.0
    last, moved = 0.0, 0.0
    for d in range(D.y.size):
        D.y[d] += A.y[d]
        last, moved = max(last, abs(A.y[d])), max(moved, abs(D.y[d]))
    move_forces(contacts, T, limits, moves, count, B.x1, A)
    move_multipliers(system.loops, plan, lam, A)
    return True, last, moved


@optional(True)
def follow_arrival(T, j, x, p, control, X, P, U, eps, dmu, contacts, limits, system, ends, plan, t, h, active, rate_of,
                   kappa, xb, y, c1, F1, pc, B, A, E, f, L, nc, before, lam1, D, moves, lam, Z, ua, xi, out_x,
                   out_p):  # fmt: skip
    """Momenta at both ends of direction j, after what contacts do there, in out_p; False if there is no direction.

    before, lam1, y: directions of the step. out_x, out_p have what the step leaves there.
    """
    if D.held[0] == 0:
        return True
    moving_slacks(system.tree, ends, limits, h, kappa, eps[j], T, D, nc, before, moves)
    still_forces(contacts, moves)
    still_multipliers(system.loops, lam)
    D.y[:] = 0.0
    good, ended = False, False
    for correction in range(MOST + 1):
        for side in range(3):
            # both ends, and the solution itself
            e = eps[j] if side == 0 else -eps[j] if side == 1 else 0.0
            k = 2 * j + side
            put_part(T, D, nc, True)
            if side == 2:
                at_start(x, p, control, 0.0, contacts, limits, system, t, h, active, rate_of, xb, y, pc, B, f, L, T, nc,
                         before, lam1, Z, ua, xi)  # fmt: skip
                copy(control, D.control)
                relieve(limits, T, D.control)
                finish(system, t, h, x, D.control, active, B, f, ua, c1, F1, pc)
                arrival_at(0.0, contacts, limits, system, plan, t, h, B, A, E, f, L, T, nc, D, moves, lam, ua)
            else:
                at_start(X[k], P[k], U[k], e, contacts, limits, ends[side], t, h, active, rate_of, xb, y, pc, B, f, L,
                         T, nc, before, lam1, Z, ua, xi)  # fmt: skip
                copy(U[k], D.control)
                relieve(limits, T, D.control)
                finish(ends[side], t, h, X[k], D.control, active, B, f, ua, c1, F1, out_p[k])
                arrival_at(e, contacts, limits, ends[side], plan, t, h, B, A, E, f, L, T, nc, D, moves, lam, ua)
                if ended:
                    add_end_forces(ends[side].tree, limits, h, A, T, nc, ua)
                    to_parent_axes(ends[side].tree, B.x1, ua, out_p[k])
                copy(A.r, D.r[side])
                note_gaps(contacts, T, moves, nc, side)
                note_loops(system.loops, L, lam, side)
        if ended:
            break
        for d in range(D.c.size):
            D.c[d] = (D.r[0, d] - D.r[1, d]) / (2.0 * eps[j])
        solved, last, moved = correct_arrival(
            contacts, limits, system, plan, h, eps[j], dmu[j], B, A, E, L, T, nc, D, moves, lam
        )
        if not solved:
            break
        if correction > 0:
            good = last <= TOLERATED * moved or eps[j] * last <= SMALL
            ended = last <= SMALL * moved or eps[j] * last <= 1.0e-3 * SMALL or correction == MOST - 1
    put_part(T, D, nc, True)
    return good and ended
