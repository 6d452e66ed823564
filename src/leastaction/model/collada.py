"""COLLADA (.dae) meshes: the triangles of a file's scene in metres, read with expat alone.

No document type, no entities, no other files; depth, instances and triangles are bounded, as one node may stand for
many. The unit of the file is honoured. ``up_axis`` is not: coordinates stay as they are written, as RViz shows them, so
that a robot looks here as its makers saw it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray

IntArray = NDArray[np.int64]

MAX_DEPTH, MAX_ELEMENTS, MAX_VISITS, MAX_FACES = 100, 2_000_000, 100_000, 20_000_000
"""Deepest nesting, most elements of a file, most nodes and geometries that its scene may show, most triangles."""

# elements whose text is kept
_TEXT = frozenset({"float_array", "p", "vcount", "matrix", "translate", "rotate", "scale"})
_CHUNK = 1 << 16


@dataclass(eq=False)
class _Element:
    """One element: its name without prefix, attributes, children, the line it stands on, and its text if kept."""

    tag: str
    attrib: dict[str, str]
    line: int
    children: list[_Element] = field(default_factory=list)
    text: list[str] = field(default_factory=list)

    def all(self, *tags: str) -> list[_Element]:
        """Children with one of these names."""
        return [child for child in self.children if child.tag in tags]

    def first(self, tag: str) -> _Element | None:
        """The first child with this name, or None."""
        return next(iter(self.all(tag)), None)

    def error(self, reason: str) -> ModelError:
        """An error that names line and element; the caller puts the file before it."""
        return ModelError(f"line {self.line}: <{self.tag}>: {reason}.")

    def needed(self, tag: str) -> _Element:
        """The first child with this name."""
        found = self.first(tag)
        if found is None:
            raise self.error(f"<{tag}> is missing")
        return found

    def numbers(self, count: int | None = None) -> FloatArray:
        """The text as finite numbers, ``count`` of them where given."""
        try:
            out = np.array("".join(self.text).split(), dtype=float)
        except ValueError as error:
            raise self.error("the text must be numbers") from error
        if not np.isfinite(out).all():
            raise self.error("the numbers must be finite")
        if count is not None and len(out) != count:
            raise self.error(f"expected {count} numbers, got {len(out)}")
        return out

    def indices(self) -> IntArray:
        """The text as whole numbers from 0 on."""
        values = self.numbers()
        if (values < 0).any() or (values > 2**53).any() or (values != np.floor(values)).any():
            raise self.error("the text must be whole numbers from 0 on")
        return values.astype(np.int64)

    def whole(self, name: str, default: int) -> int:
        """A small whole number of an attribute."""
        text = self.attrib.get(name, str(default)).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise self.error(f'{name}="{text[:40]}" must be a whole number')
        return int(text)

    def link(self, name: str = "url") -> str:
        """Name of the element of this file that an attribute points to."""
        text = self.attrib.get(name, "")
        if not text.startswith("#"):
            raise self.error(f'{name}="{text[:60]}" does not point into this file; other files are not read')
        return text[1:]


def read_collada(data: bytes) -> tuple[FloatArray, IntArray]:
    """Vertices (n, 3) in metres and triangles (m, 3) of all that the scene of a document shows.

    A ModelError names the line and the element, not the file.
    """
    root = _parse(data)
    if root.tag != "COLLADA":
        raise root.error("the outermost element must be <COLLADA>")
    scene = _Scene(root)
    scene.show()
    if not scene.faces:
        raise root.error("the scene has no triangles or polygons")
    points, faces = np.concatenate(scene.points), np.concatenate(scene.faces)
    # vertices without a triangle are left out, equal ones are one
    used = np.zeros(len(points), dtype=bool)
    used[faces] = True
    kept, place = np.unique(points[used], axis=0, return_inverse=True)
    return kept * _metres(root), place.reshape(-1)[(np.cumsum(used) - 1)[faces]].astype(np.int64)


def _metres(root: _Element) -> float:
    """Length of the file's unit."""
    asset = root.first("asset")
    unit = asset.first("unit") if asset is not None else None
    if unit is None:
        return 1.0
    text = unit.attrib.get("meter", "1.0")
    try:
        metres = float(text)
    except ValueError:
        metres = math.nan
    if not 0.0 < metres < math.inf:
        raise unit.error(f'meter="{text[:40]}" must be a positive number')
    return metres


