"""Inverse inertia product and hybrid dynamics in O(n) (Sueda 2021, Algorithms 9 and 10), with loops through the dual.

One coordinate is eliminated at a time, in the user's axes of ``dynamics/redmax_jacobian.py``. The matrix may carry
terms of stiffness and damping, so that it need not be symmetric. Rates with a prescribed acceleration are not
eliminated: their accelerations are part of the bias, and their forces follow from inverse dynamics at the end.

    A     (n+1, 36) articulated inertia of each row, by rows
    L     (n+1, 6)  articulated force of each row: bias on input, subtree on output
    U     (nu, 13)  column A S, row S^T A and 1 / d of each rate, d = S . A S + e
    extra (nu,)     what stands beside S . A S in d: rotor inertia, and terms of stiffness and damping
    held  (nu,)     1 where the acceleration of a rate is prescribed, else 0
"""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import answers, make_work, openings_of_rows, push_loop, sizes_of_rows
from leastaction.dynamics.redmax_jacobian import frame_at, into_frame, user_axes
from leastaction.forces.bodies import body_forces, given_size, most_bodies
from leastaction.forces.joints import joint_forces
from leastaction.jit.decorators import entry, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.loops.rows import RHO, SWEEPS, loop_rows, pair_size
from leastaction.solve.dense import proximal_solve
from leastaction.spatial._source.vector import add6, axpy6, dot6
from leastaction.tree.articulated import add_inertia, clear
from leastaction.tree.coordinates import accelerations_in, forces_out, positions_in, rates_in
from leastaction.tree.derivatives import matrix_times, transpose_times
from leastaction.tree.kinematics import add_armature, inertias, inward, kinematics, outward
from leastaction.tree.layout import MASS, PARENT

TINY = 1e-13
"""A pivot that is smaller than this part of its terms is zero."""


@sweep
def start_inertia(tree, like, M, A):
    """Rigid inertia of every row as a full matrix."""
    clear(like, A, 36)
    zero = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for i in range(1, tree.rows.shape[0]):
        if tree.const[i, MASS] > 0.0:
            a = add_inertia(zero, ld6(M, i, 0), ld3(M, i, 6), tree.const[i, MASS])
            k = 0
            for r in range(6):
                for s in range(r, 6):
                    A[i, 6 * r + s] = a[k]
                    A[i, 6 * s + r] = a[k]
                    k += 1


@sweep
def factorise_held(tree, spans, held, extra, S, A, U):
    """Inward sweep over the matrix alone; returns False where a pivot is zero or not finite."""
    good = True
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        for k in range(spans[i, 1] - 1, spans[i, 0] - 1, -1):
            if held[k] == 0:
                s = ld6(S, k, 0)
                h, g = matrix_times(A, i, s), transpose_times(A, i, s)
                own = dot6(s, h)
                d = own + extra[k]
                if not (abs(d) > TINY * (abs(own) + abs(extra[k])) and np.isfinite(d)):
                    good = False
                    d = 1.0
                st6(U, k, 0, h)
                st6(U, k, 6, g)
                U[k, 12] = 1.0 / d
                for r in range(6):
                    for c in range(6):
                        A[i, 6 * r + c] -= h[r] * g[c] / d
        j = tree.rows[i, PARENT]
        if j > 0:
            for c in range(36):
                A[j, c] += A[i, c]
    return good


@sweep
def reduce_held(tree, spans, held, S, L, f, U, y):
    """Inward sweep for a right-hand side f (nu,), in row order, and forces L of the rows."""
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        l = ld6(L, i, 0)
        for k in range(spans[i, 1] - 1, spans[i, 0] - 1, -1):
            if held[k] == 0:
                y[k] = (f[k] - dot6(ld6(S, k, 0), l)) * U[k, 12]
                l = axpy6(y[k], ld6(U, k, 0), l)
        j = tree.rows[i, PARENT]
        st6(L, j, 0, add6(ld6(L, j, 0), l))


