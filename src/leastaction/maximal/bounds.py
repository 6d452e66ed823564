"""Limits of joints, efforts of servos and inequalities of the user in a maximal step: one gap and one force each.

    phi(k+1) + c gamma - s = 0        s gamma = kappa        products are energies, whatever the unit of phi

c is a compliance, zero but for servos. The force acts at k along the derivative of phi there, that of a servo half at k
and half at k+1. So dgamma = (kappa - gamma (phi + c gamma) - gamma dphi)/(s + c gamma) is eliminated: a scalar on a
coordinate, a 3x3 block on a ball, a term of rank one on the bodies of an inequality and between them.

    limit of a coordinate   phi = sgn (x - bound)
    limit of a ball         phi = (|w| - cos(a/2)) 2 / sin(a/2), w the scalar part of its quaternion and a the largest
                            angle: smooth where it is not turned, and near the limit a minus the angle
    effort of a servo       phi = sgn C c (x - bound), and the force is -sgn gamma
    inequality              the user's value; its Jacobian as wrenches about the origin

A servo is a spring K, a damper D and a share w of the control in its joint, u = K (rest - (x + x1)/2) - D (x1 - x)/h
+ w tau = u0 - C x1 with C = K/2 + D/h, and every step has it whole. A relief takes off what is beyond its effort e:

    clip(u, -e, e) = u - gamma1 + gamma2        s1 = c (e - u + gamma1)        s2 = c (e + u + gamma2)

so that bound = (u0 - sgn e)/C. Along the curve s gamma = kappa the sum is at most e and has a slope between 0 and 1 by
u; each step starts on that curve, whatever the last one was. c = 1/C makes s the way that is left to the effort, and is
right where that is wide; of stiff servos it counts WIDTH, as kappa rounds the corner by forces of sqrt(kappa/c).

    where (nl, 4), bounds (nl, 2)   rate, coordinate, COORDINATE, BALL_ANGLE or SERVO, entry of the control; sgn and
                                    bound, of a ball 2/sin(a/2) and cos(a/2), of a servo sgn and e
    drives (nl, 4)                  K, D, rest and w of a servo
    held  (nu,)                     1 for a rate whose limits leave no room: it does not move
    N     (nl, 7)                   direction of the force at k in child axes; phi + c gamma of the last iterate; in
                                    this step sgn, or sgn C c, then bound and c
    U, dU (nl + ni, 2)              s and gamma, and their directions; inequalities behind limits
    phi, goal (nl + ni,)            gaps at k+1, and the products s gamma that are aimed at
    bound (nl + ni,)                1 for a row that takes part, as all do but at the end of a step
    G     (ni, 12 B)                wrenches at k, at k+1;  g (ni, 2): phi, and the size of its Jacobian
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.forces.bodies import link_frame
from leastaction.jit.calls import call_force
from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.maximal.dry import Dry
from leastaction.maximal.graph import rank_one
from leastaction.maximal.recursion import scaled6
from leastaction.spatial._source.vector import add3, axpy6, cross, dot3, dot6, join, matvec, sub3
from leastaction.tree.layout import Constraints, Floats, Ints

# Kinds of rows.
COORDINATE, BALL_ANGLE, SERVO = 0, 1, 2

# Metres or radians that the way of a servo from zero to its effort counts at least.
WIDTH = 1.0e-2


class Limits(NamedTuple):
    """Joint limits and efforts of servos that are enforced; see the symbol table of this file."""

    where: Ints
    bounds: Floats
    drives: Floats
    held: Ints


class Beside(NamedTuple):
    """What a step with contacts knows beside them.

    limits: joint limits and efforts of servos. rows: inequalities of the user, or None. cone: sides of the friction
    pyramid, or None. dry: coordinates with dry friction, or None.
    """

    limits: Limits
    rows: Constraints | None
    cone: Floats | None
    dry: Dry | None


class Rows(NamedTuple):
    """Scratch memory of inequalities; see the symbol table of this file."""

    G: Floats
    g: Floats
    given: Floats
    result: Floats


@optional(None, MEMORY_OPTIONS)
def make_rows(rows):
    """Scratch memory of the user's inequalities."""
    n, B, size, own = 0, 1, 1, 0
    for k in range(rows.kind.shape[0]):
        n += rows.kind[k, 4]
        B = max(B, rows.kind[k, 2])
        size = max(size, rows.kind[k, 4] * (1 + 6 * rows.kind[k, 2]))
        own = max(own, rows.own[k, 1])
    return Rows(np.zeros((n, 12 * B)), np.zeros((n, 2)), np.zeros(18 * B + own), np.zeros(size))


