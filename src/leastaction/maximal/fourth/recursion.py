"""The 12x12 recursion of the step of ``Maximal(4)``: one joint eliminated after the other, at two nodes.

Rows are the equations of nodes 0 and 1, columns the motions of nodes 1 and 2; symbols are those of
``maximal.fourth.bodies``. A row of node 1 lies along axes that move with the body: their turning adds -ad(S)^T sum W_1
to its derivative.

    D   (n+1, 144)  dW of a row and its subtree by eta = (eta_1; eta_2), spatial variations of the poses
    l   (n+1, 12)   right-hand side of a subtree
    A   (2k, 12)    derivative of the equations of k coordinates at two nodes by eta
    B   (2k, 12)    axes of nodes 1 and 2 as columns of eta           X  scratch
    M   (n+1, 36)   inverse of their derivative by the coordinates
    H   (nu, 24)    D times the axes: columns of nodes 1 and 2        Y (nu, 24)  dq = y - Y . eta_parent
    y   (2 nu,)     direction: nodes 1 and 2 of each rate
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import hsum, ld6, ldp, st6, stp
from leastaction.spatial._source.vector import ad_dual, axpy6, dot6
from leastaction.tree.layout import BALL, IU, KIND, PARENT


@kernel
def invert_six(w, i):
    """Row i of w.M from the matrix of a ball in w.X, by Gauss and Jordan with pivots; False if a pivot is zero."""
    # the matrix is in columns 0..5 of w.X, the inverse grows in columns 6..11
    m = 6
    for r in range(m):
        for c in range(m):
            w.X[r, 6 + c] = 1.0 if r == c else 0.0
    for c in range(m):
        at = c
        for r in range(c + 1, m):
            if abs(w.X[r, c]) > abs(w.X[at, c]):
                at = r
        if not abs(w.X[at, c]) > 0.0:
            return False
        if at != c:
            for e in range(12):
                w.X[c, e], w.X[at, e] = w.X[at, e], w.X[c, e]
        s = 1.0 / w.X[c, c]
        for e in range(12):
            w.X[c, e] *= s
        for r in range(m):
            if r != c:
                t = w.X[r, c]
                for e in range(12):
                    w.X[r, e] -= t * w.X[c, e]
    for r in range(m):
        for c in range(m):
            w.M[i, 6 * r + c] = w.X[r, 6 + c]
    return True


@kernel
def invert_two(w, i):
    """The same for a screw, whose matrix is 2 x 2."""
    a, b, c, d = w.X[0, 0], w.X[0, 1], w.X[1, 0], w.X[1, 1]
    det = a * d - b * c
    if not abs(det) > 0.0:
        return False
    w.M[i, 0], w.M[i, 1], w.M[i, 6], w.M[i, 7] = d / det, -b / det, -c / det, a / det
    return True


@kernel
def columns_and_rows(w, i, d, e, n):
    """Columns H of coordinate e of the joint, and its rows in w.A, from D; four columns of D at a time."""
    for c in range(12):
        w.B[e, c] = w.S[d + e, 6 + c] if c < 6 else 0.0
        w.B[n + e, c] = w.S[d + e, 6 + c] if c > 5 else 0.0
    b0, b1, b2, b3 = ldp(w.B, e, 0), ldp(w.B, e, 4), ldp(w.B, n + e, 4), ldp(w.B, n + e, 8)
    zero = 0.0 * b0
    a0, a1, a2, a3, a4, a5 = zero, zero, zero, zero, zero, zero
    for r in range(6):
        d0, d1, d2, s = ldp(w.D, i, 12 * r), ldp(w.D, i, 12 * r + 4), ldp(w.D, i, 12 * r + 8), w.S[d + e, r]
        w.H[d + e, r], w.H[d + e, 12 + r] = hsum(d0 * b0 + d1 * b1), hsum(d1 * b2 + d2 * b3)
        a0, a1, a2 = a0 + s * d0, a1 + s * d1, a2 + s * d2
    for r in range(6, 12):
        d0, d1, d2, s = ldp(w.D, i, 12 * r), ldp(w.D, i, 12 * r + 4), ldp(w.D, i, 12 * r + 8), w.S[d + e, r]
        w.H[d + e, r], w.H[d + e, 12 + r] = hsum(d0 * b0 + d1 * b1), hsum(d1 * b2 + d2 * b3)
        a3, a4, a5 = a3 + s * d0, a4 + s * d1, a5 + s * d2
    stp(w.A, e, 0, a0)
    stp(w.A, e, 4, a1)
    stp(w.A, e, 8, a2)
    stp(w.A, n + e, 0, a3)
    stp(w.A, n + e, 4, a4)
    stp(w.A, n + e, 8, a5)


@sweep
def factor_row(tree, w, i):
    """Columns H, rows Y and inverse M of the joint of row i from D; False if it is singular."""
    d, n = tree.rows[i, IU], 3 if tree.rows[i, KIND] == BALL else 1
    f = ld6(w.sum, i, 6)
    for e in range(n):
        columns_and_rows(w, i, d, e, n)
        turned = ad_dual(ld6(w.S, d + e, 6), f)
        for c in range(6):
            w.A[n + e, c] -= turned[c]
    # the joint's own matrix
    for r in range(2 * n):
        a, e = r // n, r % n
        a0, a1, a2 = ldp(w.A, r, 0), ldp(w.A, r, 4), ldp(w.A, r, 8)
        for j in range(n):
            w.X[r, j] = w.K[d + e, 6 * a + j] + hsum(a0 * ldp(w.B, j, 0) + a1 * ldp(w.B, j, 4))
            w.X[r, n + j] = w.K[d + e, 6 * a + 3 + j] + hsum(a1 * ldp(w.B, n + j, 4) + a2 * ldp(w.B, n + j, 8))
    if not (invert_two(w, i) if n == 1 else invert_six(w, i)):
        return False
    for r in range(2 * n):
        for c in range(0, 12, 4):
            t = w.M[i, 6 * r] * ldp(w.A, 0, c)
            for k in range(1, 2 * n):
                t = t + w.M[i, 6 * r + k] * ldp(w.A, k, c)
            stp(w.Y, d + r % n, 12 * (r // n) + c, t)
    return True


@sweep
def factor_nodes(tree, w):
    """Leaf to root: eliminate every joint; D holds the blocks of the bodies, and is used up."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        if not factor_row(tree, w, i):
            return False
        d, j, n = tree.rows[i, IU], tree.rows[i, PARENT], 3 if tree.rows[i, KIND] == BALL else 1
        if j > 0:
            for r in range(12):
                for c in range(0, 12, 4):
                    t = ldp(w.D, j, 12 * r + c) + ldp(w.D, i, 12 * r + c)
                    for e in range(d, d + n):
                        t = t - (w.H[e, r] * ldp(w.Y, e, c) + w.H[e, 12 + r] * ldp(w.Y, e, 12 + c))
                    stp(w.D, j, 12 * r + c, t)
    return True


