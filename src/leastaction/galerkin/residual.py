"""Galerkin variational integrators of order 2s: the residual of one step (Fan et al. 2018, Algorithm 1, any joint).

A step has nodes a = 0..s (Lobatto points) with weights w_a; b_ac is the derivative of the Lagrange polynomial c at node
a on the unit interval. Every row has local coordinates xi^a with xi^0 = 0: the displacement of a screw, or for a ball
the modified Rodrigues parameters of R^a = mrp(xi^a) R^0 (parent side). All is in world axes about an origin fixed
during the step. s is a compile-time constant: the length of the tuple of weights says it.

    xi, xid  (nu, s+1)      local coordinates and their rates at the nodes
    P        (n+1, 12(s+1)) poses                      S, Sd  (nu, 6(s+1))  axes dv/dxid and their rates
    Q        (nu, 6(s+1))   parent-fixed axes (for a screw the same as S)
    M        (n+1, 9(s+1))  inertias                   c      (n+1, 3(s+1)) first moments of subtrees, inner nodes
    V, mu    (n+1, 6(s+1))  twists, momenta of subtrees
    tau      (nu, s+1)      joint impulses w_a h f along Q     pull  (nu, s+1) impulses of gravity along Q
    G        (n+1, 6(s+1))  impulses of body forces, subtrees (no rows where there are none)
    KC       (n+1, 72 s)    their derivatives by pose (36 s) and twist, nodes 0..s-1 (no rows likewise)
    r        (nu, s)        residual: rows 0..s-1              p, pn (nu,)     momenta along Q at start and end

    r^0 = p + w_0 h Sd^0 . mu^0 + S^0 . G^0 + tau^0 + sum_b w_b h (S^b C^b) . mu^b                    (2)
    r^a =     w_a h Sd^a . mu^a + S^a . G^a + J^aT tau^a + sum_b w_b b_ba S^b . mu^b,   0 < a < s      (3)
    pn  = p + sum_a [ Q^a . (w_a h ad(v_par)^T mu^a + G^a) + tau^a ]                                  (4)
Equation numbers are those of docs/theory/galerkin. C^b = b_b0 / h for a screw. For a ball, moving node 0 moves the
chart's centre, and C^b contains that motion; without it the step is not symplectic and loses angular momentum.
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, ld9, number, st, st1, st3, st6, st9
from leastaction.spatial._source.mrp import mrp_dq, mrp_jacobian_rate
from leastaction.spatial._source.scalar import sincos
from leastaction.spatial._source.so3 import mrp_dexp, mrp_to_quat, quat_mul
from leastaction.spatial._source.vector import (
    ad,
    ad_dual,
    add3,
    add6,
    axpy3,
    axpy6,
    cross,
    dot3,
    dot6,
    inertia_times,
    join,
    matvec,
    scale3,
    scale6,
    tmatvec,
)
from leastaction.tree.arrays import vec3
from leastaction.tree.kinematics import joint_frame, row_inertia, turn, turn_by_quaternion
from leastaction.tree.layout import BALL, HELICAL, IU, IX, KIND, MASS, PARENT, PITCH, PRISMATIC, Floats, Ints


class Nodes(NamedTuple):
    """What a step is made of.

    w        s+1 weights, a tuple: its length makes s a compile-time constant
    wide     () or (0,): whether forces on bodies are part of the Newton direction, a compile-time constant too
    b, c     (s+1, s+1) derivative matrix, (s+1,) nodes
    h        length of the step
    across   (2, 3) two axes across gravity
    balance  (2, s, s) how the rows of the nodes combine, for positions and for velocities; see ``loops.nodes``
    """

    w: tuple
    wide: tuple
    b: Floats
    c: Floats
    h: float
    across: Floats
    balance: Floats


class StepWork(NamedTuple):
    """Scratch memory of one step; see the symbol table of this file and of ``galerkin.newton``."""

    xi: Floats
    xid: Floats
    P: Floats
    S: Floats
    Sd: Floats
    Q: Floats
    M: Floats
    c: Floats
    V: Floats
    mu: Floats
    tau: Floats
    pull: Floats
    G: Floats
    r: Floats
    pn: Floats
    mass: Floats
    D: Floats
    l: Floats
    A: Floats
    B: Floats
    H: Floats
    X: Floats
    lam: Floats
    inv: Floats
    y: Floats
    z: Floats
    KC: Floats
    slot: Ints
    pending: Ints
    balls: Ints


@kernel
def size(s, wide):
    """Length of the state that the Newton recursion hands from row to row, a multiple of four."""
    return 12 * s + 8 if len(wide) > 0 else 6 * (s + 1) + 2 * (s - 1)


@memory
def make_step_work(tree, w, wide, loaded):
    """Scratch memory for steps with len(w) nodes; ``loaded`` says whether impulses act on bodies."""
    s = len(w) - 1
    return sized_work(tree, s, s + 1, size(s, wide), tree.rows.shape[0] if len(wide) > 0 else 0, loaded)


@memory
def sized_work(tree, s, k, N, D1F, loaded):
    """Scratch memory for s unknowns a coordinate, k points, a state of N numbers, and D1F rows of force derivatives."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    # buffers of the Newton matrix: a row hands its own to its parent, unless the parent already has one
    slot, holds, used = np.zeros((n, 2), np.int64), np.full(n, -1), 0
    for i in range(n - 1, 0, -1):
        if holds[i] < 0:
            holds[i] = used
            used += 1
            slot[i, 1] |= 1
        slot[i, 0] = holds[i]
        j = tree.rows[i, PARENT]
        if j > 0 and holds[j] < 0:
            holds[j] = slot[i, 0]
            slot[i, 1] |= 2
    mass, balls = np.zeros(n), np.zeros(1, np.int64)
    for i in range(n - 1, 0, -1):
        if tree.rows[i, KIND] == BALL:
            balls[0] += 1
        mass[i] += tree.const[i, MASS]
        mass[tree.rows[i, PARENT]] += mass[i]
    return StepWork(
        np.zeros((nu, s + 1)), np.zeros((nu, k)), np.zeros((n, 12 * k)), np.zeros((nu, 6 * k)), np.zeros((nu, 6 * k)),
        np.zeros((nu, 6 * k)), np.zeros((n, 9 * k)), np.zeros((n, 3 * k)), np.zeros((n, 6 * k)), np.zeros((n, 6 * k)),
        np.zeros((nu, k)), np.zeros((nu, k)), np.zeros((n if loaded else 0, 6 * k)), np.zeros((nu, s)), np.zeros(nu),
        mass,
        np.zeros((used, N * N)), np.zeros((used, N)), np.zeros((nu * s, N)), np.zeros((nu * s, N)),
        np.zeros((nu * s, N)), np.zeros((nu * s, N)), np.zeros((3 * s, 3 * s)), np.zeros((nu * s, 3 * s)),
        np.zeros(nu * s), np.zeros((n, N)), np.zeros((D1F, 72 * s)), slot,
        np.full(used, -1), balls,
    )  # fmt: skip


