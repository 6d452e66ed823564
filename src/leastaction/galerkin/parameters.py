"""Residuals of one Galerkin step, and momenta of one state, for several mechanisms that differ in constants.

Residual, next momentum and p = M u are linear in masses, inertias and joint forces, and quadratic in the positions of
joints; so half their difference over two mechanisms at the same distance is their derivative, exactly.

    consts (k, n+1, 23)  constants of the tree      p (k, nu)  momenta at the start      controls (k, s+1, nv)
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work, with_constants
from leastaction.forces.bodies import has_forces
from leastaction.galerkin.linear import settle_step
from leastaction.galerkin.residual import Nodes, make_step_work
from leastaction.galerkin.step import load_multipliers
from leastaction.jit.decorators import entry
from leastaction.loops.nodes import count_rows, make_loop_nodes
from leastaction.tree.arrays import copy


@entry
def residuals_of_many(system, consts, weights, b, c, across, balance, t, h, x, p, xi, lam, controls, R, Pn):
    """Residuals R (k, nu, s) and next momenta Pn (k, nu) at given local coordinates xi (nu, s+1), impulses lam."""
    tree, nu, s = system.tree, p.shape[1], len(weights) - 1
    nodes = Nodes(weights, (), b, c, h, across, balance)
    loaded = has_forces(system.forces) or count_rows(system.loops, system.constraints) > 0
    f = make_work(system, x)
    links = make_loop_nodes(system.loops, system.constraints, tree, s)
    load_multipliers(system.loops, links, lam)
    xa, ua, K, Dm = np.zeros(x.size), np.zeros(nu), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    for k in range(consts.shape[0]):
        # the tables of a step hold sums of masses
        other = with_constants(system, consts[k])
        w = make_step_work(other.tree, weights, (), loaded)
        settle_step(other, nodes, t, x, p[k], controls[k], True, xi, w, f, links, xa, ua, K, Dm)
        copy(w.pn, Pn[k])
        for d in range(nu):
            for a in range(s):
                R[k, d, a] = w.r[d, a]
