"""Derivatives of a force against central differences, for ``Force.check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.differences import moved
from leastaction.spatial import se3

if TYPE_CHECKING:
    from leastaction.model.force_base import Force

# Step of the differences, radians and metres: their error is of second order.
_STEP = 1e-5


def largest_difference(force: Force, t: float, samples: int, seed: int, tolerance: float) -> float:
    """The largest difference at random poses and twists; see ``Force.check``."""
    rng, k, worst = np.random.default_rng(seed), len(force.bodies), 0.0
    still = [i for i, body in enumerate(force.bodies) if body == WORLD]
    for _ in range(samples):
        poses, twists = np.asarray(se3.exp(rng.normal(size=(k, 6)))), rng.normal(size=(k, 6))
        poses[still], twists[still] = np.eye(4), 0.0
        K, D = force.derivatives(t, poses, twists)
        parts = {
            "K": (K, _slopes(lambda xi, P=poses, V=twists: force.wrenches(t, moved(P, xi), V), k)),
            "D": (D, _slopes(lambda x, P=poses, V=twists: force.wrenches(t, P, V + x.reshape(k, 6)), k)),
        }
        if force.conservative:
            pull = _slopes(lambda xi, P=poses: np.array(force.energy(t, moved(P, xi))), k)
            parts["energy"] = (force.wrenches(t, poses, twists).ravel(), -pull)
        for name, (given, found) in parts.items():
            off = np.abs(given - found) / max(float(np.abs(found).max()), float(np.abs(given).max()), 1e-300)
            worst = max(worst, float(off.max()))
            if not off.max() <= tolerance:
                place = np.unravel_index(int(off.argmax()), off.shape)
                at = ", ".join(str(int(i)) for i in place)
                raise ModelError(
                    f"{force.label}: {name}[{at}] is {given[place]:.6g}, central differences give {found[place]:.6g}."
                )
    return worst


def _slopes(function: object, k: int) -> FloatArray:
    """Derivative (..., 6k) of a function of a displacement (6k,), flat but for the last axis."""
    assert callable(function)
    columns = []
    for j in range(6 * k):
        step = np.zeros(6 * k)
        step[j] = _STEP
        columns.append((np.asarray(function(step)) - np.asarray(function(-step))).ravel() / (2 * _STEP))
    return np.squeeze(np.stack(columns, axis=-1))
