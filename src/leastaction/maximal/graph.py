"""The recursion of ``bodies`` where bodies are coupled beside the tree: loops, contacts and springs between bodies.

Nodes are the rows of the tree and, behind them, one node for up to six multipliers of a loop or constraint. The
equations W_i + sum_j D_ij eta_j = 0 have a block for every pair of coupled nodes. A row is eliminated as in
``maximal.bodies``: its joint coordinates are solved for, and what is left is handed to its parent, couplings included.
A node of multipliers comes right before the nearest common ancestor of its bodies, where its block has become regular.
So couplings live only between their bodies and that ancestor: O(n w^2) with w the rows that are open at a body. Fill-in
follows the graph, as in Bruedigam et al. 2023, Algorithms 3 and 4. Whatever is eliminated, with j and q coupled to it,

    Z_j, G_j^T      its pivot's inverse times D_ij, and D_ji: one row for a screw, three for a ball, six for multipliers
    D_jq -= G_j^T Z_q      W_j -= G_j^T u      with u the solution of its own equations

    order (N, 2)       nodes in the order of elimination, and whether one holds multipliers
    first (N+2,), near nodes that a node is coupled with when its turn comes: near[first[i]:first[i+1]]
    slot  (N+1, N+1)   place of D_ij, even, or of its transpose, odd (``maximal.padded``); -1 without a coupling; empty
                       in a plan that a rollout makes (``maximal.replan``)
    turn  (N+1,)       place of a node in the order       used (1,)  number of places
    moves (couplings, 3)  places of the pair (i, j), of the pair (p, j) with p the parent of i, and how it goes there
    fill  (pairs, 3)   two couplings of one node, and the place of the pair of their nodes, or the one node of both
    fills (N+2,)       where the pairs of a node begin
    mixed (N+1,)       0; 1 for a node to whose diagonal block something is added; 2 if that needs not be cleared before
    opens (N+1,)       1 for a row that is the first to add to its parent's diagonal block: it puts its own there
    stiff (1,)         1 where contacts, springs or inequalities add to the blocks B.D of bodies
    parts (nodes, 3)   node of multipliers, its first constraint row, number of rows
    E     (slots, 48)  blocks beside the diagonal          D (N+1, 48)  what is added to diagonal blocks
    y, Y, Z            dq = y - Y . eta_parent - sum_j Z_j . eta_j;  for multipliers dlam = y - sum_j Z_j eta_j
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leastaction.jit.decorators import MEMORY_OPTIONS, PART_OPTIONS, either, kernel, optional
from leastaction.jit.lanes import ld6, st6
from leastaction.maximal.padded import (
    add_padded,
    add_row,
    add_rows,
    add_to_residual,
    add_turned,
    axpy2,
    combined,
    dot2,
    invert,
    lanes6,
    least_squares,
    pad,
    padded,
    padded6,
    products,
    put_row,
    quick_inverse,
    row,
    scaled2,
    take_outer,
    turned,
    unpadded,
    weighted,
)
from leastaction.maximal.recursion import (
    add_blocks,
    body_block,
    eliminate_ball,
    inward_bodies,
    less_outer,
    load_block,
    outward_bodies,
    scaled6,
    store_block,
    times,
)
from leastaction.spatial._source.vector import add6, axpy6, dot6
from leastaction.tree.layout import ADDED, BALL, IU, KIND, MASS, NOWHERE, ON_DIAGONAL, PARENT, TURNED, Floats, Ints


class Couplings(NamedTuple):
    """Plan of the elimination, made once for a mechanism or for what touches; see the symbol table of this file.

    planner: None, or what makes it anew in a rollout.
    """

    order: Ints
    first: Ints
    near: Ints
    slot: Ints
    moves: Ints
    fill: Ints
    fills: Ints
    mixed: Ints
    opens: Ints
    stiff: Ints
    parts: Ints
    turn: Ints
    used: Ints
    planner: Any


class Blocks(NamedTuple):
    """Scratch memory: blocks beside and on the diagonal, Z and G of each coupling when its node is eliminated.

    C (12, 12): a table to invert in. eps (1,): 0, or the part of ``size`` (N+1, 6), what rows of multipliers are
    compared with, below which they are found in least squares.
    """

    E: Floats
    D: Floats
    Z: Floats
    G: Floats
    C: Floats
    eps: Floats
    size: Floats


@optional(None, MEMORY_OPTIONS)
def make_blocks(plan):
    """Scratch memory of the couplings."""
    couplings = plan.near.size
    return Blocks(
        np.zeros((2 * couplings, 48)), np.zeros((plan.mixed.size, 48)), np.zeros((couplings, 48)),
        np.zeros((couplings, 48)), np.zeros((12, 12)), np.zeros(1), np.ones((plan.mixed.size, 6)),
    )  # fmt: skip


@optional(0)
def node_count(plan):
    """Number of nodes besides the rows of the tree."""
    return plan.parts.shape[0]


@optional(None)
def clear_couplings(plan, E, W):
    """No couplings yet: blocks beside the diagonal, what is added on it, and residuals of multipliers."""
    for k in range(plan.used[0]):
        for e in range(48):
            E.E[k, e] = 0.0
    for i in range(plan.mixed.size):
        if plan.mixed[i] == 1:
            for e in range(48):
                E.D[i, e] = 0.0
    for k in range(plan.parts.shape[0]):
        for e in range(6):
            W[plan.parts[k, 0], e] = 0.0


@kernel
def leads(plan, i, j):
    """Whether a pair is kept in the axes of i: those of a body rather than of multipliers, else of what goes first."""
    rows = plan.mixed.size - plan.parts.shape[0]
    return plan.turn[i] < plan.turn[j] if (i < rows) == (j < rows) else i < rows


@kernel
def coupling_of(plan, i, j):
    """The coupling of two nodes, which is one of that whose turn is first."""
    a, b, found = (i, j, -1) if plan.turn[i] < plan.turn[j] else (j, i, -1)
    for k in range(plan.first[a], plan.first[a + 1]):
        if plan.near[k] == b:
            found = k
    return found


def _place_in_table(planner, plan, i, j):
    """The same of a plan that was made for a mechanism."""
    return plan.slot[i, j]


@either(_place_in_table, PART_OPTIONS)
def block_place(planner, plan, i, j):
    """Place of D_ij, even, or of its transpose, odd."""
    at = 2 * coupling_of(plan, i, j)
    return at if leads(plan, i, j) else at + 1


@kernel
def add_to(plan, E, D, i, j, M):
    """Add a block to D_ij; the world does not move and needs nothing."""
    if i > 0 and j > 0:
        if i == j:
            store_block(D, i, add_blocks(load_block(D, i), M))
        else:
            add_padded(E.E, block_place(plan.planner, plan, i, j), M)


@kernel
def rank_one(plan, E, D, i, j, h, x):
    """D_ij -= h x^T."""
    if i > 0 and j > 0:
        if i == j:
            store_block(D, i, less_outer(load_block(D, i), h, x))
        else:
            take_outer(E.E, block_place(plan.planner, plan, i, j), h, x)


# --- elimination ----------------------------------------------------------------------------------------------------
@kernel
def fill_in(plan, E, i, rows):
    """D_jq -= G_j^T Z_q for all j and q that are coupled with node i; Z and G have so many rows."""
    for n in range(plan.fills[i], plan.fills[i + 1]):
        a, b, at = plan.fill[n, 0], plan.fill[n, 1], plan.fill[n, 2]
        if a == b:
            for r in range(6):
                v = row(E.D, at, r)
                for k in range(rows):
                    v = axpy2(-E.G[a, 8 * k + r], row(E.Z, a, k), v)
                put_row(E.D, at, r, v)
        else:
            for r in range(6):
                v, w = row(E.E, at, r), row(E.E, at + 1, r)
                for k in range(rows):
                    v = axpy2(-E.G[a, 8 * k + r], row(E.Z, b, k), v)
                    w = axpy2(-E.Z[a, 8 * k + r], row(E.G, b, k), w)
                put_row(E.E, at, r, v)
                put_row(E.E, at + 1, r, w)


@kernel
def hand(plan, E, k):
    """The pair of coupling k, which is that of its row's parent now, goes where that is kept."""
    pair, to, how = plan.moves[k, 0], plan.moves[k, 1], plan.moves[k, 2]
    if how == ADDED:
        for r in range(6):
            add_row(E.E, to, r, row(E.E, pair, r))
            add_row(E.E, to + 1, r, row(E.E, pair + 1, r))
    elif how == TURNED:
        add_turned(E.E, pair + 1, E.E, to)
        add_turned(E.E, pair, E.E, to + 1)
    elif how == ON_DIAGONAL:
        for r in range(6):
            add_row(E.D, to, r, row(E.E, pair, r))
        add_turned(E.E, pair + 1, E.D, to)


