"""Closed loops and constraints of the user in a Galerkin step (Fan et al. 2018, sec. 3.3 and eq. (6)).

Constraints g = 0 are imposed at nodes 1..s; impulses lam^a act at nodes 0..s-1 along G^a, the derivative of g at that
node. A constraint row k touches up to B bodies: its rate is the sum over them of G . v (wrench-like, about the kernels'
origin). Velocity constraints of the user have rows h g(q, qdot) and the derivative by the twists as G. The rates of the
polynomial have an error along Legendre's P_s, of O(h^s); the rest of g^0..g^s, which is orthogonal to polynomials of
degree s-1, is imposed, so that the order is 2s (Jay 2009, Lagrange-d'Alembert SPARK integrators):

    g^a - g^0 P_s(c_a) / P_s(c_0) = 0,   a = 1..s

With Y_(a,k) = -J^-1 (row k as a force at node a), Newton's step for motion and multipliers is (Fan et al., sec. 3.3)

    Sc dlam = -(g + G y_r),   Sc[(c, l), (a, k)] = change of row l at node c by Y_(a,k),   y = y_r + sum dlam Y    (9)

in O(m n + m^3). Rows of a node are combined by a constant matrix per kind of row (``balance``), which turns Sc into
h (G M^-1 G^T) for each node up to higher order; redundant rows are then met by the proximal term alone. Where a step
leads through a singular position, Sc has small negative eigenvalues, along which the proximal iteration diverges: what
does not descend goes on with least squares, |Sc dlam - b|^2 + CARE^2 |dlam|^2, which never do. For s = 1 the step is
Newton's; from s = 2 on the turning of the forces at inner nodes is left out of J, an error of O(h^2).

    g      (s+1, m)       gaps at the nodes, as imposed G     ((s+1) m, 6 B) rows
    ends   (m, B)         rows of the tree, or -1       kind  (m,)           EQUALITY (loops too) or VELOCITY
    lam    (s, m)         impulses                      Y     (s m, nu s)    solutions
    Sc, LU (s m, s m)     matrices of eq. (9)           eta   (n+1, 6)       spatial variation of the poses at a node
    unit   (s m,)         one over the roots of the sizes of the rows of Sc   care (1,)  1 for least squares
    size   (m,)           of the rows at node 0, ``loops.rows.mobility``          own (n+1, 2)  see ``loops.rows``
    gap, square (m,)      largest gap of a constraint at nodes 1..s, and the sum of squares; pulled (k,) see
                          ``galerkin.tolerance``

A gap is compared with what motion of its bodies makes of it: with an angle, or with the arm of the bodies it touches.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.forces.bodies import give_bodies, link_frame
from leastaction.jit.calls import call_force
from leastaction.jit.decorators import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.jit.lanes import ld6, st6
from leastaction.loops.rows import (
    RHO,
    SWEEPS,
    loop_rows,
    loop_size,
    mobility,
    own_inertias,
    pair_size,
    size_or_one,
)
from leastaction.loops.ties import most_tied, tie_rows, tied_coordinates
from leastaction.solve.dense import lu_factor, lu_solve, proximal_solve
from leastaction.spatial._source.vector import add3, axpy6, cross, dot6, join, matvec, scale6
from leastaction.tree.articulated import expand, reduce
from leastaction.tree.kinematics import last_rate, velocities
from leastaction.tree.layout import BALL, EQUALITY, IU, KIND, PARENT, VELOCITY, Floats, Ints
from leastaction.tree.nodes import node_tables

# Singular values of Sc, in units of the sizes of its rows, that do not count in least squares.
CARE = 1.0e-6


class LoopNodes(NamedTuple):
    """Scratch memory of the constraints of one step; see the symbol table of this file."""

    g: Floats
    G: Floats
    ends: Ints
    kind: Ints
    lam: Floats
    old: Floats
    dlam: Floats
    Y: Floats
    y: Floats
    R: Floats
    Sc: Floats
    LU: Floats
    pivot: Ints
    rhs: Floats
    rest: Floats
    eta: Floats
    given: Floats
    result: Floats
    own: Floats
    size: Floats
    unit: Floats
    more: Floats
    gap: Floats
    square: Floats
    pulled: Floats
    care: Ints


@optional(0)
def constraint_size(constraints):
    """Number of rows of the constraints of the user."""
    m = 0
    for k in range(constraints.kind.shape[0]):
        m += constraints.kind[k, 4]
    return m


@optional(0)
def count_rows(loops, constraints):
    """Number of rows of loops and constraints."""
    return loop_size(loops) + constraint_size(constraints)


@optional(None, MEMORY_OPTIONS)
def make_loop_nodes(loops, constraints, tree, s):
    """Scratch memory; for a mechanism without loops and constraints it is empty."""
    return make_loop_rows(loops, constraints, tree, s, True)


@optional(None, MEMORY_OPTIONS)
def make_loop_rows(loops, constraints, tree, s, solved):
    """The same without the matrices of eq. (9) unless it is to be solved."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    start = loop_size(loops)
    m = start + constraint_size(constraints)
    # most bodies and most numbers of one constraint
    B, size = max(2, most_tied(loops.ties)), 1
    for k in range(constraints.kind.shape[0]):
        B = max(B, constraints.kind[k, 2])
        size = max(size, constraints.kind[k, 4] * (1 + 6 * constraints.kind[k, 2]))
    ends, kind = np.full((m, B), -1), np.full(m, EQUALITY)
    for k in range(loops.rows.shape[0]):
        first = loops.rows[k, 2]
        for r in range(first, first + loops.rows[k, 3] + loops.rows[k, 4] + (1 if loops.rows[k, 5] > 0 else 0)):
            ends[r, 0], ends[r, 1] = loops.rows[k, 0], loops.rows[k, 1]
    T = loops.ties
    for k in range(T.kind.shape[0]):
        for e in range(T.kind[k, 3]):
            ends[pair_size(loops) + k, e] = T.bodies[T.kind[k, 2] + e]
    for k in range(constraints.kind.shape[0]):
        first = start + constraints.kind[k, 3]
        for r in range(first, first + constraints.kind[k, 4]):
            kind[r] = constraints.kind[k, 0]
            for c in range(constraints.kind[k, 2]):
                ends[r, c] = constraints.bodies[constraints.kind[k, 1] + c]
    ms = m * s if solved else 0
    return LoopNodes(
        np.zeros((s + 1, m)), np.zeros(((s + 1) * m, 6 * B)), ends, kind, np.zeros((s, m)), np.zeros((s, m)),
        np.zeros(ms), np.zeros((ms, nu * s)), np.zeros(nu * s), np.zeros((nu, s)), np.zeros((ms, ms)),
        np.zeros((ms, ms)), np.zeros(ms, np.int64), np.zeros(ms), np.zeros(m * s), np.zeros((n, 6)),
        np.zeros(18 * B), np.zeros(size), own_inertias(loops, tree), np.ones(m), np.ones(ms),
        np.zeros(ms), np.zeros(m), np.zeros(m), np.zeros(tree.parts.shape[0]), np.zeros(1, np.int64),
    )  # fmt: skip