@sweep
def expand_held(tree, spans, held, S, U, y, Z, a):
    """Outward sweep: accelerations a (nu,), in row order, and Z (n+1, 6) of the rows, both above the bias."""
    st6(Z, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(1, tree.rows.shape[0]):
        z = ld6(Z, tree.rows[i, PARENT], 0)
        for k in range(spans[i, 0], spans[i, 1]):
            a[k] = 0.0
            if held[k] == 0:
                a[k] = y[k] - U[k, 12] * dot6(ld6(U, k, 6), z)
                z = axpy6(a[k], ld6(S, k, 0), z)
        st6(Z, i, 0, z)


@kernel
def add_maximal(frames, k, P, i, B, A):
    """Add Ad^-T B Ad^-1 to the matrix of row i, with B (6, 6) in the axes of frame k."""
    R, p = frame_at(frames, k, P, i)
    for c in range(6):
        one = (
            1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0,
            1.0 if c == 3 else 0.0, 1.0 if c == 4 else 0.0, 1.0 if c == 5 else 0.0,
        )  # fmt: skip
        x = into_frame(R, p, one)
        for r in range(6):
            unit = (
                1.0 if r == 0 else 0.0, 1.0 if r == 1 else 0.0, 1.0 if r == 2 else 0.0,
                1.0 if r == 3 else 0.0, 1.0 if r == 4 else 0.0, 1.0 if r == 5 else 0.0,
            )  # fmt: skip
            y = into_frame(R, p, unit)
            total = 0.0
            for m in range(6):
                for n in range(6):
                    total += y[m] * B[m, n] * x[n]
            A[i, 6 * r + c] += total


@entry
def inverse_products(system, spans, q, rows, frames, reduced, maximal, X, out):
    """Algorithm 10: (M + diag(reduced) + J^T maximal J)^-1 x (m, nv) for vectors X (m, nv). O(n) each.

    ``reduced`` (nv,) and ``maximal`` (nb, 6, 6), or no blocks at all. False where a pivot is zero.
    """
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    x, f, y, a = np.empty(q.size), np.empty(nu), np.empty(nu), np.empty(nu)
    P, S, M, A = np.empty((n, 12)), np.empty((nu, 6)), np.empty((n, 9)), np.empty((n, 36))
    U, L, Z, held, extra = np.empty((nu, 13)), np.empty((n, 6)), np.empty((n, 6)), np.zeros(nu), np.empty(nu)
    positions_in(c, q, x)
    kinematics(tree, x, P, S)
    inertias(tree, x, P, M)
    user_axes(c, tree, P, S)
    start_inertia(tree, x, M, A)
    for k in range(maximal.shape[0]):
        add_maximal(frames, k, P, rows[k], maximal[k], A)
    for d in range(nu):
        extra[d] = tree.armature[d] + reduced[c.v[d]]
    good = factorise_held(tree, spans, held, extra, S, A, U)
    for r in range(X.shape[0]):
        for d in range(nu):
            f[d] = X[r, c.v[d]]
        clear(x, L, 6)
        reduce_held(tree, spans, held, S, L, f, U, y)
        expand_held(tree, spans, held, S, U, y, Z, a)
        for d in range(nu):
            out[r, c.v[d]] = a[d]
    return good


@optional(True)
def hold_loops(loops, tree, spans, held, x, u, udot, w, U, f, a):
    """Loops through the dual (2.129) to (2.131): multipliers w.lam, and what they add to a (nu,); f (nu,) is scratch.

    a lacks the prescribed accelerations udot, which w.V has.
    """
    m = w.g.size
    if m == 0:
        return True
    for d in range(a.size):
        f[d] = a[d] + udot[d]
    openings_of_rows(loops, x, u, f, w)
    # columns M^-1 G^T by two sweeps each
    for k in range(m):
        push_loop(loops, k, f, w)
        reduce_held(tree, spans, held, w.S, w.F, f, U, w.y)
        expand_held(tree, spans, held, w.S, U, w.y, w.Z, w.column[k])
        answers(loops, k, w)
    sizes_of_rows(loops, tree, x, w)
    if not proximal_solve(w.delassus, w.rhs, w.factor, w.bias, w.lam, w.size, RHO, SWEEPS):
        return False
    for d in range(a.size):
        for k in range(m):
            a[d] += w.column[k, d] * w.lam[k]
    return True


@optional(None)
def pull_loops(loops, x, u, udot, w, opening):
    """Take the forces of the loops off the forces that the rows need; ``opening`` (m,) is how they accelerate apart.

    Those of couplings act in joints and are left in w.y.
    """
    clear(x, w.Z, 6)
    openings_of_rows(loops, x, u, udot, w)
    for d in range(w.y.size):
        w.y[d] = 0.0
    pairs = pair_size(loops)
    for k in range(w.g.size):
        opening[k] = -w.rhs[k]
        if k < pairs:
            i, j, row = w.ends[k, 0], w.ends[k, 1], ld6(w.G, k, 0)
            st6(w.F, j, 0, axpy6(-w.lam[k], row, ld6(w.F, j, 0)))
            st6(w.F, i, 0, axpy6(w.lam[k], row, ld6(w.F, i, 0)))
        else:
            for d in range(w.y.size):
                w.y[d] += w.lam[k] * w.slope[k - pairs, d]


@optional(None)
def pull_ties(loops, w):
    """Take the forces of couplings, which ``pull_loops`` left in w.y, off those of the joints."""
    for d in range(w.f.size):
        w.f[d] -= w.y[d]


@entry
def hybrid(system, spans, t, q, v, tau, given, mask, a, needed, lam, opening):
    """Algorithm 9: accelerations a (nv,), the forces ``needed`` (nv,) at all joints, and loop multipliers lam (m,).

    ``given`` (nv,) are the prescribed accelerations where ``mask`` (nv,) is 1, and zero elsewhere; ``opening`` (m,) is
    the acceleration at which the loops open, zero but where too much is prescribed. False where a pivot is zero or
    the loops cannot be solved.
    """
    c, tree = system.coordinates, system.tree
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    w = make_work(system, q)
    x, u, udot, push = np.empty(q.size), np.empty(nu), np.empty(nu), np.zeros(nu)
    A, U, held, found = np.empty((n, 36)), np.empty((nu, 13)), np.empty(nu), np.empty(nu)
    positions_in(c, q, x)
    rates_in(c, x, v, u)
    # bias with the prescribed accelerations in it
    accelerations_in(c, x, v, given, udot)
    outward(tree, x, u, udot, w.P, w.S, w.M, w.V, w.F)
    body_forces(system.forces, t, w.P, w.V, w.F, w.given, w.result)
    user_axes(c, tree, w.P, w.S)
    # forces of the joints: control, springs and dampers
    for d in range(nu):
        w.tau[d] = 0.0
    joint_forces(system.passive, q, v, w.tau)
    for d in range(nu):
        held[d] = mask[c.v[d]]
        w.f[d] = tau[c.v[d]] + w.tau[c.v[d]]
    # the free accelerations
    start_inertia(tree, x, w.M, A)
    good = factorise_held(tree, spans, held, tree.armature, w.S, A, U)
    reduce_held(tree, spans, held, w.S, w.F, w.f, U, w.y)
    expand_held(tree, spans, held, w.S, U, w.y, w.Z, found)
    good = hold_loops(system.loops, tree, spans, held, x, u, udot, w, U, push, found) and good
    for d in range(nu):
        a[c.v[d]] = found[d] + given[c.v[d]]
    # the forces of all joints by inverse dynamics
    accelerations_in(c, x, v, a, udot)
    outward(tree, x, u, udot, w.P, w.S, w.M, w.V, w.F)
    body_forces(system.forces, t, w.P, w.V, w.F, w.given, w.result)
    pull_loops(system.loops, x, u, udot, w, opening)
    inward(tree, w.S, w.F, w.f)
    add_armature(tree, udot, w.f)
    pull_ties(system.loops, w)
    forces_out(c, x, w.f, needed)
    for d in range(nu):
        needed[d] -= w.tau[d]
    for k in range(w.lam.size):
        lam[k] = w.lam[k]
    return good


@entry
def spring_forces(system, q, v, out):
    """Generalised forces (nv,) of springs, dampers and laws in the joints."""
    for d in range(out.size):
        out[d] = 0.0
    joint_forces(system.passive, q, v, out)


@entry
def loop_table(loops, P, V, g, G, bias, ends):
    """``loop_rows`` at given poses and twists of the rows."""
    loop_rows(loops, P, V, g, G, bias, ends)


@entry
def row_forces(system, t, P, V, F):
    """Take the forces of the mechanism on its bodies off F (n+1, 6), at given poses and twists of the rows."""
    bodies = most_bodies(system.forces)
    body_forces(system.forces, t, P, V, F, np.empty(given_size(system.forces)), np.empty(6 * bodies))
