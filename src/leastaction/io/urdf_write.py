"""URDF writer: reads back to 1e-12; what URDF cannot express is an error that lists all of it."""

from __future__ import annotations

import html
import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.mjcf_names import unused
from leastaction.io.urdf_joints import UNBOUNDED
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.coupling import Coupling
from leastaction.model.elements import Body, Joint
from leastaction.model.files import write_file
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import inverse_pose
from leastaction.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere

_TYPES = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "free": "floating",
    "planar": "planar",
}
_GRAVITY = (0.0, 0.0, -9.81)


def write_urdf(mechanism: Mechanism, path: Path) -> None:
    """Write a mechanism as URDF.

    The world becomes the root link "world". A joint frame that is not the child's link frame becomes a massless link
    ``<child>/joint`` with a fixed joint behind it, a named frame a massless link that is fixed to its body.
    """
    mechanism.check()
    problems = list(_inexpressible(mechanism))
    if problems:
        listed = "; ".join(problems[:10]) + (f"; and {len(problems) - 10} more" if len(problems) > 10 else "")
        raise ModelError(f"{path}: URDF cannot express this mechanism: {listed}. Write .json, or remove it first.")

    # links, then joints, then what stands for frames
    folder = Path(os.path.abspath(path)).parent
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={_quoted(mechanism.name)}>"]
    lines.append(f"  <link name={_quoted(WORLD)}/>")
    for body in mechanism.bodies.values():
        lines.extend(_link(body, folder))
    names = {WORLD, *mechanism.bodies, *mechanism.frames}
    labels = set(mechanism.joints)
    found = (_mimic_of(coupling, mechanism) for coupling in mechanism.couplings.values())
    mimics = {each[0]: each for each in found if each is not None}
    for joint in mechanism.joints.values():
        lines.extend(_joint(joint, names, labels, mimics.get(joint.name)))
    for frame in mechanism.frames.values():
        lines.append(f"  <link name={_quoted(frame.name)}/>")
        lines.extend(_fixed(unused(f"{frame.name}/fixed", labels), frame.body, frame.name, frame.pose, labels))
    write_file(path, "\n".join([*lines, "</robot>", ""]))


def _inexpressible(m: Mechanism) -> list[str]:
    """Everything about a mechanism that URDF has no words for."""
    out: list[str] = []
    if tuple(m.gravity) != _GRAVITY:
        out.append(f"gravity {tuple(m.gravity.tolist())} (URDF has none; {_GRAVITY} is what readers assume)")
    # every body is the child of one joint
    children: dict[str, str] = {}
    for joint in m.joints.values():
        if joint.child in children:
            out.append(f"loop closed by joint '{joint.name}' (body '{joint.child}' hangs on '{children[joint.child]}')")
        children.setdefault(joint.child, joint.name)
        out.extend(f"joint '{joint.name}': {reason}" for reason in _joint_problems(joint))
    out.extend(f"body '{name}' (no joint leads to it)" for name in m.bodies if name not in children)
    # shapes
    for body in m.bodies.values():
        for shape in body.shapes:
            if not isinstance(shape, (Box, Sphere, Cylinder, Capsule, Mesh)):
                out.append(f"{shape.kind} of body '{body.name}'")
            elif isinstance(shape, Mesh) and shape.file is None:
                out.append(f"mesh of body '{body.name}' that has no file")
            elif not shape.visual and not shape.collision:
                out.append(f"{shape.kind} of body '{body.name}' that is neither visual nor collision")
    # what acts on the mechanism
    out.extend(f"force '{force.name or type(force).__name__}'" for force in m.forces)
    out.extend(f"constraint '{constraint.name or 'without a name'}'" for constraint in m.constraints)
    out.extend(["ground"] if m.ground is not None else [])
    out.extend(f"contact '{pair.a}' and '{pair.b}'" for pair in m.contacts)
    out.extend(f"contact exclusion of {' and '.join(map(repr, sorted(pair)))}" for pair in m.contact_excludes)
    followers = [_mimic_of(coupling, m) for coupling in m.couplings.values()]
    for coupling, mimic in zip(m.couplings.values(), followers, strict=True):
        if mimic is None or [each[0] for each in followers if each].count(mimic[0]) > 1:
            out.append(f"{coupling.label} (URDF has one joint that follows one other, linearly)")
    out.extend(f"actuator '{name}'" for name in m.actuators)
    out.extend(f"tendon '{name}'" for name in m.tendons)
    return out


