"""Damping of a body: a wrench against all six of its velocities."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_vector, frozen
from leastaction.model.compiled_force import CompiledForce
from leastaction.model.force_base import named, point_jacobian, store
from leastaction.model.reader import Reader, plain

# How far below zero the least eigenvalue of a damping matrix may be, as a part of the largest entry.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class BodyDamping(CompiledForce):
    """A wrench -C (angular; linear velocity) at a point of a body, in link axes.

    Attributes:
        body: body name.
        damping: C: six numbers, N m s/rad about and N s/m along the link axes, or a matrix (6, 6) whose symmetric part
            has no negative eigenvalue.
        point: (3,) in the link frame, metres: where the linear velocity is taken and the force acts.
        name: for messages.
    """

    kind: ClassVar[str] = "body_damping"
    body: str
    damping: FloatArray
    point: FloatArray = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    _: KW_ONLY
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self, body: str, damping: ArrayLike, point: ArrayLike = ..., *, name: str | None = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        where = named("BodyDamping", self.name, (self.body,))
        C = check_array(self.damping, f"{where}: damping")
        if C.shape not in ((6,), (6, 6)):
            raise ModelError(f"{where}: damping must be six numbers or a matrix (6, 6), got shape {C.shape}.")
        matrix = np.diag(C) if C.ndim == 1 else C
        least = float(np.linalg.eigvalsh(matrix + matrix.T)[0])
        if least < -_ROUNDING * float(np.abs(matrix).max()):
            raise ModelError(f"{where}: damping must not push: some velocity gains energy from it.")
        store(self, "damping", frozen(matrix))
        store(self, "point", check_vector(self.point, 3, f"{where}: point"))

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one body."""
        return (self.body,)

    @property
    def conservative(self) -> bool:
        """True where there is no damping at all."""
        return not self.damping.any()

    @property
    def law(self) -> tuple[Any, Any]:
        """The compiled law."""
        from leastaction.forces.laws import damping

        return damping.damping_wrench, damping.damping_derivatives

    @property
    def numbers(self) -> FloatArray:
        """C about the link origin, by rows (36,)."""
        J = np.vstack([np.eye(3, 6), point_jacobian(self.point)])
        return (J.T @ self.damping @ J).ravel()

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        lists = {"damping": plain(self.damping), "point": plain(self.point)}
        return {"kind": self.kind, "body": self.body, **lists, "name": self.name}


def read_body_damping(reader: Reader) -> dict[str, Any]:
    """Arguments of a damping from a file."""
    return {
        "body": reader.text("body"),
        "damping": reader.array("damping", (6, 6)),
        "point": reader.array("point", (3,)),
    }
