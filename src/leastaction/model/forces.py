"""Forces on bodies: springs, point forces, wrenches, potentials. ``force_base`` says what a force owes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.body_damping import BodyDamping, read_body_damping
from leastaction.model.checks import FloatArray, check_number, check_result, check_vector
from leastaction.model.differences import checked_differences, moved
from leastaction.model.fluid import FluidDrag, read_fluid
from leastaction.model.force_base import (
    Force,
    at_time,
    check_axes,
    floats,
    named,
    nine,
    point_jacobian,
    store,
    written,
)
from leastaction.model.path_forces import Cable, read_cable
from leastaction.model.penalty import PenaltyContact, read_penalty
from leastaction.model.reader import Reader, plain
from leastaction.spatial import so3
from leastaction.spatial._source.force_laws import (
    E2,
    point_spring,
    point_wrench,
    spring_energy,
    turned_wrench,
    world_point,
    world_velocity,
)

__all__ = ["Force", "PointForce", "PointSpring", "Potential", "Wrench", "force_from_dict"]


@dataclass(frozen=True, eq=False)
class PointSpring(Force):
    """A spring and damper along the line between two points.

    Force on a: (k (l - rest_length) + d dl/dt) along the line to b. The length is l = sqrt(distance^2 + e^2) with e one
    nanometre, so that the force is finite and smooth also where the points meet: there it is zero, as is the damping.

    Attributes:
        a: body name or "world".
        point_a: (3,) in the link frame of a, metres.
        b: another body name or "world".
        point_b: (3,) in the link frame of b, metres.
        stiffness: N/m.
        damping: N s/m.
        rest_length: metres.
        name: for messages.
    """

    kind: ClassVar[str] = "point_spring"
    a: str
    point_a: FloatArray
    b: str
    point_b: FloatArray
    _: KW_ONLY
    stiffness: float = 0.0
    damping: float = 0.0
    rest_length: float = 0.0
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            a: str,
            point_a: ArrayLike,
            b: str,
            point_b: ArrayLike,
            *,
            stiffness: float = ...,
            damping: float = ...,
            rest_length: float = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        where = named("PointSpring", self.name, (self.a, self.b))
        if self.a == self.b:
            raise ModelError(f"{where}: both ends are on '{self.a}'.")
        store(self, "point_a", check_vector(self.point_a, 3, f"{where}: point_a"))
        store(self, "point_b", check_vector(self.point_b, 3, f"{where}: point_b"))
        for what in ("stiffness", "damping", "rest_length"):
            store(self, what, check_number(getattr(self, what), f"{where}: {what}", nonnegative=True))

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The two bodies."""
        return (self.a, self.b)

    @property
    def conservative(self) -> bool:
        """True without damping."""
        return self.damping == 0

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrenches (2, 6)."""
        f = self._force(poses, twists)
        a = point_wrench(nine(poses[0]), floats(self.point_a), f)
        b = point_wrench(nine(poses[1]), floats(self.point_b), (-f[0], -f[1], -f[2]))
        return np.array([a, b])

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (12, 12)."""
        f = np.array(self._force(poses, twists))
        R = poses[:, :3, :3]
        points = (self.point_a, self.point_b)
        J = [point_jacobian(p) for p in points]
        # points and velocities in the world: d point = R J xi, d velocity = R J dtwist + R [theta] u
        u = [twists[i, 3:] + np.cross(twists[i, :3], points[i]) for i in range(2)]
        r = (poses[1, :3, 3] + R[1] @ points[1]) - (poses[0, :3, 3] + R[0] @ points[0])
        w = R[1] @ u[1] - R[0] @ u[0]
        P, Q = self._line_derivatives(r, w)
        # wrench_i = s_i J_i^T R_i^T f, with f depending on the difference of the ends (b minus a)
        K, D = np.zeros((12, 12)), np.zeros((12, 12))
        for i, si in enumerate((1.0, -1.0)):
            rows = slice(6 * i, 6 * i + 6)
            left = si * J[i].T @ R[i].T
            for j, sj in enumerate((-1.0, 1.0)):
                columns = slice(6 * j, 6 * j + 6)
                turning = np.hstack([-R[j] @ so3.hat(u[j]), np.zeros((3, 3))])
                K[rows, columns] = sj * left @ (P @ R[j] @ J[j] + Q @ turning)
                D[rows, columns] = sj * left @ Q @ R[j] @ J[j]
            # turning the body turns the force seen from it
            K[rows, 6 * i : 6 * i + 3] += si * J[i].T @ so3.hat(R[i].T @ f)
        return K, D

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy of the spring in joules."""
        pa = world_point(nine(poses[0]), floats(poses[0, :3, 3]), floats(self.point_a))
        pb = world_point(nine(poses[1]), floats(poses[1, :3, 3]), floats(self.point_b))
        return float(spring_energy(pa, pb, self.stiffness, self.rest_length))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "kind": self.kind,
            "a": self.a,
            "point_a": plain(self.point_a),
            "b": self.b,
            "point_b": plain(self.point_b),
            "stiffness": self.stiffness,
            "damping": self.damping,
            "rest_length": self.rest_length,
            "name": self.name,
        }

    def _force(self, poses: FloatArray, twists: FloatArray) -> tuple[Any, Any, Any]:
        """Force (3) on a, world axes."""
        Ra, Rb = nine(poses[0]), nine(poses[1])
        a, b = floats(self.point_a), floats(self.point_b)
        return point_spring(
            world_point(Ra, floats(poses[0, :3, 3]), a),
            world_velocity(Ra, floats(twists[0]), a),
            world_point(Rb, floats(poses[1, :3, 3]), b),
            world_velocity(Rb, floats(twists[1]), b),
            self.stiffness,
            self.damping,
            self.rest_length,
        )

    def _line_derivatives(self, r: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives (3, 3) of the force f = c r by the difference r of the ends and by its velocity w."""
        k, d, l0 = self.stiffness, self.damping, self.rest_length
        l = np.sqrt(r @ r + E2)
        # c = k (1 - l0 / l) + d (r . w) / l^2
        c = k * (1.0 - l0 / l) + d * (r @ w) / l**2
        dc = (k * l0 / l**3 - 2.0 * d * (r @ w) / l**4) * r + d / l**2 * w
        return c * np.eye(3) + np.outer(r, dc), d * np.outer(r, r) / l**2


