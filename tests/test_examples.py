"""The examples run, are short, and write what they say."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))

# words for those that would take long
WORDS = {"four_bar_hour.py": ["40"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs(path, tmp_path, monkeypatch, capsys):
    if "import mujoco" in path.read_text(encoding="utf-8"):
        pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), *WORDS.get(path.name, [])])
    runpy.run_path(str(path), run_name="__main__")
    said = capsys.readouterr().out
    assert said
    for name in re.findall(r"^wrote (\S+)$", said, re.MULTILINE):
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_listed(path):
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < 60
    assert text.startswith('"""')
    assert f"`{path.name}`" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_there_are_examples():
    assert len(EXAMPLES) == 17
