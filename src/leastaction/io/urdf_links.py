"""URDF links: inertial, visual and collision elements, materials."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io.notes import Notes, located
from leastaction.io.roots import Roots
from leastaction.io.urdf_extensions import ignore_extension, refuse_unknown
from leastaction.io.urdf_inertia import RawMass, read_origin
from leastaction.io.xml import Element
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
    """

    def __init__(self, root: Element, roots: Roots, notes: Notes) -> None:
        self.roots = roots
        self.notes = notes
        self.materials: dict[str, tuple[float, ...] | None] = {}
        for material in root.all("material"):
            self._color(material)

    def add_link(self, m: Mechanism, link: Element, properties: RawMass | None) -> None:
        """Add one link as a body with its mass properties and shapes."""
        shapes = self._shapes(link)
        given = {} if properties is None else dataclasses.asdict(properties)
        with located(link):
            m.add_body(link.string("name"), shapes=shapes, **given)
        refuse_unknown(link, _READ, self.notes)
        for inertial in link.all("inertial"):
            refuse_unknown(inertial, _READ_INERTIAL, self.notes)

    def _shapes(self, link: Element) -> list[Shape]:
        """Shapes of a link in order; a visual and a collision of the same geometry become one shape."""
        shapes: list[Shape] = []
        # where a geometry still lacks its visual or its collision
        single: dict[tuple[str, str], int] = {}
        for element in link:
            if element.tag not in ("visual", "collision"):
                continue
            material = element.optional("material") if element.tag == "visual" else None
            color = None if material is None else self._color(material)
            shape = self._shape(element, color, visual=element.tag == "visual")
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

    def _shape(self, element: Element, color: tuple[float, ...] | None, *, visual: bool) -> Shape | None:
        """One ``<visual>`` or ``<collision>``; None for a missing mesh that may be missing."""
        # what is known inside such an element
        for child in element:
            if child.tag not in ("origin", "geometry", "material"):
                ignore_extension(child, self.notes)
        geometries = element.all("geometry")
        if not geometries:
            raise element.error("<geometry> is missing.")
        for extra in geometries[1:]:
            self.notes.ignore(extra, f"a second geometry of one <{element.tag}>; only the first is kept")
        # one geometry inside
        kinds = geometries[0].children
        if len(kinds) != 1:
            raise geometries[0].error(f"expected one geometry inside, got {len(kinds)}.")
        common = {
            "at": read_origin(element),
            "color": color,
            "visual": visual,
            "collision": not visual,
            "name": element.attrib.get("name") or None,
        }
        return self._geometry(kinds[0], common)

    def _geometry(self, kind: Element, common: dict[str, Any]) -> Shape | None:
        """The shape of one geometry element."""
        with located(kind):
            if kind.tag == "box":
                return Box(np.array(kind.numbers("size", 3)), **common)
            if kind.tag == "sphere":
                return Sphere(kind.number("radius"), **common)
            if kind.tag == "cylinder":
                return Cylinder(kind.number("radius"), kind.number("length"), **common)
            if kind.tag == "capsule":
                return Capsule(kind.number("radius"), kind.number("length"), **common)
        if kind.tag == "mesh":
            return self._mesh(kind, common)
        raise kind.error("unknown geometry; known are box, sphere, cylinder, capsule and mesh.")

    def _mesh(self, kind: Element, common: dict[str, Any]) -> Shape | None:
        """A mesh by its file, which must exist unless allowed."""
        scale = kind.numbers("scale", 3, (1.0, 1.0, 1.0))
        name = kind.string("filename")
        # not there, not to be read, or no mesh: all the same to a link that may do without
        try:
            path = self.roots.resolve(kind, name)
            if path is None:
                hint = "; give package_dirs= if its package lies elsewhere" if name.startswith("package:") else ""
                raise kind.error(f'the mesh file "{name}" does not exist{hint}.')
            with located(kind):
                return Mesh(path, scale=scale, **common)
        except ModelError as error:
            self.notes.unless_allowed("meshes", error)
            return None

    def _color(self, material: Element) -> tuple[float, ...] | None:
        """Colour (r, g, b, a) of a material, its own or that of the same name; the rest is noted."""
        name = material.attrib.get("name", "")
        color = material.optional("color")
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


def _geometry_key(shape: Shape) -> str:
    """A text that two shapes of the same geometry and pose share."""
    data = {key: value for key, value in shape.to_dict().items() if key not in ("color", "name", "visual", "collision")}
    return repr(sorted(data.items()))


def _for_both(first: Shape, second: Shape) -> Shape:
    """One shape for showing and for contact, with the name of the first and the colour of whichever has one."""
    color = first.color if first.color is not None else second.color
    return dataclasses.replace(first, visual=True, collision=True, color=color, name=first.name or second.name)
