"""Derivatives of a Galerkin step's equations by parameters of the mechanism: columns for ``loops_derivative``."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leastaction.galerkin.derivative import Nodes, Step, Tables
from leastaction.methods.parameters import Column, joint_force
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State


class ParameterColumns(NamedTuple):
    """By each parameter at fixed motion: residual R (nu s, k), next momentum P and p = M u of the end M (nu, k).

    F (s+1, nv, k) are the user's joint forces at the nodes by it.
    """

    R: FloatArray
    P: FloatArray
    M: FloatArray
    F: FloatArray


def parameter_columns(
    model: Model, nodes: Nodes, step: Step, lam: FloatArray, start: State, end: State, parts: list[Column],
    world: Callable[[FloatArray, FloatArray, float], tuple[FloatArray, FloatArray]] | None = None,
) -> ParameterColumns:  # fmt: skip
    """Columns of a solved step from ``start`` to ``end`` with impulses lam (s, m).

    ``world`` gives coordinates and velocities in the world at a place in the step, where the step has other ones.
    """
    from leastaction.dynamics import entries
    from leastaction.dynamics import parameters as dynamics_parameters
    from leastaction.galerkin import parameters as galerkin_parameters

    system, s, n = model.system, len(nodes.w) - 1, model.nv
    tables, k = Tables(model, nodes, step), 2 * len(parts)
    consts, controls = np.tile(system.tree.const, (k, 1, 1)), np.tile(step.control, (k, s + 1, 1))
    for j, part in enumerate(parts):
        for side, sign in enumerate((1.0, -1.0)):
            if part.ends is not None:
                consts[2 * j + side] = part.ends[side]
            else:
                for a in range(s + 1):
                    q, v = tables.q[a], tables.v[a]
                    if world is not None:
                        q, v = world(q, v, float(nodes.c[a]))
                    controls[2 * j + side, a] += sign * joint_force(model, part, q, v)
    # momenta of both ends, with the same velocities
    momenta = []
    for state in (start, end):
        x, u, p = np.zeros(model.nq), np.zeros(n), np.zeros((k, n))
        entries.enter(system, state.q.copy(), state.v.copy(), x, u)
        dynamics_parameters.momenta_of(system, consts, x, u, p)
        momenta.append(p)
    R, P = np.zeros((k, n, s)), np.zeros((k, n))
    galerkin_parameters.residuals_of_many(
        system, consts, tuple(nodes.w.tolist()), nodes.b, nodes.c, nodes.across, nodes.balance, step.t, step.dt, step.x,
        momenta[0], step.xi, lam, controls, R, P,
    )  # fmt: skip
    model.raise_pending()
    length = np.array([part.length for part in parts])
    by = [((table[::2] - table[1::2]).T / length) for table in (P, momenta[1])]
    residual = np.zeros((n * s, len(parts)))
    for a in range(s):
        residual[tables.place(a)] = (R[::2, :, a] - R[1::2, :, a]).T / length
    forces = np.moveaxis(controls[::2] - controls[1::2], 0, 2) / length
    return ParameterColumns(residual, by[0], by[1], forces)
