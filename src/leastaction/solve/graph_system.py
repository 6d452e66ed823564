"""Linear systems whose matrix is a graph of blocks, solved in a time that follows the graph."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.solve.graph_layout import GraphPlan
from leastaction.solve.graph_plan import admissible, depth_first, later_nodes, least_degree, make_plan
from leastaction.tree.layout import Floats, Ints

Node = Hashable
Blocks = Mapping[tuple[Any, Any], Any]

ORDERS = ("degree", "depth")
"""Names of orders of elimination."""


class GraphSystem:
    """A square block matrix given by its graph: planned once, then factorised and solved for any numbers.

    Nodes are block rows and columns, edges the pairs of nodes with a block (both of F[i, j] and F[j, i], which need not
    be equal or transposed). The elimination runs from leaves to root (Bruedigam et al. 2023, Algorithms 1 to 4): a tree
    has no fill-in and costs a constant number of block operations for each node; fill-in is confined to cycles.

    A constraint (a node whose diagonal block is zero or nearly so, as that of a joint) is never taken before bodies
    next to it have enough rows for its pivot.

    Args:
        sizes: rows of each node, a sequence (nodes are then 0, 1, 2, ...) or a mapping from nodes to rows.
        edges: pairs of nodes.
        constraints: nodes with a zero diagonal block.
        last: nodes that are stacked in one dense node at the end, such as the joints that close loops.
        order: "degree" takes the node with the fewest neighbours left; "depth" is the reverse of a depth-first search,
            as in the paper; or all nodes (those of ``last`` too, at the end or not at all) in the order wanted, which
            is taken as it is.

    Attributes:
        nodes: nodes in the order of rows of vectors.
        size: rows of all nodes.
        order: nodes in the order of elimination.
        parents: parent of each node in the elimination tree, None for roots; those of ``last`` have the first of them
            for a parent.
        fill_in: pairs of nodes without an edge that get blocks in the elimination.
        operations: block operations of one factorisation: inversions, solutions and products.
        plan: what compiled code reads, ``solve.graph_layout.GraphPlan``.
    """

    def __init__(
        self,
        sizes: Sequence[int] | Mapping[Any, int],
        edges: Iterable[tuple[Any, Any]],
        *,
        constraints: Iterable[Any] = (),
        last: Iterable[Any] = (),
        order: str | Sequence[Any] = "degree",
    ) -> None:
        given = dict(sizes) if isinstance(sizes, Mapping) else dict(enumerate(sizes))
        for node, size in given.items():
            if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
                raise ModelError(f"node {node!r}: its size must be a whole number of at least 1, got {size!r}.")
        if not given:
            raise ModelError("graph: there are no nodes.")
        self.nodes: tuple[Node, ...] = tuple(given)
        self._number = {node: k for k, node in enumerate(self.nodes)}
        self._sizes = [int(size) for size in given.values()]
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)])
        self.size = int(self._starts[-1])
        # pairs of numbers
        self._edges: set[tuple[int, int]] = set()
        for edge in edges:
            i, j = self._pair(edge)
            if i == j:
                raise ModelError(f"edge {edge!r}: a node has its diagonal block without an edge to itself.")
            self._edges.add((min(i, j), max(i, j)))
        self._plan_nodes(self._numbers(constraints, "constraints"), self._numbers(last, "last"), order)

    def rows(self, node: Any) -> slice:
        """Rows of a node in vectors."""
        k = self._numbers([node], "rows")[0]
        return slice(int(self._starts[k]), int(self._starts[k + 1]))

    def place(self, row: Any, column: Any) -> tuple[int, int]:
        """Where the block (row, column) lies in the array of blocks: its first entry, and the length of its lines."""
        i, j = self._pair((row, column))
        (a, s), (b, t) = self._where[i], self._where[j]
        if i != j and (min(i, j), max(i, j)) not in self._edges and a != b:
            raise ModelError(f"block {(row, column)!r}: there is no edge between these nodes.")
        width = int(self.plan.size[b])
        return self._begin[a, b] + s * width + t, width

    def pack(self, blocks: Blocks) -> Floats:
        """The array of blocks that compiled code reads, from blocks by pairs of nodes; what is not given is zero."""
        out = np.zeros(int(self.plan.total[0]))
        for pair, block in blocks.items():
            i, j = self._pair(pair)
            first, width = self.place(*pair)
            array = np.asarray(block, dtype=float)
            shape = (self._sizes[i], self._sizes[j])
            if array.shape != shape and not (array.shape == () and shape == (1, 1)):
                raise ModelError(f"block {pair!r}: expected shape {shape}, got {array.shape}.")
            if not np.isfinite(array).all():
                raise ModelError(f"block {pair!r}: every number must be finite.")
            index = first + width * np.arange(shape[0])[:, None] + np.arange(shape[1])
            out[index] = array
        return out

    def dense(self, blocks: Blocks) -> Floats:
        """The matrix (size, size), for comparison."""
        out = np.zeros((self.size, self.size))
        for (row, column), block in blocks.items():
            self.place(row, column)
            out[self.rows(row), self.rows(column)] = block
        return out

    def factor(self, blocks: Blocks, *, scale: bool = True) -> GraphFactors:
        """Factorise the matrix of these blocks.

        Args:
            blocks: (row node, column node) to array; what is not given is zero.
            scale: bring the largest entry of every row and column to about 1 first, by powers of two.
        """
        from leastaction.solve.graph import factor_graph

        A = self.pack(blocks)
        F, pivot = np.empty_like(A), np.empty(self.size, dtype=np.int64)
        r, c = np.empty(self.size), np.empty(self.size)
        failed = factor_graph(self.plan, A, F, pivot, r, c, scale)
        if failed >= 0:
            raise ModelError(self._singular(failed))
        return GraphFactors(self, A, F, pivot, r, c)

    def solve(self, blocks: Blocks, rhs: Any, *, refine: int = 2, scale: bool = True) -> Floats:
        """Solution of F x = rhs for one right-hand side (size,) or several (size, k), in the same shape.

        Args:
            blocks: (row node, column node) to array; what is not given is zero.
            rhs: right-hand sides.
            refine: largest number of sweeps of iterative refinement.
            scale: see ``factor``.
        """
        return self.factor(blocks, scale=scale).solve(rhs, refine=refine)

    def __repr__(self) -> str:
        return f"GraphSystem({len(self.nodes)} nodes, {len(self._edges)} edges, fill-in {len(self.fill_in)})"

    def _plan_nodes(self, constraints: list[int], last: list[int], order: str | Sequence[Any]) -> None:
        """Stack the last nodes, find the order, and make the plan."""
        # storage nodes: each its own, the last ones together
        stack = set(last)
        single = [k for k in range(len(self.nodes)) if k not in stack]
        members = [[k] for k in single] + ([last] if last else [])
        store = {k: s for s, some in enumerate(members) for k in some}
        sizes = [sum(self._sizes[k] for k in some) for some in members]
        neighbours: list[set[int]] = [set() for _ in members]
        for i, j in self._edges:
            if store[i] != store[j]:
                neighbours[store[i]].add(store[j])
                neighbours[store[j]].add(store[i])
        held = {store[k] for k in constraints if k not in stack}
        end = {len(members) - 1} if last else set()
        found = self._find_order(order, neighbours, sizes, held, end, store)
        # in the order of elimination
        later = later_nodes(found, neighbours)
        place = {s: k for k, s in enumerate(found)}
        edges = {tuple(sorted((place[s], place[t]))) for s in range(len(members)) for t in neighbours[s]}
        self.plan: GraphPlan = make_plan([sizes[s] for s in found], later, edges)  # type: ignore[arg-type]
        self._begin = {(int(i), int(j)): int(o) for i, j, o in self.plan.block}
        self._where: dict[int, tuple[int, int]] = {}
        rows: list[int] = []
        for k, s in enumerate(found):
            offset = 0
            for node in members[s]:
                self._where[node] = (k, offset)
                offset += self._sizes[node]
                rows.extend(range(int(self._starts[node]), int(self._starts[node + 1])))
        self._rows: Ints = np.array(rows, dtype=np.int64)
        self._report([members[s] for s in found], later, edges)

    def _find_order(
        self,
        order: str | Sequence[Any],
        neighbours: list[set[int]],
        sizes: list[int],
        constraints: set[int],
        end: set[int],
        store: dict[int, int],
    ) -> list[int]:
        """Storage nodes in the order of elimination."""
        if isinstance(order, str):
            if order == "degree":
                return least_degree(neighbours, sizes, constraints, end)
            if order == "depth":
                found = [s for s in depth_first(neighbours, constraints) if s not in end]
                return admissible([*found, *end], neighbours, sizes, constraints)
            raise ModelError(f"order: expected one of {', '.join(ORDERS)} or a list of nodes, got {order!r}.")
        wanted = list(dict.fromkeys(store[k] for k in self._numbers(order, "order")))
        found = [s for s in wanted if s not in end]
        if len(found) + len(end) != len(neighbours) or len(wanted) < len(found):
            raise ModelError("order: every node must stand in it once.")
        return [*found, *end]

    def _report(self, members: list[list[int]], later: list[list[int]], edges: set[Any]) -> None:
        """Order, parents, fill-in and operations, in the user's nodes."""
        name = [[self.nodes[k] for k in some] for some in members]
        self.order: tuple[Node, ...] = tuple(node for some in name for node in some)
        self.parents: dict[Node, Node | None] = {}
        for some, places in zip(name, later, strict=True):
            for node in some:
                self.parents[node] = name[places[0]][0] if places else None
        pairs = [(i, j) for i, places in enumerate(later) for j in places if (i, j) not in edges]
        self.fill_in: tuple[tuple[Node, Node], ...] = tuple((name[i][0], name[j][0]) for i, j in pairs)
        self.operations = sum(1 + len(places) + len(places) ** 2 for places in later)
        self._stored = name

    def _singular(self, place: int) -> str:
        """Why the elimination stopped."""
        names = ", ".join(repr(node) for node in self._stored[place])
        return (
            f"node {names}: its pivot is zero where it is eliminated, after {place} of {len(self._stored)} nodes. The "
            "matrix is singular, or the node is a constraint: name it in constraints= or last=, or give its diagonal "
            "block a small number."
        )

    def _numbers(self, nodes: Iterable[Any], what: str) -> list[int]:
        """Numbers of nodes, each once."""
        out = []
        for node in nodes:
            if node not in self._number:
                raise ModelError(f"{what}: there is no node {node!r}.")
            out.append(self._number[node])
        if len(set(out)) != len(out):
            raise ModelError(f"{what}: a node stands in it twice.")
        return out

    def _pair(self, pair: Any) -> tuple[int, int]:
        """Numbers of a pair of nodes."""
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ModelError(f"expected a pair of nodes, got {pair!r}.")
        for node in pair:
            if node not in self._number:
                raise ModelError(f"pair {tuple(pair)!r}: there is no node {node!r}.")
        return self._number[pair[0]], self._number[pair[1]]


