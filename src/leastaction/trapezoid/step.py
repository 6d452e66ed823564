"""Steps of the Lie trapezoid: impulses, guesses, four root finders, rollouts.

Half of every impulse acts at each end of a step. At the start of step k it is h/2 times the force at q^k, at its end
h/2 times the force at q^(k+1); what depends on velocity takes the average velocity of the step, W or xi / h, at both
ends. The control is held over the step. With the symbols of ``trapezoid.residual``:

    steps, updates  (ranks, nu)  Broyden: H_(j+1) = (1 + updates_j steps_j^T) H_j, from H_0 = h M(q^k)^-1     (9)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.dynamics.forward import acceleration, make_work
from leastaction.dynamics.legendre import to_parent_axes, tree_rates
from leastaction.forces.bodies import body_forces, has_forces
from leastaction.forces.joints import joint_forces, turned_matrix
from leastaction.jit.calls import call_control, call_law
from leastaction.jit.decorators import entry, kernel, optional, sweep
from leastaction.jit.lanes import st6
from leastaction.jit.status import BAD_GUESS, DONE, NOT_CONVERGED, NOT_FINITE
from leastaction.solve.clock import tick
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, LAST, MOST, TOTALS
from leastaction.spatial._source.so3 import quat_conj, quat_exp, quat_mul, quat_normalize, quat_rotate, quat_to_matrix
from leastaction.spatial._source.vector import sub3
from leastaction.trapezoid.newton import dense_direction, direction, jacobian
from leastaction.trapezoid.residual import (
    average_twists,
    displace,
    make_trapezoid_work,
    momenta_ahead,
    origin_of,
    place_start,
    project_loads,
    residual,
)
from leastaction.tree.arrays import all_finite, copy, scalar_product
from leastaction.tree.articulated import eliminate, expand, reduce
from leastaction.tree.coordinates import forces_in, get3, positions_out, put3, put_quat, quat_at, rates_out
from leastaction.tree.layout import BALL, IU, IX, KIND
from leastaction.tree.tolerance import make_zero, rows_over_limits, set_tolerances

# What a rollout returns besides the number of steps done.

# Root finders, and guesses of the first iterate.
NEWTON, RIQN, BROYDEN, DENSE = 0, 1, 2, 3
HOLD, EULER, DYNAMICS, QUADRATIC = 0, 1, 2, 3


# --- impulses -------------------------------------------------------------------------------------------------------
@optional(None)
def load_bodies(forces, tree, t, h, start, ahead, w, f):
    """w.load = half impulses of the forces on bodies, with the average twists of the step; ``ahead`` at its end.

    ``start`` is the origin of the tables when the step began; those of w.P may have another since.
    """
    average_twists(tree, h, w, sub3(origin_of(w.P), start), ahead, f.V)
    for i in range(tree.rows.shape[0]):
        st6(f.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    body_forces(forces, t, w.P, f.V, f.F, f.given, f.result)
    for i in range(tree.rows.shape[0]):
        for e in range(6):
            w.load[i, e] = -0.5 * h * f.F[i, e]


@kernel
def average_rates(tree, h, x, xi, u):
    """u = xi / h as rates of the rows at x: balls in child axes, the same at both ends of the step."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            back = quat_conj(quat_normalize(quat_at(x, tree.rows[i, IX])))
            z = quat_rotate(back, get3(xi, d))
            put3(u, d, (z[0] / h, z[1] / h, z[2] / h))
        else:
            u[d] = xi[d] / h


@sweep
def load_joints(system, h, x, control, w, f, u):
    """Add to w.G the half impulses of control, springs and dampers at x, along parent axes."""
    tree = system.tree
    average_rates(tree, h, x, w.xi, u)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    copy(control, f.tau)
    joint_forces(system.passive, f.q, f.v, f.tau)
    forces_in(system.coordinates, x, f.tau, f.f)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            v = quat_rotate(quat_normalize(quat_at(x, tree.rows[i, IX])), get3(f.f, d))
            for e in range(3):
                w.G[d + e] += 0.5 * h * v[e]
        else:
            w.G[d] += 0.5 * h * f.f[d]


