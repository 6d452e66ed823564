"""Maximal coordinates on smooth motion: against Galerkin, momenta, loops, constraints, springs, starts."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference
from leastaction.model.couplings import common_ancestor, elimination
from leastaction.papers.common import pendulum
from leastaction.reference import samples as make
from leastaction.tree.layout import ADDED, NOWHERE, STAYS, TURNED

TIGHT = la.Newton(1e-13)


def bounded(run, share):
    """Whether the energy has a band of at most ``share`` of its kinetic part and no trend over it."""
    e = run.energy.total
    band = np.ptp(e)
    half = len(e) // 2
    return band < share * run.energy.kinetic.max() and abs(e[:half].mean() - e[half:].mean()) < 0.5 * band


def test_same_motion_as_galerkin_to_its_order():
    model = la.models.chain(6).build()
    state = model.state(0.4 * np.arange(6), np.ones(6))
    exact = la.simulate(model, state, dt=1e-3, duration=0.2, method=la.Galerkin(4))
    errors = [
        np.abs(la.simulate(model, state, dt=dt, duration=0.2, method=la.Maximal()).q[-1] - exact.q[-1]).max()
        for dt in (4e-3, 2e-3, 1e-3)
    ]
    slope = np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0]
    assert abs(slope - 2) < 0.02  # measured 1e-3


def test_keeps_momenta():
    rng = np.random.default_rng(5)
    m = make.random_tree(["free", "spherical", "revolute", "universal"], rng)
    m.gravity = np.zeros(3)
    model = m.build()
    run = la.simulate(model, model.state(*make.random_state(model, rng)), dt=0.01, duration=1.0, method=la.Maximal())
    for kept in (run.momentum.linear, run.momentum.angular):
        assert np.abs(kept - kept[0]).max() < 2e-12 * np.abs(kept).max()  # measured 4e-13


def test_one_step_is_symplectic_and_symmetric():
    """The step map keeps the canonical form, and a step back leads to the start."""
    model = la.models.chain(3, joint="revolute").build()
    method, dt = la.Maximal(solver=la.Newton(1e-14)), 0.02
    q, v = np.array([0.3, -0.7, 0.9]), np.array([1.0, -2.0, 0.5])

    def step(z):
        # (q, p) to (q, p)
        rates = np.linalg.solve(la.mass_matrix(model, z[:3]), z[3:])
        end = method.step(model, model.state(z[:3], rates), dt)
        return np.concatenate([end.q, la.mass_matrix(model, end.q) @ end.v])

    z = np.concatenate([q, la.mass_matrix(model, q) @ v])
    e = 1e-5
    A = np.column_stack([(step(z + e * d) - step(z - e * d)) / (2 * e) for d in np.eye(6)])
    J = np.block([[np.zeros((3, 3)), np.eye(3)], [-np.eye(3), np.zeros((3, 3))]])
    assert np.abs(A.T @ J @ A - J).max() < 2e-9  # measured 6e-11, error of the differences
    there = method.step(model, model.state(q, v), dt)
    back = method.step(model, model.state(there.q, -there.v), dt)
    assert np.abs(back.q - q).max() < 1e-13  # measured 3e-16
    assert np.abs(back.v + v).max() < 1e-12  # measured 2e-14


def test_an_hour_of_a_double_pendulum():
    """Energy in a band without a trend, after 360 000 steps."""
    model = la.models.double_pendulum().build()
    run = la.simulate(model, model.state([1.0, 0.5]), dt=0.01, duration=3600.0, method=la.Maximal(), save_every=20)
    assert bounded(run, 0.2)


def test_start_of_the_papers_is_of_first_order():
    model = la.models.double_pendulum().build()
    state = model.state([1.2, 0.9], [1.0, -2.0])
    exact = la.simulate(model, state, dt=1e-3, duration=0.4, method=la.Galerkin(4)).q[-1]
    method = la.Maximal(start="seed")
    assert method.order == 1
    errors = [
        np.abs(la.simulate(model, state, dt=dt, duration=0.4, method=method).q[-1] - exact).max()
        for dt in (4e-3, 2e-3, 1e-3)
    ]
    slope = np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0]
    assert abs(slope - 1) < 0.1  # measured 0.002


@pytest.mark.parametrize("stiffness", [1e2, 1e6])
def test_stiff_joint_springs_are_stable(stiffness):
    """A spring a thousand times faster than the step neither blows up nor gains energy."""
    m = la.models.pendulum()
    joint = next(iter(m.joints.values()))
    joint.stiffness = stiffness
    model = m.build()
    run = la.simulate(model, model.state([0.01]), dt=0.01, duration=2.0, method=la.Maximal())
    assert np.abs(run.q).max() < 0.0101  # measured 0.01


def test_springs_between_bodies_couple_them_exactly():
    """Two bodies joined by a stiff spring: quadratic convergence, so few iterations; and the order of the method."""
    m = la.Mechanism("dumb-bell", gravity=(0, 0, 0))
    for name in "ab":
        m.add_body(name, mass=1.0, inertia=(0.01, 0.02, 0.03))
        m.add_joint(f"j{name}", "free", parent="world", child=name)
    m.add_force(la.PointSpring("a", (0.1, 0, 0), "b", (-0.1, 0, 0), stiffness=1e5, damping=1.0, rest_length=0.5))
    model = m.build()
    state = model.state({"jb": [0.75, 0, 0, 1, 0, 0, 0]}, {"ja": [0, 0, 1, 0, 0.2, 0]})
    run = la.simulate(model, state, dt=0.005, duration=0.5, method=la.Maximal())
    assert run.report.counters["iterations"] <= 6 * run.report.steps  # measured 3.2
    for kept in (run.momentum.linear, run.momentum.angular):
        assert np.abs(kept - kept[0]).max() < 1e-11  # measured 5e-12


def bricard():
    model = la.models.bricard().build()
    return model, la.project(model, model.state(v=np.ones(model.nv)))


def four_bar():
    model = la.models.four_bar().build()
    return model, la.project(model, model.state(v=[3.0, 0.0, 0.0]))


@pytest.mark.parametrize("build", [four_bar, bricard])
def test_loops_stay_closed(build):
    """Redundant rows do no harm, through singular configurations too."""
    model, state = build()
    run = la.simulate(model, state, dt=0.01, duration=10.0, method=la.Maximal(), save_every=5)
    assert run.constraint_error.max() < 1e-10  # measured 4e-14
    assert bounded(run, 0.2)


def test_loops_that_share_bodies():
    """A ladder of four-bars: every rung belongs to two loops."""
    model = ladder(4)
    state = la.project(model, model.state(v=np.ones(model.nv)))
    run = la.simulate(model, state, dt=0.005, duration=1.0, method=la.Maximal())
    exact = la.simulate(model, state, dt=0.005, duration=1.0, method=la.Galerkin(4))
    assert run.constraint_error.max() < 1e-10  # measured 4e-16
    assert np.abs(difference(model, exact.q[-1], run.q[-1])).max() < 2e-3  # measured 3e-4


def ladder(rungs):
    """Parallelograms in a row, each hung on the one before; hinges along y, all loops closed by full hinges."""
    m = la.Mechanism("ladder")
    for side, x in (("l", 0.0), ("r", 0.4)):
        for k in range(rungs):
            m.add_body(f"{side}{k}", mass=0.5, com=(0, 0, -0.1), inertia=(0.002, 0.002, 1e-4))
            parent = "world" if k == 0 else f"{side}{k - 1}"
            place = la.pose(xyz=(x, 0, 0)) if k == 0 else la.pose(xyz=(0, 0, -0.2))
            m.add_joint(
                f"j{side}{k}", "revolute", parent=parent, child=f"{side}{k}", axis=(0, 1, 0), parent_frame=place
            )
    for k in range(rungs):
        m.add_body(f"rung{k}", mass=0.3, com=(0.2, 0, 0), inertia=(1e-4, 0.004, 0.004))
        end = la.pose(xyz=(0, 0, -0.2))
        m.add_joint(f"a{k}", "revolute", parent=f"l{k}", child=f"rung{k}", axis=(0, 1, 0), parent_frame=end)
        m.add_joint(
            f"b{k}", "revolute", parent=f"r{k}", child=f"rung{k}", axis=(0, 1, 0), parent_frame=end,
            child_frame=la.pose(xyz=(0.4, 0, 0)),
        )  # fmt: skip
    return m.build()


def test_rotation_beyond_a_right_angle_is_refused_by_body():
    m = la.Mechanism("top", gravity=(0, 0, 0))
    m.add_body("rotor", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("spin", "spherical", parent="world", child="rotor")
    model = m.build()
    with pytest.raises(la.ConvergenceError):
        la.simulate(model, model.state(v=[0, 0, 120.0]), dt=0.01, duration=0.1, method=la.Maximal())
    # close below it works
    run = la.simulate(model, model.state(v=[0, 0, 90.0]), dt=0.01, duration=0.1, method=la.Maximal())
    assert run.v[-1, 2] == pytest.approx(90.0)


def test_bad_arguments():
    for options, word in [({"order": 3}, "order"), ({"start": "naive"}, "start")]:
        with pytest.raises(la.ModelError, match=word):
            la.Maximal(**options)
    with pytest.raises(la.UnsupportedError, match="RIQN"):
        la.Maximal(solver=la.RIQN())
    with pytest.raises(la.ModelError, match="warm"):
        la.InteriorPoint(barrier=1e-3, warm=1e-6)


def test_plan_of_the_elimination():
    """A chain of three with a loop from its end to its first body: multipliers come right before that body."""
    assert common_ancestor([0, 0, 1, 2, 1], [3, 4]) == 1
    plan = elimination([0, 0, 1, 2], [], [(0, 5, [1, 3])])
    assert plan["order"].tolist() == [[3, 0], [2, 0], [4, 1], [1, 0]]
    assert plan["near"][plan["first"][2] : plan["first"][3]].tolist() == [4]
    # row 3 hands its coupling to row 2 in the same place; row 1 has one already, so that of row 2 is added to it
    slot, first = plan["slot"], plan["first"]
    assert slot[3, 4] == slot[2, 4] != slot[1, 4]
    assert plan["moves"][first[3]].tolist() == [slot[3, 4], slot[3, 4], STAYS]
    assert plan["moves"][first[2]].tolist() == [slot[2, 4], slot[1, 4], ADDED]
    assert plan["moves"][first[4]].tolist() == [slot[1, 4], NOWHERE, NOWHERE]
    # the diagonal block of the multipliers twice, then that of row 1
    assert plan["fill"][:, 2].tolist() == [4, 4, 1]
    # a body between rows 2 and 3 of two branches: what is left of row 4 is kept in the axes of row 3
    plan = elimination([0, 0, 1, 1, 2], [(4, 3)], [])
    assert plan["moves"][plan["first"][4]].tolist()[1:] == [plan["slot"][3, 2], TURNED]


def test_refuses_an_open_loop_by_name():
    model = la.models.four_bar().build()
    with pytest.raises(la.ModelError, match="project"):
        la.simulate(model, model.state([0.3, 0.0, 0.0]), dt=0.01, duration=0.1, method=la.Maximal())


def test_a_long_chain_at_a_wide_tolerance():
    """A tolerance relative to the momentum of 100 links says little of the last one: guesses need an iteration."""
    model, start = pendulum(100), np.zeros(100)
    start[0] = 0.3
    run = la.simulate(model, model.state(start), dt=0.01, duration=10.0, method=la.Maximal(solver=la.Newton(1e-6)))
    # measured 5e-6 of what swings; 1e-2 and a failure after 6.2 s with guesses that are accepted as they are
    assert np.ptp(run.energy.total) < 5e-5 * np.ptp(run.energy.kinetic)


def test_no_tolerance_depends_on_units():
    # the same motion with lengths, masses and times of other sizes: the same angles and the same iterations
    ends, iterations = [], []
    for scale in (1.0, 0.1, 10.0):
        model = pendulum(2, length=scale**2, mass=scale**3)
        start = model.state(q=[np.pi / 2, 0.3])
        run = la.simulate(model, start, dt=0.02 * scale, duration=3.0 * scale, method=la.Maximal())
        ends.append(run.q[-1])
        iterations.append(run.report.counters["iterations"])
    assert np.ptp(ends, axis=0).max() < 1e-10  # measured 2e-13
    assert np.ptp(iterations) <= 2  # measured 0
