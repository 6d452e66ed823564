"""Writing a plan down as a program: in other units, in a world that is moved, turned or flies by, in another order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzzing.plan import ROTATIONS, Joint, Plan
from fuzzing.program import Program, Source, call, code
from leastaction.spatial import quaternion


@dataclass(frozen=True, eq=False)
class Setting:
    """How a plan is written down.

    Attributes:
        length: how many units of length a metre has: 1000 for millimetres.
        mass: how many units of mass a kilogram has.
        world: pose (4, 4) by which everything is moved, metres.
        flight: velocity (3,) of everything, m/s in the plan's world; for plans that hold on to nothing.
        order: seed of another order of bodies, joints and forces, or None.
        prefix: before all names.
    """

    length: float = 1.0
    mass: float = 1.0
    world: np.ndarray = field(default_factory=lambda: np.eye(4))
    flight: np.ndarray = field(default_factory=lambda: np.zeros(3))
    order: int | None = None
    prefix: str = ""

    @property
    def force(self) -> float:
        """Units of force in a newton."""
        return self.mass * self.length

    @property
    def torque(self) -> float:
        """Units of torque in a newton metre."""
        return self.mass * self.length**2

    def name(self, body: str) -> str:
        """A name with the prefix."""
        return body if body == "world" else self.prefix + body

    def pose(self, frame: np.ndarray, on: str) -> Source:
        """A frame on a body or on the world."""
        at = self.world @ frame if on == "world" else frame
        if np.array_equal(at, np.eye(4)):
            return Source("None")
        if np.array_equal(at[:3, :3], np.eye(3)):
            return call("la.pose", xyz=at[:3, 3] * self.length)
        return call("la.pose", xyz=at[:3, 3] * self.length, quat=quaternion.from_matrix(at[:3, :3]))

    def point(self, point: np.ndarray, on: str) -> np.ndarray:
        """A point on a body or on the world."""
        at = np.asarray(point, dtype=float)
        if on == "world":
            at = self.world[:3, :3] @ at + self.world[:3, 3]
        return at * self.length

    def turned(self, vector: np.ndarray) -> np.ndarray:
        """A direction in world axes."""
        return self.world[:3, :3] @ np.asarray(vector, dtype=float)

    def rates(self, joint: Joint) -> np.ndarray:
        """Units of each velocity coordinate."""
        return np.array([1.0 if name in ROTATIONS else self.length for name in joint.v_names])

    def places(self, joint: Joint) -> np.ndarray:
        """Units of each coordinate."""
        still = ("angle", "angle2", "qw", "qx", "qy", "qz")
        return np.array([1.0 if name in still else self.length for name in joint.q_names])


SI = Setting()
"""Metres, kilograms, and the world as it was drawn."""


def write(plan: Plan, setting: Setting = SI) -> Program:
    """The program of a plan."""
    s = setting
    lines = [f"m = la.Mechanism({f'seed {plan.seed}'!r}, gravity={code(s.turned(plan.gravity) * s.length)})"]
    bodies = [_body(name, data, s) for name, data in plan.bodies.items()]
    joints = [_joint(joint, s) for joint in plan.joints]
    forces = [Source(f"m.add_force({_FORCES[kind](data, s)})") for kind, data in plan.forces]
    if s.order is not None:
        rng = np.random.default_rng(s.order)
        for group in (bodies, joints, forces):
            rng.shuffle(group)
        # a joint whose child has no parent yet is part of the tree: the closing ones stay last
        last = {f"m.add_joint({s.name(joint.name)!r}," for joint in plan.joints if joint.closes}
        joints.sort(key=lambda line: line.split(" ", 1)[0] in last)
    lines += [*bodies, *joints, *forces, *(_servo(data, plan, s) for data in plan.servos)]
    for joint in plan.joints:
        if joint.lock is not None:
            lines.append(call("m.lock", s.name(joint.name), np.array(joint.lock) * s.places(joint)))
    if plan.ground is not None:
        lines.append(_ground(plan.ground, s))
    lines += [
        call("m.add_contact", s.name(c["a"]), s.name(c["b"]), friction=c["friction"], restitution=c["restitution"])
        for c in plan.contacts
    ]
    if plan.enforce:
        lines.append("m.enforce_limits()")
    q, v = state(plan, s)
    return Program(lines, q, v, plan.loops)


def state(plan: Plan, s: Setting) -> tuple[dict[str, Any], dict[str, Any]]:
    """Coordinates and velocities by joint, in the units of a setting."""
    moving = [joint for joint in plan.joints if joint.q and joint.lock is None and not joint.closes]
    q = {s.name(joint.name): tuple(np.array(joint.q) * s.places(joint)) for joint in moving}
    v = {}
    for joint in moving:
        rate = np.array(joint.v) * s.rates(joint)
        if joint.kind == "free" and s.flight.any():
            rate[3:] += quaternion.rotate(quaternion.conjugate(np.array(joint.q[3:])), _drift(joint, s))
        v[s.name(joint.name)] = tuple(rate)
    return q, v


def coordinates(plan: Plan, s: Setting, run: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """q and v (rows, ...) of every moving joint of a run, back in SI and in the plan's world."""
    out = {}
    for joint in plan.joints:
        if s.name(joint.name) not in run.model.joints:
            continue
        view = run.model.joints[s.name(joint.name)]
        q, v = run.q[:, view.q].copy(), run.v[:, view.v].copy()
        if joint.kind == "free" and s.flight.any():
            drift = _drift(joint, s)
            for k, t in enumerate(run.t - run.t[0]):
                v[k, 3:] -= quaternion.rotate(quaternion.conjugate(q[k, 3:]), drift)
                q[k, :3] -= t * drift
        out[joint.name] = (q / s.places(joint), v / s.rates(joint))
    return out