# --- rows -----------------------------------------------------------------------------------------------------------
@kernel
def node_rows(system, t, h, x, f, L, a):
    """Gaps and rows of all constraints at node a, with the coordinates x, poses f.P and twists f.V of that node."""
    rows_at(system, t, h, x, f.P, f.V, f, L, a)


@sweep
def rows_at(system, t, h, x, P, V, f, L, a):
    """The same with given poses and twists."""
    loops, c = system.loops, system.constraints
    m, pairs, start = L.kind.size, pair_size(loops), loop_size(loops)
    loop_rows(loops, P, V, f.g, f.G, None, f.ends)
    tie_rows(loops.ties, system.tree, x, P, L, a, pairs)
    for k in range(pairs):
        L.g[a, k] = f.g[k]
        row = ld6(f.G, k, 0)
        st6(L.G, a * m + k, 0, scale6(-1.0, row))
        st6(L.G, a * m + k, 6, row)
    for k in range(c.kind.shape[0]):
        b, count, r, size = c.kind[k, 1], c.kind[k, 2], start + c.kind[k, 3], c.kind[k, 4]
        give_bodies(c, b, count, P, V, L.given)
        call_force(c.address[k], t, L.given, L.result)
        scale = h if c.kind[k, 0] == VELOCITY else 1.0
        for i in range(size):
            L.g[a, r + i] = scale * L.result[i]
            # a row by the body twist, in link axes, as a wrench about the origin
            for e in range(count):
                R, p = link_frame(c, b + e, P)
                o = size + 6 * (count * i + e)
                turn = matvec(R, (L.result[o], L.result[o + 1], L.result[o + 2]))
                push = matvec(R, (L.result[o + 3], L.result[o + 4], L.result[o + 5]))
                st6(L.G, a * m + r + i, 6 * e, join(add3(turn, cross(p, push)), push))
    if a == 0:
        for k in range(m):
            size = 0.0
            for e in range(L.ends.shape[1]):
                size += mobility(system.tree.const, L.own, P, L.ends[k, e], ld6(L.G, k, 6 * e))
            L.size[k] = size_or_one(size)


