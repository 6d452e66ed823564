"""Dry friction in forward dynamics and joint forces: against the motion, or what holds a joint that rests."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def arm(friction: float, **joint) -> la.Model:
    """A link with 0.35 kg m^2 about its hinge, that 4.905 N m hold sideways."""
    m = la.Mechanism("arm", gravity=(0.0, -9.81, 0.0))
    m.add_body("link", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    m.add_joint("hinge", "revolute", parent="world", child="link", friction=friction, **joint)
    if joint:
        m.enforce_limits()
    return m.build()


def pair(frictions: tuple[float, float]) -> la.Model:
    m = la.Mechanism("pair", gravity=(0.0, -9.81, 0.0))
    for k in range(2):
        m.add_body(f"link{k}", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
        m.add_joint(f"joint{k}", "revolute", parent=f"link{k - 1}" if k else "world", child=f"link{k}",
                    parent_frame=la.pose((1.0 * k, 0.0, 0.0)), friction=frictions[k])  # fmt: skip
    return m.build()


def test_it_acts_against_the_motion():
    for v, sign in ((2.0, -1.0), (-2.0, 1.0)):
        a = la.forward_dynamics(arm(1.5), [0.0], [v])
        assert a == pytest.approx([(-4.905 + sign * 1.5) / 0.35], rel=1e-12)


@pytest.mark.parametrize("tau", [0.0, 4.0, 9.0, -3.0])
def test_it_holds_a_joint_that_rests_as_far_as_it_can(tau):
    """Friction of 6 N m against 4.905 N m of gravity and a torque."""
    f, load = 6.0, tau - 4.905
    a = la.forward_dynamics(arm(f), [0.0], [0.0], [tau])
    left = np.sign(load) * max(abs(load) - f, 0.0)
    assert a == pytest.approx([left / 0.35], rel=1e-9, abs=1e-12)


def test_two_joints_of_which_one_holds():
    """The inner one is held, so the outer one falls as a pendulum; neither may be held by more than its friction."""
    model = pair((100.0, 1.0))
    a = la.forward_dynamics(model, [0.0, 0.0], [0.0, 0.0])
    assert a == pytest.approx([0.0, (-4.905 + 1.0) / 0.35], rel=1e-9, abs=1e-12)
    assert la.forward_dynamics(pair((100.0, 5.0)), [0.0, 0.0], [0.0, 0.0]) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_beside_a_limit():
    """On its lower limit it is held by both, and pulled off it by what is left of the torque."""
    model = arm(2.0, limits=(0.0, 1.0))
    assert la.forward_dynamics(model, [0.0], [0.0], [0.0]) == pytest.approx([0.0], abs=1e-9)
    assert la.forward_dynamics(model, [0.0], [0.0], [5.905]) == pytest.approx([0.0], abs=1e-9)
    assert la.forward_dynamics(model, [0.0], [0.0], [7.905]) == pytest.approx([1.0 / 0.35], rel=1e-9)


def test_joint_forces_of_a_run_count_it():
    """The torque about its axis that a joint passes on is friction alone: against the motion, then what holds."""
    m = la.Mechanism("arm")
    m.add_body("link", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.1, 0.1, 0.1))
    m.add_joint("hinge", "revolute", parent="world", child="link", axis=(0, 1, 0), friction=3.0)
    model = m.build()
    run = la.simulate(model, model.state({"hinge": 1.2}), dt=0.005, duration=3.0)
    torque = run.joint_forces["hinge"][:, 1]
    moving = np.abs(run.v[:, 0]) > 1e-6
    assert moving.sum() > 50
    assert np.abs(torque[moving] + 3.0 * np.sign(run.v[moving, 0])).max() < 1e-9
    assert torque[-1] == pytest.approx(9.81 * 0.5 * np.sin(run.q[-1, 0]), abs=1e-6)
    assert abs(torque[-1]) < 3.0
