"""Real URDF models against Pinocchio: what stands still, with the root fixed and free.

The models are those of ``models.txt``. Pinocchio's dynamics knows no damping and no friction of joints, so they are
taken off here and compared as data; mimic joints move on their own on both sides.
"""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map

from .listed import check_all_are_listed, check_reason, load, parameters

pin = pytest.importorskip("pinocchio")

SECTIONS = ("robots/urdf", "example-robot-data")
STATES = 2


@pytest.mark.parametrize("section", SECTIONS)
def test_every_file_is_listed(section):
    check_all_are_listed(section, "urdf")


@pytest.mark.parametrize("one", parameters(SECTIONS, compared=False))
def test_not_compared_for_the_listed_reason(one):
    check_reason(one)


@pytest.mark.parametrize("one", parameters(SECTIONS, compared=True))
def test_statics(one):
    m = load(one, limits="report")
    if one.reason:
        with pytest.raises(ValueError, match=one.reason.removeprefix("Pinocchio: ")):
            pin.buildModelFromUrdf(str(one.path))
        return
    check_joints(m, pin.buildModelFromUrdf(str(one.path)))
    compare(one, m, floating=False)
    # a root link called "world" does not float
    if "root" in m.joints:
        compare(one, load(one, floating=True, limits="report"), floating=True)


def check_joints(m, other):
    """Limits, efforts, speeds, damping and friction of joints of one coordinate."""
    for name, joint in list(zip(other.names, other.joints, strict=True))[1:]:
        ours, i = m.joints[name], joint.idx_v
        if joint.nq == 1:
            # reversed ones are none
            low, high = (limit[joint.idx_q] for limit in _position_limits(other))
            assert ours.limits[0].tolist() == ([low, high] if low <= high else [-np.inf, np.inf])
        # zero is how files say that they do not know, or a negative number; noted here
        for value, theirs in ((ours.effort, other.effortLimit), (ours.speed, other.velocityLimit)):
            assert joint.nv != 1 or value[0] == (theirs[i] if theirs[i] > 0 else np.inf)
        for value, theirs in ((ours.damping, other.damping), (ours.friction, other.upperDryFrictionLimit)):
            assert joint.nv != 1 or value[0] == theirs[i]


def _position_limits(other):
    return other.lowerPositionLimit, other.upperPositionLimit


def compare(one, m, *, floating):
    """All quantities, with the inertias of the file, also those that no body has."""
    model = m.without("damping", "friction").build()
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    check(model, pin.buildModelFromUrdf(str(one.path), *root))


def error(ours, expected, size=0.0):
    """Largest difference relative to the largest entry, or to ``size`` if that is larger."""
    return np.abs(ours - expected).max() / max(np.abs(expected).max(), size, 1e-9)


def check(model, other):
    """Poses, Jacobians, gravity, inertia and forces, and accelerations where they are determined, at random states."""
    data, rng = other.createData(), np.random.default_rng(3)
    assert model.nv == other.nv
    assert model.total_mass == pytest.approx(pin.computeTotalMass(other), rel=1e-12)  # measured 1e-15
    for _ in range(STATES):
        their_q = pin.integrate(other, pin.neutral(other), rng.normal(size=other.nv))
        their_v, tau = rng.normal(size=other.nv), rng.normal(size=other.nv)
        q, v = la.from_pinocchio(model, their_q, their_v, other)
        T = velocity_map(la.to_pinocchio, model, q, other)
        check_links(model, other, data, their_q, q, T)
        # gravity
        M = pin.crba(other, data, their_q)
        M = T.T @ (np.triu(M) + np.triu(M, 1).T) @ T
        # where weights balance, relative to a thousandth of them all
        size = 1e-3 * max(np.abs(M).max(), model.total_mass)
        gravity = T.T @ pin.computeGeneralizedGravity(other, data, their_q)
        assert error(la.gravity_forces(model, q), gravity, size) < 1e-12  # measured 2e-14
        energy = la.energy(model, q, v)
        potential = pin.computePotentialEnergy(other, data, their_q)
        assert energy.potential == pytest.approx(potential, rel=1e-12, abs=1e-11)  # measured 9e-13 of 900 J
        # an inertia without mass counts nowhere here; dynamics refuses it
        if "inertia and no mass" in model.undetermined:
            continue
        # inertia; accelerations in the measure of forces, M may be close to singular
        ours = la.mass_matrix(model, q)
        assert error(ours, M) < 1e-12  # measured 4e-15
        bias = T.T @ pin.nle(other, data, their_q, their_v)
        assert error(la.bias_forces(model, q, v), bias, size) < 1e-12  # measured 2e-14
        kinetic = pin.computeKineticEnergy(other, data, their_q, their_v)
        assert energy.kinetic == pytest.approx(kinetic, rel=1e-12)  # measured 7e-15
        if model.undetermined:
            continue
        a = np.linalg.solve(T, pin.aba(other, data, their_q, their_v, tau))
        # measured 1e-10, iCub with M of condition 1e8
        assert error(ours @ la.forward_dynamics(model, q, v, T.T @ tau), ours @ a) < 1e-9


def check_links(model, other, data, their_q, q, T):
    """Poses and Jacobians of all links."""
    pin.computeJointJacobians(other, data, their_q)
    pin.updateFramePlacements(other, data)
    poses = la.poses(model, q)
    links = [f.name for f in other.frames if f.type == pin.FrameType.BODY and f.name not in ("universe", "world")]
    assert len(links) > 1
    for name in links:
        frame = other.getFrameId(name, pin.FrameType.BODY)
        assert np.abs(poses[name] - data.oMf[frame].homogeneous).max() < 1e-12  # measured 3e-15
        J = pin.getFrameJacobian(other, data, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED) @ T
        assert np.abs(la.jacobian(model, q, name) - np.vstack([J[3:], J[:3]])).max() < 1e-12  # measured 3e-15


@pytest.mark.slow
@pytest.mark.parametrize("one", parameters(SECTIONS, compared=True))
def test_it_moves(one):
    """The default method runs every file, where it has no inertia with that of its shapes, and keeps its energy."""
    m = load(one, inertia="shapes", limits="report").without("friction", "damping")
    model = m.build()
    assert model.undetermined == ""
    run = la.simulate(model, dt=1e-3, duration=0.2)
    assert run.report.method == "galerkin:4"
    assert np.isfinite(run.q).all()
    energies = la.energy(model, run.q, run.v)
    size = np.ptp(energies.potential) + 1e-9 * abs(energies.total[0])
    # measured 7e-6, where almost nothing falls; half of them 1e-11
    assert np.ptp(energies.total) < 1e-4 * size + 1e-12
