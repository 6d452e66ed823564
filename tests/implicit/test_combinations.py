"""Implicit methods where several features meet: spline joints, loops, orders of a free joint, conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract

pytestmark = pytest.mark.slow

TIGHT = la.DenseNewton(1e-14)
INERTIA = (0.02, 0.026, 0.022)


def rail(closed_loop: bool) -> la.Model:
    """A carriage on a closed curve with an arm, whose end a ball joint may hold to the world."""
    rng = np.random.default_rng(3)
    frames = [la.pose(0.4 * rng.normal(size=3), rpy=0.5 * rng.normal(size=3)) for _ in range(6)]
    m = la.Mechanism("rail")
    for name, mass in (("a", 1.0), ("b", 1.0), ("c", 0.7)):
        m.add_body(name, mass=mass, inertia=INERTIA)
    m.add_joint("ja", "spline", parent="world", child="a", spline=la.SplineCurve(frames, closed=True))
    m.add_joint(
        "jb", "spherical", parent="a", child="b", parent_frame=la.pose((0.1, 0, 0)), child_frame=la.pose((0, 0.2, 0))
    )
    m.add_joint(
        "jc", "revolute", parent="b", child="c", axis=(0, 1, 0), parent_frame=la.pose((0.3, 0, 0)), stiffness=30.0
    )
    m.add_force(la.PointSpring("a", (0, 0, 0.1), "c", (0.1, 0, 0), stiffness=200.0, damping=1.0, rest_length=0.2))
    if closed_loop:
        tree, tip = m.build(), la.pose((0.2, 0.1, 0))
        place = la.poses(tree, tree.neutral())["c"] @ tip
        m.add_joint("loop", "spherical", parent="world", child="c", parent_frame=place, child_frame=tip)
    return m.build()


def floating() -> la.Model:
    """A four-bar whose base floats."""
    m = la.models.four_bar()
    out = la.Mechanism("floating", gravity=(0, 0, -1.0))
    out.add_body("base", mass=2.0, inertia=(0.1, 0.12, 0.14))
    out.add_joint("root", "free", parent="world", child="base")
    for body in m.bodies.values():
        out.add_body(body.name, mass=body.mass, com=body.com, inertia=body.inertia)
    for joint in m.joints.values():
        parent, child = (("base" if end == "world" else end) for end in (joint.parent, joint.child))
        frames = {"parent_frame": joint.parent_frame, "child_frame": joint.child_frame}
        out.add_joint(joint.name, joint.kind, parent=parent, child=child, axis=joint.axis, **frames)
    return out.build()


def worst_derivative(model: la.Model, state: la.State, method: la.Method, dt: float) -> float:
    """Error of the derivative of a step along states that keep the constraints, against central differences."""
    rng, n, e, errors = np.random.default_rng(1), model.nv, 1e-5, []
    A = la.linearize(model, method, state, np.zeros(n), dt).A
    for _ in range(3):
        w = rng.normal(size=2 * n)
        starts = [
            la.project(model, model.state(retract(model, state.q, s * w[:n]), state.v + s * w[n:]), tolerance=1e-14)
            for s in (e, -e)
        ]
        ends = [la.simulate(model, start, dt=dt, duration=dt, method=method).final for start in starts]
        given, found = (np.concatenate([difference(model, b.q, a.q), a.v - b.v]) / (2 * e) for a, b in (starts, ends))
        errors.append(np.abs(A @ given - found).max() / np.abs(found).max())
    return max(errors)


def test_a_loop_over_a_spline_joint():
    model = rail(True)
    state = la.project(model, model.state(v=np.random.default_rng(2).normal(size=model.nv)))
    for method in (la.BDF(1, solver=TIGHT), la.SDIRK2(solver=TIGHT)):
        assert worst_derivative(model, state, method, 0.01) < 1e-7
    run = la.simulate(model, state, dt=0.005, duration=0.5, method=la.BDF(2))
    assert run.constraint_error.max() < 1e-13
    # quadratic convergence: the matrix is exact
    assert run.report.counters["iterations"] < 3 * run.steps


def test_conjugate_gradients_on_a_spline_joint():
    model = rail(False)
    state = model.state(v=np.random.default_rng(2).normal(size=model.nv))
    ends = [
        la.simulate(model, state, dt=0.005, duration=0.1, method=la.LinearlyImplicitEuler(linear)).final
        for linear in ("direct", "cg")
    ]
    assert np.abs(ends[0].v - ends[1].v).max() < 1e-9


def test_a_floating_loop_in_both_orders_of_the_free_joint():
    model = floating()
    state = la.project(model, model.state(v=np.random.default_rng(2).normal(size=model.nv)))
    ends = []
    for free in ("TR", "RT"):
        method = la.BDF(2, free=free, solver=TIGHT)
        run = la.simulate(model, state, dt=0.001, duration=0.1, method=method)
        assert run.constraint_error.max() < 1e-12
        assert worst_derivative(model, state, la.SDIRK2(free=free, solver=TIGHT), 0.01) < 2e-6
        ends.append(run.final)
    assert np.abs(difference(model, ends[0].q, ends[1].q)).max() < 1e-5
