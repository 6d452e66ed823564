"""Mass properties: parallel axes, composition, and what no body can have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastaction.errors import ModelError
from leastaction.model.inertia import MassProperties, check_inertia, combine, inertia_matrix, massless
from leastaction.model.pose import pose


def cloud(seed: int, n: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2.0, n), rng.uniform(-1, 1, (n, 3))


def of_points(masses: np.ndarray, points: np.ndarray) -> MassProperties:
    """Mass properties of point masses, summed by hand."""
    com = masses @ points / masses.sum()
    d = points - com
    inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, d, strict=True))
    return MassProperties(masses.sum(), com, inertia)


@given(st.integers(0, 10_000))
def test_combining_points_gives_their_cloud(seed):
    masses, points = cloud(seed)
    made = combine(MassProperties(m, p, np.zeros((3, 3))) for m, p in zip(masses, points, strict=True))
    expected = of_points(masses, points)
    # measured 0, 1e-16, 2e-15
    np.testing.assert_allclose(made.mass, expected.mass, rtol=1e-14)
    np.testing.assert_allclose(made.com, expected.com, rtol=0, atol=1e-14)
    np.testing.assert_allclose(made.inertia, expected.inertia, rtol=0, atol=4e-14)


@given(st.integers(0, 10_000))
def test_combining_in_groups_changes_nothing(seed):
    masses, points = cloud(seed)
    parts = [of_points(masses[s], points[s]) for s in (slice(0, 2), slice(2, 6))]
    # measured 3e-15
    np.testing.assert_allclose(combine(parts).inertia, of_points(masses, points).inertia, rtol=0, atol=4e-14)


def test_a_transformed_cloud_is_the_cloud_of_transformed_points():
    masses, points = cloud(3)
    frame = pose((1, 2, -3), rpy=(0.4, 1.0, -2.0))
    made = of_points(masses, points).transformed(frame)
    expected = of_points(masses, points @ frame[:3, :3].T + frame[:3, 3])
    # measured 4e-16, 1e-15
    np.testing.assert_allclose(made.com, expected.com, rtol=0, atol=2e-14)
    np.testing.assert_allclose(made.inertia, expected.inertia, rtol=0, atol=2e-14)
    assert np.array_equal(made.inertia, made.inertia.T)


def test_inertia_about_a_point():
    made = MassProperties(2.0, (0, 0, 0.5), np.zeros((3, 3)))
    # measured 0
    np.testing.assert_allclose(made.inertia_about((0, 0, 0)), np.diag([0.5, 0.5, 0.0]), rtol=0, atol=1e-16)


def test_scaling_to_a_mass():
    made = of_points(*cloud(1))
    scaled = made.scaled_to(2 * made.mass)
    # measured 0
    np.testing.assert_allclose(scaled.inertia, 2 * made.inertia, rtol=1e-15)
    assert np.array_equal(scaled.com, made.com)
    with pytest.raises(ModelError, match="massless"):
        massless().scaled_to(1.0)


def test_nothing_combines_to_nothing():
    made = combine([])
    assert made.mass == 0
    assert not made.inertia.any()


def test_three_ways_to_write_an_inertia():
    full = inertia_matrix([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 3]], "x")
    assert np.array_equal(inertia_matrix((1, 0.1, 0.2, 2, 0.3, 3), "x"), full)
    assert np.array_equal(inertia_matrix((1, 2, 3), "x"), np.diag([1.0, 2.0, 3.0]))
    with pytest.raises(ModelError, match=r"shape \(4,\)"):
        inertia_matrix((1, 2, 3, 4), "x")


@pytest.mark.parametrize("moments", [(0, 0, 0), (0, 1, 1), (1, 1, 2), (1, 1, 2 + 1e-10), (1e-12, 1e-12, 1e-12)])
def test_points_rods_and_plates_are_legal(moments):
    check_inertia(1.0, np.diag(moments), "body 'a'")


@pytest.mark.parametrize(
    ("inertia", "message"),
    [
        (np.diag([1.0, 1.0, 2.1]), "triangle inequality.*1, 1, 2.1"),
        (np.diag([-0.1, 1.0, 1.0]), "not positive.*-0.1"),
        (np.diag([0.0, 0.0, 1.0]), "triangle inequality"),
        (np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1.0]]), "not symmetric"),
        (np.diag([np.nan, 1, 1]), "finite"),
        (np.ones(3), "3x3"),
        # off-diagonal entries count: moments 0.1, 1, 1.9
        (np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 0.1]]), "triangle inequality"),
    ],
)
def test_what_no_body_can_have(inertia, message):
    with pytest.raises(ModelError, match=f"body 'a'.*{message}"):
        check_inertia(1.0, inertia, "body 'a'")


def test_the_inequality_does_not_depend_on_the_axes():
    R = pose(rpy=(0.3, 0.8, -1.1))[:3, :3]
    check_inertia(1.0, R @ np.diag([1.0, 1.0, 2.0]) @ R.T, "a")
    with pytest.raises(ModelError, match="triangle"):
        check_inertia(1.0, R @ np.diag([1.0, 1.0, 2.001]) @ R.T, "a")


@pytest.mark.parametrize("mass", [-1.0, np.nan, np.inf, "1", True, None])
def test_bad_masses(mass):
    with pytest.raises(ModelError, match="mass"):
        MassProperties(mass, (0, 0, 0), np.eye(3))
