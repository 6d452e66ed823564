"""Derivative of a step of the Lie trapezoid, dense: the implicit function theorem on its discrete equations.

Changes are those of the start, e (balls along parent axes), and of the unknowns, y. With e_i and eta_i the twists by
which row i is displaced at the start and at the end, both about the origin of the step,

    delta Z  = dlog_Z (eta - e) + ad(e) Z
    delta mu = B (eta - e) - ad(e)^T mu                             B of ``trapezoid/newton.py``
    delta S0 = ad(e of the parent) S0,   delta S1 = ad(eta of the parent) S1

since a common displacement of both ends carries everything along. Forces on bodies have K and D in link axes; their
twist at the start varies by Ad^-1 dlog_Z (eta - e) / h, at the end by Ad^-1 (dlog_Z + ad(Z)) (eta - e) / h. That is the
printed form; the invariant one has its own Z at each end and its own matrices for delta Z, those of ``_spread``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.methods.parameters import Column, joint_force
from leastaction.methods.tangent import Tangent, moved_rows
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.model.tables import pose_of
from leastaction.spatial import quaternion, se3, so3
from leastaction.tree.layout import BALL, COM, IU, KIND, MASS, PARENT


@dataclass(frozen=True, eq=False)
class TrapezoidStep:
    """A solved step: time, length, start x (nx,) and p (nu,), unknowns xi (nu,), control (nv,), states of both ends."""

    t: float
    dt: float
    x: FloatArray
    p: FloatArray
    xi: FloatArray
    control: FloatArray
    start: State
    end: State
    printed: bool = False


class _Tables:
    """Tables of a solved step, and all variations as matrices by (e, y), both (nu,)."""

    def __init__(self, model: Model, step: TrapezoidStep) -> None:
        from leastaction.trapezoid import linear as trapezoid_linear

        tree, nu = model.system.tree, model.nv
        n = len(tree.rows)
        self.model, self.step, self.tree, self.nu = model, step, tree, nu
        P, P1, Z, b, mu, B = (np.zeros((n, k)) for k in (12, 12, 6, 3, 6, 36))
        S0, S1, self.x1, self.u, self.u1 = (
            np.zeros((nu, 6)), np.zeros((nu, 6)), np.zeros(model.nq), np.zeros(nu), np.zeros(nu),
        )  # fmt: skip
        tables = trapezoid_linear.Tables(P, P1, S0, S1, Z, b, mu, B, self.x1, self.u, self.u1)
        trapezoid_linear.trapezoid_tables(model.system, step.printed, step.dt, step.x, step.xi, tables)
        # the end about the origin of the start
        P1[:, 9:] += P[0, 9:] - P1[0, 9:]
        self.P, self.P1, self.S0, self.S1, self.Z, self.mu, self.B = P, P1, S0.T, S1.T, Z, mu, B.reshape(n, 6, 6)
        self.b = b
        # balls: rotations of both ends, of the step, and of a change along parent axes to one of xi
        self.R0, self.turn, self.chart = np.eye(nu), np.eye(nu), np.eye(nu)
        for row in tree.rows[1:]:
            if row[KIND] == BALL:
                three = slice(row[IU], row[IU] + 3)
                self.R0[three, three] = quaternion.to_matrix(step.x[row[2] : row[2] + 4])
                self.turn[three, three] = so3.exp(step.xi[three])
                self.chart[three, three] = so3.dlog(step.xi[three])
        self.R1 = self.turn @ self.R0
        # displaced rows by (e, y)
        moves = moved_rows(model)
        self.e, self.eta = np.zeros((n, 6, 2 * nu)), np.zeros((n, 6, 2 * nu))
        self.ahead = np.hstack([self.turn, np.eye(nu)])
        for i in range(n):
            self.e[i, :, :nu] = self.S0 * moves[i]
            self.eta[i] = (self.S1 * moves[i]) @ self.ahead

    def subtrees(self, parts: FloatArray) -> FloatArray:
        """Sums over subtrees of what the rows have."""
        out = parts.copy()
        for i in range(len(out) - 1, 0, -1):
            out[self.tree.rows[i, PARENT]] += out[i]
        return out

    def project(self, S: FloatArray, moved: FloatArray, wrenches: FloatArray, changes: FloatArray) -> FloatArray:
        """Variation (nu, 2 nu) of S . (wrenches of the subtrees), with axes that are carried by the row before."""
        total, change = self.subtrees(wrenches), self.subtrees(changes)
        out = np.zeros((self.nu, 2 * self.nu))
        for d, i in enumerate(self.tree.rates[:, 0]):
            carried = -se3.ad(S[:, d]) @ moved[self.tree.rows[i, PARENT]]
            out[d] = total[i] @ carried + S[:, d] @ change[i]
        return out


def trapezoid_derivative(
    model: Model, step: TrapezoidStep, parts: list[Column]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A (2 nv, 2 nv), B (2 nv, nv) and columns (2 nv, k) by parameters, in the user's coordinates."""
    tables, n = _Tables(model, step), model.nv
    first, last = Tangent(model, step.start), Tangent(model, step.end)
    # residual and next momentum by (e, y) and by the control
    changes = np.einsum("iab,ibc->iac", tables.B, tables.eta - tables.e)
    changes -= np.einsum("iab,ibc->iac", se3.adD(tables.mu), tables.e)
    rotor = np.zeros((n, 2 * n))
    rotor[:, n:] = model.system.tree.armature[:, None] * tables.chart / step.dt
    loads, loads1 = _loads(tables, False), _loads(tables, True)
    joint, push = _joints(tables, False, first)
    joint1, push1 = _joints(tables, True, last)
    r = tables.project(tables.S0, tables.e, tables.mu, changes) + rotor
    r -= tables.project(tables.S0, tables.e, *loads) + joint
    pn = tables.project(tables.S1, tables.eta, tables.mu, changes) + rotor
    pn += tables.project(tables.S1, tables.eta, *loads1) + joint1
    more = _parameters(tables, parts)
    # columns: displacements and rates of the rows at the start, control, parameters
    dx = np.hstack([np.eye(n), np.zeros((n, 2 * n + len(parts)))])
    e = tables.R0 @ dx
    dp = np.hstack([first.E, first.H, np.zeros((n, n + len(parts)))])
    dp = tables.R0 @ dp - _balls(model, step.p) @ e
    zero = np.zeros((n, 2 * n))
    side = r[:, :n] @ e - dp - np.hstack([zero, push, np.zeros((n, len(parts)))])
    side[:, 3 * n :] += more[0]
    y = -np.linalg.solve(r[:, n:], side)
    # the end
    moved = tables.turn @ e + y
    dpn = pn[:, :n] @ e + pn[:, n:] @ y + np.hstack([zero, push1, np.zeros((n, len(parts)))])
    dpn[:, 3 * n :] += more[1] - more[2]
    dx1 = tables.R1.T @ moved
    du1 = np.linalg.solve(last.H, tables.R1.T @ dpn + _balls(model, last.momentum) @ dx1 - last.E @ dx1)
    # to the user
    dq = np.linalg.solve(last.T, dx1)
    dv = np.linalg.solve(last.T, du1 - last.turning @ dq)
    out = np.vstack([dq, dv])
    inward = np.block([[first.T, np.zeros((n, n))], [first.turning, first.T]])
    return out[:, : 2 * n] @ inward, out[:, 2 * n : 3 * n], out[:, 3 * n :]


