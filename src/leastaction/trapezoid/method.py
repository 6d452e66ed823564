"""The Lie trapezoid: a variational integrator with average velocities by the logarithm (Lee et al. 2016)."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ConvergenceError, ModelError
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, counted_chunk, new_counts, saved_rows
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field, numbers
from leastaction.methods.parameters import PARAMETERS, collect, columns
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.solve.counts import LAST
from leastaction.solve.solvers import RIQN, Broyden, DenseNewton, Newton, Solver, solver_from
from leastaction.trapezoid.derivative import TrapezoidStep, trapezoid_derivative

_SOLVERS: tuple[type[Solver], ...] = (Newton, RIQN, Broyden, DenseNewton)
_GUESSES = {"hold": 0, "euler": 1, "dynamics": 2, "quadratic": 3}
_FORMS = ("invariant", "printed")


@final
class LieTrapezoid(Method):
    """Second-order variational integrator: trapezoidal action, average velocities by the logarithm.

    The discrete Euler-Lagrange equations are evaluated by the discrete recursive Newton-Euler algorithm (DRNEA) in
    O(n). Symplectic, symmetric, and it keeps momenta. Joints of every kind; no joint and no body may turn by half a
    turn or more within one step. Trees only: closed loops are refused.

    Args:
        solver: ``Newton()`` (default: exact direction in O(n)), ``RIQN()`` (the paper's quasi-Newton method, O(n)),
            ``Broyden()``, ``DenseNewton()`` (the paper's Algorithm 4 and a dense solve); or one of their names.
        guess: first iterate: "hold" (no motion), "euler" (the last step again), "dynamics" (with the acceleration),
            "quadratic" (continue the last two steps); the first three are the paper's IG1 to IG3.
        form: of the average velocity of a body: "invariant", the logarithm of its rotation and the displacement of its
            centre of mass, does not see a common velocity; "printed", the logarithm of its whole displacement, is that
            of the paper, which a common velocity disturbs.
    """

    name: ClassVar[str] = "lie-trapezoid"
    symplectic: ClassVar[bool] = True
    symmetric: ClassVar[bool] = True
    conserves: ClassVar[frozenset[str]] = frozenset({"linear momentum", "angular momentum"})
    has_derivative: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = PARAMETERS

    def __init__(self, solver: Any = None, *, guess: str = "quadratic", form: str = "invariant") -> None:
        self.solver = solver_from(solver, _SOLVERS, "LieTrapezoid")
        if guess not in _GUESSES:
            raise ModelError(f"LieTrapezoid: guess must be one of {', '.join(_GUESSES)}, got {guess!r}.")
        if form not in _FORMS:
            raise ModelError(f"LieTrapezoid: form must be one of {', '.join(_FORMS)}, got {form!r}.")
        self.guess = guess
        self.form = form

    @property
    def order(self) -> int:
        """2."""
        return 2

    @property
    def label(self) -> str:
        """``lie-trapezoid``, with ``printed`` for that form, and the solver where it is not Newton's method."""
        form = [] if self.form == _FORMS[0] else [self.form]
        return ":".join([self.name, *form, *([] if isinstance(self.solver, Newton) else [self.solver.name])])

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {"solver": self.solver.options(), "guess": self.guess, "form": self.form}

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and momenta of the tree's rows (discrete Legendre transform), and no past."""
        from leastaction.dynamics import legendre

        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        legendre.enter_momenta(model.system, state.q.copy(), state.v.copy(), x, u, p)
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
        """All steps in one compiled call."""
        from leastaction.solve.rollout import Drive, Out
        from leastaction.trapezoid import quasi as trapezoid_quasi
        from leastaction.trapezoid import step as trapezoid_step

        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
        passive, kind = model.system.passive, _SOLVERS.index(type(self.solver))
        drive = Drive(
            clock.uniform, clock.table(k, steps), k, steps, every,
            bool(len(passive.screw) or len(passive.ball) or len(passive.free)), control.array[k : k + steps, None],
            control.callback.address if control.callback else 0,
        )  # fmt: skip
        state = trapezoid_step.State._make(memory[name] for name in trapezoid_step.State._fields)
        solver = trapezoid_step.Solver(kind, _GUESSES[self.guess], self.solver.tolerance, self.solver.iterations)
        # Newton's method has a program of its own, which knows nothing of the others
        roll = trapezoid_quasi.trapezoid_rollout_by if kind else trapezoid_step.trapezoid_rollout
        done, status = roll(model.system, self.form == "printed", state, solver, drive, Out(q, v), count)
        rows = saved_rows(k, done, every)
        return counted_chunk(done, self._failure(status, int(count[LAST])), q[:rows], v[:rows], count)

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Exact derivative of the step, dense: O(n^3)."""
        tau = np.zeros(model.nv) if control is None else model.check_v(control, "control")
        memory, parts = self.start(model, state), columns(model, parameters, self.label)
        x, p = memory["x"].copy(), memory["p"].copy()
        chunk = self.rollout(model, memory, Clock(state.t, dt), 0, 1, 1, Control(tau[None]))
        model.raise_pending()
        if chunk.failure:
            raise ConvergenceError(f"{self.label}: {chunk.failure}", state=state)
        end = model.state(chunk.q[0], chunk.v[0], state.t + dt)
        step = TrapezoidStep(state.t, dt, x, p, memory["last"].copy(), tau, state, end, self.form == "printed")
        try:
            A, B, C = trapezoid_derivative(model, step, parts)
        except np.linalg.LinAlgError as error:
            message = f"{self.label}: the derivative of the step is singular here; take a smaller dt."
            raise ConvergenceError(message, state=state) from error
        return StepDerivative(A, B, end, collect(model, parts, C, parameters))

    def _failure(self, status: int, last: int) -> str | None:
        """Why a rollout stopped, in words; ``last`` is the number of iterations of the last step."""
        other = "" if isinstance(self.solver, Newton) else "; solver=leastaction.Newton() may"
        where = f", after {last} of {self.solver.iterations} iterations{other}"
        return failure_of(status, solver=type(self.solver).__name__, where=where)
