"""Galerkin variational integrators of any even order (Fan, Schultz, Murphey 2018)."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ModelError
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model, State

_FAILURES = {
    1: "Newton did not converge; take a smaller dt",
    2: "the state is no longer finite; take a smaller dt, or check forces and control",
}
_GUESSES = {"hold": 0, "euler": 1, "quadratic": 2}


@final
class Galerkin(Method):
    """Variational integrator of order 2s with s + 1 Lobatto nodes: symplectic, and it keeps momenta.

    The discrete Euler-Lagrange equations of the whole mechanism are solved by Newton's method with a direction in O(n)
    that is exact for gravity, springs, dampers and control; forces on bodies count as constant in it (not in the
    equations). Joints are sequences of screws and balls; the chart of a ball is centred at the start of the step, so
    nothing is ever singular. Trees only: closed loops are refused.

    Args:
        order: 2, 4, 6, ...; s is half of it.
        guess: first iterate: "hold" (no motion), "euler" (constant velocity), "quadratic" (continue the last steps).
        tolerance: of the residual, relative to the momentum of the mechanism; never below rounding.
        iterations: most Newton iterations of a step.
    """

    name: ClassVar[str] = "galerkin"
    symplectic: ClassVar[bool] = True
    conserves: ClassVar[frozenset[str]] = frozenset({"linear momentum", "angular momentum"})

    def __init__(
        self, order: int = 2, *, guess: str = "quadratic", tolerance: float = 1e-12, iterations: int = 30
    ) -> None:
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 2 or order % 2:
            raise ModelError(f"Galerkin: order must be an even number from 2 on, got {order!r}.")
        if order > 16:
            raise ModelError(f"Galerkin: orders above 16 gain nothing in double precision, got {order}.")
        if guess not in _GUESSES:
            raise ModelError(f"Galerkin: guess must be one of {', '.join(_GUESSES)}, got {guess!r}.")
        self._order = int(order)
        self.guess = guess
        self.tolerance = check_number(tolerance, "Galerkin: tolerance", positive=True)
        if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 1:
            raise ModelError(f"Galerkin: iterations must be a whole number from 1 on, got {iterations!r}.")
        self.iterations = int(iterations)

    @property
    def order(self) -> int:
        """2 s."""
        return self._order

    @property
    def stages(self) -> int:
        """s."""
        return self._order // 2

    @property
    def label(self) -> str:
        """Such as ``galerkin:4``."""
        return f"galerkin:{self._order}"

    def options(self) -> dict[str, Any]:
        """All arguments."""
        return {
            "order": self._order, "guess": self.guess, "tolerance": self.tolerance, "iterations": self.iterations,
        }  # fmt: skip

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and momenta of the tree's rows (discrete Legendre transform), and no past."""
        from leastaction.kernels import galerkin_step

        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        galerkin_step.enter(model.system, state.q.copy(), state.v.copy(), x, u, p)
        past = np.zeros((model.nv, self.stages + 1))
        return {"x": x, "p": p, "last": past, "before": past.copy(), "known": np.zeros(1, dtype=np.int64)}

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q, and v = M^-1 p."""
        from leastaction.kernels import galerkin_step

        q, v = np.zeros(model.nq), np.zeros(model.nv)
        galerkin_step.leave(model.system, memory["x"], memory["p"], q, v)
        return q, v

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """All steps in one compiled call; one call for each step where steps have lengths of their own."""
        if not clock.uniform:
            return self._each(model, memory, clock, k, steps, every, control)
        from leastaction.kernels import galerkin_step

        rows = saved_rows(k, steps, every)
        q, v, count = np.zeros((rows, model.nq)), np.zeros((rows, model.nv)), np.zeros(4, dtype=np.int64)
        c, w, b, ahead = lobatto(self.stages)
        address = control.callback.address if control.callback else 0
        passive = model.system.passive
        active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
        done, status = galerkin_step.rollout(
            model.system, tuple(w.tolist()), b, c, across(model.system.tree.gravity), ahead, clock.t0, k, clock.dt,
            memory["x"], memory["p"], memory["last"], memory["before"], memory["known"], steps, every,
            control.array[k : k + steps], address, active, _GUESSES[self.guess], self.tolerance, self.iterations,
            q, v, count,
        )  # fmt: skip
        rows = saved_rows(k, done, every)
        counters = {"iterations": int(count[0]), "evaluations": int(count[1]), "backtracks": int(count[2])}
        return Chunk(done, _FAILURES.get(status), q[:rows], v[:rows], counters)

    def _each(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """Steps with lengths of their own, each a rollout with a clock that starts with it.

        The guess continues the last steps as if they had been as long as this one: the result is the same to solver
        tolerance, at the price of an iteration where lengths change much.
        """
        q, v, counters = [np.zeros((0, model.nq))], [np.zeros((0, model.nv))], dict[str, int]()
        for i in range(k, k + steps) if steps else (k,):
            own = Control(control.array[i : i + 1], control.callback)
            kept = 1 if (i + 1) % every == 0 else 2
            step = Clock(clock.at(i), clock.length(i)) if steps else Clock(clock.t0, 1.0)
            part = self.rollout(model, memory, step, 0, min(steps, 1), kept, own)
            q.append(part.q)
            v.append(part.v)
            counters = {name: counters.get(name, 0) + count for name, count in part.counters.items()}
            if part.failure:
                return Chunk(i - k, part.failure, np.concatenate(q), np.concatenate(v), counters)
        return Chunk(steps, None, np.concatenate(q), np.concatenate(v), counters)


def across(gravity: FloatArray) -> FloatArray:
    """Two unit vectors (2, 3) perpendicular to gravity (to z where there is none)."""
    from leastaction.model.joints import plane_basis

    size = float(np.linalg.norm(gravity))
    return np.array(plane_basis(gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])))


@cache
def lobatto(s: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Lobatto nodes c and weights w (s+1,) on [0, 1], derivatives b[a, e] = l_e'(c_a), and l_e(1 + c_a).

    The inner nodes are the zeros of the derivative of the Legendre polynomial of degree s.
    """
    from numpy.polynomial import legendre

    coefficients = np.zeros(s + 1)
    coefficients[s] = 1.0
    derivative = legendre.legder(coefficients)
    inner = np.sort(np.real(legendre.legroots(derivative))) if s > 1 else np.zeros(0)
    # polish the zeros
    for _ in range(3):
        if s > 1:
            inner = inner - legendre.legval(inner, derivative) / legendre.legval(inner, legendre.legder(derivative))
    x = np.concatenate([[-1.0], inner, [1.0]])
    w = 1.0 / (s * (s + 1) * legendre.legval(x, coefficients) ** 2)
    w[0] = w[s] = 1.0 / (s * (s + 1))
    c = 0.5 * (1.0 + x)
    # derivative matrix by barycentric weights
    gaps = c[:, None] - c[None, :] + np.eye(s + 1)
    bary = 1.0 / np.prod(gaps, axis=1)
    b = bary[None, :] / bary[:, None] / gaps
    b[np.diag_indices(s + 1)] = 0.0
    b[np.diag_indices(s + 1)] = -b.sum(axis=1)
    ahead = np.array(
        [[np.prod([(1 + ca - c[j]) / (c[e] - c[j]) for j in range(s + 1) if j != e]) for e in range(s + 1)] for ca in c]
    )
    return c, w, b, ahead
