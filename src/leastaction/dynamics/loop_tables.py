"""Rows of loop joints at one position, and their second derivatives."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.dynamics.forward import make_work
from leastaction.jit.decorators import entry
from leastaction.loops.rows import loop_rows


@entry
def loop_tables(system, P, G, C):
    """Rows G (m, 6) of all loop joints and C (m, 12, 12), at poses P (n+1, 12).

    The bias of a row is its second derivative along a motion with twists (v_a; v_b) that stay as they are: a quadratic
    form, so 78 biases make its matrix.
    """
    f = make_work(system, P[0])
    loops, V = system.loops, np.zeros((P.shape[0], 6))
    loop_rows(loops, P, V, f.g, f.G, f.bias, f.ends)
    for k in range(G.shape[0]):
        for e in range(6):
            G[k, e] = f.G[k, e]
    for joint in range(loops.rows.shape[0]):
        a, b, first = loops.rows[joint, 0], loops.rows[joint, 1], loops.rows[joint, 2]
        last = loops.rows[joint + 1, 2] if joint + 1 < loops.rows.shape[0] else G.shape[0]
        for i in range(12):
            for j in range(i + 1):
                # unit twists i and j together
                V[a if i < 6 else b, i % 6] += 1.0
                if j < i:
                    V[a if j < 6 else b, j % 6] += 1.0
                loop_rows(loops, P, V, f.g, f.G, f.bias, f.ends)
                for k in range(first, last):
                    C[k, i, j] = f.bias[k]
                for e in range(6):
                    V[a, e] = 0.0
                    V[b, e] = 0.0
        for k in range(first, last):
            for i in range(12):
                for j in range(i):
                    C[k, i, j] = 0.5 * (C[k, i, j] - C[k, i, i] - C[k, j, j])
                    C[k, j, i] = C[k, i, j]
