"""Galerkin steps by a dense matrix: the same steps as with the direction in linear time."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.reference.samples import add_every_force, random_state, random_tree

# each of these compiles a program of its own

KINDS = ("free", "revolute", "spherical", "prismatic", "universal", "helical", "planar", "cylindrical")
TIGHT = 1e-14


def sample(seed: int, forces: bool) -> tuple[la.Model, la.State]:
    rng = np.random.default_rng(seed)
    m = random_tree(KINDS, rng, springs=True)
    if forces:
        add_every_force(m, "b3", "b6", rng)
    model = m.build()
    q, v = random_state(model, rng)
    return model, model.state(q, v)


def both(model: la.Model, state: la.State, order: int, dt: float, steps: int) -> tuple[la.Trajectory, la.Trajectory]:
    """The same run with Newton and with DenseNewton."""
    methods = (la.Galerkin(order, solver=solver(TIGHT)) for solver in (la.Newton, la.DenseNewton))
    fast, dense = (la.simulate(model, state, dt=dt, duration=steps * dt, method=method) for method in methods)
    return fast, dense


@pytest.mark.slow
@pytest.mark.parametrize(("order", "forces"), [(2, True), (4, False), (6, False)])
def test_steps_are_those_of_newton(order, forces):
    model, state = sample(order, forces)
    fast, dense = both(model, state, order, 0.01, 5)
    # measured 1.6e-15 and 6.5e-14
    assert np.abs(fast.q - dense.q).max() < 1e-12
    assert np.abs(fast.v - dense.v).max() < 1e-12
    # the same directions, so the same number of them
    assert fast.report.counters["iterations"] == dense.report.counters["iterations"]


@pytest.mark.slow
def test_loops_are_closed_by_it_too():
    model = la.models.four_bar().build()
    fast, dense = both(model, la.project(model, model.state(v=[3.0, 0.0, 0.0])), 2, 0.005, 20)
    # measured 2.5e-16 and 5.6e-17
    assert np.abs(fast.q - dense.q).max() < 1e-12
    assert dense.constraint_error.max() < 1e-12


@pytest.mark.slow
def test_velocity_constraints_hold_with_it():
    m = la.Mechanism("sleigh", gravity=(0.0, 0.0, 0.0))
    m.add_body("sleigh", mass=2.0, com=(0.3, 0.0, 0.0), inertia=(0.2, 0.3, 0.4))
    m.add_joint("plane", "planar", parent="world", child="sleigh", axis=(0.0, 0.0, 1.0))
    row = [[0.0, 0.0, 0.0, 0.0, 1.0, 0.0]]
    m.add_constraint(la.Constraint(("sleigh",), lambda p, v: v[0, 4:5], lambda p, v: row, kind="velocity"))
    model = m.build()
    state = la.project(model, model.state(v=[1.0, 0.0, 2.0]))
    fast, dense = both(model, state, 2, 0.01, 20)
    assert np.abs(fast.q - dense.q).max() < 1e-12
    # it turns round its blade
    assert np.ptp(dense.q[:, 2]) > 0.1


@pytest.mark.slow
def test_it_is_saved_with_a_run(tmp_path):
    model = la.models.double_pendulum().build()
    method = la.Galerkin(4, solver=la.DenseNewton(1e-11, 20))
    run = la.simulate(model, model.state([0.3, 0.2]), dt=0.01, duration=0.05, method=method)
    run.save(tmp_path / "run.npz")
    again = la.resume(tmp_path / "run.npz", 0.05)
    assert again.method.solver == la.DenseNewton(1e-11, 20)
