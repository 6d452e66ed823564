"""Steps of the Galerkin integrators: Legendre transforms, Newton with a line search, rollouts."""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.kernels._calls import call_control
from leastaction.kernels._jit import entry, kernel, sweep
from leastaction.kernels._lanes import ld3, ld6, ldp, stp
from leastaction.kernels.articulated import eliminate, expand
from leastaction.kernels.coordinates import get3, positions_in, positions_out, put3, rates_in, rates_out
from leastaction.kernels.explicit import all_finite, copy
from leastaction.kernels.forward import make_work
from leastaction.kernels.galerkin import Nodes, gravity, make_step_work, move, next_momentum, place, residual, vec3
from leastaction.kernels.galerkin_impulses import (
    body_impulses,
    has_forces,
    impulse_derivatives,
    joint_impulses,
    put4,
    quat_at,
)
from leastaction.kernels.galerkin_newton import direction
from leastaction.kernels.layout import BALL, IU, IX, KIND, MASS, PARENT
from leastaction.kernels.tree import inertias, kinematics, set_origin, velocities
from leastaction.spatial._source.so3 import (
    mrp_to_quat,
    quat_conj,
    quat_mul,
    quat_normalize,
    quat_rotate,
    quat_to_mrp,
)
from leastaction.spatial._source.vector import add6, dot6, inertia_times

# What a rollout returns besides the number of steps done.
DONE, NOT_CONVERGED, NOT_FINITE = 0, 1, 2

# Guesses of the first iterate.
HOLD, EULER, CONTINUE = 0, 1, 2

# Counters of a rollout.
ITERATIONS, EVALUATIONS, CUTS, MOST = 0, 1, 2, 3

# A rotation of 270 degrees in one step is a failed step: 4 tan(67.5 degrees).
FARTHEST = 9.6569


# --- Legendre transforms: (x, u) to momenta along parent axes, and back ---------------------------------------------
@sweep
def momenta(tree, x, u, f, p):
    """p (nu,) = dL/du with the components of a ball along its parent's axes; f is forward-dynamics scratch."""
    kinematics(tree, x, f.P, f.S)
    inertias(tree, x, f.P, f.M)
    velocities(tree, u, f.S, f.V)
    for i in range(tree.rows.shape[0]):
        h = inertia_times(ld6(f.M, i, 0), ld3(f.M, i, 6), tree.const[i, MASS], ld6(f.V, i, 0))
        for e in range(6):
            f.F[i, e] = h[e]
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        d, par = tree.rows[i, IU], tree.rows[i, PARENT]
        h = ld6(f.F, i, 0)
        if tree.rows[i, KIND] == BALL:
            c = (
                dot6(ld6(f.S, d, 0), h) + tree.armature[d] * u[d],
                dot6(ld6(f.S, d + 1, 0), h) + tree.armature[d + 1] * u[d + 1],
                dot6(ld6(f.S, d + 2, 0), h) + tree.armature[d + 2] * u[d + 2],
            )
            put3(p, d, quat_rotate(quat_normalize(quat_at(x, tree.rows[i, IX])), c))
        else:
            p[d] = dot6(ld6(f.S, d, 0), h) + tree.armature[d] * u[d]
        h = add6(ld6(f.F, par, 0), h)
        for e in range(6):
            f.F[par, e] = h[e]


@sweep
def rates_of(tree, x, p, f, u):
    """u (nu,) = M^-1 p by the articulated recursion; never the rates of the polynomial, which have a lower order."""
    kinematics(tree, x, f.P, f.S)
    inertias(tree, x, f.P, f.M)
    for i in range(tree.rows.shape[0]):
        d = tree.rows[i, IU]
        for e in range(6):
            f.F[i, e] = 0.0
        if i > 0 and tree.rows[i, KIND] == BALL:
            back = quat_conj(quat_normalize(quat_at(x, tree.rows[i, IX])))
            put3(f.f, d, quat_rotate(back, get3(p, d)))
        elif i > 0:
            f.f[d] = p[d]
    eliminate(tree, f.S, f.M, f.A, f.F, f.f, f.U, f.y)
    expand(tree, f.S, f.U, f.y, f.Z, u)


