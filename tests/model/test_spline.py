"""Curves and surfaces of poses: geometry, ends, bad input, and the joint that moves along them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leastaction as la
from leastaction.model.motion import joint_motion
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict
from leastaction.spatial import se3


def frames(n=6, turn=0.6, seed=0):
    rng = np.random.default_rng(seed)
    return [la.pose(rng.normal(size=3), rpy=turn * rng.normal(size=3)) for _ in range(n)]


def surface(closed=(False, False), seed=1):
    rng = np.random.default_rng(seed)
    return la.SplineSurface(rng.normal(size=(5, 6, 6)) * [1, 1, 1, 0.4, 0.4, 0.4], closed)


def rail(spline, **options):
    m = la.Mechanism("rail")
    m.add_body("car", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("rail", "spline", parent="world", child="car", spline=spline, **options)
    return m


@pytest.mark.parametrize(
    ("spline", "s"),
    [
        (la.SplineCurve(frames()), [1.3]),
        (la.SplineCurve(frames(), closed=True), [-4.2]),
        (surface(), [1.3, 2.2]),
        (surface((True, False)), [5.7, 0.4]),
    ],
)
def test_axes_are_the_derivatives_of_the_pose(spline, s):
    s = np.array(s)
    _, S = spline.motion(s)
    for k, e in enumerate(1e-5 * np.eye(len(s))):
        twist = se3.log(np.linalg.inv(spline.pose(s - e)) @ spline.pose(s + e)) / 2e-5
        assert np.abs(twist - S[:, k]).max() < 1e-8  # measured 2e-10


def test_a_curve_of_equally_spaced_frames_is_a_screw_motion_and_a_closed_one_returns():
    step = np.array([0.1, -0.2, 0.3, 0.4, 0.5, -0.6])
    curve = la.SplineCurve([se3.exp(k * step) for k in range(7)])
    assert curve.ends == (4.0,)
    for s in (0.0, 1.4, 4.0):
        # s = 0 is the second frame here, since the frames lie on one screw
        assert np.abs(curve.pose(s) - se3.exp((1 + s) * step)).max() < 1e-13  # measured 2e-15
    ring = la.SplineCurve(frames(), closed=True)
    assert np.abs(ring.pose(0.3) - ring.pose(12.3)).max() < 1e-13  # measured 1e-14
    # positions alone make the ordinary B-spline
    values = np.random.default_rng(2).normal(size=(4, 4, 3))
    flat = la.SplineSurface(values)
    weights = np.array([1.0, 4.0, 1.0, 0.0]) / 6
    assert np.allclose(flat.pose([0, 0])[:3, 3], np.einsum("i,j,ijk->k", weights, weights, values), atol=1e-15)
    assert np.array_equal(flat.pose([0.2, 0.7])[:3, :3], np.eye(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: la.SplineCurve(frames(3)), "at least 4 control frames"),
        (lambda: la.SplineCurve("frames"), "at least 4 control frames"),
        (lambda: la.SplineCurve([*frames(4), np.full((4, 4), np.nan)]), "frame 4"),
        (lambda: la.SplineCurve(frames(), closed="yes"), "closed"),
        (lambda: la.SplineCurve([*frames(4), la.pose(rpy=(0, 0, 3.14)), la.pose()]), "frames 4 and 5 are turned"),
        (lambda: la.SplineSurface(np.zeros((3, 4, 6))), "at least 4"),
        (lambda: la.SplineSurface(np.zeros((4, 4, 5))), "values must be"),
        (lambda: la.SplineSurface(np.full((4, 4, 6), np.inf)), "values"),
        (lambda: la.SplineSurface(np.zeros((4, 4, 6)), (True, False, True)), "closed is one flag or two"),
        (lambda: rail(None), "needs spline="),
        (lambda: rail(frames()), "needs spline="),
        (
            lambda: rail(None).add_joint("j", "revolute", parent="world", child="a", spline=surface()),
            "needs spline=",
        ),
        (
            lambda: la.Mechanism().add_joint("j", "revolute", parent="world", child="a", spline=surface()),
            "a spline belongs to spline joints only, this one is revolute",
        ),
        (
            lambda: la.Mechanism().add_joint("j", "composite", parent="world", child="a", parts=["spline"]),
            "a spline joint cannot be a part",
        ),
        (
            lambda: la.forward_dynamics(rail(la.SplineCurve([la.pose()] * 4)).build(), None, None),
            "joint 'rail' of body 'car': nothing that",
        ),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(la.ModelError, match=message):
        make()


def test_ends_of_open_splines_are_respected():
    model = rail(la.SplineCurve(frames())).build()
    assert model.features == {"spline joints"}
    for q in ([3.1], [-0.1], {"rail": 3.1}):
        with pytest.raises(la.ModelError, match=r"joint 'rail'.*s = .* is beyond the end of its spline.* 0 .. 3"):
            model.state(q)
    with pytest.raises(la.ModelError, match="row 1: joint 'rail'"):
        model.check_rows(np.array([[0.0], [4.0]]))
    assert rail(la.SplineCurve(frames(), True)).build().state([-7.3]).q[0] == -7.3
    # the ends are limits, as data
    assert model.joint("rail").joint.limits.tolist() == [[0.0, 3.0]]
    given = rail(la.SplineCurve(frames()), limits=(0.5, 9.0)).joints["rail"]
    assert given.limits.tolist() == [[0.5, 3.0]]
    with pytest.raises(la.ModelError, match="they lie beyond the ends of the spline"):
        rail(la.SplineCurve(frames()), limits=(4.0, 9.0))


def test_a_spline_closes_a_loop():
    """The car that floats and the one that the rail carries move alike; the rail's coordinate follows from the pose."""
    m, alone = la.Mechanism("loop"), rail(la.SplineCurve(frames())).build()
    body = alone.mechanism.bodies["car"]
    m.add_body("car", mass=body.mass, com=body.com, inertia=body.inertia)
    m.add_joint("first", "free", parent="world", child="car")
    m.add_joint("rail", "spline", parent="world", child="car", spline=la.SplineCurve(frames()))
    model = m.build()
    assert model.features == {"loops", "spline joints"}
    first = alone.state({"rail": 1.3}, {"rail": 0.2})
    motion = la.to_maximal(alone, first.q, first.v)
    start = la.to_minimal(model, motion.poses, motion.twists)
    given = model.state({"first": start.q[:7]}, {"first": start.v[:6]})
    np.testing.assert_allclose(given.q[7:], first.q, rtol=0, atol=1e-12)  # measured 0
    np.testing.assert_allclose(given.v[6:], first.v, rtol=0, atol=1e-12)  # measured 1.1e-16
    runs = [la.simulate(*each, dt=1e-3, duration=0.2, method="rk4") for each in ((alone, first), (model, given))]
    np.testing.assert_allclose(runs[1].q[:, 7:], runs[0].q, rtol=0, atol=1e-12)  # measured 1.8e-15


