"""Contacts of capsules and cylinders with each other and with boxes.

A *segment* is an axis or an edge: middle x, unit direction e, half length h, radius r (0 for an edge of a box). A *rim*
is the circle of a cylinder's cap; two rims that cross are frozen as their tangents. A contact between edges is kept
only where its normal lies between the normals of the two surfaces that meet there, on both sides.

    a, b      rows; n normal from b to a
    inside    a closest point lies within the feature, so that the feature, not its end, is what touches
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.depth import half_width, without_false
from leastaction.contact.gap import rim_nearest_line, unit_or
from leastaction.contact.layout import DISC
from leastaction.contact.shapes import (
    FLAT,
    PARALLEL,
    STAND,
    TILT,
    ball_box,
    ball_capsule,
    ball_cylinder,
    clip,
    column,
    rolls,
    write,
    write_line,
    write_lines,
    write_plane,
    write_rim,
)
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, scale3, sub3, tmatvec

CONE = 1e-6
"""How far a normal may leave the cone of an edge."""

LEAN = 0.1
"""How far it may do so where two edges have not passed each other: what lies nearly flat touches next at its edges."""

SEARCH = 12
"""Steps of the search for the nearest points of two rims, from tangents."""


@kernel
def nearest(xa, ea, ha, xb, eb, hb):
    """Parameters s, t of the closest points of two segments."""
    d, w = sub3(xa, xb), dot3(ea, eb)
    s2 = 1.0 - w * w
    # of the lines (the middle of a where they are parallel), then clipped one after the other
    s = clip((w * dot3(eb, d) - dot3(ea, d)) / s2, ha) if s2 > 1e-12 else 0.0
    t = clip(dot3(eb, d) + w * s, hb)
    s = clip(w * t - dot3(ea, d), ha)
    t = clip(dot3(eb, d) + w * s, hb)
    return s, t


@sweep
def segments(out, count, feature, a, xa, ea, ha, ra, la, b, xb, eb, hb, rb, lb):
    """Two segments with radii, where the closest points lie inside both.

    la and lb are the half lengths to the caps, infinite where there is none: what is nearer to a cap than it is deep in
    the side has come through the cap. What a step missed may have come through either.
    """
    s, t = nearest(xa, ea, ha, xb, eb, hb)
    if abs(s) >= ha or abs(t) >= hb:
        return count
    pa, pb, c = axpy3(s, ea, xa), axpy3(t, eb, xb), cross(ea, eb)
    d = sub3(pa, pb)
    if not out[8] and math.sqrt(dot3(d, d)) - ra - rb < max(abs(s) - la, abs(t) - lb) - FLAT * (ra + rb):
        return count
    if dot3(c, c) >= PARALLEL * PARALLEL:
        return write_lines(out, count, feature, a, pa, ra, ea, b, pb, rb, eb, sub3(pa, pb))
    return write_line(out, count, feature, b, pb, rb, a, pa, ra, ea)


@sweep
def capsule_capsule(out, count, a, Ra, ca, ra, ha, b, Rb, cb, rb, hb):
    """Up to three contacts: the closest points, and the ends where the capsules are nearly parallel."""
    ea, eb = column(Ra, 2), column(Rb, 2)
    s, t = nearest(ca, ea, ha, cb, eb, hb)
    c = cross(ea, eb)
    parallel = dot3(c, c) < PARALLEL * PARALLEL
    # the nearest of all
    if abs(s) < ha and abs(t) < hb:
        if not parallel:
            return segments(out, count, 0, a, ca, ea, ha, ra, math.inf, b, cb, eb, hb, rb, math.inf)
        count = segments(out, count, 0, a, ca, ea, ha, ra, math.inf, b, cb, eb, hb, rb, math.inf)
    elif abs(s) >= ha:
        count = ball_capsule(out, count, 1 if s > 0.0 else 2, a, axpy3(s, ea, ca), ra, b, Rb, cb, rb, hb)
    else:
        count = ball_capsule(out, count, 3 if t > 0.0 else 4, b, axpy3(t, eb, cb), rb, a, Ra, ca, ra, ha)
    if not parallel:
        return count
    # the other ends that lie beside the other capsule
    for k in range(2):
        side = 1.0 if k == 0 else -1.0
        end = axpy3(side * ha, ea, ca)
        z = dot3(eb, sub3(end, cb))
        if abs(z) < hb and s != side * ha:
            count = write_line(out, count, 1 + k, a, end, ra, b, axpy3(z, eb, cb), rb, eb)
        end = axpy3(side * hb, eb, cb)
        z = dot3(ea, sub3(end, ca))
        if abs(z) < ha and not (abs(s) < ha and t == side * hb):
            count = write_line(out, count, 3 + k, b, end, rb, a, axpy3(z, ea, ca), ra, ea)
    return count


@kernel
def box_edge(R, c, h, k):
    """Edge k (0 to 11) of a box: middle, direction, half length, and the normals of the two faces that meet in it."""
    j, s, t = k // 4, (1.0 if k % 4 < 2 else -1.0), (1.0 if k % 2 == 0 else -1.0)
    e, f, g = column(R, j), column(R, (j + 1) % 3), column(R, (j + 2) % 3)
    hj = h[0] if j == 0 else (h[1] if j == 1 else h[2])
    hf = h[1] if j == 0 else (h[2] if j == 1 else h[0])
    hg = h[2] if j == 0 else (h[0] if j == 1 else h[1])
    f, g = scale3(s, f), scale3(t, g)
    return axpy3(hf, f, axpy3(hg, g, c)), e, hj, f, g


@kernel
def box_corner(R, c, h, k):
    """Corner k (0 to 7) of a box."""
    x = axpy3(h[0] if k % 2 == 0 else -h[0], column(R, 0), c)
    x = axpy3(h[1] if k % 4 < 2 else -h[1], column(R, 1), x)
    return axpy3(h[2] if k < 4 else -h[2], column(R, 2), x)


@sweep
def segment_edge(out, count, feature, a, xa, ea, ha, ra, b, xb, eb, half, f, g):
    """A segment with a radius against an edge that it passes; f, g as in ``box_edge``.

    Where the two are nearly parallel the nearest point of the edge stands for it; its ends are looked at elsewhere.
    """
    s, t = nearest(xa, ea, ha, xb, eb, half)
    if abs(s) >= ha or abs(t) >= half:
        return count
    # the normal out of the edge, whichever way round the segment passes
    pa, pb = axpy3(s, ea, xa), axpy3(t, eb, xb)
    n, sine = unit_or(cross(ea, eb), f)
    if sine < PARALLEL:
        n, _ = unit_or(sub3(pa, pb), f)
    n = scale3(1.0 if dot3(n, add3(f, g)) >= 0.0 else -1.0, n)
    lean = LEAN if dot3(n, sub3(pa, pb)) - ra > -FLAT * ra else CONE
    if dot3(n, f) < -lean or dot3(n, g) < -lean:
        return count
    if sine < PARALLEL:
        return write_line(out, count, feature, b, pb, 0.0, a, pa, ra, ea)
    # a segment that passes behind the edge goes through the solid
    if dot3(n, sub3(pa, pb)) > -ra:
        count = write_lines(out, count, feature, a, pa, ra, ea, b, pb, 0.0, eb, n)
    return count


@sweep
def capsule_box(out, count, a, Ra, ca, ra, ha, b, Rb, cb, hb):
    """Both ends of a capsule, and its side against the edges of the box."""
    e = column(Ra, 2)
    count = ball_box(out, count, 0, a, axpy3(ha, e, ca), ra, b, Rb, cb, hb)
    count = ball_box(out, count, 1, a, axpy3(-ha, e, ca), ra, b, Rb, cb, hb)
    for k in range(12):
        x, eb, half, f, g = box_edge(Rb, cb, hb, k)
        count = segment_edge(out, count, 2 + k, a, ca, e, ha, ra, b, x, eb, half, f, g)
    # corners of the box at the side of the capsule, where it looks away from the box
    for k in range(8):
        x = box_corner(Rb, cb, hb, k)
        z = dot3(e, sub3(x, ca))
        n, _ = unit_or(sub3(axpy3(z, e, ca), x), e)
        y, v = tmatvec(Rb, n), tmatvec(Rb, sub3(x, cb))
        if abs(z) < ha and y[0] * v[0] >= 0.0 and y[1] * v[1] >= 0.0 and y[2] * v[2] >= 0.0:
            count = write_line(out, count, 20 + k, b, x, 0.0, a, axpy3(z, e, ca), ra, e)
    return count


@kernel
def rim_point(m, e, R, radius, x):
    """The point of a rim (middle m, axis e) that is nearest to x, and the direction out to it."""
    d = sub3(x, m)
    u, _ = unit_or(axpy3(-dot3(e, d), e, d), column(R, 0))
    return axpy3(radius, u, m), u


@kernel
def not_past(apart, x, m, n, radius, length):
    """Whether a point x that is behind a rim (middle m, normal n of its cap) is inside the cylinder, not past it."""
    d = sub3(x, m)
    z = dot3(n, d)
    inside = -length <= z <= 0.0 and dot3(d, d) - z * z <= radius * radius
    return apart > -1e-3 * radius or (inside and apart > -0.5 * radius)


@sweep
def segment_rim(out, count, feature, a, xa, ea, ha, ra, f, g, b, Rb, cb, rb, hb):
    """A segment with a radius against the rims of a cylinder, from where it crosses them.

    f and g are the normals of the faces that meet in the segment; both zero for the axis of a capsule.
    """
    eb = column(Rb, 2)
    d = sub3(xa, cb)
    # places s where the segment is as far from the axis as the rim, or nearest to it
    p, q = axpy3(-dot3(eb, ea), eb, ea), axpy3(-dot3(eb, d), eb, d)
    A, B, C = dot3(p, p), dot3(p, q), dot3(q, q) - rb * rb
    disc = B * B - A * C
    root = math.sqrt(max(disc, 0.0))
    along = A < PARALLEL * PARALLEL
    above, below = cb, cb
    for k in range(4 if disc > 0.0 and not along else 2):
        side = 1.0 if k % 2 == 0 else -1.0
        m, cap = axpy3(side * hb, eb, cb), scale3(side, eb)
        # beside the rim where the segment goes along the axis
        s = dot3(ea, sub3(m, xa)) if along else (-B + (root if k < 2 else -root)) / A
        # nearest points, from there; two searches may end at one place
        x, u = rim_point(m, eb, Rb, rb, axpy3(s, ea, xa))
        x, u, slope = rim_nearest_line(m, eb, rb, x, u, xa, ea)
        s, moved = dot3(ea, sub3(x, xa)), sub3(x, above if k % 2 == 0 else below)
        above, below = (x, below) if k % 2 == 0 else (above, x)
        if abs(s) >= ha or abs(slope) > 1e-6 * rb or dot3(moved, moved) < 1e-8 * rb * rb:
            continue
        tangent, pa = cross(eb, u), axpy3(s, ea, xa)
        n, sine = unit_or(cross(ea, tangent), eb)
        n = scale3(1.0 if dot3(n, add3(u, cap)) >= 0.0 else -1.0, n)
        if sine < PARALLEL:
            # along the tangent: only against a round side
            n, _ = unit_or(sub3(pa, x), u)
            if dot3(n, u) >= -CONE and dot3(n, cap) >= -CONE:
                count = write_rim(out, count, feature + k, b, m, eb, rb, u, a, pa, ra, ea, n)
            continue
        # between cap and side of the cylinder, between the faces of the edge
        apart = dot3(n, sub3(pa, x))
        lean = LEAN if apart - ra > -FLAT * rb else CONE
        if dot3(n, u) < -lean or dot3(n, cap) < -lean or dot3(n, f) > lean or dot3(n, g) > lean:
            continue
        if not_past(apart, pa, m, cap, rb, 2.0 * hb):
            count = write_rim(out, count, feature + k, b, m, eb, rb, u, a, pa, ra, ea, scale3(-1.0, n))
    return count


@sweep
def capsule_cylinder(out, count, a, Ra, ca, ra, ha, b, Rb, cb, rb, hb):
    """Both ends of a capsule, its side against the cylinder's, and against the rims."""
    e, zero = column(Ra, 2), (0.0, 0.0, 0.0)
    count = ball_cylinder(out, count, 0, a, axpy3(ha, e, ca), ra, b, Rb, cb, rb, hb)
    count = ball_cylinder(out, count, 1, a, axpy3(-ha, e, ca), ra, b, Rb, cb, rb, hb)
    count = segments(out, count, 2, a, ca, e, ha, ra, math.inf, b, cb, column(Rb, 2), hb, rb, hb)
    return segment_rim(out, count, 3, a, ca, e, ha, ra, zero, zero, b, Rb, cb, rb, hb)


