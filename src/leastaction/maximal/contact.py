"""Contacts and joint limits of a step of ``Maximal``, eliminated one by one.

A contact is found at k and frozen (``contact.features``). Its force acts at k, its gap is imposed at k+1 (Bruedigam et
al. 2023). With mu the friction coefficient and T = (t, u) two tangents:

    phi(k+1) - s = 0        s gamma = kappa        (mu gamma, beta) o (psi, d) = kappa_f (1, 0, 0)

gamma is the normal force and beta the friction force, in newtons; s the gap and d the slip of the step, in metres; psi
bounds the slip; o is the product of the second-order cone (Alizadeh and Goldfarb 2003). Every product is an energy, so
one barrier kappa fits all; that of friction is smaller, as it lets what sticks creep by kappa_f rho / (mu gamma (1 -
rho^2)) a step, with rho = |beta| / (mu gamma). Material points that touch do not slip. What is round rolls: with z a
material point (its middle), theta the turn of the body in the step and c the point that touches, its surface moves at
the contact by

    z(k+1) - z(k) + theta x (l(k) + l(k+1)) / 2        l = c - z

which is of second order also where the lever l turns. A gap that is negative at k, because another feature was nearer
before or the run began so, is not closed at once, which would shoot the body out: a step takes back RECOVERED of what
is deeper than h^2, and no more than the speed of recovery allows (``least_gap``). phi stands for phi less that.
Solved for the forces, (dgamma, dbeta) = c0 - Kc (dphi, dd), a contact adds to its bodies

    W -= h G0^T (f + c0)        D += h G0^T Kc G1        G0 at k: force to wrench;  G1: motion to (dphi, dd)

so that one iteration is the exact Newton direction of the whole system. The cone may be a pyramid instead
(``maximal.cone``); limits of joints and inequalities of the user have one slack and one force each
(``maximal.bounds``), and coordinates with dry friction a force (``maximal.dry``).

    ints (nc, 4), F (nc, 24)   frozen contacts, see ``contact.layout``
    Z (nc, 21)                 n0, t, u at k; the material points za, zb in their rows; levers la, lb at k
    X (nc, 8)                  za, zb at k; the least gap at k+1, zero unless it is negative at k; a mark
    pace (2,)                  speed of recovery, metres a second; share of the warm barrier that a step begins with
    G (nc, 54)                 G0 (18; the other body has its negative), G1 of body a (18), of body b (18)
    V (nc, 5 + sides), dV      s, gamma, beta (2), psi; multipliers of the sides of a pyramid; and their directions
    g (nc, 3)                  phi over its least value, d
    U (nl + ni, 2), dU         (s, gamma) of limits and inequalities, and their directions
    aim (nc, 4)                products that are aimed at: s gamma, and (mu gamma, beta) o (psi, d)
    hold (nc,)                 1 for a contact that takes part, as all do but those that are blocked, and at the end of
                               a step those that are open
    end (nc, 7), end_U         force of a contact at the end of a step: along the normal, in the world, and friction
                               in the world; of bounds
    origin (nc,)               of contacts that were added: number of the one they replace, or -1 - kind of their gap
    tune (3,)                  metres that bodies may move in the step; LOOSE of ``maximal.cone``, or 1; their radius
    near                       which pairs are near (``contact.broad``)
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.contact.broad import Near, make_near
from leastaction.contact.gap import gap
from leastaction.contact.layout import CENTRED, FEATURE, FULL, PLANE, RA, RB, RIM, XA
from leastaction.contact.points import point_rows
from leastaction.forces.bodies import row3, world_point
from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6
from leastaction.maximal.bounds import (
    Limits,
    Rows,
    bound_blocks,
    bound_directions,
    bound_forces,
    bound_products,
    gaps_of_bounds,
    inequality_rows,
    make_rows,
    settle_bounds,
    start_bounds,
    started,
    worst_bound,
)
from leastaction.maximal.cone import forces_of, friction_direction, friction_products, keep_in_cone, start_friction
from leastaction.maximal.dry import (
    Dry,
    DryRows,
    dry_blocks,
    dry_directions,
    dry_impulses,
    dry_slips,
    make_dry,
    move_dry,
    settle_dry,
)
from leastaction.maximal.graph import add_to
from leastaction.maximal.recursion import less_outer, load_block, scaled6, store_block
from leastaction.spatial._source.so3 import dexp_inv_times, log
from leastaction.spatial._source.vector import (
    add3,
    ang,
    axpy3,
    axpy6,
    cross,
    dot3,
    dot6,
    join,
    lin,
    matmul,
    scale3,
    sub3,
    tmatvec,
    transpose,
)
from leastaction.tree.layout import BALL, IU, KIND, PARENT, Constraints, Floats, Ints

RECOVERED = 0.2
"""Part of a negative gap that a step takes back."""

# Marks of contacts: its force would do work out of nothing; it is deep, or it is not, whatever the gap at k is now; no
# joint between the two bodies moves along its normal; it is so deep that it recovers at the speed of recovery.
LET_GO, DEEP, SHALLOW, BLOCKED, DEEPER = 1.0, 2.0, 3.0, 4.0, 5.0

# Motion along the normal of a contact, over that of a joint, below which the joint does not move along it.
ALONG = 1.0e-5


class Touch(NamedTuple):
    """Scratch memory of contacts, limits and inequalities; see the symbol tables here and in ``maximal.bounds``."""

    ints: Ints
    F: Floats
    Z: Floats
    X: Floats
    G: Floats
    V: Floats
    dV: Floats
    g: Floats
    mu: Floats
    U: Floats
    dU: Floats
    old_ints: Ints
    old_F: Floats
    old_V: Floats
    old_U: Floats
    match: Ints
    new_ints: Ints
    new_F: Floats
    origin: Ints
    tune: Floats
    limits: Limits
    N: Floats
    rows: Constraints | None
    R: Rows | None
    cone: Floats | None
    aim: Floats
    hold: Ints
    end: Floats
    phi: Floats
    goal: Floats
    bound: Ints
    end_U: Floats
    want: Floats
    want_U: Floats
    pace: Floats
    dry: Dry | None
    drag: DryRows | None
    near: Near


@optional(None, MEMORY_OPTIONS)
def make_touch(contacts, kept, tree):
    """Scratch memory around what a rollout keeps.

    kept: contacts (ints, F, V) of the last step, U of limits and inequalities, pace, V of dry friction, and what is
    ``Beside`` contacts.
    """
    ints, F, V, U, pace, drag, beside = kept
    nc, width = V.shape
    return Touch(
        ints, F, np.zeros((nc, 21)), np.zeros((nc, 8)), np.zeros((nc, 54)), V, np.zeros((nc, width)),
        np.zeros((nc, 3)), np.zeros(nc), U, np.zeros(U.shape), np.zeros((nc, 4), np.int64), np.zeros((nc, 24)),
        np.zeros((nc, width)), np.zeros(U.shape), np.zeros(nc, np.int64), np.zeros((nc, 4), np.int64),
        np.zeros((nc, 24)), np.zeros(nc, np.int64), np.ones(3), beside.limits,
        np.zeros((beside.limits.where.shape[0], 7)), beside.rows, make_rows(beside.rows), beside.cone,
        np.zeros((nc, 4)), np.ones(nc, np.int64), np.zeros((nc, 7)), np.zeros(U.shape[0]), np.zeros(U.shape[0]),
        np.ones(U.shape[0], np.int64), np.zeros(U.shape[0]), np.zeros((nc, 8)), np.zeros((U.shape[0], 2)),
        pace, beside.dry, make_dry(beside.dry, drag), make_near(contacts, tree.rows.shape[0], nc),
    )  # fmt: skip


# --- rows -----------------------------------------------------------------------------------------------------------
@kernel
def tangents(n):
    """Two unit vectors perpendicular to a unit vector n and to each other."""
    # the axis that n has least of
    a = (1.0, 0.0, 0.0) if abs(n[0]) < 0.6 else (0.0, 1.0, 0.0)
    t = axpy3(-dot3(n, a), n, a)
    t = scale3(1.0 / math.sqrt(dot3(t, t)), t)
    return t, cross(n, t)


@kernel
def least_gap(phi, h, speed):
    """The least gap at k+1 of a contact with the gap phi at k; what falls in a step is taken back at once.

    speed: at which a contact rises at most, above that of falling for a step.
    """
    return min((1.0 - RECOVERED) * min(phi + h * h, 0.0), phi + most_recovered(h, speed))


@kernel
def most_recovered(h, speed):
    """By how much the gap of a deep contact may open in a step."""
    return max(speed * h, h * h)


@kernel
def depth_mark(least, h, speed):
    """The branch of ``least_gap`` that a least gap at k+1 comes from."""
    if not least < 0.0:
        return SHALLOW
    return DEEPER if (1.0 - RECOVERED) * (least - most_recovered(h, speed) + h * h) > least else DEEP


@kernel
def least_gap_at(mark, phi, h, speed):
    """``least_gap``, or the branch of it that a mark names."""
    if mark == 0.0:
        return least_gap(phi, h, speed)
    if mark == DEEPER:
        return phi + most_recovered(h, speed)
    return (1.0 - RECOVERED) * (phi + h * h) if mark == DEEP else 0.0


@kernel
def wrench(x, f):
    """A force f at x."""
    return join(cross(x, f), f)


@sweep
def rows_at_start(count, h, B, T):
    """Normals, tangents, material points, levers and G0 of all contacts at k, and of inequalities."""
    inequality_rows(T.rows, B.P0, T.R, False)
    for k in range(count):
        kind, a, b = T.ints[k, 0], T.ints[k, 1], T.ints[k, 2]
        Ra, pa, Rb, pb = ld9(B.P0, a, 0), ld3(B.P0, a, 9), ld9(B.P0, b, 0), ld3(B.P0, b, 9)
        phi, n, _, _, ca, cb = gap(kind, T.F, k, Ra, pa, Rb, pb)
        t, u = tangents(n)
        # the middle of a round surface is the material point; what lies between rolls
        za, zb = axpy3(T.F[k, RA], n, ca), axpy3(-T.F[k, RB], n, cb)
        if kind in CENTRED or (kind == RIM and T.F[k, RB] > 0.0):
            za = world_point(B.P0, a, row3(T.F, k, XA))
        elif kind == RIM:
            # a rim and an edge do not roll on each other
            za = ca
        st3(T.Z, k, 0, n)
        st3(T.Z, k, 3, t)
        st3(T.Z, k, 6, u)
        st3(T.Z, k, 9, tmatvec(Ra, sub3(za, pa)))
        st3(T.Z, k, 12, tmatvec(Rb, sub3(zb, pb)))
        st3(T.Z, k, 15, sub3(ca, za))
        st3(T.Z, k, 18, sub3(cb, zb))
        st3(T.X, k, 0, za)
        st3(T.X, k, 3, zb)
        # what is let go is as good as far away
        mark = T.X[k, 7]
        T.X[k, 6] = min(phi, 0.0) - 10.0 * T.tune[0] if mark == LET_GO else least_gap_at(mark, phi, h, T.pace[0])
        st6(T.G, k, 0, wrench(ca, n))
        st6(T.G, k, 6, wrench(ca, t))
        st6(T.G, k, 12, wrench(ca, u))


@kernel
def moves_along(tree, held, S, i, g):
    """Whether the joint of row i moves along a wrench g; rates that are held do not."""
    d, found = tree.rows[i, IU], False
    for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
        s = ld6(S, e, 0)
        turn = math.sqrt(dot3(ang(s), ang(s)) * dot3(ang(g), ang(g)))
        size = turn + math.sqrt(dot3(lin(s), lin(s)) * dot3(lin(g), lin(g)))
        found = found or (held[e] == 0 and abs(dot6(s, g)) > ALONG * size)
    return found


@sweep
def block_contacts(tree, B, T, first, count):
    """Mark contacts whose normal no joint between the two bodies moves along: nothing can be said about their force."""
    held = T.limits.held
    for k in range(first, count):
        i, j, free, g = T.ints[k, 1], T.ints[k, 2], False, ld6(T.G, k, 0)
        # up to the row that carries both
        while i != j and not free:
            if i > j:
                free = moves_along(tree, held, B.S0, i, g)
                i = tree.rows[i, PARENT]
            else:
                free = moves_along(tree, held, B.S0, j, g)
                j = tree.rows[j, PARENT]
        T.hold[k] = free
        if not free:
            T.X[k, 7] = BLOCKED
            for e in range(T.V.shape[1]):
                T.V[k, e] = 0.0


@kernel
def slip_rows(B, T, k, i, point, place, lever, o, sign, round, c):
    """Displacement of the surface of one body at a contact, rows of its tangential parts, times sign, and its turn.

    c: the point of the surface that touches at k+1. The rows take the lever as constant.
    """
    z = world_point(B.P1, i, row3(T.Z, k, point))
    move, theta = sub3(z, ld3(T.X, k, place)), (0.0, 0.0, 0.0)
    t, u = ld3(T.Z, k, 3), ld3(T.Z, k, 6)
    row_t, row_u = wrench(z, t), wrench(z, u)
    if round:
        # the mean of the levers at both ends
        l = scale3(0.5, add3(ld3(T.Z, k, lever), sub3(c, z)))
        theta = log(matmul(ld9(B.P1, i, 0), transpose(ld9(B.P0, i, 0))))
        back = scale3(-1.0, theta)
        move = add3(move, cross(theta, l))
        zero = (0.0, 0.0, 0.0)
        row_t = axpy6(1.0, join(dexp_inv_times(back, cross(l, t)), zero), row_t)
        row_u = axpy6(1.0, join(dexp_inv_times(back, cross(l, u)), zero), row_u)
    st6(T.G, k, o + 6, scaled6(sign, row_t))
    st6(T.G, k, o + 12, scaled6(sign, row_u))
    return move, theta


@kernel
def rolling_rows(B, T, k, Ra, pa, Rb, pb, n, ca, turn_a, turn_b):
    """What the change of the levers at k+1 adds to the rows of the slip."""
    i, j = T.ints[k, 1], T.ints[k, 2]
    for e in range(2):
        # the levers are ca - za and cb - zb
        t, o = ld3(T.Z, k, 3 + 3 * e), 24 + 6 * e
        fa, fb = scale3(0.5, cross(t, turn_a)), scale3(-0.5, cross(t, turn_b))
        row_a, row_b = point_rows(T.ints[k, 0], T.F, k, Ra, pa, Rb, pb, n, ca, fa, fb)
        row_a = axpy6(-1.0, wrench(world_point(B.P1, i, row3(T.Z, k, 9)), fa), row_a)
        st6(T.G, k, o, axpy6(1.0, row_a, ld6(T.G, k, o)))
        if j > 0:
            row_b = axpy6(-1.0, wrench(world_point(B.P1, j, row3(T.Z, k, 12)), fb), row_b)
            st6(T.G, k, o + 18, axpy6(1.0, row_b, ld6(T.G, k, o + 18)))


@sweep
def rows_at_end(count, B, T):
    """Gaps, slips and G1 of all contacts, limits and inequalities at k+1."""
    inequality_rows(T.rows, B.P1, T.R, True)
    gaps_of_bounds(T.limits, T, B.x1)
    dry_slips(T.dry, T.drag, B.xi)
    for k in range(count):
        kind, a, b = T.ints[k, 0], T.ints[k, 1], T.ints[k, 2]
        Ra, pa, Rb, pb = ld9(B.P1, a, 0), ld3(B.P1, a, 9), ld9(B.P1, b, 0), ld3(B.P1, b, 9)
        phi, n, ga, gb, ca, cb = gap(kind, T.F, k, Ra, pa, Rb, pb)
        st6(T.G, k, 18, ga)
        st6(T.G, k, 36, gb)
        la, lb = ld3(T.Z, k, 15), ld3(T.Z, k, 18)
        round = dot3(la, la) + dot3(lb, lb) > 0.0
        move, turn_a = slip_rows(B, T, k, a, 9, 0, 15, 18, 1.0, round, ca)
        turn_b = (0.0, 0.0, 0.0)
        if b > 0:
            back, turn_b = slip_rows(B, T, k, b, 12, 3, 18, 36, -1.0, round, cb)
            move = sub3(move, back)
        # a ball on fixed ground touches with a lever that does not turn
        if round and (b > 0 or kind != PLANE):
            rolling_rows(B, T, k, Ra, pa, Rb, pb, n, ca, turn_a, turn_b)
        T.g[k, 0] = phi - T.X[k, 6]
        T.g[k, 1] = dot3(ld3(T.Z, k, 3), move)
        T.g[k, 2] = dot3(ld3(T.Z, k, 6), move)


# --- elimination of one contact -------------------------------------------------------------------------------------
@kernel
def contact_at(T, k):
    """Rows of Kc and c0 of contact k for its aims."""
    return forces_of(T.cone, T, k)


@sweep
def aim_at(count, T, kappa, slick):
    """Products of gaps and forces are to be kappa, those of friction ``slick``."""
    for k in range(count):
        T.aim[k, 0], T.aim[k, 1], T.aim[k, 2], T.aim[k, 3] = kappa, slick, 0.0, 0.0
    for k in range(T.goal.size):
        T.goal[k] = kappa


@kernel
def push_bodies(T, k, W, h, f):
    """W -= h G0^T f on body a, and the opposite on body b."""
    w = axpy6(h * f[2], ld6(T.G, k, 12), axpy6(h * f[1], ld6(T.G, k, 6), scaled6(h * f[0], ld6(T.G, k, 0))))
    a, b = T.ints[k, 1], T.ints[k, 2]
    st6(W, a, 0, axpy6(-1.0, w, ld6(W, a, 0)))
    if b > 0:
        st6(W, b, 0, axpy6(1.0, w, ld6(W, b, 0)))


@sweep
def contact_forces(count, T, limits, h, B):
    """Forces of contacts and limits into B.W and B.c."""
    for k in range(count):
        if T.hold[k] == 1:
            push_bodies(T, k, B.W, h, (T.V[k, 1], T.V[k, 2], T.V[k, 3]))
    bound_forces(limits, T, h, B)
    dry_impulses(T.dry, T.drag, h, B.c)


@kernel
def kc_rows(T, k, o, h, r):
    """h times a row of Kc times G1 of one body."""
    return axpy6(h * r[2], ld6(T.G, k, o + 12), axpy6(h * r[1], ld6(T.G, k, o + 6), scaled6(h * r[0], ld6(T.G, k, o))))


@kernel
def contact_block(T, k, o, h, r0, r1, r2, sign, D):
    """D + sign h G0^T Kc G1."""
    D = less_outer(D, scaled6(-sign, ld6(T.G, k, 0)), kc_rows(T, k, o, h, r0))
    D = less_outer(D, scaled6(-sign, ld6(T.G, k, 6)), kc_rows(T, k, o, h, r1))
    return less_outer(D, scaled6(-sign, ld6(T.G, k, 12)), kc_rows(T, k, o, h, r2))


@optional(None)
def pair_blocks(plan, E, D, T, k, h, r0, r1, r2):
    """Blocks between two bodies that touch."""
    a, b = T.ints[k, 1], T.ints[k, 2]
    if b > 0:
        zero = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        none = (zero, zero, zero, zero)
        add_to(plan, E, D, a, b, contact_block(T, k, 36, h, r0, r1, r2, 1.0, none))
        add_to(plan, E, D, b, a, contact_block(T, k, 18, h, r0, r1, r2, -1.0, none))


@sweep
def contact_blocks(count, T, limits, x1, h, plan, E, B):
    """Eliminated contacts and limits: c0 into B.W and B.c, Kc into the blocks and B.K."""
    for k in range(count):
        if T.hold[k] == 0:
            continue
        r0, r1, r2, c0 = contact_at(T, k)
        push_bodies(T, k, B.W, h, c0)
        a = T.ints[k, 1]
        store_block(B.D, a, contact_block(T, k, 18, h, r0, r1, r2, 1.0, load_block(B.D, a)))
        b = T.ints[k, 2]
        if b > 0:
            store_block(B.D, b, contact_block(T, k, 36, h, r0, r1, r2, -1.0, load_block(B.D, b)))
        pair_blocks(plan, E, B.D, T, k, h, r0, r1, r2)
    bound_blocks(limits, T, x1, h, plan, E, B)
    dry_blocks(T.dry, T.drag, h, B)


@optional(None)
def report_contacts(contacts, T, count, B, rows, counts, k):
    """What the contacts of a step did, into rows (see ``CONTACT_COLUMNS``) behind those of k steps before it."""
    if k >= counts.size:
        return
    counts[k], first = count, 0
    for c in range(k):
        first += counts[c]
    for c in range(count):
        # at the start of the step and at its end, along the normals there
        rub = axpy3(T.V[c, 3], ld3(T.Z, c, 6), scale3(T.V[c, 2], ld3(T.Z, c, 3)))
        f = add3(axpy3(T.V[c, 1], ld3(T.Z, c, 0), rub), ld3(T.end, c, 1))
        rub = add3(rub, ld3(T.end, c, 4))
        # where the force acts: the point of body a that touches at k, in the world
        x = sub3(add3(ld3(T.X, c, 0), ld3(T.Z, c, 15)), ld3(B.P1, 0, 9))
        rows[first + c, 0], rows[first + c, 1] = T.ints[c, 3], T.F[c, FEATURE]
        rows[first + c, 2], rows[first + c, 3] = T.g[c, 0] + T.X[c, 6], T.V[c, 1] + T.end[c, 0]
        for e in range(3):
            rows[first + c, 4 + e] = f[e]
            rows[first + c, 7 + e] = x[e]
        rows[first + c, 10] = math.sqrt(T.g[c, 1] * T.g[c, 1] + T.g[c, 2] * T.g[c, 2])
        rows[first + c, 11], rows[first + c, 12] = T.ints[c, 1], math.sqrt(dot3(rub, rub))


@optional(False)
def is_full(contacts, T):
    """Whether there was no room for all contacts."""
    return T.near.number[FULL] == 1


@optional(None)
def note_full(contacts, T):
    """There is no room for all contacts, or for their plan."""
    T.near.number[FULL] = 1


@optional(0)
def worst_contact(contacts, T, count):
    """What is off by most work: 1 + pair of a contact, or -1 - number of a limit or inequality; 0 without any."""
    found, most = 0, -1.0
    for k in range(count):
        off = (abs(T.g[k, 0] - T.V[k, 0]) + T.V[k, 0]) * T.V[k, 1]
        if not off <= most:
            found, most = T.ints[k, 3] + 1, off
    row, off = worst_bound(T)
    return -1 - row if off > most else found


# --- the step of the contact variables ------------------------------------------------------------------------------
@sweep
def contact_directions(count, T, limits, x1, dq, eta):
    """Directions of the contact variables from the motion eta, dq; returns the largest step inside all cones."""
    a = bound_directions(limits, T, x1, dq, eta)
    dry_directions(T.dry, T.drag, dq)
    for k in range(count):
        if T.hold[k] == 0:
            continue
        i, j = T.ints[k, 1], T.ints[k, 2]
        z = ld6(eta, i, 0)
        dp, e1, e2 = dot6(ld6(T.G, k, 18), z), dot6(ld6(T.G, k, 24), z), dot6(ld6(T.G, k, 30), z)
        if j > 0:
            z = ld6(eta, j, 0)
            dp += dot6(ld6(T.G, k, 36), z)
            e1 += dot6(ld6(T.G, k, 42), z)
            e2 += dot6(ld6(T.G, k, 48), z)
        r0, r1, r2, c0 = contact_at(T, k)
        s, gamma = T.V[k, 0], T.V[k, 1]
        ds, dg = dp + T.g[k, 0] - s, c0[0] - r0[0] * dp
        db1 = c0[1] - r1[0] * dp - r1[1] * e1 - r1[2] * e2
        db2 = c0[2] - r2[0] * dp - r2[1] * e1 - r2[2] * e2
        T.dV[k, 0], T.dV[k, 1], T.dV[k, 2], T.dV[k, 3], T.dV[k, 4] = ds, dg, db1, db2, 0.0
        if T.mu[k] > 0.0:
            a = min(a, friction_direction(T.cone, T, k, dg, db1, db2, e1, e2))
        if ds < 0.0:
            a = min(a, -s / ds)
        if dg < 0.0:
            a = min(a, -gamma / dg)
    return a


@sweep
def move_contacts(count, T, limits, alpha):
    """A part alpha of the direction."""
    move_dry(T.dry, T.drag, alpha)
    for k in range(count):
        if T.hold[k] == 1:
            for e in range(T.V.shape[1]):
                T.V[k, e] += alpha * T.dV[k, e]
    for k in range(T.U.shape[0]):
        if T.bound[k] == 1:
            for e in range(2):
                T.U[k, e] += alpha * T.dU[k, e]


@sweep
def stay_inside(count, T):
    """Gap and slip are no linear functions of the motion: take a gap as it is, and keep friction inside its cones."""
    settle_bounds(T.limits, T)
    settle_dry(T.dry, T.drag)
    for k in range(count):
        if T.hold[k] == 0:
            continue
        if T.g[k, 0] > 0.5 * T.V[k, 0]:
            T.V[k, 0] = T.g[k, 0]
        if T.mu[k] > 0.0:
            keep_in_cone(T.cone, T, k)


@sweep
def products(count, T, limits):
    """Mean and largest product of gaps and forces, and of friction, and its largest force.

    Besides, how far gaps and slips are off at most, and the mean work of that.
    """
    total, most, off, work, terms = bound_products(limits, T)
    rough, roughest, grip, rubs = 0.0, 0.0, 0.0, 0
    for k in range(count):
        if T.hold[k] == 0:
            continue
        a, miss = T.V[k, 0] * T.V[k, 1], abs(T.g[k, 0] - T.V[k, 0])
        total, most, terms = total + a, max(most, a), terms + 1
        off, work = max(off, miss), work + miss * T.V[k, 1]
        if T.mu[k] > 0.0:
            b, number, largest, miss = friction_products(T.cone, T, k)
            rough, roughest, rubs = rough + b, max(roughest, largest), rubs + number
            grip = max(grip, T.mu[k] * T.V[k, 1])
            off, work = max(off, miss), work + miss * T.mu[k] * T.V[k, 1]
    return total / max(terms, 1), most, rough / max(rubs, 1), roughest, grip, off, work / max(terms + rubs, 1)


@sweep
def start_contacts(count, T, limits, kappa, slick, cold, s0, g0):
    """First contact variables: from the last step (warm), or from the scales s0 and g0 alone (cold).

    kappa, slick: products of gaps and of friction to start with, where they are warm.
    """
    for k in range(count):
        if T.hold[k] == 0:
            continue
        mu, b1, b2 = T.mu[k], T.V[k, 2], T.V[k, 3]
        s, gamma = started(T.V[k, 0], T.V[k, 1], T.g[k, 0], kappa, cold, s0, g0)
        T.V[k, 0], T.V[k, 1], T.V[k, 2], T.V[k, 3], T.V[k, 4] = s, gamma, 0.0, 0.0, 0.0
        if mu > 0.0 and cold:
            start_friction(T.cone, T, k, mu * gamma, s * gamma, 0.0, 0.0)
        elif mu > 0.0:
            start_friction(T.cone, T, k, mu * gamma, slick, b1, b2)
    start_bounds(limits, T, kappa, cold, s0, g0)
