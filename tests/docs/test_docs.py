"""Every Python block of the README and of the documentation runs, page by page, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Line number of the first line of code, and the code, of each Python block of a page."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in BLOCK.finditer(text)]


def name_of(page: Path) -> str:
    """Path of a page inside the project."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=name_of)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}

    # blank lines in front make a traceback point at the line of the page
    for line, code in python_blocks(page):
        exec(compile("\n" * (line - 1) + code, name_of(page), "exec"), namespace)


def test_blocks_are_found() -> None:
    # an unnoticed change of the fences would leave the test above with nothing to run
    assert python_blocks(ROOT / "README.md")
    for page in PAGES:
        assert len(python_blocks(page)) == page.read_text(encoding="utf-8").count("```python")


def test_first_page_is_conventions() -> None:
    pages = re.findall(r"^([a-z_]+)$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert pages[0] == "conventions"
    assert {f"{page}.md" for page in pages} == {page.name for page in PAGES[1:]} - {"index.md"}
