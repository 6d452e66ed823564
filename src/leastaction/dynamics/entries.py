"""Entry points from Python: dynamics and observables, each over a batch of states (rows).

All arrays are the user's: q, v, a, tau in joint order. Everything about the rows' coordinates stays inside.
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import acceleration, make_work
from leastaction.forces.bodies import body_forces, force_energy, row3, row9, world_point
from leastaction.forces.joints import joint_energy, joint_forces
from leastaction.jit.decorators import entry, kernel, optional
from leastaction.jit.lanes import ld3, ld6, ld9
from leastaction.loops.rows import loop_rows, loop_size, pair_size, project_row
from leastaction.loops.ties import tie_gap, tie_slopes
from leastaction.spatial._source.vector import add3, ang, cross, dot3, dot6, inertia_times, lin, matmul, sub3
from leastaction.tree.composite import mass_matrix, momentum_map, subtree_inertias
from leastaction.tree.coordinates import (
    accelerations_in,
    accelerations_out,
    columns_out,
    forces_out,
    positions_in,
    positions_out,
    rates_in,
    rates_out,
)
from leastaction.tree.derivatives import inverse_dynamics_derivatives, subtree_bias
from leastaction.tree.kinematics import add_armature, inertias, inward, kinematics, last_rate, outward, velocities
from leastaction.tree.layout import MASS
from leastaction.tree.splines import spline_derivatives


@kernel
def fill_table(a, value):
    """Set every entry of a table."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = value


@entry
def inverse_dynamics(system, t, q, v, a, passive, tau):
    """tau (rows, nv) for accelerations a; with ``passive`` springs, dampers and body forces are taken off."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, u, udot, f = np.empty(q.shape[1]), np.empty(v.shape[1]), np.empty(v.shape[1]), np.empty(v.shape[1])
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        accelerations_in(c, x, v[r], a[r], udot)
        outward(tree, x, u, udot, w.P, w.S, w.M, w.V, w.F)
        if passive:
            body_forces(system.forces, t[r], w.P, w.V, w.F, w.given, w.result)
        inward(tree, w.S, w.F, f)
        add_armature(tree, udot, f)
        forces_out(c, x, f, tau[r])
        if passive:
            for d in range(f.size):
                w.tau[d] = 0.0
            joint_forces(system.passive, q[r], v[r], w.tau)
            for d in range(f.size):
                tau[r, d] -= w.tau[d]


@entry
def forward_dynamics(system, t, q, v, tau, a, lam):
    """a (rows, nv) and loop multipliers lam (rows, m) in newtons. False if the loops cannot be solved."""
    c = system.coordinates
    w = make_work(system, q[0])
    x, u, udot = np.empty(q.shape[1]), np.empty(v.shape[1]), np.empty(v.shape[1])
    good = True
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        good = acceleration(system, t[r], x, u, tau[r], w, udot) and good
        accelerations_out(c, x, v[r], udot, a[r])
        for k in range(w.lam.size):
            lam[r, k] = w.lam[k]
    return good


@entry
def mass_matrices(system, q, out):
    """Mass matrices (rows, nv, nv)."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, m, nu = np.empty(q.shape[1]), np.empty(tree.rows.shape[0]), tree.rates.shape[0]
    H, half = np.empty((nu, nu)), np.empty((nu, nu))
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        kinematics(tree, x, w.P, w.S)
        inertias(tree, x, w.P, w.M)
        subtree_inertias(tree, w.M, m)
        fill_table(H, 0.0)
        mass_matrix(tree, w.S, w.M, m, H)
        # T^T H T: columns, then rows by symmetry
        columns_out(c, x, H, half)
        for i in range(nu):
            for j in range(nu):
                H[i, j] = half[j, i]
        columns_out(c, x, H, out[r])


