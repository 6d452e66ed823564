"""One case: a property, a seed, and the mechanism that belongs to them; and how it fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

import leastaction as la
from fuzzing.generator import draw
from fuzzing.plan import Plan
from fuzzing.program import HEAD, Program
from fuzzing.writing import SI, Setting, coordinates, write
from leastaction.comparators.maximal_euler.method import MaximalEuler
from leastaction.comparators.maximal_euler.rows import plan_of
from leastaction.methods.base import Method
from leastaction.run.registry import METHODS, check_supported, method_by_name

NAMES = (*METHODS, "galerkin:6", "galerkin:2:gauss", "maximal:4")
"""Registry names of the methods that are tried."""

INVARIANT = tuple(name for name in NAMES if name != "maximal-euler")
"""Those whose step does not see a common velocity; E exp(h phi) of the papers' Euler turns it with the body."""


class PropertyError(AssertionError):
    """A property does not hold; its text ends with the program that shows it."""


class Case:
    """A mechanism of a seed, for one property.

    Args:
        seed: of everything random.
        recipe: what the mechanism has.
        name: the property.
    """

    def __init__(self, seed: int, recipe: str, name: str) -> None:
        self.seed, self.recipe, self.name = seed, recipe, name
        self.rng = np.random.default_rng([seed, *name.encode()])

    @cached_property
    def plan(self) -> Plan:
        """The plan of the mechanism."""
        return draw(self.seed, self.recipe)

    @cached_property
    def program(self) -> Program:
        """Its program."""
        return write(self.plan)

    @property
    def model(self) -> la.Model:
        """The model."""
        return self.program.model

    @property
    def state(self) -> la.State:
        """The first state."""
        return self.program.state

    def methods(self, count: int, names: tuple[str, ...] = NAMES, model: la.Model | None = None) -> list[str]:
        """Some methods that honour the model."""
        able = [name for name in names if honours(method_by_name(name), model or self.model)]
        return [str(name) for name in self.rng.permutation(able)[:count]]

    def controls(self, steps: int, size: float = 0.5) -> np.ndarray:
        """Generalised forces (steps, nv), the same in every step."""
        return np.tile(np.round(size * self.rng.normal(size=self.model.nv), 3), (steps, 1))

    def fail(self, message: str, show: str, *others: str) -> None:
        """Raise with the program; ``show`` are the lines that show it, ``others`` the texts of further mechanisms."""
        text = "\n\n".join([HEAD, self.program.text(), *others]) + show.rstrip() + "\n"
        raise PropertyError(f"{self.name}, seed {self.seed} ({self.recipe}): {message}\n\n{text}")


def honours(method: Method, model: la.Model) -> bool:
    """Whether a method takes a model."""
    try:
        check_supported(method, model)
        if isinstance(method, MaximalEuler):
            # bodies without mass that its poses cannot tell apart
            plan_of(model)
    except la.UnsupportedError:
        return False
    # Gauss quadrature has no rows for loops
    return not (model.constraint_size and getattr(method, "quadrature", "") == "gauss")


def simulate(model: la.Model, state: la.State, dt: float, steps: int, method: str | Method, control: Any = None) -> Any:
    """A run of so many steps."""
    return la.simulate(model, state, dt=dt, duration=steps * dt, method=method, control=control)


def apart(
    plan: Plan,
    one: Any,
    other: Any,
    at: Setting = SI,
    there: Setting = SI,
    rows: tuple[int, int] | None = None,
    rates: float = 1.0,
) -> float:
    """Largest difference of coordinates and velocities of two runs, in SI; all rows, or one row of each.

    Differences of velocities count ``rates`` times.
    """
    worst = 0.0
    a, b = coordinates(plan, at, one), coordinates(plan, there, other)
    for joint in plan.joints:
        if joint.name not in a:
            continue
        (q, v), (p, w) = a[joint.name], b[joint.name]
        if rows is not None:
            q, v, p, w = q[[rows[0]]], v[[rows[0]]], p[[rows[1]]], w[[rows[1]]]
        names = joint.q_names
        for i, name in enumerate(names):
            # a rotation has two quaternions
            if name == "qw":
                same = np.sign((q[:, i : i + 4] * p[:, i : i + 4]).sum(axis=1, keepdims=True))
                p = p.copy()
                p[:, i : i + 4] *= same
        worst = max(worst, float(np.abs(q - p).max(initial=0.0)), rates * float(np.abs(v - w).max(initial=0.0)))
    return worst


def central(function: Callable[[float], Any], h: float) -> tuple[np.ndarray, float]:
    """Derivative at 0 by central differences at h and h / 2, extrapolated, and how far those two are apart."""
    wide, near = ((np.asarray(function(s)) - np.asarray(function(-s))) / (2 * s) for s in (h, h / 2))
    return (4 * near - wide) / 3, float(np.abs(near - wide).max(initial=0.0))


def forward(function: Callable[[float], Any], h: float) -> tuple[np.ndarray, float]:
    """The same by differences to one side, for what must not be negative."""
    wide, near = (_one_sided(function, s) for s in (2 * h, h))
    return near, float(np.abs(near - wide).max(initial=0.0))


def _one_sided(function: Callable[[float], Any], h: float) -> np.ndarray:
    """Derivative at 0 from four values, of third order."""
    f = [np.asarray(function(k * h)) for k in range(4)]
    return (-11 * f[0] + 18 * f[1] - 9 * f[2] + 2 * f[3]) / (6 * h)
