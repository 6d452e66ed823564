"""Derivative of a method's step, and second derivatives of the energies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics.derivatives import passive_derivatives
from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.methods.base import Method
from leastaction.methods.derivative import StepDerivative
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.forces import PointSpring
from leastaction.model.model import Model, State, check_model
from leastaction.run.registry import check_supported, method_by_name
from leastaction.spatial import quaternion, se3, so3
from leastaction.tree.layout import BALL, IU, KIND


def linearize(
    model: Model, method: Method | str, state: State, control: Any, dt: float, parameters: Any = None
) -> StepDerivative:
    """Derivative of one step of a method by state and control, on the tangent space.

    A small change of a state is (displacement of q; change of v), see ``StepDerivative``. The derivative is exact: of
    the discrete step, not of the equations of motion. With closed loops or equality constraints it is that of the step
    after ``project``: changes that break them are first projected on those that do not.

    Args:
        model: the mechanism.
        method: the integrator, or its name in the registry.
        state: start of the step.
        control: generalised forces (nv,) or a dict by joint name, held over the step; None is zero.
        dt: length of the step, seconds.
        parameters: names of parameters of the mechanism to differentiate by as well: "mass", "inertia", "friction"
            (of contacts and joints) with ``Maximal``; "mass", "inertia", "placement", "stiffness", "damping" with
            ``Galerkin`` and ``LieTrapezoid``.

    Returns:
        A (2 nv, 2 nv), B (2 nv, nv), the state at the end of the step, and C by parameters.
    """
    check_model(model)
    if isinstance(method, str):
        method = method_by_name(method)
    if not isinstance(method, Method):
        raise ModelError(f"linearize: method must be a method such as la.Galerkin(4), got {type(method).__name__}.")
    if not isinstance(state, State):
        raise ModelError(f"linearize: state must be a state, got {type(state).__name__}; use model.state(q, v).")
    names = (parameters,) if isinstance(parameters, str) else tuple(parameters or ())
    for each in names:
        if each not in method.parameters:
            known = ", ".join(method.parameters) or "none"
            raise UnsupportedError(f"linearize: {method.label} has no derivative by {each!r}; it has: {known}.")
    dt = check_number(dt, "linearize: dt", positive=True)
    check_supported(method, model)
    # a state of another model has other sizes
    state = model.state(state.q, state.v, state.t)
    tau = None if control is None else model.check_v(control, "control")
    out = method.linearize(model, state, tau, dt, names)
    if not (np.isfinite(out.A).all() and np.isfinite(out.B).all()):
        raise ConvergenceError(
            f"linearize: the derivative of {method.label} is not finite; take a smaller dt, or check laws and forces.",
            state=state,
        )
    return out


@dataclass(frozen=True, eq=False)
class LagrangianHessian:
    """Second derivatives (nv, nv) of kinetic energy T(q, v) and potential energy U(q).

    Rows are components of a first derivative, columns say by what it is differentiated: ``kinetic_vq[i, j]`` is the
    derivative of dT/dv_i by displacement j. Displacements are those of ``model.configuration.retract`` at fixed v.
    For single coordinates these are the plain second derivatives. Displacements of a ball or a free joint do not
    commute, so there ``kinetic_qq`` and ``potential_qq``, derivatives of the covectors dT/dq and dU/dq, are not
    symmetric in general.

    Attributes:
        kinetic_vv: the mass matrix.
        kinetic_vq: d(M v)/dq.
        kinetic_qv: its transpose.
        kinetic_qq: d(dT/dq)/dq.
        potential_qq: d(dU/dq)/dq of gravity, springs and conservative forces.
    """

    kinetic_vv: FloatArray
    kinetic_vq: FloatArray
    kinetic_qv: FloatArray
    kinetic_qq: FloatArray
    potential_qq: FloatArray


def lagrangian_hessian(model: Model, q: Any, v: Any = None) -> LagrangianHessian:
    """Second derivatives of kinetic and potential energy by q (displacements) and v, at one state. O(n^2).

    These are Algorithms 2 and 3 of Fan, Schultz and Murphey 2018 for every joint. Forces on bodies add O(n^2) each.
    """
    from leastaction.dynamics import hessian

    check_model(model)
    q, v = model.check_motion(q, v)
    if "spline joints" in model.features:
        raise UnsupportedError(f"lagrangian_hessian: '{model.name}' has spline joints; it is for fixed axes.")
    n, rows = model.nv, len(model.system.tree.rows)
    p, k, f = np.zeros(n), np.zeros(n), np.zeros(n)
    H, E, kinetic, gravity = (np.zeros((n, n)) for _ in range(4))
    P, S = np.zeros((rows, 12)), np.zeros((n, 6))
    hessian.second_derivatives(model.system, q, v, p, k, f, H, E, kinetic, gravity, P, S)
    f = -f
    _add_potentials(model, q, P, S, f, gravity)
    # to the user's coordinates
    tangent = _Tangent(model, q, v)
    turn = tangent.turning
    vv = tangent.left(tangent.right(H))
    by_q = tangent.right(E) + turn(H)
    vq = tangent.left(by_q) + tangent.turned(p)
    qq = tangent.left(tangent.right(kinetic) + turn(E.T)) + tangent.turned(k) + tangent.turned_rates(p, by_q)
    potential = tangent.left(tangent.right(gravity)) + tangent.turned(f) - passive_derivatives(model, q, v)[0]
    if not all(np.isfinite(matrix).all() for matrix in (vv, vq, qq, potential)):
        raise ConvergenceError("lagrangian_hessian: the numbers are not finite; check state, laws and forces.")
    return LagrangianHessian(vv, vq, vq.T.copy(), qq, potential)


class _Tangent:
    """Between rates of the rows and of the user, u = T v; T is a permutation but for free joints."""

    def __init__(self, model: Model, q: FloatArray, v: FloatArray) -> None:
        self.order = model.system.coordinates.v
        # (first rate of the rows, rotation, offset, speed of the centre of mass in child axes, places of lin and ang)
        self.free = []
        coordinates = model.system.coordinates
        for (k, d), c in zip(coordinates.free, coordinates.offset, strict=True):
            R = quaternion.to_matrix(q[coordinates.q[k + 3 : k + 7]])
            lin, ang = self.order[d : d + 3], self.order[d + 3 : d + 6]
            self.free.append((int(d), R, c, v[lin] + np.cross(v[ang], c), lin, ang))

    def right(self, X: FloatArray) -> FloatArray:
        """X T."""
        out = np.zeros_like(X)
        out[:, self.order] = X
        for d, R, c, _, lin, ang in self.free:
            out[:, lin] = X[:, d : d + 3] @ R
            out[:, ang] = X[:, d + 3 : d + 6] - out[:, lin] @ so3.hat(c)
        return out

    def left(self, X: FloatArray) -> FloatArray:
        """T^T X."""
        return self.right(X.T).T

    def turning(self, X: FloatArray) -> FloatArray:
        """X times the change of u by displacements at fixed v."""
        out = np.zeros_like(X)
        for d, R, _, speed, _, ang in self.free:
            out[:, ang] = -X[:, d : d + 3] @ R @ so3.hat(speed)
        return out

    def turned(self, f: FloatArray) -> FloatArray:
        """Change of T^T f by displacements at fixed f."""
        out = np.zeros((len(f), len(f)))
        for d, R, c, _, lin, ang in self.free:
            force = so3.hat(R.T @ f[d : d + 3])
            out[np.ix_(lin, ang)], out[np.ix_(ang, ang)] = force, so3.hat(c) @ force
        return out

    def turned_rates(self, p: FloatArray, by_q: FloatArray) -> FloatArray:
        """Change of (du/dq)^T p by displacements, where p changes by ``by_q``."""
        out = np.zeros((len(p), len(p)))
        for d, R, _, speed, _, ang in self.free:
            out[ang] += so3.hat(speed) @ R.T @ by_q[d : d + 3]
            out[np.ix_(ang, ang)] += so3.hat(speed) @ so3.hat(R.T @ p[d : d + 3])
        return out


def _add_potentials(model: Model, q: FloatArray, P: FloatArray, S: FloatArray, f: FloatArray, U: FloatArray) -> None:
    """Add the first (nu,) and second derivatives (nu, nu) of the energies of conservative forces on bodies."""
    tree = model.system.tree
    for force in model.mechanism.forces:
        # the dampers of point springs do nothing at rest
        if not (force.conservative or isinstance(force, PointSpring)):
            continue
        links, paths = [], []
        for name in force.bodies:
            place = model.place(name)
            links.append(se3.pose(P[place.row, :9].reshape(3, 3), P[place.row, 9:]) @ place.pose)
            paths.append(_rates_before(model, place.row))
        at = np.array(links)
        at[:, :3, 3] -= P[0, 9:]
        still = np.zeros((len(links), 6))
        wrenches = force.wrenches(0.0, at, still)
        K, _ = force.derivatives(0.0, at, still)
        J = np.zeros((6 * len(links), model.nv))
        for k, (link, path) in enumerate(zip(links, paths, strict=True)):
            back = se3.Ad(se3.inverse(link))
            J[6 * k : 6 * k + 6, path] = back @ S[path].T
            # the wrench is fixed to its body: seen from a joint before, it turns with the joints between
            turned = S[path] @ se3.adD(back.T @ wrenches[k]) @ S[path].T
            rows = tree.rates[path, 0]
            U[np.ix_(path, path)] += np.where(rows[:, None] < rows[None, :], turned, 0.0)
        f -= J.T @ wrenches.ravel()
        U -= J.T @ K @ J


def _rates_before(model: Model, row: int) -> list[int]:
    """Rates that move a row, nearest first."""
    out: list[int] = []
    if row > 0:
        tree = model.system.tree
        rate = int(tree.rows[row, IU]) + (2 if tree.rows[row, KIND] == BALL else 0)
        while rate >= 0:
            out.append(rate)
            rate = int(tree.rates[rate, 1])
    return out