def _drift(joint: Joint, s: Setting) -> np.ndarray:
    """The velocity of flight in the parent frame of a free joint, in the units of a setting."""
    return joint.parent_frame[:3, :3].T @ s.flight * s.length


def _body(name: str, data: dict[str, Any], s: Setting) -> Source:
    """The call that adds a body."""
    if data.get("shape") is not None:
        kind, sizes = data["shape"]
        shape = call(f"la.{kind}", *(np.asarray(size, dtype=float) * s.length for size in sizes))
        return call("m.add_body", s.name(name), shape=shape, mass=data["mass"] * s.mass)
    if data["mass"] == 0:
        return call("m.add_body", s.name(name))
    inertia = np.asarray(data["inertia"]) * s.torque
    com = np.asarray(data["com"]) * s.length
    return call("m.add_body", s.name(name), mass=data["mass"] * s.mass, com=com, inertia=inertia)


def _joint(joint: Joint, s: Setting) -> Source:
    """The call that adds a joint."""
    more: dict[str, Any] = dict(joint.data)
    if joint.kind == "helical":
        more["pitch"] = joint.pitch * s.length
    if joint.parts:
        more["parts"] = [
            (kind, {**data, "frame": s.pose(frame, ""), **({"pitch": pitch * s.length} if pitch else {})})
            for kind, data, frame, pitch in joint.parts
        ]
    # a rotation's N m/rad grow with the square of the length, a displacement's N/m do not
    units = [s.torque if name in ROTATIONS else s.mass for name in joint.v_names]
    for what, row in joint.springs.items():
        more[what] = [
            _spring(what, each, unit, rate) for each, unit, rate in zip(row, units, s.rates(joint), strict=True)
        ]
    if joint.rest is not None:
        more["rest"] = np.array(joint.rest) * s.places(joint)
    if joint.limits is not None:
        # one for each single coordinate and for each ball, which has four
        units = [s.places(joint)[i] for i, name in enumerate(joint.q_names) if name not in ("qx", "qy", "qz")]
        more["limits"] = [
            None if each is None else tuple(np.array(each) * unit)
            for each, unit in zip(joint.limits, units, strict=True)
        ]
    if joint.effort is not None:
        more["effort"] = [joint.effort * (s.torque if name in ROTATIONS else s.force) for name in joint.v_names]
    frames = {"parent_frame": s.pose(joint.parent_frame, joint.parent), "child_frame": s.pose(joint.child_frame, "")}
    ends = {"parent": s.name(joint.parent), "child": s.name(joint.child)}
    return call("m.add_joint", s.name(joint.name), joint.kind, **ends, **frames, **more)


def _spring(what: str, value: Any, unit: float, rate: float) -> Any:
    """A stiffness or damping, or the law a x + b x^3 of one."""
    if not isinstance(value, tuple):
        return value * unit
    a, b = value[0] * unit, value[1] * unit / rate**2
    force, slope = Source(f"lambda x: -{a!r} * x - {b!r} * x**3"), Source(f"lambda x: -{a!r} - 3.0 * {b!r} * x**2")
    if what == "damping":
        return call("la.Law", force, slope)
    return call("la.Law", force, slope, Source(f"lambda x: 0.5 * {a!r} * x**2 + 0.25 * {b!r} * x**4"))


