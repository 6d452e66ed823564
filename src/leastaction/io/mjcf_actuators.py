"""Actuators of a compiled MuJoCo model as motors and servos.

MuJoCo's force is gain * input + b0 + b1 * length + b2 * rate, cut to forcerange, with length and rate the gear times
those of the joint. Without b1 and b2 that is a motor of gear * gain; otherwise a servo with kp = -b1 and kd = -b2. The
force and torque of a motor on a site of a free body are constant along the axes of its link, as a gear is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.io.mjcf_joints import Settings
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import FloatArray
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose

InputMap = tuple[int, float, float]
"""Place of an actuator's input among MuJoCo's, and slope and shift that make it that of the actuator here."""


def add_actuators(m: Mechanism, source: Source, settings: Settings, notes: Notes) -> dict[str, InputMap]:
    """Actuators on one coordinate of a joint by a law that is known here; all others are refused unless allowed.

    Returns how their inputs follow from MuJoCo's, by name.
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
        refusal = _refusal(source, a)
        if refusal is not None:
            notes.unless_allowed(refusal[0], element.error(f"the actuator {name!r} {refusal[1]}"))
            continue
        _check_dynamics(source, notes, a, name, element)
        target = _target(source, a)
        assert target is not None
        joint, coordinate, gear = target
        law = _servo(source, notes, a, name, element) if _is_servo(mj, a) else _motor(source, notes, a, name, element)
        factor, (slope, shift) = law.pop("factor", 1.0), law.pop("input", (1.0, 0.0))
        label = unused(name, m.actuators)
        with located(element):
            m.add_actuator(label, joint, gear=gear * factor, coordinate=coordinate, **law)
        inputs[label] = int(mj.actuator_ctrladr[a]), slope, shift
    return inputs


def _refusal(source: Source, a: int) -> tuple[str, str] | None:
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
    if dyn not in (mujoco.mjtDyn.mjDYN_NONE, mujoco.mjtDyn.mjDYN_FILTER, mujoco.mjtDyn.mjDYN_FILTEREXACT):
        return "actuators", f"has dyntype {_word(dyn)}, which is not supported."
    if mj.actuator_delay[a]:
        return "actuators", "has a delay, which is not supported."
    # where it acts
    target = _target(source, a)
    if target is None:
        kind = _word(mujoco.mjtTrn(int(mj.actuator_trntype[a])))
        return "actuators", (
            f"(transmission {kind}) does not act on one joint with a constant gear, which is not supported; motors on "
            "joints and on sites of free bodies are."
        )
    if bias == mujoco.mjtBias.mjBIAS_AFFINE:
        return _refused_bias(source, a, target[2])
    return None


def _refused_bias(source: Source, a: int, gear: float | FloatArray) -> tuple[str, str] | None:
    """Why the part of a force that needs no input cannot be kept; None if it can."""
    mj = source.mj
    b0, b1, b2 = (float(b) for b in mj.actuator_biasprm[a, :3])
    if (b0 or b1 or b2) and not _is_on_one_axis(source, a):
        return "actuators", "has a bias and acts on no hinge or slide, which is not supported."
    if b1 > 0 or b2 > 0:
        return "actuators", f"has biasprm {b0:g} {b1:g} {b2:g}, which pushes away; the last two must not be positive."
    if b0 and not b1:
        return "actuators", f"has biasprm {b0:g} {b1:g} {b2:g}, a constant force without a spring; add it as a control."
    if (b1 or b2) and gear == 0:
        return "actuators", "is a servo with a gear of zero."
    # bounds of a servo's force
    low, high = (float(f) for f in mj.actuator_forcerange[a])
    if mj.actuator_forcelimited[a] and (b1 or b2) and not (high > 0 and low == -high):
        return "effort", f"is a servo with forcerange {low:g} .. {high:g}; only symmetric ones are supported."
    return None


def _check_dynamics(source: Source, notes: Notes, a: int, name: str, element: Element) -> None:
    """Refuse a filter between input and force, unless it is allowed."""
    import mujoco

    if int(source.mj.actuator_dyntype[a]) != int(mujoco.mjtDyn.mjDYN_NONE):
        constant = float(source.mj.actuator_dynprm[a, 0])
        what = f"the actuator {name!r} has a filter of time constant {constant:g} s, which is not supported."
        notes.unless_allowed("activation", element.error(what))


def _is_on_one_axis(source: Source, a: int) -> bool:
    """Whether an actuator acts on a hinge or a slide."""
    import mujoco

    mj = source.mj
    if int(mj.actuator_trntype[a]) not in (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)):
        return False
    one = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    return int(mj.jnt_type[mj.actuator_trnid[a, 0]]) in one


def _target(source: Source, a: int) -> tuple[str, int, float | FloatArray] | None:
    """Joint, velocity coordinate and gear that an actuator acts on; None for any other transmission."""
    import mujoco

    mj, gear = source.mj, _gear(source, a)
    if _is_on_one_axis(source, a):
        return source.joints[int(mj.actuator_trnid[a, 0])], 0, float(gear[0])
    # a ball turned about axes of its child frame
    kind, at = int(mj.actuator_trntype[a]), int(mj.actuator_trnid[a, 0])
    ball = int(mujoco.mjtJoint.mjJNT_BALL)
    if kind == int(mujoco.mjtTrn.mjTRN_JOINT) and int(mj.jnt_type[at]) == ball:
        used = np.flatnonzero(gear[:3])
        return (
            (source.joints[at], int(used[0]), float(gear[used[0]]))
            if len(used) == 1
            else (source.joints[at], 0, gear[:3])
        )
    if kind == int(mujoco.mjtTrn.mjTRN_SITE) and int(mj.actuator_trnid[a, 1]) < 0:
        return _on_free_body(source, at, gear)
    return None


def _on_free_body(source: Source, site: int, gear: FloatArray) -> tuple[str, int, FloatArray] | None:
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
    return source.joints[j], 0, np.concatenate([torque + np.cross(frame[:3, 3], force), force])


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


def _servo(source: Source, notes: Notes, a: int, name: str, element: Element) -> dict[str, Any]:
    """Gains, target and bounds of a servo on a hinge or slide.

    Its input is the target in coordinates that count from ref: slope * MuJoCo's input + shift.
    """
    mj, j = source.mj, int(source.mj.actuator_trnid[a, 0])
    gain, (b0, b1, b2) = float(mj.actuator_gainprm[a, 0]), (float(b) for b in mj.actuator_biasprm[a, :3])
    kp, kd, gear = abs(b1), abs(b2), float(_gear(source, a)[0])
    shift = b0 / kp - gear * float(mj.qpos0[mj.jnt_qposadr[j]]) if kp else 0.0
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