@kernel
def combine3(Q, d, o, v):
    """Sum of three axes with coefficients v."""
    return axpy6(v[2], ld6(Q, d + 2, o), axpy6(v[1], ld6(Q, d + 1, o), scale6(v[0], ld6(Q, d, o))))


@kernel
def ball_axes(R, p, d, w, a):
    """Parent-fixed axes Q of a ball at node a, and S = Q J."""
    o = 6 * a
    e0, e1, e2 = (R[0], R[3], R[6]), (R[1], R[4], R[7]), (R[2], R[5], R[8])
    st6(w.Q, d, o, join(e0, cross(p, e0)))
    st6(w.Q, d + 1, o, join(e1, cross(p, e1)))
    st6(w.Q, d + 2, o, join(e2, cross(p, e2)))
    J = mrp_dexp(vec3(w.xi, d, a))
    st6(w.S, d, o, combine3(w.Q, d, o, (J[0], J[3], J[6])))
    st6(w.S, d + 1, o, combine3(w.Q, d, o, (J[1], J[4], J[7])))
    st6(w.S, d + 2, o, combine3(w.Q, d, o, (J[2], J[5], J[8])))


@kernel
def place(tree, x, w, a):
    """Poses, axes and inertias of all rows at node a, from x (start of the step) and w.xi."""
    o, C = 12 * a, tree.const
    st9(w.P, 0, o, ld9(w.P, 0, 0))
    st3(w.P, 0, o + 9, ld3(w.P, 0, 9))
    for i in range(1, tree.rows.shape[0]):
        kind, k, d = tree.rows[i, KIND], tree.rows[i, IX], tree.rows[i, IU]
        R, p = joint_frame(C, i, w.P, tree.rows[i, PARENT], o)
        if kind == BALL:
            ball_axes(R, p, d, w, a)
            q = quat_mul(mrp_to_quat(vec3(w.xi, d, a)), (ld1(x, k), ld1(x, k + 1), ld1(x, k + 2), ld1(x, k + 3)))
            R = turn_by_quaternion(R, q[0], q[1], q[2], q[3])
        else:
            y = ld1(x, k) + ld(w.xi, d, a)
            axis = (R[2], R[5], R[8])
            if kind == PRISMATIC:
                p = axpy3(y, axis, p)
                zero = number(x, 0.0)
                S = (zero, zero, zero, axis[0], axis[1], axis[2])
            else:
                sine, cosine = sincos(y)
                R = turn(R, sine, cosine)
                S = join(axis, cross(p, axis))
                if kind == HELICAL:
                    S = join(axis, axpy3(C[i, PITCH], axis, cross(p, axis)))
                    p = axpy3(C[i, PITCH] * y, axis, p)
            st6(w.S, d, 6 * a, S)
        st9(w.P, i, o, R)
        st3(w.P, i, o + 9, p)
        if C[i, MASS] > 0.0:
            I, h1 = row_inertia(C, i, R, p)
            st6(w.M, i, 9 * a, I)
            st3(w.M, i, 9 * a + 6, h1)


