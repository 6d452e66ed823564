"""Steps of the Galerkin integrators: guesses, Newton with a line search, rollouts.

Six arguments choose by their type what is compiled into a rollout, so that nobody waits for what he does not use:
``wide`` () or (0,) whether forces on bodies are part of the direction; ``T`` None for Newton's direction, ``Densely``
for that with a dense matrix, or the matrix of a quasi-Newton one; ``look`` None, or any number for the guess by forward
dynamics; ``points`` None for Lobatto's quadrature, or that of ``galerkin.gauss``;
``pairs`` None, or those of ``galerkin.couplings``. ``flight`` None, or the groups of floating trees of
``galerkin.flight``.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.dynamics.forward import acceleration, make_work
from leastaction.dynamics.legendre import rates_of, to_parent_axes
from leastaction.forces.bodies import has_forces, most_bodies
from leastaction.galerkin.couplings import couple_bodies, make_couplings, solve_more
from leastaction.galerkin.flight import fly_along, fly_back, relative_guess
from leastaction.galerkin.gauss import at_points, evaluate_points, start_points, view_of, work_of
from leastaction.galerkin.impulses import body_derivatives, body_impulses, impulse_derivatives, joint_impulses
from leastaction.galerkin.quasi import factor_quasi, find_direction, make_quasi, unguarded
from leastaction.galerkin.residual import Nodes, gravity, move, next_momentum, place, residual
from leastaction.galerkin.tolerance import allow_constraints, gap_sizes, terms
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import PART_OPTIONS, either, entry, kernel, optional, sweep
from leastaction.jit.lanes import ldp, stp
from leastaction.jit.status import DONE, NO_RATES, NOT_CONVERGED, NOT_FINITE
from leastaction.loops.nodes import (
    add_multipliers,
    balanced,
    clear_multipliers,
    count_rows,
    keep_multipliers,
    loop_impulses,
    make_loop_nodes,
    measure,
    push_row,
    solve_loops,
    take_loops_care,
    trust_loops,
)
from leastaction.solve.clock import tick
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST, TOTALS
from leastaction.solve.guess import extrapolation
from leastaction.spatial._source.so3 import mrp_to_quat, quat_conj, quat_mul, quat_normalize, quat_to_mrp
from leastaction.tree.arrays import all_finite, copy, vec3
from leastaction.tree.coordinates import positions_out, put_quat, quat_at, rates_out
from leastaction.tree.kinematics import set_origin
from leastaction.tree.layout import BALL, IU, IX, KIND
from leastaction.tree.tolerance import make_zero, over_limits, set_tolerances

# What a rollout returns besides the number of steps done.

# Guesses of the first iterate.
HOLD, EULER, QUADRATIC, DYNAMICS, CUBIC = 0, 1, 2, 3, 4

# A rotation of 270 degrees in one step is a failed step: 4 tan(67.5 degrees).
FARTHEST = 9.6569


# --- one step ------------------------------------------------------------------------------------------------------
@kernel
def evaluate_at_nodes(system, nodes, t, x, p, control, active, w, f, L, xa, ua):
    """Residual at w.xi, and the gaps of the constraints."""
    for a in range(1, len(nodes.w)):
        place(system.tree, x, w, a)
    move(system.tree, nodes, w)
    for a in range(1, len(nodes.w) - 1):
        gravity(system.tree, nodes, w, a)
    if active:
        joint_impulses(system, nodes, x, control, w, f, xa, ua)
    body_impulses(system.forces, system.tree, nodes, t, w, f)
    loop_impulses(system.loops, system, nodes, t, x, w, f, L, xa)
    residual(system.tree, nodes, p, w)


def _evaluate_nodes(points, system, nodes, t, x, p, control, active, w, wq, f, L, xa, ua):
    evaluate_at_nodes(system, nodes, t, x, p, control, active, w, f, L, xa, ua)


@either(_evaluate_nodes, PART_OPTIONS)
def evaluate_step(points, system, nodes, t, x, p, control, active, w, wq, f, L, xa, ua):
    """``evaluate_at_nodes``, whatever the quadrature; with points there are no constraints."""
    evaluate_points(points, system, nodes, t, x, p, control, active, w, wq, f, xa, ua)


@optional(True)
def close_step_loops(loops, system, C, Q, points, nodes, x, w, wq, f, L, l):
    """Add to the step w.y what keeps the constraints, and find that of the multipliers: eq. (9) of the links."""
    s, m, tree = len(nodes.w) - 1, L.kind.size, system.tree
    if m == 0:
        return True
    # what is left of the gaps after the step of the motion alone
    measure(tree, nodes, w, L, w.y, L.rhs)
    for c in range(s):
        for k in range(m):
            L.rhs[c * m + k] = -(L.g[c + 1, k] + L.rhs[c * m + k])
    # one column for each impulse
    for a in range(s):
        for k in range(m):
            push_row(tree, w, L, a, k, m)
            solve_more(C, Q, points, tree, nodes, x, w, wq, f, l, L.R, L.Y[a * m + k])
            measure(tree, nodes, w, L, L.Y[a * m + k], L.dlam)
            balanced(nodes, L, L.dlam, L.rest)
            for i in range(s * m):
                L.Sc[i, a * m + k] = L.rest[i]
    return solve_loops(nodes, w, L, w.y)


@kernel
def add_step(tree, s, xi, old, y, alpha):
    """xi = old + alpha y, with y laid out by rows; False if a ball would leave its chart."""
    inside = True
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            for a in range(s):
                far = 0.0
                for j in range(3):
                    v = old[d + j, a + 1] + alpha * y[d * s + 3 * a + j]
                    xi[d + j, a + 1] = v
                    far += v * v
                inside = inside and far < FARTHEST * FARTHEST
        else:
            for a in range(s):
                xi[d, a + 1] = old[d, a + 1] + alpha * y[d * s + a]
    return inside


@kernel
def solve_galerkin(
    system, C, Q, points, nodes, t, x, p, world, control, active, rtol, most, w, wq, f, L, xa, ua, K, Dm, old, l,
    square, Z, count,
):  # fmt: skip
    """Newton with backtracking from the guess in w.xi. Returns True if the residual is within tolerance.

    p are the momenta of the step, ``world`` those seen from the world; Z is that of ``tree.tolerance``.

    Residual and direction stand at one place each, so that they are compiled into the loop once.
    """
    tree, s = system.tree, len(nodes.w) - 1
    nq, wv = at_points(points, nodes, w, wq)
    before, rough_before, alpha, steps, inside, free = math.inf, math.inf, 1.0, 0, True, unguarded(Q)
    begun = False
    factor_quasi(Q, tree, x, f)
    trust_loops(system.loops, L)
    while True:
        largest, rough, squares, gap = math.inf, math.inf, math.inf, 0.0
        if inside:
            evaluate_step(points, system, nodes, t, x, p, control, active, w, wq, f, L, xa, ua)
            count[EVALUATIONS] += 1
            if not begun:
                terms(tree, p, w, Z)
                set_tolerances(tree, x, w.P, nodes.h, world, rtol, Z)
                begun = True
            allow_constraints(system.loops, tree, L, Z)
            largest, rough, squares = over_limits(w.r, Z)
            gap, open_squares = gap_sizes(system.loops, tree, nodes.h, L, Z)
            squares += open_squares
        # a maximum forgets what is not a number, a sum does not
        finite = math.isfinite(squares)
        if finite and largest <= 1.0 and gap <= 1.0:
            break
        if finite and (free or squares <= (1.0 - 1.0e-4 * alpha) * before):
            # a point to go on from: the sum of squares descends along the Newton direction
            if steps == most:
                break
            if active:
                impulse_derivatives(system, nq, x, wv, f, xa, ua, K, Dm)
            body_derivatives(system.forces, nq, t, wv, f, square)
            find_direction(Q, points, tree, nodes, x, w, wq, f, K, Dm, steps, alpha)
            couple_bodies(C, Q, points, system.forces, tree, nodes, t, x, w, wq, f, l, square)
            if not close_step_loops(system.loops, system, C, Q, points, nodes, x, w, wq, f, L, l):
                break
            steps += 1
            for d in range(old.shape[0]):
                for a in range(1, s + 1):
                    old[d, a] = w.xi[d, a]
            keep_multipliers(system.loops, L)
            before, rough_before, alpha = squares, rough, 1.0
        else:
            # backtrack, until only rounding can be to blame
            if steps == 0 or alpha < 1.0e-3 or free:
                break
            count[CUTS] += 1
            if take_loops_care(system.loops, L):
                # once more from the iterate before
                alpha, before = 0.0, math.inf
            else:
                alpha *= 0.5
        inside = add_step(tree, s, w.xi, old, w.y, alpha)
        add_multipliers(system.loops, L, alpha)
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    # rounding may stop the descent just above the tolerance
    return finite and ((largest <= 1.0 and gap <= 1.0) or (rough_before <= 100.0 and rough <= 100.0 and gap <= 100.0))


@kernel
def end_step(points, tree, nodes, p, w, wq):
    """Next momentum in w.pn, whatever the quadrature."""
    nq, wv = at_points(points, nodes, w, wq)
    next_momentum(tree, nq, p, wv)


@kernel
def land(flight, points, tree, nodes, x, p, w, wq, f):
    """The end of the step in the world, whatever the quadrature; x and p are there already where nothing floats."""
    nq, wv = at_points(points, nodes, w, wq)
    fly_back(flight, tree, nq, x, p, wv, f)


@kernel
def accept(tree, nodes, x, p, w):
    """Take the end of the step as the start of the next: x, p, and the tables of node 0."""
    s = len(nodes.w) - 1
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put_quat(x, k, quat_normalize(quat_mul(mrp_to_quat(vec3(w.xi, d, s)), quat_at(x, k))))
        else:
            x[k] += w.xi[d, s]
    copy(w.pn, p)


@sweep
def place_start(tree, nodes, x, w):
    """Tables of node 0, about a new origin."""
    set_origin(tree, x, w.P)
    for d in range(w.xi.shape[0]):
        w.xi[d, 0] = 0.0
    place(tree, x, w, 0)
    gravity(tree, nodes, w, 0)


def _start_nodes(points, tree, nodes, x, w, moved, ratio):
    start_at_nodes(tree, nodes, x, w, moved, ratio)


@either(_start_nodes, PART_OPTIONS)
def start_step(points, tree, nodes, x, w, moved, ratio):
    """What a step begins with, whatever the quadrature."""
    start_points(tree, x, w)


@kernel
def start_at_nodes(tree, nodes, x, w, moved, ratio):
    """Tables of node 0: copied from the end of the last step where that is the same to the last bit, else placed anew.

    Not so where the origin moves along, or where the quaternion of a ball was normalised. The step may have another
    length than the last one, by ``ratio``.
    """
    s = len(nodes.w) - 1
    if not moved or tree.moves.size > 0 or w.balls[0] > 0:
        place_start(tree, nodes, x, w)
        return
    for i in range(1, tree.rows.shape[0]):
        for e in range(0, 12, 4):
            stp(w.P, i, e, ldp(w.P, i, 12 * s + e))
        stp(w.M, i, 0, ldp(w.M, i, 9 * s))
        stp(w.M, i, 4, ldp(w.M, i, 9 * s + 4))
        w.M[i, 8] = w.M[i, 9 * s + 8]
        d = tree.rows[i, IU]
        stp(w.S, d, 0, ldp(w.S, d, 6 * s))
        w.S[d, 4] = w.S[d, 6 * s + 4]
        w.S[d, 5] = w.S[d, 6 * s + 5]
    # the first and the last weight are the same
    for d in range(w.pull.shape[0]):
        w.pull[d, 0] = ratio * w.pull[d, s]


# --- guesses --------------------------------------------------------------------------------------------------------
@kernel
def lagrange(c, e, x):
    """The Lagrange polynomial of node e at x."""
    v = 1.0
    for j in range(c.size):
        if j != e:
            v *= (x - c[j]) / (c[e] - c[j])
    return v


@kernel
def guess_step(tree, nodes, ahead, mode, known, u, past, lengths, w):
    """First iterate in w.xi from the last three steps ``past`` (nu, 3 (s+1)), or from the rates u.

    ahead (s+1, s+1): Lagrange polynomials at 1 + c_a h / lengths[0], to continue the last step's curve.
    """
    s, h = len(nodes.w) - 1, nodes.h
    e1, e2, e3 = extrapolation(h, lengths, min(known, 2) if mode == QUADRATIC else known)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        ball = tree.rows[i, KIND] == BALL
        rows = 3 if ball else 1
        for a in range(1, s + 1):
            for k in range(d, d + rows):
                if mode == HOLD:
                    w.xi[k, a] = 0.0
                elif mode == EULER or known == 0:
                    w.xi[k, a] = nodes.c[a] * h * u[k]
                elif s == 1:
                    w.xi[k, a] = e1 * past[k, 1] + e2 * past[k, 3] + e3 * past[k, 5]
                else:
                    v = 0.0
                    for e in range(1, s + 1):
                        v += ahead[a, e] * past[k, e]
                    w.xi[k, a] = v if ball else v - past[k, s]
            if ball and (mode == QUADRATIC or mode == CUBIC) and known > 0 and s > 1:  # noqa: SIM109
                # re-centre: mrp(z') = mrp(z(1 + c)) mrp(z(1))^T
                q = quat_mul(mrp_to_quat(vec3(w.xi, d, a)), quat_conj(mrp_to_quat(vec3(past, d, s))))
                z = quat_to_mrp(q)
                for k in range(3):
                    w.xi[d + k, a] = z[k]


@optional(None)
def guess_by_dynamics(look, system, nodes, t, x, ua, control, f, xa, u, w):
    """First iterate by forward dynamics and semi-implicit steps to each node (Lee et al. 2016, IG3)."""
    udot = xa[: u.size]
    acceleration(system, t, x, ua, control, f, w.pn)
    to_parent_axes(system.tree, x, w.pn, udot)
    for d in range(u.size):
        for a in range(1, len(nodes.w)):
            ch = nodes.c[a] * nodes.h
            w.xi[d, a] = ch * (u[d] + ch * udot[d])


# --- rollouts -------------------------------------------------------------------------------------------------------
@entry
def galerkin_rollout(
    system, weights, wide, T, look, points, pairs, flight, tables, across, uniform, clock, k0, steps, x, p, past,
    lengths, known, lam, every, controls, address, passive, mode, kind, rtol, most, out_q, out_v, count,
):  # fmt: skip
    """Advance x, p in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    tables: (b, c, ahead, balance). uniform and clock are those of ``tick``. past (nu, 3 (s+1)),
    lengths (3,) and known (1,): curves (those of floating trees as seen from frames that fly along), lengths and number
    of the last three steps; lam (s, m): multipliers. controls
    (steps, 1 or s+1, nv), no rows where there are none. count: see ``solve.counts``. Returns (steps done, status);
    after a failure x, p are those of the last good step.
    """
    b, c, ahead, balance = tables
    tree, nu, s = system.tree, p.size, len(weights) - 1
    loaded = has_forces(system.forces) or count_rows(system.loops, system.constraints) > 0
    w, f = work_of(points, tree, weights, wide, loaded), make_work(system, x)
    wq, C = view_of(points, w), make_couplings(pairs, system.forces, nu, s)
    L, Q = make_loop_nodes(system.loops, system.constraints, tree, s), make_quasi(T, kind, tree, s, wide, most)
    xa, ua, u, old_x, old_p = np.zeros(x.size), np.zeros(nu), np.zeros(nu), np.zeros(x.size), np.zeros(nu)
    control = np.zeros((max(controls.shape[1], 1), nu))
    K, Dm, old = np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, s + 1))
    pr, Z = np.zeros(nu), make_zero(tree)
    l, onward = np.zeros((tree.rows.shape[0], w.z.shape[1])), ahead.copy()
    square = np.zeros(72 * most_bodies(system.forces) * most_bodies(system.forces))
    load_multipliers(system.loops, L, lam)
    saved, moved, used = 0, False, 0.0
    for k in range(steps):
        t, h = tick(uniform, clock, k0, k)
        nodes = Nodes(weights, wide, b, c, h, across, balance)
        active = passive
        # control of this step
        if address != 0:
            if not rates_of(system, t, x, p, f, L, u):
                return k, NO_RATES
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control[0])
            active = True
        elif controls.shape[0] > 0:
            for a in range(controls.shape[1]):
                copy(controls[k, a], control[a])
            active = True
        # guess
        start_step(points, tree, nodes, x, w, moved, h / used if moved else 1.0)
        if s > 1 and known[0] > 0 and h != lengths[0]:
            for a in range(s + 1):
                for e in range(s + 1):
                    onward[a, e] = lagrange(c, e, 1.0 + c[a] * (h / lengths[0]))
        elif s > 1:
            copy_table(ahead, onward)
        fly_along(flight, tree, h, x, p, f, pr)
        # step, with loops once more from the rates where the last steps mislead
        good, again = False, known[0] > 0 and count_rows(system.loops, system.constraints) > 0
        for attempt in range(2):
            if attempt == 1 and (good or not again):
                break
            if mode in (EULER, DYNAMICS) or known[0] == 0 or attempt == 1:
                if not rates_of(system, t, x, p, f, L, ua):
                    return k, NO_RATES
                to_parent_axes(tree, x, ua, u)
            if attempt == 1:
                clear_multipliers(system.loops, L)
                guess_step(tree, nodes, onward, EULER, known[0], u, past, lengths, w)
            else:
                guess_step(tree, nodes, onward, EULER if mode == DYNAMICS else mode, known[0], u, past, lengths, w)
                guess_by_dynamics(look, system, nodes, t, x, ua, control[0], f, xa, u, w)
            if attempt == 1 or mode in (EULER, DYNAMICS) or (known[0] == 0 and mode != HOLD):
                relative_guess(flight, nodes, w)
            good = solve_galerkin(
                system, C, Q, points, nodes, t, x, pr, p, control, active, rtol, most, w, wq, f, L, xa, ua, K, Dm, old,
                l, square, Z, count,
            )  # fmt: skip
        if not good:
            return k, NOT_CONVERGED
        end_step(points, tree, nodes, pr, w, wq)
        if not all_finite(w.pn):
            return k, NOT_FINITE
        copy(x, old_x)
        copy(p, old_p)
        accept(tree, nodes, x, p, w)
        land(flight, points, tree, nodes, x, p, w, wq, f)
        save_multipliers(system.loops, L, lam)
        moved, used = True, h
        for d in range(nu):
            for a in range(1, s + 1):
                past[d, 2 * (s + 1) + a] = past[d, s + 1 + a]
                past[d, s + 1 + a] = past[d, a]
                past[d, a] = w.xi[d, a]
        lengths[2], lengths[1], lengths[0] = lengths[1], lengths[0], h
        known[0] = min(known[0] + 1, 3)
        if (k0 + k + 1) % every == 0:
            if not rates_of(system, t + h, x, p, f, L, u):
                copy(old_x, x)
                copy(old_p, p)
                return k, NO_RATES
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            count[TOTALS + saved] = count[ITERATIONS]
            saved += 1
    return steps, DONE


@kernel
def copy_table(a, b):
    """b = a."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            b[i, j] = a[i, j]


@optional(None)
def load_multipliers(loops, L, lam):
    """Start from the multipliers of the last step."""
    copy_table(lam, L.lam)


@optional(None)
def save_multipliers(loops, L, lam):
    """Remember the multipliers."""
    copy_table(L.lam, lam)
