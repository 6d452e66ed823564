"""What a random mechanism consists of, in SI units and in a world that stands upright, before it is written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastaction.model.joints import KINDS

ROTATIONS = ("angle", "angle2", "wx", "wy", "wz")
"""Names of velocity coordinates in radians per second; the others are in metres per second."""


@dataclass
class Joint:
    """One joint: geometry, what acts in it, and where it stands.

    Attributes:
        data: keywords of ``add_joint`` that have no unit: axis, axis2.
        parts: (kind, data, frame, pitch) of a composite joint.
        springs: stiffness, damping, armature by name, each a list with a number or a pair (linear, cubic) of a law for
            each velocity coordinate.
        limits: (low, high) of each coordinate, or None.
        effort: one number, or None.
        q, v: where it stands and how fast it moves.
        lock: coordinates at which it is held, or None.
        closes: whether it closes a loop, so has no coordinates.
    """

    name: str
    kind: str
    parent: str
    child: str
    parent_frame: np.ndarray
    child_frame: np.ndarray
    data: dict[str, Any] = field(default_factory=dict)
    pitch: float = 0.0
    parts: list[tuple[str, dict[str, Any], np.ndarray, float]] = field(default_factory=list)
    springs: dict[str, list[Any]] = field(default_factory=dict)
    rest: list[float] | None = None
    limits: list[tuple[float, float] | None] | None = None
    effort: float | None = None
    q: list[float] = field(default_factory=list)
    v: list[float] = field(default_factory=list)
    lock: list[float] | None = None
    closes: bool = False

    @property
    def kinds(self) -> list[str]:
        """Its kind, or those of its parts."""
        return [part[0] for part in self.parts] if self.kind == "composite" else [self.kind]

    @property
    def q_names(self) -> list[str]:
        """Names of its coordinates."""
        return [name for kind in self.kinds for name in KINDS[kind].coordinate_names]

    @property
    def v_names(self) -> list[str]:
        """Names of its velocities."""
        return [name for kind in self.kinds for name in KINDS[kind].velocity_names]

    @property
    def screws(self) -> list[int]:
        """Velocity coordinates that are single ones, so that a law or a servo can act on them."""
        return [] if self.kind == "free" else [i for i, n in enumerate(self.v_names) if n not in ("wx", "wy", "wz")]


@dataclass
class Plan:
    """A mechanism.

    Attributes:
        seed: where it came from.
        recipe: which features it was drawn with.
        bodies: name -> mass, com, inertia (3, 3), shape (kind, lengths) or None.
        joints: in any order.
        forces: (kind, data) in SI.
        servos: data of actuators.
        ground: friction, restitution, normal, height; or None.
        contacts: (a, b, friction, restitution).
        enforce: whether limits and efforts are in force.
        smooth: whether all forces are smooth, so that methods keep their order.
    """

    seed: int
    recipe: str
    gravity: np.ndarray
    bodies: dict[str, dict[str, Any]] = field(default_factory=dict)
    joints: list[Joint] = field(default_factory=list)
    forces: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    servos: list[dict[str, Any]] = field(default_factory=list)
    ground: dict[str, Any] | None = None
    contacts: list[dict[str, Any]] = field(default_factory=list)
    enforce: bool = False
    smooth: bool = True

    @property
    def loops(self) -> bool:
        """Whether it has closed loops."""
        return any(joint.closes for joint in self.joints)

    @property
    def functions(self) -> bool:
        """Whether it has functions of the user, which no file holds."""
        laws = any(isinstance(each, tuple) for joint in self.joints for row in joint.springs.values() for each in row)
        return laws or any(kind == "Potential" or data.get("rate") is not None for kind, data in self.forces)
