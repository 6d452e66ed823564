"""Contacts of two convex hulls, and of a ball with one.

As with two boxes, the faces that separate most look at each other along the normal n of one of them, and overlap in a
polygon whose corners are the contacts: corners of one face over the other, and edges that cross. Where two edges
separate more than every face, they are a contact as well; they are the nearest features of the hulls (``contact.gjk``).
Hulls that overlap are shrunk until they do not; those that still do touch by the face of least penetration alone.
Where the faces of hulls that overlap do not lie over each other, and no edges cross, the deepest corner below that face
is the contact: what overlaps always has one.

    pose      row, rotation and position of the row of a hull
    o, i      the hull with the reference face (normal n outward) and the other, with its incident face (normal m)
    y         a point of the other hull: no face can separate more than it is above it, so most need no search
    chosen    numbers of the corners of the polygon that are kept where it has more than MOST
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.boxes import LOOSE
from leastaction.contact.gap import unit_or
from leastaction.contact.gjk import corner_at, nearest_hulls, support_corner
from leastaction.contact.layout import COUNT_Y, FIRST, REACH, ROW
from leastaction.contact.shapes import (
    PARALLEL,
    shape_pose,
    write_line,
    write_lines,
    write_plane,
    write_points,
)
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matvec, scale3, sub3, tmatvec

MOST = 8
"""Contacts of two faces that are kept: the deepest, and the farthest along seven directions."""

SHRUNK, SHRINKS = 0.03, 4
"""Part by which hulls that overlap are shrunk, three times as much each time, to see which edges are nearest."""

CORNERS, EDGES = 1 << 10, 1 << 14
"""More than the corners and edges of a hull can be."""


@kernel
def hull_pose(contacts, s, P):
    """Row of shape s, and its rotation and position about the origin."""
    i = contacts.shapes[s, ROW]
    return i, row9(P, i, 0), row3(P, i, 9)


@kernel
def plane_of(contacts, f, pose):
    """Normal of face f, and the offset n . x of its points about the origin."""
    n = matvec(pose[1], row3(contacts.hulls.planes, f, 0))
    return n, contacts.hulls.planes[f, 3] + dot3(n, pose[2])


@kernel
def edge_of(contacts, e, pose):
    """Both ends of edge e."""
    return corner_at(contacts, contacts.hulls.edges[e, 0], pose), corner_at(contacts, contacts.hulls.edges[e, 1], pose)


@kernel
def beyond_edge(contacts, k, pose, n, x, f):
    """How far x is outside the edge in row k of the loops of face f, seen along n, times the length of the edge."""
    first, count = contacts.hulls.faces[f, 0], contacts.hulls.faces[f, 1]
    p = corner_at(contacts, contacts.hulls.loops[k, 0], pose)
    q = corner_at(contacts, contacts.hulls.loops[first + (k - first + 1) % count, 0], pose)
    e = sub3(q, p)
    return dot3(cross(e, n), sub3(x, p)), p, e


@sweep
def over_face(contacts, f, pose, n, x, side, loose):
    """Whether x, moved along n, meets the face f; side is -1 where the face looks against n."""
    first = contacts.hulls.faces[f, 0]
    for k in range(first, first + contacts.hulls.faces[f, 1]):
        out, _, e = beyond_edge(contacts, k, pose, n, x, f)
        if side * out > loose * math.sqrt(dot3(e, e)):
            return False
    return True


@sweep
def best_hull_face(contacts, so, one, si, two, y):
    """Separation along the best face of a hull from another, and that face."""
    spans, planes = contacts.hulls.spans, contacts.hulls.planes
    h = contacts.shapes[so, COUNT_Y]
    z = tmatvec(one[1], sub3(y, one[2]))
    # the face that y is highest above comes first
    highest, face = -math.inf, spans[h, 0]
    for f in range(spans[h, 0], spans[h, 0] + spans[h, 1]):
        up = dot3(row3(planes, f, 0), z) - planes[f, 3]
        if up > highest:
            highest, face = up, f
    best, start = -math.inf, face
    for turn in range(-1, spans[h, 1]):
        f = start if turn < 0 else spans[h, 0] + turn
        if turn >= 0 and (f == start or not dot3(row3(planes, f, 0), z) - planes[f, 3] > best):
            continue
        n, offset = plane_of(contacts, f, one)
        low = corner_at(contacts, support_corner(contacts, si, two[1], scale3(-1.0, n)), two)
        gap = dot3(n, low) - offset
        if gap > best:
            best, face = gap, f
    return best, face


@kernel
def incident_face(contacts, s, pose, n):
    """The face of a hull that looks most against n."""
    m, h = tmatvec(pose[1], n), contacts.shapes[s, COUNT_Y]
    best, face = math.inf, contacts.hulls.spans[h, 0]
    for f in range(contacts.hulls.spans[h, 0], contacts.hulls.spans[h, 0] + contacts.hulls.spans[h, 1]):
        c = dot3(m, row3(contacts.hulls.planes, f, 0))
        if c < best - 1e-9:
            best, face = c, f
    return face


# --- the polygon in which two faces overlap -------------------------------------------------------------------------
@sweep
def noticed(state, x, gap):
    """One more corner of the polygon at x (relative to its middle) with its gap: who is farthest, and who deepest."""
    n, far, chosen, u, v = state
    p, q = dot3(u, x), dot3(v, x)
    # cosines and sines of one, two and three sevenths of a turn
    a, b, c = 0.6234898018587336, 0.7818314824680298, -0.2225209339563144
    d, e, f = 0.9749279121818236, -0.9009688679024191, 0.4338837391175582
    s = (p, a * p + b * q, c * p + d * q, e * p + f * q, e * p - f * q, c * p - d * q, a * p - b * q, -gap)
    more = (
        s[0] > far[0], s[1] > far[1], s[2] > far[2], s[3] > far[3], s[4] > far[4], s[5] > far[5], s[6] > far[6],
        s[7] > far[7],
    )  # fmt: skip
    chosen = (
        n if more[0] else chosen[0], n if more[1] else chosen[1], n if more[2] else chosen[2],
        n if more[3] else chosen[3], n if more[4] else chosen[4], n if more[5] else chosen[5],
        n if more[6] else chosen[6], n if more[7] else chosen[7],
    )  # fmt: skip
    far = (
        max(s[0], far[0]), max(s[1], far[1]), max(s[2], far[2]), max(s[3], far[3]), max(s[4], far[4]),
        max(s[5], far[5]), max(s[6], far[6]), max(s[7], far[7]),
    )  # fmt: skip
    return n + 1, far, chosen, u, v


@kernel
def is_kept(number, total, chosen):
    """Whether a corner of the polygon is one of those that are kept."""
    if total <= MOST:
        return True
    found = False
    for k in range(MOST):
        found = found or chosen[k] == number
    return found


@sweep
def polygon(contacts, out, count, swapped, o, fo, i, fi, n, state, total):
    """Corners of the polygon of two faces, noticed where ``total`` is negative, else written; count and state."""
    one, two, chosen = o[1], i[1], state[2]
    _, off_o = plane_of(contacts, fo, one)
    m, off_i = plane_of(contacts, fi, two)
    faces, loops = contacts.hulls.faces, contacts.hulls.loops
    loose_o, loose_i = LOOSE * contacts.frames[o[0], REACH], LOOSE * contacts.frames[i[0], REACH]
    first_o, first_i = faces[fo, 0], faces[fi, 0]
    base_o, base_i = contacts.shapes[o[0], FIRST], contacts.shapes[i[0], FIRST]
    xo, xi = corner_at(contacts, loops[first_o, 0], one), corner_at(contacts, loops[first_i, 0], two)
    number, inside, within = 0, 0, 0
    start_o, start_i = (0, CORNERS) if swapped else (CORNERS, 0)
    # corners of the incident face over the reference face
    for k in range(first_i, first_i + faces[fi, 1]):
        x = corner_at(contacts, loops[k, 0], two)
        if over_face(contacts, fo, one, n, x, 1.0, loose_o):
            inside += 1
            if total < 0:
                state = noticed(state, sub3(x, xo), dot3(n, x) - off_o)
            elif is_kept(number, total, chosen):
                count = write_plane(out, count, start_i + loops[k, 0] - base_i, two[0], x, 0.0, one[0], xo, n)
            number += 1
    if inside == faces[fi, 1]:
        return count, state
    # corners of the reference face over the incident face, seen along n
    for k in range(first_o, first_o + faces[fo, 1]):
        x = corner_at(contacts, loops[k, 0], one)
        if over_face(contacts, fi, two, n, x, -1.0, loose_i):
            within += 1
            if total < 0:
                state = noticed(state, sub3(x, xo), dot3(m, x) - off_i)
            elif is_kept(number, total, chosen):
                count = write_plane(out, count, start_o + loops[k, 0] - base_o, one[0], x, 0.0, two[0], xi, m)
            number += 1
    if within == faces[fo, 1] and inside == 0:
        return count, state
    # edges that cross, seen along n
    for k in range(first_i, first_i + faces[fi, 1]):
        p = corner_at(contacts, loops[k, 0], two)
        q = corner_at(contacts, loops[first_i + (k - first_i + 1) % faces[fi, 1], 0], two)
        for l in range(first_o, first_o + faces[fo, 1]):
            s0, c, eb = beyond_edge(contacts, l, one, n, p, fo)
            s1, _, _ = beyond_edge(contacts, l, one, n, q, fo)
            ea = sub3(q, p)
            t0, t1 = dot3(cross(ea, n), sub3(c, p)), dot3(cross(ea, n), sub3(add3(c, eb), p))
            if not (s0 * s1 < 0.0 and t0 * t1 < 0.0):
                continue
            xa, xb = axpy3(s0 / (s0 - s1), ea, p), axpy3(t0 / (t0 - t1), eb, c)
            if total < 0:
                state = noticed(state, sub3(xa, xo), dot3(n, sub3(xa, xb)))
            elif is_kept(number, total, chosen):
                ea, _ = unit_or(ea, n)
                eb, _ = unit_or(eb, n)
                feature = 2 * CORNERS + edge_pair(contacts, o[0], loops[l, 1], i[0], loops[k, 1], swapped)
                count = write_lines(out, count, feature, two[0], xa, 0.0, ea, one[0], xb, 0.0, eb, n)
            number += 1
    return count, state


@kernel
def edge_pair(contacts, so, eo, si, ei, swapped):
    """Number of an edge of o and one of i, of which o is the first hull of the pair where they are swapped."""
    ko = eo - contacts.hulls.spans[contacts.shapes[so, COUNT_Y], 2]
    ki = ei - contacts.hulls.spans[contacts.shapes[si, COUNT_Y], 2]
    return ko * EDGES + ki if swapped else ki * EDGES + ko


@sweep
def hull_faces(contacts, out, count, swapped, so, one, fo, si, two):
    """Contacts of the face fo of hull o that looks at hull i."""
    n, _ = plane_of(contacts, fo, one)
    fi = incident_face(contacts, si, two, n)
    # two directions in the face, fixed to it
    first = contacts.hulls.faces[fo, 0]
    _, _, e = beyond_edge(contacts, first, one, n, (0.0, 0.0, 0.0), fo)
    u, _ = unit_or(e, n)
    none, low = (-1, -1, -1, -1, -1, -1, -1, -1), -math.inf
    state = (0, (low, low, low, low, low, low, low, low), none, u, cross(n, u))
    _, state = polygon(contacts, out, count, swapped, (so, one), fo, (si, two), fi, n, state, -1)
    count, _ = polygon(contacts, out, count, swapped, (so, one), fo, (si, two), fi, n, state, state[0])
    return count


@sweep
def deepest_corner(contacts, out, count, swapped, so, one, fo, si, two):
    """The corner of hull i that is deepest below the face fo of hull o."""
    n, _ = plane_of(contacts, fo, one)
    c = support_corner(contacts, si, two[1], scale3(-1.0, n))
    feature = (CORNERS if swapped else 0) + c - contacts.shapes[si, FIRST]
    x, xo = corner_at(contacts, c, two), corner_at(contacts, contacts.hulls.loops[contacts.hulls.faces[fo, 0], 0], one)
    return write_plane(out, count, feature, two[0], x, 0.0, one[0], xo, n)


# --- edges ----------------------------------------------------------------------------------------------------------
@kernel
def two_of(n, ids):
    """The two different numbers among the first n, or -1 where there are fewer or more."""
    p, q, many = ids[0], -1, False
    for k in range(1, n):
        if ids[k] != p and q < 0:
            q = ids[k]
        many = many or (ids[k] != p and ids[k] != q)
    return p, -1 if many else q


@sweep
def edge_between(contacts, s, p, q):
    """The edge between two corners of a hull, or -1."""
    h = contacts.shapes[s, COUNT_Y]
    for e in range(contacts.hulls.spans[h, 2], contacts.hulls.spans[h, 2] + contacts.hulls.spans[h, 3]):
        i, j = contacts.hulls.edges[e, 0], contacts.hulls.edges[e, 1]
        if (i == p and j == q) or (i == q and j == p):
            return e
    return -1


@sweep
def nearest_edges(contacts, out, count, sa, one, sb, two, near, toward, face_gap):
    """The two edges that are nearest, if they separate more than every face and they cross.

    near: as of ``nearest_hulls``. toward: from b to a.
    """
    _, n, ia, ib, _ = near
    p, q = two_of(n, ia)
    r, s = two_of(n, ib)
    if q < 0 or s < 0:
        return count
    e, f = edge_between(contacts, sa, p, q), edge_between(contacts, sb, r, s)
    if e < 0 or f < 0:
        return count
    (p0, p1), (q0, q1) = edge_of(contacts, e, one), edge_of(contacts, f, two)
    ea, la = unit_or(sub3(p1, p0), toward)
    eb, lb = unit_or(sub3(q1, q0), toward)
    n, sine = unit_or(cross(ea, eb), toward)
    if sine < PARALLEL:
        return count
    n = scale3(1.0 if dot3(n, toward) >= 0.0 else -1.0, n)
    # nothing of either hull is beyond its edge
    size = contacts.frames[sa, REACH]
    far_a = dot3(n, corner_at(contacts, support_corner(contacts, sa, one[1], scale3(-1.0, n)), one))
    far_b = dot3(n, corner_at(contacts, support_corner(contacts, sb, two[1], n), two))
    if far_a < dot3(n, p0) - LOOSE * size or far_b > dot3(n, q0) + LOOSE * size:
        return count
    if dot3(n, sub3(p0, q0)) <= face_gap + LOOSE * size:
        return count
    # they cross where both closest points lie within the edges
    d, w = sub3(p0, q0), dot3(ea, eb)
    x = (w * dot3(eb, d) - dot3(ea, d)) / (1.0 - w * w)
    y = dot3(eb, d) + w * x
    if not (0.0 <= x <= la and 0.0 <= y <= lb):
        return count
    feature = 2 * CORNERS + EDGES * EDGES + edge_pair(contacts, sa, e, sb, f, True)
    return write_lines(out, count, feature, one[0], axpy3(x, ea, p0), 0.0, ea, two[0], axpy3(y, eb, q0), 0.0, eb, n)


@sweep
def hull_hull(contacts, out, count, sa, sb):
    """All contacts of two hulls."""
    one, two = hull_pose(contacts, sa, out[2]), hull_pose(contacts, sb, out[2])
    _, _, ca = shape_pose(contacts, sa, out[2])
    _, _, cb = shape_pose(contacts, sb, out[2])
    near = nearest_hulls(contacts, sa, one, ca, sb, two, cb, 1.0, out[3])
    if near[1] == 0:
        return count
    less, first, overlap = SHRUNK, count, near[1] < 0
    for _ in range(SHRINKS):
        if near[1] < 0:
            near = nearest_hulls(contacts, sa, one, ca, sb, two, cb, 1.0 - less, math.inf)
            less *= 3.0
    # a point of each that shows which faces are not the best
    xa, xb = ca, cb
    if near[1] > 0:
        xa, xb = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for k in range(near[1]):
            xa = axpy3(near[4][k], corner_at(contacts, near[2][k], one), xa)
            xb = axpy3(near[4][k], corner_at(contacts, near[3][k], two), xb)
    gap_a, face_a = best_hull_face(contacts, sa, one, sb, two, xb)
    gap_b, face_b = best_hull_face(contacts, sb, two, sa, one, xa)
    # a face of b is preferred where both are as good
    swapped = gap_a > gap_b + LOOSE * contacts.frames[sa, REACH]
    if swapped:
        count = hull_faces(contacts, out, count, True, sa, one, face_a, sb, two)
    else:
        count = hull_faces(contacts, out, count, False, sb, two, face_b, sa, one)
    if near[1] > 0:
        count = nearest_edges(contacts, out, count, sa, one, sb, two, near, near[0], max(gap_a, gap_b))
    if overlap and count == first:
        if swapped:
            return deepest_corner(contacts, out, count, True, sa, one, face_a, sb, two)
        return deepest_corner(contacts, out, count, False, sb, two, face_b, sa, one)
    return count


# --- balls ----------------------------------------------------------------------------------------------------------
@kernel
def cone_of_edge(contacts, e, pose):
    """Of edge e: middle, direction, half length, and f, g as in ``contact.round.box_edge``."""
    p, q = edge_of(contacts, e, pose)
    u, length = unit_or(sub3(q, p), (0.0, 0.0, 1.0))
    n, _ = plane_of(contacts, contacts.hulls.edges[e, 2], pose)
    m, _ = plane_of(contacts, contacts.hulls.edges[e, 3], pose)
    c = dot3(n, m)
    f, _ = unit_or(axpy3(-c, n, m), m)
    g, _ = unit_or(axpy3(-c, m, n), n)
    return scale3(0.5, add3(p, q)), u, 0.5 * length, f, g


@sweep
def ball_hull(contacts, out, count, feature, a, x, r, s):
    """A ball against a hull: its nearest face, edge or corner."""
    pose, hulls, h = hull_pose(contacts, s, out[2]), contacts.hulls, contacts.shapes[s, COUNT_Y]
    z = tmatvec(pose[1], sub3(x, pose[2]))
    first, faces = hulls.spans[h, 0], hulls.spans[h, 1]
    best, face = -math.inf, first
    for f in range(first, first + faces):
        up = dot3(row3(hulls.planes, f, 0), z) - hulls.planes[f, 3]
        if up > best:
            best, face = up, f
    if best > r + out[3]:
        return count
    # inside, or over a face
    for f in range(first, first + faces):
        n, offset = plane_of(contacts, f, pose)
        if f == face if best <= 0.0 else (dot3(n, x) > offset and over_face(contacts, f, pose, n, x, 1.0, 0.0)):
            y = corner_at(contacts, hulls.loops[hulls.faces[f, 0], 0], pose)
            return write_plane(out, count, feature, a, x, r, pose[0], y, n)
    if not r > 0.0:
        return count
    # the nearest edge or corner
    near, edge, foot, along = math.inf, -1, x, x
    for e in range(hulls.spans[h, 2], hulls.spans[h, 2] + hulls.spans[h, 3]):
        p, q = edge_of(contacts, e, pose)
        u, length = unit_or(sub3(q, p), (0.0, 0.0, 1.0))
        t = dot3(u, sub3(x, p))
        y = axpy3(min(max(t, 0.0), length), u, p)
        d = sub3(x, y)
        if dot3(d, d) < near:
            near, edge, foot, along = dot3(d, d), 1 if 0.0 < t < length else 0, y, u
    if edge == 1:
        return write_line(out, count, feature, a, x, r, pose[0], foot, 0.0, along)
    return write_points(out, count, feature, a, x, r, pose[0], foot, 0.0)
