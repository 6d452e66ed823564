"""Motors of MJCF on several coordinates: on sites of free bodies and on balls, against MuJoCo's forces."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map

mujoco = pytest.importorskip("mujoco")

XML = """<mujoco><worldbody><body name="a" pos="0 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/>
<site name="s" pos=".1 .2 .3" euler="20 30 40"/>
<body name="fixed" pos=".3 0 0" euler="0 50 0"><geom size=".1"/><site name="t" pos="0 .1 0" euler="0 0 70"/></body>
<body name="b" pos="0 .4 0"><joint name="ball" type="ball"/><geom size=".1" pos="0 .2 0"/><site name="u"/></body>
</body></worldbody><actuator>{}</actuator></mujoco>"""
MOTORS = """<motor name="m1" site="s" gear="1 2 3 4 5 6"/><motor name="m2" site="t" gear="0 0 7"/>
<motor name="m3" joint="ball" gear="1 -2 .5"/><motor name="m4" joint="ball" gear="0 3 0"/>"""


def test_forces(tmp_path):
    path = tmp_path / "m.xml"
    path.write_text(XML.format(MOTORS))
    model, other = la.load(path).build(), mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(other), np.random.default_rng(0)
    for _ in range(3):
        mujoco.mj_integratePos(other, data.qpos, rng.normal(size=other.nv), 1.0)
        data.ctrl[:] = rng.normal(size=other.nu)
        mujoco.mj_forward(other, data)
        q, _ = la.from_mujoco(model, data.qpos, data.qvel, other)
        T = velocity_map(la.to_mujoco, model, q, other)
        # measured 2e-15
        np.testing.assert_allclose(model.actuate(np.array(data.ctrl)), T.T @ data.qfrc_actuator, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("motor", "words"),
    [
        ('<motor name="m" site="u" gear="1 0 0"/>', "does not act on a joint or fixed tendon"),
        (
            '<motor name="m" site="s" refsite="t" gear="1 0 0"/>',
            "does not act on a joint or fixed tendon",
        ),
        ('<position name="m" site="s" refsite="t" kp="1"/>', "does not act on a joint or fixed tendon"),
    ],
)
def test_refused(tmp_path, motor, words):
    path = tmp_path / "m.xml"
    path.write_text(XML.format(motor))
    with pytest.raises(la.ModelError, match=words):
        la.load(path)
    assert not la.load(path, allow="actuators").actuators
