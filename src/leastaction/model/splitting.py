"""Joints that close a loop and carry springs, friction, rotors, actuators, couplings, bounds: the body is cut.

A loop joint has constraint rows and no coordinates, so nothing can act on them. Here its child is cut in two: a *twin*
takes a share of the mass of the child and of all that is fixed to it, the joint carries the twin as a joint of the tree
with coordinates of its own, and a fixed joint welds the twin to the body. Mass, momentum and energy stay what they
were. Shapes, frames, forces, contacts and constraints stay with the body.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.actuation import with_servos
from leastaction.model.checks import WORLD, FloatArray, frozen
from leastaction.model.elements import Body, Joint
from leastaction.model.inertia import MassProperties, combine
from leastaction.model.joint_data import check_joint
from leastaction.model.joints import kind_of
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import inverse_pose
from leastaction.model.topology import Topology, ordered, rigid_offsets

# Kinds whose motion backwards is that along the opposite axis, with the same coordinates.
_REVERSIBLE = ("revolute", "continuous", "prismatic", "helical", "cylindrical")


class Twin(NamedTuple):
    """A share of a body, of its own in the tree.

    Attributes:
        body: what it was cut off; their link frames coincide while the weld holds.
        joint: the joint that carries it, which closed a loop.
        weld: the fixed joint that closes the loop now.
        share: part of the mass of the body and of all that is fixed to it, from 0 to 1.
    """

    body: str
    joint: str
    weld: str
    share: float


def split(mechanism: Mechanism, graph: Topology) -> tuple[Mechanism, Topology, dict[str, Twin]]:
    """The mechanism with bodies cut at loop joints that carry something, its graph, and the twins by name.

    Both are returned as they are where there is nothing to cut.

    Raises:
        ModelError: neither body of such a joint has mass that moves, or the joint would have to be reversed and cannot.
    """
    cut = [mechanism.joints[name] for name in graph.loops if needs_coordinates(mechanism.joints[name], mechanism)]
    if not cut:
        return mechanism, graph, {}
    rigid = rigid_offsets(mechanism, graph)
    groups = _groups(mechanism, rigid)
    # which body each of them cuts, and how many cut the same one
    sides = {joint.name: _side(joint, rigid, groups) for joint in cut}
    counts: dict[str, int] = {}
    for body in sides.values():
        leader = rigid[body][0]
        counts[leader] = counts.get(leader, 0) + 1
    out, twins = mechanism.copy(), {}
    for joint in cut:
        body = sides[joint.name]
        leader, offset = rigid[body]
        twin = Twin(body, joint.name, _unused(f"{joint.name} (weld)", out.joints), 1.0 / (counts[leader] + 1))
        name = _unused(f"{body} (at {joint.name})", (*out.bodies, *out.frames, WORLD))
        twins[name] = twin
        out.bodies[name] = _scaled(name, groups[leader].transformed(inverse_pose(offset)), twin.share)
        # the joint keeps its place, and with it that of its coordinates
        out.joints[joint.name] = _carrying(joint, body, name)
        out.joints[twin.weld] = _weld(twin.weld, body, name)
    # what is left of the bodies
    for name, (leader, _) in rigid.items():
        if leader in counts:
            whole = out.bodies[name]
            left = _scaled(name, whole.mass_properties, 1.0 / (counts[leader] + 1))
            out.bodies[name] = dataclasses.replace(left, shapes=whole.shapes)
    inbound = {**graph.inbound, **{name: twin.joint for name, twin in twins.items()}}
    return out, ordered(out, inbound), twins


def needs_coordinates(joint: Joint, mechanism: Mechanism) -> bool:
    """Whether a loop joint carries what acts on its coordinates; or has no constraint rows, as composite joints."""
    if joint.kind == "fixed" or joint.locked is not None:
        return False
    driven = any(each.joint == joint.name for each in mechanism.actuators.values())
    coupled = any(joint.name in each.joints for each in mechanism.couplings.values())
    coupled = coupled or any(joint.name in each.joints for each in mechanism.tendons.values())
    if kind_of(joint.kind).translation is None or driven or coupled:
        return True
    joint = with_servos(joint, mechanism.actuators.values())
    forces = (joint.stiffness_values, joint.damping_values, joint.armature, joint.friction_values)
    laws = bool(joint.stiffness_laws) or bool(joint.damping_laws)
    bounds = joint.has_limits or bool(np.isfinite(joint.effort).any())
    return laws or any(values.any() for values in forces) or (mechanism.limits_enforced and bounds)


def _groups(mechanism: Mechanism, rigid: dict[str, tuple[str, FloatArray]]) -> dict[str, MassProperties]:
    """Mass of everything that moves with a leading body, in its link frame."""
    parts: dict[str, list[MassProperties]] = {}
    for name, (leader, offset) in rigid.items():
        parts.setdefault(leader, []).append(mechanism.bodies[name].mass_properties.transformed(offset))
    return {leader: combine(several) for leader, several in parts.items()}


def _side(joint: Joint, rigid: dict[str, tuple[str, FloatArray]], groups: dict[str, MassProperties]) -> str:
    """The body to cut: the child, or the parent where the child has no mass that moves."""

    def moves(body: str) -> bool:
        leader = WORLD if body == WORLD else rigid[body][0]
        return leader != WORLD and groups[leader].mass > 0

    if moves(joint.child):
        return joint.child
    what = f"joint '{joint.name}' closes a loop and has coordinates of its own, by what it carries or by its kind"
    if not moves(joint.parent):
        raise ModelError(
            f"{what}; neither '{joint.parent}' nor '{joint.child}' has mass that moves. Give one of them a mass, or "
            "let another joint close the loop."
        )
    if joint.kind not in _REVERSIBLE:
        raise ModelError(
            f"{what}; its child '{joint.child}' has no mass that moves, and a {joint.kind} joint cannot be reversed. "
            "Swap its parent and child, or give the child a mass."
        )
    return joint.parent


def _carrying(joint: Joint, body: str, twin: str) -> Joint:
    """The joint with the twin in place of the child; reversed, with the same coordinates, if it replaces the parent."""
    if body == joint.child:
        return dataclasses.replace(joint, child=twin)
    return dataclasses.replace(
        joint,
        parent=joint.child,
        child=twin,
        axis=frozen(-joint.axis),
        parent_frame=joint.child_frame,
        child_frame=joint.parent_frame,
    )


def _weld(name: str, body: str, twin: str) -> Joint:
    """A fixed joint, with all fields of one that was checked."""
    joint = Joint(name, "fixed", body, twin)
    check_joint(joint)
    return joint


def _scaled(name: str, mass: MassProperties, part: float) -> Body:
    """A body with a part of some mass."""
    return Body(name, part * mass.mass, frozen(mass.com), frozen(part * mass.inertia))


def _unused(name: str, known: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    k, out = 2, name
    while out in known:
        k, out = k + 1, f"{name} {k}"
    return out
