"""How this package compiles: one decorator for parts, one for entry points, and its own disk cache.

* ``kernel`` marks a part that is inlined into whatever calls it; it stays callable from Python. Without forced
  inlining LLVM passes the arrays of a tree through the stack at every call, which measured 1.7 times slower.
* ``sweep`` marks a whole pass over the tree: called, not inlined, so that it is compiled once.
* ``memory`` marks a part that allocates; only such parts and entries do.
* ``entry`` marks a function that Python calls. Its machine code is kept on disk.

Numba looks only at the file of the cached function, not at the files of the functions it calls, so an edit in a
helper would silently run old code. The cache folder is therefore named by a hash of all kernel sources. It lies
beside the package, or in the user's cache folder where the package cannot be written, or where
``LEASTACTION_CACHE_DIR`` says; ``numba.config`` is never touched.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pkgutil
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core import event
from numba.core.caching import Cache, CompileResultCacheImpl, _CacheLocator
from numba.extending import overload, register_jitable

from leastaction.spatial import _source
from leastaction.spatial._source.scalar import SOURCES

# No nnan and no ninf: kernels test for non-finite numbers. No reassoc: lanes and scalars agree to the last bit.
FASTMATH = {"contract", "nsz", "arcp"}
MEMORY_OPTIONS = {"fastmath": FASTMATH, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Sweeps and parts neither allocate nor return arrays, so they count no references: counting those of some thirty arrays
# at every call cost as much as the sweep itself, and most of the time to compile it. Numba refuses an allocation here.
SWEEP_OPTIONS = {**MEMORY_OPTIONS, "_nrt": False}
PART_OPTIONS = {**SWEEP_OPTIONS, "forceinline": True}
ENTRY_OPTIONS = {"fastmath": FASTMATH, "error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}


@cache
def source_hash() -> str:
    """Hash of every source file that compiled code is made of."""
    package = Path(__file__).resolve().parent.parent
    files = sorted([*package.glob("kernels/*.py"), *package.glob("spatial/_source/*.py")])
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _writable(folder: Path) -> bool:
    """Whether a file can be made in the folder (made if missing)."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _forget_old(folder: Path) -> None:
    """Remove compiled code of other sources that was not made in the last two weeks."""
    for other in folder.iterdir() if folder.is_dir() else ():
        if other.is_dir() and other.name != source_hash() and time.time() - other.stat().st_mtime > 14 * 86400:
            shutil.rmtree(other, ignore_errors=True)


@cache
def cache_folder() -> Path:
    """The folder of compiled code for the present sources."""
    asked = os.environ.get("LEASTACTION_CACHE_DIR")
    beside = Path(__file__).resolve().parent / "__kernelcache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "leastaction"
    # The first folder that can be written wins; a temporary one is the last resort.
    for folder in [Path(asked)] if asked else [beside, user]:
        new = not (folder / source_hash()).exists()
        if _writable(folder / source_hash()):
            if new:
                _forget_old(folder)
            return folder / source_hash()
    return Path(tempfile.mkdtemp(prefix="leastaction-")) / source_hash()


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Numba's question where a function is cached, answered for this package."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self._name = py_func.__module__

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_hash()

    def get_disambiguator(self) -> str:
        return hashlib.sha256(self._name.encode()).hexdigest()[:8]

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _Locator:
        return cls(py_func)


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_Locator]  # noqa: RUF012  (the name and form are Numba's)


class _KernelCache(Cache):  # type: ignore[misc]
    _impl_class = _CacheImpl


ENTRIES: list[Any] = []


def kernel(function: Callable[..., Any]) -> Any:
    """A part of a kernel: inlined into whatever calls it."""
    return register_jitable(**PART_OPTIONS)(function)


def sweep(function: Callable[..., Any]) -> Any:
    """A whole pass over the tree: compiled once, called by entries and by other sweeps."""
    return register_jitable(**SWEEP_OPTIONS)(function)


def memory(function: Callable[..., Any]) -> Any:
    """A part that allocates scratch memory and returns it; only these and entries may."""
    return register_jitable(**MEMORY_OPTIONS)(function)


def optional(absent: Any, options: dict[str, Any] = SWEEP_OPTIONS) -> Callable[[Callable[..., Any]], Any]:
    """A sweep over a table that may be None: then it does nothing and returns ``absent``.

    A mechanism without loops and body forces so has a smaller program, which compiles in half the time.
    """

    def nothing(*args: Any) -> Any:
        return absent

    return either(nothing, options)


def either(other: Callable[..., Any], options: dict[str, Any] = SWEEP_OPTIONS) -> Callable[[Callable[..., Any]], Any]:
    """A sweep with two forms: ``other`` is compiled in its place where its first argument is None."""
    return forms(other, {}, options)


def forms(
    absent: Callable[..., Any], others: dict[type, Callable[..., Any]], options: dict[str, Any] = SWEEP_OPTIONS
) -> Callable[[Callable[..., Any]], Any]:
    """A sweep with several forms, by the type of its first argument.

    ``absent`` is compiled where it is None, one of ``others`` where it is that tuple or named tuple, else the sweep.
    """

    def wrap(function: Callable[..., Any]) -> Any:
        @overload(function, jit_options=options, strict=False)
        def choose(*args: Any) -> Any:
            if isinstance(args[0], types.NoneType):
                return absent
            return others.get(getattr(args[0], "instance_class", type(None)), function)

        return function

    return wrap


def entry(function: Callable[..., Any]) -> Any:
    """An entry point from Python: compiled on first use, kept on disk."""
    dispatcher = njit(**ENTRY_OPTIONS)(function)
    dispatcher._cache = _KernelCache(function)
    ENTRIES.append(dispatcher)
    return dispatcher


# The mathematics of spatial/ becomes callable from compiled code.
for _module in pkgutil.iter_modules(_source.__path__):
    importlib.import_module(f"{_source.__name__}.{_module.name}")
for _function in SOURCES:
    kernel(_function)


class _CompileListener(event.Listener):  # type: ignore[misc]
    """Calls ``said`` once, when a kernel is really compiled (not when it is read from the disk)."""

    def __init__(self, said: Callable[[str], None]) -> None:
        self.said: Callable[[str], None] | None = said

    def on_start(self, ev: Any) -> None:
        if self.said is not None:
            said, self.said = self.said, None
            said(ev.data["dispatcher"].py_func.__name__)

    def on_end(self, ev: Any) -> None:
        pass


@contextmanager
def announce_compilation(said: Callable[[str], None]) -> Iterator[None]:
    """Call ``said(name)`` if something has to be compiled inside the block."""
    with event.install_listener("numba:compile", _CompileListener(said)):
        yield
