"""The command line as a whole: help, version, exit codes, light imports, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

import leastaction
from leastaction.cli import app

COMMANDS = ["bench", "demo", "info", "reproduce", "resume", "run", "warmup"]


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def test_version(cli):
    assert cli("--version") == (0, f"leastaction {leastaction.__version__}\n", "")


def test_help_lists_every_command(cli):
    answer = cli("--help")
    assert answer.code == 0
    assert all(f"\n  {name} " in answer.out for name in COMMANDS)
    assert sorted(app.commands) == COMMANDS
    # no summary is cut off
    assert "..." not in answer.out.partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(cli, name):
    for parameter in app.commands[name].params:
        if parameter.param_type_name == "option":
            assert parameter.help, parameter.name
    assert cli(name, "--help").code == 0


def test_no_command_shows_the_help(cli):
    answer = cli()
    assert answer.code == 2
    assert "Commands:" in answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["simulate"], "No such command 'simulate'"),
        (["run"], "FILE_OR_MODEL"),
        (["run", "pendulum", "--fast"], "--fast"),
        (["run", "pendulum", "--dt", "small"], "small"),
        (["run", "pendulum", "--save-every", "1.5"], "1.5"),
        (["run", "pendulum", "chain:2"], "chain:2"),
        (["info"], "FILE_OR_MODEL"),
        (["reproduce"], "NAME"),
    ],
)
def test_bad_words_end_with_one_line(cli, words, said):
    answer = cli(*words)
    assert answer.code == 2
    assert answer.out == ""
    assert len(answer.lines) == 1
    assert answer.lines[0].startswith("leastaction: ")
    assert said in answer.lines[0]


def test_control_characters_of_a_name_do_not_reach_the_terminal(cli):
    answer = cli("info", "evil\x1b[2J\nname.urdf")
    assert answer.code == 2
    assert len(answer.lines) == 1
    assert "\x1b" not in answer.err


def test_help_and_version_are_light():
    code = """
import sys
from leastaction.cli import run_app
run_app(["--version"]), run_app(["--help"]), run_app(["run", "--help"])
print([name for name in ("numba", "numpy", "scipy", "rich", "matplotlib") if name in sys.modules])
"""
    assert run_python(code).stdout.splitlines()[-1] == "[]"


def test_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "leastaction", "run", "nothing.urdf"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("leastaction: nothing.urdf")
    assert done.stderr.count("\n") == 1


def test_interrupt_ends_with_130_and_a_line(cli):
    # a run of many minutes, interrupted by the signal of Ctrl-C
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    answer = cli("run", "pendulum", "--duration", 1e6, "--save-every", 1_000_000)
    assert answer.code == 130
    # an empty line first, as the terminal shows ^C
    lines = [line for line in answer.lines if line]
    assert len(lines) == 1
    assert lines[0].startswith("leastaction: interrupted")
    assert os.listdir() == []


def test_a_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -m leastaction info chain:100 | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("name")
    assert "Traceback" not in done.stderr


def test_bench_refuses_an_unknown_group(cli):
    answer = cli("bench", "nothing")
    assert answer.code == 2
    assert len(answer.lines) == 1
    assert "nothing" in answer.lines[0]
    assert cli("bench", "--json", "no/bench.json").code == 2
