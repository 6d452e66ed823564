"""Models of others, as ``models.txt`` lists them: where they lie, what of them is dropped, why some are not compared.

The folder of robots lies beside the repository (``../shared/robots``) or where ``LEASTACTION_ROBOTS`` says. The other
models lie inside installed packages. What is not there is skipped.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import leastaction as la
from leastaction.io.notes import ALLOW

TABLE = Path(__file__).with_name("models.txt")


class Listed(NamedTuple):
    """One line: section, file, names for ``allow=``, why it is not compared ("" if it is), only with long tests."""

    section: str
    file: str
    allow: tuple[str, ...]
    reason: str
    slow: bool

    @property
    def path(self) -> Path:
        """The file; skips where it is not there."""
        return folder(self.section) / self.file


def read() -> list[Listed]:
    """All lines of the table."""
    out, section = [], ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            file, allow, reason = (part.strip() for part in f"{line} ||".split("|")[:3])
            out.append(Listed(section, file.removeprefix("~ "), tuple(allow.split()), reason, file.startswith("~ ")))
    return out


def folder(section: str) -> Path:
    """The folder of a section; skips where it is not there."""
    first, _, inside = section.partition("/")
    if first == "robots":
        beside = Path(__file__).resolve().parents[2].parent / "shared/robots"
        found = Path(os.environ.get("LEASTACTION_ROBOTS", beside)) / inside
    elif first == "example-robot-data":
        try:
            data = importlib.metadata.distribution(first)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{first} is not installed")
        found = Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    else:
        # without importing it
        package = importlib.util.find_spec(first)
        if package is None or not package.submodule_search_locations:
            pytest.skip(f"{first} is not installed")
        found = Path(package.submodule_search_locations[0]) / inside
    if not found.is_dir():
        pytest.skip(f"the folder of {section} is not there")
    return found


def parameters(sections: tuple[str, ...], compared: bool) -> list[object]:
    """Parameters for pytest: the lines of some sections, those that are compared or those that are not."""
    return [
        pytest.param(one, id=f"{one.section}/{one.file}", marks=[pytest.mark.slow] if one.slow else [])
        for one in read()
        if one.section in sections and (not one.reason or one.reason.startswith("Pinocchio")) == compared
    ]


def load(one: Listed, **options: object) -> la.Mechanism:
    """The mechanism of a line, with everything allowed; what was dropped must be what the line says."""
    m = la.load(one.path, allow=ALLOW, package_dirs=[folder(one.section)], **options)
    assert dropped(m) == set(one.allow)
    return m


def dropped(m: la.Mechanism) -> set[str]:
    """Names of what was dropped because it was allowed; torsional friction is left out of every model."""
    return {found for note in m.notes for found in re.findall(r"^allowed by '(\w+)'", note)} - {"torsion"}


def check_all_are_listed(section: str, ending: str) -> None:
    """Every file of the folder has its line, and every line its file."""
    root = folder(section)
    there = {path.relative_to(root).as_posix() for path in root.rglob(f"*.{ending}")}
    assert {one.file for one in read() if one.section == section} == there


def check_reason(one: Listed) -> None:
    """A model that is not compared still has the reason that is listed."""
    if one.reason == "nothing moves":
        assert load(one).without("contacts").build().nv == 0
        return
    with pytest.raises(la.ModelError, match=re.escape(one.reason)):
        load(one).without("contacts").build()
