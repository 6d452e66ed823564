"""Sensors of MJCF against MuJoCo's own readings, and along runs."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

mujoco = pytest.importorskip("mujoco")

BODIES = """
<compiler angle="radian"/><option gravity="0.3 -0.2 -9.81"><flag contact="disable"/></option>
<worldbody>
  <site name="dock" pos="1 2 0.5" quat="0.9 0.1 -0.2 0.3"/>
  <body name="base" pos="0.1 -0.2 0.4" quat="0.8 0.2 -0.3 0.4">
    <freejoint name="root"/>
    <inertial pos="0.05 0.02 -0.1" quat="0.9 0.1 0.2 -0.3" mass="2.0" diaginertia="0.05 0.04 0.03"/>
    <site name="imu" pos="0.1 0.05 0.02" quat="0.7 0.1 0.5 -0.2"/>
    <camera name="eye" pos="0.2 0 0.1" quat="0.5 0.5 -0.5 0.5"/>
    <body name="arm" pos="0.2 0.1 -0.3" quat="0.5 -0.5 0.4 0.6">
      <joint name="elbow" type="hinge" axis="0 0.2 1" pos="0.1 0.2 -0.1" ref="0.3" damping="0.2"/>
      <inertial pos="0.0 0.03 -0.2" mass="1.2" diaginertia="0.02 0.03 0.025"/>
      <geom name="shell" type="sphere" size="0.05" pos="0.02 0.01 0" mass="0"/>
      <body name="hand" pos="0 0 -0.4">
        <joint name="wrist" type="ball" pos="0.02 0.01 0.05"/>
        <inertial pos="0.03 -0.02 -0.1" quat="0.7 0.1 0.5 -0.2" mass="0.6" diaginertia="0.004 0.006 0.005"/>
        <site name="tip" pos="0 0.01 -0.1" quat="0.2 0.3 0.4 -0.6"/>
      </body>
    </body>
  </body>
</worldbody>
<actuator><motor name="motor" joint="elbow" gear="3"/></actuator>
<sensor>
"""

PLACES = ("site", "imu"), ("site", "tip"), ("xbody", "arm"), ("body", "hand"), ("geom", "shell"), ("camera", "eye")
SEEN = ("framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel")
LINES = [
    '<jointpos joint="elbow"/>',
    '<jointvel joint="elbow"/>',
    '<ballquat joint="wrist"/>',
    '<ballangvel joint="wrist"/>',
    '<actuatorpos actuator="motor"/>',
    '<actuatorvel actuator="motor"/>',
    '<subtreecom body="arm"/>',
    '<subtreecom body="base"/>',
    "<clock/>",
    *(f'<{kind} site="tip"/>' for kind in ("accelerometer", "velocimeter", "gyro")),
    *(f'<{kind} site="imu"/>' for kind in ("accelerometer", "velocimeter", "gyro")),
    *(f'<{kind} objtype="{t}" objname="{n}"/>' for kind in (*SEEN, "framelinacc", "frameangacc") for t, n in PLACES),
    *(f'<{kind} objtype="site" objname="tip" reftype="site" refname="imu"/>' for kind in SEEN),
    *(f'<{kind} objtype="site" objname="tip" reftype="site" refname="dock"/>' for kind in SEEN),
    '<gyro site="imu" cutoff="0.4"/>',
]


def test_readings_are_those_of_mujoco(mjcf):
    """Every kind, of all objects, at random states under a random torque."""
    path = mjcf(BODIES + "\n".join(LINES) + "</sensor>")
    m = la.load(path)
    assert len(m.sensors) == len(LINES)
    model, other = m.build(), mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(other), np.random.default_rng(1)
    for _ in range(3):
        q, v = rng.normal(size=other.nq), rng.normal(size=other.nv)
        for start in (3, 8):
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
        data.qpos[:], data.qvel[:], data.time, data.ctrl[:] = q, v, 2.5, rng.normal()
        mujoco.mj_forward(other, data)
        state = model.state(*la.from_mujoco(model, q, v, other), 2.5)
        found = la.read_sensors(model, state, model.actuate({"motor": float(data.ctrl[0])}))
        for s, (name, values) in enumerate(found.items()):
            expected = data.sensordata[other.sensor_adr[s] :][: other.sensor_dim[s]]
            if m.sensors[name].kind.endswith("quat"):
                values = values * np.sign(values @ expected)
            assert np.abs(values - expected).max() < 1e-10, (LINES[s], values, expected)  # measured 1.4e-13


def test_those_that_are_no_functions_of_the_state_are_noted(mjcf):
    m = la.load(mjcf(BODIES + '<touch site="tip"/><force site="tip"/><touch site="imu"/><clock/></sensor>'))
    assert [sensor.kind for sensor in m.sensors.values()] == ["clock"]
    assert any("not read: 2 sensors of the kind touch; those of" in note for note in m.notes)
