"""What one step of ``MaximalEuler`` consists of: bodies, joint rows, forces, contacts.

E, phi   poses (nb, 4, 4) at the centres of mass, and twists (nb, 6) in body axes
G, C, T  rows on all twists: equalities G phi = b, inequalities C phi >= c, tangents of contacts T
R        rows (nv, 6 nb): rates of the joints from the twists of the two bodies that each of them joins
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.model.checks import FloatArray
from leastaction.model.contacts import ContactTable, contact_table
from leastaction.model.joints import layout
from leastaction.model.maximal import Bodies, maximal_bodies
from leastaction.model.model import Model
from leastaction.tree import layout as kl


@dataclass
class Rows:
    """Rows of a block matrix while they are being written, with their right-hand sides and words for messages."""

    bodies: int
    parts: list[tuple[int, int, FloatArray]] = field(default_factory=list)
    rhs: list[float] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def add(self, blocks: Sequence[tuple[int | None, FloatArray]], rhs: FloatArray, name: str) -> None:
        """Append rows: a block (k, 6) for each body, None for the world; rhs (k,)."""
        start = len(self.rhs)
        self.parts += [(start, body, block) for body, block in blocks if body is not None]
        self.rhs += rhs.tolist()
        self.names += [name] * len(rhs)

    def matrix(self) -> FloatArray:
        """The rows as a matrix (rows, 6 bodies)."""
        out = np.zeros((len(self.rhs), 6 * self.bodies))
        for start, b, block in self.parts:
            out[start : start + len(block), 6 * b : 6 * b + 6] += block
        return out

    @property
    def values(self) -> FloatArray:
        """Right-hand sides (rows,)."""
        return np.array(self.rhs)


@dataclass(frozen=True, eq=False)
class Limb:
    """A body with what joins it to the body before it: its rates (their places in v) and the joints' names."""

    parent: int | None
    rates: list[int]
    joints: str


@dataclass(frozen=True, eq=False)
class Limit:
    """An enforced bound of one coordinate: sign (q - bound) >= 0."""

    q: int
    v: int
    sign: float
    bound: float
    joint: str


@dataclass(frozen=True, eq=False)
class Plan:
    """What does not change from step to step.

    Attributes:
        bodies: frames at the centres of mass, and inertias.
        limbs: how each body hangs on the one before it.
        number: body of each row of the tree that has one.
        armature: rotor inertias (nv,).
        friction: dry friction of the joints (nv,), N or N m.
        effort: largest control (nv,).
        limits: enforced bounds.
        contacts: what may touch, or None.
        reach: largest distance of a shape from its row, metres.
    """

    bodies: Bodies
    limbs: tuple[Limb, ...]
    number: dict[int, int]
    armature: FloatArray
    friction: FloatArray
    effort: FloatArray
    limits: tuple[Limit, ...]
    contacts: ContactTable | None
    reach: float


