"""Many right-hand sides of a Galerkin step at once: J y = -r and what y does to the next momentum, O(n) for each.

The recursion is that of ``galerkin.newton``, whose state has N numbers, with its factors kept; sixteen columns of Y go
through it together, as four packs. The next momentum by the unknowns is

    pn_i += e_i . (sum of h_j y_j over the subtree of i, itself included) + f_i . (sum of b_j y_j before i)

with the vectors of ``galerkin.variations``.

    Y  (nu s, 16)  right-hand sides r, then y               Pn (nu, 16)  next momenta
    l  (buffers N, 16), z ((n+1) W, 16), q (buffers W, 16), t (3 s, 16): scratch
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.galerkin.newton import add_own, add_products, dot_rows, local_ball, local_screw, solve_small
from leastaction.galerkin.residual import size
from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld3, ld6, ldp, pack_of, stp
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT

# Columns that go through a recursion together.
WIDE = 16


@kernel
def zero16():
    """Four packs of zeros."""
    o = pack_of(0.0, 0.0, 0.0, 0.0)
    return (o, o, o, o)


@kernel
def ld16(T, r):
    """Row r of a block."""
    return (ldp(T, r, 0), ldp(T, r, 4), ldp(T, r, 8), ldp(T, r, 12))


@kernel
def st16(T, r, v):
    """Store row r of a block."""
    stp(T, r, 0, v[0])
    stp(T, r, 4, v[1])
    stp(T, r, 8, v[2])
    stp(T, r, 12, v[3])


@kernel
def add16(a, b):
    """Sum of four packs and four packs."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3])


@kernel
def fma16(f, T, r, v):
    """``v`` plus f times row r of a block."""
    return (v[0] + f * ldp(T, r, 0), v[1] + f * ldp(T, r, 4), v[2] + f * ldp(T, r, 8), v[3] + f * ldp(T, r, 12))


@kernel
def flush16(v):
    """``v`` with numbers below 1e-216 set to zero: influence dies out along a chain, and denormal numbers are slow."""
    c = 1.0e-200
    return ((v[0] + c) - c, (v[1] + c) - c, (v[2] + c) - c, (v[3] + c) - c)


@sweep
def take_block(T, e, block):
    """Columns e .. e + 15 of a table into a block."""
    for r in range(T.shape[0]):
        for k in range(0, WIDE, 4):
            stp(block, r, k, ldp(T, r, e + k))


@sweep
def put_node_columns(block, T, e):
    """A block into columns e .. e + 15 of a table."""
    for r in range(T.shape[0]):
        for k in range(0, WIDE, 4):
            stp(T, r, e + k, ldp(block, r, k))


@kernel
def dot16(N, A, q, T, r, v):
    """``v`` plus the sum over k < N of A[q, k] times row r + k of T (sixteen columns)."""
    for k in range(N):
        v = fma16(A[q, k], T, r + k, v)
    return v


@kernel
def clear16(T, r, N):
    """Zero rows r .. r + N - 1."""
    o = zero16()
    for k in range(N):
        st16(T, r + k, o)


@kernel
def coordinates_of(tree, i):
    """First rate and number of rates of a row."""
    return tree.rows[i, IU], 3 if tree.rows[i, KIND] == BALL else 1


# --- the factors ----------------------------------------------------------------------------------------------------
@kernel
def hand_matrix(N, D, q, to, fresh, H, X, base, k):
    """D - H X^T into the parent's buffer, replacing it (fresh) or added to it."""
    for r in range(N):
        for e in range(0, N, 4):
            t = ldp(D, q, r * N + e)
            for c in range(base, base + k):
                t = t - H[c, r] * ldp(X, c, e)
            stp(D, to, r * N + e, t if fresh else t + ldp(D, to, r * N + e))


@sweep
def factorise(tree, nodes, w, var, K, Dm):
    """Newton factors of all rows: H in var.eb, and Lam^-1 X^T (N columns) beside Lam^-1 in var.ea.

    On input these tables hold -E and -EA.
    """
    s, h = len(nodes.w) - 1, nodes.h
    N, D, H, X = size(s, ()), w.D, var.eb, var.ea
    wide = X.shape[1]
    zero = pack_of(0.0, 0.0, 0.0, 0.0)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, q, m = tree.rows[i, PARENT], w.slot[i, 0], tree.const[i, MASS]
        d, n = coordinates_of(tree, i)
        base, k = d * s, n * s
        # the buffer: that of a child, or a new one
        if w.slot[i, 1] & 1:
            for e in range(0, N * N, 4):
                stp(D, q, e, zero)
        if m > 0.0:
            for a in range(s + 1):
                add_own(D, q, N, 6 * a, nodes.w[a] * h, ld6(w.M, i, 9 * a), ld3(w.M, i, 9 * a + 6), m)
        if n == 3:
            local_ball(tree, nodes, w, i, d, K, Dm)
        else:
            local_screw(tree, nodes, w, d, K, Dm)
        # H = D B - E, X = D^T A - EA, Lam
        for c in range(base, base + k):
            add_products(N, D, q, var.a, var.b, X, H, c)
        for a in range(k):
            for c in range(k):
                w.lam[a, c] += dot_rows(N, var.a, base + a, H, base + c)
                X[base + a, N + c] = 1.0 if a == c else 0.0
        solve_small(w.lam, k, base, X, w.inv, w.y, wide)
        if par > 0:
            hand_matrix(N, D, q, w.slot[par, 0], (w.slot[i, 1] & 2) != 0, H, X, base, k)


