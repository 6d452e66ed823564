"""Gaps of contacts by their definitions, and distances of solids by projections, slow and plain.

A solid is (kind, size): "sphere" (radius,), "capsule" and "cylinder" (radius, half length) along z, "box" half sides
(3), "ellipsoid" half axes (3). A pose is (4, 4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leastaction.contact import layout as cl
from leastaction.model.checks import FloatArray
from leastaction.reference.matrices import hat

Solid = tuple[str, tuple[float, ...]]


def gap(kind: int, row: FloatArray, pose_a: FloatArray, pose_b: FloatArray) -> float:
    """The gap of one contact, metres, by the formulas of ``contact/layout.py``."""
    Ra, Rb = pose_a[:3, :3], pose_b[:3, :3]
    d = pose_a[:3, 3] + Ra @ row[:3] - pose_b[:3, 3] - Rb @ row[4:7]
    ra, rb, ea, eb = row[3], row[7], Ra @ row[8:11], Rb @ row[11:14]
    if kind == cl.PLANE:
        return float(eb @ d - ra)
    if kind == cl.POINTS:
        return float(np.linalg.norm(d) - ra - rb)
    if kind == cl.LINES:
        n = np.cross(ea, eb)
        return float(row[14] * (n @ d) / np.linalg.norm(n) - ra - rb)
    if kind == cl.LINE:
        return float(np.linalg.norm(d - eb * (eb @ d)) - ra - rb)
    if kind == cl.DISC:
        return float(eb @ d - ra * np.linalg.norm(np.cross(eb, ea)))
    if kind == cl.RIM:
        return _rim_gap(row, d, ea, eb, Ra @ row[cl.START : cl.START + 3])
    B = row[14:23].reshape(3, 3)
    if kind == cl.OVAL_GAP:
        return _oval_gap(Ra @ B, d, eb) - float(rb)
    return float(eb @ d - np.linalg.norm(B.T @ Ra.T @ eb))


def _oval_gap(B: FloatArray, d: FloatArray, e: FloatArray) -> float:
    """The largest separation of an ellipsoid at d, with half axes B, and a line along e through 0, or 0 itself."""
    from scipy.optimize import minimize

    def apart(n: FloatArray) -> tuple[float, FloatArray]:
        """The negative separation along the part of n across the line, and its slope."""
        x = n - e * (e @ n)
        size, reach = np.linalg.norm(x), np.linalg.norm(B.T @ x)
        value = float((reach - x @ d) / size)
        slope = (B @ (B.T @ x) / reach - d - value * x / size) / size
        return value, slope - e * (e @ slope)

    best = d - e * (e @ d)
    for _ in range(5):
        best = minimize(apart, best / np.linalg.norm(best), jac=True, method="BFGS", options={"gtol": 1e-9}).x
        if np.linalg.norm(apart(best / np.linalg.norm(best))[1]) < 1e-8:
            break
    return -apart(best)[0]


def _rim_gap(row: FloatArray, d: FloatArray, e: FloatArray, eb: FloatArray, start: FloatArray) -> float:
    """The least distance of a rim with its centre at d from the line along eb through 0, downhill from ``start``."""
    from scipy.optimize import minimize_scalar

    side = np.cross(e, start)

    def across(angle: FloatArray) -> FloatArray:
        """Of points of the rim at angles (n,) from the start, the parts (n, 3) across the line."""
        x = d + row[cl.RA] * (np.cos(angle)[:, None] * start + np.sin(angle)[:, None] * side)
        return np.asarray(x - np.outer(x @ eb, eb))

    def square(angle: float) -> float:
        return float((across(np.array([angle])) ** 2).sum())

    # downhill over a grid, then to the last digit
    n, k = 720, 0
    far = (across(np.linspace(0.0, 2 * np.pi, n, endpoint=False)) ** 2).sum(axis=1)
    while min(far[k - 1], far[(k + 1) % n]) < far[k]:
        k = (k - 1 if far[k - 1] < far[(k + 1) % n] else k + 1) % n
    step = 2 * np.pi / n
    best = minimize_scalar(square, bracket=(step * (k - 1), step * k, step * (k + 1))).x
    w, sign = across(np.array([best]))[0], row[cl.SIGN]
    tangent = -np.sin(best) * start + np.cos(best) * side
    side_of = 1.0 if sign == 0.0 else np.sign(sign * np.cross(tangent, eb) @ w)
    return float(side_of * np.linalg.norm(w) - row[cl.RB])


def moved(pose: FloatArray, eta: FloatArray) -> FloatArray:
    """A pose moved by the spatial twist eta = (w; v): to first order delta R = [w] R, delta x = v + w x x."""
    from scipy.linalg import expm

    twist = np.zeros((4, 4))
    twist[:3, :3], twist[:3, 3] = hat(eta[:3]), eta[3:]
    return np.asarray(expm(twist) @ pose)


def gap_derivative(
    kind: int, row: FloatArray, pose_a: FloatArray, pose_b: FloatArray, h: float = 1e-5
) -> tuple[FloatArray, FloatArray]:
    """Derivatives (6,) of the gap by spatial displacements of a and b, by differences of fourth order."""
    out = np.zeros((2, 6))
    for side in range(2):
        for c in range(6):
            for k, weight in ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12)):
                eta = np.zeros(6)
                eta[c] = k * h
                poses = [pose_a, pose_b]
                poses[side] = moved(poses[side], eta)
                out[side, c] += weight / h * gap(kind, row, poses[0], poses[1])
    return out[0], out[1]


def projection(solid: Solid, y: FloatArray) -> FloatArray:
    """The points of a solid that are nearest to y (..., 3), in the solid's frame."""
    kind, size = solid
    if kind == "sphere":
        return _shortened(y, size[0])
    if kind == "box":
        return np.asarray(np.clip(y, -np.array(size), size))
    if kind == "capsule":
        core = np.zeros_like(y)
        core[..., 2] = np.clip(y[..., 2], -size[1], size[1])
        return core + _shortened(y - core, size[0])
    if kind == "cylinder":
        return np.concatenate([_shortened(y[..., :2], size[0]), np.clip(y[..., 2:], -size[1], size[1])], axis=-1)
    raise ValueError(f"no projection on {kind}")


