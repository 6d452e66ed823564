"""Hybrid dynamics as one dense system: the equations of motion, the loops and the prescribed accelerations."""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.reference import loops
from leastaction.reference.dynamics import inverse_dynamics, mass_matrix


def hybrid_dynamics(
    model: Model, q: FloatArray, v: FloatArray, tau: FloatArray, given: FloatArray, mask: FloatArray, t: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Accelerations (nv,), and the forces (nv,) of the actuators (Sueda 2021, eq. 2.113 with tau = -G^T lambda).

    ``given`` (nv,) are the accelerations where ``mask`` (nv,) is 1; ``tau`` (nv,) the forces elsewhere.
    """
    nv, m = model.nv, model.constraint_size
    M, G = mass_matrix(model, q), loops.jacobian(model, q)
    held = np.eye(nv)[mask > 0]
    # M a - G^T lambda - held^T force = tau - bias,  G a = -Gdot v,  held a = given
    A = np.vstack([G, held])
    K = np.block([[M, -A.T], [A, np.zeros((len(A), len(A)))]])
    free = np.where(mask > 0, 0.0, tau)
    rhs = [free - inverse_dynamics(model, q, v, np.zeros(nv), t), -loops.bias(model, q, v), held @ given]
    x, *_ = np.linalg.lstsq(K, np.concatenate(rhs), rcond=1e-11)
    return x[:nv], free + held.T @ x[nv + m :]
