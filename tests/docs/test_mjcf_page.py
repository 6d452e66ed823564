"""The page on MJCF knows every element and attribute of MuJoCo, and every word for ``allow=``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leastaction.io.notes import ALLOW

mujoco = pytest.importorskip("mujoco")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mjcf.md"
# column at which attributes begin in MuJoCo's own list
COLUMN = 30


def schema() -> list[tuple[tuple[str, ...], list[str]]]:
    """Elements with those around them, outermost first, and their attributes."""
    out: list[tuple[tuple[str, ...], list[str]]] = []
    path: list[str] = []
    for line in mujoco.mj_printSchema(False, False).splitlines():
        head, attributes = line[:COLUMN], line[COLUMN:].split()
        if head.strip():
            # the world and bodies are one element there
            name = head.split()[0].removeprefix("(world)")
            path = [*path[: (len(head) - len(head.lstrip())) // 3], name]
            out.append((tuple(path), attributes))
        elif out:
            out[-1][1].extend(attributes)
    return out


def rows() -> list[tuple[set[str], set[str], set[str]]]:
    """Of each row of the page the elements, those with all that is inside, and the attributes."""
    out = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `<"):
            cell = line.split(" | ")[0]
            whole = set(re.findall(r"`<(\w+)>` \.\.\.", cell))
            out.append((set(re.findall(r"`<(\w+)>`", cell)), whole, set(re.findall(r"`(\w+)`", cell))))
    return out


def test_the_schema_is_read():
    known = {path[-1]: attributes for path, attributes in schema()}
    assert {"joint", "spatial", "general", "key"} <= known.keys()
    assert {"stiffness", "springlength"} <= set(known["spatial"])


def test_every_element_and_attribute_stands_on_the_page():
    whole = {name for _, names, _ in rows() for name in names}
    covered = {
        (element, attribute) for elements, _, attributes in rows() for element in elements for attribute in attributes
    }
    mentioned = {element for elements, _, _ in rows() for element in elements}
    missing = []
    for path, attributes in schema():
        if whole & set(path):
            continue
        missing += [path[-1]] if path[-1] not in mentioned else []
        missing += [f"{path[-1]} {each}" for each in attributes if (path[-1], each) not in covered]
    assert missing == []


def test_no_element_is_invented():
    known = {path[-1] for path, _ in schema()}
    assert {element for elements, _, _ in rows() for element in elements} <= known


def test_every_word_for_allow_stands_on_the_page():
    text = PAGE.read_text()
    words = {name for name, meaning in ALLOW.items() if meaning.startswith("MJCF")}
    assert {name for name in words if f'allow="{name}"' not in text} == set()
    assert set(re.findall(r'allow="(\w+)"', text)) <= ALLOW.keys()
