"""Adjoint of implicit steps with closed loops or equality constraints of the user, dense.

With N = M + gh Ku and the symbols of ``implicit/loops.py``, a solved stage varies as

    N gh du + (gh^2 Kx - B(l)) dx - J^T dl = gh M duh + gh^2 (df - r_p dp)
    J dx = 0          gh D dx + J gh du = 0
    dx = A dx_0 + E dxi          gh du = U dxi - E dxih - W B(m) dx - W J^T dm

for the unknowns dxi, dl, dm. Redundant rows are first replaced by as many independent combinations of them. The way
back through the history is that of ``implicit/adjoint.py``. Directions of the first state that leave the
manifold are projected, as ``leastaction.project`` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.methods.closing import row_count
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.tree.layout import BALL, IU, KIND

# Singular values below this part of the largest are those of redundant rows.
_REDUNDANT = 1e-10


class _Stage:
    """Matrices of one solved stage."""

    def __init__(
        self, model: Model, chart: Any, t: float, gh: float, x0: FloatArray, xi: FloatArray, xih: FloatArray,
        uh: FloatArray, control: FloatArray, u: FloatArray | None,
    ) -> None:  # fmt: skip
        from leastaction.implicit import loops_linear as implicit_loops_linear

        n, m = model.nv, row_count(model)
        self.model, self.gh = model, gh
        y = xi - xih
        self.E, self.U, self.A = charts_at(model, chart, xi, y)
        self.x, r, none = np.zeros(model.nq), np.zeros(n), np.zeros(m)
        self.M, self.Kx, self.Ku, B1, B2 = (np.zeros((n, n)) for _ in range(5))
        J, D, W, size = np.zeros((m, n)), np.zeros((m, n)), np.zeros(n), np.ones(m)
        tables = implicit_loops_linear.StageTables(self.x, r, self.M, self.Kx, self.Ku, J, D, B1, B2, W, size)

        def fill(rates: FloatArray, l: FloatArray, drift: FloatArray) -> None:
            implicit_loops_linear.stage_tables(
                model.system, chart, t, x0, xi, rates, (rates - uh) / gh, control, l, drift, tables
            )
            model.raise_pending()

        # rates: those of the coordinates less what leaves the manifold
        free = self.E @ y / gh
        fill(free if u is None else u, none, none)
        # rows in the metric of mass, each compared with its size
        half = np.linalg.solve(np.linalg.cholesky(self.M), J.T) / np.sqrt(size)
        left, sizes, _ = np.linalg.svd(half.T, full_matrices=False)
        basis = left[:, sizes > _REDUNDANT] / np.sqrt(size)[:, None]
        rows = basis.T @ J
        if u is None:
            u = free - W * (rows.T @ np.linalg.solve(rows * W @ rows.T, rows @ free))
            fill(u, none, none)
        # multipliers
        l = basis @ np.linalg.lstsq(rows.T, gh * gh * r, rcond=None)[0]
        drift = basis @ np.linalg.lstsq(rows.T, gh * (free - u) / W, rcond=None)[0]
        fill(u, l, drift)
        self.u, self.a, self.B, self.W = u, (u - uh) / gh, W[:, None] * B2, W
        self.J, self.D = rows, basis.T @ D
        self.N, self.K = self.M + gh * self.Ku, gh * gh * self.Kx - B1

    def back(
        self, lx: FloatArray, lu: FloatArray, l: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Multipliers z of the residual, and derivatives by x_0, xih and uh, from those by x, u and xi; columns."""
        gh, J, E, B, n = self.gh, self.J, self.E, self.B, len(lx)
        m = len(J)
        spin = self.U - B @ E
        matrix = np.zeros((n + 2 * m, n + 2 * m))
        drift = self.W[:, None] * J.T
        matrix[:n, :n], matrix[:n, n : n + m], matrix[:n, n + m :] = self.N @ spin + self.K @ E, -J.T, -self.N @ drift
        matrix[n : n + m, :n] = J @ E
        matrix[n + m :, :n], matrix[n + m :, n + m :] = gh * self.D @ E + J @ spin, -J @ drift
        by_x = lx - B.T @ lu / gh
        side = np.concatenate([E.T @ by_x + self.U.T @ lu / gh + l, np.zeros((m, lx.shape[1])), -drift.T @ lu / gh])
        z = np.linalg.solve(matrix.T, side)
        z1, z2, z3 = z[:n], z[n : n + m], z[n + m :]
        held = (self.K - self.N @ B).T @ z1 + J.T @ z2 + (gh * self.D - J @ B).T @ z3
        to_start = self.A.T @ (by_x - held)
        to_xih = E.T @ (self.N.T @ z1 + J.T @ z3 - lu / gh)
        return gh * gh * z1, to_start, to_xih, gh * self.M.T @ z1


