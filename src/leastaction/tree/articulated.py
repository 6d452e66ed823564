"""Articulated bodies: solve M(q) a = f in O(n) without forming M, one coordinate at a time (ABA).

    A    (n+1, 21) articulated inertia of each row, upper triangle by rows
    L    (n+1, 6)  articulated force of each row: bias on input, subtree on output
    U    (nu, 7)   A S / d and 1 / d of each rate, d = S . A S + rotor inertia
    y    (nu,)     eliminated right-hand side

    inward    h = A S,  d = S . h,  y = (f - S . l) / d,  l += h y,  A -= h h^T / d,  both added to the parent
    outward   a_d = y - (h / d) . z,  z += S a_d            (z: acceleration of the row above the bias)
Algorithm: Featherstone 2008, Table 7.1, with the bias accelerations taken out first, so that the same recursion
serves forward dynamics, products with M^-1, and v from p.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, number, st, st1, st6
from leastaction.spatial._source.vector import add6, axpy6, dot6, scale6
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT


@kernel
def ld21(A, i):
    """The 21 numbers of a symmetric 6x6 matrix."""
    return (
        ld(A, i, 0), ld(A, i, 1), ld(A, i, 2), ld(A, i, 3), ld(A, i, 4), ld(A, i, 5), ld(A, i, 6), ld(A, i, 7),
        ld(A, i, 8), ld(A, i, 9), ld(A, i, 10), ld(A, i, 11), ld(A, i, 12), ld(A, i, 13), ld(A, i, 14), ld(A, i, 15),
        ld(A, i, 16), ld(A, i, 17), ld(A, i, 18), ld(A, i, 19), ld(A, i, 20),
    )  # fmt: skip


@kernel
def st21(A, i, a):
    """Store the 21 numbers of a symmetric 6x6 matrix."""
    st6(A, i, 0, (a[0], a[1], a[2], a[3], a[4], a[5]))
    st6(A, i, 6, (a[6], a[7], a[8], a[9], a[10], a[11]))
    st6(A, i, 12, (a[12], a[13], a[14], a[15], a[16], a[17]))
    st(A, i, 18, a[18])
    st(A, i, 19, a[19])
    st(A, i, 20, a[20])


@kernel
def add_inertia(a, I, h, m):
    """A rigid inertia (I6, h3, m) added to 21 numbers."""
    return (
        a[0] + I[0], a[1] + I[1], a[2] + I[2], a[3], a[4] - h[2], a[5] + h[1],
        a[6] + I[3], a[7] + I[4], a[8] + h[2], a[9], a[10] - h[0],
        a[11] + I[5], a[12] - h[1], a[13] + h[0], a[14],
        a[15] + m, a[16], a[17], a[18] + m, a[19], a[20] + m,
    )  # fmt: skip


@kernel
def symmetric_times(a, s):
    """Product of a symmetric 6x6 matrix with a twist."""
    return (
        a[0] * s[0] + a[1] * s[1] + a[2] * s[2] + a[3] * s[3] + a[4] * s[4] + a[5] * s[5],
        a[1] * s[0] + a[6] * s[1] + a[7] * s[2] + a[8] * s[3] + a[9] * s[4] + a[10] * s[5],
        a[2] * s[0] + a[7] * s[1] + a[11] * s[2] + a[12] * s[3] + a[13] * s[4] + a[14] * s[5],
        a[3] * s[0] + a[8] * s[1] + a[12] * s[2] + a[15] * s[3] + a[16] * s[4] + a[17] * s[5],
        a[4] * s[0] + a[9] * s[1] + a[13] * s[2] + a[16] * s[3] + a[18] * s[4] + a[19] * s[5],
        a[5] * s[0] + a[10] * s[1] + a[14] * s[2] + a[17] * s[3] + a[19] * s[4] + a[20] * s[5],
    )


@kernel
def minus_outer(a, h, g):
    """``a - h g^T`` where g is a multiple of h."""
    return (
        a[0] - h[0] * g[0], a[1] - h[0] * g[1], a[2] - h[0] * g[2], a[3] - h[0] * g[3], a[4] - h[0] * g[4],
        a[5] - h[0] * g[5], a[6] - h[1] * g[1], a[7] - h[1] * g[2], a[8] - h[1] * g[3], a[9] - h[1] * g[4],
        a[10] - h[1] * g[5], a[11] - h[2] * g[2], a[12] - h[2] * g[3], a[13] - h[2] * g[4], a[14] - h[2] * g[5],
        a[15] - h[3] * g[3], a[16] - h[3] * g[4], a[17] - h[3] * g[5], a[18] - h[4] * g[4], a[19] - h[4] * g[5],
        a[20] - h[5] * g[5],
    )  # fmt: skip


@kernel
def add21(a, b):
    """Sum of two symmetric 6x6 matrices."""
    return (
        a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5], a[6] + b[6], a[7] + b[7],
        a[8] + b[8], a[9] + b[9], a[10] + b[10], a[11] + b[11], a[12] + b[12], a[13] + b[13], a[14] + b[14],
        a[15] + b[15], a[16] + b[16], a[17] + b[17], a[18] + b[18], a[19] + b[19], a[20] + b[20],
    )  # fmt: skip


@kernel
def clear(like, A, k):
    """Zero the first k columns of every row."""
    zero = number(like, 0.0)
    for i in range(A.shape[0]):
        for c in range(k):
            st(A, i, c, zero)


@sweep
def eliminate(tree, S, M, A, L, f, U, y):
    """Inward sweep: factorise and reduce the right-hand side f (rates) and L (bias force of each row)."""
    clear(f, A, 21)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j, d = tree.rows[i, PARENT], tree.rows[i, IU]
        a = ld21(A, i)
        m = tree.const[i, MASS]
        if m > 0.0:
            a = add_inertia(a, ld6(M, i, 0), ld3(M, i, 6), m)
        l = ld6(L, i, 0)
        # the coordinates of the row, last one first
        last = d + 2 if tree.rows[i, KIND] == BALL else d
        for k in range(last, d - 1, -1):
            s = ld6(S, k, 0)
            h = symmetric_times(a, s)
            e = 1.0 / (dot6(s, h) + tree.armature[k])
            g = scale6(e, h)
            yk = ld1(f, k) - dot6(s, l)
            l = axpy6(yk, g, l)
            a = minus_outer(a, h, g)
            st6(U, k, 0, g)
            st(U, k, 6, e)
            st1(y, k, e * yk)
        # hand over to the parent
        if j > 0:
            st21(A, j, add21(ld21(A, j), a))
        st6(L, j, 0, add6(ld6(L, j, 0), l))


@sweep
def reduce(tree, S, L, f, U, y):
    """Inward sweep for a further right-hand side, with the factors U of ``eliminate``."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j, d = tree.rows[i, PARENT], tree.rows[i, IU]
        l = ld6(L, i, 0)
        last = d + 2 if tree.rows[i, KIND] == BALL else d
        for k in range(last, d - 1, -1):
            yk = ld1(f, k) - dot6(ld6(S, k, 0), l)
            l = axpy6(yk, ld6(U, k, 0), l)
            st1(y, k, ld(U, k, 6) * yk)
        st6(L, j, 0, add6(ld6(L, j, 0), l))


@sweep
def expand(tree, S, U, y, Z, a):
    """Outward sweep: accelerations a of the rates and Z (n+1, 6) of the rows, above the bias."""
    zero = number(y, 0.0)
    st6(Z, 0, 0, (zero, zero, zero, zero, zero, zero))
    for i in range(1, tree.rows.shape[0]):
        z = ld6(Z, tree.rows[i, PARENT], 0)
        d = tree.rows[i, IU]
        last = d + 2 if tree.rows[i, KIND] == BALL else d
        for k in range(d, last + 1):
            ak = ld1(y, k) - dot6(ld6(U, k, 0), z)
            st1(a, k, ak)
            z = axpy6(ak, ld6(S, k, 0), z)
        st6(Z, i, 0, z)
