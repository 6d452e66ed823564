"""Linearly implicit Euler by conjugate gradients: the steps of the direct solve, and what the preconditioner saves."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.reference import samples as make

DIRECT, ITERATIVE = la.LinearlyImplicitEuler(), la.LinearlyImplicitEuler("cg")
PLAIN = la.LinearlyImplicitEuler("cg", preconditioned=False)


def stiff_chain(n: int, between: float) -> la.Model:
    """A chain with stiff joints, and springs over two of them from link to link."""
    m = la.models.chain(n)
    for joint in m.joints.values():
        joint.stiffness, joint.damping = 1e4, 10.0
    if between:
        for k in range(1, n - 1, 2):
            ends = f"link{k}", (0.05, 0.0, 0.0), f"link{k + 2}", (0.05, 0.0, -0.1)
            m.add_force(la.PointSpring(*ends, stiffness=between, damping=0.01 * between, rest_length=0.4))
    return m.build()


def runs(model: la.Model, state: la.State) -> list[la.Trajectory]:
    return [la.simulate(model, state, dt=0.01, duration=0.1, method=each) for each in (DIRECT, ITERATIVE, PLAIN)]


@pytest.mark.slow
def test_the_same_steps_in_fewer_iterations():
    # joint springs only: the preconditioner is the inverse; measured 1 and 18.8 iterations
    model = stiff_chain(20, 0.0)
    direct, with_it, without = runs(model, model.state(q=0.1 * np.sin(np.arange(20))))
    assert np.abs(direct.v - with_it.v).max() < 1e-10  # measured 2e-13
    assert with_it.iterations.max() <= 2
    assert without.iterations[1:].mean() > 10
    # springs between bodies: measured 5.3 and 17.3
    model = stiff_chain(20, 1e4)
    direct, with_it, without = runs(model, model.state(q=0.1 * np.sin(np.arange(20))))
    assert np.abs(direct.v - with_it.v).max() < 1e-10  # measured 1e-12
    assert with_it.iterations[1:].mean() < 0.5 * without.iterations[1:].mean()


@pytest.mark.slow
def test_every_joint_and_force():
    rng = np.random.default_rng(1)
    m = make.random_tree(["free", *(kind for kind in make.MOVING_KINDS if kind != "free")], rng, springs=True)
    make.add_every_force(m, "b3", "b7", rng)
    m.forces = [force for force in m.forces if not isinstance(force, la.Potential)]
    model = m.build()
    direct, with_it, without = runs(model, model.state(*make.random_state(model, rng)))
    for run in (with_it, without):
        assert np.abs(direct.q - run.q).max() < 1e-10  # measured 2e-13
        assert np.abs(direct.v - run.v).max() < 1e-10  # measured 5e-12
    assert with_it.iterations[1:].mean() < 0.2 * without.iterations[1:].mean()  # measured 3 of 94


def test_by_name_and_again():
    method = la.LinearlyImplicitEuler("cg", tolerance=1e-9, preconditioned=False)
    assert method.label == "linearly-implicit-euler:cg"
    assert la.LinearlyImplicitEuler(**method.options()).options() == method.options()
