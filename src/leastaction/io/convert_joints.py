"""How the coordinates of single joints change between this package, Pinocchio and MuJoCo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import ModelError
from leastaction.model.pose import inverse_pose
from leastaction.spatial import quaternion

FloatArray = NDArray[np.float64]
Change = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]

_FREE, _BALL, _SLIDE, _HINGE = range(4)


class JointMap(NamedTuple):
    """(q, v) here to (q, v) there, and back; arrays (..., n)."""

    forward: Change
    backward: Change


def pinocchio_map(joint: Any, theirs: tuple[Any, int, int]) -> JointMap | None:
    """The map of one joint to Pinocchio's; None if the two do not fit."""
    kind, nq, nv = theirs
    sizes = (joint.kind, nq, nv)
    # one coordinate, or cosine and sine of it
    if joint.kind in ("revolute", "continuous", "prismatic", "helical") and (nq, nv) == (1, 1):
        return JointMap(_same, _same)
    if joint.kind in ("revolute", "continuous") and (nq, nv) == (2, 1):
        return JointMap(_to_circle, _from_circle)
    # several
    if sizes == ("spherical", 4, 3):
        return JointMap(lambda q, v: (_xyzw(q), v), lambda q, v: (_wxyz(q), v))
    if sizes == ("free", 7, 6):
        return JointMap(_free_to_pinocchio, _free_from_pinocchio)
    if sizes == ("planar", 4, 3):
        # Pinocchio's plane is that of x and y
        if not np.allclose(joint.axis, (0, 0, 1), rtol=0, atol=1e-12):
            raise ModelError(f"joint {joint.name!r}: Pinocchio's planar joint has the normal z, this one {joint.axis}.")
        return JointMap(_planar_to_pinocchio, _planar_from_pinocchio)
    if sizes == ("translational", 3, 3) or (sizes == ("universal", 2, 2) and "Universal" in str(kind)):
        return JointMap(_same, _same)
    return None


def mujoco_map(joint: Any, theirs: tuple[Any, int, int]) -> JointMap | None:
    """The map of one joint to MuJoCo's; None if the two do not fit."""
    (kind, ref), _, _ = theirs
    single = {_HINGE: ("revolute", "continuous"), _SLIDE: ("prismatic",)}
    if joint.kind in single.get(kind, ()):
        ref = float(ref)
        return JointMap(lambda q, v: (q + ref, v), lambda q, v: (q - ref, v))
    if (joint.kind, kind) == ("spherical", _BALL):
        return JointMap(_same, _same)
    if (joint.kind, kind) == ("free", _FREE):
        return _free_mujoco(joint)
    return None


def _free_mujoco(joint: Any) -> JointMap:
    """Free joints: MuJoCo has the body's pose in the world, linear velocity in world axes."""
    if joint.parent != "world":
        raise ModelError(f"joint {joint.name!r}: MuJoCo's free joints hang on the world, this one on {joint.parent!r}.")
    # body = P motion(q) C with P the parent frame and C the link seen from the joint frame
    P, C = np.asarray(joint.parent_frame), inverse_pose(joint.child_frame)

    def forward(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        position, turn = _moved(P, C, q[..., :3], q[..., 3:])
        # twist of the link frame, in its own axes, then linear part in world axes
        R, r = C[:3, :3], C[:3, 3]
        angular = v[..., :3] @ R
        linear = (v[..., 3:] + np.cross(v[..., :3], r)) @ R
        return np.concatenate([position, turn], -1), np.concatenate([quaternion.rotate(turn, linear), angular], -1)

    def backward(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        position, turn = _moved(inverse_pose(P), inverse_pose(C), q[..., :3], q[..., 3:])
        # twist of the link frame, then of the joint frame
        R, r = C[:3, :3], C[:3, 3]
        angular = v[..., 3:] @ R.T
        linear = quaternion.rotate(quaternion.conjugate(q[..., 3:]), v[..., :3]) @ R.T - np.cross(angular, r)
        return np.concatenate([position, turn], -1), np.concatenate([angular, linear], -1)

    return JointMap(forward, backward)


def _moved(
    before: FloatArray, after: FloatArray, position: FloatArray, turn: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Position and quaternion of before @ pose @ after; unchanged to the last bit by identities."""
    if not np.array_equal(after, np.eye(4)):
        position = position + quaternion.rotate(turn, np.broadcast_to(after[:3, 3], position.shape))
        turn = quaternion.multiply(turn, quaternion.from_matrix(after[:3, :3]))
    if not np.array_equal(before, np.eye(4)):
        position = position @ before[:3, :3].T + before[:3, 3]
        turn = quaternion.multiply(quaternion.from_matrix(before[:3, :3]), turn)
    return position, turn


def _same(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    return q, v


def _to_circle(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.concatenate([np.cos(q), np.sin(q)], -1), v


def _from_circle(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.arctan2(q[..., 1:], q[..., :1]), v


def _free_to_pinocchio(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.concatenate([q[..., :3], _xyzw(q[..., 3:])], -1), np.roll(v, 3, -1)


def _free_from_pinocchio(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.concatenate([q[..., :3], _wxyz(q[..., 3:])], -1), np.roll(v, 3, -1)


def _planar_to_pinocchio(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    x, y, angle = q[..., 0], q[..., 1], q[..., 2]
    c, s = np.cos(angle), np.sin(angle)
    # rates of x and y in child axes
    turned = [c * v[..., 0] + s * v[..., 1], c * v[..., 1] - s * v[..., 0], v[..., 2]]
    return np.stack([x, y, c, s], -1), np.stack(turned, -1)


def _planar_from_pinocchio(q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    c, s = q[..., 2], q[..., 3]
    turned = [c * v[..., 0] - s * v[..., 1], c * v[..., 1] + s * v[..., 0], v[..., 2]]
    return np.stack([q[..., 0], q[..., 1], np.arctan2(s, c)], -1), np.stack(turned, -1)


def _xyzw(q: FloatArray) -> FloatArray:
    return np.roll(q, -1, -1)


def _wxyz(q: FloatArray) -> FloatArray:
    return np.roll(q, 1, -1)
