"""What the derivative of a Lie trapezoid's step needs of compiled code; the rest is dense, in ``derivative``.

Symbols as in ``trapezoid.residual`` and ``trapezoid.newton``.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import make_work, with_constants
from leastaction.forces.columns import add_joint_derivatives, make_columns
from leastaction.forces.joints import joint_forces
from leastaction.jit.decorators import entry, kernel
from leastaction.solve.counts import TOTALS
from leastaction.trapezoid.impulses import average_rates, load
from leastaction.trapezoid.newton import momentum_matrices
from leastaction.trapezoid.residual import displace, make_trapezoid_work, origin_of, place_trapezoid, trapezoid_residual
from leastaction.trapezoid.step import HOLD, Solver, State, at, make_tables, reach_end, step_from
from leastaction.tree.arrays import copy
from leastaction.tree.coordinates import forces_in, positions_out, put3, rates_out
from leastaction.tree.layout import Floats
from leastaction.tree.retraction import move_on


class Tables(NamedTuple):
    """Tables of a step with known xi: poses P and P1 (n+1, 12) of both ends, each about its own origin, axes S0, S1.

    Z, mu (n+1, 6), b (n+1, 3) and B (n+1, 36) of the rows, not summed; coordinates x1 of the end, and the average rates
    u, u1 at both.
    """

    P: Floats
    P1: Floats
    S0: Floats
    S1: Floats
    Z: Floats
    b: Floats
    mu: Floats
    B: Floats
    x1: Floats
    u: Floats
    u1: Floats


@entry
def trapezoid_tables(system, printed, h, x, xi, out):
    """Fill the tables of a step."""
    tree = system.tree
    w = make_trapezoid_work(system, printed, False, 0)
    place_trapezoid(tree, x, w)
    copy(xi, w.xi)
    displace(tree, h, True, w.xi, w)
    momentum_matrices(tree, h, w)
    for i in range(out.P.shape[0]):
        copy(w.P[i], out.P[i])
        copy(w.Z[i], out.Z[i])
        copy(w.E[i, 9:], out.b[i])
        copy(w.mu[i], out.mu[i])
        copy(w.D[i], out.B[i])
    for d in range(xi.size):
        copy(w.S0[d], out.S0[d])
        copy(w.S1[d], out.S1[d])
    copy(x, out.x1)
    move_on(tree, out.x1, xi)
    place_trapezoid(tree, out.x1, w)
    for i in range(out.P.shape[0]):
        copy(w.P[i], out.P1[i])
    average_rates(tree, h, x, xi, out.u)
    average_rates(tree, h, out.x1, xi, out.u1)


@entry
def joint_tables(system, x, u, control, q, v, r, Kx, Ku):
    """Joint forces r (nu,) of the rows at x, u, and minus their derivatives Kx, Ku (nu, nu); q, v of the user."""
    f, w = make_work(system, x), make_columns(system)
    positions_out(system.coordinates, x, f.q)
    rates_out(system.coordinates, x, u, f.v)
    copy(control, f.tau)
    joint_forces(system.passive, f.q, f.v, f.tau)
    forces_in(system.coordinates, x, f.tau, f.f)
    add_joint_derivatives(system, x, u, f, w, Kx, Ku)
    copy(f.q, q)
    copy(f.v, v)
    copy(f.f, r)


@kernel
def residual_of(system, state, t, h, tables, xi, controls, r, pn):
    """Residual r and next momentum pn of one mechanism; ``controls`` (2, nv) at both ends."""
    step = at(step_from(system, state, Solver(0, HOLD, 0.0, 0), tables), t, h, True)
    w, v, control = step.work, step.scratch, step.control
    place_trapezoid(system.tree, state.x, w)
    put3(v.start, 0, origin_of(w.P))
    copy(xi, w.xi)
    displace(system.tree, h, True, w.xi, w)
    copy(controls[0], control[0])
    load(step, t, state.x, False)
    trapezoid_residual(system.tree, h, w.xi, state.p, w)
    copy(w.r, r)
    copy(controls[1], control[0])
    reach_end(step)
    copy(v.pn, pn)


@entry
def trapezoid_residuals(system, printed, consts, t, h, x, p, xi, controls, R, Pn):
    """Residuals R and next momenta Pn (k, nu) at given xi, for k mechanisms that differ in constants.

    consts (k, n+1, 23), momenta p (k, nu) at the start, controls (k, 2, nv) at both ends; see ``galerkin.parameters``.
    """
    tables, none = make_tables(system, printed, False, 0, x, np.zeros(TOTALS, np.int64)), np.zeros(xi.size)
    for k in range(consts.shape[0]):
        state = State(x, p[k], none, none, tables[5])
        residual_of(with_constants(system, consts[k]), state, t, h, tables, xi, controls[k], R[k], Pn[k])
