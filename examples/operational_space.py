"""Operational-space control of a Panda: its flange follows a circle, by Khatib's task-space inertia."""

import numpy as np

import leastaction as la

model = la.models.arm().build()
start = model.state(q=[0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.8])
centre = la.poses(model, start.q)["flange"][:3, 3] - (0.1, 0.0, 0.0)


def control(t, state):
    """Torques: a spring and damper of the flange in task space, weight, and damping of the other motions."""
    J = la.jacobian(model, state.q, "flange")[3:]
    here, target = la.poses(model, state.q)["flange"][:3, 3], centre + 0.1 * np.array([np.cos(t), np.sin(t), 0.0])
    wanted = 0.1 * np.array([-np.sin(t), np.cos(t), 0.0])
    M = la.mass_matrix(model, state.q)
    task = np.linalg.inv(J @ np.linalg.solve(M, J.T))
    force = task @ (400.0 * (target - here) + 40.0 * (wanted - J @ state.v))
    null = np.eye(model.nv) - J.T @ task @ J @ np.linalg.inv(M)
    return J.T @ force + la.bias_forces(model, state.q, state.v) - null @ M @ (10.0 * state.v)


run = la.simulate(model, start, dt=0.002, duration=6.0, control=control)
at, t = run.poses("flange")[:, :3, 3], run.t[:, None]
off = np.linalg.norm(at - centre - 0.1 * np.hstack([np.cos(t), np.sin(t), 0 * t]), axis=1)
print(run.report)
print(f"off the circle by {1e3 * off[len(off) // 2 :].max():.2f} mm in the second half")
assert off[len(off) // 2 :].max() < 2e-3
run.to_html("operational_space.html", traces={"flange": (0.0, 0.0, 0.0)})
print("wrote operational_space.html")
