"""Derivative of a Galerkin step with closed loops and equality constraints of the user, dense: O((s n + s m)^3).

With y the change of the unknowns and dlam that of the impulses at nodes 0..s-1, the solved step changes by

    J y + F dlam = -dr        F: rows of the constraints as forces at nodes 0..s-1
    Gy y         = -dg        Gy: change of the gaps at nodes 1..s by the unknowns

where J holds the curvature of the constraints, d(G^T lam)/dx, and dr, dg are by the start and the forces. The velocity
at the end is that of M u + G^T nu = p, G u = 0, differentiated. Redundant rows are met by least squares: impulses are
not unique then, but what they do is.

Start states lie on the manifold g = 0, G u = 0. Other directions are first projected on its tangent space
(``methods.tangent``); so A is the derivative of the step after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.galerkin.derivative import (
    Extra,
    Nodes,
    Step,
    Tables,
    add_forces,
    extra_terms,
    needs_extra,
    turn_wrenches,
)
from leastaction.galerkin.parameters_derivative import ParameterColumns
from leastaction.methods.tangent import Tangent, least, loops_at, moved_rows, subtrees
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import BALL, IU, IX, KIND


# --- the nodes of the step --------------------------------------------------------------------------------------------
class LoopTerms(NamedTuple):
    """What the links do in a step.

    extra    curvature: residual and next momentum by unknowns and start
    F, Fp    (nu s, s m), (nu, s m): residual and next momentum by the impulses
    Gy, Ge   (s m, nu s), (s m, nu): gaps by the unknowns and by displaced axes
    """

    extra: Extra
    F: FloatArray
    Fp: FloatArray
    Gy: FloatArray
    Ge: FloatArray


def loop_terms(tables: Tables, lam: FloatArray) -> LoopTerms:
    """All terms of the links of a solved step with impulses lam (s, m)."""
    model, s, nu = tables.model, tables.s, tables.model.nv
    m, moves = lam.shape[1], moved_rows(model)
    extra = Extra(np.zeros((nu * s, nu * s)), np.zeros((nu, nu * s)), np.zeros((nu * s, nu)), np.zeros((nu, nu)))
    F, Fp, Gy, Ge = np.zeros((nu * s, s * m)), np.zeros((nu, s * m)), np.zeros((s * m, nu * s)), np.zeros((s * m, nu))
    owner = np.empty(nu * s, dtype=int)
    for k in range(s):
        owner[tables.place(k)] = np.arange(nu)
    for a in range(s + 1):
        pose_y, _, pose_e, _ = tables.moved(a)
        S = tables.axes(tables.S, a)
        wrenches = np.zeros((len(tables.P), 6))
        x = tables.q[a][model.system.coordinates.q]
        for link in loops_at(model, x, tables.P[:, 12 * a : 12 * a + 12]):
            by_y, by_e = link.reach(pose_y, moves[:, owner]), link.reach(pose_e, moves)
            # gaps at nodes 1..s
            if a > 0:
                rows = np.arange(link.at.start, link.at.stop) + (a - 1) * m
                Gy[rows], Ge[rows] = link.jacobian @ by_y, link.jacobian @ by_e
            # impulses at nodes 0..s-1
            if a < s:
                columns, tests = np.arange(link.at.start, link.at.stop) + a * m, link.reach(S, moves)
                F[np.ix_(tables.place(a), columns)] = (link.jacobian @ tests).T
                Fp[:, columns] = (link.jacobian @ by_e).T
                K = link.stiffness(lam[a, link.at])
                add_forces(tables, a, tests, by_e, K @ by_y, K @ by_e, extra)
                link.add_wrenches(lam[a, link.at], wrenches)
        if a < s:
            turn_wrenches(tables, a, subtrees(model, wrenches), extra)
    return LoopTerms(extra, F, Fp, Gy, Ge)


# --- the whole step ---------------------------------------------------------------------------------------------------
def linked_derivative(
    model: Model, nodes: Nodes, step: Step, lam: FloatArray, start: State, end: State,
    more: ParameterColumns | None = None, watch: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """A (2 nv, 2 nv) and B (2 nv, nv) of one solved step with impulses lam (s, m), in the user's coordinates.

    The third result are derivatives (2 nv, k) by parameters whose columns are in ``more``. Without loops and
    constraints m is 0. ``watch`` are quantities by the unknowns (r, nu s) and by displaced axes (r, nu), whose
    derivatives are r more rows of all results.
    """
    from leastaction.galerkin import loops_linear as galerkin_loops_linear

    nu, s = model.nv, len(nodes.w) - 1
    J, Py, R, P = np.zeros((nu * s, nu * s)), np.zeros((nu, nu * s)), np.zeros((nu * s, 3 * nu)), np.zeros((nu, 3 * nu))
    pn = np.zeros(nu)
    galerkin_loops_linear.step_matrices(
        model.system, tuple(nodes.w.tolist()), nodes.b, nodes.c, nodes.across, nodes.balance, step.t, step.dt, step.x,
        step.p, step.xi, lam, step.control[None], step.active, J, Py, R, P, pn,
    )  # fmt: skip
    model.raise_pending()
    # what the kernel does not know
    tables = Tables(model, nodes, step)
    terms, turn = loop_terms(tables, lam), _ball_blocks(model, step.x)
    for extra in (terms.extra, *([extra_terms(model, nodes, step)] if needs_extra(model, step.control) else [])):
        J += extra.J
        Py += extra.Py
        R[:, :nu] += extra.Re @ turn
        P[:, :nu] += extra.Pe @ turn
    if more is not None:
        R, P = np.hstack([R, more.R]), np.hstack([P, more.P])
    # unknowns and impulses; the gaps of the nodes are combined as in the step itself
    Y = -np.linalg.solve(J, np.hstack([R, terms.F]))
    y, push = Y[:, : R.shape[1]], Y[:, R.shape[1] :]
    if lam.shape[1]:
        gaps = terms.Gy @ y
        gaps[:, :nu] += terms.Ge @ turn
        balance = np.kron(nodes.balance[0], np.eye(lam.shape[1]))
        dlam = least(balance @ terms.Gy @ push, -balance @ gaps)
        y, P = y + push @ dlam, P + terms.Fp @ dlam
    seen = np.zeros((0, y.shape[1]))
    if watch is not None:
        seen = watch[0] @ y
        seen[:, :nu] += watch[1] @ turn
    # the end of the step: balls in child axes
    chart, spin = np.eye(nu), np.zeros((nu, nu))
    for d in _balls(model):
        three = slice(d, d + 3)
        chart[three, three], spin[three, three] = so3.mrp_dexp(step.xi[three, s]), so3.hat(pn[three])
    move = chart @ y[tables.place(s - 1)]
    finish = Tangent(model, end)
    turned = _ball_blocks(model, _coordinates(model, end))
    momentum = P + Py @ y + spin @ move
    if more is not None:
        momentum[:, 3 * nu :] -= more.M
    dp = turned.T @ momentum
    move[:, :nu] += turn
    dx = turned.T @ move
    du = finish.velocity(turned.T @ pn, dx, dp)
    return _to_user(Tangent(model, start), finish, dx, du, seen)


def _to_user(
    start: Tangent, end: Tangent, dx: FloatArray, du: FloatArray, seen: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A, B, C from columns of the rows by (dx, du, forces, rest); directions that leave the manifold are projected."""
    n = start.model.nv
    dq = np.linalg.solve(end.T, dx)
    dv = np.linalg.solve(end.T, du - end.turning @ dq)
    out = np.vstack([dq, dv, seen])
    inward = np.block([[start.T, np.zeros((n, n))], [start.turning, start.T]])
    B = np.zeros((len(out), n))
    B[:, start.model.system.coordinates.v] = out[:, 2 * n : 3 * n]
    A = out[:, : 2 * n] @ inward
    return A @ start.projector() if start.links else A, B, out[:, 3 * n :]


def _balls(model: Model) -> list[int]:
    """First rate of every ball."""
    rows = model.system.tree.rows
    return [int(row[IU]) for row in rows[1:] if row[KIND] == BALL]


def _ball_blocks(model: Model, x: FloatArray) -> FloatArray:
    """(nu, nu): the rotations of all balls, from child to parent axes, and ones."""
    out = np.eye(model.nv)
    for row in model.system.tree.rows[1:]:
        if row[KIND] == BALL:
            three = slice(row[IU], row[IU] + 3)
            out[three, three] = quaternion.to_matrix(x[row[IX] : row[IX] + 4])
    return out


def _coordinates(model: Model, state: State) -> FloatArray:
    """Coordinates (nq,) of the rows; the positions of free joints, which nobody needs here, are the user's."""
    return np.asarray(state.q[model.system.coordinates.q])
