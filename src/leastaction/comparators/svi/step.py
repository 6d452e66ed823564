"""Comparator: the scalable variational integrator (Johnson and Murphey 2009), O(n^2) per evaluation, O(n^3) Jacobian.

The trapezoidal rule in generalised coordinates, whose residual is that of the Galerkin integrator of order 2, but
evaluated as in that paper: derivatives of the twist of every body by every coordinate before it, carried outward from
body to body in body axes, without recursions that sum momenta of subtrees. It is here so that algorithms are compared,
compiled alike; nothing else uses it. Screws only; gravity is the only force.

    Xr, Xp   (n+1, 9), (n+1, 3)  pose of a row in its parent         W   (n+1, 9)  rotation of a row in the world
    V, mu    (n+1, 6)            twist of a row, its momentum        Z   (n+1, 6)  wrench of gravity
    J, D     (n+1, n+1, 6)       J[k, i] = dV_k / dqd_i,  D[k, i] = dV_k / dq_i   (i at or before k; index of the row)
    m, dT, g (n+1,)              dT/dqd, dT/dq and generalised force of gravity

    V_k = Ad V_par + S_k qd_k       J[k, k] = S_k              J[k, i] = Ad J[par, i]
                                    D[k, k] = -ad(S_k) Ad V_par    D[k, i] = Ad D[par, i]
    r = p + h/2 (dT + g)(q0, v) - (m(q0, v) + m(q1, v)) / 2,   v = z / h,  z = q1 - q0                     (1)
    p1 = h/2 (dT + g)(q1, v) + (m(q0, v) + m(q1, v)) / 2                                                    (2)
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.dynamics.legendre import tree_rates
from leastaction.jit.decorators import entry, kernel, memory, sweep
from leastaction.jit.lanes import ld3, ld6, ld9, st3, st6, st9
from leastaction.jit.status import DONE, NOT_CONVERGED, NOT_FINITE
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.spatial._source.vector import (
    ad,
    add3,
    ang,
    axpy3,
    axpy6,
    cross,
    dot6,
    inertia_times,
    join,
    lin,
    matmul,
    scale6,
    tmatvec,
)
from leastaction.tree.arrays import all_finite, copy
from leastaction.tree.articulated import eliminate, expand, reduce
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.kinematics import inertias, kinematics, turn
from leastaction.tree.layout import COM, INERTIA, IU, IX, KIND, MASS, PARENT, PITCH, POS, PRISMATIC, Floats

# What a rollout returns besides the number of steps done.

# Root finders and guesses.
RIQN, NEWTON, BROYDEN = 0, 1, 2
HOLD, EULER, CONTINUE, ZERO = 0, 1, 2, 3

# Counters of a rollout.
ITERATIONS, EVALUATIONS = 0, 1


class End(NamedTuple):
    """Tables of one end of a step; see the symbol table of this file. x (nx,) are its coordinates."""

    x: Floats
    Xr: Floats
    Xp: Floats
    W: Floats
    V: Floats
    mu: Floats
    Z: Floats
    J: Floats
    D: Floats
    m: Floats
    dT: Floats
    g: Floats


class Scratch(NamedTuple):
    """Scratch memory of a step.

    z, v, r (nu,): displacement of the step, rates, residual. body (n+1, 9): second and first moment in row axes.
    A (nu, nu): Jacobian. I (n+1, n+1, 6): I_k J[k, i]. e (n+1, 6): one second derivative of the twists.
    """

    z: Floats
    v: Floats
    r: Floats
    body: Floats
    A: Floats
    I: Floats
    e: Floats


@memory
def make_end(nx, n):
    """Tables of one end."""
    return End(
        np.zeros(nx), np.zeros((n, 9)), np.zeros((n, 3)), np.zeros((n, 9)), np.zeros((n, 6)), np.zeros((n, 6)),
        np.zeros((n, 6)), np.zeros((n, n, 6)), np.zeros((n, n, 6)), np.zeros(n), np.zeros(n), np.zeros(n),
    )  # fmt: skip


@memory
def make_scratch(tree):
    """Scratch memory, with the inertia of every row about its origin in its own axes."""
    n, nu, C = tree.rows.shape[0], tree.rates.shape[0], tree.const
    body = np.zeros((n, 9))
    for i in range(1, n):
        m, c = C[i, MASS], (C[i, COM], C[i, COM + 1], C[i, COM + 2])
        s = c[0] * c[0] + c[1] * c[1] + c[2] * c[2]
        k = 0
        for a in range(3):
            for b in range(a, 3):
                body[i, k] = C[i, INERTIA + k] + m * ((s if a == b else 0.0) - c[a] * c[b])
                k += 1
            body[i, 6 + a] = m * c[a]
    return Scratch(
        np.zeros(nu), np.zeros(nu), np.zeros(nu), body, np.zeros((nu, nu)), np.zeros((n, n, 6)), np.zeros((n, 6))
    )  # fmt: skip


@kernel
def axis(tree, i):
    """S of a row in its own axes."""
    if tree.rows[i, KIND] == PRISMATIC:
        return (0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    return (0.0, 0.0, 1.0, 0.0, 0.0, tree.const[i, PITCH])


@kernel
def carry_svi(E, i, t):
    """Ad t: a twist of the parent of row i, in the axes and at the origin of row i."""
    w, p, R = ang(t), ld3(E.Xp, i, 0), ld9(E.Xr, i, 0)
    return join(tmatvec(R, w), tmatvec(R, add3(lin(t), cross(w, p))))


@kernel
def body_times(tree, body, i, t):
    """Inertia of row i times a twist."""
    return inertia_times(ld6(body, i, 0), ld3(body, i, 6), tree.const[i, MASS], t)


@sweep
def place_svi(tree, E, s):
    """Poses, gravity and J at E.x."""
    C, zero = tree.const, 0.0
    st9(E.W, 0, 0, (1.0, zero, zero, zero, 1.0, zero, zero, zero, 1.0))
    gravity = (tree.gravity[0], tree.gravity[1], tree.gravity[2])
    for i in range(1, tree.rows.shape[0]):
        j, y = tree.rows[i, PARENT], E.x[tree.rows[i, IX]]
        R = ld9(C, i, 0)
        p = (C[i, POS], C[i, POS + 1], C[i, POS + 2])
        z = (R[2], R[5], R[8])
        if tree.rows[i, KIND] == PRISMATIC:
            p = axpy3(y, z, p)
        else:
            R = turn(R, math.sin(y), math.cos(y))
            p = axpy3(C[i, PITCH] * y, z, p)
        st9(E.Xr, i, 0, R)
        st3(E.Xp, i, 0, p)
        st9(E.W, i, 0, matmul(ld9(E.W, j, 0), R))
        g = tmatvec(ld9(E.W, i, 0), gravity)
        m = C[i, MASS]
        st6(E.Z, i, 0, join(cross(ld3(s.body, i, 6), g), (m * g[0], m * g[1], m * g[2])))
        # J[i, :] from the parent's
        l = j
        while l > 0:
            st6(E.J[i], l, 0, carry_svi(E, i, ld6(E.J[j], l, 0)))
            l = tree.rows[l, PARENT]
        st6(E.J[i], i, 0, axis(tree, i))


@sweep
def move_svi(tree, E, s, deep):
    """Twists and momenta for the rates s.v, then E.m; with ``deep`` also D, E.dT and E.g."""
    n = tree.rows.shape[0]
    for i in range(n):
        E.m[i] = 0.0
        E.dT[i] = 0.0
        E.g[i] = 0.0
    st6(E.V, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(1, n):
        j, d = tree.rows[i, PARENT], tree.rows[i, IU]
        before, S = carry_svi(E, i, ld6(E.V, j, 0)), axis(tree, i)
        st6(E.V, i, 0, axpy6(s.v[d], S, before))
        mu = body_times(tree, s.body, i, ld6(E.V, i, 0))
        st6(E.mu, i, 0, mu)
        if deep:
            l = j
            while l > 0:
                st6(E.D[i], l, 0, carry_svi(E, i, ld6(E.D[j], l, 0)))
                l = tree.rows[l, PARENT]
            st6(E.D[i], i, 0, scale6(-1.0, ad(S, before)))
        # this body's part of every coordinate before it
        Z, l = ld6(E.Z, i, 0), i
        while l > 0:
            J = ld6(E.J[i], l, 0)
            E.m[l] += dot6(J, mu)
            if deep:
                E.g[l] += dot6(J, Z)
                E.dT[l] += dot6(ld6(E.D[i], l, 0), mu)
            l = tree.rows[l, PARENT]
        E.m[i] += tree.armature[d] * s.v[d]


@sweep
def evaluate_svi(tree, h, p, a, b, s):
    """Residual (1) in s.r at the displacement s.z; ``a`` is placed. Returns its largest entry, NaN where it is one."""
    for i in range(1, tree.rows.shape[0]):
        d, k = tree.rows[i, IU], tree.rows[i, IX]
        b.x[k] = a.x[k] + s.z[d]
        s.v[d] = s.z[d] / h
    place_svi(tree, b, s)
    move_svi(tree, a, s, True)
    move_svi(tree, b, s, False)
    largest = 0.0
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        s.r[d] = p[d] + 0.5 * h * (a.dT[i] + a.g[i]) - 0.5 * (a.m[i] + b.m[i])
        if not abs(s.r[d]) <= largest:
            largest = abs(s.r[d])
    return largest


@sweep
def svi_next_momentum(tree, h, a, b, s, p):
    """p1 by (2)."""
    move_svi(tree, b, s, True)
    for i in range(1, tree.rows.shape[0]):
        p[tree.rows[i, IU]] = 0.5 * h * (b.dT[i] + b.g[i]) + 0.5 * (a.m[i] + b.m[i])


@sweep
def add_hessians(tree, h, E, s, turned):
    """Add one end's part of dr/dq1 to s.A: -M / (2h), and d2T/dq_i dqd_j / 2 (``turned``: minus its transpose).

    E has J and D for the rates s.v.
    """
    n = tree.rows.shape[0]
    for k in range(1, n):
        l = k
        while l > 0:
            st6(s.I[k], l, 0, body_times(tree, s.body, k, ld6(E.J[k], l, 0)))
            l = tree.rows[l, PARENT]
        # body k, all pairs of coordinates before it
        i = k
        while i > 0:
            di = tree.rows[i, IU]
            J, D, j = ld6(E.J[k], i, 0), ld6(E.D[k], i, 0), k
            while j > 0:
                dj, I = tree.rows[j, IU], ld6(s.I[k], j, 0)
                second = 0.5 * dot6(D, I)
                s.A[di, dj] -= 0.5 * dot6(J, I) / h
                if turned:
                    s.A[dj, di] -= second
                else:
                    s.A[di, dj] += second
                j = tree.rows[j, PARENT]
            i = tree.rows[i, PARENT]
        s.A[tree.rows[k, IU], tree.rows[k, IU]] -= 0.5 * tree.armature[tree.rows[k, IU]] / h
    # second derivatives of the twists: for each pair (i, j before i), all bodies at or behind i
    for i in range(1, n):
        di, S, j = tree.rows[i, IU], axis(tree, i), tree.rows[i, PARENT]
        while j > 0:
            first = scale6(-1.0, ad(S, ld6(E.J[i], j, 0)))
            st6(s.e, i, 0, first)
            total = dot6(first, ld6(E.mu, i, 0))
            for k in range(i + 1, n):
                par = tree.rows[k, PARENT]
                # J[k, i] is zero exactly where k is not behind i
                if par >= i and dot6(ld6(E.J[par], i, 0), ld6(E.J[par], i, 0)) > 0.0:
                    second = carry_svi(E, k, ld6(s.e, par, 0))
                    st6(s.e, k, 0, second)
                    total += dot6(second, ld6(E.mu, k, 0))
            dj = tree.rows[j, IU]
            if turned:
                s.A[dj, di] -= 0.5 * total
            else:
                s.A[di, dj] += 0.5 * total
            j = tree.rows[j, PARENT]


@sweep
def svi_jacobian(tree, h, a, b, s):
    """s.A = dr / dq1 after ``evaluate_svi``."""
    nu = s.v.size
    for i in range(nu):
        for j in range(nu):
            s.A[i, j] = 0.0
    move_svi(tree, b, s, True)
    add_hessians(tree, h, a, s, False)
    add_hessians(tree, h, b, s, True)


@kernel
def svi_tolerance(tree, h, p, a, rtol):
    """Residual that counts as zero: rtol of the momentum scale plus the rounding of its terms; and that rounding."""
    scale, mass = 0.0, 0.0
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        scale = max(scale, abs(p[d]) + 0.5 * h * abs(a.g[i]))
        mass += tree.const[i, MASS]
    weight = abs(tree.gravity[0]) + abs(tree.gravity[1]) + abs(tree.gravity[2])
    rounding = 1.0e-15 * (h * weight * mass + scale) * math.sqrt(float(p.size)) + 1.0e-300
    return rtol * scale + rounding, rounding


@sweep
def impulse_step(tree, h, f, s, first, y):
    """y = h M(q0)^-1 r: the impulse-based direction; the factorisation is made where it is ``first`` needed."""
    for i in range(tree.rows.shape[0]):
        for e in range(6):
            f.F[i, e] = 0.0
    if first:
        eliminate(tree, f.S, f.M, f.A, f.F, s.r, f.U, f.y)
    else:
        reduce(tree, f.S, f.F, s.r, f.U, f.y)
    expand(tree, f.S, f.U, f.y, f.Z, y)
    for d in range(y.size):
        y[d] *= h


@kernel
def broyden_step(y, past, sizes, count):
    """Turn y = -B0^-1 r into Broyden's direction with the steps taken so far (Kelley 1995, sec. 7.3)."""
    nu = y.size
    for j in range(count):
        along = 0.0
        for d in range(nu):
            along += past[j, d] * y[d]
        along /= sizes[j]
        if j == count - 1:
            for d in range(nu):
                y[d] /= 1.0 - along
        else:
            for d in range(nu):
                y[d] += along * past[j + 1, d]
    size = 0.0
    for d in range(nu):
        past[count, d] = y[d]
        size += y[d] * y[d]
    sizes[count] = size


