"""What commands share on their way out: the console, one-line messages, notes of a loader, checks of output paths."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from leastaction.errors import ModelError

PICTURES = (".png", ".pdf", ".svg")
"""Endings of pictures."""

# notes of a loader that a run shows, and columns of output that goes to a file or another program
_SHOWN_NOTES, _FILE_WIDTH = 5, 180


def console() -> Any:
    """A rich console on the output stream that leaves numbers and words uncoloured; wide where it is no terminal."""
    from rich.console import Console

    out = Console(highlight=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out = Console(highlight=False, width=_FILE_WIDTH)
    return out


def one_line(text: str) -> str:
    """The text on one line, without characters that could steer a terminal."""
    words = " ".join(text.split())
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in words)


def tell(text: str) -> None:
    """One line on the error stream that is not an error."""
    click.echo(one_line(text), err=True)


def tell_notes(notes: Sequence[str], *, where: str) -> None:
    """The first few notes of a loader, and how to see the rest."""
    for note in notes[:_SHOWN_NOTES]:
        tell(f"note: {note}")
    if len(notes) > _SHOWN_NOTES:
        tell(f"note: {len(notes) - _SHOWN_NOTES} more; 'leastaction info {where}' shows all of them")


@contextmanager
def say_when_compiling() -> Iterator[None]:
    """Say so in one line if a kernel has to be compiled inside the block."""
    from leastaction.jit.notice import spoken_by

    with spoken_by(tell):
        yield


def check_output(path: Path | None, endings: Sequence[str], option: str) -> None:
    """Raise unless a file with one of the endings can be written at the path; leaves nothing behind."""
    from leastaction.model.files import check_writable

    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise ModelError(f"{option} {path}: the ending must be {' or '.join(endings)}.")
    check_writable(path)
    if endings is PICTURES:
        check_matplotlib(option)


def check_folder(folder: Path, option: str) -> None:
    """Raise unless a file can really be made in the folder, which is more than its permissions say."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise ModelError(f"{option}: the folder {folder} cannot be written ({error.strerror or error}).") from error


def make_folder(folder: Path, option: str) -> None:
    """Make a folder for results, unless it exists, and make sure that it can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{option} {folder}: the folder cannot be made ({error.strerror or error}).") from error
    check_folder(folder, option)


def check_matplotlib(option: str) -> None:
    """Raise unless pictures can be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ModelError(f"{option}: pictures need matplotlib; install the extra: pip install 'leastaction[plot]'.")


def check_viser(option: str) -> None:
    """Raise unless the live viewer is there."""
    if importlib.util.find_spec("viser") is None:
        raise ModelError(f"{option}: the viewer needs viser; install the extra: pip install 'leastaction[view]'.")
