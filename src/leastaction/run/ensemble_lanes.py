"""Which methods and models run four environments at once, and the one compiled call that does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.galerkin.method import Galerkin, across, balance, lobatto
from leastaction.maximal.method import Maximal, couplings, efforts, touch_of
from leastaction.methods.base import Memory, Method, saved_rows
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.solve.solvers import Newton
from leastaction.tree.layout import BALL, KIND


@dataclass(frozen=True, eq=False)
class Lanes:
    """What the compiled call did: saved rows (E, rows, ...), steps done (E,), and totals of the method's counters."""

    q: FloatArray
    v: FloatArray
    done: NDArray[np.int64]
    counters: dict[str, int]


def has_lanes(method: Method, model: Model) -> bool:
    """Whether a method has a kernel in lanes for a model.

    ``Galerkin(2)`` with Newton's method and any guess but "dynamics"; only screws, no closed loops or constraints, no
    forces on bodies. ``Maximal()`` with Newton's method and its usual start; any joints, but none of these, no contact
    and no enforced limits.
    """
    if isinstance(method, Maximal):
        known = Maximal(solver=method.solver).options() == method.options() and isinstance(method.solver, Newton)
        return known and couplings(model) is None and model.system.forces is None and touch_of(model) is None
    if not isinstance(method, Galerkin) or method.order != 2 or not isinstance(method.solver, Newton):
        return False
    # options that are not known here must be as by default
    usual, system = Galerkin(2, solver=method.solver, guess=method.guess), model.system
    plain = system.forces is None and system.loops is None and system.constraints is None
    screws = not (system.tree.rows[1:, KIND] == BALL).any()
    return bool(method.guess != "dynamics" and method.options() == usual.options() and plain and screws)


def roll_lanes(
    method: Method, model: Model, starts: list[Memory], dt: float, steps: int, every: int, controls: FloatArray
) -> Lanes:
    """All environments from their first states, whose memories move on in place.

    An environment that fails is left at its last good step.
    """
    from leastaction.galerkin import lanes_step as galerkin_lanes_step
    from leastaction.galerkin import step as galerkin_step

    if isinstance(method, Maximal):
        return _roll_maximal(method, model, starts, dt, steps, every, controls)
    if not isinstance(method, Galerkin):
        raise TypeError(f"{method.label} has no kernel in lanes")
    guesses = {
        "hold": galerkin_step.HOLD,
        "euler": galerkin_step.EULER,
        "quadratic": galerkin_step.QUADRATIC,
        "cubic": galerkin_step.CUBIC,
    }
    number, rows, passive = len(starts), saved_rows(0, steps, every), model.system.passive
    x, p = np.array([start["x"] for start in starts]), np.array([start["p"] for start in starts])
    past, solver = np.zeros((number, 3, model.nv)), method.solver
    q, v = np.zeros((number, rows, model.nq)), np.zeros((number, rows, model.nv))
    done, status, count = np.zeros(number, np.int64), np.zeros(number, np.int64), np.zeros((number, 4), np.int64)
    c, w, b, _ = lobatto(1)
    galerkin_lanes_step.rollout_lanes(
        model.system, tuple(w.tolist()), (b, c, balance(1)), across(model.system.tree.gravity), dt, x, p, past, steps,
        every, controls, bool(len(passive.screw)), guesses[method.guess], solver.tolerance, solver.iterations,
        q, v, done, status, count,
    )  # fmt: skip
    # the memories, as if each had run alone
    for e, memory in enumerate(starts):
        memory["x"][:], memory["p"][:] = x[e], p[e]
        memory["past"][:, 1::2], memory["known"][0] = past[e].T, min(int(done[e]), 3)
        memory["lengths"][: int(done[e])] = dt
    totals = count.sum(axis=0).tolist()
    return Lanes(q, v, done, dict(zip(("iterations", "evaluations", "backtracks"), totals, strict=False)))


def _roll_maximal(
    method: Maximal, model: Model, starts: list[Memory], dt: float, steps: int, every: int, controls: FloatArray
) -> Lanes:
    """The same for ``Maximal``."""
    from leastaction.maximal import lanes_step as maximal_lanes_step

    number, rows, passive, solver = len(starts), saved_rows(0, steps, every), model.system.passive, method.solver
    x, p = np.array([start["x"] for start in starts]), np.array([start["p"] for start in starts])
    past = np.zeros((number, model.nv, 3))
    q, v = np.zeros((number, rows, model.nq)), np.zeros((number, rows, model.nv))
    done, status, count = np.zeros(number, np.int64), np.zeros(number, np.int64), np.zeros((number, 4), np.int64)
    active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
    maximal_lanes_step.rollout(
        model.system, efforts(model), dt, x, p, past, steps, every, controls, active, solver.tolerance,
        solver.iterations, q, v, done, status, count,
    )  # fmt: skip
    for e, memory in enumerate(starts):
        memory["x"][:], memory["p"][:], memory["past"][:] = x[e], p[e], past[e]
        memory["known"][0], memory["lengths"][: int(done[e])] = min(int(done[e]), 3), dt
    totals = count.sum(axis=0).tolist()
    return Lanes(q, v, done, dict(zip(("iterations", "evaluations", "backtracks"), totals, strict=False)))
