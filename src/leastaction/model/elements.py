"""The pieces of a mechanism: bodies, joints, frames, ground, contact pairs, actuators.

They are plain records that a user may edit; ``Mechanism`` checks them when they are added and again at build.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastaction.model import joints
from leastaction.model.bearing import Bearing
from leastaction.model.checks import FloatArray, frozen
from leastaction.model.inertia import MassProperties
from leastaction.model.joints import JointPart, Law
from leastaction.model.record import Record
from leastaction.model.shapes import Shape
from leastaction.model.spline import Spline


def _identity() -> FloatArray:
    return frozen(np.eye(4))


@dataclass(eq=False)
class Body(Record):
    """A rigid link.

    Attributes:
        name: unique among bodies.
        mass: kg; 0 is massless.
        com: centre of mass (3,) in the link frame, metres.
        inertia: (3, 3) about the centre of mass, link axes, kg m^2.
        shapes: geometry for contact and pictures.
        unread_shapes: collision shapes that a file has and that could not be read, in words.
    """

    name: str
    mass: float
    com: FloatArray
    inertia: FloatArray
    shapes: tuple[Shape, ...] = ()
    unread_shapes: tuple[str, ...] = ()

    @property
    def mass_properties(self) -> MassProperties:
        """Mass, centre of mass and inertia together, checked."""
        return MassProperties(self.mass, self.com, self.inertia)


Coefficients = FloatArray | tuple[float | Law, ...]
"""One number per velocity coordinate; a tuple where some of them are laws."""


@dataclass(eq=False)
class Joint(Record):
    """A joint between two bodies; one whose child already has a parent closes a loop.

    pose_child = pose_parent @ parent_frame @ motion(q) @ inverse(child_frame).

    Attributes:
        name: unique among joints.
        kind: see ``leastaction.model.joints.KINDS``.
        parent: body name or "world".
        child: body name.
        axis: unit vector (3,) in the joint frame; for planar kinds the normal.
        axis2: second axis of a universal joint, else None.
        pitch: of a helical joint, metres per radian.
        parent_frame: pose (4, 4) of the joint frame in the parent link.
        child_frame: pose (4, 4) of the joint frame in the child link.
        parts: of a composite joint.
        spline: curve or surface of a spline joint, else None.
        damping: (nv,) N s/m or N m s/rad; a tuple where some entries are laws.
        stiffness: (nv,) N/m or N m/rad; a tuple where some entries are laws.
        rest: (nq,) coordinates at which the springs are relaxed.
        friction: (nv,) Coulomb friction of fixed size, N or N m; or a ``Bearing``, by the load of the joint.
        armature: (nv,) rotor inertia, kg or kg m^2.
        limits: (nl, 2) lower and upper bound of every screw coordinate and every ball angle; infinite where none.
        effort: (nv,) largest force or torque; infinite where none.
        speed: (nv,) largest rate; infinite where none.
        locked: coordinates (nq,) at which the joint is held at build, or None.
        start: coordinates (nq,) of the default state, or None where they are neutral.
    """

    name: str
    kind: str
    parent: str
    child: str
    axis: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    axis2: FloatArray | None = None
    pitch: float = 0.0
    parent_frame: FloatArray = field(default_factory=_identity)
    child_frame: FloatArray = field(default_factory=_identity)
    parts: tuple[JointPart, ...] = ()
    spline: Spline | None = None
    damping: Coefficients = 0.0  # type: ignore[assignment]
    stiffness: Coefficients = 0.0  # type: ignore[assignment]
    rest: FloatArray = 0.0  # type: ignore[assignment]
    friction: FloatArray | Bearing = 0.0  # type: ignore[assignment]
    armature: FloatArray = 0.0  # type: ignore[assignment]
    limits: FloatArray = None  # type: ignore[assignment]
    effort: FloatArray = None  # type: ignore[assignment]
    speed: FloatArray = None  # type: ignore[assignment]
    locked: FloatArray | None = None
    start: FloatArray | None = None

    @property
    def nq(self) -> int:
        """Position coordinates."""
        return len(self.coordinate_names)

    @property
    def nv(self) -> int:
        """Velocity coordinates."""
        return len(self.velocity_names)

    @property
    def neutral(self) -> FloatArray:
        """Neutral coordinates (nq,)."""
        return joints.neutral(self)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the position coordinates."""
        return joints.coordinate_names(self)

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the velocity coordinates."""
        return joints.velocity_names(self)

    @property
    def damping_values(self) -> FloatArray:
        """Linear damping (nv,), zero where a law stands."""
        return _values(self.damping)

    @property
    def damping_laws(self) -> dict[int, Law]:
        """Damping laws by velocity coordinate."""
        return _laws(self.damping)

    @property
    def stiffness_values(self) -> FloatArray:
        """Linear stiffness (nv,), zero where a law stands."""
        return _values(self.stiffness)

    @property
    def stiffness_laws(self) -> dict[int, Law]:
        """Stiffness laws by velocity coordinate."""
        return _laws(self.stiffness)

    @property
    def friction_values(self) -> FloatArray:
        """Friction of fixed size (nv,), zero where a bearing stands."""
        return np.zeros(self.nv) if isinstance(self.friction, Bearing) else self.friction

    @property
    def bearing(self) -> Bearing | None:
        """The bearing, or None."""
        return self.friction if isinstance(self.friction, Bearing) else None

    @property
    def has_limits(self) -> bool:
        """Whether any coordinate has a bound."""
        return bool(np.isfinite(self.limits).any())


@dataclass(eq=False)
class Frame(Record):
    """A named pose (4, 4) on a body (or on "world")."""

    name: str
    body: str
    pose: FloatArray


@dataclass(eq=False)
class Ground(Record):
    """A plane that every collision shape touches: points x with normal . x >= height.

    Attributes:
        friction: Coulomb coefficient.
        restitution: 0 (no bounce) to 1.
        normal: unit vector (3,), world axes.
        height: metres along the normal.
        heights: (nx, ny) heights above the plane on a regular grid around the origin, metres, or None.
        spacing: (2,) distances of the grid's points along x and y, metres, or None.
    """

    friction: float
    restitution: float
    normal: FloatArray
    height: float
    heights: FloatArray | None = None
    spacing: FloatArray | None = None


@dataclass(eq=False)
class ContactPair(Record):
    """Two bodies that may touch.

    Attributes:
        a: body name.
        b: body name.
        friction: Coulomb coefficient.
        restitution: 0 (no bounce) to 1.
        points: (n, 3) contact points on body a in its link frame, placed by hand, or None to take the shapes.
        shapes: place of one shape among those of body a and of body b; None stands for all of them.
        margin: distance at which the two already touch, metres.
    """

    a: str
    b: str
    friction: float
    restitution: float
    points: FloatArray | None = None
    shapes: tuple[int | None, int | None] = (None, None)
    margin: float = 0.0

    def overlaps(self, other: ContactPair) -> bool:
        """Whether some two shapes belong to both pairs."""
        mine, theirs = ({p.a: p.shapes[0], p.b: p.shapes[1]} for p in (self, other))
        return mine.keys() == theirs.keys() and all(
            mine[name] is None or theirs[name] is None or mine[name] == theirs[name] for name in mine
        )


@dataclass(eq=False)
class Actuator(Record):
    """A motor or servo on one velocity coordinate of a joint or on a tendon, or a motor on all of a joint.

    The generalised force of a motor is gear * input, that of a servo gear * (kp (target - gear q) - kd gear v). Without
    kp the target is a rate: gear * kd (target - gear v).

    Attributes:
        name: unique among actuators.
        joint: joint name, or "" where it acts on a tendon, whose length and rate stand for q and v then.
        gear: transmission ratio; of a motor also a vector (nv,) for all velocity coordinates of the joint, such as the
            torque and force of a thruster on a free joint, in its link's axes.
        coordinate: index of the joint's velocity coordinate, where the gear is one number.
        effort: largest magnitude of a motor's input, or of a servo's force before its gear; or None.
        kp: position gain of a servo, N/m or N m/rad.
        kd: rate gain of a servo, N s/m or N m s/rad.
        target: where a servo pulls as long as its input says nothing else, metres or radians behind the gear.
        input_range: (low, high) that inputs are cut to where limits are enforced, or None.
        tendon: tendon name, or "".
        lag: time constant of a filter between input and force, seconds; 0 is none.
        integrates: whether the input is a rate that is added up before it acts.
        activation_range: (low, high) that the result of the filter or integrator is cut to, or None.
    """

    name: str
    joint: str
    gear: float | FloatArray = 1.0
    coordinate: int = 0
    effort: float | None = None
    kp: float = 0.0
    kd: float = 0.0
    target: float = 0.0
    input_range: tuple[float, float] | None = None
    tendon: str = ""
    lag: float = 0.0
    integrates: bool = False
    activation_range: tuple[float, float] | None = None

    @property
    def has_activation(self) -> bool:
        """Whether a filter or integrator stands between input and force."""
        return self.lag > 0 or self.integrates

    @property
    def is_servo(self) -> bool:
        """Whether it has a gain, so that it acts by itself."""
        return self.kp > 0 or self.kd > 0

    @property
    def ratio(self) -> float:
        """The gear of an actuator on one coordinate."""
        return float(self.gear)

    def gears(self, nv: int) -> FloatArray:
        """The gear on each of the nv velocity coordinates of its joint."""
        if np.ndim(self.gear):
            return np.asarray(self.gear)
        out = np.zeros(nv)
        out[int(self.coordinate)] = self.gear
        return out


def _values(coefficients: Any) -> FloatArray:
    """The numbers among coefficients, zero where a law stands."""
    return np.array([0.0 if isinstance(c, Law) else float(c) for c in coefficients])


def _laws(coefficients: Any) -> dict[int, Law]:
    """The laws among coefficients, by their place."""
    return {i: c for i, c in enumerate(coefficients) if isinstance(c, Law)}
