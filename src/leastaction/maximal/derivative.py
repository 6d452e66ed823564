"""Derivative of a step of ``Maximal``: directions of the start, the compiled kernel, and back to the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastaction.jit.callbacks import take_pending
from leastaction.methods.base import Memory
from leastaction.methods.closing import row_count
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.tangent import start_projector
from leastaction.model.checks import FloatArray
from leastaction.model.configuration import difference, retract
from leastaction.model.model import Model, State
from leastaction.tree.layout import COM, INERTIA, MASS

PARAMETERS = ("mass", "inertia", "friction")
"""What a step can be differentiated by besides state and control."""

# Displacement, in radians or metres over a step, over which the residual is differenced; and part of a parameter.
_FAR, _PART = 1e-5, 1e-5

# Radius of gyration, in metres, of a point at its frame, for how far its inertia is changed.
_POINT = 0.01

# Part of the barrier over which the step is differenced.
_BARRIER = 1e-3


class NoStepError(Exception):
    """The step itself has no solution: status and row as ``maximal.step.rollout`` returns them."""

    def __init__(self, status: int, row: int) -> None:
        super().__init__(f"status {status}, row {row}")
        self.status, self.row = status, row


def _raise_first(*owners: Model) -> None:
    """Raise the first error of functions of the user of some models, if there was one."""
    error = take_pending(callback for owner in owners for callback in owner.callbacks)
    if error is not None:
        raise error


@dataclass
class Problem:
    """One step: model, start, control (nv,), length, memory at the start, and what the solver is told.

    slowest: speed below which nothing bounces. dry: joint and entry of each coordinate with dry friction.
    """

    model: Model
    state: State
    tau: FloatArray
    dt: float
    memory: Memory
    plan: Any
    touching: Any
    kept: Any
    numbers: tuple[float, float, float, float]
    iterations: int
    slowest: float
    dry: tuple[tuple[str, int], ...]

    def along(
        self,
        X: FloatArray,
        P: FloatArray,
        U: FloatArray,
        far: FloatArray,
        ends: tuple[Model, Model] | None = None,
        dmu: FloatArray | None = None,
    ) -> tuple[FloatArray, State]:
        """Derivatives (2 nv, m) of the next state along directions with the given ends, and the next state.

        NoStepError if the step has no solution. ``ends``: the models at the two ends, where they are others; frames
        and shapes of their rows are the same. They own the functions of the user whose addresses their arrays hold, so
        arrays alone would not do.
        """
        from leastaction.maximal import linear as maximal_linear

        model, n, touching = self.model, self.model.nv, self.touching
        contacts = touching.table.contacts if touching else None
        owners = ends or (model, model)
        if dmu is None:
            dmu = np.zeros((len(far), (len(contacts.pairs) if contacts else 0) + len(self.dry)))
        # all but the tables is written to
        kept = None if self.kept is None else (*(array.copy() for array in self.kept[:-1]), self.kept[-1])
        out_x, out_p, x1, p1 = np.zeros_like(X), np.zeros_like(P), np.zeros(model.nq), np.zeros(n)
        systems = tuple(owner.system for owner in owners)
        status, row = maximal_linear.linearize(
            model.system, systems, self.plan, contacts, contacts if "restitution" in model.features else None,
            self.slowest, touching.limits if touching else None, kept, self.state.t, self.dt, self.memory["x"],
            self.memory["p"], self.tau, True, self.numbers, self.iterations, X, P, U, far, dmu, out_x, out_p, x1, p1,
        )  # fmt: skip
        _raise_first(model, *owners)
        if status:
            raise NoStepError(status, row)
        out = np.zeros((2 * n, len(far)))
        for j, length in enumerate(far):
            (q, v), (q_back, v_back) = (self.leave(owners[k], out_x[2 * j + k], out_p[2 * j + k]) for k in range(2))
            out[:n, j] = difference(model, q_back, q) / (2.0 * length)
            out[n:, j] = (v - v_back) / (2.0 * length)
        return out, model.state(*self.leave(model, x1, p1), self.state.t + self.dt)

    def leave(self, owner: Model, x: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The user's state from that of a model's rows."""
        from leastaction.dynamics import legendre
        from leastaction.jit.status import NO_RATES

        q, v = np.zeros(self.model.nq), np.zeros(self.model.nv)
        good = legendre.leave_momenta(owner.system, self.state.t + self.dt, x, p, q, v)
        _raise_first(self.model, owner)
        if not good:
            raise NoStepError(NO_RATES, 0)
        return q, v

    def starts(self, m: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The ends (2 m, .) of m directions, all at the start of the step."""
        return (
            np.tile(self.memory["x"], (2 * m, 1)),
            np.tile(self.memory["p"], (2 * m, 1)),
            np.tile(self.tau, (2 * m, 1)),
        )


def step_derivative(problem: Problem, effort: FloatArray, parameters: tuple[str, ...]) -> StepDerivative:
    """A, B, C and the state at the end; NoStepError if the step itself has no solution."""
    from leastaction.dynamics import entries, legendre

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
            legendre.enter_momenta(system, q, v, X[row], u, P[row])
            U[row] += step if j >= 2 * n else 0.0
    out, end = problem.along(X, P, U, far)

    # a control that is at its bound does nothing
    out[:, 2 * n :][:, np.abs(problem.tau) >= effort] = 0.0
    A = out[:, : 2 * n]
    if row_count(model):
        # directions that break loops are first projected on those that do not
        A = A @ start_projector(model, state)
    C = {name: _by_parameter(problem, name) for name in parameters}
    return StepDerivative(A, out[:, 2 * n :], end, C)


def _by_parameter(problem: Problem, name: str) -> dict[Any, FloatArray]:
    """Derivatives (2 nv,) by masses or friction coefficients, (2 nv, 3, 3) by inertias, by name of what has them."""
    model = problem.model
    if name == "friction":
        return _by_friction(problem)
    out: dict[Any, FloatArray] = {}
    # a mass changes the weight, by which the barrier is chosen
    weight = _by_barrier(problem) / model.total_mass if name == "mass" else 0.0
    for body, at in model.mechanism.bodies.items():
        if model.place(body).row == 0 or not at.mass > 0:
            continue
        if name == "mass":
            length = _PART * at.mass
            ends = [_with_mass(model, body, sign * length) for sign in (1.0, -1.0)]
            out[body] = _between(problem, length, ends) + weight
            continue
        out[body] = np.zeros((2 * model.nv, 3, 3))
        length = _PART * (float(np.trace(at.inertia)) or at.mass * (float(at.com @ at.com) + _POINT**2))
        for i, j in _pairs():
            change = np.zeros((3, 3))
            change[i, j] = change[j, i] = length
            column = _between(problem, length, [_with_inertia(model, body, sign * change) for sign in (1.0, -1.0)])
            # off the diagonal two numbers change at once
            out[body][:, i, j] = out[body][:, j, i] = column if i == j else 0.5 * column
    return out


def _pairs() -> Iterator[tuple[int, int]]:
    """Places of a symmetric matrix."""
    return ((i, j) for i in range(3) for j in range(i, 3))


def _with_mass(model: Model, body: str, change: float) -> Model:
    """The model with the mass of a body changed, at its centre of mass.

    Frames of rows stay where they are, though that of a free joint is at the centre of mass of all that is fixed to
    each other there: contacts and inequalities know points and planes in these frames.
    """
    const, at = model.system.tree.const.copy(), model.mechanism.bodies[body]
    for place, part in model.shares(body):
        i, added = place.row, place.pose[:3, :3] @ at.com + place.pose[:3, 3]
        mass, com = const[i, MASS], const[i, COM : COM + 3].copy()
        const[i, MASS] = mass + part * change
        const[i, COM : COM + 3] += part * change / const[i, MASS] * (added - com)
        # parallel axes
        d, reduced = added - com, mass * part * change / const[i, MASS]
        turning = reduced * (np.dot(d, d) * np.eye(3) - np.outer(d, d))
        const[i, INERTIA : INERTIA + 6] += [turning[j, k] for j, k in _pairs()]
    return _with_constants(model, const)


def _with_inertia(model: Model, body: str, change: FloatArray) -> Model:
    """The model with the inertia of a body changed, be it to one that no body has, as beside that of a thin rod."""
    const = model.system.tree.const.copy()
    for place, part in model.shares(body):
        R = place.pose[:3, :3]
        turned = part * R @ change @ R.T
        const[place.row, INERTIA : INERTIA + 6] += [turned[i, j] for i, j in _pairs()]
    return _with_constants(model, const)


def _with_constants(model: Model, const: FloatArray) -> Model:
    """The model with other constants of its rows."""
    tree = model.system.tree
    const.flags.writeable = tree.const.flags.writeable
    return replace(model, system=model.system._replace(tree=tree._replace(const=const)))


def _between(problem: Problem, length: float, ends: list[Model]) -> FloatArray:
    """Derivative (2 nv,) along a parameter, from the models at its two ends, each as far as ``length``."""
    from leastaction.dynamics import legendre

    state = problem.state
    X, P, U = problem.starts(1)
    for side, end in enumerate(ends):
        legendre.enter_momenta(end.system, state.q.copy(), state.v.copy(), X[side], np.zeros(len(state.v)), P[side])
    return problem.along(X, P, U, np.array([length]), (ends[0], ends[1]))[0][:, 0]


def _by_barrier(problem: Problem) -> FloatArray:
    """Derivative (2 nv,) by the logarithm of the barrier, a difference of the step itself, which is smooth in it."""
    model, ends = problem.model, []
    if problem.touching is None:
        return np.zeros(2 * model.nv)
    tolerance, barrier, *more = problem.numbers
    for sign in (1.0, -1.0):
        larger = 1.0 + sign * _BARRIER
        other = replace(problem, numbers=(tolerance, barrier * larger, more[0], more[1] * larger))
        ends.append(other.along(*other.starts(0), np.zeros(0))[1])
    change = difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v
    return np.concatenate(change) / (2.0 * _BARRIER)


def _by_friction(problem: Problem) -> dict[Any, FloatArray]:
    """Derivatives by the friction coefficient of every pair of bodies that may touch, and by that of joints.

    Those by pair are (2 nv,), those by joint (2 nv, nv of the joint), zero for coordinates without friction.
    """
    if problem.touching is None:
        return {}
    names, dry = problem.touching.table.names, problem.dry
    pairs = list(dict.fromkeys(names))
    # of a joint half acts at each end of the step
    dmu = np.zeros((len(pairs) + len(dry), len(names) + len(dry)))
    dmu[: len(pairs), : len(names)] = [[name == pair for name in names] for pair in pairs] or 0.0
    dmu[len(pairs) :, len(names) :] = 0.5 * np.eye(len(dry))
    columns = problem.along(*problem.starts(len(dmu)), np.full(len(dmu), _FAR), dmu=dmu)[0]
    out: dict[Any, FloatArray] = {pair: columns[:, k] for k, pair in enumerate(pairs)}
    for k, (joint, entry) in enumerate(dry):
        by = out.setdefault(joint, np.zeros((len(columns), problem.model.joint(joint).nv)))
        by[:, entry] = columns[:, len(pairs) + k]
    return out
