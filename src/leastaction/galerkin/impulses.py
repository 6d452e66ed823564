"""Impulses at the nodes of a Galerkin step: joint forces and their derivatives, forces on bodies."""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import body_forces
from leastaction.forces.derivatives import force_derivatives
from leastaction.forces.joints import ball_stiffness, joint_forces, turned_matrix
from leastaction.jit.calls import call_law
from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.spatial._source.mrp import scale9, spread
from leastaction.spatial._source.so3 import (
    quat_normalize,
    quat_rotate,
    quat_to_matrix,
)
from leastaction.tree.arrays import copy
from leastaction.tree.coordinates import forces_in, get3, positions_out, quat_at, rate_of, rates_out
from leastaction.tree.layout import BALL, IU, IX, KIND
from leastaction.tree.nodes import node_state, node_tables


@sweep
def joint_impulses(system, nodes, x, control, w, f, xa, ua):
    """w.tau at all nodes: control (one row, or one for each node), springs and dampers, along parent axes."""
    tree, points = system.tree, control.shape[0]
    for a in range(len(nodes.w)):
        wh = nodes.w[a] * nodes.h
        node_state(tree, x, w, a, xa, ua)
        positions_out(system.coordinates, xa, f.q)
        rates_out(system.coordinates, xa, ua, f.v)
        copy(control[min(a, points - 1)], f.tau)
        joint_forces(system.passive, f.q, f.v, f.tau)
        forces_in(system.coordinates, xa, f.tau, f.f)
        for i in range(1, tree.rows.shape[0]):
            d = tree.rows[i, IU]
            if tree.rows[i, KIND] == BALL:
                t = quat_rotate(quat_at(xa, tree.rows[i, IX]), get3(f.f, d))
                for e in range(3):
                    w.tau[d + e, a] = wh * t[e]
            else:
                w.tau[d, a] = wh * f.f[d]


@sweep
def impulse_derivatives(system, nodes, x, w, f, xa, ua, K, Dm):
    """Derivatives of the joint impulses by displacement and rate, for the Newton direction.

    A screw has K[d, a], Dm[d, a]; a ball 3x3 blocks in columns 3a..3a+2, along parent axes. Springs of a free joint's
    translation count along parent axes only.
    """
    tree, p, c = system.tree, system.passive, system.coordinates
    for d in range(K.shape[0]):
        for e in range(K.shape[1]):
            K[d, e] = 0.0
            Dm[d, e] = 0.0
    for a in range(len(nodes.w)):
        wh = nodes.w[a] * nodes.h
        node_state(tree, x, w, a, xa, ua)
        positions_out(c, xa, f.q)
        rates_out(c, xa, ua, f.v)
        # single coordinates
        for j in range(p.screw.shape[0]):
            d = rate_of(c, p.screw[j, 1])
            K[d, a] -= wh * p.spring[j, 0]
            Dm[d, a] -= wh * p.spring[j, 2]
            if p.law[j, 3] != 0:
                K[d, a] += wh * call_law(p.law[j, 3], f.q[p.screw[j, 0]])
            if p.law[j, 4] != 0:
                Dm[d, a] += wh * call_law(p.law[j, 4], f.v[p.screw[j, 1]])
        for j in range(p.free.shape[0]):
            for e in range(3):
                d = rate_of(c, p.free[j, 1] + e)
                K[d, a] -= wh * p.free_data[j, e]
                Dm[d, a] -= wh * p.free_data[j, 6 + e]
        # a turning ball turns its torque
        for i in range(1, tree.rows.shape[0]):
            d = tree.rows[i, IU]
            if tree.rows[i, KIND] == BALL:
                t = (-w.tau[d, a], -w.tau[d + 1, a], -w.tau[d + 2, a])
                add_at_node(K, d, a, spread(0.0, t))
        for j in range(p.ball.shape[0]):
            d = rate_of(c, p.ball[j, 1])
            R = quat_to_matrix(quat_normalize(quat_at(f.q, p.ball[j, 0])))
            add_at_node(K, d, a, scale9(wh, turned_matrix(R, ball_stiffness(p, j, f.q))))
            b = p.ball_data
            diagonal = (-b[j, 7], 0.0, 0.0, 0.0, -b[j, 8], 0.0, 0.0, 0.0, -b[j, 9])
            add_at_node(Dm, d, a, scale9(wh, turned_matrix(R, diagonal)))


@kernel
def add_at_node(K, d, a, M):
    """Add a 3x3 block at node a of a ball."""
    for i in range(3):
        for j in range(3):
            K[d + i, 3 * a + j] += M[3 * i + j]


@optional(None)
def body_derivatives(forces, nodes, t, w, f, square):
    """w.KC: derivatives of the impulses of the forces on bodies, nodes 0..s-1, or all s points of Gauss."""
    s = w.KC.shape[1] // 72
    for i in range(w.KC.shape[0]):
        for e in range(w.KC.shape[1]):
            w.KC[i, e] = 0.0
    if w.KC.shape[0] == 0:
        return
    for a in range(s):
        node_tables(w, f, a)
        ta, wh = t + nodes.c[a] * nodes.h, nodes.w[a] * nodes.h
        force_derivatives(forces, ta, wh, f.P, f.V, w.KC, 36 * a, 36 * (s + a), f.given, f.result, square)


@optional(None)
def body_impulses(forces, tree, nodes, t, w, f):
    """w.G of the rows at all nodes: impulses of the forces on bodies."""
    n = tree.rows.shape[0]
    if w.G.shape[0] == 0:
        return
    for a in range(len(nodes.w)):
        node_tables(w, f, a)
        for i in range(n):
            for e in range(6):
                f.F[i, e] = 0.0
        body_forces(forces, t + nodes.c[a] * nodes.h, f.P, f.V, f.F, f.given, f.result)
        for i in range(n):
            for e in range(6):
                w.G[i, 6 * a + e] = -nodes.w[a] * nodes.h * f.F[i, e]
