"""A mechanism and a state as the text of the Python program that makes them.

The text is what runs: a failing seed prints the very program that failed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

import leastaction as la

HEAD = "import numpy as np\n\nimport leastaction as la\n"
"""How every printed program begins."""


class Source(str):
    """Python text that stands in a program as it is."""

    __slots__ = ()


def code(value: Any) -> str:
    """A value as Python text; floats with all their digits."""
    if isinstance(value, Source):
        return str(value)
    if isinstance(value, np.ndarray):
        return code(value.tolist())
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {code(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        inner = ", ".join(code(each) for each in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def call(function: str, *given: Any, **named: Any) -> Source:
    """The text of a call."""
    parts = [code(each) for each in given] + [f"{name}={code(each)}" for name, each in named.items()]
    return Source(f"{function}({', '.join(parts)})")


class Program:
    """Calls that make a mechanism, and the coordinates of a state.

    Attributes:
        lines: statements on a mechanism ``m``.
        q, v: coordinates and velocities by joint, SI or the units of the program.
        close: whether the state is to be projected on loops and constraints.
    """

    def __init__(self, lines: list[str], q: dict[str, Any], v: dict[str, Any], close: bool) -> None:
        self.lines, self.q, self.v, self.close = lines, q, v, close

    def text(self, name: str = "mechanism", model: str = "model", state: str = "x0") -> str:
        """A function that makes the mechanism, then the model and the state."""
        body = "".join(f"    {line}\n" for line in [*self.lines, "return m"])
        out = f"def {name}():\n{body}\n\n{model} = {name}().build()\n"
        out += f"{state} = {model}.state(q={code(self.q)}, v={code(self.v)})\n"
        if self.close:
            out += f"{state} = la.project({model}, {state})\n"
        return out

    @cached_property
    def made(self) -> dict[str, Any]:
        """What the program leaves when it has run: ``mechanism``, ``model`` and ``x0``."""
        space: dict[str, Any] = {}
        exec(compile(HEAD + "\n\n" + self.text(), "<fuzz>", "exec"), space)
        return space

    def mechanism(self) -> la.Mechanism:
        """A new mechanism."""
        return self.made["mechanism"]()

    @property
    def model(self) -> la.Model:
        """The model, built once."""
        return self.made["model"]

    @property
    def state(self) -> la.State:
        """The state."""
        return self.made["x0"]
