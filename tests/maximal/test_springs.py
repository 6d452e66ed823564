"""Springs of balls and of free joints under Maximal: implicit at any stiffness, of second order, for every solver."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract

KINDS = {"spherical": 3, "planar_free": 5, "cylindrical_free": 4, "free": 6}


@functools.cache
def sprung(kind: str, moving: bool, stiffness: float, damping: float = 0.0) -> la.Model:
    """A body with its mass beside its frame on a joint with unequal springs, behind a hinge if ``moving``; another one
    hangs on it by a soft ball.
    """
    m = la.Mechanism("sprung")
    if moving:
        m.add_body("arm", mass=2.0, inertia=(0.2, 0.15, 0.1), com=(0.1, 0, -0.2))
        m.add_joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0))
    m.add_body("body", mass=1.0, inertia=(0.1, 0.07, 0.12), com=(0.1, -0.05, 0.2))
    each = np.linspace(1, 2, KINDS[kind])
    m.add_joint(
        "joint", kind, parent="arm" if moving else "world", child="body", stiffness=stiffness * each,
        damping=damping * each, parent_frame=la.pose((0, 0.1, -0.4), (0.3, 0.2, 0.1)),
    )  # fmt: skip
    m.add_body("end", mass=0.5, inertia=(0.02, 0.02, 0.01), com=(0, 0, -0.2))
    m.add_joint("ball", "spherical", parent="body", child="end", parent_frame=la.pose((0, 0, -0.3)), stiffness=5.0)
    return m.build()


def thrown(model: la.Model, seed: int = 0) -> la.State:
    return model.state(v=np.random.default_rng(seed).normal(size=model.nv))


def run_of(model: la.Model, state: la.State, duration: float, dt: float = 0.01, **options: str) -> la.Trajectory:
    return la.simulate(model, state, dt=dt, duration=duration, method=la.Maximal(**options))


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_energy_stays_in_a_band_at_any_stiffness(kind, moving):
    """Up to a thousand times what an explicit step would bear, also where the mass lies beside the frame."""
    for stiffness in (1e3, 1e4, 1e5, 1e6):
        model = sprung(kind, moving, stiffness)
        run = run_of(model, thrown(model), 4.0)
        energy = run.energy.total
        assert np.abs(energy - energy[0]).max() < 0.05  # measured 0.02
        # the direction is exact: measured 3.0
        assert run.report.counters["iterations"] < 3.3 * run.report.steps
        assert run.report.counters["backtracks"] == 0


@pytest.mark.parametrize("speed", [1.0, 50.0])
def test_energy_of_a_lone_ball_and_a_lone_free_body(speed):
    """At 50 rad/s a spring of 1e4 N m/rad turns the body back and forth by 0.29 rad in each step."""
    m = la.Mechanism("alone", gravity=(0, 0, 0))
    for name, kind in (("ball", "spherical"), ("free", "free")):
        m.add_body(name, mass=1.0, inertia=(0.1, 0.07, 0.12), com=(0, 0, 0))
        m.add_joint(name, kind, parent="world", child=name)
    for stiffness in (1e3, 1e4, 1e5, 1e6):
        m.joints["ball"].stiffness = stiffness * np.array([1.0, 2.0, 3.0])
        m.joints["free"].stiffness = stiffness * np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
        model = m.build()
        v = speed * np.array([1.0, 0.3, -0.5])
        run = run_of(model, model.state(v={"ball": v, "free": [*v, *v]}), 10.0)
        energy = run.energy.total
        # measured 2.9e-5 at 1 rad/s, 0.006 at 50
        assert np.abs(energy / energy[0] - 1).max() < (1e-4 if speed == 1.0 else 0.02)


def test_stiff_dampers_with_the_mass_beside_the_frame():
    """The energy falls, and the direction has the dampers' couplings."""
    for moving in (False, True):
        for stiffness, damping in ((0.0, 1e4), (1e5, 1e3)):
            model = sprung("free", moving, stiffness, damping)
            run = run_of(model, thrown(model), 2.0)
            energy = run.energy.total
            assert energy.max() < energy[0] + 1e-3  # measured 0
            assert run.report.counters["iterations"] < 3 * run.report.steps  # measured 2.2


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_order_two_against_galerkin(kind, moving):
    model = sprung(kind, moving, 60.0, 0.3)
    state = thrown(model, 1)
    exact = la.simulate(model, state, dt=2e-3, duration=0.4, method=la.Galerkin(6))
    errors = []
    for steps in (100, 200, 400):
        run = run_of(model, state, 0.4, 0.4 / steps)
        errors.append((np.abs(run.q[-1] - exact.q[-1]).max(), np.abs(run.v[-1] - exact.v[-1]).max()))
    slopes = np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0]
    assert np.abs(slopes - 2).max() < 0.05  # measured 0.008
    assert errors[-1][0] < 1e-4  # measured 2.3e-5
    assert errors[-1][1] < 5e-3  # measured 1.2e-3


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_all_linear_solvers_take_the_same_steps(kind, moving):
    for stiffness in (60.0, 1e5):
        model = sprung(kind, moving, stiffness, 0.3)
        state = thrown(model, 2)
        exact = run_of(model, state, 0.2)
        for linear in ("graph", "dense", "scipy"):
            other = run_of(model, state, 0.2, linear=linear)
            assert np.abs(other.q - exact.q).max() < 1e-11  # measured 2e-13
            assert np.abs(other.v - exact.v).max() < 1e-9  # measured 2e-11


