"""``Maximal(order=4)``: poses of the bodies at three nodes of a step, with the joints closed at each; smooth motion."""

from __future__ import annotations

import numpy as np

from leastaction.jit.status import Status
from leastaction.maximal.checks import body_of_row, too_fast
from leastaction.methods.base import Chunk, Clock, Control, Memory, counted_chunk, new_counts, saved_rows
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import TINY, Field, numbers
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.solve.solvers import Solver

SUPPORTS = frozenset({"loops", "couplings", "equality constraints"})
"""Features of a mechanism that order 4 honours."""


# How rows of the nodes combine (see ``loops.nodes``): minus the rows of nodes 0 and 1 and the columns of
# nodes 1 and 2 of b^T diag(w) b; there are no velocity constraints.
_BALANCE = np.array([[[8.0, -1.0], [-16.0, 8.0]], [[0.0, 0.0], [0.0, 0.0]]]) / 3.0


def past_of(model: Model) -> Memory:
    """Memory of the last two steps, empty: coordinates at their nodes, their lengths, and their number."""
    return {"past": np.zeros((4, model.nq)), "lengths": np.ones(2), "known": np.zeros(1, dtype=np.int64)}


def past_fields(model: Model) -> dict[str, Field]:
    """What ``past_of`` makes."""
    return {"past": Field((4, model.nq)), "lengths": Field((2,), TINY), "known": numbers(2)}


def roll(
    model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control, effort: FloatArray,
    solver: Solver,
) -> Chunk:  # fmt: skip
    """All steps in one compiled call; ``effort`` (nv,) bounds the control."""
    from leastaction.dynamics import legendre
    from leastaction.maximal.fourth import step as fourth_step

    rows = saved_rows(k, steps, every)
    q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
    passive = model.system.passive
    active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
    done, status, row = fourth_step.rollout(
        model.system, _BALANCE, effort, clock.uniform, clock.table(k, steps), k, steps, memory["x"], memory["p"],
        memory["past"], memory["lengths"], memory["known"], every, control.array[k : k + steps],
        control.callback.address if control.callback else 0, active, solver.tolerance, solver.iterations, q, v, count,
    )  # fmt: skip
    rows = saved_rows(k, done, every)
    failure = None
    if status:
        fast = ""
        if status == Status.NOT_CONVERGED:
            here, rates = np.zeros(model.nq), np.zeros(model.nv)
            legendre.leave_momenta(model.system, clock.at(k + done), memory["x"], memory["p"], here, rates)
            fast = too_fast(model, here, rates, 0.5 * clock.length(k + done), "half a step")
        failure = failure_of(
            status, iterations=solver.iterations, where=fast, body=body_of_row(model, row),
            part="half a step, where other solutions begin",
        )  # fmt: skip
    return counted_chunk(done, failure, q[:rows], v[:rows], count)
