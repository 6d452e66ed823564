"""Small mechanisms of bodies that touch, and their contacts at given poses."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.contact import features as contact_features
from leastaction.contact import gap as contact_gap
from leastaction.contact import layout as cl
from leastaction.model.checks import FloatArray
from leastaction.model.contacts import contact_table
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import inverse_pose
from leastaction.model.shapes import Box, Capsule, Cylinder, Shape, Sphere
from leastaction.reference.contact_geometry import Solid
from leastaction.spatial import quaternion

SOLIDS: dict[str, tuple[Shape, Solid]] = {
    "sphere": (Sphere(0.1), ("sphere", (0.1,))),
    "capsule": (Capsule(0.1, 0.4), ("capsule", (0.1, 0.2))),
    "cylinder": (Cylinder(0.15, 0.3), ("cylinder", (0.15, 0.15))),
    "box": (Box((0.2, 0.3, 0.4)), ("box", (0.1, 0.15, 0.2))),
}
"""A shape of each kind, and the same as a solid of ``contact_geometry``."""


class Touching:
    """The contacts of a mechanism at given poses of its bodies.

    Attributes:
        table: ``model.contacts.ContactTable``.
        P: (rows, 12) poses of the rows.
        ints, floats, count: the frozen contacts, see ``contact/layout.py``.
        gap, normal, ga, gb, ca, cb: what ``contact/gap.py`` says about each.
    """

    def __init__(self, mechanism: Mechanism, poses: dict[str, FloatArray], margin: float = np.inf) -> None:
        model = mechanism.build()
        self.table = contact_table(mechanism, model.places)
        self._places = {name: model.places[name] for name in poses}
        self.P = np.zeros((len(model.system.tree.rows), 12))
        self.P[:, [0, 4, 8]] = 1.0
        # what is not written shows up as NaN
        self.ints = np.full((self.table.capacity, cl.INT_WIDTH), -7, dtype=np.int64)
        self.floats = np.full((self.table.capacity, cl.FLOAT_WIDTH), np.nan)
        self.put(poses)
        self.find(margin)

    def put(self, poses: dict[str, FloatArray]) -> None:
        """Move bodies to poses (4, 4)."""
        for name, pose in poses.items():
            T = pose @ inverse_pose(self._places[name].pose)
            self.P[self._places[name].row] = np.concatenate([T[:3, :3].ravel(), T[:3, 3]])

    def find(self, margin: float = np.inf) -> None:
        """Choose the features anew, and measure them."""
        self.count = contact_features.find_contacts(self.table.contacts, self.P, margin, self.ints, self.floats)
        self.measure()

    def measure(self) -> None:
        """Gaps of the present features at the present poses."""
        n = self.count
        self.gap, self.normal = np.full(n, np.nan), np.full((n, 3), np.nan)
        self.ga, self.gb = np.full((n, 6), np.nan), np.full((n, 6), np.nan)
        self.ca, self.cb = np.full((n, 3), np.nan), np.full((n, 3), np.nan)
        out = (self.gap, self.normal, self.ga, self.gb, self.ca, self.cb)
        contact_gap.contact_gaps(self.ints, self.floats, n, self.P, *out)

    @property
    def kinds(self) -> list[int]:
        """Kinds of the gaps, sorted."""
        return sorted(self.ints[: self.count, cl.GAP].tolist())


def two_bodies(one: Shape, two: Shape) -> Mechanism:
    """Two free bodies "a" and "b" that may touch."""
    m = Mechanism()
    for name, shape in (("a", one), ("b", two)):
        m.add_body(name, shape=shape, mass=1.0, inertia=np.eye(3))
        m.add_joint(f"to_{name}", "free", parent="world", child=name)
    m.add_contact("a", "b")
    return m


def on_ground(shape: Shape, **ground: Any) -> Mechanism:
    """A free body "a" over the ground."""
    m = Mechanism()
    m.add_body("a", shape=shape, mass=1.0, inertia=np.eye(3))
    m.add_joint("to_a", "free", parent="world", child="a")
    m.add_ground(**ground)
    return m


def random_poses(n: int, rng: np.random.Generator, scale: float = 0.0) -> FloatArray:
    """Poses (n, 4, 4) with random rotations, and positions of the given scale in metres."""
    out = np.tile(np.eye(4), (n, 1, 1))
    for T in out:
        q = rng.normal(size=4)
        T[:3, :3] = quaternion.to_matrix(q / np.linalg.norm(q))
        T[:3, 3] = scale * rng.normal(size=3)
    return out
