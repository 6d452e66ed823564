"""Motors and servos: springs and dampers that servos become, inputs, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def arm(**servo) -> la.Mechanism:
    m = la.Mechanism("arm", gravity=(0.0, 0.0, 0.0))
    m.add_body("link", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    m.add_joint("hinge", "revolute", parent="world", child="link", stiffness=2.0, rest=0.5, damping=0.3)
    m.add_actuator("servo", "hinge", **servo)
    return m


def test_a_servo_is_a_spring_and_a_damper_behind_its_gear():
    m = arm(kp=10.0, kd=1.5, target=0.4, gear=2.0)
    model, q, v = m.build(), 0.7, -0.2
    expected = -2.0 * (q - 0.5) - 0.3 * v + 2.0 * (10.0 * (0.4 - 2.0 * q) - 1.5 * 2.0 * v)
    assert la.forward_dynamics(model, [q], [v])[0] == pytest.approx(expected / 0.35, rel=1e-14)
    # another target is an input
    tau = model.actuate({"servo": 1.0})
    expected += 2.0 * 10.0 * (1.0 - 0.4)
    assert la.forward_dynamics(model, [q], [v], tau)[0] == pytest.approx(expected / 0.35, rel=1e-14)
    # the mechanism keeps the joint's own spring, and is built again as it was
    assert model.mechanism.joints["hinge"].stiffness.tolist() == [2.0]
    again = model.mechanism.build()
    assert again.joint("hinge").joint.stiffness.tolist() == [42.0]


def test_inputs_of_motors_and_of_servos_without_a_spring():
    m = arm(kd=3.0, gear=2.0)
    m.add_body("other", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("slide", "planar_translation", parent="link", child="other")
    m.add_actuator("motor", "slide", gear=5.0, coordinate=1, effort=2.0)
    model = m.build()
    assert model.actuate({"servo": 0.5}).tolist() == [3.0, 0.0, 0.0]
    rows = model.actuate({"servo": 0.5, "motor": np.array([0.0, 1.0, 3.0])})
    assert rows.tolist() == [[3.0, 0.0, 0.0], [3.0, 0.0, 5.0], [3.0, 0.0, 15.0]]
    m.enforce_limits()
    assert m.build().actuate({"motor": 3.0}).tolist() == [0.0, 0.0, 10.0]
    for wrong, words in (
        ({"nobody": 1.0}, "there is no actuator 'nobody'"),
        ({"motor": np.nan}, "actuator 'motor': inputs"),
        ({"motor": "much"}, "actuator 'motor': inputs"),
        ({"motor": [1.0], "servo": [1.0, 2.0]}, "different shapes"),
        (1.0, "expected 2 in each row, for the actuators 'servo', 'motor'"),
        ([1.0, 2.0, 3.0], "expected 2 in each row"),
    ):
        with pytest.raises(la.ModelError, match=words):
            model.actuate(wrong)


@pytest.mark.parametrize(
    ("servo", "words"),
    [
        ({"kp": -1.0}, "kp"),
        ({"kd": np.inf}, "kd"),
        ({"target": 1.0}, "a target needs kp"),
        ({"kp": 1.0, "gear": 0.0}, "gear that is not zero"),
    ],
)
def test_bad_servos_are_refused(servo, words):
    with pytest.raises(la.ModelError, match=f"actuator 'servo': .*{words}"):
        arm(**servo)


def test_a_servo_needs_a_coordinate_of_its_own():
    m = la.Mechanism("ball")
    m.add_body("body", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("joint", "spherical", parent="world", child="body")
    with pytest.raises(la.ModelError, match="servo needs a screw coordinate, 'wx' of joint 'joint' is none"):
        m.add_actuator("servo", "joint", kp=1.0)
    law = la.Law(lambda x: -x, lambda x: -1.0)
    m = arm()
    m.joints["hinge"].stiffness = law
    m.actuators["servo"].kp = 1.0
    with pytest.raises(la.ModelError, match="has a stiffness law there"):
        m.build()


def test_a_servo_in_a_loop_joint_is_no_feature_and_one_with_an_enforced_effort_is():
    m = la.models.four_bar()
    m.add_actuator("servo", m.build().loop_names[0], kp=1.0, effort=1.0)
    assert m.build().features == {"loops"}
    m.enforce_limits()
    assert m.build().features == {"loops", "bounded servos"}
    m = arm(kp=1.0, effort=0.5)
    assert "bounded servos" not in m.build().features
    m.enforce_limits()
    assert "bounded servos" in m.build().features
    with pytest.raises(la.UnsupportedError, match=r"bounded servos, which rk4 cannot honour; .* leave their"):
        la.simulate(m.build(), dt=0.01, duration=0.1, method="rk4")


def test_the_energy_of_a_bounded_servo_is_the_work_of_its_force():
    """A spring up to its effort, then a constant force."""
    m = arm(kp=100.0, gear=2.0, target=0.4, effort=10.0)
    free = m.build()
    m.enforce_limits()
    bounded = m.build()
    # 400 N m/rad about 0.2 rad, and at most 20 N m, so a spring up to 0.05 rad from there
    for q, less in ((0.24, 0.0), (0.5, 0.5 * 400.0 * 0.25**2), (-0.1, 0.5 * 400.0 * 0.25**2)):
        got = la.energy(free, [q]).potential - la.energy(bounded, [q]).potential
        assert got == pytest.approx(less, rel=1e-12, abs=1e-12)


def test_the_report_knows_what_a_servo_pulls():
    """The effort of a servo is that of its whole force, not of the input alone."""
    m = arm(kp=100.0, effort=30.0)
    model = m.build()
    steps = np.full(10, 0.2)
    run = la.simulate(model, dt=0.001, duration=0.01, method="rk4", control=model.actuate({"servo": steps}))
    assert run.report.limits == {}
    run = la.simulate(model, dt=0.001, duration=0.01, method="rk4", control=model.actuate({"servo": 2.0 * steps}))
    assert "effort of" in run.report.limits["hinge"]


def drone() -> la.Mechanism:
    m = la.Mechanism("drone")
    m.add_body("frame", mass=1.0, com=(0.1, 0.0, 0.0), inertia=(0.1, 0.2, 0.3))
    m.add_joint("free", "free", parent="world", child="frame")
    m.add_actuator("rotor", "free", gear=(0.1, -0.2, 0.05, 0.0, 0.0, 2.0), effort=30.0)
    m.add_actuator("spin", "free", gear=3.0, coordinate=2)
    return m


def test_a_motor_on_all_coordinates_of_a_joint(tmp_path):
    m = drone()
    model = m.build()
    assert (model.nu, model.actuator_names) == (2, ("rotor", "spin"))
    tau = model.actuate({"rotor": 5.0})
    np.testing.assert_array_equal(tau, 5.0 * np.array([0.1, -0.2, 0.05, 0.0, 0.0, 2.0]))
    # the same as a wrench in link axes
    m.add_force(la.Wrench("frame", tau, "body"))
    pushed, q, v = m.build(), model.neutral(), np.arange(6.0)
    a, b = la.forward_dynamics(model, q, v, tau), la.forward_dynamics(pushed, q, v, 0 * tau)
    np.testing.assert_allclose(a, b, rtol=1e-12)  # measured 4e-16
    # rows of inputs, and files
    rows = model.actuate(np.array([[1.0, 0.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(rows[1], [0, 0, 6.0, 0, 0, 0])
    la.save(drone(), tmp_path / "m.json")
    again = la.load(tmp_path / "m.json").build()
    np.testing.assert_array_equal(again.actuate([5.0, 1.0]), model.actuate([5.0, 1.0]))


@pytest.mark.parametrize(
    ("gear", "more", "words"),
    [
        ((1.0, 2.0), {}, "joint 'free' has 6"),
        ((1.0,) * 6, {"coordinate": 1}, "one for each velocity coordinate"),
        ((1.0,) * 6, {"kp": 1.0}, "its gear must be one number"),
        ((1.0,) * 5 + (np.inf,), {}, "gear"),
    ],
)
def test_gears_that_do_not_fit(gear, more, words):
    m = drone()
    with pytest.raises(la.ModelError, match=words):
        m.add_actuator("bad", "free", gear=gear, **more)


def test_inputs_of_an_actuator_on_a_joint_that_is_held_have_no_effect():
    m = arm(kp=10.0)
    m.add_body("other", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("elbow", "revolute", parent="link", child="other")
    m.add_actuator("motor", "elbow")
    m.lock("elbow")
    assert m.build().actuate([0.5, 7.0]).tolist() == [5.0]
