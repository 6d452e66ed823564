"""Seeded random mechanisms and states, for tests that compare the kernels with the reference or with each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastaction.model.checks import FloatArray
from leastaction.model.forces import PointForce, PointSpring, Potential, Wrench
from leastaction.model.joints import KINDS, Law, layout
from leastaction.model.mechanism import Mechanism
from leastaction.model.model import Model
from leastaction.model.pose import pose
from leastaction.spatial import quaternion

MOVING_KINDS = tuple(kind for kind in KINDS if kind not in ("fixed", "spline"))
"""Every kind of joint that has coordinates."""

SERIAL_KINDS = tuple(kind for kind in MOVING_KINDS if kind not in ("free", "composite"))
"""Kinds that can be a part of a composite joint."""


def unit(rng: np.random.Generator, n: int = 3) -> FloatArray:
    """A random unit vector (n,)."""
    x = rng.normal(size=n)
    return np.asarray(x / np.linalg.norm(x))


def random_pose(rng: np.random.Generator, size: float = 0.3) -> FloatArray:
    """A pose (4, 4) with any rotation and a position of about ``size`` metres."""
    return pose(xyz=size * rng.normal(size=3), quat=unit(rng, 4))


def add_random_body(m: Mechanism, name: str, rng: np.random.Generator) -> None:
    """A body with any centre of mass and any admissible inertia: that of a cloud of points."""
    points, weights = 0.2 * rng.normal(size=(6, 3)), rng.uniform(0.2, 1.0, size=6)
    com = weights @ points / weights.sum()
    r = points - com
    second = (weights[:, None] * r).T @ r
    m.add_body(name, mass=weights.sum(), com=com, inertia=np.trace(second) * np.eye(3) - second)


def geometry(kind: str, rng: np.random.Generator) -> dict[str, Any]:
    """Axes, pitch and parts for a joint of this kind."""
    if kind == "composite":
        parts = rng.choice(SERIAL_KINDS, size=3)
        return {"parts": [(str(part), {**geometry(str(part), rng), "frame": random_pose(rng)}) for part in parts]}
    out: dict[str, Any] = {"axis": unit(rng)}
    if kind == "universal":
        out["axis2"] = unit(rng)
    if kind == "helical":
        out["pitch"] = rng.uniform(0.05, 0.2)
    return out


def add_random_joint(
    m: Mechanism, name: str, kind: str, parent: str, child: str, rng: np.random.Generator, **data: Any
) -> None:
    """A joint of this kind with any frames and axes."""
    data = {"parent_frame": random_pose(rng), "child_frame": random_pose(rng), **geometry(kind, rng), **data}
    m.add_joint(name, kind, parent=parent, child=child, **data)


def random_tree(kinds: Sequence[str], rng: np.random.Generator, springs: bool = False) -> Mechanism:
    """A branching tree with one joint j0, j1, ... of each given kind; joint jk carries body bk.

    Each joint hangs on a random earlier body, the first on the world. With ``springs`` joints have springs, dampers
    and rotor inertia as far as their kind allows.
    """
    m = Mechanism("random tree", gravity=rng.normal(scale=6.0, size=3))
    for k, kind in enumerate(kinds):
        parent = "world" if k == 0 else f"b{rng.integers(k)}"
        add_random_body(m, f"b{k}", rng)
        add_random_joint(m, f"j{k}", kind, parent, f"b{k}", rng)
        if springs:
            add_springs(m, f"j{k}", rng)
    return m


def chosen_tree(
    kinds: Sequence[str],
    parents: Sequence[str],
    rng: np.random.Generator,
    *,
    stiffness: float = 0.0,
    damping: float = 0.0,
    free: bool = False,
) -> Mechanism:
    """A tree of joints j0, j1, ... of these kinds on these parents, off-centre masses b0, b1, ... and armature.

    Springs and dampers in all joints but free ones, in those too if ``free``.
    """
    m = Mechanism("tree", gravity=(1.0, 2.0, -9.0))
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        A = rng.normal(size=(3, 3)) * 0.2
        J = A @ A.T + 0.01 * np.eye(3)
        m.add_body(f"b{i}", mass=rng.uniform(0.5, 2), com=rng.normal(size=3) * 0.2, inertia=np.trace(J) * np.eye(3) - J)
        more: dict[str, Any] = {"axis2": rng.normal(size=3)} if kind == "universal" else {}
        more |= {"pitch": 0.1} if kind == "helical" else {}
        more |= {"stiffness": stiffness, "damping": damping} if kind != "free" or free else {}
        m.add_joint(
            f"j{i}",
            kind,
            parent=parent,
            child=f"b{i}",
            axis=rng.normal(size=3),
            parent_frame=pose(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            child_frame=pose(xyz=rng.normal(size=3) * 0.1, rpy=rng.normal(size=3)),
            armature=0.0 if kind == "free" else 0.05,
            **more,
        )
    return m


def add_springs(m: Mechanism, name: str, rng: np.random.Generator, damping: bool = True) -> None:
    """Springs at a random rest position, dampers and rotor inertia on a joint."""
    joint = m.joints[name]
    joint.stiffness = rng.uniform(0.5, 3.0, size=joint.nv)
    joint.rest = random_coordinates(joint, rng)
    if damping:
        joint.damping = rng.uniform(0.1, 1.0, size=joint.nv)
    if joint.kind == "free":
        return
    # a ball's rotor has no preferred axis
    armature = rng.uniform(0.05, 0.3, size=joint.nv)
    for piece in layout(joint):
        armature[piece.v] = armature[piece.v.start]
    joint.armature = armature


def hard_spring(stiffness: float, hardening: float) -> Law:
    """A spring with force -k x - c x^3 and its energy."""
    return Law(
        lambda x: -stiffness * x - hardening * x**3,
        lambda x: -stiffness - 3 * hardening * x**2,
        lambda x: 0.5 * stiffness * x**2 + 0.25 * hardening * x**4,
    )


def drag(coefficient: float) -> Law:
    """A damper with force -c x |x|."""
    return Law(lambda x: -coefficient * x * abs(x), lambda x: -2 * coefficient * abs(x))


def add_every_force(m: Mechanism, a: str, b: str, rng: np.random.Generator, conservative: bool = False) -> None:
    """One force of each kind on bodies a and b; only those with an energy if ``conservative``."""
    point = 0.3 * rng.normal(size=(6, 3))
    damping = 0.0 if conservative else 0.7
    m.add_force(PointSpring(a, point[0], b, point[1], stiffness=8.0, damping=damping, rest_length=0.2))
    m.add_force(PointSpring("world", point[2], b, point[3], stiffness=5.0, damping=damping, rest_length=0.1))
    m.add_force(PointForce(a, point[4], rng.normal(size=3)))
    m.add_force(attraction(a, b, rng.uniform(0.5, 2.0)))
    if conservative:
        return
    u, w = rng.normal(size=3), rng.normal(size=6)
    m.add_force(PointForce(b, point[5], lambda t: u * np.cos(1.0 + t), frame="body"))
    m.add_force(PointForce(b, point[5], lambda t: u * np.sin(1.0 + t), frame="world"))
    m.add_force(Wrench(a, rng.normal(size=6)))
    m.add_force(Wrench(a, rng.normal(size=6), frame="body"))
    m.add_force(Wrench(b, lambda t: w * np.cos(2.0 + t), frame="body"))


def attraction(a: str, b: str, strength: float) -> Potential:
    """Energy -strength / sqrt(r^2 + 0.01) between the link origins of two bodies, in joules."""

    def energy(poses: FloatArray) -> float:
        r = poses[1, :3, 3] - poses[0, :3, 3]
        return float(-strength / np.sqrt(r @ r + 0.01))

    def gradient(poses: FloatArray) -> FloatArray:
        r = poses[1, :3, 3] - poses[0, :3, 3]
        pull = strength * r / (r @ r + 0.01) ** 1.5
        out = np.zeros((2, 6))
        out[0, 3:], out[1, 3:] = -poses[0, :3, :3].T @ pull, poses[1, :3, :3].T @ pull
        return out

    return Potential((a, b), energy, gradient)


def random_coordinates(joint: Any, rng: np.random.Generator) -> FloatArray:
    """Coordinates (nq,) of one joint."""
    q: FloatArray = rng.normal(size=joint.nq)
    for piece in layout(joint):
        if piece.factor == "ball":
            q[piece.q] = quaternion.normalize(q[piece.q])
    return q


def random_state(model: Model, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Coordinates (nq,) and velocities (nv,)."""
    parts = [random_coordinates(view.joint, rng) for view in model.joints.values()]
    return np.concatenate([np.zeros(0), *parts]), rng.normal(size=model.nv)


