"""Closed loops and equality constraints of the user in a stage of the implicit methods.

Positions and velocities both keep the constraints g = 0 (Gear, Gupta and Leimkuhler 1985): the stage of ``implicit``
has, with J = dg/dx by displacements of the rows, forces J^T lam and drifts J^T mu,

    u = E y / gh - J^T mu              a = (u - uh) / gh
    gh^2 (r - J^T lam) = 0             g = 0             gh J u = 0                                     (15)

mu is of the size of the error of the step. With l = gh^2 lam, m = gh mu, N = M + gh Ku, B(l) = d(J^T l)/dx and
D = d(J u)/dx, Newton's step is

    (H - (N B(m) + B(l)) E) dxi - J^T dl - N J^T dm = -gh^2 (r - J^T lam)
    J E dxi = -g          (gh D E + J U - J B(m) E) dxi - J J^T dm = -gh J u                            (16)

The multipliers follow from a Schur complement whose rows are combined so that its diagonal blocks are about J H^-1 J^T
and J J^T. Redundant rows are met by the proximal term alone, as in the other methods.

The second derivative of a row by twists of its bodies about the origin has a symmetric part C, read off the bias of
loop joints or off central differences of the Jacobian of the user, and half a bracket, -G . ad(by) of / 2.

    J, D, Q, T (m, nu)   rows; D; rows of (16) by dxi         C      (m, 36 B B)  by row, B bodies each
    l, dl, old_l (m,)    and the same for m                   W      (6B, 6B)     scratch
    Yl, Ym     (m, nu)   columns H^-1 J^T and H^-1 N J^T      Sc, LU (2m, 2m)
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.kernels._calls import call_force
from leastaction.kernels._jit import MEMORY_OPTIONS, kernel, optional, sweep
from leastaction.kernels._lanes import ld6, st6
from leastaction.kernels.dense import lu_factor, lu_solve
from leastaction.kernels.forces import give_bodies, link_frame
from leastaction.kernels.forward import RHO, SWEEPS, loop_size
from leastaction.kernels.galerkin_links import Links, link_rows, make_links
from leastaction.kernels.hermite_blocks import add_dense_block
from leastaction.kernels.layout import MASS, PARENT, Floats, Ints, Loops
from leastaction.kernels.loops import last_rate, loop_rows
from leastaction.kernels.tree import kinematics, velocities
from leastaction.spatial._source.so3 import exp
from leastaction.spatial._source.vector import (
    ad,
    add3,
    add6,
    ang,
    axpy6,
    cross,
    dot6,
    join,
    lin,
    matmul,
    matvec,
    scale6,
    sub6,
    tmatvec,
)

# Step of the differences of a Jacobian of the user, radians and metres.
STEP = 1.0e-5


class StageLinks(NamedTuple):
    """Tables of the constraints of one stage; see the symbol table of this file."""

    L: Links
    J: Floats
    D: Floats
    Q: Floats
    T: Floats
    C: Floats
    W: Floats
    X: Floats
    B1: Floats
    B2: Floats
    l: Floats
    m: Floats
    old_l: Floats
    old_m: Floats
    Yl: Floats
    Ym: Floats
    Sc: Floats
    LU: Floats
    pivot: Ints
    rhs: Floats
    rest: Floats
    x: Floats
    V: Floats
    F: Floats
    t: Floats
    given: Floats


@optional(None, MEMORY_OPTIONS)
def make_stage_links(loops, constraints, tree):
    """Tables; none for a tree."""
    n, nu = tree.rows.shape[0], tree.rates.shape[0]
    L = make_links(loops, constraints, tree, 1)
    m, B = L.kind.size, L.ends.shape[1]
    return StageLinks(
        L, np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((m, 36 * B * B)),
        np.zeros((6 * B, 6 * B)), np.zeros((m, nu)), np.zeros((nu, nu)), np.zeros((nu, nu)), np.zeros(m), np.zeros(m),
        np.zeros(m), np.zeros(m), np.zeros((m, nu)), np.zeros((m, nu)), np.zeros((2 * m, 2 * m)),
        np.zeros((2 * m, 2 * m)), np.zeros(2 * m, np.int64), np.zeros(2 * m), np.zeros(2 * m), np.zeros(2 * m),
        np.zeros((n, 6)), np.zeros((n, 6)), np.zeros(6 * B), np.zeros(18 * B),
    )  # fmt: skip


# --- rows and residuals ---------------------------------------------------------------------------------------------
@sweep
def stage_rows(system, t, f, k):
    """Gaps k.L.g[0] and rows k.J, from the poses, axes and twists in f."""
    tree, L = system.tree, k.L
    link_rows(system, t, 1.0, f, L, 0)
    for r in range(L.kind.size):
        for d in range(k.J.shape[1]):
            k.J[r, d] = 0.0
        for e in range(L.ends.shape[1]):
            if L.ends[r, e] > 0:
                row, d = ld6(L.G, r, 6 * e), last_rate(tree, L.ends[r, e])
                while d >= 0:
                    k.J[r, d] += dot6(row, ld6(f.S, d, 0))
                    d = tree.rates[d, 1]


@optional(None)
def link_rates(loops, system, t, gh, s, f, k):
    """Rows at s.x, and s.u = E y / gh - J^T mu."""
    kinematics(system.tree, s.x, f.P, f.S)
    velocities(system.tree, s.u, f.S, f.V)
    stage_rows(system, t, f, k)
    for r in range(k.m.size):
        for d in range(s.u.size):
            s.u[d] -= k.J[r, d] * k.m[r] / gh


@optional(None)
def link_forces(loops, gh, s, k):
    """Take J^T lam off the residual."""
    for r in range(k.l.size):
        for d in range(s.r.size):
            s.r[d] -= k.J[r, d] * k.l[r] / (gh * gh)


@optional((0.0, 0.0))
def link_sizes(loops, gh, s, k):
    """Largest gap of positions and of gh times their rates, and their sum of squares."""
    largest, squares = 0.0, 0.0
    for r in range(k.l.size):
        g, rate = k.L.g[0, r], 0.0
        for d in range(s.u.size):
            rate += k.J[r, d] * s.u[d]
        largest = max(largest, abs(g), gh * abs(rate))
        squares += g * g + gh * gh * rate * rate
    return largest, squares


@optional((0.0, 0.0))
def link_scales(loops, tree, gh, rtol, x, f):
    """Square of the momentum that closes a unit gap in one step, and the gap that counts as closed."""
    mass, reach, far = 0.0, 1.0, 1.0
    for i in range(1, tree.rows.shape[0]):
        mass += tree.const[i, MASS]
        reach = max(reach, abs(f.P[i, 9]), abs(f.P[i, 10]), abs(f.P[i, 11]))
    for d in range(x.size):
        far = max(far, abs(x[d]))
    return mass * mass / (gh * gh), (rtol + 1.0e-15 * far) * reach


@optional(None)
def link_reset(loops, k):
    """No multipliers."""
    for r in range(k.l.size):
        k.l[r] = 0.0
        k.m[r] = 0.0


@optional(None)
def set_links(loops, k, l, m):
    """Given multipliers, scaled."""
    for r in range(k.l.size):
        k.l[r] = l[r]
        k.m[r] = m[r]


@optional(None)
def link_keep(loops, k):
    """Remember the multipliers."""
    for r in range(k.l.size):
        k.old_l[r] = k.l[r]
        k.old_m[r] = k.m[r]


@optional(None)
def link_move(loops, alpha, k):
    """A part of the step of the multipliers."""
    m = k.l.size
    for r in range(m):
        k.l[r] = k.old_l[r] + alpha * k.x[r]
        k.m[r] = k.old_m[r] + alpha * k.x[m + r]


# --- second derivatives ---------------------------------------------------------------------------------------------
@sweep
def loop_curvatures(loops, f, k):
    """C of the rows of loop joints: the bias is its quadratic form, so 78 biases make it."""
    wide = 6 * k.L.ends.shape[1]
    for j in range(loops.rows.shape[0]):
        one = Loops(loops.rows[j : j + 1], loops.frame[j : j + 1], loops.select[j : j + 1], loops.coupling[j : j + 1])
        a, b, first = loops.rows[j, 0], loops.rows[j, 1], loops.rows[j, 2]
        last = first + loops.rows[j, 3] + loops.rows[j, 4] + (1 if loops.rows[j, 5] > 0 else 0)
        for p in range(12):
            for q in range(p + 1):
                k.V[a if p < 6 else b, p % 6] += 1.0
                if q < p:
                    k.V[a if q < 6 else b, q % 6] += 1.0
                loop_rows(one, f.P, k.V, f.g, f.G, f.bias, f.ends)
                for r in range(first, last):
                    k.C[r, wide * p + q] = f.bias[r]
                for e in range(6):
                    k.V[a, e] = 0.0
                    k.V[b, e] = 0.0
        for r in range(first, last):
            for p in range(12):
                for q in range(p):
                    c = 0.5 * (k.C[r, wide * p + q] - k.C[r, (wide + 1) * p] - k.C[r, (wide + 1) * q])
                    k.C[r, wide * p + q] = c
                    k.C[r, wide * q + p] = c


@kernel
def displaced(table, b, e, far, P, given):
    """What a function of the user gets if its body e // 6 is displaced along axis e % 6 of its link."""
    c, axis = e // 6, e % 3
    R = link_frame(table, b + c, P)[0]
    step = (far if axis == 0 else 0.0, far if axis == 1 else 0.0, far if axis == 2 else 0.0)
    if e % 6 < 3:
        turned = matmul(R, exp(step))
        for i in range(9):
            given[18 * c + i] = turned[i]
    else:
        shift = matvec(R, step)
        for i in range(3):
            given[18 * c + 9 + i] += shift[i]


