"""Inverse kinematics: poses that can be reached are, within limits and with closed loops; others say how far off."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.run.observe import constraint_error
from leastaction.spatial import quaternion


def within(model: la.Model, q) -> bool:
    """Whether all screws and balls are within their limits."""
    for view in model.joints.values():
        joint, here = view.joint, q[view.q]
        if view.kind == "spherical":
            if 2 * np.arccos(min(1.0, abs(here[0]))) > joint.limits[0, 1] + 1e-12:
                return False
        elif view.kind != "free" and ((here < joint.limits[:, 0]) | (here > joint.limits[:, 1])).any():
            return False
    return True


def planar(lengths, limits=(None, None), kind="revolute") -> la.Mechanism:
    """Links along x that turn about z, without inertia."""
    m, parent, place = la.Mechanism("planar"), "world", 0.0
    for k, length in enumerate(lengths):
        m.add_body(f"link{k}")
        axis = {"axis": (0, 0, 1), "limits": limits} if kind == "revolute" else {"limits": limits}
        m.add_joint(f"j{k}", kind, parent=parent, child=f"link{k}", parent_frame=la.pose((place, 0, 0)), **axis)
        parent, place = f"link{k}", length
    m.add_frame("tip", parent, la.pose((place, 0, 0)))
    return m


@pytest.mark.parametrize("name", ["arm", "quadruped", "minitaur"])
def test_poses_that_can_be_reached(name):
    model = getattr(la.models, name)().build()
    last = model.body_names[-1]
    rng = np.random.default_rng(2)
    for _ in range(4):
        state = model.random(rng)
        if model.constraint_size:
            state = la.project(model, model.state())
        target = la.poses(model, state.q)[last]
        found = la.inverse_kinematics(model, {last: target})
        error = la.poses(model, found.q)[last] - target
        assert np.abs(error).max() < 1e-8  # measured 3e-13
        assert within(model, found.q)
        place, turn = found.errors[last]
        assert abs(place - np.linalg.norm(error[:3, 3])) < 1e-12  # measured 2e-32
        assert turn < 1e-9
        assert found.gap < 1e-9


def test_several_frames_of_a_floating_robot():
    """Four feet on the ground and the trunk where it is asked to be, positions and poses together."""
    model = la.models.quadruped().build()
    feet = [name for name in model.frame_names if name.endswith("_foot")]
    bent = {name: 0.8 if "thigh" in name else -1.6 for name in model.joint_names if "thigh" in name or "calf" in name}
    start = la.poses(model, bent)
    trunk = model.body_names[0]
    targets = {name: start[name][:3, 3] for name in feet}
    targets[trunk] = start[trunk] @ la.pose((0.02, 0.01, -0.03), rpy=(0.05, 0.1, -0.1))
    found = la.inverse_kinematics(model, targets, bent)
    now = la.poses(model, found.q)
    for name in feet:
        assert np.linalg.norm(now[name][:3, 3] - start[name][:3, 3]) < 1e-8  # measured 2e-13
    assert np.abs(now[trunk] - targets[trunk]).max() < 1e-8  # measured 2e-13
    assert found.starts == 1


def test_the_closed_form_of_two_links():
    """Positions of a planar arm by the law of cosines; limits choose the elbow."""
    x, y = 0.9, 0.6
    elbow = np.arccos((x * x + y * y - 1.0 - 0.49) / 1.4)
    for limits, sign in (((0.0, 3.0), 1.0), ((-3.0, 0.0), -1.0)):
        m = planar((1.0, 0.7))
        m.joints["j1"].limits = np.array([limits])
        model = m.build()
        found = la.inverse_kinematics(model, {"tip": (x, y, 0.0)})
        assert found.q[1] == pytest.approx(sign * elbow, abs=1e-8)  # measured 2e-14


def test_out_of_reach():
    model = planar((1.0, 0.7)).build()
    with pytest.raises(la.ConvergenceError, match=r"'tip' is 0.3 m and 0 rad away. .*out of reach") as caught:
        la.inverse_kinematics(model, {"tip": (2.0, 0.0, 0.0)}, starts=3)
    # the nearest one is in its state
    tip = la.poses(model, caught.value.state.q)["tip"][:3, 3]
    assert np.linalg.norm(tip - [2.0, 0.0, 0.0]) == pytest.approx(0.3, abs=1e-6)  # measured 6e-17
    # limits keep it from there, and may be left out of account
    short = planar((1.0, 0.7), (-0.2, 0.2)).build()
    with pytest.raises(la.ConvergenceError, match="within the limits from 2 starts"):
        la.inverse_kinematics(short, {"tip": (0.0, 1.7, 0.0)}, starts=2)
    found = la.inverse_kinematics(short, {"tip": (0.0, 1.2, 0.0)}, limits=False)
    assert np.abs(la.poses(short, found.q)["tip"][:3, 3] - [0, 1.2, 0]).max() < 1e-8  # measured 2e-14
    # what does not move at all
    m = planar((1.0,))
    m.add_frame("fixed", "world")
    with pytest.raises(la.ConvergenceError, match=r"'fixed' is 2 m and 0 rad away"):
        la.inverse_kinematics(m.build(), {"fixed": (0.0, 0.0, 2.0)}, starts=1)


def test_balls_keep_their_angle():
    m = planar((0.5, 0.5), (0.0, 0.6), kind="spherical")
    model = m.build()
    rng = np.random.default_rng(4)
    for _ in range(5):
        q = model.random(rng).q
        target = la.poses(model, q)["tip"]
        found = la.inverse_kinematics(model, {"tip": target})
        assert np.abs(la.poses(model, found.q)["tip"] - target).max() < 1e-8  # measured 7e-13
        assert within(model, found.q)


def test_loops_stay_closed():
    model = la.models.four_bar().build()
    closed = la.project(model, model.state())
    (name,) = model.body_names[-1:]
    # a little further along its only freedom
    moved = la.simulate(model, closed, dt=0.01, duration=0.3)
    target = la.poses(model, moved.q[-1])[name]
    found = la.inverse_kinematics(model, {name: target}, closed.q)
    assert np.abs(la.poses(model, found.q)[name] - target).max() < 1e-7  # measured 7e-13
    assert constraint_error(model, found.q[None])[0] < 1e-8  # measured 2e-13
    # a pose off its path cannot be had
    with pytest.raises(la.ConvergenceError, match="loops are open by"):
        la.inverse_kinematics(model, {name: target @ la.pose((0, 0, 0.5))}, closed.q, starts=1)


def test_where_it_starts_counts():
    """The answer is near the start: an arm with more freedoms than the target needs."""
    model = la.models.arm().build()
    start = model.random(7).q
    target = la.poses(model, start)["flange"] @ la.pose((0.001, 0.0, 0.0))
    found = la.inverse_kinematics(model, {"flange": target}, start)
    assert np.abs(found.q - start).max() < 0.02  # measured 4e-3


@pytest.mark.parametrize(
    ("targets", "options", "message"),
    [
        ({}, {}, "targets must be a dict"),
        ([1], {}, "targets must be a dict"),
        ({"tup": (0, 0, 0)}, {}, "there is no body or frame 'tup'; did you mean 'tip'"),
        ({"tip": (0, 0)}, {}, "pose of 'tip'"),
        ({"tip": (0, 0, np.nan)}, {}, "pose of 'tip'"),
        ({"tip": 2 * np.eye(4)}, {}, "pose of 'tip'"),
        ({"tip": (0, 0, 0)}, {"tolerance": 0.0}, "tolerance"),
        ({"tip": (0, 0, 0)}, {"starts": 0}, "starts"),
        ({"tip": (0, 0, 0)}, {"q": (1, 2, 3)}, "expected"),
    ],
)
def test_bad_input(targets, options, message):
    with pytest.raises(la.ModelError, match=message):
        la.inverse_kinematics(planar((1.0, 0.7)).build(), targets, **options)


class TestRandom:
    def test_within_limits_and_seeded(self):
        for name in ("arm", "quadruped", "four_bar"):
            model = getattr(la.models, name)().build()
            for seed in range(20):
                state = model.random(seed)
                assert np.array_equal(state.q, model.random(seed).q)
                assert within(model, state.q)
                assert not state.v.any()
        assert not np.array_equal(model.random(1).q, model.random(2).q)

    def test_limits_on_one_side_and_none(self):
        m = planar((1.0, 1.0, 1.0))
        m.joints["j0"].limits, m.joints["j1"].limits = np.array([[1.0, np.inf]]), np.array([[-np.inf, -1.0]])
        m.add_body("slide")
        m.add_joint("slide", "prismatic", parent="world", child="slide")
        model = m.build()
        rng = np.random.default_rng(0)
        q = np.array([model.random(rng, reach=3.0).q for _ in range(300)])
        assert (q[:, 0] >= 1).all()
        assert (q[:, 1] <= -1).all()
        assert 3.0 < np.abs(q[:, 2]).max() < np.pi
        assert 2.9 < np.abs(q[:, 3]).max() < 3.0
        with pytest.raises(la.ModelError, match="random: reach"):
            model.random(0, reach=-1.0)

    def test_rotations_are_uniform(self):
        """The mean of R^T R0 over uniform rotations is zero, and the angle has the density (1 - cos) / pi."""
        m = la.Mechanism()
        m.add_body("ball")
        m.add_joint("ball", "spherical", parent="world", child="ball")
        model, rng = m.build(), np.random.default_rng(0)
        q = np.array([model.random(rng).q for _ in range(4000)])
        R = quaternion.to_matrix(q)
        assert np.abs(R.mean(axis=0)).max() < 0.04  # measured 0.011, as 1 / sqrt(3 * 4000)
        angle = 2 * np.arccos(np.minimum(1.0, np.abs(q[:, 0])))
        assert angle.mean() == pytest.approx(np.pi / 2 + 2 / np.pi, abs=0.03)  # measured 0.007
