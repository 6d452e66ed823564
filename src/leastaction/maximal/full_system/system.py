"""The whole linear system of a step of ``Maximal``: bodies, joints, loops, contacts and limits as nodes of one graph.

The unknowns of Bruedigam et al. 2020 and 2023: a twist for every body, multipliers for every joint, loop and
constraint, forces for every contact and limit. The matrix is written block by block into an array ``values``, in the
places that a plan (``maximal.full_system.plan``) has found; any linear solver may take it from there. What is not
linear algebra is that of ``maximal.bodies`` and its companions, so that only the way to the Newton direction differs.
With the twist e about the point r of each body, its centre of mass at k:

    body b    W + D e_b + sum of couplings + P0 (c + K dq) - C0 lam, and the opposite on the parent a, = 0
    joint     C1^T (e_b - e_a - rho) = 0                     dq = P1^T (e_b - e_a - rho)
    loop      G1 e + eps dlam = -g                           contact  df + Kc G1 e = c0
    limit     dgamma + gamma/s dphi = (goal - gamma phi)/s, and the same for inequalities of the user

C0, C1 are orthonormal complements of the axes S0, S1 of a joint, at k and k+1; P0 = S0 (S0^T S0)^-1, P1 the same at
k+1. Rows without mass that belong to one joint (a free, universal, cylindrical or planar one) are folded into it.

    links  (nl, 15)  see LINK_*                             dofs   (nl, 6)   rates of a joint, in order from the parent
    balls  (nl, 6)   place of a ball's first rate, or -1    chain  (nl, 6)   rows of a joint, child first, else 0
    copies (nk, 6)   slot of a coupling, or -1 - node of multipliers (its diagonal block); place; row; column; sizes
    parts  (np, 3)   node of multipliers, its first equation, number of equations
    touch  (nc, 6)   of each contact: first equation; places of blocks cc, ca, ac, cb, bc
    bound  (nb, 8)   of each limit: link, first rate in it, equation, places ll, lb, bl, la, al
    firsts (ni, 2)   of each row of an inequality: equation, place of its diagonal
    uneven (ne, 5)   of each body of such a row: row, place in it, row of the tree, places of blocks row-body, body-row
    r      (n+1, 3)  points                                 X0, X1 (nl, 36)  [P0 | C0], [P1 | C1], 6x6
    lam    (size,)   multipliers (impulses) of the joints at their equations, the rest unused
    res    (size,)   left-hand sides; the direction solves J z = -res
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

from leastaction.jit.decorators import kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6, st3, st6
from leastaction.maximal.bounds import BALL_ANGLE, bound_slope, limit_axis
from leastaction.maximal.contact import contact_at
from leastaction.maximal.recursion import add_blocks, body_block, load_block
from leastaction.spatial._source.vector import add3, add6, axpy6, cross, dot6, join, sub3, sub6
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT, Floats, Ints

# columns of ``links``: child, parent, rates, equations of both and of the joint (-1: none), places of blocks, rows
LINK_B, LINK_A, LINK_M, LINK_EB, LINK_EA, LINK_EJ = 0, 1, 2, 3, 4, 5
LINK_BB, LINK_BA, LINK_AB, LINK_AA, LINK_JB, LINK_BJ, LINK_JA, LINK_AJ, LINK_ROWS = 6, 7, 8, 9, 10, 11, 12, 13, 14


class FullSystem(NamedTuple):
    """Plan of a whole system and its scratch memory; see the symbol table of this file."""

    links: Ints
    dofs: Ints
    balls: Ints
    chain: Ints
    copies: Ints
    parts: Ints
    touch: Ints
    bound: Ints
    firsts: Ints
    uneven: Ints
    r: Floats
    X0: Floats
    X1: Floats
    M: Floats
    N: Floats


# --- moving between points ------------------------------------------------------------------------------------------
@kernel
def at_point(g, r):
    """A wrench, or a row that a twist is multiplied with, about the point r instead of the origin."""
    f = (g[3], g[4], g[5])
    return join(sub3((g[0], g[1], g[2]), cross(r, f)), f)


@kernel
def twist_at(e, r):
    """A twist about the point r instead of the origin."""
    w = (e[0], e[1], e[2])
    return join(w, add3((e[3], e[4], e[5]), cross(w, r)))


@kernel
def shift_rows(M, columns, d):
    """M with rows of wrenches about a point that lies d before the old one: tau + d x f."""
    for c in range(columns):
        t = cross(d, (M[3, c], M[4, c], M[5, c]))
        M[0, c] += t[0]
        M[1, c] += t[1]
        M[2, c] += t[2]


@kernel
def shift_columns(M, rows, d):
    """M with columns of twists about a point that lies d before the old one: the new v is v_old - d x w."""
    for r in range(rows):
        # (M_v . (d x w)) = (M_v x d) . w
        t = cross((M[r, 3], M[r, 4], M[r, 5]), d)
        M[r, 0] -= t[0]
        M[r, 1] -= t[1]
        M[r, 2] -= t[2]


@kernel
def put(values, place, M, rows, columns, sign):
    """Add a block to the matrix."""
    for r in range(rows):
        for c in range(columns):
            values[place + r * columns + c] += sign * M[r, c]


@kernel
def put_row(values, place, g, sign):
    """Add a row of six numbers."""
    for e in range(6):
        values[place + e] += sign * g[e]


@kernel
def put_column(values, place, columns, c, g, sign):
    """Add a column of six numbers to a block with so many columns."""
    for e in range(6):
        values[place + columns * e + c] += sign * g[e]


@kernel
def add_residual(res, first, g, sign):
    """Add six numbers to the left-hand side of a body."""
    for e in range(6):
        res[first + e] += sign * g[e]


@kernel
def column6(X, k, c):
    """Column c of the 6x6 matrix in row k."""
    return (X[k, c], X[k, 6 + c], X[k, 12 + c], X[k, 18 + c], X[k, 24 + c], X[k, 30 + c])


# --- axes of a joint ------------------------------------------------------------------------------------------------
@sweep
def split(S, dofs, k, m, r, A, Q, X):
    """Row k of X: [P | C] of the m axes S of joint k about the point r, by Householder reflections."""
    for c in range(m):
        s = twist_at(ld6(S, dofs[k, c], 0), r)
        for e in range(6):
            A[e, c] = s[e]
    for i in range(6):
        for j in range(6):
            Q[i, j] = 1.0 if i == j else 0.0
    for c in range(m):
        total = 0.0
        for e in range(c, 6):
            total += A[e, c] * A[e, c]
        pivot = -math.sqrt(total) if A[c, c] > 0.0 else math.sqrt(total)
        A[c, c] -= pivot
        square = total + pivot * pivot - 2.0 * pivot * (A[c, c] + pivot)
        if square > 0.0:
            for j in range(c + 1, m):
                t = 0.0
                for e in range(c, 6):
                    t += A[e, c] * A[e, j]
                t *= 2.0 / square
                for e in range(c, 6):
                    A[e, j] -= t * A[e, c]
            for i in range(6):
                t = 0.0
                for e in range(c, 6):
                    t += Q[i, e] * A[e, c]
                t *= 2.0 / square
                for e in range(c, 6):
                    Q[i, e] -= t * A[e, c]
        A[c, c] = pivot
    # S = Q1 R, P = Q1 R^-T, C: the other columns of Q
    for c in range(m - 1, -1, -1):
        for i in range(6):
            t = Q[i, c]
            for j in range(c + 1, m):
                t -= A[c, j] * X[k, 6 * i + j]
            X[k, 6 * i + c] = t / A[c, c]
    for c in range(m, 6):
        for i in range(6):
            X[k, 6 * i + c] = Q[i, c]


@sweep
def points_of(tree, B, r):
    """Point of every row: the centre of mass at k, or the origin of a row without mass."""
    for i in range(tree.rows.shape[0]):
        st3(r, i, 0, ld3(B.X0, i, 9) if tree.const[i, MASS] > 0.0 else ld3(B.P0, i, 9))


@kernel
def opening(Z, B, k, r):
    """Twist that closes joint k, about the point r."""
    rho = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for e in range(Z.links[k, LINK_ROWS]):
        rho = add6(rho, ld6(B.rho, Z.chain[k, e], 0))
    return twist_at(rho, r)


@kernel
def stiffness(Z, B, k, i, j):
    """K between two rates of joint k."""
    d = Z.dofs[k, i]
    if Z.balls[k, i] < 0:
        return B.K[d, 0] if i == j else 0.0
    return B.K[d, j - Z.balls[k, i]] if Z.balls[k, i] == Z.balls[k, j] else 0.0


# --- bodies and joints ----------------------------------------------------------------------------------------------
@sweep
def put_bodies(tree, Z, B, h, res, values):
    """Diagonal blocks and left-hand sides of all bodies, without what joints do."""
    for k in range(Z.links.shape[0]):
        i = Z.links[k, LINK_B]
        l, D, r = ld6(B.W, i, 0), load_block(B.D, i), ld3(Z.r, i, 0)
        if tree.const[i, MASS] > 0.0:
            l = axpy6(-0.5 * h, ld6(B.F0, i, 0), add6(l, ld6(B.L, i, 0)))
            D = add_blocks(D, body_block(tree.const, i, B, h))
        add_residual(res, Z.links[k, LINK_EB], at_point(l, r), 1.0)
        for a in range(3):
            for b in range(3):
                Z.M[a, b], Z.M[a, 3 + b] = D[0][3 * a + b], D[1][3 * a + b]
                Z.M[3 + a, b], Z.M[3 + a, 3 + b] = D[2][3 * a + b], D[3][3 * a + b]
        back = (-r[0], -r[1], -r[2])
        shift_rows(Z.M, 6, back)
        shift_columns(Z.M, 6, back)
        put(values, Z.links[k, LINK_BB], Z.M, 6, 6, 1.0)


@sweep
def put_stiffness(Z, B, k, between, rho, res, values):
    """Springs, dampers and rotors of joint k: P0 K P1^T (e_b - e_a - rho)."""
    m = Z.links[k, LINK_M]
    for i in range(6):
        for j in range(6):
            t = 0.0
            for c in range(m):
                for e in range(m):
                    t += Z.X0[k, 6 * i + c] * stiffness(Z, B, k, c, e) * Z.X1[k, 6 * j + e]
            Z.M[i, j] = t
            Z.N[i, j] = t
    push = (dot_row(Z.M, 0, rho), dot_row(Z.M, 1, rho), dot_row(Z.M, 2, rho), dot_row(Z.M, 3, rho),
            dot_row(Z.M, 4, rho), dot_row(Z.M, 5, rho))  # fmt: skip
    add_residual(res, Z.links[k, LINK_EB], push, -1.0)
    put(values, Z.links[k, LINK_BB], Z.M, 6, 6, 1.0)
    if Z.links[k, LINK_EA] >= 0:
        add_residual(res, Z.links[k, LINK_EA], moved(push, between), 1.0)
        shift_columns(Z.M, 6, between)
        put(values, Z.links[k, LINK_BA], Z.M, 6, 6, -1.0)
        shift_rows(Z.M, 6, between)
        put(values, Z.links[k, LINK_AA], Z.M, 6, 6, 1.0)
        shift_rows(Z.N, 6, between)
        put(values, Z.links[k, LINK_AB], Z.N, 6, 6, -1.0)


@kernel
def dot_row(M, i, e):
    """Row i of M times e."""
    return M[i, 0] * e[0] + M[i, 1] * e[1] + M[i, 2] * e[2] + M[i, 3] * e[3] + M[i, 4] * e[4] + M[i, 5] * e[5]


@kernel
def moved(g, d):
    """A wrench about a point that lies d before the old one."""
    t = cross(d, (g[3], g[4], g[5]))
    return (g[0] + t[0], g[1] + t[1], g[2] + t[2], g[3], g[4], g[5])


@sweep
def put_joints(Z, B, lam, res, values):
    """Joints: impulses in them, multipliers and equations."""
    for k in range(Z.links.shape[0]):
        b, a, m, eb, ea, ej = (
            Z.links[k, LINK_B], Z.links[k, LINK_A], Z.links[k, LINK_M], Z.links[k, LINK_EB], Z.links[k, LINK_EA],
            Z.links[k, LINK_EJ],
        )  # fmt: skip
        r = ld3(Z.r, b, 0)
        split(B.S0, Z.dofs, k, m, r, Z.M, Z.N, Z.X0)
        split(B.S1, Z.dofs, k, m, r, Z.M, Z.N, Z.X1)
        rho, between = opening(Z, B, k, r), sub3(r, ld3(Z.r, a, 0))
        push = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        for c in range(m):
            push = axpy6(B.c[Z.dofs[k, c]], column6(Z.X0, k, c), push)
        for c in range(m, 6):
            C0, C1, q = column6(Z.X0, k, c), column6(Z.X1, k, c), c - m
            push = axpy6(-lam[ej + q], C0, push)
            res[ej + q] -= dot6(C1, rho)
            put_row(values, Z.links[k, LINK_JB] + 6 * q, C1, 1.0)
            put_column(values, Z.links[k, LINK_BJ], 6 - m, q, C0, -1.0)
            if ea >= 0:
                put_row(values, Z.links[k, LINK_JA] + 6 * q, moved(C1, between), -1.0)
                put_column(values, Z.links[k, LINK_AJ], 6 - m, q, moved(C0, between), 1.0)
        add_residual(res, eb, push, 1.0)
        if ea >= 0:
            add_residual(res, ea, moved(push, between), -1.0)
        if Z.links[k, LINK_BA] >= 0 or ea < 0:
            put_stiffness(Z, B, k, between, rho, res, values)


@kernel
def entry_of(E, slot, a, b):
    """Entry (a, b) of a block of ``maximal.padded``: beside the diagonal, where odd places are turned, or on it."""
    if slot < 0:
        return E.D[-1 - slot, 8 * a + b]
    return E.E[slot, 8 * a + b] if slot % 2 == 0 else E.E[slot, 8 * b + a]


# --- couplings, contacts, limits ------------------------------------------------------------------------------------
@optional(None)
def put_couplings(plan, Z, B, E, res, values):
    """Springs between bodies, loops and constraints, as ``spring_blocks`` and ``loop_blocks`` left them."""
    for k in range(Z.copies.shape[0]):
        slot, place, i, j = Z.copies[k, 0], Z.copies[k, 1], Z.copies[k, 2], Z.copies[k, 3]
        rows, columns = Z.copies[k, 4], Z.copies[k, 5]
        for a in range(rows):
            for b in range(columns):
                Z.M[a, b] = entry_of(E, slot, a, b)
        # rows and columns of bodies are about their points
        if i > 0:
            shift_rows(Z.M, columns, (-Z.r[i, 0], -Z.r[i, 1], -Z.r[i, 2]))
        if j > 0:
            shift_columns(Z.M, rows, (-Z.r[j, 0], -Z.r[j, 1], -Z.r[j, 2]))
        put(values, place, Z.M, rows, columns, 1.0)
    for k in range(Z.parts.shape[0]):
        for a in range(Z.parts[k, 2]):
            res[Z.parts[k, 1] + a] += B.W[Z.parts[k, 0], a]


@kernel
def put_contact_row(values, place, T, k, o, r, row, point):
    """One row of Kc G1 of one body."""
    g = axpy6(r[2], ld6(T.G, k, o + 12), axpy6(r[1], ld6(T.G, k, o + 6), scaled(r[0], ld6(T.G, k, o))))
    put_row(values, place + 6 * row, at_point(g, point), 1.0)


@kernel
def scaled(s, g):
    """s g."""
    return (s * g[0], s * g[1], s * g[2], s * g[3], s * g[4], s * g[5])


@sweep
def put_contacts(Z, T, h, res, values):
    """One node of three forces for each contact."""
    for k in range(Z.touch.shape[0]):
        first, cc, ca, ac, cb, bc = (
            Z.touch[k, 0], Z.touch[k, 1], Z.touch[k, 2], Z.touch[k, 3], Z.touch[k, 4], Z.touch[k, 5],
        )  # fmt: skip
        if T.hold[k] == 0:
            # no force
            for e in range(3):
                values[cc + 4 * e] += 1.0
            continue
        r0, r1, r2, c0 = contact_at(T, k)
        pa, pb = ld3(Z.r, T.ints[k, 1], 0), ld3(Z.r, T.ints[k, 2], 0)
        for e in range(3):
            res[first + e] -= c0[e]
            values[cc + 4 * e] += 1.0
            G0 = ld6(T.G, k, 6 * e)
            if ca >= 0:
                put_column(values, ac, 3, e, at_point(G0, pa), -h)
            if cb >= 0:
                put_column(values, bc, 3, e, at_point(G0, pb), h)
        if ca >= 0:
            put_contact_row(values, ca, T, k, 18, r0, 0, pa)
            put_contact_row(values, ca, T, k, 18, r1, 1, pa)
            put_contact_row(values, ca, T, k, 18, r2, 2, pa)
        if cb >= 0:
            put_contact_row(values, cb, T, k, 36, r0, 0, pb)
            put_contact_row(values, cb, T, k, 36, r1, 1, pb)
            put_contact_row(values, cb, T, k, 36, r2, 2, pb)


@kernel
def along(X, k, c, balls, a):
    """What the coordinates from c on of joint k do along the axis a: one column of X, or three of a ball."""
    g = scaled(a[0], column6(X, k, c))
    if balls == 1:
        g = axpy6(a[2], column6(X, k, c + 2), axpy6(a[1], column6(X, k, c + 1), g))
    return g


@sweep
def put_limits(Z, B, T, limits, h, res, values):
    """One node of one force for each limit."""
    for n in range(Z.bound.shape[0]):
        k, c, first = Z.bound[n, 0], Z.bound[n, 1], Z.bound[n, 2]
        ball = 1 if limits.where[n, 2] == BALL_ANGLE else 0
        width, product, slope = bound_slope(T, n, T.N[n, 6])
        b, a = Z.links[k, LINK_B], Z.links[k, LINK_A]
        r = ld3(Z.r, b, 0)
        between = sub3(r, ld3(Z.r, a, 0))
        push = along(Z.X0, k, c, ball, (T.N[n, 0], T.N[n, 1], T.N[n, 2]))
        row = along(Z.X1, k, c, ball, limit_axis(limits, T.N, n, B.x1))
        res[first] -= (T.goal[n] - product) / width + slope * dot6(row, opening(Z, B, k, r))
        values[Z.bound[n, 3]] += 1.0
        put_row(values, Z.bound[n, 4], row, slope)
        put_column(values, Z.bound[n, 5], 1, 0, push, -h)
        if Z.links[k, LINK_EA] >= 0:
            put_row(values, Z.bound[n, 6], moved(row, between), -slope)
            put_column(values, Z.bound[n, 7], 1, 0, moved(push, between), h)


@optional(None)
def put_inequalities(rows, Z, T, h, res, values):
    """One node of one force for each row of an inequality of the user."""
    nl, o = T.N.shape[0], T.R.G.shape[1] // 2
    for n in range(Z.firsts.shape[0]):
        s, gamma = T.U[nl + n, 0], T.U[nl + n, 1]
        res[Z.firsts[n, 0]] -= (T.goal[nl + n] - gamma * T.phi[nl + n]) / s
        values[Z.firsts[n, 1]] += 1.0
    for e in range(Z.uneven.shape[0]):
        n, c, i = Z.uneven[e, 0], Z.uneven[e, 1], Z.uneven[e, 2]
        r, slope = ld3(Z.r, i, 0), T.U[nl + n, 1] / T.U[nl + n, 0]
        put_row(values, Z.uneven[e, 3], at_point(ld6(T.R.G, n, o + 6 * c), r), slope)
        put_column(values, Z.uneven[e, 4], 1, 0, at_point(ld6(T.R.G, n, 6 * c), r), -h)


# --- the way back ---------------------------------------------------------------------------------------------------
@sweep
def spread(tree, Z, B, z):
    """B.eta of all rows and of the multipliers of loops, and B.y, from the solution z of the whole system."""
    st6(B.eta, 0, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for k in range(Z.links.shape[0]):
        b, first = Z.links[k, LINK_B], Z.links[k, LINK_EB]
        e = (z[first], z[first + 1], z[first + 2], z[first + 3], z[first + 4], z[first + 5])
        r = ld3(Z.r, b, 0)
        st6(B.eta, b, 0, twist_at(e, (-r[0], -r[1], -r[2])))
    for k in range(Z.links.shape[0]):
        b, a = Z.links[k, LINK_B], Z.links[k, LINK_A]
        r = ld3(Z.r, b, 0)
        e = sub6(twist_at(sub6(ld6(B.eta, b, 0), ld6(B.eta, a, 0)), r), opening(Z, B, k, r))
        for c in range(Z.links[k, LINK_M]):
            B.y[Z.dofs[k, c]] = dot6(column6(Z.X1, k, c), e)
    # rows inside a joint, and all rows once more along the joints, as the recursion does
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        e = add6(ld6(B.eta, tree.rows[i, PARENT], 0), ld6(B.rho, i, 0))
        for c in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            e = axpy6(B.y[c], ld6(B.S1, c, 0), e)
        st6(B.eta, i, 0, e)
    for k in range(Z.parts.shape[0]):
        for a in range(Z.parts[k, 2]):
            B.eta[Z.parts[k, 0], a] = z[Z.parts[k, 1] + a]
