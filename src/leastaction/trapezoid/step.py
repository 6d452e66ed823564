"""Steps of the Lie trapezoid: guesses, Newton's method, rollouts.

Everything of a step is in one tuple, ``Step``; ``solve.newton`` and ``solve.rollout`` are handed the parts below. Other
root finders are in ``trapezoid.quasi``. Symbols as in ``trapezoid.residual``.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import Work, acceleration, make_work
from leastaction.dynamics.legendre import to_parent_axes, tree_rates
from leastaction.forces.bodies import has_forces
from leastaction.jit.decorators import entry, kernel, memory, sweep
from leastaction.jit.status import DONE, NOT_FINITE
from leastaction.solve.counts import TOTALS
from leastaction.solve.newton import newton
from leastaction.solve.rollout import never_undone, rollout
from leastaction.trapezoid.impulses import average_rates, damping, load
from leastaction.trapezoid.newton import direction_by_jacobian, jacobian, trapezoid_direction
from leastaction.trapezoid.residual import (
    TrapezoidWork,
    displace,
    make_trapezoid_work,
    momenta_ahead,
    origin_of,
    place_trapezoid,
    trapezoid_residual,
)
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.coordinates import positions_out, put3, rates_out
from leastaction.tree.layout import Floats, Ints, System
from leastaction.tree.retraction import move_on
from leastaction.tree.tolerance import Zero, make_zero, rows_over_limits, set_tolerances

# Guesses of the first iterate.
HOLD, EULER, DYNAMICS, QUADRATIC = 0, 1, 2, 3


class State(NamedTuple):
    """What goes on from step to step.

    x (nx,), p (nu,); last, before (nu,) and known (1,): displacements of the last two steps, as far as there were any.
    """

    x: Floats
    p: Floats
    last: Floats
    before: Floats
    known: Ints


class Solver(NamedTuple):
    """Root finder, guess, tolerance relative to the momenta, most iterations."""

    kind: int
    guess: int
    rtol: float
    most: int


class Scratch(NamedTuple):
    """Vectors of a step: u, z, pn (nu,), xn (nx,) rates, any, and the end; start (3,) the origin when it began.

    used (1,) length of the last step.
    """

    u: Floats
    z: Floats
    pn: Floats
    xn: Floats
    start: Floats
    used: Floats


class Step(NamedTuple):
    """Everything of one step: work of this family, f of forward dynamics; active: whether joints have forces.

    zero: what counts as zero, see ``tree.tolerance``.
    """

    system: System
    state: State
    solver: Solver
    t: float
    h: float
    active: bool
    loaded: bool
    control: Floats
    work: TrapezoidWork
    f: Work
    scratch: Scratch
    zero: Zero
    count: Ints


@memory
def make_scratch(nx, nu):
    """Vectors of a step."""
    return Scratch(np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nx), np.zeros(3), np.zeros(1))


@kernel
def at(b, t, h, active):
    """The step at a time."""
    return Step(b.system, b.state, b.solver, t, h, active, b.loaded, b.control, b.work, b.f, b.scratch, b.zero, b.count)


# --- parts of Newton's method -----------------------------------------------------------------------------------------
@sweep
def prepare(step):
    """The motion of the iterate."""
    return displace(step.system.tree, step.h, step.loaded, step.work.xi, step.work)


@sweep
def evaluate(step, first):
    """Residual at w.xi; w.G must hold the impulses of gravity at q^k."""
    tree, w, x, p, zero = step.system.tree, step.work, step.state.x, step.state.p, step.zero
    if step.active or step.loaded:
        load(step, step.t, x, False)
    trapezoid_residual(tree, step.h, w.xi, p, w)
    if first:
        for d in range(p.size):
            zero.term[d] = abs(p[d]) + abs(w.G[d])
        set_tolerances(tree, x, w.P, step.h, p, step.solver.rtol, zero)
    return rows_over_limits(1.0, w.r, zero)


@kernel
def by_recursion(step, steps, alpha):
    """Newton's direction in O(n)."""
    if step.active:
        damping(step)
    trapezoid_direction(step.system.tree, step.h, step.work.xi, step.work)
    return True


@kernel
def keep(step):
    """Remember the iterate."""
    copy(step.work.xi, step.work.old)


@kernel
def move(step, alpha):
    """A part of the direction, from the iterate kept."""
    w = step.work
    for d in range(w.xi.size):
        w.xi[d] = w.old[d] + alpha * w.y[d]
    return prepare(step)


# --- parts of a rollout -----------------------------------------------------------------------------------------------
@sweep
def guess_displacements(step):
    """First iterate in w.xi (Lee et al. 2016, section 3.3; quadratic: the curve through the last three states)."""
    system, y, w, v, h = step.system, step.state, step.work, step.scratch, step.h
    nu, mode, known, xi, u, z = y.p.size, step.solver.guess, y.known[0], w.xi, v.u, v.z
    if mode == HOLD:
        for d in range(nu):
            xi[d] = 0.0
        return
    if known == 0:
        tree_rates(system.tree, y.x, y.p, step.f, z)
        to_parent_axes(system.tree, y.x, z, xi)
        for d in range(nu):
            xi[d] *= h
    else:
        copy(y.last, xi)
    if mode == DYNAMICS:
        # acceleration at the rates of the step before; in the first step half of it, as those rates are the true ones
        average_rates(system.tree, h, y.x, xi, u)
        acceleration(system, step.t, y.x, u, step.control[0], step.f, z)
        to_parent_axes(system.tree, y.x, z, u)
        share = 0.5 if known == 0 else 1.0
        for d in range(nu):
            xi[d] += share * h * h * u[d]
    elif mode == QUADRATIC and known == 2:
        for d in range(nu):
            xi[d] = 2.0 * y.last[d] - y.before[d]


