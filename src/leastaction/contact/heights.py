"""Contacts with a height field: a regular grid of heights, two triangles to a cell.

A ball or an ellipsoid meets the faces, edges and corners of the triangles that are nearest to it: all points of the
surface from which the distance grows in every direction. So the gap is the distance from the surface, and continuous.
A point (a corner of a box) meets the plane of the triangle under it; ``contact.rims`` has the rims of cylinders and
``contact.peaks`` what of the field is sharper than a solid. Beyond the border the heights go on in straight lines.

    y         the centre in the field's frame; cell (i, j), half k (0: below the diagonal, 1: above)
    M         3 x 3, field's frame to one in which the body is a ball: unit for a ball, of radius 1 for an ellipsoid
    A, B, C   points of the grid; (p, q) of each: in the field's frame, and seen from y in that space, q = M (p - y)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import unit_or
from leastaction.contact.layout import (
    COUNT,
    COUNT_Y,
    ELLIPSOID,
    FIRST,
    LINE,
    MATRIX,
    PLANE,
    POINTS,
    REACH,
    SIZE,
    TURN,
    XB,
)
from leastaction.contact.shapes import shape_pose, write, write_plane
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matmul, matvec, scale3, sub3, tmatvec

NEAR = 8
"""Cells on each side in which a ball is looked for; a ball and its way in a step should not be larger than that."""

KEPT = 4
"""Contacts of one ball that are kept, the nearest ones."""

FREE = (math.inf, math.inf, math.inf, math.inf)
"""Gaps of rows that are not filled yet."""

EDGE = 1e-12
"""Share of a triangle by which a foot may lie beside it; a foot between two features must not be lost to both."""

SAME = 1e-7
"""Feet that are nearer to each other than this times the size of the body are one contact."""


@kernel
def cell_of(x, step, n):
    """Cell of a coordinate, outside the grid too, and the place within it, 0 to 1."""
    f = min(max(x / step + 0.5 * (n - 1), -1.0e6), 1.0e6)
    i = math.floor(f)
    return i, f - i


@kernel
def feature_of(ball, i, j, which):
    """Number of a feature: which of cell (i, j) (0, 1 faces; 2, 3, 4 edges along x, y, diagonal; 5 corner)."""
    return (((ball << 18) + (i & 262143)) << 21) + ((j & 262143) << 3) + which


@kernel
def neighbour(k):
    """Steps to neighbour k of a point of the grid: (1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1)."""
    return (1 if k < 2 else (-1 if 3 <= k < 5 else 0)), (-1 if 1 <= k < 3 else (1 if k >= 4 else 0))


@sweep
def grid_point(contacts, s, i, j):
    """Point (i, j) of the grid in the field's frame; beyond the border on the line through the last two heights."""
    first, nx, ny = contacts.shapes[s, FIRST], contacts.shapes[s, COUNT], contacts.shapes[s, COUNT_Y]
    ic, jc = min(max(i, 0), nx - 1), min(max(j, 0), ny - 1)
    z = contacts.heights[first + ic * ny + jc]
    if i != ic:
        inner = 1 if i < 0 else nx - 2
        z += abs(i - ic) * (z - contacts.heights[first + inner * ny + jc])
    if j != jc:
        edge, inner = contacts.heights[first + ic * ny + jc], 1 if j < 0 else ny - 2
        z += abs(j - jc) * (edge - contacts.heights[first + ic * ny + inner])
    return (i - 0.5 * (nx - 1)) * contacts.frames[s, SIZE], (j - 0.5 * (ny - 1)) * contacts.frames[s, SIZE + 1], z


