"""The simulation loop: check, roll out in chunks, collect, report."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ConvergenceError, ModelError
from leastaction.jit.callbacks import Callback, listen, take_pending
from leastaction.methods.base import Chunk, Clock, Control, IntArray, Memory, Method
from leastaction.methods.closing import check_first
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.files import check_path, check_writable
from leastaction.model.model import Model, State
from leastaction.run.choice import method_for
from leastaction.run.controls import as_control, given_control
from leastaction.run.observe import closed_key, left_out, limits_crossed, opened, untouched
from leastaction.run.progress import Progress
from leastaction.run.registry import check_supported
from leastaction.run.report import Report
from leastaction.run.steps import Pace, Steps, check_steps, compile_control, paced_rollout
from leastaction.run.trajectory import Part, Trajectory

# A chunk is about this long, so that progress moves and an interrupt is heard.
_CHUNK_SECONDS = 0.2

# Step numbers beyond this are not exact as floating-point numbers, and times would no longer move.
_MOST_STEPS = 2**53


def simulate(
    model: Model,
    x0: State | None = None,
    *,
    dt: float | ArrayLike | Steps,
    duration: float | None = None,
    method: Method | str | None = None,
    control: Any = None,
    ctrl: Any = None,
    save_every: int = 1,
    progress: bool = False,
    on_failure: str = "raise",
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Trajectory:
    """Move a model through time.

    Args:
        model: from ``Mechanism.build``.
        x0: first state, from ``model.state``; by default neutral and at rest.
        dt: step in seconds; or an array (steps,) with the length of each step; or a step control such as
            ``ReversibleSteps``.
        duration: seconds. A whole number of steps to 1e-9; for an array of steps their sum, or left out; under step
            control the run ends with the first step that reaches it.
        method: an integrator, or its name. By default one is chosen that honours the model and is stable with the step,
            ``Galerkin(4)`` for smooth motion, ``Maximal()`` for contact and limits; ``run.report`` says which, and why.
        control: None; an array (steps, nv) of generalised forces, or for ``Galerkin`` (steps, s + 1, nv), one for each
            node of a step; a function ``(t, state) -> (nv,)``; or a Numba
            ``cfunc`` of type (t, q, v, out), which runs inside the compiled loop. Sampled at the start of a step, held.
            Under step control there is no array, as the number of steps is not known. Constant forces are (nv,), or a
            dict by joint, whose entries may also have a row for each step.
        ctrl: inputs of the actuators in place of a control: (nu,) constant, (steps, nu), a dict by actuator, or a
            function ``(t, state) -> (nu,)`` or dict; see ``model.actuate`` and ``model.actuator_names``.
        save_every: keep every so many steps; the first and the last state are always kept.
        progress: show a bar with the time left.
        on_failure: "raise" a ConvergenceError that carries the run so far, or "keep" the run up to the last good state.
        checkpoint: a file to which the run so far is written, for ``resume``.
        checkpoint_every: seconds of wall time between checkpoints.

    Raises:
        ConvergenceError: a step failed; its ``run`` is the run up to the last good state.
        KeyboardInterrupt: the run was interrupted; its ``run`` is the run so far, with which ``resume`` goes on.
    """
    if not isinstance(model, Model):
        raise ModelError(f"simulate: expected a model, from Mechanism.build, got {type(model).__name__}.")
    _check_every(save_every)
    if x0 is not None and not isinstance(x0, State):
        raise ModelError(f"simulate: x0 must be a state, from model.state, got {x0!r}.")
    state = model.state() if x0 is None else replace(model.state(x0.q, x0.v, x0.t), key=x0.key)
    clock, steps, pace = _read_steps(dt, duration, state.t)
    lengths = np.atleast_1d(clock.dt)
    chosen, why = method_for(model, state, float(lengths.max()) if len(lengths) else None, method, "simulate")
    state, closed = closed_key(model, state)
    check_first(model, state)
    notes = [*left_out(model), *untouched(model), *([closed] if closed else []), *chosen.notes(model, state)]
    run = Trajectory(
        model=model,
        method=chosen,
        clock=clock,
        every=save_every,
        steps=0,
        q=state.q[None].copy(),
        v=state.v[None].copy(),
        memory=chosen.start(model, state),
        report=Report(chosen.label, chosen=why, notes=notes),
        pace=pace,
        iterations=np.zeros(1, dtype=np.int64),
    )
    # only inputs with activations ask for the times of all steps
    times = None if steps is None or ctrl is None else clock.at_steps(np.arange(steps + 1))
    acting = given_control(model, control, ctrl, steps, "simulate", times)
    return _advance(run, steps, acting, progress, on_failure, checkpoint, checkpoint_every)


def resume(
    run: Trajectory | str | Path,
    duration: float | None = None,
    *,
    dt: ArrayLike | None = None,
    model: Model | None = None,
    control: Any = None,
    ctrl: Any = None,
    progress: bool = False,
    on_failure: str = "raise",
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Trajectory:
    """Go on with a run, or with a file of one, for another ``duration`` seconds.

    The result holds the old rows and the new ones, and is bit-identical to one run of the whole length. A run that was
    driven by a control goes on only with a control: a function must be given again, an array is that of the new steps.

    Args:
        run: a Trajectory, or the file of one.
        duration: further seconds. Under step control they are counted from the time at which the run was asked to end,
            so that the steps are those of one run.
        dt: lengths (steps,) of the further steps, where the run was given an array of them.
        model: needed where the file could not hold the mechanism (functions of the user); otherwise from the run.
        control: as in ``simulate``, for the further steps.
        ctrl: as in ``simulate``, for the further steps.
        progress: show a bar.
        on_failure: as in ``simulate``.
        checkpoint: as in ``simulate``.
        checkpoint_every: as in ``simulate``.
    """
    if not isinstance(run, Trajectory):
        run = Trajectory.load(run, model=model)
    check_supported(run.method, run.model)
    driven = run.controls[-1].kind if run.controls else "none"
    if control is None and ctrl is None and driven != "none":
        raise ModelError(
            f"resume: this run was driven by a control ({driven}); give control= or ctrl= for the further steps, "
            "an array of zeros for none."
        )
    clock, steps, pace = _further_steps(run, dt, duration)
    control = given_control(run.model, control, ctrl, steps, "resume")
    # a last state that was kept only because it was the last is not part of the longer run
    rows = run.steps // run.every + 1
    memory = {name: array.copy() for name, array in run.memory.items()}
    report = replace(run.report, counters=dict(run.report.counters), limits={}, failure=None)
    start = replace(
        run, clock=clock, q=run.q[:rows].copy(), v=run.v[:rows].copy(), memory=memory, report=report, pace=pace
    )
    return _advance(start, steps, control, progress, on_failure, checkpoint, checkpoint_every)


def count_steps(duration: Any, dt: float) -> int:
    """Number of steps in a duration, which must be a whole number of them to 1e-9."""
    duration = check_number(duration, "duration", nonnegative=True)
    ratio = duration / dt
    if not ratio <= _MOST_STEPS:
        raise ModelError(f"duration {duration:g} s has too many steps of {dt:g} s.")
    steps: int = round(ratio)
    if abs(ratio - steps) > 1e-9 * max(1.0, ratio):
        near = max(1, steps) * dt
        raise ModelError(f"duration {duration:g} s is not a whole number of steps of {dt:g} s; {near:g} s would be.")
    return steps


def _read_steps(dt: Any, duration: Any, t0: float) -> tuple[Clock, int | None, Pace | None]:
    """Clock, number of steps (None if it is not known) and step control of a run from time t0 on."""
    if isinstance(dt, Steps):
        goal = t0 + check_number(duration, "simulate: under step control, duration", nonnegative=True)
        return Clock(t0, np.zeros(0)), None, Pace(dt, goal)
    if isinstance(dt, list | tuple) or (isinstance(dt, np.ndarray) and dt.ndim > 0):
        lengths = check_steps(dt, t0, "simulate: dt")
        _check_sum(lengths, duration)
        return Clock(t0, lengths), len(lengths), None
    dt = check_number(dt, "simulate: dt", positive=True)
    return Clock(t0, dt), count_steps(duration, dt), None


def _further_steps(run: Trajectory, dt: Any, duration: Any) -> tuple[Clock, int | None, Pace | None]:
    """The same for the further steps of a run; the clock is that of all."""
    if isinstance(run.dt, float) or run.pace is not None:
        if dt is not None:
            given = "a step control" if run.pace is not None else f"steps of {run.clock.words}"
            raise ModelError(f"resume: this run has {given}; give a duration, not dt=.")
    elif dt is None:
        raise ModelError("resume: this run was given the length of each step; give dt=, those of the further steps.")
    if isinstance(run.dt, float):
        return run.clock, count_steps(duration, run.dt), None
    end = run.clock.at(run.steps)
    if run.pace is not None:
        # one that was stopped before its end goes on from where it is
        asked = run.pace.goal if end >= run.pace.goal else end
        goal = asked + check_number(duration, "resume: under step control, duration", nonnegative=True)
        return run.clock, None, replace(run.pace, goal=goal)
    lengths = check_steps(dt, end, "resume: dt")
    _check_sum(lengths, duration)
    return run.clock.extended(lengths), len(lengths), None


def _check_sum(lengths: FloatArray, duration: Any) -> None:
    """A duration beside an array of steps must be their sum to 1e-9."""
    if duration is None:
        return
    duration, total = check_number(duration, "duration", nonnegative=True), float(lengths.sum())
    if abs(total - duration) > 1e-9 * max(total, duration):
        raise ModelError(f"duration {duration:g} s is not the sum of the steps, {total:.12g} s; leave it out.")


def _check_every(every: Any) -> None:
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ModelError(f"simulate: save_every must be a whole number from 1 on, got {every!r}.")


@dataclass
class _Work:
    """A run on its way.

    Attributes:
        run: the run as it was before; its memory and report move on.
        control: what acts.
        k: steps done.
        end: number of the last step; None under step control.
        q: rows so far.
        v: rows so far.
        pace: the step control after step k, or None.
        now: time of step k.
        lengths: lengths of the steps under step control.
        before: the memory at step k, while a chunk is on its way.
        totals: iterations from the start of the run up to each row so far; None where there are none.
        total: iterations so far.
    """

    run: Trajectory
    control: Control
    k: int
    end: int | None
    q: list[FloatArray]
    v: list[FloatArray]
    pace: Pace | None
    now: float
    lengths: list[FloatArray] = field(default_factory=list)
    before: Memory = field(default_factory=dict)
    totals: list[IntArray] | None = None
    total: int = 0

    def spline_end(self) -> str:
        """Words for a joint that comes to the end of its spline at the last good state, or nothing."""
        run = self.run
        if self.pace is None:
            dt = run.clock.length(min(self.k, (self.end or 1) - 1))
        else:
            dt = float(self.lengths[-1][-1]) if self.lengths and len(self.lengths[-1]) else 0.0
        return run.model.spline_end(*run.method.state(run.model, run.memory), dt)

    def chunk(self, size: int) -> Chunk:
        """Take up to ``size`` steps; without steps it only compiles."""
        run, pace, now = self.run, self.pace, self.now
        self.before = {name: array.copy() for name, array in run.memory.items()}
        lengths = np.zeros(0)
        if self.callbacks:
            listen()
        if pace is None or size == 0:
            if pace is not None:
                compile_control(run.model, run.method, run.memory)
            done = run.method.rollout(run.model, run.memory, run.clock, self.k, size, run.every, self.control)
            now = run.clock.at(self.k + done.steps)
        else:
            paced = paced_rollout(pace, run.model, run.method, run.memory, now, self.k, size, run.every, self.control)
            done, lengths, pace, now = paced.chunk, paced.lengths, paced.pace, paced.now
        # steps that a function left without its output are not valid: the chunk is as if it had not begun
        if any(callback.unwritten for callback in self.callbacks):
            self.go_back()
            return Chunk(0, "interrupted in a function of the user", done.q[:0], done.v[:0])
        totals = None
        if self.totals is not None and done.iterations is not None:
            totals = [*self.totals, self.total + done.iterations]
        # all at once: an interrupt finds the one state or the other
        self.q, self.v, self.k, self.before, self.pace, self.now, self.lengths, self.totals, self.total = (
            [*self.q, done.q], [*self.v, done.v], self.k + done.steps, {}, pace, now, [*self.lengths, lengths],
            totals, self.total + done.counters.get("iterations", 0),
        )  # fmt: skip
        return done

    @property
    def callbacks(self) -> list[Callback]:
        """Functions of the user that act on the run."""
        return [*self.run.model.callbacks, *([self.control.callback] if self.control.callback else [])]

    @property
    def left(self) -> int:
        """Steps that are left, at most."""
        if self.pace is not None:
            return _MOST_STEPS if self.now < self.pace.goal else 0
        return (self.end or 0) - self.k

    def go_back(self) -> None:
        """Forget a chunk that was interrupted, so that memory and rows belong together."""
        self.run.memory.update(self.before)

    def collect(self) -> Trajectory:
        """The run so far, with the last state."""
        run, q, v, totals = self.run, np.concatenate(self.q), np.concatenate(self.v), list(self.totals or ())
        if self.k % run.every != 0:
            last_q, last_v = run.method.state(run.model, run.memory)
            q, v = np.vstack([q, last_q]), np.vstack([v, last_v])
            totals = [*totals, np.array([self.total])]
        iterations: IntArray | None = None
        if self.totals is not None:
            up_to = np.concatenate(totals)
            iterations = up_to - np.concatenate([[0], up_to[:-1]])
        memory = {name: array.copy() for name, array in run.memory.items()}
        clock = run.clock.cut(self.k) if self.pace is None else run.clock.extended(np.concatenate(self.lengths))
        counters, length = dict(run.report.counters), clock.dt
        report = replace(run.report, steps=self.k, counters=counters)
        if isinstance(length, float):
            report.dt = length
        elif len(length):
            report.dt, report.dt_range = float(length.mean()), [float(length.min()), float(length.max())]
        return replace(
            run, steps=self.k, clock=clock, q=q, v=v, memory=memory, report=report, pace=self.pace,
            iterations=iterations,
        )  # fmt: skip


def _advance(
    run: Trajectory,
    steps: int | None,
    control: Any,
    progress: bool,
    on_failure: str,
    checkpoint: str | Path | None,
    checkpoint_every: float,
) -> Trajectory:
    """Take ``steps`` further steps, or as many as the step control takes, and append what they leave."""
    if on_failure not in ("raise", "keep"):
        raise ModelError(f'simulate: on_failure must be "raise" or "keep", got {on_failure!r}.')
    seconds = check_number(checkpoint_every, "simulate: checkpoint_every", nonnegative=True, infinite=True)
    path = None if checkpoint is None else check_path(checkpoint)
    if path is not None:
        check_writable(path)
    acting = as_control(run.model, control, run.steps, steps, run.method.control_points)
    kept = acting.array[run.steps :] if control is not None and acting.callback is None else control
    run = replace(run, controls=(*run.controls, Part(run.steps, kept)))
    end = None if steps is None else run.steps + steps
    work = _Work(run, acting, run.steps, end, [run.q], [run.v], run.pace, run.clock.at(run.steps))
    if run.iterations is not None:
        # a last row that is dropped leaves its iterations to the next one
        work.totals, work.total = [np.cumsum(run.iterations[: len(run.q)])], int(run.iterations.sum())

    # the steps, until they are done, one fails, or the user has had enough
    stop: BaseException | None = None
    try:
        failure = _roll(work, progress, path, seconds)
    except KeyboardInterrupt as error:
        work.go_back()
        stop, failure = error, "interrupted"
    # an error in a function of the user made the step fail
    pending = take_pending(work.callbacks)
    if pending is not None:
        stop = stop or pending
        failure = "interrupted" if isinstance(stop, KeyboardInterrupt) else f"{stop!r} in a function of the user"
    elif stop is None and failure is not None:
        # asks for velocities, which there are none of where a function of the user has failed
        failure += work.spline_end()
    done = work.collect()
    # efforts are looked at where the controls are numbers; a function would have to be asked again
    known = all(part.kind != "function" for part in done.controls)
    done.report.limits = limits_crossed(run.model, done.t, done.q, done.v, done.asked if known else None)
    done.report.loop_gap, done.report.size = opened(run.model, done.q)
    done.report.failure = f"{failure} (t = {work.now:g} s)" if failure else None
    return _finish(done, stop, path, on_failure)


def _roll(work: _Work, progress: bool, path: Path | None, seconds: float) -> str | None:
    """Chunk after chunk up to the end; returns why it stopped early, in words."""
    report, size, first = work.run.report, 1, work.now
    last = work.pace.goal if work.pace is not None else work.run.clock.at(work.end or 0)
    # what has to be compiled is compiled here, and does not count
    work.chunk(0)
    saved = time.perf_counter()
    with Progress(progress, last - first) as bar:
        while work.left > 0:
            # one chunk
            begin = time.perf_counter()
            chunk = work.chunk(min(size, work.left))
            spent = time.perf_counter() - begin
            # what it did
            report.wall_time += spent
            report.most_iterations = max(report.most_iterations, chunk.most)
            for name, count in chunk.counters.items():
                report.counters[name] = report.counters.get(name, 0) + count
            if chunk.failure is not None:
                return chunk.failure
            bar.at(work.now - first)
            if path is not None and time.perf_counter() - saved > seconds:
                # one that fails is tried again at the next time, and at the end
                _save(work.collect(), path)
                saved = time.perf_counter()
            size = _next_size(size, chunk.steps, spent)
    return None


def _save(done: Trajectory, path: Path) -> ModelError | None:
    """Write a checkpoint; returns why it could not be written."""
    try:
        done.save(path)
    except ModelError as error:
        return error
    return None


def _finish(done: Trajectory, stop: BaseException | None, path: Path | None, on_failure: str) -> Trajectory:
    """Write the last checkpoint, and return the run or raise what stopped it."""
    problem = None if path is None else _save(done, path)
    failure = done.report.failure
    if stop is None and failure is not None and on_failure == "raise":
        stop = ConvergenceError(f"{done.method.label}: {failure}", report=done.report, state=done.final, run=done)
    # what stopped the run comes before a checkpoint that could not be written
    if stop is not None:
        if isinstance(stop, KeyboardInterrupt):
            stop.run = done  # type: ignore[attr-defined]
        if problem is not None:
            stop.add_note(f"the checkpoint could not be written either: {problem}")
        raise stop
    if problem is not None:
        problem.run = done
        raise problem
    return done


def _next_size(size: int, steps: int, seconds: float) -> int:
    """Steps of the next chunk; never a reason for another result."""
    if steps == 0 or seconds <= 0:
        return size
    return max(1, min(math.ceil(_CHUNK_SECONDS * steps / seconds), 100 * size, 10_000_000))
