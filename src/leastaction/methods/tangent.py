"""The tangent space of a state with closed loops and constraints: rows, their curvature, velocities from momenta.

Start states lie on the manifold g = 0, G u = 0. Other directions are projected on its tangent space in the mass metric,
position first, then velocity, as ``leastaction.project`` does. Redundant rows are met by least squares: multipliers are
not unique then, but what they do is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leastaction.methods.closing import row_count
from leastaction.model.checks import FloatArray
from leastaction.model.configuration import retract
from leastaction.model.coupling import tie_rows_at
from leastaction.model.differences import checked_differences
from leastaction.model.model import Model, State
from leastaction.model.tables import pose_of
from leastaction.spatial import quaternion, se3, so3
from leastaction.tree.layout import KIND, PARENT, PRISMATIC, Ties

# Singular values below this part of the largest are those of redundant rows.
_REDUNDANT = 1e-10


class LoopTerm(NamedTuple):
    """A loop joint or constraint at one position, by displacements of its k bodies in their own axes.

    rows      the rows of the tree that carry its bodies
    back      (k, 6, 6) spatial twists to twists in link axes
    at        its places among all constraint rows
    jacobian  (size, 6k)
    hessian   (size, 6k, 6k): derivative of each row of the Jacobian; columns say by what
    """

    rows: list[int]
    back: FloatArray
    at: slice
    jacobian: FloatArray
    hessian: FloatArray

    def reach(self, columns: FloatArray, moves: FloatArray) -> FloatArray:
        """Columns (6, c) of twists behind each column's rate, seen by the bodies (6k, c); moves (n+1, c) bool."""
        return np.vstack([B @ (columns * moves[row]) for B, row in zip(self.back, self.rows, strict=True)])

    def add_wrenches(self, multipliers: FloatArray, out: FloatArray) -> None:
        """Add the spatial wrenches of multipliers (size,) to those of the rows (n+1, 6)."""
        wrenches = (self.jacobian.T @ multipliers).reshape(-1, 6)
        for B, row, wrench in zip(self.back, self.rows, wrenches, strict=True):
            out[row] += B.T @ wrench

    def stiffness(self, multipliers: FloatArray) -> FloatArray:
        """Derivative (6k, 6k) of the wrenches by the displacements."""
        return np.asarray(np.tensordot(multipliers, self.hessian, 1))


def loops_at(model: Model, x: FloatArray, P: FloatArray) -> list[LoopTerm]:
    """All loop joints, couplings and equality constraints, at coordinates x (nq,) and poses P (n+1, 12) of the rows."""
    from leastaction.dynamics import loop_tables

    m, loops = model.constraint_size, model.system.loops
    if loops is None or not (m or model.mechanism.constraints):
        return []
    pairs = m - len(loops.ties.kind)
    G, C = np.zeros((pairs, 6)), np.zeros((pairs, 12, 12))
    loop_tables.loop_tables(model.system, np.ascontiguousarray(P), G, C)
    out = []
    # loop joints: from spatial twists to the axes of the rows
    for (a, b, *_), at in zip(loops.rows, model.loop_rows.values(), strict=True):
        frames = [pose_of(P[a]), pose_of(P[b])]
        turn = np.zeros((12, 12))
        turn[:6, :6], turn[6:, 6:] = se3.Ad(frames[0]), se3.Ad(frames[1])
        jacobian = np.hstack([-G[at], G[at]]) @ turn
        hessian = turn.T @ C[at] @ turn
        # body axes turn with the displacement: half a bracket beside the symmetric part
        for block in (slice(0, 6), slice(6, 12)):
            hessian[:, block, block] += 0.5 * se3.adD(jacobian[:, block])
        back = np.array([se3.Ad(se3.inverse(frame)) for frame in frames])
        out.append(LoopTerm([int(a), int(b)], back, at, jacobian, hessian))
    out += _tied(model, loops.ties, x, P, pairs)
    # constraints of the user
    for constraint in model.mechanism.constraints:
        if constraint.kind == "equality":
            places = [model.place(name) for name in constraint.bodies]
            links = np.array([pose_of(P[place.row]) @ place.pose for place in places])
            back = np.array([se3.Ad(se3.inverse(link)) for link in links])
            links[:, :3, 3] -= P[0, 9:12]
            at = slice(m, m + constraint.size)
            m = at.stop
            curved = constraint.curvatures(links)
            out.append(LoopTerm([place.row for place in places], back, at, constraint.matrix(links), curved))
    return out


