"""Trajectory: the rows of a run, what can be computed from them, and its file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ModelError
from leastaction.jit.callbacks import control_at, is_compiled
from leastaction.methods.base import Clock, IntArray, Memory, Method
from leastaction.model.checks import WORLD, FloatArray, check_number, printable
from leastaction.model.files import MAX_RUN_BYTES, check_path, read_file, write_beside
from leastaction.model.model import Model, State, check_model
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict
from leastaction.run import observe
from leastaction.run.contacts import Contacts, contacts_of
from leastaction.run.controls import as_control
from leastaction.run.registry import check_supported, method_from_options
from leastaction.run.report import Report
from leastaction.run.run_file import RunFile
from leastaction.run.sensors import Readings
from leastaction.run.steps import Pace, check_steps

_FORMAT, _VERSION = "leastaction run", 1

# largest whole number in the file of a run: sums of two of them are still numbers of a kernel
_MOST = 2**53

# stands for a control that was a function, in a run from a file
_LOST = "function"


@dataclass(frozen=True, eq=False)
class Part:
    """Steps of a run under one control.

    Attributes:
        first: number of the first step.
        control: None, an array with one row for each step, or a function, as ``simulate`` takes it.
    """

    first: int
    control: Any

    @property
    def kind(self) -> str:
        """Word for files: "none", "array" or "function"."""
        return "none" if self.control is None else "array" if isinstance(self.control, np.ndarray) else "function"

    def check_known(self) -> None:
        """Raise ModelError where the control was a function and the run is from a file."""
        if isinstance(self.control, str):
            raise ModelError(
                f"the control of the steps from {self.first} on was a function, which is not in the file of the run; "
                "simulate again, or save an array of controls."
            )

    def forces(self, model: Model, k: Any, t: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
        """Generalised forces (rows, nv) at rows of step numbers, times and states; functions are asked again."""
        given = self.control
        if given is None or (self.kind == "array" and len(given) == 0):
            return np.zeros_like(v)
        if self.kind == "array":
            # the last state has no step of its own; of several values in a step the first is that of its start
            now = np.asarray(given[np.minimum(k - self.first, len(given) - 1)])
            return now if now.ndim == 2 else now[:, 0]
        self.check_known()
        states = map(State, t.tolist(), q, v)
        if is_compiled(given):
            rows = [control_at(given.address, state.t, state.q, state.v) for state in states]
        else:
            rows = [given(state.t, state) for state in states]
        return np.array([model.check_v(row, "control") for row in rows])


@dataclass(eq=False)
class Trajectory:
    """A run: one row per saved step, the first state first and the last state last.

    Attributes:
        model: the model that ran.
        method: the integrator.
        clock: first time and steps.
        every: how many steps lie between rows.
        steps: steps done.
        q: coordinates (rows, nq).
        v: velocities (rows, nv).
        memory: what the method needs to go on.
        report: counts, times, limits crossed.
        controls: the control of each part: one of ``simulate``, and one more for every ``resume``.
        pace: the step control with what it needs to go on, or None.
        iterations: iterations (rows,) of the root finder in the steps since the row before, 0 in the first row; None
            where the method has none, or where the file of the run is older than they are.
    """

    model: Model
    method: Method
    clock: Clock
    every: int
    steps: int
    q: FloatArray
    v: FloatArray
    memory: Memory
    report: Report
    controls: tuple[Part, ...] = ()
    pace: Pace | None = None
    iterations: IntArray | None = None

    def __repr__(self) -> str:
        span = f"t = {self.t[0]:g} to {self.t[-1]:g} s"
        return f"Trajectory('{self.model.name}', {self.method.label}, {len(self.q)} rows, {span})"

    @cached_property
    def t(self) -> FloatArray:
        """Times (rows,) in seconds."""
        return self.clock.at_steps(self.step_numbers)

    @property
    def step_numbers(self) -> Any:
        """Number of the step (rows,) that each row belongs to."""
        numbers = np.arange(len(self.q)) * self.every
        numbers[-1] = self.steps
        return numbers

    @property
    def dt(self) -> float | FloatArray:
        """Step in seconds, or an array (steps,) where steps have lengths of their own."""
        return self.clock.dt

    @property
    def final(self) -> State:
        """The last state."""
        return self.model.state(self.q[-1], self.v[-1], float(self.t[-1]))

    def state(self, row: int) -> State:
        """The state of a row; negative numbers count from the end."""
        return self.model.state(self.q[row], self.v[row], float(self.t[row]))

    @cached_property
    def energy(self) -> quantities.Energy:
        """Kinetic, potential and total energy (rows,)."""
        return quantities.energy(self.model, self.q, self.v)

    @cached_property
    def momentum(self) -> quantities.Momentum:
        """Linear momentum, and angular momentum about the world's origin, (rows, 3) each."""
        return quantities.momentum(self.model, self.q, self.v)

    @cached_property
    def constraint_error(self) -> FloatArray:
        """Largest gap (rows,) of loops and equality constraints, metres or radians."""
        return observe.constraint_error(self.model, self.q)

    def poses(self, name: str) -> FloatArray:
        """Poses (rows, 4, 4) of a body's link frame, or of a named frame."""
        return quantities.frame_poses(self.model, self.q, [name])[:, 0]

    def positions(self, joint: str) -> FloatArray:
        """Coordinates (rows, nq of the joint)."""
        return self.q[:, self.model.joint(joint).q]

    def velocities(self, joint: str) -> FloatArray:
        """Velocities (rows, nv of the joint)."""
        return self.v[:, self.model.joint(joint).v]

    @cached_property
    def tau(self) -> FloatArray:
        """Generalised forces (rows, nv) of the control that act at each row, within efforts that are enforced.

        A function is asked again at the saved states.
        """
        return np.clip(self.asked, -self.model.efforts, self.model.efforts)

    @cached_property
    def asked(self) -> FloatArray:
        """Generalised forces (rows, nv) that the control asks for at each row, before enforced efforts bound them."""
        out, numbers = np.zeros_like(self.v), self.step_numbers
        ends = [part.first for part in self.controls[1:]] + [self.steps + 1]
        for part, end in zip(self.controls, ends, strict=True):
            rows = np.flatnonzero((numbers >= part.first) & (numbers < end))
            if rows.size:
                out[rows] = part.forces(self.model, numbers[rows], self.t[rows], self.q[rows], self.v[rows])
        return out

    @cached_property
    def _pushes(self) -> dict[str, FloatArray] | None:
        """Wrenches of the contacts by body, None without contact."""
        if "contact" not in self.model.features:
            return None
        bodies = dict.fromkeys(body for pair in self.contacts.names for body in pair if body != WORLD)
        return {body: self.contacts.wrench(body) for body in bodies}

    @cached_property
    def _reactions(self) -> tuple[dict[str, FloatArray], FloatArray]:
        return observe.joint_forces(self.model, self.t, self.q, self.v, self.tau, self._pushes)

    @cached_property
    def sensors(self) -> Readings:
        """What the sensors of the mechanism read at each row: name -> (rows, numbers), computed when asked for.

        Accelerations are those under the control and the contacts of ``contacts``, as ``joint_forces`` has them.
        """

        def accelerations() -> FloatArray:
            return observe.accelerations(self.model, self.t, self.q, self.v, self.tau, self._pushes)[0]

        return Readings(self.model, self.t, self.q, self.v, accelerations)

    @property
    def joint_forces(self) -> dict[str, FloatArray]:
        """Wrench (rows, 6) that each tree joint passes to its child, at the child frame in its axes, by joint name.

        Under the forces of ``contacts``, which are those of the step that begins at a row; impacts are no forces.
        """
        return self._reactions[0]

    @property
    def multipliers(self) -> dict[str, FloatArray]:
        """Forces (rows, k) of the constraint rows of each loop joint, newtons and newton metres, by joint name.

        That of a coupling, by its name, is the force on a coordinate whose coefficient is one.
        """
        places = {**self.model.loop_rows, **self.model.coupling_rows}
        return {name: self._reactions[1][:, rows] for name, rows in places.items()}

    @cached_property
    def contacts(self) -> Contacts:
        """Gap, forces and slip of each contact at each row; the run is taken again for it, step by step.

        A control that is a function is asked again. Forces are means over the step that begins at a row.
        """
        parts = [(part.first, part.control) for part in self.controls if part.first < self.steps]
        ends = [first for first, _ in parts[1:]] + [self.steps]
        controls, points = [], self.method.control_points
        if self.method.contact_pairs(self.model):
            for part, end in zip(self.controls, ends, strict=False):
                part.check_known()
                rows = part.control[: end - part.first] if part.kind == "array" else part.control
                controls.append((part.first, as_control(self.model, rows, part.first, end - part.first, points)))
        return contacts_of(
            self.model, self.method, self.clock, self.steps, self.every, self.q, self.v, self.tau[-1], controls
        )

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """A figure of energy, momentum, gaps, joint motion and iterations; options as in ``plot.plot_run``."""
        from leastaction.plot import plot_run

        return plot_run(self, path, **options)

    def show(self, **options: Any) -> Any:
        """Play the run in the live viewer (extra ``view``); options as in ``leastaction.view``."""
        from leastaction.view.live import show_runs

        return show_runs([self], **options)

    def to_html(self, path: str | Path, **options: Any) -> list[str]:
        """Write one .html file that plays the run from disk; options and notes as in ``view.page.write_html``."""
        from leastaction.view.page import write_html

        return write_html([self], path, **options)

    def to_video(self, path: str | Path, **options: Any) -> None:
        """Write an .mp4, .webm or .gif file (extra ``video``, a browser and ffmpeg); options: ``view.video``."""
        from leastaction.view.video import write_video

        write_video([self], path, **options)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with named coordinates (extra ``xarray``)."""
        from leastaction.run.export import to_xarray

        return to_xarray(self)

    def save(self, path: str | Path) -> None:
        """Write the run to an ``.npz`` file, with the mechanism where it can be written; no pickle."""
        arrays: dict[str, Any] = {"q": self.q, "v": self.v, "t": self.t}
        arrays.update({f"memory.{name}": array for name, array in self.memory.items()})
        if not self.clock.uniform:
            arrays["dt"] = self.clock.dt
        if self.iterations is not None:
            arrays["iterations"] = self.iterations
        arrays.update({f"control.{i}": p.control for i, p in enumerate(self.controls) if p.kind == "array"})
        try:
            mechanism: Any = mechanism_to_dict(self.model.described)
            missing = None
        except ModelError as error:
            mechanism, missing = None, str(error)
        meta = {
            "format": _FORMAT,
            "version": _VERSION,
            "mechanism": mechanism,
            "mechanism_missing": missing,
            "joints": _joints(self.model),
            "method": {"class": type(self.method).__name__, "options": self.method.options()},
            "t0": self.clock.t0,
            "dt": self.clock.dt if self.clock.uniform else None,
            "steps_by": None if self.pace is None else self.pace.to_dict(),
            "every": self.every,
            "steps": self.steps,
            "controls": [[part.first, part.kind] for part in self.controls],
            "report": self.report.to_dict(),
        }
        arrays["meta"] = np.array(json.dumps(meta))
        write_beside(check_path(path), lambda stream: np.savez_compressed(stream, **arrays))

    @staticmethod
    def load(path: str | Path, *, model: Model | None = None, limit: int | None = None) -> Trajectory:
        """Read a run. ``model`` is needed only where the file could not hold the mechanism.

        ``limit``: bytes that its arrays may take; by default 256 MiB, or 20 times the size of the file.
        """
        path = check_path(path)
        most = None if limit is None else _whole(limit, "limit", 0)
        data = read_file(path, "run", MAX_RUN_BYTES)
        with _naming(path):
            file = RunFile(data, most)
        meta = file.meta
        if meta.get("format") != _FORMAT or meta.get("version") != _VERSION:
            raise ModelError(f"{path}: this is not the file of a run of this version.")
        if model is None:
            if meta.get("mechanism") is None:
                why = printable(meta.get("mechanism_missing"))
                raise ModelError(f"{path}: the mechanism is not in the file ({why}); give model=.")
            with _naming(path):
                model = mechanism_from_dict(meta["mechanism"]).build()
        with _naming(path):
            check_model(model)
            _check_joints(model, meta)
        return _from_file(path, file, model)


def _joints(model: Model) -> list[list[str]]:
    """Name and kind of every moving joint, in the order of q."""
    return [[view.name, view.kind] for view in model.joints.values()]


def _check_joints(model: Model, meta: dict[str, Any]) -> None:
    """Refuse a model whose joints are not those of the run; files without the list, older ones, are taken as they are.

    Equal sizes are not enough: the numbers of one mechanism mean nothing to another.
    """
    there, here = meta.get("joints"), _joints(model)
    if there is None or there == here:
        return
    pairs = there if isinstance(there, list) else [there]
    k = next((k for k, (a, b) in enumerate(zip(pairs, here, strict=False)) if a != b), min(len(pairs), len(here)))
    theirs, ours = (_words(joints[k]) if k < len(joints) else "none" for joints in (pairs, here))
    raise ModelError(
        f"the run is of another model than '{model.name}': its joint number {k} is {theirs}, that of the model {ours}; "
        "give the model that ran."
    )


def _words(joint: Any) -> str:
    """A joint of the list in the file, in words."""
    return printable(" ".join(map(str, joint)) if isinstance(joint, list) else joint)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the file's name before the message of a ModelError raised inside."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error


def _from_file(path: Path, file: RunFile, model: Model) -> Trajectory:
    """A run from the parts of its file, checked: nothing else may reach compiled code."""
    meta = file.meta
    with _naming(path):
        # the description
        try:
            method = method_from_options(meta["method"]["class"], meta["method"]["options"])
            t0, dt, every, steps = (meta[key] for key in ("t0", "dt", "every", "steps"))
            report = Report.from_dict(meta["report"])
            parts = meta["controls"]
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"the description of the run is damaged ({error}).") from error
        check_supported(method, model)
        every, steps = _whole(every, "every", 1), _whole(steps, "steps", 0)
        # what the arrays must be, before they are unpacked
        rows = steps // every + 1 + (steps % every != 0)
        layout = method.layout(model)
        expected = {"q": (rows, model.nq), "v": (rows, model.nv), "dt": (steps,), "iterations": (rows,)}
        expected |= {f"memory.{name}": field.shape for name, field in layout.items()}
        arrays = {name: file.array(name, shape) for name, shape in expected.items() if name in file}
        clock, pace = _clock(t0, dt, steps, arrays), _pace(meta.get("steps_by"), dt)
        # the rows
        q, v = _rows(arrays, "q", model.nq), _rows(arrays, "v", model.nv)
        if len(q) != rows or len(v) != rows:
            raise ModelError(f"{steps} steps, every {every} kept, are {rows} rows; q has {len(q)} and v {len(v)}.")
        q, iterations = model.check_rows(q), _iterations(arrays, rows)
        # what the method needs to go on
        prefix = "memory."
        memory: Memory = {key.removeprefix(prefix): arrays.get(key, np.zeros(0)) for key in file.names(prefix)}
        method.check_memory(model, model.state(q[-1], v[-1]), memory)
        controls = _parts(parts, file, steps, model.nv, method.control_points)
    return Trajectory(model, method, clock, every, steps, q, v, memory, report, controls, pace, iterations)


def _clock(t0: Any, dt: Any, steps: int, arrays: dict[str, Any]) -> Clock:
    """The clock of a run from a file: one step length, or one for each step in the array "dt"."""
    t0 = check_number(t0, "t0")
    if dt is not None:
        return Clock(t0, check_number(dt, "dt", positive=True))
    lengths = arrays.get("dt")
    if lengths is None or lengths.dtype != np.float64:
        raise ModelError("dt must be a number, or an array of numbers.")
    if lengths.shape != (steps,):
        raise ModelError(f"dt has shape {lengths.shape} for {steps} steps.")
    return Clock(t0, check_steps(lengths, t0, "dt"))


def _pace(given: Any, dt: Any) -> Pace | None:
    """The step control of a run from a file; its steps have lengths of their own."""
    if given is None:
        return None
    if dt is not None:
        raise ModelError("a run with step control must have an array of steps.")
    return Pace.from_dict(given)


def _whole(value: Any, what: str, least: int) -> int:
    """A whole number from a file."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise ModelError(f"{what} must be a whole number from {least} to {_MOST}, got {value!r}.")
    return value


