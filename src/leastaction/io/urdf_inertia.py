"""Mass properties of URDF links, as the file has them, repaired, or from the shapes.

Files often split a body into links that are fixed to each other and give one of them an inertia that no body has.
Only the sum moves, so only the sum is judged: a link may keep what no body has by itself. Where the sum is impossible
by rounding, or it is asked to repair it, the change that makes it possible goes to the heaviest link of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.notes import Notes, located
from leastaction.io.urdf_extensions import first
from leastaction.io.xml import Element
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.inertia import MassProperties, combine, massless, nearest_inertia, why_impossible
from leastaction.model.pose import pose
from leastaction.model.shapes import Capsule, Shape, Sphere

DENSITY = 1000.0
"""Density of shapes whose links have no mass, kg/m^3."""

ROUNDING = 1e-3
"""An inertia that misses the triangle by less than this part of its largest moment is one that was written short.

Plates, whose moments lie on the edge, miss it by up to 8.3e-4 when they are written with four digits (measured on
20 000 random ones).
"""

_ZERO = (0.0, 0.0, 0.0)

_NOTHING = 1e-15
"""An impossible inertia with no entry above this, in kg m^2, is the residue of rounding."""

_THIN, _SMALLEST = 0.1, 0.02
"""Radius of what stands in for a link without shapes: a part of its length, and at least so many metres."""


@dataclass
class Rigid:
    """A group of links that are fixed to each other, the first one leading.

    Attributes:
        poses: of the links in the first one, (4, 4).
        moves: whether it can move.
        carried: where its joints carry other groups, (3,) in the first link, and those groups.
    """

    poses: dict[str, FloatArray]
    moves: bool
    carried: list[tuple[FloatArray, Rigid]] = field(default_factory=list)

    @property
    def leader(self) -> str:
        """Name of the first link."""
        return next(iter(self.poses))


def read_origin(element: Element, notes: Notes | None = None) -> FloatArray:
    """Pose (4, 4) of an element's ``<origin xyz rpy>``; identity where there is none; with notes, the first of many."""
    origin = element.optional("origin") if notes is None else first(element, "origin", notes)
    if origin is None:
        return np.eye(4)
    if "quat_xyzw" in origin.attrib:
        raise origin.error("quat_xyzw is not part of URDF 1.0; give rpy.")
    with located(origin):
        return pose(xyz=origin.numbers("xyz", 3, _ZERO), rpy=origin.numbers("rpy", 3, _ZERO))


