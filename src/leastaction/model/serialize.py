"""A mechanism as plain JSON types and back, to the last bit.

Python writes a float with as many digits as it takes to read it back, so nothing is rounded. JSON has no infinity:
limits, efforts and speeds that are infinite are null.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.bearing import Bearing
from leastaction.model.checks import FloatArray
from leastaction.model.coupling import coupling_to_dict
from leastaction.model.elements import Actuator, Body, ContactPair, Ground, Joint
from leastaction.model.forces import force_from_dict
from leastaction.model.inertia import symmetric_inertia
from leastaction.model.joints import JointPart, check_coordinates
from leastaction.model.mechanism import Mechanism
from leastaction.model.reader import Reader, is_number, plain
from leastaction.model.shapes import shape_from_dict
from leastaction.model.spline import spline_from_dict
from leastaction.model.tendon import read_way, tendon_to_dict

FORMAT = "leastaction mechanism"
VERSION = 1


def mechanism_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Plain JSON types of a mechanism.

    Meshes from arrays are embedded, meshes from files keep their path. What is made of functions (potentials, user
    constraints, laws on joints, forces of time) cannot be written: a ModelError names it.
    """
    mechanism.check()
    if mechanism.constraints:
        label = mechanism.constraints[0].label
        raise ModelError(f"{label}: a constraint is made of functions and cannot be written to a file.")
    ground, couplings = mechanism.ground, list(mechanism.couplings.values())
    tendons = [tendon_to_dict(each) for each in mechanism.tendons.values()]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": mechanism.name,
        "gravity": plain(mechanism.gravity),
        "bodies": [_body_to_dict(body) for body in mechanism.bodies.values()],
        "joints": [_joint_to_dict(joint) for joint in mechanism.joints.values()],
        "frames": [{"name": f.name, "body": f.body, "pose": plain(f.pose)} for f in mechanism.frames.values()],
        "forces": [force.to_dict() for force in mechanism.forces],
        "ground": None if ground is None else {**_contact_to_dict(ground), **_plane_to_dict(ground)},
        "contacts": [
            {"a": pair.a, "b": pair.b, **_contact_to_dict(pair), "points": plain(pair.points), **_picked(pair)}
            for pair in mechanism.contacts
        ],
        "contact_excludes": sorted(sorted(pair) for pair in mechanism.contact_excludes),
        "actuators": [_actuator_to_dict(actuator) for actuator in mechanism.actuators.values()],
        **_key_frames_to_dict(mechanism),
        # only where there are some, so that files of others stay as they were
        **({"couplings": [coupling_to_dict(each) for each in couplings]} if couplings else {}),
        **({"tendons": tendons} if tendons else {}),
        **_sensors_to_dict(mechanism),
        "limits_enforced": mechanism.limits_enforced,
        "notes": list(mechanism.notes),
    }


def mechanism_from_dict(data: Any, base: str | Path | None = None, roots: Iterable[str | Path] = ()) -> Mechanism:
    """A mechanism from ``mechanism_to_dict``.

    Strict: an unknown key, a missing one or a wrong type is a ModelError that names the path, as ``joints[3].axis``.

    Args:
        data: plain JSON types.
        base: folder that mesh files are relative to. When given, they must lie inside it or inside one of ``roots``;
            when None, their paths are taken as they are.
        roots: more folders that meshes may be read from.
    """
    reader, roots = Reader(data, ""), tuple(roots)
    # ours, and of a version that is known
    if reader.take("format", None) != FORMAT:
        raise ModelError(f"format: expected '{FORMAT}'; this is not a mechanism of leastaction.")
    version = reader.integer("version")
    if version != VERSION:
        raise ModelError(f"version: {version} is not known to this release, which reads version {VERSION}.")
    out = Mechanism(reader.text("name"), reader.array("gravity", (3,)))
    # in an order in which names are known before they are used
    for item in reader.objects("bodies"):
        _read_body(out, item, base, roots)
    for item in reader.objects("joints"):
        _read_joint(out, item)
    for item in reader.objects("frames"):
        _read_frame(out, item)
    for i, force in enumerate(reader.items("forces", [])):
        out.add_force(force_from_dict(force, f"forces[{i}]"))
    _read_contacts(out, reader)
    for item in reader.objects("tendons"):
        _read_tendon(out, item)
    for item in reader.objects("actuators"):
        _read_actuator(out, item)
    for item in reader.objects("sensors"):
        _read_sensor(out, item)
    for item in reader.objects("key_frames"):
        _read_key_frame(out, item)
    for item in reader.objects("couplings"):
        _read_coupling(out, item)
    out.limits_enforced = reader.flag("limits_enforced", False)
    out.notes = _texts(reader, "notes", reader.items("notes", []))
    reader.finish()
    out.check()
    return out


