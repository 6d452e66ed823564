"""Actuators: motors that are driven by the control, and servos that pull their joint towards a target.

A servo is a spring and a damper in its joint, so every method takes it as it takes those: implicitly where it can.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import (
    FloatArray,
    check_array,
    check_flag,
    check_name,
    check_number,
    check_vector,
    frozen,
    quoted,
)
from leastaction.model.elements import Actuator, Joint
from leastaction.model.joints import Law, layout

if TYPE_CHECKING:
    from leastaction.model.model import Model


def check_actuator(actuator: Actuator, joint: Joint | None) -> None:
    """Check an actuator in place; its coordinate too, once its joint is known."""
    where = f"actuator '{check_name(actuator.name, 'actuator')}'"
    if bool(actuator.joint) == bool(actuator.tendon):
        raise ModelError(f"{where}: give a joint or a tendon that it acts on, not both.")
    check_name(actuator.joint or actuator.tendon, f"{where}: {'joint' if actuator.joint else 'tendon'}")
    actuator.gear = _checked_gear(actuator, joint, where)
    actuator.kp = check_number(actuator.kp, f"{where}: kp", nonnegative=True)
    actuator.kd = check_number(actuator.kd, f"{where}: kd", nonnegative=True)
    actuator.target = check_number(actuator.target, f"{where}: target")
    if actuator.effort is not None:
        actuator.effort = check_number(actuator.effort, f"{where}: effort", positive=True)
    if actuator.input_range is not None:
        low, high = (float(x) for x in check_vector(actuator.input_range, 2, f"{where}: input_range"))
        if low > high:
            raise ModelError(f"{where}: input_range: {low:g} is above {high:g}.")
        actuator.input_range = (low, high)
    _check_activation(actuator, where)
    # whole number within the joint
    if isinstance(actuator.coordinate, bool) or not isinstance(actuator.coordinate, (int, np.integer)):
        raise ModelError(f"{where}: coordinate must be a whole number, got {actuator.coordinate!r}.")
    if actuator.tendon and actuator.coordinate != 0:
        raise ModelError(f"{where}: a tendon has one length; leave out the coordinate.")
    if actuator.coordinate < 0 or (joint is not None and actuator.coordinate >= joint.nv):
        size = "" if joint is None else f"; joint '{joint.name}' has {joint.nv} velocity coordinates, from 0"
        raise ModelError(f"{where}: coordinate {actuator.coordinate} is out of range{size}.")
    _check_servo(actuator, joint, where)


def _check_activation(actuator: Actuator, where: str) -> None:
    """A filter or an integrator, with bounds in order."""
    actuator.lag = check_number(actuator.lag, f"{where}: lag", nonnegative=True)
    actuator.integrates = check_flag(actuator.integrates, f"{where}: integrates")
    if actuator.lag > 0 and actuator.integrates:
        raise ModelError(f"{where}: give a lag or integrates, not both.")
    if actuator.activation_range is not None:
        low, high = (float(x) for x in check_vector(actuator.activation_range, 2, f"{where}: activation_range"))
        if low > high or not actuator.has_activation:
            why = f"{low:g} is above {high:g}" if low > high else "it has neither a lag nor integrates"
            raise ModelError(f"{where}: activation_range: {why}.")
        actuator.activation_range = (low, high)


def _checked_gear(actuator: Actuator, joint: Joint | None, where: str) -> float | FloatArray:
    """One number, or for a motor one for each velocity coordinate of its joint."""
    if np.ndim(actuator.gear) == 0:
        return check_number(actuator.gear, f"{where}: gear")
    gear = check_array(actuator.gear, f"{where}: gear")
    if actuator.is_servo or actuator.tendon:
        what = "an actuator on a tendon has one length" if actuator.tendon else "a servo acts on one coordinate"
        raise ModelError(f"{where}: {what}; its gear must be one number.")
    if gear.ndim != 1 or actuator.coordinate != 0 or (joint is not None and len(gear) != joint.nv):
        size = "" if joint is None else f"; joint '{joint.name}' has {joint.nv}"
        raise ModelError(f"{where}: a gear of several numbers has one for each velocity coordinate{size}.")
    return frozen(gear)


def _check_servo(actuator: Actuator, joint: Joint | None, where: str) -> None:
    """A servo needs a coordinate of its own, and a target only where it has a spring."""
    if actuator.kp == 0 and actuator.target != 0:
        raise ModelError(f"{where}: a target needs kp; without it the input of a servo is a rate.")
    if not actuator.is_servo:
        return
    if actuator.ratio == 0:
        raise ModelError(f"{where}: a servo needs a gear that is not zero.")
    if joint is None:
        return
    i = int(actuator.coordinate)
    if place_of(joint, i) is None:
        raise ModelError(
            f"{where}: a servo needs a screw coordinate, '{joint.velocity_names[i]}' of joint '{joint.name}' is none."
        )
    if isinstance(joint.stiffness, tuple) and isinstance(joint.stiffness[i], Law):
        raise ModelError(f"{where}: joint '{joint.name}' has a stiffness law there; a servo cannot stand beside it.")
    if isinstance(joint.damping, tuple) and isinstance(joint.damping[i], Law):
        raise ModelError(f"{where}: joint '{joint.name}' has a damping law there; a servo cannot stand beside it.")


def place_of(joint: Joint, coordinate: int) -> int | None:
    """Place in q of a screw's velocity coordinate; None for a ball, and for a free joint."""
    if joint.kind == "free":
        return None
    return next((p.q.start for p in layout(joint) if p.factor == "screw" and p.v.start == coordinate), None)