@lru_cache(maxsize=64)
def plan_of(model: Model) -> Plan:
    """The plan of a model; refuses what is attached to bodies without mass."""
    bodies = maximal_bodies(model, True)
    number = {int(row): b for b, row in enumerate(bodies.rows)}
    limbs = tuple(_limb(model, number, int(row)) for row in bodies.rows)
    carried = {rate for limb in limbs for rate in limb.rates}
    for view in model.joints.values():
        if not set(range(view.v.start, view.v.stop)) <= carried:
            raise UnsupportedError(
                f"'{model.name}': joint '{view.name}' carries no mass, which maximal-euler cannot move; give body "
                f"'{view.joint.child}' a mass, or lock the joint."
            )
    for limb in limbs:
        if len(limb.rates) > 6:
            raise UnsupportedError(
                f"'{model.name}': joint {limb.joints} has {len(limb.rates)} coordinates between two bodies with mass, "
                "and the poses of the bodies cannot tell them apart; give the bodies between a mass."
            )
    # forces, loops, constraints and contacts must act on bodies with mass
    m = model.mechanism
    touched = [(force.label, name) for force in m.forces for name in force.bodies]
    touched += [(each.label, name) for each in m.constraints for name in each.bodies]
    for loop in model.loop_names:
        joint = model.split.joints[loop]
        touched += [(f"loop joint '{loop}'", name) for name in (joint.parent, joint.child)]
    for what, name in touched:
        row = model.place(name).row
        if row > 0 and row not in number:
            raise UnsupportedError(f"'{model.name}': {what} acts on '{name}', which has no mass; give it one.")
    views = list(model.joints.values())
    table = contact_table(m, model.places) if "contact" in model.features else None
    reach = 0.0
    if table is not None:
        sizes = table.contacts.frames
        finite = np.isfinite(sizes[:, 15])
        reach = float((np.linalg.norm(sizes[:, 9:12], axis=1) + sizes[:, 15])[finite].max(initial=0.0))
    effort = np.full(model.nv, np.inf)
    if m.limits_enforced:
        effort = np.concatenate([np.zeros(0), *(view.joint.effort for view in views)])
    return Plan(
        bodies=bodies,
        limbs=limbs,
        number=number,
        armature=np.concatenate([np.zeros(0), *(view.joint.armature for view in views)]),
        friction=np.concatenate([np.zeros(0), *(view.joint.friction_values for view in views)]),
        effort=effort,
        limits=_limits(model),
        contacts=table,
        reach=reach,
    )


def _limb(model: Model, number: dict[int, int], row: int) -> Limb:
    """Rates between the body on a row and the body before it."""
    tree, order = model.system.tree, model.system.coordinates.v
    rates: list[int] = []
    while row > 0:
        count = 3 if tree.rows[row, kl.KIND] == kl.BALL else 1
        first = int(tree.rows[row, kl.IU])
        rates += [int(order[d]) for d in range(first, first + count)]
        row = int(tree.rows[row, kl.PARENT])
        if row in number:
            break
    names = [view.name for view in model.joints.values() if view.v.start in rates]
    return Limb(number.get(row), sorted(rates), " and ".join(f"'{name}'" for name in names))


def _limits(model: Model) -> tuple[Limit, ...]:
    """Enforced bounds of all screw coordinates."""
    out = []
    for view in model.joints.values() if model.mechanism.limits_enforced else ():
        for piece in layout(view.joint):
            for sign, bound in zip((1.0, -1.0), view.joint.limits[piece.limit].ravel(), strict=True):
                if np.isfinite(bound) and piece.factor == "ball":
                    raise UnsupportedError(
                        f"joint '{view.name}': the limit of a ball's angle is not enforced by maximal-euler; "
                        "mechanism.enforce_limits(False) makes the limits data again."
                    )
                if np.isfinite(bound):
                    q, v = view.q.start + piece.q.start, view.v.start + piece.v.start
                    out.append(Limit(q, v, sign, float(bound), view.name))
    return tuple(out)


@lru_cache(maxsize=64)
def mobility(plan: Plan) -> FloatArray:
    """About the inverse inertias (nb, 6, 6): rods and points have some inertia about every axis here."""
    M = plan.bodies.inertia
    return np.asarray(np.linalg.inv(M + 1e-4 * M[:, 3, 3, None, None] * np.eye(6)) if len(M) else M)


def inverse(E: FloatArray) -> FloatArray:
    """Inverse of poses (..., 4, 4)."""
    out = np.zeros_like(E)
    R = np.swapaxes(E[..., :3, :3], -1, -2)
    out[..., :3, :3], out[..., 3, 3] = R, 1.0
    out[..., :3, 3] = -(R @ E[..., :3, 3, None])[..., 0]
    return out


def adjoint(E: FloatArray) -> FloatArray:
    """Ad (6, 6) of a pose (1.14)."""
    out, R, (x, y, z) = np.zeros((6, 6)), E[:3, :3], E[:3, 3]
    out[:3, :3] = out[3:, 3:] = R
    out[3:, :3] = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]) @ R
    return out


