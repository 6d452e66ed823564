"""Runs in several parts: controls of each part, checkpoints that fail, interruption, time that counts."""

from __future__ import annotations

import functools
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from numba import cfunc, types

import leastaction as la
from leastaction.explicit.method import Explicit
from leastaction.model import files
from leastaction.run.registry import METHODS

POINTER = types.CPointer(types.double)
CONTROL = types.void(types.double, POINTER, POINTER, POINTER)


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param][0]


@functools.cache
def pendulum():
    return la.models.double_pendulum().build()


def push(t, state):
    return [np.sin(5.0 * t), state.q[0]]


def brake(t, state):
    return -0.3 * state.v


# --- controls of each part --------------------------------------------------------------------------------------------
def parts(*controls):
    """A run of 0.1 s parts, each with its control, and every third state."""
    x0 = pendulum().state([0.3, 0.1])
    run = la.simulate(pendulum(), x0, dt=0.01, duration=0.1, control=controls[0], save_every=3)
    for control in controls[1:]:
        run = la.resume(run, 0.1, control=control)
    return run


def test_controls_of_every_part_are_remembered():
    rows = np.random.default_rng(5).normal(size=(10, 2))
    run = parts(push, rows, np.zeros((10, 2)), brake)
    assert run.steps == 40
    for row, k in enumerate(run.step_numbers):
        state = run.state(row)
        expected = push(state.t, state) if k < 10 else rows[k - 10] if k < 20 else [0, 0]
        expected = brake(state.t, state) if k >= 30 else expected
        assert np.array_equal(run.tau[row], expected), k
    # the part before is not touched
    assert np.array_equal(parts(push, rows).tau[-1], rows[-1])


def test_later_changes_of_the_users_array_do_not_matter():
    rows = np.ones((10, 2))
    run = parts(rows)
    rows[:] = 7.0
    assert np.array_equal(run.tau, np.ones((5, 2)))


def test_forces_of_a_compiled_control():
    compiled = cfunc(CONTROL)(_push_into)
    assert np.array_equal(parts(compiled).tau, parts(push).tau)


def _push_into(t, q, v, out):
    out[0] = np.sin(5.0 * t)
    out[1] = q[0]


def test_arrays_of_every_part_are_in_the_file(tmp_path):
    rows = np.random.default_rng(6).normal(size=(2, 10, 2))
    run = parts(rows[0], np.zeros((10, 2)), rows[1])
    run.save(tmp_path / "run.npz")
    assert np.array_equal(la.Trajectory.load(tmp_path / "run.npz").tau, run.tau)


def test_a_function_is_not_in_the_file_and_not_taken_for_zero(tmp_path):
    parts(push).save(tmp_path / "run.npz")
    loaded = la.resume(tmp_path / "run.npz", 0.1, control=np.zeros((10, 2)))
    assert loaded.steps == 20
    with pytest.raises(la.ModelError, match="control of the steps from 0 on was a function"):
        loaded.tau  # noqa: B018
    with pytest.raises(la.ModelError, match="was a function"):
        loaded.joint_forces  # noqa: B018
    # and it stays so
    loaded.save(tmp_path / "again.npz")
    with pytest.raises(la.ModelError, match="was a function"):
        la.Trajectory.load(tmp_path / "again.npz").tau  # noqa: B018


# --- checkpoints ------------------------------------------------------------------------------------------------------
@pytest.fixture
def full_disk(monkeypatch):
    """Nothing can be written once the run has begun."""

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)


class UserError(Exception):
    """An error of the user."""


def test_error_of_the_user_comes_before_that_of_the_checkpoint(method, full_disk, tmp_path):
    def control(t, state):
        if t > 0.05:
            raise UserError("from the control")
        return [0.0, 0.0]

    arguments = {"dt": 0.01, "duration": 0.1, "method": method, "checkpoint": tmp_path / "run.npz"}
    for seconds in (0.0, 30.0):
        with pytest.raises(UserError, match="from the control") as raised:
            la.simulate(pendulum(), control=control, checkpoint_every=seconds, **arguments)
        # what else went wrong is said with it
        assert "No space left" in raised.value.__notes__[0]


def test_failed_step_comes_before_the_error_of_the_checkpoint(full_disk, tmp_path):
    m = la.models.pendulum()
    m.add_force(la.PointForce("bob", (0, 0, 0), lambda t: (np.nan if t > 0.05 else 0.0, 0, 0)))
    with pytest.raises(la.ConvergenceError) as raised:
        la.simulate(m.build(), dt=0.01, duration=0.1, checkpoint=tmp_path / "run.npz")
    assert "No space left" in raised.value.__notes__[0]


def test_a_checkpoint_that_fails_does_not_lose_the_run(full_disk, tmp_path):
    with pytest.raises(la.ModelError, match=r"run\.npz: .*No space left") as raised:
        la.simulate(pendulum(), dt=0.01, duration=0.1, checkpoint=tmp_path / "run.npz", checkpoint_every=0.0)
    assert raised.value.run.steps == 10