# --- the scene -----------------------------------------------------------------------------------------------------
class _Scene:
    """Walks the nodes of the scene and collects transformed triangles."""

    def __init__(self, root: _Element) -> None:
        self.root = root
        self.points: list[FloatArray] = []
        self.faces: list[IntArray] = []
        self.meshes: dict[str, tuple[FloatArray, IntArray]] = {}
        self.vertices = self.triangles = self.visits = 0
        # elements that others point to
        self.named: dict[str, dict[str, _Element]] = {"visual_scene": {}, "node": {}, "geometry": {}}
        stack = [root]
        while stack:
            element = stack.pop()
            if element.tag in self.named and "id" in element.attrib:
                self.named[element.tag].setdefault(element.attrib["id"], element)
            stack.extend(element.children)

    def show(self) -> None:
        """The scene that the file names; without one all its scenes, or all geometries as they are."""
        named = [link for scene in self.root.all("scene") for link in scene.all("instance_visual_scene")]
        scenes = [self._find(link, "visual_scene") for link in named] or list(self.named["visual_scene"].values())
        for scene in scenes:
            for node in scene.all("node"):
                self._node(node, np.eye(4), 0)
        for geometry in () if scenes else self.named["geometry"].values():
            self._geometry(geometry, np.eye(4))

    def _find(self, link: _Element, kind: str) -> _Element:
        """The element that a link points to."""
        name = link.link()
        if name not in self.named[kind]:
            raise link.error(f"there is no {kind} '{name[:60]}' in the file")
        return self.named[kind][name]

    def _node(self, node: _Element, around: FloatArray, depth: int) -> None:
        """A node, what it shows, and the nodes inside it, placed by the matrix of the node around it."""
        self.visits += 1
        if depth > MAX_DEPTH or self.visits > MAX_VISITS:
            raise node.error("the scene shows too many nodes, or a node inside itself")
        matrix = around
        for child in node.children:
            if child.tag in _TRANSFORMS:
                matrix = matrix @ _TRANSFORMS[child.tag](child)
            elif child.tag in ("lookat", "skew", "instance_controller"):
                raise child.error("is not read; apply it in the program that wrote the file")
        if not np.isfinite(matrix).all():
            raise node.error("the transformation is not finite")
        for child in node.children:
            if child.tag == "node":
                self._node(child, matrix, depth + 1)
            elif child.tag == "instance_node":
                self._node(self._find(child, "node"), matrix, depth + 1)
            elif child.tag == "instance_geometry":
                self._geometry(self._find(child, "geometry"), matrix)

    def _geometry(self, geometry: _Element, matrix: FloatArray) -> None:
        """The triangles of a geometry, placed; a reflection turns them over."""
        key = geometry.attrib.get("id", str(id(geometry)))
        if key not in self.meshes:
            self.meshes[key] = _mesh(geometry)
        points, faces = self.meshes[key]
        self.triangles += len(faces)
        self.visits += 1
        if self.triangles > MAX_FACES or self.visits > MAX_VISITS:
            raise geometry.error(f"the scene shows too much (at most {MAX_FACES} triangles are read)")
        if len(faces) == 0:
            return
        turned = faces[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else faces
        self.points.append(points @ matrix[:3, :3].T + matrix[:3, 3])
        self.faces.append(turned + self.vertices)
        self.vertices += len(points)


def _matrix(element: _Element) -> FloatArray:
    """Sixteen numbers, row by row."""
    return element.numbers(16).reshape(4, 4)


def _translate(element: _Element) -> FloatArray:
    """A shift."""
    out = np.eye(4)
    out[:3, 3] = element.numbers(3)
    return out


def _scale(element: _Element) -> FloatArray:
    """A factor along each axis."""
    return np.diag([*element.numbers(3), 1.0])


def _rotate(element: _Element) -> FloatArray:
    """A rotation about an axis by degrees (Rodrigues)."""
    *axis, angle = element.numbers(4)
    length, out = float(np.linalg.norm(axis)), np.eye(4)
    if length == 0.0:
        raise element.error("the axis has no length")
    x, y, z = np.array(axis) / length
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    out[:3, :3] += math.sin(math.radians(angle)) * K + (1.0 - math.cos(math.radians(angle))) * (K @ K)
    return out


_TRANSFORMS: dict[str, Callable[[_Element], FloatArray]] = {
    "matrix": _matrix, "translate": _translate, "scale": _scale, "rotate": _rotate,
}  # fmt: skip


# --- geometries ----------------------------------------------------------------------------------------------------
def _mesh(geometry: _Element) -> tuple[FloatArray, IntArray]:
    """Vertices (n, 3) in the file's unit and triangles (m, 3) of a geometry."""
    mesh = geometry.first("mesh")
    if mesh is None:
        raise geometry.error("only geometries with a <mesh> are read")
    # positions
    vertices = mesh.needed("vertices")
    position = next((part for part in vertices.all("input") if part.attrib.get("semantic") == "POSITION"), None)
    if position is None:
        raise vertices.error("there is no input of positions")
    sources = {source.attrib.get("id"): source for source in mesh.all("source")}
    source = sources.get(position.link("source"))
    if source is None:
        raise position.error("the source of the positions is not in the mesh")
    points = _positions(source)
    # surfaces
    faces = [np.zeros((0, 3), dtype=np.int64)]
    for part in mesh.all(*_SURFACES):
        found = _SURFACES[part.tag](part)
        if found.size and found.max() >= len(points):
            raise part.error(f"a polygon names vertex {found.max()}, but there are {len(points)} vertices")
        faces.append(found)
    return points, np.concatenate(faces)


def _positions(source: _Element) -> FloatArray:
    """The first three numbers (n, 3) of each entry of a source."""
    values, common = source.needed("float_array").numbers(), source.first("technique_common")
    accessor = common.first("accessor") if common is not None else None
    stride, offset = 3, 0
    if accessor is not None:
        stride, offset = accessor.whole("stride", 1), accessor.whole("offset", 0)
    if stride < 3:
        raise source.error(f"positions need three numbers each, the stride is {stride}")
    count = max(len(values) - offset, 0) // stride
    return values[offset : offset + count * stride].reshape(count, stride)[:, :3]


def _corners(part: _Element) -> Callable[[_Element], IntArray]:
    """How to read the indices of vertices from a <p> of this primitive: every so many numbers, from an offset on."""
    inputs = part.all("input")
    own = next((i for i in inputs if i.attrib.get("semantic") == "VERTEX"), None)
    if own is None:
        raise part.error("there is no input of vertices")
    offset, stride = own.whole("offset", 0), 1 + max(i.whole("offset", 0) for i in inputs)

    def read(p: _Element) -> IntArray:
        values = p.indices()
        if len(values) % stride:
            raise p.error(f"the number of indices must be a multiple of {stride}, got {len(values)}")
        return np.asarray(values.reshape(-1, stride)[:, offset])

    return read


def _fans(corners: IntArray, sizes: IntArray, part: _Element) -> IntArray:
    """Triangles (m, 3) of polygons with so many corners each, as fans around their first corners."""
    if sizes.sum() != len(corners):
        raise part.error(f"the polygons have {sizes.sum()} corners, but there are indices for {len(corners)}")
    count = np.maximum(sizes - 2, 0)
    first = np.repeat(np.cumsum(sizes) - sizes, count)
    inside = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return np.stack([corners[first], corners[first + inside + 1], corners[first + inside + 2]], axis=1)


def _triangles(part: _Element) -> IntArray:
    read = _corners(part)
    corners = np.concatenate([np.zeros(0, dtype=np.int64), *(read(p) for p in part.all("p"))])
    if len(corners) % 3:
        raise part.error(f"triangles need three corners each, got {len(corners)}")
    return corners.reshape(-1, 3)


def _polylist(part: _Element) -> IntArray:
    p = part.first("p")
    if p is None:
        return np.zeros((0, 3), dtype=np.int64)
    return _fans(_corners(part)(p), part.needed("vcount").indices(), part)


def _each(part: _Element) -> IntArray:
    """One polygon, or one fan, in every <p>."""
    for holed in part.all("ph"):
        raise holed.error("polygons with holes are not read; let the program that wrote the file make triangles")
    read = _corners(part)
    each = [read(p) for p in part.all("p")]
    corners = np.concatenate([np.zeros(0, dtype=np.int64), *each])
    return _fans(corners, np.array([len(corner) for corner in each], dtype=np.int64), part)


def _strips(part: _Element) -> IntArray:
    """Strips, in which every second triangle is turned over."""
    read, out = _corners(part), [np.zeros((0, 3), dtype=np.int64)]
    for p in part.all("p"):
        c = read(p)
        faces = np.stack([c[:-2], c[1:-1], c[2:]], axis=1)
        faces[1::2] = faces[1::2, ::-1]
        out.append(faces)
    return np.concatenate(out)


_SURFACES: dict[str, Callable[[_Element], IntArray]] = {
    "triangles": _triangles, "polylist": _polylist, "polygons": _each, "trifans": _each, "tristrips": _strips,
}  # fmt: skip


# --- XML -----------------------------------------------------------------------------------------------------------
def _parse(data: bytes) -> _Element:
    """Root element of a document without a document type."""
    builder = _Builder()
    try:
        # piece by piece, so that what is refused stops the parse before the rest is looked at
        for start in range(0, len(data), _CHUNK):
            builder.parser.Parse(data[start : start + _CHUNK], False)
        builder.parser.Parse(b"", True)
    except expat.ExpatError as error:
        reason = expat.errors.messages.get(error.code, str(error))
        raise ModelError(f"line {error.lineno}: not well-formed XML: {reason}.") from error
    except (LookupError, ValueError, TypeError) as error:
        # an encoding that Python does not know
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"line {builder.parser.CurrentLineNumber}: cannot decode the file: {error}.") from error
    assert builder.root is not None
    return builder.root


class _Builder:
    """Expat callbacks that build the elements and refuse the rest."""

    def __init__(self) -> None:
        self.root: _Element | None = None
        self.stack: list[_Element] = []
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.ExternalEntityRefHandler = self._refuse

    def _start(self, tag: str, attrib: dict[str, str]) -> None:
        element = _Element(tag.rpartition(":")[2], attrib, self.parser.CurrentLineNumber)
        self.count += 1
        if len(self.stack) >= MAX_DEPTH or self.count > MAX_ELEMENTS:
            raise element.error(f"more than {MAX_DEPTH} elements inside each other, or {MAX_ELEMENTS} in all")
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def _end(self, tag: str) -> None:
        self.stack.pop()

    def _data(self, text: str) -> None:
        if self.stack[-1].tag in _TEXT:
            self.stack[-1].text.append(text)

    def _refuse(self, *rest: object) -> NoReturn:
        line = self.parser.CurrentLineNumber
        raise ModelError(f"line {line}: a document type declaration is not allowed in a mesh.")
