"""Variational integrator in maximal coordinates (Bruedigam et al. 2020, 2023), solved at the price of minimal ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ConvergenceError, ModelError
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.methods.galerkin import check_closed
from leastaction.model.checks import FloatArray
from leastaction.model.couplings import elimination
from leastaction.model.forces import PointSpring
from leastaction.model.model import Model, State
from leastaction.solve.solvers import Newton, solver_from

_FAILURES = {
    1: "the root finder did not converge ({iterations} iterations allowed); take a smaller dt",
    2: "the state is no longer finite; take a smaller dt, or check forces and control",
    3: "the constraints leave no velocity; they contradict each other here",
    4: "body '{body}' turns by 90 degrees or more in one step, where the discrete momentum has its maximum; "
    "take a smaller dt",
}


@final
class Maximal(Method):
    """Variational integrator of order 2 on the poses of the bodies: symplectic, symmetric, and it keeps momenta.

    Args:
        order: 2.
        solver: ``Newton()``; sets tolerance and most iterations.
        start: "legendre" (order 2), or "seed": the first step moves by dt times the rates, order 1, as the papers do.
    """

    name: ClassVar[str] = "maximal"
    symplectic: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    conserves: ClassVar[frozenset[str]] = frozenset({"linear momentum", "angular momentum", "constraints"})
    supports: ClassVar[frozenset[str]] = frozenset({"loops", "equality constraints", "velocity constraints"})

    def __init__(self, order: int = 2, *, solver: Any = None, start: str = "legendre") -> None:
        if order != 2:
            raise ModelError(f"Maximal: order must be 2, got {order!r}.")
        if start not in ("legendre", "seed"):
            raise ModelError(f'Maximal: start must be "legendre" or "seed", got {start!r}.')
        self.first_step = start
        self.solver = solver_from(solver, (Newton,), "Maximal")

    @property
    def order(self) -> int:
        """2, or 1 with the start of the papers."""
        return 2 if self.first_step == "legendre" else 1

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {"order": 2, "solver": self.solver.options(), "start": self.first_step}

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and momenta of the tree's rows (discrete Legendre transform), and no past."""
        from leastaction.kernels import legendre

        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        legendre.enter(model.system, state.q.copy(), state.v.copy(), x, u, p)
        check_closed(model, state.t, x, u)
        return {
            "x": x, "p": p, "past": np.zeros((model.nv, 3)), "lengths": np.ones(3),
            "known": np.zeros(1, dtype=np.int64),
            "fresh": np.full(1, int(self.first_step == "seed"), dtype=np.int64),
        }  # fmt: skip

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q, and v = M^-1 p."""
        from leastaction.kernels import legendre

        q, v = np.zeros(model.nq), np.zeros(model.nv)
        if not legendre.leave(model.system, 0.0, memory["x"], memory["p"], q, v):
            raise ConvergenceError(f"{self.label}: {_FAILURES[3]}")
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call."""
        from leastaction.kernels import bodywise_step

        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), np.zeros(4, dtype=np.int64)
        address = control.callback.address if control.callback else 0
        passive = model.system.passive
        active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
        done, status, row = bodywise_step.rollout(
            model.system, couplings(model), None, clock.uniform, clock.table(k, steps), k, steps,
            memory["x"], memory["p"], memory["past"], memory["lengths"], memory["known"], memory["fresh"], every,
            control.array[k : k + steps], address, active, self.solver.tolerance, self.solver.iterations, q, v, count,
        )  # fmt: skip
        rows = saved_rows(k, done, every)
        counters = {"iterations": int(count[0]), "evaluations": int(count[1]), "backtracks": int(count[2])}
        failure = None
        if status:
            failure = _FAILURES[status].format(iterations=self.solver.iterations, body=body_of_row(model, row))
        return Chunk(done, failure, q[:rows], v[:rows], counters)


def body_of_row(model: Model, row: int) -> str:
    """Name of the body on a row of the tree."""
    return next((name for name in model.body_names if model.places[name].row == row), "world")


@lru_cache(maxsize=64)
def couplings(model: Model) -> Any:
    """Plan of the elimination where bodies are coupled beside the tree, else None."""
    from leastaction.kernels.bodywise_graph import Couplings

    table, parents = model.system.constraints, model.system.tree.rows[:, 0]
    parts: list[tuple[int, int, list[int]]] = []
    for name, rows in model.loop_rows.items():
        joint = model.mechanism.joints[name]
        ends = [model.places[joint.parent].row, model.places[joint.child].row]
        parts.append((rows.start, rows.stop - rows.start, ends))
    if table is not None:
        for _, first, bodies, start, size in table.kind.tolist():
            rows_of = table.bodies[first : first + bodies].tolist()
            for at in range(0, size, 6):
                parts.append((model.constraint_size + start + at, min(6, size - at), rows_of))
    pairs = []
    for force in model.mechanism.forces:
        if isinstance(force, PointSpring):
            pairs.append((model.places[force.a].row, model.places[force.b].row))
    pairs = [(a, b) for a, b in pairs if a > 0 and b > 0 and a != b]
    if not parts and not pairs:
        return None
    return Couplings(**elimination(parents.tolist(), pairs, parts))
