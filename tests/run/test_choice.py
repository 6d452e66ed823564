"""Which method a run gets that names none."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.run.choice import joint_rates


def arm(stiffness=0.0, damping=0.0, limits=None):
    m = la.Mechanism("arm")
    for name, parent in (("upper", "world"), ("lower", "upper")):
        m.add_body(name, mass=1.0, com=(0, 0, -0.1), inertia=(1e-3, 1e-3, 1e-3))
        m.add_joint(
            f"{name} hinge", "revolute", parent=parent, child=name, axis=(0, 1, 0), stiffness=stiffness,
            damping=damping, limits=limits, parent_frame=la.pose((0, 0, 0 if parent == "world" else -0.2)),
        )  # fmt: skip
    return m


def ball():
    m = la.Mechanism("ball")
    m.add_body("ball", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground()
    return m


def label(mechanism, dt=0.01, **state):
    model = mechanism.build()
    run = la.simulate(model, model.state(**state), dt=dt, duration=2 * dt)
    assert run.report.chosen in str(run.report)
    return run.method.label, run.report.chosen


def test_smooth_motion_and_loops():
    assert label(la.models.chain(2)) == ("galerkin:4", "for smooth motion")
    assert label(la.models.four_bar())[0] == "galerkin:4"


def test_contact_and_limits():
    assert label(ball(), q={"root": [0, 0, 0.5, 1, 0, 0, 0]}) == ("maximal", "for contact")
    limited = arm(limits=(-1.0, 1.0))
    assert label(limited)[0] == "galerkin:4"
    limited.enforce_limits()
    assert label(limited) == ("maximal", "for enforced limits")


def test_stiff_joints_are_left_to_a_method_that_takes_them_implicitly():
    # the fastest spring of this arm swings at 2.4e3 rad/s
    stiff = arm(stiffness=1e3, damping=1.0)
    assert label(stiff, dt=1e-4)[0] == "galerkin:4"
    name, why = label(stiff, dt=0.01)
    assert (name, "stiff" in why) == ("maximal", True)
    # and the run is one: a spring that stands there does not move the arm away from its rest (1.1e-3 rad)
    model = stiff.build()
    run = la.simulate(model, model.state(q=[0.02, -0.02]), dt=0.01, duration=1.0)
    assert np.abs(run.q[-1]).max() < 5e-3


def test_dampers_alone_do_not_matter_to_a_variational_method():
    assert label(arm(damping=100.0))[0] == "galerkin:4"


def test_splines():
    m = la.Mechanism("slide")
    m.add_body("bead", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    m.add_joint(
        "wire", "spline", parent="world", child="bead",
        spline=la.SplineCurve([la.pose((0.1 * k, 0, 0.01 * k * k)) for k in range(5)]),
    )  # fmt: skip
    assert label(m, q=[1.5])[0] == "rk4"


def test_a_named_method_is_not_chosen():
    model = la.models.chain(2).build()
    run = la.simulate(model, dt=0.01, duration=0.02, method="rk4")
    assert run.report.chosen is None
    assert "chosen" not in str(run.report)


def test_many_get_what_one_gets():
    model = ball().build()
    states = [model.state({"root": [0, 0, 0.5 + 0.1 * k, 1, 0, 0, 0]}) for k in range(2)]
    out = la.simulate_many(model, states, dt=0.01, duration=0.02)
    assert out.method.label == "maximal"


def test_the_reason_is_saved(tmp_path):
    model = la.models.chain(2).build()
    run = la.simulate(model, dt=0.01, duration=0.02)
    run.save(tmp_path / "a.npz")
    again = la.Trajectory.load(tmp_path / "a.npz")
    assert again.report.chosen == "for smooth motion"
    assert la.resume(again, 0.02).method.label == "galerkin:4"


def test_rates_of_joints():
    m = arm(stiffness=3.0, damping=2.0)
    m.add_body("hand", mass=1.0, inertia=(1e-3, 1e-3, 1e-3))
    m.add_joint("wrist", "spherical", parent="lower", child="hand", stiffness=(4, 5, 6), damping=(7, 8, 9))
    m.add_actuator("servo", "upper hinge", kp=10.0, kd=20.0)
    stiffness, damping = joint_rates(m.build())
    assert np.array_equal(stiffness, [13, 3, 4, 5, 6])
    assert np.array_equal(damping, [22, 2, 7, 8, 9])


def test_bad_methods():
    model = la.models.chain(2).build()
    with pytest.raises(la.ModelError, match="expected a method such as"):
        la.simulate(model, dt=0.01, duration=0.1, method=4)
    with pytest.raises(la.UnsupportedError, match="contact"):
        la.simulate(ball().build(), dt=0.01, duration=0.1, method="rk4")
