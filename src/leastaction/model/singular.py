"""Find joints that move nothing: their articulated inertia is singular whatever the position."""

from __future__ import annotations

import numpy as np

from leastaction.errors import ModelError
from leastaction.kernels import layout as kl
from leastaction.model.checks import FloatArray
from leastaction.model.spline import Spline
from leastaction.spatial import quaternion, se3

# An articulated inertia this much smaller than the composite one is zero but for rounding.
_RELATIVE = 1e-11


def check_singular(tree: kl.Tree, labels: list[str], splines: dict[int, Spline]) -> None:
    """Raise if some row of the tree has no articulated inertia at a seeded random position.

    The sweep is ``kernels/articulated.py`` in plain NumPy: it runs once, at build, and must not need the compiler.
    """
    n = len(tree.rows)
    axes, inertias = _axes_and_inertias(tree, splines)
    composite = inertias.copy()
    for i in range(n - 1, 0, -1):
        parent = tree.rows[i, kl.PARENT]
        composite[parent] += composite[i]
    for i in range(n - 1, 0, -1):
        A = inertias[i]
        first = tree.rows[i, kl.IU]
        count = 3 if tree.rows[i, kl.KIND] == kl.BALL else 1
        for k in range(first + count - 1, first - 1, -1):
            s = axes[k]
            h = A @ s
            d = float(s @ h) + tree.armature[k]
            scale = float(s @ composite[i] @ s) + tree.armature[k]
            if not d > _RELATIVE * scale:
                raise ModelError(
                    f"{labels[i]}: nothing behind it has inertia in its direction, so its motion is undetermined. "
                    "Give mass or inertia to the bodies behind it, give the joint armature, or lock it."
                )
            A = A - np.outer(h, h) / d
        inertias[tree.rows[i, kl.PARENT]] += A


def _axes_and_inertias(tree: kl.Tree, splines: dict[int, Spline]) -> tuple[FloatArray, FloatArray]:
    """Axes (nu, 6) of all rates and inertias (n, 6, 6) of all rows, about the first root, at a random position."""
    rng = np.random.default_rng(20160101)
    n = len(tree.rows)
    poses = np.tile(np.eye(4), (n, 1, 1))
    poses[0, :3, 3] = -tree.origin[0]
    axes, inertias = np.zeros((len(tree.rates), 6)), np.zeros((n, 6, 6))
    for i in range(1, n):
        parent, kind, _, d = tree.rows[i]
        before = np.eye(4)
        before[:3, :3] = tree.const[i, kl.ROT : kl.ROT + 9].reshape(3, 3)
        before[:3, 3] = tree.const[i, kl.POS : kl.POS + 3]
        # a random motion of the row
        motion = np.eye(4)
        angle = rng.uniform(-1.0, 1.0, 3)
        if kind == kl.BALL:
            motion[:3, :3] = quaternion.to_matrix(quaternion.exp(angle))
        elif kind == kl.SPLINE:
            spline = splines[i]
            motion, S = spline.motion(0.25 * (1.0 + angle[: spline.size]))
        elif kind not in (kl.PRISMATIC, kl.SPLINE_MORE):
            motion[:3, :3] = quaternion.to_matrix(quaternion.exp(np.array([0.0, 0.0, angle[0]])))
        poses[i] = poses[parent] @ before @ motion
        # its axes about the origin
        Ad = se3.Ad(poses[i])
        if kind == kl.BALL:
            axes[d : d + 3] = Ad[:, :3].T
        elif kind == kl.PRISMATIC:
            axes[d] = Ad[:, 5]
        elif kind == kl.SPLINE:
            axes[d : d + S.shape[1]] = (Ad @ S).T
        elif kind == kl.SPLINE_MORE:
            pass
        else:
            axes[d] = Ad[:, 2] + tree.const[i, kl.PITCH] * Ad[:, 5]
        inertias[i] = _spatial_inertia(tree.const[i], poses[i])
    return axes, inertias


def _spatial_inertia(const: FloatArray, pose: FloatArray) -> FloatArray:
    """Spatial inertia (6, 6) about the origin of the body on one row."""
    m = const[kl.MASS]
    I = np.zeros((3, 3))
    I[np.triu_indices(3)] = const[kl.INERTIA : kl.INERTIA + 6]
    I = I + I.T - np.diag(np.diag(I))
    R = pose[:3, :3]
    c = R @ const[kl.COM : kl.COM + 3] + pose[:3, 3]
    hat = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    return np.block([[R @ I @ R.T - m * hat @ hat, m * hat], [-m * hat, m * np.eye(3)]])
