"""Joints that close loops: gaps, their Jacobian, and forward dynamics by one dense least-squares solve.

A loop joint has a frame A on its parent and a frame B on its child; X = A^-1 B is the relative pose (rotation R,
position p, quaternion (c, s) with c >= 0) and W the relative twist in the axes of B, so dR/dt = R hat(w),
dp/dt = R W_linear, ds/dt = (c w + s x w) / 2 and dc/dt = -s . w / 2.
"""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.configuration import retract
from leastaction.model.joints import loop_rows
from leastaction.model.model import Model
from leastaction.model.motion import joint_motion
from leastaction.reference.dynamics import inverse_dynamics, mass_matrix
from leastaction.reference.kinematics import Motion, motions
from leastaction.reference.matrices import Ad, hat, inverse
from leastaction.spatial import quaternion


def gaps(model: Model, q: FloatArray) -> FloatArray:
    """Gaps (m,) of all loop joints, metres and radians."""
    return np.concatenate([np.zeros(0), *(gap for gap, _ in _loops(model, q))])


def jacobian(model: Model, q: FloatArray) -> FloatArray:
    """Derivative (m, nv) of the gaps: their rates are this times v."""
    return np.vstack([np.zeros((0, model.nv)), *(G for _, G in _loops(model, q))])


def bias(model: Model, q: FloatArray, v: FloatArray, h: float = 3e-3) -> FloatArray:
    """(m,), derivative of the Jacobian along the motion, times v: differences of sixth order."""
    out = np.zeros(model.constraint_size)
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        ahead, behind = jacobian(model, retract(model, q, k * h * v)), jacobian(model, retract(model, q, -k * h * v))
        out += weight / h * (ahead - behind) @ v
    return out


def forward_dynamics(
    model: Model, q: FloatArray, v: FloatArray, tau: FloatArray, t: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Accelerations (nv,) that keep the loops closed, and the multipliers (m,) of least norm: force +G^T lambda.

    The equations are M a - G^T lambda = tau - bias and G a = -Gdot v.
    """
    nv, m = model.nv, model.constraint_size
    M, G = mass_matrix(model, q), jacobian(model, q)
    K = np.block([[M, -G.T], [G, np.zeros((m, m))]])
    b = np.concatenate([tau - inverse_dynamics(model, q, v, np.zeros(nv), t), -bias(model, q, v)])
    x, *_ = np.linalg.lstsq(K, b, rcond=1e-11)
    return x[:nv], x[nv:]


def body_loads(model: Model, q: FloatArray, lam: FloatArray) -> dict[str, FloatArray]:
    """Wrenches (6,) of the loop joints on the bodies they join, about link origins in link axes."""
    out: dict[str, FloatArray] = {}
    for name in model.loop_names:
        a, b = _ends(model, name, motions(model, q, np.zeros(model.nv)))
        X = inverse(a.E) @ b.E
        # the gap's rate is N . W, so the multipliers push with N^T lambda on B, and back on A
        _, N = _rows(model, name, X)
        push = N.T @ lam[model.loop_rows[name]]
        joint = model.split.joints[name]
        for body, wrench in ((joint.child, push), (joint.parent, -push)):
            link = motions(model, q, np.zeros(model.nv))[body]
            out[body] = out.get(body, np.zeros(6)) + Ad(inverse(b.E) @ link.E).T @ wrench
    return out


def _loops(model: Model, q: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Gap and Jacobian of each loop joint."""
    moving = motions(model, q, np.zeros(model.nv))
    out = []
    for name in model.loop_names:
        a, b = _ends(model, name, moving)
        X = inverse(a.E) @ b.E
        # relative twist in the axes of B
        W = b.J - Ad(inverse(X)) @ a.J
        gap, N = _rows(model, name, X)
        out.append((gap, N @ W))
    return out


def _ends(model: Model, name: str, moving: dict[str, Motion]) -> tuple[Motion, Motion]:
    """The two sides of a loop joint; a locked one is held where it is locked."""
    joint = model.split.joints[name]
    held = np.eye(4) if joint.locked is None else joint_motion(joint, joint.locked)
    return moving[joint.parent].behind(joint.parent_frame @ held), moving[joint.child].behind(joint.child_frame)


def _rows(model: Model, name: str, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gap (k,) of a loop joint at the relative pose X, and its derivative (k, 6) by the relative twist."""
    joint = model.split.joints[name]
    R, p, quat = X[:3, :3], X[:3, 3], quaternion.from_matrix(X[:3, :3])
    c, s = quat[0], quat[1:]
    # a locked joint holds everything
    if joint.locked is not None:
        T, Q, coupling = np.eye(3), np.eye(3), None
    else:
        T, Q, coupling = loop_rows(joint)
    zero = np.zeros((3, 3))
    s_rate = np.hstack([0.5 * (c * np.eye(3) + hat(s)), zero])
    c_rate = np.concatenate([-0.5 * s, np.zeros(3)])
    p_rate = np.hstack([zero, R])
    gap, N = [T @ p, 2.0 * Q @ s], [T @ p_rate, 2.0 * Q @ s_rate]
    if coupling is not None and coupling[0] == "universal":
        # axis on A, axis2 on B keep their angle
        u, w = coupling[1], coupling[2]
        gap.append(np.array([u @ R @ w - u @ w]))
        N.append(np.concatenate([-(u @ R @ hat(w)), np.zeros(3)])[None])
    elif coupling is not None:
        # displacement = pitch * angle, up to full turns
        e, pitch = coupling[1], coupling[2]
        sine = e @ s
        miss = e @ p - pitch * 2.0 * np.arctan2(sine, c)
        turn = 2.0 * np.pi * pitch
        gap.append(np.array([miss - turn * np.round(miss / turn) if pitch else miss]))
        angle_rate = 2.0 * (c * (e @ s_rate) - sine * c_rate) / (sine**2 + c**2)
        N.append((e @ p_rate - pitch * angle_rate)[None])
    return np.concatenate(gap), np.vstack(N)