# --- gaps -----------------------------------------------------------------------------------------------------------
@kernel
def row_size(L, k, at):
    """What motion makes of constraint k, in row ``at`` of L.G: along a translation, times an arm; else by a turn."""
    push, turn, arm = 0.0, 0.0, 0.0
    for e in range(L.ends.shape[1]):
        i = L.ends[k, e]
        if i > 0:
            for c in range(6 * e, 6 * e + 3):
                turn, push = max(turn, abs(L.G[at, c])), max(push, abs(L.G[at, c + 3]))
            if L.own[i, 0] > 0.0:
                arm = max(arm, L.own[i, 1] / L.own[i, 0])
    size = math.sqrt(arm) * push if push > 0.0 and arm > 0.0 else turn
    return size if size > 0.0 else 1.0


@kernel
def gap_rounding(L, k, at, P):
    """Rounding of the gap of constraint k, in row ``at`` of L.G, by that of the positions P."""
    far = 0.0
    for e in range(L.ends.shape[1]):
        i = L.ends[k, e]
        if i > 0:
            for c in range(3):
                far = max(far, abs(L.G[at, 6 * e + 3 + c]) * max(abs(P[i, 9]), abs(P[i, 10]), abs(P[i, 11])))
    return 4.0e-16 * far


@kernel
def gap_of(L, a, k, P):
    """Gap of constraint k at node a as an angle, and what of it is more than the rounding of positions P."""
    at = a * L.kind.size + k
    size = row_size(L, k, at)
    gap = L.g[a, k] / size
    if not abs(gap) < math.inf:
        return gap, math.inf
    return gap, max(abs(gap) - gap_rounding(L, k, at, P) / size, 0.0)


@kernel
def share(nodes, a):
    """P_s(c_a) / P_s(c_0), with P_s Legendre's polynomial on the step; from the weights, w_a P_s(c_a)^2 = w_0."""
    rho = np.sqrt(nodes.w[0] / nodes.w[a])
    return rho if a % 2 == 0 else -rho


@optional(None)
def loop_impulses(loops, system, nodes, t, x, w, f, L, xa):
    """Rows at all nodes, and their impulses added to w.G; L.gap and L.square of the gaps as angles."""
    s, m = len(nodes.w) - 1, L.kind.size
    if m == 0:
        return
    for k in range(m):
        L.gap[k], L.square[k] = 0.0, 0.0
    for a in range(s + 1):
        node_tables(w, f, a)
        tied_coordinates(loops.ties, x, w.xi, a, xa)
        node_rows(system, t + nodes.c[a] * nodes.h, nodes.h, xa, f, L, a)
        for k in range(m):
            if a > 0:
                if L.kind[k] == VELOCITY:
                    L.g[a, k] -= share(nodes, a) * L.g[0, k]
                gap, more = gap_of(L, a, k, f.P)
                L.gap[k] = max(L.gap[k], more)
                L.square[k] += gap * gap
            if a < s:
                for e in range(L.ends.shape[1]):
                    i = L.ends[k, e]
                    if i >= 0:
                        st6(w.G, i, 6 * a, axpy6(L.lam[a, k], ld6(L.G, a * m + k, 6 * e), ld6(w.G, i, 6 * a)))