@kernel
def eliminate_row(tree, plan, B, E, i, h):
    """Eliminate the joint of row i and hand what is left, couplings included, to its parent."""
    l, D = ld6(B.W, i, 0), body_block(tree.const, i, B, h)
    if tree.const[i, MASS] > 0.0:
        l = axpy6(-0.5 * h, ld6(B.F0, i, 0), add6(l, ld6(B.L, i, 0)))
    if plan.stiff[0] == 1:
        D = add_blocks(D, load_block(B.D, i))
    d, p = tree.rows[i, IU], tree.rows[i, PARENT]
    if tree.rows[i, KIND] == BALL:
        if plan.mixed[i] > 0:
            D = add_blocks(D, unpadded(E.D, i))
        D, l, F, H = eliminate_ball(B, d, D, add6(l, times(D, ld6(B.rho, i, 0))))
        if plan.first[i + 1] > plan.first[i]:
            couple_ball(plan, B, E, i, d, F, H)
        if p > 0:
            add_to_residual(B.W, p, pad(l))
            add_to_diagonal(plan, E, i, p, padded(D))
    else:
        eliminate_screw(plan, B, E, i, d, p, padded(D), pad(l))


@kernel
def eliminate_screw(plan, B, E, i, d, p, D, l):
    """``maximal.recursion.eliminate_screw`` with rows of eight, and what it does to coupled nodes and the parent."""
    S0, S1 = padded6(B.S0, d), padded6(B.S1, d)
    if plan.mixed[i] > 0:
        D = add_rows(D, E.D, i)
    l = axpy2(1.0, products(D, padded6(B.rho, i)), l)
    h, x = products(D, S1), weighted(D, lanes6(S0))
    s = 1.0 / (dot2(S0, h) + B.K[d, 0])
    y = -(dot2(S0, l) + B.c[d]) * s
    x = scaled2(s, x)
    column = lanes6(h)
    B.y[d] = y
    st6(B.Y, d, 0, lanes6(x))
    if plan.first[i + 1] > plan.first[i]:
        couple_screw(plan, B, E, i, d, s, column)
    if p > 0:
        add_to_residual(B.W, p, axpy2(y, h, l))
        left = (
            axpy2(-column[0], x, D[0]), axpy2(-column[1], x, D[1]), axpy2(-column[2], x, D[2]),
            axpy2(-column[3], x, D[3]), axpy2(-column[4], x, D[4]), axpy2(-column[5], x, D[5]),
        )  # fmt: skip
        add_to_diagonal(plan, E, i, p, left)