# --- one step ------------------------------------------------------------------------------------------------------
@kernel
def evaluate(system, nodes, t, x, p, control, active, w, f, xa, ua):
    """Residual at w.xi; returns its largest entry and its sum of squares."""
    for a in range(1, len(nodes.w)):
        place(system.tree, x, w, a)
    move(system.tree, nodes, w)
    for a in range(1, len(nodes.w) - 1):
        gravity(system.tree, nodes, w, a)
    if active:
        joint_impulses(system, nodes, x, control, w, f, xa, ua)
    body_impulses(system.forces, system.tree, nodes, t, w, f)
    return residual(system.tree, nodes, p, w)


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
def tolerance(tree, nodes, p, w, rtol):
    """Residual that counts as zero: rtol of the momentum scale plus the rounding of its terms; and that rounding."""
    scale, reach = 0.0, 0.0
    for d in range(p.size):
        scale = max(scale, abs(p[d]) + abs(w.pull[d, 0]) + abs(w.tau[d, 0]))
    for i in range(1, tree.rows.shape[0]):
        reach = max(reach, abs(w.P[i, 9]), abs(w.P[i, 10]), abs(w.P[i, 11]))
    g = abs(tree.gravity[0]) + abs(tree.gravity[1]) + abs(tree.gravity[2])
    push = nodes.h * g * w.mass[0] * (1.0 + reach)
    rounding = 1.0e-15 * (push + scale) * math.sqrt(float(p.size)) + 1.0e-300
    return rtol * scale + rounding, rounding


@kernel
def solve_step(system, nodes, t, x, p, control, active, rtol, most, w, f, xa, ua, K, Dm, old, count):
    """Newton with backtracking from the guess in w.xi. Returns True if the residual is within tolerance.

    Residual and direction stand at one place each, so that they are compiled into the loop once.
    """
    tree, s = system.tree, len(nodes.w) - 1
    limit, rounding, before, size_before = 0.0, 0.0, math.inf, math.inf
    alpha, steps, inside = 1.0, 0, True
    while True:
        largest, squares = math.inf, math.inf
        if inside:
            largest, squares = evaluate(system, nodes, t, x, p, control, active, w, f, xa, ua)
            count[EVALUATIONS] += 1
            if limit == 0.0:
                limit, rounding = tolerance(tree, nodes, p, w, rtol)
        if largest <= limit:
            break
        if squares <= (1.0 - 1.0e-4 * alpha) * before and math.isfinite(squares):
            # a point to go on from: the sum of squares descends along the Newton direction
            if steps == most:
                break
            if active:
                impulse_derivatives(system, nodes, x, w, f, xa, ua, K, Dm)
            direction(tree, nodes, w, K, Dm)
            steps += 1
            for d in range(old.shape[0]):
                for a in range(1, s + 1):
                    old[d, a] = w.xi[d, a]
            before, size_before, alpha = squares, largest, 1.0
        else:
            # backtrack, until only rounding can be to blame
            if steps == 0 or alpha < 1.0e-3:
                break
            alpha *= 0.5
            count[CUTS] += 1
        inside = add_step(tree, s, w.xi, old, w.y, alpha)
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    # rounding may stop the descent just above the tolerance
    return largest <= limit or (size_before <= 100.0 * rounding and largest <= 100.0 * rounding)


@kernel
def accept(tree, nodes, x, p, w):
    """Take the end of the step as the start of the next: x, p, and the tables of node 0."""
    s = len(nodes.w) - 1
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put4(x, k, quat_normalize(quat_mul(mrp_to_quat(vec3(w.xi, d, s)), quat_at(x, k))))
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


@kernel
def start_step(tree, nodes, x, w, moved):
    """Tables of node 0: copied from the end of the last step where that is the same to the last bit, else placed anew.

    Not so where the origin moves along, or where the quaternion of a ball was normalised.
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
        w.pull[d, 0] = w.pull[d, s]


@kernel
def guess_step(tree, nodes, ahead, mode, known, u, last, before, w):
    """First iterate in w.xi from the last steps ``last`` and ``before`` (nu, s+1), or from the rates u.

    ahead (s+1, s+1): Lagrange polynomials at 1 + c_a, to continue the last step's curve.
    """
    s = len(nodes.w) - 1
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        ball = tree.rows[i, KIND] == BALL
        rows = 3 if ball else 1
        for a in range(1, s + 1):
            for k in range(d, d + rows):
                if mode == HOLD:
                    w.xi[k, a] = 0.0
                elif mode == EULER or known == 0:
                    w.xi[k, a] = nodes.c[a] * nodes.h * u[k]
                elif s == 1:
                    w.xi[k, a] = last[k, 1] if known == 1 else 2.0 * last[k, 1] - before[k, 1]
                else:
                    v = 0.0
                    for e in range(1, s + 1):
                        v += ahead[a, e] * last[k, e]
                    w.xi[k, a] = v if ball else v - last[k, s]
            if ball and mode == CONTINUE and known > 0 and s > 1:
                # re-centre: mrp(z') = mrp(z(1 + c)) mrp(z(1))^T
                q = quat_mul(mrp_to_quat(vec3(w.xi, d, a)), quat_conj(mrp_to_quat(vec3(last, d, s))))
                z = quat_to_mrp(q)
                for k in range(3):
                    w.xi[d + k, a] = z[k]


@kernel
def to_parent_axes(tree, x, u, out):
    """Rates with the components of balls along their parents' axes."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put3(out, d, quat_rotate(quat_normalize(quat_at(x, tree.rows[i, IX])), get3(u, d)))
        else:
            out[d] = u[d]