# Pins of the four-bar linkage below: the bodies on both sides, and where it is on each of them, in the x-z plane.
_PINS = {
    "A": ("world", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    "B": ("crank", "coupler", (0.0, 0.0, 0.1), (0.0, 0.0, 0.0)),
    "C": ("coupler", "rocker", (0.28, 0.0, 0.12), (0.03, 0.0, 0.22)),
    "D": ("world", "rocker", (0.25, 0.0, 0.0), (0.0, 0.0, 0.0)),
}
_ENDS = {"crank": (0.0, 0.0, 0.1), "coupler": (0.28, 0.0, 0.12), "rocker": (0.03, 0.0, 0.22)}


def four_pins(last: str = "D", **data: dict[str, Any]) -> Mechanism:
    """A four-bar linkage that the pin ``last`` of A, B, C and D closes, and data of its pins by name.

    Whichever closes it, the coordinates of the pins are the same: joints that carry a body from its other side are
    reversed, with the opposite axis. All are zero in the position that is described, and closed.
    """
    m = Mechanism("four_pins")
    for name, end in _ENDS.items():
        length = float(np.linalg.norm(end))
        m.add_body(name, mass=length, com=0.5 * np.array(end), inertia=length**3 / 12 * np.eye(3))
    # from the world towards the pin that closes the loop, on both sides
    for name in {"A": "DCBA", "B": "ADCB", "C": "ADBC", "D": "ABCD"}[last]:
        parent, child, before, behind = _PINS[name]
        axis = np.array([0.0, -1.0, 0.0])
        if (name, last) in (("C", "A"), ("C", "B"), ("B", "A")):
            parent, child, before, behind, axis = child, parent, behind, before, -axis
        there = {"parent_frame": pose(before), "child_frame": pose(behind), **data.get(name, {})}
        m.add_joint(name, "revolute", parent=parent, child=child, axis=axis, **there)
    return m
