"""Hermite-Simpson collocation, the implicit integrator of direct collocation (Hargraves and Paris 1987)."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ModelError
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, counted_chunk, new_counts, saved_rows
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field, numbers
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.solve.solvers import DenseNewton, Solver, solver_from

_FORMS = ("explicit", "implicit")


@final
class HermiteSimpson(Method):
    """Hermite-Simpson collocation of (q, v) as a first-order system, solved by Newton's method; order 4.

    A cubic through the ends of the step meets the equations of motion at its start, middle and end. This is the
    Lobatto IIIA method with three stages: symmetric on trees of screws, not symplectic. Newton's matrix is dense, so a
    step costs O(n^3); its derivatives are exact but for forces on bodies and for springs of a free joint's translation.
    Trees only. It is here to be compared with (Fan et al. 2018, Fig. 3): ``Galerkin(4)`` also has three points.

    Args:
        form: "explicit" takes the accelerations from forward dynamics; "implicit" keeps them as unknowns, with rows of
            inverse dynamics. The solution is the same; the implicit form needs no inverse of the mass matrix.
        solver: ``DenseNewton()``; its tolerance is that of the residual relative to the rates of the mechanism.
    """

    name: ClassVar[str] = "hermite-simpson"
    supports: ClassVar[frozenset[str]] = frozenset({"spline joints"})

    def __init__(self, form: str = "explicit", solver: Solver | dict[str, Any] | str | None = None) -> None:
        if form not in _FORMS:
            raise ModelError(f"HermiteSimpson: form must be one of {', '.join(_FORMS)}, got {form!r}.")
        self.form = form
        self.solver = solver_from(solver, (DenseNewton,), "HermiteSimpson")

    @property
    def order(self) -> int:
        """4."""
        return 4

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {"form": self.form, "solver": self.solver.options()}

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and rates of the tree's rows, and no past."""
        from leastaction.dynamics import entries

        x, u = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
        return {"x": x, "u": u, "past": np.zeros((2, model.nv)), "known": np.zeros(1, dtype=np.int64)}

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates, rates, and the accelerations of the last step, if there was one."""
        nv = model.nv
        return {"x": Field((model.nq,)), "u": Field((nv,)), "past": Field((2, nv)), "known": numbers(1)}

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q and v."""
        from leastaction.dynamics import entries

        q, v = np.zeros(model.nq), np.zeros(model.nv)
        entries.leave(model.system, memory["x"], memory["u"], q, v)
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call."""
        from leastaction.comparators.hermite_simpson import step as hermite_simpson_step

        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
        address = control.callback.address if control.callback else 0
        done, status = hermite_simpson_step.hermite_simpson_rollout(
            model.system, self.form == "implicit", clock.uniform, clock.table(k, steps), k,
            memory["x"], memory["u"], memory["past"],
            memory["known"], steps, every, control.array[k : k + steps], address, self.solver.tolerance,
            self.solver.iterations, q, v, count,
        )  # fmt: skip
        rows = saved_rows(k, done, every)
        return counted_chunk(done, failure_of(status, solver="Newton"), q[:rows], v[:rows], count)