# --- the step of the multipliers ------------------------------------------------------------------------------------
@sweep
def push_row(tree, w, L, a, k, m):
    """L.R: row k as a generalised force at node a."""
    for d in range(L.R.shape[0]):
        for e in range(L.R.shape[1]):
            L.R[d, e] = 0.0
    for e in range(L.ends.shape[1]):
        if L.ends[k, e] > 0:
            row = ld6(L.G, a * m + k, 6 * e)
            d = last_rate(tree, L.ends[k, e])
            while d >= 0:
                L.R[d, a] += dot6(row, ld6(w.S, d, 6 * a))
                d = tree.rates[d, 1]


@sweep
def measure(tree, nodes, w, L, y, out):
    """Changes of all rows at nodes 1..s by a step y; w.z must be the variation of the twists that belongs to it."""
    s, m = len(nodes.w) - 1, L.kind.size
    for c in range(1, s + 1):
        # poses
        for i in range(1, tree.rows.shape[0]):
            d, v = tree.rows[i, IU], ld6(L.eta, tree.rows[i, PARENT], 0)
            if tree.rows[i, KIND] == BALL:
                for j in range(3):
                    v = axpy6(y[d * s + 3 * (c - 1) + j], ld6(w.S, d + j, 6 * c), v)
            else:
                v = axpy6(y[d * s + c - 1], ld6(w.S, d, 6 * c), v)
            st6(L.eta, i, 0, v)
        # rows
        for k in range(m):
            change = 0.0
            for e in range(L.ends.shape[1]):
                i = L.ends[k, e]
                if i > 0:
                    row = ld6(L.G, c * m + k, 6 * e)
                    if L.kind[k] == VELOCITY:
                        change += nodes.h * dot6(row, ld6(w.z, i, 6 * c))
                        change -= nodes.h * share(nodes, c) * dot6(ld6(L.G, k, 6 * e), ld6(w.z, i, 0))
                    else:
                        change += dot6(row, ld6(L.eta, i, 0))
            out[(c - 1) * m + k] = change


@sweep
def balanced(nodes, L, x, out):
    """Combine the rows of the nodes: out_a = sum_c balance[kind][a, c] x_c."""
    s, m = len(nodes.w) - 1, L.kind.size
    for k in range(m):
        for a in range(s):
            total = 0.0
            for c in range(s):
                total += nodes.balance[L.kind[k], a, c] * x[c * m + k]
            out[a * m + k] = total


@sweep
def solve_loops(nodes, w, L, y):
    """dlam from Sc and the right-hand side, then y += sum dlam Y. Returns False if the factorisation fails."""
    ms, m = L.dlam.size, L.kind.size
    balanced(nodes, L, L.rhs, L.rest)
    # rows and columns in units of their size, so that no pivot depends on them
    for i in range(ms):
        L.unit[i] = 1.0 / math.sqrt(max(nodes.h * L.size[i % m], abs(L.Sc[i, i])))
    for i in range(ms):
        L.rhs[i] = L.unit[i] * L.rest[i]
        L.dlam[i] = 0.0
        for j in range(ms):
            L.Sc[i, j] *= L.unit[i] * L.unit[j]
            L.LU[i, j] = L.Sc[i, j]
        L.LU[i, i] += RHO
    if L.care[0] == 1:
        for i in range(ms):
            for j in range(ms):
                t = CARE * CARE if i == j else 0.0
                for e in range(ms):
                    t += L.Sc[e, i] * L.Sc[e, j]
                L.LU[i, j] = t
    if not lu_factor(L.LU, L.pivot):
        return False
    # the proximal term, taken off again sweep by sweep
    for _ in range(SWEEPS):
        for i in range(ms):
            t = L.rhs[i]
            for j in range(ms):
                t -= L.Sc[i, j] * L.dlam[j]
            L.rest[i] = t
        if L.care[0] == 1:
            for i in range(ms):
                L.more[i] = L.rest[i]
            for i in range(ms):
                t = 0.0
                for e in range(ms):
                    t += L.Sc[e, i] * L.more[e]
                L.rest[i] = t
        lu_solve(L.LU, L.pivot, L.rest)
        for i in range(ms):
            L.dlam[i] += L.rest[i]
    for i in range(ms):
        L.dlam[i] *= L.unit[i]
    for k in range(ms):
        for e in range(y.size):
            y[e] += L.dlam[k] * L.Y[k, e]
    return True