@kernel
def chart_rates(nodes, w, a, d):
    """C^a (nine numbers): rate at node a of the test function of node 0 of a ball, eq. (1)."""
    s = len(nodes.w) - 1
    z, u = vec3(w.xi, d, a), vec3(w.xid, d, a)
    one, zero = number(w.pn, 1.0), number(w.pn, 0.0)
    x, y, t = (one, zero, zero), (zero, one, zero), (zero, zero, one)
    k = nodes.b[a, 0] / nodes.h
    c0, c1, c2 = matvec(mrp_dq(z, x), u), matvec(mrp_dq(z, y), u), matvec(mrp_dq(z, t), u)
    for e in range(1, s + 1):
        f, g = -0.5 * nodes.b[a, e] / nodes.h, vec3(w.xi, d, e)
        c0 = axpy3(f, matvec(mrp_dq(g, x), g), c0)
        c1 = axpy3(f, matvec(mrp_dq(g, y), g), c1)
        c2 = axpy3(f, matvec(mrp_dq(g, t), g), c2)
    return (k + c0[0], c1[0], c2[0], c0[1], k + c1[1], c2[1], c0[2], c1[2], k + c2[2])


@kernel
def rate_at(nodes, w, k, a):
    """Rate of local coordinate k at node a; xi^0 = 0."""
    u = nodes.b[a, 1] * ld(w.xi, k, 1)
    for e in range(2, len(nodes.w)):
        u = u + nodes.b[a, e] * ld(w.xi, k, e)
    return u / nodes.h


@sweep
def move_ball(nodes, w, d, j, i):
    """Rates, twists and rates of the axes of a ball at all nodes."""
    for a in range(len(nodes.w)):
        o = 6 * a
        vp = ld6(w.V, j, o)
        v = vp
        for k in range(d, d + 3):
            u = rate_at(nodes, w, k, a)
            st(w.xid, k, a, u)
            v = axpy6(u, ld6(w.S, k, o), v)
        st6(w.V, i, o, v)
        # d(Q J)/dt = ad(v_parent) S + Q Jd
        B = mrp_jacobian_rate(vec3(w.xi, d, a), vec3(w.xid, d, a))
        st6(w.Sd, d, o, add6(ad(vp, ld6(w.S, d, o)), combine3(w.Q, d, o, (B[0], B[3], B[6]))))
        st6(w.Sd, d + 1, o, add6(ad(vp, ld6(w.S, d + 1, o)), combine3(w.Q, d, o, (B[1], B[4], B[7]))))
        st6(w.Sd, d + 2, o, add6(ad(vp, ld6(w.S, d + 2, o)), combine3(w.Q, d, o, (B[2], B[5], B[8]))))


