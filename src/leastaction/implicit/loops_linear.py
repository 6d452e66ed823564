"""What the adjoint of implicit steps with loops or constraints needs of compiled code: tables of a solved stage.

The rest is small and dense and stands in ``implicit.loops_adjoint``. Symbols as in ``implicit.stage`` and
``implicit.loops``.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

from leastaction.dynamics.forward import make_work
from leastaction.forces.columns import make_columns
from leastaction.implicit.loops import make_stage_loops, stage_rows
from leastaction.implicit.stage import dynamics, dynamics_derivatives, make_stage
from leastaction.jit.decorators import entry
from leastaction.loops.curvatures import bend, curvatures, row_changes
from leastaction.tree.arrays import copy
from leastaction.tree.charts import base_blocks, chart_blocks, other_coordinates, place_coordinates, start_coordinates
from leastaction.tree.layout import Floats


class StageTables(NamedTuple):
    """x (nx,), residual r (nu,) without constraints, M, Kx, Ku (nu, nu), rows J and D (m, nu) of a stage.

    B1 = B(l), B2 = B(m) (nu, nu) are bends of multipliers l, m (m,); W (nu,), and the sizes (m,) of the rows.
    """

    x: Floats
    r: Floats
    M: Floats
    Kx: Floats
    Ku: Floats
    J: Floats
    D: Floats
    B1: Floats
    B2: Floats
    W: Floats
    size: Floats


@entry
def stage_tables(system, chart, t, x0, xi, u, a, control, l, m, out):
    """Tables of a stage at the coordinates xi with rates u and accelerations a. False if a ball turned too far."""
    f, s, w = make_work(system, x0), make_stage(system.tree, x0.size), make_columns(system)
    k = make_stage_loops(system.loops, system.constraints, system.tree)
    good = place_coordinates(system.tree, chart, x0, xi, s.x)
    copy(u, s.u)
    copy(a, s.a)
    dynamics(system, t, control, s, f)
    dynamics_derivatives(system, t, s, f, w, True)
    stage_rows(system, t, s.x, f, k)
    curvatures(system, t, s.x, f, k)
    row_changes(system.tree, s.x, s.u, f, k)
    bend(system.tree, s.x, f, k, l, out.B1)
    bend(system.tree, s.x, f, k, m, out.B2)
    copy(s.x, out.x)
    copy(s.r, out.r)
    copy(k.measure, out.W)
    copy(k.L.size, out.size)
    for i in range(out.r.size):
        copy(s.M[i], out.M[i])
        copy(s.Kx[i], out.Kx[i])
        copy(s.Ku[i], out.Ku[i])
    for i in range(l.size):
        copy(k.J[i], out.J[i])
        copy(k.D[i], out.D[i])
    return good


@entry
def chart_tables(system, chart, xi, y, E, U, A):
    """Blocks E, U, A (nu, 3) of ``tree.charts``."""
    chart_blocks(system.tree, chart, xi, y, E, U)
    base_blocks(system.tree, chart, xi, A)


@entry
def chart_coordinates(system, chart, x0, x, xi0, xi):
    """Coordinates xi0 (nu,) of the start x0 of a step, and xi (nu,) of another configuration x near it."""
    start_coordinates(system.tree, chart, x0, xi0)
    other_coordinates(system.tree, chart, x0, xi0, x, xi)
