"""Linearly implicit Euler without a matrix: conjugate gradients on O(n) products (Sueda 2021, sections 2.9 and 2.10).

The step solves A du = b with A = M + h Ku + h^2 Kx and b = -h r - h^2 Kx u (``implicit.step``, eq. 8). A product A x is
one pass outward and one inward: with V = J x the twists of the rows and Y = Y_parent + ad(v_parent) (V - V_parent),

    F = I V - sum over forces of (h^2 (K V + D Y) + h D V),   A x = S . (F of the subtree) + joints + rotors     (17)

The preconditioner is Algorithm 10: the inverse of M plus the diagonal of the joint blocks and the symmetric part of the
block of each force on each of its own bodies, by one articulated recursion. It is the inverse itself where forces touch
one body each, are symmetric, and joints are single coordinates. Where A is not symmetric (dampers at speed, loaded
springs) conjugate gradients do not apply, and their stabilised biconjugate form is used (van der Vorst 1992).

    K, D     (6 m nf, 6 m)  laws of all forces, m bodies each        how   (nf,)     see ``force_law``
    spans    (n+1, 2)       rates of a row                           block (nu, 2)   rates that share a joint block
    vectors  (10, nu)       of the iterations      chart (n+1,)  the exponential one for all
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.dynamics.forward import Work, make_work
from leastaction.dynamics.redmax_solve import expand_held, factorise_held, reduce_held, start_inertia
from leastaction.forces.bodies import link_frame, most_bodies
from leastaction.forces.columns import Columns, add_joint_derivatives, force_law, make_columns, part_times, seen_from
from leastaction.implicit.stage import Stage, dynamics, make_stage
from leastaction.jit.decorators import entry, kernel, memory, sweep
from leastaction.jit.lanes import ld3, ld6, st6
from leastaction.jit.status import DONE, NOT_CONVERGED, NOT_FINITE
from leastaction.solve.counts import EVALUATIONS, ITERATIONS, LAST, MOST
from leastaction.solve.rollout import never_undone, rollout
from leastaction.spatial._source.vector import (
    ad,
    add3,
    add6,
    ang,
    axpy6,
    cross,
    inertia_times,
    join,
    lin,
    matvec,
    scale6,
    sub6,
)
from leastaction.tree.arrays import all_finite, copy, scalar_product
from leastaction.tree.charts import EXP, place_coordinates
from leastaction.tree.coordinates import positions_out, rates_out
from leastaction.tree.kinematics import inward, velocities
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, Floats, Ints, System


class GradientWork(NamedTuple):
    """Scratch memory; see the symbol table of this file and of ``dynamics.redmax_solve``."""

    K: Floats
    D: Floats
    how: Ints
    V: Floats
    Y: Floats
    F: Floats
    A: Floats
    U: Floats
    L: Floats
    Z: Floats
    spans: Ints
    block: Ints
    held: Floats
    extra: Floats
    y: Floats
    vectors: Floats
    chart: Ints


@memory
def make_gradient_work(system):
    """Scratch memory."""
    tree, forces = system.tree, system.forces
    n, nu, m, nf = tree.rows.shape[0], tree.rates.shape[0], 6 * most_bodies(forces), forces.kind.shape[0]
    spans, block = np.zeros((n, 2), np.int64), np.zeros((nu, 2), np.int64)
    for i in range(1, n):
        spans[i, 0] = tree.rows[i, IU]
        spans[i, 1] = spans[i, 0] + (3 if tree.rows[i, KIND] == BALL else 1)
        for d in range(spans[i, 0], spans[i, 1]):
            block[d, 0], block[d, 1] = spans[i, 0], spans[i, 1]
    # a free joint couples all its six rates
    for j in range(system.coordinates.free.shape[0]):
        first = system.coordinates.free[j, 1]
        for d in range(first, first + 6):
            block[d, 0], block[d, 1] = first, first + 6
    return GradientWork(
        np.zeros((m * nf, m)), np.zeros((m * nf, m)), np.zeros(nf, np.int64), np.zeros((n, 12)), np.zeros((n, 6)),
        np.zeros((n, 6)), np.zeros((n, 36)), np.zeros((nu, 13)), np.zeros((n, 6)), np.zeros((n, 6)), spans, block,
        np.zeros(nu), np.zeros(nu), np.zeros(nu), np.zeros((10, nu)), np.full(n, EXP),
    )  # fmt: skip


# --- the matrix -----------------------------------------------------------------------------------------------------
@sweep
def fill_laws(system, t, s, f, w, k):
    """Laws of all forces and joints at the state of ``dynamics``; the latter in the blocks of s.Kx, s.Ku."""
    forces, n = system.forces, k.K.shape[1]
    for j in range(forces.kind.shape[0]):
        k.how[j] = force_law(forces, j, t, f.P, f.V, f.given, f.result, w)
        for r in range(6 * forces.kind[j, 2]):
            for c in range(6 * forces.kind[j, 2]):
                k.K[n * j + r, c] = w.K[r, c]
                k.D[n * j + r, c] = w.D[r, c]
    for d in range(s.r.size):
        for e in range(k.block[d, 0], k.block[d, 1]):
            s.Kx[d, e] = 0.0
            s.Ku[d, e] = 0.0
    add_joint_derivatives(system, s.x, s.u, f, w, s.Kx, s.Ku)


@kernel
def carry_out(local, R, p, g):
    """A wrench about the origin of the kernels, from link axes if ``local``."""
    if not local:
        return g
    force = matvec(R, lin(g))
    return join(add3(matvec(R, ang(g)), cross(p, force)), force)


@sweep
def push_laws(forces, by_place, by_rate, f, k):
    """Take by_place (K V + D Y) + by_rate D V of all forces off k.F."""
    n = k.K.shape[1]
    for j in range(forces.kind.shape[0]):
        b, count, local = forces.kind[j, 1], forces.kind[j, 2], k.how[j] == 2
        if k.how[j] == 0:
            continue
        for c in range(count):
            R, p = link_frame(forces, b + c, f.P)
            i = forces.bodies[b + c]
            v = seen_from(local, R, p, ld6(k.V, i, 0))
            y = seen_from(local, R, p, ld6(k.Y, i, 0))
            rate = add6(scale6(by_place, y), scale6(by_rate, v))
            for r in range(count):
                o = forces.bodies[b + r]
                if o > 0:
                    g = add6(
                        scale6(by_place, part_times(k.K, n * j + 6 * r, 6 * c, v)),
                        part_times(k.D, n * j + 6 * r, 6 * c, rate),
                    )
                    R2, p2 = link_frame(forces, b + r, f.P)
                    st6(k.F, o, 0, sub6(ld6(k.F, o, 0), carry_out(local, R2, p2, g)))


@sweep
def matrix_product(system, mass, by_place, by_rate, s, f, k, x, out):
    """out = (mass M + by_place Kx + by_rate Ku) x, eq. (17)."""
    tree = system.tree
    velocities(tree, x, f.S, k.V)
    st6(k.Y, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    st6(k.F, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(1, tree.rows.shape[0]):
        j, v = tree.rows[i, PARENT], ld6(k.V, i, 0)
        st6(k.Y, i, 0, add6(ld6(k.Y, j, 0), ad(ld6(f.V, j, 0), sub6(v, ld6(k.V, j, 0)))))
        m = tree.const[i, MASS]
        F = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        if m > 0.0:
            F = scale6(mass, inertia_times(ld6(f.M, i, 0), ld3(f.M, i, 6), m, v))
        st6(k.F, i, 0, F)
    push_laws(system.forces, by_place, by_rate, f, k)
    inward(tree, f.S, k.F, out)
    for d in range(x.size):
        out[d] += mass * tree.armature[d] * x[d]
        for e in range(k.block[d, 0], k.block[d, 1]):
            out[d] += (by_place * s.Kx[d, e] + by_rate * s.Ku[d, e]) * x[e]


# --- the preconditioner ---------------------------------------------------------------------------------------------
@sweep
def add_own_blocks(forces, h, f, k):
    """Add to k.A the symmetric part of -(h^2 K + h D) of every force on each of its own bodies."""
    n = k.K.shape[1]
    for j in range(forces.kind.shape[0]):
        b, local = forces.kind[j, 1], k.how[j] == 2
        if k.how[j] == 0:
            continue
        for c in range(forces.kind[j, 2]):
            i = forces.bodies[b + c]
            R, p = link_frame(forces, b + c, f.P)
            for e in range(6):
                unit = (
                    1.0 if e == 0 else 0.0, 1.0 if e == 1 else 0.0, 1.0 if e == 2 else 0.0,
                    1.0 if e == 3 else 0.0, 1.0 if e == 4 else 0.0, 1.0 if e == 5 else 0.0,
                )  # fmt: skip
                v = seen_from(local, R, p, unit)
                g = axpy6(
                    h, part_times(k.D, n * j + 6 * c, 6 * c, v), scale6(h * h, part_times(k.K, n * j + 6 * c, 6 * c, v))
                )
                g = carry_out(local, R, p, g)
                for a in range(6):
                    k.A[i, 6 * a + e] -= 0.5 * g[a]
                    k.A[i, 6 * e + a] -= 0.5 * g[a]


@sweep
def prepare_inverse(system, h, s, f, k):
    """Factors of Algorithm 10. False where a pivot is zero."""
    tree = system.tree
    start_inertia(tree, s.x, f.M, k.A)
    add_own_blocks(system.forces, h, f, k)
    for d in range(s.r.size):
        k.extra[d] = tree.armature[d] + h * s.Ku[d, d] + h * h * s.Kx[d, d]
    return factorise_held(tree, k.spans, k.held, k.extra, f.S, k.A, k.U)


@sweep
def precondition(tree, use, f, k, r, z):
    """z = P^-1 r, or r."""
    if not use:
        copy(r, z)
        return
    for i in range(k.L.shape[0]):
        st6(k.L, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    reduce_held(tree, k.spans, k.held, f.S, k.L, r, k.U, k.y)
    expand_held(tree, k.spans, k.held, f.S, k.U, k.y, k.Z, z)


# --- iterations -----------------------------------------------------------------------------------------------------
@sweep
def symmetric(system, h, s, f, k):
    """Whether A is symmetric, by two vectors in general position."""
    x, y, a, b = k.vectors[1], k.vectors[2], k.vectors[3], k.vectors[4]
    if system.forces.kind.shape[0] == 0 and system.passive.ball.shape[0] == 0 and system.coordinates.free.shape[0] == 0:
        return True
    for d in range(x.size):
        x[d] = 1.0 + 0.5 * ((7 * d) % 5)
        y[d] = 1.0 - 0.3 * ((3 * d) % 7)
    matrix_product(system, 1.0, h * h, h, s, f, k, x, a)
    matrix_product(system, 1.0, h * h, h, s, f, k, y, b)
    size = 0.0
    for d in range(x.size):
        size += abs(x[d] * b[d]) + abs(y[d] * a[d])
    return abs(scalar_product(x, b) - scalar_product(y, a)) <= 1.0e-14 * size * math.sqrt(float(x.size))


@sweep
def conjugate(system, h, use, tolerance, most, s, f, k, b, x):
    """Conjugate gradients from x = 0. Returns the iterations, or minus them if they did not converge."""
    r, z, p, q = k.vectors[1], k.vectors[2], k.vectors[3], k.vectors[4]
    copy(b, r)
    for d in range(x.size):
        x[d] = 0.0
        p[d] = 0.0
    limit, before = tolerance * tolerance * scalar_product(b, b), 1.0
    for i in range(most):
        if scalar_product(r, r) <= limit:
            return i
        precondition(system.tree, use, f, k, r, z)
        now = scalar_product(r, z)
        share = now / before if i > 0 else 0.0
        for d in range(x.size):
            p[d] = z[d] + share * p[d]
        matrix_product(system, 1.0, h * h, h, s, f, k, p, q)
        bend = scalar_product(p, q)
        if not (now > 0.0 and bend > 0.0):
            return -i - 1
        for d in range(x.size):
            x[d] += now / bend * p[d]
            r[d] -= now / bend * q[d]
        before = now
    return most if scalar_product(r, r) <= limit else -most


@sweep
def biconjugate(system, h, use, tolerance, most, s, f, k, b, x):
    """The same for a matrix that is not symmetric: the stabilised biconjugate form."""
    r, z, p, q, r0, t, y = (
        k.vectors[1], k.vectors[2], k.vectors[3], k.vectors[4], k.vectors[5], k.vectors[6], k.vectors[7],
    )  # fmt: skip
    copy(b, r)
    copy(b, r0)
    for d in range(x.size):
        x[d] = 0.0
        p[d] = 0.0
        q[d] = 0.0
    limit, rho, alpha, omega = tolerance * tolerance * scalar_product(b, b), 1.0, 1.0, 1.0
    for i in range(most):
        if scalar_product(r, r) <= limit:
            return i
        now = scalar_product(r0, r)
        share = now / rho * (alpha / omega)
        if i == 0 or not abs(now) > 1.0e-300 or not math.isfinite(share):
            # begin, or begin again
            copy(r, r0)
            now, share = scalar_product(r, r), 0.0
        for d in range(x.size):
            p[d] = r[d] + share * (p[d] - omega * q[d])
        precondition(system.tree, use, f, k, p, y)
        matrix_product(system, 1.0, h * h, h, s, f, k, y, q)
        alpha = now / scalar_product(r0, q)
        for d in range(x.size):
            x[d] += alpha * y[d]
            r[d] -= alpha * q[d]
        if scalar_product(r, r) <= limit:
            return i + 1
        precondition(system.tree, use, f, k, r, z)
        matrix_product(system, 1.0, h * h, h, s, f, k, z, t)
        omega = scalar_product(t, r) / scalar_product(t, t)
        for d in range(x.size):
            x[d] += omega * z[d]
            r[d] -= omega * t[d]
        rho = now
        if not math.isfinite(scalar_product(r, r)):
            return -i - 1
    return most if scalar_product(r, r) <= limit else -most


class Step(NamedTuple):
    """Everything of one step from x (nx,), u (nu,), which move on in place; k: scratch of the iterations.

    use: with the preconditioner; tolerance: of the residual, relative to b; most: iterations.
    """

    system: System
    use: bool
    tolerance: float
    most: int
    x: Floats
    u: Floats
    t: float
    h: float
    control: Floats
    s: Stage
    f: Work
    w: Columns
    k: GradientWork
    count: Ints


@kernel
def at(b, t, h, active):
    """The step at a time."""
    return Step(b.system, b.use, b.tolerance, b.most, b.x, b.u, t, h, b.control, b.s, b.f, b.w, b.k, b.count)


@sweep
def gradient_step(step):
    """s.xi and s.u of the end. False if the iterations do not converge."""
    system, h, s, f, k, u0, count = step.system, step.h, step.s, step.f, step.k, step.u, step.count
    nu, b, du, tolerance, most = u0.size, k.vectors[0], k.vectors[8], step.tolerance, step.most
    copy(step.x, s.x)
    copy(u0, s.u)
    for d in range(nu):
        s.a[d] = 0.0
    dynamics(system, step.t, step.control[0], s, f)
    fill_laws(system, step.t, s, f, step.w, k)
    matrix_product(system, 0.0, h * h, 0.0, s, f, k, u0, b)
    for d in range(nu):
        b[d] = -h * s.r[d] - b[d]
    use = step.use and prepare_inverse(system, h, s, f, k)
    if symmetric(system, h, s, f, k):
        done = conjugate(system, h, use, tolerance, most, s, f, k, b, du)
    else:
        done = biconjugate(system, h, use, tolerance, most, s, f, k, b, du)
    count[LAST] = abs(done)
    count[ITERATIONS] += count[LAST]
    count[MOST] = max(count[MOST], count[LAST])
    count[EVALUATIONS] += 1
    for d in range(nu):
        s.u[d] = u0[d] + du[d]
        s.xi[d] = h * s.u[d]
    return done >= 0


@kernel
def begin(step):
    """Nothing is needed before."""
    return DONE


@kernel
def solve(step):
    """The step, with coordinates by the exponential chart in s.x."""
    s = step.s
    good = gradient_step(step)
    if not (all_finite(s.u) and all_finite(s.r)):
        return NOT_FINITE
    good = good and place_coordinates(step.system.tree, step.k.chart, step.x, s.xi, s.x)
    return DONE if good else NOT_CONVERGED


@kernel
def end(step):
    """Take the step."""
    copy(step.s.x, step.x)
    copy(step.s.u, step.u)
    return DONE


@kernel
def see(step, t, q, v):
    """The user's state."""
    positions_out(step.system.coordinates, step.x, q)
    rates_out(step.system.coordinates, step.x, step.u, v)
    return True


roll = rollout(at=at, begin=begin, solve=solve, end=end, see=see, undo=never_undone)


@kernel
def roll_from(system, options, x, u, control, tables, k, count, drive, out):
    """The rollout; the tuple is put together where references are not counted."""
    use, tolerance, most = options
    s, f, w = tables
    return roll(Step(system, use, tolerance, most, x, u, 0.0, 0.0, control, s, f, w, k, count), drive, out)


@entry
def gradient_rollout(system, options, x, u, drive, out, count):
    """Steps from x, u, see ``solve.rollout``; both move on in place. options: use, tolerance and most of ``Step``."""
    tables = make_stage(system.tree, x.size), make_work(system, x), make_columns(system)
    k, control = make_gradient_work(system), np.zeros((1, u.size))
    return roll_from(system, options, x, u, control, tables, k, count, drive, out)