@sweep
def plane_under(contacts, s, R, c, x):
    """Point and normal, about the origin, of the triangle under a point, and its feature (of ball 0)."""
    y = tmatvec(R, sub3(x, c))
    i, u = cell_of(y[0], contacts.frames[s, SIZE], contacts.shapes[s, COUNT])
    j, v = cell_of(y[1], contacts.frames[s, SIZE + 1], contacts.shapes[s, COUNT_Y])
    k = 0 if u + v <= 1.0 else 1
    A = grid_point(contacts, s, i + k, j + k)
    B, C = grid_point(contacts, s, i + 1 - k, j + k), grid_point(contacts, s, i + k, j + 1 - k)
    n, _ = unit_or(cross(sub3(B, A), sub3(C, A)), (0.0, 0.0, 1.0))
    return add3(c, matvec(R, A)), matvec(R, n), feature_of(0, i, j, k)


@sweep
def write_oval(contacts, out, count, gap, feature, sa, a, x, b, xb, n):
    """An ellipsoid of shape sa over a plane of b."""
    zero = (0.0, 0.0, 0.0)
    after = write(out, count, gap, ELLIPSOID, feature, a, x, 0.0, zero, b, xb, 0.0, n, 1.0)
    # the half axes, as columns in the frame of row a
    if after > count:
        T, h = row9(contacts.frames, sa, TURN), row3(contacts.frames, sa, SIZE)
        for e in range(9):
            out[1][count, MATRIX + e] = T[e] * (h[0] if e % 3 == 0 else (h[1] if e % 3 == 1 else h[2]))
    return after


@sweep
def keep(contacts, out, found, kind, feature, body, b, foot, gap, n, e):
    """Write one contact of a ball or ellipsoid if it is among the nearest; ``found`` with it.

    found: first row, rows filled, their gaps. body: shape or -1, row a, centre x, radius, size.
    foot, n, e: the point of the surface, the normal and the direction of an edge, about the origin.
    """
    before, filled, g = found
    sa, a, x, r, size = body
    # the row of the same contact, which a face takes over; else a free row, or that of the farthest contact
    row, here = -1, tmatvec(row9(out[2], b, 0), sub3(foot, row3(out[2], b, 9)))
    for k in range(filled):
        d = sub3(row3(out[1], before + k, XB), here)
        if dot3(d, d) <= (SAME * size) ** 2:
            sharp = out[0][before + k, 0] in (LINE, POINTS)
            row = k if sharp and kind == PLANE and row < 0 else KEPT
    if row < 0:
        if filled < min(KEPT, out[5] - before):
            row = filled
        else:
            far = -math.inf
            for k in range(filled):
                if g[k] > far:
                    row, far = k, g[k]
            row = row if gap < far else KEPT
    if row >= KEPT or row < 0:
        return found
    # over a face, an edge or a corner; an ellipsoid over the plane that touches it there
    at, zero = before + row, (0.0, 0.0, 0.0)
    if sa >= 0:
        after = write_oval(contacts, out, at, gap, feature, sa, a, x, b, foot, n)
    elif kind == PLANE:
        after = write(out, at, gap, PLANE, feature, a, x, r, zero, b, foot, 0.0, n, 1.0)
    else:
        after = write(out, at, gap, kind, feature, a, x, r, n, b, foot, 0.0, e, 1.0)
    if after == at:
        return found
    g = (
        gap if row == 0 else g[0],
        gap if row == 1 else g[1],
        gap if row == 2 else g[2],
        gap if row == 3 else g[3],
    )
    return before, max(filled, row + 1), g


@kernel
def gap_above(sa, r, M, q):
    """Gap and unit normal in the field's frame of a body whose centre is -q away from a nearest point."""
    length, g = math.sqrt(dot3(q, q)), scale3(-1.0, tmatvec(M, q))
    n, steep = unit_or(g, (0.0, 0.0, 1.0))
    # an ellipsoid: n . (x - foot) - |B^T n|
    return length - r if sa < 0 else length * (length - 1.0) / max(steep, 1e-300), n


@kernel
def seen(contacts, s, M, y, i, j):
    """Point (i, j) of the grid in the field's frame, and seen from the centre."""
    p = grid_point(contacts, s, i, j)
    return p, matvec(M, sub3(p, y))