# --- joint limits and efforts ---------------------------------------------------------------------------------------
@kernel
def limit_gap(limits, N, k, x):
    """phi of limit k at coordinates x."""
    i, a, b = limits.where[k, 1], N[k, 4], N[k, 5]
    return a * (abs(x[i]) - b) if limits.where[k, 2] == BALL_ANGLE else a * (x[i] - b)


@kernel
def limit_axis(limits, N, k, x):
    """Derivative of phi of limit k by its rates, in child axes; a coordinate has one."""
    i, a = limits.where[k, 1], N[k, 4]
    if limits.where[k, 2] != BALL_ANGLE:
        return (a, 0.0, 0.0)
    # dw = -s . dq / 2
    a = -0.5 * a if x[i] >= 0.0 else 0.5 * a
    return (a * x[i + 1], a * x[i + 2], a * x[i + 3])


@sweep
def limits_at_start(limits, x, control, h, N):
    """Directions of the forces of limits, bounds and compliances of this step."""
    for k in range(limits.where.shape[0]):
        if limits.where[k, 2] == SERVO:
            K, D, rest, share = limits.drives[k, 0], limits.drives[k, 1], limits.drives[k, 2], limits.drives[k, 3]
            sign, e, at, C = limits.bounds[k, 0], limits.bounds[k, 1], x[limits.where[k, 1]], 0.5 * K + D / h
            u0 = K * (rest - 0.5 * at) + D / h * at + share * control[limits.where[k, 3]]
            N[k, 6] = max(1.0 / C, WIDTH / e)
            N[k, 0], N[k, 4], N[k, 5] = -0.5 * sign, sign * C * N[k, 6], (u0 - sign * e) / C
        else:
            N[k, 4], N[k, 5], N[k, 6] = limits.bounds[k, 0], limits.bounds[k, 1], 0.0
            N[k, 0], N[k, 1], N[k, 2] = limit_axis(limits, N, k, x)


@optional(None)
def relieve(limits, T, control):
    """Take what is beyond the efforts of servos off the control of a solved step, which acts at both ends of it."""
    for k in range(limits.where.shape[0]):
        if limits.where[k, 2] == SERVO:
            control[limits.where[k, 3]] -= limits.bounds[k, 0] * T.U[k, 1]


@kernel
def push_limit(limits, N, k, f, c):
    """Take an impulse f of limit k off c (nu,)."""
    d = limits.where[k, 0]
    for e in range(3 if limits.where[k, 2] == BALL_ANGLE else 1):
        c[d + e] -= f * N[k, e]


@kernel
def limit_change(limits, N, k, x1, dq):
    """dphi of limit k at k+1 along dq."""
    d, a = limits.where[k, 0], limit_axis(limits, N, k, x1)
    return a[0] * dq[d] + a[1] * dq[d + 1] + a[2] * dq[d + 2] if limits.where[k, 2] == BALL_ANGLE else a[0] * dq[d]


@kernel
def limit_block(limits, N, k, f, x1, K):
    """Add f times the direction at k times the derivative at k+1 to K."""
    d, a = limits.where[k, 0], limit_axis(limits, N, k, x1)
    for r in range(3 if limits.where[k, 2] == BALL_ANGLE else 1):
        K[d + r, 0] += f * N[k, r] * a[0]
        K[d + r, 1] += f * N[k, r] * a[1]
        K[d + r, 2] += f * N[k, r] * a[2]


# --- inequalities of the user ---------------------------------------------------------------------------------------
@optional(None)
def inequality_rows(rows, P, R, end):
    """Values and wrenches of all inequalities at poses P, those of k+1 if ``end``."""
    B = R.G.shape[1] // 12
    o = 6 * B if end else 0
    for k in range(rows.kind.shape[0]):
        b, count, r, size = rows.kind[k, 1], rows.kind[k, 2], rows.kind[k, 3], rows.kind[k, 4]
        first = rows.own[k, 1]
        for e in range(first):
            R.given[e] = rows.numbers[rows.own[k, 0] + e]
        for c in range(count):
            A, p = link_frame(rows, b + c, P)
            x = sub3(p, ld3(P, 0, 9))
            for e in range(9):
                R.given[first + 18 * c + e] = A[e]
            for e in range(3):
                R.given[first + 18 * c + 9 + e] = x[e]
        call_force(rows.address[k], 0.0, R.given, R.result)
        for i in range(size):
            total = 0.0
            for c in range(count):
                A, p = link_frame(rows, b + c, P)
                at = size + 6 * (count * i + c)
                turn = (R.result[at], R.result[at + 1], R.result[at + 2])
                push = (R.result[at + 3], R.result[at + 4], R.result[at + 5])
                total += dot3(turn, turn) + dot3(push, push)
                turn, push = matvec(A, turn), matvec(A, push)
                st6(R.G, r + i, o + 6 * c, join(add3(turn, cross(p, push)), push))
            R.g[r + i, 0] = R.result[i]
            R.g[r + i, 1] = math.sqrt(total) if total > 0.0 else 1.0


