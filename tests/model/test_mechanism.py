"""The editable description: what it accepts, what it refuses at once, what it refuses at build."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.model.constraints import Constraint
from leastaction.model.forces import PointForce, PointSpring
from leastaction.model.joints import Law
from leastaction.model.mechanism import FEATURES, Mechanism
from leastaction.model.pose import pose
from leastaction.model.shapes import Box, Mesh, Sphere


def arm() -> Mechanism:
    """Two links with everything on them."""
    m = Mechanism("arm")
    m.add_body("upper", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01), shape=Box((0.1, 0.1, 1.0)))
    m.add_body("lower", mass=0.5, shape=Sphere(0.1))
    m.add_joint(
        "shoulder",
        "revolute",
        parent="world",
        child="upper",
        axis=(0, 1, 0),
        damping=0.1,
        stiffness=1.0,
        friction=0.2,
        armature=0.3,
        limits=(-1, 1),
        effort=10,
    )
    m.add_joint("elbow", "spherical", parent="upper", child="lower", parent_frame=pose((0, 0, -1)))
    m.add_frame("tip", "lower", pose((0, 0, -0.2)))
    m.add_force(PointSpring("upper", (0, 0, 0), "lower", (0, 0, 0), stiffness=3.0))
    m.add_force(PointForce("upper", (0, 0, 0), (1, 0, 0)))
    m.add_constraint(Constraint("lower", lambda p: p[0, 2:3, 3], lambda p: np.zeros((1, 6)), name="height"))
    m.add_ground()
    m.add_contact("upper", "lower")
    m.exclude_contact("lower", "world")
    m.add_actuator("motor", "shoulder", gear=3.0, effort=2.0)
    m.enforce_limits()
    return m


def test_explicit_mass_and_inertia_win():
    body = Mechanism().add_body("a", mass=2, com=(1, 0, 0), inertia=(1, 1, 1), shape=Sphere(3.0))
    assert body.mass == 2
    assert body.com.tolist() == [1, 0, 0]
    assert np.array_equal(body.inertia, np.eye(3))
    assert len(body.shapes) == 1


def test_mass_and_shapes_give_the_uniform_composite():
    m = Mechanism()
    left, right = Sphere(0.1, at=pose((-1, 0, 0))), Sphere(0.1, at=pose((2, 0, 0)))
    body = m.add_body("a", mass=3.0, shapes=[left, right])
    # two balls of 1.5 kg, 1.5 m from their middle; measured 0
    np.testing.assert_allclose(body.com, [0.5, 0, 0], rtol=0, atol=1e-15)
    own = 0.4 * 3.0 * 0.01
    np.testing.assert_allclose(body.inertia, np.diag([own, own + 6.75, own + 6.75]), rtol=1e-14, atol=1e-15)
    # the centre of mass may be placed by hand
    assert m.add_body("b", mass=3.0, com=(0, 0, 1), shape=left).com.tolist() == [0, 0, 1]


def test_density_and_shape_give_the_mass():
    body = Mechanism().add_body("a", density=1000, shape=Box((0.1, 0.1, 0.1)))
    # measured 2e-16, 4e-16
    np.testing.assert_allclose(body.mass, 1.0, rtol=1e-14)
    np.testing.assert_allclose(body.inertia, np.eye(3) * 0.01 / 6, rtol=1e-14)


def test_mass_alone_is_a_point_and_nothing_is_massless():
    m = Mechanism()
    point = m.add_body("point", mass=2.0, com=(0, 0, 1))
    assert point.mass_properties.com.tolist() == [0, 0, 1]
    assert not point.inertia.any()
    for name, options in (("a", {}), ("b", {"shape": Sphere(1.0)}), ("c", {"mass": 0.0})):
        assert m.add_body(name, **options).mass == 0


def test_a_body_without_mass_does_not_read_its_mesh(tmp_path):
    file = tmp_path / "bad.stl"
    file.write_text("no mesh")
    m = Mechanism()
    m.add_body("a", shape=Mesh(file))
    m.add_body("b", mass=1, inertia=(1, 1, 1), shape=Mesh(file))
    with pytest.raises(ModelError, match=r"body 'c'.*bad\.stl"):
        m.add_body("c", mass=1, shape=Mesh(file))
    assert list(m.bodies) == ["a", "b"]


def test_notes_of_meshes_reach_the_mechanism():
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    m = Mechanism()
    m.add_body("a", mass=1, shape=Mesh(vertices=corners, faces=[[0, 1, 2], [0, 1, 3]]))
    assert len(m.notes) == 1
    assert m.notes[0].startswith("body 'a': mesh")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mass": -1}, "mass: must not be negative"),
        ({"mass": np.nan}, "mass: must be a finite"),
        ({"mass": np.inf}, "mass: must be a finite"),
        ({"mass": "heavy"}, "mass: expected a number"),
        ({"mass": [1, 2]}, "mass: expected a number"),
        ({"mass": 1, "inertia": (1, 1, 3)}, "triangle inequality"),
        ({"mass": 1, "inertia": (1, 1, -1)}, "not positive"),
        ({"mass": 1, "inertia": (1, 1, np.nan)}, "finite"),
        ({"mass": 1, "inertia": np.eye(2)}, "inertia"),
        ({"mass": 1, "com": (0, 0)}, "com: expected 3"),
        ({"mass": 1, "com": (0, 0, np.nan)}, "com"),
        ({"inertia": (1, 1, 1)}, "inertia needs a mass"),
        ({"density": 1}, "density needs a shape"),
        ({"density": 1, "mass": 1, "shape": Sphere(1)}, "either density"),
        ({"density": -1, "shape": Sphere(1)}, "density"),
        ({"shape": "box"}, "expected a shape"),
    ],
)
def test_bad_bodies(options, message):
    m = Mechanism()
    with pytest.raises(ModelError, match=f"body 'a'.*{message}"):
        m.add_body("a", **options)
    assert m.bodies == {}


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", 3, None, "\x7f"])
def test_bad_names(name):
    with pytest.raises(ModelError, match="name"):
        Mechanism().add_body(name)
    with pytest.raises(ModelError, match="name"):
        Mechanism().add_joint(name, "fixed", parent="world", child="a")


def test_names_are_unique():
    m = arm()
    with pytest.raises(ModelError, match="body 'upper': there is already"):
        m.add_body("upper")
    with pytest.raises(ModelError, match="joint 'elbow': there is already"):
        m.add_joint("elbow", "fixed", parent="world", child="x")
    with pytest.raises(ModelError, match="frame 'tip': there is already a frame"):
        m.add_frame("tip", "upper")
    with pytest.raises(ModelError, match="frame 'upper': there is already a body"):
        m.add_frame("upper", "lower")
    with pytest.raises(ModelError, match="body 'tip': there is already a frame"):
        m.add_body("tip")
    with pytest.raises(ModelError, match="actuator 'motor': there is already"):
        m.add_actuator("motor", "elbow")
    with pytest.raises(ModelError, match="reserved"):
        m.add_body("world")
    with pytest.raises(ModelError, match="frame 'world'"):
        m.add_frame("world", "upper")


def test_a_refused_joint_leaves_nothing_behind():
    m = arm()
    with pytest.raises(ModelError, match="joint 'wrist': axis: the axis is zero"):
        m.add_joint("wrist", "revolute", parent="lower", child="hand", axis=(0, 0, 0))
    with pytest.raises(ModelError, match="joint 'wrist': the child must not be 'world'"):
        m.add_joint("wrist", "revolute", parent="lower", child="world")
    assert "wrist" not in m.joints


def test_gravity_is_checked():
    with pytest.raises(ModelError, match="gravity"):
        Mechanism(gravity=(0, 0, np.nan))
    with pytest.raises(ModelError, match="gravity"):
        Mechanism(gravity=-9.81)


def test_bodies_may_come_after_their_joints():
    m = Mechanism()
    m.add_joint("j", "revolute", parent="a", child="b")
    m.add_joint("i", "fixed", parent="world", child="a")
    with pytest.raises(ModelError, match="joint 'j': parent: there is no body 'a'"):
        m.check()
    m.add_body("a")
    m.add_body("b")
    m.check()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.add_frame("f", "nobody"), "frame 'f': there is no body 'nobody'"),
        (lambda m: m.add_force(PointForce("nobody")), "PointForce on .*there is no body 'nobody'"),
        (lambda m: m.add_contact("upper", "nobody"), "contact 'upper' and 'nobody': there is no body"),
        (lambda m: m.add_actuator("n", "nothing"), "actuator 'n': there is no joint 'nothing'"),
        (lambda m: setattr(m.bodies["upper"], "mass", np.nan), "body 'upper': mass"),
        (lambda m: setattr(m.bodies["upper"], "inertia", np.triu(np.ones((3, 3)))), "body 'upper'.*not symmetric"),
        (lambda m: setattr(m.joints["elbow"], "damping", -1), "joint 'elbow': damping"),
        (lambda m: setattr(m.joints["elbow"], "kind", "hinge"), "joint 'elbow': unknown joint kind"),
        (lambda m: setattr(m.joints["elbow"], "name", "knee"), "joint 'elbow': the record says 'knee'"),
        (lambda m: setattr(m.frames["tip"], "pose", np.eye(3)), "frame 'tip'"),
        (lambda m: setattr(m.actuators["motor"], "coordinate", 1), "actuator 'motor': coordinate 1"),
        (lambda m: setattr(m, "gravity", (0, 0)), "gravity"),
    ],
)
def test_check_finds_what_was_edited_by_hand(edit, message):
    m = arm()
    m.check()
    edit(m)
    with pytest.raises(ModelError, match=message):
        m.check()


def test_edits_by_hand_take_their_stored_form():
    m = arm()
    m.joints["elbow"].damping = 0.3
    m.bodies["lower"].com = [0, 0, 1]
    m.gravity = [0, 0, -1.62]
    m.check()
    assert m.joints["elbow"].damping.tolist() == [0.3, 0.3, 0.3]
    assert m.bodies["lower"].com.tolist() == [0, 0, 1]
    assert m.gravity.tolist() == [0, 0, -1.62]


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda m: m.add_ground(), "ground: there is one already"),
        (lambda m: m.add_contact("lower", "upper"), "already a contact pair"),
        (lambda m: m.add_contact("a", "a"), "the same"),
        (lambda m: m.add_contact("a", "b", friction=-1), "friction"),
        (lambda m: m.add_contact("a", "b", restitution=1.5), "restitution"),
        (lambda m: m.add_contact("a", "b", points=(0, 0, 0)), "points"),
        (lambda m: m.exclude_contact("a", "a"), "the same"),
        (lambda m: m.add_force("gravity"), "add_force"),
        (lambda m: m.add_constraint("loop"), "add_constraint"),
        (lambda m: m.add_actuator("a", "shoulder", coordinate=1), "out of range; joint 'shoulder' has 1"),
        (lambda m: m.add_actuator("a", "shoulder", coordinate=-1), "out of range"),
        (lambda m: m.add_actuator("a", "shoulder", coordinate=0.5), "whole number"),
        (lambda m: m.add_actuator("a", "shoulder", effort=0), "effort"),
        (lambda m: m.add_actuator("a", "shoulder", gear=np.nan), "gear"),
        (lambda m: m.enforce_limits("yes"), "enforce_limits"),
        (lambda m: m.lock("knee"), "there is no joint 'knee'; there are 'shoulder', 'elbow'"),
        (lambda m: m.lock("shoulder", np.nan), "joint 'shoulder': lock"),
        (lambda m: m.lock("elbow", (0, 0, 0)), "expected 4 numbers"),
        (lambda m: m.unlock("knee"), "no joint"),
        (lambda m: m.remove_body("knee"), "no body"),
        (lambda m: m.remove_joint("knee"), "no joint"),
    ],
)
def test_bad_additions(add, message):
    with pytest.raises(ModelError, match=message):
        add(arm())


def test_ground_takes_any_plane():
    m = Mechanism()
    ground = m.add_ground(0.3, 0.1, normal=(0, 3, 4), height=2)
    assert ground.normal.tolist() == [0, 0.6, 0.8]
    assert (ground.friction, ground.restitution, ground.height) == (0.3, 0.1, 2)
    with pytest.raises(ModelError, match="normal"):
        Mechanism().add_ground(normal=(0, 0, 0))


def test_lock_and_unlock():
    m = arm()
    m.lock("shoulder", 0.5)
    m.lock("elbow")
    assert m.joints["shoulder"].locked.tolist() == [0.5]
    assert m.joints["elbow"].locked.tolist() == [1, 0, 0, 0]
    m.unlock("shoulder")
    assert m.joints["shoulder"].locked is None


def test_removing_a_body_removes_what_hangs_on_it():
    m = arm()
    m.remove_body("upper")
    assert list(m.bodies) == ["lower"]
    assert m.joints == {}
    assert m.actuators == {}
    assert m.forces == []
    assert m.contacts == []
    assert len(m.constraints) == 1
    assert list(m.frames) == ["tip"]
    m.check()


def test_a_copy_is_independent():
    m = arm()
    c = m.copy()
    c.bodies["upper"].mass = 9.0
    c.joints["shoulder"].damping = 0.9
    c.remove_joint("elbow")
    c.exclude_contact("upper", "lower")
    c.ground.height = 5.0
    c.forces.clear()
    c.notes.append("x")
    assert m.bodies["upper"].mass == 1.0
    assert m.joints["shoulder"].damping.tolist() == [0.1]
    assert "elbow" in m.joints
    assert len(m.contact_excludes) == 1
    assert m.ground.height == 0.0
    assert len(m.forces) == 2
    assert m.notes == []
    assert c.limits_enforced


def present(m: Mechanism) -> set[str]:
    """The features that a mechanism has."""
    out = {
        name
        for name in ("friction", "damping", "stiffness", "armature")
        if any(np.any([x != 0 for x in getattr(j, name)]) for j in m.joints.values())
    }
    out |= {"limits"} if any(j.has_limits for j in m.joints.values()) else set()
    out |= {"contacts"} if m.contacts or m.ground else set()
    out |= {"constraints"} if m.constraints else set()
    out |= {"actuators"} if m.actuators else set()
    out |= {"couplings"} if m.couplings else set()
    out |= {"tendons"} if m.tendons else set()
    return out | ({"forces"} if m.forces else set())


def geared_arm() -> Mechanism:
    """The same with a wheel that turns with the shoulder."""
    m = arm()
    m.add_body("wheel", mass=1.0, inertia=(1, 1, 1))
    m.add_joint("turn", "revolute", parent="world", child="wheel")
    m.add_coupling("gears", {"shoulder": 1.0, "turn": 2.0})
    m.add_tendon("cord", {"shoulder": 1.0, "turn": 2.0}, limits=(-9.0, 9.0))
    return m


@pytest.mark.parametrize("feature", FEATURES)
def test_without_removes_one_feature_and_no_other(feature):
    m = geared_arm()
    assert present(m) == set(FEATURES)
    assert present(m.without(feature)) == set(FEATURES) - {feature}
    assert present(m) == set(FEATURES)
    m.without(feature).check()


def test_without_removes_laws_and_the_wish_to_enforce_limits():
    m = geared_arm()
    m.joints["shoulder"].stiffness = Law(np.sin, np.cos)
    m.check()
    assert m.without("stiffness").joints["shoulder"].stiffness_laws == {}
    assert not m.without("limits").limits_enforced
    assert present(m.without(*FEATURES)) == set()


def test_without_names_the_valid_features():
    with pytest.raises(ModelError, match="unknown feature 'gravity'; the features are friction, damping"):
        arm().without("gravity")


def test_repr_is_short():
    assert repr(arm()) == "Mechanism('arm', 2 bodies, 2 joints)"


def test_describing_a_mechanism_needs_no_heavy_import():
    code = (
        "import sys, leastaction as la\n"
        "m = la.Mechanism('a'); m.add_body('b', mass=1, shape=la.Sphere(1.0))\n"
        "m.add_joint('j', 'free', parent='world', child='b'); m.check()\n"
        "print([x for x in ('numba', 'scipy', 'matplotlib', 'trimesh') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
