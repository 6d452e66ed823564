"""Constraints on joint coordinates, coupled joints, and strands of point masses."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def test_coupled_joints_are_the_constrained_ones():
    """All hinges of a pendulum at one angle (2.88): by fewer coordinates, and by rows on the accelerations (2.107)."""
    model = la.models.chain(4).build()
    names = model.joint_names
    one = la.Reduction.gears(model, {name: (names[0], 1.0) for name in names[1:]})
    p, rate = np.array([0.4]), np.array([1.3])
    rows = np.array([[-1.0, *(1.0 if k == i else 0.0 for k in range(3))] for i in range(3)])
    found = la.constrained_dynamics(model, one.q(p), one.v(p, rate), rows=rows)
    assert one.size == 1
    assert found.acceleration == pytest.approx(np.full(4, one.acceleration(p, rate)[0]), rel=1e-10)  # measured 2e-15
    # its energy is that of the model, and constant
    times = np.linspace(0.0, 0.5, 6)
    p, rate = one.simulate(p, rate, times=times)
    total = [la.energy(model, one.q(x), one.v(x, u)).total for x, u in zip(p, rate, strict=True)]
    assert np.ptp(total) < 1e-7 * abs(total[0])  # measured 5e-9 J


def test_a_curved_reduction_needs_the_rate_of_its_jacobian():
    """A bead on a parabola: x = p, y = p^2 of two sliders; the acceleration is that of Lagrange's equation."""
    m = la.Mechanism("bead", gravity=(0.0, 0.0, -9.81))
    m.add_body("carriage", mass=0.0)
    m.add_body("bead", mass=2.0, inertia=(0.0, 0.0, 0.0))
    m.add_joint("x", "prismatic", parent="world", child="carriage", axis=(1, 0, 0))
    m.add_joint("z", "prismatic", parent="carriage", child="bead", axis=(0, 0, 1))
    bead = la.Reduction(
        m.build(), 1, lambda p: np.array([p[0], p[0] ** 2]), lambda p: np.array([[1.0], [2 * p[0]]]),
        lambda p, rate: np.array([[0.0], [2 * rate[0]]]),
    )  # fmt: skip
    p, rate = 0.7, 1.1
    expected = -(4 * p * rate**2 + 2 * 9.81 * p) / (1 + 4 * p**2)
    assert bead.acceleration(p, rate)[0] == pytest.approx(expected, rel=1e-12)  # measured 0


def test_inequalities_push_only():
    pytest.importorskip("piqp")
    model = la.models.double_pendulum().build()
    q, v = [0.5, 0.2], [0.0, 0.0]
    free = la.forward_dynamics(model, q, v)
    row = np.array([[1.0, 0.0]])
    held = la.constrained_dynamics(model, q, v, inequality_rows=row, inequality_right=[free[0] + 1.0])
    assert held.acceleration[0] == pytest.approx(free[0] + 1.0, rel=1e-8)  # measured 2e-11
    assert held.inequality_multipliers[0] > 0
    loose = la.constrained_dynamics(model, q, v, inequality_rows=row, inequality_right=[free[0] - 1.0])
    assert loose.acceleration == pytest.approx(free, rel=1e-8)  # measured 0
    with pytest.raises(la.ConvergenceError, match="contradicts the others"):
        la.constrained_dynamics(model, q, v, rows=[[1.0, 0.0], [1.0, 0.0]], right=[0.0, 1.0])


def test_bad_input():
    model = la.models.chain(3).build()
    a, b, c = model.joint_names
    for couplings, words in (
        ({a: (b,)}, "give"),
        ({a: (b, 1.0), b: (c, 1.0)}, "follower itself"),
        ({a: ("nothing", 1.0)}, "no joint 'nothing'"),
    ):
        with pytest.raises(la.ModelError, match=words):
            la.Reduction.gears(model, couplings)
    with pytest.raises(la.UnsupportedError, match="quaternion"):
        la.Reduction.gears(la.models.spherical_pendulum().build(), {})
    with pytest.raises(la.UnsupportedError, match="closed loops"):
        la.constrained_dynamics(la.models.four_bar().build(), None, None)
    with pytest.raises(la.ModelError, match="expected"):
        la.constrained_dynamics(model, None, None, rows=[[1.0, 2.0]])


def test_a_strand_hangs_between_bodies():
    """A strand from the world to a pendulum's bob: its springs carry its weight, and it moves with every method."""
    m = la.models.pendulum()
    bob = next(iter(m.bodies))
    nodes = la.models.add_strand(
        m, "rope", ("world", (1.0, 0.0, 0.0)), (bob, (0.0, 0.0, -0.5)), nodes=3, mass=0.3, stiffness=300.0, damping=0.5
    )
    assert nodes == ["rope1", "rope2", "rope3"]
    model = m.build()
    assert model.nv == 1 + 9
    run = la.simulate(model, dt=0.002, duration=0.2, method=la.RungeKutta(4))
    assert (np.diff(run.energy.total) < 1e-9).all()  # dampers only take; measured -5e-8
    # the nodes fall until the springs hold them
    assert -0.2 < run.poses("rope2")[-1, 2, 3] - run.poses("rope2")[0, 2, 3] < -0.005  # measured -0.14
    with pytest.raises(la.ModelError, match="its ends coincide"):
        la.models.add_strand(m, "loop", ("world", (0, 0, 0)), ("world", (0, 0, 0)), nodes=2, mass=1.0, stiffness=1.0)
