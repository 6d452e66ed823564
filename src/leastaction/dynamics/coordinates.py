"""Minimal and maximal coordinates: q and v of the joints, and poses and twists of the bodies. See docs/conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray, check_array, check_number, quoted
from leastaction.model.elements import Joint
from leastaction.model.model import Model, State, check_model
from leastaction.model.pose import check_pose
from leastaction.model.recovery import joint_coordinates, joint_screws, motion_gap
from leastaction.spatial import se3


class BodyMotion(NamedTuple):
    """Maximal coordinates of the moving bodies, in the order of ``model.body_names``.

    Attributes:
        poses: (bodies, 4, 4) of the link frames in the world.
        twists: (bodies, 6) of the link frames: (angular; linear), both in the axes of the body.
    """

    poses: FloatArray
    twists: FloatArray


def to_maximal(model: Model, q: Any, v: Any = None) -> BodyMotion:
    """Poses and twists of all moving bodies, from the coordinates of the joints.

    Args:
        model: the model; its bodies are those of ``model.body_names``, and what is fixed to one moves with it.
        q: coordinates (nq,) or a dict by joint name; also rows (rows, nq), and the results have a first axis more.
        v: velocities (nv,), a dict, or rows; zero by default.

    Returns:
        ``poses`` (bodies, 4, 4) of the link frames in the world, and ``twists`` (bodies, 6), (angular; linear), of the
        link frames in their own axes.
    """
    qs, vs, single = quantities._motions(model, q, v)
    poses = quantities.frame_poses(model, qs, list(model.body_names))
    twists = quantities.body_twists(model, qs, vs)
    # from world axes to those of the bodies
    parts = twists.reshape(*twists.shape[:2], 2, 3)
    twists = np.einsum("nbij,nbki->nbkj", poses[..., :3, :3], parts).reshape(twists.shape)
    return BodyMotion(poses[0], twists[0]) if single else BodyMotion(poses, twists)


def to_minimal(
    model: Model, poses: Any, twists: Any = None, *, near: Any = None, t: float = 0.0, tolerance: float = 1e-6
) -> State:
    """The state whose joints place and move the bodies as given: what ``to_maximal`` does, back.

    Angles are within (-pi, pi], and quaternions have w >= 0, unless ``near`` tells turns and signs.
    Turns of a helical joint are known from its displacement. A composite joint may have several solutions: that which
    is found from ``near``, or else from the neutral position.

    Args:
        model: the model.
        poses: (bodies, 4, 4) of the link frames of ``model.body_names``, or a dict by name, which must have these and
            may have what is fixed to them, as ``la.poses`` returns it.
        twists: (bodies, 6), (angular; linear) of the link frames in their own axes, or a dict; zero by default.
        near: coordinates (nq,) or a dict by joint name, as of the row before; turns are counted on from there.
        t: time of the state, seconds.
        tolerance: how far joints, loops and what is fixed may be open, metres and radians; for their rates m/s and
            rad/s, times the largest twist where that is above one.

    Raises:
        ModelError: this is no model or these are no poses; or a joint is open, or opens: its name, and by how much.
    """
    check_model(model)
    tolerance = check_number(tolerance, "to_minimal: tolerance", positive=True)
    start = None if near is None else model.check_q(near)
    E = _given_poses(model, poses)
    V = {name: np.zeros(6) for name in E} if twists is None else _given_twists(model, twists)
    _check_fixed(model, E, V, tolerance)
    frames = {row: E[name] @ se3.inverse(model.places[name].pose) for name, row in _rows(model).items()}
    moves = {row: np.asarray(se3.Ad(model.places[name].pose)) @ V[name] for name, row in _rows(model).items()}
    frames[0], moves[0] = np.eye(4), np.zeros(6)
    # twins move with the bodies that they are cut off
    for name, twin in model.twins.items():
        place, body = model.places[name], model.places[twin.body]
        offset = body.pose @ se3.inverse(place.pose)
        frames[place.row] = frames[body.row] @ offset
        moves[place.row] = np.asarray(se3.Ad_inv(offset)) @ moves[body.row]
    wide = tolerance * max(1.0, max((float(np.abs(twist).max()) for twist in V.values()), default=0.0))
    # joints of the tree, then those that close loops
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    for name, view in model.joints.items():
        Q, twist = _across(model, view.joint, frames, moves)
        before = None if start is None else start[view.q]
        q[view.q] = joint_coordinates(view.joint, Q, before)
        v[view.v] = _rates(f"joint '{name}'", view.joint, q[view.q], Q, twist, tolerance, wide)
    for name in model.loop_names:
        joint = model.split.joints[name]
        Q, twist = _across(model, joint, frames, moves)
        held = joint.locked is not None
        at = np.asarray(joint.locked) if held else joint_coordinates(joint, Q)
        _rates(f"loop joint '{name}'", joint, at, Q, twist, tolerance, wide, held)
    return model.state(q, v, t)


def _rows(model: Model) -> dict[str, int]:
    """Row of the tree that carries each moving body."""
    return {name: model.places[name].row for name in model.body_names}


def _across(model: Model, joint: Joint, frames: Any, moves: Any) -> tuple[FloatArray, FloatArray]:
    """Pose (4, 4) of a joint's child side in its parent side, and its twist (6,) against it, in the child's axes."""
    sides = []
    for body, frame in ((joint.parent, joint.parent_frame), (joint.child, joint.child_frame)):
        place = model.places[body]
        at = place.pose @ frame
        sides.append((frames[place.row] @ at, np.asarray(se3.Ad_inv(at)) @ moves[place.row]))
    (A, a), (B, b) = sides
    Q = np.asarray(se3.inverse(A)) @ B
    return Q, b - np.asarray(se3.Ad_inv(Q)) @ a


def _rates(
    what: str, joint: Joint, q: FloatArray, Q: FloatArray, twist: FloatArray, tolerance: float, wide: float,
    held: bool = False,
) -> FloatArray:  # fmt: skip
    """Rates (nv,) of a joint at coordinates q; raise where it does not reach the pose Q or the twist."""
    length, angle = motion_gap(joint, q, Q)
    if not max(length, angle) <= tolerance:
        raise ModelError(
            f"to_minimal: {what} is open by {length:.3g} m and {angle:.3g} rad; give poses that its joint allows, or a "
            f"larger tolerance (now {tolerance:g})."
        )
    S = np.zeros((6, 0)) if held else joint_screws(joint, q)
    v = np.linalg.lstsq(S, twist, rcond=1e-12)[0] if S.shape[1] else np.zeros(0)
    left = twist - S @ v
    turn, slide = float(np.linalg.norm(left[:3])), float(np.linalg.norm(left[3:]))
    if not max(turn, slide) <= wide:
        raise ModelError(
            f"to_minimal: {what} opens at {slide:.3g} m/s and {turn:.3g} rad/s; give twists that its joint allows, in "
            f"the axes of the bodies, or a larger tolerance (now {tolerance:g})."
        )
    return np.asarray(v)


def _check_fixed(model: Model, E: dict[str, FloatArray], V: dict[str, FloatArray], tolerance: float) -> None:
    """Raise where a body or frame is not where the moving body that carries it, or the world, has it."""
    leaders = {0: WORLD} | {row: name for name, row in _rows(model).items()}
    E, V = {**E, WORLD: np.eye(4)}, {**V, WORLD: np.zeros(6)}
    for name in E:
        place = model.places[name]
        leader = leaders[place.row]
        offset = np.asarray(se3.inverse(model.places[leader].pose)) @ place.pose
        joint = model.topology.inbound.get(name)
        who = f"frame '{name}'" if joint is None else f"joint '{joint}', which fixes '{name}',"
        # the pose, and the twist where one is given
        gap = np.asarray(se3.log(np.asarray(se3.inverse(E[leader] @ offset)) @ E[name]))
        if not np.abs(gap).max() <= tolerance:
            length, angle = np.linalg.norm(gap[3:]), np.linalg.norm(gap[:3])
            raise ModelError(f"to_minimal: {who} is open by {length:.3g} m and {angle:.3g} rad against '{leader}'.")
        if name not in V:
            continue
        rate = V[name] - np.asarray(se3.Ad_inv(offset)) @ V[leader]
        if not np.abs(rate).max() <= tolerance * max(1.0, float(np.abs(V[name]).max())):
            slide, turn = np.linalg.norm(rate[3:]), np.linalg.norm(rate[:3])
            raise ModelError(f"to_minimal: {who} opens at {slide:.3g} m/s and {turn:.3g} rad/s against '{leader}'.")


# --- inputs ---------------------------------------------------------------------------------------------------------
def _given_poses(model: Model, poses: Any) -> dict[str, FloatArray]:
    """Checked poses by name."""
    given = _by_name(model, poses, (4, 4), "poses")
    return {name: np.array(check_pose(value, f"to_minimal: pose of '{name}'")) for name, value in given.items()}


def _given_twists(model: Model, twists: Any) -> dict[str, FloatArray]:
    """Checked twists by name."""
    given = _by_name(model, twists, (6,), "twists")
    out = {}
    for name, value in given.items():
        out[name] = check_array(value, f"to_minimal: twist of '{name}'")
        if out[name].shape != (6,):
            raise ModelError(f"to_minimal: twist of '{name}': expected 6 numbers, got shape {out[name].shape}.")
    return out


def _by_name(model: Model, values: Any, shape: tuple[int, ...], what: str) -> dict[str, Any]:
    """Values by name of a body or frame, from a dict or from an array with one entry for each moving body."""
    names = model.body_names
    if isinstance(values, Mapping):
        for name in values:
            model.place(name)
        missing = [name for name in names if name not in values]
        if missing:
            raise ModelError(f"to_minimal: {what} of {quoted(missing[:6])} are missing; give all of model.body_names.")
        return {name: value for name, value in values.items() if name != WORLD}
    array = check_array(values, f"to_minimal: {what}")
    if array.shape != (len(names), *shape):
        raise ModelError(
            f"to_minimal: {what} have shape {array.shape}, expected {(len(names), *shape)}: one for each of "
            "model.body_names, of one state."
        )
    return dict(zip(names, array, strict=True))
