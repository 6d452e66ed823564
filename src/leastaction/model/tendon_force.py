"""What tendons do, as forces on bodies and inequalities that compiled code knows: made by ``build``, never by users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.jit.callbacks import Callback
from leastaction.model.actuation import tendon_servos
from leastaction.model.checks import FloatArray
from leastaction.model.compiled_force import CompiledForce, call_function
from leastaction.model.constraints import Constraint
from leastaction.model.elements import Actuator, Joint
from leastaction.model.joints import plane_basis
from leastaction.model.tendon import Pulley, Tendon, Via

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class Course:
    """The bodies that a tendon acts on, and what compiled code needs to know of its way.

    Attributes:
        tendon: the tendon.
        bodies: each once.
        numbers: what belongs to the way, see ``forces/laws/tendon.py`` and ``forces/laws/path_tendon.py``.
        terms: how many terms there are.
    """

    tendon: Tendon
    bodies: tuple[str, ...]
    numbers: FloatArray
    terms: int

    def function(self, what: str) -> Any:
        """A compiled function of its kind: "wrench", "derivatives", "length" or "limits"."""
        from leastaction.forces.laws import path_tendon, tendon

        if self.tendon.path:
            return getattr(path_tendon, f"path_tendon_{what}")
        return getattr(tendon, f"joint_tendon_{what}")

    def given(self, law: tuple[float, ...]) -> FloatArray:
        """All numbers of a law: size, bodies, terms, the twelve of the law, and those of the way."""
        out = np.concatenate([[0.0, len(self.bodies), self.terms], law, self.numbers])
        out[0] = len(out)
        return out

    def length(self, poses: FloatArray) -> float:
        """Length at poses (k, 4, 4) of the bodies."""
        return float(self._measured(poses)[0])

    def derivative(self, poses: FloatArray) -> FloatArray:
        """g (k, 6): derivative of the length by displacements of the bodies at poses (k, 4, 4), in link axes."""
        return self._measured(poses)[1:].reshape(-1, 6)

    def _measured(self, poses: FloatArray) -> FloatArray:
        """Length, and g behind it."""
        given = _numbers_first(self.given((0.0,) * 12), poses, np.zeros((len(poses), 6)))
        return call_function(self.function("length").address, 0.0, given, 1 + 6 * len(poses))


@dataclass(frozen=True, eq=False)
class TendonForce(CompiledForce):
    """The spring and the damper of a tendon, or those of a servo that acts on it.

    Attributes:
        course: its way.
        stiffness: of the length.
        damping: of the length.
        rest: dead band of the spring.
        effort: range of the force of a servo with its input, infinite where there is none.
        entry: entry of the control that holds the input of the servo, or -1.
        share: the input's force for a unit of that entry.
        constant: a force that is always there.
        passive: what a muscle does by itself: twice its force at the knee, the length where it is taut, and the knee.
        name: for messages.
    """

    course: Course
    stiffness: float
    damping: float
    rest: tuple[float, float]
    effort: tuple[float, float] = (-np.inf, np.inf)
    entry: int = -1
    share: float = 0.0
    constant: float = 0.0
    passive: tuple[float, float, float] = (0.0, 0.0, 1.0)
    name: str | None = None

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The bodies it acts on."""
        return self.course.bodies

    @property
    def conservative(self) -> bool:
        """Without a damper."""
        return self.damping == 0

    @property
    def law(self) -> tuple[Any, Any]:
        """Wrench and derivatives."""
        return self.course.function("wrench"), self.course.function("derivatives")

    @property
    def length_function(self) -> Any:
        """Length and g."""
        return self.course.function("length")

    @property
    def numbers(self) -> FloatArray:
        """Numbers of the law."""
        place = (float(self.entry), self.share, self.constant)
        return self.course.given((self.stiffness, *self.rest, self.damping, *self.effort, *place, *self.passive))

    def length(self, poses: FloatArray) -> float:
        """Length at poses (k, 4, 4) of its bodies."""
        return self.course.length(poses)

    @property
    def is_bounded(self) -> bool:
        """Whether its force has a bound."""
        return bool(np.isfinite(self.effort).any())

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy of the spring, joules; beyond a largest force it grows by this force alone."""
        k, (f, taut, knee) = self.stiffness, self.passive
        if not (k or f or self.constant):
            return 0.0
        length, (low, high) = self.length(poses), self.rest
        stretch = length - min(max(length, low), high)
        out = 0.5 * k * stretch**2 - self.constant * length
        # beyond a bound of the force -k s
        for bound in self.effort if k > 0 else ():
            if np.isfinite(bound) and (-k * stretch - bound) * np.sign(bound) > 0:
                out -= 0.5 * k * (stretch + bound / k) ** 2
        if f:
            x = (length - taut) / (knee - taut)
            out += f * (knee - taut) * (x**3 / 6.0 if 0 < x <= 1 else 0.5 * x * (x - 1) + 1 / 6 if x > 1 else 0.0)
        return float(out)

    def _given(self, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """What the law gets: its numbers, then the bodies."""
        return _numbers_first(self.numbers, poses, twists)


def _numbers_first(numbers: FloatArray, poses: FloatArray, twists: FloatArray) -> FloatArray:
    """Numbers, then 18 of each body."""
    k = len(poses)
    rows = np.concatenate([poses[:, :3, :3].reshape(k, 9), poses[:, :3, 3], twists], axis=1)
    return np.concatenate([numbers, rows.ravel()])


@dataclass(frozen=True, eq=False)
class TendonLimit(Constraint):
    """Limits of the length of a tendon, as an inequality of one or two rows."""

    numbers: FloatArray = None  # type: ignore[assignment]
    compiled: Any = None

    @property
    def label(self) -> str:
        """Words that name it in messages."""
        return f"the limits of tendon '{self.name}'"

    @property
    def callback(self) -> Callback:
        """Its compiled function."""
        return Callback(self.compiled.address, self)


def tendon_limit(course: Course) -> TendonLimit:
    """The limits of a tendon as an inequality on its bodies."""
    low, high = course.tendon.limits
    numbers, k = course.given((0.0, low, high, *np.zeros(9))), len(course.bodies)
    size, compiled = int(np.isfinite([low, high]).sum()), course.function("limits")

    def part(which: slice) -> Callable[[FloatArray], FloatArray]:
        def call(poses: FloatArray) -> FloatArray:
            given = _numbers_first(numbers, poses, np.zeros((k, 6)))
            return call_function(compiled.address, 0.0, given, size * (1 + 6 * k))[which]

        return call

    jacobian = part(slice(size, None))
    return TendonLimit(
        course.bodies, part(slice(0, size)), lambda poses: jacobian(poses).reshape(size, 6 * k), kind="inequality",
        size=size, name=course.tendon.name, numbers=numbers, compiled=compiled,
    )  # fmt: skip


def course_over_joints(tendon: Tendon, joints: dict[str, Joint]) -> Course:
    """The way of a tendon over joints."""
    over = [joints[name] for name in tendon.joints]
    bodies = tuple(dict.fromkeys(body for joint in over for body in (joint.parent, joint.child)))
    g, terms = np.zeros((len(bodies), 6)), []
    for joint, weight in zip(over, tendon.joints.values(), strict=True):
        ends = bodies.index(joint.parent), bodies.index(joint.child)
        P, C, turns = joint.parent_frame, joint.child_frame, joint.kind != "prismatic"
        in_parent, in_child = P[:3, :3] @ joint.axis, C[:3, :3] @ joint.axis
        if turns:
            low, high = (float(end) for end in joint.limits[0])
            middle = 0.5 * (low + high) if np.isfinite([low, high]).all() else 0.0
            u, _ = plane_basis(joint.axis)
            w = np.cross(joint.axis, u)
            turned = np.cos(middle) * u + np.sin(middle) * w
            data = [P[:3, :3] @ turned, P[:3, :3] @ np.cross(joint.axis, turned), C[:3, :3] @ u]
            g[ends[1], :3] += weight * in_child
            g[ends[0], :3] -= weight * in_parent
        else:
            middle, data = 0.0, [in_parent, P[:3, 3], C[:3, 3]]
            g[ends[1]] += weight * np.concatenate([np.cross(C[:3, 3], in_child), in_child])
            g[ends[0]] -= weight * np.concatenate([np.cross(P[:3, 3], in_parent), in_parent])
        terms.append(np.concatenate([[float(turns), weight, *ends, middle], *data]))
    return Course(tendon, bodies, np.concatenate([g.ravel(), *terms]), len(terms))


def course_along_path(tendon: Tendon) -> Course:
    """The way of a tendon through space."""
    bodies, rows = tendon.bodies, []
    for each in tendon.path:
        row = np.zeros(20)
        if isinstance(each, Pulley):
            row[0], row[5] = 3.0, each.divisor
        elif isinstance(each, Via):
            row[1], row[2:5] = bodies.index(each.body), each.point
        else:
            row[0] = 1.0 if each.shape == "sphere" else 2.0
            row[1], row[2:5], row[5] = bodies.index(each.body), each.pose[:3, 3], each.radius
            row[6:15] = each.pose[:3, :3].ravel()
            if each.side is not None:
                row[15], row[16], row[17:20] = 1.0, bodies.index(each.side.body), each.side.point
        rows.append(row)
    return Course(tendon, bodies, np.concatenate(rows), len(rows))


def course_of(tendon: Tendon, joints: dict[str, Joint]) -> Course:
    """The way of a tendon."""
    return course_along_path(tendon) if tendon.path else course_over_joints(tendon, joints)


def add_tendon_forces(mechanism: Mechanism) -> None:
    """Add what tendons and servos on them do to a mechanism that is about to be built."""
    mechanism.forces = [force for force in mechanism.forces if not isinstance(force, TendonForce)]
    mechanism.constraints = [each for each in mechanism.constraints if not isinstance(each, TendonLimit)]
    for tendon in mechanism.tendons.values():
        servos = tendon_servos(mechanism.actuators.values(), tendon.name)
        bounded = tendon.has_limits and mechanism.limits_enforced
        if not (tendon.stiffness or tendon.damping or servos or bounded):
            continue
        course = course_of(tendon, mechanism.joints)
        if tendon.stiffness or tendon.damping:
            mechanism.forces.append(
                TendonForce(course, tendon.stiffness, tendon.damping, tendon.rest, name=tendon.name)
            )
        entry, share = _input_of(tendon, mechanism) if servos else (-1, 0.0)
        strength = [servo.ratio**2 * servo.kp for servo in servos]
        if not any(strength):
            strength = [servo.ratio**2 * servo.kd for servo in servos]
        for servo, part in zip(servos, strength, strict=True):
            mechanism.forces.append(_servo(course, servo, mechanism, entry, share * part / sum(strength)))
        if bounded:
            mechanism.constraints.append(tendon_limit(course))


def _servo(course: Course, servo: Actuator, mechanism: Mechanism, entry: int, share: float) -> TendonForce:
    """The spring and the damper of a servo behind its gear."""
    rest, effort = servo.target / servo.ratio, (-np.inf, np.inf)
    if mechanism.limits_enforced and servo.effort is not None:
        effort = -abs(servo.ratio) * servo.effort, abs(servo.ratio) * servo.effort
    k, d = servo.ratio**2 * servo.kp, servo.ratio**2 * servo.kd
    return TendonForce(course, k, d, (rest, rest), effort, entry, share, name=servo.name)


def _input_of(tendon: Tendon, mechanism: Mechanism) -> tuple[int, float]:
    """Entry of the control of a joint that nothing else drives, and one over its weight; -1 where there is none."""
    at = 0
    for name, joint in mechanism.joints.items():
        moves = joint.kind != "fixed" and joint.locked is None
        if moves and name in tendon.joints and not _driven_elsewhere(name, tendon, mechanism):
            return at, 1.0 / tendon.joints[name]
        at += joint.nv if moves else 0
    return -1, 0.0


def _driven_elsewhere(joint: str, tendon: Tendon, mechanism: Mechanism) -> bool:
    """Whether another actuator than those on the tendon drives a joint."""
    return any(
        each.joint == joint or (each.tendon not in ("", tendon.name) and joint in mechanism.tendons[each.tendon].joints)
        for each in mechanism.actuators.values()
    )