@sweep
def solve_svi(tree, solver, h, p, a, b, s, f, rtol, most, swaps, y, past, sizes, history, count):
    """Find s.z from its guess. history (most + 1,) gets the largest residual of each iterate. True if converged."""
    if solver != NEWTON:
        kinematics(tree, a.x, f.P, f.S)
        inertias(tree, a.x, f.P, f.M)
    limit, rounding, steps, largest, best = 0.0, 0.0, 0, 0.0, math.inf
    while True:
        largest = evaluate_svi(tree, h, p, a, b, s)
        count[EVALUATIONS] += 1
        history[steps] = largest
        if steps == 0:
            limit, rounding = svi_tolerance(tree, h, p, a, rtol)
        if largest <= limit or steps == most or not math.isfinite(largest):
            break
        # rounding may stop the descent just above the tolerance
        if largest <= 100.0 * rounding and largest >= best:
            break
        best = min(best, largest)
        if solver == NEWTON:
            svi_jacobian(tree, h, a, b, s)
            if not lu_factor(s.A, swaps):
                break
            for d in range(y.size):
                y[d] = -s.r[d]
            lu_solve(s.A, swaps, y)
        else:
            impulse_step(tree, h, f, s, steps == 0, y)
            if solver == BROYDEN:
                broyden_step(y, past, sizes, steps)
        for d in range(y.size):
            s.z[d] += y[d]
        steps += 1
    count[ITERATIONS] += steps
    return largest <= limit or largest <= 100.0 * rounding