@optional(None)
def trust_loops(loops, L):
    """The rows are taken to be well conditioned, but for those that are redundant."""
    L.care[0] = 0


@optional(False)
def take_loops_care(loops, L):
    """From now on multipliers are found in least squares; False if this was so already, or there are none."""
    changed = L.care[0] == 0 and L.kind.size > 0
    L.care[0] = 1
    return changed


@optional(None)
def clear_multipliers(loops, L):
    """No impulses yet, so that they do not wander along what redundant rows leave open."""
    for a in range(L.lam.shape[0]):
        for k in range(L.lam.shape[1]):
            L.lam[a, k] = 0.0


@optional(None)
def keep_multipliers(loops, L):
    """Remember the multipliers before a step."""
    for a in range(L.lam.shape[0]):
        for k in range(L.lam.shape[1]):
            L.old[a, k] = L.lam[a, k]


@optional(None)
def add_multipliers(loops, L, alpha):
    """A part of the step of the multipliers."""
    m = L.kind.size
    for a in range(L.lam.shape[0]):
        for k in range(m):
            L.lam[a, k] = L.old[a, k] + alpha * L.dlam[a * m + k]


# --- velocities that keep the constraints ---------------------------------------------------------------------------
@optional(True)
def project_rates(loops, system, t, x, f, L, u):
    """Add M^-1 G^T nu to u so that the constraints are kept; f holds what ``rates_of`` left. O(m n + m^3)."""
    tree, m = system.tree, L.kind.size
    if m == 0:
        return True
    velocities(tree, u, f.S, f.V)
    node_rows(system, t, 1.0, x, f, L, 0)
    for k in range(m):
        rate = 0.0
        for e in range(L.ends.shape[1]):
            if L.ends[k, e] > 0:
                rate += dot6(ld6(L.G, k, 6 * e), ld6(f.V, L.ends[k, e], 0))
        # a velocity constraint of the user is its own rate
        L.rhs[k] = -L.g[0, k] if L.kind[k] == VELOCITY else -rate
    for d in range(f.f.size):
        f.f[d] = 0.0
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for k in range(m):
        for i in range(f.F.shape[0]):
            st6(f.F, i, 0, none)
        for e in range(L.ends.shape[1]):
            if L.ends[k, e] >= 0:
                i = L.ends[k, e]
                st6(f.F, i, 0, axpy6(-1.0, ld6(L.G, k, 6 * e), ld6(f.F, i, 0)))
        reduce(tree, f.S, f.F, f.f, f.U, f.y)
        expand(tree, f.S, f.U, f.y, f.Z, L.Y[k])
        for r in range(m):
            change = 0.0
            for e in range(L.ends.shape[1]):
                if L.ends[r, e] > 0:
                    change += dot6(ld6(L.G, r, 6 * e), ld6(f.Z, L.ends[r, e], 0))
            L.Sc[r, k] = change
    if not proximal_solve(L.Sc[:m, :m], L.rhs[:m], L.LU[:m, :m], L.rest[:m], L.dlam[:m], L.size, RHO, SWEEPS):
        return False
    for d in range(u.size):
        for k in range(m):
            u[d] += L.dlam[k] * L.Y[k, d]
    return True
