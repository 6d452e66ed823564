"""Runs as xarray datasets: names, units, numbers."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import leastaction as la
from leastaction.model.joints import KINDS
from leastaction.run.export import coordinate_units, velocity_units


def make_joint(kind, **options):
    m = la.Mechanism("m")
    m.add_body("b", mass=1.0)
    return m.add_joint("j", kind, parent="world", child="b", **options)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("composite", "spline")])
def test_units_follow_the_names(kind):
    joint = make_joint(kind, axis2=(1, 0, 0)) if kind == "universal" else make_joint(kind)
    kinds = {"a": "rad", "d": "m", "x": "m", "y": "m", "z": "m", "q": "1"}
    assert coordinate_units(joint) == tuple(kinds[name[0]] for name in joint.coordinate_names)
    rates = {"a": "rad/s", "w": "rad/s", "d": "m/s", "x": "m/s", "y": "m/s", "z": "m/s", "v": "m/s"}
    assert velocity_units(joint) == tuple(rates[name[0]] for name in joint.velocity_names)


def test_units_of_a_composite_joint():
    joint = make_joint("composite", parts=["prismatic", "spherical", "revolute"])
    assert coordinate_units(joint) == ("m", "1", "1", "1", "1", "rad")
    assert velocity_units(joint) == ("m/s", "rad/s", "rad/s", "rad/s", "rad/s")


def test_dataset():
    m = la.models.cart_pole()
    m.add_body("ball", mass=0.2, inertia=(0.01, 0.01, 0.01), com=(0, 0, 0.1))
    m.add_joint("socket", "spherical", parent="pole", child="ball")
    model = m.build()
    run = la.simulate(model, model.state(q={"hinge": 0.2}), dt=0.01, duration=0.1, save_every=2)
    data = run.to_xarray()

    # numbers by name
    assert dict(data.sizes) == {"time": 6, "coordinate": 6, "velocity": 5, "axis": 3}
    assert np.array_equal(data.time, run.t)
    assert np.array_equal(data.q.sel(coordinate="hinge.angle"), run.positions("hinge")[:, 0])
    assert np.array_equal(data.q.sel(coordinate="socket.qw"), run.positions("socket")[:, 0])
    assert np.array_equal(data.v.sel(velocity="socket.wz"), run.velocities("socket")[:, 2])
    assert np.array_equal(data.total_energy, run.energy.total)
    assert np.array_equal(data.linear_momentum.sel(axis="z"), run.momentum.linear[:, 2])
    assert np.array_equal(data.angular_momentum, run.momentum.angular)
    assert np.array_equal(data.constraint_error, np.zeros(6))

    # units: of each coordinate, and in the attributes
    assert list(data.coordinate_unit.values) == ["m", "rad", "1", "1", "1", "1"]
    assert str(data.velocity_unit.sel(velocity="slider.displacement").values) == "m/s"
    assert data.time.attrs["units"] == "s"
    assert data.total_energy.attrs["units"] == "J"
    assert data.q.attrs["units"] == "mixed (1, m, rad)"
    assert data.attrs["method"] == "galerkin:4"
    assert data.attrs["mechanism"] == "cart_pole"


def test_one_unit_is_named_alone():
    run = la.simulate(la.models.pendulum().build(), dt=0.01, duration=0.01)
    assert run.to_xarray().q.attrs["units"] == "rad"


def test_missing_extra_is_named(monkeypatch):
    run = la.simulate(la.models.pendulum().build(), dt=0.01, duration=0.01)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(la.ModelError, match=r"leastaction\[xarray\]"):
        run.to_xarray()
