"""What the contacts of a run did: gaps, forces, points and slip, row by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction import dynamics
from leastaction.errors import ModelError
from leastaction.methods.base import Clock, Method
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.model import Model


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts at the rows of a run.

    A row has the contacts of the step that begins there: their forces act at its configuration, gap and slip are those
    at the end of the step. Arrays are (rows, most); a row has ``count`` contacts, and beyond them ``pair`` is -1 and
    everything else zero.

    Attributes:
        model: the model that ran.
        q: coordinates (rows, nq) of the rows.
        names: the two bodies of each pair; "world" is the ground.
        count: number of contacts (rows,).
        pair: which of ``names`` a contact belongs to.
        gap: distance, metres.
        normal_force: newtons, along the normal from the second body to the first.
        force: (rows, most, 3) force on the first body, world axes, newtons: normal force and friction.
        point: (rows, most, 3) where the force acts, in the world, metres.
        slip: how far the two bodies slid over each other in the step, metres.
    """

    model: Model
    q: FloatArray
    names: tuple[tuple[str, str], ...]
    count: NDArray[np.int64]
    pair: NDArray[np.int64]
    gap: FloatArray
    normal_force: FloatArray
    force: FloatArray
    point: FloatArray
    slip: FloatArray

    @property
    def friction(self) -> FloatArray:
        """Size of the friction force (rows, most), newtons."""
        squares = (self.force**2).sum(axis=2) - self.normal_force**2
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def wrench(self, body: str) -> FloatArray:
        """Torque about the link origin and force (rows, 6) of all contacts on a body, world axes."""
        if body not in self.model.mechanism.bodies:
            raise ModelError(f"there is no body '{body}'.")
        origin = dynamics.frame_poses(self.model, self.q, [body])[:, 0, :3, 3]
        out = np.zeros((len(self.count), 6))
        for k, names in enumerate(self.names):
            if body in names:
                sign = 1.0 if names[0] == body else -1.0
                here = (self.pair == k)[..., None]
                push = sign * np.where(here, self.force, 0.0)
                out[:, 3:] += push.sum(axis=1)
                out[:, :3] += np.cross(self.point - origin[:, None], push).sum(axis=1)
        return out

    def __repr__(self) -> str:
        pairs = ", ".join(f"{a}-{'ground' if b == WORLD else b}" for a, b in self.names[:6])
        more = ", ..." if len(self.names) > 6 else ""
        return f"Contacts({len(self.count)} rows, at most {self.pair.shape[1]} contacts; {pairs}{more})"


def contacts_of(
    model: Model,
    method: Method,
    clock: Clock,
    numbers: NDArray[np.int64],
    t: FloatArray,
    q: FloatArray,
    v: FloatArray,
    tau: FloatArray,
) -> Contacts:
    """The contacts at rows of states; (q, v) of a row begins the same step that the run took.

    Where the next row is the end of that step, it is looked for there: a step in which bodies strike may have more than
    one solution.
    """
    names = method.contact_pairs(model)
    found = [np.zeros((0, 12))] * len(q)
    if names:
        last = len(numbers) - 1
        for i, k in enumerate(numbers.tolist()):
            # the last row has no step of its own; it gets one as long as the step before
            dt = clock.length(k if i < last or clock.uniform else k - 1)
            end = q[i + 1] if i < last and int(numbers[i + 1]) == k + 1 else None
            found[i] = method.contacts(model, model.state(q[i], v[i], float(t[i])), tau[i], dt, end)
    count = np.array([len(rows) for rows in found], dtype=np.int64)
    table = np.zeros((len(q), int(count.max(initial=0)), 12))
    for i, rows in enumerate(found):
        table[i, : len(rows)] = rows
    used = np.arange(table.shape[1]) < count[:, None]
    pair = np.where(used, table[..., 0], -1).astype(np.int64)
    # a contact may have been found from the second body's side
    first = np.array([model.places[a].row if a != WORLD else 0 for a, _ in names] + [0])
    table[..., 4:7] *= np.where(first[pair] == table[..., 11], 1.0, -1.0)[..., None]
    return Contacts(
        model, q, names, count, pair, table[..., 2], table[..., 3], table[..., 4:7], table[..., 7:10], table[..., 10]
    )
