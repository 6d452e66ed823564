"""Couplings between coordinates of joints: gears, differentials, racks, followers.

A coupling is one constraint on coordinates x_j of screws,

    g = level + sum_j p_j(x_j),        gdot = sum_j p_j'(x_j) u_j,        gddot = sum_j p_j' udot_j + p_j'' u_j^2

with polynomials p_j that have no constant part. As a row on bodies it is a pair of wrenches for each coordinate, +w on
the body behind it and -w on the one before, with w along the axis of the screw: w . S_j = 1, so that the relative twist
S_j u_j of the two counts u_j and every other rate counts nothing. Along motions of the tree the row w has no curvature,
as w . (S_j x V) = 0 for every twist V; what is left is that of the polynomials. Coordinates count turns, poses do not:
so gaps are those of coordinates.

    ties  ``tree.layout.Ties``      first   place of the first coupling among all constraints
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.spatial._source.vector import axpy6, cross, join
from leastaction.tree.layout import KIND, PRISMATIC


@kernel
def most_tied(ties):
    """Most bodies of a coupling."""
    most = 0
    for k in range(ties.kind.shape[0]):
        most = max(most, ties.kind[k, 3])
    return most


@kernel
def term_of(ties, j, y):
    """Value, slope and curvature of polynomial j at the coordinate y, by Horner's rule."""
    value, slope, bend = 0.0, 0.0, 0.0
    for e in range(ties.series.shape[1], -1, -1):
        bend = bend * y + slope
        slope = slope * y + value
        value = value * y + (ties.series[j, e - 1] if e > 0 else 0.0)
    return value, slope, 2.0 * bend


@kernel
def along_screw(tree, i, P):
    """The wrench w of row i about the origin: a unit torque about its axis, or a unit force along a slide."""
    axis = (P[i, 2], P[i, 5], P[i, 8])
    if tree.rows[i, KIND] == PRISMATIC:
        return join(cross(ld3(P, i, 9), axis), axis)
    return join(axis, (0.0, 0.0, 0.0))


@sweep
def tie_rows(ties, tree, x, P, L, a, first):
    """Gaps and rows of all couplings at node a, into L (``loops.nodes``), from coordinates x and poses P."""
    m = L.kind.size
    for k in range(ties.kind.shape[0]):
        r, gap = first + k, ties.level[k]
        at = a * m + r
        for e in range(L.G.shape[1]):
            L.G[at, e] = 0.0
        for j in range(ties.kind[k, 0], ties.kind[k, 0] + ties.kind[k, 1]):
            value, slope, _ = term_of(ties, j, x[ties.terms[j, 1]])
            gap += value
            w, child, parent = along_screw(tree, ties.terms[j, 0], P), 6 * ties.terms[j, 3], 6 * ties.terms[j, 4]
            st6(L.G, at, child, axpy6(slope, w, ld6(L.G, at, child)))
            if parent >= 0:
                st6(L.G, at, parent, axpy6(-slope, w, ld6(L.G, at, parent)))
        L.g[a, r] = gap


@sweep
def tied_coordinates(ties, x, xi, a, out):
    """Coordinates that are coupled, at node a: those of the start and displacements xi (nu, s+1)."""
    for j in range(ties.terms.shape[0]):
        out[ties.terms[j, 1]] = x[ties.terms[j, 1]] + xi[ties.terms[j, 2], a]


@sweep
def tie_slopes(ties, k, x, out):
    """Row k by the rates, (nu,)."""
    for d in range(out.size):
        out[d] = 0.0
    for j in range(ties.kind[k, 0], ties.kind[k, 0] + ties.kind[k, 1]):
        _, slope, _ = term_of(ties, j, x[ties.terms[j, 1]])
        out[ties.terms[j, 2]] += slope


@kernel
def tie_gap(ties, k, x):
    """Gap of coupling k."""
    gap = ties.level[k]
    for j in range(ties.kind[k, 0], ties.kind[k, 0] + ties.kind[k, 1]):
        gap += term_of(ties, j, x[ties.terms[j, 1]])[0]
    return gap


@kernel
def tie_bias(ties, k, x, u):
    """Second derivative of the gap of coupling k at constant rates."""
    bias = 0.0
    for j in range(ties.kind[k, 0], ties.kind[k, 0] + ties.kind[k, 1]):
        _, _, bend = term_of(ties, j, x[ties.terms[j, 1]])
        bias += bend * u[ties.terms[j, 2]] * u[ties.terms[j, 2]]
    return bias


@sweep
def tie_curvatures(ties, tree, x, P, C, wide, first):
    """C (m, wide^2) of all couplings by twists of their bodies about the origin: the sum of p'' w w^T."""
    for k in range(ties.kind.shape[0]):
        r = first + k
        for e in range(wide * wide):
            C[r, e] = 0.0
        for j in range(ties.kind[k, 0], ties.kind[k, 0] + ties.kind[k, 1]):
            _, _, bend = term_of(ties, j, x[ties.terms[j, 1]])
            w = along_screw(tree, ties.terms[j, 0], P)
            for p in range(2):
                for q in range(2):
                    one, other = ties.terms[j, 3 + p], ties.terms[j, 3 + q]
                    sign = bend if p == q else -bend
                    if one >= 0 and other >= 0:
                        for e in range(6):
                            at = wide * (6 * one + e) + 6 * other
                            st6(C, r, at, axpy6(sign * w[e], w, ld6(C, r, at)))
