"""Scalar functions that mean the same on a float, a NumPy array and a pack of SIMD lanes.

The mathematics of ``spatial`` is written once, on tuples of such scalars. Called from Python it works on
floats and on arrays (one array per component, so a whole batch at once). ``jit/decorators.py`` registers every
function marked with ``@source`` with Numba, so compiled kernels call the very same text; there the functions
of this file are replaced by compiled ones for floats and for packs. No branch depends on a value: both sides
are computed and ``pick`` selects, which is what arrays and packs need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
SOURCES: list[Callable[..., Any]] = []


def source(function: F) -> F:
    """Mark a tuple-style function as shared between Python and the compiled kernels."""
    SOURCES.append(function)
    return function


def sqrt(x: Any) -> Any:
    """Square root."""
    return np.sqrt(x)


def sincos(x: Any) -> tuple[Any, Any]:
    """Sine and cosine together."""
    return np.sin(x), np.cos(x)


def arctan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y)."""
    return np.arctan2(y, x)


def absolute(x: Any) -> Any:
    """Magnitude."""
    return np.abs(x)


def pick(x: Any, threshold: Any, above: Any, below: Any) -> Any:
    """``above`` where x > threshold, else ``below``."""
    return np.where(np.asarray(x) > threshold, above, below)[()]
