"""A progress bar for long work, and one line when kernels are being compiled."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Progress:
    """A bar over seconds of simulated time; does nothing unless shown."""

    def __init__(self, shown: bool, total: float) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._total = total
        self._shown = shown

    def __enter__(self) -> Progress:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.completed:.4g} of {task.total:.4g} s"))
            self._bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total)
        return self

    def at(self, seconds: float) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
