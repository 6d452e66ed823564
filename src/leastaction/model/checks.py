"""Checks of single values that a user gives: names, numbers, vectors, axes, quaternions.

Every function takes the value and ``where`` (the words that name it in an error, such as ``joint 'elbow': axis``)
and returns the value in its stored form: Python floats, or read-only float arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import ModelError

FloatArray = NDArray[np.float64]

WORLD = "world"
"""Reserved name of the fixed world."""

LARGEST = 1e60
"""Numbers beyond this are refused: products of a few of them would overflow, and none has a meaning here."""

# a vector whose squared length is this close to one is left untouched, so that normalising twice changes nothing
_UNIT_SLACK = 16 * np.finfo(float).eps


def frozen(array: Any) -> FloatArray:
    """A read-only float copy of ``array``."""
    out = np.array(array, dtype=np.float64)
    out.setflags(write=False)
    return out


def quoted(names: Any) -> str:
    """Names in quotes, separated by commas, for error messages."""
    return ", ".join(f"'{name}'" for name in names) or "none"


def printable(text: Any) -> str:
    """Words from a file for a message or a page: what does not print, such as codes for a terminal, as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


MAX_NAME = 1000
"""Longest name, in characters."""

# line and paragraph separators, and marks that turn the direction of what follows
_UNSEEN = frozenset((0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))


def check_name(value: Any, what: str) -> str:
    """A nonempty string without control characters (C0, C1) and halves of characters, which no file can hold."""
    if not isinstance(value, str):
        raise ModelError(f"{what}: a name must be a string, got {value!r}.")
    if not value.strip():
        raise ModelError(f"{what}: a name must not be empty.")
    if len(value) > MAX_NAME:
        long = f"{len(value)} characters, at most {MAX_NAME} are taken"
        raise ModelError(f"{what}: the name {value[:40]!r}... has {long}.")
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in value):
        raise ModelError(f"{what}: the name {value!r} has control characters; use printable ones.")
    if any(0xD800 <= ord(c) < 0xE000 or ord(c) in _UNSEEN for c in value):
        raise ModelError(
            f"{what}: the name {value!a} has characters that are none by themselves, or that hide or turn others; "
            "use printable ones."
        )
    return value


def check_array(value: Any, where: str) -> FloatArray:
    """A finite float array of any shape; strings, booleans and objects are refused."""
    # ragged lists and objects with their own rules end up here as an exception of NumPy
    try:
        raw = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise ModelError(f"{where}: expected numbers, got {_shown(value)}.") from error
    if raw.dtype.kind not in "iuf":
        if raw.size == 0 and raw.dtype.kind == "O":
            return np.zeros(raw.shape)
        raise ModelError(f"{where}: expected numbers, got {_shown(value)}.")
    array = raw.astype(float)
    # NaN fails the comparison as well
    if not (np.abs(array) <= LARGEST).all():
        raise ModelError(f"{where}: every number must be finite and below {LARGEST:.0e}, got {_shown(value)}.")
    return array


def _shown(value: Any, length: int = 200) -> str:
    """A value in one line, not too long."""
    line = " ".join(repr(value).split())
    return line if len(line) <= length else line[: length - 3] + "..."


def check_number(
    value: Any, where: str, *, positive: bool = False, nonnegative: bool = False, infinite: bool = False
) -> float:
    """One number as a Python float; ``infinite`` allows plus infinity."""
    # numbers only: float() would also take strings and booleans
    if isinstance(value, (str, bytes, bool, np.bool_)) or (not np.isscalar(value) and np.ndim(value) != 0):
        raise ModelError(f"{where}: expected a number, got {value!r}.")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{where}: expected a number, got {value!r}.") from error
    if not abs(number) <= LARGEST and not (infinite and number == np.inf):
        raise ModelError(f"{where}: must be a finite number below {LARGEST:.0e}, got {number}.")
    # sign
    if positive and number <= 0:
        raise ModelError(f"{where}: must be positive, got {number}.")
    if nonnegative and number < 0:
        raise ModelError(f"{where}: must not be negative, got {number}.")
    return number


