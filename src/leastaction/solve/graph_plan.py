"""In which order the nodes of a graph are eliminated, and the plan of the factorisation.

A node that is a constraint has a zero diagonal block until bodies next to it are eliminated, so it must not go first.
It may go once the eliminated bodies that it is connected to have as many rows left as it has: rows of bodies minus rows
of constraints, counted over the eliminated nodes that hang together. In a tree of bodies and joints that makes a joint
that holds the tree to the ground the root, whatever the order of the bodies.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import numpy as np

from leastaction.solve.graph_layout import GraphPlan

Neighbours = list[set[int]]


def depth_first(neighbours: Neighbours, constraints: set[int]) -> list[int]:
    """Nodes in reverse order of discovery: roots last, every edge inside a branch (Bruedigam et al. 2023, section 4).

    A root is a constraint with one neighbour where there is one, as a joint to the ground is.
    """
    n = len(neighbours)
    roots = sorted(range(n), key=lambda i: (i not in constraints or len(neighbours[i]) != 1, i))
    found: list[int] = []
    seen = [False] * n
    for root in roots:
        stack = [root]
        while stack:
            i = stack.pop()
            if seen[i]:
                continue
            seen[i] = True
            found.append(i)
            stack.extend(sorted((j for j in neighbours[i] if not seen[j]), reverse=True))
    return found[::-1]


class _Freedom:
    """Rows left in each connected set of eliminated nodes: rows of bodies minus rows of constraints."""

    def __init__(self, sizes: Sequence[int], constraints: set[int]) -> None:
        self.sizes, self.constraints = sizes, constraints
        self.leader = list(range(len(sizes)))
        self.left = [0] * len(sizes)
        self.done = [False] * len(sizes)

    def _find(self, i: int) -> int:
        while self.leader[i] != i:
            self.leader[i] = self.leader[self.leader[i]]
            i = self.leader[i]
        return i

    def allows(self, i: int, edges: set[int]) -> bool:
        """Whether node i may be eliminated now."""
        if i not in self.constraints:
            return True
        sets = {self._find(j) for j in edges if self.done[j]}
        return sum(self.left[k] for k in sets) >= self.sizes[i]

    def eliminate(self, i: int, edges: set[int]) -> None:
        """Join node i with the eliminated sets next to it."""
        self.done[i] = True
        self.left[i] = -self.sizes[i] if i in self.constraints else self.sizes[i]
        for j in edges:
            if self.done[j]:
                k, m = self._find(j), self._find(i)
                if k != m:
                    self.leader[k] = m
                    self.left[m] += self.left[k]


def admissible(order: Iterable[int], neighbours: Neighbours, sizes: Sequence[int], constraints: set[int]) -> list[int]:
    """An order in which constraints that come too early wait until they may go."""
    freedom = _Freedom(sizes, constraints)
    out: list[int] = []
    waiting: list[int] = []

    def take(i: int) -> None:
        freedom.eliminate(i, neighbours[i])
        out.append(i)

    for i in order:
        if not freedom.allows(i, neighbours[i]):
            waiting.append(i)
            continue
        take(i)
        # those that this node set free, in their own order
        for j in [j for j in waiting if j in neighbours[i]]:
            if freedom.allows(j, neighbours[j]):
                waiting.remove(j)
                take(j)
    return out + waiting


def least_degree(neighbours: Neighbours, sizes: Sequence[int], constraints: set[int], end: set[int]) -> list[int]:
    """Always the node with the fewest neighbours left, so that trees have no fill-in; constraints when they may.

    The nodes in ``end`` come last. Equal ones are taken in the order of ``depth_first``.
    """
    place = {node: k for k, node in enumerate(depth_first(neighbours, constraints))}
    left: Neighbours = [set(some) for some in neighbours]
    freedom = _Freedom(sizes, constraints)
    # late nodes, then degree, then place; an entry whose degree is out of date is dropped
    heap = [(i in end, len(left[i]), place[i], i) for i in range(len(left))]
    heapq.heapify(heap)
    held: dict[int, tuple[bool, int, int, int]] = {}
    out: list[int] = []
    while heap or held:
        if not heap:
            # constraints that no order makes regular: the numbers decide
            entry = min(held.values())
            held.pop(entry[3])
            entry_allowed = True
        else:
            entry = heapq.heappop(heap)
            if freedom.done[entry[3]] or entry[1] != len(left[entry[3]]):
                continue
            entry_allowed = freedom.allows(entry[3], neighbours[entry[3]])
        i = entry[3]
        if not entry_allowed:
            held[i] = entry
            continue
        # join the neighbours that are left
        freedom.eliminate(i, neighbours[i])
        out.append(i)
        around = left[i]
        for j in around:
            left[j] |= around
            left[j] -= {i, j}
        for j in around | {k for k in held if k in neighbours[i]}:
            held.pop(j, None)
            heapq.heappush(heap, (j in end, len(left[j]), place[j], j))
    return out


def later_nodes(order: Sequence[int], neighbours: Neighbours) -> list[list[int]]:
    """For each node, in the order of elimination, the places of the later nodes that share a block with it."""
    place = {node: k for k, node in enumerate(order)}
    later: list[set[int]] = [{place[j] for j in neighbours[i] if place[j] > place[i]} for i in order]
    # what a node leaves behind is handed to the first of its later nodes, its parent in the elimination tree
    for places in later:
        if places:
            parent = min(places)
            later[parent] |= places - {parent}
    return [sorted(places) for places in later]


def make_plan(sizes: Sequence[int], later: list[list[int]], edges: set[tuple[int, int]]) -> GraphPlan:
    """The plan for nodes that are already in the order of elimination.

    Args:
        sizes: rows of each node.
        later: places of later nodes of each, fill-in included.
        edges: pairs (i, j), i < j, that hold blocks before elimination; every diagonal block does.
    """
    n = len(sizes)
    where: dict[tuple[int, int], int] = {}
    total = 0
    # a node's blocks beside each other: diagonal, then upper and lower of each later node
    for i in range(n):
        for pair in [(i, i), *(pair for j in later[i] for pair in ((i, j), (j, i)))]:
            where[pair] = total
            total += sizes[pair[0]] * sizes[pair[1]]
    rows = [(j, where[i, j], where[j, i]) for i in range(n) for j in later[i]]
    target = [where[j, k] for i in range(n) for j in later[i] for k in later[i]]
    held = [pair for pair in where if pair[0] == pair[1] or (min(pair), max(pair)) in edges]
    return GraphPlan(
        np.array(sizes, dtype=np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([where[i, i] for i in range(n)], dtype=np.int64),
        np.concatenate([[0], np.cumsum([len(some) for some in later])]).astype(np.int64),
        np.array(rows, dtype=np.int64).reshape(-1, 3),
        np.array(target, dtype=np.int64),
        np.array([(*pair, where[pair]) for pair in held], dtype=np.int64).reshape(-1, 3),
        np.array([total], dtype=np.int64),
    )
