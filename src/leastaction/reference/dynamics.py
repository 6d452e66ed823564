"""Mass matrix, forces, energy and momentum as sums over the bodies.

With M the spatial inertia (6, 6) of a body about its link origin, Newton and Euler say in link axes

    M dV/dt - ad(V)^T M V = wrench,

and d'Alembert that the sum of J^T (that) over the bodies equals the generalised forces.
"""

from __future__ import annotations

import numpy as np

from leastaction.model.checks import WORLD, FloatArray
from leastaction.model.elements import Body
from leastaction.model.joints import layout
from leastaction.model.model import Model
from leastaction.reference.kinematics import Motion, joint_frame, motions
from leastaction.reference.matrices import Ad, ad, hat, inverse
from leastaction.spatial import quaternion, so3


def spatial_inertia(body: Body) -> FloatArray:
    """Inertia (6, 6) about the link origin, link axes: kinetic energy is V^T M V / 2."""
    c = hat(body.com)
    m = body.mass
    return np.block([[body.inertia - m * c @ c, m * c], [-m * c, m * np.eye(3)]])


def mass_matrix(model: Model, q: FloatArray) -> FloatArray:
    """Sum of J^T M J over the bodies, and rotor inertias (nv, nv)."""
    moving = motions(model, q, np.zeros(model.nv))
    M = np.diag(armature(model))
    for body in model.split.bodies.values():
        J = moving[body.name].J
        M += J.T @ spatial_inertia(body) @ J
    return M


def armature(model: Model) -> FloatArray:
    """Rotor inertias (nv,)."""
    out = np.zeros(model.nv)
    for view in model.joints.values():
        out[view.v] = view.joint.armature
    return out


def inverse_dynamics(
    model: Model, q: FloatArray, v: FloatArray, a: FloatArray, t: float = 0.0, passive: bool = True
) -> FloatArray:
    """Generalised forces (nv,) that produce the accelerations a; loops are open."""
    moving = motions(model, q, v)
    tau = armature(model) * a
    for name, wrench in needed_wrenches(model, moving, v, a, t, passive).items():
        tau += moving[name].J.T @ wrench
    return tau - joint_springs(model, q, v) if passive else tau


def needed_wrenches(
    model: Model, moving: dict[str, Motion], v: FloatArray, a: FloatArray, t: float, passive: bool = True
) -> dict[str, FloatArray]:
    """Wrench (6,) about its link origin, link axes, that each body needs from its joints."""
    out: dict[str, FloatArray] = {WORLD: np.zeros(6)}
    for body in model.split.bodies.values():
        motion, M = moving[body.name], spatial_inertia(body)
        V, Vdot = motion.J @ v, motion.J @ a + motion.Jdot @ v
        weight = body.mass * motion.E[:3, :3].T @ model.mechanism.gravity
        out[body.name] = M @ Vdot - ad(V).T @ M @ V - np.concatenate([np.cross(body.com, weight), weight])
    # less what forces of the mechanism give
    for force in model.mechanism.forces if passive else ():
        E = np.array([moving[name].E for name in force.bodies])
        V = np.array([moving[name].J @ v for name in force.bodies])
        for name, wrench in zip(force.bodies, force.wrenches(t, E, V), strict=True):
            out[name] -= wrench
    return out


def joint_springs(model: Model, q: FloatArray, v: FloatArray) -> FloatArray:
    """Generalised forces (nv,) of springs, dampers and laws in the joints."""
    tau = np.zeros(model.nv)
    for view in model.joints.values():
        joint, own_q, own_v = view.joint, q[view.q], v[view.v]
        k, f = joint.stiffness_values, -joint.damping_values * own_v
        if joint.kind == "free":
            R = quaternion.to_matrix(own_q[3:])
            f[:3] += _ball_spring(k[:3], joint.rest[3:], own_q[3:])
            f[3:] -= R.T @ (k[3:] * (own_q[:3] - joint.rest[:3]))
        else:
            for piece in layout(joint):
                if piece.factor == "ball":
                    f[piece.v] += _ball_spring(k[piece.v], joint.rest[piece.q], own_q[piece.q])
                else:
                    f[piece.v] -= k[piece.v] * (own_q[piece.q] - joint.rest[piece.q])
        # laws stand on screws, whose coordinates and rates are found by their layout
        for piece in layout(joint):
            if piece.v.start in joint.stiffness_laws:
                f[piece.v.start] += joint.stiffness_laws[piece.v.start].force(float(own_q[piece.q.start]))
            if piece.v.start in joint.damping_laws:
                f[piece.v.start] += joint.damping_laws[piece.v.start].force(float(own_v[piece.v.start]))
        tau[view.v] = f
    return tau


def _turn(rest: FloatArray, q: FloatArray) -> FloatArray:
    """Rotation vector (3,) from the rest orientation to q."""
    return np.asarray(so3.log(quaternion.to_matrix(rest).T @ quaternion.to_matrix(q)))


def _ball_spring(k: FloatArray, rest: FloatArray, q: FloatArray) -> FloatArray:
    """Minus the derivative of sum k theta^2 / 2 by a rotation behind: d theta = dexp_right(theta)^-1 xi."""
    theta = _turn(rest, q)
    return -np.asarray(so3.dlog_right(theta)).T @ (k * theta)


