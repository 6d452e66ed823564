"""States that ``Maximal`` cannot start from or go on from, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.methods.maximal_bounds import check_bounds
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model

# Bodies of a first state that interpenetrate by more than this, in metres, are refused. Those of a run may by less:
# features of round bodies are frozen during a step.
_DEEP = 1e-6

# A step in which a body turns by this angle, in radians, may have no solution: the momentum of a step goes by its sine.
_FAST = 1.0


def check_apart(model: Model, touching: Any, x: FloatArray) -> None:
    """Raise ModelError, by name, where a first state interpenetrates or breaks an enforced limit or inequality."""
    from leastaction.kernels import bodywise_step, contact_features, contact_gap

    table = touching.table
    poses = np.zeros((len(model.system.tree.rows), 12))
    bodywise_step.row_poses(model.system.tree, x, poses)
    check_bounds(model, x, poses)
    ints, floats = np.zeros((table.capacity, 4), dtype=np.int64), np.zeros((table.capacity, 24))
    n = contact_features.find_contacts(table.contacts, poses, 0.0, ints, floats)
    phi, work = np.zeros(n), [np.zeros((n, w)) for w in (3, 6, 6, 3, 3)]
    contact_gap.gaps(ints, floats, n, poses, phi, *work)
    if n and phi.min() < -_DEEP:
        worst = int(phi.argmin())
        a, b = table.names[ints[worst, 3]]
        raise ModelError(
            f"'{model.name}': '{a}' and '{b if b != 'world' else 'the ground'}' interpenetrate by {-phi[worst]:.3g} m "
            "at the first state; move them apart."
        )


def too_fast(model: Model, q: FloatArray, v: FloatArray, h: float) -> str:
    """Words for the body that turns fastest, where its discrete momentum may have no solution; or none."""
    from leastaction.kernels import entries

    turns, frame = {}, np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    for name, place in model.places.items():
        if name in model.mechanism.bodies and place.row > 0:
            J = np.zeros((1, 6, model.nv))
            entries.frame_jacobian(model.system, q[None], place.row, frame, J)
            turns[name] = h * float(np.linalg.norm(J[0, :3] @ v))
    name = max(turns, key=lambda key: turns[key], default="")
    if not name or not turns[name] > _FAST:
        return ""
    return f": body '{name}' turns by {np.degrees(turns[name]):.0f} degrees in one step, which may have no solution"
