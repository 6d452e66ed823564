"""Tendons over joints: a weighted sum of coordinates, its spring and damper, its limits.

A law of a tendon gets its own numbers first and the bodies behind them, as these may be many. With the length l, g its
derivative by the displacements of the bodies, and s how far l is beyond the ends of a dead band,

    p = c - k s - d ldot - f(l)      wrenches = p g        K = p_l g g^T        D = -d g g^T

where f is what a muscle does by itself: nothing up to the length where it is taut, a parabola to its knee, a line
behind it. A turn is measured between a direction of the child and two of the parent, and g is constant in link axes:
the axis on the child of a turn, and its opposite on the parent. A turn of half a revolution from the middle has no
coordinate, and near it the length is not a number, so that no run goes on with a wrong one.

    numbers  n, how many they are; bodies; terms; k; band (2); d; range of the force with the input, entry of the
             control and its share (``maximal/tendons.py``); c; f at the knee times two, where taut, knee; g (6 a
             body); 14 for each term: 1 for a turn, weight, place of parent and of child among the bodies, coordinate
             in the middle, and a turn's directions in the parent (3, 3) and in the child (3), or a slide's axis and
             point in the parent (3, 3) and point in the child (3)
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.forces.laws.fluid import nine_of, three
from leastaction.jit.decorators import kernel
from leastaction.jit.functions import force_function
from leastaction.spatial._source.vector import add3, dot3, matvec, sub3, tmatvec

# Places of the numbers.
SIZE, BODIES, TERMS, STIFFNESS, LOW, HIGH, DAMPING, LEAST, MOST, ENTRY, SHARE, CONSTANT, PASSIVE, TAUT, KNEE = range(15)

# Place of what belongs to the way of a tendon.
OWN = 15

# Numbers of a term.
TERM = 14

# Cosine of the largest turn from the middle, 3.04 radians.
_FARTHEST = -0.995


@kernel
def turn_of(a, at, parent, child):
    """Turn from the middle; not a number near half a revolution."""
    u = tmatvec(nine_of(a, parent), matvec(nine_of(a, child), three(a, at + 11)))
    c, s = dot3(three(a, at + 5), u), dot3(three(a, at + 8), u)
    return math.atan2(s, c) if c > _FARTHEST else math.nan


@kernel
def slide_of(a, at, parent, child):
    """Displacement along the axis, seen from the parent."""
    p = sub3(three(a, child + 9), three(a, parent + 9))
    p = tmatvec(nine_of(a, parent), add3(p, matvec(nine_of(a, child), three(a, at + 11))))
    return dot3(three(a, at + 5), sub3(p, three(a, at + 8)))


@kernel
def sum_of_joints(a):
    """The length: the weighted sum of coordinates."""
    first, total = int(a[SIZE]), 0.0
    for j in range(int(a[TERMS])):
        at = OWN + 6 * int(a[BODIES]) + TERM * j
        parent, child = first + 18 * int(a[at + 2]), first + 18 * int(a[at + 3])
        x = turn_of(a, at, parent, child) if a[at] > 0.0 else slide_of(a, at, parent, child)
        total += a[at + 1] * (a[at + 4] + x)
    return total


@kernel
def spring(a, o, length):
    """c - k s - f at a length, and its derivative; the numbers begin at place o of a."""
    p, slope, k = a[o + CONSTANT], 0.0, a[o + STIFFNESS]
    if k != 0.0:
        if length > a[o + HIGH]:
            p, slope = p - k * (length - a[o + HIGH]), -k
        elif length < a[o + LOW]:
            p, slope = p - k * (length - a[o + LOW]), -k
        elif length != length:
            p = length
    if a[o + PASSIVE] > 0.0:
        f, wide = a[o + PASSIVE], a[o + KNEE] - a[o + TAUT]
        x = (length - a[o + TAUT]) / wide
        if x > 1.0:
            p, slope = p - f * (x - 0.5), slope - f / wide
        elif x > 0.0:
            p, slope = p - 0.5 * f * x * x, slope - f * x / wide
        elif x != x:
            p = x
    return p, slope


@kernel
def has_spring(a):
    """Whether the length matters."""
    return a[STIFFNESS] != 0.0 or a[PASSIVE] > 0.0


@force_function
def joint_tendon_wrench(t, a, out):
    """p g."""
    first, n, p = int(a[SIZE]), 6 * int(a[BODIES]), a[CONSTANT]
    if has_spring(a):
        p, _ = spring(a, 0, sum_of_joints(a))
    if a[DAMPING] != 0.0:
        for e in range(n):
            p -= a[DAMPING] * a[OWN + e] * a[first + 18 * (e // 6) + 12 + e % 6]
    for e in range(n):
        out[e] = p * a[OWN + e]


@force_function
def joint_tendon_derivatives(t, a, out):
    """K and D."""
    n, slope = 6 * int(a[BODIES]), 0.0
    if has_spring(a):
        _, slope = spring(a, 0, sum_of_joints(a))
    for r in range(n):
        for c in range(n):
            out[n * r + c] = slope * a[OWN + r] * a[OWN + c]
            out[n * n + n * r + c] = -a[DAMPING] * a[OWN + r] * a[OWN + c]


@force_function
def joint_tendon_length(t, a, out):
    """Length, and g behind it."""
    out[0] = sum_of_joints(a)
    for e in range(6 * int(a[BODIES])):
        out[1 + e] = a[OWN + e]


@force_function
def joint_tendon_limits(t, a, out):
    """Room to the lower and to the upper limit, those that there are, and the rows of their derivatives behind."""
    n, length = 6 * int(a[BODIES]), sum_of_joints(a)
    low, high = a[LOW] > -math.inf, a[HIGH] < math.inf
    rows = (1 if low else 0) + (1 if high else 0)
    if low:
        out[0] = length - a[LOW]
    if high:
        out[rows - 1] = a[HIGH] - length
    for e in range(n):
        if low:
            out[rows + e] = a[OWN + e]
        if high:
            out[rows + n * (rows - 1) + e] = -a[OWN + e]
