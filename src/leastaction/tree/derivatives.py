"""Derivatives of inverse dynamics by position, velocity and acceleration, analytic, O(n depth).

Displacing rate j by a unit moves its whole subtree by the twist S_j. Seen in the moved frame the twist of every body
behind changes by Y_j = ad(v_p) S_j and its acceleration by W_j - ad(v) Y_j, with v_p, a_p of the row before and

    W_j = ad(a_p) S_j + ad(v_p) Y_j,        B x = -ad(v)^T I x - I ad(v) x - ad(x)^T I v   (a 6x6 matrix per body).

With I and B summed over subtrees (i at or behind j; l before j):

    d tau_i / d q_j = S_i . (I_i W_j + B_i Y_j)            d tau_l / d q_j = S_l . (I_j W_j + B_j Y_j - ad(S_j)^T F_j)
    d tau / d u_j   = S . (I X_j + B S_j),   X_j = ad(v_p) S_j + ad(v) S_j,   with the sums of the lower of the two.

The same derivatives as in Carpentier and Mansard 2018 and Singh, Russo and Wensing 2022; derived here for rows whose
axes are child-fixed (balls). Displacements of a ball are rotation vectors in child axes.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld, ld3, ld6, number, st, st6
from leastaction.spatial._source.vector import ad, ad_dual, add6, dot6, inertia_times, scale6, sub6
from leastaction.tree.layout import PARENT


@kernel
def bias_column(I, h, m, v, x):
    """``B x`` of one body."""
    a = ad_dual(v, inertia_times(I, h, m, x))
    b = inertia_times(I, h, m, ad(v, x))
    c = ad_dual(x, inertia_times(I, h, m, v))
    return scale6(-1.0, add6(add6(a, b), c))


@kernel
def matrix_times(B, i, x):
    """Product of the 6x6 matrix in row i of B with a twist."""
    return (
        dot6(ld6(B, i, 0), x),
        dot6(ld6(B, i, 6), x),
        dot6(ld6(B, i, 12), x),
        dot6(ld6(B, i, 18), x),
        dot6(ld6(B, i, 24), x),
        dot6(ld6(B, i, 30), x),
    )


@sweep
def subtree_bias(tree, like, M, V, B):
    """B of every row (36 numbers, by rows), summed over subtrees. M holds row inertias, not yet summed."""
    one, zero = number(like, 1.0), number(like, 0.0)
    for i in range(tree.rows.shape[0]):
        for c in range(6):
            x = (
                one if c == 0 else zero, one if c == 1 else zero, one if c == 2 else zero,
                one if c == 3 else zero, one if c == 4 else zero, one if c == 5 else zero,
            )  # fmt: skip
            column = (zero, zero, zero, zero, zero, zero)
            if tree.const[i, 12] > 0.0:
                column = bias_column(ld6(M, i, 0), ld3(M, i, 6), tree.const[i, 12], ld6(V, i, 0), x)
            st(B, i, c, column[0])
            st(B, i, 6 + c, column[1])
            st(B, i, 12 + c, column[2])
            st(B, i, 18 + c, column[3])
            st(B, i, 24 + c, column[4])
            st(B, i, 30 + c, column[5])
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j = tree.rows[i, PARENT]
        for c in range(36):
            st(B, j, c, ld(B, j, c) + ld(B, i, c))


@sweep
def inverse_dynamics_derivatives(tree, S, M, m, V, F, B, T, dq, du):
    """d tau / d q and d tau / d u, both (nu, nu) and zeroed by the caller.

    M, m, B are subtree sums, F subtree forces, V twists and accelerations (after ``outward`` and ``inward``).
    T (nu, 18) is scratch: Y, W, X of every rate.
    """
    nu = tree.rates.shape[0]
    for j in range(nu):
        i = tree.rates[j, 0]
        p = tree.rows[i, PARENT]
        s, vp, ap = ld6(S, j, 0), ld6(V, p, 0), ld6(V, p, 6)
        y = ad(vp, s)
        st6(T, j, 0, y)
        st6(T, j, 6, add6(ad(ap, s), ad(vp, y)))
        st6(T, j, 12, add6(y, ad(ld6(V, i, 0), s)))
    for j in range(nu):
        r = tree.rates[j, 0]
        I, h, s = ld6(M, r, 0), ld3(M, r, 6), ld6(S, j, 0)
        y, w, x = ld6(T, j, 0), ld6(T, j, 6), ld6(T, j, 12)
        # column j for the rates before j, and j itself: sums of row r
        moved = add6(inertia_times(I, h, m[r], w), matrix_times(B, r, y))
        rate = add6(inertia_times(I, h, m[r], x), matrix_times(B, r, s))
        st(dq, j, j, dot6(s, moved))
        st(du, j, j, dot6(s, rate))
        lifted = sub6(moved, ad_dual(s, ld6(F, r, 0)))
        # row j for the rates before j: S_j against their columns, with the sums of row r
        Is = inertia_times(I, h, m[r], s)
        Bs = transpose_times(B, r, s)
        l = tree.rates[j, 1]
        while l >= 0:
            sl = ld6(S, l, 0)
            same = tree.rates[l, 0] == r
            # two rates of one ball share their subtree and are displaced together: the lifted term is not there
            st(dq, l, j, dot6(sl, moved) if same else dot6(sl, lifted))
            st(du, l, j, dot6(sl, rate))
            st(dq, j, l, dot6(Is, ld6(T, l, 6)) + dot6(Bs, ld6(T, l, 0)))
            st(du, j, l, dot6(Is, ld6(T, l, 12)) + dot6(Bs, sl))
            l = tree.rates[l, 1]


@kernel
def transpose_times(B, i, x):
    """``B^T x`` with the 6x6 matrix in row i of B."""
    out = scale6(x[0], ld6(B, i, 0))
    out = add6(out, scale6(x[1], ld6(B, i, 6)))
    out = add6(out, scale6(x[2], ld6(B, i, 12)))
    out = add6(out, scale6(x[3], ld6(B, i, 18)))
    out = add6(out, scale6(x[4], ld6(B, i, 24)))
    return add6(out, scale6(x[5], ld6(B, i, 30)))
