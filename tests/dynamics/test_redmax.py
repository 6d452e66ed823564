"""The Jacobian layer and hybrid dynamics against the reference, and every derivative against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import redmax
from leastaction.model.configuration import retract
from leastaction.reference import dynamics as reference
from leastaction.reference import hybrid as reference_hybrid
from leastaction.reference import samples
from leastaction.reference.kinematics import motions


@pytest.fixture(scope="module")
def tree():
    """A branching tree with every kind of joint, a free one also on another body, with springs, rotors and forces."""
    rng = np.random.default_rng(3)
    m = samples.random_tree(["free", *samples.MOVING_KINDS, "revolute"], rng, springs=True)
    samples.add_every_force(m, "b3", "b7", rng)
    # the derivatives of a potential need its second one, which this one does not have
    m.forces[:] = [force for force in m.forces if not isinstance(force, la.Potential)]
    model = m.build()
    q, v = samples.random_state(model, rng)
    return model, q, v, rng.normal(size=model.nv)


def differences(model, q, v, function, by, directions, h=1e-6):
    """Central differences of function(q, v) along directions (k, nv) of q or of v, along a new last axis."""
    out = []
    for e in h * directions:
        ahead, behind = (
            (function(retract(model, q, e), v), function(retract(model, q, -e), v))
            if by == "q"
            else (function(q, v + e), function(q, v - e))
        )
        out.append((ahead - behind) / (2 * h))
    return np.stack(out, axis=-1)


def relative(found, expected):
    """Largest difference over the largest number."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def test_the_jacobian_and_its_products_are_those_of_the_reference(tree):
    model, q, v, x = tree
    moving = motions(model, q, v)
    J = np.vstack([moving[name].J for name in model.body_names])
    Jdot = np.vstack([moving[name].Jdot for name in model.body_names])
    assert relative(redmax.jacobian(model, q), J) < 1e-14  # measured 9e-16
    assert relative(redmax.jacobian_rate(model, q, v), Jdot) < 1e-14  # measured 1.4e-15
    # the products do not form the matrices
    y = np.random.default_rng(0).normal(size=(2, len(model.body_names), 6))
    assert relative(redmax.twists(model, q, x).ravel(), J @ x) < 1e-14  # measured 8e-16
    assert relative(redmax.twist_rates(model, q, v, x).ravel(), Jdot @ x) < 1e-14  # measured 1.9e-15
    assert relative(redmax.wrenches_to_forces(model, q, y), y.reshape(2, -1) @ J) < 1e-14  # measured 8e-16
    assert relative(redmax.reduced_inertia(model, q), reference.mass_matrix(model, q)) < 1e-13  # measured 1.7e-15


def test_every_derivative_is_that_of_central_differences(tree):
    model, q, v, tau = tree
    found, square = redmax.jacobian_derivatives(model, q, v), redmax.quadratic_velocity(model, q, v)
    forces = redmax.reduced_forces(model, q, v, tau)
    inertia = redmax.maximal_inertia(model)

    def quadratic(q, v):
        push = (redmax.jacobian_rate(model, q, v) @ v).reshape(-1, 6, 1)
        return -redmax.jacobian(model, q).T @ (inertia @ push).ravel()

    def right_hand_side(q, v):
        return redmax.reduced_inertia(model, q) @ redmax.acceleration(model, q, v, tau)

    pairs = {
        "dJ/dq": (found.dJ, lambda q, v: redmax.jacobian(model, q), "q"),
        "dJdot/dq": (found.dJdot, lambda q, v: redmax.jacobian_rate(model, q, v), "q"),
        "dJdot/dv": (found.dJ, lambda q, v: redmax.jacobian_rate(model, q, v), "v"),
        "dM/dq": (redmax.reduced_inertia_derivative(model, q), lambda q, v: redmax.reduced_inertia(model, q), "q"),
        "K of J^T M Jdot v": (square.K, quadratic, "q"),
        "D of J^T M Jdot v": (square.D, quadratic, "v"),
        "K": (forces.K, right_hand_side, "q"),
        "D": (forces.D, right_hand_side, "v"),
    }
    assert relative(square.force, quadratic(q, v)) < 1e-13  # measured 0
    assert relative(forces.force, right_hand_side(q, v)) < 1e-12  # measured 6e-17
    # along random directions, which every entry is a part of
    along = np.random.default_rng(1).normal(size=(8, model.nv))
    errors = {
        name: relative(f @ along.T, differences(model, q, v, function, by, along))
        for name, (f, function, by) in pairs.items()
    }
    assert max(errors.values()) < 1e-7, errors  # measured 2e-9, D


