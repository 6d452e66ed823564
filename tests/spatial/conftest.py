"""Oracle for the formulas of ``spatial``: the defining power series, summed with 60 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from types import SimpleNamespace

import numpy as np
import pytest

DIGITS = 60


def exact(x):
    """Array of decimals equal to the given floats."""
    return np.vectorize(Decimal, otypes=[object])(np.asarray(x, dtype=float))


def skew(a):
    """Cross-product matrix."""
    o = Decimal(0)
    return np.array([[o, -a[2], a[1]], [a[2], o, -a[0]], [-a[1], a[0], o]], dtype=object)


def twist_matrix(V):
    """4x4 matrix of a twist."""
    A = exact(np.zeros((4, 4)))
    A[:3, :3], A[:3, 3] = skew(V[:3]), V[3:]
    return A


def bracket(V):
    """6x6 matrix of the Lie bracket with a twist."""
    A = exact(np.zeros((6, 6)))
    A[:3, :3] = A[3:, 3:] = skew(V[:3])
    A[3:, :3] = skew(V[3:])
    return A


def series(A, first):
    """Sum of A^k first! / (k + first)! over k: the exponential for first = 0, dexp for first = 1."""
    term = exact(np.eye(len(A)))
    total, k = term.copy(), 0
    while k < 12 or np.abs(term).max() > Decimal(10) ** -(DIGITS - 5):
        k += 1
        term = term.dot(A) / Decimal(k + first)
        total = total + term
    return total


def solve(A, B):
    """Solution of A X = B by elimination with row exchanges."""
    A, B = A.copy(), B.copy()
    n = len(A)
    for k in range(n):
        pivot = k + int(np.argmax(np.abs(A[k:, k])))
        A[[k, pivot]], B[[k, pivot]] = A[[pivot, k]], B[[pivot, k]]
        for i in range(n):
            if i != k:
                f = A[i, k] / A[k, k]
                A[i], B[i] = A[i] - f * A[k], B[i] - f * B[k]
    return B / np.diagonal(A)[:, None]


def with_digits(function):
    """Run a function with 60 digits on float input; give back decimals."""

    def run(x):
        with localcontext() as context:
            context.prec = DIGITS
            return function(exact(x))

    return run


def difference(a, exact_value):
    """Largest difference between floats and decimals, as a float."""
    with localcontext() as context:
        context.prec = DIGITS
        return float(np.abs(exact(a) - exact_value).max())


def identity(n):
    """Identity of decimals."""
    return exact(np.eye(n))


@pytest.fixture(scope="session")
def oracle():
    """The maps of SO(3) and SE(3) from their power series, and the difference between floats and decimals."""
    return SimpleNamespace(
        so3_exp=with_digits(lambda w: series(skew(w), 0)),
        so3_dexp=with_digits(lambda w: series(skew(w), 1)),
        so3_dlog=with_digits(lambda w: solve(series(skew(w), 1), identity(3))),
        se3_exp=with_digits(lambda V: series(twist_matrix(V), 0)),
        se3_dexp=with_digits(lambda V: series(bracket(V), 1)),
        se3_dlog=with_digits(lambda V: solve(series(bracket(V), 1), identity(6))),
        difference=difference,
    )


def directions(rng, count):
    """Unit vectors: the axes, two diagonals and random ones."""
    fixed = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, -1, 1]], dtype=float)
    u = np.concatenate([fixed, rng.normal(size=(count, 3))])
    return u / np.linalg.norm(u, axis=1, keepdims=True)


@pytest.fixture
def axes():
    """Unit vectors (17, 3): the coordinate axes, two diagonals and random ones."""
    return directions(np.random.default_rng(7), 12)
