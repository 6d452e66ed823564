"""The scenes of ``leastaction bench contact`` are the same on both sides."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.bench import contact as bench


def test_boxes_are_thrown_alike() -> None:
    mujoco = pytest.importorskip("mujoco")
    model, start, peer, data = bench.thrown_boxes(3)
    q, v = la.from_mujoco(model, data.qpos, data.qvel, peer)
    assert np.abs(q - start.q).max() < 1e-12  # 0
    assert np.abs(v - start.v).max() < 1e-12  # 4e-16
    assert np.allclose(peer.body_mass[1:], 1.0)
    assert np.allclose(peer.body_inertia[1:, 0], (0.16**2 + 0.12**2) / 12)
    assert len(model.mechanism.contacts) == 3
    mujoco.mj_step(peer, data)
    assert np.isfinite(data.qpos).all()


def test_without_robots_none_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASTACTION_ROBOTS", "/nowhere")
    monkeypatch.setattr(bench, "BOXES", ())
    assert bench.bench_contact() == []


def test_random_inputs_stay_in_their_range() -> None:
    mujoco = pytest.importorskip("mujoco")
    peer = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><body><joint name="a"/><geom size="1"/></body></worldbody><actuator>'
        '<position joint="a" ctrlrange="-0.1 0.1" ctrllimited="true"/></actuator>'
        '<keyframe><key ctrl="0.05"/></keyframe></mujoco>'
    )
    standing, random = bench.targets(peer, "standing"), bench.targets(peer, "random")
    assert (standing == 0.05).all()
    assert np.abs(random).max() <= 0.1
    assert len(np.unique(random)) > 10
