"""Galerkin steps with a quadrature of their own: the curve through s + 1 nodes, the Lagrangian at other points.

The unknowns xi^1 .. xi^s are those of ``galerkin.residual``, the local coordinates at the Lobatto nodes. The action is
a sum over the points j = 0..s-1 of Gauss, where the curve is z_j = sum_e l_je xi^e and its rate u_j = sum_e b_je xi^e /
h. All tables of a point, poses to impulses, are those that ``galerkin.residual`` has for a node. The test function of
node a is l_ja, with rate b_ja / h; that of node 0 of a ball moves the centre of the chart with it, and is with Q of
``mrp_dq``

    T_j = l_j0 1 + Q(z_j) - sum_e l_je Q(xi^e)          C_j = b_j0 / h 1 + d/dt Q(z_j) - sum_e b_je / h Q(xi^e)     (10)

    r^0 = p + sum_j [ T_j^T g_j + w_j h C_j^T S_j . mu_j ]      r^a = sum_j [ l_ja g_j + w_j b_ja S_j . mu_j ]      (11)

where g_j = w_j h Sd_j . mu_j + S_j . G_j + J_j^T tau_j. The next momentum is eq. (4) over the points. Lobatto's rule is
the case l = 1, in which most of this is absent; it keeps its own code, which is chosen where there are no ``Points``.

    w       StepWork of the step: w.xi (nu, s+1) at the nodes, tables of s points
    wq      the same memory, but wq.xi and wq.xid (nu, s) are those of the points
    nq      Nodes with the weights, places and derivatives of the points
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.galerkin.impulses import body_impulses, joint_impulses
from leastaction.galerkin.residual import Nodes, StepWork, along3, combine3, gravity, make_step_work, place, sized_work
from leastaction.jit.decorators import MEMORY_OPTIONS, PART_OPTIONS, either, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.spatial._source.mrp import mrp_dq, mrp_jacobian_rate
from leastaction.spatial._source.so3 import mrp_dexp
from leastaction.spatial._source.vector import (
    ad,
    add3,
    add6,
    axpy3,
    axpy6,
    dot6,
    inertia_times,
    matvec,
    scale3,
    tmatvec,
)
from leastaction.tree.arrays import vec3
from leastaction.tree.kinematics import set_origin
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, Floats


class Points(NamedTuple):
    """A quadrature: s weights w (a tuple), places c (s,), values l and derivatives b (s, s+1) of the polynomials."""

    w: tuple
    c: Floats
    l: Floats
    b: Floats


# --- what a rollout asks for, with or without points -----------------------------------------------------------------
def _node_work(points, tree, weights, wide, loaded):
    return make_step_work(tree, weights, wide, loaded)


@either(_node_work, MEMORY_OPTIONS)
def work_of(points, tree, weights, wide, loaded):
    """Scratch memory of a step: w."""
    s = len(points.w)
    return sized_work(tree, s, s, 12 * s, tree.rows.shape[0] if len(wide) > 0 else 0, loaded)


@optional(None, MEMORY_OPTIONS)
def view_of(points, w):
    """The same memory with the coordinates of the points: wq; None without points."""
    return StepWork(
        np.zeros(w.xid.shape), w.xid, w.P, w.S, w.Sd, w.Q, w.M, w.c, w.V, w.mu, w.tau, w.pull, w.G, w.r, w.pn, w.mass,
        w.D, w.l, w.A, w.B, w.H, w.X, w.lam, w.inv, w.y, w.z, w.KC, w.slot, w.pending, w.balls,
    )  # fmt: skip


def _at_nodes(points, nodes, w, wq):
    return nodes, w


@either(_at_nodes, PART_OPTIONS)
def at_points(points, nodes, w, wq):
    """Nodes and work at the points of the quadrature: (nq, wq), or what they are at the nodes.

    For parts and sweeps only, which count no references.
    """
    return nodes_of(points, nodes), wq


@kernel
def nodes_of(points, nodes):
    """Nodes at the points: nq."""
    return Nodes(points.w, nodes.wide, points.b, points.c, nodes.h, nodes.across, nodes.balance)


# --- residual ---------------------------------------------------------------------------------------------------------
@kernel
def quadratic(z, c):
    """Q(z) c."""
    return scale3(0.5, matvec(mrp_dq(z, c), z))


@sweep
def chart_motion(points, nq, w, wq, j, d):
    """T_j and C_j of a ball, nine numbers each, eq. (10)."""
    z, u = vec3(wq.xi, d, j), vec3(wq.xid, d, j)
    x, y, t = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    T0, T1, T2 = quadratic(z, x), quadratic(z, y), quadratic(z, t)
    C0, C1, C2 = matvec(mrp_dq(z, x), u), matvec(mrp_dq(z, y), u), matvec(mrp_dq(z, t), u)
    for e in range(1, points.l.shape[1]):
        g, value, rate = vec3(w.xi, d, e), -points.l[j, e], -points.b[j, e] / nq.h
        q0, q1, q2 = quadratic(g, x), quadratic(g, y), quadratic(g, t)
        T0, T1, T2 = axpy3(value, q0, T0), axpy3(value, q1, T1), axpy3(value, q2, T2)
        C0, C1, C2 = axpy3(rate, q0, C0), axpy3(rate, q1, C1), axpy3(rate, q2, C2)
    k, l = points.l[j, 0], points.b[j, 0] / nq.h
    return (
        (k + T0[0], T1[0], T2[0], T0[1], k + T1[1], T2[1], T0[2], T1[2], k + T2[2]),
        (l + C0[0], C1[0], C2[0], C0[1], l + C1[1], C2[1], C0[2], C1[2], l + C2[2]),
    )


@sweep
def interpolate(points, nq, w, wq):
    """Coordinates and rates at the points from those at the nodes."""
    for d in range(w.xi.shape[0]):
        for j in range(len(points.w)):
            z, u = 0.0, 0.0
            for e in range(1, points.l.shape[1]):
                z += points.l[j, e] * w.xi[d, e]
                u += points.b[j, e] * w.xi[d, e]
            wq.xi[d, j] = z
            wq.xid[d, j] = u / nq.h


@sweep
def move_points(tree, nq, w):
    """Twists, rates of the axes and momenta of the rows at all points; w is that of the points."""
    none = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for j in range(len(nq.w)):
        o = 6 * j
        st6(w.V, 0, o, none)
        st6(w.mu, 0, o, none)
        for i in range(1, tree.rows.shape[0]):
            d, m, vp = tree.rows[i, IU], tree.const[i, MASS], ld6(w.V, tree.rows[i, PARENT], o)
            if tree.rows[i, KIND] == BALL:
                v = add6(vp, combine3(w.S, d, o, vec3(w.xid, d, j)))
                B = mrp_jacobian_rate(vec3(w.xi, d, j), vec3(w.xid, d, j))
                for k in range(3):
                    turn = combine3(w.Q, d, o, column9(B, k))
                    st6(w.Sd, d + k, o, add6(ad(vp, ld6(w.S, d + k, o)), turn))
            else:
                v = axpy6(w.xid[d, j], ld6(w.S, d, o), vp)
                st6(w.Sd, d, o, ad(vp, ld6(w.S, d, o)))
            st6(w.V, i, o, v)
            mu = inertia_times(ld6(w.M, i, 9 * j), ld3(w.M, i, 9 * j + 6), m, v) if m > 0.0 else none
            st6(w.mu, i, o, mu)


@kernel
def column9(B, k):
    """Column k of a matrix of nine numbers."""
    return (B[0], B[3], B[6]) if k == 0 else (B[1], B[4], B[7]) if k == 1 else (B[2], B[5], B[8])


@kernel
def screw_terms(tree, nq, w, i, d, j):
    """w_j S . mu with the rotor, and g_j, of a screw at point j."""
    o = 6 * j
    mu, S = ld6(w.mu, i, o), ld6(w.S, d, o)
    g = nq.w[j] * nq.h * dot6(ld6(w.Sd, d, o), mu) + w.pull[d, j] + w.tau[d, j]
    if w.G.shape[0] > 0:
        g += dot6(S, ld6(w.G, i, o))
    return nq.w[j] * (dot6(S, mu) + tree.armature[d] * w.xid[d, j]), g


@kernel
def ball_push(w, i, d, j):
    """Impulses of gravity, joint and forces on bodies along the parent's axes of a ball."""
    push = add3(vec3(w.pull, d, j), vec3(w.tau, d, j))
    return add3(push, along3(w.Q, d, 6 * j, ld6(w.G, i, 6 * j))) if w.G.shape[0] > 0 else push


