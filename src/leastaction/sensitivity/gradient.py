"""Gradients of a result of a whole run by initial state, controls and parameters: the adjoint method.

BDF and SDIRK2 have an adjoint of their own (``implicit/adjoint.py``; Sueda 2021, section 3.5; with loops
``implicit/loops_adjoint.py``). Other methods go back through the derivatives A, B, C of their steps. Memory is bounded
for the former: states are kept at checkpoints, and what lies between them is computed again on the way back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastaction.errors import ConvergenceError, ModelError, UnsupportedError
from leastaction.explicit.method import Explicit
from leastaction.implicit.loops_adjoint import backward as linked_backward
from leastaction.implicit.method import (
    BDF2_CODE,
    SDIRK2_CODE,
    Implicit,
    LinearlyImplicitEuler,
    differentiable,
    no_record,
    one_form,
    row_changes,
)
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method
from leastaction.methods.closing import row_count
from leastaction.methods.parameters import PARAMETERS, columns
from leastaction.methods.tangent import start_projector
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model, State, check_model
from leastaction.run.registry import check_supported, method_by_name
from leastaction.run.steps import check_steps
from leastaction.sensitivity.gradient_parameters import StepSums, Sums, check_parameters
from leastaction.sensitivity.linearize import linearize
from leastaction.sensitivity.objectives import Objective, Part

_STATE = ("q", "v", "controls")
_MECHANISM = ("stiffness", "damping", "mass", "inertia", "placement", "friction")


@dataclass(frozen=True, eq=False)
class Gradient:
    """An objective of a run and its derivatives.

    Attributes:
        value: the objective.
        by: derivatives by the name of the parameter: "q" (nv,) by displacements of the first state, "v" (nv,),
            "controls" (steps, nv), "stiffness" and "damping" (nv,), "mass" by body, "inertia" (3, 3) by body,
            "placement" (3,) by joint, "friction" by force (with ``Maximal`` by pair of bodies that may touch).
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
    memory: float = 2e8,
) -> Gradient:
    """Value of an objective of a run and its gradient, by the adjoint method.

    Args:
        model: the mechanism.
        method: ``BDF``, ``SDIRK2``, or any method with ``linearize``; or a name.
        x0: first state.
        controls: generalised forces (steps, nv), held over the steps.
        dt: step in seconds, or an array (steps,).
        objective: what to differentiate; ``Reach``, ``Track``, ``Effort``, sums of them, or an ``Objective``.
        parameters: names of what to differentiate by: "q" and "v" (of the first state; with loops after ``project``),
            "controls"; "stiffness" and "damping" of the joints, "mass" (centre of mass and inertia about it fixed) and
            "inertia" (about the centre of mass, link axes) of the bodies, "placement" (position of a joint's
            parent_frame: link lengths): with BDF, SDIRK2, Galerkin and LieTrapezoid; "friction" of penalty contacts
            with BDF and SDIRK2; "mass", "inertia", and "friction" of hard contacts with Maximal.
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
    names = check_gradient(method, parameters)
    check_supported(method, model)
    state = model.state(x0.q, x0.v, x0.t)
    array = np.asarray(controls, dtype=float)
    if array.ndim != 2 or array.shape[1] != model.nv or not len(array) or not np.isfinite(array).all():
        raise ModelError(f"gradient: controls must be finite numbers (steps, {model.nv}), got shape {array.shape}.")
    objective.check_steps(len(array))
    if np.ndim(dt) == 0:
        clock = Clock(state.t, check_number(dt, "gradient: dt", positive=True))
    else:
        clock = Clock(state.t, check_steps(dt, state.t, "gradient: dt"))
        if len(clock.times) != len(array) + 1:
            raise ModelError(f"gradient: {len(clock.times) - 1} steps in dt, {len(array)} rows of controls.")
    if isinstance(method, Implicit):
        check_parameters(model, names)
        out = _adjoint(_Run(model, method, clock, np.ascontiguousarray(array), objective), state, names, memory)
    else:
        out = _by_steps(model, method, clock, array, objective, state, names)
    if not np.isfinite(out.value) or not all(np.isfinite(each).all() for each in _arrays(out.by)):
        raise ConvergenceError("gradient: the numbers are not finite; take a smaller dt, or check the objective.")
    return Gradient(out.value, {name: out.by[name] for name in names}, out.state)


def check_gradient(method: Method, parameters: Iterable[str]) -> tuple[str, ...]:
    """Names of parameters, checked; UnsupportedError where the method has no gradient by one of them."""
    names = (parameters,) if isinstance(parameters, str) else tuple(parameters)
    for name in names:
        if name not in (*_STATE, *_MECHANISM):
            known = ", ".join((*_STATE, *_MECHANISM))
            raise ModelError(f"gradient: there is no parameter {name!r}; there are {known}.")
    if isinstance(method, LinearlyImplicitEuler) or (
        type(method).linearize is Method.linearize and not isinstance(method, Explicit)
    ):
        raise UnsupportedError(
            f"gradient: {method.label} has no derivative of its step; bdf:1, bdf:2, sdirk2, galerkin:2 and rk4 do."
        )
    if isinstance(method, Implicit) and method.free != "TR":
        raise UnsupportedError(f'gradient: {method.label} with free="RT" has no adjoint; take free="TR".')
    if not isinstance(method, Implicit):
        for name in names:
            if name in _MECHANISM and name not in method.parameters:
                raise UnsupportedError(
                    f"gradient: {method.label} has no derivative by {name}; bdf:1, bdf:2 and sdirk2 have one."
                )
    return names


def _arrays(by: dict[str, Any]) -> Iterable[Any]:
    """All numbers of a gradient."""
    for each in by.values():
        yield from each.values() if isinstance(each, dict) else (each,)


@dataclass(frozen=True, eq=False)
class _Run:
    """What a run is made of."""

    model: Model
    method: Implicit
    clock: Clock
    controls: FloatArray
    objective: Objective

    def part(self, memory: Memory, first: int, stop: int) -> tuple[Chunk, Any]:
        """Steps first .. stop - 1 from their memory, which moves on, with a trace."""
        trace = self.method.make_trace(self.model, stop - first)
        chunk = self.method.traced(
            self.model, memory, self.clock, first, stop - first, 1, Control(self.controls), trace
        )
        self.model.raise_pending()
        if chunk.failure:
            q, v = self.method.state(self.model, memory)
            last = self.model.state(q, v, self.clock.at(first + chunk.steps))
            raise ConvergenceError(f"gradient: {self.method.label}: {chunk.failure}", state=last)
        return chunk, trace

    def terms(self, q: FloatArray, v: FloatArray, first: int) -> list[Part]:
        """Terms of the objective of the steps from ``first`` on, one for each row of q and v."""
        return [
            self.objective.step(
                self.model, first + i, State(self.clock.at(first + i), q[i], v[i]), self.controls[first + i]
            )
            for i in range(len(q))
        ]


@dataclass(eq=False)
class _Back:
    """Derivatives on their way back: by the rows' states at and before the end of a part, and sums."""

    lx: FloatArray
    lu: FloatArray
    by_controls: FloatArray
    sums: Sums | None = None
    parts: list[int] = field(default_factory=list)


