"""The arrays in the file of a run, read within bounds: what an entry holds is known before it is unpacked.

A small file can unpack to thousands of times its size. So sizes come from the directory of the archive and from the
header of each array; entries that a run does not have are not read, and what all of them take together is bounded.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.files import MAX_MODEL_BYTES, check_json_size

UNPACKED, GROWTH = 256 * 2**20, 20
"""Arrays may take so many bytes, or so many times the size of the file if that is more, unless a limit is given."""

_TYPES = {np.dtype(np.float64), np.dtype(np.int64)}
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# zipfile: an unknown compression is NotImplementedError, an encrypted file RuntimeError, of which RecursionError, for
# text that is nested too deep, is one
_DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    OSError,
    EOFError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


class RunFile:
    """The content of a run's file: its description, and its arrays as they are asked for.

    Attributes:
        meta: the description.
    """

    def __init__(self, data: bytes, limit: int | None = None) -> None:
        self._left = max(UNPACKED, GROWTH * len(data)) if limit is None else limit
        with _damage():
            stream = io.BytesIO(data)
            if not zipfile.is_zipfile(stream):
                raise ModelError("this is not the file of a run.")
            self._archive = zipfile.ZipFile(stream)
            self._entries = {info.filename.removesuffix(".npy"): info for info in self._archive.infolist()}
            if len(self._entries) != len(self._archive.infolist()):
                raise ModelError("this is not the file of a run (two entries of one name).")
            self.meta: dict[str, Any] = self._description()

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def names(self, prefix: str) -> list[str]:
        """Names of the arrays that begin so."""
        return [name for name in self._entries if name.startswith(prefix)]

    def array(self, name: str, most: tuple[int, ...], cut: bool = False) -> Any:
        """An array of floats or whole numbers, which has at most as many numbers as one of the shape ``most``.

        cut: take the first rows of a longer one.
        """
        with _damage(), self._open(name) as stream:
            shape, fortran, dtype = _header(stream)
            if dtype not in _TYPES:
                raise ModelError(f"{name} holds {dtype}, not plain numbers.")
            # what follows the header, which may be less than it says
            whole = math.prod(shape) * dtype.itemsize
            if whole > self._entries[name].file_size:
                raise ModelError(f"{name} is shorter than its header says.")
            if cut and shape and shape[0] > most[0] and not fortran:
                shape = (most[0], *shape[1:])
            if math.prod(shape) > math.prod(most):
                raise ModelError(f"{name} has shape {shape}, expected {most}.")
            size = math.prod(shape) * dtype.itemsize
            self._take(size, name)
            data = stream.read(size)
            if len(data) != size:
                raise ModelError(f"{name} is shorter than its header says.")
            return np.frombuffer(bytearray(data), dtype).reshape(shape, order="F" if fortran else "C")

    def _description(self) -> dict[str, Any]:
        """The description, which is JSON in an array of one text."""
        with self._open("meta") as stream:
            shape, _, dtype = _header(stream)
            if shape != () or dtype.kind != "U":
                raise ModelError("this is not the file of a run (its description is not text).")
            if dtype.itemsize > 4 * MAX_MODEL_BYTES:
                size = f"{dtype.itemsize // 4} characters, at most {MAX_MODEL_BYTES} are read"
                raise ModelError(f"the description of the run is too large ({size}).")
            self._take(dtype.itemsize, "meta")
            text = stream.read(dtype.itemsize).decode("utf-32-be" if dtype.byteorder == ">" else "utf-32-le")
        check_json_size(text)
        meta = json.loads(text.rstrip("\0"))
        return meta if isinstance(meta, dict) else {}

    def _open(self, name: str) -> Any:
        """The bytes of an entry."""
        info = self._entries[name]
        if info.compress_type not in _PACKINGS:
            raise ModelError(f"{name} is packed in a way that runs are not.")
        return self._archive.open(info)

    def _take(self, size: int, name: str) -> None:
        """Count what is unpacked."""
        self._left -= size
        if self._left < 0:
            raise ModelError(
                f"the run is too large: {name} would take {size} bytes, {-self._left} more than are unpacked from a "
                "file of this size; if you trust the file, give limit= (bytes)."
            )


@contextmanager
def _damage() -> Iterator[None]:
    """Say of anything that goes wrong in the archive that the file is damaged."""
    try:
        yield
    except ModelError:
        raise
    except _DAMAGE as error:
        raise ModelError(f"this is not the file of a run ({error}).") from error


def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array, from the beginning of its entry; nothing is unpickled."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ModelError(f"an array has the unknown version {version}.")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    if dtype.hasobject or any(n < 0 for n in shape):
        raise ModelError("an array holds objects, or has a negative length.")
    return shape, fortran, dtype
