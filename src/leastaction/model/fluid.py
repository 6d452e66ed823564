"""Drag of a fluid on a body with the extent of a box."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_number, check_vector
from leastaction.model.compiled_force import CompiledForce
from leastaction.model.force_base import named, store
from leastaction.model.pose import check_pose
from leastaction.model.reader import Reader, plain


@dataclass(frozen=True, eq=False)
class FluidDrag(CompiledForce):
    """Drag of a fluid, at rest or in a wind, on a body with the extent of a box.

    With sides b, mean side m, density rho and viscosity eta, in the frame of the box: a pressure drag
    -rho/2 b_j b_k |v_i| v_i and -rho/64 b_i (b_j^4 + b_k^4) |w_i| w_i, and the drag -3 pi m eta v and
    -pi m^3 eta w of a sphere at small speed. MuJoCo has the same model, with the box that has the inertia of the body.

    Attributes:
        body: body name.
        box: sides (3,) of the box, metres.
        density: of the fluid, kg/m^3.
        viscosity: of the fluid, Pa s.
        wind: velocity (3,) of the fluid, world axes, m/s.
        frame: pose (4, 4) of the box in the link.
        name: for messages.
    """

    kind: ClassVar[str] = "fluid_drag"
    body: str
    box: FloatArray
    _: KW_ONLY
    density: float = 0.0
    viscosity: float = 0.0
    wind: FloatArray = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    frame: FloatArray = None  # type: ignore[assignment]  # the link frame
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            body: str,
            box: ArrayLike,
            *,
            density: float = ...,
            viscosity: float = ...,
            wind: ArrayLike = ...,
            frame: ArrayLike | None = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        where = named("FluidDrag", self.name, (self.body,))
        store(self, "box", check_vector(self.box, 3, f"{where}: box"))
        if not (self.box > 0).all():
            raise ModelError(f"{where}: box must have three positive sides, got {self.box.tolist()}.")
        for what in ("density", "viscosity"):
            store(self, what, check_number(getattr(self, what), f"{where}: {what}", nonnegative=True))
        store(self, "wind", check_vector(self.wind, 3, f"{where}: wind"))
        store(self, "frame", check_pose(self.frame, f"{where}: frame"))

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one body."""
        return (self.body,)

    @property
    def conservative(self) -> bool:
        """True where the fluid has neither density nor viscosity."""
        return self.density == 0 and self.viscosity == 0

    @property
    def law(self) -> tuple[Any, Any]:
        """The compiled law."""
        from leastaction.forces.laws import fluid

        return fluid.fluid_wrench, fluid.fluid_derivatives

    @property
    def numbers(self) -> FloatArray:
        """Frame of the box, factors of the drag, wind."""
        b, rho, eta, mean = self.box, self.density, self.viscosity, float(self.box.mean())
        others = b[[1, 2, 0]], b[[2, 0, 1]]
        pressure = 0.5 * rho * others[0] * others[1], rho / 64 * b * (others[0] ** 4 + others[1] ** 4)
        small = 3 * math.pi * mean * eta, math.pi * mean**3 * eta
        return np.concatenate([self.frame[:3, :3].ravel(), self.frame[:3, 3], *pressure, small, self.wind])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        lists = {what: plain(getattr(self, what)) for what in ("box", "wind", "frame")}
        return {
            "kind": self.kind, "body": self.body, **lists, "density": self.density, "viscosity": self.viscosity,
            "name": self.name,
        }  # fmt: skip


def read_fluid(reader: Reader) -> dict[str, Any]:
    """Arguments of a drag from a file."""
    shapes: dict[str, tuple[int, ...]] = {"box": (3,), "wind": (3,), "frame": (4, 4)}
    lists = {what: reader.array(what, shape) for what, shape in shapes.items()}
    return {"body": reader.text("body"), **lists} | {what: reader.number(what) for what in ("density", "viscosity")}