@kernel
def over(x, n, deep, b_box, R, c, h, missed):
    """Whether a point, moved along the axis z of a face's frame R, c, meets it: a rectangle or a disc of size h.

    missed: whether also where it is nearer to another face.
    """
    if deep == math.inf:
        return True
    d = sub3(x, c)
    under = -dot3(n, d)
    if under > deep:
        return False
    y0, y1 = dot3(column(R, 0), d), dot3(column(R, 1), d)
    # how far it is within the border; a point in the solid must be nearer to this face than to those beside it
    within = min(h[0] - abs(y0), h[1] - abs(y1)) if b_box else h[0] - math.sqrt(y0 * y0 + y1 * y1)
    return within >= 0.0 and (missed or under <= within + FLAT * h[0])


@sweep
def rims_plane(out, count, feature, a, Ra, ca, ra, ha, b, xb, n, deep, b_box, R, h):
    """Both rims of a cylinder over a plane of b: a disc where it is tilted, else points of the rim.

    Only what lies over the face of frame R, middle xb and size h counts, and not deeper under it than ``deep``; all
    counts where that is infinite.
    """
    e = column(Ra, 2)
    c = dot3(n, e)
    low, _ = unit_or(axpy3(-c, e, n), column(Ra, 0))
    turn = cross(e, low)
    for k in range(2):
        m = axpy3(ha if k == 0 else -ha, e, ca)
        number = feature + (STAND + 1) * k
        if rolls(out, a, m, e, ra, b, n):
            x = axpy3(-ra, low, m)
            if over(x, n, deep, b_box, R, xb, h, out[8]):
                count = write(out, count, dot3(n, sub3(x, xb)), DISC, number, a, m, ra, e, b, xb, 0.0, n, 1.0)
        else:
            for j in range(STAND):
                angle = 2.0 * math.pi * j / STAND
                x = axpy3(-ra * math.cos(angle), low, axpy3(-ra * math.sin(angle), turn, m))
                if over(x, n, deep, b_box, R, xb, h, out[8]):
                    count = write_plane(out, count, number + 1 + j, a, x, 0.0, b, xb, n)
    return count


