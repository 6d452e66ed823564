"""Find the mass of a link and the damping of a joint from a recorded motion, by the gradient of the whole run."""

import numpy as np
from scipy.optimize import least_squares

import leastaction as la

steps, dt = 100, 0.01


def arm(mass, damping):
    """A double pendulum with an unknown link and joint."""
    m = la.models.double_pendulum()
    lower = m.bodies[list(m.bodies)[-1]]
    lower.mass = mass
    m.joints[list(m.joints)[-1]].damping = damping
    model = m.build()
    return model, model.state(q=[1.0, 0.5])


# a recording of the true arm, with noise of an encoder
model, start = arm(1.3, 0.05)
rng = np.random.default_rng(1)
seen = la.simulate(model, start, dt=dt, duration=steps * dt, method="galerkin:2").q
seen = seen + 1e-4 * rng.normal(size=seen.shape)


def misfit(guess):
    """What a guess gets wrong."""
    model, start = arm(*guess)
    return (la.simulate(model, start, dt=dt, duration=steps * dt, method="galerkin:2").q - seen).ravel()


found = least_squares(misfit, (1.0, 0.0))
print(f"mass {found.x[0]:.4f} kg (1.3), damping {found.x[1]:.5f} N m s/rad (0.05)")
assert np.abs(found.x - (1.3, 0.05)).max() < 5e-3
