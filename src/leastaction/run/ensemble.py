"""Many environments of one model through time: checks, parts of the batch, threads, and what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.errors import ConvergenceError, ModelError
from leastaction.jit.callbacks import is_compiled
from leastaction.methods.base import Clock, Control, Memory, Method, saved_rows
from leastaction.methods.closing import check_first
from leastaction.model.checks import FloatArray, check_array, check_number, frozen
from leastaction.model.model import Model, State
from leastaction.run.choice import method_for
from leastaction.run.controls import given_control
from leastaction.run.ensemble_lanes import has_lanes, roll_lanes
from leastaction.run.simulate import count_steps, simulate

# Environments of one compiled call at most, so that an interrupt is heard between calls.
_PART = 64


@dataclass(frozen=True)
class Failure:
    """Why an environment stopped early: its number, the steps that it did, the time reached, and the reason."""

    environment: int
    step: int
    t: float
    reason: str


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What many environments did.

    Attributes:
        model: the model of all of them.
        method: the method.
        t: times (rows,), seconds.
        q: coordinates (E, rows, nq).
        v: velocities (E, rows, nv).
        failures: one entry for each environment that failed. Its rows after that hold its last good state.
        lanes: whether four environments were run at once.
        counters: totals of the method over all environments.
    """

    model: Model
    method: Method
    t: FloatArray
    q: FloatArray
    v: FloatArray
    failures: tuple[Failure, ...]
    lanes: bool
    counters: dict[str, int]

    def __repr__(self) -> str:
        E, rows = self.q.shape[:2]
        span = f"t = {self.t[0]:g} to {self.t[-1]:g} s"
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"Ensemble('{self.model.name}', {self.method.label}, {E} environments, {rows} rows, {span}{failed})"

    @property
    def failed(self) -> NDArray[np.bool_]:
        """Which environments failed, (E,)."""
        out = np.zeros(len(self.q), dtype=bool)
        out[[failure.environment for failure in self.failures]] = True
        return out

    def state(self, environment: int, row: int = -1) -> State:
        """A saved state of one environment, the last one by default."""
        return self.model.state(self.q[environment, row], self.v[environment, row], float(self.t[row]))


