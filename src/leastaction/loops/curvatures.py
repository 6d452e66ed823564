"""Second derivatives of loops and of equality constraints of the user, for the stages of the implicit methods.

The second derivative of a row by twists of its bodies about the origin has a symmetric part C, read off the bias of
loop joints or off central differences of the Jacobian of the user, and half a bracket, -G . ad(by) of / 2. From these,
with S the axes of the rates and F the wrenches of multipliers lam summed over subtrees,

    D = d(J u)/dx = V^T C S + G . ad(S) (V / 2 - V_parent)
    d(J^T lam)/dx = S^T (sum of lam C) S + half a bracket F . ad(S_j) S_i of any two rates on one way to the world

What the axes of spline joints add is in ``tree.splines``. Symbols as in ``implicit.loops``, which has the tables k.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.forces.bodies import give_bodies, link_frame
from leastaction.jit.calls import call_force
from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld6, st6
from leastaction.loops.rows import loop_rows, loop_size, pair_size
from leastaction.loops.ties import tie_curvatures
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
from leastaction.tree.kinematics import arm_of, last_rate
from leastaction.tree.layout import PARENT, Loops
from leastaction.tree.splines import spline_bends, spline_row_change

# Step of the differences of a Jacobian of the user: radians, and for translations a part of the arm of the bodies.
STEP = 1.0e-5


@sweep
def loop_curvatures(loops, f, k):
    """C of the rows of loop joints: the bias is its quadratic form, so 78 biases make it."""
    wide = 6 * k.L.ends.shape[1]
    for j in range(loops.rows.shape[0]):
        one = Loops(
            loops.rows[j : j + 1], loops.frame[j : j + 1], loops.select[j : j + 1], loops.coupling[j : j + 1],
            loops.ties,
        )  # fmt: skip
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
def user_curvatures(c, start, t, arm, f, k):
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
            step = STEP if q % 6 < 3 else STEP * arm
            for side in range(2):
                sign = 1.0 if side == 0 else -1.0
                give_bodies(c, b, count, f.P, f.V, k.given)
                displaced(c, b, q, sign * step, f.P, k.given)
                call_force(c.address[j], t, k.given, L.result)
                for i in range(size):
                    for p in range(n):
                        half = 0.25 * sign * L.result[size + n * i + p] / step
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
def curvatures(system, t, x, f, k):
    """C of all rows, at coordinates x and the poses and twists in f."""
    loops = system.loops
    loop_curvatures(loops, f, k)
    tie_curvatures(loops.ties, system.tree, x, f.P, k.C, 6 * k.L.ends.shape[1], pair_size(loops))
    user_curvatures(system.constraints, loop_size(system.loops), t, arm_of(system.tree), f, k)


@kernel
def same_bodies(L, a, b):
    """Whether two rows touch the same bodies."""
    same = True
    for e in range(L.ends.shape[1]):
        same = same and L.ends[a, e] == L.ends[b, e]
    return same


@sweep
def row_changes(tree, x, u, f, k):
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
                spline_row_change(tree.splines, tree, x, u, f.P, row, L.ends[r, e], k.D[r])


@sweep
def bend(tree, x, f, k, lam, out):
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
    spline_bends(tree.splines, tree, x, f.P, k.F, out)


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
