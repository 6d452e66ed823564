"""States in Pinocchio's and MuJoCo's order and conventions, and back."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.io.convert import velocity_map

pin = pytest.importorskip("pinocchio")
mujoco = pytest.importorskip("mujoco")

_spec = importlib.util.spec_from_file_location("io_kinematics", Path(__file__).parent / "kinematics.py")
kinematics = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kinematics)

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def urdf_text():
    """A tree with every kind of URDF joint; names in an order that differs from Pinocchio's."""
    rng = np.random.default_rng(11)
    kinds = {"z": "revolute", "y": "continuous", "x": "prismatic", "w": "fixed", "v": "planar", "u": "floating"}
    lines = [f'<link name="base">{INERTIAL}</link>']
    parent = "base"
    for name, kind in kinds.items():
        xyz, rpy = (" ".join(f"{x:.3f}" for x in rng.normal(size=3)) for _ in range(2))
        axis = "0 0 1" if kind == "planar" else " ".join(f"{x:.3f}" for x in rng.normal(size=3))
        lines.append(
            f'<link name="l{name}">{INERTIAL}</link><joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="l{name}"/><origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
            '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        )
        parent = "base" if name == "x" else f"l{name}"
    return "\n".join(lines)


MJCF = """
<worldbody>
  <body name="a" pos="1 2 3" euler="10 20 30"><freejoint name="free"/><geom size="0.1"/>
    <body name="b"><joint name="h" ref="20" pos="0.1 0 0"/><joint name="s" type="slide" axis="1 0 0" ref="0.3"/>
      <joint name="ball" type="ball"/><geom size="0.1"/></body>
  </body>
</worldbody>
"""


@pytest.fixture
def with_pinocchio(urdf):
    path = urdf(urdf_text())
    model = la.load(path, floating=True).build()
    return model, pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())


@pytest.fixture
def with_mujoco(mjcf):
    path = mjcf(MJCF)
    return la.load(path).build(), mujoco.MjModel.from_xml_path(str(path))


def pinocchio_integrate(model, q, dv):
    return pin.integrate(model, q, dv)


def mujoco_integrate(model, q, dv):
    out = q.copy()
    mujoco.mj_integratePos(model, out, dv, 1.0)
    return out


class TestBoth:
    @pytest.fixture(params=["pinocchio", "mujoco"])
    def side(self, request):
        model, other = request.getfixturevalue(f"with_{request.param}")
        if request.param == "pinocchio":
            return model, other, la.to_pinocchio, la.from_pinocchio, pinocchio_integrate
        return model, other, la.to_mujoco, la.from_mujoco, mujoco_integrate

    def test_there_and_back(self, side):
        model, other, to, back, _ = side
        rng = np.random.default_rng(0)
        for _ in range(20):
            q, v = kinematics.random_coordinates(model, rng)
            qq, vv = to(model, q, v, other)
            assert (qq.shape, vv.shape) == ((other.nq,), (other.nv,))
            q2, v2 = back(model, qq, vv, other)
            # an angle may come back by a whole turn less
            turns = (q2 - q) / (2 * np.pi)
            assert np.abs(q2 - q - 2 * np.pi * np.round(turns)).max() < 1e-14  # measured 1.1e-16
            assert np.abs(v2 - v).max() < 1e-14  # measured 2.2e-15

    def test_velocity_is_the_rate_of_the_coordinates(self, side):
        model, other, to, _, integrate = side
        rng = np.random.default_rng(1)
        h = 1e-6
        for _ in range(10):
            q, v = kinematics.random_coordinates(model, rng)
            qq, vv = to(model, q, v, other)
            ahead = to(model, kinematics.moved(model, q, v, h), v, other)[0]
            behind = to(model, kinematics.moved(model, q, v, -h), v, other)[0]
            theirs = integrate(other, qq, h * vv) - integrate(other, qq, -h * vv)
            assert np.abs(ahead - behind - theirs).max() / (2 * h) < 1e-7  # measured 3e-9

    def test_rows(self, side):
        model, other, to, back, _ = side
        rng = np.random.default_rng(2)
        states = [kinematics.random_coordinates(model, rng) for _ in range(6)]
        q, v = (np.array(part).reshape(2, 3, -1) for part in zip(*states, strict=True))
        qq, vv = to(model, q, v, other)
        for i, (one_q, one_v) in enumerate(states):
            single = to(model, one_q, one_v, other)
            assert np.array_equal(qq[divmod(i, 3)], single[0])
            assert np.array_equal(vv[divmod(i, 3)], single[1])
        assert back(model, qq, vv, other)[0].shape == q.shape

    def test_velocity_map(self, side):
        model, other, to, _, _ = side
        q, v = kinematics.random_coordinates(model, np.random.default_rng(3))
        T = velocity_map(to, model, q, other)
        assert np.abs(T @ v - to(model, q, v, other)[1]).max() < 1e-14  # measured 6e-17

    def test_wrong_shapes(self, side):
        model, other, to, back, _ = side
        q, v = kinematics.random_coordinates(model, np.random.default_rng(4))
        for function, args in (
            (to, (q[:-1], v)),
            (to, (q, v[:-1])),
            (to, (np.nan * q, v)),
            (to, (np.array([q, q]), v)),
            (back, (np.zeros(other.nq + 1), np.zeros(other.nv))),
        ):
            with pytest.raises(la.ModelError, match="must"):
                function(model, *args, other)


