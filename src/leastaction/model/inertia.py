"""Mass properties of rigid bodies and their physical-consistency checks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_number, check_vector, frozen

if TYPE_CHECKING:
    from leastaction.model.shapes import Shape

_SLACK = 1e-9
"""Relative slack of the symmetry and the inequalities: data written with ten digits passes."""


@dataclass(frozen=True, eq=False)
class MassProperties:
    """Mass, centre of mass and inertia of a body, in a frame that the context names.

    Attributes:
        mass: kilograms, not negative.
        com: centre of mass (3,), metres.
        inertia: (3, 3) about the centre of mass, axes of the frame, kg m^2; symmetric. That a body can have it is
            checked where a body is added, and before dynamics: parts of one body need not be bodies by themselves.
    """

    mass: float
    com: FloatArray
    inertia: FloatArray

    def __post_init__(self) -> None:
        mass = check_number(self.mass, "mass", nonnegative=True)
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "com", check_vector(self.com, 3, "com"))
        object.__setattr__(self, "inertia", symmetric_inertia(self.inertia, "mass properties"))

    def transformed(self, pose: FloatArray) -> MassProperties:
        """The same body seen from the frame in which this frame has the given pose (4, 4)."""
        R = pose[:3, :3]
        inertia = R @ self.inertia @ R.T
        return MassProperties(self.mass, R @ self.com + pose[:3, 3], 0.5 * (inertia + inertia.T))

    def scaled_to(self, mass: float) -> MassProperties:
        """The same distribution with another total mass."""
        mass = check_number(mass, "mass", nonnegative=True)
        if self.mass == 0:
            raise ModelError("a massless body cannot be scaled to a mass: it says nothing about the distribution.")
        return MassProperties(mass, self.com, self.inertia * (mass / self.mass))

    def inertia_about(self, point: Any) -> FloatArray:
        """Inertia (3, 3) about a point (3,) of the frame."""
        return self.inertia + _point_inertia(self.mass, self.com - check_vector(point, 3, "point"))


def massless(com: Any = (0.0, 0.0, 0.0)) -> MassProperties:
    """No mass and no inertia."""
    return MassProperties(0.0, com, np.zeros((3, 3)))


def combine(parts: Iterable[MassProperties]) -> MassProperties:
    """Mass properties of several bodies held together, all given in one frame; of none: massless."""
    listed = list(parts)
    mass = sum(part.mass for part in listed)
    # centre of mass; without any mass the mean of the parts' centres
    if mass > 0:
        com = sum((part.mass * part.com for part in listed), np.zeros(3)) / mass
    else:
        com = sum((part.com for part in listed), np.zeros(3)) / max(len(listed), 1)
    # parallel axes
    inertia = np.zeros((3, 3))
    for part in listed:
        inertia = inertia + part.inertia + _point_inertia(part.mass, part.com - com)
    return MassProperties(mass, com, inertia)


def inertia_matrix(value: Any, where: str) -> FloatArray:
    """A 3x3 inertia from 3x3 numbers, 3 principal moments, or ixx, ixy, ixz, iyy, iyz, izz."""
    array = check_array(value, where)
    if array.shape == (3, 3):
        return array
    if array.shape == (3,):
        return np.diag(array)
    if array.shape == (6,):
        xx, xy, xz, yy, yz, zz = array
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    raise ModelError(
        f"{where}: give 3x3 numbers, 3 principal moments, or ixx, ixy, ixz, iyy, iyz, izz; got shape {array.shape}."
    )


def check_inertia(mass: float, inertia: Any, where: str) -> FloatArray:
    """The inertia (3, 3) about the centre of mass, made exactly symmetric, if a body can have it.

    Point masses (zero inertia) and thin rods (one zero moment) are legal. A negative principal moment, or one that
    is larger than the sum of the two others, is not: no distribution of mass has it.
    """
    check_number(mass, f"{where}: mass", nonnegative=True)
    I = symmetric_inertia(inertia, where)
    why = why_impossible(I)
    if why:
        raise ModelError(f"{where}: {why}.")
    return I


def symmetric_inertia(inertia: Any, where: str) -> FloatArray:
    """An inertia (3, 3) made exactly symmetric; an error if it is not nearly so. No body need have it."""
    I = check_array(inertia, f"{where}: inertia")
    if I.shape != (3, 3):
        raise ModelError(f"{where}: inertia must be a 3x3 matrix, got shape {I.shape}.")
    scale = float(np.abs(I).max())
    if float(np.abs(I - I.T).max()) > _SLACK * scale:
        raise ModelError(f"{where}: inertia is not symmetric: {I.tolist()}.")
    return frozen(0.5 * I + 0.5 * I.T)


def why_impossible(I: FloatArray) -> str:
    """Why no body has the symmetric inertia I (3, 3), in words; "" if one can."""
    scale = float(np.abs(I).max())
    # principal moments a <= b <= c
    a, b, c = (float(x) for x in np.linalg.eigvalsh(I))
    moments = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m^2"
    if a < -_SLACK * scale:
        return f"inertia is not positive: {moments}"
    if c > a + b + _SLACK * scale:
        return (
            f"inertia breaks the triangle inequality ({moments}: {c:.6g} > {a:.6g} + {b:.6g}), no body has it. Check "
            "units, and that it is taken about the centre of mass"
        )
    return ""


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


def _point_inertia(mass: float, r: FloatArray) -> FloatArray:
    """Inertia (3, 3) of a point mass at r (3,) about the origin."""
    return np.asarray(mass * (float(r @ r) * np.eye(3) - np.outer(r, r)))


def body_properties(
    where: str, mass: Any, com: Any, inertia: Any, shapes: Sequence[Shape], density: Any
) -> MassProperties:
    """Mass properties of a body in the link frame, by the rules of ``Mechanism.add_body``."""
    if mass is not None:
        mass = check_number(mass, f"{where}: mass", nonnegative=True)
    if com is not None:
        com = check_vector(com, 3, f"{where}: com")
    # combinations that contradict each other
    if density is not None and (mass is not None or inertia is not None):
        raise ModelError(f"{where}: give either density, or mass and inertia.")
    if density is not None and not shapes:
        raise ModelError(f"{where}: density needs a shape.")
    if inertia is not None and mass is None:
        raise ModelError(f"{where}: inertia needs a mass.")
    # explicit
    if inertia is not None:
        matrix = check_inertia(mass, inertia_matrix(inertia, f"{where}: inertia"), where)
        return MassProperties(mass, np.zeros(3) if com is None else com, matrix)
    # massless, or a point
    if density is None and not mass:
        return massless(np.zeros(3) if com is None else com)
    if not shapes:
        return MassProperties(mass, np.zeros(3) if com is None else com, np.zeros((3, 3)))
    # from shapes
    try:
        uniform = combine(shape.mass_properties(density=1.0 if density is None else density) for shape in shapes)
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    properties = uniform if mass is None else uniform.scaled_to(mass)
    return properties if com is None else replace(properties, com=com)
