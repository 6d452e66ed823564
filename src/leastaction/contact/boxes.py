"""Contacts of two boxes.

The axis of largest separation is found among the normals of the faces and the products of edges (separating axis
theorem). Along the best face normal n the two faces that look at each other overlap in a polygon of at most eight
corners, and each corner is one contact: a corner of one box over the face of the other, or two edges that cross. Where
a product of edges separates more than any face, those two edges are a contact as well.

    R, c, h   rotation, centre and half sides of a box; D = ca - cb
    o, i      the box with the reference face (normal n outward) and the other, with its incident face (normal m)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.shapes import PARALLEL, column, write_lines, write_plane
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, scale3, sub3

LOOSE = 1e-6
"""Corners this far outside a face, relative to its size, still count as over it."""


@kernel
def part(v, j):
    """Entry j of a 3-vector."""
    return v[0] if j == 0 else (v[1] if j == 1 else v[2])


@kernel
def extent(n, R, h):
    """Half width of a box along n."""
    return h[0] * abs(dot3(n, column(R, 0))) + h[1] * abs(dot3(n, column(R, 1))) + h[2] * abs(dot3(n, column(R, 2)))


@sweep
def best_face(R, h, D, R2, h2):
    """Separation along the best face of a box (D from its centre to the other's), and that face's axis."""
    best, axis = -math.inf, 0
    for j in range(3):
        n = column(R, j)
        gap = abs(dot3(n, D)) - part(h, j) - extent(n, R2, h2)
        if gap > best:
            best, axis = gap, j
    return best, axis


@kernel
def sign_of(x):
    """1 or -1."""
    return 1.0 if x >= 0.0 else -1.0


@sweep
def edge_contact(out, count, a, Ra, ca, ha, b, Rb, cb, hb, face_gap):
    """The pair of edges that separates most, if it does so more than every face and they cross."""
    D = sub3(ca, cb)
    best, p, q = face_gap + LOOSE * (ha[0] + ha[1] + ha[2]), -1, -1
    for i in range(3):
        for j in range(3):
            n = cross(column(Ra, i), column(Rb, j))
            s = math.sqrt(dot3(n, n))
            if s < PARALLEL:
                continue
            n = scale3(1.0 / s, n)
            gap = abs(dot3(n, D)) - extent(n, Ra, ha) - extent(n, Rb, hb)
            if gap > best:
                best, p, q = gap, i, j
    if p < 0:
        return count
    # the two edges that look at each other: their middles
    ea, eb = column(Ra, p), column(Rb, q)
    n = cross(ea, eb)
    n = scale3(sign_of(dot3(n, D)), n)
    xa, xb = ca, cb
    number = 0
    for j in range(3):
        if j != p:
            side = -sign_of(dot3(n, column(Ra, j)))
            xa = axpy3(side * part(ha, j), column(Ra, j), xa)
            number = 2 * number + (1 if side > 0.0 else 0)
        if j != q:
            side = sign_of(dot3(n, column(Rb, j)))
            xb = axpy3(side * part(hb, j), column(Rb, j), xb)
            number = 2 * number + (1 if side > 0.0 else 0)
    # they cross where both closest points lie within the edges
    d, w = sub3(xa, xb), dot3(ea, eb)
    s = (w * dot3(eb, d) - dot3(ea, d)) / (1.0 - w * w)
    t = dot3(eb, d) + w * s
    if abs(s) > part(ha, p) or abs(t) > part(hb, q):
        return count
    feature = 100 + 16 * (3 * p + q) + number
    return write_lines(out, count, feature, a, axpy3(s, ea, xa), 0.0, ea, b, axpy3(t, eb, xb), 0.0, eb, n)


@kernel
def corner_side(k):
    """Signs of corner k of a face, in order around it."""
    return (1.0 if k == 0 or k == 3 else -1.0), (1.0 if k < 2 else -1.0)


@sweep
def face_contacts(out, count, swapped, o, Ro, co, ho, j, i, Ri, ci, hi):
    """Contacts of the face j of box o that looks at box i: corners of the polygon in which two faces overlap."""
    n = scale3(sign_of(dot3(column(Ro, j), sub3(ci, co))), column(Ro, j))
    # the incident face
    k0, k1, k2 = abs(dot3(n, column(Ri, 0))), abs(dot3(n, column(Ri, 1))), abs(dot3(n, column(Ri, 2)))
    l = 0 if k0 >= k1 and k0 >= k2 else (1 if k1 >= k2 else 2)
    m = scale3(-sign_of(dot3(n, column(Ri, l))), column(Ri, l))
    # both faces: middles, half edges
    xo, xi = axpy3(part(ho, j), n, co), axpy3(part(hi, l), m, ci)
    j1, j2, l1, l2 = (j + 1) % 3, (j + 2) % 3, (l + 1) % 3, (l + 2) % 3
    u, v, hu, hv = column(Ro, j1), column(Ro, j2), part(ho, j1), part(ho, j2)
    p, q = scale3(part(hi, l1), column(Ri, l1)), scale3(part(hi, l2), column(Ri, l2))
    start = 400 if swapped else 0
    # corners of the incident face over the reference face
    inside = 0
    for k in range(4):
        s, t = corner_side(k)
        x = add3(xi, add3(scale3(s, p), scale3(t, q)))
        d = sub3(x, xo)
        if abs(dot3(u, d)) <= hu * (1.0 + LOOSE) and abs(dot3(v, d)) <= hv * (1.0 + LOOSE):
            inside += 1
            count = write_plane(out, count, start + 4 * l + k, i, x, 0.0, o, xo, n)
    if inside == 4:
        return count
    # corners of the reference face over the incident face, seen along n
    d0 = sub3(xo, xi)
    px, py, qx, qy = dot3(u, p), dot3(v, p), dot3(u, q), dot3(v, q)
    det = px * qy - py * qx
    within = 0
    for k in range(4):
        s, t = corner_side(k)
        dx, dy = dot3(u, d0) + s * hu, dot3(v, d0) + t * hv
        if abs(dx * qy - dy * qx) <= abs(det) * (1.0 + LOOSE) and abs(px * dy - py * dx) <= abs(det) * (1.0 + LOOSE):
            within += 1
            x = add3(xo, add3(scale3(s * hu, u), scale3(t * hv, v)))
            count = write_plane(out, count, start + 20 + 4 * j + k, o, x, 0.0, i, xi, m)
    if within == 4 and inside == 0:
        return count
    return crossings(out, count, start + 40, o, xo, n, u, v, hu, hv, i, xi, p, q)


@sweep
def crossings(out, count, start, o, xo, n, u, v, hu, hv, i, xi, p, q):
    """Edges of the incident face that cross edges of the reference face, seen along n."""
    d = sub3(xi, xo)
    for k in range(4):
        # edge of the incident face: middle (dx, dy), half edge (ex, ey), in the axes of the reference face
        side = 1.0 if k < 2 else -1.0
        half, off = (p, scale3(side, q)) if k % 2 == 0 else (q, scale3(side, p))
        middle = add3(d, off)
        dx, dy, ex, ey = dot3(u, middle), dot3(v, middle), dot3(u, half), dot3(v, half)
        ea = scale3(1.0 / math.sqrt(dot3(half, half)), half)
        for c in range(4):
            side = 1.0 if c < 2 else -1.0
            along_u = c % 2 == 0
            # where it meets the line of the reference edge
            rate, miss = (ey, side * hv - dy) if along_u else (ex, side * hu - dx)
            if abs(miss) >= abs(rate):
                continue
            s = miss / rate
            place = dx + s * ex if along_u else dy + s * ey
            if abs(place) >= (hu if along_u else hv):
                continue
            xa = add3(xo, axpy3(s, half, middle))
            eb = u if along_u else v
            xb = add3(xo, add3(scale3(place, u), scale3(side * hv, v)) if along_u else
                      add3(scale3(side * hu, u), scale3(place, v)))  # fmt: skip
            count = write_lines(out, count, start + 4 * k + c, i, xa, 0.0, ea, o, xb, 0.0, eb, n)
    return count


@sweep
def box_box(out, count, a, Ra, ca, ha, b, Rb, cb, hb):
    """All contacts of two boxes."""
    D = sub3(ca, cb)
    gap_a, face_a = best_face(Ra, ha, D, Rb, hb)
    gap_b, face_b = best_face(Rb, hb, D, Ra, ha)
    # a face of b is preferred where both are as good
    if gap_a > gap_b + LOOSE * (ha[0] + ha[1] + ha[2]):
        count = face_contacts(out, count, True, a, Ra, ca, ha, face_a, b, Rb, cb, hb)
    else:
        count = face_contacts(out, count, False, b, Rb, cb, hb, face_b, a, Ra, ca, ha)
    return edge_contact(out, count, a, Ra, ca, ha, b, Rb, cb, hb, max(gap_a, gap_b))
