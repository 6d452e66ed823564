"""Newton's direction for the Lie trapezoid: in O(n) by an unsymmetric articulated recursion, and by a dense Jacobian.

A variation y of the unknowns (for a ball along its parent's axes) displaces row i at the end of the step by eta_i:

    eta_i = eta_par + S1_i y_i                                                                    (5)
    delta mu_i = B_i eta_i,   B = (dlog_Z^T M / h + d(dlog_Z^T m)/dZ) dlog_Z,  m = M Z / h        (6)
    B = ((dlog_a^T I / h + d(dlog_a^T s)/da) dlog_a - m c^ c1^ / h, m c^ / h; -m c1^ / h, m / h)  (6')
    S0_i . sum_subtree delta mu + Lloc_i y_i = -r_i                                               (7)
(6) is that of the printed form; in (6'), of the invariant one, s = I a / h, and c, c1 are the places of the centre of
mass. B is the mixed second derivative of the action, so it is not symmetric. With D_i, l_i the articulated sums,
    H = D S1   X = Lam^-1 S0^T D   Lam = S0^T D S1 + Lloc   y0 = -Lam^-1 (r + S0 . l)
    D_par += D - H X,   l_par += l + H y0;   outward  y = y0 - X eta_par                          (8)

    D (n+1, 36) B, then articulated, row by row     H, X (nu, 6)      y (nu,)      eta (n+1, 6): l inward, then eta
    load (n+1, 6) displacements of one column of the Jacobian
    damp (nu, 3) derivative of w.G by xi: one entry for a screw, rows of a 3x3 matrix along parent axes for a ball
    J (nu, nu)  dense Jacobian (Algorithm 4)
Forces on bodies count as constant here, though not in the residual.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.spatial._source.dlog import dexp_inv_curvature, dlog_blocks, dlog_dual_derivative, pulled_derivative
from leastaction.spatial._source.mrp import add9, scale9
from leastaction.spatial._source.so3 import dexp_inv, dexp_inv_times, hat
from leastaction.spatial._source.vector import (
    add3,
    add6,
    ang,
    axpy6,
    dot3,
    dot6,
    inertia_times,
    matmul,
    matvec,
    scale3,
    scale6,
    transpose,
)
from leastaction.trapezoid.residual import combine, inertia_matrix
from leastaction.tree.coordinates import get3, put3
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT


@kernel
def put_quarter(D, i, r, c, A):
    """Store a 3x3 block of the 6x6 matrix of row i."""
    for a in range(3):
        for b in range(3):
            D[i, 6 * (r + a) + c + b] = A[3 * a + b]


@kernel
def matrix_times6(D, i, s):
    """Product of the 6x6 matrix of row i with a twist."""
    return (
        dot6(ld6(D, i, 0), s), dot6(ld6(D, i, 6), s), dot6(ld6(D, i, 12), s),
        dot6(ld6(D, i, 18), s), dot6(ld6(D, i, 24), s), dot6(ld6(D, i, 30), s),
    )  # fmt: skip


@kernel
def matrix_transposed_times6(D, i, s):
    """Product of the transpose of that matrix with a twist."""
    out = scale6(s[0], ld6(D, i, 0))
    for r in range(1, 6):
        out = axpy6(s[r], ld6(D, i, 6 * r), out)
    return out


@sweep
def momentum_matrices(tree, h, w):
    """w.D = B of every row, eq. (6); zero where there is no mass."""
    for i in range(tree.rows.shape[0]):
        m = tree.const[i, MASS]
        if i == 0 or m <= 0.0:
            for k in range(36):
                w.D[i, k] = 0.0
            continue
        if not w.printed:
            matrix_apart(tree, h, i, m, w)
            continue
        Z, e, e1 = ld6(w.Z, i, 0), w.E[i, 7], w.E[i, 8]
        e2 = dexp_inv_curvature(dot3(ang(Z), ang(Z)), e, e1)
        I6, h1 = ld6(w.M, i, 0), ld3(w.M, i, 6)
        J, Q = dlog_blocks(e, e1, Z)
        upper, beside = dlog_dual_derivative(e, e1, e2, Z, inertia_times(I6, h1, m, scale6(1.0 / h, Z)))
        # dlog^T M / h with M = (I, c^; -c^, m) and dlog = (J, 0; Q, J)
        k = 1.0 / h
        I = (k * I6[0], k * I6[1], k * I6[2], k * I6[1], k * I6[3], k * I6[4], k * I6[2], k * I6[4], k * I6[5])
        c = hat((k * h1[0], k * h1[1], k * h1[2]))
        JT, QT = transpose(J), transpose(Q)
        Jc = matmul(JT, c)
        a11 = add9(upper, add9(matmul(JT, I), scale9(-1.0, matmul(QT, c))))
        a12 = add9(beside, add9(Jc, scale9(k * m, QT)))
        a21 = add9(beside, scale9(-1.0, Jc))
        a22 = scale9(k * m, JT)
        # times dlog
        put_quarter(w.D, i, 0, 0, add9(matmul(a11, J), matmul(a12, Q)))
        put_quarter(w.D, i, 0, 3, matmul(a12, J))
        put_quarter(w.D, i, 3, 0, add9(matmul(a21, J), matmul(a22, Q)))
        put_quarter(w.D, i, 3, 3, matmul(a22, J))


@kernel
def matrix_apart(tree, h, i, m, w):
    """w.D of row i in the invariant form, eq. (6')."""
    a, e, e1, k = ld3(w.Z, i, 0), w.E[i, 7], w.E[i, 8], m / h
    c = scale3(1.0 / m, ld3(w.M, i, 6))
    near, far = hat(c), hat(add3(c, ld3(w.E, i, 9)))
    J, I = dexp_inv(a), scale9(1.0 / h, inertia_matrix(tree, i, w.P))
    turn = add9(matmul(transpose(J), I), pulled_derivative(e, e1, a, matvec(I, a)))
    put_quarter(w.D, i, 0, 0, add9(matmul(turn, J), scale9(-k, matmul(near, far))))
    put_quarter(w.D, i, 0, 3, scale9(k, near))
    put_quarter(w.D, i, 3, 0, scale9(-k, far))
    put_quarter(w.D, i, 3, 3, (k, 0.0, 0.0, 0.0, k, 0.0, 0.0, 0.0, k))


@kernel
def trapezoid_ball(tree, h, d, xi, w):
    """Lloc of a ball: rotor and dampers act on xi, and a variation y along parent axes moves xi by dlog_xi y."""
    k = tree.armature[d] / h
    A = (
        k - w.damp[d, 0], -w.damp[d, 1], -w.damp[d, 2],
        -w.damp[d + 1, 0], k - w.damp[d + 1, 1], -w.damp[d + 1, 2],
        -w.damp[d + 2, 0], -w.damp[d + 2, 1], k - w.damp[d + 2, 2],
    )  # fmt: skip
    return matmul(A, dexp_inv(get3(xi, d)))


@kernel
def inverse9(A):
    """Inverse of a 3x3 matrix."""
    c0, c1, c2 = A[4] * A[8] - A[5] * A[7], A[5] * A[6] - A[3] * A[8], A[3] * A[7] - A[4] * A[6]
    f = 1.0 / (A[0] * c0 + A[1] * c1 + A[2] * c2)
    return (
        f * c0, f * (A[2] * A[7] - A[1] * A[8]), f * (A[1] * A[5] - A[2] * A[4]),
        f * c1, f * (A[0] * A[8] - A[2] * A[6]), f * (A[2] * A[3] - A[0] * A[5]),
        f * c2, f * (A[1] * A[6] - A[0] * A[7]), f * (A[0] * A[4] - A[1] * A[3]),
    )  # fmt: skip


@kernel
def eliminate_trapezoid_ball(tree, h, i, d, xi, w, l):
    """H, X = Lam^-1 S0^T D and y0 of a ball."""
    lam = trapezoid_ball(tree, h, d, xi, w)
    for k in range(d, d + 3):
        st6(w.H, k, 0, matrix_times6(w.D, i, ld6(w.S1, k, 0)))
    for a in range(3):
        S = ld6(w.S0, d + a, 0)
        st6(w.X, d + a, 0, matrix_transposed_times6(w.D, i, S))
        w.y[d + a] = -(w.r[d + a] + dot6(S, l))
    S, T, U = ld6(w.S0, d, 0), ld6(w.S0, d + 1, 0), ld6(w.S0, d + 2, 0)
    h0, h1, h2 = ld6(w.H, d, 0), ld6(w.H, d + 1, 0), ld6(w.H, d + 2, 0)
    full = (
        dot6(S, h0), dot6(S, h1), dot6(S, h2), dot6(T, h0), dot6(T, h1), dot6(T, h2),
        dot6(U, h0), dot6(U, h1), dot6(U, h2),
    )  # fmt: skip
    inv = inverse9(add9(lam, full))
    x0, x1, x2, y = ld6(w.X, d, 0), ld6(w.X, d + 1, 0), ld6(w.X, d + 2, 0), get3(w.y, d)
    for a in range(3):
        f = (inv[3 * a], inv[3 * a + 1], inv[3 * a + 2])
        st6(w.X, d + a, 0, axpy6(f[2], x2, axpy6(f[1], x1, scale6(f[0], x0))))
        w.y[d + a] = dot3(f, y)


@sweep
def trapezoid_direction(tree, h, xi, w):
    """w.y = -J^-1 r in O(n), as a change of xi; w must hold a residual."""
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    momentum_matrices(tree, h, w)
    for i in range(tree.rows.shape[0]):
        st6(w.eta, i, 0, none)
    # inward, eq. (8)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j, d, l = tree.rows[i, PARENT], tree.rows[i, IU], ld6(w.eta, i, 0)
        last = d
        if tree.rows[i, KIND] == BALL:
            last = d + 2
            eliminate_trapezoid_ball(tree, h, i, d, xi, w, l)
        else:
            S, H = ld6(w.S0, d, 0), matrix_times6(w.D, i, ld6(w.S1, d, 0))
            f = 1.0 / (dot6(S, H) + tree.armature[d] / h - w.damp[d, 0])
            st6(w.H, d, 0, H)
            st6(w.X, d, 0, scale6(f, matrix_transposed_times6(w.D, i, S)))
            w.y[d] = -f * (w.r[d] + dot6(S, l))
        if j == 0:
            continue
        # hand over
        for r in range(6):
            row = ld6(w.D, i, 6 * r)
            for k in range(d, last + 1):
                row = axpy6(-w.H[k, r], ld6(w.X, k, 0), row)
            st6(w.D, j, 6 * r, add6(ld6(w.D, j, 6 * r), row))
        for k in range(d, last + 1):
            l = axpy6(w.y[k], ld6(w.H, k, 0), l)
        st6(w.eta, j, 0, add6(ld6(w.eta, j, 0), l))
    # outward, eq. (5)
    st6(w.eta, 0, 0, none)
    for i in range(1, tree.rows.shape[0]):
        d, eta = tree.rows[i, IU], ld6(w.eta, tree.rows[i, PARENT], 0)
        n = 3 if tree.rows[i, KIND] == BALL else 1
        for k in range(d, d + n):
            w.y[k] -= dot6(ld6(w.X, k, 0), eta)
        st6(w.eta, i, 0, add6(eta, combine(w.S1, d, n, w.y)))
    to_chart(tree, xi, w.y)


@kernel
def to_chart(tree, xi, y):
    """Variations along parent axes become changes of the balls' rotation vectors."""
    for i in range(1, tree.rows.shape[0]):
        if tree.rows[i, KIND] == BALL:
            d = tree.rows[i, IU]
            put3(y, d, dexp_inv_times(get3(xi, d), get3(y, d)))


@sweep
def jacobian(tree, h, xi, w):
    """w.J (nu, nu), derivative of the residual by y, column by column in O(n) each (Lee et al. 2016, Algorithm 4)."""
    n, nu = tree.rows.shape[0], w.y.size
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    momentum_matrices(tree, h, w)
    for c in range(nu):
        own = tree.rates[c, 0]
        # Alg. 4, l. 2 to 6: the subtree behind the joint moves with its axis (w.load); l. 8: momenta (w.eta)
        for i in range(own):
            st6(w.load, i, 0, none)
            st6(w.eta, i, 0, none)
        for i in range(own, n):
            moved = ld6(w.S1, c, 0) if i == own else ld6(w.load, tree.rows[i, PARENT], 0)
            st6(w.load, i, 0, moved)
            st6(w.eta, i, 0, matrix_times6(w.D, i, moved))
        # Alg. 4, l. 9 and 10
        for i in range(n - 1, 0, -1):
            j, d, f = tree.rows[i, PARENT], tree.rows[i, IU], ld6(w.eta, i, 0)
            for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
                w.J[k, c] = dot6(ld6(w.S0, k, 0), f)
            st6(w.eta, j, 0, add6(ld6(w.eta, j, 0), f))
    # rotors and dampers
    for i in range(1, n):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            L = trapezoid_ball(tree, h, d, xi, w)
            for a in range(3):
                for b in range(3):
                    w.J[d + a, d + b] += L[3 * a + b]
        else:
            w.J[d, d] += tree.armature[d] / h - w.damp[d, 0]


@sweep
def solve_dense(A, b):
    """Solve A x = b in place by elimination with row exchanges; A is destroyed, b becomes x. O(n^3)."""
    n = b.size
    for c in range(n):
        best, at = abs(A[c, c]), c
        for r in range(c + 1, n):
            if abs(A[r, c]) > best:
                best, at = abs(A[r, c]), r
        if at != c:
            for k in range(c, n):
                A[c, k], A[at, k] = A[at, k], A[c, k]
            b[c], b[at] = b[at], b[c]
        f = 1.0 / A[c, c]
        for r in range(c + 1, n):
            t = f * A[r, c]
            if t != 0.0:
                for k in range(c + 1, n):
                    A[r, k] -= t * A[c, k]
                b[r] -= t * b[c]
    for c in range(n - 1, -1, -1):
        for k in range(c + 1, n):
            b[c] -= A[c, k] * b[k]
        b[c] /= A[c, c]


@sweep
def direction_by_jacobian(tree, h, xi, w):
    """w.y = -J^-1 r with the dense Jacobian, as a change of xi."""
    jacobian(tree, h, xi, w)
    for k in range(w.y.size):
        w.y[k] = -w.r[k]
    solve_dense(w.J, w.y)
    to_chart(tree, xi, w.y)
