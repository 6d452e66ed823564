"""Rotations as matrices and rotation vectors: exponential map, logarithm, Jacobians. Radians, any batch shape.

``dexp`` is the left Jacobian, ``dexp_right`` the right one: with R = exp(w),

    dR R^T = hat(dexp(w) dw)        R^T dR = hat(dexp_right(w) dw)

``dlog`` and ``dlog_right`` are their inverses; they exist for |w| < 2 pi. The transpose of ``dexp(w)`` is
``dexp_right(w)``. For unit quaternions see ``quaternion``.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from leastaction.spatial._face import Array, split, split_matrix, split_rotation, stack
from leastaction.spatial._source import so3 as source
from leastaction.spatial._source.vector import matmul, transpose


def hat(w: ArrayLike) -> Array:
    """Cross-product matrices (..., 3, 3) of vectors (..., 3): ``hat(a) @ b = a x b``."""
    return stack(source.hat(split(w, 3, "w")), (3, 3))


def vee(A: ArrayLike) -> Array:
    """Vectors (..., 3) of the antisymmetric parts of matrices (..., 3, 3); the inverse of ``hat``."""
    return stack(source.vee(split_matrix(A, "A")), (3,))


def exp(w: ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    return stack(source.exp(split(w, 3, "w")), (3, 3))


def log(R: ArrayLike) -> Array:
    """Rotation vectors (..., 3) of rotation matrices (..., 3, 3), at most pi long.

    At angle pi both signs of the axis are right; the one whose first nonzero component is positive is returned.
    """
    return stack(source.log(split_rotation(R, "R")), (3,))


def dexp(w: ArrayLike) -> Array:
    """Left Jacobians (..., 3, 3) of ``exp`` at w (..., 3): dR R^T = hat(dexp(w) dw)."""
    return stack(source.dexp(split(w, 3, "w")), (3, 3))


def dlog(w: ArrayLike) -> Array:
    """Inverses (..., 3, 3) of ``dexp(w)``: dw from dR R^T."""
    return stack(source.dexp_inv(split(w, 3, "w")), (3, 3))


def dexp_right(w: ArrayLike) -> Array:
    """Right Jacobians (..., 3, 3) of ``exp`` at w (..., 3): R^T dR = hat(dexp_right(w) dw)."""
    return stack(source.dexp_right(split(w, 3, "w")), (3, 3))


def dlog_right(w: ArrayLike) -> Array:
    """Inverses (..., 3, 3) of ``dexp_right(w)``: dw from R^T dR."""
    return stack(source.dexp_right_inv(split(w, 3, "w")), (3, 3))


def dexp_derivative(w: ArrayLike, u: ArrayLike) -> Array:
    """Derivatives (..., 3, 3) of ``dexp(w) @ u`` by w, for w and u (..., 3): rows the components, columns w."""
    return stack(source.dexp_derivative(split(w, 3, "w"), split(u, 3, "u")), (3, 3))


def dlog_derivative(w: ArrayLike, u: ArrayLike) -> Array:
    """Derivatives (..., 3, 3) of ``dlog(w) @ u`` by w, for w and u (..., 3): rows the components, columns w."""
    return stack(source.dexp_inv_derivative(split(w, 3, "w"), split(u, 3, "u")), (3, 3))


def mrp_dexp(z: ArrayLike) -> Array:
    """Left Jacobians (..., 3, 3) of the modified Rodrigues chart at z (..., 3), |z| = 4 tan(angle/4)."""
    return stack(source.mrp_dexp(split(z, 3, "z")), (3, 3))


def mrp_dlog(z: ArrayLike) -> Array:
    """Inverses (..., 3, 3) of ``mrp_dexp(z)``."""
    return stack(source.mrp_dexp_inv(split(z, 3, "z")), (3, 3))


def retract(R: ArrayLike, w: ArrayLike) -> Array:
    """``R exp(w)`` (..., 3, 3): move R (..., 3, 3) by the rotation vector w (..., 3) in body axes."""
    return stack(matmul(split_rotation(R, "R"), source.exp(split(w, 3, "w"))), (3, 3))


def local(R0: ArrayLike, R1: ArrayLike) -> Array:
    """The w (..., 3), at most pi long, with ``retract(R0, w) = R1``."""
    A, B = split_rotation(R0, "R0"), split_rotation(R1, "R1")
    return stack(source.log(matmul(transpose(A), B)), (3,))
