"""A cart balances a pole: a linear-quadratic regulator from the exact derivative of the discrete step."""

import numpy as np
from scipy.linalg import solve_discrete_are

import leastaction as la

model = la.models.cart_pole().build()
dt, method, top = 0.01, la.Galerkin(2), model.state(q={"hinge": np.pi})

# the step around the upright pole; only the cart is driven
step = la.linearize(model, method, top, None, dt)
A, B = step.A, step.B[:, :1]
Q, R = np.diag([10.0, 10.0, 1.0, 1.0]), np.eye(1)
P = solve_discrete_are(A, B, Q, R)
K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
print("eigenvalues", np.abs(np.linalg.eigvals(A - B @ K)).round(4))


def control(t, state):
    """A force on the cart."""
    return -K @ np.concatenate([state.q - top.q, state.v]) * (1.0, 0.0)


start = model.state(q={"slider": 0.3, "hinge": np.pi - 0.4})
run = la.simulate(model, start, dt=dt, duration=6.0, method=method, control=control)
print("cart and pole at the end", run.q[-1].round(6))
assert np.abs(run.q[-1] - top.q).max() < 1e-3
run.to_html("lqr.html")
print("wrote lqr.html")
