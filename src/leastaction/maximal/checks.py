"""States that ``Maximal`` cannot start from or go on from, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import leastaction.contact.layout as cl
from leastaction.errors import ModelError, UnsupportedError
from leastaction.jit.status import Status
from leastaction.maximal.limits import bound_name, check_bounds
from leastaction.methods.failures import failure_of
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.model import Model

# A run notes bodies of its first state that interpenetrate by more than this, in metres. A state that a run has left,
# as a cylinder that rolls 2e-6 m deep, may begin another one.
_DEEP = 1e-4

# Bodies come apart with this speed, in m/s, or, where they are so deep that it would take longer than this time, in
# seconds, in that time. Then the speed is not that of a state within the run, and there is no derivative.
RISE, _RISE_TIME = 0.02, 0.45
_RUN_DEEP = RISE * _RISE_TIME

# Depth from which what has no size of its own, as points on a body, is refused, in metres.
_POINTS_DEEP = 0.05

# Bounds of a state within a run may be violated by this, in their own unit.
_RUN_BEYOND = 1e-6

# A step in which a body turns by this angle, in radians, may have no solution: the momentum of a step goes by its sine.
_FAST = 1.0


# Motion of two bodies along the normal of their contact, over that of a joint, below which no joint moves along it; as
# ``maximal.contact.ALONG``.
_ALONG = 1e-5


@dataclass(frozen=True)
class Overlap:
    """Two bodies that interpenetrate: their names, their depth in metres, and pair of the table."""

    a: str
    b: str
    depth: float
    pair: int

    @property
    def words(self) -> str:
        """Which bodies, and how deep."""
        ground = "the ground" if self.b == WORLD else repr(self.b)
        return f"'{self.a}' and {ground} interpenetrate by {self.depth:.3g} m at the first state"


def check_apart(model: Model, touching: Any, q: FloatArray, x: FloatArray, within: bool = False) -> None:
    """Raise, by name, where a first state breaks an enforced limit or inequality, or cannot be taken apart by a run.

    Args:
        model: the mechanism.
        touching: what may touch in it.
        q: coordinates.
        x: coordinates of the rows.
        within: whether the state may be one of a run, as where steps of it are differentiated.
    """
    from leastaction.maximal import step as maximal_step

    poses = np.zeros((len(model.system.tree.rows), 12))
    maximal_step.row_poses(model.system.tree, x, poses)
    check_bounds(model, x, poses, *((_RUN_BEYOND,) if within else ()))
    contacts = touching.table.contacts
    for found in overlaps(model, touching, q, x):
        sizes = [(_size(contacts, s), s) for s in contacts.pairs[found.pair, :2]]
        (most, what), shape = min(sizes, key=lambda size: size[0][0])
        if found.depth > most:
            body = (found.a, found.b)[0 if shape == contacts.pairs[found.pair, 0] else 1]
            raise ModelError(
                f"'{model.name}': {found.words}, deeper than {what} of '{body}', {most:.3g} m; move them apart."
            )
        if within and found.depth > _RUN_DEEP:
            raise UnsupportedError(
                f"'{model.name}': {found.words}; a step from there has a derivative up to {_RUN_DEEP:.3g} m only. "
                "Simulate until they are apart, and differentiate from there."
            )


def recovery_speed(model: Model, touching: Any, q: FloatArray, x: FloatArray) -> float:
    """Speed, in m/s, with which contacts of a run from this state may open while they are deep."""
    return max(RISE, max((found.depth for found in overlaps(model, touching, q, x)), default=0.0) / _RISE_TIME)


def overlap_notes(model: Model, touching: Any, q: FloatArray, x: FloatArray) -> tuple[str, ...]:
    """Words for each pair of bodies that interpenetrates at a first state."""
    # the worst of each two bodies
    worst = {(found.a, found.b): found for found in reversed(overlaps(model, touching, q, x))}
    return tuple(f"{found.words}; they come apart slowly" for found in worst.values())


def _size(contacts: Any, shape: int) -> tuple[float, str]:
    """How deep something may be in a shape, metres, and what of it that is."""
    code, size = int(contacts.shapes[shape, cl.CODE]), contacts.frames[shape, cl.SIZE : cl.SIZE + 3]
    if code in (cl.HALF_SPACE, cl.HEIGHTS):
        return np.inf, "the ground"
    if code == cl.HULL and contacts.hulls is not None:
        # how far its nearest face is from its middle
        first, count = contacts.hulls.spans[contacts.shapes[shape, cl.COUNT_Y], :2]
        planes = contacts.hulls.planes[first : first + count]
        middle = contacts.frames[shape, cl.PLACE : cl.PLACE + 3]
        return float((planes[:, 3] - planes[:, :3] @ middle).min()), "half the thickness of the mesh"
    if code in (cl.POINT_SET, cl.HULL):
        return max(_POINTS_DEEP, float(contacts.frames[shape, cl.REACH])), "the extent of the points"
    if code in (cl.SPHERE, cl.CAPSULE):
        return float(size[0]), f"the radius of the {'sphere' if code == cl.SPHERE else 'capsule'}"
    if code == cl.CYLINDER:
        return float(size[:2].min()), "the smaller of radius and half the length of the cylinder"
    return float(size.min()), f"the smallest half side of the {'box' if code == cl.BOX else 'ellipsoid'}"


def overlaps(model: Model, touching: Any, q: FloatArray, x: FloatArray) -> list[Overlap]:
    """Pairs that interpenetrate by more than 0.1 mm, the deepest contact of each, the worst one first.

    Bodies whose joints do not move along the normal of a contact do not count: it has no force.
    """
    from leastaction.contact import features as contact_features
    from leastaction.contact import gap as contact_gap
    from leastaction.maximal import step as maximal_step

    table = touching.table
    poses = np.zeros((len(model.system.tree.rows), 12))
    maximal_step.row_poses(model.system.tree, x, poses)
    rows = table.room
    while True:
        ints, floats = np.zeros((rows, 4), dtype=np.int64), np.zeros((rows, 24))
        n = contact_features.find_contacts(table.contacts, poses, 0.0, ints, floats)
        if n <= rows:
            break
        rows *= 2
    phi, work = np.zeros(n), [np.zeros((n, w)) for w in (3, 6, 6, 3, 3)]
    contact_gap.contact_gaps(ints, floats, n, poses, phi, *work)
    found: dict[int, Overlap] = {}
    for worst in np.argsort(phi):
        if phi[worst] >= -_DEEP:
            break
        pair = int(ints[worst, 3])
        if pair not in found and _approach(model, q, poses, ints[worst, 1:3], work[0][worst], work[3][worst]):
            a, b = table.names[pair]
            found[pair] = Overlap(a, b, -float(phi[worst]), pair)
    return list(found.values())


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