def _body_to_dict(body: Body) -> dict[str, Any]:
    # few bodies lack a shape
    unread = {"unread_shapes": list(body.unread_shapes)} if body.unread_shapes else {}
    return unread | {
        "name": body.name,
        "mass": body.mass,
        "com": plain(body.com),
        "inertia": plain(body.inertia),
        "shapes": [shape.to_dict() for shape in body.shapes],
    }


def _read_body(out: Mechanism, reader: Reader, base: str | Path | None, roots: Iterable[str | Path]) -> None:
    name, mass = reader.text("name"), reader.number("mass")
    com, inertia = reader.array("com", (3,)), reader.array("inertia", (3, 3))
    shapes = [
        shape_from_dict(shape, f"{reader.path}.shapes[{i}]", base, roots)
        for i, shape in enumerate(reader.items("shapes", []))
    ]
    unread = _texts(reader, "unread_shapes", reader.items("unread_shapes", []))
    reader.finish()
    # dynamics judges what a body and all that is fixed to it can have
    with reader.here():
        body = out.add_body(name, mass=mass, com=com, inertia=np.zeros((3, 3)), shapes=shapes)
        body.inertia = symmetric_inertia(inertia, f"body '{name}'")
    body.unread_shapes = tuple(unread)


def _joint_to_dict(joint: Joint) -> dict[str, Any]:
    for what, laws in (("stiffness", joint.stiffness_laws), ("damping", joint.damping_laws)):
        if laws:
            raise ModelError(
                f"joint '{joint.name}': {what}: a Law is made of functions and cannot be written to a file."
            )
    # only spline joints have a spline, and few joints start elsewhere than neutral
    rare = {"spline": None if joint.spline is None else joint.spline.to_dict(), "start": plain(joint.start)}
    return {key: value for key, value in rare.items() if value is not None} | {
        "name": joint.name,
        "kind": joint.kind,
        "parent": joint.parent,
        "child": joint.child,
        "axis": plain(joint.axis),
        "axis2": plain(joint.axis2),
        "pitch": joint.pitch,
        "parent_frame": plain(joint.parent_frame),
        "child_frame": plain(joint.child_frame),
        "parts": [_part_to_dict(part) for part in joint.parts],
        "damping": plain(joint.damping_values),
        "stiffness": plain(joint.stiffness_values),
        "rest": plain(joint.rest),
        "friction": _friction_to_dict(joint),
        "armature": plain(joint.armature),
        "limits": [_finite(row) for row in joint.limits],
        "effort": _finite(joint.effort),
        "speed": _finite(joint.speed),
        "locked": plain(joint.locked),
    }


def _friction_to_dict(joint: Joint) -> Any:
    """Numbers, or an object for a bearing."""
    return plain(joint.friction_values) if joint.bearing is None else dataclasses.asdict(joint.bearing)


def _read_friction(reader: Reader) -> Any:
    """Numbers or a bearing."""
    if not isinstance(reader.data.get("friction"), dict):
        return reader.array("friction", (-1,), 0.0)
    given = Reader(reader.take("friction"), reader.where("friction"))
    numbers = given.number("coefficient"), given.number("radius")
    # a ball has no length
    length = None if given.data.get("length") is None else given.number("length")
    given.take("length", None)
    given.finish()
    with given.here():
        return Bearing(*numbers, length)


def _part_to_dict(part: JointPart) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "axis": plain(part.axis),
        "axis2": plain(part.axis2),
        "pitch": part.pitch,
        "frame": plain(part.frame),
    }