@kernel
def push_inequality(rows, R, k, r, f, W):
    """Take an impulse f of row r, of inequality k, off W."""
    for c in range(rows.kind[k, 2]):
        i = rows.bodies[rows.kind[k, 1] + c]
        if i > 0:
            st6(W, i, 0, axpy6(-f, ld6(R.G, r, 6 * c), ld6(W, i, 0)))


@kernel
def inequality_change(rows, R, k, r, eta):
    """dphi of row r along the motion eta."""
    o, change = R.G.shape[1] // 2, 0.0
    for c in range(rows.kind[k, 2]):
        i = rows.bodies[rows.kind[k, 1] + c]
        if i > 0:
            change += dot6(ld6(R.G, r, o + 6 * c), ld6(eta, i, 0))
    return change


@optional(None)
def inequality_forces(rows, T, nl, h, W):
    """Forces of all inequalities into W."""
    for k in range(rows.kind.shape[0]):
        for r in range(rows.kind[k, 3], rows.kind[k, 3] + rows.kind[k, 4]):
            if T.bound[nl + r] == 1:
                push_inequality(rows, T.R, k, r, h * T.U[nl + r, 1], W)


@optional(None)
def inequality_blocks(rows, T, nl, h, plan, E, B):
    """Eliminated inequalities."""
    R, o = T.R, T.R.G.shape[1] // 2
    for k in range(rows.kind.shape[0]):
        b, count = rows.kind[k, 1], rows.kind[k, 2]
        for r in range(rows.kind[k, 3], rows.kind[k, 3] + rows.kind[k, 4]):
            if T.bound[nl + r] == 0:
                continue
            s, gamma = T.U[nl + r, 0], T.U[nl + r, 1]
            push_inequality(rows, R, k, r, h * (T.goal[nl + r] - gamma * T.phi[nl + r]) / s, B.W)
            for c in range(count):
                column = scaled6(-h * gamma / s, ld6(R.G, r, 6 * c))
                for e in range(count):
                    rank_one(plan, E, B.D, rows.bodies[b + c], rows.bodies[b + e], column, ld6(R.G, r, o + 6 * e))


@optional(math.inf)
def inequality_directions(rows, T, nl, eta):
    """Directions of slacks and forces; returns the largest step that keeps them positive."""
    a = math.inf
    for k in range(rows.kind.shape[0]):
        for r in range(rows.kind[k, 3], rows.kind[k, 3] + rows.kind[k, 4]):
            if T.bound[nl + r] == 1:
                change = inequality_change(rows, T.R, k, r, eta)
                a = min(a, bound_direction(T, nl + r, 0.0, change))
    return a


@optional((0.0, 0.0, 0.0, 0.0, 0))
def inequality_products(rows, R, nl, U):
    """Sum and largest of the products, largest |phi - s| in terms of a motion, sum of |phi - s| gamma, number."""
    total, most, off, work = 0.0, 0.0, 0.0, 0.0
    for r in range(R.g.shape[0]):
        phi, s, gamma = R.g[r, 0], U[nl + r, 0], U[nl + r, 1]
        miss = abs(phi - s) if math.isfinite(phi) else math.inf
        total, most = total + s * gamma, max(most, s * gamma)
        off, work = max(off, miss / R.g[r, 1]), work + miss * gamma
    return total, most, off, work, R.g.shape[0]


@optional(None)
def start_inequalities(rows, R, nl, U, kappa, cold, s0, g0):
    """First slacks and forces."""
    for r in range(R.g.shape[0]):
        phi, scale = R.g[r, 0], R.g[r, 1] * s0
        if cold:
            U[nl + r, 0] = max(abs(phi), scale)
            U[nl + r, 1] = g0 * s0 / U[nl + r, 0]
        else:
            U[nl + r, 0], U[nl + r, 1] = started(U[nl + r, 0], U[nl + r, 1], phi, kappa, False, scale, g0 / R.g[r, 1])


