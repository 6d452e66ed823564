"""Contacts with cylinders at poses that random ones miss: flat on a cap, along an axis, a cap flat on a side."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import leastaction as la
from leastaction.reference.contact_samples import Touching, two_bodies

TABLE = la.Cylinder(0.3, 0.2)
# shape, turn that lays it down, height of its middle
UPPER = {
    "box": (la.Box((0.2, 0.15, 0.1)), (0.0, 0.0, 0.0), 0.05),
    "standing cylinder": (la.Cylinder(0.08, 0.2), (0.0, 0.0, 0.0), 0.1),
    "lying cylinder": (la.Cylinder(0.08, 0.2), (0.0, np.pi / 2, 0.0), 0.08),
    "lying capsule": (la.Capsule(0.05, 0.3), (0.0, np.pi / 2, 0.0), 0.05),
}


@pytest.mark.parametrize("upper", UPPER)
def test_what_lies_on_a_cap_is_held_wherever_it_lies(upper):
    shape, down, height = UPPER[upper]
    rng = np.random.default_rng(8)
    found, wrong, most = None, 0.0, 0.0
    for k in range(60):
        gap = (1e-4, 1e-9, -1e-9, -1e-6)[k % 4]
        place, spin, tilt = rng.uniform(0, 2 * np.pi), rng.uniform(0, 2 * np.pi), (0.0, 1e-10)[k // 4 % 2]
        off = 0.28 * np.sqrt(rng.uniform())
        middle = np.array([off * np.cos(place), off * np.sin(place), 0.1 + height + gap])
        pose = la.pose(xyz=middle, rpy=(tilt, 0, spin)) @ la.pose(rpy=down)
        found = found or Touching(two_bodies(shape, TABLE), {"a": pose, "b": np.eye(4)})
        found.put({"a": pose})
        found.find(1e-3)
        # nothing deeper than the body is
        wrong = max(wrong, abs(found.gap.min() - gap))
        # forces at the points that touch can carry its weight: its middle is a mean of them
        touch = found.ca[found.gap < gap + 1e-7]
        rows = np.vstack([touch[:, :2].T, np.ones(len(touch))])
        most = max(most, nnls(rows, np.array([*middle[:2], 1.0]))[1])
    assert wrong < 1e-10  # measured 8e-12, by the tilt of 1e-10
    assert most < 2e-5  # metres; measured 7e-6 for the lying cylinder, 2e-16 for the others


SINGLE = {
    # two shapes, pose of the first, distance (or depth, with a minus sign) and what is nearest
    "box in the side": (la.Box((0.2, 0.15, 0.1)), TABLE, la.pose(xyz=(0.399, -0.07, 0.1)), -1e-3),
    "box beside the side": (la.Box((0.2, 0.15, 0.1)), TABLE, la.pose(xyz=(0.4001, 0.07, 0.1)), 1e-4),
    "cap on a side": (la.Cylinder(0.08, 0.2), TABLE, la.pose(xyz=(-0.4001, -0.07, 0.02), rpy=(0, np.pi / 2, 0)), 1e-4),
    "box on end": (
        la.Box((0.2, 0.15, 0.1)),
        TABLE,
        la.pose(xyz=(0.19, 0.03, 0.2 - 1e-6), rpy=(0, np.pi / 2, 0.3)),
        -1e-6,
    ),
    "cylinder along an edge": (
        la.Cylinder(0.08, 0.2),
        la.Box((0.5, 0.4, 0.2)),
        la.pose(xyz=(-0.05, 0.2 + 0.0801 * np.sin(0.3), 0.1 + 0.0801 * np.cos(0.3)), rpy=(0, np.pi / 2, 0)),
        1e-4,
    ),
    "capsule along a cylinder": (
        la.Capsule(0.05, 0.3),
        la.Cylinder(0.08, 0.2),
        la.pose(xyz=(0.1301, 0, 0)),
        1e-4,
    ),
    "cylinders side by side": (
        la.Cylinder(0.08, 0.2),
        la.Cylinder(0.08, 0.3),
        la.pose(xyz=(0.1599, 0, 0.2)),
        -1e-4,
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_smallest_gap_where_edges_and_axes_are_in_line(name):
    one, two, pose, distance = SINGLE[name]
    found = Touching(two_bodies(one, two), {"a": pose, "b": np.eye(4)}, 1e-3)
    assert found.gap.min(initial=1.0) == pytest.approx(distance, abs=1e-10)  # measured 7e-12
