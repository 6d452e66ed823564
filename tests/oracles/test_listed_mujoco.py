"""Real MJCF models against MuJoCo: what stands still, and free motion.

The models are those of ``models.txt``. Contact, limits, friction of joints and actuators do not act here, on either
side (tests/io/test_mjcf_models.py compares them as data); springs, dampers and rotor inertia do. What is dropped from a
model by ``allow=`` is switched off in MuJoCo too.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map
from leastaction.io.mjcf_names import body_names, joint_names
from leastaction.reference import loops

from .listed import check_all_are_listed, check_reason, load, parameters

mujoco = pytest.importorskip("mujoco")

SECTIONS = ("robots/mjcf", "gymnasium/envs/mujoco/assets", "dm_control")
STATES = 2
# of those with loops
LOOPS = ("agility_cassie/scene.xml", "iit_softfoot/scene.xml", "robotiq_2f85/scene.xml")
# free motion with the usual tests
SHORT = ("kuka_iiwa_14/scene.xml", "half_cheetah.xml", "suite/acrobot.xml")

pytestmark = pytest.mark.filterwarnings("ignore:.*settotalmass.*")


@pytest.mark.parametrize("section", SECTIONS)
def test_every_file_is_listed(section):
    check_all_are_listed(section, "xml")


@pytest.mark.parametrize("one", parameters(SECTIONS, compared=False))
def test_not_compared_for_the_listed_reason(one):
    check_reason(one)


class Pair:
    """Our model and MuJoCo's, without what does not act here; loops stay on our side if asked."""

    def __init__(self, one, keep_loops=False):
        self.mechanism = load(one)
        m = self.mechanism.without("contacts", "friction", "limits", "actuators", "couplings")
        self.model = m.build()
        if self.model.loop_names and not keep_loops:
            for name in self.model.loop_names:
                m.remove_joint(name)
            self.model = m.build()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.other = mujoco.MjModel.from_xml_path(str(one.path))
        self.flags = int(self.other.opt.disableflags)
        self.switch_off("CONSTRAINT", "ACTUATION")
        self.other.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        # what was dropped here
        for name, fields in {"tendon": ("stiffness", "damping", "armature")}.items():
            for field in fields if name in one.allow else ():
                getattr(self.other, f"{name}_{field}")[:] = 0.0
        if "fluid" in one.allow:
            self.other.opt.density = self.other.opt.viscosity = 0.0
        self.data = mujoco.MjData(self.other)
        self.names = body_names(self.other)

    def switch_off(self, *flags):
        for flag in flags:
            self.other.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))

    def start(self, rng, far):
        """MuJoCo's q at random, so far from that of the file, and v."""
        q = np.array(self.other.qpos0)
        mujoco.mj_integratePos(self.other, q, rng.normal(size=self.other.nv), far)
        return q, rng.normal(size=self.other.nv)

    def set(self, rng):
        """A random state on both sides: ours, and T with their v = T ours."""
        self.data.qpos[:], self.data.qvel[:] = self.start(rng, 1.0)
        self.data.qfrc_applied[:] = rng.normal(size=self.other.nv)
        mujoco.mj_forward(self.other, self.data)
        q, v = la.from_mujoco(self.model, self.data.qpos, self.data.qvel, self.other)
        return q, v, velocity_map(la.to_mujoco, self.model, q, self.other)

    def turning(self):
        """Tdot v: the linear velocity of a free joint turns with its body here."""
        out = np.zeros(self.other.nv)
        for j in np.flatnonzero(self.other.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)):
            first = self.other.jnt_dofadr[j]
            R = self.data.xmat[self.other.jnt_bodyid[j]].reshape(3, 3)
            out[first : first + 3] = np.cross(R @ self.data.qvel[first + 3 : first + 6], self.data.qvel[first:][:3])
        return out

    def mass_matrix(self):
        M = np.zeros((self.other.nv, self.other.nv))
        mujoco.mj_fullM(self.other, self.data, M)
        return M


def error(ours, expected, size=0.0):
    """Largest difference relative to the largest entry, or to ``size`` if that is larger."""
    return np.abs(ours - expected).max() / max(np.abs(expected).max(), size)


