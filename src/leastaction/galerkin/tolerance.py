"""What residuals and gaps of a Galerkin step are compared with: ``tree.tolerance``, and what constraints add to it."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld, ld1, ld6, st1
from leastaction.spatial._source.scalar import absolute
from leastaction.spatial._source.vector import dot6
from leastaction.tree.layout import BALL, IU, KIND, PART_ARM, PART_MASS
from leastaction.tree.tolerance import LIMIT, REACH, ROUNDING, WIDEST, arm_of_row


@sweep
def terms(tree, p, w, Z):
    """Z.term after a residual: momenta at the start of the step, and impulses at its first node."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            t = absolute(ld1(p, k)) + absolute(ld(w.pull, k, 0)) + absolute(ld(w.tau, k, 0))
            if w.G.shape[0] > 0:
                t = t + absolute(dot6(ld6(w.S, k, 0), ld6(w.G, i, 0)))
            st1(Z.term, k, t)


@kernel
def part_of(tree, L, k):
    """Part of the bodies of constraint k."""
    for e in range(L.ends.shape[1]):
        if L.ends[k, e] > 0:
            return tree.part[L.ends[k, e]]
    return 0


@optional(None)
def allow_constraints(loops, tree, L, Z):
    """Add the rounding of the impulses of the constraints: of torques about the origin, and of forces with the arm."""
    m = L.kind.size
    if m == 0:
        return
    for g in range(tree.parts.shape[0]):
        L.pulled[g] = 0.0
    for a in range(L.lam.shape[0]):
        for k in range(m):
            turn, push, g = 0.0, 0.0, part_of(tree, L, k)
            for e in range(0, L.G.shape[1], 6):
                for c in range(e, e + 3):
                    turn, push = max(turn, abs(L.G[a * m + k, c])), max(push, abs(L.G[a * m + k, c + 3]))
            moment = turn + (tree.parts[g, PART_ARM] + Z.bound[g, REACH]) * push
            L.pulled[g] = max(L.pulled[g], 1.0e-15 * abs(L.lam[a, k]) * moment)
    for i in range(1, tree.rows.shape[0]):
        g, d, by = tree.part[i], tree.rows[i, IU], arm_of_row(tree, i)
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            Z.unit[k, 1] = by / (Z.bound[g, ROUNDING] + L.pulled[g])
            Z.unit[k, 2] = L.pulled[g] / Z.bound[g, LIMIT]


@optional((0.0, 0.0))
def gap_sizes(loops, tree, h, L, Z):
    """Largest gap of a constraint over what counts as none, and the sum of squares of the gaps.

    A gap weighs as much as the momentum that would close it in one step, in units of the limit of its part.
    """
    largest, squares, m = 0.0, 0.0, L.kind.size
    for k in range(m):
        g = part_of(tree, L, k)
        largest = max(largest, L.gap[k] / Z.bound[g, WIDEST])
        weight = tree.parts[g, PART_MASS] * tree.parts[g, PART_ARM] ** 2 / h / Z.bound[g, LIMIT]
        squares += weight * weight * L.square[k]
    return largest, squares