@sweep
def ball_terms(tree, nq, w, i, d, j):
    """As ``screw_terms`` for a ball, three numbers each."""
    o = 6 * j
    mu, z, u = ld6(w.mu, i, o), vec3(w.xi, d, j), vec3(w.xid, d, j)
    J, Jd = mrp_dexp(z), mrp_jacobian_rate(z, u)
    spin = scale3(tree.armature[d], matvec(J, u))
    momentum = scale3(nq.w[j], add3(along3(w.S, d, o, mu), tmatvec(J, spin)))
    inner = add3(along3(w.Sd, d, o, mu), tmatvec(Jd, spin))
    return momentum, axpy3(nq.w[j] * nq.h, inner, tmatvec(J, ball_push(w, i, d, j)))


@sweep
def residual_points(tree, points, nq, p, w, wq):
    """Rows r by eq. (11) (inward); mu and G become sums over subtrees."""
    s = len(points.w)
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        par, d = tree.rows[i, PARENT], tree.rows[i, IU]
        n = 3 if tree.rows[i, KIND] == BALL else 1
        for k in range(d, d + n):
            for a in range(s):
                w.r[k, a] = p[k] if a == 0 else 0.0
        for j in range(s):
            if n == 3:
                momentum, g = ball_terms(tree, nq, wq, i, d, j)
                T, C = chart_motion(points, nq, w, wq, j, d)
                first = axpy3(nq.h, tmatvec(C, momentum), tmatvec(T, g))
                for k in range(3):
                    w.r[d + k, 0] += first[k]
                    for a in range(1, s):
                        w.r[d + k, a] += points.l[j, a] * g[k] + points.b[j, a] * momentum[k]
            else:
                pushed, f = screw_terms(tree, nq, wq, i, d, j)
                for a in range(s):
                    w.r[d, a] += points.l[j, a] * f + points.b[j, a] * pushed
        # subtree sums
        for o in range(0, 6 * s, 6):
            st6(w.mu, par, o, add6(ld6(w.mu, par, o), ld6(w.mu, i, o)))
            if w.G.shape[0] > 0:
                st6(w.G, par, o, add6(ld6(w.G, par, o), ld6(w.G, i, o)))


@sweep
def evaluate_points(points, system, nodes, t, x, p, control, active, w, wq, f, xa, ua):
    """Residual at w.xi."""
    nq = nodes_of(points, nodes)
    interpolate(points, nq, w, wq)
    for j in range(len(points.w)):
        place(system.tree, x, wq, j)
        gravity(system.tree, nq, wq, j)
    move_points(system.tree, nq, wq)
    if active:
        joint_impulses(system, nq, x, control, wq, f, xa, ua)
    body_impulses(system.forces, system.tree, nq, t, wq, f)
    residual_points(system.tree, points, nq, p, w, wq)


@sweep
def start_points(tree, x, w):
    """A new origin; nothing is evaluated at node 0."""
    set_origin(tree, x, w.P)
    for d in range(w.xi.shape[0]):
        w.xi[d, 0] = 0.0
