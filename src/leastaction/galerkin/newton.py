"""Exact Newton direction of a Galerkin step in O(n): one in-place recursion (Fan et al. 2018, Algorithms B.1 and B.2).

The motion of a row varies by z = (dv^0 .. dv^s; two components of the pose variation across gravity at nodes 1..s-1),
its forces by m = D z + l. With y the variation of a row's own coordinates (k = s numbers for a screw, 3 s for a ball):

    z = z_parent + B y,   m_to_parent = m - E y,   A^T m_to_parent - EA^T z_parent + Lloc y = -r        (5)
    H = D B - E    X = D^T A - EA    Lam = A^T D B - A^T E + Lloc                                     (6)
    D_parent += D - H Lam^-1 X^T     y0 = -Lam^-1 (r + A^T l)     l_parent += l + H y0                (7)
    outward   y = y0 - Lam^-1 X^T z_parent,   z = z_parent + B y

The columns of A, B, H, X of a row stand as rows of tables (nu s, N), N = 6 (s+1) + 2 (s-1), from row iu s on, and
Lam^-1 X^T replaces X. Gravity's second variation needs only the two components across it (Fan's Algorithm 3). Screws
with s = 1 have their own, fused form in ``galerkin.screw``.

Where forces act on bodies, the state is wide: z = (dv^0 .. dv^s; eta^0 .. eta^(s-1)) with eta^0 = 0, m the momenta and
the impulses G^0 .. G^(s-1), N = 12 s + 8 with two unused entries; D has the derivatives of the forces (Fan's D1F, D2F,
see ``forces.derivatives``) and gravity's second variation.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.galerkin.residual import along3, chart_rates, combine3, size
from leastaction.galerkin.screw import eliminate_node_screw, leave_pending, settle
from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import hsum, hsum4, ld3, ld6, ldp, pack_of, st6, stp
from leastaction.spatial._source.mrp import add9, mrp_dq, mrp_jacobian_rate, mrp_w, mrp_z, scale9, spread
from leastaction.spatial._source.so3 import mrp_dexp
from leastaction.spatial._source.vector import (
    ad_dual,
    add3,
    add6,
    ang,
    cross,
    dot3,
    join,
    lin,
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
def add_own(D, q, N, o, wh, I, h, m):
    """Add w h times an inertia (I6, h3, m) to the diagonal block at o of the N x N matrix q."""
    r = o * N + o
    D[q, r] += wh * I[0]
    D[q, r + 1] += wh * I[1]
    D[q, r + 2] += wh * I[2]
    D[q, r + 4] -= wh * h[2]
    D[q, r + 5] += wh * h[1]
    r += N
    D[q, r] += wh * I[1]
    D[q, r + 1] += wh * I[3]
    D[q, r + 2] += wh * I[4]
    D[q, r + 3] += wh * h[2]
    D[q, r + 5] -= wh * h[0]
    r += N
    D[q, r] += wh * I[2]
    D[q, r + 1] += wh * I[4]
    D[q, r + 2] += wh * I[5]
    D[q, r + 3] -= wh * h[1]
    D[q, r + 4] += wh * h[0]
    r += N
    D[q, r + 1] += wh * h[2]
    D[q, r + 2] -= wh * h[1]
    D[q, r + 3] += wh * m
    r += N
    D[q, r] -= wh * h[2]
    D[q, r + 2] += wh * h[0]
    D[q, r + 4] += wh * m
    r += N
    D[q, r] += wh * h[1]
    D[q, r + 1] -= wh * h[0]
    D[q, r + 5] += wh * m


@kernel
def axis3(n, k):
    """Row k of a table of 3-vectors."""
    return (n[k, 0], n[k, 1], n[k, 2])


@kernel
def write_columns(tree, nodes, w, i, d, j, n, base):
    """Columns A, B, -E (in H) and -EA (in X) of the j-th of n coordinates of a row; n = 3 is a ball.

    Column (a, j) stands in table row base + n a + j: row a of the residual, unknown of node a + 1.
    """
    s, h = len(nodes.w) - 1, nodes.h
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for e in range(s + 1):
        o = 6 * e
        S, Sd = ld6(w.S, d + j, o), ld6(w.Sd, d + j, o)
        turned = scale6(-nodes.w[e] * h, ad_dual(S, ld6(w.mu, i, o)))
        # the test function of node 0 moves the chart of a ball with it
        zero_test = scale6(nodes.b[e, 0] / h, S)
        if n == 3:
            C = chart_rates(nodes, w, e, d)
            column = (C[0], C[3], C[6]) if j == 0 else (C[1], C[4], C[7]) if j == 1 else (C[2], C[5], C[8])
            zero_test = combine3(w.S, d, o, column)
        for a in range(s):
            q = base + n * a + j
            test = zero_test if a == 0 else scale6(nodes.b[e, a] / h, S)
            move = scale6(nodes.b[e, a + 1] / h, S)
            st6(w.A, q, o, add6(test, Sd) if a == e else test)
            st6(w.B, q, o, add6(move, Sd) if a + 1 == e else move)
            st6(w.X, q, o, turned if a == e else none)
            st6(w.H, q, o, turned if a + 1 == e else none)
    if len(nodes.wide) > 0:
        columns_with_forces(tree, nodes, w, i, d, j, n, base)
        return
    # gravity at inner nodes: two components across it
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for e in range(1, s):
        at = 6 * (s + 1) + 2 * (e - 1)
        S = ld6(w.S, d + j, 6 * e)
        pull = cross(g, sub3(scale3(w.mass[i], lin(S)), cross(ld3(w.c, i, 3 * e), ang(S))))
        for k in range(2):
            n0 = axis3(nodes.across, k)
            turn = dot3(n0, ang(S))
            sg = -nodes.w[e] * h * dot3(n0, pull)
            for a in range(s):
                q = base + n * a + j
                w.A[q, at + k] = turn if a == e else 0.0
                w.B[q, at + k] = turn if a + 1 == e else 0.0
                w.X[q, at + k] = sg if a == e else 0.0
                w.H[q, at + k] = sg if a + 1 == e else 0.0


@sweep
def columns_with_forces(tree, nodes, w, i, d, j, n, base):
    """The entries of impulses and pose variations, nodes 0..s-1, of the wide state."""
    s = len(nodes.w) - 1
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for e in range(s):
        at, wh = 6 * (s + 1) + 6 * e, nodes.w[e] * nodes.h
        S = ld6(w.S, d + j, 6 * e)
        # everything that pulls at the subtree
        G = scale6(wh, join(cross(ld3(w.c, i, 3 * e), g), scale3(w.mass[i], g)))
        if w.G.shape[0] > 0:
            G = add6(G, ld6(w.G, i, 6 * e))
        turned = scale6(-1.0, ad_dual(S, G))
        for a in range(s):
            q = base + n * a + j
            st6(w.A, q, at, S if a == e else none)
            st6(w.B, q, at, S if a + 1 == e else none)
            st6(w.X, q, at, none)
            st6(w.H, q, at, turned if a + 1 == e else none)


@sweep
def own_with_forces(tree, nodes, w, D, i, q, N):
    """Derivatives of gravity and of the forces on one body, in its block of D."""
    s, m = len(nodes.w) - 1, tree.const[i, MASS]
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for a in range(s):
        at = 6 * (s + 1) + 6 * a
        for r in range(6):
            for c in range(6):
                D[q, (at + r) * N + 6 * a + c] += w.KC[i, 36 * (s + a) + 6 * r + c]
                if a > 0:
                    D[q, (at + r) * N + at + c] += w.KC[i, 36 * a + 6 * r + c]
        if a > 0 and m > 0.0:
            # w h M ad((0; g)): a turn theta changes gravity, seen from the body, by g x theta
            wh, h1 = nodes.w[a] * nodes.h, ld3(w.M, i, 9 * a + 6)
            for c in range(3):
                x = cross(g, (1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0))
                turn = cross(h1, x)
                for r in range(3):
                    D[q, (at + r) * N + at + c] += wh * turn[r]
                    D[q, (at + 3 + r) * N + at + c] += wh * m * x[r]


@kernel
def local_screw(tree, nodes, w, d, K, Dm):
    """Lloc (s, s) of a screw in w.lam: joint spring and damper impulses K, Dm (nu, s+1), rotor inertia."""
    s, h = len(nodes.w) - 1, nodes.h
    for a in range(s):
        for e in range(1, s + 1):
            x = Dm[d, a] * nodes.b[a, e] / h
            if a == e:
                x += K[d, a]
            for c in range(s + 1):
                x += tree.armature[d] * nodes.w[c] * nodes.b[c, a] * nodes.b[c, e] / h
            w.lam[a, e - 1] = x


@kernel
def put9(L, r, c, M):
    """Add nine numbers as a 3x3 block."""
    for i in range(3):
        for j in range(3):
            L[r + i, c + j] += M[3 * i + j]


@sweep
def local_ball(tree, nodes, w, i, d, K, Dm):
    """Lloc (3s, 3s) of a ball in w.lam, eq. (8); K, Dm (nu, 3 (s+1)) hold 3x3 impulse derivatives in parent axes."""
    s, h = len(nodes.w) - 1, nodes.h
    par = tree.rows[i, PARENT]
    rotor = tree.armature[d]
    for a in range(3 * s):
        for c in range(3 * s):
            w.lam[a, c] = 0.0
    for c in range(s + 1):
        # everything of node c
        o, wh = 6 * c, nodes.w[c] * h
        z, u, mu = vec3(w.xi, d, c), vec3(w.xid, d, c), ld6(w.mu, i, o)
        J, Jd = mrp_dexp(z), mrp_jacobian_rate(z, u)
        m = add3(along3(w.Q, d, o, mu), scale3(rotor, matvec(J, u)))
        W = mrp_w(z, m)
        Cc = chart_rates(nodes, w, c, d)
        tD = node_block(Dm, d, c)
        pulled = tmatvec(J, m)
        # rows a at node c through the rates, W by xid^c
        for e in range(1, s + 1):
            bc = nodes.b[c, e]
            if c < s:
                rate = add9(scale9(nodes.w[c] * bc, W), scale9(bc / h, matmul(transpose(J), matmul(tD, J))))
                if c == e:
                    rate = add9(rate, matmul(transpose(J), matmul(tD, Jd)))
                put9(w.lam, 3 * c, 3 * (e - 1), rate)
            # the chart's centre: row 0
            dq = scale9(bc / h, mrp_dq(sub3(z, vec3(w.xi, d, e)), pulled))
            if c == e:
                dq = add9(dq, mrp_dq(u, pulled))
            put9(w.lam, 0, 3 * (e - 1), scale9(wh, dq))
            # rotor: variation of its spin, d omega = J du + Jd dz + (J dz) x omega
            if rotor > 0.0:
                spin = scale9(bc / h, J)
                if c == e:
                    back = scale3(-1.0, matvec(J, u))
                    spin = add9(spin, add9(Jd, matmul(spread(0.0, back), J)))
                for a in range(s):
                    test = matmul(J, Cc) if a == 0 else scale9(nodes.b[c, a] / h, J)
                    if a == c:
                        test = add9(test, Jd)
                    put9(w.lam, 3 * a, 3 * (e - 1), scale9(wh * rotor, matmul(transpose(test), spin)))
        # column c (unknown c >= 1) of every row through W at node c
        if c > 0:
            for a in range(s):
                test = scale9(wh, matmul(transpose(Cc), W)) if a == 0 else scale9(nodes.w[c] * nodes.b[c, a], W)
                put9(w.lam, 3 * a, 3 * (c - 1), test)
        # the diagonal
        if c > 0 and c < s:
            push = add3(vec3(w.pull, d, c), vec3(w.tau, d, c))
            if w.G.shape[0] > 0:
                push = add3(push, along3(w.Q, d, o, ld6(w.G, i, o)))
            carried = along3(w.Q, d, o, ad_dual(ld6(w.V, par, o), mu))
            x = scale9(wh, add9(mrp_w(z, carried), mrp_z(z, u, m)))
            x = add9(x, mrp_w(z, push))
            x = add9(x, matmul(transpose(J), matmul(node_block(K, d, c), J)))
            put9(w.lam, 3 * c, 3 * (c - 1), x)


@kernel
def node_block(K, d, c):
    """3x3 block of node c in rows d..d+2 of a table (nu, 3 (s+1))."""
    o = 3 * c
    return (
        K[d, o], K[d, o + 1], K[d, o + 2],
        K[d + 1, o], K[d + 1, o + 1], K[d + 1, o + 2],
        K[d + 2, o], K[d + 2, o + 1], K[d + 2, o + 2],
    )  # fmt: skip


@kernel
def dot_rows(N, A, a, B, b):
    """Scalar product of row a of A and row b of B, N entries."""
    t = ldp(A, a, 0) * ldp(B, b, 0)
    for k in range(4, N, 4):
        t = t + ldp(A, a, k) * ldp(B, b, k)
    return hsum(t)


@kernel
def dot_block(N, D, q, r, B, c):
    """Products of row r of the N x N matrix q with row c of B, not yet summed."""
    t = ldp(D, q, r * N) * ldp(B, c, 0)
    for k in range(4, N, 4):
        t = t + ldp(D, q, r * N + k) * ldp(B, c, k)
    return t


@kernel
def add_products(N, D, q, A, B, X, H, c):
    """H += D B and X += D^T A for column c."""
    for r in range(0, N, 4):
        t = hsum4(
            dot_block(N, D, q, r, B, c),
            dot_block(N, D, q, r + 1, B, c),
            dot_block(N, D, q, r + 2, B, c),
            dot_block(N, D, q, r + 3, B, c),
        )
        stp(H, c, r, ldp(H, c, r) + t)
    for k in range(0, N, 4):
        t = ldp(X, c, k)
        for r in range(N):
            t = t + A[c, r] * ldp(D, q, r * N + k)
        stp(X, c, k, t)


@sweep
def solve_small(L, k, base, X, inv, y, N):
    """Gauss-Jordan with pivoting of the k x k matrix L on rows base.. of X (N columns) and y, in place; inv = L^-1."""
    for r in range(k):
        for e in range(k):
            inv[base + r, e] = 1.0 if r == e else 0.0
    for c in range(k):
        # pivot
        best, at = abs(L[c, c]), c
        for r in range(c + 1, k):
            if abs(L[r, c]) > best:
                best, at = abs(L[r, c]), r
        if at != c:
            for e in range(k):
                L[c, e], L[at, e] = L[at, e], L[c, e]
                inv[base + c, e], inv[base + at, e] = inv[base + at, e], inv[base + c, e]
            for e in range(N):
                X[base + c, e], X[base + at, e] = X[base + at, e], X[base + c, e]
            y[base + c], y[base + at] = y[base + at], y[base + c]
        # scale the pivot row, clear its column in the others
        f = 1.0 / L[c, c]
        for e in range(c + 1, k):
            L[c, e] *= f
        for e in range(0, N, 4):
            stp(X, base + c, e, f * ldp(X, base + c, e))
        y[base + c] *= f
        for e in range(k):
            inv[base + c, e] *= f
        for r in range(k):
            t = L[r, c]
            if r != c and t != 0.0:
                for e in range(c + 1, k):
                    L[r, e] -= t * L[c, e]
                for e in range(0, N, 4):
                    stp(X, base + r, e, ldp(X, base + r, e) - t * ldp(X, base + c, e))
                for e in range(k):
                    inv[base + r, e] -= t * inv[base + c, e]
                y[base + r] -= t * y[base + c]


@kernel
def hand_over(N, D, l, q, to, fresh, H, X, y, base, k):
    """Eq. (7): D - H X^T and l + H y into the parent's buffer, replacing it (fresh) or added to it."""
    for e in range(0, N, 4):
        t = ldp(l, q, e)
        for c in range(base, base + k):
            t = t + y[c] * ldp(H, c, e)
        stp(l, to, e, t if fresh else t + ldp(l, to, e))
    for r in range(N):
        for e in range(0, N, 4):
            t = ldp(D, q, r * N + e)
            for c in range(base, base + k):
                t = t - H[c, r] * ldp(X, c, e)
            stp(D, to, r * N + e, t if fresh else t + ldp(D, to, r * N + e))


