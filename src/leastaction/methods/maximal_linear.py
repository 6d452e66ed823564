"""Derivative of a step of ``Maximal``: directions of the start, the compiled kernel, and back to the user's."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.methods.base import Memory
from leastaction.methods.closing import link_rows
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.galerkin_links_linear import Tangent
from leastaction.model.checks import FloatArray
from leastaction.model.configuration import difference, retract
from leastaction.model.model import Model, State

PARAMETERS = ("mass", "inertia", "friction")
"""What a step can be differentiated by besides state and control."""

# Displacement, in radians or metres over a step, over which the residual is differenced; and part of a parameter.
_FAR, _PART = 1e-5, 1e-5


@dataclass
class Problem:
    """One step: model, start, control (nv,), length, memory at the start, and what the solver is told."""

    model: Model
    state: State
    tau: FloatArray
    dt: float
    memory: Memory
    plan: Any
    touching: Any
    kept: Any
    numbers: tuple[float, float, float]
    iterations: int

    def along(
        self, X: FloatArray, P: FloatArray, U: FloatArray, far: FloatArray, ends: Any, dmu: FloatArray | None = None
    ) -> tuple[FloatArray, State]:
        """Derivatives (2 nv, m) of the next state along directions with the given ends, and the next state.

        ArithmeticError if the step has no solution. ``ends``: the two mechanisms, as kernels read them.
        """
        from leastaction.kernels import bodywise_linear

        model, n, system, touching = self.model, self.model.nv, self.model.system, self.touching
        contacts = touching.table.contacts if touching else None
        if dmu is None:
            dmu = np.zeros((len(far), len(contacts.pairs) if contacts else 0))
        # all but the tables is written to
        kept = None if self.kept is None else (*(array.copy() for array in self.kept[:-1]), self.kept[-1])
        out_x, out_p, x1, p1 = np.zeros_like(X), np.zeros_like(P), np.zeros(model.nq), np.zeros(n)
        status = bodywise_linear.linearize(
            system, ends, self.plan, contacts, touching.limits if touching else None, kept, self.state.t, self.dt,
            self.memory["x"], self.memory["p"], self.tau, True, self.numbers, self.iterations, X, P, U, far, dmu, out_x,
            out_p, x1, p1,
        )  # fmt: skip
        model.raise_pending()
        if status:
            raise ArithmeticError(f"status {status}")
        out = np.zeros((2 * n, len(far)))
        for j, length in enumerate(far):
            (q, v), (q_back, v_back) = (self.leave(ends[k], out_x[2 * j + k], out_p[2 * j + k]) for k in range(2))
            out[:n, j] = difference(model, q_back, q) / (2.0 * length)
            out[n:, j] = (v - v_back) / (2.0 * length)
        return out, model.state(*self.leave(system, x1, p1), self.state.t + self.dt)

    def leave(self, system: Any, x: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The user's state."""
        from leastaction.kernels import legendre

        q, v = np.zeros(self.model.nq), np.zeros(self.model.nv)
        if not legendre.leave(system, self.state.t + self.dt, x, p, q, v):
            raise ArithmeticError("no velocity")
        return q, v

    def starts(self, m: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ends (2 m, .) of m directions, all at the start of the step."""
        return (
            np.tile(self.memory["x"], (2 * m, 1)),
            np.tile(self.memory["p"], (2 * m, 1)),
            np.tile(self.tau, (2 * m, 1)),
        )


def step_derivative(problem: Problem, effort: FloatArray, parameters: tuple[str, ...]) -> StepDerivative:
    """A, B, C and the state at the end; ArithmeticError if the step itself has no solution."""
    from leastaction.kernels import entries, legendre

    model, state, dt = problem.model, problem.state, problem.dt
    n, system = model.nv, model.system
    # how far each direction goes: all move the mechanism by about as much
    M = np.zeros((1, n, n))
    entries.mass_matrices(system, state.q[None], M)
    far = np.concatenate([np.full(n, _FAR), np.full(n, _FAR / dt), _FAR / dt**2 * np.maximum(np.diag(M[0]), 1e-12)])
    X, P, U = problem.starts(3 * n)
    u = np.zeros(n)
    for j in range(3 * n):
        for side, sign in enumerate((1.0, -1.0)):
            step, row = np.zeros(n), 2 * j + side
            step[j % n] = sign * far[j]
            q = retract(model, state.q, step) if j < n else state.q.copy()
            v = state.v + step if n <= j < 2 * n else state.v.copy()
            legendre.enter(system, q, v, X[row], u, P[row])
            U[row] += step if j >= 2 * n else 0.0
    out, end = problem.along(X, P, U, far, (system, system))

    # a control that is at its bound does nothing
    out[:, 2 * n :][:, np.abs(problem.tau) >= effort] = 0.0
    A = out[:, : 2 * n]
    if link_rows(model):
        # directions that break loops are first projected on those that do not
        A = A @ Tangent(model, state).projector()
    C = {name: _by_parameter(problem, name) for name in parameters}
    return StepDerivative(A, out[:, 2 * n :], end, C)


def _by_parameter(problem: Problem, name: str) -> dict[Any, FloatArray]:
    """Derivatives (2 nv,) by masses or friction coefficients, (2 nv, 3, 3) by inertias, by name of what has them."""
    model = problem.model
    if name == "friction":
        return _by_friction(problem)
    out: dict[Any, FloatArray] = {}
    for body, at in model.mechanism.bodies.items():
        if model.place(body).row == 0 or not at.mass > 0:
            continue
        if name == "mass":
            length = _PART * at.mass
            out[body] = _between(problem, body, length, mass=length)
            continue
        out[body] = np.zeros((2 * model.nv, 3, 3))
        length = _PART * float(np.trace(at.inertia))
        for i, j in _pairs():
            change = np.zeros((3, 3))
            change[i, j] = change[j, i] = length
            column = _between(problem, body, length, inertia=change)
            # off the diagonal two numbers change at once
            out[body][:, i, j] = out[body][:, j, i] = column if i == j else 0.5 * column
    return out


def _pairs() -> Iterator[tuple[int, int]]:
    """Places of a symmetric matrix."""
    return ((i, j) for i in range(3) for j in range(i, 3))


def _between(problem: Problem, body: str, length: float, mass: float = 0.0, inertia: Any = 0.0) -> FloatArray:
    """Derivative (2 nv,) along a change of one body."""
    from leastaction.kernels import legendre

    ends, state = [], problem.state
    X, P, U = problem.starts(1)
    for side, sign in enumerate((1.0, -1.0)):
        mechanism = copy.deepcopy(problem.model.mechanism)
        changed = mechanism.bodies[body]
        changed.mass += sign * mass
        changed.inertia = changed.inertia + sign * inertia
        other = mechanism.build()
        ends.append(other.system)
        legendre.enter(other.system, state.q.copy(), state.v.copy(), X[side], np.zeros(len(state.v)), P[side])
    return problem.along(X, P, U, np.array([length]), tuple(ends))[0][:, 0]


def _by_friction(problem: Problem) -> dict[Any, FloatArray]:
    """Derivatives (2 nv,) by the friction coefficient of every pair of bodies that may touch."""
    if problem.touching is None:
        return {}
    names = problem.touching.table.names
    pairs = list(dict.fromkeys(names))
    dmu = np.array([[float(name == pair) for name in names] for pair in pairs])
    system = problem.model.system
    columns = problem.along(*problem.starts(len(pairs)), np.full(len(pairs), _FAR), (system, system), dmu)[0]
    return {pair: columns[:, k] for k, pair in enumerate(pairs)}
