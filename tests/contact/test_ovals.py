"""Ellipsoids against other solids: the conditions of nearest points, and the cases that are plain."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.reference.contact_samples import Touching, random_poses, two_bodies

AXES = np.array([0.1, 0.2, 0.35])


def outward(pose, x, axes=AXES):
    """Value of the ellipsoid's equation at x, and its outward unit normal there."""
    y = pose[:3, :3].T @ (x - pose[:3, 3]) / axes
    n = pose[:3, :3] @ (y / axes)
    return y @ y, n / np.linalg.norm(n)


@pytest.mark.parametrize("axes", [AXES, np.array([0.02, 0.3, 0.3]), np.array([0.01, 0.01, 0.5])], ids=str)
def test_a_ball_is_as_far_from_an_ellipsoid_as_it_is(axes):
    rng = np.random.default_rng(1)
    found = Touching(two_bodies(la.Sphere(0.1), la.Ellipsoid(axes)), {"a": np.eye(4), "b": np.eye(4)})
    inside = 0
    for a, b in zip(random_poses(300, rng, 0.3), random_poses(300, rng, 0.1), strict=True):
        found.put({"a": a, "b": b})
        found.find()
        assert found.kinds == [cl.OVAL_GAP]
        # the touching points lie on both surfaces, and the normal is that of both: there the distance is least
        point, ball = found.ca[0], found.cb[0]
        value, n = outward(b, point, axes)
        assert value == pytest.approx(1.0, abs=1e-12)
        centre = a[:3, 3] - point
        side = -1.0 if outward(b, a[:3, 3], axes)[0] < 1.0 else 1.0
        assert np.allclose(centre, side * np.linalg.norm(centre) * n, atol=1e-11)
        assert found.gap[0] == pytest.approx(side * np.linalg.norm(centre) - 0.1, abs=1e-12)
        assert np.allclose(ball, a[:3, 3] - 0.1 * n, atol=1e-11)
        inside += side < 0
    assert inside > 5 or axes.min() < 0.05


def test_an_ellipsoid_with_equal_axes_is_a_sphere():
    rng = np.random.default_rng(2)
    egg = Touching(two_bodies(la.Sphere(0.1), la.Ellipsoid((0.2, 0.2, 0.2))), {"a": np.eye(4), "b": np.eye(4)})
    ball = Touching(two_bodies(la.Sphere(0.1), la.Sphere(0.2)), {"a": np.eye(4), "b": np.eye(4)})
    for a, b in zip(random_poses(50, rng, 0.3), random_poses(50, rng, 0.3), strict=True):
        for found in (egg, ball):
            found.put({"a": a, "b": b})
            found.find()
        assert egg.gap[0] == pytest.approx(ball.gap[0], abs=1e-14)
        assert np.allclose(np.abs(egg.normal), np.abs(ball.normal), atol=1e-8)


def test_centres_that_coincide_have_a_normal_along_the_least_axis():
    found = Touching(two_bodies(la.Sphere(0.05), la.Ellipsoid(AXES)), {"a": np.eye(4), "b": np.eye(4)})
    assert found.gap[0] == pytest.approx(-0.15, abs=1e-6)  # measured 4e-8
    assert abs(found.normal[0, 0]) == pytest.approx(1.0, abs=1e-6)
    assert np.isfinite(found.floats[0]).all()