def forward_dynamics(model: Model, q: FloatArray, v: FloatArray, tau: FloatArray, t: float = 0.0) -> FloatArray:
    """Accelerations (nv,) of the tree, loops open, by a dense solve."""
    bias = inverse_dynamics(model, q, v, np.zeros(model.nv), t)
    return np.asarray(np.linalg.solve(mass_matrix(model, q), tau - bias))


def energy(model: Model, q: FloatArray, v: FloatArray) -> tuple[float, float]:
    """Kinetic and potential energy in joules."""
    moving = motions(model, q, v)
    kinetic = 0.5 * float(armature(model) @ v**2)
    potential = 0.0
    for body in _carried(model):
        motion, V = moving[body.name], moving[body.name].J @ v
        kinetic += 0.5 * float(V @ spatial_inertia(body) @ V)
        potential -= body.mass * float(model.mechanism.gravity @ _center(motion, body))
    for force in model.mechanism.forces:
        potential += force.energy(0.0, np.array([moving[name].E for name in force.bodies]))
    return kinetic, potential + spring_energy(model, q)


def spring_energy(model: Model, q: FloatArray) -> float:
    """Energy of the springs and laws in the joints."""
    out = 0.0
    for view in model.joints.values():
        joint, own = view.joint, q[view.q]
        k = joint.stiffness_values
        # factor order: for a free joint the translations come first
        if joint.kind == "free":
            k = np.concatenate([k[3:], k[:3]])
        for piece in layout(joint):
            ball = piece.factor == "ball"
            x = _turn(joint.rest[piece.q], own[piece.q]) if ball else own[piece.q] - joint.rest[piece.q]
            out += 0.5 * float(k[piece.v] @ x**2)
        for place, law in joint.stiffness_laws.items():
            piece = next(piece for piece in layout(joint) if piece.v.start == place)
            out += law.energy(float(own[piece.q.start])) if law.energy is not None else 0.0
    return out


def momentum_map(model: Model, q: FloatArray) -> FloatArray:
    """(6, nv) from v to (angular momentum about the world's origin; linear momentum), world axes."""
    moving = motions(model, q, np.zeros(model.nv))
    out = np.zeros((6, model.nv))
    for body in model.split.bodies.values():
        motion = moving[body.name]
        # momentum in link axes, as a wrench moved to the world's origin
        out += Ad(inverse(motion.E)).T @ spatial_inertia(body) @ motion.J
    return out


def momentum(model: Model, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Linear momentum (3,), and angular momentum (3,) about the world's origin, world axes."""
    h = momentum_map(model, q) @ v
    return h[3:], h[:3]


def center_of_mass(model: Model, q: FloatArray) -> FloatArray:
    """Centre of mass (3,) of everything that moves."""
    moving = motions(model, q, np.zeros(model.nv))
    bodies = _carried(model)
    total = sum(body.mass for body in bodies)
    return np.asarray(sum(body.mass * _center(moving[body.name], body) for body in bodies) / total)


def centroidal_map(model: Model, q: FloatArray) -> FloatArray:
    """(6, nv) from v to (angular momentum about the centre of mass; linear momentum), world axes."""
    out = momentum_map(model, q)
    out[:3] -= hat(center_of_mass(model, q)) @ out[3:]
    return out


def joint_reactions(
    model: Model, q: FloatArray, v: FloatArray, a: FloatArray, loads: dict[str, FloatArray], t: float = 0.0
) -> dict[str, FloatArray]:
    """Wrench (6,) that each moving joint passes to its child, at the child side of its frame, in its axes.

    ``loads`` are wrenches (6,) of loop joints on bodies, about link origins in link axes. A joint carries all bodies
    behind it, so its wrench is the sum of what they need.
    """
    moving = motions(model, q, v)
    needed = needed_wrenches(model, moving, v, a, t)
    for name, load in loads.items():
        needed[name] = needed[name] - load
    out = {}
    for name in model.joints:
        at = joint_frame(model, name, moving).E
        out[name] = np.zeros(6)
        for body in _behind(model, model.split.joints[name].child):
            # a wrench moves by the transpose of the twist's map
            out[name] += Ad(inverse(moving[body].E) @ at).T @ needed[body]
    return out


def _behind(model: Model, body: str) -> list[str]:
    """The body and all bodies that hang on it in the tree."""
    out = [body]
    for name in model.topology.tree:
        joint = model.split.joints[name]
        if joint.parent in out:
            out.append(joint.child)
    return out


def _carried(model: Model) -> list[Body]:
    """Bodies that are not fixed to the world."""
    names: set[str] = set()
    for name in model.topology.tree:
        joint = model.split.joints[name]
        if name in model.joints or joint.parent in names:
            names.add(joint.child)
    return [body for body in model.split.bodies.values() if body.name in names]


def _center(motion: Motion, body: Body) -> FloatArray:
    """Centre of mass (3,) of a body in the world."""
    return np.asarray(motion.E[:3, :3] @ body.com + motion.E[:3, 3])
