"""Poses: every description of a rotation agrees, and bad ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from leastaction.errors import ModelError
from leastaction.model.pose import check_pose, inverse_pose, pose

angles = st.tuples(*[st.floats(-7, 7)] * 3)


def test_identity_by_default():
    assert np.array_equal(pose(), np.eye(4))
    assert np.array_equal(check_pose(None, "x"), np.eye(4))


@given(angles)
def test_rpy_is_fixed_axis_roll_pitch_yaw(rpy):
    expected = Rotation.from_euler("xyz", rpy).as_matrix()
    # measured 6e-16
    np.testing.assert_allclose(pose(rpy=rpy)[:3, :3], expected, rtol=0, atol=4e-15)


@given(angles, st.floats(1e-3, 1e3))
def test_quaternion_is_w_first_and_need_not_be_normalised(rpy, length):
    rotation = Rotation.from_euler("xyz", rpy)
    x, y, z, w = rotation.as_quat() * length
    made = pose((1, 2, 3), quat=(w, x, y, z))
    # measured 9e-16
    np.testing.assert_allclose(made[:3, :3], rotation.as_matrix(), rtol=0, atol=4e-15)
    assert made[:3, 3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("length", [1e-60, 1e60])
def test_tiny_and_huge_quaternions_keep_their_direction(length):
    made = pose(quat=np.array([1.0, 1.0, 0.0, 0.0]) * length)
    # measured 2e-16
    np.testing.assert_allclose(made[:3, :3], Rotation.from_euler("x", np.pi / 2).as_matrix(), rtol=0, atol=1e-15)


def test_a_quarter_turn_by_three_descriptions():
    R = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    half = np.sqrt(0.5)
    for made in (pose(rpy=(0, 0, np.pi / 2)), pose(quat=(half, 0, 0, half)), pose(matrix=R)):
        # measured 2e-16
        np.testing.assert_allclose(made[:3, :3], R, rtol=0, atol=1e-15)


def test_inverse():
    made = pose((1, -2, 3), rpy=(0.3, -1.0, 2.0))
    # measured 2e-16
    np.testing.assert_allclose(inverse_pose(made) @ made, np.eye(4), rtol=0, atol=4e-15)


def test_few_digits_are_made_orthogonal_and_then_left_alone():
    rounded = np.round(pose(rpy=(0.3, 0.4, 0.5)), 8)
    made = check_pose(rounded, "x")
    # measured 6e-16
    np.testing.assert_allclose(made[:3, :3].T @ made[:3, :3], np.eye(3), rtol=0, atol=2e-15)
    # measured 4e-9
    np.testing.assert_allclose(made, rounded, rtol=0, atol=2e-8)
    assert np.array_equal(check_pose(made, "x"), made)


def test_a_checked_pose_is_a_read_only_copy():
    given_pose = pose((1, 0, 0))
    made = check_pose(given_pose, "x")
    given_pose[0, 3] = 5
    assert made[0, 3] == 1
    with pytest.raises(ValueError, match="read-only"):
        made[0, 3] = 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rpy": (0, 0, 0), "quat": (1, 0, 0, 0)}, "at most one"),
        ({"quat": (0, 0, 0, 0)}, "zero"),
        ({"quat": (1, 0, 0)}, "4 numbers"),
        ({"xyz": (0, np.nan, 0)}, "finite"),
        ({"xyz": (0, 0)}, "3 numbers"),
        ({"xyz": "abc"}, "numbers"),
        ({"rpy": (0, np.inf, 0)}, "finite"),
        ({"matrix": np.diag([1, 1, -1])}, "reflection"),
        ({"matrix": 2 * np.eye(3)}, "not orthogonal"),
        ({"matrix": np.eye(4)}, "3x3"),
    ],
)
def test_bad_poses(arguments, message):
    with pytest.raises(ModelError, match=message):
        pose(**arguments)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.eye(3), "4x4"),
        (np.full((4, 4), np.nan), "finite"),
        (np.diag([1.0, 1.0, 1.0, 2.0]), "last row"),
        ("pose", "numbers"),
        ([[1, 0], [0]], "numbers"),
    ],
)
def test_bad_matrices_name_the_place(value, message):
    with pytest.raises(ModelError, match=f"frame 'tip'.*{message}"):
        check_pose(value, "frame 'tip'")
