"""The Newton recursion of ``galerkin.newton`` for a screw and s = 1: one pass over the 12 x 12 matrix, in registers.

A step of second order spends most of its time here. Rows of D are loaded once as three packs: the update that the
child left pending is taken off, the own inertia is added, the row is stored, and both products, H = D B and X = D^T A,
are accumulated, so that nothing goes through memory as scalars and comes back as packs.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel
from leastaction.jit.lanes import hsum, hsum4, ld3, ld6, ldp, pack_of, stp
from leastaction.spatial._source.vector import ad_dual, axpy6, scale6


@kernel
def row12(D, q, r, hp, xp, o0, o1, o2, a, b, x):
    """One row: store D - h x^T + own, return the accumulated X and the products with B."""
    k = 12 * r
    r0 = ldp(D, q, k) - hp * xp[0] + o0
    r1 = ldp(D, q, k + 4) - hp * xp[1] + o1
    r2 = ldp(D, q, k + 8) - hp * xp[2] + o2
    stp(D, q, k, r0)
    stp(D, q, k + 4, r1)
    stp(D, q, k + 8, r2)
    return (x[0] + a * r0, x[1] + a * r1, x[2] + a * r2), r0 * b[0] + r1 * b[1] + r2 * b[2]


@kernel
def packs12(u, v):
    """Two 6-tuples as three packs."""
    return (
        pack_of(u[0], u[1], u[2], u[3]),
        pack_of(u[4], u[5], v[0], v[1]),
        pack_of(v[2], v[3], v[4], v[5]),
    )


@kernel
def eliminate_node_screw(nodes, w, i, d, m, rotor, K, Dm):
    """Columns, products and pivot of one screw; D is left with its own inertia, and H, X, B, y are in the tables."""
    h, q, D = nodes.h, w.slot[i, 0], w.D
    w0, w1 = nodes.w[0] * h, nodes.w[1] * h
    S0, S1, Sd0, Sd1 = ld6(w.S, d, 0), ld6(w.S, d, 6), ld6(w.Sd, d, 0), ld6(w.Sd, d, 6)
    # columns: A of row 0, B of the unknown at node 1
    a0, a1 = axpy6(nodes.b[0, 0] / h, S0, Sd0), scale6(nodes.b[1, 0] / h, S1)
    b0, b1 = scale6(nodes.b[0, 1] / h, S0), axpy6(nodes.b[1, 1] / h, S1, Sd1)
    e0, e1 = scale6(-w0, ad_dual(S0, ld6(w.mu, i, 0))), scale6(-w1, ad_dual(S1, ld6(w.mu, i, 6)))
    z = 0.0
    none = (z, z, z, z, z, z)
    b, x = packs12(b0, b1), packs12(e0, none)
    # the update that the child left, if any
    c = w.pending[q]
    t = 0.0 if c < 0 else 1.0
    c = max(c, 0)
    xp = (ldp(w.X, c, 0), ldp(w.X, c, 4), ldp(w.X, c, 8))
    # own inertia, w h M at both nodes
    I, g, J, k, n0, n1 = none, (z, z, z), none, (z, z, z), z, z
    if m > 0.0:
        I, J = scale6(w0, ld6(w.M, i, 0)), scale6(w1, ld6(w.M, i, 9))
        f, e = ld3(w.M, i, 6), ld3(w.M, i, 15)
        g, k = (w0 * f[0], w0 * f[1], w0 * f[2]), (w1 * e[0], w1 * e[1], w1 * e[2])
        n0, n1 = w0 * m, w1 * m
    o = pack_of(z, z, z, z)
    H, P = w.H, pack_of
    x, p0 = row12(D, q, 0, t * H[c, 0], xp, P(I[0], I[1], I[2], z), P(-g[2], g[1], z, z), o, a0[0], b, x)
    x, p1 = row12(D, q, 1, t * H[c, 1], xp, P(I[1], I[3], I[4], g[2]), P(z, -g[0], z, z), o, a0[1], b, x)
    x, p2 = row12(D, q, 2, t * H[c, 2], xp, P(I[2], I[4], I[5], -g[1]), P(g[0], z, z, z), o, a0[2], b, x)
    x, p3 = row12(D, q, 3, t * H[c, 3], xp, P(z, g[2], -g[1], n0), o, o, a0[3], b, x)
    h0 = hsum4(p0, p1, p2, p3)
    x, p0 = row12(D, q, 4, t * H[c, 4], xp, P(-g[2], z, g[0], z), P(n0, z, z, z), o, a0[4], b, x)
    x, p1 = row12(D, q, 5, t * H[c, 5], xp, P(g[1], -g[0], z, z), P(z, n0, z, z), o, a0[5], b, x)
    x, p2 = row12(D, q, 6, t * H[c, 6], xp, o, P(z, z, J[0], J[1]), P(J[2], z, -k[2], k[1]), a1[0], b, x)
    x, p3 = row12(D, q, 7, t * H[c, 7], xp, o, P(z, z, J[1], J[3]), P(J[4], k[2], z, -k[0]), a1[1], b, x)
    h1 = hsum4(p0, p1, p2, p3)
    x, p0 = row12(D, q, 8, t * H[c, 8], xp, o, P(z, z, J[2], J[4]), P(J[5], -k[1], k[0], z), a1[2], b, x)
    x, p1 = row12(D, q, 9, t * H[c, 9], xp, o, P(z, z, z, k[2]), P(-k[1], n1, z, z), a1[3], b, x)
    x, p2 = row12(D, q, 10, t * H[c, 10], xp, o, P(z, z, -k[2], z), P(k[0], z, n1, z), a1[4], b, x)
    x, p3 = row12(D, q, 11, t * H[c, 11], xp, o, P(z, z, k[1], -k[0]), P(z, z, z, n1), a1[5], b, x)
    h2 = hsum4(p0, p1, p2, p3)
    # H = D B - E, then the pivot
    E, A = packs12(none, e1), packs12(a0, a1)
    h0, h1, h2 = h0 + E[0], h1 + E[1], h2 + E[2]
    own = Dm[d, 0] * nodes.b[0, 1] / h
    own += rotor * (nodes.w[0] * nodes.b[0, 0] * nodes.b[0, 1] + nodes.w[1] * nodes.b[1, 0] * nodes.b[1, 1]) / h
    v = 1.0 / (hsum(A[0] * h0 + A[1] * h1 + A[2] * h2) + own)
    y = -v * (w.r[d, 0] + hsum(A[0] * ldp(w.l, q, 0) + A[1] * ldp(w.l, q, 4) + A[2] * ldp(w.l, q, 8)))
    w.y[d] = y
    w.inv[d, 0] = v
    stp(w.X, d, 0, v * x[0])
    stp(w.X, d, 4, v * x[1])
    stp(w.X, d, 8, v * x[2])
    stp(w.H, d, 0, h0)
    stp(w.H, d, 4, h1)
    stp(w.H, d, 8, h2)
    for e in range(3):
        stp(w.B, d, 4 * e, b[e])
        stp(w.A, d, 4 * e, A[e])


@kernel
def leave_pending(w, q, d):
    """Hand the buffer over with the rank-one update of rate d still to be taken off; l is brought up to date."""
    y = w.y[d]
    for e in range(0, 12, 4):
        stp(w.l, q, e, ldp(w.l, q, e) + y * ldp(w.H, d, e))
    w.pending[q] = d


@kernel
def settle(w, q):
    """Take a pending update off the whole matrix."""
    c = w.pending[q]
    if c >= 0:
        for r in range(12):
            for e in range(0, 12, 4):
                stp(w.D, q, 12 * r + e, ldp(w.D, q, 12 * r + e) - w.H[c, r] * ldp(w.X, c, e))
        w.pending[q] = -1
