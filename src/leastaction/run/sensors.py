"""What sensors read at states, and along a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from leastaction.dynamics import quantities, redmax
from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.maximal import maximal_bodies
from leastaction.model.model import Model, State, check_model
from leastaction.model.sensors import SENSORS, Sensor
from leastaction.spatial import quaternion
from leastaction.tree.layout import COM, MASS, PARENT

_ACCELERATIONS = frozenset({"framelinacc", "frameangacc", "accelerometer"})

_AXES = {"framexaxis": 0, "frameyaxis": 1, "framezaxis": 2}


def read_sensors(model: Model, state: State, control: Any = None) -> dict[str, FloatArray]:
    """What every sensor reads at a state: name -> (numbers,); see ``Sensor`` for the kinds.

    Args:
        model: the model.
        state: where it is and how it moves.
        control: generalised forces (nv,) or a dict by joint name, which sensors of acceleration feel.

    Raises:
        UnsupportedError: a sensor of acceleration, and forces that a single state does not have, such as contact.
    """
    check_model(model)
    if not isinstance(state, State):
        raise ModelError(f"read_sensors: expected a state, got {type(state).__name__}; make one by model.state(q, v).")
    q, v = model.check_q(state.q)[None], model.check_v(state.v)[None]
    tau = model.check_v(control, "tau")[None]
    t = np.array([state.t])
    found = Readings(model, t, q, v, lambda: quantities.forward_dynamics(model, q, v, tau, t=state.t))
    return {name: values[0] for name, values in found.items()}


class Readings(Mapping[str, FloatArray]):
    """Arrays (rows, numbers) by sensor, computed when they are asked for.

    Args:
        model: the model.
        t, q, v: times (rows,), coordinates (rows, nq), velocities (rows, nv).
        acceleration: a function that gives dv/dt (rows, nv), called if a sensor needs it.
    """

    def __init__(
        self, model: Model, t: FloatArray, q: FloatArray, v: FloatArray, acceleration: Callable[[], FloatArray]
    ) -> None:
        self.model, self.t, self.q, self.v, self._acceleration = model, t, q, v, acceleration
        self._known: dict[str, FloatArray] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.model.mechanism.sensors)

    def __len__(self) -> int:
        return len(self.model.mechanism.sensors)

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self._known:
            sensors = self.model.mechanism.sensors
            if name not in sensors:
                there = ", ".join(map(repr, list(sensors)[:20])) or "none"
                raise KeyError(f"there is no sensor {name!r}; there are {there}.")
            sensor = sensors[name]
            values = self._scaled(sensor, self._read(sensor).reshape(len(self.q), SENSORS[sensor.kind][1]))
            self._known[name] = values
        return self._known[name]

    def __repr__(self) -> str:
        return f"Readings({', '.join(self)})"

    @cached_property
    def a(self) -> FloatArray:
        """dv/dt (rows, nv)."""
        return self._acceleration()

    def _scaled(self, sensor: Sensor, values: FloatArray) -> FloatArray:
        out = sensor.scale * values + sensor.offset if (sensor.scale, sensor.offset) != (1.0, 0.0) else values
        return np.clip(out, -sensor.cutoff, sensor.cutoff) if sensor.cutoff else out

    def _read(self, sensor: Sensor) -> FloatArray:
        """The quantity (rows, numbers) itself."""
        looks_at, _ = SENSORS[sensor.kind]
        if sensor.kind == "clock":
            return self.t
        if looks_at in ("joint", "ball"):
            view = self.model.joint(sensor.target)
            return self.q[:, view.q] if sensor.kind in ("jointpos", "ballquat") else self.v[:, view.v]
        if sensor.kind == "subtreecom":
            return self._center(sensor.target)
        if sensor.kind in _ACCELERATIONS:
            return self._felt(sensor)
        return self._seen(sensor)

    def _frame(self, name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Pose (rows, 4, 4) and (angular; linear) velocity, each (rows, 3), of a frame in world axes."""
        rows = len(self.q)
        if name in ("", "world"):
            return np.tile(np.eye(4), (rows, 1, 1)), np.zeros((rows, 3)), np.zeros((rows, 3))
        twist = quantities.body_twists(self.model, self.q, self.v, [name])[:, 0]
        return quantities.frame_poses(self.model, self.q, [name])[:, 0], twist[:, :3], twist[:, 3:]

    def _seen(self, sensor: Sensor) -> FloatArray:
        """Place and velocity of a frame as seen from another one, or in its own axes."""
        at, w, u = self._frame(sensor.target)
        base, w0, u0 = self._frame(sensor.reference)
        if sensor.kind in ("gyro", "velocimeter"):
            return _turned_back(at, w if sensor.kind == "gyro" else u)
        if sensor.kind == "framepos":
            return _turned_back(base, at[:, :3, 3] - base[:, :3, 3])
        if sensor.kind == "framequat":
            turns = [quaternion.from_matrix(each[:3, :3]) for each in np.swapaxes(base, 1, 2)]
            seen = [quaternion.from_matrix(each[:3, :3]) for each in at]
            return np.array([quaternion.multiply(a, b) for a, b in zip(turns, seen, strict=True)])
        if sensor.kind in _AXES:
            return _turned_back(base, at[:, :3, _AXES[sensor.kind]])
        if sensor.kind == "frameangvel":
            return _turned_back(base, w - w0)
        return _turned_back(base, u - u0 - np.cross(w0, at[:, :3, 3] - base[:, :3, 3]))

    def _felt(self, sensor: Sensor) -> FloatArray:
        """Acceleration of a frame less gravity, world axes or its own; or the angular one."""
        angular, linear = frame_accelerations(self.model, self.q, self.v, self.a, sensor.target)
        if sensor.kind == "frameangacc":
            return angular
        felt = linear - np.asarray(self.model.system.tree.gravity)
        if sensor.kind == "framelinacc":
            return felt
        return _turned_back(quantities.frame_poses(self.model, self.q, [sensor.target])[:, 0], felt)

    def _center(self, body: str) -> FloatArray:
        """Centre of mass of a body and of what it carries; its own origin where they have no mass."""
        model, tree = self.model, self.model.system.tree
        first, total = model.place(body).row, 0.0
        out = np.zeros((len(self.q), 3))
        for name in model.row_names:
            row = k = model.places[name].row
            while k > first:
                k = int(tree.rows[k, PARENT])
            if k != first:
                continue
            mass, com = tree.const[row, MASS], tree.const[row, COM : COM + 3]
            at = quantities.frame_poses(model, self.q, [name])[:, 0] @ np.linalg.inv(model.places[name].pose)
            out += mass * (at[:, :3, :3] @ com + at[:, :3, 3])
            total += float(mass)
        return out / total if total else quantities.frame_poses(model, self.q, [body])[:, 0, :3, 3]