def backward(
    model: Model, double: Any, two: Any, times: FloatArray, past_h: float, controls: FloatArray, trace: Any,
    lx: FloatArray, lu: FloatArray, by_control: FloatArray, record: Any = None,
) -> None:  # fmt: skip
    """All steps of a trace, the last one first, for c results at once.

    Args:
        model: the mechanism.
        double: whether each step is one of SDIRK2.
        two: whether each step is one of BDF2.
        times: (steps, 2) time and length of each step.
        past_h: length of the step before the first.
        controls: (steps, nv).
        trace: of ``Implicit.make_trace``.
        lx: (steps + 2, nv, c) derivatives by the displacements of the states of the trace; they grow on the way.
        lu: the same by the rates.
        by_control: (steps, nv, c), written.
        record: of ``implicit.adjoint``, for one result; or None.
    """
    for k in range(len(times) - 1, -1, -1):
        before = times[k - 1, 1] if k > 0 else past_h
        _step_back(model, double[k], two[k], times[k], before, k, controls[k], trace, lx, lu, by_control, record)


def _step_back(
    model: Model, double: bool, two: bool, time: FloatArray, before: float, k: int, control: FloatArray, trace: Any,
    lx: FloatArray, lu: FloatArray, by_control: FloatArray, record: Any,
) -> None:  # fmt: skip
    """Step k of a trace; see ``implicit.adjoint.backward_step``."""
    from leastaction.implicit import loops_linear as implicit_loops_linear

    t, h = time
    x0, u0, chart = trace.x[k + 1], trace.u[k + 1], trace.chart[k]
    xi0, xip = np.zeros(model.nv), np.zeros(model.nv)
    implicit_loops_linear.chart_coordinates(model.system, chart, x0, trace.x[k] if two else x0, xi0, xip)
    gh, c0, c1, first = h, 1.0, 0.0, None
    up = u0
    if double:
        alpha = 1.0 - np.sqrt(0.5)
        gh, c1 = alpha * h, (1.0 - alpha) / alpha
        c0, xip = 1.0 - c1, trace.xi[k, 0]
        first = _Stage(model, chart, t + gh, gh, x0, xip, xi0, u0, control, None)
        up = first.u
    elif two:
        z = h / before
        gh, c0, c1 = h * (1 + z) / (1 + 2 * z), (1 + z) ** 2 / (1 + 2 * z), -(z**2) / (1 + 2 * z)
        up = trace.u[k]
    # last stage
    xih, uh = c0 * xi0 + c1 * xip, c0 * u0 + c1 * up
    last = _Stage(model, chart, t + h, gh, x0, trace.xi[k, 1], xih, uh, control, trace.u[k + 2])
    none = np.zeros_like(lx[0])
    z, to_start, to_xih, to_uh = last.back(lx[k + 2], lu[k + 2], none)
    _count(last, t + h, z, k, 1, by_control, record)
    lx[k + 1] += to_start
    lu[k + 1] += c0 * to_uh
    by_xi0 = c0 * to_xih
    if first is not None:
        # stage a, which the result itself does not see
        z, to_start, by_start, by_rate = first.back(none, c1 * to_uh, c1 * to_xih)
        _count(first, t + gh, z, k, 0, by_control, record)
        lx[k + 1] += to_start
        lu[k + 1] += by_rate
        by_xi0 = by_xi0 + by_start
    elif two:
        # xi_p: dxi_p = E^-1 (dx_p - A dx_0)
        E, _, A = charts_at(model, chart, xip, np.zeros(model.nv))
        pulled = np.linalg.solve(E.T, c1 * to_xih)
        lx[k + 1] -= A.T @ pulled
        lx[k] += pulled
        lu[k] += c1 * to_uh
    # coordinates xi_0 of an Euler chart follow x_0, others do not
    E, _, A = charts_at(model, chart, xi0, np.zeros(model.nv))
    lx[k + 1] += np.linalg.solve(E.T, by_xi0) * (np.abs(A).sum(axis=1) == 0.0)[:, None]


def _count(stage: _Stage, t: float, z: FloatArray, k: int, j: int, by_control: FloatArray, record: Any) -> None:
    """Add what a stage owes to the control, and write it to the record."""
    from leastaction.dynamics import entries

    none, out = np.zeros(stage.model.nq), np.zeros(stage.model.nv)
    for c in range(z.shape[1]):
        entries.leave(stage.model.system, stage.x, np.ascontiguousarray(z[:, c]), none, out)
        by_control[k, :, c] += out
    if record is not None:
        record.x[k, j], record.u[k, j], record.a[k, j], record.z[k, j] = stage.x, stage.u, stage.a, z[:, 0]
        record.t[k, j] = t


def charts_at(model: Model, chart: Any, xi: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """E, U and A (nv, nv) of ``tree.charts``."""
    from leastaction.implicit import loops_linear as implicit_loops_linear

    n = model.nv
    blocks = [np.zeros((n, 3)) for _ in range(3)]
    implicit_loops_linear.chart_tables(model.system, chart, xi, y, *blocks)
    out = []
    for block in blocks:
        whole = np.zeros((n, n))
        for row in model.system.tree.rows[1:]:
            d = row[IU]
            if row[KIND] == BALL:
                whole[d : d + 3, d : d + 3] = block[d : d + 3]
            else:
                whole[d, d] = block[d, 0]
        out.append(whole)
    return out[0], out[1], out[2]
