"""What the adjoint of implicit steps with loops or constraints needs of compiled code: tables of a solved stage.

The rest is small and dense and stands in ``implicit.loops_adjoint``. Symbols as in ``implicit.stage`` and
``implicit.loops``.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.dynamics.forward import make_work
from leastaction.forces.columns import make_columns
from leastaction.implicit.loops import make_stage_loops, stage_rows
from leastaction.implicit.stage import dynamics, dynamics_derivatives, make_stage
from leastaction.jit.decorators import entry
from leastaction.loops.curvatures import bend, curvatures, row_changes
from leastaction.tree.arrays import copy
from leastaction.tree.charts import base_blocks, chart_blocks, other_coordinates, place_coordinates, start_coordinates


@entry
def stage_tables(system, chart, t, x0, xi, u, a, control, l, m, x, r, M, Kx, Ku, J, D, B1, B2, W, size):
    """Tables of a stage at the coordinates xi with rates u and accelerations a.

    Writes x (nx,), the residual r (nu,) without constraints, M, Kx, Ku (nu, nu), rows J and D (m, nu), the bends
    B1 = B(l), B2 = B(m) (nu, nu) of the multipliers l, m (m,), W (nu,) and the sizes (m,) of the rows. False if a ball
    turned too far.
    """
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
    bend(system.tree, s.x, f, k, l, B1)
    bend(system.tree, s.x, f, k, m, B2)
    copy(s.x, x)
    copy(s.r, r)
    copy(k.measure, W)
    copy(k.L.size, size)
    for i in range(r.size):
        copy(s.M[i], M[i])
        copy(s.Kx[i], Kx[i])
        copy(s.Ku[i], Ku[i])
    for i in range(l.size):
        copy(k.J[i], J[i])
        copy(k.D[i], D[i])
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
