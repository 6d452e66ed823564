"""MJCF: what MuJoCo compiles is what the mechanism says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

import leastaction as la

mujoco = pytest.importorskip("mujoco")

_spec = importlib.util.spec_from_file_location("io_kinematics", Path(__file__).parent / "kinematics.py")
kinematics = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kinematics)

BALL = '<geom type="sphere" size="0.1"/>'
STACK = """
<compiler angle="degree"/>
<option gravity="0.1 0.2 -9.8"/>
<default><joint damping="0.1"/><default class="soft"><joint stiffness="3" springref="50"/></default></default>
<worldbody>
  <body name="base" pos="1 2 3" euler="10 20 30">
    <freejoint name="float"/>
    <inertial pos="0.1 0.2 0.3" quat="1 2 3 4" mass="2.5" diaginertia="1 1.5 2"/>
    <body name="arm" pos="0.1 0 0.5" quat="1 0.2 0.3 0.4">
      <joint name="x" class="soft" type="hinge" axis="1 2 0" pos="0.1 0.2 0.3" ref="30" range="-20 90"/>
      <joint name="y" type="slide" axis="0 1 1" ref="0.5" armature="0.3" frictionloss="0.2"/>
      <joint name="z" type="ball" pos="0 0 0.2" range="0 60" stiffness="2"/>
      <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" euler="0 45 0" density="500"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0.4 0.5"/>
      <body name="hand" pos="0.3 0 0" euler="90 0 0">
        <joint name="w" type="hinge" axis="0 0 1" pos="0 0.1 0" actuatorfrcrange="-7 7"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" rgba="1 0 0 0.5" contype="0" conaffinity="0"/>
        <geom type="cylinder" size="0.1 0.2" group="3"/>
        <site name="tip" pos="0 0 0.4" euler="0 0 90"/>
        <body name="tool" pos="0 0 0.4"><geom type="sphere" size="0.1" mass="0.25"/></body>
      </body>
    </body>
  </body>
