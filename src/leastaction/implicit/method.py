"""Implicit methods on the reduced equations of motion: BDF, SDIRK2, linearly implicit Euler (Sueda 2021)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.implicit.forms import (
    BDF1_CODE,
    BDF2_CODE,
    LINEAR_CODE,
    SDIRK2_CODE,
    differentiable,
    one_form,
)
from leastaction.implicit.reverse import ImplicitReverse, implicit_derivative
from leastaction.jit.status import Status
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, counted_chunk, new_counts, saved_rows
from leastaction.methods.closing import check_closed, row_count
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.failures import failure_of
from leastaction.methods.memory import Field, numbers
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model, State
from leastaction.solve.solvers import DenseNewton, Solver, solver_from
from leastaction.tree.layout import IU

_CHART_EXP, _CHART_FIXED, _CHART_AUTO = 0, 1, 2
EULER_CHARTS = tuple(a + b + c for a in "xyz" for b in "xyz" for c in "xyz" if a != b and b != c)
"""Names of the twelve Euler charts."""

FREE_ORDERS = ("TR", "RT")
"""Orders of a free joint: translation then rotation, or rotation then translation along the axes of the child."""


def chart_codes(chart: Any, where: str) -> tuple[int, int]:
    """Mode and code of ``tree.charts`` from the name of a chart."""
    if chart == "exp":
        return _CHART_EXP, -1
    if chart == "euler":
        return _CHART_AUTO, -1
    if chart not in EULER_CHARTS:
        names = ", ".join(EULER_CHARTS)
        raise ModelError(f"{where}: chart must be exp, euler or one of {names}, got {chart!r}.")
    a, b, c = ("xyz".index(axis) for axis in chart)
    return _CHART_FIXED, 9 * a + 3 * b + c


def check_order(free: Any, where: str) -> str:
    """Checked order of free joints."""
    if free not in FREE_ORDERS:
        raise ModelError(f'{where}: free must be "TR" (translation, then rotation) or "RT", got {free!r}.')
    return str(free)


# codes of charts, as ``tree.charts`` has them: the exponential one, and Euler charts whose neighbouring axes differ
CHARTS = (-1, *(9 * a + 3 * b + c for a in range(3) for b in range(3) for c in range(3) if a != b and b != c))


class Implicit(Method):
    """What the implicit methods share; see ``implicit/stage.py`` and, for loops, ``implicit/loops.py``.

    Attributes:
        chart: coordinates of rotations inside a step.
        free: order of free joints inside a step.
        solver: Newton's method with a dense matrix; its tolerance is relative to the momentum of the mechanism.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"loops", "couplings", "equality constraints", "spline joints"})
    has_derivative: ClassVar[bool] = True
    chart: str
    free: str
    solver: Solver

    def inner(self, model: Model) -> Model:
        """The model in the order of free joints that the method works with."""
        if self.free == "TR" or not len(model.system.coordinates.free):
            return model
        from leastaction.model.build import turned_model

        return turned_model(model)

    @property
    def share(self) -> float:
        """Part of the gap of a loop that a step closes, where constraints hold for velocities only."""
        return 0.0

    @property
    @abstractmethod
    def code(self) -> int:
        """Number of the method in ``implicit/step.py``."""

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and rates of the tree's rows, and no past."""
        from leastaction.dynamics import entries

        model = self.inner(model)
        x, u = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
        if self.code != LINEAR_CODE:
            check_closed(model, state.t, x, u)
        return {
            "x": x, "u": u, "past_x": x.copy(), "past_u": u.copy(), "past_h": np.zeros(1),
            "known": np.zeros(1, dtype=np.int64), "past": np.zeros(model.nv),
            "chart": np.full(len(model.system.tree.rows), -1, dtype=np.int64),
        }  # fmt: skip

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates and rates now and before, the last step and acceleration, and the charts of balls."""
        nq, nv, rows = model.nq, model.nv, len(self.inner(model).system.tree.rows)
        return {
            "x": Field((nq,)), "u": Field((nv,)), "past_x": Field((nq,)), "past_u": Field((nv,)),
            "past_h": Field((1,), 0.0), "known": numbers(1), "past": Field((nv,)),
            "chart": Field((rows,), whole=True, among=CHARTS),
        }  # fmt: skip

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q and v."""
        from leastaction.dynamics import entries

        model = self.inner(model)
        q, v = np.zeros(model.nq), np.zeros(model.nv)
        entries.leave(model.system, memory["x"], memory["u"], q, v)
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call."""
        return self.traced(model, memory, clock, k, steps, every, control, self.no_trace(model))

    def traced(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control, trace: Any
    ) -> Chunk:
        """The same; states, charts and coordinates of the stages are written to a trace of ``make_trace``."""
        from leastaction.implicit import stage as implicit_stage
        from leastaction.implicit import step as implicit_step
        from leastaction.solve.rollout import Drive, Out

        model = self.inner(model)
        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
        mode, code = chart_codes(self.chart, type(self).__name__)
        drive = Drive(
            clock.uniform, clock.table(k, steps), k, steps, every, False, control.array[k : k + steps, None],
            control.callback.address if control.callback else 0,
        )  # fmt: skip
        done, status, row = implicit_step.implicit_rollout(
            one_form(model), implicit_step.Rule(self.code, mode, code, self.share),
            implicit_step.State._make(memory[name] for name in implicit_step.State._fields),
            implicit_stage.Solver(self.solver.tolerance, self.solver.iterations), drive, Out(q, v), count, trace,
        )  # fmt: skip
        rows = saved_rows(k, done, every)
        return counted_chunk(done, self._failure(model, status, row), q[:rows], v[:rows], count)

    def make_trace(self, model: Model, steps: int) -> Any:
        """Arrays for ``traced``."""
        from leastaction.implicit.step import Trace

        rows = len(model.system.tree.rows)
        return Trace(
            np.zeros((steps + 2, model.nq)), np.zeros((steps + 2, model.nv)), np.zeros((steps, 2, model.nv)),
            np.zeros((steps, rows), dtype=np.int64),
        )  # fmt: skip

    def no_trace(self, model: Model) -> Any:
        """The empty trace."""
        from leastaction.implicit.step import Trace

        none = np.zeros((0, 0), dtype=np.int64)
        return Trace(np.zeros((0, model.nq)), np.zeros((0, model.nv)), np.zeros((0, 2, model.nv)), none)

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Exact derivative of one step from a state without a past, by the adjoint; O(n^4)."""
        tau = np.zeros((1, model.nv)) if control is None else model.check_v(control, "control")[None]
        memory, trace = self.start(model, state), self.make_trace(model, 1)
        chunk = self.traced(model, memory, Clock(state.t, dt), 0, 1, 1, Control(tau), trace)
        model.raise_pending()
        if chunk.failure:
            raise ConvergenceError(f"{self.label}: {chunk.failure}", state=state)
        end = model.state(chunk.q[0], chunk.v[0], state.t + dt)
        out = implicit_derivative(differentiable(self.inner(model)), self.code, state, end, dt, tau, trace)
        if out is None:
            raise ConvergenceError(f"{self.label}: the matrix of the step is singular; take a smaller dt.", state=state)
        return out

    def reverse(self, model: Model) -> ImplicitReverse:
        """The adjoint of BDF and SDIRK2."""
        if self.free != "TR":
            raise UnsupportedError(f'gradient: {self.label} with free="RT" has no adjoint; take free="TR".')
        return ImplicitReverse(self.make_trace, self.traced, self.code, model)

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {"chart": self.chart, "free": self.free, "solver": self.solver.options()}

    def _failure(self, model: Model, status: int, row: int) -> str | None:
        """Why a rollout stopped, in words."""
        return failure_of(
            status, solver="Newton", iterations=self.solver.iterations, chart=self.chart,
            joint=joint_of_row(model, row) if status == Status.SINGULAR_CHART else "",
        )  # fmt: skip


