"""Dense factorisations inside compiled code, for the methods and comparators that cost O(n^3)."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.kernels._jit import sweep


@sweep
def lu_factor(A, swaps):
    """A = P L U in place with row pivoting; swaps (n,) are the rows taken. False if a pivot is zero or not finite."""
    n = A.shape[0]
    for k in range(n):
        # the largest entry of the column
        best, row = abs(A[k, k]), k
        for i in range(k + 1, n):
            if abs(A[i, k]) > best:
                best, row = abs(A[i, k]), i
        if not 0.0 < best < 1.0e300:
            return False
        swaps[k] = row
        if row != k:
            for j in range(n):
                t = A[k, j]
                A[k, j] = A[row, j]
                A[row, j] = t
        # eliminate below
        e = 1.0 / A[k, k]
        for i in range(k + 1, n):
            f = A[i, k] * e
            A[i, k] = f
            if f != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= f * A[k, j]
    return True


@sweep
def lu_solve(A, swaps, b):
    """Solve A x = b in place with the factors of ``lu_factor``."""
    n = A.shape[0]
    # whole rows were swapped in the factors, so all swaps come before the sweeps
    for k in range(n):
        t = b[swaps[k]]
        b[swaps[k]] = b[k]
        b[k] = t
    for k in range(n):
        for j in range(k):
            b[k] -= A[k, j] * b[j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


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
