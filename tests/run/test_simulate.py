"""The simulation loop: rows and times, controls, checkpoints and resuming, chunks."""

from __future__ import annotations

import functools
import sys

import numpy as np
import pytest
from numba import cfunc, types

import leastaction as la
from leastaction.reference import samples as make
from leastaction.run.registry import METHODS

POINTER = types.CPointer(types.double)
CONTROL = types.void(types.double, POINTER, POINTER, POINTER)


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param][0]


@functools.cache
def pendulum():
    return la.models.double_pendulum().build()


@functools.cache
def robot():
    """A floating base, a spherical joint and a hinge with a damper."""
    rng = np.random.default_rng(1)
    m = make.random_tree(["free", "spherical", "revolute"], rng)
    m.joints["j2"].damping = 0.2
    return m.build()


@functools.cache
def linkage():
    return la.models.four_bar().build()


def start(model):
    """A state in motion, with closed loops."""
    if model.constraint_size:
        return la.project(model, model.state(v=np.linspace(1.0, 2.0, model.nv)))
    return model.state(*make.random_state(model, np.random.default_rng(2)))


def assert_same(a, b):
    """Two runs agree to the last bit."""
    assert np.array_equal(a.t, b.t)
    assert np.array_equal(a.q, b.q)
    assert np.array_equal(a.v, b.v)
    assert a.steps == b.steps
    assert a.memory.keys() == b.memory.keys()
    assert all(np.array_equal(a.memory[key], b.memory[key]) for key in a.memory)


# --- rows and times ---------------------------------------------------------------------------------------------------
def test_times_and_rows(method):
    """t = t0 + k dt; the first and the last state are always kept."""
    model = pendulum()
    x0 = model.state([0.3, 0.1], [0.0, 1.0], t=5.0)
    whole = la.simulate(model, x0, dt=0.01, duration=0.1, method=method)
    assert np.array_equal(whole.t, 5.0 + np.arange(11) * 0.01)
    assert np.array_equal(whole.q[0], x0.q)
    thin = la.simulate(model, x0, dt=0.01, duration=0.1, method=method, save_every=4)
    assert np.array_equal(thin.t, 5.0 + np.array([0, 4, 8, 10]) * 0.01)
    assert np.array_equal(thin.q, whole.q[[0, 4, 8, 10]])
    assert np.array_equal(thin.v, whole.v[[0, 4, 8, 10]])
    assert thin.report.steps == whole.report.steps == 10


def test_a_run_says_what_it_is_in_one_line():
    model = la.models.pendulum().build()
    run = la.simulate(model, dt=0.01, duration=0.5, method="rk4", save_every=2)
    assert repr(run) == "Trajectory('pendulum', rk4, 26 rows, t = 0 to 0.5 s)"
    many = la.simulate_many(model, [model.state(), model.state([0.3])], dt=0.01, duration=0.5, method="galerkin:2")
    assert repr(many) == "Ensemble('pendulum', galerkin:2, 2 environments, 51 rows, t = 0 to 0.5 s)"


def test_no_steps(method):
    run = la.simulate(pendulum(), dt=0.01, duration=0.0, method=method)
    assert run.q.shape == (1, 2)
    assert run.steps == 0
    assert np.array_equal(run.t, [0.0])


def test_one_step_is_the_first_row(method):
    model = robot()
    x0 = start(model)
    tau = np.linspace(-1.0, 1.0, model.nv)
    run = la.simulate(model, x0, dt=0.01, duration=0.01, method=method, control=tau[None])
    one = method.step(model, x0, 0.01, tau)
    assert np.array_equal(one.q, run.q[-1])
    assert np.array_equal(one.v, run.v[-1])


def test_start_from_rest_by_default():
    run = la.simulate(pendulum(), dt=0.01, duration=0.05)
    assert np.array_equal(run.q, np.zeros((6, 2)))
    assert run.method.label == "galerkin:4"


def test_methods_by_name_and_by_object():
    x0 = pendulum().state([0.3, 0.2])
    a = la.simulate(pendulum(), x0, dt=0.01, duration=0.1, method="rk2")
    assert_same(a, la.simulate(pendulum(), x0, dt=0.01, duration=0.1, method=la.RungeKutta(2)))


# --- controls ---------------------------------------------------------------------------------------------------------
def wave(t):
    return np.sin(3.0 * t), t - 0.5


def test_open_loop_controls_agree(method):
    """An array, a Python function and a compiled one, to the last bit."""
    model, x0 = pendulum(), pendulum().state([0.3, 0.1])
    compiled = cfunc(CONTROL)(_wave_into)
    rows = np.array([[0.0, 0.0]] * 40)
    for k in range(40):
        rows[k] = wave(0.0 + k * 0.01)

    def function(t, state):
        return wave(t)

    arrays = la.simulate(model, x0, dt=0.01, duration=0.4, method=method, control=rows)
    python = la.simulate(model, x0, dt=0.01, duration=0.4, method=method, control=function)
    native = la.simulate(model, x0, dt=0.01, duration=0.4, method=method, control=compiled)
    assert_same(arrays, python)
    assert np.array_equal(python.q, native.q)
    assert np.array_equal(python.v, native.v)
    # and the control did something
    free = la.simulate(model, x0, dt=0.01, duration=0.4, method=method)
    assert np.abs(free.q[-1] - arrays.q[-1]).max() > 1e-3


