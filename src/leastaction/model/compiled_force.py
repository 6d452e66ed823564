"""Forces whose law is compiled: the one law serves the compiled step and what Python asks of a force."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from typing import Any

import numpy as np

from leastaction.jit.callbacks import FORCE_TYPE
from leastaction.model.checks import FloatArray
from leastaction.model.force_base import Force

_POINTER = ctypes.POINTER(ctypes.c_double)


class CompiledForce(Force):
    """A force with a law of ``forces/laws``. Besides name, bodies, ``conservative`` and energy it gives two members.

    1. ``law``: the two functions of its law, wrench and derivatives, which are compiled on first use.
    2. ``numbers``: what the law gets beside the bodies.
    """

    @property
    @abstractmethod
    def law(self) -> tuple[Any, Any]:
        """Wrench and derivatives, each with an ``address``."""

    @property
    @abstractmethod
    def numbers(self) -> FloatArray:
        """The law's own numbers (n,)."""

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrenches (k, 6)."""
        k = len(self.bodies)
        return call_function(self.law[0].address, t, self._given(poses, twists), 6 * k).reshape(k, 6)

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6k, 6k)."""
        n = 6 * len(self.bodies)
        K, D = call_function(self.law[1].address, t, self._given(poses, twists), 2 * n * n).reshape(2, n, n)
        return K, D

    def _given(self, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """What the law gets: 18 numbers of each body, and its own."""
        k = len(self.bodies)
        rows = np.concatenate([poses[:, :3, :3].reshape(k, 9), poses[:, :3, 3], twists], axis=1)
        return np.concatenate([rows.ravel(), self.numbers])


def call_function(address: int, t: float, given: FloatArray, size: int) -> FloatArray:
    """Output (size,) of the function at an address."""
    out, given = np.zeros(size), np.ascontiguousarray(given, dtype=float)
    FORCE_TYPE(address)(t, given.ctypes.data_as(_POINTER), out.ctypes.data_as(_POINTER))
    return out
