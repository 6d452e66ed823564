"""Floating trees under ``Galerkin``: which of them fly free of the world, and the derivative of their steps.

A step is taken in a frame that flies along with the centre of mass (``galerkin/flight.py``), so its derivative is that
of three maps: into the frame, the relative step, and back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leastaction.methods.parameters import Column
from leastaction.methods.tangent import Tangent
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.model.path_forces import PathForce
from leastaction.spatial import quaternion, se3, so3
from leastaction.tree.layout import COM, MASS, PARENT, POINT_FORCE, POINT_SPRING, TENDON, WRENCH


def flight_of(model: Model) -> Any:
    """The ``Flight`` of a model with its own scratch memory, or None where nothing flies.

    A tree flies on a free joint of the world without springs, dampers or rotors in its translation. Trees that forces
    or loops tie together fly together. What a force or constraint ties to the world does not fly: a spring to it, a
    potential, a constraint of the user; forces that turn with a body or change in time. A single body needs no frame.
    """
    if len(model.system.coordinates.free) == 0:
        return None
    from leastaction.galerkin.flight import Flight

    tree, free = model.system.tree, model.system.coordinates.free
    top = _trees(model)
    joints = {int(top[tree.rates[d, 0]]): (int(k), int(d)) for k, d in free if tree.rows[tree.rates[d, 0], PARENT] == 0}
    leader, push = _ties(model, top, joints)
    # groups of trees that are not tied to the world; one body alone has its path anyway
    found: list[list[int]] = []
    for root in sorted(set(leader.values()) - {0}):
        members = [t for t in joints if leader[t] == root]
        if len(members) > 1 or np.count_nonzero(top == members[0]) > 4:
            found.append(members)
    if not found:
        return None
    n, m = len(tree.rows), len(found)
    below = tree.const[:, MASS].copy()
    for i in range(n - 1, 0, -1):
        below[tree.rows[i, PARENT]] += below[i]
    group = np.full(n, -1, dtype=np.int64)
    rows, axes = [], []
    mass, fall = np.zeros(m), np.tile(tree.gravity, (m, 1))
    for g, members in enumerate(found):
        mass[g] = below[members].sum()
        for t in members:
            group[top == t] = g
            rows.append((*joints[t], g))
            turn, path = np.eye(3), []
            for i in range(t, t + 3):
                turn = turn @ tree.const[i, :9].reshape(3, 3)
                path.append(turn[:, 2])
            axes.append(np.concatenate(path))
            fall[g] += push[t] / mass[g]
    scratch = (np.zeros((m, 3)), np.zeros((m, 3)), np.zeros((n, 3)))
    return Flight(np.array(rows, dtype=np.int64), np.array(axes), group, below, mass, fall, *scratch)


def _trees(model: Model) -> Any:
    """Row (n+1,) of the root of each row's tree; 0 for the world."""
    rows = model.system.tree.rows
    top = np.zeros(len(rows), dtype=np.int64)
    for i in range(1, len(rows)):
        top[i] = top[rows[i, PARENT]] or i
    return top


def _ties(model: Model, top: Any, joints: dict[int, tuple[int, int]]) -> tuple[dict[int, int], dict[int, FloatArray]]:
    """Leader of each floating tree, 0 for what is tied to the world, and the constant force that acts on each."""
    system = model.system
    leader = {0: 0} | {t: t for t in joints}
    push = {t: np.zeros(3) for t in joints}

    def tie(rows: Any) -> None:
        # what does not float stands for the world
        ends = {leader.get(int(top[i]), 0) for i in rows}
        least = min(ends)
        for t, at in leader.items():
            if at in ends:
                leader[t] = least

    # the translation itself
    for t, (_, d) in joints.items():
        held = any(
            rate == system.coordinates.v[d] and data[[0, 1, 2, 6, 7, 8]].any()
            for (_, rate), data in zip(system.passive.free, system.passive.free_data, strict=True)
        )
        if held or system.tree.armature[d : d + 3].any():
            tie((0, t))
    if system.forces is not None:
        table = system.forces
        for k, (force, (kind, first, count)) in enumerate(zip(model.mechanism.forces, table.kind, strict=True)):
            rows = table.bodies[first : first + count]
            if kind in (POINT_SPRING, TENDON) or isinstance(force, PathForce):
                tie(rows)
            elif kind in (POINT_FORCE, WRENCH) and table.address[k, 0] == 0 and table.data[k, 9] == 0.0:
                t = int(top[rows[0]])
                if t in push:
                    push[t] += table.data[k, :3] if kind == POINT_FORCE else table.data[k, 3:6]
            else:
                tie((0, *rows))
    if system.loops is not None:
        for pair in system.loops.rows[:, :2]:
            tie(pair)
    if system.constraints is not None:
        for _, first, count, _, _ in system.constraints.kind:
            tie((0, *system.constraints.bodies[first : first + count]))
    return leader, push