# --- the parts of a step ---------------------------------------------------------------------------------------------
def joint_axes(model: Model, plan: Plan, q: FloatArray) -> FloatArray:
    """Jacobians (nb, 6, nv) of the bodies at q, in body axes at their centres of mass."""
    from leastaction.dynamics import redmax_jacobian

    J, rate = np.zeros((len(plan.limbs), 6, model.nv)), np.zeros((len(plan.limbs), 6, model.nv))
    redmax_jacobian.jacobians(
        model.system, plan.bodies.carrier, q, np.zeros(model.nv), plan.bodies.rows, plan.bodies.frames, J, rate
    )
    return J


def body_poses(model: Model, plan: Plan, q: FloatArray) -> FloatArray:
    """Poses (nb, 4, 4) at q."""
    from leastaction.dynamics import entries

    out = np.zeros((1, len(plan.limbs), 4, 4))
    entries.frame_poses(model.system, q[None], plan.bodies.rows, plan.bodies.frames, out)
    return np.asarray(out[0])


def joint_rows(
    plan: Plan, E: FloatArray, J: FloatArray, nv: int, drift: FloatArray | None, gain: float
) -> tuple[Rows, Rows]:
    """Equalities of the tree's joints (1.84), and the rows R of their rates, one by one in the order of v.

    Whatever a joint lets move spans S (6, k); the equalities are what is perpendicular to it. With a gain (1/s) they
    have the right-hand side -gain times the opening of the joint, from ``drift`` (nb, 6) of the bodies (1.97).
    """
    G, R = Rows(len(plan.limbs)), Rows(len(plan.limbs))
    rates: list[tuple[int, list[tuple[int | None, FloatArray]]]] = []
    for b, limb in enumerate(plan.limbs):
        S = J[b][:, limb.rates]
        # twist of the body before it, seen from this body
        X = -adjoint(inverse(E[b]) @ E[limb.parent]) if limb.parent is not None else np.zeros((6, 6))
        U, size, Vt = np.linalg.svd(S)
        k = int((size > 1e-9 * max(size[0], 1e-300)).sum())
        N, S_inverse = U[:, k:].T, (Vt[:k].T / size[:k]) @ U[:, :k].T
        opening = np.zeros(len(N))
        if drift is not None and len(N):
            before = drift[limb.parent] if limb.parent is not None else np.zeros(6)
            opening = N @ (drift[b] + X @ before)
        if len(N):
            G.add([(b, N), (limb.parent, N @ X)], -gain * opening, f"joint {limb.joints}")
        for i, rate in enumerate(limb.rates):
            rates.append((rate, [(b, S_inverse[i : i + 1]), (limb.parent, S_inverse[i : i + 1] @ X)]))
    # in the order of v
    for _, blocks in sorted(rates, key=lambda each: each[0]):
        R.add(blocks, np.zeros(1), "")
    return G, R


def body_forces(model: Model, plan: Plan, t: float, E: FloatArray, phi: FloatArray, P: FloatArray) -> FloatArray:
    """Wrenches (nb, 6) of gravity, of the Coriolis force ad(phi)^T M phi and of the forces of the mechanism."""
    M = plan.bodies.inertia
    momentum = np.einsum("bij,bj->bi", M, phi)
    w, v, L, p = phi[:, :3], phi[:, 3:], momentum[:, :3], momentum[:, 3:]
    out = np.hstack([np.cross(L, w) + np.cross(p, v), np.cross(p, w)])
    out[:, 3:] += np.einsum("bji,j->bi", E[:, :3, :3], model.system.tree.gravity) * M[:, 3, 3, None]
    if model.mechanism.forces:
        from leastaction.dynamics import redmax_solve

        maps = [adjoint(pose) for pose in E]
        V, F = np.zeros((len(P), 12)), np.zeros((len(P), 6))
        V[plan.bodies.rows, :6] = [A @ twist for A, twist in zip(maps, phi, strict=True)]
        redmax_solve.row_forces(model.system, t, P, V, F)
        # the rows' forces are those that they need, about the world's origin
        out -= np.array([A.T @ F[row] for A, row in zip(maps, plan.bodies.rows, strict=True)])
    return out


