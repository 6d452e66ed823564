"""What ``Maximal`` knows beside contacts: enforced limits and efforts, dry friction, inequalities, sides of cones."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np

from leastaction.errors import ModelError, UnsupportedError
from leastaction.maximal.servos import bounded_servos
from leastaction.model.checks import FloatArray
from leastaction.model.joints import layout
from leastaction.model.model import JointView, Model
from leastaction.model.tables import flat_pose, pose_of
from leastaction.spatial import quaternion

# Limits and inequalities of a first state may be violated by this, in their own unit.
_DEEP = 1e-9

# An interior point needs room between two limits: at least this, radians or metres, and some units of rounding.
_ROOM, _ROUNDING = 1e-12, 1e-15

# Limits that leave less room than this, radians or metres, hold a joint: no contact can move it.
_HELD = 1e-9


@lru_cache(maxsize=64)
def limit_table(model: Model) -> tuple[Any, tuple[str, ...]]:
    """Enforced limits and efforts as kernels read them, and the joint or servo of each.

    See ``maximal.bounds``; efforts stand behind limits.
    """
    from leastaction.maximal.bounds import SERVO, Limits

    where: list[tuple[int, int, int, int]] = []
    bounds: list[tuple[float, float]] = []
    names: list[str] = []
    held = np.zeros(len(model.system.tree.rates), dtype=np.int64)
    c = model.system.coordinates
    coordinate_of, rate_of = np.argsort(c.q), np.argsort(c.v)
    for view in model.joints.values() if model.mechanism.limits_enforced else ():
        for piece in layout(view.joint):
            low, high = view.joint.limits[piece.limit].tolist()
            ball, rate = piece.factor == "ball", piece.v.start
            if ball:
                # a half turn is the largest angle there is
                found = [(2.0 / np.sin(0.5 * high), np.cos(0.5 * high))] if high < np.pi else []
            else:
                more = max(0.0, 0.5 * (_ROOM + _ROUNDING * abs(low) - (high - low))) if np.isfinite(low) else 0.0
                wide = (1.0, low - more), (-1.0, high + more)
                found = [(sign, bound) for sign, bound in wide if np.isfinite(bound)]
            if view.kind == "free":
                # among public velocities the angular ones come first
                rate = 0 if ball else rate + 3
                _check_free(model, view, bool(found) and not ball)
            place = int(rate_of[view.v.start + rate]), int(coordinate_of[view.q.start + piece.q.start])
            where += [(*place, int(ball), 0)] * len(found)
            bounds += found
            names += [view.name] * len(found)
            held[place[0]] = not ball and high - low < _HELD
    drives = [(0.0, 0.0, 0.0, 0.0)] * len(where)
    for servo in bounded_servos(model):
        where += [(int(rate_of[servo.rate]), int(coordinate_of[servo.coordinate]), SERVO, servo.rate)] * 2
        bounds += [(1.0, servo.effort), (-1.0, servo.effort)]
        drives += [(servo.stiffness, servo.damping, servo.rest, servo.share)] * 2
        names += [servo.name] * 2
    return Limits(_ints(where), _floats(bounds, 2), _floats(drives, 4), held), tuple(names)


@lru_cache(maxsize=64)
def dry_table(model: Model) -> tuple[Any, FloatArray, tuple[tuple[str, int], ...]]:
    """Coordinates with dry friction as kernels read them, half of their friction, and the joint and entry of each.

    See ``maximal.dry``.
    """
    where: list[tuple[int, int, int]] = []
    half: list[float] = []
    names: list[tuple[str, int]] = []
    c = model.system.coordinates
    coordinate_of, rate_of = np.argsort(c.q), np.argsort(c.v)
    for view in model.joints.values():
        for piece in layout(view.joint):
            first = int(rate_of[view.v.start + piece.v.start])
            coordinate = int(coordinate_of[view.q.start + piece.q.start])
            for e in range(piece.v.start, piece.v.stop):
                if view.joint.friction_values[e] > 0.0:
                    rate = int(rate_of[view.v.start + e])
                    where.append((rate, first if piece.factor == "ball" else -1, coordinate))
                    half.append(0.5 * float(view.joint.friction_values[e]))
                    names.append((view.name, e))
    return np.array(where, dtype=np.int64).reshape(-1, 3), np.array(half), tuple(names)


def _ints(rows: list[tuple[int, int, int, int]]) -> Any:
    """A table (rows, 4) of whole numbers."""
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _floats(rows: list[Any], width: int) -> FloatArray:
    """A table (rows, width) of numbers."""
    return np.array(rows, dtype=float).reshape(-1, width)


def _check_free(model: Model, view: JointView, bounded: bool) -> None:
    """Refuse limits of a free joint's translation where its coordinates are not those of the kernels."""
    c = model.system.coordinates
    first = int(np.argsort(c.q)[view.q.start])
    offset = c.offset[c.free[:, 0] == first]
    if bounded and offset.any():
        raise UnsupportedError(
            f"joint '{view.name}': limits of the translation of a free joint are enforced only where its child frame "
            "lies at the centre of mass; place it there, or use an inequality constraint."
        )