def _rows(arrays: dict[str, Any], name: str, width: int) -> FloatArray:
    """Finite rows of numbers from a file."""
    array = arrays.get(name)
    if array is None or array.dtype != np.float64 or array.ndim != 2 or array.shape[1] != width:
        raise ModelError(f"{name} must be rows of {width} numbers.")
    if not np.isfinite(array).all():
        raise ModelError(f"{name} is not finite.")
    return np.ascontiguousarray(array)


def _iterations(arrays: dict[str, Any], rows: int) -> IntArray | None:
    """Iterations (rows,) from a file; older files have none."""
    array = arrays.get("iterations")
    if array is None:
        return None
    if array.dtype != np.int64 or array.shape != (rows,) or (array < 0).any():
        raise ModelError(f"iterations must be {rows} whole numbers from 0 on.")
    return np.ascontiguousarray(array)


def _parts(given: Any, file: RunFile, steps: int, nv: int, points: int) -> tuple[Part, ...]:
    """Controls of the parts of a run from a file: the first from step 0 on, each with rows for its steps."""
    pairs: list[Any] = given if isinstance(given, list) else [given]
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ModelError(f"controls must be pairs of a step and a word, got {given!r}.")
    firsts = [_whole(first, "controls: the first step of a part", 0) for first, _ in pairs]
    if firsts != sorted(firsts) or (firsts and (firsts[0] != 0 or firsts[-1] > steps)):
        raise ModelError(f"controls: the parts must begin at step 0 and follow each other, got {firsts}.")
    out = []
    for i, ((first, kind), end) in enumerate(zip(pairs, [*firsts[1:], steps], strict=False)):
        if kind not in ("none", "array", "function"):
            raise ModelError(f"controls: unknown kind {kind!r}.")
        array = None
        if kind == "array":
            array = _control(file, f"control.{i}", end - first + 1, nv, points)
        if array is not None and len(array) < end - first:
            raise ModelError(f"control.{i} has {len(array)} rows for {end - first} steps.")
        out.append(Part(first, _LOST if kind == "function" else array))
    return tuple(out)


def _control(file: RunFile, name: str, rows: int, nv: int, points: int) -> FloatArray:
    """The rows of a control that belong to the steps of a part, and one for the state after them if it is there."""
    if name not in file:
        raise ModelError(f"{name} is missing.")
    array = file.array(name, (rows, points, nv), cut=True)
    # one value in a step, or one for each of its nodes
    several = points > 1 and array.ndim == 3
    flat = _rows({name: array.reshape(len(array), -1) if several else array}, name, points * nv if several else nv)
    return flat.reshape(-1, points, nv) if several else flat
