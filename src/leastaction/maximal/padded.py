"""Blocks of coupled bodies in rows of eight: the vector units take four neighbouring numbers at once.

Row r of a 6x6 block stands in columns 8 r to 8 r + 5 of a table, with two zeros behind it; a row in registers is two
packs. Blocks between two nodes are kept in pairs, both in the axes (first, other): that of D_first,other in an even
place and the transpose of D_other,first behind it. So all that an elimination does is done row by row.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import hsum, hsum4, lane, ldp, pack_of, stp
from leastaction.maximal.recursion import factors3, solved3
from leastaction.spatial._source.mrp import add9, scale9
from leastaction.spatial._source.vector import matmul


# --- rows -----------------------------------------------------------------------------------------------------------
@kernel
def row(T, k, r):
    """Row r of block k, two packs."""
    return (ldp(T, k, 8 * r), ldp(T, k, 8 * r + 4))


@kernel
def put_row(T, k, r, v):
    """Store a row."""
    stp(T, k, 8 * r, v[0])
    stp(T, k, 8 * r + 4, v[1])


@kernel
def scaled2(s, v):
    """s v of a row."""
    return (s * v[0], s * v[1])


@kernel
def axpy2(s, v, w):
    """s v + w of rows."""
    return (s * v[0] + w[0], s * v[1] + w[1])


@kernel
def combined(T, k, a):
    """a^T times block k: the sum of its rows with six weights."""
    v = scaled2(a[0], row(T, k, 0))
    v = axpy2(a[1], row(T, k, 1), v)
    v = axpy2(a[2], row(T, k, 2), v)
    v = axpy2(a[3], row(T, k, 3), v)
    v = axpy2(a[4], row(T, k, 4), v)
    return axpy2(a[5], row(T, k, 5), v)


@kernel
def add_row(T, k, r, v):
    """Add to row r of block k."""
    put_row(T, k, r, axpy2(1.0, v, row(T, k, r)))


# --- between both layouts -------------------------------------------------------------------------------------------
@kernel
def unpadded(T, k):
    """Block k as four 3x3 matrices."""
    return (
        (T[k, 0], T[k, 1], T[k, 2], T[k, 8], T[k, 9], T[k, 10], T[k, 16], T[k, 17], T[k, 18]),
        (T[k, 3], T[k, 4], T[k, 5], T[k, 11], T[k, 12], T[k, 13], T[k, 19], T[k, 20], T[k, 21]),
        (T[k, 24], T[k, 25], T[k, 26], T[k, 32], T[k, 33], T[k, 34], T[k, 40], T[k, 41], T[k, 42]),
        (T[k, 27], T[k, 28], T[k, 29], T[k, 35], T[k, 36], T[k, 37], T[k, 43], T[k, 44], T[k, 45]),
    )


@kernel
def padded(M):
    """Four 3x3 matrices as six rows in registers."""
    a, b, c, d = M
    return (
        (pack_of(a[0], a[1], a[2], b[0]), pack_of(b[1], b[2], 0.0, 0.0)),
        (pack_of(a[3], a[4], a[5], b[3]), pack_of(b[4], b[5], 0.0, 0.0)),
        (pack_of(a[6], a[7], a[8], b[6]), pack_of(b[7], b[8], 0.0, 0.0)),
        (pack_of(c[0], c[1], c[2], d[0]), pack_of(d[1], d[2], 0.0, 0.0)),
        (pack_of(c[3], c[4], c[5], d[3]), pack_of(d[4], d[5], 0.0, 0.0)),
        (pack_of(c[6], c[7], c[8], d[6]), pack_of(d[7], d[8], 0.0, 0.0)),
    )


@kernel
def add_rows(M, T, k):
    """Six rows in registers plus those of block k."""
    return (
        axpy2(1.0, row(T, k, 0), M[0]), axpy2(1.0, row(T, k, 1), M[1]), axpy2(1.0, row(T, k, 2), M[2]),
        axpy2(1.0, row(T, k, 3), M[3]), axpy2(1.0, row(T, k, 4), M[4]), axpy2(1.0, row(T, k, 5), M[5]),
    )  # fmt: skip


@kernel
def padded6(T, k):
    """The six numbers in row k of a table, as a row of eight."""
    return (ldp(T, k, 0), pack_of(T[k, 4], T[k, 5], 0.0, 0.0))


@kernel
def pad(v):
    """Six numbers as a row of eight."""
    return (pack_of(v[0], v[1], v[2], v[3]), pack_of(v[4], v[5], 0.0, 0.0))


@kernel
def lanes6(v):
    """The six numbers of a row."""
    return (lane(v[0], 0), lane(v[0], 1), lane(v[0], 2), lane(v[0], 3), lane(v[1], 0), lane(v[1], 1))


@kernel
def dot2(v, w):
    """Scalar product of two rows."""
    return hsum(v[0] * w[0] + v[1] * w[1])


@kernel
def products(M, v):
    """M v of six rows in registers, as a row."""
    none = pack_of(0.0, 0.0, 0.0, 0.0)
    return (
        hsum4(
            M[0][0] * v[0] + M[0][1] * v[1], M[1][0] * v[0] + M[1][1] * v[1],
            M[2][0] * v[0] + M[2][1] * v[1], M[3][0] * v[0] + M[3][1] * v[1],
        ),
        hsum4(M[4][0] * v[0] + M[4][1] * v[1], M[5][0] * v[0] + M[5][1] * v[1], none, none),
    )  # fmt: skip


@kernel
def weighted(M, a):
    """a^T M of six rows in registers, as a row."""
    v = axpy2(a[1], M[1], scaled2(a[0], M[0]))
    v = axpy2(a[3], M[3], axpy2(a[2], M[2], v))
    return axpy2(a[5], M[5], axpy2(a[4], M[4], v))


@kernel
def add_padded(T, k, M):
    """Add four 3x3 matrices to block k; a place with an odd number keeps the transpose."""
    down, right = (8, 1) if k % 2 == 0 else (1, 8)
    for r in range(3):
        for c in range(3):
            T[k, down * r + right * c] += M[0][3 * r + c]
            T[k, down * r + right * (c + 3)] += M[1][3 * r + c]
            T[k, down * (r + 3) + right * c] += M[2][3 * r + c]
            T[k, down * (r + 3) + right * (c + 3)] += M[3][3 * r + c]


@kernel
def take_outer(T, k, h, x):
    """Less h x^T of a block; a place with an odd number keeps the transpose."""
    a, b = (h, x) if k % 2 == 0 else (x, h)
    for r in range(6):
        for c in range(6):
            T[k, 8 * r + c] -= a[r] * b[c]


@kernel
def turned(T, k, Q, q):
    """Block q of Q is the transpose of block k."""
    for r in range(6):
        for c in range(6):
            Q[q, 8 * r + c] = T[k, 8 * c + r]


@kernel
def add_turned(T, k, Q, q):
    """Add the transpose of block k to block q of Q."""
    for r in range(6):
        for c in range(6):
            Q[q, 8 * r + c] += T[k, 8 * c + r]


@kernel
def add_to_residual(W, j, v):
    """W_j += v, a row of eight."""
    W[j, 0] += lane(v[0], 0)
    W[j, 1] += lane(v[0], 1)
    W[j, 2] += lane(v[0], 2)
    W[j, 3] += lane(v[0], 3)
    W[j, 4] += lane(v[1], 0)
    W[j, 5] += lane(v[1], 1)


# --- the inverse of a block of multipliers --------------------------------------------------------------------------
@kernel
def inverse3(F):
    """Inverse of a 3x3 matrix from its factors."""
    a, b, c = solved3(F, (1.0, 0.0, 0.0)), solved3(F, (0.0, 1.0, 0.0)), solved3(F, (0.0, 0.0, 1.0))
    return (a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2])


@kernel
def quick_inverse(D, C):
    """Inverse of four 3x3 matrices, in the right half of C without row exchanges; False unless pivots are positive."""
    F = factors3(D[0])
    top = inverse3(F)
    # S = D_vv - D_vw D_ww^-1 D_wv
    X = matmul(top, D[1])
    G = factors3(add9(D[3], scale9(-1.0, matmul(D[2], X))))
    low = inverse3(G)
    Y = matmul(low, matmul(D[2], top))
    smallest = min(min(min(F[3], F[6]), F[8]), min(min(G[3], G[6]), G[8]))
    # a pivot that is zero leaves what is not a number in the last one
    if not (smallest > 0.0 and math.isfinite(G[8])):
        return False
    A, B = add9(top, matmul(X, Y)), matmul(X, low)
    for r in range(3):
        for c in range(3):
            C[r, 6 + c], C[r, 9 + c] = A[3 * r + c], -B[3 * r + c]
            C[3 + r, 6 + c], C[3 + r, 9 + c] = -Y[3 * r + c], low[3 * r + c]
    return True


@sweep
def invert(D, k, C):
    """Inverse of block k into C (12, 12), right half, by Gauss-Jordan with row exchanges; False if it is singular."""
    for r in range(6):
        for c in range(6):
            C[r, c] = D[k, 8 * r + c]
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
def least_squares(D, k, eps, sizes, C):
    """C (12, 12): in the upper right quarter the matrix X that makes |D_k X - 1|^2 + eps^2 |X|^2 least.

    Rows and columns are taken in units of their sizes (row k of ``sizes``).

    Householder reflections of (D_k; eps): as exact for small singular values as for large ones.
    """
    for r in range(6):
        for c in range(6):
            C[r, c] = D[k, 8 * r + c] / math.sqrt(sizes[k, r] * sizes[k, c])
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
            for q in range(c + 1, 6):
                t -= C[c, q] * C[q, e]
            C[c, e] = t / C[c, c]
    for r in range(6):
        for c in range(6):
            C[r, 6 + c] /= math.sqrt(sizes[k, r] * sizes[k, c])