def check_bounds(model: Model, x: FloatArray, P: FloatArray, deep: float = _DEEP) -> None:
    """Raise ModelError, by name, if a first state lies beyond an enforced limit or violates an inequality.

    Args:
        model: with its enforced limits and inequalities.
        x: coordinates of the rows (nq,).
        P: poses of the rows (rows, 12).
        deep: how far beyond counts as inside.
    """
    from leastaction.maximal.bounds import BALL_ANGLE, SERVO

    limits, names = limit_table(model)
    for (_, k, kind, _), (sign, bound), name in zip(limits.where.tolist(), limits.bounds.tolist(), names, strict=True):
        if kind == SERVO:
            continue
        ball = kind == BALL_ANGLE
        at = 2.0 * np.arccos(min(1.0, abs(x[k]))) if ball else x[k]
        end = 2.0 * np.arccos(bound) if ball else bound
        if (end - at if ball else sign * (at - end)) < -deep:
            raise ModelError(
                f"'{model.name}': joint '{name}' starts at {at:.6g}, beyond its enforced limit {end:g}; "
                "start inside, or enforce_limits(False)."
            )
    for constraint in model.mechanism.constraints:
        if constraint.kind != "inequality":
            continue
        links = np.array([pose_of(P[place.row]) @ place.pose for place in map(model.place, constraint.bodies)])
        links[:, :3, 3] -= P[0, 9:12]
        value = constraint.value(links)
        if value.min() < -deep:
            row = int(value.argmin())
            raise ModelError(
                f"'{model.name}': {constraint.label}: value {value[row]:.3g} of row {row} is negative at the first "
                "state; start where it holds."
            )


def bound_rows(model: Model, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gaps (m,) of enforced limits and of inequalities at coordinates q (nq,), and the rows (m, nv) of their rates."""
    gaps: list[float] = []
    rows: list[FloatArray] = []
    for view in model.joints.values() if model.mechanism.limits_enforced else ():
        for piece in layout(view.joint):
            low, high = view.joint.limits[piece.limit].tolist()
            here, along = q[view.q][piece.q], np.zeros((piece.v.stop - piece.v.start, model.nv))
            if view.kind == "free":
                # public velocities: (angular; linear) in child axes
                R = quaternion.to_matrix(q[view.q][3:])
                turn, slide = slice(view.v.start, view.v.start + 3), slice(view.v.start + 3, view.v.stop)
                along[:, turn if piece.factor == "ball" else slide] = (
                    np.eye(3) if piece.factor == "ball" else R[piece.v]
                )
            else:
                along[:, view.v.start + piece.v.start : view.v.start + piece.v.stop] = np.eye(len(along))
            if piece.factor == "ball":
                # the angle of a ball, as kernels have it: smooth where it is not turned
                if high < np.pi:
                    gaps.append(2.0 * (abs(here[0]) - np.cos(0.5 * high)) / np.sin(0.5 * high))
                    rows.append(-np.copysign(1.0 / np.sin(0.5 * high), here[0]) * (here[1:] @ along))
                continue
            for sign, bound in ((1.0, low), (-1.0, high)):
                if np.isfinite(bound):
                    gaps.append(sign * (float(here[0]) - bound))
                    rows.append(sign * along[0])
    for constraint in model.mechanism.constraints:
        if constraint.kind == "inequality":
            poses, twists = _link_motions(model, q, constraint.bodies)
            gaps += constraint.value(poses).tolist()
            rows += list(constraint.matrix(poses) @ twists)
    return np.array(gaps), np.array(rows).reshape(-1, model.nv)


def _link_motions(model: Model, q: FloatArray, names: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
    """Poses (k, 4, 4) of bodies in the world, and the map (6 k, nv) from v to their twists in their own axes."""
    from leastaction.dynamics import entries

    places = [model.place(name) for name in names]
    frames = np.array([flat_pose(place.pose) for place in places])
    poses, J = np.zeros((1, len(names), 4, 4)), np.zeros((len(names), 1, 6, model.nv))
    entries.frame_poses(model.system, q[None], np.array([place.row for place in places]), frames, poses)
    for k, place in enumerate(places):
        if place.row > 0:
            entries.frame_jacobian(model.system, q[None], place.row, frames[k], J[k])
            # from world axes to those of the body
            J[k, 0] = (poses[0, k, :3, :3].T @ J[k, 0].reshape(2, 3, -1)).reshape(6, -1)
    return poses[0], J.reshape(-1, model.nv)


def bound_name(model: Model, number: int) -> str:
    """Words for a limit, an effort or a row of an inequality, in the order of their forces."""
    from leastaction.maximal.bounds import SERVO

    limits, names = limit_table(model)
    if number < len(names):
        servo = limits.where[number, 2] == SERVO
        return f"the effort of servo '{names[number]}'" if servo else f"the limit of joint '{names[number]}'"
    number -= len(names)
    for constraint in model.mechanism.constraints:
        if constraint.kind == "inequality":
            if number < constraint.size:
                return constraint.label
            number -= constraint.size
    return "a limit"


def inequality_count(model: Model) -> int:
    """Number of rows of all inequalities."""
    return int(model.inequalities.kind[:, 4].sum())


def inequality_pairs(model: Model) -> list[tuple[int, int]]:
    """Rows of the tree that an inequality of the user couples."""
    table, pairs = model.inequalities, []
    for _, first, count, _, _ in table.kind.tolist():
        pairs += list(combinations(table.bodies[first : first + count].tolist(), 2))
    return pairs


def pyramid(sides: int) -> FloatArray:
    """Sides (n, 3) of the friction pyramid: normals in the plane, and cos(pi/n); see ``maximal.cone``."""
    a = 2.0 * np.pi * (np.arange(sides) + 0.5) / sides
    return np.column_stack([np.cos(a), np.sin(a), np.full(sides, np.cos(np.pi / sides))])
