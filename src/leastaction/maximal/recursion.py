"""The 6x6 recursion of the step of ``Maximal``: its Newton direction, one joint eliminated after the other.

Symbols are those of ``maximal.bodies``. A block D is four 3x3 matrices ww, wv, vw, vv of nine numbers each.
"""

# mypy: ignore-errors
from __future__ import annotations

from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import ld, ld1, ld3, ld6, ld9, number, st1, st6, st9
from leastaction.spatial._source.mrp import add9, outer, scale9, spread
from leastaction.spatial._source.vector import add3, add6, ang, axpy6, dot6, join, lin, matvec, scale3, tmatvec
from leastaction.tree.coordinates import put3
from leastaction.tree.layout import BALL, IU, KIND, MASS, PARENT


@kernel
def times(D, v):
    """D v, with D four 3x3 blocks."""
    a, b = ang(v), lin(v)
    return join(add3(matvec(D[0], a), matvec(D[1], b)), add3(matvec(D[2], a), matvec(D[3], b)))


@kernel
def transposed_times(D, v):
    """D^T v."""
    a, b = ang(v), lin(v)
    return join(add3(tmatvec(D[0], a), tmatvec(D[2], b)), add3(tmatvec(D[1], a), tmatvec(D[3], b)))


@kernel
def less_outer(D, h, x):
    """D - h x^T."""
    a, b, c, d = scale3(-1.0, ang(h)), scale3(-1.0, lin(h)), ang(x), lin(x)
    return (
        add9(D[0], outer(a, c)), add9(D[1], outer(a, d)),
        add9(D[2], outer(b, c)), add9(D[3], outer(b, d)),
    )  # fmt: skip


@kernel
def body_block(C, i, B, h):
    """D of the body on row i."""
    m, A, x0, x1 = C[i, MASS] / h, ld9(B.A, i, 0), ld3(B.X0, i, 9), ld3(B.A, i, 9)
    s = -1.0 / h
    # (tr A - A)/h - m [x0][x1],  with [a][b] = b a^T - (a.b) 1
    ww = add9(spread((A[0] + A[4] + A[8]) / h, (0.0, 0.0, 0.0)), scale9(s, A))
    square = m * (x0[0] * x1[0] + x0[1] * x1[1] + x0[2] * x1[2])
    ww = add9(ww, add9(scale9(-m, outer(x1, x0)), spread(square, (0.0, 0.0, 0.0))))
    return (ww, spread(0.0, scale3(m, x0)), spread(0.0, scale3(-m, x1)), spread(m, (0.0, 0.0, 0.0)))


@kernel
def load_block(D, i):
    """The accumulated block of row i."""
    return (ld9(D, i, 0), ld9(D, i, 9), ld9(D, i, 18), ld9(D, i, 27))


@kernel
def add_blocks(D, E):
    """D + E."""
    return (add9(D[0], E[0]), add9(D[1], E[1]), add9(D[2], E[2]), add9(D[3], E[3]))


@kernel
def store_block(D, i, E):
    """Store a block."""
    st9(D, i, 0, E[0])
    st9(D, i, 9, E[1])
    st9(D, i, 18, E[2])
    st9(D, i, 27, E[3])


@kernel
def factors3(M):
    """Factors of a 3x3 matrix (nine numbers) without pivoting: l10, l20, l21 and the rows of the upper one.

    A contact adds a stiff term of rank one, some 1e10 times the inertia. Elimination leaves its small complement right;
    the adjugate would not.
    """
    a, b = M[3] / M[0], M[6] / M[0]
    u11, u12 = M[4] - a * M[1], M[5] - a * M[2]
    c = (M[7] - b * M[1]) / u11
    return (a, b, c, M[0], M[1], M[2], u11, u12, M[8] - b * M[2] - c * u12)


@kernel
def solved3(F, r):
    """Solution of a 3x3 system with its factors."""
    r1 = r[1] - F[0] * r[0]
    z2 = (r[2] - F[1] * r[0] - F[2] * r1) / F[8]
    z1 = (r1 - F[7] * z2) / F[6]
    return ((r[0] - F[4] * z1 - F[5] * z2) / F[3], z1, z2)


@kernel
def solved_rows(F, x0, x1, x2):
    """The same for three rows of six numbers."""
    x1 = axpy6(-F[0], x0, x1)
    z2 = scaled6(1.0 / F[8], axpy6(-F[2], x1, axpy6(-F[1], x0, x2)))
    z1 = scaled6(1.0 / F[6], axpy6(-F[7], z2, x1))
    return scaled6(1.0 / F[3], axpy6(-F[5], z2, axpy6(-F[4], z1, x0))), z1, z2


