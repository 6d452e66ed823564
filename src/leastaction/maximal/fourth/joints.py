"""Impulses at the nodes of a step of ``Maximal(4)``: in the joints, on bodies, and of constraints.

Forces are taken at the nodes with Simpson's weights, with the rates of the parabola through the nodes. Their
derivatives serve the Newton direction: those of single coordinates and rotors are exact, those of balls' springs and
dampers are taken along the axes, those of forces on bodies and of turning constraint forces are left out (O(h^2)).
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import body_forces
from leastaction.forces.joints import joint_forces
from leastaction.jit.calls import call_law
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st6, st9
from leastaction.loops.nodes import gap_of, node_rows
from leastaction.maximal.bodies import get4
from leastaction.maximal.fourth.bodies import (
    RATES,
    STIFF,
    WEIGHTS,
    ld4,
    pair_turns,
    spin,
    turning,
    turning_slopes,
    twists,
)
from leastaction.spatial._source.mrp import add9, spread
from leastaction.spatial._source.so3 import quat_normalize, quat_to_matrix
from leastaction.spatial._source.vector import axpy6, matmul, tmatvec, transpose
from leastaction.tree.arrays import copy
from leastaction.tree.coordinates import forces_in, positions_out, put3, rates_out
from leastaction.tree.layout import BALL, IU, IX, KIND


# --- in the joints --------------------------------------------------------------------------------------------------
@kernel
def on_sheet(q, p):
    """q or -q, whichever is nearer to p."""
    if q[0] * p[0] + q[1] * p[1] + q[2] * p[2] + q[3] * p[3] < 0.0:
        return (-q[0], -q[1], -q[2], -q[3])
    return q


@kernel
def ball_turns(w, k):
    """Quaternions of a ball at the nodes, on one sheet, into w.Z."""
    q = quat_normalize(get4(w.x[0], k))
    for a in range(3):
        q = on_sheet(quat_normalize(get4(w.x[a], k)), q)
        for e in range(4):
            w.Z[a, e] = q[e]
    pair_turns(w.Z)


@sweep
def joint_rates(tree, w, h):
    """u (3, nu): rates of the joints at the nodes; those of a ball along child axes."""
    for i in range(1, tree.rows.shape[0]):
        k, d = tree.rows[i, IX], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            ball_turns(w, k)
            for a in range(3):
                put3(w.u[a], d, tmatvec(quat_to_matrix(ld4(w.Z, a, 0)), spin(w.Z, a, h)))
        else:
            x0 = w.x[0, k]
            for a in range(3):
                w.u[a, d] = (RATES[a][1] * (w.x[1, k] - x0) + RATES[a][2] * (w.x[2, k] - x0)) / h


@sweep
def rotor(tree, w, i, d, h):
    """Rotors of a ball: momenta along child axes added to c, and their derivatives to K."""
    m = tree.armature
    I = (m[d], 0.0, 0.0, 0.0, m[d + 1], 0.0, 0.0, 0.0, m[d + 2])
    ball_turns(w, tree.rows[i, IX])
    turning(I, w.Z, h)
    turning_slopes(I, w.Z, h, w.T)
    for a in range(3):
        R = quat_to_matrix(ld4(w.Z, a, 0))
        t = tmatvec(R, ld3(w.Z, a, 4))
        for e in range(3):
            w.c[d + e, a] += t[e]
        for l in range(1, 3):
            if a < 2:
                M = ld9(w.T, 2 * a + l - 1, 0)
                if a == l:
                    # child axes turn too
                    M = add9(M, spread(0.0, ld3(w.Z, a, 4)))
                st9(w.T, 2 * a + l - 1, 0, matmul(transpose(R), matmul(M, quat_to_matrix(ld4(w.Z, l, 0)))))
    for r in range(3):
        for e in range(3):
            for a in range(2):
                w.K[d + r, 6 * a + e] += w.T[2 * a, 3 * r + e]
                w.K[d + r, 6 * a + 3 + e] += w.T[2 * a + 1, 3 * r + e]


@sweep
def joint_nodes(system, w, pc, control, active, rate_of, h, f):
    """c and K: momenta pc at the start, rotors, control, springs and dampers."""
    tree = system.tree
    for i in range(1, tree.rows.shape[0]):
        k, d, m = tree.rows[i, IX], tree.rows[i, IU], tree.armature
        n = 3 if tree.rows[i, KIND] == BALL else 1
        for e in range(d, d + n):
            w.c[e, 0], w.c[e, 1], w.c[e, 2] = pc[e], 0.0, 0.0
            for j in range(12):
                w.K[e, j] = 0.0
        if n == 3 and (m[d] > 0.0 or m[d + 1] > 0.0 or m[d + 2] > 0.0):
            rotor(tree, w, i, d, h)
        elif n == 1:
            for a in range(3):
                s = STIFF[a]
                w.c[d, a] += m[d] / h * (s[1] * (w.x[1, k] - w.x[0, k]) + s[2] * (w.x[2, k] - w.x[0, k]))
                if a < 2:
                    w.K[d, 6 * a], w.K[d, 6 * a + 3] = m[d] / h * s[1], m[d] / h * s[2]
    if active:
        joint_rates(tree, w, h)
        for a in range(3):
            wh = h * WEIGHTS[a]
            positions_out(system.coordinates, w.x[a], f.q)
            rates_out(system.coordinates, w.x[a], w.u[a], f.v)
            copy(control, f.tau)
            joint_forces(system.passive, f.q, f.v, f.tau)
            forces_in(system.coordinates, w.x[a], f.tau, f.f)
            for d in range(pc.size):
                w.c[d, a] += wh * f.f[d]
            if a < 2:
                force_slopes(system.passive, w, a, wh, rate_of, h, f)


@kernel
def add_slope(w, d, e, a, k, u, h):
    """Add derivatives k by the coordinate at node a and u by its rate to K of rate d, for coordinate e of the joint."""
    b = RATES[a]
    w.K[d, 6 * a + e] += u * b[1] / h + (k if a == 1 else 0.0)
    w.K[d, 6 * a + 3 + e] += u * b[2] / h


@kernel
def force_slopes(p, w, a, wh, rate_of, h, f):
    """Derivatives of springs, dampers and laws at node a < 2, whose state is in f.q and f.v."""
    for j in range(p.screw.shape[0]):
        k, u = -p.spring[j, 0], -p.spring[j, 2]
        if p.law[j, 3] != 0:
            k += call_law(p.law[j, 3], f.q[p.screw[j, 0]])
        if p.law[j, 4] != 0:
            u += call_law(p.law[j, 4], f.v[p.screw[j, 1]])
        add_slope(w, rate_of[p.screw[j, 1]], 0, a, wh * k, wh * u, h)
    for j in range(p.ball.shape[0]):
        for e in range(3):
            d = rate_of[p.ball[j, 1]] + e
            add_slope(w, d, e, a, -wh * p.ball_data[j, e], -wh * p.ball_data[j, 7 + e], h)
    for j in range(p.free.shape[0]):
        for e in range(3):
            d = rate_of[p.free[j, 1]] + e
            add_slope(w, d, 0, a, -wh * p.free_data[j, e], -wh * p.free_data[j, 6 + e], h)


# --- on bodies ------------------------------------------------------------------------------------------------------
@kernel
def show_node(w, f, a):
    """Poses and twists of node a in f.P and f.V, as other kernels want them."""
    for i in range(w.P.shape[0]):
        for e in range(12):
            f.P[i, e] = w.P[i, 12 * a + e]
        for e in range(6):
            f.V[i, e] = w.V[i, 6 * a + e]


@optional(None)
def force_nodes(forces, tree, t, h, w, f):
    """Add the impulses of forces on bodies to W."""
    twists(tree, w, h)
    for a in range(3):
        show_node(w, f, a)
        for i in range(tree.rows.shape[0]):
            st6(f.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        body_forces(forces, t + 0.5 * a * h, f.P, f.V, f.F, f.given, f.result)
        wh = h * WEIGHTS[a]
        for i in range(1, tree.rows.shape[0]):
            st6(w.W, i, 6 * a, axpy6(-wh, ld6(f.F, i, 0), ld6(w.W, i, 6 * a)))


# --- constraints ----------------------------------------------------------------------------------------------------
@optional((0.0, 0.0))
def loop_nodes(loops, system, t, h, w, f, L):
    """Rows at all nodes; impulses of nodes 0 and 1 added to W. Returns the largest gap at nodes 1 and 2, squares."""
    m, largest, squares = L.kind.size, 0.0, 0.0
    for a in range(3):
        show_node(w, f, a)
        node_rows(system, t + 0.5 * a * h, h, w.x[a], f, L, a)
        for k in range(m):
            if a > 0:
                gap, more = gap_of(L, a, k, f.P)
                largest = max(largest, more)
                squares += gap * gap
            if a < 2:
                for e in range(L.ends.shape[1]):
                    i = L.ends[k, e]
                    if i > 0:
                        st6(w.W, i, 6 * a, axpy6(L.lam[a, k], ld6(L.G, a * m + k, 6 * e), ld6(w.W, i, 6 * a)))
    return largest, squares
