"""Mechanisms of Bruedigam et al. 2020 and 2023: chains of links, open and closed, and chains of four-link segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.model import Model

LENGTH, MASS, WIDTH = 1.0, 1.0, 0.1
"""Of a link, metres and kg; the papers do not give its width, without which ball joints leave the spin undetermined."""

_Y = (0.0, 1.0, 0.0)
_SWING = 0.3


def links(n: int, kind: str, closed: bool = False) -> Model:
    """Links one after the other in the x-z plane from the origin, on hinges along y or on ball joints.

    Args:
        n: number of links.
        kind: "revolute" or "spherical".
        closed: the end of the last link is held too, by a joint of the same kind. At q = 0 the links then hang between
            two points of the ground as they would at rest if the vertical were tilted by 0.3 rad, the first and the
            last one at 60 degrees to it; otherwise they hang straight down.
    """
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    m = Mechanism(f"{n} links, {kind}, {'closed' if closed else 'open'}")
    angles = np.zeros(n)
    if closed:
        # at rest the horizontal force is the same in all links, and the vertical one grows by a link's weight
        angles = np.arctan(np.sqrt(3) * np.linspace(-1.0, 1.0, n)) + _SWING
    at = np.zeros(3)
    parent, frame = "world", None
    for i, angle in enumerate(angles, start=1):
        vector = _add_link(m, f"link{i}", float(angle))
        m.add_joint(f"joint{i}", kind, parent=parent, child=f"link{i}", axis=_Y, parent_frame=frame)
        at = at + vector
        parent, frame = f"link{i}", pose(vector)
    if closed:
        m.add_joint("loop", kind, parent="world", child=parent, axis=_Y, parent_frame=pose(at), child_frame=frame)
    return m.build()


def segments(n: int, opening: float = np.pi / 4, tilt: float = 0.0) -> Model:
    """A hanging chain of n rhombi of four links on hinges, each with one loop.

    Links of segment k are ``left_k``, ``right_k`` (from its upper corner), ``low_k`` (from the end of ``left_k``) and
    ``back_k`` (from the end of ``right_k``); the joint ``loop_k`` holds the ends of the last two. Where links of a
    segment lie over each other it is singular.

    Args:
        n: number of segments.
        opening: angle of the links to the line of the chain at q = 0, radians.
        tilt: angle of the chain to the vertical, radians.
    """
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose

    m = Mechanism(f"{n} segments of four links")
    corner, frame = "world", None
    for k in range(1, n + 1):
        names = tuple(f"{part}_{k}" for part in ("left", "right", "low", "back"))
        left, right, low, back = names
        turns = (tilt - opening, tilt + opening, tilt + opening, tilt - opening)
        ends = {name: _add_link(m, name, turn) for name, turn in zip(names, turns, strict=True)}
        for parent, child, place in (
            (corner, left, frame),
            (corner, right, frame),
            (left, low, pose(ends[left])),
            (right, back, pose(ends[right])),
        ):
            m.add_joint(f"{child}_hinge", "revolute", parent=parent, child=child, axis=_Y, parent_frame=place)
        m.add_joint(
            f"loop_{k}", "revolute", parent=low, child=back, axis=_Y,
            parent_frame=pose(ends[low]), child_frame=pose(ends[back]),
        )  # fmt: skip
        corner, frame = low, pose(ends[low])
    return m.build()


def _add_link(m: Mechanism, name: str, angle: float) -> Any:
    """A link whose frame is parallel to the world, at an angle to -z towards x; its end (3,)."""
    vector = LENGTH * np.array([np.sin(angle), 0.0, -np.cos(angle)])
    d = vector / LENGTH
    # a uniform box: across, and about itself
    across, own = MASS * (LENGTH**2 + WIDTH**2) / 12, MASS * WIDTH**2 / 6
    m.add_body(name, mass=MASS, com=vector / 2, inertia=across * np.eye(3) + (own - across) * np.outer(d, d))
    return vector
