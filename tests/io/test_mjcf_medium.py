"""The medium around bodies and gravity compensation of MJCF, against MuJoCo's passive forces."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map

mujoco = pytest.importorskip("mujoco")

XML = """<mujoco><option {option}>{flags}</option><worldbody>
<body name="a" pos="0 0 1" gravcomp="0.6"><freejoint/>
  <geom type="box" size=".1 .2 .3" pos=".1 .05 0" euler="10 20 30" contype="0" conaffinity="0"/>
  <body name="b" pos=".3 .1 0" gravcomp="1"><joint type="hinge" axis="0 1 .2"/>
    <geom type="capsule" size=".05 .3" euler="30 0 0" contype="0" conaffinity="0"/>
    <body name="c" pos="0 0 .5"><geom type="box" size=".1 .1 .01" contype="0" conaffinity="0"/></body>
  </body></body>
<body name="still" gravcomp="1"><geom size=".1" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>"""
MEDIUM = 'density="1.2" viscosity="0.7" wind="1 -2 .5"'


@pytest.mark.parametrize(
    ("option", "flags"),
    [
        (MEDIUM, ""),
        ('density="1000"', ""),
        ("", ""),
        (MEDIUM, '<flag gravity="disable"/>'),
        (MEDIUM, '<flag spring="disable"/>'),
        (MEDIUM, '<flag spring="disable" damper="disable"/>'),
    ],
)
def test_passive_forces(tmp_path, option, flags):
    path = tmp_path / "m.xml"
    path.write_text(XML.format(option=option, flags=flags))
    model, other = la.load(path).build(), mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(other), np.random.default_rng(0)
    for _ in range(3):
        mujoco.mj_integratePos(other, data.qpos, rng.normal(size=other.nv), 1.0)
        data.qvel[:] = rng.normal(size=other.nv)
        mujoco.mj_forward(other, data)
        q, v = la.from_mujoco(model, data.qpos, data.qvel, other)
        T = velocity_map(la.to_mujoco, model, q, other)
        bias = la.bias_forces(model, q, v)
        ours = bias - la.inverse_dynamics(model, q, v, np.zeros_like(v))
        # measured 3e-16 of the weight
        np.testing.assert_allclose(ours, T.T @ data.qfrc_passive, rtol=0, atol=1e-12 * (1 + np.abs(bias).max()))


def test_a_body_that_is_carried_hovers(tmp_path):
    path = tmp_path / "m.xml"
    path.write_text(XML.format(option="", flags="").replace('"0.6"', '"1"').replace('"c"', '"c" gravcomp="1"'))
    m = la.load(path)
    assert [force.name for force in m.forces] == ["gravcomp/a", "gravcomp/b", "gravcomp/c"]
    model = m.build()
    q, rest = model.neutral(), np.zeros(model.nv)
    assert np.abs(la.forward_dynamics(model, q, rest, rest)).max() < 1e-12  # measured 2e-15
    # a potential of its own, which MuJoCo's energy does not count
    assert la.energy(model, q, rest).potential == pytest.approx(0.0, abs=1e-12)
