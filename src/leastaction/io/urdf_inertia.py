"""Mass properties of URDF links.

Files often split a body into links that are fixed to each other and give one of them an inertia that no body has.
Only the sum moves, so only the sum is checked: where a link fails and the rigid group it belongs to does not, the
group's mass properties are put on its heaviest link.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.notes import Notes, located
from leastaction.io.xml import Element
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.inertia import check_inertia
from leastaction.model.pose import inverse_pose, pose

_ZERO = (0.0, 0.0, 0.0)

_NOTHING = 1e-15
"""An impossible inertia with no entry above this, in kg m^2, is the residue of rounding."""


@dataclass(frozen=True)
class RawMass:
    """Mass (kg), centre of mass (3,) and inertia (3, 3) about it, link axes; as in the file, not yet checked."""

    mass: float
    com: FloatArray
    inertia: FloatArray


@dataclass(frozen=True)
class Rigid:
    """A group of links that are fixed to each other: their poses (4, 4) in the first one, and whether it can move."""

    poses: dict[str, FloatArray]
    moves: bool


def read_origin(element: Element) -> FloatArray:
    """Pose (4, 4) of an element's ``<origin xyz rpy>``; identity where there is none."""
    origin = element.optional("origin")
    if origin is None:
        return np.eye(4)
    if "quat_xyzw" in origin.attrib:
        raise origin.error("quat_xyzw is not part of URDF 1.0; give rpy.")
    return pose(xyz=origin.numbers("xyz", 3, _ZERO), rpy=origin.numbers("rpy", 3, _ZERO))


def read_inertial(link: Element) -> RawMass | None:
    """Mass properties of a link as the file gives them; None without ``<inertial>``."""
    inertial = link.optional("inertial")
    if inertial is None:
        return None
    value = inertial.required("mass")
    mass = value.number("value")
    if mass < 0:
        raise value.error(f"the mass is negative: {mass}.")
    # inertia in the axes of its own origin
    given = inertial.required("inertia")
    xx, xy, xz, yy, yz, zz = (given.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    # into link axes; left alone to the last bit where the axes are the same
    frame = read_origin(inertial)
    R = frame[:3, :3]
    if not np.array_equal(R, np.eye(3)):
        I = R @ I @ R.T
        I = 0.5 * (I + I.T)
    return RawMass(mass, frame[:3, 3], I)


def link_masses(
    links: dict[str, Element], order: list[tuple[str, str, str, FloatArray]], base: str, floating: bool, notes: Notes
) -> dict[str, RawMass | None]:
    """Mass properties of every link, each one possible by itself.

    Args:
        links: ``<link>`` elements by name.
        order: (parent, child, joint type, origin (4, 4)) of every joint, parents first.
        base: name of the root link.
        floating: whether the root link moves.
        notes: collects what was changed.
    """
    masses = {name: read_inertial(link) for name, link in links.items()}
    for group in _rigid_groups(order, base, floating):
        failed = [name for name in group.poses if _failure(name, masses[name]) is not None]
        if failed:
            _mend(group, failed, masses, links, notes)
    return masses


def _rigid_groups(order: list[tuple[str, str, str, FloatArray]], base: str, floating: bool) -> list[Rigid]:
    """Groups of links connected by fixed joints."""
    groups = {base: Rigid({base: np.eye(4)}, floating and base != WORLD)}
    for parent, child, kind, origin in order:
        if kind == "fixed":
            group = groups[parent]
            group.poses[child] = group.poses[parent] @ origin
            groups[child] = group
        else:
            groups[child] = Rigid({child: np.eye(4)}, True)
    return list({id(group): group for group in groups.values()}.values())


def _mend(
    group: Rigid, failed: list[str], masses: dict[str, RawMass | None], links: dict[str, Element], notes: Notes
) -> None:
    """Make every link of a group possible without changing what moves, or raise."""
    first = links[failed[0]].optional("inertial") or links[failed[0]]
    error = first.error(_failure(failed[0], masses[failed[0]]) or "")

    # the whole group on its heaviest link, if that is a possible body
    present = {name: raw for name in group.poses if (raw := masses[name]) is not None}
    heaviest = max(present, key=lambda name: present[name].mass)
    total = _combined(present, group.poses, heaviest)
    if len(present) > 1 and _failure(heaviest, total) is None:
        for name in present:
            masses[name] = None
        masses[heaviest] = total
        notes.add(
            f"{error} It is fixed to others and together they are a possible body: the mass of "
            f"{', '.join(present)} is put on {heaviest}."
        )
        return

    for name in failed:
        raw = masses[name]
        assert raw is not None
        inertial = links[name].optional("inertial") or links[name]
        # what a program wrote for zero
        if np.abs(raw.inertia).max() < _NOTHING:
            masses[name] = RawMass(raw.mass, raw.com, np.zeros((3, 3)))
            notes.add(f"{inertial.where}: {_failure(name, raw)} So small that it is taken as zero.")
            continue
        # what is fixed to the world never moves: its mass is kept, its inertia has no effect
        if not group.moves:
            masses[name] = RawMass(raw.mass, raw.com, np.zeros((3, 3)))
            notes.add(f"{inertial.where}: {_failure(name, raw)} The link does not move; its inertia is not kept.")
            continue
        # the nearest possible inertia, if that is wanted
        notes.unless_allowed("inertia", inertial.error(_failure(name, raw) or ""))
        with located(inertial):
            masses[name] = RawMass(raw.mass, raw.com, nearest_inertia(raw.inertia))


def _failure(name: str, raw: RawMass | None) -> str | None:
    """Why a link cannot have these mass properties, None if it can."""
    if raw is None:
        return None
    try:
        check_inertia(raw.mass, raw.inertia, f"link '{name}'")
    except ModelError as error:
        return str(error)
    return None


def _combined(masses: dict[str, RawMass], poses: dict[str, FloatArray], frame: str) -> RawMass:
    """The sum of mass properties, in the axes of the link ``frame``."""
    total = sum(raw.mass for raw in masses.values())
    # everything in the frame of that link
    back = inverse_pose(poses[frame])
    seen = {name: back @ poses[name] for name in masses}
    coms = {name: seen[name][:3, :3] @ raw.com + seen[name][:3, 3] for name, raw in masses.items()}
    com = sum((raw.mass * coms[name] for name, raw in masses.items()), np.zeros(3))
    com = com / total if total > 0 else coms[frame]
    # parallel axes
    I = np.zeros((3, 3))
    for name, raw in masses.items():
        R, r = seen[name][:3, :3], coms[name] - com
        I = I + R @ raw.inertia @ R.T + raw.mass * (float(r @ r) * np.eye(3) - np.outer(r, r))
    return RawMass(total, com, 0.5 * I + 0.5 * I.T)


def nearest_inertia(I: FloatArray) -> FloatArray:
    """The nearest inertia (3, 3) that a body can have, in the sense of the sum of squares, with the same axes."""
    (a, b, c), axes = np.linalg.eigh(0.5 * (I + I.T))
    # a <= b <= c: the largest gives and the others take until the triangle closes
    d = max(0.0, (c - a - b) / 3.0)
    a, b, c = a + d, b + d, c - d
    # that would leave the smallest below zero: a thin rod instead
    if a < 0:
        mean = max(0.0, (b + c) / 2.0)
        a, b, c = 0.0, mean, mean
    out: FloatArray = axes @ np.diag([a, b, c]) @ axes.T
    return 0.5 * (out + out.T)
