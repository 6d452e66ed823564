"""Ellipsoids in contact with other bodies: as spheres where they are spheres, and no energy from nowhere."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.spatial import quaternion

METHOD = la.Maximal()


def model_of(*shapes, gravity=(0, 0, 0), **ground):
    m = la.Mechanism("eggs")
    m.gravity = gravity
    for i, shape in enumerate(shapes):
        m.add_body(f"b{i}", shape=shape, mass=1.0)
        m.add_joint(f"f{i}", "free", parent="world", child=f"b{i}")
    m.add_contacts(friction=0.5)
    if ground:
        m.add_ground(friction=0.5, **ground)
    return m.build()


def thrown(model, rng, off=0.05, speed=0.6, spin=3.0):
    """Two bodies on their way to each other."""
    q, v = {}, {}
    for i, side in enumerate((-1.0, 1.0)):
        quat = rng.normal(size=4)
        quat /= np.linalg.norm(quat)
        # velocities of free joints are in the axes of their bodies
        R = quaternion.to_matrix(quat)
        q[f"f{i}"] = [0.35 * side, *rng.uniform(-off, off, 2), *quat]
        v[f"f{i}"] = [*(spin * rng.normal(size=3)), *(R.T @ [-speed * side, 0, 0])]
    return model.state(q, v)


def test_an_ellipsoid_with_equal_axes_moves_as_a_sphere():
    runs = []
    # a contact names the ellipsoid first
    for other in (la.Ellipsoid((0.15, 0.15, 0.15)), la.Sphere(0.15)):
        model = model_of(other, la.Sphere(0.1))
        runs.append(la.simulate(model, thrown(model, np.random.default_rng(3)), dt=0.005, duration=0.8, method=METHOD))
    egg, ball = runs
    assert (ball.contacts.count > 0).any()
    assert np.abs(egg.q - ball.q).max() < 1e-11  # measured 2e-14


@pytest.mark.parametrize("other", [la.Sphere(0.1)], ids=lambda shape: shape.kind)
def test_eggs_thrown_at_others_gain_no_energy(other):
    model, rng, struck = model_of(other, la.Ellipsoid((0.08, 0.12, 0.2))), np.random.default_rng(4), 0
    for _ in range(10):
        run = la.simulate(model, thrown(model, rng), dt=0.005, duration=0.8, method=METHOD)
        struck += bool((run.contacts.count > 0).any())
        assert np.diff(run.energy.total).max() < 1e-5 * run.energy.total[0]  # measured 3e-7
        assert np.abs(run.momentum.linear[-1] - run.momentum.linear[0]).max() < 1e-9
    assert struck >= 9
