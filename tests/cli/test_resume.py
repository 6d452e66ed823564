"""``leastaction resume``, and runs that are interrupted and go on."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest

import leastaction as la


def test_resumed_run_is_that_of_the_whole(cli):
    start = ("run", "four_bar", "--method", "rk2", "--set-velocity", "crank_hinge=0", "--save-every", 4)
    assert cli(*start, "--duration", 0.05, "--out", "half.npz").code == 0
    assert cli(*start, "--duration", 0.12, "--out", "whole.npz").code == 0
    answer = cli("resume", "half.npz", "--duration", 0.07, "--out", "rest.npz", "--plot", "rest.png")
    assert (answer.code, answer.lines) == (0, [])
    for words in ("rk2", "120 of 0.001 s", "energy", "wrote rest.npz", "wrote rest.png"):
        assert words in answer.out
    whole, rest = la.Trajectory.load("whole.npz"), la.Trajectory.load("rest.npz")
    assert np.array_equal(rest.q, whole.q)
    assert np.array_equal(rest.t, whole.t)
    # onto itself
    assert cli("resume", "half.npz", "--duration", 0.07, "--out", "half.npz").code == 0
    assert np.array_equal(la.Trajectory.load("half.npz").q, whole.q)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.npz", "--duration", 1], "missing.npz"),
        (["text.npz", "--duration", 1], "text.npz"),
        (["run.npz"], "--duration"),
        (["run.npz", "--duration", -1], "--duration"),
        (["run.npz", "--duration", 0.0015], "whole number of steps"),
        (["run.npz", "--duration", 1e9], "memory"),
        (["run.npz", "--duration", 1, "--out", "no/run.npz"], "no/run.npz"),
        (["run.npz", "--duration", 1, "--out", "run.png"], ".npz"),
    ],
)
def test_bad_words(cli, words, said):
    Path("text.npz").write_text("words")
    assert cli("run", "pendulum", "--duration", 0.01, "--out", "run.npz").code == 0
    answer = cli("resume", *words)
    assert answer.code == 2
    assert len(answer.lines) == 1
    assert said in answer.lines[0]
    assert sorted(os.listdir()) == ["run.npz", "text.npz"]


def interrupted(cli, *words):
    """A command that is interrupted by the signal of Ctrl-C."""
    timer = threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        return cli(*words)
    finally:
        timer.cancel()


def test_interrupted_run_is_written_and_goes_on(cli):
    # warm, so that the signal comes while the run goes
    words = ("run", "pendulum", "--set", "hinge=0.3", "--save-every", 100_000)
    assert cli(*words, "--duration", 100).code == 0
    answer = interrupted(cli, *words, "--duration", 1e6, "--out", "run.npz", "--plot", "run.png")
    assert answer.code == 130
    lines = [line for line in answer.lines if line]
    assert lines == ["leastaction: interrupted; the run up to there is in run.npz and run.png."]
    run = la.Trajectory.load("run.npz")
    assert run.steps > 0
    assert "interrupted" in run.report.failure
    assert "interrupted" in answer.out
    assert cli("resume", "run.npz", "--duration", 1, "--out", "run.npz").code == 0
    assert la.Trajectory.load("run.npz").steps == run.steps + 1000

    # a resumed one too
    answer = interrupted(cli, "resume", "run.npz", "--duration", 1e6, "--out", "rest.npz")
    assert answer.code == 130
    assert "rest.npz" in answer.lines[-1]
    assert la.Trajectory.load("rest.npz").steps > run.steps + 1000
