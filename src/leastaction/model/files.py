"""Reading and writing files with care: regular files only, nothing half written."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leastaction.errors import ModelError

# Files of strangers larger than this are refused.
LARGEST_FILE = 2_000_000_000


def check_regular(path: Path, largest: int = LARGEST_FILE) -> None:
    """Raise unless the path is a readable regular file of sensible size; never opens it, so a pipe cannot hang."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror or error}.") from error
    if stat.S_ISDIR(status.st_mode):
        raise ModelError(f"{path}: is a folder, a file is needed.")
    if not stat.S_ISREG(status.st_mode):
        raise ModelError(f"{path}: is not a regular file (a device, pipe or socket).")
    if status.st_size == 0:
        raise ModelError(f"{path}: the file is empty.")
    if status.st_size > largest:
        raise ModelError(f"{path}: {status.st_size} bytes are more than the {largest} that are read.")


def read_bytes(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """Content of a regular file."""
    check_regular(path, largest)
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error}).") from error


def check_writable(path: Path) -> None:
    """Raise unless a file can be made at the path."""
    folder = path.parent
    if path.is_dir():
        raise ModelError(f"{path}: is a folder, a file name is needed.")
    if not folder.is_dir():
        raise ModelError(f"{path}: the folder {folder} does not exist; make it first.")
    if not os.access(folder, os.W_OK):
        raise ModelError(f"{path}: the folder {folder} cannot be written.")


def write_beside(path: Path, write: Callable[[Any], None]) -> None:
    """Let ``write`` fill a binary stream beside the path, then move it into place; on an error nothing changes."""
    check_writable(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error.strerror or error}).") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
        # the permissions of an ordinary new file
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        Path(name).unlink(missing_ok=True)
