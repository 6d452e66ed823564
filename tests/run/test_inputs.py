"""What a user may type wrong: every mistake is a ModelError that names it, before anything is computed."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import quantities
from leastaction.run.simulate import count_steps


@functools.cache
def pendulum():
    return la.models.double_pendulum().build()


@pytest.mark.parametrize("t", ["a", None, np.nan, [1.0, 2.0], True])
def test_bad_times(t):
    for call in (
        # the time of a state may be left to a key frame
        lambda: pendulum().state(t="a" if t is None else t),
        lambda: la.forward_dynamics(pendulum(), None, None, t=t),
        lambda: la.inverse_dynamics(pendulum(), None, None, None, t=t),
        lambda: la.inverse_dynamics_derivatives(pendulum(), None, None, None, t=t),
        lambda: la.forward_dynamics_derivatives(pendulum(), None, None, t=t),
        lambda: quantities.loop_forces(pendulum(), None, None, t=t),
    ):
        with pytest.raises(la.ModelError, match="time"):
            call()


def test_times_of_rows():
    """Forces that depend on time take one time for each row."""
    m = la.models.double_pendulum()
    m.add_force(la.PointForce("bob2", (0, 0, 0), lambda t: (t, 0, 0)))
    model, q = m.build(), np.full((3, 2), 0.2)
    many = la.forward_dynamics(model, q, np.zeros((3, 2)), t=[0.0, 1.0, 2.0])
    for row, t in enumerate((0.0, 1.0, 2.0)):
        assert np.array_equal(many[row], la.forward_dynamics(model, q[0], None, t=t))
    with pytest.raises(la.ModelError, match=r"time has shape \(2,\)"):
        la.forward_dynamics(model, q, np.zeros((3, 2)), t=[0.0, 1.0])


@pytest.mark.parametrize("point", ["abc", [1.0, 2.0], [1.0, np.nan, 0.0], None, [[1], [2, 3]]])
def test_bad_points(point):
    with pytest.raises(la.ModelError, match="jacobian of 'bob1': point"):
        la.jacobian(pendulum(), None, "bob1", point)


@pytest.mark.parametrize("bad", ["abc", [["a", "b"]], [[1.0], [2.0, 3.0]], 3.0, object(), [None, 1.0], {"hinge1": "x"}])
def test_bad_arrays(bad):
    model = pendulum()
    for call in (
        lambda: la.mass_matrix(model, bad),
        lambda: la.energy(model, bad),
        lambda: la.bias_forces(model, None, bad),
        lambda: la.inverse_dynamics(model, None, None, bad),
        lambda: la.forward_dynamics(model, None, None, bad),
        lambda: model.state(bad),
        lambda: model.state(v=bad),
        lambda: quantities.wrench_forces(model, None, {"bob1": bad}),
    ):
        with pytest.raises(la.ModelError):
            call()


def test_names_in_the_messages():
    with pytest.raises(la.ModelError, match="joint 'hinge1': expected 1 finite numbers"):
        pendulum().state(v={"hinge1": "x"})
    with pytest.raises(la.ModelError, match="wrench on 'bob1'"):
        quantities.wrench_forces(pendulum(), None, {"bob1": [1.0, 2.0]})


@pytest.mark.parametrize("x0", [[0.1, 0.2], {"hinge1": 0.1}, "neutral", 3])
def test_first_state_that_is_none(x0):
    with pytest.raises(la.ModelError, match=r"simulate: x0 must be a state, from model\.state"):
        la.simulate(pendulum(), x0, dt=0.01, duration=0.1)


@pytest.mark.parametrize(("duration", "dt"), [(1e50, 1e-300), (1e50, 1e-3), (1e20, 1.0)])
def test_too_many_steps(duration, dt):
    with pytest.raises(la.ModelError, match=r"duration .* has too many steps"):
        count_steps(duration, dt)
    with pytest.raises(la.ModelError, match=r"duration .* has too many steps"):
        la.simulate(pendulum(), dt=dt, duration=duration)


# --- forces that are functions of time ----------------------------------------------------------------------------
def with_force(force):
    m = la.models.double_pendulum()
    m.add_force(force)
    return m.build()


@pytest.mark.parametrize("result", [None, 1.0, (1.0, 2.0), "abc", (None, 0.0, 0.0), [[1.0, 2.0, 3.0]], (True, 0, 0, 0)])
def test_force_that_returns_something_else(result):
    model = with_force(la.PointForce("bob1", (0, 0, 0), lambda t: result, name="push"))
    for call in (
        lambda: la.simulate(model, dt=0.01, duration=0.1),
        lambda: la.forward_dynamics(model, None, None),
        lambda: la.inverse_dynamics(model, None, None, None),
    ):
        with pytest.raises(la.ModelError, match=r"PointForce 'push' at t = 0.*must return"):
            call()


def test_wrench_that_returns_something_else():
    model = with_force(la.Wrench("bob1", lambda t: (0, 0, 1), name="twist"))
    with pytest.raises(la.ModelError, match=r"Wrench 'twist' at t = 0"):
        la.simulate(model, dt=0.01, duration=0.1)


def test_forces_that_are_not_numbers_do_not_travel():
    model = with_force(la.PointForce("bob1", (0, 0, 0), lambda t: (np.nan, 0, 0)))
    with pytest.raises(la.ConvergenceError, match="inverse dynamics"):
        la.inverse_dynamics(model, None, None, None)
    with pytest.raises(la.ConvergenceError, match="forward dynamics"):
        la.forward_dynamics(model, None, None)


def test_overflow_is_an_error_everywhere():
    m = la.Mechanism("slide")
    m.add_body("a", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("x", "prismatic", parent="world", child="a", axis=(1, 0, 0))
    m.add_body("b", mass=1.0, com=(1, 0, 0), inertia=(1, 1, 1))
    m.add_joint("r", "revolute", parent="a", child="b", axis=(0, 1, 0))
    model, far, fast = m.build(), [1e200, 0.1], [1e200, 1e200]
    for call in (
        lambda: la.energy(model, None, fast),
        lambda: la.bias_forces(model, None, fast),
        lambda: la.inverse_dynamics_derivatives(model, None, fast, None),
        lambda: la.momentum(model, [1e300, 0.0], [0.0, 1e200]),
    ):
        with pytest.raises((la.ConvergenceError, la.ModelError)):
            call()
    assert np.isfinite(la.poses(model, far)["b"]).all()


# --- rows -------------------------------------------------------------------------------------------------------------
def test_zero_quaternions_in_rows_name_row_and_joint():
    model = la.models.free_body().build()
    rows = np.tile(model.neutral(), (3, 1))
    rows[2, 3:] = 0.0
    name = model.joint_names[0]
    for call in (
        lambda: la.poses(model, rows),
        lambda: la.energy(model, rows),
        lambda: la.forward_dynamics(model, rows, np.zeros((3, 6))),
    ):
        with pytest.raises(la.ModelError, match=f"q: row 2: joint '{name}': its quaternion is zero"):
            call()


# --- joints that cannot move ------------------------------------------------------------------------------------------
def test_limits_of_a_locked_joint_do_not_matter():
    m = la.models.double_pendulum()
    m.joints["hinge2"].limits = np.array([[-1.0, 1.0]])
    m.enforce_limits()
    assert "enforced limits" in m.build().features
    m.lock("hinge2")
    assert m.build().features == frozenset()


def test_a_locked_loop_joint_has_no_forces_of_its_own():
    m = la.models.four_bar()
    m.joints["loop"].stiffness = 1.0
    m.joints["loop"].friction = 0.1
    assert m.build().features == {"loops", "joint friction"}
    m.lock("loop")
    assert m.build().features == {"loops"}


def test_options_that_a_method_does_not_have():
    from leastaction.run.registry import METHODS, method_from_options

    for method, _ in METHODS.values():
        again = method_from_options(type(method).__name__, method.options())
        assert again.options() == method.options()
    with pytest.raises(la.ModelError, match="Maximal has no option 'solvr'; its options are order, solver"):
        method_from_options("Maximal", {"solvr": "newton"})