@kernel
def cylinder_normal(x, R, c, radius, half):
    """The normal of that part of a cylinder, side or cap, that a point x is at."""
    e, d = column(R, 2), sub3(x, c)
    z = dot3(e, d)
    u, rho = unit_or(axpy3(-z, e, d), column(R, 0))
    return u if rho - radius >= abs(z) - half else scale3(1.0 if z >= 0.0 else -1.0, e)


@sweep
def edge_cylinder(out, count, side, rims, b, x, eb, half, f, g, a, Ra, ca, ra, ha):
    """An edge of b (f, g as in ``box_edge``) against the side of a cylinder, feature ``side``, and its rims."""
    e = column(Ra, 2)
    s, t = nearest(ca, e, ha, x, eb, half)
    if abs(s) < ha and abs(t) < half:
        n, far = unit_or(sub3(axpy3(s, e, ca), axpy3(t, eb, x)), f)
        lean = LEAN if far - ra > -FLAT * ra else CONE
        if dot3(n, f) >= -lean and dot3(n, g) >= -lean:
            count = segments(out, count, side, a, ca, e, ha, ra, ha, b, x, eb, half, 0.0, math.inf)
    return segment_rim(out, count, rims, b, x, eb, half, 0.0, f, g, a, Ra, ca, ra, ha)


