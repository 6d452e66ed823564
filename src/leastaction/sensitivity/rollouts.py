"""Whole runs as functions (q0, v0, controls) -> (q, v) with a derivative, for the bridges to JAX and PyTorch.

Coordinates are plain numbers here, quaternions too, so derivatives by displacements are turned into derivatives by
coordinates: along the unit sphere of a quaternion, and zero across it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.methods.base import Method
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.joints import layout
from leastaction.model.model import Model, State, check_model
from leastaction.run.registry import method_by_name
from leastaction.run.simulate import simulate
from leastaction.sensitivity.gradient import check_gradient, gradient
from leastaction.sensitivity.objectives import Objective, Part
from leastaction.spatial import quaternion


@dataclass(frozen=True, eq=False)
class Rollout:
    """Runs of one model with one method and step.

    Attributes:
        model: the mechanism.
        method: a method that has a gradient.
        dt: step in seconds.
    """

    model: Model
    method: Method
    dt: float

    def run(self, q0: Any, v0: Any, controls: Any) -> tuple[FloatArray, FloatArray]:
        """Coordinates (steps + 1, nq) and velocities (steps + 1, nv)."""
        push = np.asarray(controls, dtype=float)
        if push.ndim != 2 or not len(push):
            raise ModelError(f"rollout: controls must be (steps, {self.model.nv}), got shape {push.shape}.")
        state = self.model.state(np.asarray(q0, dtype=float), np.asarray(v0, dtype=float))
        run = simulate(self.model, state, dt=self.dt, duration=len(push) * self.dt, method=self.method, control=push)
        return run.q, run.v

    def back(
        self, q0: Any, v0: Any, controls: Any, by_q: FloatArray, by_v: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Derivatives by q0 (nq,), v0 (nv,) and controls of a result whose derivatives by all rows are given."""
        model = self.model
        state = model.state(np.asarray(q0, dtype=float), np.asarray(v0, dtype=float))

        def part(k: int, at: State) -> Part:
            return Part(0.0, tangent(model, at.q).T @ by_q[k], np.asarray(by_v[k], dtype=float))

        objective = Objective(lambda m, k, at, u: part(k, at), lambda m, at: part(len(by_q) - 1, at))
        found = gradient(model, self.method, state, np.asarray(controls, dtype=float), self.dt, objective)
        return np.linalg.pinv(tangent(model, state.q)).T @ found["q"], found["v"], found["controls"]


def rollout_of(model: Model, method: Method | str, dt: float) -> Rollout:
    """A checked rollout; UnsupportedError for a method without a gradient."""
    check_model(model)
    chosen = method_by_name(method) if isinstance(method, str) else method
    check_gradient(chosen, model, ("q", "v", "controls"))
    return Rollout(model, chosen, check_number(dt, "rollout: dt", positive=True))


def tangent(model: Model, q: FloatArray) -> FloatArray:
    """(nq, nv) change of the coordinates by displacements."""
    out = np.zeros((model.nq, model.nv))
    for view in model.joints.values():
        if view.kind == "free":
            turn = q[view.q.start + 3 : view.q.stop]
            out[view.q.start : view.q.start + 3, view.v.start + 3 : view.v.stop] = quaternion.to_matrix(turn)
            out[view.q.start + 3 : view.q.stop, view.v.start : view.v.start + 3] = _half(turn)
            continue
        for piece in layout(view.joint):
            rows = slice(view.q.start + piece.q.start, view.q.start + piece.q.stop)
            columns = slice(view.v.start + piece.v.start, view.v.start + piece.v.stop)
            out[rows, columns] = _half(q[rows]) if piece.factor == "ball" else 1.0
    return out


def _half(q: FloatArray) -> FloatArray:
    """(4, 3) change q (0, theta) / 2 of a quaternion by a rotation vector in child axes."""
    return np.column_stack([0.5 * quaternion.multiply(q, np.array([0.0, *e])) for e in np.eye(3)])