# --- sixteen columns: Y, Pn, Xn are blocks (rows, 16) --------------------------------------------------------------
@sweep
def reduce_columns(tree, s, w, var, Y, l, t):
    """Inward: Y becomes y0 = -Lam^-1 (r + A^T l), eq. (7)."""
    N, H, X = size(s, ()), var.eb, var.ea
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, at = tree.rows[i, PARENT], w.slot[i, 0] * N
        d, n = coordinates_of(tree, i)
        base, k = d * s, n * s
        if w.slot[i, 1] & 1:
            clear16(l, at, N)
        for c in range(k):
            st16(t, c, dot16(N, var.a, base + c, l, at, ld16(Y, base + c)))
        for c in range(k):
            v = zero16()
            for e in range(k):
                v = fma16(-X[base + c, N + e], t, e, v)
            st16(Y, base + c, v)
        # hand over
        if par > 0:
            to = w.slot[par, 0] * N
            fresh = (w.slot[i, 1] & 2) != 0
            for r in range(N):
                v = ld16(l, at + r)
                for c in range(base, base + k):
                    v = fma16(H[c, r], Y, c, v)
                if i % 8 == 0:
                    v = flush16(v)
                st16(l, to + r, v if fresh else add16(v, ld16(l, to + r)))


@sweep
def expand_columns(tree, s, var, Y, z, Pn):
    """Outward: Y becomes y; the next momenta get what lies before each row."""
    N, W, X = size(s, ()), 8 * (s + 1), var.ea
    clear16(z, 0, W)
    for i in range(1, tree.rows.shape[0]):
        before, at = tree.rows[i, PARENT] * W, i * W
        d, n = coordinates_of(tree, i)
        base, k = d * s, n * s
        for j in range(d, d + n):
            st16(Pn, j, dot16(W, var.f, j, z, before, ld16(Pn, j)))
        for c in range(base, base + k):
            v = dot16(N, X, c, z, before, zero16())
            y = ld16(Y, c)
            st16(Y, c, (y[0] - v[0], y[1] - v[1], y[2] - v[2], y[3] - v[3]))
        for r in range(W):
            v = ld16(z, before + r)
            for c in range(base, base + k):
                v = fma16(var.b[c, r], Y, c, v)
            st16(z, at + r, flush16(v) if i % 8 == 0 else v)


@sweep
def collect_columns(tree, s, w, var, Y, q, Pn):
    """Inward: the next momenta get what lies at and behind each row."""
    W = 8 * (s + 1)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, at = tree.rows[i, PARENT], w.slot[i, 0] * W
        d, n = coordinates_of(tree, i)
        base, k = d * s, n * s
        if w.slot[i, 1] & 1:
            clear16(q, at, W)
        for r in range(W):
            v = ld16(q, at + r)
            for c in range(base, base + k):
                v = fma16(var.h[c, r], Y, c, v)
            st16(q, at + r, v)
        for j in range(d, d + n):
            v = dot16(W, var.e, j, q, at, ld16(Pn, j))
            for c in range(k):
                v = fma16(var.local[j, c], Y, base + c, v)
            st16(Pn, j, v)
        if par > 0 and (w.slot[i, 1] & 2) == 0:
            to = w.slot[par, 0] * W
            for r in range(W):
                st16(q, to + r, add16(ld16(q, to + r), ld16(q, at + r)))


# --- velocities from momenta ----------------------------------------------------------------------------------------
@sweep
def velocity_columns(tree, S, U, T, Xn, Pn, z, L):
    """Pn becomes du = M^-1 (dp - dp/dx dx) for sixteen columns; Xn holds dx. T is that of ``dynamics.hessian``.

    S, U: axes and factors of ``tree.articulated``; z, L ((n+1) 6, 16) scratch.
    """
    # what lies before each rate, and the rates of its own row
    clear16(z, 0, 6)
    clear16(L, 0, 6 * tree.rows.shape[0])
    for i in range(1, tree.rows.shape[0]):
        before = 6 * tree.rows[i, PARENT]
        d, n = coordinates_of(tree, i)
        for r in range(6):
            v = ld16(z, before + r)
            for k in range(d, d + n):
                v = fma16(T[k, r], Xn, k, v)
            st16(z, 6 * i + r, v)
        for k in range(d, d + n):
            v = ld16(Pn, k)
            for r in range(6):
                v = fma16(-T[k, 12 + r], z, 6 * i + r, v)
            st16(Pn, k, v)
    # inward: what lies behind, and the articulated elimination
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        to, at = 6 * tree.rows[i, PARENT], 6 * i
        d, n = coordinates_of(tree, i)
        for k in range(d + n - 1, d - 1, -1):
            v = ld16(Pn, k)
            for r in range(6):
                v = fma16(-S[k, r], L, at + r, v)
            for r in range(6):
                g = U[k, r]
                o = ld16(L, at + r)
                st16(L, at + r, (o[0] + g * v[0], o[1] + g * v[1], o[2] + g * v[2], o[3] + g * v[3]))
            g = U[k, 6]
            st16(Pn, k, (g * v[0], g * v[1], g * v[2], g * v[3]))
        for r in range(6):
            v = add16(ld16(L, to + r), ld16(L, at + r))
            for k in range(d, d + n):
                v = fma16(T[k, 6 + r], Xn, k, v)
            st16(L, to + r, flush16(v) if i % 8 == 0 else v)
    # outward
    for i in range(1, tree.rows.shape[0]):
        before, at = 6 * tree.rows[i, PARENT], 6 * i
        d, n = coordinates_of(tree, i)
        for r in range(6):
            v = ld16(z, before + r) if before > 0 else zero16()
            st16(z, at + r, flush16(v) if i % 8 == 0 else v)
        for k in range(d, d + n):
            v = ld16(Pn, k)
            for r in range(6):
                v = fma16(-U[k, r], z, at + r, v)
            st16(Pn, k, v)
            for r in range(6):
                st16(z, at + r, fma16(S[k, r], Pn, k, ld16(z, at + r)))
