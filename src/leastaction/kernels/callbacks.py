"""Functions of the user as plain C pointers, so that a compiled rollout needs no second, slow form. No Numba here.

A Numba ``cfunc`` is called at full speed. A plain Python function is wrapped by ctypes: the same compiled loop calls
it back at a cost of a few microseconds. If it raises, the output becomes NaN, the loop stops, and the error is
raised again on the Python side by ``raise_pending``. Of several errors the first one counts: others may follow from it,
for a NaN that one function leaves reaches the next.

    control  void (double t, const double *q, const double *v, double *tau)
    law      double (double)
    force    void (double t, const double *in, double *out)
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

_POINTER = ctypes.POINTER(ctypes.c_double)
CONTROL_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_double, _POINTER, _POINTER, _POINTER)
LAW_TYPE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
FORCE_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_double, _POINTER, _POINTER)


_errors = itertools.count()


def control_at(address: int, t: float, q: Any, v: Any) -> Any:
    """Generalised forces (nv,) that the control behind an address gives at a time and a state."""
    out = np.zeros(len(v))
    inputs = [np.ascontiguousarray(array, dtype=float) for array in (q, v)]
    CONTROL_TYPE(address)(t, *(array.ctypes.data_as(_POINTER) for array in (*inputs, out)))
    return out


class Callback:
    """One function of the user: its address, the first error it raised, and the number of that among all errors."""

    def __init__(self, address: int, keep: Any = None) -> None:
        self.address = address
        self.error: BaseException | None = None
        self.number = 0
        self._keep = keep

    def fail(self, error: BaseException) -> None:
        """Keep an error, unless there is an earlier one; Ctrl-C comes before all."""
        if not isinstance(error, Exception):
            self.error, self.number = error, -1
        elif self.error is None:
            self.error, self.number = error, next(_errors)


def take_pending(callbacks: Iterable[Callback]) -> BaseException | None:
    """The first error of some functions, and all are forgotten; None if there was none."""
    failed = [callback for callback in callbacks if callback.error is not None]
    error = min(failed, key=lambda callback: callback.number).error if failed else None
    for callback in failed:
        callback.error = None
    return error


def is_compiled(function: Any) -> bool:
    """Whether the function is a Numba ``cfunc``."""
    return isinstance(getattr(function, "address", None), int) and hasattr(function, "native_name")


def _wrap(function: Any, prototype: Any, body: Callable[[Callback], Callable[..., Any]]) -> Callback:
    if is_compiled(function):
        return Callback(function.address, function)
    callback = Callback(0)
    pointer = prototype(body(callback))
    callback.address = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    callback._keep = pointer
    return callback


def control_callback(function: Any, nq: int, nv: int) -> Callback:
    """``function(t, q, v) -> (nv,)`` generalised forces."""

    def body(callback: Callback) -> Callable[..., None]:
        def call(t: float, q: Any, v: Any, tau: Any) -> None:
            out = np.ctypeslib.as_array(tau, (nv,)) if nv else np.zeros(0)
            try:
                out[:] = function(t, _view(q, nq).copy(), _view(v, nv).copy())
            except BaseException as error:
                callback.fail(error)
                out[:] = np.nan

        return call

    return _wrap(function, CONTROL_TYPE, body)


def law_callback(function: Any) -> Callback:
    """``function(x) -> force`` of one number."""

    def body(callback: Callback) -> Callable[..., float]:
        def call(x: float) -> float:
            try:
                return float(function(x))
            except BaseException as error:
                callback.fail(error)
                return float("nan")

        return call

    return _wrap(function, LAW_TYPE, body)


def force_callback(function: Any, inputs: int, outputs: int) -> Callback:
    """``function(t, in) -> out`` with flat arrays of fixed sizes."""

    def body(callback: Callback) -> Callable[..., None]:
        def call(t: float, given: Any, result: Any) -> None:
            out = np.ctypeslib.as_array(result, (outputs,))
            try:
                out[:] = np.ravel(function(t, _view(given, inputs).copy()))
            except BaseException as error:
                callback.fail(error)
                out[:] = np.nan

        return call

    return _wrap(function, FORCE_TYPE, body)


def _view(pointer: Any, n: int) -> Any:
    return np.ctypeslib.as_array(pointer, (n,)) if n else np.zeros(0)
