"""Tables of what acts on the tree: joint springs and dampers, forces on bodies, loop joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from leastaction.errors import ModelError
from leastaction.jit.callbacks import Callback, force_callback, law_callback
from leastaction.model.checks import FloatArray, check_shape
from leastaction.model.compiled_force import CompiledForce
from leastaction.model.constraints import Constraint
from leastaction.model.elements import Joint
from leastaction.model.forces import Force, PointForce, PointSpring, Wrench
from leastaction.model.joints import layout, loop_rows
from leastaction.model.mechanism import Mechanism
from leastaction.model.motion import joint_motion
from leastaction.model.tendon_force import TendonForce, TendonLimit
from leastaction.spatial import se3
from leastaction.tree import layout as kl


class Place(NamedTuple):
    """Where a link or frame sits: the row that carries it, and its pose (4, 4) in the row frame."""

    row: int
    pose: FloatArray


def _ints(rows: Sequence[Any], width: int) -> kl.Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _floats(rows: Sequence[Any], width: int) -> kl.Floats:
    return np.array(rows, dtype=float).reshape(-1, width)


def flat_pose(pose: FloatArray) -> FloatArray:
    """Rotation row by row and position, (12,)."""
    return np.concatenate([pose[:3, :3].ravel(), pose[:3, 3]])


def joint_force_table(mechanism: Mechanism, views: dict[str, Any]) -> tuple[kl.JointForces, list[Callback]]:
    """Springs, dampers and laws of the tree joints, and the callbacks to keep alive."""
    screw: list[Any] = []
    spring: list[Any] = []
    law: list[Any] = []
    ball: list[Any] = []
    ball_data: list[Any] = []
    free: list[Any] = []
    free_data: list[Any] = []
    callbacks: list[Callback] = []

    def address(function: Any) -> int:
        if function is None:
            return 0
        callbacks.append(law_callback(function))
        return callbacks[-1].address

    for view in views.values():
        joint: Joint = view.joint
        k, d = joint.stiffness_values, joint.damping_values
        q0, v0 = view.q.start, view.v.start
        if joint.kind == "free":
            if k[:3].any() or d[:3].any():
                ball.append((q0 + 3, v0))
                ball_data.append((*k[:3], *joint.rest[3:], *d[:3]))
            if k[3:].any() or d[3:].any():
                free.append((q0, v0 + 3))
                free_data.append((*k[3:], *joint.rest[:3], *d[3:]))
            continue
        for piece in layout(joint):
            q, v = piece.q, piece.v
            if piece.factor == "ball":
                if k[v].any() or d[v].any():
                    ball.append((q0 + q.start, v0 + v.start))
                    ball_data.append((*k[v], *joint.rest[q], *d[v]))
                continue
            springs, dampers = joint.stiffness_laws.get(v.start), joint.damping_laws.get(v.start)
            if k[v].any() or d[v].any() or springs or dampers:
                screw.append((q0 + q.start, v0 + v.start))
                spring.append((k[v.start], joint.rest[q.start], d[v.start]))
                law.append(
                    (
                        address(springs.force) if springs else 0,
                        address(springs.energy) if springs else 0,
                        address(dampers.force) if dampers else 0,
                        address(springs.derivative) if springs else 0,
                        address(dampers.derivative) if dampers else 0,
                    )
                )
    table = kl.JointForces(
        _ints(screw, 2), _floats(spring, 3), _ints(law, 5),
        _ints(ball, 2), _floats(ball_data, 10), _ints(free, 2), _floats(free_data, 9),
    )  # fmt: skip
    return table, callbacks


def force_table(mechanism: Mechanism, places: dict[str, Place]) -> tuple[kl.Forces, list[Callback]]:
    """Forces on bodies, and the callbacks to keep alive."""
    kind: list[Any] = []
    bodies: list[int] = []
    frames: list[FloatArray] = []
    data: list[Any] = []
    addresses: list[tuple[int, int, int]] = []
    callbacks: list[Callback] = []
    numbers: list[FloatArray] = [np.zeros(0)]
    for force in mechanism.forces:
        code, row, callback = _force_row(force, places)
        derivative = None
        # a force without derivatives counts as constant where these only help to converge; where they count,
        # ``implicit.forms.differentiable`` adds them
        if isinstance(force, CompiledForce):
            row[:2] = sum(map(len, numbers)), len(force.numbers)
            numbers.append(force.numbers)
            if force.has_derivatives:
                derivative = Callback(force.law[1].address, force)
        elif code == kl.USER_FORCE and force.has_derivatives:
            derivative = force_derivatives(force)
        length = force.length_function.address if isinstance(force, TendonForce) else 0
        kind.append((code, len(bodies), len(force.bodies)))
        bodies.extend(places[name].row for name in force.bodies)
        frames.extend(flat_pose(places[name].pose) for name in force.bodies)
        data.append(row)
        addresses.append((callback.address if callback else 0, derivative.address if derivative else 0, length))
        callbacks.extend(each for each in (callback, derivative) if each)
    table = kl.Forces(
        _ints(kind, 3), np.array(bodies, dtype=np.int64), _floats(frames, 12), _floats(data, 10),
        _ints(addresses, 3), np.concatenate(numbers),
    )  # fmt: skip
    return table, callbacks


def _force_row(force: Force, places: dict[str, Place]) -> tuple[int, FloatArray, Callback | None]:
    """Code, ten numbers and callback of one force (see ``tree/layout.py``)."""
    data = np.zeros(10)
    if isinstance(force, PointSpring):
        # points in the frames of the rows
        for i, (body, point) in enumerate(((force.a, force.point_a), (force.b, force.point_b))):
            pose = places[body].pose
            data[3 * i : 3 * i + 3] = pose[:3, :3] @ point + pose[:3, 3]
        data[6:9] = force.stiffness, force.damping, force.rest_length
        return kl.POINT_SPRING, data, None
    if isinstance(force, PointForce):
        data[6:9] = force.point
        data[9] = force.frame == "body"
        return kl.POINT_FORCE, data, _numbers(data, force.force, 3, force.label)
    if isinstance(force, Wrench):
        data[9] = force.frame == "body"
        return kl.WRENCH, data, _numbers(data, force.wrench, 6, force.label)
    if isinstance(force, CompiledForce):
        code = kl.TENDON if isinstance(force, TendonForce) else kl.USER_FORCE
        return code, data, Callback(force.law[0].address, force)
    k = len(force.bodies)
    return kl.USER_FORCE, data, force_callback(_unpacked(force, k), 18 * k, 6 * k)


def _numbers(data: FloatArray, given: Any, n: int, where: str) -> Callback | None:
    """Constant numbers into data, or a callback for a function of time."""
    if callable(given):
        return force_callback(lambda t, _: _returned(given(t), n, f"{where} at t = {t}"), n, n)
    data[:n] = given
    return None


def _returned(value: Any, n: int, where: str) -> FloatArray:
    """What a function of time returned, if it is n numbers; those that are not finite stop the run."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: the function must return {n} numbers, it returned {value!r}.") from error
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ModelError(f"{where}: the function must return {n} numbers, it returned {value!r}.")
    return array


