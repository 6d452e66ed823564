"""Loops and constraints of a first state: how many rows they have, and whether they hold."""

from __future__ import annotations

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State

# A state whose loops are open by more than this is not a start: radians, or a part of the arm of the bodies that a loop
# holds, their radius of gyration; and the same each second.
_OPEN = 1e-6


def row_count(model: Model) -> int:
    """Number of rows of loops and constraints."""
    table = model.system.constraints
    return model.constraint_size + (0 if table is None else int(table.kind[:, 4].sum()))


def row_sizes(model: Model, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
    """(m, 3) of the rows of loops and constraints: what makes an angle of a gap, the rounding of the gap, mobility.

    The last is how far a unit of a row's force moves its bodies along it, as if nothing else held them: its root is
    what a row in the metric of mass is compared with.
    """
    from leastaction.dynamics import row_sizes as kernel

    out = np.zeros((row_count(model), 3))
    kernel.row_sizes(model.system, t, x, u, out)
    model.raise_pending()
    return out


def check_first(model: Model, state: State) -> None:
    """Raise ModelError, as ``check_closed``, if loops or constraints do not hold at the first state of a run.

    Methods that let loops drift check nothing themselves: in a later state they are open, and its steps go on.
    """
    from leastaction.dynamics import entries

    if row_count(model) == 0:
        return
    x, u = np.zeros(model.nq), np.zeros(model.nv)
    entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
    check_closed(model, state.t, x, u)


def check_closed(model: Model, t: float, x: FloatArray, u: FloatArray) -> None:
    """Raise ModelError, naming the joint or constraint, if loops or constraints do not hold at a first state."""
    from leastaction.dynamics import legendre

    m = row_count(model)
    if m == 0:
        return
    gap, rate = np.zeros(m), np.zeros(m)
    legendre.gaps_and_rates(model.system, t, x, u, gap, rate)
    model.raise_pending()
    size, rounding, _ = row_sizes(model, t, x, u).T
    for what, found in (("open by", gap), ("opening at", rate)):
        beyond = np.abs(found) / (_OPEN * size + rounding)
        worst = int(np.nan_to_num(beyond, nan=np.inf).argmax())
        if not beyond[worst] <= 1.0:
            raise ModelError(
                f"'{model.name}': {_loop_name(model, worst)} is {what} {abs(found[worst]):.3g} at the first state; "
                "leastaction.project(model, state) gives the nearest state that closes it."
            )


def _loop_name(model: Model, row: int) -> str:
    """Words for the loop joint or constraint that a row belongs to."""
    for name, rows in model.loop_rows.items():
        if rows.start <= row < rows.stop:
            return f"loop joint '{name}'"
    for name, rows in model.coupling_rows.items():
        if rows.start <= row < rows.stop:
            return model.mechanism.couplings[name].label
    row -= model.constraint_size
    for constraint in model.mechanism.constraints:
        if constraint.kind != "inequality":
            if row < constraint.size:
                return constraint.label
            row -= constraint.size
    return "a constraint"
