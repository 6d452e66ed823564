"""Closed loops with ``Maximal`` over many seconds at dt = 0.01: redundant, shared, and through singular positions."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.methods.base import Clock, Control
from leastaction.papers.bruedigam_chains import links, segments

DT = 0.01


def crank_rates(model):
    """Rates (nv,) of a mechanism of one freedom at q = 0 when its first joint turns at 1 rad/s."""
    from leastaction.dynamics import entries

    m, q, v = model.constraint_size, model.neutral()[None].copy(), np.zeros((1, model.nv))
    gap, rate, J = np.zeros((1, m)), np.zeros((1, m)), np.zeros((1, m, model.nv))
    entries.loop_gaps(model.system, q, v, gap, rate, J)
    _, sizes, rows = np.linalg.svd(J[0])
    assert sizes[model.nv - 2] > 1e-3 > 1e-9 > sizes[model.nv - 1]
    return rows[-1] / rows[-1][0]


def check(run, gap, energy):
    """All steps done, loops closed to ``gap``, energy within a part of what kinetic energy swings by."""
    assert run.report.failure is None
    assert run.constraint_error.max() < gap
    total = run.energy.total
    assert np.ptp(total) < energy * np.ptp(run.energy.kinetic)


def test_legs_of_a_strandbeest():
    # 30 rows of rank 12; two turns of the crank in a second at first
    model = la.models.strandbeest().build()
    start = model.state(v=2 * np.pi * crank_rates(model))
    run = la.simulate(model, start, dt=DT, duration=3.0, method=la.Maximal())
    check(run, 1e-11, 0.03)  # measured 2e-13, 0.007
    assert np.ptp(run.q[:, model.joints["crank_hinge"].q]) > 2 * np.pi


def test_rates_along_the_graph_are_those_of_the_dense_projection():
    # redundant loops that share bodies, a ball with a rotor, and a velocity constraint that is not zero at rest
    m = la.models.n_four_bar(3)
    m.add_body("bob", mass=0.5, com=(0.0, 0.1, -0.2), inertia=(0.01, 0.01, 0.01))
    m.add_joint("ball", "spherical", parent="bar2", child="bob", armature=0.02)
    row = np.array([[0.3, -1.0, 0.2, 0.5, 0.0, 0.1]])
    m.add_constraint(la.Constraint(("bob",), lambda p, v: row @ v[0] - 0.4, lambda p, v: row, kind="velocity"))
    model, method = m.build(), la.Maximal()
    state = la.project(model, model.state(v={"base0": -1.0, "ball": [0.3, 0.2, -0.5]}))
    memory, still = method.start(model, state), Control(np.zeros((0, model.nv)))
    chunk = method.rollout(model, memory, Clock(0.0, DT), 0, 5, 1, still)
    q, v = method.state(model, memory)
    assert np.abs(chunk.q[-1] - q).max() == 0.0
    assert np.abs(chunk.v[-1] - v).max() < 1e-10 * np.abs(v).max()  # measured 5e-12; 4e-16 with loops alone


@pytest.mark.slow
def test_bricard():
    model = la.models.bricard().build()
    run = la.simulate(model, dt=DT, duration=10.0, method=la.Maximal())
    check(run, 1e-12, 1e-3)  # measured 5e-15, 9e-5


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 5, 10, 20, 40])
def test_n_four_bar_turns_through_its_singular_positions(n):
    model = la.models.n_four_bar(n).build()
    rates = {**{f"base{i}": -1.0 for i in range(n + 1)}, **{f"bar{i}_hinge": 1.0 for i in range(1, n + 1)}}
    run = la.simulate(model, model.state(v=rates), dt=DT, duration=10.0, method=la.Maximal())
    check(run, 1e-10, 2e-3)  # measured at most 3e-12, 6e-4
    # five turns, each through both flat positions; all rods stay parallel
    angles = np.stack([run.q[:, model.joints[f"base{i}"].q].ravel() for i in range(n + 1)])
    assert np.ptp(angles[0]) > 30  # measured 31.6 to 31.9
    assert np.abs(angles - angles[0]).max() < 1e-6  # measured at most 3e-8


@pytest.mark.slow
@pytest.mark.parametrize("tilt", [0.0, 0.5])
@pytest.mark.parametrize(
    ("n", "duration", "energy"), [(1, 10, 0.01), (2, 10, 0.02), (4, 10, 0.05), (8, 10, 0.05), (16, 10, 0.2)]
)
def test_chains_of_segments(n, duration, energy, tilt):
    model = segments(n, tilt=tilt)
    run = la.simulate(model, dt=DT, duration=float(duration), method=la.Maximal())
    check(run, 1e-9, energy)  # measured at most 3e-11; 0.0011, 0.0071, 0.025, 0.023, 0.090
    # both halves of a segment lie over each other again and again: the opening changes its sign
    opening = run.q[:, model.joints["left_1_hinge"].q] - run.q[:, model.joints["right_1_hinge"].q] + np.pi / 2
    assert np.count_nonzero(np.diff(np.sign(opening.ravel()))) >= 2


def test_a_guess_that_misleads_does_not_lead_to_another_motion():
    # at 9.01 s the last steps extrapolate to 0.6 rad off; a line search from there ends with half as much energy again
    model = links(20, "revolute", closed=True)
    run = la.simulate(model, dt=DT, duration=10.0, method=la.Maximal())
    check(run, 1e-9, 0.3)  # measured 2e-11, 0.153; up to 0.85 on the wrong way
    assert run.report.counters["backtracks"] > 0


def test_short_steps_through_a_singular_position():
    # the multipliers' matrix has a small negative eigenvalue where one step leads from one side to the other
    model = la.models.n_four_bar(2).build()
    rates = {**{f"base{i}": -1.0 for i in range(3)}, **{f"bar{i}_hinge": 1.0 for i in (1, 2)}}
    run = la.simulate(model, model.state(v=rates), dt=2e-4, duration=1.0, method=la.Maximal())
    check(run, 1e-12, 1e-6)  # measured 4e-15, 2.5e-7
    angles = np.stack([run.q[:, model.joints[f"base{i}"].q].ravel() for i in range(3)])
    assert angles[0, -1] < -3.0  # measured -3.3
    assert np.abs(angles - angles[0]).max() < 1e-8  # measured 2e-11


@pytest.mark.parametrize("name", ["maximal:4", pytest.param("galerkin:6", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("dt", "duration"), [(0.01, 100.0), (0.001, 25.0)])
def test_higher_orders_go_through_singular_positions(name, dt, duration):
    # Maximal(4) stopped at 86.18 s and 20.139 s
    model = la.models.n_four_bar(2).build()
    rates = {**{f"base{i}": -1.0 for i in range(3)}, **{f"bar{i}_hinge": 1.0 for i in (1, 2)}}
    run = la.simulate(model, model.state(v=rates), dt=dt, duration=duration, method=name)
    check(run, 1e-10, 1e-5)  # measured at most 7e-12, 1e-6
    angles = np.stack([run.q[:, model.joints[f"base{i}"].q].ravel() for i in range(3)])
    assert np.abs(angles - angles[0]).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("n", "dt"), [(32, 0.005), (64, 0.0025)])
def test_long_chains_of_segments(n, dt):
    # they whip to 120 rad/s: at 10 ms, from 4.2 s (32 segments) and 2.6 s (64) on, a step has no solution: followed
    # from short steps on, it ends in a fold at 9.73 and 9.76 ms
    model = segments(n, tilt=0.5)
    run = la.simulate(model, dt=dt, duration=10.0, method=la.Maximal())
    check(run, 1e-9, 0.03)  # measured 1.7e-10; 0.015 and 0.009