def check_vector(value: Any, n: int, where: str) -> FloatArray:
    """n finite numbers as a read-only array (n,)."""
    array = check_array(value, where)
    if array.shape != (n,):
        raise ModelError(f"{where}: expected {n} numbers, got shape {array.shape}: {value!r}.")
    return frozen(array)


def unit(array: FloatArray) -> FloatArray:
    """``array`` divided by its length; unchanged to the last bit when it already has length one."""
    largest = float(np.abs(array).max())
    if largest <= 1.0 + _UNIT_SLACK and abs(float(array @ array) - 1.0) <= _UNIT_SLACK:
        return array
    # divide by the largest component first, so that neither tiny nor huge vectors lose their direction
    scaled = array / largest
    return np.asarray(scaled / np.sqrt(float(scaled @ scaled)))


def check_axis(value: Any, where: str) -> FloatArray:
    """A direction as a read-only unit vector (3,)."""
    array = check_vector(value, 3, where)
    if not array.any():
        raise ModelError(f"{where}: the axis is zero; give a direction such as (0, 0, 1).")
    return frozen(unit(array))


def check_quaternion(value: Any, where: str) -> FloatArray:
    """A quaternion (w, x, y, z), normalised, as a read-only array (4,)."""
    array = check_vector(value, 4, where)
    if not array.any():
        raise ModelError(f"{where}: the quaternion is zero; the identity is (1, 0, 0, 0).")
    return frozen(unit(array))


def check_flag(value: Any, where: str) -> bool:
    """True or False, nothing else."""
    if not isinstance(value, (bool, np.bool_)):
        raise ModelError(f"{where}: expected True or False, got {value!r}.")
    return bool(value)


def check_contact(friction: Any, restitution: Any, where: str) -> tuple[float, float]:
    """Friction coefficient and restitution of a contact as Python floats."""
    mu = check_number(friction, f"{where}: friction", nonnegative=True)
    e = check_number(restitution, f"{where}: restitution", nonnegative=True)
    if e > 1:
        raise ModelError(f"{where}: restitution must lie between 0 and 1, got {e}.")
    return mu, e


def check_heights(
    heights: Any, spacing: Any, normal: FloatArray, where: str = "ground"
) -> tuple[FloatArray, FloatArray]:
    """Checked grid of heights and its two spacings."""
    grid = check_array(heights, f"{where}: heights")
    if grid.ndim != 2 or min(grid.shape) < 2:
        raise ModelError(f"{where}: heights must be an array (nx, ny) of at least 2 x 2, got shape {grid.shape}.")
    if spacing is None:
        raise ModelError(f"{where}: heights need a spacing, the distance of their points in metres.")
    steps = check_array(spacing, f"{where}: spacing")
    if steps.shape not in ((), (2,)) or (steps <= 0).any():
        raise ModelError(f"{where}: spacing must be one or two positive lengths, got {spacing!r}.")
    if normal.tolist() != [0.0, 0.0, 1.0]:
        raise ModelError(f"{where}: heights stand along z; leave the normal at (0, 0, 1).")
    return frozen(grid), frozen(np.broadcast_to(steps, 2))


def check_shape(value: Any, shape: tuple[int, ...], where: str) -> FloatArray:
    """What a user's function returned, as an array, if it has the right shape."""
    try:
        out = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: the function must return numbers, it returned {value!r}.") from error
    if out.shape != shape:
        raise ModelError(f"{where}: the function must return shape {shape}, it returned {out.shape}.")
    return out


def check_result(value: Any, shape: tuple[int, ...], where: str) -> FloatArray:
    """The same, if it is finite besides."""
    out = check_shape(value, shape, where)
    if not np.isfinite(out).all():
        raise ModelError(f"{where}: the function returned a number that is not finite: {out.tolist()}.")
    return out
