"""Parts of a model: bodies that joints, couplings, forces or constraints connect, with the world left out."""

from __future__ import annotations

import numpy as np

from leastaction.tree import layout as kl


def with_parts(tree: kl.Tree, forces: kl.Forces, loops: kl.Loops, *constraints: kl.Constraints) -> kl.Tree:
    """The tree with its rows labelled by parts, and what each part weighs and measures."""
    above = np.arange(len(tree.rows))

    def top(row: int) -> int:
        while above[row] != row:
            above[row] = above[above[row]]
            row = above[row]
        return row

    def unite(rows: kl.Ints) -> None:
        moving = [top(int(row)) for row in rows if row > 0]
        for row in moving:
            above[row] = moving[0]

    for row in range(1, len(tree.rows)):
        unite(np.array([row, tree.rows[row, kl.PARENT]]))
    for pair in loops.rows:
        unite(pair[:2])
    for _, _, first, count in loops.ties.kind:
        unite(loops.ties.bodies[first : first + count])
    tables: tuple[kl.Forces | kl.Constraints, ...] = (forces, *constraints)
    for table in tables:
        for kind in table.kind:
            unite(table.bodies[kind[1] : kind[1] + kind[2]])
    # labels in the order of the rows; the world has one that nobody asks for
    _, labels = np.unique([top(row) for row in range(1, len(tree.rows))], return_inverse=True)
    part = np.concatenate([[0], labels]).astype(np.int64)
    return tree._replace(part=part, parts=_sizes(tree.const, part))


def _sizes(const: kl.Floats, part: kl.Ints) -> kl.Floats:
    """Mass and typical arm (1 without mass or size) of each part."""
    mass = const[:, kl.MASS]
    turning = 0.5 * const[:, [kl.INERTIA, kl.INERTIA + 3, kl.INERTIA + 5]].sum(axis=1)
    moments = np.where(mass > 0, turning + mass * (const[:, kl.COM : kl.COM + 3] ** 2).sum(axis=1), 0.0)
    masses, moment = np.zeros((2, int(part.max()) + 1))
    np.add.at(masses, part, mass)
    np.add.at(moment, part, moments)
    sized = moment > 0
    arms = np.ones(len(masses))
    arms[sized] = np.sqrt(moment[sized] / masses[sized])
    return np.column_stack([masses, arms])
