"""Derivative of a step of ``Maximal``: directions of the start, the compiled kernel, and back to the user's."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.methods.base import Memory
from leastaction.methods.closing import link_rows
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.galerkin_links_linear import Tangent
from leastaction.model.checks import FloatArray
from leastaction.model.configuration import difference, retract
from leastaction.model.model import Model, State

# Displacement, in radians or metres over a step, over which the residual is differenced.
_FAR = 1e-5


def step_derivative(
    model: Model,
    state: State,
    tau: FloatArray,
    dt: float,
    memory: Memory,
    plan: Any,
    touching: Any,
    kept: Any,
    effort: FloatArray,
    numbers: tuple[float, float, float],
    iterations: int,
) -> StepDerivative:
    """A, B and the state at the end; ArithmeticError if the step itself has no solution."""
    from leastaction.kernels import bodywise_linear, entries, legendre

    n, system = model.nv, model.system
    tau = np.clip(tau, -effort, effort)
    # how far each direction goes: all move the mechanism by about as much
    M = np.zeros((1, n, n))
    entries.mass_matrices(system, state.q[None], M)
    far = np.concatenate([np.full(n, _FAR), np.full(n, _FAR / dt), _FAR / dt**2 * np.maximum(np.diag(M[0]), 1e-12)])
    X, P, U = np.zeros((6 * n, model.nq)), np.zeros((6 * n, n)), np.tile(tau, (6 * n, 1))
    u = np.zeros(n)
    for j in range(3 * n):
        for side, sign in enumerate((1.0, -1.0)):
            step, row = np.zeros(n), 2 * j + side
            step[j % n] = sign * far[j]
            q = retract(model, state.q, step) if j < n else state.q.copy()
            v = state.v + step if n <= j < 2 * n else state.v.copy()
            legendre.enter(system, q, v, X[row], u, P[row])
            U[row] += step if j >= 2 * n else 0.0

    # the kernel
    passive = system.passive
    active = bool(len(passive.screw) or len(passive.ball) or len(passive.free) or tau.any() or n)
    out_y, out_x, out_p = np.zeros((3 * n, n)), np.zeros_like(X), np.zeros_like(P)
    x1, p1 = np.zeros(model.nq), np.zeros(n)
    status = bodywise_linear.linearize(
        system, plan, touching.table.contacts if touching else None, touching.limits if touching else None, kept,
        state.t, dt, memory["x"], memory["p"], tau, active, numbers, iterations, X, P, U, far, out_y, out_x, out_p, x1,
        p1,
    )  # fmt: skip
    model.raise_pending()
    if status:
        raise ArithmeticError(f"status {status}")

    # back to the user's coordinates; a control that is at its bound does nothing
    def leave(x: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        q, v = np.zeros(model.nq), np.zeros(n)
        if not legendre.leave(system, state.t + dt, x, p, q, v):
            raise ArithmeticError("no velocity")
        return q, v

    out = np.zeros((2 * n, 3 * n))
    for j in range(3 * n):
        (q, v), (q_back, v_back) = leave(out_x[2 * j], out_p[2 * j]), leave(out_x[2 * j + 1], out_p[2 * j + 1])
        out[:n, j] = difference(model, q_back, q) / (2.0 * far[j])
        out[n:, j] = (v - v_back) / (2.0 * far[j])
    out[:, 2 * n :][:, np.abs(tau) >= effort] = 0.0
    A = out[:, : 2 * n]
    if link_rows(model):
        # directions that break loops are first projected on those that do not
        A = A @ Tangent(model, state).projector()
    return StepDerivative(A, out[:, 2 * n :], model.state(*leave(x1, p1), state.t + dt))
