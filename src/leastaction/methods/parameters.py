"""Derivatives of variational steps by parameters of the mechanism: which constants change, and by how much.

The equations of a step are linear in masses, inertias, stiffnesses and dampings, and quadratic in the positions of the
joints, at fixed motion. A central difference over any distance is then their derivative, up to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leastaction.errors import UnsupportedError
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.joints import layout
from leastaction.model.model import Model
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import COM, INERTIA, MASS, POS

PARAMETERS = ("mass", "inertia", "placement", "stiffness", "damping")
"""What a variational step can be differentiated by besides state and control."""

_SYMMETRIC = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
_PAIRS = [(i, j) for i in range(3) for j in range(i, 3)]


class Column(NamedTuple):
    """One number of a parameter.

    name, key  parameter, and the body or joint that has it
    place      index of the number in the derivative of that body or joint; () for a single one
    ends       the two constants (n+1, 23) of the tree, or None where the number is a joint force
    length     distance of the ends
    rate       coordinate of the user's velocity whose joint force it is, or -1
    """

    name: str
    key: str
    place: tuple[int, ...]
    ends: tuple[FloatArray, FloatArray] | None
    length: float
    rate: int


def columns(model: Model, names: tuple[str, ...], where: str) -> list[Column]:
    """All numbers of the parameters that were asked for.

    Raises:
        UnsupportedError: no exact derivative by one of them in this mechanism.
    """
    out: list[Column] = []
    if "mass" in names:
        check_one_body(model, where)
    if "placement" in names and (model.mechanism.forces or model.loop_names or model.mechanism.constraints):
        raise UnsupportedError(
            f"{where}: no derivative by placement with forces on bodies, loops or constraints; bdf:1, bdf:2 and sdirk2 "
            "have one with forces."
        )
    const = model.system.tree.const
    for name in names:
        if name in ("mass", "inertia"):
            for body in model.mechanism.bodies:
                if model.place(body).row > 0:
                    out += _mass(model, const, body) if name == "mass" else _inertia(model, const, body)
        elif name == "placement":
            for joint, view in model.joints.items():
                out += _placement(model, const, joint, view.joint.parent)
        else:
            for joint, view in model.joints.items():
                out += [Column(name, joint, (i,), None, 2.0, view.v.start + i) for i in range(view.nv)]
    return out


def check_one_body(model: Model, where: str) -> None:
    """UnsupportedError if several bodies with mass hang rigidly on a free joint: its origin moves with their masses."""
    for name, view in model.joints.items():
        if view.kind == "free" and len(massive_bodies(model, model.place(view.joint.child).row)) > 1:
            raise UnsupportedError(
                f"{where}: several bodies are fixed to the body of the free joint '{name}', and the gradient by "
                "their masses is not there; describe them as one body, or use bdf:1, bdf:2 or sdirk2."
            )


def massive_bodies(model: Model, row: int) -> list[str]:
    """Bodies with mass of which a row carries all or a share."""
    bodies = model.mechanism.bodies.values()
    return [body.name for body in bodies if body.mass > 0 and any(at.row == row for at, _ in model.shares(body.name))]


def collect(model: Model, parts: list[Column], values: FloatArray, names: tuple[str, ...]) -> dict[str, dict[Any, Any]]:
    """Derivatives by name and body or joint from columns (2 nv, number of parts)."""
    n = len(values)
    out: dict[str, dict[Any, Any]] = {name: {} for name in names}
    for part, column in zip(parts, values.T, strict=True):
        if part.name == "mass":
            out["mass"][part.key] = column
            continue
        shape = {"inertia": (n, 3, 3), "placement": (n, 3)}.get(part.name) or (n, model.joints[part.key].nv)
        table = out[part.name].setdefault(part.key, np.zeros(shape))
        if part.name == "inertia":
            i, j = part.place
            # off the diagonal two numbers change at once
            table[:, i, j] = table[:, j, i] = column if i == j else 0.5 * column
        else:
            table[:, part.place[0]] = column
    return out


def joint_force(model: Model, part: Column, q: FloatArray, v: FloatArray) -> FloatArray:
    """The user's generalised force (nv,) of a unit of stiffness or damping at a state."""
    out = np.zeros(model.nv)
    if part.name == "damping":
        out[part.rate] = -v[part.rate]
        return out
    # the spring of the joint itself, without those of servos
    view, joint = model.joints[part.key], model.mechanism.joints[part.key]
    here, i = q[view.q], part.place[0]
    if view.kind == "free":
        if i < 3:
            out[view.v.start : view.v.start + 3] = -_ball_force(here[3:], joint.rest[3:], i)
        else:
            along = quaternion.to_matrix(here[3:])[i - 3]
            out[view.v.start + 3 : view.v.stop] = -along * (here[i - 3] - joint.rest[i - 3])
        return out
    for piece in layout(joint):
        if piece.v.start <= i < piece.v.stop:
            if piece.factor == "ball":
                at = slice(view.v.start + piece.v.start, view.v.start + piece.v.stop)
                out[at] = -_ball_force(here[piece.q], joint.rest[piece.q], i - piece.v.start)
            else:
                at = piece.q.start + i - piece.v.start
                out[part.rate] = -(here[at] - joint.rest[at])
    return out


