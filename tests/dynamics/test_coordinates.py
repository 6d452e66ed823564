"""From minimal to maximal coordinates and back: joints of every kind, turns, loops, fixed bodies, open joints."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import retract
from leastaction.reference.samples import MOVING_KINDS, add_random_body, geometry, random_pose, random_tree
from leastaction.spatial import se3

# joints whose coordinates are told by the pose; the parts of a composite joint can be redundant
UNIQUE = tuple(kind for kind in MOVING_KINDS if kind != "composite")


def moved(model: la.Model, rng: np.random.Generator, size: float = 1.0) -> la.State:
    """A state away from neutral, with every velocity."""
    q = retract(model, model.neutral(), size * rng.uniform(-1.0, 1.0, model.nv))
    return model.state(q, rng.normal(size=model.nv))


def there_and_back(model: la.Model, state: la.State, **more: object) -> la.State:
    bodies = la.to_maximal(model, state.q, state.v)
    return la.to_minimal(model, bodies.poses, bodies.twists, **more)


def apart(a: la.State, b: la.State) -> float:
    """Largest difference of q and v."""
    return float(max(np.abs(a.q - b.q).max(), np.abs(a.v - b.v).max()))


@pytest.mark.parametrize("kind", UNIQUE)
def test_there_and_back(kind):
    rng = np.random.default_rng(3)
    for _ in range(5):
        model = random_tree([kind, "revolute", kind], rng).build()
        for size in (0.1, 1.0, 3.0):
            state = moved(model, rng, size)
            # far turns of a ball come back with the other sign
            near = state.q if size > 1.0 else None
            # measured 1.1e-14 at most
            assert apart(there_and_back(model, state, near=near), state) < 1e-12


def test_all_kinds_in_one_tree_on_a_floating_base():
    rng = np.random.default_rng(5)
    model = random_tree(["free", *UNIQUE, *UNIQUE], rng).build()
    for _ in range(5):
        state = moved(model, rng)
        # measured 1.6e-14
        assert apart(there_and_back(model, state), state) < 1e-12


COMPOSITES = (
    ("revolute", "revolute", "revolute"),
    ("prismatic", "universal"),
    ("spherical", "prismatic"),
    ("helical", "planar"),
    ("revolute",) * 6,
    ("spherical", "planar", "universal"),
)


@pytest.mark.parametrize("parts", COMPOSITES, ids=lambda parts: "-".join(parts))
def test_a_composite_joint_comes_back_to_the_same_poses(parts):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        m = la.Mechanism("composite")
        add_random_body(m, "body", rng)
        pieces = [(part, {**geometry(part, rng), "frame": random_pose(rng)}) for part in parts]
        m.add_joint("joint", "composite", parent="world", child="body", parts=pieces, armature=0.1)
        model = m.build()
        state = moved(model, rng)
        bodies = la.to_maximal(model, state.q, state.v)
        back = la.to_minimal(model, *bodies)
        again = la.to_maximal(model, back.q, back.v)
        # measured 1.8e-15 and 2.7e-15
        assert np.abs(again.poses - bodies.poses).max() < 1e-11
        assert np.abs(again.twists - bodies.twists).max() < 1e-11
        # known beforehand, it is the same position; measured 4.2e-15
        near = la.to_minimal(model, *bodies, near=state.q)
        assert np.abs(near.q - state.q).max() < 1e-12


@pytest.mark.parametrize("turns", [-7, 1, 40])
def test_turns_are_counted_from_near(turns):
    rng = np.random.default_rng(1)
    m = random_tree(["revolute", "cylindrical", "universal", "planar", "axis_rotation_free_translation"], rng)
    model = m.build()
    state = moved(model, rng)
    angles = [view.q.start + view.joint.coordinate_names.index(name) for view in model.joints.values()
              for name in view.joint.coordinate_names if name.startswith("angle")]  # fmt: skip
    q = state.q.copy()
    q[angles] += 2.0 * np.pi * turns
    # the row before, some radians away
    near = q.copy()
    near[angles] += rng.uniform(-3.0, 3.0, len(angles))
    far = model.state(q, state.v)
    # measured 1.3e-14 and 2.3e-14, with 40 turns
    assert apart(there_and_back(model, far, near=near), far) < 1e-12
    assert np.abs(there_and_back(model, far).q - state.q).max() < 1e-12


def test_a_run_is_followed_through_its_turns():
    model = la.models.pendulum().build()
    run = la.simulate(model, model.state([0.0], [30.0]), dt=0.01, duration=2.0, method="rk4")
    assert run.q[-1, 0] > 40.0
    near = run.q[0]
    for q, v in zip(run.q, run.v, strict=True):
        state = la.to_minimal(model, *la.to_maximal(model, q, v), near=near)
        near = state.q
        # measured 4.4e-16
        assert abs(state.q[0] - q[0]) < 1e-12
    assert la.to_minimal(model, *la.to_maximal(model, [np.pi])).q[0] == pytest.approx(np.pi, abs=1e-15)


def test_a_screw_knows_its_turns():
    rng = np.random.default_rng(2)
    model = random_tree(["helical", "helical"], rng).build()
    state = model.state([100.0, -77.0], [1.0, 2.0])
    # measured 4.4e-16
    assert apart(there_and_back(model, state), state) < 1e-12


def test_signs_of_quaternions_are_kept():
    model = random_tree(["spherical"], np.random.default_rng(0)).build()
    q = -np.array([0.5, 0.5, -0.5, 0.5])
    assert np.abs(there_and_back(model, model.state(q)).q + q).max() < 1e-12
    assert np.abs(there_and_back(model, model.state(q), near=q).q - q).max() < 1e-12


@pytest.mark.parametrize("closed", [False, True])
def test_along_a_spline(closed):
    rng = np.random.default_rng(4)
    frames = [la.pose(xyz=(np.cos(a), np.sin(a), 0.1 * rng.normal()), rpy=(0, 0, a)) for a in 0.7 * np.arange(9)]
    m = la.Mechanism("rail")
    add_random_body(m, "car", rng)
    m.add_joint("rail", "spline", parent="world", child="car", spline=la.SplineCurve(np.array(frames), closed),
                child_frame=random_pose(rng))  # fmt: skip
    model = m.build()
    for s in (0.01, 2.7, 5.99):
        state = model.state([s], [0.8])
        # measured 5.6e-16
        assert apart(there_and_back(model, state), state) < 1e-12
    if closed:
        state = model.state([9 * 5 + 2.7], [0.8])
        assert apart(there_and_back(model, state, near=[46.0]), state) < 1e-12


def test_on_a_spline_surface():
    rng = np.random.default_rng(4)
    x, y = np.meshgrid(np.arange(6.0), np.arange(5.0), indexing="ij")
    m = la.Mechanism("hill")
    add_random_body(m, "car", rng)
    values = np.stack([x, y, 0.3 * rng.normal(size=x.shape)], axis=-1)
    m.add_joint("hill", "spline", parent="world", child="car", spline=la.SplineSurface(values))
    model = m.build()
    state = model.state([1.3, 0.4], [0.5, -0.2])
    # measured 8.9e-16
    assert apart(there_and_back(model, state), state) < 1e-12


def test_rows_of_states():
    rng = np.random.default_rng(6)
    model = random_tree(["free", "universal", "spherical"], rng).build()
    states = [moved(model, rng) for _ in range(3)]
    q, v = np.array([s.q for s in states]), np.array([s.v for s in states])
    many = la.to_maximal(model, q, v)
    for k, state in enumerate(states):
        one = la.to_maximal(model, state.q, state.v)
        assert np.array_equal(many.poses[k], one.poses)
        assert np.array_equal(many.twists[k], one.twists)


def test_twists_are_those_of_the_bodies():
    rng = np.random.default_rng(7)
    model = random_tree(["free", "revolute", "cylindrical_free"], rng).build()
    state, h = moved(model, rng), 1e-6
    twists = la.to_maximal(model, state.q, state.v).twists
    a, b = (la.to_maximal(model, retract(model, state.q, s * h * state.v)).poses for s in (-1, 1))
    slope = np.array([se3.log(se3.inverse(x) @ y) for x, y in zip(a, b, strict=True)]) / (2 * h)
    # measured 2.4e-10
    assert np.abs(slope - twists).max() < 1e-8


def test_a_floating_base_far_away():
    model = la.models.quadruped().build()
    rng = np.random.default_rng(0)
    state = moved(model, rng, 0.5)
    q = state.q.copy()
    q[:3] += [1000.0, -2000.0, 30.0]
    far = model.state(q, state.v)
    # measured 3.3e-16
    assert apart(there_and_back(model, far), far) < 1e-12


class TestLoops:
    def test_there_and_back(self):
        model = la.models.four_bar().build()
        state = la.project(model, model.state({"crank_hinge": 0.4}, {"crank_hinge": 3.0}))
        # measured 5.6e-17
        assert apart(there_and_back(model, state), state) < 1e-12

    @pytest.mark.parametrize("kind", [kind for kind in UNIQUE if kind != "free"])
    def test_kinds_that_close_a_loop(self, kind):
        # the poses of a tree, for two free bodies that the joint ties
        rng = np.random.default_rng(8)
        tree = random_tree(["free", kind], rng)
        state = moved(tree.build(), rng)
        bodies = la.to_maximal(tree.build(), state.q, state.v)
        joint = tree.joints["j1"]
        m = la.Mechanism("loop")
        for name in ("b0", "b1"):
            m.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
            m.add_joint(f"free {name}", "free", parent="world", child=name)
        m.add_joint("tie", kind, parent=joint.parent, child="b1", axis=joint.axis, axis2=joint.axis2, pitch=joint.pitch,
                    parent_frame=joint.parent_frame, child_frame=joint.child_frame)  # fmt: skip
        model = m.build()
        back = la.to_minimal(model, *bodies)
        again = la.to_maximal(model, back.q, back.v)
        # measured 8.9e-16
        assert np.abs(again.poses - bodies.poses).max() < 1e-12
        # a turn and a displacement that no joint allows
        poses = bodies.poses.copy()
        poses[1] = poses[1] @ la.pose(xyz=(0.1, 0.2, 0.3), rpy=(0.3, 0.2, 0.1))
        with pytest.raises(la.ModelError, match=r"loop joint 'tie' is open by"):
            la.to_minimal(model, poses)

    def test_a_loop_that_opens(self):
        model = la.models.four_bar().build()
        state = la.project(model, model.state())
        bodies = la.to_maximal(model, state.q, [1.0, 0.0, 0.0])
        with pytest.raises(la.ModelError, match=r"loop joint '\w+' opens at [\d.e-]+ m/s"):
            la.to_minimal(model, *bodies)
        with pytest.raises(la.ModelError, match=r"loop joint '\w+' is open by"):
            la.to_minimal(model, la.to_maximal(model, state.q + np.array([0.1, 0.0, 0.0])).poses)


class TestFixed:
    @pytest.fixture
    def model(self):
        rng = np.random.default_rng(9)
        m = random_tree(["free", "revolute", "fixed", "universal"], rng)
        add_random_body(m, "tool", rng)
        m.add_joint("weld", "fixed", parent="b2", child="tool", parent_frame=random_pose(rng))
        add_random_body(m, "after", rng)
        m.add_joint("last", "prismatic", parent="tool", child="after", parent_frame=random_pose(rng))
        m.add_body("post", mass=1.0, inertia=(1, 1, 1))
        m.add_joint("root", "fixed", parent="world", child="post", parent_frame=random_pose(rng))
        m.add_body("held", mass=1.0, inertia=(1, 1, 1))
        m.add_joint("locked", "revolute", parent="post", child="held")
        m.lock("locked", 0.3)
        m.add_frame("tip", "tool", la.pose(xyz=(0.1, 0.2, 0.3)))
        return m.build()

    def test_there_and_back(self, model):
        state = moved(model, np.random.default_rng(1))
        # measured 1.2e-15
        assert apart(there_and_back(model, state), state) < 1e-12
        # poses of everything that has one
        q = la.to_minimal(model, la.poses(model, state.q)).q
        assert np.abs(q - state.q).max() < 1e-12

    @pytest.mark.parametrize(("name", "words"), [("tool", "joint 'weld', which fixes 'tool',"),
                                                 ("held", "joint 'locked', which fixes 'held',"),
                                                 ("tip", "frame 'tip'")])  # fmt: skip
    def test_what_came_off(self, model, name, words):
        poses = la.poses(model, moved(model, np.random.default_rng(1)).q)
        poses[name] = poses[name] @ la.pose(xyz=(0.0, 0.003, 0.0))
        with pytest.raises(la.ModelError, match=f"{words} is open by 0.003 m"):
            la.to_minimal(model, poses)


class TestErrors:
    def test_an_open_joint_is_named(self):
        model = la.models.double_pendulum().build()
        name = model.joint_names[1]
        bodies = la.to_maximal(model, [0.3, 0.4], [1.0, 2.0])
        poses = bodies.poses.copy()
        poses[1] = poses[1] @ la.pose(xyz=(0.0, 0.002, 0.0))
        with pytest.raises(la.ModelError, match=f"joint '{name}' is open by 0.002 m and [0-9.e-]+ rad"):
            la.to_minimal(model, poses)
        assert la.to_minimal(model, poses, tolerance=0.01).q == pytest.approx([0.3, 0.4], abs=1e-12)
        twists = bodies.twists.copy()
        twists[1, 3:] += [0.0, 0.5, 0.0]
        with pytest.raises(la.ModelError, match=f"joint '{name}' opens at 0.5 m/s"):
            la.to_minimal(model, bodies.poses, twists)

    @pytest.mark.parametrize(
        ("poses", "words"),
        [
            (np.zeros((2, 4, 4)), "poses have shape"),
            (np.ones((1, 4, 4)), "pose of 'bob'"),
            ({}, "poses of 'bob' are missing"),
            ({"bib": np.eye(4)}, "there is no body or frame 'bib'"),
            ("bob", "expected numbers"),
        ],
    )
    def test_what_is_no_pose(self, poses, words):
        with pytest.raises(la.ModelError, match=words):
            la.to_minimal(la.models.pendulum().build(), poses)

    def test_what_is_no_twist(self):
        model = la.models.pendulum().build()
        poses = la.to_maximal(model, [0.0]).poses
        with pytest.raises(la.ModelError, match="twists have shape"):
            la.to_minimal(model, poses, np.zeros((1, 5)))
        with pytest.raises(la.ModelError, match="twist of 'bob': expected 6 numbers"):
            la.to_minimal(model, poses, {"bob": np.zeros(5)})

    def test_what_is_no_model(self):
        with pytest.raises(la.ModelError, match=r"expected a model, got Mechanism"):
            la.to_minimal(la.models.pendulum(), np.zeros((1, 4, 4)))
        with pytest.raises(la.ModelError, match=r"expected a model, got Mechanism"):
            la.to_maximal(la.models.pendulum(), [0.0])
