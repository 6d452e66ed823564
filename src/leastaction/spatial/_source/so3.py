"""Rotations: quaternions, the exponential map of SO(3), its Jacobians, and the chart of modified Rodrigues parameters.

Quaternions are (w, x, y, z), Hamilton, body to world; 3x3 matrices are nine numbers, row by row; ``w^`` is the
cross-product matrix of w. ``dexp`` is the *left* Jacobian: along any curve w(t), with R = exp(w),

    Rdot R^T = hat(dexp(w) wdot)         R^T Rdot = hat(dexp_right(w) wdot),  dexp_right(w) = dexp(-w) = dexp(w)^T

and ``dexp_inv``, ``dexp_right_inv`` are the inverses. They exist for |w| < 2 pi and grow without bound towards it.
The coefficients b, c, e are those of angle.py.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.angle import (
    dexp_coefficients,
    dexp_coefficients_rate,
    dexp_inv_coefficients,
    half_angle,
)
from leastaction.spatial._source.scalar import absolute, arctan2, pick, source, sqrt
from leastaction.spatial._source.vector import M9, V3, cross, dot3

Q4 = tuple[Any, Any, Any, Any]

# Squared length of a quaternion's vector part below which its angle is twice that length, to 1e-18.
TINY_VECTOR = 1e-18


@source
def hat(a: V3) -> M9:
    """Cross-product matrix: ``hat(a) b = a x b``."""
    return (0.0, -a[2], a[1], a[2], 0.0, -a[0], -a[1], a[0], 0.0)


@source
def vee(A: M9) -> V3:
    """Vector of the antisymmetric part of A; the inverse of ``hat``."""
    return (0.5 * (A[7] - A[5]), 0.5 * (A[2] - A[6]), 0.5 * (A[3] - A[1]))


@source
def quat_mul(a: Q4, b: Q4) -> Q4:
    """Hamilton product: rotation b first, then a."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@source
def quat_conj(q: Q4) -> Q4:
    """Conjugate; the inverse of a unit quaternion."""
    return (q[0], -q[1], -q[2], -q[3])


@source
def quat_rotate(q: Q4, v: V3) -> V3:
    """Rotate v by the unit quaternion q."""
    a = cross((q[1], q[2], q[3]), v)
    b = cross((q[1], q[2], q[3]), a)
    return (
        v[0] + 2.0 * (q[0] * a[0] + b[0]),
        v[1] + 2.0 * (q[0] * a[1] + b[1]),
        v[2] + 2.0 * (q[0] * a[2] + b[2]),
    )


@source
def quat_normalize(q: Q4) -> Q4:
    """Unit quaternion along q. Zero stays zero."""
    n2 = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]
    k = 1.0 / sqrt(pick(n2, 0.0, n2, n2 + 1.0))
    return (k * q[0], k * q[1], k * q[2], k * q[3])


@source
def quat_canonical(q: Q4) -> Q4:
    """The one of q and -q whose first nonzero component is positive."""
    key = pick(absolute(q[2]), 0.0, q[2], q[3])
    key = pick(absolute(q[1]), 0.0, q[1], key)
    key = pick(absolute(q[0]), 0.0, q[0], key)
    return (
        pick(key, 0.0, q[0], -q[0]),
        pick(key, 0.0, q[1], -q[1]),
        pick(key, 0.0, q[2], -q[2]),
        pick(key, 0.0, q[3], -q[3]),
    )


@source
def quat_to_matrix(q: Q4) -> M9:
    """Rotation matrix of a unit quaternion."""
    x2, y2, z2 = q[1] + q[1], q[2] + q[2], q[3] + q[3]
    xx, yy, zz = x2 * q[1], y2 * q[2], z2 * q[3]
    xy, xz, yz = x2 * q[2], x2 * q[3], y2 * q[3]
    wx, wy, wz = x2 * q[0], y2 * q[0], z2 * q[0]
    return (
        1.0 - (yy + zz),
        xy - wz,
        xz + wy,
        xy + wz,
        1.0 - (xx + zz),
        yz - wx,
        xz - wy,
        yz + wx,
        1.0 - (xx + yy),
    )


