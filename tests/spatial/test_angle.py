"""The scalar coefficients of the rotation formulas against their power series with 120 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np
import pytest

from leastaction.spatial._source import angle


def exact_coefficients(t):
    """(b, c, b1, c1, e, e1) at t, from the series of b and c."""
    with localcontext() as context:
        context.prec = 120
        t = Decimal(float(t))
        b = c = b1 = c1 = Decimal(0)
        fb, fc, power, lower = Decimal(1) / 2, Decimal(1) / 6, Decimal(1), Decimal(0)
        for k in range(60):
            b, c, b1, c1 = b + fb * power, c + fc * power, b1 + k * fb * lower, c1 + k * fc * lower
            fb, fc = -fb / ((2 * k + 3) * (2 * k + 4)), -fc / ((2 * k + 4) * (2 * k + 5))
            lower, power = power, power * t
        # e t = 1 - sin(theta) / (2 b theta), and its derivative
        a, a1 = 1 - c * t, -(c + c1 * t)
        e = (1 - a / (2 * b)) / t
        e1 = ((a * b1 - a1 * b) / (2 * b * b) - e) / t
        return np.array([b, c, b1, c1, e, e1])


def computed_coefficients(t):
    b, c = angle.dexp_coefficients(t)
    b1, c1 = angle.dexp_coefficients_rate(t, b, c)
    e, e1 = angle.dexp_inv_coefficients(t)
    return np.array([b, c, b1, c1, e, e1])


@pytest.mark.parametrize(
    ("low", "high", "tolerance"),
    [
        # measured 8e-17, 1.5e-16, 1.6e-16, 1.2e-16, 1.4e-16, 1.1e-15
        (1e-24, 1.0, (2e-16, 3e-16, 3e-16, 3e-16, 3e-16, 3e-15)),
        # measured 5e-16, 1e-15, 5e-15, 3e-14, 2e-15, 1.3e-13
        (1.0, 4.0, (1e-15, 2e-15, 1e-14, 6e-14, 4e-15, 3e-13)),
        # measured 1e-15, 4e-16, 1.6e-15, 3e-15, 6e-16, 1.1e-14
        (4.0, 30.0, (2e-15, 1e-15, 4e-15, 8e-15, 2e-15, 3e-14)),
    ],
)
def test_coefficients_have_the_stated_relative_accuracy(low, high, tolerance):
    rng = np.random.default_rng(0)
    worst = np.zeros(6)
    for t in np.exp(rng.uniform(np.log(low), np.log(high), 150)):
        exact = exact_coefficients(t)
        error = [abs(float((Decimal(float(v)) - x) / x)) for v, x in zip(computed_coefficients(t), exact, strict=True)]
        worst = np.maximum(worst, error)
    assert (worst < tolerance).all(), worst


def test_coefficients_at_zero_are_the_limits():
    expected = [1 / 2, 1 / 6, -1 / 24, -1 / 120, 1 / 12, 1 / 720]
    np.testing.assert_array_equal(computed_coefficients(0.0), expected)


def test_coefficients_are_continuous_where_the_series_ends():
    below, above = computed_coefficients(angle.SERIES), computed_coefficients(np.nextafter(angle.SERIES, 2.0))
    np.testing.assert_allclose(below, above, rtol=3e-13)  # measured 2e-16
    c0, s0 = angle.half_angle(angle.TINY)
    c1, s1 = angle.half_angle(np.nextafter(angle.TINY, 1.0))
    assert abs(c0 - c1) < 2e-16  # measured 0
    assert abs(s0 - s1) < 2e-16  # measured 6e-17


def test_coefficients_are_finite_at_the_pole():
    assert np.isfinite(computed_coefficients((2 * np.pi) ** 2)).all()
