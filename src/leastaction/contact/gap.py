"""The gap of one frozen contact, its normal, its exact derivative and the points that touch.

    Ra, pa   pose of row a about the kernels' origin; Rb, pb of row b
    xa, xb   the points of the contact; ea, eb its directions; d = xa - xb
    phi      gap, metres, positive where the bodies are apart
    n        unit normal in world axes, from b to a
    ga, gb   dphi = ga . eta_a + gb . eta_b for spatial variations eta = (w; v): delta R = [w] R, delta x = v + w x x
    ca, cb   the points of a and b that touch, about the origin; ca - cb = phi n

A gap depends on the relative pose only, so gb = -ga. It is the smallest distance over the points of both features, so
its derivative is that of the two material points that touch (envelope theorem): ga = (ca x n; n).
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.layout import (
    DA,
    DB,
    DISC,
    ELLIPSOID,
    LINE,
    LINES,
    MATRIX,
    OVAL_GAP,
    PLANE,
    RA,
    RB,
    RIM,
    SIGN,
    START,
    XA,
    XB,
)
from leastaction.contact.oval_gap import oval_gap
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import entry, kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, join, matmul, matvec, scale3, sub3, tmatvec

TINY = 1e-14
"""Lengths in metres, and sines, below this have no direction."""

TURNS = 30
"""Largest number of steps in the search for the nearest points of a rim and a line."""


@kernel
def unit_or(u, other):
    """``u`` over its length, and the length; ``other`` instead where u has no direction (z if it has none either)."""
    length = math.sqrt(dot3(u, u))
    spare = math.sqrt(dot3(other, other))
    if length > TINY:
        n = scale3(1.0 / length, u)
    elif spare > 0.5:
        n = scale3(1.0 / spare, other)
    else:
        n = (0.0, 0.0, 1.0)
    return n, length


@kernel
def plane_gap(kind, F, k, Ra, xa, xb, n, ra):
    """PLANE, DISC and ELLIPSOID: gap and the lowest point of a over a plane with normal n through xb."""
    low = axpy3(-ra, n, xa)
    if kind == DISC:
        # the rim's lowest point; flat on the plane all are equal and the centre stands for them
        e = matvec(Ra, row3(F, k, DA))
        c = dot3(n, e)
        across = axpy3(-c, e, n)
        s = math.sqrt(dot3(across, across))
        low = axpy3(-ra / s, across, xa) if s > TINY else xa
    elif kind == ELLIPSOID:
        B = matmul(Ra, row9(F, k, MATRIX))
        y = tmatvec(B, n)
        low = axpy3(-1.0 / math.sqrt(dot3(y, y)), matvec(B, y), xa)
    return dot3(n, sub3(low, xb)), low


@kernel
def lines_gap(F, k, xa, xb, ea, eb, ra, rb):
    """LINES: gap, normal and the touching points of two lines with radii."""
    sign = F[k, SIGN]
    d, c = sub3(xa, xb), cross(ea, eb)
    s2, b = dot3(c, c), dot3(ea, eb)
    if s2 > TINY:
        n = scale3(sign / math.sqrt(s2), c)
        # closest points xa + s ea and xb + t eb
        s = (b * dot3(eb, d) - dot3(ea, d) * dot3(eb, eb)) / s2
        t = (dot3(eb, d) + b * s) / dot3(eb, eb)
    else:
        # parallel: the distance of xa from the other line
        t, s = dot3(eb, d), 0.0
        n, _ = unit_or(axpy3(-t, eb, d), cross(eb, (eb[1], eb[2], eb[0])))
    phi = dot3(n, d) - ra - rb
    return phi, n, axpy3(-ra, n, axpy3(s, ea, xa)), axpy3(rb, n, axpy3(t, eb, xb))


@sweep
def rim_nearest_line(m, e, radius, x, u, xb, eb):
    """The point of a rim nearest to the line xb + t eb, from its point x = m + radius u, and what is left of the slope.

    Newton's method for the angle of half the squared distance w . w / 2, w the part of x - xb across the line.
    """
    slope = 0.0
    for _ in range(TURNS):
        t, d = cross(e, u), sub3(x, xb)
        w, c = axpy3(-dot3(eb, d), eb, d), dot3(eb, t)
        slope = dot3(w, t)
        bend = radius * (1.0 - c * c) - dot3(w, u)
        turn = -slope / bend if bend > 1e-3 * radius else -slope / radius * 10.0
        turn = min(max(turn, -0.3), 0.3) if bend > 1e-3 * radius else min(max(turn, -0.1), 0.1)
        if abs(turn) < 1e-14:
            break
        u, _ = unit_or(axpy3(math.cos(turn), u, scale3(math.sin(turn), t)), u)
        x = axpy3(radius, u, m)
    return x, u, slope


@sweep
def rim_gap(F, k, Ra, xa, xb, eb):
    """RIM: gap, normal and the touching points of a rim and a line or a point."""
    ra, rb = F[k, RA], F[k, RB]
    e, u = matvec(Ra, row3(F, k, DA)), matvec(Ra, row3(F, k, START))
    if dot3(eb, eb) > 0.0:
        x, u, _ = rim_nearest_line(xa, e, ra, axpy3(ra, u, xa), u, xb, eb)
    else:
        d = sub3(xb, xa)
        u, _ = unit_or(axpy3(-dot3(e, d), e, d), u)
        x = axpy3(ra, u, xa)
    d = sub3(x, xb)
    w = axpy3(-dot3(eb, d), eb, d)
    across = scale3(F[k, SIGN], cross(cross(e, u), eb)) if F[k, SIGN] != 0.0 else w
    n, _ = unit_or(across, u)
    return dot3(n, w) - rb, n, x, axpy3(rb, n, sub3(x, w))


@sweep
def gap(kind, F, k, Ra, pa, Rb, pb):
    """Gap phi, normal n, derivatives ga and gb (6 each) and touching points ca, cb of contact k of the table F."""
    xa, xb = add3(pa, matvec(Ra, row3(F, k, XA))), add3(pb, matvec(Rb, row3(F, k, XB)))
    ra, rb = F[k, RA], F[k, RB]
    eb = matvec(Rb, row3(F, k, DB))
    if kind in (PLANE, DISC, ELLIPSOID):
        n = eb
        phi, ca = plane_gap(kind, F, k, Ra, xa, xb, n, ra)
        cb = axpy3(-phi, n, ca)
    elif kind == OVAL_GAP:
        phi, n, ca, cb = oval_gap(matmul(Ra, row9(F, k, MATRIX)), xa, xb, eb, rb)
    elif kind == RIM:
        phi, n, ca, cb = rim_gap(F, k, Ra, xa, xb, eb)
    elif kind == LINES:
        phi, n, ca, cb = lines_gap(F, k, xa, xb, matvec(Ra, row3(F, k, DA)), eb, ra, rb)
    else:
        # POINTS, or LINE with the part along the line taken off
        d = sub3(xa, xb)
        t = dot3(eb, d) if kind == LINE else 0.0
        n, length = unit_or(axpy3(-t, eb, d), matvec(Ra, row3(F, k, DA)))
        phi = length - ra - rb
        ca, cb = axpy3(-ra, n, xa), axpy3(rb, n, axpy3(t, eb, xb))
    ga = join(cross(ca, n), n)
    gb = (-ga[0], -ga[1], -ga[2], -ga[3], -ga[4], -ga[5])
    return phi, n, ga, gb, ca, cb


@entry
def contact_gaps(ints, F, count, P, phi, n, ga, gb, ca, cb):
    """Gaps (nc,), normals (nc, 3), derivatives (nc, 6), points (nc, 3) of the first ``count`` contacts at poses P."""
    for k in range(count):
        a, b = ints[k, 1], ints[k, 2]
        out = gap(ints[k, 0], F, k, row9(P, a, 0), row3(P, a, 9), row9(P, b, 0), row3(P, b, 9))
        phi[k] = out[0]
        for c in range(3):
            n[k, c] = out[1][c]
            ca[k, c] = out[4][c]
            cb[k, c] = out[5][c]
        for c in range(6):
            ga[k, c] = out[2][c]
            gb[k, c] = out[3][c]
