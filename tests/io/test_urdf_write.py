"""URDF written and read back: 1e-12, and an error for what URDF cannot express."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.io.urdf_write import rpy_angles

INERTIA = (2.0, 3.0, 4.0)


def random_pose(rng):
    return la.pose(xyz=rng.normal(size=3), quat=rng.normal(size=4))


def random_inertia(rng):
    second = rng.normal(size=(3, 3))
    second = second @ second.T
    return np.trace(second) * np.eye(3) - second


def random_mechanism(rng, child_frames=False):
    m = la.Mechanism("random <&\"' robot")
    names = [f"body {i} <&\"'>" for i in range(8)]
    for name in names:
        shapes = [
            la.Box(rng.uniform(1, 2, 3), at=random_pose(rng), color=(0.1, 0.2, 0.3, 0.4), name="b"),
            la.Sphere(rng.uniform(1, 2), at=random_pose(rng), collision=False),
            la.Cylinder(rng.uniform(1, 2), rng.uniform(1, 2), at=random_pose(rng), visual=False),
            la.Capsule(rng.uniform(1, 2), rng.uniform(1, 2), at=random_pose(rng)),
        ]
        m.add_body(name, mass=rng.uniform(1, 2), com=rng.normal(size=3), inertia=random_inertia(rng), shapes=shapes)
    m.add_body("massless")
    kinds = ["free", "revolute", "continuous", "prismatic", "fixed", "planar", "prismatic", "revolute", "fixed"]
    for i, (kind, child) in enumerate(zip(kinds, [*names, "massless"], strict=True)):
        options = {"parent_frame": random_pose(rng), "axis": rng.normal(size=3)}
        if kind != "fixed":
            options["damping"] = rng.uniform(0, 1)
        if kind in ("revolute", "continuous", "prismatic", "planar"):
            options |= {"friction": rng.uniform(0, 1), "effort": rng.uniform(1, 2), "speed": rng.uniform(1, 2)}
        if kind in ("revolute", "prismatic"):
            options["limits"] = [(-1.25, 2.5), (None, 1.0), (None, None)][i % 3]
        if child_frames:
            options["child_frame"] = random_pose(rng)
        m.add_joint(f"joint {i}", kind, parent=names[i // 2] if i else "world", child=child, **options)
    return m


def largest_difference(a, b):
    """Over all numbers of two mechanisms with the same bodies and joints."""
    worst = 0.0
    for name, body in a.bodies.items():
        other = b.bodies[name]
        for x, y in ((body.mass, other.mass), (body.com, other.com), (body.inertia, other.inertia)):
            worst = max(worst, np.abs(np.subtract(x, y)).max())
        for shape, twin in zip(body.shapes, other.shapes, strict=True):
            assert (shape.kind, shape.visual, shape.collision) == (twin.kind, twin.visual, twin.collision)
            worst = max(worst, np.abs(shape.at - twin.at).max(), abs(shape.volume - twin.volume))
    for name, joint in a.joints.items():
        other = b.joints[name]
        assert (joint.parent, joint.child) == (other.parent, other.child)
        worst = max(worst, np.abs(joint.parent_frame - other.parent_frame).max())
        if joint.kind not in ("fixed", "free"):
            worst = max(worst, np.abs(joint.axis - other.axis).max())
        for what in ("damping", "friction", "effort", "speed", "limits"):
            x, y = np.asarray(getattr(joint, what)), np.asarray(getattr(other, what))
            assert np.array_equal(x, y), (name, what)
    return worst


@pytest.mark.parametrize("seed", range(5))
def test_round_trip(tmp_path, seed):
    m = random_mechanism(np.random.default_rng(seed))
    la.save(m, tmp_path / "m.urdf")
    back = la.load(tmp_path / "m.urdf")
    assert back.name == m.name
    assert set(back.bodies) == set(m.bodies)
    assert set(back.joints) == set(m.joints)
    assert largest_difference(m, back) < 1e-12  # measured 9e-16
    kinds = {(joint.kind, back.joints[joint.name].kind) for joint in m.joints.values()}
    assert {(a, b) for a, b in kinds if a != b} <= {("revolute", "continuous")}


def test_written_twice_is_the_same(tmp_path):
    m = random_mechanism(np.random.default_rng(9))
    la.save(m, tmp_path / "a.urdf")
    la.save(m, tmp_path / "b.urdf")
    assert (tmp_path / "a.urdf").read_text() == (tmp_path / "b.urdf").read_text()


def test_child_frames_become_links(tmp_path):
    m = random_mechanism(np.random.default_rng(7), child_frames=True)
    la.save(m, tmp_path / "m.urdf")
    back = la.load(tmp_path / "m.urdf")
    assert set(m.bodies) < set(back.bodies)
    # at neutral every link stands where it stood
    for name in m.bodies:
        assert np.abs(neutral_pose(m, name) - neutral_pose(back, name)).max() < 1e-12  # measured 1.6e-15


def neutral_pose(m, name):
    leading = {joint.child: joint for joint in m.joints.values()}
    pose = np.eye(4)
    while name != "world":
        joint = leading[name]
        pose = joint.parent_frame @ np.linalg.inv(joint.child_frame) @ pose
        name = joint.parent
    return pose


def test_frames_become_links(tmp_path):
    m = la.Mechanism("m")
    m.add_body("a", mass=1, inertia=INERTIA)
    m.add_joint("j", "revolute", parent="world", child="a")
    m.add_frame("tip", "a", la.pose(xyz=(1, 2, 3)))
    la.save(m, tmp_path / "m.urdf")
    back = la.load(tmp_path / "m.urdf")
    assert back.bodies["tip"].mass == 0
    assert np.array_equal(neutral_pose(back, "tip"), la.pose(xyz=(1, 2, 3)))


def test_meshes_are_relative(write, tmp_path):
    mesh = write("out/meshes/t.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n")
    m = la.Mechanism("m")
    m.add_body("a", mass=1, inertia=INERTIA, shape=la.Mesh(mesh, scale=(1, 2, 3)))
    m.add_joint("j", "revolute", parent="world", child="a")
    la.save(m, tmp_path / "out" / "m.urdf")
    assert 'filename="meshes/t.obj"' in (tmp_path / "out" / "m.urdf").read_text()
    (tmp_path / "out").rename(tmp_path / "moved")
    assert la.load(tmp_path / "moved" / "m.urdf").bodies["a"].shapes[0].volume == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("pitch", [0.0, 0.3, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, np.pi / 2 + 1e-12, 3.0])
def test_angles_of_every_rotation(pitch):
    rng = np.random.default_rng(1)
    for roll, yaw in rng.uniform(-4, 4, (100, 2)):
        R = la.pose(rpy=(roll, pitch, yaw))[:3, :3]
        assert np.abs(la.pose(rpy=rpy_angles(R))[:3, :3] - R).max() < 4e-15  # measured 3.3e-16


class TestInexpressible:
    def base(self, **options):
        m = la.Mechanism("m")
        m.add_body("a", mass=1, inertia=INERTIA)
        m.add_body("b", mass=1, inertia=INERTIA)
        m.add_joint("j", "revolute", parent="world", child="a", **options)
        m.add_joint("k", "revolute", parent="a", child="b")
        return m

    def refuses(self, m, tmp_path, reason):
        with pytest.raises(la.ModelError, match=reason):
            la.save(m, tmp_path / "m.urdf")
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "kind", ["spherical", "helical", "universal", "cylindrical", "translational", "planar_free", "composite"]
    )
    def test_kinds(self, tmp_path, kind):
        m = self.base()
        m.add_body("c", mass=1, inertia=INERTIA)
        options = {"universal": {"axis2": (1, 0, 0)}, "composite": {"parts": ["revolute"]}}.get(kind, {})
        m.add_joint("odd", kind, parent="b", child="c", **options)
        self.refuses(m, tmp_path, rf"joint 'odd': kind {kind}")

    def test_loop(self, tmp_path):
        m = self.base()
        m.add_joint("closing", "revolute", parent="world", child="b")
        self.refuses(m, tmp_path, "loop closed by joint 'closing'")

    @pytest.mark.parametrize(
        ("options", "reason"),
        [
            ({"stiffness": 1.0}, "joint 'j': stiffness"),
            ({"armature": 1.0}, "joint 'j': armature"),
            ({"damping": la.Law(lambda v: -v, lambda v: -1.0)}, "joint 'j': nonlinear"),
        ],
    )
    def test_joint_data(self, tmp_path, options, reason):
        self.refuses(self.base(**options), tmp_path, reason)

    def test_what_acts_on_it(self, tmp_path):
        for change, reason in (
            (lambda m: m.add_force(la.PointForce("a", force=(0, 0, 1), name="push")), "force 'push'"),
            (lambda m: m.add_ground(), "ground"),
            (lambda m: m.add_contact("a", "b"), "contact 'a' and 'b'"),
            (lambda m: m.exclude_contact("a", "b"), "contact exclusion of 'a' and 'b'"),
            (lambda m: m.add_actuator("motor", "j"), "actuator 'motor'"),
            (lambda m: m.lock("j", 0.3), "joint 'j': locked"),
            (lambda m: setattr(m, "gravity", np.zeros(3)), "gravity"),
            (lambda m: m.add_body("alone"), "body 'alone' .no joint leads to it"),
            (lambda m: m.remove_joint("k"), "body 'b' .no joint leads to it"),
        ):
            m = self.base()
            change(m)
            self.refuses(m, tmp_path, reason)

    def test_shapes(self, tmp_path):
        tetra = {"vertices": np.vstack([np.zeros(3), np.eye(3)]), "faces": [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]}
        for shape, reason in ((la.Ellipsoid((1, 2, 3)), "ellipsoid of body 'c'"), (la.Mesh(**tetra), "no file")):
            m = self.base()
            m.add_body("c", shape=shape)
            m.add_joint("l", "fixed", parent="a", child="c")
            self.refuses(m, tmp_path, reason)

    def test_lists_everything_at_once(self, tmp_path):
        m = self.base(stiffness=1.0, armature=1.0)
        m.add_ground()
        self.refuses(m, tmp_path, "stiffness; joint 'j': armature; ground. Write .json")
