"""The second derivative of the logarithm of SE(3): what Newton's method on discrete momenta needs besides ``se3``.

With Z = (w; v) and a wrench (a; b), dlog_Z = dexp_inv(Z) has the blocks (J, 0; Q, J) and

    dlog_Z^T (a; b) = (g(w, a) + Dg(w, b)[v];  g(w, b)),    g(w, b) = J(w)^T b = b + w x b / 2 + e w x (w x b),

with e of ``angle`` and Dg the derivative by w. Its derivative by Z at a fixed wrench is, block by block,

    ( Dg(w, a) + D2g(w, b)[v]   Dg(w, b) )
    ( Dg(w, b)                  0        )
    Dg(w, b)      = -b^/2 + e K + 2 e1 k w^T                     K = (w.b) 1 + w b^T - 2 b w^T
    D2g(w, b)[v]  = (4 e2 (w.v) k + 2 e1 K v) w^T + (2 e1 k - 2 e b) v^T + 2 e1 (w.v) K + e (v.b 1 + v b^T)
with k = w x (w x b), and e1, e2 the derivatives of e by t = w.w.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.angle import E2, E3, E4, E5, E6, E7, E8, E9, E10, SERIES, poly8
from leastaction.spatial._source.mrp import add9, outer, scale9, spread
from leastaction.spatial._source.scalar import pick, source
from leastaction.spatial._source.so3 import jacobian_times, product_derivative, quadratic
from leastaction.spatial._source.vector import M9, V3, V6, add3, ang, axpy3, cross, dot3, join, lin, matvec, scale3


@source
def dexp_inv_curvature(t: Any, e: Any, e1: Any) -> Any:
    """Second derivative e2 of e by t, from t and ``e, e1 = dexp_inv_coefficients(t)``."""
    # closed form: h cot h obeys a Riccati equation, so e1 = (1/4 - 3 e + e^2 t) / (2 t); once more by t
    ts = pick(t, SERIES, t, t + 1.0)
    closed = (e * e + 2.0 * e * e1 * t - 5.0 * e1) / (2.0 * ts)
    # series
    high = 72.0 * E9 + t * (90.0 * E10)
    series = poly8(t, (2.0 * E2, 6.0 * E3, 12.0 * E4, 20.0 * E5), (30.0 * E6, 42.0 * E7, 56.0 * E8, high), 0.0)
    return pick(t, SERIES, closed, series)


@source
def dlog_dual(e: Any, e1: Any, Z: V6, f: V6) -> V6:
    """``dlog_Z^T f`` with the coefficients of Z given."""
    w, v, b = ang(Z), lin(Z), lin(f)
    wb, vb = cross(w, b), cross(v, b)
    k = cross(w, wb)
    # Dg(w, b)[v]
    twist = add3(cross(w, vb), cross(v, wb))
    c = 2.0 * e1 * dot3(w, v)
    more = (
        0.5 * vb[0] + e * twist[0] + c * k[0],
        0.5 * vb[1] + e * twist[1] + c * k[1],
        0.5 * vb[2] + e * twist[2] + c * k[2],
    )
    return join(add3(jacobian_times(0.5, e, w, ang(f)), more), jacobian_times(0.5, e, w, b))


@source
def dlog_blocks(e: Any, e1: Any, Z: V6) -> tuple[M9, M9]:
    """Blocks J and Q of dlog_Z = (J, 0; Q, J)."""
    w, v = ang(Z), lin(Z)
    t, d = dot3(w, w), dot3(w, v)
    c = 2.0 * e1 * d
    J = quadratic(1.0 - e * t, -0.5, e, w)
    # -v^/2 + e (w^ v^ + v^ w^) + 2 e1 (w.v) w^ w^
    Q = add9(spread(-2.0 * e * d - c * t, scale3(-0.5, v)), outer(axpy3(c, w, scale3(e, v)), w))
    return J, add9(Q, outer(scale3(e, w), v))


@source
def pulled_derivative(e: Any, e1: Any, w: V3, b: V3) -> M9:
    """``Dg(w, b)``."""
    k = cross(w, cross(w, b))
    return product_derivative(w, b, -0.5, e, scale3(2.0 * e1, k))


@source
def pulled_curvature(e: Any, e1: Any, e2: Any, w: V3, b: V3, v: V3) -> M9:
    """``D2g(w, b)[v]``, a symmetric bilinear map of which one argument is v."""
    k = cross(w, cross(w, b))
    d = dot3(w, v)
    zero = d * 0.0
    K = add9(spread(dot3(w, b), (zero, zero, zero)), add9(outer(w, b), outer(scale3(-2.0, b), w)))
    left = axpy3(4.0 * e2 * d, k, scale3(2.0 * e1, matvec(K, v)))
    right = axpy3(2.0 * e1, k, scale3(-2.0 * e, b))
    rest = add9(spread(e * dot3(v, b), (zero, zero, zero)), outer(scale3(e, v), b))
    return add9(add9(outer(left, w), outer(right, v)), add9(scale9(2.0 * e1 * d, K), rest))


@source
def dlog_dual_derivative(e: Any, e1: Any, e2: Any, Z: V6, f: V6) -> tuple[M9, M9]:
    """Derivative of ``dlog_Z^T f`` by Z: its upper left block, and the one beside and below it; the last is zero."""
    w, b = ang(Z), lin(f)
    upper = add9(pulled_derivative(e, e1, w, ang(f)), pulled_curvature(e, e1, e2, w, b, lin(Z)))
    return upper, pulled_derivative(e, e1, w, b)