def _wave_into(t, q, v, out):
    out[0] = np.sin(3.0 * t)
    out[1] = t - 0.5


def _brake_into(t, q, v, out):
    for k in range(10):
        out[k] = -0.5 * v[k] - 0.1 * q[k]


def test_feedback_controls_agree(method):
    """On free and spherical joints: q and v are the user's."""
    model = robot()
    assert (model.nq, model.nv) == (12, 10)

    def function(t, state):
        assert state.q.shape == (12,)
        return -0.5 * state.v - 0.1 * state.q[:10]

    x0 = start(model)
    python = la.simulate(model, x0, dt=0.01, duration=0.3, method=method, control=function)
    native = la.simulate(model, x0, dt=0.01, duration=0.3, method=method, control=cfunc(CONTROL)(_brake_into))
    assert np.array_equal(python.q, native.q)
    assert np.array_equal(python.v, native.v)


def test_control_is_sampled_at_the_start_of_each_step_and_held(method):
    model, seen = pendulum(), []

    def control(t, state):
        seen.append((t, state.q.copy(), state.v.copy()))
        return {"hinge1": 0.4}

    run = la.simulate(model, model.state([0.2, 0.0]), dt=0.02, duration=0.1, method=method, control=control)
    assert [t for t, _, _ in seen] == [k * 0.02 for k in range(5)]
    for row, (_, q, v) in enumerate(seen):
        assert np.array_equal(q, run.q[row])
        assert np.array_equal(v, run.v[row])
    held = la.simulate(model, model.state([0.2, 0.0]), dt=0.02, duration=0.1, method=method, control=[[0.4, 0.0]] * 5)
    assert_same(run, held)


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (np.zeros((9, 2)), r"control has shape \(9, 2\), expected \(10, 2\)"),
        (np.zeros(3), r"control has shape \(3,\), expected \(10, 2\)"),
        (np.full((10, 2), np.nan), "control is not finite in row 0"),
        (lambda t, state: [1.0], r"control: tau has shape \(1,\), expected \(2,\)"),
        (lambda t, state: {"knee": 1.0}, "no joint 'knee'"),
        ({"knee": 1.0}, "no joint 'knee'"),
        ("abc", "control"),
        ([[1.0, 2.0], [3.0]], "control"),
    ],
)
def test_bad_controls(control, words):
    with pytest.raises(la.ModelError, match=words):
        la.simulate(pendulum(), dt=0.01, duration=0.1, control=control)


# --- checkpoints and resuming -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", [pendulum, robot, linkage])
@pytest.mark.parametrize("every", [1, 3])
def test_resumed_run_is_identical(method, model, every, tmp_path):
    """From memory and from a file, also where the last row of the first part is off the grid of rows."""
    model = model()
    x0 = start(model)
    # what a method cannot honour it refuses, and there is nothing to go on with
    if not model.features <= method.supports:
        with pytest.raises(la.UnsupportedError):
            la.simulate(model, x0, dt=0.005, duration=0.12, method=method)
        return
    whole = la.simulate(model, x0, dt=0.005, duration=0.12, method=method, save_every=every)
    half = la.simulate(model, x0, dt=0.005, duration=0.05, method=method, save_every=every)
    before = half.q.copy()
    assert_same(la.resume(half, 0.07), whole)
    # the first part is not touched
    assert np.array_equal(half.q, before)
    half.save(tmp_path / "half.npz")
    again = la.resume(tmp_path / "half.npz", 0.07)
    assert_same(again, whole)
    assert again.report.counters == whole.report.counters
    assert again.report.steps == whole.report.steps == 24
    # and in three parts
    third = la.resume(
        la.resume(la.simulate(model, x0, dt=0.005, duration=0.035, method=method, save_every=every), 0.05), 0.035
    )
    assert_same(third, whole)


def test_resume_with_controls(method, tmp_path):
    model, x0 = pendulum(), pendulum().state([0.3, 0.1])
    rows = np.random.default_rng(3).normal(size=(30, 2))
    whole = la.simulate(model, x0, dt=0.01, duration=0.3, method=method, control=rows)
    half = la.simulate(model, x0, dt=0.01, duration=0.1, method=method, control=rows[:10])
    assert_same(la.resume(half, 0.2, control=rows[10:]), whole)
    half.save(tmp_path / "half.npz")
    assert_same(la.resume(tmp_path / "half.npz", 0.2, control=rows[10:]), whole)

    def feedback(t, state):
        return -state.v + np.sin(t)

    whole = la.simulate(model, x0, dt=0.01, duration=0.3, method=method, control=feedback)
    half = la.simulate(model, x0, dt=0.01, duration=0.1, method=method, control=feedback)
    assert_same(la.resume(half, 0.2, control=feedback), whole)


