"""Functions of this package that compiled code calls through an address, as it calls those of the user.

A rollout calls the law of a force by its address, so one program serves mechanisms with any forces, and a new force
compiles nothing anew. A law is ``void (t, in, out)`` on plain vectors; its machine code is kept on disk.
"""

# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.core.ccallback import CFunc

from leastaction.jit.cache import KernelCache
from leastaction.jit.compiler import EntryCompiler
from leastaction.jit.decorators import FASTMATH

FORCE = types.void(types.float64, types.CPointer(types.float64), types.CPointer(types.float64))
_OPTIONS = {"nopython": True, "fastmath": FASTMATH, "error_model": "numpy"}


class ForceFunction:
    """A function ``(t, in, out)`` with a C address: compiled on first use."""

    def __init__(self, function: Callable[..., None], kept: bool) -> None:
        self.py_func = function
        self._compiled = CFunc(
            function, (FORCE.args, FORCE.return_type), locals={}, options=_OPTIONS, pipeline_class=EntryCompiler
        )
        if kept:
            self._compiled._cache = KernelCache(function)

    @property
    def address(self) -> int:
        """Where its machine code begins."""
        if self._compiled.address is None:
            self._compiled.compile()
        return int(self._compiled.address)


def force_function(function: Callable[..., None]) -> ForceFunction:
    """A law of this package; see ``forces/laws``."""
    return ForceFunction(function, True)


def of_user(function: Callable[..., Any], bodies: int, numbers: int, outputs: tuple[int, ...]) -> ForceFunction:
    """A Numba function (t, bodies, numbers, *outputs) of a user, on arrays (k, 18), (n,) and the shapes of outputs."""
    from numba import carray, njit
    from numba.extending import is_jitted

    size = 18 * bodies
    function = function if is_jitted(function) else njit(error_model="numpy")(function)
    if len(outputs) == 1:
        (rows,) = outputs

        def call(t, given, out):
            every = carray(given, (size + numbers,))
            function(t, every[:size].reshape(bodies, 18), every[size:], carray(out, (rows,)).reshape(rows // 6, 6))

    else:
        n = outputs[0]

        def call(t, given, out):
            every, both = carray(given, (size + numbers,)), carray(out, (2 * n * n,))
            K, D = both[: n * n].reshape(n, n), both[n * n :].reshape(n, n)
            function(t, every[:size].reshape(bodies, 18), every[size:], K, D)

    return ForceFunction(call, False)
