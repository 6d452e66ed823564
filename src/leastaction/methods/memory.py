"""What the memory of a method holds: names, shapes and ranges, declared by the method and checked in one place.

A run may come from a stranger's file, and compiled code does not look whether a number that it counts or indexes with
is within an array. So each method declares its memory (``Method.layout``), and nothing else reaches a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import ModelError

TINY = float(np.finfo(float).tiny)
"""The least positive number: lengths of steps are divided by."""


@dataclass(frozen=True, eq=False)
class Field:
    """One array of a method's memory.

    Attributes:
        shape: its shape.
        low: least value; a number, or an array that broadcasts to the shape.
        high: largest value, likewise.
        whole: whether it holds whole numbers (int64) rather than floats (float64).
        among: the only values there may be, or None.
    """

    shape: tuple[int, ...]
    low: Any = -np.inf
    high: Any = np.inf
    whole: bool = False
    among: Sequence[int] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return np.dtype(np.int64 if self.whole else np.float64)


def numbers(most: Any, shape: tuple[int, ...] = (1,)) -> Field:
    """Whole numbers from 0 to ``most``, with which kernels count or index."""
    return Field(shape, 0, most, True)


def check_memory(label: str, layout: Mapping[str, Field], memory: Mapping[str, Any]) -> None:
    """Raise ModelError unless the memory has exactly the arrays of the layout, finite and within their ranges."""
    if memory.keys() != layout.keys():
        names = f"{sorted(memory)}, expected {sorted(layout)}"
        raise ModelError(f"{label}: the arrays of the method's memory are {names}.")
    for name, field in layout.items():
        given = memory[name]
        if given.shape != field.shape or given.dtype != field.dtype:
            wanted = f"expected {field.dtype} of shape {field.shape}"
            raise ModelError(f"{label}: memory '{name}' is {given.dtype} of shape {given.shape}, {wanted}.")
        if not np.isfinite(given).all():
            raise ModelError(f"{label}: memory '{name}' is not finite.")
        wrong = (given < field.low) | (given > field.high)
        if field.among is not None:
            wrong |= ~np.isin(given, field.among)
        if wrong.any():
            first = tuple(map(int, np.argwhere(wrong)[0]))
            raise ModelError(f"{label}: memory '{name}' has {given[first]} at {list(first)}, which cannot be.")
