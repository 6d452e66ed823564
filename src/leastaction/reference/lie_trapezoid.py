"""The discrete action of the Lie trapezoid and its gradients (Lee et al. 2016), in the user's coordinates.

With E0, E1 the poses of a body at the two ends of a step of length h and M its spatial inertia, all in its link frame,
the average velocity of the printed form is V = log(E0^-1 E1) / h. The invariant form has the angular velocity
log(R0^T R1) / h and the velocity (c1 - c0) / h of the centre of mass, as a twist of the link frame at E0. The action is

    L_d = h sum V^T M V / 2 + h sum I (xi / h)^2 / 2 - h (U(q0) + U(q1)) / 2,

with xi the displacement of a coordinate with rotor inertia I (a ball's rotation vector) and U the potential energy.
"""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.configuration import difference, retract
from leastaction.model.elements import Body
from leastaction.model.model import Model
from leastaction.reference.dynamics import armature, energy, spatial_inertia
from leastaction.reference.kinematics import motions, poses
from leastaction.reference.matrices import Ad, inverse
from leastaction.spatial import se3, so3


def average(body: Body, start: FloatArray, end: FloatArray, h: float, form: str) -> FloatArray:
    """Average twist (6,) of a body in its link frame, from its poses at both ends."""
    if form == "printed":
        return np.asarray(se3.log(inverse(start) @ end)) / h
    turn = np.asarray(so3.log(start[:3, :3].T @ end[:3, :3])) / h
    path = (end[:3, :3] @ body.com + end[:3, 3]) - (start[:3, :3] @ body.com + start[:3, 3])
    return np.concatenate([turn, start[:3, :3].T @ path / h - np.cross(turn, body.com)])


def action(model: Model, q0: FloatArray, q1: FloatArray, h: float, form: str = "invariant") -> float:
    """L_d in joule seconds."""
    before, after = poses(model, q0), poses(model, q1)
    total = 0.5 * float(armature(model) @ difference(model, q0, q1) ** 2) / h
    for body in model.split.bodies.values():
        V = average(body, before[body.name], after[body.name], h, form)
        total += 0.5 * h * float(V @ spatial_inertia(body) @ V)
    still = np.zeros(model.nv)
    return total - 0.5 * h * (energy(model, q0, still)[1] + energy(model, q1, still)[1])


def slopes(
    model: Model, q0: FloatArray, q1: FloatArray, h: float, form: str = "invariant", eps: float = 1e-5
) -> tuple[FloatArray, FloatArray]:
    """Gradients (nv,) of the action by both ends, along the user's velocities, by central differences."""
    first, second = np.zeros(model.nv), np.zeros(model.nv)
    for k, d in enumerate(eps * np.eye(model.nv)):
        up, down = (action(model, retract(model, q0, e), q1, h, form) for e in (d, -d))
        first[k] = (up - down) / (2 * eps)
        up, down = (action(model, q0, retract(model, q1, e), h, form) for e in (d, -d))
        second[k] = (up - down) / (2 * eps)
    return first, second


def momenta(model: Model, q0: FloatArray, q1: FloatArray, h: float) -> tuple[FloatArray, FloatArray]:
    """Generalised momenta (nv,) of the printed form at both ends, from the bodies', without potentials and rotors.

    Algorithm 2 in body axes: S^T F summed over a tree without forces is J^T mu summed over the bodies; at the end of
    the step, the same with Ad(exp(h V))^T mu.
    """
    still = np.zeros(model.nv)
    before, after = motions(model, q0, still), motions(model, q1, still)
    first, second = np.zeros(model.nv), np.zeros(model.nv)
    for body in model.split.bodies.values():
        start, end = before[body.name], after[body.name]
        Z = se3.log(inverse(start.E) @ end.E)
        mu = np.asarray(se3.dlog(Z)).T @ spatial_inertia(body) @ Z / h
        first += start.J.T @ mu
        second += end.J.T @ Ad(np.asarray(se3.exp(Z))).T @ mu
    return first, second
