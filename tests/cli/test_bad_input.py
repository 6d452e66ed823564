"""Bad input: exit code 2, one line on the error stream that names the culprit, nothing written, no hang."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

INERTIA = '<inertia ixx="{2}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
LINK = '<link name="{0}"><inertial><mass value="{1}"/>' + INERTIA + "</inertial></link>"
JOINT = '<joint name="{0}" type="{4}"><parent link="{1}"/><child link="{2}"/><axis xyz="{3}"/>{5}</joint>'
MIMIC = '<limit lower="-1" upper="1" effort="1" velocity="1"/><mimic joint="j"/>'
LIMIT = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'


def link(name="a", mass="1", ixx="1"):
    return LINK.format(name, mass, ixx)


def joint(name="j", parent="a", child="b", axis="0 0 1", kind="revolute", inside=None):
    return JOINT.format(name, parent, child, axis, kind, LIMIT.format(-1, 1) if inside is None else inside)


def mesh(path):
    return f'<link name="a"><visual><geometry><mesh filename="{path}"/></geometry></visual></link>'


PAIR = link() + link("b")

# what stands inside <robot>, and a word of the message
ROBOTS = {
    "two roots": (PAIR, "no parent"),
    "cycle": (PAIR + link("c") + joint("j", "b", "c") + joint("k", "c", "b"), "b"),
    "duplicate links": (PAIR + link("b") + joint(), "b"),
    "duplicate joints": (PAIR + link("c") + joint() + joint(child="c"), "j"),
    "unknown parent": (PAIR + joint(parent="x"), "x"),
    "zero axis": (PAIR + joint(axis="0 0 0"), "axis"),
    "mass is not a number": (link() + link("b", mass="nan") + joint(), "mass"),
    "negative mass": (link() + link("b", mass="-1") + joint(), "mass"),
    "mimic": (PAIR + joint(inside=MIMIC), "it mimics itself"),
}

# the same that loads with a note
NOTED = {
    "limits reversed": (PAIR + joint(inside=LIMIT.format(1, -1)), "arereversed"),
    "mesh outside the folder": (mesh("../../secret.stl"), "secret.stl"),
    "mesh that is a device": (mesh("/dev/zero"), "/dev/zero"),
    "mesh that is a pipe": (mesh("pipe.stl"), "pipe.stl"),
}

# and that has kinematics and no motion
STILL = {
    "inertia that no body has": (link() + link("b", ixx="5") + joint(), "body 'b'", "--inertia repair"),
    "moving body without mass": (link() + '<link name="b"/>' + joint(), "joint 'j'", "--inertia shapes"),
}

LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
EXTERNAL = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/motd">]><robot name="r">&x;</robot>'
FILES = {
    "empty": "",
    "not XML": "solid nothing",
    "billion laughs": f'<!DOCTYPE robot [<!ENTITY l0 "ha">{LAUGHS}]><robot name="r">&l9;</robot>',
    "external entity": EXTERNAL,
    "deep nesting": '<robot name="r">' + "<a>" * 100_000 + "</a>" * 100_000 + "</robot>",
}


def check_refused(answer, *words):
    """Exit code 2 and one line with the words; nothing on the output stream."""
    assert answer.code == 2, answer
    assert answer.out == ""
    assert len(answer.lines) == 1
    assert answer.lines[0].startswith("leastaction: ")
    for word in words:
        assert word in answer.lines[0]
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("command", ["run", "info"])
@pytest.mark.parametrize("name", list(ROBOTS))
def test_robot(cli, urdf, command, name):
    inside, word = ROBOTS[name]
    path = urdf(inside)
    os.mkfifo("pipe.stl")
    outputs = ["--out", "run.npz", "--plot", "run.png"] if command == "run" else []
    check_refused(cli(command, path, *outputs), "robot.urdf", word)
    assert sorted(os.listdir()) == ["pipe.stl", "robot.urdf"]


@pytest.mark.parametrize("name", list(NOTED))
def test_robot_that_loads_with_a_note(cli, urdf, name):
    inside, word = NOTED[name]
    path = urdf(inside)
    os.mkfifo("pipe.stl")
    answer = cli("info", path)
    assert answer.code == 0
    # a table may break a line anywhere
    assert word in "".join(answer.out.split())


@pytest.mark.parametrize("name", list(STILL))
def test_robot_without_a_motion(cli, urdf, name):
    inside, *words = STILL[name]
    path = urdf(inside)
    check_refused(cli("run", path, "--out", "run.npz"), "robot.urdf", *words)
    assert os.listdir() == ["robot.urdf"]
    answer = cli("info", path)
    assert answer.code == 0
    for word in ("none, only kinematics", *words):
        assert "".join(word.split()) in "".join(answer.out.split())
    # as the message says
    option = words[1].split()
    if option[1] == "repair":
        assert cli("run", path, *option, "--dt", "0.01", "--duration", "0.02").code == 0


@pytest.mark.parametrize("name", list(FILES))
def test_file(cli, name):
    Path("bad.urdf").write_text(FILES[name])
    check_refused(cli("run", "bad.urdf", "--out", "run.npz"), "bad.urdf")
    assert os.listdir() == ["bad.urdf"]


def test_paths_that_are_no_files(cli):
    os.mkdir("folder.urdf")
    os.mkfifo("pipe.urdf")
    check_refused(cli("run", "missing.urdf"), "missing.urdf", "no such file")
    check_refused(cli("run", "folder.urdf"), "folder.urdf", "folder")
    check_refused(cli("run", "."), "folder")
    check_refused(cli("run", "pipe.urdf"), "pipe.urdf", "pipe")
    check_refused(cli("run", "/dev/zero"), "/dev/zero", "device")
    check_refused(cli("run", "robot.stl"), "robot.stl")
    check_refused(cli("run", ""))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pendulun"], "Did you mean 'pendulum'"),
        (["chain"], "chain"),
        (["chain:0"], "chain"),
        (["chain:-3"], "chain"),
        (["chain:ten"], "chain"),
        (["chain:99999999999999999999999"], "chain"),
        (["pendulum:nan"], "length"),
        (["pendulum", "--floating"], "--floating"),
        (["pendulum", "--allow", "mimic"], "--allow"),
        (["pendulum", "--package-dir", "."], "--package-dir"),
        (["pendulum", "--inertia", "repair"], "--inertia"),
        (["pendulum", "--without", "gravity"], "gravity"),
        (["pendulum", "--gravity", "9.81"], "--gravity"),
        (["pendulum", "--gravity", "0,0,down"], "--gravity"),
        (["pendulum", "--gravity", "0,0,inf"], "--gravity"),
        (["pendulum", "--method", "rk5"], "rk5"),
        (["pendulum", "--method", "adaptive:tight"], "tight"),
        (["pendulum", "--method", "adaptive:-1"], "rtol"),
        (["pendulum", "--dt", "0"], "--dt"),
        (["pendulum", "--dt", "-0.001"], "--dt"),
        (["pendulum", "--dt", "nan"], "--dt"),
        (["pendulum", "--dt", "inf"], "--dt"),
        (["pendulum", "--dt", "1e-300", "--duration", "1e50"], "steps"),
        (["pendulum", "--dt", "1e-6", "--duration", "1e6"], "--save-every"),
        (["pendulum", "--duration", "-1"], "--duration"),
        (["pendulum", "--duration", "nan"], "--duration"),
        (["pendulum", "--duration", "0.0015"], "whole number of steps"),
        (["pendulum", "--save-every", "0"], "--save-every"),
        (["pendulum", "--set", "hinge"], "joint=value"),
        (["pendulum", "--set", "=1"], "joint=value"),
        (["pendulum", "--set", "hinge="], "hinge="),
        (["pendulum", "--set", "hinge=fast"], "fast"),
        (["pendulum", "--set", "hinge=1_000"], "1_000"),
        (["pendulum", "--set", "hinge=nan"], "finite"),
        (["pendulum", "--set", "hinge=1e999"], "finite"),
        (["pendulum", "--set", "hinge=1,2"], "hinge"),
        (["pendulum", "--set", "hinge=1", "--set", "hinge=2"], "twice"),
        (["pendulum", "--set", "hinges=1"], "did you mean 'hinge'"),
        (["pendulum", "--set-velocity", "hinges=1"], "did you mean 'hinge'"),
        (["pendulum", "--set-velocity", "hinge=1,2"], "hinge"),
        (["four_bar", "--set", "loop=1"], "closes a loop"),
        (["spherical_pendulum", "--set", "pivot=0,0,0,0"], "quaternion"),
        (["spherical_pendulum", "--set", "pivot=1,0,0"], "pivot"),
        (["pendulum", "--out", "no/run.npz"], "no/run.npz"),
        (["pendulum", "--out", "run.png"], ".npz"),
        (["pendulum", "--out", "."], "--out"),
        (["pendulum", "--out", "/dev/null"], "--out"),
        (["pendulum", "--out", "/proc/run.npz"], "/proc"),
        (["pendulum", "--plot", "no/run.png"], "no/run.png"),
        (["pendulum", "--plot", "run.jpgg"], ".svg"),
        (["pendulum", "--plot", "file/run.png"], "file"),
        (["pendulum", "--out", "x" * 300 + ".npz"], "too long"),
        (["x" * 300], "x" * 300),
        (["x" * 300 + ".urdf"], "too long"),
    ],
)
def test_run(cli, words, said):
    Path("file").touch()
    outputs = [] if {"--out", "--plot"} & set(words) else ["--out", "run.npz", "--plot", "run.png"]
    check_refused(cli("run", *words, *outputs), said)
    assert os.listdir() == ["file"]


def test_a_folder_of_that_name_is_not_overwritten(cli):
    os.mkdir("run.npz")
    check_refused(cli("run", "pendulum", "--out", "run.npz"), "run.npz", "not a regular file")


def test_a_pipe_is_not_replaced(cli):
    os.mkfifo("run.npz")
    check_refused(cli("run", "pendulum", "--out", "run.npz"), "run.npz", "not a regular file")
    assert not Path("run.npz").is_file()


def test_picture_without_matplotlib(cli, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name))
    check_refused(cli("run", "pendulum", "--out", "run.npz", "--plot", "run.png"), "leastaction[plot]")
    check_refused(cli("demo"), "leastaction[plot]")
    check_refused(cli("reproduce", "baselines"), "leastaction[plot]")
    assert os.listdir() == []


def test_an_old_result_survives_a_bad_run(cli):
    Path("run.npz").write_text("precious")
    check_refused(cli("run", "pendulum", "--dt", 0, "--out", "run.npz"), "--dt")
    assert Path("run.npz").read_text() == "precious"


@pytest.mark.parametrize("words", [["demo", "--out-dir"], ["reproduce", "baselines", "--out"]])
@pytest.mark.parametrize("folder", ["file", "file/inside", "/proc/inside"])
def test_folders_that_cannot_be_made(cli, words, folder):
    Path("file").touch()
    check_refused(cli(*words, folder), folder.split("/")[1] if folder[0] == "/" else folder)
    assert os.listdir() == ["file"]
