"""Functions of the user as plain C pointers, so that a compiled rollout needs no second, slow form. No Numba here.

A Numba ``cfunc`` is called at full speed. A plain Python function is wrapped by ctypes: the same compiled loop calls
it back at a cost of a few microseconds. If it raises, the output becomes NaN, the loop stops, and the error is
raised again on the Python side by ``raise_pending``. Of several errors the first one counts: others may follow from it,
for a NaN that one function leaves reaches the next.

Errors belong to the thread that called: compiled code calls back in its own thread, so runs that share a model in
several threads do not see each other's.

An interrupt may strike before the wrapper has begun or after it has ended. No Python code can catch it there: ctypes
hands it to ``sys.unraisablehook`` and the output is not written. A hook of this module takes it up, the callback counts
as ``unwritten``, gives NaN from then on, and the caller drops what the compiled loop made of it.

    control  void (double t, const double *q, const double *v, double *tau)
    law      double (double)
    force    void (double t, const double *in, double *out)
"""

from __future__ import annotations

import ctypes
import itertools
import math
import sys
import threading
import weakref
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


class _Errors(threading.local):
    """The first error of a function in one thread, its number among all errors, and whether its output is missing."""

    error: BaseException | None = None
    number = 0
    unwritten = False


class Callback:
    """One function of the user: its address, and for each thread the first error that it raised there."""

    def __init__(self, address: int, keep: Any = None) -> None:
        self.address = address
        self._keep = keep
        self._here = _Errors()

    @property
    def error(self) -> BaseException | None:
        """The error that waits in this thread, or None."""
        return self._here.error

    @property
    def number(self) -> int:
        """Place of that error among all errors; smaller ones come first."""
        return self._here.number

    @property
    def unwritten(self) -> bool:
        """Whether a call in this thread ended without an output: what compiled code made of it is not valid."""
        return self._here.unwritten

    def fail(self, error: BaseException, unwritten: bool = False) -> None:
        """Keep an error, unless there is an earlier one; Ctrl-C comes before all."""
        here = self._here
        here.unwritten = here.unwritten or unwritten
        if not isinstance(error, Exception):
            here.error, here.number = error, -1
        elif here.error is None:
            here.error, here.number = error, next(_errors)

    def forget(self) -> None:
        """Forget the error of this thread."""
        here = self._here
        here.error, here.unwritten = None, False


def take_pending(callbacks: Iterable[Callback]) -> BaseException | None:
    """The first error of some functions in this thread, and all are forgotten; None if there was none."""
    failed = [callback for callback in callbacks if callback.error is not None]
    error = min(failed, key=lambda callback: callback.number).error if failed else None
    for callback in failed:
        callback.forget()
    return error


# --- errors that no wrapper can catch --------------------------------------------------------------------------------
_wrappers: weakref.WeakValueDictionary[str, Callback] = weakref.WeakValueDictionary()


def _hook_before(previous: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook for exceptions that cannot be raised: those of wrappers go to their callbacks, others to ``previous``."""

    def hook(unraisable: Any) -> None:
        # ctypes gives the function itself, or its name in the message, by version
        words = repr(unraisable.object) if unraisable.object is not None else str(unraisable.err_msg)
        owner = next((callback for name, callback in list(_wrappers.items()) if name in words), None)
        if owner is None:
            previous(unraisable)
        else:
            owner.fail(unraisable.exc_value or unraisable.exc_type(), unwritten=True)

    hook.is_ours = True  # type: ignore[attr-defined]
    return hook


def listen() -> None:
    """See that exceptions between compiled code and a wrapper are heard, also where others have set a hook since."""
    if not getattr(sys.unraisablehook, "is_ours", False):
        sys.unraisablehook = _hook_before(sys.unraisablehook)


def is_compiled(function: Any) -> bool:
    """Whether the function is a Numba ``cfunc``."""
    return isinstance(getattr(function, "address", None), int) and hasattr(function, "native_name")


def _wrap(function: Any, prototype: Any, body: Callable[[Callback], Callable[..., Any]]) -> Callback:
    if is_compiled(function):
        return Callback(function.address, function)
    callback = Callback(0)
    wrapper = body(callback)
    _wrappers[repr(wrapper)] = callback
    listen()
    pointer = prototype(wrapper)
    callback.address = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    callback._keep = pointer
    return callback


def control_callback(function: Any, nq: int, nv: int) -> Callback:
    """``function(t, q, v) -> (nv,)`` generalised forces."""

    def body(callback: Callback) -> Callable[..., None]:
        def call(t: float, q: Any, v: Any, tau: Any) -> None:
            try:
                out = _view(tau, nv)
                out[:] = np.nan
                if not callback.unwritten:
                    out[:] = function(t, _view(q, nq).copy(), _view(v, nv).copy())
            except BaseException as error:
                _view(tau, nv)[:] = np.nan
                callback.fail(error)

        return call

    return _wrap(function, CONTROL_TYPE, body)


def law_callback(function: Any) -> Callback:
    """``function(x) -> force`` of one number."""

    def body(callback: Callback) -> Callable[..., float]:
        def call(x: float) -> float:
            try:
                return math.nan if callback.unwritten else float(function(x))
            except BaseException as error:
                callback.fail(error)
                return math.nan

        return call

    return _wrap(function, LAW_TYPE, body)


def force_callback(function: Any, inputs: int, outputs: int) -> Callback:
    """``function(t, in) -> out`` with flat arrays of fixed sizes."""

    def body(callback: Callback) -> Callable[..., None]:
        def call(t: float, given: Any, result: Any) -> None:
            try:
                out = _view(result, outputs)
                out[:] = np.nan
                if not callback.unwritten:
                    out[:] = np.ravel(function(t, _view(given, inputs).copy()))
            except BaseException as error:
                _view(result, outputs)[:] = np.nan
                callback.fail(error)

        return call

    return _wrap(function, FORCE_TYPE, body)


def _view(pointer: Any, n: int) -> Any:
    return np.ctypeslib.as_array(pointer, (n,)) if n else np.zeros(0)
