"""The adjoint of BDF and SDIRK2 behind one face: trees by ``implicit/adjoint.py``, loops by ``loops_adjoint.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, final

import numpy as np

from leastaction.errors import ConvergenceError
from leastaction.implicit.forms import BDF2_CODE, SDIRK2_CODE, differentiable, no_record, one_form, row_changes
from leastaction.implicit.loops_adjoint import backward as backward_with_loops
from leastaction.methods.base import Chunk, Clock, Control, Memory
from leastaction.methods.closing import row_count
from leastaction.methods.derivative import StepDerivative
from leastaction.methods.reverse import Reverse
from leastaction.methods.tangent import Tangent
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State


@final
class ImplicitReverse(Reverse):
    """Forth and back through the stages of BDF and SDIRK2.

    Args:
        make_trace: (model, steps) -> room for a trace.
        traced: ``Implicit.traced``.
        code: number of the method.
        model: the mechanism.
    """

    parameters: ClassVar[tuple[str, ...]] = ("stiffness", "damping", "mass", "inertia", "placement", "friction")

    def __init__(self, make_trace: Callable[..., Any], traced: Callable[..., Chunk], code: int, model: Model) -> None:
        self._make_trace, self._traced, self._code = make_trace, traced, code
        self._given, self.model = model, differentiable(model)

    def forward(self, memory: Memory, clock: Clock, first: int, steps: int, controls: FloatArray) -> tuple[Chunk, Any]:
        """Steps in one compiled call, with the states, charts and coordinates of their stages."""
        trace = self._make_trace(self._given, steps)
        chunk = self._traced(self._given, memory, clock, first, steps, 1, Control(controls), trace)
        self._given.raise_pending()
        return chunk, trace

    def back(
        self, start: Memory, times: FloatArray, controls: FloatArray, trace: Any, lx: FloatArray, lu: FloatArray,
        record: Any,
    ) -> tuple[FloatArray, int]:  # fmt: skip
        """Back through these steps: compiled on trees, dense with loops and constraints."""
        from leastaction.implicit import adjoint as implicit_adjoint

        model, out = self.model, np.zeros_like(controls)
        known, past_h, bad = bool(start["known"][0]), float(start["past_h"][0]), -1
        if row_count(model):
            two = [self._code == BDF2_CODE and (known or k > 0) for k in range(len(times))]
            double = [self._code in (BDF2_CODE, SDIRK2_CODE) and not each for each in two]
            wide = (lx[..., None], lu[..., None], out[..., None])
            try:
                backward_with_loops(model, double, two, times, past_h, controls, trace, *wide, record)
            except np.linalg.LinAlgError as error:
                raise ConvergenceError("gradient: the matrix of a step is singular; take a smaller dt.") from error
        else:
            kept = no_record(model) if record is None else record
            bad = implicit_adjoint.backward(
                one_form(model), self._code, known, times, past_h, controls, trace, lx, lu, out, kept
            )
        model.raise_pending()
        return out, bad

    def record(self, steps: int) -> Any:
        """Room for two stages of every step."""
        from leastaction.implicit.adjoint import Record

        q, (v, a, z) = np.zeros((steps, 2, self.model.nq)), np.zeros((3, steps, 2, self.model.nv))
        return Record(q, v, a, z, np.zeros((steps, 2)))

    def changes(self, state: State) -> FloatArray:
        """(2 nv, 2 nv) changes of the rows' state by those of the user's: displacements and rates."""
        return row_changes(self.model, state)

    def add_rows(self, record: Any, rows: FloatArray) -> None:
        """Add derivatives by the numbers of every row (rows, 16)."""
        from leastaction.implicit.parameters import parameter_sums

        parameter_sums(one_form(self.model), record, rows)
        self.model.raise_pending()


def implicit_derivative(
    model: Model, code: int, state: State, end: State, dt: float, tau: FloatArray, trace: Any
) -> StepDerivative | None:
    """Derivative of one step from a state without a past; None where its matrix is singular.

    Row after row of it is the gradient of one number of the end.

    Args:
        model: the mechanism as the step sees it, with derivatives of all forces.
        code: number of the method.
        state: start of the step.
        end: its end.
        dt: its length, seconds.
        tau: (1, nv) generalised forces.
        trace: of the step.
    """
    from leastaction.implicit import adjoint as implicit_adjoint

    n, times, whole = model.nv, np.array([[state.t, dt]]), np.eye(2 * model.nv)
    lx, lu, out = np.zeros((3, n, 2 * n)), np.zeros((3, n, 2 * n)), np.zeros((1, n, 2 * n))
    lx[2], lu[2] = whole[:n], whole[n:]
    if row_count(model):
        backward_with_loops(model, [code in (BDF2_CODE, SDIRK2_CODE)], [False], times, 0.0, tau, trace, lx, lu, out)
    else:
        for i in range(2 * n):
            one = [np.ascontiguousarray(each[..., i]) for each in (lx, lu, out)]
            bad = implicit_adjoint.backward(
                one_form(model), code, False, times, 0.0, tau, trace, *one, no_record(model)
            )
            model.raise_pending()
            if bad >= 0:
                return None
            for each, row in zip((lx, lu, out), one, strict=True):
                each[..., i] = row
    model.raise_pending()
    inside, outside = row_changes(model, state), row_changes(model, end)
    by_start = np.concatenate([lx[1], lu[1]]).T @ inside
    A, B = np.linalg.solve(outside, by_start), np.linalg.solve(outside, out[0].T)
    if row_count(model):
        A = A @ Tangent(model, state).projector()
    return StepDerivative(np.asarray(A, dtype=float), np.asarray(B, dtype=float), end)
