"""Fill-in of a mechanism's matrix by the order of elimination: trees, contacts with the ground, a loop with dampers."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.solve.graph_system import GraphSystem

Edges = tuple[tuple[int, int], ...]


class _Graph(NamedTuple):
    """Nodes of a mechanism: bodies, joints, contacts, and the edges between them.

    Attributes:
        bodies: with six rows each.
        joints: rows by node; five for a hinge.
        contacts: leaves with one row each and a diagonal block of their own.
        edges: pairs of nodes.
        printed: orders of the paper by name.
    """

    bodies: tuple[int, ...]
    joints: dict[int, int]
    contacts: tuple[int, ...]
    edges: Edges
    printed: dict[str, tuple[int, ...]]

    @property
    def sizes(self) -> dict[int, int]:
        """Rows by node."""
        return {**dict.fromkeys(self.bodies, 6), **self.joints, **dict.fromkeys(self.contacts, 1)}


# five links and four hinges, Fig. 2 of both papers; the orders are those of the printed matrices
_TREE = _Graph(
    bodies=(1, 2, 3, 4, 5),
    joints=dict.fromkeys((6, 7, 8, 9), 5),
    contacts=(),
    edges=((1, 6), (2, 6), (2, 7), (3, 7), (2, 8), (4, 8), (1, 9), (5, 9)),
    printed={"as numbered": (1, 2, 3, 4, 5, 6, 7, 8, 9), "from leaves to root": (5, 9, 3, 7, 4, 8, 2, 6, 1)},
)

# two legs of two links, and a contact at the end of each: the middle hinge is the hip
_WALKER = _Graph(
    bodies=(1, 2, 3, 4),
    joints=dict.fromkeys((5, 6, 7), 5),
    contacts=(8, 9),
    edges=((1, 5), (2, 5), (2, 6), (3, 6), (3, 7), (4, 7), (1, 8), (4, 9)),
    printed={"as numbered": (1, 2, 3, 4, 5, 6, 7, 8, 9)},
)

# the tree of five links with its bodies 2, 3, 4 closed to a loop with body 1: node 6 is the two hinges of body 1 in it;
# a damper in every hinge joins the two bodies
_LOOP = _Graph(
    bodies=(1, 2, 3, 4, 5),
    joints={6: 10, 7: 5, 8: 5, 9: 5},
    contacts=(),
    edges=(
        (1, 6), (3, 6), (4, 6), (2, 7), (3, 7), (2, 8), (4, 8), (1, 9), (5, 9),
        (1, 3), (1, 4), (2, 3), (2, 4), (1, 5),
    ),
    printed={"as numbered": (1, 2, 3, 4, 5, 6, 7, 8, 9)},
)  # fmt: skip
_CYCLE = frozenset({1, 2, 3, 4, 6, 7, 8})


@experiment(
    "bruedigam2020-fig3",
    paper="Brüdigam, Manchester 2020, Fig. 3; Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 3",
    title="Fill-in of a mechanism of five links and four joints: as numbered, and from leaves to root",
    aliases=("bruedigam2023-fig3",),
)
def figure3(context: Context) -> Result:
    """The printed orders, and those that the library finds."""
    systems = _systems(_TREE, context)
    bad, good = (2 * len(systems[name].fill_in) for name in _TREE.printed)
    claims = [
        Claim("blocks of fill-in, nodes as numbered (a)", 12, bad, bad == 12),
        Claim("blocks of fill-in, from leaves to root (b)", 0, good, good == 0),
        *(
            Claim(f"blocks of fill-in, order='{name}'", 0, 2 * len(systems[name].fill_in), not systems[name].fill_in)
            for name in ("degree", "depth")
        ),
        _solved(_TREE, systems),
    ]
    return Result(claims, {"": _rows(systems)}, {"": _figure(_TREE, systems, list(_TREE.printed))})


@experiment(
    "bruedigam2023-fig4",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 4",
    title="Fill-in of a walking mechanism with contacts with the ground",
)
def figure4(context: Context) -> Result:
    """Four links, three joints and two contact points, which are leaves; and the same with more of them."""
    from leastaction.solve.graph_system import GraphSystem

    systems = _systems(_WALKER, context)
    fill = {name: 2 * len(systems[name].fill_in) for name in ("degree", "depth")}
    # many contacts on every body: operations follow their number
    operations = []
    counts = (0, 10, 20, 40)
    for count in counts:
        contacts = tuple(range(8, 8 + 4 * count))
        edges = (*_WALKER.edges[:6], *((1 + k % 4, node) for k, node in enumerate(contacts)))
        graph = _WALKER._replace(contacts=contacts, edges=edges)
        system = GraphSystem(graph.sizes, graph.edges, constraints=graph.joints)
        operations.append(system.operations)
    steps = np.diff(operations) / np.diff(counts)
    claims = [
        Claim("blocks of fill-in after ordering", 0, max(fill.values()), max(fill.values()) == 0),
        Claim(
            "linear in the contact points: block operations of each further one",
            "linear",
            ", ".join(f"{step / 4:g}" for step in steps),
            bool(np.ptp(steps) == 0),
        ),
        _solved(_WALKER, systems),
    ]
    return Result(claims, {"": _rows(systems)}, {"": _figure(_WALKER, systems, ["as numbered", "degree"])})


@experiment(
    "bruedigam2023-fig6",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 6",
    title="Fill-in of a mechanism with a kinematic loop and dampers at every joint",
)
def figure6(context: Context) -> Result:
    """The mechanism of Fig. 3 with a loop. The text does not say where it is; ours joins body 1 to 3 and 4."""
    systems = _systems(_LOOP, context)
    n = len(_LOOP.sizes)
    bad = systems["as numbered"].fill_in
    full = (n + 2 * (len(_LOOP.edges) + len(bad))) / n**2
    good = {name: systems[name].fill_in for name in ("degree", "depth")}
    inside = all(set(pair) <= _CYCLE for pairs in good.values() for pair in pairs)
    least = 2 * _least_fill_in(_LOOP)
    words = ", ".join(f"{2 * len(pairs)} with order='{name}'" for name, pairs in good.items())
    claims = [
        Claim(
            f"almost fully dense, nodes as numbered: share of blocks ({2 * len(bad)} of them fill-in)",
            "almost 1",
            round(full, 2),
            full > 0.8,
        ),
        Claim("with the right order fill-in only between nodes of the loop", "yes", _yes(inside), inside),
        Claim(
            f"minimal fill-in, in blocks (the least without zero pivots is {least})",
            "minimal",
            words,
            2 * len(good["degree"]) == least,
        ),
        _solved(_LOOP, systems),
    ]
    return Result(claims, {"": _rows(systems)}, {"": _figure(_LOOP, systems, ["as numbered", "degree"])})


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _systems(graph: _Graph, context: Context) -> dict[str, GraphSystem]:
    """The system of a graph in the paper's orders and in ours."""
    from leastaction.solve.graph_system import GraphSystem

    out = {}
    for name, order in {**graph.printed, "degree": "degree", "depth": "depth"}.items():
        context.progress(name)
        out[name] = GraphSystem(graph.sizes, graph.edges, constraints=graph.joints, order=order)
    return out