@source
def matrix_to_quat(R: M9) -> Q4:
    """Unit quaternion of a rotation matrix, the first nonzero component positive.

    The products of the components of 4 q q^T are sums of entries of R. The column of the largest diagonal entry
    (at least 1) is proportional to q and free of cancellation, for every R (Shepperd 1978).
    """
    # diagonal and off-diagonal entries of 4 q q^T
    ww = 1.0 + R[0] + R[4] + R[8]
    xx = 1.0 + R[0] - R[4] - R[8]
    yy = 1.0 - R[0] + R[4] - R[8]
    zz = 1.0 - R[0] - R[4] + R[8]
    wx, wy, wz = R[7] - R[5], R[2] - R[6], R[3] - R[1]
    xy, xz, yz = R[1] + R[3], R[2] + R[6], R[5] + R[7]
    # column of the largest diagonal entry: w against x, y against z, then the winners
    d1 = pick(xx, ww, xx, ww)
    a0, a1, a2, a3 = pick(xx, ww, wx, ww), pick(xx, ww, xx, wx), pick(xx, ww, xy, wy), pick(xx, ww, xz, wz)
    d2 = pick(zz, yy, zz, yy)
    b0, b1, b2, b3 = pick(zz, yy, wz, wy), pick(zz, yy, xz, xy), pick(zz, yy, yz, yy), pick(zz, yy, zz, yz)
    q = (pick(d2, d1, b0, a0), pick(d2, d1, b1, a1), pick(d2, d1, b2, a2), pick(d2, d1, b3, a3))
    return quat_canonical(quat_normalize(q))


@source
def quat_exp(w: V3) -> Q4:
    """Unit quaternion of the rotation vector w."""
    c, k = half_angle(dot3(w, w))
    return (c, k * w[0], k * w[1], k * w[2])


@source
def quat_log(q: Q4) -> V3:
    """Rotation vector of a unit quaternion, at most pi long; q and -q give the same one."""
    return sheet_log(quat_canonical(q))


@source
def sheet_log(u: Q4) -> V3:
    """Rotation vector of a unit quaternion, longer than pi where its scalar part is negative."""
    n2 = u[1] * u[1] + u[2] * u[2] + u[3] * u[3]
    # angle over length of the vector part; where that is tiny, the scalar part is 1 up to rounding
    n = sqrt(pick(n2, TINY_VECTOR, n2, n2 + 1.0))
    k = pick(n2, TINY_VECTOR, 2.0 * arctan2(n, u[0]) / n, 2.0 / pick(u[0], 0.5, u[0], absolute(u[0]) + 1.0))
    return (k * u[1], k * u[2], k * u[3])


@source
def exp(w: V3) -> M9:
    """Rotation matrix of the rotation vector w."""
    return quat_to_matrix(quat_exp(w))


@source
def log(R: M9) -> V3:
    """Rotation vector of a rotation matrix, at most pi long. At angle pi its first nonzero component is positive."""
    return quat_log(matrix_to_quat(R))


@source
def quadratic(a: Any, b: Any, c: Any, w: V3) -> M9:
    """``a 1 + b w^ + c w w^T``."""
    cx, cy, cz = c * w[0], c * w[1], c * w[2]
    bx, by, bz = b * w[0], b * w[1], b * w[2]
    xy, xz, yz = cx * w[1], cx * w[2], cy * w[2]
    return (a + cx * w[0], xy - bz, xz + by, xy + bz, a + cy * w[1], yz - bx, xz - by, yz + bx, a + cz * w[2])


@source
def dexp(w: V3) -> M9:
    """Left Jacobian ``1 + b w^ + c w^ w^``: Rdot R^T = hat(dexp(w) wdot) with R = exp(w)."""
    t = dot3(w, w)
    b, c = dexp_coefficients(t)
    return quadratic(1.0 - c * t, b, c, w)


@source
def dexp_right(w: V3) -> M9:
    """Right Jacobian, ``dexp(-w)`` = ``dexp(w)^T``: R^T Rdot = hat(dexp_right(w) wdot)."""
    return dexp((-w[0], -w[1], -w[2]))


@source
def dexp_inv(w: V3) -> M9:
    """Inverse of the left Jacobian, ``1 - w^/2 + e w^ w^``."""
    t = dot3(w, w)
    e, _ = dexp_inv_coefficients(t)
    return quadratic(1.0 - e * t, -0.5, e, w)


@source
def dexp_right_inv(w: V3) -> M9:
    """Inverse of the right Jacobian, ``dexp_inv(-w)`` = ``dexp_inv(w)^T``."""
    return dexp_inv((-w[0], -w[1], -w[2]))


