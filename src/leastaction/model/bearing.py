"""Friction inside a joint by the load that the joint carries."""

from __future__ import annotations

from dataclasses import dataclass

from leastaction.errors import ModelError
from leastaction.model.checks import check_number

BEARING_KINDS = ("revolute", "continuous", "prismatic", "spherical")
"""Kinds of joints that can have a bearing."""


@dataclass(frozen=True)
class Bearing:
    """Friction of a joint in proportion to its load, for ``friction=`` of a joint (Sueda 2021, section 2.11).

    The reaction of the joint is spread over points around it, and each of them rubs with what it carries. For revolute,
    prismatic and spherical joints.

    Attributes:
        coefficient: of Coulomb friction.
        radius: of the shaft or the ball, half the width of the square rod of a prismatic joint, metres.
        length: along the axis, metres; a ball does not need one.
    """

    coefficient: float
    radius: float
    length: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "coefficient", check_number(self.coefficient, "Bearing: coefficient", nonnegative=True)
        )
        object.__setattr__(self, "radius", check_number(self.radius, "Bearing: radius", positive=True))
        if self.length is not None:
            object.__setattr__(self, "length", check_number(self.length, "Bearing: length", positive=True))

    def check(self, kind: str, where: str) -> None:
        """Raise ModelError unless a joint of this kind can have this bearing."""
        if kind not in BEARING_KINDS:
            raise ModelError(
                f"{where}: a Bearing belongs to {', '.join(BEARING_KINDS)} joints, this one is {kind}; give the "
                "friction as numbers."
            )
        if self.length is None and kind != "spherical":
            raise ModelError(f"{where}: the Bearing of a {kind} joint needs a length.")
