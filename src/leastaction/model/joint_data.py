"""Checks of a joint's data, and the stored form of each: one entry per coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.bearing import Bearing
from leastaction.model.checks import WORLD, FloatArray, check_name, check_number, frozen
from leastaction.model.elements import Coefficients, Joint
from leastaction.model.joints import (
    Law,
    Piece,
    check_coordinates,
    check_geometry,
    check_parts,
    kind_of,
    layout,
)
from leastaction.model.pose import check_pose
from leastaction.model.spline import Spline, check_spline


def check_joint(joint: Joint) -> None:
    """Check every field of a joint and bring it into its stored form, in place; doing it twice changes nothing."""
    where = f"joint '{check_name(joint.name, 'joint')}'"
    # kind, bodies and geometry
    try:
        kind_of(joint.kind)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    check_name(joint.parent, f"{where}: parent")
    if check_name(joint.child, f"{where}: child") == WORLD:
        raise ModelError(f"{where}: the child must not be 'world'; let 'world' be the parent.")
    if joint.parent == joint.child:
        raise ModelError(f"{where}: parent and child are both '{joint.parent}'.")
    joint.axis, joint.axis2, joint.pitch = check_geometry(joint.kind, joint.axis, joint.axis2, joint.pitch, where)
    joint.parts = check_parts(joint.kind, joint.parts, where)
    joint.spline = check_spline(joint.kind, joint.spline, where)
    joint.parent_frame = check_pose(joint.parent_frame, f"{where}: parent_frame")
    joint.child_frame = check_pose(joint.child_frame, f"{where}: child_frame")

    # springs and dampers
    joint.damping = _coefficients(joint, joint.damping, f"{where}: damping")
    joint.stiffness = _coefficients(joint, joint.stiffness, f"{where}: stiffness")
    joint.rest = _rest(joint, joint.rest, f"{where}: rest")

    # friction and rotor inertia mean nothing on a free joint; a ball's rotor has no preferred axis
    if isinstance(joint.friction, Bearing):
        joint.friction.check(joint.kind, f"{where}: friction")
    else:
        joint.friction = _numbers(joint, joint.friction, f"{where}: friction")
    joint.armature = _numbers(joint, joint.armature, f"{where}: armature")
    for what, values in (("friction", joint.friction_values), ("armature", joint.armature)):
        if joint.kind == "free" and values.any():
            raise ModelError(f"{where}: {what} has no meaning on a free joint; leave it 0.")
    for piece in layout(joint):
        if piece.factor == "ball" and np.ptp(joint.armature[piece.v]) != 0:
            raise ModelError(f"{where}: armature must be the same for the three coordinates of a ball.")

    # bounds
    joint.limits = _limits(joint, joint.limits, f"{where}: limits")
    joint.effort = _bounds(joint, joint.effort, f"{where}: effort")
    joint.speed = _bounds(joint, joint.speed, f"{where}: speed")
    if joint.locked is not None:
        joint.locked = check_coordinates(joint, joint.locked, f"{where}: locked")
    if joint.start is not None:
        joint.start = check_coordinates(joint, joint.start, f"{where}: start")


def _listed(joint: Joint, value: Any, where: str) -> list[Any]:
    """One entry per velocity coordinate, from one value for all or a sequence."""
    single = isinstance(value, Law) or np.ndim(np.asarray(value, dtype=object)) == 0
    entries = [value] * joint.nv if single else list(value)
    if len(entries) != joint.nv:
        names = ", ".join(joint.velocity_names) or "none"
        raise ModelError(f"{where}: expected one number or {joint.nv} ({names}), got {len(entries)}.")
    # a value for a joint without coordinates would be lost
    if joint.nv == 0 and single and value is not None and (isinstance(value, Law) or value != 0):
        raise ModelError(f"{where}: a {joint.kind} joint has no coordinates, so it cannot have a value.")
    return entries


def _numbers(joint: Joint, value: Any, where: str) -> FloatArray:
    """Numbers that are not negative, one per velocity coordinate."""
    entries = _listed(joint, value, where)
    return frozen([check_number(x, where, nonnegative=True) for x in entries])


def _coefficients(joint: Joint, value: Any, where: str) -> Coefficients:
    """Numbers or laws, one per velocity coordinate."""
    entries = _listed(joint, value, where)
    if not any(isinstance(entry, Law) for entry in entries):
        for entry in entries:
            if check_number(entry, where) < 0:
                raise ModelError(f"{where}: must not be negative, got {entry}; a Law may have any sign.")
        return frozen(entries)
    # laws stand on screw coordinates only
    screws = [False] * joint.nv
    for piece in layout(joint):
        screws[piece.v] = [piece.factor == "screw" and joint.kind != "free"] * (piece.v.stop - piece.v.start)
    for i, entry in enumerate(entries):
        if not isinstance(entry, Law):
            entries[i] = check_number(entry, where, nonnegative=True)
        elif not screws[i]:
            raise ModelError(f"{where}: a Law needs a screw coordinate, '{joint.velocity_names[i]}' is none.")
    return tuple(entries)


def _rest(joint: Joint, value: Any, where: str) -> FloatArray:
    """Rest coordinates (nq,); the number 0 is the neutral position, another number goes to every screw."""
    if np.ndim(np.asarray(value, dtype=object)) != 0:
        return check_coordinates(joint, value, where)
    number = check_number(value, where)
    out = joint.neutral
    if number != 0:
        pieces = layout(joint)
        if not pieces or any(piece.factor == "ball" for piece in pieces):
            names = ", ".join(joint.coordinate_names) or "none"
            raise ModelError(f"{where}: give one number per position coordinate ({names}), or 0 for neutral.")
        out[:] = number
    return frozen(out)


def _bounds(joint: Joint, value: Any, where: str) -> FloatArray:
    """Positive bounds, one per velocity coordinate; infinite where None."""
    entries = [np.inf if x is None else x for x in _listed(joint, value, where)]
    return frozen([check_number(x, where, positive=True, infinite=True) for x in entries])


def _limits(joint: Joint, value: Any, where: str) -> FloatArray:
    """Limits (nl, 2): one row per screw coordinate and per ball, infinite where there is none."""
    pieces = layout(joint)
    out = np.tile([-np.inf, np.inf], (len(pieces), 1))
    ends = out if joint.spline is None else _spline_ends(joint.spline)
    if value is None:
        return frozen(ends)
    # rows: a bare pair stands for the only coordinate
    rows = _rows(value, where)
    if len(rows) == 2 and not any(isinstance(row, (Sequence, np.ndarray)) or row is None for row in rows):
        rows = [rows]
    if len(pieces) == 1 and len(rows) == 2:
        rows = [rows]
    if len(rows) != len(pieces):
        raise ModelError(
            f"{where}: expected one (low, high) for each of the {len(pieces)} screw coordinates and balls of this "
            f"{joint.kind} joint, got {len(rows)}."
        )
    # a continuous joint turns without end
    for piece, row in zip(pieces, rows, strict=True):
        if row is not None:
            out[piece.limit] = _limit(piece, row, where)
    if joint.kind == "continuous" and np.isfinite(out).any():
        raise ModelError(f"{where}: a continuous joint has no limits; use a revolute joint.")
    # an open spline has its ends besides
    out[:, 0], out[:, 1] = np.maximum(out[:, 0], ends[:, 0]), np.minimum(out[:, 1], ends[:, 1])
    if (out[:, 0] > out[:, 1]).any():
        raise ModelError(f"{where}: they lie beyond the ends of the spline, {ends.tolist()}.")
    return frozen(out)


def _spline_ends(spline: Spline) -> FloatArray:
    """Limits (nl, 2) that the ends of an open spline are."""
    return np.array([(0.0, end) if np.isfinite(end) else (-np.inf, np.inf) for end in spline.ends])


def _rows(value: Any, where: str) -> list[Any]:
    """The value as a list."""
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise ModelError(f"{where}: expected (low, high) or a list of them, got {value!r}.")
    return list(value)


def _limit(piece: Piece, row: Any, where: str) -> tuple[float, float]:
    """One checked pair."""
    pair = _rows(row, where)
    if len(pair) != 2:
        raise ModelError(f"{where}: expected (low, high), got {row!r}.")
    # None and infinity are no bound
    low = -np.inf if pair[0] is None else -check_number(_negated(pair[0], where), where, infinite=True)
    high = np.inf if pair[1] is None else check_number(pair[1], where, infinite=True)
    if low > high:
        raise ModelError(f"{where}: low {low} is above high {high}; swap them.")
    # the angle of a ball is never negative
    if piece.factor == "ball" and np.isfinite([low, high]).any() and (low != 0 or high <= 0):
        raise ModelError(f"{where}: the limit of a ball is (0, largest angle), got {row!r}.")
    return low, high


def _negated(value: Any, where: str) -> float:
    """Minus a number that may be minus infinity."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return -float(value)
    raise ModelError(f"{where}: expected a number, got {value!r}.")
