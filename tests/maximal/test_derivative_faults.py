"""The derivative of a Maximal step where it is refused, and where functions of the user or redundant rows take part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract


def change(model: la.Model, ends: list[la.State], length: float) -> np.ndarray:
    """Difference (2 nv,) of two states over a length, the first ahead."""
    return np.concatenate([difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / length


# --- functions of the user --------------------------------------------------------------------------------------------
def bead(mass: float = 1.0, turn: float = 0.02, watch: Callable[[], None] | None = None) -> la.Model:
    """A body on a slope, by a constraint, in a potential and under a force: each a function of the user."""
    slope = np.array([0.6, 0.0, 0.8])

    def value(p: np.ndarray) -> list[float]:
        if watch is not None:
            watch()
        return [slope @ p[0, :3, 3]]

    m = la.Mechanism("bead")
    m.add_body("bead", mass=mass, inertia=(turn, 0.03, 0.04))
    m.add_joint("root", "free", parent="world", child="bead")
    m.add_constraint(la.Constraint(("bead",), value, lambda p: [[0, 0, 0, *(p[0, :3, :3].T @ slope)]], name="slope"))
    m.add_force(
        la.Potential(
            ("bead",),
            lambda p: 3.0 * p[0, 0, 3] ** 2,
            lambda p: [[0, 0, 0, *(6.0 * p[0, 0, 3] * p[0, 0, :3])]],
        )
    )
    m.add_force(la.PointForce("bead", point=(0.1, 0.2, 0.0), force=lambda t: (1.0 + t, 0.5, 2.0)))
    return m.build()


def on_the_slope(model: la.Model) -> la.State:
    return la.project(model, model.state([0.3, 0.1, 0.2, 1, 0.1, 0.2, 0], [1.0, 2, 3, 0.5, 0.2, 0.1]))


def test_other_masses_and_inertias_need_no_other_model(monkeypatch):
    """A model that is built owns addresses of functions that the kernel calls, and a freed one would be a crash."""

    def build(mechanism: la.Mechanism) -> la.Model:
        raise AssertionError("built")

    model = bead()
    state = on_the_slope(model)
    monkeypatch.setattr(la.Mechanism, "build", build)
    C = la.linearize(model, la.Maximal(), state, None, 0.01, parameters=("mass", "inertia")).C
    assert np.isfinite(C["mass"]["bead"]).all()


def test_by_mass_and_inertia_with_functions_of_the_user():
    model, method, dt, e = bead(), la.Maximal(), 0.01, 1e-5
    state = on_the_slope(model)
    C = la.linearize(model, method, state, None, dt, parameters=("mass", "inertia")).C
    by_mass = change(model, [method.step(bead(mass=1.0 + s * e), state, dt) for s in (1, -1)], 2 * e)
    by_turn = change(model, [method.step(bead(turn=0.02 + s * 1e-3 * e), state, dt) for s in (1, -1)], 2e-3 * e)
    # measured 1.2e-8 and 4.5e-8, the error of the differences
    assert np.abs(C["mass"]["bead"] - by_mass).max() < 1e-6 * np.abs(by_mass).max()
    assert np.abs(C["inertia"]["bead"][:, 0, 0] - by_turn).max() < 1e-6 * np.abs(by_turn).max()


def test_an_error_of_a_function_is_raised_whichever_model_calls_it():
    left = [0]

    def watch() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise ValueError("enough")

    model = bead(watch=watch)
    state, spent = on_the_slope(model), []
    for parameters in ((), ("mass",)):
        left[0] = 0
        la.linearize(model, la.Maximal(), state, None, 0.01, parameters)
        spent.append(-left[0])
    # calls of the step by mass: by the model itself, and by those at its ends
    assert spent[1] > spent[0] + 20
    for call in range(spent[0] + 1, spent[1] + 1):
        left[0] = call
        with pytest.raises(ValueError, match="enough"):
            la.linearize(model, la.Maximal(), state, None, 0.01, ("mass",))


@pytest.mark.parametrize("inertia", [0.09, 0.0], ids=["rod", "point"])
def test_by_the_inertia_of_a_thin_rod_and_of_a_point(inertia):
    """Beside such an inertia lie some that no body has."""

    def arm(i: float) -> la.Model:
        m = la.Mechanism("arm")
        m.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(i, i, 0.0))
        m.add_joint("hinge", "universal", parent="world", child="rod", axis=(1, 0, 0), axis2=(0, 1, 0), armature=0.01)
        return m.build()

    model, method, e = arm(inertia), la.Maximal(), 1e-5
    state = model.state([0.3, 0.2], [1.0, 2.0])
    C = la.linearize(model, method, state, None, 0.01, "inertia").C["inertia"]["rod"]
    found = C[:, 0, 0] + C[:, 1, 1]
    ends = [method.step(arm(inertia + far), state, 0.01) for far in (e, 0.0)]
    if inertia:
        ends[1] = method.step(arm(inertia - e), state, 0.01)
    expected = change(model, ends, 2 * e if inertia else e)
    # measured 2.6e-8, and 3.8e-5: the point has one-sided differences
    assert np.abs(found - expected).max() < (1e-6 if inertia else 1e-3) * np.abs(expected).max()


# --- redundant rows ---------------------------------------------------------------------------------------------------
def flat_loop() -> la.Model:
    """A parallelogram below a base on a blade: three of the five rows of its loop are zero in every position."""
    m, y = la.Mechanism("skate"), (0, 1, 0)
    m.add_body("base", mass=3.0, shape=la.Box((0.6, 0.4, 0.1)))
    m.add_joint("root", "free", parent="world", child="base")
    for name in ("left", "right"):
        m.add_body(name, mass=0.3, com=(0, 0, -0.1), inertia=(0.002, 0.002, 0.001))
    m.add_body("bar", mass=0.4, com=(0.15, 0, 0), inertia=(0.001, 0.004, 0.004))
    down = la.pose(xyz=(0, 0, -0.2))
    m.add_joint("a", "revolute", parent="base", child="left", axis=y, parent_frame=la.pose(xyz=(-0.15, 0.3, 0)))
    m.add_joint("b", "revolute", parent="base", child="right", axis=y, parent_frame=la.pose(xyz=(0.15, 0.3, 0)))
    m.add_joint("c", "revolute", parent="left", child="bar", axis=y, parent_frame=down)
    m.add_joint(
        "d", "revolute", parent="right", child="bar", axis=y, parent_frame=down, child_frame=la.pose(xyz=(0.3, 0, 0))
    )
    m.add_constraint(
        la.Constraint(("base",), lambda p, v: [v[0, 4]], lambda p, v: [np.eye(6)[4]], kind="velocity", name="blade")
    )
    return m.build()


def test_a_velocity_constraint_beside_a_loop_with_rows_that_are_zero():
    model, method, dt, e = flat_loop(), la.Maximal(solver=la.Newton(1e-13)), 0.005, 1e-6
    n, turn = model.nv, np.array([1, 0.1, 0.05, 0]) / np.linalg.norm([1, 0.1, 0.05, 0])
    q = {"root": [0, 0, 0.45, *turn], "a": 0.2, "b": 0.2, "c": -0.2}
    state = la.project(model, model.state(q, {"root": [0.3, 0.5, 0, 0.6, 0.2, 0], "a": 1.0}))
    A = la.linearize(model, method, state, None, dt).A
    expected = np.zeros((2 * n, 2 * n))
    for j, step in enumerate(e * np.eye(2 * n)):
        moved = [model.state(retract(model, state.q, s * step[:n]), state.v + s * step[n:]) for s in (1, -1)]
        expected[:, j] = change(model, [method.step(model, la.project(model, each), dt) for each in moved], 2 * e)
    # measured 2.7e-8; 1.7 where rows were differences of gaps
    assert np.abs(A - expected).max() < 1e-6
    # nine coordinates less two of the loop, nine velocities less two and the blade
    assert np.linalg.matrix_rank(A, tol=1e-6) == 13


# --- refusals ---------------------------------------------------------------------------------------------------------
def block() -> la.Model:
    m = la.Mechanism("block")
    m.add_body("block", shape=la.Box((0.2, 0.3, 0.1)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="block")
    m.add_ground(friction=0.5)
    return m.build()


def refusal(model: la.Model, state: la.State) -> str:
    """The words with which a start is refused, the same by a derivative and by a run."""
    with pytest.raises(la.ModelError) as by_derivative:
        la.linearize(model, la.Maximal(), state, None, 0.01)
    with pytest.raises(la.ModelError) as by_run:
        la.simulate(model, state, dt=0.01, duration=0.01, method=la.Maximal())
    assert str(by_derivative.value) == str(by_run.value)
    return str(by_run.value)


def test_starts_that_a_run_refuses():
    model = block()
    deep = model.state([0, 0, -0.01, 1, 0, 0, 0])
    assert "'block' and the ground interpenetrate by 0.06 m" in refusal(model, deep)
    assert "q[2] is nan" in refusal(model, la.State(0.0, np.array([0, 0, np.nan, 1, 0, 0, 0]), np.zeros(6)))
    assert "v[1] is inf" in refusal(model, la.State(0.0, deep.q, np.array([0, np.inf, 0, 0, 0, 0])))
    # beyond a limit, and beyond an inequality
    m = la.models.pendulum()
    m.joints["hinge"].limits = np.array([[-0.5, 0.5]])
    m.enforce_limits()
    arm = m.build()
    assert "joint 'hinge' starts at 0.6, beyond its enforced limit 0.5" in refusal(arm, arm.state([0.6]))
    m = la.Mechanism("bead")
    m.add_body("bead", mass=1.0)
    m.add_joint("wire", "prismatic", parent="world", child="bead", axis=(0, 0, 1))
    floor = la.Constraint(("bead",), lambda p: [p[0, 2, 3]], lambda p: [[0, 0, 0, *p[0, 2, :3]]], kind="inequality")
    m.add_constraint(floor)
    bead_on_wire = m.build()
    assert "Constraint on bead: value -0.1 of row 0" in refusal(bead_on_wire, bead_on_wire.state([-0.1]))
    # open loops, and loops that open
    bars = la.models.four_bar().build()
    closed = la.project(bars, bars.state())
    assert "loop joint 'loop' is open by 0.143" in refusal(bars, bars.state([0.3, 0.1, -0.4]))
    assert "loop joint 'loop' is opening at" in refusal(bars, bars.state(closed.q, [1.0, 0, 0]))


def test_states_of_a_run_may_be_a_little_deep():
    """A disc that falls flat is in the ground a little; its steps have derivatives."""
    m = la.Mechanism("disc")
    m.add_body("disc", shape=la.Cylinder(0.15, 0.04), mass=1.0)
    m.add_joint("root", "free", parent="world", child="disc")
    m.add_ground(friction=0.5)
    model = m.build()
    deep = model.state([0, 0, 0.02 - 1e-3, 1, 0, 0, 0])
    run = la.simulate(model, deep, dt=0.01, duration=0.01, method=la.Maximal())
    assert "'disc' and the ground interpenetrate by 0.001 m" in run.report.notes[0]
    assert np.isfinite(la.linearize(model, la.Maximal(), deep, None, 0.01).A).all()


def test_a_body_that_turns_too_far_is_named():
    m = la.Mechanism("top")
    m.add_body("top", mass=1.0, inertia=(0.1, 0.2, 0.3))
    m.add_joint("root", "free", parent="world", child="top")
    top = m.build()
    with pytest.raises(la.ConvergenceError, match="body 'top' turns by 172 degrees in one step"):
        la.linearize(top, la.Maximal(), top.state(v=[300.0, 1, 0, 0, 0, 0]), None, 0.01)
    # a wheel with a heavy rotor: its step has a solution, beyond 90 degrees
    m = la.Mechanism("wheel")
    m.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.2))
    m.add_joint("axle", "revolute", parent="world", child="wheel", axis=(0, 0, 1), armature=1.0)
    wheel = m.build()
    with pytest.raises(la.ConvergenceError, match="body 'wheel' turns by 90 degrees or more in one step"):
        la.linearize(wheel, la.Maximal(), wheel.state(v=[16.0]), None, 0.1)


def test_an_arithmetic_error_of_a_function_is_not_taken_for_a_failed_step():
    m = la.models.pendulum()
    m.add_force(la.PointForce(m.joints["hinge"].child, (0, 0, 0), lambda t: (1.0 / 0.0, 0, 0)))
    model = m.build()
    with pytest.raises(ZeroDivisionError):
        la.linearize(model, la.Maximal(), model.state(), None, 0.01)