@lru_cache(maxsize=1024)
def attach(model: Model, plan: Plan, name: str) -> tuple[int | None, FloatArray, FloatArray]:
    """Body that carries a link or frame (None: the world), its pose in that body's frame, and Ad of the way back."""
    place = model.place(name)
    b = plan.number.get(place.row)
    if b is None:
        return None, place.pose, np.zeros((6, 6))
    at = np.eye(4)
    at[:3, :3], at[:3, 3] = plan.bodies.frames[b, :9].reshape(3, 3), plan.bodies.frames[b, 9:]
    offset = inverse(at) @ place.pose
    return b, offset, adjoint(inverse(offset))


def attached(owners: list[Any], E: FloatArray, phi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Poses (k, 4, 4) and twists (k, 6) of links."""
    poses = np.array([offset if b is None else E[b] @ offset for b, offset, _ in owners])
    twists = np.array([np.zeros(6) if b is None else X @ phi[b] for b, _, X in owners])
    return poses, twists


def row_poses(plan: Plan, rows: int, E: FloatArray) -> FloatArray:
    """Poses (rows, 12) of the rows that carry bodies, about the world's origin; the others are not used."""
    P = np.zeros((rows, 12))
    P[:, [0, 4, 8]] = 1.0
    for row, b in plan.number.items():
        at = plan.bodies.frames[b]
        R = E[b, :3, :3] @ at[:9].reshape(3, 3).T
        P[row, :9], P[row, 9:] = R.ravel(), E[b, :3, 3] - R @ at[9:]
    return P


def spatial_block(E: FloatArray, rows: FloatArray) -> FloatArray:
    """Rows (k, 6) on a spatial twist about the world's origin, as rows on the body's own twist."""
    return rows @ adjoint(E)


def loop_equalities(model: Model, plan: Plan, E: FloatArray, P: FloatArray, gain: float, G: Rows) -> None:
    """Append the rows of the joints that close loops."""
    from leastaction.dynamics import redmax_solve

    m = model.constraint_size
    if not m:
        return
    V, g, rows, bias = np.zeros((len(P), 12)), np.zeros(m), np.zeros((m, 6)), np.zeros(m)
    ends = np.zeros((m, 2), dtype=np.int64)
    redmax_solve.loop_table(model.system.loops, P, V, g, rows, bias, ends)
    for name, part in model.loop_rows.items():
        if part.stop > part.start:
            a, b = (plan.number.get(int(row)) for row in ends[part.start])
            blocks = [
                (body, sign * spatial_block(E[body], rows[part]))
                for body, sign in ((b, 1.0), (a, -1.0))
                if body is not None
            ]
            G.add(blocks, -gain * g[part], f"loop joint '{name}'")


def user_rows(
    model: Model, plan: Plan, E: FloatArray, phi: FloatArray, gain: float, h: float, G: Rows, C: Rows
) -> None:
    """Append the user's constraints: equality and velocity rows to G, inequality rows to C."""
    for constraint in model.mechanism.constraints:
        owners = [attach(model, plan, name) for name in constraint.bodies]
        at, twists = attached(owners, E, phi)
        given = twists if constraint.kind == "velocity" else None
        value, matrix = constraint.value(at, given), constraint.matrix(at, given)
        blocks = [(b, matrix[:, 6 * k : 6 * k + 6] @ X) for k, (b, _, X) in enumerate(owners)]
        if constraint.kind == "velocity":
            G.add(blocks, matrix @ twists.ravel() - value, constraint.label)
        elif constraint.kind == "equality":
            G.add(blocks, -gain * value, constraint.label)
        else:
            C.add(blocks, approach(value, gain, h), constraint.label)


def approach(gap: FloatArray, gain: float, h: float) -> FloatArray:
    """Smallest rate of a gap: an open one may close within the step, a negative one stays or is closed with a gain."""
    return np.where(gap > 0, -gap / h, -gain * gap)


@dataclass(frozen=True, eq=False)
class Touching:
    """Contacts of a step: pair, feature, gap (m), friction coefficient, normal, point, row of the first body."""

    pair: Any
    feature: FloatArray
    gap: FloatArray
    mu: FloatArray
    normal: FloatArray
    point: FloatArray
    row: Any


def contact_rows(
    model: Model, plan: Plan, E: FloatArray, phi: FloatArray, P: FloatArray, gain: float, h: float, C: Rows, T: Rows
) -> Touching | None:
    """Append normals (1.93) to C and two tangents for each contact to T."""
    from leastaction.contact import features as contact_features
    from leastaction.contact import gap as contact_gap

    if plan.contacts is None:
        return None
    table = plan.contacts
    # whatever may close within two steps
    speed = np.linalg.norm(phi[:, 3:], axis=1) + np.linalg.norm(phi[:, :3], axis=1) * plan.reach
    margin = 2 * h * (float(speed.max(initial=0.0)) + 2 * h * float(np.linalg.norm(model.system.tree.gravity))) + 1e-9
    ints, floats = np.zeros((table.capacity, 4), dtype=np.int64), np.zeros((table.capacity, 24))
    n = contact_features.find_contacts(table.contacts, P, margin, ints, floats)
    gap, (normal, ga, gb, ca, cb) = np.zeros(n), [np.zeros((n, w)) for w in (3, 6, 6, 3, 3)]
    contact_gap.contact_gaps(ints, floats, n, P, gap, normal, ga, gb, ca, cb)
    for k in range(n):
        a, b = (plan.number.get(int(row)) for row in ints[k, 1:3])
        name = contact_name(table.names[ints[k, 3]])
        C.add(
            [(i, spatial_block(E[i], g[None])) for i, g in ((a, ga[k]), (b, gb[k])) if i is not None],
            approach(gap[k : k + 1], gain, h), name,
        )  # fmt: skip
        t = tangents(normal[k])
        sides = ((a, ca[k], 1.0), (b, cb[k], -1.0))
        T.add(
            [(i, sign * spatial_block(E[i], np.hstack([np.cross(x, t), t]))) for i, x, sign in sides if i is not None],
            np.zeros(2), name,
        )  # fmt: skip
    mu = table.contacts.numbers[ints[:n, 3], 0]
    return Touching(ints[:n, 3], floats[:n, 23], gap, mu, normal, ca, ints[:n, 1])


def contact_name(names: tuple[str, str]) -> str:
    """Words for a contact."""
    a, b = (f"'{name}'" if name != "world" else "the ground" for name in names)
    return f"the contact of {a} and {b}"


def tangents(n: FloatArray) -> FloatArray:
    """Two unit vectors (2, 3) perpendicular to a unit vector and to each other."""
    t = np.eye(3)[int(np.abs(n).argmin())]
    t = t - (t @ n) * n
    t /= np.linalg.norm(t)
    return np.array([t, np.cross(n, t)])


def limit_rows(plan: Plan, q: FloatArray, R: FloatArray, gain: float, h: float, C: Rows) -> None:
    """Append enforced joint limits."""
    for limit in plan.limits:
        row = limit.sign * R[[limit.v]].reshape(1, -1, 6)
        blocks = [(b, row[:, b]) for b in np.flatnonzero(np.abs(row[0]).max(axis=1)).tolist()]
        gap = np.array([limit.sign * (q[limit.q] - limit.bound)])
        C.add(blocks, approach(gap, gain, h), f"the limit of joint '{limit.joint}'")
