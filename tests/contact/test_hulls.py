"""Convex hulls: their faces and edges, and their contacts against distances by brute force and against boxes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.errors import ModelError
from leastaction.model.hulls import hull_of
from leastaction.reference import contact_geometry as reference
from leastaction.reference.contact_samples import SOLIDS, Touching, random_poses, two_bodies

BOX = (0.2, 0.3, 0.4)


def corners_of_box(size):
    return np.array([[(0.5 if k >> e & 1 else -0.5) * size[e] for e in range(3)] for k in range(8)])


def mesh_of(points):
    from scipy.spatial import ConvexHull

    return la.Mesh(vertices=points, faces=ConvexHull(points).simplices)


def stone(rng, n, size=0.15):
    """A hull of n points on an ellipsoid."""
    points = rng.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * size * np.array([1.0, 0.8, 1.3])


# --- hulls ----------------------------------------------------------------------------------------------------------
def test_faces_of_a_hull_are_whole():
    rng = np.random.default_rng(1)
    box = corners_of_box(BOX)
    # points inside, on faces and on edges are no corners
    more = np.concatenate([box, 0.5 * rng.uniform(-1, 1, (300, 3)) * BOX])
    more[100:200, 0] = 0.1
    more[200:240, :2] = [0.1, 0.15]
    for points in (box, more):
        hull = hull_of(points @ la.pose(rpy=(0.3, 0.4, 0.5))[:3, :3].T, "box")
        assert (len(hull.points), len(hull.planes), len(hull.edges)) == (8, 6, 12)
        assert sorted(len(loop) for loop in hull.loops) == [4] * 6
    # a prism of 24 sides in single precision
    turn = np.arange(24) * 2 * np.pi / 24
    prism = np.concatenate([np.column_stack([np.cos(turn), np.sin(turn), 0 * turn + z]) for z in (-1, 1)])
    hull = hull_of((prism @ la.pose(rpy=(0.3, 0.4, 0.5))[:3, :3].T).astype(np.float32).astype(float), "prism")
    assert (len(hull.points), len(hull.planes), len(hull.edges)) == (48, 26, 72)


@pytest.mark.parametrize("n", [4, 12, 64, 300])
def test_a_hull_holds_its_points(n):
    points = stone(np.random.default_rng(n), n)
    hull = hull_of(points, "stone")
    n, offset = hull.planes[:, :3], hull.planes[:, 3]
    assert np.allclose(np.linalg.norm(n, axis=1), 1.0, atol=1e-15)
    # corners are below every face and on their own, all loops turn the same way, every edge has its two faces
    assert (points @ n.T - offset).max() < 1e-6 * 0.4
    for f, loop in enumerate(hull.loops):
        x = hull.points[loop]
        assert np.abs(x @ n[f] - offset[f]).max() < 1e-6
        turn = np.cross(np.roll(x, -1, axis=0) - x, np.roll(x, -2, axis=0) - np.roll(x, -1, axis=0)) @ n[f]
        assert (turn > 0).all()
    for i, j, f, g in hull.edges:
        assert {i, j} <= set(hull.loops[f]) & set(hull.loops[g])
    assert len(hull.points) - len(hull.edges) + len(hull.planes) == 2


def test_flat_points_have_no_hull():
    with pytest.raises(ModelError, match=r"sheet: it is flat.*give it thickness"):
        hull_of(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]), "sheet")


# --- distances ------------------------------------------------------------------------------------------------------
def distance(A, B):
    """Distance of two hulls given by corners, by all corners over all triangles and all pairs of edges."""
    from scipy.spatial import ConvexHull

    best = np.inf
    meshes = [ConvexHull(X) for X in (A, B)]
    if any((meshes[1].equations[:, :3] @ x + meshes[1].equations[:, 3]).max() <= 0 for x in A):
        return 0.0
    for X, hull, Y in ((A, meshes[1], B), (B, meshes[0], A)):
        nearest = reference.triangles(Y[hull.simplices])
        for x in X:
            best = min(best, np.linalg.norm(nearest(np.tile(x, (len(hull.simplices), 1))) - x, axis=1).min())
    edges = [X[h.simplices[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)] for X, h in zip((A, B), meshes, strict=True)]
    p, u = edges[0][:, None, 0], (edges[0][:, 1] - edges[0][:, 0])[:, None]
    q, v = edges[1][None, :, 0], (edges[1][:, 1] - edges[1][:, 0])[None]
    n = np.cross(u, v)
    nn = (n * n).sum(axis=-1)
    with np.errstate(all="ignore"):
        d = q - p
        s, t = (np.cross(d, v) * n).sum(axis=-1) / nn, (np.cross(d, u) * n).sum(axis=-1) / nn
        far = np.abs((d * n).sum(axis=-1)) / np.sqrt(nn)
    inside = (s >= 0) & (s <= 1) & (t >= 0) & (t <= 1) & (nn > 1e-18)
    return min(best, far[inside].min(initial=np.inf))


@pytest.mark.parametrize(("n", "m"), [(8, 8), (30, 12), pytest.param(64, 64, marks=pytest.mark.slow)])
def test_smallest_gap_of_two_hulls_is_their_distance(n, m):
    rng = np.random.default_rng(n + m)
    A, B = stone(rng, n), stone(rng, m)
    a, b = random_poses(40, rng), random_poses(40, rng)
    found = Touching(two_bodies(mesh_of(A), mesh_of(B)), {"a": a[0], "b": b[0]})
    good = 0
    for k in range(40):
        # from far away to a distance of 1 mm
        way = rng.normal(size=3)
        a[k, :3, 3] = way / np.linalg.norm(way)
        for _ in range(40):
            far = distance(A @ a[k, :3, :3].T + a[k, :3, 3], B @ b[k, :3, :3].T)
            if far < 1.001e-3:
                break
            a[k, :3, 3] -= (far - 1e-3) * way / np.linalg.norm(way)
        found.put({"a": a[k], "b": b[k]})
        found.find(0.01)
        good += abs(found.gap.min(initial=1.0) - far) < 1e-9
        assert found.count <= 9
    assert good >= 38  # measured 39, 40, 40; the other is a corner over a corner


def inside_or_on(points):
    """Of x (n, 3) the nearest points of a hull at the origin."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    faces = points[hull.simplices]

    def nearest(x):
        every = np.repeat(x, len(faces), axis=0)
        found = reference.triangles(np.tile(faces, (len(x), 1, 1)))(every).reshape(len(x), len(faces), 3)
        best = np.linalg.norm(found - x[:, None], axis=2).argmin(axis=1)
        inside = (x @ hull.equations[:, :3].T + hull.equations[:, 3]).max(axis=1) <= 0.0
        return np.where(inside[:, None], x, found[np.arange(len(x)), best])

    return nearest


