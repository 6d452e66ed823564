"""Dynamics of small mechanisms against MuJoCo, in MuJoCo's own coordinates.

MuJoCo's velocity of a free body is the linear velocity of its origin in world axes and then the angular one in body
axes: their v = T ours, their dv/dt = T a + Tdot v. Everywhere else T is the identity.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map

mujoco = pytest.importorskip("mujoco")

OPTION = '<compiler angle="radian"/><option timestep="0.001" {}><flag energy="enable" contact="disable"/></option>'


def links(n, joint):
    """Nested bodies, each on the end of the one before."""
    inside = ""
    for k in reversed(range(n)):
        axis = "0 1 0" if k % 2 == 0 else "1 0 0"
        place = "0 0 0" if k == 0 else "0 0 -0.3"
        inside = (
            f'<body name="b{k}" pos="{place}">{joint.format(name=f"j{k}", axis=axis)}'
            f'<inertial pos="0.02 -0.03 -0.15" mass="{1 + 0.2 * k}" '
            f'fullinertia="0.03 0.028 0.011 0.001 -0.002 0.0015"/>{inside}</body>'
        )
    return inside


STACK = """
<body name="base" pos="0.1 -0.2 0.4" quat="0.8 0.2 -0.3 0.4">
  <joint name="x" type="slide" axis="1 0.2 0" stiffness="3" springref="0.2"/>
  <joint name="y" type="slide" axis="0 1 0.3" armature="0.4"/>
  <joint name="turn" type="hinge" axis="0 0.2 1" pos="0.1 0.2 -0.1" ref="0.3" damping="0.2"/>
  <inertial pos="0.05 0.02 -0.1" quat="0.9 0.1 0.2 -0.3" mass="2.0" diaginertia="0.05 0.04 0.03"/>
  <body name="arm" pos="0.2 0.1 -0.3" quat="0.5 -0.5 0.4 0.6">
    <joint name="roll" type="hinge" axis="1 0 0" pos="0 0 0.1" stiffness="2" springref="-0.4" damping="0.1"/>
    <joint name="pitch" type="hinge" axis="0 1 0" pos="0.05 0 0" armature="0.02"/>
    <joint name="yaw" type="hinge" axis="0.3 0.2 1" pos="0 -0.1 0"/>
    <joint name="out" type="slide" axis="0 0 1"/>
    <inertial pos="0.0 0.03 -0.2" mass="1.2" diaginertia="0.02 0.03 0.025"/>
    <body name="hand" pos="0 0 -0.4">
      <joint name="wrist" type="ball" pos="0.02 0.01 0.05" stiffness="1.5" damping="0.05" armature="0.01"/>
      <inertial pos="0.03 -0.02 -0.1" quat="0.7 0.1 0.5 -0.2" mass="0.6" diaginertia="0.004 0.006 0.005"/>
    </body>
  </body>
</body>
<body name="loose" pos="1 0 0.5">
  <freejoint name="root"/>
  <inertial pos="0.1 -0.05 0.07" quat="0.6 0.2 -0.7 0.3" mass="1.5" diaginertia="0.05 0.03 0.04"/>
  <body name="tail" pos="0.3 0 0" quat="0.9 0 0.4 0">
    <joint name="swing" type="hinge" axis="0 1 0.5" pos="0 0 0.1" damping="0.3"/>
    <inertial pos="0.1 0 0.02" mass="0.7" diaginertia="0.006 0.01 0.008"/>
  </body>
</body>
"""

FREE = """
<body name="body" pos="0.3 0.2 0.1" quat="0.8 0.1 0.2 -0.5">
  <freejoint name="root"/>
  <inertial pos="{com}" quat="0.6 0.2 -0.7 0.3" mass="1.5" diaginertia="0.05 0.03 0.04"/>
</body>
"""

BODIES = {
    "chain": links(6, '<joint name="{name}" type="hinge" axis="{axis}"/>'),
    "balls": links(4, '<joint name="{name}" type="ball"/>'),
    "free body": FREE.format(com="0.1 -0.05 0.07"),
    "free body at its centre": FREE.format(com="0 0 0"),
    "stacks": STACK,
}


@functools.cache
def written(name, option=""):
    return f"<mujoco>{OPTION.format(option)}<worldbody>{BODIES[name]}</worldbody></mujoco>"


class Pair:
    """Our model of a mechanism and MuJoCo's."""

    def __init__(self, name, folder, option=""):
        text = written(name, option)
        path = folder / "model.xml"
        path.write_text(text)
        self.model = la.load(path).build()
        self.other = mujoco.MjModel.from_xml_string(text)
        self.data = mujoco.MjData(self.other)

    def set(self, rng):
        """A random state on both sides: ours, and T."""
        model, data = self.model, self.data
        q, v = rng.normal(size=self.other.nq), rng.normal(size=self.other.nv)
        for j, kind in enumerate(self.other.jnt_type):
            start = self.other.jnt_qposadr[j] + (3 if kind == 0 else 0)
            if kind in (0, 1):
                q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
        data.qpos[:], data.qvel[:] = q, v
        data.qfrc_applied[:] = rng.normal(size=self.other.nv)
        mujoco.mj_forward(self.other, data)
        our_q, our_v = la.from_mujoco(model, q, v, self.other)
        return our_q, our_v, velocity_map(la.to_mujoco, model, our_q, self.other)

    def turning(self, q, v):
        """Tdot v: linear velocities of free joints turn with their bodies."""
        out = np.zeros(self.other.nv)
        for j, kind in enumerate(self.other.jnt_type):
            if kind == 0:
                address, view = self.other.jnt_dofadr[j], self.model.joint(self.other.joint(j).name)
                own = v[view.v]
                R = la.pose(quat=q[view.q][3:])[:3, :3]
                out[address : address + 3] = R @ np.cross(own[:3], own[3:])
        return out

    @property
    def mass_matrix(self):
        M = np.zeros((self.other.nv, self.other.nv))
        mujoco.mj_fullM(self.other, self.data, M)
        return M