</worldbody>
"""


def compiled(path):
    return mujoco.MjModel.from_xml_path(str(path))


def mujoco_poses(mj, qpos):
    data = mujoco.MjData(mj)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(mj, data)
    return {mj.body(b).name: la.pose(xyz=data.xpos[b], matrix=data.xmat[b].reshape(3, 3)) for b in range(1, mj.nbody)}


class TestStack:
    def test_order_names_and_kinds(self, mjcf):
        m = la.load(mjcf(STACK))
        assert m.name == "r"
        assert list(m.bodies) == ["base", "arm/x", "arm/y", "arm", "hand", "tool"]
        assert [(j.name, j.kind, j.parent, j.child) for j in m.joints.values()] == [
            ("float", "free", "world", "base"),
            ("x", "revolute", "base", "arm/x"),
            ("y", "prismatic", "arm/x", "arm/y"),
            ("z", "spherical", "arm/y", "arm"),
            ("w", "revolute", "arm", "hand"),
            ("tool/fixed", "fixed", "hand", "tool"),
        ]
        assert np.array_equal(m.gravity, [0.1, 0.2, -9.8])

    def test_slices_follow_mujoco(self, mjcf):
        path = mjcf(STACK)
        model, mj = la.load(path).build(), compiled(path)
        assert (model.nq, model.nv) == (mj.nq, mj.nv)
        for j, name in enumerate(("float", "x", "y", "z", "w")):
            assert model.joint(name).q.start == mj.jnt_qposadr[j]
            assert model.joint(name).v.start == mj.jnt_dofadr[j]

    def test_joint_data(self, mjcf):
        j = la.load(mjcf(STACK)).joints
        turn = np.deg2rad
        assert np.allclose(j["x"].limits, [turn([-50, 60])], rtol=1e-15)  # range minus ref
        assert np.allclose(j["x"].rest, turn(20), rtol=1e-14)  # springref minus ref
        assert np.array_equal(j["x"].stiffness, [3])
        assert np.array_equal(j["x"].damping, [0.1])
        assert np.array_equal(j["float"].damping, [0] * 6)  # a freejoint takes no defaults
        assert np.array_equal(j["y"].armature, [0.3])
        assert np.array_equal(j["y"].friction, [0.2])
        assert not j["y"].has_limits
        assert np.allclose(j["z"].limits, [[0, turn(60)]], rtol=1e-15)
        assert np.array_equal(j["z"].stiffness, [2, 2, 2])
        assert np.array_equal(j["w"].effort, [7])

    def test_masses_and_inertias(self, mjcf):
        path = mjcf(STACK)
        m, mj = la.load(path), compiled(path)
        worst = 0.0
        for b in range(1, mj.nbody):
            body = m.bodies[mj.body(b).name]
            R = np.zeros(9)
            mujoco.mju_quat2Mat(R, mj.body_iquat[b])
            R = R.reshape(3, 3)
            assert body.mass == mj.body_mass[b]
            assert np.array_equal(body.com, mj.body_ipos[b])
            worst = max(worst, np.abs(body.inertia - R @ np.diag(mj.body_inertia[b]) @ R.T).max())
        assert worst < 1e-14  # measured 1.1e-15
        assert m.bodies["arm/x"].mass == 0
        assert m.bodies["base"].mass == 2.5

    def test_poses(self, mjcf):
        path = mjcf(STACK)
        model, mj = la.load(path).build(), compiled(path)
        rng = np.random.default_rng(5)
        for _ in range(20):
            q, v = kinematics.random_coordinates(model, rng)
            ours, theirs = kinematics.link_poses(model, q), mujoco_poses(mj, la.to_mujoco(model, q, v, mj)[0])
            for name, pose in theirs.items():
                assert np.abs(ours[name] - pose).max() < 1e-12  # measured 1.3e-15

    def test_neutral_is_the_pose_of_the_file(self, mjcf):
        path = mjcf(STACK)
        m, mj = la.load(path), compiled(path)
        model = m.build()
        q = la.from_mujoco(model, mj.qpos0, np.zeros(mj.nv), mj)[0]
        free = model.joint("float").q
        # all but the free joint, whose coordinates are the pose in the world; the default state has it
        assert np.abs(np.delete(q - model.neutral(), np.arange(free.start, free.stop))).max() < 1e-15  # measured 0
        assert np.allclose(q[free][:3], [1, 2, 3])
        assert np.abs(model.state().q - q).max() < 1e-15  # measured 0

    def test_shapes(self, mjcf):
        m = la.load(mjcf(STACK))
        box, capsule = m.bodies["arm"].shapes
        ellipsoid, cylinder = m.bodies["hand"].shapes
        assert np.allclose(box.size, [0.2, 0.4, 0.6])
        assert (capsule.radius, capsule.length) == pytest.approx((0.05, np.sqrt(0.5)))
        assert np.allclose(ellipsoid.radii, [0.1, 0.2, 0.3])
        assert (ellipsoid.visual, ellipsoid.collision) == (True, False)
        assert ellipsoid.color == pytest.approx((1, 0, 0, 0.5))
        assert (cylinder.visual, cylinder.collision, cylinder.length) == (False, True, 0.4)
        # the mass of the arm is that of its shapes
        mass = 500 * box.volume + 1000 * capsule.volume
        assert m.bodies["arm"].mass == pytest.approx(mass, rel=1e-12)  # measured 0

    def test_site(self, mjcf):
        frame = la.load(mjcf(STACK)).frames["tip"]
        assert frame.body == "hand"
        assert np.allclose(frame.pose, la.pose(xyz=(0, 0, 0.4), rpy=(0, 0, np.pi / 2)))


def test_names_for_what_has_none(mjcf):
    path = mjcf(
        f"<worldbody><body><freejoint/>{BALL}<body><joint/><joint axis='1 0 0'/>{BALL}</body></body></worldbody>"
    )
    m = la.load(path)
    assert list(m.bodies) == ["body_1", "body_2/body_2/joint", "body_2"]
    assert list(m.joints) == ["root", "body_2/joint", "body_2/joint2"]
    # the converters find them again
    model, mj = m.build(), compiled(path)
    q, v = la.from_mujoco(model, mj.qpos0, np.zeros(mj.nv), mj)
    assert np.array_equal(la.to_mujoco(model, q, v, mj)[0], mj.qpos0)


def test_mesh(mjcf, write):
    write("assets/cube.obj", cube_text())
    path = mjcf(
        '<compiler meshdir="assets"/><asset><mesh name="cube" file="cube.obj" scale="1 2 3"/></asset>'
        '<worldbody><body name="a" pos="0 0 1"><freejoint/><geom type="mesh" mesh="cube" pos="5 0 0" density="10"/>'
        "</body></worldbody>"
    )
    m, mj = la.load(path), compiled(path)
    (mesh,) = m.bodies["a"].shapes
    # its own moments, put back where the file had it, are those of the body
    found = mesh.mass_properties(density=10)
    assert found.mass == pytest.approx(60, rel=1e-6)  # measured 0; MuJoCo keeps vertices in single precision
    assert np.allclose(found.com, m.bodies["a"].com, atol=1e-5)
    assert np.allclose(found.inertia, m.bodies["a"].inertia, atol=1e-4)
    assert mj.body_mass[1] == pytest.approx(60, rel=1e-6)


def cube_text():
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    for a, b, c, d in faces:
        lines += [f"f {a + 1} {b + 1} {c + 1}", f"f {a + 1} {c + 1} {d + 1}"]
    return "\n".join(lines) + "\n"


class TestLoops:
    MODEL = (
        '<worldbody><body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0"/>' + BALL + "</body>"
        '<body name="b" pos="0.5 0 1" euler="10 20 30"><joint name="jb" axis="0 1 0"/>' + BALL + "</body>"
        '<site name="s"/></worldbody><equality>{}</equality>'
    )

    @pytest.mark.parametrize(
        ("constraint", "kind"),
        [
            ('<connect name="c" body1="a" body2="b" anchor="0.1 0.2 0.3"/>', "spherical"),
            ('<connect name="c" body1="a" anchor="0.1 0.2 0.3"/>', "spherical"),
            ('<weld name="c" body1="a" body2="b"/>', "fixed"),
            ('<weld name="c" body1="a" body2="b" anchor="0.1 0.2 0.3"/>', "fixed"),
            ('<weld name="c" body1="a"/>', "fixed"),
            ('<weld name="c" body1="a" body2="b" torquescale="0.01"/>', "fixed"),
            ('<weld name="c" body1="a" body2="b" anchor="0.1 0.2 0.3" torquescale="0"/>', "spherical"),
        ],
    )
    def test_closed_in_the_pose_of_the_file(self, mjcf, constraint, kind):
        m = la.load(mjcf(self.MODEL.format(constraint)))
        loop = m.joints["c"]
        poses = {"world": np.eye(4), "a": neutral(m, "a"), "b": neutral(m, "b")}
        gap = np.linalg.inv(poses[loop.parent] @ loop.parent_frame) @ poses[loop.child] @ loop.child_frame
        assert loop.kind == kind
        assert loop.child != "world"
        assert np.abs(gap[:3, 3]).max() < 1e-14  # measured 2.2e-16
        if kind == "fixed":
            assert np.abs(gap[:3, :3] - np.eye(3)).max() < 1e-14  # measured 1.2e-16
        assert list(m.joints) == ["ja", "jb", "c"]

    def test_anchor(self, mjcf):
        m = la.load(mjcf(self.MODEL.format('<connect name="c" body1="a" body2="b" anchor="0.1 0.2 0.3"/>')))
        point = (neutral(m, "a") @ m.joints["c"].parent_frame)[:3, 3]
        assert np.allclose(point, [0.1, 0.2, 1.3], rtol=0, atol=1e-15)

    @pytest.mark.parametrize("kind", ["connect", "weld"])
    def test_sites(self, mjcf, kind):
        text = self.MODEL.replace('<body name="b"', '<body name="e"><site name="t" pos="1 2 3"/></body><body name="b"')
        m = la.load(mjcf(text.format(f'<{kind} name="c" site1="s" site2="t"/>')))
        loop = m.joints["c"]
        assert (loop.parent, loop.child) == ("world", "e")
        assert np.array_equal(loop.child_frame, la.pose(xyz=(1, 2, 3)))

    def test_weld_of_a_point_is_noted(self, mjcf):
        m = la.load(mjcf(self.MODEL.format('<weld name="c" body1="a" body2="b" torquescale="0"/>')))
        assert any("'c' has torquescale 0" in note for note in m.notes)

    def test_name_that_is_taken(self, mjcf):
        m = la.load(mjcf(self.MODEL.format('<connect name="ja" body1="a" body2="b" anchor="0 0 0"/>')))
        assert list(m.joints) == ["ja", "jb", "ja_2"]

    def test_inactive(self, mjcf):
        m = la.load(mjcf(self.MODEL.format('<connect active="false" name="c" body1="a" anchor="0 0 0"/>')))
        assert "c" not in m.joints
        assert any("'c' is not active" in note for note in m.notes)

    def test_coupling(self, mjcf):
        text = '<joint name="c" joint1="ja" joint2="jb" polycoef="0.1 2 0 -3 0"/>'
        m = la.load(mjcf(self.MODEL.format(text + '<joint name="jb" joint1="jb"/>')))
        both, one = m.couplings.values()
        assert (both.name, both.total) == ("c", 0.1)
        assert [(term.joint, term.coefficients) for term in both.terms] == [("ja", (1.0,)), ("jb", (-2.0, -0.0, 3.0))]
        # a name that is taken; one joint alone is held
        assert (one.name, one.joints, one.total) == ("jb_2", ("jb",), 0.0)
        assert any("are couplings and hold exactly" in note for note in m.notes)
        assert any("'jb' is the coupling 'jb_2'" in note for note in m.notes)
        m = la.load(mjcf(self.MODEL.format('<joint name="c" joint1="ja" joint2="jb" active="false"/>')))
        assert not m.couplings

    TENDONS = (
        '<tendon><fixed name="sum"><joint joint="ja" coef="2"/><joint joint="jb" coef="-0.5"/></fixed>'
        '<fixed name="one"><joint joint="jb" coef="3"/></fixed>'
        '<spatial name="rope"><site site="s"/><site site="t"/></spatial></tendon>'
    )

    def tendons(self, constraint):
        text = self.MODEL.replace('<site name="s"/>', '<site name="s"/><site name="t" pos="1 0 0"/>')
        return text.format("\n" + constraint) + self.TENDONS

    @pytest.mark.parametrize(
        ("constraint", "terms", "total"),
        [
            ('<tendon name="c" tendon1="sum" polycoef="0.1 0 0 0 0"/>', {"ja": (2.0,), "jb": (-0.5,)}, 0.1),
            ('<tendon name="c" tendon1="one" tendon2="sum"/>', {"jb": (3.5,), "ja": (-2.0,)}, 0.0),
            (
                '<tendon name="c" tendon1="sum" tendon2="one" polycoef="0.2 1 2 0 0"/>',
                {"ja": (2.0,), "jb": (-3.5, -18.0)},
                0.2,
            ),
        ],
    )
    def test_fixed_tendons(self, mjcf, constraint, terms, total):
        (coupling,) = la.load(mjcf(self.tendons(constraint))).couplings.values()
        assert {term.joint: term.coefficients for term in coupling.terms} == terms
        assert coupling.total == total

    @pytest.mark.parametrize(
        "constraint",
        [
            '<tendon name="c" tendon1="one" tendon2="sum" polycoef="0 1 1 0 0"/>',
            '<tendon name="c" tendon1="rope"/>',
        ],
    )
    def test_tendons_that_are_no_coupling(self, mjcf, constraint):
        path = mjcf(self.tendons(constraint))
        with pytest.raises(la.ModelError, match=r'model.xml:3: <tendon name="c">: the tendon .*allow=\("equality"'):
            la.load(path)
        assert not la.load(path, allow=("equality",)).couplings

    def test_coupling_to_itself(self, mjcf):
        path = mjcf(self.MODEL.format('\n<joint name="c" joint1="ja" joint2="ja"/>'))
        with pytest.raises(la.ModelError, match=r"model.xml.*'ja'"):
            la.load(path)


def neutral(m, name):
    leading = {j.child: j for j in list(m.joints.values())[::-1]}
    pose = np.eye(4)
    while name != "world":
        joint = leading[name]
        pose, name = joint.parent_frame @ np.linalg.inv(joint.child_frame) @ pose, joint.parent
    return pose


class TestRefused:
    BODY = '<worldbody><body name="a" {}>\n{}' + BALL + "</body></worldbody>"

    @pytest.mark.parametrize(
        ("text", "reason", "name"),
        [
            (
                '\n<option density="1.2"/><worldbody><body name="a"><freejoint/>'
                '<geom size="1" fluidshape="ellipsoid"/></body></worldbody>',
                r':3: <body name="a">: the body \'a\' has fluidshape="ellipsoid"',
                "fluid",
            ),
            (
                BODY.format('gravcomp="1"', '<joint name="j" actuatorgravcomp="true" actuatorfrcrange="-1 1"/>'),
                r":2: <body name=\"a\">: gravcomp of 'a' counts as force of the motor of 'j'",
                "gravcomp",
            ),
            (
                BODY.format("", '<joint name="f" type="free" frictionloss="1"/>'),
                r':3: <joint name="f">: friction on a free joint',
                "friction",
            ),
            (
                BODY.format("", '<joint name="f" type="free" armature="1"/>'),
                r':3: <joint name="f">: armature on a free joint',
                "armature",
            ),
            (
                BODY.format("", '<joint name="j"/>')
                + '\n<tendon><fixed name="t" stiffness="3 1"><joint joint="j" coef="1"/></fixed></tendon>',
                r':4: <fixed name="t">: the tendon .* polynomial',
                "nonlinear",
            ),
            (
                BODY.format("", '<joint name="j"/><geom name="g" size="1"/><site name="s"/>').replace(
                    "<worldbody>", '<worldbody><site name="a" pos="2 0 0"/><site name="b" pos="0 2 0"/>'
                )
                + '\n<tendon><spatial name="t" stiffness="3"><site site="a"/><geom geom="g" sidesite="s"/>'
                '<site site="b"/></spatial></tendon>',
                r':4: <spatial name="t">: the tendon .* passes through a shape',
                "tendon",
            ),
            (BODY.format("", '<joint name="j" stiffness="1 2"/>'), r':3: <joint name="j">: polynomial', "nonlinear"),
        ],
    )
    def test_unless_allowed(self, mjcf, text, reason, name):
        path = mjcf(text)
        with pytest.raises(la.ModelError, match=rf'model\.xml{reason}.*allow=\("{name}",\)'):
            la.load(path)
        m = la.load(path, allow=(name,))
        assert any(note.startswith(f"allowed by '{name}'") for note in m.notes)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("<worldbody><body><joint/></body></worldbody>", "MuJoCo refuses the model: .*mass and inertia"),
            ("<worldbody><odd/></worldbody>", "MuJoCo refuses the model: .*line 2"),
            ('<worldbody><geom size="nan"/></worldbody>', "MuJoCo refuses the model"),
        ],
    )
    def test_by_mujoco(self, mjcf, text, reason):
        path = mjcf(text)
        with pytest.raises(la.ModelError, match=reason) as caught:
            la.load(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)

    def test_writes_no_log(self, mjcf, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        path = mjcf('<worldbody><geom size="nan"/></worldbody>')
        with pytest.raises(la.ModelError, match="MuJoCo refuses the model"):
            la.load(path)
        assert list(tmp_path.iterdir()) == [path]

    def test_warnings_of_mujoco_are_notes(self, mjcf, recwarn):
        # three parallel hinges: a mass matrix that cannot be inverted
        m = la.load(mjcf("<worldbody><body>" + '<joint axis="0 0 1"/>' * 3 + BALL + "</body></worldbody>"))
        assert any("MuJoCo warns: Inertia matrix is too close to singular" in note for note in m.notes)
        assert not recwarn.list

    def test_without_mujoco(self, mjcf, monkeypatch):
        monkeypatch.setitem(sys.modules, "mujoco", None)
        with pytest.raises(la.ModelError, match=r"pip install 'leastaction\[mjcf\]'"):
            la.load(mjcf("<worldbody/>"))


def test_contact(mjcf):
    path = mjcf(
        '<worldbody><geom type="plane" size="1 1 1" pos="0 0 0.5" euler="0 30 0" friction="0.7"/>'
        '<geom type="plane" size="1 1 1" pos="0 0 -5"/><geom name="step" type="box" size="1 1 1"/>'
        f'<body name="a"><freejoint/>{BALL}</body><body name="b"><freejoint/>{BALL}</body></worldbody>'
        '<contact><exclude body1="a" body2="b"/></contact>'
    )
    m = la.load(path)
    # the larger of the plane's 0.7 and the 1 that geoms have by default
    assert m.ground.friction == 1.0
    angle = np.deg2rad(30)
    assert np.allclose(m.ground.normal, [np.sin(angle), 0, np.cos(angle)])
    assert m.ground.height == pytest.approx(0.5 * np.cos(angle))
    assert m.contact_excludes == {frozenset("ab")}
    # every pair that MuJoCo lets touch, but for the excluded one
    assert {frozenset((pair.a, pair.b)) for pair in m.contacts} == {
        frozenset(("a", "world/geoms")),
        frozenset(("b", "world/geoms")),
    }
    with pytest.raises(la.UnsupportedError, match=r'without\("contacts"\)'):
        la.simulate(m.build(), dt=0.01, duration=0.1, method=la.Galerkin(2))
    # the second plane is a shape
    assert [shape.kind for shape in m.bodies["world/geoms"].shapes] == ["plane", "box"]
    assert m.bodies["world/geoms"].shapes[0].at[2, 3] == -5.0
    assert "2 contact pairs" in "\n".join(m.notes)


def test_contact_pairs_follow_the_rules_of_mujoco(mjcf):
    """Neighbours and what is fixed together do not touch; bits and explicit pairs decide the rest."""
    ball = '<geom name="{}" size="0.1" friction="{}"{}/>'
    path = mjcf(
        '<worldbody><body name="a"><joint/>' + ball.format("ga", 0.3, "")
        + '<body name="b" pos="1 0 0"><joint/>' + ball.format("gb", 0.9, "")
        + '<body name="c" pos="1 0 0"><joint/>' + ball.format("gc", 0.6, "")
        + '<body name="tip" pos="1 0 0">' + ball.format("gt", 0.1, "")
        + "</body></body></body></body>"
        + '<body name="ghost" pos="0 5 0"><joint/>' + ball.format("gg", 0.2, ' contype="0" conaffinity="0"')
        + '</body></worldbody><contact><pair geom1="gg" geom2="ga"/></contact>'
    )  # fmt: skip
    found = {frozenset((pair.a, pair.b)): pair.friction for pair in la.load(path).contacts}
    assert found == {
        frozenset(("a", "c")): 0.6,
        frozenset(("a", "tip")): 0.3,
        frozenset(("a", "ghost")): 1.0,  # the default of <pair>, whatever its geoms have
    }


def test_flags(mjcf):
    path = mjcf(
        '<option><flag gravity="disable" limit="disable" equality="disable" contact="disable"/></option>'
        '<worldbody><geom type="plane" size="1 1 1"/><body name="a"><joint name="j" range="-1 1"/>'
        + BALL
        + '</body></worldbody><equality><connect body1="a" anchor="0 0 0"/></equality>'
    )
    m = la.load(path)
    assert not m.gravity.any()
    assert not m.joints["j"].has_limits
    assert list(m.joints) == ["j"]
    assert m.ground is None
    assert sum("honoured" in note for note in m.notes) == 4


def test_what_does_not_move_anything_is_noted(mjcf):
    m = la.load(
        mjcf(
            '<worldbody><light/><camera name="c"/><body name="a" mocap="true"/><body name="b"><joint name="j"/>'
            + BALL
            + '<site name="b"/></body></worldbody><sensor><jointpos joint="j"/></sensor>'
            + '<keyframe><key qpos="1"/></keyframe>'
        )
    )
    text = "\n".join(m.notes)
    assert "1 cameras, 1 lights" in text
    assert "a mocap body" in text
    assert list(m.frames) == ["b/site"]


def test_inertia_from_geoms(mjcf):
    ball = '<geom type="sphere" size="0.1"/><inertial pos="0 0 1" mass="1" diaginertia="1 1 1"/>'
    path = mjcf(f'<worldbody><body name="a"><freejoint/>{ball}</body></worldbody>')
    assert la.load(path).bodies["a"].mass == 1.0
    a = la.load(path, inertia="shapes").bodies["a"]
    assert a.mass == pytest.approx(1000 * 4e-3 / 3 * np.pi, rel=1e-12)  # measured 0
    assert np.abs(a.com).max() == 0.0


def test_an_inertia_that_no_body_has_is_balanced(mjcf):
    thin = '<geom size="0.1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/>'
    path = mjcf(f'<worldbody><body name="a"><freejoint/>{thin}</body></worldbody>')
    with pytest.raises(la.ModelError, match=r"inertia must satisfy A \+ B >= C"):
        la.load(path)
    assert np.abs(la.load(path, inertia="repair").bodies["a"].inertia - 11 / 3 * np.eye(3)).max() < 1e-14  # measured 0


KEYS = (
    '<compiler angle="radian"/>'
    '<worldbody><body name="a" pos="1 2 3" quat="0 0 1 0"><freejoint name="root"/>{ball}'
    '<body name="b"><joint name="hinge" axis="0 1 0" ref="0.5"/>{ball}</body></body></worldbody>'
    '<actuator><position name="servo" joint="hinge" kp="2"/><motor name="motor" joint="hinge"/></actuator>\n'
    "<keyframe>\n"
)


def test_key_frames(mjcf):
    path = mjcf(
        KEYS.format(ball=BALL)
        + '<key name="home" time="2" qpos="0 0 1 1 0 0 0 0.7" qvel="1 2 3 4 5 6 7" ctrl="0.9 3"/>\n'
        + '<key qvel="0 0 0 0 0 0 1"/>'
        + "</keyframe>"
    )
    model = la.load(path).build()
    assert model.key_frame_names == ("home", "key_1")
    other = mujoco.MjModel.from_xml_path(str(path))
    # the default state is MuJoCo's too
    for name, k in ((None, -1), ("home", 0), ("key_1", 1)):
        state = model.state(name)
        q, v = la.to_mujoco(model, state.q, state.v, other)
        assert np.abs(q - (other.qpos0 if k < 0 else other.key_qpos[k])).max() < 1e-15  # measured 0
        assert np.abs(v - (0 if k < 0 else other.key_qvel[k])).max() < 1e-14  # measured 0
    assert model.state("home").t == 2.0
    # targets of servos count from ref
    assert model.mechanism.key_frames["home"].inputs == {"servo": pytest.approx(0.4), "motor": 3.0}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ('name="home" qpos="1 2"', r'model.xml:4: <key name="home">: .*qpos'),
        ('qvel="1 2"', r"model.xml:4: <key>: qvel has 2 numbers; the model needs 7"),
        ('name="k" ctrl="1 2 3"', r'model.xml:4: <key name="k">: .*ctrl'),
    ],
)
def test_key_frames_of_the_wrong_length(mjcf, key, words):
    with pytest.raises(la.ModelError, match=words):
        la.load(mjcf(KEYS.format(ball=BALL) + f"<key {key}/></keyframe>"))
