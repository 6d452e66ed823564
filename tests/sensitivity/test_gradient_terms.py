"""Gradients of whole runs: terms of the first state with loops, springs beside servos, rows of Track, names."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def servo(stiffness: float) -> la.Model:
    """A pendulum with a spring and a servo on its hinge, each with a rest of its own."""
    m = la.Mechanism("servo")
    m.add_body("a", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
    m.add_joint("j", "revolute", parent="world", child="a", axis=(0, 1, 0), stiffness=stiffness, rest=0.4)
    m.add_actuator("s", "j", kp=5.0, kd=0.1, target=-0.3)
    return m.build()


@pytest.mark.parametrize("method", ["bdf:2", "galerkin:2", "galerkin:4", "lie-trapezoid"])
def test_stiffness_beside_a_servo(method):
    model, objective, controls = servo(3.0), la.Reach("a", (0.3, 0, -0.4), (0, 0, -1.0)), np.zeros((5, 1))
    state = model.state(q=[0.7], v=[0.2])
    found = la.gradient(model, method, state, controls, 0.01, objective, ["stiffness"])["stiffness"][0]

    def value(e: float) -> float:
        return la.gradient(servo(3.0 + e), method, state, controls, 0.01, objective, []).value

    # measured 3e-9 at most
    assert found == pytest.approx((value(1e-3) - value(-1e-3)) / 2e-3, rel=1e-7)


@pytest.mark.parametrize("method", ["bdf:1", "galerkin:2", "galerkin:4", "maximal"])
def test_a_term_of_the_first_state_is_that_after_project(method):
    model = la.models.four_bar().build()
    state = la.project(model, model.state(v={"crank_hinge": 2.0}), tolerance=1e-13)
    rng, controls = np.random.default_rng(0), np.zeros((3, model.nv))
    near = (state.q + 0.2 * rng.normal(size=(4, model.nq)), state.v + rng.normal(size=(4, model.nv)))
    objective = la.Track(*near)
    found = la.gradient(model, method, state, controls, 0.01, objective, ["q", "v"])

    def value(dq: np.ndarray, dv: np.ndarray) -> float:
        start = la.project(model, model.state(state.q + dq, state.v + dv), tolerance=1e-13)
        return la.gradient(model, method, start, controls, 0.01, objective, []).value

    still = np.zeros(model.nv)
    for k, unit in enumerate(1e-5 * np.eye(model.nv)):
        by_q = (value(unit, still) - value(-unit, still)) / 2e-5
        by_v = (value(still, unit) - value(still, -unit)) / 2e-5
        assert found["q"][k] == pytest.approx(by_q, abs=1e-7)  # measured 2e-9
        assert found["v"][k] == pytest.approx(by_v, abs=1e-7)  # measured 2e-9


def test_track_has_as_many_rows_as_the_run_has_states():
    model = la.models.double_pendulum().build()
    state, controls, rows = model.state(q=[0.3, 0.1]), np.zeros((10, 2)), np.zeros((101, 2))
    assert la.gradient(model, "bdf:2", state, controls, 0.01, la.Track(q=rows[:11]), []).value > 0
    for count in (10, 12, 101):
        objective = la.Effort() + la.Track(q=rows[:count])
        with pytest.raises(la.ModelError, match=rf"\({count} rows\), the run has 10 steps; give 11 rows"):
            la.gradient(model, "bdf:2", state, controls, 0.01, objective, [])
    with pytest.raises(la.ModelError, match=r"q and v must have as many rows as each other, got \[11, 12\]"):
        la.Track(rows[:11], rows[:12])
    with pytest.raises(la.ModelError, match=r"Track: v must be finite numbers \(steps \+ 1, n\), got shape \(2,\)"):
        la.Track(v=rows[0])


def test_penalty_contacts_of_one_name_are_not_mixed():
    m = la.Mechanism("p")
    m.add_body("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("j", "free", parent="world", child="b")
    for x in (0.1, -0.1):
        m.add_force(la.PenaltyContact("b", (x, 0, 0), stiffness=1e4, friction=0.2, sticking=1e4, name="foot"))
    model = m.build()
    with pytest.raises(la.UnsupportedError, match="several forces with friction are named 'foot'"):
        la.gradient(model, "bdf:2", model.state(), np.zeros((2, 6)), 0.01, la.Effort(), ["friction"])
