"""Exact Newton direction of a Galerkin step with a quadrature of its own, O(n).

The recursion is that of ``galerkin.newton``, eq. (5) to (7), with the wide state in all cases: z = (dv_0 .. dv_(s-1);
eta_0 .. eta_(s-1)) at the points, N = 12 s. A unit of the unknown of node g moves everything behind a joint by

    eta_j = l_jg S_j       dv_j = l_jg Sd_j + b_jg / h S_j                                            (12)

and so does a test, but that of node 0 of a ball, which has eta_j = S_j T_j and dv_j = Sd_j T_j + S_j C_j. What belongs
to one ball alone is eq. (8) for tests and unknowns with values at every point: with J, W, Z, dQ of ``mrp``, tests
(V, R) = (l_ja 1, b_ja / h 1) or (T_j, C_j), and x = l_jg, y = b_jg / h,

    Lloc = sum_j V^T { w h [ y W + x (W(carried) + Z) ] + x W(push) + x J^T K J + J^T D (y J + x Jd) } + w h x R^T W
         + [a = 0] sum_j { w h [ y dQ(z_j - xi^g, J^T m) + x dQ(u_j, J^T m) ] + x dQ(z_j - xi^g, g_j) }          (13)
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.galerkin.gauss import ball_push, ball_terms, chart_motion, column9, nodes_of
from leastaction.galerkin.newton import (
    add_own,
    again,
    again_sized,
    direction,
    eliminate_nodes,
    hand_over,
    node_block,
    put9,
    solve_outward,
)
from leastaction.galerkin.residual import along3, combine3
from leastaction.jit.decorators import PART_OPTIONS, either, kernel, sweep
from leastaction.jit.lanes import ld3, ld6, pack_of, st6, stp
from leastaction.spatial._source.mrp import add9, mrp_dq, mrp_jacobian_rate, mrp_w, mrp_z, scale9, spread
from leastaction.spatial._source.so3 import mrp_dexp
from leastaction.spatial._source.vector import (
    ad_dual,
    add3,
    add6,
    cross,
    join,
    matmul,
    matvec,
    scale3,
    scale6,
    sub3,
    tmatvec,
    transpose,
)
from leastaction.tree.arrays import vec3
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT


@kernel
def pulled_on(tree, nq, w, i, j):
    """Everything that pulls at a subtree at point j, an impulse."""
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    G = scale6(nq.w[j] * nq.h, join(cross(ld3(w.c, i, 3 * j), g), scale3(w.mass[i], g)))
    return add6(G, ld6(w.G, i, 6 * j)) if w.G.shape[0] > 0 else G


@sweep
def write_gauss_columns(tree, points, nq, w, wq, i, d, n):
    """Columns A, B, -E (in H) and -EA (in X) of a row with n coordinates, eq. (12); laid out as those of the nodes."""
    s, h, none = len(points.w), nq.h, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for j in range(s):
        o, at, wh = 6 * j, 6 * s + 6 * j, nq.w[j] * nq.h
        mu, G = ld6(w.mu, i, o), pulled_on(tree, nq, w, i, j)
        one = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
        T, C = chart_motion(points, nq, w, wq, j, d) if n == 3 else (one, one)
        for k in range(n):
            S, Sd = ld6(w.S, d + k, o), ld6(w.Sd, d + k, o)
            for a in range(s):
                q = d * s + n * a + k
                # test a
                eta, turn = scale6(points.l[j, a], S), scale6(points.b[j, a] / h, S)
                rate = add6(turn, scale6(points.l[j, a], Sd))
                if n == 3 and a == 0:
                    value, change = column9(T, k), column9(C, k)
                    eta = combine3(w.S, d, o, value)
                    rate = add6(combine3(w.Sd, d, o, value), combine3(w.S, d, o, change))
                st6(w.A, q, o, rate)
                st6(w.A, q, at, eta)
                st6(w.X, q, o, scale6(-wh, ad_dual(eta, mu)))
                st6(w.X, q, at, none)
                # unknown a + 1
                eta = scale6(points.l[j, a + 1], S)
                st6(w.B, q, o, add6(scale6(points.b[j, a + 1] / h, S), scale6(points.l[j, a + 1], Sd)))
                st6(w.B, q, at, eta)
                st6(w.H, q, o, scale6(-wh, ad_dual(eta, mu)))
                st6(w.H, q, at, scale6(-1.0, ad_dual(eta, G)))


@sweep
def own_points(tree, nq, w, i, q, N):
    """Inertia, gravity and forces of one body in its block of D."""
    s, D, m = len(nq.w), w.D, tree.const[i, MASS]
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for j in range(s):
        at, wh = 6 * s + 6 * j, nq.w[j] * nq.h
        if m > 0.0:
            h1 = ld3(w.M, i, 9 * j + 6)
            add_own(D, q, N, 6 * j, wh, ld6(w.M, i, 9 * j), h1, m)
            # a turn theta changes gravity, seen from the body, by g x theta
            for c in range(3):
                x = cross(g, (1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0))
                turn = cross(h1, x)
                for r in range(3):
                    D[q, (at + r) * N + at + c] += wh * turn[r]
                    D[q, (at + 3 + r) * N + at + c] += wh * m * x[r]
        if w.KC.shape[0] > 0:
            for r in range(6):
                for c in range(6):
                    D[q, (at + r) * N + at + c] += w.KC[i, 36 * j + 6 * r + c]
                    D[q, (at + r) * N + 6 * j + c] += w.KC[i, 36 * (s + j) + 6 * r + c]


@sweep
def local_points_screw(tree, points, nq, w, d, K, Dm):
    """Lloc (s, s) of a screw in w.lam."""
    s, h = len(points.w), nq.h
    for a in range(s):
        for g in range(s):
            x = 0.0
            for j in range(s):
                value, rate = points.l[j, g + 1], points.b[j, g + 1] / h
                x += points.l[j, a] * (K[d, j] * value + Dm[d, j] * rate)
                x += tree.armature[d] * nq.w[j] * points.b[j, a] * rate
            w.lam[a, g] = x


@sweep
def local_points_ball(tree, points, nq, w, wq, i, d, K, Dm):
    """Lloc (3s, 3s) of a ball in w.lam, eq. (13)."""
    s, h, rotor, par = len(points.w), nq.h, tree.armature[d], tree.rows[i, PARENT]
    none = (0.0, 0.0, 0.0)
    for a in range(3 * s):
        for c in range(3 * s):
            w.lam[a, c] = 0.0
    for j in range(s):
        # everything of point j
        o, wh = 6 * j, nq.w[j] * h
        z, u, mu = vec3(wq.xi, d, j), vec3(wq.xid, d, j), ld6(w.mu, i, o)
        J, Jd, tD = mrp_dexp(z), mrp_jacobian_rate(z, u), node_block(Dm, d, j)
        back, omega = transpose(J), matvec(J, u)
        m = add3(along3(w.Q, d, o, mu), scale3(rotor, omega))
        W, lifted = mrp_w(z, m), tmatvec(J, m)
        T, C = chart_motion(points, nq, w, wq, j, d)
        _, g = ball_terms(tree, nq, wq, i, d, j)
        carried = along3(w.Q, d, o, ad_dual(ld6(w.V, par, o), mu))
        # by the value and by the rate of an unknown
        by_value = scale9(wh, add9(mrp_w(z, carried), mrp_z(z, u, m)))
        by_value = add9(by_value, mrp_w(z, ball_push(wq, i, d, j)))
        by_value = add9(by_value, matmul(back, add9(matmul(node_block(K, d, j), J), matmul(tD, Jd))))
        by_rate = add9(scale9(wh, W), matmul(back, matmul(tD, J)))
        turned = add9(Jd, matmul(spread(0.0, scale3(-1.0, omega)), J))
        for e in range(s):
            x, y = points.l[j, e + 1], points.b[j, e + 1] / h
            inner = add9(scale9(x, by_value), scale9(y, by_rate))
            spin = scale9(wh * rotor, add9(scale9(y, J), scale9(x, turned)))
            for a in range(s):
                V, R = spread(points.l[j, a], none), spread(points.b[j, a] / h, none)
                if a == 0:
                    V, R = T, C
                block = add9(matmul(transpose(V), inner), scale9(wh * x, matmul(transpose(R), W)))
                if rotor > 0.0:
                    block = add9(block, matmul(transpose(add9(matmul(J, R), matmul(Jd, V))), spin))
                put9(w.lam, 3 * a, 3 * e, block)
            # the chart's centre: row 0
            apart = sub3(z, vec3(w.xi, d, e + 1))
            centre = add9(scale9(y, mrp_dq(apart, lifted)), scale9(x, mrp_dq(u, lifted)))
            put9(w.lam, 0, 3 * e, add9(scale9(wh, centre), scale9(x, mrp_dq(apart, g))))


@sweep
def direction_points(points, tree, nodes, w, wq, K, Dm):
    """y (nu s,) = -J^-1 r, laid out like the columns; w must hold a residual."""
    nq = nodes_of(points, nodes)
    s, D, l = len(points.w), w.D, w.l
    N = 12 * s
    zero = pack_of(0.0, 0.0, 0.0, 0.0)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, d, q = tree.rows[i, PARENT], tree.rows[i, IU], w.slot[i, 0]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        # the buffer: that of a child, or a new one
        if w.slot[i, 1] & 1:
            for k in range(0, N * N, 4):
                stp(D, q, k, zero)
            for k in range(0, N, 4):
                stp(l, q, k, zero)
        own_points(tree, nq, w, i, q, N)
        write_gauss_columns(tree, points, nq, w, wq, i, d, n)
        if n == 3:
            local_points_ball(tree, points, nq, w, wq, i, d, K, Dm)
            eliminate_nodes(N, s, 3, D, l, q, w, d, d * s)
        else:
            local_points_screw(tree, points, nq, w, d, K, Dm)
            eliminate_nodes(N, s, 1, D, l, q, w, d, d * s)
        if par > 0:
            fresh = (w.slot[i, 1] & 2) != 0
            hand_over(N, D, l, q, w.slot[par, 0], fresh, w.H, w.X, w.y, d * s, n * s)
    solve_outward(tree, s, N, w, w.y)


def _direction_nodes(points, tree, nodes, w, wq, K, Dm):
    direction(tree, nodes, w, K, Dm)


@either(_direction_nodes, PART_OPTIONS)
def exact_direction(points, tree, nodes, w, wq, K, Dm):
    """w.y = -J^-1 r in O(n), whatever the quadrature."""
    direction_points(points, tree, nodes, w, wq, K, Dm)


@sweep
def again_points(points, tree, w, R, l, y):
    """y = -J^-1 R with the factors that ``direction_points`` left."""
    again_sized(12 * len(points.w), len(points.w), tree, w, R, l, y)


def _again_nodes(points, tree, nodes, w, R, l, y):
    again(tree, nodes, w, R, l, y)


@either(_again_nodes)
def exact_again(points, tree, nodes, w, R, l, y):
    """y = -J^-1 R for a further right-hand side, whatever the quadrature."""
    again_points(points, tree, w, R, l, y)
