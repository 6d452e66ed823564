"""Linear solvers by name for the whole system of a step: along its graph, dense, or sparse by SuperLU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from leastaction.maximal.full_system.plan import FullPlan
from leastaction.solve.graph_system import GraphFactors
from leastaction.tree.layout import Floats

LINEAR = ("nullspace", "graph", "dense", "scipy")
"""Names of linear solvers of ``Maximal``; the first is that of the compiled recursion."""

LOOPS = ("graph", "last")
"""Where the multipliers of loops and constraints are eliminated."""

Solve = Callable[[Floats], Floats]

# Sweeps of refinement with the residual of the original matrix.
_SWEEPS = 2


def solve_full_system(
    name: str, plan: FullPlan, values: Floats, rhs: Floats, eps: float = 0.0, held: Floats | None = None
) -> Floats | None:
    """Solution (size,) of the whole system; None where it is singular or not finite.

    Args:
        name: one of ``LINEAR`` but for the first.
        plan: where the numbers belong.
        values: the matrix.
        rhs: the right-hand side (size,).
        eps: above 0, multipliers of loops and constraints are found in least squares, as
            ``maximal.loops.take_care`` says; singular values of their matrix below eps do not count.
        held: roots of the sizes of the rows of multipliers, in whose units that matrix is taken.
    """
    if not (np.isfinite(values).all() and np.isfinite(rhs).all()):
        return None
    if eps > 0.0 and len(plan.tables["parts"]):
        solution = _with_care(name, plan, values, rhs, eps, held)
    else:
        solve = _factorised(name, plan, values)
        solution = None if solve is None else solve(rhs)
    return solution if solution is not None and np.isfinite(solution).all() else None


def _with_care(
    name: str, plan: FullPlan, values: Floats, rhs: Floats, eps: float, sizes: Floats | None
) -> Floats | None:
    """All but the multipliers eliminated, and these in least squares: least |S lam - s|^2 + eps^2 |lam|^2."""
    held = np.concatenate([first + np.arange(count) for _, first, count in plan.tables["parts"].tolist()])
    number = np.full(plan.size, -1)
    number[held] = np.arange(len(held))
    i, j = number[plan.rows], number[plan.columns]
    # the system without multipliers, which keep their places in it
    alone = np.where((i < 0) & (j < 0), values, np.where((i >= 0) & (plan.rows == plan.columns), 1.0, 0.0))
    solve = _factorised(name, plan, alone)
    if solve is None:
        return None
    push, gap, inner = np.zeros((plan.size, len(held))), np.zeros((len(held), plan.size)), (i >= 0) & (j >= 0)
    np.add.at(push, (plan.rows[(i < 0) & (j >= 0)], j[(i < 0) & (j >= 0)]), values[(i < 0) & (j >= 0)])
    np.add.at(gap, (i[(i >= 0) & (j < 0)], plan.columns[(i >= 0) & (j < 0)]), values[(i >= 0) & (j < 0)])
    S = np.zeros((len(held), len(held)))
    np.add.at(S, (i[inner], j[inner]), values[inner])
    free = np.where(number < 0, rhs, 0.0)
    columns = [solve(column) for column in (*push.T, free)]
    if not all(column is not None and np.isfinite(column).all() for column in columns):
        return None
    motion = np.array(columns).T
    S -= gap @ motion[:, :-1]
    given = rhs[held] - gap @ motion[:, -1]
    unit = np.ones(len(held)) if sizes is None else 1.0 / sizes
    given, S = np.concatenate([unit * given, np.zeros(len(held))]), unit[:, None] * S * unit
    lam = unit * np.linalg.lstsq(np.concatenate([S, eps * np.eye(len(held))]), given, rcond=None)[0]
    out = solve(free - push @ lam)
    if out is not None:
        out[held] = lam
    return out


def _factorised(name: str, plan: FullPlan, values: Floats) -> Solve | None:
    """A solver for right-hand sides (size,); None where the matrix is singular."""
    # rows of stiff contacts are some 1e10 times larger than others: residuals of all rows must count in the refinement
    r = _scales(np.abs(values), plan.rows, plan.size)
    values = values * r[plan.rows]
    solve = (_by_graph if name == "graph" else partial(_refined, name))(plan, values)
    return None if solve is None else lambda rhs: solve(rhs * r)


def _by_graph(plan: FullPlan, values: Floats) -> Solve | None:
    """In-place block LDU along the graph, with scaling and refinement (Bruedigam et al. 2023, Algorithms 3 and 4)."""
    from leastaction.solve.graph import factor_graph

    system = plan.graph
    blocks = np.zeros(int(system.plan.total[0]))
    blocks[plan.index] = values
    factors, pivot = np.empty_like(blocks), np.empty(plan.size, dtype=np.int64)
    r, c = np.empty(plan.size), np.empty(plan.size)
    if factor_graph(system.plan, blocks, factors, pivot, r, c, True) >= 0:
        return None
    return partial(GraphFactors(system, blocks, factors, pivot, r, c).solve, refine=_SWEEPS)


def _refined(name: str, plan: FullPlan, values: Floats) -> Solve | None:
    """Columns scaled too, factorised, and refined."""
    c = _scales(np.abs(values), plan.columns, plan.size)
    solve = (_dense if name == "dense" else _sparse)(plan, values * c[plan.columns])
    if solve is None:
        return None

    entries = _by_rows(plan)

    def refined(rhs: Floats) -> Floats:
        y = solve(rhs)
        x, size = c * y, float(np.abs(y).max())
        for _ in range(_SWEEPS):
            y = solve(_residual(plan, entries, values, rhs, x))
            # corrections shrink, until the matrix is singular to working precision
            if not np.abs(y).max() < 0.5 * size:
                break
            x, size = x + c * y, float(np.abs(y).max())
        return x

    return refined


def _by_rows(plan: FullPlan) -> list[Any]:
    """Numbers of the matrix, at most one of each row at a time: a partition of range(len(plan.rows))."""
    order = np.argsort(plan.rows, kind="stable")
    begin = np.searchsorted(plan.rows[order], plan.rows[order])
    turn = np.arange(len(order)) - begin
    return [order[turn == k] for k in range(int(turn.max(initial=-1)) + 1)]


def _residual(plan: FullPlan, entries: list[Any], values: Floats, rhs: Floats, x: Floats) -> Floats:
    """rhs - A x with twice the digits: small forces stand beside stiff ones in a row (Ogita, Rump and Oishi 2005)."""
    total, rest = rhs.copy(), np.zeros_like(rhs)
    for some in entries:
        i, a, b = plan.rows[some], -values[some], x[plan.columns[some]]
        # product = a b and its error, sum and its error
        product = a * b
        (a0, a1), (b0, b1) = _halves(a), _halves(b)
        error = a1 * b1 - (((product - a0 * b0) - a1 * b0) - a0 * b1)
        before = total[i]
        total[i] = before + product
        part = total[i] - before
        rest[i] += error + ((before - (total[i] - part)) + (product - part))
    return total + rest


def _halves(a: Floats) -> tuple[Floats, Floats]:
    """a as a sum of two numbers of half the digits."""
    big = 134217729.0 * a
    high = big - (big - a)
    return high, a - high


def _scales(sizes: Floats, at: Any, size: int) -> Floats:
    """Powers of two that bring the largest number at each place to between 1/2 and 1; 1 where there is none."""
    largest = np.zeros(size)
    np.maximum.at(largest, at, sizes)
    return np.where(largest > 0, np.ldexp(1.0, -np.frexp(largest)[1]), 1.0)


def _dense(plan: FullPlan, values: Floats) -> Solve | None:
    """LAPACK's LU factors."""
    from scipy.linalg.lapack import dgetrf, dgetrs

    matrix = np.zeros((plan.size, plan.size))
    matrix[plan.rows, plan.columns] = values
    factors, pivot, info = dgetrf(matrix)
    return None if info != 0 else lambda b: dgetrs(factors, pivot, b)[0]


def _sparse(plan: FullPlan, values: Floats) -> Solve | None:
    """SuperLU's factors."""
    from scipy.sparse import csc_matrix
    from scipy.sparse.linalg import splu

    matrix = csc_matrix((values, (plan.rows, plan.columns)), shape=(plan.size, plan.size))
    try:
        return splu(matrix).solve  # type: ignore[no-any-return]
    except RuntimeError:
        # SuperLU's word for a singular matrix
        return None
