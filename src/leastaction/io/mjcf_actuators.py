"""Actuators of a compiled MuJoCo model as motors and servos on joints, fixed tendons and sites of free bodies.

MuJoCo's force is gain * input + b0 + b1 * length + b2 * rate, cut to forcerange, with length and rate the gear times
those of the joint or tendon. Without b1 and b2 that is a motor of gear * gain; otherwise a servo with kp = -b1 and
kd = -b2. Force and torque of a motor on a site of a free body are constant along the axes of its link, as a gear is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from leastaction.io.mjcf_joints import Settings
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_source import Source
from leastaction.io.mjcf_tendons import TendonMap
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose


class Target(NamedTuple):
    """What an actuator acts on: arguments of ``Mechanism.add_actuator``, its gear, and MuJoCo's length at zero.

    Attributes:
        where: joint and coordinate, or tendon.
        gear: one number, or one for each coordinate.
        offset: length of the joint or tendon in MuJoCo where it is zero here.
        single: whether it is one length with a rate, so that a servo may act on it.
    """

    where: dict[str, Any]
    gear: float | FloatArray
    offset: float
    single: bool


InputMap = tuple[int, float, float]
"""Place of an actuator's input among MuJoCo's, and slope and shift that make it that of the actuator here."""


def add_actuators(
    m: Mechanism, source: Source, settings: Settings, tendons: Mapping[int, TendonMap], notes: Notes
) -> dict[str, InputMap]:
    """Actuators by a law that is known here, on what they may act on here; all others are refused unless allowed.

    Returns how their inputs follow from MuJoCo's, by name. ``tendons``: those that are kept.
    """
    inputs: dict[str, InputMap] = {}
    if "actuation" in settings.off:
        return inputs
    mj = source.mj
    for a in range(mj.nactuator):
        name, element = source.named("actuator", a)
        group = int(mj.actuator_group[a])
        if 0 <= group <= 30 and mj.opt.disableactuator & (1 << group):
            notes.add(f"{element.where}: the actuator {name!r} is in a disabled group; not kept.")
            continue
        target = _target(source, tendons, a)
        refusal = _refusal(source, target, a)
        if refusal is not None:
            notes.unless_allowed(refusal[0], element.error(f"the actuator {name!r} {refusal[1]}"))
            continue
        dynamics = _dynamics(source, a)
        assert target is not None
        servo = _is_servo(mj, a)
        law = _servo(source, target, notes, a, name) if servo else _motor(source, notes, a, name, element)
        if dynamics:
            _add_dynamics(source, notes, a, law, dynamics)
        factor, (slope, shift) = law.pop("factor", 1.0), law.pop("input", (1.0, 0.0))
        label = unused(name, m.actuators)
        with located(element):
            m.add_actuator(label, **target.where, gear=target.gear * factor, **law)
        inputs[label] = int(mj.actuator_ctrladr[a]), slope, shift
    return inputs


def _refusal(source: Source, target: Target | None, a: int) -> tuple[str, str] | None:
    """Why an actuator cannot be kept: the word that allows to drop it, and the reason; None if it can."""
    import mujoco

    mj = source.mj
    gain, bias = mujoco.mjtGain(int(mj.actuator_gaintype[a])), mujoco.mjtBias(int(mj.actuator_biastype[a]))
    dyn = mujoco.mjtDyn(int(mj.actuator_dyntype[a]))
    if gain == mujoco.mjtGain.mjGAIN_MUSCLE or dyn == mujoco.mjtDyn.mjDYN_MUSCLE:
        return "muscle", "is a muscle, which is not supported."
    # what it does by itself, and what its force depends on
    if mj.actuator_armature[a] or mj.actuator_damping[a] or np.any(mj.actuator_dampingpoly[a]):
        return "actuators", "has armature or damping of its own, which is not supported; give them to its joint."
    if gain != mujoco.mjtGain.mjGAIN_FIXED:
        return "actuators", f"has gaintype {_word(gain)}, which is not supported; only fixed is."
    if bias not in (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE):
        return "actuators", f"has biastype {_word(bias)}, which is not supported; only none and affine are."
    known = (mujoco.mjtDyn.mjDYN_NONE, mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT)
    if dyn not in (*known, mujoco.mjtDyn.mjDYN_INTEGRATOR):
        return "actuators", f"has dyntype {_word(dyn)}, which is not supported."
    if mj.actuator_delay[a]:
        return "actuators", "has a delay, which is not supported."
    # where it acts
    if target is None:
        kind = _word(mujoco.mjtTrn(int(mj.actuator_trntype[a])))
        return "actuators", (
            f"(transmission {kind}) does not act on a joint or fixed tendon with a constant gear, which is not "
            "supported; actuators on these and motors on sites of free bodies are."
        )
    if bias == mujoco.mjtBias.mjBIAS_AFFINE:
        return _refused_bias(source, a, target)
    return None


def _refused_bias(source: Source, a: int, target: Target) -> tuple[str, str] | None:
    """Why the part of a force that needs no input cannot be kept; None if it can."""
    mj = source.mj
    b0, b1, b2 = (float(b) for b in mj.actuator_biasprm[a, :3])
    if (b0 or b1 or b2) and not target.single:
        return "actuators", "has a bias and acts on no hinge, slide or tendon, which is not supported."
    if b1 > 0 or b2 > 0:
        return "actuators", f"has biasprm {b0:g} {b1:g} {b2:g}, which pushes away; the last two must not be positive."
    if b0 and not b1:
        return "actuators", f"has biasprm {b0:g} {b1:g} {b2:g}, a constant force without a spring; add it as a control."
    if (b1 or b2) and target.gear == 0:
        return "actuators", "is a servo with a gear of zero."
    # bounds of a servo's force
    low, high = (float(f) for f in mj.actuator_forcerange[a])
    if mj.actuator_forcelimited[a] and (b1 or b2) and not (high > 0 and low == -high):
        return "effort", f"is a servo with forcerange {low:g} .. {high:g}; only symmetric ones are supported."
    return None


def _dynamics(source: Source, a: int) -> dict[str, Any]:
    """Filter or integrator between input and force."""
    import mujoco

    mj, kind = source.mj, mujoco.mjtDyn(int(source.mj.actuator_dyntype[a]))
    if kind == mujoco.mjtDyn.mjDYN_NONE:
        return {}
    lag = float(mj.actuator_dynprm[a, 0])
    out: dict[str, Any] = {"integrates": True} if kind == mujoco.mjtDyn.mjDYN_INTEGRATOR else {"lag": lag}
    if mj.actuator_actlimited[a] and (lag > 0 or "integrates" in out):
        out["activation_range"] = tuple(float(x) for x in mj.actuator_actrange[a])
    return out


def _add_dynamics(source: Source, notes: Notes, a: int, law: dict[str, Any], dynamics: dict[str, Any]) -> None:
    """Put a filter or integrator before a law: bounds of inputs then hold before it, bounds of forces behind it."""
    mj, (name, element), ends = source.mj, source.named("actuator", a), _input_range(source, a)
    slope, shift = law.get("input", (1.0, 0.0))
    integrates = "integrates" in dynamics
    law |= dynamics
    # what a motor feels is cut by the range of its force alone
    if "kp" not in law:
        law.pop("effort", None)
        law.pop("input_range", None)
        low, high = (float(x) for x in mj.actuator_forcerange[a])
        if mj.actuator_forcelimited[a] and law["factor"]:
            if not (high > 0 and low == -high):
                what = f"the actuator {name!r} has a filter and forcerange {low:g} .. {high:g}, which is not symmetric."
                notes.unless_allowed("effort", element.error(what))
            else:
                law["effort"] = high / abs(law["factor"])
    elif law["kp"]:
        law["target"] = shift
    # an integrator adds up rates, which have no shift
    before = 0.0 if integrates else shift
    if np.isfinite(ends).any():
        low, high = sorted(slope * x + before for x in ends)
        law["input_range"] = (low, high)
    if "activation_range" in law:
        low, high = sorted(slope * x + shift for x in law["activation_range"])
        law["activation_range"] = (low, high)
    if "input" in law:
        law["input"] = (slope, before)


def _is_on_one_axis(source: Source, a: int) -> bool:
    """Whether an actuator acts on a hinge or a slide."""
    import mujoco

    mj = source.mj
    if int(mj.actuator_trntype[a]) not in (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)):
        return False
    one = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return int(mj.jnt_type[mj.actuator_trnid[a, 0]]) in one


def _target(source: Source, tendons: Mapping[int, TendonMap], a: int) -> Target | None:
    """What an actuator acts on; None for any transmission that is not supported."""
    import mujoco

    mj, gear = source.mj, _gear(source, a)
    if _is_on_one_axis(source, a):
        j = int(mj.actuator_trnid[a, 0])
        return Target({"joint": source.joints[j]}, float(gear[0]), float(mj.qpos0[mj.jnt_qposadr[j]]), True)
    # a ball turned about axes of its child frame
    kind, at = int(mj.actuator_trntype[a]), int(mj.actuator_trnid[a, 0])
    ball = int(mujoco.mjtJoint.mjJNT_BALL)
    if kind == int(mujoco.mjtTrn.mjTRN_JOINT) and int(mj.jnt_type[at]) == ball:
        used, joint = np.flatnonzero(gear[:3]), source.joints[at]
        if len(used) == 1:
            return Target({"joint": joint, "coordinate": int(used[0])}, float(gear[used[0]]), 0.0, False)
        return Target({"joint": joint}, gear[:3], 0.0, False)
    if kind == int(mujoco.mjtTrn.mjTRN_TENDON) and at in tendons:
        return Target({"tendon": tendons[at].name}, float(gear[0]), tendons[at].offset, True)
    if kind == int(mujoco.mjtTrn.mjTRN_SITE) and int(mj.actuator_trnid[a, 1]) < 0:
        return _on_free_body(source, at, gear)
    return None


def _on_free_body(source: Source, site: int, gear: FloatArray) -> Target | None:
    """Free joint and gear (torque; force) of a force and torque in the axes of a site on its body; None for others."""
    import mujoco

    mj, b, frame = (
        source.mj,
        int(source.mj.site_bodyid[site]),
        pose(xyz=source.mj.site_pos[site], quat=source.mj.site_quat[site]),
    )
    # up to the body that carries the joint
    while b > 0 and mj.body_jntnum[b] == 0:
        frame, b = pose(xyz=mj.body_pos[b], quat=mj.body_quat[b]) @ frame, int(mj.body_parentid[b])
    j = int(mj.body_jntadr[b])
    if b == 0 or int(mj.jnt_type[j]) != int(mujoco.mjtJoint.mjJNT_FREE):
        return None
    force, torque = frame[:3, :3] @ gear[:3], frame[:3, :3] @ gear[3:]
    push = np.concatenate([torque + np.cross(frame[:3, 3], force), force])
    return Target({"joint": source.joints[j]}, push, 0.0, False)


def _is_servo(mj: Any, a: int) -> bool:
    """Whether a force depends on the place or rate of the joint."""
    import mujoco

    affine = int(mj.actuator_biastype[a]) == int(mujoco.mjtBias.mjBIAS_AFFINE)
    return affine and bool(np.any(mj.actuator_biasprm[a, 1:3]))


def _motor(source: Source, notes: Notes, a: int, name: str, element: Element) -> dict[str, Any]:
    """Factor of the gear, and the bounds of the input: those of the file, and those of the force through the gain."""
    gain = float(source.mj.actuator_gainprm[a, 0])
    low, high = _input_range(source, a)
    if source.mj.actuator_forcelimited[a] and gain:
        ends = sorted(float(f) / gain for f in source.mj.actuator_forcerange[a])
        # the input that gives the nearest force the motor has
        low, high = (min(max(x, ends[0]), ends[1]) for x in (low, high))
    if low > 0 or high < 0:
        notes.add(f"{element.where}: the input of {name!r} is never zero in MuJoCo; without an input it rests here.")
    if gain != 1:
        notes.add(f"{element.where}: the gain {gain:g} of the actuator {name!r} is part of its gear.")
    data: dict[str, Any] = {"factor": gain}
    if np.isfinite([low, high]).any():
        symmetric = high > 0 and low == -high
        data |= {"effort": high} if symmetric else {"input_range": (low, high)}
    return data


def _servo(source: Source, target: Target, notes: Notes, a: int, name: str) -> dict[str, Any]:
    """Gains, target and bounds of a servo on a hinge, slide or tendon.

    Its input is the target in coordinates that count from ref: slope * MuJoCo's input + shift.
    """
    mj, element = source.mj, source.named("actuator", a)[1]
    gain, (b0, b1, b2) = float(mj.actuator_gainprm[a, 0]), (float(b) for b in mj.actuator_biasprm[a, :3])
    kp, kd = abs(b1), abs(b2)
    shift = b0 / kp - float(target.gear) * target.offset if kp else 0.0
    slope = gain / (kp or kd)
    data: dict[str, Any] = {"kp": kp, "kd": kd, "target": shift, "input": (slope, shift)}
    if (slope, shift) != (1.0, 0.0):
        notes.add(
            f"{element.where}: the input of the servo {name!r} is its target, {slope:g} times MuJoCo's input plus "
            f"{shift:g}."
        )
    if mj.actuator_forcelimited[a]:
        data["effort"] = float(mj.actuator_forcerange[a, 1])
    ends = _input_range(source, a)
    if np.isfinite(ends).any():
        # without an input it is cut to its range as well
        low, high = sorted(slope * x + shift for x in ends)
        data["input_range"] = (low, high)
        data["target"] = min(max(shift, low), high) if kp else 0.0
    return data


def _input_range(source: Source, a: int) -> tuple[float, float]:
    """Bounds of MuJoCo's input, infinite where there are none."""
    import mujoco

    mj = source.mj
    cut = not mj.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
    # inputs are counted through: an actuator before this one may have several
    u = int(mj.actuator_ctrladr[a])
    if not (cut and mj.actuator_ctrllimited[u]):
        return -np.inf, np.inf
    return float(mj.actuator_ctrlrange[u, 0]), float(mj.actuator_ctrlrange[u, 1])


def _gear(source: Source, a: int) -> FloatArray:
    """Gear (6,) of the first output of an actuator; outputs are counted through, and some actuators have several."""
    mj = source.mj
    return np.array(mj.actuator_gear[int(mj.actuator_outadr[a])], dtype=float)


def _word(member: Any) -> str:
    """MuJoCo's word for a member of one of its enumerations."""
    return str(member.name).split("_", 1)[1].lower()
