"""The rims of a cylinder over a height field.

In its plane a rim is a circle and the surface a line with corners. The rim meets each triangle over which its lowest
point is, and each edge that is nearer to its centre, within that plane, than the faces on both sides; over an edge it
meets the plane through the edge and the rim's tangent. So the gap is continuous where the rim touches.

    y, e, d   centre and axis of the rim, and the unit vector from its lowest point to y, in the field's frame
    n         normal of the plane that it meets, t = e x d the tangent; s = |n - (n . e) e|
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.kernels._jit import kernel, sweep
from leastaction.kernels.contact_gap import unit_or
from leastaction.kernels.contact_heights import (
    EDGE,
    FREE,
    NEAR,
    RIM,
    cell_of,
    feature_of,
    grid_point,
    keep,
    plane_under,
)
from leastaction.kernels.contact_layout import COUNT, COUNT_Y, DISC, PLANE, SIZE
from leastaction.kernels.contact_shapes import TILT, column, shape_pose, write
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matvec, scale3, sub3, tmatvec

UPRIGHT = 0.7
"""Sine of the tilt below which a rim stands on four fixed points as well as on its lowest one."""


@kernel
def on_triangle(x, A, u, v):
    """Whether the foot of x falls on the triangle A, A + u, A + v."""
    n, w = cross(u, v), sub3(x, A)
    nn = dot3(n, n)
    beta, gamma = dot3(n, cross(w, v)) / nn, dot3(n, cross(u, w)) / nn
    return beta >= -EDGE and gamma >= -EDGE and beta + gamma <= 1.0 + EDGE


@sweep
def keep_rim(contacts, out, found, feature, rim, pose, xb, n, d, s):
    """The rim over the plane through xb with normal n: as a disc, or by its lowest point where it is nearly flat."""
    a, y, e, r = rim
    b, R, c = pose
    gap = dot3(n, sub3(y, xb)) - r * s
    foot, normal = add3(c, matvec(R, xb)), matvec(R, n)
    if s > TILT:
        body = (-1, a, add3(c, matvec(R, y)), r, r)
        return keep(contacts, out, found, DISC, feature, body, b, foot, gap, normal, matvec(R, e))
    body = (-1, a, add3(c, matvec(R, axpy3(-r, d, y))), 0.0, r)
    return keep(contacts, out, found, PLANE, feature, body, b, foot, gap, normal, normal)


@sweep
def rim_face(contacts, out, found, feature, rim, pose, A, B, C):
    """A triangle, if the lowest point of the rim is over it, or the point of it nearest to the centre in the plane."""
    _, y, e, r = rim
    u, v = sub3(B, A), sub3(C, A)
    n, _ = unit_or(cross(u, v), (0.0, 0.0, 1.0))
    d, s = unit_or(axpy3(-dot3(n, e), e, n), cross(e, (e[1], e[2], e[0])))
    up = dot3(n, sub3(y, A))
    low = axpy3(-r, d, y)
    nearest = s > UPRIGHT and up >= 0.0 and on_triangle(axpy3(-up / s, d, y), A, u, v)
    if not (nearest or on_triangle(low, A, u, v)):
        return found
    foot = axpy3(-dot3(n, sub3(low, A)), n, low)
    return keep_rim(contacts, out, found, feature, rim, pose, foot, n, d, s)


@kernel
def beside(A, u, C, e):
    """Upward normal of the triangle A, A + u, C, and the direction in it and in the plane normal to e, away from u."""
    n, _ = unit_or(cross(u, sub3(C, A)), (0.0, 0.0, 1.0))
    inward = cross(n, u)
    w = cross(n, e)
    n = n if n[2] > 0.0 else scale3(-1.0, n)
    return n, w if dot3(w, inward) > 0.0 else scale3(-1.0, w)


@sweep
def rim_edge(contacts, out, found, feature, rim, pose, A, B, C, D):
    """The edge from A to B between the triangles with C and D, where the plane of the rim cuts it."""
    _, y, e, r = rim
    u = sub3(B, A)
    before, after = dot3(e, sub3(A, y)), dot3(e, sub3(B, y))
    if before * after > 0.0 or before == after:
        return found
    V = axpy3(before / (before - after), u, A)
    d, length = unit_or(sub3(y, V), (0.0, 0.0, 0.0))
    n1, w1 = beside(A, u, C, e)
    n2, w2 = beside(A, u, D, e)
    if not length > 0.0 or dot3(w1, d) > EDGE or dot3(w2, d) > EDGE:
        return found
    # between the normals of both faces, and normal to the tangent
    t = cross(e, d)
    one, two = dot3(n1, t), dot3(n2, t)
    share = min(max(one / (one - two), 0.0), 1.0) if abs(one - two) > EDGE else 0.5
    n, _ = unit_or(axpy3(share, sub3(n2, n1), n1), (0.0, 0.0, 1.0))
    if dot3(n, d) <= 0.0:
        return found
    d, s = unit_or(axpy3(-dot3(n, e), e, n), d)
    # a peak that comes through the cap from below is no matter of the rim
    if s < UPRIGHT and length < 0.98 * r:
        return found
    return keep_rim(contacts, out, found, feature, rim, pose, V, n, d, s)


@sweep
def rim_cell(contacts, out, found, k, rim, s, pose, i, j):
    """Faces of cell (i, j) and the edges that are counted with it."""
    A, B = grid_point(contacts, s, i, j), grid_point(contacts, s, i + 1, j)
    C, D = grid_point(contacts, s, i, j + 1), grid_point(contacts, s, i + 1, j + 1)
    found = rim_face(contacts, out, found, feature_of(k, i, j, 0), rim, pose, A, B, C)
    found = rim_face(contacts, out, found, feature_of(k, i, j, 1), rim, pose, D, C, B)
    for h in range(3):
        P = B if h == 2 else A
        Q = B if h == 0 else C
        S = A if h == 2 else (C if h == 0 else B)
        T = D if h == 2 else grid_point(contacts, s, i + 1 if h == 0 else i - 1, j - 1 if h == 0 else j + 1)
        found = rim_edge(contacts, out, found, feature_of(k, i, j, 2 + h), rim, pose, P, Q, S, T)
    return found


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
    found = (count, 0, FREE, RIM)
    if tilt < UPRIGHT:
        for j in range(4):
            x = add3(m, scale3(ra if j < 2 else -ra, column(Ra, j % 2)))
            xb, n, under = plane_under(contacts, s, R, c, x)
            gap = dot3(n, sub3(x, xb))
            feature, body = feature_of(2 + 4 * k + j, 0, 0, 0) + under, (-1, a, x, 0.0, ra)
            found = keep(contacts, out, found, PLANE, feature, body, b, axpy3(-gap, n, x), gap, n, n)
    dx, dy = contacts.frames[s, SIZE], contacts.frames[s, SIZE + 1]
    i0, _ = cell_of(y[0], dx, contacts.shapes[s, COUNT])
    j0, _ = cell_of(y[1], dy, contacts.shapes[s, COUNT_Y])
    reach, rim = ra + out[3], (a, y, tmatvec(R, e), ra)
    wide, deep = math.ceil(min(reach / dx, NEAR)), math.ceil(min(reach / dy, NEAR))
    for i in range(i0 - wide, i0 + wide + 1):
        for j in range(j0 - deep, j0 + deep + 1):
            found = rim_cell(contacts, out, found, k, rim, s, pose, i, j)
    return count + found[1]


@sweep
def cylinder_heights(contacts, out, count, a, Ra, ca, ra, ha, s):
    """The rims of a cylinder over a height field."""
    for k in range(2):
        m = axpy3(ha if k == 0 else -ha, column(Ra, 2), ca)
        count = rim_heights(contacts, out, count, k, a, Ra, m, ra, s)
    return count