@pytest.mark.parametrize("other", SOLIDS)
def test_other_solids_are_as_far_from_a_hull_as_they_are(other):
    rng = np.random.default_rng(8)
    B, (shape, solid) = stone(rng, 12), SOLIDS[other]
    poses, way, nearest = random_poses(30, rng), rng.normal(size=(30, 3)), inside_or_on(B)
    way /= np.linalg.norm(way, axis=1)[:, None]
    poses[:, :3, 3] = way
    for steps in (*[40] * 8, 800):
        far, _ = reference.apart(reference.placed(solid, poses), nearest, np.zeros((30, 3)), steps)
        poses[:, :3, 3] -= np.maximum(far - 1e-3, 0.0)[:, None] * way if steps < 800 else 0.0
    found = Touching(two_bodies(shape, mesh_of(B)), {"a": poses[0], "b": np.eye(4)})
    good, apart = 0, far > 1e-5
    for k in np.flatnonzero(apart):
        found.put({"a": poses[k]})
        found.find(0.05)
        good += abs(found.gap.min(initial=1.0) - far[k]) < 1e-9
        assert np.abs(found.ca - found.cb - found.gap[:, None] * found.normal).max(initial=0.0) < 1e-12
    assert apart.sum() >= 26
    assert good >= apart.sum() * (0.9 if other in ("box", "cylinder") else 1.0)


@pytest.mark.parametrize("other", SOLIDS)
def test_the_hull_of_a_box_is_the_box(other):
    rng = np.random.default_rng(3)
    hull, box = mesh_of(corners_of_box(BOX)), la.Box(BOX)
    shape = SOLIDS[other][0]
    one = Touching(two_bodies(shape, box), {"a": np.eye(4), "b": np.eye(4)})
    two = Touching(two_bodies(hull if other == "box" else shape, hull), {"a": np.eye(4), "b": np.eye(4)})
    touched = same = 0
    for a, b in zip(random_poses(300, rng, 0.15), random_poses(300, rng, 0.15), strict=True):
        for found in (one, two):
            found.put({"a": a, "b": b})
            found.find(5e-3)
        # deep in each other, hulls do not look at all pairs of edges
        if one.count == 0 or (other == "box" and one.gap.min() < -0.02):
            continue
        touched += 1
        same += one.count == two.count and np.allclose(np.sort(one.gap), np.sort(two.gap), rtol=0, atol=1e-9)
    assert touched > 15
    assert same == touched


def test_equal_faces_touch_at_their_corners_and_many_at_eight():
    turn = np.arange(32) * 2 * np.pi / 32
    disc = np.concatenate([np.column_stack([np.cos(turn), np.sin(turn), 0 * turn + z]) for z in (-0.1, 0.1)])
    poses = {"a": la.pose(xyz=(0.3, 0.1, 0.2), rpy=(0, 0, 0.2)), "b": np.eye(4)}
    found = Touching(two_bodies(mesh_of(disc), mesh_of(disc)), poses, 0.01)
    assert found.count == 8
    assert np.abs(found.gap).max() < 1e-12
    assert np.allclose(np.abs(found.normal[:, 2]), 1.0)
    # their polygon holds most of the area in which the discs overlap
    from scipy.spatial import ConvexHull

    d = np.hypot(0.3, 0.1)
    lens = 2 * np.arccos(d / 2) - d / 2 * np.sqrt(4 - d * d)
    assert ConvexHull(found.ca[:, :2]).volume > 0.85 * lens  # measured 0.9
    # tilted, the deepest corner is one of them
    for angle in np.linspace(0, 2 * np.pi, 17):
        pose = la.pose(xyz=(0.3, 0.1, 0.2)) @ la.pose(rpy=(0, 0, angle)) @ la.pose(rpy=(0.02, 0, 0))
        found.put({"a": pose})
        found.find(0.1)
        x = disc @ pose[:3, :3].T + pose[:3, 3]
        over = np.linalg.norm(x[:, :2], axis=1) < np.cos(np.pi / 32)
        assert found.gap.min() <= x[over, 2].min() - 0.1 + 1e-9
        assert found.count <= 9


