"""Ellipsoids against other solids: the conditions of nearest points, and the cases that are plain."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.reference import contact_geometry as reference
from leastaction.reference.contact_samples import SOLIDS, Touching, random_poses, two_bodies

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


def mesh_of(points):
    from scipy.spatial import ConvexHull

    return la.Mesh(vertices=points, faces=ConvexHull(points).simplices)


STONE = np.random.default_rng(5).normal(size=(20, 3))
STONE *= 0.15 / np.linalg.norm(STONE, axis=1)[:, None]
OTHERS = {
    **{kind: SOLIDS[kind] for kind in ("capsule", "cylinder", "box")},
    "ellipsoid": (la.Ellipsoid((0.3, 0.1, 0.15)), ("ellipsoid", (0.3, 0.1, 0.15))),
    "stone": (mesh_of(STONE), None),
}


def support(solid, direction):
    return STONE[np.argmax(STONE @ direction)] if solid is None else reference.support(solid, direction)


@pytest.mark.parametrize("other", OTHERS)
def test_solids_are_as_far_from_an_ellipsoid_as_they_are(other):
    """Points that touch are in both solids, and the planes through them hold both: so no two points are nearer."""
    rng = np.random.default_rng(6)
    shape, solid = OTHERS[other]
    found = Touching(two_bodies(shape, la.Ellipsoid(AXES)), {"a": np.eye(4), "b": np.eye(4)})
    worst = 0.0
    for a, b in zip(random_poses(200, rng, 0.3), random_poses(200, rng, 0.1), strict=True):
        found.put({"a": a, "b": b})
        found.find()
        assert found.count == 1
        if found.gap[0] < 1e-3:
            continue
        n, low, top = found.normal[0], found.ca[0], found.cb[0]
        # the first body of the contact is the ellipsoid, or the first of two
        one, two = ((a, solid), (b, ("ellipsoid", AXES)))
        if found.ints[0, cl.ROW_A] > found.ints[0, cl.ROW_B]:
            one, two = two, one
        sides = ((*one, -n, low), (*two, n, top))
        for pose, what, way, point in sides:
            farthest = pose[:3, 3] + pose[:3, :3] @ support(what, pose[:3, :3].T @ way)
            worst = max(worst, abs(way @ (farthest - point)))
        worst = max(worst, np.abs(low - top - found.gap[0] * n).max())
    assert worst < 1e-9


@pytest.mark.parametrize("other", OTHERS)
def test_what_is_farther_away_than_the_margin_is_no_contact(other):
    rng = np.random.default_rng(8)
    found = Touching(two_bodies(OTHERS[other][0], la.Ellipsoid(AXES)), {"a": np.eye(4), "b": np.eye(4)})
    for a, b in zip(random_poses(300, rng, 0.25), random_poses(300, rng, 0.1), strict=True):
        found.put({"a": a, "b": b})
        found.find()
        gap = found.gap[0]
        found.find(1e-3)
        assert found.count == (gap <= 1e-3)
        assert found.count == 0 or found.gap[0] == pytest.approx(gap, abs=1e-12)


def test_ellipsoids_in_each_other_have_a_contact():
    rng = np.random.default_rng(7)
    for shape, _ in OTHERS.values():
        found = Touching(two_bodies(shape, la.Ellipsoid(AXES)), {"a": np.eye(4), "b": np.eye(4)})
        for pose in (np.eye(4), *random_poses(30, rng, 0.05)):
            found.put({"a": pose})
            found.find()
            assert found.count == 1
            assert found.gap[0] < 0.0
            everything = (found.gap, found.normal, found.ga, found.gb, found.ca, found.cb, found.floats[:1])
            assert all(np.isfinite(array).all() for array in everything)
