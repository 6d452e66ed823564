"""The recursion of ``bodywise`` where bodies are coupled beside the tree: loops, contacts and springs between bodies.

Nodes are the rows of the tree and, behind them, one node for up to six multipliers of a loop or constraint. The
equations W_i + sum_j D_ij eta_j = 0 have a block for every pair of coupled nodes. A row is eliminated as in
``bodywise``: its joint coordinates are solved for, and what is left is handed to its parent, couplings included. A node
of multipliers comes right before the nearest common ancestor of its bodies, where its block has become regular. So
couplings live only between their bodies and that ancestor: O(n w^2) with w the rows that are open at a body. Fill-in
follows the graph, as in Bruedigam et al. 2023, Algorithms 3 and 4.

    order (N, 2)       nodes in the order of elimination, and whether one holds multipliers
    first (N+2,), near nodes that a node is coupled with when its turn comes: near[first[i]:first[i+1]]
    slot  (N+1, N+1)   where block D_ij is kept, or -1; D_pj of a parent takes the place of D_ij where it is new
    moves (couplings, 5)  places of D_ij, D_ji, D_pj, D_jp with j = near[k] and p the parent of i (NOWHERE for the world
                       and for multipliers), and where its list of fill-in begins
    fill               places of D_jq, for all j and q that are coupled with i; -2-i is the diagonal block of node i
    parts (nodes, 3)   node of multipliers, its first constraint row, number of rows
    E     (slots, 36)  blocks beside the diagonal
    y, Y, Z            dq = y - Y . eta_parent - sum_j Z_j . eta_j;  for multipliers dlam = y - sum_j U_j eta_j
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.kernels._jit import MEMORY_OPTIONS, either, kernel, optional, sweep
from leastaction.kernels._lanes import ld6, st6
from leastaction.kernels.bodywise_recursion import (
    add_blocks,
    ball_rows,
    body_block,
    eliminate_ball,
    eliminate_screw,
    factors3,
    inward_bodies,
    less_outer,
    load_block,
    outward_bodies,
    scaled6,
    solved3,
    store_block,
    times,
    transposed_times,
)
from leastaction.kernels.layout import BALL, IU, KIND, MASS, NOWHERE, PARENT, Floats, Ints
from leastaction.spatial._source.mrp import add9, scale9
from leastaction.spatial._source.vector import add6, axpy6, dot6, matmul


class Couplings(NamedTuple):
    """Plan of the elimination, made once for a mechanism; see the symbol table of this file."""

    order: Ints
    first: Ints
    near: Ints
    slot: Ints
    moves: Ints
    fill: Ints
    parts: Ints


class Blocks(NamedTuple):
    """Scratch memory: blocks beside the diagonal, and for each coupling at its elimination three rows or a block.

    C: a table to solve in. eps (1,): 0, or the size below which multipliers are found in least squares.
    """

    E: Floats
    Z: Floats
    C: Floats
    eps: Floats


@optional(None, MEMORY_OPTIONS)
def make_blocks(plan):
    """Scratch memory of the couplings."""
    slots, most = 0, 0
    for k in range(plan.near.size):
        slots = max(slots, plan.moves[k, 0] + 1, plan.moves[k, 1] + 1)
    for i in range(plan.first.size - 1):
        most = max(most, plan.first[i + 1] - plan.first[i])
    return Blocks(np.zeros((slots, 36)), np.zeros((plan.near.size, 36)), np.zeros((12, 7 + 6 * most)), np.zeros(1))


@optional(0)
def node_count(plan):
    """Number of nodes besides the rows of the tree."""
    return plan.parts.shape[0]


@optional(None)
def clear_couplings(plan, E, W, D):
    """No couplings yet: blocks beside the diagonal and nodes of multipliers."""
    for k in range(E.E.shape[0]):
        for e in range(36):
            E.E[k, e] = 0.0
    for k in range(plan.parts.shape[0]):
        for e in range(6):
            W[plan.parts[k, 0], e] = 0.0
        for e in range(36):
            D[plan.parts[k, 0], e] = 0.0


@kernel
def add_to(plan, E, D, i, j, M):
    """Add a block to D_ij; the world does not move and needs nothing."""
    if i > 0 and j > 0:
        if i == j:
            store_block(D, i, add_blocks(load_block(D, i), M))
        else:
            k = plan.slot[i, j]
            store_block(E.E, k, add_blocks(load_block(E.E, k), M))


@kernel
def rank_one(plan, E, D, i, j, h, x):
    """D_ij -= h x^T."""
    if i > 0 and j > 0:
        if i == j:
            store_block(D, i, less_outer(load_block(D, i), h, x))
        else:
            k = plan.slot[i, j]
            store_block(E.E, k, less_outer(load_block(E.E, k), h, x))


@kernel
def hand(E, D, start, end, M):
    """A block that moves from one place to another (see ``moves``): it is added there, or stays where it is."""
    if end == start:
        store_block(E.E, end, M)
    elif end >= 0:
        store_block(E.E, end, add_blocks(load_block(E.E, end), M))
    else:
        store_block(D, -2 - end, add_blocks(load_block(D, -2 - end), M))


@kernel
def fill_in(E, D, end, h, x):
    """Less h x^T at a place."""
    if end >= 0:
        store_block(E.E, end, less_outer(load_block(E.E, end), h, x))
    else:
        store_block(D, -2 - end, less_outer(load_block(D, -2 - end), h, x))


@kernel
def eliminate_row(tree, plan, B, E, i, h):
    """Eliminate the joint of row i and hand what is left, couplings included, to its parent."""
    l, D = ld6(B.W, i, 0), load_block(B.D, i)
    if tree.const[i, MASS] > 0.0:
        l = axpy6(-0.5 * h, ld6(B.F0, i, 0), add6(l, ld6(B.L, i, 0)))
        D = add_blocks(D, body_block(tree.const, i, B, h))
    l = add6(l, times(D, ld6(B.rho, i, 0)))
    d, p = tree.rows[i, IU], tree.rows[i, PARENT]
    if tree.rows[i, KIND] == BALL:
        D, l, F, H = eliminate_ball(B, d, D, l)
        couple_ball(plan, B, E, i, d, F, H)
    else:
        D, l, s, column = eliminate_screw(B, d, D, l)
        couple_screw(plan, B, E, i, d, s, column)
    if p > 0:
        st6(B.W, p, 0, add6(ld6(B.W, p, 0), l))
        store_block(B.D, p, add_blocks(load_block(B.D, p), D))


@kernel
def couple_screw(plan, B, E, i, d, s, h):
    """What the elimination of a screw does to the nodes coupled with its row; s, h as ``eliminate_screw`` gives them.

    Z_j = s S0^T D_ij,  g = D_ji S1:  D_pj += D_ij - h Z_j,  D_jp += D_ji - g Y,  D_jq -= g Z_q,  W_j += D_ji rho + g y
    """
    first, last = plan.first[i], plan.first[i + 1]
    for k in range(first, last):
        st6(E.Z, k, 0, scaled6(s, transposed_times(load_block(E.E, plan.moves[k, 0]), ld6(B.S0, d, 0))))
    for k in range(first, last):
        j, out, back, up, down = plan.near[k], plan.moves[k, 0], plan.moves[k, 1], plan.moves[k, 2], plan.moves[k, 3]
        towards = load_block(E.E, back)
        g = times(towards, ld6(B.S1, d, 0))
        st6(B.W, j, 0, axpy6(B.y[d], g, add6(ld6(B.W, j, 0), times(towards, ld6(B.rho, i, 0)))))
        if up != NOWHERE:
            hand(E, B.D, out, up, less_outer(load_block(E.E, out), h, ld6(E.Z, k, 0)))
            hand(E, B.D, back, down, less_outer(towards, g, ld6(B.Y, d, 0)))
        for q in range(first, last):
            fill_in(E, B.D, plan.fill[plan.moves[k, 4] + q - first], g, ld6(E.Z, q, 0))


@kernel
def couple_ball(plan, B, E, i, d, F, H):
    """The same for a ball, with the factors F of its pivot and three columns H."""
    first, last = plan.first[i], plan.first[i + 1]
    for k in range(first, last):
        z0, z1, z2 = ball_rows(B, d, load_block(E.E, plan.moves[k, 0]), F)
        st6(E.Z, k, 0, z0)
        st6(E.Z, k, 6, z1)
        st6(E.Z, k, 12, z2)
    for k in range(first, last):
        j, out, back, up, down = plan.near[k], plan.moves[k, 0], plan.moves[k, 1], plan.moves[k, 2], plan.moves[k, 3]
        towards = load_block(E.E, back)
        G = (times(towards, ld6(B.S1, d, 0)), times(towards, ld6(B.S1, d + 1, 0)), times(towards, ld6(B.S1, d + 2, 0)))
        w = add6(ld6(B.W, j, 0), times(towards, ld6(B.rho, i, 0)))
        st6(B.W, j, 0, axpy6(B.y[d + 2], G[2], axpy6(B.y[d + 1], G[1], axpy6(B.y[d], G[0], w))))
        if up != NOWHERE:
            hand(E, B.D, out, up, less_outer3(load_block(E.E, out), H, E.Z, k, 0, 6))
            hand(E, B.D, back, down, less_outer3(towards, G, B.Y, d, 1, 0))
        for q in range(first, last):
            end = plan.fill[plan.moves[k, 4] + q - first]
            for a in range(3):
                fill_in(E, B.D, end, G[a], ld6(E.Z, q, 6 * a))


@kernel
def less_outer3(D, H, X, k, down, right):
    """D less the three products of H with rows of X: from row k and column 0 on, each so far down and to the right."""
    D = less_outer(D, H[0], ld6(X, k, 0))
    D = less_outer(D, H[1], ld6(X, k + down, right))
    return less_outer(D, H[2], ld6(X, k + 2 * down, 2 * right))


# --- nodes of multipliers -------------------------------------------------------------------------------------------
@kernel
def unpack(D, i, C, o):
    """Block i in rows 0 to 5 and columns o to o+5 of a table."""
    for a in range(2):
        for r in range(3):
            for b in range(2):
                for c in range(3):
                    C[3 * a + r, o + 3 * b + c] = D[i, 18 * a + 9 * b + 3 * r + c]


@kernel
def pack(C, o, D, i):
    """The way back."""
    for a in range(2):
        for r in range(3):
            for b in range(2):
                for c in range(3):
                    D[i, 18 * a + 9 * b + 3 * r + c] = C[3 * a + r, o + 3 * b + c]


@sweep
def solve_in_place(C, width):
    """Rows 0 to 5 of C = (A, R) become (., A^-1 R), by Gauss-Jordan with row pivoting; False if A is singular."""
    for c in range(6):
        best, at = abs(C[c, c]), c
        for r in range(c + 1, 6):
            if abs(C[r, c]) > best:
                best, at = abs(C[r, c]), r
        if not best > 0.0:
            return False
        if at != c:
            for e in range(c, width):
                C[c, e], C[at, e] = C[at, e], C[c, e]
        s = 1.0 / C[c, c]
        for e in range(c + 1, width):
            C[c, e] *= s
        for r in range(6):
            if r != c:
                t = C[r, c]
                for e in range(c + 1, width):
                    C[r, e] -= t * C[c, e]
    return True


@sweep
def least_squares_in_place(C, width, eps):
    """The same with the X that makes |A X - R|^2 + eps^2 |X|^2 least.

    Householder reflections of (A; eps): as exact for small singular values as for large ones.
    """
    for r in range(6):
        for c in range(width):
            C[6 + r, c] = eps if r == c else 0.0
    for c in range(6):
        square = 0.0
        for r in range(c, 12):
            square += C[r, c] * C[r, c]
        size = math.sqrt(square) if C[c, c] <= 0.0 else -math.sqrt(square)
        # reflection I - v v^T / s with v = column minus size e_c
        s = square - C[c, c] * size
        C[c, c] -= size
        for e in range(c + 1, width):
            t = 0.0
            for r in range(c, 12):
                t += C[r, c] * C[r, e]
            t /= s
            for r in range(c, 12):
                C[r, e] -= t * C[r, c]
        C[c, c] = size
    for c in range(5, -1, -1):
        for e in range(6, width):
            t = C[c, e]
            for k in range(c + 1, 6):
                t -= C[c, k] * C[k, e]
            C[c, e] = t / C[c, c]


@kernel
def positive_inverse(D):
    """Inverse of a block by 3x3 blocks without row exchanges, and the smallest pivot; of use if that is positive."""
    F = factors3(D[0])
    top, left = columns_of_inverse(F), D[2]
    # S = D_vv - D_vw D_ww^-1 D_wv
    X = matmul(top, D[1])
    G = factors3(add9(D[3], scale9(-1.0, matmul(left, X))))
    low = columns_of_inverse(G)
    Y = matmul(low, matmul(left, top))
    smallest = min(min(min(F[3], F[6]), F[8]), min(min(G[3], G[6]), G[8]))
    # a pivot that is zero leaves what is not a number in the last one
    smallest = smallest if math.isfinite(G[8]) else 0.0
    return (add9(top, matmul(X, Y)), scale9(-1.0, matmul(X, low)), scale9(-1.0, Y), low), smallest


@kernel
def columns_of_inverse(F):
    """Inverse of a 3x3 matrix from its factors."""
    a, b, c = solved3(F, (1.0, 0.0, 0.0)), solved3(F, (0.0, 1.0, 0.0)), solved3(F, (0.0, 0.0, 1.0))
    return (a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2])


@kernel
def times_block(A, B):
    """A B of 6x6 matrices, each four blocks."""
    return (
        add9(matmul(A[0], B[0]), matmul(A[1], B[2])), add9(matmul(A[0], B[1]), matmul(A[1], B[3])),
        add9(matmul(A[2], B[0]), matmul(A[3], B[2])), add9(matmul(A[2], B[1]), matmul(A[3], B[3])),
    )  # fmt: skip


@kernel
def negative(D):
    """-D."""
    return (scale9(-1.0, D[0]), scale9(-1.0, D[1]), scale9(-1.0, D[2]), scale9(-1.0, D[3]))


@kernel
def node_by_inverse(plan, B, E, i):
    """u = D_i^-1 W_i and Z_j = D_i^-1 D_ij of a node of multipliers with positive pivots; False for any other."""
    C, smallest = positive_inverse(load_block(B.D, i))
    if not (smallest > 0.0 and E.eps[0] == 0.0):
        return False
    st6(B.W, i, 0, times(C, ld6(B.W, i, 0)))
    for k in range(plan.first[i], plan.first[i + 1]):
        store_block(E.Z, k, times_block(C, load_block(E.E, plan.moves[k, 0])))
    return True


@sweep
def node_in_table(plan, W, D, E, i):
    """The same with row exchanges, or in least squares; False if the block is singular."""
    first, last, C = plan.first[i], plan.first[i + 1], E.C
    width = 7 + 6 * (last - first)
    unpack(D, i, C, 0)
    for e in range(6):
        C[e, 6] = W[i, e]
    for k in range(first, last):
        unpack(E.E, plan.moves[k, 0], C, 7 + 6 * (k - first))
    if E.eps[0] > 0.0:
        least_squares_in_place(C, width, E.eps[0])
    elif not solve_in_place(C, width):
        return False
    for e in range(6):
        W[i, e] = C[e, 6]
    for k in range(first, last):
        pack(C, 7 + 6 * (k - first), E.Z, k)
    return True


@kernel
def eliminate_node(plan, B, E, i):
    """Eliminate a node of multipliers; False if its block is singular."""
    if not node_by_inverse(plan, B, E, i) and not node_in_table(plan, B.W, B.D, E, i):
        return False
    first, last, u = plan.first[i], plan.first[i + 1], ld6(B.W, i, 0)
    for k in range(first, last):
        j, away = plan.near[k], negative(load_block(E.E, plan.moves[k, 1]))
        st6(B.W, j, 0, add6(ld6(B.W, j, 0), times(away, u)))
        for q in range(first, last):
            M, end = times_block(away, load_block(E.Z, q)), plan.fill[plan.moves[k, 4] + q - first]
            if end >= 0:
                store_block(E.E, end, add_blocks(load_block(E.E, end), M))
            else:
                store_block(B.D, -2 - end, add_blocks(load_block(B.D, -2 - end), M))
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
                e = axpy6(-1.0, times(load_block(E.Z, q), ld6(B.eta, plan.near[q], 0)), e)
        else:
            d = tree.rows[i, IU]
            z = ld6(B.eta, tree.rows[i, PARENT], 0)
            e = add6(z, ld6(B.rho, i, 0))
            for a in range(3 if tree.rows[i, KIND] == BALL else 1):
                dq = B.y[d + a] - dot6(ld6(B.Y, d + a, 0), z)
                for q in range(plan.first[i], plan.first[i + 1]):
                    dq -= dot6(ld6(E.Z, q, 6 * a), ld6(B.eta, plan.near[q], 0))
                B.y[d + a] = dq
                e = axpy6(dq, ld6(B.S1, d + a, 0), e)
        st6(B.eta, i, 0, e)
    return True