def read_inertial(link: Element, how: str, notes: Notes) -> MassProperties | None:
    """Mass properties of a link as the file gives them; None without ``<inertial>``."""
    inertial = link.optional("inertial")
    if inertial is None:
        return None
    for tag in ("mass", "inertia"):
        if inertial.optional(tag) is None and how != "shapes":
            raise inertial.error(f'<{tag}> is missing; la.load(..., inertia="shapes") computes it from the shapes.')
    value, given = inertial.optional("mass"), inertial.optional("inertia")
    if value is None:
        notes.ignore(inertial, "it has no <mass>, so that none of it is taken")
        return None
    mass = value.number("value")
    if mass < 0:
        raise value.error(f"the mass is negative: {mass}.")
    frame = read_origin(inertial)
    I = np.zeros((3, 3))
    if given is not None:
        xx, xy, xz, yy, yz, zz = (given.number(key) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    with located(inertial):
        made = MassProperties(mass, np.zeros(3), I)
        # into link axes; left alone to the last bit where the axes are the same
        if np.array_equal(frame[:3, :3], np.eye(3)):
            return MassProperties(mass, frame[:3, 3], made.inertia)
        return made.transformed(frame)


@dataclass
class LinkMasses:
    """Decides on the mass properties of every link.

    Attributes:
        links: ``<link>`` elements by name.
        shapes: what was read of their shapes, by name.
        missing: links with shapes that could not be read.
        how: "file", "repair" or "shapes".
        notes: collects what was changed, and what dynamics will refuse.
    """

    links: Mapping[str, Element]
    shapes: Mapping[str, Sequence[Shape]]
    missing: frozenset[str]
    how: str
    notes: Notes

    def read(
        self, order: list[tuple[str, str, str, FloatArray]], base: str, floating: bool
    ) -> dict[str, MassProperties | None]:
        """Mass properties by link.

        Args:
            order: (parent, child, joint type, origin (4, 4)) of every joint, parents first.
            base: name of the root link.
            floating: whether the root link moves.
        """
        masses = {name: read_inertial(link, self.how, self.notes) for name, link in self.links.items()}
        filled: dict[str, list[str]] = {}
        # from the ends to the root: whether anything behind a joint has mass is known when it is reached
        behind: dict[int, float] = {}
        for group in _rigid_groups(order, base, floating)[::-1]:
            if group.moves:
                heavy = any(behind[id(other)] > 0 for _, other in group.carried)
                if self.how == "shapes" and _lacks(_total(group, masses)[1]):
                    self._fill(group, masses, filled, heavy)
                self._mend(group, masses)
            moved = sum(behind[id(other)] for _, other in group.carried)
            behind[id(group)] = moved + _total(group, masses)[1].mass
        for words, names in filled.items():
            self.notes.add(f'inertia="shapes": {words}: {", ".join(names[::-1])} (with what is fixed to them).')
        return masses

    def _fill(
        self, group: Rigid, masses: dict[str, MassProperties | None], filled: dict[str, list[str]], heavy: bool
    ) -> None:
        """What a group lacks from its shapes, or from a rod where it has some that cannot be read or no mass anywhere.

        Mass and centre of mass of the file stay, so that only the inertia is that of the shapes; without any mass all
        of it is. ``heavy``: whether something behind the group has mass.
        """
        heaviest, total = _total(group, masses)
        solids = {name: self._solid(name) for name in group.poses}
        unread = any(name in self.missing for name in group.poses)
        if any(solids.values()):
            words = "by the shapes"
        elif (total.mass == 0 and (unread or not heavy)) or (unread and not total.inertia.any()):
            solids = {group.leader: _rod([at for at, _ in group.carried]).mass_properties(density=DENSITY)}
            words = "no shape that can be read, by a rod to the farthest joint that it carries"
        else:
            return
        made = {name: solid for name, solid in solids.items() if solid is not None}
        if total.mass == 0:
            masses.update({name: made.get(name) for name in group.poses})
            words += f" at {DENSITY:g} kg/m^3"
        else:
            whole = combine(solid.transformed(group.poses[name]) for name, solid in made.items())
            _add_inertia(group, masses, heaviest, whole.scaled_to(total.mass).inertia - total.inertia)
            words += ", with mass and centre of mass of the file"
        filled.setdefault(words, []).append(group.leader)

    def _solid(self, name: str) -> MassProperties | None:
        """A link as a uniform body of its collision shapes, else of the visual ones; None without any."""
        shapes = self.shapes[name]
        solid = [shape for shape in shapes if shape.collision] or shapes
        try:
            return combine(shape.mass_properties(density=DENSITY) for shape in solid) if solid else None
        except ModelError as error:
            raise self.links[name].error(f'inertia="shapes": {error}') from error

    def _mend(self, group: Rigid, masses: dict[str, MassProperties | None]) -> None:
        """Make a group possible where it is so by rounding, or if asked; else say what dynamics will say."""
        heaviest, total = _total(group, masses)
        why = _failure(total)
        if not why:
            return
        # what a program wrote for zero
        for name in [name for name, raw in masses.items() if name in group.poses and raw and _failure(raw)]:
            raw = masses[name]
            assert raw is not None
            if np.abs(raw.inertia).max() < _NOTHING:
                masses[name] = MassProperties(raw.mass, raw.com, np.zeros((3, 3)))
                self.notes.add(f"{self._where(name)}: {_failure(raw)}. So small that it is taken as zero.")
        heaviest, total = _total(group, masses)
        why = _failure(total)
        if not why:
            return
        where = self._where(next((name for name in group.poses if _failure(masses[name])), heaviest))
        asked = self.how in ("repair", "shapes")
        if not asked and (total.mass == 0 or _miss(total.inertia) > ROUNDING):
            self.notes.add(
                f"{where}: {why}. Kinematics does not need it; dynamics refuses it. "
                'la.load(..., inertia="repair") takes the nearest possible one.'
            )
            return
        # all the change is put on one link; inertia without any mass is dropped
        if total.mass == 0:
            for name in group.poses:
                masses[name] = None
            self.notes.add(f"{where}: {why}. The inertia is left out.")
            return
        change = nearest_inertia(total.inertia) - total.inertia
        _add_inertia(group, masses, heaviest, change)
        size = float(np.abs(change).max() / np.abs(total.inertia).max())
        self.notes.add(
            f"{where}: {why}. The nearest possible one is taken; an entry changes by {size:.2g} of the largest."
        )

    def _where(self, name: str) -> str:
        """File, line and element of a link's inertia."""
        link = self.links[name]
        return (link.optional("inertial") or link).where


def _rigid_groups(order: list[tuple[str, str, str, FloatArray]], base: str, floating: bool) -> list[Rigid]:
    """Groups of links connected by fixed joints, parents first."""
    groups = {base: Rigid({base: np.eye(4)}, floating and base != WORLD)}
    for parent, child, kind, origin in order:
        group = groups[parent]
        at = group.poses[parent] @ origin
        if kind == "fixed":
            group.poses[child] = at
            groups[child] = group
        else:
            groups[child] = Rigid({child: np.eye(4)}, True)
            group.carried.append((at[:3, 3], groups[child]))
    return list({id(group): group for group in groups.values()}.values())


def _total(group: Rigid, masses: Mapping[str, MassProperties | None]) -> tuple[str, MassProperties]:
    """The heaviest link of a group, and the sum in the axes of the first link."""
    present = {name: raw for name in group.poses if (raw := masses[name]) is not None}
    if not present:
        return group.leader, massless()
    heaviest = max(present, key=lambda name: present[name].mass)
    return heaviest, combine(raw.transformed(group.poses[name]) for name, raw in present.items())


def _add_inertia(group: Rigid, masses: dict[str, MassProperties | None], name: str, change: FloatArray) -> None:
    """Change the inertia of one link of a group; change (3, 3) in axes of the first link."""
    R, raw = group.poses[name][:3, :3], masses[name]
    assert raw is not None
    added = R.T @ change @ R
    masses[name] = MassProperties(raw.mass, raw.com, raw.inertia + 0.5 * (added + added.T))


def _lacks(total: MassProperties) -> bool:
    """Whether a group has no mass, no extent, or an inertia that nothing has."""
    return total.mass == 0 or not total.inertia.any() or bool(why_impossible(total.inertia))


def _failure(mass: MassProperties | None) -> str:
    """Why nothing has these mass properties, in words; "" if something can."""
    if mass is None:
        return ""
    if mass.mass == 0 and mass.inertia.any():
        return "it has inertia and no mass"
    return why_impossible(mass.inertia)


def _miss(I: FloatArray) -> float:
    """By how much of the largest moment an inertia misses what a body can have."""
    a, b, c = (float(x) for x in np.linalg.eigvalsh(I))
    return max(c - a - b, -2.0 * a) / max(abs(a), abs(c))


def _rod(ends: Sequence[FloatArray]) -> Shape:
    """What stands in for a link without shapes: a rod from its origin to the farthest of these points, else a ball."""
    end = max(ends, key=lambda at: float(at @ at), default=np.zeros(3))
    length = float(np.linalg.norm(end))
    radius = max(_THIN * length, _SMALLEST)
    if length <= radius:
        return Sphere(radius)
    # z along the rod
    z = end / length
    x = np.cross(np.eye(3)[int(np.abs(z).argmin())], z)
    x /= np.linalg.norm(x)
    return Capsule(radius, length, at=pose(0.5 * end, matrix=np.column_stack([x, np.cross(z, x), z])))