@sweep
def user_curvatures(c, start, t, f, k):
    """C of the rows of constraints of the user: the symmetric part of differences of the Jacobian, about the origin."""
    L = k.L
    wide = 6 * L.ends.shape[1]
    for j in range(c.kind.shape[0]):
        b, count, first, size = c.kind[j, 1], c.kind[j, 2], start + c.kind[j, 3], c.kind[j, 4]
        n = 6 * count
        for r in range(first, first + size):
            for p in range(n * wide):
                k.C[r, p] = 0.0
        for q in range(n):
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                give_bodies(c, b, count, f.P, f.V, k.given)
                displaced(c, b, q, sign * STEP, f.P, k.given)
                call_force(c.address[j], t, k.given, L.result)
                for i in range(size):
                    for p in range(n):
                        half = 0.25 * sign * L.result[size + n * i + p] / STEP
                        k.C[first + i, wide * p + q] += half
                        k.C[first + i, wide * q + p] += half
        for r in range(first, first + size):
            to_spatial(c, b, count, r, f, k)


@sweep
def to_spatial(c, b, count, r, f, k):
    """C of row r from link axes to twists about the origin."""
    wide = 6 * k.L.ends.shape[1]
    for q in range(6 * count):
        R, p = link_frame(c, b + q // 6, f.P)
        e = q % 6
        unit = (
            1.0 if e == 0 else 0.0, 1.0 if e == 1 else 0.0, 1.0 if e == 2 else 0.0,
            1.0 if e == 3 else 0.0, 1.0 if e == 4 else 0.0, 1.0 if e == 5 else 0.0,
        )  # fmt: skip
        x = join(tmatvec(R, ang(unit)), tmatvec(R, add3(lin(unit), cross(ang(unit), p))))
        for o in range(count):
            R, p = link_frame(c, b + o, f.P)
            y = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for i in range(6):
                at = wide * (6 * (q // 6) + i) + 6 * o
                # symmetric: a row is a column
                y = axpy6(x[i], ld6(k.C, r, at), y)
            force = matvec(R, lin(y))
            y = join(add3(matvec(R, ang(y)), cross(p, force)), force)
            for i in range(6):
                k.W[6 * o + i, q] = y[i]
    for p in range(6 * count):
        for q in range(6 * count):
            k.C[r, wide * p + q] = k.W[p, q]


@sweep
def curvatures(system, t, f, k):
    """C of all rows, at the poses and twists in f."""
    loop_curvatures(system.loops, f, k)
    user_curvatures(system.constraints, loop_size(system.loops), t, f, k)


@kernel
def same_bodies(L, a, b):
    """Whether two rows touch the same bodies."""
    same = True
    for e in range(L.ends.shape[1]):
        same = same and L.ends[a, e] == L.ends[b, e]
    return same


@sweep
def row_changes(tree, f, k):
    """k.D = d(J u)/dx with the twists in f.V."""
    L = k.L
    B = L.ends.shape[1]
    for r in range(L.kind.size):
        for d in range(k.D.shape[1]):
            k.D[r, d] = 0.0
        for e in range(B):
            # C V of body e
            y = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
            for o in range(B):
                if L.ends[r, o] > 0:
                    v = ld6(f.V, L.ends[r, o], 0)
                    for i in range(6):
                        y = axpy6(v[i], ld6(k.C, r, 6 * B * (6 * o + i) + 6 * e), y)
            if L.ends[r, e] > 0:
                row, half = ld6(L.G, r, 6 * e), scale6(0.5, ld6(f.V, L.ends[r, e], 0))
                d = last_rate(tree, L.ends[r, e])
                while d >= 0:
                    S, before = ld6(f.S, d, 0), ld6(f.V, tree.rows[tree.rates[d, 0], PARENT], 0)
                    k.D[r, d] += dot6(y, S) + dot6(row, ad(S, sub6(half, before)))
                    d = tree.rates[d, 1]


@sweep
def bend(tree, f, k, lam, out):
    """out = d(J^T lam)/dx (nu, nu), components of a ball in child axes."""
    L = k.L
    m, B = L.kind.size, L.ends.shape[1]
    for i in range(out.shape[0]):
        for j in range(out.shape[0]):
            out[i, j] = 0.0
    for i in range(k.F.shape[0]):
        st6(k.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    r = 0
    while r < m:
        # rows on the same bodies together
        first = r
        for p in range(6 * B):
            for q in range(6 * B):
                k.W[p, q] = 0.0
        while r < m and same_bodies(L, first, r):
            for p in range(6 * B):
                for q in range(6 * B):
                    k.W[p, q] += lam[r] * k.C[r, 6 * B * p + q]
            for e in range(B):
                i = L.ends[r, e]
                if i >= 0:
                    st6(k.F, i, 0, axpy6(lam[r], ld6(L.G, r, 6 * e), ld6(k.F, i, 0)))
            r += 1
        add_bends(tree, f, k, first, out)
    # wrenches turn with their bodies: half a bracket with what is behind the later of two rates
    for i in range(k.F.shape[0] - 1, 0, -1):
        j = tree.rows[i, PARENT]
        st6(k.F, j, 0, add6(ld6(k.F, j, 0), ld6(k.F, i, 0)))
    for j in range(out.shape[0]):
        row, S = tree.rates[j, 0], ld6(f.S, j, 0)
        F, i = ld6(k.F, row, 0), tree.rates[j, 1]
        while i >= 0:
            half = 0.5 * dot6(F, ad(S, ld6(f.S, i, 0)))
            out[i, j] += half if tree.rates[i, 0] == row else -half
            out[j, i] -= half
            i = tree.rates[i, 1]


@sweep
def add_bends(tree, f, k, r, out):
    """Add S^T W S for the bodies of row r."""
    B = k.L.ends.shape[1]
    for e in range(B):
        if k.L.ends[r, e] <= 0:
            continue
        d = last_rate(tree, k.L.ends[r, e])
        while d >= 0:
            S = ld6(f.S, d, 0)
            for o in range(B):
                if k.L.ends[r, o] <= 0:
                    continue
                y = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
                for i in range(6):
                    # W is symmetric
                    y = axpy6(S[i], ld6(k.W, 6 * e + i, 6 * o), y)
                i = last_rate(tree, k.L.ends[r, o])
                while i >= 0:
                    out[i, d] += dot6(y, ld6(f.S, i, 0))
                    i = tree.rates[i, 1]
            d = tree.rates[d, 1]


# --- Newton's step --------------------------------------------------------------------------------------------------
@optional(None)
def link_matrix(loops, system, t, gh, s, f, k):
    """Take (N B(m) + B(l)) E off s.H; k.B2 = B(m), k.D stay."""
    nu = s.r.size
    curvatures(system, t, f, k)
    row_changes(system.tree, f, k)
    bend(system.tree, f, k, k.l, k.B1)
    bend(system.tree, f, k, k.m, k.B2)
    for i in range(nu):
        for j in range(nu):
            c = k.B1[i, j]
            for e in range(nu):
                c += (s.M[i, e] + gh * s.Ku[i, e]) * k.B2[e, j]
            k.B1[i, j] = c
    add_dense_block(system.tree, -1.0, k.B1, s.E, s.H)


@kernel
def product(a, b):
    """Scalar product."""
    c = 0.0
    for d in range(a.size):
        c += a[d] * b[d]
    return c


@sweep
def proximal_pairs(k, first, n):
    """k.x from k.Sc x = k.rhs, both of size n, with a proximal term of its own for the rows before ``first``."""
    top, low = 0.0, 0.0
    for i in range(n):
        if i < first:
            top = max(top, abs(k.Sc[i, i]))
        else:
            low = max(low, abs(k.Sc[i, i]))
        k.x[i] = 0.0
    A, pivot = k.LU[:n, :n], k.pivot[:n]
    for i in range(n):
        for j in range(n):
            A[i, j] = k.Sc[i, j]
        size = top if i < first else low
        A[i, i] += RHO * size if size > 0.0 else 1.0
    if not lu_factor(A, pivot):
        return False
    for _ in range(SWEEPS):
        for i in range(n):
            c = k.rhs[i]
            for j in range(n):
                c -= k.Sc[i, j] * k.x[j]
            k.rest[i] = c
        lu_solve(A, pivot, k.rest[:n])
        for i in range(n):
            k.x[i] += k.rest[i]
    return True


@optional(True)
def link_step(loops, tree, gh, s, k):
    """Equations (16) after s.step = -H^-1 gh^2 r: s.step and k.x = (dl, dm). False if they cannot be solved."""
    m, nu = k.l.size, s.r.size
    # rows by dxi
    for r in range(m):
        for d in range(nu):
            c = gh * k.D[r, d]
            for e in range(nu):
                c -= k.J[r, e] * k.B2[e, d]
            k.X[r, d] = c
            k.Q[r, d] = 0.0
            k.T[r, d] = 0.0
    add_dense_block(tree, 1.0, k.X, s.E, k.Q)
    add_dense_block(tree, 1.0, k.J, s.U, k.Q)
    add_dense_block(tree, 1.0, k.J, s.E, k.T)
    # columns
    for c in range(m):
        for d in range(nu):
            y = 0.0
            for e in range(nu):
                y += (s.M[d, e] + gh * s.Ku[d, e]) * k.J[c, e]
            k.Ym[c, d] = y
            k.Yl[c, d] = k.J[c, d]
        lu_solve(s.H, s.swaps, k.Yl[c])
        lu_solve(s.H, s.swaps, k.Ym[c])
    for r in range(m):
        rate = gh * product(k.J[r], s.u)
        by = product(k.Q[r], s.step)
        k.rhs[r] = -rate - by
        k.rhs[m + r] = rate + by - k.L.g[0, r] - product(k.T[r], s.step)
        for c in range(m):
            own = product(k.J[r], k.J[c])
            ql, qm = product(k.Q[r], k.Yl[c]), product(k.Q[r], k.Ym[c]) - own
            k.Sc[r, c] = ql
            k.Sc[r, m + c] = qm
            k.Sc[m + r, c] = product(k.T[r], k.Yl[c]) - ql
            k.Sc[m + r, m + c] = product(k.T[r], k.Ym[c]) - qm
    if not proximal_pairs(k, m, 2 * m):
        return False
    for c in range(m):
        for d in range(nu):
            s.step[d] += k.x[c] * k.Yl[c, d] + k.x[m + c] * k.Ym[c, d]
    return True


@optional(True)
def link_linear(loops, system, t, h, share, u0, s, f, k):
    """Velocity level: s.step plus forces so that J u_1 = -share g / h at the start; s.H is factorised."""
    m, nu = k.l.size, s.r.size
    stage_rows(system, t, f, k)
    for c in range(m):
        for d in range(nu):
            k.Yl[c, d] = k.J[c, d]
        lu_solve(s.H, s.swaps, k.Yl[c])
    for r in range(m):
        k.rhs[r] = -share * k.L.g[0, r] / h - product(k.J[r], u0) - product(k.J[r], s.step)
        for c in range(m):
            k.Sc[r, c] = product(k.J[r], k.Yl[c])
    if not proximal_pairs(k, m, m):
        return False
    for c in range(m):
        for d in range(nu):
            s.step[d] += k.x[c] * k.Yl[c, d]
    return True
