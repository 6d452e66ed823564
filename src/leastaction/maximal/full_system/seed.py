"""The interior point method of Bruedigam et al. 2023 as printed: its Algorithm 5 on the system (29a) to (29f).

One node for each contact, with the slack variables s, r of the two inequalities (section 4 of the paper), and friction
in a pyramid of four sides (t, -t, u, -u):

    phi - s = 0        s gamma = mu        B zdot + psi - eta = 0        beta eta = mu
    c_f gamma - sum(beta) - r = 0          psi r = mu                                        (29c) to (29f)

All products have one barrier mu. A step of Newton's method is cut to a part TAU of the way to the boundary (l. 2) and
halved until the norm of the left-hand sides becomes smaller (l. 4 to 10); the iteration ends where that norm is below
the tolerance, whatever mu is (l. 16); else mu is reduced once the norm is below it (l. 19: Nocedal and Wright 2006,
Algorithm 19.1). The paper says neither where variables and barrier start nor how fast mu is reduced. Here all start at
one in every step, the four beta together, and mu is reduced to a fifth. So mu ends where a problem happens to be solved
to the tolerance, and a contact keeps a gap of mu over its force: some 10 um for a tolerance of 1e-6, as the 43 um of
the paper.

    variables and equations of a contact   s, gamma, beta (4), eta (4), psi, r;   without friction s, gamma
    variables and equations of a limit     s, gamma
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.solve.counts import ITERATIONS, MOST

if TYPE_CHECKING:
    from leastaction.maximal.full_system.method import Stepper

# Part of the way to the boundary; reduction of the barrier; smallest step of the line search.
TAU, SIGMA, SMALLEST = 0.995, 0.2, 2.0**-20

# Equations of a contact with and without friction, and of a limit.
ROUGH, SMOOTH, LIMIT = 12, 2, 2

# the four directions of friction in the two tangents
SIDES = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])


class Variables:
    """Variables of contacts and limits, and their rows of the whole system.

    Args:
        step: the tables of the step; its system is planned here.
    """

    def __init__(self, step: Stepper) -> None:
        self.step, self.mu = step, 1.0
        self.friction = step.T.mu[: step.count].copy()
        sizes = tuple(ROUGH if mu > 0 else SMOOTH for mu in self.friction)
        step.prepare(sizes, LIMIT)
        self.touch, self.bound = step.plan.tables["touch"], step.plan.tables["bound"]
        firsts = [*zip(self.touch[:, 0].tolist(), sizes, strict=True), *((int(row[2]), LIMIT) for row in self.bound)]
        self.at = np.array([first + e for first, size in firsts for e in range(size)], dtype=np.int64)
        # the whole vector of unknowns; only those of contacts and limits are used
        self.z = np.zeros(step.plan.size)
        self.z[self.at] = 1.0
        for first, size in firsts:
            if size == ROUGH:
                self.z[first + 2 : first + 6] = 0.25

    def put_forces(self) -> None:
        """Hand slacks and forces to the residual."""
        T = self.step.T
        for k, mu in enumerate(self.friction):
            z = self.z[self.touch[k, 0] :]
            T.V[k] = 0.0
            T.V[k, :2] = z[:2]
            if mu > 0:
                T.V[k, 2:4] = SIDES @ z[2:6]
                T.V[k, 4] = z[10] * self.step.now[1]
        for k, row in enumerate(self.bound):
            T.U[k] = self.z[row[2] : row[2] + 2]

    def rows(self) -> None:
        """Left-hand sides and blocks of contacts and limits."""
        for k, mu in enumerate(self.friction):
            self._contact(k, mu)
        for k in range(len(self.bound)):
            self._limit(k)

    def _contact(self, k: int, mu: float) -> None:
        """Rows of one contact."""
        step, h = self.step, self.step.now[1]
        first, cc, ca, ac, cb, bc = self.touch[k].tolist()
        size = ROUGH if mu > 0 else SMOOTH
        z, g, G = self.z[first : first + size], step.T.g[k], step.T.G[k].reshape(9, 6)
        res, J = np.zeros(size), np.zeros((size, size))
        res[:2] = g[0] - z[0], z[0] * z[1] - self.mu
        J[0, 0], J[1, 0], J[1, 1] = -1.0, z[1], z[0]
        motion, push = np.zeros((size, 3)), np.zeros((3, size))
        motion[0, 0] = push[0, 1] = 1.0
        if mu > 0:
            beta, eta, psi, slack = z[2:6], z[6:10], z[10], z[11]
            i = np.arange(4)
            res[2:6], res[6:10] = SIDES.T @ g[1:3] / h + psi - eta, beta * eta - self.mu
            res[10:] = mu * z[1] - beta.sum() - slack, psi * slack - self.mu
            J[2 + i, 10], J[2 + i, 6 + i], J[6 + i, 2 + i], J[6 + i, 6 + i] = 1.0, -1.0, eta, beta
            J[10, 1], J[10, 2:6], J[10, 11], J[11, 10], J[11, 11] = mu, -1.0, -1.0, slack, psi
            motion[2:6, 1:], push[1:, 2:6] = SIDES.T / h, SIDES
        step.res[first : first + size] = res
        _put(step.values, cc, J)
        for row, there, back, rows, sign in (
            (step.T.ints[k, 1], ca, ac, G[3:6], -h),
            (step.T.ints[k, 2], cb, bc, G[6:9], h),
        ):
            if there >= 0:
                point = step.whole.r[row]
                _put(step.values, there, motion @ _at_point(rows, point))
                _put(step.values, back, sign * _at_point(G[:3], point).T @ push)

    def _limit(self, k: int) -> None:
        """Rows of one limit."""
        step, limits = self.step, self.step.limits
        link, c, first, place, lb, bl, la, al = self.bound[k].tolist()
        sign, bound = limits.bounds[k].tolist()
        s, gamma = self.z[first : first + 2].tolist()
        b, a = step.whole.links[link, :2].tolist()
        r, between = step.whole.r[b], step.whole.r[b] - step.whole.r[a]
        push, row = step.whole.X0[link].reshape(6, 6)[:, c], step.whole.X1[link].reshape(6, 6)[:, c]
        rows_of = step.whole.chain[link, : step.whole.links[link, 14]]
        rho = step.B.rho[rows_of].sum(axis=0)
        opening = row[:3] @ rho[:3] + row[3:] @ (rho[3:] + np.cross(rho[:3], r))
        phi = sign * (step.B.x1[limits.where[k, 1]] - bound)
        step.res[first : first + 2] = phi - s - sign * opening, s * gamma - self.mu
        _put(step.values, place, np.array([[-1.0, 0.0], [gamma, s]]))
        for there, back, arm, side in ((lb, bl, np.zeros(3), 1.0), (la, al, between, -1.0)):
            if there >= 0:
                _put(step.values, there, np.stack([side * sign * _at_point(row, -arm), np.zeros(6)]))
                column = -side * step.now[1] * sign * _at_point(push, -arm)
                _put(step.values, back, np.stack([np.zeros(6), column], axis=1))


def _at_point(rows: FloatArray, r: FloatArray) -> FloatArray:
    """Wrenches (..., 6) about the point r instead of the origin."""
    return np.concatenate([rows[..., :3] - np.cross(r, rows[..., 3:]), rows[..., 3:]], axis=-1)


def _put(values: FloatArray, place: int, block: FloatArray) -> None:
    """Write a block."""
    values[place : place + block.size] = block.ravel()


def _norm(step: Stepper, variables: Variables, closed: bool) -> float:
    """The system at the iterate, and the norm of its left-hand sides in the units of the paper."""
    variables.put_forces()
    step.look(closed, step.parts.PLAIN)
    step.assemble(exact=False)
    variables.rows()
    return _size(step)


def _size(step: Stepper) -> float:
    """Norm of the left-hand sides: newtons, and torques twice, as in (16); impulses of our rows over the step."""
    res = step.res.copy()
    for first in step.whole.links[:, 3]:
        res[first : first + 3] *= 2.0 / step.now[1]
        res[first + 3 : first + 6] /= step.now[1]
    return float(np.linalg.norm(res))


def solve_seed(step: Stepper, xi: FloatArray, count: Any) -> bool:
    """One step by Algorithm 5, from the displacements xi of the last one; True if the norm is below the tolerance."""
    variables, tolerance = Variables(step), step.numbers[0]
    step.put_guess(xi)
    norm, steps, good = _norm(step, variables, True), 0, False
    # never below rounding
    floor = 100.0 * float(step.found[step.parts.ROUNDING]) / step.now[1]
    while math.isfinite(norm) and steps < 4 * step.most:
        if step.direction(exact=False) is None:
            break
        steps += 1
        before, lam = variables.z.copy(), step.lam.copy()
        longest = _feasible(before[variables.at], step.z[variables.at])
        alpha = 1.0
        while True:
            # l. 4 to 10
            variables.z[:] = before + alpha * longest * step.z
            step.lam[:] = lam + alpha * longest * step.z
            step.advance(alpha * longest, exact=False)
            trial = _norm(step, variables, False)
            if trial < norm or alpha < SMALLEST:
                break
            alpha *= 0.5
        if not trial < norm:
            break
        norm = trial
        if norm < max(tolerance, floor):
            good = True
            break
        if norm < variables.mu:
            variables.mu *= SIGMA
            variables.rows()
            norm = _size(step)
    count[ITERATIONS] += steps
    count[MOST] = max(count[MOST], steps)
    return good


def _feasible(z: FloatArray, dz: FloatArray) -> float:
    """Largest step up to 1 that keeps a part 1 - TAU of every variable."""
    falling = dz < 0
    return min(1.0, float((-TAU * z[falling] / dz[falling]).min(initial=math.inf)))
