"""Newton direction of a Galerkin step by a dense matrix and its factors, O(n^3): what the recursion is compared with.

The columns A, B, E, EA and the local matrices Lloc of the rows are those of ``galerkin.newton``, eq. (5). Nothing is
eliminated: D of a row is the plain sum over its subtree, and with H = D B - E and X = D^T A - EA the matrix has

    J_ik = A_i^T H_k   for a row k behind i,     J_ik = X_i^T B_k   for a row k before i,     J_ii = A_i^T H_i + Lloc_i

and zeros where neither is behind the other. It knows what the recursion knows, forces on bodies too.

    D  (n+1, N N)      sums over subtrees             J  (nu s, nu s)  the matrix, then its factors
    pivot  (nu s,)     their row exchanges
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.galerkin.newton import (
    add_own,
    add_products,
    dot_rows,
    local_ball,
    local_screw,
    own_with_forces,
    write_columns,
)
from leastaction.galerkin.residual import size
from leastaction.jit.decorators import memory, sweep
from leastaction.jit.lanes import ld3, ld6, ldp, stp
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, Floats, Ints


class Densely(NamedTuple):
    """What asks for this direction: a type to choose by."""

    on: int


class Dense(NamedTuple):
    """Scratch memory; see the symbol table of this file."""

    D: Floats
    J: Floats
    pivot: Ints


@memory
def make_dense(tree, s, wide):
    """Scratch memory for a tree and s."""
    n, m, N = tree.rows.shape[0], tree.rates.shape[0] * s, size(s, wide)
    return Dense(np.zeros((n, N * N)), np.zeros((m, m)), np.zeros(m, np.int64))


@sweep
def fill_dense(Q, tree, nodes, w, K, Dm):
    """The matrix J; w must hold a residual."""
    s, D, J = len(nodes.w) - 1, Q.D, Q.J
    N = size(s, nodes.wide)
    for i in range(tree.rows.shape[0]):
        for e in range(N * N):
            D[i, e] = 0.0
    for r in range(J.shape[0]):
        for c in range(J.shape[0]):
            J[r, c] = 0.0
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, d, m = tree.rows[i, PARENT], tree.rows[i, IU], tree.const[i, MASS]
        n, base = 1, d * s
        # own inertia and forces
        if m > 0.0:
            for a in range(s + 1):
                add_own(D, i, N, 6 * a, nodes.w[a] * nodes.h, ld6(w.M, i, 9 * a), ld3(w.M, i, 9 * a + 6), m)
        if len(nodes.wide) > 0:
            own_with_forces(tree, nodes, w, D, i, i, N)
        # columns and the local matrix
        if tree.rows[i, KIND] == BALL:
            n = 3
            local_ball(tree, nodes, w, i, d, K, Dm)
        else:
            local_screw(tree, nodes, w, d, K, Dm)
        for j in range(n):
            write_columns(tree, nodes, w, i, d, j, n, base)
        for c in range(n * s):
            add_products(N, D, i, w.A, w.B, w.X, w.H, base + c)
        for a in range(n * s):
            for c in range(n * s):
                J[base + a, base + c] = w.lam[a, c] + dot_rows(N, w.A, base + a, w.H, base + c)
        # hand over
        for e in range(N * N):
            D[par, e] += D[i, e]
    for i in range(1, tree.rows.shape[0]):
        k = tree.rows[i, PARENT]
        while k > 0:
            block(N, tree, s, w, i, k, J)
            k = tree.rows[k, PARENT]


@sweep
def block(N, tree, s, w, i, k, J):
    """Entries of row i and of row k before it."""
    low, high = tree.rows[i, IU] * s, tree.rows[k, IU] * s
    for a in range(3 * s if tree.rows[i, KIND] == BALL else s):
        for c in range(3 * s if tree.rows[k, KIND] == BALL else s):
            J[low + a, high + c] = dot_rows(N, w.X, low + a, w.B, high + c)
            J[high + c, low + a] = dot_rows(N, w.A, high + c, w.H, low + a)


@sweep
def dense_again(Q, tree, nodes, w, R, y):
    """y = -J^-1 R for a right-hand side R (nu, s), with the factors that are there; w.z goes with it."""
    s = len(nodes.w) - 1
    N = size(s, nodes.wide)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        for a in range(n * s):
            y[d * s + a] = -R[d + a % n, a // n]
    lu_solve(Q.J, Q.pivot, y)
    # the variation of the motion
    for e in range(N):
        w.z[0, e] = 0.0
    for i in range(1, tree.rows.shape[0]):
        par, base = tree.rows[i, PARENT], tree.rows[i, IU] * s
        for e in range(0, N, 4):
            t = ldp(w.z, par, e)
            for c in range(base, base + (3 * s if tree.rows[i, KIND] == BALL else s)):
                t = t + y[c] * ldp(w.B, c, e)
            stp(w.z, i, e, t)


@sweep
def dense_direction(Q, tree, nodes, w, K, Dm):
    """w.y = -J^-1 r; no step where J is singular."""
    fill_dense(Q, tree, nodes, w, K, Dm)
    if lu_factor(Q.J, Q.pivot):
        dense_again(Q, tree, nodes, w, w.r, w.y)
    else:
        for k in range(w.y.size):
            w.y[k] = 0.0
