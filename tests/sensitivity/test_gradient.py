"""Gradients of whole runs: every parameter against central differences, checkpoints, other methods, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import retract
from leastaction.reference import samples as make

STEPS = 6
DT = 0.02


def robot() -> la.Mechanism:
    """A floating tree with springs, dampers and a spring between two of its bodies."""
    rng = np.random.default_rng(1)
    m = make.random_tree(["free", "revolute", "spherical", "prismatic", "universal"], rng, springs=True)
    point = 0.3 * rng.normal(size=(3, 3))
    m.add_force(la.PointSpring("b2", point[0], "b4", point[1], stiffness=8.0, damping=0.7, rest_length=0.2))
    m.add_force(la.PointForce("b1", point[2], rng.normal(size=3)))
    return m


def problem(m: la.Mechanism):
    """Model, first state, controls and an objective of everything."""
    model = m.build()
    rng = np.random.default_rng(2)
    state = model.state(*make.random_state(model, rng))
    controls = rng.normal(size=(STEPS, model.nv))
    rows = [make.random_state(model, rng) for _ in range(STEPS + 1)]
    near = np.array([retract(model, state.q, 0.2 * rng.normal(size=model.nv)) for _ in rows])
    objective = (
        la.Reach("b4", (0.1, 0.2, 0.3), (0.1, 0.0, 0.2), weight=3.0)
        + la.Effort(0.1)
        + la.Track(near, np.array([v for _, v in rows]), weight=0.5)
    )
    return model, state, controls, objective


def value(model, method, state, controls, objective, dt=DT):
    """The objective of a run."""
    run = la.simulate(model, state, dt=dt, duration=dt * len(controls), method=method, control=controls)
    states = [model.state(q, v, t) for t, q, v in zip(run.t, run.q, run.v, strict=True)]
    total = sum(objective.step(model, k, states[k], controls[k]).value for k in range(len(controls)))
    return total + objective.final(model, states[-1]).value


def slope(function, e=1e-5):
    """Central difference, of fourth order."""
    return (8 * (function(e) - function(-e)) - (function(2 * e) - function(-2 * e))) / (12 * e)


METHODS = {
    "bdf:1": la.BDF(1),
    "bdf:2": la.BDF(2),
    "sdirk2": la.SDIRK2(),
    "bdf:2 euler": la.BDF(2, chart="euler"),
}


@pytest.mark.parametrize(
    "name", [name if name == "bdf:2" else pytest.param(name, marks=pytest.mark.slow) for name in METHODS]
)
def test_gradients_by_state_and_controls(name):
    method = METHODS[name]
    model, state, controls, objective = problem(robot())
    found = la.gradient(model, method, state, controls, DT, objective)
    assert found.value == pytest.approx(value(model, method, state, controls, objective), rel=1e-13)
    rng = np.random.default_rng(3)
    for _ in range(3):
        a, b, c = rng.normal(size=model.nv), rng.normal(size=model.nv), rng.normal(size=controls.shape)
        by = {
            "q": (lambda e, a=a: model.state(retract(model, state.q, e * a), state.v), lambda e: controls),
            "v": (lambda e, b=b: model.state(state.q, state.v + e * b), lambda e: controls),
            "controls": (lambda e: state, lambda e, c=c: controls + e * c),
        }
        for what, direction in (("q", a), ("v", b), ("controls", c)):
            start, push = by[what]
            there = slope(lambda e, s=start, p=push: value(model, method, s(e), p(e), objective))
            here = float((found[what] * direction).sum())
            size = np.linalg.norm(found[what]) * np.linalg.norm(direction)
            assert abs(here - there) < 1e-8 * size, what  # measured 2e-9


def changed(what, name, e):
    """The robot with one parameter changed by e."""
    m = robot()
    if what == "mass":
        m.bodies[name].mass += e
    elif what == "inertia":
        m.bodies[name].inertia = m.bodies[name].inertia + e * SYMMETRIC
    elif what == "placement":
        frame = m.joints[name].parent_frame.copy()
        frame[:3, 3] += e * np.array([0.3, -0.5, 0.8])
        m.joints[name].parent_frame = frame
    else:
        joint = m.joints[name]
        setattr(joint, what, getattr(joint, what) + e * np.arange(1.0, joint.nv + 1))
    return m


SYMMETRIC = np.array([[1.0, 0.2, -0.3], [0.2, 0.8, 0.1], [-0.3, 0.1, 1.2]])


@pytest.mark.parametrize("name", ["bdf:2", pytest.param("bdf:1", marks=pytest.mark.slow)])
def test_gradients_by_parameters_of_the_mechanism(name):
    method, names = METHODS[name], ("mass", "inertia", "placement", "stiffness", "damping")
    model, state, controls, objective = problem(robot())
    found = la.gradient(model, method, state, controls, DT, objective, names)
    for what in names:
        for k in range(5):
            element = f"b{k}" if what in ("mass", "inertia") else f"j{k}"
            there = slope(
                lambda e, w=what, n=element: value(changed(w, n, e).build(), method, state, controls, objective), 1e-4
            )
            if what == "mass":
                here = found[what][element]
            elif what == "inertia":
                here = (found[what][element] * SYMMETRIC).sum()
            elif what == "placement":
                here = found[what][element] @ np.array([0.3, -0.5, 0.8])
            else:
                view = model.joint(element)
                here = found[what][view.v] @ np.arange(1.0, view.nv + 1)
            assert here == pytest.approx(there, rel=1e-6, abs=1e-8), (what, element)  # measured 1.5e-8


def test_checkpoints_do_not_change_the_gradient():
    model, state, controls, objective = problem(robot())
    names = ("q", "v", "controls", "mass")
    whole = la.gradient(model, la.BDF(2), state, controls, DT, objective, names)
    parts = la.gradient(model, la.BDF(2), state, controls, DT, objective, names, memory=0.0)
    for name in names[:3]:
        assert np.array_equal(whole[name], parts[name])
    assert whole["mass"] == pytest.approx(parts["mass"], rel=1e-12)


def test_the_gradient_is_exact_through_a_change_of_chart():
    model = la.models.chain(2, joint="spherical", length=0.5).build()
    state, controls = model.state(v=[0.5, 9.0, 0.3, 1.0, -3.0, 2.0]), np.zeros((30, 6))
    method, objective = la.BDF(2, chart="euler"), la.Reach("link2", (0.1, 0.2, 0.3), (0.0, 0.0, -0.5))
    run = la.simulate(model, state, dt=0.01, duration=0.3, method=method)
    first = la.simulate(model, state, dt=0.01, duration=0.01, method=method)
    assert (run.memory["chart"] != first.memory["chart"]).any()
    found = la.gradient(model, method, state, controls, 0.01, objective, ["v", "controls"])
    for k in range(6):
        e = np.eye(6)[k]
        there = slope(
            lambda h, e=e: value(model, method, model.state(state.q, state.v + h * e), controls, objective, 0.01)
        )
        assert found["v"][k] == pytest.approx(there, rel=1e-6, abs=1e-8)  # measured 2.3e-8


@pytest.mark.parametrize(
    "methods",
    [
        (la.Galerkin(2), la.RungeKutta(4), la.SemiImplicitEuler()),
        pytest.param((la.Maximal(), la.Galerkin(4)), marks=pytest.mark.slow),
    ],
    ids=["few", "more"],
)
def test_other_methods_go_back_through_their_steps(methods):
    model = la.models.chain(3).build()
    rng = np.random.default_rng(5)
    state, controls = model.state(rng.normal(size=3), rng.normal(size=3)), rng.normal(size=(8, 3))
    objective = la.Reach("link3", (0.1, 0.2, 0.3), weight=2.0) + la.Effort(0.01)
    near = la.gradient(model, la.BDF(2), state, controls, 0.001, objective)
    for method in methods:
        found = la.gradient(model, method, state, controls, 0.001, objective)
        direction = rng.normal(size=controls.shape)
        there = slope(lambda e, m=method, d=direction: value(model, m, state, controls + e * d, objective, 0.001), 1e-2)
        assert (found["controls"] * direction).sum() == pytest.approx(there, rel=1e-6)  # measured 3e-13
        # and all methods agree as the step goes to zero
        assert found["v"] == pytest.approx(near["v"], rel=0.05, abs=1e-4)  # measured 1.5e-4


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_an_arm_of_twenty_joints_and_four_thousand_controls(order):
    model = la.models.chain(20, length=0.1).without("contacts").build()
    rng, method, steps, dt = np.random.default_rng(0), la.BDF(order), 200, 0.005
    state = model.state(0.2 * rng.normal(size=20), 0.2 * rng.normal(size=20))
    controls = 0.3 * rng.normal(size=(steps, 20))
    objective = la.Reach("link20", (0.3, 0.4, -1.0), (0.0, 0.0, -0.1), weight=2.0) + la.Effort(1e-3)
    found = la.gradient(model, method, state, controls, dt, objective, ["controls"])["controls"]
    assert found.size == 4000

    def result(push):
        run = la.simulate(model, state, dt=dt, duration=steps * dt, method=method, control=push, save_every=steps)
        return objective.final(model, run.final).value + 0.5e-3 * (push**2).sum()

    # in directions that move all of them, and one by one
    for _ in range(10):
        direction = rng.normal(size=controls.shape)
        there = slope(lambda e, d=direction: result(controls + e * d), 1e-3)
        assert (found * direction).sum() == pytest.approx(there, rel=1e-6)  # measured 4e-8
    for k, j in zip(rng.integers(0, steps, 20), rng.integers(0, 20, 20), strict=True):
        one = np.zeros_like(controls)
        one[k, j] = 1.0
        there = slope(lambda e, d=one: result(controls + e * d), 1e-2)
        assert found[k, j] == pytest.approx(there, abs=1e-6 * np.abs(found).max())  # measured 1e-10


def test_friction_and_parameters_that_do_not_count():
    def sled(friction: float) -> la.Model:
        m = la.Mechanism("sled")
        m.add_body("sled", mass=2.0, inertia=(0.1, 0.1, 0.1))
        m.add_joint("plane", "planar", parent="world", child="sled", axis=(0, 1, 0))
        feet = [(-0.2, 0.0, 0.0), (0.2, 0.0, 0.0)]
        m.add_force(la.PenaltyContact("sled", feet, stiffness=1e3, damping=0.5, friction=friction, name="ground"))
        return m.build()

    model, method, controls = sled(0.3), la.BDF(2), np.zeros((20, 3))
    state = model.state(model.neutral(), [1.0, 0.0, 0.0])
    objective = la.Reach("sled", (2.0, 0.0, 0.0))
    found = la.gradient(model, method, state, controls, 0.01, objective, ["friction", "stiffness", "mass"])
    there = slope(lambda e: value(sled(0.3 + e), method, state, controls, objective, 0.01))
    assert abs(there) > 1e-4
    assert found["friction"]["ground"] == pytest.approx(there, rel=1e-6)  # measured 4e-11
    # an objective of nothing but the controls does not depend on the mechanism
    none = la.gradient(model, method, state, controls, 0.01, la.Effort(), ["mass", "placement", "friction", "q"])
    assert none["mass"] == {"sled": 0.0}
    assert not none["placement"]["plane"].any()
    assert none["friction"] == {"ground": 0.0}
    assert not none["q"].any()


def test_what_has_no_gradient_is_refused():
    model = la.models.pendulum().build()
    state, controls, objective = model.state(), np.zeros((3, 1)), la.Effort()
    for method in ("maximal-euler", "linearly-implicit-euler", "adaptive", "hermite-simpson"):
        with pytest.raises(la.UnsupportedError, match=f"{method}.* has no derivative"):
            la.gradient(model, method, state, controls, 0.01, objective)
    with pytest.raises(la.UnsupportedError, match="rk4 has no derivative by mass"):
        la.gradient(model, "rk4", state, controls, 0.01, objective, ["mass"])
    with pytest.raises(la.UnsupportedError, match="galerkin:2 has no derivative by friction"):
        la.gradient(model, "galerkin:2", state, controls, 0.01, objective, ["friction"])
    bad = {
        "there is no parameter 'colour'": (state, controls, 0.01, objective, ["colour"]),
        "controls must be": (state, np.zeros((3, 2)), 0.01, objective, ["q"]),
        "dt": (state, controls, -1.0, objective, ["q"]),
        "objective must be": (state, controls, 0.01, abs, ["q"]),
        "x0 must be": (None, controls, 0.01, objective, ["q"]),
        "2 steps in dt, 3 rows": (state, controls, [0.1, 0.1], objective, ["q"]),
        "expected 1 numbers": (state, controls, 0.01, la.Objective(final=lambda m, s: (0.0, [1.0, 2.0])), ["q"]),
    }
    for message, arguments in bad.items():
        with pytest.raises(la.ModelError, match=message):
            la.gradient(model, "bdf:1", *arguments)