# --- the derivative ---------------------------------------------------------------------------------------------------
class _Joint(NamedTuple):
    """A floating joint: group, the user's linear and angular velocities, axes (3, 3) as columns, first ball rate."""

    group: int
    lin: Any
    ang: Any
    axes: FloatArray
    ball: int


class Pushes(NamedTuple):
    """Shifts of the centres of mass by a control tau (3 m, nv), and by joint forces of parameters (3 m, k).

    For ``linked_derivative`` by the unknowns y (3 m, nu s) and by displaced axes e (3 m, nu).
    """

    tau: FloatArray
    y: FloatArray
    e: FloatArray
    parts: FloatArray


class RelativeStep:
    """A step of flying trees seen from their frames, and its derivative in the world.

    Args:
        model: whose ``flight`` it is.
        flight: as of ``flight_of``.
        state: the start, in the world.
        dt: length of the step.
    """

    def __init__(self, model: Model, flight: Any, state: State, dt: float) -> None:
        self.model, self.flight, self.state, self.dt = model, flight, state, dt
        c, self.joints = model.system.coordinates, []
        for (_, d, g), axes in zip(flight.joints, flight.axes, strict=True):
            self.joints.append(_Joint(int(g), c.v[d : d + 3], c.v[d + 3 : d + 6], axes.reshape(3, 3).T, int(d) + 3))
        self.first = Tangent(model, state)
        V, self.V_q, self.V_v, self.X_q = self._center(self.first)
        self.V = V + 0.5 * dt * flight.fall
        self.start = self.seen(state)
        self.turns = self._turns(state)

    def seen(self, state: State) -> State:
        """A state with its velocities relative to the frames."""
        v = state.v.copy()
        for joint, R in zip(self.joints, self._turns(state), strict=True):
            v[joint.lin] -= R.T @ self.V[joint.group]
        return self.model.state(state.q, v, state.t)

    def _turns(self, state: State) -> list[FloatArray]:
        """Rotations from child axes to the world of the floating joints."""
        c, out = self.model.system.coordinates, []
        for (k, _, _), joint in zip(self.flight.joints, self.joints, strict=True):
            out.append(joint.axes @ quaternion.to_matrix(state.q[c.q[k + 3 : k + 7]]))
        return out

    def _center(self, at: Tangent) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Velocities (m, 3) of the centres of mass, and their derivatives (m, 3, nv) by q and v; places by q."""
        tree, flight, n = self.model.system.tree, self.flight, self.model.nv
        m = len(flight.mass)
        twists = at.moves @ (at.S.T * at.u[:, None])
        before = twists[tree.rows[tree.rates[:, 0], PARENT]]
        lines = se3.ad(at.S.T)
        V, J, K = np.zeros((m, 3)), np.zeros((m, 3, n)), np.zeros((m, 3, n))
        for i in np.flatnonzero((flight.group >= 0) & (tree.const[:, MASS] > 0)):
            g, c = flight.group[i], at.P[i, :9].reshape(3, 3) @ tree.const[i, COM : COM + 3] + at.P[i, 9:12]
            share, point = tree.const[i, MASS] / flight.mass[g], np.hstack([-so3.hat(c), np.eye(3)])
            # displaced rows carry the axes behind them: dV = ad(S) (V - V of the row before)
            moved = point @ (at.S * at.moves[i])
            bent = np.einsum("jab,jb->aj", lines, twists[i] - before) * at.moves[i]
            V[g] += share * point @ twists[i]
            J[g] += share * moved
            K[g] += share * (point @ bent + so3.hat(twists[i, :3]) @ moved)
        return V, K @ at.T + J @ at.turning, J @ at.T, J @ at.T

    def world(self, q: FloatArray, v: FloatArray, c: float) -> tuple[FloatArray, FloatArray]:
        """Coordinates and velocities in the world at place c of the step, from those as seen."""
        q, v, state = q.copy(), v.copy(), self.model.system.coordinates
        for (k, _, _), joint in zip(self.flight.joints, self.joints, strict=True):
            flow = joint.axes.T @ self.V[joint.group]
            q[state.q[k : k + 3]] += c * self.dt * flow
            v[joint.lin] += quaternion.to_matrix(q[state.q[k + 3 : k + 7]]).T @ flow
        return q, v

    def pushes(self, xi: FloatArray, nodes: Any, tau: FloatArray, more: FloatArray | None = None) -> Pushes:
        """What a control tau shifts the centres of mass by, and ``more``, joint forces (s+1, nv, k) by parameters."""
        flight, s, h, n = self.flight, xi.shape[1] - 1, self.dt, self.model.nv
        size = 3 * len(flight.mass)
        by_tau, by_y, by_e = np.zeros((size, n)), np.zeros((size, n * s)), np.zeros((size, n))
        by_part = np.zeros((size, 0 if more is None else more.shape[2]))
        for joint, R in zip(self.joints, self.turns, strict=True):
            rows, d = slice(3 * joint.group, 3 * joint.group + 3), joint.ball
            for a in range(s):
                z, weight = xi[d : d + 3, a], (1.0 - nodes.c[a]) * nodes.w[a] * h * h / flight.mass[joint.group]
                turn = joint.axes @ quaternion.to_matrix(quaternion.from_mrp(z)) @ joint.axes.T @ R
                by_tau[rows, joint.lin] += weight * turn
                if more is not None:
                    by_part[rows] += weight * turn @ more[a, joint.lin]
                # the force turns with the body, and that by what its ball does along the axes of the joint
                bent = -weight * so3.hat(turn @ tau[joint.lin]) @ joint.axes
                by_e[rows, d : d + 3] += bent
                if a > 0:
                    by_y[rows, d * s + 3 * (a - 1) : d * s + 3 * a] += bent @ so3.mrp_dexp(z)
        return Pushes(by_tau, by_y, by_e, by_part)

    def pushed(self, tau: FloatArray) -> bool:
        """Whether a control acts on a translation."""
        return any(tau[joint.lin].any() for joint in self.joints)

    def without_push(
        self, A: FloatArray, B: FloatArray, end: State, by_tau: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """``derivative`` where no control acts on translations, with by_tau (3 m, nv) of ``pushes``."""
        n, size = self.model.nv, len(by_tau)
        found = np.vstack([A, np.zeros((size, 2 * n))]), np.vstack([B, by_tau]), np.zeros((2 * n + size, 0))
        return self.derivative(found, end, np.zeros(size), [])[:2]

    def derivative(
        self, found: tuple[FloatArray, FloatArray, FloatArray], end: State, push: FloatArray, parts: list[Column]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A, B, C in the world from those of the relative step, which ends at ``end`` as seen.

        Below their 2 nv rows ``found`` has 3 m that say what the control shifts the centres of mass by, where that is
        push (3 m,).
        """
        n, k, m = self.model.nv, len(parts), len(self.flight.mass)
        A, B, C = found
        last, turns = Tangent(self.model, end), self._turns(end)
        X_end = self._center(last)[3]
        # columns (q, v, control, parameters) of the frame's velocity, and into the frame
        by_mass, by_start, by_end = self._by_parameters(parts, end, push)
        dV = np.concatenate([self.V_q, self.V_v, np.zeros((m, 3, n)), by_mass], axis=2)
        into = np.eye(2 * n, 3 * n + k)
        for joint, R in zip(self.joints, self.turns, strict=True):
            flow = self.V[joint.group]
            into[n + joint.lin] -= R.T @ dV[joint.group]
            into[np.ix_(n + joint.lin, joint.ang)] -= so3.hat(R.T @ flow)
        # the relative step
        out = A @ into
        out[:, 2 * n : 3 * n] += B
        out[:, 3 * n :] += C
        out, pushed = out[: 2 * n], out[2 * n :]
        # back into the world
        move = self.dt * dV + pushed.reshape(m, 3, -1) - X_end @ out[:n]
        move[:, :, :n] += self.X_q
        move[:, :, 3 * n :] += by_start - by_end
        done = out.copy()
        for joint, R in zip(self.joints, turns, strict=True):
            done[joint.lin] += R.T @ move[joint.group]
            done[n + joint.lin] += R.T @ dV[joint.group] + so3.hat(R.T @ self.V[joint.group]) @ out[joint.ang]
        # directions that leave the loops are projected before anything sees them
        A = done[:, : 2 * n] @ self.first.projector() if self.first.links else done[:, : 2 * n]
        return A, done[:, 2 * n : 3 * n], done[:, 3 * n :]

    def _by_parameters(
        self, parts: list[Column], end: State, push: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Velocities of the frames, and places of the centres of mass at both ends, by parameters: (m, 3, k) each.

        The place at the end is less by what the control shifts it, push (3 m,), which a larger mass makes smaller.

        Momenta are linear in masses and quadratic in places, so that differences are exact. The momentum of a turn
        about the floating joints tells where the centre of mass is.
        """
        m, k = len(self.flight.mass), len(parts)
        out = np.zeros((3, m, 3, k))
        chosen = [j for j, part in enumerate(parts) if part.ends is not None]
        if not chosen:
            return out[0], out[1], out[2]
        consts = np.array([const for j in chosen for const in (parts[j].ends or ())])
        length = np.array([parts[j].length for j in chosen])
        masses = np.array([[const[self.flight.group == g, MASS].sum() for g in range(m)] for const in consts])
        mass = ((masses[::2] - masses[1::2]) / length[:, None]).T[:, None, :]
        flows = self._momenta(consts, self.state, None)
        weight = self.flight.mass[:, None, None]
        # V = P / M + h a / 2, where constant forces count less if the mass is more
        pull = 0.5 * self.dt * (self.flight.fall - self.model.system.tree.gravity)
        flow = self.V - 0.5 * self.dt * self.flight.fall + pull
        out[0][:, :, chosen] = (_slope(flows, length) - flow[:, :, None] * mass) / weight
        for which, state in ((1, self.start), (2, end)):
            arms = np.zeros((3, m, 3, len(chosen)))
            places = np.zeros((3, m, 3))
            for e in range(3):
                arms[e] = _slope(self._momenta(consts, state, np.eye(3)[e]), length)
                places[e] = self._momenta(self.model.system.tree.const[None], state, np.eye(3)[e])[0]
            # momentum of a turn about axis e: e x (M r)
            out[which][:, :, chosen] = (_arm(arms) - _arm(places[..., None]) / weight * mass) / weight
        out[2][:, :, chosen] += push.reshape(m, 3, 1) * mass / weight
        return out[0], out[1], out[2]

    def _momenta(self, consts: FloatArray, state: State, axis: FloatArray | None) -> FloatArray:
        """Momentum (k, m, 3) of each group at a state, or when all its trees turn about a world axis."""
        from leastaction.dynamics import entries
        from leastaction.dynamics import parameters as dynamics_parameters

        model, flight = self.model, self.flight
        x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros((len(consts), model.nv))
        entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
        if axis is not None:
            u[:] = 0.0
            for joint, R in zip(self.joints, self._turns(state), strict=True):
                u[joint.ball : joint.ball + 3] = R.T @ axis
        dynamics_parameters.momenta_of(model.system, consts, x, u, p)
        out = np.zeros((len(consts), len(flight.mass), 3))
        for (_, d, g), axes in zip(flight.joints, flight.axes, strict=True):
            out[:, g] += p[:, d : d + 3] @ axes.reshape(3, 3)
        return out


def _slope(table: FloatArray, length: FloatArray) -> FloatArray:
    """Differences (m, 3, k) of pairs of rows (2 k, m, 3) over their distances."""
    return np.moveaxis(table[::2] - table[1::2], 0, 2) / length


def _arm(turned: FloatArray) -> FloatArray:
    """r (m, 3, k) from e x r for the three axes e."""
    return np.stack([turned[2][:, 1], turned[0][:, 2], turned[1][:, 0]], axis=1)