def servos_of(actuators: Iterable[Actuator], joint: Joint) -> list[Actuator]:
    """The servos on a joint."""
    return [actuator for actuator in actuators if actuator.joint == joint.name and actuator.is_servo]


def tendon_servos(actuators: Iterable[Actuator], tendon: str) -> list[Actuator]:
    """The servos on a tendon."""
    return [actuator for actuator in actuators if actuator.tendon == tendon and actuator.is_servo]


def acts_on_path(model: Model) -> bool:
    """Whether an actuator acts on a tendon through space, whose moment arms follow the state."""
    tendons = model.mechanism.tendons
    return any(each.tendon and bool(tendons[each.tendon].path) for each in model.mechanism.actuators.values())


def arm_of(actuator: Actuator, model: Model, arms: Mapping[str, FloatArray]) -> FloatArray:
    """Generalised forces (nv,) of a unit of an actuator's force before its gear; zero on joints that are held.

    ``arms``: those of tendons through space.
    """
    if actuator.tendon and model.mechanism.tendons[actuator.tendon].path:
        if actuator.tendon not in arms:
            raise ModelError(
                f"actuator '{actuator.name}': the moment arms of tendon '{actuator.tendon}', which runs through space, "
                "follow the state; give inputs to ctrl= of simulate, or la.moment_arms to actuate."
            )
        return actuator.ratio * arms[actuator.tendon]
    if actuator.tendon:
        weights = model.mechanism.tendons[actuator.tendon].weights(model.nv, model.joints)
        return np.asarray(actuator.ratio * weights)
    out = np.zeros(model.nv)
    if actuator.joint in model.joints:
        v = model.joint(actuator.joint).v
        out[v] = actuator.gears(v.stop - v.start)
    return out


def with_servos(joint: Joint, actuators: Iterable[Actuator]) -> Joint:
    """The joint with the springs and dampers of its servos added to its own; the joint itself if it has none."""
    found = servos_of(actuators, joint)
    if not found:
        return joint
    k, d, rest = list(joint.stiffness), list(joint.damping), np.array(joint.rest)
    for servo in found:
        i = int(servo.coordinate)
        at = place_of(joint, i)
        stiff = servo.ratio**2 * servo.kp
        # one spring that pulls as both do
        if at is not None and stiff > 0:
            rest[at] = (k[i] * rest[at] + stiff * servo.target / servo.ratio) / (k[i] + stiff)
        k[i] += stiff
        d[i] += servo.ratio**2 * servo.kd
    laws = any(isinstance(entry, Law) for entry in (*k, *d))
    springs = tuple(k) if laws else frozen(np.array(k, dtype=float))
    dampers = tuple(d) if laws else frozen(np.array(d, dtype=float))
    return dataclasses.replace(joint, stiffness=springs, damping=dampers, rest=frozen(rest))


def servo_bound(servo: Actuator, joint: Joint) -> float:
    """Largest force of a servo on its coordinate: its own, or that of the joint."""
    own = np.inf if servo.effort is None else abs(servo.ratio) * servo.effort
    return float(min(own, joint.effort[int(servo.coordinate)]))


def servo_rates(model: Model) -> dict[int, Actuator]:
    """The servos by the velocity coordinate that they act on; of several on one the last."""
    out = {}
    for view in model.joints.values():
        for servo in servos_of(model.mechanism.actuators.values(), view.joint):
            out[view.v.start + int(servo.coordinate)] = servo
    return out


def relief_energy(model: Model, q: FloatArray) -> FloatArray:
    """Energy (rows,) that springs of servos lack beyond their efforts, where these are enforced; zero or negative."""
    out = np.zeros(len(q))
    for view in model.joints.values() if model.mechanism.limits_enforced else ():
        for servo in servos_of(model.mechanism.actuators.values(), view.joint):
            at, bound, stiff = place_of(view.joint, int(servo.coordinate)), servo_bound(servo, view.joint), servo.kp
            if at is not None and stiff > 0 and np.isfinite(bound):
                stiff *= servo.ratio**2
                stretch = np.abs(servo.target / servo.ratio - q[:, view.q.start + at])
                out -= 0.5 * stiff * np.maximum(stretch - bound / stiff, 0.0) ** 2
    return out


