"""The plan of the elimination for the bodies that touch now, made inside a rollout.

``maximal.graph`` eliminates along a plan. Where bodies may touch each other, that for all pairs would be nearly dense,
though few touch at a time. So a rollout has a plan of its own: for the tree, the loops and constraints, the springs and
inequalities between bodies, and the pairs among the contacts of the step. It is made anew when these pairs change, so
it depends on nothing but them: a run that is taken again, or goes on, is the same to the last bit.

Rows are eliminated after their children, multipliers after the rows between their bodies and the nearest ancestor of
all of them, and before that one (``maximal.graph``). Among those that may go the one with the fewest neighbours goes
first (minimum degree: Tinney and Walker 1967; George and Liu 1989). The order is found first and the places of blocks
then; coupling k has the blocks 2k and 2k + 1.

    nodes               rows of the tree, and behind them those of multipliers
    bits (N, W)         neighbours that are left of a node, 64 to a word; ``base``: those before elimination
    pending (N,)        how many nodes must go before a node may
    turn, degree (N,)   place in the order; number of neighbours left
    ready (N,)          nodes that may go            members (N,), mark (N,)  scratch
    live (2,)           couplings; 1 if there is a plan
"""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.jit.decorators import MEMORY_OPTIONS, forms, kernel, optional, sweep
from leastaction.maximal.graph import Couplings, coupling_of, leads
from leastaction.tree.layout import ADDED, NOWHERE, ON_DIAGONAL, PARENT, TURNED, Ints


class Outline(NamedTuple):
    """What is coupled whatever touches.

    parts   (nodes, 3)  as of ``Couplings``
    ends    (., 2)      node of multipliers, row of a body that it is coupled with
    waits   (., 2)      row that must be eliminated before a node of multipliers, and that node
    above   (nodes,)    the row before which it must go, or 0
    pairs   (., 2)      rows that springs or inequalities couple
    stiff   (1,)        as of ``Couplings``
    size    (2,)        couplings, and pairs of couplings of one node, that there is room for
    """

    parts: Ints
    ends: Ints
    waits: Ints
    above: Ints
    pairs: Ints
    stiff: Ints
    size: Ints


class Planner(NamedTuple):
    """Scratch memory of the planning; see the symbol table of this file."""

    outline: Outline
    bits: Ints
    base: Ints
    pending: Ints
    degree: Ints
    ready: Ints
    members: Ints
    mark: Ints
    live: Ints


def _given(plan, tree):
    """None, or a plan that was made for a mechanism."""
    return plan


@forms(_given, {Couplings: _given}, MEMORY_OPTIONS)
def own_plan(outline, tree):
    """A plan for an outline, empty so far."""
    n = tree.rows.shape[0]
    N, most, fills = n + outline.parts.shape[0], outline.size[0], outline.size[1]
    words, i = (N + 63) // 64, np.int64
    planner = Planner(
        outline, np.zeros((N, words), np.uint64), np.zeros((N, words), np.uint64), np.zeros(N, i), np.zeros(N, i),
        np.zeros(N, i), np.zeros(N, i), np.zeros(N, i), np.zeros(2, i),
    )  # fmt: skip
    return Couplings(
        np.zeros((N - 1, 2), i), np.zeros(N + 1, i), np.empty(most, i), np.zeros((0, 0), i), np.empty((most, 3), i),
        np.empty((fills, 3), i), np.zeros(N + 1, i), np.zeros(N, i), np.zeros(N, i), outline.stiff, outline.parts,
        np.zeros(N, i), np.zeros(1, i), planner,
    )  # fmt: skip


# --- sets -----------------------------------------------------------------------------------------------------------
@kernel
def put_in(bits, i, j):
    """Put j into set i."""
    bits[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)


@kernel
def drop(bits, i, j):
    """Take j out of set i."""
    bits[i, j >> 6] &= ~(np.uint64(1) << np.uint64(j & 63))


@kernel
def lowest(v):
    """Place of the lowest bit of a word."""
    u, place = v & (~v + np.uint64(1)), 0
    for k in range(6):
        half = 32 >> k
        if u >= np.uint64(1) << np.uint64(half):
            u >>= np.uint64(half)
            place += half
    return place


@sweep
def set_size(bits, i):
    """Number of members of set i."""
    n = 0
    for w in range(bits.shape[1]):
        v = bits[i, w]
        while v != np.uint64(0):
            v &= v - np.uint64(1)
            n += 1
    return n


