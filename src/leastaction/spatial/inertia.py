"""Spatial inertia: ten numbers (I6, h3, m) about a point, and the 6x6 matrix. SI units, any batch shape.

I6 = (xx, xy, xz, yy, yz, zz) is the second moment about the point (kg m^2), h3 the first moment (kg m), m the mass
(kg). Inertias about the same point, in the same axes, add.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.spatial._face import Array, array, matrix_of, split, split_pose, stack
from leastaction.spatial._source import inertia as source
from leastaction.spatial._source import se3, vector


def to_six(I: ArrayLike) -> Array:
    """Six numbers (..., 6) of symmetric matrices (..., 3, 3); raise where one is not symmetric."""
    a = array(I, (3, 3), "I")
    error = abs(a - a.swapaxes(-1, -2)).max(initial=0.0)
    if error > 1e-9 * abs(a).max(initial=0.0):
        raise ModelError(f"I: not symmetric, it differs from its transpose by {error:.1e}")
    return a[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]


def from_six(I6: ArrayLike) -> Array:
    """Symmetric matrices (..., 3, 3) of six numbers (..., 6)."""
    a = array(I6, (6,), "I6")
    return a[..., [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]


def at(T: ArrayLike, mass: ArrayLike, com: ArrayLike, I6: ArrayLike) -> tuple[Array, Array]:
    """(I6, h3) about the world origin, in world axes, of bodies at poses T (..., 4, 4).

    ``com`` (..., 3) is in the body frame; ``I6`` (..., 6) is about the centre of mass, in body axes.
    """
    P = split_pose(T, "T")
    m = array(mass, (), "mass")
    I, h = source.inertia_at(se3.rotation(P), se3.position(P), m, split(com, 3, "com"), split(I6, 6, "I6"))
    return stack(I, (6,)), stack(h, (3,))


def shift(I6: ArrayLike, h: ArrayLike, mass: ArrayLike, d: ArrayLike) -> tuple[Array, Array]:
    """(I6, h3) about the old point plus d (..., 3); the mass stays."""
    I, g = source.inertia_shift(split(I6, 6, "I6"), split(h, 3, "h"), array(mass, (), "mass"), split(d, 3, "d"))
    return stack(I, (6,)), stack(g, (3,))


def add(
    A: tuple[ArrayLike, ArrayLike, ArrayLike], B: tuple[ArrayLike, ArrayLike, ArrayLike]
) -> tuple[Array, Array, Array]:
    """(I6, h3, mass) of two bodies together, both about the same point in the same axes."""
    a = (split(A[0], 6, "I6"), split(A[1], 3, "h"), array(A[2], (), "mass"))
    b = (split(B[0], 6, "I6"), split(B[1], 3, "h"), array(B[2], (), "mass"))
    I, h, m = source.inertia_sum(a, b)
    return stack(I, (6,)), stack(h, (3,)), stack((m,), ())


def matrix(I6: ArrayLike, h: ArrayLike, mass: ArrayLike) -> Array:
    """Spatial inertia matrices (..., 6, 6), twist to momentum: [[I, h^], [-h^, m 1]]."""
    return matrix_of(vector.inertia_times, split(I6, 6, "I6"), split(h, 3, "h"), array(mass, (), "mass"))