@sweep
def cylinder_box(out, count, a, Ra, ca, ra, ha, b, Rb, cb, hb):
    """Rims over the best face of the box, its corners at the cylinder, its edges at side and rims."""
    d, first = sub3(ca, cb), count
    # the face of the box that separates most
    best, face = -math.inf, 0
    for j in range(3):
        n = column(Rb, j)
        hj = hb[0] if j == 0 else (hb[1] if j == 1 else hb[2])
        apart = abs(dot3(n, d)) - hj - half_width(n, Ra, ra, ha)
        if apart > best:
            best, face = apart, j
    n = column(Rb, face)
    n = scale3(1.0 if dot3(n, d) >= 0.0 else -1.0, n)
    u, v = column(Rb, (face + 1) % 3), column(Rb, (face + 2) % 3)
    frame = (u[0], v[0], n[0], u[1], v[1], n[1], u[2], v[2], n[2])
    depth = hb[0] if face == 0 else (hb[1] if face == 1 else hb[2])
    hu = hb[1] if face == 0 else (hb[2] if face == 1 else hb[0])
    hv = hb[2] if face == 0 else (hb[0] if face == 1 else hb[1])
    xb = axpy3(depth, n, cb)
    count = rims_plane(out, count, 0, a, Ra, ca, ra, ha, b, xb, n, depth, True, frame, (hu, hv, 0.0))
    # corners
    for k in range(8):
        x = box_corner(Rb, cb, hb, k)
        # only those that look at the side or the cap they are at
        if dot3(sub3(x, cb), cylinder_normal(x, Ra, ca, ra, ha)) < 0.0:
            count = ball_cylinder(out, count, 20 + k, b, x, 0.0, a, Ra, ca, ra, ha)
    # edges
    for k in range(12):
        x, eb, half, f, g = box_edge(Rb, cb, hb, k)
        count = edge_cylinder(out, count, 30 + k, 50 + 4 * k, b, x, eb, half, f, g, a, Ra, ca, ra, ha)
    return without_false(out, first, count, True, a, Ra, ca, ra, ha, Rb, cb, 0.0, 0.0, hb)


