"""Block LDU on a graph, in place, and its back substitution.

Bruedigam, Sosnowski, Manchester, Hirche 2023, Algorithms 1 to 4: nodes from leaves to root, each touching only the
nodes it shares a block with. Two changes: the sets of acyclic and cyclic children are one list per node, from the
elimination tree, so loops that share nodes need no enumeration; and the lower blocks are not scaled, since
L_ji = F_ji D_i^-1 is applied to vectors that have D_i^-1 behind them already. The index of the back substitution is
that of the node itself (F_i,parent), which Algorithms 2 and 4 print as that of a child.

    F       all blocks (``GraphPlan``); afterwards D_i as its LU factors, F_ij as U_ij = D_i^-1 F_ij, F_ji unchanged
    pivot   row exchanges inside the diagonal blocks
    b, x    right-hand side and solution, in the order of elimination
    r, c    scales of rows and columns, powers of two, so that scaling rounds nothing
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.jit.decorators import entry, kernel, sweep

SINGULAR = 1e-14
"""A pivot below this, relative to the largest that its block ever held, is zero."""


# Indices inside blocks are unsigned, so that the compiler need not look for negative ones at every entry.
ONE = np.uint64(1)


@kernel
def factor_block(F, o, n, pivot, p, smallest):
    """LU factors of an n x n block at o, with partial pivoting; False if a pivot is not above ``smallest``.

    The diagonal keeps the inverses of the pivots.
    """
    for c in range(n):
        best, at = abs(F[o + c * n + c]), c
        for r in range(c + ONE, n):
            if abs(F[o + r * n + c]) > best:
                best, at = abs(F[o + r * n + c]), r
        pivot[p + c] = at
        # not above, or not a number
        if not best > smallest:
            return False
        if at != c:
            for e in range(n):
                F[o + c * n + e], F[o + at * n + e] = F[o + at * n + e], F[o + c * n + e]
        inverse = 1.0 / F[o + c * n + c]
        F[o + c * n + c] = inverse
        for r in range(c + ONE, n):
            t = F[o + r * n + c] * inverse
            F[o + r * n + c] = t
            for e in range(c + ONE, n):
                F[o + r * n + e] -= t * F[o + c * n + e]
    return True


@kernel
def solve_block(F, o, n, pivot, p, X, x, m):
    """Solve with the factors at o, in place, for the n x m block that begins at X[x]."""
    for c in range(n):
        at = np.uint64(pivot[p + c])
        if at != c:
            for e in range(m):
                X[x + c * m + e], X[x + at * m + e] = X[x + at * m + e], X[x + c * m + e]
    for e in range(m):
        for r in range(ONE, n):
            s = X[x + r * m + e]
            for k in range(r):
                s -= F[o + r * n + k] * X[x + k * m + e]
            X[x + r * m + e] = s
        for back in range(n):
            r = n - ONE - back
            s = X[x + r * m + e]
            for k in range(r + ONE, n):
                s -= F[o + r * n + k] * X[x + k * m + e]
            X[x + r * m + e] = s * F[o + r * n + r]


@kernel
def take_product(F, a, b, t, rows, inner, columns):
    """The block at t minus the product of the blocks at a (rows x inner) and b (inner x columns)."""
    for i in range(rows):
        for j in range(columns):
            s = F[t + i * columns + j]
            for k in range(inner):
                s -= F[a + i * inner + k] * F[b + k * columns + j]
            F[t + i * columns + j] = s


# Blocks of bodies (6 rows) and of the most frequent joints have programs of their own: the parts above are inlined with
# sizes that the compiler knows.
U3, U5, U6 = np.uint64(3), np.uint64(5), np.uint64(6)


@sweep
def factor_any(F, o, n, pivot, p, smallest):
    """``factor_block`` for any size."""
    o, p = np.uint64(o), np.uint64(p)
    if n == 6:
        return factor_block(F, o, U6, pivot, p, smallest)
    if n == 5:
        return factor_block(F, o, U5, pivot, p, smallest)
    if n == 3:
        return factor_block(F, o, U3, pivot, p, smallest)
    return factor_block(F, o, np.uint64(n), pivot, p, smallest)


@sweep
def solve_any(F, o, n, pivot, p, X, x, m):
    """``solve_block`` for any sizes."""
    o, p, x = np.uint64(o), np.uint64(p), np.uint64(x)
    if n == 6 and m == 5:
        solve_block(F, o, U6, pivot, p, X, x, U5)
    elif n == 6 and m == 3:
        solve_block(F, o, U6, pivot, p, X, x, U3)
    elif n == 5 and m == 6:
        solve_block(F, o, U5, pivot, p, X, x, U6)
    elif n == 3 and m == 6:
        solve_block(F, o, U3, pivot, p, X, x, U6)
    elif n == 6 and m == 1:
        solve_block(F, o, U6, pivot, p, X, x, ONE)
    elif n == 5 and m == 1:
        solve_block(F, o, U5, pivot, p, X, x, ONE)
    elif n == 3 and m == 1:
        solve_block(F, o, U3, pivot, p, X, x, ONE)
    else:
        solve_block(F, o, np.uint64(n), pivot, p, X, x, np.uint64(m))


@sweep
def product_any(F, a, b, t, rows, inner, columns):
    """``take_product`` for any sizes."""
    a, b, t = np.uint64(a), np.uint64(b), np.uint64(t)
    if rows == 5 and inner == 6 and columns == 5:
        take_product(F, a, b, t, U5, U6, U5)
    elif rows == 3 and inner == 6 and columns == 3:
        take_product(F, a, b, t, U3, U6, U3)
    elif rows == 6 and inner == 5 and columns == 6:
        take_product(F, a, b, t, U6, U5, U6)
    elif rows == 6 and inner == 3 and columns == 6:
        take_product(F, a, b, t, U6, U3, U6)
    else:
        take_product(F, a, b, t, np.uint64(rows), np.uint64(inner), np.uint64(columns))


@kernel
def take_multiple(F, o, n, m, x, q, y, p):
    """``y - F x`` for the n x m block at o and the parts of x and y that begin at q and p."""
    for r in range(n):
        s = y[p + r]
        for c in range(m):
            s -= F[o + r * m + c] * x[q + c]
        y[p + r] = s


@sweep
def multiply_any(F, o, n, m, x, q, y, p):
    """``take_multiple`` for any sizes."""
    o, q, p = np.uint64(o), np.uint64(q), np.uint64(p)
    if n == 6 and m == 5:
        take_multiple(F, o, U6, U5, x, q, y, p)
    elif n == 5 and m == 6:
        take_multiple(F, o, U5, U6, x, q, y, p)
    elif n == 6 and m == 3:
        take_multiple(F, o, U6, U3, x, q, y, p)
    elif n == 3 and m == 6:
        take_multiple(F, o, U3, U6, x, q, y, p)
    elif n == 6 and m == 6:
        take_multiple(F, o, U6, U6, x, q, y, p)
    else:
        take_multiple(F, o, np.uint64(n), np.uint64(m), x, q, y, p)


@kernel
def largest(F, o, n):
    """Largest magnitude of the n numbers that begin at o."""
    best, o = 0.0, np.uint64(o)
    for k in range(np.uint64(n)):
        best = max(best, abs(F[o + k]))
    return best


@sweep
def graph_factor(plan, F, pivot, big):
    """Factorise in place; -1, or the node (in the order of elimination) whose pivot is zero.

    ``big`` (n,) is room for the largest number that each diagonal block ever held.
    """
    u = 0
    for i in range(plan.size.size):
        big[i] = largest(F, plan.diag[i], plan.size[i] * plan.size[i])
    for i in range(plan.size.size):
        n, o, p = plan.size[i], plan.diag[i], plan.start[i]
        if not factor_any(F, o, n, pivot, p, SINGULAR * big[i]):
            return i
        # U_ij = D_i^-1 F_ij                                                     Algorithm 3, l. 4 and 19
        for e in range(plan.first[i], plan.first[i + 1]):
            solve_any(F, o, n, pivot, p, F, plan.later[e, 1], plan.size[plan.later[e, 0]])
        # F_jk -= F_ji U_ik                                                      l. 5, 14, 15 and 20
        for e in range(plan.first[i], plan.first[i + 1]):
            rows = plan.size[plan.later[e, 0]]
            for f in range(plan.first[i], plan.first[i + 1]):
                columns = plan.size[plan.later[f, 0]]
                product_any(F, plan.later[e, 2], plan.later[f, 1], plan.target[u], rows, n, columns)
                u += 1
            # what cancels later was there
            j = plan.later[e, 0]
            big[j] = max(big[j], largest(F, plan.diag[j], rows * rows))
    return -1


@sweep
def graph_solve(plan, F, pivot, x):
    """Solve with the factors of ``graph_factor``, in place in the vector x."""
    count = plan.size.size
    # leaves to root: y_i = D_i^-1 b_i, then off the later nodes               Algorithm 4, l. 1 to 6 and 8
    for i in range(count):
        n, p = plan.size[i], plan.start[i]
        solve_any(F, plan.diag[i], n, pivot, p, x, p, 1)
        for e in range(plan.first[i], plan.first[i + 1]):
            j = plan.later[e, 0]
            multiply_any(F, plan.later[e, 2], plan.size[j], n, x, p, x, plan.start[j])
    # root to leaves: x_i = y_i - U_ij x_j                                       l. 9 to 11
    for i in range(count - 1, -1, -1):
        n, p = plan.size[i], plan.start[i]
        for e in range(plan.first[i], plan.first[i + 1]):
            j = plan.later[e, 0]
            multiply_any(F, plan.later[e, 1], n, plan.size[j], x, plan.start[j], x, p)


@sweep
def graph_residual(plan, A, x, b, out):
    """``b - A x`` with the blocks before elimination; the largest entry, or infinity where one is not finite."""
    for r in range(out.size):
        out[r] = b[r]
    for k in range(plan.block.shape[0]):
        i, j, o = plan.block[k, 0], plan.block[k, 1], plan.block[k, 2]
        multiply_any(A, o, plan.size[i], plan.size[j], x, plan.start[j], out, plan.start[i])
    worst = 0.0
    for r in range(out.size):
        if not math.isfinite(out[r]):
            return math.inf
        worst = max(worst, abs(out[r]))
    return worst


@sweep
def graph_scales(plan, A, r, c):
    """Scales of rows and columns that bring the largest entry of each to between 1/2 and 1; zero rows keep 1."""
    for k in range(r.size):
        r[k], c[k] = 0.0, 0.0
    # the largest of each row, then of each column of the scaled rows
    for turn in range(2):
        for k in range(plan.block.shape[0]):
            i, j, o = plan.block[k, 0], plan.block[k, 1], plan.block[k, 2]
            n, m, p, q = plan.size[i], plan.size[j], plan.start[i], plan.start[j]
            for s in range(n):
                for t in range(m):
                    value = abs(A[np.uint64(o + s * m + t)])
                    if turn == 0:
                        r[p + s] = max(r[p + s], value)
                    else:
                        c[q + t] = max(c[q + t], value * r[p + s])
        for k in range(r.size):
            if turn == 0:
                r[k] = power_of_two(r[k])
            else:
                c[k] = power_of_two(c[k])


@kernel
def power_of_two(x):
    """The power of two that brings x to between 1/2 and 1; 1 for zero and for what is not finite."""
    if not (x > 0.0 and math.isfinite(x)):
        return 1.0
    _, e = math.frexp(x)
    return math.ldexp(1.0, -e)


@sweep
def graph_scale(plan, A, r, c, F):
    """F = scaled copy of A, with zeros where fill-in will be."""
    for k in range(F.size):
        F[k] = 0.0
    for k in range(plan.block.shape[0]):
        i, j, o = plan.block[k, 0], plan.block[k, 1], plan.block[k, 2]
        n, m, p, q = plan.size[i], plan.size[j], plan.start[i], plan.start[j]
        for s in range(n):
            for t in range(m):
                place = np.uint64(o + s * m + t)
                F[place] = r[p + s] * A[place] * c[q + t]


@sweep
def graph_refine(plan, A, F, pivot, r, c, b, x, work, sweeps):
    """Solve A x = b with the factors of the scaled matrix, and refine; the largest entry of the residual b - A x.

    Each sweep solves for the residual again. A sweep that does not make the residual smaller is taken back. ``work``
    (2, N) holds the residual, then the step, and the solution before the step.
    """
    for k in range(x.size):
        x[k] = r[k] * b[k]
    graph_solve(plan, F, pivot, x)
    for k in range(x.size):
        x[k] *= c[k]
    step, old = work[0], work[1]
    best = graph_residual(plan, A, x, b, step)
    for _ in range(sweeps):
        if not (best > 0.0 and math.isfinite(best)):
            break
        for k in range(x.size):
            step[k] *= r[k]
        graph_solve(plan, F, pivot, step)
        for k in range(x.size):
            old[k] = x[k]
            x[k] += c[k] * step[k]
        worst = graph_residual(plan, A, x, b, step)
        if not worst < best:
            for k in range(x.size):
                x[k] = old[k]
            break
        best = worst
    return best


@entry
def factor_graph(plan, A, F, pivot, r, c, scaled):
    """Scales (1 unless ``scaled``) and factors of the blocks A into F; -1, or the node whose pivot is zero."""
    if scaled:
        graph_scales(plan, A, r, c)
    else:
        for k in range(r.size):
            r[k], c[k] = 1.0, 1.0
    graph_scale(plan, A, r, c, F)
    return graph_factor(plan, F, pivot, np.empty(plan.size.size))


@entry
def solve_graph(plan, A, F, pivot, r, c, b, x, work, sweeps):
    """Solutions x (k, N) of A x = b for each row of b (k, N); the largest residual."""
    worst = 0.0
    for k in range(b.shape[0]):
        worst = max(worst, graph_refine(plan, A, F, pivot, r, c, b[k], x[k], work, sweeps))
    return worst


@entry
def solve_once(plan, F, pivot, big, x):
    """Factorise in place and solve in place for one x, without scales and refinement; -1 or the failed node."""
    failed = graph_factor(plan, F, pivot, big)
    if failed < 0:
        graph_solve(plan, F, pivot, x)
    return failed
