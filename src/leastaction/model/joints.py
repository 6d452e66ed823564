"""The joint table: for every kind its coordinates, its factors, and its rows when it closes a loop.

A joint is a sequence of factors: screws (one coordinate, constant twist) and balls (a rotation), or one spline, whose
twists vary with its coordinates. They act in the joint frame:
pose_child = pose_parent @ parent_frame @ motion(q) @ inverse(child_frame).

Loop rows are those of Bruedigam et al. 2023, Table B.2 (two general constraint functions, one on the relative
position, one on the relative rotation), with the universal and the helical joint added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_axis, check_number, check_quaternion, frozen
from leastaction.model.pose import check_pose
from leastaction.model.spline import Spline, check_ends

_IDENTITY = frozen(np.eye(4))
_AXES = {"x": frozen([1.0, 0.0, 0.0]), "y": frozen([0.0, 1.0, 0.0]), "z": frozen([0.0, 0.0, 1.0])}
_QUATERNION = ("qw", "qx", "qy", "qz")
_ANGULAR = ("wx", "wy", "wz")

ScrewKind = Literal["revolute", "prismatic", "helical"]


@dataclass(frozen=True, eq=False)
class Screw:
    """A factor with one coordinate and a constant twist.

    Attributes:
        axis: unit vector (3,) in the joint frame (after ``before``).
        pitch: metres per radian, for a helical factor; 0 otherwise.
        kind: "revolute" (coordinate in radians), "prismatic" (metres) or "helical" (radians).
        before: constant pose (4, 4) in front of the motion.
    """

    axis: FloatArray
    pitch: float = 0.0
    kind: ScrewKind = "revolute"
    before: FloatArray = field(default_factory=lambda: _IDENTITY)

    nq = 1
    nv = 1

    @property
    def twist(self) -> FloatArray:
        """Twist (angular; linear) (6,) per unit rate."""
        if self.kind == "prismatic":
            return np.concatenate([np.zeros(3), self.axis])
        return np.concatenate([self.axis, self.pitch * self.axis])


@dataclass(frozen=True, eq=False)
class Ball:
    """A rotation factor: quaternion (w, x, y, z), velocity the angular velocity in the rotated frame.

    Attributes:
        before: constant pose (4, 4) in front of the motion.
    """

    before: FloatArray = field(default_factory=lambda: _IDENTITY)

    nq = 4
    nv = 3


@dataclass(frozen=True, eq=False)
class SplineFactor:
    """A motion along a curve or on a surface of poses.

    Attributes:
        spline: the curve or surface.
        before: constant pose (4, 4) in front of the motion.
    """

    spline: Spline
    before: FloatArray = field(default_factory=lambda: _IDENTITY)

    @property
    def nq(self) -> int:
        """Coordinates."""
        return self.spline.size

    @property
    def nv(self) -> int:
        """Rates."""
        return self.spline.size


Factor = Screw | Ball | SplineFactor


@dataclass(frozen=True)
class Law:
    """A nonlinear spring or damper on one screw coordinate of a joint.

    Attributes:
        force: x -> generalised force with its sign (a linear spring is ``lambda q: -k * q``); x is the coordinate for
            a stiffness law, its rate for a damping law.
        derivative: x -> d force / dx.
        energy: x -> potential energy with force = -d energy / dx; for stiffness laws, optional.
        name: for messages.
    """

    force: Callable[[float], float]
    derivative: Callable[[float], float]
    energy: Callable[[float], float] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        for what in ("force", "derivative"):
            if not callable(getattr(self, what)):
                raise ModelError(f"Law: {what} must be a function of one number, got {getattr(self, what)!r}.")
        if self.energy is not None and not callable(self.energy):
            raise ModelError(f"Law: energy must be a function of one number or None, got {self.energy!r}.")


@dataclass(frozen=True)
class JointKind:
    """One row of the table.

    Attributes:
        name: the kind.
        pieces: (factor kind, direction) in order. Directions: "axis" and "axis2" as given by the user, "u" and "v" the
            plane perpendicular to ``axis`` (``plane_basis``), "x", "y", "z" those of the joint frame.
        coordinate_names: one per entry of q.
        velocity_names: one per entry of v.
        translation: which relative positions are locked when the joint closes a loop: "all", "plane" (perpendicular to
            the axis), "axis" (along it) or "none"; None if the kind cannot close a loop.
        rotation: the same for relative rotations.
        coupling: "universal" or "helical" where one more row couples them.
    """

    name: str
    pieces: tuple[tuple[str, str], ...]
    coordinate_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    translation: str | None
    rotation: str | None
    coupling: str | None = None

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
        """Neutral coordinates (nq,): zeros, and (1, 0, 0, 0) for a ball."""
        out = np.zeros(self.nq)
        for i, name in enumerate(self.coordinate_names):
            out[i] = 1.0 if name == "qw" else 0.0
        return out


_XYZ = (("prismatic", "x"), ("prismatic", "y"), ("prismatic", "z"))
_UV = (("prismatic", "u"), ("prismatic", "v"))
_BALL = (("ball", ""),)

# kind, factors, coordinates (rates are named alike where not given), locked translation, locked rotation
KINDS: dict[str, JointKind] = {
    kind.name: kind
    for kind in (
        JointKind("fixed", (), (), (), "all", "all"),
        JointKind("revolute", (("revolute", "axis"),), ("angle",), ("angle",), "all", "plane"),
        JointKind("continuous", (("revolute", "axis"),), ("angle",), ("angle",), "all", "plane"),
        JointKind("prismatic", (("prismatic", "axis"),), ("displacement",), ("displacement",), "plane", "all"),
        JointKind("helical", (("helical", "axis"),), ("angle",), ("angle",), "plane", "plane", "helical"),
        JointKind(
            "cylindrical",
            (("prismatic", "axis"), ("revolute", "axis")),
            ("displacement", "angle"),
            ("displacement", "angle"),
            "plane",
            "plane",
        ),
        JointKind(
            "universal",
            (("revolute", "axis"), ("revolute", "axis2")),
            ("angle", "angle2"),
            ("angle", "angle2"),
            "all",
            "none",
            "universal",
        ),
        JointKind("planar", (*_UV, ("revolute", "axis")), ("x", "y", "angle"), ("x", "y", "angle"), "axis", "plane"),
        JointKind("planar_translation", _UV, ("x", "y"), ("x", "y"), "axis", "all"),
        JointKind("translational", _XYZ, ("x", "y", "z"), ("x", "y", "z"), "none", "all"),
        JointKind(
            "axis_rotation_free_translation",
            (*_XYZ, ("revolute", "axis")),
            ("x", "y", "z", "angle"),
            ("x", "y", "z", "angle"),
            "none",
            "plane",
        ),
        JointKind("spherical", _BALL, _QUATERNION, _ANGULAR, "all", "none"),
        JointKind(
            "cylindrical_free",
            (("prismatic", "axis"), *_BALL),
            ("displacement", *_QUATERNION),
            ("displacement", *_ANGULAR),
            "plane",
            "none",
        ),
        JointKind("planar_free", (*_UV, *_BALL), ("x", "y", *_QUATERNION), ("x", "y", *_ANGULAR), "axis", "none"),
        # public velocity of a free joint: (angular; linear) of the child frame in the child frame
        JointKind(
            "free", (*_XYZ, *_BALL), ("x", "y", "z", *_QUATERNION), (*_ANGULAR, "vx", "vy", "vz"), "none", "none"
        ),
        # its coordinates are those of its parts
        JointKind("composite", (), (), (), None, None),
        # its coordinates are those of its curve or surface
        JointKind("spline", (), (), (), None, None),
    )
}


class JointGeometry(Protocol):
    """What the table needs to know about a joint."""

    name: str
    kind: str
    axis: FloatArray
    axis2: FloatArray | None
    pitch: float
    parts: tuple[JointPart, ...]
    spline: Spline | None


@dataclass(frozen=True, eq=False)
class JointPart:
    """One part of a composite joint: a kind with its axes, after a constant pose ``frame`` (4, 4)."""

    kind: str
    axis: FloatArray
    axis2: FloatArray | None
    pitch: float
    frame: FloatArray


class Piece(NamedTuple):
    """Where the coordinates of a factor, or each of a spline, stand in q, in v and in the list of limits of a joint.

    For a free joint ``v`` is the place in the factors' own order (three prismatic rates, then the ball), not in the
    public order (angular; linear).
    """

    factor: Literal["screw", "ball"]
    q: slice
    v: slice
    limit: int


class LoopRows(NamedTuple):
    """Constraint rows of a joint that closes a loop, all in the parent side's joint frame.

    Attributes:
        translation: (k, 3) rows on the position of the child joint frame relative to the parent joint frame.
        rotation: (k, 3) rows on the vector part of the relative quaternion.
        coupling: None, ("universal", axis, axis2): axis (parent side) . axis2 (child side) keeps its value at the
            neutral position, or ("helical", axis, pitch): displacement along the axis = pitch times the angle.
    """

    translation: FloatArray
    rotation: FloatArray
    coupling: tuple[Any, ...] | None


def kind_of(name: Any) -> JointKind:
    """The table's row of a joint kind."""
    if not isinstance(name, str) or name not in KINDS:
        raise ModelError(f"unknown joint kind {name!r}; the kinds are {', '.join(KINDS)}.")
    return KINDS[name]


