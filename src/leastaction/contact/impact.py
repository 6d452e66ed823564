"""Impulses of an impact at several points: projected Gauss-Seidel (Jourdan, Alart and Jean 1998).

W (3n, 3n)   impulses to jumps of the velocity of the points, each along its normal and two tangents
u (3n,)      velocity of the points that the impulses are to stop
"""

# mypy: ignore-errors
from __future__ import annotations

import math

from leastaction.jit.decorators import entry


@entry
def impulses(W, u, mu, most, small, impulse):
    """impulse (3n,) with w = u + W impulse: w_n and impulse_n >= 0, one of them zero; friction in its disc against w.

    mu (n,): friction coefficients. At most ``most`` sweeps; done where one changes no velocity by more than ``small``.
    """
    n = mu.size
    for sweep in range(most):
        change = 0.0
        for k in range(n):
            i = 3 * k
            if not W[i, i] > 0.0:
                continue
            before = (impulse[i], impulse[i + 1], impulse[i + 2])
            # normal
            w = u[i]
            for j in range(3 * n):
                w += W[i, j] * impulse[j]
            impulse[i] = max(0.0, impulse[i] - w / W[i, i])
            # tangents: down the slip by the larger eigenvalue of their block, then back into the disc
            a, b, c = W[i + 1, i + 1], W[i + 2, i + 2], W[i + 1, i + 2]
            stiff = 0.5 * (a + b) + math.hypot(0.5 * (a - b), c)
            if mu[k] > 0.0 and stiff > 0.0:
                first, second = u[i + 1], u[i + 2]
                for j in range(3 * n):
                    first += W[i + 1, j] * impulse[j]
                    second += W[i + 2, j] * impulse[j]
                impulse[i + 1] -= first / stiff
                impulse[i + 2] -= second / stiff
                reach = math.hypot(impulse[i + 1], impulse[i + 2])
                if reach > mu[k] * impulse[i]:
                    impulse[i + 1] *= mu[k] * impulse[i] / reach
                    impulse[i + 2] *= mu[k] * impulse[i] / reach
            for r in range(3):
                moved = 0.0
                for s in range(3):
                    moved += W[i + r, i + s] * (impulse[i + s] - before[s])
                change = max(change, abs(moved))
        if change <= small:
            return sweep + 1
    return most
