"""Shapes of bodies: geometry for contact and pictures, and a source of mass properties.

Every shape has its own frame: its centre is the origin and its axis, where it has one, is z. ``at`` is the pose of
that frame in the link frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import (
    FloatArray,
    check_array,
    check_flag,
    check_name,
    check_number,
    check_vector,
    frozen,
)
from leastaction.model.inertia import MassProperties
from leastaction.model.mesh_geometry import (
    IntArray,
    check_mesh,
    check_mesh_file,
    frozen_indices,
    read_mesh_file,
    solid_moments,
)
from leastaction.model.pose import check_pose
from leastaction.model.reader import Reader, plain


@dataclass(frozen=True, eq=False)
class Shape(ABC):
    """What all shapes share.

    Attributes:
        at: pose (4, 4) of the shape's frame in the link frame; None is the identity.
        color: red, green, blue and, if wanted, opacity, each 0 to 1; None leaves it to the viewer.
        visual: drawn by viewers.
        collision: takes part in contact.
        name: free text, None if it has none.
    """

    kind: ClassVar[str] = ""

    _: KW_ONLY
    at: FloatArray = None  # type: ignore[assignment]
    color: tuple[float, ...] | None = None
    visual: bool = True
    collision: bool = True
    name: str | None = None

    def __post_init__(self) -> None:
        _set(self, "at", check_pose(self.at, f"{self.kind}: at"))
        _set(self, "visual", check_flag(self.visual, f"{self.kind}: visual"))
        _set(self, "collision", check_flag(self.collision, f"{self.kind}: collision"))
        if self.name is not None:
            check_name(self.name, self.kind)
        # colour as a tuple of three or four numbers
        if self.color is not None:
            color = check_array(self.color, f"{self.kind}: color")
            if color.shape not in ((3,), (4,)) or (color < 0).any() or (color > 1).any():
                raise ModelError(f"{self.kind}: color must be 3 or 4 numbers from 0 to 1, got {self.color!r}.")
            _set(self, "color", tuple(color.tolist()))

    @property
    @abstractmethod
    def volume(self) -> float:
        """Volume in cubic metres."""

    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Centroid (3,) in the shape's frame, and inertia (3, 3) about it per unit mass of uniform density."""

    @abstractmethod
    def _dimensions(self) -> dict[str, Any]:
        """The shape's own entries of ``to_dict``."""

    def mass_properties(self, density: float | None = None, mass: float | None = None) -> MassProperties:
        """Mass properties in the link frame, of uniform density (kg / m^3) or of a total mass (kg)."""
        if (density is None) == (mass is None):
            raise ModelError(f"{self.kind}: give either density or mass.")
        # total mass
        if density is not None:
            total = check_number(density, f"{self.kind}: density", positive=True) * self.volume
        else:
            total = check_number(mass, f"{self.kind}: mass", nonnegative=True)
        # in the shape's frame, then in the link frame
        centroid, gyration = self._moments()
        return MassProperties(total, centroid, total * gyration).transformed(self.at)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; ``shape_from_dict`` reads them back to the last bit."""
        return {
            "kind": self.kind,
            **self._dimensions(),
            "at": plain(self.at),
            "color": None if self.color is None else list(self.color),
            "visual": self.visual,
            "collision": self.collision,
            "name": self.name,
        }

    @classmethod
    def from_dict(
        cls, data: Any, path: str = "shape", base: str | Path | None = None, roots: Iterable[str | Path] = ()
    ) -> Shape:
        """A shape of this class from its ``to_dict``; for ``base`` and ``roots`` see ``shape_from_dict``."""
        shape = shape_from_dict(data, path, base, roots)
        if not isinstance(shape, cls):
            raise ModelError(f"{path}.kind: expected '{cls.kind}', got '{shape.kind}'.")
        return shape


@dataclass(frozen=True, eq=False)
class Box(Shape):
    """A box with side lengths ``size`` (3,) along x, y, z, metres."""

    kind: ClassVar[str] = "box"
    size: FloatArray

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            size: ArrayLike,
            *,
            at: FloatArray | None = ...,
            color: Sequence[float] | None = ...,
            visual: bool = ...,
            collision: bool = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "size", _lengths(self.size, "box: size"))

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return float(np.prod(self.size))

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        x, y, z = self.size**2 / 12.0
        return np.zeros(3), np.diag([y + z, z + x, x + y])

    def _dimensions(self) -> dict[str, Any]:
        return {"size": plain(self.size)}


@dataclass(frozen=True, eq=False)
class Sphere(Shape):
    """A ball of the given radius, metres."""

    kind: ClassVar[str] = "sphere"
    radius: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "radius", check_number(self.radius, "sphere: radius", positive=True))

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return 4.0 / 3.0 * np.pi * self.radius**3

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        return np.zeros(3), 0.4 * self.radius**2 * np.eye(3)

    def _dimensions(self) -> dict[str, Any]:
        return {"radius": self.radius}


@dataclass(frozen=True, eq=False)
class Cylinder(Shape):
    """A cylinder along z; radius and length in metres."""

    kind: ClassVar[str] = "cylinder"
    radius: float
    length: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "radius", check_number(self.radius, "cylinder: radius", positive=True))
        _set(self, "length", check_number(self.length, "cylinder: length", positive=True))

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return np.pi * self.radius**2 * self.length

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        along = 0.5 * self.radius**2
        across = 0.5 * along + self.length**2 / 12.0
        return np.zeros(3), np.diag([across, across, along])

    def _dimensions(self) -> dict[str, Any]:
        return {"radius": self.radius, "length": self.length}


@dataclass(frozen=True, eq=False)
class Capsule(Shape):
    """A cylinder along z with half a ball on each end; ``length`` is that of the cylinder, metres."""

    kind: ClassVar[str] = "capsule"
    radius: float
    length: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "radius", check_number(self.radius, "capsule: radius", positive=True))
        _set(self, "length", check_number(self.length, "capsule: length", positive=True))

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return np.pi * self.radius**2 * (self.length + 4.0 / 3.0 * self.radius)

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        r, h = self.radius, self.length
        # shares of the cylinder and of the two half balls in the mass
        cylinder = h / (h + 4.0 / 3.0 * r)
        ends = 1.0 - cylinder
        # the half balls' own centres lie 3/8 r beyond the ends of the cylinder
        along = cylinder * r * r / 2.0 + ends * 0.4 * r * r
        across = cylinder * (r * r / 4.0 + h * h / 12.0) + ends * (0.4 * r * r + h * h / 4.0 + 0.375 * h * r)
        return np.zeros(3), np.diag([across, across, along])

    def _dimensions(self) -> dict[str, Any]:
        return {"radius": self.radius, "length": self.length}


@dataclass(frozen=True, eq=False)
class Ellipsoid(Shape):
    """An ellipsoid with half axes ``radii`` (3,) along x, y, z, metres."""

    kind: ClassVar[str] = "ellipsoid"
    radii: FloatArray

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            radii: ArrayLike,
            *,
            at: FloatArray | None = ...,
            color: Sequence[float] | None = ...,
            visual: bool = ...,
            collision: bool = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        _set(self, "radii", _lengths(self.radii, "ellipsoid: radii"))

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return 4.0 / 3.0 * np.pi * float(np.prod(self.radii))

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        x, y, z = self.radii**2 / 5.0
        return np.zeros(3), np.diag([y + z, z + x, x + y])

    def _dimensions(self) -> dict[str, Any]:
        return {"radii": plain(self.radii)}


@dataclass(frozen=True, eq=False)
class Mesh(Shape):
    """A triangle mesh from a file (extra ``mesh``) or from arrays.

    The file is checked at once (a regular file of a known format and a reasonable size) and read on first use.
    A closed surface has the mass properties of the solid inside; one that is open has those of its convex hull, and
    ``notes`` says so.

    Attributes:
        file: path of the mesh file, or None.
        vertices: (n, 3) metres before scaling, or None with a file.
        faces: (m, 3) indices of vertices, counterclockwise from outside, or None with a file.
        scale: one factor or three (x, y, z), not zero; stored as three.
        notes: what was assumed about the mesh; filled when its mass properties are first asked for.
    """

    kind: ClassVar[str] = "mesh"
    file: Path | None = None
    _: KW_ONLY
    vertices: FloatArray | None = None
    faces: IntArray | None = None
    scale: Any = 1.0
    notes: list[str] = field(default_factory=list, init=False, repr=False)
    _cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        # a file or arrays
        if self.file is not None:
            if self.vertices is not None or self.faces is not None:
                raise ModelError("mesh: give either a file or vertices and faces.")
            if not isinstance(self.file, (str, Path)):
                raise ModelError(f"mesh: file must be a path, got {self.file!r}.")
            _set(self, "file", Path(self.file))
            check_mesh_file(Path(self.file))
        elif self.vertices is None or self.faces is None:
            raise ModelError("mesh: give a file, or vertices and faces.")
        else:
            vertices, faces = check_mesh(self.vertices, self.faces, "mesh")
            _set(self, "vertices", vertices)
            _set(self, "faces", faces)
        # scale as three factors
        scale = check_array(self.scale, "mesh: scale")
        if scale.shape not in ((), (3,)) or (scale == 0).any():
            raise ModelError(f"mesh: scale must be one factor or three, none of them zero, got {self.scale!r}.")
        _set(self, "scale", frozen(np.broadcast_to(scale, 3)))

    @property
    def label(self) -> str:
        """Words that name this mesh in messages."""
        return f"mesh '{self.file}'" if self.file is not None else f"mesh '{self.name or 'from vertices'}'"

    @property
    def points(self) -> FloatArray:
        """Scaled vertices (n, 3) in the shape's frame, metres; reads the file if need be."""
        return self._surface()[0]

    @property
    def triangles(self) -> IntArray:
        """Faces (m, 3), turned over where the scale is a reflection; reads the file if need be."""
        return self._surface()[1]

    @property
    def volume(self) -> float:
        """Volume in cubic metres."""
        return float(self._solid()[0])

    def _surface(self) -> tuple[FloatArray, IntArray]:
        if "surface" not in self._cache:
            # as given or as in the file
            if self.file is not None:
                vertices, faces = read_mesh_file(self.file)
            else:
                vertices, faces = self.vertices, self.faces  # type: ignore[assignment]
            # scaled; a reflection turns the faces inside out
            faces = faces[:, ::-1] if np.prod(self.scale) < 0 else faces
            self._cache["surface"] = frozen(vertices * self.scale), frozen_indices(faces)
        surface: tuple[FloatArray, IntArray] = self._cache["surface"]
        return surface

    def _solid(self) -> tuple[float, FloatArray, FloatArray]:
        if "solid" not in self._cache:
            volume, centroid, inertia, notes = solid_moments(self.points, self.triangles, self.label)
            self.notes.extend(notes)
            self._cache["solid"] = volume, centroid, inertia
        solid: tuple[float, FloatArray, FloatArray] = self._cache["solid"]
        return solid

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        volume, centroid, inertia = self._solid()
        return centroid, inertia / volume

    def _dimensions(self) -> dict[str, Any]:
        return {
            "file": None if self.file is None else self.file.as_posix(),
            "vertices": plain(self.vertices),
            "faces": None if self.faces is None else self.faces.tolist(),
            "scale": plain(self.scale),
        }


