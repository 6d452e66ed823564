"""Unit quaternions (w, x, y, z), Hamilton, body to world, any batch shape (..., 4).

q and -q are the same rotation. Other software that stores (x, y, z, w) is served by ``from_xyzw`` and ``to_xyzw``.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.spatial._face import Array, array, split, split_rotation, split_unit_quaternion, stack
from leastaction.spatial._source import so3 as source


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Hamilton product a b (..., 4): as rotations, first b and then a."""
    return stack(source.quat_mul(split(a, 4, "a"), split(b, 4, "b")), (4,))


def conjugate(q: ArrayLike) -> Array:
    """Conjugate (..., 4): the inverse rotation of a unit quaternion."""
    return stack(source.quat_conj(split(q, 4, "q")), (4,))


def normalize(q: ArrayLike) -> Array:
    """Unit quaternions (..., 4) along q; raise where q is zero."""
    a = array(q, (4,), "q")
    # scale by the largest component first, so that neither tiny nor huge input loses the length
    largest = abs(a).max(axis=-1, keepdims=True)
    if (largest == 0.0).any():
        raise ModelError("q: a zero quaternion has no direction; give a nonzero one")
    return stack(source.quat_normalize(split(a / largest, 4, "q")), (4,))


def canonical(q: ArrayLike) -> Array:
    """Of q and -q (..., 4) the one whose first nonzero component is positive."""
    return stack(source.quat_canonical(split(q, 4, "q")), (4,))


def rotate(q: ArrayLike, x: ArrayLike) -> Array:
    """Vectors x (..., 3) rotated by unit quaternions q (..., 4)."""
    return stack(source.quat_rotate(split_unit_quaternion(q, "q"), split(x, 3, "x")), (3,))


def to_matrix(q: ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    return stack(source.quat_to_matrix(split_unit_quaternion(q, "q")), (3, 3))


def from_matrix(R: ArrayLike) -> Array:
    """Unit quaternions (..., 4) of rotation matrices (..., 3, 3), the first nonzero component positive."""
    return stack(source.matrix_to_quat(split_rotation(R, "R")), (4,))


def exp(w: ArrayLike) -> Array:
    """Unit quaternions (..., 4) of rotation vectors (..., 3)."""
    return stack(source.quat_exp(split(w, 3, "w")), (4,))


def log(q: ArrayLike) -> Array:
    """Rotation vectors (..., 3) of unit quaternions (..., 4), at most pi long; the same for q and -q."""
    return stack(source.quat_log(split_unit_quaternion(q, "q")), (3,))


def from_mrp(z: ArrayLike) -> Array:
    """Unit quaternions (..., 4) of modified Rodrigues parameters (..., 3), z = 4 tan(angle/4) axis."""
    return stack(source.mrp_to_quat(split(z, 3, "z")), (4,))


def to_mrp(q: ArrayLike) -> Array:
    """Modified Rodrigues parameters (..., 3) of unit quaternions (..., 4), at most 4 long."""
    return stack(source.quat_to_mrp(split_unit_quaternion(q, "q")), (3,))


def from_xyzw(q: ArrayLike) -> Array:
    """(w, x, y, z) from (x, y, z, w), both (..., 4)."""
    return array(q, (4,), "q")[..., [3, 0, 1, 2]]


def to_xyzw(q: ArrayLike) -> Array:
    """(x, y, z, w) from (w, x, y, z), both (..., 4)."""
    return array(q, (4,), "q")[..., [1, 2, 3, 0]]


def retract(q: ArrayLike, w: ArrayLike) -> Array:
    """``q exp(w)`` (..., 4), of unit length: move q (..., 4) by the rotation vector w (..., 3) in body axes."""
    moved = source.quat_mul(split_unit_quaternion(q, "q"), source.quat_exp(split(w, 3, "w")))
    return stack(source.quat_normalize(moved), (4,))


def local(q0: ArrayLike, q1: ArrayLike) -> Array:
    """The w (..., 3), at most pi long, for which ``retract(q0, w)`` is the rotation of q1 (..., 4)."""
    a, b = split_unit_quaternion(q0, "q0"), split_unit_quaternion(q1, "q1")
    return stack(source.quat_log(source.quat_mul(source.quat_conj(a), b)), (3,))
