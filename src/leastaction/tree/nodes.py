"""State and tables of a mechanism at one node of a step: coordinates of the path, poses and twists."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.so3 import mrp_dexp, mrp_to_quat, quat_conj, quat_mul, quat_normalize, quat_rotate
from leastaction.spatial._source.vector import matvec
from leastaction.tree.arrays import vec3
from leastaction.tree.coordinates import put3, put_quat, quat_at
from leastaction.tree.layout import BALL, IU, IX, KIND


@sweep
def node_state(tree, x, w, a, xa, ua):
    """Coordinates and rates of the rows at node a."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            z, u = vec3(w.xi, d, a), vec3(w.xid, d, a)
            q = quat_normalize(quat_mul(mrp_to_quat(z), quat_at(x, k)))
            put_quat(xa, k, q)
            put3(ua, d, quat_rotate(quat_conj(q), matvec(mrp_dexp(z), u)))
        else:
            xa[k] = x[k] + w.xi[d, a]
            ua[d] = w.xid[d, a]


@kernel
def node_tables(w, f, a):
    """Poses and twists of node a in f.P and f.V."""
    for i in range(w.P.shape[0]):
        for e in range(12):
            f.P[i, e] = w.P[i, 12 * a + e]
        for e in range(6):
            f.V[i, e] = w.V[i, 6 * a + e]
