"""``leastaction run``: options, outputs, failures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import leastaction as la


def test_run_equals_the_library(cli):
    answer = cli("run", "pendulum", "--set", "hinge=0.3", "--duration", 0.1, "--out", "run.npz", "--plot", "run.png")
    assert (answer.code, answer.lines) == (0, [])

    # the report and the names of the files
    chosen = "galerkin:4 (chosen for smooth motion)"
    for words in (chosen, "100 of 0.001 s", "energy", "wrote run.npz", "wrote run.png"):
        assert words in answer.out
    model = la.models.pendulum().build()
    expected = la.simulate(model, model.state(q={"hinge": 0.3}), dt=0.001, duration=0.1)
    run = la.Trajectory.load("run.npz")
    assert np.array_equal(run.q, expected.q)
    assert np.array_equal(run.v, expected.v)
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_in_which_nothing_moves_says_how_to_move_it(cli):
    assert "--set JOINT=VALUE" in cli("run", "pendulum", "--duration", 0.1).out
    assert "--set" not in cli("run", "pendulum", "--duration", 0.1, "--set", "hinge=0.3").out


def test_options_reach_the_run(cli):
    answer = cli(
        "run", "spherical_pendulum", "--method", "euler", "--dt", 0.01, "--duration", 0.2, "--save-every", 4,
        "--set", "pivot=2,0,0,0", "--set-velocity", "pivot=1,-2,0.5", "--gravity", "0,0,-1.6", "--out", "run.npz",
        "--progress",
    )  # fmt: skip
    assert answer.code == 0
    run = la.Trajectory.load("run.npz")
    assert run.method.label == "euler"
    assert np.array_equal(run.q[0], [1, 0, 0, 0])
    assert np.array_equal(run.v[0], [1, -2, 0.5])
    assert np.array_equal(run.model.mechanism.gravity, [0, 0, -1.6])
    assert (run.dt, run.steps, len(run.t)) == (0.01, 20, 6)


def test_urdf_from_file_to_files(cli, urdf):
    answer = cli("run", urdf(), "--set", "shoulder=0.3", "--set", "elbow=-0.2", "--duration", 0.05, "--out", "run.npz")
    assert answer.code == 0
    # what takes energy is named, as the change is then no error
    assert "dampers" in answer.out
    assert np.array_equal(la.Trajectory.load("run.npz").q[0], [0.3, -0.2])


def test_floating_urdf(cli, urdf):
    assert cli("run", urdf(), "--floating", "--duration", 0.01, "--out", "run.npz", "--plot", "run.svg").code == 0
    assert la.Trajectory.load("run.npz").model.joint("root").kind == "free"
    assert "Angular momentum" in Path("run.svg").read_text()


def test_limits_crossed_are_named(cli, urdf):
    answer = cli(
        "run", urdf(), "--set", "elbow=1.9", "--set-velocity", "elbow=5", "--duration", 0.1, "--limits", "report"
    )
    assert "limit of elbow" in answer.out


def test_notes_of_the_loader_are_shown_briefly(cli, urdf, arm):
    strange = "".join(f"<strange{k}/>" for k in range(9))
    answer = cli("run", urdf(arm + strange), "--duration", 0.01)
    assert answer.code == 0
    assert len(answer.lines) == 6
    assert all(line.startswith("note: ") for line in answer.lines)
    # the rest is where the last line says it is
    assert "leastaction info" in answer.lines[-1]
    assert "strange8" in cli("info", urdf(arm + strange)).out


def test_without_drops_a_feature(cli, urdf, arm):
    rough = urdf(arm.replace('damping="0.1"', 'damping="0.1" friction="0.2"'))
    answer = cli("run", rough, "--duration", 0.01, "--method", "rk4", "--limits", "report")
    assert answer.code == 2
    assert "--without friction" in answer.lines[0]
    assert cli("run", rough, "--duration", 0.01, "--without", "friction").code == 0


class TestLoops:
    def test_open_loop_is_refused_or_projected(self, cli):
        answer = cli("run", "four_bar", "--set", "crank_hinge=0.1", "--duration", 0.01)
        assert answer.code == 2
        assert len(answer.lines) == 1
        assert "--project" in answer.lines[0]
        answer = cli("run", "four_bar", "--set", "crank_hinge=0.1", "--duration", 0.01, "--project", "--out", "run.npz")
        assert (answer.code, answer.lines) == (0, [])
        assert "largest gap" in answer.out
        assert la.Trajectory.load("run.npz").constraint_error.max() < 1e-10  # measured 2e-13

    def test_inconsistent_velocity_is_refused(self, cli):
        answer = cli("run", "four_bar", "--set-velocity", "crank_hinge=1", "--duration", 0.01)
        assert answer.code == 2
        assert len(answer.lines) == 1
        assert "--project" in answer.lines[0]

    def test_consistent_start_is_taken(self, cli):
        assert cli("run", "four_bar", "--duration", 0.01).lines == []

    def test_projection_that_fails_says_so(self, cli):
        # a rod of one metre that is to be held five metres away
        m = la.Mechanism("short")
        m.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
        m.add_joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
        m.add_joint("far", "spherical", parent="world", child="rod", parent_frame=la.pose(xyz=(5, 0, 0)))
        la.save(m, "short.json")
        answer = cli("run", "short.json", "--set", "hinge=0.3", "--project", "--out", "run.npz")
        assert answer.code == 1
        assert len(answer.lines) == 1
        assert "no position that closes the loops" in answer.lines[0]
        assert os.listdir() == ["short.json"]


class TestFailure:
    WORDS = ("run", "four_bar", "--set-velocity", "crank_hinge=30", "--project", "--dt", 0.05, "--duration", 5.0)

    def test_partial_run_is_written(self, cli):
        answer = cli(*self.WORDS, "--out", "run.npz", "--plot", "run.png")
        assert answer.code == 1
        # one line, which names the files
        assert len(answer.lines) == 1
        assert answer.lines[-1].startswith("leastaction: galerkin:4: ")
        assert "run.npz and run.png" in answer.lines[-1]
        run = la.Trajectory.load("run.npz")
        assert 0 < run.steps < 100
        assert run.report.failure
        assert np.isfinite(run.q).all()

    def test_without_files(self, cli):
        answer = cli(*self.WORDS)
        assert answer.code == 1
        assert "no file was asked for" in answer.lines[-1]
        assert os.listdir() == []


@pytest.mark.slow
def test_first_run_says_that_it_compiles_and_the_second_does_not(tmp_path):
    environment = {**os.environ, "LEASTACTION_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, "-m", "leastaction", "run", "pendulum", "--duration", "0.1"],
            capture_output=True, text=True, timeout=300, env=environment, check=True,
        ).stderr
        for _ in range(2)
    ]  # fmt: skip
    assert [text.startswith("compiling, once for this kind of mechanism") for text in said] == [True, False]


def test_a_run_starts_from_a_key_frame(cli):
    m = la.models.double_pendulum()
    first, second = m.joints
    m.add_key_frame("up", {first: 3.0, second: 0.2}, {first: 1.0})
    la.save(m, "m.json")
    for options, q in (([], [3.0, 0.2]), (["--set", f"{second}=0.5"], [3.0, 0.5])):
        answer = cli("run", "m.json", "--key", "up", *options, "--dt", "0.01", "--duration", "0.01", "--out", "run.npz")
        assert answer.code == 0, answer
        run = la.Trajectory.load("run.npz")
        assert (run.q[0].tolist(), run.v[0].tolist()) == (q, [1.0, 0.0])
    answer = cli("run", "m.json", "--key", "upp")
    assert answer.code == 2
    assert "there is no key frame 'upp'; did you mean 'up'?" in answer.lines[0]
