"""A force of the user that Numba compiles, so that it runs inside the compiled step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_result, frozen
from leastaction.model.compiled_force import CompiledForce
from leastaction.model.differences import checked_differences, moved
from leastaction.model.force_base import named, store


class NumbaForce(CompiledForce):
    """A force of the user's own on k bodies, compiled by Numba.

    The functions may be plain Python of the kind that Numba compiles, or ``numba.njit`` functions. They get the time,
    an array ``bodies`` (k, 18) with the rotation of each link frame by rows (9), its origin in the world (3), angular
    and linear velocity in link axes (6), and ``numbers`` (n,), and write into arrays.

    Attributes:
        bodies: names, one or several; "world" is at rest at the origin.
        wrench: function (t, bodies, numbers, out) that writes body wrenches (k, 6), torque and force about the link
            origins in link axes, into out.
        derivatives_function: function (t, bodies, numbers, K, D) that writes the derivatives (6k, 6k) of the wrenches
            by displacements xi of the links in E <- E exp(xi), at fixed body twists, and by the twists. Without it,
            where a derivative is needed, it is taken by checked central differences.
        energy_function: poses (k, 4, 4) -> joules where the force is minus the derivative of this energy, else None.
        numbers: (n,) parameters.
        name: for messages.
    """

    bodies: tuple[str, ...]
    wrench: Callable[..., None]
    derivatives_function: Callable[..., None] | None
    energy_function: Callable[[FloatArray], float] | None
    name: str | None

    def __init__(
        self,
        bodies: Any,
        wrench: Callable[..., None],
        derivatives: Callable[..., None] | None = None,
        *,
        energy: Callable[[FloatArray], float] | None = None,
        numbers: ArrayLike = (),
        name: str | None = None,
    ) -> None:
        names = (bodies,) if isinstance(bodies, str) else tuple(bodies)
        where = named("NumbaForce", name, names)
        if len(set(names)) != len(names) or not names:
            raise ModelError(f"{where}: give one or several different bodies.")
        for what, function in (("wrench", wrench), ("derivatives", derivatives), ("energy", energy)):
            if not callable(function) and (what == "wrench" or function is not None):
                raise ModelError(f"{where}: {what} must be a function, got {function!r}.")
        own = frozen(np.atleast_1d(check_array(numbers, f"{where}: numbers")).ravel())
        self.bodies, self.name, self._numbers = names, name, own
        self.wrench, self.derivatives_function, self.energy_function = wrench, derivatives, energy
        store(self, "_law", (self._compiled("wrench", wrench), self._compiled("derivatives", derivatives)))

    def _compiled(self, what: str, function: Callable[..., None] | None) -> Any:
        """The function with an address, or None; an error of Numba in words."""
        if function is None:
            return None
        from numba.core.errors import NumbaError

        from leastaction.jit.functions import of_user

        k = len(self.bodies)
        made = of_user(function, k, len(self._numbers), (6 * k,) if what == "wrench" else (6 * k, 6 * k))
        try:
            assert made.address
        except NumbaError as error:
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")
            raise ModelError(f"{self.label}: Numba cannot compile {what}: {reason}") from error
        return made

    @property
    def conservative(self) -> bool:
        """True where an energy is given."""
        return self.energy_function is not None

    @property
    def has_derivatives(self) -> bool:
        """Whether the user gives them."""
        return self.derivatives_function is not None

    @property
    def law(self) -> tuple[Any, Any]:
        """The compiled functions."""
        law: tuple[Any, Any] = vars(self)["_law"]
        return law

    @property
    def numbers(self) -> FloatArray:
        """The parameters (n,)."""
        return self._numbers

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6k, 6k)."""
        if self.has_derivatives:
            return super().derivatives(t, poses, twists)
        n, give = 6 * len(self.bodies), "derivatives=, a function (t, bodies, numbers, K, D)"

        def by_place(xi: FloatArray) -> FloatArray:
            return self.wrenches(t, moved(poses, xi), twists)

        def by_twist(change: FloatArray) -> FloatArray:
            return self.wrenches(t, poses, twists + change.reshape(-1, 6))

        K, D = (checked_differences(each, n, self.label, give).reshape(n, n) for each in (by_place, by_twist))
        return K, D

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy in joules; 0 where none is given."""
        if self.energy_function is None:
            return 0.0
        return float(check_result(self.energy_function(poses), (), f"{self.label}: energy"))

    def to_dict(self) -> dict[str, Any]:
        """Functions cannot be written."""
        raise ModelError(f"{self.label}: a force of the user is made of functions and cannot be written to a file.")
