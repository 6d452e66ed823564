"""Where the blocks of the whole system of a maximal step lie: bodies, joints, loops, contacts and limits as nodes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.model.couplings import spring_pairs
from leastaction.model.model import Model
from leastaction.solve.graph_system import GraphSystem
from leastaction.tree import layout as kl

Thing = tuple[str, int]
"""What has equations of its own: ("body", row), ("joint", row of its child), ("part", k), ("contact", k), ("limit", k),
("row", k) of the inequalities of the user."""


# Sets of contacts whose plans are kept; smallest moment of inertia of a regular body, relative to the largest.
_KEPT, _THIN = 256, 1e-6


@dataclass(frozen=True)
class Contact:
    """A contact as the plan sees it: rows of the two bodies (0 is the world) and number of its equations."""

    a: int
    b: int
    size: int


@dataclass(frozen=True, eq=False)
class FullPlan:
    """Equations, places of blocks, and the order of elimination.

    Attributes:
        size: number of equations and unknowns.
        rows, columns: equation and unknown of each number of ``values``, (numbers,).
        tables: links, dofs, balls, chain, copies, parts, touch, bound, firsts, uneven; see
        ``maximal.full_system.system``. equations: first equation of each thing.
        graph: the matrix as a graph, with the bodies from leaves to root.
        index: place of each number of ``values`` in the array of ``graph``.
    """

    size: int
    rows: kl.Ints
    columns: kl.Ints
    tables: dict[str, kl.Ints]
    equations: dict[Thing, int]
    graph: GraphSystem
    index: kl.Ints


@dataclass(frozen=True)
class Link:
    """A body with the joint that leads to it.

    Attributes:
        child, parent: rows of the body and of the one before it.
        chain: rows of the joint, child first.
        dofs: its rates, from the parent on.
        balls: for each of them the place of the first rate of its ball, or -1.
        stiff: whether there are springs, dampers or rotors in it.
        thin: whether the body has no regular inertia of its own.
    """

    child: int
    parent: int
    chain: tuple[int, ...]
    dofs: tuple[int, ...]
    balls: tuple[int, ...]
    stiff: bool
    thin: bool


def links_of(model: Model) -> list[Link]:
    """Bodies and their joints; rows without mass inside a joint are folded into it."""
    tree, passive = model.system.tree, model.system.passive
    kept = {0} | {place.row for place in model.places.values()} | set(np.flatnonzero(tree.const[:, kl.MASS]).tolist())
    rate_of = np.argsort(model.system.coordinates.v)
    springs = {int(rate_of[v]) for v in passive.screw[:, 1]}
    springs |= {int(rate_of[v]) + e for table in (passive.ball, passive.free) for v in table[:, 1] for e in range(3)}
    out = []
    for child in range(1, len(tree.rows)):
        if child not in kept:
            continue
        chain = [child]
        while int(tree.rows[chain[-1], kl.PARENT]) not in kept:
            chain.append(int(tree.rows[chain[-1], kl.PARENT]))
        dofs: list[int] = []
        balls: list[int] = []
        for row in reversed(chain):
            ball = tree.rows[row, kl.KIND] == kl.BALL
            balls += [len(dofs)] * 3 if ball else [-1]
            dofs += [int(tree.rows[row, kl.IU]) + e for e in range(3 if ball else 1)]
        stiff = bool(set(dofs) & springs) or bool((tree.armature[dofs] > 0).any())
        parent = int(tree.rows[chain[-1], kl.PARENT])
        thin = not _regular(tree.const[child])
        out.append(Link(child, parent, tuple(chain), tuple(dofs), tuple(balls), stiff, thin))
    return out


def _regular(const: kl.Floats) -> bool:
    """Whether a body by itself has a regular inertia: mass, and moments about all axes."""
    xx, xy, xz, yy, yz, zz = const[kl.INERTIA : kl.INERTIA + 6]
    moments = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return bool(const[kl.MASS] > 0 and moments[0] > _THIN * moments[2])


class _Blocks:
    """Blocks of ``values`` as they are asked for, each once."""

    def __init__(self, sizes: dict[Thing, int], first: dict[Thing, int]) -> None:
        self.sizes, self.first = sizes, first
        self.places: dict[tuple[Thing, Thing], int] = {}
        self.total = 0

    def __call__(self, row: Thing, column: Thing) -> int:
        if (row, column) not in self.places:
            self.places[row, column] = self.total
            self.total += self.sizes[row] * self.sizes[column]
        return self.places[row, column]

    def entries(self) -> tuple[kl.Ints, kl.Ints]:
        """Equation and unknown of every number."""
        rows, columns = np.zeros(self.total, dtype=np.int64), np.zeros(self.total, dtype=np.int64)
        for (row, column), place in self.places.items():
            n, m = self.sizes[row], self.sizes[column]
            part = slice(place, place + n * m)
            rows[part] = np.repeat(self.first[row] + np.arange(n), m)
            columns[part] = np.tile(self.first[column] + np.arange(m), n)
        return rows, columns


class Planner:
    """Plans of one model, one for each set of contacts that was asked for.

    Args:
        model: the mechanism.
        limit_size: equations of an enforced limit.
        last: stack loops and constraints in one dense node at the end.
    """

    def __init__(self, model: Model, limit_size: int, last: bool) -> None:
        self.model, self.limit_size, self.last = model, limit_size, last
        self._plans: OrderedDict[tuple[Contact, ...], FullPlan] = OrderedDict()

    def plan(self, couplings: Any, contacts: tuple[Contact, ...], limits: tuple[int, ...]) -> FullPlan:
        """The plan for some contacts.

        Args:
            couplings: ``maximal.graph.Couplings`` of the model, or None.
            contacts: those of the step.
            limits: rate of every enforced limit.
        """
        if contacts not in self._plans:
            self._plans[contacts] = _make_plan(self, couplings, contacts, limits)
            if len(self._plans) > _KEPT:
                self._plans.popitem(last=False)
        self._plans.move_to_end(contacts)
        return self._plans[contacts]


@lru_cache(maxsize=16)
def planner_of(model: Model, limit_size: int, last: bool) -> Planner:
    """The planner of a model; its plans are kept from one chunk of a run to the next."""
    return Planner(model, limit_size, last)


def _make_plan(planner: Planner, couplings: Any, contacts: tuple[Contact, ...], limits: tuple[int, ...]) -> FullPlan:
    """Equations, blocks and order for some contacts."""
    model, limit_size, last = planner.model, planner.limit_size, planner.last
    links = links_of(model)
    parts = _parts(model, couplings)
    # groups of things that are eliminated as one node
    groups: dict[Thing, list[Thing]] = {}
    sizes: dict[Thing, int] = {}
    for k, contact in enumerate(contacts):
        sizes["contact", k] = contact.size
    for k in range(len(limits)):
        sizes["limit", k] = limit_size
    rows_of = _inequalities(model)
    for k in range(len(rows_of)):
        sizes["row", k] = 1
    groups = {thing: [thing] for thing in sizes}
    for link in links:
        body, joint = ("body", link.child), ("joint", link.child)
        sizes[body] = 6
        groups[body] = [body]
        if len(link.dofs) < 6:
            sizes[joint] = 6 - len(link.dofs)
            # a thin rod or a body without mass has a pivot only together with its joint
            groups.setdefault(body if link.thin else joint, []).append(joint)
    for k, (_, _, count, _) in enumerate(parts):
        # a free joint that closes a loop has no rows
        if count > 0:
            sizes["part", k] = count
            groups["part", k] = [("part", k)]
    first: dict[Thing, int] = {}
    size = 0
    for members in groups.values():
        for thing in members:
            first[thing] = size
            size += sizes[thing]

    block = _Blocks(sizes, first)
    tables = {
        **_link_tables(links, block),
        **_coupling_tables(model, couplings, parts, block),
        **_touch_tables(contacts, limits, links, block),
        **_row_tables(rows_of, block),
    }
    rows, columns = block.entries()
    graph = _graph(groups, sizes, block, _order(couplings, links, groups), last)
    return FullPlan(size, rows, columns, tables, first, graph, _index(graph, groups, sizes, block))


def _parts(model: Model, couplings: Any) -> list[tuple[int, int, int, list[int]]]:
    """Nodes of multipliers: node, first row, number of rows, rows of the tree that it touches."""
    out = []
    loops, table = model.system.loops, model.system.constraints
    for node, start, count in couplings.parts.tolist() if couplings is not None else ():
        bodies: list[int] = []
        tied = 0 if loops is None else start - model.constraint_size + len(loops.ties.kind)
        if loops is not None and 0 <= tied < len(loops.ties.kind):
            _, _, at, number = loops.ties.kind[tied].tolist()
            bodies = loops.ties.bodies[at : at + number].tolist()
        elif loops is not None and start < model.constraint_size:
            bodies = next(row[:2] for row in loops.rows.tolist() if row[2] == start)
        elif table is not None:
            for _, at, number, begin, size in table.kind.tolist():
                if begin <= start - model.constraint_size < begin + size:
                    bodies = table.bodies[at : at + number].tolist()
        out.append((node, start, count, sorted({body for body in bodies if body > 0})))
    return out


def _link_tables(links: list[Link], block: _Blocks) -> dict[str, kl.Ints]:
    """Tables of bodies and joints."""
    table = np.full((len(links), 15), -1, dtype=np.int64)
    dofs, balls = np.zeros((len(links), 6), dtype=np.int64), np.full((len(links), 6), -1, dtype=np.int64)
    chain = np.zeros((len(links), 6), dtype=np.int64)
    for k, link in enumerate(links):
        b, a, j, m = ("body", link.child), ("body", link.parent), ("joint", link.child), len(link.dofs)
        moving = link.parent > 0
        table[k, :7] = link.child, link.parent, m, block.first[b], -1, block.first.get(j, -1), block(b, b)
        table[k, 14] = len(link.chain)
        if moving:
            table[k, 4] = block.first[a]
        if moving and link.stiff:
            table[k, 7:10] = block(b, a), block(a, b), block(a, a)
        if m < 6:
            table[k, 10:12] = block(j, b), block(b, j)
        if m < 6 and moving:
            table[k, 12:14] = block(j, a), block(a, j)
        dofs[k, :m], balls[k, :m], chain[k, : len(link.chain)] = link.dofs, link.balls, link.chain
    return {"links": table, "dofs": dofs, "balls": balls, "chain": chain}


def _coupling_tables(model: Model, couplings: Any, parts: list[Any], block: _Blocks) -> dict[str, kl.Ints]:
    """Tables of springs between bodies, loops and constraints."""
    copies: list[tuple[int, ...]] = []
    rows: list[tuple[int, int, int]] = []
    between, _ = spring_pairs(model)
    for a, b in sorted({*between, *((b, a) for a, b in between)}):
        copies.append((int(couplings.slot[a, b]), block(("body", a), ("body", b)), a, b, 6, 6))
    for k, (node, _, count, bodies) in enumerate(parts):
        if count == 0:
            continue
        part = ("part", k)
        rows.append((node, block.first[part], count))
        copies.append((-1 - node, block(part, part), 0, 0, count, count))
        for i in bodies:
            body = ("body", i)
            copies.append((int(couplings.slot[node, i]), block(part, body), 0, i, count, 6))
            copies.append((int(couplings.slot[i, node]), block(body, part), i, 0, 6, count))
    return {
        "copies": np.array(copies, dtype=np.int64).reshape(-1, 6),
        "parts": np.array(rows, dtype=np.int64).reshape(-1, 3),
    }


def _touch_tables(
    contacts: tuple[Contact, ...], limits: tuple[int, ...], links: list[Link], block: _Blocks
) -> dict[str, kl.Ints]:
    """Tables of contacts and limits."""
    touch = np.full((len(contacts), 6), -1, dtype=np.int64)
    for k, contact in enumerate(contacts):
        c, a, b = ("contact", k), ("body", contact.a), ("body", contact.b)
        touch[k, :2] = block.first[c], block(c, c)
        if contact.a > 0:
            touch[k, 2:4] = block(c, a), block(a, c)
        if contact.b > 0:
            touch[k, 4:] = block(c, b), block(b, c)
    bound = np.full((len(limits), 8), -1, dtype=np.int64)
    for k, rate in enumerate(limits):
        n = next(n for n, link in enumerate(links) if rate in link.dofs)
        limit, b, a = ("limit", k), ("body", links[n].child), ("body", links[n].parent)
        bound[k, :4] = n, links[n].dofs.index(rate), block.first[limit], block(limit, limit)
        bound[k, 4:6] = block(limit, b), block(b, limit)
        if links[n].parent > 0:
            bound[k, 6:] = block(limit, a), block(a, limit)
    return {"touch": touch, "bound": bound}


def _inequalities(model: Model) -> list[list[int]]:
    """Rows of the tree that each row of the inequalities of the user touches, in its order."""
    table = model.inequalities
    out: list[list[int]] = []
    for _, first, count, _, size in table.kind.tolist():
        out += [table.bodies[first : first + count].tolist()] * size
    return out


def _row_tables(rows_of: list[list[int]], block: _Blocks) -> dict[str, kl.Ints]:
    """Tables of the inequalities of the user."""
    firsts, uneven = [], []
    for k, bodies in enumerate(rows_of):
        row = ("row", k)
        firsts.append((block.first[row], block(row, row)))
        for place, i in enumerate(bodies):
            if i > 0:
                uneven.append((k, place, i, block(row, ("body", i)), block(("body", i), row)))
    return {
        "firsts": np.array(firsts, dtype=np.int64).reshape(-1, 2),
        "uneven": np.array(uneven, dtype=np.int64).reshape(-1, 5),
    }


def _order(couplings: Any, links: list[Link], groups: dict[Thing, list[Thing]]) -> list[Thing]:
    """Contacts, limits and inequalities first; bodies from leaves to root, each before its joint; loops in between."""
    out = [thing for thing in groups if thing[0] in ("contact", "limit", "row")]
    kept = {link.child for link in links}
    if couplings is None:
        sequence = [(row, 0) for row in sorted(kept, reverse=True)]
        part_of: dict[int, int] = {}
    else:
        sequence = couplings.order.tolist()
        part_of = {int(node): k for k, node in enumerate(couplings.parts[:, 0])}
    for node, is_part in sequence:
        if is_part:
            out += [thing for thing in (("part", part_of[node]),) if thing in groups]
        elif node in kept:
            out += [thing for thing in (("body", node), ("joint", node)) if thing in groups]
    return out


def _graph(
    groups: dict[Thing, list[Thing]], sizes: dict[Thing, int], block: _Blocks, order: list[Thing], last: bool
) -> GraphSystem:
    """The groups as nodes of a graph."""
    group_of = {thing: group for group, members in groups.items() for thing in members}
    edges = {(group_of[row], group_of[column]) for row, column in block.places}
    return GraphSystem(
        {group: sum(sizes[thing] for thing in members) for group, members in groups.items()},
        [(a, b) for a, b in edges if a != b],
        last=[group for group in groups if last and group[0] == "part"],
        order=order,
    )


def _index(graph: GraphSystem, groups: dict[Thing, list[Thing]], sizes: dict[Thing, int], block: _Blocks) -> kl.Ints:
    """Where each number of ``values`` goes in the array of the graph."""
    inside: dict[Thing, tuple[Thing, int]] = {}
    for group, members in groups.items():
        offset = 0
        for thing in members:
            inside[thing] = (group, offset)
            offset += sizes[thing]
    out = np.zeros(block.total, dtype=np.int64)
    for (row, column), place in block.places.items():
        (a, s), (b, t) = inside[row], inside[column]
        start, width = graph.place(a, b)
        n, m = sizes[row], sizes[column]
        index = start + width * (s + np.arange(n))[:, None] + t + np.arange(m)
        out[place : place + n * m] = index.ravel()
    return out
