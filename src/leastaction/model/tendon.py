"""Tendons: a length that joints make together or a path through space has, with a spring, a damper and limits.

Actuators may pull on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, FloatArray, check_name, check_number, check_vector, frozen, quoted
from leastaction.model.elements import Joint
from leastaction.model.pose import check_pose
from leastaction.model.reader import Reader, plain

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism

KINDS = ("revolute", "continuous", "prismatic")
"""Kinds of joints that a tendon may run over."""


@dataclass(frozen=True, eq=False)
class Via:
    """A point of a path, fixed to a body.

    Attributes:
        body: body name or "world".
        point: (3,) in its link frame, metres.
    """

    body: str
    point: FloatArray

    def __post_init__(self) -> None:
        where = f"tendon: point on {self.body!r}"
        check_name(self.body, "tendon: body")
        object.__setattr__(self, "point", frozen(check_vector(self.point, 3, where)))


@dataclass(frozen=True, eq=False)
class Wrap:
    """A sphere, or an endless cylinder, that a path goes around where it meets it.

    Attributes:
        body: body name or "world".
        radius: metres.
        pose: (4, 4) of the shape in the link frame; the axis of a cylinder is its z axis.
        shape: "sphere" or "cylinder".
        side: the path passes on the side of this point; None takes the shorter way. It lies outside of the shape.
    """

    body: str
    radius: float
    pose: FloatArray = None  # type: ignore[assignment]
    shape: str = "sphere"
    side: Via | None = None

    if TYPE_CHECKING:
        # what may be given is wider than what is stored
        def __init__(
            self, body: str, radius: float, pose: Any = ..., shape: str = ..., side: tuple[str, ArrayLike] | None = ...
        ) -> None: ...

    def __post_init__(self) -> None:
        where = f"tendon: shape on {check_name(self.body, 'tendon: body')!r}"
        object.__setattr__(self, "radius", check_number(self.radius, f"{where}: radius", positive=True))
        object.__setattr__(self, "pose", frozen(check_pose(self.pose, where)))
        if self.shape not in ("sphere", "cylinder"):
            raise ModelError(f"{where}: a path goes around a 'sphere' or a 'cylinder', got {self.shape!r}.")
        given: Any = self.side
        if given is not None and not isinstance(given, Via):
            object.__setattr__(self, "side", _via(given, f"{where}: side"))
        here = self.side is not None and self.side.body == self.body
        if here and float(np.linalg.norm(self.side.point - self.pose[:3, 3])) < self.radius:  # type: ignore[union-attr]
            raise ModelError(f"{where}: its side lies inside; a path that passes through a shape is not supported.")


@dataclass(frozen=True, eq=False)
class Pulley:
    """Where a branch of a tendon begins, whose length counts as 1/divisor."""

    divisor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "divisor", check_number(self.divisor, "tendon: divisor of a pulley", positive=True))


Element = Via | Wrap | Pulley


@dataclass(frozen=True, eq=False)
class Tendon:
    """A weighted sum of joint coordinates, or a path through space; either has a length.

    Attributes:
        name: unique among tendons.
        joints: weight of each joint, in metres per radian or metre per metre; or without a unit, as gears have none.
        stiffness: of its spring, N/m where the length is in metres.
        damping: of its damper, N s/m.
        rest: (low, high): the spring pulls beyond these lengths, and not between them.
        limits: (low, high) of the length, infinite where there is none.
        path: points, shapes that it goes around, and pulleys, in place of joints.
    """

    name: str
    joints: dict[str, float]
    stiffness: float = 0.0
    damping: float = 0.0
    rest: tuple[float, float] = (0.0, 0.0)
    limits: tuple[float, float] = (-np.inf, np.inf)
    path: tuple[Element, ...] = ()

    @property
    def bodies(self) -> tuple[str, ...]:
        """The bodies of a path, each once."""
        out: dict[str, None] = {}
        for each in self.path:
            if not isinstance(each, Pulley):
                out.setdefault(each.body)
            if isinstance(each, Wrap) and each.side is not None:
                out.setdefault(each.side.body)
        return tuple(out)

    @property
    def label(self) -> str:
        """Words that name it in messages."""
        return f"tendon '{self.name}'"

    @property
    def has_limits(self) -> bool:
        """Whether its length has a bound."""
        return bool(np.isfinite(self.limits).any())

    def weights(self, nv: int, joints: Mapping[str, Any]) -> FloatArray:
        """Derivative (nv,) of the length by the coordinates of the joints (views by name) that move."""
        out = np.zeros(nv)
        for name, weight in self.joints.items():
            if name in joints:
                out[joints[name].v] = weight
        return out


def make_tendon(name: Any, joints: Any, path: Any, stiffness: Any, damping: Any, rest: Any, limits: Any) -> Tendon:
    """A checked tendon; see ``Mechanism.add_tendon``."""
    where = f"tendon '{check_name(name, 'tendon')}'"
    if (joints is None) == (path is None):
        raise ModelError(f"{where}: give joints or a path.")
    if path is None and (not isinstance(joints, Mapping) or not joints):
        raise ModelError(f"{where}: give {{joint: weight}}, as {{'proximal': 0.01, 'distal': 0.008}}, got {joints!r}.")
    weights: dict[str, float] = {}
    for joint, weight in (joints or {}).items():
        check_name(joint, f"{where}: joint")
        weights[joint] = check_number(weight, f"{where}: weight of joint '{joint}'")
        if weights[joint] == 0:
            raise ModelError(f"{where}: the weight of joint '{joint}' is zero; leave it out.")
    k = check_number(stiffness, f"{where}: stiffness", nonnegative=True)
    d = check_number(damping, f"{where}: damping", nonnegative=True)
    band = _pair((rest, rest) if np.ndim(rest) == 0 else rest, f"{where}: rest")
    if not np.isfinite(band).all():
        raise ModelError(f"{where}: rest must be finite, got {rest!r}.")
    ends = _pair((None, None) if limits is None else limits, f"{where}: limits")
    return Tendon(name, weights, k, d, band, ends, () if path is None else _checked_path(path, where))


def _via(given: Any, where: str) -> Via:
    """A point from a pair (body, point)."""
    try:
        body, point = given
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: give (body, point), got {given!r}.") from error
    return Via(body, point)


def _checked_path(path: Any, where: str) -> tuple[Element, ...]:
    """Elements of a path: points at the ends of every branch and on both sides of every shape."""
    if isinstance(path, str) or not hasattr(path, "__iter__"):
        raise ModelError(f"{where}: a path is a list of points (body, point), shapes and pulleys, got {path!r}.")
    out = tuple(each if isinstance(each, Via | Wrap | Pulley) else _via(each, f"{where}: path") for each in path)
    branches: list[list[Element]] = [[]]
    for each in out:
        if isinstance(each, Pulley):
            branches.append([])
        else:
            branches[-1].append(each)
    # a pulley may stand first
    branches = [branch for k, branch in enumerate(branches) if branch or k]
    for branch in branches:
        if len(branch) < 2:
            raise ModelError(f"{where}: a path, and each branch behind a pulley, needs two points at least.")
        for k, each in enumerate(branch):
            around = branch[max(k - 1, 0)], branch[min(k + 1, len(branch) - 1)]
            if isinstance(each, Wrap) and not all(isinstance(other, Via) for other in around):
                raise ModelError(f"{where}: the shape on '{each.body}' must stand between two points.")
    bodies = {each.body for each in out if not isinstance(each, Pulley)}
    if len(bodies) < 2:
        raise ModelError(f"{where}: its path lies on one body, {quoted(sorted(bodies))}, and keeps its length.")
    return out


def _pair(given: Any, where: str) -> tuple[float, float]:
    """A lower and an upper number in this order; None is infinite."""
    try:
        low, high = given
    except (TypeError, ValueError) as error:
        raise ModelError(f"{where}: give (low, high), got {given!r}.") from error
    ends = [
        side * np.inf if end is None or end == side * np.inf else check_number(end, where)
        for side, end in ((-1.0, low), (1.0, high))
    ]
    if ends[0] > ends[1]:
        raise ModelError(f"{where}: the lower end {ends[0]:g} is above the upper end {ends[1]:g}.")
    return ends[0], ends[1]


def check_tendons(mechanism: Mechanism) -> None:
    """Every tendon stands under its name, and runs over joints that are there and have one coordinate."""
    known_bodies = {WORLD, *mechanism.bodies}
    for key, tendon in mechanism.tendons.items():
        for body in tendon.bodies:
            if body not in known_bodies:
                raise ModelError(f"{tendon.label}: there is no body {body!r}.")
        if tendon.name != key:
            raise ModelError(f"tendon '{key}': the record says '{tendon.name}'; names and keys must agree.")
        for name in tendon.joints:
            if name not in mechanism.joints:
                known = quoted(list(mechanism.joints)[:20])
                raise ModelError(f"{tendon.label}: there is no joint {name!r}; there are {known}.")
            check_joint_kind(mechanism.joints[name], tendon.label)


def check_joint_kind(joint: Joint, where: str) -> None:
    """Refuse a joint that is neither a turn nor a slide."""
    if joint.kind not in KINDS:
        raise ModelError(
            f"{where}: joint '{joint.name}' is {joint.kind}; a tendon over joints takes those that are "
            f"{', '.join(KINDS)}."
        )


def tendon_to_dict(tendon: Tendon) -> dict[str, Any]:
    """Plain JSON types of a tendon."""
    way = {"path": [_element_to_dict(each) for each in tendon.path]} if tendon.path else {"joints": tendon.joints}
    return {
        "name": tendon.name,
        **way,
        "stiffness": tendon.stiffness,
        "damping": tendon.damping,
        "rest": list(tendon.rest),
        "limits": [end if np.isfinite(end) else None for end in tendon.limits],
    }


def _element_to_dict(each: Element) -> dict[str, Any]:
    """Plain JSON types of a point, shape or pulley."""
    if isinstance(each, Pulley):
        return {"divisor": each.divisor}
    if isinstance(each, Via):
        return {"body": each.body, "point": plain(each.point)}
    side = {} if each.side is None else {"side": _element_to_dict(each.side)}
    return {"body": each.body, "shape": each.shape, "radius": each.radius, "pose": plain(each.pose), **side}


def read_way(reader: Reader) -> dict[str, Any]:
    """Joints or path of a tendon from a file."""
    if "path" in reader.data:
        return {"path": [_read_element(each) for each in reader.objects("path")]}
    given = reader.object("joints")
    return {"joints": {} if given is None else {joint: given.number(joint) for joint in list(given.data)}}


def _read_element(reader: Reader) -> Element:
    """A point, shape or pulley."""
    if "divisor" in reader.data:
        out: Element = Pulley(reader.number("divisor"))
    elif "point" in reader.data:
        out = Via(reader.text("body"), reader.array("point", (3,)))
    else:
        side = reader.object("side")
        body, shape, radius = reader.text("body"), reader.text("shape"), reader.number("radius")
        frame, beside = reader.array("pose", (4, 4), None), None
        if side is not None:
            beside = Via(side.text("body"), side.array("point", (3,)))
            side.finish()
        out = Wrap(body, radius, frame, shape, None if beside is None else (beside.body, beside.point))
    reader.finish()
    return out
