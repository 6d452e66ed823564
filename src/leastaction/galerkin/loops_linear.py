"""What the derivative of a Galerkin step with loops or constraints needs of compiled code.

The matrices of the step come out dense, because the multipliers couple everything; the rest is small and dense too and
stands in ``galerkin.loops_derivative``. The second derivative of the rows of loop joints is read off their bias.

    J, Py   residual (nu s) and next momentum (nu) by the unknowns      R, Pr  by dx, du and the forces of the rows
    C       (m, 12, 12) symmetric part of the second derivative of a row by spatial twists (v_a; v_b)
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.legendre import tree_rates
from leastaction.galerkin.linear import control_columns, dense_matrices, settle_step, state_columns
from leastaction.galerkin.residual import Nodes, make_step_work
from leastaction.galerkin.step import load_multipliers
from leastaction.galerkin.variations import displaced, displaced_local, fill_variation, make_variation
from leastaction.jit.decorators import entry
from leastaction.loops.nodes import make_loop_nodes
from leastaction.loops.rows import loop_rows
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
    displaced(tree, s, var, R, Pr)
    displaced_local(tree, nodes, w, K, R, Pr)
    tree_rates(tree, x, p, f, ua)
    copy(ua, f.v)
    state_columns(tree, s, x, w, f, E, H, R, Pr)
    control_columns(system, nodes, x, w, 2 * nu, R, Pr)
    # unknowns
    dense_matrices(tree, nodes, w, var, K, Dm, J, Py)
    copy(w.pn, pn)


@entry
def loop_tables(system, P, G, C):
    """Rows G (m, 6) of all loop joints and C (m, 12, 12), at poses P (n+1, 12).

    The bias of a row is its second derivative along a motion with twists (v_a; v_b) that stay as they are: a quadratic
    form, so 78 biases make its matrix.
    """
    f = make_work(system, P[0])
    loops, V = system.loops, np.zeros((P.shape[0], 6))
    loop_rows(loops, P, V, f.g, f.G, f.bias, f.ends)
    for k in range(f.g.size):
        for e in range(6):
            G[k, e] = f.G[k, e]
    for joint in range(loops.rows.shape[0]):
        a, b, first = loops.rows[joint, 0], loops.rows[joint, 1], loops.rows[joint, 2]
        last = loops.rows[joint + 1, 2] if joint + 1 < loops.rows.shape[0] else f.g.size
        for i in range(12):
            for j in range(i + 1):
                # unit twists i and j together
                V[a if i < 6 else b, i % 6] += 1.0
                if j < i:
                    V[a if j < 6 else b, j % 6] += 1.0
                loop_rows(loops, P, V, f.g, f.G, f.bias, f.ends)
                for k in range(first, last):
                    C[k, i, j] = f.bias[k]
                for e in range(6):
                    V[a, e] = 0.0
                    V[b, e] = 0.0
        for k in range(first, last):
            for i in range(12):
                for j in range(i):
                    C[k, i, j] = 0.5 * (C[k, i, j] - C[k, i, i] - C[k, j, j])
                    C[k, j, i] = C[k, i, j]
