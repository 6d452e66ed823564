"""Which pairs are looked at: nothing near is left out, and what is far sleeps. The sweeps run as plain Python here."""

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import broad
from leastaction.contact import gap as contact_gap
from leastaction.contact import layout as cl
from leastaction.contact.features import features, find_contacts
from leastaction.model.contacts import contact_table
from leastaction.spatial import quaternion

CUBE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)
TRIANGLES = [
    (0, 1, 3),
    (0, 3, 2),
    (4, 6, 7),
    (4, 7, 5),
    (0, 4, 5),
    (0, 5, 1),
    (2, 3, 7),
    (2, 7, 6),
    (0, 2, 6),
    (0, 6, 4),
]
TRIANGLES += [(1, 5, 7), (1, 7, 3)]
SHAPES = {
    "sphere": la.Sphere(0.1),
    "capsule": la.Capsule(0.05, 0.4),
    "cylinder": la.Cylinder(0.08, 0.3),
    "box": la.Box((0.1, 0.2, 0.4)),
    "oval": la.Ellipsoid((0.05, 0.1, 0.25)),
    "hull": la.Mesh(vertices=CUBE * (0.05, 0.1, 0.2), faces=np.array(TRIANGLES)),
}


def scene(names):
    """Tables of free bodies with these shapes over the ground, all of which may touch; number of rows; their rows."""
    m = la.Mechanism()
    for k, name in enumerate(names):
        m.add_body(f"b{k}", shape=SHAPES[name], mass=1.0)
        m.add_joint(f"j{k}", "free", parent="world", child=f"b{k}")
    m.add_ground()
    m.add_contacts()
    model = m.build()
    rows = [model.places[f"b{k}"].row for k in range(len(names))]
    return contact_table(m, model.places), len(model.system.tree.rows), rows


def poses(size, rows, places, turns, origin=(0.0, 0.0, 0.0)):
    """Poses (rows, 12) of all rows about an origin."""
    P = np.zeros((size, 12))
    P[:, [0, 4, 8]] = 1.0
    for row, place, turn in zip(rows, places, turns, strict=True):
        P[row] = np.concatenate([quaternion.to_matrix(turn / np.linalg.norm(turn)).ravel(), place])
    P[:, 9:] -= origin
    return P


def tables(table, rows=None):
    """Empty tables of contacts."""
    rows = table.capacity if rows is None else rows
    return np.zeros((rows, cl.INT_WIDTH), dtype=np.int64), np.zeros((rows, cl.FLOAT_WIDTH))


def box_distance(contacts, shapes, P):
    """Distance of two boxes, by projections from one to the other in turns; never below it."""
    boxes = []
    for s in shapes:
        row, frame = P[contacts.shapes[s, cl.ROW]], contacts.frames[s]
        R = row[:9].reshape(3, 3)
        boxes.append((R @ frame[:9].reshape(3, 3), row[9:] + R @ frame[cl.PLACE : cl.SIZE], frame[cl.SIZE : cl.REACH]))
    x = boxes[0][1]
    for _ in range(2000):
        y = x
        for R, middle, half in boxes:
            x, y = middle + R @ np.clip(R.T @ (x - middle), -half, half), x
    return np.linalg.norm(x - y)


def gaps(ints, floats, n, P):
    """Gaps of contacts."""
    found = [contact_gap.gap(ints[k, 0], floats, k, *sides(P, ints[k, 1]), *sides(P, ints[k, 2]))[0] for k in range(n)]
    return np.array(found)


def sides(P, i):
    """Rotation and position of a row, as tuples."""
    return tuple(P[i, :9].tolist()), tuple(P[i, 9:].tolist())


@pytest.mark.parametrize("name", SHAPES)
def test_a_capsule_holds_its_shape_and_bounds_the_distance(name):
    """No gap of two shapes at random poses is smaller than the bound, unless they overlap."""
    rng = np.random.default_rng(3)
    for other in SHAPES:
        table, size, rows = scene([name, other])
        contacts, near = table.contacts, broad.make_near(table.contacts, size, table.capacity)
        ints, floats = tables(table)
        for _ in range(10):
            P = poses(size, rows, rng.uniform(-0.35, 0.35, (2, 3)), rng.normal(size=(2, 4)), rng.normal(size=3))
            broad.move_shapes(contacts, near, P, 0)
            # hulls do not run as plain Python
            search = features if contacts.hulls is None else find_contacts
            n = search(contacts, P, 0.5, ints, floats)
            apart = gaps(ints, floats, n, P)
            for p, (sa, sb, _) in enumerate(contacts.pairs.tolist()):
                mine = apart[ints[:n, cl.PAIR] == p]
                bound = broad.least_distance(contacts, near, P, 0, sa, sb)
                # corners of a box may be nearer to the plane of a face than to the face
                boxes = contacts.shapes[sa, cl.CODE] == contacts.shapes[sb, cl.CODE] == cl.BOX
                apart_by = box_distance(contacts, (sa, sb), P) if boxes else mine.min(initial=np.inf)
                assert bound <= max(apart_by, 0.0) + 1e-9


