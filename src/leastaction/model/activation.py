"""Activations: a filter or an integrator between the input of an actuator and its force.

A filter follows its input, act' = (input - act)/lag, and an integrator adds it up, act' = input. Every method holds an
activation over a step at the value that it has at the start, as it holds an input; from step to step the solution for
inputs that are held is exact. At first a servo is activated where it pulls by itself, and a motor is not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.model.actuation import inputs_by_name
from leastaction.model.checks import FloatArray
from leastaction.model.elements import Actuator

if TYPE_CHECKING:
    from leastaction.model.model import Model


def activated(model: Model) -> dict[str, Actuator]:
    """The actuators that have an activation."""
    return {name: each for name, each in model.mechanism.actuators.items() if each.has_activation}


def _first(actuator: Actuator) -> float:
    """Activation at the start of a run."""
    return actuator.target if actuator.is_servo else 0.0


def _part(actuator: Actuator, h: float) -> tuple[float, float]:
    """c and b of act <- c act + b input over a step h."""
    if actuator.integrates:
        return 1.0, h
    c = float(np.exp(-h / actuator.lag))
    return c, 1.0 - c


def _cut(value: Any, bounds: tuple[float, float] | None) -> FloatArray:
    """A value within bounds, if there are any."""
    return np.asarray(value if bounds is None else np.clip(value, *bounds), dtype=float)


def _next(actuator: Actuator, act: FloatArray, given: FloatArray, h: float, bounded: bool) -> FloatArray:
    """Activation after a step h with an input that is held."""
    c, b = _part(actuator, h)
    given = _cut(given, actuator.input_range if bounded else None)
    return _cut(c * act + b * given, actuator.activation_range)


def with_activations(model: Model, inputs: Any, times: FloatArray) -> dict[str, FloatArray]:
    """Inputs by name (..., steps) with activations in place of the inputs that they follow.

    Args:
        model: the model.
        inputs: as ``Model.actuate`` takes them; one number stands for all steps.
        times: (steps + 1,) of the steps, seconds.
    """
    arrays, bounded, steps = inputs_by_name(model, inputs), model.mechanism.limits_enforced, len(times) - 1
    for name, actuator in activated(model).items():
        if name not in arrays:
            continue
        rows = np.broadcast_to(arrays[name], (steps,)) if arrays[name].ndim == 0 else arrays[name]
        out, act = np.empty(rows.shape), np.full(rows.shape[:-1], _first(actuator))
        for k in range(min(steps, rows.shape[-1])):
            out[..., k] = act
            act = _next(actuator, act, rows[..., k], float(times[k + 1] - times[k]), bounded)
        arrays[name] = out
    shape = max((array.shape for array in arrays.values()), key=len, default=())
    return {name: np.broadcast_to(array, shape) if array.ndim else array for name, array in arrays.items()}


def followed(model: Model, function: Callable[[float, Any], Any]) -> Callable[[float, Any], Mapping[str, FloatArray]]:
    """A function of inputs with activations in place of those that they follow; it is asked at the start of each step.

    It remembers all times, so that steps may be taken again.
    """
    lagging, bounded = activated(model), model.mechanism.limits_enforced
    times: list[float] = []
    known: list[tuple[dict[str, FloatArray], dict[str, FloatArray]]] = []

    def call(t: float, state: Any) -> Mapping[str, FloatArray]:
        inputs = inputs_by_name(model, function(t, state))
        given = {
            name: inputs.get(name, np.array(0.0 if each.integrates else _first(each))) for name, each in lagging.items()
        }
        at = bisect_left(times, t)
        if at < len(times) and times[at] == t:
            acts = known[at][0]
        elif at == 0:
            acts = {name: np.array(_first(each)) for name, each in lagging.items()}
        else:
            (before, held), h = known[at - 1], t - times[at - 1]
            acts = {name: _next(each, before[name], held[name], h, bounded) for name, each in lagging.items()}
        # what came later was another motion, unless it is taken again step by step
        if not (at < len(times) and times[at] == t):
            del times[at:], known[at:]
            times.append(t)
            known.append((acts, given))
        known[at] = (acts, given)
        return {**inputs, **acts}

    return call


def inputs_behind(model: Model, inputs: FloatArray, acts: FloatArray, by: FloatArray, times: FloatArray) -> FloatArray:
    """Derivatives (steps, nu) by inputs of what has derivatives ``by`` by the activations ``acts``, all (steps, nu)."""
    out, bounded = by.copy(), model.mechanism.limits_enforced
    for u, actuator in enumerate(model.mechanism.actuators.values()):
        if not actuator.has_activation:
            continue
        later = 0.0
        for k in range(len(by) - 1, -1, -1):
            c, b = _part(actuator, float(times[k + 1] - times[k]))
            given = float(_cut(inputs[k, u], actuator.input_range if bounded else None))
            # bounds hold on to what they cut
            free = c * acts[k, u] + b * given
            moves = (
                actuator.activation_range is None or actuator.activation_range[0] < free < actuator.activation_range[1]
            )
            out[k, u] = b * later if moves and given == inputs[k, u] else 0.0
            later = by[k, u] + (c * later if moves else 0.0)
    return out
