"""Sensors added in Python, and those that feel forces; those of MJCF are compared with MuJoCo in ``tests/io``."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict


def test_sensors_in_python():
    m = la.models.double_pendulum()
    joint, body = next(iter(m.joints)), list(m.bodies)[-1]
    m.add_sensor("angle", "jointpos", joint, scale=2.0, offset=1.0)
    m.add_sensor("tip", "framepos", body)
    model = m.build()
    found = la.read_sensors(model, model.state({joint: 0.3}))
    assert found["angle"] == pytest.approx(1.6)
    assert np.array_equal(found["tip"], la.poses(model, {joint: 0.3})[body][:3, 3])
    for options, message in (
        (("angle", "jointpos", joint), "there is already one"),
        (("new", "jointpost", joint), "unknown kind 'jointpost'"),
        (("new", "jointpos", "x"), "there is no joint 'x'"),
        (("new", "gyro", "x"), "there is no frame 'x'"),
        (("new", "ballquat", joint), "not spherical"),
    ):
        with pytest.raises(la.ModelError, match=message):
            m.add_sensor(*options)
    with pytest.raises(la.ModelError, match="reference"):
        m.add_sensor("new", "gyro", body, reference=body)
    # what they look at goes, and they with it
    m.remove_body(body)
    assert list(m.sensors) == ["angle"]


def test_along_a_run():
    """A run reads what its states read; a file keeps the sensors; accelerations are those of finite differences."""
    m = la.models.double_pendulum()
    body = list(m.bodies)[-1]
    m.add_frame("tip", body, la.pose((0.1, -0.05, 0.2), rpy=(0.3, 0.2, 0.1)))
    kinds = (
        "framepos",
        "framequat",
        "framelinvel",
        "framelinacc",
        "frameangacc",
        "accelerometer",
        "gyro",
        "subtreecom",
    )
    for kind in kinds:
        m.add_sensor(kind, kind, body if kind == "subtreecom" else "tip", cutoff=1e3)
    m.add_sensor("clock", "clock")
    m = mechanism_from_dict(mechanism_to_dict(m))
    model = m.build()
    state = model.state(dict(zip(m.joints, (0.4, -1.0), strict=True)))
    run = la.simulate(model, state, dt=1e-3, duration=0.02, control=np.full((20, 2), 0.7))
    assert list(run.sensors) == [*kinds, "clock"]
    for row in (0, 7, 20):
        for name, values in la.read_sensors(model, run.state(row), run.tau[row]).items():
            assert np.array_equal(run.sensors[name][row], values)
    rate = (run.sensors["framelinvel"][2:] - run.sensors["framelinvel"][:-2]) / 2e-3
    # the differences' own error
    assert np.abs(rate - m.gravity - run.sensors["framelinacc"][1:-1]).max() < 2e-4  # measured 3.5e-5
    with pytest.raises(KeyError, match="there is no sensor 'x'"):
        run.sensors["x"]


def test_contact_is_felt_along_a_run_and_refused_at_a_state():
    """A ball at rest on the ground feels gravity; in flight nothing."""
    m = la.Mechanism("ball")
    m.add_body("ball", mass=1.0, shape=la.Sphere(0.1))
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground()
    m.add_sensor("felt", "accelerometer", "ball")
    model = m.build()
    state = model.state({"root": (0, 0, 0.1, 1, 0, 0, 0)})
    run = la.simulate(model, state, dt=0.01, duration=0.2)
    assert np.abs(run.sensors["felt"][5:-1] - [0, 0, 9.81]).max() < 1e-4  # measured 1e-6
    with pytest.raises(la.UnsupportedError, match="contact"):
        la.read_sensors(model, state)
    high = la.simulate(model, model.state({"root": (0, 0, 5.0, 1, 0, 0, 0)}), dt=0.01, duration=0.1)
    assert np.abs(high.sensors["felt"]).max() < 1e-8  # measured 1e-12
