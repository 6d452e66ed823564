"""Contacts with a height field: a regular grid of heights, two triangles to a cell.

Each candidate point meets the plane of the triangle under it; a ball meets every triangle near it on which the foot of
its centre falls. Beyond the border the triangles of the border go on. What is sharper than the candidate points of a
shape (a peak under the middle of a box) is not seen.

    y        a point in the field's frame; cell (i, j), half k (0: below the diagonal, 1: above)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.kernels._jit import kernel, sweep
from leastaction.kernels.contact_gap import unit_or
from leastaction.kernels.contact_layout import COUNT, COUNT_Y, DISC, FIRST, SIZE
from leastaction.kernels.contact_shapes import TILT, column, shape_pose, write, write_plane
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matvec, scale3, sub3, tmatvec

NEAR = 2
"""Cells on each side in which a ball is looked for; a ball should not be larger than this many cells."""


@kernel
def cell_of(x, step, n):
    """Cell of a coordinate, held inside the grid, and the place within it (beyond 0 to 1 outside the grid)."""
    f = x / step + 0.5 * (n - 1)
    i = int(min(max(math.floor(f), 0.0), n - 2.0))
    return i, f - i


@sweep
def triangle(contacts, s, i, j, k):
    """A point of the plane of a triangle and its unit normal, in the field's frame."""
    first, nx, ny = contacts.shapes[s, FIRST], contacts.shapes[s, COUNT], contacts.shapes[s, COUNT_Y]
    dx, dy = contacts.frames[s, SIZE], contacts.frames[s, SIZE + 1]
    # heights of the corner of the triangle and of its two neighbours
    corner = contacts.heights[first + (i + k) * ny + j + k]
    along_x = contacts.heights[first + (i + 1 - k) * ny + j + k]
    along_y = contacts.heights[first + (i + k) * ny + j + 1 - k]
    side = 1.0 - 2.0 * k
    n, _ = unit_or((-side * (along_x - corner) / dx, -side * (along_y - corner) / dy, 1.0), (0.0, 0.0, 1.0))
    return ((i + k - 0.5 * (nx - 1)) * dx, (j + k - 0.5 * (ny - 1)) * dy, corner), n


@sweep
def plane_under(contacts, s, R, c, x):
    """Point and normal, about the origin, of the triangle under a point, and its number."""
    y = tmatvec(R, sub3(x, c))
    i, u = cell_of(y[0], contacts.frames[s, SIZE], contacts.shapes[s, COUNT])
    j, v = cell_of(y[1], contacts.frames[s, SIZE + 1], contacts.shapes[s, COUNT_Y])
    k = 0 if u + v <= 1.0 else 1
    point, n = triangle(contacts, s, i, j, k)
    return add3(c, matvec(R, point)), matvec(R, n), 2 * (i * contacts.shapes[s, COUNT_Y] + j) + k


@sweep
def ball_heights(contacts, out, count, ball, a, x, r, s):
    """A ball of row a over a height field."""
    b, R, c = shape_pose(contacts, s, out[2])
    nx, ny = contacts.shapes[s, COUNT], contacts.shapes[s, COUNT_Y]
    dx, dy = contacts.frames[s, SIZE], contacts.frames[s, SIZE + 1]
    number = 2 * ball * nx * ny
    before = count
    if r > 0.0:
        y = tmatvec(R, sub3(x, c))
        i0, _ = cell_of(y[0], dx, nx)
        j0, _ = cell_of(y[1], dy, ny)
        wide, deep = min(math.ceil(r / dx), NEAR), min(math.ceil(r / dy), NEAR)
        for i in range(max(i0 - wide, 0), min(i0 + wide, nx - 2) + 1):
            for j in range(max(j0 - deep, 0), min(j0 + deep, ny - 2) + 1):
                for k in range(2):
                    # the foot of the centre on the triangle's plane
                    point, n = triangle(contacts, s, i, j, k)
                    foot = axpy3(-dot3(n, sub3(y, point)), n, y)
                    u, v = foot[0] / dx + 0.5 * (nx - 1) - i, foot[1] / dy + 0.5 * (ny - 1) - j
                    u, v = (u, v) if k == 0 else (1.0 - u, 1.0 - v)
                    if u >= 0.0 and v >= 0.0 and u + v <= 1.0:
                        feature = number + 2 * (i * ny + j) + k
                        xb = add3(c, matvec(R, point))
                        count = write_plane(out, count, feature, a, x, r, b, xb, matvec(R, n))
    # a point, or a ball over a ridge
    if count == before:
        xb, n, triangle_number = plane_under(contacts, s, R, c, x)
        count = write_plane(out, count, number + triangle_number, a, x, r, b, xb, n)
    return count


@sweep
def cylinder_heights(contacts, out, count, a, Ra, ca, ra, ha, s):
    """The rims of a cylinder over a height field."""
    b, R, c = shape_pose(contacts, s, out[2])
    e = column(Ra, 2)
    for k in range(2):
        m = axpy3(ha if k == 0 else -ha, e, ca)
        _, n, _ = plane_under(contacts, s, R, c, m)
        low, tilt = unit_or(axpy3(-dot3(n, e), e, n), column(Ra, 0))
        # tilted: the rim against the triangle under its lowest point
        if tilt > TILT:
            xb, n, _ = plane_under(contacts, s, R, c, axpy3(-ra, low, m))
            low, tilt = unit_or(axpy3(-dot3(n, e), e, n), low)
            gap = dot3(n, sub3(axpy3(-ra, low, m), xb))
            count = write(out, count, gap, DISC, k, a, m, ra, e, b, xb, 0.0, n, 1.0)
        else:
            turn = cross(e, low)
            for j in range(4):
                x = add3(m, scale3(-ra if j < 2 else ra, low if j % 2 == 0 else turn))
                count = ball_heights(contacts, out, count, 1 + 4 * k + j, a, x, 0.0, s)
    return count
