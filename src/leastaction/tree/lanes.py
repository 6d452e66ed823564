"""Four environments at once: their numbers in and out of lanes, and their rates from momenta."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import LANES
from leastaction.tree.articulated import clear, eliminate, expand
from leastaction.tree.kinematics import inertias, kinematics


@sweep
def lane_rates(tree, x, p, f, u):
    """u (nu, 4) = M^-1 p."""
    kinematics(tree, x, f.P, f.S)
    inertias(tree, x, f.P, f.M)
    clear(p, f.F, 6)
    eliminate(tree, f.S, f.M, f.A, f.F, p, f.U, f.y)
    expand(tree, f.S, f.U, f.y, f.Z, u)


@kernel
def load_lanes(many, first, count, some):
    """some (k, 4) from rows first.. of many (environments, k); lanes beyond ``count`` are copies of the last one."""
    for e in range(LANES):
        for k in range(some.shape[0]):
            some[k, e] = many[first + min(e, count - 1), k]


@kernel
def store_lanes(some, first, count, many):
    """Rows first.. of many from the lanes that are environments of their own."""
    for e in range(count):
        for k in range(some.shape[0]):
            many[first + e, k] = some[k, e]
