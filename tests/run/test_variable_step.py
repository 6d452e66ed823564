"""Steps with lengths of their own: arrays of dt under every method, through files, resuming, controls and reports."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import leastaction as la
from leastaction.methods.base import Clock
from leastaction.reference import samples as make
from leastaction.run.registry import METHODS

LENGTHS = np.random.default_rng(0).uniform(0.002, 0.01, 24)


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param][0]


@functools.cache
def pendulum():
    return la.models.double_pendulum().build()


@functools.cache
def robot():
    """A floating base, a spherical joint and a hinge with a damper."""
    m = make.random_tree(["free", "spherical", "revolute"], np.random.default_rng(1))
    m.joints["j2"].damping = 0.2
    return m.build()


def start(model):
    return model.state(*make.random_state(model, np.random.default_rng(2)), t=3.0)


def assert_same(a, b):
    """Two runs agree to the last bit."""
    for name in ("t", "q", "v", "dt"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert a.steps == b.steps
    assert a.memory.keys() == b.memory.keys()
    assert all(np.array_equal(a.memory[key], b.memory[key]) for key in a.memory)


# --- the clock --------------------------------------------------------------------------------------------------------
def test_clock_of_one_step_is_a_multiple():
    clock = Clock(5.0, 0.1)
    assert [clock.at(k) for k in range(50)] == [5.0 + k * 0.1 for k in range(50)]
    assert np.array_equal(clock.at_steps(np.arange(50)), 5.0 + np.arange(50) * 0.1)
    assert clock.cut(3) is clock


def test_clock_of_lengths_is_a_running_sum():
    clock = Clock(5.0, LENGTHS)
    t = 5.0
    for k, h in enumerate(LENGTHS.tolist()):
        assert (clock.at(k), clock.length(k)) == (t, h)
        t += h
    # a part of it has the same times and lengths
    part = Clock(clock.at(7), LENGTHS[7:], 7)
    assert np.array_equal(part.table(9, 5), clock.table(9, 5))
    assert np.array_equal(clock.cut(7).extended(LENGTHS[7:]).times, clock.times)


# --- steps ------------------------------------------------------------------------------------------------------------
def test_equal_lengths_are_the_constant_step(method):
    """An array of one number many times gives the states of that number."""
    one = la.simulate(pendulum(), pendulum().state([0.3, 0.1]), dt=0.0625, duration=1.0, method=method)
    many = la.simulate(pendulum(), pendulum().state([0.3, 0.1]), dt=[0.0625] * 16, method=method)
    assert np.array_equal(one.t, many.t)
    assert np.array_equal(one.q, many.q)
    assert np.array_equal(one.v, many.v)
    assert (one.dt, many.dt.tolist()) == (0.0625, [0.0625] * 16)


def test_each_row_is_a_step_of_its_length(method):
    """One step from each row with its own length reaches the next row."""
    model, x0 = robot(), start(robot())
    # poses that have drifted, and the past of BDF, are not in (q, v): measured 4e-7, 2e-7; Newton of SDIRK2: 2e-13
    tolerance = {"maximal-euler": 1e-5, "bdf": 1e-5, "sdirk2": 1e-12}.get(method.name, 1e-13)
    run = la.simulate(model, x0, dt=LENGTHS, duration=LENGTHS.sum(), method=method)
    assert np.array_equal(run.t, np.cumsum([3.0, *LENGTHS]))
    for k in range(0, 24, 5):
        one = method.step(model, run.state(k), LENGTHS[k])
        # measured 2e-16 and 6e-14 (Galerkin: another guess leads to another end within solver tolerance)
        assert one.q == pytest.approx(run.q[k + 1], abs=tolerance)
        assert one.v == pytest.approx(run.v[k + 1], abs=100 * tolerance)


def test_rows_between(method):
    whole = la.simulate(robot(), start(robot()), dt=LENGTHS, method=method)
    thin = la.simulate(robot(), start(robot()), dt=LENGTHS, method=method, save_every=7)
    rows = [0, 7, 14, 21, 24]
    assert np.array_equal(thin.t, whole.t[rows])
    assert np.array_equal(thin.q, whole.q[rows])


def test_no_steps(method):
    run = la.simulate(pendulum(), dt=[], method=method)
    assert (run.steps, run.q.shape, run.dt.shape, run.report.dt_range) == (0, (1, 2), (0,), None)


def test_variable_step_keeps_the_order():
    """Every second step half as long: the error falls as with equal steps."""
    model, x0 = pendulum(), pendulum().state([1.0, 0.5])
    exact = la.simulate(model, x0, dt=1.5, duration=1.5, method=la.Adaptive(1e-12, 1e-12)).q[-1]
    for chosen, coarse in ((la.Galerkin(4), 0.04), (la.Galerkin(2), 0.01), (la.RungeKutta(4), 0.02)):
        errors = []
        for h in (coarse, coarse / 2):
            pairs = round(1.5 / (1.5 * h))
            run = la.simulate(model, x0, dt=np.tile([h, h / 2], pairs), method=chosen, save_every=10**6)
            errors.append(np.abs(run.q[-1] - exact).max())
        # measured 3.97, 2.00, 3.85
        assert np.log2(errors[0] / errors[1]) == pytest.approx(chosen.order, abs=0.3)


# --- controls ---------------------------------------------------------------------------------------------------------
def test_controls_are_sampled_at_the_starts(method):
    model, seen = pendulum(), []

    def control(t, state):
        seen.append(t)
        return [np.sin(40.0 * t), 0.1]

    run = la.simulate(model, dt=LENGTHS, method=method, control=control)
    assert seen == run.t[:-1].tolist()
    rows = np.column_stack([np.sin(40.0 * run.t[:-1]), np.full(24, 0.1)])
    assert_same(la.simulate(model, dt=LENGTHS, method=method, control=rows), run)
    assert np.array_equal(run.tau[:-1], rows)
    with pytest.raises(la.ModelError, match=r"control has shape \(23, 2\), expected \(24, 2\)"):
        la.simulate(model, dt=LENGTHS, control=rows[:-1])


# --- files and resuming -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("every", [1, 5])
def test_resumed_run_is_identical(method, every, tmp_path):
    model, x0 = robot(), start(robot())
    whole = la.simulate(model, x0, dt=LENGTHS, method=method, save_every=every)
    half = la.simulate(model, x0, dt=LENGTHS[:9], method=method, save_every=every)
    half.save(tmp_path / "half.npz")
    assert_same(la.Trajectory.load(tmp_path / "half.npz"), half)
    for first in (half, tmp_path / "half.npz"):
        again = la.resume(first, dt=LENGTHS[9:], duration=LENGTHS[9:].sum())
        assert_same(again, whole)
        assert again.report.dt_range == whole.report.dt_range == [LENGTHS.min(), LENGTHS.max()]


def test_interrupted_run_goes_on(method):
    """The kept run has the lengths of the steps that it did."""
    model, x0, stop = pendulum(), pendulum().state([0.3, 0.1]), float(LENGTHS[:13].sum()) - 1e-6

    def breaking(t, state):
        if t > stop:
            raise KeyboardInterrupt
        return np.zeros(2)

    with pytest.raises(KeyboardInterrupt) as caught:
        la.simulate(model, x0, dt=LENGTHS, method=method, control=breaking)
    kept = caught.value.run
    assert 0 < kept.steps <= 13
    assert np.array_equal(kept.dt, LENGTHS[: kept.steps])
    rest = LENGTHS[kept.steps :]
    whole = la.simulate(model, x0, dt=LENGTHS, method=method, control=np.zeros((24, 2)))
    assert_same(la.resume(kept, dt=rest, control=np.zeros((len(rest), 2))), whole)


# --- reports, plots, exports ------------------------------------------------------------------------------------------
def test_words_and_exports(tmp_path):
    run = la.simulate(pendulum(), dt=[0.01, 0.02, 0.03])
    assert run.report.dt == pytest.approx(0.02)
    assert "3 of 0.01 to 0.03 s" in str(run.report)
    assert "dt = 0.01 to 0.03 s" in run.plot(tmp_path / "run.png").get_suptitle()
    data = run.to_xarray()
    assert (data.attrs["dt_least"], data.attrs["dt_most"]) == (0.01, 0.03)
    assert np.array_equal(data.time, run.t)
    assert la.simulate(pendulum(), dt=0.01, duration=0.03).to_xarray().attrs["dt"] == 0.01


def test_limits_know_the_time():
    m = la.models.pendulum()
    m.joints[next(iter(m.joints))].limits = np.array([[-0.01, 0.01]])
    model = m.build()
    run = la.simulate(model, model.state(v=[1.0]), dt=[0.25, 0.125])
    assert "first at t = 0.25 s" in next(iter(run.report.limits.values()))


# --- what may be typed wrong ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dt", "words"),
    [
        ([0.1, 0.0], "step 1 must be positive"),
        ([0.1, -0.1], "step 1 must be positive"),
        ([0.1, np.nan], "finite"),
        ([0.1, np.inf], "finite"),
        ([1e9, 1e-9], r"step 1 must be positive and move the time 1e\+09 s"),
        ([[0.1, 0.1]], r"got shape \(1, 2\)"),
        (["a"], "expected numbers"),
        ([[0.1], [0.1, 0.2]], "expected numbers"),
        ([True], "expected numbers"),
    ],
)
def test_bad_lengths(dt, words):
    with pytest.raises(la.ModelError, match=f"simulate: dt.*{words}"):
        la.simulate(pendulum(), dt=dt)


def test_bad_durations():
    with pytest.raises(la.ModelError, match=r"duration 0\.4 s is not the sum of the steps, 0\.3 s"):
        la.simulate(pendulum(), dt=[0.1, 0.2], duration=0.4)
    with pytest.raises(la.ModelError, match="duration: expected a number, got None"):
        la.simulate(pendulum(), dt=0.1)
    one = la.simulate(pendulum(), dt=0.1, duration=0.2)
    with pytest.raises(la.ModelError, match=r"this run has steps of 0\.1 s; give a duration"):
        la.resume(one, dt=[0.1])
    many = la.simulate(pendulum(), dt=[0.1, 0.2])
    with pytest.raises(la.ModelError, match="give dt="):
        la.resume(many, 0.1)
    with pytest.raises(la.ModelError, match="resume: dt: step 0"):
        la.resume(many, dt=[-0.1])


BAD = [np.zeros(3), np.full(3, np.nan), np.full(2, 0.1), np.full((3, 1), 0.1), np.array(["a"] * 3), np.ones(3, int)]


@pytest.mark.parametrize("bad", [*BAD, None])
def test_damaged_lengths_in_a_file(bad, tmp_path):
    path = tmp_path / "run.npz"
    la.simulate(pendulum(), dt=[0.01, 0.02, 0.03]).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "dt"}
    assert json.loads(str(arrays["meta"]))["dt"] is None
    if bad is not None:
        arrays["dt"] = bad
    np.savez(path, **arrays)
    with pytest.raises(la.ModelError, match=r"run\.npz: dt"):
        la.Trajectory.load(path)