def _mimic_of(coupling: Coupling, m: Mechanism) -> tuple[str, str, float, float] | None:
    """Follower, leader, multiplier and offset of a coupling, or None where URDF has no words for it."""
    if len(coupling.terms) != 2 or any(len(term.coefficients) > 1 for term in coupling.terms):
        return None
    follower, leader = coupling.terms
    if any(m.joints[term.joint].nv != 1 for term in coupling.terms):
        return None
    c, d = follower.coefficients[0], leader.coefficients[0]
    return follower.joint, leader.joint, -d / c, coupling.total / c


def _joint_problems(joint: Joint) -> list[str]:
    """What URDF cannot express about one joint."""
    if joint.kind not in _TYPES:
        return [f"kind {joint.kind}"]
    out = []
    if joint.locked is not None:
        out.append("locked (unlock it, or make it fixed)")
    if joint.bearing is not None:
        out.append("a bearing")
    if joint.stiffness_laws or joint.damping_laws:
        out.append("nonlinear stiffness or damping")
    if np.any(joint.stiffness_values):
        out.append("stiffness")
    if np.any(joint.armature):
        out.append("armature")
    # one number for all coordinates
    given = {"damping": joint.damping_values, "friction": joint.friction_values}
    for what, values in {**given, "effort": joint.effort, "speed": joint.speed}.items():
        if len(values) and not np.all(values == values[0]):
            out.append(f"{what} that differs between coordinates")
    if joint.has_limits and joint.kind not in ("revolute", "prismatic"):
        out.append(f"limits on a {joint.kind} joint")
    return out


def _link(body: Body, folder: Path) -> list[str]:
    """A ``<link>`` with its mass and shapes."""
    lines = [f"  <link name={_quoted(body.name)}>"]
    if body.mass > 0 or np.any(body.inertia):
        I = body.inertia
        entries = {"ixx": I[0, 0], "ixy": I[0, 1], "ixz": I[0, 2], "iyy": I[1, 1], "iyz": I[1, 2], "izz": I[2, 2]}
        inertia = " ".join(f'{key}="{_number(value)}"' for key, value in entries.items())
        lines += [
            "    <inertial>",
            f'      <origin xyz="{_numbers(body.com)}" rpy="0 0 0"/>',
            f'      <mass value="{_number(body.mass)}"/>',
            f"      <inertia {inertia}/>",
            "    </inertial>",
        ]
    for i, shape in enumerate(body.shapes):
        if shape.visual:
            lines += _shape(shape, "visual", folder, f"{body.name}/{i}")
        if shape.collision:
            lines += _shape(shape, "collision", folder, "")
    return [*lines, "  </link>"]


def _shape(shape: Shape, tag: str, folder: Path, material: str) -> list[str]:
    """A ``<visual>``, whose colour needs a material of its own, or a ``<collision>``."""
    name = "" if shape.name is None else f" name={_quoted(shape.name)}"
    lines = [
        f"    <{tag}{name}>",
        f"      {_origin(shape.at)}",
        f"      <geometry>{_geometry(shape, folder)}</geometry>",
    ]
    if tag == "visual" and shape.color is not None:
        rgba = _numbers((*shape.color, 1.0)[:4])
        lines.append(f'      <material name={_quoted(material)}><color rgba="{rgba}"/></material>')
    return [*lines, f"    </{tag}>"]


def _geometry(shape: Shape, folder: Path) -> str:
    """The geometry element of a shape."""
    if isinstance(shape, Box):
        return f'<box size="{_numbers(shape.size)}"/>'
    if isinstance(shape, Sphere):
        return f'<sphere radius="{_number(shape.radius)}"/>'
    if isinstance(shape, (Cylinder, Capsule)):
        return f'<{shape.kind} radius="{_number(shape.radius)}" length="{_number(shape.length)}"/>'
    assert isinstance(shape, Mesh)
    assert shape.file is not None
    # relative to the file that is written, so that both can move together
    whole = Path(os.path.abspath(shape.file))
    file = (whole.relative_to(folder) if whole.is_relative_to(folder) else whole).as_posix()
    return f'<mesh filename={_quoted(file)} scale="{_numbers(shape.scale)}"/>'