@pytest.mark.parametrize("one", parameters(SECTIONS, compared=True))
def test_statics(one):
    pair = Pair(one)
    model, other, data = pair.model, pair.other, pair.data
    # a mocap body is in no tree
    moving = other.body_mass[other.body_treeid >= 0].sum()
    assert model.nv == other.nv
    assert model.total_mass == pytest.approx(moving, rel=1e-12)  # measured 2e-15
    check_friction(pair)
    rng, offset = np.random.default_rng(7), None
    for _ in range(STATES):
        q, v, T = pair.set(rng)
        M, turning = pair.mass_matrix(), pair.turning()
        ours = la.mass_matrix(model, q)
        assert error(ours, T.T @ M @ T) < 1e-12  # measured 5e-15
        # forces: where gravity and rates cancel, relative to what moves the masses at unit rates
        size = 1e-3 * np.abs(M).max()
        bias = T.T @ (data.qfrc_bias + M @ turning)
        assert error(la.bias_forces(model, q, v), bias, size) < 1e-12  # measured 2e-14
        passive = la.bias_forces(model, q, v) - la.inverse_dynamics(model, q, v, np.zeros_like(v))
        assert error(passive, T.T @ data.qfrc_passive, max(size, np.abs(bias).max())) < 1e-12  # measured 2e-16
        # accelerations, in the measure of forces: M may be close to singular
        a = np.linalg.solve(T, data.qacc - turning)
        tau = T.T @ data.qfrc_applied
        assert error(ours @ la.forward_dynamics(model, q, v, tau), ours @ a) < 1e-10  # measured 8e-13
        # energies; MuJoCo counts what is fixed to the world too
        energy = la.energy(model, q, v)
        assert energy.kinetic == pytest.approx(data.energy[1], rel=1e-12)  # measured 5e-15
        offset = energy.potential - data.energy[0] if offset is None else offset
        assert energy.potential == pytest.approx(data.energy[0] + offset, rel=1e-11, abs=1e-11)  # measured 8e-14
        check_bodies(pair, q, T)
        # gravity alone
        data.qvel[:] = 0.0
        mujoco.mj_forward(other, data)
        assert error(la.gravity_forces(model, q), T.T @ data.qfrc_bias, size) < 1e-12  # measured 3e-15


def check_bodies(pair, q, T):
    """Poses and Jacobians of all bodies."""
    poses, data = la.poses(pair.model, q), pair.data
    reach = 1.0 + np.abs(data.xpos).max()
    linear, angular = np.zeros((3, pair.other.nv)), np.zeros((3, pair.other.nv))
    for b in range(1, pair.other.nbody):
        pose = poses[pair.names[b]]
        assert np.abs(pose[:3, 3] - data.xpos[b]).max() < 1e-12 * reach  # measured 2e-15
        assert np.abs(pose[:3, :3].ravel() - data.xmat[b]).max() < 1e-12  # measured 5e-15
        mujoco.mj_jacBody(pair.other, data, linear, angular, b)
        J = np.vstack([angular, linear]) @ T
        assert np.abs(la.jacobian(pair.model, q, pair.names[b]) - J).max() < 1e-12 * reach  # measured 5e-15


def check_friction(pair):
    """Friction of joints is kept as data, unless MuJoCo has it switched off."""
    other, flags = pair.other, mujoco.mjtDisableBit
    off = pair.flags & (int(flags.mjDSBL_FRICTIONLOSS) | int(flags.mjDSBL_CONSTRAINT))
    for j, name in enumerate(joint_names(other)):
        joint = pair.mechanism.joints[name]
        if not off and joint.kind != "free":
            assert np.all(joint.friction == other.dof_frictionloss[other.jnt_dofadr[j]])


@pytest.mark.parametrize("one", [p for p in parameters(SECTIONS, compared=True) if p.values[0].file in LOOPS])
def test_loops(one):
    """Where our loops are closed so are MuJoCo's, and both leave the same velocities."""
    pair = Pair(one, keep_loops=True)
    model, other, data = pair.model, pair.other, pair.data
    other.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    other.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    pair.switch_off("LIMIT", "CONTACT", "FRICTIONLOSS")
    rng = np.random.default_rng(3)
    for _ in range(STATES):
        state = la.project(model, model.state(*la.from_mujoco(model, *pair.start(rng, 0.02), other)))
        data.qpos[:], data.qvel[:] = la.to_mujoco(model, state.q, state.v, other)
        mujoco.mj_forward(other, data)
        # rows of connect and weld among all
        kinds = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
        held = (data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)) & np.isin(
            other.eq_type[np.minimum(data.efc_id, other.neq - 1)], kinds
        )
        assert held.sum() == model.constraint_size
        assert np.abs(data.efc_pos[held]).max() < 1e-11  # measured 1e-13
        rows = data.efc_J.reshape(-1, other.nv)[held] @ velocity_map(la.to_mujoco, model, state.q, other)
        ours, theirs = span(loops.jacobian(model, state.q)), span(rows)
        assert ours.shape == theirs.shape
        assert np.abs(ours.T @ ours - theirs.T @ theirs).max() < 1e-9  # measured 1e-15


