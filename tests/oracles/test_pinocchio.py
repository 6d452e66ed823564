"""Kinematics and dynamics of real robots against Pinocchio.

The robots are those of the package example-robot-data. Pinocchio knows no damping and no friction of joints, so they
are taken off here; its velocity of a floating base is (linear; angular), which ``to_pinocchio`` accounts for.
"""

from __future__ import annotations

import functools
import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map

pin = pytest.importorskip("pinocchio")

# file, whether the base floats, what of it changes the motion and is dropped
ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False, ("mimic",)),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False, ()),
    "a1": ("a1_description/urdf/a1.urdf", True, ()),
    "solo12": ("solo_description/robots/solo12.urdf", True, ()),
    "anymal": ("anymal_b_simple_description/robots/anymal.urdf", True, ()),
    "talos": ("talos_data/robots/talos_full_v2.urdf", True, ("mimic",)),
}
STATES = 4


@functools.cache
def pair(name):
    """Our model of a robot and Pinocchio's."""
    file, floating, allow = ROBOTS[name]
    try:
        data = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    path = Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots"))) / file
    model = la.load(path, floating=floating, allow=allow, limits="report").without("damping", "friction").build()
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    return model, pin.buildModelFromUrdf(str(path), *root)


def states(model, other):
    """Ours and theirs: q, v, a and generalised forces, as rows; and T with their v = T ours."""
    rng = np.random.default_rng(20)
    for _ in range(STATES):
        q = pin.neutral(other)
        for k, joint in enumerate(other.joints):
            if k and joint.nq == 1:
                q[joint.idx_q] = rng.uniform(-3, 3)
            elif k and joint.shortname().startswith("JointModelFreeFlyer"):
                quat = rng.normal(size=4)
                q[joint.idx_q : joint.idx_q + 7] = [*rng.normal(size=3), *quat / np.linalg.norm(quat)]
            elif k and joint.nq == 2:
                angle = rng.uniform(-3, 3)
                q[joint.idx_q : joint.idx_q + 2] = np.cos(angle), np.sin(angle)
        v = rng.normal(size=other.nv)
        our_q, our_v = la.from_pinocchio(model, q, v, other)
        yield q, v, rng.normal(size=other.nv), our_q, our_v, velocity_map(la.to_pinocchio, model, our_q, other)


def error(ours, expected):
    """Largest difference relative to the largest entry."""
    return np.abs(ours - expected).max() / np.abs(expected).max()


@pytest.fixture(params=ROBOTS)
def robot(request):
    return pair(request.param)


def test_same_joints(robot):
    model, other = robot
    assert model.nv == other.nv
    assert model.total_mass == pytest.approx(pin.computeTotalMass(other), rel=1e-13)  # measured 3e-16


def test_mass_matrix(robot):
    model, other = robot
    data = other.createData()
    for q, _, _, our_q, _, T in states(model, other):
        M = pin.crba(other, data, q)
        M = np.triu(M) + np.triu(M, 1).T
        assert error(la.mass_matrix(model, our_q), T.T @ M @ T) < 1e-12  # measured 5e-16


def test_bias_and_gravity(robot):
    model, other = robot
    data = other.createData()
    for q, v, _, our_q, our_v, T in states(model, other):
        assert error(la.bias_forces(model, our_q, our_v), T.T @ pin.nle(other, data, q, v)) < 1e-12  # measured 9e-16
        gravity = T.T @ pin.computeGeneralizedGravity(other, data, q)
        assert error(la.gravity_forces(model, our_q), gravity) < 1e-12  # measured 2e-15


def test_inverse_dynamics(robot):
    model, other = robot
    data = other.createData()
    for q, v, a, our_q, our_v, T in states(model, other):
        # T is constant, so accelerations go by it too
        our_a = np.linalg.solve(T, a)
        tau = T.T @ pin.rnea(other, data, q, v, a)
        assert error(la.inverse_dynamics(model, our_q, our_v, our_a), tau) < 1e-12  # measured 2e-15


def test_forward_dynamics(robot):
    model, other = robot
    data = other.createData()
    for q, v, tau, our_q, our_v, T in states(model, other):
        a = np.linalg.solve(T, pin.aba(other, data, q, v, tau))
        assert error(la.forward_dynamics(model, our_q, our_v, T.T @ tau), a) < 1e-10  # measured 2e-13


