"""Rigid motions as 4x4 pose matrices: exponential map, adjoints, Jacobians. Metres, radians, any batch shape.

Twists are (angular; linear) and wrenches (torque; force), (..., 6). ``dexp`` is the left Jacobian, ``dexp_right``
the right one: with T = exp(V),

    dT T^-1 = hat(dexp(V) dV)        T^-1 dT = hat(dexp_right(V) dV)

``dlog`` and ``dlog_right`` are their inverses; they exist while the angular part is shorter than 2 pi. The maps of
wrenches are the transposes: ``Ad(T).T``, ``dexp(V).T`` and so on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leastaction.spatial._face import (
    Array,
    array,
    matrix_of,
    split,
    split_pose,
    split_rotation,
    stack,
    stack_pose,
)
from leastaction.spatial._source import se3 as source
from leastaction.spatial._source import vector


def pose(R: ArrayLike, p: ArrayLike) -> Array:
    """Poses (..., 4, 4) from rotation matrices (..., 3, 3) and positions (..., 3) in metres."""
    return stack_pose(source.pose(split_rotation(R, "R"), split(p, 3, "p")))


def rotation(T: ArrayLike) -> Array:
    """Rotation matrices (..., 3, 3) of poses (..., 4, 4)."""
    return stack(source.rotation(split_pose(T, "T")), (3, 3))


def position(T: ArrayLike) -> Array:
    """Positions (..., 3) of poses (..., 4, 4)."""
    return stack(source.position(split_pose(T, "T")), (3,))


def compose(A: ArrayLike, B: ArrayLike) -> Array:
    """``A B`` (..., 4, 4): first the motion B, then A."""
    return stack_pose(source.compose(split_pose(A, "A"), split_pose(B, "B")))


def inverse(T: ArrayLike) -> Array:
    """Inverse poses (..., 4, 4)."""
    return stack_pose(source.inverse(split_pose(T, "T")))


def act(T: ArrayLike, x: ArrayLike) -> Array:
    """Points ``R x + p`` (..., 3) of x (..., 3)."""
    return stack(source.act(split_pose(T, "T"), split(x, 3, "x")), (3,))


def hat(V: ArrayLike) -> Array:
    """4x4 matrices (..., 4, 4) of twists (..., 6); ``exp`` is their matrix exponential."""
    V = array(V, (6,), "V")
    out = np.zeros((*V.shape[:-1], 4, 4))
    out[..., 2, 1], out[..., 0, 2], out[..., 1, 0] = V[..., 0], V[..., 1], V[..., 2]
    out[..., 1, 2], out[..., 2, 0], out[..., 0, 1] = -V[..., 0], -V[..., 1], -V[..., 2]
    out[..., :3, 3] = V[..., 3:]
    return out


def vee(A: ArrayLike) -> Array:
    """Twists (..., 6) of matrices (..., 4, 4); the inverse of ``hat``."""
    A = array(A, (4, 4), "A")
    w = (A[..., 2, 1] - A[..., 1, 2], A[..., 0, 2] - A[..., 2, 0], A[..., 1, 0] - A[..., 0, 1])
    return stack((0.5 * w[0], 0.5 * w[1], 0.5 * w[2], A[..., 0, 3], A[..., 1, 3], A[..., 2, 3]), (6,))


def exp(V: ArrayLike) -> Array:
    """Poses (..., 4, 4) reached in unit time at constant twists V (..., 6)."""
    return stack_pose(source.exp(split(V, 6, "V")))


def log(T: ArrayLike) -> Array:
    """Twists (..., 6) with ``exp(log(T)) = T``, their angular part at most pi long."""
    return stack(source.log(split_pose(T, "T")), (6,))


def Ad(T: ArrayLike) -> Array:
    """Matrices (..., 6, 6) that carry twists by T: [[R, 0], [p^ R, R]]. Its transpose pulls wrenches back."""
    return matrix_of(source.Ad, split_pose(T, "T"))


def Ad_inv(T: ArrayLike) -> Array:
    """Inverses (..., 6, 6) of ``Ad(T)``. Its transpose carries wrenches by T."""
    return matrix_of(source.Ad_inv, split_pose(T, "T"))


def ad(V: ArrayLike) -> Array:
    """Matrices (..., 6, 6) of the Lie bracket with V (..., 6): [[w^, 0], [v^, w^]]."""
    return matrix_of(vector.ad, split(V, 6, "V"))


def adD(F: ArrayLike) -> Array:
    """Antisymmetric matrices (..., 6, 6) of wrenches F (..., 6): ``adD(F) @ V = ad(V).T @ F``."""
    parts = split(F, 6, "F")
    return matrix_of(lambda f, v: vector.ad_dual(v, f), parts)


def dexp(V: ArrayLike) -> Array:
    """Left Jacobians (..., 6, 6) of ``exp`` at V (..., 6): dT T^-1 = hat(dexp(V) dV)."""
    return matrix_of(source.dexp, split(V, 6, "V"))


def dlog(V: ArrayLike) -> Array:
    """Inverses (..., 6, 6) of ``dexp(V)``: dV from dT T^-1."""
    return matrix_of(source.dexp_inv, split(V, 6, "V"))


def dexp_right(V: ArrayLike) -> Array:
    """Right Jacobians (..., 6, 6) of ``exp`` at V (..., 6): T^-1 dT = hat(dexp_right(V) dV)."""
    return matrix_of(source.dexp_right, split(V, 6, "V"))


def dlog_right(V: ArrayLike) -> Array:
    """Inverses (..., 6, 6) of ``dexp_right(V)``: dV from T^-1 dT."""
    return matrix_of(source.dexp_right_inv, split(V, 6, "V"))


def retract(T: ArrayLike, V: ArrayLike) -> Array:
    """``T exp(V)`` (..., 4, 4): move T (..., 4, 4) by the twist V (..., 6) in body axes."""
    return stack_pose(source.compose(split_pose(T, "T"), source.exp(split(V, 6, "V"))))


def local(T0: ArrayLike, T1: ArrayLike) -> Array:
    """The V (..., 6), its angular part at most pi long, with ``retract(T0, V) = T1``."""
    A, B = split_pose(T0, "T0"), split_pose(T1, "T1")
    return stack(source.log(source.compose(source.inverse(A), B)), (6,))