def test_the_dense_equations_and_the_recursion_agree(tree):
    model, q, v, tau = tree
    a = la.forward_dynamics(model, q, v, tau)
    assert relative(redmax.acceleration(model, q, v, tau), a) < 1e-12  # measured 1e-14
    # Algorithm 10, plain and as the preconditioner with unsymmetric blocks
    rng = np.random.default_rng(5)
    reduced, maximal = rng.uniform(0.1, 1.0, model.nv), 0.3 * rng.normal(size=(len(model.body_names), 6, 6))
    J, M = redmax.jacobian(model, q).reshape(-1, 6, model.nv), reference.mass_matrix(model, q)
    full = M + np.diag(reduced) + np.einsum("bij,bik,bkl->jl", J, maximal, J)
    x = rng.normal(size=(2, model.nv))
    for matrix, extra in ((M, {}), (full, {"reduced": reduced, "maximal": maximal})):
        found = redmax.inverse_inertia_product(model, q, x, **extra)
        assert relative(found, np.linalg.solve(matrix, x.T).T) < 1e-12  # measured 5e-15
    # what is added may make the matrix singular: here a joint at an end of the tree has nothing left
    nothing = np.zeros(model.nv)
    nothing[-1] = -M[-1, -1]
    with pytest.raises(la.ConvergenceError, match="singular"):
        redmax.inverse_inertia_product(model, q, x, reduced=nothing)


def test_hybrid_dynamics_in_a_tree(tree):
    model, q, v, tau = tree
    state, rng = model.state(q, v), np.random.default_rng(7)
    names = ("j1", "j4", "j9")
    prescribed = {name: rng.normal(size=model.joint(name).nv) for name in names}
    found = la.hybrid_dynamics(model, state, prescribed, tau)
    given, mask = np.zeros(model.nv), np.zeros(model.nv)
    for name, value in prescribed.items():
        given[model.joint(name).v], mask[model.joint(name).v] = value, 1.0
    # by one dense system, and forward dynamics under the forces that were found
    a, force = reference_hybrid.hybrid_dynamics(model, q, v, tau, given, mask)
    assert relative(found.acceleration, a) < 1e-10  # measured 1.5e-14
    assert relative(found.force, force) < 1e-10  # measured 2e-14
    assert relative(la.forward_dynamics(model, q, v, found.force), found.acceleration) < 1e-10  # measured 1e-14
    assert all(np.array_equal(found.acceleration[model.joint(name).v], prescribed[name]) for name in names)
    # nothing prescribed is forward dynamics
    free = la.hybrid_dynamics(model, state, control=tau)
    assert relative(free.acceleration, la.forward_dynamics(model, q, v, tau)) < 1e-10  # measured 1.2e-14
    assert relative(free.force, tau) < 1e-10  # measured 9e-14


def test_hybrid_dynamics_with_loops():
    model = la.models.n_four_bar(2).build()
    # the tops move at 1 m/s; the loops are closed at q = 0
    v = {"base0": -1.0, "base1": -1.0, "base2": -1.0, "bar1_hinge": 1.0, "bar2_hinge": 1.0}
    state = la.project(model, model.state(v=v))
    tau = np.array([0.3, -0.2, 0.1, 0.4, -0.5])
    name = model.joint_names[0]
    found = la.hybrid_dynamics(model, state, {name: 2.0}, tau)
    mask = np.zeros(model.nv)
    mask[model.joint(name).v] = 1.0
    a, force = reference_hybrid.hybrid_dynamics(model, state.q, state.v, tau, 2.0 * mask, mask)
    assert relative(found.acceleration, a) < 1e-10  # measured 4e-14
    assert relative(found.force, force) < 1e-10  # measured 1.3e-14
    # the mechanism has one freedom: two joints that disagree open the loops
    with pytest.raises(la.ConvergenceError, match="contradicts the closed loops"):
        la.hybrid_dynamics(model, state, {name: 2.0, model.joint_names[1]: -5.0}, tau)


def test_hybrid_dynamics_in_velocity_and_bad_input():
    model = la.models.four_bar().build()
    state, names = model.state(), model.joint_names
    found = la.hybrid_dynamics(model, state, velocities={names[0]: 0.5}, dt=0.1)
    assert found.acceleration[0] == 5.0
    assert list(found.forces) == [names[0]]
    for arguments, words in (
        ({"prescribed": {"nothing": 1.0}}, "no joint 'nothing'"),
        ({"prescribed": {names[0]: [1.0, 2.0]}}, "expected 1 finite"),
        ({"prescribed": {names[0]: 1.0}, "velocities": {names[0]: 1.0}, "dt": 0.1}, "prescribed twice"),
        ({"velocities": {names[0]: 1.0}}, "needs dt="),
    ):
        with pytest.raises(la.ModelError, match=words):
            la.hybrid_dynamics(model, state, **arguments)
    m = la.models.four_bar()
    m.add_ground()
    with pytest.raises(la.UnsupportedError, match="contact"):
        la.hybrid_dynamics(m.build(), state)
    with pytest.raises(la.ModelError, match="one for each body"):
        redmax.wrenches_to_forces(model, state.q, np.zeros((2, 6)))
