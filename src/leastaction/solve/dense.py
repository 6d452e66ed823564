"""Small dense symmetric systems inside compiled code."""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import sweep


@sweep
def cholesky(A, L):
    """Lower factor L of a symmetric positive definite A; False if a pivot is not positive."""
    n = A.shape[0]
    for j in range(n):
        s = A[j, j]
        for k in range(j):
            s -= L[j, k] * L[j, k]
        if not s > 0.0:
            return False
        L[j, j] = math.sqrt(s)
        for i in range(j + 1, n):
            s = A[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            L[i, j] = s / L[j, j]
    return True


@sweep
def cholesky_solve(L, b):
    """Solve L L^T x = b in place."""
    n = L.shape[0]
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        s = b[i]
        for k in range(i + 1, n):
            s -= L[k, i] * b[k]
        b[i] = s / L[i, i]


@sweep
def proximal_solve(A, b, L, r, x, size, rho, sweeps):
    """Smallest solution of a possibly singular A x = b: x += (A + eps)^-1 (b - A x), eps = rho diag(size).

    size (n,): of each row, which its diagonal is compared with (``loops.rows.mobility``).

    The incremental proximal term needs no rank decision: what lies in the range of A converges like (eps / sigma)^k,
    what does not stays out of x. A is restored. Returns False if the factorisation fails.
    """
    n = A.shape[0]
    for i in range(n):
        x[i], r[i] = 0.0, A[i, i]
        A[i, i] += rho * max(size[i], A[i, i])
    good = cholesky(A, L)
    for i in range(n):
        A[i, i] = r[i]
    if not good:
        return False
    for _ in range(sweeps):
        for i in range(n):
            s = b[i]
            for k in range(n):
                s -= A[i, k] * x[k]
            r[i] = s
        cholesky_solve(L, r)
        for i in range(n):
            x[i] += r[i]
    return True


@sweep
def lu_factor(A, pivot):
    """Factors of a square matrix in place, with partial pivoting; False if a pivot is zero or not a number."""
    n = A.shape[0]
    for c in range(n):
        best, at = abs(A[c, c]), c
        for r in range(c + 1, n):
            if abs(A[r, c]) > best:
                best, at = abs(A[r, c]), r
        pivot[c] = at
        if not best > 0.0:
            return False
        if at != c:
            for e in range(n):
                A[c, e], A[at, e] = A[at, e], A[c, e]
        for r in range(c + 1, n):
            t = A[r, c] / A[c, c]
            A[r, c] = t
            for e in range(c + 1, n):
                A[r, e] -= t * A[c, e]
    return True


@sweep
def lu_solve(A, pivot, b):
    """Solve with the factors of ``lu_factor``, in place."""
    n = A.shape[0]
    for c in range(n):
        b[c], b[pivot[c]] = b[pivot[c]], b[c]
    for r in range(n):
        for e in range(r):
            b[r] -= A[r, e] * b[e]
    for r in range(n - 1, -1, -1):
        for e in range(r + 1, n):
            b[r] -= A[r, e] * b[e]
        b[r] /= A[r, r]