@source
def jacobian_times(b: Any, c: Any, w: V3, x: V3) -> V3:
    """``x + b w x x + c w x (w x x)``: the Jacobian with coefficients b and c, applied to x."""
    y = cross(w, x)
    z = cross(w, y)
    return (x[0] + b * y[0] + c * z[0], x[1] + b * y[1] + c * z[1], x[2] + b * y[2] + c * z[2])


@source
def dexp_times(w: V3, x: V3) -> V3:
    """``dexp(w) x``."""
    b, c = dexp_coefficients(dot3(w, w))
    return jacobian_times(b, c, w, x)


@source
def dexp_inv_times(w: V3, x: V3) -> V3:
    """``dexp_inv(w) x``."""
    e, _ = dexp_inv_coefficients(dot3(w, w))
    return jacobian_times(-0.5, e, w, x)


@source
def dexp_derivative(w: V3, u: V3) -> M9:
    """Derivative of ``dexp(w) u`` by w: entry (i, j) is d(dexp(w) u)_i / dw_j."""
    t = dot3(w, w)
    b, c = dexp_coefficients(t)
    b1, c1 = dexp_coefficients_rate(t, b, c)
    wu = cross(w, u)
    wwu = cross(w, wu)
    g = (2.0 * (b1 * wu[0] + c1 * wwu[0]), 2.0 * (b1 * wu[1] + c1 * wwu[1]), 2.0 * (b1 * wu[2] + c1 * wwu[2]))
    return product_derivative(w, u, -b, c, g)


@source
def dexp_inv_derivative(w: V3, u: V3) -> M9:
    """Derivative of ``dexp_inv(w) u`` by w: entry (i, j) is d(dexp_inv(w) u)_i / dw_j."""
    e, e1 = dexp_inv_coefficients(dot3(w, w))
    wwu = cross(w, cross(w, u))
    g = (2.0 * e1 * wwu[0], 2.0 * e1 * wwu[1], 2.0 * e1 * wwu[2])
    return product_derivative(w, u, 0.5, e, g)


@source
def product_derivative(w: V3, u: V3, b: Any, c: Any, g: V3) -> M9:
    """``b u^ + c (w.u 1 + w u^T - 2 u w^T) + g w^T``; g holds the rates of the coefficients."""
    d = c * dot3(w, u)
    p = (g[0] - 2.0 * c * u[0], g[1] - 2.0 * c * u[1], g[2] - 2.0 * c * u[2])
    r = (c * w[0], c * w[1], c * w[2])
    return (
        d + r[0] * u[0] + p[0] * w[0],
        r[0] * u[1] + p[0] * w[1] - b * u[2],
        r[0] * u[2] + p[0] * w[2] + b * u[1],
        r[1] * u[0] + p[1] * w[0] + b * u[2],
        d + r[1] * u[1] + p[1] * w[1],
        r[1] * u[2] + p[1] * w[2] - b * u[0],
        r[2] * u[0] + p[2] * w[0] - b * u[1],
        r[2] * u[1] + p[2] * w[1] + b * u[0],
        d + r[2] * u[2] + p[2] * w[2],
    )


@source
def mrp_to_quat(z: V3) -> Q4:
    """Unit quaternion of modified Rodrigues parameters z = 4 tan(theta/4) axis."""
    k = 1.0 / (1.0 + 0.0625 * dot3(z, z))
    return (2.0 * k - 1.0, 0.5 * k * z[0], 0.5 * k * z[1], 0.5 * k * z[2])


@source
def quat_to_mrp(q: Q4) -> V3:
    """Modified Rodrigues parameters of a unit quaternion, at most 4 long; q and -q give the same."""
    u = quat_canonical(q)
    k = 4.0 / (1.0 + u[0])
    return (k * u[1], k * u[2], k * u[3])


@source
def mrp_dexp(z: V3) -> M9:
    """Left Jacobian of the chart: Rdot R^T = hat(mrp_dexp(z) zdot)."""
    n = 0.0625 * dot3(z, z)
    k = 1.0 / (1.0 + n)
    k2 = k * k
    return quadratic(k2 * (1.0 - n), 0.5 * k2, 0.125 * k2, z)


@source
def mrp_dexp_inv(z: V3) -> M9:
    """Inverse of ``mrp_dexp``, a polynomial: ``(1 - |z|^2/16) 1 - z^/2 + z z^T/8``."""
    return quadratic(1.0 - 0.0625 * dot3(z, z), -0.5, 0.125, z)