def _read_joint(out: Mechanism, reader: Reader) -> None:
    name, kind = reader.text("name"), reader.text("kind")
    parent, child = reader.text("parent"), reader.text("child")
    # geometry
    options: dict[str, Any] = {
        "axis": reader.array("axis", (3,), (0.0, 0.0, 1.0)),
        "axis2": reader.array("axis2", (3,), None),
        "pitch": reader.number("pitch", 0.0),
        "parent_frame": reader.array("parent_frame", (4, 4), None),
        "child_frame": reader.array("child_frame", (4, 4), None),
        "parts": [_read_part(item) for item in reader.objects("parts")] or None,
    }
    curve = reader.object("spline")
    options["spline"] = None if curve is None else spline_from_dict(curve)
    # data per coordinate
    options["friction"] = _read_friction(reader)
    for what in ("damping", "stiffness", "rest", "armature"):
        options[what] = reader.array(what, (-1,), 0.0)
    for what in ("effort", "speed"):
        options[what] = _bounds(reader, what, reader.take(what, None))
    limits = reader.take("limits", None)
    if limits is not None:
        if not isinstance(limits, list):
            raise reader.fail("limits", "a list of [low, high]", limits)
        options["limits"] = [_bounds(reader, f"limits[{i}]", row) for i, row in enumerate(limits)]
    locked, start = reader.array("locked", (-1,), None), reader.array("start", (-1,), None)
    reader.finish()
    with reader.here():
        joint = out.add_joint(name, kind, parent=parent, child=child, **options)
        if start is not None:
            joint.start = check_coordinates(joint, start, f"joint '{name}': start")
        if locked is not None:
            out.lock(name, locked)


def _read_part(reader: Reader) -> tuple[str, dict[str, Any]]:
    kind = reader.text("kind")
    options = {
        "axis": reader.array("axis", (3,), (0.0, 0.0, 1.0)),
        "axis2": reader.array("axis2", (3,), None),
        "pitch": reader.number("pitch", 0.0),
        "frame": reader.array("frame", (4, 4), None),
    }
    reader.finish()
    return kind, options


def _read_frame(out: Mechanism, reader: Reader) -> None:
    name, body, pose = reader.text("name"), reader.text("body"), reader.array("pose", (4, 4))
    reader.finish()
    with reader.here():
        out.add_frame(name, body, pose)


