"""A step of ``Maximal(order=4)``, slow and plain: discrete action of the bodies, its gradient, and a dense Newton.

Every body has poses at the nodes c = 0, 1/2, 1 of the step. Its centre of mass moves along the parabola through the
three positions, its rotation along the normalised parabola through the three quaternions. With l_j the polynomials of
the nodes and b_aj = l_j'(c_a), the velocities at the nodes and the action, by Simpson's rule w = (1, 4, 1)/6, are

    v_a = sum_j b_aj x_j / h        omega_a = 2/h sum_j b_aj Im(q_a* q_j)    (body axes)
    A   = h sum_a w_a (m |v_a|^2 / 2 + omega_a . I omega_a / 2 - V(q_a))

Joints are closed at every node, so virtual work leaves one equation for each coordinate and node. Loops are closed at
the nodes 1/2 and 1 by impulses at the nodes 0 and 1/2. No forces but gravity.
"""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.configuration import retract
from leastaction.model.model import Model
from leastaction.reference import loops
from leastaction.reference.dynamics import mass_matrix
from leastaction.reference.kinematics import motions
from leastaction.spatial import quaternion

WEIGHTS = np.array([1.0, 4.0, 1.0]) / 6.0
RATES = np.array([[-3.0, 4.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -4.0, 3.0]])
"""b_aj: derivative at node a of the parabola that is 1 at node j."""


def body_action(m: float, inertia: FloatArray, x: FloatArray, q: FloatArray, h: float) -> float:
    """Kinetic part of the action of one body: positions x (3, 3) and quaternions q (3, 4) at the nodes."""
    v = RATES @ x / h
    spin = np.array([relative_rate(q, a, h) for a in range(3)])
    return float(h * WEIGHTS @ [m * v[a] @ v[a] / 2 + spin[a] @ inertia @ spin[a] / 2 for a in range(3)])


def relative_rate(q: FloatArray, a: int, h: float) -> FloatArray:
    """omega_a in body axes, from quaternions (3, 4) of one sheet."""
    moved = RATES[a] @ q
    return np.asarray(2.0 / h * quaternion.multiply(quaternion.conjugate(q[a]), moved)[1:])


def body_gradient(
    m: float, inertia: FloatArray, x: FloatArray, q: FloatArray, h: float
) -> tuple[FloatArray, FloatArray]:
    """Torques and forces (3, 3) each, world axes at the centre of mass: derivative of the action by the three poses."""
    force = m / h * RATES.T @ (WEIGHTS[:, None] * (RATES @ x))
    torque = np.zeros((3, 3))
    for a in range(3):
        pi = quaternion.rotate(q[a], inertia @ relative_rate(q, a, h))
        for j in range(3):
            # d(omega_a) = 1/h sum_j b_aj (c - s x)(theta_j - theta_a), with (c, s) = q_j q_a*
            turn = quaternion.multiply(q[j], quaternion.conjugate(q[a]))
            push = WEIGHTS[a] * RATES[a, j] * (turn[0] * pi + np.cross(turn[1:], pi))
            torque[j] += push
            torque[a] -= push
    return torque, force


def node_momenta(model: Model, nodes: list[FloatArray], h: float) -> FloatArray:
    """Derivative (3, nv) of the whole action by the motion of the joints at each node, gravity included."""
    moving = [motions(model, q, np.zeros(model.nv)) for q in nodes]
    out = np.zeros((3, model.nv))
    for name, body in model.split.bodies.items():
        E = [motion[name].E for motion in moving]
        x = np.array([pose[:3, :3] @ body.com + pose[:3, 3] for pose in E])
        quats = np.array([quaternion.from_matrix(pose[:3, :3]) for pose in E])
        quats *= np.where(quats @ quats[0] < 0, -1.0, 1.0)[:, None]
        torque, force = body_gradient(body.mass, body.inertia, x, quats, h)
        for a in range(3):
            R, J = E[a][:3, :3], moving[a][name].J
            total = R.T @ (force[a] + h * WEIGHTS[a] * body.mass * model.mechanism.gravity)
            out[a] += J[:3].T @ (R.T @ torque[a] + np.cross(body.com, total)) + J[3:].T @ total
    return out


def step(
    model: Model, q: FloatArray, p: FloatArray, h: float, v: FloatArray, tolerance: float = 1e-12
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """q and the momentum p (nv,), body axes of the joints, after a step; and the middle node. v is for the guess.

    Newton's method with a Jacobian by differences.
    """
    nv, m = model.nv, model.constraint_size
    G0 = loops.jacobian(model, q)

    def residual(z: FloatArray) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        nodes = [q, retract(model, q, z[:nv]), retract(model, q, z[nv : 2 * nv])]
        momenta, lam = node_momenta(model, nodes, h), h * z[2 * nv :]
        r = [momenta[0] + p + G0.T @ lam[:m], momenta[1] + loops.jacobian(model, nodes[1]).T @ lam[m:]]
        gaps = [loops.gaps(model, node) / h for node in nodes[1:]]
        return np.concatenate(r + gaps), momenta[2], nodes

    z = np.concatenate([0.5 * h * v, h * v, np.zeros(2 * m)])
    # multipliers of redundant rows are those of least norm
    for _ in range(20):
        r, end, nodes = residual(z)
        if np.abs(r).max() <= tolerance * max(1.0, float(np.abs(p).max())):
            break
        eps = 1e-6
        J = np.array([(residual(z + eps * e)[0] - residual(z - eps * e)[0]) / (2 * eps) for e in np.eye(len(z))]).T
        z = z - np.linalg.lstsq(J, r, rcond=1e-10)[0]
    else:
        raise ArithmeticError(f"the step has not converged: residual {np.abs(r).max():.1e}")
    return nodes[2], end, nodes[1]


def velocity(model: Model, q: FloatArray, p: FloatArray) -> FloatArray:
    """v (nv,) of a momentum p that lacks an impulse of the loops: M v + G^T nu = p, G v = 0."""
    M, G = mass_matrix(model, q), loops.jacobian(model, q)
    zero = np.zeros((len(G), len(G)))
    K = np.block([[M, G.T], [G, zero]])
    out = np.linalg.lstsq(K, np.concatenate([p, np.zeros(len(G))]), rcond=1e-11)[0]
    return np.asarray(out[: model.nv])


def run(model: Model, q: FloatArray, v: FloatArray, h: float, steps: int) -> tuple[FloatArray, FloatArray]:
    """q and v after so many steps."""
    p = mass_matrix(model, q) @ v
    for _ in range(steps):
        q, p, _ = step(model, q, p, h, v)
        v = velocity(model, q, p)
        # the impulse that p lacks belongs to no motion; leave it out
        p = mass_matrix(model, q) @ v
    return q, v
