"""Springs and cables along a path through points of several bodies (Sueda 2021, eqs. 1.62 to 1.83).

With l the length of the path, g = dl/dxi its derivative by the displacements of the bodies and T(l, ldot) the tension,

    wrenches = -T g        ldot = g . twists
    K = -g (T_l g + T_ldot dldot/dxi)^T - T dg/dxi        D = -T_ldot g g^T
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_number, check_result, check_vector
from leastaction.model.force_base import Force, named, point_jacobian, store
from leastaction.model.reader import Reader, plain
from leastaction.spatial import so3

Points = tuple[tuple[str, FloatArray], ...]

# Two points of a path that are nearer than this, metres, have no direction between them.
_NEAREST = 1e-9


class _Path(NamedTuple):
    """Length, g (6k,), rate of the length, its derivative by displacements (6k,), and dg/dxi (6k, 6k)."""

    length: float
    g: FloatArray
    rate: float
    by_place: FloatArray
    second: FloatArray


class PathForce(Force):
    """A tension along a path; the law is that of the class.

    Attributes:
        points: pairs (body name or "world", (3,) in its link frame, metres), from end to end.
    """

    points: Points

    @property
    def bodies(self) -> tuple[str, ...]:  # type: ignore[override]
        """The bodies on the path, each once."""
        return tuple(dict.fromkeys(body for body, _ in self.points))

    @abstractmethod
    def tension(self, length: float, rate: float) -> tuple[float, float, float]:
        """Tension (N) at a length (m) and its rate (m/s), and its derivatives by both."""

    def wrenches(self, t: float, poses: FloatArray, twists: FloatArray) -> FloatArray:
        """Body wrenches (k, 6)."""
        path = self._path(poses, twists, False)
        return -self.tension(path.length, path.rate)[0] * path.g.reshape(-1, 6)

    def derivatives(self, t: float, poses: FloatArray, twists: FloatArray) -> tuple[FloatArray, FloatArray]:
        """K and D, each (6k, 6k)."""
        path = self._path(poses, twists, True)
        T, by_length, by_rate = self.tension(path.length, path.rate)
        K = -np.outer(path.g, by_length * path.g + by_rate * path.by_place) - T * path.second
        return K, -by_rate * np.outer(path.g, path.g)

    def length(self, poses: FloatArray) -> float:
        """Length of the path at poses (k, 4, 4) of its bodies, metres."""
        return self._path(poses, np.zeros((len(poses), 6)), False).length

    def _check_points(self, points: Any, what: str) -> None:
        """Store checked points."""
        try:
            pairs = [(body, check_vector(point, 3, f"{what}: point on '{body}'")) for body, point in points]
        except (TypeError, ValueError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{what}: points must be pairs of a body and a point in it, got {points!r}.") from error
        names = tuple(body for body, _ in pairs)
        where = named(what, self.name, names)
        if len(set(names)) < 2:
            raise ModelError(f"{where}: the path must touch two bodies at least.")
        for (a, p), (b, r) in pairwise(pairs):
            if a == b and float(np.linalg.norm(p - r)) < _NEAREST:
                raise ModelError(f"{where}: two points in a row are the same point of '{a}'.")
        store(self, "points", tuple(pairs))

    def _path(self, poses: FloatArray, twists: FloatArray, second: bool) -> _Path:
        """The path and its derivatives; those of second order only if asked for."""
        place = {body: k for k, body in enumerate(self.bodies)}
        n, at = 6 * len(place), []
        # points and velocities in the world, Jacobians, turning of the velocities
        for body, p in self.points:
            R, x, w = poses[place[body], :3, :3], poses[place[body], :3, 3], twists[place[body]]
            u = w[3:] + np.cross(w[:3], p)
            at.append((6 * place[body], R, x + R @ p, R @ u, R @ point_jacobian(p), -R @ so3.hat(u)))
        length, rate = 0.0, 0.0
        g, by_place, G = np.zeros(n), np.zeros(n), np.zeros((n, n))
        for i, (a, b) in enumerate(pairwise(at)):
            r, w = b[2] - a[2], b[3] - a[3]
            l = float(np.linalg.norm(r))
            if not l > _NEAREST:
                raise ModelError(f"{self.label}: points {i} and {i + 1} of its path meet; it has no direction there.")
            e = r / l
            length, rate = length + l, rate + float(e @ w)
            P = (np.eye(3) - np.outer(e, e)) / l
            for s, (k, R, _, _, J, turn) in ((-1.0, a), (1.0, b)):
                here = slice(k, k + 6)
                g[here] += s * J.T @ e
                by_place[here] += s * J.T @ (P @ w)
                by_place[k : k + 3] += s * turn.T @ e
                if second:
                    for s2, (k2, _, _, _, J2, _) in ((-1.0, a), (1.0, b)):
                        G[here, k2 : k2 + 6] += s * s2 * J.T @ P @ J2
                    # turning the body turns the direction seen from it
                    G[here, k : k + 3] += s * (R.T @ J).T @ so3.hat(R.T @ e)
        return _Path(length, g, rate, by_place, G)


@dataclass(frozen=True, eq=False)
class PathSpring(PathForce):
    """A spring of any law f(l, ldot) along the path through points of two or more bodies.

    Attributes:
        points: pairs (body name or "world", (3,) in its link frame, metres), from end to end.
        law: function (l, ldot) -> (tension, its derivative by l, its derivative by ldot), in N, N/m, N s/m; a positive
            tension pulls the ends together.
        energy_function: length -> joules, for a law that depends on l alone; or None.
        name: for messages.
    """

    points: Points
    law: Callable[[float, float], Any]
    energy_function: Callable[[float], float] | None = None
    _: KW_ONLY
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            points: Iterable[tuple[str, ArrayLike]],
            law: Callable[[float, float], Any],
            energy_function: Callable[[float], float] | None = ...,
            *,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        self._check_points(self.points, "PathSpring")
        for function in (self.law, self.energy_function):
            if function is not None and not callable(function):
                raise ModelError(f"{self.label}: law and energy_function must be functions, got {function!r}.")

    @property
    def conservative(self) -> bool:
        """True where an energy is given."""
        return self.energy_function is not None

    def tension(self, length: float, rate: float) -> tuple[float, float, float]:
        """What the law says."""
        value = check_result(self.law(length, rate), (3,), f"{self.label}: law")
        return float(value[0]), float(value[1]), float(value[2])

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy in joules; 0 where none is given."""
        if self.energy_function is None:
            return 0.0
        return float(check_result(self.energy_function(self.length(poses)), (), f"{self.label}: energy"))