@dataclass
class _Job:
    """A batch on its way: what is asked, the rows of the answer, and what happened."""

    model: Model
    method: Method
    states: list[State]
    clock: Clock
    steps: int
    every: int
    control: Any
    controls: FloatArray
    q: FloatArray
    v: FloatArray
    failures: list[Failure] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def count(self, counters: dict[str, int]) -> None:
        """Add a method's counters."""
        with self.lock:
            for name, number in counters.items():
                self.counters[name] = self.counters.get(name, 0) + number

    def control_of(self, e: int) -> FloatArray:
        """Controls (steps, nv) of environment e, or no rows."""
        if len(self.controls) == 0:
            return np.zeros((0, self.model.nv))
        one: FloatArray = self.controls[e if len(self.controls) > 1 else 0]
        return one

    def end(self, e: int, k: int, q: FloatArray, v: FloatArray, reason: str | None) -> None:
        """Environment e stopped after k steps at (q, v): its last row, and the rows that a failure left empty."""
        rest = slice(k // self.every + 1 if reason is not None else self.steps // self.every + 1, None)
        self.q[e, rest], self.v[e, rest] = q, v
        if reason is not None:
            self.failures.append(Failure(e, k, self.clock.at(k), reason))


def simulate_many(
    model: Model,
    states: Any,
    *,
    dt: float,
    duration: float,
    method: Method | str | None = None,
    control: Any = None,
    ctrl: Any = None,
    save_every: int = 1,
    threads: int = 1,
    on_failure: str = "keep",
) -> Ensemble:
    """Move many environments of one model through time.

    Each environment does what ``simulate`` does with the same state; one that fails does not stop the others.
    ``Galerkin(2)`` and ``Maximal()`` run four environments at once on trees without contact and forces on bodies, the
    former where every joint is made of screws; all else is a loop over the environments.

    Args:
        model: from ``Mechanism.build``.
        states: E states of ``model.state``, all at the same time; or a pair of arrays q (E, nq) and v (E, nv).
        dt: step in seconds.
        duration: seconds, a whole number of steps to 1e-9.
        method: an integrator, or its name; by default the one that ``simulate`` would choose for the first state.
        control: None; an array (E, steps, nv) of generalised forces, or (steps, nv) for all alike; or a function
            ``(t, state) -> (nv,)`` or ``cfunc`` for all alike, which is asked for one environment after the other;
            constant forces (nv,) or a dict by joint for all alike.
        ctrl: inputs of the actuators in place of a control: an array (E, steps, nu); or for all alike (steps, nu),
            (nu,), a dict by actuator or a function, as in ``simulate``.
        save_every: keep every so many steps; the first and the last state are always kept.
        threads: how many threads share the environments; more than one only without functions of the user.
        on_failure: "keep" what was reached (see ``Ensemble.failures``), or "raise" a ConvergenceError that carries it.
    """
    job = _make_job(model, states, dt, duration, method, (control, ctrl), save_every)
    if on_failure not in ("raise", "keep"):
        raise ModelError(f'simulate_many: on_failure must be "raise" or "keep", got {on_failure!r}.')
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ModelError(f"simulate_many: threads must be a whole number from 1 on, got {threads!r}.")
    asks = job.control is not None or bool(model.callbacks)
    if asks and threads > 1:
        raise ModelError(
            "simulate_many: functions of the user run in one thread; take threads=1, or arrays of controls."
        )
    lanes = not asks and has_lanes(job.method, model)
    run = _ask if asks else _lanes if lanes else _alone

    # parts of the batch, a whole number of blocks of four each
    number, size = len(job.states), min(_PART, -(-len(job.states) // threads))
    size = max(4, -(-size // 4) * 4)
    parts = [range(first, min(first + size, number)) for first in range(0, number, size)]
    if threads == 1:
        for part in parts:
            run(job, part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            for future in [pool.submit(run, job, part) for part in parts]:
                future.result()
    return _finish(job, lanes, on_failure)


def _finish(job: _Job, lanes: bool, on_failure: str) -> Ensemble:
    """The answer, or the error that carries it."""
    k = np.arange(job.steps // job.every + 1, dtype=float) * job.every
    if job.steps % job.every:
        k = np.append(k, job.steps)
    failures = tuple(sorted(job.failures, key=lambda failure: failure.environment))
    done = Ensemble(
        job.model, job.method, job.clock.t0 + k * job.clock.dt, job.q, job.v, failures, lanes, dict(job.counters)
    )
    if failures and on_failure == "raise":
        one = failures[0]
        words = f"{len(failures)} of {len(job.q)} environments failed; environment {one.environment}: {one.reason}"
        raise ConvergenceError(
            f"{job.method.label}: {words} (t = {one.t:g} s)", state=done.state(one.environment), run=done
        )
    return done


def _start(job: _Job, e: int) -> Memory:
    """The memory of environment e at its first state; an error names the environment."""
    try:
        check_first(job.model, job.states[e])
        return job.method.start(job.model, job.states[e])
    except ModelError as error:
        raise ModelError(f"simulate_many: environment {e}: {error}") from error


# --- three ways to run a part of the batch ---------------------------------------------------------------------------
def _alone(job: _Job, part: range) -> None:
    """One environment after the other, each in one compiled call."""
    for e in part:
        _go_on(job, e, _start(job, e), 0)


def _go_on(job: _Job, e: int, memory: Memory, k: int) -> None:
    """Environment e alone, from step k to the end."""
    control = Control(job.control_of(e))
    chunk = job.method.rollout(job.model, memory, job.clock, k, job.steps - k, job.every, control)
    first = k // job.every + 1
    job.q[e, first : first + len(chunk.q)], job.v[e, first : first + len(chunk.v)] = chunk.q, chunk.v
    job.count(chunk.counters)
    if chunk.failure is not None or job.steps % job.every:
        job.end(e, k + chunk.steps, *job.method.state(job.model, memory), chunk.failure)


def _lanes(job: _Job, part: range) -> None:
    """Four at once; one that fails is taken up at its last good step and goes on alone."""
    starts = [_start(job, e) for e in part]
    controls = job.controls[part.start : part.stop] if len(job.controls) > 1 else job.controls
    out = roll_lanes(job.method, job.model, starts, job.clock.length(0), job.steps, job.every, controls)
    rows = saved_rows(0, job.steps, job.every)
    job.q[part.start : part.stop, 1 : rows + 1] = out.q
    job.v[part.start : part.stop, 1 : rows + 1] = out.v
    job.count(out.counters)
    for e, memory, done in zip(part, starts, out.done.tolist(), strict=True):
        if done < job.steps:
            _go_on(job, e, memory, done)
        elif job.steps % job.every:
            job.end(e, done, *job.method.state(job.model, memory), None)


def _ask(job: _Job, part: range) -> None:
    """One environment after the other through ``simulate``, which looks after functions of the user."""
    for e in part:
        control = job.control if len(job.controls) == 0 else job.control_of(e)
        run = simulate(
            job.model, job.states[e], dt=job.clock.length(0), duration=job.steps * job.clock.length(0),
            method=job.method,
            control=control, save_every=job.every, on_failure="keep",
        )  # fmt: skip
        rows = run.steps // job.every + 1
        job.q[e, :rows], job.v[e, :rows] = run.q[:rows], run.v[:rows]
        job.count(run.report.counters)
        job.end(e, run.steps, run.q[-1], run.v[-1], run.report.failure)


# --- checks ----------------------------------------------------------------------------------------------------------
def _make_job(model: Any, states: Any, dt: Any, duration: Any, method: Any, asked: Any, every: Any) -> _Job:
    """Everything that is asked, checked, and room for the answer."""
    if not isinstance(model, Model):
        raise ModelError(f"simulate_many: expected a model, from Mechanism.build, got {type(model).__name__}.")
    dt = check_number(dt, "simulate_many: dt", positive=True)
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ModelError(f"simulate_many: save_every must be a whole number from 1 on, got {every!r}.")
    steps, given = count_steps(duration, dt), _check_states(model, states)
    chosen, _ = method_for(model, given[0], dt, method, "simulate_many")
    # a function is passed on, an array is checked here
    times = None if asked[1] is None else dt * np.arange(steps + 1)
    control = given_control(model, asked[0], asked[1], steps, "simulate_many", times)
    function = control if callable(control) or is_compiled(control) else None
    controls = np.zeros((0, 0, model.nv))
    if control is not None and function is None:
        controls = _check_controls(control, len(given), steps, model.nv)
    rows = steps // every + 1 + (1 if steps % every else 0)
    q, v = np.zeros((len(given), rows, model.nq)), np.zeros((len(given), rows, model.nv))
    for e, state in enumerate(given):
        q[e, 0], v[e, 0] = state.q, state.v
    return _Job(model, chosen, given, Clock(given[0].t, dt), steps, int(every), function, controls, q, v)


def _check_states(model: Model, states: Any) -> list[State]:
    """The first states, at one time."""
    if isinstance(states, Sequence) and len(states) and all(isinstance(state, State) for state in states):
        given = [model.state(state.q, state.v, state.t) for state in states]
        if len({state.t for state in given}) > 1:
            raise ModelError("simulate_many: the states have different times; give them all the same one.")
        return given
    if not isinstance(states, Sequence) or len(states) != 2 or any(np.ndim(part) != 2 for part in states):
        wanted = f"a list of states, or a pair of arrays q (E, {model.nq}) and v (E, {model.nv})"
        raise ModelError(f"simulate_many: states must be {wanted}.")
    q, v = (check_array(part, f"simulate_many: {name}") for part, name in zip(states, ("q", "v"), strict=True))
    if len(q) != len(v) or len(q) == 0 or q.shape[1] != model.nq or v.shape[1] != model.nv:
        wanted = f"expected (E, {model.nq}) and (E, {model.nv}) with E from 1 on"
        raise ModelError(f"simulate_many: the states have shapes {q.shape} and {v.shape}, {wanted}.")
    return [State(0.0, frozen(one), frozen(rate)) for one, rate in zip(model.check_rows(q), v, strict=True)]


def _check_controls(control: Any, number: int, steps: int, nv: int) -> FloatArray:
    """Controls (E or 1, steps, nv)."""
    array = check_array(control, "simulate_many: control")
    if array.shape == (steps, nv):
        return np.ascontiguousarray(array[None])
    if array.shape != (number, steps, nv):
        wanted = f"({number}, {steps}, {nv}) or ({steps}, {nv})"
        raise ModelError(f"simulate_many: control has shape {array.shape}, expected {wanted}.")
    return np.ascontiguousarray(array)