SHAPES: dict[str, type[Shape]] = {shape.kind: shape for shape in (Box, Sphere, Cylinder, Capsule, Ellipsoid, Mesh)}
"""Shape classes by the name used in files."""


def shape_from_dict(
    data: Any, path: str = "shape", base: str | Path | None = None, roots: Iterable[str | Path] = ()
) -> Shape:
    """Any shape from its ``to_dict``.

    Args:
        data: plain JSON types.
        path: where they stand, for messages.
        base: folder that the file of a mesh is relative to. When given, the file must lie inside it or inside one of
            ``roots``; when None, the path is taken as it is.
        roots: more folders that meshes may be read from.
    """
    # it imports this module
    from leastaction.model.terrain import TERRAINS, terrain_entries

    reader = Reader(data, path)
    kind = reader.text("kind")
    # what all shapes share
    common: dict[str, Any] = {
        "at": reader.array("at", (4, 4), None),
        "color": reader.array("color", (-1,), None),
        "visual": reader.flag("visual", True),
        "collision": reader.flag("collision", True),
        "name": reader.text("name", None),
    }
    # dimensions
    own: dict[str, Any] = {}
    if kind == "box":
        own["size"] = reader.array("size", (3,))
    elif kind == "ellipsoid":
        own["radii"] = reader.array("radii", (3,))
    elif kind == "sphere":
        own["radius"] = reader.number("radius")
    elif kind in ("cylinder", "capsule"):
        own["radius"], own["length"] = reader.number("radius"), reader.number("length")
    elif kind == "mesh":
        own = _mesh_entries(reader, base, roots)
    elif kind in TERRAINS:
        own = terrain_entries(kind, reader)
    else:
        raise ModelError(f"{path}.kind: unknown shape '{kind}'; known are {', '.join([*SHAPES, *TERRAINS])}.")
    reader.finish()
    with reader.here():
        return (SHAPES | TERRAINS)[kind](**own, **common)


