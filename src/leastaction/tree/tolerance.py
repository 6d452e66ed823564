"""What the residual of a step is compared with, each part of the model by itself.

A part (``tree.part``) is what joints, couplings, forces and constraints connect. Its residuals are compared with the
momenta and impulses of its own, never below what rounding leaves of them, so that no part is solved more coarsely
because another one is heavier, larger or farther away. Along slides a residual is compared as an angular momentum, by
the typical arm of the bodies, so that no unit counts.

    term  (nu,)    largest terms of each row: momenta and impulses, of which there must be some where a residual is
    bound (k, 8)   of each part: TURN, PUSH largest terms about axes and along slides; WORLD rounding of momenta in the
                   world, where frames fly along; REACH farthest coordinate, FAR largest angle; LIMIT what counts as
                   zero, ROUNDING its part by rounding, WIDEST that of a gap
    unit  (nu, 3)  one over the limit of a row, one over its rounding, what its constraints add to the limit in units
                   of it
Handed tables with lanes, all of this but ``rows_over_limits`` works on four environments at once.
"""

# mypy: ignore-errors
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import kernel, memory, sweep
from leastaction.jit.lanes import ld, ld1, ld3, number, st
from leastaction.spatial._source.scalar import absolute
from leastaction.tree.layout import BALL, IU, IX, KIND, PART_ARM, PART_MASS, PRISMATIC, Floats

TURN, PUSH, WORLD, REACH, FAR, LIMIT, ROUNDING, WIDEST = 0, 1, 2, 3, 4, 5, 6, 7

# A momentum that counts as none at all, so that squares of ratios stay finite.
NOTHING = 1.0e-100


class Zero(NamedTuple):
    """What counts as zero; see the symbol table of this file."""

    term: Floats
    bound: Floats
    unit: Floats


@memory
def make_zero(tree):
    """Tables of what counts as zero."""
    nu = tree.rates.shape[0]
    return Zero(np.zeros(nu), np.zeros((tree.parts.shape[0], 8)), np.zeros((nu, 3)))


@kernel
def _raise(Z, g, e, value):
    """The larger of an entry of Z.bound and a value, stored there."""
    st(Z.bound, g, e, max(ld(Z.bound, g, e), value))


@kernel
def arm_of_row(tree, i):
    """What makes an angular momentum of a momentum of row i."""
    return tree.parts[tree.part[i], PART_ARM] if tree.rows[i, KIND] == PRISMATIC else 1.0


@sweep
def set_tolerances(tree, x, P, h, world, rtol, Z):
    """Z.bound and Z.unit from Z.term, the coordinates x and the poses P; ``world``: momenta seen from the world."""
    zero = number(Z.term, 0.0)
    for g in range(tree.parts.shape[0]):
        for e in range(8):
            st(Z.bound, g, e, zero)
    # the largest terms of each part
    for i in range(1, tree.rows.shape[0]):
        kind, g, d, o = tree.rows[i, KIND], tree.part[i], tree.rows[i, IU], ld3(P, i, 9)
        _raise(Z, g, REACH, max(max(absolute(o[0]), absolute(o[1])), absolute(o[2])))
        if kind != BALL and kind != PRISMATIC:
            _raise(Z, g, FAR, absolute(ld1(x, tree.rows[i, IX])))
        for k in range(d, d + 3 if kind == BALL else d + 1):
            _raise(Z, g, PUSH if kind == PRISMATIC else TURN, ld1(Z.term, k))
            _raise(Z, g, WORLD, 1.0e-16 * arm_of_row(tree, i) * absolute(ld1(world, k)))
    # what counts as zero
    gravity, many = abs(tree.gravity[0]) + abs(tree.gravity[1]) + abs(tree.gravity[2]), float(tree.rates.shape[0])
    for g in range(tree.parts.shape[0]):
        mass, arm = tree.parts[g, PART_MASS], tree.parts[g, PART_ARM]
        reach, far = ld(Z.bound, g, REACH), ld(Z.bound, g, FAR)
        push, turn = ld(Z.bound, g, PUSH), ld(Z.bound, g, TURN)
        terms = (arm + reach) * (h * gravity * mass + push) + turn
        # angles that have turned far are rounded more coarsely, and with them every pose
        rounding = (1.0e-15 * math.sqrt(many) + 4.0e-16 * far) * terms + ld(Z.bound, g, WORLD) + NOTHING
        st(Z.bound, g, LIMIT, rtol * max(turn, arm * push) + rounding)
        st(Z.bound, g, ROUNDING, rounding)
        st(Z.bound, g, WIDEST, rtol + (4.0e-15 + 1.0e-15 * far) * (1.0 + reach / arm))
    for i in range(1, tree.rows.shape[0]):
        g, d, by = tree.part[i], tree.rows[i, IU], arm_of_row(tree, i)
        for k in range(d, d + 3 if tree.rows[i, KIND] == BALL else d + 1):
            st(Z.unit, k, 0, by / ld(Z.bound, g, LIMIT))
            st(Z.unit, k, 1, by / ld(Z.bound, g, ROUNDING))
            st(Z.unit, k, 2, zero)


@kernel
def over_limits(r, Z):
    """Largest entry of r (nu, s) over its limit, the same over its rounding, and the sum of squares over the limits."""
    largest, rough, squares = number(Z.term, 0.0), number(Z.term, 0.0), number(Z.term, 0.0)
    for d in range(r.shape[0]):
        for a in range(r.shape[1]):
            size = absolute(ld(r, d, a))
            t = ld(Z.unit, d, 0) * size
            largest, rough = max(largest, t - ld(Z.unit, d, 2)), max(rough, ld(Z.unit, d, 1) * size)
            squares = squares + t * t
    return largest, rough, squares


@kernel
def rows_over_limits(by, r, Z):
    """The same of ``by`` r with r (nu,); without lanes."""
    largest, rough, squares = 0.0, 0.0, 0.0
    for d in range(r.size):
        size = by * abs(r[d])
        t = Z.unit[d, 0] * size
        largest, rough, squares = max(largest, t - Z.unit[d, 2]), max(rough, Z.unit[d, 1] * size), squares + t * t
    return largest, rough, squares
