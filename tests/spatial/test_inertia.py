"""Spatial inertia against sums over point masses."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.spatial import inertia, se3


def near(a, b, tolerance):
    """Fail where a and b differ by more than the tolerance."""
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def cloud(rng, count=6):
    """Point masses (count,) at points (count, 3), with their mass, centre and moment about the centre."""
    m, x = rng.uniform(0.1, 2.0, count), rng.normal(size=(count, 3))
    com = m @ x / m.sum()
    return m, x, m.sum(), com, moment(m, x - com)


def moment(m, x):
    """Second moment (3, 3) of point masses about the origin."""
    return sum(mi * (xi @ xi * np.eye(3) - np.outer(xi, xi)) for mi, xi in zip(m, x, strict=True))


def test_inertia_about_the_origin_is_that_of_the_points():
    rng = np.random.default_rng(0)
    for _ in range(5):
        m, x, mass, com, I = cloud(rng)
        T = se3.exp(rng.normal(size=6))
        world = se3.act(T, x)
        I6, h = inertia.at(T, mass, com, inertia.to_six(I))
        near(inertia.from_six(I6), moment(m, world), 1e-12)  # measured 5e-15
        near(h, m @ world, 1e-13)  # measured 2e-15


def test_matrix_gives_momentum_and_kinetic_energy_of_the_points():
    rng = np.random.default_rng(1)
    m, x, mass, com, I = cloud(rng)
    I6, h = inertia.at(np.eye(4), mass, com, inertia.to_six(I))
    M = inertia.matrix(I6, h, mass)
    V = rng.normal(size=6)
    velocity = np.cross(V[:3], x) + V[3:]
    momentum = np.concatenate([(m[:, None] * np.cross(x, velocity)).sum(axis=0), m @ velocity])
    near(M @ V, momentum, 1e-13)  # measured 4e-15
    np.testing.assert_allclose(V @ M @ V, m @ (velocity * velocity).sum(axis=1), rtol=1e-14)  # measured 1e-16
    np.testing.assert_array_equal(M, M.T)


def test_a_moving_frame_transforms_inertia_by_the_adjoint():
    rng = np.random.default_rng(2)
    _, _, mass, com, I = cloud(rng)
    T = se3.exp(rng.normal(size=6))
    I6 = inertia.to_six(I)
    body = inertia.matrix(*inertia.at(np.eye(4), mass, com, I6), mass)
    world = inertia.matrix(*inertia.at(T, mass, com, I6), mass)
    X = se3.Ad_inv(T)
    near(world, X.T @ body @ X, 1e-12)  # measured 3e-14


def test_shift_moves_the_point_and_add_joins_bodies():
    rng = np.random.default_rng(3)
    a, b = cloud(rng), cloud(rng)
    d = rng.normal(size=3)
    A = (*inertia.at(np.eye(4), a[2], a[3], inertia.to_six(a[4])), a[2])
    B = (*inertia.at(np.eye(4), b[2], b[3], inertia.to_six(b[4])), b[2])
    I6, h, mass = inertia.add(A, B)
    I6, h = inertia.shift(I6, h, mass, d)
    m, x = np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]) - d
    assert abs(mass - m.sum()) < 1e-14  # measured 0
    near(h, m @ x, 1e-13)  # measured 2e-15
    near(inertia.from_six(I6), moment(m, x), 1e-12)  # measured 7e-15


def test_batches_agree_with_single_calls():
    rng = np.random.default_rng(4)
    T, mass = se3.exp(rng.normal(size=(3, 2, 6))), rng.uniform(1, 2, size=2)
    com, I6 = rng.normal(size=(3, 1, 3)), inertia.to_six(np.diag([1.0, 2.0, 2.5]))
    I, h = inertia.at(T, mass, com, I6)
    M = inertia.matrix(I, h, mass)
    assert (I.shape, h.shape, M.shape) == ((3, 2, 6), (3, 2, 3), (3, 2, 6, 6))
    one = inertia.at(T[2, 1], mass[1], com[2, 0], I6)
    np.testing.assert_array_equal(I[2, 1], one[0])
    np.testing.assert_array_equal(M[2, 1], inertia.matrix(*one, mass[1]))


def test_an_asymmetric_matrix_is_refused():
    with pytest.raises(ModelError, match="not symmetric"):
        inertia.to_six([[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
