"""The forms in which implicit steps and their adjoint see a model, and the numbers of the methods in compiled code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastaction.methods.closing import row_count
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.model.tables import force_derivatives
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import USER_FORCE, Forces, System

BDF1_CODE, BDF2_CODE, SDIRK2_CODE, LINEAR_CODE = 0, 1, 2, 3


def one_form(model: Model) -> System:
    """The arrays of a mechanism, with an empty table where no force acts on bodies: one program for all trees."""
    system = model.system
    if not row_count(model):
        system = system._replace(loops=None, constraints=None)
    if system.forces is not None:
        return system
    whole, frames, none = np.zeros((0, 3), dtype=np.int64), np.zeros((0, 12)), np.zeros((0, 2), dtype=np.int64)
    forces = Forces(whole, np.zeros(0, dtype=np.int64), frames, np.zeros((0, 10)), none, np.zeros(0))
    return system._replace(forces=forces)


def differentiable(model: Model) -> Model:
    """The model with derivatives of all forces in its table, by checked differences where the user gives none."""
    forces = model.system.forces
    if forces is None:
        return model
    address, added = forces.address.copy(), []
    for k, force in enumerate(model.mechanism.forces):
        if forces.kind[k, 0] == USER_FORCE and address[k, 1] == 0:
            added.append(force_derivatives(force))
            address[k, 1] = added[-1].address
    if not added:
        return model
    # the model owns the functions whose addresses its table holds
    system = model.system._replace(forces=forces._replace(address=address))
    return replace(model, system=system, callbacks=(*model.callbacks, *added))


def no_record(model: Model) -> Any:
    """The empty record of ``implicit.adjoint``."""
    from leastaction.implicit.adjoint import Record

    none = np.zeros((0, 2, model.nv))
    return Record(np.zeros((0, 2, model.nq)), none, none, none, np.zeros((0, 2)))


def row_changes(model: Model, state: State) -> FloatArray:
    """(2 nv, 2 nv) changes of the rows' state by those of the user's: displacements and rates."""
    coordinates, n = model.system.coordinates, model.nv
    T, turning = np.zeros((n, n)), np.zeros((n, n))
    T[np.arange(n), coordinates.v] = 1.0
    for (k, d), c in zip(coordinates.free, coordinates.offset, strict=True):
        R = quaternion.to_matrix(state.q[coordinates.q[k + 3 : k + 7]])
        lin, ang, rows = coordinates.v[d : d + 3], coordinates.v[d + 3 : d + 6], slice(d, d + 3)
        T[rows, :] = 0.0
        T[rows, lin], T[rows, ang] = R, -R @ so3.hat(c)
        turning[rows, ang] = -R @ so3.hat(state.v[lin] + np.cross(state.v[ang], c))
    # free joints that turn first: bdot = v - w x b with b = R^T p
    for k, d in coordinates.turned.free if coordinates.turned is not None else ():
        at = coordinates.q[k : k + 7]
        b = quaternion.to_matrix(state.q[at[:4]]).T @ state.q[at[4:]]
        ang, lin, rows = coordinates.v[d : d + 3], coordinates.v[d + 3 : d + 6], slice(d + 3, d + 6)
        T[rows, ang] = so3.hat(b)
        turning[rows, lin], turning[rows, ang] = -so3.hat(state.v[ang]), -so3.hat(state.v[ang]) @ so3.hat(b)
    return np.block([[T, np.zeros((n, n))], [turning, T]])
