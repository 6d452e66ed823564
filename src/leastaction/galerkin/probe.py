"""Residual, next momentum and Newton direction of one Galerkin step at given local coordinates, for the tests."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.forces.bodies import has_forces, most_bodies
from leastaction.galerkin.couplings import couple_bodies, make_couplings
from leastaction.galerkin.gauss import at_points, view_of, work_of
from leastaction.galerkin.gauss_newton import exact_direction
from leastaction.galerkin.impulses import body_derivatives, impulse_derivatives
from leastaction.galerkin.residual import Nodes
from leastaction.galerkin.step import end_step, evaluate_step, load_multipliers, start_step
from leastaction.jit.decorators import entry, sweep
from leastaction.loops.nodes import count_rows, make_loop_nodes
from leastaction.tree.arrays import copy


@sweep
def look_at_step(C, points, system, nodes, t, x, p, control, active, w, wq, f, L, xa, ua, K, Dm, l, square):
    """Residual, next momentum and direction of the motion in w.xi."""
    nq, wv = at_points(points, nodes, w, wq)
    evaluate_step(points, system, nodes, t, x, p, control, active, w, wq, f, L, xa, ua)
    end_step(points, system.tree, nodes, p, w, wq)
    if active:
        impulse_derivatives(system, nq, x, wv, f, xa, ua, K, Dm)
    body_derivatives(system.forces, nq, t, wv, f, square)
    exact_direction(points, system.tree, nodes, w, wq, K, Dm)
    couple_bodies(C, None, points, system.forces, system.tree, nodes, t, x, w, wq, f, l, square)


@entry
def galerkin_probe(
    system, weights, wide, points, pairs, tables, across, t, h, x, p, control, active, xi, lam, r, pn, y
):
    """Residual r (nu, s), next momentum pn (nu,) and Newton direction y (nu s,) of the motion at given xi and lam."""
    b, c, _, balance = tables
    nu, s = p.size, len(weights) - 1
    nodes = Nodes(weights, wide, b, c, h, across, balance)
    loaded = has_forces(system.forces) or count_rows(system.loops, system.constraints) > 0
    w, f = work_of(points, system.tree, weights, wide, loaded), make_work(system, x)
    wq, C = view_of(points, w), make_couplings(pairs, system.forces, nu, s)
    L = make_loop_nodes(system.loops, system.constraints, system.tree, s)
    xa, ua, K, Dm = np.zeros(x.size), np.zeros(nu), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    load_multipliers(system.loops, L, lam)
    start_step(points, system.tree, nodes, x, w, False, 1.0)
    for d in range(nu):
        for a in range(1, s + 1):
            w.xi[d, a] = xi[d, a]
    square = np.zeros(72 * most_bodies(system.forces) * most_bodies(system.forces))
    l = np.zeros((system.tree.rows.shape[0], w.z.shape[1]))
    look_at_step(C, points, system, nodes, t, x, p, control, active, w, wq, f, L, xa, ua, K, Dm, l, square)
    for d in range(nu):
        pn[d] = w.pn[d]
        for a in range(s):
            r[d, a] = w.r[d, a]
    copy(w.y, y)