@entry
def energies(system, q, v, out):
    """Kinetic energy, gravity and spring potential (rows, 3)."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, u = np.empty(q.shape[1]), np.empty(v.shape[1])
    g = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        kinematics(tree, x, w.P, w.S)
        inertias(tree, x, w.P, w.M)
        velocities(tree, u, w.S, w.V)
        o = ld3(w.P, 0, 9)
        kinetic, potential = 0.0, 0.0
        for i in range(1, tree.rows.shape[0]):
            m = tree.const[i, MASS]
            if m > 0.0:
                s = ld6(w.V, i, 0)
                kinetic += 0.5 * dot6(s, inertia_times(ld6(w.M, i, 0), ld3(w.M, i, 6), m, s))
                potential -= dot3(g, ld3(w.M, i, 6)) - m * dot3(g, o)
        for d in range(u.size):
            kinetic += 0.5 * tree.armature[d] * u[d] * u[d]
        out[r, 0] = kinetic
        out[r, 1] = potential
        out[r, 2] = joint_energy(system.passive, q[r]) + force_energy(system.forces, w.P)


@entry
def all_momenta(system, q, v, out):
    """Angular momentum about the world's origin, linear momentum, centre of mass (rows, 9)."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, u = np.empty(q.shape[1]), np.empty(v.shape[1])
    total = 0.0
    for i in range(tree.rows.shape[0]):
        total += tree.const[i, MASS]
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        kinematics(tree, x, w.P, w.S)
        inertias(tree, x, w.P, w.M)
        velocities(tree, u, w.S, w.V)
        h, first = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for i in range(1, tree.rows.shape[0]):
            m = tree.const[i, MASS]
            if m > 0.0:
                p = inertia_times(ld6(w.M, i, 0), ld3(w.M, i, 6), m, ld6(w.V, i, 0))
                h = (h[0] + p[0], h[1] + p[1], h[2] + p[2], h[3] + p[3], h[4] + p[4], h[5] + p[5])
                first = add3(first, ld3(w.M, i, 6))
        # from the kernels' origin o = -P[0] to the world's
        o = ld3(w.P, 0, 9)
        L = sub3(ang(h), cross(o, lin(h)))
        for e in range(3):
            out[r, e] = L[e]
            out[r, 3 + e] = h[3 + e]
            out[r, 6 + e] = first[e] / max(total, 1e-300) - o[e]


@entry
def frame_poses(system, q, rows, frames, out):
    """Poses (rows, frames, 4, 4) in the world of frames (k, 12) on tree rows (k,)."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x = np.empty(q.shape[1])
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        kinematics(tree, x, w.P, w.S)
        for k in range(rows.size):
            R = matmul(ld9(w.P, rows[k], 0), row9(frames, k, 0))
            p = sub3(world_point(w.P, rows[k], row3(frames, k, 9)), ld3(w.P, 0, 9))
            for i in range(3):
                for j in range(3):
                    out[r, k, i, j] = R[3 * i + j]
                out[r, k, i, 3] = p[i]
                out[r, k, 3, i] = 0.0
            out[r, k, 3, 3] = 1.0


@entry
def frame_jacobian(system, q, row, frame, out):
    """Jacobians (rows, 6, nv) of a frame (12,) on a tree row: (angular; linear) at its origin, world axes."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, J = np.empty(q.shape[1]), np.empty((6, tree.rates.shape[0]))
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        kinematics(tree, x, w.P, w.S)
        p = world_point(w.P, row, (frame[9], frame[10], frame[11]))
        fill_table(J, 0.0)
        d = last_rate(tree, row)
        while d >= 0:
            s = ld6(w.S, d, 0)
            point = add3(lin(s), cross(ang(s), p))
            for e in range(3):
                J[e, d] = s[e]
                J[3 + e, d] = point[e]
            d = tree.rates[d, 1]
        columns_out(c, x, J, out[r])


