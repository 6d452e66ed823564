"""Poses: 4x4 matrices that take coordinates of a frame to those of its parent."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_quaternion, check_vector, frozen
from leastaction.spatial import quaternion, se3

# a rotation this far from orthogonal is a mistake; one farther than the second figure is made orthogonal
_REFUSED = 1e-6
_UNTOUCHED = 1e-13


def pose(xyz: Any = (0.0, 0.0, 0.0), rpy: Any = None, quat: Any = None, matrix: Any = None) -> FloatArray:
    """Pose from a position and at most one description of the rotation.

    Args:
        xyz: position (3,) in metres.
        rpy: roll, pitch, yaw (3,) in radians, as in URDF: R = Rz(yaw) Ry(pitch) Rx(roll).
        quat: quaternion (w, x, y, z); normalised, must not be zero.
        matrix: rotation matrix (3, 3).

    Returns:
        Array (4, 4): [[R, xyz], [0, 1]].
    """
    out = np.eye(4)
    out[:3, 3] = check_vector(xyz, 3, "pose: xyz")
    # one description of the rotation
    if sum(value is not None for value in (rpy, quat, matrix)) > 1:
        raise ModelError("pose: give at most one of rpy, quat and matrix.")
    if rpy is not None:
        out[:3, :3] = _rotation_from_rpy(check_vector(rpy, 3, "pose: rpy"))
    elif quat is not None:
        out[:3, :3] = quaternion.to_matrix(check_quaternion(quat, "pose: quat"))
    elif matrix is not None:
        out[:3, :3] = check_rotation(matrix, "pose: matrix")
    return out


def check_pose(value: Any, where: str) -> FloatArray:
    """A user's pose as a read-only array (4, 4); None is the identity."""
    if value is None:
        return frozen(np.eye(4))
    out = check_array(value, where)
    if out.shape != (4, 4):
        raise ModelError(f"{where}: a pose is a 4x4 matrix, see leastaction.pose; got shape {out.shape}.")
    if not np.array_equal(out[3], [0.0, 0.0, 0.0, 1.0]):
        raise ModelError(f"{where}: the last row of a pose must be 0, 0, 0, 1, got {out[3].tolist()}.")
    out[:3, :3] = check_rotation(out[:3, :3], where)
    return frozen(out)


def check_rotation(value: Any, where: str) -> FloatArray:
    """A rotation matrix (3, 3); one written with few digits is replaced by the nearest rotation."""
    R = check_array(value, where)
    if R.shape != (3, 3):
        raise ModelError(f"{where}: a rotation is a 3x3 matrix, got shape {R.shape}.")
    # distance from the orthogonal matrices
    error = float(np.abs(R.T @ R - np.eye(3)).max())
    if error > _REFUSED:
        raise ModelError(f"{where}: the rotation is not orthogonal (error {error:.1e}).")
    if np.linalg.det(R) < 0:
        raise ModelError(f"{where}: the rotation is a reflection (determinant -1).")
    # nearest rotation, by the polar decomposition
    if error > _UNTOUCHED:
        U, _, Vt = np.linalg.svd(R)
        R = U @ Vt
    return R


def inverse_pose(value: FloatArray) -> FloatArray:
    """Inverse of a pose (4, 4)."""
    return se3.inverse(value)


def _rotation_from_rpy(rpy: FloatArray) -> FloatArray:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )
