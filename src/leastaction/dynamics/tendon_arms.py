"""Moment arms of tendons through space: derivatives of their lengths by the coordinates, at a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.dynamics.quantities import frame_poses, jacobian
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.model.tendon_force import course_of


def moment_arms(model: Model, q: Any) -> dict[str, FloatArray]:
    """Arms (nv,) of the tendons with a path on which actuators act, by name, at coordinates q (nq,)."""
    q, out = model.check_q(q), {}
    for name in dict.fromkeys(each.tendon for each in model.mechanism.actuators.values()):
        tendon = model.mechanism.tendons.get(name)
        if tendon is None or not tendon.path:
            continue
        poses = frame_poses(model, q[None], list(tendon.bodies))[0]
        g = course_of(tendon, {}).derivative(poses)
        out[name] = np.zeros(model.nv)
        for body, pose, row in zip(tendon.bodies, poses, g, strict=True):
            if model.place(body).row > 0:
                world = (pose[:3, :3] @ row.reshape(2, 3).T).T.ravel()
                out[name] += jacobian(model, q, body).T @ world
    return out