def plane_basis(normal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two unit vectors u, v with u x v = normal; for +z they are x and y.

    For normals with n_z >= 0 they are x and y turned by the smallest rotation that takes z to the normal; for the
    others, x and -y turned by the smallest one that takes -z to it (Duff et al., Building an Orthonormal Basis,
    Revisited, J. Computer Graphics Techniques 6(1), 2017).
    """
    x, y, z = (float(c) for c in normal)
    sign = 1.0 if z >= 0 else -1.0
    a = -1.0 / (sign + z)
    b = x * y * a
    return np.array([1.0 + sign * x * x * a, sign * b, -sign * x]), np.array([b, sign + y * y * a, -y])


def check_geometry(kind: str, axis: Any, axis2: Any, pitch: Any, where: str) -> tuple[FloatArray, Any, float]:
    """Checked (axis, axis2, pitch) of a joint or part; axis2 is None unless the kind is universal."""
    row = kind_of(kind)
    axis = check_axis(axis, f"{where}: axis")
    # second axis: universal joints only
    if row.coupling == "universal":
        if axis2 is None:
            raise ModelError(f"{where}: a universal joint needs axis2.")
        axis2 = check_axis(axis2, f"{where}: axis2")
        if float(np.linalg.norm(np.cross(axis, axis2))) < 1e-6:
            raise ModelError(f"{where}: axis and axis2 of a universal joint must not be parallel.")
    elif axis2 is not None:
        raise ModelError(f"{where}: axis2 belongs to universal joints only, this one is {kind}.")
    # pitch: helical joints only
    pitch = check_number(pitch, f"{where}: pitch")
    if pitch != 0 and row.coupling != "helical":
        raise ModelError(f"{where}: pitch belongs to helical joints only, this one is {kind}.")
    return axis, axis2, pitch


def check_parts(kind: str, parts: Any, where: str) -> tuple[JointPart, ...]:
    """The parts of a composite joint, checked; none for the other kinds."""
    if kind != "composite":
        if parts:
            raise ModelError(f"{where}: parts belong to composite joints only, this one is {kind}.")
        return ()
    if not isinstance(parts, Sequence) or isinstance(parts, str) or len(parts) == 0:
        raise ModelError(f"{where}: a composite joint needs parts=[(kind, {{'axis': ...}}), ...].")
    return tuple(_check_part(part, f"{where}: parts[{i}]") for i, part in enumerate(parts))


def _check_part(part: Any, where: str) -> JointPart:
    """One part, given as a kind, a pair (kind, options), or a JointPart."""
    if isinstance(part, JointPart):
        part = (part.kind, {"axis": part.axis, "axis2": part.axis2, "pitch": part.pitch, "frame": part.frame})
    if isinstance(part, str):
        part = (part, {})
    if not isinstance(part, Sequence) or len(part) != 2 or not isinstance(part[1], dict):
        raise ModelError(f"{where}: expected (kind, {{'axis': ..., 'frame': ...}}), got {part!r}.")
    kind, options = part[0], dict(part[1])
    # kinds that cannot stand in a sequence
    if kind_of(kind).name in ("fixed", "free", "composite", "spline"):
        raise ModelError(
            f"{where}: a {kind} joint cannot be a part of a composite joint; constant poses go into frame."
        )
    # options
    axis, axis2, pitch = options.pop("axis", (0, 0, 1)), options.pop("axis2", None), options.pop("pitch", 0.0)
    frame = check_pose(options.pop("frame", None), f"{where}: frame")
    for unknown in options:
        raise ModelError(f"{where}: unknown option {unknown!r}; the options are axis, axis2, pitch, frame.")
    axis, axis2, pitch = check_geometry(kind, axis, axis2, pitch, where)
    return JointPart(kind, axis, axis2, pitch, frame)


def factors(joint: JointGeometry) -> list[Factor]:
    """The factors of a joint in order; of a composite joint those of all its parts."""
    if joint.spline is not None:
        return [SplineFactor(joint.spline)]
    if joint.kind != "composite":
        return _factors(kind_of(joint.kind), joint.axis, joint.axis2, joint.pitch, _IDENTITY)
    return [
        factor
        for part in joint.parts
        for factor in _factors(kind_of(part.kind), part.axis, part.axis2, part.pitch, part.frame)
    ]


def _factors(
    kind: JointKind, axis: FloatArray, axis2: FloatArray | None, pitch: float, before: FloatArray
) -> list[Factor]:
    """The factors of one kind; ``before`` goes in front of the first."""
    u, v = plane_basis(axis)
    directions = {**_AXES, "axis": axis, "axis2": axis2, "u": frozen(u), "v": frozen(v)}
    out: list[Factor] = []
    for name, direction in kind.pieces:
        if name == "ball":
            out.append(Ball(before))
        else:
            out.append(Screw(directions[direction], pitch if name == "helical" else 0.0, name, before))  # type: ignore[arg-type]
        before = _IDENTITY
    return out


def layout(joint: JointGeometry) -> list[Piece]:
    """For every factor its place in q, v (factor order) and the list of limits."""
    out: list[Piece] = []
    iq = iv = 0
    for factor in factors(joint):
        if isinstance(factor, Ball):
            out.append(Piece("ball", slice(iq, iq + 4), slice(iv, iv + 3), len(out)))
            iq, iv = iq + 4, iv + 3
            continue
        # the coordinates of a spline are numbers as those of screws are
        for _ in range(factor.nq):
            out.append(Piece("screw", slice(iq, iq + 1), slice(iv, iv + 1), len(out)))
            iq, iv = iq + 1, iv + 1
    return out


def coordinate_names(joint: JointGeometry) -> tuple[str, ...]:
    """Names of q; those of a composite joint start with the number of the part, as in ``1.angle``."""
    if joint.spline is not None:
        return joint.spline.coordinate_names
    if joint.kind != "composite":
        return kind_of(joint.kind).coordinate_names
    return tuple(f"{i}.{name}" for i, part in enumerate(joint.parts) for name in kind_of(part.kind).coordinate_names)


def velocity_names(joint: JointGeometry) -> tuple[str, ...]:
    """Names of v, in public order."""
    if joint.spline is not None:
        return joint.spline.coordinate_names
    if joint.kind != "composite":
        return kind_of(joint.kind).velocity_names
    return tuple(f"{i}.{name}" for i, part in enumerate(joint.parts) for name in kind_of(part.kind).velocity_names)


def neutral(joint: JointGeometry) -> FloatArray:
    """Neutral coordinates (nq,)."""
    if joint.spline is not None:
        return np.zeros(joint.spline.size)
    rows = [kind_of(joint.kind)] if joint.kind != "composite" else [kind_of(part.kind) for part in joint.parts]
    return np.concatenate([np.zeros(0), *(row.neutral for row in rows)])


def check_coordinates(joint: JointGeometry, value: Any, where: str) -> FloatArray:
    """Position coordinates (nq,) of a joint, quaternions normalised; a bare number for a single coordinate."""
    names = coordinate_names(joint)
    array = np.atleast_1d(np.asarray(value))
    if array.shape != (len(names),):
        raise ModelError(f"{where}: expected {len(names)} numbers ({', '.join(names)}), got {value!r}.")
    # numbers one by one, so that an error names the coordinate
    out = np.array([check_number(x, f"{where}: {name}") for x, name in zip(array.tolist(), names, strict=True)])
    for piece in layout(joint):
        if piece.factor == "ball":
            out[piece.q] = check_quaternion(out[piece.q], where)
    if joint.spline is not None:
        check_ends(joint.spline, out, where)
    return frozen(out)


def loop_rows(joint: JointGeometry) -> LoopRows:
    """Constraint rows of a joint that closes a loop (Bruedigam et al. 2023, Table B.2)."""
    kind = kind_of(joint.kind)
    if kind.translation is None or kind.rotation is None:
        raise ModelError(
            f"joint '{joint.name}': a {kind.name} joint cannot close a loop; let another joint close it, or add a body "
            "for each part of a composite joint."
        )
    # selections of Table B.1
    plane = np.array(plane_basis(joint.axis))
    select = {"all": np.eye(3), "plane": plane, "axis": joint.axis.reshape(1, 3), "none": np.zeros((0, 3))}
    # the two joints that the table does not have
    coupling: tuple[Any, ...] | None = None
    if kind.coupling == "universal":
        coupling = ("universal", joint.axis, joint.axis2)
    elif kind.coupling == "helical":
        coupling = ("helical", joint.axis, joint.pitch)
    return LoopRows(select[kind.translation].copy(), select[kind.rotation].copy(), coupling)