def _joint(joint: Joint, names: set[str], labels: set[str], mimic: tuple[str, str, float, float] | None) -> list[str]:
    """A ``<joint>``, which may follow another; behind it a massless link if its frame is not the child's link frame."""
    child = joint.child
    behind: list[str] = []
    if not np.array_equal(joint.child_frame, np.eye(4)):
        child = unused(f"{joint.child}/joint", names)
        names.add(child)
        label = unused(f"{joint.name}/fixed", labels)
        behind = [f"  <link name={_quoted(child)}/>"]
        behind += _fixed(label, child, joint.child, inverse_pose(joint.child_frame), labels)
    # a revolute joint without limits is what URDF calls continuous
    limits = joint.limits[0] if joint.kind in ("revolute", "prismatic") else np.zeros(0)
    kind = "continuous" if joint.kind == "revolute" and not joint.has_limits else _TYPES[joint.kind]
    lines = _opening(joint.name, kind, joint.parent, child, joint.parent_frame)
    if kind not in ("fixed", "floating"):
        lines.append(f'    <axis xyz="{_numbers(joint.axis)}"/>')
        lines.extend(_limit(joint, kind, limits))
    if joint.nv and (np.any(joint.damping_values) or np.any(joint.friction_values)):
        damping, friction = joint.damping_values[0], joint.friction_values[0]
        lines.append(f'    <dynamics damping="{_number(damping)}" friction="{_number(friction)}"/>')
    if mimic is not None:
        _, leader, multiplier, offset = mimic
        given = f'multiplier="{_number(multiplier)}" offset="{_number(offset)}"'
        lines.append(f"    <mimic joint={_quoted(leader)} {given}/>")
    return [*lines, "  </joint>", *behind]


def _limit(joint: Joint, kind: str, limits: FloatArray) -> list[str]:
    """The ``<limit>`` of a joint; the largest number stands where there is no bound."""
    effort, speed = (_bound(np.asarray(values)[0]) for values in (joint.effort, joint.speed))
    if kind in ("revolute", "prismatic"):
        lower, upper = _bound(limits[0]), _bound(limits[1])
        return [f'    <limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{speed}"/>']
    if np.isfinite(joint.effort).any() or np.isfinite(joint.speed).any():
        return [f'    <limit effort="{effort}" velocity="{speed}"/>']
    return []


def _fixed(label: str, parent: str, child: str, pose: FloatArray, labels: set[str]) -> list[str]:
    """A fixed joint."""
    labels.add(label)
    return [*_opening(label, "fixed", parent, child, pose), "  </joint>"]


def _opening(label: str, kind: str, parent: str, child: str, pose: FloatArray) -> list[str]:
    """What every joint begins with."""
    return [
        f'  <joint name={_quoted(label)} type="{kind}">',
        f"    <parent link={_quoted(parent)}/>",
        f"    <child link={_quoted(child)}/>",
        f"    {_origin(pose)}",
    ]


def _origin(pose: FloatArray) -> str:
    """An ``<origin>``."""
    return f'<origin xyz="{_numbers(pose[:3, 3])}" rpy="{_numbers(rpy_angles(pose[:3, :3]))}"/>'


def rpy_angles(R: FloatArray) -> tuple[float, float, float]:
    """Roll, pitch, yaw (rad) with R = Rz(yaw) Ry(pitch) Rx(roll), accurate also where pitch is a right angle.

    Whatever yaw is taken, pitch and roll are read from Rz(-yaw) R, so that the product is R again.
    """
    yaw = math.atan2(R[1, 0], R[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    pitch = math.atan2(-R[2, 0], c * R[0, 0] + s * R[1, 0])
    roll = math.atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return roll, pitch, yaw


def _bound(value: Any) -> str:
    """A bound; the largest number stands for none."""
    return _number(math.copysign(UNBOUNDED, value) if math.isinf(value) else value)


def _number(value: Any) -> str:
    """A number with all its digits."""
    return repr(float(value))


def _numbers(values: Any) -> str:
    """Numbers with all their digits, separated by spaces."""
    return " ".join(_number(value) for value in values)


def _quoted(text: str) -> str:
    """Text as the value of an attribute."""
    return f'"{html.escape(text, quote=True)}"'
