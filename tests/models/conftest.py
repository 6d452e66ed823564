from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import leastaction as la


@pytest.fixture
def loop_gap() -> Callable[..., float]:
    """Largest distance between the two sides of all loop hinges, in metres and as sine of the angle of their axes."""

    def gap(model: la.Model, q: np.ndarray) -> float:
        poses = {"world": np.eye(4), **la.poses(model, q)}
        worst = 0.0
        for name in model.loop_names:
            joint = model.mechanism.joints[name]
            a, b = poses[joint.parent] @ joint.parent_frame, poses[joint.child] @ joint.child_frame
            tilt = np.cross(a[:3, :3] @ joint.axis, b[:3, :3] @ joint.axis)
            worst = max(worst, float(np.abs(a[:3, 3] - b[:3, 3]).max()), float(np.abs(tilt).max()))
        return worst

    return gap


@pytest.fixture
def loop_rates() -> Callable[..., np.ndarray]:
    """Matrix (6 loops, nv) from v to the relative velocity of the two sides of each loop hinge, spin about it aside."""

    def rates(model: la.Model, q: np.ndarray) -> np.ndarray:
        poses, rows = la.poses(model, q), []
        for name in model.loop_names:
            joint = model.mechanism.joints[name]
            a = la.jacobian(model, q, joint.parent, joint.parent_frame[:3, 3])
            b = la.jacobian(model, q, joint.child, joint.child_frame[:3, 3])
            n = poses[joint.parent][:3, :3] @ joint.axis
            relative = b - a
            relative[:3] -= np.outer(n, n @ relative[:3])
            rows.append(relative)
        return np.concatenate(rows)

    return rates