def test_joint_forces_of_a_resumed_run_are_those_of_the_whole(tmp_path):
    """The controls of the first part are not forgotten, nor taken for zero."""
    model, x0 = pendulum(), pendulum().state([0.3, 0.1])
    rows = np.random.default_rng(4).normal(size=(20, 2))
    whole = la.simulate(model, x0, dt=0.01, duration=0.2, control=rows)
    half = la.simulate(model, x0, dt=0.01, duration=0.1, control=rows[:10])
    half.save(tmp_path / "half.npz")
    for first in (half, tmp_path / "half.npz"):
        run = la.resume(first, 0.1, control=rows[10:])
        assert np.array_equal(run.tau, whole.tau)
        assert np.array_equal(run.joint_forces["hinge1"], whole.joint_forces["hinge1"])


def test_interrupted_run_goes_on_from_its_checkpoint(method, tmp_path):
    model, x0 = robot(), start(robot())

    def breaking(t, state):
        if t > 0.0871:
            raise KeyboardInterrupt
        return np.zeros(model.nv)

    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        la.simulate(
            model, x0, dt=0.01, duration=0.2, method=method, control=breaking, checkpoint=path, checkpoint_every=0.0
        )
    kept = la.Trajectory.load(path)
    assert kept.steps == 9
    whole = la.simulate(model, x0, dt=0.01, duration=0.2, method=method)
    assert_same(la.resume(path, 0.11, control=np.zeros((11, model.nv))), whole)


def test_checkpoint_of_a_whole_run(tmp_path):
    model, x0, path = robot(), start(robot()), tmp_path / "run.npz"
    run = la.simulate(model, x0, dt=0.01, duration=0.1, checkpoint=path)
    assert_same(la.Trajectory.load(path), run)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.npz"]


def test_file_of_a_mechanism_with_functions_needs_the_model(tmp_path):
    m = la.models.pendulum()
    m.add_force(la.PointForce("bob", (0, 0, -1), lambda t: (np.sin(t), 0, 0)))
    model = m.build()
    run = la.simulate(model, dt=0.01, duration=0.1)
    run.save(tmp_path / "run.npz")
    with pytest.raises(la.ModelError, match=r"run\.npz: the mechanism is not in the file .*give model="):
        la.Trajectory.load(tmp_path / "run.npz")
    whole = la.simulate(model, dt=0.01, duration=0.2)
    assert_same(la.resume(tmp_path / "run.npz", 0.1, model=model), whole)


def test_checkpoint_that_cannot_be_written_is_refused_before_the_run(tmp_path):
    """Not after hours of computing."""
    calls = []

    def control(t, state):
        calls.append(t)
        return [0.0, 0.0]

    for path in (tmp_path / "missing" / "run.npz", tmp_path):
        with pytest.raises(la.ModelError, match=str(tmp_path)):
            la.simulate(pendulum(), dt=0.01, duration=0.1, control=control, checkpoint=path)
    assert calls == []


@pytest.mark.parametrize("size", [1, 7])
def test_chunks_do_not_matter(method, size, monkeypatch):
    model, x0 = robot(), start(robot())
    whole = la.simulate(model, x0, dt=0.005, duration=0.2, method=method, save_every=3)
    monkeypatch.setattr(sys.modules["leastaction.run.simulate"], "_next_size", lambda *_: size)
    assert_same(la.simulate(model, x0, dt=0.005, duration=0.2, method=method, save_every=3), whole)


def test_progress_bar_changes_nothing(method):
    model, x0 = pendulum(), pendulum().state([0.3, 0.1])
    whole = la.simulate(model, x0, dt=0.01, duration=0.2, method=method)
    assert_same(la.simulate(model, x0, dt=0.01, duration=0.2, method=method, progress=True), whole)


@pytest.mark.parametrize("method", ["galerkin:2", "maximal", "bdf:1"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("on_failure", ["raise", "keep"])
def test_an_error_in_a_constraint_is_raised(method: str, error: type[BaseException], on_failure: str) -> None:
    m, calls = la.Mechanism("swing"), [0]
    m.add_body("a", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
    m.add_joint("j", "spherical", parent="world", child="a")

    def gap(poses: np.ndarray) -> np.ndarray:
        calls[0] += 1
        if calls[0] > 100:
            raise error("of the user")
        return np.array([poses[0, 1, 0]])

    def rows(poses: np.ndarray) -> np.ndarray:
        return np.array([[*np.cross([1.0, 0, 0], poses[0, 1, :3]), 0, 0, 0]])

    m.add_constraint(la.Constraint("a", gap, rows))
    model = m.build()
    start = la.project(model, model.state(v=[0.5, 0.1, 0.0]))
    calls[0] = 0
    with pytest.raises(error, match="of the user"):
        la.simulate(model, start, dt=0.01, duration=1.0, method=method, on_failure=on_failure)
