"""Forward dynamics of a whole system: tree, joint springs, body forces, closed loops."""

# mypy: ignore-errors
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leastaction.forces.bodies import body_forces, given_size, most_bodies
from leastaction.forces.joints import joint_forces
from leastaction.jit.decorators import memory, optional, sweep
from leastaction.jit.lanes import ld6, st6, table, vector
from leastaction.loops.rows import (
    RHO,
    SWEEPS,
    bias_difference,
    loop_rows,
    loop_size,
    mobility,
    own_inertias,
    pair_size,
    push_pair,
    relative,
    size_or_one,
)
from leastaction.loops.ties import along_screw, term_of, tie_bias, tie_slopes
from leastaction.solve.dense import proximal_solve
from leastaction.tree.articulated import eliminate, expand, reduce
from leastaction.tree.coordinates import forces_in, positions_out, rates_out
from leastaction.tree.kinematics import outward
from leastaction.tree.layout import PARENT, Floats, Ints, System, Tree


class Work(NamedTuple):
    """Scratch memory of one forward dynamics: see ``tree.kinematics``, ``tree.articulated``, ``loops.rows``."""

    P: Floats
    S: Floats
    M: Floats
    V: Floats
    F: Floats
    A: Floats
    U: Floats
    y: Floats
    Z: Floats
    q: Floats
    v: Floats
    tau: Floats
    f: Floats
    given: Floats
    result: Floats
    g: Floats
    G: Floats
    bias: Floats
    ends: Ints
    column: Floats
    rhs: Floats
    lam: Floats
    delassus: Floats
    factor: Floats
    own: Floats | None
    size: Floats
    slope: Floats


@optional(0)
def tie_count(loops):
    """Number of couplings."""
    return loops.ties.kind.shape[0]


@memory
def make_work(system, like):
    """Scratch memory for a system; ``like`` is a vector of coordinates."""
    n, nu, nq = system.tree.rows.shape[0], system.tree.rates.shape[0], system.coordinates.q.size
    m = loop_size(system.loops)
    bodies = most_bodies(system.forces)
    return Work(
        table(like, n, 12), table(like, nu, 6), table(like, n, 9), table(like, n, 12), table(like, n, 6),
        table(like, n, 21), table(like, nu, 7), vector(like, nu), table(like, n, 6),
        vector(like, nq), vector(like, nu), vector(like, nu), vector(like, nu),
        np.empty(given_size(system.forces)), np.empty(6 * bodies + 1),
        np.empty(m), np.empty((m, 6)), np.empty(m), np.empty((m, 2), np.int64),
        np.empty((m, nu)), np.empty(m), np.empty(m), np.empty((m, m)), np.empty((m, m)),
        own_inertias(system.loops, system.tree), np.empty(m), np.empty((tie_count(system.loops), nu)),
    )  # fmt: skip


@sweep
def acceleration(system, t, x, u, control, w, udot):
    """udot (nu,) from x, u and the user's generalised forces ``control`` (nv,).

    Returns False if the loop equations cannot be factorised. The multipliers of the loops are in w.lam.
    """
    tree = system.tree
    # joint forces: control, springs and dampers, in the user's coordinates; then per row
    positions_out(system.coordinates, x, w.q)
    rates_out(system.coordinates, x, u, w.v)
    for k in range(control.size):
        w.tau[k] = control[k]
    joint_forces(system.passive, w.q, w.v, w.tau)
    forces_in(system.coordinates, x, w.tau, w.f)
    # bias and body forces, then the articulated recursion
    outward(tree, x, u, None, w.P, w.S, w.M, w.V, w.F)
    body_forces(system.forces, t, w.P, w.V, w.F, w.given, w.result)
    eliminate(tree, w.S, w.M, w.A, w.F, w.f, w.U, w.y)
    expand(tree, w.S, w.U, w.y, w.Z, udot)
    return close_loops(system.loops, tree, x, u, w, udot)


@optional(True)
def close_loops(loops, tree, x, u, w, udot):
    """Add to udot what keeps the loops closed: G M^-1 G^T lambda = -(second derivative without lambda)."""
    m = w.g.size
    if m == 0:
        return True
    openings_of_rows(loops, x, u, udot, w)
    if not delassus(loops, tree, x, w):
        return False
    for d in range(udot.size):
        for k in range(m):
            udot[d] += w.column[k, d] * w.lam[k]
    return True


