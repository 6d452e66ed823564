"""Reading and writing files of strangers and of users: regular files only, within a size, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from leastaction.errors import ModelError

MAX_MODEL_BYTES = 64 * 2**20
"""Largest model file (URDF, MJCF, JSON) that is read, in bytes."""

MAX_RUN_BYTES = 4 * 2**30
"""Largest file of a run that is read, in bytes."""

MAX_JSON_PARTS = 8_000_000
"""Most lists, entries and values in a JSON text that is read: each takes many times the memory of its character."""

_DAY = 86400.0


def check_json_size(text: str) -> None:
    """Refuse a JSON text of too many parts; counted before it is parsed."""
    parts = sum(text.count(mark) for mark in ",[{")
    if parts > MAX_JSON_PARTS:
        raise ModelError(f"the JSON text is too large ({parts} parts, at most {MAX_JSON_PARTS} are read).")


def check_path(path: str | os.PathLike[str]) -> Path:
    """The path as a ``Path``; anything that is not text or a path is refused."""
    # bytes and numbers would reach the operating system as something else than a path
    try:
        text = os.fspath(path)
    except TypeError as error:
        raise ModelError(f"expected the path of a file, got {path!r}.") from error
    if not isinstance(text, str) or not text:
        raise ModelError(f"expected the path of a file, got {path!r}.")
    return Path(text)


def check_regular_file(path: Path, what: str = "file", limit: int | None = None) -> None:
    """Refuse whatever is not an existing regular file (of at most ``limit`` bytes, and not empty), without opening it.

    A pipe would hang.
    """
    # ValueError: a zero byte in the name
    try:
        info = os.stat(path)
    except FileNotFoundError as error:
        raise ModelError(f"{path}: no such {what}.") from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot look at the {what}: {_reason(error)}.") from error
    _check_kind(path, info, what)
    if limit is not None:
        _check_size(path, info.st_size, what, limit)


def read_file(path: Path, what: str = "file", limit: int = MAX_MODEL_BYTES) -> bytes:
    """Content of a regular file of at most ``limit`` bytes; an empty one is an error."""
    check_regular_file(path, what, limit)
    # not blocking, and looked at again after opening: the name may have changed its meaning in between
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
        with os.fdopen(descriptor, "rb") as stream:
            info = os.fstat(stream.fileno())
            _check_kind(path, info, what)
            # one byte more than there is now: room is made for what is asked
            data = stream.read(min(info.st_size, limit) + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot read the {what}: {_reason(error)}.") from error
    # a file that grows while it is read is caught here
    if len(data) > info.st_size:
        raise ModelError(f"{path}: the {what} changes while it is read.")
    _check_size(path, len(data), what, limit)
    if not data.strip():
        raise ModelError(f"{path}: the {what} is empty.")
    return data


def check_writable(path: Path) -> None:
    """Refuse a path to which no file can be written, before long work is done for it; leaves nothing behind."""
    _check_target(path)
    # permissions say less than a file that is really made
    descriptor, beside = _make_beside(path)
    os.close(descriptor)
    Path(beside).unlink(missing_ok=True)


def _check_target(path: Path) -> None:
    """Refuse a folder that does not exist, and a name that is taken by something else than a file."""
    folder = path.parent
    gone = f"{path}: the output folder {folder} does not exist; make it first."
    try:
        if not stat.S_ISDIR(os.stat(folder).st_mode):
            raise ModelError(gone)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(gone) from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot look at the folder {folder}: {_reason(error)}.") from error
    # a new name is good; one that the system refuses, such as a too long one, is not
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelError(f"{path}: is not a regular file; give the name of a file to write.")
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: a file of this name cannot be written: {_reason(error)}.") from error


def _make_beside(path: Path) -> tuple[int, str]:
    """A new file in the same folder, so that a move stays within one file system: its descriptor and its name."""
    _remove_stale(path)
    try:
        return tempfile.mkstemp(prefix=f"{_beside(path)}{os.getpid()}-{_machine()}-", suffix=".part", dir=path.parent)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot write into the folder {path.parent}: {_reason(error)}.") from error


def _beside(path: Path) -> str:
    """How the names of unfinished files beside a path begin; process and machine of the writer follow."""
    return f".{path.name[:40]}."


def _machine() -> str:
    """A number for this machine: a process of another one, in a shared folder, cannot be asked for."""
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _remove_stale(path: Path) -> None:
    """Remove what killed writers of this file left beside it; what cannot be looked at or removed stays."""
    with contextlib.suppress(OSError, ValueError):
        for name in os.listdir(path.parent):
            if name.startswith(_beside(path)) and name.endswith(".part") and _is_stale(path.parent / name):
                with contextlib.suppress(OSError):
                    os.unlink(path.parent / name)


def _is_stale(part: Path) -> bool:
    """Whether an unfinished file is a day old, or its writer on this machine has ended."""
    info = os.lstat(part)
    if not stat.S_ISREG(info.st_mode):
        return False
    if time.time() - info.st_mtime > _DAY:
        return True
    pid, machine = (*part.name.removesuffix(".part").rpartition(".")[2].split("-"), "", "")[:2]
    # elsewhere than on POSIX, asking for a process is not harmless
    if os.name != "posix" or machine != _machine() or not pid.isdecimal() or len(pid) > 9 or int(pid) <= 0:
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def write_file(path: Path, text: str) -> None:
    """Write text as UTF-8, whole or not at all."""
    write_beside(path, lambda stream: stream.write(text.encode("utf-8")))


def write_beside(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let ``write`` fill a stream beside the path and move it there, so that nothing is ever half written."""
    _check_target(path)
    descriptor, beside = _make_beside(path)
    # whole, on the disk, with the permissions of a file the user made, then moved
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(beside, _permissions(path))
        os.replace(beside, path)
    except OSError as error:
        raise ModelError(f"{path}: cannot write the file: {_reason(error)}.") from error
    finally:
        Path(beside).unlink(missing_ok=True)


def _permissions(path: Path) -> int:
    """Permission bits of the file that is replaced, or those of a new one."""
    if path.exists():
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _check_kind(path: Path, info: os.stat_result, what: str) -> None:
    """Refuse folders, devices, pipes and sockets."""
    if stat.S_ISREG(info.st_mode):
        return
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    kind = kinds.get(stat.S_IFMT(info.st_mode), "something else")
    raise ModelError(f"{path}: is {kind}, not a regular {what}.")


def _check_size(path: Path, size: int, what: str, limit: int) -> None:
    """Refuse empty and too large files."""
    if size == 0:
        raise ModelError(f"{path}: the {what} is empty.")
    if size > limit:
        raise ModelError(f"{path}: the {what} is too large ({size} bytes or more, at most {limit} are read).")


def _reason(error: OSError | ValueError) -> str:
    """The operating system's words, without the path, which the message already has."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
