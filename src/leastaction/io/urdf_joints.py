"""URDF joints: kinds, axes, limits, dynamics, and what has no place in a mechanism."""

from __future__ import annotations

import math
import sys
from typing import Any

from leastaction.errors import ModelError
from leastaction.io.mjcf_names import unused
from leastaction.io.notes import Notes, located
from leastaction.io.urdf_extensions import ignore_others
from leastaction.io.urdf_inertia import read_origin
from leastaction.io.xml import Element
from leastaction.model.mechanism import Mechanism

KINDS = {
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "free",
    "planar": "planar",
}
"""URDF's joint types and the kinds of joints here."""

UNBOUNDED = sys.float_info.max
"""A bound of this size is no bound: what the writer puts where URDF asks for a number and there is none."""

_AXIS = (1.0, 0.0, 0.0)
_READ = frozenset({"origin", "parent", "child", "axis", "limit", "dynamics", "mimic"})


def add_joint(m: Mechanism, joint: Element, parent: str, child: str, notes: Notes) -> None:
    """Add one ``<joint>`` to the mechanism."""
    kind = KINDS.get(joint.string("type"))
    if kind is None:
        raise joint.error(f'unknown type "{joint.attrib["type"]}"; known are {", ".join(KINDS)}.')
    options: dict[str, Any] = {"parent_frame": read_origin(joint)}

    # the axis; URDF's default is x, and fixed and floating joints have none
    if kind not in ("fixed", "free"):
        options["axis"] = _axis(joint)
        options.update(_limits(joint, kind, notes))
    if kind != "fixed":
        options.update(_dynamics(joint, notes))
    with located(joint):
        m.add_joint(joint.string("name"), kind, parent=parent, child=child, **options)

    ignore_others(joint, _READ, notes)
    for element in (*joint.all("limit"), *joint.all("dynamics")):
        ignore_others(element, frozenset(), notes)


def add_mimics(m: Mechanism, order: list[Element], notes: Notes) -> None:
    """Couplings of the joints that follow others, once all joints are there: q = multiplier * q_leader + offset."""
    for joint in order:
        name, mimic = joint.string("name"), joint.optional("mimic")
        if mimic is None or m.joints[name].kind == "fixed":
            continue
        leader = mimic.string("joint")
        if "mimic" in notes.allow:
            error = joint.error(f'it mimics the joint "{leader}", and moves on its own.')
            notes.add(f"allowed by 'mimic': {error}")
            continue
        _note_attributes(mimic, {"joint", "multiplier", "offset"}, notes)
        multiplier, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
        if leader == name:
            raise joint.error("it mimics itself.")
        if leader not in m.joints:
            raise joint.error(f'it mimics the joint "{leader}", which does not exist.')
        for each in (name, leader):
            if m.joints[each].nv > 1:
                raise joint.error(f'it mimics the joint "{leader}", but "{each}" has {m.joints[each].nv} coordinates.')
        terms = {name: 1.0}
        # a joint that is fixed stands at zero
        if multiplier and m.joints[leader].kind != "fixed":
            terms[leader] = -multiplier
        with located(joint):
            m.add_coupling(unused(f"{name}/mimic", {*m.joints, *m.couplings}), terms, offset)


def _axis(joint: Element) -> tuple[float, ...]:
    """Axis (3,) in the joint frame, the normal for a planar joint."""
    axis = joint.optional("axis")
    if axis is None:
        return _AXIS
    xyz = axis.numbers("xyz", 3, _AXIS)
    if not any(xyz):
        raise joint.error(f"the axis on line {axis.line} is zero; give a direction such as 0 0 1.")
    return xyz


def _limits(joint: Element, kind: str, notes: Notes) -> dict[str, Any]:
    """Limits, effort and speed of a joint, as options of ``Mechanism.add_joint``."""
    options: dict[str, Any] = {}
    limit = joint.optional("limit")
    if limit is None:
        if kind in ("revolute", "prismatic"):
            notes.add(f"{joint.where}: has no <limit>; taken as unlimited.")
        return options
    _note_attributes(limit, {"lower", "upper", "effort", "velocity"}, notes)

    # bounds of the coordinate: both default to 0, as in the definition of URDF
    if kind in ("revolute", "prismatic"):
        lower = _loose(limit, "lower", -math.inf, notes)
        upper = _loose(limit, "upper", math.inf, notes)
        if lower > upper:
            notes.add(
                f"{joint.where}: the limits on line {limit.line} are reversed, lower {lower:g} > upper {upper:g}; "
                "taken as unlimited, as others take them."
            )
            lower, upper = -math.inf, math.inf
        if "lower" not in limit.attrib and "upper" not in limit.attrib:
            notes.add(f"{joint.where}: <limit> has neither lower nor upper; both are 0, as URDF defines it.")
        options["limits"] = (
            None if lower <= -UNBOUNDED else lower,
            None if upper >= UNBOUNDED else upper,
        )
    elif "lower" in limit.attrib or "upper" in limit.attrib:
        notes.ignore(limit, f"lower and upper mean nothing on a {kind} joint; not kept")

    # bounds of force and speed; zero is how files say that they do not know
    for attribute, option in (("effort", "effort"), ("velocity", "speed")):
        if attribute not in limit.attrib:
            continue
        value = _loose(limit, attribute, math.inf, notes)
        if value <= 0:
            what = "0" if value == 0 else "negative"
            notes.ignore(limit, f"{attribute} is {what}; taken as not given")
        elif value < UNBOUNDED:
            options[option] = value
    return options


def _dynamics(joint: Element, notes: Notes) -> dict[str, Any]:
    """Damping and Coulomb friction of a joint."""
    dynamics = joint.optional("dynamics")
    if dynamics is None:
        return {}
    _note_attributes(dynamics, {"damping", "friction"}, notes)
    options = {key: _loose(dynamics, key, 0.0, notes) for key in ("damping", "friction")}
    for key, value in options.items():
        if value < 0:
            raise ModelError(f"{joint.where}: {key} on line {dynamics.line} is negative: {value}.")
    return options


def _loose(element: Element, name: str, unknown: float, notes: Notes) -> float:
    """A number, 0 where it is absent; ``unknown``, with a note, for one that is written and not finite."""
    try:
        value = float(element.attrib.get(name, "0"))
    except ValueError:
        value = 0.0
    if math.isfinite(value):
        return element.number(name, 0.0)
    notes.ignore(element, f"{name} is not finite; taken as not given")
    return unknown


def _note_attributes(element: Element, known: set[str], notes: Notes) -> None:
    """Note attributes that URDF does not define."""
    unknown = sorted(set(element.attrib) - known)
    if unknown:
        notes.ignore(element, f"unknown attributes {', '.join(unknown)}; not read")
