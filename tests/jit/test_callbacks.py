"""Errors in functions of the user end their own run at that step, whenever they strike."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading

import numpy as np
import pytest

import leastaction as la
from leastaction.jit import callbacks


class _OwnError(Exception):
    pass


def _with_law(force, derivative=lambda q: -3 * q**2):
    m = la.Mechanism("law")
    m.add_body("a", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
    m.add_joint("j", "revolute", parent="world", child="a", axis=(0, 1, 0), stiffness=la.Law(force, derivative))
    return m.build()


def test_an_interrupt_before_the_wrapper_begins_is_heard_and_leaves_no_number():
    """Ctrl-C mostly strikes at the first instruction of the wrapper, where no handler of its own can catch it."""
    callback = callbacks.control_callback(lambda t, q, v: np.ones(2), 2, 2)
    out = np.zeros(2)
    point = ctypes.POINTER(ctypes.c_double)
    call = callbacks.CONTROL_TYPE(callback.address)

    def interrupt(frame, event, argument):
        if event == "call" and frame.f_code.co_name == "call":
            sys.settrace(None)
            raise KeyboardInterrupt
        return None

    arguments = [array.ctypes.data_as(point) for array in (np.zeros(2), np.zeros(2), out)]
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        call(0.0, *arguments)
    finally:
        sys.settrace(before)
    assert callback.unwritten
    # as long as nobody has taken the error, there are no numbers
    call(0.0, *arguments)
    assert np.isnan(out).all()
    assert isinstance(callbacks.take_pending([callback]), KeyboardInterrupt)
    call(0.0, *arguments)
    assert out.tolist() == [1.0, 1.0]
    assert callback.error is None


def test_an_interrupt_at_the_entry_ends_a_run_and_its_rows_are_those_of_the_whole_run():
    model = la.models.double_pendulum().build()
    x0 = model.state(q=[0.8, 0.3])

    def control(t, state):
        return np.array([np.sin(30 * t), 0.2])

    whole = la.simulate(model, x0, dt=0.01, duration=2.0, method="rk4", control=control)
    before = sys.gettrace()
    for stop in (1, 2, 60, 150):
        entered = [0]

        def interrupt(frame, event, argument, entered=entered, stop=stop):
            if frame.f_code.co_name == "call" and frame.f_code.co_filename == callbacks.__file__:
                entered[0] += 1
                if entered[0] == stop:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return None

        sys.settrace(interrupt)
        try:
            with pytest.raises(KeyboardInterrupt) as caught:
                la.simulate(model, x0, dt=0.01, duration=2.0, method="rk4", control=control)
        finally:
            sys.settrace(before)
        run = caught.value.run
        assert run.steps < stop
        assert np.array_equal(run.q, whole.q[: len(run.q)])


def test_a_signal_inside_a_control_ends_the_run():
    model = la.models.double_pendulum().build()
    calls = [0]

    def control(t, state):
        calls[0] += 1
        if calls[0] == 60:
            os.kill(os.getpid(), signal.SIGINT)
        return np.array([np.sin(30 * t), 0.2])

    with pytest.raises(KeyboardInterrupt):
        la.simulate(model, dt=0.01, duration=2.0, method="rk4", control=control)
    assert calls[0] <= 61


def test_threads_that_share_a_model_do_not_get_errors_of_each_other():
    def force(q):
        if q > 2.0:
            raise _OwnError("too far")
        return -(q**3)

    model = _with_law(force)
    (callback, *_) = model.callbacks
    found = {}

    def fail_and_wait():
        # the error waits here while the other thread runs the same model
        assert np.isnan(callbacks.LAW_TYPE(callback.address)(2.5))
        failed.set()
        done.wait(60)
        found["error"] = callbacks.take_pending(model.callbacks)

    failed, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=fail_and_wait)
    thread.start()
    try:
        assert failed.wait(60)
        la.simulate(model, model.state(q=[0.5]), dt=0.01, duration=0.05, method="rk4")
        model.raise_pending()
    finally:
        done.set()
        thread.join()
    assert isinstance(found["error"], _OwnError)


def test_exceptions_of_others_that_cannot_be_raised_go_to_the_hook_that_was_there(monkeypatch):
    given = []
    monkeypatch.setattr(sys, "unraisablehook", given.append)
    callbacks.listen()
    callbacks.listen()

    class Bad:
        def __del__(self):
            raise ValueError("foreign")

    bad = Bad()
    del bad
    assert len(given) == 1
    assert isinstance(given[0].exc_value, ValueError)
