"""Interior point iteration of a step of ``Maximal`` with contacts, joint limits and inequalities of the user.

Primal-dual, with one step length for everything. Each iteration is one sweep of the recursion, with the contacts
eliminated (``maximal.contact``). It starts from the forces of the last step (warm); a step that does not converge so
is tried again from scales of the motion alone (cold), then from the configuration at k, which is always feasible, with
friction that stays inside its cones, then with wide gaps.

    kappa    barrier: product of gap and force, joules        s0, g0   scales of a gap and of a force in an impact
    slick    barrier of friction                              grip     largest friction force
    sigma    reduction of the mean product aimed at           alpha    step length
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.broad import begin_search, near_contacts, relative_way
from leastaction.contact.features import same_contacts
from leastaction.contact.gap import gap
from leastaction.contact.layout import DB, DISC, ENDLESS, FEATURE, FULL, PLANE, REACH, XA, XB
from leastaction.forces.bodies import world_point
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld9, st3
from leastaction.maximal.bodies import keep_bodies, move_bodies, place_bodies, shifted
from leastaction.maximal.bounds import limits_at_start
from leastaction.maximal.cone import LOOSE
from leastaction.maximal.contact import (
    BLOCKED,
    LET_GO,
    aim_at,
    block_contacts,
    contact_blocks,
    contact_directions,
    least_gap,
    most_recovered,
    move_contacts,
    products,
    rows_at_end,
    rows_at_start,
    start_contacts,
)
from leastaction.maximal.dry import aim_dry, dry_at_start, dry_excess, keep_dry, start_dry
from leastaction.maximal.forces import spring_blocks
from leastaction.maximal.graph import clear_couplings, solve_bodies
from leastaction.maximal.loops import keep_loops, loop_blocks, move_loops
from leastaction.maximal.residual import evaluate, evaluate_smooth, rounding_of, touch_forces, worst_residuals
from leastaction.maximal.springs import free_blocks
from leastaction.solve.counts import ITERATIONS, MOST
from leastaction.spatial._source.vector import add3, dot3, sub3, tmatvec
from leastaction.tree.layout import MASS

# Counter of steps that had to be tried again.
RESTARTS = 2

# Depth at the end of a step, over the way there, from which a contact counts as missed; how often they are looked for,
# and how often those of pairs that moved farther than their margin.
MISSED, LOOKS, MOST_LOOKS = 0.02, 2, 12

# Margin of a pair at the start of a step, beside its relative motion and what gravity adds: metres.
AHEAD = 1.0e-4

# Largest product over the barrier at which a step ends; and that at which it ends where one more iteration has not
# helped, as rounding may leave so much in long chains. A linear solver that rounds otherwise may end a step one
# iteration earlier or later, and the gap then differs by as large a part of itself.
ENOUGH, NEAR = 1.05, 1.5

# Barrier of friction that a warm start begins with, as a part of that of gaps: it has farther to go.
START = 1.0e-2

# Iterations of a step up to which the next one begins with a smaller warm barrier, and above which it begins with the
# whole one again; by how much smaller, and its least part.
FEW, MANY, SMALLER, SMALLEST = 3, 4, 0.1, 1.0e-3

# Distance of two bodies at the end of a step, over the way there, from which a contact that holds them is false; how
# many times the force of the last step a force is that strikes.
FALSE, STRIKE = 0.1, 3.0


@kernel
def scales(tree, B, h, mass, count):
    """Scale of gaps, s0, and of forces, g0: the motion of a step; the weight, and what stops the motion in a step."""
    fastest = 0.0
    for i in range(1, tree.rows.shape[0]):
        m = tree.const[i, MASS]
        if m > 0.0:
            f = ld3(B.L, i, 3)
            fastest = max(fastest, math.sqrt(dot3(f, f)) / m)
    return max(fastest * h, 10.0 * h * h), 0.2 * mass * (10.0 + fastest / h) / max(count, 1)


@kernel
def friction_barrier(barrier, creep, h, far, grip):
    """Product that friction ends at: what sticks creeps with a speed that does not depend on the step.

    creep: the product for each second of a step. Never below what rounding leaves of a slip, where coordinates are as
    large as ``far``.
    """
    return min(barrier, max(creep * h, 1.0e-14 * grip * far))


@kernel
def motion(B, i, far):
    """How far a point of row i, at most ``far`` from its origin, moves from k to k+1."""
    d, trace = sub3(ld3(B.P1, i, 9), ld3(B.P0, i, 9)), 0.0
    for e in range(9):
        trace += B.P0[i, e] * B.P1[i, e]
    return math.sqrt(dot3(d, d)) + far * math.sqrt(max(0.0, 3.0 - trace))


@sweep
def largest_motion(tree, B, far):
    """The largest ``motion`` of all rows."""
    most = 0.0
    for i in range(1, tree.rows.shape[0]):
        most = max(most, motion(B, i, far))
    return most


@kernel
def loose(contacts, h, N, p):
    """How far apart the bodies of pair p may be at k+1 though a frozen contact holds them there; metres."""
    return FALSE * relative_way(contacts, N, contacts.pairs[p, 0], contacts.pairs[p, 1]) + h * h


@kernel
def too_far(tree, B, T, count):
    """Whether bodies that touch move so far that it may be the solution of another motion: contacts push nothing on."""
    return count > 0 and largest_motion(tree, B, T.tune[2]) > T.tune[0]


@sweep
def find(contacts, tree, x, control, h, B, T, count):
    """Contacts that may close in this step, frozen at k, with the variables they had; returns how many."""
    # what bodies may move in a step: twice the guess, and what gravity adds
    shifted(tree, x, B.guess, B.x1)
    place_bodies(tree, B, True, h)
    T.tune[2] = 0.0
    for k in range(contacts.frames.shape[0]):
        if math.isfinite(contacts.frames[k, REACH]):
            T.tune[2] = max(T.tune[2], contacts.frames[k, REACH])
    # contacts and limits of the last step
    width = T.V.shape[1]
    for k in range(T.U.shape[0]):
        T.old_U[k, 0], T.old_U[k, 1] = T.U[k, 0], T.U[k, 1]
    for k in range(count):
        for e in range(4):
            T.old_ints[k, e] = T.ints[k, e]
        for e in range(24):
            T.old_F[k, e] = T.F[k, e]
        for e in range(width):
            T.old_V[k, e] = T.V[k, e]
    T.tune[0] = 2.0 * largest_motion(tree, B, T.tune[2]) + 20.0 * h * h + 1.0e-3
    begin_search(contacts, T.near, B.P0)
    now = near_contacts(contacts, T.near, B.P0, B.P1, 2.0, 20.0 * h * h + AHEAD, False, T.ints, T.F)
    same_contacts(T.ints, T.F, now, T.old_ints, T.old_F, count, T.match)
    for k in range(now):
        T.mu[k], T.X[k, 7] = contacts.numbers[T.ints[k, 3], 0], 0.0
        for e in range(width):
            T.V[k, e] = T.old_V[T.match[k], e] if T.match[k] >= 0 else 0.0
    rows_at_start(now, h, B, T)
    block_contacts(tree, B, T, 0, now)
    limits_at_start(T.limits, x, control, h, T.N)
    keep_dry(T.dry, T.drag)
    dry_at_start(T.dry, T.drag, x, h)
    return now


@kernel
def frozen_plane(F, row, Ra, pa, Rb, pb, n, ca, cb):
    """Into a row of numbers: the points of both bodies that touch at k+1, and the plane between them."""
    for e in range(24):
        F[row, e] = 0.0
    st3(F, row, XA, tmatvec(Ra, sub3(ca, pa)))
    st3(F, row, XB, tmatvec(Rb, sub3(cb, pb)))
    st3(F, row, DB, tmatvec(Rb, n))


@kernel
def freeze(T, row, a, b, Ra, pa, Rb, pb, n, ca, cb, pair, feature, mu, origin):
    """A row of the tables for the points that touch at k+1; origin: see ``Touch``."""
    frozen_plane(T.F, row, Ra, pa, Rb, pb, n, ca, cb)
    T.F[row, FEATURE] = feature
    T.origin[row] = origin
    T.ints[row, 0], T.ints[row, 1], T.ints[row, 2], T.ints[row, 3] = PLANE, a, b, pair
    for e in range(T.V.shape[1]):
        T.V[row, e] = 0.0
    T.mu[row], T.X[row, 7] = mu, 0.0


@sweep
def distance_at_end(T, B, pair, now):
    """The least gap of a pair among the contacts that were found at k+1."""
    apart = math.inf
    for k in range(now):
        if T.new_ints[k, 3] == pair:
            a, b = T.new_ints[k, 1], T.new_ints[k, 2]
            Ra, pa, Rb, pb = ld9(B.P1, a, 0), ld3(B.P1, a, 9), ld9(B.P1, b, 0), ld3(B.P1, b, 9)
            apart = min(apart, gap(T.new_ints[k, 0], T.new_F, k, Ra, pa, Rb, pb)[0])
    return apart


@kernel
def lift(B, T, k):
    """How far the two points that touch at k have come apart at k+1, along the normal at k."""
    a, b, n = T.ints[k, 1], T.ints[k, 2], ld3(T.Z, k, 0)
    Ra, pa, Rb, pb = ld9(B.P0, a, 0), ld3(B.P0, a, 9), ld9(B.P0, b, 0), ld3(B.P0, b, 9)
    # the points in their rows, and where they are now
    xa, xb = add3(ld3(T.X, k, 0), ld3(T.Z, k, 15)), add3(ld3(T.X, k, 3), ld3(T.Z, k, 18))
    ya = world_point(B.P1, a, tmatvec(Ra, sub3(xa, pa)))
    yb = world_point(B.P1, b, tmatvec(Rb, sub3(xb, pb)))
    return dot3(n, sub3(sub3(ya, xa), sub3(yb, xb)))


@sweep
def let_go(contacts, h, B, T, count, now):
    """Mark contacts whose force would do work out of nothing, and add what takes their place; how many there are now.

    A frozen edge, axis or rim has no ends, and a body may have moved past them: then the contact holds bodies that are
    apart at k+1. Where two features strike and their nearest points run along them, the force at k lifts the points
    that touch there; the points that touch at k+1 take their place. now: contacts found at k+1.
    """
    found, again = count, False
    for k in range(count):
        kind, p = T.ints[k, 0], T.ints[k, 3]
        limit = loose(contacts, h, T.near, p)
        if T.X[k, 7] > 0.0 or kind not in ENDLESS or T.V[k, 0] > 1e-3 * limit:
            continue
        if found == T.mu.size:
            T.near.number[FULL] = 1
            break
        a, b = T.ints[k, 1], T.ints[k, 2]
        struck = T.V[k, 1] > STRIKE * (T.old_V[T.match[k], 1] if k < T.match.size and T.match[k] >= 0 else 0.0)
        if kind != DISC and distance_at_end(T, B, p, now) > limit:
            T.X[k, 7], again = LET_GO, True
        elif struck and lift(B, T, k) > limit + (most_recovered(h, T.pace[0]) if T.X[k, 6] < 0.0 else 0.0):
            Ra, pa, Rb, pb = ld9(B.P1, a, 0), ld3(B.P1, a, 9), ld9(B.P1, b, 0), ld3(B.P1, b, 9)
            _, n, _, _, ca, cb = gap(kind, T.F, k, Ra, pa, Rb, pb)
            freeze(T, found, a, b, Ra, pa, Rb, pb, n, ca, cb, p, T.F[k, FEATURE], T.mu[k], k)
            T.X[k, 7], again = LET_GO, True
            found += 1
    return found, again


@sweep
def hold_all(h, B, T, count):
    """Let nothing go but what is blocked."""
    for k in range(count):
        T.X[k, 7] = BLOCKED if T.X[k, 7] == BLOCKED else 0.0
    rows_at_start(count, h, B, T)


@sweep
def find_missed(contacts, tree, h, B, T, count, late):
    """Contacts that are too deep at k+1 and were not the nearest ones at k, added to the frozen ones; how many now.

    The points that touch at k+1 are frozen as they are, and the plane between them: where the nearest points of two
    round or sharp features run along them within the step, its force would act at another place than its gap. Besides,
    whether the step must be solved again, as there are such contacts or some that are let go. late: only those of pairs
    that moved farther than their margin at k.
    """
    now = near_contacts(contacts, T.near, B.P1, B.P1, FALSE, h * h, True, T.new_ints, T.new_F)
    found, again = (count, False) if late else let_go(contacts, h, B, T, count, now)
    for k in range(now):
        if late and T.near.late[k] == 0:
            continue
        if found == T.mu.size:
            T.near.number[FULL] = 1
            break
        a, b, p = T.new_ints[k, 1], T.new_ints[k, 2], T.new_ints[k, 3]
        Ra, pa, Rb, pb = ld9(B.P1, a, 0), ld3(B.P1, a, 9), ld9(B.P1, b, 0), ld3(B.P1, b, 9)
        after, n, _, _, ca, cb = gap(T.new_ints[k, 0], T.new_F, k, Ra, pa, Rb, pb)
        mu, origin = contacts.numbers[p, 0], -1 - T.new_ints[k, 0]
        freeze(T, found, a, b, Ra, pa, Rb, pb, n, ca, cb, p, T.new_F[k, FEATURE], mu, origin)
        before = gap(PLANE, T.F, found, ld9(B.P0, a, 0), ld3(B.P0, a, 9), ld9(B.P0, b, 0), ld3(B.P0, b, 9))[0]
        # nothing gets deeper than what bodies may move
        if after > -T.tune[0] and least_gap(before, h, T.pace[0]) - after > MISSED * abs(after - before) + h * h:
            found, again = found + 1, True
    if again:
        rows_at_start(found, h, B, T)
        block_contacts(tree, B, T, count, found)
    return found, again


@sweep
def iterate(touch, system, plan, t, h, x, pc, control, active, rate_of, mass, numbers, cold, wide, most, B, E, f, L, ua,
            count):  # fmt: skip
    """Interior point iterations, one at least, from the guess in B.x1; True if all conditions hold.

    touch: (T, limits, number of contacts). cold: start from scales; wide: with wide gaps and without centring again.
    """
    tree, nu = system.tree, pc.size
    T, limits, nc = touch
    rtol, barrier, warm, creep = numbers
    for i in range(B.rho.shape[0]):
        for e in range(6):
            B.rho[i, e] = 0.0
    closed, alpha, steps, good, near = True, 1.0, 0, False, False
    # the first values need gaps and momenta, the first residual needs them
    apart, _, reach = evaluate_smooth(system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua)
    rows_at_end(nc, B, T)
    s0, g0 = scales(tree, B, h, mass, nc)
    if wide:
        s0 *= 10.0
    slick = max(START * warm, min(3.0 * min(barrier, creep * h), START * warm / T.pace[1]))
    start_contacts(nc, T, limits, warm, slick, cold, s0, g0)
    start_dry(T.dry, T.drag, cold)
    touch_forces((T, limits, nc, True), h, B)
    largest, _, scale = worst_residuals(system, B, h)
    while math.isfinite(largest):
        mean, largest_product, rough, roughest, grip, off, work = products(nc, T, limits)
        slick, excess = friction_barrier(barrier, creep, h, reach * B.unit[0], grip), dry_excess(T.dry, T.drag)
        fine = max(rtol, 4.0e-15) * (1.0 + reach)
        ends = (
            steps > 0
            and largest <= rtol * scale + rounding_of(B, reach, h, nu)
            and apart <= fine
            and off <= min(fine * B.unit[0], 0.1 * barrier / max(g0, 1.0e-300) + 1.0e-14)
            and largest_product <= NEAR * barrier
            and roughest <= NEAR * slick
            and excess <= NEAR
        )
        tight = largest_product <= ENOUGH * barrier and roughest <= ENOUGH * slick and excess <= ENOUGH
        if ends and (near or tight):
            good = True
            break
        near = ends
        if steps == most:
            break
        # direction for the next barrier, which must not run ahead of the gaps
        sigma = min(0.5, max(0.2 if cold else 0.02, (1.0 - alpha) * (1.0 - alpha)))
        aim_at(nc, T, max(barrier, sigma * mean, 0.1 * work), max(slick, sigma * rough, 0.1 * work * slick / barrier))
        aim_dry(T.dry, T.drag, sigma)
        clear_couplings(plan, E, B.W)
        spring_blocks(system.forces, plan, B, E, h)
        free_blocks(system, plan, B, E, h)
        loop_blocks(system.loops, plan, h, B, E, L)
        contact_blocks(nc, T, limits, B.x1, h, plan, E, B)
        if not solve_bodies(plan, tree, B, E, h):
            break
        steps += 1
        longest = contact_directions(nc, T, limits, B.x1, B.y, B.eta)
        alpha = min(1.0, max(0.99, 1.0 - mean) * longest)
        if not alpha > 0.0:
            break
        keep_bodies(tree, B)
        keep_loops(system.loops, L)
        move_bodies(tree, B, alpha)
        move_loops(system.loops, plan, B, L, alpha)
        move_contacts(nc, T, limits, alpha)
        closed = False
        if alpha < 0.02 and not wide:
            # jammed at a boundary: back to the curve of the barrier, farther out
            rows_at_end(nc, B, T)
            start_contacts(nc, T, limits, 10.0 * mean, 10.0 * max(mean, rough), False, s0, g0)
        largest, _, scale, apart, _, reach = evaluate(
            (T, limits, nc, True), system, t, h, x, pc, control, active, rate_of, closed, B, f, L, ua
        )
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    return good


@kernel
def quicken(T, attempt, spent):
    """The share of the warm barrier for the next step: smaller after a step of few iterations, as where all rests."""
    if attempt > 0 or spent > MANY:
        T.pace[1] = 1.0
    elif spent <= FEW:
        T.pace[1] = max(SMALLER * T.pace[1], SMALLEST)


@optional(False)
def solve_contact(touch, system, plan, t, h, x, pc, control, active, rate_of, mass, numbers, first, most, B, E, f, L,
                  ua, count):  # fmt: skip
    """A step with contacts, limits and inequalities; the guess is in B.guess. True if one of the attempts converges.

    numbers: tolerance, barrier, barrier of a warm start, barrier of friction for each second of a step. first: whether
    there are no forces of a last step yet.
    """
    tree, T, (rtol, barrier, warm, creep) = system.tree, touch[0], numbers
    for attempt in range(4):
        if attempt == 0 and first:
            continue
        # the guess, or the configuration at k, which is feasible
        for d in range(B.xi.size):
            B.xi[d] = B.guess[d] if attempt < 2 else 0.0
        if attempt > 1 or (attempt == 1 and not first):
            count[RESTARTS] += 1
        shifted(tree, x, B.xi, B.x1)
        T.tune[1], spent = LOOSE if attempt < 2 else 1.0, count[ITERATIONS]
        begun = (rtol, barrier, max(T.pace[1] * warm, min(3.0 * barrier, warm)), creep)
        good = iterate(
            touch, system, plan, t, h, x, pc, control, active, rate_of, mass, begun, attempt > 0, attempt == 3,
            most if attempt == 0 else 4 * most, B, E, f, L, ua, count,
        )  # fmt: skip
        quicken(T, attempt, count[ITERATIONS] - spent)
        if good and (attempt > 1 or not too_far(tree, B, T, touch[2])):
            return True
    return False
