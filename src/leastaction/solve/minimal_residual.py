"""Solution of a linear system that is known by its corrections only: generalised conjugate residuals.

A correction takes z to z + r(z), with r(z) = b - K z. Where K is near the identity, corrections alone converge; here
every one also gives the pair (r, K r), and z moves so far along all pairs that r becomes smallest. The number of
corrections is then at most the number of unknowns plus one, whatever K is, and one more than the rank of K - 1.

    z, r (n,)   solution so far, and its correction       V, W (m, n)  pairs (v, K v), with W orthonormal
    a (n,)      weights of unknowns in products

Saad, Schultz (1986) GMRES: A generalized minimal residual algorithm for solving nonsymmetric linear systems, SIAM J.
Sci. Stat. Comput. 7, and Eisenstat, Elman, Schultz (1983) Variational iterative methods for nonsymmetric systems of
linear equations, SIAM J. Numer. Anal. 20.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import memory, sweep

# Pairs that are kept at most: older ones are replaced. And the part of |v| below which |K v| counts as zero.
PAIRS, NOTHING = 200, 1.0e-12


class Residuals(NamedTuple):
    """Memory of a solution; ``tried``: z + r, at which the next correction is measured, ``best`` the best of these."""

    z: np.ndarray
    r: np.ndarray
    a: np.ndarray
    tried: np.ndarray
    next: np.ndarray
    best: np.ndarray
    V: np.ndarray
    W: np.ndarray


@memory
def make_residuals(n):
    """Memory for n unknowns."""
    m = min(n, PAIRS)
    return Residuals(
        np.zeros(n), np.zeros(n), np.ones(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((m, n)), np.zeros((m, n))
    )  # fmt: skip


@sweep
def weighted_product(a, x, y):
    """Product of x and y with squared weights."""
    s = 0.0
    for i in range(x.size):
        s += a[i] * a[i] * x[i] * y[i]
    return s


@sweep
def weigh(R, first, last):
    """Weights of the unknowns in [first, last): one over the largest first correction among them."""
    largest = 0.0
    for i in range(first, last):
        largest = max(largest, abs(R.next[i]))
    for i in range(first, last):
        R.a[i] = 1.0 / largest if largest > 0.0 else 1.0


@sweep
def improve(R, k):
    """From correction k of R.tried, which led to R.next: z, r and what is tried next; False if there is no way on.

    Correction 0 is that of zero.
    """
    n = R.z.size
    if k == 0:
        for i in range(n):
            R.z[i] = 0.0
            R.r[i] = R.tried[i] = R.next[i]
        return True
    m = R.V.shape[0]
    v, w = R.V[(k - 1) % m], R.W[(k - 1) % m]
    for i in range(n):
        v[i] = R.r[i]
        w[i] = R.r[i] - (R.next[i] - R.tried[i])
    size = weighted_product(R.a, v, v)
    # twice, as once leaves rounding errors in
    for _ in range(2):
        for j in range(min(k, m)):
            if j != (k - 1) % m:
                s = weighted_product(R.a, R.W[j], w)
                for i in range(n):
                    w[i] -= s * R.W[j, i]
                    v[i] -= s * R.V[j, i]
    length = np.sqrt(weighted_product(R.a, w, w))
    if not length > NOTHING * np.sqrt(size):
        return False
    for i in range(n):
        v[i] /= length
        w[i] /= length
    s = weighted_product(R.a, w, R.r)
    for i in range(n):
        R.z[i] += s * v[i]
        R.r[i] -= s * w[i]
        R.tried[i] = R.z[i] + R.r[i]
    return True
