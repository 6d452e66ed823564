"""A sweep of damaged files: each loads, or is refused by a ModelError; what loads has finite kinematics."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import leastaction as la

ROBOT = """<?xml version="1.0"?>
<robot name="two">
  <material name="grey"><color rgba="0.5 0.5 0.5 1"/></material>
  <link name="base"><inertial><mass value="2"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="arm">
    <inertial><origin xyz="0 0 -0.2" rpy="0.1 0 0"/><mass value="1.5"/>
      <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.1" iyz="0" izz="0.05"/></inertial>
    <visual><origin xyz="0 0 -0.2"/><geometry><box size="0.1 0.1 0.4"/></geometry><material name="grey"/></visual>
    <collision><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision>
  </link>
  <link name="tip"><visual><geometry><sphere radius="0.03"/></geometry></visual></link>
  <joint name="shoulder" type="revolute"><origin xyz="0 0 1" rpy="0 0.2 0"/><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="5" velocity="3"/><dynamics damping="0.1"/></joint>
  <joint name="wrist" type="continuous"><origin xyz="0 0 -0.4"/><parent link="arm"/><child link="tip"/></joint>
</robot>
"""

VALUES = (
    "nan",
    "inf",
    "1e999",
    "1e300",
    "-1e59",
    "1e59",
    "5e-324",
    "-0.0",
    "0",
    "-1",
    "",
    "x",
    "1 2",
    "0x1",
    "1_0",
    "\u0663",
)
HOW = ("file", "repair", "shapes")


def attempt(path, **options) -> bool:
    """Whether it loads; a crash is an error of the test."""
    words = ""
    try:
        model = la.load(path, **options).build()
    except la.ModelError as error:
        words = str(error)
    if words:
        assert words.startswith(str(path))
        assert "\n" not in words
        return False
    for pose in la.poses(model, model.random(0).q).values():
        assert np.isfinite(pose).all()
    assert np.isfinite(la.mass_matrix(model, None)).all()
    return True


def changed(text: str, rng: random.Random, pattern: str) -> str:
    """The text with one number of one value replaced."""
    spots = [match for match in re.finditer(pattern, text) if match.group(1).strip()]
    spot = rng.choice(spots)
    words = spot.group(1).split()
    words[rng.randrange(len(words))] = rng.choice(VALUES)
    return text[: spot.start(1)] + " ".join(words) + text[spot.end(1) :]


def test_values_of_a_urdf(write):
    rng, loaded = random.Random(0), 0
    for k in range(300):
        text = ROBOT
        for _ in range(rng.choice((1, 1, 2))):
            text = changed(text, rng, r'="([^"]*\d[^"]*)"')
        loaded += attempt(write("r.urdf", text), inertia=HOW[k % 3], floating=bool(k % 2))
    assert 50 < loaded < 250  # measured 91


def test_values_of_a_json(write, tmp_path):
    la.save(la.load(write("r.urdf", ROBOT)), tmp_path / "r.json")
    text, rng = (tmp_path / "r.json").read_text(), random.Random(1)
    loaded = sum(attempt(write("s.json", changed(text, rng, r"([-0-9.e]+)"))) for _ in range(200))
    assert 0 < loaded < 150  # measured 40


@pytest.mark.parametrize("ending", ["urdf", "json"])
def test_files_that_end_too_early(write, tmp_path, ending):
    la.save(la.load(write("r.urdf", ROBOT)), tmp_path / "r.json")
    text = ROBOT if ending == "urdf" else (tmp_path / "r.json").read_text()
    for end in range(0, len(text.rstrip()) - 1, 37):
        assert not attempt(write(f"s.{ending}", text[:end]))


@pytest.mark.parametrize("ending", ["urdf", "json"])
def test_bytes_that_are_changed(write, tmp_path, ending):
    la.save(la.load(write("r.urdf", ROBOT)), tmp_path / "r.json")
    data, rng = (tmp_path / f"r.{ending}").read_bytes(), random.Random(2)
    path = tmp_path / f"s.{ending}"
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(3):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        path.write_bytes(broken)
        attempt(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_encodings(write, tmp_path, encoding):
    """XML says its encoding: by its first bytes, or by its declaration."""
    path = tmp_path / "r.urdf"
    declared = encoding.upper() if encoding == "latin-1" else {"utf-16": "UTF-16"}.get(encoding, "UTF-8")
    text = ROBOT.replace('version="1.0"', f'version="1.0" encoding="{declared}"').replace("latin-1", "ISO-8859-1")
    path.write_bytes(text.replace("LATIN-1", "ISO-8859-1").replace('"arm"', '"\u00e4rm"').encode(encoding))
    assert "\u00e4rm" in la.load(path).bodies
    # one that is not what it says
    path.write_bytes(text.encode("utf-32"))
    assert not attempt(path)


def test_includes_in_a_circle(write):
    write("a.xml", '<mujoco><include file="b.xml"/></mujoco>')
    write("b.xml", '<mujoco><include file="a.xml"/></mujoco>')
    with pytest.raises(la.ModelError, match=r"a\.xml"):
        la.load(write("main.xml", '<mujoco><include file="a.xml"/></mujoco>'))
    with pytest.raises(la.ModelError, match=r"own\.xml"):
        la.load(write("own.xml", '<mujoco><include file="own.xml"/></mujoco>'))
