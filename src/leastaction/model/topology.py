"""Which joints form the tree, which close loops, and in which order bodies are visited."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray, quoted
from leastaction.model.mechanism import Mechanism
from leastaction.model.motion import joint_motion
from leastaction.model.pose import inverse_pose


@dataclass(frozen=True)
class Topology:
    """The graph of a mechanism.

    Attributes:
        tree: joints of the spanning tree, depth first, parents before children.
        loops: joints that close loops, in build order.
        inbound: the tree joint of every body.
        elimination: bodies from the leaves to the roots; each is eliminated before its parent.
    """

    tree: tuple[str, ...]
    loops: tuple[str, ...]
    inbound: dict[str, str]
    elimination: tuple[str, ...]


def topology(mechanism: Mechanism) -> Topology:
    """Find the spanning tree: the first joint that names a body as its child carries it, later ones close loops."""
    joints = mechanism.joints
    # the first joint of each body, as it was added
    inbound: dict[str, str] = {}
    for joint in joints.values():
        inbound.setdefault(joint.child, joint.name)
    for body in mechanism.bodies:
        if body not in inbound:
            raise ModelError(
                f"body '{body}': no joint carries it. Add a joint with child='{body}': "
                f'add_joint("{body}_joint", "free", parent="world", child="{body}") lets it float.'
            )
    # bodies not connected to the world that way may hang on a later joint
    reached = _reach(mechanism, inbound)
    while len(reached) < len(mechanism.bodies) + 1:
        for joint in joints.values():
            if joint.parent in reached and joint.child not in reached:
                inbound[joint.child] = joint.name
                break
        else:
            lost = [name for name in mechanism.bodies if name not in reached]
            raise ModelError(
                f"the bodies {quoted(lost[:6])} form a cycle of joints that is not connected to the world; "
                f"the joints are {quoted([inbound[name] for name in lost[:6]])}. Connect one of them to 'world'."
            )
        reached = _reach(mechanism, inbound)
    return ordered(mechanism, inbound)


def ordered(mechanism: Mechanism, inbound: dict[str, str]) -> Topology:
    """The graph in which the given joint carries each body: depth first, children in build order."""
    joints = mechanism.joints
    children: dict[str, list[str]] = {name: [] for name in (WORLD, *mechanism.bodies)}
    for joint in joints.values():
        if inbound[joint.child] == joint.name:
            children[joint.parent].append(joint.name)
    order: list[str] = []
    stack = children[WORLD][::-1]
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(children[joints[name].child][::-1])
    loops = tuple(joint.name for joint in joints.values() if inbound[joint.child] != joint.name)
    return Topology(tuple(order), loops, inbound, tuple(joints[name].child for name in reversed(order)))


def rigid_offsets(mechanism: Mechanism, graph: Topology) -> dict[str, tuple[str, FloatArray]]:
    """For every body the body that leads its rigid group and the pose of its link in the leader's link."""
    out: dict[str, tuple[str, FloatArray]] = {}
    for name in graph.tree:
        joint = mechanism.joints[name]
        if joint.kind != "fixed" and joint.locked is None:
            out[joint.child] = (joint.child, np.eye(4))
            continue
        leader, offset = (WORLD, np.eye(4)) if joint.parent == WORLD else out[joint.parent]
        held = joint_motion(joint, joint.neutral if joint.locked is None else joint.locked)
        out[joint.child] = (leader, offset @ joint.parent_frame @ held @ inverse_pose(joint.child_frame))
    return out


def _reach(mechanism: Mechanism, inbound: dict[str, str]) -> set[str]:
    """Bodies connected to the world through their inbound joints, and the world."""
    reached = {WORLD}
    for body in mechanism.bodies:
        # climb until something known or a repetition
        path: list[str] = []
        seen: set[str] = set()
        while body not in reached and body not in seen:
            path.append(body)
            seen.add(body)
            body = mechanism.joints[inbound[body]].parent
        if body in reached:
            reached.update(path)
    return reached
