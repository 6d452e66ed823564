"""Controls of a run: from what a user gives to what a rollout takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.jit.callbacks import control_callback, is_compiled
from leastaction.methods.base import Control
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State


def as_control(model: Model, control: Any, start: int, steps: int | None, points: int) -> Control:
    """The control of a run, as ``simulate`` takes it; rows of an array begin at step ``start``."""
    if control is None:
        return Control(np.zeros((0, model.nv)))
    if callable(control) or is_compiled(control):
        function = control if is_compiled(control) else _with_state(model, control)
        return Control(np.zeros((0, model.nv)), control_callback(function, model.nq, model.nv))
    if steps is None:
        raise ModelError(
            "simulate: an array of controls has one row for each step, and under step control their number is not "
            "known; give a function of time and state."
        )
    rows = _control_rows(control, steps, model.nv, points)
    return Control(np.concatenate([np.zeros((start, *rows.shape[1:])), rows]))


def _control_rows(control: Any, steps: int, nv: int, points: int) -> FloatArray:
    """An array (steps, nv) of controls, checked; or (steps, points, nv) for a method with that many in a step."""
    shapes = f"({steps}, {nv})" + (f" or ({steps}, {points}, {nv})" if points > 1 else "")
    wanted = f"an array {shapes}, a function of time and state, or None"
    try:
        array = np.asarray(control)
    except (TypeError, ValueError) as error:
        raise ModelError(f"simulate: control must be {wanted}, got {control!r}.") from error
    if array.dtype.kind not in "biuf":
        raise ModelError(f"simulate: control must be {wanted}, got {control!r}.")
    if array.shape != (steps, nv) and (points == 1 or array.shape != (steps, points, nv)):
        raise ModelError(f"simulate: control has shape {array.shape}, expected {shapes}.")
    if not np.isfinite(array).all():
        raise ModelError(f"simulate: control is not finite in row {int(np.argwhere(~np.isfinite(array))[0, 0])}.")
    return array.astype(float)


def _with_state(model: Model, control: Callable[..., Any]) -> Callable[..., FloatArray]:
    """A control of (t, q, v) from the user's control of (t, state), its result checked."""

    def call(t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        return model.check_v(control(t, State(t, q, v)), "control")

    return call
