"""The robots against published figures."""

from __future__ import annotations

import importlib.metadata
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import leastaction as la
from leastaction import models


def test_quadruped_has_the_published_masses_and_joints():
    m = models.quadruped()
    published = {"trunk": 4.713, "hip": 0.696, "thigh": 1.013, "calf": 0.166, "foot": 0.06}
    for name, body in m.bodies.items():
        assert body.mass == published[name.split("_")[-1]]
    joints = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]
    model = m.build()
    assert list(model.joint_names) == ["root", *joints]
    assert len(m.actuators) == 12
    # limits in degrees
    limits = {"hip": (-46, 46), "thigh": (-60, 240), "calf": (-154.5, -52.5)}
    for name in joints:
        joint = m.joints[name]
        np.testing.assert_allclose(joint.limits, [np.radians(limits[name.split("_")[1]])], rtol=1e-15)  # measured 0
        assert joint.effort == 33.5


def test_quadruped_legs_have_the_published_lengths():
    model = models.quadruped().build()
    poses = la.poses(model, None)
    for leg, x, y in (("FR", 1, -1), ("FL", 1, 1), ("RR", -1, -1), ("RL", -1, 1)):
        expected = [x * 0.183, y * (0.047 + 0.0838), -0.4]
        np.testing.assert_allclose(poses[f"{leg}_foot"][:3, 3], expected, rtol=0, atol=1e-15)  # measured 0
    # the stance of the docstring: feet below the hips, on the ground
    q = {"root": (0, 0, 0.02 + 0.4 * np.cos(0.9), 1, 0, 0, 0)}
    for leg in ("FR", "FL", "RR", "RL"):
        q |= {f"{leg}_thigh_joint": 0.9, f"{leg}_calf_joint": -1.8}
    poses = la.poses(model, q)
    for leg, x in (("FR", 1), ("FL", 1), ("RR", -1), ("RL", -1)):
        np.testing.assert_allclose(
            poses[f"{leg}_foot"][[0, 2], 3], [x * 0.183, 0.02], rtol=0, atol=1e-15
        )  # measured 3e-17
    # left and right are alike, so the centre of mass is in the middle plane
    np.testing.assert_allclose(la.center_of_mass(model, q)[1], 0, rtol=0, atol=1e-15)  # measured 3e-19


def test_minitaur_stands_on_closed_legs(loop_rates):
    model = models.minitaur().build()
    poses = la.poses(model, None)
    depth = np.sqrt(0.03)
    for leg, x, y in (("front_left", 1, 1), ("back_left", -1, 1), ("front_right", 1, -1), ("back_right", -1, -1)):
        np.testing.assert_allclose(
            poses[f"{leg}_foot"][:3, 3], [x * 0.21, y * 0.10, -depth], rtol=0, atol=1e-15
        )  # measured 3e-17
        for side in ("fore", "aft"):
            for part, length in (("upper", 0.1), ("lower", 0.2)):
                body = model.mechanism.bodies[f"{leg}_{part}_{side}"]
                assert 2 * np.linalg.norm(body.com) == pytest.approx(length, rel=1e-14)  # measured 0
    # the base and two motors for each leg are what is left free
    rank = int((np.linalg.svd(loop_rates(model, model.neutral()), compute_uv=False) > 1e-9).sum())
    assert model.nv - rank == 6 + 8
    assert list(model.mechanism.actuators) == [name for name in model.joint_names if "_motor_" in name]


def test_minitaur_toe_moves_as_the_five_bar_says(loop_gap):
    model = models.minitaur().build()
    # both upper links turned down by the same angle: the toe goes straight down
    angle = 0.5
    upper = np.array([np.cos(angle), -np.sin(angle)]) * 0.1
    toe = np.array([0.0, upper[1] - np.sqrt(0.2**2 - upper[0] ** 2)])
    at_rest, now = np.array([-0.1, -np.sqrt(0.03)]), toe - upper
    knee = (np.arctan2(at_rest[1], at_rest[0]) - np.arctan2(now[1], now[0])) - angle
    q = {}
    for leg in ("front_left", "back_left", "front_right", "back_right"):
        q |= {f"{leg}_motor_fore": angle, f"{leg}_motor_aft": -angle}
        q |= {f"{leg}_knee_fore": knee, f"{leg}_knee_aft": -knee}
    assert loop_gap(model, model.check_q(q)) < 1e-15  # measured 2e-16
    np.testing.assert_allclose(
        la.poses(model, q)["front_left_foot"][2, 3], toe[1], rtol=0, atol=1e-15
    )  # measured 6e-17


def test_arm_reaches_as_published():
    model = models.arm().build()
    poses = la.poses(model, None)
    # stretched: 0.333 + 0.316 + 0.384 up and 0.088 forward, the flange 0.107 down
    np.testing.assert_allclose(poses["flange"][:3, 3], [0.088, 0, 1.033 - 0.107], rtol=0, atol=1e-15)  # measured 9e-18
    np.testing.assert_allclose(poses["flange"][:3, :3], np.diag([1, -1, -1]), rtol=0, atol=1e-15)  # measured 2e-16
    # the ready position is within the limits
    ready = [0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4]
    for value, view in zip(ready, model.joints.values(), strict=True):
        low, high = view.joint.limits[0]
        assert low < value < high


def test_arm_agrees_with_the_description_in_example_robot_data():
    data = importlib.metadata.distribution("example-robot-data")
    file = data.locate_file("cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf")
    root = ElementTree.parse(str(file)).getroot()
    m = models.arm()
    for i in range(1, 8):
        # masses and inertias
        inertial = root.find(f"link[@name='panda_link{i}']/inertial")
        body = m.bodies[f"link{i}"]
        assert body.mass == float(inertial.find("mass").get("value"))
        np.testing.assert_array_equal(body.com, [float(x) for x in inertial.find("origin").get("xyz").split()])
        entries = [float(inertial.find("inertia").get(key)) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        np.testing.assert_array_equal(body.inertia[np.triu_indices(3)], entries)
        # joint frames and bounds
        element, joint = root.find(f"joint[@name='panda_joint{i}']"), m.joints[f"joint{i}"]
        xyz, rpy = ([float(x) for x in element.find("origin").get(key).split()] for key in ("xyz", "rpy"))
        np.testing.assert_allclose(joint.parent_frame, la.pose(xyz, rpy=rpy), rtol=0, atol=1e-15)  # measured 0
        limit = element.find("limit")
        bounds = [float(limit.get(key)) for key in ("lower", "upper", "effort", "velocity")]
        np.testing.assert_array_equal([*joint.limits[0], *joint.effort, *joint.speed], bounds)
