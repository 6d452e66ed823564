"""Semi-implicit (symplectic) Euler, the integrator of most robot simulators."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from leastaction.explicit.method import Explicit
from leastaction.model.checks import FloatArray


@final
class SemiImplicitEuler(Explicit):
    """u+ = u + dt a(q, u), then q+ = q moved by dt u+. First order.

    Symplectic only where the mass matrix is constant and forces depend on position alone (Hairer, Lubich, Wanner,
    Geometric Numerical Integration, sec. I.1); a mechanism with joints that turn has neither, so it is not claimed.
    """

    name: ClassVar[str] = "euler"

    @property
    def order(self) -> int:
        """1."""
        return 1

    @property
    def butcher(self) -> FloatArray:
        """None."""
        return np.zeros((0, 0))
