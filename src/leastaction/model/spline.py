"""Curves and surfaces of poses, along which a spline joint moves (Sueda 2021, sections 2.4.12 and 2.4.13).

Both are uniform cubic B-splines, written as a product of motions with constant twists xi_k,

    Q(s) = C exp(xi_1 f_1(s)) ... exp(xi_m f_m(s)),                S_j = Q^-1 dQ/ds_j

A curve has m = 3: the logarithms between neighbouring control frames, with the cumulative basis functions (2.74). A
surface has m = 6: translations along x, y, z and then rotations about x, y, z, with tensor product splines (2.78).
The kernels have the same in ``tree/splines.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_flag, frozen
from leastaction.model.pose import check_pose, inverse_pose
from leastaction.model.reader import Reader, plain
from leastaction.spatial import se3

_FEWEST = 4
"""Control frames that a cubic spline needs."""

_FARTHEST = 3.1
"""Largest turn between neighbouring control frames, radians: beyond pi the shorter way is the other one."""


@dataclass(frozen=True, eq=False)
class SplineCurve:
    """A curve of poses for a joint with one coordinate s, which counts segments.

    The curve passes near its control frames, as B-splines do, and is twice continuously differentiable. An open curve
    with n frames has n - 3 segments, s from 0 to n - 3, and starts near the second frame; a closed one has n and goes
    round and round.

    Attributes:
        frames: control frames (n, 4, 4) in the joint frame, at least 4.
        closed: whether the last frame is followed by the first.
    """

    frames: FloatArray
    closed: bool = False

    def __post_init__(self) -> None:
        given: Any = self.frames
        if isinstance(given, str) or not hasattr(given, "__len__") or len(given) < _FEWEST:
            raise ModelError(f"SplineCurve: give at least {_FEWEST} control frames, poses (4, 4).")
        frames = np.array([check_pose(pose, f"SplineCurve: frame {i}") for i, pose in enumerate(given)])
        object.__setattr__(self, "frames", frozen(frames))
        object.__setattr__(self, "closed", check_flag(self.closed, "SplineCurve: closed"))
        turns = np.linalg.norm(self.steps[:, :3], axis=1)
        if turns.max() > _FARTHEST:
            i = int(turns.argmax())
            raise ModelError(
                f"SplineCurve: frames {(i - 1) % len(frames)} and {i} are turned by {turns[i]:.4g} rad against each "
                "other; put a frame between them."
            )

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return 1

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return ("s",)

    @property
    def ends(self) -> tuple[float, ...]:
        """Largest value of each coordinate, which begins at 0; infinite where it is closed."""
        return (np.inf if self.closed else float(len(self.frames) - 3),)

    @property
    def steps(self) -> FloatArray:
        """Logarithms (n, 6) from the frame before to each frame (2.74); the first one is that of a closed curve."""
        before = np.roll(self.frames, 1, axis=0)
        steps = np.array([se3.log(inverse_pose(a) @ b) for a, b in zip(before, self.frames, strict=True)])
        if not self.closed:
            steps[0] = 0.0
        return steps

    def pose(self, s: Any) -> FloatArray:
        """Pose (4, 4) at s."""
        return self.motion(np.atleast_1d(np.asarray(s, dtype=float)))[0]

    def motion(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Pose (4, 4) and S (6, 1) at coordinates q (1,) (Algorithm 3)."""
        k, t = _cell(float(q[0]), len(self.frames), self.closed)
        at = [(k + i) % len(self.frames) for i in range(4)]
        values, rates = _basis(t)
        factors = [(self.steps[at[i]], values[i:].sum(), np.array([rates[i:].sum()])) for i in (1, 2, 3)]
        return _product(self.frames[at[0]], factors)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"type": "curve", "frames": plain(self.frames), "closed": self.closed}


