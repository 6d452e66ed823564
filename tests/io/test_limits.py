"""Limits of files: in force by default, data where asked, and a default state within them."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

LINK = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'  # noqa: E501
JOINT = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>{}</joint>'
LIMIT = '<limit lower="{}" upper="{}" effort="{}" velocity="1"/>'


def robot(tmp_path, *limit, words=""):
    path = tmp_path / "robot.urdf"
    inside = LIMIT.format(*limit) if limit else words
    path.write_text(f'<robot name="r">{LINK.format("a")}{LINK.format("b")}{JOINT.format(inside)}</robot>')
    return path


def test_limits_and_efforts_of_a_file_are_in_force(tmp_path):
    path = robot(tmp_path, -0.5, 0.5, 2.0)
    model = la.load(path).build()
    assert model.features == {"enforced limits"}
    run = la.simulate(model, dt=0.01, duration=2.0, control=[5.0])
    # at most 2 N m against an inertia of 1 kg m^2, up to the limit; measured 8e-6, of the order of the step
    assert run.q[50, 0] == pytest.approx(0.5 * 2.0 * 0.5**2, rel=1e-4)
    assert run.q.max() < 0.5 + 1e-6
    assert run.q[-1, 0] == pytest.approx(0.5, abs=1e-3)


def test_limits_as_data(tmp_path):
    path = robot(tmp_path, -0.5, 0.5, 2.0)
    m = la.load(path, limits="report")
    assert m.build().features == frozenset()
    assert 'limits="report"' in m.notes[-1]
    run = la.simulate(m.build(), dt=0.01, duration=1.0, control=[5.0])
    assert run.q[-1, 0] == pytest.approx(2.5, rel=1e-9)
    assert "limit" in str(run.report)


def test_a_file_without_limits_has_nothing_to_enforce(tmp_path):
    m = la.load(robot(tmp_path, words=LIMIT.format("-inf", "inf", 0)))
    assert not m.limits_enforced


def test_the_default_state_is_within_the_limits(tmp_path):
    m = la.load(robot(tmp_path, 0.3, 0.5, 2.0))
    model = m.build()
    assert np.array_equal(model.state().q, [0.3])
    assert any("0 is beyond [0.3, 0.5]" in note for note in m.notes)
    assert la.simulate(model, dt=0.01, duration=0.1).steps == 10
    # data has no say in where a run begins
    assert np.array_equal(la.load(robot(tmp_path, 0.3, 0.5, 2.0), limits="report").build().state().q, [0.0])


def test_json_keeps_what_was_saved_unless_asked(tmp_path):
    m = la.load(robot(tmp_path, -0.5, 0.5, 2.0), limits="report")
    la.save(m, tmp_path / "robot.json")
    assert not la.load(tmp_path / "robot.json").limits_enforced
    assert la.load(tmp_path / "robot.json", limits="enforce").limits_enforced


def test_mjcf_takes_the_same_word(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "m.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="j" range="20 60" limited="true"/><geom size=".1"/></body>'
        "</worldbody></mujoco>"
    )
    model = la.load(path).build()
    assert model.features == {"enforced limits"}
    assert model.state().q[0] == pytest.approx(np.pi / 9)
    assert la.load(path, limits="report").build().features == frozenset()


def test_another_word_is_refused(tmp_path):
    with pytest.raises(la.ModelError, match="limits: expected one of 'enforce', 'report', got 'maybe'"):
        la.load(robot(tmp_path, -0.5, 0.5, 2.0), limits="maybe")