def servo_forces(model: Model, q: FloatArray, v: FloatArray) -> FloatArray:
    """Generalised forces (rows, nv) of all servos towards their own targets, without what inputs add or bounds take."""
    out = np.zeros_like(v)
    for view in model.joints.values():
        for servo in servos_of(model.mechanism.actuators.values(), view.joint):
            i = int(servo.coordinate)
            at, d = place_of(view.joint, i), view.v.start + i
            if at is not None:
                stretch = servo.target - servo.ratio * q[:, view.q.start + at]
                out[:, d] += servo.ratio * (servo.kp * stretch - servo.kd * servo.ratio * v[:, d])
    return out


def inputs_by_name(model: Model, inputs: Any) -> dict[str, FloatArray]:
    """Inputs by actuator, of those that act on what moves, from a dict or an array (..., nu)."""
    actuators = model.mechanism.actuators
    if not isinstance(inputs, Mapping):
        array = check_array(inputs, "actuate: inputs")
        if array.ndim == 0 or array.shape[-1] != len(actuators):
            raise ModelError(
                f"actuate: inputs have shape {array.shape}, expected {len(actuators)} in each row, for the actuators "
                f"{quoted(list(actuators)[:20])}; or give a dict."
            )
        # one on a joint that is held has no effect
        inputs = {name: array[..., k] for k, name in enumerate(actuators) if _moves(actuators[name], model)}
    arrays: dict[str, FloatArray] = {}
    for name, value in inputs.items():
        if name not in actuators:
            raise ModelError(f"actuate: there is no actuator {name!r}; there are {quoted(list(actuators)[:20])}.")
        arrays[name] = check_array(value, f"actuate: actuator '{name}': inputs")
    return arrays


def forces_of_inputs(model: Model, inputs: Any, arms: Mapping[str, FloatArray]) -> FloatArray:
    """Generalised forces (..., nv) of inputs by actuator, or of an array (..., nu); see ``Model.actuate``."""
    actuators, arrays = model.mechanism.actuators, inputs_by_name(model, inputs)
    shapes = {array.shape for array in arrays.values() if array.ndim}
    if len(shapes) > 1:
        raise ModelError(f"actuate: the inputs have different shapes: {sorted(shapes)}.")
    out = np.zeros((*next(iter(shapes), ()), model.nv))
    for name, array in arrays.items():
        actuator = actuators[name]
        if not actuator.tendon:
            # a joint that is held is an error here
            model.joint(actuator.joint)
        push = _push(actuator, array, model.mechanism.limits_enforced)
        out += push[..., None] * arm_of(actuator, model, arms)
    return out


def slopes_of_inputs(model: Model, inputs: FloatArray) -> FloatArray:
    """Derivatives (steps, nu, nv) of the forces by the inputs (steps, nu); zero where a bound cuts an input."""
    actuators, bounded = model.mechanism.actuators, model.mechanism.limits_enforced
    out = np.zeros((*inputs.shape, model.nv))
    for k, actuator in enumerate(actuators.values()):
        if not _moves(actuator, model):
            continue
        value, gain = inputs[:, k], 1.0
        cut = bounded and not actuator.has_activation and actuator.input_range is not None
        low, high = actuator.input_range if cut and actuator.input_range else (-np.inf, np.inf)
        if actuator.is_servo:
            gain = actuator.kp if actuator.kp > 0 else actuator.kd
        elif bounded and actuator.effort is not None:
            low, high = max(low, -actuator.effort), min(high, actuator.effort)
        inside = (value > low) & (value < high)
        out[:, k] = (gain * inside)[:, None] * arm_of(actuator, model, {})
    return out


def _moves(actuator: Actuator, model: Model) -> bool:
    """Whether it acts on anything that moves."""
    return bool(actuator.tendon) or actuator.joint in model.joints


def _push(actuator: Actuator, value: FloatArray, bounded: bool) -> FloatArray:
    """What an input adds to the force before the gear."""
    # what an activation follows was cut before
    if bounded and actuator.input_range is not None and not actuator.has_activation:
        value = np.clip(value, *actuator.input_range)
    if actuator.is_servo:
        gain = actuator.kp if actuator.kp > 0 else actuator.kd
        return np.asarray(gain * (value - actuator.target))
    if bounded and actuator.effort is not None:
        value = np.clip(value, -actuator.effort, actuator.effort)
    return np.asarray(value)
