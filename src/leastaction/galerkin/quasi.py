"""Other directions for a Galerkin step: the mass matrix at its start (RIQN), and Broyden's updates of it.

At small h the Jacobian of the residual is J = (At (x) M) / h with At_ag = sum_c w_c b_ca b_cg, rows a = 0..s-1, columns
g = 1..s. With M at the start of the step, factored once, this is the recursive impulse-based quasi-Newton method of Lee
et al. 2016 (Algorithm 3, there s = 1 and At = -1). Broyden's method (1965) starts from it and adds rank-one updates,

    Binv <- (1 + a s^T) Binv,   a = (s - Binv dr) / (s . Binv dr)

kept as pairs (a, s), so that an iteration costs O(n) for each one before it.

    T (s, s) inverse of At      past, along (most, nu s) pairs a, s      r, y (nu s,) residual and step before
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.dynamics.legendre import factor_mass, to_child_axes, to_parent_axes
from leastaction.galerkin.dense import Dense, Densely, dense_again, dense_direction, make_dense
from leastaction.galerkin.gauss_newton import exact_again, exact_direction
from leastaction.jit.decorators import MEMORY_OPTIONS, forms, sweep
from leastaction.tree.articulated import expand, reduce
from leastaction.tree.layout import BALL, IU, KIND, Floats

RIQN, BROYDEN = 1, 2


class Quasi(NamedTuple):
    """Scratch memory; see the symbol table of this file."""

    T: Floats
    part: Floats
    whole: Floats
    past: Floats
    along: Floats
    r: Floats
    y: Floats
    dr: Floats


def _no_quasi(T, kind, tree, s, wide, most):
    return None


def _dense_quasi(T, kind, tree, s, wide, most):
    return make_dense(tree, s, wide)


@forms(_no_quasi, {Densely: _dense_quasi}, MEMORY_OPTIONS)
def make_quasi(T, kind, tree, s, wide, most):
    """Scratch memory of the quasi-Newton methods, or of the dense one; None for Newton's."""
    nu = tree.rates.shape[0]
    pairs = most if kind == BROYDEN else 0
    return Quasi(
        T, np.zeros(nu), np.zeros((s, nu)), np.zeros((pairs, nu * s)), np.zeros((pairs, nu * s)), np.zeros(nu * s),
        np.zeros(nu * s), np.zeros(nu * s),
    )  # fmt: skip


def _no_factors(Q, tree, x, f):
    pass


@forms(_no_factors, {Dense: _no_factors})
def factor_quasi(Q, tree, x, f):
    """Factor M at the start of the step."""
    for d in range(f.f.size):
        f.f[d] = 0.0
    factor_mass(tree, x, f)


def _guarded(Q):
    return False


@forms(_guarded, {Dense: _guarded})
def unguarded(Q):
    """Whether steps are taken without a line search: RIQN, as its paper has it."""
    return Q.past.shape[0] == 0


@sweep
def by_mass(Q, tree, h, x, f, R, y):
    """y = -h (T (x) M^-1) R."""
    s, nu = R.shape[1], R.shape[0]
    for a in range(s):
        for i in range(tree.rows.shape[0]):
            for e in range(6):
                f.F[i, e] = 0.0
        for d in range(nu):
            Q.part[d] = R[d, a]
        to_child_axes(tree, x, Q.part, f.f)
        reduce(tree, f.S, f.F, f.f, f.U, f.y)
        expand(tree, f.S, f.U, f.y, f.Z, Q.part)
        to_parent_axes(tree, x, Q.part, Q.whole[a])
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        for g in range(s):
            for j in range(n):
                t = 0.0
                for a in range(s):
                    t -= Q.T[g, a] * Q.whole[a, d + j]
                y[d * s + n * g + j] = h * t


def _exact_again(Q, points, tree, nodes, x, w, f, l, R, y):
    exact_again(points, tree, nodes, w, R, l, y)


def _dense_again(Q, points, tree, nodes, x, w, f, l, R, y):
    dense_again(Q, tree, nodes, w, R, y)


@forms(_exact_again, {Dense: _dense_again})
def solve_again(Q, points, tree, nodes, x, w, f, l, R, y):
    """y = -J^-1 R with the factors of the last direction."""
    by_mass(Q, tree, nodes.h, x, f, R, y)


def _exact(Q, points, tree, nodes, x, w, wq, f, K, Dm, steps, alpha):
    exact_direction(points, tree, nodes, w, wq, K, Dm)


def _dense(Q, points, tree, nodes, x, w, wq, f, K, Dm, steps, alpha):
    dense_direction(Q, tree, nodes, w, K, Dm)


@forms(_exact, {Dense: _dense})
def find_direction(Q, points, tree, nodes, x, w, wq, f, K, Dm, steps, alpha):
    """w.y = -J^-1 r, or what the quasi-Newton method takes for it; the last step was alpha times the last direction."""
    s, y = w.r.shape[1], w.y
    if Q.past.shape[0] == 0:
        by_mass(Q, tree, nodes.h, x, f, w.r, y)
        return
    # residuals in the order of y; their difference since the last step
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        for a in range(s):
            for j in range(n):
                k = d * s + n * a + j
                Q.dr[k] = w.r[d + j, a] - Q.r[k]
                Q.r[k] = w.r[d + j, a]
    by_mass(Q, tree, nodes.h, x, f, w.r, Q.past[steps])
    fresh = Q.past[steps]
    for e in range(steps - 1):
        update(Q, e, fresh)
    if steps > 0:
        # fresh is -Binv r of the updates so far and Q.y was -Binv r before, so Binv dr = Q.y - fresh
        e, down = steps - 1, 0.0
        for k in range(y.size):
            Q.along[e, k] = alpha * Q.y[k]
            Q.dr[k] = Q.y[k] - fresh[k]
            down += Q.along[e, k] * Q.dr[k]
        if down != 0.0:
            for k in range(y.size):
                Q.past[e, k] = (Q.along[e, k] - Q.dr[k]) / down
        else:
            for k in range(y.size):
                Q.past[e, k] = 0.0
        update(Q, e, fresh)
    for k in range(y.size):
        y[k] = fresh[k]
        Q.y[k] = fresh[k]


@sweep
def update(Q, e, v):
    """v <- (1 + a s^T) v with the e-th pair."""
    t = 0.0
    for k in range(v.size):
        t += Q.along[e, k] * v[k]
    for k in range(v.size):
        v[k] += t * Q.past[e, k]