def _least_fill_in(graph: _Graph) -> int:
    """Fewest pairs of fill-in over all orders that never meet a zero pivot.

    What is left to do depends only on the set of nodes that are gone, so the best order is a shortest path over sets. A
    joint may go once the nodes that are gone beside it have as many rows of bodies to spare as it has rows.
    """
    sizes = graph.sizes
    beside = {node: {b if a == node else a for a, b in graph.edges if node in (a, b)} for node in sizes}

    def reach(node: int, gone: frozenset[int]) -> tuple[set[int], int]:
        # neighbours in the graph that is left, which lead through nodes that are gone, and the rows of those to spare
        seen, near, spare, stack = {node}, set(), 0, [node]
        while stack:
            for other in beside[stack.pop()] - seen:
                seen.add(other)
                if other in gone:
                    stack.append(other)
                    spare += -sizes[other] if other in graph.joints else sizes[other]
                else:
                    near.add(other)
        return near, spare

    best: dict[frozenset[int], int] = {frozenset(): 0}
    for size in range(len(sizes)):
        for gone in [known for known in best if len(known) == size]:
            left = {node: reach(node, gone) for node in sizes if node not in gone}
            for node, (near, spare) in left.items():
                if node in graph.joints and spare < sizes[node]:
                    continue
                cost = best[gone] + sum(b not in left[a][0] for a, b in combinations(sorted(near), 2))
                key = gone | {node}
                best[key] = min(best.get(key, cost), cost)
    return best[frozenset(sizes)]


