"""Explicit integrators: semi-implicit Euler and Runge-Kutta in local coordinates, whole rollouts in one call.

Around the start of a step every row has local coordinates xi: its own coordinate for a screw, and for a ball the
rotation vector of exp(xi) behind the start. Runge-Kutta integrates (xi, u) as in Munthe-Kaas 1999 with the exact
inverse of dexp, and retracts at the end, so no joint ever meets a singularity.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import Work, acceleration, make_work
from leastaction.jit.calls import call_control
from leastaction.jit.decorators import entry, kernel, memory
from leastaction.jit.status import DONE, LEFT_SPLINE, NOT_FINITE, SINGULAR_LOOPS
from leastaction.solve.counts import TOTALS
from leastaction.solve.rollout import never_undone, rollout
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.layout import Floats, Ints, System
from leastaction.tree.retraction import local_rates, retract
from leastaction.tree.splines import on_splines


class Scratch(NamedTuple):
    """Stages ks (s, 2, nu): rates of xi and of u; xi, udot, u, last_u (nu,) and x, last_x (nx,): stage, last state."""

    ks: Floats
    xi: Floats
    udot: Floats
    u: Floats
    last_u: Floats
    x: Floats
    last_x: Floats


class Step(NamedTuple):
    """Everything of one step from x (nx,) and u (nu,), which move on in place.

    butcher (s + 1, s + 1): c in the first column, b in the last row; of size zero for semi-implicit Euler.
    """

    system: System
    butcher: Floats
    x: Floats
    u: Floats
    t: float
    h: float
    control: Floats
    f: Work
    scratch: Scratch
    count: Ints


@memory
def make_scratch(stages, nx, nu):
    """Vectors of a step."""
    return Scratch(
        np.zeros((stages, 2, nu)), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nx), np.zeros(nx)
    )


@kernel
def at(b, t, h, active):
    """The step at a time."""
    return Step(b.system, b.butcher, b.x, b.u, t, h, b.control, b.f, b.scratch, b.count)


@kernel
def begin(step):
    """Remember the state."""
    copy(step.x, step.scratch.last_x)
    copy(step.u, step.scratch.last_u)
    return DONE


@kernel
def euler_step(step):
    """Semi-implicit Euler: new rates from the old position, new position from the new rates."""
    x, u, v = step.x, step.u, step.scratch
    good = acceleration(step.system, step.t, x, u, step.control[0], step.f, v.udot)
    for d in range(u.size):
        u[d] += step.h * v.udot[d]
        v.xi[d] = step.h * u[d]
    retract(step.system.tree, x, v.xi, x)
    return good


@kernel
def runge_kutta_step(step):
    """One step of the explicit method with its Butcher table."""
    system, butcher, v, ks, u, h = step.system, step.butcher, step.scratch, step.scratch.ks, step.u, step.h
    s, good = butcher.shape[0] - 1, True
    for i in range(s + 1):
        # stage value, or the new state in the last pass
        for d in range(u.size):
            v.xi[d] = 0.0
            v.u[d] = u[d]
            for j in range(min(i, s)):
                v.xi[d] += h * butcher[i, j + 1] * ks[j, 0, d]
                v.u[d] += h * butcher[i, j + 1] * ks[j, 1, d]
        retract(system.tree, step.x, v.xi, v.x)
        if i < s:
            local_rates(system.tree, v.xi, v.u, ks[i, 0])
            t = step.t + butcher[i, 0] * h
            good = acceleration(system, t, v.x, v.u, step.control[0], step.f, ks[i, 1]) and good
    copy(v.x, step.x)
    copy(v.u, step.u)
    return good


@kernel
def solve(step):
    """The step; a state that is not finite, or has left a spline, is never handed out."""
    good = euler_step(step) if step.butcher.shape[0] == 0 else runge_kutta_step(step)
    finite = all_finite(step.x) and all_finite(step.u)
    inside = on_splines(step.system.tree.splines, step.system.tree, step.x)
    if good and finite and inside:
        return DONE
    copy(step.scratch.last_x, step.x)
    copy(step.scratch.last_u, step.u)
    return (SINGULAR_LOOPS if inside else LEFT_SPLINE) if finite else NOT_FINITE


@kernel
def end(step):
    """The state stands already."""
    return DONE


@kernel
def see(step, t, q, v):
    """The user's state."""
    positions_out(step.system.coordinates, step.x, q)
    rates_out(step.system.coordinates, step.x, step.u, v)
    return True


roll = rollout(at=at, begin=begin, solve=solve, end=end, see=see, undo=never_undone)


@kernel
def roll_from(system, butcher, x, u, control, f, scratch, count, drive, out):
    """The rollout; the tuple is put together where references are not counted."""
    return roll(Step(system, butcher, x, u, 0.0, 0.0, control, f, scratch, count), drive, out)


@entry
def explicit_rollout(system, butcher, x, u, drive, out):
    """Steps from x, u, see ``solve.rollout``; both move on in place. butcher: see ``Step``."""
    nu = u.size
    f, v = make_work(system, x), make_scratch(max(butcher.shape[0] - 1, 1), x.size, nu)
    count = np.zeros(TOTALS + out.q.shape[0], np.int64)
    return roll_from(system, butcher, x, u, np.zeros((1, nu)), f, v, count, drive, out)


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