@optional((0, -1.0))
def worst_inequality(rows, R, nl, U):
    """Number of the row that is off by most work, and how much."""
    worst, most = 0, -1.0
    for r in range(R.g.shape[0]):
        off = (abs(R.g[r, 0] - U[nl + r, 0]) + U[nl + r, 0]) * U[nl + r, 1]
        if not off <= most:
            worst, most = r, off
    return worst, most


# --- both -----------------------------------------------------------------------------------------------------------
@kernel
def bound_slope(T, k, c):
    """width, product and slope of dgamma = (goal - product)/width - slope dphi."""
    s, gamma = T.U[k, 0], T.U[k, 1]
    # a row with a compliance is kept on phi + c gamma = s, where the left side has more rounding than the right
    width, at = s + c * gamma, T.phi[k] if c == 0.0 else s
    return width, gamma * at, gamma / width


@kernel
def bound_direction(T, k, c, change):
    """Directions of one slack and force; returns the largest step that keeps them positive."""
    s, gamma, phi, kappa, a = T.U[k, 0], T.U[k, 1], T.phi[k], T.goal[k], math.inf
    width, product, slope = bound_slope(T, k, c)
    dg = (kappa - product) / width - slope * change
    if c == 0.0:
        ds = change + phi - s
    elif phi < 0.0:
        ds = (kappa - s * (gamma + dg)) / gamma
    else:
        ds = change + c * dg
    T.dU[k, 0], T.dU[k, 1] = ds, dg
    if ds < 0.0:
        a = min(a, -s / ds)
    if dg < 0.0:
        a = min(a, -gamma / dg)
    return a


@kernel
def started(s, gamma, phi, kappa, cold, s0, g0):
    """First slack and force of a contact, limit or inequality."""
    if cold:
        return max(abs(phi), s0), g0
    s = max(s, phi, 1.0e-12)
    if phi < 0.0 and gamma < 1.0e-3 * g0:
        # about to close: values of an impact
        return s0, g0
    if s * gamma < kappa:
        # back to the curve s gamma = kappa, by the one that is small for its kind
        if gamma > 1.0e-3 * g0:
            s = kappa / gamma
        else:
            gamma = kappa / s
    return s, gamma


@kernel
def on_curve(phi, c, kappa):
    """s and gamma with phi + c gamma = s and s gamma = kappa."""
    r = math.sqrt(phi * phi + 4.0 * c * kappa)
    if phi < 0.0:
        return 2.0 * c * kappa / (r - phi), 0.5 * (r - phi) / c
    return 0.5 * (r + phi), 2.0 * kappa / (r + phi)


@sweep
def gaps_of_bounds(limits, T, x1):
    """phi of all limits and inequalities at k+1; those of inequalities are where ``inequality_rows`` left them."""
    nl = limits.where.shape[0]
    for k in range(nl):
        T.phi[k] = limit_gap(limits, T.N, k, x1)
    inequality_gaps(T.rows, T.R, nl, T.phi)


@sweep
def settle_bounds(limits, T):
    """Rows with a compliance lie on phi + c gamma = s but for rounding: there the larger one follows the smaller."""
    for k in range(limits.where.shape[0]):
        c = T.N[k, 6]
        if c > 0.0:
            phi = T.phi[k]
            if phi < 0.0:
                T.U[k, 1] = (T.U[k, 0] - phi) / c
            else:
                T.U[k, 0] = phi + c * T.U[k, 1]


@sweep
def bound_forces(limits, T, h, B):
    """Forces of limits into B.c, of inequalities into B.W."""
    for k in range(limits.where.shape[0]):
        if T.bound[k] == 1:
            push_limit(limits, T.N, k, h * T.U[k, 1], B.c)
    inequality_forces(T.rows, T, limits.where.shape[0], h, B.W)


@sweep
def bound_blocks(limits, T, x1, h, plan, E, B):
    """Eliminated limits and inequalities."""
    for k in range(limits.where.shape[0]):
        if T.bound[k] == 0:
            continue
        width, product, slope = bound_slope(T, k, T.N[k, 6])
        push_limit(limits, T.N, k, h * (T.goal[k] - product) / width, B.c)
        limit_block(limits, T.N, k, h * slope, x1, B.K)
    inequality_blocks(T.rows, T, limits.where.shape[0], h, plan, E, B)


@sweep
def bound_directions(limits, T, x1, dq, eta):
    """Directions of slacks and forces from the motion; returns the largest step that keeps them positive."""
    a = inequality_directions(T.rows, T, limits.where.shape[0], eta)
    for k in range(limits.where.shape[0]):
        if T.bound[k] == 1:
            a = min(a, bound_direction(T, k, T.N[k, 6], limit_change(limits, T.N, k, x1, dq)))
    return a


