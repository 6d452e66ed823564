"""Spatial inertia as ten numbers (I6, h3, m) about a point o, in world axes.

I = (xx, xy, xz, yy, yz, zz) is the second moment about o, h = m (c - o) the first moment, m the mass. Inertias
about the same point in the same axes add entry by entry.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.scalar import source
from leastaction.spatial._source.vector import M9, V3, V6, add3, add6, axpy3, dot3, matvec, scale3

S10 = tuple[V6, V3, Any]


@source
def rotate6(R: M9, I: V6) -> V6:
    """``R I R^T`` of a symmetric matrix, six numbers in and out."""
    # rows of R I
    a = matvec((I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5]), (R[0], R[1], R[2]))
    b = matvec((I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5]), (R[3], R[4], R[5]))
    c = matvec((I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5]), (R[6], R[7], R[8]))
    # times the rows of R
    x, y, z = (R[0], R[1], R[2]), (R[3], R[4], R[5]), (R[6], R[7], R[8])
    return (dot3(a, x), dot3(a, y), dot3(a, z), dot3(b, y), dot3(b, z), dot3(c, z))


@source
def second_moment(a: V3, b: V3) -> V6:
    """Symmetric part of ``a.b 1 - a b^T``. A point mass m at x has the one of m x and x."""
    xx, yy, zz = a[0] * b[0], a[1] * b[1], a[2] * b[2]
    return (
        yy + zz,
        -0.5 * (a[0] * b[1] + a[1] * b[0]),
        -0.5 * (a[0] * b[2] + a[2] * b[0]),
        xx + zz,
        -0.5 * (a[1] * b[2] + a[2] * b[1]),
        xx + yy,
    )


@source
def inertia_at(R: M9, p: V3, m: Any, c: V3, I: V6) -> tuple[V6, V3]:
    """Inertia about the origin, in world axes, of a body at the pose (R, p).

    m is the mass (kg), c the centre of mass in the body frame (m), I the moment of inertia about the centre of
    mass in body axes (kg m^2). Returns I6 about the origin (kg m^2) and h3 = m times the centre of mass (kg m).
    """
    x = add3(matvec(R, c), p)
    h = scale3(m, x)
    return add6(rotate6(R, I), second_moment(h, x)), h


@source
def inertia_sum(A: S10, B: S10) -> S10:
    """Inertia of two bodies together, about the same point in the same axes."""
    return add6(A[0], B[0]), add3(A[1], B[1]), A[2] + B[2]


@source
def inertia_shift(I: V6, h: V3, m: Any, d: V3) -> tuple[V6, V3]:
    """The same inertia about the point o + d: new (I6, h3). The mass stays."""
    # with x the first moment's arm: S(x - d) - S(x) = S(d) - 2 S(x, d), where S = second_moment
    g = axpy3(-0.5 * m, d, h)
    S = second_moment(g, d)
    new = (
        I[0] - 2.0 * S[0],
        I[1] - 2.0 * S[1],
        I[2] - 2.0 * S[2],
        I[3] - 2.0 * S[3],
        I[4] - 2.0 * S[4],
        I[5] - 2.0 * S[5],
    )
    return new, axpy3(-m, d, h)