def test_pinocchio_poses(with_pinocchio):
    model, other = with_pinocchio
    data = other.createData()
    rng = np.random.default_rng(5)
    for _ in range(20):
        q, v = kinematics.random_coordinates(model, rng)
        pin.framesForwardKinematics(other, data, la.to_pinocchio(model, q, v, other)[0])
        for name, pose in kinematics.link_poses(model, q).items():
            if name != "world":
                theirs = data.oMf[other.getFrameId(name, pin.BODY)].homogeneous
                assert np.abs(pose - theirs).max() < 1e-12  # measured 1.3e-15


def test_mujoco_free_joint_with_frames(with_mujoco):
    """Frames on our side of a free joint change q and v, not where the body is and how it moves."""
    plain, other = with_mujoco
    m = plain.mechanism.copy()
    rng = np.random.default_rng(6)
    m.joints["free"].parent_frame = la.pose(xyz=rng.normal(size=3), quat=rng.normal(size=4))
    m.joints["free"].child_frame = la.pose(xyz=rng.normal(size=3), quat=rng.normal(size=4))
    model = m.build()
    h = 1e-6
    for _ in range(10):
        q, v = kinematics.random_coordinates(model, rng)
        qpos, qvel = la.to_mujoco(model, q, v, other)
        data = mujoco.MjData(other)
        data.qpos[:] = qpos
        mujoco.mj_kinematics(other, data)
        assert np.abs(kinematics.link_poses(model, q)["b"][:3, 3] - data.xpos[2]).max() < 1e-13  # measured 9e-16
        # rate of the body's pose
        q2, v2 = la.from_mujoco(model, qpos, qvel, other)
        difference = kinematics.link_poses(model, q2)["b"] - kinematics.link_poses(model, q)["b"]
        assert np.abs(difference).max() < 1e-13  # measured 2.2e-15
        assert np.abs(v2 - v).max() < 1e-13  # measured 3e-15
        ahead = kinematics.link_poses(model, kinematics.moved(model, q, v, h))["a"][:3, 3]
        behind = kinematics.link_poses(model, kinematics.moved(model, q, v, -h))["a"][:3, 3]
        assert np.abs((ahead - behind) / (2 * h) - qvel[:3]).max() < 1e-8  # measured 6e-10


def test_ref(with_mujoco):
    model, other = with_mujoco
    qpos, _ = la.to_mujoco(model, model.neutral(), np.zeros(model.nv), other)
    assert qpos[other.joint("h").qposadr[0]] == pytest.approx(np.deg2rad(20), rel=1e-15)
    assert qpos[other.joint("s").qposadr[0]] == 0.3


def test_fixed_base_and_world_root(urdf):
    path = urdf(urdf_text())
    model, other = la.load(path).build(), pin.buildModelFromUrdf(str(path))
    q, v = kinematics.random_coordinates(model, np.random.default_rng(7))
    assert la.to_pinocchio(model, q, v, other)[0].shape == (other.nq,)


def test_joints_that_differ_are_listed(urdf, mjcf):
    path = urdf(urdf_text())
    model = la.load(path, floating=True).build()
    fixed = pin.buildModelFromUrdf(str(path))
    with pytest.raises(la.ModelError, match="only in the model: root; only in Pinocchio's: none"):
        la.to_pinocchio(model, model.neutral(), np.zeros(model.nv), fixed)
    other = mujoco.MjModel.from_xml_path(str(mjcf(MJCF)))
    with pytest.raises(
        la.ModelError, match="only in the model: root, u, v, x, y, z; only in MuJoCo's: ball, free, h, s"
    ):
        la.to_mujoco(model, model.neutral(), np.zeros(model.nv), other)


def test_kinds_that_differ(urdf, mjcf):
    robot = f'<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link><joint name="j" type="{{}}">'
    robot += '<parent link="a"/><child link="b"/></joint>'
    model = la.load(urdf(robot.format("prismatic"))).build()
    other = mujoco.MjModel.from_xml_path(
        str(mjcf('<worldbody><body><joint name="j"/><geom size="0.1"/></body></worldbody>'))
    )
    with pytest.raises(la.ModelError, match="joint 'j': prismatic here has no counterpart"):
        la.to_mujoco(model, model.neutral(), np.zeros(1), other)
