"""Tendons over joints inside every method: one motion, derivatives, limits and bounded servos."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.run.registry import method_by_name

METHODS = ("galerkin:2", "galerkin:4", "lie-trapezoid", "maximal", "bdf:2", "sdirk2")


def finger(limits=None, **servo):
    """Three phalanges on a hand that slides, and a cord over all of them."""
    m = la.Mechanism("finger")
    m.add_body("hand", shape=la.Box((0.1, 0.1, 0.1)), mass=1.0)
    m.add_joint("slide", "prismatic", parent="world", child="hand", axis=(1, 0, 0))
    above = "hand"
    for name in ("a", "b", "c"):
        m.add_body(name, shape=la.Capsule(0.02, 0.1), mass=0.2)
        m.add_joint(
            f"joint {name}", "revolute", parent=above, child=name, axis=(0, 1, 0.2),
            parent_frame=la.pose(xyz=(0, 0, -0.08), rpy=(0.1, 0.2, 0.3)), child_frame=la.pose(xyz=(0, 0, 0.08)),
        )  # fmt: skip
        above = name
    weights = {"joint a": 0.5, "joint b": 0.4, "joint c": -0.3, "slide": 1.0}
    m.add_tendon("cord", weights, stiffness=1.0, damping=0.01, rest=(-0.05, 0.05), limits=limits)
    if servo:
        m.add_actuator("servo", tendon="cord", **servo)
    return m


def start(model, seed=1):
    rng = np.random.default_rng(seed)
    return model.state(0.3 * rng.normal(size=4), rng.normal(size=4))


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_find_one_motion(method):
    # the band of the spring is left to one side, where its law is smooth
    model = finger(kp=0.3, kd=0.002, target=0.6).build()
    x0 = model.state({"joint a": 0.4, "joint b": 0.5}, start(model).v)
    exact = la.simulate(model, x0, dt=0.0005, duration=0.1, method="rk4").final
    # Newton's direction of the trapezoid rule has no forces between moving bodies; BDF damps what is fast
    part = 0.1 if method in ("lie-trapezoid", "bdf:2") else 1.0
    steps = (0.004 * part, 0.002 * part)
    ends = [la.simulate(model, x0, dt=dt, duration=0.1, method=method).final for dt in steps]
    errors = [np.abs(end.v - exact.v).max() for end in ends]
    # second order at least
    assert errors[1] < 5e-3
    assert errors[0] / errors[1] > 3.3 or errors[1] < 1e-7


@pytest.mark.parametrize("method", ["galerkin:2", "maximal", "sdirk2"])
def test_linearize_against_differences(method):
    model = finger(kp=0.3, kd=0.002, target=0.6).build()
    x0, control, h, dt, nv = start(model), np.array([0.3, -0.1, 0.2, 0.05]), 1e-5, 0.01, model.nv
    found = la.linearize(model, method_by_name(method), x0, control, dt)

    def end(q, v, tau):
        return la.simulate(model, model.state(q, v), dt=dt, duration=dt, method=method, control=tau[None]).final.v

    for j, step in enumerate(h * np.eye(nv)):
        by_q = (end(x0.q + step, x0.v, control) - end(x0.q - step, x0.v, control)) / (2 * h)
        by_v = (end(x0.q, x0.v + step, control) - end(x0.q, x0.v - step, control)) / (2 * h)
        by_control = (end(x0.q, x0.v, control + step) - end(x0.q, x0.v, control - step)) / (2 * h)
        np.testing.assert_allclose(found.A[nv:, j], by_q, atol=1e-5)
        np.testing.assert_allclose(found.A[nv:, nv + j], by_v, atol=1e-6)
        np.testing.assert_allclose(found.B[nv:, j], by_control, atol=1e-6)


@pytest.mark.parametrize("method", ["galerkin:4", "maximal"])
def test_energy_without_dampers(method):
    m = finger()
    m.tendons.clear()
    m.add_tendon("cord", {"joint a": 0.5, "joint b": 0.4}, stiffness=50.0, rest=0.1)
    model = m.build()
    run = la.simulate(model, start(model), dt=0.002, duration=1.0, method=method)
    assert np.ptp(run.energy.total) < 1e-2 * np.ptp(run.energy.kinetic)


def test_a_stiff_servo_needs_no_small_step():
    # explicit springs would blow up: the fastest mode has about 4000 rad/s
    model = finger(kp=1e4, kd=100.0, target=0.3).build()
    run = la.simulate(model, start(model), dt=0.01, duration=0.5, method="maximal")
    weights = np.array([1.0, 0.5, 0.4, -0.3])
    assert weights @ run.q[-1] == pytest.approx(0.3, abs=1e-3)


def test_gradient_by_inputs_against_differences():
    model, steps, dt = finger(kp=0.3, kd=0.002).build(), 5, 0.01
    x0, inputs = start(model), np.linspace(0.1, 0.3, 5)[:, None]
    objective = la.Objective(final=lambda model, state: (float(state.q @ state.q), 2 * state.q, None, None))
    found = la.gradient(model, la.Galerkin(2), x0, None, dt, objective, ("ctrl",), ctrl=inputs)

    def value(u):
        end = la.simulate(model, x0, dt=dt, duration=steps * dt, method=la.Galerkin(2), ctrl=u).final
        return float(end.q @ end.q)

    for k in range(steps):
        step = np.zeros((steps, 1))
        step[k] = 1e-4
        assert found["ctrl"][k, 0] == pytest.approx((value(inputs + step) - value(inputs - step)) / 2e-4, abs=1e-7)


def test_a_limit_stops_a_fall():
    # two weights on slides, and a cord whose limit they reach together
    m = la.Mechanism("weights")
    for name, mass in (("a", 1.0), ("b", 2.0)):
        m.add_body(name, shape=la.Sphere(0.05), mass=mass)
        m.add_joint(f"slide {name}", "prismatic", parent="world", child=name, axis=(0, 0, -1))
    m.add_tendon("cord", {"slide a": 1.0, "slide b": 3.0}, limits=(None, 0.4))
    free = m.build()
    m.enforce_limits()
    model = m.build()
    assert "enforced limits" in model.features
    run = la.simulate(model, dt=0.005, duration=0.5, method="maximal")
    length = run.q @ [1.0, 3.0]
    assert length.max() < 0.4 + 1e-6
    # after the cord is tight it takes away the momentum along (1, 3), and the rest goes on falling: weights of 1 and 2
    # along 3 and -1 fall by g (3 - 2)/(9 + 2) each
    a = 9.81 * (3.0 * 1.0 - 1.0 * 2.0) / (9.0 + 2.0) * np.array([3.0, -1.0])
    tight = run.t > 0.3
    found = np.gradient(run.v[tight], run.t[tight], axis=0)[2:-2]
    np.testing.assert_allclose(found, np.tile(a, (len(found), 1)), atol=1e-3)
    # without limits in force they fall on
    assert (la.simulate(free, dt=0.005, duration=0.5, method="maximal").q @ [1.0, 3.0])[-1] > 1.0
    with pytest.raises(la.ModelError, match="the limits of tendon 'cord'"):
        la.simulate(model, model.state({"slide a": 1.0}), dt=0.005, duration=0.1, method="maximal")


@pytest.mark.parametrize("target", [5.0, -5.0])
def test_a_bounded_servo_pulls_with_its_effort(target):
    m = la.Mechanism("pair", gravity=(0, 0, 0))
    for name in ("a", "b"):
        m.add_body(name, shape=la.Sphere(0.05), mass=1.0)
        m.add_joint(f"slide {name}", "prismatic", parent="world", child=name, axis=(0, 0, 1))
    m.add_tendon("cord", {"slide a": 0.5, "slide b": 0.5})
    m.add_actuator("servo", tendon="cord", kp=100.0, kd=20.0, effort=3.0)
    m.enforce_limits()
    model = m.build()
    assert "bounded servos" in model.features
    run = la.simulate(model, dt=0.01, duration=0.3, method="maximal", ctrl={"servo": target})
    # the effort alone, through weights of a half
    np.testing.assert_allclose(run.q[:, 0], np.sign(target) * 0.5 * 1.5 * run.t**2, atol=1e-9)
    np.testing.assert_allclose(run.v[:, 1], np.sign(target) * 1.5 * run.t, atol=1e-9)
    # within its effort it is a servo like any other
    near = la.simulate(model, dt=0.01, duration=3.0, method="maximal", ctrl={"servo": 0.02})
    free = m.copy()
    free.enforce_limits(False)
    same = la.simulate(free.build(), dt=0.01, duration=3.0, method="maximal", ctrl={"servo": 0.02})
    np.testing.assert_allclose(near.q, same.q, atol=1e-10)
    assert near.q[-1] @ [0.5, 0.5] == pytest.approx(0.02, abs=2e-3)


def test_a_bounded_servo_beside_a_motor_is_refused():
    m = finger(kp=5.0, effort=1.0)
    for name in m.tendons["cord"].joints:
        m.add_actuator(f"motor {name}", name)
    m.enforce_limits()
    with pytest.raises(la.UnsupportedError, match="actuator 'servo': other actuators drive every joint"):
        la.simulate(m.build(), dt=0.01, duration=0.1, method="maximal")