def joint_of_row(model: Model, row: int) -> str:
    """Joint to which a row of the tree belongs."""
    rate = model.system.coordinates.v[model.system.tree.rows[row, IU]]
    return next(name for name, view in model.joints.items() if view.v.start <= rate < view.v.stop)


@final
class BDF(Implicit):
    """Backward differentiation of order 1 (implicit Euler) or 2: for stiff springs, cables and contact forces.

    The unknowns of a step are the coordinates at its end; Newton's matrix is exact, with the derivatives K and D of all
    forces, and dense: O(n^3). BDF2 takes its first step with SDIRK2, and unequal steps with coefficients of their own;
    the state before is part of its memory. Both lose energy, BDF1 much. ``leastaction.gradient`` has their adjoint.
    Closed loops and equality constraints hold at the end of every step, for positions and for velocities.

    Args:
        order: 1 or 2.
        chart: coordinates of rotations inside a step: "exp" (rotation vectors from the start of the step), "euler" (the
            best of the twelve Euler charts, changed where it becomes poor), or one of them, such as "xyz" or "zxz".
        free: order of a free joint inside a step: "TR", the position of the centre of mass along parent axes and then
            the rotation, or "RT", the rotation and then the position along child axes, which drifts (docs/theory).
        solver: ``DenseNewton()``; its tolerance is relative to the momentum of the mechanism.
    """

    name: ClassVar[str] = "bdf"

    def __init__(self, order: int = 2, *, chart: str = "exp", free: str = "TR", solver: Any = None) -> None:
        if isinstance(order, bool) or order not in (1, 2):
            raise ModelError(f"BDF: order must be 1 or 2, got {order!r}.")
        chart_codes(chart, "BDF")
        self._order, self.chart, self.free = int(order), chart, check_order(free, "BDF")
        self.solver = solver_from(solver, (DenseNewton,), "BDF")

    @property
    def order(self) -> int:
        """1 or 2."""
        return self._order

    @property
    def label(self) -> str:
        """``bdf:1`` or ``bdf:2``."""
        return f"bdf:{self._order}"

    @property
    def code(self) -> int:
        """Number of the method in the kernels."""
        return BDF1_CODE if self._order == 1 else BDF2_CODE

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {"order": self._order, **super().options()}