def _tied(model: Model, ties: Ties, x: FloatArray, P: FloatArray, start: int) -> list[LoopTerm]:
    """Couplings; see ``loops.ties``."""
    kinds = model.system.tree.rows[:, KIND]
    slope, bend = tie_rows_at(ties, x)
    out = []
    for k, (first, count, begin, size) in enumerate(ties.kind.tolist()):
        rows = ties.bodies[begin : begin + size].tolist()
        frames = [pose_of(P[row]) for row in rows]
        jacobian, hessian = np.zeros((1, 6 * size)), np.zeros((1, 6 * size, 6 * size))
        for j in range(first, first + count):
            # the wrench of the pair by displacements of its bodies in their own axes
            row, _, _, child, parent = ties.terms[j].tolist()
            axis, at = P[row, [2, 5, 8]], P[row, 9:]
            w = np.concatenate([axis, np.zeros(3)] if kinds[row] != PRISMATIC else [np.cross(at, axis), axis])
            pair = np.zeros(6 * size)
            for place, sign in ((child, 1.0), (parent, -1.0)):
                if place >= 0:
                    pair[6 * place : 6 * place + 6] = sign * np.asarray(se3.Ad(frames[place])).T @ w
            jacobian[0] += slope[j] * pair
            hessian[0] += bend[j] * np.outer(pair, pair)
        for place in range(size):
            block = slice(6 * place, 6 * place + 6)
            hessian[:, block, block] += 0.5 * se3.adD(jacobian[:, block])
        back = np.array([se3.Ad(se3.inverse(frame)) for frame in frames])
        out.append(LoopTerm(rows, back, slice(start + k, start + k + 1), jacobian, hessian))
    return out


def moved_rows(model: Model) -> FloatArray:
    """Whether (n+1, nu) a rate moves a row."""
    tree = model.system.tree
    out = np.zeros((len(tree.rows), len(tree.rates)), dtype=bool)
    for i in range(1, len(tree.rows)):
        out[i] = out[tree.rows[i, PARENT]]
        out[i, np.flatnonzero(tree.rates[:, 0] == i)] = True
    return out


def subtrees(model: Model, wrenches: FloatArray) -> FloatArray:
    """Sums (n+1, 6) over subtrees."""
    rows, out = model.system.tree.rows, wrenches.copy()
    for i in range(len(rows) - 1, 0, -1):
        out[rows[i, PARENT]] += out[i]
    return out


class Tangent:
    """Mass, momentum and constraint rows of a state by its displacements and rates, in the rows' coordinates."""

    def __init__(self, model: Model, state: State) -> None:
        from leastaction.dynamics import hessian as dynamics_hessian

        nu, tree = model.nv, model.system.tree
        p, k, f = np.zeros(nu), np.zeros(nu), np.zeros(nu)
        self.H, self.E, kinetic, gravity = (np.zeros((nu, nu)) for _ in range(4))
        P, S = np.zeros((len(tree.rows), 12)), np.zeros((nu, 6))
        dynamics_hessian.second_derivatives(
            model.system, state.q, state.v, p, k, f, self.H, self.E, kinetic, gravity, P, S
        )
        self.model, self.S, self.P, self.moves, self.momentum = model, S.T, P, moved_rows(model), p
        self.T, self.turning = _user_maps(model, state)
        self.u = self.T @ state.v
        self.links = loops_at(model, state.q[model.system.coordinates.q], P)
        # twists of the rows, and their change by a displacement, seen in the moved frame: ad(v of the row before) S
        V = self.moves @ (S * self.u[:, None])
        before = V[tree.rows[tree.rates[:, 0], PARENT]]
        carried = np.einsum("jab,jb->aj", se3.ad(before), S)
        # rows G, and D = d(G u)/dx
        m = sum(len(link.jacobian) for link in self.links)
        self.G, self.D = np.zeros((m, nu)), np.zeros((m, nu))
        for link in self.links:
            reach = link.reach(self.S, self.moves)
            self.G[link.at] = link.jacobian @ reach
            bent = np.einsum("kij,i->kj", link.hessian, reach @ self.u)
            self.D[link.at] = bent @ reach + link.jacobian @ link.reach(carried, self.moves)

    def curvature(self, nu: FloatArray) -> FloatArray:
        """d(G^T nu)/dx (nu, nu), with the components of a ball in child axes."""
        model, rates = self.model, self.model.system.tree.rates[:, 0]
        out, wrenches = np.zeros(self.H.shape), np.zeros((len(self.moves), 6))
        for link in self.links:
            reach = link.reach(self.S, self.moves)
            out += reach.T @ link.stiffness(nu[link.at]) @ reach
            link.add_wrenches(nu[link.at], wrenches)
        # wrenches are fixed to their bodies: seen from a joint before, they turn with the joints between
        total = subtrees(model, wrenches)[rates]
        turned = self.S.T @ np.einsum("jab,bj->aj", se3.adD(total), self.S)
        between = self.moves[rates] & (rates[:, None] != rates[None, :])
        out -= np.where(between.T, turned, 0.0)
        return out

    def velocity(self, p: FloatArray, dx: FloatArray, dp: FloatArray) -> FloatArray:
        """du of M u + G^T nu = p, G u = 0, from columns dx and dp; p in child axes."""
        if not self.links:
            return np.asarray(np.linalg.solve(self.H, dp - self.E @ dx))
        nu = np.asarray(np.linalg.lstsq(self.G.T, p - self.H @ self.u, _REDUNDANT)[0], dtype=float)
        sides: FloatArray = np.hstack([dp - (self.E + self.curvature(nu)) @ dx, self.G.T])
        Z = np.linalg.solve(self.H, sides)
        free, push = Z[:, : dx.shape[1]], Z[:, dx.shape[1] :]
        return np.asarray(free - push @ least(self.G @ push, self.G @ free + self.D @ dx))

    def bodies(self, names: tuple[str, ...]) -> tuple[FloatArray, FloatArray]:
        """Poses (k, 4, 4) of bodies in the world, and their twists in link axes by the rates (6k, nu)."""
        places = [self.model.place(name) for name in names]
        links = np.array([pose_of(self.P[place.row]) @ place.pose for place in places])
        reach = [
            se3.Ad(se3.inverse(link)) @ (self.S * self.moves[place.row])
            for link, place in zip(links, places, strict=True)
        ]
        links[:, :3, 3] -= self.P[0, 9:12]
        return links, np.vstack(reach)

    def projector(self, slips: FloatArray | None = None, turned: FloatArray | None = None) -> FloatArray:
        """(2 nv, 2 nv) in the user's coordinates: on the tangent space, position first, then velocity.

        slips, turned (k, nv): velocity constraints by the user's velocities and displacements.
        """
        n = self.model.nv
        G, D = self.G @ self.T, self.D @ self.T + self.G @ self.turning
        M = self.T.T @ self.H @ self.T
        lift = _lift(M, G)
        along = np.eye(n) - lift @ G
        if slips is None or turned is None:
            return np.block([[along, np.zeros((n, n))], [-lift @ D @ along, along]])
        rates, back = np.vstack([G, slips]), _lift(M, np.vstack([G, slips]))
        by_place = -back @ np.vstack([D, turned]) @ along
        return np.block([[along, np.zeros((n, n))], [by_place, np.eye(n) - back @ rates]])


