"""What the contacts of a run did: gaps, forces, points and slip, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leastaction.contact.layout import CONTACT_COLUMNS
from leastaction.dynamics import quantities
from leastaction.errors import ModelError
from leastaction.jit.callbacks import take_pending
from leastaction.methods.base import Clock, Control, Memory, Method
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.model import Model


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts at the rows of a run.

    A row has the contacts of the step that begins there: forces are the means over that step, so that they account for
    the change of momentum in it, and points are those at its start; gap and slip are those at the end of the step.
    Arrays are (rows, most); a row has ``count`` contacts, and beyond them ``pair`` is -1 and everything else zero.

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
        friction: size of the friction force, newtons.
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
    friction: FloatArray

    def wrench(self, body: str) -> FloatArray:
        """Torque about the link origin and force (rows, 6) of all contacts on a body, world axes."""
        if body not in self.model.mechanism.bodies:
            raise ModelError(f"there is no body '{body}'.")
        origin = quantities.frame_poses(self.model, self.q, [body])[:, 0, :3, 3]
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
    steps: int,
    every: int,
    q: FloatArray,
    v: FloatArray,
    last: FloatArray,
    controls: Sequence[tuple[int, Control]],
) -> Contacts:
    """The contacts at the rows of a run, whose steps are taken once more.

    Args:
        model: the model that ran.
        method: the method that ran.
        clock: times of the run.
        steps: its steps.
        every: steps between its rows.
        q: its rows.
        v: its rows.
        last: generalised forces (nv,) at the last row, which has no step of its own.
        controls: of its parts, each behind the number of its first step.
    """
    names = method.contact_pairs(model)
    found = [np.zeros((0, CONTACT_COLUMNS))] * len(q)
    if names:
        memory = method.start(model, model.state(q[0], v[0], clock.at(0)))
        found = _again(model, method, clock, steps, every, q, memory, controls)
        # the last row gets a step as long as the one before
        if clock.uniform or steps > 0:
            dt = clock.length(steps if clock.uniform else steps - 1)
            found.append(method.contacts(model, model.state(q[-1], v[-1], clock.at(steps)), last, dt))
        else:
            found.append(np.zeros((0, CONTACT_COLUMNS)))
    count = np.array([len(rows) for rows in found], dtype=np.int64)
    table = np.zeros((len(q), int(count.max(initial=0)), CONTACT_COLUMNS))
    for i, rows in enumerate(found):
        table[i, : len(rows)] = rows
    used = np.arange(table.shape[1]) < count[:, None]
    pair = np.where(used, table[..., 0], -1).astype(np.int64)
    # a contact may have been found from the second body's side
    first = np.array([model.places[a].row if a != WORLD else 0 for a, _ in names] + [0])
    table[..., 4:7] *= np.where(first[pair] == table[..., 11], 1.0, -1.0)[..., None]
    return Contacts(
        model,
        q,
        names,
        count,
        pair,
        table[..., 2],
        table[..., 3],
        table[..., 4:7],
        table[..., 7:10],
        table[..., 10],
        table[..., 12],
    )


def _again(
    model: Model, method: Method, clock: Clock, steps: int, every: int, q: FloatArray, memory: Memory,
    controls: Sequence[tuple[int, Control]],
) -> list[FloatArray]:  # fmt: skip
    """Contacts of the steps of a run that begin at its rows; the memory is that of its start, and moves on."""
    found: list[FloatArray] = []
    ends = [first for first, _ in controls[1:]] + [steps]
    for (first, control), end in zip(controls, ends, strict=True):
        chunk, more = method.replay(model, memory, clock, first, end - first, every, control)
        found += more
        error = take_pending([*model.callbacks, *([control.callback] if control.callback else [])])
        if error is not None:
            raise error
        rows = q[first // every + 1 :][: len(chunk.q)]
        if chunk.failure is not None or not np.array_equal(chunk.q, rows):
            raise ModelError(
                "contacts: the run cannot be taken again, as its control gave other forces than before; a function of "
                "time and state alone, or an array, would give the same."
            )
    return found
