"""Sizes of the rows of loops and constraints, for what is compared with them outside of compiled code."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.dynamics.forward import make_work
from leastaction.jit.decorators import entry
from leastaction.loops.nodes import gap_rounding, make_loop_rows, node_rows, row_size
from leastaction.tree.kinematics import kinematics, velocities


@entry
def row_sizes(system, t, x, u, out):
    """out (m, 3): what makes an angle of a gap, the rounding of the gap by that of positions, ``rows.mobility``."""
    f = make_work(system, x)
    L = make_loop_rows(system.loops, system.constraints, system.tree, 1, False)
    kinematics(system.tree, x, f.P, f.S)
    velocities(system.tree, u, f.S, f.V)
    node_rows(system, t, 1.0, x, f, L, 0)
    for k in range(L.kind.size):
        out[k, 0], out[k, 1], out[k, 2] = row_size(L, k, k), gap_rounding(L, k, k, f.P), L.size[k]
