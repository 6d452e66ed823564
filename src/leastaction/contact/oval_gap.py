"""The gap of an ellipsoid and a ball, a point or a line with a radius, and how the points that touch move.

With d from the point or line to the centre of the ellipsoid, C = B B^T and n the normal, the ellipsoid reaches
sqrt(n^T C n) along n. The nearest points have the difference D n = d - C w, w = n / sqrt(n^T C n), so

    (C + t) w = d,    w^T C w = 1,    D = t |w|,

which is one equation for t in the principal axes of C: sum c_j d_j^2 / (c_j + t)^2 = 1 (Hart 1994). It holds for a
point inside too, where t < 0. A line is seen along itself: as a point, and the ellipsoid as an ellipse, its shadow.

    k, c     principal axes and squares of the half axes; of the shadow two, the third is along the line
    m        1 / (c + t), zero along the line
    fa, fb   derivatives of a number by ca and cb; f_x its derivative by x
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.layout import MATRIX, RB
from leastaction.forces.bodies import row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, join, matmul, matvec, scale3, sub3, tmatvec

STEPS = 60
"""Largest number of steps of Newton's method; it converges from below, and ten are many."""

AXIAL = 1e-10
"""Part of a half axis by which a point inside is moved off a plane of symmetry, where two points are nearest."""


@kernel
def times_square(B, x):
    """``B B^T x``."""
    return matvec(B, tmatvec(B, x))


@kernel
def half_axis(B, j):
    """Direction of column j of B, and the square of its length."""
    h = (B[j], B[3 + j], B[6 + j])
    c = dot3(h, h)
    return scale3(1.0 / math.sqrt(c), h), c


@sweep
def principal_axes(B, e):
    """Axes and squares of half axes of an ellipsoid, or of its shadow along e if that is not zero."""
    if not dot3(e, e) > 0.0:
        k0, c0 = half_axis(B, 0)
        k1, c1 = half_axis(B, 1)
        k2, c2 = half_axis(B, 2)
        return (k0, k1, k2), (c0, c1, c2)
    # two directions across the line, turned to the axes of the ellipse
    a = (1.0, 0.0, 0.0) if abs(e[0]) < 0.6 else (0.0, 1.0, 0.0)
    u = axpy3(-dot3(e, a), e, a)
    u = scale3(1.0 / math.sqrt(dot3(u, u)), u)
    v = cross(e, u)
    p, q = tmatvec(B, u), tmatvec(B, v)
    uu, uv, vv = dot3(p, p), dot3(p, q), dot3(q, q)
    angle = 0.5 * math.atan2(2.0 * uv, uu - vv)
    s, t = math.cos(angle), math.sin(angle)
    k0, k1 = axpy3(t, v, scale3(s, u)), axpy3(s, v, scale3(-t, u))
    c0, c1 = s * s * uu + 2.0 * s * t * uv + t * t * vv, t * t * uu - 2.0 * s * t * uv + s * s * vv
    return (k0, k1, e), (c0, c1, 1.0)


@sweep
def root(c, d):
    """The root t of sum c_j d_j^2 / (c_j + t)^2 = 1, from below."""
    g0, g1, g2 = math.sqrt(c[0]) * abs(d[0]), math.sqrt(c[1]) * abs(d[1]), math.sqrt(c[2]) * abs(d[2])
    t = max(g0 - c[0], g1 - c[1])
    if g2 > 0.0:
        t = max(t, g2 - c[2])
    for _ in range(STEPS):
        f, slope = -1.0, 0.0
        for j in range(3):
            g = g0 if j == 0 else (g1 if j == 1 else g2)
            if g > 0.0:
                r = g / (c[j] + t)
                f += r * r
                slope += 2.0 * r * r / (c[j] + t)
        step = f / slope
        t += step
        if not step > 1e-16 * (abs(t) + min(c[0], c[1])):
            break
    return t


