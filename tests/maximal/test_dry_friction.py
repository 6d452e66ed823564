"""Dry friction in joints under Maximal: stops and slides of closed forms, what sticks, and its derivative."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract


def slide(friction: float, stiffness: float = 0.0, gravity: tuple[float, ...] = (0.0, 0.0, 0.0), **joint) -> la.Model:
    """A block of 2 kg on a rail."""
    m = la.Mechanism("slide", gravity=gravity)
    m.add_body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint(
        "rail",
        "prismatic",
        parent="world",
        child="block",
        axis=(1, 0, 0),
        friction=friction,
        stiffness=stiffness,
        **joint,
    )
    return m.build()


def arm(friction: float | list[float], kind: str = "revolute") -> la.Mechanism:
    """A link of 1 kg about a hinge or a ball, 0.5 m away: 4.905 N m hold it sideways."""
    m = la.Mechanism("arm")
    m.add_body("link", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.12, 0.02))
    axis = {"axis": (0, 1, 0)} if kind == "revolute" else {}
    m.add_joint("joint", kind, parent="world", child="link", friction=friction, **axis)
    return m


def chain(n: int = 3) -> la.Mechanism:
    """A chain whose joints rub, some of them hardly, with a motor, a servo and limits."""
    m = la.Mechanism("chain")
    for k in range(n):
        m.add_body(f"link{k}", mass=1.0 - 0.2 * k, com=(0.15, 0.0, 0.0), inertia=(0.02, 0.03, 0.04))
        m.add_joint(
            f"joint{k}", "revolute", parent=f"link{k - 1}" if k else "world", child=f"link{k}",
            parent_frame=la.pose((0.3 if k else 0.0, 0.0, 0.0)), axis=((0, 1, 0), (0, 0, 1), (0, 1, 0))[k % 3],
            friction=(0.5, 0.2, 0.05)[k % 3], limits=(-2.5, 2.5),
        )  # fmt: skip
    m.add_actuator("servo", "joint1", kp=20.0, kd=1.0, effort=3.0)
    m.enforce_limits()
    return m


# --- closed forms -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [0.02, 0.01, 0.009, 0.005, 0.0025])
def test_a_spring_stops_where_its_closed_form_says_at_second_order(dt):
    """Each swing loses 2 f/k of its amplitude; it stops where the spring is weaker than friction, and stays there.

    How far off depends on where in a step it turns: the bound is of second order, the error is anything below.
    """
    k, f, x, turns = 100.0, 6.0, 1.0, 0
    while abs(x) > f / k:
        x, turns = -np.sign(x) * (abs(x) - 2.0 * f / k), turns + 1
    model, swing = slide(f, k), np.pi * np.sqrt(2.0 / k)
    run = la.simulate(model, model.state({"rail": 1.0}), dt=dt, duration=dt * round(5.0 / dt))
    assert abs(run.q[-1, 0] - x) < 4.0 * dt**2  # measured at most 3.1
    late = run.t > turns * swing + 0.2
    assert np.ptp(run.q[late, 0]) < 1e-9  # measured 4e-11
    assert np.abs(run.v[late, 0]).max() < 1e-9  # measured 2e-11
    # each swing by itself: what it turns at
    first = run.q[run.t < 1.5 * swing, 0].min()
    assert abs(first + 1.0 - 2.0 * f / k) < 5.0 * dt**2  # measured at most 4.7


@pytest.mark.parametrize("load", [0.5, -0.9, 0.99])
def test_what_is_loaded_below_its_friction_sticks(load):
    f = 3.0
    model = slide(f)
    run = la.simulate(model, model.state(), dt=0.002, duration=1.0, control=np.array([load * f]))
    assert run.method.name == "maximal"
    creep = abs(run.q[-1, 0]) / abs(load * f)
    assert creep < 1e-9  # measured 5e-12 to 4e-10 m/s per N
    assert run.report.counters["iterations"] < 1.2 * run.steps  # measured 1.02


@pytest.mark.parametrize("load", [1.05, -3.0])
def test_what_is_loaded_beyond_its_friction_slides(load):
    f = 3.0
    model = slide(f)
    run = la.simulate(model, model.state(), dt=0.002, duration=1.0, control=np.array([load * f]))
    a = np.sign(load) * (abs(load) - 1.0) * f / 2.0
    # of constant acceleration a step has the exact solution
    assert np.abs(run.q[:, 0] - 0.5 * a * run.t**2).max() < 1e-7  # measured 1.1e-9
    assert np.abs(run.v[:, 0] - a * run.t).max() < 1e-7  # measured 1.3e-9


def test_a_sliding_block_stops_and_stays():
    """From 1 m/s it stops after m v^2/(2 f), on an incline too steep to hold it never."""
    model = slide(4.0)
    for dt, bound in ((0.01, 1e-4), (0.005, 2.5e-5)):
        run = la.simulate(model, model.state(v={"rail": 1.0}), dt=dt, duration=1.0)
        assert abs(run.q[-1, 0] - 0.25) < bound  # measured 5e-12
        assert np.abs(run.v[run.t > 0.52]).max() < 1e-9  # measured 1e-22


def test_a_pendulum_with_friction_stays_where_gravity_is_weaker():
    """sin of the angle where it rests is at most f/(m g l); its energy falls by f times the way."""
    f = 0.8
    model = arm(f).build()
    run = la.simulate(model, model.state({"joint": 2.0}), dt=0.002, duration=8.0)
    assert abs(np.sin(run.q[-1, 0])) < f / 4.905
    assert np.abs(run.v[-1]).max() < 1e-9  # measured 4e-12
    way = np.abs(np.diff(run.q[:, 0])).sum()
    lost = run.energy.total[0] - run.energy.total[-1]
    assert lost == pytest.approx(f * way, rel=1e-3)  # measured 1.3e-7


def test_a_ball_rubs_about_each_of_its_axes():
    model = arm([0.5, 0.2, 0.1], "spherical").build()
    x0 = model.state(v={"joint": [1.0, 2.0, 6.0]})
    run = la.simulate(model, x0, dt=0.002, duration=6.0)
    assert (np.diff(run.energy.total) < 1e-9).all()
    assert np.abs(run.v[-1]).max() < 1e-9  # measured 5e-11
    # small friction, small change: power is -f . |v|
    early = run.t < 0.1
    power = -(np.abs(run.v[early]) @ np.array([0.5, 0.2, 0.1]))
    lost = run.energy.total[early][-1] - run.energy.total[0]
    assert lost == pytest.approx(np.trapezoid(power, run.t[early]), rel=1e-3)


@pytest.mark.parametrize("which", ["in the loop", "in the tree"])
def test_friction_in_a_closed_chain(which):
    """Energy falls by friction times the way of the joint that rubs, also where that joint closes the loop."""
    m, f = la.models.four_bar(), 0.05
    name = "loop" if which == "in the loop" else next(iter(m.joints))
    m.joints[name].friction = f
    model = m.build()
    x0 = la.project(model, model.state(v=np.ones(model.nv)))
    run = la.simulate(model, x0, dt=0.002, duration=1.0)
    way = np.abs(np.diff(run.q[:, model.joint(name).q][:, 0])).sum()
    assert run.energy.total[0] - run.energy.total[-1] == pytest.approx(f * way, rel=1e-3)  # measured
    assert run.constraint_error.max() < 1e-10  # measured


# --- beside everything else -------------------------------------------------------------------------------------------
def test_beside_servos_limits_and_each_other():
    model = chain().build()
    run = la.simulate(model, dt=0.002, duration=3.0)
    assert {"joint friction", "enforced limits", "bounded servos"} <= model.features
    assert run.report.failure is None
    assert np.abs(run.q).max() < 2.5 + 1e-9
    # the damper of the servo takes some more
    assert (np.diff(run.energy.total) < 1e-6).all()


def test_on_the_ground_and_in_many_environments():
    m = chain()
    m.bodies["link2"].shapes = (la.Sphere(0.05),)
    m.add_ground(friction=0.6, height=-0.3)
    model = m.build()
    states = [model.state({"joint0": 0.1 * k}) for k in range(3)]
    many = la.simulate_many(model, states, dt=0.005, duration=0.1)
    one = la.simulate(model, states[1], dt=0.005, duration=0.1)
    assert np.abs(many.q[1] - one.q).max() == 0.0


def test_a_run_goes_on_to_the_last_bit():
    model = chain().build()
    whole = la.simulate(model, dt=0.005, duration=0.4)
    half = la.resume(la.simulate(model, dt=0.005, duration=0.2), 0.2)
    assert (whole.q == half.q).all()


def test_what_cannot_have_it_says_so():
    model = slide(1.0)
    for method in (la.Maximal(linear="graph"), la.Maximal(4), la.Galerkin(4)):
        with pytest.raises(la.UnsupportedError, match="joint friction"):
            la.simulate(model, dt=0.01, duration=0.1, method=method)
    m = arm(0.0)
    m.joints["joint"].friction = la.Bearing(0.3, 0.02, 0.1)
    with pytest.raises(la.UnsupportedError, match="bearings"):
        la.simulate(m.build(), dt=0.01, duration=0.1, method=la.Maximal())
    assert la.simulate(m.build(), dt=0.01, duration=0.1).method.name == "maximal-euler"


# --- derivatives ------------------------------------------------------------------------------------------------------
def differences(model: la.Model, method: la.Maximal, state: la.State, tau: np.ndarray, dt: float) -> np.ndarray:
    """Central differences (2 nv, 3 nv) of the step by q, v and control."""
    n, columns, e = model.nv, [], 1e-6
    for j in range(3 * n):
        step, ends = np.zeros(n), []
        step[j % n] = e
        for sign in (1.0, -1.0):
            q = retract(model, state.q, sign * step) if j < n else state.q
            v = state.v + sign * step if n <= j < 2 * n else state.v
            ends.append(method.step(model, model.state(q, v), dt, tau + sign * step if j >= 2 * n else tau))
        columns.append(np.concatenate([difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / (2 * e))
    return np.array(columns).T


CASES = {
    "slides": (lambda: arm(0.5).build(), [0.7], [3.0], [0.0]),
    "sticks": (lambda: arm(6.0).build(), [0.7], [0.0], [0.3]),
    "stops": (lambda: slide(3.0), [0.1], [0.006], [0.3]),
    "ball": (lambda: arm([0.5, 3.0, 0.1], "spherical").build(), [1.0, 0.0, 0.0, 0.0], [4.0, 0.0, 2.0], [0.1, 0.2, 0.0]),
    "chain": (lambda: chain().build(), [0.3, 0.2, -0.4], [0.0, 0.0, 1.0], [0.9, 0.1, 0.0]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_derivative_is_that_of_differences(case):
    make, q, v, tau = CASES[case]
    model, method, dt = make(), la.Maximal(), 0.01
    state, tau = model.state(q, v), np.array(tau)
    found = la.linearize(model, method, state, tau, dt)
    ahead = method.step(model, state, dt, tau)
    assert np.abs(found.state.q - ahead.q).max() < 1e-9
    expected = differences(model, method, state, tau, dt)
    error = np.abs(np.hstack([found.A, found.B]) - expected).max() / np.abs(expected).max()
    assert error < 1e-6  # measured at most 8e-9


@pytest.mark.parametrize("case", ["slides", "sticks", "chain"])
def test_the_derivative_by_friction(case):
    make, q, v, tau = CASES[case]
    model, method, dt, e = make(), la.Maximal(), 0.01, 1e-5
    by = la.linearize(model, method, model.state(q, v), np.array(tau), dt, parameters=("friction",)).C["friction"]
    assert set(by) == set(model.joints)
    for name in model.joints:
        ends = []
        for sign in (1.0, -1.0):
            m = model.mechanism.copy()
            m.joints[name].friction = m.joints[name].friction + sign * e
            ends.append(method.step(m.build(), model.state(q, v), dt, np.array(tau)))
        expected = np.concatenate([ends[0].q - ends[1].q, ends[0].v - ends[1].v]) / (2 * e)
        assert by[name].shape == (2 * model.nv, 1)
        assert np.abs(by[name][:, 0] - expected).max() < 1e-6 * (1e-3 + np.abs(expected).max())


def test_the_gradient_of_a_run_that_slides_and_sticks():
    """A block is pushed by P for a time T, slides on and stops at x = P (P - f) T^2/(2 m f)."""
    model, steps, dt, P, f, T, mass = slide(4.0), 80, 0.01, 10.0, 4.0, 0.2, 2.0
    controls = np.zeros((steps, 1))
    controls[:20] = P

    def place(model: la.Model, x: la.State) -> tuple[float, np.ndarray, np.ndarray]:
        return float(x.q[0]), np.ones(1), np.zeros(1)

    objective = la.Objective(final=place)
    found = la.gradient(model, la.Maximal(), model.state(), controls, dt, objective, ("controls", "friction", "q"))
    assert found.value == pytest.approx(P * (P - f) * T**2 / (2 * mass * f), abs=1e-4)  # measured
    by_push, by_friction = T**2 * (2 * P - f) / (2 * mass * f), -(P**2) * T**2 / (2 * mass * f**2)
    assert found["q"] == pytest.approx([1.0], abs=1e-6)
    assert found["controls"][:20].sum() == pytest.approx(by_push, rel=0.01)  # measured
    assert found["friction"]["rail"] == pytest.approx([by_friction], rel=0.01)  # measured
    # what is pushed while it sticks does not move
    assert np.abs(found["controls"][60:]).max() < 1e-6  # measured
