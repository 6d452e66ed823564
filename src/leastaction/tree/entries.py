"""Entry points on the rows' own coordinates, for one environment or four lanes: the sweeps alone, repeated at will.

Vectors of one dimension are one environment; vectors (n, 4) are four. ``repeats`` runs the sweep several times, so
that its cost can be measured without the cost of a call.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.jit.decorators import entry
from leastaction.jit.lanes import table, vector
from leastaction.tree.articulated import eliminate, expand
from leastaction.tree.composite import mass_matrix, momentum_map, subtree_inertias
from leastaction.tree.derivatives import inverse_dynamics_derivatives, subtree_bias
from leastaction.tree.kinematics import add_armature, inertias, inward, kinematics, outward


@entry
def rnea(tree, x, u, udot, tau, repeats):
    """Inverse dynamics."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    P, S, M, V, F = table(x, n, 12), table(x, nu, 6), table(x, n, 9), table(x, n, 12), table(x, n, 6)
    for _ in range(repeats):
        outward(tree, x, u, udot, P, S, M, V, F)
        inward(tree, S, F, tau)
        add_armature(tree, udot, tau)


@entry
def aba(tree, x, u, f, udot, repeats):
    """Forward dynamics."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    P, S, M, V, F = table(x, n, 12), table(x, nu, 6), table(x, n, 9), table(x, n, 12), table(x, n, 6)
    A, U, y, Z = table(x, n, 21), table(x, nu, 7), vector(x, nu), table(x, n, 6)
    for _ in range(repeats):
        outward(tree, x, u, None, P, S, M, V, F)
        eliminate(tree, S, M, A, F, f, U, y)
        expand(tree, S, U, y, Z, udot)


@entry
def crba(tree, x, H, repeats):
    """Mass matrix; H is zeroed by the caller where rates do not meet."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    P, S, M, m = table(x, n, 12), table(x, nu, 6), table(x, n, 9), np.empty(n)
    for _ in range(repeats):
        kinematics(tree, x, P, S)
        inertias(tree, x, P, M)
        subtree_inertias(tree, M, m)
        mass_matrix(tree, S, M, m, H)


@entry
def tree_derivatives(tree, x, u, udot, dq, du, H, h, repeats):
    """Derivatives of inverse dynamics by x and u, mass matrix, and the momentum map h (nu, 6)."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    P, S, M, V, F = table(x, n, 12), table(x, nu, 6), table(x, n, 9), table(x, n, 12), table(x, n, 6)
    B, T, m, tau = table(x, n, 36), table(x, nu, 18), np.empty(n), vector(x, nu)
    for _ in range(repeats):
        outward(tree, x, u, udot, P, S, M, V, F)
        inward(tree, S, F, tau)
        subtree_bias(tree, x, M, V, B)
        subtree_inertias(tree, M, m)
        mass_matrix(tree, S, M, m, H)
        momentum_map(tree, S, M, m, h)
        inverse_dynamics_derivatives(tree, S, M, m, V, F, B, T, dq, du)
