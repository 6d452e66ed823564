"""Inputs of actuators and controls by joint: every form is the same motion as forces in an array."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.actuation import slopes_of_inputs

STEPS, DT = 20, 0.01


def robot() -> la.Mechanism:
    m = la.Mechanism("robot", gravity=(0.0, 0.0, 0.0))
    for name, parent in (("upper", "world"), ("lower", "upper")):
        m.add_body(name, mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        frame = la.pose(xyz=(0.0 if parent == "world" else 1.0, 0, 0))
        m.add_joint(f"to {name}", "revolute", parent=parent, child=name, parent_frame=frame)
    m.add_actuator("servo", "to upper", kp=10.0, kd=1.0)
    m.add_actuator("motor", "to lower", gear=2.0, effort=1.5)
    return m


MODEL = robot().build()
TARGETS = np.linspace(0.0, 1.0, STEPS)
BOTH = np.stack([TARGETS, np.full(STEPS, 0.7)], axis=1)


def end(**asked):
    return la.simulate(MODEL, dt=DT, duration=STEPS * DT, method="galerkin:2", **asked).final


@pytest.mark.parametrize(
    ("asked", "forces"),
    [
        ({"ctrl": BOTH}, MODEL.actuate(BOTH)),
        ({"ctrl": {"servo": TARGETS}}, MODEL.actuate({"servo": TARGETS})),
        ({"ctrl": {"servo": TARGETS, "motor": 0.7}}, MODEL.actuate(BOTH)),
        ({"ctrl": [0.3, 0.7]}, np.tile(MODEL.actuate([0.3, 0.7]), (STEPS, 1))),
        ({"ctrl": lambda t, state: [0.3, 0.7]}, np.tile(MODEL.actuate([0.3, 0.7]), (STEPS, 1))),
        ({"ctrl": lambda t, state: {"motor": 0.7}}, np.tile(MODEL.actuate({"motor": 0.7}), (STEPS, 1))),
        ({"control": [0.3, 0.7]}, np.tile([0.3, 0.7], (STEPS, 1))),
        ({"control": {"to lower": 0.7}}, np.tile([0.0, 0.7], (STEPS, 1))),
        ({"control": {"to lower": TARGETS, "to upper": 0.1}}, np.stack([np.full(STEPS, 0.1), TARGETS], axis=1)),
    ],
)
def test_forms(asked, forces):
    expected = end(control=np.asarray(forces))
    found = end(**asked)
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.v, expected.v)


def test_resume_and_files(tmp_path):
    half = la.simulate(MODEL, dt=DT, duration=0.1, method="galerkin:2", ctrl=BOTH[:10])
    half.save(tmp_path / "half.npz")
    whole = la.resume(tmp_path / "half.npz", 0.1, ctrl=BOTH[10:])
    np.testing.assert_array_equal(whole.final.q, end(ctrl=BOTH).q)


def test_many():
    states = [MODEL.state(q=[0.1 * e, 0.0]) for e in range(3)]
    inputs = np.stack([BOTH * (1 + e) for e in range(3)])
    many = la.simulate_many(MODEL, states, dt=DT, duration=STEPS * DT, method="galerkin:2", ctrl=inputs)
    for e, state in enumerate(states):
        one = la.simulate(MODEL, state, dt=DT, duration=STEPS * DT, method="galerkin:2", ctrl=inputs[e])
        np.testing.assert_allclose(many.q[e, -1], one.q[-1], rtol=0, atol=1e-13)  # measured 2e-16


def test_gradient_by_inputs():
    objective = la.Reach("lower", (0.5, 1.0, 0.0), (1.0, 0.0, 0.0))
    found = la.gradient(MODEL, "bdf:2", MODEL.state(), None, DT, objective, ("q", "ctrl"), ctrl=BOTH)
    assert set(found.by) == {"q", "ctrl"}
    assert found["ctrl"].shape == BOTH.shape
    h = 1e-6
    for k, u in ((0, 0), (3, 1), (18, 0)):
        ends = []
        for sign in (1, -1):
            moved = BOTH.copy()
            moved[k, u] += sign * h
            ends.append(la.gradient(MODEL, "bdf:2", MODEL.state(), None, DT, objective, "q", ctrl=moved).value)
        # measured 4e-9 of it
        assert found["ctrl"][k, u] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-6, abs=1e-9)
    with pytest.raises(la.ModelError, match="controls or ctrl=, not both"):
        la.gradient(MODEL, "bdf:2", MODEL.state(), MODEL.actuate(BOTH), DT, objective, ctrl=BOTH)
    with pytest.raises(la.ModelError, match="where ctrl= is given"):
        la.gradient(MODEL, "bdf:2", MODEL.state(), MODEL.actuate(BOTH), DT, objective, "ctrl")


def test_slopes_are_zero_beyond_bounds():
    m = robot()
    m.enforce_limits()
    m.actuators["servo"].input_range = (-1.0, 0.5)
    slopes = slopes_of_inputs(m.build(), np.array([[0.2, 1.0], [0.7, -1.6]]))
    np.testing.assert_array_equal(slopes, [[[10.0, 0.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"ctrl": [1.0], "control": [1.0, 2.0]}, "give control= or ctrl=, not both"),
        ({"ctrl": [1.0]}, "expected 2 in each row"),
        ({"ctrl": {"nobody": 1.0}}, "there is no actuator 'nobody'"),
        ({"ctrl": np.zeros((3, 2))}, "ctrl has 3 rows for 20 steps"),
        ({"ctrl": {"servo": (1.0, 2.0)}}, "give each actuator one number, or one for each step"),
        ({"ctrl": [1.0, np.nan]}, "inputs"),
        ({"ctrl": lambda t, state: None}, "the function returned None"),
        ({"control": {"servo": 1.0}}, "'servo' is an actuator: give its input to ctrl="),
        ({"control": {"to lower": [1.0, 2.0], "to upper": [1.0, 2.0, 3.0]}}, "different numbers of steps"),
        ({"control": {"to lower": [[1.0, 2.0]]}}, "has 1 velocity coordinates"),
    ],
)
def test_bad_input(asked, words):
    with pytest.raises(la.ModelError, match=words):
        end(**asked)
