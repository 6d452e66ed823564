"""What the simulation loop does when something is wrong: failures, errors in functions of the user, bad input."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
from numba import cfunc, types

import leastaction as la
from leastaction.reference import samples as make
from leastaction.run.registry import METHODS, check_supported

POINTER = types.CPointer(types.double)
CONTROL = types.void(types.double, POINTER, POINTER, POINTER)


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param][0]


@functools.cache
def pendulum():
    return la.models.double_pendulum().build()


# --- failures ---------------------------------------------------------------------------------------------------------
def broken(t, state):
    """Not a number from the sixth step on."""
    return np.full(2, np.nan if t > 0.0501 else 0.0)


def _broken_into(t, q, v, out):
    out[0] = np.nan if t > 0.0501 else 0.0
    out[1] = 0.0


def nan_force():
    """Not a number from 0.0551 s on: a method that looks only at the start of a step sees it one step later."""
    m = la.models.double_pendulum()
    m.add_force(la.PointForce("bob1", (0, 0, 0), lambda t: (np.nan if t > 0.0551 else 0.0, 0, 0)))
    return m.build()


def check_failure(raised, steps):
    """The error carries the run up to the last good state."""
    error = raised.value
    assert error.run.steps == steps
    assert error.run.q.shape == (steps + 1, 2)
    assert np.isfinite(error.run.q).all()
    assert np.isfinite(error.run.v).all()
    assert np.array_equal(error.state.q, error.run.q[-1])
    assert error.report is error.run.report
    assert error.report.failure is not None


def steps_before(method):
    """Steps that a method takes before it sees ``nan_force``; those of order 1 look at the start, but for one."""
    return 6 if method.order == 1 and method.label != "bdf:1" else 5


def test_force_that_is_not_a_number(method):
    model, steps = nan_force(), steps_before(method)
    with pytest.raises(la.ConvergenceError, match=rf"{method.label}: .*t = 0.0{steps} s") as raised:
        la.simulate(model, model.state([0.3, 0.1]), dt=0.01, duration=0.2, method=method)
    check_failure(raised, steps)


def test_compiled_control_that_is_not_a_number(method):
    control = cfunc(CONTROL)(_broken_into)
    with pytest.raises(la.ConvergenceError, match=f"{method.label}: ") as raised:
        la.simulate(pendulum(), pendulum().state([0.3, 0.1]), dt=0.01, duration=0.2, method=method, control=control)
    check_failure(raised, 6)
    # a Python control is checked when it returns
    with pytest.raises(la.ModelError, match=r"^control: tau\[0\] is nan"):
        la.simulate(pendulum(), dt=0.01, duration=0.2, method=method, control=broken)


def test_step_far_too_large():
    m = la.models.double_pendulum()
    for joint in m.joints.values():
        joint.damping = 1e6
    model = m.build()
    for name in ("euler", "rk1", "rk2", "rk4"):
        with pytest.raises(la.ConvergenceError, match="smaller dt") as raised:
            la.simulate(model, model.state([0.3, 0.1], [1.0, 0.0]), dt=0.1, duration=20.0, method=name)
        check_failure(raised, raised.value.run.steps)
        assert raised.value.run.steps < 200


def test_adaptive_ends_where_accelerations_change_too_fast_to_follow(monkeypatch):
    monkeypatch.setattr("leastaction.explicit.adaptive._MOST_SHORT", 300)
    m = la.models.double_pendulum()
    body = list(m.bodies)[-1]
    m.add_force(la.PointForce(body, (0.0, 0.0, -0.5), force=lambda t: (1e9 * np.sin(1e9 * t), 0.0, 0.0)))
    model = m.build()
    with pytest.raises(la.ConvergenceError, match=r"adaptive: the step size fell to .* near t = .*too fast to follow"):
        la.simulate(model, model.state([0.3, 0.1]), dt=0.1, duration=0.2, method="adaptive")


def test_keep_on_failure(method):
    model, steps = nan_force(), steps_before(method)
    run = la.simulate(model, model.state([0.3, 0.1]), dt=0.01, duration=0.2, method=method, on_failure="keep")
    assert run.steps == steps
    assert run.q.shape == (steps + 1, 2)
    assert f"t = 0.0{steps} s" in run.report.failure
    thin = la.simulate(
        model, model.state([0.3, 0.1]), dt=0.01, duration=0.2, method=method, on_failure="keep", save_every=3
    )
    assert np.array_equal(thin.q, run.q[[0, 3, steps]])
    assert np.array_equal(thin.t, run.t[[0, 3, steps]])


class UserError(Exception):
    """An error of the user."""


def raising(*_):
    raise UserError("from the user's function")


def with_law(what):
    m = la.models.double_pendulum()
    law = la.Law(raising, lambda x: 0.0)
    m.joints["hinge2"].stiffness = (law,) if what == "stiffness" else m.joints["hinge2"].stiffness
    m.joints["hinge2"].damping = (law,) if what == "damping" else m.joints["hinge2"].damping
    return m


def with_force(force):
    m = la.models.double_pendulum()
    m.add_force(force)
    return m


RAISING = {
    "stiffness": lambda: with_law("stiffness"),
    "damping": lambda: with_law("damping"),
    "point force": lambda: with_force(la.PointForce("bob1", (0, 0, 0), raising)),
    "wrench": lambda: with_force(la.Wrench("bob1", raising)),
    "potential": lambda: with_force(la.Potential("bob1", lambda p: 0.0, raising)),
}


@pytest.mark.parametrize("where", RAISING)
def test_error_in_a_function_of_the_mechanism(method, where):
    model = RAISING[where]().build()
    with pytest.raises(UserError, match="from the user's function"):
        la.simulate(model, dt=0.01, duration=0.1, method=method)
    # forward and inverse dynamics too, and nothing is left over for the next call
    with pytest.raises(UserError):
        la.forward_dynamics(model, None, None)
    with pytest.raises(UserError):
        la.inverse_dynamics(model, None, None, None)
    assert np.isfinite(la.bias_forces(model, None, None)).all()


@pytest.mark.parametrize(
    "force", [la.PointForce("bob1", (0, 0, 0), lambda t: (1.0, 2.0)), la.Wrench("bob1", lambda t: 1)]
)
def test_force_of_the_wrong_size(force):
    """The message names the force, and a single number is not spread over the axes."""
    model = with_force(force).build()
    with pytest.raises(la.ModelError, match=f"{type(force).__name__} on .*bob1"):
        la.simulate(model, dt=0.01, duration=0.1)


def test_error_in_the_energy_of_a_potential():
    model = with_force(la.Potential("bob1", raising, lambda p: np.zeros((1, 6)))).build()
    with pytest.raises(UserError):
        la.energy(model, None)


@pytest.mark.parametrize("kind", [UserError, KeyboardInterrupt])
def test_error_in_a_control(method, kind):
    error = kind("from the control")

    def control(t, state):
        if t > 0.03:
            raise error
        return [0.0, 0.0]

    with pytest.raises(kind) as raised:
        la.simulate(pendulum(), dt=0.01, duration=0.1, method=method, control=control)
    assert raised.value is error


# --- what is refused --------------------------------------------------------------------------------------------------
def with_friction():
    m = la.models.pendulum()
    m.joints["hinge"].friction = 0.1
    return m


def with_bearing():
    m = la.models.pendulum()
    m.joints["hinge"].friction = la.Bearing(0.3, 0.02, 0.1)
    return m


def with_ground():
    m = la.models.pendulum()
    m.add_ground()
    return m


def with_contact():
    m = la.models.double_pendulum()
    m.add_contact("bob1", "bob2")
    return m


def with_limits():
    m = la.models.cart_pole()
    m.enforce_limits()
    return m


def with_loop_limit():
    m = la.models.four_bar()
    m.joints["loop"].limits = np.array([[-0.01, 0.01]])
    m.enforce_limits()
    return m


def with_constraint(kind):
    m = la.models.pendulum()
    if kind == "velocity":
        rule = la.Constraint("bob", lambda p, v: v[0, :1], lambda p, v: np.eye(6)[:1], kind=kind)
    else:
        rule = la.Constraint("bob", lambda p: p[0, :1, 3], lambda p: np.eye(6)[3:4], kind=kind)
    m.add_constraint(rule)
    return m


UNSUPPORTED = {
    "joint friction": with_friction,
    "bearings": with_bearing,
    "contact": with_ground,
    "contact ": with_contact,
    "enforced limits": with_limits,
    "enforced limits ": with_loop_limit,
    "equality constraints": lambda: with_constraint("equality"),
    "velocity constraints": lambda: with_constraint("velocity"),
    "inequality constraints": lambda: with_constraint("inequality"),
}


@pytest.mark.parametrize("feature", UNSUPPORTED)
def test_unsupported_features_are_named(method, feature):
    m = UNSUPPORTED[feature]()
    if feature.strip() in method.supports:
        check_supported(method, m.build())
        return
    expected = rf"'{m.name}' has {feature.strip()}, which {method.label} cannot honour"
    with pytest.raises(la.UnsupportedError, match=expected):
        la.simulate(m.build(), dt=0.01, duration=0.1, method=method)


def test_dropping_a_feature_makes_it_run(method):
    everything = with_friction()
    everything.add_ground()
    everything.joints["hinge"].limits = np.array([[-1.0, 1.0]])
    everything.enforce_limits()
    model = everything.without("friction", "contacts", "limits").build()
    assert la.simulate(model, dt=0.01, duration=0.02, method=method).steps == 2


def test_friction_of_a_locked_joint_does_not_matter(method):
    m = la.models.double_pendulum()
    m.joints["hinge2"].friction = 0.1
    m.lock("hinge2")
    assert la.simulate(m.build(), dt=0.01, duration=0.02, method=method).steps == 2


# --- bad input --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [0.0, -0.01, np.nan, np.inf, "0.01", None, True])
def test_bad_dt(method, dt):
    with pytest.raises(la.ModelError, match="dt"):
        la.simulate(pendulum(), dt=dt, duration=0.1, method=method)


@pytest.mark.parametrize("duration", [-0.1, np.nan, np.inf, "1", None, 0.105, 0.0001])
def test_bad_duration(method, duration):
    with pytest.raises(la.ModelError, match="duration"):
        la.simulate(pendulum(), dt=0.01, duration=duration, method=method)


def test_duration_in_rounded_steps():
    """0.3 / 0.1 is not a whole number in binary; to 1e-9 it is."""
    assert la.simulate(pendulum(), dt=0.1, duration=0.3).steps == 3
    assert la.simulate(pendulum(), dt=0.01, duration=0.07).steps == 7


@pytest.mark.parametrize("every", [0, -1, 1.5, "2", None, True])
def test_bad_save_every(every):
    with pytest.raises(la.ModelError, match="save_every"):
        la.simulate(pendulum(), dt=0.01, duration=0.1, save_every=every)


@pytest.mark.parametrize(
    ("q", "v", "words"),
    [
        ([0.1], None, r"q has shape \(1,\), expected \(2,\)"),
        (None, [0.1, 0.2, 0.3], r"v has shape \(3,\), expected \(2,\)"),
        ([0.1, np.nan], None, r"q\[1\] is nan"),
        (None, [np.inf, 0.0], r"v\[0\] is inf"),
        ({"hinge3": 1.0}, None, "no joint 'hinge3'"),
        ({"hinge1": [1.0, 2.0]}, None, "joint 'hinge1'"),
        ("abc", None, "there is no key frame 'abc'"),
    ],
)
def test_bad_states(q, v, words):
    with pytest.raises(la.ModelError, match=words):
        pendulum().state(q, v)
    # also where the check of model.state was passed by
    if isinstance(q, list) or isinstance(v, list):
        by_hand = la.State(0.0, np.array(q or [0.0, 0.0]), np.array(v or [0.0, 0.0]))
        with pytest.raises(la.ModelError, match=words):
            la.simulate(pendulum(), by_hand, dt=0.01, duration=0.1)


def test_zero_quaternion():
    model = make.random_tree(["free", "spherical"], np.random.default_rng(1)).build()
    with pytest.raises(la.ModelError, match="joint 'j1': its quaternion is zero"):
        model.state(np.eye(11)[3])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "rk3"}, "there is no method 'rk3'; the methods are .*Did you mean"),
        ({"method": "adaptive:x"}, "tolerance must be a number"),
        ({"method": 4}, "expected a method"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"x0": [0.1, 0.2]}, "state"),
    ],
)
def test_bad_options(arguments, words):
    with pytest.raises(la.ModelError, match=words):
        la.simulate(pendulum(), dt=0.01, duration=0.1, **arguments)


def test_a_mechanism_is_not_a_model():
    with pytest.raises(la.ModelError, match=r"expected a model, from Mechanism\.build"):
        la.simulate(la.models.pendulum(), dt=0.01, duration=0.1)


@pytest.mark.parametrize("order", [0, 3, 5, True, "4", None])
def test_bad_orders(order):
    with pytest.raises(la.ModelError, match="order must be 1, 2 or 4"):
        la.RungeKutta(order)


@pytest.mark.parametrize(("rtol", "atol"), [(0.0, 1e-9), (-1.0, 1e-9), (np.nan, 1e-9), (1e-9, 0.0), (1e-15, 1e-9)])
def test_bad_tolerances(rtol, atol):
    with pytest.raises(la.ModelError, match=r"Adaptive: [ra]tol"):
        la.Adaptive(rtol, atol)


def test_limits_crossed_are_named():
    m = la.models.double_pendulum()
    m.joints["hinge2"].limits = np.array([[-0.1, 0.1]])
    run = la.simulate(m.build(), m.build().state([1.0, 0.0]), dt=0.01, duration=1.0)
    assert set(run.report.limits) == {"hinge2"}
    assert "crossed by" in run.report.limits["hinge2"]
    assert "hinge2" in str(run.report)


# --- files of runs ----------------------------------------------------------------------------------------------------
def without(key):
    return lambda arrays, meta: (arrays if key in arrays else meta).pop(key)


def changed(key, value):
    return lambda arrays, meta: (arrays if key in arrays else meta).__setitem__(key, value)


DAMAGE = {
    "memory is missing": without("memory.x"),
    "memory is too short": changed("memory.x", np.zeros(1)),
    "memory is not finite": changed("memory.u", np.full(2, np.nan)),
    "memory of another kind": changed("memory.x", np.array(["a", "b"])),
    "q is missing": without("q"),
    "q is text": changed("q", np.array([["a", "b"]] * 11)),
    "fewer rows than steps": changed("steps", 1000),
    "negative steps": changed("steps", -5),
    "rows every 0 steps": changed("every", 0),
    "no dt": changed("dt", 0.0),
    "infinite t0": changed("t0", float("inf")),
    "no mechanism": without("mechanism"),
    "unknown method": changed("method", {"class": "Magic", "options": {}}),
    "bad options": changed("method", {"class": "RungeKutta", "options": {"order": 17}}),
    "bad report": changed("report", {"x": 1}),
    "report of another kind": changed("report", 5),
    "memory contradicts the last row": changed("memory.x", np.array([2.0, 1.0])),
    "rows contradict the memory": changed("q", np.full((11, 2), 1e70)),
    "rows every 1.5 steps": changed("every", 1.5),
    "steps are true": changed("steps", True),
    "dt is text": changed("dt", "fast"),
    "controls of nothing": changed("controls", [[0, "array"]]),
    "controls of another kind": changed("controls", [[0, "magic"]]),
    "controls begin late": changed("controls", [[5, "none"]]),
    "controls are a number": changed("controls", 3),
    "mechanism of another kind": changed("mechanism", [1]),
    "method without options": changed("method", {"class": "RungeKutta", "options": 4}),
    "method is text": changed("method", "rk4"),
    "version": changed("version", 99),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_file_of_a_run(damage, tmp_path):
    """Never read into compiled code: every array is checked against the model."""
    path = tmp_path / "run.npz"
    la.simulate(pendulum(), pendulum().state([0.3, 0.1]), dt=0.01, duration=0.1, method="rk4").save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    meta = json.loads(str(arrays.pop("meta")))
    DAMAGE[damage](arrays, meta)
    np.savez(path, meta=np.array(json.dumps(meta)), **arrays)
    with pytest.raises(la.ModelError, match=r"run\.npz"):
        la.resume(path, 0.1)


def test_control_in_a_damaged_file(tmp_path):
    path, rows = tmp_path / "run.npz", np.ones((10, 2))
    la.simulate(pendulum(), dt=0.01, duration=0.1, control=rows).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for bad in (rows[:9], rows[:, :1], rows * np.nan, np.array([["a", "b"]] * 10)):
        np.savez(path, **{**arrays, "control.0": bad})
        with pytest.raises(la.ModelError, match=r"run\.npz: control"):
            la.Trajectory.load(path)


def test_files_that_are_no_runs(tmp_path):
    path = tmp_path / "run.npz"
    deep = "[" * 100_000 + "]" * 100_000
    for arrays in ({"meta": np.array(deep)}, {"meta": np.array("{}")}, {"meta": np.zeros(3)}, {"q": np.zeros(3)}):
        np.savez(path, **arrays)
        with pytest.raises(la.ModelError, match=r"run\.npz: this is not the file of a run"):
            la.Trajectory.load(path)
    # one array without names
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(la.ModelError, match=r"run\.npz: this is not the file of a run"):
        la.Trajectory.load(path)


def test_file_that_grows_when_it_is_unpacked(tmp_path, monkeypatch):
    """A small file may hold far more than memory does."""
    from leastaction.run import run_file

    path = tmp_path / "run.npz"
    la.simulate(pendulum(), dt=0.01, duration=10.0).save(path)
    monkeypatch.setattr(run_file, "UNPACKED", path.stat().st_size + 100)
    monkeypatch.setattr(run_file, "GROWTH", 1)
    with pytest.raises(la.ModelError, match=r"run\.npz: .*too large"):
        la.Trajectory.load(path)


def test_run_of_another_model(tmp_path):
    path = tmp_path / "run.npz"
    model = la.models.double_pendulum().build()
    la.simulate(model, model.state([0.1, 0.2]), dt=0.01, duration=0.05).save(path)
    other = la.models.cart_pole().build()
    assert (other.nq, other.nv) == (model.nq, model.nv)
    with pytest.raises(la.ModelError, match=r"run\.npz: the run is of another model .*joint number 0 is \w+ revol"):
        la.Trajectory.load(path, model=other)
    with pytest.raises(la.ModelError, match=r"run\.npz: expected a model, got Mechanism"):
        la.Trajectory.load(path, model=la.models.double_pendulum())
    assert la.Trajectory.load(path, model=model).steps == 5

    # a file from before the list was kept
    with np.load(path) as file:
        arrays = dict(file)
    meta = json.loads(str(arrays["meta"]))
    assert len(meta.pop("joints")) == 2
    np.savez(path, **{**arrays, "meta": np.array(json.dumps(meta))})
    assert la.Trajectory.load(path, model=model).steps == 5


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([np.nan], r"control: tau\[0\] is nan"),
        ([1.0, 2.0], r"control: tau has shape \(2,\)"),
        ({"hinge": "x"}, "control: joint 'hinge': expected 1 finite numbers"),
        (None, "control: the function returned None; return 1 numbers"),
    ],
)
def test_what_a_control_may_not_return(value, words):
    model = la.models.pendulum().build()
    with pytest.raises(la.ModelError, match=words):
        la.simulate(model, dt=0.01, duration=0.05, method="rk4", control=lambda t, state: value)
