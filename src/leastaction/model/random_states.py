"""Random configurations within limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.joints import Piece, layout
from leastaction.spatial import quaternion

if TYPE_CHECKING:
    from leastaction.model.model import Model


def random_q(model: Model, rng: np.random.Generator, reach: float) -> FloatArray:
    """Coordinates (nq,), each drawn from its limits; ``reach``: half the width where a translation has none.

    Angles without limits are uniform on a whole turn; rotations are uniform among those within the limit of their
    angle. Beyond a limit on one side a coordinate is drawn from as much as an unlimited one.
    """
    out = np.zeros(model.nq)
    for view in model.joints.values():
        for piece in layout(view.joint):
            where = slice(view.q.start + piece.q.start, view.q.start + piece.q.stop)
            low, high = (float(x) for x in np.reshape(view.joint.limits[piece.limit], 2))
            if piece.factor == "ball":
                out[where] = _rotation(rng, min(high, np.pi))
            else:
                half = np.pi if _turns(view.joint, piece) else reach
                out[where] = _between(rng, low, high, half)
    return out


def _turns(joint: Any, piece: Piece) -> bool:
    """Whether a screw coordinate is an angle."""
    return "angle" in joint.coordinate_names[piece.q.start]


def _between(rng: np.random.Generator, low: float, high: float, half: float) -> float:
    """A number between bounds, or within 2 half of the only one, or within half of zero."""
    if np.isinf(low) and np.isinf(high):
        low, high = -half, half
    elif np.isinf(low):
        low = high - 2.0 * half
    elif np.isinf(high):
        high = low + 2.0 * half
    return low + (high - low) * float(rng.uniform())


def _rotation(rng: np.random.Generator, largest: float) -> FloatArray:
    """A quaternion (4,), uniform among rotations by at most an angle."""
    # the density of the angle is 1 - cos: invert angle - sin by bisection
    target, a, b = rng.uniform() * (largest - np.sin(largest)), 0.0, largest
    for _ in range(60):
        middle = 0.5 * (a + b)
        a, b = (middle, b) if middle - np.sin(middle) < target else (a, middle)
    axis = rng.normal(size=3)
    return np.asarray(quaternion.exp(a * axis / np.linalg.norm(axis)))
