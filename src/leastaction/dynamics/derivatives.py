"""Derivatives of inverse and forward dynamics on the tangent space, analytic.

Displacements are those of ``model.configuration.retract``: a rotation vector in child axes for a ball, (rotation
vector; displacement) in child axes for a free joint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ConvergenceError, UnsupportedError
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.joints import layout
from leastaction.model.model import JointView, Model, check_model
from leastaction.spatial import quaternion, se3, so3


@dataclass(frozen=True, eq=False)
class InverseDerivatives:
    """Derivatives (nv, nv) of tau = inverse_dynamics(q, v, a)."""

    dq: FloatArray
    dv: FloatArray
    da: FloatArray


@dataclass(frozen=True, eq=False)
class ForwardDerivatives:
    """Derivatives (nv, nv) of a = forward_dynamics(q, v, tau)."""

    dq: FloatArray
    dv: FloatArray
    dtau: FloatArray


def inverse_dynamics_derivatives(
    model: Model, q: Any, v: Any, a: Any, *, t: float = 0.0, passive: bool = True
) -> InverseDerivatives:
    """Derivatives of ``inverse_dynamics`` by q (displacements), v and a, at one state."""
    from leastaction.dynamics import entries

    check_model(model)
    (q, v), a, t = model.check_motion(q, v), model.check_v(a, "a"), check_number(t, "time")
    tree, n = model.system.tree, model.nv
    dx, du, H, f = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    P, S, T = np.zeros((len(tree.rows), 12)), np.zeros((n, 6)), np.zeros((n, 18))
    entries.derivatives(model.system, t, q, v, a, passive, dx, du, H, f, P, S, T)
    model.raise_pending()
    if passive:
        _add_body_forces(model, t, q, v, P, S, T, dx, du)
    out = _to_user(model, q, v, a, dx, du, H, f)
    if passive:
        K, D = passive_derivatives(model, q, v)
        out = InverseDerivatives(out.dq - K, out.dv - D, out.da)
    if not all(np.isfinite(matrix).all() for matrix in (out.dq, out.dv, out.da)):
        raise ConvergenceError("derivatives of the dynamics: the numbers are not finite; check state, laws and forces.")
    return out


def forward_dynamics_derivatives(
    model: Model, q: Any, v: Any, tau: Any = None, *, t: float = 0.0
) -> ForwardDerivatives:
    """Derivatives of ``forward_dynamics`` by q (displacements), v and tau, at one state of a tree.

    Forces beyond enforced efforts do not count, so their derivative is zero.

    Raises:
        UnsupportedError: the model has loops, or a joint has reached an enforced limit, where there is no derivative.
    """
    check_model(model)
    if model.constraint_size:
        raise UnsupportedError(
            f"'{model.name}' has closed loops or couplings ({', '.join(model.held_names)}); "
            "forward_dynamics_derivatives is for trees."
        )
    for lean in quantities.leaning(model, model.check_q(q)[None])[0]:
        raise UnsupportedError(
            f"forward_dynamics_derivatives: joint '{lean.joint}' is on its enforced limit, where the acceleration has "
            "no derivative; take a state inside the limits."
        )
    forces = model.check_v(tau, "tau")
    a = quantities.forward_dynamics(model, model.check_q(q), model.check_v(v), forces, t=t)
    inverse = inverse_dynamics_derivatives(model, q, v, a, t=t)
    # M a + ... = tau, so da = M^-1 (dtau - d(inverse dynamics))
    Minv = np.asarray(np.linalg.inv(inverse.da), dtype=float)
    return ForwardDerivatives(
        -Minv @ inverse.dq, -Minv @ inverse.dv, np.where(np.abs(forces) > model.efforts, 0.0, Minv)
    )


def row_maps(
    model: Model, q: FloatArray, v: FloatArray, a: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """T of u = T v and, with udot = T a + Tdot v, the matrices du/dq, d udot/dq and d udot/dv, each (nu, nv).

    All but T are zero outside of free joints, where the shift to the centre of mass turns with the body.
    """
    coordinates, n = model.system.coordinates, model.nv
    T = np.zeros((n, n))
    T[np.arange(n), coordinates.v] = 1.0
    du_dq, dudot_dq, dudot_dv = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for (k, d), c in zip(coordinates.free, coordinates.offset, strict=True):
        R = quaternion.to_matrix(q[coordinates.q[k + 3 : k + 7]])
        lin, ang = coordinates.v[d : d + 3], coordinates.v[d + 3 : d + 6]
        rows = slice(d, d + 3)
        w, velocity = v[ang], v[lin] + np.cross(v[ang], c)
        acceleration = a[lin] + np.cross(a[ang], c) + np.cross(w, velocity)
        T[rows, :] = 0.0
        T[rows, lin], T[rows, ang] = R, -R @ so3.hat(c)
        du_dq[rows, ang] = -R @ so3.hat(velocity)
        dudot_dq[rows, ang] = -R @ so3.hat(acceleration)
        dudot_dv[rows, lin] = R @ so3.hat(w)
        dudot_dv[rows, ang] = -R @ (so3.hat(velocity) + so3.hat(w) @ so3.hat(c))
    return T, du_dq, dudot_dq, dudot_dv


def _to_user(
    model: Model, q: FloatArray, v: FloatArray, a: FloatArray,
    dx: FloatArray, du: FloatArray, H: FloatArray, f: FloatArray,
) -> InverseDerivatives:  # fmt: skip
    """From the rows' coordinates to the user's: tau = T^T f(x, u = T v, udot = T a + Tdot v)."""
    coordinates, n = model.system.coordinates, model.nv
    T, du_dq, dudot_dq, dudot_dv = row_maps(model, q, v, a)
    turned = np.zeros((n, n))
    # free joints: T^T seen by a turning body
    for (k, d), c in zip(coordinates.free, coordinates.offset, strict=True):
        R = quaternion.to_matrix(q[coordinates.q[k + 3 : k + 7]])
        lin, ang = coordinates.v[d : d + 3], coordinates.v[d + 3 : d + 6]
        force = R.T @ f[d : d + 3]
        turned[np.ix_(lin, ang)] = so3.hat(force)
        turned[np.ix_(ang, ang)] = so3.hat(c) @ so3.hat(force)
    dq = T.T @ (dx @ T + du @ du_dq + H @ dudot_dq) + turned
    return InverseDerivatives(dq, T.T @ (du @ T + H @ dudot_dv), T.T @ H @ T)


def _add_body_forces(
    model: Model, t: float, q: FloatArray, v: FloatArray, P: FloatArray, S: FloatArray, T: FloatArray,
    dx: FloatArray, du: FloatArray,
) -> None:  # fmt: skip
    """Add to the rows' derivatives how body forces vary: -J^T (K J + D Y) and -J^T D J, J and Y in link axes."""
    for force in model.mechanism.forces:
        names = list(force.bodies)
        at = quantities.frame_poses(model, q[None], names)[0]
        J = np.vstack([_link_rows(model, name, P, S) for name in names])
        Y = np.vstack([_link_rows(model, name, P, T[:, :6]) for name in names])
        twists = np.zeros((len(names), 6))
        for k, name in enumerate(names):
            if name != "world":
                spatial = quantities.body_twists(model, q, v, [name])[0]
                twists[k, :3], twists[k, 3:] = at[k, :3, :3].T @ spatial[:3], at[k, :3, :3].T @ spatial[3:]
        K, D = force.derivatives(t, at, twists)
        dx -= J.T @ (K @ J + D @ Y)
        du -= J.T @ D @ J


