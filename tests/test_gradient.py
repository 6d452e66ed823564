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


@pytest.mark.parametrize("name", METHODS)
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
            assert abs(here - there) < 1e-7 * size, what  # measured


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
            assert here == pytest.approx(there, rel=1e-6, abs=1e-8), (what, element)  # measured


def test_checkpoints_do_not_change_the_gradient():
    model, state, controls, objective = problem(robot())
    names = ("q", "v", "controls", "mass")
    whole = la.gradient(model, la.BDF(2), state, controls, DT, objective, names)
    parts = la.gradient(model, la.BDF(2), state, controls, DT, objective, names, memory=0.0)
    for name in names[:3]:
        assert np.array_equal(whole[name], parts[name])
    assert whole["mass"] == pytest.approx(parts["mass"], rel=1e-12)
