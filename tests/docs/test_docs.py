"""Every Python block and every command of the README and of the documentation runs, page by page, in a new folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^leastaction (.*)$", re.MULTILINE)
ROBOT = """
<robot name="robot">
  <link name="base"/>
  <link name="arm">
    <inertial>
      <origin xyz="0 0 -0.5"/>
      <mass value="1"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.01"/>
    </inertial>
  </link>
  <joint name="shoulder" type="continuous">
    <parent link="base"/>
    <child link="arm"/>
    <axis xyz="0 1 0"/>
  </joint>
</robot>
"""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Line number of the first line of code, and the code, of each Python block of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in BLOCK.finditer(text)]


def commands(page: Path) -> list[str]:
    """What follows ``leastaction`` on the lines of a page that start with it."""
    return COMMAND.findall(page.read_text(encoding="utf-8"))


def name_of(page: Path) -> str:
    """Path of a page inside the project."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=name_of)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    # the README stands beside the examples
    shutil.copytree(ROOT / "examples", tmp_path / "examples")

    # blank lines in front make a traceback point at the line of the page
    for line, code in python_blocks(page):
        exec(compile("\n" * (line - 1) + code, name_of(page), "exec"), namespace)


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leastaction.cli import run_app

    monkeypatch.chdir(tmp_path)
    Path("robot.urdf").write_text(ROBOT)
    for command in commands(page):
        assert run_app(shlex.split(command)) == 0, command


def test_blocks_are_found() -> None:
    # an unnoticed change of the fences would leave the test above with nothing to run
    assert python_blocks(ROOT / "README.md")
    assert len(commands(ROOT / "README.md")) == 3
    for page in PAGES:
        assert len(python_blocks(page)) == page.read_text(encoding="utf-8").count("```python")


def test_first_page_is_conventions() -> None:
    docs = ROOT / "docs"
    pages = re.findall(r"^([a-z_/]+)$", (docs / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert pages[0] == "conventions"
    assert {f"{page}.md" for page in pages} == {page.relative_to(docs).as_posix() for page in PAGES[1:]} - {"index.md"}


def test_every_command_and_option_is_described() -> None:
    from leastaction.cli import app

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, command in app.commands.items():
        assert f"`{name}`" in text
        for parameter in command.params:
            if parameter.param_type_name == "option":
                long = max(parameter.opts, key=len)
                assert re.search(rf"`(\w+ )?{long}\b", text), f"{name} {long}"
    for code in (0, 1, 2, 130):
        assert f"| {code} |" in text


def test_papers_go_by_their_authors() -> None:
    # numbers and files that only the authors of this library know
    inside = re.compile(r"\bseed[ ]0\d\d|\berrata\.md|\bderivations\.md", re.IGNORECASE)
    files = [*PAGES, *ROOT.glob("*.md"), *ROOT.glob("tests/**/*.py"), *ROOT.glob("src/**/*.py")]
    hits = [name_of(file) for file in files if inside.search(file.read_text(encoding="utf-8"))]
    assert hits == []
