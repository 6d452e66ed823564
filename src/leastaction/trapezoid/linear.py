"""What the derivative of a Lie trapezoid's step needs of compiled code; the rest is dense, in ``derivative``.

Symbols as in ``trapezoid.residual`` and ``trapezoid.newton``.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work, with_constants
from leastaction.forces.columns import add_joint_derivatives, make_columns
from leastaction.forces.joints import joint_forces
from leastaction.jit.decorators import entry
from leastaction.trapezoid.newton import momentum_matrices
from leastaction.trapezoid.residual import (
    displace,
    make_trapezoid_work,
    momenta_ahead,
    origin_of,
    place_start,
    residual,
)
from leastaction.trapezoid.step import average_rates, load, move_on
from leastaction.tree.arrays import copy
from leastaction.tree.coordinates import forces_in, positions_out, rates_out


@entry
def step_tables(system, printed, h, x, xi, P, P1, S0, S1, Z, b, mu, B, x1, u, u1):
    """Tables of a step with known xi: poses P and P1 (n+1, 12) of both ends, each about its own origin, axes S0, S1.

    Z, mu (n+1, 6), b (n+1, 3) and B (n+1, 36) of the rows, not summed; coordinates x1 of the end, and the average rates
    at both.
    """
    tree = system.tree
    w = make_trapezoid_work(system, printed, False, 0)
    place_start(tree, x, w)
    copy(xi, w.xi)
    displace(tree, h, True, w.xi, w)
    momentum_matrices(tree, h, w)
    for i in range(P.shape[0]):
        copy(w.P[i], P[i])
        copy(w.Z[i], Z[i])
        copy(w.E[i, 9:], b[i])
        copy(w.mu[i], mu[i])
        copy(w.D[i], B[i])
    for d in range(xi.size):
        copy(w.S0[d], S0[d])
        copy(w.S1[d], S1[d])
    copy(x, x1)
    move_on(tree, x1, xi)
    place_start(tree, x1, w)
    for i in range(P.shape[0]):
        copy(w.P[i], P1[i])
    average_rates(tree, h, x, xi, u)
    average_rates(tree, h, x1, xi, u1)


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


@entry
def residuals(system, printed, consts, t, h, x, p, xi, controls, R, Pn):
    """Residuals R and next momenta Pn (k, nu) at given xi, for k mechanisms that differ in constants.

    consts (k, n+1, 23), momenta p (k, nu) at the start, controls (k, 2, nv) at both ends; see ``galerkin.parameters``.
    """
    w, f = make_trapezoid_work(system, printed, False, 0), make_work(system, x)
    u, xn = np.zeros(xi.size), np.zeros(x.size)
    for k in range(consts.shape[0]):
        other = with_constants(system, consts[k])
        place_start(other.tree, x, w)
        copy(xi, w.xi)
        start = origin_of(w.P)
        displace(other.tree, h, True, w.xi, w)
        load(other, t, h, x, controls[k, 0], True, start, False, w, f, u)
        residual(other.tree, h, w.xi, p[k], w)
        copy(w.r, R[k])
        momenta_ahead(other.tree, h, w.xi, w, Pn[k])
        copy(x, xn)
        move_on(other.tree, xn, w.xi)
        place_start(other.tree, xn, w)
        load(other, t + h, h, xn, controls[k, 1], True, start, True, w, f, u)
        for d in range(xi.size):
            Pn[k, d] += w.G[d]