@sweep
def damping(system, h, x, w, f, u):
    """w.damp, derivative of w.G by xi. The damper of a free joint's translation counts along parent axes only."""
    tree, p = system.tree, system.passive
    for d in range(w.damp.shape[0]):
        for e in range(3):
            w.damp[d, e] = 0.0
    average_rates(tree, h, x, w.xi, u)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    # half an impulse h f/2, rates xi / h
    for j in range(p.screw.shape[0]):
        d = w.rate[p.screw[j, 1]]
        w.damp[d, 0] -= 0.5 * p.spring[j, 2]
        if p.law[j, 4] != 0:
            w.damp[d, 0] += 0.5 * call_law(p.law[j, 4], f.v[p.screw[j, 1]])
    for j in range(p.free.shape[0]):
        for e in range(3):
            w.damp[w.rate[p.free[j, 1] + e], 0] -= 0.5 * p.free_data[j, 6 + e]
    for j in range(p.ball.shape[0]):
        d, b = w.rate[p.ball[j, 1]], p.ball_data
        R = quat_to_matrix(quat_normalize(quat_at(f.q, p.ball[j, 0])))
        A = turned_matrix(R, (-0.5 * b[j, 7], 0.0, 0.0, 0.0, -0.5 * b[j, 8], 0.0, 0.0, 0.0, -0.5 * b[j, 9]))
        for r in range(3):
            for e in range(3):
                w.damp[d + r, e] += A[3 * r + e]


