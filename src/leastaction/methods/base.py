"""What every integration method is: one abstract base, listed once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leastaction.contact.layout import CONTACT_COLUMNS
from leastaction.errors import ModelError, UnsupportedError
from leastaction.jit.callbacks import Callback, control_at
from leastaction.jit.status import Status
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.memory import Field, check_memory
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.solve.counts import CUTS, EVALUATIONS, ITERATIONS, MOST, TOTALS

IntArray = NDArray[np.int64]
Memory = dict[str, FloatArray]
"""What a method carries from step to step besides (t, q, v): named arrays, saved with checkpoints."""


@dataclass(frozen=True, eq=False)
class Clock:
    """Times of the steps, with k counted from the start of the run, so that a resumed run has the same times.

    With one step length, time is t0 + k dt. With a length for each step, times are the running sum from t0 on.

    Attributes:
        t0: time of the first state, seconds.
        dt: step in seconds, or an array (steps,) of them.
        first: number of the step that begins at t0, for a clock of a part of a run; lengths of their own only.
    """

    t0: float
    dt: float | FloatArray
    first: int = 0

    @property
    def uniform(self) -> bool:
        """Whether all steps have one length."""
        return not isinstance(self.dt, np.ndarray)

    @cached_property
    def times(self) -> FloatArray:
        """Times (steps + 1,) of steps with lengths of their own."""
        # one sum after the other: the times of a run do not depend on where it was cut
        return np.cumsum(np.concatenate([[self.t0], np.asarray(self.dt)]))

    def at(self, k: int) -> float:
        """Time of step k."""
        if not isinstance(self.dt, np.ndarray):
            return self.t0 + k * self.dt
        return float(self.times[k - self.first])

    def at_steps(self, k: Any) -> FloatArray:
        """Times (rows,) of steps k (rows,)."""
        if not isinstance(self.dt, np.ndarray):
            return np.asarray(self.t0 + k * self.dt, dtype=float)
        return np.asarray(self.times[k - self.first])

    def length(self, k: int) -> float:
        """Seconds from step k to the next."""
        return float(self.dt[k - self.first]) if isinstance(self.dt, np.ndarray) else self.dt

    def table(self, k: int, steps: int) -> FloatArray:
        """What ``solve.clock.tick`` reads: (1, 2) first time and step if uniform, else (steps, 2) for steps k on."""
        if not isinstance(self.dt, np.ndarray):
            return np.array([[self.t0, self.dt]])
        part = slice(k - self.first, k - self.first + steps)
        return np.ascontiguousarray(np.column_stack([self.times[:-1][part], self.dt[part]]))

    def cut(self, steps: int) -> Clock:
        """The clock of the first ``steps`` steps."""
        return replace(self, dt=self.dt[:steps]) if isinstance(self.dt, np.ndarray) else self

    def extended(self, dt: FloatArray) -> Clock:
        """The clock of this run and of further steps with lengths ``dt`` (steps,)."""
        return replace(self, dt=np.concatenate([np.atleast_1d(self.dt), dt]))

    @property
    def words(self) -> str:
        """The step, or the smallest and the largest one, with the unit."""
        if not isinstance(self.dt, np.ndarray):
            return f"{self.dt:g} s"
        return f"{self.dt.min():g} to {self.dt.max():g} s" if len(self.dt) else "steps of their own"


@dataclass(frozen=True, eq=False)
class Control:
    """Generalised forces of a run: none, an array (steps, nv), or a function behind an address.

    Attributes:
        array: (steps of the whole run, nv); no rows where there is no array. For a method with several control points
            it may be (steps, points, nv).
        callback: the function (t, q, v) -> tau, or None.
    """

    array: FloatArray
    callback: Callback | None = None


@dataclass
class Chunk:
    """What one rollout did.

    Attributes:
        steps: steps done.
        failure: why it stopped early, in words, or None.
        q: saved coordinates, one row per saved step.
        v: saved velocities.
        counters: named totals (evaluations, iterations and so on).
        iterations: iterations of the root finder from the start of the call up to each saved row, or None where the
            method has none.
        most: most iterations of one step; 0 where the method has none.
        status: why it stopped, as a method asks for it that goes on from there.
    """

    steps: int
    failure: str | None
    q: FloatArray
    v: FloatArray
    counters: dict[str, int] = field(default_factory=dict)
    iterations: IntArray | None = None
    most: int = 0
    status: int = Status.DONE


def new_counts(rows: int) -> IntArray:
    """What a rollout with a root finder counts in, for so many saved rows; see ``solve.counts``."""
    return np.zeros(TOTALS + rows, dtype=np.int64)


def counted_chunk(
    steps: int, failure: str | None, q: FloatArray, v: FloatArray, count: IntArray, status: int = Status.DONE
) -> Chunk:
    """What a rollout with a root finder did, from its rows and its counts."""
    counters = {
        "iterations": int(count[ITERATIONS]), "evaluations": int(count[EVALUATIONS]), "backtracks": int(count[CUTS]),
    }  # fmt: skip
    return Chunk(steps, failure, q, v, counters, count[TOTALS : TOTALS + len(q)], int(count[MOST]), status)


def joined(chunks: list[Chunk]) -> Chunk:
    """What rollouts did, one after the other; the last one says whether they failed."""
    counters: dict[str, int] = {}
    iterations = []
    for chunk in chunks:
        if chunk.iterations is not None:
            iterations.append(chunk.iterations + counters.get("iterations", 0))
        for name, count in chunk.counters.items():
            counters[name] = counters.get(name, 0) + count
    return Chunk(
        sum(chunk.steps for chunk in chunks),
        chunks[-1].failure,
        np.concatenate([chunk.q for chunk in chunks]),
        np.concatenate([chunk.v for chunk in chunks]),
        counters,
        np.concatenate(iterations) if len(iterations) == len(chunks) else None,
        max(chunk.most for chunk in chunks),
        chunks[-1].status,
    )


class Method(ABC):
    """An integrator.

    A new one owes:

    1. ``name``: its name in the registry and on the command line.
    2. ``order``: the slope of its error in q and v against dt; tests measure it.
    3. ``symplectic`` and ``symmetric``: whether its step map is so for conservative systems.
    4. ``conserves``: what it keeps exactly (up to solver tolerance), of "energy", "linear momentum",
       "angular momentum", "constraints".
    5. ``supports``: the features of a mechanism that it honours (``Model.features``); others are refused by name.
    6. ``start(model, state)``: its memory at the first state, and ``layout(model)``: what that may hold.
    7. ``rollout(...)``: many steps in one call, in place on the memory.
    8. ``options()``: the arguments that make it again, as plain numbers and words.
    9. ``has_derivative``: whether its step has one, by ``linearize(...)``, also by ``parameters`` of the mechanism; and
       ``reverse(model)``, if it goes back through whole runs by an adjoint of its own.

    ``step`` is made from these. A class is abstract or final.
    """

    name: ClassVar[str]
    symplectic: ClassVar[bool] = False
    symmetric: ClassVar[bool] = False
    conserves: ClassVar[frozenset[str]] = frozenset()
    supports: ClassVar[frozenset[str]] = frozenset()
    has_derivative: ClassVar[bool] = False
    parameters: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def order(self) -> int:
        """Order of the error in q and in v."""

    @property
    def label(self) -> str:
        """Registry name with its parameter, such as ``rk4``."""
        return self.name

    @property
    def control_points(self) -> int:
        """How many values a control may have in one step besides a single one."""
        return 1

    @abstractmethod
    def start(self, model: Model, state: State) -> Memory:
        """Memory at the first state; must contain whatever ``rollout`` reads."""

    def notes(self, model: Model, state: State) -> tuple[str, ...]:
        """What a run that starts at a state says about it in its report."""
        return ()

    @abstractmethod
    def layout(self, model: Model) -> dict[str, Field]:
        """Names, shapes and ranges of the memory, so that one from a file cannot lead compiled code astray."""

    def _begin(self, model: Model, state: State) -> Memory:
        """Memory at a state of a run, which may be less strict than ``start`` is about a first one."""
        return self.start(model, state)

    @abstractmethod
    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """Advance the memory by ``steps`` steps from step k on, saving the states of steps that ``every`` divides.

        After a failure the memory is that of the last good state. No steps at all compile what steps need, and call
        no function of the user; a run starts with that.
        """

    @abstractmethod
    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The present q and v."""

    def check_memory(self, model: Model, state: State, memory: Memory) -> None:
        """Raise ModelError unless the memory, from a file, is of the method's layout and at the state."""
        layout = self.layout(model)
        check_memory(self.label, layout, memory)
        # a run cannot be at a state where none could go on; what a method makes there is of its own layout
        check_memory(f"{self.label}: at the last state", layout, self._begin(model, state))
        # to rounding: coordinates of another kind may lie between
        for here, there in zip(self.state(model, memory), (state.q, state.v), strict=True):
            if not np.allclose(here, there, rtol=1e-9, atol=1e-9):
                raise ModelError(f"{self.label}: the method's memory contradicts the last state.")

    def options(self) -> dict[str, Any]:
        """Arguments that make this method again."""
        return {}

    def step(self, model: Model, state: State, dt: float, control: Any = None) -> State:
        """One step from a state, with constant generalised forces (nv,)."""
        tau = np.zeros((0, model.nv)) if control is None else model.check_v(control, "control")[None]
        memory = self.start(model, state)
        chunk = self.rollout(model, memory, Clock(state.t, dt), 0, 1, 1, Control(tau))
        if chunk.failure:
            from leastaction.errors import ConvergenceError

            end = model.spline_end(*self.state(model, memory), dt)
            raise ConvergenceError(f"{self.label}: {chunk.failure}{end}", state=state)
        return model.state(chunk.q[0], chunk.v[0], state.t + dt)

    def contacts(self, model: Model, state: State, control: Any, dt: float) -> FloatArray:
        """Contacts of the step that begins at a state, one row each; a method without contact has none."""
        return np.zeros((0, CONTACT_COLUMNS))

    def replay(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> tuple[Chunk, list[FloatArray]]:
        """``rollout``, with the contacts of each step that begins at a saved row: each such step is taken again."""
        q, v = self.state(model, memory)
        chunk = self.rollout(model, memory, clock, k, steps, every, control)
        found: list[FloatArray] = []
        if not self.contact_pairs(model):
            return chunk, found
        numbers = range(-(-k // every) * every, k + chunk.steps, every)
        rows = [*([(q, v)] if k % every == 0 else []), *zip(chunk.q, chunk.v, strict=True)]
        for number, (q, v) in zip(numbers, rows, strict=False):
            state = model.state(q, v, clock.at(number))
            if control.callback is not None:
                tau: Any = control_at(control.callback.address, state.t, state.q, state.v)
            else:
                tau = control.array[number] if len(control.array) else None
            found.append(self.contacts(model, state, tau, clock.length(number)))
        return chunk, found

    def contact_pairs(self, model: Model) -> tuple[tuple[str, str], ...]:
        """Names of the two bodies of every pair that may touch."""
        return ()

    def linearize(
        self, model: Model, state: State, control: Any, dt: float, parameters: tuple[str, ...] = ()
    ) -> StepDerivative:
        """Derivative of the step by state, control, and parameters of the mechanism; UnsupportedError without one."""
        raise UnsupportedError(f"{self.label} has no derivative of its step yet.")

    def reverse(self, model: Model) -> Any:
        """Its adjoint through whole runs, a ``methods.reverse.Reverse``; None where it goes back step by step."""
        return None

    def __repr__(self) -> str:
        words = ", ".join(f"{key}={value!r}" for key, value in self.options().items())
        return f"{type(self).__name__}({words})"


def saved_rows(k: int, steps: int, every: int) -> int:
    """How many of the steps k+1 .. k+steps are saved."""
    return (k + steps) // every - k // every