def _servo(data: dict[str, Any], plan: Plan, s: Setting) -> Source:
    """The call that adds an actuator; gears have no unit."""
    joint = next(joint for joint in plan.joints if joint.name == data["joint"])
    turns = joint.v_names[data["coordinate"]] in ROTATIONS
    gain = s.torque if turns else s.mass
    more = {"kp": data["kp"] * gain, "kd": data["kd"] * gain, "target": data["target"] * (1.0 if turns else s.length)}
    if data.get("effort") is not None:
        more["effort"] = data["effort"] * (s.torque if turns else s.force)
    return call(
        "m.add_actuator", s.name(data["name"]), s.name(data["joint"]), gear=data["gear"],
        coordinate=data["coordinate"], **more,
    )  # fmt: skip


def _plane(data: dict[str, Any], s: Setting) -> dict[str, Any]:
    """Normal and height of a plane."""
    normal = s.turned(data["normal"])
    return {"normal": normal, "height": (data["height"] + float(normal @ s.world[:3, 3])) * s.length}


def _ground(data: dict[str, Any], s: Setting) -> Source:
    """The call that adds the ground."""
    return call("m.add_ground", friction=data["friction"], restitution=data["restitution"], **_plane(data, s))


def _point_spring(d: dict[str, Any], s: Setting) -> Source:
    return call(
        "la.PointSpring", s.name(d["a"]), s.point(d["point_a"], d["a"]), s.name(d["b"]), s.point(d["point_b"], d["b"]),
        stiffness=d["stiffness"] * s.mass, damping=d["damping"] * s.mass, rest_length=d["rest_length"] * s.length,
    )  # fmt: skip


def _vector(d: dict[str, Any], what: str, units: Any, s: Setting) -> Any:
    """A force or wrench in its axes; with a rate it oscillates."""
    value = np.asarray(d[what], dtype=float)
    if d["frame"] == "world":
        value = np.concatenate([s.turned(part) for part in value.reshape(-1, 3)])
    value = value * units
    if d.get("rate") is None:
        return value
    return Source(f"lambda t: np.array({code(value)}) * np.cos({d['rate']!r} * t)")


def _point_force(d: dict[str, Any], s: Setting) -> Source:
    force = _vector(d, "force", s.force, s)
    return call("la.PointForce", s.name(d["a"]), s.point(d["point"], d["a"]), force, d["frame"])


def _wrench(d: dict[str, Any], s: Setting) -> Source:
    units = np.repeat([s.torque, s.force], 3)
    return call("la.Wrench", s.name(d["a"]), _vector(d, "wrench", units, s), d["frame"])


def _cable(d: dict[str, Any], s: Setting) -> Source:
    points = [(s.name(body), s.point(point, body)) for body, point in zip(d["through"], d["points"], strict=True)]
    return call(
        "la.Cable", points, stiffness=d["stiffness"] * s.mass, damping=d["damping"] * s.mass,
        rest_length=d["rest_length"] * s.length,
    )  # fmt: skip


def _potential(d: dict[str, Any], s: Setting) -> Source:
    """A spring of any stiffness matrix from the link origin to a point of the world."""
    turn = s.world[:3, :3]
    K = code((turn @ d["matrix"] @ turn.T) * s.mass)
    c = code(s.point(d["center"], "world"))
    away, R = f"(E[0, :3, 3] - np.array({c}))", "E[0, :3, :3]"
    energy = Source(f"lambda E: 0.5 * {away} @ np.array({K}) @ {away}")
    pull = f"({R}.T @ np.array({K}) @ {away})"
    gradient = Source(f"lambda E: np.concatenate([np.zeros(3), {pull}])[None]")
    hessian = Source(
        f"lambda E: np.block([[np.zeros((3, 6))], [np.cross({pull}, np.eye(3), axisb=0, axisc=0), "
        f"{R}.T @ np.array({K}) @ {R}]])"
    )
    more = {"hessian": hessian} if d["hessian"] else {}
    return call("la.Potential", s.name(d["a"]), energy, gradient, **more)


def _penalty(d: dict[str, Any], s: Setting) -> Source:
    return call(
        "la.PenaltyContact", s.name(d["a"]), [s.point(point, d["a"]) for point in d["points"]],
        stiffness=d["stiffness"] * s.mass, damping=d["damping"] / s.length, friction=d["friction"],
        sticking=d["sticking"] * s.mass, **_plane(d, s),
    )  # fmt: skip


_FORCES = {
    "PointSpring": _point_spring,
    "PointForce": _point_force,
    "Wrench": _wrench,
    "Cable": _cable,
    "Potential": _potential,
    "PenaltyContact": _penalty,
}