@kernel
def move(tree, nodes, w):
    """Rates, twists, rates of the axes, momenta of the rows at all nodes (outward)."""
    s = len(nodes.w) - 1
    zero = number(w.pn, 0.0)
    for a in range(s + 1):
        st6(w.V, 0, 6 * a, (zero, zero, zero, zero, zero, zero))
        st6(w.mu, 0, 6 * a, (zero, zero, zero, zero, zero, zero))
    for i in range(1, tree.rows.shape[0]):
        j, d, m = tree.rows[i, PARENT], tree.rows[i, IU], tree.const[i, MASS]
        if tree.rows[i, KIND] == BALL:
            move_ball(nodes, w, d, j, i)
        else:
            for a in range(s + 1):
                u, vp, S = rate_at(nodes, w, d, a), ld6(w.V, j, 6 * a), ld6(w.S, d, 6 * a)
                st(w.xid, d, a, u)
                st6(w.V, i, 6 * a, axpy6(u, S, vp))
                st6(w.Sd, d, 6 * a, ad(vp, S))
        for a in range(s + 1):
            if m > 0.0:
                h1 = ld3(w.M, i, 9 * a + 6)
                st6(w.mu, i, 6 * a, inertia_times(ld6(w.M, i, 9 * a), h1, m, ld6(w.V, i, 6 * a)))
            else:
                st6(w.mu, i, 6 * a, (zero, zero, zero, zero, zero, zero))


@kernel
def gravity_on(g, mass, c, S):
    """Generalised force of gravity on a subtree of mass m and first moment c along the axis S."""
    return mass * dot3(g, (S[3], S[4], S[5])) + dot3(cross(c, g), (S[0], S[1], S[2]))


@sweep
def gravity(tree, nodes, w, a):
    """w.pull of node a along Q (for a screw the same as S), and w.c summed over subtrees."""
    g, wh = (tree.gravity[0], tree.gravity[1], tree.gravity[2]), nodes.w[a] * nodes.h
    zero = number(w.pn, 0.0)
    for i in range(tree.rows.shape[0]):
        if i > 0 and tree.const[i, MASS] > 0.0:
            st3(w.c, i, 3 * a, ld3(w.M, i, 9 * a + 6))
        else:
            st3(w.c, i, 3 * a, (zero, zero, zero))
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j, d, c = tree.rows[i, PARENT], tree.rows[i, IU], ld3(w.c, i, 3 * a)
        if tree.rows[i, KIND] == BALL:
            for k in range(d, d + 3):
                st(w.pull, k, a, wh * gravity_on(g, w.mass[i], c, ld6(w.Q, k, 6 * a)))
        else:
            st(w.pull, d, a, wh * gravity_on(g, w.mass[i], c, ld6(w.S, d, 6 * a)))
        st3(w.c, j, 3 * a, add3(ld3(w.c, j, 3 * a), c))