@sweep
def list_set(bits, i, out, at):
    """Members of set i, in their order, into ``out`` from place ``at`` on; the place behind them."""
    for w in range(bits.shape[1]):
        v = bits[i, w]
        while v != np.uint64(0):
            out[at] = 64 * w + lowest(v)
            at += 1
            v &= v - np.uint64(1)
    return at


# --- what is coupled ------------------------------------------------------------------------------------------------
@kernel
def pair_up(bits, i, j):
    """Make two nodes neighbours; the world is none."""
    if i > 0 and j > 0 and i != j:
        put_in(bits, i, j)
        put_in(bits, j, i)


@sweep
def direct_pairs(Q, T, count):
    """Neighbours before elimination, into Q.bits."""
    for i in range(Q.bits.shape[0]):
        for w in range(Q.bits.shape[1]):
            Q.bits[i, w] = np.uint64(0)
    for k in range(Q.outline.pairs.shape[0]):
        pair_up(Q.bits, Q.outline.pairs[k, 0], Q.outline.pairs[k, 1])
    for k in range(Q.outline.ends.shape[0]):
        pair_up(Q.bits, Q.outline.ends[k, 0], Q.outline.ends[k, 1])
    for k in range(count):
        pair_up(Q.bits, T.ints[k, 1], T.ints[k, 2])


@kernel
def copy_bits(a, b):
    """The sets a into b."""
    for i in range(a.shape[0]):
        for w in range(a.shape[1]):
            b[i, w] = a[i, w]


@kernel
def same_bits(a, b):
    """Whether two tables of sets are the same."""
    for i in range(a.shape[0]):
        for w in range(a.shape[1]):
            if a[i, w] != b[i, w]:
                return False
    return True


# --- order ----------------------------------------------------------------------------------------------------------
@sweep
def join_around(Q, tree, i, d):
    """Node i goes: its d neighbours, which are Q.members, become those of each other and of its parent."""
    p = tree.rows[i, PARENT] if i < tree.rows.shape[0] else 0
    for k in range(d):
        a = Q.members[k]
        for w in range(Q.bits.shape[1]):
            Q.bits[a, w] |= Q.bits[i, w]
        drop(Q.bits, a, a)
        drop(Q.bits, a, i)
        pair_up(Q.bits, a, p)


@kernel
def release(Q, i, ready):
    """One node less before node i; the number of nodes that may go."""
    Q.pending[i] -= 1
    if i > 0 and Q.pending[i] == 0:
        Q.ready[ready], Q.degree[i] = i, set_size(Q.bits, i)
        return ready + 1
    return ready


@sweep
def find_order(Q, plan, tree):
    """Always the node with the fewest neighbours among those that may go."""
    n, N, outline = tree.rows.shape[0], Q.pending.size, Q.outline
    for i in range(N):
        Q.pending[i] = 0
    for i in range(1, n):
        Q.pending[tree.rows[i, PARENT]] += 1
    for k in range(outline.above.size):
        Q.pending[outline.above[k]] += 1
    for k in range(outline.waits.shape[0]):
        Q.pending[outline.waits[k, 1]] += 1
    ready = 0
    # the last row first where all are as good
    for i in range(N - 1, 0, -1):
        Q.pending[i] += 1
        ready = release(Q, i, ready)
    at_once = False
    for at in range(N - 1):
        where = ready - 1 if at_once else 0
        for k in range(1, 0 if at_once else ready):
            if Q.degree[Q.ready[where]] == 0:
                break
            if Q.degree[Q.ready[k]] < Q.degree[Q.ready[where]]:
                where = k
        i = Q.ready[where]
        ready -= 1
        Q.ready[where] = Q.ready[ready]
        plan.turn[i], plan.order[at, 0], plan.order[at, 1] = at, i, i >= n
        d = Q.degree[i]
        if d > 0:
            list_set(Q.bits, i, Q.members, 0)
            join_around(Q, tree, i, d)
            for k in range(d):
                Q.degree[Q.members[k]] = set_size(Q.bits, Q.members[k])
        # what waited for it
        before = ready
        if i < n:
            for k in range(outline.waits.shape[0]):
                if outline.waits[k, 0] == i:
                    ready = release(Q, outline.waits[k, 1], ready)
            ready = release(Q, tree.rows[i, PARENT], ready)
        else:
            ready = release(Q, outline.above[i - n], ready)
        # its parent has no more neighbours: none is better
        at_once = ready > before and Q.degree[Q.ready[ready - 1]] <= d


