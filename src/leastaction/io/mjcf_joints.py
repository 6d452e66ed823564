"""Joints and global settings of a compiled MuJoCo model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes
from leastaction.model.checks import FloatArray

_FLAGS = ("constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper", "gravity", "actuation")


@dataclass(frozen=True)
class Settings:
    """What the options of a model say about the rest of it.

    Attributes:
        gravity: (3,) acceleration.
        off: names of MuJoCo's flags that are disabled, such as "limit".
    """

    gravity: FloatArray
    off: frozenset[str]


def read_settings(source: Source, notes: Notes) -> Settings:
    """Gravity and disabled flags; refuses what surrounds the bodies and cannot be honoured."""
    import mujoco

    mj = source.mj
    # flags that switch parts of the model off are honoured by leaving those parts out
    off = {
        flag for flag in _FLAGS if mj.opt.disableflags & int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag.upper()}"))
    }
    if "constraint" in off:
        off |= {"equality", "frictionloss", "limit", "contact"}
    for flag in sorted(off):
        notes.add(f'<flag {flag}="disable">: honoured, what it switches off is not in the mechanism.')
    # deformable bodies
    if mj.nflex:
        element = source.first.get("flexcomp") or source.first.get("flex", source.root)
        notes.unless_allowed("flex", element.error("deformable bodies (flex) are not supported."))
    # forces from outside the engine
    used = [int(np.max(ids, initial=-1)) for ids in (mj.body_plugin, mj.actuator_plugin, mj.geom_plugin)]
    if max(used) >= 0:
        element = source.first.get("plugin", source.root)
        notes.unless_allowed("plugins", element.error("plugins are not supported."))
    gravity = np.zeros(3) if "gravity" in off else np.array(mj.opt.gravity, dtype=float)
    return Settings(gravity, frozenset(off))


def joint_data(source: Source, settings: Settings, notes: Notes, j: int) -> dict[str, Any]:
    """Kind and options for ``Mechanism.add_joint`` of one joint, its frames excepted."""
    import mujoco

    mj = source.mj
    kind = {
        mujoco.mjtJoint.mjJNT_HINGE: "revolute",
        mujoco.mjtJoint.mjJNT_SLIDE: "prismatic",
        mujoco.mjtJoint.mjJNT_BALL: "spherical",
        mujoco.mjtJoint.mjJNT_FREE: "free",
    }[mujoco.mjtJoint(int(mj.jnt_type[j]))]
    data: dict[str, Any] = {"kind": kind}
    if kind in ("revolute", "prismatic"):
        data["axis"] = mj.jnt_axis[j]
    data.update(_passive(source, settings, notes, j, kind))
    data.update(_bounds(source, settings, notes, j, kind))
    return data


def _passive(source: Source, settings: Settings, notes: Notes, j: int, kind: str) -> dict[str, Any]:
    """Spring, damper, Coulomb friction and armature of a joint."""
    mj = source.mj
    element = source.element("joint", source.joints[j])
    dof, adr = int(mj.jnt_dofadr[j]), int(mj.jnt_qposadr[j])
    data: dict[str, Any] = {}

    # terms beyond the linear ones
    curved = [mj.jnt_stiffnesspoly[j], mj.dof_dampingpoly[dof], mj.jnt_springyield[j], mj.jnt_plasticadr[j] >= 0]
    if any(np.any(value) for value in curved):
        notes.unless_allowed(
            "nonlinear", element.error("polynomial or yielding springs and dampers are not supported.")
        )

    # springs pull towards springref; coordinates here count from ref
    stiffness = float(mj.jnt_stiffness[j])
    if stiffness and "spring" not in settings.off:
        data["stiffness"] = stiffness
        if kind in ("revolute", "prismatic"):
            data["rest"] = float(mj.qpos_spring[adr] - mj.qpos0[adr])
        else:
            data["rest"] = np.array(mj.qpos_spring[adr : adr + (4 if kind == "spherical" else 7)])
    if "damper" not in settings.off:
        data["damping"] = float(mj.dof_damping[dof])

    # no meaning on a free joint here
    for name, value in (("friction", float(mj.dof_frictionloss[dof])), ("armature", float(mj.dof_armature[dof]))):
        if not value or (name == "friction" and "frictionloss" in settings.off):
            continue
        if kind == "free":
            notes.unless_allowed(name, element.error(f"{name} on a free joint is not supported."))
        else:
            data[name] = value
    return data


def _bounds(source: Source, settings: Settings, notes: Notes, j: int, kind: str) -> dict[str, Any]:
    """Limits, counted from ref, and the largest force of the joint's actuators."""
    mj = source.mj
    data: dict[str, Any] = {}
    if mj.jnt_limited[j] and "limit" not in settings.off:
        # a limit with a margin holds that much earlier
        margin = float(mj.jnt_margin[j])
        low, high = float(mj.jnt_range[j, 0]) + margin, float(mj.jnt_range[j, 1]) - margin
        if low > high:
            element = source.element("joint", source.joints[j])
            raise element.error(f"margin {margin:g} leaves no room between the limits; make it smaller.")
        if kind in ("revolute", "prismatic"):
            ref = float(mj.qpos0[mj.jnt_qposadr[j]])
            data["limits"] = (low - ref, high - ref)
        else:
            data["limits"] = (0.0, high)
    # effort is one number for both directions
    if mj.jnt_actfrclimited[j] and kind in ("revolute", "prismatic"):
        low, high = (float(x) for x in mj.jnt_actfrcrange[j])
        if high > 0 and low == -high:
            data["effort"] = high
        else:
            element = source.element("joint", source.joints[j])
            what = f"actuatorfrcrange {low:g} .. {high:g} is not symmetric, which is not supported."
            notes.unless_allowed("effort", element.error(what))
    return data
