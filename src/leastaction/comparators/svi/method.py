"""Comparator: the scalable variational integrator (Johnson and Murphey 2009), as a method for the experiments.

Lee et al. 2016 compare with it. It is not one of the library's methods: O(n^2) for an evaluation and O(n^3) for a
Jacobian, screws only, gravity only. Its solution is that of ``Galerkin(2)``.
"""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ModelError, UnsupportedError
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field, numbers
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.solve.solvers import RIQN, Broyden, DenseNewton, Solver, solver_from
from leastaction.tree.layout import BALL, KIND

_SOLVERS = {"riqn": 0, "dense": 1, "broyden": 2}
_GUESSES = {"hold": 0, "euler": 1, "quadratic": 2, "zero": 3}


@final
class SVI(Method):
    """Scalable variational integrator: the trapezoidal rule in generalised coordinates, evaluated in O(n^2).

    Args:
        solver: ``RIQN()``, ``DenseNewton()`` (with the O(n^3) Jacobian) or ``Broyden()``.
        guess: first iterate: "hold", "euler", "quadratic", or "zero" for q = 0.
    """

    name: ClassVar[str] = "svi"
    symplectic: ClassVar[bool] = True

    def __init__(self, solver: Solver | dict[str, Any] | str | None = None, guess: str = "quadratic") -> None:
        if guess not in _GUESSES:
            raise ModelError(f"SVI: guess must be one of {', '.join(_GUESSES)}, got {guess!r}.")
        self.solver = solver_from(solver, (RIQN, DenseNewton, Broyden), "SVI")
        self.guess = guess
        self.history: list[float] = []

    @property
    def order(self) -> int:
        """2."""
        return 2

    @property
    def label(self) -> str:
        """Such as ``svi:riqn``."""
        return f"svi:{self.solver.name}"

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {"solver": self.solver.options(), "guess": self.guess}

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and momenta of the tree's rows, and no past."""
        from leastaction.dynamics import legendre

        system = model.system
        if (system.tree.rows[1:, KIND] == BALL).any():
            raise UnsupportedError(f"'{model.name}' has ball joints; the comparator SVI takes screws only.")
        passive = system.passive
        if len(passive.screw) or system.forces is not None or system.loops is not None:
            raise UnsupportedError(
                f"'{model.name}' has springs, forces or loops; the comparator SVI takes gravity only."
            )
        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        legendre.enter_momenta(system, state.q.copy(), state.v.copy(), x, u, p)
        past = np.zeros(model.nv)
        return {"x": x, "p": p, "last": past, "before": past.copy(), "known": np.zeros(1, dtype=np.int64)}

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates, momenta, and the displacements of the last two steps, as far as there were any."""
        one = Field((model.nv,))
        return {"x": Field((model.nq,)), "p": one, "last": one, "before": one, "known": numbers(2)}

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q, and v = M^-1 p."""
        from leastaction.dynamics import legendre

        q, v = np.zeros(model.nq), np.zeros(model.nv)
        legendre.leave_momenta(model.system, 0.0, memory["x"], memory["p"], q, v)
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call; ``history`` then has the residuals of the last step's iterates."""
        from leastaction.comparators.svi import step as svi_step

        if control.callback is not None or len(control.array):
            raise UnsupportedError("the comparator SVI takes no control.")
        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), np.zeros(2, dtype=np.int64)
        history = np.full(self.solver.iterations + 1, np.nan)
        done, status = svi_step.svi_rollout(
            model.system, _SOLVERS[self.solver.name], _GUESSES[self.guess], clock.dt, k, memory["x"], memory["p"],
            memory["last"], memory["before"], memory["known"], steps, every, self.solver.tolerance,
            self.solver.iterations, q, v, history, count,
        )  # fmt: skip
        self.history = history[np.isfinite(history)].tolist()
        rows = saved_rows(k, done, every)
        counters = {"iterations": int(count[0]), "evaluations": int(count[1])}
        return Chunk(done, failure_of(status), q[:rows], v[:rows], counters)
