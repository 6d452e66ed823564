"""Plan of the elimination of coupled bodies: loops, constraints, contacts and springs between bodies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from leastaction.model.forces import PointSpring
from leastaction.model.model import Model
from leastaction.model.tendon_force import TendonForce
from leastaction.tree import layout as kl
from leastaction.tree.layout import ADDED, NOWHERE, ON_DIAGONAL, STAYS, TURNED


def common_ancestor(parents: Sequence[int], rows: Sequence[int]) -> int:
    """Nearest row (0 is the world) that lies on the way from every given row to the world."""
    common: list[int] | None = None
    for row in rows:
        path = [row]
        while path[-1] > 0:
            path.append(int(parents[path[-1]]))
        common = path if common is None else [each for each in common if each in set(path)]
    return common[0] if common else 0


def spring_pairs(model: Model) -> tuple[list[tuple[int, int]], bool]:
    """Rows of bodies between which springs act on their blocks (0 is the world), and whether there are any springs.

    These are springs between points, those and dampers of the translation of free joints, and tendons.
    """
    springs = [force for force in model.mechanism.forces if isinstance(force, PointSpring)]
    pairs = [(model.places[force.a].row, model.places[force.b].row) for force in springs]
    tendons = [force for force in model.mechanism.forces if isinstance(force, TendonForce)]
    for force in tendons:
        pairs += combinations([model.places[body].row for body in force.bodies], 2)
    tree, coordinates, passive = model.system.tree, model.system.coordinates, model.system.passive
    for first in coordinates.free[:, 1].tolist():
        if coordinates.v[first] in passive.free[:, 1]:
            row, parent = int(tree.rates[first + 3, 0]), int(tree.rows[tree.rates[first, 0], kl.PARENT])
            pairs.append((row, parent))
    found = {(a, b) for a, b in pairs if a > 0 and b > 0 and a != b}
    return sorted(found), bool(pairs)


def elimination(
    parents: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    parts: Sequence[tuple[int, int, Sequence[int]]],
    stiff: bool = True,
) -> dict[str, kl.Ints]:
    """Order, neighbours and places of blocks; see ``maximal/graph.py``.

    Args:
        parents: parent row of every row; row 0 is the world.
        pairs: rows of bodies that are coupled directly.
        parts: for each node of multipliers its first constraint row, number of rows, and the rows of its bodies.
        stiff: whether something else than loops and constraints acts between bodies or on them (contacts, springs).
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
    turn = {node: k for k, (node, _) in enumerate(order)}

    def leads(i: int, j: int) -> bool:
        # in whose axes a pair is kept: a body's rather than multipliers', else those of the node that goes first
        return (i <= n, -turn[i]) > (j <= n, -turn[j])

    used = 0
    for node, is_part in order:
        present = sorted(near[node])
        lists[node] = present
        parent = 0 if is_part else int(parents[node])
        for other in present:
            if slot[node, other] < 0:
                a, b = (node, other) if leads(node, other) else (other, node)
                slot[a, b], slot[b, a] = used, used + 1
                used += 2
        for a in present:
            near[a].discard(node)
            new = parent > 0 and a != parent and a not in near[parent]
            if new and leads(parent, a) == leads(node, a):
                # the blocks of the row become those of its parent, in their place
                slot[parent, a], slot[a, parent] = slot[node, a], slot[a, node]
            couple(parent, a)
            for b in present:
                couple(a, b)
    first = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    table = [(n + 1 + k, start, count) for k, (start, count, _) in enumerate(parts)]
    return {
        "order": np.array(order, dtype=np.int64).reshape(-1, 2),
        "first": first,
        "near": np.array([each for one in lists for each in one], dtype=np.int64),
        "slot": slot,
        **_places(parents, [node for node, _ in order], lists, slot, first),
        "stiff": np.array([stiff], dtype=np.int64),
        "parts": np.array(table, dtype=np.int64).reshape(-1, 3),
        "turn": np.array([turn.get(node, -1) for node in range(len(near))], dtype=np.int64),
        "used": np.array([used], dtype=np.int64),
    }


