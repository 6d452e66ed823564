"""Motion of a joint in plain NumPy: for joints that are held, and for what is computed once at build."""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.joints import Ball, Factor, JointGeometry, SplineFactor, factors
from leastaction.spatial import quaternion


def joint_motion(joint: JointGeometry, q: FloatArray) -> FloatArray:
    """Pose (4, 4) of the joint's child side in its parent side at coordinates q (nq,)."""
    out = np.eye(4)
    k = 0
    for factor in factors(joint):
        out = out @ factor.before @ factor_motion(factor, q[k : k + factor.nq])
        k += factor.nq
    return out


def factor_motion(factor: Factor, q: FloatArray) -> FloatArray:
    """Pose (4, 4) of one factor at its coordinates."""
    if isinstance(factor, SplineFactor):
        return factor.spline.pose(q)
    out = np.eye(4)
    if isinstance(factor, Ball):
        out[:3, :3] = quaternion.to_matrix(q)
        return out
    if factor.kind != "prismatic":
        out[:3, :3] = quaternion.to_matrix(quaternion.exp(factor.axis * q[0]))
    slide = 1.0 if factor.kind == "prismatic" else factor.pitch
    out[:3, 3] = slide * q[0] * factor.axis
    return out