@final
class SDIRK2(Implicit):
    """Singly diagonally implicit Runge-Kutta method of order 2 with two stages, L-stable: the start of BDF2.

    Each stage has the same form as a step of BDF1, so a step costs two of them.

    Args:
        chart: as in ``BDF``.
        free: as in ``BDF``.
        solver: as in ``BDF``.
    """

    name: ClassVar[str] = "sdirk2"

    def __init__(self, *, chart: str = "exp", free: str = "TR", solver: Any = None) -> None:
        chart_codes(chart, "SDIRK2")
        self.chart, self.free = chart, check_order(free, "SDIRK2")
        self.solver = solver_from(solver, (DenseNewton,), "SDIRK2")

    @property
    def order(self) -> int:
        """2."""
        return 2

    @property
    def code(self) -> int:
        """Number of the method in the kernels."""
        return SDIRK2_CODE


@final
class LinearlyImplicitEuler(Implicit):
    """Linearly implicit Euler: one linear system with M - h D - h^2 K, no iteration of Newton's, order 1.

    K and D are the derivatives of the laws of all forces and springs at the start of the step; gravity, Coriolis and
    centrifugal forces count as constant. It is as cheap as one iteration of ``BDF(1)``, and stable for stiff forces
    that are nearly linear. Loops and equality constraints hold for the velocities, with the rows at the start of the
    step; so positions drift, unless ``baumgarte`` takes them back.

    Args:
        linear: "direct", a dense factorisation in O(n^3); or "cg", conjugate gradients with products in O(n) and the
            inverse inertia product of ``leastaction.redmax`` (Algorithm 10) as preconditioner, for trees. Where the
            matrix is not symmetric they are biconjugate ones, stabilised.
        baumgarte: part of the gap of loops and constraints at the start of a step that the step closes, 0 to 1.
        tolerance: of the residual of "cg", relative to the right-hand side.
        free: as in ``BDF``.
        preconditioned: False for "cg" without the preconditioner, to compare.
    """

    name: ClassVar[str] = "linearly-implicit-euler"
    has_derivative: ClassVar[bool] = False

    def __init__(
        self, linear: str = "direct", *, baumgarte: float = 0.0, free: str = "TR", tolerance: float = 1e-13,
        preconditioned: bool = True,
    ) -> None:  # fmt: skip
        if linear not in ("direct", "cg"):
            raise ModelError(f"LinearlyImplicitEuler: linear must be direct or cg, got {linear!r}.")
        self.chart, self.solver, self.linear, self.preconditioned = "exp", DenseNewton(), linear, bool(preconditioned)
        self.free = check_order(free, "LinearlyImplicitEuler")
        self.baumgarte = check_number(baumgarte, "LinearlyImplicitEuler: baumgarte", nonnegative=True)
        if self.baumgarte > 1.0:
            raise ModelError(f"LinearlyImplicitEuler: baumgarte must be from 0 to 1, got {baumgarte!r}.")
        self.tolerance = check_number(tolerance, "LinearlyImplicitEuler: tolerance", positive=True)

    @property
    def order(self) -> int:
        """1."""
        return 1

    @property
    def label(self) -> str:
        """``linearly-implicit-euler``, with ``:cg`` where it has no matrix."""
        return self.name if self.linear == "direct" else f"{self.name}:cg"

    @property
    def share(self) -> float:
        """Part of the gap that a step closes."""
        return self.baumgarte

    @property
    def code(self) -> int:
        """Number of the method in the kernels."""
        return LINEAR_CODE

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {
            "linear": self.linear, "baumgarte": self.baumgarte, "free": self.free, "tolerance": self.tolerance,
            "preconditioned": self.preconditioned,
        }  # fmt: skip

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and rates of the tree's rows, and no past."""
        if self.linear == "cg" and row_count(model):
            raise UnsupportedError(
                f"'{model.name}' has closed loops or constraints, which {self.label} cannot honour; "
                'linear="direct" can.'
            )
        return super().start(model, state)

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call."""
        # derivatives of forces are part of the step
        given, model = model, differentiable(self.inner(model))
        if self.linear == "direct":
            chunk = super().rollout(model, memory, clock, k, steps, every, control)
        else:
            chunk = self._conjugate(model, memory, clock, k, steps, every, control)
        if len(model.callbacks) > len(given.callbacks):
            model.raise_pending()
        return chunk

    def _conjugate(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """The same by conjugate gradients."""
        from leastaction.implicit import cg as implicit_cg
        from leastaction.solve.rollout import Drive, Out

        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), new_counts(rows)
        drive = Drive(
            clock.uniform, clock.table(k, steps), k, steps, every, False, control.array[k : k + steps, None],
            control.callback.address if control.callback else 0,
        )  # fmt: skip
        options = (self.preconditioned, self.tolerance, 50 + 20 * model.nv)
        done, status = implicit_cg.gradient_rollout(
            one_form(model), options, memory["x"], memory["u"], drive, Out(q, v), count
        )
        rows = saved_rows(k, done, every)
        return counted_chunk(done, self._failure(model, status, 0), q[:rows], v[:rows], count)

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Not there: it would need second derivatives of the forces."""
        raise UnsupportedError(f"{self.label} has no derivative of its step; use BDF(1).")

    def _failure(self, model: Model, status: int, row: int) -> str | None:
        """Why a rollout stopped, in words."""
        if status == Status.NOT_CONVERGED and self.linear == "cg":
            return "conjugate gradients did not converge, or a joint turns too far; take a smaller dt, or linear=direct"
        if status == Status.NOT_CONVERGED:
            return "the matrix of the step is singular, or a joint turns too far in it; take a smaller dt"
        return super()._failure(model, status, row)
