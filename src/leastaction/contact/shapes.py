"""Contacts of one ball (a point with a radius) with every kind of shape, and the writing of contacts.

Contacts are found in world axes about the kernels' origin and stored in row frames. ``out`` is the state of the search:

    out = (ints, floats, P, margin, pair, limit, first, Q, missed)
        tables to fill, poses of the rows, largest gap that is kept, the pair, the rows of the tables that are its own
        (from first on, below limit), poses that are expected at the end of the step, whether P is that end and it is
        about what the step missed
    count
        rows filled so far, passed in and returned

Only features with a smooth gap are used. A sharp corner (radius zero) touches faces and round sides, not edges and
corners: their frozen tangent planes would stop what falls past.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import gap, unit_or
from leastaction.contact.layout import (
    BOX,
    CAPSULE,
    CODE,
    CYLINDER,
    DA,
    DB,
    FEATURE,
    HALF_SPACE,
    LINE,
    LINES,
    PLACE,
    PLANE,
    POINTS,
    RA,
    RB,
    RIM,
    ROW,
    SIGN,
    SIZE,
    SPHERE,
    START,
    TURN,
    XA,
    XB,
)
from leastaction.forces.bodies import row3, row9, world_point
from leastaction.jit.decorators import kernel, sweep
from leastaction.jit.lanes import st3
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matmul, matvec, scale3, sub3, tmatvec

PARALLEL = 0.1
"""Sine of the angle below which two lines are taken as parallel: their common normal would turn too fast."""

FLAT = 1e-6
"""Depth, relative to the size of a face, up to which a point lies on the face."""

TILT = 0.1
"""Sine of the tilt of a rim over a plane; if it is below this, now or at the end of the step, it stands on points."""

RUN = 0.88
"""Cosine of the angle, 0.5 rad, by which the lowest point of a disc may go round within a step."""

STEADY = 0.3
"""Least curvature of the distance along a rim, relative to its own: the nearest point must not run away in a step."""

STAND = 8
"""How many points it stands on, one of them the lowest: a flat disc has no lowest point, and needs three to stand."""


@sweep
def farthest_contact(out, apart):
    """The row of the pair with the largest gap, if that is larger than ``apart``, else -1."""
    ints, floats, P, limit, first = out[0], out[1], out[2], out[5], out[6]
    row = -1
    for k in range(first, limit):
        i, j = ints[k, 1], ints[k, 2]
        found = gap(ints[k, 0], floats, k, row9(P, i, 0), row3(P, i, 9), row9(P, j, 0), row3(P, j, 9))
        if found[0] > apart:
            row, apart = k, found[0]
    return row


@sweep
def room(out, count, apart):
    """The row for a contact with the gap ``apart``, or -1; where the pair is full, that of the farthest one."""
    if not apart <= out[3]:
        return -1
    return count if count < out[5] else farthest_contact(out, apart)


@sweep
def fill(out, row, kind, feature, a, xa, ra, da, b, xb, rb, db, sign):
    """Store one contact given in world axes."""
    ints, floats, P = out[0], out[1], out[2]
    Ra, Rb = row9(P, a, 0), row9(P, b, 0)
    ints[row, 0], ints[row, 1], ints[row, 2], ints[row, 3] = kind, a, b, out[4]
    st3(floats, row, XA, tmatvec(Ra, sub3(xa, row3(P, a, 9))))
    st3(floats, row, XB, tmatvec(Rb, sub3(xb, row3(P, b, 9))))
    st3(floats, row, DA, tmatvec(Ra, da))
    st3(floats, row, DB, tmatvec(Rb, db))
    floats[row, RA], floats[row, RB] = ra, rb
    for c in range(SIGN, FEATURE):
        floats[row, c] = 0.0
    floats[row, SIGN] = sign
    floats[row, FEATURE] = feature


@sweep
def write(out, count, apart, kind, feature, a, xa, ra, da, b, xb, rb, db, sign):
    """Store one contact given in world axes, unless its gap ``apart`` exceeds the margin; the new count."""
    row = room(out, count, apart)
    if row < 0:
        return count
    fill(out, row, kind, feature, a, xa, ra, da, b, xb, rb, db, sign)
    return max(count, row + 1)


@sweep
def write_plane(out, count, feature, a, xa, ra, b, xb, n):
    """A ball of a, or one of its corners, against a plane of b."""
    return write(out, count, dot3(n, sub3(xa, xb)) - ra, PLANE, feature, a, xa, ra, (0.0, 0.0, 0.0), b, xb, 0.0, n, 1.0)


@sweep
def write_points(out, count, feature, a, xa, ra, b, xb, rb):
    """Two balls; corners without any radius are left out."""
    if not ra + rb > 0.0:
        return count
    n, length = unit_or(sub3(xa, xb), (0.0, 0.0, 1.0))
    return write(out, count, length - ra - rb, POINTS, feature, a, xa, ra, n, b, xb, rb, (0.0, 0.0, 0.0), 1.0)


@sweep
def write_line(out, count, feature, a, xa, ra, b, xb, rb, eb):
    """A ball of a against a line of b; a corner against a sharp edge is left out."""
    if not ra + rb > 0.0:
        return count
    d = sub3(xa, xb)
    n, length = unit_or(axpy3(-dot3(eb, d), eb, d), (0.0, 0.0, 1.0))
    return write(out, count, length - ra - rb, LINE, feature, a, xa, ra, n, b, xb, rb, eb, 1.0)


@sweep
def write_lines(out, count, feature, a, xa, ra, ea, b, xb, rb, eb, toward):
    """Two lines that are not parallel; ``toward`` points from b to a as far as is known."""
    c = cross(ea, eb)
    s = math.sqrt(dot3(c, c))
    if s < PARALLEL:
        return count
    sign = 1.0 if dot3(c, toward) >= 0.0 else -1.0
    apart = sign * dot3(c, sub3(xa, xb)) / s - ra - rb
    return write(out, count, apart, LINES, feature, a, xa, ra, ea, b, xb, rb, eb, sign)


@sweep
def write_rim(out, count, feature, a, m, e, ra, u, b, xb, rb, eb, toward):
    """A rim (middle m, axis e) against a line of b, or against a ball where there is no direction eb.

    u goes from m to the nearest point; ``toward`` from b to a as far as is known. Corners are left out, and edges along
    the tangent too. Where the nearest point would run along the rim, the point itself stands for it against what is
    round, and its tangent against an edge.
    """
    t, x = cross(e, u), axpy3(ra, u, m)
    d = sub3(x, xb)
    c, w, along = cross(t, eb), axpy3(-dot3(eb, d), eb, d), dot3(t, eb)
    s = math.sqrt(dot3(c, c))
    steady = ra * (1.0 - along * along) - dot3(w, u) > STEADY * ra
    if not (steady or rb > 0.0):
        return write_lines(out, count, feature, a, x, 0.0, t, b, xb, rb, eb, toward)
    if not steady:
        return write_line(out, count, feature, a, x, 0.0, b, xb, rb, eb)
    if s < PARALLEL and not rb > 0.0:
        return count
    sign = 0.0 if s < PARALLEL else (1.0 if dot3(c, toward) >= 0.0 else -1.0)
    apart = (math.sqrt(dot3(w, w)) if sign == 0.0 else sign * dot3(c, w) / s) - rb
    row = room(out, count, apart)
    if row < 0:
        return count
    fill(out, row, RIM, feature, a, m, ra, e, b, xb, rb, eb, sign)
    st3(out[1], row, START, tmatvec(row9(out[2], a, 0), u))
    return max(count, row + 1)


@kernel
def rolls(out, a, m, e, r, b, n):
    """Whether a rim of row a (middle m, axis e, radius r) is a disc over a plane of row b with normal n.

    In the expected motion it must stay tilted, also where an impact turns what its middle comes down into rotation, and
    its lowest point must not run away: the force acts at the one at k, the gap is that of the one at k+1.
    """
    P, Q = out[2], out[7]
    e1, n1 = matvec(row9(Q, a, 0), tmatvec(row9(P, a, 0), e)), matvec(row9(Q, b, 0), tmatvec(row9(P, b, 0), n))
    m1 = add3(row3(Q, a, 9), matvec(row9(Q, a, 0), tmatvec(row9(P, a, 0), sub3(m, row3(P, a, 9)))))
    down = dot3(n, sub3(m, row3(P, b, 9))) - dot3(n1, sub3(m1, row3(Q, b, 9)))
    low, s = unit_or(axpy3(-dot3(n, e), e, n), e)
    low1, s1 = unit_or(axpy3(-dot3(n1, e1), e1, n1), e1)
    return min(s, s1) - max(down, 0.0) / r > TILT and dot3(low, low1) > RUN


@kernel
def shape_pose(contacts, s, P):
    """Row, rotation and position of shape s about the origin."""
    i = contacts.shapes[s, ROW]
    return i, matmul(row9(P, i, 0), row9(contacts.frames, s, TURN)), world_point(P, i, row3(contacts.frames, s, PLACE))


@kernel
def column(R, j):
    """Column j of a rotation: the axis j of its frame."""
    if j == 0:
        return (R[0], R[3], R[6])
    if j == 1:
        return (R[1], R[4], R[7])
    return (R[2], R[5], R[8])


@kernel
def clip(x, h):
    """``x`` held between -h and h."""
    return min(max(x, -h), h)


@sweep
def ball_box(out, count, feature, a, x, r, b, R, c, h):
    """A ball against a box with half sides h: its nearest face, edge or corner."""
    y = tmatvec(R, sub3(x, c))
    # the side of the box that y lies on, and how far it is beyond each face
    side = (1.0 if y[0] >= 0.0 else -1.0, 1.0 if y[1] >= 0.0 else -1.0, 1.0 if y[2] >= 0.0 else -1.0)
    over = (abs(y[0]) - h[0], abs(y[1]) - h[1], abs(y[2]) - h[2])
    beyond = (1 if over[0] > 0.0 else 0) + (1 if over[1] > 0.0 else 0) + (1 if over[2] > 0.0 else 0)
    if beyond <= 1:
        # over a face, or inside: the face that is nearest
        j = 0 if over[0] >= over[1] and over[0] >= over[2] else (1 if over[1] >= over[2] else 2)
        n = scale3(side[0] if j == 0 else (side[1] if j == 1 else side[2]), column(R, j))
        depth = h[0] if j == 0 else (h[1] if j == 1 else h[2])
        return write_plane(out, count, feature, a, x, r, b, axpy3(depth, n, c), n)
    corner = (side[0] * h[0], side[1] * h[1], side[2] * h[2])
    if beyond == 2:
        j = 0 if over[0] <= 0.0 else (1 if over[1] <= 0.0 else 2)
        return write_line(out, count, feature, a, x, r, b, add3(c, matvec(R, corner)), 0.0, column(R, j))
    return write_points(out, count, feature, a, x, r, b, add3(c, matvec(R, corner)), 0.0)


@sweep
def ball_capsule(out, count, feature, a, x, r, b, R, c, radius, half):
    """A ball against a capsule: its side or one of its ends."""
    e = column(R, 2)
    z = dot3(e, sub3(x, c))
    if abs(z) <= half:
        return write_line(out, count, feature, a, x, r, b, axpy3(z, e, c), radius, e)
    return write_points(out, count, feature, a, x, r, b, axpy3(clip(z, half), e, c), radius)


@sweep
def ball_cylinder(out, count, feature, a, x, r, b, R, c, radius, half):
    """A ball against a cylinder: side, cap or rim."""
    e, d = column(R, 2), sub3(x, c)
    z = dot3(e, d)
    u, rho = unit_or(axpy3(-z, e, d), column(R, 0))
    beside, above = rho - radius, abs(z) - half
    # a corner that hangs over the rim of the cap it lies on is not beside the cylinder, whatever the rounding says
    if beside > 0.0 and above > (0.0 if r > 0.0 else -FLAT * radius):
        zero = (0.0, 0.0, 0.0)
        return write_rim(out, count, feature, b, axpy3(clip(z, half), e, c), e, radius, u, a, x, r, zero, zero)
    if beside >= above:
        return write_line(out, count, feature, a, x, r, b, axpy3(clip(z, half), e, c), radius, e)
    n = scale3(1.0 if z >= 0.0 else -1.0, e)
    return write_plane(out, count, feature, a, x, r, b, axpy3(half, n, c), n)


@sweep
def ball_solid(contacts, out, count, feature, a, x, r, s):
    """A ball of row a against shape s, which is a sphere, capsule, cylinder, box or half-space."""
    code = contacts.shapes[s, CODE]
    b, R, c = shape_pose(contacts, s, out[2])
    size = row3(contacts.frames, s, SIZE)
    if code == HALF_SPACE:
        return write_plane(out, count, feature, a, x, r, b, c, column(R, 2))
    if code == SPHERE:
        return write_points(out, count, feature, a, x, r, b, c, size[0])
    if code == CAPSULE:
        return ball_capsule(out, count, feature, a, x, r, b, R, c, size[0], size[1])
    if code == CYLINDER:
        return ball_cylinder(out, count, feature, a, x, r, b, R, c, size[0], size[1])
    if code == BOX:
        return ball_box(out, count, feature, a, x, r, b, R, c, size)
    return count
