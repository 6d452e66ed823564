"""What the explicit methods share: memory in the rows' coordinates, and one compiled rollout."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.explicit.derivative import explicit_derivative
from leastaction.explicit.rows import enter_rows, leave_rows, row_fields
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State


class Explicit(Method):
    """An explicit method in local coordinates of the joints; see ``explicit/step.py``.

    Loops are held at acceleration level without stabilisation, so their drift is visible.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"loops", "couplings", "spline joints"})
    has_derivative: ClassVar[bool] = True

    @property
    @abstractmethod
    def butcher(self) -> FloatArray:
        """Butcher table (s + 1, s + 1): nodes in the first column, weights in the last row; empty for Euler."""

    @property
    def evaluations(self) -> int:
        """Forward dynamics per step."""
        return max(len(self.butcher) - 1, 1)

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and rates of the tree's rows."""
        return enter_rows(model, state)

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates and rates."""
        return row_fields(model)

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q and v."""
        return leave_rows(model, memory)

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call."""
        from leastaction.explicit import step as explicit_step
        from leastaction.solve.rollout import Drive, Out

        rows = saved_rows(k, steps, every)
        q, v = np.zeros((rows, model.nq)), np.zeros((rows, model.nv))
        address = control.callback.address if control.callback else 0
        drive = Drive(
            clock.uniform, clock.table(k, steps), k, steps, every, False, control.array[k : k + steps, None], address
        )
        done, status = explicit_step.explicit_rollout(
            model.system, self.butcher, memory["x"], memory["u"], drive, Out(q, v)
        )
        rows = saved_rows(k, done, every)
        return Chunk(done, failure_of(status), q[:rows], v[:rows], {"evaluations": done * self.evaluations})

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Exact derivative of one step by the chain rule, O(n^3); trees only."""
        if model.constraint_size:
            loops = ", ".join(model.held_names)
            raise UnsupportedError(
                f"linearize: '{model.name}' has closed loops or couplings ({loops}); "
                "Galerkin, Maximal and BDF have a derivative."
            )
        tau = np.zeros(model.nv) if control is None else model.check_v(control, "control")
        return explicit_derivative(model, self.butcher, state, self.step(model, state, dt, tau), tau, dt)