def _shortened(y: FloatArray, radius: float) -> FloatArray:
    """Vectors no longer than a radius."""
    length = np.maximum(np.linalg.norm(y, axis=-1, keepdims=True), 1e-300)
    return np.asarray(y * np.minimum(1.0, radius / length))


Nearest = Callable[[FloatArray], FloatArray]
"""Of points (n, 3), the nearest points of n convex sets."""


def placed(solid: Solid, poses: FloatArray) -> Nearest:
    """Projection on a solid at n poses (n, 4, 4)."""
    R, p = poses[:, :3, :3], poses[:, :3, 3]

    def nearest(x: FloatArray) -> FloatArray:
        local = np.einsum("nji,nj->ni", R, x - p)
        return np.asarray(np.einsum("nij,nj->ni", R, projection(solid, local)) + p)

    return nearest


def triangles(corners: FloatArray) -> Nearest:
    """Projection on n triangles with corners (n, 3, 3)."""
    a, u, v = corners[:, 0], corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    n = np.cross(u, v)
    frames = np.linalg.inv(np.stack([u, v, n], axis=2))

    def nearest(x: FloatArray) -> FloatArray:
        # the foot in the plane, or the nearest point of an edge
        weights = np.einsum("nij,nj->ni", frames, x - a)[:, :2]
        inside = (weights >= 0.0).all(axis=1) & (weights.sum(axis=1) <= 1.0)
        best = a + weights[:, :1] * u + weights[:, 1:] * v
        far = np.where(inside, -1.0, np.inf)
        for k in range(3):
            p, e = corners[:, k], corners[:, (k + 1) % 3] - corners[:, k]
            t = np.clip(np.einsum("ni,ni->n", e, x - p) / np.einsum("ni,ni->n", e, e), 0.0, 1.0)
            y = p + t[:, None] * e
            d = np.linalg.norm(x - y, axis=1)
            best, far = np.where((d < far)[:, None], y, best), np.minimum(d, far)
        return np.asarray(best)

    return nearest


def apart(one: Nearest, two: Nearest, start: FloatArray, steps: int = 2000) -> tuple[FloatArray, FloatArray]:
    """Distances (n,) of n pairs of convex sets, 0 where they meet, and differences (n, 3) of their nearest points.

    Accelerated projected gradients: from a point of the first set to the second and back, with momentum that starts
    again where it does not help.
    """
    x = one(start)
    y, t = x, np.ones((len(x), 1))
    best = np.full((len(x), 1), np.inf)
    for _ in range(steps):
        new = one(two(y))
        length = np.linalg.norm(new - two(new), axis=1)[:, None]
        ahead = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        # where the step is longer than before, forget the momentum and go on from the best point
        good = length <= best
        y = np.where(good, new + (t - 1.0) / ahead * (new - x), x)
        x, t, best = np.where(good, new, x), np.where(good, ahead, 1.0), np.minimum(length, best)
    return best[:, 0], x - two(x)


def distances(
    one: Solid, poses_a: FloatArray, two: Solid, poses_b: FloatArray, steps: int = 2000
) -> tuple[FloatArray, FloatArray]:
    """Distances (n,) of two solids at n pairs of poses (n, 4, 4), and differences (n, 3) of points; see ``apart``."""
    return apart(placed(one, poses_a), placed(two, poses_b), poses_b[:, :3, 3], steps)


def support(solid: Solid, direction: FloatArray) -> FloatArray:
    """The point of a solid farthest along a direction (3,), both in the solid's frame."""
    kind, size = solid
    u = direction / np.linalg.norm(direction)
    if kind == "sphere":
        return np.asarray(size[0] * u)
    if kind == "box":
        return np.asarray(np.where(u >= 0, 1.0, -1.0) * size)
    if kind == "capsule":
        return np.asarray(size[0] * u + [0.0, 0.0, np.copysign(size[1], u[2])])
    if kind == "cylinder":
        across = u[:2] / max(float(np.linalg.norm(u[:2])), 1e-300)
        return np.array([*(size[0] * across), np.copysign(size[1], u[2])])
    radii = np.array(size)
    return np.asarray(radii**2 * u / np.linalg.norm(radii * u))
