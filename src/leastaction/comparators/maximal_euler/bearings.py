"""Friction inside joints: points around a joint that carry its reaction (Sueda 2021, section 2.11).

    points  (k, 3) in the frame of the child's centre of mass; normals (k, 3) and tangents (k, 2, 3) in its axes
    N       (k, 6) rows of the normals on the child's twist, n^T (-[x], 1)

The reaction wrench r of a joint on its child is spread over the points with the smallest impulses,
alpha = (N M^-1 N^T + eps)^-1 N M^-1 r (2.125); they are bilateral, so their sizes bound the friction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from leastaction.comparators.maximal_euler.rows import Plan, Rows, adjoint, inverse, mobility, tangents
from leastaction.errors import UnsupportedError
from leastaction.model.checks import FloatArray
from leastaction.model.elements import Joint
from leastaction.model.model import Model

_EPSILON = 1e-8
_RING = 8
"""Points of a ring around a shaft."""


@dataclass(frozen=True, eq=False)
class Points:
    """Points of a joint with a bearing.

    Attributes:
        joint: its name.
        name: what its rows are called.
        body: its child.
        before: the body on its other side, None for the world.
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
    name: str
    body: int
    before: int | None
    coefficient: float
    normals: FloatArray
    tangents: FloatArray
    rows: FloatArray
    spread: FloatArray
    share: FloatArray


@lru_cache(maxsize=64)
def bearings_of(model: Model, plan: Plan) -> tuple[Points, ...]:
    """The points of every joint that has a bearing, those that close loops too."""
    out = []
    for name, view in model.joints.items():
        if view.joint.bearing is not None:
            b = plan.number.get(model.place(view.joint.child).row)
            if b is None or sorted(plan.limbs[b].rates) != list(range(view.v.start, view.v.stop)):
                raise UnsupportedError(
                    f"'{model.name}': joint '{name}' has a bearing, and a body beside it has no mass; give it one."
                )
            out.append(_bearing(model, plan, view.joint, b, plan.limbs[b].parent, f"joint {plan.limbs[b].joints}"))
    for name in model.loop_names:
        joint = model.split.joints[name]
        if joint.bearing is not None and joint.locked is None:
            before, b = (plan.number.get(model.place(body).row) for body in (joint.parent, joint.child))
            if b is None:
                raise UnsupportedError(
                    f"'{model.name}': the child of loop joint '{name}' does not move; swap parent and child."
                )
            out.append(_bearing(model, plan, joint, b, before, f"loop joint '{name}'"))
    return tuple(out)


def _bearing(model: Model, plan: Plan, joint: Joint, b: int, before: int | None, name: str) -> Points:
    """The points of one joint whose child is body b."""
    bearing = joint.bearing
    assert bearing is not None
    frame = child_frame(model, plan, joint, b)
    x, n = _points(joint.kind, joint.axis, bearing.radius, bearing.length or 0.0)
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
        S = joint_motion(joint, frame)
        rows, share = S[None] / (S @ S), np.linalg.norm((T @ S).reshape(-1, 2), axis=1)[None]
    mu = bearing.coefficient
    return Points(joint.name, name, b, before, mu, N, T, rows, mu * spread, share)


def child_frame(model: Model, plan: Plan, joint: Joint, b: int) -> FloatArray:
    """Pose (4, 4) of the joint frame on the child's side, seen from the centre of mass of body b that carries it."""
    at = np.eye(4)
    at[:3, :3], at[:3, 3] = plan.bodies.frames[b, :9].reshape(3, 3), plan.bodies.frames[b, 9:]
    return inverse(at) @ model.place(joint.child).pose @ joint.child_frame


def joint_motion(joint: Joint, frame: FloatArray) -> FloatArray:
    """Twist (6,) of the child per unit rate of a joint with one coordinate, in the axes of its body."""
    axis = frame[:3, :3] @ joint.axis
    if joint.kind == "prismatic":
        return np.hstack([np.zeros(3), axis])
    return np.hstack([axis, np.cross(frame[:3, 3], axis)])


def _add_relative(out: Rows, E: FloatArray, b: int, before: int | None, rows: FloatArray, name: str) -> None:
    """Append rows (k, 6) on the twist of body b relative to the one before it, in its own axes."""
    blocks: list[tuple[int | None, FloatArray]] = [(b, rows)]
    if before is not None:
        blocks.append((before, -rows @ adjoint(inverse(E[b]) @ E[before])))
    out.add(blocks, np.zeros(len(rows)), name)


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


def bearing_rows(plan: Plan, bearings: tuple[Points, ...], E: FloatArray) -> Rows:
    """Friction rows of all bearings: velocity of the child relative to the body before it."""
    out = Rows(len(plan.limbs))
    for bearing in bearings:
        _add_relative(out, E, bearing.body, bearing.before, bearing.rows, f"the bearing of joint '{bearing.joint}'")
    return out


def bearing_bounds(bearings: tuple[Points, ...], G: Rows) -> tuple[FloatArray, FloatArray]:
    """carry (points, m) and share (rows, points): friction impulses are bounded by share |carry multipliers|."""
    points, rows = (sum(size) for size in zip(*((len(b.spread), len(b.rows)) for b in bearings), strict=True))
    carry, share = np.zeros((points, len(G.rhs))), np.zeros((rows, points))
    p = r = 0
    for bearing in bearings:
        # the block of the joint's own rows on its child: force on the child is N^T lam
        own = [part for part in G.parts if part[1] == bearing.body and G.names[part[0]] == bearing.name]
        start, _, block = own[0]
        k, f = len(bearing.spread), len(bearing.rows)
        carry[p : p + k, start : start + len(block)] = bearing.spread @ block.T
        share[r : r + f, p : p + k] = bearing.share
        p, r = p + k, r + f
    return carry, share