def span(rows):
    """Orthogonal rows of the same span; loops of plane linkages are redundant."""
    _, sizes, out = np.linalg.svd(rows)
    return out[: (sizes > 1e-8 * sizes[0]).sum()]


# ------------------------------------------------------------------------------------------------ free motion

DURATION = 0.2


def motions():
    """Models that are compared, but for variants of a robot; most of them with the long tests."""
    listed = [p for p in parameters(SECTIONS, compared=True) if not (p.values[0].slow and p.id.startswith("robots"))]
    marks = [[] if p.values[0].file in SHORT else [pytest.mark.slow] for p in listed]
    return [pytest.param(*p.values, id=p.id, marks=m) for p, m in zip(listed, marks, strict=True)]


@pytest.mark.parametrize("one", motions())
def test_free_motion(one, tmp_path, monkeypatch):
    """Our motion is MuJoCo's to MuJoCo's own error, which halving its step shows: a fifteenth of the change is left."""
    # it logs there
    monkeypatch.chdir(tmp_path)
    pair = Pair(one)
    q, v = pair.start(np.random.default_rng(5), 0.3)
    # halve until the fourth order shows, and the change is small
    dt = first_step(pair, q)
    coarse, fine = rolled(pair, q, v, dt), rolled(pair, q, v, dt / 2)
    while gap(pair, coarse, fine) > 1e-6:
        dt /= 2
        assert dt > 1e-7
        coarse, fine = fine, rolled(pair, q, v, dt / 2)
    change = gap(pair, coarse, fine)
    start = pair.model.state(*la.from_mujoco(pair.model, q, v, pair.other))
    # light fingers beside heavy bodies: the tolerance is relative to the momentum of the whole
    method = la.Galerkin(6, solver=la.Newton(tolerance=1e-14))
    run = la.simulate(pair.model, start, dt=dt, duration=DURATION, method=method)
    ours = la.to_mujoco(pair.model, run.q[-1], run.v[-1], pair.other)
    assert gap(pair, ours, fine) < change / 10 + 5e-10  # measured 1/13 of the change, or 4e-11


def first_step(pair, q):
    """A step, DURATION over a power of two times 100, at which RK4 is stable with the dampers and springs."""
    pair.data.qpos[:], pair.data.qvel[:] = q, 0.0
    mujoco.mj_forward(pair.other, pair.data)
    other, M = pair.other, pair.mass_matrix()
    stiffness = np.array([other.jnt_stiffness[j] for j in other.dof_jntid])
    damped = np.abs(np.linalg.eigvals(np.linalg.solve(M, np.diag(other.dof_damping)))).max()
    sprung = np.sqrt(np.abs(np.linalg.eigvals(np.linalg.solve(M, np.diag(stiffness)))).max())
    dt = DURATION / 100
    while dt * max(damped, sprung) > 1.0:
        dt /= 2
    return dt


def rolled(pair, q, v, dt):
    """MuJoCo's state after DURATION by RK4."""
    pair.other.opt.integrator, pair.other.opt.timestep = int(mujoco.mjtIntegrator.mjINT_RK4), dt
    data = mujoco.MjData(pair.other)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_step(pair.other, data, nstep=round(DURATION / dt))
    return np.array(data.qpos), np.array(data.qvel)


def gap(pair, one, two):
    """Distance of two of MuJoCo's states; rates relative to the largest."""
    dq = np.zeros(pair.other.nv)
    mujoco.mj_differentiatePos(pair.other, dq, 1.0, one[0], two[0])
    return max(np.abs(dq).max(), np.abs(one[1] - two[1]).max() / (1.0 + np.abs(two[1]).max()))
