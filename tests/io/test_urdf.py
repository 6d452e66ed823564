"""What the URDF reader makes of a good file."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.io.urdf_inertia import nearest_inertia
from leastaction.model.inertia import check_inertia

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
A, B = (f'<link name="{name}">{INERTIAL}</link>' for name in "ab")


def joint(kind, inside="", name="j", parent="a", child="b"):
    return f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>{inside}</joint>'


def test_fixed_root(urdf):
    m = la.load(urdf(A + B + joint("revolute", '<limit lower="-1" upper="2" effort="3" velocity="4"/>')))
    assert m.name == "r"
    assert list(m.bodies) == ["a", "b"]
    root, j = m.joints.values()
    assert (root.name, root.kind, root.parent, root.child) == ("root", "fixed", "world", "a")
    assert (j.name, j.kind, j.parent, j.child) == ("j", "revolute", "a", "b")
    assert np.array_equal(j.axis, [1, 0, 0])  # URDF's default
    assert np.array_equal(j.limits, [[-1, 2]])
    assert j.effort == [3]
    assert j.speed == [4]
    assert m.notes == []


def test_floating_root(urdf):
    m = la.load(urdf(A), floating=True, name="other")
    root = m.joints["root"]
    assert m.name == "other"
    assert (root.kind, root.parent, root.child) == ("free", "world", "a")


def test_root_link_called_world(urdf):
    path = urdf('<link name="world"/>' + A + joint("fixed", parent="world", child="a"))
    m = la.load(path)
    assert list(m.bodies) == ["a"]
    assert [(j.name, j.parent) for j in m.joints.values()] == [("j", "world")]
    with pytest.raises(la.ModelError, match='called "world", which does not move'):
        la.load(path, floating=True)


def test_world_link_with_shapes_is_noted(urdf):
    visual = '<visual><geometry><sphere radius="1"/></geometry></visual>'
    m = la.load(urdf(f'<link name="world">{visual}</link>' + A + joint("fixed", parent="world", child="a")))
    assert any("<visual>" in note and "world" in note for note in m.notes)


def test_a_joint_called_root(urdf):
    m = la.load(urdf(A + B + joint("continuous", name="root")))
    assert list(m.joints) == ["world/a", "root"]
    assert any("'world/a'" in note for note in m.notes)


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("revolute", "revolute"),
        ("continuous", "continuous"),
        ("prismatic", "prismatic"),
        ("fixed", "fixed"),
        ("floating", "free"),
        ("planar", "planar"),
    ],
)
def test_kinds(urdf, kind, ours):
    m = la.load(urdf(A + B + joint(kind, '<axis xyz="0 0 2"/><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>')))
    j = m.joints["j"]
    assert j.kind == ours
    assert np.array_equal(j.parent_frame, la.pose(xyz=(1, 2, 3), rpy=(0.1, 0.2, 0.3)))
    assert np.array_equal(j.child_frame, np.eye(4))
    assert np.array_equal(j.axis, [0, 0, 1])  # normalised; the normal of a planar joint


def test_dynamics(urdf):
    m = la.load(urdf(A + B + joint("continuous", '<dynamics damping="0.5" friction="0.25" K="3"/>')))
    assert m.joints["j"].damping == [0.5]
    assert m.joints["j"].friction == [0.25]
    assert any("unknown attributes K" in note for note in m.notes)


def test_limit_defaults_are_zero(urdf):
    m = la.load(urdf(A + B + joint("prismatic", '<limit effort="0" velocity="0"/>')))
    assert np.array_equal(m.joints["j"].limits, [[0, 0]])
    assert np.isinf(m.joints["j"].effort).all()
    assert any("both are 0" in note for note in m.notes)
    assert any("effort is 0" in note for note in m.notes)


def test_limits_of_a_continuous_joint_are_noted(urdf):
    m = la.load(urdf(A + B + joint("continuous", '<limit lower="-1" upper="1" effort="2" velocity="3"/>')))
    assert not m.joints["j"].has_limits
    assert m.joints["j"].effort == [2]
    assert any("mean nothing on a continuous joint" in note for note in m.notes)


def test_inertia_is_turned_into_link_axes(urdf):
    m = la.load(
        urdf(
            '<link name="a"><inertial><origin xyz="1 2 3" rpy="0.3 -0.4 0.5"/><mass value="2"/>'
            '<inertia ixx="3" ixy="0.1" ixz="0.2" iyy="4" iyz="0.3" izz="5"/></inertial></link>'
        )
    )
    body = m.bodies["a"]
    R = la.pose(rpy=(0.3, -0.4, 0.5))[:3, :3]
    I = np.array([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]])
    assert body.mass == 2
    assert np.array_equal(body.com, [1, 2, 3])
    assert np.abs(body.inertia - R @ I @ R.T).max() < 1e-14  # measured 2.2e-16


def test_shapes_and_materials(urdf, write):
    write("meshes/tetra.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n")
    m = la.load(
        urdf(
            '<material name="blue"><color rgba="0 0 1 0.5"/></material>'
            '<link name="a">'
            '<visual name="v"><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry>'
            '<material name="blue"/></visual>'
            '<collision><geometry><cylinder radius="1" length="2"/></geometry></collision>'
            '<collision><geometry><capsule radius="1" length="2"/></geometry></collision>'
            '<visual><geometry><sphere radius="3"/></geometry>'
            '<material name="red"><color rgba="1 0 0 1"/><texture filename="t.png"/></material></visual>'
            '<collision><geometry><mesh filename="meshes/tetra.obj" scale="1 2 3"/></geometry></collision>'
            "</link>"
        )
    )
    box, cylinder, capsule, sphere, mesh = m.bodies["a"].shapes
    assert [s.kind for s in (box, cylinder, capsule, sphere, mesh)] == ["box", "cylinder", "capsule", "sphere", "mesh"]
    assert (box.name, box.color, box.visual, box.collision) == ("v", (0, 0, 1, 0.5), True, False)
    assert np.array_equal(box.at, la.pose(xyz=(1, 0, 0)))
    assert (sphere.radius, sphere.color) == (3, (1, 0, 0, 1))
    assert (cylinder.radius, cylinder.length, cylinder.visual, cylinder.collision) == (1, 2, False, True)
    assert mesh.volume == pytest.approx(1.0, rel=1e-12)  # measured 0
    assert any("<texture> (once): only the colour" in note for note in m.notes)
    assert m.bodies["a"].mass == 0  # shapes alone have no mass in URDF


def test_visual_and_collision_of_one_geometry_are_one_shape(urdf):
    sphere = '<origin xyz="0 0 1"/><geometry><sphere radius="3"/></geometry>'
    m = la.load(urdf(f'<link name="a"><visual>{sphere}</visual>' + f"<collision>{sphere}</collision>" * 2 + "</link>"))
    shapes = m.bodies["a"].shapes
    assert [(s.visual, s.collision) for s in shapes] == [(True, True), (False, True)]


def test_what_is_not_read_is_noted(urdf):
    m = la.load(
        urdf(
            A
            + B
            + joint("continuous", '<safety_controller k_velocity="1"/>\n<calibration rising="0"/>')
            + '<odd/><gazebo/><gazebo reference="a"/><transmission name="t"/><sensor name="s"/>'
        )
    )
    text = "\n".join(m.notes)
    for tag in ("safety_controller", "calibration", "odd", "gazebo", "transmission", "sensor"):
        assert f"<{tag}>" in text
    assert "robot.urdf:3: <gazebo> (2 times): not read, it does not change the motion." in text
    assert "robot.urdf:3: <odd> (once): unknown element, not read." in text


@pytest.mark.parametrize(
    ("inside", "where"),
    [
        (A + B + joint("continuous", "<odd/>"), '<joint name="j">'),
        (A + B + joint("continuous", "<dynamics><odd/></dynamics>"), "<dynamics>"),
        (A + B + joint("continuous", '<limit effort="1" velocity="1"><odd/></limit>'), "<limit>"),
        ('<link name="a"><odd/></link>', '<link name="a">'),
        (A.replace("<inertial>", "<inertial><odd/>"), "<inertial>"),
    ],
)
def test_an_unknown_element_where_the_motion_is_decided(urdf, inside, where):
    path = urdf(inside)
    with pytest.raises(la.ModelError, match=rf'robot.urdf:2: <odd> in .*unknown element inside {where}.*"unknown"'):
        la.load(path)
    m = la.load(path, allow=("unknown",))
    assert any("allowed by 'unknown'" in note and "<odd>" in note for note in m.notes)


def test_contact_of_a_link_is_noted(urdf):
    m = la.load(urdf('<link name="a"><contact><lateral_friction value="1"/></contact></link>'))
    assert any("<contact> (once): not read, contact is given by m.add_contact" in note for note in m.notes)


def test_mimic(urdf):
    path = urdf(A + B + "\n" + joint("continuous", '<mimic joint="k" multiplier="2"/>'))
    with pytest.raises(
        la.ModelError, match=r'robot.urdf:3: <joint name="j">: it mimics the joint "k".*allow=\("mimic",'
    ):
        la.load(path)
    m = la.load(path, allow=("mimic",))
    assert any('mimics the joint "k"' in note for note in m.notes)
    assert m.joints["j"].kind == "continuous"


def test_depth_first_order(urdf):
    links = "".join(f'<link name="{name}"/>' for name in "dcba")
    joints = (
        joint("fixed", name="3", parent="b", child="d")
        + joint("fixed", name="1", parent="a", child="b")
        + joint("fixed", name="2", parent="a", child="c")
    )
    assert list(la.load(urdf(links + joints)).joints) == ["root", "1", "3", "2"]


def test_long_chain(urdf):
    n = 3000
    links = "".join(f'<link name="l{i}">{INERTIAL}</link>' for i in range(n))
    joints = "".join(joint("continuous", name=f"j{i}", parent=f"l{i}", child=f"l{i + 1}") for i in range(n - 1))
    assert len(la.load(urdf(links + joints)).joints) == n


class TestImpossibleInertia:
    BROKEN = '<inertial><mass value="{}"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="9"/></inertial>'
    GOOD = '<inertial><mass value="5"/><inertia ixx="50" ixy="0" ixz="0" iyy="50" iyz="0" izz="50"/></inertial>'

    def test_moving_link(self, urdf):
        with pytest.raises(la.ModelError, match=r'robot.urdf:2: <inertial> in <link name="a">.*triangle inequality'):
            la.load(urdf(f'<link name="a">{self.BROKEN.format(1)}</link>'), floating=True)

    def test_negative(self, urdf):
        bad = self.BROKEN.replace('izz="9"', 'izz="-1"').format(1)
        with pytest.raises(la.ModelError, match="inertia is not positive"):
            la.load(urdf(f'<link name="a">{bad}</link>'), floating=True)

    def test_rigid_group_that_is_possible(self, urdf):
        path = urdf(
            f'<link name="a">{self.BROKEN.format(1)}</link><link name="b">{self.GOOD}</link>'
            + joint("fixed", '<origin xyz="0 0 2"/>')
        )
        m = la.load(path, floating=True)
        a, b = m.bodies["a"], m.bodies["b"]
        assert (a.mass, b.mass) == (0, 6)
        # 1 kg at z = -2 and 5 kg at z = 0, seen from b
        assert np.abs(b.com - [0, 0, -1 / 3]).max() < 1e-15  # measured 0
        along = 5 / 9 + 25 / 9
        assert np.abs(b.inertia - np.diag([51 + along, 51 + along, 59])).max() < 1e-13  # measured 0
        assert any("together they are a possible body" in note for note in m.notes)

    def test_fixed_to_the_world(self, urdf):
        m = la.load(urdf(f'<link name="a">{self.BROKEN.format(1)}</link>'))
        assert m.bodies["a"].mass == 1
        assert not m.bodies["a"].inertia.any()
        assert any("does not move" in note for note in m.notes)

    def test_nearest(self, urdf):
        m = la.load(urdf(f'<link name="a">{self.BROKEN.format(1)}</link>'), floating=True, allow=("inertia",))
        d = 7 / 3
        assert np.abs(m.bodies["a"].inertia - np.diag([1 + d, 1 + d, 9 - d])).max() < 1e-14  # measured 0

    def test_nearest_is_nearest(self):
        rng = np.random.default_rng(3)
        for _ in range(50):
            I = rng.normal(size=(3, 3))
            I = I @ I.T + np.diag(rng.normal(size=3))
            best = nearest_inertia(I)
            check_inertia(1.0, best, "test")
            # no possible inertia nearby is closer
            for _ in range(20):
                step = 1e-3 * rng.normal(size=(3, 3))
                other = best + step + step.T
                try:
                    check_inertia(1.0, other, "test")
                except la.ModelError:
                    continue
                assert np.linalg.norm(other - I) >= np.linalg.norm(best - I) - 1e-8

    def test_residue_of_zero(self, urdf):
        tiny = '<inertial><mass value="1"/><inertia ixx="-1e-20" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'
        m = la.load(urdf(f'<link name="a">{tiny}</link>'), floating=True)
        assert not m.bodies["a"].inertia.any()


def test_builds(urdf):
    pytest.importorskip("leastaction.model.build")
    model = la.load(urdf(A + B + joint("continuous")), floating=True).build()
    assert (model.nq, model.nv) == (8, 7)