def _balls(model: Model, p: FloatArray) -> FloatArray:
    """(nu, nu): cross products with the parts of p that belong to balls."""
    out = np.zeros((model.nv, model.nv))
    for row in model.system.tree.rows[1:]:
        if row[KIND] == BALL:
            three = slice(row[IU], row[IU] + 3)
            out[three, three] = so3.hat(p[three])
    return out


def _loads(tables: _Tables, end: bool) -> tuple[FloatArray, FloatArray]:
    """Half impulses (n+1, 6) of gravity and of the forces on bodies at one end, and their variations (n+1, 6, 2 nu)."""
    tree, half = tables.tree, 0.5 * tables.step.dt
    P, moved = (tables.P1, tables.eta) if end else (tables.P, tables.e)
    loads, changes = np.zeros((len(P), 6)), np.zeros(moved.shape)
    push = half * tree.gravity
    for i in range(1, len(P)):
        m = tree.const[i, MASS]
        if m > 0:
            moment = m * (P[i, :9].reshape(3, 3) @ tree.const[i, COM : COM + 3] + P[i, 9:])
            loads[i] = np.concatenate([np.cross(moment, push), m * push])
            turned = moved[i, :3], moved[i, 3:]
            changes[i, :3] = so3.hat(push) @ (so3.hat(moment) @ turned[0] - m * turned[1])
    for force in tables.model.mechanism.forces:
        _add_force(tables, force, end, loads, changes)
    return loads, changes


def _add_force(tables: _Tables, force: Any, end: bool, loads: FloatArray, changes: FloatArray) -> None:
    """Add a force on bodies to half impulses and their variations."""
    step, model = tables.step, tables.model
    P, moved = (tables.P1, tables.eta) if end else (tables.P, tables.e)
    names, k = list(force.bodies), len(force.bodies)
    at, twists, backs, rows = np.zeros((k, 4, 4)), np.zeros((k, 6)), [], []
    by_pose, by_twist = [], []
    for c, name in enumerate(names):
        place = model.place(name)
        i = place.row
        link = pose_of(P[i]) @ place.pose
        back = np.asarray(se3.Ad(se3.inverse(link)))
        Z, spread = _spread(tables, i, end)
        at[c], twists[c] = link, back @ Z / step.dt
        at[c, :3, 3] -= P[0, 9:]
        by_pose.append(back @ moved[i])
        by_twist.append(back @ spread @ (tables.eta[i] - tables.e[i]) / step.dt)
        backs.append(back)
        rows.append(i)
    t = step.t + step.dt if end else step.t
    K, D = force.derivatives(t, at, twists)
    wrenches = force.wrenches(t, at, twists)
    change = K @ np.vstack(by_pose) + D @ np.vstack(by_twist)
    for c, (back, i) in enumerate(zip(backs, rows, strict=True)):
        spatial = back.T @ wrenches[c]
        loads[i] += 0.5 * step.dt * spatial
        changes[i] += 0.5 * step.dt * (back.T @ change[6 * c : 6 * c + 6] - se3.adD(spatial) @ moved[i])


