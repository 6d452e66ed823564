"""Couplings as data: what is taken and refused, what they name, and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict


def arm() -> la.Mechanism:
    """Joints of several kinds in a row, and a floating body."""
    m = la.Mechanism("arm")
    kinds = {"turn": "revolute", "slide": "prismatic", "ball": "spherical", "both": "cylindrical", "held": "fixed"}
    parent = "world"
    for name, kind in kinds.items():
        m.add_body(f"{name}_body", mass=1.0, inertia=(0.1, 0.1, 0.1))
        m.add_joint(name, kind, parent=parent, child=f"{name}_body", parent_frame=la.pose(xyz=(0.1, 0.2, 0.3)))
        parent = f"{name}_body"
    m.add_body("floating", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("free", "free", parent="world", child="floating")
    return m


@pytest.mark.parametrize(
    ("terms", "total", "words"),
    [
        ({}, 0.0, "give {joint: coefficient}"),
        ("turn", 0.0, "give {joint: coefficient}"),
        ({"turn": 0.0}, 0.0, "joint 'turn': give a coefficient that is not zero"),
        ({"turn": []}, 0.0, "joint 'turn': give a coefficient"),
        ({"turn": [[1.0]]}, 0.0, "joint 'turn': give a coefficient"),
        ({"turn": "many"}, 0.0, "joint 'turn': expected numbers"),
        ({"turn": np.nan}, 0.0, "joint 'turn': every number must be finite"),
        ({"turn": 1.0, ("turn", 0): 2.0}, 0.0, "the coordinate of joint 'turn' stands in it twice"),
        ({("turn", -1): 1.0}, 0.0, "a coordinate is a number from 0 on, got -1"),
        ({("turn", "angle"): 1.0}, 0.0, "a coordinate is a number from 0 on, got 'angle'"),
        ({3: 1.0}, 0.0, "a name must be a string"),
        ({"turn": 1.0}, np.inf, "total: must be a finite number"),
    ],
)
def test_refused_when_added(terms, total, words):
    with pytest.raises(la.ModelError, match=f"coupling 'gear'.*{words}"):
        arm().add_coupling("gear", terms, total)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"trun": 1.0}, "there is no joint 'trun'; there are 'turn'"),
        ({("turn", 1): 1.0}, "joint 'turn': coordinate 1 is out of range; it has 1 coordinates"),
        ({"held": 1.0}, "joint 'held': coordinate 0 is out of range; a fixed joint has no coordinates"),
        ({("ball", 2): 1.0}, "joint 'ball': its coordinate 2 is one of a quaternion"),
        ({"free": 1.0}, "joint 'free' is free; its coordinates are relative to the world"),
    ],
)
def test_refused_when_built(terms, words):
    m = arm()
    m.add_coupling("gear", terms)
    with pytest.raises(la.ModelError, match=f"coupling 'gear': {words}"):
        m.build()


def test_names():
    m = arm()
    m.add_coupling("gear", {"turn": 1.0, "slide": 2.0})
    for name in ("gear", "turn"):
        with pytest.raises(la.ModelError, match="already a coupling or joint of this name"):
            m.add_coupling(name, {"turn": 1.0})
    with pytest.raises(la.ModelError, match="joint 'gear': there is already a coupling of this name"):
        m.add_joint("gear", "fixed", parent="world", child="floating")
    assert repr(m.build()) == "Model('arm', 5 bodies, nq=15, nv=13, 1 couplings)"
    # a joint takes its couplings along
    m.remove_joint("slide")
    assert not m.couplings
    m = arm()
    m.add_coupling("gear", {"turn": 1.0, ("both", 1): 2.0})
    assert m.copy().couplings == m.couplings
    assert m.copy().couplings is not m.couplings
    assert not m.without("couplings").couplings
    assert m.build().features == {"couplings"}
    m.couplings["other"] = m.couplings["gear"]
    with pytest.raises(la.ModelError, match="coupling 'other': the record says 'gear'"):
        m.build()


def test_locked_joints_are_numbers():
    m = arm()
    m.add_coupling("gear", {"turn": [1.0, 2.0], "slide": 3.0}, 0.25)
    m.lock("turn", 0.5)
    model = m.build()
    # 0.5 + 2 * 0.25 + 3 q = 0.25
    assert model.system.loops.ties.level.tolist() == [0.75]
    assert model.coupling_rows == {"gear": slice(0, 1)}
    m.lock("slide", -0.25)
    model = m.build()
    assert model.constraint_size == 0
    assert not model.features
    m.lock("slide", 0.1)
    with pytest.raises(la.ModelError, match="coupling 'gear' of 'turn', 'slide': all of its joints are locked"):
        m.build()


def test_contradictions_are_named():
    m = arm()
    m.add_coupling("one", {"turn": 1.0, "slide": 2.0}, 0.1)
    m.add_coupling("two", {"slide": 1.0, ("both", 1): -3.0}, 0.2)
    # what follows from the others is redundant
    m.add_coupling("three", {"turn": 2.0, ("both", 1): 12.0}, -0.6)
    assert m.build().constraint_size == 3
    m.add_coupling("four", {"turn": 1.0, ("both", 1): 6.0}, 0.3)
    with pytest.raises(la.ModelError, match=r"coupling 'four' of 'turn', 'both' .coordinate 1. contradicts .*'two'"):
        m.build()
    m = arm()
    m.add_coupling("here", {"turn": 1.0}, 0.1)
    m.add_coupling("there", {"turn": 1e3}, 0.2)
    with pytest.raises(la.ModelError, match="'there' of 'turn' contradicts coupling 'here' of 'turn'; leave one"):
        m.build()


def test_files():
    m = arm()
    m.add_coupling("gear", {"turn": [1 / 3, 0.0, 2.0, 0.0], ("both", 1): -0.1}, 0.7)
    data = json.loads(json.dumps(mechanism_to_dict(m)))
    (back,) = mechanism_from_dict(data).couplings.values()
    assert (back.name, back.terms, back.total) == ("gear", m.couplings["gear"].terms, 0.7)
    assert back.terms[0].coefficients == (1 / 3, 0.0, 2.0)
    # none, no key
    assert "couplings" not in mechanism_to_dict(arm())
    wrong = {
        "couplings[0].terms[0].joint": {"joint": 1},
        "couplings[0].terms[0].coefficients": {"coefficients": [None]},
        "couplings[0].terms[0].what": {"what": 1},
    }
    for path, change in wrong.items():
        bad = json.loads(json.dumps(data))
        bad["couplings"][0]["terms"][0].update(change)
        with pytest.raises(la.ModelError, match=path.replace("[", r"\[")):
            mechanism_from_dict(bad)
    data["couplings"][0]["terms"] *= 2
    with pytest.raises(la.ModelError, match=r"couplings\[0\].terms\[2\].joint: expected a coordinate that stands"):
        mechanism_from_dict(data)
    data["couplings"][0]["terms"] = []
    with pytest.raises(la.ModelError, match=r"couplings\[0\]: coupling 'gear': give"):
        mechanism_from_dict(data)


def test_urdf_has_no_words_for_most():
    from leastaction.io.urdf_write import write_urdf

    m = arm()
    m.add_coupling("gear", {"turn": [1.0, 2.0], "slide": 1.0})
    with pytest.raises(la.ModelError, match=r"coupling 'gear' of 'turn', 'slide' .URDF has one joint that follows"):
        write_urdf(m, Path("never.urdf"))
