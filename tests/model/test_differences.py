"""Derivatives of functions of the user that give none: checked differences, in every result that needs them."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.differences import checked_differences

TIP, ANCHOR = np.array([0.1, 0.0, -1.0]), np.array([1.0, 0.0, 0.0])


def stretch(poses: np.ndarray) -> np.ndarray:
    """From the anchor to the tip of the body."""
    return poses[0, :3, 3] + poses[0, :3, :3] @ TIP - ANCHOR


def slope(poses: np.ndarray) -> np.ndarray:
    """Derivative of 25 |stretch|^2."""
    force = poses[0, :3, :3].T @ (50 * stretch(poses))
    return np.array([[*np.cross(TIP, force), *force]])


def pendulum(gradient=slope) -> la.Model:
    """A pendulum on a potential without hessian."""
    m = la.Mechanism("p")
    m.add_body("a", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
    m.add_joint("j", "revolute", parent="world", child="a", axis=(0, 1, 0))
    m.add_force(la.Potential("a", lambda poses: 25 * float(stretch(poses) @ stretch(poses)), gradient, name="band"))
    return m.build()


def spring() -> la.Model:
    """The same as a spring between points, whose derivative is exact."""
    m = pendulum().mechanism
    m.forces[:] = [la.PointSpring("a", TIP, "world", ANCHOR, stiffness=50.0)]
    return m.build()


def test_differences_are_exact_or_refused():
    matrix = np.random.default_rng(1).normal(size=(3, 4))
    found = checked_differences(lambda x: np.sin(matrix @ (x + 0.3)), 4, "f", "g")
    exact = np.cos(matrix @ np.full(4, 0.3))[:, None] * matrix
    assert np.abs(found - exact).max() < 1e-11  # measured 4e-13
    # short waves need a shorter step, and get it
    short = checked_differences(lambda x: np.sin(3e3 * (x + 0.1)), 1, "f", "g")
    assert short[0, 0] == pytest.approx(3e3 * np.cos(300.0), rel=1e-9)  # measured 2e-12
    # zero is zero, and a kink is found at the point and beside it
    assert not checked_differences(lambda x: np.zeros(2), 3, "f", "g").any()
    for at in (0.0, 3e-7):
        with pytest.raises(la.UnsupportedError, match=r"f: its derivative is needed, and central differences .*give g"):
            checked_differences(lambda x, at=at: np.maximum(x - at, 0.0), 1, "f", "g")


@pytest.mark.parametrize("method", ["bdf:1", "bdf:2", "sdirk2", "galerkin:2", "lie-trapezoid", "rk4"])
def test_a_potential_without_hessian_in_linearize_and_gradient(method):
    models = pendulum(), spring()
    found = [la.linearize(model, method, model.state([0.3], [0.2]), None, 0.02) for model in models]
    assert np.abs(found[0].A - found[1].A).max() < 1e-10  # measured 3e-12
    objective = la.Reach("a", (0.3, 0, -0.4), (0, 0, -1.0))
    by = [la.gradient(m, method, m.state([0.3], [0.2]), np.zeros((4, 1)), 0.02, objective) for m in models]
    for name in ("q", "v", "controls"):
        assert np.abs(by[0][name] - by[1][name]).max() < 1e-11  # measured 2e-13


def test_a_potential_without_hessian_in_derivatives_of_the_dynamics():
    one, two = pendulum(), spring()
    q, v = np.array([0.3]), np.array([0.2])
    pairs = [
        [la.forward_dynamics_derivatives(m, q, v).dq for m in (one, two)],
        [la.inverse_dynamics_derivatives(m, q, v, [0.0]).dq for m in (one, two)],
        [la.lagrangian_hessian(m, q).potential_qq for m in (one, two)],
        [la.redmax.reduced_forces(m, q, v).K for m in (one, two)],
    ]
    for found, exact in pairs:
        assert np.abs(found - exact).max() < 1e-9 * np.abs(exact).max()  # measured 9e-12


def test_linearly_implicit_euler_takes_the_derivative_into_its_step():
    runs = [
        la.simulate(m, m.state([0.3], [0.2]), dt=0.02, duration=0.2, method="linearly-implicit-euler")
        for m in (pendulum(), spring())
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-11  # measured 7e-14


def test_a_kink_is_an_error_where_a_derivative_is_asked_and_not_in_a_run():
    def kinked(poses: np.ndarray) -> np.ndarray:
        return slope(poses) if stretch(poses)[0] > stretch(pose)[0] else 2 * slope(poses)

    model = pendulum(kinked)
    state = model.state([0.3], [0.2])
    pose = la.poses(model, state.q)["a"][None]
    la.simulate(model, state, dt=0.02, duration=0.04, method="bdf:2")
    with pytest.raises(la.UnsupportedError, match=r"Potential 'band': its derivative is needed.*give hessian="):
        la.linearize(model, "rk4", state, None, 0.02)
    with pytest.raises(la.UnsupportedError, match=r"Potential 'band': its derivative is needed.*give hessian="):
        la.forward_dynamics_derivatives(model, state.q, state.v)
