"""The table of what may touch: pairs, points by hand, meshes, ground that is not flat, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.errors import ModelError
from leastaction.model.contacts import MESH_POINTS, contact_table
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def robot(**shapes):
    """Free bodies with the shapes given by name; None is a body without one."""
    m = la.Mechanism()
    for name, shape in shapes.items():
        m.add_body(name, shape=shape, mass=1.0, inertia=np.eye(3))
        m.add_joint(f"to_{name}", "free", parent="world", child=name)
    return m


def table(m):
    return contact_table(m, m.build().places)


def codes(found):
    """Kinds of shapes of each pair."""
    return [tuple(found.contacts.shapes[pair[:2], cl.CODE]) for pair in found.contacts.pairs]


def test_every_shape_meets_the_ground_and_pairs_are_named():
    m = robot(ball=la.Sphere(0.1), block=la.Box((1, 2, 3)), bare=None)
    m.add_ground(friction=0.3, restitution=0.2)
    m.add_contact("block", "ball", friction=0.7, restitution=0.4)
    found = table(m)
    assert found.names == (("ball", "block"), ("ball", "world"), ("block", "world"))
    assert codes(found) == [(cl.SPHERE, cl.BOX), (cl.SPHERE, cl.HALF_SPACE), (cl.BOX, cl.HALF_SPACE)]
    assert found.contacts.numbers.tolist() == [[0.7, 0.4], [0.3, 0.2], [0.3, 0.2]]
    assert found.capacity == 1 + 1 + 8
    # what is not there is not compiled
    assert (found.contacts.heights, found.contacts.boxes, found.contacts.rounds) == (None, None, None)


def test_nothing_to_touch_is_an_empty_table():
    found = table(robot(ball=la.Sphere(0.1)))
    assert found.contacts.pairs.shape == (0, 3)
    assert found.capacity == 0


def test_shapes_stand_in_the_frames_of_their_rows():
    m = la.Mechanism()
    m.add_body("arm", shape=la.Capsule(0.1, 0.6, at=la.pose(xyz=(0, 0, 0.5))), mass=1.0)
    m.add_body("tip", shape=la.Sphere(0.2), mass=1.0)
    m.add_joint("hinge", "revolute", parent="world", child="arm", axis=(0, 1, 0), parent_frame=la.pose(xyz=(1, 0, 0)))
    m.add_joint("weld", "fixed", parent="arm", child="tip", parent_frame=la.pose(xyz=(0, 0, 1)))
    m.add_ground()
    model = m.build()
    found = contact_table(m, model.places)
    # both bodies move with the row of the hinge
    moving = found.contacts.shapes[:, cl.CODE] < cl.HALF_SPACE
    assert found.contacts.shapes[moving, cl.ROW].tolist() == [model.places["arm"].row] * 2
    # seen from the arm
    link = np.linalg.inv(model.places["arm"].pose)
    at = [link[:3, :3] @ frame[cl.PLACE : cl.PLACE + 3] + link[:3, 3] for frame in found.contacts.frames[moving]]
    assert np.allclose(at, [(0, 0, 0.5), (0, 0, 1)], atol=1e-15)


def test_what_never_moves_or_is_excluded_is_left_out():
    m = robot(ball=la.Sphere(0.1), block=la.Box((1, 1, 1)))
    m.add_body("table", shape=la.Box((2, 2, 0.1)), mass=1.0)
    m.add_joint("bolt", "fixed", parent="world", child="table")
    m.add_body("lid", shape=la.Box((1, 1, 0.1)), mass=1.0)
    m.add_joint("glue", "fixed", parent="block", child="lid")
    m.add_ground()
    m.exclude_contact("ball", "world")
    m.add_contact("block", "lid")
    m.add_contact("ball", "block")
    m.exclude_contact("ball", "block")
    m.add_contact("ball", "table")
    found = table(m)
    assert found.names == (("ball", "table"), ("block", "world"), ("lid", "world"))
    assert "contact 'block' and 'lid': left out, the two bodies are fixed to each other." in found.notes
    assert "contact 'ball' and 'block': left out, exclude_contact names the pair." in found.notes


def test_neighbours_touch_once_they_are_named():
    m = la.Mechanism()
    for k, parent in enumerate(("world", "b0")):
        m.add_body(f"b{k}", shape=la.Box((0.1, 0.1, 0.5)), mass=1.0)
        m.add_joint(f"j{k}", "revolute", parent=parent, child=f"b{k}", axis=(0, 1, 0))
    assert table(m).names == ()
    m.add_contact("b0", "b1")
    assert table(m).names == (("b0", "b1"),)


def test_shapes_without_collision_do_not_touch():
    m = la.Mechanism()
    m.add_body("a", shapes=[la.Sphere(0.1, collision=False), la.Sphere(0.2)], mass=1.0)
    m.add_joint("j", "free", parent="world", child="a")
    m.add_ground()
    assert table(m).contacts.frames[1, cl.SIZE] == 0.2
    m.bodies["a"].shapes = (la.Sphere(0.1, collision=False),)
    assert table(m).notes == ("ground: no moving body has a collision shape, so nothing touches it.",)


def test_points_by_hand_take_the_place_of_shapes():
    m = robot(foot=la.Box((0.2, 0.1, 0.05)), block=la.Box((1, 1, 1)))
    m.add_ground(friction=0.5)
    m.add_contact("foot", "world", friction=0.9, points=[[0.1, 0, 0], [-0.1, 0, 0]])
    m.add_contact("foot", "block", points=[[0, 0, 0.3]])
    found = table(m)
    assert found.names == (("foot", "world"), ("foot", "block"), ("block", "world"))
    assert codes(found) == [(cl.POINT_SET, cl.HALF_SPACE), (cl.POINT_SET, cl.BOX), (cl.BOX, cl.HALF_SPACE)]
    assert found.contacts.pairs[:, 2].tolist() == [2, 1, 8]
    assert found.contacts.numbers[0].tolist() == [0.9, 0.0]
    # the row of a free body is its link frame, moved to the centre of mass, here the same
    assert np.allclose(found.contacts.points, [[0.1, 0, 0], [-0.1, 0, 0], [0, 0, 0.3]], atol=1e-15)


def test_a_mesh_stands_on_the_corners_of_its_hull():
    m = robot(stone=la.Mesh(vertices=np.vstack([CORNERS, CORNERS.mean(axis=0)]), faces=FACES))
    m.add_ground()
    found = table(m)
    assert codes(found) == [(cl.HULL, cl.HALF_SPACE)]
    assert found.contacts.hulls is None
    assert np.allclose(np.sort(found.contacts.points, axis=0), np.sort(CORNERS, axis=0), atol=1e-15)
    assert any("contact is that of its convex hull" in note for note in found.notes)


def test_a_fine_mesh_keeps_its_extreme_corners():
    from scipy.spatial import ConvexHull

    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    m = robot(stone=la.Mesh(vertices=points, faces=ConvexHull(points).simplices))
    m.add_ground()
    found = table(m)
    kept = found.contacts.points
    assert len(kept) == found.capacity <= MESH_POINTS
    assert len(np.unique(kept, axis=0)) == len(kept)
    # the lowest, highest and outermost of all are among them
    assert np.allclose(kept.min(axis=0), points.min(axis=0), atol=1e-15)
    assert np.allclose(kept.max(axis=0), points.max(axis=0), atol=1e-15)
    assert any("of its 400 corners" in note for note in found.notes)


def test_a_flat_mesh_stands_on_all_its_vertices():
    m = robot(sheet=la.Mesh(vertices=CORNERS[:3], faces=FACES[:1]))
    m.add_ground()
    found = table(m)
    assert found.capacity == 3
    assert any("it is flat" in note for note in found.notes)


def test_a_margin_of_two_meshes_is_refused():
    mesh = la.Mesh(vertices=CORNERS, faces=FACES)
    m = robot(stone=mesh, rock=mesh)
    m.add_contact("stone", "rock", margin=0.01)
    with pytest.raises(ModelError, match="a margin needs flat ground or a solid that is no mesh on one side"):
        table(m)


def test_ground_with_heights_is_kept_to_the_last_bit():
    m = robot(ball=la.Sphere(0.1))
    heights = np.random.default_rng(1).normal(size=(4, 3))
    m.add_ground(0.3, height=0.7, heights=heights, spacing=0.1)
    assert m.ground.spacing.tolist() == [0.1, 0.1]
    again = mechanism_from_dict(json.loads(json.dumps(mechanism_to_dict(m))))
    assert np.array_equal(again.ground.heights, heights)
    assert again.ground.spacing.tolist() == [0.1, 0.1]
    assert np.array_equal(m.copy().ground.heights, heights)
    found = table(again)
    assert codes(found) == [(cl.SPHERE, cl.HEIGHTS)]
    assert np.array_equal(found.contacts.heights, heights.ravel())
    assert found.contacts.shapes[0, [cl.FIRST, cl.COUNT, cl.COUNT_Y]].tolist() == [0, 4, 3]
    assert found.contacts.frames[0, cl.PLACE + 2] == 0.7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heights": [1, 2, 3], "spacing": 1}, r"ground: heights must be an array \(nx, ny\)"),
        ({"heights": [[1, 2]], "spacing": 1}, "at least 2 x 2"),
        ({"heights": np.full((2, 2), np.nan), "spacing": 1}, "ground: heights: every number must be finite"),
        ({"heights": np.zeros((2, 2))}, "ground: heights need a spacing"),
        ({"heights": np.zeros((2, 2)), "spacing": 0}, "ground: spacing must be one or two positive lengths"),
        ({"heights": np.zeros((2, 2)), "spacing": (1, 2, 3)}, "ground: spacing must be one or two positive lengths"),
        ({"heights": np.zeros((2, 2)), "spacing": 1, "normal": (1, 0, 0)}, "heights stand along z"),
        ({"spacing": 1}, "ground: spacing is that of heights"),
    ],
)
def test_bad_heights_are_refused(options, message):
    with pytest.raises(ModelError, match=message):
        la.Mechanism().add_ground(**options)


def test_a_grid_in_a_file_must_be_one():
    m = robot(ball=la.Sphere(0.1))
    m.add_ground(heights=np.zeros((2, 2)), spacing=1.0)
    data = mechanism_to_dict(m)
    for wrong in ([[0, 0], [0]], [1, 2], [["a", 0], [0, 0]], "flat"):
        data["ground"]["heights"] = wrong
        with pytest.raises(ModelError, match=r"ground\.heights: expected"):
            mechanism_from_dict(data)


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (lambda m: m.add_contact("bare", "ball"), "contact 'bare' and 'ball': body 'bare' has no collision shape"),
        (lambda m: m.add_contact("ball", "bare", points=[[0, 0, 0]]), "body 'bare' has no collision shape"),
        (lambda m: m.add_contact("ball", "world"), "call add_ground as well"),
        (
            lambda m: (m.add_ground(), m.add_contact("world", "ball", points=[[0, 0, 0]])),
            "points lie on the first body",
        ),
        (lambda m: m.add_contact("stone", "sheet"), "body 'sheet': mesh 'from vertices': it is flat"),
        (lambda m: m.add_contact("sheet", "ball"), "touches the ground only; give it thickness"),
        (lambda m: m.add_contact("egg", "sheet"), "it is flat"),
        (lambda m: m.add_contact("ball", "sheet", points=[[0, 0, 0]]), "it is flat"),
    ],
)
def test_pairs_that_cannot_touch_are_refused(add, message):
    mesh = la.Mesh(vertices=CORNERS, faces=FACES)
    flat = la.Mesh(vertices=CORNERS[:3], faces=FACES[:1])
    m = robot(
        ball=la.Sphere(0.1),
        bare=None,
        stone=mesh,
        sheet=flat,
        rod=la.Capsule(0.1, 1),
        egg=la.Ellipsoid((0.1, 0.2, 0.3)),
    )
    add(m)
    with pytest.raises(ModelError, match=message):
        table(m)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: setattr(m.ground, "friction", -0.1), "ground: friction: must not be negative"),
        (lambda m: setattr(m.ground, "restitution", 2), "ground: restitution must lie between 0 and 1"),
        (lambda m: setattr(m.contacts[0], "friction", np.nan), "contact 'a' and 'b': friction"),
        (lambda m: setattr(m.contacts[0], "restitution", -1), "contact 'a' and 'b': restitution"),
        (lambda m: m.contacts.append(m.contacts[0]), "contact 'a' and 'b': these two bodies are a contact pair twice"),
        (lambda m: setattr(m.contacts[0], "b", "a"), "the two bodies are the same"),
    ],
)
def test_records_edited_by_hand_are_checked_at_build(edit, message):
    m = robot(a=la.Sphere(0.1), b=la.Sphere(0.1))
    m.add_ground()
    m.add_contact("a", "b")
    edit(m)
    with pytest.raises(ModelError, match=message):
        m.build()


def test_pairs_of_single_shapes_with_friction_and_margin_of_their_own():
    """Each shape has its own number on the ground; a margin raises it, and thickens a ball against a box."""
    m = la.Mechanism()
    m.add_body("a", mass=1.0, inertia=np.eye(3), shapes=[la.Sphere(0.1), la.Box((0.2, 0.2, 0.2)), la.Sphere(0.3)])
    m.add_body("b", mass=1.0, inertia=np.eye(3), shapes=[la.Box((1.0, 1.0, 1.0))])
    for name in "ab":
        m.add_joint(name, "free", parent="world", child=name)
    m.add_ground(friction=0.9)
    m.add_contact("a", "world", friction=0.1, shapes=(0, None))
    m.add_contact("a", "world", friction=0.2, shapes=(1, None), margin=0.01)
    m.add_contact("b", "a", friction=0.3, shapes=(0, 2), margin=0.02)
    # the same two shapes twice, a shape that is not there
    with pytest.raises(la.ModelError, match="already a contact pair"):
        m.add_contact("a", "b")
    with pytest.raises(la.ModelError, match="two whole numbers or None"):
        m.add_contact("a", "b", shapes=(0, -1))
    other = m.copy()
    other.add_contact("a", "b", shapes=(7, None))
    with pytest.raises(la.ModelError, match="no collision shape at place 7"):
        contact_table(other, other.build().places)
    other.contacts[-1].shapes, other.contacts[-1].margin = (1, 0), 0.1
    # a margin between boxes makes one of them larger
    found = contact_table(other, other.build().places)
    assert any("makes the box larger on all sides" in note for note in found.notes)
    assert np.allclose(found.contacts.frames[-1, cl.SIZE : cl.REACH], 0.2)
    # through a file as well
    for each in (m, mechanism_from_dict(json.loads(json.dumps(mechanism_to_dict(m))))):
        table = contact_table(each, each.build().places)
        assert sorted(table.contacts.numbers[:, 0].tolist()) == [0.1, 0.2, 0.3, 0.9]
        found = table.contacts
        flat = [t for _, t, _ in found.pairs if found.shapes[t, cl.CODE] == cl.HALF_SPACE]
        assert {float(found.frames[t, 11]) for t in flat} == {0.0, 0.01}
        thick = [found.frames[s, 12] for s, t, _ in found.pairs if found.shapes[t, cl.CODE] == cl.BOX]
        assert thick == [pytest.approx(0.32)]