def _ball_force(q: FloatArray, rest: FloatArray, i: int) -> FloatArray:
    """Torque (3,) of the spring of a ball with unit stiffness about one axis, with a minus."""
    theta = quaternion.log(quaternion.multiply(quaternion.conjugate(rest), q))
    return np.asarray(so3.dlog(theta)[:, i] * theta[i])


def _mass(model: Model, const: FloatArray, body: str) -> list[Column]:
    """Mass of a body, with its centre of mass and the inertia about it fixed."""
    given = model.mechanism.bodies[body]
    m, far = given.mass, 0.5 * given.mass if given.mass > 0 else 1.0
    ends = (const, const)
    for place, part in model.shares(body):
        center = place.pose[:3, :3] @ given.com + place.pose[:3, 3]
        ends = (
            _changed(ends[0], place.row, part * far, center, np.zeros((3, 3))),
            _changed(ends[1], place.row, -part * far if m > 0 else 0.0, center, np.zeros((3, 3))),
        )
    return [Column("mass", body, (), ends, 2.0 * far if m > 0 else far, -1)]


def _inertia(model: Model, const: FloatArray, body: str) -> list[Column]:
    """Inertia of a body about its centre of mass, link axes."""
    out, far = [], max(float(np.trace(model.mechanism.bodies[body].inertia)), 1e-3)
    for i, j in _PAIRS:
        change = np.zeros((3, 3))
        change[i, j] = change[j, i] = far
        ends = (const, const)
        for place, part in model.shares(body):
            R = place.pose[:3, :3]
            turned = part * R @ change @ R.T
            ends = (
                _changed(ends[0], place.row, 0.0, np.zeros(3), turned),
                _changed(ends[1], place.row, 0.0, np.zeros(3), -turned),
            )
        out.append(Column("inertia", body, (i, j), ends, 2.0 * far, -1))
    return out


def _placement(model: Model, const: FloatArray, joint: str, parent: str) -> list[Column]:
    """Position of a joint's parent_frame, along the axes of its parent link."""
    R = model.place(parent).pose[:3, :3] if parent != WORLD else np.eye(3)
    row, out = model.first_rows[joint], []
    for i in range(3):
        ends = []
        for sign in (1.0, -1.0):
            changed = const.copy()
            changed[row, POS : POS + 3] += sign * R[:, i]
            ends.append(changed)
        out.append(Column("placement", joint, (i,), (ends[0], ends[1]), 2.0, -1))
    return out


def _changed(const: FloatArray, row: int, mass: float, center: FloatArray, inertia: FloatArray) -> FloatArray:
    """Constants with a point mass and an inertia added to a row."""
    out = const.copy()
    m, c = out[row, MASS], out[row, COM : COM + 3].copy()
    total = m + mass
    com = (m * c + mass * center) / total if total > 0 else c
    second = out[row, INERTIA : INERTIA + 6][_SYMMETRIC] + m * _spread(c - com) + mass * _spread(center - com) + inertia
    out[row, MASS], out[row, COM : COM + 3] = total, com
    out[row, INERTIA : INERTIA + 6] = [second[i, j] for i, j in _PAIRS]
    return out


def _spread(r: FloatArray) -> FloatArray:
    """Inertia (3, 3) of a unit point mass at r about the origin."""
    return np.asarray(r @ r * np.eye(3) - np.outer(r, r))
