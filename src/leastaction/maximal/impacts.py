"""Impacts with restitution: located inside a step, solved as a jump of the velocity.

A step of a contact method is plastic: what touches stays. Where a pair with restitution e closes faster than the rest
speed, the step is cut at the touch. There the velocity jumps by impulses at all points that touch (Moreau 1988),

    M (v+ - v-) = J^T Lambda        Lambda_n >= 0,  u_n+ + e u_n- >= 0,  Lambda_n (u_n+ + e u_n-) = 0
                                    |Lambda_t| <= mu Lambda_n,  against the slip after the impact

with u = J v the velocity of the touching points, and the rest of the step begins with v+. Newton's law holds at every
point by itself, so points that touch at once are struck at once. Slower pairs, and what follows on too many impacts in
one step, are plastic: that is how bouncing ends. Loops and constraints stay closed: the jump obeys G v+ = G v-.
Limits and inequalities that are closed at the touch take part without friction and with e = 0, as rows B of their
rates: Lambda >= 0, B v+ >= 0, one of them zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leastaction.contact.layout import CONTACT_COLUMNS, TOUCH_LEAST, TOUCH_SHARE
from leastaction.methods.base import Memory
from leastaction.methods.closing import row_count, row_sizes
from leastaction.model.checks import FloatArray
from leastaction.model.contacts import ContactTable
from leastaction.model.model import Model, State

Advance = Callable[[Memory, float, float, bool], tuple[str | None, FloatArray]]
"""Take one plastic step: (memory, t, h, whether contacts act at its end) -> why it failed, its contacts (n, 13)."""

Bounds = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Limits and inequalities at coordinates q: gaps (m,) and the rows (m, nv) of their rates."""

_MOST_TRIALS, _MOST_IMPACTS = 60, 16
_SWEEPS, _SAME = 2000, 1e-14

# A bound that nothing presses is pushed open by its barrier: s'' = w kappa / s, so s' grows to sqrt(2 w kappa ln s/s0),
# with a logarithm of 14 from where it was held to a tenth of a millimetre. It counts as closed within a second of that.
_DRIFT = 28.0


@dataclass
class Touch:
    """Contacts of a step, frozen, at one configuration.

    Attributes:
        pair: row of the table of pairs for each contact (n,).
        gap: metres (n,).
        J: Jacobian (n, 3, nv) of the relative velocity: along the normal, then along two tangents.
    """

    pair: Any
    gap: FloatArray
    J: FloatArray


def touch_at(model: Model, memory: Memory, q: FloatArray) -> Touch:
    """The contacts frozen in a memory, at coordinates q."""
    from leastaction.contact import gap as contact_gap
    from leastaction.dynamics import entries, legendre
    from leastaction.maximal import step as maximal_step

    # gaps, normals and points
    n = int(memory["known"][1])
    ints, floats = memory["contacts"], memory["features"]
    P = np.zeros((len(model.system.tree.rows), 12))
    x, u, p = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
    legendre.enter_momenta(model.system, q.copy(), u.copy(), x, u, p)
    maximal_step.row_poses(model.system.tree, x, P)
    gap, normal, point_a, point_b = np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    contact_gap.contact_gaps(ints, floats, n, P, gap, normal, np.zeros((n, 6)), np.zeros((n, 6)), point_a, point_b)

    # velocities of the two points, first minus second, along normal and tangents
    J = np.zeros((n, 3, model.nv))
    for k in range(n):
        relative = np.zeros((3, model.nv))
        for row, point, sign in ((ints[k, 1], point_a[k], 1.0), (ints[k, 2], point_b[k], -1.0)):
            if row > 0:
                frame, out = np.concatenate([np.eye(3).ravel(), np.zeros(3)]), np.zeros((1, 6, model.nv))
                frame[9:] = P[row, :9].reshape(3, 3).T @ (point - P[row, 9:])
                entries.frame_jacobian(model.system, q[None], int(row), frame, out)
                relative += sign * out[0, 3:]
        first = np.cross(normal[k], np.eye(3)[np.abs(normal[k]).argmin()])
        first /= np.linalg.norm(first)
        J[k] = np.array([normal[k], first, np.cross(normal[k], first)]) @ relative
    return Touch(ints[:n, 3].copy(), gap, J)


