"""Constraints of the user's own on the poses and twists of bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray, check_name, check_result
from leastaction.model.differences import checked_differences, moved

KINDS = ("equality", "velocity", "inequality")


@dataclass(frozen=True, eq=False)
class Constraint:
    """A constraint on k bodies, with its derivatives.

    Poses (k, 4, 4) are those of the link frames in the world, twists (k, 6) are (angular; linear) of the link frames in
    link axes; for "world" the pose is the identity and the twist is zero. Derivatives are by xi = (theta; rho) in
    E <- E exp(xi), so that d function / dt = jacobian @ twists.

    Attributes:
        bodies: the k different body names.
        function: poses -> (size,), zero for "equality", not negative for "inequality"; for "velocity" (poses, twists)
            -> (size,), zero.
        jacobian: the same arguments -> (size, 6k): by xi; for "velocity" by the twists.
        kind: "equality", "velocity" (nonholonomic) or "inequality".
        size: number of rows.
        velocity_bias: (poses, twists) -> (size,): the second time derivative (for "velocity" the first) at constant
            body twists; or None.
        hessian: (poses, multipliers) -> (6k, 6k): d (jacobian^T multipliers) / d xi; for "velocity" (poses, twists,
            multipliers); or None.
        name: for messages.
    """

    bodies: tuple[str, ...]
    function: Callable[..., Any]
    jacobian: Callable[..., Any]
    _: KW_ONLY
    kind: str = "equality"
    size: int = 1
    velocity_bias: Callable[..., Any] | None = None
    hessian: Callable[..., Any] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        # bodies
        given: Any = self.bodies
        names = (given,) if isinstance(given, str) else tuple(given)
        for name in names:
            check_name(name, "Constraint: body")
        object.__setattr__(self, "bodies", names)
        if self.name is not None:
            check_name(self.name, "Constraint")
        if not names or len(set(names)) != len(names) or names == (WORLD,):
            raise ModelError(f"{self.label}: give one or several different bodies.")
        # kind, size and functions
        if self.kind not in KINDS:
            raise ModelError(f"{self.label}: unknown kind {self.kind!r}; the kinds are {', '.join(KINDS)}.")
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ModelError(f"{self.label}: size must be a positive whole number, got {self.size!r}.")
        for what in ("function", "jacobian", "velocity_bias", "hessian"):
            value = getattr(self, what)
            if not callable(value) and (value is not None or what in ("function", "jacobian")):
                raise ModelError(f"{self.label}: {what} must be a function, got {value!r}.")

    @property
    def label(self) -> str:
        """Words that name this constraint in messages."""
        return f"Constraint '{self.name}'" if self.name else f"Constraint on {', '.join(self.bodies)}"

    def value(self, poses: FloatArray, twists: FloatArray | None = None) -> FloatArray:
        """Checked value (size,) of the function; ``twists`` for "velocity" only."""
        return self._call("function", (self.size,), self._arguments(poses, twists))

    def matrix(self, poses: FloatArray, twists: FloatArray | None = None) -> FloatArray:
        """Checked Jacobian (size, 6k); ``twists`` for "velocity" only."""
        return self._call("jacobian", (self.size, 6 * len(self.bodies)), self._arguments(poses, twists))

    def bias(self, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Checked velocity bias (size,)."""
        return self._call("velocity_bias", (self.size,), (poses, twists))

    def curvature(self, poses: FloatArray, multipliers: FloatArray, twists: FloatArray | None = None) -> FloatArray:
        """Checked Hessian (6k, 6k); ``twists`` for "velocity" only."""
        n = 6 * len(self.bodies)
        return self._call("hessian", (n, n), (*self._arguments(poses, twists), multipliers))

    def curvatures(self, poses: FloatArray) -> FloatArray:
        """Derivatives (size, 6k, 6k) of the rows of the Jacobian of an equality; columns say by what.

        The user's Hessian, or checked central differences of the Jacobian.
        """
        if self.hessian is not None:
            return np.array([self.curvature(poses, unit) for unit in np.eye(self.size)])
        return checked_differences(
            lambda xi: self.matrix(moved(poses, xi)), 6 * len(self.bodies), f"{self.label}: jacobian", "hessian="
        )

    def check(
        self,
        poses: FloatArray | None = None,
        twists: FloatArray | None = None,
        *,
        step: float = 1e-5,
        tolerance: float = 1e-6,
    ) -> None:
        """Compare every given derivative with central differences; raise naming the first entry that is off.

        Args:
            poses: (k, 4, 4); by default some poses in general position.
            twists: (k, 6); by default some.
            step: of the differences, in radians and metres.
            tolerance: relative to the largest entry, or absolute where that is below 1.
        """
        k = len(self.bodies)
        rng = np.random.default_rng(1)
        if poses is None:
            from leastaction.spatial import se3

            poses = np.array([se3.exp(rng.uniform(-1, 1, 6)) for _ in range(k)])
        twists = rng.uniform(-1, 1, (k, 6)) if twists is None else np.asarray(twists, dtype=float)
        multipliers = rng.uniform(-1, 1, self.size)
        # the Jacobian: by poses, or for "velocity" by twists
        expected = np.zeros((self.size, 6 * k))
        for j in range(6 * k):
            delta = np.zeros(6 * k)
            delta[j] = step
            if self.kind == "velocity":
                shift = delta.reshape(k, 6)
                change = self.value(poses, twists + shift) - self.value(poses, twists - shift)
            else:
                change = self.value(moved(poses, delta)) - self.value(moved(poses, -delta))
            expected[:, j] = change / (2 * step)
        self._compare("jacobian", self.matrix(poses, twists), expected, tolerance)
        # the optional ones
        if self.velocity_bias is not None:
            self._compare("velocity_bias", self.bias(poses, twists), self._bias(poses, twists, step), tolerance)
        if self.hessian is not None:
            curvature = self.curvature(poses, multipliers, twists)
            self._compare("hessian", curvature, self._hessian(poses, twists, multipliers, step), tolerance)

    def _bias(self, poses: FloatArray, twists: FloatArray, step: float) -> FloatArray:
        """Velocity bias by central differences along the motion."""
        delta = step * twists.ravel()
        ahead, behind = moved(poses, delta), moved(poses, -delta)
        if self.kind == "velocity":
            return (self.value(ahead, twists) - self.value(behind, twists)) / (2 * step)
        return (self.matrix(ahead) - self.matrix(behind)) @ twists.ravel() / (2 * step)

    def _hessian(self, poses: FloatArray, twists: FloatArray, multipliers: FloatArray, step: float) -> FloatArray:
        """Hessian by central differences of the Jacobian."""
        n = 6 * len(self.bodies)
        out = np.zeros((n, n))
        for j in range(n):
            delta = np.zeros(n)
            delta[j] = step
            change = self.matrix(moved(poses, delta), twists) - self.matrix(moved(poses, -delta), twists)
            out[:, j] = change.T @ multipliers / (2 * step)
        return out

    def _compare(self, what: str, given: FloatArray, expected: FloatArray, tolerance: float) -> None:
        """Raise at the entry that is farthest off, if it is too far."""
        error = np.abs(given - expected)
        if error.max() <= tolerance * max(1.0, float(np.abs(expected).max())):
            return
        entry = tuple(int(i) for i in np.unravel_index(int(error.argmax()), error.shape))
        raise ModelError(
            f"{self.label}: {what}{list(entry)} is {given[entry]:.9g}, central differences give {expected[entry]:.9g}."
        )

    def _arguments(self, poses: FloatArray, twists: FloatArray | None) -> tuple[Any, ...]:
        """What the user's functions take: twists for "velocity" only."""
        if self.kind != "velocity":
            return (poses,)
        if twists is None:
            raise ModelError(f"{self.label}: a velocity constraint needs the twists.")
        return (poses, twists)

    def _call(self, what: str, shape: tuple[int, ...], arguments: tuple[Any, ...]) -> FloatArray:
        """What a user's function returns, if it is finite and has the right shape."""
        function = getattr(self, what)
        if function is None:
            raise ModelError(f"{self.label}: {what} is needed; give {what}=.")
        return check_result(function(*arguments), shape, f"{self.label}: {what}")
