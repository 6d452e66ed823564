"""Root finders by name: what a user chooses with ``solver=``.

The loops themselves are compiled together with the residual of each method, in its room; here is which of them runs
and when it stops. A solver is plain data, so that a saved run can name it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from leastaction.errors import ModelError, UnsupportedError
from leastaction.model.checks import check_number


@dataclass(frozen=True)
class Solver:
    """When a root finder stops.

    Attributes:
        tolerance: of the residual, relative to the momentum of each part of the mechanism; never below rounding.
        iterations: most iterations of a step; a step that needs more fails.
    """

    name: ClassVar[str] = ""
    tolerance: float = 1e-12
    iterations: int = 50

    def __post_init__(self) -> None:
        where = f"{type(self).__name__}: "
        object.__setattr__(self, "tolerance", check_number(self.tolerance, f"{where}tolerance", positive=True))
        if isinstance(self.iterations, bool) or not isinstance(self.iterations, int | np.integer):
            raise ModelError(f"{where}iterations must be a whole number from 1 on, got {self.iterations!r}.")
        if self.iterations < 1:
            raise ModelError(f"{where}iterations must be a whole number from 1 on, got {self.iterations}.")
        object.__setattr__(self, "iterations", int(self.iterations))

    def options(self) -> dict[str, Any]:
        """Plain data from which ``solver_from`` makes the solver again."""
        return {"name": self.name, **asdict(self)}


@dataclass(frozen=True)
class Newton(Solver):
    """Newton's method with the exact direction in O(n) and a line search."""

    name: ClassVar[str] = "newton"


@dataclass(frozen=True)
class RIQN(Solver):
    """Recursive impulse-based quasi-Newton (Lee et al. 2016, Algorithm 3): the mass matrix at the start of the step.

    O(n) and factored once per step; it converges linearly, and not at all where the step is large for the motion.
    """

    name: ClassVar[str] = "riqn"
    iterations: int = 500


@dataclass(frozen=True)
class Broyden(Solver):
    """Broyden's method (1965), started from the mass matrix: O(n) storage and work for each iteration taken."""

    name: ClassVar[str] = "broyden"
    iterations: int = 100


@dataclass(frozen=True)
class DenseNewton(Solver):
    """Newton's method with a dense Jacobian and its factorisation, O(n^3): what the O(n) direction is compared with."""

    name: ClassVar[str] = "dense"


SHARP = 1e-9
"""Barrier up to which friction has a smaller one of its own."""

VARIANTS = ("exact", "seed")
"""Forms of the interior point method."""


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """Primal-dual interior point method: contacts and limits eliminated one by one, exact Newton direction in O(n).

    Attributes:
        tolerance: of the residual, relative to the momentum of the mechanism; never below rounding.
        iterations: most iterations of a step from the forces of the last one; a new start may take four times as many.
        barrier: product of gap and force at the end, in metres times the weight of the mechanism: a contact that
            carries the whole weight keeps a gap of this size.
        warm: the same at the start of a step; at most ten times ``barrier`` where joints have dry friction.
        friction: the same of slip and friction for each second of a step; it lets what sticks creep by as many metres
            in a second, times rho / (1 - rho^2) with rho the part of the largest friction that acts. None is a fifth of
            ``barrier`` up to 1e-9, and beyond that the barrier of every step, so that gradients are smooth.
        variant: "exact"; or "seed", Algorithm 5 of Bruedigam et al. 2023 as printed, for ``Maximal`` with ``linear``
            other than "nullspace": friction in a pyramid of four sides, every step from ones, ``tolerance`` of the
            norm in newtons and metres, and no barrier at the end to choose.
    """

    name: ClassVar[str] = "interior-point"
    tolerance: float = 1e-10
    iterations: int = 18
    barrier: float = 1e-10
    warm: float = 1e-6
    friction: float | None = None
    variant: str = "exact"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in VARIANTS:
            raise ModelError(f"InteriorPoint: variant must be one of {', '.join(VARIANTS)}, got {self.variant!r}.")
        if self.variant == "seed" and (self.barrier, self.warm) != (InteriorPoint.barrier, InteriorPoint.warm):
            raise ModelError('InteriorPoint: variant="seed" has its own barrier; leave barrier= and warm= out.')
        for name in ("barrier", "warm", "friction"):
            if getattr(self, name) is None and name == "friction":
                continue
            where = f"InteriorPoint: {name}"
            object.__setattr__(self, name, check_number(getattr(self, name), where, positive=True))
        if self.warm < self.barrier:
            raise ModelError(f"InteriorPoint: warm must be at least barrier, got {self.warm:g} and {self.barrier:g}.")

    @property
    def creep(self) -> float:
        """``friction``, or what stands for it."""
        if self.friction is not None:
            return self.friction
        return 0.2 * self.barrier if self.barrier <= SHARP else math.inf


SOLVERS: dict[str, type[Solver]] = {kind.name: kind for kind in (Newton, RIQN, Broyden, DenseNewton, InteriorPoint)}


def solver_from(value: Any, allowed: Iterable[type[Solver]], where: str) -> Solver:
    """A solver from itself, its name, its options, or None (the first that is allowed)."""
    kinds = tuple(allowed)
    if value is None:
        return kinds[0]()
    if isinstance(value, str):
        value = {"name": value}
    if isinstance(value, dict):
        options = dict(value)
        name = options.pop("name", None)
        if not isinstance(name, str) or name not in SOLVERS:
            raise ModelError(f"{where}: there is no solver {name!r}; the solvers are {', '.join(SOLVERS)}.")
        known = [each.name for each in fields(SOLVERS[name])]
        for key in options:
            if key not in known:
                raise ModelError(f"{where}: solver '{name}' has no option {key!r}; its options are {', '.join(known)}.")
        value = SOLVERS[name](**options)
    if not isinstance(value, Solver):
        raise ModelError(f"{where}: expected a solver such as leastaction.Newton(), got {value!r}.")
    if not isinstance(value, kinds):
        able = ", ".join(kind.__name__ for kind in kinds)
        raise UnsupportedError(f"{where} has no solver {type(value).__name__}; it has {able}.")
    return value
