"""Derivative of a Galerkin step: the compiled kernel, and what forces on bodies and in free joints add to it.

The kernel knows gravity, control, armature, and the springs, dampers and laws of all joints but free ones. Forces on
bodies couple bodies that are not neighbours in the tree, and the translational forces of a free joint turn with its
ball; both are added here as dense matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.model.tables import pose_of
from leastaction.spatial import quaternion, se3, so3
from leastaction.tree.layout import BALL, IU, KIND, PARENT


class Nodes(NamedTuple):
    """Lobatto nodes c, weights w (s+1,), derivative matrix b (s+1, s+1), two axes across gravity (2, 3), balance."""

    c: FloatArray
    w: FloatArray
    b: FloatArray
    across: FloatArray
    balance: FloatArray


class Extra(NamedTuple):
    """What the kernel does not know: residual and next momentum by the unknowns (J, Py) and by the start (Re, Pe)."""

    J: FloatArray
    Py: FloatArray
    Re: FloatArray
    Pe: FloatArray


@dataclass(frozen=True, eq=False)
class Step:
    """One solved step: start x (nx,), p (nu,), local coordinates xi (nu, s+1), control (nv,)."""

    t: float
    dt: float
    x: FloatArray
    p: FloatArray
    xi: FloatArray
    control: FloatArray
    active: bool


def step_derivative(model: Model, nodes: Nodes, step: Step) -> tuple[FloatArray, FloatArray]:
    """A (2 nv, 2 nv) and B (2 nv, nv) of one step, in the user's coordinates."""
    from leastaction.galerkin import linear as galerkin_linear

    n = model.nv
    A, B = np.zeros((1, 2 * n, 2 * n)), np.zeros((1, 2 * n, n))
    none = np.zeros((0, 0))
    extra = extra_terms(model, nodes, step) if needs_extra(model, step.control) else Extra(none, none, none, none)
    galerkin_linear.galerkin_linearize(
        model.system, tuple(nodes.w.tolist()), nodes.b, nodes.c, nodes.across, nodes.balance, np.array([step.t]),
        step.dt, step.x[None], step.p[None], step.xi[None], step.control[None], step.active, *extra, A, B,
    )  # fmt: skip
    model.raise_pending()
    return A[0], B[0]


def needs_extra(model: Model, control: FloatArray) -> bool:
    """Whether the mechanism has forces that the kernel does not know: on bodies, or in a free joint's translation."""
    system = model.system
    pushed = any(control[system.coordinates.v[d : d + 3]].any() for _, d in system.coordinates.free)
    return bool(model.mechanism.forces) or len(system.passive.free) > 0 or pushed


