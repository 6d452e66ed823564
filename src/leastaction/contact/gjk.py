"""The nearest points of two convex hulls (Gilbert, Johnson and Keerthi 1988).

    A, B     the corners of both hulls, world axes; v = the difference of A and B that is nearest to the origin
    W        up to four differences of corners, whose simplex comes nearer to the origin in every iteration
    ia, ib   the corners that they are differences of
    w        weights with which they add up to v

Both hulls may be shrunk about their centres: corners, edges and faces keep their directions, so hulls that overlap a
little are as far from each other as two that do not, by the same features.
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.layout import COUNT, FIRST
from leastaction.forces.bodies import row3
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import add3, axpy3, cross, dot3, matvec, scale3, sub3, tmatvec

ROUNDS = 64
"""Largest number of iterations; ten are many."""

CLOSE = 1e-14
"""Part of the square of the distance that an iteration must gain to go on."""

LEVEL = 1e-10
"""Sine of the angle below which a corner of a tetrahedron lies in the plane of the others."""

OVERLAP = 1e-12
"""Distance over the size of the hulls below which they overlap."""


@sweep
def support_corner(contacts, s, R, d):
    """Number of the corner of hull s (row rotation R) that is farthest along d."""
    y, first = tmatvec(R, d), contacts.shapes[s, FIRST]
    best, corner = -math.inf, first
    for k in range(first, first + contacts.shapes[s, COUNT]):
        far = y[0] * contacts.points[k, 0] + y[1] * contacts.points[k, 1] + y[2] * contacts.points[k, 2]
        if far > best:
            best, corner = far, k
    return corner


@kernel
def corner_at(contacts, k, pose):
    """Corner k, about the origin; pose: row, rotation and position of its row."""
    return add3(pose[2], matvec(pose[1], row3(contacts.points, k, 0)))


@sweep
def on_segment(a, b):
    """Weights of the point of a segment that is nearest to the origin."""
    d = sub3(b, a)
    dd = dot3(d, d)
    t = min(max(-dot3(a, d) / dd, 0.0), 1.0) if dd > 0.0 else 0.0
    return 1.0 - t, t


@sweep
def on_corners(a, b, c):
    """Weights of the point of a triangle that is nearest to the origin (Ericson 2005, 5.1.5)."""
    ab, ac = sub3(b, a), sub3(c, a)
    d1, d2, d3, d4, d5, d6 = -dot3(ab, a), -dot3(ac, a), -dot3(ab, b), -dot3(ac, b), -dot3(ab, c), -dot3(ac, c)
    if d1 <= 0.0 and d2 <= 0.0:
        return 1.0, 0.0, 0.0
    if d3 >= 0.0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    if d6 >= 0.0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    area = va + vb + vc
    if vc <= 0.0 and d1 >= 0.0 and d3 <= 0.0:
        p, q = on_segment(a, b)
        return p, q, 0.0
    if vb <= 0.0 and d2 >= 0.0 and d6 <= 0.0:
        p, q = on_segment(a, c)
        return p, 0.0, q
    if (va <= 0.0 and d4 >= d3 and d5 >= d6) or not area > 0.0:
        p, q = on_segment(b, c)
        return 0.0, p, q
    return va / area, vb / area, vc / area


@sweep
def on_simplex(n, W):
    """Weights (4) of the point of the first n differences that is nearest to the origin, and whether they hold it."""
    if n == 1:
        return (1.0, 0.0, 0.0, 0.0), False
    if n == 2:
        p, q = on_segment(W[0], W[1])
        return (p, q, 0.0, 0.0), False
    if n == 3:
        p, q, r = on_corners(W[0], W[1], W[2])
        return (p, q, r, 0.0), False
    # the sides of a tetrahedron from which the origin is seen
    best, w, seen = math.inf, (1.0, 0.0, 0.0, 0.0), False
    for k in range(4):
        a, b, c, d = W[(k + 1) % 4], W[(k + 2) % 4], W[(k + 3) % 4], W[k]
        n3 = cross(sub3(b, a), sub3(c, a))
        up = sub3(d, a)
        inner, outer = dot3(n3, up), -dot3(n3, a)
        # where all four lie in a plane, rounding says which side they are on
        if inner * outer > 0.0 and inner * inner > LEVEL * LEVEL * dot3(n3, n3) * dot3(up, up):
            continue
        seen = True
        p, q, r = on_corners(a, b, c)
        v = axpy3(p, a, axpy3(q, b, scale3(r, c)))
        if dot3(v, v) < best:
            best = dot3(v, v)
            w = (
                0.0 if k == 0 else (r if k == 1 else (q if k == 2 else p)),
                p if k == 0 else (0.0 if k == 1 else (r if k == 2 else q)),
                q if k == 0 else (p if k == 1 else (0.0 if k == 2 else r)),
                r if k == 0 else (q if k == 1 else (p if k == 2 else 0.0)),
            )
    return w, not seen


@kernel
def kept_weight(w, k):
    """The k-th of those entries that are positive, or the last one."""
    at, seen = 0, -1
    for e in range(4):
        if w[e] > 0.0 and seen < k:
            at, seen = e, seen + 1
    return at


@sweep
def nearest_hulls(contacts, sa, one, ca, sb, two, cb, part, margin):
    """Difference of the nearest points of two hulls, both shrunk to a part of their size about ca and cb.

    one, two: row, rotation and position of their rows. Besides, number of corners, their numbers in both hulls (4 each)
    and weights: of points that are nearest; none where the hulls are farther apart than the margin (then 0) or overlap
    (then -1).
    """
    v, zero, none = sub3(ca, cb), (0.0, 0.0, 0.0), (0, 0, 0, 0)
    if not dot3(v, v) > 0.0:
        v = (1.0, 0.0, 0.0)
    W, ia, ib, w, n, big = (zero, zero, zero, zero), none, none, (0.0, 0.0, 0.0, 0.0), 0, 0.0
    for _ in range(ROUNDS):
        i = support_corner(contacts, sa, one[1], scale3(-1.0, v))
        j = support_corner(contacts, sb, two[1], v)
        xa, xb = corner_at(contacts, i, one), corner_at(contacts, j, two)
        xa, xb = axpy3(part, sub3(xa, ca), ca), axpy3(part, sub3(xb, cb), cb)
        new = sub3(xa, xb)
        vv, along = dot3(v, v), dot3(v, new)
        if along > 0.0 and along * along > margin * margin * vv:
            return v, 0, ia, ib, w
        old = False
        for k in range(n):
            old = old or (ia[k] == i and ib[k] == j)
        if n > 0 and (old or vv - along <= CLOSE * vv):
            break
        big = max(big, dot3(new, new))
        W = (W[0] if n > 0 else new, W[1] if n > 1 else new, W[2] if n > 2 else new, new)
        ia = (ia[0] if n > 0 else i, ia[1] if n > 1 else i, ia[2] if n > 2 else i, i)
        ib = (ib[0] if n > 0 else j, ib[1] if n > 1 else j, ib[2] if n > 2 else j, j)
        n += 1
        w, inside = on_simplex(n, W)
        if inside:
            return v, -1, ia, ib, w
        # only what the nearest point is made of
        k0, k1, k2, k3 = kept_weight(w, 0), kept_weight(w, 1), kept_weight(w, 2), kept_weight(w, 3)
        n = (w[0] > 0.0) + (w[1] > 0.0) + (w[2] > 0.0) + (w[3] > 0.0)
        W, ia, ib = (W[k0], W[k1], W[k2], W[k3]), (ia[k0], ia[k1], ia[k2], ia[k3]), (ib[k0], ib[k1], ib[k2], ib[k3])
        w = (w[k0], w[k1] if n > 1 else 0.0, w[k2] if n > 2 else 0.0, w[k3] if n > 3 else 0.0)
        v = axpy3(w[0], W[0], axpy3(w[1], W[1], axpy3(w[2], W[2], scale3(w[3], W[3]))))
        if dot3(v, v) <= OVERLAP * OVERLAP * big:
            return v, -1, ia, ib, w
    return v, n, ia, ib, w