def _adjoint(run: _Run, state: State, names: tuple[str, ...], room: float) -> Gradient:
    """Forward with checkpoints, then back part by part."""
    model, method, steps, n = run.model, run.method, len(run.controls), run.model.nv
    each = 8.0 * (model.nq + 3 * n + len(model.system.tree.rows) + 2 * (model.nq + 3 * n))
    length = min(steps, max(math.ceil(math.sqrt(steps)), int(room / each)))
    # forward: checkpoints, the value, and the trace of the last part
    memory, value, starts = method.start(model, state), 0.0, list(range(0, steps, length))
    checkpoints: list[Memory] = []
    kept: Any = None
    for first in starts:
        checkpoints.append({name: array.copy() for name, array in memory.items()})
        kept = (*run.part(memory, first, min(first + length, steps)), None)
        q, v = _states(run, checkpoints[-1], kept[0])
        terms = run.terms(q[:-1], v[:-1], first)
        value += sum(term.value for term in terms)
        kept = (kept[0], kept[1], terms)
    end = model.state(q[-1], v[-1], run.clock.at(steps))
    last = run.objective.final(model, end)
    # back
    sums = Sums(differentiable(model), names) if set(names) & set(_MECHANISM) else None
    back = _Back(np.zeros((2, n)), np.zeros((2, n)), np.zeros((steps, n)), sums)
    back.lx[1], back.lu[1] = _to_rows(model, end, last)
    for number in range(len(starts) - 1, -1, -1):
        first = starts[number]
        start = checkpoints[number]
        if number < len(starts) - 1:
            again = {name: array.copy() for name, array in start.items()}
            chunk, trace = run.part(again, first, first + length)
            q, v = _states(run, start, chunk)
            kept = (chunk, trace, run.terms(q[:-1], v[:-1], first))
        _part_back(run, first, start, kept, back)
    maps = row_changes(model, state)
    by = maps.T @ np.concatenate([back.lx[1], back.lu[1]])
    if row_count(model):
        by = start_projector(model, state).T @ by
    found: dict[str, Any] = {"q": by[:n], "v": by[n:], "controls": back.by_controls}
    if sums is not None:
        sums.count(last, end.v)
        sums.begin(state, back.lx[1], back.lu[1])
        found |= sums.results()
    return Gradient(value + last.value, found, end)