def _key_frames_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Nothing where there are none."""
    listed = [
        {
            "name": key.name,
            "q": {name: plain(value) for name, value in key.q.items()},
            "v": {name: plain(value) for name, value in key.v.items()},
            "t": key.t,
            "inputs": dict(key.inputs),
        }
        for key in mechanism.key_frames.values()
    ]
    return {"key_frames": listed} if listed else {}


def _sensors_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    """Nothing where there are none."""
    listed = [dataclasses.asdict(sensor) for sensor in mechanism.sensors.values()]
    return {"sensors": listed} if listed else {}


def _read_sensor(out: Mechanism, reader: Reader) -> None:
    name, kind = reader.text("name"), reader.text("kind")
    texts = {what: reader.text(what, "") for what in ("target", "reference")}
    numbers = {what: reader.number(what, value) for what, value in (("scale", 1.0), ("offset", 0.0), ("cutoff", 0.0))}
    reader.finish()
    with reader.here():
        out.add_sensor(name, kind, **texts, **numbers)


def _read_key_frame(out: Mechanism, reader: Reader) -> None:
    name, t = reader.text("name"), reader.number("t", 0.0)
    parts: list[dict[str, Any]] = []
    for what in ("q", "v", "inputs"):
        given = reader.object(what)
        found = {} if given is None else dict(given.data)
        for key in found:
            found[key] = given.number(key) if what == "inputs" else given.array(key, (-1,))  # type: ignore[union-attr]
        parts.append(found)
    reader.finish()
    with reader.here():
        out.add_key_frame(name, parts[0], parts[1], t, parts[2])


def _contact_to_dict(contact: Ground | ContactPair) -> dict[str, Any]:
    return {"friction": contact.friction, "restitution": contact.restitution}


def _picked(pair: ContactPair) -> dict[str, Any]:
    """Shapes and margin of a pair that does not take them all, or touches early."""
    shapes = {} if pair.shapes == (None, None) else {"shapes": list(pair.shapes)}
    return {**shapes, **({"margin": pair.margin} if pair.margin else {})}


def _read_shapes(reader: Reader) -> tuple[Any, ...]:
    """Places of one shape of each body, null for all of them."""
    shapes = reader.take("shapes", [None, None])
    if not isinstance(shapes, list) or len(shapes) != 2:
        raise reader.fail("shapes", "a list of two whole numbers or nulls", shapes)
    return tuple(shapes)


def _plane_to_dict(ground: Ground) -> dict[str, Any]:
    out = {"normal": plain(ground.normal), "height": ground.height}
    # only ground that is not flat has a grid
    if ground.heights is not None:
        out |= {"heights": plain(ground.heights), "spacing": plain(ground.spacing)}
    return out


def _read_contacts(out: Mechanism, reader: Reader) -> None:
    # ground
    ground = reader.object("ground")
    if ground is not None:
        numbers = (ground.number("friction"), ground.number("restitution"))
        normal, height = ground.array("normal", (3,)), ground.number("height")
        grid = _read_heights(ground)
        ground.finish()
        with ground.here():
            out.add_ground(*numbers, normal, height, *grid)
    # pairs
    for item in reader.objects("contacts"):
        a, b = item.text("a"), item.text("b")
        numbers = (item.number("friction"), item.number("restitution"))
        points, shapes = item.array("points", (-1, 3), None), _read_shapes(item)
        margin = item.number("margin", 0.0)
        item.finish()
        with item.here():
            out.add_contact(a, b, *numbers, points, shapes, margin)
    # pairs that never touch
    for i, pair in enumerate(reader.items("contact_excludes", [])):
        names = _texts(reader, f"contact_excludes[{i}]", pair)
        if len(names) != 2:
            raise reader.fail(f"contact_excludes[{i}]", "two names", pair)
        out.exclude_contact(*names)


def _read_heights(ground: Reader) -> tuple[Any, Any]:
    """Grid of heights and its spacing, or None for both."""
    rows = ground.items("heights", []) or None
    if rows is not None:
        ny = len(rows[0]) if isinstance(rows[0], list) else -1
        ground.data["heights"] = rows
        rows = ground.array("heights", (-1, ny))
    return rows, ground.array("spacing", (2,), None)


def _actuator_to_dict(actuator: Actuator) -> dict[str, Any]:
    return {
        "name": actuator.name,
        **({"tendon": actuator.tendon} if actuator.tendon else {"joint": actuator.joint}),
        "gear": plain(np.asarray(actuator.gear)) if np.ndim(actuator.gear) else actuator.gear,
        "coordinate": int(actuator.coordinate),
        "effort": actuator.effort,
        "kp": actuator.kp,
        "kd": actuator.kd,
        "target": actuator.target,
        **({} if actuator.input_range is None else {"input_range": list(actuator.input_range)}),
        **({"lag": actuator.lag} if actuator.lag else {}),
        **({"integrates": True} if actuator.integrates else {}),
        **({} if actuator.activation_range is None else {"activation_range": list(actuator.activation_range)}),
    }


def _read_actuator(out: Mechanism, reader: Reader) -> None:
    name, tendon = reader.text("name"), reader.text("tendon", "")
    options = {
        "joint": "" if tendon else reader.text("joint"),
        "tendon": tendon,
        "gear": reader.array("gear", (-1,))
        if isinstance(reader.data.get("gear"), list)
        else reader.number("gear", 1.0),
        "coordinate": reader.integer("coordinate", 0),
        "effort": reader.number("effort", None),
        "kp": reader.number("kp", 0.0),
        "kd": reader.number("kd", 0.0),
        "target": reader.number("target", 0.0),
        "input_range": reader.array("input_range", (2,), None),
        "lag": reader.number("lag", 0.0),
        "integrates": reader.flag("integrates", False),
        "activation_range": reader.array("activation_range", (2,), None),
    }
    reader.finish()
    with reader.here():
        out.add_actuator(name, **options)


def _read_tendon(out: Mechanism, reader: Reader) -> None:
    name = reader.text("name")
    options = {
        **read_way(reader),
        "stiffness": reader.number("stiffness", 0.0),
        "damping": reader.number("damping", 0.0),
        "rest": reader.array("rest", (2,), 0.0),
        "limits": _bounds(reader, "limits", reader.take("limits", None)),
    }
    reader.finish()
    with reader.here():
        out.add_tendon(name, **options)


def _read_coupling(out: Mechanism, reader: Reader) -> None:
    name, total = reader.text("name"), reader.number("total")
    terms: dict[tuple[str, int], Any] = {}
    for item in reader.objects("terms"):
        key = item.text("joint"), item.integer("coordinate", 0)
        if key in terms:
            raise item.fail("joint", "a coordinate that stands in the coupling once", key[0])
        terms[key] = item.array("coefficients", (-1,))
        item.finish()
    reader.finish()
    with reader.here():
        out.add_coupling(name, terms, total)


def _finite(values: FloatArray) -> list[float | None]:
    """Numbers as a list, null where infinite."""
    return [float(x) if np.isfinite(x) else None for x in values]


def _bounds(reader: Reader, key: str, value: Any) -> list[float | None] | None:
    """A list of finite numbers and nulls, or null."""
    if value is None:
        return None
    if not isinstance(value, list) or not all(item is None or is_number(item) for item in value):
        raise reader.fail(key, "a list of finite numbers and nulls", value)
    return value


def _texts(reader: Reader, key: str, value: Any) -> list[str]:
    """A list of strings."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise reader.fail(key, "a list of strings", value)
    return list(value)
