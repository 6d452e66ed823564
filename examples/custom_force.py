"""A force of your own: the drag of air on a ball, with its derivatives."""

import numpy as np

import leastaction as la


class Drag(la.Force):
    """A force -c |v| v on the origin of a body, in its own axes."""

    name = "drag"
    conservative = False

    def __init__(self, body: str, c: float) -> None:
        self.bodies = (body,)
        self.c = c

    def wrenches(self, t, poses, twists):
        """(torque; force) about the link origin in link axes."""
        v = twists[0, 3:]
        return np.concatenate([np.zeros(3), -self.c * np.linalg.norm(v) * v])[None]

    def derivatives(self, t, poses, twists):
        """K by position, which is zero, and D by the twist."""
        v = twists[0, 3:]
        speed = np.linalg.norm(v)
        D = np.zeros((6, 6))
        if speed > 0:
            D[3:, 3:] = -self.c * (speed * np.eye(3) + np.outer(v, v) / speed)
        return np.zeros((6, 6)), D


m = la.Mechanism("ball")
m.add_body("ball", shape=la.Sphere(0.05, color=(0.9, 0.45, 0.1)), mass=0.2)
m.add_joint("root", "free", parent="world", child="ball")
m.add_force(Drag("ball", c=0.01))
model = m.build()

# dropped, it reaches the speed at which drag and weight are equal
run = la.simulate(model, dt=0.02, duration=10.0, method=la.Galerkin(2))
speed = -run.velocities("root")[:, 5]
final = np.sqrt(0.2 * 9.81 / 0.01)
exact = final * np.tanh(9.81 * run.t / final)
print(f"speed {speed[-1]:.4f} m/s, exact {exact[-1]:.4f} m/s, largest difference {np.abs(speed - exact).max():.1e}")
assert np.abs(speed - exact).max() < 1e-3
