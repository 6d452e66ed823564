"""Coordinates and rates of joints that close loops, from those of the other joints.

Such a joint has coordinates where it carries something, see ``splitting``. The other joints place both of its bodies,
so its own coordinates need not be given.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.elements import Joint
from leastaction.model.joints import layout
from leastaction.model.motion import joint_motion
from leastaction.model.recovery import joint_coordinates, joint_screws
from leastaction.spatial import se3

if TYPE_CHECKING:
    from leastaction.model.model import Model

Motion = tuple[FloatArray, FloatArray]
"""Pose (4, 4) of a link in the world, and its twist (6,) in its own axes."""


def recover_coordinates(model: Model, q: FloatArray, known: Collection[str]) -> None:
    """Write into q (nq,) what the other joints say about loop joints that are not known.

    Turns are counted from the middle of the limits where there are two, else from the rest of the spring. Where the
    loop is open, the coordinates are the nearest ones.
    """
    names = [twin.joint for twin in model.twins.values() if twin.joint not in known]
    motions = _motions(model, q, None) if names else {}
    for name in names:
        view = model.joints[name]
        q[view.q] = joint_coordinates(view.joint, _across(model, view.joint, motions)[0], _near(view.joint))


def recover_rates(model: Model, q: FloatArray, v: FloatArray, known: Collection[str]) -> None:
    """Write into v (nv,) the rates of loop joints that are not known, at coordinates q (nq,)."""
    names = [twin.joint for twin in model.twins.values() if twin.joint not in known]
    motions = _motions(model, q, v) if names else {}
    for name in names:
        view = model.joints[name]
        twist = _across(model, view.joint, motions)[1]
        v[view.v] = np.linalg.lstsq(joint_screws(view.joint, q[view.q]), twist, rcond=1e-12)[0]


def _motions(model: Model, q: FloatArray, v: FloatArray | None) -> dict[str, Motion]:
    """Motions of all bodies but twins, which stand for the bodies that they are cut off."""
    out: dict[str, Motion] = {WORLD: (np.eye(4), np.zeros(6))}
    for name in model.topology.tree:
        joint = model.split.joints[name]
        if joint.child in model.twins:
            continue
        view, twist = model.joints.get(name), np.zeros(6)
        if view is None:
            Q = joint_motion(joint, joint.neutral if joint.locked is None else joint.locked)
        else:
            Q = joint_motion(joint, q[view.q])
            if v is not None:
                twist = np.asarray(se3.Ad(joint.child_frame)) @ joint_screws(joint, q[view.q]) @ v[view.v]
        across = joint.parent_frame @ Q @ np.asarray(se3.inverse(joint.child_frame))
        E, before = out[joint.parent]
        out[joint.child] = (E @ across, np.asarray(se3.Ad_inv(across)) @ before + twist)
    for name, twin in model.twins.items():
        out[name] = out[twin.body]
    return out


def _across(model: Model, joint: Joint, motions: dict[str, Motion]) -> Motion:
    """Pose of a joint's child side in its parent side, and its twist against it, in the child's axes."""
    (A, a), (B, b) = motions[joint.parent], motions[joint.child]
    inside, outside = np.asarray(se3.inverse(A @ joint.parent_frame)), B @ joint.child_frame
    Q = inside @ outside
    a, b = np.asarray(se3.Ad_inv(joint.parent_frame)) @ a, np.asarray(se3.Ad_inv(joint.child_frame)) @ b
    return Q, b - np.asarray(se3.Ad_inv(Q)) @ a


def _near(joint: Joint) -> FloatArray:
    """Coordinates (nq,) from which turns are counted."""
    out = np.array(joint.rest)
    for piece in layout(joint):
        low, high = joint.limits[piece.limit]
        if piece.factor == "screw" and np.isfinite([low, high]).all():
            out[piece.q] = 0.5 * (low + high)
    return out