class Tables:
    """Tables of a solved step, and the variations of poses and twists at its nodes."""

    def __init__(self, model: Model, nodes: Nodes, step: Step) -> None:
        from leastaction.galerkin import linear as galerkin_linear

        tree, s = model.system.tree, len(nodes.w) - 1
        n, nu, k = len(tree.rows), model.nv, s + 1
        self.model, self.nodes, self.step, self.tree, self.s = model, nodes, step, tree, s
        self.q, self.v = np.zeros((k, model.nq)), np.zeros((k, nu))
        self.P, self.V, self.G = np.zeros((n, 12 * k)), np.zeros((n, 6 * k)), np.zeros((n, 6 * k))
        self.S, self.Sd, self.Q = np.zeros((nu, 6 * k)), np.zeros((nu, 6 * k)), np.zeros((nu, 6 * k))
        self.tau, self.K, self.Dm = np.zeros((nu, k)), np.zeros((nu, 3 * k)), np.zeros((nu, 3 * k))
        galerkin_linear.step_tables(
            model.system, tuple(nodes.w.tolist()), nodes.b, nodes.c, nodes.across, nodes.balance, step.t, step.dt,
            step.x, step.p, step.xi, step.control[None], step.active, self.q, self.v, self.P, self.S, self.Sd,
            self.Q, self.V, self.G, self.tau, self.K, self.Dm,
        )  # fmt: skip
        model.raise_pending()
        # row, first rate and number of rates of the row of each rate
        self.row = tree.rates[:, 0]
        self.first = tree.rows[self.row, IU]
        self.count = np.where(tree.rows[self.row, KIND] == BALL, 3, 1)
        self.xid = step.xi @ nodes.b.T / step.dt

    def place(self, k: int) -> Any:
        """Places of test or unknown k (0..s-1) of every rate."""
        return self.first * self.s + self.count * k + np.arange(len(self.first)) - self.first

    def axes(self, table: FloatArray, a: int) -> FloatArray:
        """Columns (6, nu) of a table at node a."""
        return table[:, 6 * a : 6 * a + 6].T

    def moved(self, a: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Pose and twist variation (6, columns) at node a behind each rate, by unknowns and by displaced axes."""
        s, nu = self.s, len(self.row)
        S, Sd, Q = self.axes(self.S, a), self.axes(self.Sd, a), self.axes(self.Q, a)
        pose, twist = np.zeros((6, nu * s)), np.zeros((6, nu * s))
        for g in range(s):
            twist[:, self.place(g)] = self.nodes.b[a, g + 1] / self.step.dt * S
        if a > 0:
            pose[:, self.place(a - 1)] = S
            twist[:, self.place(a - 1)] += Sd
        parents = self.tree.rows[self.row, PARENT]
        before = self.V[parents, 6 * a : 6 * a + 6]
        carried = np.array([se3.ad(before[d]) @ Q[:, d] for d in range(nu)]).T
        return pose, twist, Q, carried

    def behind(self, rate: int) -> list[int]:
        """Rates on the way from a rate to the world, itself and its row included, nearest first."""
        out, d = [], int(rate)
        while d >= 0:
            out.append(d)
            d = int(self.tree.rates[d, 1])
        return out


def extra_terms(model: Model, nodes: Nodes, step: Step) -> Extra:
    """Dense matrices that forces on bodies and the forces of free joints add."""
    s, nu = len(nodes.w) - 1, model.nv
    extra = Extra(np.zeros((nu * s, nu * s)), np.zeros((nu, nu * s)), np.zeros((nu * s, nu)), np.zeros((nu, nu)))
    tables = Tables(model, nodes, step)
    for a in range(s + 1):
        if model.mechanism.forces:
            _add_bodies(tables, a, extra)
        for j in range(len(model.system.coordinates.free)):
            _add_free(tables, a, j, extra)
    return extra


def add_forces(
    tables: Tables, a: int, tests: FloatArray, ends: FloatArray, by_y: FloatArray, by_e: FloatArray, to: Extra
) -> None:
    """Add forces (m, columns) by unknowns and by displaced axes, met by tests (m, nu) of row a and ends (m, nu)."""
    if a < tables.s:
        rows = tables.place(a)
        to.J[rows] += tests.T @ by_y
        to.Re[rows] += tests.T @ by_e
    to.Py[:] += ends.T @ by_y
    to.Pe[:] += ends.T @ by_e


def _add_bodies(tables: Tables, a: int, extra: Extra) -> None:
    """Forces on bodies at node a."""
    model, nodes, step, s = tables.model, tables.nodes, tables.step, tables.s
    nu, wh = model.nv, nodes.w[a] * step.dt
    pose_y, twist_y, pose_e, twist_e = tables.moved(a)
    S = tables.axes(tables.S, a)
    owner = np.empty(nu * s, dtype=int)
    for k in range(s):
        owner[tables.place(k)] = np.arange(nu)
    for force in model.mechanism.forces:
        # link poses in the world, twists in link axes, and columns of the rates before each link
        names = list(force.bodies)
        at, twists = np.zeros((len(names), 4, 4)), np.zeros((len(names), 6))
        parts: list[list[FloatArray]] = [[], [], [], [], []]
        for k, name in enumerate(names):
            place = model.place(name)
            link = pose_of(tables.P[place.row, 12 * a : 12 * a + 12]) @ place.pose
            back = se3.Ad(se3.inverse(link))
            at[k], twists[k] = link, back @ tables.V[place.row, 6 * a : 6 * a + 6]
            at[k, :3, 3] -= tables.P[0, 12 * a + 9 : 12 * a + 12]
            before = np.zeros(nu, dtype=bool)
            if place.row > 0:
                before[tables.behind(np.flatnonzero(tables.row == place.row)[-1])] = True
            masks = (before[owner], before[owner], before, before, before)
            for part, columns, mask in zip(parts, (pose_y, twist_y, pose_e, twist_e, S), masks, strict=True):
                part.append(back @ columns * mask)
        py, ty, pe, te, tests = (np.vstack(part) for part in parts)
        K, D = force.derivatives(step.t + nodes.c[a] * step.dt, at, twists)
        add_forces(tables, a, tests, pe, wh * (K @ py + D @ ty), wh * (K @ pe + D @ te), extra)
    turn_wrenches(tables, a, tables.G[:, 6 * a : 6 * a + 6], extra)


def turn_wrenches(tables: Tables, a: int, wrenches: FloatArray, extra: Extra) -> None:
    """Impulses (n+1, 6) of subtrees at node a, fixed to their bodies: seen from before, they turn with the joints."""
    s = tables.s
    pose_y, _, pose_e, _ = tables.moved(a)
    S = tables.axes(tables.S, a)
    for j in range(tables.model.nv):
        G = se3.adD(wrenches[tables.row[j]])
        way = tables.behind(int(tables.first[j] + tables.count[j] - 1))
        above = [d for d in way if tables.row[d] != tables.row[j]]
        by_e = -(G @ pose_e[:, j])
        extra.Pe[above, j] += pose_e[:, above].T @ by_e
        if a < s:
            extra.Re[tables.place(a)[above], j] += S[:, above].T @ by_e
        if a > 0:
            c = tables.place(a - 1)[j]
            by_y = -(G @ pose_y[:, c])
            extra.Py[way, c] += pose_e[:, way].T @ by_y
            if a < s:
                extra.J[tables.place(a)[way], c] += S[:, way].T @ by_y


def _add_free(tables: Tables, a: int, j: int, extra: Extra) -> None:
    """Joint impulses of the j-th free joint at node a: what couples its translation and its ball."""
    system, nodes, s = tables.model.system, tables.nodes, tables.s
    wh, d = nodes.w[a] * tables.step.dt, int(system.coordinates.free[j, 1])
    six = slice(d, d + 6)
    K, D = _free_derivatives(tables, a, j)
    known_K, known_D = np.zeros((6, 6)), np.zeros((6, 6))
    for known, table in ((known_K, tables.K), (known_D, tables.Dm)):
        known[:3, :3] = np.diag(table[d : d + 3, a])
        known[3:, 3:] = table[d + 3 : d + 6, 3 * a : 3 * a + 3]
    K, D = wh * K - known_K, wh * D - known_D
    # displacement and its rate in parent axes by the six unknowns of each node
    z, u = tables.step.xi[d + 3 : d + 6, a], tables.xid[d + 3 : d + 6, a]
    J, Jd = np.eye(6), np.zeros((6, 6))
    J[3:, 3:] = so3.mrp_dexp(z)
    Jd[3:, 3:] = _jacobian_rate(z, u)
    nu = tables.model.nv
    by_y, by_e, tests, ends = np.zeros((6, nu * s)), np.zeros((6, nu)), np.zeros((6, nu)), np.zeros((6, nu))
    for g in range(s):
        by_y[:, tables.place(g)[six]] += nodes.b[a, g + 1] / tables.step.dt * (D @ J)
    if a > 0:
        by_y[:, tables.place(a - 1)[six]] += K @ J + D @ Jd
    by_e[:, six], tests[:, six], ends[:, six] = K, J, np.eye(6)
    add_forces(tables, a, tests, ends, by_y, by_e, extra)


def _free_derivatives(tables: Tables, a: int, j: int) -> tuple[FloatArray, FloatArray]:
    """Derivatives (6, 6) of force and torque of a free joint by displacement and rate, all in parent axes.

    (translation; rotation) of the centre of mass. The user's forces tau = (torque; force) stand in child axes at the
    link origin; f = T^-T tau as in ``tree.coordinates``.
    """
    system, nodes = tables.model.system, tables.nodes
    wh, c = nodes.w[a] * tables.step.dt, system.coordinates.offset[j]
    k, d = system.coordinates.free[j]
    place = system.coordinates.q[k : k + 3]
    R = quaternion.to_matrix(tables.q[a][system.coordinates.q[k + 3 : k + 7]])
    # rotation: known to the kernel, less the turning of the torque
    force, torque = tables.tau[d : d + 3, a] / wh, tables.tau[d + 3 : d + 6, a] / wh
    ball = slice(3 * a, 3 * a + 3)
    K, D = np.zeros((6, 6)), np.zeros((6, 6))
    K[:3, :3] = R.T @ (tables.K[d + 3 : d + 6, ball] / wh + so3.hat(torque)) @ R
    D[:3, :3] = R.T @ (tables.Dm[d + 3 : d + 6, ball] / wh) @ R
    # translation: spring along parent axes, damper along child axes
    for (_, rate), data in zip(system.passive.free, system.passive.free_data, strict=True):
        if rate == system.coordinates.v[d]:
            pull = R.T @ (-data[:3] * (tables.q[a][place] - data[3:6]))
            K[3:, :3], K[3:, 3:] = so3.hat(pull), -R.T @ np.diag(data[:3]) @ R
            D[3:, 3:] = -np.diag(data[6:9])
    # (translation; rotation) in parent axes to the user's (rotation; displacement) in child axes
    T = np.zeros((6, 6))
    T[:3, 3:], T[3:, :3], T[3:, 3:] = R.T, R.T, so3.hat(c) @ R.T
    speed = tables.v[a][system.coordinates.v[d : d + 3]] + np.cross(tables.v[a][system.coordinates.v[d + 3 : d + 6]], c)
    turning = np.zeros((6, 6))
    turning[3:, 3:] = so3.hat(speed) @ R.T
    out = T.T @ (K @ T + D @ turning)
    out[:3, 3:] -= so3.hat(force)
    out[3:, 3:] -= so3.hat(torque)
    return out, T.T @ D @ T


def _jacobian_rate(z: FloatArray, u: FloatArray) -> FloatArray:
    """Rate of the chart's Jacobian."""
    from leastaction.spatial._source.mrp import mrp_jacobian_rate

    return np.array(mrp_jacobian_rate(tuple(z.tolist()), tuple(u.tolist()))).reshape(3, 3)