@kernel
def begin(step):
    """Tables of the start, and the first iterate; impulses of gravity alone are still there from the last step."""
    w, v, x = step.work, step.scratch, step.state.x
    if v.used[0] == 0.0:
        place_trapezoid(step.system.tree, x, w)
    guess_displacements(step)
    put3(v.start, 0, origin_of(w.P))
    if step.h != v.used[0] and not step.loaded:
        load(at(step, step.t, step.h, False), step.t, x, False)
    v.used[0] = step.h
    return DONE


@kernel
def reach_end(step):
    """Coordinates and momenta at the end in the scratch vectors, eq. (4); the tables stand there."""
    tree, v, w = step.system.tree, step.scratch, step.work
    momenta_ahead(tree, step.h, w.xi, w, v.pn)
    copy(step.state.x, v.xn)
    move_on(tree, v.xn, w.xi)
    place_trapezoid(tree, v.xn, w)
    load(step, step.t + step.h, v.xn, True)
    for d in range(v.pn.size):
        v.pn[d] += w.G[d]


@kernel
def end(step):
    """Take the step."""
    y, v = step.state, step.scratch
    reach_end(step)
    if not (all_finite(v.pn) and all_finite(v.xn)):
        return NOT_FINITE
    copy(v.xn, y.x)
    copy(v.pn, y.p)
    copy(y.last, y.before)
    copy(step.work.xi, y.last)
    y.known[0] = min(y.known[0] + 1, 2)
    return DONE


@sweep
def see(step, t, q, v):
    """The user's q, and v = M^-1 p."""
    system, x, u = step.system, step.state.x, step.scratch.u
    tree_rates(system.tree, x, step.state.p, step.f, u)
    positions_out(system.coordinates, x, q)
    rates_out(system.coordinates, x, u, v)
    return True


solve = newton(prepare=prepare, evaluate=evaluate, direction=by_recursion, keep=keep, move=move)
roll = rollout(at=at, begin=begin, solve=solve, end=end, see=see, undo=never_undone)


@kernel
def step_from(system, state, solver, tables):
    """The step of a rollout before its time is known, from ``make_tables``."""
    control, work, f, scratch, zero, count = tables
    loaded = has_forces(system.forces)
    return Step(system, state, solver, 0.0, 0.0, False, loaded, control, work, f, scratch, zero, count)


@memory
def make_tables(system, printed, dense, ranks, x, count):
    """Memory of a step; see ``trapezoid.residual.make_trapezoid_work``."""
    nu = system.tree.rates.shape[0]
    return (
        np.zeros((1, nu)), make_trapezoid_work(system, printed, dense, ranks), make_work(system, x),
        make_scratch(x.size, nu), make_zero(system.tree), count,
    )  # fmt: skip


@kernel
def roll_from(system, state, solver, tables, drive, out):
    """The rollout; the tuple is put together where references are not counted."""
    return roll(step_from(system, state, solver, tables), drive, out)


@entry
def trapezoid_rollout(system, printed, state, solver, drive, out, count):
    """Steps by Newton's method, see ``solve.rollout``; state moves on in place. printed: see ``trapezoid.residual``."""
    return roll_from(system, state, solver, make_tables(system, printed, False, 0, state.x, count), drive, out)


class Probe(NamedTuple):
    """What ``trapezoid_probe`` finds: residual r (nu,), next momentum pn (nu,), Newton directions y (O(n)) and dense.

    J (nu, nu) is the Jacobian by y.
    """

    r: Floats
    pn: Floats
    y: Floats
    dense: Floats
    J: Floats


@kernel
def probe_at(system, state, t, h, active, tables, xi, out):
    """The probe; the tuple is put together where references are not counted."""
    step = at(step_from(system, state, Solver(0, HOLD, 0.0, 0), tables), t, h, active)
    w, v = step.work, step.scratch
    place_trapezoid(system.tree, state.x, w)
    put3(v.start, 0, origin_of(w.P))
    copy(xi, w.xi)
    inside = prepare(step)
    load(step, t, state.x, False)
    trapezoid_residual(system.tree, h, w.xi, state.p, w)
    copy(w.r, out.r)
    by_recursion(step, 0, 1.0)
    copy(w.y, out.y)
    direction_by_jacobian(system.tree, h, w.xi, w)
    copy(w.y, out.dense)
    jacobian(system.tree, h, w.xi, w)
    for a in range(xi.size):
        copy(w.J[a], out.J[a])
    reach_end(step)
    copy(v.pn, out.pn)
    return inside


@entry
def trapezoid_probe(system, printed, state, t, h, control, active, xi, out):
    """Everything of one step at xi. False if a joint or body turns by half a turn or more."""
    tables = make_tables(system, printed, True, 0, state.x, np.zeros(TOTALS, np.int64))
    copy(control, tables[0][0])
    return probe_at(system, state, t, h, active, tables, xi, out)
