"""Second variation of a Galerkin step: one vector per test, unknown and displaced axis (Fan et al. 2018, Alg. 2 and 3).

Every entry of the second derivative of the discrete action is one scalar product. A unit of an unknown, of a test or
of a displaced joint moves everything behind its joint alike, by a twist variation dv^c and a pose variation eta^c at
the nodes c = 0..s. Gravity sees only the two angular components of eta across it, so a vector has W = 8 (s+1) numbers:
dv^0 .. dv^s, the two components at nodes 1..s-1 (N numbers so far, the state of ``galerkin.newton``), at node 0, and
at node s. With I, m, c, mu the inertia, mass, first moment and momentum of the subtree behind the joint,

    dual of (dv, eta):   w h (I dv - ad(eta)^T mu)     and     -w h g x (m eta_lin - c x eta_ang)  across gravity

and an entry is (vector of the upper joint) . (dual of the lower joint); within a joint the unknowns count as behind
the displaced axes. Equation numbers are those of docs/theory/galerkin.

    a, x  (nu s, W)  tests of rows 0..s-1 and their duals       ea, eb (nu s, N)  parts of the duals without inertia
    b, h  (nu s, W)  unknowns at nodes 1..s and their duals
    e, f  (nu, W)    displacement of the parent-fixed axes at all nodes, and its dual: moves the start of the step, and
                     is the test that gives the next momentum, eq. (4)
    M     (n+1, 9(s+1))  inertias of subtrees                   local (nu, 3 s)   next momentum by the own unknowns
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.galerkin.newton import axis3, dot_rows, node_block
from leastaction.galerkin.residual import chart_rates, combine3, size
from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.spatial._source.mrp import add9, mrp_jacobian_rate, scale9, spread
from leastaction.spatial._source.so3 import mrp_dexp
from leastaction.spatial._source.vector import (
    ad,
    ad_dual,
    add6,
    ang,
    axpy6,
    cross,
    dot3,
    inertia_times,
    lin,
    matmul,
    scale3,
    scale6,
    sub3,
    transpose,
)
from leastaction.tree.arrays import vec3
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, Floats


class Variation(NamedTuple):
    """Tables of the second variation; see the top of the file."""

    a: Floats
    x: Floats
    ea: Floats
    b: Floats
    h: Floats
    eb: Floats
    e: Floats
    f: Floats
    M: Floats
    local: Floats
    rest: Floats


@memory
def make_variation(tree, s):
    """Tables for a tree and s."""
    n, nu, W = tree.rows.shape[0], tree.rates.shape[0], 8 * (s + 1)
    wide = size(s, ()) + 4 * ((3 * s + 3) // 4)
    return Variation(
        np.zeros((nu * s, W)), np.zeros((nu * s, W)), np.zeros((nu * s, wide)), np.zeros((nu * s, W)),
        np.zeros((nu * s, W)), np.zeros((nu * s, size(s, ()))), np.zeros((nu, W)), np.zeros((nu, W)),
        np.zeros((n, 9 * (s + 1))), np.zeros((nu, 3 * s)), np.zeros((nu, W)),
    )  # fmt: skip


@sweep
def subtree_tables(tree, w, var):
    """Inertias of subtrees at all nodes."""
    width = var.M.shape[1]
    for i in range(tree.rows.shape[0]):
        heavy = i > 0 and tree.const[i, MASS] > 0.0
        for e in range(width):
            var.M[i, e] = w.M[i, e] if heavy else 0.0
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j = tree.rows[i, PARENT]
        for e in range(width):
            var.M[j, e] += var.M[i, e]


@kernel
def gravity_at(s, c):
    """First column of the components of node c across gravity."""
    return size(s, ()) if c == 0 else size(s, ()) + 2 if c == s else 6 * (s + 1) + 2 * (c - 1)


@kernel
def put_vector(tree, nodes, w, var, i, c, v, eta, T, U, E, q):
    """Node c of one vector: (v, eta) in row q of T, its dual in U, the part of the dual without inertia in E."""
    s, wh, m = len(nodes.w) - 1, nodes.w[c] * nodes.h, w.mass[i]
    first = ld3(var.M, i, 9 * c + 6)
    own = scale6(-wh, ad_dual(eta, ld6(w.mu, i, 6 * c)))
    st6(T, q, 6 * c, v)
    st6(E, q, 6 * c, own)
    st6(U, q, 6 * c, axpy6(wh, inertia_times(ld6(var.M, i, 9 * c), first, m, v), own))
    # gravity
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    pull = cross(g, sub3(scale3(m, lin(eta)), cross(first, ang(eta))))
    at = gravity_at(s, c)
    for k in range(2):
        n0 = axis3(nodes.across, k)
        sigma = -wh * dot3(n0, pull)
        T[q, at + k] = dot3(n0, ang(eta))
        U[q, at + k] = sigma
        if c > 0 and c < s:
            E[q, at + k] = sigma


@kernel
def write_vectors(tree, nodes, w, var, i, d, j, n):
    """Tests, unknowns and displaced axis of the j-th of n coordinates of a row; n = 3 is a ball."""
    s, h, base = len(nodes.w) - 1, nodes.h, d * (len(nodes.w) - 1)
    par = tree.rows[i, PARENT]
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for c in range(s + 1):
        o = 6 * c
        S, Sd = ld6(w.S, d + j, o), ld6(w.Sd, d + j, o)
        # the test function of node 0 moves the chart of a ball with it
        zero_test = scale6(nodes.b[c, 0] / h, S)
        axis = S
        if n == 3:
            C = chart_rates(nodes, w, c, d)
            column = (C[0], C[3], C[6]) if j == 0 else (C[1], C[4], C[7]) if j == 1 else (C[2], C[5], C[8])
            zero_test = combine3(w.S, d, o, column)
            axis = ld6(w.Q, d + j, o)
        for k in range(s):
            q = base + n * k + j
            test = zero_test if k == 0 else scale6(nodes.b[c, k] / h, S)
            move = scale6(nodes.b[c, k + 1] / h, S)
            here, there = k == c, k + 1 == c
            put_vector(
                tree, nodes, w, var, i, c, add6(test, Sd) if here else test, S if here else none,
                var.a, var.x, var.ea, q,
            )  # fmt: skip
            put_vector(
                tree, nodes, w, var, i, c, add6(move, Sd) if there else move, S if there else none,
                var.b, var.h, var.eb, q,
            )  # fmt: skip
        put_vector(tree, nodes, w, var, i, c, ad(ld6(w.V, par, o), axis), axis, var.e, var.f, var.rest, d + j)


@kernel
def add_local(local, d, c, A):
    """Add a 3x3 block at columns c.. of three rows."""
    for i in range(3):
        for k in range(3):
            local[d + i, c + k] += A[3 * i + k]


@kernel
def turned_stiffness(w, K, d, a):
    """How the joint impulse of a ball at node a varies with its displaced axes, seen in these axes."""
    tau = vec3(w.tau, d, a)
    return add9(node_block(K, d, a), spread(0.0, tau))


@kernel
def momentum_local(nodes, w, var, d, ball, K, Dm):
    """Next momentum by the own unknowns through the joint impulses: var.local (nu, 3 s)."""
    s, h = len(nodes.w) - 1, nodes.h
    for k in range(d, d + 3 if ball else d + 1):
        for e in range(3 * s):
            var.local[k, e] = 0.0
    for a in range(s + 1):
        if not ball:
            for g in range(1, s + 1):
                var.local[d, g - 1] += Dm[d, a] * nodes.b[a, g] / h
            if a > 0:
                var.local[d, a - 1] += K[d, a]
        else:
            z, u = vec3(w.xi, d, a), vec3(w.xid, d, a)
            J, tD = mrp_dexp(z), node_block(Dm, d, a)
            rate = matmul(tD, J)
            for g in range(1, s + 1):
                add_local(var.local, d, 3 * (g - 1), scale9(nodes.b[a, g] / h, rate))
            if a > 0:
                own = add9(matmul(node_block(K, d, a), J), matmul(tD, mrp_jacobian_rate(z, u)))
                add_local(var.local, d, 3 * (a - 1), own)


@sweep
def fill_variation(tree, nodes, w, var, K, Dm):
    """All vectors; w must hold a residual, with w.mu summed over subtrees."""
    subtree_tables(tree, w, var)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        ball = tree.rows[i, KIND] == BALL
        momentum_local(nodes, w, var, d, ball, K, Dm)
        n = 3 if ball else 1
        for j in range(n):
            write_vectors(tree, nodes, w, var, i, d, j, n)


@kernel
def place_of(tree, s, d):
    """Table row of test or unknown 0 of rate d, and the step to the next one."""
    i = tree.rates[d, 0]
    first = tree.rows[i, IU]
    n = 3 if tree.rows[i, KIND] == BALL else 1
    return first * s + d - first, n


@sweep
def by_displacements(tree, s, var, Re, Pe):
    """Residual Re (nu s, >= nu) and next momentum Pe (nu, >= nu) by a displacement of the parent-fixed axes.

    Only the first nu columns are written; entries of rates that do not meet are left as they are. O(s n depth).
    """
    W = 8 * (s + 1)
    for j in range(tree.rates.shape[0]):
        qj, nj = place_of(tree, s, j)
        l = j
        while l >= 0:
            ql, nl = place_of(tree, s, l)
            same = tree.rates[l, 0] == tree.rates[j, 0]
            for k in range(s):
                # rows of l: the axis j lies behind, or is displaced together with them
                row = ql + nl * k
                Re[row, j] = dot_rows(W, var.x, row, var.e, j) if same else dot_rows(W, var.a, row, var.f, j)
                row = qj + nj * k
                Re[row, l] = dot_rows(W, var.x, row, var.e, l)
            Pe[l, j] = dot_rows(W, var.f, l, var.e, j) if same else dot_rows(W, var.e, l, var.f, j)
            Pe[j, l] = dot_rows(W, var.f, j, var.e, l)
            l = tree.rates[l, 1]


@sweep
def displaced_local(tree, nodes, w, K, Re, Pe):
    """Add to ``by_displacements`` what the joint impulses vary."""
    s = len(nodes.w) - 1
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        for a in range(s + 1):
            if tree.rows[i, KIND] == BALL:
                A = turned_stiffness(w, K, d, a)
                add_local(Pe, d, d, A)
                if a < s:
                    B = matmul(transpose(mrp_dexp(vec3(w.xi, d, a))), A)
                    for r in range(3):
                        for c in range(3):
                            Re[d * s + 3 * a + r, d + c] += B[3 * r + c]
            else:
                Pe[d, d] += K[d, a]
                if a < s:
                    Re[d * s + a, d] += K[d, a]


@sweep
def unknowns(tree, s, var, J, Py):
    """Residual J (nu s, nu s) and next momentum Py (nu, nu s) by the unknowns, without local terms. O(s^2 n depth)."""
    W = 8 * (s + 1)
    for j in range(tree.rates.shape[0]):
        qj, nj = place_of(tree, s, j)
        l = j
        while l >= 0:
            ql, nl = place_of(tree, s, l)
            same = tree.rates[l, 0] == tree.rates[j, 0]
            for g in range(s):
                upper, lower = ql + nl * g, qj + nj * g
                for k in range(s):
                    J[ql + nl * k, lower] = dot_rows(W, var.a, ql + nl * k, var.h, lower)
                    row = qj + nj * k
                    J[row, upper] = (
                        dot_rows(W, var.a, row, var.h, upper) if same else dot_rows(W, var.x, row, var.b, upper)
                    )
                Py[l, lower] = dot_rows(W, var.e, l, var.h, lower)
                Py[j, upper] = dot_rows(W, var.e, j, var.h, upper) if same else dot_rows(W, var.f, j, var.b, upper)
            l = tree.rates[l, 1]