def frame_accelerations(
    model: Model, q: FloatArray, v: FloatArray, a: FloatArray, name: str
) -> tuple[FloatArray, FloatArray]:
    """Angular and linear acceleration (rows, 3) of a frame at its origin, world axes, for rows of q, v and dv/dt."""
    row, bodies = model.place(name).row, maximal_bodies(model)
    if row == 0:
        return np.zeros((len(q), 3)), np.zeros((len(q), 3))
    b = int(np.flatnonzero(bodies.rows == row)[0])
    at = quantities.frame_poses(model, q, [bodies.names[b], name])
    angular, linear = np.zeros((len(q), 3)), np.zeros((len(q), 3))
    for k in range(len(q)):
        # twist of the link in its own axes, and its rate of change there
        twist = redmax.twists(model, q[k], v[k])[b]
        rate = redmax.twists(model, q[k], a[k])[b] + redmax.twist_rates(model, q[k], v[k], v[k])[b]
        R, arm = at[k, 0, :3, :3], at[k, 1, :3, 3] - at[k, 0, :3, 3]
        w, angular[k] = R @ twist[:3], R @ rate[:3]
        origin = R @ (rate[3:] + np.cross(twist[:3], twist[3:]))
        linear[k] = origin + np.cross(angular[k], arm) + np.cross(w, np.cross(w, arm))
    return angular, linear


def _turned_back(at: FloatArray, x: FloatArray) -> FloatArray:
    """Vectors (rows, 3) in the axes of frames (rows, 4, 4)."""
    return np.asarray(np.einsum("nij,ni->nj", at[:, :3, :3], x))
