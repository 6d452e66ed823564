"""The files that an MJCF model names, checked before MuJoCo opens them.

MuJoCo reads includes and assets itself. It looks beside the main file first (in ``meshdir`` and its kin for assets)
and then beside the file that names them. Every such place must lie inside the allowed roots, and what is there must
be a regular file.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from leastaction.io.roots import Roots
from leastaction.io.xml import Element, parse_file

MAX_FILES = 1000
"""Largest number of model files that one model is spread over."""

MAX_PARTS = 20_000
"""Most bodies, joints, geoms and sites of a model, as often as they are repeated."""

_PARTS = ("body", "joint", "freejoint", "geom", "site")
_FILE_ATTRIBUTES = (
    "file",
    "fileright",
    "fileleft",
    "fileup",
    "filedown",
    "filefront",
    "fileback",
)
_DIRECTORY_ATTRIBUTES = ("assetdir", "meshdir", "texturedir")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


@dataclass
class MjcfFiles:
    """All XML of a model: the outermost element of every file, and every element in reading order.

    Attributes:
        roots: the folders that may be read.
        documents: outermost elements by file.
        directories: asset folders named anywhere in the model.
    """

    roots: Roots
    documents: dict[Path, Element] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)

    def elements(self) -> list[Element]:
        """Every element of every file."""
        out: list[Element] = []
        stack = list(self.documents.values())[::-1]
        while stack:
            element = stack.pop()
            out.append(element)
            stack.extend(element.children[::-1])
        return out


def check_files(root: Element, path: Path, roots: Roots) -> MjcfFiles:
    """Walk a model and all it includes; raise at the first name that may not be read."""
    files = MjcfFiles(roots)
    _read_includes(root, path, files)
    elements = files.elements()
    _check_count(files)

    # asset folders count for the whole model, wherever they are named
    for element in elements:
        for attribute in _DIRECTORY_ATTRIBUTES:
            directory = element.attrib.get(attribute)
            if element.tag == "compiler" and directory:
                for place in _places(element, directory, [roots.folder]):
                    roots.check_inside(element, place, directory, f"folder of {attribute}")
                files.directories.append(directory)

    # every asset, in every place where MuJoCo might look
    for element in elements:
        if element.tag == "plugin":
            raise element.error("plugins are not supported: they run code of their own.")
        for attribute in _FILE_ATTRIBUTES:
            name = element.attrib.get(attribute)
            if name and element.tag not in ("include", "model"):
                _check_asset(element, name, files)
    return files


def _check_count(files: MjcfFiles) -> None:
    """Refuse too many parts before MuJoCo makes them: its time grows faster than their number."""
    parts = 0
    stack = [(document, 1) for document in files.documents.values()]
    while stack:
        element, times = stack.pop()
        if element.tag in ("replicate", "composite", "flexcomp"):
            for text in element.attrib.get("count", "1").split()[:3]:
                times = min(times * _whole(text), MAX_PARTS + 1)
            parts += times if element.tag != "replicate" else 0
        parts += times if element.tag in _PARTS else 0
        if parts > MAX_PARTS:
            raise element.error(
                f"the model has more than {MAX_PARTS} bodies, joints, geoms and sites, which is more than is read."
            )
        stack.extend((child, times) for child in element.children)


def _whole(text: str) -> int:
    """A number of repetitions, at least 1; text that is none is for MuJoCo to refuse."""
    try:
        return min(max(int(text[:20]), 1), MAX_PARTS + 1)
    except ValueError:
        return 1


def _read_includes(root: Element, path: Path, files: MjcfFiles) -> None:
    """Parse a file's includes and attached models, and theirs, each once."""
    pending = [(Path(os.path.abspath(path)), root)]
    while pending:
        file, document = pending.pop()
        key = file.resolve()
        if key in files.documents:
            continue
        files.documents[key] = document
        if len(files.documents) > MAX_FILES:
            raise document.error(f"the model is spread over more than {MAX_FILES} files.")
        # every place that MuJoCo might take for the included file
        stack = [document]
        while stack:
            element = stack.pop()
            stack.extend(element.children)
            if element.tag not in ("include", "model") or "file" not in element.attrib:
                continue
            name = element.string("file")
            found = _existing(element, name, [files.roots.folder, file.parent], files, "included file")
            pending.extend((place, parse_file(place)) for place in found)


def _check_asset(element: Element, name: str, files: MjcfFiles) -> None:
    """An asset's name: plain, beside the file that names it, or in one of the asset folders."""
    beside = Path(os.path.abspath(element.file)).parent
    folders = [base / directory for base in (files.roots.folder, beside) for directory in ("", *files.directories)]
    _existing(element, name, folders, files, "asset")
    # with strippath MuJoCo looks for the last part of the name only
    last = name.replace("\\", "/").rpartition("/")[2]
    for place in _places(element, last, folders):
        files.roots.check_inside(element, place, name, "asset")


def _existing(element: Element, name: str, folders: list[Path], files: MjcfFiles, what: str) -> list[Path]:
    """The places among the folders where a file of this name is; all places are checked, none found is an error."""
    found: list[Path] = []
    for place in _places(element, name, folders):
        path = files.roots.resolve(element, str(place), what=what)
        if path is not None and path not in found:
            found.append(path)
    if not found and not _stripped(files):
        raise element.error(f'the {what} "{name}" does not exist.')
    return found


def _stripped(files: MjcfFiles) -> bool:
    """Whether the model asks that folders in file names are ignored."""
    return any(element.tag == "compiler" and element.attrib.get("strippath") == "true" for element in files.elements())


def _places(element: Element, name: str, folders: list[Path]) -> list[Path]:
    """Where a name may lead: under every folder, with either kind of slash."""
    if _PREFIX.match(name):
        raise element.error(f'"{name}" is not a local file; only paths are read.')
    spellings = {name, name.replace("\\", "/")}
    return [folder / spelling for folder in folders for spelling in sorted(spellings)]
