"""Contacts of a pair that are deeper than the two solids are in each other.

Features are looked for one by one. An edge and a rim that lie behind each other, one of them well inside the other
solid, look like two that have passed each other. How deep the solids are at most is known from their widths.

    a, b   the solids, R and c their rotations and centres; n normal of a contact
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.contact.boxes import extent
from leastaction.contact.gap import gap
from leastaction.contact.shapes import column
from leastaction.forces.bodies import row3, row9
from leastaction.jit.decorators import kernel, sweep
from leastaction.spatial._source.vector import dot3, sub3


@kernel
def half_width(n, R, radius, half):
    """Half width of a cylinder along n."""
    c = dot3(n, column(R, 2))
    return half * abs(c) + radius * math.sqrt(max(0.0, 1.0 - c * c))


@sweep
def without_false(out, first, count, b_box, a, Ra, ca, ra, ha, Rb, cb, rb, hb, size):
    """Drop what is deeper than a cylinder a is in b (a box with half sides ``size``, or a cylinder); the new count.

    Along the normal n of every contact the solids are (ca - cb) . n less their half widths apart, and the largest of
    these is at most the distance, or the depth with a minus sign. A contact that is more than twice as deep is one of
    features that lie behind each other.
    """
    ints, floats, P = out[0], out[1], out[2]
    d, slack = sub3(ca, cb), 1e-4 * ra
    best, deepest = -math.inf, math.inf
    for k in range(first, count):
        i, j = ints[k, 1], ints[k, 2]
        found = gap(ints[k, 0], floats, k, row9(P, i, 0), row3(P, i, 9), row9(P, j, 0), row3(P, j, 9))
        n, deepest = found[1], min(deepest, found[0])
        width = extent(n, Rb, size) if b_box else half_width(n, Rb, rb, hb)
        # from b to a, whichever of them the contact names first
        best = max(best, (dot3(n, d) if i == a else -dot3(n, d)) - width - half_width(n, Ra, ra, ha))
    return drop_deeper(out, first, count, min(0.0, 2.0 * best) - slack, deepest)


@sweep
def drop_deeper(out, first, count, least, deepest):
    """Drop the contacts of a pair that are deeper than ``least``, if the deepest is; the new count."""
    ints, floats, P = out[0], out[1], out[2]
    if not deepest < least:
        return count
    kept = first
    for k in range(first, count):
        i, j = ints[k, 1], ints[k, 2]
        found = gap(ints[k, 0], floats, k, row9(P, i, 0), row3(P, i, 9), row9(P, j, 0), row3(P, j, 9))
        if found[0] >= least:
            for c in range(ints.shape[1]):
                ints[kept, c] = ints[k, c]
            for c in range(floats.shape[1]):
                floats[kept, c] = floats[k, c]
            kept += 1
    return kept
