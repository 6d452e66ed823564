"""Constraints on the coordinates of joints, and fewer coordinates in their place (Sueda 2021, sections 2.6 and 2.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics import quantities, redmax
from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.model.checks import FloatArray, check_array, check_number, check_result
from leastaction.model.model import Model, check_determined, check_model
from leastaction.solve.quadratic import solve_program


@dataclass(frozen=True, eq=False)
class ConstrainedDynamics:
    """Accelerations (nv,), and multipliers of the equalities and inequalities: the force is +rows^T multipliers."""

    acceleration: FloatArray
    multipliers: FloatArray
    inequality_multipliers: FloatArray


def constrained_dynamics(
    model: Model,
    q: Any,
    v: Any,
    tau: Any = None,
    *,
    rows: Any = None,
    right: Any = None,
    inequality_rows: Any = None,
    inequality_right: Any = None,
    t: float = 0.0,
) -> ConstrainedDynamics:
    """Forward dynamics under rows a = right and inequality_rows a >= inequality_right, through the dual.

    M^-1 rows^T comes from the O(n) inverse inertia product, so the cost is O(mn + m^3) for m rows (2.107, 2.132). For
    constraints g(q) = 0 the rows are dg/dq and the right-hand side is minus the derivative of the rows, times v.

    Args:
        model: a tree; springs, dampers and forces act.
        q: coordinates.
        v: velocities.
        tau: generalised forces.
        rows: (m, nv) of full rank.
        right: (m,), zero by default.
        inequality_rows: (k, nv); these need the extra ``qp``.
        inequality_right: (k,), zero by default.
        t: time in seconds, for forces that depend on it.

    Raises:
        UnsupportedError: the mechanism has loops; write their rows, or use ``forward_dynamics``.
        ConvergenceError: the rows contradict each other or are not independent.
    """
    check_model(model)
    if model.constraint_size:
        raise UnsupportedError(f"constrained_dynamics: '{model.name}' has closed loops or couplings; it is for trees.")
    q, v = model.check_motion(q, v)
    G, g = _rows(model, rows, right, "rows")
    C, c = _rows(model, inequality_rows, inequality_right, "inequality_rows")
    a = quantities.forward_dynamics(model, q, v, tau, t=t)
    X, x = np.vstack([G, C]), np.concatenate([g, c])
    if not len(X):
        return ConstrainedDynamics(a, np.zeros(0), np.zeros(0))
    columns = redmax.inverse_inertia_product(model, q, X)
    W, w = X @ columns.T, X @ a - x
    if len(C):
        lower = np.concatenate([np.full(len(G), -np.inf), np.zeros(len(C))])
        lam, _ = solve_program(0.5 * (W + W.T), w, lower, np.full(len(X), np.inf))
    else:
        lam = -np.linalg.lstsq(W, w, rcond=1e-12)[0]
    a = a + columns.T @ lam
    miss = np.concatenate([np.abs(G @ a - g), np.maximum(c - C @ a, 0.0)])
    if not np.isfinite(a).all() or miss.max() > 1e-6 * (1.0 + float(np.abs(a).max())):
        raise ConvergenceError(f"constrained dynamics: row {int(miss.argmax())} contradicts the others; leave it out.")
    return ConstrainedDynamics(a, lam[: len(G)], lam[len(G) :])


def _rows(model: Model, rows: Any, right: Any, what: str) -> tuple[FloatArray, FloatArray]:
    """Checked rows (m, nv) and right-hand sides (m,)."""
    if rows is None:
        return np.zeros((0, model.nv)), np.zeros(0)
    matrix = np.atleast_2d(check_array(rows, what))
    if matrix.ndim != 2 or matrix.shape[1] != model.nv:
        raise ModelError(f"constrained_dynamics: {what} has shape {matrix.shape}, expected (m, {model.nv}).")
    if right is None:
        return matrix, np.zeros(len(matrix))
    vector = np.atleast_1d(check_array(right, what))
    if vector.shape != (len(matrix),):
        raise ModelError(f"constrained_dynamics: the right-hand side has shape {vector.shape}, not ({len(matrix)},).")
    return matrix, vector


class Reduction:
    """Fewer coordinates p in place of a model's q: q = position(p), with its Jacobian (2.87) to (2.90).

    It solves J^T M J pddot = J^T (f - M Jdot pdot) with M and f of the model, whose own methods do not know it: a
    reduced mechanism is integrated by ``simulate`` of this class.

    Args:
        model: a tree of joints without balls and free joints.
        size: number of coordinates p.
        position: p (size,) -> q (nq,).
        jacobian: p -> dq/dp (nq, size).
        rate: (p, pdot) -> the time derivative (nq, size) of the Jacobian; zero by default, which is right for couplings
            that are linear.
    """

    def __init__(
        self,
        model: Model,
        size: int,
        position: Callable[[FloatArray], Any],
        jacobian: Callable[[FloatArray], Any],
        rate: Callable[[FloatArray, FloatArray], Any] | None = None,
    ) -> None:
        check_model(model)
        for view in model.joints.values():
            if view.nq != view.nv:
                raise UnsupportedError(
                    f"Reduction: joint '{view.name}' is {view.kind}, whose coordinates contain a quaternion; "
                    "reduce joints with one number for each velocity."
                )
        if model.constraint_size:
            raise UnsupportedError(f"Reduction: '{model.name}' has closed loops or couplings; it is for trees.")
        check_determined(model, "Reduction")
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= model.nv:
            raise ModelError(f"Reduction: size must be a whole number from 1 to {model.nv}, got {size!r}.")
        self.model, self.size = model, size
        self._position, self._jacobian, self._rate = position, jacobian, rate

    @classmethod
    def gears(cls, model: Model, couplings: Mapping[str, tuple[str, float] | tuple[str, float, float]]) -> Reduction:
        """Joints that follow others: follower -> (leader, ratio) or (leader, ratio, offset), all of one coordinate.

        q of a follower is ratio times q of its leader, plus the offset. The coordinates p are those of the joints that
        follow none, in the order of q.
        """
        check_model(model)
        ratio, offset = np.eye(model.nq), np.zeros(model.nq)
        for name, given in couplings.items():
            where = f"Reduction: follower '{name}'"
            if not isinstance(given, list | tuple) or len(given) not in (2, 3):
                raise ModelError(f"{where}: give (leader, ratio) or (leader, ratio, offset), got {given!r}.")
            leader = given[0]
            for each in (name, leader):
                if model.joint(each).nq != 1:
                    raise ModelError(f"{where}: joint '{each}' has {model.joint(each).nq} coordinates; gears need 1.")
            if leader in couplings or leader == name:
                raise ModelError(f"{where}: its leader '{leader}' is a follower itself; name the first leader.")
            row = model.joint(name).q.start
            ratio[row] = 0.0
            ratio[row, model.joint(leader).q.start] = check_number(given[1], f"{where}: ratio")
            offset[row] = check_number(given[2], f"{where}: offset") if len(given) == 3 else 0.0
        kept = [k for k in range(model.nq) if not any(model.joint(name).q.start == k for name in couplings)]
        matrix = np.ascontiguousarray(ratio[:, kept])
        return cls(model, len(kept), lambda p: matrix @ p + offset, lambda p: matrix)

    def q(self, p: Any) -> FloatArray:
        """Coordinates (nq,) of the model at p."""
        return check_result(self._position(self._vector(p, "p")), (self.model.nq,), "Reduction: position")

    def jacobian(self, p: Any) -> FloatArray:
        """dq/dp (nv, size)."""
        return check_result(self._jacobian(self._vector(p, "p")), (self.model.nv, self.size), "Reduction: jacobian")

    def v(self, p: Any, rate: Any) -> FloatArray:
        """Velocities (nv,) of the model."""
        return self.jacobian(p) @ self._vector(rate, "rate")

    def acceleration(self, p: Any, rate: Any, tau: Any = None, *, t: float = 0.0) -> FloatArray:
        """pddot (size,) under generalised forces tau (nv,) of the model's joints (2.90)."""
        p, rate = self._vector(p, "p"), self._vector(rate, "rate")
        q, J = self.q(p), self.jacobian(p)
        turning = np.zeros(self.model.nv)
        if self._rate is not None:
            Jdot = check_result(self._rate(p, rate), (self.model.nv, self.size), "Reduction: rate")
            turning = Jdot @ rate
        # f - M Jdot pdot is what inverse dynamics lacks at the acceleration Jdot pdot
        lacking = self.model.check_v(tau, "tau") - quantities.inverse_dynamics(self.model, q, J @ rate, turning, t=t)
        out = np.linalg.solve(J.T @ quantities.mass_matrix(self.model, q) @ J, J.T @ lacking)
        if not np.isfinite(out).all():
            raise ConvergenceError("Reduction: the accelerations are not finite; the Jacobian may be singular.")
        return np.asarray(out)

    def simulate(
        self, p: Any, rate: Any, *, times: Any, control: Callable[..., Any] | None = None, tolerance: float = 1e-9
    ) -> tuple[FloatArray, FloatArray]:
        """p and pdot (rows, size) at the given times, the first of which is that of the start, by DOP853.

        Args:
            p: first coordinates.
            rate: first velocities.
            times: (rows,) seconds, rising.
            control: (t, q, v) -> generalised forces (nv,), or None.
            tolerance: relative and absolute.
        """
        from scipy.integrate import solve_ivp

        at = check_array(times, "Reduction: times")
        if at.ndim != 1 or len(at) < 2 or (np.diff(at) <= 0).any():
            raise ModelError("Reduction: times must be two or more rising numbers.")
        n = self.size

        def rates(t: float, y: FloatArray) -> FloatArray:
            tau = None if control is None else control(t, self.q(y[:n]), self.v(y[:n], y[n:]))
            return np.concatenate([y[n:], self.acceleration(y[:n], y[n:], tau, t=t)])

        start = np.concatenate([self._vector(p, "p"), self._vector(rate, "rate")])
        found = solve_ivp(rates, (at[0], at[-1]), start, method="DOP853", t_eval=at, rtol=tolerance, atol=tolerance)
        if not found.success or not np.isfinite(found.y).all():
            raise ConvergenceError(f"Reduction: {found.message}")
        return np.asarray(found.y[:n].T), np.asarray(found.y[n:].T)

    def _vector(self, x: Any, what: str) -> FloatArray:
        """A checked vector (size,)."""
        out = np.atleast_1d(check_array(x, f"Reduction: {what}"))
        if out.shape != (self.size,):
            raise ModelError(f"Reduction: {what} has shape {out.shape}, expected ({self.size},).")
        return out
