"""The simulation loop: check, roll out in chunks, collect, report."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.errors import ConvergenceError, ModelError
from leastaction.kernels.callbacks import control_callback, is_compiled
from leastaction.methods.base import Clock, Control, Method
from leastaction.methods.registry import check_supported, method_by_name
from leastaction.methods.runge_kutta import RungeKutta
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model, State
from leastaction.observe import limits_crossed
from leastaction.progress import Progress
from leastaction.report import Report
from leastaction.trajectory import Trajectory

# A chunk is about this long, so that progress moves and an interrupt is heard.
_CHUNK_SECONDS = 0.2


def simulate(
    model: Model,
    x0: State | None = None,
    *,
    dt: float,
    duration: float,
    method: Method | str | None = None,
    control: Any = None,
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
        dt: step in seconds.
        duration: seconds, a whole number of steps to 1e-9.
        method: an integrator, or its name; by default ``RungeKutta(4)``.
        control: None; an array (steps, nv) of generalised forces; a function ``(t, state) -> (nv,)``; or a Numba
            ``cfunc`` of type (t, q, v, out), which runs inside the compiled loop. Sampled at the start of a step, held.
        save_every: keep every so many steps; the first and the last state are always kept.
        progress: show a bar with the time left.
        on_failure: "raise" a ConvergenceError that carries the run so far, or "keep" the run up to the last good state.
        checkpoint: a file to which the run so far is written, for ``resume``.
        checkpoint_every: seconds of wall time between checkpoints.
    """
    chosen = method_by_name(method) if isinstance(method, str) else method or RungeKutta(4)
    if not isinstance(model, Model):
        raise ModelError(f"simulate: expected a model, from Mechanism.build, got {type(model).__name__}.")
    if not isinstance(chosen, Method):
        raise ModelError(f"simulate: expected a method such as leastaction.RungeKutta(4), got {method!r}.")
    dt = check_number(dt, "simulate: dt", positive=True)
    _check_every(save_every)
    check_supported(chosen, model)
    state = model.state() if x0 is None else model.state(x0.q, x0.v, x0.t)
    steps = count_steps(duration, dt)
    run = Trajectory(
        model=model,
        method=chosen,
        clock=Clock(state.t, dt),
        every=save_every,
        steps=0,
        q=state.q[None].copy(),
        v=state.v[None].copy(),
        memory=chosen.start(model, state),
        report=Report(chosen.label, dt=dt),
        control=None,
    )
    return _advance(run, steps, control, progress, on_failure, checkpoint, checkpoint_every)


def resume(
    run: Trajectory | str | Path,
    duration: float,
    *,
    model: Model | None = None,
    control: Any = None,
    progress: bool = False,
    on_failure: str = "raise",
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 30.0,
) -> Trajectory:
    """Go on with a run, or with a file of one, for another ``duration`` seconds.

    The result holds the old rows and the new ones, and is bit-identical to one run of the whole length. An array of
    controls is that of the new steps; a function must be given again.

    Args:
        run: a Trajectory, or the file of one.
        duration: further seconds.
        model: needed where the file could not hold the mechanism (functions of the user); otherwise from the run.
        control: as in ``simulate``, for the further steps.
        progress: show a bar.
        on_failure: as in ``simulate``.
        checkpoint: as in ``simulate``.
        checkpoint_every: as in ``simulate``.
    """
    if not isinstance(run, Trajectory):
        run = Trajectory.load(run, model=model)
    steps = count_steps(duration, run.clock.dt)
    # a last state that was kept only because it was the last is not part of the longer run
    rows = run.steps // run.every + 1
    memory = {name: array.copy() for name, array in run.memory.items()}
    report = replace(run.report, counters=dict(run.report.counters), limits={}, failure=None)
    start = replace(run, q=run.q[:rows].copy(), v=run.v[:rows].copy(), memory=memory, report=report, control=None)
    return _advance(start, steps, control, progress, on_failure, checkpoint, checkpoint_every)


def count_steps(duration: Any, dt: float) -> int:
    """Number of steps in a duration, which must be a whole number of them to 1e-9."""
    duration = check_number(duration, "duration", nonnegative=True)
    ratio = duration / dt
    steps: int = round(ratio)
    if abs(ratio - steps) > 1e-9 * max(1.0, ratio):
        near = max(1, steps) * dt
        raise ModelError(f"duration {duration:g} s is not a whole number of steps of {dt:g} s; {near:g} s would be.")
    return steps