def _mesh_entries(reader: Reader, base: str | Path | None, roots: Iterable[str | Path]) -> dict[str, Any]:
    """The arguments of Mesh from a dictionary."""
    file = reader.text("file", None)
    vertices = reader.array("vertices", (-1, 3), None)
    faces = reader.take("faces", None)
    # whole numbers stay whole
    if faces is not None:
        rows = isinstance(faces, list) and all(isinstance(row, list) and len(row) == 3 for row in faces)
        if not rows or any(type(i) is not int or abs(i) > 2**62 for row in faces for i in row):
            raise reader.fail("faces", "n x 3 whole numbers", faces)
        faces = np.array(faces, dtype=np.int64).reshape(-1, 3)
    scale = reader.array("scale", (3,), np.ones(3))
    # a file from a stranger's description is read only where the reader was allowed to
    if file is not None and base is not None:
        location = Path(base) / file
        try:
            inside = any(location.resolve().is_relative_to(Path(root).resolve()) for root in (base, *roots))
        except (OSError, ValueError, RuntimeError) as error:
            raise reader.fail("file", "a file name", file) from error
        if not inside:
            raise ModelError(f"{reader.where('file')}: mesh '{file}' lies outside '{base}' and the allowed folders.")
        file = location
    return {"file": file, "vertices": vertices, "faces": faces, "scale": scale}


def _lengths(value: Any, where: str) -> FloatArray:
    """Three positive lengths."""
    out = check_vector(value, 3, where)
    if (out <= 0).any():
        raise ModelError(f"{where}: every length must be positive, got {out.tolist()}.")
    return out


def _set(shape: Shape, name: str, value: Any) -> None:
    """Store a checked value in a frozen shape."""
    object.__setattr__(shape, name, value)
