"""How this package compiles: one decorator for parts, one for entry points, and its own disk cache.

* ``kernel`` marks a part that is inlined into whatever calls it; it stays callable from Python. Without forced
  inlining LLVM passes the arrays of a tree through the stack at every call, which measured 1.7 times slower.
* ``sweep`` marks a whole pass over the tree: called, not inlined, so that it is compiled once.
* ``memory`` marks a part that allocates; only such parts and entries do.
* ``entry`` marks a function that Python calls. Its machine code is kept on disk.

``jit.compiler`` says how parts are compiled, ``jit.cache`` where machine code is kept; ``numba.config`` is never
touched.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import njit, types
from numba.core import event
from numba.extending import overload, register_jitable

from leastaction.jit.cache import KernelCache
from leastaction.jit.compiler import EntryCompiler, PartCompiler
from leastaction.spatial import _source
from leastaction.spatial._source.scalar import SOURCES

# No nnan and no ninf: kernels test for non-finite numbers. No reassoc: lanes and scalars add in one order.
FASTMATH = {"contract", "nsz", "arcp"}
MEMORY_OPTIONS = {
    "fastmath": FASTMATH,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": PartCompiler,
}
# Sweeps and parts neither allocate nor return arrays, so they count no references: counting those of some thirty arrays
# at every call cost as much as the sweep itself, and most of the time to compile it. Numba refuses an allocation here.
SWEEP_OPTIONS = {**MEMORY_OPTIONS, "_nrt": False}
PART_OPTIONS = {**SWEEP_OPTIONS, "forceinline": True}
ENTRY_OPTIONS = {
    "fastmath": FASTMATH,
    "error_model": "numpy",
    "nogil": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": EntryCompiler,
}


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
    dispatcher._cache = KernelCache(function)
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
