"""The end of a step with contacts, limits and inequalities: what they do to the momenta there.

A step closes gaps by forces that act at its start, as SHAKE does (Ryckaert et al. 1977), and its momenta lack what acts
at its end: those of a body that rests would be half of a step of free fall. As RATTLE (Andersen 1983) one more force f
acts at the end, in the velocities u alone. With s, gamma, beta, psi, d the solution of the step (``maximal.contact``)

    M (u - u-) = h G^T (f, b)        sigma = a + h G_n u        sigma f = a gamma
    (mu f, b) o (psi', h G_t u) = (mu gamma, beta) o (psi, d)         rows G at k+1, loops and constraints kept

so that f = gamma, b = beta and u = d/h are the solution where the motion goes on as it was, and what rests has u = 0,
whatever the barrier is. A contact that is open does not hold: its slack is widened to

    a = s + s^3 / (h^2 w kappa)        w: inverse mass of the two bodies

which is s where the force of the step moves the bodies by more than s, and beyond it soon as large as the way of a
step, where f = gamma = kappa/s is nothing. All of it is smooth. Limits and inequalities of the user have the same rows
with one force. Efforts of servos act at both ends of a step already. Of contacts with restitution, those that strike
are left to the next step, which ends at the impact.

The equations of motion are linear in u: only the products are not, and one or two iterations of the interior point
method end it where the motion goes on, from the forces of the step. They are the sweeps of the step itself, with the
displacement h u for eta, and the poses at k+1 for those at both ends.

    want (nc, 8)     a, a gamma, the three numbers of the cone, and gap and slip of the step, which are put back
    want_U (nb, 2)   a, a gamma of limits and inequalities
    A                tables of ``Bodies``; xi (nu,): h u
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import gap
from leastaction.dynamics.legendre import to_parent_axes
from leastaction.jit.decorators import MEMORY_OPTIONS, PART_OPTIONS, either, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6, st9
from leastaction.loops.nodes import rows_at
from leastaction.maximal.bodies import centre, clear_blocks, make_bodies, own_residuals, second_moments
from leastaction.maximal.bounds import SERVO, limit_axis, limit_change
from leastaction.maximal.cone import LOOSE, friction_products, keep_in_cone, start_friction
from leastaction.maximal.contact import (
    BLOCKED,
    LET_GO,
    contact_blocks,
    contact_directions,
    contact_forces,
    move_contacts,
    tangents,
    wrench,
)
from leastaction.maximal.dry import (
    aim_dry,
    dry_count,
    dry_is_close,
    keep_dry,
    note_dry,
    rates_for_slips,
    settle_dry,
    start_dry,
    swap_dry,
)
from leastaction.maximal.graph import clear_couplings, node_count, solve_bodies
from leastaction.maximal.loops import RHO, add_multipliers, proximal_blocks, push_ends, trust_rows
from leastaction.maximal.rates import rates_of_rows, rows_twice
from leastaction.maximal.recursion import body_block, scaled6, times
from leastaction.spatial._source.vector import add6, axpy3, axpy6, dot6, lin, matmul, scale3, sub6, transpose
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, PRISMATIC, VELOCITY

# Widened slack over the slack from which a contact does not take part.
OPEN = 1.0e4

# Iterations at most, and those after which the tolerance of the solver will do; part of a product by which it may be
# off; rounding of positions, as a part of them.
MOST, SURELY, CLOSE, ROUNDING = 100, 8, 1.0e-8, 4.0e-15

# Length of an iteration, as a part of the whole one, below which the next one only centres.
CENTRE = 0.2


@optional(None, MEMORY_OPTIONS)
def make_arrival(T, plan, tree, x):
    """Scratch memory: the tables of a step."""
    return make_bodies(tree, x, node_count(plan), (0, 0))


# --- friction -------------------------------------------------------------------------------------------------------
def _rub_of_cone(cone, T, k):
    """The same of the exact cone."""
    x, psi, b1, b2, d1, d2 = T.mu[k] * T.V[k, 1], T.V[k, 4], T.V[k, 2], T.V[k, 3], T.g[k, 1], T.g[k, 2]
    return x * psi + b1 * d1 + b2 * d2, x * d1 + psi * b1, x * d2 + psi * b2


@either(_rub_of_cone, PART_OPTIONS)
def rub_of(cone, T, k):
    """Products of the friction of a contact as ``aim`` has them: three numbers; of a pyramid one, the mean of all."""
    total, number, _, _ = friction_products(cone, T, k)
    return total / number, 0.0, 0.0


def _cone_is_close(cone, T, k, rounding):
    """The same of the exact cone."""
    e0, e1, e2 = rub_of(cone, T, k)
    x, d = T.mu[k] * T.V[k, 1], abs(T.g[k, 1]) + abs(T.g[k, 2])
    most = CLOSE * T.want[k, 2] + x * (rounding + ROUNDING * d)
    return max(abs(e0 - T.want[k, 2]), abs(e1 - T.want[k, 3]), abs(e2 - T.want[k, 4])) <= most


@either(_cone_is_close, PART_OPTIONS)
def rub_is_close(cone, T, k, rounding):
    """Whether the friction of a contact has the products that are wanted."""
    _, _, largest, miss = friction_products(cone, T, k)
    return largest <= 1.05 * T.want[k, 2] and miss <= rounding + ROUNDING * (abs(T.g[k, 1]) + abs(T.g[k, 2]))


def _cone_is_inside(cone, T, k):
    """The same of the exact cone."""
    x, psi, b1, b2, d1, d2 = T.mu[k] * T.V[k, 1], T.V[k, 4], T.V[k, 2], T.V[k, 3], T.g[k, 1], T.g[k, 2]
    return b1 * b1 + b2 * b2 < x * x and d1 * d1 + d2 * d2 < psi * psi


@either(_cone_is_inside, PART_OPTIONS)
def is_inside(cone, T, k):
    """Whether the friction of the step may begin the arrival; a pyramid begins anew."""
    return False


# --- who takes part -------------------------------------------------------------------------------------------------
@kernel
def lightness(tree, i, mass):
    """Inverse mass of the body of row i."""
    if i == 0:
        return 0.0
    own = tree.const[i, MASS]
    return 1.0 / own if own > 0.0 else 1.0 / mass


@kernel
def widened(s, scale):
    """a of a slack s, with scale = h^2 w kappa; and its derivative by s."""
    return (s + s * s * s / scale, 1.0 + 3.0 * s * s / scale) if scale > 0.0 else (s, 1.0)


@kernel
def scale_of_contact(tree, T, k, mass, kappa, h):
    """h^2 w kappa of a contact."""
    return h * h * kappa * (lightness(tree, T.ints[k, 1], mass) + lightness(tree, T.ints[k, 2], mass))


@kernel
def scale_of_bound(tree, limits, T, k, mass, kappa, h, moment):
    """h^2 w kappa of a limit or inequality."""
    nl = limits.where.shape[0]
    if k >= nl:
        size = row_length(T.rows, T.R, k - nl)
        return h * h * kappa * size * size / mass
    row = tree.rates[limits.where[k, 0], 0]
    return h * h * kappa / (mass if tree.rows[row, KIND] == PRISMATIC else moment)


@optional(1.0)
def row_length(rows, R, r):
    """Size of the Jacobian of row r of the inequalities."""
    return R.g[r, 1]


@optional(False)
def strikes_later(contacts, T, k, A, h, slowest):
    """Whether a contact with restitution closes too fast to rest: the next step holds an impact."""
    if contacts.numbers[T.ints[k, 3], 1] <= 0.0 or not math.isfinite(slowest):
        return False
    speed = -dot6(ld6(T.G, k, 0), sub6(ld6(A.eta, T.ints[k, 1], 0), ld6(A.eta, T.ints[k, 2], 0))) / h
    return speed > slowest


@sweep
def keep_solution_of_step(count, T):
    """Remember what the step found."""
    keep_dry(T.dry, T.drag)
    for k in range(count):
        for e in range(T.V.shape[1]):
            T.old_V[k, e] = T.V[k, e]
        T.want[k, 5], T.want[k, 6], T.want[k, 7] = T.g[k, 0], T.g[k, 1], T.g[k, 2]
    for k in range(T.U.shape[0]):
        T.old_U[k, 0], T.old_U[k, 1] = T.U[k, 0], T.U[k, 1]


@sweep
def put_back_solution_of_step(count, T):
    """The forces, gaps and slips of the step, for the next one and for reports; those of the arrival in their place."""
    swap_dry(T.dry, T.drag)
    for k in range(count):
        for e in range(T.V.shape[1]):
            T.V[k, e], T.old_V[k, e] = T.old_V[k, e], T.V[k, e]
        T.g[k, 0], T.g[k, 1], T.g[k, 2] = T.want[k, 5], T.want[k, 6], T.want[k, 7]
        T.hold[k] = T.X[k, 7] != BLOCKED
    for k in range(T.U.shape[0]):
        for e in range(2):
            T.U[k, e], T.old_U[k, e] = T.old_U[k, e], T.U[k, e]
        T.bound[k] = 1


@sweep
def choose(tree, limits, h, mass, moment, T, count):
    """Which contacts and bounds take part, and what their products are to be; how many."""
    held = dry_count(T.dry)
    for k in range(count):
        s, gamma, mark = T.V[k, 0], T.V[k, 1], T.X[k, 7]
        a, _ = widened(s, scale_of_contact(tree, T, k, mass, s * gamma, h))
        T.hold[k] = a < OPEN * s and mark != BLOCKED and mark != LET_GO
        held += T.hold[k]
        T.want[k, 0], T.want[k, 1] = a, a * gamma
        if T.mu[k] > 0.0:
            T.want[k, 2], T.want[k, 3], T.want[k, 4] = rub_of(T.cone, T, k)
    for k in range(T.U.shape[0]):
        s, gamma = T.U[k, 0], T.U[k, 1]
        a, _ = widened(s, scale_of_bound(tree, limits, T, k, mass, s * gamma, h, moment))
        drive = k < limits.where.shape[0] and limits.where[k, 2] == SERVO
        T.bound[k] = a < OPEN * s and not drive
        held += T.bound[k]
        T.want_U[k, 0], T.want_U[k, 1] = a, a * gamma
    return held


# --- tables at k+1 --------------------------------------------------------------------------------------------------
@sweep
def stand(tree, B, A, h):
    """Tables of a step that begins and ends at the poses of B at k+1, without any force."""
    C, none = tree.const, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(1, tree.rows.shape[0]):
        st6(A.F0, i, 0, none)
        st6(A.rho, i, 0, none)
        if C[i, MASS] > 0.0:
            R = ld9(B.P1, i, 0)
            x = centre(C, i, R, ld3(B.P1, i, 9))
            st9(A.A, i, 0, matmul(matmul(R, second_moments(C, i)), transpose(R)))
            st3(A.A, i, 9, x)
            st3(A.X0, i, 9, x)
        d = tree.rows[i, IU]
        for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            axis = ld6(B.S1, e, 0)
            st6(A.S0, e, 0, axis)
            st6(A.S1, e, 0, axis)


@sweep
def twists(tree, A, xi):
    """A.eta of all rows from the displacements xi (nu,)."""
    st6(A.eta, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(1, tree.rows.shape[0]):
        e, d = ld6(A.eta, tree.rows[i, PARENT], 0), tree.rows[i, IU]
        for k in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            e = axpy6(xi[k], ld6(A.S1, k, 0), e)
        st6(A.eta, i, 0, e)


@sweep
def rows_of_arrival(count, limits, B, T):
    """Rows of contacts, limits and inequalities at k+1, for their forces and for the motion."""
    for k in range(count):
        a, b = T.ints[k, 1], T.ints[k, 2]
        _, n, _, _, c, _ = gap(T.ints[k, 0], T.F, k, ld9(B.P1, a, 0), ld3(B.P1, a, 9), ld9(B.P1, b, 0), ld3(B.P1, b, 9))
        t, u = tangents(n)
        for e in range(3):
            row = wrench(c, n if e == 0 else t if e == 1 else u)
            st6(T.G, k, 6 * e, row)
            st6(T.G, k, 18 + 6 * e, row)
            st6(T.G, k, 36 + 6 * e, scaled6(-1.0, row))
    for k in range(limits.where.shape[0]):
        if limits.where[k, 2] != SERVO:
            T.N[k, 0], T.N[k, 1], T.N[k, 2] = limit_axis(limits, T.N, k, B.x1)
    rows_of_inequalities(T.rows, T.R)


@optional(None)
def rows_of_inequalities(rows, R):
    """Wrenches at k are those at k+1."""
    half = R.G.shape[1] // 2
    for r in range(R.G.shape[0]):
        for e in range(half):
            R.G[r, e] = R.G[r, half + e]


@optional(None)
def inequality_openings(rows, T, nl, eta):
    """a + G eta of all inequalities."""
    for k in range(rows.kind.shape[0]):
        for r in range(rows.kind[k, 3], rows.kind[k, 3] + rows.kind[k, 4]):
            o, change = T.R.G.shape[1] // 2, 0.0
            for c in range(rows.kind[k, 2]):
                i = rows.bodies[rows.kind[k, 1] + c]
                if i > 0:
                    change += dot6(ld6(T.R.G, r, o + 6 * c), ld6(eta, i, 0))
            T.phi[nl + r] = T.want_U[nl + r, 0] + change


@sweep
def openings(count, limits, x1, A, T):
    """Gaps a + G eta and slips of contacts, and gaps of bounds, with the displacements A.xi."""
    for k in range(count):
        z = sub6(ld6(A.eta, T.ints[k, 1], 0), ld6(A.eta, T.ints[k, 2], 0))
        T.g[k, 0] = T.want[k, 0] + dot6(ld6(T.G, k, 0), z)
        T.g[k, 1], T.g[k, 2] = dot6(ld6(T.G, k, 6), z), dot6(ld6(T.G, k, 12), z)
    nl = limits.where.shape[0]
    for k in range(nl):
        T.phi[k] = T.want_U[k, 0] + limit_change(limits, T.N, k, x1, A.xi)
    inequality_openings(T.rows, T, nl, A.eta)
    rates_for_slips(T.dry, T.drag, A.xi)


# --- loops and constraints ------------------------------------------------------------------------------------------
@optional(None)
def loops_at_end(loops, system, plan, t, h, B, A, E, f, L):
    """Rows of loops and constraints at k+1, and no multipliers yet; L.rest: rates besides G . V."""
    for i in range(system.tree.rows.shape[0]):
        st6(f.V, i, 0, scaled6(1.0 / h, ld6(A.eta, i, 0)))
    rows_at(system, t, 1.0, B.x1, B.P1, f.V, f, L, 0)
    rows_twice(L)
    for k in range(L.kind.size):
        L.rest[k], L.lam[0, k] = 0.0, 0.0
    rates_of_rows(L, f.V)
    for k in range(L.kind.size):
        if L.kind[k] == VELOCITY:
            L.rest[k] = L.g[0, k] - L.g[1, k]
    trust_rows(plan, E)


@optional(True)
def loop_rates(loops, system, h, A, f, L):
    """Displacements of loops and constraints, and impulses of their multipliers into A.W; True if all are kept.

    That is to rounding of the motion, or of positions where there is next to none.
    """
    far = 0.0
    for i in range(system.tree.rows.shape[0]):
        st6(f.V, i, 0, scaled6(1.0 / h, ld6(A.eta, i, 0)))
        for e in range(9, 12):
            far = max(far, abs(A.A[i, e]))
    small, still = rates_of_rows(L, f.V), True
    for k in range(L.kind.size):
        L.g[1, k] *= h
        still = still and abs(L.g[1, k]) <= ROUNDING * max(1.0, far)
        push_ends(L, k, h, A)
    return small or still


@optional(None)
def loop_parts(loops, plan, h, A, E, L):
    """Nodes of multipliers."""
    proximal_blocks(plan, h, RHO, A, E, L)


# --- residual, products ---------------------------------------------------------------------------------------------
@sweep
def imbalance(system, limits, h, x1, ua, inside, A, f, L, T, count):
    """Residual of the momenta at the displacements A.xi and the present forces, with gaps and slips of contacts.

    inside: put friction back into its cones first. Returns its largest part, its scale, and whether loops and
    constraints are kept.
    """
    tree = system.tree
    twists(tree, A, A.xi)
    openings(count, limits, x1, A, T)
    if inside:
        settle_dry(T.dry, T.drag)
    for k in range(count):
        if inside and T.hold[k] == 1 and T.mu[k] > 0.0:
            keep_in_cone(T.cone, T, k)
    clear_blocks(tree, A)
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            st6(A.L, i, 0, times(body_block(tree.const, i, A, h), ld6(A.eta, i, 0)))
        d = tree.rows[i, IU]
        for a in range(3 if tree.rows[i, KIND] == BALL else 1):
            st3(A.K, d + a, 0, (0.0, 0.0, 0.0))
            A.K[d + a, a] = tree.armature[d + a] / h
            A.c[d + a] = tree.armature[d + a] / h * A.xi[d + a] - ua[d + a]
    kept = loop_rates(system.loops, system, h, A, f, L)
    contact_forces(count, T, limits, h, A)
    largest, _, scale = own_residuals(tree, A, h)
    return largest, scale, kept


@sweep
def off_by(count, T, far):
    """Whether gaps, slips and products are those that are wanted, but for rounding of positions as large as ``far``."""
    good = dry_is_close(T.dry, T.drag, CLOSE)
    for k in range(count):
        if T.hold[k] == 1:
            s, f, rounding = T.V[k, 0], T.V[k, 1], ROUNDING * far
            good = good and abs(T.g[k, 0] - s) <= CLOSE * T.want[k, 0] + rounding
            good = good and abs(s * f - T.want[k, 1]) <= CLOSE * T.want[k, 1] + rounding * f
            if T.mu[k] > 0.0:
                good = good and rub_is_close(T.cone, T, k, rounding)
    for k in range(T.U.shape[0]):
        if T.bound[k] == 1:
            s, f = T.U[k, 0], T.U[k, 1]
            good = good and abs(T.phi[k] - s) <= CLOSE * T.want_U[k, 0] + ROUNDING
            good = good and abs(s * f - T.want_U[k, 1]) <= CLOSE * T.want_U[k, 1] + ROUNDING * f
    return good


# --- the iteration --------------------------------------------------------------------------------------------------
@sweep
def goes_on(T, count):
    """Whether no gap closes: the forces of the step are a good start then."""
    good = True
    for k in range(count):
        good = good and (T.hold[k] == 0 or T.g[k, 0] > 0.1 * T.want[k, 0])
    for k in range(T.U.shape[0]):
        good = good and (T.bound[k] == 0 or T.phi[k] > 0.1 * T.want_U[k, 0])
    return good


@sweep
def first_scales(tree, limits, h, mass, moment, push, T, count):
    """Scale of gaps, and of products of gaps and forces: what the motion would close, and what stops it.

    push: a momentum, kg m/s, that may have to be stopped, beside the motion of A.xi.
    """
    s0, work = 0.0, 0.0
    for k in range(count):
        if T.hold[k] == 1:
            w = lightness(tree, T.ints[k, 1], mass) + lightness(tree, T.ints[k, 2], mass)
            way = max(abs(T.g[k, 0] - T.want[k, 0]) + T.V[k, 0], h * w * push)
            s0, work = max(s0, way), max(work, way * way / (w * h * h), T.V[k, 0] * T.V[k, 1])
    for k in range(T.U.shape[0]):
        if T.bound[k] == 1:
            w = scale_of_bound(tree, limits, T, k, mass, 1.0 / (h * h), h, moment)
            way = max(abs(T.phi[k] - T.want_U[k, 0]) + T.U[k, 0], h * push * math.sqrt(w / mass))
            s0, work = max(s0, way), max(work, way * way / (w * h * h), T.U[k, 0] * T.U[k, 1])
    return s0, work


@sweep
def begin_arrival(T, count, cold, s0, work):
    """First slacks and forces: those of the step, or from the scales alone (cold)."""
    start_dry(T.dry, T.drag, cold)
    for k in range(count):
        if T.hold[k] == 0:
            continue
        if cold:
            T.V[k, 0] = max(abs(T.g[k, 0]), s0)
            T.V[k, 1] = work / T.V[k, 0]
        else:
            T.V[k, 0] = T.g[k, 0]
        if T.mu[k] > 0.0 and cold:
            start_friction(T.cone, T, k, T.mu[k] * T.V[k, 1], work, 0.0, 0.0)
        elif T.mu[k] > 0.0 and not is_inside(T.cone, T, k):
            start_friction(T.cone, T, k, T.mu[k] * T.V[k, 1], T.want[k, 2], T.V[k, 2], T.V[k, 3])
    for k in range(T.U.shape[0]):
        if T.bound[k] == 1:
            T.U[k, 0] = max(abs(T.phi[k]), s0) if cold else T.phi[k]
            T.U[k, 1] = work / T.U[k, 0] if cold else T.U[k, 1]


@sweep
def mean_excess(T, count):
    """By how much products of gaps and forces are too large, in the mean, and those of friction."""
    total, rough, terms, rubs = 0.0, 0.0, 0, 0
    for k in range(count):
        if T.hold[k] == 1:
            total, terms = total + max(T.V[k, 0] * T.V[k, 1] - T.want[k, 1], 0.0), terms + 1
            if T.mu[k] > 0.0:
                rough, rubs = rough + max(rub_of(T.cone, T, k)[0] - T.want[k, 2], 0.0), rubs + 1
    for k in range(T.U.shape[0]):
        if T.bound[k] == 1:
            total, terms = total + max(T.U[k, 0] * T.U[k, 1] - T.want_U[k, 1], 0.0), terms + 1
    return total / max(terms, 1), rough / max(rubs, 1)


@sweep
def aim_on(count, T, kappa, slick):
    """Products to aim at next: those that are wanted, or larger ones on the way there."""
    for k in range(count):
        T.aim[k, 0], T.aim[k, 1] = max(T.want[k, 1], kappa), max(T.want[k, 2], slick)
        T.aim[k, 2], T.aim[k, 3] = T.want[k, 3], T.want[k, 4]
    for k in range(T.U.shape[0]):
        T.goal[k] = max(T.want_U[k, 1], kappa)


@sweep
def stop_momenta(attempt, system, plan, limits, t, h, x1, ua, rtol, mass, B, A, E, f, L, T, count):
    """Iterations; True if momenta, gaps and products are what they have to be.

    attempt: 0 from the forces and displacements of the step, 1 from scales, 2 from no motion, 3 with wide gaps.
    """
    tree, alpha, far, cold = system.tree, 1.0, 0.0, attempt > 0
    for i in range(1, tree.rows.shape[0]):
        for e in range(9, 12):
            far = max(far, abs(B.P1[i, e]))
    for d in range(ua.size):
        A.xi[d] = B.xi[d]
    twists(tree, A, A.xi)
    openings(count, limits, x1, A, T)
    if attempt == 0 and not goes_on(T, count):
        return False
    loops_at_end(system.loops, system, plan, t, h, B, A, E, f, L)
    push = 0.0
    if attempt > 1:
        # no motion, and the scale of all momenta: what stops an impact is much more than what the step has moved
        for d in range(ua.size):
            A.xi[d] = 0.0
        push = imbalance(system, limits, h, x1, ua, False, A, f, L, T, count)[1] / A.unit[0]
    s0, work = first_scales(tree, limits, h, mass, A.unit[1], push, T, count)
    if attempt > 2:
        s0, work = 10.0 * s0, 10.0 * work
    T.tune[1] = LOOSE if attempt < 2 else 1.0
    begin_arrival(T, count, cold, s0, work)
    for turn in range(MOST):
        largest, scale, kept = imbalance(system, limits, h, x1, ua, turn > 0, A, f, L, T, count)
        if not math.isfinite(largest):
            return False
        floor = 1.0e-15 * A.unit[1] * (1.0 + far * far / (A.unit[0] * A.unit[0])) / h
        # linear equations are met to rounding by a whole step
        close = largest <= (1.0e-13 if turn < SURELY else rtol) * scale + floor
        if kept and close and off_by(count, T, far):
            return True
        mean, rough = mean_excess(T, count)
        sigma = min(0.5, max(0.2 if cold else 0.02, (1.0 - alpha) * (1.0 - alpha)))
        if attempt > 1 and alpha < CENTRE:
            # products must not become small before momenta are met
            sigma = 1.0
        aim_on(count, T, sigma * mean, sigma * rough)
        aim_dry(T.dry, T.drag, sigma)
        clear_couplings(plan, E, A.W)
        loop_parts(system.loops, plan, h, A, E, L)
        contact_blocks(count, T, limits, x1, h, plan, E, A)
        if not solve_bodies(plan, tree, A, E, h):
            return False
        alpha = min(1.0, 0.99 * contact_directions(count, T, limits, x1, A.y, A.eta))
        if not alpha > 0.0:
            return False
        for d in range(ua.size):
            A.xi[d] += alpha * A.y[d]
        add_multipliers(system.loops, plan, A, L, alpha)
        move_contacts(count, T, limits, alpha)
        # jammed at a boundary: the next start
        if alpha < 0.02 and attempt < 3:
            return False
    return False


@sweep
def add_end_forces(tree, limits, h, A, T, count, p):
    """Add to momenta p (nu,), along child axes, what contacts, limits and inequalities do at the end of the step."""
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(tree.rows.shape[0]):
        st6(A.W, i, 0, none)
    for d in range(p.size):
        A.c[d] = 0.0
    contact_forces(count, T, limits, h, A)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        l, d, j = ld6(A.W, i, 0), tree.rows[i, IU], tree.rows[i, PARENT]
        for e in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            p[e] -= dot6(ld6(A.S1, e, 0), l) + A.c[e]
        st6(A.W, j, 0, add6(ld6(A.W, j, 0), l))


@sweep
def note_end_forces(T, count):
    """Forces at the end of the step, for reports."""
    note_dry(T.dry, T.drag)
    for k in range(count):
        for e in range(7):
            T.end[k, e] = 0.0
        if T.hold[k] == 1:
            rub = axpy3(T.V[k, 3], lin(ld6(T.G, k, 12)), scale3(T.V[k, 2], lin(ld6(T.G, k, 6))))
            T.end[k, 0] = T.V[k, 1]
            st3(T.end, k, 1, axpy3(T.V[k, 1], lin(ld6(T.G, k, 0)), rub))
            st3(T.end, k, 4, rub)
    for k in range(T.U.shape[0]):
        T.end_U[k] = T.U[k, 1] if T.bound[k] == 1 else 0.0


@optional(True)
def arrive(T, contacts, limits, system, plan, t, h, numbers, slowest, mass, B, A, E, f, L, count, ua, pn):
    """Add to the momenta ua (child axes) and pn (parent axes) at k+1 what contacts do there; False without a solution.

    B.xi: displacements of the step. contacts: None where nothing bounces; slowest: speed below which nothing does.
    """
    tree, rtol = system.tree, numbers[0]
    keep_solution_of_step(count, T)
    if choose(tree, limits, h, mass, A.unit[1], T, count) == 0:
        note_end_forces(T, count)
        put_back_solution_of_step(count, T)
        return True
    stand(tree, B, A, h)
    twists(tree, A, B.xi)
    rows_of_arrival(count, limits, B, T)
    for k in range(count):
        if T.hold[k] == 1 and strikes_later(contacts, T, k, A, h, slowest):
            T.hold[k] = 0
    good = False
    for attempt in range(4):
        if not good:
            good = stop_momenta(attempt, system, plan, limits, t + h, h, B.x1, ua, rtol, mass, B, A, E, f, L, T, count)
    if good:
        add_end_forces(tree, limits, h, A, T, count, ua)
        to_parent_axes(tree, B.x1, ua, pn)
        note_end_forces(T, count)
    put_back_solution_of_step(count, T)
    return good
