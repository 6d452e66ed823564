"""Composite bodies: the mass matrix (CRBA), subtree inertias and the centroidal map.

    M    (n+1, 9)  second and first moments about o, of the row on input, of its subtree on output
    m    (n+1,)    mass of the subtree
Algorithm: Featherstone 2008, Table 6.2, in the world frame.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import sweep
from leastaction.jit.lanes import ld3, ld6, st, st3, st6
from leastaction.spatial._source.vector import add3, add6, dot6, inertia_times
from leastaction.tree.layout import MASS, PARENT


@sweep
def subtree_inertias(tree, M, m):
    """Sum inertias and masses towards the world; row 0 holds the total."""
    for i in range(tree.rows.shape[0]):
        m[i] = tree.const[i, MASS]
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j = tree.rows[i, PARENT]
        st6(M, j, 0, add6(ld6(M, j, 0), ld6(M, i, 0)))
        st3(M, j, 6, add3(ld3(M, j, 6), ld3(M, i, 6)))
        m[j] += m[i]


@sweep
def mass_matrix(tree, S, M, m, out):
    """Mass matrix of the rates (nu, nu), both triangles; M and m are subtree sums."""
    nu = tree.rates.shape[0]
    for d in range(nu):
        i = tree.rates[d, 0]
        f = inertia_times(ld6(M, i, 0), ld3(M, i, 6), m[i], ld6(S, d, 0))
        st(out, d, d, dot6(f, ld6(S, d, 0)) + tree.armature[d])
        # only rates on the way to the world are coupled
        e = tree.rates[d, 1]
        while e >= 0:
            c = dot6(f, ld6(S, e, 0))
            st(out, d, e, c)
            st(out, e, d, c)
            e = tree.rates[e, 1]


@sweep
def momentum_map(tree, S, M, m, out):
    """Column d of the momentum about o (6, nu), as rows of ``out`` (nu, 6); M and m are subtree sums."""
    for d in range(tree.rates.shape[0]):
        i = tree.rates[d, 0]
        st6(out, d, 0, inertia_times(ld6(M, i, 0), ld3(M, i, 6), m[i], ld6(S, d, 0)))
