"""Directions of the unknowns of a step of ``Maximal`` and of its end, for their derivatives.

moves   forces of contacts (nc, 3), and of limits and inequalities (nb,): those of the solution, and their direction
lam     multipliers of loops and constraints: those of the solution, their direction, gaps at both ends
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import MEMORY_OPTIONS, either, kernel, optional, sweep
from leastaction.jit.lanes import ld6
from leastaction.maximal.bodies import shifted
from leastaction.maximal.bounds import bound_moves, bound_replies, limits_at_start
from leastaction.maximal.contact import contact_at, contact_blocks, depth_mark, push_bodies, rows_at_start
from leastaction.maximal.dry import (
    dry_answers,
    dry_at_start,
    dry_count,
    dry_replies,
    keep_dry_forces,
    note_slips,
    put_dry_forces,
)
from leastaction.maximal.frozen import put_frozen
from leastaction.maximal.residual import begin, evaluate
from leastaction.spatial._source.vector import add3, dot6, scale3, sub3
from leastaction.tree.layout import Floats


class Moves(NamedTuple):
    """Forces of contacts and bounds along a direction.

    force (nc, 3), d_force      of contacts: those of the solution, and their direction
    gaps (nc, 6)                gap and slip at both ends of the direction
    push (nb,), d_push          of limits and inequalities
    phi (nb, 2), slopes (nb,)   their gaps at both ends, and the slopes of these
    aim (nc,), goal (nb,)       how the products that are aimed at move
    rub (nd,), d_rub, slips (nd, 2)   dry friction: forces, their direction, slips at both ends
    """

    force: Floats
    d_force: Floats
    gaps: Floats
    push: Floats
    d_push: Floats
    phi: Floats
    slopes: Floats
    aim: Floats
    goal: Floats
    rub: Floats
    d_rub: Floats
    slips: Floats


def _nothing(contacts, T, limits, count):
    """No contacts."""
    return None


@either(_nothing, MEMORY_OPTIONS)
def touching(contacts, T, limits, count):
    """What ``evaluate`` takes."""
    return T, limits, count, False


@optional(None, MEMORY_OPTIONS)
def make_moves(contacts, T, limits):
    """Memory for the forces along a direction."""
    nc, n, nd = T.V.shape[0], T.U.shape[0], dry_count(T.dry)
    return Moves(
        np.zeros((nc, 3)), np.zeros((nc, 3)), np.zeros((nc, 6)), np.zeros(n), np.zeros(n), np.zeros((n, 2)),
        np.zeros(n), np.zeros(nc), np.zeros(n), np.zeros(nd), np.zeros(nd), np.zeros((nd, 2)),
    )  # fmt: skip


@optional(None)
def keep_forces(contacts, T, limits, moves, count):
    """Remember the forces of the solution."""
    keep_dry_forces(T.dry, T.drag, moves.rub)
    for k in range(count):
        for e in range(3):
            moves.force[k, e] = T.V[k, 1 + e]
    for k in range(T.U.shape[0]):
        moves.push[k] = T.U[k, 1]


@optional(None)
def mark_depths(contacts, T, count, h):
    """Contacts that are deep stay so in the direction, and the others do not become so by a small displacement."""
    for k in range(count):
        if T.X[k, 7] == 0.0:
            T.X[k, 7] = depth_mark(T.X[k, 6], h, T.pace[0])


@optional(None)
def still_forces(contacts, moves):
    """No direction yet."""
    moves.d_force[:] = 0.0
    moves.d_push[:] = 0.0
    moves.d_rub[:] = 0.0


@optional(None)
def put_forces(contacts, T, limits, moves, count, e):
    """Forces moved by e times their direction."""
    for k in range(count):
        for c in range(3):
            T.V[k, 1 + c] = moves.force[k, c] + e * moves.d_force[k, c]
    for k in range(T.U.shape[0]):
        T.U[k, 1] = moves.push[k] + e * moves.d_push[k]
    put_dry_forces(T.dry, T.drag, moves.rub, e, moves.d_rub)


@optional(None)
def start_rows(contacts, T, limits, count, x, tau, h, B):
    """Rows of contacts, limits and inequalities at the start of the step."""
    rows_at_start(count, h, B, T)
    limits_at_start(limits, x, tau, h, T.N)
    dry_at_start(T.dry, T.drag, x, h)


@optional(None)
def note_gaps(contacts, T, moves, count, side):
    """Gaps and slips at one end of a direction."""
    for k in range(count):
        for c in range(3):
            moves.gaps[k, 3 * side + c] = T.g[k, c]
    for k in range(T.phi.size):
        moves.phi[k, side] = T.phi[k]
    note_slips(T.dry, T.drag, moves.slips, side)


@kernel
def by_aim(T, k, change):
    """Change of the forces of a contact, at fixed gap and slip, where the product it aims at changes."""
    if change == 0.0:
        return (0.0, 0.0, 0.0)
    before, aim = contact_at(T, k)[3], T.aim[k, 0]
    T.aim[k, 0] = aim + change
    after = contact_at(T, k)[3]
    T.aim[k, 0] = aim
    return sub3(after, before)


@kernel
def by_friction(T, k, dmu):
    """Change of the forces of a contact, at fixed gap and slip, where its friction coefficient changes by dmu."""
    mu = T.mu[k]
    if dmu == 0.0 or mu <= 0.0:
        return (0.0, 0.0, 0.0)
    e = 1.0e-5 * mu
    T.mu[k] = mu + e
    plus = contact_at(T, k)[3]
    T.mu[k] = mu - e
    minus = contact_at(T, k)[3]
    T.mu[k] = mu
    return scale3(dmu / (2.0 * e), sub3(plus, minus))


@optional(None)
def contact_rhs(contacts, T, limits, moves, count, x1, h, eps, dmu, plan, E, B, c):
    """Blocks of contacts and limits, and on the right-hand side what is missing in their forces."""
    contact_blocks(count, T, limits, x1, h, plan, E, B)
    for i in range(B.W.shape[0]):
        for e in range(6):
            B.W[i, e] = 0.0
    for k in range(count):
        if T.hold[k] == 0:
            continue
        r0, r1, r2, _ = contact_at(T, k)
        d0 = (moves.gaps[k, 0] - moves.gaps[k, 3]) / (2.0 * eps)
        d1 = (moves.gaps[k, 1] - moves.gaps[k, 4]) / (2.0 * eps)
        d2 = (moves.gaps[k, 2] - moves.gaps[k, 5]) / (2.0 * eps)
        f = (-r0[0] * d0 - r0[1] * d1 - r0[2] * d2, -r1[0] * d0 - r1[1] * d1 - r1[2] * d2,
             -r2[0] * d0 - r2[1] * d1 - r2[2] * d2)  # fmt: skip
        f = add3(f, add3(by_friction(T, k, dmu[T.ints[k, 3]]), by_aim(T, k, moves.aim[k])))
        push_bodies(T, k, B.W, h, (f[0] - moves.d_force[k, 0], f[1] - moves.d_force[k, 1], f[2] - moves.d_force[k, 2]))
        for e in range(3):
            moves.d_force[k, e] = f[e]
    for k in range(T.U.shape[0]):
        moves.slopes[k] = (moves.phi[k, 0] - moves.phi[k, 1]) / (2.0 * eps)
    bound_replies(limits, T, moves.slopes, moves.goal, moves.d_push, h, c, B.W)
    dry_replies(T.dry, T.drag, moves.slips, eps, dmu, moves.d_rub, h, c)


@optional(None)
def move_forces(contacts, T, limits, moves, count, x1, B):
    """Directions of the forces after a further motion B.eta, B.y."""
    for k in range(count):
        if T.hold[k] == 0:
            continue
        i, j = T.ints[k, 1], T.ints[k, 2]
        z = ld6(B.eta, i, 0)
        d0, d1, d2 = dot6(ld6(T.G, k, 18), z), dot6(ld6(T.G, k, 24), z), dot6(ld6(T.G, k, 30), z)
        if j > 0:
            z = ld6(B.eta, j, 0)
            d0 += dot6(ld6(T.G, k, 36), z)
            d1 += dot6(ld6(T.G, k, 42), z)
            d2 += dot6(ld6(T.G, k, 48), z)
        r0, r1, r2, _ = contact_at(T, k)
        moves.d_force[k, 0] -= r0[0] * d0 + r0[1] * d1 + r0[2] * d2
        moves.d_force[k, 1] -= r1[0] * d0 + r1[1] * d1 + r1[2] * d2
        moves.d_force[k, 2] -= r2[0] * d0 + r2[1] * d1 + r2[2] * d2
    bound_moves(limits, T, x1, B.y, B.eta, moves.d_push)
    dry_answers(T.dry, T.drag, B.y, moves.d_rub)


@optional(None, MEMORY_OPTIONS)
def make_multipliers(loops, L):
    """Multipliers: base, direction; gaps at both ends of a direction."""
    m = L.kind.size
    return np.zeros(m), np.zeros(m), np.zeros((2, m))


@optional(None)
def keep_multipliers(loops, L, lam):
    """Remember the multipliers of the solution."""
    for k in range(L.kind.size):
        lam[0][k] = L.lam[0, k]


@optional(None)
def still_multipliers(loops, lam):
    """No direction yet."""
    lam[1][:] = 0.0


@optional(None)
def put_multipliers(loops, L, lam, e):
    """Multipliers moved by e times their direction."""
    for k in range(L.kind.size):
        L.lam[0, k] = lam[0][k] + e * lam[1][k]


@optional(None)
def note_loops(loops, L, lam, side):
    """Gaps of loops at one end of a direction."""
    for k in range(L.kind.size):
        lam[2][side, k] = L.g[1, k]


@optional(None)
def loop_rhs(loops, plan, lam, B, eps):
    """The motion of the gaps of loops, on the right-hand side."""
    for n in range(plan.parts.shape[0]):
        node, first, count = plan.parts[n, 0], plan.parts[n, 1], plan.parts[n, 2]
        for a in range(6):
            B.W[node, a] = (lam[2][0, first + a] - lam[2][1, first + a]) / (2.0 * eps) if a < count else 0.0


@optional(None)
def move_multipliers(loops, plan, lam, B):
    """Directions of the multipliers after a further motion."""
    for n in range(plan.parts.shape[0]):
        node, first, count = plan.parts[n, 0], plan.parts[n, 1], plan.parts[n, 2]
        for a in range(count):
            lam[1][first + a] += B.eta[node, a]


@sweep
def at_start(x, p, tau, e, contacts, limits, system, t, h, active, rate_of, xb, y, pc, B, f, L, T, count, moves, lam,
             Z, ua, xi):  # fmt: skip
    """The residual, in B.r, of a start x, p, tau, with the unknowns moved by e times their direction."""
    begin(system, t, h, x, p, B, f, L, pc)
    put_frozen(Z, T, e)
    start_rows(contacts, T, limits, count, x, tau, h, B)
    for d in range(xi.size):
        xi[d] = e * y[d]
    shifted(system.tree, xb, xi, B.x1)
    put_forces(contacts, T, limits, moves, count, e)
    put_multipliers(system.loops, L, lam, e)
    evaluate(touching(contacts, T, limits, count), system, t, h, x, pc, tau, active, rate_of, True, B, f, L, ua)