@sweep
def face(contacts, out, found, feature, body, s, pose, M, A, B, C):
    """The face of a triangle, if the foot of the centre falls on it from above."""
    b, R, c = pose
    u, v = sub3(B[1], A[1]), sub3(C[1], A[1])
    n = cross(u, v)
    nn, up = dot3(n, n), -dot3(n, A[1])
    w = sub3(scale3(-up / nn, n), A[1])
    beta, gamma = dot3(n, cross(w, v)) / nn, dot3(n, cross(u, w)) / nn
    if up < 0.0 or beta < -EDGE or gamma < -EDGE or beta + gamma > 1.0 + EDGE:
        return found
    foot = axpy3(beta, sub3(B[0], A[0]), axpy3(gamma, sub3(C[0], A[0]), A[0]))
    gap, _ = gap_above(body[0], body[3], M, scale3(-up / nn, n))
    normal, _ = unit_or(tmatvec(M, n), (0.0, 0.0, 1.0))
    foot, normal = add3(c, matvec(R, foot)), matvec(R, normal)
    return keep(contacts, out, found, PLANE, feature, body, b, foot, gap, normal, normal)


@sweep
def edge(contacts, out, found, feature, body, s, pose, M, A, B, C, D):
    """The edge from A to B between the triangles with the corners C and D, if it is nearer than both."""
    b, R, c = pose
    u = sub3(B[1], A[1])
    uu = dot3(u, u)
    t = -dot3(A[1], u) / uu
    if t < -EDGE or t > 1.0 + EDGE:
        return found
    q = axpy3(t, u, A[1])
    if dot3(sub3(C[1], A[1]), q) < -EDGE * uu or dot3(sub3(D[1], A[1]), q) < -EDGE * uu:
        return found
    gap, n = gap_above(body[0], body[3], M, q)
    # from below, an edge in a valley
    if n[2] <= 0.0 or not dot3(q, q) > 0.0:
        return found
    e = sub3(B[0], A[0])
    foot = axpy3(t, e, A[0])
    e, _ = unit_or(e, (1.0, 0.0, 0.0))
    foot, n, e = add3(c, matvec(R, foot)), matvec(R, n), matvec(R, e)
    return keep(contacts, out, found, LINE, feature, body, b, foot, gap, n, e)


@sweep
def corner(contacts, out, found, feature, body, s, pose, M, y, i, j, A):
    """The point A = (i, j) of the grid, if it is nearer than the six edges that end there."""
    b, R, c = pose
    for k in range(6):
        di, dj = neighbour(k)
        _, q = seen(contacts, s, M, y, i + di, j + dj)
        u = sub3(q, A[1])
        if dot3(u, A[1]) < -EDGE * dot3(u, u):
            return found
    gap, n = gap_above(body[0], body[3], M, A[1])
    if n[2] <= 0.0 or not dot3(A[1], A[1]) > 0.0:
        return found
    foot, n = add3(c, matvec(R, A[0])), matvec(R, n)
    return keep(contacts, out, found, POINTS, feature, body, b, foot, gap, n, (0.0, 0.0, 0.0))


@sweep
def near_cell(contacts, out, found, ball, body, s, pose, M, y, i, j):
    """Faces of cell (i, j) and the edges and the corner that are counted with it."""
    A, B = seen(contacts, s, M, y, i, j), seen(contacts, s, M, y, i + 1, j)
    C, D = seen(contacts, s, M, y, i, j + 1), seen(contacts, s, M, y, i + 1, j + 1)
    before, after = seen(contacts, s, M, y, i + 1, j - 1), seen(contacts, s, M, y, i - 1, j + 1)
    for k in range(2):
        P = A if k == 0 else D
        Q = B if k == 0 else C
        S = C if k == 0 else B
        found = face(contacts, out, found, feature_of(ball, i, j, k), body, s, pose, M, P, Q, S)
    for k in range(3):
        P = B if k == 2 else A
        Q = B if k == 0 else C
        S = A if k == 2 else (C if k == 0 else B)
        T = D if k == 2 else (before if k == 0 else after)
        found = edge(contacts, out, found, feature_of(ball, i, j, 2 + k), body, s, pose, M, P, Q, S, T)
    return corner(contacts, out, found, feature_of(ball, i, j, 5), body, s, pose, M, y, i, j, A)


