"""The growth of the derivative of a step: the mechanisms that it is measured on, and its rows."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.bench import linearize as bench_linearize
from leastaction.bench import main as bench
from leastaction.galerkin.method import Galerkin


def test_the_exponent_is_a_slope():
    assert bench_linearize.exponent((1, 2, 4), (3.0, 12.0, 48.0)) == pytest.approx(2.0)


def test_the_humanoid_has_the_size_of_talos():
    model = bench_linearize.humanoid().build()
    assert model.nv == 38
    assert sum(bench_linearize.LIMBS.values()) == 32
    # arms and head hang on the torso
    assert {model.mechanism.joints[name].parent for name in ("arm11", "arm21", "head1")} == {"torso2"}
    state = bench_linearize.still(model)
    assert np.isfinite(Galerkin(2).step(model, state, 0.001).v).all()


def test_pinocchio_gets_the_same_mechanism():
    pin = pytest.importorskip("pinocchio")
    m = bench_linearize.humanoid()
    peer = bench_linearize.pinocchio_model(m)
    assert peer.nv == 38
    assert pin.computeTotalMass(peer) == pytest.approx(sum(body.mass for body in m.bodies.values()))


@pytest.mark.slow
def test_rows_say_what_they_are_compared_with(monkeypatch):
    monkeypatch.setattr(bench, "derivative_time", lambda model, state, order, dt: (1.0, float(order) ** 2))
    rows = bench_linearize.bench_orders()
    assert [row.ratio for row in rows[:-1]] == [1.0, 4.0, 9.0, 16.0]
    assert rows[-1].ratio == pytest.approx(2.0)
    monkeypatch.setattr(bench, "best", lambda function, least: 1e-3)
    monkeypatch.setattr(bench_linearize, "WINDOWS", (1, 2, 3))
    rows = bench_linearize.bench_loops()
    assert [row.what for row in rows[:-1]] == [
        "derivative of galerkin:2, 1 four-bars, 5 rows",
        "derivative of galerkin:2, 2 four-bars, 10 rows",
        "derivative of galerkin:2, 3 four-bars, 15 rows",
    ]
