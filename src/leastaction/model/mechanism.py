"""Mechanism: the editable description from which a Model is built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.actuation import check_actuator
from leastaction.model.checks import (
    WORLD,
    FloatArray,
    check_axis,
    check_contact,
    check_flag,
    check_heights,
    check_name,
    check_number,
    check_vector,
    frozen,
    quoted,
)
from leastaction.model.constraints import Constraint
from leastaction.model.contact_groups import pairs_among
from leastaction.model.contacts import check_pair, two_bodies
from leastaction.model.coupling import Coupling, check_couplings, make_coupling
from leastaction.model.elements import Actuator, Body, ContactPair, Frame, Ground, Joint
from leastaction.model.forces import Force
from leastaction.model.inertia import body_properties, symmetric_inertia
from leastaction.model.joint_data import check_joint
from leastaction.model.joints import check_coordinates
from leastaction.model.key_frames import KeyFrame, check_key_frame, made_key_frame
from leastaction.model.pose import check_pose
from leastaction.model.record import Record
from leastaction.model.sensors import Sensor, check_sensor, kept_sensors
from leastaction.model.shapes import Mesh, Shape
from leastaction.model.tendon import Tendon, check_tendons, make_tendon

if TYPE_CHECKING:
    from leastaction.model.model import Model

__all__ = ["Actuator", "Body", "ContactPair", "Frame", "Ground", "Joint", "Mechanism"]

LEFT_OUT = "left out: "
"""How a note on contact begins that the report of every run repeats."""

FEATURES = (
    "friction", "damping", "limits", "armature", "contacts", "constraints", "couplings", "forces", "stiffness",
    "actuators", "tendons",
)  # fmt: skip
"""What ``Mechanism.without`` can remove."""


class Mechanism(Record):
    """Bodies, joints and what acts on them, by name.

    Attributes:
        name: free text.
        gravity: (3,) acceleration, m/s^2.
        bodies, joints, frames, actuators, couplings, tendons: dictionaries by name.
        forces, constraints, contacts: lists.
        contact_excludes: pairs of body names that do not touch.
        key_frames: states with a name, for ``model.state(name)``.
        sensors: quantities that ``run.sensors`` has, by name.
        ground: the plane that every shape touches, or None.
        limits_enforced: whether limits and efforts are enforced; otherwise they are reported on.
        notes: what a loader could not honour, what was assumed about a mesh.
    """

    name: str
    gravity: FloatArray
    bodies: dict[str, Body]
    joints: dict[str, Joint]
    frames: dict[str, Frame]
    actuators: dict[str, Actuator]
    couplings: dict[str, Coupling]
    tendons: dict[str, Tendon]
    forces: list[Force]
    constraints: list[Constraint]
    contacts: list[ContactPair]
    contact_excludes: set[frozenset[str]]
    key_frames: dict[str, KeyFrame]
    sensors: dict[str, Sensor]
    ground: Ground | None
    limits_enforced: bool
    notes: list[str]

    def __init__(self, name: str = "mechanism", gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self.name = check_name(name, "mechanism")
        self.gravity = check_vector(gravity, 3, f"mechanism '{name}': gravity")
        self.bodies, self.joints, self.frames, self.actuators, self.couplings = {}, {}, {}, {}, {}
        self.ground, self.tendons = None, {}
        self.forces, self.constraints, self.contacts, self.contact_excludes = [], [], [], set()
        self.limits_enforced, self.notes, self.key_frames = False, [], {}
        self.sensors = {}

    def add_body(
        self,
        name: str,
        *,
        mass: float | None = None,
        com: Any = None,
        inertia: Any = None,
        shape: Shape | None = None,
        shapes: Iterable[Shape] = (),
        density: float | None = None,
    ) -> Body:
        """Add a rigid body.

        Mass and inertia together are taken as they are. Otherwise shapes give the inertia, that of a uniform body of
        all of them: with ``mass`` scaled to it, with ``density`` from their volume. Mass alone is a point mass at
        ``com``; neither mass nor density is a massless body.

        Args:
            name: unique among bodies; "world" is reserved.
            mass: kg.
            com: centre of mass (3,) in the link frame, metres; by default that of the shapes, or the origin where
                there are none or the inertia is given.
            inertia: about the centre of mass, link axes, kg m^2: (3, 3), 3 principal moments, or 6 numbers ixx, ixy,
                ixz, iyy, iyz, izz.
            shape: one shape.
            shapes: several.
            density: kg/m^3 of the shapes.
        """
        where = f"body '{check_name(name, 'body')}'"
        if name == WORLD:
            raise ModelError("body 'world': this name is reserved for the fixed world.")
        if name in self.bodies:
            raise ModelError(f"{where}: there is already a body of this name.")
        if name in self.frames:
            raise ModelError(f"{where}: there is already a frame of this name.")
        # shapes, then mass properties
        listed = ([] if shape is None else [shape]) + list(shapes)
        for item in listed:
            if not isinstance(item, Shape):
                raise ModelError(f"{where}: expected a shape such as leastaction.Box, got {item!r}.")
        properties = body_properties(where, mass, com, inertia, listed, density)
        # what was assumed about meshes
        for item in listed:
            if isinstance(item, Mesh):
                self.notes.extend(f"{where}: {note}" for note in item.notes)
        body = Body(name, properties.mass, properties.com, properties.inertia, tuple(listed))
        self.bodies[name] = body
        return body

    def add_joint(
        self,
        name: str,
        kind: str,
        *,
        parent: str,
        child: str,
        axis: Any = (0.0, 0.0, 1.0),
        axis2: Any = None,
        pitch: float = 0.0,
        parent_frame: Any = None,
        child_frame: Any = None,
        parts: Any = None,
        spline: Any = None,
        damping: Any = 0.0,
        stiffness: Any = 0.0,
        rest: Any = 0.0,
        friction: Any = 0.0,
        armature: Any = 0.0,
        limits: Any = None,
        effort: Any = None,
        speed: Any = None,
    ) -> Joint:
        """Add a joint; one whose child already has a parent closes a loop.

        Args:
            name: unique among joints.
            kind: fixed, revolute, continuous, prismatic, helical, cylindrical, universal, planar, planar_translation,
                translational, axis_rotation_free_translation, spherical, cylindrical_free, planar_free, free,
                composite or spline.
            parent: body name or "world"; the body may be added later.
            child: body name; the body may be added later.
            axis: direction in the joint frame; for planar kinds the normal.
            axis2: second direction of a universal joint.
            pitch: of a helical joint, metres per radian.
            parent_frame: pose (4, 4) of the joint frame in the parent link.
            child_frame: pose (4, 4) of the joint frame in the child link.
            parts: of a composite joint, [(kind, {axis, axis2, pitch, frame}), ...].
            spline: ``SplineCurve`` or ``SplineSurface`` of a spline joint.
            damping: one number or one per velocity coordinate; each may be a ``Law``.
            stiffness: one number or one per velocity coordinate; each may be a ``Law``.
            rest: coordinates at which the springs are relaxed; 0 is the neutral position.
            friction: Coulomb friction of fixed size, one number or one per velocity coordinate; or a ``Bearing``, whose
                friction follows the load of the joint.
            armature: rotor inertia, one number or one per velocity coordinate.
            limits: (low, high), or a list of them, one per screw coordinate and ball; None is no limit. The limit of a
                ball is (0, largest angle).
            effort: largest force or torque, one number or one per velocity coordinate.
            speed: largest rate, one number or one per velocity coordinate.
        """
        if name in self.joints or name in self.couplings:
            what = "joint" if name in self.joints else "coupling"
            raise ModelError(f"joint '{name}': there is already a {what} of this name.")
        joint = Joint(
            name, kind, parent, child, axis=axis, axis2=axis2, pitch=pitch, parent_frame=parent_frame,
            child_frame=child_frame, parts=parts, spline=spline, damping=damping, stiffness=stiffness, rest=rest,
            friction=friction, armature=armature, limits=limits, effort=effort, speed=speed,
        )  # fmt: skip
        check_joint(joint)
        self.joints[name] = joint
        return joint

    def add_frame(self, name: str, body: str, pose: Any = None) -> Frame:
        """Add a named pose (4, 4) on a body or on "world"."""
        where = f"frame '{check_name(name, 'frame')}'"
        if name in self.frames:
            raise ModelError(f"{where}: there is already a frame of this name.")
        if name in self.bodies or name == WORLD:
            raise ModelError(f"{where}: there is already a body of this name.")
        frame = Frame(name, check_name(body, f"{where}: body"), check_pose(pose, where))
        self.frames[name] = frame
        return frame

    def add_force(self, force: Force) -> Force:
        """Add a force such as ``PointSpring``."""
        if not isinstance(force, Force):
            raise ModelError(f"add_force: expected a force such as leastaction.PointSpring, got {force!r}.")
        self.forces.append(force)
        return force

    def add_constraint(self, constraint: Constraint) -> Constraint:
        """Add a constraint of the user's own."""
        if not isinstance(constraint, Constraint):
            raise ModelError(f"add_constraint: expected a leastaction.Constraint, got {constraint!r}.")
        self.constraints.append(constraint)
        return constraint

    def add_coupling(self, name: str, terms: Any, total: float = 0.0) -> Coupling:
        """Couple joints: the sum of the terms keeps the value ``total``, exactly, in every method that closes loops.

        Args:
            name: unique among couplings and joints.
            terms: {joint: coefficient}, such as {"wheel": 20, "pinion": 40} for two gears of 20 and 40 teeth; a list
                [c1, c2, ...] in place of a coefficient is the polynomial c1 q + c2 q^2 + ...; ("joint", 1) in place of
                a joint is its coordinate 1. Coordinates are those of turns (radians) and slides (metres).
            total: what the terms add up to.
        """
        if name in self.couplings or name in self.joints:
            raise ModelError(f"coupling '{name}': there is already a coupling or joint of this name.")
        self.couplings[name] = make_coupling(name, terms, total)
        return self.couplings[name]

    def add_tendon(
        self,
        name: str,
        joints: Any = None,
        *,
        path: Any = None,
        stiffness: float = 0.0,
        damping: float = 0.0,
        rest: Any = 0.0,
        limits: Any = None,
    ) -> Tendon:
        """Add a tendon: its length is the weighted sum of joint coordinates, or that of a path through space.

        Args:
            name: unique among tendons; actuators act on it by this name.
            joints: {joint: weight}, such as {"proximal": 0.01, "distal": 0.008}; turns and slides of one coordinate.
            path: in place of joints a list of points (body, point), of ``Wrap`` (a sphere or cylinder between two
                points that the path goes around), and of ``Pulley``, behind which another branch begins.
            stiffness: of a spring along it, N/m.
            damping: of a damper along it, N s/m.
            rest: length at which the spring is relaxed; or (low, high): it pulls beyond these, and not between them.
            limits: (low, high) of the length, None is no limit; enforced where limits of joints are.
        """
        if name in self.tendons:
            raise ModelError(f"tendon '{name}': there is already a tendon of this name.")
        self.tendons[name] = make_tendon(name, joints, path, stiffness, damping, rest, limits)
        return self.tendons[name]

    def enforce_limits(self, enforced: bool = True) -> None:
        """Ask methods to enforce limits and efforts; without it they are only reported on."""
        self.limits_enforced = check_flag(enforced, "enforce_limits")

    def add_ground(
        self,
        friction: float = 0.5,
        restitution: float = 0.0,
        normal: Any = (0.0, 0.0, 1.0),
        height: float = 0.0,
        heights: Any = None,
        spacing: Any = None,
    ) -> Ground:
        """Add a plane that every collision shape touches: points x with normal . x >= height (metres).

        Args:
            friction: Coulomb coefficient.
            restitution: 0 (no bounce) to 1.
            normal: direction out of the ground, world axes.
            height: metres along the normal.
            heights: (nx, ny) heights above the plane on a regular grid, metres, for ground that is not flat: rows along
                x, columns along y, the middle of the grid over the origin. Each cell is two triangles; beyond the
                border those of the border go on.
            spacing: distance of the points of the grid, metres; one number or two (x, y).
        """
        if self.ground is not None:
            raise ModelError("ground: there is one already; set mechanism.ground = None to replace it.")
        mu, e = check_contact(friction, restitution, "ground")
        axis = check_axis(normal, "ground: normal")
        if heights is not None:
            heights, spacing = check_heights(heights, spacing, axis)
        elif spacing is not None:
            raise ModelError("ground: spacing is that of heights; give both.")
        self.ground = Ground(mu, e, axis, check_number(height, "ground: height"), heights, spacing)
        return self.ground

    def add_contact(
        self,
        a: str,
        b: str,
        friction: float = 0.5,
        restitution: float = 0.0,
        points: Any = None,
        shapes: tuple[int | None, int | None] = (None, None),
        margin: float = 0.0,
    ) -> ContactPair:
        """Let two bodies touch; ``points`` (n, 3) on body a, in its link frame, replace its shapes.

        ``shapes`` picks one shape of a and of b by its place in the body; ``margin`` (metres) lets them touch earlier.
        """
        contact = ContactPair(a, b, friction, restitution, points, shapes, margin)
        check_pair(contact)
        if any(((c.a, c.b) == (a, b) or (c.a, c.b) == (b, a)) and c.overlaps(contact) for c in self.contacts):
            raise ModelError(f"contact '{a}' and '{b}': these two bodies are already a contact pair.")
        self.contacts.append(contact)
        return contact

    def add_contacts(
        self,
        bodies: Any = "all",
        others: Any = None,
        friction: float = 0.5,
        restitution: float = 0.0,
        exclude: Iterable[tuple[str, str]] = (),
    ) -> list[ContactPair]:
        """Let bodies touch each other, but for neighbours: those that are joined by a joint or fixed to each other.

        Pairs that are there already, or excluded by ``exclude_contact``, stay as they are.

        Args:
            bodies: "all" bodies described so far that have a collision shape, or names of bodies.
            others: bodies that these may touch, in place of each other: "all" or names.
            friction: Coulomb coefficient.
            restitution: 0 (no bounce) to 1.
            exclude: pairs of names that do not touch.
        """
        # none of these is a pair already
        found = [ContactPair(a, b, friction, restitution) for a, b in pairs_among(self, bodies, others, exclude)]
        for contact in found:
            check_pair(contact)
        self.contacts += found
        return found

    def exclude_contact(self, a: str, b: str) -> None:
        """Never let these two bodies touch."""
        self.contact_excludes.add(two_bodies(a, b, "exclude_contact"))

    def add_actuator(
        self,
        name: str,
        joint: str = "",
        *,
        tendon: str = "",
        gear: float | ArrayLike = 1.0,
        coordinate: int = 0,
        effort: float | None = None,
        kp: float = 0.0,
        kd: float = 0.0,
        target: float = 0.0,
        input_range: tuple[float, float] | None = None,
        lag: float = 0.0,
        integrates: bool = False,
        activation_range: tuple[float, float] | None = None,
    ) -> Actuator:
        """Add a motor on a tendon or a joint's velocity coordinate, or with a gain kp or kd a servo; see `Actuator`."""
        if name in self.actuators:
            raise ModelError(f"actuator '{name}': there is already an actuator of this name.")
        given: Any = gear
        actuator = Actuator(name, joint, given, coordinate, effort, kp, kd, target, input_range, tendon)
        actuator.lag, actuator.integrates, actuator.activation_range = lag, integrates, activation_range
        check_actuator(actuator, self.joints.get(joint) if isinstance(joint, str) else None)
        self.actuators[name] = actuator
        return actuator

    def add_key_frame(self, name: str, q: Any = (), v: Any = (), t: float = 0.0, inputs: Any = ()) -> KeyFrame:
        """Add a state with a name; q, v and inputs are dicts by joint and actuator, see ``KeyFrame``."""
        if name in self.key_frames:
            raise ModelError(f"key frame '{name}': there is already one of this name.")
        key = self.key_frames[name] = made_key_frame(name, q, v, t, inputs, self.joints, self.actuators)
        return key

    def add_sensor(self, name: str, kind: str, target: str = "", **options: Any) -> Sensor:
        """Add a sensor of a joint, a body or a frame; kinds and options are those of ``Sensor``."""
        if name in self.sensors:
            raise ModelError(f"sensor '{name}': there is already one of this name.")
        sensor = Sensor(name, kind, target, **options)
        check_sensor(sensor, self)
        self.sensors[name] = sensor
        return sensor

    def remove_body(self, name: str) -> None:
        """Remove a body and all that is attached to it: joints, frames, forces, constraints, contacts."""
        self._known(name, self.bodies, "body")
        for joint in [j.name for j in self.joints.values() if name in (j.parent, j.child)]:
            self.remove_joint(joint)
        self.frames = {key: frame for key, frame in self.frames.items() if frame.body != name}
        self.forces = [force for force in self.forces if name not in force.bodies]
        self.tendons = {key: each for key, each in self.tendons.items() if name not in each.bodies}
        self.actuators = {
            k: each for k, each in self.actuators.items() if not each.tendon or each.tendon in self.tendons
        }
        self.constraints = [constraint for constraint in self.constraints if name not in constraint.bodies]
        self.contacts = [pair for pair in self.contacts if name not in (pair.a, pair.b)]
        self.contact_excludes = {pair for pair in self.contact_excludes if name not in pair}
        del self.bodies[name]
        self.sensors = kept_sensors(self)

    def remove_joint(self, name: str) -> None:
        """Remove a joint, its actuators, couplings and tendons."""
        self._known(name, self.joints, "joint")
        self.couplings = {key: each for key, each in self.couplings.items() if name not in each.joints}
        self.tendons = {key: each for key, each in self.tendons.items() if name not in each.joints}
        self.actuators = {
            key: each
            for key, each in self.actuators.items()
            if each.joint != name and (not each.tendon or each.tendon in self.tendons)
        }
        del self.joints[name]
        self.sensors = kept_sensors(self)
        for key in self.key_frames.values():
            key.forget(name, self.actuators)

    def lock(self, joint: str, q: Any = None) -> None:
        """Hold a joint at coordinates q (by default neutral) from build on."""
        self._known(joint, self.joints, "joint")
        found = self.joints[joint]
        found.locked = check_coordinates(found, found.neutral if q is None else q, f"joint '{joint}': lock")

    def unlock(self, joint: str) -> None:
        """Undo ``lock``."""
        self._known(joint, self.joints, "joint")
        self.joints[joint].locked = None

    def copy(self) -> Mechanism:
        """An independent copy; shapes, forces and constraints are immutable and shared."""
        out = Mechanism(self.name, self.gravity)
        out.bodies = {key: dataclasses.replace(body) for key, body in self.bodies.items()}
        out.joints = {key: dataclasses.replace(joint) for key, joint in self.joints.items()}
        out.frames = {key: dataclasses.replace(frame) for key, frame in self.frames.items()}
        out.actuators = {key: dataclasses.replace(actuator) for key, actuator in self.actuators.items()}
        out.key_frames = {name: key.copy() for name, key in self.key_frames.items()}
        out.couplings, out.tendons = dict(self.couplings), dict(self.tendons)
        out.sensors = {name: dataclasses.replace(sensor) for name, sensor in self.sensors.items()}
        out.forces, out.constraints = list(self.forces), list(self.constraints)
        out.contacts = [dataclasses.replace(pair) for pair in self.contacts]
        out.contact_excludes = set(self.contact_excludes)
        out.ground = None if self.ground is None else dataclasses.replace(self.ground)
        out.limits_enforced, out.notes = self.limits_enforced, list(self.notes)
        return out

    def without(self, *features: str) -> Mechanism:
        """A copy without some features.

        Names: friction, damping, stiffness, armature, limits (all of joints; limits are then not enforced either),
        contacts (pairs and ground), constraints (the user's own; loops stay), couplings, forces (added by
        ``add_force``), actuators (motors and servos), tendons (with the actuators on them).
        """
        for feature in features:
            if feature not in FEATURES:
                raise ModelError(f"without: unknown feature {feature!r}; the features are {', '.join(FEATURES)}.")
        out = self.copy()
        # data of joints
        for joint in out.joints.values():
            for feature in ("friction", "damping", "stiffness", "armature"):
                if feature in features:
                    setattr(joint, feature, frozen(np.zeros(joint.nv)))
            if "limits" in features:
                joint.limits = frozen(np.tile([-np.inf, np.inf], (len(joint.limits), 1)))
        if "limits" in features:
            free = (-np.inf, np.inf)
            out.tendons = {key: dataclasses.replace(each, limits=free) for key, each in out.tendons.items()}
        # lists of the mechanism
        if "limits" in features:
            out.limits_enforced = False
        if "contacts" in features:
            out.contacts, out.ground = [], None
        if "constraints" in features:
            out.constraints = []
        if "couplings" in features:
            out.couplings = {}
        if "forces" in features:
            out.forces = []
        if "tendons" in features:
            out.tendons = {}
            out.actuators = {key: each for key, each in out.actuators.items() if not each.tendon}
        if "actuators" in features:
            out.actuators = {}
        for state in out.key_frames.values():
            state.inputs = {key: value for key, value in state.inputs.items() if key in out.actuators}
        return out

    def check(self) -> None:
        """Check everything again, for records that were edited by hand; done by ``build`` and by the writers."""
        check_name(self.name, "mechanism")
        self.gravity = check_vector(self.gravity, 3, f"mechanism '{self.name}': gravity")
        # records stand under their own names
        for what, records in self._records().items():
            for key, record in records.items():
                if record.name != key:
                    raise ModelError(f"{what} '{key}': the record says '{record.name}'; names and keys must agree.")
        # each record
        for body in self.bodies.values():
            where = f"body '{body.name}'"
            body.mass = check_number(body.mass, f"{where}: mass", nonnegative=True)
            body.com = check_vector(body.com, 3, f"{where}: com")
            body.inertia = symmetric_inertia(body.inertia, where)
        for joint in self.joints.values():
            check_joint(joint)
        for frame in self.frames.values():
            frame.pose = check_pose(frame.pose, f"frame '{frame.name}'")
        for actuator in self.actuators.values():
            what, known = ("tendon", self.tendons) if actuator.tendon else ("joint", self.joints)
            self._known(actuator.tendon or actuator.joint, known, what, f"actuator '{actuator.name}': ")
            check_actuator(actuator, self.joints.get(actuator.joint))
        for state in self.key_frames.values():
            check_key_frame(state, self.joints, self.actuators)
        check_couplings(self)
        check_tendons(self)
        for sensor in self.sensors.values():
            check_sensor(sensor, self)
        self._check_contacts()
        self._check_references()

    def build(self) -> Model:
        """The frozen model that methods run on."""
        from leastaction.model.build import build

        self.check()
        return build(self)

    def __repr__(self) -> str:
        return f"Mechanism('{self.name}', {len(self.bodies)} bodies, {len(self.joints)} joints)"

    def _records(self) -> dict[str, dict[str, Any]]:
        """The dictionaries of named records."""
        parts = (self.bodies, self.joints, self.frames, self.actuators, self.key_frames)
        return dict(zip(("body", "joint", "frame", "actuator", "key frame"), parts, strict=True))

    def _check_contacts(self) -> None:
        """Ground and contact pairs have valid numbers, and no pair stands twice."""
        if self.ground is not None:
            self.ground.friction, self.ground.restitution = check_contact(
                self.ground.friction, self.ground.restitution, "ground"
            )
        seen: dict[frozenset[str], list[ContactPair]] = {}
        for pair in self.contacts:
            others = seen.setdefault(check_pair(pair), [])
            if any(pair.overlaps(other) for other in others):
                raise ModelError(f"contact '{pair.a}' and '{pair.b}': these two bodies are a contact pair twice.")
            others.append(pair)

    def _check_references(self) -> None:
        """Every body that something names exists."""
        known = {WORLD: None, **self.bodies}
        for joint in self.joints.values():
            self._known(joint.parent, known, "body", f"joint '{joint.name}': parent: ")
            self._known(joint.child, known, "body", f"joint '{joint.name}': child: ")
        for frame in self.frames.values():
            self._known(frame.body, known, "body", f"frame '{frame.name}': ")
        acting: list[Force | Constraint] = [*self.forces, *self.constraints]
        for item in acting:
            for body in item.bodies:
                self._known(body, known, "body", f"{item.label}: ")
        for names in (*((pair.a, pair.b) for pair in self.contacts), *map(sorted, self.contact_excludes)):
            for body in names:
                self._known(body, known, "body", f"contact '{names[0]}' and '{names[1]}': ")

    def _known(self, name: Any, records: dict[str, Any], what: str, where: str = "") -> None:
        """Raise unless a record of this name exists."""
        if name not in records:
            raise ModelError(f"{where}there is no {what} {name!r}; there are {quoted(list(records)[:20])}.")