@entry
def rollout(
    system, weights, b, c, across, ahead, t0, k0, h, x, p, last, before, known, steps, every, controls, address,
    passive, mode, rtol, most, out_q, out_v, count,
):  # fmt: skip
    """Advance x, p in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    last, before (nu, s+1) and known (1,) are the curves of the last two steps. Returns (steps done, status); after a
    failure x, p are those of the last good step.
    """
    tree, nu, s = system.tree, p.size, len(weights) - 1
    nodes = Nodes(weights, b, c, h, across)
    w, f = make_step_work(tree, weights, has_forces(system.forces)), make_work(system, x)
    xa, ua, u, control = np.zeros(x.size), np.zeros(nu), np.zeros(nu), np.zeros(nu)
    K, Dm, old = np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, s + 1))
    saved, moved = 0, False
    for k in range(steps):
        t = t0 + (k0 + k) * h
        active = passive
        # control of this step
        if address != 0:
            rates_of(tree, x, p, f, u)
            positions_out(system.coordinates, x, f.q)
            rates_out(system.coordinates, x, u, f.v)
            call_control(address, t, f.q, f.v, control)
            active = True
        elif controls.shape[0] > 0:
            copy(controls[k], control)
            active = True
        # step
        start_step(tree, nodes, x, w, moved)
        if mode == EULER or known[0] == 0:
            rates_of(tree, x, p, f, ua)
            to_parent_axes(tree, x, ua, u)
        guess_step(tree, nodes, ahead, mode, known[0], u, last, before, w)
        if not solve_step(system, nodes, t, x, p, control, active, rtol, most, w, f, xa, ua, K, Dm, old, count):
            return k, NOT_CONVERGED
        next_momentum(tree, nodes, p, w)
        if not all_finite(w.pn):
            return k, NOT_FINITE
        accept(tree, nodes, x, p, w)
        moved = True
        for d in range(nu):
            for a in range(1, s + 1):
                before[d, a] = last[d, a]
                last[d, a] = w.xi[d, a]
        known[0] = min(known[0] + 1, 2)
        if (k0 + k + 1) % every == 0:
            rates_of(tree, x, p, f, u)
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            saved += 1
    return steps, DONE


@entry
def enter(system, q, v, x, u, p):
    """Coordinates and momenta of the rows from the user's state."""
    f = make_work(system, x)
    positions_in(system.coordinates, q, x)
    rates_in(system.coordinates, x, v, u)
    momenta(system.tree, x, u, f, p)


@entry
def leave(system, x, p, q, v):
    """The user's state from coordinates and momenta of the rows."""
    f, u = make_work(system, x), np.zeros(p.size)
    rates_of(system.tree, x, p, f, u)
    positions_out(system.coordinates, x, q)
    rates_out(system.coordinates, x, u, v)


@entry
def probe(system, weights, b, c, across, t, h, x, p, control, active, xi, r, pn, y):
    """Residual r (nu, s), next momentum pn (nu,) and Newton direction y (nu s,) at given local coordinates xi."""
    nu, s = p.size, len(weights) - 1
    nodes = Nodes(weights, b, c, h, across)
    w, f = make_step_work(system.tree, weights, has_forces(system.forces)), make_work(system, x)
    xa, ua, K, Dm = np.zeros(x.size), np.zeros(nu), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    place_start(system.tree, nodes, x, w)
    for d in range(nu):
        for a in range(1, s + 1):
            w.xi[d, a] = xi[d, a]
    evaluate(system, nodes, t, x, p, control, active, w, f, xa, ua)
    next_momentum(system.tree, nodes, p, w)
    if active:
        impulse_derivatives(system, nodes, x, w, f, xa, ua, K, Dm)
    direction(system.tree, nodes, w, K, Dm)
    for d in range(nu):
        pn[d] = w.pn[d]
        for a in range(s):
            r[d, a] = w.r[d, a]
    copy(w.y, y)
