"""Entry point on the parts of a Galerkin step, over many starts in one call: to measure what each part costs."""

# mypy: ignore-errors
from __future__ import annotations

import numpy as np

from leastaction.galerkin.newton import direction
from leastaction.galerkin.residual import Nodes, gravity, make_step_work, move, place, residual
from leastaction.galerkin.step import place_start
from leastaction.jit.decorators import entry
from leastaction.tree.arrays import copy

# What is measured: the residual of a step, or residual and Newton direction.
EVALUATION, DIRECTION = 0, 1


@entry
def parts(tree, weights, b, c, across, balance, h, X, P, XI, what, r, y):
    """Residuals r (starts, nu, s), and Newton directions y (starts, nu s) if ``what`` asks for them.

    X (starts, nx), P (starts, nu) and XI (starts, nu, s+1) are coordinates, momenta and local coordinates. Gravity is
    the only force.
    """
    nu, s = P.shape[1], len(weights) - 1
    nodes = Nodes(weights, (), b, c, h, across, balance)
    w = make_step_work(tree, weights, (), False)
    K, Dm = np.zeros((nu, 3 * (s + 1))), np.zeros((nu, 3 * (s + 1)))
    for k in range(X.shape[0]):
        place_start(tree, nodes, X[k], w)
        for d in range(nu):
            for a in range(1, s + 1):
                w.xi[d, a] = XI[k, d, a]
        for a in range(1, s + 1):
            place(tree, X[k], w, a)
        move(tree, nodes, w)
        for a in range(1, s):
            gravity(tree, nodes, w, a)
        residual(tree, nodes, P[k], w)
        for d in range(nu):
            for a in range(s):
                r[k, d, a] = w.r[d, a]
        if what == DIRECTION:
            direction(tree, nodes, w, K, Dm)
            copy(w.y, y[k])