def outline_of(
    parents: Sequence[int], pairs: Sequence[tuple[int, int]], parts: Sequence[tuple[int, int, Sequence[int]]], room: int
) -> dict[str, kl.Ints]:
    """What is coupled whatever touches, for a plan that a rollout makes (``maximal/replan.py``).

    The arguments are those of ``elimination``, with the pairs of springs and inequalities alone; ``room``: how many
    neighbours a node may have in the mean.
    """
    n, above, ends, waits = len(parents) - 1, [], [], []
    for node, (_, _, bodies) in enumerate(parts, start=n + 1):
        common = common_ancestor(parents, bodies)
        above.append(common)
        ends += [(node, body) for body in sorted({*bodies} - {0})]
        # what hangs on the ancestor and carries one of the bodies
        below = set()
        for body in {*bodies} - {0, common}:
            while int(parents[body]) != common:
                body = int(parents[body])
            below.add(body)
        waits += [(row, node) for row in sorted(below)]
    nodes = n + 1 + len(parts)
    most = min(nodes * (nodes - 1) // 2, room * nodes + 64)
    fills = min(nodes**3, room * most + 64)
    table = [(n + 1 + k, start, count) for k, (start, count, _) in enumerate(parts)]
    shaped = {"parts": (table, 3), "ends": (ends, 2), "waits": (waits, 2), "pairs": (list(pairs), 2)}
    return {
        **{name: np.array(rows, dtype=np.int64).reshape(-1, columns) for name, (rows, columns) in shaped.items()},
        "above": np.array(above, dtype=np.int64),
        "size": np.array([most, fills], dtype=np.int64),
    }


def _places(
    parents: Sequence[int], order: list[int], lists: list[list[int]], slot: kl.Ints, first: kl.Ints
) -> dict[str, kl.Ints]:
    """Where blocks come from and go to when a node is eliminated; see ``moves`` and ``fill`` of the kernels."""

    def pair(i: int, j: int) -> int:
        return int(min(slot[i, j], slot[j, i]))

    moves: list[tuple[int, int, int]] = []
    fill: list[tuple[int, int, int]] = []
    fills = [0]
    for node, present in enumerate(lists):
        parent = int(parents[node]) if node < len(parents) else 0
        for k, a in enumerate(present, start=int(first[node])):
            # towards the parent
            here = pair(node, a)
            if parent == 0:
                moves.append((here, NOWHERE, NOWHERE))
            elif a == parent:
                moves.append((here, parent, ON_DIAGONAL))
            elif pair(parent, a) == here:
                moves.append((here, here, STAYS))
            else:
                same = (slot[parent, a] < slot[a, parent]) == (slot[node, a] < slot[a, node])
                moves.append((here, pair(parent, a), ADDED if same else TURNED))
            # between those that are coupled with it
            fill.append((k, k, a))
            for q, b in enumerate(present, start=int(first[node])):
                if slot[a, b] >= 0 and slot[a, b] % 2 == 0:
                    fill.append((k, q, pair(a, b)))
        fills.append(len(fill))
    # what is added to a diagonal block first: couplings, or what is left of a child, which is simply put there
    mixed, opens = np.zeros(len(lists), dtype=np.int64), np.zeros(len(lists), dtype=np.int64)
    mixed[len(parents) :] = 1
    for node in order:
        for a in lists[node]:
            mixed[a] = max(mixed[a], 1)
        parent = int(parents[node]) if node < len(parents) else 0
        if parent > 0 and mixed[parent] == 0:
            mixed[parent], opens[node] = 2, 1
    return {
        "moves": np.array(moves, dtype=np.int64).reshape(-1, 3),
        "fill": np.array(fill, dtype=np.int64).reshape(-1, 3),
        "fills": np.array(fills, dtype=np.int64),
        "mixed": mixed,
        "opens": opens,
    }
