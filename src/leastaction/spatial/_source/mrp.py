"""Modified Rodrigues parameters as a chart of rotations: what the Galerkin integrators need besides ``so3``.

The chart is on the parent side, R = mrp(z) R0 with |z| = 4 tan(theta / 4). J is its left Jacobian, u the rate of z,
m a fixed vector; n = |z|^2 / 16, k = 1 / (1 + n), c = J^T m. The theory page of the Galerkin method derives them.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.scalar import source
from leastaction.spatial._source.so3 import mrp_dexp
from leastaction.spatial._source.vector import M9, V3, cross, dot3, scale3, tmatvec


@source
def outer(a: V3, b: V3) -> M9:
    """``a b^T``."""
    return (
        a[0] * b[0], a[0] * b[1], a[0] * b[2],
        a[1] * b[0], a[1] * b[1], a[1] * b[2],
        a[2] * b[0], a[2] * b[1], a[2] * b[2],
    )  # fmt: skip


@source
def add9(A: M9, B: M9) -> M9:
    """Sum of two matrices."""
    return (
        A[0] + B[0], A[1] + B[1], A[2] + B[2], A[3] + B[3], A[4] + B[4], A[5] + B[5], A[6] + B[6], A[7] + B[7],
        A[8] + B[8],
    )  # fmt: skip


@source
def scale9(s: Any, A: M9) -> M9:
    """Multiple of a matrix."""
    return (s * A[0], s * A[1], s * A[2], s * A[3], s * A[4], s * A[5], s * A[6], s * A[7], s * A[8])


@source
def spread(a: Any, b: V3) -> M9:
    """``a 1 + b^``: a multiple of the identity plus a cross-product matrix."""
    return (a, -b[2], b[1], b[2], a, -b[0], -b[1], b[0], a)


@source
def mrp_jacobian_rate(z: V3, u: V3) -> M9:
    """Rate of J when z moves at u."""
    k = 1.0 / (1.0 + 0.0625 * dot3(z, z))
    zu = dot3(z, u)
    direct = add9(spread(-0.125 * zu, scale3(0.5, u)), scale9(0.125, add9(outer(z, u), outer(u, z))))
    return add9(scale9(k * k, direct), scale9(-0.25 * k * zu, mrp_dexp(z)))


@source
def mrp_w(z: V3, m: V3) -> M9:
    """W = d(J^T m) / dz at fixed m."""
    k = 1.0 / (1.0 + 0.0625 * dot3(z, z))
    c = tmatvec(mrp_dexp(z), m)
    direct = add9(outer(scale3(0.125, z), m), outer(scale3(-0.125, m), z))
    direct = add9(direct, spread(0.125 * dot3(z, m), scale3(0.5, m)))
    return add9(scale9(k * k, direct), outer(scale3(-0.25 * k, c), z))


@source
def mrp_z(z: V3, u: V3, m: V3) -> M9:
    """Z = d(W u) / dz at fixed u and m."""
    k = 1.0 / (1.0 + 0.0625 * dot3(z, z))
    zu, zm, mu = dot3(z, u), dot3(z, m), dot3(m, u)
    c = tmatvec(mrp_dexp(z), m)
    a = cross(m, u)
    Nu = (
        0.125 * (z[0] * mu + zm * u[0] - m[0] * zu) + 0.5 * a[0],
        0.125 * (z[1] * mu + zm * u[1] - m[1] * zu) + 0.5 * a[1],
        0.125 * (z[2] * mu + zm * u[2] - m[2] * zu) + 0.5 * a[2],
    )
    g = 0.25 * k * k * k
    e = 0.03125 * k * k * zu
    left = (-g * Nu[0] + e * c[0], -g * Nu[1] + e * c[1], -g * Nu[2] + e * c[2])
    first = add9(outer(u, m), outer(scale3(-1.0, m), u))
    zero = zu * 0.0
    first = scale9(0.125 * k * k, add9(first, spread(mu, (zero, zero, zero))))
    last = scale9(-0.25 * k, add9(scale9(zu, mrp_w(z, m)), outer(c, u)))
    return add9(add9(first, outer(left, z)), last)


@source
def mrp_dq(z: V3, c: V3) -> M9:
    """dQ(z, c) = d(Q(z) c) / dz, with Q the quadratic part of the inverse Jacobian; linear in z."""
    zero = z[0] * 0.0
    first = spread(0.125 * dot3(z, c), (zero, zero, zero))
    return add9(first, scale9(0.125, add9(outer(z, c), outer(scale3(-1.0, c), z))))
