"""Tendons of MJCF files: their lengths, forces and those of their actuators against MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

mujoco = pytest.importorskip("mujoco")


@pytest.fixture
def mjcf(tmp_path):
    """Write an MJCF file from what stands inside <mujoco>; its content begins on line 2."""

    def write(inside):
        path = tmp_path / "model.xml"
        path.write_text(f'<mujoco model="r">\n{inside}\n</mujoco>\n')
        return path

    return write


BALL = '<geom type="sphere" size="0.1" mass="1" pos="0.2 0.1 0.3"/>'
BODIES = (
    '<compiler angle="radian"/><worldbody><body pos="0 0 1"><joint name="a" axis="0 1 0.3" ref="0.4" range="-2 2"/>'
    + BALL
    + '<body pos="0.1 0.2 0" euler="0.3 0.4 0.5"><joint name="s" type="slide" axis="1 0 0.2" ref="-0.1"/>'
    + BALL
    + '<body pos="0 0 0.3"><joint name="b" axis="1 0 0" pos="0.02 0 0"/>'
    + BALL
    + "</body></body></body></worldbody>"
)
TERMS = '<joint joint="a" coef="0.5"/><joint joint="s" coef="-2"/><joint joint="b" coef="0.7"/>'


def tendon(attributes, actuators="", key=""):
    return (
        BODIES + f'\n<tendon><fixed name="t" {attributes}>{TERMS}</fixed></tendon>\n<actuator>{actuators}</actuator>'
        f'<keyframe><key name="k" qpos="0.9 0.2 -0.5" qvel="0.3 -0.4 1.1" {key}/></keyframe>'
    )


def compared(path, text):
    """Our model at the key frame, its forces without gravity and rates, and those of MuJoCo, passive and of inputs."""
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    data = mujoco.MjData(mj)
    mujoco.mj_resetDataKeyframe(mj, data, 0)
    mujoco.mj_forward(mj, data)
    m = la.load(path)
    model = m.build()
    x, inputs = model.state("k"), model.actuate(m.key_frames["k"].inputs)
    at = (x.q, x.v, np.zeros(3))
    acting = la.inverse_dynamics(model, *at, passive=False) - la.inverse_dynamics(model, *at)
    return model, acting + inputs, data


@pytest.mark.parametrize(
    "attributes",
    [
        'stiffness="30"',
        'stiffness="30" damping="2"',
        'stiffness="30" springlength="0.5"',
        # in the dead band, and on either side of it
        'stiffness="30" springlength="-9 9"',
        'stiffness="30" springlength="-9 -5"',
        'stiffness="30" springlength="2 3"',
        'damping="4"',
    ],
)
def test_passive_forces(mjcf, attributes):
    text = tendon(attributes)
    _, ours, data = compared(mjcf(text), text)
    np.testing.assert_allclose(ours, data.qfrc_passive, atol=1e-12)  # measured 1e-15


@pytest.mark.parametrize(
    ("actuator", "ctrl"),
    [
        ('<motor tendon="t" gear="3"/>', 0.7),
        ('<motor tendon="t" ctrlrange="-0.2 0.5"/>', 0.7),
        ('<position tendon="t" kp="40" kv="3"/>', 0.7),
        ('<position tendon="t" kp="40" gear="2" ctrlrange="0 0.5"/>', 0.7),
        ('<velocity tendon="t" kv="4"/>', 0.7),
        ('<general tendon="t" gainprm="0.3" biastype="affine" biasprm="0.2 -20 -3" ctrlrange="0 255"/>', 200.0),
    ],
)
def test_forces_of_actuators(mjcf, actuator, ctrl):
    text = tendon('stiffness="5"', actuator, f'ctrl="{ctrl}"')
    _, ours, data = compared(mjcf(text), text)
    np.testing.assert_allclose(ours, data.qfrc_passive + data.qfrc_actuator, atol=1e-11)  # measured 4e-15


def test_limits_are_in_force_and_count_from_ref(mjcf):
    text = tendon('limited="true" range="-1.5 0.75" margin="0.05"')
    m = la.load(mjcf(text))
    offset = 0.5 * 0.4 - 2 * -0.1
    assert m.limits_enforced
    assert m.tendons["t"].limits == pytest.approx((-1.45 - offset, 0.7 - offset))
    assert any("limits of joints and tendons" in note for note in m.notes)


def test_a_bounded_servo_keeps_its_effort(mjcf):
    text = tendon("", '<position name="p" tendon="t" kp="40" forcerange="-6 6"/>')
    m = la.load(mjcf(text))
    assert m.actuators["p"].effort == 6
    assert "bounded servos" in m.build().features


def test_what_only_measures_is_noted(mjcf):
    m = la.load(mjcf(tendon("")))
    assert not m.tendons
    assert any("the tendon 't' has no force of its own; not kept" in note for note in m.notes)


def test_friction_is_left_out_with_a_note_that_runs_repeat(mjcf):
    m = la.load(mjcf(tendon('frictionloss="0.3"')))
    assert any(note.startswith("left out: ") and "friction 0.3 of the tendon 't'" in note for note in m.notes)


@pytest.mark.parametrize(
    ("attributes", "words", "allow"),
    [
        ('armature="1"', "has armature", "armature"),
        ('stiffness="3 1"', "polynomial", "nonlinear"),
        ('limited="true" range="0 1" margin="2"', "margin 2 leaves no room", None),
    ],
)
def test_what_cannot_be_kept_is_refused(mjcf, attributes, words, allow):
    path = mjcf(tendon(attributes))
    with pytest.raises(la.ModelError, match=f'model.xml:3: <fixed name="t">: .*{words}'):
        la.load(path)
    if allow:
        assert "t" in la.load(path, allow=(allow,)).tendons


def test_free_motion(mjcf):
    """A servo on a tendon moves the arm as MuJoCo's does, to the error of the latter's step."""
    text = tendon('stiffness="5" damping="0.5"', '<position tendon="t" kp="40" kv="3"/>', 'ctrl="0.7"')
    mj = mujoco.MjModel.from_xml_string(f"<mujoco><option integrator='RK4' timestep='0.0005'/>{text}</mujoco>")
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data = mujoco.MjData(mj)
    mujoco.mj_resetDataKeyframe(mj, data, 0)
    mujoco.mj_step(mj, data, nstep=1000)
    m = la.load(mjcf(text)).without("contacts")
    m.enforce_limits(False)
    model = m.build()
    run = la.simulate(
        model, model.state("k"), dt=0.0005, duration=0.5, method="rk4", ctrl=dict(m.key_frames["k"].inputs)
    )
    np.testing.assert_allclose(run.q[-1], data.qpos - mj.qpos0, atol=1e-6)
    np.testing.assert_allclose(run.v[-1], data.qvel, atol=1e-5)


# ------------------------------------------------------------------------------------------- through space


def numbers(values):
    return " ".join(repr(float(x)) for x in values)


def cord(seed, shape, sided):
    """A path from the world around a shape to a forearm, and a second branch behind a pulley."""
    rng = np.random.default_rng(seed)
    middle, turn = rng.uniform(-0.15, 0.15, 3), rng.normal(size=4)
    points = rng.uniform(-0.3, 0.3, (4, 3))
    away = rng.normal(size=3)
    side = middle + (0.15 + rng.uniform()) * away / np.linalg.norm(away)
    return (
        f'<worldbody><site name="w" pos="{numbers(points[0] + [0, 0, 0.6])}"/>'
        '<body name="u"><joint axis="0 1 0.2"/><joint axis="1 0 0"/><geom type="sphere" size="0.05" mass="1"/>'
        f'<geom name="g" type="{shape}" size="0.12 0.3" pos="{numbers(middle)}" quat="{numbers(turn)}" mass="0"/>'
        f'<site name="s1" pos="{numbers(points[1])}"/><site name="side" pos="{numbers(side)}"/>'
        '<body name="l" pos="0.3 0 0"><joint axis="0 0 1"/><joint type="slide" axis="1 1 0"/>'
        f'<geom type="sphere" size="0.05" mass="1"/><site name="s2" pos="{numbers(points[2])}"/>'
        f'<site name="s3" pos="{numbers(points[3])}"/></body></body></worldbody>'
        '<tendon><spatial name="t" stiffness="100" damping="3" springlength="0.2"><site site="w"/>'
        f'<geom geom="g"{" sidesite=" + chr(34) + "side" + chr(34) if sided else ""}/><site site="s2"/>'
        '<pulley divisor="2"/><site site="s3"/><site site="s1"/></spatial></tendon>'
    )


@pytest.mark.parametrize("sided", [False, True])
@pytest.mark.parametrize("shape", ["sphere", "cylinder"])
def test_paths(mjcf, shape, sided):
    """Lengths, moment arms by the forces of springs and dampers, at states where paths are straight and go around."""
    around, h = 0, 1e-6
    for seed in range(4):
        text = cord(seed, shape, sided)
        mj = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
        data, rng = mujoco.MjData(mj), np.random.default_rng(seed)
        model = la.load(mjcf(text), allow=("contacts",)).without("contacts").build()
        (force,) = model.mechanism.forces
        for _ in range(6):
            data.qpos[:], data.qvel[:] = rng.uniform(-2, 2, 4), rng.normal(size=4)
            mujoco.mj_forward(mj, data)
            around += int((data.wrap_obj.ravel()[: data.ten_wrapnum[0]] >= 0).any())
            poses = {**la.poses(model, data.qpos), "world": np.eye(4)}
            length = force.length(np.array([poses[name] for name in force.bodies]))
            assert length == pytest.approx(data.ten_length[0], abs=1e-12)  # measured 8e-15
            at = (data.qpos, data.qvel, np.zeros(4))
            ours = la.inverse_dynamics(model, *at, passive=False) - la.inverse_dynamics(model, *at)
            np.testing.assert_allclose(ours, data.qfrc_passive, atol=1e-9)  # measured 1e-13
        by_q = la.inverse_dynamics_derivatives(model, *at).dq
        for j, step in enumerate(h * np.eye(4)):
            ends = [la.inverse_dynamics(model, at[0] + s * step, *at[1:]) for s in (1, -1)]
            np.testing.assert_allclose(by_q[:, j], (ends[0] - ends[1]) / (2 * h), atol=1e-4)  # measured 9e-7
    # both kinds were met
    assert 0 < around < 24


def test_limits_of_a_path(mjcf):
    text = cord(0, "sphere", False).replace('springlength="0.2"', 'limited="true" range="0 2"')
    m = la.load(mjcf(text), allow=("contacts",)).without("contacts")
    assert m.tendons["t"].limits == (0.0, 2.0)
    (limit,) = m.build().mechanism.constraints
    # rows near the poses of the file
    limit.check(np.tile(np.eye(4), (len(limit.bodies), 1, 1)))


def test_a_path_on_one_body_is_refused(mjcf):
    text = (
        '<worldbody><body><freejoint/><geom size="0.1"/><site name="a"/><site name="b" pos="0 0 1"/></body></worldbody>'
        '\n<tendon><spatial name="t" stiffness="1"><site site="a"/><site site="b"/></spatial></tendon>'
    )
    with pytest.raises(la.ModelError, match=r'model.xml:3: <spatial name="t">: .*its path lies on one body'):
        la.load(mjcf(text))


@pytest.mark.parametrize("actuator", ['<motor tendon="t" gear="3"/>', '<position tendon="t" kp="40" kv="3" gear="2"/>'])
def test_actuators_on_paths(mjcf, actuator):
    text = cord(2, "sphere", True) + f"<actuator>{actuator}</actuator>"
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    data, rng = mujoco.MjData(mj), np.random.default_rng(4)
    m = la.load(mjcf(text)).without("contacts")
    model, (name,) = m.build(), m.actuators
    for _ in range(6):
        data.qpos[:], data.qvel[:], data.ctrl[0] = rng.uniform(-2, 2, 4), rng.normal(size=4), 0.7
        mujoco.mj_forward(mj, data)
        at = (data.qpos, data.qvel, np.zeros(4))
        ours = la.inverse_dynamics(model, *at, passive=False) - la.inverse_dynamics(model, *at)
        ours += model.actuate({name: 0.7}, la.moment_arms(model, data.qpos))
        np.testing.assert_allclose(ours, data.qfrc_passive + data.qfrc_actuator, atol=1e-9)
    with pytest.raises(
        la.ModelError, match="the moment arms of tendon 't', which runs through space, follow the state"
    ):
        model.actuate({name: 0.7})
    # forces of inputs are held over a step: an error of first order in the motion, 0.4 % measured
    start, runs = model.state([0.3, -0.2, 0.5, 0.1]), []
    for ctrl in ({name: 0.7}, np.full((200, 1), 0.7), lambda t, state: [0.7]):
        runs.append(la.simulate(model, start, dt=0.0005, duration=0.1, method="rk4", ctrl=ctrl))
    mj.opt.timestep, mj.opt.integrator = 0.0005, int(mujoco.mjtIntegrator.mjINT_RK4)
    mj.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    mujoco.mj_resetData(mj, data)
    data.qpos[:], data.ctrl[0] = start.q, 0.7
    mujoco.mj_step(mj, data, nstep=200)
    for run in runs:
        np.testing.assert_allclose(run.q[-1], data.qpos, atol=1e-2 * np.abs(data.qpos - start.q).max())
    with pytest.raises(la.UnsupportedError, match="simulate_many: actuators on tendons through space"):
        la.simulate_many(model, [start], dt=0.01, duration=0.1, ctrl={name: 0.7})
