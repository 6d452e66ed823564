"""What every force on bodies owes, and helpers that forces share.

A force names k bodies. Poses (k, 4, 4) are those of their link frames in the world, twists (k, 6) are (angular;
linear) of the link frames in link axes, wrenches (k, 6) are (torque; force) about the link origins in link axes. For
"world" the pose is the identity and the twist is zero; its wrench is computed and ignored.

Derivatives are by xi = (theta; rho) in E <- E exp(xi), at fixed body twists, and by the twists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray, check_name, check_result
from leastaction.model.reader import plain
from leastaction.spatial import so3


class Force(ABC):
    """What acts on bodies. A new force gives the five members below and, to be saved, ``to_dict``.

    1. ``name``: text for messages, or None.
    2. ``bodies``: the names of the k bodies it touches.
    3. ``wrenches(t, poses, twists)``: (k, 6).
    4. ``derivatives(t, poses, twists)``: K and D, each (6k, 6k), with their true sign, not symmetrised.
    5. ``conservative`` and ``energy(t, poses)``: whether the wrenches are minus the derivative of an energy that does
       not depend on time, and that energy (0 where there is none).
    """

    name: str | None
    bodies: tuple[str, ...]

    @property
    @abstractmethod
    def conservative(self) -> bool:
        """Whether the wrenches are minus the derivative of ``energy``, and nothing else."""

    @abstractmethod
    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrenches (k, 6)."""

    @abstractmethod
    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K = d wrench / d xi and D = d wrench / d twist, each (6k, 6k)."""

    def energy(self, t: float, poses: FloatArray) -> float:
        """Potential energy in joules; 0 where there is none."""
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; ModelError for what cannot be written."""
        raise ModelError(f"{self.label}: a force of this class cannot be written to a file.")

    @property
    def has_derivatives(self) -> bool:
        """Whether ``derivatives`` is exact; where it is taken by differences, Newton's method does without it."""
        return True

    def check(self, t: float = 0.0, *, samples: int = 5, seed: int = 0, tolerance: float = 1e-5) -> float:
        """Compare the derivatives, and the energy of a conservative force, with central differences at random motions.

        Args:
            t: time, seconds.
            samples: number of random poses and twists.
            seed: of the random numbers.
            tolerance: largest difference that is accepted, as a part of the largest entry.

        Returns:
            The largest difference, as a part of the largest entry.

        Raises:
            ModelError: a difference is larger than the tolerance.
        """
        from leastaction.model.force_check import largest_difference

        return largest_difference(self, t, samples, seed, tolerance)

    @property
    def label(self) -> str:
        """Words that name this force in messages."""
        return f"{type(self).__name__} '{self.name}'" if self.name else f"{type(self).__name__} on {self.bodies}"


def named(what: str, name: Any, bodies: tuple[Any, ...]) -> str:
    """Words for messages; checks the names on the way."""
    for body in bodies:
        check_name(body, f"{what}: body")
    if name is not None:
        return f"{what} '{check_name(name, what)}'"
    return f"{what} on {', '.join(bodies)}"


def check_axes(frame: Any, where: str) -> None:
    """Axes are those of the world or of the body."""
    if frame not in (WORLD, "body"):
        raise ModelError(f"{where}: frame must be 'world' or 'body', got {frame!r}.")


def at_time(value: Any, t: float, n: int, where: str) -> FloatArray:
    """A constant vector, or the checked value of a function of time."""
    return check_result(value(t), (n,), f"{where} at t = {t}") if callable(value) else np.asarray(value)


def written(value: Any, where: str) -> Any:
    """A vector as a list; a function cannot be written."""
    if callable(value):
        raise ModelError(f"{where}: a function of time cannot be written to a file.")
    return plain(value)


def point_jacobian(p: FloatArray) -> FloatArray:
    """(3, 6) velocity of the point p, in body axes, by the body twist."""
    return np.hstack([-so3.hat(p), np.eye(3)])


def nine(pose: FloatArray) -> Any:
    """Rotation of a pose as nine numbers, row by row."""
    return tuple(pose[:3, :3].ravel().tolist())


def floats(a: FloatArray) -> Any:
    """Floats of a vector."""
    return tuple(a.tolist())


def store(force: Force, name: str, value: Any) -> None:
    """Store a checked value in a frozen force."""
    object.__setattr__(force, name, value)
