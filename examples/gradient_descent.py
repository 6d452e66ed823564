"""Torques that bring a chain to a target: gradient descent with the adjoint method through the whole motion."""

import numpy as np
from scipy.optimize import minimize

import leastaction as la

model = la.models.chain(3).build()
start, dt, steps = model.state(), 0.02, 50
objective = la.Reach("link3", (0.2, 0.1, -0.315), weight=100.0) + la.Effort(1e-3)


def cost(u):
    """Value and gradient by all torques."""
    found = la.gradient(model, la.Galerkin(2), start, u.reshape(steps, -1), dt, objective, ["controls"])
    return found.value, found["controls"].ravel()


found = minimize(cost, np.zeros(steps * model.nv), jac=True, method="L-BFGS-B", options={"maxiter": 60})
run = la.simulate(model, start, dt=dt, duration=1.0, method=la.Galerkin(2), control=found.x.reshape(steps, -1))
there = run.poses("link3")[-1][:3, 3]
print(f"{found.nit} iterations, cost {found.fun:.4f}; the link ends at {there.round(3)}")
assert np.abs(there - (0.2, 0.1, -0.315)).max() < 0.02