@entry
def svi_rollout(
    system, solver, mode, h, k0, x, p, last, before, known, steps, every, rtol, most, out_q, out_v, history, count
):
    """Advance x, p in place by up to ``steps`` steps from step k0 on; write every ``every``-th state to out.

    last, before (nu,) and known (1,) are the displacements of the last two steps; history (most + 1,) has the
    residuals of the last step's iterates. Returns (steps done, status).
    """
    tree, nu = system.tree, p.size
    s, f = make_scratch(tree), make_work(system, x)
    a, b = make_end(x.size, tree.rows.shape[0]), make_end(x.size, tree.rows.shape[0])
    u, y, next_p, swaps = np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros(nu, np.int64)
    past = np.zeros((most + 1 if solver == BROYDEN else 0, nu))
    sizes = np.zeros(most + 1)
    saved = 0
    for k in range(steps):
        copy(x, a.x)
        place_svi(tree, a, s)
        # guess
        if mode == EULER or (mode == CONTINUE and known[0] == 0):
            tree_rates(tree, x, p, f, u)
        for i in range(1, tree.rows.shape[0]):
            d, e = tree.rows[i, IU], tree.rows[i, IX]
            step = 0.0
            if mode == EULER or (mode == CONTINUE and known[0] == 0):
                step = h * u[d]
            elif mode == CONTINUE:
                step = last[d] if known[0] == 1 else 2.0 * last[d] - before[d]
            s.z[d] = -x[e] if mode == ZERO else step
        if not solve_svi(tree, solver, h, p, a, b, s, f, rtol, most, swaps, y, past, sizes, history, count):
            return k, NOT_CONVERGED
        svi_next_momentum(tree, h, a, b, s, next_p)
        if not all_finite(next_p):
            return k, NOT_FINITE
        for i in range(1, tree.rows.shape[0]):
            d = tree.rows[i, IU]
            before[d] = last[d]
            last[d] = s.z[d]
        known[0] = min(known[0] + 1, 2)
        copy(b.x, x)
        copy(next_p, p)
        if (k0 + k + 1) % every == 0:
            tree_rates(tree, x, p, f, u)
            positions_out(system.coordinates, x, out_q[saved])
            rates_out(system.coordinates, x, u, out_v[saved])
            saved += 1
    return steps, DONE


@entry
def svi_probe(system, h, x0, p, z, r, p1, A):
    """Residual r (nu,), next momentum p1 (nu,) and Jacobian A (nu, nu) at a displacement z (nu,)."""
    tree = system.tree
    s = make_scratch(tree)
    a, b = make_end(x0.size, tree.rows.shape[0]), make_end(x0.size, tree.rows.shape[0])
    copy(x0, a.x)
    copy(z, s.z)
    place_svi(tree, a, s)
    evaluate_svi(tree, h, p, a, b, s)
    copy(s.r, r)
    svi_next_momentum(tree, h, a, b, s, p1)
    svi_jacobian(tree, h, a, b, s)
    for i in range(r.size):
        for j in range(r.size):
            A[i, j] = s.A[i, j]
