"""MaximalEuler: joints of every kind, loops, constraints, limits, contact and friction, and what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import leastaction as la
from leastaction.methods.base import Clock, Control
from leastaction.model.configuration import difference
from leastaction.reference import samples as make

KINDS = [kind for kind in make.MOVING_KINDS if kind != "composite"]


@pytest.fixture
def qp():
    """The solver of quadratic programs, an extra."""
    return pytest.importorskip("piqp")


def body(shape, friction, **state):
    """A free body over the ground, and its first state."""
    m = la.Mechanism("thing")
    m.add_body("thing", shape=shape, mass=2.0)
    m.add_joint("root", "free", parent="world", child="thing")
    m.add_ground(friction=friction)
    model = m.build()
    return model, model.state(q={"root": state["q"]}, v={"root": state.get("v", np.zeros(6))})


def test_every_joint_with_springs_rotors_and_forces_has_order_one():
    rng = np.random.default_rng(5)
    m = make.random_tree(KINDS, rng, springs=True)
    make.add_every_force(m, "b3", "b7", rng)
    model = m.build()
    q, v = make.random_state(model, rng)
    x0, T = model.state(q, 0.3 * v), 0.01
    final = la.simulate(model, x0, dt=T, duration=T, method=la.Adaptive(1e-11, 1e-11)).final
    errors = []
    for steps in (5, 10, 20):
        run = la.simulate(model, x0, dt=T / steps, duration=T, method=la.MaximalEuler())
        errors.append([np.linalg.norm(difference(model, run.q[-1], final.q)), np.linalg.norm(run.v[-1] - final.v)])
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(slopes - 1.0).max() < 0.1  # measured 0.01


def test_joints_drift_apart_and_baumgarte_closes_them():
    model = la.models.double_pendulum().build()
    x0, found = model.state(q=[1.2, 0.9], v=[1.0, -2.0]), {}
    for gain in (0.0, 50.0):
        method = la.MaximalEuler(baumgarte=gain)
        memory = method.start(model, x0)
        assert np.abs(method.drift(model, memory)).max() < 1e-14  # measured 1e-16
        chunk = method.rollout(model, memory, Clock(0.0, 0.01), 0, 100, 1, Control(np.zeros((0, model.nv))))
        assert chunk.failure is None
        found[gain] = np.abs(method.drift(model, memory)).max()
    assert 1e-3 < found[0.0] < 1e-2  # measured 3e-3 m: it is not hidden
    assert found[50.0] < 0.2 * found[0.0]  # measured 0.08


def test_a_sliding_ball_rolls_with_five_sevenths_of_its_speed(qp):
    """Both friction models; the error of first order halves with dt."""
    model, x0 = body(la.Sphere(0.1), 0.5, q=[0, 0, 0.1, 1, 0, 0, 0], v=[0, 0, 0, 1.0, 0, 0])
    for friction in la.MaximalEuler, lambda: la.MaximalEuler("qp"):
        errors = []
        for dt in (0.005, 0.0025):
            run = la.simulate(model, x0, dt=dt, duration=0.15, method=friction())
            speed = (run.poses("thing")[-1, 0, 3] - run.poses("thing")[-2, 0, 3]) / dt
            errors.append(abs(speed - 5 / 7))
        assert errors[0] < 0.02  # measured 0.007
        assert errors[1] < 0.6 * errors[0]  # measured 0.51


def test_a_box_stops_where_coulomb_says_and_forces_are_in_newtons(qp):
    model, x0 = body(la.Box((0.2, 0.3, 0.1)), 0.3, q=[0, 0, 0.05, 1, 0, 0, 0], v=[0, 0, 0, 1.0, 0, 0])
    dt = 0.005
    run = la.simulate(model, x0, dt=dt, duration=0.4, method=la.MaximalEuler())
    # Euler's sum of the velocities at the ends of the steps is short by half a step
    assert run.q[-1, 0] == pytest.approx(1.0 / (2 * 0.3 * 9.81) - 0.5 * dt, abs=1e-4)  # measured 1.5e-6
    assert np.abs(run.q[:, 2] - 0.05).max() < 1e-7  # measured 2e-13
    sliding = run.contacts
    assert sliding.normal_force[10].sum() == pytest.approx(2.0 * 9.81, rel=1e-6)  # measured 0
    assert sliding.friction[10].sum() == pytest.approx(0.3 * 2.0 * 9.81, rel=1e-6)  # measured 1e-11
    # the one program relaxes the cone: what slides is lifted
    lifted = la.simulate(model, x0, dt=dt, duration=0.05, method=la.MaximalEuler("qp"))
    assert lifted.q[:, 2].max() > 0.0505  # measured 0.0545


def test_a_stack_limits_and_dry_friction(qp):
    """Two boxes on each other, a hinge whose dry friction holds it, and a slider that meets its enforced stop."""
    m = la.Mechanism("all")
    for name in ("low", "high"):
        m.add_body(name, shape=la.Box((0.2, 0.2, 0.1)), mass=1.0)
        m.add_joint(f"{name}_root", "free", parent="world", child=name)
    m.add_ground(friction=0.6)
    m.add_contact("low", "high", friction=0.6)
    m.add_body("arm", mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01))
    m.add_joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), friction=2.0,
                parent_frame=la.pose((2.0, 0.0, 1.0)))  # fmt: skip
    m.add_body("sled", mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.add_joint("slider", "prismatic", parent="world", child="sled", axis=(0, 0, 1), limits=(-0.05, 0.05),
                parent_frame=la.pose((4.0, 0.0, 1.0)))  # fmt: skip
    m.enforce_limits()
    model = m.build()
    x0 = model.state(q={"low_root": [0, 0, 0.05, 1, 0, 0, 0], "high_root": [0.05, 0, 0.15, 1, 0, 0, 0]})
    run = la.simulate(model, x0, dt=0.01, duration=0.3, method=la.MaximalEuler())
    # m g c = 0.98 N m is less than the 2 N m of dry friction
    assert np.abs(run.q[-1, model.joint("hinge").q]).max() < 1e-9  # measured 4e-14
    assert run.q[:, model.joint("slider").q].min() == pytest.approx(-0.05, abs=1e-9)  # measured 3e-14
    for name in ("low_root", "high_root"):
        part = run.q[:, model.joint(name).q]
        assert np.abs(part - part[0]).max() < 1e-6  # measured 4e-9
    with pytest.raises(la.ModelError, match=r"'slider' starts at .*, beyond its enforced limit"):
        la.simulate(model, model.state(q={"slider": 0.1}), dt=0.01, duration=0.1, method=la.MaximalEuler())
    with pytest.raises(la.ModelError, match=r"contact of 'low' and 'high' is 0\.1 m deep"):
        la.simulate(model, model.state(), dt=0.01, duration=0.1, method=la.MaximalEuler())


def inequality(sign, bound, name):
    """sign (z - bound) >= 0 for the origin of 'thing'."""

    def jacobian(poses):
        out = np.zeros((1, 6))
        out[0, 3:] = sign * poses[0, 2, :3]
        return out

    return la.Constraint(
        "thing", lambda poses: np.array([sign * (poses[0, 2, 3] - bound)]), jacobian, kind="inequality", name=name
    )


def test_inequalities_of_the_user_and_a_contradiction(qp):
    m = la.Mechanism("thing")
    m.add_body("thing", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.add_joint("root", "free", parent="world", child="thing")
    m.add_constraint(inequality(1.0, -0.1, "floor"))
    run = la.simulate(m.build(), dt=0.01, duration=0.3, method=la.MaximalEuler())
    assert run.q[:, 2].min() == pytest.approx(-0.1, abs=1e-9)  # measured 1e-12
    # above 0.2 and below 0.1 at once: what is open must not open further, and closing it has a gain
    m.add_constraint(inequality(1.0, 0.2, "high"))
    m.add_constraint(inequality(-1.0, 0.1, "low"))
    with pytest.raises(la.ConvergenceError, match=r"Constraint '(high|low)' contradicts the others"):
        la.simulate(m.build(), m.build().state(q={"root": [0, 0, 0.15, 1, 0, 0, 0]}), dt=0.01, duration=0.1,
                    method=la.MaximalEuler(baumgarte=10.0))  # fmt: skip


def test_refusals_and_options():
    for arguments, words in (
        ({"friction": "none"}, "friction must be"),
        ({"baumgarte": -1.0}, "baumgarte must not be negative"),
        ({"iterations": 0}, "iterations must be"),
    ):
        with pytest.raises(la.ModelError, match=words):
            la.MaximalEuler(**arguments)
    method = la.MaximalEuler("qp", baumgarte=3.0)
    assert la.MaximalEuler(**method.options()).options() == method.options()
    # six coordinates are all that two poses can tell apart
    parts = [("spherical", {}), ("spherical", {"frame": la.pose((0.1, 0, 0))}), ("revolute", {})]
    m = la.Mechanism("many")
    m.add_body("b", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.add_joint("j", "composite", parent="world", child="b", parts=parts, armature=0.1)
    with pytest.raises(la.UnsupportedError, match="'j' has 7 coordinates"):
        la.simulate(m.build(), dt=0.01, duration=0.1, method=la.MaximalEuler())


def test_friction_of_a_bearing_is_that_of_its_load(qp):
    """A wheel on a shaft of eight points in each ring: the load W is spread as W cos / 4, so that they sum to 1.2 W."""
    m = la.Mechanism("wheel")
    m.add_body("wheel", mass=2.0, inertia=(0.01, 0.02, 0.01))
    mu, radius, dt, method = 0.2, 0.05, 0.01, la.MaximalEuler()
    bearing = la.Bearing(mu, radius, 0.1)
    m.add_joint("hinge", "revolute", parent="world", child="wheel", axis=(0, 1, 0), friction=bearing)
    model = m.build()
    run = la.simulate(model, model.state(v={"hinge": 10.0}), dt=dt, duration=1.0, method=method)
    slowing = -np.diff(run.v[:, 0]) / dt * 0.02 / (mu * 2.0 * 9.81 * radius)
    ring = np.abs(np.cos(np.arange(8) * np.pi / 4)).sum() / 4
    assert slowing[0] == pytest.approx(ring, rel=1e-6)  # measured 3e-8
    # between two points the sum is a little larger; then the wheel stands
    assert slowing[:50].max() < 1.0824 * ring + 1e-6  # measured 1.0824 ring, 1 / cos(pi / 8)
    assert np.abs(run.v[-5:]).max() < 1e-9  # measured 4e-32
    # a load makes the difference: the same wheel without weight turns on
    m.gravity = np.zeros(3)
    free = la.simulate(m.build(), model.state(v={"hinge": 10.0}), dt=dt, duration=0.1, method=method)
    assert free.v[-1, 0] == pytest.approx(10.0, abs=1e-9)  # measured 0


def test_bearings_in_a_loop_on_the_ground_and_what_they_refuse(qp):
    """A loop whose hinges rub loses energy faster than one without; a ball joint and a slider have bearings too."""
    model = la.models.four_bar().build()
    x0 = la.project(model, model.state(v=[6.0, 0.0, 0.0]))
    bearing, loop, ends = la.Bearing(0.5, 0.01, 0.02), model.loop_names[0], []
    # no friction, bearings in the tree, in the joint that closes the loop too; then a friction of fixed size there
    for rubbing, size in (((), 0.0), (model.joint_names, 0.0), ((*model.joint_names, loop), 0.0), ((), 0.05)):
        m = model.mechanism.copy()
        for name in rubbing:
            m.joints[name].friction = bearing
        if size:
            m.joints[loop].friction = np.array([size])
        rough = m.build()
        # a loop joint with friction of fixed size has coordinates, which follow from those of the tree
        start = rough.state({name: x0.q[model.joint(name).q] for name in model.joints},
                            {name: x0.v[model.joint(name).v] for name in model.joints})  # fmt: skip
        if size:
            start = la.project(rough, start)
        ends.append(la.simulate(rough, start, dt=0.002, duration=0.1, method=la.MaximalEuler()).energy.total[-1])
    assert ends[1] < ends[0] - 0.01  # measured 0.043 J
    assert ends[2] < ends[1] - 0.005  # measured 0.020 J
    assert ends[3] < ends[0] - 0.005  # measured 0.017 J
    m = la.Mechanism("two")
    m.add_body("slider", mass=1.0, inertia=(0.1, 0.1, 0.1))
    rail = la.Bearing(0.3, 0.02, 0.1)
    m.add_joint("rail", "prismatic", parent="world", child="slider", axis=(1, 0, 0), friction=rail)
    m.add_body("bob", mass=1.0, com=(0.0, 0.0, -0.2), inertia=(0.01, 0.01, 0.01))
    m.add_joint("ball", "spherical", parent="slider", child="bob", friction=la.Bearing(0.3, 0.02))
    model = m.build()
    x0 = model.state(v={"rail": 1.0, "ball": [0.0, 3.0, 1.0]})
    run = la.simulate(model, x0, dt=0.005, duration=0.3, method=la.MaximalEuler())
    assert (np.diff(run.energy.total) < 0).all()  # measured -5e-4 J
    assert run.energy.total[-1] < run.energy.total[0] - 0.1  # measured 0.56 J1
    # other methods refuse, the one program too
    with pytest.raises(la.UnsupportedError, match="has bearings, which rk4 cannot honour"):
        la.simulate(model, x0, dt=0.01, duration=0.1, method=la.RungeKutta(4))
    with pytest.raises(la.UnsupportedError, match="'rail' has a bearing, which needs"):
        la.simulate(model, x0, dt=0.01, duration=0.1, method=la.MaximalEuler("qp"))


def test_contact_without_the_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "piqp", None)
    model, x0 = body(la.Sphere(0.1), 0.5, q=[0, 0, 0.1, 1, 0, 0, 0])
    with pytest.raises(la.ModelError, match=r"need PIQP: pip install 'leastaction\[qp\]'"):
        la.simulate(model, x0, dt=0.01, duration=0.1, method=la.MaximalEuler())


@pytest.mark.parametrize(("length", "mass"), [(1e3, 1e3), (1e-3, 1e-3)])
def test_units_do_not_matter_to_rotors_and_loops(length: float, mass: float) -> None:
    def run(L: float, M: float) -> np.ndarray:
        m = la.Mechanism("units", gravity=(0.0, 0.0, -9.81 * L))
        for name in ("a", "b"):
            m.add_body(name, mass=M, com=(0.1 * L, 0.03 * L, 0.0), inertia=np.diag([0.02, 0.03, 0.04]) * M * L**2)
        m.add_joint("screw", "helical", parent="world", child="a", axis=(1, 0, 0), pitch=0.2 * L)
        m.add_joint(
            "cross", "universal", parent="a", child="b", axis=(1, 0, 0), axis2=(0.2, -2.0, 0.6),
            parent_frame=la.pose(xyz=(0.0, -0.1 * L, -0.1 * L)), armature=0.015 * M * L**2,
        )  # fmt: skip
        model = m.build()
        start = model.state(q={"screw": -0.2, "cross": (-0.1, 0.1)}, v={"screw": -1.4, "cross": (1.1, 0.4)})
        found = la.simulate(model, start, dt=0.005, duration=0.1, method="maximal-euler")
        return np.hstack([found.q, found.v])

    # measured: 3e-14; every coordinate is an angle
    assert np.abs(run(length, mass) - run(1.0, 1.0)).max() < 1e-11