@dataclass(frozen=True, eq=False)
class GraphFactors:
    """The factors of a ``GraphSystem`` for certain blocks.

    Attributes:
        system: the graph.
        blocks: the matrix, as ``GraphSystem.pack`` lays it out.
        factors: its factors, in the same places.
        pivot: exchanges of rows inside the diagonal blocks.
        row_scale, column_scale: powers of two, in the order of elimination.
    """

    system: GraphSystem
    blocks: Floats
    factors: Floats
    pivot: Ints
    row_scale: Floats
    column_scale: Floats

    def solve(self, rhs: Any, *, refine: int = 2) -> Floats:
        """Solution for one right-hand side (size,) or several (size, k), refined by at most ``refine`` sweeps."""
        from leastaction.solve.graph import solve_graph

        b = np.asarray(rhs, dtype=float)
        if b.ndim not in (1, 2) or b.shape[0] != self.system.size:
            raise ModelError(f"right-hand side: expected {self.system.size} rows, got shape {b.shape}.")
        if not np.isfinite(b).all():
            raise ModelError("right-hand side: every number must be finite.")
        if isinstance(refine, bool) or not isinstance(refine, (int, np.integer)) or refine < 0:
            raise ModelError(f"refine: expected a whole number of sweeps, got {refine!r}.")
        # one row for each right-hand side, in the order of elimination
        order = self.system._rows
        sides = np.ascontiguousarray(b.reshape(self.system.size, -1).T[:, order])
        x, work = np.empty_like(sides), np.empty((2, self.system.size))
        solve_graph(
            self.system.plan, self.blocks, self.factors, self.pivot,
            self.row_scale, self.column_scale, sides, x, work, int(refine),
        )  # fmt: skip
        out = np.empty_like(x)
        out[:, order] = x
        return np.asarray(out.T.reshape(b.shape))
