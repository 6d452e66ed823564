"""The package's own files: JSON of ``model/serialize.py``, read back to the last bit."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from leastaction.errors import ModelError
from leastaction.model.files import check_json_size, check_path, read_file, write_file
from leastaction.model.mechanism import Mechanism
from leastaction.model.serialize import mechanism_from_dict, mechanism_to_dict


def read_json(path: Path, *, package_dirs: Iterable[str | os.PathLike[str]] = (), name: str | None = None) -> Mechanism:
    """Mechanism of a file written by ``write_json``; its meshes lie in its folder or in ``package_dirs``."""
    data = read_file(path, "model file")
    # RecursionError: nested deeper than Python's reader goes
    try:
        text = data.decode("utf-8")
        check_json_size(text)
        content = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ModelError(f"{path}:{error.lineno}: not well-formed JSON: {error.msg}.") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as JSON: {error}.") from error
    except RecursionError as error:
        raise ModelError(f"{path}: cannot be read as JSON: nested too deep.") from error
    # the reader of the content names the entry; the file is added here
    folders = (package_dirs,) if isinstance(package_dirs, (str, os.PathLike)) else package_dirs
    try:
        m = mechanism_from_dict(content, base=path.parent, roots=[check_path(folder) for folder in folders])
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from error
    except RecursionError as error:
        raise ModelError(f"{path}: cannot be read: nested too deep.") from error
    if name is not None:
        m.name = name
        m.check()
    return m


def write_json(mechanism: Mechanism, path: Path) -> None:
    """Write a mechanism; mesh files are named relative to the folder of ``path`` where they lie inside it."""
    content = mechanism_to_dict(mechanism)
    folder = Path(os.path.abspath(path)).parent
    for body in content["bodies"]:
        for shape in body["shapes"]:
            if shape.get("file") is not None:
                shape["file"] = _relative(shape["file"], folder)
    write_file(path, _text(content))


def _relative(file: str, folder: Path) -> str:
    """A mesh file's name as seen from the folder; absolute where it lies outside."""
    whole = Path(os.path.abspath(file))
    return (whole.relative_to(folder) if whole.is_relative_to(folder) else whole).as_posix()


def _text(content: dict[str, Any]) -> str:
    """JSON with one body, joint, frame and so on per line."""
    entries = []
    for key, value in content.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            items = ",\n  ".join(json.dumps(item, allow_nan=False) for item in value)
            entries.append(f"{json.dumps(key)}: [\n  {items}\n ]")
        else:
            entries.append(f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n " + ",\n ".join(entries) + "\n}\n"


def _refuse_constant(word: str) -> NoReturn:
    """NaN and Infinity are not JSON."""
    raise ValueError(f"{word} is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without repeated keys."""
    out = dict(pairs)
    if len(out) < len(pairs):
        keys: Iterator[str] = (key for key, _ in pairs)
        seen: set[str] = set()
        for key in keys:
            if key in seen:
                raise ValueError(f"the key {key!r} stands twice in one object")
            seen.add(key)
    return out
