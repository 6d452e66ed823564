"""Contact of points with the ground as a force: stiff springs with damping and friction (Sueda 2021, 1.49 to 1.61).

At a point with depth s = height - n . x > 0 and velocity v:

    normal force    n k s (1 - c n . v), never a pull
    friction        -kt a where kt |a| < mu k s (sticking), else -mu k s a / |a| (sliding), with a = v - n (n . v)

The damper acts with the depth (Hunt and Crossley 1975), so that the force is continuous where contact begins; that of
the paper is not. Signs are those of a ground that pushes and of friction that brakes.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_axis, check_number, frozen
from leastaction.model.force_base import Force, named, point_jacobian, store
from leastaction.model.reader import Reader, plain
from leastaction.spatial import so3


@dataclass(frozen=True, eq=False)
class PenaltyContact(Force):
    """Contact of points of a body with a plane of the world, as a force that every method takes.

    For hard contact use ``add_ground`` and ``Maximal``. A stiff contact needs an implicit method or small steps.

    Attributes:
        body: body name.
        points: (k, 3) in the link frame, metres, or one point (3,).
        stiffness: N/m at each point.
        damping: s/m: by what share the normal force grows per metre per second of approach.
        friction: coefficient of Coulomb friction.
        sticking: N s/m: friction force per speed at small speeds.
        normal: unit vector of the plane, out of the ground.
        height: of the plane along its normal, metres.
        name: for messages.
    """

    kind: ClassVar[str] = "penalty_contact"
    body: str
    points: FloatArray = (0.0, 0.0, 0.0)  # type: ignore[assignment]
    _: KW_ONLY
    stiffness: float
    damping: float = 0.0
    friction: float = 0.0
    sticking: float = 1e3
    normal: FloatArray = (0.0, 0.0, 1.0)  # type: ignore[assignment]
    height: float = 0.0
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            body: str,
            points: ArrayLike = ...,
            *,
            stiffness: float,
            damping: float = ...,
            friction: float = ...,
            sticking: float = ...,
            normal: ArrayLike = ...,
            height: float = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        where = named("PenaltyContact", self.name, (self.body,))
        points = np.atleast_2d(check_array(self.points, f"{where}: points"))
        if points.ndim != 2 or points.shape[1] != 3 or not len(points):
            raise ModelError(f"{where}: points must be (3,) or (k, 3), got shape {np.shape(self.points)}.")
        store(self, "points", frozen(points))
        for what in ("stiffness", "damping", "friction", "sticking"):
            store(self, what, check_number(getattr(self, what), f"{where}: {what}", nonnegative=True))
        store(self, "normal", check_axis(self.normal, f"{where}: normal"))
        store(self, "height", check_number(self.height, f"{where}: height"))

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The one body."""
        return (self.body,)

    @property
    def conservative(self) -> bool:
        """True without damping and friction."""
        return self.damping == 0 and self.friction == 0

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrench (1, 6)."""
        out = np.zeros(6)
        for p, x, v in self._touching(poses, twists):
            out += point_jacobian(p).T @ (poses[0, :3, :3].T @ self._force(x, v)[0])
        return out[None]

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6, 6)."""
        K, D, R = np.zeros((6, 6)), np.zeros((6, 6)), poses[0, :3, :3]
        for p, x, v in self._touching(poses, twists):
            f, by_x, by_v = self._force(x, v)
            J = point_jacobian(p)
            # dx = R J xi, dv = R J dtwist - R [u] theta with u the velocity in body axes
            turning = np.hstack([-R @ so3.hat(R.T @ v), np.zeros((3, 3))])
            K += J.T @ R.T @ (by_x @ R @ J + by_v @ turning)
            K[:, :3] += J.T @ so3.hat(R.T @ f)
            D += J.T @ R.T @ by_v @ R @ J
        return K, D

    def friction_derivative(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Derivative of the body wrench (1, 6) by the coefficient of friction."""
        out = np.zeros(6)
        for p, x, v in self._touching(poses, twists):
            bound, a = self.friction * self._spring(x), v - self.normal * (self.normal @ v)
            if self.sticking * np.linalg.norm(a) >= bound and a.any():
                f = -self._spring(x) * a / np.linalg.norm(a)
                out += point_jacobian(p).T @ (poses[0, :3, :3].T @ f)
        return out[None]

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy of the springs in joules."""
        x = poses[0, :3, 3] + self.points @ poses[0, :3, :3].T
        depth = np.maximum(self.height - x @ self.normal, 0.0)
        return 0.5 * self.stiffness * float(depth @ depth)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        numbers = {what: getattr(self, what) for what in _NUMBERS}
        lists = {"points": plain(self.points), "normal": plain(self.normal)}
        return {"kind": self.kind, "body": self.body, **lists, **numbers, "name": self.name}

    def _spring(self, x: FloatArray) -> float:
        """Force of the spring alone."""
        return float(self.stiffness * (self.height - self.normal @ x))

    def _touching(self, poses: FloatArray, twists: FloatArray) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """Points below the ground: in the link frame, in the world, and their velocities in the world."""
        R, out = poses[0, :3, :3], []
        for p in self.points:
            x = poses[0, :3, 3] + R @ p
            if self._spring(x) > 0:
                out.append((p, x, R @ (twists[0, 3:] + np.cross(twists[0, :3], p))))
        return out

    def _force(self, x: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Force (3,) on a point below the ground, and its derivatives (3, 3) by position and velocity."""
        n, k, mu = self.normal, self.stiffness, self.friction
        s, share = self._spring(x), 1.0 - self.damping * float(n @ v)
        f, by_x, by_v = np.zeros(3), np.zeros((3, 3)), np.zeros((3, 3))
        if share > 0:
            f = n * s * share
            by_x, by_v = -k * share * np.outer(n, n), -s * self.damping * np.outer(n, n)
        # friction across the normal
        T = np.eye(3) - np.outer(n, n)
        a = T @ v
        speed = float(np.linalg.norm(a))
        if self.sticking * speed < mu * s:
            return f - self.sticking * a, by_x, by_v - self.sticking * T
        if speed > 0:
            e = a / speed
            f = f - mu * s * e
            by_x = by_x + mu * k * np.outer(e, n)
            by_v = by_v - mu * s / speed * (T - np.outer(e, e))
        return f, by_x, by_v


_NUMBERS = ("stiffness", "damping", "friction", "sticking", "height")


def read_penalty(reader: Reader) -> dict[str, Any]:
    """Arguments of a penalty contact from a file."""
    points = reader.items("points")
    numbers = {what: reader.number(what) for what in _NUMBERS}
    return {"body": reader.text("body"), "points": points, "normal": reader.array("normal", (3,)), **numbers}
