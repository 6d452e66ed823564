"""Poses, body Jacobians and their time derivatives, one joint after the other from the world outwards.

Symbols: E pose (4, 4) of a frame in the world, V its twist (angular; linear) in its own axes, V = J v and
dV/dt = J a + Jdot v with the user's v (nv,) and accelerations a = dv/dt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.elements import Joint
from leastaction.model.joints import Ball, SplineFactor, factors
from leastaction.model.model import Model
from leastaction.model.motion import factor_motion, joint_motion
from leastaction.reference.matrices import Ad, ad, inverse


@dataclass(frozen=True)
class Motion:
    """A frame and how it moves: pose E (4, 4), Jacobian J (6, nv) and its derivative Jdot (6, nv)."""

    E: FloatArray
    J: FloatArray
    Jdot: FloatArray

    def behind(self, X: FloatArray) -> Motion:
        """The frame at the constant pose X (4, 4) in this one."""
        A = Ad(inverse(X))
        return Motion(self.E @ X, A @ self.J, A @ self.Jdot)

    def moving(self, X: FloatArray, S: FloatArray, rate: FloatArray, columns: list[int]) -> Motion:
        """The frame at the pose X in this one that moves relative to it with the twist S rate in its own axes.

        Args:
            X: (4, 4), present relative pose.
            S: (6, k), constant.
            rate: (k,) present velocities.
            columns: their places in v.
        """
        A = Ad(inverse(X))
        # V = A V_parent + S rate, and dA/dt = -ad(S rate) A
        J = A @ self.J
        Jdot = A @ self.Jdot - ad(S @ rate) @ J
        J[:, columns] += S
        return Motion(self.E @ X, J, Jdot)


def motions(model: Model, q: FloatArray, v: FloatArray) -> dict[str, Motion]:
    """Motion of the world, of every body's link frame and of every named frame."""
    m = model.split
    still = np.zeros((6, model.nv))
    out = {WORLD: Motion(np.eye(4), still, still)}
    # parents come before their children
    for name in model.topology.tree:
        joint = m.joints[name]
        out[joint.child] = _through(model, joint, out[joint.parent], q, v)
    for frame in m.frames.values():
        out[frame.name] = out[frame.body].behind(frame.pose)
    return out


def joint_frame(model: Model, name: str, moving: dict[str, Motion]) -> Motion:
    """Motion of the child side of a joint's frame."""
    joint = model.split.joints[name]
    return moving[joint.child].behind(joint.child_frame)


def _through(model: Model, joint: Joint, parent: Motion, q: FloatArray, v: FloatArray) -> Motion:
    """Motion of a joint's child link from that of its parent link."""
    here = parent.behind(joint.parent_frame)
    to_link = inverse(joint.child_frame)
    # joints without coordinates are constant poses
    if joint.name not in model.joints:
        held = joint.neutral if joint.locked is None else joint.locked
        return here.behind(joint_motion(joint, held) @ to_link)
    view = model.joints[joint.name]
    own_q, own_v = q[view.q], v[view.v]
    # v of a free joint is the twist of the child frame itself
    if joint.kind == "free":
        columns = list(range(view.v.start, view.v.stop))
        return here.moving(joint_motion(joint, own_q), np.eye(6), own_v, columns).behind(to_link)
    # any other joint: its factors one by one
    k = d = 0
    for factor in factors(joint):
        if isinstance(factor, SplineFactor):
            raise UnsupportedError(f"joint '{joint.name}': the reference knows joints with fixed axes only.")
        S = np.eye(6)[:, :3] if isinstance(factor, Ball) else factor.twist[:, None]
        X = factor.before @ factor_motion(factor, own_q[k : k + factor.nq])
        columns = list(range(view.v.start + d, view.v.start + d + factor.nv))
        here = here.moving(X, S, own_v[d : d + factor.nv], columns)
        k, d = k + factor.nq, d + factor.nv
    return here.behind(to_link)


def poses(model: Model, q: FloatArray) -> dict[str, FloatArray]:
    """Pose (4, 4) of every body and frame."""
    return {name: motion.E for name, motion in motions(model, q, np.zeros(model.nv)).items() if name != WORLD}


def jacobian(model: Model, q: FloatArray, body: str, point: FloatArray) -> FloatArray:
    """(6, nv), (angular; linear) velocity of a point (3,) of a body, world axes."""
    at = np.eye(4)
    at[:3, 3] = point
    motion = motions(model, q, np.zeros(model.nv))[body].behind(at)
    R = motion.E[:3, :3]
    return np.vstack([R @ motion.J[:3], R @ motion.J[3:]])
