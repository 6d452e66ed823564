"""The recursion of ``bodywise`` where bodies are coupled beside the tree: loops, contacts and springs between bodies.

Nodes are the rows of the tree and, behind them, one node for up to six multipliers of a loop or constraint. The
equations W_i + sum_j D_ij eta_j = 0 have a block for every pair of coupled nodes. A row is eliminated as in
``bodywise``: its joint coordinates are solved for, and what is left is handed to its parent, couplings included. A node
of multipliers comes right before the nearest common ancestor of its bodies, where its block has become regular. So
couplings live only between their bodies and that ancestor: O(n w^2) with w the rows that are open at a body. Fill-in
follows the graph, as in Bruedigam et al. 2023, Algorithms 3 and 4.

    order (N, 2)       nodes in the order of elimination, and whether one holds multipliers
    first (N+2,), near nodes that a node is coupled with when its turn comes: near[first[i]:first[i+1]]
    slot  (N+1, N+1)   where block D_ij is kept, or -1
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
    ball_factors,
    ball_numbers,
    ball_rows,
    body_block,
    inward_bodies,
    less_outer,
    load_block,
    outward_bodies,
    scaled6,
    store_block,
    times,
    transposed_times,
)
from leastaction.kernels.layout import BALL, IU, KIND, MASS, PARENT, Floats, Ints
from leastaction.spatial._source.vector import add6, axpy6, dot6


class Couplings(NamedTuple):
    """Plan of the elimination, made once for a mechanism; see the symbol table of this file."""

    order: Ints
    first: Ints
    near: Ints
    slot: Ints
    parts: Ints


class Blocks(NamedTuple):
    """Scratch memory: blocks beside the diagonal, and for each coupling at its elimination three rows or a block.

    eps (1,): 0, or the size below which multipliers are found in least squares.
    """

    E: Floats
    Z: Floats
    C: Floats
    eps: Floats


@optional(None, MEMORY_OPTIONS)
def make_blocks(plan):
    """Scratch memory of the couplings."""
    slots = 0
    for i in range(plan.slot.shape[0]):
        for j in range(plan.slot.shape[1]):
            slots = max(slots, plan.slot[i, j] + 1)
    return Blocks(np.zeros((slots, 36)), np.zeros((plan.near.size, 36)), np.zeros((12, 12)), np.zeros(1))


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


@sweep
def eliminate_row(tree, plan, B, E, i, h):
    """Eliminate the joint of row i and hand what is left, couplings included, to its parent."""
    l, D = ld6(B.W, i, 0), load_block(B.D, i)
    if tree.const[i, MASS] > 0.0:
        l = axpy6(-0.5 * h, ld6(B.F0, i, 0), add6(l, ld6(B.L, i, 0)))
        D = add_blocks(D, body_block(tree.const, i, B, h))
    rho = ld6(B.rho, i, 0)
    l = add6(l, times(D, rho))
    d, p = tree.rows[i, IU], tree.rows[i, PARENT]
    m = 3 if tree.rows[i, KIND] == BALL else 1
    # dq = y - Y . eta_parent - sum_j Z_j . eta_j
    F = ball_factors(B, d, D) if m == 3 else screw_factors(B, d, D)
    y = ball_numbers(B, d, l, F) if m == 3 else (-(dot6(ld6(B.S0, d, 0), l) + B.c[d]) / F[3], 0.0, 0.0)
    for a in range(m):
        B.y[d + a] = y[a]
    put_rows(B, d, m, F, D, B.Y, d)
    for k in range(plan.first[i], plan.first[i + 1]):
        put_rows_across(B, d, m, F, load_block(E.E, plan.slot[i, plan.near[k]]), E.Z, k)
    # columns: what dq does to this row and to coupled nodes
    left = D
    for a in range(m):
        S1 = ld6(B.S1, d + a, 0)
        column = times(D, S1)
        l = axpy6(y[a], column, l)
        left = less_outer(left, column, ld6(B.Y, d + a, 0))
        for k in range(plan.first[i], plan.first[i + 1]):
            j = plan.near[k]
            rank_one(plan, E, B.D, p, j, column, ld6(E.Z, k, 6 * a))
            g = times(load_block(E.E, plan.slot[j, i]), S1)
            st6(B.W, j, 0, axpy6(y[a], g, ld6(B.W, j, 0)))
            rank_one(plan, E, B.D, j, p, g, ld6(B.Y, d + a, 0))
            for q in range(plan.first[i], plan.first[i + 1]):
                rank_one(plan, E, B.D, j, plan.near[q], g, ld6(E.Z, q, 6 * a))
    # couplings move to the parent
    for k in range(plan.first[i], plan.first[i + 1]):
        j = plan.near[k]
        towards = load_block(E.E, plan.slot[j, i])
        st6(B.W, j, 0, add6(ld6(B.W, j, 0), times(towards, rho)))
        add_to(plan, E, B.D, p, j, load_block(E.E, plan.slot[i, j]))
        add_to(plan, E, B.D, j, p, towards)
    if p > 0:
        st6(B.W, p, 0, add6(ld6(B.W, p, 0), l))
        store_block(B.D, p, add_blocks(load_block(B.D, p), left))


@kernel
def screw_factors(B, d, D):
    """The pivot of a screw, in the place it has among the factors of a ball."""
    p = dot6(ld6(B.S0, d, 0), times(D, ld6(B.S1, d, 0))) + B.K[d, 0]
    return (0.0, 0.0, 0.0, p, 0.0, 0.0, 1.0, 0.0, 1.0)


@kernel
def put_rows(B, d, m, F, D, out, at):
    """Rows (S0^T D S1 + K)^-1 S0^T D_j of a joint with m coordinates and the factors F, into rows at.. of out."""
    if m == 1:
        st6(out, at, 0, scaled6(1.0 / F[3], transposed_times(D, ld6(B.S0, d, 0))))
        return
    z0, z1, z2 = ball_rows(B, d, D, F)
    st6(out, at, 0, z0)
    st6(out, at + 1, 0, z1)
    st6(out, at + 2, 0, z2)


@kernel
def put_rows_across(B, d, m, F, D, out, k):
    """The same, into the columns of row k of out."""
    if m == 1:
        st6(out, k, 0, scaled6(1.0 / F[3], transposed_times(D, ld6(B.S0, d, 0))))
        return
    z0, z1, z2 = ball_rows(B, d, D, F)
    st6(out, k, 0, z0)
    st6(out, k, 6, z1)
    st6(out, k, 12, z2)


@sweep
def invert6(D, i, C):
    """C (6, 12): the inverse of block i in its right half, by Gauss-Jordan with row pivoting; False if singular."""
    for r in range(6):
        for c in range(6):
            C[r, c] = D[i, 18 * (r // 3) + 9 * (c // 3) + 3 * (r % 3) + c % 3]
            C[r, 6 + c] = 1.0 if r == c else 0.0
    for c in range(6):
        best, at = abs(C[c, c]), c
        for r in range(c + 1, 6):
            if abs(C[r, c]) > best:
                best, at = abs(C[r, c]), r
        if not best > 0.0:
            return False
        if at != c:
            for e in range(12):
                C[c, e], C[at, e] = C[at, e], C[c, e]
        s = 1.0 / C[c, c]
        for e in range(12):
            C[c, e] *= s
        for r in range(6):
            if r != c:
                t = C[r, c]
                for e in range(c, 12):
                    C[r, e] -= t * C[c, e]
    return True


@sweep
def least_squares6(D, i, eps, C):
    """C (12, 12): in the upper right quarter the matrix X that makes |D_i X - 1|^2 + eps^2 |X|^2 least.

    Householder reflections of (D_i; eps): as exact for small singular values as for large ones.
    """
    for r in range(6):
        for c in range(6):
            C[r, c] = D[i, 18 * (r // 3) + 9 * (c // 3) + 3 * (r % 3) + c % 3]
            C[r, 6 + c] = 1.0 if r == c else 0.0
            C[6 + r, c] = eps if r == c else 0.0
            C[6 + r, 6 + c] = 0.0
    for c in range(6):
        square = 0.0
        for r in range(c, 12):
            square += C[r, c] * C[r, c]
        size = math.sqrt(square) if C[c, c] <= 0.0 else -math.sqrt(square)
        # reflection I - v v^T / s with v = column minus size e_c
        s = square - C[c, c] * size
        C[c, c] -= size
        for e in range(c + 1, 12):
            t = 0.0
            for r in range(c, 12):
                t += C[r, c] * C[r, e]
            t /= s
            for r in range(c, 12):
                C[r, e] -= t * C[r, c]
        C[c, c] = size
    for c in range(5, -1, -1):
        for e in range(6, 12):
            t = C[c, e]
            for k in range(c + 1, 6):
                t -= C[c, k] * C[k, e]
            C[c, e] = t / C[c, c]


@kernel
def right_half(C):
    """The inverse that ``invert6`` leaves, as four blocks."""
    return (
        (C[0, 6], C[0, 7], C[0, 8], C[1, 6], C[1, 7], C[1, 8], C[2, 6], C[2, 7], C[2, 8]),
        (C[0, 9], C[0, 10], C[0, 11], C[1, 9], C[1, 10], C[1, 11], C[2, 9], C[2, 10], C[2, 11]),
        (C[3, 6], C[3, 7], C[3, 8], C[4, 6], C[4, 7], C[4, 8], C[5, 6], C[5, 7], C[5, 8]),
        (C[3, 9], C[3, 10], C[3, 11], C[4, 9], C[4, 10], C[4, 11], C[5, 9], C[5, 10], C[5, 11]),
    )  # fmt: skip


@kernel
def product(A, D):
    """A D of 6x6 matrices, each four blocks."""
    columns = (
        times(A, (D[0][0], D[0][3], D[0][6], D[2][0], D[2][3], D[2][6])),
        times(A, (D[0][1], D[0][4], D[0][7], D[2][1], D[2][4], D[2][7])),
        times(A, (D[0][2], D[0][5], D[0][8], D[2][2], D[2][5], D[2][8])),
        times(A, (D[1][0], D[1][3], D[1][6], D[3][0], D[3][3], D[3][6])),
        times(A, (D[1][1], D[1][4], D[1][7], D[3][1], D[3][4], D[3][7])),
        times(A, (D[1][2], D[1][5], D[1][8], D[3][2], D[3][5], D[3][8])),
    )
    a, b, c, d, e, f = columns
    return (
        (a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2]),
        (d[0], e[0], f[0], d[1], e[1], f[1], d[2], e[2], f[2]),
        (a[3], b[3], c[3], a[4], b[4], c[4], a[5], b[5], c[5]),
        (d[3], e[3], f[3], d[4], e[4], f[4], d[5], e[5], f[5]),
    )  # fmt: skip


@kernel
def negative(D):
    """-D."""
    return (
        tuple_neg(D[0]), tuple_neg(D[1]), tuple_neg(D[2]), tuple_neg(D[3]),
    )  # fmt: skip


@kernel
def tuple_neg(a):
    """Minus nine numbers."""
    return (-a[0], -a[1], -a[2], -a[3], -a[4], -a[5], -a[6], -a[7], -a[8])


@sweep
def eliminate_node(plan, B, E, i):
    """Eliminate a node of multipliers; False if its block is singular."""
    if E.eps[0] > 0.0:
        least_squares6(B.D, i, E.eps[0], E.C)
    elif not invert6(B.D, i, E.C):
        return False
    C = right_half(E.C)
    u = times(C, ld6(B.W, i, 0))
    st6(B.W, i, 0, u)
    for k in range(plan.first[i], plan.first[i + 1]):
        store_block(E.Z, k, product(C, load_block(E.E, plan.slot[i, plan.near[k]])))
    for k in range(plan.first[i], plan.first[i + 1]):
        j = plan.near[k]
        towards = load_block(E.E, plan.slot[j, i])
        st6(B.W, j, 0, axpy6(-1.0, times(towards, u), ld6(B.W, j, 0)))
        for q in range(plan.first[i], plan.first[i + 1]):
            add_to(plan, E, B.D, j, plan.near[q], negative(product(towards, load_block(E.Z, q))))
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
