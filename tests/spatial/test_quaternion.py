"""Unit quaternions: algebra, conversions, exponential map, charts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from leastaction.errors import ModelError
from leastaction.spatial import quaternion, so3

PI = np.pi
vectors = arrays(float, 3, elements=st.floats(-3.0, 3.0))
quaternions = arrays(float, 4, elements=st.floats(-1.0, 1.0)).filter(lambda q: np.linalg.norm(q) > 0.1)


def near(a, b, tolerance):
    """Fail where a and b differ by more than the tolerance."""
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@given(quaternions, quaternions, vectors)
def test_products_compose_rotations(a, b, x):
    a, b = quaternion.normalize(a), quaternion.normalize(b)
    R = quaternion.to_matrix(a) @ quaternion.to_matrix(b)
    near(quaternion.to_matrix(quaternion.multiply(a, b)), R, 5e-15)  # measured 1e-15
    near(quaternion.rotate(a, x), quaternion.to_matrix(a) @ x, 2e-14)  # measured 9e-16
    unit = quaternion.multiply(a, quaternion.conjugate(a))
    near(unit, [1, 0, 0, 0], 1e-15)  # measured 4e-16


def test_matrices_agree_with_scipy():
    q = quaternion.normalize(np.random.default_rng(0).normal(size=(100, 4)))
    scipy = Rotation.from_quat(quaternion.to_xyzw(q))
    near(quaternion.to_matrix(q), scipy.as_matrix(), 2e-15)  # measured 1e-15
    near(quaternion.log(q), scipy.as_rotvec(), 5e-15)  # measured 9e-16


@given(quaternions)
def test_matrix_and_back(q):
    q = quaternion.canonical(quaternion.normalize(q))
    back = quaternion.from_matrix(quaternion.to_matrix(q))
    # next to half turns q and -q are neighbours
    assert min(np.abs(back - q).max(), np.abs(back + q).max()) < 2e-15  # measured 4e-16
    np.testing.assert_array_equal(quaternion.canonical(back), back)


def test_from_matrix_at_every_largest_component(axes):
    # angles where w, x, y, z in turn is the largest, and where two or four tie
    for angle in (1e-9, 0.5, PI / 2, 2 * PI / 3, PI - 1e-9, PI):
        q = quaternion.exp(angle * np.concatenate([axes, -axes]))
        R = quaternion.to_matrix(q)
        back = quaternion.from_matrix(R)
        near(quaternion.to_matrix(back), R, 3e-15)  # measured 9e-16
        near(np.linalg.norm(back, axis=-1), 1.0, 1e-15)  # measured 2e-16


@given(quaternions)
def test_q_and_minus_q_are_the_same_rotation(q):
    q = quaternion.normalize(q)
    np.testing.assert_array_equal(quaternion.log(q), quaternion.log(-q))
    np.testing.assert_array_equal(quaternion.to_mrp(q), quaternion.to_mrp(-q))
    assert np.linalg.norm(quaternion.log(q)) <= PI * (1 + 1e-15)  # measured 1e-16 above


def test_q_and_minus_q_agree_at_exact_half_turns(axes):
    q = np.concatenate([np.zeros((len(axes), 1)), axes], axis=1)
    np.testing.assert_array_equal(quaternion.log(q), quaternion.log(-q))
    near(np.abs(quaternion.log(q)), PI * np.abs(axes), 1e-15)  # measured 4e-16
    np.testing.assert_array_equal(quaternion.to_mrp(q), quaternion.to_mrp(-q))


@pytest.mark.parametrize("angle", [0.0, 1e-200, 1e-12, 1e-9, 1.1e-9, 1e-4, 1.0, 3.0, PI - 1e-9])
def test_log_of_exp(angle, axes):
    w = angle * axes
    near(quaternion.log(quaternion.exp(w)), w, 1e-15 * angle)  # measured 2e-16


@given(vectors)
def test_exp_agrees_with_the_matrix_exponential_map(w):
    np.testing.assert_array_equal(quaternion.to_matrix(quaternion.exp(w)), so3.exp(w))


def test_modified_rodrigues_parameters(axes):
    angle = 2.2
    z = quaternion.to_mrp(quaternion.exp(angle * axes))
    near(z, 4 * np.tan(angle / 4) * axes, 2e-15)  # measured 4e-16
    near(quaternion.from_mrp(z), quaternion.exp(angle * axes), 1e-15)  # measured 2e-16
    # beyond half a turn the parameters of the shorter rotation come back
    long = quaternion.from_mrp(4 * np.tan(4.0 / 4) * axes)
    near(quaternion.to_mrp(long), -4 * np.tan((2 * PI - 4.0) / 4) * axes, 5e-15)  # measured 9e-16


@given(quaternions, quaternions, vectors)
def test_retract_and_local(q0, q1, w):
    q0, q1 = quaternion.normalize(q0), quaternion.normalize(q1)
    back = quaternion.retract(q0, quaternion.local(q0, q1))
    near(quaternion.to_matrix(back), quaternion.to_matrix(q1), 1e-14)  # measured 1e-15
    moved = quaternion.retract(q0, w)
    near(quaternion.to_matrix(moved), quaternion.to_matrix(q0) @ so3.exp(w), 5e-15)  # measured 1e-15
    assert abs(np.linalg.norm(moved) - 1.0) < 1e-15  # measured 2e-16


def test_xyzw_converters():
    q = np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(quaternion.to_xyzw(q), [[1, 2, 3, 0], [5, 6, 7, 4]])
    np.testing.assert_array_equal(quaternion.from_xyzw(quaternion.to_xyzw(q)), q)


def test_normalize_keeps_the_direction_of_tiny_and_large_quaternions():
    near(quaternion.normalize([3e-200, 0, 4e-200, 0]), [0.6, 0, 0.8, 0], 2e-16)  # measured 1e-16
    near(quaternion.normalize([3e50, 0, 4e50, 0]), [0.6, 0, 0.8, 0], 2e-16)  # measured 0
    with pytest.raises(ModelError, match="zero quaternion"):
        quaternion.normalize(np.zeros((2, 4)))