@kernel
def ball_factors(B, d, D):
    """Factors of S0^T D S1 + K of a ball."""
    h0, h1, h2 = times(D, ld6(B.S1, d, 0)), times(D, ld6(B.S1, d + 1, 0)), times(D, ld6(B.S1, d + 2, 0))
    s0, s1, s2 = ld6(B.S0, d, 0), ld6(B.S0, d + 1, 0), ld6(B.S0, d + 2, 0)
    return factors3((
        dot6(s0, h0) + ld(B.K, d, 0), dot6(s0, h1) + ld(B.K, d, 1), dot6(s0, h2) + ld(B.K, d, 2),
        dot6(s1, h0) + ld(B.K, d + 1, 0), dot6(s1, h1) + ld(B.K, d + 1, 1), dot6(s1, h2) + ld(B.K, d + 1, 2),
        dot6(s2, h0) + ld(B.K, d + 2, 0), dot6(s2, h1) + ld(B.K, d + 2, 1), dot6(s2, h2) + ld(B.K, d + 2, 2),
    ))  # fmt: skip


@kernel
def ball_rows(B, d, D, F):
    """The three rows of (S0^T D S1 + K)^-1 S0^T D."""
    return solved_rows(
        F,
        transposed_times(D, ld6(B.S0, d, 0)),
        transposed_times(D, ld6(B.S0, d + 1, 0)),
        transposed_times(D, ld6(B.S0, d + 2, 0)),
    )


@kernel
def ball_numbers(B, d, l, F):
    """Minus (S0^T D S1 + K)^-1 times the residuals of a ball."""
    return solved3(
        F,
        (
            -(dot6(ld6(B.S0, d, 0), l) + ld1(B.c, d)),
            -(dot6(ld6(B.S0, d + 1, 0), l) + ld1(B.c, d + 1)),
            -(dot6(ld6(B.S0, d + 2, 0), l) + ld1(B.c, d + 2)),
        ),
    )


@kernel
def eliminate_screw(B, d, D, l):
    """Eliminate the coordinate of a screw from block D and residual l; returns both."""
    S0, S1 = ld6(B.S0, d, 0), ld6(B.S1, d, 0)
    h, x = times(D, S1), transposed_times(D, S0)
    s = 1.0 / (dot6(S0, h) + ld(B.K, d, 0))
    y = -(dot6(S0, l) + ld1(B.c, d)) * s
    x = (s * x[0], s * x[1], s * x[2], s * x[3], s * x[4], s * x[5])
    st1(B.y, d, y)
    st6(B.Y, d, 0, x)
    return less_outer(D, h, x), axpy6(y, h, l)


@kernel
def eliminate_ball(B, d, D, l):
    """Eliminate the three coordinates of a ball at once; returns D, l, the factors of the pivot and D S1."""
    F = ball_factors(B, d, D)
    y = ball_numbers(B, d, l, F)
    z0, z1, z2 = ball_rows(B, d, D, F)
    h0, h1, h2 = times(D, ld6(B.S1, d, 0)), times(D, ld6(B.S1, d + 1, 0)), times(D, ld6(B.S1, d + 2, 0))
    st6(B.Y, d, 0, z0)
    st6(B.Y, d + 1, 0, z1)
    st6(B.Y, d + 2, 0, z2)
    put3(B.y, d, y)
    D = less_outer(less_outer(less_outer(D, h0, z0), h1, z1), h2, z2)
    return D, axpy6(y[2], h2, axpy6(y[1], h1, axpy6(y[0], h0, l))), F, (h0, h1, h2)


@kernel
def scaled6(s, v):
    """s v."""
    return (s * v[0], s * v[1], s * v[2], s * v[3], s * v[4], s * v[5])


@sweep
def inward_bodies(tree, B, h):
    """Leaf to root: eliminate every joint; W and D hold what contacts add, and are used up."""
    C = tree.const
    for i in range(tree.rows.shape[0] - 1, 0, -1):
        l, D = ld6(B.W, i, 0), load_block(B.D, i)
        if C[i, MASS] > 0.0:
            l = axpy6(-0.5 * h, ld6(B.F0, i, 0), add6(l, ld6(B.L, i, 0)))
            D = add_blocks(D, body_block(C, i, B, h))
        l = add6(l, times(D, ld6(B.rho, i, 0)))
        d, j = tree.rows[i, IU], tree.rows[i, PARENT]
        if tree.rows[i, KIND] == BALL:
            D, l, _, _ = eliminate_ball(B, d, D, l)
        else:
            D, l = eliminate_screw(B, d, D, l)
        if j > 0:
            st6(B.W, j, 0, add6(ld6(B.W, j, 0), l))
            store_block(B.D, j, add_blocks(load_block(B.D, j), D))


@sweep
def outward_bodies(tree, B):
    """Root to leaf: dq (in B.y) and eta."""
    zero = number(B.y, 0.0)
    st6(B.eta, 0, 0, (zero, zero, zero, zero, zero, zero))
    for i in range(1, tree.rows.shape[0]):
        d = tree.rows[i, IU]
        z = ld6(B.eta, tree.rows[i, PARENT], 0)
        e = add6(z, ld6(B.rho, i, 0))
        for k in range(d, d + (3 if tree.rows[i, KIND] == BALL else 1)):
            dq = ld1(B.y, k) - dot6(ld6(B.Y, k, 0), z)
            st1(B.y, k, dq)
            e = axpy6(dq, ld6(B.S1, k, 0), e)
        st6(B.eta, i, 0, e)
