"""Which pairs of shapes are near enough to look at: a list with a skin, and an odometer for every shape.

A pair that was looked at keeps a lower bound of its distance, by capsules that hold both shapes. It sleeps until its
shapes may have used that up: their odometers add up how far any of their points has moved. Pairs whose balls are
farther apart than a skin are not even on the list; it is made anew when something has moved through the skin. So a step
costs what touches, and an addition for what is near.

Contacts of a pair are found up to a margin of its own, ``share`` times its relative motion and ``more``. At the end of
a step a pair is looked at again where what is nearest may have changed, or where it moved farther than its margin.

    c (3, ns, 3)    centres of the shapes in the world at the start of the step, at the other pose, and when the list
                    was made
    R (rows, 9)     rotations of the rows at the start of the step
    turn (rows,)    how far they turn from there to the other pose: 2 sin(angle / 2)
    way (ns,)       how far a point of a shape moves at most from the start to the other pose, metres
    gone (ns,)      odometer
    listed (np,)    rows of ``Contacts.pairs`` that are near, in their order
    rest (np, 2)    of each of these: distance plus the odometers then, below which they sleep; its margin at the start,
                    0 where it was not near
    late (nc,)      1 for a contact found at the end of a step whose pair moved farther than its margin
    state (3,)      the skin; bounds of all margins at the last searches at the start and at the end of a step
    number (3,)     pairs on the list; whether there is a list; whether a table was too small
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.contact.boxes import best_face
from leastaction.contact.features import pair_contacts, stays_nearest
from leastaction.contact.layout import BOX, CODE, FULL, HALF_SPACE, LISTED, PAIR, PLACE, REACH, ROW, SIZE, VALID
from leastaction.contact.shapes import column, shape_pose
from leastaction.forces.bodies import row3, row9, world_point
from leastaction.jit.decorators import MEMORY_OPTIONS, either, kernel, optional, sweep
from leastaction.spatial._source.vector import axpy3, dot3, matvec, sub3
from leastaction.tree.layout import Floats, Ints

# The skin, as a multiple of the largest margin, and beyond it a part of the largest shape.
SKIN, PART = 4.0, 0.1


class Near(NamedTuple):
    """Scratch memory of the search in a rollout; see the symbol table of this file."""

    c: Floats
    R: Floats
    turn: Floats
    way: Floats
    gone: Floats
    listed: Ints
    rest: Floats
    late: Ints
    state: Floats
    number: Ints


@optional(None, MEMORY_OPTIONS)
def make_near(contacts, rows, most):
    """Scratch memory for a tree of so many rows and so many contacts at a time."""
    ns, pairs = contacts.shapes.shape[0], contacts.pairs.shape[0]
    return Near(
        np.zeros((3, ns, 3)), np.zeros((rows, 9)), np.zeros(rows), np.zeros(ns), np.zeros(ns),
        np.empty(pairs, np.int64), np.empty((pairs, 2)), np.zeros(most, np.int64), np.zeros(3), np.zeros(3, np.int64),
    )  # fmt: skip


# --- motion ---------------------------------------------------------------------------------------------------------
@sweep
def move_shapes(contacts, N, P, side):
    """Centres ``side`` of all shapes at the poses P, turns of the rows, ways of the shapes; the longest way.

    All are counted from the centres at the start of the step and the rotations there.
    """
    for i in range(N.turn.size):
        square = 0.0
        for e in range(9):
            d = P[i, e] - N.R[i, e]
            square += d * d
        N.turn[i] = math.sqrt(0.5 * square)
    longest = 0.0
    for s in range(N.way.size):
        i, far = contacts.shapes[s, ROW], contacts.frames[s, REACH]
        # the origin of the poses may be another one in every step
        x, y, z = sub3(world_point(P, i, row3(contacts.frames, s, PLACE)), row3(P, 0, 9))
        dx, dy, dz = x - N.c[0, s, 0], y - N.c[0, s, 1], z - N.c[0, s, 2]
        N.c[side, s, 0], N.c[side, s, 1], N.c[side, s, 2] = x, y, z
        # what has no end does not move
        N.way[s] = math.sqrt(dx * dx + dy * dy + dz * dz) + far * N.turn[i] if math.isfinite(far) else 0.0
        longest = max(longest, N.way[s])
    return longest


@sweep
def begin_search(contacts, N, P):
    """The poses P at the start of a step; what has moved since the start of the last one goes on the odometers."""
    move_shapes(contacts, N, P, 0)
    for s in range(N.way.size):
        N.gone[s] = N.gone[s] + N.way[s] if N.number[VALID] == 1 else 0.0
    for i in range(N.turn.size):
        for e in range(9):
            N.R[i, e] = P[i, e]


@kernel
def relative_way(contacts, N, sa, sb):
    """How far two shapes move against each other at most."""
    x = N.c[1, sa, 0] - N.c[0, sa, 0] - N.c[1, sb, 0] + N.c[0, sb, 0]
    y = N.c[1, sa, 1] - N.c[0, sa, 1] - N.c[1, sb, 1] + N.c[0, sb, 1]
    z = N.c[1, sa, 2] - N.c[0, sa, 2] - N.c[1, sb, 2] + N.c[0, sb, 2]
    way = math.sqrt(x * x + y * y + z * z)
    for s in (sa, sb):
        far = contacts.frames[s, REACH]
        way += far * N.turn[contacts.shapes[s, ROW]] if math.isfinite(far) else 0.0
    return way


# --- distance -------------------------------------------------------------------------------------------------------
@kernel
def segments_apart(c, u, v):
    """Least distance of the segments c + s u and t v, with s and t in [-1, 1]."""
    a, e, b = dot3(u, u), dot3(v, v), dot3(u, v)
    cu, cv = dot3(c, u), dot3(c, v)
    den = a * e - b * b
    s = min(max((b * cv - cu * e) / den, -1.0), 1.0) if den > 1.0e-12 * a * e else 0.0
    t = min(max((b * s + cv) / e, -1.0), 1.0) if e > 0.0 else 0.0
    s = min(max((b * t - cu) / a, -1.0), 1.0) if a > 0.0 else 0.0
    t = min(max((b * s + cv) / e, -1.0), 1.0) if e > 0.0 else 0.0
    d = axpy3(s, u, axpy3(-t, v, c))
    return math.sqrt(dot3(d, d))


def _no_boxes(table, contacts, P, sa, sb):
    """No two boxes."""
    return -math.inf


@either(_no_boxes)
def boxes_apart(table, contacts, P, sa, sb):
    """A lower bound of the distance of two boxes: along the normals of their faces."""
    _, Ra, ca = shape_pose(contacts, sa, P)
    _, Rb, cb = shape_pose(contacts, sb, P)
    ha, hb, D = row3(contacts.frames, sa, SIZE), row3(contacts.frames, sb, SIZE), sub3(ca, cb)
    return max(best_face(Ra, ha, D, Rb, hb)[0], best_face(Rb, hb, D, Ra, ha)[0])


@sweep
def least_distance(contacts, N, P, side, sa, sb):
    """A lower bound of the distance of two shapes at the poses P, whose centres are those of ``side``."""
    C, F = N.c, contacts.frames
    d = (C[side, sa, 0] - C[side, sb, 0], C[side, sa, 1] - C[side, sb, 1], C[side, sa, 2] - C[side, sb, 2])
    u = matvec(row9(P, contacts.shapes[sa, ROW], 0), row3(contacts.capsules, sa, 0))
    if contacts.shapes[sb, CODE] == HALF_SPACE:
        n = column(shape_pose(contacts, sb, P)[1], 2)
        return dot3(n, d) - min(abs(dot3(n, u)) + contacts.capsules[sa, 3], F[sa, REACH])
    if not math.isfinite(F[sb, REACH]):
        return -math.inf
    v = matvec(row9(P, contacts.shapes[sb, ROW], 0), row3(contacts.capsules, sb, 0))
    apart = segments_apart(d, u, v) - contacts.capsules[sa, 3] - contacts.capsules[sb, 3]
    if contacts.shapes[sa, CODE] == BOX and contacts.shapes[sb, CODE] == BOX:
        apart = max(apart, boxes_apart(contacts.boxes, contacts, P, sa, sb))
    return apart


# --- list -----------------------------------------------------------------------------------------------------------
@sweep
def make_list(contacts, N, P, side, skin):
    """List the pairs whose balls are nearer than the skin at the poses P; all of them are awake."""
    C, F, n = N.c, contacts.frames, 0
    for s in range(N.way.size):
        for e in range(3):
            C[2, s, e] = C[side, s, e]
    for p in range(contacts.pairs.shape[0]):
        sa, sb = contacts.pairs[p, 0], contacts.pairs[p, 1]
        x, y, z = C[side, sa, 0] - C[side, sb, 0], C[side, sa, 1] - C[side, sb, 1], C[side, sa, 2] - C[side, sb, 2]
        far = F[sa, REACH] + F[sb, REACH] + skin
        if contacts.shapes[sb, CODE] == HALF_SPACE:
            near = dot3(column(shape_pose(contacts, sb, P)[1], 2), (x, y, z)) <= F[sa, REACH] + skin
        else:
            near = x * x + y * y + z * z <= far * far
        if near:
            N.listed[n], N.rest[n, 0], N.rest[n, 1] = p, -math.inf, 0.0
            n += 1
    N.state[0], N.number[LISTED], N.number[VALID] = skin, n, 1


@sweep
def keep_list(contacts, N, P, side, margin):
    """A list that is good for margins up to ``margin`` at the poses P."""
    C, far, largest = N.c, 0.0, 0.0
    for s in range(N.way.size):
        reach = contacts.frames[s, REACH]
        if math.isfinite(reach):
            x, y, z = C[side, s, 0] - C[2, s, 0], C[side, s, 1] - C[2, s, 1], C[side, s, 2] - C[2, s, 2]
            far, largest = max(far, x * x + y * y + z * z), max(largest, reach)
    if N.number[VALID] == 0 or 2.0 * math.sqrt(far) + margin > N.state[0]:
        make_list(contacts, N, P, side, SKIN * margin + PART * largest)


# --- search ---------------------------------------------------------------------------------------------------------
@sweep
def near_contacts(contacts, N, P, Q, share, more, ended, ints, floats):
    """Fill the tables of contacts (see ``contact.layout``) at the poses P; how many rows were filled.

    Each pair has the margin ``share`` times its relative motion and ``more``. ended: P are poses at the end of the
    step, and only those pairs are looked at of which the motion can have changed the nearest features, or that moved
    farther than their margin at its start. Q: poses that are expected at the end. ``begin_search`` comes before.
    """
    count, most, side = 0, ints.shape[0], 1 if ended else 0
    N.state[1 + side] = 2.0 * share * move_shapes(contacts, N, Q, 1) + more
    keep_list(contacts, N, P, side, N.state[1 + side])
    for e in range(N.number[LISTED]):
        p = N.listed[e]
        sa, sb = contacts.pairs[p, 0], contacts.pairs[p, 1]
        gone, way = N.gone[sa] + N.gone[sb], N.way[sa] + N.way[sb]
        if N.rest[e, 0] > gone + share * way + more + (way if ended else 0.0):
            if not ended:
                N.rest[e, 1] = 0.0
            continue
        moved = relative_way(contacts, N, sa, sb)
        margin, late = share * moved + more, ended and moved > N.rest[e, 1]
        if ended and not late and stays_nearest(contacts.shapes[sa, CODE], contacts.shapes[sb, CODE]):
            continue
        apart = least_distance(contacts, N, P, side, sa, sb)
        if not ended:
            # what is not near counts as what sleeps: when it fell asleep must not matter
            N.rest[e, 0], N.rest[e, 1] = apart + gone, margin if apart <= margin else 0.0
        if apart <= margin:
            limit, first = count + contacts.pairs[p, 2], count
            out = (ints, floats, P, margin, p, min(limit, most), count, Q, ended)
            count = pair_contacts(contacts, out, count, sa, sb)
            # a pair that might have had more
            if limit > most and count == most:
                N.number[FULL] = 1
            for k in range(first, count):
                N.late[k] = late
    return count


@sweep
def contacts_again(contacts, N, P, Q, ended, of, first, last, ints, floats):
    """Contacts of the pairs in rows first to last of ``of``, at other poses P a little apart; how many."""
    count, most, margin = 0, ints.shape[0], 2.0 * N.state[2 if ended else 1]
    for k in range(first, last):
        p = of[k, PAIR]
        if k > first and of[k - 1, PAIR] == p:
            continue
        limit = count + contacts.pairs[p, 2]
        out = (ints, floats, P, margin, p, min(limit, most), count, Q, ended)
        count = pair_contacts(contacts, out, count, contacts.pairs[p, 0], contacts.pairs[p, 1])
        if limit > most and count == most:
            N.number[FULL] = 1
    return count
