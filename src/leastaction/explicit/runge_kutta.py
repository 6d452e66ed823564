"""Explicit Runge-Kutta methods on the joint manifolds: 1 (explicit Euler), 2 (Heun), 4 (classical)."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ModelError
from leastaction.explicit.method import Explicit
from leastaction.model.checks import FloatArray

# nodes in the first column, coefficients of the stages, weights in the last row (its first entry is unused)
_TABLES = {
    1: [[0, 0], [0, 1]],
    2: [[0, 0, 0], [1, 1, 0], [0, 1 / 2, 1 / 2]],
    4: [
        [0, 0, 0, 0, 0],
        [1 / 2, 1 / 2, 0, 0, 0],
        [1 / 2, 0, 1 / 2, 0, 0],
        [1, 0, 0, 1, 0],
        [0, 1 / 6, 1 / 3, 1 / 3, 1 / 6],
    ],
}


@final
class RungeKutta(Explicit):
    """Explicit Runge-Kutta of order 1 (Euler), 2 (Heun) or 4 (the classical method).

    Rotations are integrated in the rotation vector from the start of the step, with the exact inverse of dexp, so the
    order holds on spherical and free joints and there is no singularity (Munthe-Kaas 1999).
    """

    name: ClassVar[str] = "rk"

    def __init__(self, order: int = 4) -> None:
        if isinstance(order, bool) or order not in _TABLES:
            raise ModelError(f"RungeKutta: order must be 1, 2 or 4, got {order!r}.")
        self._order = int(order)

    @property
    def order(self) -> int:
        """1, 2 or 4."""
        return self._order

    @property
    def label(self) -> str:
        """Such as ``rk4``."""
        return f"rk{self._order}"

    @property
    def butcher(self) -> FloatArray:
        """The method's table."""
        return np.array(_TABLES[self._order], dtype=float)

    def options(self) -> dict[str, Any]:
        """The order."""
        return {"order": self._order}
