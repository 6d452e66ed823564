"""How the numbers of frozen contacts move with the start of a step, for its derivative (``maximal.linear``).

A step freezes contacts at its start. What it missed is frozen at the end of a first solution, and the step is solved
again; that may happen MOST_LOOKS times. So some numbers F of frozen contacts depend on the start, and those of contacts
that were added on the solutions before:

    F(start) of what is found at k        F(start, z_0) of what is added at the end of solution 0, and so on

Along a direction of the start, F moves by dF. It is measured by a central difference: contacts are found once more at
poses that are displaced along the direction, and rows are matched by kind, bodies, pair and feature. The poses at the
end of solution s move with its own derivative, which is known before dF of what was added there is asked for.

A contact that is not found at both ends, or jumps between them, is at a border at which the step has no derivative
(a disc that is flat has no lowest point): it stays as it is.

    F, dF (nc, 24)          numbers of the contacts of the step, and their derivative
    sides (2, nc, 24)       them at both ends, of which ``found`` (2, nc) says whether they are known
    ints, new (nc, .)       tables of the contacts at one end
    P, Q (rows, 12)         poses at one end; poses that were expected at the end of the step
    counts (MOST_LOOKS + 2,)    number of solutions, and of the contacts of each
    V, U, mark, x1, lam     forces, marks, coordinates and multipliers of each solution; dry: of dry friction
    flags (2,)              whether what was found at k can move; whether dF is not zero
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.contact.broad import contacts_again
from leastaction.contact.features import stays_nearest
from leastaction.contact.gap import gap
from leastaction.contact.layout import CODE, FEATURE
from leastaction.jit.decorators import MEMORY_OPTIONS, optional, sweep
from leastaction.jit.lanes import ld3, ld9
from leastaction.maximal.barrier import MOST_LOOKS, frozen_plane
from leastaction.maximal.bodies import shift_of, shifted
from leastaction.maximal.dry import copy_dry, dry_count
from leastaction.tree.arrays import copy
from leastaction.tree.kinematics import kinematics
from leastaction.tree.layout import Floats, Ints

# Part of the displacement of a direction over which frozen numbers are differenced: what turns fast has little room.
PART = 0.1

# Second difference of a number, over the first, and absolute, above which it jumps.
JUMP, STILL = 0.1, 1.0e-7


class Frozen(NamedTuple):
    """Frozen contacts along a direction, and the solutions of a step; see the symbol table of this file."""

    F: Floats
    dF: Floats
    sides: Floats
    found: Ints
    ints: Ints
    new: Floats
    P: Floats
    Q: Floats
    S: Floats
    x: Floats
    xi: Floats
    counts: Ints
    V: Floats
    U: Floats
    mark: Floats
    x1: Floats
    lam: Floats
    flags: Ints
    dry: Floats


@optional(None, MEMORY_OPTIONS)
def make_frozen(contacts, T, tree, x, links):
    """Memory for a step with contacts; ``links``: rows of loops and constraints."""
    nc, n, nu, most = T.mu.size, tree.rows.shape[0], tree.rates.shape[0], MOST_LOOKS + 1
    return Frozen(
        np.zeros((nc, 24)), np.zeros((nc, 24)), np.zeros((2, nc, 24)), np.zeros((2, nc), np.int64),
        np.zeros((nc, 4), np.int64), np.zeros((nc, 24)), np.zeros((n, 12)), np.zeros((n, 12)), np.zeros((nu, 6)),
        np.zeros(x.size), np.zeros(nu), np.zeros(most + 1, np.int64), np.zeros((most, nc, T.V.shape[1])),
        np.zeros((most, T.U.shape[0], 2)), np.zeros((most, nc)), np.zeros((most, x.size)), np.zeros((most, links)),
        np.zeros(2, np.int64), np.zeros((most, dry_count(T.dry), 4)),
    )  # fmt: skip


# --- the solutions of a step ----------------------------------------------------------------------------------------
@optional(None)
def keep_loops_of(loops, L, lam, s):
    """Remember the multipliers of a solution."""
    for k in range(L.kind.size):
        lam[s, k] = L.lam[0, k]


@optional(None)
def put_loops_of(loops, L, lam, s):
    """Multipliers of a solution."""
    for k in range(L.kind.size):
        L.lam[0, k] = lam[s, k]


@optional(None)
def keep_solution(Z, s, loops, T, B, L):
    """Remember solution s: forces, marks, coordinates, multipliers."""
    for k in range(Z.counts[s + 1]):
        copy(T.V[k], Z.V[s, k])
        Z.mark[s, k] = T.X[k, 7]
    for k in range(T.U.shape[0]):
        copy(T.U[k], Z.U[s, k])
    copy_dry(T.dry, T.drag, Z.dry[s], False)
    copy(B.x1, Z.x1[s])
    keep_loops_of(loops, L, Z.lam, s)


@optional(None)
def put_solution(Z, s, loops, T, B, L):
    """Go back to solution s."""
    for k in range(Z.counts[s + 1]):
        copy(Z.V[s, k], T.V[k])
        T.X[k, 7] = Z.mark[s, k]
    for k in range(T.U.shape[0]):
        copy(Z.U[s, k], T.U[k])
    copy_dry(T.dry, T.drag, Z.dry[s], True)
    copy(Z.x1[s], B.x1)
    put_loops_of(loops, L, Z.lam, s)


@optional(None)
def note_solution(Z, loops, T, B, L, count):
    """One more solution, with ``count`` contacts; on one with the same contacts nothing depends, and it is replaced."""
    s = Z.counts[0]
    if s > 0 and Z.counts[s] == count:
        s -= 1
    Z.counts[0], Z.counts[s + 1] = s + 1, count
    keep_solution(Z, s, loops, T, B, L)


@optional(1)
def solutions(Z):
    """How many solutions the last one depends on, and itself."""
    return Z.counts[0]


@optional(0)
def contacts_of(Z, s):
    """Number of contacts of solution s."""
    return Z.counts[s + 1]


@optional(None)
def note_expected(Z, tree, x, B):
    """The poses that the guess leads to, by which features are chosen."""
    shifted(tree, x, B.guess, Z.x)
    kinematics(tree, Z.x, Z.Q, Z.S)


@optional(None)
def keep_frozen(Z, contacts, T):
    """Remember the numbers of all contacts of the step, and whether those that were found at k can move."""
    for k in range(Z.counts[Z.counts[0]]):
        copy(T.F[k], Z.F[k])
    for k in range(Z.counts[1]):
        p = T.ints[k, 3]
        one, two = contacts.shapes[contacts.pairs[p, 0], CODE], contacts.shapes[contacts.pairs[p, 1], CODE]
        if not stays_nearest(one, two):
            Z.flags[0] = 1


# --- along a direction ----------------------------------------------------------------------------------------------
@optional(None)
def put_frozen(Z, T, e):
    """Numbers of frozen contacts moved by e times their derivative."""
    if Z.flags[1] == 1:
        for k in range(Z.counts[Z.counts[0]]):
            for c in range(FEATURE):
                T.F[k, c] = Z.F[k, c] + e * Z.dF[k, c]


@sweep
def same_row(Z, now, kind, T, k):
    """The row among those found at one end that is contact k of the step, found with a gap of this kind; or -1."""
    for r in range(now):
        if (
            Z.ints[r, 0] == kind
            and Z.ints[r, 1] == T.ints[k, 1]
            and Z.ints[r, 2] == T.ints[k, 2]
            and Z.ints[r, 3] == T.ints[k, 3]
            and Z.new[r, FEATURE] == Z.F[k, FEATURE]
        ):
            return r
    return -1


@sweep
def slopes(Z, first, last, far):
    """dF of contacts from their numbers at both ends, each as far as ``far``."""
    for k in range(first, last):
        if Z.found[0, k] == 0 or Z.found[1, k] == 0:
            continue
        slope, bend = 0.0, 0.0
        for c in range(FEATURE):
            slope = max(slope, abs(Z.sides[0, k, c] - Z.sides[1, k, c]))
            bend = max(bend, abs(Z.sides[0, k, c] + Z.sides[1, k, c] - 2.0 * Z.F[k, c]))
        if slope > 0.0 and bend <= JUMP * slope + STILL:
            Z.flags[1] = 1
            for c in range(FEATURE):
                Z.dF[k, c] = (Z.sides[0, k, c] - Z.sides[1, k, c]) / (2.0 * far)


@optional(None)
def frozen_at_start(Z, contacts, tree, T, x, plus, minus, eps):
    """dF of what was found at k along a direction with the given ends; nothing of what was added yet."""
    # as they are
    put_frozen(Z, T, 0.0)
    Z.dF[:] = 0.0
    Z.flags[1] = 0
    far = 0.0
    for k in range(x.size):
        far = max(far, abs(plus[k] - x[k]), abs(minus[k] - x[k]))
    if Z.flags[0] == 0 or far == 0.0:
        return
    # what is found at both ends
    for side in range(2):
        shift_of(tree, x, plus if side == 0 else minus, Z.xi)
        for d in range(Z.xi.size):
            Z.xi[d] *= PART
        shifted(tree, x, Z.xi, Z.x)
        kinematics(tree, Z.x, Z.P, Z.S)
        now = contacts_again(contacts, T.near, Z.P, Z.Q, False, T.ints, 0, Z.counts[1], Z.ints, Z.new)
        for k in range(Z.counts[1]):
            r = same_row(Z, now, T.ints[k, 0], T, k)
            Z.found[side, k] = r >= 0
            if r >= 0:
                copy(Z.new[r], Z.sides[side, k])
    slopes(Z, 0, Z.counts[1], PART * eps)


@optional(None)
def frozen_at_end(Z, s, contacts, tree, T, xb, y, eps):
    """dF of what was added at the end xb of solution s, which moves by y along the direction."""
    first, last = Z.counts[s + 1], Z.counts[s + 2]
    for side in range(2):
        e = PART * eps if side == 0 else -PART * eps
        for d in range(Z.xi.size):
            Z.xi[d] = e * y[d]
        shifted(tree, xb, Z.xi, Z.x)
        kinematics(tree, Z.x, Z.P, Z.S)
        now = contacts_again(contacts, T.near, Z.P, Z.P, True, T.ints, first, last, Z.ints, Z.new)
        put_frozen(Z, T, e)
        for k in range(first, last):
            a, b, o = T.ints[k, 1], T.ints[k, 2], T.origin[k]
            Ra, pa, Rb, pb = ld9(Z.P, a, 0), ld3(Z.P, a, 9), ld9(Z.P, b, 0), ld3(Z.P, b, 9)
            # in place of a contact of the step, or one of those at its end
            r = o if o >= 0 else same_row(Z, now, -1 - o, T, k)
            Z.found[side, k] = r >= 0
            if o >= 0:
                _, n, _, _, ca, cb = gap(T.ints[o, 0], T.F, o, Ra, pa, Rb, pb)
                frozen_plane(Z.sides[side], k, Ra, pa, Rb, pb, n, ca, cb)
            elif r >= 0:
                _, n, _, _, ca, cb = gap(-1 - o, Z.new, r, Ra, pa, Rb, pb)
                frozen_plane(Z.sides[side], k, Ra, pa, Rb, pb, n, ca, cb)
    slopes(Z, first, last, PART * eps)
