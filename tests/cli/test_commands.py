"""``info``, ``demo``, ``warmup`` and ``reproduce``: what they show and what they write."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import leastaction as la
from leastaction.jit.decorators import ENTRIES


class TestInfo:
    def test_urdf(self, cli, urdf, arm):
        answer = cli("info", urdf(arm + "<gazebo/>"))
        assert (answer.code, answer.err) == (0, "")
        # one row for each joint, with its numbers
        shoulder = next(line for line in answer.out.splitlines() if line.startswith("shoulder"))
        row = "shoulder revolute base -> upper 0 0 -2 .. 2 damping 0.1, effort 5, speed 8"
        assert " ".join(shoulder.split()) == row
        for words in ("total mass", "nq = 2, nv = 2", "gazebo"):
            assert words in answer.out

    def test_loops_and_features(self, cli):
        out = cli("info", "four_bar").out
        loop = next(line for line in out.splitlines() if line.startswith("loop"))
        assert " ".join(loop.split()) == "loop revolute coupler -> rocker 5"
        assert "a method must support  loops" in out
        # rounding of the builder does not show
        assert "e-18" not in out

    def test_slices_of_many_coordinates(self, cli, urdf):
        out = cli("info", urdf(), "--floating", "--gravity", "0,0,-1.6").out
        root = next(line for line in out.splitlines() if line.startswith("root"))
        assert root.split()[-2:] == ["0:7", "0:6"]
        assert "(0, 0, -1.6)" in out

    @pytest.mark.parametrize("name", ["arm", "minitaur", "quadruped", "chain:3:spherical", "n_four_bar:2", "cart_pole"])
    def test_every_kind_of_mechanism(self, cli, name):
        assert cli("info", name).code == 0

    def test_joints_stand_in_the_order_of_q(self, cli, tmp_path):
        # the joint of the leaf is added before that of its parent, and a fixed one before both
        m = la.Mechanism("order")
        for name in ("leaf", "stem", "plate"):
            m.add_body(name, mass=1.0, inertia=(1, 1, 1))
        m.add_joint("rigid", "fixed", parent="world", child="plate")
        m.add_joint("upper", "revolute", parent="stem", child="leaf")
        m.add_joint("lower", "prismatic", parent="world", child="stem")
        model = m.build()
        assert model.topology.tree != (*model.joint_names, "rigid")
        la.save(m, tmp_path / "m.json")
        lines = cli("info", tmp_path / "m.json").out.splitlines()
        shown = [line.split()[0] for line in lines if line.startswith(("upper ", "lower ", "rigid ")) and "->" in line]
        assert shown == [*model.joint_names, "rigid"]

    def test_names_are_no_markup(self, cli, tmp_path):
        m = la.Mechanism("[bold]name[/bold]")
        m.add_body("[red]", mass=1.0)
        m.add_joint("j", "prismatic", parent="world", child="[red]")
        la.save(m, tmp_path / "m.json")
        out = cli("info", tmp_path / "m.json").out
        assert "[bold]name[/bold]" in out
        assert "world -> [red]" in out

    def test_needs_no_numba(self):
        code = """
import sys
sys.modules["numba"] = None
from leastaction.cli import run_app
sys.exit(run_app(["info", "four_bar"]))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def test_demo(cli):
    answer = cli("demo", "--out-dir", "some/where")
    assert (answer.code, answer.lines) == (0, [])
    assert sorted(os.listdir("some/where")) == ["demo.html", "demo.npz", "demo.png"]
    for words in ("galerkin:4", "rk4", "energy drift", "loop gap", "where/demo.png", "where/demo.html", "demo.npz"):
        assert words in answer.out

    # the file stands on its own, and the run is a good one
    run = la.Trajectory.load("some/where/demo.npz")
    assert run.model.loop_names == ("loop",)
    assert run.constraint_error.max() < 1e-12  # measured 2.4e-14
    assert np.abs(run.energy.total - run.energy.total[0]).max() < 1e-5  # measured 3.4e-6


class TestWarmup:
    def test_reaches_every_entry_point_in_both_forms(self, cli):
        from leastaction import warmup
        from leastaction.dynamics import entries
        from leastaction.explicit import step as explicit_step

        # in this process, so that its entry points know what they were compiled for
        answer = cli("warmup", "--processes", 1)
        assert answer.code == 0
        assert "cache: " in answer.out
        modules = {entries.__name__, explicit_step.__name__}
        public = [entry for entry in ENTRIES if entry.py_func.__module__ in modules]
        assert len(public) > 15
        for entry in public:
            name = entry.py_func.__name__
            forms = {signature[0] for signature in entry.signatures}
            assert len(forms) >= (1 if name in warmup.LOOPS_ONLY else 2), name

        # a second time nothing is left to do
        assert "already compiled" in cli("warmup").out

    def test_list(self, cli):
        cli("run", "pendulum", "--duration", 0.001)
        answer = cli("warmup", "--list")
        assert answer.code == 0
        assert "explicit.step.explicit_rollout" in answer.out
        assert "cache: " in answer.out

    def test_list_of_an_empty_cache(self, cli, monkeypatch, tmp_path):
        from leastaction.jit import cache

        monkeypatch.setattr(cache, "cache_folder", lambda: tmp_path)
        assert "0 entry points" in cli("warmup", "--list").out


class TestReproduce:
    def test_list(self, cli):
        answer = cli("reproduce", "list")
        assert answer.code == 0
        assert "baselines" in answer.out

    def test_unknown_name_lists_the_names(self, cli):
        answer = cli("reproduce", "baselines", "baseline")
        assert answer.code == 2
        assert len(answer.lines) == 1
        assert "there are baselines" in answer.lines[0]
        assert os.listdir() == []

    def test_baselines(self, cli):
        answer = cli("reproduce", "baselines", "--quick")
        assert (answer.code, answer.lines) == (0, [])
        folder = Path("out/reproduce")
        assert sorted(os.listdir(folder)) == ["baselines.csv", "baselines.json", "baselines.png"]

        # the verdicts on the screen are those of the file
        written = json.loads((folder / "baselines.json").read_text())
        assert written["quick"] is True
        assert [claim["holds"] for claim in written["claims"]] == [True] * 4
        assert answer.out.count(" yes") == 4
        with (folder / "baselines.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == 12
        assert all(float(row["state_error"]) > 0 for row in rows)

    def test_a_claim_that_fails_is_reported_and_the_code_is_0(self, cli, monkeypatch):
        from leastaction.papers import registry

        claims = [registry.Claim("the moon is cheese", 1.0, 0.25, False), registry.Claim("so is Mars", "x", "y", None)]
        result = registry.Result(claims)
        fake = registry.Experiment("moon", "Nobody 1900, fig. 1", "The moon", (), lambda context: result)
        monkeypatch.setitem(registry._REGISTRY, "moon", fake)
        answer = cli("reproduce", "moon", "--out", ".")
        assert answer.code == 0
        moon = next(line for line in answer.out.splitlines() if "cheese" in line)
        assert moon.split()[-3:] == ["1", "0.25", "NO"]
        assert "not judged" in answer.out
        assert os.listdir() == ["moon.json"]