@sweep
def direction_nodes(tree, w, own, y):
    """y (2 nu,) for wrenches w.l, which are used up, and residuals ``own`` (nu, 2) of the joints; w.eta of all rows."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        d, j, n = tree.rows[i, IU], tree.rows[i, PARENT], 3 if tree.rows[i, KIND] == BALL else 1
        # minus M^-1 times the residuals
        for e in range(n):
            w.X[e, 0] = own[d + e, 0] + dot6(ld6(w.S, d + e, 0), ld6(w.l, i, 0))
            w.X[n + e, 0] = own[d + e, 1] + dot6(ld6(w.S, d + e, 6), ld6(w.l, i, 6))
        for r in range(2 * n):
            t = 0.0
            for k in range(2 * n):
                t -= w.M[i, 6 * r + k] * w.X[k, 0]
            y[2 * (d + r % n) + r // n] = t
        if j > 0:
            for c in range(0, 12, 4):
                l = ldp(w.l, j, c) + ldp(w.l, i, c)
                for e in range(d, d + n):
                    l = l + (y[2 * e] * ldp(w.H, e, c) + y[2 * e + 1] * ldp(w.H, e, 12 + c))
                stp(w.l, j, c, l)
    # root to leaf
    for c in range(12):
        w.eta[0, c] = 0.0
    for i in range(1, tree.rows.shape[0]):
        d, j, n = tree.rows[i, IU], tree.rows[i, PARENT], 3 if tree.rows[i, KIND] == BALL else 1
        z0, z1, z2 = ldp(w.eta, j, 0), ldp(w.eta, j, 4), ldp(w.eta, j, 8)
        first, second = ld6(w.eta, j, 0), ld6(w.eta, j, 6)
        for e in range(d, d + n):
            y1 = y[2 * e] - hsum(z0 * ldp(w.Y, e, 0) + z1 * ldp(w.Y, e, 4) + z2 * ldp(w.Y, e, 8))
            y2 = y[2 * e + 1] - hsum(z0 * ldp(w.Y, e, 12) + z1 * ldp(w.Y, e, 16) + z2 * ldp(w.Y, e, 20))
            y[2 * e], y[2 * e + 1] = y1, y2
            first, second = axpy6(y1, ld6(w.S, e, 6), first), axpy6(y2, ld6(w.S, e, 12), second)
        st6(w.eta, i, 0, first)
        st6(w.eta, i, 6, second)
