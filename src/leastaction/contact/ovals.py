"""Contacts of an ellipsoid: the nearest face, edge, side, corner or end of the other solid, and one contact with it.

Along any direction the solids are apart by no more than their distance. So of the faces, edges and corners whose normal
lies in their cone the one that separates most is the nearest, also where the solids overlap.

    B      half axes of the ellipsoid, as columns in world axes; s(n) = |B^T n| its reach along n
    n      unit normal from the other solid to the ellipsoid
    H      second derivative of s along two tangents: its eigenvalues are the radii of curvature where n is the normal
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.gap import unit_or
from leastaction.contact.gjk import corner_at, support_corner
from leastaction.contact.heights import write_oval
from leastaction.contact.hulls import CORNERS, EDGES, cone_of_edge, hull_pose, plane_of
from leastaction.contact.layout import COUNT, COUNT_Y, FIRST, MATRIX, OVAL_GAP, REACH, SIZE, TURN
from leastaction.contact.oval_gap import oval_gap, times_square
from leastaction.contact.round import CONE
from leastaction.contact.shapes import FLAT, clip, column, fill, room, shape_pose
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matmul, scale3, sub3, tmatvec

ROUNDS = 60
"""Largest number of steps in the search for the normal of two ellipsoids, and on a rim."""

TURN_MOST = 0.5
"""Largest angle of such a step, radians."""


@kernel
def half_axes(contacts, s):
    """Half axes of ellipsoid s, as columns in the frame of its row."""
    T, h = row9(contacts.frames, s, TURN), row3(contacts.frames, s, SIZE)
    return (
        T[0] * h[0], T[1] * h[1], T[2] * h[2], T[3] * h[0], T[4] * h[1], T[5] * h[2], T[6] * h[0], T[7] * h[1],
        T[8] * h[2],
    )  # fmt: skip


@sweep
def write_round(contacts, out, count, feature, s, b, x, r, e):
    """Ellipsoid s against a ball of row b, a corner, or a line along e with a radius."""
    a, _, xa = shape_pose(contacts, s, out[2])
    B = half_axes(contacts, s)
    apart, _, _, _ = oval_gap(matmul(row9(out[2], a, 0), B), xa, x, e, r)
    row = room(out, count, apart)
    if row < 0:
        return count
    fill(out, row, OVAL_GAP, feature, a, xa, 0.0, (0.0, 0.0, 0.0), b, x, r, e, 0.0)
    for c in range(9):
        out[1][row, MATRIX + c] = B[c]
    return max(count, row + 1)


@sweep
def ball_oval(contacts, out, count, feature, b, x, r, s):
    """A ball of row b, or a corner, against ellipsoid s."""
    return write_round(contacts, out, count, feature, s, b, x, r, (0.0, 0.0, 0.0))


@kernel
def world_axes(contacts, s, P):
    """Row and centre of ellipsoid s, and its half axes in world axes."""
    a, _, xa = shape_pose(contacts, s, P)
    return a, xa, matmul(row9(P, a, 0), half_axes(contacts, s))


@sweep
def capsule_oval(contacts, out, count, sa, sb):
    """The side of a capsule where its axis comes nearest, or the end that is nearer."""
    b, R, c = shape_pose(contacts, sa, out[2])
    e, r, half = column(R, 2), contacts.frames[sa, SIZE], contacts.frames[sa, SIZE + 1]
    _, xa, B = world_axes(contacts, sb, out[2])
    _, _, ca, _ = oval_gap(B, xa, c, e, r)
    s = dot3(e, sub3(ca, c))
    if abs(s) < half:
        return write_round(contacts, out, count, 0, sb, b, axpy3(s, e, c), r, e)
    return ball_oval(contacts, out, count, 1 if s > 0.0 else 2, b, axpy3(clip(s, half), e, c), r, sb)


@sweep
def rim_of_oval(B, xa, m, e, u, radius):
    """Direction from the middle m of a rim with axis e to its point that is nearest to an ellipsoid, starting at u.

    The slope of the distance along the rim changes its sign there.
    """
    zero, v = (0.0, 0.0, 0.0), cross(e, u)
    best, start = math.inf, 0.0
    for k in range(16):
        angle = 2.0 * math.pi * k / 16
        x = axpy3(radius * math.cos(angle), u, axpy3(radius * math.sin(angle), v, m))
        phi, _, _, _ = oval_gap(B, xa, x, zero, 0.0)
        if phi < best:
            best, start = phi, angle
    low, high = start - 2.0 * math.pi / 16, start + 2.0 * math.pi / 16
    for _ in range(ROUNDS):
        angle = 0.5 * (low + high)
        s, c = math.sin(angle), math.cos(angle)
        x = axpy3(radius * c, u, axpy3(radius * s, v, m))
        _, n, _, _ = oval_gap(B, xa, x, zero, 0.0)
        # the distance falls where the tangent goes along n
        if dot3(n, axpy3(-s, u, scale3(c, v))) > 0.0:
            low = angle
        else:
            high = angle
    return axpy3(math.cos(low), u, scale3(math.sin(low), v))


@sweep
def cylinder_oval(contacts, out, count, sa, sb):
    """The side of a cylinder, the cap that looks at the ellipsoid, or its rim by the tangent at the nearest point."""
    b, R, c = shape_pose(contacts, sa, out[2])
    e, r, half = column(R, 2), contacts.frames[sa, SIZE], contacts.frames[sa, SIZE + 1]
    a, xa, B = world_axes(contacts, sb, out[2])
    d = sub3(xa, c)
    beside, _, ca, _ = oval_gap(B, xa, c, e, r)
    s = dot3(e, sub3(ca, c))
    cap = scale3(1.0 if dot3(e, d) >= 0.0 else -1.0, e)
    y = tmatvec(B, cap)
    reach = math.sqrt(dot3(y, y))
    above = dot3(cap, d) - half - reach
    low = sub3(axpy3(-1.0 / reach, times_square(B, cap), d), scale3(half, cap))
    off = axpy3(-dot3(e, low), e, low)
    at_cap, at_side = dot3(off, off) <= r * r, abs(s) <= half
    m = axpy3(half, cap, c)
    if at_cap and (above >= beside or not at_side):
        return write_oval(contacts, out, count, above, 0, sb, a, xa, b, m, cap)
    if at_side:
        return write_round(contacts, out, count, 1, sb, b, axpy3(s, e, c), r, e)
    if max(above, beside) > out[3]:
        return count
    u, _ = unit_or(axpy3(-dot3(e, d), e, d), column(R, 0))
    u = rim_of_oval(B, xa, m, cap, u, r)
    return write_round(contacts, out, count, 2, sb, b, axpy3(r, u, m), 0.0, cross(cap, u))


@sweep
def hull_oval(contacts, out, count, sa, sb):
    """The face, edge or corner of hull sb that is nearest to ellipsoid sa."""
    a, xa, B = world_axes(contacts, sa, out[2])
    pose, h, zero = hull_pose(contacts, sb, out[2]), contacts.shapes[sb, COUNT_Y], (0.0, 0.0, 0.0)
    spans, size = contacts.hulls.spans, contacts.frames[sb, REACH]
    half_axis = row3(contacts.frames, sa, SIZE)
    least = min(half_axis[0], half_axis[1], half_axis[2])
    best, what, at, along = -math.inf, 0, xa, zero
    for f in range(spans[h, 0], spans[h, 0] + spans[h, 1]):
        n, offset = plane_of(contacts, f, pose)
        y = tmatvec(B, n)
        apart = dot3(n, xa) - offset - math.sqrt(dot3(y, y))
        if apart > best:
            best, what, along = apart, f - spans[h, 0], n
            at = corner_at(contacts, contacts.hulls.loops[contacts.hulls.faces[f, 0], 0], pose)
    if best > out[3]:
        return count
    for e in range(spans[h, 2], spans[h, 2] + spans[h, 3]):
        # seen from the centre, or at least not farther behind both faces than the best that was found
        n, offset = plane_of(contacts, contacts.hulls.edges[e, 2], pose)
        m, other = plane_of(contacts, contacts.hulls.edges[e, 3], pose)
        up = max(dot3(n, xa) - offset, dot3(m, xa) - other)
        if up <= min(0.0, best + least):
            continue
        x, u, half, f, g = cone_of_edge(contacts, e, pose)
        apart, n, ca, _ = oval_gap(B, xa, x, u, 0.0)
        s = dot3(u, sub3(ca, x))
        if apart > best and abs(s) <= half and dot3(n, f) >= -CONE and dot3(n, g) >= -CONE:
            best, what, at, along = apart, CORNERS + e - spans[h, 2], axpy3(s, u, x), u
    first = contacts.shapes[sb, FIRST]
    for k in range(first, first + contacts.shapes[sb, COUNT]):
        x = corner_at(contacts, k, pose)
        apart, n, _, _ = oval_gap(B, xa, x, zero, 0.0)
        if apart > best:
            top = corner_at(contacts, support_corner(contacts, sb, pose[1], n), pose)
            if dot3(n, sub3(top, x)) <= FLAT * size:
                best, what, at, along = apart, EDGES + k - first, x, zero
    if what < CORNERS:
        return write_oval(contacts, out, count, best, what, sa, a, xa, pose[0], at, along)
    return write_round(contacts, out, count, what, sa, pose[0], at, 0.0, along)


@kernel
def oval_bend(B, n, t, u):
    """Reach of an ellipsoid along n, its point there (from the centre), and H."""
    y = tmatvec(B, n)
    s = math.sqrt(dot3(y, y))
    p = scale3(1.0 / s, times_square(B, n))
    bt, bu = tmatvec(B, t), tmatvec(B, u)
    pt, pu = dot3(p, t), dot3(p, u)
    return s, p, (dot3(bt, bt) - pt * pt) / s, (dot3(bt, bu) - pt * pu) / s, (dot3(bu, bu) - pu * pu) / s


@sweep
def normal_of_ovals(A, B, d):
    """The separation of two ellipsoids A and B, with d between their centres, and its normal, by Newton's method."""
    n, _ = unit_or(d, (0.0, 0.0, 1.0))
    p, q = tmatvec(A, n), tmatvec(B, n)
    apart = dot3(n, d) - math.sqrt(dot3(p, p)) - math.sqrt(dot3(q, q))
    for _ in range(ROUNDS):
        a = (1.0, 0.0, 0.0) if abs(n[0]) < 0.6 else (0.0, 1.0, 0.0)
        t, _ = unit_or(axpy3(-dot3(n, a), n, a), a)
        u = cross(n, t)
        _, pa, a0, a1, a2 = oval_bend(A, n, t, u)
        _, pb, b0, b1, b2 = oval_bend(B, n, t, u)
        r, lift = sub3(d, add3(pa, pb)), max(apart, 0.0)
        h0, h1, h2, g0, g1 = a0 + b0 + lift, a1 + b1, a2 + b2 + lift, dot3(r, t), dot3(r, u)
        det = h0 * h2 - h1 * h1
        x, y = (h2 * g0 - h1 * g1) / det, (h0 * g1 - h1 * g0) / det
        far = math.sqrt(x * x + y * y)
        part, better = min(1.0, TURN_MOST / far) if far > 0.0 else 1.0, False
        for _ in range(20):
            m, _ = unit_or(axpy3(part * x, t, axpy3(part * y, u, n)), n)
            p, q = tmatvec(A, m), tmatvec(B, m)
            now = dot3(m, d) - math.sqrt(dot3(p, p)) - math.sqrt(dot3(q, q))
            if now >= apart:
                better = True
                break
            part *= 0.5
        if not better:
            break
        n, apart = m, now
        if far < 1e-12:
            break
    return apart, n


@sweep
def oval_oval(contacts, out, count, sa, sb):
    """Two ellipsoids: the second by the ball that touches it from within, with its least radius of curvature.

    Where they are deep in each other that ball would have another side nearest; then by the plane that touches it.
    """
    a, xa, A = world_axes(contacts, sa, out[2])
    b, xb, B = world_axes(contacts, sb, out[2])
    apart, n = normal_of_ovals(A, B, sub3(xa, xb))
    t, _ = unit_or(cross(n, (1.0, 0.0, 0.0) if abs(n[0]) < 0.6 else (0.0, 1.0, 0.0)), n)
    _, p, h0, h1, h2 = oval_bend(B, n, t, cross(n, t))
    r = 0.5 * (h0 + h2) - math.sqrt(0.25 * (h0 - h2) * (h0 - h2) + h1 * h1)
    if apart + r <= 0.0:
        return write_oval(contacts, out, count, apart, 0, sa, a, xa, b, add3(xb, p), n)
    return ball_oval(contacts, out, count, 0, b, axpy3(-r, n, add3(xb, p)), r, sa)
