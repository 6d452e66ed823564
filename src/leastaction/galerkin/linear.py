"""Derivative of a Galerkin step by state and control, exact (Fan et al. 2018, Algorithms 2 and 3, any joint). O(n^2).

In the rows' coordinates the state is (x, u), displacements of a ball are rotation vectors in child axes. A column is a
unit of dx, du or of a force f of the rows (balls in child axes; the force of a free joint along the axes of its child).
Inside the step it is theta = R dx (a ball's displacement in parent axes) and dp, the momentum seen in the displaced
axes, so that dp = R d(M u) needs no turning terms. Then with y = -J^-1 dr

    theta+ = theta + J^s y^s,     dp+ = dpn - (J^s y^s) x pn  (ball, fixed axes),     d(M u)+ = R+^T dp+

and du+ = M^-1 (d(M u)+ - d(M u)/dx dx+). With forces on bodies, or with springs, dampers or forces in free joints, J is
not that of the O(n) recursion: what they add comes in as dense tables, and J is factorised densely, O(n^3).

    Re, Pe  residual and next momentum by theta        J, Py  by the unknowns        Y, Pn  columns of both
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.hessian import momentum_by_position, rate_tables, subtree_momenta
from leastaction.dynamics.legendre import tree_rates
from leastaction.forces.bodies import has_forces
from leastaction.galerkin.columns import (
    WIDE,
    collect_columns,
    expand_columns,
    factorise,
    put_node_columns,
    reduce_columns,
    take_block,
    velocity_columns,
)
from leastaction.galerkin.impulses import impulse_derivatives
from leastaction.galerkin.newton import local_ball, local_screw
from leastaction.galerkin.residual import Nodes, make_step_work, next_momentum
from leastaction.galerkin.step import accept, evaluate_at_nodes, place_start
from leastaction.galerkin.variations import by_displacements, displaced_local, fill_variation, make_variation, unknowns
from leastaction.jit.decorators import entry, kernel, memory, sweep
from leastaction.loops.nodes import make_loop_nodes
from leastaction.spatial._source.mrp import spread
from leastaction.spatial._source.so3 import mrp_dexp, mrp_to_quat, quat_mul, quat_normalize, quat_to_matrix
from leastaction.spatial._source.vector import add3, cross, matmul, matvec, scale3, sub3, tmatvec
from leastaction.tree.arrays import copy, vec3
from leastaction.tree.composite import mass_matrix, subtree_inertias
from leastaction.tree.coordinates import free_rotation, get3, offset_of, positions_out, quat_at, rates_out
from leastaction.tree.kinematics import velocities
from leastaction.tree.layout import BALL, IU, IX, KIND
from leastaction.tree.nodes import node_state


@kernel
def rotation_at(tree, x, w, i, a):
    """Rotation of a ball at node a, in parent axes."""
    start = quat_at(x, tree.rows[i, IX])
    return quat_to_matrix(quat_normalize(quat_mul(mrp_to_quat(vec3(w.xi, tree.rows[i, IU], a)), start)))


@kernel
def turn_columns(T, d, R):
    """T[:, d:d+3] R."""
    for r in range(T.shape[0]):
        v = tmatvec(R, (T[r, d], T[r, d + 1], T[r, d + 2]))
        for e in range(3):
            T[r, d + e] = v[e]


# --- right-hand sides -----------------------------------------------------------------------------------------------
@memory
def state_columns(tree, s, x, w, f, E, H, Y, Pn):
    """Columns of dx and du: the balls of ``displaced`` turned to child axes, and the momentum d(M u).

    f must hold M^-1 of the start (``tree_rates``) and its rates f.y; E, H (nu, nu) are zeroed scratch.
    """
    nu = tree.rates.shape[0]
    m, T = np.empty(tree.rows.shape[0]), np.zeros((nu, 24))
    momentum_tables(tree, f, m, T)
    momentum_by_position(tree, f.S, T, E)
    mass_matrix(tree, f.S, f.M, m, H)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            R = rotation_at(tree, x, w, i, 0)
            turn_columns(Y, d, R)
            turn_columns(Pn, d, R)
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            R = rotation_at(tree, x, w, i, 0)
            for c in range(nu):
                by_x, by_u = matvec(R, vec3(E, d, c)), matvec(R, vec3(H, d, c))
                for e in range(3):
                    Y[d * s + e, c] += by_x[e]
                    Pn[d + e, c] += by_x[e]
                    Y[d * s + e, nu + c] += by_u[e]
                    Pn[d + e, nu + c] += by_u[e]
        else:
            for c in range(nu):
                Y[d * s, c] += E[d, c]
                Pn[d, c] += E[d, c]
                Y[d * s, nu + c] += H[d, c]
                Pn[d, nu + c] += H[d, c]


@kernel
def momentum_tables(tree, f, m, T):
    """Tables of ``hessian`` for the position in f.S, f.M (row inertias; sums afterwards) and the rates in f.v."""
    velocities(tree, f.v, f.S, f.V)
    subtree_momenta(tree, f.M, f.V, f.F)
    subtree_inertias(tree, f.M, m)
    rate_tables(tree, f.S, f.M, m, f.V, f.F, T)


@kernel
def push_ball(s, w, d, a, impulse, column, Y, Pn):
    """An impulse on a ball at node a, along parent axes."""
    back = tmatvec(mrp_dexp(vec3(w.xi, d, a)), impulse)
    for e in range(3):
        Pn[d + e, column] += impulse[e]
        if a < s:
            Y[d * s + 3 * a + e, column] += back[e]


@sweep
def control_columns(system, nodes, x, w, first, Y, Pn):
    """Columns of the forces, from column ``first`` on: held over the step, w_a h at node a."""
    tree, c, s = system.tree, system.coordinates, len(nodes.w) - 1
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        for a in range(s + 1):
            wh = nodes.w[a] * nodes.h
            if tree.rows[i, KIND] == BALL:
                R = rotation_at(tree, x, w, i, a)
                for j in range(3):
                    push_ball(s, w, d, a, scale3(wh, (R[j], R[3 + j], R[6 + j])), first + d + j, Y, Pn)
            else:
                Pn[d, first + d] += wh
                if a < s:
                    Y[d * s + a, first + d] += wh
    # free joints: force along the child's axes, at the origin of its frame
    for j in range(c.free.shape[0]):
        d, o = c.free[j, 1], offset_of(c, j)
        for e in range(3):
            Pn[d + e, first + d + e] = 0.0
            for a in range(s):
                Y[(d + e) * s + a, first + d + e] = 0.0
        for a in range(s + 1):
            wh = nodes.w[a] * nodes.h
            R = rotation_at(tree, x, w, tree.rates[d + 3, 0], a)
            for e in range(3):
                axis = (1.0 if e == 0 else 0.0, 1.0 if e == 1 else 0.0, 1.0 if e == 2 else 0.0)
                force, torque = matvec(R, axis), matvec(R, cross(axis, o))
                push_ball(s, w, d + 3, a, scale3(wh, torque), first + d + e, Y, Pn)
                for k in range(3):
                    Pn[d + k, first + d + e] += wh * force[k]
                    if a < s:
                        Y[(d + k) * s + a, first + d + e] += wh * force[k]


# --- dense solution, where the recursion is not exact ----------------------------------------------------------------
@sweep
def solve_columns(J, Y):
    """Y = -J^-1 Y by Gaussian elimination with row pivoting; J is overwritten."""
    n, m = J.shape[0], Y.shape[1]
    for c in range(n):
        best, at = abs(J[c, c]), c
        for r in range(c + 1, n):
            if abs(J[r, c]) > best:
                best, at = abs(J[r, c]), r
        if at != c:
            for e in range(n):
                J[c, e], J[at, e] = J[at, e], J[c, e]
            for e in range(m):
                Y[c, e], Y[at, e] = Y[at, e], Y[c, e]
        f = 1.0 / J[c, c]
        for r in range(c + 1, n):
            t = J[r, c] * f
            if t != 0.0:
                for e in range(c + 1, n):
                    J[r, e] -= t * J[c, e]
                for e in range(m):
                    Y[r, e] -= t * Y[c, e]
    for c in range(n - 1, -1, -1):
        f = 1.0 / J[c, c]
        for e in range(m):
            Y[c, e] *= f
        for r in range(c):
            t = J[r, c]
            if t != 0.0:
                for e in range(m):
                    Y[r, e] -= t * Y[c, e]
    for c in range(n):
        for e in range(m):
            Y[c, e] = -Y[c, e]


@kernel
def add_dense(more, T):
    """Add a table to the first columns of another."""
    for r in range(more.shape[0]):
        for c in range(more.shape[1]):
            T[r, c] += more[r, c]


@sweep
def dense_matrices(tree, nodes, w, var, K, Dm, J, Py):
    """J (nu s, nu s) and Py (nu, nu s) of the tree as dense matrices, zeroed by the caller."""
    s = len(nodes.w) - 1
    unknowns(tree, s, var, J, Py)
    # local terms
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        k = s
        if tree.rows[i, KIND] == BALL:
            k = 3 * s
            local_ball(tree, nodes, w, i, d, K, Dm)
        else:
            local_screw(tree, nodes, w, d, K, Dm)
        for a in range(k):
            for c in range(k):
                J[d * s + a, d * s + c] += w.lam[a, c]
        for j in range(d, d + k // s):
            for c in range(k):
                Py[j, d * s + c] += var.local[j, c]


@memory
def dense_columns(tree, nodes, w, var, K, Dm, more_J, more_Py, Y, Pn):
    """y and next momenta with J and Py as dense matrices: those of the tree plus ``more_J`` and ``more_Py``."""
    J, Py = np.zeros(more_J.shape), np.zeros(more_Py.shape)
    dense_matrices(tree, nodes, w, var, K, Dm, J, Py)
    add_dense(more_J, J)
    add_dense(more_Py, Py)
    solve_columns(J, Y)
    for r in range(Py.shape[0]):
        for k in range(Py.shape[1]):
            t = Py[r, k]
            if t != 0.0:
                for e in range(Y.shape[1]):
                    Pn[r, e] += t * Y[k, e]


# --- the end of the step --------------------------------------------------------------------------------------------
@sweep
def end_columns(tree, s, x, w, Y, Pn, Xn):
    """dx+ in Xn and d(M u)+ in Pn (balls in child axes) from y and the next momenta in displaced axes."""
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        if tree.rows[i, KIND] == BALL:
            start, end = rotation_at(tree, x, w, i, 0), rotation_at(tree, x, w, i, s)
            J, pn = mrp_dexp(vec3(w.xi, d, s)), get3(w.pn, d)
            back = (end[0], end[3], end[6], end[1], end[4], end[7], end[2], end[5], end[8])
            turn, carried = matmul(back, J), matmul(back, matmul(spread(0.0, pn), J))
            kept = matmul(back, start)
            at = d * s + 3 * (s - 1)
            for c in range(Y.shape[1]):
                y, p = vec3(Y, at, c), vec3(Pn, d, c)
                move, p = matvec(turn, y), add3(matvec(back, p), matvec(carried, y))
                for e in range(3):
                    Xn[d + e, c] = move[e]
                    Pn[d + e, c] = p[e]
            for c in range(3):
                for e in range(3):
                    Xn[d + e, d + c] += kept[3 * e + c]
        else:
            for c in range(Y.shape[1]):
                Xn[d, c] = Y[d * s + s - 1, c]
            Xn[d, d] += 1.0


@sweep
def to_user(coordinates, x0, u0, x1, u1, Xn, Un, half, A, B):
    """A (2 nv, 2 nv) and B (2 nv, nv) of the user from the columns Xn, Un (nu, >= 3 nu) of the rows.

    In: dx = T dq, du = T dv + (dT/dq dq) v. Out: dq = T^-1 dx, dv = T^-1 (du - (dT/dq dq) v). ``half`` (2 nu, 3 nu).
    """
    c, nu = coordinates, u0.size
    for r in range(nu):
        for k in range(3 * nu):
            half[r, k] = Xn[r, k]
            half[nu + r, k] = Un[r, k]
    # free joints at the end of the step: rows
    for j in range(c.free.shape[0]):
        d, o = c.free[j, 1], offset_of(c, j)
        R = free_rotation(x1, c.free[j, 0])
        speed = tmatvec(R, get3(u1, d))
        for k in range(3 * nu):
            turn, spin = vec3(half, d + 3, k), vec3(half, nu + d + 3, k)
            slide = sub3(tmatvec(R, vec3(half, d, k)), cross(turn, o))
            rate = sub3(tmatvec(R, vec3(half, nu + d, k)), add3(cross(turn, speed), cross(spin, o)))
            for e in range(3):
                half[d + e, k] = slide[e]
                half[nu + d + e, k] = rate[e]
    # free joints at its start: columns of displacements get what they do to the rates
    for j in range(c.free.shape[0]):
        d = c.free[j, 1]
        R = free_rotation(x0, c.free[j, 0])
        speed = get3(u0, d)
        for r in range(2 * nu):
            # the rates turn with the displacement: du = (R w) x u
            by_rate = vec3_row(half, r, nu + d)
            more = tmatvec(R, cross(speed, by_rate))
            for e in range(3):
                half[r, d + 3 + e] += more[e]
    # T and the user's order
    for r in range(nu):
        for part in range(2):
            at, to = r + part * nu, c.v[r] + part * nu
            columns_one(c, x0, half, at, 0, A, to, 0)
            columns_one(c, x0, half, at, nu, A, to, nu)
            for k in range(nu):
                B[to, c.v[k]] = half[at, 2 * nu + k]


@kernel
def vec3_row(T, r, c):
    """Three neighbouring entries of a row."""
    return (T[r, c], T[r, c + 1], T[r, c + 2])


@kernel
def columns_one(c, x, T, r, k0, out, to, o0):
    """A row times T: entries k0.. of row r of the table to entries o0.. of row ``to`` of out."""
    for k in range(c.v.size):
        out[to, o0 + c.v[k]] = T[r, k0 + k]
    for j in range(c.free.shape[0]):
        d, o = c.free[j, 1], offset_of(c, j)
        lin = tmatvec(free_rotation(x, c.free[j, 0]), vec3_row(T, r, k0 + d))
        turn = add3(vec3_row(T, r, k0 + d + 3), cross(o, lin))
        for e in range(3):
            out[to, o0 + c.v[d + e]] = lin[e]
            out[to, o0 + c.v[d + 3 + e]] = turn[e]


# --- entry points ---------------------------------------------------------------------------------------------------
@kernel
def settle_step(system, nodes, t, x, p, control, active, xi, w, f, L, xa, ua, K, Dm):
    """Tables of a step whose local coordinates xi are known: residual, next momentum, derivatives of impulses."""
    place_start(system.tree, nodes, x, w)
    for d in range(xi.shape[0]):
        for a in range(1, len(nodes.w)):
            w.xi[d, a] = xi[d, a]
    evaluate_at_nodes(system, nodes, t, x, p, control, active, w, f, L, xa, ua)
    next_momentum(system.tree, nodes, p, w)
    if active:
        impulse_derivatives(system, nodes, x, w, f, xa, ua, K, Dm)


@entry
def galerkin_linearize(
    system, weights, b, c, across, balance, t, h, x, p, xi, controls, active, more_J, more_Py, more_Re, more_Pe, A, B
):  # fmt: skip
    """Derivatives A (steps, 2 nv, 2 nv) and B (steps, 2 nv, nv) of steps with starts x, p and local coordinates xi.

    x (steps, nx), p (steps, nu), xi (steps, nu, s+1), controls (steps, nv), t (steps,). more_J (nu s, nu s), more_Py
    (nu, nu s), more_Re (nu s, nu), more_Pe (nu, nu): what the recursion does not know; without rows where there is
    nothing, and then the recursion is used.
    """
    tree, nu, s = system.tree, p.shape[1], len(weights) - 1
    n, W = tree.rows.shape[0], 8 * (s + 1)
    nodes = Nodes(weights, (), b, c, h, across, balance)
    w, f = make_step_work(tree, weights, (), has_forces(system.forces)), make_work(system, x[0])
    var, links = make_variation(tree, s), make_loop_nodes(system.loops, system.constraints, tree, s)
    xa, ua, K, Dm = np.zeros(x.shape[1]), np.zeros(nu), np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    columns = WIDE * ((3 * nu + WIDE - 1) // WIDE)
    Y, Pn, Xn = np.zeros((nu * s, columns)), np.zeros((nu, columns)), np.zeros((nu, columns))
    E, H, half = np.zeros((nu, nu)), np.zeros((nu, nu)), np.zeros((2 * nu, 3 * nu))
    l, z, q = np.zeros((w.D.shape[0] * W, WIDE)), np.zeros((n * W, WIDE)), np.zeros((w.D.shape[0] * W, WIDE))
    tmp, L, m, T = np.zeros((3 * s, WIDE)), np.zeros((6 * n, WIDE)), np.empty(n), np.zeros((nu, 24))
    y16, p16, x16 = np.zeros((nu * s, WIDE)), np.zeros((nu, WIDE)), np.zeros((nu, WIDE))
    x1, p1, u0, u1 = np.zeros(x.shape[1]), np.zeros(nu), np.zeros(nu), np.zeros(nu)
    for k in range(x.shape[0]):
        settle_step(system, nodes, t[k], x[k], p[k], controls[k : k + 1], active, xi[k], w, f, links, xa, ua, K, Dm)
        fill_variation(tree, nodes, w, var, K, Dm)
        for r in range(nu):
            for e in range(columns):
                Pn[r, e] = 0.0
                for a in range(s):
                    Y[r * s + a, e] = 0.0
        # columns of state and control
        by_displacements(tree, s, var, Y, Pn)
        displaced_local(tree, nodes, w, K, Y, Pn)
        if more_J.shape[0] > 0:
            add_dense(more_Re, Y)
            add_dense(more_Pe, Pn)
        tree_rates(tree, x[k], p[k], f, u0)
        copy(u0, f.v)
        state_columns(tree, s, x[k], w, f, E, H, Y, Pn)
        control_columns(system, nodes, x[k], w, 2 * nu, Y, Pn)
        # unknowns and next momenta
        if more_J.shape[0] > 0:
            dense_columns(tree, nodes, w, var, K, Dm, more_J, more_Py, Y, Pn)
        else:
            factorise(tree, nodes, w, var, K, Dm)
            for e in range(0, columns, WIDE):
                take_block(Y, e, y16)
                take_block(Pn, e, p16)
                reduce_columns(tree, s, w, var, y16, l, tmp)
                expand_columns(tree, s, var, y16, z, p16)
                collect_columns(tree, s, w, var, y16, q, p16)
                put_node_columns(y16, Y, e)
                put_node_columns(p16, Pn, e)
        # the end of the step
        end_columns(tree, s, x[k], w, Y, Pn, Xn)
        copy(x[k], x1)
        copy(p[k], p1)
        accept(tree, nodes, x1, p1, w)
        tree_rates(tree, x1, p1, f, u1)
        copy(u1, f.v)
        momentum_tables(tree, f, m, T)
        for e in range(0, columns, WIDE):
            take_block(Xn, e, x16)
            take_block(Pn, e, p16)
            velocity_columns(tree, f.S, f.U, T, x16, p16, z, L)
            put_node_columns(p16, Pn, e)
        to_user(system.coordinates, x[k], u0, x1, u1, Xn, Pn, half, A[k], B[k])


@entry
def step_tables(
    system, weights, b, c, across, balance, t, h, x, p, xi, control, active, q, v, P, S, Sd, Q, V, G, tau, K, Dm
):  # fmt: skip
    """What forces that the recursion does not know need of one step.

    q (s+1, nq), v (s+1, nv) of the user at the nodes, the tables P, S, Sd, Q (for screws the same as S), V, tau of
    ``galerkin.residual``, impulses G of body forces summed over subtrees, and the derivatives K, Dm of the joint
    impulses.
    """
    tree, nu = system.tree, p.size
    nodes = Nodes(weights, (), b, c, h, across, balance)
    w, f = make_step_work(tree, weights, (), has_forces(system.forces)), make_work(system, x)
    xa, ua = np.zeros(x.size), np.zeros(nu)
    links = make_loop_nodes(system.loops, system.constraints, tree, len(weights) - 1)
    settle_step(system, nodes, t, x, p, control, active, xi, w, f, links, xa, ua, K, Dm)
    for a in range(len(weights)):
        node_state(tree, x, w, a, xa, ua)
        positions_out(system.coordinates, xa, q[a])
        rates_out(system.coordinates, xa, ua, v[a])
    add_dense(w.P, P)
    add_dense(w.S, S)
    add_dense(w.Sd, Sd)
    add_dense(w.V, V)
    add_dense(w.G, G)
    add_dense(w.tau, tau)
    for d in range(nu):
        ball = tree.rows[tree.rates[d, 0], KIND] == BALL
        for e in range(Q.shape[1]):
            Q[d, e] = w.Q[d, e] if ball else w.S[d, e]
