"""Sensors of a compiled MuJoCo model that are functions of the state."""

from __future__ import annotations

from typing import Any

from leastaction.io.mjcf_names import object_name, unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.model.checks import WORLD
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.sensors import RELATIVE, SENSORS


def add_sensors(m: Mechanism, source: Source, sites: dict[int, str], notes: Notes) -> None:
    """Sensors of joints, frames, bodies and actuators of joints; the others are noted by kind.

    ``sites``: names of the frames of sites, by number.
    """
    import mujoco

    mj = source.mj
    others: dict[str, int] = {}
    for s in range(mj.nsensor):
        word = mujoco.mjtSensor(int(mj.sensor_type[s])).name.removeprefix("mjSENS_").lower()
        name, element = source.named("sensor", s)
        described = _described(m, source, sites, s, word)
        if described is None:
            others[word] = others.get(word, 0) + 1
            continue
        # a sensor may be seen from a frame
        reference = ""
        if described["kind"] in RELATIVE and mj.sensor_refid[s] >= 0:
            reference = _frame(m, source, sites, int(mj.sensor_reftype[s]), int(mj.sensor_refid[s]))
        cut = (
            float(mj.sensor_cutoff[s]) if int(mj.sensor_datatype[s]) == int(mujoco.mjtDataType.mjDATATYPE_REAL) else 0.0
        )
        with located(element):
            m.add_sensor(unused(name, m.sensors), **described, reference=reference, cutoff=cut)
    for word, count in others.items():
        notes.add(f"not read: {count} sensors of the kind {word}; those of joints, frames and the clock are.")


def _described(m: Mechanism, source: Source, sites: dict[int, str], s: int, word: str) -> dict[str, Any] | None:
    """Kind, target and scale of a sensor; None for one that is not read."""
    mj = source.mj
    kind, number = int(mj.sensor_objtype[s]), int(mj.sensor_objid[s])
    if word in ("jointpos", "jointvel", "ballquat", "ballangvel"):
        # coordinates here count from ref
        offset = float(mj.qpos0[mj.jnt_qposadr[number]]) if word == "jointpos" else 0.0
        return {"kind": word, "target": source.joints[number], "offset": offset}
    if word in ("actuatorpos", "actuatorvel"):
        return _of_actuator(source, number, word)
    if word == "subtreecom":
        return None if number == 0 else {"kind": word, "target": source.bodies[number]}
    if word not in SENSORS:
        return None
    return {"kind": word, "target": "" if word == "clock" else _frame(m, source, sites, kind, number)}


def _of_actuator(source: Source, number: int, word: str) -> dict[str, Any] | None:
    """Length and rate of an actuator on a joint of one coordinate: gear times those of the joint."""
    import mujoco

    mj = source.mj
    j = int(mj.actuator_trnid[number, 0])
    on_joint = int(mj.actuator_trntype[number]) == int(mujoco.mjtTrn.mjTRN_JOINT)
    if not on_joint or int(mj.jnt_type[j]) not in (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)):
        return None
    gear, place = float(mj.actuator_gear[int(mj.actuator_outadr[number])][0]), word == "actuatorpos"
    offset = gear * float(mj.qpos0[mj.jnt_qposadr[j]]) if place else 0.0
    return {"kind": "jointpos" if place else "jointvel", "target": source.joints[j], "scale": gear, "offset": offset}


def _frame(m: Mechanism, source: Source, sites: dict[int, str], kind: int, number: int) -> str:
    """Name of the frame of an object, which is added where there is none."""
    import mujoco

    mj, obj = source.mj, mujoco.mjtObj(kind)
    if obj == mujoco.mjtObj.mjOBJ_XBODY:
        return source.bodies[number]
    if obj == mujoco.mjtObj.mjOBJ_SITE and number in sites:
        return sites[number]
    # body is MuJoCo's word for the frame of inertia
    places: dict[Any, tuple[str, Any, Any, Any]] = {
        mujoco.mjtObj.mjOBJ_BODY: ("body", range(mj.nbody), mj.body_ipos, mj.body_iquat),
        mujoco.mjtObj.mjOBJ_GEOM: ("geom", mj.geom_bodyid, mj.geom_pos, mj.geom_quat),
        mujoco.mjtObj.mjOBJ_SITE: ("site", mj.site_bodyid, mj.site_pos, mj.site_quat),
        mujoco.mjtObj.mjOBJ_CAMERA: ("camera", mj.cam_bodyid, mj.cam_pos, mj.cam_quat),
    }
    word, carriers, xyz, quat = places[obj]
    body = int(carriers[number])
    suffix = "inertia" if word == "body" else word
    own = object_name(mj, word, number) if word != "camera" else ""
    label = f"{own or f'{source.bodies[body]}/{word}_{number}'}/{suffix}"
    at = pose(xyz=xyz[number], quat=quat[number])
    carrier = source.bodies[body] if body else WORLD
    if label in m.frames and m.frames[label].body == carrier:
        return label
    label = unused(label, {*m.bodies, *m.frames})
    m.add_frame(label, carrier, at)
    return label
