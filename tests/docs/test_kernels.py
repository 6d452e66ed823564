"""The map of the house says what the code has: rooms, files, functions, and who calls whom on the two walks."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import leastaction

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "leastaction"
PAGE = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)`", PAGE)))
# the walks without their equations
WALKS = re.sub(r"\$\$.*?\$\$", "", PAGE[PAGE.index("\n## One step of") : PAGE.index("\n## How it")], flags=re.DOTALL)

# a stop of a walk: indentation, file, functions
STOP = re.compile(r"^( *)- `([\w/]+\.py)` ((?:`[\w.]+`(?:, )?)+):", re.MULTILINE)
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")


@cache
def defined(file: str) -> dict[str, ast.AST]:
    """Classes, functions, methods (``Class.method``) and constants of a file of the package."""
    found: dict[str, ast.AST] = {}
    for node in ast.parse((PACKAGE / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found[node.name] = node
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}": part for part in node.body if isinstance(part, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            names = [name for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found |= {name.id: node for name in names}
    return found


def reads(file: str, function: str) -> set[str]:
    """Every name that a function mentions, its decorators included."""
    nodes = list(ast.walk(defined(file)[function]))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def stops() -> list[tuple[int, str, list[str]]]:
    """Depth, file and functions of every stop of the walks."""
    return [(len(m[1]) // 2, m[2], NAME.findall(m[3])) for m in STOP.finditer(WALKS)]


def test_files_exist() -> None:
    assert [file for file in FILES if not (PACKAGE / file).is_file()] == []
    assert len(FILES) > 40


def test_every_line_of_the_walks_is_a_stop() -> None:
    assert len(stops()) == len(re.findall(r"^ *- ", WALKS, re.MULTILINE)) > 90


def test_functions_of_a_stop_are_in_its_file() -> None:
    assert [(file, name) for _, file, names in stops() for name in names if name not in defined(file)] == []


def test_names_in_the_text_of_the_walks_exist() -> None:
    known = {name for file in FILES for name in defined(file)} | set(leastaction.PUBLIC)
    assert [name for name in NAME.findall(STOP.sub("", WALKS)) if not name.endswith(".py") and name not in known] == []


def test_a_stop_further_in_is_called_by_the_one_above() -> None:
    above: list[tuple[str, list[str]]] = []
    wrong = []
    for depth, file, functions in stops():
        del above[depth:]
        for k, name in enumerate(functions):
            callers = [(file, each) for each in functions[:k]]
            if depth > 0:
                callers += [(above[-1][0], each) for each in above[-1][1]]
            # the first ones of a walk are called from outside of it
            if callers and not any(name.rpartition(".")[2] in reads(*caller) for caller in callers):
                wrong.append(f"{file} {name}: not called by {[each for _, each in callers]}")
        above.append((file, functions))
    assert wrong == []


def test_every_room_has_its_words_and_its_place_in_the_picture() -> None:
    rooms = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    assert set(re.findall(r"\*\*`(\w+)/`\*\*", PAGE)) == rooms

    # the picture has every name of the contract but those that are no room of the library
    with (ROOT / "pyproject.toml").open("rb") as file:
        contract = tomllib.load(file)["tool"]["importlinter"]["contracts"][0]["layers"]
    names = {name for layer in contract for name in re.findall(r"\w+", layer)}
    picture = (ROOT / "docs" / "kernels_rooms.svg").read_text(encoding="utf-8")
    drawn = re.findall(r'class="room"[^>]*>([^<]+)<', picture)
    assert {name for names in drawn for name in names.split()} == names - {
        "errors", "_version", "__main__", "optimize", "reference",
    }  # fmt: skip


def test_pictures_are_legible_by_themselves() -> None:
    # a picture that is shown by a page takes no colours from it
    for name in re.findall(r"!\[[^\]]*\]\((\w+\.svg)\)", PAGE):
        picture = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert "currentColor" not in picture
        assert "<title" in picture