@pytest.fixture(params=BODIES)
def pair(request, tmp_path):
    return Pair(request.param, tmp_path)


def error(ours, expected):
    """Largest difference relative to the largest entry."""
    return np.abs(ours - expected).max() / np.abs(expected).max()


def test_mass_matrix_and_bias(pair):
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v, T = pair.set(rng)
        M = pair.mass_matrix
        assert error(la.mass_matrix(pair.model, q), T.T @ M @ T) < 1e-12  # measured 2e-15
        bias = T.T @ (pair.data.qfrc_bias + M @ pair.turning(q, v))
        assert error(la.bias_forces(pair.model, q, v), bias) < 1e-12  # measured 8e-16


def test_forward_and_inverse_dynamics(pair):
    """With springs, dampers and rotor inertia."""
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, v, T = pair.set(rng)
        a = np.linalg.solve(T, pair.data.qacc - pair.turning(q, v))
        tau = T.T @ pair.data.qfrc_applied
        assert error(la.forward_dynamics(pair.model, q, v, tau), a) < 1e-10  # measured 2e-13
        assert np.abs(la.inverse_dynamics(pair.model, q, v, a) - tau).max() < 1e-10  # measured 6e-13


def test_energy(pair):
    rng = np.random.default_rng(3)
    for _ in range(5):
        q, v, _ = pair.set(rng)
        mujoco.mj_energyPos(pair.other, pair.data)
        mujoco.mj_energyVel(pair.other, pair.data)
        potential, kinetic = pair.data.energy
        energy = la.energy(pair.model, q, v)
        assert energy.kinetic == pytest.approx(kinetic, rel=1e-12)  # measured 3e-15
        assert energy.potential == pytest.approx(potential, rel=1e-12, abs=1e-12)  # measured 2e-15


def test_frames(pair):
    rng = np.random.default_rng(4)
    q, _, T = pair.set(rng)
    for body in range(1, pair.other.nbody):
        name = pair.other.body(body).name
        pose = la.poses(pair.model, q)[name]
        assert np.abs(pose[:3, 3] - pair.data.xpos[body]).max() < 1e-13  # measured 9e-16
        assert np.abs(pose[:3, :3].ravel() - pair.data.xmat[body]).max() < 1e-13  # measured 8e-16
        linear, angular = np.zeros((3, pair.other.nv)), np.zeros((3, pair.other.nv))
        mujoco.mj_jacBody(pair.other, pair.data, linear, angular, body)
        J = np.vstack([angular, linear]) @ T
        assert np.abs(la.jacobian(pair.model, q, name) - J).max() < 1e-13  # measured 8e-16


@pytest.mark.parametrize("name", ["chain", "balls", "free body at its centre"])
def test_steps_of_semi_implicit_euler(name, tmp_path):
    """The same step, and the same hundred steps."""
    pair = Pair(name, tmp_path, 'integrator="Euler"')
    q, v, T = pair.set(np.random.default_rng(5))
    tau = T.T @ pair.data.qfrc_applied
    run = la.simulate(pair.model, pair.model.state(q, v), dt=0.001, duration=0.001, method="euler", control=tau[None])
    mujoco.mj_step(pair.other, pair.data)
    assert gap(pair, run) < 1e-13  # measured 2e-15
    # without the forces, whose meaning on a free body turns with it
    q, v, T = pair.set(np.random.default_rng(5))
    pair.data.qfrc_applied[:] = 0.0
    run = la.simulate(pair.model, pair.model.state(q, v), dt=0.001, duration=0.1, method="euler")
    for _ in range(100):
        mujoco.mj_step(pair.other, pair.data)
    assert gap(pair, run) < 1e-11  # measured 6e-15


def test_steps_of_runge_kutta(tmp_path):
    pair = Pair("chain", tmp_path, 'integrator="RK4"')
    q, v, _ = pair.set(np.random.default_rng(6))
    pair.data.qfrc_applied[:] = 0.0
    run = la.simulate(pair.model, pair.model.state(q, v), dt=0.001, duration=0.1, method="rk4")
    for _ in range(100):
        mujoco.mj_step(pair.other, pair.data)
    assert gap(pair, run) < 1e-11  # measured 3e-15


def gap(pair, run):
    """Largest difference of the last states."""
    q, v = la.to_mujoco(pair.model, run.q[-1], run.v[-1], pair.other)
    theirs = pair.data.qpos.copy()
    for j, kind in enumerate(pair.other.jnt_type):
        start = pair.other.jnt_qposadr[j] + (3 if kind == 0 else 0)
        if kind in (0, 1):
            theirs[start : start + 4] *= np.sign(theirs[start : start + 4] @ q[start : start + 4])
    return max(np.abs(q - theirs).max(), np.abs(v - pair.data.qvel).max())
