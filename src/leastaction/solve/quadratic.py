"""Convex quadratic programs, solved by PIQP (the extra ``qp``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray

# Programs are scaled before they are solved, so that these are relative.
_TOLERANCE = 1e-10
_ITERATIONS = 200


def solve_program(
    H: FloatArray, g: FloatArray, lower: FloatArray, upper: FloatArray, E: FloatArray | None = None
) -> tuple[FloatArray, bool]:
    """min x^T H x / 2 + g^T x with lower <= x <= upper and E x >= 0, for H (n, n) symmetric and not negative.

    Returns the minimiser (n,), and whether the solver reached its tolerance. Bounds may be infinite.
    """
    n = len(g)
    if n == 0:
        return np.zeros(0), True
    piqp = _piqp()
    # unit diagonal, and a unit right-hand side
    size = np.sqrt(np.maximum(np.diag(H), 1e-300))
    size = np.where(size > 1e-12 * size.max(), size, size.max() or 1.0)
    scaled = H / np.outer(size, size)
    push = g / size
    scale = float(np.abs(push).max())
    bounded = np.isfinite(lower) | np.isfinite(upper)
    scale = max(scale, float(np.abs(np.where(bounded & np.isfinite(lower), lower * size, 0.0)).max())) or 1.0
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = _TOLERANCE
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = _TOLERANCE
    settings.max_iter = _ITERATIONS
    rows: dict[str, Any] = {}
    if E is not None and len(E):
        rows = {"G": np.asfortranarray(E / size), "h_l": np.zeros(len(E)), "h_u": np.full(len(E), np.inf)}
    solver.setup(
        np.asfortranarray(0.5 * (scaled + scaled.T)), push / scale,
        x_l=lower * size / scale, x_u=upper * size / scale, **rows,
    )  # fmt: skip
    status = solver.solve()
    x = np.asarray(solver.result.x) * scale / size
    # interior points stay inside the bounds but for rounding
    return np.clip(x, lower, upper), status == piqp.PIQP_SOLVED


def _piqp() -> Any:
    """The solver's package, or an error that says how to get it."""
    try:
        import piqp
    except ImportError as error:
        how = "pip install 'leastaction[qp]'"
        raise ModelError(f"contact and friction as quadratic programs need PIQP: {how}.") from error
    return piqp
