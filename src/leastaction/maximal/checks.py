"""States that ``Maximal`` cannot start from or go on from, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.jit.status import Status
from leastaction.maximal.limits import bound_name, check_bounds
from leastaction.methods.failures import failure_of
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.model import Model

# Bodies of a first state that interpenetrate by more than this, in metres, are refused. A state that a run has left, as
# a cylinder that rolls 2e-6 m deep, may begin another one; what is deeper is taken back as within a run.
_DEEP = 1e-4

# Those of a state within a run may by this: features of round bodies are frozen during a step, and discs that fall flat
# at 10 ms are in the ground by 0.9 mm. Bounds of such a state may be violated by the other, in their own unit.
_RUN_DEEP, _RUN_BEYOND = 2e-3, 1e-6

# A step in which a body turns by this angle, in radians, may have no solution: the momentum of a step goes by its sine.
_FAST = 1.0


# Motion of two bodies along the normal of their contact, over that of a joint, below which no joint moves along it; as
# ``maximal.contact.ALONG``.
_ALONG = 1e-5


def check_apart(model: Model, touching: Any, q: FloatArray, x: FloatArray, within: bool = False) -> None:
    """Raise ModelError, by name, where a first state interpenetrates or breaks an enforced limit or inequality.

    Bodies whose joints do not move along the normal of a contact may: it has no force.

    Args:
        model: the mechanism.
        touching: what may touch in it.
        q: coordinates.
        x: coordinates of the rows.
        within: whether the state may be one of a run, as where steps of it are differentiated.
    """
    from leastaction.contact import features as contact_features
    from leastaction.contact import gap as contact_gap
    from leastaction.maximal import step as maximal_step

    table = touching.table
    poses = np.zeros((len(model.system.tree.rows), 12))
    maximal_step.row_poses(model.system.tree, x, poses)
    check_bounds(model, x, poses, *((_RUN_BEYOND,) if within else ()))
    ints, floats = np.zeros((table.capacity, 4), dtype=np.int64), np.zeros((table.capacity, 24))
    n = contact_features.find_contacts(table.contacts, poses, 0.0, ints, floats)
    phi, work = np.zeros(n), [np.zeros((n, w)) for w in (3, 6, 6, 3, 3)]
    contact_gap.gaps(ints, floats, n, poses, phi, *work)
    for worst in np.argsort(phi):
        if phi[worst] >= -(_RUN_DEEP if within else _DEEP):
            break
        if not _approach(model, q, poses, ints[worst, 1:3], work[0][worst], work[3][worst]):
            continue
        a, b = table.names[ints[worst, 3]]
        raise ModelError(
            f"'{model.name}': '{a}' and '{b if b != 'world' else 'the ground'}' interpenetrate by {-phi[worst]:.3g} m "
            "at the first state; move them apart."
        )


def _approach(model: Model, q: FloatArray, poses: FloatArray, rows: Any, normal: FloatArray, point: FloatArray) -> bool:
    """Whether any joint moves two rows of the tree along a normal at a point of the world."""
    from leastaction.dynamics import entries

    # levers about the world would bring in its distance
    change, size = np.zeros(model.nv), np.full(model.nv, 1e-300)
    for row, sign in zip(rows, (1.0, -1.0), strict=True):
        if row > 0:
            R, p = poses[row, :9].reshape(3, 3), poses[row, 9:]
            J = np.zeros((1, 6, model.nv))
            entries.frame_jacobian(
                model.system, q[None], int(row), np.concatenate([np.eye(3).ravel(), R.T @ (point - p)]), J
            )
            change += sign * (normal @ J[0, 3:])
            size += np.linalg.norm(J[0, 3:], axis=0) + np.linalg.norm(J[0, :3], axis=0)
    return bool((np.abs(change) > _ALONG * size).any())


def failure_words(model: Model, touching: Any, status: int, row: int, iterations: int, fast: str) -> str | None:
    """Why a step was not taken, with the contact, limit or body that is to blame.

    Args:
        model: the mechanism.
        touching: what may touch in it, or None.
        status: of the kernel, not 0.
        row: of the kernel: of a body that turned too far; 1 + pair of the worst contact, or -1 - number of a bound.
        iterations: most iterations.
        fast: words for a body that turns fast, where neither contact nor bound is to blame.
    """
    where = fast
    if status == Status.NOT_CONVERGED and touching is not None and row > 0:
        a, b = touching.table.names[row - 1]
        where = f", worst at the contact of '{a}' and {'the ground' if b == WORLD else repr(b)}"
    if status == Status.NOT_CONVERGED and row < 0:
        where = f", worst at {bound_name(model, -1 - row)}"
    return failure_of(
        status, iterations=iterations, where=where, body=body_of_row(model, row),
        part="one step, where the discrete momentum has its maximum",
    )  # fmt: skip


def body_of_row(model: Model, row: int) -> str:
    """Name of the body on a row of the tree."""
    return next((name for name in model.row_names if model.places[name].row == row), "world")


def too_fast(model: Model, q: FloatArray, v: FloatArray, h: float, what: str = "one step") -> str:
    """Words for the body that turns fastest in a time h, where its discrete momentum may have no solution; or none."""
    from leastaction.dynamics import entries

    turns, frame = {}, np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    for name, place in model.places.items():
        if name in model.mechanism.bodies and place.row > 0:
            J = np.zeros((1, 6, model.nv))
            entries.frame_jacobian(model.system, q[None], place.row, frame, J)
            turns[name] = h * float(np.linalg.norm(J[0, :3] @ v))
    name = max(turns, key=lambda key: turns[key], default="")
    if not name or not turns[name] > _FAST:
        return ""
    return f": body '{name}' turns by {np.degrees(turns[name]):.0f} degrees in {what}, which may have no solution"
