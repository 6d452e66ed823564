"""Files: a mechanism written and read is the same to the last bit, and the reader forgives nothing."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leastaction.errors import ModelError
from leastaction.model.bearing import Bearing
from leastaction.model.constraints import Constraint
from leastaction.model.forces import PointForce, PointSpring, Potential, Wrench
from leastaction.model.joints import KINDS, Law
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict
from leastaction.model.shapes import Box, Capsule, Mesh

numbers = st.floats(-1e6, 1e6)
positive = st.floats(1e-6, 1e6)
vectors = st.tuples(numbers, numbers, numbers)
directions = vectors.filter(lambda v: np.linalg.norm(v) > 1e-3)
poses = st.builds(lambda xyz, rpy: pose(xyz, rpy), vectors, st.tuples(*[st.floats(-4, 4)] * 3))


def machine() -> Mechanism:
    """A mechanism with something of everything."""
    m = Mechanism("machine", gravity=(0.1, 0, -9.81))
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1 / 3]]
    tetrahedron = Mesh(vertices=corners, faces=[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    m.add_body("a", mass=1 / 3, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.01, 0.02, 0.2, 0.03, 0.25))
    m.add_body("b", density=700, shapes=[Box((0.1, 0.2, 0.3), color=(1, 0, 0)), Capsule(0.1, 0.2, at=pose((0, 0, 1)))])
    m.add_body("c", mass=2, shape=tetrahedron)
    m.add_body("d")
    m.add_joint("ab", "revolute", parent="a", child="b", axis=(1, 2, 3), limits=(None, 0.1), effort=3, damping=0.1)
    m.joints["ab"].friction = Bearing(0.1, 1 / 3, 0.2)
    m.add_joint(
        "bc",
        "composite",
        parent="b",
        child="c",
        parts=[("universal", {"axis2": (1, 0, 0), "frame": pose((0, 0, 1 / 7))}), "spherical"],
        limits=[None, (-1, 1), (0, 2)],
        rest=(0.1, 0.2, 1, 2, 3, 4),
    )
    m.add_joint("wa", "free", parent="world", child="a", stiffness=[1, 2, 3, 4, 5, 6])
    m.add_joint("cd", "helical", parent="c", child="d", pitch=0.1, child_frame=pose(rpy=(1, 2, 3)))
    m.lock("bc", (0, 0, 1, 1, 1, 1))
    m.add_frame("tip", "d", pose((1, 2, 3), quat=(1, 2, 3, 4)))
    m.add_force(PointSpring("a", (0, 0, 0), "world", (1, 1, 1), stiffness=1 / 3, rest_length=0.2, name="rope"))
    m.add_force(PointForce("a", (0, 0, 1), (1, 2, 3), "body"))
    m.add_force(Wrench("b", (1, 2, 3, 4, 5, 6)))
    m.add_ground(0.1, 0.2, (1, 2, 3), -0.3)
    m.add_contact("a", "c", 0.7, 0.3, points=[[0, 0, 0], [1, 1, 1]])
    m.exclude_contact("a", "d")
    m.add_actuator("motor", "wa", gear=100.0, coordinate=5, effort=2.0)
    m.add_actuator("other", "ab", kp=3.0, kd=0.5, target=-0.2)
    m.enforce_limits()
    m.notes.append("an assumption")
    return m


def through_json(m: Mechanism) -> tuple[dict, Mechanism]:
    data = mechanism_to_dict(m)
    text = json.dumps(data, allow_nan=False)
    return data, mechanism_from_dict(json.loads(text))


def test_everything_survives_to_the_last_bit():
    m = machine()
    data, made = through_json(m)
    assert mechanism_to_dict(made) == data
    for name, body in m.bodies.items():
        assert made.bodies[name].mass == body.mass
        assert np.array_equal(made.bodies[name].inertia, body.inertia)
        assert np.array_equal(made.bodies[name].com, body.com)
    for name, joint in m.joints.items():
        for what in ("axis", "parent_frame", "child_frame", "rest", "limits", "effort", "damping", "stiffness"):
            assert np.array_equal(getattr(made.joints[name], what), getattr(joint, what)), (name, what)
        assert (made.joints[name].kind, made.joints[name].pitch) == (joint.kind, joint.pitch)
    assert made.joints["ab"].friction == m.joints["ab"].friction
    assert np.array_equal(made.joints["bc"].locked, m.joints["bc"].locked)
    assert np.array_equal(made.frames["tip"].pose, m.frames["tip"].pose)
    assert np.array_equal(made.ground.normal, m.ground.normal)
    assert made.contact_excludes == m.contact_excludes
    assert made.notes == m.notes
    assert made.limits_enforced
    assert list(made.joints) == list(m.joints)


@given(
    st.sampled_from([k for k in KINDS if k not in ("universal", "composite", "helical", "spline")]),
    directions,
    poses,
    poses,
    positive,
    vectors,
    numbers,
)
def test_any_numbers_survive_to_the_last_bit(kind, axis, parent_frame, child_frame, mass, com, pitch):
    m = Mechanism("m", gravity=com)
    m.add_body("a", mass=mass, com=com, shape=Box((0.1, mass, 0.3), at=child_frame))
    m.add_joint("j", kind, parent="world", child="a", axis=axis, parent_frame=parent_frame, child_frame=child_frame)
    m.add_body("b", mass=mass)
    m.add_joint("h", "helical", parent="a", child="b", pitch=pitch, axis=axis)
    data, made = through_json(m)
    assert mechanism_to_dict(made) == data
    assert np.array_equal(made.joints["j"].axis, m.joints["j"].axis)
    assert np.array_equal(made.joints["j"].parent_frame, m.joints["j"].parent_frame)
    assert np.array_equal(made.bodies["a"].inertia, m.bodies["a"].inertia)


def test_meshes_by_file_keep_their_path(tmp_path):
    import trimesh

    trimesh.creation.box((1, 1, 1)).export(tmp_path / "cube.stl")
    m = Mechanism()
    m.add_body("a", mass=1, shape=Mesh(tmp_path / "cube.stl"))
    data = mechanism_to_dict(m)
    assert data["bodies"][0]["shapes"][0]["file"] == (tmp_path / "cube.stl").as_posix()
    data["bodies"][0]["shapes"][0]["file"] = "cube.stl"
    made = mechanism_from_dict(data, base=tmp_path)
    assert made.bodies["a"].shapes[0].file == tmp_path / "cube.stl"
    with pytest.raises(ModelError, match=r"bodies\[0\]\.shapes\[0\]: .*cube\.stl: no such mesh"):
        mechanism_from_dict(data, base=tmp_path.parent)


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda m: m.add_force(Potential("a", abs, abs, name="well")), "Potential 'well'.*cannot be written"),
        (
            lambda m: m.add_force(PointForce("a", force=lambda t: (0, 0, t), name="w")),
            "PointForce 'w'.*cannot be written",
        ),
        (lambda m: m.add_constraint(Constraint("a", abs, abs, name="c")), "Constraint 'c'.*cannot be written"),
        (
            lambda m: m.add_joint("j", "revolute", parent="a", child="d", damping=Law(np.sin, np.cos)),
            "joint 'j': damping.*cannot be written",
        ),
    ],
)
def test_functions_cannot_be_written(add, message):
    m = machine()
    add(m)
    with pytest.raises(ModelError, match=message):
        mechanism_to_dict(m)


def changed(path: str, value: object) -> dict:
    """The dictionary of the machine with one entry replaced; ``...`` removes it."""
    data = copy.deepcopy(mechanism_to_dict(machine()))
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place = data
    for step in way:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("format", "urdf", "format: expected"),
        ("format", ..., "format: expected"),
        ("version", 99, "version: 99 is not known"),
        ("version", "1", "version: expected a whole number"),
        ("version", True, "version: expected a whole number"),
        ("colour", "red", "colour: unknown key"),
        ("name", 3, "name: expected a string"),
        ("gravity", [0, 0], "gravity: expected 3 finite numbers"),
        ("gravity", [0, 0, "x"], "gravity"),
        ("gravity", [0, 0, None], "gravity"),
        ("gravity", [0, 0, True], "gravity"),
        ("bodies", {}, "bodies: expected a list"),
        ("bodies.0", 3, r"bodies\[0\]: expected an object"),
        ("bodies.0.mass", ..., r"bodies\[0\]\.mass: missing"),
        ("bodies.0.mass", float("nan"), r"bodies\[0\]\.mass: expected a finite number"),
        ("bodies.0.mass", -1, r"bodies\[0\]: body 'a': mass: must not be negative"),
        ("bodies.0.mass", 10**310, r"bodies\[0\]\.mass"),
        ("bodies.0.weight", 3, r"bodies\[0\]\.weight: unknown key"),
        ("bodies.1.name", "a", r"bodies\[1\]: body 'a': there is already"),
        ("bodies.0.inertia", [[1, 2, 0], [0, 1, 0], [0, 0, 5]], r"bodies\[0\]: body 'a'.*not symmetric"),
        ("bodies.1.shapes.0.size", "big", r"bodies\[1\]\.shapes\[0\]\.size: expected 3 finite numbers"),
        ("bodies.2.shapes.0.faces", [[0, 1, 9]], r"bodies\[2\]\.shapes\[0\]: mesh: a face names vertex 9"),
        ("bodies.2.shapes.0.faces", [[0, 1, 0.5]], r"bodies\[2\]\.shapes\[0\]\.faces"),
        ("joints.3.axis", [0, 0, "1"], r"joints\[3\]\.axis: expected 3 finite numbers"),
        ("joints.3.axis", [0, 0, 0], r"joints\[3\]: joint 'cd': axis: the axis is zero"),
        ("joints.0.kind", "hinge", r"joints\[0\]: joint 'ab': unknown joint kind 'hinge'"),
        ("joints.0.limits", [[1, -1]], r"joints\[0\]: joint 'ab': limits"),
        ("joints.0.limits", 3, r"joints\[0\]\.limits: expected a list"),
        ("joints.0.limits", [[1, "2"]], r"joints\[0\]\.limits\[0\]"),
        ("joints.0.effort", [float("inf")], r"joints\[0\]\.effort"),
        ("joints.0.friction.radius", 0, r"joints\[0\]\.friction: Bearing: radius"),
        ("joints.0.friction.width", 1, r"joints\[0\]\.friction\.width: unknown key"),
        ("joints.0.damping", [1, 2], r"joints\[0\]: joint 'ab': damping"),
        ("joints.0.damping", "stiff", r"joints\[0\]\.damping"),
        ("joints.0.parent", "nobody", "joint 'ab': parent: there is no body 'nobody'"),
        ("joints.1.parts.0.axis", [1], r"joints\[1\]\.parts\[0\]\.axis"),
        ("joints.1.parts.0.turns", [1], r"joints\[1\]\.parts\[0\]\.turns: unknown key"),
        ("joints.1.locked", [1, 2], r"joints\[1\]: joint 'bc': lock"),
        ("frames.0.pose", [[1]], r"frames\[0\]\.pose: expected 4 x 4"),
        ("forces.0.stiffness", None, r"forces\[0\]\.stiffness"),
        ("forces.0", "spring", r"forces\[0\]: expected an object"),
        ("ground.friction", "high", r"ground\.friction"),
        ("ground.normal", [0, 0, 0], "ground: normal: the axis is zero"),
        ("contacts.0.points", [[1, 2]], r"contacts\[0\]\.points"),
        ("contact_excludes.0", ["a"], r"contact_excludes\[0\]"),
        ("contact_excludes.0", "ab", r"contact_excludes\[0\]"),
        ("actuators.0.coordinate", 1.5, r"actuators\[0\]\.coordinate"),
        ("actuators.0.coordinate", 6, r"actuators\[0\]: actuator 'motor': coordinate 6"),
        ("limits_enforced", 1, "limits_enforced"),
        ("notes", [3], "notes: expected a list of strings"),
    ],
)
def test_the_reader_is_strict(path, value, message):
    with pytest.raises(ModelError, match=message):
        mechanism_from_dict(changed(path, value))


@pytest.mark.parametrize("data", [None, [], "mechanism", 3, {}, {1: 2}])
def test_what_is_no_mechanism(data):
    with pytest.raises(ModelError):
        mechanism_from_dict(data)


def test_absent_entries_take_their_defaults():
    data = {
        "format": "leastaction mechanism",
        "version": 1,
        "name": "small",
        "gravity": [0, 0, -9.81],
        "bodies": [{"name": "a", "mass": 1, "com": [0, 0, 0], "inertia": [[1, 0, 0], [0, 1, 0], [0, 0, 1]]}],
        "joints": [{"name": "j", "kind": "spherical", "parent": "world", "child": "a"}],
    }
    made = mechanism_from_dict(data)
    assert made.joints["j"].rest.tolist() == [1, 0, 0, 0]
    assert made.joints["j"].effort.tolist() == [np.inf] * 3
    assert made.bodies["a"].mass == 1.0
