"""URDF links: inertial, visual and collision elements, materials."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.notes import Notes, located
from leastaction.io.roots import Roots
from leastaction.io.urdf_extensions import first, ignore_extension, ignore_others
from leastaction.io.urdf_inertia import read_origin
from leastaction.io.xml import Element
from leastaction.model.inertia import MassProperties, massless
from leastaction.model.mechanism import Mechanism
from leastaction.model.shapes import Box, Capsule, Cylinder, Mesh, Shape, Sphere

_READ = frozenset({"inertial", "visual", "collision"})
_READ_INERTIAL = frozenset({"origin", "mass", "inertia"})


class LinkReader:
    """Reads links into a mechanism; knows the robot's materials and where its meshes are.

    Args:
        root: the ``<robot>`` element, for its materials.
        roots: the folders that may be read.
        notes: collects what is not honoured.

    Attributes:
        unread: by link, the collision shapes that were left out, in words.
        lost: links of which any shape was left out.
    """

    def __init__(self, root: Element, roots: Roots, notes: Notes) -> None:
        self.roots = roots
        self.notes = notes
        self.materials: dict[str, tuple[float, ...] | None] = {}
        self.unread: dict[str, list[str]] = {}
        self.lost: set[str] = set()
        self._read: dict[int, list[Shape]] = {}
        for material in root.all("material"):
            self._color(material)

    def add_link(self, m: Mechanism, link: Element, properties: MassProperties | None) -> None:
        """Add one link as a body with its mass properties and shapes."""
        raw = massless() if properties is None else properties
        name = link.string("name")
        with located(link):
            body = m.add_body(name, mass=raw.mass, com=raw.com, inertia=np.zeros((3, 3)), shapes=self.shapes(link))
        # whether a body can have it is judged together with what is fixed to it
        body.inertia, body.unread_shapes = raw.inertia, tuple(self.unread.get(name, ()))
        ignore_others(link, _READ, self.notes)
        for inertial in link.all("inertial"):
            ignore_others(inertial, _READ_INERTIAL, self.notes)

    def shapes(self, link: Element) -> list[Shape]:
        """Shapes of a link in order; a visual and a collision of the same geometry become one shape."""
        if id(link) not in self._read:
            self._read[id(link)] = self._shapes(link)
        return self._read[id(link)]

    def _shapes(self, link: Element) -> list[Shape]:
        """The same, read."""
        shapes: list[Shape] = []
        # where a geometry still lacks its visual or its collision
        single: dict[tuple[str, str], int] = {}
        for element in link:
            if element.tag not in ("visual", "collision"):
                continue
            material = first(element, "material", self.notes) if element.tag == "visual" else None
            color = None if material is None else self._color(material)
            shape = self._shape(link, element, color)
            if shape is None:
                continue
            # the other one of the pair came before, or this is the first
            key = _geometry_key(shape)
            other = "collision" if element.tag == "visual" else "visual"
            if (other, key) in single:
                index = single.pop((other, key))
                shapes[index] = _for_both(shapes[index], shape)
            else:
                single.setdefault((element.tag, key), len(shapes))
                shapes.append(shape)
        return shapes

    def _shape(self, link: Element, element: Element, color: tuple[float, ...] | None) -> Shape | None:
        """One ``<visual>`` or ``<collision>``; None for one that is left out."""
        visual = element.tag == "visual"
        # what is known inside such an element
        for child in element:
            if child.tag not in ("origin", "geometry", "material"):
                ignore_extension(child, self.notes)
        geometry = first(element, "geometry", self.notes)
        common = {
            "at": read_origin(element, self.notes),
            "color": color,
            "visual": visual,
            "collision": not visual,
            "name": element.attrib.get("name") or None,
        }
        if geometry is None or not geometry.children:
            self._leave_out(link, element, (geometry or element).where, "there is no geometry inside")
            return None
        for extra in geometry.children[1:]:
            self.notes.ignore(extra, "a second geometry of one <geometry>; only the first is kept")
        # what has no size, cannot be found or read, or is of another kind
        kind = geometry.children[0]
        try:
            return self._mesh(kind, common) if kind.tag == "mesh" else _solid(kind, common)
        except LeftOutError as error:
            self._leave_out(link, element, kind.where, str(error))
            return None

    def _leave_out(self, link: Element, element: Element, where: str, why: str) -> None:
        """Note a shape that is left out; a collision shape is remembered besides."""
        self.notes.add(f"{where}: {why}; the {element.tag} shape is left out.")
        self.lost.add(link.attrib["name"])
        if element.tag == "collision":
            self.unread.setdefault(link.attrib["name"], []).append(why)

    def _mesh(self, kind: Element, common: dict[str, Any]) -> Shape:
        """A mesh by its file."""
        scale = kind.numbers("scale", 3, (1.0, 1.0, 1.0))
        name = kind.string("filename")
        # not there, not to be read, or no mesh: all the same to a link that may do without
        try:
            path = self.roots.resolve(kind, name)
            if path is None:
                hint = " (package_dirs= names folders of packages)" if name.startswith("package:") else ""
                raise LeftOutError(f'the mesh file "{name}" does not exist{hint}')
            return Mesh(path, scale=scale, **common)
        except LeftOutError:
            raise
        except ModelError as error:
            raise LeftOutError(str(error).removeprefix(f"{kind.where}: ").removesuffix(".")) from error

    def _color(self, material: Element) -> tuple[float, ...] | None:
        """Colour (r, g, b, a) of a material, its own or that of the same name; the rest is noted."""
        name = material.attrib.get("name", "")
        color = first(material, "color", self.notes)
        for child in material:
            if child.tag != "color":
                self.notes.ignore(child, "only the colour of a material is kept")
        # by name
        if color is None:
            if name not in self.materials:
                self.notes.ignore(material, "the material has no colour here and none of its name came before")
            return self.materials.get(name)
        # its own, remembered for the links that follow
        rgba = color.numbers("rgba", 4)
        if not all(0 <= part <= 1 for part in rgba):
            self.notes.ignore(color, "a colour outside 0 .. 1 is not kept")
            return None
        if name:
            self.materials[name] = rgba
        return rgba


class LeftOutError(Exception):
    """Why a shape is left out: what nothing can be seen of, and nothing touches."""


_ROUND = (("radius", 1), ("length", 1))
_SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "box": (("size", 3),),
    "sphere": (("radius", 1),),
    "cylinder": _ROUND,
    "capsule": _ROUND,
}
"""Geometries other than meshes: their attributes, and how many numbers each has."""


def _solid(kind: Element, common: dict[str, Any]) -> Shape:
    """The shape of a geometry element other than a mesh."""
    if kind.tag not in _SIZES:
        raise LeftOutError(f"<{kind.tag}> is an unknown geometry; known are {', '.join(_SIZES)} and mesh")
    sizes = [kind.numbers(name, count) for name, count in _SIZES[kind.tag]]
    # a capsule without length is a ball
    needed = sizes[:1] if kind.tag == "capsule" else sizes
    if any(size == 0 for each in needed for size in each):
        raise LeftOutError(f"a {kind.tag} of size 0")
    with located(kind):
        if kind.tag == "box":
            return Box(np.array(sizes[0]), **common)
        if kind.tag == "sphere" or (kind.tag == "capsule" and sizes[1][0] == 0):
            return Sphere(sizes[0][0], **common)
        shape = Cylinder if kind.tag == "cylinder" else Capsule
        return shape(sizes[0][0], sizes[1][0], **common)


def _geometry_key(shape: Shape) -> str:
    """A text that two shapes of the same geometry and pose share."""
    data = {key: value for key, value in shape.to_dict().items() if key not in ("color", "name", "visual", "collision")}
    return repr(sorted(data.items()))


def _for_both(first: Shape, second: Shape) -> Shape:
    """One shape for showing and for contact, with the name of the first and the colour of whichever has one."""
    color = first.color if first.color is not None else second.color
    return dataclasses.replace(first, visual=True, collision=True, color=color, name=first.name or second.name)
