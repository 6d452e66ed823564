"""Discrete Legendre transforms of the variational integrators: (x, u) to momenta along parent axes, and back.

p = dL/du has the components of a ball along its parent's axes, so that nothing has to be carried from step to step. The
way back, u = M^-1 p, is as accurate as the steps are; rates of the step's polynomial are not. With loops or constraints
p lacks the impulse of the end of the step, and u is that of M u + G^T nu = p, G u = 0.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.jit.decorators import entry, kernel, sweep
from leastaction.jit.lanes import ld3, ld6
from leastaction.loops.nodes import make_loop_nodes, node_rows, project_rates
from leastaction.spatial._source.so3 import quat_conj, quat_normalize, quat_rotate
from leastaction.spatial._source.vector import add6, dot6, inertia_times
from leastaction.tree.articulated import eliminate, expand
from leastaction.tree.coordinates import get3, positions_in, positions_out, put3, quat_at, rates_in, rates_out
from leastaction.tree.kinematics import inertias, kinematics, velocities
from leastaction.tree.layout import BALL, IU, IX, KIND, MASS, PARENT, VELOCITY


@sweep
def momenta(tree, x, u, f, p):
    """p (nu,) = dL/du with the components of a ball along its parent's axes; f is forward-dynamics scratch."""
    kinematics(tree, x, f.P, f.S)
    inertias(tree, x, f.P, f.M)
    velocities(tree, u, f.S, f.V)
    for i in range(tree.rows.shape[0]):
        h = inertia_times(ld6(f.M, i, 0), ld3(f.M, i, 6), tree.const[i, MASS], ld6(f.V, i, 0))
        for e in range(6):
            f.F[i, e] = h[e]
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        d, par = tree.rows[i, IU], tree.rows[i, PARENT]
        h = ld6(f.F, i, 0)
        if tree.rows[i, KIND] == BALL:
            c = (
                dot6(ld6(f.S, d, 0), h) + tree.armature[d] * u[d],
                dot6(ld6(f.S, d + 1, 0), h) + tree.armature[d + 1] * u[d + 1],
                dot6(ld6(f.S, d + 2, 0), h) + tree.armature[d + 2] * u[d + 2],
            )
            put3(p, d, quat_rotate(quat_normalize(quat_at(x, tree.rows[i, IX])), c))
        else:
            p[d] = dot6(ld6(f.S, d, 0), h) + tree.armature[d] * u[d]
        h = add6(ld6(f.F, par, 0), h)
        for e in range(6):
            f.F[par, e] = h[e]


@kernel
def factor_mass(tree, x, f):
    """Kinematics, inertias and the articulated factors of M(x) in f, with the forces f.f and none on bodies."""
    for i in range(tree.rows.shape[0]):
        for e in range(6):
            f.F[i, e] = 0.0
    kinematics(tree, x, f.P, f.S)
    inertias(tree, x, f.P, f.M)
    eliminate(tree, f.S, f.M, f.A, f.F, f.f, f.U, f.y)


@kernel
def to_child_axes(tree, x, p, out):
    """Components of balls along child axes."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            back = quat_conj(quat_normalize(quat_at(x, tree.rows[i, IX])))
            put3(out, d, quat_rotate(back, get3(p, d)))
        else:
            out[d] = p[d]


@kernel
def to_parent_axes(tree, x, u, out):
    """Components of balls along parent axes."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            put3(out, d, quat_rotate(quat_normalize(quat_at(x, tree.rows[i, IX])), get3(u, d)))
        else:
            out[d] = u[d]


@sweep
def tree_rates(tree, x, p, f, u):
    """u (nu,) = M^-1 p by the articulated recursion, O(n); loops and constraints do not count."""
    to_child_axes(tree, x, p, f.f)
    factor_mass(tree, x, f)
    expand(tree, f.S, f.U, f.y, f.Z, u)


@sweep
def rates_of(system, t, x, p, f, L, u):
    """u (nu,) = M^-1 p, with loops and constraints as the file says; False if these cannot be solved."""
    tree_rates(system.tree, x, p, f, u)
    return project_rates(system.loops, system, t, x, f, L, u)


@entry
def enter_momenta(system, q, v, x, u, p):
    """Coordinates and momenta of the rows from the user's state."""
    f = make_work(system, x)
    positions_in(system.coordinates, q, x)
    rates_in(system.coordinates, x, v, u)
    momenta(system.tree, x, u, f, p)


@entry
def leave_momenta(system, t, x, p, q, v):
    """The user's state from coordinates and momenta of the rows; False if the constraints cannot be solved."""
    f, u = make_work(system, x), np.zeros(p.size)
    L = make_loop_nodes(system.loops, system.constraints, system.tree, 1)
    good = rates_of(system, t, x, p, f, L, u)
    positions_out(system.coordinates, x, q)
    rates_out(system.coordinates, x, u, v)
    return good


@entry
def gaps_and_rates(system, t, x, u, g, rate):
    """Gaps g (m,) of loops and constraints and their rates; a velocity constraint has only a rate."""
    f = make_work(system, x)
    L = make_loop_nodes(system.loops, system.constraints, system.tree, 1)
    kinematics(system.tree, x, f.P, f.S)
    velocities(system.tree, u, f.S, f.V)
    node_rows(system, t, 1.0, x, f, L, 0)
    for k in range(g.size):
        g[k] = 0.0 if L.kind[k] == VELOCITY else L.g[0, k]
        rate[k] = L.g[0, k] if L.kind[k] == VELOCITY else 0.0
        if L.kind[k] != VELOCITY:
            for e in range(L.ends.shape[1]):
                if L.ends[k, e] > 0:
                    rate[k] += dot6(ld6(L.G, k, 6 * e), ld6(f.V, L.ends[k, e], 0))
