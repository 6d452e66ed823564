"""Trajectory: the rows of a run, what can be computed from them, and its file."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from leastaction import dynamics, observe
from leastaction.errors import ModelError
from leastaction.methods.base import Clock, Memory, Method
from leastaction.methods.registry import method_from_options
from leastaction.model.checks import FloatArray
from leastaction.model.files import MAX_RUN_BYTES, check_path, read_file, write_beside
from leastaction.model.model import Model, State
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict
from leastaction.report import Report

_FORMAT, _VERSION = "leastaction run", 1


@dataclass(eq=False)
class Trajectory:
    """A run: one row per saved step, the first state first and the last state last.

    Attributes:
        model: the model that ran.
        method: the integrator.
        clock: first time and step.
        every: how many steps lie between rows.
        steps: steps done.
        q: coordinates (rows, nq).
        v: velocities (rows, nv).
        memory: what the method needs to go on.
        report: counts, times, limits crossed.
        control: as it was given to ``simulate``.
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
    control: Any = None

    @cached_property
    def t(self) -> FloatArray:
        """Times (rows,) in seconds."""
        return np.asarray(self.clock.t0 + self.step_numbers * self.clock.dt, dtype=float)

    @property
    def step_numbers(self) -> Any:
        """Number of the step (rows,) that each row belongs to."""
        numbers = np.arange(len(self.q)) * self.every
        numbers[-1] = self.steps
        return numbers

    @property
    def dt(self) -> float:
        """Step in seconds."""
        return self.clock.dt

    @property
    def final(self) -> State:
        """The last state."""
        return self.model.state(self.q[-1], self.v[-1], float(self.t[-1]))

    def state(self, row: int) -> State:
        """The state of a row; negative numbers count from the end."""
        return self.model.state(self.q[row], self.v[row], float(self.t[row]))

    @cached_property
    def energy(self) -> dynamics.Energy:
        """Kinetic, potential and total energy (rows,)."""
        return dynamics.energy(self.model, self.q, self.v)

    @cached_property
    def momentum(self) -> dynamics.Momentum:
        """Linear momentum, and angular momentum about the world's origin, (rows, 3) each."""
        return dynamics.momentum(self.model, self.q, self.v)

    @cached_property
    def constraint_error(self) -> FloatArray:
        """Largest gap (rows,) of loops and equality constraints, metres or radians."""
        return observe.constraint_error(self.model, self.q)

    def poses(self, name: str) -> FloatArray:
        """Poses (rows, 4, 4) of a body's link frame, or of a named frame."""
        return dynamics.frame_poses(self.model, self.q, [name])[:, 0]

    def positions(self, joint: str) -> FloatArray:
        """Coordinates (rows, nq of the joint)."""
        return self.q[:, self.model.joint(joint).q]

    def velocities(self, joint: str) -> FloatArray:
        """Velocities (rows, nv of the joint)."""
        return self.v[:, self.model.joint(joint).v]

    @cached_property
    def tau(self) -> FloatArray:
        """Generalised forces (rows, nv) of the control at each row; a function is asked again at the saved states."""
        if self.control is None:
            return np.zeros_like(self.v)
        if callable(self.control):
            states = [State(float(t), q, v) for t, q, v in zip(self.t, self.q, self.v, strict=True)]
            return np.array([self.model.check_v(self.control(state.t, state), "control") for state in states])
        if not isinstance(self.control, np.ndarray | list | tuple):
            raise ModelError("the control of this run is compiled; its forces at the saved rows are not kept.")
        # rows of the array belong to the last steps of the run; the last state has no step of its own
        array = np.asarray(self.control, dtype=float)
        index = np.clip(self.step_numbers - (self.steps - len(array)), 0, len(array) - 1)
        return np.where((self.step_numbers >= self.steps - len(array))[:, None], array[index], 0.0)

    @cached_property
    def _reactions(self) -> tuple[dict[str, FloatArray], FloatArray]:
        return observe.joint_forces(self.model, self.t, self.q, self.v, self.tau)

    @property
    def joint_forces(self) -> dict[str, FloatArray]:
        """Wrench (rows, 6) that each tree joint passes to its child, at the child frame in its axes, by joint name."""
        return self._reactions[0]

    @property
    def multipliers(self) -> dict[str, FloatArray]:
        """Forces (rows, k) of the constraint rows of each loop joint, newtons and newton metres, by joint name."""
        return {name: self._reactions[1][:, rows] for name, rows in self.model.loop_rows.items()}

    @property
    def contacts(self) -> dict[str, Any]:
        """Gap, forces and slip of each contact; none of the methods of this version has contact."""
        return {}

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of energy, momentum, constraint error and joint motion; written to ``path`` if given."""
        from leastaction.plot import plot_run

        return plot_run(self, path)

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with named coordinates (extra ``xarray``)."""
        from leastaction.export import to_xarray

        return to_xarray(self)

    def save(self, path: str | Path) -> None:
        """Write the run to an ``.npz`` file, with the mechanism where it can be written; no pickle."""
        arrays: dict[str, Any] = {"q": self.q, "v": self.v, "t": self.t}
        arrays.update({f"memory.{name}": array for name, array in self.memory.items()})
        if isinstance(self.control, np.ndarray):
            arrays["control"] = self.control
        try:
            mechanism: Any = mechanism_to_dict(self.model.mechanism)
            missing = None
        except ModelError as error:
            mechanism, missing = None, str(error)
        meta = {
            "format": _FORMAT,
            "version": _VERSION,
            "mechanism": mechanism,
            "mechanism_missing": missing,
            "method": {"class": type(self.method).__name__, "options": self.method.options()},
            "t0": self.clock.t0,
            "dt": self.clock.dt,
            "every": self.every,
            "steps": self.steps,
            "report": self.report.to_dict(),
        }
        arrays["meta"] = np.array(json.dumps(meta))
        write_beside(check_path(path), lambda stream: np.savez_compressed(stream, **arrays))

    @staticmethod
    def load(path: str | Path, *, model: Model | None = None) -> Trajectory:
        """Read a run. ``model`` is needed only where the file could not hold the mechanism."""
        path = check_path(path)
        try:
            with np.load(io.BytesIO(read_file(path, "run", MAX_RUN_BYTES)), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            meta = json.loads(str(arrays.pop("meta")))
        except (ValueError, KeyError, OSError, EOFError, json.JSONDecodeError, zipfile.BadZipFile) as error:
            raise ModelError(f"{path}: this is not the file of a run ({error}).") from error
        if not isinstance(meta, dict) or meta.get("format") != _FORMAT or meta.get("version") != _VERSION:
            raise ModelError(f"{path}: this is not the file of a run of this version.")
        if model is None:
            if meta["mechanism"] is None:
                why = meta.get("mechanism_missing")
                raise ModelError(f"{path}: the mechanism is not in the file ({why}); give model=.")
            model = mechanism_from_dict(meta["mechanism"]).build()
        return _from_file(path, model, meta, arrays)


def _from_file(path: Path, model: Model, meta: dict[str, Any], arrays: dict[str, Any]) -> Trajectory:
    """A run from the parts of its file, checked."""
    q, v = arrays.get("q"), arrays.get("v")
    for what, array, width in (("q", q, model.nq), ("v", v, model.nv)):
        if array is None or array.ndim != 2 or array.shape[1] != width or not np.isfinite(array).all():
            raise ModelError(f"{path}: {what} must be finite rows of {width} numbers for '{model.name}'.")
    if q is None or v is None or len(q) != len(v) or len(q) == 0:
        raise ModelError(f"{path}: q and v must have the same rows, at least one.")
    try:
        method = method_from_options(meta["method"]["class"], meta["method"]["options"])
        clock = Clock(float(meta["t0"]), float(meta["dt"]))
        report = Report(**meta["report"])
        every, steps = int(meta["every"]), int(meta["steps"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: the description of the run is damaged ({error}).") from error
    memory = {name.removeprefix("memory."): array for name, array in arrays.items() if name.startswith("memory.")}
    return Trajectory(model, method, clock, every, steps, q, v, memory, report, arrays.get("control"))
