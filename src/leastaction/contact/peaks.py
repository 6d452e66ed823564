"""Peaks and ridges of a height field under the faces, sides, edges and rims of solids.

``contact.heights`` and ``contact.rims`` have balls, corners and rims over the field. What is left is where the field is
sharper than the solid: a point of the grid that is highest along the normal of a face or side, and an edge between two
triangles that crosses an edge, a side or a rim. Only points and edges at which the field is convex can be touched so.

    field    (shape, row, rotation, position) of the height field; solid: (row, rotation, position, sizes)
    P        a point of the grid; Q its six neighbours
    x, e, h  an edge: middle, direction, half length
    w1, w2   unit vectors in the two triangles, away from their edge and normal to it; f = -w1, g = -w2 as in
             ``contact.round.box_edge``: n lies between the normals of the triangles where f . n >= 0 and g . n >= 0
    slack    metres by which a neighbour may be higher, so that what is highest at the end of the step is seen too
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.boxes import extent, part
from leastaction.contact.depth import half_width
from leastaction.contact.gap import unit_or
from leastaction.contact.heights import cell_of, feature_of, grid_point, neighbour
from leastaction.contact.layout import BOX, CAPSULE, CODE, COUNT, COUNT_Y, REACH, SIZE
from leastaction.contact.round import CONE, LEAN, box_edge, edge_cylinder, nearest, segment_edge
from leastaction.contact.shapes import PARALLEL, column, shape_pose, write_line, write_lines, write_plane
from leastaction.forces.bodies import row3
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matvec, scale3, sub3, tmatvec

BENT = 1e-9
"""A point or an edge whose surroundings are flat to this, relative to the cell, is none."""

STRAIGHT = 1e-3
"""Sine of the angle below which two edges are parallel."""

PEAK = 32
"""First number of these features among those of a shape (see ``feature_of``)."""


@kernel
def world_grid(contacts, field, i, j):
    """Point (i, j) of the grid, about the origin."""
    s, _, R, c = field
    return add3(c, matvec(R, grid_point(contacts, s, i, j)))


@sweep
def convex_corner(contacts, s, i, j):
    """Whether the point is higher than the middle of every two opposite neighbours."""
    z = grid_point(contacts, s, i, j)[2]
    least = BENT * (contacts.frames[s, SIZE] + contacts.frames[s, SIZE + 1])
    for k in range(3):
        di, dj = neighbour(k)
        one, two = grid_point(contacts, s, i + di, j + dj)[2], grid_point(contacts, s, i - di, j - dj)[2]
        if not 2.0 * z - one - two > least:
            return False
    return True


@sweep
def highest(contacts, field, i, j, n, slack):
    """Whether no neighbour of the point is higher than it along n, but for the slack."""
    P = world_grid(contacts, field, i, j)
    for k in range(6):
        di, dj = neighbour(k)
        q = sub3(world_grid(contacts, field, i + di, j + dj), P)
        if dot3(n, q) > min(slack, LEAN * math.sqrt(dot3(q, q))):
            return False
    return True


# --- points of the grid ---------------------------------------------------------------------------------------------
@sweep
def point_capsule(contacts, out, count, feature, field, i, j, solid):
    """A point of the grid at the side of a capsule."""
    a, Ra, ca, size = solid
    P, e = world_grid(contacts, field, i, j), column(Ra, 2)
    z = dot3(e, sub3(P, ca))
    x = axpy3(z, e, ca)
    n, _ = unit_or(sub3(x, P), column(field[2], 2))
    if abs(z) < size[1] and highest(contacts, field, i, j, n, out[3]):
        return write_line(out, count, feature, field[1], P, 0.0, a, x, size[0], e)
    return count


@sweep
def point_cylinder(contacts, out, count, feature, field, i, j, solid):
    """A point of the grid at the side of a cylinder or at a cap: where it is least deep."""
    a, Ra, ca, size = solid
    P, e = world_grid(contacts, field, i, j), column(Ra, 2)
    d = sub3(P, ca)
    z = dot3(e, d)
    u, rho = unit_or(axpy3(-z, e, d), column(Ra, 0))
    cap = scale3(1.0 if z >= 0.0 else -1.0, e)
    beside, above = rho - size[0], abs(z) - size[1]
    at_cap = beside <= 0.0 and highest(contacts, field, i, j, scale3(-1.0, cap), out[3])
    at_side = above <= 0.0 and highest(contacts, field, i, j, scale3(-1.0, u), out[3])
    if at_cap and (above >= beside or not at_side):
        return write_plane(out, count, feature, field[1], P, 0.0, a, axpy3(size[1], cap, ca), cap)
    if at_side:
        return write_line(out, count, feature + 1, field[1], P, 0.0, a, axpy3(z, e, ca), size[0], e)
    return count


@sweep
def point_box(contacts, out, count, feature, field, i, j, solid):
    """A point of the grid at that face of a box in which it is least deep."""
    a, Ra, ca, h = solid
    P = world_grid(contacts, field, i, j)
    y = tmatvec(Ra, sub3(P, ca))
    best, face, away = -math.inf, -1, (0.0, 0.0, 0.0)
    for k in range(3):
        u, v = (k + 1) % 3, (k + 2) % 3
        if abs(part(y, u)) > part(h, u) or abs(part(y, v)) > part(h, v):
            continue
        apart = abs(part(y, k)) - part(h, k)
        n = scale3(1.0 if part(y, k) >= 0.0 else -1.0, column(Ra, k))
        if apart > best and highest(contacts, field, i, j, scale3(-1.0, n), out[3]):
            best, face, away = apart, k, n
    if face < 0:
        return count
    return write_plane(out, count, feature + face, field[1], P, 0.0, a, axpy3(part(h, face), away, ca), away)


@sweep
def point_solid(contacts, out, count, field, i, j, sa, solid):
    """A point of the grid, if the field is convex there, against a solid."""
    if not convex_corner(contacts, field[0], i, j):
        return count
    feature, code = feature_of(PEAK, i, j, 0), contacts.shapes[sa, CODE]
    if code == CAPSULE:
        return point_capsule(contacts, out, count, feature, field, i, j, solid)
    if code == BOX:
        return point_box(contacts, out, count, feature, field, i, j, solid)
    return point_cylinder(contacts, out, count, feature, field, i, j, solid)


# --- edges of the grid ----------------------------------------------------------------------------------------------
@sweep
def edge_box(out, count, number, i, j, b, x, e, half, f, g, solid):
    """An edge of the grid across the edges of a box."""
    a, Ra, ca, h = solid
    for k in range(12):
        xa, ea, ha, fa, ga = box_edge(Ra, ca, h, k)
        n, sine = unit_or(cross(ea, e), f)
        s, t = nearest(xa, ea, ha, x, e, half)
        if sine < STRAIGHT or abs(s) >= ha or abs(t) >= half:
            continue
        # out of the field and into the box
        n = scale3(1.0 if dot3(n, add3(f, g)) >= 0.0 else -1.0, n)
        pa, pb = axpy3(s, ea, xa), axpy3(t, e, x)
        # what lies nearly flat touches next at its edges; edges far past each other lie behind each other
        lean = LEAN if dot3(n, sub3(pa, pb)) > -out[3] else CONE
        if dot3(n, f) < -lean or dot3(n, g) < -lean or dot3(n, fa) > lean or dot3(n, ga) > lean:
            continue
        # the normal of two that are nearly parallel would turn too fast
        if sine < PARALLEL:
            count = write_plane(out, count, feature_of(number + k // 8, i, j, k % 8), a, pa, 0.0, b, pb, n)
        else:
            count = write_lines(out, count, feature_of(number + k // 8, i, j, k % 8), a, pa, 0.0, ea, b, pb, 0.0, e, n)
    return count


@sweep
def edge_solid(contacts, out, count, field, i, j, which, A, B, C, D, sa, solid):
    """The edge from A to B between the triangles with C and D, if the field is convex there, against a solid."""
    e, length = unit_or(sub3(B, A), (1.0, 0.0, 0.0))
    c, d = sub3(C, A), sub3(D, A)
    f, _ = unit_or(axpy3(dot3(e, c), e, scale3(-1.0, c)), (0.0, 0.0, 1.0))
    g, _ = unit_or(axpy3(dot3(e, d), e, scale3(-1.0, d)), (0.0, 0.0, 1.0))
    # f + g points out of a ridge and into a valley
    if not dot3(column(field[2], 2), add3(f, g)) > BENT:
        return count
    a, Ra, ca, size = solid
    x, half, code = axpy3(0.5 * length, e, A), 0.5 * length, contacts.shapes[sa, CODE]
    # 16 numbers for each of the three edges of a cell
    number = PEAK + 1 + 2 * which
    feature = feature_of(number, i, j, 0)
    if code == CAPSULE:
        return segment_edge(out, count, feature, a, ca, column(Ra, 2), size[1], size[0], field[1], x, e, half, f, g)
    if code == BOX:
        return edge_box(out, count, number, i, j, field[1], x, e, half, f, g, solid)
    return edge_cylinder(out, count, feature, feature + 1, field[1], x, e, half, f, g, a, Ra, ca, size[0], size[1])


@sweep
def edges_of_cell(contacts, out, count, field, i, j, low, sa, solid):
    """The three edges that are counted with cell (i, j), where they reach the height ``low``."""
    s, c = field[0], contacts
    a, b = grid_point(c, s, i, j)[2], grid_point(c, s, i + 1, j)[2]
    up = grid_point(c, s, i, j + 1)[2]
    for h in range(3):
        if max(b if h == 2 else a, b if h == 0 else up) < low:
            continue
        A, B = world_grid(c, field, i, j), world_grid(c, field, i + 1, j)
        C, D = world_grid(c, field, i, j + 1), world_grid(c, field, i + 1, j + 1)
        P = B if h == 2 else A
        Q = B if h == 0 else C
        S = A if h == 2 else (C if h == 0 else B)
        T = D if h == 2 else world_grid(c, field, i + 1 if h == 0 else i - 1, j - 1 if h == 0 else j + 1)
        count = edge_solid(contacts, out, count, field, i, j, h, P, Q, S, T, sa, solid)
    return count


@kernel
def width_along(code, n, R, size):
    """Half width of a capsule, box or cylinder along n."""
    if code == BOX:
        return extent(n, R, size)
    if code == CAPSULE:
        return size[0] + size[1] * abs(dot3(n, column(R, 2)))
    return half_width(n, R, size[0], size[1])


@sweep
def peaks(contacts, out, count, sa, s):
    """Points and edges of the height field s that are in reach of a capsule, box or cylinder sa."""
    b, R, c = shape_pose(contacts, s, out[2])
    a, Ra, ca = shape_pose(contacts, sa, out[2])
    size, code = row3(contacts.frames, sa, SIZE), contacts.shapes[sa, CODE]
    field, solid = (s, b, R, c), (a, Ra, ca, size)
    # the box around the solid, in the field's frame
    y, room = tmatvec(R, sub3(ca, c)), min(out[3], contacts.frames[sa, REACH])
    wide = room + width_along(code, column(R, 0), Ra, size)
    deep = room + width_along(code, column(R, 1), Ra, size)
    low = y[2] - room - width_along(code, column(R, 2), Ra, size)
    dx, dy = contacts.frames[s, SIZE], contacts.frames[s, SIZE + 1]
    nx, ny = contacts.shapes[s, COUNT], contacts.shapes[s, COUNT_Y]
    i0, i1 = cell_of(y[0] - wide, dx, nx)[0], cell_of(y[0] + wide, dx, nx)[0] + 1
    j0, j1 = cell_of(y[1] - deep, dy, ny)[0], cell_of(y[1] + deep, dy, ny)[0] + 1
    for i in range(i0, i1 + 1):
        for j in range(j0, j1 + 1):
            if grid_point(contacts, s, i, j)[2] >= low:
                count = point_solid(contacts, out, count, field, i, j, sa, solid)
            count = edges_of_cell(contacts, out, count, field, i, j, low, sa, solid)
    return count
