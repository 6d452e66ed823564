"""The memory that explicit methods have: coordinates and rates of the tree's rows."""

from __future__ import annotations

import numpy as np

from leastaction.methods.base import Memory
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
