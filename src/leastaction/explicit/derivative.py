"""Derivative of an explicit step: the chain rule through its stages, in the rows' coordinates. O(n^3).

A stage is X = x exp(xi), U; with small changes dx of the start (rotation vectors in child axes for balls),

    dX = exp(-xi) dx + dexp_right(xi) dxi          rate of xi: k = dexp_right(xi)^-1 U

for balls, and plain sums for screws. All changes are matrices (nu, 3 nu): by x, by u, by the user's forces.
"""

from __future__ import annotations

import numpy as np

from leastaction.dynamics.derivatives import forward_dynamics_derivatives, row_maps
from leastaction.dynamics.quantities import forward_dynamics
from leastaction.explicit.rows import enter_rows
from leastaction.methods.derivative import StepDerivative
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.spatial import so3
from leastaction.tree.layout import BALL, IU, KIND


def explicit_derivative(
    model: Model, butcher: FloatArray, state: State, end: State, tau: FloatArray, dt: float
) -> StepDerivative:
    """Derivative of one step from ``state`` to ``end`` of a Runge-Kutta method, or of semi-implicit Euler.

    Args:
        model: the mechanism.
        butcher: Butcher table (s + 1, s + 1), see ``Explicit.butcher``; empty for Euler.
        state: start of the step.
        end: its end.
        tau: generalised forces (nv,), held over the step.
        dt: length of the step, seconds.
    """
    n, memory = model.nv, enter_rows(model, state)
    x, u = memory["x"], memory["u"]
    whole = np.eye(3 * n)
    dx, du, dtau = whole[:n], whole[n : 2 * n], whole[2 * n :]
    if len(butcher) == 0:
        # new rates from the old position, new position from the new rates
        rate, change = _acceleration(model, state.t, x, u, tau, dx, du, dtau)
        end_u, end_du = u + dt * rate, du + dt * change
        xi, dxi = dt * end_u, dt * end_du
    else:
        slopes: list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]] = []
        for i in range(len(butcher)):
            weights = dt * butcher[i, 1 : 1 + len(slopes)]
            xi, dxi = np.zeros(n), np.zeros((n, 3 * n))
            end_u, end_du = u.copy(), du.copy()
            for weight, (k, dk, rate, change) in zip(weights, slopes, strict=True):
                xi, dxi = xi + weight * k, dxi + weight * dk
                end_u, end_du = end_u + weight * rate, end_du + weight * change
            # the last row is the end of the step
            if i < len(butcher) - 1:
                moved, dmoved = _move(model, x, xi, dx, dxi)
                t = state.t + butcher[i, 0] * dt
                slopes.append(
                    (
                        *_local_rates(model, xi, end_u, dxi, end_du),
                        *_acceleration(model, t, moved, end_u, tau, dmoved, end_du, dtau),
                    )
                )
    _, end_dx = _move(model, x, xi, dx, dxi)
    return _to_user(model, state, end, end_dx, end_du)


def _to_user(model: Model, start: State, end: State, dx: FloatArray, du: FloatArray) -> StepDerivative:
    """From changes of the rows to those of the user, at both ends of the step."""
    n, still = model.nv, np.zeros(model.nv)
    T0, turning0, _, _ = row_maps(model, start.q, start.v, still)
    T1, turning1, _, _ = row_maps(model, end.q, end.v, still)
    inside = np.block([[T0, np.zeros((n, n))], [turning0, T0]])
    dq = np.linalg.solve(T1, dx)
    dv = np.linalg.solve(T1, du - turning1 @ dq)
    both = np.vstack([dq, dv])
    return StepDerivative(both[:, : 2 * n] @ inside, both[:, 2 * n :], end)


def _move(
    model: Model, x: FloatArray, xi: FloatArray, dx: FloatArray, dxi: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x moved by xi, and its change."""
    from leastaction.explicit import step as explicit_step

    out = np.zeros_like(x)
    explicit_step.displaced_state(model.system, x, xi, out)
    change = dx + dxi
    for d in _balls(model):
        change[d] = so3.exp(-xi[d]) @ dx[d] + so3.dexp_right(xi[d]) @ dxi[d]
    return out, change


def _local_rates(
    model: Model, xi: FloatArray, u: FloatArray, dxi: FloatArray, du: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rates of the local coordinates, and their change."""
    k, dk = u.copy(), du.copy()
    for d in _balls(model):
        back = so3.dlog_right(xi[d])
        k[d] = back @ u[d]
        dk[d] = back @ du[d] - so3.dlog_derivative(-xi[d], u[d]) @ dxi[d]
    return k, dk


def _acceleration(
    model: Model, t: float, x: FloatArray, u: FloatArray, tau: FloatArray,
    dx: FloatArray, du: FloatArray, dtau: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Accelerations of the rows, and their change."""
    from leastaction.dynamics import entries
    from leastaction.explicit import step as explicit_step

    q, v, rates = np.zeros(model.nq), np.zeros(model.nv), np.zeros(2 * model.nv)
    explicit_step.local_system(model.system, t, x, np.concatenate([np.zeros(model.nv), u]), tau, rates)
    entries.leave(model.system, x, u, q, v)
    a = forward_dynamics(model, q, v, tau, t=t)
    by = forward_dynamics_derivatives(model, q, v, tau, t=t)
    T, turning, dudot_dq, dudot_dv = row_maps(model, q, v, a)
    dq = np.linalg.solve(T, dx)
    dv = np.linalg.solve(T, du - turning @ dq)
    change = T @ (by.dq @ dq + by.dv @ dv + by.dtau @ dtau) + dudot_dq @ dq + dudot_dv @ dv
    return rates[model.nv :], change


def _balls(model: Model) -> list[slice]:
    """Rates of every ball."""
    return [slice(row[IU], row[IU] + 3) for row in model.system.tree.rows[1:] if row[KIND] == BALL]
