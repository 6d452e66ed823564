"""Algebra of small tuples: 3-vectors, 3x3 matrices (nine numbers, row by row), twists and wrenches.

Twists are (angular; linear) and wrenches (torque; force), both six numbers. A spatial inertia about a point o
is ten numbers (I6, h3, m): the second moment about o (xx, xy, xz, yy, yz, zz), the first moment m (c - o) and
the mass.
"""

from __future__ import annotations

from typing import Any

from leastaction.spatial._source.scalar import source

V3 = tuple[Any, Any, Any]
V6 = tuple[Any, Any, Any, Any, Any, Any]
M9 = tuple[Any, Any, Any, Any, Any, Any, Any, Any, Any]


@source
def cross(a: V3, b: V3) -> V3:
    """Vector product."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@source
def dot3(a: V3, b: V3) -> Any:
    """Scalar product of 3-vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@source
def add3(a: V3, b: V3) -> V3:
    """Sum of 3-vectors."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@source
def sub3(a: V3, b: V3) -> V3:
    """Difference of 3-vectors."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@source
def scale3(s: Any, a: V3) -> V3:
    """Multiple of a 3-vector."""
    return (s * a[0], s * a[1], s * a[2])


@source
def axpy3(s: Any, a: V3, b: V3) -> V3:
    """``s a + b`` for 3-vectors."""
    return (b[0] + s * a[0], b[1] + s * a[1], b[2] + s * a[2])


@source
def matvec(R: M9, a: V3) -> V3:
    """``R a``."""
    return (
        R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
        R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
        R[6] * a[0] + R[7] * a[1] + R[8] * a[2],
    )


@source
def tmatvec(R: M9, a: V3) -> V3:
    """``R^T a``."""
    return (
        R[0] * a[0] + R[3] * a[1] + R[6] * a[2],
        R[1] * a[0] + R[4] * a[1] + R[7] * a[2],
        R[2] * a[0] + R[5] * a[1] + R[8] * a[2],
    )


@source
def matmul(A: M9, B: M9) -> M9:
    """``A B`` for 3x3 matrices."""
    return (
        A[0] * B[0] + A[1] * B[3] + A[2] * B[6],
        A[0] * B[1] + A[1] * B[4] + A[2] * B[7],
        A[0] * B[2] + A[1] * B[5] + A[2] * B[8],
        A[3] * B[0] + A[4] * B[3] + A[5] * B[6],
        A[3] * B[1] + A[4] * B[4] + A[5] * B[7],
        A[3] * B[2] + A[4] * B[5] + A[5] * B[8],
        A[6] * B[0] + A[7] * B[3] + A[8] * B[6],
        A[6] * B[1] + A[7] * B[4] + A[8] * B[7],
        A[6] * B[2] + A[7] * B[5] + A[8] * B[8],
    )


@source
def transpose(A: M9) -> M9:
    """Transpose of a 3x3 matrix."""
    return (A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8])


@source
def ang(v: V6) -> V3:
    """Angular part of a twist, torque part of a wrench."""
    return (v[0], v[1], v[2])


@source
def lin(v: V6) -> V3:
    """Linear part of a twist, force part of a wrench."""
    return (v[3], v[4], v[5])


@source
def join(a: V3, b: V3) -> V6:
    """Twist or wrench from its two halves."""
    return (a[0], a[1], a[2], b[0], b[1], b[2])


@source
def dot6(a: V6, b: V6) -> Any:
    """Pairing of a wrench with a twist."""
    return (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) + (a[3] * b[3] + a[4] * b[4] + a[5] * b[5])


@source
def add6(a: V6, b: V6) -> V6:
    """Sum of twists or wrenches."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])


@source
def sub6(a: V6, b: V6) -> V6:
    """Difference of twists or wrenches."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4], a[5] - b[5])


@source
def scale6(s: Any, a: V6) -> V6:
    """Multiple of a twist or wrench."""
    return (s * a[0], s * a[1], s * a[2], s * a[3], s * a[4], s * a[5])


@source
def axpy6(s: Any, a: V6, b: V6) -> V6:
    """``s a + b`` for twists or wrenches."""
    return (b[0] + s * a[0], b[1] + s * a[1], b[2] + s * a[2], b[3] + s * a[3], b[4] + s * a[4], b[5] + s * a[5])


@source
def ad(v: V6, s: V6) -> V6:
    """Lie bracket of twists, ad_v s."""
    a = cross((v[0], v[1], v[2]), (s[0], s[1], s[2]))
    b = cross((v[3], v[4], v[5]), (s[0], s[1], s[2]))
    c = cross((v[0], v[1], v[2]), (s[3], s[4], s[5]))
    return (a[0], a[1], a[2], b[0] + c[0], b[1] + c[1], b[2] + c[2])


@source
def ad_dual(v: V6, f: V6) -> V6:
    """ad_v^T f, so that f . ad_v s = (ad_v^T f) . s. The force of motion v on momentum f is minus this."""
    a = cross((f[0], f[1], f[2]), (v[0], v[1], v[2]))
    b = cross((f[3], f[4], f[5]), (v[3], v[4], v[5]))
    c = cross((f[3], f[4], f[5]), (v[0], v[1], v[2]))
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], c[0], c[1], c[2])


@source
def inertia_times(I: V6, h: V3, m: Any, v: V6) -> V6:
    """Momentum of a spatial inertia (I6, h3, m) moving with twist v, about the same point."""
    a = cross(h, (v[3], v[4], v[5]))
    b = cross((v[0], v[1], v[2]), h)
    return (
        I[0] * v[0] + I[1] * v[1] + I[2] * v[2] + a[0],
        I[1] * v[0] + I[3] * v[1] + I[4] * v[2] + a[1],
        I[2] * v[0] + I[4] * v[1] + I[5] * v[2] + a[2],
        m * v[3] + b[0],
        m * v[4] + b[1],
        m * v[5] + b[2],
    )
