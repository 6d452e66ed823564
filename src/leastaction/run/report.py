"""What a run did: a short table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from leastaction.errors import ModelError

WIDE = 1e-3
"""A loop that opens by more than this part of the size of the mechanism is worth a warning."""

_OPENED = "take a smaller dt, or a method that holds them, such as galerkin or maximal"


@dataclass
class Report:
    """Counts and times of a run.

    Attributes:
        method: name of the method.
        steps: steps done.
        dt: step in seconds; the mean one where steps have lengths of their own.
        dt_range: shortest and longest step in seconds, or None where all are the same.
        wall_time: seconds spent in the rollouts; compiling does not count.
        counters: named totals such as evaluations.
        most_iterations: most iterations of the root finder in one step; 0 where there is none, or it is not known.
        failure: why the run stopped early, or None.
        limits: joints whose limits, efforts or speeds were crossed: name -> words.
        loop_gap: largest gap of loops and equality constraints at the saved rows, metres or radians; None without any.
        size: largest distance between bodies at the first row, metres, with which a gap is compared.
        chosen: why this method, where none was asked for.
        notes: what to know about the run, such as bodies that nothing can touch.
    """

    method: str
    steps: int = 0
    dt: float = 0.0
    wall_time: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    failure: str | None = None
    limits: dict[str, str] = field(default_factory=dict)
    dt_range: list[float] | None = None
    most_iterations: int = 0
    loop_gap: float | None = None
    size: float = 0.0
    chosen: str | None = None
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @staticmethod
    def from_dict(data: Any) -> Report:
        """A report from its ``to_dict``, checked."""
        if not isinstance(data, dict):
            raise ModelError(f"report: expected entries with names, got {data!r}.")
        for key, value in data.items():
            if key not in _CHECKS or not _CHECKS[key](value):
                raise ModelError(f"report: {key} is unknown, or of the wrong kind: {value!r}.")
        if "method" not in data:
            raise ModelError("report: method is missing.")
        return Report(**data)

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every line."""
        speed = self.steps * self.dt / self.wall_time if self.wall_time > 0 else 0.0
        lengths = "{:g} to {:g} s".format(*self.dt_range) if self.dt_range else f"{self.dt:g} s"
        out = [
            ("method", f"{self.method} (chosen {self.chosen})" if self.chosen else self.method),
            ("steps", f"{self.steps} of {lengths}"),
            ("wall time", f"{self.wall_time:.3g} s" + (f" ({speed:.3g} times real time)" if speed else "")),
        ]
        out += [(name, self._words(name, count)) for name, count in self.counters.items()]
        if self.loop_gap is not None:
            out.append(("loop gap", f"at most {self.loop_gap:.3g}"))
            if self.loop_gap > WIDE * (self.size or 1.0):
                out.append(("warning", f"the loops opened by {self.loop_gap:.3g} m or rad; {_OPENED}"))
        out += [("note", words) for words in self.notes]
        out += [(f"limit of {name}", words) for name, words in self.limits.items()]
        if self.failure:
            out.append(("stopped", self.failure))
        return out

    def _words(self, name: str, count: int) -> str:
        """A counter; iterations also for a step."""
        if name != "iterations" or not self.steps:
            return str(count)
        most = f", at most {self.most_iterations}" if self.most_iterations else ""
        return f"{count} ({count / self.steps:.3g} in a step{most})"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows)

    def __rich__(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        # names of joints are no markup
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for label, value in self.rows():
            table.add_row(Text(label, style="dim"), Text(value))
        return table


def _is_words(value: Any) -> bool:
    # no codes for a terminal; lines may end
    return isinstance(value, str) and value.replace("\n", "").isprintable()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _is_dict(value: Any, item: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(_is_words(k) and item(v) for k, v in value.items())


# what each entry of a report in a file must be
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "method": _is_words,
    "steps": _is_count,
    "dt": _is_seconds,
    "wall_time": _is_seconds,
    "counters": lambda value: _is_dict(value, _is_count),
    "most_iterations": _is_count,
    "failure": lambda value: value is None or _is_words(value),
    "limits": lambda value: _is_dict(value, _is_words),
    "notes": lambda value: isinstance(value, list) and all(map(_is_words, value)),
    "chosen": lambda value: value is None or _is_words(value),
    "loop_gap": lambda value: value is None or _is_seconds(value),
    "size": _is_seconds,
    "dt_range": lambda value: (
        value is None or (isinstance(value, list) and len(value) == 2 and all(map(_is_seconds, value)))
    ),
}
