"""The plan of a block-sparse factorisation: which blocks there are and what is done with them. No Numba here."""

from __future__ import annotations

from typing import NamedTuple

from leastaction.tree.layout import Ints


class GraphPlan(NamedTuple):
    """Nodes stand in the order of elimination; all blocks lie row by row in one array of ``plan.total[0]`` numbers.

    size    (n,)     rows of each node
    start   (n+1,)   first row of each node in vectors
    diag    (n,)     where the diagonal block of each node begins
    first   (n+1,)   first entry of each node in ``later``
    later   (m, 3)   for each node the nodes that are eliminated later and share a block with it, fill-in included: the
                     node, where the block (node, later) begins, where the block (later, node) begins
    target  (u,)     for each node and each pair (j, k) of its later nodes where the block (j, k) begins, node by node
    block   (b, 3)   the blocks that hold numbers before the elimination: row node, column node, beginning
    total   (1,)     numbers in all blocks
    """

    size: Ints
    start: Ints
    diag: Ints
    first: Ints
    later: Ints
    target: Ints
    block: Ints
    total: Ints
