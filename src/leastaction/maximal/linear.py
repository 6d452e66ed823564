"""Derivative of a step of ``Maximal`` by the implicit function theorem, contacts, limits and loops included.

A solved step has unknowns z: coordinates x1, multipliers lam, contact forces f, and one force for each limit and each
inequality of the user. For a direction d of the start, (x, p, control) + e d, the unknowns move by z + e dz with

    dR(d, dz) = 0        df = -Kc (dphi, dd)        dg = 0

R: residual of ``maximal.bodies``; phi, d: gap and slip of a contact; Kc: its elimination at the solution
(``maximal.cone.forces_of``), at the barrier that the step was solved with; g: gaps of loops. The solution dz comes
from the recursion of the step, with dR on the right-hand side. What dR is, for the motion found so far, is measured by
a central difference of the residual over a displacement of some 1e-5: it has no stiff part, as phi and f are no part of
it, so this costs ten digits of sixteen at most six. Corrections make up for what the recursion leaves out: proximal
terms, dampers of balls and free joints, slopes of forces on bodies. There are two or three of them where that is small,
and as many as it has dimensions where it is not (``solve.minimal_residual``). A direction that they do not find is an
error.

Frozen contacts move along with the start, and those that were added at the end of a first solution with that solution
(``maximal.frozen``): it is then differentiated before the last one, in the same way.

    X, P, U (2 m, .)         ends of each direction, + first      eps (m,)  how far they are
    ends                     the mechanisms at the two ends, where a direction is one of its parameters
    dmu (m, pairs)           change of friction coefficients along each direction
    y (nu,)  dx1             dlam (links,)                        df (contacts, 3), du (limits,)
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.legendre import rates_of
from leastaction.jit.decorators import entry, optional, sweep
from leastaction.jit.status import DONE, NO_DERIVATIVE, NO_RATES, NO_ROOM, NOT_CONVERGED, NOT_FINITE, TURNED_TOO_FAR
from leastaction.loops.nodes import count_rows, make_loop_nodes
from leastaction.maximal.arrival import make_arrival
from leastaction.maximal.arrival_linear import (
    arrive_at_base,
    follow_arrival,
    make_arrival_tables,
    make_end_moves,
    slick_of,
)
from leastaction.maximal.bodies import make_bodies, shifted
from leastaction.maximal.bounds import relieve
from leastaction.maximal.contact import (
    aim_at,
    contact_blocks,
    contact_directions,
    is_full,
    make_touch,
    move_contacts,
    worst_contact,
)
from leastaction.maximal.dry import aim_dry
from leastaction.maximal.forces import spring_blocks
from leastaction.maximal.frozen import (
    contacts_of,
    frozen_at_end,
    frozen_at_start,
    keep_frozen,
    keep_solution,
    make_frozen,
    note_expected,
    put_solution,
    solutions,
)
from leastaction.maximal.graph import clear_couplings, make_blocks, node_count, solve_bodies
from leastaction.maximal.loops import add_multipliers, loop_blocks
from leastaction.maximal.moves import (
    at_start,
    contact_rhs,
    keep_forces,
    keep_multipliers,
    loop_rhs,
    make_moves,
    make_multipliers,
    mark_depths,
    move_forces,
    move_multipliers,
    note_gaps,
    note_loops,
    start_rows,
    still_forces,
    still_multipliers,
)
from leastaction.maximal.replan import keep_plan, own_plan
from leastaction.maximal.residual import begin, evaluate
from leastaction.maximal.springs import free_blocks
from leastaction.maximal.step import finish, guess, solve_step, turned_too_far
from leastaction.maximal.tendons import tendon_room
from leastaction.solve.minimal_residual import improve, make_residuals, weigh
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.layout import MASS

# Corrections end where this part of the right-hand side and of the motion is left, or where so many in turn have not
# halved it and it is below that part, or is a displacement of this size, in radians or metres. More than the last two
# is no solution.
SMALL, PATIENCE, ENOUGH, QUIET = 1.0e-11, 4, 1.0e-6, 1.0e-12
TOLERATED, NEAR = 1.0e-5, 1.0e-10

# Corrections at most, besides the number of unknowns.
MORE = 8


@optional(True)
def polish(contacts, T, limits, count, system, plan, t, h, x, pc, control, active, rate_of, kappa, slick, B, E, f, L,
           ua):  # fmt: skip
    """Newton steps at the barrier itself, as a step ends where products are near it."""
    aim_at(count, T, kappa, slick)
    for _ in range(4):
        evaluate((T, limits, count, True), system, t, h, x, pc, control, active, rate_of, True, B, f, L, ua)
        clear_couplings(plan, E, B.W)
        spring_blocks(system.forces, plan, B, E, h)
        free_blocks(system, plan, B, E, h)
        loop_blocks(system.loops, plan, h, B, E, L)
        aim_dry(T.dry, T.drag, 0.0)
        contact_blocks(count, T, limits, B.x1, h, plan, E, B)
        if not solve_bodies(plan, system.tree, B, E, h):
            return False
        alpha = min(1.0, 0.99 * contact_directions(count, T, limits, B.x1, B.y, B.eta))
        for d in range(B.xi.size):
            B.xi[d] = alpha * B.y[d]
        for k in range(B.x1.size):
            B.oldx[k] = B.x1[k]
        shifted(system.tree, B.oldx, B.xi, B.x1)
        add_multipliers(system.loops, plan, B, L, alpha)
        move_contacts(count, T, limits, alpha)
    return True


@sweep
def correct(contacts, limits, system, plan, h, eps, dmu, c, B, E, L, T, count, moves, lam, y):
    """Add to y, and to the directions of forces and multipliers, what takes away c (nu,); False if that is singular.

    The tables are those of the solution.
    """
    # blocks of the solution, without what the step itself had on the right-hand side
    clear_couplings(plan, E, B.W)
    spring_blocks(system.forces, plan, B, E, h)
    free_blocks(system, plan, B, E, h)
    loop_blocks(system.loops, plan, h, B, E, L)
    B.W[:] = 0.0
    B.L[:] = 0.0
    B.F0[:] = 0.0
    # what is there instead
    contact_rhs(contacts, T, limits, moves, count, B.x1, h, eps, dmu, plan, E, B, c)
    loop_rhs(system.loops, plan, lam, B, eps)
    for d in range(c.size):
        B.c[d] = c[d]
    if not solve_bodies(plan, system.tree, B, E, h):
        return False
    for d in range(c.size):
        y[d] += B.y[d]
    move_forces(contacts, T, limits, moves, count, B.x1, B)
    move_multipliers(system.loops, plan, lam, B)
    return True


@optional(None)
def gather_forces(contacts, moves, at, out):
    """Directions of the forces of contacts, limits and inequalities, from ``at`` on in a list of all unknowns."""
    n = moves.d_force.shape[0]
    for k in range(n):
        for e in range(3):
            out[at + 3 * k + e] = moves.d_force[k, e]
    for k in range(moves.d_push.size):
        out[at + 3 * n + k] = moves.d_push[k]
    for k in range(moves.d_rub.size):
        out[at + 3 * n + moves.d_push.size + k] = moves.d_rub[k]


@optional(None)
def scatter_forces(contacts, moves, at, z):
    """The directions of forces, out of a list of all unknowns."""
    n = moves.d_force.shape[0]
    for k in range(n):
        for e in range(3):
            moves.d_force[k, e] = z[at + 3 * k + e]
    for k in range(moves.d_push.size):
        moves.d_push[k] = z[at + 3 * n + k]
    for k in range(moves.d_rub.size):
        moves.d_rub[k] = z[at + 3 * n + moves.d_push.size + k]


@optional(0)
def force_count(contacts, moves):
    """Number of forces."""
    return 3 * moves.d_force.shape[0] + moves.d_push.size + moves.d_rub.size


@optional(None)
def gather_multipliers(loops, lam, at, out):
    """Directions of the multipliers, from ``at`` on in a list of all unknowns."""
    for k in range(lam[1].size):
        out[at + k] = lam[1][k]


@optional(None)
def scatter_multipliers(loops, lam, at, z):
    """The directions of multipliers, out of a list of all unknowns."""
    for k in range(lam[1].size):
        lam[1][k] = z[at + k]


@sweep
def gather(contacts, loops, y, moves, lam, out):
    """All unknowns of a direction in one list: coordinates, forces, multipliers."""
    for d in range(y.size):
        out[d] = y[d]
    gather_forces(contacts, moves, y.size, out)
    gather_multipliers(loops, lam, y.size + force_count(contacts, moves), out)


@sweep
def scatter(contacts, loops, z, y, moves, lam):
    """The unknowns of a direction, out of one list."""
    for d in range(y.size):
        y[d] = z[d]
    scatter_forces(contacts, moves, y.size, z)
    scatter_multipliers(loops, lam, y.size + force_count(contacts, moves), z)


@sweep
def follow(j, x, p, control, X, P, U, eps, dmu, contacts, limits, system, ends, plan, t, h, active, rate_of, xb, y,
           c, r, pc, B, E, f, L, T, nc, moves, lam, Z, ua, xi, R):  # fmt: skip
    """y and the directions of forces and multipliers along direction j; False if none takes away the right-hand side.

    The corrections go on until the right-hand side and the last of them are small, by ``solve.minimal_residual``.
    """
    still_forces(contacts, moves)
    still_multipliers(system.loops, lam)
    y[:] = 0.0
    R.tried[:] = 0.0
    first, best, nearest, goal, waited = 0.0, np.inf, np.inf, np.inf, 0
    for correction in range(MORE + R.z.size):
        # what is left on the right-hand side
        for side in range(2):
            e, k = eps[j] if side == 0 else -eps[j], 2 * j + side
            at_start(X[k], P[k], U[k], e, contacts, limits, ends[side], t, h, active, rate_of, xb, y, pc, B, f, L, T,
                     nc, moves, lam, Z, ua, xi)  # fmt: skip
            copy(B.r, r[side])
            note_gaps(contacts, T, moves, nc, side)
            note_loops(system.loops, L, lam, side)
        largest, momentum = 0.0, 0.0
        for d in range(c.size):
            c[d] = (r[0, d] - r[1, d]) / (2.0 * eps[j])
            largest, momentum = max(largest, abs(c[d])), max(momentum, abs(pc[d]))
        # what rounding leaves of a difference is nothing, where it is all there is: along coefficients of friction
        largest = max(largest - 1.0e-15 * momentum / eps[j], 0.0)
        first = max(first, largest)
        at_start(x, p, control, 0.0, contacts, limits, system, t, h, active, rate_of, xb, y, pc, B, f, L, T, nc, moves,
                 lam, Z, ua, xi)  # fmt: skip
        if not correct(contacts, limits, system, plan, h, eps[j], dmu[j], c, B, E, L, T, nc, moves, lam, y):
            return False
        gather(contacts, system.loops, y, moves, lam, R.next)

        # how good what was tried is
        moved, off = 0.0, 0.0
        for d in range(y.size):
            moved = max(moved, abs(R.tried[d]))
            off = max(off, abs(R.next[d] - R.tried[d]))
        if correction == 0:
            start = y.size + force_count(contacts, moves)
            weigh(R, 0, y.size)
            weigh(R, y.size, start)
            weigh(R, start, R.z.size)
        else:
            left = max(largest / first if first > 0.0 else 0.0, off / moved if moved > 0.0 else 0.0)
            if left < best:
                best, nearest = left, eps[j] * off
                copy(R.tried, R.best)
            waited += 1
            if left <= goal:
                goal, waited = 0.5 * left, 0
            if left <= SMALL or (waited >= PATIENCE and (best <= ENOUGH or nearest <= QUIET)):
                break
        if not improve(R, correction):
            break
        scatter(contacts, system.loops, R.tried, y, moves, lam)
    scatter(contacts, system.loops, R.best, y, moves, lam)
    return best <= TOLERATED or nearest <= NEAR


@optional(None)
def aim_all(contacts, T, kappa, slick):
    """The products that the step ends with."""
    aim_at(T.mu.size, T, kappa, slick)


@sweep
def go_back(Z, s, contacts, limits, system, x, control, h, T, B, L):
    """The tables of solution s at the start of the step, where B, L and the numbers of contacts are those of it."""
    put_solution(Z, s, system.loops, T, B, L)
    start_rows(contacts, T, limits, contacts_of(Z, s), x, control, h, B)


@sweep
def keep_base(contacts, limits, system, T, B, L, nc, moves, lam, xb):
    """The unknowns of a solution, from which directions lead away."""
    copy(B.x1, xb)
    keep_forces(contacts, T, limits, moves, nc)
    keep_multipliers(system.loops, L, lam)


@entry
def linearize(system, ends, outline, contacts, bouncing, slowest, limits, kept, t, h, x, p, control, active, numbers,
              most, X, P, U, eps, dmu, out_x, out_p, x1, p1):  # fmt: skip
    """The ends out_x (2 m, nx), out_p (2 m, nu) of the next state along every direction; x1, p1: the next state.

    numbers: see ``maximal.barrier.solve_contact``. bouncing: contacts if some bounce, slowest: the speed below which
    they do not. Returns (status, row) as ``maximal.step.rollout`` does.
    """
    tree, nu, plan = system.tree, p.size, own_plan(outline, system.tree)
    f, L = make_work(system, x), make_loop_nodes(system.loops, system.constraints, tree, 2)
    B = make_bodies(tree, x, node_count(plan), tendon_room(system.forces))
    E, T = make_blocks(plan), make_touch(contacts, kept, tree)
    if not keep_plan(plan, tree, T, 0):
        return NO_ROOM, 0
    pc, ua, u, c1 = np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu)
    c, xi, y = np.zeros(nu), np.zeros(nu), np.zeros(nu)
    r, F1, xb = np.zeros((2, nu)), np.zeros((tree.rows.shape[0], 6)), np.zeros(x.size)
    rate_of, mass, count, touched = np.zeros(nu, np.int64), 0.0, np.zeros(8, np.int64), np.zeros(2, np.int64)
    past, lengths = np.zeros((nu, 3)), np.ones(3)
    for d in range(nu):
        rate_of[system.coordinates.v[d]] = d
    for i in range(tree.rows.shape[0]):
        mass += tree.const[i, MASS]
    Z = make_frozen(contacts, T, tree, x, count_rows(system.loops, system.constraints))

    # the step
    if not rates_of(system, t, x, p, f, L, u):
        return NO_RATES, 0
    begin(system, t, h, x, p, B, f, L, pc)
    guess(False, h, 0, u, past, lengths, B.guess)
    note_expected(Z, tree, x, B)
    if not solve_step(contacts, limits, system, plan, t, h, x, pc, control, active, rate_of, mass, numbers, most,
                      False, touched, T, B, E, f, L, ua, count, Z):  # fmt: skip
        if is_full(contacts, T):
            return NO_ROOM, 0
        return NOT_CONVERGED, worst_contact(contacts, T, touched[0])
    turned = turned_too_far(tree, B)
    if turned > 0:
        return TURNED_TOO_FAR, turned
    nc, kappa, solved = touched[0], numbers[1], solutions(Z)
    slick = slick_of(T, numbers, h, B, nc)
    keep_frozen(Z, contacts, T)
    for s in range(solved):
        # at the barrier itself, each solution that the next one depends on, and the last
        if solved > 1:
            nc = contacts_of(Z, s)
            go_back(Z, s, contacts, limits, system, x, control, h, T, B, L)
        if not polish(contacts, T, limits, nc, system, plan, t, h, x, pc, control, active, rate_of, kappa, slick, B, E,
                      f, L, ua):  # fmt: skip
            return NOT_CONVERGED, worst_contact(contacts, T, nc)
        mark_depths(contacts, T, nc, h)
        keep_solution(Z, s, system.loops, T, B, L)
    moves, lam = make_moves(contacts, T, limits), make_multipliers(system.loops, L)
    R = make_residuals(nu + force_count(contacts, moves) + count_rows(system.loops, system.constraints))
    keep_base(contacts, limits, system, T, B, L, nc, moves, lam, xb)

    # the next state itself
    A, D, end_moves = make_arrival(T, plan, tree, x), make_arrival_tables(T, nu), make_end_moves(T, contacts, limits)
    end_lam = make_multipliers(system.loops, L)
    still_forces(contacts, moves)
    still_multipliers(system.loops, lam)
    at_start(x, p, control, 0.0, contacts, limits, system, t, h, active, rate_of, xb, y, pc, B, f, L, T, nc, moves, lam,
             Z, ua, xi)  # fmt: skip
    copy(control, c)
    relieve(limits, T, c)
    finish(system, t, h, x, c, active, B, f, ua, c1, F1, p1)
    copy(xb, x1)
    if not arrive_at_base(T, D, end_moves, bouncing, limits, system, plan, t, h, numbers, slowest, mass, B, A, E, f, L,
                          end_lam, nc, ua, p1):  # fmt: skip
        return NOT_CONVERGED, worst_contact(contacts, T, nc)

    for j in range(eps.size):
        frozen_at_start(Z, contacts, tree, T, x, X[2 * j], X[2 * j + 1], eps[j])
        aim_all(contacts, T, kappa, slick)
        for s in range(solved):
            if solved > 1:
                nc = contacts_of(Z, s)
                put_solution(Z, s, system.loops, T, B, L)
                keep_base(contacts, limits, system, T, B, L, nc, moves, lam, xb)
            if not follow(j, x, p, control, X, P, U, eps, dmu, contacts, limits, system, ends, plan, t, h, active,
                          rate_of, xb, y, c, r, pc, B, E, f, L, T, nc, moves, lam, Z, ua, xi, R):  # fmt: skip
                return NO_DERIVATIVE, 0
            if s + 1 < solved:
                frozen_at_end(Z, s, contacts, tree, T, xb, y, eps[j])
        # the next states at both ends
        for side in range(2):
            e, k = eps[j] if side == 0 else -eps[j], 2 * j + side
            at_start(X[k], P[k], U[k], e, contacts, limits, ends[side], t, h, active, rate_of, xb, y, pc, B, f, L, T,
                     nc, moves, lam, Z, ua, xi)  # fmt: skip
            copy(U[k], c)
            relieve(limits, T, c)
            finish(ends[side], t, h, X[k], c, active, B, f, ua, c1, F1, out_p[k])
            copy(B.x1, out_x[k])
        if not follow_arrival(T, j, x, p, control, X, P, U, eps, dmu, contacts, limits, system, ends, plan, t, h,
                              active, rate_of, kappa, xb, y, c1, F1, pc, B, A, E, f, L, nc, moves, lam, D,
                              end_moves, end_lam, Z, ua, xi, out_x, out_p):  # fmt: skip
            return NO_DERIVATIVE, 0
        if not (all_finite(out_p[2 * j]) and all_finite(out_p[2 * j + 1])):
            return NOT_FINITE, 0
    return (NO_ROOM if is_full(contacts, T) else DONE), 0
