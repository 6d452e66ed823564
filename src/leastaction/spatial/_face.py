"""From arrays to tuples of components and back: how the NumPy face calls the shared source.

The source works on tuples of scalars; an array of shape (..., 3) is passed as three arrays of shape (...), so a
whole batch is one call and leading shapes broadcast. Inputs are checked here, so that no NaN travels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leastaction.errors import ModelError

Array = NDArray[np.float64]

# Products of a few numbers up to this size do not overflow, so a finite input gives a finite result.
LARGEST = 1e60
# How far a rotation matrix or a unit quaternion may be from exact: far above rounding, far below a wrong input.
UNIT_TOLERANCE = 1e-6


def array(x: ArrayLike, tail: tuple[int, ...], name: str) -> Array:
    """Float array of shape (..., *tail); raise where the shape is wrong or an entry is not finite or absurdly large."""
    try:
        a = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name}: not an array of real numbers ({error})") from error
    if a.shape[max(a.ndim - len(tail), 0) :] != tail:
        wanted = ", ".join(str(n) for n in ("...", *tail))
        raise ModelError(f"{name}: shape {a.shape}, expected ({wanted})")
    if not (np.abs(a) <= LARGEST).all():
        raise ModelError(f"{name}: contains NaN, infinity or a number beyond {LARGEST:.0e}; give finite numbers")
    return a


def split(x: ArrayLike, n: int, name: str) -> Any:
    """Components of vectors (..., n): a tuple of n arrays of shape (...)."""
    a = array(x, (n,), name)
    return tuple(a[..., i] for i in range(n))


def split_matrix(x: ArrayLike, name: str) -> Any:
    """Components of 3x3 matrices (..., 3, 3): nine arrays, row by row."""
    a = array(x, (3, 3), name)
    return tuple(a[..., i, j] for i in range(3) for j in range(3))


def split_rotation(x: ArrayLike, name: str) -> Any:
    """Components of rotation matrices (..., 3, 3): nine arrays, row by row; raise where one is not a rotation."""
    a = array(x, (3, 3), name)
    error = np.abs(a @ np.swapaxes(a, -1, -2) - np.eye(3)).max(initial=0.0)
    if error > UNIT_TOLERANCE:
        raise ModelError(f"{name}: not a rotation matrix, R R^T differs from the identity by {error:.1e}")
    if (np.linalg.det(a) < 0).any():
        raise ModelError(f"{name}: not a rotation matrix, its determinant is -1 (a reflection)")
    return split_matrix(a, name)


def split_pose(x: ArrayLike, name: str) -> Any:
    """Components of poses (..., 4, 4): twelve arrays, the rotation row by row and then the position."""
    a = array(x, (4, 4), name)
    if (np.abs(a[..., 3, :] - np.array([0.0, 0.0, 0.0, 1.0])) > UNIT_TOLERANCE).any():
        raise ModelError(f"{name}: not a pose, its last row is not (0, 0, 0, 1)")
    return split_rotation(a[..., :3, :3], name) + tuple(a[..., i, 3] for i in range(3))


def split_unit_quaternion(x: ArrayLike, name: str) -> Any:
    """Components of unit quaternions (..., 4): four arrays; raise where one is not of unit length."""
    a = array(x, (4,), name)
    error = np.abs(np.sqrt((a * a).sum(axis=-1)) - 1.0).max(initial=0.0)
    if error > UNIT_TOLERANCE:
        raise ModelError(f"{name}: not a unit quaternion, its length is off by {error:.1e}; normalize it first")
    return split(a, 4, name)


def stack(parts: Any, tail: tuple[int, ...]) -> Array:
    """Array of shape (..., *tail) from its components, row by row; the reverse of the functions above."""
    batch = np.broadcast_shapes(*(np.shape(part) for part in parts))
    out = np.empty((*batch, len(parts)))
    for i, part in enumerate(parts):
        out[..., i] = part
    return out.reshape((*batch, *tail))


def stack_pose(parts: Any) -> Array:
    """Poses (..., 4, 4) from their twelve components."""
    # three rows of four, then the last row
    rows = (*parts[0:3], parts[9], *parts[3:6], parts[10], *parts[6:9], parts[11])
    return stack((*rows, 0.0, 0.0, 0.0, 1.0), (4, 4))


def matrix_of(function: Callable[..., Any], *arguments: Any) -> Array:
    """Matrices (..., 6, 6) of a map that is linear in its last argument, a 6-tuple, given the other arguments.

    The six unit vectors go in as one more batch axis, so the source is called once.
    """
    wide = (deepen(argument) for argument in arguments)
    columns = function(*wide, tuple(np.eye(6)))
    return np.ascontiguousarray(stack(columns, (6,)).swapaxes(-1, -2))


def deepen(argument: Any) -> Any:
    """Give every component of a tuple, or a bare component, one more axis at the end."""
    if isinstance(argument, tuple):
        return tuple(deepen(part) for part in argument)
    return np.asarray(argument)[..., None]