def _solved(graph: _Graph, systems: dict[str, GraphSystem]) -> Claim:
    """All orders solve the same random system of a step as a dense solver does."""
    rng = np.random.default_rng(0)
    sizes = graph.sizes
    blocks: dict[tuple[int, int], Any] = {}
    for node in (*graph.bodies, *graph.contacts):
        blocks[node, node] = 10.0 * np.eye(sizes[node]) + rng.normal(size=(sizes[node], sizes[node]))
    for a, b in graph.edges:
        blocks[a, b], blocks[b, a] = rng.normal(size=(sizes[a], sizes[b])), rng.normal(size=(sizes[b], sizes[a]))
    worst = 0.0
    for system in systems.values():
        rhs = np.arange(1.0, system.size + 1)
        dense = np.linalg.solve(system.dense(blocks), rhs)
        worst = max(worst, float(np.abs(system.solve(blocks, rhs) - dense).max() / np.abs(dense).max()))
    text = "every order solves a random system of these blocks as a dense solver does: relative difference"
    return Claim(text, "not in the text", f"{worst:.1e}", worst < 1e-10)


def _rows(systems: dict[str, GraphSystem]) -> list[dict[str, Any]]:
    """Order, fill-in and operations of each system."""
    return [
        {
            "order": name,
            "nodes": " ".join(str(node) for node in system.order),
            "fill-in blocks": 2 * len(system.fill_in),
            "pairs": " ".join(f"{a}-{b}" for a, b in system.fill_in),
            "block operations": system.operations,
        }
        for name, system in systems.items()
    ]


def _figure(graph: _Graph, systems: dict[str, GraphSystem], chosen: list[str]) -> Any:
    """The matrices of two orders: blocks of the mechanism as squares, fill-in as dots."""
    from leastaction.plot import PALETTE, styled

    kinds: dict[Any, int] = {
        **dict.fromkeys(graph.bodies, 0),
        **dict.fromkeys(graph.joints, 1),
        **dict.fromkeys(graph.contacts, 2),
    }

    def draw(figure: Any) -> None:
        for axes, name in zip(figure.subplots(1, 2), chosen, strict=True):
            system = systems[name]
            place = {node: k for k, node in enumerate(system.order)}
            n = len(place)
            # diagonal by kind, then blocks of edges, then fill-in
            for node, k in place.items():
                axes.plot(k, k, "s", markersize=15, color=PALETTE[kinds[node]])
                axes.text(k, k, str(node), ha="center", va="center", color="white")
            for pairs, mark, size, colour in (
                (graph.edges, "s", 15, "#bbbbbb"),
                (system.fill_in, "o", 7, PALETTE[6]),
            ):
                for a, b in pairs:
                    i, j = place[a], place[b]
                    axes.plot([i, j], [j, i], mark, markersize=size, color=colour)
            axes.set_title(f"{name}: {2 * len(system.fill_in)} blocks of fill-in")
            axes.set(xlim=(-0.7, n - 0.3), ylim=(n - 0.3, -0.7), xticks=[], yticks=[], aspect="equal")
        # what the marks mean
        names = ("body", "joint", "contact") if graph.contacts else ("body", "joint")
        for name, colour in (*zip(names, PALETTE, strict=False), ("edge", "#bbbbbb")):
            axes.plot([], [], "s", markersize=8, color=colour, label=name)
        axes.plot([], [], "o", markersize=6, color=PALETTE[6], label="fill-in")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)

    return styled(draw, 9.0, 3.9)
