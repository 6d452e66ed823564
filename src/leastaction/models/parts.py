"""What the built-in mechanisms share: bars between two points, mass properties of thin rods, colours, checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.joints import plane_basis
from leastaction.model.pose import pose
from leastaction.model.shapes import Capsule, Cylinder

STEEL = (0.55, 0.58, 0.62)
DARK = (0.20, 0.22, 0.25)
BLUE = (0.15, 0.40, 0.75)
ORANGE = (0.90, 0.45, 0.10)

LARGEST_COUNT = 100_000
"""More links than this in one mechanism are refused: building them would take minutes and gigabytes."""


def check_count(value: Any, where: str) -> int:
    """A whole number from 1 to ``LARGEST_COUNT``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= LARGEST_COUNT:
        raise ModelError(f"{where}: expected a whole number from 1 to {LARGEST_COUNT}, got {value!r}.")
    return int(value)


def along(start: Any, end: Any) -> tuple[FloatArray, float]:
    """Pose (4, 4) half way between two points with z along the line that joins them, and their distance."""
    a, b = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    length = float(np.linalg.norm(b - a))
    axis = (b - a) / length
    u, v = plane_basis(axis)
    return pose(xyz=(a + b) / 2, matrix=np.column_stack([u, v, axis])), length


def bar(
    end: Any, radius: float, *, start: Any = (0.0, 0.0, 0.0), color: Any = STEEL, collision: bool = True
) -> Capsule:
    """A capsule whose half balls are centred at two points of the link frame."""
    at, length = along(start, end)
    return Capsule(radius, length, at=at, color=color, collision=collision)


def tube(
    end: Any, radius: float, *, start: Any = (0.0, 0.0, 0.0), color: Any = STEEL, collision: bool = True
) -> Cylinder:
    """A cylinder whose end faces are centred at two points of the link frame."""
    at, length = along(start, end)
    return Cylinder(radius, length, at=at, color=color, collision=collision)


def thin_rod(mass: float, end: Any) -> dict[str, Any]:
    """Mass, centre of mass and inertia of a uniform thin rod from the link origin to ``end``, for ``add_body``."""
    r = np.asarray(end, dtype=float)
    return {"mass": mass, "com": r / 2, "inertia": mass / 12 * (r @ r * np.eye(3) - np.outer(r, r))}