# --- places ---------------------------------------------------------------------------------------------------------
@sweep
def find_near(Q, plan, tree):
    """The neighbours of every node when its turn comes; False if there is no room for them."""
    at = 0
    for o in range(plan.order.shape[0]):
        i = plan.order[o, 0]
        Q.degree[i] = set_size(Q.bits, i)
        at += Q.degree[i]
        if at > plan.near.size:
            return False
        if Q.degree[i] > 0:
            list_set(Q.bits, i, Q.members, 0)
            join_around(Q, tree, i, Q.degree[i])
    # bits of a node that is gone are its neighbours at its turn
    at = 0
    for i in range(Q.degree.size):
        plan.first[i] = at
        if i > 0:
            at = list_set(Q.bits, i, plan.near, at)
    plan.first[Q.degree.size] = at
    plan.used[0], Q.live[0] = 2 * at, at
    return True


@sweep
def find_moves(Q, plan, tree):
    """Where couplings come from and go to; False if there is no room for the pairs of them."""
    n, f = tree.rows.shape[0], 0
    for i in range(Q.degree.size):
        plan.fills[i] = f
        p = tree.rows[i, PARENT] if 0 < i < n else 0
        for k in range(plan.first[i], plan.first[i + 1]):
            a = plan.near[k]
            plan.moves[k, 0], plan.moves[k, 1], plan.moves[k, 2] = 2 * k, NOWHERE, NOWHERE
            if p > 0 and a == p:
                plan.moves[k, 1], plan.moves[k, 2] = p, ON_DIAGONAL
            elif p > 0:
                plan.moves[k, 1] = 2 * coupling_of(plan, p, a)
                plan.moves[k, 2] = ADDED if leads(plan, p, a) == leads(plan, i, a) else TURNED
        # pairs of couplings
        count = plan.first[i + 1] - plan.first[i]
        if f + count * (count + 1) // 2 > plan.fill.shape[0]:
            return False
        for k in range(plan.first[i], plan.first[i + 1]):
            a = plan.near[k]
            plan.fill[f, 0], plan.fill[f, 1], plan.fill[f, 2] = k, k, a
            f += 1
            # couplings of a, by node
            for q in range(plan.first[a], plan.first[a + 1]):
                Q.mark[plan.near[q]] = q
            for q in range(plan.first[i], plan.first[i + 1]):
                b = plan.near[q]
                if b != a and plan.turn[a] < plan.turn[b]:
                    here = 2 * Q.mark[b]
                    if leads(plan, a, b):
                        plan.fill[f, 0], plan.fill[f, 1], plan.fill[f, 2] = k, q, here
                    else:
                        plan.fill[f, 0], plan.fill[f, 1], plan.fill[f, 2] = q, k, here
                    f += 1
    plan.fills[Q.degree.size] = f
    return True


@sweep
def find_first(Q, plan, tree):
    """What is added to diagonal blocks first; see ``mixed`` and ``opens`` of the plan."""
    n = tree.rows.shape[0]
    for i in range(plan.mixed.size):
        plan.mixed[i], plan.opens[i] = i >= n, 0
    for o in range(plan.order.shape[0]):
        i = plan.order[o, 0]
        for k in range(plan.first[i], plan.first[i + 1]):
            plan.mixed[plan.near[k]] = max(plan.mixed[plan.near[k]], 1)
        p = tree.rows[i, PARENT] if i < n else 0
        if p > 0 and plan.mixed[p] == 0:
            plan.mixed[p], plan.opens[i] = 2, 1


@sweep
def make_anew(Q, plan, tree):
    """The plan for the neighbours in Q.bits; False if there is no room for it."""
    copy_bits(Q.bits, Q.base)
    find_order(Q, plan, tree)
    copy_bits(Q.base, Q.bits)
    Q.live[1] = 0
    if not (find_near(Q, plan, tree) and find_moves(Q, plan, tree)):
        plan.used[0] = 0
        return False
    find_first(Q, plan, tree)
    Q.live[1] = 1
    return True


@optional(True)
def keep_pairs(Q, plan, tree, T, count):
    """``keep_plan`` with the plan of a rollout."""
    direct_pairs(Q, T, count)
    if Q.live[1] == 1 and same_bits(Q.bits, Q.base):
        return True
    return make_anew(Q, plan, tree)


@optional(True)
def keep_plan(plan, tree, T, count):
    """A plan for the pairs that touch; False if there is no room for it."""
    return keep_pairs(plan.planner, plan, tree, T, count)
