"""Rates from momenta where bodies are coupled: M du - G^T nu = 0, G (u + du) = 0 along the graph.

u = M^-1 p of the tree comes first (``dynamics.legendre``); what loops and constraints take from it is a step of the
recursion of ``maximal.graph`` that begins and ends at one pose, where the block D of a body is its spatial inertia: O(n
w^2), against O(m n + m^3) of ``loops.nodes.project_rates``. Redundant rows are met by the proximal term of
``maximal.loops``, taken again until the rates are kept, each time with the balance of momenta that is left.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.dynamics.legendre import tree_rates
from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6, st9
from leastaction.loops.nodes import node_rows
from leastaction.loops.rows import RHO, SWEEPS
from leastaction.maximal.bodies import centre, clear_blocks, make_bodies, second_moments
from leastaction.maximal.graph import clear_couplings, node_count, solve_bodies
from leastaction.maximal.loops import add_multipliers, proximal_blocks, push_ends, trust_rows
from leastaction.maximal.recursion import body_block, times
from leastaction.spatial._source.vector import add6, ang, dot3, dot6, lin, matmul, transpose
from leastaction.tree.arrays import all_finite
from leastaction.tree.kinematics import velocities
from leastaction.tree.layout import BALL, IU, KIND, MASS, VELOCITY

# Rates of constraints below this part of their terms are rounding.
ROUNDING = 1.0e-13


@optional(None, MEMORY_OPTIONS)
def make_rates(plan, tree, x):
    """Scratch memory: the tables of a step."""
    return make_bodies(tree, x, node_count(plan), (0, 0))


@sweep
def rest(tree, f, B):
    """Tables of a step in which nothing moves, at the poses of f, without any force."""
    C = tree.const
    for i in range(1, tree.rows.shape[0]):
        none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        st6(B.L, i, 0, none)
        st6(B.F0, i, 0, none)
        st6(B.rho, i, 0, none)
        st6(B.sum, i, 0, none)
        if C[i, MASS] > 0.0:
            R = ld9(f.P, i, 0)
            x = centre(C, i, R, ld3(f.P, i, 9))
            st9(B.A, i, 0, matmul(matmul(R, second_moments(C, i)), transpose(R)))
            st3(B.A, i, 9, x)
            st3(B.X0, i, 9, x)
        d = tree.rows[i, IU]
        for a in range(3 if tree.rows[i, KIND] == BALL else 1):
            axis = ld6(f.S, d + a, 0)
            st6(B.S0, d + a, 0, axis)
            st6(B.S1, d + a, 0, axis)
            B.xi[d + a] = 0.0
            st3(B.K, d + a, 0, (0.0, 0.0, 0.0))
            B.K[d + a, a] = tree.armature[d + a]


@kernel
def rates_of_rows(L, V):
    """L.g[1]: rates of all constraints at the twists V, in place of gaps. Returns whether all are rounding.

    A velocity constraint is its own rate at the twists it was asked at (L.rest holds what it is besides G . V). Each is
    compared with its own terms.
    """
    small = True
    for k in range(L.kind.size):
        rate, scale = L.rest[k], abs(L.rest[k])
        for e in range(L.ends.shape[1]):
            if L.ends[k, e] > 0:
                row, v = ld6(L.G, k, 6 * e), ld6(V, L.ends[k, e], 0)
                rate += dot6(row, v)
                scale += math.sqrt(dot3(ang(row), ang(row)) * dot3(ang(v), ang(v)))
                scale += math.sqrt(dot3(lin(row), lin(row)) * dot3(lin(v), lin(v)))
        L.g[1, k] = rate
        small = small and abs(rate) <= ROUNDING * scale
    return small


@kernel
def balance(tree, B, L):
    """M du - G^T nu of what is found so far: momenta of bodies and rotors, and what the multipliers give."""
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            st6(B.L, i, 0, times(body_block(tree.const, i, B, 1.0), ld6(B.sum, i, 0)))
    for d in range(B.c.size):
        B.c[d] = tree.armature[d] * B.xi[d]
    for k in range(L.kind.size):
        push_ends(L, k, 1.0, B)


@kernel
def rows_twice(L):
    """The rows at the end of a step are those at its start."""
    m = L.kind.size
    for k in range(m):
        for e in range(L.G.shape[1]):
            L.G[m + k, e] = L.G[k, e]


@sweep
def coupled_rates(plan, system, t, x, p, mass, B, E, f, L, u):
    """u (nu,) = M^-1 p, as far as loops and constraints allow; False if they cannot be solved."""
    tree_rates(system.tree, x, p, f, u)
    return keep_rates(system.loops, plan, system, t, x, mass, B, E, f, L, u)


@optional(True)
def keep_rates(loops, plan, system, t, x, mass, B, E, f, L, u):
    """Change u so that loops and constraints are kept; f holds what ``tree_rates`` left."""
    tree = system.tree
    if L.kind.size == 0:
        return True
    velocities(tree, u, f.S, f.V)
    node_rows(system, t, 1.0, x, f, L, 0)
    rows_twice(L)
    for k in range(L.kind.size):
        L.rest[k] = 0.0
    rates_of_rows(L, f.V)
    for k in range(L.kind.size):
        if L.kind[k] == VELOCITY:
            L.rest[k] = L.g[0, k] - L.g[1, k]
    rest(tree, f, B)
    trust_rows(plan, E)
    for k in range(L.kind.size):
        L.lam[0, k] = 0.0
    for turn in range(SWEEPS):
        small = rates_of_rows(L, f.V)
        # the first turn leaves what rounding does beside stiff rows
        if turn > 1 and small:
            break
        clear_blocks(tree, B)
        clear_couplings(plan, E, B.W)
        balance(tree, B, L)
        proximal_blocks(plan, 1.0, RHO, B, E, L)
        if not solve_bodies(plan, tree, B, E, 1.0):
            return False
        add_multipliers(loops, plan, B, L, 1.0)
        for d in range(u.size):
            u[d] += B.y[d]
            B.xi[d] += B.y[d]
        for i in range(1, tree.rows.shape[0]):
            eta = ld6(B.eta, i, 0)
            st6(f.V, i, 0, add6(ld6(f.V, i, 0), eta))
            st6(B.sum, i, 0, add6(ld6(B.sum, i, 0), eta))
    return all_finite(u)