def test_contacts_of_hulls_keep_their_numbers():
    rng = np.random.default_rng(5)
    stack = Touching(
        two_bodies(mesh_of(corners_of_box((0.3, 0.2, 0.2))), mesh_of(corners_of_box((0.25, 0.3, 0.2)))),
        {"a": la.pose(xyz=(0.02, 0.01, 0.2)), "b": np.eye(4)},
        0.01,
    )
    first = sorted(stack.floats[: stack.count, cl.FEATURE].tolist())
    assert len(set(first)) == len(first) == 4
    for _ in range(20):
        stack.put({"a": la.pose(xyz=(0.02, 0.01, 0.2001), rpy=1e-4 * rng.normal(size=3))})
        stack.find(0.01)
        # and two edges where these are nearest
        assert set(first) <= set(stack.floats[: stack.count, cl.FEATURE].tolist())


def test_the_gap_of_what_is_round_does_not_jump_along_a_motion():
    rng = np.random.default_rng(6)
    B, axis = stone(rng, 30), rng.normal(size=3)
    for shape in (la.Sphere(0.05), la.Capsule(0.05, 0.2)):
        found, gaps = Touching(two_bodies(shape, mesh_of(B)), {"a": np.eye(4), "b": np.eye(4)}), []
        for k in range(400):
            # over the faces, edges and corners of the stone
            pose = la.pose(rpy=0.003 * k * axis)
            pose[:3, 3] = [0.001 * (k - 200), 0.02, 0.25]
            found.put({"a": pose})
            found.find()
            gaps.append(found.gap.min())
        # a step moves no point by more than 2 mm
        assert np.abs(np.diff(gaps)).max() < 2e-3


def test_frozen_features_of_hulls_miss_only_the_second_order_of_a_motion():
    rng = np.random.default_rng(9)
    A, B = stone(rng, 16, 0.1), stone(rng, 16, 0.1)
    found, missed = Touching(two_bodies(mesh_of(A), mesh_of(B)), {"a": np.eye(4), "b": np.eye(4)}), []
    for pose in random_poses(25, rng):
        x, y, way = A @ pose[:3, :3].T, B, rng.normal(size=3)
        way /= np.linalg.norm(way)
        pose[:3, 3] = way
        for _ in range(6):
            pose[:3, 3] -= max(distance(x + pose[:3, 3], y) - 1e-4, 0.0) * way
        eta = rng.normal(size=6)
        for h in (2e-3, 1e-3):
            found.put({"a": pose})
            found.find(0.05)
            found.put({"a": reference.moved(pose, h * eta)})
            found.measure()
            frozen = found.gap.min(initial=1.0)
            found.find(0.05)
            missed.append((h, max(0.0, frozen - found.gap.min(initial=1.0))))
    missed = np.array(missed)
    assert (missed[:, 1] <= 10.0 * missed[:, 0] ** 2).mean() >= 0.9


def overlap(one, other):
    """Whether two sets of points have hulls with a common point: a linear program."""
    n, m = len(one), len(other)
    rows = np.zeros((5, n + m))
    rows[:3], rows[3, :n], rows[4, n:] = np.concatenate([one, -other]).T, 1.0, 1.0
    return linprog(np.zeros(n + m), A_eq=rows, b_eq=[0, 0, 0, 1, 1], bounds=(0, None)).status == 0


def test_hulls_that_overlap_have_a_contact():
    """However little they overlap, and wherever: corners beside faces too."""
    rng = np.random.default_rng(11)
    A, B = stone(rng, 16), stone(rng, 24)
    a, b = random_poses(300, rng), random_poses(300, rng)
    found, seen = Touching(two_bodies(mesh_of(A), mesh_of(B)), {"a": a[0], "b": b[0]}), 0
    for one, other in zip(a, b, strict=True):
        # from where they are apart towards each other, until they overlap a little or more
        away = rng.normal(size=3)
        away /= np.linalg.norm(away)
        hulls, near, far = [A @ one[:3, :3].T, B @ other[:3, :3].T], 0.0, 0.6
        while far - near > 1e-3:
            middle = 0.5 * (near + far)
            near, far = (middle, far) if overlap(hulls[0], hulls[1] + middle * away) else (near, middle)
        one[:3, 3], other[:3, 3] = 0.0, near * rng.uniform(0.9, 1.0) * away
        found.put({"a": one, "b": other})
        found.find(0.0)
        seen += found.count > 0
    assert seen == 300
