"""Gradients by parameters of the mechanism: variational methods, bodies fixed to a floating one, hard contact."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.reference import samples as make

DT, STEPS = 0.02, 3
SYMMETRIC = np.array([[1.0, 0.2, -0.3], [0.2, 0.8, 0.1], [-0.3, 0.1, 1.2]])
PUSH = np.array([0.3, -0.5, 0.8])


def robot(*, forces: bool = False, fixed: bool = False) -> la.Mechanism:
    """A floating tree with springs and dampers; with forces between bodies, or with bodies fixed to others."""
    rng = np.random.default_rng(1)
    m = make.random_tree(["free", "revolute", "spherical", "universal"], rng, springs=True)
    if forces:
        m.add_force(la.PointSpring("b1", (0.1, 0, 0), "b3", (0, 0.2, 0), stiffness=8.0, damping=0.7, rest_length=0.2))
    if fixed:
        for name, parent in (("x", "b0"), ("y", "b0"), ("z", "b2")):
            m.add_body(name, mass=0.7, com=0.2 * rng.normal(size=3), inertia=(0.02, 0.03, 0.025))
            frame = la.pose(xyz=0.3 * rng.normal(size=3), rpy=rng.normal(size=3))
            m.add_joint(f"to {name}", "fixed", parent=parent, child=name, parent_frame=frame)
        # the translation of the free joint without springs and dampers
        root = m.joints["j0"]
        root.stiffness, root.damping = np.array([1.0, 2.0, 3.0, 0, 0, 0]), np.array([0.1, 0.2, 0.3, 0, 0, 0])
    return m


def changed(m: la.Mechanism, what: str, name: str, e: float) -> la.Model:
    """One parameter changed by e."""
    if what == "mass":
        m.bodies[name].mass += e
    elif what == "inertia":
        m.bodies[name].inertia = m.bodies[name].inertia + e * SYMMETRIC
    elif what == "placement":
        frame = m.joints[name].parent_frame.copy()
        frame[:3, 3] += e * PUSH
        m.joints[name].parent_frame = frame
    else:
        joint = m.joints[name]
        setattr(joint, what, getattr(joint, what) + e * np.arange(1.0, joint.nv + 1))
    return m.build()


def along(found: la.Gradient, model: la.Model, what: str, name: str) -> float:
    """The derivative in the direction of ``changed``."""
    if what == "mass":
        return float(found["mass"][name])
    if what == "inertia":
        return float((found["inertia"][name] * SYMMETRIC).sum())
    if what == "placement":
        return float(found["placement"][name] @ PUSH)
    view = model.joint(name)
    return float(found[what][view.v] @ np.arange(1.0, view.nv + 1))


def check(method: la.Method, names: tuple[str, ...], more: tuple[str, ...] = (), **options: bool) -> None:
    """Every parameter against central differences of fourth order."""
    model, rng = robot(**options).build(), np.random.default_rng(2)
    state, controls = model.state(*make.random_state(model, rng)), rng.normal(size=(STEPS, model.nv))
    rows = np.array([state.q] * (STEPS + 1))
    objective = la.Reach("b3", (0.1, 0.2, 0.3), (0.1, 0.0, 0.2), weight=3.0) + la.Track(
        rows, rng.normal(size=(4, model.nv))
    )

    def value(other: la.Model) -> float:
        run = la.simulate(other, state, dt=DT, duration=DT * STEPS, method=method, control=controls)
        states = [other.state(q, v, t) for t, q, v in zip(run.t, run.q, run.v, strict=True)]
        total = sum(objective.step(other, k, states[k], controls[k]).value for k in range(STEPS))
        return float(total + objective.final(other, states[-1]).value)

    found, e = la.gradient(model, method, state, controls, DT, objective, names), 1e-4
    for what in names:
        bodies = what in ("mass", "inertia")
        for name in [f"{'b' if bodies else 'j'}{k}" for k in range(4)] + (list(more) if bodies else []):
            ends = [value(changed(robot(**options), what, name, s * e)) for s in (1, -1, 2, -2)]
            there = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * e)
            here = along(found, model, what, name)
            assert here == pytest.approx(there, rel=1e-5, abs=1e-8), (what, name)  # measured 3e-7


ALL = ("mass", "inertia", "placement", "stiffness", "damping")


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", [la.LieTrapezoid(la.Newton(1e-14)), la.Galerkin(2, solver=la.Newton(1e-14)), la.Galerkin(4)], ids=repr
)
def test_variational_methods(method):
    check(method, ALL)
    if method.order == 2:
        check(method, ("mass", "inertia", "stiffness", "damping"), forces=True)


def test_bodies_fixed_to_a_floating_one():
    check(la.BDF(2), ("mass", "inertia"), ("x", "y", "z"), fixed=True)


@pytest.mark.slow
def test_loops_under_galerkin():
    def linkage(e: float) -> la.Model:
        m = la.models.four_bar()
        m.bodies["coupler"].mass += e
        return m.build()

    model, method, controls = linkage(0.0), la.Galerkin(2, solver=la.Newton(1e-14)), np.zeros((4, 3))
    state = la.project(model, model.state(v=[3.0, 0.0, 0.0]), tolerance=1e-14)
    objective = la.Reach("coupler", (0.1, 0.2, 0.3))
    found = la.gradient(model, method, state, controls, DT, objective, ["mass"])

    def value(e: float) -> float:
        other = linkage(e)
        run = la.simulate(other, state, dt=DT, duration=4 * DT, method=method)
        return objective.final(other, run.final).value

    there = (8 * (value(1e-3) - value(-1e-3)) - (value(2e-3) - value(-2e-3))) / 12e-3
    assert found["mass"]["coupler"] == pytest.approx(there, rel=1e-7)  # measured 3e-10
    with pytest.raises(la.UnsupportedError, match=r"no derivative by placement with .* loops"):
        la.gradient(model, method, state, controls, DT, objective, ["placement"])


@pytest.mark.slow
def test_hard_contact_under_maximal():
    def sled(mass: float, friction: float) -> la.Model:
        m = la.Mechanism("sled")
        m.add_body("sled", shape=la.Box((0.4, 0.3, 0.2)), mass=mass)
        m.add_joint("root", "free", parent="world", child="sled")
        m.add_ground(friction=friction)
        return m.build()

    model, method, controls = sled(2.0, 0.3), la.Maximal(), np.zeros((10, 6))
    controls[:, 3] = 9.0
    state = model.state([0, 0, 0.1, 1, 0, 0, 0], [0, 0, 0, 1.0, 0, 0])
    objective = la.Reach("sled", (1.0, 0.0, 0.1))
    found = la.gradient(model, method, state, controls, 0.01, objective, ["mass", "friction", "inertia"])

    def value(mass: float, friction: float) -> float:
        other = sled(mass, friction)
        run = la.simulate(other, state, dt=0.01, duration=0.1, method=method, control=controls)
        return objective.final(other, run.final).value

    by_mass = (value(2.001, 0.3) - value(1.999, 0.3)) / 0.002
    by_friction = (value(2.0, 0.301) - value(2.0, 0.299)) / 0.002
    assert found["mass"]["sled"] == pytest.approx(by_mass, rel=1e-5)  # measured 2e-7
    assert sum(found["friction"].values()) == pytest.approx(by_friction, rel=1e-6)  # measured 2e-9


@pytest.mark.slow
def test_an_objective_that_depends_on_nothing_has_the_gradient_zero():
    model = la.models.pendulum().build()
    state, controls = model.state([0.3]), np.zeros((2, 1))
    found = la.gradient(model, "lie-trapezoid", state, controls, 0.01, la.Effort(), ALL)
    assert set(found.by) == set(ALL)
    assert not any(np.any(value) for name in ALL[:3] for value in found[name].values())
    assert not found["stiffness"].any()
    assert not found["damping"].any()


def test_refusals():
    model = robot(fixed=True).build()
    state, controls, objective = model.state(), np.zeros((2, model.nv)), la.Effort()
    with pytest.raises(
        la.UnsupportedError, match="lie-trapezoid: several bodies are fixed to the body of the free joint 'j0'"
    ):
        la.gradient(model, "lie-trapezoid", state, controls, 0.01, objective, ["mass"])
    m = robot(fixed=True)
    m.joints["j0"].damping = np.ones(6)
    with pytest.raises(la.UnsupportedError, match="with loops, or with a spring or damper"):
        la.gradient(m.build(), "bdf:1", state, controls, 0.01, objective, ["mass"])
    model = robot(forces=True).build()
    with pytest.raises(la.UnsupportedError, match="no derivative by placement with forces on bodies"):
        la.gradient(model, "lie-trapezoid", model.state(), np.zeros((2, model.nv)), 0.01, objective, ["placement"])
