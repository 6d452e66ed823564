"""Servos: stiff ones under implicit methods, and targets that move."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def arm(**servo) -> la.Mechanism:
    """A link with inertia 0.35 kg m^2 about its hinge, that hangs sideways."""
    m = la.Mechanism("arm", gravity=(0.0, -9.81, 0.0))
    m.add_body("link", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    m.add_joint("hinge", "revolute", parent="world", child="link")
    m.add_actuator("servo", "hinge", **servo)
    return m


@pytest.mark.parametrize("method", ["maximal", "bdf:2"])
def test_a_stiff_servo_holds_and_follows(method):
    """Gain 1e6 at 10 ms, some 17 times the step that an explicit method could take."""
    model = arm(kp=1e6, kd=2e3).build()
    t = 0.01 * np.arange(200)
    run = la.simulate(
        model, dt=0.01, duration=2.0, method=method, control=model.actuate({"servo": 0.3 * (1 - np.cos(t))})
    )
    # what the weight, the damper and the held input leave: kd v / kp is 6e-4; measured 9e-4 and 6e-4
    assert np.abs(run.q[1:, 0] - 0.3 * (1 - np.cos(t))).max() < 2e-3


def test_a_stiff_servo_without_a_damper_stays_bounded():
    model = arm(kp=1e6).build()
    run = la.simulate(model, model.state([1e-3]), dt=0.01, duration=10.0, method="maximal")
    # measured 1.00e-3, where it began; the weight alone is 5e-6 of it
    assert np.abs(run.q).max() < 1.1e-3
