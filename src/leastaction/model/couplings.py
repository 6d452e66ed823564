"""Plan of the elimination of coupled bodies: loops, constraints, contacts and springs between bodies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leastaction.kernels import layout as kl
from leastaction.kernels.layout import NOWHERE


def common_ancestor(parents: Sequence[int], rows: Sequence[int]) -> int:
    """Nearest row (0 is the world) that lies on the way from every given row to the world."""
    common: list[int] | None = None
    for row in rows:
        path = [row]
        while path[-1] > 0:
            path.append(int(parents[path[-1]]))
        common = path if common is None else [each for each in common if each in set(path)]
    return common[0] if common else 0


def elimination(
    parents: Sequence[int], pairs: Sequence[tuple[int, int]], parts: Sequence[tuple[int, int, Sequence[int]]]
) -> dict[str, kl.Ints]:
    """Order, neighbours and places of blocks; see ``kernels/bodywise_graph.py``.

    Args:
        parents: parent row of every row; row 0 is the world.
        pairs: rows of bodies that are coupled directly.
        parts: for each node of multipliers its first constraint row, number of rows, and the rows of its bodies.
    """
    n = len(parents) - 1
    near: list[set[int]] = [set() for _ in range(n + 1 + len(parts))]

    def couple(i: int, j: int) -> None:
        if i > 0 and j > 0 and i != j:
            near[i].add(j)
            near[j].add(i)

    for i, j in pairs:
        couple(i, j)
    # a node of multipliers has its turn right before the nearest common ancestor of its bodies
    turns: dict[int, list[int]] = {}
    for k, (_, _, bodies) in enumerate(parts):
        turns.setdefault(common_ancestor(parents, bodies), []).append(n + 1 + k)
        for body in bodies:
            couple(n + 1 + k, body)
    order: list[tuple[int, int]] = []
    for row in range(n, -1, -1):
        order += [(node, 1) for node in turns.get(row, [])]
        if row > 0:
            order.append((row, 0))

    # elimination: neighbours of a node become neighbours of each other and of its parent
    slot = np.full((len(near), len(near)), -1, dtype=np.int64)
    lists: list[list[int]] = [[] for _ in near]
    used = 0
    for node, is_part in order:
        present = sorted(near[node])
        lists[node] = present
        for other in present:
            for pair in ((node, other), (other, node)):
                if slot[pair] < 0:
                    slot[pair] = used
                    used += 1
        parent = 0 if is_part else int(parents[node])
        for a in present:
            near[a].discard(node)
            if parent > 0 and a != parent and a not in near[parent]:
                # the blocks of the row become those of its parent, in their place
                slot[parent, a], slot[a, parent] = slot[node, a], slot[a, node]
            couple(parent, a)
            for b in present:
                couple(a, b)
    first = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    moves, fill = _places(parents, lists, slot)
    table = [(n + 1 + k, start, count) for k, (start, count, _) in enumerate(parts)]
    return {
        "order": np.array(order, dtype=np.int64).reshape(-1, 2),
        "first": first,
        "near": np.array([each for one in lists for each in one], dtype=np.int64),
        "slot": slot,
        "moves": moves,
        "fill": fill,
        "parts": np.array(table, dtype=np.int64).reshape(-1, 3),
    }


def _places(parents: Sequence[int], lists: list[list[int]], slot: kl.Ints) -> tuple[kl.Ints, kl.Ints]:
    """Where blocks come from and go to when a node is eliminated; see ``moves`` and ``fill`` of the kernels."""

    def place(i: int, j: int) -> int:
        if i == 0 or j == 0:
            return NOWHERE
        return -2 - i if i == j else int(slot[i, j])

    moves: list[tuple[int, ...]] = []
    fill: list[int] = []
    for node, present in enumerate(lists):
        parent = int(parents[node]) if node < len(parents) else 0
        for a in present:
            moves.append((place(node, a), place(a, node), place(parent, a), place(a, parent), len(fill)))
            fill += [place(a, b) for b in present]
    return np.array(moves, dtype=np.int64).reshape(-1, 5), np.array(fill, dtype=np.int64)
