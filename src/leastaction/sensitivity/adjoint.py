"""Back through a whole run by the adjoint of a method that has one of its own, a ``methods.reverse.Reverse``.

Memory is bounded: states are kept at checkpoints, and what lies between them is computed again on the way back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import ConvergenceError
from leastaction.methods.base import Chunk, Clock, Memory, Method
from leastaction.methods.closing import row_count
from leastaction.methods.reverse import Reverse
from leastaction.methods.tangent import start_projector
from leastaction.model.checks import FloatArray
from leastaction.model.model import State
from leastaction.sensitivity.gradient_parameters import Sums
from leastaction.sensitivity.objectives import Objective, Part


@dataclass(frozen=True, eq=False)
class _Run:
    """What a run is made of."""

    reverse: Reverse
    method: Method
    clock: Clock
    controls: FloatArray
    objective: Objective

    def part(self, memory: Memory, first: int, stop: int) -> tuple[Chunk, Any]:
        """Steps first .. stop - 1 from their memory, which moves on, with a trace."""
        chunk, trace = self.reverse.forward(memory, self.clock, first, stop - first, self.controls)
        if chunk.failure:
            q, v = self.method.state(self.reverse.model, memory)
            last = self.reverse.model.state(q, v, self.clock.at(first + chunk.steps))
            raise ConvergenceError(f"gradient: {self.method.label}: {chunk.failure}", state=last)
        return chunk, trace

    def terms(self, q: FloatArray, v: FloatArray, first: int) -> list[Part]:
        """Terms of the objective of the steps from ``first`` on, one for each row of q and v."""
        return [
            self.objective.step(
                self.reverse.model, first + i, State(self.clock.at(first + i), q[i], v[i]), self.controls[first + i]
            )
            for i in range(len(q))
        ]

    def states(self, memory: Memory, chunk: Chunk) -> tuple[FloatArray, FloatArray]:
        """States (steps + 1, ...) of a part, its first one from its checkpoint."""
        q, v = self.method.state(self.reverse.model, memory)
        return np.vstack([q, chunk.q]), np.vstack([v, chunk.v])

    def to_rows(self, state: State, part: Part) -> tuple[FloatArray, FloatArray]:
        """Derivatives by the rows' state from those by the user's."""
        model = self.reverse.model
        n, order = model.nv, model.system.coordinates.v
        by_q = np.zeros(n) if part.by_q is None else part.by_q
        by_v = np.zeros(n) if part.by_v is None else part.by_v
        # a permutation, where there are no free joints
        if not len(model.system.coordinates.free):
            return by_q[order], by_v[order]
        both = np.linalg.solve(self.reverse.changes(state).T, np.concatenate([by_q, by_v]))
        return both[:n], both[n:]


@dataclass(eq=False)
class _Back:
    """Derivatives on their way back: by the rows' states at and before the end of a part, and sums."""

    lx: FloatArray
    lu: FloatArray
    by_controls: FloatArray
    sums: Sums | None = None


def backward(
    reverse: Reverse, method: Method, clock: Clock, controls: FloatArray, objective: Objective, state: State,
    names: tuple[str, ...], room: float,
) -> tuple[float, dict[str, Any], State]:  # fmt: skip
    """Value, derivatives by name and last state: forward with checkpoints of at most ``room`` bytes, then back."""
    run, model = _Run(reverse, method, clock, controls, objective), reverse.model
    steps, n = len(controls), model.nv
    each = 8.0 * (model.nq + 3 * n + len(model.system.tree.rows) + 2 * (model.nq + 3 * n))
    length = min(steps, max(math.ceil(math.sqrt(steps)), int(room / each)))
    # forward: checkpoints, the value, and the trace of the last part
    memory, value, starts = method.start(model, state), 0.0, list(range(0, steps, length))
    checkpoints: list[Memory] = []
    for first in starts:
        checkpoints.append({name: array.copy() for name, array in memory.items()})
        chunk, trace = run.part(memory, first, min(first + length, steps))
        q, v = run.states(checkpoints[-1], chunk)
        terms = run.terms(q[:-1], v[:-1], first)
        value += sum(term.value for term in terms)
    end = model.state(q[-1], v[-1], clock.at(steps))
    last = objective.final(model, end)
    # back
    sums = Sums(model, names, reverse.add_rows) if set(names) & set(reverse.parameters) else None
    back = _Back(np.zeros((2, n)), np.zeros((2, n)), np.zeros((steps, n)), sums)
    back.lx[1], back.lu[1] = run.to_rows(end, last)
    for number in range(len(starts) - 1, -1, -1):
        first, start = starts[number], checkpoints[number]
        if number < len(starts) - 1:
            again = {name: array.copy() for name, array in start.items()}
            chunk, trace = run.part(again, first, first + length)
            q, v = run.states(start, chunk)
            terms = run.terms(q[:-1], v[:-1], first)
        _part_back(run, first, start, (chunk, trace, terms), back)
    by = reverse.changes(state).T @ np.concatenate([back.lx[1], back.lu[1]])
    if row_count(model):
        by = start_projector(model, state).T @ by
    found: dict[str, Any] = {"q": by[:n], "v": by[n:], "controls": back.by_controls}
    if sums is not None:
        sums.count(last, end.v)
        sums.begin(state, back.lx[1], back.lu[1])
        found |= sums.results()
    return value + last.value, found, end


def _part_back(run: _Run, first: int, start: Memory, kept: tuple[Chunk, Any, list[Part]], back: _Back) -> None:
    """One part back; ``back`` then holds the derivatives by its first state and the one before."""
    chunk, trace, terms = kept
    n, steps = run.reverse.model.nv, chunk.steps
    q, v = run.states(start, chunk)
    lx, lu = np.zeros((steps + 2, n)), np.zeros((steps + 2, n))
    for i, term in enumerate(terms):
        if term.by_q is not None or term.by_v is not None:
            lx[i + 1], lu[i + 1] = run.to_rows(State(0.0, q[i], v[i]), term)
        if back.sums is not None:
            back.sums.count(term, v[i])
        if term.by_u is not None:
            back.by_controls[first + i] += term.by_u
    lx[-2:] += back.lx
    lu[-2:] += back.lu
    times = np.array([[run.clock.at(k), run.clock.length(k)] for k in range(first, first + steps)])
    controls = run.controls[first : first + steps]
    record = run.reverse.record(steps) if back.sums is not None else None
    out, bad = run.reverse.back(start, times, controls, trace, lx, lu, record)
    if bad >= 0:
        raise ConvergenceError(f"gradient: the matrix of step {first + bad} is singular; take a smaller dt.")
    back.by_controls[first : first + steps] += out
    back.lx, back.lu = lx[:2], lu[:2]
    if back.sums is not None:
        back.sums.add(record, controls)