def start_projector(model: Model, state: State) -> FloatArray:
    """(2 nv, 2 nv): on the tangent space of loops and constraints, position first, then velocity, in the mass metric.

    Rows of loops and constraints are exact. Differences of gaps would not do: rows that are redundant because they are
    zero, as those of a flat loop across its plane, would be noise that counts as rows.
    """
    tangent = Tangent(model, state)
    found = [each for each in model.mechanism.constraints if each.kind == "velocity"]
    if not found:
        return tangent.projector()
    # by velocities: the Jacobians of the user
    rows = []
    for constraint in found:
        links, reach = tangent.bodies(constraint.bodies)
        rows.append(constraint.matrix(links, (reach @ tangent.u).reshape(-1, 6)) @ reach @ tangent.T)
    # by displacements, which no function of the user knows
    by_place = checked_differences(
        lambda step: _slips(model, retract(model, state.q, step), state.v, state.t), model.nv,
        f"velocity constraints of '{model.name}'", "functions that are smooth there",
        float(np.abs(state.v).max(initial=0.0)),
    )  # fmt: skip
    return tangent.projector(np.vstack(rows), by_place)


def _slips(model: Model, q: FloatArray, v: FloatArray, t: float) -> FloatArray:
    """Values of all velocity constraints."""
    from leastaction.dynamics import legendre
    from leastaction.tree.layout import VELOCITY

    x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    gap, rate = np.zeros(row_count(model)), np.zeros(row_count(model))
    legendre.enter_momenta(model.system, q.copy(), v.copy(), x, u, p)
    legendre.gaps_and_rates(model.system, t, x, u, gap, rate)
    model.raise_pending()
    table: Any = model.system.constraints
    kinds = np.repeat(table.kind[:, 0], table.kind[:, 4])
    return np.asarray(rate[model.constraint_size :][kinds == VELOCITY])


def _lift(M: FloatArray, G: FloatArray) -> FloatArray:
    """M^-1 G^T (G M^-1 G^T)^-1 for rows G (m, nv) that may be redundant."""
    Z = np.linalg.solve(M, G.T)
    return np.asarray(Z @ least(G @ Z, np.eye(len(G))))


def least(A: FloatArray, b: FloatArray) -> FloatArray:
    """Least-squares solution of A x = b for a square A with redundant rows, scaled by the diagonal."""
    size = np.abs(A.diagonal())
    scale = 1.0 / np.sqrt(np.maximum(size, max(1e-12 * size.max(initial=0.0), 1e-300)))
    return scale[:, None] * np.linalg.lstsq(A * scale * scale[:, None], b * scale[:, None], _REDUNDANT)[0]


def _user_maps(model: Model, state: State) -> tuple[FloatArray, FloatArray]:
    """T of u = T v and the change of u by displacements at fixed v, each (nu, nv)."""
    c, n = model.system.coordinates, model.nv
    T, turning = np.zeros((n, n)), np.zeros((n, n))
    T[np.arange(n), c.v] = 1.0
    for (k, d), offset in zip(c.free, c.offset, strict=True):
        R = quaternion.to_matrix(state.q[c.q[k + 3 : k + 7]])
        lin, ang = c.v[d : d + 3], c.v[d + 3 : d + 6]
        T[d : d + 3] = 0.0
        T[d : d + 3, lin], T[d : d + 3, ang] = R, -R @ so3.hat(offset)
        turning[d : d + 3, ang] = -R @ so3.hat(state.v[lin] + np.cross(state.v[ang], offset))
    return T, turning
