"""The reference itself against first principles: derivatives by differences, Lagrange's equations, Newton's law."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import retract
from leastaction.reference import dynamics, kinematics, loops
from leastaction.reference import samples as make

# kinds whose coordinates are numbers, so that Lagrange's equations hold as in textbooks
BALLS = ("spherical", "cylindrical_free", "planar_free", "free", "composite")
SCREWS = [kind for kind in make.MOVING_KINDS if kind not in BALLS]


def tree(kinds, seed):
    rng = np.random.default_rng(seed)
    model = make.random_tree(kinds, rng, springs=True).build()
    return model, *make.random_state(model, rng), rng.normal(size=model.nv)


def slope(function, h=1e-3):
    """Derivative of function(t) at 0, by central differences of sixth order."""
    weights = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    return sum(w / h * (function(k * h) - function(-k * h)) for k, w in weights)


@pytest.mark.parametrize("kind", make.MOVING_KINDS)
def test_jacobian_and_its_derivative(kind):
    model, q, v, _ = tree([kind, "revolute", kind], 1)
    motions = kinematics.motions(model, q, v)
    for name in model.body_names:
        E, J, Jdot = motions[name].E, motions[name].J, motions[name].Jdot
        # twist in link axes: E^-1 dE/dt
        rate = np.linalg.inv(E) @ slope(lambda t, name=name: kinematics.poses(model, retract(model, q, t * v))[name])
        twist = [rate[2, 1], rate[0, 2], rate[1, 0], *rate[:3, 3]]
        assert np.abs(J @ v - twist).max() < 1e-10  # measured 9e-13
        # along the motion
        moved = slope(lambda t, name=name: kinematics.motions(model, retract(model, q, t * v), v)[name].J)
        assert np.abs(Jdot @ v - moved @ v).max() < 1e-9 * max(1.0, np.abs(v).max() ** 2)  # measured 3e-13


@pytest.mark.parametrize("kind", SCREWS)
def test_lagrange(kind):
    """tau = d/dt (M v) - d/dq (v^T M v / 2 - potential), less the dampers."""
    model, q, v, a = tree([kind, "revolute", kind], 2)
    rate = slope(lambda t: dynamics.mass_matrix(model, q + t * v)) @ v
    tau = dynamics.mass_matrix(model, q) @ a + rate
    for k, e in enumerate(np.eye(model.nv)):
        energies = slope(lambda t, e=e: np.subtract(*dynamics.energy(model, q + t * e, v)))
        tau[k] -= energies
    for view in model.joints.values():
        tau[view.v] += view.joint.damping_values * v[view.v]
    ours = dynamics.inverse_dynamics(model, q, v, a)
    assert np.abs(ours - tau).max() < 1e-9 * np.abs(tau).max()  # measured 7e-13


def test_free_body_obeys_newton_and_euler():
    """In world axes: force = m d2c/dt2, torque about the centre = dL/dt."""
    model, q, v, a = tree(["free"], 3)
    for joint in model.mechanism.joints.values():
        joint.stiffness = joint.damping = np.zeros(6)
    body = model.mechanism.bodies["b0"]
    tau = dynamics.inverse_dynamics(model, q, v, a, passive=False)

    def momenta(t):
        linear, angular = dynamics.momentum(model, retract(model, q, t * v), v + t * a)
        return np.concatenate([angular, linear])

    rate = slope(momenta)
    # tau is a wrench at the child frame in its axes; in the world it balances weight and the change of momentum
    E = kinematics.joint_frame(model, "j0", kinematics.motions(model, q, v)).E
    force, torque = E[:3, :3] @ tau[3:], E[:3, :3] @ tau[:3]
    weight, center = body.mass * model.mechanism.gravity, dynamics.center_of_mass(model, q)
    assert np.abs(force + weight - rate[3:]).max() < 1e-10  # measured 2e-12
    about = torque + np.cross(E[:3, 3], force) + np.cross(center, weight)
    assert np.abs(about - rate[:3]).max() < 1e-10  # measured 5e-12


@pytest.mark.parametrize("kind", make.MOVING_KINDS)
def test_springs_have_an_energy(kind):
    model, q, v, _ = tree([kind], 4)
    still = np.zeros(model.nv)
    power = -slope(lambda t: dynamics.spring_energy(model, retract(model, q, t * v)))
    assert dynamics.joint_springs(model, q, still) @ v == pytest.approx(power, rel=1e-9, abs=1e-9)  # measured 2e-12


def test_loop_rows_are_the_derivative_of_the_gap():
    rng = np.random.default_rng(5)
    m = make.random_tree(["spherical", "universal"], rng)
    for kind in ("helical", "universal", "planar", "fixed"):
        make.add_random_joint(m, f"loop {kind}", kind, "world", "b1", rng)
    model = m.build()
    q, v = make.random_state(model, rng)
    rate = slope(lambda t: loops.gaps(model, retract(model, q, t * v)))
    assert np.abs(loops.jacobian(model, q) @ v - rate).max() < 1e-10  # measured 6e-13


def test_mass_matrix_of_a_double_pendulum():
    """The textbook's: l1 = l2 = 1, m1 = m2 = 1, second angle relative."""
    model = la.models.double_pendulum().build()
    c = np.cos(0.7)
    expected = [[3 + 2 * c, 1 + c], [1 + c, 1]]
    assert np.abs(dynamics.mass_matrix(model, np.array([0.2, 0.7])) - expected).max() < 1e-14  # measured 9e-16
