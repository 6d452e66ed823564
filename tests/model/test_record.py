"""A misspelt attribute of a record is an error that names the right one."""

from __future__ import annotations

import dataclasses

import pytest

import leastaction as la


def _mechanism() -> la.Mechanism:
    m = la.Mechanism("m")
    m.add_body("a", shape=la.Sphere(0.1), mass=1.0)
    m.add_body("b", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("x", "revolute", parent="world", child="a")
    m.add_joint("y", "free", parent="world", child="b")
    m.add_ground(friction=0.5)
    m.add_contact("a", "b")
    m.add_actuator("motor", "x")
    m.add_frame("tool", "a")
    m.add_force(la.PointSpring("a", (0, 0, 0), "b", (0, 0, 0), stiffness=1.0))
    return m


@pytest.mark.parametrize(
    ("record", "wrong", "right"),
    [
        (lambda m: m.joints["x"], "frction", "Joint 'x' has no attribute 'frction'; did you mean 'friction'"),
        (lambda m: m.bodies["a"], "inertias", "Body 'a' .* did you mean 'inertia'"),
        (lambda m: m.ground, "restitutoin", "Ground .* did you mean 'restitution'"),
        (lambda m: m.contacts[0], "mu", "ContactPair has no attribute 'mu'; it has a, b, friction"),
        (lambda m: m.actuators["motor"], "gaer", "Actuator 'motor' .* did you mean 'gear'"),
        (lambda m: m.frames["tool"], "position", "Frame 'tool' .*"),
        (lambda m: m, "gravty", "Mechanism 'm' has no attribute 'gravty'; did you mean 'gravity'"),
    ],
)
def test_unknown_attributes_are_refused(record, wrong, right):
    with pytest.raises(AttributeError, match=right):
        setattr(record(_mechanism()), wrong, 1.0)


def test_forces_and_shapes_cannot_be_changed_at_all():
    m = _mechanism()
    for item, name in ((m.forces[0], "stifness"), (m.forces[0], "stiffness"), (m.bodies["a"].shapes[0], "radios")):
        with pytest.raises(AttributeError):
            setattr(item, name, 1.0)


def test_known_attributes_are_set_and_copies_work():
    m = _mechanism()
    m.joints["x"].friction = 1.0
    m.bodies["a"].mass = 2.0
    m.gravity = (0, 0, -1.0)
    copy = dataclasses.replace(m.joints["x"], name="z")
    assert (copy.friction, m.copy().bodies["a"].mass) == (1.0, 2.0)
    with pytest.raises(AttributeError):
        m.joints["x"].nq = 3
