"""Ellipsoids in contact with other bodies: as spheres where they are spheres, and no energy from nowhere."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.spatial import quaternion

STONE = np.random.default_rng(5).normal(size=(20, 3))
STONE *= 0.15 / np.linalg.norm(STONE, axis=1)[:, None]
EGG = la.Ellipsoid((0.08, 0.12, 0.2))


def mesh_of(points):
    from scipy.spatial import ConvexHull

    return la.Mesh(vertices=points, faces=ConvexHull(points).simplices)


# one mechanism has all of them, so that one program is compiled
ZOO = {
    "ball": la.Sphere(0.15),
    "rod": la.Capsule(0.06, 0.3),
    "can": la.Cylinder(0.12, 0.2),
    "block": la.Box((0.2, 0.25, 0.3)),
    "stone": mesh_of(STONE),
    "plate": la.Ellipsoid((0.25, 0.2, 0.05)),
    "round": la.Ellipsoid((0.15, 0.15, 0.15)),
    "egg": EGG,
}


@functools.cache
def zoo(**ground):
    m = la.Mechanism("zoo")
    m.gravity = (0, 0, -9.81 if ground else 0)
    for name, shape in ZOO.items():
        m.add_body(name, shape=shape, mass=1.0)
        m.add_joint(f"to_{name}", "free", parent="world", child=name)
    m.add_contacts(friction=0.5)
    if ground:
        m.add_ground(friction=0.5, **ground)
    return m.build()


def thrown(one, two, rng, off=0.05, speed=0.6, spin=3.0):
    """Two bodies on their way to each other, all others far away."""
    q = {f"to_{name}": [100.0, 10.0 * i, 0, 1, 0, 0, 0] for i, name in enumerate(ZOO)}
    v = {}
    for name, side in ((one, -1.0), (two, 1.0)):
        quat = rng.normal(size=4)
        quat /= np.linalg.norm(quat)
        q[f"to_{name}"] = [0.35 * side, *rng.uniform(-off, off, 2), *quat]
        # velocities of free joints are in the axes of their bodies
        v[f"to_{name}"] = [*(spin * rng.normal(size=3)), *(quaternion.to_matrix(quat).T @ [-speed * side, 0, 0])]
    return zoo().state(q, v)


def run_of(start, duration=0.8, dt=0.005):
    return la.simulate(zoo(), start, dt=dt, duration=duration, method=la.Maximal())


@pytest.mark.parametrize("other", ["rod", "block", "stone"])
def test_an_ellipsoid_with_equal_axes_moves_as_a_sphere(other):
    round, ball = (run_of(thrown(name, other, np.random.default_rng(3))) for name in ("round", "ball"))
    assert (ball.contacts.count > 0).any()
    assert np.abs(round.poses("round")[:, :3, 3] - ball.poses("ball")[:, :3, 3]).max() < 1e-6
    assert np.abs(round.poses(other) - ball.poses(other)).max() < 1e-6


@pytest.mark.parametrize("other", [name for name in ZOO if name != "egg"])
def test_eggs_thrown_at_others_gain_no_energy(other):
    rng, struck = np.random.default_rng(4), 0
    for _ in range(10):
        run = run_of(thrown(other, "egg", rng))
        struck += bool((run.contacts.count > 0).any())
        assert run.report.failure is None
        assert np.diff(run.energy.total).max() < 1e-3 * run.energy.total[0]
        assert np.abs(run.momentum.linear[-1] - run.momentum.linear[0]).max() < 1e-9
    assert struck >= 8