@sweep
def rim_side(out, count, feature, a, Ra, ca, ra, ha, b, Rb, cb, rb, hb):
    """The rims of a cylinder against the side of another: the points of the rim that are nearest to its axis."""
    ea, eb = column(Ra, 2), column(Rb, 2)
    for k in range(2):
        side = 1.0 if k == 0 else -1.0
        m, cap = axpy3(side * ha, ea, ca), scale3(side, ea)
        last = m
        # a cap flat on the side touches with both ends of a chord: one search from each side
        for j in range(2):
            z = dot3(eb, sub3(m, cb)) + (ra if j == 0 else -ra)
            x, u = rim_point(m, ea, Ra, ra, axpy3(z, eb, cb))
            x, u, _ = rim_nearest_line(m, ea, ra, x, u, cb, eb)
            z = dot3(eb, sub3(x, cb))
            n, rho = unit_or(sub3(x, axpy3(z, eb, cb)), scale3(-1.0, u))
            moved = sub3(x, last)
            last = x
            # at the side, not under the cap
            inside = abs(z) < hb and (out[8] or rho - rb >= abs(z) - hb) and dot3(moved, moved) > 1e-4 * ra * ra
            # what lies nearly flat touches next at the other end
            lean = LEAN if rho - rb > -FLAT * rb else CONE
            if inside and dot3(n, cap) < lean and dot3(n, u) < lean:
                count = write_rim(out, count, feature + k + 2 * j, a, m, ea, ra, u, b, axpy3(z, eb, cb), rb, eb, n)
    return count


