"""The velocities at the end of a step of ``MaximalEuler``: joints as a KKT system, contact and friction as programs.

Equalities are solved with a proximal term, so that redundant ones need no rank decision. With K the inverse of the
inertia on the motions that the equalities allow, and phi0 the velocities without contact, every further impulse z on
rows X gives phi = phi0 + K X^T z; the programs are in z alone, with W = X K X^T.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.solve.quadratic import solve_program

# The proximal term relative to G M^-1 G^T, and how often it is moved to the last multipliers.
_RHO, _SWEEPS = 1e-9, 3
# Systems larger than this are factorised as sparse ones.
_DENSE = 300
# Rates of a gap below the demanded one by more than this, relative to the velocities, mean that there is no solution.
_VIOLATION = 1e-6


@dataclass(frozen=True, eq=False)
class Solution:
    """What a step found.

    Attributes:
        phi: velocities (6 nb,).
        multipliers: impulses (m,) of the equalities, N s and N m s; the force on the bodies is +G^T multipliers / h.
        normal: impulses of the inequalities.
        tangent: impulses along the two tangents of each contact, one after the other, then those of the bearings.
        programs: quadratic programs that were solved.
        failure: why there is none, in words, or None.
    """

    phi: FloatArray
    multipliers: FloatArray
    normal: FloatArray
    tangent: FloatArray
    programs: int = 0
    failure: str | None = None


class Equalities:
    """M phi - G^T lam = F with G phi = b, factorised once for many right-hand sides (1.88).

    Args:
        M: inertia (6 nb, 6 nb).
        mobility: (nb, 6, 6) inverse inertias of the bodies, for the scale of the proximal term.
        G: rows (m, 6 nb).
    """

    def __init__(self, M: FloatArray, mobility: FloatArray, G: FloatArray) -> None:
        self.n, self.m = len(M), len(G)
        blocks = G.reshape(self.m, len(mobility), 6)
        size = np.einsum("mbi,bij,mbj->m", blocks, mobility, blocks, optimize=True)
        self.rho = _RHO * np.maximum(size, 1e-300)
        matrix = np.zeros((self.n + self.m, self.n + self.m))
        matrix[: self.n, : self.n] = M
        matrix[: self.n, self.n :], matrix[self.n :, : self.n] = -G.T, -G
        matrix[self.n :, self.n :] = -np.diag(self.rho)
        self._solve = _factorised(matrix)

    def solve(self, F: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """phi (6 nb, k) and lam (m, k) for F (6 nb, k) and b (m, k)."""
        lam = np.zeros_like(b)
        for _ in range(_SWEEPS if self.m else 1):
            # -G phi - rho lam = -b - rho lam_before
            x = self._solve(np.vstack([F, -b - self.rho[:, None] * lam]))
            lam = x[self.n :]
        return x[: self.n], lam


def _factorised(matrix: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The inverse of a matrix as a function: dense, or sparse where it is large."""
    if len(matrix) <= _DENSE:
        from scipy.linalg import lu_factor, lu_solve

        factor = lu_factor(matrix, check_finite=False)
        return lambda x: np.asarray(lu_solve(factor, x, check_finite=False))
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    sparse = splu(csc_array(matrix))
    return lambda x: np.asarray(sparse.solve(x))


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything that a step solves.

    Attributes:
        equalities: joints and constraints.
        F: momentum without constraints (6 nb,), with the impulses of the forces.
        b: right-hand side (m,) of the equalities.
        C: inequality rows; the first ones are contacts.
        c: their right-hand sides.
        names: their words.
        T: tangents of the contacts, two each.
        mu: friction coefficients of the contacts.
        D: rows of joints with dry friction.
        dry: the largest impulses of those.
        B: friction rows of the joints with bearings.
        carry: (points, m) the normal impulses of their points, times the coefficients, from the multipliers.
        share: (rows of B, points) bounds of the friction impulses from the sizes of those.
        soft: added to the diagonal of the normal impulses, relative; it singles out the smallest ones.
    """

    equalities: Equalities
    F: FloatArray
    b: FloatArray
    C: FloatArray
    c: FloatArray
    names: list[str]
    T: FloatArray
    mu: FloatArray
    D: FloatArray
    dry: FloatArray
    B: FloatArray
    carry: FloatArray
    share: FloatArray
    soft: float = 0.0


def solve_step(problem: Problem, friction: str, start: FloatArray, tolerance: float, iterations: int) -> Solution:
    """The velocities of a step; ``start`` are tangent impulses to begin staggered projections with."""
    p = problem
    phi, lam = p.equalities.solve(p.F[:, None], p.b[:, None])
    nc, nt, nd, nb = len(p.C), len(p.T), len(p.D), len(p.B)
    if nc + nd + nb == 0:
        return Solution(phi[:, 0], lam[:, 0], np.zeros(0), np.zeros(0))
    X = np.vstack([p.C, p.T, p.B, p.D])
    move, pull = p.equalities.solve(X.T, np.zeros((len(p.b), len(X))))
    W, w = X @ move, X @ phi[:, 0]
    W = 0.5 * (W + W.T)
    w[:nc] -= p.c
    W[range(nc), range(nc)] *= 1.0 + p.soft
    # the impulses
    if friction == "qp" or nt + nb == 0:
        z, good, programs = _one_program(p, W, w)
        words = "the quadratic program of contact and friction was not solved"
    else:
        z, good, programs = _staggered(p, W, w, (lam[:, 0], pull), start, tolerance, iterations)
        words = f"the staggered projections did not converge ({iterations} iterations allowed)"
    out = Solution(phi[:, 0] + move @ z, lam[:, 0] + pull @ z, z[:nc], z[nc : nc + nt + nb], programs)
    # a program without a solution shows in rates that are not reached
    failure = _contradiction(p, out.phi)
    if failure is None and not good:
        failure = f"{words}; take a smaller dt"
    return Solution(out.phi, out.multipliers, out.normal, out.tangent, programs, failure)


def _contradiction(p: Problem, phi: FloatArray) -> str | None:
    """Words for the worst inequality or equality that does not hold, or None."""
    if not np.isfinite(phi).all():
        return "the velocities are not finite; take a smaller dt, or check forces and control"
    scale = 1.0 + float(np.abs(phi).max(initial=0.0))
    rate = p.C @ phi - p.c
    if len(rate) and rate.min() < -_VIOLATION * scale:
        name = p.names[int(rate.argmin())]
        return f"no velocities satisfy all constraints: {name} contradicts the others; check limits and what touches"
    return None


def _one_program(p: Problem, W: FloatArray, w: FloatArray) -> tuple[FloatArray, bool, int]:
    """Contact and friction in one program (1.103): the cone |beta_1| + |beta_2| <= mu alpha, relaxed."""
    nc, nt = len(p.C), len(p.T)
    lower = np.concatenate([np.zeros(nc), np.full(nt, -np.inf), -p.dry])
    upper = np.concatenate([np.full(nc + nt, np.inf), p.dry])
    # one row for each side of the pyramid
    E = np.zeros((2 * nt, len(w)))
    for k, mu in enumerate(p.mu):
        for i, (one, two) in enumerate(((1, 1), (1, -1), (-1, 1), (-1, -1))):
            E[4 * k + i, [k, nc + 2 * k, nc + 2 * k + 1]] = mu, one, two
    z, good = solve_program(W, w, lower, upper, E)
    return z, good, 1


def _staggered(
    p: Problem, W: FloatArray, w: FloatArray, multipliers: tuple[FloatArray, FloatArray], start: FloatArray,
    tolerance: float, iterations: int,
) -> tuple[FloatArray, bool, int]:  # fmt: skip
    """Staggered projections (Algorithms 7 and 8): normal impulses for given friction, friction for given normal ones.

    The normal impulses of bearings are those that the reactions of their joints need; nothing is solved for them.
    """
    nc, nt = len(p.C), len(p.T) + len(p.B)
    normal, rest = slice(0, nc), slice(nc, len(w))
    z, programs = np.zeros(len(w)), 0
    z[nc : nc + nt] = start
    before, carried_before = np.zeros(nc), np.zeros(0)
    for k in range(iterations):
        # contact (2.120)
        if nc:
            programs += 1
            z[normal], good = solve_program(
                W[normal, normal], w[normal] + W[normal, rest] @ z[rest], np.zeros(nc), np.full(nc, np.inf)
            )
            if not good:
                return z, False, programs
        # reactions of the joints, spread over their points (2.125)
        carried = p.share @ np.abs(p.carry @ (multipliers[0] + multipliers[1] @ z)) if len(p.B) else np.zeros(0)
        # change of the contact force in the norm of M^-1, where redundant contacts do not count, and of the reactions
        if k:
            change, size = (float(x @ W[normal, normal] @ x) for x in (z[normal] - before, z[normal]))
            moved = float(np.abs(carried - carried_before).max(initial=0.0))
            if change <= tolerance**2 * size and moved <= tolerance * float(carried.max(initial=0.0)):
                return z, True, programs
        before, carried_before = z[normal].copy(), carried
        bound = np.concatenate([np.repeat(p.mu * z[: len(p.mu)], 2), carried, p.dry])
        # friction (2.121): a box for each point
        programs += 1
        z[rest], good = solve_program(W[rest, rest], w[rest] + W[rest, normal] @ z[normal], -bound, bound)
        if not good:
            return z, False, programs
    return z, False, programs
