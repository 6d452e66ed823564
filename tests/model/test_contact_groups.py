"""Which pairs ``add_contacts`` names."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.errors import ModelError


def arm(pedestal="fixed"):
    """A pedestal, two links with a plate fixed to the second one, and a free ball."""
    m = la.Mechanism("arm")
    for name in ("pedestal", "upper", "lower", "plate", "ball"):
        m.add_body(name, mass=1.0, shape=la.Sphere(0.05))
    m.add_body("bare", mass=1.0, inertia=np.eye(3))
    m.add_joint("base", pedestal, parent="world", child="pedestal")
    m.add_joint(
        "shoulder", "revolute", parent="pedestal", child="upper", axis=(0, 1, 0), parent_frame=la.pose((0, 0, 1))
    )
    m.add_joint("elbow", "revolute", parent="upper", child="lower", axis=(0, 1, 0), parent_frame=la.pose((0, 0, 1)))
    m.add_joint("weld", "fixed", parent="lower", child="plate", parent_frame=la.pose((0, 0, 0.2)))
    m.add_joint("flight", "free", parent="world", child="ball")
    m.add_joint("hang", "revolute", parent="world", child="bare", axis=(0, 1, 0))
    return m


def names(pairs):
    return {frozenset((pair.a, pair.b)) for pair in pairs}


def both(*pairs):
    return {frozenset(pair) for pair in pairs}


def test_all_but_neighbours_touch():
    m = arm()
    found = m.add_contacts(friction=0.7, restitution=0.1)
    # upper and plate are neighbours through the weld; the body without a shape is left out
    assert names(found) == both(
        ("pedestal", "lower"), ("pedestal", "plate"), ("pedestal", "ball"),
        ("upper", "ball"), ("lower", "ball"), ("plate", "ball"),
    )  # fmt: skip
    assert {(pair.friction, pair.restitution) for pair in found} == {(0.7, 0.1)}
    assert m.contacts == found
    m.build()


def test_a_second_call_adds_only_what_is_new():
    m = arm()
    m.add_contact("ball", "upper", friction=0.2)
    m.exclude_contact("ball", "pedestal")
    found = m.add_contacts(exclude=[("ball", "lower")])
    assert not names(found) & both(("ball", "upper"), ("ball", "pedestal"), ("ball", "lower"))
    assert names(m.add_contacts()) == both(("ball", "lower"))
    assert m.add_contacts() == []


def test_groups_by_name():
    m = arm()
    assert names(m.add_contacts(["upper", "lower"], ["ball"])) == both(("upper", "ball"), ("lower", "ball"))
    assert names(m.add_contacts(["plate", "ball", "plate"])) == both(("plate", "ball"))
    assert names(m.add_contacts(["ball"], "all")) == both(("ball", "pedestal"))


def test_what_is_locked_is_fixed():
    m = arm(pedestal="revolute")
    # a hinge between pedestal and world: its neighbours are those of its own group only
    assert both(("upper", "plate")) & names(m.copy().add_contacts()) == set()
    m.lock("elbow")
    # upper, lower and plate are one body now, and a neighbour of the pedestal
    assert names(m.add_contacts()) == both(
        ("pedestal", "ball"), ("upper", "ball"), ("lower", "ball"), ("plate", "ball")
    )


def test_bodies_that_close_a_loop_are_neighbours():
    m = arm()
    m.add_joint("rod", "spherical", parent="pedestal", child="lower", parent_frame=la.pose((0, 0, 2)))
    assert both(("pedestal", "lower")) & names(m.add_contacts()) == set()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bodies": "every"}, 'bodies must be "all" or names of bodies'),
        ({"bodies": 3}, 'bodies must be "all" or names of bodies'),
        ({"bodies": []}, "bodies names no body"),
        ({"bodies": ["upper", "hand"]}, "there is no body 'hand'"),
        ({"bodies": ["bare", "ball"]}, "body 'bare' has no collision shape"),
        ({"others": ["world"]}, "there is no body 'world'"),
        ({"exclude": [("upper", "hand")]}, "there is no body 'hand'"),
        ({"exclude": ["upper"]}, "exclude must be pairs of body names"),
        ({"exclude": [("upper", "upper")]}, "the two bodies are the same"),
        ({"friction": -0.1}, "friction"),
    ],
)
def test_bad_input(arguments, words):
    m = arm()
    with pytest.raises(ModelError, match=words):
        m.add_contacts(**arguments)
    assert m.contacts == []


def test_bodies_without_shapes():
    m = la.Mechanism()
    with pytest.raises(ModelError, match="no body has a collision shape"):
        m.add_contacts()