def test_momenta_of_floating_bodies_on_stiff_springs():
    """Springs between bodies that float act on both alike."""
    m = la.Mechanism("floating", gravity=(0, 0, 0))
    for name, parent, kind in (("a", "world", "free"), ("b", "a", "free"), ("c", "b", "spherical")):
        m.add_body(name, mass=1.0, inertia=(0.1, 0.07, 0.12), com=(0.1, 0.0, -0.1))
        at = la.pose((0.1, 0.2, -0.3), (0.1, 0.2, 0.3)) if parent != "world" else la.pose()
        stiffness = 0.0 if parent == "world" else 1e5
        m.add_joint(name, kind, parent=parent, child=name, parent_frame=at, stiffness=stiffness)
    model = m.build()
    run = run_of(model, thrown(model, 3), 2.0)
    for kept in (run.momentum.linear, run.momentum.angular):
        assert np.abs(kept - kept[0]).max() < 1e-10  # measured 2e-11
    energy = run.energy.total
    assert np.abs(energy - energy[0]).max() < 0.05  # of 20 J; measured 0.01


def test_time_reversal_also_past_half_a_turn():
    """The potential of a ball has a ridge half a turn from rest; a step across it is the same from either end."""
    m = la.Mechanism("ball", gravity=(0, 0, 0))
    m.add_body("ball", mass=1.0, inertia=(0.1, 0.07, 0.12))
    m.add_joint("ball", "spherical", parent="world", child="ball", stiffness=1.0)
    model = m.build()
    run = run_of(model, model.state(v=[13.0, 1.0, -4.0]), 5.0)
    angle = 2 * np.arccos(np.clip(np.abs(run.q[:, 0]), 0, 1))
    assert angle.max() > 3.0  # measured 3.141
    back = run_of(model, model.state(run.q[-1], -run.v[-1]), 5.0)
    assert np.abs(difference(model, model.neutral(), back.q[-1])).max() < 1e-9  # measured 4e-13
    # on the way it crosses the ridge nine times; measured 0.034
    assert np.abs(run.energy.total / run.energy.total[0] - 1).max() < 0.1


@pytest.mark.parametrize("linear", ["nullspace", "graph", "dense", "scipy"])
def test_springs_press_a_body_on_the_ground(linear):
    """A box on a stiff free joint, whose rest is below the ground: the ground bears the spring and the weight."""
    m = la.Mechanism("press")
    m.add_body("box", shape=la.Box((0.2, 0.2, 0.2)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="box", stiffness=(1e4, 1e4, 1e4, 1e4, 1e4, 1e5))
    m.joints["root"].rest = np.array([0, 0, 0.0999, 1, 0, 0, 0])
    m.add_ground(friction=0.5)
    model = m.build()
    state = model.state({"root": [0, 0, 0.1001, 1, 0, 0, 0]}, {"root": [0, 0, 0, 0.05, 0, 0]})
    run = run_of(model, state, 0.1, linear=linear)
    assert run.q[:, 2].min() > 0.1 - 1e-9  # measured 2e-10 above
    force = run.contacts.wrench("box")[-2]
    assert force[5] == pytest.approx(1e5 * 1e-4 + 9.81, abs=0.01)  # measured 2e-5


def test_derivative_of_a_step():
    """``linearize`` differences the residual, and its corrections end with the blocks of the springs."""
    for kind in KINDS:
        model = sprung(kind, True, 1e4, 0.3)
        n, rng, method, dt, e = model.nv, np.random.default_rng(4), la.Maximal(), 0.01, 1e-6
        state = model.state(retract(model, model.neutral(), 0.1 * rng.normal(size=n)), rng.normal(size=n))
        found, columns = la.linearize(model, method, state, None, dt).A, []
        for j in range(2 * n):
            step, ends = np.zeros(n), []
            step[j % n] = e
            for sign in (1.0, -1.0):
                q = retract(model, state.q, sign * step) if j < n else state.q
                v = state.v if j < n else state.v + sign * step
                ends.append(method.step(model, model.state(q, v), dt, None))
            columns.append(np.concatenate([difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / (2 * e))
        expected = np.array(columns).T
        assert np.abs(found - expected).max() < 1e-7 * np.abs(expected).max()  # measured 2e-9


def test_four_environments_at_once():
    model = sprung("free", False, 1e4, 0.3)
    states = [thrown(model, seed) for seed in range(4)]
    many = la.simulate_many(model, states, dt=0.01, duration=0.3, method=la.Maximal())
    assert many.lanes
    for e, state in enumerate(states):
        assert np.abs(many.q[e] - run_of(model, state, 0.3).q).max() < 1e-12  # measured 3e-15


@pytest.mark.parametrize(
    "method", [la.Maximal(), la.Maximal(4), la.Maximal(linear="dense"), la.RungeKutta(4)], ids=lambda m: m.label
)
def test_what_grows_without_bound_is_an_error(method):
    """A spring that pushes away: after a second rounding of the position is as large as the body."""
    m = la.Mechanism("repelled", gravity=(0, 0, 0))
    m.add_body("body", mass=1.0, inertia=(0.1, 0.1, 0.1))
    away = la.Law(lambda q: 1e3 * q, lambda q: 1e3 + 0 * q)
    m.add_joint("slide", "prismatic", parent="world", child="body", axis=(1, 0, 0), stiffness=away)
    model = m.build()
    with pytest.raises(la.ConvergenceError, match="grows without bound"):
        la.simulate(model, model.state([1.0]), dt=0.01, duration=6.0, method=method)
