"""Actuators of MJCF files: motors, and servos from position and velocity actuators."""

from __future__ import annotations

import pytest

import leastaction as la

BALL = '<geom type="sphere" size="0.1"/>'


class TestActuators:
    MODEL = (
        '<worldbody><body name="a"><joint name="h"/>'
        + BALL
        + '<body name="b"><joint name="b" type="ball"/>'
        + BALL
        + '</body></body><body name="f"><freejoint name="f"/>'
        + BALL
        + "</body></worldbody>"
        '<tendon><fixed name="t"><joint joint="h" coef="2"/></fixed></tendon><actuator>\n{}\n</actuator>'
    )

    def load(self, mjcf, actuator, **options):
        return la.load(mjcf(self.MODEL.format(actuator)), **options)

    @pytest.mark.parametrize(
        ("text", "gear", "coordinate", "effort", "inputs"),
        [
            ('<motor name="m" joint="h" gear="5"/>', 5, 0, None, None),
            ('<motor name="m" joint="h" ctrlrange="-2 3"/>', 1, 0, None, (-2, 3)),
            ('<general name="m" joint="h" gainprm="4" ctrlrange="-1 1"/>', 4, 0, 1, None),
            ('<general name="m" joint="h" gainprm="4" ctrlrange="-1 1" forcerange="-3 3"/>', 4, 0, 0.75, None),
            ('<motor name="m" joint="b" gear="0 0 2"/>', 2, 2, None, None),
        ],
    )
    def test_motor(self, mjcf, text, gear, coordinate, effort, inputs):
        actuator = self.load(mjcf, text).actuators["m"]
        assert (actuator.gear, actuator.coordinate) == (gear, coordinate)
        assert (actuator.effort, actuator.input_range) == (effort, inputs)

    @pytest.mark.parametrize(
        ("text", "gains"),
        [
            ('<position joint="h" kp="3" kv="0.5" gear="2" forcerange="-4 4"/>', (3.0, 0.5, 4.0)),
            ('<velocity joint="h" kv="3" gear="2"/>', (0.0, 3.0, None)),
        ],
    )
    def test_servo(self, mjcf, text, gains):
        m = self.load(mjcf, text)
        servo = m.actuators["actuator_0"]
        assert (servo.kp, servo.kd, servo.effort) == gains
        assert servo.gear == 2
        assert not any("is a servo" in note for note in m.notes)

    def test_servo_whose_input_is_not_its_target_is_noted(self, mjcf):
        text = '<general joint="h" biastype="affine" gainprm="6" biasprm="0 -3 -1" gear="2"/>'
        m = self.load(mjcf, text)
        assert (m.actuators["actuator_0"].kp, m.actuators["actuator_0"].kd) == (3, 1)
        assert any("model.xml:3: " in note and "2 times MuJoCo's input" in note for note in m.notes)

    def test_servo_pulls_as_in_mujoco(self, mjcf):
        """Generalised force at a state, with a joint that counts from ref and an input."""
        mujoco = pytest.importorskip("mujoco")
        inside = (
            '<compiler angle="radian"/><option gravity="0 0 0"/><worldbody><body><joint name="h" ref="0.3"/>'
            '<geom type="sphere" size="0.1" pos="0.5 0 0" mass="1"/></body></worldbody>'
            '<actuator><position name="s" joint="h" kp="3" kv="0.5" gear="2"/></actuator>'
        )
        mj = mujoco.MjModel.from_xml_string(f"<mujoco>{inside}</mujoco>")
        data = mujoco.MjData(mj)
        data.qpos[0], data.qvel[0], data.ctrl[0] = 0.7, -0.4, 0.2
        mujoco.mj_forward(mj, data)
        model = la.load(mjcf(inside)).build()
        # the input counts from ref, as the coordinate does
        tau = model.actuate({"s": 0.2 - 2 * 0.3})
        a = la.forward_dynamics(model, [0.7 - 0.3], [-0.4], tau)
        assert a == pytest.approx(data.qacc, rel=1e-9)  # measured 1e-15

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ('<muscle name="m" joint="h" lengthrange="0 1"/>', "muscle"),
            ('<motor name="m" joint="f" gear="1"/>', "actuators"),
            ('<damper name="m" joint="h" kv="5" ctrlrange="0 1"/>', "actuators"),
            ('<general name="m" joint="h" dyntype="user"/>', "actuators"),
            ('<general name="m" joint="h" biastype="affine" biasprm="0 3 0"/>', "actuators"),
            ('<general name="m" joint="h" biastype="affine" biasprm="2 0 -1"/>', "actuators"),
            ('<position name="m" joint="h" kp="3" forcerange="-1 20"/>', "effort"),
            ('<motor name="m" joint="h" armature="1"/>', "actuators"),
        ],
    )
    def test_what_cannot_be_kept_is_refused(self, mjcf, text, name):
        with pytest.raises(la.ModelError, match=rf'model.xml:3: <\w+ name="m">: .*allow=\("{name}",\)'):
            self.load(mjcf, text)
        assert self.load(mjcf, text, allow=(name,)).actuators == {}

    @pytest.mark.parametrize(
        "text", ['<orientation joint="b" kp="1" ctrlrange="-9 9"/>', '<pid joint="h" kp="1" ctrlrange="-9 9"/>']
    )
    def test_after_one_with_several_inputs(self, mjcf, text):
        """MuJoCo counts inputs and outputs through, so the numbers of those behind do not stand at their own place."""
        motor = '<motor name="m" joint="h" gear="7" ctrlrange="-3 3"/>'
        servo = '<position name="p" joint="h" kp="2" gear="5" ctrlrange="-1 4"/>'
        m = self.load(mjcf, text + motor + servo, allow=("actuators",))
        assert (m.actuators["m"].gear, m.actuators["m"].effort) == (7, 3)
        assert (m.actuators["p"].gear, m.actuators["p"].input_range) == (5, (-1, 4))

    @pytest.mark.parametrize(
        ("text", "lag", "integrates", "bounds"),
        [
            ('<position name="m" joint="h" kp="9" timeconst="0.5"/>', 0.5, False, (None, None)),
            ('<cylinder name="m" joint="h"/>', 1.0, False, (None, None)),
            ('<general name="m" joint="h" dyntype="filter" dynprm="0.2" ctrlrange="0 1"/>', 0.2, False, ((0, 1), None)),
            ('<general name="m" joint="h" dyntype="integrator" actrange="-1 2"/>', 0.0, True, (None, (-1, 2))),
            ('<intvelocity name="m" joint="h" kp="9" actrange="-2 2"/>', 0.0, True, (None, (-2, 2))),
        ],
    )
    def test_filters_and_integrators(self, mjcf, text, lag, integrates, bounds):
        actuator = self.load(mjcf, text).actuators["m"]
        assert (actuator.lag, actuator.integrates) == (lag, integrates)
        assert (actuator.input_range, actuator.activation_range) == bounds
