"""Joints along curves and on surfaces of poses: their axes vary with their coordinates (Sueda 2021, 2.4.12, 2.4.13).

The motion is a product of exponentials of constant twists xi_k with factors f_k of the coordinates s (model/spline.py),

    Q = C exp(xi_1 f_1(s)) ... exp(xi_m f_m(s)),      S_j = Q^-1 dQ/ds_j,

so that with A = Ad(exp(-xi f)) every factor takes the axes and their derivatives on, as in Algorithms 3 and 4:

    S_j    <- A S_j + xi f_j
    S_j,k  <- A S_j,k - f_k ad(xi) A S_j + xi f_jk
    S_j,kl <- A S_j,kl - f_k ad(xi) A S_j,l - f_l ad(xi) A S_j,k - f_kl ad(xi) A S_j + f_k f_l ad(xi)^2 A S_j + xi f_jkl

A curve is one row of the tree. A surface is two, both at its pose: the first has no mass, and the second carries the
body. For rows, sweeps take it that an axis is fixed to what its own row carries; in the axes of the world this is short
of the truth by (G are the rates of the joint, Ad that of its pose)

    dS_i/ds_j = ... + D_ij,   D_ij = D_ji = Ad S_max(i,j),min(i,j)     so that accelerations lack sum D_ij u_i u_j.

With e_j = sum_i D_ij u_i, v_p and a_p of the row before the joint, v behind it, and w = sum S_i u_i, the columns of
``tree/derivatives.py`` for the rates of the joint are

    Y_j = ad(v_p) S_j + Ad S_i,j u_i                       X_j = ad(v_p) S_j + ad(v) S_j + Ad (S_i,j + S_j,i) u_i
    W_j = ad(v) Y_j + ad(a_p) S_j + ad(ad(v_p) S_j) w + ad(v_p) Ad S_i,j u_i + Ad S_i,j udot_i + Ad S_i,kj u_i u_k

(sums over i and k), and d tau_i / d s_j has D_ij . F besides.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import PART_OPTIONS, either, entry, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st6
from leastaction.spatial._source.se3 import Ad, Ad_inv, compose, exp, pose, position, rotation
from leastaction.spatial._source.vector import ad, add6, axpy6, dot6, inertia_times, join, scale6, sub6
from leastaction.tree.layout import IU, IX, KIND, PARENT, SPLINE

# columns of Splines.kind
ROW, SIZE, FIRST, N1, N2, CLOSED1, CLOSED2 = 0, 1, 2, 3, 4, 5, 6


@kernel
def cell(s, n, closed):
    """First control point of the segment at s and the place in it, 0 to 1; not a number beyond the ends."""
    if not abs(s) < 1.0e15 or (closed == 0 and not 0.0 <= s <= n - 3.0):
        return 0, math.nan
    k = math.floor(s)
    if closed == 0 and k > n - 4:
        k = n - 4
    return k % n, s - k


@kernel
def basis(i, t):
    """Basis function i of a cubic B-spline at t and its three derivatives (2.68), (2.73)."""
    r = 1.0 - t
    if i == 0:
        return r * r * r / 6.0, -0.5 * r * r, r, -1.0
    if i == 1:
        return (4.0 - 6.0 * t * t + 3.0 * t * t * t) / 6.0, 0.5 * t * (3.0 * t - 4.0), 3.0 * t - 2.0, 3.0
    if i == 2:
        return (1.0 + 3.0 * t * (1.0 + t - t * t)) / 6.0, 0.5 * (1.0 + 2.0 * t - 3.0 * t * t), 1.0 - 3.0 * t, -3.0
    return t * t * t / 6.0, 0.5 * t * t, t, 1.0


@kernel
def cumulative(i, t):
    """Sum of the basis functions from i = 1, 2 or 3 on, and its three derivatives (2.72)."""
    r = 1.0 - t
    if i == 1:
        return 1.0 - r * r * r / 6.0, 0.5 * r * r, -r, 1.0
    if i == 2:
        return (1.0 + t * (3.0 + t * (3.0 - 2.0 * t))) / 6.0, 0.5 + t - t * t, 1.0 - 2.0 * t, -2.0
    return t * t * t / 6.0, 0.5 * t * t, t, 1.0


@kernel
def unit_twist(k):
    """Twist number k of a surface: translation along x, y, z, then rotation about them (2.77)."""
    return (
        1.0 if k == 3 else 0.0, 1.0 if k == 4 else 0.0, 1.0 if k == 5 else 0.0,
        1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0,
    )  # fmt: skip


@kernel
def motion_start(splines, j, x, k):
    """First pose C, number of factors, control points and places of both coordinates."""
    kind, data = splines.kind, splines.data
    a, s = cell(x[k], kind[j, N1], kind[j, CLOSED1])
    if kind[j, SIZE] == 1:
        i = kind[j, FIRST] + a
        C = pose(ld9(data, i, 0), ld3(data, i, 9))
        return C, 3, a, s, 0, 0.0
    b, t = cell(x[k + 1], kind[j, N2], kind[j, CLOSED2])
    return pose((1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0)), 6, a, s, b, t


@kernel
def curve_twist(splines, j, a, i):
    """Twist of factor i = 0, 1, 2 of a curve in the segment of control point a."""
    r = splines.kind[j, FIRST] + (a + i + 1) % splines.kind[j, N1]
    return join(ld3(splines.data, r, 12), ld3(splines.data, r, 15))


@kernel
def surface_value(splines, j, k, a, i, b, l):
    """Number k of the control frame that is i rows and l columns behind (a, b)."""
    n1, n2 = splines.kind[j, N1], splines.kind[j, N2]
    return splines.data[splines.kind[j, FIRST] + ((a + i) % n1) * n2 + (b + l) % n2, k]


@sweep
def spline_axes(splines, j, x, k):
    """Pose (12) and both axes (6) of spline j, whose coordinates begin at k; a curve has no second axis."""
    Q, m, a, s, b, t = motion_start(splines, j, x, k)
    one = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    two = one
    for i in range(m):
        if m == 3:
            f, f1, _, _ = cumulative(i + 1, s)
            xi, f2 = curve_twist(splines, j, a, i), 0.0
        else:
            xi, f, f1, f2 = unit_twist(i), 0.0, 0.0, 0.0
            for r in range(4):
                p, p1, _, _ = basis(r, s)
                for c in range(4):
                    g, g1, _, _ = basis(c, t)
                    value = surface_value(splines, j, i, a, r, b, c)
                    f, f1, f2 = f + p * g * value, f1 + p1 * g * value, f2 + p * g1 * value
        step = exp(scale6(f, xi))
        Q = compose(Q, step)
        one, two = axpy6(f1, xi, Ad_inv(step, one)), axpy6(f2, xi, Ad_inv(step, two))
    return Q, one, two


@kernel
def carried_axes(step, xi, f, g, S):
    """S_j and its five derivatives S = (S_j, S_j,1, S_j,2, S_j,11, S_j,12, S_j,22) behind one more factor.

    f (f_1, f_2, f_11, f_12, f_22) and g (f_j and the same derivatives of it) belong to that factor.
    """
    f1, f2, f11, f12, f22 = f
    a, a1, a2 = Ad_inv(step, S[0]), Ad_inv(step, S[1]), Ad_inv(step, S[2])
    b, b1, b2 = ad(xi, a), ad(xi, a1), ad(xi, a2)
    c = ad(xi, b)
    return (
        axpy6(g[0], xi, a),
        axpy6(g[1], xi, axpy6(-f1, b, a1)),
        axpy6(g[2], xi, axpy6(-f2, b, a2)),
        axpy6(g[3], xi, axpy6(f1 * f1, c, axpy6(-f11, b, axpy6(-2.0 * f1, b1, Ad_inv(step, S[3]))))),
        axpy6(g[4], xi, axpy6(f1 * f2, c, axpy6(-f12, b, axpy6(-f1, b2, axpy6(-f2, b1, Ad_inv(step, S[4])))))),
        axpy6(g[5], xi, axpy6(f2 * f2, c, axpy6(-f22, b, axpy6(-2.0 * f2, b2, Ad_inv(step, S[5]))))),
    )


@sweep
def spline_terms(splines, j, x, k):
    """For both axes of spline j what ``carried_axes`` lists: the axis and its derivatives, in the axes of the joint."""
    _, m, a, s, b, t = motion_start(splines, j, x, k)
    zero = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    one = (zero, zero, zero, zero, zero, zero)
    two = (zero, zero, zero, zero, zero, zero)
    for i in range(m):
        f2, f12, f22, f112, f122, f222 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        if m == 3:
            f, f1, f11, f111 = cumulative(i + 1, s)
            xi = curve_twist(splines, j, a, i)
        else:
            xi, f, f1, f11, f111 = unit_twist(i), 0.0, 0.0, 0.0, 0.0
            for r in range(4):
                p, p1, p2, p3 = basis(r, s)
                for c in range(4):
                    g, g1, g2, g3 = basis(c, t)
                    value = surface_value(splines, j, i, a, r, b, c)
                    f, f1, f2 = f + p * g * value, f1 + p1 * g * value, f2 + p * g1 * value
                    f11, f12, f22 = f11 + p2 * g * value, f12 + p1 * g1 * value, f22 + p * g2 * value
                    f111, f112 = f111 + p3 * g * value, f112 + p2 * g1 * value
                    f122, f222 = f122 + p1 * g2 * value, f222 + p * g3 * value
        step, by = exp(scale6(f, xi)), (f1, f2, f11, f12, f22)
        one = carried_axes(step, xi, by, (f1, f11, f12, f111, f112, f122), one)
        two = carried_axes(step, xi, by, (f2, f12, f22, f112, f122, f222), two)
    return one, two


def same(*args):
    """Without splines: rotation and position as they are."""
    return args[-2], args[-1]


def same_last(*args):
    """Without splines: the last argument as it is."""
    return args[-1]


@either(same, PART_OPTIONS)
def spline_motion(splines, tree, i, x, S, R, p):
    """Pose behind row i, if it is the first one of a spline joint, and the axes of the joint."""
    if tree.rows[i, KIND] == SPLINE:
        j = splines.number[i]
        Q, one, two = spline_axes(splines, j, x, tree.rows[i, IX])
        E = compose(pose(R, p), Q)
        R, p, d = rotation(E), position(E), tree.rows[i, IU]
        st6(S, d, 0, Ad(E, one))
        if splines.kind[j, SIZE] == 2:
            st6(S, d + 1, 0, Ad(E, two))
    return R, p


@kernel
def pose_of(P, i):
    """Pose of a row."""
    return pose(ld9(P, i, 0), ld3(P, i, 9))


@kernel
def corrections(splines, j, x, k, E):
    """D_11, D_12 and D_22, world axes."""
    one, two = spline_terms(splines, j, x, k)
    return Ad(E, one[1]), Ad(E, two[1]), Ad(E, two[2])


@kernel
def rate_pair(splines, j, u, d):
    """Both rates of a spline, the second of a curve zero."""
    return u[d], u[d + 1] if splines.kind[j, SIZE] == 2 else 0.0


@either(same_last, PART_OPTIONS)
def spline_bias(splines, tree, i, x, u, P, a):
    """Acceleration a of row i and, if it is the first one of a spline joint, what D adds."""
    if tree.rows[i, KIND] == SPLINE:
        j = splines.number[i]
        D11, D12, D22 = corrections(splines, j, x, tree.rows[i, IX], pose_of(P, i))
        u1, u2 = rate_pair(splines, j, u, tree.rows[i, IU])
        a = axpy6(u1 * u1, D11, axpy6(2.0 * u1 * u2, D12, axpy6(u2 * u2, D22, a)))
    return a


@optional(True)
def on_splines(splines, tree, x):
    """Whether every coordinate is within the ends of its open spline."""
    good = True
    for j in range(splines.kind.shape[0]):
        k = tree.rows[splines.kind[j, ROW], IX]
        _, s = cell(x[k], splines.kind[j, N1], splines.kind[j, CLOSED1])
        good = good and math.isfinite(s)
        if splines.kind[j, SIZE] == 2:
            _, s = cell(x[k + 1], splines.kind[j, N2], splines.kind[j, CLOSED2])
            good = good and math.isfinite(s)
    return good


# --- derivatives of inverse dynamics ---------------------------------------------------------------------------------
@sweep
def add_column(tree, S, M, m, B, d, by_y, by_w, out):
    """out[:, d] += S . (I by_w + B by_y) for all rates at, before and behind rate d; M, m, B are subtree sums."""
    for r in range(tree.rates.shape[0]):
        # the lower one of the rows of r and d, if one is behind the other
        row, e = -1, r
        while e >= 0:
            if e == d:
                row = tree.rates[r, 0]
            e = tree.rates[e, 1]
        e = tree.rates[d, 1]
        while e >= 0:
            if e == r:
                row = tree.rates[d, 0]
            e = tree.rates[e, 1]
        if row >= 0:
            push = inertia_times(ld6(M, row, 0), ld3(M, row, 6), m[row], by_w)
            for c in range(6):
                out[r, d] += S[r, c] * (push[c] + dot6(ld6(B, row, 6 * c), by_y))


@optional(None)
def spline_derivatives(splines, tree, x, u, udot, P, S, M, m, V, F, B, T, dq, du):
    """Correct the tables of ``inverse_dynamics_derivatives`` for the axes of splines; arguments as there."""
    zero = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for j in range(splines.kind.shape[0]):
        i, size = splines.kind[j, ROW], splines.kind[j, SIZE]
        last, p, k, d = i + size - 1, tree.rows[i, PARENT], tree.rows[i, IX], tree.rows[i, IU]
        E, vp, ap, v = pose_of(P, last), ld6(V, p, 0), ld6(V, p, 6), ld6(V, last, 0)
        one, two = spline_terms(splines, j, x, k)
        u1, u2 = rate_pair(splines, j, u, d)
        a1, a2 = rate_pair(splines, j, udot, d)
        w = sub6(v, vp)
        for e in range(size):
            # derivatives of both axes by coordinate e, and of the rate of this axis
            s = ld6(S, d + e, 0)
            if e == 0:
                by1, by2, own1, own2 = one[1], two[1], one[1], one[2]
                second = axpy6(u1 * u1, one[3], axpy6(u1 * u2, add6(one[4], two[3]), scale6(u2 * u2, two[4])))
            else:
                by1, by2, own1, own2 = one[2], two[2], two[1], two[2]
                second = axpy6(u1 * u1, one[4], axpy6(u1 * u2, add6(one[5], two[4]), scale6(u2 * u2, two[5])))
            turned = Ad(E, axpy6(u1, by1, scale6(u2, by2)))
            ys = ad(vp, s)
            y = add6(ys, turned)
            local = Ad(E, add6(second, axpy6(a1, by1, scale6(a2, by2))))
            change = add6(add6(ad(ap, s), ad(ys, w)), add6(ad(vp, turned), local))
            W = add6(ad(v, y), change)
            X = add6(add6(ys, ad(v, s)), add6(turned, Ad(E, axpy6(u1, own1, scale6(u2, own2)))))
            # what is missing, then the columns themselves
            add_column(tree, S, M, m, B, d + e, sub6(y, ld6(T, d + e, 0)), sub6(W, ld6(T, d + e, 6)), dq)
            add_column(tree, S, M, m, B, d + e, zero, sub6(X, ld6(T, d + e, 12)), du)
            st6(T, d + e, 0, y)
            st6(T, d + e, 6, W)
            st6(T, d + e, 12, X)
        # the axes themselves turn against the force of the subtree
        force = ld6(F, last, 0)
        dq[d, d] += dot6(Ad(E, one[1]), force)
        if size == 2:
            mixed = dot6(Ad(E, two[1]), force)
            dq[d, d + 1] += mixed
            dq[d + 1, d] += mixed
            dq[d + 1, d + 1] += dot6(Ad(E, two[2]), force)


@optional(None)
def spline_bends(splines, tree, x, P, F, out):
    """Add to out = d(S^T F)/dx, F wrenches summed over subtrees, what the axes of splines owe."""
    for j in range(splines.kind.shape[0]):
        i = splines.kind[j, ROW]
        d, force = tree.rows[i, IU], ld6(F, i, 0)
        D11, D12, D22 = corrections(splines, j, x, tree.rows[i, IX], pose_of(P, i))
        out[d, d] += dot6(D11, force)
        if splines.kind[j, SIZE] == 2:
            mixed = dot6(D12, force)
            out[d, d + 1] += mixed
            out[d + 1, d] += mixed
            out[d + 1, d + 1] += dot6(D22, force)


@optional(None)
def spline_row_change(splines, tree, x, u, P, row, body, out):
    """Add to out (nu,), the derivative of a row times the twist of a body, what the axes of splines before it owe."""
    i = body
    while i > 0:
        if tree.rows[i, KIND] == SPLINE:
            j, d = splines.number[i], tree.rows[i, IU]
            D11, D12, D22 = corrections(splines, j, x, tree.rows[i, IX], pose_of(P, i))
            u1, u2 = rate_pair(splines, j, u, d)
            out[d] += dot6(row, axpy6(u1, D11, scale6(u2, D12)))
            if splines.kind[j, SIZE] == 2:
                out[d + 1] += dot6(row, axpy6(u1, D12, scale6(u2, D22)))
        i = tree.rows[i, PARENT]


@entry
def spline_probe(splines, j, x, S, dS, ddS):
    """Axes S (2, 6) of spline j at x, dS (2, 2, 6) and ddS (2, 3, 6) by (11, 12, 22); returns its pose (12)."""
    Q, _, _ = spline_axes(splines, j, x, 0)
    one, two = spline_terms(splines, j, x, 0)
    for c in range(6):
        S[0, c], S[1, c] = one[0][c], two[0][c]
        dS[0, 0, c], dS[0, 1, c], dS[1, 0, c], dS[1, 1, c] = one[1][c], one[2][c], two[1][c], two[2][c]
        ddS[0, 0, c], ddS[0, 1, c], ddS[0, 2, c] = one[3][c], one[4][c], one[5][c]
        ddS[1, 0, c], ddS[1, 1, c], ddS[1, 2, c] = two[3][c], two[4][c], two[5][c]
    return Q
