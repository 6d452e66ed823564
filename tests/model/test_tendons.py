"""Tendons over joints: their forces against closed forms, files, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.tendon_force import TendonForce, TendonLimit

WEIGHTS = {"shoulder": 0.3, "slide": -1.2, "wrist": 0.5}
BAND = (0.05, 0.1)


def arm(**tendon):
    """A base that turns, a slide and a wrist with frames in general position, and a joint beside them."""
    rng = np.random.default_rng(5)

    def frame():
        return la.pose(xyz=rng.uniform(-0.3, 0.3, 3), rpy=rng.uniform(-1, 1, 3))

    m = la.Mechanism("arm")
    for name, mass in (("base", 3.0), ("upper", 2.0), ("hand", 1.0), ("other", 0.7)):
        m.add_body(name, mass=mass, com=rng.uniform(-0.1, 0.1, 3), inertia=(0.02, 0.03, 0.025))
    joints = (
        ("shoulder", "revolute", "world", "base"), ("slide", "prismatic", "base", "upper"),
        ("wrist", "continuous", "upper", "hand"), ("beside", "revolute", "base", "other"),
    )  # fmt: skip
    for name, kind, parent, child in joints:
        m.add_joint(
            name, kind, parent=parent, child=child, axis=rng.normal(size=3), parent_frame=frame(), child_frame=frame()
        )
    m.joints["shoulder"].limits = np.array([[-4.0, 1.0]])
    if tendon:
        m.add_tendon("cord", WEIGHTS, **tendon)
    return m


def motion(model, seed=0):
    rng = np.random.default_rng(seed)
    q = {"shoulder": rng.uniform(-4, 1), "slide": rng.uniform(-1, 1), "wrist": rng.uniform(-3, 3), "beside": 0.3}
    return model.state(q, rng.normal(size=4))


def generalised(model, state):
    """What springs and dampers do to the coordinates."""
    at = (state.q, state.v, np.zeros(model.nv))
    with_all, without = la.inverse_dynamics(model, *at), la.inverse_dynamics(model, *at, passive=False)
    return without - with_all


def length_at(model, state):
    """Length of its first tendon at a state."""
    force, poses = model.mechanism.forces[0], {**la.poses(model, state.q), "world": np.eye(4)}
    return force.length(np.array([poses[name] for name in force.bodies]))


def stretch_of(length, band=BAND):
    return max(length - band[1], 0.0) + min(length - band[0], 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_forces_of_spring_and_damper(seed):
    model = arm(stiffness=40.0, damping=3.0, rest=BAND).build()
    x = motion(model, seed)
    w = np.array([0.3, -1.2, 0.5, 0.0])
    expected = -w * (40.0 * stretch_of(w @ x.q) + 3.0 * (w @ x.v))
    np.testing.assert_allclose(generalised(model, x), expected, atol=1e-11)  # measured 2e-14
    # the energy of the spring, beside that of the same arm without it
    own = la.energy(model, x.q, x.v).potential - la.energy(arm().build(), x.q, x.v).potential
    assert own == pytest.approx(20.0 * stretch_of(w @ x.q) ** 2, abs=1e-10)


def test_derivatives_against_differences():
    model = arm(stiffness=40.0, damping=3.0, rest=BAND).build()
    x, h = motion(model, 3), 1e-6
    found = la.inverse_dynamics_derivatives(model, x.q, x.v, np.zeros(4))
    by_q, by_v = found.dq, found.dv
    for j, step in enumerate(h * np.eye(4)):
        ends = [la.inverse_dynamics(model, x.q + s * step, x.v, np.zeros(4)) for s in (1, -1)]
        np.testing.assert_allclose(by_q[:, j], (ends[0] - ends[1]) / (2 * h), atol=1e-6)  # measured 5e-9
        ends = [la.inverse_dynamics(model, x.q, x.v + s * step, np.zeros(4)) for s in (1, -1)]
        np.testing.assert_allclose(by_v[:, j], (ends[0] - ends[1]) / (2 * h), atol=1e-6)


def test_a_motor_pulls_along_the_weights():
    m = arm()
    m.add_tendon("cord", WEIGHTS)
    m.add_actuator("winch", tendon="cord", gear=2.0, effort=3.0)
    model = m.build()
    # nothing acts by itself, so no force is there
    assert not model.mechanism.forces
    np.testing.assert_allclose(model.actuate({"winch": 5.0}), 10.0 * np.array([0.3, -1.2, 0.5, 0.0]))
    m.enforce_limits()
    np.testing.assert_allclose(m.build().actuate([5.0]), 6.0 * np.array([0.3, -1.2, 0.5, 0.0]))


def test_a_servo_pulls_towards_its_input():
    m = arm()
    m.add_tendon("cord", WEIGHTS)
    m.add_actuator("servo", tendon="cord", gear=2.0, kp=50.0, kd=4.0, target=0.3)
    model = m.build()
    x, w = motion(model, 1), np.array([0.3, -1.2, 0.5, 0.0])
    found = generalised(model, x) + model.actuate({"servo": 0.8})
    np.testing.assert_allclose(found, 2.0 * w * (50.0 * (0.8 - 2.0 * w @ x.q) - 8.0 * w @ x.v), atol=1e-11)


def test_a_joint_that_is_held_counts_where_it_is():
    m = arm(stiffness=40.0, rest=0.0)
    m.lock("slide", 0.4)
    model = m.build()
    x = model.state({"shoulder": 0.2, "wrist": 0.7})
    assert length_at(model, x) == pytest.approx(0.3 * 0.2 - 1.2 * 0.4 + 0.5 * 0.7, abs=1e-12)


def test_half_a_turn_has_no_length():
    # the wrist has no limits: half a turn from zero it could be either
    model = arm(stiffness=1.0).build()
    assert length_at(model, model.state({"wrist": 3.0})) == pytest.approx(1.5, abs=1e-12)
    assert np.isnan(length_at(model, model.state({"wrist": 3.1})))


def test_built_again_nothing_is_there_twice():
    m = arm(stiffness=1.0, limits=(None, 2.0))
    m.enforce_limits()
    again = m.build().mechanism.build().mechanism
    assert [type(force) for force in again.forces] == [TendonForce]
    assert [type(each) for each in again.constraints] == [TendonLimit]
    assert not m.build().described.forces


def test_files(tmp_path):
    m = arm(stiffness=40.0, damping=3.0, rest=BAND, limits=(-1.0, None))
    m.add_actuator("servo", tendon="cord", kp=50.0)
    la.save(m, tmp_path / "m.json")
    back = la.load(tmp_path / "m.json")
    assert back.tendons["cord"].joints == WEIGHTS
    assert back.tendons["cord"].rest == BAND
    assert back.tendons["cord"].limits == (-1.0, np.inf)
    assert back.actuators["servo"].tendon == "cord"
    la.save(back, tmp_path / "again.json")
    assert (tmp_path / "m.json").read_text() == (tmp_path / "again.json").read_text()


def test_files_with_a_path(tmp_path):
    m = arm()
    wrap = la.Wrap("upper", 0.05, la.pose(rpy=(0.1, 0.2, 0.3)), "cylinder", ("hand", (0.3, 0, 0)))
    path = [("world", (0, 0, 1)), wrap, ("hand", (0.1, 0, 0)), la.Pulley(2.0), ("hand", (0, 0, 0)), ("base", (0, 1, 0))]
    m.add_tendon("cord", path=path, stiffness=3.0)
    la.save(m, tmp_path / "m.json")
    back = la.load(tmp_path / "m.json")
    numbers = [each.build().mechanism.forces[0].numbers for each in (m, back)]
    np.testing.assert_array_equal(*numbers)
    back.remove_body("upper")
    assert not back.tendons


def test_removed_with_its_joint():
    m = arm(stiffness=40.0)
    m.add_actuator("servo", tendon="cord", kp=50.0)
    m.add_key_frame("home", inputs={"servo": 0.1})
    m.remove_joint("wrist")
    assert not m.tendons
    assert not m.actuators
    assert not m.key_frames["home"].inputs
    m = arm(stiffness=40.0).without("tendons")
    assert not m.tendons


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: m.add_tendon("t", {}), "give {joint: weight}"),
        (lambda m: m.add_tendon("t", {"wrist": np.nan}), "weight of joint 'wrist'.*finite"),
        (lambda m: m.add_tendon("t", {"wrist": 0.0}), "weight of joint 'wrist' is zero"),
        (lambda m: m.add_tendon("t", {"wrist": 1.0}, stiffness=-1.0), "stiffness"),
        (lambda m: m.add_tendon("t", {"wrist": 1.0}, limits=(2.0, 1.0)), "limits: the lower end 2 is above"),
        (lambda m: m.add_tendon("t", {"wrist": 1.0}, rest=(2.0, 1.0)), "rest: the lower end 2 is above"),
        (lambda m: m.add_tendon("t", {"wrist": 1.0}, limits=3.0), "limits: give"),
        (lambda m: m.add_tendon("t"), "give joints or a path"),
        (lambda m: m.add_tendon("t", path=[("base", (0, 0, 0))]), "needs two points at least"),
        (
            lambda m: m.add_tendon("t", path=[("base", (0, 0, 0)), la.Wrap("hand", 0.1)]),
            "must stand between two points",
        ),
        (lambda m: m.add_tendon("t", path=[("base", (0, 0, 0)), ("base", (1, 0, 0))]), "lies on one body, 'base'"),
        (lambda m: m.add_tendon("t", path=[("base", (0, 0, np.nan)), ("hand", (1, 0, 0))]), "point on 'base'.*finite"),
        (lambda m: la.Wrap("hand", -0.1), "radius"),
        (lambda m: la.Wrap("hand", 0.1, shape="box"), "around a 'sphere' or a 'cylinder'"),
        (lambda m: la.Wrap("hand", 0.1, side=("hand", (0, 0, 0.05))), "its side lies inside"),
        (lambda m: la.Pulley(0.0), "divisor of a pulley"),
        (lambda m: m.add_tendon("t", {"elbow": 1.0}) and m.build(), "tendon 't': there is no joint 'elbow'"),
        (lambda m: m.add_actuator("a", tendon="none") and m.build(), "actuator 'a': there is no tendon 'none'"),
        (lambda m: m.add_actuator("a"), "actuator 'a': give a joint or a tendon"),
        (lambda m: m.add_actuator("a", "wrist", tendon="t"), "give a joint or a tendon"),
        (lambda m: m.add_actuator("a", tendon="t", gear=(1.0, 2.0)), "an actuator on a tendon has one length"),
        (lambda m: m.add_actuator("a", tendon="t", coordinate=1), "a tendon has one length"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(la.ModelError, match=words):
        make(arm())


def test_a_ball_has_no_single_coordinate():
    m = la.Mechanism("ball")
    m.add_body("a", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("ball", "spherical", parent="world", child="a")
    m.add_tendon("t", {"ball": 1.0}, stiffness=1.0)
    with pytest.raises(la.ModelError, match="tendon 't': joint 'ball' is spherical"):
        m.build()


def test_limits_that_are_not_in_force_are_reported():
    m = la.Mechanism("fall")
    m.add_body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("x", "prismatic", parent="world", child="a", axis=(0, 0, -1))
    m.add_tendon("sum", {"x": 2.0}, limits=(None, 1.0))
    m.add_tendon("path", path=[("world", (0, 0, 1)), ("a", (0, 0, 0))], limits=(0.0, 1.2))
    run = la.simulate(m.build(), dt=0.01, duration=0.5, method="rk4")
    fallen = 9.81 * 0.5**2 / 2
    assert run.report.limits["tendon 'sum'"].startswith(f"length crossed by {2 * fallen - 1:.3g}, first at t = 0.32 s")
    assert run.report.limits["tendon 'path'"].startswith(f"length crossed by {fallen - 0.2:.3g}")