@dataclass(frozen=True, eq=False)
class Cable(PathForce):
    """A cable through points of two or more bodies that only pulls.

    The tension is k (l - rest_length) + d dl/dt where the cable is longer than its rest length and this is positive,
    else zero. It slides through the points between its ends without friction.

    Attributes:
        points: pairs (body name or "world", (3,) in its link frame, metres), from end to end.
        stiffness: N/m, of the whole cable.
        damping: N s/m.
        rest_length: metres, positive.
        name: for messages.
    """

    kind: ClassVar[str] = "cable"
    points: Points
    _: KW_ONLY
    stiffness: float
    rest_length: float
    damping: float = 0.0
    name: str | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self,
            points: Iterable[tuple[str, ArrayLike]],
            *,
            stiffness: float,
            rest_length: float,
            damping: float = ...,
            name: str | None = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        self._check_points(self.points, "Cable")
        where = self.label
        store(self, "stiffness", check_number(self.stiffness, f"{where}: stiffness", nonnegative=True))
        store(self, "damping", check_number(self.damping, f"{where}: damping", nonnegative=True))
        if check_number(self.rest_length, f"{where}: rest_length", nonnegative=True) == 0:
            raise ModelError(f"{where}: a cable of length zero has no direction; give its rest_length.")
        store(self, "rest_length", float(self.rest_length))

    @property
    def conservative(self) -> bool:
        """True without damping."""
        return self.damping == 0

    def tension(self, length: float, rate: float) -> tuple[float, float, float]:
        """Tension and its derivatives."""
        pull = self.stiffness * (length - self.rest_length) + self.damping * rate
        if length <= self.rest_length or pull <= 0:
            return 0.0, 0.0, 0.0
        return pull, self.stiffness, self.damping

    def energy(self, t: float, poses: FloatArray) -> float:
        """Energy of the stretched cable, joules."""
        return 0.5 * self.stiffness * max(self.length(poses) - self.rest_length, 0.0) ** 2

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "kind": self.kind,
            "points": [{"body": body, "point": plain(point)} for body, point in self.points],
            "stiffness": self.stiffness,
            "damping": self.damping,
            "rest_length": self.rest_length,
            "name": self.name,
        }


def read_cable(reader: Reader) -> dict[str, Any]:
    """Arguments of a cable from a file."""
    points = []
    for each in reader.objects("points"):
        points.append((each.text("body"), each.array("point", (3,))))
        each.finish()
    numbers = {what: reader.number(what) for what in ("stiffness", "rest_length")}
    return {"points": points, **numbers, "damping": reader.number("damping", 0.0)}
