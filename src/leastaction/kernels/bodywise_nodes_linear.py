"""The 12x12 recursion of the body-wise step of fourth order: one joint eliminated after the other, at two nodes.

Rows are the equations of nodes 0 and 1, columns the motions of nodes 1 and 2; symbols are those of ``bodywise_nodes``.
A row of node 1 lies along axes that move with the body: their turning adds -ad(S)^T sum W_1 to its derivative.

    D   (n+1, 144)  dW of a row and its subtree by eta = (eta_1; eta_2), spatial variations of the poses
    l   (n+1, 12)   right-hand side of a subtree
    A   (2k, 12)    derivative of the equations of k coordinates at two nodes by eta
    M   (n+1, 36)   inverse of their derivative by the coordinates
    H   (nu, 24)    D times the axes: columns of nodes 1 and 2        Y (nu, 24)  dq = y - Y . eta_parent
    y   (2 nu,)     direction: nodes 1 and 2 of each rate
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.kernels._jit import kernel, sweep
from leastaction.kernels._lanes import ld6
from leastaction.kernels.layout import BALL, IU, KIND, PARENT
from leastaction.spatial._source.vector import ad_dual


@kernel
def invert_small(w, i, m):
    """Row i of w.M from the m x m matrix in w.X, by Gauss and Jordan with pivots; False if a pivot is zero."""
    # the matrix is in columns 0..m-1 of w.X, the inverse grows in columns 6..6+m-1
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


@sweep
def factor_row(tree, w, i):
    """Columns H, rows Y and inverse M of the joint of row i from D; False if it is singular."""
    d, n = tree.rows[i, IU], 3 if tree.rows[i, KIND] == BALL else 1
    f = ld6(w.sum, i, 6)
    for e in range(n):
        # columns
        for r in range(12):
            h1, h2 = 0.0, 0.0
            for c in range(6):
                h1 += w.D[i, 12 * r + c] * w.S[d + e, 6 + c]
                h2 += w.D[i, 12 * r + 6 + c] * w.S[d + e, 12 + c]
            w.H[d + e, r] = h1
            w.H[d + e, 12 + r] = h2
        # rows of nodes 0 and 1
        for c in range(12):
            a0, a1 = 0.0, 0.0
            for r in range(6):
                a0 += w.S[d + e, r] * w.D[i, 12 * r + c]
                a1 += w.S[d + e, 6 + r] * w.D[i, 12 * (6 + r) + c]
            w.A[e, c] = a0
            w.A[n + e, c] = a1
        turned = ad_dual(ld6(w.S, d + e, 6), f)
        for c in range(6):
            w.A[n + e, c] -= turned[c]
    # the joint's own matrix
    for r in range(2 * n):
        a, e = r // n, r % n
        for j in range(n):
            m1, m2 = w.K[d + e, 6 * a + j], w.K[d + e, 6 * a + 3 + j]
            for c in range(6):
                m1 += w.A[r, c] * w.S[d + j, 6 + c]
                m2 += w.A[r, 6 + c] * w.S[d + j, 12 + c]
            w.X[r, j] = m1
            w.X[r, n + j] = m2
        for c in range(2 * n, 6):
            w.X[r, c] = 0.0
    if not invert_small(w, i, 2 * n):
        return False
    for r in range(2 * n):
        for c in range(12):
            t = 0.0
            for k in range(2 * n):
                t += w.M[i, 6 * r + k] * w.A[k, c]
            w.Y[d + r % n, 12 * (r // n) + c] = t
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
                for c in range(12):
                    w.D[j, 12 * r + c] += w.D[i, 12 * r + c]
                for e in range(n):
                    h1, h2 = w.H[d + e, r], w.H[d + e, 12 + r]
                    for c in range(12):
                        w.D[j, 12 * r + c] -= h1 * w.Y[d + e, c] + h2 * w.Y[d + e, 12 + c]
    return True


@sweep
def direction_nodes(tree, w, own, y):
    """y (2 nu,) for wrenches w.l, which are used up, and residuals ``own`` (nu, 2) of the joints; w.eta of all rows."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        d, j, n = tree.rows[i, IU], tree.rows[i, PARENT], 3 if tree.rows[i, KIND] == BALL else 1
        # minus M^-1 times the residuals
        for e in range(n):
            r0, r1 = own[d + e, 0], own[d + e, 1]
            for c in range(6):
                r0 += w.S[d + e, c] * w.l[i, c]
                r1 += w.S[d + e, 6 + c] * w.l[i, 6 + c]
            w.X[e, 0], w.X[n + e, 0] = r0, r1
        for r in range(2 * n):
            t = 0.0
            for k in range(2 * n):
                t -= w.M[i, 6 * r + k] * w.X[k, 0]
            y[2 * (d + r % n) + r // n] = t
        if j > 0:
            for r in range(12):
                t = w.l[i, r]
                for e in range(n):
                    t += w.H[d + e, r] * y[2 * (d + e)] + w.H[d + e, 12 + r] * y[2 * (d + e) + 1]
                w.l[j, r] += t
    # root to leaf
    for c in range(12):
        w.eta[0, c] = 0.0
    for i in range(1, tree.rows.shape[0]):
        d, j, n = tree.rows[i, IU], tree.rows[i, PARENT], 3 if tree.rows[i, KIND] == BALL else 1
        for c in range(12):
            w.eta[i, c] = w.eta[j, c]
        for e in range(n):
            y1, y2 = y[2 * (d + e)], y[2 * (d + e) + 1]
            for c in range(12):
                y1 -= w.Y[d + e, c] * w.eta[j, c]
                y2 -= w.Y[d + e, 12 + c] * w.eta[j, c]
            y[2 * (d + e)], y[2 * (d + e) + 1] = y1, y2
            for c in range(6):
                w.eta[i, c] += w.S[d + e, 6 + c] * y1
                w.eta[i, 6 + c] += w.S[d + e, 12 + c] * y2