@dataclass(frozen=True, eq=False)
class PointForce(Force):
    """A force at a point of a body.

    Attributes:
        body: body name.
        point: (3,) in the link frame, metres.
        force: (3,) newtons, or a function t -> (3,).
        frame: axes of the force, "world" or "body".
        name: for messages.
    """

    kind: ClassVar[str] = "point_force"
    body: str
    point: FloatArray = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    force: FloatArray | Callable[[float], Any] = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    frame: str = "world"
    _: KW_ONLY
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            body: str,
            point: ArrayLike = ...,
            force: ArrayLike | Callable[[float], Any] = ...,
            frame: str = ...,
            *,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        where = named("PointForce", self.name, (self.body,))
        store(self, "point", check_vector(self.point, 3, f"{where}: point"))
        if not callable(self.force):
            store(self, "force", check_vector(self.force, 3, f"{where}: force"))
        check_axes(self.frame, where)

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one body."""
        return (self.body,)

    @property
    def constant(self) -> bool:
        """Whether the force is numbers rather than a function of time."""
        return not callable(self.force)

    @property
    def conservative(self) -> bool:
        """True for a constant force in world axes."""
        return self.constant and self.frame == "world"

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrench (1, 6)."""
        f = at_time(self.force, t, 3, self.label)
        if self.frame == "body":
            return np.concatenate([np.cross(self.point, f), f]).reshape(1, 6)
        return np.array([point_wrench(nine(poses[0]), floats(self.point), floats(f))])

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6, 6)."""
        K = np.zeros((6, 6))
        if self.frame == "world":
            f = at_time(self.force, t, 3, self.label)
            K[:, :3] = point_jacobian(self.point).T @ so3.hat(poses[0, :3, :3].T @ f)
        return K, np.zeros((6, 6))

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy -force . point of a constant force in world axes, joules; 0 otherwise."""
        if not self.conservative:
            return 0.0
        return -float(np.asarray(self.force) @ (poses[0, :3, 3] + poses[0, :3, :3] @ self.point))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; a function of time cannot be written."""
        return {
            "kind": self.kind,
            "body": self.body,
            "point": plain(self.point),
            "force": written(self.force, self.label),
            "frame": self.frame,
            "name": self.name,
        }


@dataclass(frozen=True, eq=False)
class Wrench(Force):
    """A torque and a force at the link origin of a body.

    Attributes:
        body: body name.
        wrench: (torque; force) (6,) in N m and N, or a function t -> (6,).
        frame: axes, "world" or "body".
        name: for messages.
    """

    kind: ClassVar[str] = "wrench"
    body: str
    wrench: FloatArray | Callable[[float], Any]
    frame: str = "world"
    _: KW_ONLY
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            body: str,
            wrench: ArrayLike | Callable[[float], Any],
            frame: str = ...,
            *,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        where = named("Wrench", self.name, (self.body,))
        if not callable(self.wrench):
            store(self, "wrench", check_vector(self.wrench, 6, f"{where}: wrench"))
        check_axes(self.frame, where)

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one body."""
        return (self.body,)

    @property
    def constant(self) -> bool:
        """Whether the wrench is numbers rather than a function of time."""
        return not callable(self.wrench)

    @property
    def conservative(self) -> bool:
        """True for a constant force without torque in world axes; a constant torque has no energy."""
        return self.constant and self.frame == "world" and not np.asarray(self.wrench)[:3].any()

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrench (1, 6)."""
        w = at_time(self.wrench, t, 6, self.label)
        if self.frame == "body":
            return w.reshape(1, 6).copy()
        return np.array([turned_wrench(nine(poses[0]), floats(w))])

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6, 6)."""
        K = np.zeros((6, 6))
        if self.frame == "world":
            w = self.wrenches(t, poses, twists)[0]
            K[:3, :3], K[3:, :3] = so3.hat(w[:3]), so3.hat(w[3:])
        return K, np.zeros((6, 6))

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy -force . origin of a constant force without torque in world axes, joules; 0 otherwise."""
        if not self.conservative:
            return 0.0
        return -float(np.asarray(self.wrench)[3:] @ poses[0, :3, 3])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; a function of time cannot be written."""
        return {
            "kind": self.kind,
            "body": self.body,
            "wrench": written(self.wrench, self.label),
            "frame": self.frame,
            "name": self.name,
        }


