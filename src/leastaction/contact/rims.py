"""The rims of a cylinder over the faces of a height field; ``contact.peaks`` has its edges.

In its plane a rim is a circle and the surface a line with corners. The rim meets each triangle over which its lowest
point is.

    y, e, d   centre and axis of the rim, and the unit vector from its lowest point to y, in the field's frame
    n         normal of the triangle; s = |n - (n . e) e| the sine of the rim's tilt
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import unit_or
from leastaction.contact.heights import EDGE, NEAR, cell_of, feature_of, grid_point, plane_under
from leastaction.contact.layout import COUNT, COUNT_Y, DISC, SIZE
from leastaction.contact.shapes import STAND, column, rolls, shape_pose, write, write_plane
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matvec, sub3, tmatvec

UPRIGHT = 0.7
"""Sine of the tilt below which a rim stands on fixed points as well as on its lowest one."""


@kernel
def on_triangle(x, A, u, v):
    """Whether the foot of x falls on the triangle A, A + u, A + v."""
    n, w = cross(u, v), sub3(x, A)
    nn = dot3(n, n)
    beta, gamma = dot3(n, cross(w, v)) / nn, dot3(n, cross(u, w)) / nn
    return beta >= -EDGE and gamma >= -EDGE and beta + gamma <= 1.0 + EDGE


@sweep
def rim_face(out, count, feature, rim, pose, A, B, C):
    """A triangle, if the lowest point of the rim is over it, or the point of it nearest to the centre in the plane."""
    a, y, e, r = rim
    b, R, c = pose
    u, v = sub3(B, A), sub3(C, A)
    n, _ = unit_or(cross(u, v), (0.0, 0.0, 1.0))
    d, s = unit_or(axpy3(-dot3(n, e), e, n), cross(e, (e[1], e[2], e[0])))
    up = dot3(n, sub3(y, A))
    low = axpy3(-r, d, y)
    nearest = s > UPRIGHT and up >= 0.0 and on_triangle(axpy3(-up / s, d, y), A, u, v)
    if not (nearest or on_triangle(low, A, u, v)):
        return count
    xb, normal = add3(c, matvec(R, A)), matvec(R, n)
    x, axis = add3(c, matvec(R, y)), matvec(R, e)
    if rolls(out, a, x, axis, r, b, normal):
        return write(out, count, up - r * s, DISC, feature, a, x, r, axis, b, xb, 0.0, normal, 1.0)
    return write_plane(out, count, feature, a, add3(c, matvec(R, low)), 0.0, b, xb, normal)


@sweep
def rim_heights(contacts, out, count, k, a, Ra, m, ra, s):
    """Rim k of a cylinder, with centre m, over a height field."""
    pose = shape_pose(contacts, s, out[2])
    b, R, c = pose
    e, y = column(Ra, 2), tmatvec(R, sub3(m, c))
    xb, n, under = plane_under(contacts, s, R, c, m)
    _, tilt = unit_or(axpy3(-dot3(n, e), e, n), column(Ra, 0))
    # a centre below the surface
    if dot3(n, sub3(m, xb)) < 0.0 and tilt >= UPRIGHT:
        gap = dot3(n, sub3(m, xb)) - ra * tilt
        return write(out, count, gap, DISC, feature_of(k, 0, 0, 0) + under, a, m, ra, e, b, xb, 0.0, n, 1.0)
    # points on which it stands
    if tilt < UPRIGHT:
        for j in range(STAND):
            angle = 2.0 * math.pi * j / STAND
            x = axpy3(ra * math.cos(angle), column(Ra, 0), axpy3(ra * math.sin(angle), column(Ra, 1), m))
            xb, n, under = plane_under(contacts, s, R, c, x)
            count = write_plane(out, count, feature_of(2 + STAND * k + j, 0, 0, 0) + under, a, x, 0.0, b, xb, n)
    # triangles in reach
    dx, dy = contacts.frames[s, SIZE], contacts.frames[s, SIZE + 1]
    i0, _ = cell_of(y[0], dx, contacts.shapes[s, COUNT])
    j0, _ = cell_of(y[1], dy, contacts.shapes[s, COUNT_Y])
    reach, rim = ra + out[3], (a, y, tmatvec(R, e), ra)
    wide, deep = math.ceil(min(reach / dx, NEAR)), math.ceil(min(reach / dy, NEAR))
    for i in range(i0 - wide, i0 + wide + 1):
        for j in range(j0 - deep, j0 + deep + 1):
            A, B = grid_point(contacts, s, i, j), grid_point(contacts, s, i + 1, j)
            C, D = grid_point(contacts, s, i, j + 1), grid_point(contacts, s, i + 1, j + 1)
            count = rim_face(out, count, feature_of(k, i, j, 0), rim, pose, A, B, C)
            count = rim_face(out, count, feature_of(k, i, j, 1), rim, pose, D, C, B)
    return count


@sweep
def cylinder_heights(contacts, out, count, a, Ra, ca, ra, ha, s):
    """The rims of a cylinder over a height field."""
    for k in range(2):
        m = axpy3(ha if k == 0 else -ha, column(Ra, 2), ca)
        count = rim_heights(contacts, out, count, k, a, Ra, m, ra, s)
    return count