@sweep
def bound_products(limits, T):
    """Sum and largest of the products, largest |phi - s|, sum of |phi - s| gamma, and number of all."""
    nl = limits.where.shape[0]
    total, most, off, work, terms = inequality_products(T.rows, T.R, nl, T.U)
    for k in range(nl):
        s, gamma = T.U[k, 0], T.U[k, 1]
        phi = s if T.N[k, 6] > 0.0 else T.phi[k]
        T.N[k, 3] = phi
        total, most, off = total + s * gamma, max(most, s * gamma), max(off, abs(phi - s))
        work += abs(phi - s) * gamma
    return total, most, off, work, terms + nl


@sweep
def start_bounds(limits, T, kappa, cold, s0, g0):
    """First slacks and forces: from the last step (warm), or from scales alone (cold)."""
    nl = limits.where.shape[0]
    for k in range(nl):
        phi = T.phi[k]
        if T.N[k, 6] > 0.0:
            T.U[k, 0], T.U[k, 1] = on_curve(phi, T.N[k, 6], g0 * s0 if cold else kappa)
        elif cold:
            T.U[k, 0] = max(abs(phi), 1.0e-2)
            T.U[k, 1] = g0 * s0 / T.U[k, 0]
        else:
            T.U[k, 0], T.U[k, 1] = started(T.U[k, 0], T.U[k, 1], phi, kappa, False, 1.0e-2, g0 * s0 / 1.0e-2)
    start_inequalities(T.rows, T.R, nl, T.U, kappa, cold, s0, g0)


@sweep
def worst_bound(T):
    """Number of the limit or inequality that is off by most work, and how much (less than 0 without any)."""
    nl = T.N.shape[0]
    row, most = worst_inequality(T.rows, T.R, nl, T.U)
    worst = nl + row
    for k in range(nl):
        off = (abs(T.N[k, 3] - T.U[k, 0]) + T.U[k, 0]) * T.U[k, 1]
        if not off <= most:
            worst, most = k, off
    return worst, most


# --- for the derivative of a step -----------------------------------------------------------------------------------
@optional(None)
def inequality_gaps(rows, R, nl, phi):
    """phi of all inequalities, behind nl limits."""
    for r in range(R.g.shape[0]):
        phi[nl + r] = R.g[r, 0]


@optional(None)
def inequality_replies(rows, T, nl, slopes, change, force, h, W):
    """Forces of all inequalities that answer slopes of phi and of goals, and what is new in them taken off W."""
    for k in range(rows.kind.shape[0]):
        for r in range(rows.kind[k, 3], rows.kind[k, 3] + rows.kind[k, 4]):
            if T.bound[nl + r] == 1:
                f = (change[nl + r] - T.U[nl + r, 1] * slopes[nl + r]) / T.U[nl + r, 0]
                push_inequality(rows, T.R, k, r, h * (f - force[nl + r]), W)
                force[nl + r] = f


@optional(None)
def inequality_moves(rows, T, nl, force, eta):
    """Change of the forces of all inequalities along the motion eta."""
    for k in range(rows.kind.shape[0]):
        for r in range(rows.kind[k, 3], rows.kind[k, 3] + rows.kind[k, 4]):
            if T.bound[nl + r] == 1:
                force[nl + r] -= T.U[nl + r, 1] / T.U[nl + r, 0] * inequality_change(rows, T.R, k, r, eta)


@sweep
def bound_replies(limits, T, slopes, change, force, h, c, W):
    """Forces (nl + ni,) that answer slopes of phi and changes of goals; what is new in them is taken off c and W."""
    nl = limits.where.shape[0]
    for k in range(nl):
        if T.bound[k] == 1:
            f = (change[k] - T.U[k, 1] * slopes[k]) / (T.U[k, 0] + T.N[k, 6] * T.U[k, 1])
            push_limit(limits, T.N, k, h * (f - force[k]), c)
            force[k] = f
    inequality_replies(T.rows, T, nl, slopes, change, force, h, W)


@sweep
def bound_moves(limits, T, x1, dq, eta, force):
    """Change of the forces of limits and inequalities along a motion."""
    nl = limits.where.shape[0]
    for k in range(nl):
        if T.bound[k] == 1:
            force[k] -= T.U[k, 1] / (T.U[k, 0] + T.N[k, 6] * T.U[k, 1]) * limit_change(limits, T.N, k, x1, dq)
    inequality_moves(T.rows, T, nl, force, eta)
