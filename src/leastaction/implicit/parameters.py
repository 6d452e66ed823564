"""Derivatives of z . r by parameters of the bodies and of the tree, summed over stages of implicit steps. O(n) a stage.

With Z_b the twist that rates z would give to body b, and forces f_b = I a - ad(v)^T I v linear in the inertia of b,

    z . r  =  sum_b Z_b . f_b + ...  =  sum_b Z_b . I_b a_b - (ad(v_b) Z_b) . I_b v_b + ...             (13)

The parameters of a row are mass m, first moment h and second moment I about its origin, along its axes. Moving the
frame of row j by e moves all that is behind it by S = (0; e), as a joint before j would (``tree/derivatives.py``), so

    d(z . r) = W . sum_b I_b Z_b + Y . sum_b B_b^T Z_b - Z_p . ad(S)^T F_j                              (14)
    B^T Z = -I ad(v) Z - ad(v)^T I Z + ad(Z)^T I v        Y = ad(v_p) S        W = ad(a_p) S + ad(v_p) Y

with sums over the bodies behind j, p the row before j, and the same for the laws of forces: -(K^T Z) . S - (D^T Z) . Y.

Moving what row i carries, its own bodies and all behind, by e along its own axes is the same with p = i.

    out   (n+1, 16)  by m, h (3), I (xx xy xz yy yz zz; off-diagonal ones count twice), e along the axes of row p (3),
                     and e of what the row carries along its own axes (3)
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.forces.bodies import body_forces, link_frame
from leastaction.forces.columns import force_law, make_columns
from leastaction.jit.decorators import entry, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st6
from leastaction.spatial._source.vector import (
    ad,
    ad_dual,
    add3,
    add6,
    ang,
    cross,
    dot3,
    dot6,
    inertia_times,
    join,
    lin,
    matvec,
    scale6,
    sub6,
    tmatvec,
)
from leastaction.tree.kinematics import inward, outward, velocities
from leastaction.tree.layout import MASS, PARENT


@kernel
def local(R, p, s):
    """A twist about the origin of the kernels, seen from the frame (R, p)."""
    return join(tmatvec(R, ang(s)), tmatvec(R, add3(lin(s), cross(ang(s), p))))


@kernel
def add_moments(out, i, s, Y, X):
    """Add s times the derivatives of Y . I X by mass, first and second moment."""
    yw, yv, xw, xv = ang(Y), lin(Y), ang(X), lin(X)
    out[i, 0] += s * dot3(yv, xv)
    a, b = cross(xv, yw), cross(xw, yv)
    for e in range(3):
        out[i, 1 + e] += s * (a[e] - b[e])
    out[i, 4] += s * yw[0] * xw[0]
    out[i, 5] += s * (yw[0] * xw[1] + yw[1] * xw[0])
    out[i, 6] += s * (yw[0] * xw[2] + yw[2] * xw[0])
    out[i, 7] += s * yw[1] * xw[1]
    out[i, 8] += s * (yw[1] * xw[2] + yw[2] * xw[1])
    out[i, 9] += s * yw[2] * xw[2]


@sweep
def moments(tree, f, Z, G, Q, out):
    """Equation (13); and I Z, B^T Z of every row in G and Q (n+1, 6), not yet summed."""
    for i in range(tree.rows.shape[0]):
        st6(G, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        st6(Q, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(1, tree.rows.shape[0]):
        R, p = ld9(f.P, i, 0), ld3(f.P, i, 9)
        z, v, a = ld6(Z, i, 0), ld6(f.V, i, 0), ld6(f.V, i, 6)
        zl, vl, al = local(R, p, z), local(R, p, v), local(R, p, a)
        add_moments(out, i, 1.0, zl, al)
        add_moments(out, i, -1.0, ad(vl, zl), vl)
        m = tree.const[i, MASS]
        if m > 0.0:
            I, h = ld6(f.M, i, 0), ld3(f.M, i, 6)
            Iz = inertia_times(I, h, m, z)
            st6(G, i, 0, Iz)
            back = add6(inertia_times(I, h, m, ad(v, z)), ad_dual(v, Iz))
            st6(Q, i, 0, sub6(ad_dual(z, inertia_times(I, h, m, v)), back))


@kernel
def block_transposed_times(K, r, c, x):
    """Product of the transpose of the 6x6 block at row r and column c with six numbers."""
    out = scale6(x[0], ld6(K, r, c))
    for e in range(1, 6):
        out = add6(out, scale6(x[e], ld6(K, r + e, c)))
    return out


@kernel
def to_origin(R, p, g):
    """A wrench in a link frame (R, p), about the origin of the kernels."""
    force = matvec(R, lin(g))
    return join(add3(matvec(R, ang(g)), cross(p, force)), force)


@optional(None)
def law_sums(forces, t, f, w, Z, K, Q):
    """Take K^T Z of every body off its row in K (n+1, 6), and D^T Z off Q."""
    for k in range(forces.kind.shape[0]):
        b, count = forces.kind[k, 1], forces.kind[k, 2]
        how = force_law(forces, k, t, f.P, f.V, f.given, f.result, w)
        if how == 0:
            continue
        for c in range(count):
            j = forces.bodies[b + c]
            if j == 0:
                continue
            by_place, by_rate = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for r in range(count):
                i = forces.bodies[b + r]
                if i > 0:
                    z = ld6(Z, i, 0)
                    if how == 2:
                        R, p = link_frame(forces, b + r, f.P)
                        z = local(R, p, z)
                    by_place = add6(by_place, block_transposed_times(w.K, 6 * r, 6 * c, z))
                    by_rate = add6(by_rate, block_transposed_times(w.D, 6 * r, 6 * c, z))
            if how == 2:
                R, p = link_frame(forces, b + c, f.P)
                by_place, by_rate = to_origin(R, p, by_place), to_origin(R, p, by_rate)
            st6(K, j, 0, sub6(ld6(K, j, 0), by_place))
            st6(Q, j, 0, sub6(ld6(Q, j, 0), by_rate))


@sweep
def placements(tree, f, Z, G, Q, K, out):
    """Equation (14) for every row; G, Q, K are summed over subtrees on the way."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        p = tree.rows[i, PARENT]
        g, q, k, F = ld6(G, i, 0), ld6(Q, i, 0), ld6(K, i, 0), ld6(f.F, i, 0)
        for side in range(2):
            o = p if side == 0 else i
            v, a, z = ld6(f.V, o, 0), ld6(f.V, o, 6), ld6(Z, o, 0)
            for e in range(3):
                S = (0.0, 0.0, 0.0, f.P[o, e], f.P[o, 3 + e], f.P[o, 6 + e])
                Y = ad(v, S)
                W = add6(ad(a, S), ad(v, Y))
                out[i, 10 + 3 * side + e] += dot6(W, g) + dot6(Y, q) + dot6(S, k) - dot6(z, ad_dual(S, F))
        st6(G, p, 0, add6(ld6(G, p, 0), g))
        st6(Q, p, 0, add6(ld6(Q, p, 0), q))
        st6(K, p, 0, add6(ld6(K, p, 0), k))


@entry
def parameter_sums(system, record, out):
    """Add to ``out`` the derivatives of z . r by the parameters of the rows, over all stages of a record."""
    tree = system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    f, w = make_work(system, record.x[0, 0]), make_columns(system)
    Z, G, Q, K, tau = np.zeros((n, 12)), np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6)), np.zeros(nu)
    for step in range(record.t.shape[0]):
        for j in range(2):
            some = 0.0
            for d in range(nu):
                some = max(some, abs(record.z[step, j, d]))
            if some == 0.0:
                continue
            t = record.t[step, j]
            outward(tree, record.x[step, j], record.u[step, j], record.a[step, j], f.P, f.S, f.M, f.V, f.F)
            body_forces(system.forces, t, f.P, f.V, f.F, f.given, f.result)
            velocities(tree, record.z[step, j], f.S, Z)
            for i in range(n):
                st6(K, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
            moments(tree, f, Z, G, Q, out)
            law_sums(system.forces, t, f, w, Z, K, Q)
            inward(tree, f.S, f.F, tau)
            placements(tree, f, Z, G, Q, K, out)
