"""Friction inside joints: points around a joint that carry its reaction (Sueda 2021, section 2.11).

    points  (k, 3) in the frame of the child's centre of mass; normals (k, 3) and tangents (k, 2, 3) in its axes
    N       (k, 6) rows of the normals on the child's twist, n^T (-[x], 1)

The reaction wrench r of a joint on its child is spread over the points with the smallest impulses,
alpha = (N M^-1 N^T + eps)^-1 N M^-1 r (2.125); they are bilateral, so their sizes bound the friction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.errors import ModelError, UnsupportedError
from leastaction.methods.maximal_euler_rows import Plan, Rows, adjoint, inverse, mobility, tangents
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model

KINDS = ("revolute", "continuous", "prismatic", "spherical")
_EPSILON = 1e-8
_RING = 8
"""Points of a ring around a shaft."""


@dataclass(frozen=True, eq=False)
class Bearing:
    """Points of a joint.

    Attributes:
        joint: its name.
        body: its child.
        coefficient: of friction.
        normals: (k, 6) rows of the points' normals on the child's twist.
        tangents: (2 k, 6) of two tangents each.
        rows: (f, 6) on the child's twist relative to the body before it: along each friction impulse.
        spread: (k, 6) normal impulses of the points from the reaction wrench, times the coefficient.
        share: (f, k) bounds of the friction impulses from the sizes of the normal ones. In a joint with one coordinate
            the friction of all points is one impulse along it, of which each point bounds its lever's part; in a ball
            every point has two.
    """

    joint: str
    body: int
    coefficient: float
    normals: FloatArray
    tangents: FloatArray
    rows: FloatArray
    spread: FloatArray
    share: FloatArray


def check_bearings(bearings: Any) -> dict[str, tuple[float, float, float]]:
    """Bearings by joint name as (coefficient, radius, length), checked."""
    out = {}
    for name, given in dict(bearings or {}).items():
        where = f"MaximalEuler: bearing of joint '{name}'"
        if not isinstance(given, list | tuple) or len(given) != 3:
            raise ModelError(f"{where}: give (coefficient, radius, length), got {given!r}.")
        mu, radius, length = (check_number(value, where, nonnegative=True) for value in given)
        if radius == 0 or length == 0:
            raise ModelError(f"{where}: radius and length must be positive, got {given!r}.")
        out[str(name)] = (mu, radius, length)
    return out


@lru_cache(maxsize=64)
def bearings_of(model: Model, plan: Plan, given: tuple[tuple[str, float, float, float], ...]) -> tuple[Bearing, ...]:
    """The points of every joint that has a bearing."""
    out = []
    for name, mu, radius, length in given:
        joint = model.joint(name).joint
        place = model.place(joint.child)
        b = plan.number.get(place.row)
        if joint.kind not in KINDS or b is None or sorted(plan.limbs[b].rates) != _places(model, name):
            raise UnsupportedError(
                f"joint '{name}' is {joint.kind}; bearings are for {', '.join(KINDS)} joints between bodies with mass."
            )
        # the joint frame on the child's side, seen from the centre of mass
        at = np.eye(4)
        at[:3, :3], at[:3, 3] = plan.bodies.frames[b, :9].reshape(3, 3), plan.bodies.frames[b, 9:]
        frame = inverse(at) @ place.pose @ joint.child_frame
        x, n = _points(joint.kind, joint.axis, radius, length)
        x, n = x @ frame[:3, :3].T + frame[:3, 3], n @ frame[:3, :3].T
        t = np.array([tangents(normal) for normal in n])
        N = np.hstack([np.cross(x, n), n])
        T = np.concatenate([np.hstack([np.cross(point, pair), pair]) for point, pair in zip(x, t, strict=True)])
        W = mobility(plan)[b]
        A = N @ W @ N.T
        spread = np.linalg.solve(A + _EPSILON * np.trace(A) / len(A) * np.eye(len(A)), N @ W)
        rows, share = T, np.repeat(np.eye(len(N)), 2, axis=0)
        if joint.kind != "spherical":
            # one row along the joint's own motion; its lever at each point is how fast the point slides
            axis = frame[:3, :3] @ joint.axis
            S = np.hstack([np.zeros(3), axis] if joint.kind == "prismatic" else [axis, np.cross(frame[:3, 3], axis)])
            rows, share = S[None] / (S @ S), np.linalg.norm((T @ S).reshape(-1, 2), axis=1)[None]
        out.append(Bearing(name, b, mu, N, T, rows, mu * spread, share))
    return tuple(out)


def _places(model: Model, name: str) -> list[int]:
    """Places in v of a joint."""
    view = model.joint(name)
    return list(range(view.v.start, view.v.stop))


def _points(kind: str, axis: FloatArray, radius: float, length: float) -> tuple[FloatArray, FloatArray]:
    """Points and normals (k, 3) around a joint, in its frame."""
    if kind == "spherical":
        sides = np.vstack([np.eye(3), -np.eye(3)])
        return radius * sides, sides
    u, w = tangents(axis)
    x: list[FloatArray] = []
    n: list[FloatArray] = []
    for end in (-0.5 * length, 0.5 * length):
        if kind == "prismatic":
            # the edges of a square rod, with a normal on each of the two faces
            for one, other in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
                x += [radius * (one * u + other * w) + end * axis] * 2
                n += [one * u, other * w]
            continue
        # a shaft: a ring at each end, and its face against sliding along the axis
        for angle in np.arange(_RING) * (2 * np.pi / _RING):
            direction = np.cos(angle) * u + np.sin(angle) * w
            x += [radius * direction + end * axis] * 2
            n += [direction, np.sign(end) * axis]
    return np.array(x), np.array(n)


def bearing_rows(plan: Plan, bearings: tuple[Bearing, ...], E: FloatArray) -> Rows:
    """Friction rows of all bearings: velocity of the child relative to the body before it."""
    out = Rows(len(plan.limbs))
    for bearing in bearings:
        parent = plan.limbs[bearing.body].parent
        blocks: list[tuple[int | None, FloatArray]] = [(bearing.body, bearing.rows)]
        if parent is not None:
            blocks.append((parent, -bearing.rows @ adjoint(inverse(E[bearing.body]) @ E[parent])))
        out.add(blocks, np.zeros(len(bearing.rows)), f"the bearing of joint '{bearing.joint}'")
    return out


def bearing_bounds(bearings: tuple[Bearing, ...], G: Rows) -> tuple[FloatArray, FloatArray]:
    """carry (points, m) and share (rows, points): friction impulses are bounded by share |carry multipliers|."""
    points, rows = (sum(size) for size in zip(*((len(b.spread), len(b.rows)) for b in bearings), strict=True))
    carry, share = np.zeros((points, len(G.rhs))), np.zeros((rows, points))
    p = r = 0
    for bearing in bearings:
        # the block of the joint's own rows on its child: force on the child is N^T lam
        start, _, block = next(part for part in G.parts if part[1] == bearing.body)
        k, f = len(bearing.spread), len(bearing.rows)
        carry[p : p + k, start : start + len(block)] = bearing.spread @ block.T
        share[r : r + f, p : p + k] = bearing.share
        p, r = p + k, r + f
    return carry, share
