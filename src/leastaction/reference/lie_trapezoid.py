"""The discrete action of the Lie trapezoid and its gradients (Lee et al. 2016), in the user's coordinates.

With E0, E1 the poses of a body at the two ends of a step of length h and M its spatial inertia, all in its link frame,
the average velocity is V = log(E0^-1 E1) / h and the action of the step

    L_d = h sum V^T M V / 2 + h sum I (xi / h)^2 / 2 - h (U(q0) + U(q1)) / 2,

with xi the displacement of a coordinate with rotor inertia I (a ball's rotation vector) and U the potential energy.
"""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.configuration import difference, retract
from leastaction.model.model import Model
from leastaction.reference.dynamics import armature, energy, spatial_inertia
from leastaction.reference.kinematics import motions, poses
from leastaction.reference.matrices import Ad, inverse
from leastaction.spatial import se3


def action(model: Model, q0: FloatArray, q1: FloatArray, h: float) -> float:
    """L_d in joule seconds."""
    before, after = poses(model, q0), poses(model, q1)
    total = 0.5 * float(armature(model) @ difference(model, q0, q1) ** 2) / h
    for body in model.split.bodies.values():
        V = se3.log(inverse(before[body.name]) @ after[body.name]) / h
        total += 0.5 * h * float(V @ spatial_inertia(body) @ V)
    still = np.zeros(model.nv)
    return total - 0.5 * h * (energy(model, q0, still)[1] + energy(model, q1, still)[1])


def slopes(model: Model, q0: FloatArray, q1: FloatArray, h: float, eps: float = 1e-5) -> tuple[FloatArray, FloatArray]:
    """Gradients (nv,) of the action by both ends, along the user's velocities, by central differences."""
    first, second = np.zeros(model.nv), np.zeros(model.nv)
    for k, d in enumerate(eps * np.eye(model.nv)):
        up, down = action(model, retract(model, q0, d), q1, h), action(model, retract(model, q0, -d), q1, h)
        first[k] = (up - down) / (2 * eps)
        up, down = action(model, q0, retract(model, q1, d), h), action(model, q0, retract(model, q1, -d), h)
        second[k] = (up - down) / (2 * eps)
    return first, second


def momenta(model: Model, q0: FloatArray, q1: FloatArray, h: float) -> tuple[FloatArray, FloatArray]:
    """Generalised momenta (nv,) at both ends from the discrete momenta of the bodies, without potentials and rotors.

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
