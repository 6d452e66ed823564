"""Matrices with one block per row of the tree: a number for a screw, 3x3 for a ball.

Stored as (nu, 3): a screw has its number in column 0; a ball has the rows of its block in rows d..d+2.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.tree.layout import BALL, IU, KIND


@kernel
def block_size(tree, i):
    """1 or 3."""
    return 3 if tree.rows[i, KIND] == BALL else 1


@sweep
def set_block(tree, s, B):
    """B = s 1."""
    for i in range(1, tree.rows.shape[0]):
        d, n = tree.rows[i, IU], block_size(tree, i)
        for r in range(n):
            for c in range(n):
                B[d + r, c] = s if r == c else 0.0


@sweep
def add_block(s, A, B):
    """B += s A."""
    for d in range(A.shape[0]):
        for c in range(3):
            B[d, c] += s * A[d, c]


@sweep
def scale_block(s, A, B):
    """B = s A."""
    for d in range(A.shape[0]):
        for c in range(3):
            B[d, c] = s * A[d, c]


@sweep
def block_product(tree, A, B, C):
    """C = A B; C is neither of them."""
    for i in range(1, tree.rows.shape[0]):
        d, n = tree.rows[i, IU], block_size(tree, i)
        for r in range(n):
            for c in range(n):
                s = 0.0
                for k in range(n):
                    s += A[d + r, k] * B[d + k, c]
                C[d + r, c] = s


@sweep
def block_inverse(tree, A, B):
    """B = A^-1 by cofactors; the blocks used here are near a multiple of 1."""
    for i in range(1, tree.rows.shape[0]):
        d, n = tree.rows[i, IU], block_size(tree, i)
        if n == 1:
            B[d, 0] = 1.0 / A[d, 0]
        else:
            for r in range(3):
                for c in range(3):
                    p, q, s, t = (c + 1) % 3, (c + 2) % 3, (r + 1) % 3, (r + 2) % 3
                    B[d + r, c] = A[d + p, s] * A[d + q, t] - A[d + p, t] * A[d + q, s]
            e = 1.0 / (A[d, 0] * B[d, 0] + A[d, 1] * B[d + 1, 0] + A[d, 2] * B[d + 2, 0])
            for r in range(3):
                for c in range(3):
                    B[d + r, c] *= e


@sweep
def block_times(tree, s, A, x, out):
    """out = s A x for a vector x; out is not x."""
    for i in range(1, tree.rows.shape[0]):
        d, n = tree.rows[i, IU], block_size(tree, i)
        for r in range(n):
            t = 0.0
            for k in range(n):
                t += A[d + r, k] * x[d + k]
            out[d + r] = s * t


@sweep
def add_dense_block(tree, s, A, B, out):
    """out += s A B for a dense A (m, nu)."""
    for r in range(A.shape[0]):
        for i in range(1, tree.rows.shape[0]):
            d, n = tree.rows[i, IU], block_size(tree, i)
            for c in range(n):
                t = 0.0
                for k in range(n):
                    t += A[r, d + k] * B[d + k, c]
                out[r, d + c] += s * t


@sweep
def cholesky_solve_rows(L, B):
    """Solve L L^T X = B in place for a whole matrix B, row by row."""
    n, m = L.shape[0], B.shape[1]
    for i in range(n):
        for k in range(i):
            f = L[i, k]
            for j in range(m):
                B[i, j] -= f * B[k, j]
        e = 1.0 / L[i, i]
        for j in range(m):
            B[i, j] *= e
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            f = L[k, i]
            for j in range(m):
                B[i, j] -= f * B[k, j]
        e = 1.0 / L[i, i]
        for j in range(m):
            B[i, j] *= e
