"""Second derivatives of kinetic energy and of gravity's potential, O(n depth) (Fan et al. 2018, Algorithms 2 and 3).

Displacing rate j by a unit moves its subtree by the twist S_j, and with fixed rates the twist of everything behind
changes by Y_j = ad(v_p) S_j, seen in the moved frame, with v_p the twist of the row before. With I, m, c, mu the
inertia, mass, first moment and momentum of the subtree of j, and p = S . mu, k = Y . mu the first derivatives by rates
and displacements (l before j, and not of the same ball),

    Z_j = I Y_j - ad(S_j)^T mu        sigma_j = g x (m S_lin - c x S_ang)
    d p_j / d x_l = I S_j . Y_l       d p_l / d x_j = S_l . Z_j
    d k_j / d x_l = Z_j . Y_l         d k_l / d x_j = Y_l . Z_j
    second derivative of gravity's potential: S_ang of the upper . sigma of the lower

Two rates of one ball are displaced together: the first form of each line then holds for both. Displacements of a ball
are rotation vectors in child axes.

    T  (nu, 24)  Y, Z, I S, sigma of every rate (the last three columns are not used)
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.jit.decorators import entry, sweep
from leastaction.jit.lanes import ld3, ld6, st3, st6
from leastaction.spatial._source.vector import (
    ad,
    ad_dual,
    add6,
    ang,
    cross,
    dot3,
    dot6,
    inertia_times,
    lin,
    scale3,
    sub3,
    sub6,
)
from leastaction.tree.composite import mass_matrix, subtree_inertias
from leastaction.tree.coordinates import positions_in, rates_in
from leastaction.tree.kinematics import inertias, kinematics, velocities
from leastaction.tree.layout import MASS, PARENT


@sweep
def subtree_momenta(tree, M, V, F):
    """F (n+1, 6): momenta of subtrees. M holds row inertias, not yet summed; V twists."""
    for i in range(tree.rows.shape[0]):
        m = tree.const[i, MASS]
        st6(F, i, 0, inertia_times(ld6(M, i, 0), ld3(M, i, 6), m if i > 0 else 0.0, ld6(V, i, 0)))
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j = tree.rows[i, PARENT]
        st6(F, j, 0, add6(ld6(F, j, 0), ld6(F, i, 0)))


@sweep
def rate_tables(tree, S, M, m, V, F, T):
    """Y, Z, I S and sigma of every rate; M, m, F are sums over subtrees."""
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for j in range(tree.rates.shape[0]):
        i = tree.rates[j, 0]
        I, h, s = ld6(M, i, 0), ld3(M, i, 6), ld6(S, j, 0)
        y = ad(ld6(V, tree.rows[i, PARENT], 0), s)
        st6(T, j, 0, y)
        st6(T, j, 6, sub6(inertia_times(I, h, m[i], y), ad_dual(s, ld6(F, i, 0))))
        st6(T, j, 12, inertia_times(I, h, m[i], s))
        st3(T, j, 18, cross(g, sub3(scale3(m[i], lin(s)), cross(h, ang(s)))))


@sweep
def momentum_by_position(tree, S, T, E):
    """E (nu, nu) = d p / d x; entries of rates that do not meet are left as they are."""
    for j in range(tree.rates.shape[0]):
        E[j, j] = dot6(ld6(T, j, 12), ld6(T, j, 0))
        l = tree.rates[j, 1]
        while l >= 0:
            same = tree.rates[l, 0] == tree.rates[j, 0]
            E[l, j] = dot6(ld6(T, l, 12), ld6(T, j, 0)) if same else dot6(ld6(S, l, 0), ld6(T, j, 6))
            E[j, l] = dot6(ld6(T, j, 12), ld6(T, l, 0))
            l = tree.rates[l, 1]


@sweep
def position_by_position(tree, S, T, kinetic, gravity):
    """Both (nu, nu): d k / d x, and the second derivative of gravity's potential."""
    for j in range(tree.rates.shape[0]):
        l = j
        while l >= 0:
            same = tree.rates[l, 0] == tree.rates[j, 0]
            # row l, column j
            upper, lower = (j, l) if same else (l, j)
            kinetic[l, j] = dot6(ld6(T, upper, 0), ld6(T, lower, 6))
            gravity[l, j] = dot3(ld3(S, upper, 0), ld3(T, lower, 18))
            # row j, column l
            kinetic[j, l] = dot6(ld6(T, l, 0), ld6(T, j, 6))
            gravity[j, l] = dot3(ld3(S, l, 0), ld3(T, j, 18))
            l = tree.rates[l, 1]


@entry
def second_derivatives(system, q, v, p, k, f, H, E, kinetic, gravity, P, S):
    """At one state, in the rows' coordinates, all tables zeroed by the caller.

    p, k (nu,) momenta and derivatives of kinetic energy by displacements; f (nu,) forces of gravity; H mass matrix;
    E = dp/dx; kinetic = dk/dx; gravity: second derivative of its potential; poses P (n+1, 12) and axes S (nu, 6).
    """
    c, tree = system.coordinates, system.tree
    w = make_work(system, q)
    x, u, m, T = np.empty(q.size), np.empty(p.size), np.empty(tree.rows.shape[0]), np.zeros((p.size, 24))
    positions_in(c, q, x)
    rates_in(c, x, v, u)
    kinematics(tree, x, P, S)
    inertias(tree, x, P, w.M)
    velocities(tree, u, S, w.V)
    subtree_momenta(tree, w.M, w.V, w.F)
    subtree_inertias(tree, w.M, m)
    mass_matrix(tree, S, w.M, m, H)
    rate_tables(tree, S, w.M, m, w.V, w.F, T)
    momentum_by_position(tree, S, T, E)
    position_by_position(tree, S, T, kinetic, gravity)
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for d in range(p.size):
        i = tree.rates[d, 0]
        s = ld6(S, d, 0)
        p[d] = dot6(s, ld6(w.F, i, 0)) + tree.armature[d] * u[d]
        k[d] = dot6(ld6(T, d, 0), ld6(w.F, i, 0))
        f[d] = m[i] * dot3(g, lin(s)) + dot3(cross(ld3(w.M, i, 6), g), ang(s))
