"""The report of a run with contact names bodies whose collision shapes could not be read."""

from __future__ import annotations

import leastaction as la

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def test_a_run_with_contact_names_what_nothing_touches(tmp_path):
    foot = '<collision><geometry><mesh filename="foot.stl"/></geometry></collision>'
    ball = '<collision><origin xyz="0 0 0.5"/><geometry><sphere radius="0.1"/></geometry></collision>'
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r"><link name="a">{INERTIAL}{foot}{ball}</link></robot>')
    m = la.load(path, floating=True)
    run = la.simulate(m.build(), dt=0.01, duration=0.02)
    assert run.report.notes == []
    # the ground, and then a pair
    m.add_ground()
    run = la.simulate(m.build(), dt=0.01, duration=0.02)
    assert [note.startswith("collision shapes of 'a' could not be read") for note in run.report.notes] == [True]
    assert "note" in dict(run.report.rows())
    assert type(run.report).from_dict(run.report.to_dict()) == run.report
