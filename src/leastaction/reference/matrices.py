"""The few matrices of rigid motion that the reference needs, spelled out. Twists are (angular; linear)."""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray


def hat(w: FloatArray) -> FloatArray:
    """Matrix (3, 3) of the cross product w x ."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def inverse(E: FloatArray) -> FloatArray:
    """Inverse of a pose (4, 4)."""
    out = np.eye(4)
    out[:3, :3] = E[:3, :3].T
    out[:3, 3] = -E[:3, :3].T @ E[:3, 3]
    return out


def Ad(E: FloatArray) -> FloatArray:
    """(6, 6), twists in the axes of a frame at the pose E to twists in the axes in which E is given."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = E[:3, :3]
    out[3:, :3] = hat(E[:3, 3]) @ E[:3, :3]
    return out


def ad(V: FloatArray) -> FloatArray:
    """(6, 6), Lie bracket [V, .] of twists."""
    out = np.zeros((6, 6))
    out[:3, :3] = out[3:, 3:] = hat(V[:3])
    out[3:, :3] = hat(V[3:])
    return out
