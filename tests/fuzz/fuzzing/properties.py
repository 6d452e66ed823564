"""The table of properties."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fuzzing import derivatives, motion, runs, touch, world
from fuzzing.case import Case
from fuzzing.generator import RECIPES, SMOOTH


class Property(NamedTuple):
    """A property and the recipes of mechanisms for which it holds."""

    check: Callable[[Case], None]
    recipes: tuple[str, ...]


_ALL = tuple(RECIPES)

PROPERTIES: dict[str, Property] = {
    "converges": Property(motion.converges, SMOOTH),
    "energy": Property(motion.energy, SMOOTH),
    "static": Property(motion.static, SMOOTH),
    "linearize": Property(derivatives.linearize, SMOOTH),
    "gradient": Property(derivatives.gradient, SMOOTH),
    "many": Property(runs.many, _ALL),
    "files": Property(runs.files, _ALL),
    "moved": Property(world.moved, _ALL),
    "far": Property(world.far, _ALL),
    "flying": Property(world.flying, ("floating",)),
    "units": Property(world.units, _ALL),
    "order": Property(world.order, _ALL),
    "together": Property(world.together, _ALL),
    "impulses": Property(touch.impulses, ("contact",)),
    "dissipates": Property(touch.dissipates, ("contact",)),
    "rests": Property(touch.rests, ("contact",)),
    "limits": Property(touch.limits, ("limits",)),
}


def check(name: str, seed: int) -> None:
    """Check one property on the mechanism of a seed."""
    row = PROPERTIES[name]
    row.check(Case(seed, row.recipes[seed % len(row.recipes)], name))
