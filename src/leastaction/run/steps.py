"""Step control: how a run chooses its steps from the motion, so that long runs keep their energy.

A mechanism asks for Q steps per second, a function of its state alone (``run/step_density.py``). A controller makes
the next step from it. The reversible one is that of Hairer and Soderlind (2005), "Explicit, time reversible, adaptive
step size control": with a symmetric method, a run under it that is turned round goes back the way it came.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ModelError
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method
from leastaction.model.checks import FloatArray, check_array, check_number
from leastaction.model.model import Model


class Steps(ABC):
    """A step controller, given to ``simulate`` as ``dt``.

    Args:
        tolerance: metres by which a step may leave straight uniform motion, as a mean over the mass: h^2 |acceleration|
            and h^3 |jerk| stay near or below it. It sets the steps; what error they lead to depends on the method.
        most: longest step in seconds, which a motion without acceleration gets.
        least: shortest step in seconds; a motion that asks for a shorter one stops the run.
    """

    name: ClassVar[str]

    def __init__(self, tolerance: float, most: float, least: float = 0.0) -> None:
        where = type(self).__name__
        self.tolerance = check_number(tolerance, f"{where}: tolerance", positive=True)
        self.most = check_number(most, f"{where}: most", positive=True)
        self.least = check_number(least, f"{where}: least", nonnegative=True)
        # fourth powers of them must be numbers
        for what, value in (("tolerance", self.tolerance), ("most", self.most)):
            if not 1e-30 <= value <= 1e30:
                raise ModelError(f"{where}: {what} must lie between 1e-30 and 1e30, got {value:g}.")
        if self.least >= self.most:
            raise ModelError(f"{where}: least ({self.least:g} s) must be below most ({self.most:g} s).")

    def options(self) -> dict[str, Any]:
        """Arguments that make this controller again."""
        return {"tolerance": self.tolerance, "most": self.most, "least": self.least}

    @abstractmethod
    def density(self, last: float, Q: float, G: float) -> float:
        """Steps per second of the next step.

        Args:
            last: those of the last step; 0 before the first one.
            Q: what the state asks for.
            G: d(ln Q)/dt.
        """

    def next(
        self, model: Model, t: float, q: FloatArray, v: FloatArray, last: float
    ) -> tuple[float, float, str | None]:
        """Length h of the step from a state, its steps per second, and why there is none, in words, or None."""
        from leastaction.run.step_density import step_density

        Q, G = step_density(model.system, t, q, v, self.tolerance, self.most)
        if not math.isfinite(Q) or not math.isfinite(G):
            return 0.0, last, "step control: accelerations or jerks are not finite; check the forces"
        density = self.density(last, Q, G)
        # a reversible controller may lose a motion that changes faster than the steps can follow
        if not density > 0.5 / self.most or not math.isfinite(density):
            return 0.0, last, "step control: the motion changes faster than the steps; take a smaller tolerance"
        h = 1.0 / density
        if h < self.least or t + h <= t:
            return 0.0, last, f"step control: the motion asks for a step of {h:.3g} s; take a larger tolerance or least"
        return h, density, None

    def __repr__(self) -> str:
        words = ", ".join(f"{key}={value!r}" for key, value in self.options().items())
        return f"{type(self).__name__}({words})"


@final
class ReversibleSteps(Steps):
    """Steps that are the same forwards and backwards in time (Hairer and Soderlind 2005).

    The density of steps is integrated along the motion, rho(n + 1/2) = rho(n - 1/2) + G(y_n) with h = 1 / rho, from
    rho(1/2) = Q(y_0) + G(y_0) / 2. With a symmetric method on a reversible mechanism (no dampers, no control) the
    energy of a regular motion stays in a band as it does with a constant step. The step map is not symplectic any more.
    """

    name: ClassVar[str] = "reversible"

    def density(self, last: float, Q: float, G: float) -> float:
        """The last density plus its growth over the two halves of steps around the state."""
        return last + G if last > 0.0 else Q + 0.5 * G


@final
class ClassicSteps(Steps):
    """Steps from an error estimate at their start, h = 1 / Q(y_n): the usual control, which forgets the past.

    It follows the motion closest, and suits dissipative mechanisms and short runs; energy drifts in long ones.
    """

    name: ClassVar[str] = "classic"

    def density(self, last: float, Q: float, G: float) -> float:
        """What the state asks for."""
        return Q


_KINDS: dict[str, type[Steps]] = {kind.name: kind for kind in (ReversibleSteps, ClassicSteps)}


def check_steps(dt: Any, t0: float, where: str) -> FloatArray:
    """Lengths (steps,) of steps from time t0 on: positive numbers with which time moves."""
    array = check_array(dt, where)
    if array.ndim != 1:
        raise ModelError(f"{where}: expected a number or an array (steps,) of seconds, got shape {array.shape}.")
    times = np.cumsum(np.concatenate([[t0], array]))
    stuck = np.flatnonzero(~(np.diff(times) > 0))
    if stuck.size:
        k = int(stuck[0])
        raise ModelError(f"{where}: step {k} must be positive and move the time {times[k]:g} s, got {array[k]:g} s.")
    return array


@dataclass(frozen=True)
class Pace:
    """Step control of a run on its way.

    Attributes:
        steps: the controller.
        goal: time at which the run was asked to end; it ends with the first step that reaches it.
        last: steps per second of the last step; 0 before the first one.
    """

    steps: Steps
    goal: float
    last: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"kind": self.steps.name, "options": self.steps.options(), "goal": self.goal, "last": self.last}

    @staticmethod
    def from_dict(data: Any) -> Pace:
        """A pace from its ``to_dict``, checked."""
        if not isinstance(data, dict) or data.keys() != {"kind", "options", "goal", "last"}:
            raise ModelError(f"step control: expected kind, options, goal and last, got {data!r}.")
        kind, options = data["kind"], data["options"]
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ModelError(f"step control: unknown kind {kind!r}; known are {', '.join(_KINDS)}.")
        if not isinstance(options, dict) or options.keys() != {"tolerance", "most", "least"}:
            raise ModelError(f"step control: expected tolerance, most and least, got {options!r}.")
        goal = check_number(data["goal"], "step control: goal")
        return Pace(_KINDS[kind](**options), goal, check_number(data["last"], "step control: last", nonnegative=True))


@dataclass
class Paced:
    """What a rollout under step control did: the chunk, the lengths (steps,) of its steps, pace and time after it."""

    chunk: Chunk
    lengths: FloatArray
    pace: Pace
    now: float


def paced_rollout(
    pace: Pace, model: Model, method: Method, memory: Memory, t: float, k: int, steps: int, every: int, control: Control
) -> Paced:
    """Up to ``steps`` steps from step k at time t on, each as long as the controller says, until the goal is reached.

    After a failure memory and pace are those of the last good state.
    """
    q, v, lengths = [np.zeros((0, model.nq))], [np.zeros((0, model.nv))], list[float]()
    counters: dict[str, int] = {}
    totals: list[Any] | None = [np.zeros(0, dtype=np.int64)]
    last, most = pace.last, 0
    failure: str | None = None
    while len(lengths) < steps and t < pace.goal and failure is None:
        # the step that the state asks for
        h, density, failure = pace.steps.next(model, t, *method.state(model, memory), last)
        if failure is not None:
            break
        # the step
        i = k + len(lengths)
        part = method.rollout(model, memory, Clock(t, np.array([h]), i), i, 1, every, control)
        before = counters.get("iterations", 0)
        for name, count in part.counters.items():
            counters[name] = counters.get(name, 0) + count
        most, failure = max(most, part.most), part.failure
        if failure is None:
            q.append(part.q)
            v.append(part.v)
            lengths.append(h)
            totals = None if totals is None or part.iterations is None else [*totals, before + part.iterations]
            last, t = density, t + h
    up_to = None if totals is None else np.concatenate(totals)
    chunk = Chunk(len(lengths), failure, np.concatenate(q), np.concatenate(v), counters, up_to, most)
    return Paced(chunk, np.array(lengths), replace(pace, last=last), t)


def compile_control(model: Model, method: Method, memory: Memory) -> None:
    """Compile what step control needs; no function of the user is called."""
    from numba import typeof

    from leastaction.run.step_density import step_density

    q, v = method.state(model, memory)
    step_density.compile(tuple(typeof(argument) for argument in (model.system, 0.0, q, v, 1.0, 1.0)))
