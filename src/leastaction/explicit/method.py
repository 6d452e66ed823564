"""What the explicit methods share: memory in the rows' coordinates, and one compiled rollout."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State


def enter_rows(model: Model, state: State) -> Memory:
    """Memory of a state: coordinates x and rates u of the tree's rows."""
    from leastaction.dynamics import entries

    x, u = np.zeros(model.nq), np.zeros(model.nv)
    entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
    return {"x": x, "u": u}


def leave_rows(model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
    """The user's q and v of a memory with x and u."""
    from leastaction.dynamics import entries

    q, v = np.zeros(model.nq), np.zeros(model.nv)
    entries.leave(model.system, memory["x"], memory["u"], q, v)
    return q, v


def row_fields(model: Model) -> dict[str, Field]:
    """What ``enter_rows`` makes."""
    return {"x": Field((model.nq,)), "u": Field((model.nv,))}


class Explicit(Method):
    """An explicit method in local coordinates of the joints; see ``explicit/step.py``.

    Loops are held at acceleration level without stabilisation, so their drift is visible.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"loops", "spline joints"})

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

        rows = saved_rows(k, steps, every)
        q, v = np.zeros((rows, model.nq)), np.zeros((rows, model.nv))
        address = control.callback.address if control.callback else 0
        done, status = explicit_step.rollout(
            model.system, self.butcher, clock.uniform, clock.table(k, steps), k, memory["x"], memory["u"], steps, every,
            control.array[k : k + steps], address, q, v,
        )  # fmt: skip
        rows = saved_rows(k, done, every)
        return Chunk(done, failure_of(status), q[:rows], v[:rows], {"evaluations": done * self.evaluations})
