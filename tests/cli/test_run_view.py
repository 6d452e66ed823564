"""``leastaction run``: animations, the viewer, and several methods beside each other."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import leastaction as la

START = ("run", "four_bar", "--dt", 0.005, "--duration", 0.1, "--set-velocity", "crank_hinge=8", "--project")


def test_animation_and_comparison(cli):
    answer = cli(*START, "--method", "galerkin:4", "--compare", "rk4, euler", "--html", "a.html", "--plot", "a.png")
    assert (answer.code, answer.lines) == (0, [])
    for words in ("galerkin:4", "rk4", "euler", "wrote a.html", "wrote a.png"):
        assert words in answer.out
    assert sorted(os.listdir()) == ["a.html", "a.png"]
    text = Path("a.html").read_text(encoding="utf-8")
    assert text.count('"label": ') == 3
    assert '"layout": "side"' in text


def test_a_method_that_blows_up_beside_another_is_kept_as_far_as_it_goes(cli):
    words = list(START)
    words[words.index("--duration") + 1] = 6.0
    answer = cli(*words, "--compare", "euler", "--html", "a.html", "--plot", "a.png")
    assert answer.code == 0
    assert "stopped" in answer.out
    assert sorted(os.listdir()) == ["a.html", "a.png"]


def test_notes_about_what_is_drawn(cli, urdf):
    answer = cli("run", urdf(), "--duration", 0.01, "--without", "damping", "--html", "a.html")
    assert answer.code == 0
    assert any("has no shape; drawn as the ellipsoid" in line for line in answer.lines)


def test_resume_has_them_too(cli):
    assert cli(*START, "--out", "run.npz").code == 0
    assert cli("resume", "run.npz", "--duration", 0.1, "--html", "a.html").code == 0
    assert Path("a.html").is_file()


def test_view_shows_the_runs_and_stays(cli, monkeypatch):
    from leastaction.view import live

    shown = []
    monkeypatch.setattr(live, "show_runs", lambda runs, **options: shown.append((len(runs), options)))
    assert cli(*START, "--compare", "rk2", "--view").code == 0
    assert shown == [(2, {"layout": "side", "block": True})]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--compare", "rk99"), "there is no method 'rk99'"),
        (("--compare", "lie-trapezoid"), "lie-trapezoid cannot honour"),
        (("--html", "a.txt"), "--html a.txt: the ending must be"),
        (("--html", "no/a.html"), "does not exist"),
    ],
)
def test_bad_words_are_one_line(cli, words, said):
    answer = cli(*START, *words)
    assert (answer.code, len(answer.lines)) == (2, 1)
    assert said in answer.lines[0]
    assert os.listdir() == []


def test_view_without_viser_is_one_line(cli, monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "viser" else found(name))
    answer = cli(*START, "--view")
    assert (answer.code, len(answer.lines)) == (2, 1)
    assert "leastaction[view]" in answer.lines[0]


def test_the_bar_shows_the_time_left(monkeypatch, capsys):
    from rich.progress import TimeRemainingColumn

    from leastaction.run import progress

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.Progress(True, 10.0) as bar:
        bar.at(5.0)
        assert any(isinstance(column, TimeRemainingColumn) for column in bar._bar.columns)
        assert bar._bar.tasks[0].completed == 5.0


def test_the_run_is_not_changed_by_what_is_beside_it(cli):
    cli(*START, "--method", "rk4", "--compare", "euler", "--out", "a.npz")
    cli(*START, "--method", "rk4", "--out", "b.npz")
    assert (la.Trajectory.load("a.npz").q == la.Trajectory.load("b.npz").q).all()
