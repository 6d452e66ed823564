"""Projection onto the loops: from near and from far."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction import observe
from leastaction.model.configuration import difference


def four_bar():
    return la.models.four_bar().build()


def reach(model, q0, q):
    """Distance in the mass metric at the start."""
    xi = difference(model, q0, q)
    return float(np.sqrt(xi @ la.mass_matrix(model, q0) @ xi))


@pytest.mark.parametrize("q", [{"crank_hinge": 1.2, "rocker_hinge": -2.0}, {"crank_hinge": 0.9}, {"coupler_hinge": 1}])
def test_far_from_closed(q):
    model = four_bar()
    q = {name: value for name, value in q.items() if name in model.joint_names}
    x = la.project(model, model.state(q, v=np.ones(model.nv)))
    assert observe.constraint_error(model, x.q[None])[0] < 1e-12  # measured 2e-16
    assert np.abs(observe.loop_gaps(model, x.q[None], x.v[None])[1]).max() < 1e-12  # measured 4e-16


@pytest.mark.parametrize("crank", [0.05, 0.3, 1.2])
def test_the_nearest_one(crank):
    """No closed position a little to either side is nearer."""
    model = four_bar()
    start = model.state({"crank_hinge": crank})
    found = la.project(model, start)
    best = reach(model, start.q, found.q)
    # the one way in which the closed linkage moves
    _, G, _, _ = observe._constraints(model, found.q, found.v)
    way = np.linalg.svd(G)[2][-1]
    for step in (0.01, -0.01):
        beside = la.project(model, model.state(found.q + step * way))
        assert observe.constraint_error(model, beside.q[None])[0] < 1e-12
        assert reach(model, start.q, beside.q) > best


def test_what_cannot_close_is_an_error_with_the_gap():
    m = la.Mechanism("short")
    m.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    m.add_joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    m.add_joint("far", "spherical", parent="world", child="rod", parent_frame=la.pose(xyz=(5, 0, 0)))
    model = m.build()
    with pytest.raises(la.ConvergenceError, match="the largest gap is still 5") as raised:
        la.project(model, model.state([0.3]))
    assert np.isfinite(raised.value.state.q).all()
