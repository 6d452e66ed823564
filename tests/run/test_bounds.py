"""Enforced efforts and limits in what is reported and in the dynamics."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def _slider(**joint) -> la.Model:
    m = la.Mechanism("slider")
    m.add_body("b", mass=2.0, inertia=(1, 1, 1))
    m.add_joint("j", "prismatic", parent="world", child="b", axis=(0, 0, 1), **joint)
    m.enforce_limits()
    return m.build()


def test_a_control_counts_up_to_the_enforced_effort_everywhere():
    model = _slider(effort=10.0)
    run = la.simulate(model, dt=0.01, duration=0.1, method="maximal", control=np.full((10, 1), 100.0))
    assert np.array_equal(run.tau[:-1], np.full((10, 1), 10.0))
    assert np.array_equal(run.asked[:-1], np.full((10, 1), 100.0))
    assert abs(run.joint_forces["j"][0, 5] - 10.0) < 1e-12
    # 10 N / 2 kg - 9.81
    assert abs(la.forward_dynamics(model, [0.0], [0.0], [100.0])[0] + 4.81) < 1e-12
    assert la.hybrid_dynamics(model, model.state(), control=[100.0]).acceleration[0] == pytest.approx(-4.81, abs=1e-12)
    by = la.forward_dynamics_derivatives(model, [0.0], [0.0], [100.0])
    assert by.dtau[0, 0] == 0.0
    assert la.forward_dynamics_derivatives(model, [0.0], [0.0], [1.0]).dtau[0, 0] == pytest.approx(0.5, abs=1e-12)
    # the report still says that more was asked
    assert "effort" in run.report.limits["j"]


def test_a_joint_that_rests_on_its_limit_is_held():
    model = _slider(limits=(0.0, 1.0))
    rows = la.forward_dynamics(
        model, [[0.0], [0.0], [0.5], [0.0]], [[0.0], [0.3], [0.0], [0.0]], [[0], [0], [0], [30.0]]
    )
    # held; leaving; free; pulled off: 30 N / 2 kg - 9.81. Measured off by 2e-15 at most
    assert np.abs(rows[:, 0] - [0.0, -9.81, -9.81, 5.19]).max() < 1e-12
    with pytest.raises(la.UnsupportedError, match=r"joint 'j' moves into its enforced limit.*maximal"):
        la.forward_dynamics(model, [0.0], [-0.3])
    with pytest.raises(la.UnsupportedError, match=r"joint 'j' leans on its enforced limit.*forward_dynamics"):
        la.hybrid_dynamics(model, model.state())
    with pytest.raises(la.UnsupportedError, match="on its enforced limit"):
        la.forward_dynamics_derivatives(model, [0.0], [0.0])
    assert la.hybrid_dynamics(model, model.state(), {"j": 1.0}).acceleration[0] == 1.0


def test_several_limits_hold_as_the_complementarity_says():
    """Three hinges on their limits: neither accelerations nor forces are negative, and one of them is zero."""
    rng = np.random.default_rng(3)
    m = la.Mechanism("arm")
    for k in range(3):
        m.add_body(f"b{k}", mass=1.0 + k, com=(0.3, 0.1, 0.0), inertia=(0.1, 0.2, 0.25))
        m.add_joint(
            f"j{k}", "revolute", parent="world" if k == 0 else f"b{k - 1}", child=f"b{k}", axis=(0, 1, 0),
            parent_frame=la.pose(xyz=(0.5 * (k > 0), 0, 0)), limits=(0.0, 1.0),
        )  # fmt: skip
    free = m.build()
    m.enforce_limits()
    model, patterns = m.build(), set()
    for _ in range(40):
        tau = rng.normal(size=3) * 20
        a = la.forward_dynamics(model, np.zeros(3), np.zeros(3), tau)
        force = la.inverse_dynamics(free, np.zeros(3), np.zeros(3), a) - tau
        scale = np.abs(tau).max()
        # measured 5e-13 for a, 3e-15 for the forces, 6e-13 for the products
        assert a.min() > -1e-11
        assert force.min() > -1e-11 * scale
        assert np.abs(a * force).max() < 1e-10 * scale
        patterns.add(tuple(force > 1e-9))
    assert len(patterns) >= 5


def test_a_file_holds_what_ran_though_the_mechanism_was_edited(tmp_path):
    model = la.models.double_pendulum().build()
    run = la.simulate(model, model.state(q=[0.3, 0.1]), dt=0.01, duration=0.1)
    body = model.body_names[0]
    model.mechanism.bodies[body].mass = 50.0
    model.mechanism.gravity = (0.0, 0.0, 5.0)
    run.save(tmp_path / "run.npz")
    again = la.Trajectory.load(tmp_path / "run.npz")
    assert again.model.total_mass == model.total_mass
    assert np.array_equal(again.energy.total, run.energy.total)
