"""Built-in mechanisms by name, as the command line writes them: ``pendulum``, ``chain:10``, ``chain:10:spherical``."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

from leastaction.errors import ModelError
from leastaction.model.mechanism import Mechanism
from leastaction.models.franka_panda import arm
from leastaction.models.ghost_minitaur import minitaur
from leastaction.models.jansen import strandbeest
from leastaction.models.linkages import bricard, four_bar, n_four_bar, slider_crank
from leastaction.models.parts import LARGEST_COUNT
from leastaction.models.simple import (
    cart_pole,
    chain,
    double_pendulum,
    free_body,
    pendulum,
    spherical_pendulum,
    spinning_top,
)
from leastaction.models.unitree_a1 import quadruped


class Entry(NamedTuple):
    """A mechanism of the registry.

    Attributes:
        function: makes it.
        parameter: what may follow its name after a colon, in words; empty if nothing.
    """

    function: Callable[..., Mechanism]
    parameter: str


REGISTRY: dict[str, Entry] = {
    "arm": Entry(arm, ""),
    "bricard": Entry(bricard, ""),
    "cart_pole": Entry(cart_pole, ""),
    "chain": Entry(chain, "the number of links, and if wanted the kind of joint: chain:10 or chain:10:spherical"),
    "double_pendulum": Entry(double_pendulum, ""),
    "four_bar": Entry(four_bar, ""),
    "free_body": Entry(free_body, ""),
    "minitaur": Entry(minitaur, ""),
    "n_four_bar": Entry(n_four_bar, "the number of windows: n_four_bar:2"),
    "pendulum": Entry(pendulum, "its length in metres, if not 1: pendulum or pendulum:0.5"),
    "quadruped": Entry(quadruped, ""),
    "slider_crank": Entry(slider_crank, ""),
    "spherical_pendulum": Entry(spherical_pendulum, "its length in metres, if not 1: spherical_pendulum:0.5"),
    "spinning_top": Entry(spinning_top, ""),
    "strandbeest": Entry(strandbeest, ""),
}
"""Name -> (function, what its parameter is)."""


def by_name(text: str) -> Mechanism:
    """The built-in mechanism that ``text`` names, such as "pendulum" or "chain:10"; see ``REGISTRY``."""
    if not isinstance(text, str):
        raise ModelError(f"built-in mechanism: expected a name such as 'chain:10', got {text!r}.")
    name, colon, parameter = text.partition(":")
    if name not in REGISTRY:
        close = difflib.get_close_matches(name, REGISTRY, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise ModelError(f"there is no built-in mechanism {name!r}; there are {', '.join(REGISTRY)}.{hint}")
    function, description = REGISTRY[name]
    # nothing after the name
    if not colon:
        if name in _NEEDED:
            raise ModelError(f"{name}: a parameter is missing; after the name comes {description}.")
        return function()
    # a parameter
    if name not in _READERS:
        raise ModelError(f"{name}: takes no parameter, got {text!r}; write '{name}'.")
    try:
        arguments = _READERS[name](parameter)
    except ValueError as error:
        raise ModelError(f"{name}: cannot read {parameter!r}; after the name comes {description}.") from error
    return function(**arguments)


def _read_chain(parameter: str) -> dict[str, Any]:
    """Number of links, and the kind of joint after a second colon."""
    count, colon, joint = parameter.partition(":")
    return {"n": _count(count), **({"joint": joint} if colon else {})}


def _count(parameter: str) -> int:
    """A whole number; long strings of digits are refused before they are converted."""
    if not parameter.isascii() or not parameter.isdigit() or len(parameter) > 20:
        raise ValueError(f"not a whole number from 1 to {LARGEST_COUNT}")
    return int(parameter)


# what stands after the colon, as arguments of the function
_READERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "chain": _read_chain,
    "n_four_bar": lambda parameter: {"n": _count(parameter)},
    "pendulum": lambda parameter: {"length": float(parameter)},
    "spherical_pendulum": lambda parameter: {"length": float(parameter)},
}

# names that mean nothing without their parameter
_NEEDED = ("chain", "n_four_bar")
