"""Planes and height fields as shapes of bodies that are fixed to the world."""

from __future__ import annotations

import json

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.errors import ModelError
from leastaction.model.contacts import contact_table
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict
from leastaction.reference.contact_samples import Touching, on_ground, random_poses
from leastaction.view.surfaces import surface_of

FIELD = 0.05 * np.random.default_rng(1).uniform(-1, 1, (7, 9))


def on_terrain(shape, terrain, kind="fixed"):
    """A free body "a" over a terrain on the body "base"."""
    m = la.Mechanism()
    m.add_body("base", shape=terrain) if kind == "fixed" else m.add_body(
        "base", shape=terrain, mass=1.0, inertia=np.eye(3)
    )
    m.add_joint("mount", kind, parent="world", child="base")
    m.add_body("a", shape=shape, mass=1.0, inertia=np.eye(3))
    m.add_joint("to_a", "free", parent="world", child="a")
    m.add_contact("a", "base", friction=0.3)
    return m


@pytest.mark.parametrize(
    "shape", [la.Box((0.2, 0.3, 0.4)), la.Sphere(0.1), la.Cylinder(0.1, 0.3)], ids=lambda s: s.kind
)
@pytest.mark.parametrize("ground", ["plane", "heights"])
def test_a_terrain_is_as_the_ground_of_its_kind(shape, ground):
    options = {"heights": FIELD, "spacing": 0.2} if ground == "heights" else {}
    at = la.pose(xyz=(0, 0, 0.1))
    terrain = la.Heights(FIELD, 0.2, at=at) if options else la.Plane(at=at)
    rng = np.random.default_rng(2)
    one, two = (
        Touching(on_ground(shape, height=0.1, **options), {"a": np.eye(4)}),
        Touching(on_terrain(shape, terrain), {"a": np.eye(4)}),
    )
    for pose in random_poses(20, rng, 0.2):
        pose[2, 3] += 0.3
        for found in (one, two):
            found.put({"a": pose})
            found.find(0.2)
        assert one.count == two.count
        assert np.allclose(one.gap, two.gap, rtol=0, atol=1e-14)
        assert np.allclose(one.normal, two.normal, rtol=0, atol=1e-14)


def test_there_may_be_several_grounds():
    m = la.Mechanism()
    shapes = [la.Plane(), la.Plane(at=la.pose(xyz=(1, 0, 0), rpy=(0, -np.pi / 2, 0))), la.Heights(FIELD, (0.1, 0.2))]
    m.add_body("room", shapes=[*shapes, la.Heights(FIELD[:3], 0.1, at=la.pose(xyz=(0, 0, 1)))])
    m.add_joint("mount", "fixed", parent="world", child="room")
    m.add_body("ball", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("free", "free", parent="world", child="ball")
    m.add_contact("ball", "room")
    again = mechanism_from_dict(json.loads(json.dumps(mechanism_to_dict(m))))
    for each in (m, again, m.copy()):
        found = contact_table(each, each.build().places).contacts
        codes = found.shapes[found.pairs[:, 1], cl.CODE].tolist()
        assert codes == [cl.HALF_SPACE, cl.HALF_SPACE, cl.HEIGHTS, cl.HEIGHTS]
        assert found.heights.size == FIELD.size + FIELD[:3].size
        assert found.shapes[-1, [cl.FIRST, cl.COUNT, cl.COUNT_Y]].tolist() == [FIELD.size, 3, 9]
    # a ball in the corner touches both planes
    touching = Touching(m, {"ball": la.pose(xyz=(0.9, 0, 0.1))}, 1e-6)
    planes = touching.ints[: touching.count, cl.PAIR] < 2
    assert {tuple(np.round(n, 9)) for n in touching.normal[planes]} == {(0.0, 0.0, 1.0), (-1.0, 0.0, 0.0)}


def test_terrain_must_stand_still_and_has_no_mass():
    moving = on_terrain(la.Sphere(0.1), la.Plane(), "free")
    with pytest.raises(ModelError, match="body 'base': a plane must be on a body that is fixed to the world"):
        contact_table(moving, moving.build().places)
    for terrain in (la.Plane(), la.Heights(FIELD, 0.1)):
        with pytest.raises(ModelError, match="it has no volume; give mass and inertia"):
            la.Mechanism().add_body("base", shape=terrain, mass=1.0)
    with pytest.raises(ModelError, match=r"heights: heights must be an array \(nx, ny\)"):
        la.Heights([1.0, 2.0], 0.1)
    with pytest.raises(ModelError, match="plane: size: must be positive"):
        la.Plane(size=0)
    data = mechanism_to_dict(on_terrain(la.Sphere(0.1), la.Heights(np.zeros((2, 2)), 0.1)))
    data["bodies"][0]["shapes"][0]["heights"] = [[0, 0], [0]]
    with pytest.raises(ModelError, match="expected n x 2 finite numbers"):
        mechanism_from_dict(data)


def test_terrain_is_drawn():
    plane, field = surface_of(la.Plane(size=4.0)), surface_of(la.Heights(FIELD, 0.1))
    assert np.allclose(np.abs(plane.points).max(axis=0), (2, 2, 0))
    assert field.points[:, 2].max() == FIELD.max()