@entry
def centroidal_maps(system, q, out):
    """Maps (rows, 6, nv) from v to momentum (angular about the centre of mass; linear), world axes."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    nu, n = tree.rates.shape[0], tree.rows.shape[0]
    x, m, rows, J = np.empty(q.shape[1]), np.empty(n), np.empty((nu, 6)), np.empty((6, nu))
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        kinematics(tree, x, w.P, w.S)
        inertias(tree, x, w.P, w.M)
        subtree_inertias(tree, w.M, m)
        momentum_map(tree, w.S, w.M, m, rows)
        com = row3(w.M, 0, 6)
        for d in range(nu):
            h = ld6(rows, d, 0)
            L = sub3(ang(h), cross((com[0] / m[0], com[1] / m[0], com[2] / m[0]), lin(h)))
            for e in range(3):
                J[e, d] = L[e]
                J[3 + e, d] = h[3 + e]
        columns_out(c, x, J, out[r])


@entry
def derivatives(system, t, q, v, a, passive, dq, du, H, f, P, S, T):
    """Derivatives of inverse dynamics at one state, in the rows' coordinates.

    d f / d x and d f / d u (nu, nu), mass matrix H, forces f (nu,), and the tables P, S, T of ``tree/derivatives.py``.
    With ``passive`` the body forces count as fixed to their bodies; what they vary is added by the caller.
    """
    c, tree = system.coordinates, system.tree
    w = make_work(system, q)
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, u, udot, m, B = np.empty(q.size), np.empty(nu), np.empty(nu), np.empty(n), np.empty((n, 36))
    positions_in(c, q, x)
    rates_in(c, x, v, u)
    accelerations_in(c, x, v, a, udot)
    outward(tree, x, u, udot, P, S, w.M, w.V, w.F)
    if passive:
        body_forces(system.forces, t, P, w.V, w.F, w.given, w.result)
    inward(tree, S, w.F, f)
    add_armature(tree, udot, f)
    subtree_bias(tree, x, w.M, w.V, B)
    subtree_inertias(tree, w.M, m)
    mass_matrix(tree, S, w.M, m, H)
    inverse_dynamics_derivatives(tree, S, w.M, m, w.V, w.F, B, T, dq, du)
    spline_derivatives(tree.splines, tree, x, u, udot, P, S, w.M, m, w.V, w.F, B, T, dq, du)


@entry
def body_twists(system, q, v, rows, frames, out):
    """Twists (rows, frames, 6) of frames (k, 12) on tree rows (k,): at their origins, world axes. O(n)."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, u = np.empty(q.shape[1]), np.empty(v.shape[1])
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        kinematics(tree, x, w.P, w.S)
        velocities(tree, u, w.S, w.V)
        for k in range(rows.size):
            p = world_point(w.P, rows[k], row3(frames, k, 9))
            s = ld6(w.V, rows[k], 0)
            point = add3(lin(s), cross(ang(s), p))
            for e in range(3):
                out[r, k, e] = s[e]
                out[r, k, 3 + e] = point[e]