@sweep
def openings_of_rows(loops, x, u, udot, w):
    """Rows, and w.rhs: minus their second derivatives at accelerations udot, which w.Z belongs to."""
    pairs = pair_size(loops)
    loop_rows(loops, w.P, w.V, w.g, w.G, w.bias, w.ends)
    for k in range(pairs):
        a, b, row = w.ends[k, 0], w.ends[k, 1], ld6(w.G, k, 0)
        w.rhs[k] = -(relative(w.Z, a, b, row) + bias_difference(w.V, a, b, row) + w.bias[k])
    for k in range(loops.ties.kind.shape[0]):
        tie_slopes(loops.ties, k, x, w.slope[k])
        change = tie_bias(loops.ties, k, x, u)
        for d in range(udot.size):
            change += w.slope[k, d] * udot[d]
        w.rhs[pairs + k] = -change


@sweep
def push_loop(loops, k, f, w):
    """A unit multiplier of row k as forces needed on bodies, w.F, and forces f (nu,) in joints."""
    pairs = pair_size(loops)
    for d in range(f.size):
        f[d] = w.slope[k - pairs, d] if k >= pairs else 0.0
    if k < pairs:
        push_pair(f, w.F, w.ends[k, 0], w.ends[k, 1], ld6(w.G, k, 0))
    else:
        for i in range(w.F.shape[0]):
            st6(w.F, i, 0, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


@sweep
def answers(loops, k, w):
    """Column k of w.delassus, from accelerations w.Z of the rows and w.column[k] of the rates."""
    pairs = pair_size(loops)
    for r in range(w.g.size):
        if r < pairs:
            w.delassus[r, k] = relative(w.Z, w.ends[r, 0], w.ends[r, 1], ld6(w.G, r, 0))
        else:
            w.delassus[r, k] = 0.0
            for d in range(w.slope.shape[1]):
                w.delassus[r, k] += w.slope[r - pairs, d] * w.column[k, d]


@sweep
def delassus(loops, tree, x, w):
    """Columns M^-1 G^T, the matrix G M^-1 G^T, and lambda for the right-hand side w.rhs. O(m n + m^3)."""
    for k in range(w.g.size):
        push_loop(loops, k, w.f, w)
        reduce(tree, w.S, w.F, w.f, w.U, w.y)
        expand(tree, w.S, w.U, w.y, w.Z, w.column[k])
        answers(loops, k, w)
    sizes_of_rows(loops, tree, x, w)
    return proximal_solve(w.delassus, w.rhs, w.factor, w.bias, w.lam, w.size, RHO, SWEEPS)


@sweep
def sizes_of_rows(loops, tree, x, w):
    """w.size (m,): of the rows of loops and couplings (``loops.rows.mobility``)."""
    pairs, T, C = pair_size(loops), loops.ties, tree.const
    for k in range(pairs):
        row = ld6(w.G, k, 0)
        w.size[k] = size_or_one(mobility(C, w.own, w.P, w.ends[k, 0], row) + mobility(C, w.own, w.P, w.ends[k, 1], row))
    for k in range(T.kind.shape[0]):
        size = 0.0
        for j in range(T.kind[k, 0], T.kind[k, 0] + T.kind[k, 1]):
            i, slope = T.terms[j, 0], term_of(T, j, x[T.terms[j, 1]])[1]
            row = along_screw(tree, i, w.P)
            by = mobility(C, w.own, w.P, i, row) + mobility(C, w.own, w.P, tree.rows[i, PARENT], row)
            size += slope * slope * by
        w.size[pairs + k] = size_or_one(size)


@memory
def with_constants(system, const):
    """The same mechanism with other constants of its tree; arrays are returned, so references must be counted."""
    t = system.tree
    tree = Tree(t.rows, const, t.rates, t.armature, t.gravity, t.origin, t.moves, t.splines, t.part, t.parts)
    return System(tree, system.coordinates, system.passive, system.forces, system.loops, system.constraints)