@sweep
def near_surface(contacts, out, count, ball, body, s, M):
    """A ball or an ellipsoid (see ``keep``) over a height field."""
    pose = shape_pose(contacts, s, out[2])
    b, R, c = pose
    sa, a, x, r, size = body
    dx, dy = contacts.frames[s, SIZE], contacts.frames[s, SIZE + 1]
    # a centre below the surface, and one far above it, meets the plane under it
    xb, n, under = plane_under(contacts, s, R, c, x)
    up, reach = dot3(n, sub3(x, xb)), size + out[3]
    found = (count, 0, FREE)
    if up >= 0.0:
        y = tmatvec(R, sub3(x, c))
        i0, _ = cell_of(y[0], dx, contacts.shapes[s, COUNT])
        j0, _ = cell_of(y[1], dy, contacts.shapes[s, COUNT_Y])
        wide, deep = math.ceil(min(reach / dx, NEAR)), math.ceil(min(reach / dy, NEAR))
        for i in range(i0 - wide, i0 + wide + 1):
            for j in range(j0 - deep, j0 + deep + 1):
                found = near_cell(contacts, out, found, ball, body, s, pose, M, y, i, j)
    if found[1] == 0 and (up < 0.0 or reach > NEAR * min(dx, dy)):
        feature = feature_of(ball, 0, 0, 0) + under
        if sa < 0:
            return write_plane(out, count, feature, a, x, r, b, xb, n)
        return write_oval(contacts, out, count, up - support(contacts, sa, out[2], n), feature, sa, a, x, b, xb, n)
    return count + found[1]


@sweep
def support(contacts, sa, P, n):
    """|B^T n|: how far an ellipsoid reaches from its centre along n."""
    _, Ra, _ = shape_pose(contacts, sa, P)
    h, y = row3(contacts.frames, sa, SIZE), tmatvec(Ra, n)
    y = (h[0] * y[0], h[1] * y[1], h[2] * y[2])
    return math.sqrt(dot3(y, y))


@sweep
def ball_heights(contacts, out, count, ball, a, x, r, s):
    """A ball of row a, or a point, over a height field."""
    if r > 0.0:
        unit = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
        return near_surface(contacts, out, count, ball, (-1, a, x, r, r), s, unit)
    b, R, c = shape_pose(contacts, s, out[2])
    xb, n, under = plane_under(contacts, s, R, c, x)
    return write_plane(out, count, feature_of(ball, 0, 0, 0) + under, a, x, 0.0, b, xb, n)


@sweep
def oval_heights(contacts, out, count, sa, s):
    """An ellipsoid over a height field."""
    a, Ra, x = shape_pose(contacts, sa, out[2])
    _, R, _ = shape_pose(contacts, s, out[2])
    h = row3(contacts.frames, sa, SIZE)
    T = (Ra[0], Ra[3], Ra[6], Ra[1], Ra[4], Ra[7], Ra[2], Ra[5], Ra[8])
    U = matmul(T, R)
    M = (U[0] / h[0], U[1] / h[0], U[2] / h[0], U[3] / h[1], U[4] / h[1], U[5] / h[1], U[6] / h[2], U[7] / h[2],
         U[8] / h[2])  # fmt: skip
    return near_surface(contacts, out, count, 0, (sa, a, x, 0.0, contacts.frames[sa, REACH]), s, M)
