"""Times of the parts of a step, for the experiments: evaluation, Newton direction, linearisation.

Every time is processor time, a minimum over repeats, in microseconds, so that other programs on the machine count
little; many starts go through one compiled call.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ConvergenceError

if TYPE_CHECKING:
    from leastaction.model.checks import FloatArray
    from leastaction.model.model import Model, State


def best(function: Any, seconds: float = 0.3, least: int = 3) -> float:
    """Smallest processor time of a call in microseconds, repeated for about so many seconds."""
    fastest, end, count = math.inf, time.perf_counter() + seconds, 0
    while count < least or time.perf_counter() < end:
        start = time.process_time()
        function()
        fastest = min(fastest, time.process_time() - start)
        count += 1
    return 1e6 * fastest


def guesses(model: Model, states: Sequence[State], s: int, dt: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coordinates X, momenta P and local coordinates XI (starts, nv, s+1) of a step with constant velocity."""
    from leastaction.dynamics import legendre
    from leastaction.galerkin.method import lobatto

    X, P, U = (np.zeros((len(states), model.nv)) for _ in range(3))
    for k, state in enumerate(states):
        legendre.enter_momenta(model.system, state.q.copy(), state.v.copy(), X[k], U[k], P[k])
    return X, P, dt * U[:, :, None] * lobatto(s)[0][None, None, :]


def galerkin_times(model: Model, states: Sequence[State], order: int, dt: float) -> dict[str, float]:
    """Evaluation of the residual, Newton direction (with one evaluation) and linearisation of a Galerkin step.

    All at the guess of constant velocity: they cost the same there as at the solution, which long pendulums may not
    have. Linearisation: the derivative of the step by state and control, for the first ten states.
    """
    from leastaction.galerkin import linear as galerkin_linear
    from leastaction.galerkin import parts as galerkin_parts
    from leastaction.galerkin.method import across, balance, lobatto

    s, count = order // 2, len(states)
    c, w, b, _ = lobatto(s)
    X, P, XI = guesses(model, states, s, dt)
    r, y = np.zeros((count, model.nv, s)), np.zeros((count, model.nv * s))
    tree = model.system.tree
    out: dict[str, float] = {}
    for what, name in ((galerkin_parts.EVALUATION, "evaluation"), (galerkin_parts.DIRECTION, "direction")):
        args = (tree, tuple(w.tolist()), b, c, across(tree.gravity), balance(s), dt, X, P, XI, what, r, y)
        out[name] = best(lambda args=args: galerkin_parts.parts(*args)) / count
    # derivative of the step map
    few, n, none = min(count, 10), model.nv, np.zeros((0, 0))
    A, B, still = np.zeros((few, 2 * n, 2 * n)), np.zeros((few, 2 * n, n)), np.zeros((few, n))
    step = (
        model.system, tuple(w.tolist()), b, c, across(tree.gravity), balance(s), np.zeros(few), dt, X[:few], P[:few],
        XI[:few], still, False, none, none, none, none, A, B,
    )  # fmt: skip
    out["linearisation"] = best(lambda: galerkin_linear.galerkin_linearize(*step)) / few
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        raise ConvergenceError(f"'{model.name}': the derivative of a step is not finite; take a smaller dt.")
    return out


def hermite_simpson_times(model: Model, state: State, form: str, dt: float) -> dict[str, float]:
    """Evaluation of the rows of a Hermite-Simpson step; linearisation: their derivatives and one dense solve.

    The derivative of the step by state and control takes 3 n solves, so this is less than the whole of it.
    """
    from leastaction.comparators.hermite_simpson import step as hermite_simpson_step
    from leastaction.dynamics import entries

    nv, repeats = model.nv, 100
    x, u = np.zeros(model.nq), np.zeros(nv)
    entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
    zero, rows, y = np.zeros(nv), np.zeros((4, nv)), np.zeros((4, nv))
    out: dict[str, float] = {}
    for what, name in ((0, "evaluation"), (2, "linearisation")):
        args = (model.system, form == "implicit", dt, x, u, dt * u, u, zero, zero, zero, rows, y, what, repeats)
        out[name] = best(lambda args=args: hermite_simpson_step.hermite_simpson_probe(*args)) / repeats
    return out
