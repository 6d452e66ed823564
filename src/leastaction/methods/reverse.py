"""What a method owes that goes back through a whole run by an adjoint of its own, and not step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from leastaction.methods.base import Chunk, Clock, Memory
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State


class Reverse(ABC):
    """Steps with a trace, and their adjoint, for one model; ``sensitivity.adjoint`` goes forth and back with it.

    Derivatives are by the state of the tree's rows: displacements x and rates u, (nv,) each.

    Attributes:
        model: the mechanism, with derivatives of all its forces.
        parameters: parameters of the mechanism by which there is a gradient.
    """

    parameters: ClassVar[tuple[str, ...]] = ()
    model: Model

    @abstractmethod
    def forward(self, memory: Memory, clock: Clock, first: int, steps: int, controls: FloatArray) -> tuple[Chunk, Any]:
        """Steps ``first`` .. ``first + steps - 1`` from their memory, which moves on, and their trace.

        Controls (steps of the run, nv) are those of the whole run.
        """

    @abstractmethod
    def back(
        self, start: Memory, times: FloatArray, controls: FloatArray, trace: Any, lx: FloatArray, lu: FloatArray,
        record: Any,
    ) -> tuple[FloatArray, int]:  # fmt: skip
        """Derivatives (steps, nv) by the user's controls, and the step that has none or -1.

        Args:
            start: memory before the first of these steps.
            times: (steps, 2) time and length of each step.
            controls: (steps, nv).
            trace: of ``forward``.
            lx: (steps + 2, nv) derivatives by the displacements of the states, from the one before the first step on;
                they grow on the way.
            lu: the same by the rates.
            record: of ``record``, written; or None.
        """

    @abstractmethod
    def record(self, steps: int) -> Any:
        """Room for states, controls and multipliers of the stages of so many steps."""

    @abstractmethod
    def changes(self, state: State) -> FloatArray:
        """(2 nv, 2 nv) changes of the rows' state by those of the user's: displacements and rates."""

    @abstractmethod
    def add_rows(self, record: Any, rows: FloatArray) -> None:
        """Add the derivatives by mass, first and second moment and place of every row (rows, 16) to ``rows``."""