@pytest.mark.parametrize("seconds", ["a", np.nan, -1.0, None, [1.0]])
def test_bad_time_between_checkpoints(seconds, tmp_path):
    with pytest.raises(la.ModelError, match="checkpoint_every"):
        la.simulate(pendulum(), dt=0.01, duration=0.1, checkpoint=tmp_path / "run.npz", checkpoint_every=seconds)


def test_no_checkpoint_before_the_end(tmp_path):
    run = la.simulate(pendulum(), dt=0.01, duration=0.1, checkpoint=tmp_path / "run.npz", checkpoint_every=float("inf"))
    assert la.Trajectory.load(tmp_path / "run.npz").steps == run.steps


# --- interruption -----------------------------------------------------------------------------------------------------
def test_interrupted_control_leaves_the_run_so_far(method):
    def control(t, state):
        if t > 0.0551:
            raise KeyboardInterrupt
        return [0.1, 0.0]

    with pytest.raises(KeyboardInterrupt) as raised:
        la.simulate(pendulum(), dt=0.01, duration=0.1, method=method, control=control)
    run = raised.value.run
    assert run.steps == 6
    assert "interrupted" in run.report.failure
    whole = la.simulate(pendulum(), dt=0.01, duration=0.1, method=method, control=[[0.1, 0.0]] * 10)
    rest = la.resume(run, 0.04, control=[[0.1, 0.0]] * 4)
    assert np.array_equal(rest.q, whole.q)
    assert rest.report.failure is None


def test_interrupt_between_steps_leaves_whole_chunks(method, monkeypatch, tmp_path):
    """A signal that is heard after the memory has moved on, but before its rows are kept, costs those rows only."""
    x0, kind, calls = pendulum().state([0.3, 0.1]), type(method), []
    plain = kind.rollout

    def rollout(self, *arguments):
        calls.append(1)
        chunk = plain(self, *arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return chunk

    monkeypatch.setattr(sys.modules["leastaction.run.simulate"], "_next_size", lambda *_: 3)
    monkeypatch.setattr(kind, "rollout", rollout)
    with pytest.raises(KeyboardInterrupt) as raised:
        la.simulate(pendulum(), x0, dt=0.01, duration=0.2, method=method, save_every=2, checkpoint=tmp_path / "run.npz")
    monkeypatch.undo()
    # a call without steps, then chunks of 1, 3, 3, and 3 that are lost
    run = raised.value.run
    assert run.steps == 7
    whole = la.simulate(pendulum(), x0, dt=0.01, duration=0.2, method=method, save_every=2)
    for part in (run, tmp_path / "run.npz"):
        assert np.array_equal(la.resume(part, 0.13).q, whole.q)


# --- time that counts -------------------------------------------------------------------------------------------------
def test_time_of_a_first_run_does_not_count_compiling(monkeypatch):
    first, plain = [0.3], Explicit.rollout

    def rollout(*arguments):
        time.sleep(first.pop() if first else 0.0)
        return plain(*arguments)

    monkeypatch.setattr(Explicit, "rollout", rollout)
    assert la.simulate(pendulum(), dt=0.01, duration=0.1, method="rk4").report.wall_time < 0.2  # measured 1e-4
    assert first == []


@pytest.mark.parametrize("name", ["euler", "rk4", "adaptive"])
def test_no_steps_compile_everything_and_call_nothing(name):
    """Rollouts of no steps are what a run starts with."""
    code = f"""
import numpy as np
import leastaction as la
from leastaction.explicit import step as explicit
from leastaction.methods.base import Clock, Control
from leastaction.run.registry import METHODS

def never(t):
    raise RuntimeError("called")

m = la.models.pendulum()
m.add_force(la.PointForce("bob", (0, 0, 0), never))
model, method = m.build(), METHODS["{name}"][0]
chunk = method.rollout(model, method.start(model, model.state()), Clock(0.0, 0.1), 0, 0, 1, Control(np.zeros((0, 1))))
model.raise_pending()
ready = explicit.local_system.signatures if method.name == "adaptive" else explicit.explicit_rollout.signatures
print(chunk.steps, len(ready))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "0 1\n", done.stderr


# --- memory -----------------------------------------------------------------------------------------------------------
def test_memory_is_checked_by_its_method(method):
    model, state = pendulum(), pendulum().state([0.3, 0.1])
    good = method.start(model, state)
    method.check_memory(model, state, good)
    name, array = next(iter(good.items()))
    for bad in (
        {},
        {**good, "more": np.zeros(1)},
        {**good, name: np.zeros(len(array) + 1)},
        {**good, name: array.astype(np.float32)},
        {**good, name: np.full_like(array, np.nan)},
        method.start(model, model.state([0.3, 0.2])),
    ):
        with pytest.raises(la.ModelError, match=f"{method.label}: .*memory"):
            method.check_memory(model, state, bad)


def test_a_resumed_run_is_refused_where_its_method_cannot_run_it():
    rough = la.models.double_pendulum()
    rough.joints["hinge2"].friction = 0.1
    with pytest.raises(la.UnsupportedError, match="joint friction"):
        la.resume(replace(parts(None), model=rough.build()), 0.1)
