"""What a run did: a short table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Report:
    """Counts and times of a run.

    Attributes:
        method: name of the method.
        steps: steps done.
        dt: step in seconds.
        wall_time: seconds spent in the rollouts.
        counters: named totals such as evaluations.
        failure: why the run stopped early, or None.
        limits: joints whose limits, efforts or speeds were crossed: name -> words.
    """

    method: str
    steps: int = 0
    dt: float = 0.0
    wall_time: float = 0.0
    counters: dict[str, int] = field(default_factory=dict)
    failure: str | None = None
    limits: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Label and value of every line."""
        speed = self.steps * self.dt / self.wall_time if self.wall_time > 0 else 0.0
        out = [
            ("method", self.method),
            ("steps", f"{self.steps} of {self.dt:g} s"),
            ("wall time", f"{self.wall_time:.3g} s" + (f" ({speed:.3g} times real time)" if speed else "")),
        ]
        out += [(name, str(count)) for name, count in self.counters.items()]
        out += [(f"limit of {name}", words) for name, words in self.limits.items()]
        if self.failure:
            out.append(("stopped", self.failure))
        return out

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {value}" for label, value in rows)

    def __rich__(self) -> Any:
        from rich.table import Table

        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for label, value in self.rows():
            table.add_row(f"[dim]{label}[/dim]", value)
        return table
