"""What touches a height field: against its triangles, one by one."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.reference import contact_geometry as reference
from leastaction.reference.contact_samples import SOLIDS, Touching, on_ground, random_poses

ROUGH = 0.05 * np.random.default_rng(0).normal(size=(11, 11))
RAMP = (-0.5 * np.maximum(np.linspace(-1, 1, 11), 0.0))[:, None] * np.ones(11)
SPIKES = 0.08 * np.where(np.add.outer(np.arange(11) % 3, np.arange(11) % 4) == 2, 1.0, 0.0)


def triangles(heights, step):
    """Corners (n, 3, 3) of the triangles of a height field."""
    nx, ny = heights.shape
    x, y = np.meshgrid(step * (np.arange(nx) - 0.5 * (nx - 1)), step * (np.arange(ny) - 0.5 * (ny - 1)), indexing="ij")
    p = np.stack([x, y, heights], axis=-1)
    one = np.stack([p[:-1, :-1], p[1:, :-1], p[:-1, 1:]], axis=2)
    two = np.stack([p[1:, 1:], p[:-1, 1:], p[1:, :-1]], axis=2)
    return np.concatenate([one.reshape(-1, 3, 3), two.reshape(-1, 3, 3)])


def distances(corners, solid, pose, steps=400):
    """Distances (n,) of a solid at a pose from triangles (n, 3, 3)."""
    poses = np.tile(pose, (len(corners), 1, 1))
    start = corners.mean(axis=1)
    return reference.apart(reference.placed(solid, poses), reference.triangles(corners), start, steps)[0]


def near_poses(corners, solid, n, rng, gap):
    """n random poses at which a solid is about ``gap`` above the ground, and its distance from it at each."""
    for T in random_poses(n, rng):
        T[:3, 3] = [*rng.uniform(-0.3, 0.3, 2), 0.6]
        # down until it touches, in steps that cannot be longer than the distance
        for _ in range(30):
            far = distances(corners, solid, T, 60).min()
            T[2, 3] -= max(far - gap, 0.0)
            if far < 1.01 * gap:
                break
        yield T, distances(corners, solid, T).min()


GROUNDS = {"ramp": RAMP, "rough": ROUGH, "spikes": SPIKES}


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("name", SOLIDS)
@pytest.mark.parametrize("n", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_the_smallest_gap_is_the_distance_from_the_triangles(name, ground, n):
    """Faces, edges and corners of the field against faces, edges, corners, sides and rims of the solid."""
    (shape, solid), heights = SOLIDS[name], GROUNDS[ground]
    found = Touching(on_ground(shape, heights=heights, spacing=0.2), {"a": np.eye(4)})
    good = 0
    for T, far in near_poses(triangles(heights, 0.2), solid, n, np.random.default_rng(1), 2e-3):
        found.put({"a": T})
        found.find(0.1)
        # never more; less where a sharp edge or corner is nearest to another, measured up to 4.4e-4 m
        assert far - 1e-3 < found.gap.min() < far + 1e-14  # measured 4e-16
        good += abs(found.gap.min() - far) < 1e-14
    # measured 59 of 60 for boxes and cylinders over rough ground and boxes over spikes, else all
    assert good >= (n if name in ("sphere", "capsule") else n - 1)


def test_a_face_on_a_peak_touches_its_point():
    """A box, a cap and a side over one spike of the field, far from their corners and rims."""
    heights = np.zeros((5, 5))
    heights[2, 2] = 0.1
    lying = la.pose(rpy=(np.pi / 2, 0, 0))[:3, :3]
    for shape, turn, height in (
        (la.Box((0.4, 0.4, 0.1)), np.eye(3), 0.05),
        (la.Cylinder(0.2, 0.1), np.eye(3), 0.05),
        (la.Cylinder(0.1, 0.4), lying, 0.1),
        (la.Capsule(0.1, 0.4), lying, 0.1),
    ):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = turn, (0.0, 0.03, 0.1 + height + 1e-3)
        found = Touching(on_ground(shape, heights=heights, spacing=1.0), {"a": pose}, 0.01)
        nearest = np.argmin(found.gap)
        assert found.gap[nearest] == pytest.approx(1e-3, abs=1e-15)
        # the world comes first in these contacts: its normal points down, at the body
        assert found.ints[nearest, cl.ROW_A] == 0
        assert np.allclose(found.ca[nearest], (0, 0, 0.1), atol=1e-15)
        assert np.allclose(found.normal[nearest], (0, 0, -1), atol=1e-15)


def test_a_full_table_keeps_the_nearest():
    """More points of a fine field under a plate than a pair may have contacts."""
    heights = 1e-3 * np.random.default_rng(3).uniform(-1, 1, (41, 41))
    found = Touching(on_ground(la.Box((0.5, 0.5, 0.1)), heights=heights, spacing=0.02), {"a": np.eye(4)})
    found.put({"a": la.pose(xyz=(0, 0, 0.052))})
    found.find(0.1)
    assert found.count == found.table.capacity
    under = heights[8:33, 8:33].max()
    assert found.gap.min() == pytest.approx(0.002 - under, abs=1e-15)
    # corners of the plate and points of the field, all within the range of heights
    assert np.sort(found.gap)[:16].max() < 0.003


def test_an_ellipsoid_touches_heights_where_its_gap_is_zero():
    """Its gap has the sign of the distance from the triangles, and is as large but for the ratio of its axes."""
    heights, axes = 0.05 * np.random.default_rng(0).normal(size=(11, 11)), np.array([0.1, 0.15, 0.2])
    found = Touching(on_ground(la.Ellipsoid(axes), heights=heights, spacing=0.2), {"a": np.eye(4)})
    corners, rng = triangles(heights, 0.2), np.random.default_rng(2)
    for T in random_poses(100, rng):
        T[:3, 3] = [*rng.uniform(-0.4, 0.4, 2), rng.uniform(0.1, 0.3)]
        found.put({"a": T})
        found.find(0.3)
        # the space in which it is a ball of radius 1, where its centre has the distance r from the surface
        scaled = (corners - T[:3, 3]) @ T[:3, :3] / axes
        r = np.linalg.norm(reference.triangles(scaled)(np.zeros((len(scaled), 3))), axis=1).min()
        low, high = np.sort([0.1 * (r - 1.0), 0.2 * (r - 1.0)])
        assert low - 1e-14 <= found.gap.min() <= high + 1e-14


def test_every_contact_of_a_pair_has_its_own_number():
    rng = np.random.default_rng(5)
    heights = 0.02 * rng.normal(size=(15, 15))
    for name, (shape, _) in SOLIDS.items():
        found = Touching(on_ground(shape, heights=heights, spacing=0.06), {"a": np.eye(4)})
        for T in random_poses(60, rng):
            T[:3, 3] = [*rng.uniform(-0.1, 0.1, 2), 0.2]
            found.put({"a": T})
            found.find(0.05)
            numbers = found.floats[: found.count, cl.FEATURE]
            assert len(set(numbers.tolist())) == len(numbers), name
            assert numbers.max(initial=0.0) < 2.0**53