@kernel
def residual(tree, nodes, p, w):
    """Rows r (inward); w.mu and w.G become sums over subtrees.

    w.pull of nodes 0..s-1 must be there: node 0 does not change in a step, the inner ones are those of ``gravity``.
    """
    s, h = len(nodes.w) - 1, nodes.h
    loaded = w.G.shape[0] > 0
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        j, d = tree.rows[i, PARENT], tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            residual_ball(tree, nodes, p, w, i, d, loaded)
        else:
            first = ld1(p, d)
            for a in range(s + 1):
                mu, S = ld6(w.mu, i, 6 * a), ld6(w.S, d, 6 * a)
                momentum = nodes.w[a] * (dot6(S, mu) + tree.armature[d] * ld(w.xid, d, a))
                first = first + nodes.b[a, 0] * momentum
                for e in range(1, s):
                    before = ld(w.r, d, e) if a > 0 else 0.0
                    st(w.r, d, e, before + nodes.b[a, e] * momentum)
                if a < s:
                    direct = nodes.w[a] * h * dot6(ld6(w.Sd, d, 6 * a), mu) + ld(w.pull, d, a) + ld(w.tau, d, a)
                    if loaded:
                        direct = direct + dot6(S, ld6(w.G, i, 6 * a))
                    if a == 0:
                        first = first + direct
                    else:
                        st(w.r, d, a, ld(w.r, d, a) + direct)
            st(w.r, d, 0, first)
        # subtree sums
        for a in range(s + 1):
            st6(w.mu, j, 6 * a, add6(ld6(w.mu, j, 6 * a), ld6(w.mu, i, 6 * a)))
            if loaded:
                st6(w.G, j, 6 * a, add6(ld6(w.G, j, 6 * a), ld6(w.G, i, 6 * a)))


@sweep
def next_momentum(tree, nodes, p, w):
    """w.pn by eq. (4), once a step: the test function is a constant displacement along the parent's axes."""
    s, h = len(nodes.w) - 1, nodes.h
    loaded = w.G.shape[0] > 0
    gravity(tree, nodes, w, s)
    for i in range(1, tree.rows.shape[0]):
        j, d = tree.rows[i, PARENT], tree.rows[i, IU]
        ball = tree.rows[i, KIND] == BALL
        for k in range(d, d + 3 if ball else d + 1):
            total = ld1(p, k)
            for a in range(s + 1):
                o = 6 * a
                axis = ld6(w.Q, k, o) if ball else ld6(w.S, k, o)
                total = total + nodes.w[a] * h * dot6(axis, ad_dual(ld6(w.V, j, o), ld6(w.mu, i, o)))
                total = total + ld(w.pull, k, a) + ld(w.tau, k, a)
                if loaded:
                    total = total + dot6(axis, ld6(w.G, i, o))
            st1(w.pn, k, total)


@kernel
def along3(Q, d, o, f):
    """Components of a wrench along three axes."""
    return (dot6(ld6(Q, d, o), f), dot6(ld6(Q, d + 1, o), f), dot6(ld6(Q, d + 2, o), f))


@sweep
def residual_ball(tree, nodes, p, w, i, d, loaded):
    """Rows of a ball."""
    s, h = len(nodes.w) - 1, nodes.h
    rotor = tree.armature[d]
    first = (ld1(p, d), ld1(p, d + 1), ld1(p, d + 2))
    for a in range(s + 1):
        wh, o = nodes.w[a] * h, 6 * a
        mu = ld6(w.mu, i, o)
        z, u = vec3(w.xi, d, a), vec3(w.xid, d, a)
        J, Jd = mrp_dexp(z), mrp_jacobian_rate(z, u)
        spin = scale3(rotor, matvec(J, u))
        # S^T mu with the rotor
        momentum = scale3(nodes.w[a], add3(along3(w.S, d, o, mu), tmatvec(J, spin)))
        first = axpy3(h, tmatvec(chart_rates(nodes, w, a, d), momentum), first)
        # Sd^T mu, gravity, joint and body impulses
        push = add3(vec3(w.pull, d, a), vec3(w.tau, d, a))
        if loaded:
            push = add3(push, along3(w.Q, d, o, ld6(w.G, i, o)))
        direct = axpy3(wh, add3(along3(w.Sd, d, o, mu), tmatvec(Jd, spin)), tmatvec(J, push))
        if a == 0:
            first = add3(first, direct)
        for e in range(1, s):
            more = scale3(nodes.b[a, e], momentum)
            if e == a:
                more = add3(more, direct)
            if a > 0:
                more = add3(more, vec3(w.r, d, e))
            for k in range(3):
                st(w.r, d + k, e, more[k])
    for k in range(3):
        st(w.r, d + k, 0, first[k])