@dataclass(frozen=True, eq=False)
class SplineSurface:
    """A surface of poses for a joint with two coordinates s1 and s2, which count cells of a grid.

    Positions and angles are each a tensor product spline; the angles are about x, then y, then z, and should stay small
    (below pi/4), since they have the singularities of Euler angles.

    Attributes:
        values: (n1, n2, 6) x, y, z and the three angles of a grid of control frames in the joint frame, at least 4 x 4;
            with (n1, n2, 3) the frames do not turn.
        closed: whether the last row of each direction is followed by the first; one or two flags.
    """

    values: FloatArray
    closed: tuple[bool, bool] = (False, False)

    def __post_init__(self) -> None:
        values = check_array(self.values, "SplineSurface: values")
        if values.ndim != 3 or min(values.shape[:2]) < _FEWEST or values.shape[2] not in (3, 6):
            raise ModelError(
                f"SplineSurface: values must be (n1, n2, 6) or (n1, n2, 3) with n1 and n2 at least {_FEWEST}, got "
                f"shape {values.shape}."
            )
        if values.shape[2] == 3:
            values = np.concatenate([values, np.zeros_like(values)], axis=2)
        object.__setattr__(self, "values", frozen(values))
        both = self.closed if isinstance(self.closed, Sequence) else (self.closed, self.closed)
        if len(both) != 2:
            raise ModelError(f"SplineSurface: closed is one flag or two, got {self.closed!r}.")
        object.__setattr__(self, "closed", tuple(check_flag(one, "SplineSurface: closed") for one in both))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return 2

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return ("s1", "s2")

    @property
    def ends(self) -> tuple[float, ...]:
        """Largest value of each coordinate, which begins at 0; infinite where it is closed."""
        pairs = zip(self.values.shape[:2], self.closed, strict=True)
        return tuple(np.inf if closed else float(n - 3) for n, closed in pairs)

    def pose(self, s: Any) -> FloatArray:
        """Pose (4, 4) at s (2,)."""
        return self.motion(np.asarray(s, dtype=float))[0]

    def motion(self, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Pose (4, 4) and S (6, 2) at coordinates q (2,) (Algorithm 4)."""
        n1, n2, _ = self.values.shape
        (k1, t1), (k2, t2) = _cell(float(q[0]), n1, self.closed[0]), _cell(float(q[1]), n2, self.closed[1])
        near = self.values[np.ix_((k1 + np.arange(4)) % n1, (k2 + np.arange(4)) % n2)]
        (b1, d1), (b2, d2) = _basis(t1), _basis(t2)
        f = np.einsum("i,j,ijk->k", b1, b2, near)
        rates = np.array([np.einsum("i,j,ijk->k", d1, b2, near), np.einsum("i,j,ijk->k", b1, d2, near)])
        basis = np.roll(np.eye(6), 3, axis=1)
        return _product(np.eye(4), [(basis[k], f[k], rates[:, k]) for k in range(6)])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"type": "surface", "values": plain(self.values), "closed": list(self.closed)}


Spline = SplineCurve | SplineSurface


def check_spline(kind: str, spline: Any, where: str) -> Spline | None:
    """The spline of a spline joint; none for the other kinds."""
    if kind == "spline":
        if not isinstance(spline, SplineCurve | SplineSurface):
            raise ModelError(f"{where}: a spline joint needs spline=SplineCurve(...) or SplineSurface(...).")
        return spline
    if spline is not None:
        raise ModelError(f"{where}: a spline belongs to spline joints only, this one is {kind}.")
    return None


def check_ends(spline: Spline, q: FloatArray, where: str) -> None:
    """Raise ModelError if coordinates (size,) lie beyond an end of an open spline."""
    for name, value, end in zip(spline.coordinate_names, q, spline.ends, strict=True):
        if np.isfinite(end) and not 0.0 <= value <= end:
            raise ModelError(f"{where}: {name} = {value:.6g} is beyond the end of its spline, which has 0 .. {end:g}.")


def spline_from_dict(reader: Reader) -> Spline:
    """A spline from ``to_dict``."""
    kind = reader.text("type")
    if kind == "curve":
        frames, closed = reader.array("frames", (-1, 4, 4)), reader.flag("closed", False)
        reader.finish()
        with reader.here():
            return SplineCurve(frames, closed)
    if kind != "surface":
        raise reader.fail("type", '"curve" or "surface"', kind)
    rows = reader.items("values")
    n2 = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    reader.data["values"] = rows
    values, flags = reader.array("values", (-1, n2, 6)), reader.items("closed", [False, False])
    reader.finish()
    with reader.here():
        return SplineSurface(values, tuple(flags))


def _cell(s: float, n: int, closed: bool) -> tuple[int, float]:
    """First control point of the segment at s, and the place (0 .. 1) in it."""
    k = int(np.floor(s))
    if not closed:
        k = min(max(k, 0), n - 4)
    return k % n, s - k


def _basis(t: float) -> tuple[FloatArray, FloatArray]:
    """The four basis functions (2.68) at t, and their derivatives (2.73)."""
    r = 1.0 - t
    values = [r**3, 4 - 6 * t**2 + 3 * t**3, 1 + 3 * t + 3 * t**2 - 3 * t**3, t**3]
    rates = [-3 * r**2, -12 * t + 9 * t**2, 3 + 6 * t - 9 * t**2, 3 * t**2]
    return np.array(values) / 6, np.array(rates) / 6


def _product(start: FloatArray, factors: list[tuple[FloatArray, float, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Pose and S of a product of motions (twist, value, derivatives of the value)."""
    Q, S = start, np.zeros((6, len(factors[0][2])))
    for twist, value, rates in factors:
        step = np.asarray(se3.exp(twist * value))
        Q, S = Q @ step, np.asarray(se3.Ad(se3.inverse(step))) @ S + np.outer(twist, rates)
    return Q, S
