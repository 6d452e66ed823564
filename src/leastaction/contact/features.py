"""Which contacts two shapes have at one configuration.

The features of a pair (a corner over a face, two edges that cross, a ball over a side) are chosen at the beginning of a
step and stay frozen in it; ``contact.gap.gap`` follows their gap through the step. A frozen feature is the nearest one
at its configuration. What has become nearest at the end of the step, and is too deep there, is added, what holds bodies
that are apart there is let go, and the step is solved again (``maximal.barrier.find_missed``).

``contact.broad`` says which pairs a step looks at; ``features`` looks at all.

    contacts   ``contact.layout.Contacts``
    P          (rows, 12) poses of the rows about the kernels' origin, of ``tree/kinematics.py``
    margin     metres; contacts farther apart are left out
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.boxes import box_box
from leastaction.contact.heights import ball_heights, oval_heights, support, write_oval
from leastaction.contact.hull_round import capsule_hull, cylinder_hull
from leastaction.contact.hulls import ball_hull, hull_hull
from leastaction.contact.layout import (
    BOX,
    CAPSULE,
    CODE,
    COUNT,
    CYLINDER,
    FEATURE,
    FIRST,
    HALF_SPACE,
    HEIGHTS,
    HULL,
    OVAL,
    PAIR,
    POINT_SET,
    REACH,
    SIZE,
    SPHERE,
)
from leastaction.contact.ovals import ball_oval, capsule_oval, cylinder_oval, hull_oval, oval_oval
from leastaction.contact.peaks import peaks
from leastaction.contact.rims import cylinder_heights
from leastaction.contact.round import (
    capsule_box,
    capsule_capsule,
    capsule_cylinder,
    cylinder_box,
    cylinder_cylinder,
    rims_plane,
)
from leastaction.contact.shapes import ball_solid, column, shape_pose
from leastaction.forces.bodies import row3, world_point
from leastaction.jit.decorators import either, entry, kernel, sweep
from leastaction.spatial._source.vector import axpy3, dot3, sub3


def unchanged(*args):
    """In place of a part that a mechanism does not need: the count as it came in."""
    return args[3]


@either(unchanged)
def heights_ball(table, contacts, out, count, feature, a, x, r, s):
    """A ball over a height field, if there is one."""
    return ball_heights(contacts, out, count, feature, a, x, r, s)


@either(unchanged)
def heights_solid(table, contacts, out, count, sa, sb):
    """A capsule, cylinder, box or ellipsoid over a height field, if there is one; not the ends and corners of them."""
    a, R, c = shape_pose(contacts, sa, out[2])
    size, code = row3(contacts.frames, sa, SIZE), contacts.shapes[sa, CODE]
    if code == OVAL:
        return oval_heights(contacts, out, count, sa, sb)
    if code == CYLINDER:
        count = cylinder_heights(contacts, out, count, a, R, c, size[0], size[1], sb)
    return peaks(contacts, out, count, sa, sb)


@either(unchanged)
def two_boxes(table, contacts, out, count, sa, sb):
    """Two boxes, if there is such a pair."""
    a, Ra, ca = shape_pose(contacts, sa, out[2])
    b, Rb, cb = shape_pose(contacts, sb, out[2])
    size, other = row3(contacts.frames, sa, SIZE), row3(contacts.frames, sb, SIZE)
    return box_box(out, count, a, Ra, ca, size, b, Rb, cb, other)


@either(unchanged)
def round_solids(table, contacts, out, count, sa, sb):
    """A capsule or cylinder against a capsule, cylinder or box, if there is such a pair."""
    one, two = contacts.shapes[sa, CODE], contacts.shapes[sb, CODE]
    a, Ra, ca = shape_pose(contacts, sa, out[2])
    b, Rb, cb = shape_pose(contacts, sb, out[2])
    size, other = row3(contacts.frames, sa, SIZE), row3(contacts.frames, sb, SIZE)
    if one == CAPSULE:
        if two == CAPSULE:
            return capsule_capsule(out, count, a, Ra, ca, size[0], size[1], b, Rb, cb, other[0], other[1])
        if two == CYLINDER:
            return capsule_cylinder(out, count, a, Ra, ca, size[0], size[1], b, Rb, cb, other[0], other[1])
        return capsule_box(out, count, a, Ra, ca, size[0], size[1], b, Rb, cb, other)
    if two == CYLINDER:
        return cylinder_cylinder(out, count, a, Ra, ca, size[0], size[1], b, Rb, cb, other[0], other[1])
    return cylinder_box(out, count, a, Ra, ca, size[0], size[1], b, Rb, cb, other)


@either(unchanged)
def hull_ball(table, contacts, out, count, feature, a, x, r, s):
    """A ball against a convex hull, if there is such a pair."""
    return ball_hull(contacts, out, count, feature, a, x, r, s)


@either(unchanged)
def hull_solid(table, contacts, out, count, sa, sb):
    """A capsule, cylinder, ellipsoid or convex hull against a convex hull, if there is such a pair."""
    code = contacts.shapes[sa, CODE]
    if code == CAPSULE:
        return capsule_hull(contacts, out, count, sa, sb)
    if code == CYLINDER:
        return cylinder_hull(contacts, out, count, sa, sb)
    if code == OVAL:
        return hull_oval(contacts, out, count, sa, sb)
    return hull_hull(contacts, out, count, sa, sb)


@either(unchanged)
def oval_solid(table, contacts, out, count, sa, sb):
    """A capsule, cylinder or ellipsoid against an ellipsoid, if there is such a pair."""
    code = contacts.shapes[sa, CODE]
    if code == CAPSULE:
        return capsule_oval(contacts, out, count, sa, sb)
    if code == CYLINDER:
        return cylinder_oval(contacts, out, count, sa, sb)
    return oval_oval(contacts, out, count, sa, sb)


@sweep
def ball_any(contacts, out, count, feature, a, x, r, s):
    """A ball of row a against any shape it can touch."""
    if contacts.shapes[s, CODE] == HEIGHTS:
        return heights_ball(contacts.heights, contacts, out, count, feature, a, x, r, s)
    if contacts.shapes[s, CODE] == HULL:
        return hull_ball(contacts.hulls, contacts, out, count, feature, a, x, r, s)
    if contacts.shapes[s, CODE] == OVAL:
        return ball_oval(contacts, out, count, feature, a, x, r, s)
    return ball_solid(contacts, out, count, feature, a, x, r, s)


@sweep
def solid_plane(contacts, out, count, sa, sb):
    """A point set, sphere, capsule, cylinder, box or ellipsoid over a half-space or a height field."""
    code, size = contacts.shapes[sa, CODE], row3(contacts.frames, sa, SIZE)
    a, R, c = shape_pose(contacts, sa, out[2])
    if code == CAPSULE:
        count = ball_any(contacts, out, count, 0, a, axpy3(size[1], column(R, 2), c), size[0], sb)
        count = ball_any(contacts, out, count, 1, a, axpy3(-size[1], column(R, 2), c), size[0], sb)
    elif code == BOX:
        for k in range(8):
            x = axpy3(size[0] if k % 2 == 0 else -size[0], column(R, 0), c)
            x = axpy3(size[1] if k % 4 < 2 else -size[1], column(R, 1), x)
            x = axpy3(size[2] if k < 4 else -size[2], column(R, 2), x)
            count = ball_any(contacts, out, count, k, a, x, 0.0, sb)
    if contacts.shapes[sb, CODE] == HEIGHTS:
        return heights_solid(contacts.heights, contacts, out, count, sa, sb)
    if code in (CAPSULE, BOX):
        return count
    b, Rb, cb = shape_pose(contacts, sb, out[2])
    n = column(Rb, 2)
    if code == CYLINDER:
        return rims_plane(out, count, 0, a, R, c, size[0], size[1], b, cb, n, math.inf, False, Rb, size)
    gap = dot3(n, sub3(c, cb)) - support(contacts, sa, out[2], n)
    return write_oval(contacts, out, count, gap, 0, sa, a, c, b, cb, n)


@sweep
def pair_contacts(contacts, out, count, sa, sb):
    """Contacts of one pair of shapes, of which sa has the smaller code."""
    one, two = contacts.shapes[sa, CODE], contacts.shapes[sb, CODE]
    a, _, ca = shape_pose(contacts, sa, out[2])
    if two == HULL and one > SPHERE:
        return hull_solid(contacts.hulls, contacts, out, count, sa, sb)
    if two == OVAL and one > SPHERE:
        return oval_solid(contacts.ovals, contacts, out, count, sa, sb)
    # a hull over the ground: its corners
    if one in (POINT_SET, HULL):
        first = contacts.shapes[sa, FIRST]
        for k in range(contacts.shapes[sa, COUNT]):
            x = world_point(out[2], a, row3(contacts.points, first + k, 0))
            count = ball_any(contacts, out, count, k, a, x, 0.0, sb)
        return count
    size = row3(contacts.frames, sa, SIZE)
    if one == SPHERE:
        return ball_any(contacts, out, count, 0, a, ca, size[0], sb)
    if two in (HALF_SPACE, HEIGHTS):
        return solid_plane(contacts, out, count, sa, sb)
    if one == BOX and two == BOX:
        return two_boxes(contacts.boxes, contacts, out, count, sa, sb)
    return round_solids(contacts.rounds, contacts, out, count, sa, sb)


@kernel
def stays_nearest(one, two):
    """Whether what is nearest of two shapes, given their codes, stays so in every motion."""
    return (two == HALF_SPACE and one != CYLINDER) or (two == SPHERE and one in (POINT_SET, SPHERE))


@sweep
def features(contacts, P, margin, ints, floats):
    """Fill the tables of contacts (see ``contact.layout``) at the poses P, of all pairs; how many there are.

    More than the tables have rows if these are too few.
    """
    count, most = 0, ints.shape[0]
    for p in range(contacts.pairs.shape[0]):
        sa, sb = contacts.pairs[p, 0], contacts.pairs[p, 1]
        # balls around the shapes, or a ball and a plane, that are too far apart
        _, _, ca = shape_pose(contacts, sa, P)
        _, Rb, cb = shape_pose(contacts, sb, P)
        d, code = sub3(ca, cb), contacts.shapes[sb, CODE]
        if code == HALF_SPACE:
            far = dot3(column(Rb, 2), d) > contacts.frames[sa, REACH] + margin
        else:
            reach = contacts.frames[sa, REACH] + contacts.frames[sb, REACH] + margin
            far = dot3(d, d) > reach * reach
        if not far:
            limit = count + contacts.pairs[p, 2]
            count = pair_contacts(
                contacts, (ints, floats, P, margin, p, min(limit, most), count, P, False), count, sa, sb
            )
            if limit > most and count == most:
                return most + 1
    return count


@sweep
def same_contacts(ints, floats, count, old_ints, old_floats, old_count, match):
    """For each contact the number of the same feature among older contacts, or -1, so that forces can be kept.

    Both tables are in the order of pairs, as ``contact.broad.near_contacts`` writes them.
    """
    first = 0
    for k in range(count):
        match[k] = -1
        # the older contacts of this pair
        while first < old_count and old_ints[first, PAIR] < ints[k, PAIR]:
            first += 1
        o = first
        while o < old_count and old_ints[o, PAIR] == ints[k, PAIR]:
            if old_floats[o, FEATURE] == floats[k, FEATURE]:
                match[k] = o
            o += 1


@entry
def find_contacts(contacts, P, margin, ints, floats):
    """``features`` as an entry."""
    return features(contacts, P, margin, ints, floats)


@entry
def match_contacts(ints, floats, count, old_ints, old_floats, old_count, match):
    """``same_contacts`` as an entry."""
    same_contacts(ints, floats, count, old_ints, old_floats, old_count, match)
