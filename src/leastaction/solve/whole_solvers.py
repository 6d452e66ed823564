"""Linear solvers by name for the whole system of a step: along its graph, dense, or sparse by SuperLU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastaction.kernels.layout import Floats
from leastaction.solve.graph_system import GraphFactors
from leastaction.solve.whole_plan import WholePlan

LINEAR = ("nullspace", "graph", "dense", "scipy")
"""Names of linear solvers of ``Maximal``; the first is that of the compiled recursion."""

LOOPS = ("graph", "last")
"""Where the multipliers of loops and constraints are eliminated."""

Solve = Callable[[Floats], Floats]

# Sweeps of refinement with the residual of the original matrix.
_SWEEPS = 2


def solve_whole(name: str, plan: WholePlan, values: Floats, rhs: Floats) -> Floats | None:
    """Solution (size,) of the whole system; None where it is singular or not finite."""
    if not (np.isfinite(values).all() and np.isfinite(rhs).all()):
        return None
    # rows of stiff contacts are some 1e10 times larger than others: residuals of all rows must count in the refinement
    r = _scales(np.abs(values), plan.rows, plan.size)
    values, rhs = values * r[plan.rows], rhs * r
    solution = _by_graph(plan, values, rhs) if name == "graph" else _refined(name, plan, values, rhs)
    return solution if solution is not None and np.isfinite(solution).all() else None


def _by_graph(plan: WholePlan, values: Floats, rhs: Floats) -> Floats | None:
    """In-place block LDU along the graph, with scaling and refinement (Bruedigam et al. 2023, Algorithms 3 and 4)."""
    from leastaction.kernels.graph import factor_graph

    system = plan.graph
    blocks = np.zeros(int(system.plan.total[0]))
    blocks[plan.index] = values
    factors, pivot = np.empty_like(blocks), np.empty(plan.size, dtype=np.int64)
    r, c = np.empty(plan.size), np.empty(plan.size)
    if factor_graph(system.plan, blocks, factors, pivot, r, c, True) >= 0:
        return None
    return GraphFactors(system, blocks, factors, pivot, r, c).solve(rhs, refine=_SWEEPS)


def _refined(name: str, plan: WholePlan, values: Floats, rhs: Floats) -> Floats | None:
    """Columns scaled too, factorised, and refined."""
    c = _scales(np.abs(values), plan.columns, plan.size)
    solve = (_dense if name == "dense" else _sparse)(plan, values * c[plan.columns])
    if solve is None:
        return None
    x = np.zeros(plan.size)
    left, best = rhs, np.inf
    for _ in range(1 + _SWEEPS):
        trial = x + c * solve(left)
        left = _residual(plan, values, rhs, trial)
        worst = float(np.abs(left).max())
        if not worst < best:
            break
        x, best = trial, worst
    return x


def _residual(plan: WholePlan, values: Floats, rhs: Floats, x: Floats) -> Floats:
    """rhs - A x, summed with more digits than it is given in: small forces stand beside stiff ones in a row."""
    total = rhs.astype(np.longdouble)
    np.subtract.at(total, plan.rows, values.astype(np.longdouble) * x[plan.columns])
    return total.astype(float)


def _scales(sizes: Floats, at: Any, size: int) -> Floats:
    """Powers of two that bring the largest number at each place to between 1/2 and 1; 1 where there is none."""
    largest = np.zeros(size)
    np.maximum.at(largest, at, sizes)
    return np.where(largest > 0, np.ldexp(1.0, -np.frexp(largest)[1]), 1.0)


def _dense(plan: WholePlan, values: Floats) -> Solve | None:
    """LAPACK's LU factors."""
    from scipy.linalg.lapack import dgetrf, dgetrs

    matrix = np.zeros((plan.size, plan.size))
    matrix[plan.rows, plan.columns] = values
    factors, pivot, info = dgetrf(matrix)
    return None if info != 0 else lambda b: dgetrs(factors, pivot, b)[0]


def _sparse(plan: WholePlan, values: Floats) -> Solve | None:
    """SuperLU's factors."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    matrix = csc_matrix((values, (plan.rows, plan.columns)), shape=(plan.size, plan.size))
    try:
        return splu(matrix).solve  # type: ignore[no-any-return]
    except RuntimeError:
        # SuperLU's word for a singular matrix
        return None