def free_inverse(model: Model, t: float, q: FloatArray) -> FloatArray:
    """The map (nv, nv) from generalised impulses to jumps of v that loops and constraints let through."""
    from leastaction.dynamics import entries, legendre

    M = np.zeros((1, model.nv, model.nv))
    entries.mass_matrices(model.system, q[None], M)
    inverse = np.linalg.inv(M[0])
    m = row_count(model)
    if m == 0:
        return inverse
    # rows of the constraints, from the rates at unit velocities
    G = np.zeros((m, model.nv))
    rest = np.zeros(m)
    for column in range(-1, model.nv):
        v = np.zeros(model.nv)
        v[column] = float(column >= 0)
        x, u, p, gap, rate = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv), np.zeros(m), np.zeros(m)
        legendre.enter_momenta(model.system, q.copy(), v, x, u, p)
        legendre.gaps_and_rates(model.system, t, x, u, gap, rate)
        if column < 0:
            rest = rate
        else:
            G[:, column] = rate - rest
    G /= np.sqrt(row_sizes(model, t, x, u)[:, 2:])
    held = inverse @ G.T
    return np.asarray(inverse - held @ np.linalg.pinv(G @ held, rcond=1e-10, hermitian=True) @ held.T)


def strike(inverse: FloatArray, J: FloatArray, v: FloatArray, e: FloatArray, mu: FloatArray) -> FloatArray:
    """v+ after an impact at the points of J (n, 3, nv), by Gauss-Seidel over the points.

    Args:
        inverse: impulses to jumps of v (nv, nv).
        J: Jacobians of the touching points.
        v: v- (nv,).
        e: restitution of each point (n,), zero where it only rests.
        mu: friction coefficient of each point (n,).
    """
    from leastaction.contact.impact import impulses

    n = len(J)
    rows = J.reshape(3 * n, -1)
    W = rows @ inverse @ rows.T
    u = rows @ v
    # what each point aims at: u_n+ = -e u_n-
    u[0::3] += e * np.minimum(u[0::3], 0.0)
    impulse, size = np.zeros(3 * n), max(float(np.abs(u).max(initial=0.0)), 1e-300)
    impulses(W, u, np.ascontiguousarray(mu), _SWEEPS, _SAME * size, impulse)
    return np.asarray(v + inverse @ rows.T @ impulse)


def held_rows(inverse: FloatArray, gap: FloatArray, rows: FloatArray, barrier: float) -> FloatArray:
    """Rows (k, 3, nv) of the bounds that are closed, as points without tangents.

    Args:
        inverse: impulses to jumps of v (nv, nv).
        gap: of all limits and inequalities (m,), each in its own unit.
        rows: their rates (m, nv).
        barrier: product of gap and force that the solver leaves, joules.
    """
    w = np.einsum("mi,ij,mj->m", rows, inverse, rows)
    near = gap <= np.maximum(TOUCH_LEAST, np.sqrt(_DRIFT * barrier * np.maximum(w, 0.0)))
    out = np.zeros((int(near.sum()), 3, rows.shape[1]))
    out[:, 0] = rows[near]
    return out


