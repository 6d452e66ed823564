"""Residual, next momentum and Newton direction of one Galerkin step at given local coordinates, for the tests."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.kernels._jit import entry
from leastaction.kernels.explicit import copy
from leastaction.kernels.forces import most_bodies
from leastaction.kernels.forward import make_work
from leastaction.kernels.galerkin import Nodes, next_momentum
from leastaction.kernels.galerkin_couplings import couple, make_couplings
from leastaction.kernels.galerkin_gauss import nodes_of, view_of, work_of
from leastaction.kernels.galerkin_gauss_newton import exact_direction
from leastaction.kernels.galerkin_impulses import body_derivatives, has_forces, impulse_derivatives
from leastaction.kernels.galerkin_links import link_size, make_links
from leastaction.kernels.galerkin_step import evaluate_step, load_multipliers, start_step


@entry
def probe(system, weights, wide, points, pairs, tables, across, t, h, x, p, control, active, xi, lam, r, pn, y):
    """Residual r (nu, s), next momentum pn (nu,) and Newton direction y (nu s,) of the motion at given xi and lam."""
    b, c, _, balance = tables
    nu, s = p.size, len(weights) - 1
    nodes = Nodes(weights, wide, b, c, h, across, balance)
    nq = nodes_of(points, nodes)
    loaded = has_forces(system.forces) or link_size(system.loops, system.constraints) > 0
    w, f = work_of(points, system.tree, weights, wide, loaded), make_work(system, x)
    wq, C = view_of(points, w), make_couplings(pairs, system.forces, nu, s)
    L = make_links(system.loops, system.constraints, system.tree, s)
    xa, ua, K, Dm = np.zeros(x.size), np.zeros(nu), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    square = np.zeros(72 * most_bodies(system.forces) * most_bodies(system.forces))
    load_multipliers(system.loops, L, lam)
    start_step(points, system.tree, nodes, x, w, False, 1.0)
    for d in range(nu):
        for a in range(1, s + 1):
            w.xi[d, a] = xi[d, a]
    evaluate_step(points, system, nodes, nq, t, x, p, control, active, w, wq, f, L, xa, ua)
    next_momentum(system.tree, nq, p, wq)
    if active:
        impulse_derivatives(system, nq, x, wq, f, xa, ua, K, Dm)
    body_derivatives(system.forces, nq, t, wq, f, square)
    exact_direction(points, system.tree, nodes, nq, w, wq, K, Dm)
    l = np.zeros((system.tree.rows.shape[0], w.z.shape[1]))
    couple(C, None, points, system.forces, system.tree, nodes, nq, t, x, w, wq, f, l, square)
    for d in range(nu):
        pn[d] = w.pn[d]
        for a in range(s):
            r[d, a] = w.r[d, a]
    copy(w.y, y)