@kernel
def add_to_diagonal(plan, E, i, p, M):
    """What is left of row i, in six rows, to the diagonal block of its parent."""
    M = M if plan.opens[i] == 1 else add_rows(M, E.D, p)
    put_row(E.D, p, 0, M[0])
    put_row(E.D, p, 1, M[1])
    put_row(E.D, p, 2, M[2])
    put_row(E.D, p, 3, M[3])
    put_row(E.D, p, 4, M[4])
    put_row(E.D, p, 5, M[5])


@kernel
def couple_screw(plan, B, E, i, d, s, h):
    """What the elimination of a screw does to the nodes coupled with its row; s, h as ``eliminate_screw`` gives them.

    Z_j = s S0^T D_ij,  G_j = S1^T D_ji^T:  D_pj += D_ij - h Z_j,  D_jp^T += D_ji^T - Y G_j,  W_j += D_ji rho + y G_j
    """
    S0, S1, rho, Y, y = ld6(B.S0, d, 0), ld6(B.S1, d, 0), ld6(B.rho, i, 0), ld6(B.Y, d, 0), B.y[d]
    for k in range(plan.first[i], plan.first[i + 1]):
        pair = plan.moves[k, 0]
        z, g = scaled2(s, combined(E.E, pair, S0)), combined(E.E, pair + 1, S1)
        put_row(E.Z, k, 0, z)
        put_row(E.G, k, 0, g)
        add_to_residual(B.W, plan.near[k], axpy2(y, g, combined(E.E, pair + 1, rho)))
        if plan.moves[k, 2] != NOWHERE:
            for r in range(6):
                put_row(E.E, pair, r, axpy2(-h[r], z, row(E.E, pair, r)))
                put_row(E.E, pair + 1, r, axpy2(-Y[r], g, row(E.E, pair + 1, r)))
            hand(plan, E, k)
    fill_in(plan, E, i, 1)