@sweep
def load(system, t, h, x, control, active, start, ahead, w, f, u):
    """w.G at x: all half impulses of one end of the step, the second one where ``ahead``."""
    for i in range(system.tree.rows.shape[0]):
        st6(w.load, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    load_bodies(system.forces, system.tree, t, h, start, ahead, w, f)
    project_loads(system.tree, h, w)
    if active:
        load_joints(system, h, x, control, w, f, u)


# --- directions -----------------------------------------------------------------------------------------------------
@sweep
def impulse_solve(tree, h, fresh, w, f, y):
    """y = -h M(q^k)^-1 r; ``fresh`` factorises M first (Lee et al. 2016, eq. 25)."""
    for i in range(tree.rows.shape[0]):
        st6(f.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for d in range(y.size):
        f.f[d] = -h * w.r[d]
    if fresh:
        eliminate(tree, w.S0, w.M, f.A, f.F, f.f, f.U, f.y)
    else:
        reduce(tree, w.S0, f.F, f.f, f.U, f.y)
    expand(tree, w.S0, f.U, f.y, f.Z, y)


@sweep
def broyden_direction(tree, h, fresh, rank, alpha, w, f, z):
    """w.y = -H r after the rank-one update for the step alpha w.y taken last, eq. (9). Returns the new rank.

    A negative rank means that there is no step to learn from.
    """
    impulse_solve(tree, h, fresh, w, f, z)
    if rank < 0:
        copy(z, w.y)
        return 0
    for j in range(rank):
        c = scalar_product(w.steps[j], z)
        for k in range(z.size):
            z[k] += c * w.updates[j, k]
    # z = -H r; the change of H r is d - z with d the last direction, and s = alpha d
    s, v = w.steps[rank], w.updates[rank]
    for k in range(z.size):
        s[k] = alpha * w.y[k]
        v[k] = w.y[k] - z[k]
    c = scalar_product(s, v)
    if abs(c) <= 1.0e-10 * scalar_product(s, s):
        copy(z, w.y)
        return rank
    for k in range(z.size):
        v[k] = (s[k] - v[k]) / c
    c = scalar_product(s, z)
    for k in range(z.size):
        w.y[k] = z[k] + c * v[k]
    return rank + 1


# --- one step -------------------------------------------------------------------------------------------------------
@sweep
def solve_step(system, solver, t, h, x, p, control, active, loaded, rtol, most, w, f, u, z, Z, count):
    """Root finding from the guess in w.xi; w.G must hold the impulses at q^k. Returns DONE, NOT_CONVERGED or BAD_GUESS.

    RIQN takes every step in full (Algorithm 3). Newton goes back along its direction until the sum of squares descends;
    Broyden, whose direction need not descend, until it is below the largest of the last three; it forgets what it
    learned when that fails, and goes a step of RIQN.
    """
    tree, start = system.tree, origin_of(w.P)
    before, rough_before, recent, begun = math.inf, math.inf, (0.0, 0.0), False
    alpha, steps, rank, fresh = 1.0, 0, -1, True
    while True:
        largest, rough, squares = math.inf, math.inf, math.inf
        inside = displace(tree, h, loaded, w.xi, w)
        if inside:
            if active or loaded:
                load(system, t, h, x, control, active, start, False, w, f, u)
            residual(tree, h, w.xi, p, w)
            count[EVALUATIONS] += 1
            if not begun:
                for d in range(p.size):
                    Z.term[d] = abs(p[d]) + abs(w.G[d])
                set_tolerances(tree, x, w.P, h, p, rtol, Z)
                begun = True
            largest, rough, squares = rows_over_limits(1.0, w.r, Z)
        # a maximum forgets what is not a number, a sum does not
        finite = math.isfinite(squares)
        if finite and largest <= 1.0:
            break
        if finite and (solver == RIQN or squares <= (1.0 - 1.0e-4 * alpha) * before):
            # a point to go on from
            if steps == most:
                break
            if solver == RIQN:
                impulse_solve(tree, h, fresh, w, f, w.y)
            elif solver == BROYDEN:
                rank = broyden_direction(tree, h, fresh, rank, alpha, w, f, z)
            else:
                if active:
                    damping(system, h, x, w, f, u)
                if solver == NEWTON:
                    direction(tree, h, w.xi, w)
                else:
                    dense_direction(tree, h, w.xi, w)
            steps += 1
            fresh = False
            copy(w.xi, w.old)
            before, rough_before, alpha = squares, rough, 1.0
            if solver == BROYDEN:
                before = max(squares, recent[0], recent[1]) if rank > 0 else math.inf
                recent = (squares, recent[0])
        elif steps == 0 or solver == RIQN:
            break
        elif alpha < 1.0e-3:
            # backtracking did not help: only rounding can be to blame, or what Broyden learned
            if solver != BROYDEN or rank <= 0:
                break
            rank, alpha, before = -1, 0.0, math.inf
        else:
            alpha *= 0.5
            count[CUTS] += 1
        for d in range(w.xi.size):
            w.xi[d] = w.old[d] + alpha * w.y[d]
    count[ITERATIONS] += steps
    count[MOST], count[LAST] = max(count[MOST], steps), steps
    # rounding may stop the descent just above the tolerance
    if finite and (largest <= 1.0 or (rough_before <= 100.0 and rough <= 100.0)):
        return DONE
    return NOT_CONVERGED if steps > 0 or inside else BAD_GUESS


@kernel
def move_on(tree, x, xi):
    """x at the end of the step."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put_quat(x, k, quat_normalize(quat_mul(quat_exp(get3(xi, d)), quat_at(x, k))))
        else:
            x[k] += xi[d]


@sweep
def guess_step(system, t, h, mode, known, x, p, control, last, before, w, f, u, z):
    """First iterate in w.xi (Lee et al. 2016, section 3.3; quadratic: the curve through the last three states)."""
    nu = p.size
    if mode == HOLD:
        for d in range(nu):
            w.xi[d] = 0.0
        return
    if known == 0:
        tree_rates(system.tree, x, p, f, z)
        to_parent_axes(system.tree, x, z, w.xi)
        for d in range(nu):
            w.xi[d] *= h
    else:
        copy(last, w.xi)
    if mode == DYNAMICS:
        # acceleration at the rates of the step before; in the first step half of it, as those rates are the true ones
        average_rates(system.tree, h, x, w.xi, u)
        acceleration(system, t, x, u, control, f, z)
        to_parent_axes(system.tree, x, z, u)
        share = 0.5 if known == 0 else 1.0
        for d in range(nu):
            w.xi[d] += share * h * h * u[d]
    elif mode == QUADRATIC and known == 2:
        for d in range(nu):
            w.xi[d] = 2.0 * last[d] - before[d]


@entry
def rollout(
    system, printed, solver, ranks, uniform, clock, k0, x, p, last, before, known, steps, every, controls, address,
    passive, mode, rtol, most, out_q, out_v, count,
):  # fmt: skip
    """Advance x, p in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    printed: see ``trapezoid.residual``; uniform and clock are those of ``tick``; last, before (nu,) and known (1,) are
    the displacements of the last two steps; count: see ``solve.counts``. Returns (steps done, status); after a failure
    x, p are those of the last good step.
    """
    tree, nu = system.tree, p.size
    w, f = make_trapezoid_work(system, printed, solver == DENSE, ranks), make_work(system, x)
    u, z, control, pn, xn = np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(x.size)
    zero = make_zero(tree)
    loaded, saved, used = has_forces(system.forces), 0, 0.0
    place_start(tree, x, w)
    for k in range(steps):
        t, h = tick(uniform, clock, k0, k)
        active = passive
        # control of this step
        if address != 0:
            tree_rates(tree, x, p, f, u)
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control)
            active = True
        elif controls.shape[0] > 0:
            copy(controls[k], control)
            active = True
        # step; the impulses of gravity alone are still there from the end of the last one
        guess_step(system, t, h, mode, known[0], x, p, control, last, before, w, f, u, z)
        start = origin_of(w.P)
        if h != used and not loaded:
            load(system, t, h, x, control, False, start, False, w, f, u)
        used = h
        status = solve_step(system, solver, t, h, x, p, control, active, loaded, rtol, most, w, f, u, z, zero, count)
        if status != DONE:
            return k, status
        # end of the step, eq. (4)
        momenta_ahead(tree, h, w.xi, w, pn)
        copy(x, xn)
        move_on(tree, xn, w.xi)
        place_start(tree, xn, w)
        load(system, t + h, h, xn, control, active, start, True, w, f, u)
        for d in range(nu):
            pn[d] += w.G[d]
        if not (all_finite(pn) and all_finite(xn)):
            return k, NOT_FINITE
        copy(xn, x)
        copy(pn, p)
        copy(last, before)
        copy(w.xi, last)
        known[0] = min(known[0] + 1, 2)
        if (k0 + k + 1) % every == 0:
            tree_rates(tree, x, p, f, u)
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE


@entry
def probe(system, printed, t, h, x, p, control, active, xi, r, pn, y, dense, J):
    """Residual r (nu,), next momentum pn (nu,), Newton directions y (O(n)) and dense, Jacobian J (nu, nu) by y at xi.

    False if a joint or body turns by half a turn or more.
    """
    tree, nu = system.tree, p.size
    w, f, u = make_trapezoid_work(system, printed, True, 0), make_work(system, x), np.zeros(p.size)
    place_start(tree, x, w)
    copy(xi, w.xi)
    start = origin_of(w.P)
    inside = displace(tree, h, has_forces(system.forces), w.xi, w)
    load(system, t, h, x, control, active, start, False, w, f, u)
    residual(tree, h, w.xi, p, w)
    copy(w.r, r)
    if active:
        damping(system, h, x, w, f, u)
    direction(tree, h, w.xi, w)
    copy(w.y, y)
    dense_direction(tree, h, w.xi, w)
    copy(w.y, dense)
    jacobian(tree, h, w.xi, w)
    for a in range(nu):
        for b in range(nu):
            J[a, b] = w.J[a, b]
    # end of the step
    momenta_ahead(tree, h, w.xi, w, pn)
    xn = x.copy()
    move_on(tree, xn, w.xi)
    place_start(tree, xn, w)
    load(system, t + h, h, xn, control, active, start, True, w, f, u)
    for d in range(nu):
        pn[d] += w.G[d]
    return inside
