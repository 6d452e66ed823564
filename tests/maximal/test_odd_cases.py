"""Maximal at the edge of what can be asked of it."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.maximal.full_system.plan import planner_of
from leastaction.maximal.method import couplings


def arm(limits):
    """A heavy arm on a hinge; with the form of the kernels that other tests compile."""
    m = la.Mechanism("arm")
    m.add_body("arm", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.1, 0.01))
    m.add_joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), limits=limits)
    m.enforce_limits()
    m.add_force(la.PointForce("arm", np.zeros(3), np.zeros(3)))
    return m.build()


@pytest.mark.parametrize("at", [0.2, -3.0, 1e4])
def test_limits_that_leave_no_room_hold_the_joint(at):
    """The lower limit is the upper one."""
    model = arm((at, at))
    run = la.simulate(model, model.state({"hinge": at}), dt=0.01, duration=0.2, method=la.Maximal())
    assert np.abs(run.q - at).max() < 1e-12 * max(1.0, abs(at))  # measured 5e-13


def test_a_start_on_a_limit_may_leave_it_or_press_on_it():
    model = arm((-0.1, 0.3))
    for rate in (0.0, 5.0, -1.0):
        run = la.simulate(
            model, model.state({"hinge": 0.3}, {"hinge": rate}), dt=0.01, duration=0.1, method=la.Maximal()
        )
        assert run.q.max() <= 0.3 + 1e-9
        assert run.q[-1, 0] < 0.3


def test_a_free_joint_that_closes_a_loop_has_no_equations():
    m = la.Mechanism("two")
    for name in ("a", "b"):
        m.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
        m.add_joint(f"root {name}", "free", parent="world", child=name)
    m.add_joint("nothing", "free", parent="a", child="b")
    model = m.build()
    plan = planner_of(model, 1, False).plan(couplings(model), (), ())
    assert plan.size == 12
    assert len(plan.graph.order) == 2


@pytest.mark.parametrize("options", [{"order": np.array([2, 4])}, {"start": np.array([1, 2])}, {"linear": ["graph"]},
                                     {"linear": np.array(["graph", "dense"])}, {"loops": np.zeros(2)}])  # fmt: skip
def test_options_of_the_wrong_kind_are_refused_by_name(options):
    with pytest.raises(la.ModelError, match=f"Maximal: {next(iter(options))} must be"):
        la.Maximal(**options)


def test_whole_numbers_of_numpy_are_numbers():
    assert la.Maximal(np.int64(2), cone=np.int64(8)).options() == la.Maximal(2, cone=8).options()