def test_nothing_near_is_left_out_and_what_is_far_sleeps():
    """Bodies that wander, among them those that meet: the contacts of every pair within its margin, step by step.

    The origin of the poses is another one in every step, as a run has it.
    """
    rng, names = np.random.default_rng(0), ["sphere", "box", "capsule", "box", "cylinder", "sphere"]
    table, size, rows = scene(names)
    contacts, near = table.contacts, broad.make_near(table.contacts, size, table.capacity)
    ints, floats = tables(table)
    every, numbers = tables(table)
    x, turn = rng.uniform(-0.8, 0.8, (6, 3)), rng.normal(size=(6, 4))
    v, w = rng.normal(0.0, 0.01, (6, 3)), rng.normal(0.0, 0.02, (6, 4))
    looked = found = 0
    for step in range(120):
        v -= 1e-3 * x
        origin = rng.normal(size=3)
        P = poses(size, rows, x, turn, origin)
        x, turn = x + v, turn + w
        Q = poses(size, rows, x, turn, origin)
        broad.begin_search(contacts, near, P)
        n = broad.near_contacts(contacts, near, P, Q, 2.0, 1e-4, False, ints, floats)
        seen = {(ints[k, cl.PAIR], floats[k, cl.FEATURE]) for k in range(n)}
        m = features(contacts, P, 0.1, every, numbers)
        apart = gaps(every, numbers, m, P)
        for k in range(m):
            sa, sb, _ = contacts.pairs[every[k, cl.PAIR]]
            if apart[k] <= 2.0 * broad.relative_way(contacts, near, sa, sb) + 1e-4:
                assert (every[k, cl.PAIR], numbers[k, cl.FEATURE]) in seen, step
                found += 1
        listed = near.number[cl.LISTED]
        looked += (near.rest[:listed, 1] > 0.0).sum()
    assert found > 50
    # measured 0.3 of all pairs
    assert looked < 0.5 * 120 * len(contacts.pairs)


def test_a_pair_that_moves_farther_than_its_margin_is_looked_at_again():
    """A ball at rest 1 mm over the ground, struck from above, is not looked at; its end in the ground is."""
    table, size, rows = scene(["sphere"])
    contacts, near = table.contacts, broad.make_near(table.contacts, size, table.capacity)
    ints, floats = tables(table)
    turn = [[1.0, 0.0, 0.0, 0.0]]
    P, Q = poses(size, rows, [[0.0, 0.0, 0.101]], turn), poses(size, rows, [[0.0, 0.0, 0.095]], turn)
    broad.begin_search(contacts, near, P)
    assert broad.near_contacts(contacts, near, P, P, 2.0, 1e-4, False, ints, floats) == 0
    assert broad.near_contacts(contacts, near, Q, Q, 0.1, 1e-6, True, ints, floats) == 1
    assert near.late[0] == 1
    # where that was expected it is no news
    assert broad.near_contacts(contacts, near, P, Q, 2.0, 1e-4, False, ints, floats) == 1
    assert broad.near_contacts(contacts, near, Q, Q, 0.1, 1e-6, True, ints, floats) == 0


def test_a_table_that_is_too_small_is_said():
    table, size, rows = scene(["box"])
    near = broad.make_near(table.contacts, size, 2)
    ints, floats = tables(table, 2)
    P = poses(size, rows, [[0.0, 0.0, 0.2]], [[1.0, 0.0, 0.0, 0.0]])
    broad.begin_search(table.contacts, near, P)
    assert broad.near_contacts(table.contacts, near, P, P, 2.0, 1e-4, False, ints, floats) == 2
    assert near.number[cl.FULL] == 1
    assert features(table.contacts, P, 1e-4, ints, floats) == 3


def test_room_is_bounded_by_the_shapes_and_not_by_the_pairs():
    table, _, _ = scene(["box"] * 12)
    # 66 pairs of boxes with nine contacts each, and twelve on the ground with eight
    assert table.capacity == 66 * 9 + 12 * 8
    assert table.room == 4 * (12 * 9 + 8)