def _states(run: _Run, memory: Memory, chunk: Chunk) -> tuple[FloatArray, FloatArray]:
    """States (steps + 1, ...) of a part, its first one from its checkpoint."""
    q, v = run.method.state(run.model, memory)
    return np.vstack([q, chunk.q]), np.vstack([v, chunk.v])


def _part_back(run: _Run, first: int, start: Memory, kept: Any, back: _Back) -> None:
    """One part back; ``back`` then holds the derivatives by its first state and the one before."""
    from leastaction.implicit import adjoint as implicit_adjoint

    chunk, trace, terms = kept
    model, n, steps = differentiable(run.model), run.model.nv, chunk.steps
    q, v = _states(run, start, chunk)
    lx, lu, record = np.zeros((steps + 2, n)), np.zeros((steps + 2, n)), no_record(model)
    for i, term in enumerate(terms):
        if term.by_q is not None or term.by_v is not None:
            lx[i + 1], lu[i + 1] = _to_rows(model, State(0.0, q[i], v[i]), term)
        if back.sums is not None:
            back.sums.count(term, v[i])
        if term.by_u is not None:
            back.by_controls[first + i] += term.by_u
    lx[-2:] += back.lx
    lu[-2:] += back.lu
    if back.sums is not None:
        record = implicit_adjoint.Record(
            np.zeros((steps, 2, model.nq)), np.zeros((steps, 2, n)), np.zeros((steps, 2, n)), np.zeros((steps, 2, n)),
            np.zeros((steps, 2)),
        )  # fmt: skip
    times = np.array([[run.clock.at(k), run.clock.length(k)] for k in range(first, first + steps)])
    out, controls = np.zeros((steps, n)), run.controls[first : first + steps]
    known, past_h, bad = bool(start["known"][0]), float(start["past_h"][0]), -1
    if row_count(model):
        _linked_back(
            run, model, known, past_h, times, controls, trace, lx, lu, out, record if back.sums is not None else None
        )
    else:
        bad = implicit_adjoint.backward(
            one_form(model), run.method.code, known, times, past_h, controls, trace, lx, lu, out, record
        )
    model.raise_pending()
    if bad >= 0:
        raise ConvergenceError(f"gradient: the matrix of step {first + bad} is singular; take a smaller dt.")
    back.by_controls[first : first + steps] += out
    back.lx, back.lu = lx[:2], lu[:2]
    if back.sums is not None:
        back.sums.add(record, controls)


def _linked_back(
    run: _Run, model: Model, known: bool, past_h: float, times: FloatArray, controls: FloatArray, trace: Any,
    lx: FloatArray, lu: FloatArray, out: FloatArray, record: Any,
) -> None:  # fmt: skip
    """One part back with loops or constraints."""
    two = [run.method.code == BDF2_CODE and (known or k > 0) for k in range(len(times))]
    double = [run.method.code in (BDF2_CODE, SDIRK2_CODE) and not each for each in two]
    try:
        linked_backward(
            model, double, two, times, past_h, controls, trace, lx[..., None], lu[..., None], out[..., None], record
        )
    except np.linalg.LinAlgError as error:
        raise ConvergenceError("gradient: the matrix of a step is singular; take a smaller dt.") from error


def _to_rows(model: Model, state: State, part: Part) -> tuple[FloatArray, FloatArray]:
    """Derivatives by the rows' state from those by the user's."""
    n, order = model.nv, model.system.coordinates.v
    by_q = np.zeros(n) if part.by_q is None else part.by_q
    by_v = np.zeros(n) if part.by_v is None else part.by_v
    # a permutation, where there are no free joints
    if not len(model.system.coordinates.free):
        return by_q[order], by_v[order]
    both = np.linalg.solve(row_changes(model, state).T, np.concatenate([by_q, by_v]))
    return both[:n], both[n:]


def _by_steps(
    model: Model, method: Method, clock: Clock, controls: FloatArray, objective: Objective, state: State,
    names: tuple[str, ...],
) -> Gradient:  # fmt: skip
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
    return Gradient(value, {"q": by[:n], "v": by[n:], "controls": by_controls, **found.results()}, states[-1])


def _full(part: FloatArray | None, n: int) -> FloatArray:
    """A derivative, zero where it is None."""
    return np.zeros(n) if part is None else part
