"""Step size control: SciPy's DOP853 on the joint manifolds, between the steps of the run."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ModelError
from leastaction.explicit.rows import enter_rows, leave_rows, row_fields
from leastaction.methods.base import Chunk, Clock, Control, Memory, Method, saved_rows
from leastaction.methods.memory import Field
from leastaction.model.checks import FloatArray, check_number
from leastaction.model.model import Model, State

# Steps shorter than this part of an interval, and how many of them it may have: a run ends, one way or the other.
_SHORT, _MOST_SHORT = 1e-6, 10_000


@final
class Adaptive(Method):
    """Dormand-Prince 8(5,3) with tolerances (Hairer, Norsett, Wanner 1993), from SciPy.

    dt is the interval of output and of control; inside it the method takes the steps it needs, in local coordinates
    around the interval's start. Loops are held at acceleration level without stabilisation. An interval that needs more
    than ten thousand steps shorter than a millionth of it is given up, with an error: what acts changes too fast.

    Args:
        rtol: relative tolerance.
        atol: absolute tolerance, in the units of q and v.
    """

    name: ClassVar[str] = "adaptive"
    supports: ClassVar[frozenset[str]] = frozenset({"loops", "couplings", "spline joints"})

    def __init__(self, rtol: float = 1e-9, atol: float = 1e-9) -> None:
        self.rtol = check_number(rtol, "Adaptive: rtol", positive=True)
        self.atol = check_number(atol, "Adaptive: atol", positive=True)
        if self.rtol < 1e-13:
            raise ModelError(f"Adaptive: rtol must be at least 1e-13 in double precision, got {rtol}.")

    @property
    def order(self) -> int:
        """8 inside an interval; the error is set by the tolerances, not by dt."""
        return 8

    def options(self) -> dict[str, Any]:
        """The tolerances."""
        return {"rtol": self.rtol, "atol": self.atol}

    def start(self, model: Model, state: State) -> Memory:
        """Coordinates and rates of the tree's rows, and the last step size (0: not known)."""
        return {**enter_rows(model, state), "h": np.zeros(1)}

    def layout(self, model: Model) -> dict[str, Field]:
        """Coordinates, rates, and the last step size."""
        return {**row_fields(model), "h": Field((1,), 0.0)}

    def state(self, model: Model, memory: Memory) -> tuple[FloatArray, FloatArray]:
        """The user's q and v."""
        return leave_rows(model, memory)

    def rollout(
        self, model: Model, memory: Memory, clock: Clock, k: int, steps: int, every: int, control: Control
    ) -> Chunk:
        """One interval after the other."""
        if steps == 0:
            self._compile(model, memory)
        rows = saved_rows(k, steps, every)
        q, v = np.zeros((rows, model.nq)), np.zeros((rows, model.nv))
        evaluations = saved = 0
        for i in range(k, k + steps):
            failure, count = self._interval(model, memory, clock, i, control)
            evaluations += count
            if failure:
                return Chunk(i - k, failure, q[:saved], v[:saved], {"evaluations": evaluations})
            if (i + 1) % every == 0:
                q[saved], v[saved] = self.state(model, memory)
                saved += 1
        return Chunk(steps, None, q, v, {"evaluations": evaluations})

    def _interval(self, model: Model, memory: Memory, clock: Clock, k: int, control: Control) -> tuple[str | None, int]:
        """Advance the memory by one interval; returns a failure in words, and the number of evaluations."""
        from scipy.integrate import DOP853

        from leastaction.explicit import step as explicit_step

        t, end, nv = clock.at(k), clock.at(k + 1), model.nv
        tau = self._sample(model, memory, t, k, control)
        x, out = memory["x"], np.zeros(2 * nv)

        def rates(time: float, y: FloatArray) -> FloatArray:
            if not explicit_step.local_system(model.system, time, x, np.ascontiguousarray(y), tau, out):
                out[:] = np.nan
            return out.copy()

        y0 = np.concatenate([np.zeros(nv), memory["u"]])
        h, short = float(memory["h"][0]), 0
        # a first step cannot be chosen, ever, from rates that are not finite
        if h == 0 and not np.isfinite(rates(t, y0)).all():
            return "the accelerations are not finite; check forces and control", 1
        # numbers that leave the finite ones inside a step that is too large are no concern: it is taken again
        with np.errstate(over="ignore", invalid="ignore"):
            solver = DOP853(rates, t, y0, end, rtol=self.rtol, atol=self.atol, first_step=min(h, end - t) or None)
            while solver.status == "running":
                message = solver.step()
                if solver.status == "failed" or not np.isfinite(solver.y).all():
                    return f"the step size went to zero near t = {solver.t:g}: {message}", solver.nfev
                short += solver.status == "running" and solver.step_size < _SHORT * (end - t)
                if short > _MOST_SHORT:
                    words = "accelerations change too fast to follow, as where a loop comes near a singular position"
                    return f"the step size fell to {solver.step_size:.3g} s near t = {solver.t:g}: {words}", solver.nfev
                # the last step is cut at the end: remember the one before
                if solver.status == "running" or solver.step_size > h:
                    h = solver.step_size
        # only a whole interval changes the memory
        x_new, u_new = np.zeros(model.nq), solver.y[nv:].copy()
        explicit_step.displaced_state(model.system, x, solver.y[:nv].copy(), x_new)
        memory["x"], memory["u"], memory["h"] = x_new, u_new, np.array([h])
        return None, solver.nfev

    def _compile(self, model: Model, memory: Memory) -> None:
        """Load and compile what an interval needs, without running it."""
        from numba import typeof
        from scipy.integrate import DOP853  # noqa: F401

        from leastaction.explicit import step as explicit_step

        x, u, system = memory["x"], memory["u"], model.system
        for entry, arguments in (
            (explicit_step.local_system, (system, 0.0, x, np.zeros(2 * model.nv), u, np.zeros(2 * model.nv))),
            (explicit_step.displaced_state, (system, x, u, x)),
            (explicit_step.sample_control, (system, 0, 0.0, x, u, u)),
        ):
            entry.compile(tuple(typeof(argument) for argument in arguments))

    def _sample(self, model: Model, memory: Memory, t: float, k: int, control: Control) -> FloatArray:
        """Control of the interval that starts at step k."""
        tau = np.zeros(model.nv)
        if control.callback is not None:
            from leastaction.explicit import step as explicit_step

            explicit_step.sample_control(model.system, control.callback.address, t, memory["x"], memory["u"], tau)
        elif len(control.array):
            tau[:] = control.array[k]
        return tau