def _check_every(every: Any) -> None:
    if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
        raise ModelError(f"simulate: save_every must be a whole number from 1 on, got {every!r}.")


def _make_control(model: Model, control: Any, start: int, steps: int) -> Control:
    """The control of a run; rows of an array begin at step ``start``."""
    if control is None:
        return Control(np.zeros((0, model.nv)))
    if callable(control) or is_compiled(control):
        function = control if is_compiled(control) else _with_state(model, control)
        return Control(np.zeros((0, model.nv)), control_callback(function, model.nq, model.nv))
    array = np.ascontiguousarray(control, dtype=float)
    if array.shape != (steps, model.nv):
        raise ModelError(f"simulate: control has shape {array.shape}, expected ({steps}, {model.nv}).")
    if not np.isfinite(array).all():
        raise ModelError(f"simulate: control is not finite in row {int(np.argwhere(~np.isfinite(array))[0, 0])}.")
    return Control(np.vstack([np.zeros((start, model.nv)), array]) if start else array)


def _with_state(model: Model, control: Callable[..., Any]) -> Callable[..., FloatArray]:
    """A control of (t, q, v) from the user's control of (t, state), its result checked."""

    def call(t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        return model.check_v(control(t, State(t, q, v)), "control")

    return call


def _advance(
    run: Trajectory,
    steps: int,
    control: Any,
    progress: bool,
    on_failure: str,
    checkpoint: str | Path | None,
    checkpoint_every: float,
) -> Trajectory:
    """Take ``steps`` further steps and append what they leave."""
    if on_failure not in ("raise", "keep"):
        raise ModelError(f'simulate: on_failure must be "raise" or "keep", got {on_failure!r}.')
    model, method, report = run.model, run.method, run.report
    acting = _make_control(model, control, run.steps, steps)
    qs, vs = [run.q], [run.v]
    k, end, size, failure = run.steps, run.steps + steps, 1, None
    saved = time.perf_counter()
    with Progress(progress, steps * run.clock.dt) as bar:
        while k < end and failure is None:
            # one chunk
            begin = time.perf_counter()
            chunk = method.rollout(model, run.memory, run.clock, k, min(size, end - k), run.every, acting)
            spent = time.perf_counter() - begin
            qs.append(chunk.q)
            vs.append(chunk.v)
            # what it did
            k += chunk.steps
            report.wall_time += spent
            for name, count in chunk.counters.items():
                report.counters[name] = report.counters.get(name, 0) + count
            failure = chunk.failure
            bar.at((k - run.steps) * run.clock.dt)
            if checkpoint is not None and time.perf_counter() - saved > checkpoint_every:
                _collect(run, k, qs, vs, control).save(checkpoint)
                saved = time.perf_counter()
            size = _next_size(size, chunk.steps, spent)
    done = _collect(run, k, qs, vs, control)
    done.report.limits = limits_crossed(model, done.t, done.q, done.v)
    if checkpoint is not None:
        done.save(checkpoint)
    # an error in a function of the user comes first
    for callback in (*model.callbacks, *([acting.callback] if acting.callback else [])):
        callback.raise_pending()
    if failure is not None:
        done.report.failure = f"{failure} (t = {run.clock.at(k):g} s)"
        if on_failure == "raise":
            message = f"{method.label}: {done.report.failure}"
            raise ConvergenceError(message, report=done.report, state=done.final, run=done)
    return done


def _next_size(size: int, steps: int, seconds: float) -> int:
    """Steps of the next chunk; never a reason for another result."""
    if steps == 0 or seconds <= 0:
        return size
    return max(1, min(math.ceil(_CHUNK_SECONDS * steps / seconds), 100 * size, 10_000_000))


def _collect(run: Trajectory, k: int, qs: list[FloatArray], vs: list[FloatArray], control: Any) -> Trajectory:
    """The run so far, with the last state."""
    q, v = np.concatenate(qs), np.concatenate(vs)
    if k % run.every != 0:
        last_q, last_v = run.method.state(run.model, run.memory)
        q, v = np.vstack([q, last_q]), np.vstack([v, last_v])
    memory = {name: array.copy() for name, array in run.memory.items()}
    report = replace(run.report, steps=k, counters=dict(run.report.counters))
    return replace(run, steps=k, q=q, v=v, memory=memory, report=report, control=control)
