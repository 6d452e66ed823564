"""Work and precision: how the time at an error is read, and the mechanism; its bounds are a slow test."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.bench import precision
from leastaction.errors import ModelError


def test_the_time_at_an_error_is_that_of_the_fastest_curve():
    points = [
        precision.Point("a", "", 1e-4, 0.1),
        precision.Point("a", "", 1e-8, 1.0),
        precision.Point("b", "", 1e-5, 0.5),
        precision.Point("b", "", 1e-7, 0.6),
        precision.Point("c", "", 1e-2, 1e-3),
    ]
    seconds, curve = precision.seconds_at(points, 1e-6)
    assert curve == "a"
    assert seconds == pytest.approx(0.1 * 10**0.5, rel=1e-12)  # half way between both points, on a logarithmic scale
    assert precision.seconds_at(points[2:], 1e-6) == (pytest.approx((0.5 * 0.6) ** 0.5, rel=1e-12), "b")
    with pytest.raises(ModelError, match="no curve"):
        precision.seconds_at(points, 1e-9)


def test_the_pendulum_is_planar_and_starts_at_small_angles():
    model = precision.planar_pendulum()
    assert all(np.array_equal(joint.axis, [0, 1, 0]) for joint in model.mechanism.joints.values())
    found = precision.starts(model)
    assert np.abs(found["bent"].q).max() < np.pi / 90
    assert found["straight"].q.tolist() == [np.pi / 12] + [0.0] * 11
    assert precision.distance(np.ones((3, 4)), np.zeros((3, 4))) == 2.0


@pytest.mark.slow
def test_every_bound_is_kept():
    rows = precision.bench_precision()
    assert [row.what for row in rows if row.holds is False] == []
    assert sum(row.holds is True for row in rows) == 4
