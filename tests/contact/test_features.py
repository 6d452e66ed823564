"""The contacts that are found for each pair of shapes, against distances by brute force and against what is plain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import features as contact_features
from leastaction.contact import layout as cl
from leastaction.reference import contact_geometry as reference
from leastaction.reference.contact_samples import SOLIDS, Touching, on_ground, random_poses, two_bodies

PAIRS = list(itertools.combinations_with_replacement(SOLIDS, 2))
TILTED = la.pose(rpy=(0.3, 0.4, 0.5))[:3, :3]


def close_poses(one, two, n, rng, gap):
    """n pairs of random poses at which two solids are about ``gap`` apart, and their distances (n,)."""
    a, b = random_poses(n, rng), random_poses(n, rng)
    way = rng.normal(size=(n, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    a[:, :3, 3] = way
    # no step along the way can be longer than the distance
    for _ in range(12):
        far, _ = reference.distances(SOLIDS[one][1], a, SOLIDS[two][1], b, 100)
        a[:, :3, 3] -= np.maximum(far - gap, 0.0)[:, None] * way
    return a, b, reference.distances(SOLIDS[one][1], a, SOLIDS[two][1], b)[0]


def sharp(one, two):
    """Whether both solids have edges."""
    return not {"sphere", "capsule"} & {one, two}


# Where a sharp corner is nearest to an edge or to a corner, the contact of the faces next to it is less than the
# distance, or there is none. That is so in a small part of all random poses, none where one of the solids is smooth.
@pytest.mark.parametrize(("one", "two"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_smallest_gap_is_the_distance(one, two):
    rng = np.random.default_rng(2)
    a, b, far = close_poses(one, two, 60, rng, 1e-3)
    found = Touching(two_bodies(SOLIDS[one][0], SOLIDS[two][0]), {"a": a[0], "b": b[0]})
    good, apart = 0, far > 1e-5
    for k in np.flatnonzero(apart):
        found.put({"a": a[k], "b": b[k]})
        found.find(0.05)
        gap = found.gap.min(initial=1.0)
        good += abs(gap - far[k]) < 1e-9
    assert apart.sum() >= 57
    assert good >= apart.sum() * (0.95 if sharp(one, two) else 1.0)  # measured 0.983 and 1, with an error of 1.5e-12


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_exchange_of_the_bodies_changes_nothing(one, two):
    rng = np.random.default_rng(3)
    a, b, _ = close_poses(one, two, 20, rng, 1e-3)
    first = Touching(two_bodies(SOLIDS[one][0], SOLIDS[two][0]), {"a": a[0], "b": b[0]})
    second = Touching(two_bodies(SOLIDS[two][0], SOLIDS[one][0]), {"a": b[0], "b": a[0]})
    for k in range(20):
        first.put({"a": a[k], "b": b[k]})
        second.put({"a": b[k], "b": a[k]})
        first.find(0.01)
        second.find(0.01)
        assert first.count == second.count
        assert np.allclose(np.sort(first.gap), np.sort(second.gap), rtol=0, atol=1e-9)  # measured 6e-17


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_frozen_features_miss_only_the_second_order_of_a_motion(one, two):
    rng = np.random.default_rng(4)
    a, b, far = close_poses(one, two, 30, rng, 1e-4)
    found = Touching(two_bodies(SOLIDS[one][0], SOLIDS[two][0]), {"a": a[0], "b": b[0]})
    missed = []
    for k in np.flatnonzero(far > 5e-5):
        eta = rng.normal(size=6)
        for h in (4e-3, 2e-3):
            found.put({"a": a[k], "b": b[k]})
            found.find(0.05)
            moved = reference.moved(a[k], h * eta)
            found.put({"a": moved})
            found.measure()
            frozen = found.gap.min(initial=1.0)
            found.find(0.05)
            # how much nearer the bodies are than the frozen features say
            missed.append((h, max(0.0, frozen - found.gap.min(initial=1.0))))
    missed = np.array(missed)
    # per square of the motion; measured 6.2 / m (the radii are 0.1 m), but for corners that come from beside an edge
    good = (missed[:, 1] <= 10.0 * missed[:, 0] ** 2).mean()
    assert good >= (0.95 if sharp(one, two) else 1.0)  # measured 0.963 and 1


@pytest.mark.parametrize("shape", [*SOLIDS, "ellipsoid"])
def test_ground_is_as_far_as_the_lowest_point(shape):
    rng = np.random.default_rng(5)
    normal = np.array([0.6, 0.0, 0.8])
    made = la.Ellipsoid((0.1, 0.2, 0.3)) if shape == "ellipsoid" else SOLIDS[shape][0]
    solid = ("ellipsoid", (0.1, 0.2, 0.3)) if shape == "ellipsoid" else SOLIDS[shape][1]
    poses = random_poses(40, rng, 0.5)
    found = Touching(on_ground(made, normal=normal, height=0.2), {"a": poses[0]})
    for pose in poses:
        found.put({"a": pose})
        found.find()
        R, p = pose[:3, :3], pose[:3, 3]
        lowest = normal @ (p + R @ reference.support(solid, -R.T @ normal)) - 0.2
        assert found.gap.min() == pytest.approx(lowest, abs=1e-14)  # measured 2e-16
        assert np.allclose(found.normal, normal, atol=1e-15)
        assert np.allclose(found.cb @ normal, 0.2, atol=1e-15)


def test_poses_far_from_each_other_have_no_contacts():
    found = Touching(two_bodies(la.Sphere(0.1), la.Box((1, 1, 1))), {"a": la.pose(xyz=(3, 0, 0)), "b": np.eye(4)}, 0.1)
    assert found.count == 0
    found.find(2.5)
    assert found.count == 1
    ground = Touching(on_ground(la.Box((1, 1, 1))), {"a": la.pose(xyz=(0, 0, 1))}, 0.4)
    assert ground.count == 0
    ground.find(0.6)
    assert ground.gap.tolist() == [0.5] * 4


STANDS = {
    # upper body, its pose on a box 1 x 1 x 0.2 whose top is at z = 0.1, and kinds and places of the contacts
    "box inside": (la.Box((0.4, 0.4, 0.4)), la.pose(xyz=(0.1, 0, 0.3)), [0] * 4),
    "equal boxes": (la.Box((1, 1, 0.2)), la.pose(xyz=(0, 0, 0.2)), [0] * 4),
    "turned by 45 degrees": (la.Box((1, 1, 0.2)), la.pose(xyz=(0, 0, 0.2), rpy=(0, 0, np.pi / 4)), [2] * 8),
    "plank across": (la.Box((2, 0.3, 0.2)), la.pose(xyz=(0, 0, 0.2)), [2] * 4),
    "overhang": (la.Box((0.6, 0.6, 0.2)), la.pose(xyz=(0.5, 0, 0.2)), [0, 0, 2, 2]),
    "corner over corner": (la.Box((0.6, 0.6, 0.2)), la.pose(xyz=(0.5, 0.5, 0.2)), [0, 0, 2, 2]),
    "capsule": (la.Capsule(0.1, 0.5), la.pose(xyz=(0, 0, 0.2), rpy=(np.pi / 2, 0, 0)), [0, 0]),
    "capsule overhang": (la.Capsule(0.1, 0.5), la.pose(xyz=(0, 0.5, 0.2), rpy=(np.pi / 2, 0, 0)), [0, 2]),
    "capsule across": (la.Capsule(0.1, 2.0), la.pose(xyz=(0, 0, 0.2), rpy=(np.pi / 2, 0, 0)), [2, 2]),
    "cylinder": (la.Cylinder(0.2, 0.4), la.pose(xyz=(0, 0, 0.3)), [0] * 8),
    "cylinder overhang": (la.Cylinder(0.2, 0.4), la.pose(xyz=(0.45, 0, 0.3)), [0, 0, 0, 0, 0, 6, 6]),
    "lying cylinder": (la.Cylinder(0.2, 0.4), la.pose(xyz=(0, 0, 0.3), rpy=(np.pi / 2, 0, 0)), [4, 4]),
}


@pytest.mark.parametrize("turn", [np.eye(3), TILTED], ids=["straight", "turned"])
@pytest.mark.parametrize("stand", STANDS)
def test_what_stands_on_a_box_has_the_corners_of_its_stand(stand, turn):
    upper, pose, kinds = STANDS[stand]
    world = np.eye(4)
    world[:3, :3] = turn
    found = Touching(two_bodies(upper, la.Box((1, 1, 0.2))), {"a": world @ pose, "b": world}, 0.01)
    assert found.kinds == kinds
    assert np.abs(found.gap).max() < 1e-9
    # the normals are that of the face, from whichever body
    assert np.allclose(np.abs(found.normal @ turn[:, 2]), 1.0, atol=1e-12)
    # the contacts hold the whole stand: its middle lies among them
    if "cylinder" not in stand:
        points = found.ca @ turn
        assert np.allclose(points[:, 2], 0.1, atol=1e-9)


def test_overlapping_discs_cross_at_two_points():
    poses = {"a": la.pose(xyz=(0.2, 0, 0.2)), "b": np.eye(4)}
    found = Touching(two_bodies(la.Cylinder(0.2, 0.2), la.Cylinder(0.2, 0.2)), poses, 0.01)
    assert np.abs(found.gap).max() < 1e-12
    crossing = found.ca[found.ints[: found.count, cl.GAP] == cl.LINES]
    expected = [[0.1, -0.1 * np.sqrt(3), 0.1], [0.1, 0.1 * np.sqrt(3), 0.1]]
    assert np.allclose(crossing[np.argsort(crossing[:, 1])], expected, atol=1e-12)


def test_parallel_capsules_touch_at_the_ends_of_the_overlap():
    poses = {"a": np.eye(4), "b": la.pose(xyz=(0.2, 0, 0.5))}
    found = Touching(two_bodies(la.Capsule(0.1, 1.0), la.Capsule(0.1, 0.4)), poses)
    assert np.allclose(found.gap, 0.0, atol=1e-15)
    assert {round(z, 9) for z in found.ca[:, 2]} >= {0.3, 0.5}
    assert np.allclose(np.abs(found.normal[:, 0]), 1.0, atol=1e-15)


def test_a_nearly_upright_cylinder_stands_on_its_lowest_point():
    tilt = 0.02
    found = Touching(on_ground(la.Cylinder(0.2, 0.4)), {"a": la.pose(xyz=(0, 0, 0.3), rpy=(tilt, 0, 0))}, 0.2)
    assert found.kinds == [cl.PLANE] * 8
    assert found.gap.min() == pytest.approx(0.3 - 0.2 * np.cos(tilt) - 0.2 * np.sin(tilt), abs=1e-15)
    # exactly upright: points around the axis
    found.put({"a": la.pose(xyz=(0, 0, 0.3))})
    found.find(0.2)
    assert np.allclose(found.gap, 0.1, atol=1e-15)
    assert np.allclose(found.ca[:, :2].sum(axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize("shape", [*SOLIDS, "ellipsoid"])
def test_level_heights_are_a_half_space(shape):
    rng = np.random.default_rng(6)
    made = la.Ellipsoid((0.1, 0.2, 0.3)) if shape == "ellipsoid" else SOLIDS[shape][0]
    poses = random_poses(20, rng, 0.3)
    plain = Touching(on_ground(made, height=0.1), {"a": poses[0]})
    field = Touching(on_ground(made, height=-0.2, heights=np.full((7, 9), 0.3), spacing=(0.2, 0.1)), {"a": poses[0]})
    for pose in poses:
        for found in (plain, field):
            found.put({"a": pose})
            found.find()
        assert field.gap.min() == pytest.approx(plain.gap.min(), abs=1e-14)  # measured 1e-16


def test_heights_are_planes_between_their_points_and_beyond_the_border():
    # z = 0.2 x - 0.1 y + 0.3 over a grid of 5 x 4 points, 0.5 and 0.25 m apart
    x, y = 0.5 * (np.arange(5) - 2.0), 0.25 * (np.arange(4) - 1.5)
    heights = 0.2 * x[:, None] - 0.1 * y + 0.3
    n = np.array([-0.2, 0.1, 1.0]) / np.sqrt(1.05)
    found = Touching(on_ground(la.Sphere(0.1), heights=heights, spacing=(0.5, 0.25)), {"a": np.eye(4)})
    for p in np.random.default_rng(7).uniform(-2.0, 2.0, size=(30, 3)):
        found.put({"a": la.pose(xyz=p)})
        found.find()
        assert np.allclose(found.gap, n @ p - 0.3 * n[2] - 0.1, rtol=0, atol=1e-14)  # measured 4e-16
        assert np.allclose(found.normal, n, atol=1e-15)


def test_a_ball_in_a_valley_touches_both_slopes():
    # z = |x|
    heights = np.abs(np.arange(-3, 4.0))[:, None] * np.ones(5)
    found = Touching(on_ground(la.Sphere(0.5), heights=heights, spacing=1.0), {"a": la.pose(xyz=(0, 0.3, 0.8))}, 0.3)
    slopes = {tuple(np.round(n * np.sqrt(2.0), 9)) for n in found.normal}
    assert slopes == {(-1.0, 0.0, 1.0), (1.0, 0.0, 1.0)}
    assert np.allclose(found.gap, 0.8 / np.sqrt(2.0) - 0.5, atol=1e-15)


def test_contacts_are_recognised_again():
    found = Touching(on_ground(la.Box((1, 1, 1))), {"a": la.pose(xyz=(0, 0, 0.5), rpy=(0.01, 0.02, 0.3))}, 0.1)
    ints, floats, count = found.ints.copy(), found.floats.copy(), found.count
    # turned over by a quarter: two of the four corners stay at the ground
    found.put({"a": la.pose(xyz=(0, 0, 0.5), rpy=(np.pi / 2, 0, 0))})
    found.find(0.1)
    match = np.full(found.count, -9)
    contact_features.match_contacts(found.ints, found.floats, found.count, ints, floats, count, match)
    same = match >= 0
    assert same.sum() == 2
    assert np.array_equal(floats[match[same], cl.FEATURE], found.floats[: found.count][same, cl.FEATURE])
    assert np.allclose(floats[match[same], :3], found.floats[: found.count][same, :3], atol=1e-15)


def test_degenerate_poses_give_numbers():
    for one, two in PAIRS:
        for pose in (np.eye(4), la.pose(xyz=(0, 0, 0.1)), la.pose(rpy=(np.pi / 2, 0, 0))):
            found = Touching(two_bodies(SOLIDS[one][0], SOLIDS[two][0]), {"a": pose, "b": np.eye(4)})
            everything = (found.gap, found.normal, found.ga, found.gb, found.ca, found.cb)
            assert all(np.isfinite(array).all() for array in everything), (one, two)
            assert np.isfinite(found.floats[: found.count]).all()
