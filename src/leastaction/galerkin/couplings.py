"""Forces between several moving bodies in the Newton direction of a Galerkin step: low-rank terms, O(m n + m^3).

A spring between two bodies that both move, or a force of the user on several, ties rows together that are not
neighbours in the tree, so its derivatives do not fit into the recursion. They are m further rows: impulses g of such
forces at a point of the quadrature, three numbers for a spring and six for each body else, vary with the motion z by
g = M z, and push the residual by F^T g. With Jt the matrix of the recursion, which leaves these forces out but for the
turning of the bodies under them, and Y = -Jt^-1 F^T, one solution in O(n) for each row,

    (1 - M Y) g = M z_r         y = -Jt^-1 (r + F^T g)                                              (14)

where z_r belongs to the direction -Jt^-1 r of the recursion alone. A spring to the world needs none of this.

    pairs  (number, 5)    force, point of the quadrature, first row, number of rows, number of bodies
    ends   (number, B)    rows of the tree that carry the bodies
    M      (m, 12 B)      by eta and dv of each body          F      (m, 6 B)     wrenches of a unit of g
    A      (m, m)         factors of 1 - M Y                  R      (nu, s)      right-hand side
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.forces.bodies import give_force, link_frame, row3, world_point
from leastaction.forces.derivatives import spring_derivatives
from leastaction.galerkin.gauss import at_points, chart_motion, nodes_of
from leastaction.galerkin.quasi import solve_again
from leastaction.jit.calls import call_force
from leastaction.jit.decorators import MEMORY_OPTIONS, either, kernel, optional, sweep
from leastaction.jit.lanes import ld3, ld6
from leastaction.solve.dense import lu_factor, lu_solve
from leastaction.spatial._source.mrp import add9, scale9, spread
from leastaction.spatial._source.vector import add3, cross, dot6, matmul, sub3, transpose
from leastaction.tree.kinematics import last_rate
from leastaction.tree.layout import BALL, IU, KIND, POINT_SPRING, Floats, Ints
from leastaction.tree.nodes import node_tables


class Couplings(NamedTuple):
    """Tables; see the top of the file."""

    pairs: Ints
    ends: Ints
    M: Floats
    F: Floats
    A: Floats
    pivot: Ints
    g: Floats
    R: Floats
    y: Floats


@optional(None, MEMORY_OPTIONS)
def make_couplings(pairs, forces, nu, s):
    """Tables for pairs (number, 5) of forces and points, or None."""
    m, B = 0, 2
    for k in range(pairs.shape[0]):
        m += pairs[k, 3]
        B = max(B, pairs[k, 4])
    ends = np.zeros((pairs.shape[0], B), np.int64)
    for k in range(pairs.shape[0]):
        for c in range(pairs[k, 4]):
            ends[k, c] = forces.bodies[forces.kind[pairs[k, 0], 1] + c]
    return Couplings(
        pairs, ends, np.zeros((m, 12 * B)), np.zeros((m, 6 * B)), np.zeros((m, m)), np.zeros(m, np.int64), np.zeros(m),
        np.zeros((nu, s)), np.zeros(nu * s),
    )  # fmt: skip


# --- rows -------------------------------------------------------------------------------------------------------------
@kernel
def put_3x3(T, r, c, A):
    """Nine numbers at row r and column c of a table."""
    for i in range(3):
        for j in range(3):
            T[r + i, c + j] = A[3 * i + j]


@sweep
def spring_rows(C, r, c, p, v, sign, P, D):
    """Rows of one end c of a spring: the force on end 0 varies by P and D times displacement and rate of 1 less 0."""
    arm, still = spread(0.0, p), spread(0.0, v)
    P, D = scale9(sign, P), scale9(sign, D)
    # displacement rho + theta x p, rate of it with theta x v
    put_3x3(C.M, r, 12 * c, scale9(-1.0, add9(matmul(P, arm), matmul(D, still))))
    put_3x3(C.M, r, 12 * c + 3, P)
    put_3x3(C.M, r, 12 * c + 6, scale9(-1.0, matmul(D, arm)))
    put_3x3(C.M, r, 12 * c + 9, D)
    # a unit of the force on end 0, and its opposite on end 1: (p x e; e)
    put_3x3(C.F, r, 6 * c, scale9(sign, arm))
    put_3x3(C.F, r, 6 * c + 3, spread(-sign, (0.0, 0.0, 0.0)))


@sweep
def force_rows(C, forces, wh, r, b, count, P, square):
    """Rows of a force of the user on ``count`` bodies, with derivatives by link axes in ``square``."""
    n = 6 * count
    for c in range(count):
        R, p = link_frame(forces, b + c, P)
        back = transpose(R)
        lever = scale9(-1.0, matmul(back, spread(0.0, p)))
        # Ad^-1 = [R^T, 0; -R^T p^, R^T]
        for i in range(3):
            for j in range(3):
                for k in range(n):
                    for half in range(2):
                        D = 36 * count * count * half + k * n + 6 * c
                        at = 12 * c + 6 * half + j
                        if i == 0:
                            C.M[r + k, at], C.M[r + k, at + 3] = 0.0, 0.0
                        C.M[r + k, at] += wh * (square[D + i] * back[3 * i + j] + square[D + 3 + i] * lever[3 * i + j])
                        C.M[r + k, at + 3] += wh * square[D + 3 + i] * back[3 * i + j]
                C.F[r + 6 * c + i, 6 * c + j] = back[3 * i + j]
                C.F[r + 6 * c + 3 + i, 6 * c + j] = lever[3 * i + j]
                C.F[r + 6 * c + 3 + i, 6 * c + 3 + j] = back[3 * i + j]


@sweep
def fill_rows(C, points, forces, nodes, t, work, wq, f, square):
    """M and F at the present motion."""
    nq, w = at_points(points, nodes, work, wq)
    data = forces.data
    for k in range(C.pairs.shape[0]):
        force, a, r = C.pairs[k, 0], C.pairs[k, 1], C.pairs[k, 2]
        b, count, wh = forces.kind[force, 1], C.pairs[k, 4], nq.w[a] * nq.h
        node_tables(w, f, a)
        if forces.kind[force, 0] == POINT_SPRING:
            i, j = C.ends[k, 0], C.ends[k, 1]
            pa, pb = world_point(f.P, i, row3(data, force, 0)), world_point(f.P, j, row3(data, force, 3))
            va = add3(ld3(f.V, i, 3), cross(ld3(f.V, i, 0), pa))
            vb = add3(ld3(f.V, j, 3), cross(ld3(f.V, j, 0), pb))
            P, D = spring_derivatives(sub3(pb, pa), sub3(vb, va), data[force, 6], data[force, 7], data[force, 8])
            P, D = scale9(wh, P), scale9(wh, D)
            spring_rows(C, r, 0, pa, va, -1.0, P, D)
            spring_rows(C, r, 1, pb, vb, 1.0, P, D)
        else:
            give_force(forces, force, f.P, f.V, f.given)
            call_force(forces.address[force, 1], t + nq.c[a] * nq.h, f.given, square)
            force_rows(C, forces, wh, r, b, count, f.P, square)


def _push_node(points, tree, nodes, w, wq, R, d, a, push):
    R[d, a] += push


@either(_push_node)
def push_test(points, tree, nodes, w, wq, R, d, a, push):
    """Add to the right-hand side R a generalised impulse on rate d at point a, as the tests of the nodes see it."""
    i = tree.rates[d, 0]
    for e in range(1, R.shape[1]):
        R[d, e] += points.l[a, e] * push
    if tree.rows[i, KIND] == BALL:
        first = tree.rows[i, IU]
        T, _ = chart_motion(points, nodes_of(points, nodes), w, wq, a, first)
        for k in range(3):
            R[first + k, 0] += T[3 * (d - first) + k] * push
    else:
        R[d, 0] += points.l[a, 0] * push


@sweep
def push_pair_rows(C, points, tree, nodes, w, wq, k, r, g):
    """Add row r, of pair k, times g to C.R."""
    a = C.pairs[k, 1]
    for c in range(C.pairs[k, 4]):
        if C.ends[k, c] > 0:
            row, d = ld6(C.F, r, 6 * c), last_rate(tree, C.ends[k, c])
            while d >= 0:
                push_test(points, tree, nodes, w, wq, C.R, d, a, g * dot6(row, ld6(w.S, d, 6 * a)))
                d = tree.rates[d, 1]


@sweep
def measure_pairs(C, w):
    """C.g = M z of all rows, with w.z that of the last solution."""
    eta = w.V.shape[1]
    for k in range(C.pairs.shape[0]):
        a = C.pairs[k, 1]
        for r in range(C.pairs[k, 2], C.pairs[k, 2] + C.pairs[k, 3]):
            total = 0.0
            for c in range(C.pairs[k, 4]):
                i = C.ends[k, c]
                if i > 0:
                    total += dot6(ld6(C.M, r, 12 * c), ld6(w.z, i, eta + 6 * a))
                    total += dot6(ld6(C.M, r, 12 * c + 6), ld6(w.z, i, 6 * a))
            C.g[r] = total


# --- solutions --------------------------------------------------------------------------------------------------------
@sweep
def correct_coupled(C, Q, points, tree, nodes, x, w, wq, f, l, R, y):
    """From the solution for R without the couplings, in y and w.z, to that with them, eq. (14)."""
    measure_pairs(C, w)
    lu_solve(C.A, C.pivot, C.g)
    for d in range(R.shape[0]):
        for a in range(R.shape[1]):
            C.R[d, a] = R[d, a]
    for k in range(C.pairs.shape[0]):
        for r in range(C.pairs[k, 2], C.pairs[k, 2] + C.pairs[k, 3]):
            push_pair_rows(C, points, tree, nodes, w, wq, k, r, C.g[r])
    solve_again(Q, points, tree, nodes, x, w, f, l, C.R, y)


@sweep
def leave_out(C):
    """Tables that change nothing."""
    for i in range(C.g.size):
        C.pivot[i] = i
        for j in range(C.g.size):
            C.A[i, j] = 1.0 if i == j else 0.0
        for e in range(C.M.shape[1]):
            C.M[i, e] = 0.0


@optional(None)
def couple_bodies(C, Q, points, forces, tree, nodes, t, x, w, wq, f, l, square):
    """Factors of 1 - M Y, and the direction w.y with the couplings; without them where the matrix is singular."""
    fill_rows(C, points, forces, nodes, t, w, wq, f, square)
    # one column for each row; this overwrites w.z, so the direction is solved for again
    for k in range(C.pairs.shape[0]):
        for r in range(C.pairs[k, 2], C.pairs[k, 2] + C.pairs[k, 3]):
            for d in range(C.R.shape[0]):
                for a in range(C.R.shape[1]):
                    C.R[d, a] = 0.0
            push_pair_rows(C, points, tree, nodes, w, wq, k, r, 1.0)
            solve_again(Q, points, tree, nodes, x, w, f, l, C.R, C.y)
            measure_pairs(C, w)
            for i in range(C.g.size):
                C.A[i, r] = (1.0 if i == r else 0.0) - C.g[i]
    if not lu_factor(C.A, C.pivot):
        leave_out(C)
    solve_again(Q, points, tree, nodes, x, w, f, l, w.r, w.y)
    correct_coupled(C, Q, points, tree, nodes, x, w, wq, f, l, w.r, w.y)


def _uncoupled(C, Q, points, tree, nodes, x, w, wq, f, l, R, y):
    solve_again(Q, points, tree, nodes, x, w, f, l, R, y)


@either(_uncoupled)
def solve_more(C, Q, points, tree, nodes, x, w, wq, f, l, R, y):
    """y = -J^-1 R for a further right-hand side, couplings and all."""
    solve_again(Q, points, tree, nodes, x, w, f, l, R, y)
    correct_coupled(C, Q, points, tree, nodes, x, w, wq, f, l, R, y)
