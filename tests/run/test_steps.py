"""Step control: reversal, energy over long runs, cutting and resuming, files, what may be typed wrong."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import leastaction as la
from leastaction.methods.base import Control
from leastaction.papers.variable_step import drift_and_band, energy_error, orbit
from leastaction.reference import samples as make
from leastaction.run.registry import METHODS
from leastaction.run.step_density import step_density
from leastaction.run.steps import Pace, paced_rollout

CONTROLS = (la.ReversibleSteps(1e-3, 0.1), la.ClassicSteps(1e-3, 0.1))


@functools.cache
def pendulum():
    return la.models.double_pendulum().build()


@functools.cache
def robot():
    return make.random_tree(["free", "spherical", "revolute"], np.random.default_rng(1)).build()


def high(model):
    return model.state([2.5, 1.5], t=2.0)


def density(model, state, tolerance=1e-3, most=0.1):
    return step_density(model.system, state.t, state.q, state.v, tolerance, most)


def assert_same(a, b):
    """Two runs agree to the last bit, with their step control."""
    for name in ("t", "q", "v", "dt"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert all(np.array_equal(a.memory[key], b.memory[key]) for key in a.memory)
    assert a.pace.last == b.pace.last


# --- density of steps -------------------------------------------------------------------------------------------------
def test_density_by_its_definition():
    """On a mass at a spring acceleration and jerk are known: a = -k x, j = -k v."""
    m = la.Mechanism("spring", gravity=(0, 0, 0))
    m.add_body("mass", mass=2.0, inertia=(1, 1, 1))
    m.add_joint("slide", "prismatic", parent="world", child="mass", axis=(1, 0, 0), stiffness=8.0)
    model, (x, v, tolerance, most) = m.build(), (0.3, -0.7, 0.01, 0.2)
    Q4 = most**-4 + (4 * x / tolerance) ** 2 + (4 * abs(v) / tolerance) ** (4 / 3)
    by_time = 32 * x * v / tolerance**2 + 4 / 3 * (4 / tolerance) ** (4 / 3) * v * (-4 * x) * abs(v) ** (-2 / 3)
    Q, G = density(model, model.state([x], [v]), tolerance, most)
    assert pytest.approx(Q4**0.25, rel=1e-12) == Q  # measured 1.3e-14
    assert pytest.approx(by_time / Q4 / 4, rel=1e-6) == G  # measured 1.7e-8


@pytest.mark.parametrize("model", [pendulum, robot])
def test_growth_is_that_of_the_density(model):
    """G is the slope of ln Q along the motion, on balls and free joints too, and both have their symmetry."""
    model = model()
    x0 = model.state(*make.random_state(model, np.random.default_rng(3)))
    Q, G = density(model, x0)
    h = 1e-4
    ahead, behind = (la.Adaptive(1e-13, 1e-13).step(model, model.state(x0.q, s * x0.v), h) for s in (1.0, -1.0))
    slope = (np.log(density(model, ahead)[0]) - np.log(density(model, behind)[0])) / (2 * h)
    assert pytest.approx(slope, rel=1e-5) == G  # measured 7e-8 and 3e-8
    back = density(model, model.state(x0.q, -x0.v))
    assert back == pytest.approx((Q, -G), rel=1e-12)  # measured 0


def test_at_rest_without_forces_steps_are_the_longest():
    model = la.Mechanism("free", gravity=(0, 0, 0))
    model.add_body("body", mass=1.0, inertia=(1, 2, 2))
    model.add_joint("root", "free", parent="world", child="body")
    model = model.build()
    assert density(model, model.state(), most=0.25) == (4.0, 0.0)


# --- reversal ---------------------------------------------------------------------------------------------------------
def there_and_back(control, method):
    """Largest difference of the steps on the way back, and of the state at the end."""
    model, idle = pendulum(), Control(np.zeros((0, 2)))
    x0 = high(model)
    memory = method.start(model, x0)
    there = paced_rollout(Pace(control, 1e9), model, method, memory, 0.0, 0, 300, 10**6, idle)
    # turned round: what the controller would do next is what it did last
    q, v = method.state(model, memory)
    _, last, _ = control.next(model, there.now, q, v, there.pace.last)
    memory = method.start(model, model.state(q, -v))
    back = paced_rollout(Pace(control, 1e9, last), model, method, memory, 0.0, 0, 300, 10**6, idle)
    q, v = method.state(model, memory)
    steps = np.abs(back.lengths[::-1] / there.lengths - 1).max()
    return steps, max(np.abs(q - x0.q).max(), np.abs(v + x0.v).max())


@pytest.mark.parametrize("order", [2, 4])
def test_reversible_steps_go_back_the_way_they_came(order):
    steps, state = there_and_back(la.ReversibleSteps(1e-3, 0.1), la.Galerkin(order))
    assert steps < 1e-6  # measured 5e-9 and 4e-8
    assert state < 1e-6  # measured 2e-9 and 8e-8
    # the classic ones do not
    steps, state = there_and_back(la.ClassicSteps(1e-3, 0.1), la.Galerkin(order))
    assert steps > 1e-2  # measured 0.17 and 0.17
    assert state > 1e-2  # measured 0.10 and 0.10


# --- energy -----------------------------------------------------------------------------------------------------------
def test_energy_of_an_eccentric_orbit():
    """Reversible: a band without drift. Classic: a drift that leaves the band."""
    model, x0 = orbit()
    results = {}
    for control in (la.ReversibleSteps(2e-2, 0.4), la.ClassicSteps(2e-2, 0.4)):
        run = la.simulate(model, x0, dt=control, duration=30 * np.pi, method=la.Galerkin(4))
        results[control.name] = drift_and_band(energy_error(run))
        assert run.dt.max() / run.dt.min() > 5
        # the run ends with the first step that reaches its time
        assert run.t[-2] < 30 * np.pi <= run.t[-1]
    drift, band = results["reversible"]
    assert drift < 0.01 * band  # measured 6e-5 of it
    drift, band = results["classic"]
    assert drift > 0.5 * band  # measured 2.2 times


# --- cutting and resuming ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("control", CONTROLS, ids=lambda c: c.name)
@pytest.mark.parametrize("name", METHODS)
def test_resumed_run_is_identical(control, name, tmp_path):
    model, method = pendulum(), METHODS[name][0]
    whole = la.simulate(model, high(model), dt=control, duration=0.5, method=method, save_every=3)
    half = la.simulate(model, high(model), dt=control, duration=0.25, method=method, save_every=3)
    assert 2.25 <= half.t[-1] < 2.25 + half.dt[-1]
    half.save(tmp_path / "half.npz")
    loaded = la.Trajectory.load(tmp_path / "half.npz")
    assert_same(loaded, half)
    assert repr(loaded.pace.steps) == repr(control)
    for first in (half, tmp_path / "half.npz"):
        again = la.resume(first, 0.25)
        assert_same(again, whole)
        assert again.report.counters == whole.report.counters
        assert again.report.dt_range == [whole.dt.min(), whole.dt.max()]


def test_chunks_do_not_matter(monkeypatch):
    import sys

    settings = {"dt": CONTROLS[0], "duration": 0.3, "method": la.Galerkin(2), "save_every": 4}
    whole = la.simulate(pendulum(), high(pendulum()), **settings)
    monkeypatch.setattr(sys.modules["leastaction.run.simulate"], "_next_size", lambda *_: 7)
    assert_same(la.simulate(pendulum(), high(pendulum()), progress=True, **settings), whole)


def test_interrupted_run_goes_on(tmp_path):
    model, path = pendulum(), tmp_path / "run.npz"

    def breaking(t, state):
        if t > 2.2:
            raise KeyboardInterrupt
        return np.zeros(2)

    def idle(t, state):
        return np.zeros(2)

    settings = {"dt": CONTROLS[0], "method": la.Galerkin(2)}
    with pytest.raises(KeyboardInterrupt):
        la.simulate(model, high(model), duration=0.5, control=breaking, checkpoint=path, checkpoint_every=0, **settings)
    kept = la.Trajectory.load(path)
    assert 0 < kept.steps == len(kept.dt)
    assert kept.t[-1] < 2.5
    # what is left is counted from where it stopped
    again = la.resume(path, 2.5 - kept.t[-1], control=idle)
    assert_same(again, la.simulate(model, high(model), duration=0.5, control=idle, **settings))


def test_no_steps():
    run = la.simulate(pendulum(), dt=CONTROLS[0], duration=0.0)
    assert (run.steps, len(run.t), run.dt.shape) == (0, 1, (0,))


def test_given_steps_repeat_the_run():
    """The steps of a controlled run, given as an array, are the same run."""
    run = la.simulate(pendulum(), high(pendulum()), dt=CONTROLS[0], duration=0.3, method=la.Galerkin(4))
    again = la.simulate(pendulum(), high(pendulum()), dt=run.dt, method=la.Galerkin(4))
    assert np.array_equal(again.t, run.t)
    assert np.array_equal(again.q, run.q)


# --- what may be typed wrong, and what can fail -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0, 0.1), "ReversibleSteps: tolerance"),
        ((np.nan, 0.1), "ReversibleSteps: tolerance"),
        ((1e-3, -1.0), "ReversibleSteps: most"),
        ((1e-3, 0.1, 0.2), r"least \(0\.2 s\) must be below most"),
        ((1e-40, 0.1), "tolerance must lie between"),
        (("a", 0.1), "expected a number"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(la.ModelError, match=words):
        la.ReversibleSteps(*arguments)


def test_bad_uses():
    with pytest.raises(la.ModelError, match="under step control, duration: expected a number, got None"):
        la.simulate(pendulum(), dt=CONTROLS[0])
    with pytest.raises(la.ModelError, match="under step control their number is not known; give a function"):
        la.simulate(pendulum(), dt=CONTROLS[0], duration=0.1, control=np.zeros((10, 2)))
    run = la.simulate(pendulum(), dt=CONTROLS[0], duration=0.1)
    with pytest.raises(la.ModelError, match="this run has a step control; give a duration"):
        la.resume(run, dt=[0.1])


def test_steps_that_get_too_short_stop_the_run():
    control = la.ReversibleSteps(1e-3, 0.1, least=0.006)
    with pytest.raises(la.ConvergenceError, match="asks for a step of") as caught:
        la.simulate(pendulum(), high(pendulum()), dt=control, duration=5.0, method=la.Galerkin(4))
    run = caught.value.run
    assert run.dt.min() >= 0.006
    assert np.isfinite(run.q).all()
    kept = la.simulate(pendulum(), high(pendulum()), dt=control, duration=5.0, method="galerkin:4", on_failure="keep")
    assert np.array_equal(kept.q, run.q)


def test_motion_that_is_not_followed_stops_the_run():
    """A tolerance of metres makes steps that know nothing of the motion."""
    with pytest.raises(la.ConvergenceError):
        la.simulate(pendulum(), high(pendulum()), dt=la.ReversibleSteps(3.0, 5.0), duration=500.0, method="rk4")


def test_forces_that_are_not_finite():
    m = la.models.pendulum()
    m.add_force(la.PointForce("bob", (0, 0, -1), lambda t: (1e200 if t > 0.3 else 0.0, 0, 0)))
    with pytest.raises(la.ConvergenceError, match="finite") as caught:
        la.simulate(m.build(), dt=CONTROLS[0], duration=1.0, method="rk4")
    assert caught.value.run.steps > 0
    assert np.isfinite(caught.value.run.q).all()


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "magic"},
        {"kind": 3},
        {"options": {"tolerance": 1.0}},
        {"options": {"tolerance": -1.0, "most": 1.0, "least": 0.0}},
        {"goal": "soon"},
        {"last": -1.0},
        {"more": 1},
        5,
    ],
)
def test_damaged_file(change, tmp_path):
    path = tmp_path / "run.npz"
    la.simulate(pendulum(), dt=CONTROLS[0], duration=0.1).save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    meta = json.loads(str(arrays["meta"]))
    meta["steps_by"] = {**meta["steps_by"], **change} if isinstance(change, dict) else change
    np.savez(path, **{**arrays, "meta": np.array(json.dumps(meta))})
    with pytest.raises(la.ModelError, match=r"run\.npz: (step control|ReversibleSteps)"):
        la.Trajectory.load(path)
