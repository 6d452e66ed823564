"""Explicit integrators: semi-implicit Euler and Runge-Kutta in local coordinates, whole rollouts in one call.

Around the start of a step every row has local coordinates xi: its own coordinate for a screw, and for a ball the
rotation vector of exp(xi) behind the start. Runge-Kutta integrates (xi, u) as in Munthe-Kaas 1999 with the exact
inverse of dexp, and retracts at the end, so no joint ever meets a singularity.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import acceleration, make_work
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import entry, sweep
from leastaction.jit.status import DONE, LEFT_SPLINE, NOT_FINITE, SINGULAR_LOOPS
from leastaction.solve.clock import tick
from leastaction.spatial._source.so3 import dexp_inv_times, quat_exp, quat_mul, quat_normalize
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.coordinates import get3, positions_out, put3, rates_out
from leastaction.tree.layout import BALL, IU, IX, KIND
from leastaction.tree.splines import on_splines

# What a rollout returns besides the number of steps done.


@sweep
def retract(tree, x0, xi, x):
    """x = x0 moved by the local coordinates xi."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            q = quat_mul((x0[k], x0[k + 1], x0[k + 2], x0[k + 3]), quat_exp(get3(xi, d)))
            q = quat_normalize(q)
            for e in range(4):
                x[k + e] = q[e]
        else:
            x[k] = x0[k] + xi[d]


@sweep
def local_rates(tree, xi, u, out):
    """Rates of the local coordinates: u, and dexp_right(xi)^-1 u for a ball."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            back = get3(xi, d)
            put3(out, d, dexp_inv_times((-back[0], -back[1], -back[2]), get3(u, d)))
        else:
            out[d] = u[d]


@sweep
def euler_step(system, t, dt, x, u, control, w, udot, xi):
    """Semi-implicit Euler: new rates from the old position, new position from the new rates."""
    good = acceleration(system, t, x, u, control, w, udot)
    for d in range(u.size):
        u[d] += dt * udot[d]
        xi[d] = dt * u[d]
    retract(system.tree, x, xi, x)
    return good


@sweep
def runge_kutta_step(system, butcher, t, dt, x, u, control, w, ks, xi, stage_x, stage_u):
    """One step of the explicit method with Butcher table (stages + 1, stages + 1): c in the first column, b last."""
    tree, s = system.tree, butcher.shape[0] - 1
    good = True
    for i in range(s + 1):
        # stage value, or the new state in the last pass
        for d in range(u.size):
            xi[d] = 0.0
            stage_u[d] = u[d]
            for j in range(min(i, s)):
                xi[d] += dt * butcher[i, j + 1] * ks[j, 0, d]
                stage_u[d] += dt * butcher[i, j + 1] * ks[j, 1, d]
        retract(tree, x, xi, stage_x)
        if i < s:
            local_rates(tree, xi, stage_u, ks[i, 0])
            good = acceleration(system, t + butcher[i, 0] * dt, stage_x, stage_u, control, w, ks[i, 1]) and good
    copy(stage_x, x)
    copy(stage_u, u)
    return good


@entry
def explicit_rollout(system, butcher, uniform, clock, k0, x, u, steps, every, controls, address, out_q, out_v):
    """Advance x, u in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    butcher of size zero means semi-implicit Euler. uniform and clock are those of ``tick``. controls is (steps, nv) or
    (0, nv); address is a control function or 0; both are sampled at the start of a step and held. Returns (steps done,
    status); after a failure x, u are the last good state.
    """
    nu = u.size
    w = make_work(system, x)
    s = max(butcher.shape[0] - 1, 1)
    ks = np.empty((s, 2, nu))
    xi, udot, stage_u, last_u, control = np.empty(nu), np.empty(nu), np.empty(nu), np.empty(nu), np.empty(nu)
    stage_x, last_x = np.empty(x.size), np.empty(x.size)
    saved = 0
    for d in range(nu):
        control[d] = 0.0
    for k in range(steps):
        t, dt = tick(uniform, clock, k0, k)
        copy(x, last_x)
        copy(u, last_u)
        # control of this step
        if address != 0:
            positions_out(system.coordinates, x, w.q)
            rates_out(system.coordinates, x, u, w.v)
            call_control(address, t, w.q, w.v, control)
        elif controls.shape[0] > 0:
            copy(controls[k], control)
        # step
        if butcher.shape[0] == 0:
            good = euler_step(system, t, dt, x, u, control, w, udot, xi)
        else:
            good = runge_kutta_step(system, butcher, t, dt, x, u, control, w, ks, xi, stage_x, stage_u)
        # a state that is not finite is never handed out
        finite, inside = all_finite(x) and all_finite(u), on_splines(system.tree.splines, system.tree, x)
        if not (good and finite and inside):
            copy(last_x, x)
            copy(last_u, u)
            return k, (SINGULAR_LOOPS if inside else LEFT_SPLINE) if finite else NOT_FINITE
        if (k0 + k + 1) % every == 0:
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            saved += 1
    return steps, DONE


@entry
def local_system(system, t, x0, y, control, out):
    """Rates (2 nu,) of (xi, u) around x0, for a solver on the Python side. False if the loops are singular."""
    nu = control.size
    w = make_work(system, x0)
    xi, u, x, a, b = np.empty(nu), np.empty(nu), np.empty(x0.size), np.empty(nu), np.empty(nu)
    for d in range(nu):
        xi[d] = y[d]
        u[d] = y[nu + d]
    retract(system.tree, x0, xi, x)
    local_rates(system.tree, xi, u, a)
    good = acceleration(system, t, x, u, control, w, b)
    for d in range(nu):
        out[d] = a[d]
        out[nu + d] = b[d]
    return good


@entry
def displaced_state(system, x0, xi, x):
    """x = x0 moved by xi."""
    retract(system.tree, x0, xi, x)


@entry
def sample_control(system, address, t, x, u, tau):
    """Control of the user at a state of the rows."""
    q, v = np.empty(x.size), np.empty(u.size)
    positions_out(system.coordinates, x, q)
    rates_out(system.coordinates, x, u, v)
    call_control(address, t, q, v, tau)
