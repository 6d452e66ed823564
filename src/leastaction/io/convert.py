"""States in the order and the conventions of Pinocchio and of MuJoCo, and back, joint by joint and by name.

Quaternions are (w, x, y, z) here and in MuJoCo, (x, y, z, w) in Pinocchio.

A free joint's q is position and quaternion in its parent frame, here and in Pinocchio; in MuJoCo it is the pose of the
body in the world. Its v is (angular; linear) in child axes here, (linear; angular) in child axes in Pinocchio, and in
MuJoCo the linear velocity of the body's origin in world axes, then the angular one in body axes.

An angle may be its cosine and sine in Pinocchio; in MuJoCo ``ref`` is added to it. A planar joint is x, y, angle with
their rates here; in Pinocchio it is x, y, cosine, sine and the velocity in child axes.

Every function takes one state, q (nq,) and v (nv,), or arrays of rows, q (..., nq) and v (..., nv).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.convert_joints import FloatArray, JointMap, mujoco_map, pinocchio_map

if TYPE_CHECKING:
    from leastaction.model.model import Model


@dataclass(frozen=True)
class _Match:
    """One joint on both sides: where its coordinates are, and how they change."""

    name: str
    ours_q: slice
    ours_v: slice
    theirs_q: slice
    theirs_v: slice
    map: JointMap


def to_pinocchio(model: Model, q: Any, v: Any, pin_model: Any) -> tuple[FloatArray, FloatArray]:
    """Pinocchio's (q, v) of a state; joints are matched by name, "root" also with Pinocchio's "root_joint"."""
    return _convert(
        _pinocchio_matches(model, pin_model), q, v, (model.nq, model.nv), (pin_model.nq, pin_model.nv), True
    )


def from_pinocchio(model: Model, q: Any, v: Any, pin_model: Any) -> tuple[FloatArray, FloatArray]:
    """The state (q, v) of Pinocchio's (q, v)."""
    return _convert(
        _pinocchio_matches(model, pin_model), q, v, (pin_model.nq, pin_model.nv), (model.nq, model.nv), False
    )


def to_mujoco(model: Model, q: Any, v: Any, mj_model: Any) -> tuple[FloatArray, FloatArray]:
    """MuJoCo's (qpos, qvel) of a state; joints are matched by name, those without one as ``load`` names them."""
    return _convert(_mujoco_matches(model, mj_model), q, v, (model.nq, model.nv), (mj_model.nq, mj_model.nv), True)


def from_mujoco(model: Model, qpos: Any, qvel: Any, mj_model: Any) -> tuple[FloatArray, FloatArray]:
    """The state (q, v) of MuJoCo's (qpos, qvel)."""
    matches = _mujoco_matches(model, mj_model)
    return _convert(matches, qpos, qvel, (mj_model.nq, mj_model.nv), (model.nq, model.nv), False)


def velocity_map(
    converter: Callable[[Model, Any, Any, Any], tuple[FloatArray, FloatArray]], model: Model, q: Any, other: Any
) -> FloatArray:
    """The matrix T (nv, nv) of a converter at q: other velocity = T @ velocity.

    ``converter`` is ``to_pinocchio`` or ``to_mujoco`` and ``other`` its model. Generalised forces go the other way:
    force = T.T @ other force; a mass matrix is M = T.T @ other M @ T.
    """
    rows = np.broadcast_to(_numbers(q, model.nq, "q"), (model.nv, model.nq))
    return converter(model, rows, np.eye(model.nv), other)[1].T


def _convert(
    matches: Iterable[_Match], q: Any, v: Any, given: tuple[int, int], wanted: tuple[int, int], forward: bool
) -> tuple[FloatArray, FloatArray]:
    """Apply the joint maps to one state or to rows of them."""
    q, v = _numbers(q, given[0], "q"), _numbers(v, given[1], "v")
    if q.shape[:-1] != v.shape[:-1]:
        raise ModelError(f"q and v must have the same number of rows, got shapes {q.shape} and {v.shape}.")
    out_q, out_v = np.zeros((*q.shape[:-1], wanted[0])), np.zeros((*v.shape[:-1], wanted[1]))
    # each joint by itself
    for match in matches:
        ours, theirs = (match.ours_q, match.ours_v), (match.theirs_q, match.theirs_v)
        (iq, iv), (oq, ov) = (ours, theirs) if forward else (theirs, ours)
        change = match.map.forward if forward else match.map.backward
        out_q[..., oq], out_v[..., ov] = change(q[..., iq], v[..., iv])
    return out_q, out_v


def _numbers(value: Any, n: int, what: str) -> FloatArray:
    """A finite float array (..., n)."""
    array = np.asarray(value, dtype=float)
    if array.ndim == 0 or array.shape[-1] != n:
        raise ModelError(f"{what} must have {n} numbers per row, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ModelError(f"{what} must be finite.")
    return array


def _pinocchio_matches(model: Model, pin_model: Any) -> list[_Match]:
    """Matches of all moving joints with those of a Pinocchio model."""
    theirs: dict[str, tuple[slice, slice, Any]] = {}
    # the first one is the universe
    for name, joint in list(zip(pin_model.names, pin_model.joints, strict=True))[1:]:
        places = slice(joint.idx_q, joint.idx_q + joint.nq), slice(joint.idx_v, joint.idx_v + joint.nv)
        theirs[name] = (*places, joint.shortname())
    # the joint that carries a floating base has another name there
    if "root_joint" in theirs and "root" not in theirs and "root_joint" not in model.joint_names:
        theirs["root"] = theirs.pop("root_joint")
    return _matches(model, theirs, "Pinocchio", pinocchio_map)


def _mujoco_matches(model: Model, mj_model: Any) -> list[_Match]:
    """Matches of all moving joints with those of a MuJoCo model."""
    from leastaction.io.mjcf_names import joint_names

    # coordinates per kind: free, ball, slide, hinge
    sizes = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}
    theirs: dict[str, tuple[slice, slice, Any]] = {}
    for j, name in enumerate(joint_names(mj_model)):
        (nq, nv), iq, iv = sizes[int(mj_model.jnt_type[j])], int(mj_model.jnt_qposadr[j]), int(mj_model.jnt_dofadr[j])
        theirs[name] = (slice(iq, iq + nq), slice(iv, iv + nv), (int(mj_model.jnt_type[j]), mj_model.qpos0[iq]))
    return _matches(model, theirs, "MuJoCo", mujoco_map)


def _matches(
    model: Model,
    theirs: dict[str, tuple[slice, slice, Any]],
    library: str,
    choose: Callable[[Any, Any], JointMap | None],
) -> list[_Match]:
    """Pair joints by name; those that one side lacks are an error that lists them."""
    ours = {name: model.joint(name) for name in model.joint_names}
    ours = {name: view for name, view in ours.items() if view.v.stop > view.v.start}
    missing = sorted(set(ours) - set(theirs))
    extra = sorted(set(theirs) - set(ours))
    if missing or extra:
        raise ModelError(
            f"the joints differ: only in the model: {', '.join(missing) or 'none'}; only in {library}'s: "
            f"{', '.join(extra) or 'none'}."
        )
    out = []
    for name, view in ours.items():
        iq, iv, kind = theirs[name]
        joint = model.mechanism.joints[name]
        chosen = choose(joint, (kind, iq.stop - iq.start, iv.stop - iv.start))
        if chosen is None:
            raise ModelError(f"joint {name!r}: {joint.kind} here has no counterpart in {library}'s joint of this name.")
        out.append(_Match(name, view.q, view.v, iq, iv, chosen))
    return out
