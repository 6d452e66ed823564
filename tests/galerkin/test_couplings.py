"""Forces between moving bodies in the Newton direction of a Galerkin step."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.galerkin.method import couplings
from leastaction.reference.galerkin_action import Probe
from leastaction.reference.samples import random_tree

# each of these compiles a program of its own

KINDS = ("free", "revolute", "spherical", "prismatic", "helical", "spherical")


class Pull(la.Force):
    """A linear law between two bodies: wrenches in link axes by the twists of both, not symmetric."""

    name, bodies, conservative = "pull", ("b2", "b5"), False
    D = -np.eye(12) + 0.3 * np.random.default_rng(1).normal(size=(12, 12))

    def wrenches(self, t, poses, twists):
        return (self.D @ twists.ravel()).reshape(2, 6)

    def derivatives(self, t, poses, twists):
        return np.zeros((12, 12)), self.D


def tree(seed: int, damping: float = 3.0, pull: bool = True) -> la.Model:
    """A branching tree with springs across it and to the world."""
    m = random_tree(KINDS, np.random.default_rng(seed))
    spring = {"stiffness": 400.0, "damping": damping, "rest_length": 0.2}
    m.add_force(la.PointSpring("b1", (0.1, 0.2, 0.1), "b4", (0.1, -0.2, 0.3), **spring))
    m.add_force(la.PointSpring("b5", (0.2, 0.0, 0.1), "b3", (0.1, 0.1, 0.1), **spring))
    m.add_force(la.PointSpring("world", (0.2, 0.0, 0.1), "b2", (0.1, 0.1, 0.1), **spring))
    if pull:
        m.add_force(Pull())
    return m.build()


@pytest.mark.slow
@pytest.mark.parametrize(("s", "quadrature"), [(1, "lobatto"), (2, "lobatto"), (2, "gauss")])
def test_the_newton_direction_is_exact(s, quadrature):
    # measured 2e-13, 4e-13, 1.5e-12
    assert Probe(tree(3), s, 0.05, 4, quadrature).left() < 1e-9


def test_which_forces_tie_bodies_together():
    # springs without damping do not at node 0, which does not move; those to the world never do
    assert couplings(tree(3, damping=0.0, pull=False), 1) is None
    assert couplings(tree(3, damping=0.0, pull=False), 3).tolist() == [
        [0, 1, 0, 3, 2], [0, 2, 3, 3, 2], [1, 1, 6, 3, 2], [1, 2, 9, 3, 2],
    ]  # fmt: skip
    assert couplings(tree(3, damping=0.0, pull=False), 1, "gauss").tolist() == [[0, 0, 0, 3, 2], [1, 0, 3, 3, 2]]
    assert couplings(tree(3), 1).tolist() == [[0, 0, 0, 3, 2], [1, 0, 3, 3, 2], [3, 0, 6, 12, 2]]
    assert couplings(la.models.chain(3).build(), 2) is None


def two_masses(stiffness: float) -> la.Model:
    """Two free bodies of 1 kg with a spring between points off their centres."""
    m = la.Mechanism("two", gravity=(0.0, 0.0, 0.0))
    for name in ("a", "b"):
        m.add_body(name, mass=1.0, inertia=(0.01, 0.02, 0.025))
        m.add_joint(name, "free", parent="world", child=name)
    m.add_force(la.PointSpring("a", (0.1, 0.0, 0.05), "b", (-0.1, 0.05, 0.0), stiffness=stiffness, rest_length=0.3))
    return m.build()


@pytest.mark.slow
@pytest.mark.parametrize("dt", [1e-3, 1e-2])
@pytest.mark.parametrize("solver", [la.Newton(), la.DenseNewton()])
def test_stiff_springs_between_bodies_take_no_more_iterations(solver, dt):
    model = two_masses(1e5)
    q = model.neutral()
    q[7] = 0.505
    x0 = model.state(q, np.r_[0.3, -0.2, 0.5, 0.0, 0.1, 0.0, -0.1, 0.4, 0.2, 0.0, 0.0, 0.1])
    run = la.simulate(model, x0, dt=dt, duration=100 * dt, method=la.Galerkin(4, solver=solver))
    # measured 2.01 and 3.98; without the couplings 5.4, and no convergence
    assert run.report.counters["iterations"] / run.steps < 4.5
    # measured 1.4e-15
    assert np.abs(run.momentum.angular - run.momentum.angular[0]).max() < 1e-12


@pytest.mark.slow
def test_loops_and_springs_between_bodies_together():
    m = la.models.n_four_bar(2)
    m.add_force(la.PointSpring("rod0", (0, 0, 0.5), "bar2", (0.5, 0, 0), stiffness=1e4, damping=5.0, rest_length=1.0))
    model = m.build()
    x0 = model.state(v=[-1.0 if name.startswith("base") else 1.0 for name in model.joint_names])
    run = la.simulate(model, x0, dt=0.002, duration=0.2, method=la.Galerkin(2))
    other = la.simulate(model, x0, dt=0.0005, duration=0.2, method="rk4")
    # measured 7e-16, 1.98, 5.9e-4
    assert run.constraint_error.max() < 1e-12
    assert run.report.counters["iterations"] / run.steps < 3.0
    assert np.abs(run.q[-1] - other.q[-1]).max() < 1e-3
