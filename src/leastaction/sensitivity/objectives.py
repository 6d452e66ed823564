"""What a gradient is taken of: a sum over the steps of a run and a term of its last state, with derivatives.

Derivatives by q are by displacements (nv,), those of ``model.configuration.retract``: plain derivatives for single
coordinates, by a rotation vector in child axes for a ball, by (rotation vector; displacement) for a free joint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leastaction.dynamics import quantities
from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_number, check_vector
from leastaction.model.configuration import difference
from leastaction.model.joints import layout
from leastaction.model.model import Model, State
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import PARENT


class Part(NamedTuple):
    """Value of one term and its derivatives (nv,) by displacements, velocities and controls; None is zero.

    by_placement has the derivatives (3,) by the positions of joints in their parents, by name, at fixed state; a joint
    that is not named has none.
    """

    value: float
    by_q: FloatArray | None = None
    by_v: FloatArray | None = None
    by_u: FloatArray | None = None
    by_placement: dict[str, FloatArray] | None = None


StepTerm = Callable[[Model, int, State, FloatArray], Any]
FinalTerm = Callable[[Model, State], Any]


class Objective:
    """Sum of step(model, k, state, control) over k = 0 .. steps - 1, plus final(model, state).

    ``state`` is that at the start of step k, or the last one. Each function returns (value, by_q, by_v, by_u) with
    derivatives (nv,), or None for zero; zeros at the end may be left out. A fifth entry is a dict by the name of a
    joint: derivatives (3,) by its position in its parent at fixed state, which only gradients by "placement" ask for.
    Objectives can be added.

    Args:
        step: the term of a step, or None.
        final: the term of the last state, or None.
        steps: number of steps of the runs that it is for; None for any.
    """

    def __init__(self, step: StepTerm | None = None, final: FinalTerm | None = None, steps: int | None = None) -> None:
        for what, function in (("step", step), ("final", final)):
            if function is not None and not callable(function):
                raise ModelError(f"Objective: {what} must be a function that returns value and derivatives.")
        self._step, self._final = step, final
        self._steps: tuple[int, ...] = () if steps is None else (steps,)

    def step(self, model: Model, k: int, state: State, control: FloatArray) -> Part:
        """The term of step k."""
        return Part(0.0) if self._step is None else _part(model, self._step(model, k, state, control), f"step {k}")

    def final(self, model: Model, state: State) -> Part:
        """The term of the last state."""
        return Part(0.0) if self._final is None else _part(model, self._final(model, state), "final")

    def check_steps(self, steps: int) -> None:
        """ModelError if it, or a part of it, is for runs of another number of steps."""
        for own in self._steps:
            if own != steps:
                raise ModelError(
                    f"objective: it has rows for the start, the end and all between of {own} steps ({own + 1} rows), "
                    f"the run has {steps} steps; give {steps + 1} rows."
                )

    def __add__(self, other: Objective) -> Objective:
        if not isinstance(other, Objective):
            return NotImplemented
        out = Objective(
            lambda model, k, state, control: _sum(
                self.step(model, k, state, control), other.step(model, k, state, control)
            ),
            lambda model, state: _sum(self.final(model, state), other.final(model, state)),
        )
        out._steps = tuple(dict.fromkeys(self._steps + other._steps))
        return out


def Reach(body: str, target: ArrayLike, point: ArrayLike = (0.0, 0.0, 0.0), weight: float = 1.0) -> Objective:
    """weight / 2 times the squared distance of a point of a body to a target at the end (Sueda 2021, eq. 3.82).

    Args:
        body: name of a body or frame.
        target: (3,) in the world, metres.
        point: (3,) in the link frame, metres.
        weight: per square metre.
    """
    goal, at = check_vector(target, 3, "Reach: target"), check_vector(point, 3, "Reach: point")
    w = check_number(weight, "Reach: weight")

    def final(model: Model, state: State) -> Part:
        pose = quantities.frame_poses(model, state.q[None].copy(), [body])[0, 0]
        away = pose[:3, 3] + pose[:3, :3] @ at - goal
        J = quantities.jacobian(model, state.q, body, at)[3:]
        return Part(0.5 * w * float(away @ away), w * J.T @ away, None, None, _shifts(model, state.q, body, w * away))

    return Objective(final=final)


def Effort(weight: ArrayLike = 1.0) -> Objective:
    """Half the weighted sum of squares of the controls, over all steps; one weight, or (nv,) of them."""
    w = np.asarray(weight, dtype=float)
    if w.ndim > 1 or not np.isfinite(w).all():
        raise ModelError(f"Effort: weight must be a number or nv of them, got {weight!r}.")

    def step(model: Model, k: int, state: State, control: FloatArray) -> Part:
        slope = w * control
        return Part(0.5 * float(slope @ control), None, None, slope)

    return Objective(step)


def Track(q: ArrayLike | None = None, v: ArrayLike | None = None, weight: float = 1.0) -> Objective:
    """weight / 2 times the squared distance to given states, at the start of every step and at the end.

    Args:
        q: coordinates (steps + 1, nq) to be near to; distances are those of ``model.configuration.difference``.
        v: velocities (steps + 1, nv) to be near to.
        weight: of all squares.
    """
    w = check_number(weight, "Track: weight")
    goals = tuple(None if rows is None else np.asarray(rows, dtype=float) for rows in (q, v))
    for what, rows in zip("qv", goals, strict=True):
        if rows is not None and (rows.ndim != 2 or len(rows) < 2 or not np.isfinite(rows).all()):
            raise ModelError(f"Track: {what} must be finite numbers (steps + 1, n), got shape {rows.shape}.")
    lengths = {len(rows) for rows in goals if rows is not None}
    if len(lengths) > 1:
        raise ModelError(f"Track: q and v must have as many rows as each other, got {sorted(lengths)}.")
    steps = lengths.pop() - 1 if lengths else None

    def part(model: Model, k: int, state: State) -> Part:
        value, by_q, by_v = 0.0, None, None
        for rows, size in zip(goals, (model.nq, model.nv), strict=True):
            if rows is not None and rows.shape[1] != size:
                raise ModelError(f"Track: expected {size} numbers for every step and the end, got {rows.shape}.")
        if goals[0] is not None:
            away = difference(model, goals[0][k], state.q)
            value += 0.5 * w * float(away @ away)
            by_q = w * difference_slope(model, goals[0][k], state.q, away)
        if goals[1] is not None:
            rate = state.v - goals[1][k]
            value += 0.5 * w * float(rate @ rate)
            by_v = w * rate
        return Part(value, by_q, by_v)

    def final(model: Model, state: State) -> Part:
        return Part(0.0) if steps is None else part(model, steps, state)

    return Objective(lambda model, k, state, control: part(model, k, state), final, steps)


def difference_slope(model: Model, q0: FloatArray, q1: FloatArray, by: FloatArray) -> FloatArray:
    """Derivative (nv,) by displacements of q1, given that by the components of ``difference(model, q0, q1)``."""
    out, away = by.copy(), difference(model, q0, q1)
    for view in model.joints.values():
        v, q = view.v.start, view.q
        if view.kind == "free":
            turn = quaternion.multiply(quaternion.conjugate(q0[q][3:]), q1[q][3:])
            out[v : v + 3] = so3.dlog_right(away[v : v + 3]).T @ by[v : v + 3]
            out[v + 3 : v + 6] = quaternion.to_matrix(turn).T @ by[v + 3 : v + 6]
            continue
        for piece in layout(view.joint):
            if piece.factor == "ball":
                at = slice(v + piece.v.start, v + piece.v.stop)
                out[at] = so3.dlog_right(away[at]).T @ by[at]
    return out


def _sum(a: Part, b: Part) -> Part:
    """Sum of two terms."""

    def both(x: FloatArray | None, y: FloatArray | None) -> FloatArray | None:
        return y if x is None else x if y is None else x + y

    placed = dict(a.by_placement or {})
    for name, by in (b.by_placement or {}).items():
        placed[name] = placed.get(name, 0.0) + by
    return Part(a.value + b.value, both(a.by_q, b.by_q), both(a.by_v, b.by_v), both(a.by_u, b.by_u), placed)


def _part(model: Model, given: Any, where: str) -> Part:
    """What a function of the user returned, checked."""
    if isinstance(given, Part):
        return given
    if not isinstance(given, tuple | list) or not 1 <= len(given) <= 5:
        raise ModelError(f"objective, {where}: expected (value, by_q, by_v, by_u), got {given!r}.")
    value = check_number(given[0], f"objective, {where}: value")
    by = [None if each is None else check_vector(each, model.nv, f"objective, {where}") for each in given[1:4]]
    by += [None] * (3 - len(by))
    placed = given[4] if len(given) == 5 and given[4] is not None else {}
    label = f"objective, {where}: by the placement of"
    shifts = {model.joint(name).name: check_vector(each, 3, f"{label} '{name}'") for name, each in placed.items()}
    return Part(value, by[0], by[1], by[2], shifts)


def _shifts(model: Model, q: FloatArray, body: str, by: FloatArray) -> dict[str, FloatArray]:
    """Derivatives by the positions of joints in their parents, from those (3,) by the world position of a point."""
    # rows of the tree on the way to the world
    rows, row = set(), model.place(body).row
    while row > 0:
        rows.add(row)
        row = int(model.system.tree.rows[row, PARENT])
    names = [name for name, first in model.first_rows.items() if first in rows]
    parents = [model.joints[name].joint.parent for name in names]
    turns = quantities.frame_poses(model, q[None].copy(), parents)[0, :, :3, :3]
    return {name: turn.T @ by for name, turn in zip(names, turns, strict=True)}
