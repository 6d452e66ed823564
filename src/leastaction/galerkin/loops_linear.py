"""What the derivative of a Galerkin step with loops or constraints needs of compiled code.

The matrices of the step come out dense, because the multipliers couple everything; the rest is small and dense too and
stands in ``galerkin.loops_derivative``.

    J, Py   residual (nu s) and next momentum (nu) by the unknowns      R, Pr  by dx, du and the forces of the rows
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.legendre import tree_rates
from leastaction.galerkin.linear import control_columns, dense_matrices, settle_step, state_columns
from leastaction.galerkin.residual import Nodes, make_step_work
from leastaction.galerkin.step import load_multipliers
from leastaction.galerkin.variations import by_displacements, displaced_local, fill_variation, make_variation
from leastaction.jit.decorators import entry
from leastaction.loops.nodes import make_loop_nodes
from leastaction.tree.arrays import copy


@entry
def step_matrices(
    system, weights, b, c, across, balance, t, h, x, p, xi, lam, control, active, J, Py, R, Pr, pn
):  # fmt: skip
    """Dense derivatives of a solved step, without what bodies' forces, free joints and links vary; all zeroed before.

    xi (nu, s+1), lam (s, m), control (nv,); J (nu s, nu s), Py (nu, nu s), R (nu s, 3 nu), Pr (nu, 3 nu), and the next
    momentum pn (nu,) along parent axes. The impulses of the links count where a ball turns its own chart.
    """
    tree, nu, s = system.tree, p.size, len(weights) - 1
    nodes = Nodes(weights, (), b, c, h, across, balance)
    w, f = make_step_work(tree, weights, (), True), make_work(system, x)
    var, links = make_variation(tree, s), make_loop_nodes(system.loops, system.constraints, tree, s)
    load_multipliers(system.loops, links, lam)
    xa, ua, K, Dm = np.zeros(x.size), np.zeros(nu), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    E, H = np.zeros((nu, nu)), np.zeros((nu, nu))
    settle_step(system, nodes, t, x, p, control, active, xi, w, f, links, xa, ua, K, Dm)
    fill_variation(tree, nodes, w, var, K, Dm)
    # columns of state and control
    by_displacements(tree, s, var, R, Pr)
    displaced_local(tree, nodes, w, K, R, Pr)
    tree_rates(tree, x, p, f, ua)
    copy(ua, f.v)
    state_columns(tree, s, x, w, f, E, H, R, Pr)
    control_columns(system, nodes, x, w, 2 * nu, R, Pr)
    # unknowns
    dense_matrices(tree, nodes, w, var, K, Dm, J, Py)
    copy(w.pn, pn)
