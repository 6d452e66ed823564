"""Gradients by parameters of the mechanism: from stages of implicit steps, or from derivatives C of other steps.

A stage r(x, u, a, p) = 0 with multipliers z adds -z . dr/dp to the gradient by p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import UnsupportedError
from leastaction.methods.closing import row_count
from leastaction.methods.parameters import massive_bodies
from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.joints import layout
from leastaction.model.model import Model, State
from leastaction.sensitivity.objectives import Part
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import MASS

_ROWS = ("mass", "inertia", "placement")
_SYMMETRIC = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])


def check_parameters(model: Model, names: tuple[str, ...]) -> None:
    """UnsupportedError for parameters by which there is no gradient of implicit steps in this mechanism."""
    linked = bool(row_count(model))
    if "placement" in names and linked:
        raise UnsupportedError(
            f"gradient: '{model.name}' has loops or constraints, which move with their joints; there is no gradient by "
            "placement."
        )
    if "friction" in names:
        labels = _friction_labels(model)
        for label in labels:
            if labels.count(label) > 1:
                raise UnsupportedError(
                    f"gradient: several forces with friction are named '{label}', by which the gradient by friction "
                    "cannot tell them apart; give them different names."
                )
    if "mass" not in names:
        return
    for group in _groups(model):
        loaded = any(rate == group.v.start for _, rate in model.system.passive.free)
        if linked or loaded:
            raise UnsupportedError(
                f"gradient: several bodies are fixed to the body of the free joint '{group.joint}', and the gradient "
                "by their masses is not there with loops, or with a spring or damper of its translation; describe them "
                "as one body."
            )


class _Group(NamedTuple):
    """Bodies fixed to the body of a free joint: the origin of its row is their common centre of mass.

    joint      name of the joint
    row        row of the tree that carries them
    d          first rate of the joint's rows: translation, then rotation
    v          the user's linear velocities; the angular ones stand three before
    """

    joint: str
    row: int
    d: int
    v: slice


def _groups(model: Model) -> list[_Group]:
    """Free joints whose child has other bodies with mass fixed to it."""
    out, order = [], model.system.coordinates.v
    for name, view in model.joints.items():
        if view.kind == "free":
            row = model.place(view.joint.child).row
            if len(massive_bodies(model, row)) > 1:
                linear = slice(view.v.start + 3, view.v.stop)
                out.append(_Group(name, row, int(np.flatnonzero(order == linear.start)[0]), linear))
    return out


class Sums:
    """Sums of -z . dr/dp over stages.

    Args:
        model: the mechanism.
        names: parameters.
        add_rows: adds the derivatives of a record by the numbers of every row, ``Reverse.add_rows``.
    """

    def __init__(self, model: Model, names: tuple[str, ...], add_rows: Callable[[Any, FloatArray], None]) -> None:
        self.model, self.names, self._add_rows = model, names, add_rows
        self.rows = np.zeros((len(model.system.tree.rows), 16))
        # by the origins of the rows of free joints, where masses move them
        self.groups = _groups(model) if "mass" in names else []
        self.origins = np.zeros((len(self.groups), 3))
        self.stiffness, self.damping = np.zeros(model.nv), np.zeros(model.nv)
        self.shifts: dict[str, Any] = {}
        self.friction = dict.fromkeys(_friction_labels(model), 0.0)

    def add(self, record: Any, controls: FloatArray) -> None:
        """Count the stages of one part of a run with controls (steps, nv)."""
        for k, group in enumerate(self.groups):
            # the torque of the control about the origin of the row
            turns = record.z[:, :, group.d + 3 : group.d + 6].sum(axis=1)
            self.origins[k] -= np.cross(controls[:, group.v], turns).sum(axis=0)

        if set(self.names) & set(_ROWS):
            self._add_rows(record, self.rows)
        if set(self.names) & {"stiffness", "damping", "friction"}:
            q, v, z, t = self._users(record)
            self._add_joints(q, v, z)
            if self.friction:
                self._add_friction(q, v, z, t)

    def count(self, term: Part, v: FloatArray) -> None:
        """Add what the objective itself owes to the positions of the joints, at a state with velocities v."""
        for name, by in (term.by_placement or {}).items():
            self.shifts[name] = self.shifts.get(name, 0.0) + by
        # at a fixed state of the rows the link frame moves against the origin of its row
        for k, group in enumerate(self.groups):
            if term.by_q is not None:
                self.origins[k] -= term.by_q[group.v]
            if term.by_v is not None:
                self.origins[k] -= np.cross(term.by_v[group.v], v[group.v.start - 3 : group.v.start])

    def begin(self, state: State, lx: FloatArray, lu: FloatArray) -> None:
        """Add what the rows' first state, with derivatives lx and lu (nv,), owes to the origins of rows."""
        for k, group in enumerate(self.groups):
            view, three = self.model.joints[group.joint], slice(group.d, group.d + 3)
            back = quaternion.to_matrix(state.q[view.q][3:]).T
            turn = state.v[group.v.start - 3 : group.v.start]
            self.origins[k] += back @ lx[three] + np.cross(back @ lu[three], turn)

    def results(self) -> dict[str, Any]:
        """The gradients by name."""
        moved = {group.row: self.origins[k] + self.rows[group.row, 13:] for k, group in enumerate(self.groups)}
        out: dict[str, Any] = {"stiffness": self.stiffness, "damping": self.damping, "friction": dict(self.friction)}
        mass, inertia = {}, {}
        for name, body in self.model.mechanism.bodies.items():
            if self.model.place(name).row == 0:
                continue
            mass[name], inertia[name] = 0.0, np.zeros((3, 3))
            for place, part in self.model.shares(name):
                R, center = place.pose[:3, :3], place.pose[:3, :3] @ body.com + place.pose[:3, 3]
                by = -self.rows[place.row]
                # second moment about the row's origin: R I R^T + m (c^2 1 - c c^T)
                second = by[4:10][_SYMMETRIC] * np.where(np.eye(3) > 0, 1.0, 0.5)
                spread = center @ center * np.eye(3) - np.outer(center, center)
                mass[name] += part * float(by[0] + by[1:4] @ center + (second * spread).sum())
                if place.row in moved:
                    mass[name] += float(moved[place.row] @ center / self.model.system.tree.const[place.row, MASS])
                inertia[name] += part * R.T @ second @ R
        placement = {}
        for name, view in self.model.joints.items():
            R = self.model.place(view.joint.parent).pose[:3, :3] if view.joint.parent != WORLD else np.eye(3)
            placement[name] = self.shifts.get(name, 0.0) - R.T @ self.rows[self.model.first_rows[name], 10:13]
        return {**out, "mass": mass, "inertia": inertia, "placement": placement}

    def _users(self, record: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The user's q, v, z = T^-1 z of the rows, and times, of all stages that count."""
        from leastaction.dynamics import entries

        used = record.z.any(axis=2)
        x, u, z, t = record.x[used], record.u[used], record.z[used], record.t[used]
        q, v, w, none = np.zeros_like(x), np.zeros_like(u), np.zeros_like(z), np.zeros(self.model.nq)
        for k in range(len(t)):
            entries.leave(self.model.system, x[k], u[k], q[k], v[k])
            entries.leave(self.model.system, x[k], z[k], none, w[k])
        return q, v, w, t

    def _add_joints(self, q: FloatArray, v: FloatArray, z: FloatArray) -> None:
        """Springs and dampers in the joints; r counts their forces with a minus."""
        self.damping -= (z * v).sum(axis=0)
        for name, view in self.model.joints.items():
            # its own spring, without those of servos
            joint, here = self.model.mechanism.joints[name], q[:, view.q]
            if view.kind == "free":
                turn, slide = slice(view.v.start, view.v.start + 3), slice(view.v.start + 3, view.v.stop)
                self.stiffness[turn] -= _ball_sums(here[:, 3:], joint.rest[3:], z[:, turn])
                along = np.array([quaternion.to_matrix(p[3:]) @ w for p, w in zip(here, z[:, slide], strict=True)])
                self.stiffness[slide] -= (along * (here[:, :3] - joint.rest[:3])).sum(axis=0)
                continue
            for piece in layout(joint):
                at = slice(view.v.start + piece.v.start, view.v.start + piece.v.stop)
                if piece.factor == "ball":
                    self.stiffness[at] -= _ball_sums(here[:, piece.q], joint.rest[piece.q], z[:, at])
                else:
                    self.stiffness[at] -= (z[:, at] * (here[:, piece.q] - joint.rest[piece.q])).sum(axis=0)

    def _add_friction(self, q: FloatArray, v: FloatArray, z: FloatArray, t: FloatArray) -> None:
        """Friction coefficients of forces that have one."""
        for k, force in enumerate(self.model.mechanism.forces):
            if not has_friction(force):
                continue
            names = list(force.bodies)
            poses = quantities.frame_poses(self.model, q, names)
            turns = np.swapaxes(poses[:, :, :3, :3], 2, 3)
            twists, virtual = (_local(turns, quantities.body_twists(self.model, q, w, names)) for w in (v, z))
            label = force.name or f"force {k}"
            for i, time in enumerate(t):
                by = force.friction_derivative(float(time), poses[i], twists[i])  # type: ignore[attr-defined]
                self.friction[label] += float((virtual[i] * by).sum())


class StepSums:
    """Sums over steps of C^T l, with l the derivatives by the state at the end of a step.

    Args:
        model: the mechanism.
        names: parameters.
    """

    def __init__(self, model: Model, names: list[str]) -> None:
        self.model = model
        self.found: dict[str, dict[Any, Any]] = {name: {} for name in names}

    def add(self, C: dict[str, dict[Any, FloatArray]], by: FloatArray) -> None:
        """Count one step."""
        for name, parts in C.items():
            for key, columns in parts.items():
                more = np.tensordot(by, columns, axes=(0, 0))
                self.found[name][key] = self.found[name].get(key, 0.0) + (more if more.ndim else float(more))

    def count(self, term: Part) -> None:
        """Add what the objective itself owes to the positions of the joints."""
        if "placement" in self.found:
            for name, by in (term.by_placement or {}).items():
                self.found["placement"][name] = self.found["placement"].get(name, 0.0) + by

    def results(self) -> dict[str, Any]:
        """The gradients by name."""
        out: dict[str, Any] = dict(self.found)
        for name in {"stiffness", "damping"} & set(self.found):
            out[name] = np.zeros(self.model.nv)
            for joint, by in self.found[name].items():
                out[name][self.model.joints[joint].v] = by
        return out


def _friction_labels(model: Model) -> list[str]:
    """Names of the forces with a friction coefficient, or their places among all forces."""
    forces = enumerate(model.mechanism.forces)
    return [force.name or f"force {k}" for k, force in forces if has_friction(force)]


def has_friction(force: Any) -> bool:
    """Whether a force has a friction coefficient to differentiate by."""
    return hasattr(force, "friction_derivative")


def _local(turns: FloatArray, twists: FloatArray) -> FloatArray:
    """Twists (rows, k, 6) from world axes to those of the links."""
    return np.concatenate(
        [np.einsum("rkij,rkj->rki", turns, part) for part in (twists[..., :3], twists[..., 3:])], axis=-1
    )


def _ball_sums(q: FloatArray, rest: FloatArray, z: FloatArray) -> FloatArray:
    """Sum of z . dexp_inv(theta) e_i theta_i over rows, for the three axes i."""
    out, back = np.zeros(3), quaternion.conjugate(rest)
    for here, w in zip(q, z, strict=True):
        theta = quaternion.log(quaternion.multiply(back, here))
        out += (so3.dlog(theta).T @ w) * theta
    return out