def _spread(tables: _Tables, i: int, end: bool) -> tuple[FloatArray, FloatArray]:
    """Z (6,) of row i at one end, and its change (6, 6) in axes of the body when only the end of the step moves."""
    Z = tables.Z[i]
    if tables.step.printed:
        return Z, np.asarray(se3.dlog(Z)) + (se3.ad(Z) if end else 0.0)
    # places of the centre of mass, or of the row where there is no mass
    a, b, const = Z[:3], tables.b[i], tables.tree.const[i]
    inside = const[COM : COM + 3] if const[MASS] > 0 else np.zeros(3)
    first = tables.P[i, :9].reshape(3, 3) @ inside + tables.P[i, 9:]
    last = first + b
    # a and b by the displacement of the end; then Z = (a; b - a x c)
    turn, shift = np.zeros((3, 6)), np.hstack([-so3.hat(last), np.eye(3)])
    turn[:, :3] = so3.dlog(a)
    if not end:
        return Z, np.vstack([turn, shift + so3.hat(first) @ turn])
    Z = np.concatenate([a, b - np.cross(a, last)])
    return Z, np.vstack([turn, shift + so3.hat(last) @ turn - so3.hat(a) @ shift]) + se3.ad(Z)


def _joints(tables: _Tables, end: bool, tangent: Tangent) -> tuple[FloatArray, FloatArray]:
    """Half impulses of joint forces at one end along parent axes, by (e, y) (nu, 2 nu) and by the control (nu, nv)."""
    from leastaction.trapezoid import linear as trapezoid_linear

    model, step, n = tables.model, tables.step, tables.nu
    x, u, R = (tables.x1, tables.u1, tables.R1) if end else (step.x, tables.u, tables.R0)
    moved = tables.ahead if end else np.hstack([np.eye(n), np.zeros((n, n))])
    q, v, f, Kx, Ku = np.zeros(model.nq), np.zeros(n), np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    trapezoid_linear.joint_tables(model.system, x, u, step.control, q, v, f, Kx, Ku)
    model.raise_pending()
    dx = R.T @ moved
    du = _balls(model, u) @ dx
    du[:, n:] += R.T @ tables.chart / step.dt
    half = 0.5 * step.dt
    by = half * (-R @ (Kx @ dx + Ku @ du) - _balls(model, R @ f) @ moved)
    return by, half * R @ np.linalg.inv(tangent.T).T


def _parameters(tables: _Tables, parts: list[Column]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Residual, next momentum and p = M u of the end by each parameter at fixed motion, each (nu, k)."""
    from leastaction.dynamics import entries
    from leastaction.dynamics import parameters as dynamics_parameters
    from leastaction.trapezoid import linear as trapezoid_linear

    model, step, n, k = tables.model, tables.step, tables.nu, 2 * len(parts)
    if not parts:
        none = np.zeros((n, 0))
        return none, none, none
    consts, controls = np.tile(model.system.tree.const, (k, 1, 1)), np.tile(step.control, (k, 2, 1))
    averages = []
    for x, u in ((step.x, tables.u), (tables.x1, tables.u1)):
        q, v = np.zeros(model.nq), np.zeros(n)
        entries.leave(model.system, x, u, q, v)
        averages.append((q, v))
    for j, part in enumerate(parts):
        for side, sign in enumerate((1.0, -1.0)):
            if part.ends is not None:
                consts[2 * j + side] = part.ends[side]
            else:
                for a, (q, v) in enumerate(averages):
                    controls[2 * j + side, a] += sign * joint_force(model, part, q, v)
    momenta = []
    for state in (step.start, step.end):
        x, u, p = np.zeros(model.nq), np.zeros(n), np.zeros((k, n))
        entries.enter(model.system, state.q.copy(), state.v.copy(), x, u)
        dynamics_parameters.momenta_of(model.system, consts, x, u, p)
        momenta.append(p)
    R, P = np.zeros((k, n)), np.zeros((k, n))
    trapezoid_linear.trapezoid_residuals(
        model.system, step.printed, consts, step.t, step.dt, step.x, momenta[0], step.xi, controls, R, P
    )
    model.raise_pending()
    length = np.array([part.length for part in parts])
    by = [np.asarray((table[::2] - table[1::2]).T / length) for table in (R, P, momenta[1])]
    return by[0], by[1], by[2]
