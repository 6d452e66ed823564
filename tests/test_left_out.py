"""What a function does not count it refuses by name, rather than answer as if it were not there."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def hinge(**data) -> la.Mechanism:
    m = la.Mechanism("hinge")
    m.add_body("link", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01), shape=la.Sphere(0.1))
    m.add_joint("joint", "revolute", parent="world", child="link", axis=(0, 1, 0), **data)
    return m


def test_forward_dynamics_does_not_leave_out_friction_or_contact():
    with pytest.raises(la.UnsupportedError, match="bearings"):
        la.forward_dynamics(hinge(friction=la.Bearing(0.3, 0.02, 0.1)).build(), [0.1], [0.0])
    with pytest.raises(la.UnsupportedError, match="joint friction"):
        la.hybrid_dynamics(hinge(friction=5.0).build(), hinge().build().state([0.1], [0.0]))
    grounded = hinge()
    grounded.add_ground()
    with pytest.raises(la.UnsupportedError, match="contact"):
        la.forward_dynamics(grounded.build(), [0.1], [0.0])
    # what the hint says works
    bearing = hinge(friction=la.Bearing(0.3, 0.02, 0.1))
    assert np.isfinite(la.forward_dynamics(bearing.without("friction").build(), [0.1], [0.0])).all()


def test_springs_in_a_loop_joint_are_not_left_out_of_the_energy():
    m = la.models.four_bar()
    plain = m.build()
    m.joints[plain.loop_names[0]].stiffness = np.array([100.0])
    m.joints[plain.loop_names[0]].rest = np.array([0.2])
    model = m.build()
    more = la.energy(model, model.neutral()).potential - la.energy(plain, plain.neutral()).potential
    assert more == pytest.approx(0.5 * 100.0 * 0.2**2, rel=1e-12)  # measured 0
    pulled = la.forward_dynamics(model, model.neutral(), np.zeros(model.nv))
    assert np.abs(pulled[:3] - la.forward_dynamics(plain, plain.neutral(), np.zeros(3))).max() > 1.0  # measured 3.3e3


def test_a_driven_run_goes_on_only_with_a_control():
    model = la.models.pendulum().build()
    run = la.simulate(model, dt=0.01, duration=0.1, control=lambda t, state: [5.0])
    with pytest.raises(la.ModelError, match="driven by a control"):
        la.resume(run, 0.1)
    whole = la.simulate(model, dt=0.01, duration=0.2, control=lambda t, state: [5.0])
    assert np.array_equal(la.resume(run, 0.1, control=lambda t, state: [5.0]).q, whole.q)


def test_an_effort_that_is_crossed_is_in_the_report():
    model = hinge(effort=1.0).build()
    run = la.simulate(model, dt=0.01, duration=0.05, control=np.full((5, 1), 100.0))
    assert "effort" in run.report.limits["joint"]
    assert la.simulate(model, dt=0.01, duration=0.05, control=np.full((5, 1), 0.5)).report.limits == {}
