"""Contact of MJCF files, one attribute at a time, against the contacts that MuJoCo itself finds."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leastaction as la
from leastaction.contact import layout as cl
from leastaction.reference.contact_samples import Touching
from leastaction.run.observe import left_out

from .mujoco_oracle import our_touches, shape_of

mujoco = pytest.importorskip("mujoco")

SCENE = (
    '{option}<worldbody><geom name="f" type="plane" size="5 5 1" {floor}/>'
    '<body name="b" pos="0 0 0.1"><freejoint/><geom name="g" type="box" size=".1 .1 .1" {box}/>'
    '<geom name="s" size=".1" {ball}/></body></worldbody>{more}'
)
PAIR = '<contact><pair geom1="f" geom2="g" friction="0.05 0.05 0.005 0.0001 0.0001" {}/></contact>'

# what differs from the plain scene
CASES = {
    "plain": {},
    "the larger friction": {"floor": 'friction="0.05"', "box": 'friction="0.7"', "ball": 'friction="0.01"'},
    "priority": {"floor": 'friction="1"', "box": 'friction="0.05" priority="1"'},
    "condim 1 on both": {"floor": 'condim="1"', "box": 'condim="1"', "ball": 'condim="1"'},
    "condim 1 on one": {"floor": 'condim="1"', "box": 'condim="1"'},
    "condim by priority": {"floor": 'condim="1" priority="2"', "box": 'priority="1"'},
    "bits of one geom": {"box": 'contype="2" conaffinity="2"'},
    "bits of all": {"floor": 'contype="4" conaffinity="4"'},
    "a bit on one side": {"floor": 'contype="0" conaffinity="2"', "box": 'contype="2" conaffinity="0"'},
    "pair without bits": {"floor": 'contype="0" conaffinity="0"', "more": PAIR},
    "pair besides bits": {"more": PAIR},
    "pair without friction": {"more": PAIR.format('condim="1"')},
    "pair with margin": {"more": PAIR.format('margin="0.02"')},
    "pair and exclude": {"more": PAIR.replace("</contact>", '<exclude body1="world" body2="b"/></contact>')},
    "exclude": {"more": '<contact><exclude body1="world" body2="b"/></contact>'},
    "margin": {"floor": 'margin="0.01"', "box": 'margin="0.005"'},
    "margin and gap": {"box": 'margin="0.02" gap="0.02"'},
    "override": {"option": '<option o_margin="0.03" o_friction="0.3 0.3"><flag override="enable"/></option>'},
    "contact off": {"option": '<option><flag contact="disable"/></option>'},
}


def scene(case):
    parts = {key: case.get(key, "").format("") for key in ("option", "floor", "box", "ball", "more")}
    return SCENE.format(**parts)


@pytest.mark.parametrize("name", CASES)
def test_touches_as_in_mujoco(mjcf, name):
    text = scene(CASES[name])
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    shape = shape_of(mujoco, mj)
    theirs = {}
    for contact in data.contact:
        friction = float(contact.friction[0]) if contact.dim > 1 else 0.0
        theirs[frozenset(shape[int(g)] for g in contact.geom)] = (friction, pytest.approx(contact.includemargin))
    m = la.load(mjcf(text))
    assert our_touches(m) == theirs
    assert len(m.build().mechanism.contacts) == len(m.contacts)


@pytest.mark.parametrize(
    ("case", "word", "reason"),
    [
        ({"more": PAIR.replace("0.05 0.05", "0.05 0.5")}, "contacts", "not the same in all directions"),
        ({"box": 'surfacevel="1 0 0 0 0 0"'}, "contacts", "surfacevel"),
    ],
)
def test_what_contact_here_has_not_is_refused(mjcf, case, word, reason):
    path = mjcf(scene(case))
    with pytest.raises(la.ModelError, match=rf'model.xml:\d+: <geom name="\w">: .*{reason}.*allow=\("{word}",\)'):
        la.load(path)
    m = la.load(path, allow=(word,))
    assert any(note.startswith(f"allowed by '{word}'") for note in m.notes)


@pytest.mark.parametrize("condim", [4, 6])
def test_torsional_and_rolling_friction_are_left_out_with_a_word(mjcf, condim):
    path = mjcf(scene({"box": f'condim="{condim}"'}))
    m = la.load(path)
    (note,) = (note for note in m.notes if note.startswith("left out: "))
    assert re.search(rf'model.xml:\d+: <geom name="\w">: .*condim {condim} .*sliding friction is kept', note)
    # reports of runs with contact repeat it, unless it is allowed
    assert left_out(m.build()) == [note]
    assert left_out(m.without("contacts").build()) == []
    assert left_out(la.load(path, allow="torsion").build()) == []


FIELD = (
    '<asset><hfield name="h" nrow="3" ncol="4" size="1.5 1 .2 .1" elevation="0 1 2 3  1 4 2 0  2 2 1 1"/></asset>'
    '<worldbody><geom name="floor" type="hfield" hfield="h" pos="0.1 0.2 0.3" euler="0 0 20"/>'
)


def test_height_fields_and_planes_are_as_far_as_in_mujoco(mjcf):
    rng = np.random.default_rng(1)
    text = (
        FIELD
        + '<geom type="plane" size="0 0 1" pos="0 0 -1"/><geom name="wall" type="plane" size="1 1 1" euler="0 90 0"'
    )
    text += ' pos="-2 0 0"/><body name="ball" pos="0 0 1"><freejoint/><geom size=".1" margin="10"/></body></worldbody>'
    m = la.load(mjcf(text.replace(' margin="10"', "")))
    assert [shape.kind for shape in m.bodies["world/geoms"].shapes] == ["heights", "plane"]
    assert any("a height field without sides and bottom" in note for note in m.notes)
    found = Touching(m, {"ball": np.eye(4)})
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    data = mujoco.MjData(mj)
    names = [mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_GEOM, g) for g in range(mj.ngeom)]
    for p in rng.uniform([-0.9, -0.6, 0.55], [1.0, 0.8, 0.75], (20, 3)):
        data.qpos[:3] = p
        mujoco.mj_forward(mj, data)
        theirs = {}
        for contact in data.contact:
            name = names[contact.geom[0]] or "plane"
            theirs[name] = min(theirs.get(name, np.inf), contact.dist)
        found.put({"ball": la.pose(xyz=p)})
        found.find()
        ours = {}
        for k in range(found.count):
            pair = found.table.contacts.pairs[found.ints[k, 3]]
            s = found.table.contacts.shapes[pair[1]]
            code = "floor" if s[0] == cl.HEIGHTS else ("plane" if abs(found.normal[k, 2]) > 0.5 else "wall")
            ours[code] = min(ours.get(code, np.inf), found.gap[k])
        assert ours["plane"] == pytest.approx(theirs["plane"], abs=1e-12)
        assert ours["wall"] == pytest.approx(theirs["wall"], abs=1e-12)
        # by iterations in MuJoCo
        assert ours["floor"] > 0.0
        assert ours["floor"] == pytest.approx(theirs["floor"], abs=1e-6)


def test_plane_on_a_fixed_body_is_the_ground(mjcf):
    text = (
        '<worldbody><body pos="0 0 0.3" euler="0 20 0"><body pos="0 0 0.1"><geom type="plane" size="1 1 1"/></body>'
        "</body>"
        '<body pos="0 0 1"><freejoint/><geom size=".1"/></body></worldbody>'
    )
    mj = mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    ground = la.load(mjcf(text)).ground
    normal = data.geom_xmat[0].reshape(3, 3)[:, 2]
    assert ground.normal == pytest.approx(normal, abs=1e-15)  # measured 6e-17
    assert ground.height == pytest.approx(normal @ data.geom_xpos[0], abs=1e-15)  # measured 0


def test_geoms_of_a_pair_of_bodies_have_their_own_bits(mjcf):
    """Two bodies with two geoms each, of which only those of the same bit meet."""
    other = 'contype="2" conaffinity="2"'
    text = (
        f'<worldbody><body name="t"><geom type="box" size=".5 .5 .1" {other}/><geom type="box" size=".1 .1 .1"/></body>'
        f'<body name="b" pos="0 0 1"><freejoint/><geom size=".1" friction="0.4"/><geom size=".1" {other}/></body>'
        "</worldbody>"
    )
    m = la.load(mjcf(text))
    assert {(pair.a, pair.b, *pair.shapes, pair.friction) for pair in m.contacts} == {
        ("t", "b", 0, 1, 1.0),
        ("t", "b", 1, 0, 1.0),
    }


def test_limits_are_in_force_and_hold_at_their_margin(mjcf):
    joint = '<joint name="z" type="slide" axis="0 0 1" range="-0.3 1" margin="0.05"/>'
    m = la.load(mjcf(f'<worldbody><body>{joint}<geom size=".1"/></body></worldbody>'))
    assert m.joints["z"].limits[0] == pytest.approx([-0.25, 0.95])
    assert m.limits_enforced
    assert any("in force" in note for note in m.notes)
    bare = la.load(mjcf('<worldbody><body><joint type="slide"/><geom size=".1"/></body></worldbody>'))
    assert not bare.limits_enforced


def test_asymmetric_force_of_a_joint_is_refused(mjcf):
    text = '<worldbody><body><joint name="z" actuatorfrcrange="-1 2"/><geom size=".1"/></body></worldbody>'
    with pytest.raises(la.ModelError, match=r'<joint name="z">: actuatorfrcrange -1 .. 2 .*allow=\("effort",\)'):
        la.load(mjcf(text))
