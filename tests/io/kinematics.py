"""Slow kinematics on the level of the description, for comparing loaded mechanisms with other libraries."""

from __future__ import annotations

import numpy as np

import leastaction as la
from leastaction.model.motion import joint_motion
from leastaction.spatial import quaternion


def random_coordinates(model, rng):
    """Coordinates (nq,) with random unit quaternions, and velocities (nv,)."""
    q = rng.normal(size=model.nq)
    for name in model.joint_names:
        view = model.joint(name)
        if view.kind in ("free", "spherical"):
            ball = slice(view.q.stop - 4, view.q.stop)
            q[ball] /= np.linalg.norm(q[ball])
    return q, rng.normal(size=model.nv)


def link_poses(model, q):
    """Pose (4, 4) of every body by name, by following the tree joints."""
    m = model.mechanism
    tree = {joint.child: joint for joint in m.joints.values() if joint.name not in model.loop_names}
    poses = {"world": np.eye(4)}

    def find(name):
        if name not in poses:
            joint = tree[name]
            own = q[model.joint(joint.name).q] if joint.name in model.joint_names else np.zeros(0)
            motion = joint_motion(joint, own)
            poses[name] = find(joint.parent) @ joint.parent_frame @ motion @ np.linalg.inv(joint.child_frame)
        return poses[name]

    for name in m.bodies:
        find(name)
    return poses


def moved(model, q, v, h):
    """Coordinates after moving with the constant velocity v for the time h, joint by joint, to first order in h."""
    out = q.copy()
    for name in model.joint_names:
        view = model.joint(name)
        own, rate = q[view.q], v[view.v]
        if view.kind == "free":
            R = la.pose(quat=own[3:])[:3, :3]
            out[view.q] = [*(own[:3] + h * R @ rate[3:]), *turned(own[3:], h * rate[:3])]
        elif view.kind == "spherical":
            out[view.q] = turned(own, h * rate)
        else:
            out[view.q] = own + h * rate
    return out


def turned(quat, angle):
    return quaternion.multiply(quat, quaternion.exp(angle))