@entry
def wrench_forces(system, q, rows, frames, wrenches, tau):
    """Generalised forces (rows, nv) of wrenches (rows, k, 6) at the origins of frames, world axes. O(n)."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, f = np.empty(q.shape[1]), np.empty(tree.rates.shape[0])
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        kinematics(tree, x, w.P, w.S)
        fill_table(w.F, 0.0)
        for k in range(rows.size):
            p = world_point(w.P, rows[k], row3(frames, k, 9))
            h = ld6(wrenches[r], k, 0)
            moment = add3(ang(h), cross(p, lin(h)))
            for e in range(3):
                w.F[rows[k], e] += moment[e]
                w.F[rows[k], 3 + e] += h[3 + e]
        inward(tree, w.S, w.F, f)
        forces_out(c, x, f, tau[r])


@optional(None)
def load_loops(loops, loads, F):
    """Put the wrenches of the loop joints on both of their bodies."""
    for k in range(loops.rows.shape[0]):
        for e in range(6):
            F[loops.rows[k, 1], e] -= loads[k, e]
            F[loops.rows[k, 0], e] += loads[k, e]


@entry
def joint_reactions(system, t, q, v, a, rows, frames, loads, out):
    """Wrench (rows, joints, 6) that each joint passes to its child, in the child frame (12,) on its last tree row.

    ``loads`` (rows, nl, 6) are the wrenches of the loop joints about the world's origin on their child bodies.
    """
    c, tree, loops = system.coordinates, system.tree, system.loops
    w = make_work(system, q[0])
    x, u, udot, f = np.empty(q.shape[1]), np.empty(v.shape[1]), np.empty(v.shape[1]), np.empty(v.shape[1])
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        accelerations_in(c, x, v[r], a[r], udot)
        outward(tree, x, u, udot, w.P, w.S, w.M, w.V, w.F)
        body_forces(system.forces, t[r], w.P, w.V, w.F, w.given, w.result)
        load_loops(loops, loads[r], w.F)
        inward(tree, w.S, w.F, f)
        for k in range(rows.size):
            R = matmul(ld9(w.P, rows[k], 0), row9(frames, k, 0))
            p = world_point(w.P, rows[k], row3(frames, k, 9))
            h = ld6(w.F, rows[k], 0)
            torque = sub3(ang(h), cross(p, lin(h)))
            for e in range(3):
                out[r, k, e] = R[e] * torque[0] + R[3 + e] * torque[1] + R[6 + e] * torque[2]
                out[r, k, 3 + e] = R[e] * h[3] + R[3 + e] * h[4] + R[6 + e] * h[5]


@optional(None)
def coordinate_rows(loops, tree, x, w, row):
    """Gaps w.g and rows by the rates (m, nu) of loop joints and couplings."""
    pairs = pair_size(loops)
    loop_rows(loops, w.P, w.V, w.g, w.G, w.bias, w.ends)
    for k in range(pairs):
        project_row(tree, w.S, w.ends[k, 0], w.ends[k, 1], ld6(w.G, k, 0), row[k])
    for k in range(loops.ties.kind.shape[0]):
        w.g[pairs + k] = tie_gap(loops.ties, k, x)
        tie_slopes(loops.ties, k, x, row[pairs + k])


@entry
def loop_gaps(system, q, v, gaps, rates, J):
    """Gaps and rates (rows, m) of loop joints and couplings, and the user's rows J (rows, m, nv) if asked for."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    m, nu = loop_size(system.loops), tree.rates.shape[0]
    x, u, row = np.empty(q.shape[1]), np.empty(v.shape[1]), np.empty((m, nu))
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        rates_in(c, x, v[r], u)
        kinematics(tree, x, w.P, w.S)
        velocities(tree, u, w.S, w.V)
        coordinate_rows(system.loops, tree, x, w, row)
        for k in range(m):
            gaps[r, k] = w.g[k]
            rates[r, k] = 0.0
            for d in range(nu):
                rates[r, k] += row[k, d] * u[d]
        if J.shape[0] > 0:
            columns_out(c, x, row, J[r])


@entry
def enter(system, q, v, x, u):
    """Coordinates and rates of the rows from the user's."""
    positions_in(system.coordinates, q, x)
    rates_in(system.coordinates, x, v, u)


@entry
def leave(system, x, u, q, v):
    """The user's coordinates and velocities from the rows'."""
    positions_out(system.coordinates, x, q)
    rates_out(system.coordinates, x, u, v)


@entry
def loop_wrenches(system, q, lam, starts, stops, out):
    """Wrenches (rows, loops, 6) G^T lambda of the loop joints on their child bodies, about the kernels' origin."""
    c, tree = system.coordinates, system.tree
    w = make_work(system, q[0])
    x, u = np.empty(q.shape[1]), np.empty(tree.rates.shape[0])
    for d in range(u.size):
        u[d] = 0.0
    for r in range(q.shape[0]):
        positions_in(c, q[r], x)
        kinematics(tree, x, w.P, w.S)
        velocities(tree, u, w.S, w.V)
        loop_rows(system.loops, w.P, w.V, w.g, w.G, w.bias, w.ends)
        for k in range(starts.size):
            for e in range(6):
                out[r, k, e] = 0.0
                for i in range(starts[k], stops[k]):
                    out[r, k, e] += w.G[i, e] * lam[r, i]
