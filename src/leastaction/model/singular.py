"""Find joints that move nothing in some direction: their articulated inertia is singular whatever the position."""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.spline import Spline
from leastaction.spatial import quaternion, se3
from leastaction.tree import layout as kl

# An articulated inertia that is not this many times larger than its own rounding is zero.
_SAFETY = 100.0


def why_singular(tree: kl.Tree, labels: list[str], splines: dict[int, Spline]) -> str:
    """Which joint has a direction without articulated inertia at a seeded random position, in words; "" if none has.

    The sweep is ``tree/articulated.py`` in plain NumPy, each row in its own frame: it runs once, at build, and must
    not need the compiler. Beside every inertia A goes a bound E of its rounding, from the same sizes, so that neither
    units nor the rest of the mechanism decides what is zero. The bound grows with all that is behind a joint, by the
    cube of the length of a chain; but an articulated inertia is never less than that of the nearest bodies alone, and
    a joint that moves these has one, however much hangs on them.
    """
    eps = float(np.finfo(float).eps)
    axes, steps = _axes_and_steps(tree, splines)
    inertias = np.array([_spatial_inertia(const) for const in tree.const])
    errors = np.array([eps * _sizes(A) for A in inertias])
    # the same of the nearest bodies alone: behind a row without a body, those of the rows after it
    empty = [not A.any() for A in inertias]
    lacking: list[str] = []
    near, near_errors = inertias.copy(), errors.copy()
    for i in range(len(tree.rows) - 1, 0, -1):
        A, E, A0, E0 = inertias[i], errors[i], near[i], near_errors[i]
        first = tree.rows[i, kl.IU]
        count = 3 if tree.rows[i, kl.KIND] == kl.BALL else 1
        for k in range(first + count - 1, first - 1, -1):
            s, armature = axes[k], float(tree.armature[k])
            moving, moving_near = _moves(A, E, s, armature), _moves(A0, E0, s, armature)
            if not (moving or moving_near):
                lacking.append(labels[i])
            A, E = _behind(A, E, s, armature, eps) if float(s @ A @ s) + armature > 0.0 else (A, E)
            if moving_near:
                A0, E0 = _behind(A0, E0, s, armature, eps)
            else:
                # nothing is known of the rest then
                A0, E0 = np.zeros((6, 6)), np.zeros((6, 6))
        parent, X = tree.rows[i, kl.PARENT], steps[i]
        moved = X.T @ A @ X
        inertias[parent] += moved
        errors[parent] += X.T @ E @ X + eps * _sizes(moved)
        if empty[parent]:
            moved = X.T @ A0 @ X
            near[parent] += moved
            near_errors[parent] += X.T @ E0 @ X + eps * _sizes(moved)
    if not lacking:
        return ""
    others = len(set(lacking)) - 1
    more = f", and {others} more" if others else ""
    return (
        f"{lacking[-1]}{more}: nothing that it moves has inertia in one of its directions (a point has none about "
        "itself, a thin rod none about its own line), so its motion is undetermined. Give the bodies behind it mass or "
        "inertia there, give the joint armature, take a joint without that direction, or lock it; for a "
        'file without inertias, la.load(..., inertia="shapes") computes them from its shapes.'
    )


def _moves(A: FloatArray, E: FloatArray, s: FloatArray, armature: float) -> bool:
    """Whether an inertia along an axis is larger than its rounding."""
    return bool(float(s @ A @ s) + armature > _SAFETY * float(s @ E @ s))


def _behind(A: FloatArray, E: FloatArray, s: FloatArray, armature: float, eps: float) -> tuple[FloatArray, FloatArray]:
    """What is left of an inertia behind an axis, and its rounding."""
    h = A @ s
    d = float(s @ h) + armature
    P = np.eye(6) - np.outer(h, s) / d
    return A - np.outer(h, h) / d, P @ E @ P.T + eps * _sizes(A)


def _sizes(A: FloatArray) -> FloatArray:
    """A matrix (6, 6) that bounds an inertia in every direction: its traces of rotation and translation."""
    return np.diag(
        np.repeat([abs(A[0, 0]) + abs(A[1, 1]) + abs(A[2, 2]), abs(A[3, 3]) + abs(A[4, 4]) + abs(A[5, 5])], 3)
    )


def _axes_and_steps(tree: kl.Tree, splines: dict[int, Spline]) -> tuple[FloatArray, FloatArray]:
    """Axes (nu, 6) in the frames of their rows, and maps (n, 6, 6) of twists from the parent's frame to the row's."""
    rng = np.random.default_rng(20160101)
    n = len(tree.rows)
    axes, steps = np.zeros((len(tree.rates), 6)), np.zeros((n, 6, 6))
    for i in range(1, n):
        _, kind, _, d = tree.rows[i]
        before = np.eye(4)
        before[:3, :3] = tree.const[i, kl.ROT : kl.ROT + 9].reshape(3, 3)
        before[:3, 3] = tree.const[i, kl.POS : kl.POS + 3]
        # a random motion of the row, and its axes
        motion = np.eye(4)
        angle = rng.uniform(-1.0, 1.0, 3)
        if kind == kl.BALL:
            motion[:3, :3] = quaternion.to_matrix(quaternion.exp(angle))
            axes[d : d + 3, :3] = np.eye(3)
        elif kind == kl.SPLINE:
            spline = splines[i]
            motion, S = spline.motion(0.25 * (1.0 + angle[: spline.size]))
            axes[d : d + S.shape[1]] = S.T
        elif kind == kl.PRISMATIC:
            axes[d, 5] = 1.0
        elif kind != kl.SPLINE_MORE:
            motion[:3, :3] = quaternion.to_matrix(quaternion.exp(np.array([0.0, 0.0, angle[0]])))
            axes[d, 2], axes[d, 5] = 1.0, tree.const[i, kl.PITCH]
        steps[i] = se3.Ad(_inverse(before @ motion))
    return axes, steps


def _inverse(pose: FloatArray) -> FloatArray:
    """The inverse of a pose (4, 4)."""
    out = np.eye(4)
    out[:3, :3] = pose[:3, :3].T
    out[:3, 3] = -pose[:3, :3].T @ pose[:3, 3]
    return out


def _spatial_inertia(const: FloatArray) -> FloatArray:
    """Spatial inertia (6, 6) about the origin of a row's frame of the body on it."""
    m, c = const[kl.MASS], const[kl.COM : kl.COM + 3]
    I = np.zeros((3, 3))
    I[np.triu_indices(3)] = const[kl.INERTIA : kl.INERTIA + 6]
    I = I + I.T - np.diag(np.diag(I))
    hat = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    return np.block([[I - m * hat @ hat, m * hat], [-m * hat, m * np.eye(3)]])