def _link_rows(model: Model, name: str, P: FloatArray, S: FloatArray) -> FloatArray:
    """Columns S of the rates that move a link, as twists in its own axes (6, nu)."""
    from leastaction.tree.layout import BALL, IU, KIND

    place, tree = model.place(name), model.system.tree
    out = np.zeros((6, len(S)))
    if place.row == 0:
        return out
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = P[place.row, :9].reshape(3, 3), P[place.row, 9:]
    back = se3.Ad(se3.inverse(pose @ place.pose))
    rate = tree.rows[place.row, IU] + (2 if tree.rows[place.row, KIND] == BALL else 0)
    while rate >= 0:
        out[:, rate] = back @ S[rate]
        rate = tree.rates[rate, 1]
    return out


def passive_derivatives(model: Model, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """K = d tau / d displacement and D = d tau / d v (nv, nv) of the springs and dampers in the joints."""
    K, D = np.zeros((model.nv, model.nv)), np.zeros((model.nv, model.nv))
    for view in model.joints.values():
        k, d = view.joint.stiffness_values, view.joint.damping_values
        D[view.v, view.v] = -np.diag(d)
        if view.kind == "free":
            _free_spring(view, q[view.q], k, K)
            continue
        for piece in layout(view.joint):
            where = slice(view.v.start + piece.v.start, view.v.start + piece.v.stop)
            if piece.factor == "ball":
                K[where, where] = _ball_spring(q[view.q][piece.q], k[piece.v], view.joint.rest[piece.q])
                continue
            i = piece.v.start
            springs, dampers = view.joint.stiffness_laws.get(i), view.joint.damping_laws.get(i)
            K[where, where] = -k[i] + (springs.derivative(float(q[view.q][piece.q.start])) if springs else 0.0)
            D[where, where] -= -dampers.derivative(float(v[view.v][i])) if dampers else 0.0
    return K, D


def _ball_spring(q: FloatArray, k: FloatArray, rest: FloatArray) -> FloatArray:
    """d tau / d displacement (3, 3) of tau = -dexp_inv(theta) K theta."""
    theta = quaternion.log(quaternion.multiply(quaternion.conjugate(rest), q))
    by_theta = so3.dlog_derivative(theta, k * theta) + so3.dlog(theta) @ np.diag(k)
    return np.asarray(-by_theta @ so3.dlog_right(theta))


def _free_spring(view: JointView, q: FloatArray, k: FloatArray, K: FloatArray) -> None:
    """Springs of a free joint: rotation about child axes, translation along parent axes."""
    rest = view.joint.rest
    turn, slide = slice(view.v.start, view.v.start + 3), slice(view.v.start + 3, view.v.stop)
    K[turn, turn] = _ball_spring(q[3:], k[:3], rest[3:])
    R = quaternion.to_matrix(q[3:])
    force = R.T @ (-k[3:] * (q[:3] - rest[:3]))
    K[slide, turn] = so3.hat(force)
    K[slide, slide] = -R.T @ np.diag(k[3:]) @ R
