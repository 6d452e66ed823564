"""Gradients of a result of a whole run by initial state, controls and parameters: the adjoint method.

BDF and SDIRK2 have an adjoint of their own (``Method.reverse``; Sueda 2021, section 3.5), which ``sensitivity.adjoint``
follows. Other methods go back through the derivatives A, B, C of their steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.methods.base import Clock, Control, Method
from leastaction.methods.closing import row_count
from leastaction.methods.parameters import PARAMETERS, columns
from leastaction.methods.reverse import Reverse
from leastaction.methods.tangent import start_projector
from leastaction.model.activation import inputs_behind, with_activations
from leastaction.model.actuation import slopes_of_inputs
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model, State, check_model
from leastaction.run.registry import check_supported, method_by_name
from leastaction.run.steps import check_steps
from leastaction.sensitivity.adjoint import backward
from leastaction.sensitivity.gradient_parameters import StepSums, check_parameters
from leastaction.sensitivity.linearize import linearize
from leastaction.sensitivity.objectives import Objective

_STATE = ("q", "v", "controls")
_MECHANISM = ("stiffness", "damping", "mass", "inertia", "placement", "friction")


@dataclass(frozen=True, eq=False)
class Gradient:
    """An objective of a run and its derivatives.

    Attributes:
        value: the objective.
        by: derivatives by the name of the parameter: "q" (nv,) by displacements of the first state, "v" (nv,),
            "controls" (steps, nv), "ctrl" (steps, nu), "stiffness" and "damping" (nv,), "mass" by body, "inertia"
            (3, 3) by body, "placement" (3,) by joint, "friction" by force; with ``Maximal`` by pair of bodies that may
            touch, and (nv of the joint,) by joint.
        state: the last state of the run.
    """

    value: float
    by: dict[str, Any]
    state: State

    def __getitem__(self, name: str) -> Any:
        """Derivatives by one parameter."""
        return self.by[name]


def gradient(
    model: Model,
    method: Method | str,
    x0: State,
    controls: Any,
    dt: Any,
    objective: Objective,
    parameters: Iterable[str] = _STATE,
    *,
    ctrl: Any = None,
    memory: float = 2e8,
) -> Gradient:
    """Value of an objective of a run and its gradient, by the adjoint method.

    Args:
        model: the mechanism.
        method: ``BDF``, ``SDIRK2``, or any method with ``linearize``; or a name.
        x0: first state.
        controls: generalised forces (steps, nv), held over the steps; None with ctrl=.
        dt: step in seconds, or an array (steps,).
        objective: what to differentiate; ``Reach``, ``Track``, ``Effort``, sums of them, or an ``Objective``.
        parameters: names of what to differentiate by: "q" and "v" (of the first state; with loops after ``project``),
            "controls"; "stiffness" and "damping" of the joints, "mass" (centre of mass and inertia about it fixed) and
            "inertia" (about the centre of mass, link axes) of the bodies, "placement" (position of a joint's
            parent_frame: link lengths): with BDF, SDIRK2, Galerkin and LieTrapezoid; "friction" of penalty contacts
            with BDF and SDIRK2; "mass", "inertia", "friction" of contacts and joints with Maximal; "ctrl", with ctrl=.
        ctrl: inputs of the actuators (steps, nu) in place of controls, which is None then.
        memory: most bytes of states that are kept; below what the run needs, parts of it are computed twice.

    Raises:
        UnsupportedError: the method has no gradient, or none by one of the parameters.
        ConvergenceError: a step failed.
    """
    check_model(model)
    method = method_by_name(method) if isinstance(method, str) else method
    if not isinstance(method, Method):
        raise ModelError(f"gradient: expected a method such as leastaction.BDF(2), got {method!r}.")
    if not isinstance(objective, Objective):
        raise ModelError(f"gradient: objective must be one such as leastaction.Reach(...), got {objective!r}.")
    if not isinstance(x0, State):
        raise ModelError(f"gradient: x0 must be a state, from model.state, got {x0!r}.")
    asked = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    if ctrl is not None:
        if controls is not None:
            raise ModelError("gradient: give controls or ctrl=, not both.")
        ctrl = check_rows(ctrl, model.nu, "gradient: ctrl")
        rows = (
            np.broadcast_to(np.asarray(dt, dtype=float), len(ctrl)) if np.ndim(dt) == 0 else np.asarray(dt, dtype=float)
        )
        times = np.concatenate([[0.0], np.cumsum(rows)])
        acts = _activations(model, ctrl, times)
        controls = model.actuate(acts)
    elif "ctrl" in asked:
        raise ModelError('gradient: "ctrl" is a parameter where ctrl= is given.')
    # inputs act through the controls
    behind = dict.fromkeys("controls" if name == "ctrl" else name for name in asked)
    names, reverse = check_gradient(method, model, behind)
    check_supported(method, model)
    state = model.state(x0.q, x0.v, x0.t)
    array = check_rows(controls, model.nv, "gradient: controls")
    objective.check_steps(len(array))
    if np.ndim(dt) == 0:
        clock = Clock(state.t, check_number(dt, "gradient: dt", positive=True))
    else:
        clock = Clock(state.t, check_steps(dt, state.t, "gradient: dt"))
        if len(clock.times) != len(array) + 1:
            raise ModelError(f"gradient: {len(clock.times) - 1} steps in dt, {len(array)} rows of controls.")
    if reverse is not None:
        check_parameters(model, names)
        value, by, end = backward(reverse, method, clock, np.ascontiguousarray(array), objective, state, names, memory)
    else:
        value, by, end = _by_steps(model, method, clock, array, objective, state, names)
    if not np.isfinite(value) or not all(np.isfinite(each).all() for each in _arrays(by)):
        raise ConvergenceError("gradient: the numbers are not finite; take a smaller dt, or check the objective.")
    if "ctrl" in asked:
        by_acts = np.einsum("kuv,kv->ku", slopes_of_inputs(model, acts), by["controls"])
        by["ctrl"] = inputs_behind(model, ctrl, acts, by_acts, times)
    return Gradient(value, {name: by[name] for name in asked}, end)


def _activations(model: Model, ctrl: FloatArray, times: FloatArray) -> FloatArray:
    """Inputs (steps, nu) with activations in place of those that they follow."""
    if len(times) != len(ctrl) + 1:
        raise ModelError(f"gradient: {len(times) - 1} steps in dt, {len(ctrl)} rows of ctrl.")
    found, out = with_activations(model, ctrl, times), ctrl.copy()
    for u, name in enumerate(model.mechanism.actuators):
        if name in found:
            out[:, u] = found[name]
    return out


def check_rows(value: Any, width: int, what: str) -> FloatArray:
    """An array (steps, width) of finite numbers, with a row at least."""
    array = np.asarray(value, dtype=float)
    if array.ndim != 2 or array.shape[1] != width or not len(array) or not np.isfinite(array).all():
        raise ModelError(f"{what} must be finite numbers (steps, {width}), got shape {array.shape}.")
    return array


def check_gradient(
    method: Method, model: Model, parameters: str | Iterable[str]
) -> tuple[tuple[str, ...], Reverse | None]:
    """Names of parameters, checked, and the method's own adjoint if it has one.

    Raises:
        UnsupportedError: the method has no gradient, or none by one of the parameters.
    """
    names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    for name in names:
        if name not in (*_STATE, *_MECHANISM):
            every = ", ".join((*_STATE, *_MECHANISM))
            raise ModelError(f"gradient: there is no parameter {name!r}; there are {every}.")
    if not method.has_derivative:
        raise UnsupportedError(
            f"gradient: {method.label} has no derivative of its step; bdf:1, bdf:2, sdirk2, galerkin:2 and rk4 do."
        )
    reverse = method.reverse(model)
    known = method.parameters if reverse is None else reverse.parameters
    for name in names:
        if name in _MECHANISM and name not in known:
            raise UnsupportedError(
                f"gradient: {method.label} has no derivative by {name}; bdf:1, bdf:2 and sdirk2 have one."
            )
    return names, reverse


def _arrays(by: dict[str, Any]) -> Iterable[Any]:
    """All numbers of a gradient."""
    for each in by.values():
        yield from each.values() if isinstance(each, dict) else (each,)


def _by_steps(
    model: Model, method: Method, clock: Clock, controls: FloatArray, objective: Objective, state: State,
    names: tuple[str, ...],
) -> tuple[float, dict[str, Any], State]:  # fmt: skip
    """Back through the derivatives A, B, C of the steps of any other method."""
    steps, n = len(controls), model.nv
    asked = [name for name in names if name in _MECHANISM]
    if method.parameters == PARAMETERS:
        # what is refused, is refused before the run
        columns(model, tuple(asked), f"gradient: {method.label}")
    memory = method.start(model, state)
    chunk = method.rollout(model, memory, clock, 0, steps, 1, Control(controls))
    model.raise_pending()
    if chunk.failure:
        raise ConvergenceError(f"gradient: {method.label}: {chunk.failure}", state=state)
    q, v = np.vstack([state.q, chunk.q]), np.vstack([state.v, chunk.v])
    states = [model.state(q[k], v[k], clock.at(k)) for k in range(steps + 1)]
    last = objective.final(model, states[-1])
    value, by = last.value, np.concatenate([_full(last.by_q, n), _full(last.by_v, n)])
    by_controls = np.zeros((steps, n))
    found = StepSums(model, asked)
    found.count(last)
    for k in range(steps - 1, -1, -1):
        step = linearize(model, method, states[k], controls[k], clock.length(k), asked)
        term = objective.step(model, k, states[k], controls[k])
        value += term.value
        found.count(term)
        found.add(step.C, by)
        by_controls[k] = _full(term.by_u, n) + step.B.T @ by
        by = np.concatenate([_full(term.by_q, n), _full(term.by_v, n)]) + step.A.T @ by
    if row_count(model):
        # the first state is one after ``project``, in the terms of the objective too
        by = start_projector(model, states[0]).T @ by
    return value, {"q": by[:n], "v": by[n:], "controls": by_controls, **found.results()}, states[-1]


def _full(part: FloatArray | None, n: int) -> FloatArray:
    """A derivative, zero where it is None."""
    return np.zeros(n) if part is None else part
