"""What the URDF reader makes of a good file."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leastaction as la
from leastaction.io.urdf_inertia import ROUNDING
from leastaction.model.inertia import check_inertia, nearest_inertia
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
A, B = (f'<link name="{name}">{INERTIAL}</link>' for name in "ab")

COLORS = (("red", "1 0 0 1"), ("blue", "0 0 1 1"))


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
    assert [note[:39] for note in m.notes] == ["limits of joints and tendons and bounds of actuators"[:39]]


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
    "inside",
    [
        A + B + joint("continuous", "<odd/>"),
        A + B + joint("continuous", "<dynamics><odd/></dynamics>"),
        A + B + joint("continuous", '<limit effort="1" velocity="1"><odd/></limit>'),
        '<link name="a"><odd/><origin xyz="1 2 3"/></link>',
        A.replace("<inertial>", "<inertial><odd/>"),
        A.replace("</link>", '<visual><odd/><geometry><sphere radius="1"/></geometry></visual></link>'),
    ],
)
def test_an_unknown_element_is_noted_wherever_it_stands(urdf, inside):
    m = la.load(urdf(inside))
    assert any("robot.urdf:2: <odd> (once): unknown element, not read." in note for note in m.notes)
    assert np.array_equal(m.joints["root"].parent_frame, np.eye(4))


@pytest.mark.parametrize(
    ("limit", "limits", "note"),
    [
        ('lower="1" upper="-1"', (-np.inf, np.inf), "line 2 are reversed, lower 1 > upper -1; taken as unlimited"),
        ('lower="-inf" upper="1"', (-np.inf, 1), "<limit> (once): lower is not finite; taken as not given"),
        ('lower="-1" upper="NaN"', (-1, np.inf), "<limit> (once): upper is not finite; taken as not given"),
        ('lower="-1" upper="1e999"', (-1, np.inf), "<limit> (once): upper is not finite; taken as not given"),
        ('lower="-1" upper="1" effort="-1"', (-1, 1), "<limit> (once): effort is negative; taken as not given"),
        ('lower="-1" upper="1" velocity="nan"', (-1, 1), "<limit> (once): velocity is not finite; taken as not given"),
        ('lower="-1" upper="1" effort="0"', (-1, 1), "<limit> (once): effort is 0; taken as not given"),
    ],
)
def test_limits_as_others_take_them(urdf, limit, limits, note):
    m = la.load(urdf(A + B + joint("revolute", f"<limit {limit}/>")))
    found = m.joints["j"]
    assert found.limits[0].tolist() == list(limits)
    assert found.effort[0] == found.speed[0] == np.inf
    assert any(note in line for line in m.notes)


def test_damping_that_is_no_number(urdf):
    m = la.load(urdf(A + B + joint("continuous", '<dynamics damping="nan" friction="0.5"/>')))
    assert (m.joints["j"].damping[0], m.joints["j"].friction[0]) == (0, 0.5)
    assert any("damping is not finite; taken as not given" in note for note in m.notes)


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ('<geometry><sphere radius="0"/></geometry>', "a sphere of size 0"),
        ('<geometry><box size="1 0 1"/></geometry>', "a box of size 0"),
        ('<geometry><cylinder radius="1" length="0"/></geometry>', "a cylinder of size 0"),
        ("<geometry><cone/></geometry>", "<cone> is an unknown geometry; known are box"),
        ("<geometry/>", "there is no geometry inside"),
        ("", "there is no geometry inside"),
        ('<geometry><mesh filename="m.stl"/></geometry>', 'the mesh file "m.stl" does not exist'),
        ('<geometry><mesh filename="package://p/m.stl"/></geometry>', "does not exist (package_dirs= names folders"),
        ('<geometry><mesh filename="robot.urdf"/></geometry>', "unknown format"),
    ],
)
def test_a_shape_that_is_left_out(urdf, inside, reason):
    for tag in ("visual", "collision"):
        m = la.load(urdf(f'<link name="a"><{tag}>{inside}</{tag}></link>'))
        body = m.bodies["a"]
        assert body.shapes == ()
        assert [reason in note for note in m.notes if f"the {tag} shape is left out" in note] == [True]
        # one that others would touch is remembered, also in a file
        assert len(body.unread_shapes) == (tag == "collision")
        again = mechanism_from_dict(mechanism_to_dict(m)).bodies["a"]
        assert again.unread_shapes == body.unread_shapes


def test_the_first_of_several(urdf):
    two = '<origin xyz="1 0 0"/><origin/><geometry><sphere radius="3"/><box size="1 1 1"/></geometry><geometry/>'
    red, blue = (f'<material name="{name}"><color rgba="{rgba}"/></material>' for name, rgba in COLORS)
    m = la.load(urdf(f'<link name="a"><visual>{two}{red}{blue}</visual></link>'))
    (shape,) = m.bodies["a"].shapes
    assert (shape.kind, shape.color, shape.at[0, 3]) == ("sphere", (1, 0, 0, 1), 1)
    for tag in ("origin", "geometry", "material"):
        assert any(f"a second <{tag}> of one <visual>; only the first is kept" in note for note in m.notes)
    assert any("<box> (once): a second geometry of one <geometry>" in note for note in m.notes)


def test_a_world_that_no_link_stands_for(urdf):
    m = la.load(urdf(A + "\n" + joint("floating", parent="world", child="a")))
    assert [(j.name, j.kind, j.parent) for j in m.joints.values()] == [("j", "free", "world")]
    assert any('robot.urdf:3: <joint name="j">: the parent link "world" does not exist' in note for note in m.notes)


def test_contact_of_a_link_is_noted(urdf):
    m = la.load(urdf('<link name="a"><contact><lateral_friction value="1"/></contact></link>'))
    assert any("<contact> (once): not read, contact is given by m.add_contact" in note for note in m.notes)


C = f'<link name="c">{INERTIAL}</link>'


def followed(mimic, kind="continuous", leader="continuous"):
    """Two joints, of which the first, on line 3, follows as ``mimic`` says."""
    own = '<limit lower="-1" upper="1" effort="1" velocity="1"/>' if kind == "prismatic" else ""
    return A + B + C + "\n" + joint(kind, own + mimic) + joint(leader, name="k", parent="a", child="c")


def test_mimic(urdf, tmp_path):
    path = urdf(followed('<mimic joint="k" multiplier="2" offset="0.5"/>'))
    m = la.load(path)
    (coupling,) = m.couplings.values()
    assert (coupling.name, coupling.joints, coupling.total) == ("j/mimic", ("j", "k"), 0.5)
    assert [term.coefficients for term in coupling.terms] == [(1.0,), (-2.0,)]
    # it goes into a file and comes back
    la.save(m, tmp_path / "again.urdf")
    assert la.load(tmp_path / "again.urdf").couplings["j/mimic"].terms == coupling.terms
    assert la.load(tmp_path / "again.urdf").couplings["j/mimic"].total == 0.5
    # on request it moves on its own
    m = la.load(path, allow=("mimic",))
    assert any('mimics the joint "k", and moves on its own' in note for note in m.notes)
    assert not m.couplings
    assert m.joints["j"].kind == "continuous"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (followed('<mimic joint="j"/>'), "it mimics itself"),
        (followed('<mimic joint="other"/>'), 'it mimics the joint "other", which does not exist'),
        (followed('<mimic joint="k" multiplier="many"/>'), "multiplier"),
        (followed('<mimic joint="k"/>', leader="planar"), '"k" has 3 coordinates'),
        (followed('<mimic joint="k"/>', kind="floating"), '"j" has 6 coordinates'),
    ],
)
def test_wrong_mimics(urdf, text, words):
    with pytest.raises(la.ModelError, match=rf"robot.urdf:3: .*{words}"):
        la.load(urdf(text))


def test_mimics_of_what_stands(urdf):
    # a fixed leader stands at zero, and a fixed follower follows nobody
    (coupling,) = la.load(urdf(followed('<mimic joint="k" offset="0.1"/>', leader="fixed"))).couplings.values()
    assert (coupling.joints, coupling.total) == (("j",), 0.1)
    assert not la.load(urdf(followed('<mimic joint="k"/>', kind="fixed"))).couplings


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

    def test_kinematics_and_no_dynamics(self, urdf):
        m = la.load(urdf(f'<link name="a">{self.BROKEN.format(1)}</link>'), floating=True)
        (note,) = [note for note in m.notes if note.startswith("/") or "robot.urdf" in note]
        assert re.search(r'robot.urdf:2: <inertial> in <link name="a">: .*triangle.*inertia="repair"', note)
        model = m.build()
        # the file's numbers, and no motion
        assert np.array_equal(m.bodies["a"].inertia, np.diag([1.0, 1.0, 9.0]))
        assert "triangle inequality" in model.undetermined
        with pytest.raises(la.ModelError, match=r"body 'a' with what is fixed to it: .*inertia=\"repair\""):
            la.forward_dynamics(model, None, np.zeros(6))
        # also from our own file
        assert mechanism_from_dict(mechanism_to_dict(m)).build().undetermined == model.undetermined

    def test_negative(self, urdf):
        bad = self.BROKEN.replace('izz="9"', 'izz="-1"').format(1)
        m = la.load(urdf(f'<link name="a">{bad}</link>'), floating=True)
        assert "inertia is not positive" in m.build().undetermined

    def test_rigid_group_that_is_possible(self, urdf):
        """Only the sum moves, so the parts stay as they are."""
        path = urdf(
            f'<link name="a">{self.BROKEN.format(1)}</link><link name="b">{self.GOOD}</link>'
            + joint("fixed", '<origin xyz="0 0 2"/>')
        )
        m = la.load(path, floating=True)
        assert np.array_equal(m.bodies["a"].inertia, np.diag([1.0, 1.0, 9.0]))
        model = m.build()
        assert model.undetermined == ""
        assert m.notes == []
        # 1 kg at 0 and 5 kg at z = 2
        M = la.mass_matrix(model, None)
        assert np.abs(M[:3, :3] - np.diag([51 + 20, 51 + 20, 59])).max() < 1e-13  # measured 0

    def test_fixed_to_the_world(self, urdf):
        m = la.load(urdf(f'<link name="a">{self.BROKEN.format(1)}</link>'))
        assert m.notes == []
        assert m.build().undetermined == ""

    @pytest.mark.parametrize("how", ["repair", "shapes"])
    def test_nearest(self, urdf, how):
        m = la.load(urdf(f'<link name="a">{self.BROKEN.format(1)}</link>'), floating=True, inertia=how)
        d = 7 / 3
        assert np.abs(m.bodies["a"].inertia - np.diag([1 + d, 1 + d, 9 - d])).max() < 1e-14  # measured 0
        assert any("nearest possible one is taken; an entry changes by 0.26 of the largest" in note for note in m.notes)

    def test_the_change_goes_to_the_heaviest_link(self, urdf):
        light = self.BROKEN.replace("9", "900").format(1)
        turned = '<origin rpy="0 1.5707963267948966 0"/>'
        path = urdf(f'<link name="a">{light}</link><link name="b">{self.GOOD}</link>' + joint("fixed", turned))
        m = la.load(path, floating=True, inertia="repair")
        assert np.array_equal(m.bodies["a"].inertia, np.diag([1.0, 1.0, 900.0]))
        # moments 51, 51, 950 become 51 + d, 51 + d, 950 - d; z of a is x of b
        d = 848 / 3
        M = la.mass_matrix(m.build(), None)
        assert np.abs(M[:3, :3] - np.diag([51 + d, 51 + d, 950 - d])).max() < 1e-12  # measured 1.2e-13
        assert np.abs(m.bodies["b"].inertia - np.diag([50 - d, 50 + d, 50 + d])).max() < 1e-12  # measured 1.2e-13

    def test_by_rounding_it_is_repaired_without_asking(self, urdf):
        rounded = self.BROKEN.replace('izz="9"', 'izz="2.001"').format(1)
        m = la.load(urdf(f'<link name="a">{rounded}</link>'), floating=True)
        assert any("The nearest possible one is taken; an entry changes by 0.00017 of" in note for note in m.notes)
        check_inertia(1.0, m.bodies["a"].inertia, "a")
        assert m.build().undetermined == ""
        more = rounded.replace("2.001", str(2 + 3 * ROUNDING))
        assert la.load(urdf(f'<link name="a">{more}</link>'), floating=True).build().undetermined

    def test_how_far_rounding_goes(self):
        """Plates written with four digits miss the triangle by less than the bound."""
        rng = np.random.default_rng(0)
        worst = 0.0
        for _ in range(2000):
            a, b = 10 ** rng.uniform(-2, 0, 2)
            digits = [float(f"{x:.3e}") for x in (a, b, a + b)]
            worst = max(worst, (digits[2] - digits[0] - digits[1]) / digits[2])
        assert 0.5 * ROUNDING < worst < ROUNDING  # measured 8e-4

    def test_inertia_without_mass(self, urdf):
        path = urdf(f'<link name="a">{self.GOOD.replace("5", "0", 1)}</link>' + B + joint("continuous"))
        m = la.load(path, floating=True)
        assert "inertia and no mass" in m.build().undetermined
        m = la.load(path, floating=True, inertia="repair")
        assert not m.bodies["a"].inertia.any()
        assert any("inertia and no mass. The inertia is left out." in note for note in m.notes)

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


class TestShapes:
    """inertia="shapes" computes what a file lacks, and nothing else."""

    BOX = '<{0}><origin xyz="0 0 0.5"/><geometry><box size="0.1 0.2 1"/></geometry></{0}>'
    BALL = '<{0}><geometry><sphere radius="{1}"/></geometry></{0}>'
    MASS = '<inertial><mass value="{}"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>'

    def load(self, urdf, inside, **options):
        path = urdf(A + f'<link name="b">{inside}</link>' + joint("continuous", '<axis xyz="0 1 0"/>'))
        if options.get("inertia", "file") == "file":
            return la.load(path, **options).build()
        m = la.load(path, **options)
        assert np.array_equal(m.bodies["a"].inertia, np.eye(3))
        return m

    def test_by_density(self, urdf):
        assert "joint 'j' of body 'b'" in self.load(urdf, self.BOX.format("visual")).undetermined
        m = self.load(urdf, self.BOX.format("visual"), inertia="shapes")
        b = m.bodies["b"]
        assert b.mass == pytest.approx(20.0, rel=1e-15)  # measured 0
        assert np.abs(b.com - [0, 0, 0.5]).max() < 1e-15  # measured 0
        assert np.abs(np.diag(b.inertia) - 20 / 12 * np.array([1.04, 1.01, 0.05])).max() < 1e-14  # measured 2e-16
        assert any("by the shapes at 1000 kg/m^3: b (with what is fixed to them)" in note for note in m.notes)
        assert m.build().undetermined == ""

    def test_collision_shapes_come_first(self, urdf):
        both = self.BOX.format("visual") + self.BALL.format("collision", 1)
        b = self.load(urdf, both, inertia="shapes").bodies["b"]
        assert b.mass == pytest.approx(4 / 3 * np.pi * 1000, rel=1e-14)  # measured 0

    def test_mass_and_centre_of_the_file_stay(self, urdf):
        m = self.load(urdf, self.MASS.format(3) + self.BALL.format("visual", 2), inertia="shapes")
        b = m.bodies["b"]
        assert (b.mass, b.com.any()) == (3, False)
        assert np.abs(b.inertia - 3 * 0.4 * 4 * np.eye(3)).max() < 1e-14  # measured 0
        assert any("by the shapes, with mass and centre of mass of the file: b" in note for note in m.notes)

    def test_half_an_inertial(self, urdf):
        half = '<inertial><mass value="3"/></inertial>' + self.BALL.format("visual", 2)
        with pytest.raises(la.ModelError, match=r'<inertia> is missing; la.load\(..., inertia="shapes"\)'):
            self.load(urdf, half)
        b = self.load(urdf, half, inertia="shapes").bodies["b"]
        assert np.abs(b.inertia - 3 * 0.4 * 4 * np.eye(3)).max() < 1e-14  # measured 0
        no_mass = half.replace('<mass value="3"/>', '<inertia ixx="1"/>')
        assert self.load(urdf, no_mass, inertia="shapes").bodies["b"].mass > 1000

    def test_a_rod_stands_for_a_shape_that_cannot_be_read(self, urdf):
        mesh = '<visual><geometry><mesh filename="m.stl"/></geometry></visual>'
        tip = '<link name="c"/>' + joint("continuous", '<origin xyz="0 0.3 0.4"/>', name="k", parent="b", child="c")
        path = urdf(A + f'<link name="b">{mesh}</link>' + tip + joint("continuous"))
        m = la.load(path, inertia="shapes")
        # half a metre to the next joint; the last one carries a ball
        rod = la.Capsule(0.05, 0.5).mass_properties(density=1000)
        b, c = m.bodies["b"], m.bodies["c"]
        assert b.mass == pytest.approx(rod.mass, rel=1e-14)  # measured 0
        assert np.abs(b.com - [0, 0.15, 0.2]).max() < 1e-15  # measured 0
        assert np.abs(np.linalg.eigvalsh(b.inertia) - np.linalg.eigvalsh(rod.inertia)).max() < 1e-14  # measured 1e-17
        assert np.abs(b.inertia @ [0, 0.6, 0.8] - rod.inertia[2, 2] * np.array([0, 0.6, 0.8])).max() < 1e-14
        assert c.mass == pytest.approx(la.Sphere(0.02).volume * 1000, rel=1e-14)  # measured 0
        assert any("no shape that can be read, by a rod" in note for note in m.notes)
        assert m.build().undetermined == ""

    def test_massless_frames_stay_massless(self, urdf):
        """Between joints and at the end: what has inertia behind it, or does not move, needs none."""
        inside = (
            A
            + B
            + '<link name="between"/><link name="tip"/><link name="tool"/>'
            + joint("continuous", '<axis xyz="0 1 0"/>', name="1", parent="a", child="between")
            + joint("continuous", name="2", parent="between", child="b")
            + joint("fixed", name="3", parent="b", child="tip")
            + joint("fixed", name="4", parent="tip", child="tool")
        )
        for how in ("file", "repair", "shapes"):
            m = la.load(urdf(inside), inertia=how)
            assert [m.bodies[name].mass for name in ("between", "tip", "tool")] == [0, 0, 0]
            assert m.notes == []
            assert m.build().undetermined == ""

    def test_only_urdf_and_mjcf_have_it(self, urdf, write, tmp_path):
        with pytest.raises(la.ModelError, match="inertia: expected one of 'file', 'repair', 'shapes', got 'guess'"):
            la.load(urdf(A), inertia="guess")
        la.save(la.load(urdf(A)), tmp_path / "m.json")
        with pytest.raises(la.ModelError, match=r"m\.json: inertia='shapes' is for URDF and MJCF"):
            la.load(tmp_path / "m.json", inertia="shapes")
