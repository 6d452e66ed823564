"""Controls of a run: from what a user gives to what a rollout takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from leastaction.dynamics.tendon_arms import moment_arms
from leastaction.errors import ModelError, UnsupportedError
from leastaction.jit.callbacks import control_callback, is_compiled
from leastaction.methods.base import Control
from leastaction.model.activation import activated, followed, with_activations
from leastaction.model.actuation import acts_on_path, inputs_by_name
from leastaction.model.checks import FloatArray, check_array, quoted
from leastaction.model.model import Model, State


def given_control(
    model: Model, control: Any, ctrl: Any, steps: int | None, where: str, times: FloatArray | None = None
) -> Any:
    """A control or inputs of actuators as a user gives them: None, an array with a row for each step, or a function.

    Args:
        model: the model.
        control: see ``simulate``.
        ctrl: see ``simulate``.
        steps: number of steps, or None where it is not known.
        where: who asks, for errors.
        times: (steps + 1,) of the steps from the start of a run on; None where they are not known, or it goes on.
    """
    if control is not None and ctrl is not None:
        raise ModelError(f"{where}: give control= or ctrl=, not both; model.actuate(inputs) can be added to a control.")
    if ctrl is not None:
        if is_compiled(ctrl):
            raise ModelError(f"{where}: ctrl: a cfunc gives generalised forces; give it to control=.")
        lagging = activated(model)
        if lagging and where == "resume":
            raise UnsupportedError(
                f"resume: {quoted(list(lagging))} have activations, which a run does not keep; simulate in one go, or "
                "give control=."
            )
        paths = acts_on_path(model)
        if paths and where == "simulate_many":
            raise UnsupportedError(f"{where}: actuators on tendons through space follow the state; use simulate.")
        if callable(ctrl) or (lagging and times is None):
            function = ctrl if callable(ctrl) else lambda t, state: ctrl
            asked = lambda t, state: _returned_inputs(function(t, state), model.nu)  # noqa: E731
            asked = followed(model, asked) if lagging else asked
            return lambda t, state: model.actuate(asked(t, state), moment_arms(model, state.q) if paths else None)
        if paths:
            return _along_paths(model, ctrl, steps, times, where)
        forces = model.actuate(with_activations(model, ctrl, times) if lagging and times is not None else ctrl)
        if forces.ndim > 1 and steps is not None and forces.shape[-2] != steps:
            raise ModelError(
                f"{where}: ctrl has {forces.shape[-2]} rows for {steps} steps; give each actuator one number, or one "
                "for each step."
            )
        return _held(forces, steps)
    if isinstance(control, Mapping):
        return _held(_by_joint(model, control, where), steps)
    if _is_one_row(control, model.nv):
        return _held(model.check_v(control, "tau"), steps)
    return control


def _along_paths(model: Model, ctrl: Any, steps: int | None, times: FloatArray | None, where: str) -> Any:
    """Inputs of actuators some of which act on tendons through space: a function, as their arms follow the state."""
    given = inputs_by_name(model, ctrl) if times is None else with_activations(model, ctrl, times)
    if any(array.ndim for array in given.values()) and times is None:
        raise UnsupportedError(f"{where}: actuators act on tendons through space; give one row, or a function of time.")
    if any(array.ndim > 1 or (array.ndim == 1 and len(array) != steps) for array in given.values()):
        raise ModelError(f"{where}: ctrl: give each actuator one number, or one for each of the {steps} steps.")

    def call(t: float, state: Any) -> FloatArray:
        # the step that begins at t, or that holds it where a step is taken in parts
        k = 0 if times is None else int(np.searchsorted(times, t, side="right")) - 1
        row = {name: array[min(k, len(array) - 1)] if array.ndim else array for name, array in given.items()}
        return model.actuate(row, moment_arms(model, state.q))

    return call


def _is_one_row(control: Any, nv: int) -> bool:
    """Whether a control is (nv,) forces for all steps; rows of different lengths are refused with the others."""
    try:
        return isinstance(control, list | tuple | np.ndarray) and np.shape(control) == (nv,)
    except ValueError:
        return False


def _returned_inputs(inputs: Any, nu: int) -> Any:
    """What a function of inputs returned, if it is not nothing."""
    if inputs is None:
        raise ModelError(f"ctrl: the function returned None; return {nu} numbers or a dict by actuator.")
    return inputs


def _held(forces: FloatArray, steps: int | None) -> Any:
    """Forces for all steps where there is one row only."""
    if forces.ndim > 1:
        return forces
    if steps is None:
        return lambda t, state: forces
    return np.broadcast_to(forces, (steps, len(forces))).copy()


def _by_joint(model: Model, control: Mapping[str, Any], where: str) -> FloatArray:
    """Generalised forces (nv,) or (steps, nv) from a dict by joint, each constant or with a row for each step."""
    rows: dict[str, FloatArray] = {}
    for name, value in control.items():
        if name not in model.joints and name in model.mechanism.actuators:
            raise ModelError(f"{where}: control has forces by joint; '{name}' is an actuator: give its input to ctrl=.")
        nv, array = model.joint(name).nv, check_array(value, f"{where}: control: joint '{name}'")
        # one number for each step of a joint with one coordinate
        array = array.reshape(-1, 1) if nv == 1 and array.ndim == 1 and array.shape != (1,) else np.atleast_1d(array)
        if array.shape[-1] != nv or array.ndim > 2:
            names = ", ".join(model.joint(name).joint.velocity_names)
            raise ModelError(
                f"{where}: control: joint '{name}' has {nv} velocity coordinates ({names}), got {value!r}."
            )
        rows[name] = array
    lengths = {len(array) for array in rows.values() if array.ndim == 2}
    if len(lengths) > 1:
        raise ModelError(f"{where}: control: the joints have different numbers of steps: {sorted(lengths)}.")
    out = np.zeros((*lengths, model.nv))
    for name, array in rows.items():
        out[..., model.joint(name).v] = array
    return out


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
