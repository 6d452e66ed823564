"""Bodies with meshes in contact: as boxes where they are boxes, and no energy from nowhere where they are stones."""

from __future__ import annotations

import numpy as np

import leastaction as la
from leastaction.spatial import quaternion


def mesh_of(points):
    from scipy.spatial import ConvexHull

    return la.Mesh(vertices=points, faces=ConvexHull(points).simplices)


def block(size):
    """A box as a mesh."""
    return mesh_of(np.array([[(0.5 if k >> e & 1 else -0.5) * size[e] for e in range(3)] for k in range(8)]))


def stone(rng, n, size=0.1):
    points = rng.normal(size=(n, 3))
    return mesh_of(points / np.linalg.norm(points, axis=1)[:, None] * size * np.array([1.0, 0.8, 1.2]))


def free_bodies(shapes, friction=0.5, **ground):
    m = la.Mechanism("bodies")
    for i, shape in enumerate(shapes):
        m.add_body(f"b{i}", shape=shape, mass=1.0)
        m.add_joint(f"f{i}", "free", parent="world", child=f"b{i}")
    if len(shapes) > 1:
        m.add_contacts(friction=friction)
    if ground:
        m.add_ground(friction=friction, **ground)
    return m


def both(size, q, v, dt, duration):
    """Runs of boxes and of their hulls."""
    out = []
    for shape in (la.Box, block):
        m = free_bodies([shape(s) for s in size], height=0.0)
        model = m.build()
        start = model.state({f"f{i}": q[i] for i in range(len(size))}, {f"f{i}": v[i] for i in range(len(size))})
        out.append(la.simulate(model, start, dt=dt, duration=duration, method=la.Maximal()))
    return out


STILL = [0.0] * 6
SIZES = [(0.3, 0.3, 0.2), (0.2, 0.15, 0.1)]


def test_a_hull_of_a_box_rests_slides_and_falls_as_the_box():
    tilt = np.array([0.9, 0.2, 0.3, -0.1])
    tilt /= np.linalg.norm(tilt)
    cases = {
        # upper body on the lower one, sliding to its edge, thrown at it
        "rests": ([0, 0, 0.25, 1, 0, 0, 0], STILL, 0.2),
        "slides": ([0, 0.02, 0.25, 1, 0, 0, 0], [0, 0, 0, 1.2, 0.1, 0], 0.4),
        "thrown": ([0.05, 0, 0.5, *tilt], [1, 2, -3, -0.1, 0.1, -0.5], 0.4),
    }
    for name, (place, rate, duration) in cases.items():
        box, hull = both(SIZES, [[0, 0, 0.1, 1, 0, 0, 0], place], [STILL, rate], 0.005, duration)
        assert np.abs(box.q - hull.q).max() < 1e-9, name  # measured 2e-11
        assert np.abs(box.v - hull.v).max() < 1e-8, name  # measured 5e-10


def test_stones_thrown_at_each_other_gain_no_energy():
    rng = np.random.default_rng(2)
    m = free_bodies([stone(rng, 20), stone(rng, 30)])
    m.gravity = (0, 0, 0)
    model, struck = m.build(), 0
    for _ in range(8):
        quats = rng.normal(size=(2, 4))
        quats /= np.linalg.norm(quats, axis=1)[:, None]
        q = {"f0": [-0.2, 0, 0, *quats[0]], "f1": [0.2, *rng.uniform(-0.05, 0.05, 2), *quats[1]]}
        # velocities of free joints are in the axes of their bodies
        ways = [quaternion.to_matrix(x).T @ [side, 0, 0] for x, side in zip(quats, (0.6, -0.6), strict=True)]
        v = {f"f{i}": [*(3 * rng.normal(size=3)), *ways[i]] for i in range(2)}
        run = la.simulate(model, model.state(q, v), dt=0.005, duration=0.5, method=la.Maximal())
        struck += bool((run.contacts.count > 0).any())
        assert np.diff(run.energy.total).max() < 1e-6 * run.energy.total[0]  # measured 2e-8
        assert np.abs(run.momentum.linear[-1] - run.momentum.linear[0]).max() < 1e-9
        assert run.energy.total[-1] < 0.98 * run.energy.total[0]
    assert struck == 8


def test_ten_stones_pile_up_and_rest():
    rng = np.random.default_rng(4)
    model = free_bodies([stone(rng, 16) for _ in range(10)], friction=0.8, height=0.0).build()
    q = {}
    for i in range(10):
        quat = rng.normal(size=4)
        q[f"f{i}"] = [*rng.uniform(-0.05, 0.05, 2), 0.15 + 0.27 * i, *(quat / np.linalg.norm(quat))]
    run = la.simulate(model, model.state(q), dt=0.005, duration=3.0, method=la.Maximal(), save_every=10)
    assert run.report.failure is None
    assert np.nanmin(run.contacts.gap) > -1e-4
    assert np.diff(run.energy.total).max() < 5e-3 * run.energy.total[0]  # measured 1.3e-3 while they tumble
    assert np.abs(run.v[-1]).max() < 1e-6  # measured 5e-8
