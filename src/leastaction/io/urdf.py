"""Strict URDF reader: the tree of links and joints becomes a Mechanism, every error names file, line and element."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from leastaction.errors import ModelError
from leastaction.io.notes import Notes, located
from leastaction.io.roots import Roots
from leastaction.io.urdf_extensions import ignore_extension, refuse_xacro
from leastaction.io.urdf_inertia import LinkMasses, read_origin
from leastaction.io.urdf_joints import add_joint, add_mimics
from leastaction.io.urdf_links import LinkReader
from leastaction.io.xml import Element
from leastaction.model.checks import WORLD
from leastaction.model.mechanism import Mechanism

ROOT = "root"
"""Name of the joint between the world and the root link."""


def read_urdf(
    root: Element,
    path: Path,
    *,
    floating: bool = False,
    package_dirs: Iterable[str | os.PathLike[str]] = (),
    allow: Iterable[str] = (),
    name: str | None = None,
    inertia: str = "file",
) -> Mechanism:
    """Mechanism of a parsed URDF file.

    Args:
        root: the ``<robot>`` element.
        path: the file, for the folders it may read.
        floating: a free joint "root" carries the root link, instead of a fixed one.
        package_dirs: folders that hold the packages of ``package://`` names.
        allow: what may be dropped: "mimic".
        name: name of the mechanism, the robot's own by default.
        inertia: "file", "repair" or "shapes"; see ``leastaction.io.load``.
    """
    if root.tag != "robot":
        raise root.error("expected <robot> as the outermost element of a URDF file.")
    refuse_xacro(root)
    notes = Notes(str(path), allow)
    links, joints = _collect(root, notes)
    base, order = _tree(root, links, joints)

    # bodies in the order of the tree; a root link called "world" is the world itself
    with located(root):
        m = Mechanism(name or root.attrib.get("name") or path.stem)
    reader = LinkReader(root, Roots(path, package_dirs), notes)
    edges = [(_end(j, "parent"), _end(j, "child"), j.string("type"), read_origin(j)) for j in order]
    shapes = {label: reader.shapes(link) for label, link in links.items() if label != WORLD or base != WORLD}
    masses = LinkMasses(links, {WORLD: [], **shapes}, frozenset(reader.lost), inertia, notes).read(
        edges, base, floating
    )
    if base == WORLD:
        _check_world(links[base], floating, notes)
    else:
        reader.add_link(m, links[base], masses[base])
    for _, child, _, _ in edges:
        reader.add_link(m, links[child], masses[child])

    # joints, the one that carries the root link first
    if base != WORLD:
        _add_root_joint(m, root, base, joints, floating, notes)
    for joint in order:
        add_joint(m, joint, _end(joint, "parent"), _end(joint, "child"), notes)
    add_mimics(m, order, notes)

    m.notes.extend(notes.lines())
    return m


def _collect(root: Element, notes: Notes) -> tuple[dict[str, Element], dict[str, Element]]:
    """Links and joints by name, in the order of the file."""
    links: dict[str, Element] = {}
    joints: dict[str, Element] = {}
    for element in root:
        # a name stands for one link, and for one joint
        if element.tag in ("link", "joint"):
            table = links if element.tag == "link" else joints
            label = element.string("name")
            if label in table:
                raise element.error(f"the name is already used by the {element.tag} on line {table[label].line}.")
            table[label] = element
        elif element.tag != "material":
            ignore_extension(element, notes)
    if not links:
        raise root.error("the robot has no <link>.")
    # a joint may hang on the world without a link that stands for it
    for joint in joints.values():
        if WORLD not in links and _end(joint, "parent") == WORLD:
            links[WORLD] = Element("link", {"name": WORLD}, joint.file, joint.line, root)
            notes.add(f'{joint.where}: the parent link "{WORLD}" does not exist; it is taken as the world.')
    return links, joints


def _tree(root: Element, links: dict[str, Element], joints: dict[str, Element]) -> tuple[str, list[Element]]:
    """Name of the root link, and the joints ordered so that a link's parent comes before it (depth first)."""
    # which joint leads to each link, and which leave it
    leading: dict[str, Element] = {}
    leaving: dict[str, list[Element]] = {}
    for joint in joints.values():
        parent, child = _end(joint, "parent"), _end(joint, "child")
        for side, link in (("parent", parent), ("child", child)):
            if link not in links:
                raise joint.error(f'the {side} link "{link}" does not exist.')
        if parent == child:
            raise joint.error(f'it connects the link "{child}" to itself.')
        if child in leading:
            other = leading[child]
            raise joint.error(
                f'the link "{child}" already has a parent, by {other.short} on line {other.line}; a URDF is a tree.'
            )
        leading[child] = joint
        leaving.setdefault(parent, []).append(joint)

    # exactly one link without a parent
    bases = [link for link in links if link not in leading]
    if not bases:
        raise root.error(f"there is no root link: the joints form a cycle ({_cycle(next(iter(links)), leading)}).")
    if len(bases) > 1:
        where = ", ".join(f'"{link}" (line {links[link].line})' for link in bases[:5])
        raise links[bases[1]].error(
            f"{len(bases)} links have no parent: {where}{', ...' if len(bases) > 5 else ''}; a URDF has one root."
        )

    # depth first in the order of the file; whatever is not reached is a cycle
    order: list[Element] = []
    stack = leaving.get(bases[0], [])[::-1]
    while stack:
        joint = stack.pop()
        order.append(joint)
        stack.extend(leaving.get(_end(joint, "child"), [])[::-1])
    if len(order) < len(joints):
        reached = {id(joint) for joint in order}
        lost = next(joint for joint in joints.values() if id(joint) not in reached)
        raise lost.error(f"the joints form a cycle ({_cycle(_end(lost, 'child'), leading)}).")
    return bases[0], order


def _cycle(start: str, leading: dict[str, Element]) -> str:
    """The links of the cycle that is met by going from a link to its parents."""
    seen: dict[str, int] = {}
    link = start
    while link not in seen:
        seen[link] = len(seen)
        link = _end(leading[link], "parent")
    loop = [*list(seen)[seen[link] :], link][::-1]
    return " -> ".join(loop if len(loop) <= 8 else [*loop[:7], "...", loop[-1]])


def _end(joint: Element, side: str) -> str:
    """Name of a joint's parent or child link."""
    return joint.required(side).string("link")


def _check_world(link: Element, floating: bool, notes: Notes) -> None:
    """A root link called "world" stands for the world, so it cannot float and what it carries cannot move."""
    if floating:
        raise link.error('the root link is called "world", which does not move; load without floating=True.')
    for child in link:
        notes.ignore(child, "part of the link called world, which is the fixed world itself; not kept")


def _add_root_joint(
    m: Mechanism, root: Element, base: str, joints: dict[str, Element], floating: bool, notes: Notes
) -> None:
    """The joint between the world and the root link."""
    label = ROOT
    if label in joints:
        label = f"{WORLD}/{base}"
        notes.add(f"the joint between the world and {base!r} is called {label!r}: the file has its own joint {ROOT!r}.")
    if label in joints:
        raise ModelError(f"{joints[label].where}: the name {label!r} is needed for the joint that carries {base!r}.")
    with located(root):
        m.add_joint(label, "free" if floating else "fixed", parent=WORLD, child=base)
