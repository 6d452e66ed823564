"""Loops and constraints of the user in a step of ``Maximal``: nodes of multipliers in the graph of ``maximal.graph``.

Their forces act at k, along the rows G0 there; the gaps close at k+1. A velocity constraint is that of the mean twist
at the middle pose. Redundant rows do no harm: G1 eta + eps dlam = -g with eps = RHO h^2 times the size of the row
(``loops.rows.mobility``), an incremental proximal term, which is zero where the iteration ends. Multipliers start from
zero in every step, so they do not wander along what the rows leave open. Where a mechanism passes a singular position
within one step, the matrix of the multipliers, h G1 M^-1 G0^T, has a small negative eigenvalue: the proximal iteration
diverges along it while it is smaller than eps, and the step goes on with least squares and the same eps, which never
diverge (``take_care``).

    rows of L (see ``loops.nodes``):  0 at k,  1 at k+1,  2 at the middle pose (velocity constraints only)
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6, st9
from leastaction.loops.nodes import gap_of, rows_at
from leastaction.maximal.forces import mean_twists
from leastaction.maximal.graph import block_place
from leastaction.spatial._source.so3 import exp, log
from leastaction.spatial._source.vector import add3, axpy6, matmul, scale3, transpose
from leastaction.tree.layout import VELOCITY

# The proximal term, relative to h^2 times the sizes of the rows.
RHO = 1.0e-6


@optional(None)
def trust_rows(plan, E):
    """The rows are taken to be well conditioned, but for those that are redundant."""
    E.eps[0] = 0.0


@optional(False)
def take_care(plan, E):
    """From now on rows that are nearly redundant are met in least squares; False if this was so already."""
    changed = E.eps[0] == 0.0
    E.eps[0] = RHO
    return changed and plan.parts.shape[0] > 0


@kernel
def copy_poses(P, Q):
    """Q = P."""
    for i in range(P.shape[0]):
        for e in range(12):
            Q[i, e] = P[i, e]


@sweep
def middle_poses(tree, B, Q):
    """Q: poses halfway between k and k+1."""
    copy_poses(B.P0, Q)
    for i in range(1, tree.rows.shape[0]):
        R0 = ld9(B.P0, i, 0)
        half = exp(scale3(0.5, log(matmul(ld9(B.P1, i, 0), transpose(R0)))))
        st9(Q, i, 0, matmul(half, R0))
        st3(Q, i, 9, scale3(0.5, add3(ld3(B.P0, i, 9), ld3(B.P1, i, 9))))


@optional(None)
def start_loops(loops, system, t, h, x, B, f, L):
    """Rows at k, and no multipliers yet."""
    tree = system.tree
    for i in range(tree.rows.shape[0]):
        st6(f.V, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    rows_at(system, t, h, x, B.P0, f.V, f, L, 0)
    for k in range(L.kind.size):
        L.lam[0, k] = 0.0


@kernel
def has_velocity(L):
    """Whether there is a velocity constraint."""
    found = False
    for k in range(L.kind.size):
        found = found or L.kind[k] == VELOCITY
    return found


@optional((0.0, 0.0))
def end_loops(loops, system, t, h, B, f, L):
    """Rows and gaps at the end of the step; forces of the multipliers into B.W. Returns largest gap, sum of squares.

    A gap counts as an angle (``loops.nodes.gap_of``).
    """
    tree, m, largest, squares = system.tree, L.kind.size, 0.0, 0.0
    rows_at(system, t + h, h, B.x1, B.P1, f.V, f, L, 1)
    if has_velocity(L):
        middle_poses(tree, B, f.P)
        mean_twists(tree, B, h, True, f.V)
        rows_at(system, t + 0.5 * h, h, B.x1, f.P, f.V, f, L, 2)
        for k in range(m):
            if L.kind[k] == VELOCITY:
                L.g[1, k] = L.g[2, k]
                for e in range(L.G.shape[1]):
                    L.G[m + k, e] = L.G[2 * m + k, e]
    for k in range(m):
        gap, more = gap_of(L, 1, k, B.P1)
        largest = max(largest, more)
        squares += gap * gap
        push_ends(L, k, h, B)
    return largest, squares


@kernel
def push_ends(L, k, h, B):
    """Take the impulse of constraint k, along its row at k, off B.W."""
    for e in range(L.ends.shape[1]):
        i = L.ends[k, e]
        if i > 0:
            st6(B.W, i, 0, axpy6(-h * L.lam[0, k], ld6(L.G, k, 6 * e), ld6(B.W, i, 0)))


@optional(None)
def loop_blocks(loops, plan, h, B, E, L):
    """Nodes of multipliers: gaps, proximal term, and their blocks with the bodies."""
    proximal_blocks(plan, h, RHO if E.eps[0] == 0.0 else 0.0, B, E, L)


@sweep
def proximal_blocks(plan, h, rho, B, E, L):
    """The same with a given proximal term, relative to h^2 times the sizes of the rows, which are left in E.size."""
    m = L.kind.size
    for n in range(plan.parts.shape[0]):
        node, first, count = plan.parts[n, 0], plan.parts[n, 1], plan.parts[n, 2]
        for a in range(6):
            E.size[node, a] = h * h * L.size[first + a] if a < count else 1.0
            E.D[node, 9 * a] = rho * E.size[node, a] if a < count else 1.0
        for a in range(count):
            k = first + a
            B.W[node, a] = L.g[1, k]
            for e in range(L.ends.shape[1]):
                i = L.ends[k, e]
                if i > 0:
                    # both in the axes of the body (``maximal.padded``): D_i,node, and D_node,i transposed
                    at = block_place(plan.planner, plan, i, node)
                    for b in range(6):
                        E.E[at, 8 * b + a] -= h * L.G[k, 6 * e + b]
                        E.E[at + 1, 8 * b + a] += L.G[m + k, 6 * e + b]


@optional(None)
def keep_loops(loops, L):
    """Remember the multipliers before a step of the iteration."""
    for k in range(L.kind.size):
        L.old[0, k] = L.lam[0, k]


@optional(None)
def move_loops(loops, plan, B, L, alpha):
    """A part alpha of the direction of the multipliers."""
    for n in range(plan.parts.shape[0]):
        node, first, count = plan.parts[n, 0], plan.parts[n, 1], plan.parts[n, 2]
        for a in range(count):
            L.lam[0, first + a] = L.old[0, first + a] + alpha * B.eta[node, a]


@optional(None)
def add_multipliers(loops, plan, B, L, alpha):
    """A part alpha of the direction of the multipliers, from where they are."""
    for n in range(plan.parts.shape[0]):
        node, first, count = plan.parts[n, 0], plan.parts[n, 1], plan.parts[n, 2]
        for a in range(count):
            L.lam[0, first + a] += alpha * B.eta[node, a]
