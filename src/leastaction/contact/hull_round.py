"""Contacts of capsules and cylinders with convex hulls: as with a box, but for the number of faces, edges and corners.

a is the row of the capsule or cylinder; pose: row, rotation and position of the row of the hull.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.depth import drop_deeper, half_width
from leastaction.contact.gap import gap, unit_or
from leastaction.contact.gjk import corner_at, support_corner
from leastaction.contact.hulls import CORNERS, EDGES, ball_hull, cone_of_edge, hull_pose, over_face, plane_of
from leastaction.contact.layout import COUNT, COUNT_Y, DISC, FIRST, REACH, SIZE
from leastaction.contact.round import cylinder_normal, edge_cylinder, nearest, segment_edge
from leastaction.contact.shapes import (
    FLAT,
    STAND,
    ball_cylinder,
    column,
    rolls,
    shape_pose,
    write,
    write_line,
    write_plane,
)
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import axpy3, cross, dot3, scale3, sub3


@kernel
def near_segment(x, e, half, c, axis, length, far):
    """Whether a segment comes nearer to another, with middle c, than ``far``."""
    s, t = nearest(c, axis, length, x, e, half)
    d = sub3(axpy3(s, axis, c), axpy3(t, e, x))
    return dot3(d, d) <= far * far


@sweep
def capsule_hull(contacts, out, count, sa, sb):
    """Both ends of a capsule, its side against the edges of the hull, and corners at its side."""
    a, Ra, ca = shape_pose(contacts, sa, out[2])
    e, ra, ha = column(Ra, 2), contacts.frames[sa, SIZE], contacts.frames[sa, SIZE + 1]
    pose, h = hull_pose(contacts, sb, out[2]), contacts.shapes[sb, COUNT_Y]
    count = ball_hull(contacts, out, count, 0, a, axpy3(ha, e, ca), ra, sb)
    count = ball_hull(contacts, out, count, 1, a, axpy3(-ha, e, ca), ra, sb)
    first = contacts.hulls.spans[h, 2]
    for k in range(first, first + contacts.hulls.spans[h, 3]):
        x, eb, half, f, g = cone_of_edge(contacts, k, pose)
        if near_segment(x, eb, half, ca, e, ha, ra + out[3]):
            feature = CORNERS + k - first
            count = segment_edge(out, count, feature, a, ca, e, ha, ra, pose[0], x, eb, half, f, g)
    # corners at the side of the capsule, where it looks away from the hull
    first = contacts.shapes[sb, FIRST]
    for k in range(first, first + contacts.shapes[sb, COUNT]):
        x = corner_at(contacts, k, pose)
        z = dot3(e, sub3(x, ca))
        n, far = unit_or(sub3(axpy3(z, e, ca), x), e)
        if abs(z) < ha and far <= ra + out[3]:
            top = corner_at(contacts, support_corner(contacts, sb, pose[1], n), pose)
            if dot3(n, sub3(top, x)) <= FLAT * contacts.frames[sb, REACH]:
                count = write_line(out, count, 2 + k - first, pose[0], x, 0.0, a, axpy3(z, e, ca), ra, e)
    return count


@sweep
def over_hull(contacts, s, face, pose, n, offset, x, deep, missed):
    """Whether a point, moved along the normal of a face, meets it; in the hull it must be nearest to this face.

    missed: whether also where it is nearer to another.
    """
    up = dot3(n, x) - offset
    if -up > deep or not over_face(contacts, face, pose, n, x, 1.0, 0.0):
        return False
    if up >= 0.0 or missed:
        return True
    h = contacts.shapes[s, COUNT_Y]
    for f in range(contacts.hulls.spans[h, 0], contacts.hulls.spans[h, 0] + contacts.hulls.spans[h, 1]):
        m, other = plane_of(contacts, f, pose)
        if dot3(m, x) - other > up + FLAT * contacts.frames[s, REACH]:
            return False
    return True


@sweep
def rims_face(contacts, out, count, a, Ra, ca, ra, ha, s, face, pose):
    """Both rims of a cylinder over a face of a hull; see ``contact.round.rims_plane``."""
    n, offset = plane_of(contacts, face, pose)
    xb = corner_at(contacts, contacts.hulls.loops[contacts.hulls.faces[face, 0], 0], pose)
    _, _, cb = shape_pose(contacts, s, out[2])
    deep = offset - dot3(n, cb)
    e = column(Ra, 2)
    low, _ = unit_or(axpy3(-dot3(n, e), e, n), column(Ra, 0))
    turn = cross(e, low)
    for k in range(2):
        m = axpy3(ha if k == 0 else -ha, e, ca)
        number = (STAND + 1) * k
        if rolls(out, a, m, e, ra, pose[0], n):
            x = axpy3(-ra, low, m)
            if over_hull(contacts, s, face, pose, n, offset, x, deep, out[8]):
                apart = dot3(n, x) - offset
                count = write(out, count, apart, DISC, number, a, m, ra, e, pose[0], xb, 0.0, n, 1.0)
        else:
            for j in range(STAND):
                angle = 2.0 * math.pi * j / STAND
                x = axpy3(-ra * math.cos(angle), low, axpy3(-ra * math.sin(angle), turn, m))
                if over_hull(contacts, s, face, pose, n, offset, x, deep, out[8]):
                    count = write_plane(out, count, number + 1 + j, a, x, 0.0, pose[0], xb, n)
    return count


@sweep
def without_false_of_hull(contacts, out, first, count, a, Ra, ca, ra, ha, s, pose):
    """As ``contact.depth.without_false``, for a cylinder a and a hull."""
    ints, floats, P = out[0], out[1], out[2]
    best, deepest = -math.inf, math.inf
    for k in range(first, count):
        i, j = ints[k, 1], ints[k, 2]
        found = gap(ints[k, 0], floats, k, row9(P, i, 0), row3(P, i, 9), row9(P, j, 0), row3(P, j, 9))
        # from the hull to the cylinder, whichever of them the contact names first
        n, deepest = scale3(1.0 if i == a else -1.0, found[1]), min(deepest, found[0])
        top = corner_at(contacts, support_corner(contacts, s, pose[1], n), pose)
        best = max(best, dot3(n, sub3(ca, top)) - half_width(n, Ra, ra, ha))
    return drop_deeper(out, first, count, min(0.0, 2.0 * best) - 1e-4 * ra, deepest)


@sweep
def cylinder_hull(contacts, out, count, sa, sb):
    """Rims over the best face of the hull, its corners at the cylinder, its edges at side and rims."""
    a, Ra, ca = shape_pose(contacts, sa, out[2])
    ra, ha, e = contacts.frames[sa, SIZE], contacts.frames[sa, SIZE + 1], column(Ra, 2)
    pose, h = hull_pose(contacts, sb, out[2]), contacts.shapes[sb, COUNT_Y]
    spans, first = contacts.hulls.spans, count
    # the face that separates most
    best, face = -math.inf, spans[h, 0]
    for f in range(spans[h, 0], spans[h, 0] + spans[h, 1]):
        n, offset = plane_of(contacts, f, pose)
        apart = dot3(n, ca) - offset - half_width(n, Ra, ra, ha)
        if apart > best:
            best, face = apart, f
    if best > out[3]:
        return count
    count = rims_face(contacts, out, count, a, Ra, ca, ra, ha, sb, face, pose)
    # corners that look at the side or the cap they are at
    _, _, cb = shape_pose(contacts, sb, out[2])
    start = contacts.shapes[sb, FIRST]
    for k in range(start, start + contacts.shapes[sb, COUNT]):
        x = corner_at(contacts, k, pose)
        if dot3(sub3(x, cb), cylinder_normal(x, Ra, ca, ra, ha)) < 0.0:
            count = ball_cylinder(out, count, CORNERS + k - start, pose[0], x, 0.0, a, Ra, ca, ra, ha)
    # edges
    start = spans[h, 2]
    for k in range(start, start + spans[h, 3]):
        x, eb, half, f, g = cone_of_edge(contacts, k, pose)
        if near_segment(x, eb, half, ca, e, ha, ra + out[3]):
            side, rims = 2 * CORNERS + k - start, EDGES + 4 * (k - start)
            count = edge_cylinder(out, count, side, rims, pose[0], x, eb, half, f, g, a, Ra, ca, ra, ha)
    return without_false_of_hull(contacts, out, first, count, a, Ra, ca, ra, ha, sb, pose)
