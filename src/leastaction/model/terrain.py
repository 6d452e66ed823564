"""Ground as shapes: planes and height fields on bodies that are fixed to the world.

``Mechanism.add_ground`` is the ground that everything touches. These are for a second ground, a wall, stairs or a slope
with contacts of its own: ``add_contact`` and ``add_contacts`` name them as any other body.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_heights, check_number
from leastaction.model.reader import Reader, plain
from leastaction.model.shapes import Shape


class Terrain(Shape):
    """What planes and height fields share: no volume, and a place that is fixed to the world."""

    @property
    def volume(self) -> float:
        """A terrain has none."""
        self._refuse()

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ModelError(f"{self.kind}: it has no volume; give mass and inertia, or a body without mass.")


@dataclass(frozen=True, eq=False)
class Plane(Terrain):
    """All below z = 0 of its frame, without end.

    Attributes:
        size: side of the square that is drawn, metres.
    """

    kind: ClassVar[str] = "plane"
    size: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "size", check_number(self.size, "plane: size", positive=True))

    def _dimensions(self) -> dict[str, Any]:
        return {"size": self.size}


@dataclass(frozen=True, eq=False)
class Heights(Terrain):
    """A regular grid of heights along z; the middle of the grid is the origin, and beyond the border they go on.

    Attributes:
        heights: (nx, ny) metres, rows along x, columns along y, two triangles to a cell.
        spacing: (2,) distances of the points along x and y, metres; may be given as one number.
    """

    kind: ClassVar[str] = "heights"
    heights: FloatArray
    spacing: FloatArray

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            heights: ArrayLike,
            spacing: ArrayLike,
            *,
            at: FloatArray | None = ...,
            color: Any = ...,
            visual: bool = ...,
            collision: bool = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        heights, spacing = check_heights(self.heights, self.spacing, np.array([0.0, 0.0, 1.0]), self.kind)
        object.__setattr__(self, "heights", heights)
        object.__setattr__(self, "spacing", spacing)

    def _dimensions(self) -> dict[str, Any]:
        return {"heights": plain(self.heights), "spacing": plain(self.spacing)}


TERRAINS: dict[str, type[Shape]] = {shape.kind: shape for shape in (Plane, Heights)}
"""Classes by the name used in files."""


def terrain_entries(kind: str, reader: Reader) -> dict[str, Any]:
    """The arguments of a plane or a height field from a dictionary."""
    if kind == "plane":
        return {"size": reader.number("size", 10.0)}
    rows = reader.items("heights")
    ny = len(rows[0]) if rows and isinstance(rows[0], list) else 0
    reader.data["heights"] = rows
    return {"heights": reader.array("heights", (-1, ny)), "spacing": reader.array("spacing", (2,))}