@sweep
def oval_solution(B, d, e):
    """Of an ellipsoid with half axes B (world axes) and a point or line at -d: w, t, principal axes and m."""
    k, c = principal_axes(B, e)
    flat = dot3(e, e) > 0.0
    y = (dot3(k[0], d), dot3(k[1], d), 0.0 if flat else dot3(k[2], d))
    # off planes of symmetry
    y0, y1, y2 = AXIAL * math.sqrt(c[0]), AXIAL * math.sqrt(c[1]), AXIAL * math.sqrt(c[2])
    y = (
        y[0] if abs(y[0]) > y0 else y0,
        y[1] if abs(y[1]) > y1 else y1,
        0.0 if flat else (y[2] if abs(y[2]) > y2 else y2),
    )
    t = root(c, y)
    m = (1.0 / (c[0] + t), 1.0 / (c[1] + t), 0.0 if flat else 1.0 / (c[2] + t))
    w = axpy3(m[0] * y[0], k[0], axpy3(m[1] * y[1], k[1], scale3(m[2] * y[2], k[2])))
    return w, t, k, m


@sweep
def oval_gap(B, xa, xb, e, rb):
    """Gap, normal and points that touch of an ellipsoid and a ball, or a line with a radius."""
    w, t, _, _ = oval_solution(B, sub3(xa, xb), e)
    length = math.sqrt(dot3(w, w))
    n, phi = scale3(1.0 / length, w), t * length - rb
    ca = sub3(xa, times_square(B, w))
    return phi, n, ca, axpy3(-phi, n, ca)


@kernel
def spread_along(k, m, x):
    """``sum_j m_j k_j (k_j . x)``."""
    return axpy3(m[0] * dot3(k[0], x), k[0], axpy3(m[1] * dot3(k[1], x), k[1], scale3(m[2] * dot3(k[2], x), k[2])))


@sweep
def oval_rows(F, i, Ra, xa, xb, e, ca, fa, fb):
    """Rows of fa . ca + fb . cb by the motion of both bodies; b moves, and together they move as one.

    ca = xa - C w and cb = xb + s e + rb n, with s = e . (ca - xb) on a line.
    """
    B, rb, d = matmul(Ra, row9(F, i, MATRIX)), F[i, RB], sub3(xa, xb)
    w, t, k, m = oval_solution(B, d, e)
    length = math.sqrt(dot3(w, w))
    n = scale3(1.0 / length, w)
    cb = axpy3(rb - t * length, n, ca)
    along, s = dot3(fb, e), dot3(e, sub3(ca, xb))
    # by w: through ca, s and n
    fw = scale3(-1.0, times_square(B, axpy3(along, e, fa)))
    fw = axpy3(rb / length, axpy3(-dot3(n, fb), n, fb), fw)
    # by d and by e through w, with the constraint w^T C w = 1
    Cw, Ce = times_square(B, w), times_square(B, e)
    z, Mw = spread_along(k, m, fw), spread_along(k, m, w)
    share = dot3(fw, Mw) / dot3(Cw, Mw)
    z = axpy3(-share, spread_along(k, m, Cw), z)
    f_d = axpy3(along, e, z)
    turn = dot3(z, Ce) + share * dot3(w, Ce) - dot3(fw, e)
    f_e = axpy3(-s, z, scale3(turn, w))
    f_e = axpy3(s, fb, axpy3(along, sub3(ca, xb), f_e))
    f_xb = sub3(fb, f_d)
    row_b = join(add3(cross(xb, f_xb), cross(e, f_e)), f_xb)
    whole = join(add3(cross(ca, fa), cross(cb, fb)), add3(fa, fb))
    row_a = (
        whole[0] - row_b[0], whole[1] - row_b[1], whole[2] - row_b[2], whole[3] - row_b[3], whole[4] - row_b[4],
        whole[5] - row_b[5],
    )  # fmt: skip
    return row_a, row_b