@dataclass(frozen=True, eq=False)
class Potential(Force):
    """A potential energy of the user's own on the poses of k bodies.

    Attributes:
        bodies: names, one or several.
        energy_function: poses (k, 4, 4) -> joules.
        gradient: poses -> (k, 6), d energy / d xi in E <- E exp(xi); the wrench is minus this.
        hessian: poses -> (6k, 6k), d gradient / d xi. Without it, where a derivative is needed, it is taken by checked
            central differences of the gradient; a gradient with a kink there is an error.
        name: for messages.
    """

    bodies: tuple[str, ...]
    energy_function: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], Any]
    hessian: Callable[[FloatArray], Any] | None = None
    name: str | None = None

    def __init__(
        self,
        bodies: Any,
        energy: Callable[[FloatArray], float],
        gradient: Callable[[FloatArray], Any],
        hessian: Callable[[FloatArray], Any] | None = None,
        name: str | None = None,
    ) -> None:
        names = (bodies,) if isinstance(bodies, str) else tuple(bodies)
        where = named("Potential", name, names)
        if len(set(names)) != len(names) or not names:
            raise ModelError(f"{where}: give one or several different bodies.")
        for what, function in (("energy", energy), ("gradient", gradient), ("hessian", hessian)):
            if not callable(function) and not (what == "hessian" and function is None):
                raise ModelError(f"{where}: {what} must be a function of the poses, got {function!r}.")
        store(self, "bodies", names)
        store(self, "energy_function", energy)
        store(self, "gradient", gradient)
        store(self, "hessian", hessian)
        store(self, "name", name)

    @property
    def conservative(self) -> bool:
        """Always."""
        return True

    @property
    def has_derivatives(self) -> bool:
        """Whether the user gives a second derivative."""
        return self.hessian is not None

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrenches (k, 6)."""
        return -check_result(self.gradient(poses), (len(self.bodies), 6), f"{self.label}: gradient")

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6k, 6k)."""
        n = 6 * len(self.bodies)
        if self.hessian is None:
            give = "hessian=, a function of the poses that returns d gradient / d xi, (6k, 6k)"
            by = checked_differences(lambda xi: self.wrenches(t, moved(poses, xi), twists), n, self.label, give)
            return by.reshape(n, n), np.zeros((n, n))
        return -check_result(self.hessian(poses), (n, n), f"{self.label}: hessian"), np.zeros((n, n))

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy in joules."""
        return float(check_result(self.energy_function(poses), (), f"{self.label}: energy"))

    def to_dict(self) -> dict[str, Any]:
        """Functions cannot be written."""
        raise ModelError(f"{self.label}: a potential is made of functions and cannot be written to a file.")


def _read_spring(reader: Reader) -> dict[str, Any]:
    own: dict[str, Any] = {end: reader.text(end) for end in ("a", "b")}
    own.update({end: reader.array(end, (3,)) for end in ("point_a", "point_b")})
    own.update({what: reader.number(what, 0.0) for what in ("stiffness", "damping", "rest_length")})
    return own


def _read_point_force(reader: Reader) -> dict[str, Any]:
    own = {"body": reader.text("body"), "point": reader.array("point", (3,)), "force": reader.array("force", (3,))}
    return own | {"frame": reader.text("frame", "world")}


def _read_wrench(reader: Reader) -> dict[str, Any]:
    own = {"body": reader.text("body"), "wrench": reader.array("wrench", (6,))}
    return own | {"frame": reader.text("frame", "world")}


# forces that can be written to a file: their kind there, and their arguments but the name
_READERS: dict[str, tuple[Callable[..., Force], Callable[[Reader], dict[str, Any]]]] = {
    PointSpring.kind: (PointSpring, _read_spring),
    PointForce.kind: (PointForce, _read_point_force),
    Wrench.kind: (Wrench, _read_wrench),
    Cable.kind: (Cable, read_cable),
    PenaltyContact.kind: (PenaltyContact, read_penalty),
    BodyDamping.kind: (BodyDamping, read_body_damping),
    FluidDrag.kind: (FluidDrag, read_fluid),
}


def force_from_dict(data: Any, path: str = "force") -> Force:
    """A force from its ``to_dict``."""
    reader = Reader(data, path)
    kind = reader.text("kind")
    name = reader.text("name", None)
    if kind not in _READERS:
        raise ModelError(f"{path}.kind: unknown force '{kind}'; known are {', '.join(_READERS)}.")
    made, read = _READERS[kind]
    own = read(reader)
    reader.finish()
    with reader.here():
        return made(**own, name=name)
