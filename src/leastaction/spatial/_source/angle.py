"""Scalar coefficients of the rotation formulas as functions of t = theta^2, theta = |w|.

    b  = (1 - cos theta) / t                 dexp(w)     = 1 + b w^ + c w^ w^
    c  = (theta - sin theta) / theta^3       dexp_inv(w) = 1 - w^/2 + e w^ w^
    e  = (1 - (theta/2) cot(theta/2)) / t
    b1, c1, e1                               their derivatives by t

All six are power series in t, so nothing is singular at zero; e and e1 have poles at theta = 2 pi. The closed
forms lose digits by cancellation for small t, so the series are used up to t = SERIES: there they are exact to
rounding with the terms below. Just above it the relative error is 2e-15 in b, c and e, 5e-15 in b1, 3e-14 in c1 and
1e-13 in e1; their shares in the matrices are that much smaller, so that every matrix is right to 4e-16. Both forms
are always computed (see scalar.py); the closed one is evaluated at a shifted t where it is not wanted, so that it
stays finite.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.scalar import pick, sincos, source, sqrt

# Up to here sin(theta/2)/theta is its first two terms; the third is below 1e-19.
TINY = 1e-8
# Up to here the coefficients below are summed as series.
SERIES = 1.0

# Taylor coefficients: 1/(2k)! and 1/(2k+1)!, alternating, and |B_2k|/(2k)! with the Bernoulli numbers B.
B0, B1, B2, B3, B4 = 1 / 2, -1 / 24, 1 / 720, -1 / 40320, 1 / 3628800
B5, B6, B7 = -1 / 479001600, 1 / 87178291200, -1 / 20922789888000
B8, B9 = 1 / 6402373705728000, -1 / 2432902008176640000
C0, C1, C2, C3, C4 = 1 / 6, -1 / 120, 1 / 5040, -1 / 362880, 1 / 39916800
C5, C6, C7 = -1 / 6227020800, 1 / 1307674368000, -1 / 355687428096000
C8, C9 = 1 / 121645100408832000, -1 / 51090942171709440000
E0, E1, E2, E3, E4 = 1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160
E5, E6, E7 = 691 / 1307674368000, 1 / 74724249600, 3617 / 10670622842880000
E8, E9, E10 = 43867 / 5109094217170944000, 174611 / 802857662698291200000, 77683 / 14101100039391805440000


@source
def half_angle(t: Any) -> tuple[Any, Any]:
    """``(cos(theta/2), sin(theta/2)/theta)``."""
    theta = sqrt(t)
    s, c = sincos(0.5 * theta)
    return c, pick(t, TINY, s / pick(t, TINY, theta, theta + 1.0), 0.5 - t * (1.0 / 48.0))


@source
def poly8(t: Any, a: tuple[Any, Any, Any, Any], b: tuple[Any, Any, Any, Any], last: Any) -> Any:
    """``a0 + a1 t + a2 t^2 + a3 t^3 + b0 t^4 + ... + b3 t^7 + last t^8``."""
    high = b[0] + t * (b[1] + t * (b[2] + t * (b[3] + t * last)))
    return a[0] + t * (a[1] + t * (a[2] + t * (a[3] + t * high)))


@source
def dexp_coefficients(t: Any) -> tuple[Any, Any]:
    """``(b, c)``."""
    # closed forms from the half angle: no cancellation in b
    ts = pick(t, SERIES, t, t + 1.0)
    theta = sqrt(ts)
    s, co = sincos(0.5 * theta)
    b = 2.0 * s * s / ts
    c = (theta - 2.0 * s * co) / (ts * theta)
    # series
    sb = poly8(t, (B0, B1, B2, B3), (B4, B5, B6, B7), B8)
    sc = poly8(t, (C0, C1, C2, C3), (C4, C5, C6, C7), C8)
    return pick(t, SERIES, b, sb), pick(t, SERIES, c, sc)


@source
def dexp_coefficients_rate(t: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """``(b1, c1)``, the derivatives by t, from t and ``b, c = dexp_coefficients(t)``."""
    # closed forms; sin(theta)/theta = 1 - c t
    ts = pick(t, SERIES, t, t + 1.0)
    b1 = (1.0 - c * t - 2.0 * b) / (2.0 * ts)
    c1 = (b - 3.0 * c) / (2.0 * ts)
    # series, term by term the derivatives of the ones above
    sb = poly8(t, (B1, 2.0 * B2, 3.0 * B3, 4.0 * B4), (5.0 * B5, 6.0 * B6, 7.0 * B7, 8.0 * B8), 9.0 * B9)
    sc = poly8(t, (C1, 2.0 * C2, 3.0 * C3, 4.0 * C4), (5.0 * C5, 6.0 * C6, 7.0 * C7, 8.0 * C8), 9.0 * C9)
    return pick(t, SERIES, b1, sb), pick(t, SERIES, c1, sc)


@source
def dexp_inv_coefficients(t: Any) -> tuple[Any, Any]:
    """``(e, e1)``: the coefficient of dexp_inv and its derivative by t."""
    # closed forms at the half angle h; sin h is not zero for any floating-point h > 0
    ts = pick(t, SERIES, t, t + 1.0)
    h = 0.5 * sqrt(ts)
    s, co = sincos(h)
    cot = co / s
    e = (1.0 - h * cot) / ts
    e1 = ((1.0 / (s * s) - cot / h) * 0.125 - e) / ts
    # series
    se = poly8(t, (E0, E1, E2, E3), (E4, E5, E6, E7), E8 + t * (E9 + t * E10))
    se1 = poly8(
        t, (E1, 2.0 * E2, 3.0 * E3, 4.0 * E4), (5.0 * E5, 6.0 * E6, 7.0 * E7, 8.0 * E8), 9.0 * E9 + t * (10.0 * E10)
    )
    return pick(t, SERIES, e, se), pick(t, SERIES, e1, se1)
