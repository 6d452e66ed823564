"""Names: what a terminal, a page or a file would take for something else is refused where it comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import leastaction as la

BAD = {
    "line": "a\nb",
    "escape": "a\x1b[31mb",
    "next line": "a\x85b",
    "C1 introducer": "a\x9b31mb",
    "lone surrogate": "a\ud800b",
    "right to left": "a\u202eb",
    "paragraph": "a\u2029b",
    "too long": "a" * 1001,
}
PLACES: dict[str, Callable[[str], object]] = {
    "mechanism": la.Mechanism,
    "body": lambda name: la.Mechanism("m").add_body(name, mass=1.0),
    "joint": lambda name: _one().add_joint(name, "revolute", parent="world", child="link"),
    "frame": lambda name: _one().add_frame(name, "link", la.pose()),
    "force": lambda name: la.PointForce("link", (0, 0, 0), (0, 0, 1), name=name),
    "actuator": lambda name: _jointed().add_actuator(name, "joint"),
    "shape": lambda name: la.Sphere(0.1, name=name),
}


def _one() -> la.Mechanism:
    """A mechanism of one body."""
    m = la.Mechanism("m")
    m.add_body("link", mass=1.0, inertia=(1.0, 1.0, 1.0))
    return m


def _jointed() -> la.Mechanism:
    """A mechanism of one body and one joint."""
    m = _one()
    m.add_joint("joint", "revolute", parent="world", child="link")
    return m


@pytest.mark.parametrize("place", PLACES)
def test_bad_names_are_refused_and_shown(place: str) -> None:
    for what, name in BAD.items():
        with pytest.raises(la.ModelError) as caught:
            PLACES[place](name)
        # the words are safe to print, and name the place of the character
        assert str(caught.value).isprintable(), what
    PLACES[place]("Gelenk 1 \u00e4\u03b1\u4e2d\U0001f600 <b>")


@pytest.mark.parametrize("name", [BAD["next line"], BAD["C1 introducer"], BAD["lone surrogate"], BAD["right to left"]])
def test_files_are_held_to_the_same(name: str, tmp_path: Path) -> None:
    # our own file, of which each name is replaced
    path = tmp_path / "m.json"
    la.save(_jointed(), path)
    text = path.read_text()
    for old in ("m", "link", "joint"):
        path.write_text(text.replace(f'"name": "{old}"', f'"name": {json.dumps(name)}'))
        with pytest.raises(la.ModelError):
            la.load(path)
    # URDF and MJCF, which cannot hold half a character at all
    raw = name.encode("utf-8", "surrogatepass")
    urdf = '<robot name="r"><link name="NAME"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
    urdf += 'ixz="0" iyz="0"/></inertial></link></robot>'
    mjcf = '<mujoco><worldbody><body name="NAME"><joint/><geom size="1"/></body></worldbody></mujoco>'
    for file, content in (("r.urdf", urdf), ("r.xml", mjcf)):
        (tmp_path / file).write_bytes(content.encode().replace(b"NAME", raw))
        with pytest.raises(la.ModelError):
            la.load(tmp_path / file)
        (tmp_path / file).write_bytes(content.encode())
        assert la.load(tmp_path / file).bodies.keys() == {"NAME"}
