"""Key frames of a compiled MuJoCo model, and where free joints start."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.io.convert_joints import mujoco_map
from leastaction.io.mjcf_actuators import InputMap
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import FloatArray
from leastaction.model.mechanism import Mechanism

_SIZES = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}
"""Coordinates and velocities by MuJoCo's type: free, ball, slide, hinge."""


def add_starts(m: Mechanism, source: Source) -> None:
    """Free joints start at the pose of their body in the file."""
    mj = source.mj
    q, _ = _motion(m, source, mj.qpos0, np.zeros(mj.nv))
    for name, joint in m.joints.items():
        if joint.kind == "free":
            joint.start = q[name]


def add_keys(m: Mechanism, source: Source, inputs: dict[str, InputMap], notes: Notes) -> None:
    """Key frames by name; ``inputs``: how MuJoCo's inputs become those of our actuators."""
    mj = source.mj
    attached = "attach" in source.first or "model" in source.first
    for k in range(mj.nkey):
        name, element = source.named("key", k)
        # MuJoCo takes what it finds; those of attached models are made longer by it
        if not attached:
            _check_lengths(element, mj)
        q, v = _motion(m, source, mj.key_qpos[k], mj.key_qvel[k])
        with located(element):
            m.add_key_frame(
                unused(name, m.key_frames),
                q,
                {joint: rates for joint, rates in v.items() if rates.any()},
                float(mj.key_time[k]),
                {actuator: slope * float(mj.key_ctrl[k, u]) + shift for actuator, (u, slope, shift) in inputs.items()},
            )
        if mj.na and mj.key_act[k].any():
            notes.add(f"{element.where}: the activations of the key frame are not kept.")
        if mj.nmocap and "mpos" in element.attrib:
            notes.add(f"{element.where}: mocap bodies stay where the file puts them.")


def _check_lengths(element: Element, mj: Any) -> None:
    """Refuse numbers that are too few or too many."""
    if element.tag != "key":
        return
    sizes = {"qpos": mj.nq, "qvel": mj.nv, "act": mj.na, "ctrl": mj.nu, "mpos": 3 * mj.nmocap, "mquat": 4 * mj.nmocap}
    for attribute, size in sizes.items():
        words = element.attrib.get(attribute, "").split()
        if words and len(words) != size:
            raise element.error(f"{attribute} has {len(words)} numbers; the model needs {size}.")


def _motion(
    m: Mechanism, source: Source, qpos: FloatArray, qvel: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Coordinates and velocities by joint of MuJoCo's."""
    mj = source.mj
    q: dict[str, FloatArray] = {}
    v: dict[str, FloatArray] = {}
    for j, name in enumerate(source.joints):
        kind, iq, iv = int(mj.jnt_type[j]), int(mj.jnt_qposadr[j]), int(mj.jnt_dofadr[j])
        nq, nv = _SIZES[kind]
        change = mujoco_map(m.joints[name], ((kind, mj.qpos0[iq]), nq, nv))
        assert change is not None
        q[name], v[name] = change.backward(np.array(qpos[iq : iq + nq]), np.array(qvel[iv : iv + nv]))
    return q, v