def _unpacked(force: Force, k: int) -> Any:
    """The force as a function of flat inputs: for each body rotation (9), position (3), twist (6)."""

    def call(t: float, flat: FloatArray) -> FloatArray:
        return check_shape(force.wrenches(t, *_poses_and_twists(flat, k)), (k, 6), f"{force.label}: wrenches")

    return call


def force_derivatives(force: Force) -> Callback:
    """K and D of a force as a callback of the form that kernels call."""
    k = len(force.bodies)
    return force_callback(_derivatives(force, k), 18 * k, 72 * k * k)


def _derivatives(force: Force, k: int) -> Any:
    """K and D of a force as a function of flat inputs, K first, by rows."""

    def call(t: float, flat: FloatArray) -> FloatArray:
        given = zip("KD", force.derivatives(t, *_poses_and_twists(flat, k)), strict=True)
        shape = (6 * k, 6 * k)
        return np.concatenate(
            [check_shape(M, shape, f"{force.label}: derivatives, {name}").ravel() for name, M in given]
        )

    return call


def _poses_and_twists(flat: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Poses (k, 4, 4) and twists (k, 6) from k rows of rotation (9), position (3), twist (6)."""
    rows = flat.reshape(k, 18)
    poses = np.tile(np.eye(4), (k, 1, 1))
    poses[:, :3, :3] = rows[:, :9].reshape(k, 3, 3)
    poses[:, :3, 3] = rows[:, 9:12]
    return poses, rows[:, 12:]


def constraint_table(
    mechanism: Mechanism, places: dict[str, Place], kinds: Sequence[str] = ("equality", "velocity")
) -> tuple[kl.Constraints, list[Callback]]:
    """Constraints of the user of some kinds, and the callbacks to keep alive."""
    kind: list[Any] = []
    bodies: list[int] = []
    frames: list[FloatArray] = []
    callbacks: list[Callback] = []
    own: list[tuple[int, int]] = []
    numbers: list[FloatArray] = [np.zeros(0)]
    start = 0
    for constraint in mechanism.constraints:
        if constraint.kind not in kinds:
            continue
        code = kl.VELOCITY if constraint.kind == "velocity" else kl.EQUALITY
        k, size = len(constraint.bodies), constraint.size
        kind.append((code, len(bodies), k, start, size))
        bodies.extend(places[name].row for name in constraint.bodies)
        frames.extend(flat_pose(places[name].pose) for name in constraint.bodies)
        if isinstance(constraint, TendonLimit):
            own.append((sum(map(len, numbers)), len(constraint.numbers)))
            numbers.append(constraint.numbers)
            callbacks.append(constraint.callback)
        else:
            own.append((0, 0))
            callbacks.append(force_callback(_constraint_rows(constraint, k), 18 * k, size * (1 + 6 * k)))
        start += size
    table = kl.Constraints(
        _ints(kind, 5), np.array(bodies, dtype=np.int64), _floats(frames, 12),
        np.array([callback.address for callback in callbacks], dtype=np.int64), _ints(own, 2), np.concatenate(numbers),
    )  # fmt: skip
    return table, callbacks


def _constraint_rows(constraint: Constraint, k: int) -> Any:
    """Values and Jacobian of a constraint as a function of flat inputs, as ``_unpacked`` has them."""

    def call(t: float, flat: FloatArray) -> FloatArray:
        poses, twists = _poses_and_twists(flat, k)
        return np.concatenate([constraint.value(poses, twists), constraint.matrix(poses, twists).ravel()])

    return call


def loop_table(
    mechanism: Mechanism, names: Sequence[str], places: dict[str, Place]
) -> tuple[kl.Loops, dict[str, slice]]:
    """Loop joints as tables, without couplings, and the constraint rows of each."""
    rows: list[Any] = []
    frames: list[FloatArray] = []
    selects: list[FloatArray] = []
    couplings: list[FloatArray] = []
    slices: dict[str, slice] = {}
    start = 0
    for name in names:
        joint = mechanism.joints[name]
        parent, child = places[joint.parent], places[joint.child]
        parent_frame = joint.parent_frame
        # a locked joint closes the loop rigidly
        if joint.locked is not None:
            parent_frame = parent_frame @ joint_motion(joint, joint.locked)
            joint = Joint(joint.name, "fixed", joint.parent, joint.child, axis=joint.axis)
        selected = loop_rows(joint)
        select, coupling, code = np.zeros(18), np.zeros(7), kl.NO_COUPLING
        select[: selected.translation.size] = selected.translation.ravel()
        select[9 : 9 + selected.rotation.size] = selected.rotation.ravel()
        if selected.coupling is not None and selected.coupling[0] == "universal":
            code = kl.UNIVERSAL
            coupling[:] = [*selected.coupling[1], *selected.coupling[2], selected.coupling[1] @ selected.coupling[2]]
        elif selected.coupling is not None:
            code = kl.HELICAL_COUPLING
            coupling[[0, 1, 2, 6]] = [*selected.coupling[1], selected.coupling[2]]
        count = len(selected.translation) + len(selected.rotation) + (code != kl.NO_COUPLING)
        rows.append((parent.row, child.row, start, len(selected.translation), len(selected.rotation), code))
        in_child = mechanism.joints[name].child_frame
        frames.append(np.concatenate([flat_pose(parent.pose @ parent_frame), flat_pose(child.pose @ in_child)]))
        selects.append(select)
        couplings.append(coupling)
        slices[name] = slice(start, start + count)
        start += count
    none = kl.Ties(_ints([], 4), np.zeros(0, dtype=np.int64), _ints([], 5), _floats([], 1), np.zeros(0))
    table = kl.Loops(_ints(rows, 6), _floats(frames, 24), _floats(selects, 18), _floats(couplings, 7), none)
    return table, slices


def pose_of(numbers: FloatArray) -> FloatArray:
    """A pose (4, 4) from rotation and position."""
    return se3.pose(numbers[:9].reshape(3, 3), numbers[9:])