@kernel
def eliminate_nodes(N, s, n, D, l, q, w, d, base):
    """Eq. (6) of one row with n s columns: H, X = Lam^-1 X^T, y."""
    k = n * s
    for c in range(base, base + k):
        add_products(N, D, q, w.A, w.B, w.X, w.H, c)
    for a in range(k):
        w.y[base + a] = -(w.r[d + a % n, a // n] + dot_rows(N, w.A, base + a, l, q))
        for c in range(k):
            w.lam[a, c] += dot_rows(N, w.A, base + a, w.H, base + c)
    if k == 1:
        f = 1.0 / w.lam[0, 0]
        for e in range(0, N, 4):
            stp(w.X, base, e, f * ldp(w.X, base, e))
        w.y[base] *= f
        w.inv[base, 0] = f
    else:
        solve_small(w.lam, k, base, w.X, w.inv, w.y, N)


@sweep
def eliminate_node_ball(tree, nodes, w, i, d, q, K, Dm):
    """Columns, local matrix and elimination of a ball."""
    s = len(nodes.w) - 1
    local_ball(tree, nodes, w, i, d, K, Dm)
    for j in range(3):
        write_columns(tree, nodes, w, i, d, j, 3, d * s)
    eliminate_nodes(size(s, nodes.wide), s, 3, w.D, w.l, q, w, d, d * s)


@kernel
def direction(tree, nodes, w, K, Dm):
    """y (nu s,) = -J^-1 r, laid out like the columns; w must hold a residual."""
    s, h = len(nodes.w) - 1, nodes.h
    N, D, l = size(s, nodes.wide), w.D, w.l
    fused = s == 1 and len(nodes.wide) == 0
    zero = pack_of(0.0, 0.0, 0.0, 0.0)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, d, q, m = tree.rows[i, PARENT], tree.rows[i, IU], w.slot[i, 0], tree.const[i, MASS]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        base = d * s
        # the buffer: that of a child, or a new one
        if w.slot[i, 1] & 1:
            for k in range(0, N * N, 4):
                stp(D, q, k, zero)
            for k in range(0, N, 4):
                stp(l, q, k, zero)
            w.pending[q] = -1
        fresh = (w.slot[i, 1] & 2) != 0
        if fused and n == 1:
            eliminate_node_screw(nodes, w, i, d, m, tree.armature[d], K, Dm)
            w.pending[q] = -1
            if par > 0 and fresh:
                leave_pending(w, q, d)
            elif par > 0:
                hand_over(N, D, l, q, w.slot[par, 0], False, w.H, w.X, w.y, base, 1)
            continue
        if fused:
            settle(w, q)
        if m > 0.0:
            for a in range(s + 1):
                add_own(D, q, N, 6 * a, nodes.w[a] * h, ld6(w.M, i, 9 * a), ld3(w.M, i, 9 * a + 6), m)
        if len(nodes.wide) > 0:
            own_with_forces(tree, nodes, w, D, i, q, N)
        if n == 3:
            eliminate_node_ball(tree, nodes, w, i, d, q, K, Dm)
        else:
            local_screw(tree, nodes, w, d, K, Dm)
            write_columns(tree, nodes, w, i, d, 0, 1, base)
            eliminate_nodes(N, s, 1, D, l, q, w, d, base)
        if par > 0:
            hand_over(N, D, l, q, w.slot[par, 0], fresh, w.H, w.X, w.y, base, n * s)
    solve_outward(tree, s, N, w, w.y)


@kernel
def solve_outward(tree, s, N, w, y):
    """Back-substitution from the roots: y in place, and w.z."""
    for e in range(N):
        w.z[0, e] = 0.0
    for i in range(1, tree.rows.shape[0]):
        par, d = tree.rows[i, PARENT], tree.rows[i, IU]
        base = d * s
        k = 3 * s if tree.rows[i, KIND] == BALL else s
        for e in range(0, N, 4):
            stp(w.z, i, e, ldp(w.z, par, e))
        for c in range(base, base + k):
            t = y[c] - dot_rows(N, w.X, c, w.z, par)
            y[c] = t
            for e in range(0, N, 4):
                stp(w.z, i, e, ldp(w.z, i, e) + t * ldp(w.B, c, e))


@sweep
def again(tree, nodes, w, R, l, y):
    """y = -J^-1 R for a further right-hand side R (nu, s), with the factors that ``direction`` left; w.z goes with it.

    l (n+1, N) is scratch. O(n).
    """
    s = len(nodes.w) - 1
    again_sized(size(s, nodes.wide), s, tree, w, R, l, y)


@kernel
def again_sized(N, s, tree, w, R, l, y):
    """``again`` for a state of N numbers."""
    zero = pack_of(0.0, 0.0, 0.0, 0.0)
    for i in range(tree.rows.shape[0]):
        for e in range(0, N, 4):
            stp(l, i, e, zero)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, d = tree.rows[i, PARENT], tree.rows[i, IU]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        k, base = n * s, d * s
        for a in range(k):
            y[base + a] = 0.0
        for a in range(k):
            t = R[d + a % n, a // n] + dot_rows(N, w.A, base + a, l, i)
            for c in range(k):
                y[base + c] -= w.inv[base + c, a] * t
        for e in range(0, N, 4):
            t = ldp(l, i, e)
            for c in range(base, base + k):
                t = t + y[c] * ldp(w.H, c, e)
            stp(l, par, e, ldp(l, par, e) + t)
    solve_outward(tree, s, N, w, y)