@pytest.mark.parametrize("spline", [la.SplineCurve(frames(), True), surface((True, False))])
def test_files_keep_splines_to_the_last_bit(spline):
    m = rail(spline, damping=0.1, stiffness=2.0)
    data = mechanism_to_dict(m)
    made = mechanism_from_dict(json.loads(json.dumps(data)))
    assert mechanism_to_dict(made) == data
    s = np.full(spline.size, 0.7)
    assert np.array_equal(joint_motion(made.joints["rail"], s), spline.pose(s))
    data["joints"][0]["spline"]["type"] = "line"
    with pytest.raises(la.ModelError, match=r'joints\[0\]\.spline\.type: expected "curve" or "surface"'):
        mechanism_from_dict(data)


@pytest.mark.parametrize("method", [la.Galerkin(2), la.LieTrapezoid(), la.Maximal()])
def test_methods_for_fixed_axes_refuse(method):
    model = rail(la.SplineCurve(frames())).build()
    with pytest.raises(la.UnsupportedError, match=r"has spline joints, which .* cannot honour; these can: .*bdf:1"):
        la.simulate(model, dt=0.01, duration=0.1, method=method)
    with pytest.raises(la.UnsupportedError, match="lagrangian_hessian: 'rail' has spline joints"):
        la.lagrangian_hessian(model, None)
