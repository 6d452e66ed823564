"""The logarithm's second derivative: coefficients against 120 digits, blocks against differences of ``se3``."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from leastaction.spatial import se3
from leastaction.spatial._source import angle, dlog

ANGLES = [0.0, 1e-8, 1e-3, 0.3, 0.999, 1.001, 2.0, 3.0]


def exact_curvature(t):
    """e2 at t from the Bernoulli series of e, by differences of 100 digits."""
    with localcontext() as context:
        context.prec = 120
        t, d = Decimal(float(t)), Decimal(10) ** -30

        def e(t):
            # b = (1 - cos) / t and a = sin / theta as series; e = (1 - a / (2 b)) / t
            a = b = Decimal(0)
            fa, fb, power = Decimal(1), Decimal(1) / 2, Decimal(1)
            for k in range(60):
                a, b = a + fa * power, b + fb * power
                fa, fb = -fa / ((2 * k + 2) * (2 * k + 3)), -fb / ((2 * k + 3) * (2 * k + 4))
                power *= t
            return (1 - a / (2 * b)) / t

        return (e(t + d) - 2 * e(t) + e(t - d)) / d**2


@pytest.mark.parametrize(
    ("low", "high", "tolerance"),
    [
        (1e-3, 1.0, 1e-12),  # measured 2e-13
        (1.0, 10.0, 2e-11),  # measured 7e-12
    ],
)
def test_the_curvature_has_the_stated_relative_accuracy(low, high, tolerance):
    rng = np.random.default_rng(0)
    for t in np.exp(rng.uniform(np.log(low), np.log(high), 60)):
        e, e1 = angle.dexp_inv_coefficients(t)
        exact = exact_curvature(t)
        assert abs(float((Decimal(float(dlog.dexp_inv_curvature(t, e, e1))) - exact) / exact)) < tolerance


def test_the_curvature_at_zero_is_the_limit():
    assert dlog.dexp_inv_curvature(0.0, *angle.dexp_inv_coefficients(0.0)) == 1 / 15120


def twist(value, rng):
    u = rng.normal(size=3)
    return np.concatenate([value * u / np.linalg.norm(u), rng.normal(size=3)])


@pytest.mark.parametrize("value", ANGLES)
def test_the_dual_and_the_blocks_are_those_of_the_matrix(value):
    rng = np.random.default_rng(1)
    Z, f = twist(value, rng), rng.normal(size=6)
    e, e1 = angle.dexp_inv_coefficients(float(Z[:3] @ Z[:3]))
    L = se3.dlog(Z)
    got = np.array(dlog.dlog_dual(e, e1, tuple(Z), tuple(f)))
    assert np.abs(got - L.T @ f).max() < 2e-15  # measured 2e-16
    J, Q = (np.reshape(block, (3, 3)) for block in dlog.dlog_blocks(e, e1, tuple(Z)))
    assert np.abs(J - L[:3, :3]).max() < 1e-15  # measured 1e-16
    assert np.abs(Q - L[3:, :3]).max() < 1e-15  # measured 1e-16


@pytest.mark.parametrize("value", ANGLES)
def test_the_derivative_of_the_dual_is_that_of_differences(value):
    rng = np.random.default_rng(2)
    Z, f, eps = twist(value, rng), rng.normal(size=6), 1e-5
    t = float(Z[:3] @ Z[:3])
    e, e1 = angle.dexp_inv_coefficients(t)
    upper, beside = dlog.dlog_dual_derivative(e, e1, dlog.dexp_inv_curvature(t, e, e1), tuple(Z), tuple(f))
    zero = np.zeros((3, 3))
    got = np.block([[np.reshape(upper, (3, 3)), np.reshape(beside, (3, 3))], [np.reshape(beside, (3, 3)), zero]])
    columns = [(se3.dlog(Z + eps * d).T @ f - se3.dlog(Z - eps * d).T @ f) / (2 * eps) for d in np.eye(6)]
    assert np.abs(got - np.array(columns).T).max() < 1e-9  # measured 3e-11