def test_frames_and_jacobians(robot):
    model, other = robot
    data = other.createData()
    links = [frame.name for frame in other.frames if frame.type == pin.FrameType.BODY and frame.name != "universe"]
    assert len(links) > 6
    for q, v, _, our_q, our_v, T in states(model, other):
        pin.computeJointJacobians(other, data, q)
        pin.updateFramePlacements(other, data)
        ours = la.poses(model, our_q)
        for name in links:
            if name == "world":
                continue
            frame = other.getFrameId(name, pin.FrameType.BODY)
            assert np.abs(ours[name] - data.oMf[frame].homogeneous).max() < 1e-12  # measured 9e-16
            J = pin.getFrameJacobian(other, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED) @ T
            J = np.vstack([J[3:], J[:3]])
            assert np.abs(la.jacobian(model, our_q, name) - J).max() < 1e-12  # measured 2e-15
        # the velocity of the last link from both
        pin.forwardKinematics(other, data, q, v)
        twist = pin.getFrameVelocity(other, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
        velocity = la.jacobian(model, our_q, name) @ our_v
        assert np.abs(velocity - np.concatenate([twist.angular, twist.linear])).max() < 1e-11  # measured 2e-15


def test_energy_and_momentum(robot):
    model, other = robot
    data = other.createData()
    for q, v, _, our_q, our_v, T in states(model, other):
        energy = la.energy(model, our_q, our_v)
        assert energy.kinetic == pytest.approx(pin.computeKineticEnergy(other, data, q, v), rel=1e-12)  # measured 8e-16
        potential = pin.computePotentialEnergy(other, data, q)
        assert energy.potential == pytest.approx(potential, rel=1e-12, abs=1e-11)  # measured 5e-16
        center = pin.centerOfMass(other, data, q)
        assert np.abs(la.center_of_mass(model, our_q) - center).max() < 1e-13  # measured 3e-16
        # their centroidal map is (linear; angular)
        A = pin.ccrba(other, data, q, v) @ T
        A = np.vstack([A[3:], A[:3]])
        assert error(la.centroidal_map(model, our_q), A) < 1e-12  # measured 9e-16
        momentum = la.momentum(model, our_q, our_v)
        assert error(momentum.linear, data.hg.linear) < 1e-12  # measured 1e-15
        angular = data.hg.angular + np.cross(data.com[0], data.hg.linear)
        assert error(momentum.angular, angular) < 1e-12  # measured 4e-15


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_many_states(name, monkeypatch):
    """All of the above at two hundred states."""
    monkeypatch.setitem(globals(), "STATES", 200)
    for test in (test_mass_matrix, test_bias_and_gravity, test_inverse_dynamics, test_forward_dynamics):
        test(pair(name))
    test_energy_and_momentum(pair(name))


def test_fingers_that_mimic_move_as_one():
    """The Panda with its coupled fingers against Pinocchio's matrices in the coordinates that are left."""
    model, other = pair("panda")
    file = Path(ROBOTS["panda"][0])
    data = importlib.metadata.distribution("example-robot-data")
    path = Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots"))) / file
    coupled = la.load(path, limits="report").without("damping", "friction").build()
    (term, leader) = next(iter(coupled.mechanism.couplings.values())).terms
    follower, first = (coupled.joints[each.joint].v.start for each in (term, leader))
    S = np.delete(np.eye(model.nv), follower, axis=1)
    S[follower, np.flatnonzero(np.delete(np.arange(model.nv), follower) == first)] = -leader.coefficients[0]
    for _, _, tau, our_q, our_v, T in states(model, other):
        at, rate = S @ np.delete(our_q, follower), S @ np.delete(our_v, follower)
        pin_q, pin_v = la.to_pinocchio(model, at, rate, other)
        d = other.createData()
        M, h = np.array(pin.crba(other, d, pin_q)), pin.nle(other, d, pin_q, pin_v)
        M = np.triu(M) + np.triu(M, 1).T
        forces = T @ tau
        R = T @ S
        expected = S @ np.linalg.solve(R.T @ M @ R, R.T @ (forces - h))
        # measured 5e-15
        assert error(la.forward_dynamics(coupled, at, rate, T.T @ forces), expected) < 1e-11