@kernel
def couple_ball(plan, B, E, i, d, F, H):
    """The same for a ball, with the factors F of its pivot and three columns H."""
    rho, Y0, Y1, Y2 = ld6(B.rho, i, 0), ld6(B.Y, d, 0), ld6(B.Y, d + 1, 0), ld6(B.Y, d + 2, 0)
    for k in range(plan.first[i], plan.first[i + 1]):
        pair = plan.moves[k, 0]
        x0, x1, x2 = (
            combined(E.E, pair, ld6(B.S0, d, 0)),
            combined(E.E, pair, ld6(B.S0, d + 1, 0)),
            combined(E.E, pair, ld6(B.S0, d + 2, 0)),
        )
        # the factors as in ``solved_rows``
        x1 = axpy2(-F[0], x0, x1)
        z2 = scaled2(1.0 / F[8], axpy2(-F[2], x1, axpy2(-F[1], x0, x2)))
        z1 = scaled2(1.0 / F[6], axpy2(-F[7], z2, x1))
        z0 = scaled2(1.0 / F[3], axpy2(-F[5], z2, axpy2(-F[4], z1, x0)))
        g0, g1, g2 = (
            combined(E.E, pair + 1, ld6(B.S1, d, 0)),
            combined(E.E, pair + 1, ld6(B.S1, d + 1, 0)),
            combined(E.E, pair + 1, ld6(B.S1, d + 2, 0)),
        )
        put_row(E.Z, k, 0, z0)
        put_row(E.Z, k, 1, z1)
        put_row(E.Z, k, 2, z2)
        put_row(E.G, k, 0, g0)
        put_row(E.G, k, 1, g1)
        put_row(E.G, k, 2, g2)
        moved = axpy2(B.y[d], g0, axpy2(B.y[d + 1], g1, axpy2(B.y[d + 2], g2, combined(E.E, pair + 1, rho))))
        add_to_residual(B.W, plan.near[k], moved)
        if plan.moves[k, 2] != NOWHERE:
            for r in range(6):
                v = axpy2(-H[0][r], z0, axpy2(-H[1][r], z1, axpy2(-H[2][r], z2, row(E.E, pair, r))))
                put_row(E.E, pair, r, v)
                v = axpy2(-Y0[r], g0, axpy2(-Y1[r], g1, axpy2(-Y2[r], g2, row(E.E, pair + 1, r))))
                put_row(E.E, pair + 1, r, v)
            hand(plan, E, k)
    fill_in(plan, E, i, 3)


@kernel
def eliminate_node(plan, B, E, i):
    """Eliminate a node of multipliers; False if its block is singular."""
    if E.eps[0] > 0.0:
        least_squares(E.D, i, E.eps[0], E.size, E.C)
    elif not quick_inverse(unpadded(E.D, i), E.C) and not invert(E.D, i, E.C):
        return False
    u, C = ld6(B.W, i, 0), E.C
    for r in range(6):
        B.W[i, r] = dot6(ld6(C, r, 6), u)
    u = ld6(B.W, i, 0)
    for k in range(plan.first[i], plan.first[i + 1]):
        pair, j = plan.moves[k, 0], plan.near[k]
        # D_ij, and D_ji^T: of a body they are kept in its axes first
        if leads(plan, i, j):
            for r in range(6):
                put_row(E.Z, k, r, row(E.E, pair, r))
                put_row(E.G, k, r, row(E.E, pair + 1, r))
        else:
            turned(E.E, pair + 1, E.Z, k)
            turned(E.E, pair, E.G, k)
        rows = (row(E.Z, k, 0), row(E.Z, k, 1), row(E.Z, k, 2), row(E.Z, k, 3), row(E.Z, k, 4), row(E.Z, k, 5))
        for r in range(6):
            v = axpy2(C[r, 6], rows[0], scaled2(C[r, 7], rows[1]))
            v = axpy2(C[r, 8], rows[2], axpy2(C[r, 9], rows[3], v))
            put_row(E.Z, k, r, axpy2(C[r, 10], rows[4], axpy2(C[r, 11], rows[5], v)))
        add_to_residual(B.W, j, scaled2(-1.0, combined(E.G, k, u)))
    fill_in(plan, E, i, 6)
    return True


def _solve_tree(plan, tree, B, E, h):
    """Newton direction of a tree without couplings."""
    inward_bodies(tree, B, h)
    outward_bodies(tree, B)
    return True


@either(_solve_tree)
def solve_bodies(plan, tree, B, E, h):
    """Newton direction with couplings: dq in B.y, eta of every node in B.eta; False if a pivot is singular."""
    for k in range(plan.order.shape[0]):
        i = plan.order[k, 0]
        if plan.order[k, 1] == 0:
            eliminate_row(tree, plan, B, E, i, h)
        elif not eliminate_node(plan, B, E, i):
            return False
    # the way back
    st6(B.eta, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for k in range(plan.order.shape[0] - 1, -1, -1):
        i = plan.order[k, 0]
        if plan.order[k, 1] == 1:
            e = scaled6(-1.0, ld6(B.W, i, 0))
            for q in range(plan.first[i], plan.first[i + 1]):
                e = axpy6(-1.0, times(unpadded(E.Z, q), ld6(B.eta, plan.near[q], 0)), e)
        else:
            d = tree.rows[i, IU]
            z = ld6(B.eta, tree.rows[i, PARENT], 0)
            e = add6(z, ld6(B.rho, i, 0))
            for a in range(3 if tree.rows[i, KIND] == BALL else 1):
                dq = B.y[d + a] - dot6(ld6(B.Y, d + a, 0), z)
                for q in range(plan.first[i], plan.first[i + 1]):
                    dq -= dot6(ld6(E.Z, q, 8 * a), ld6(B.eta, plan.near[q], 0))
                B.y[d + a] = dq
                e = axpy6(dq, ld6(B.S1, d + a, 0), e)
        st6(B.eta, i, 0, e)
    return True
