"""Tendons through space: from point to point, around spheres and cylinders, in branches behind pulleys.

The law is that of ``forces/laws/tendon.py``, with the length l of the path and its derivative g by the displacements of
the bodies. A straight piece with direction e pulls at its ends. Around a sphere or cylinder a path is the shortest one,
so its points of contact count as fixed to the body, and the arc between them as constant (envelope theorem): only
straight pieces enter g. With H = dg/dxi, by central differences,

    K = g (p_l g - d H^T twists)^T + p H        D = -d g g^T

A branch counts as 1/divisor of its length. In the plane of the arc, with r the radius and a point at x (2,), the points
of contact are (r^2 x -+ r sqrt(|x|^2 - r^2) x')/|x|^2, x' being x turned by a right angle.

    numbers of an element (20)   kind; body; point in the link (3); radius, or divisor of a pulley; axes of the shape
                                 in the link (9); 1 if it has a side, the body of the point there, and this point (3)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

import numpy as np

from leastaction.forces.laws.fluid import nine_of, three
from leastaction.forces.laws.tendon import BODIES, DAMPING, HIGH, LOW, OWN, SIZE, TERMS, spring
from leastaction.jit.decorators import kernel
from leastaction.jit.functions import force_function
from leastaction.spatial._source.vector import add3, cross, dot3, matvec, scale3, sub3, tmatvec

# Kinds of elements, and the numbers of one.
POINT, SPHERE, CYLINDER, PULLEY = 0, 1, 2, 3
ELEMENT = 20

# Points that are nearer than this have no direction between them, metres.
_NEAREST = 1e-12

# Displacement of the differences, radians and metres.
_STEP = 1e-6


@kernel
def norm3(v):
    """Length of three numbers."""
    return math.sqrt(dot3(v, v))


@kernel
def point_at(a, body, at):
    """The point in link axes from place ``at`` on, in the world; ``body``: place of its body."""
    return add3(three(a, body + 9), matvec(nine_of(a, body), three(a, at)))


@kernel
def straight(a, g, i, x, j, y, part):
    """Length of the piece from x on body i to y on body j; ``part`` of its pull into g."""
    r = sub3(y, x)
    l = norm3(r)
    if i != j:
        e = scale3(part / l, r) if l > _NEAREST else (math.nan, math.nan, math.nan)
        for end in range(2):
            body = int(a[SIZE]) + 18 * (i if end == 0 else j)
            o = 6 * (i if end == 0 else j)
            f = tmatvec(nine_of(a, body), scale3(-1.0 if end == 0 else 1.0, e))
            p = tmatvec(nine_of(a, body), sub3(x if end == 0 else y, three(a, body + 9)))
            turn = cross(p, f)
            for k in range(3):
                g[o + k] += turn[k]
                g[o + 3 + k] += f[k]
    return l


@kernel
def crossed(x0, y0, u0, v0, x1, y1, u1, v1):
    """Whether the piece from (x0, y0) to (u0, v0) crosses that from (x1, y1) to (u1, v1)."""
    ax, ay, bx, by = u0 - x0, v0 - y0, u1 - x1, v1 - y1
    det = bx * ay - by * ax
    if abs(det) < 1e-15:
        return False
    s = (bx * (y1 - y0) - by * (x1 - x0)) / det
    t = (ax * (y1 - y0) - ay * (x1 - x0)) / det
    return 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0


@kernel
def arc_ends(x0, y0, x1, y1, r, sign):
    """Points of contact of one of the two ways around the circle, and whether its straight pieces cross."""
    q0, q1 = x0 * x0 + y0 * y0, x1 * x1 + y1 * y1
    w0, w1 = sign * r * math.sqrt(q0 - r * r), sign * r * math.sqrt(q1 - r * r)
    u0, v0 = (x0 * r * r + w0 * y0) / q0, (y0 * r * r - w0 * x0) / q0
    u1, v1 = (x1 * r * r - w1 * y1) / q1, (y1 * r * r + w1 * x1) / q1
    return u0, v0, u1, v1, crossed(x0, y0, u0, v0, x1, y1, u1, v1)


@kernel
def around_circle(x0, y0, x1, y1, r, sided, sx, sy):
    """Length of the arc from (x0, y0) to (x1, y1) around a circle, -1 where there is none, and its ends."""
    none = (-1.0, 0.0, 0.0, 0.0, 0.0)
    q0, q1, dx, dy = x0 * x0 + y0 * y0, x1 * x1 + y1 * y1, x1 - x0, y1 - y0
    d2 = dx * dx + dy * dy
    if q0 < r * r or q1 < r * r or r < 1e-15 or d2 < 1e-15:
        return none
    # beyond the middle, seen from the side: then it goes around on the side, also where a straight line is outside
    s = min(max(-(dx * x0 + dy * y0) / d2, 0.0), 1.0)
    nx, ny, turn = x0 + s * dx, y0 + s * dy, x0 * y1 - y0 * x1
    beyond = sided and (y0 * sx - x0 * sy) * turn > 0.0 and (sy * x1 - sx * y1) * turn > 0.0
    if nx * nx + ny * ny > r * r and not beyond:
        return none
    # both ways around: that on the side, or the shorter one
    one, two = arc_ends(x0, y0, x1, y1, r, 1.0), arc_ends(x0, y0, x1, y1, r, -1.0)
    if beyond:
        good = -((one[0] + one[2]) * nx + (one[1] + one[3]) * ny)
        good /= max(math.hypot(one[0] + one[2], one[1] + one[3]), 1e-15)
        better = -((two[0] + two[2]) * nx + (two[1] + two[3]) * ny)
        better /= max(math.hypot(two[0] + two[2], two[1] + two[3]), 1e-15)
    else:
        good = -math.hypot(one[0] - one[2], one[1] - one[3])
        better = -math.hypot(two[0] - two[2], two[1] - two[3])
    good, better = (-1e4 if one[4] else good), (-1e4 if two[4] else better)
    first = good > better
    way = one if first else two
    if way[4]:
        return none
    angle = math.acos(min(max((way[0] * way[2] + way[1] * way[3]) / (r * r), -1.0), 1.0))
    turn = way[1] * way[2] - way[0] * way[3]
    if (turn > 0.0 and not first) or (turn < 0.0 and first):
        angle = 2.0 * math.pi - angle
    return r * angle, way[0], way[1], way[2], way[3]


@kernel
def plane_of_arc(sphere, p, q):
    """Axes of the plane of the arc: through the middle of a sphere and both points; across a cylinder."""
    if not sphere:
        return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
    u = scale3(1.0 / max(norm3(p), 1e-300), p)
    n = cross(p, q)
    if norm3(n) < 1e-15:
        # both on one line through the middle: any plane does
        least = 0 if abs(u[0]) <= abs(u[1]) and abs(u[0]) <= abs(u[2]) else 1 if abs(u[1]) <= abs(u[2]) else 2
        n = cross(u, (1.0 if least == 0 else 0.0, 1.0 if least == 1 else 0.0, 1.0 if least == 2 else 0.0))
    v = cross(n, u)
    return u, scale3(1.0 / norm3(v), v)


@kernel
def around(a, at, x, y):
    """Length of the way around the shape from x to y, -1 where it is not touched, and the points of contact."""
    first = int(a[SIZE])
    body = first + 18 * int(a[at + 1])
    R, c, sphere = nine_of(a, body), point_at(a, body, at + 2), a[at] == SPHERE
    axes = nine_of(a, at + 6)
    p, q = tmatvec(axes, tmatvec(R, sub3(x, c))), tmatvec(axes, tmatvec(R, sub3(y, c)))
    u, v = plane_of_arc(sphere, p, q)
    sided, sx, sy = a[at + 15] > 0.0, 0.0, 0.0
    if sided:
        side = sub3(point_at(a, first + 18 * int(a[at + 16]), at + 17), c)
        side = tmatvec(axes, tmatvec(R, side))
        sx, sy = dot3(side, u), dot3(side, v)
    p0, p1, q0, q1 = dot3(p, u), dot3(p, v), dot3(q, u), dot3(q, v)
    arc, e0, e1, f0, f1 = around_circle(p0, p1, q0, q1, a[at + 5], sided, sx, sy)
    e, f = add3(scale3(e0, u), scale3(e1, v)), add3(scale3(f0, u), scale3(f1, v))
    if not sphere and arc >= 0.0:
        # along the axis in proportion to the way, as on the unrolled cylinder
        before, behind = math.hypot(p0 - e0, p1 - e1), math.hypot(q0 - f0, q1 - f1)
        climb = (q[2] - p[2]) / (before + arc + behind)
        e, f = (e[0], e[1], p[2] + climb * before), (f[0], f[1], p[2] + climb * (before + arc))
        arc = math.hypot(arc, climb * arc)
    return arc, add3(c, matvec(R, matvec(axes, e))), add3(c, matvec(R, matvec(axes, f)))


@kernel
def path_of(a, g):
    """The length; g of the bodies."""
    first, m, length, part, j = int(a[SIZE]), int(a[TERMS]), 0.0, 1.0, 0
    for n in range(6 * int(a[BODIES])):
        g[n] = 0.0
    while j < m - 1:
        at = OWN + ELEMENT * j
        behind = at + ELEMENT
        if a[at] == PULLEY or a[behind] == PULLEY:
            part = 1.0 / a[at + 5] if a[at] == PULLEY else part
            j += 1
            continue
        i, x, arc = int(a[at + 1]), point_at(a, first + 18 * int(a[at + 1]), at + 2), -1.0
        end = behind if a[behind] == POINT else behind + ELEMENT
        k, y = int(a[end + 1]), point_at(a, first + 18 * int(a[end + 1]), end + 2)
        if a[behind] != POINT:
            arc, e, f = around(a, behind, x, y)
        if arc < 0.0:
            length += part * straight(a, g, i, x, k, y, part)
        else:
            b = int(a[behind + 1])
            length += part * (straight(a, g, i, x, b, e, part) + arc + straight(a, g, b, f, k, y, part))
        j += 1 if a[behind] == POINT else 2
    return length


@kernel
def path_rate(a, g):
    """Rate of the length."""
    rate = 0.0
    for e in range(6 * int(a[BODIES])):
        rate += g[e] * a[int(a[SIZE]) + 18 * (e // 6) + 12 + e % 6]
    return rate


@force_function
def path_tendon_wrench(t, a, out):
    """p g."""
    length = path_of(a, out)
    p, _ = spring(a, 0, length)
    p -= a[DAMPING] * path_rate(a, out)
    for e in range(6 * int(a[BODIES])):
        out[e] = p * out[e]


@force_function
def path_tendon_derivatives(t, a, out):
    """K and D."""
    n, first = 6 * int(a[BODIES]), int(a[SIZE])
    size = first + 3 * n
    given, g, ahead, behind = np.empty(size), np.empty(n), np.empty(n), np.empty(n)
    for e in range(size):
        given[e] = a[e]
    p, slope = spring(a, 0, path_of(given, g))
    p -= a[DAMPING] * path_rate(given, g)
    for c in range(n):
        # a body moved by E <- E exp(xi), both ways
        at, k = first + 18 * (c // 6), c % 6
        axis = (1.0 if k % 3 == 0 else 0.0, 1.0 if k % 3 == 1 else 0.0, 1.0 if k % 3 == 2 else 0.0)
        R, x = nine_of(a, at), three(a, at + 9)
        for side in range(2):
            step = _STEP if side == 0 else -_STEP
            if k < 3:
                cs, sn = math.cos(step), math.sin(step)
                for r in range(3):
                    row = (R[3 * r], R[3 * r + 1], R[3 * r + 2])
                    # R exp(step axis): each row turned the other way
                    along, turned = dot3(axis, row), cross(row, axis)
                    for e in range(3):
                        given[at + 3 * r + e] = cs * row[e] + sn * turned[e] + (1.0 - cs) * along * axis[e]
            else:
                moved = add3(x, matvec(R, scale3(step, axis)))
                for e in range(3):
                    given[at + 9 + e] = moved[e]
            if side == 0:
                path_of(given, ahead)
            else:
                path_of(given, behind)
        for e in range(12):
            given[at + e] = a[at + e]
        turn = 0.0
        for r in range(n):
            ahead[r] = (ahead[r] - behind[r]) / (2.0 * _STEP)
            turn += ahead[r] * a[first + 18 * (r // 6) + 12 + r % 6]
        for r in range(n):
            out[n * r + c] = g[r] * (slope * g[c] - a[DAMPING] * turn) + p * ahead[r]
            out[n * n + n * r + c] = -a[DAMPING] * g[r] * g[c]


@force_function
def path_tendon_length(t, a, out):
    """Length, and g behind it."""
    n = 6 * int(a[BODIES])
    g = np.empty(n)
    out[0] = path_of(a, g)
    for e in range(n):
        out[1 + e] = g[e]


@force_function
def path_tendon_limits(t, a, out):
    """Room to the lower and to the upper limit, those that there are, and the rows of their derivatives behind."""
    n = 6 * int(a[BODIES])
    g = np.empty(n)
    length = path_of(a, g)
    low, high = a[LOW] > -math.inf, a[HIGH] < math.inf
    rows = (1 if low else 0) + (1 if high else 0)
    if low:
        out[0] = length - a[LOW]
    if high:
        out[rows - 1] = a[HIGH] - length
    for e in range(n):
        if low:
            out[rows + e] = g[e]
        if high:
            out[rows + n * (rows - 1) + e] = -g[e]