@sweep
def rim_rim(out, count, feature, a, Ra, ma, na, ra, b, Rb, mb, nb, rb, hb):
    """The rims of two caps (middles m, outward normals n) where they cross, as their tangents.

    The search starts from the points of the first rim in the plane of the second, or on the second circle where the
    caps lie on each other.
    """
    v, tilt = unit_or(axpy3(-dot3(nb, na), na, nb), column(Ra, 0))
    d = sub3(ma, mb)
    if tilt > TILT:
        # ma + ra (c v + s w) has the height of mb along nb
        c = -dot3(nb, d) / (ra * tilt)
        w = cross(na, v)
    else:
        # circles in one plane
        w, apart = unit_or(axpy3(-dot3(na, d), na, d), (0.0, 0.0, 0.0))
        if not apart > 1e-9 * rb:
            return count
        c = (rb * rb - ra * ra - apart * apart) / (2.0 * ra * apart)
        v, w = w, cross(na, w)
    if abs(c) > 1.0 + TILT:
        return count
    c = clip(c, 1.0)
    s = math.sqrt(1.0 - c * c)
    last = ma
    for k in range(2):
        ua = axpy3(c, v, scale3(s if k == 0 else -s, w))
        xa = axpy3(ra, ua, ma)
        xb, ub = rim_point(mb, nb, Rb, rb, xa)
        for _ in range(SEARCH):
            p, q = nearest(xa, cross(na, ua), ra, xb, cross(nb, ub), rb)
            xa, ua = rim_point(ma, na, Ra, ra, axpy3(p, cross(na, ua), xa))
            xb, ub = rim_point(mb, nb, Rb, rb, axpy3(q, cross(nb, ub), xb))
        ta, tb = cross(na, ua), cross(nb, ub)
        n, sine = unit_or(cross(ta, tb), nb)
        n = scale3(1.0 if dot3(n, add3(ub, nb)) >= 0.0 else -1.0, n)
        # out of both solids
        apart = min(min(dot3(n, ub), dot3(n, nb)), -max(dot3(n, ua), dot3(n, na)))
        # both searches may end at one place
        moved = sub3(xa, last)
        new = k == 0 or dot3(moved, moved) > 1e-6 * ra * ra
        last = xa
        away = dot3(n, sub3(xa, xb))
        lean = LEAN if away > -FLAT * rb else CONE
        if new and sine >= PARALLEL and apart >= -lean and not_past(away, xa, mb, nb, rb, 2.0 * hb):
            count = write_lines(out, count, feature + k, a, xa, 0.0, ta, b, xb, 0.0, tb, n)
    return count


@sweep
def cylinder_cylinder(out, count, a, Ra, ca, ra, ha, b, Rb, cb, rb, hb):
    """Side against side, rims over caps, rims against sides, rims that cross."""
    ea, eb, d, first = column(Ra, 2), column(Rb, 2), sub3(ca, cb), count
    count = segments(out, count, 0, a, ca, ea, ha, ra, ha, b, cb, eb, hb, rb, hb)
    c = cross(ea, eb)
    # ends side by side, where nearly parallel and not on top of each other: farther in along the axis than across it
    z = dot3(eb, d)
    across = max(0.0, ra + rb + min(0.0, abs(z) - ha - hb))
    beside = across * across
    if dot3(c, c) < PARALLEL * PARALLEL:
        for k in range(2):
            side = 1.0 if k == 0 else -1.0
            end = axpy3(side * ha, ea, ca)
            z = dot3(eb, sub3(end, cb))
            if abs(z) < hb and dot3(sub3(end, cb), sub3(end, cb)) - z * z > beside:
                count = write_line(out, count, 1 + k, a, end, ra, b, axpy3(z, eb, cb), rb, eb)
            end = axpy3(side * hb, eb, cb)
            z = dot3(ea, sub3(end, ca))
            if abs(z) < ha and dot3(sub3(end, ca), sub3(end, ca)) - z * z > beside:
                count = write_line(out, count, 3 + k, b, end, rb, a, axpy3(z, ea, ca), ra, ea)
    # the caps that look at each other
    na = scale3(-1.0 if dot3(ea, d) >= 0.0 else 1.0, ea)
    nb = scale3(1.0 if dot3(eb, d) >= 0.0 else -1.0, eb)
    ma, mb = axpy3(ha, na, ca), axpy3(hb, nb, cb)
    count = rims_plane(out, count, 100, a, Ra, ca, ra, ha, b, mb, nb, hb, False, Rb, (rb, 0.0, 0.0))
    count = rims_plane(out, count, 120, b, Rb, cb, rb, hb, a, ma, na, ha, False, Ra, (ra, 0.0, 0.0))
    for k in range(4):
        pa, pb = scale3(1.0 if k % 2 == 0 else -1.0, ea), scale3(1.0 if k < 2 else -1.0, eb)
        qa, qb = axpy3(ha, pa, ca), axpy3(hb, pb, cb)
        count = rim_rim(out, count, 30 + 2 * k, a, Ra, qa, pa, ra, b, Rb, qb, pb, rb, hb)
    count = rim_side(out, count, 40, a, Ra, ca, ra, ha, b, Rb, cb, rb, hb)
    count = rim_side(out, count, 50, b, Rb, cb, rb, hb, a, Ra, ca, ra, ha)
    return without_false(out, first, count, False, a, Ra, ca, ra, ha, Rb, cb, rb, hb, (0.0, 0.0, 0.0))