def step_with_impacts(
    model: Model,
    table: ContactTable,
    bounds: Bounds,
    barrier: float,
    start: Callable[[State], Memory],
    state: Callable[[Memory], tuple[FloatArray, FloatArray]],
    advance: Advance,
    memory: Memory,
    t: float,
    h: float,
    rest_speed: float,
) -> tuple[str | None, Memory, int, list[tuple[float, FloatArray]]]:
    """One step from a memory: why it failed, the memory at its end, number of impacts, contacts of its pieces.

    A piece between impacts has its length and its contacts (n, 13).

    ``bounds``: limits and inequalities, which an impact closes too; ``barrier``: as in ``held_rows``.
    """
    end, impacts, pieces = t + h, 0, list[tuple[float, FloatArray]]()
    e, mu = table.contacts.numbers[:, 1], table.contacts.numbers[:, 0]
    while True:
        left = end - t
        trial = _copy(memory)
        failure, found = advance(trial, t, left, True)
        if failure is not None:
            return failure, memory, impacts, pieces
        q, v = state(memory)
        here = touch_at(model, trial, q)
        bounce = bouncing(here, found, v, e, rest_speed, left)
        if not bounce.any() or impacts == _MOST_IMPACTS:
            return None, trial, impacts, [*pieces, (left, found)]

        # up to the touch
        failure, part, at, q, v, found = _locate(model, state, advance, memory, trial, here, bounce, q, v, t, left)
        if failure is not None:
            return failure, memory, impacts, pieces
        pieces.append((part, found))

        # the jump, at everything that touches and at every bound that is closed
        speed = -np.einsum("knv,v->kn", at.J, v)[:, 0]
        near = (at.gap <= 2.0 * _tolerance(left, speed)) | bounce
        lively = np.where(speed > rest_speed, e[at.pair], 0.0)
        inverse = free_inverse(model, t + part, q)
        held = held_rows(inverse, *bounds(q), barrier)
        none = np.zeros(len(held))
        J, bounce_by = np.concatenate([at.J[near], held]), np.concatenate([lively[near], none])
        v = strike(inverse, J, v, bounce_by, np.concatenate([mu[at.pair[near]], none]))
        memory = start(State(t + part, q, v))
        impacts += 1
        t += part
        if end - t <= 1e-9 * h:
            return None, memory, impacts, pieces


def bouncing(
    here: Touch, found: FloatArray, v: FloatArray, e: FloatArray, rest_speed: float, left: float
) -> NDArray[np.bool_]:
    """Which contacts of a step (n,) strike in it: closed by its end, with restitution, and faster than they may rest.

    A contact that touches already is at rest unless it closes.
    """
    if len(here.pair) == 0:
        return np.zeros(0, dtype=bool)
    speed = -(here.J[:, 0] @ v)
    # a force that the barrier leaves far from a touch is none
    pushed = (found[:, 2] <= _tolerance(left, speed)) & (found[:, 3] > 0.0)
    # speed with which the gap closes on average, where it was open
    closing = np.where(here.gap > _tolerance(left, speed), np.maximum(speed, here.gap / left), speed)
    return np.asarray(pushed & (e[here.pair] > 0.0) & (closing > rest_speed))


def _tolerance(length: float, speed: Any) -> Any:
    """How near counts as touching, metres."""
    return np.maximum(TOUCH_LEAST, TOUCH_SHARE * length * np.abs(speed))


def _locate(
    model: Model, state: Any, advance: Advance, memory: Memory, frozen: Memory, here: Touch,
    bounce: NDArray[np.bool_], q: FloatArray, v: FloatArray, t: float, left: float,
) -> tuple[str | None, float, Touch, FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Time into the step at which the first of the striking contacts touches, with what touches, q and v there.

    Besides, the contacts up to there.
    """
    low, high, part, seen = 0.0, left, 0.0, np.zeros((0, CONTACT_COLUMNS))
    for _ in range(_MOST_TRIALS):
        # Newton's step towards half of the tolerance, on the gap that closes first; kept between open and closed
        speed = -(here.J[bounce, 0] @ v)
        tolerance = _tolerance(left, speed)
        near = here.gap[bounce] <= tolerance
        if near.any():
            break
        away = here.gap[bounce] - 0.5 * tolerance
        ahead = part + float(np.min(np.where(speed > 0.0, away / np.maximum(speed, 1e-300), np.inf)))
        ahead = ahead if low < ahead < high else 0.5 * (low + high)
        now = _copy(memory)
        # the velocity before the touch
        failure, found = advance(now, t, ahead, False)
        if failure is not None:
            return failure, part, here, q, v, seen
        q1, v1 = state(now)
        then = touch_at(model, frozen, q1)
        # beyond the touch only the force of the contact keeps the points apart
        if (then.gap[bounce] < 0.1 * _tolerance(left, then.J[bounce, 0] @ v1)).any():
            high = ahead
        else:
            low, part, here, q, v, seen = ahead, ahead, then, q1, v1, found
        if high - low <= 1e-12 * left:
            break
    return None, part, here, q, v, seen


def _copy(memory: Memory) -> Memory:
    """A memory that a trial may change."""
    return {name: array.copy() for name, array in memory.items()}
