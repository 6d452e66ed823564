"""Servos whose efforts ``Maximal`` enforces: springs and dampers behind the gear, and their share of the control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.model.actuation import place_of, servo_bound, servos_of
from leastaction.model.elements import Actuator
from leastaction.model.model import JointView, Model
from leastaction.model.tendon_force import TendonForce


@dataclass(frozen=True)
class BoundedServo:
    """One servo with a largest force, in generalised coordinates.

    Attributes:
        name: of the actuator.
        rate: entry in v and in the control.
        coordinate: entry in q.
        stiffness: gear^2 kp, N/m or N m/rad.
        damping: gear^2 kd, N s/m or N m s/rad.
        rest: coordinate at which the spring does not pull, metres or radians.
        effort: largest force on the coordinate, N or N m.
        share: part of the control on its coordinate that is its input.
    """

    name: str
    rate: int
    coordinate: int
    stiffness: float
    damping: float
    rest: float
    effort: float
    share: float


def bounded_servos(model: Model) -> list[BoundedServo]:
    """The servos of a model with enforced limits whose force has a bound.

    Raises UnsupportedError, by name, where forces on a coordinate cannot be told apart. A control is a generalised
    force on a coordinate, so it is the input of the servo there. Several servos on one coordinate have it by their
    stiffness, as if it moved their targets together, or without any by their damping.
    """
    if "bounded servos" in model.features:
        _check_tendon_servos(model)
    out: list[BoundedServo] = []
    for view in model.joints.values() if "bounded servos" in model.features else ():
        for i in range(view.joint.nv):
            together = [s for s in servos_of(model.mechanism.actuators.values(), view.joint) if int(s.coordinate) == i]
            if any(np.isfinite(servo_bound(servo, view.joint)) for servo in together):
                out += _on_one_coordinate(model, view, i, together)
    return out


def _on_one_coordinate(model: Model, view: JointView, i: int, servos: list[Actuator]) -> list[BoundedServo]:
    """The bounded ones among all servos on coordinate i of a joint."""
    joint, label = view.joint, view.joint.velocity_names[i]
    for other in model.mechanism.actuators.values():
        if other.joint == view.name and not other.is_servo and other.gears(joint.nv)[i] != 0:
            raise UnsupportedError(
                f"actuator '{other.name}': its control cannot be told from that of servo '{servos[0].name}' on "
                f"'{label}' of joint '{view.name}', whose effort is enforced; drop one of them, or the effort."
            )
    bounds = [servo_bound(servo, joint) for servo in servos]
    if len(servos) > 1 and sum(bounds) > joint.effort[i]:
        raise UnsupportedError(
            f"joint '{view.name}': its effort on '{label}' would bound {len(servos)} servos together; give each an "
            f"effort of its own, of {joint.effort[i]:g} in all at most."
        )
    weights = np.array([servo.ratio**2 * servo.kp for servo in servos])
    if not weights.any():
        weights = np.array([servo.ratio**2 * servo.kd for servo in servos])
    shares = (weights / weights.sum()).tolist()
    at = place_of(joint, i) or 0
    return [
        BoundedServo(
            servo.name, view.v.start + i, view.q.start + at, servo.ratio**2 * servo.kp, servo.ratio**2 * servo.kd,
            servo.target / servo.ratio if servo.kp > 0 else 0.0, bound, share,
        )
        for servo, bound, share in zip(servos, bounds, shares, strict=True)
        if np.isfinite(bound)
    ]  # fmt: skip


def _check_tendon_servos(model: Model) -> None:
    """Refuse a bounded servo on a tendon whose input cannot be told from those of others, or is bounded by joints."""
    for force in model.mechanism.forces:
        if not isinstance(force, TendonForce) or not force.is_bounded:
            continue
        tendon = force.course.tendon
        if force.entry < 0:
            raise UnsupportedError(
                f"actuator '{force.name}': other actuators drive every joint of tendon '{tendon.name}', so that its "
                "control cannot be told from theirs, and its effort is enforced; drop them, or the effort."
            )
        for name in tendon.joints:
            if name in model.joints and np.isfinite(model.joints[name].joint.effort).any():
                raise UnsupportedError(
                    f"actuator '{force.name}': joint '{name}' of tendon '{tendon.name}' has an effort of its own, "
                    "which would bound a part of the servo; drop the effort of the joint."
                )
