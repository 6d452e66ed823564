"""Derivatives of the step and of the energies: against central differences, by symplecticity, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.galerkin.derivative import Extra
from leastaction.model.configuration import difference, retract
from leastaction.reference.samples import chosen_tree
from leastaction.spatial import so3

KINDS = ("free", "revolute", "spherical", "universal", "prismatic", "helical", "planar", "cylindrical", "spherical")
PARENTS = ("world", "b0", "b1", "b0", "b3", "b3", "b4", "b5", "b6")


def tree(seed: int, *, stiffness: float = 0.0, damping: float = 0.0, forces: bool = False) -> la.Model:
    """A floating, branching tree with every kind of row and armature; with forces also springs in the free joint."""
    rng = np.random.default_rng(seed)
    m = chosen_tree(KINDS, PARENTS, rng, stiffness=stiffness, damping=damping, free=forces)
    if forces:
        a, b = rng.normal(size=3) * 0.2, rng.normal(size=3) * 0.2
        m.add_force(la.PointSpring("b8", a, "b2", b, stiffness=20.0, damping=damping, rest_length=0.4))
        m.add_force(la.PointSpring("b4", a, "world", b, stiffness=10.0, damping=damping))
        m.add_force(la.PointForce("b7", a, (1, 2, 3)))
        if damping:
            m.add_force(la.Wrench("b6", (0.1, 0.2, 0.3, 1, 2, 3), "body"))
    return m.build()


def moving(model: la.Model, seed: int) -> la.State:
    rng = np.random.default_rng(seed)
    return model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv))


def differences(model, method, state, tau, dt, eps=2e-5):
    """A and B by central differences of steps."""
    base = method.step(model, state, dt, tau)
    n = model.nv

    def end(change: np.ndarray) -> np.ndarray:
        start = model.state(retract(model, state.q, change[:n]), state.v + change[n : 2 * n], state.t)
        out = method.step(model, start, dt, tau + change[2 * n :])
        return np.concatenate([difference(model, base.q, out.q), out.v])

    whole = np.array([(end(eps * e) - end(-eps * e)) / (2 * eps) for e in np.eye(3 * n)]).T
    return whole[:, : 2 * n], whole[:, 2 * n :]


CASES = {
    "gravity": ({}, 0.0),
    "springs, dampers and control": ({"stiffness": 3.0, "damping": 0.4}, 1.0),
    "forces": ({"stiffness": 3.0, "damping": 0.4, "forces": True}, 1.0),
}


@pytest.mark.parametrize(
    ("s", "case"),
    [
        *((s, case) for s in (1, 2) for case in CASES if case != "forces"),
        *(pytest.param(s, "forces", marks=pytest.mark.slow) for s in (1, 2)),
        *(pytest.param(3, case, marks=pytest.mark.slow) for case in CASES),
        pytest.param(4, "springs, dampers and control", marks=pytest.mark.slow),
    ],
)
def test_the_derivative_is_that_of_the_step(s, case):
    options, push = CASES[case]
    model, method = tree(1, **options), la.Galerkin(2 * s, solver=la.Newton(1e-14))
    state, dt = moving(model, 2), 0.02
    tau = push * np.random.default_rng(3).normal(size=model.nv)
    if case != "forces":
        # a force in the translation of a free joint is among what ``forces`` tests
        tau[3:6] = 0.0
    found = la.linearize(model, method, state, tau, dt)
    A, B = differences(model, method, state, tau, dt)
    # measured 8.8e-10 at most, the error of the differences, of entries up to 1.0 and 0.13
    assert np.abs(found.A - A).max() < 2e-8
    assert np.abs(found.B - B).max() < 2e-8
    end = method.step(model, state, dt, tau)
    assert np.array_equal(found.state.q, end.q)
    assert np.array_equal(found.state.v, end.v)
    assert found.state.t == dt


@pytest.mark.parametrize("s", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_dense_and_recursive_solutions_agree(s, monkeypatch):
    model, method = tree(4, stiffness=3.0, damping=0.4), la.Galerkin(2 * s)
    state, n = moving(model, 5), tree(4).nv
    fast = la.linearize(model, method, state, None, 0.02)
    nothing = Extra(np.zeros((n * s, n * s)), np.zeros((n, n * s)), np.zeros((n * s, n)), np.zeros((n, n)))
    monkeypatch.setattr("leastaction.galerkin.derivative.needs_extra", lambda model, control: True)
    monkeypatch.setattr("leastaction.galerkin.derivative.extra_terms", lambda model, nodes, step: nothing)
    slow = la.linearize(model, method, state, None, 0.02)
    # measured 7.8e-15 and 1.2e-16
    assert np.abs(fast.A - slow.A).max() < 1e-12
    assert np.abs(fast.B - slow.B).max() < 1e-12


@pytest.mark.parametrize("method", [la.SemiImplicitEuler(), la.RungeKutta(1), la.RungeKutta(2), la.RungeKutta(4)])
def test_the_derivative_of_explicit_steps(method):
    model, dt = tree(1, stiffness=3.0, damping=0.4, forces=True), 0.02
    state, tau = moving(model, 2), np.random.default_rng(3).normal(size=model.nv)
    found = la.linearize(model, method, state, tau, dt)
    A, B = differences(model, method, state, tau, dt)
    # measured 5.0e-10, the error of the differences
    assert np.abs(found.A - A).max() < 2e-8
    assert np.abs(found.B - B).max() < 2e-8
    assert np.array_equal(found.state.q, method.step(model, state, dt, tau).q)


def to_momenta(model: la.Model, state: la.State) -> tuple[np.ndarray, np.ndarray]:
    """Map from (displacement, dv) to (displacement, dp), and the symplectic form in these coordinates."""
    n, hessian = model.nv, la.lagrangian_hessian(model, state.q, state.v)
    p, C = hessian.kinetic_vv @ state.v, np.zeros((n, n))
    # displacements of rotations do not commute: the form has p . [d1, d2] beside dp2 . d1 - dp1 . d2
    for view in model.joints.values():
        if view.kind == "spherical":
            C[view.v, view.v] = -so3.hat(p[view.v])
        elif view.kind == "free":
            turn, slide = -so3.hat(p[view.v][:3]), -so3.hat(p[view.v][3:])
            C[view.v, view.v] = np.block([[turn, slide], [slide, np.zeros((3, 3))]])
    T = np.block([[np.eye(n), np.zeros((n, n))], [hessian.kinetic_vq, hessian.kinetic_vv]])
    return T, np.block([[C, np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


@pytest.mark.parametrize("s", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stiffness", [0.0, 3.0])
def test_the_step_is_symplectic(s, stiffness):
    model = tree(6, stiffness=stiffness)
    state = moving(model, 7)
    found = la.linearize(model, la.Galerkin(2 * s, solver=la.Newton(1e-14)), state, None, 0.02)
    (T0, form0), (T1, form1) = to_momenta(model, state), to_momenta(model, found.state)
    A = T1 @ found.A @ np.linalg.inv(T0)
    # measured 4.8e-14 at most
    assert np.abs(A.T @ form1 @ A - form0).max() < 1e-9


@pytest.mark.slow
def test_the_step_is_symplectic_with_forces_on_bodies():
    model = tree(6, stiffness=2.0, forces=True)
    state = moving(model, 7)
    found = la.linearize(model, la.Galerkin(4, solver=la.Newton(1e-14)), state, None, 0.02)
    (T0, form0), (T1, form1) = to_momenta(model, state), to_momenta(model, found.state)
    A = T1 @ found.A @ np.linalg.inv(T0)
    # measured 3.8e-14
    assert np.abs(A.T @ form1 @ A - form0).max() < 1e-9


def test_a_single_joint():
    # fewer columns than go through the recursion together
    model = la.models.pendulum().build()
    state = model.state(np.full(model.nv, 0.7), np.full(model.nv, 0.3))
    found = la.linearize(model, "galerkin:4", state, None, 0.05)
    A, B = differences(model, la.Galerkin(4, solver=la.Newton(1e-14)), state, np.zeros(model.nv), 0.05)
    # measured 2.4e-11 and 2.2e-12, the error of the differences
    assert np.abs(found.A - A).max() < 1e-8
    assert np.abs(found.B - B).max() < 1e-8


def central(function, n: int, h: float) -> np.ndarray:
    return np.array([(function(h * e) - function(-h * e)) / (2 * h) for e in np.eye(n)]).T


@pytest.mark.parametrize("seed", [0, 1])
def test_second_derivatives_of_the_energies(seed):
    model = tree(seed, stiffness=3.0, damping=0.4, forces=True)
    state, n, h = moving(model, 10 + seed), model.nv, 2e-4
    q, v = state.q, state.v
    found = la.lagrangian_hessian(model, q, v)

    # measured 1.8e-15, then 5.6e-10 and 3.7e-8, the errors of the differences
    assert np.abs(found.kinetic_vv - la.mass_matrix(model, q)).max() < 1e-12
    by_q = central(lambda e: la.mass_matrix(model, retract(model, q, e)) @ v, n, 1e-5)
    assert np.abs(found.kinetic_vq - by_q).max() < 1e-7
    assert np.array_equal(found.kinetic_qv, found.kinetic_vq.T)
    # row i, column j: first displaced by j, then by i
    signs = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    rows = [
        retract(model, retract(model, q, b * h * f), a * h * e) for a, b in signs for e in np.eye(n) for f in np.eye(n)
    ]
    energy = la.energy(model, np.array(rows), np.tile(v, (len(rows), 1)))
    for what in ("kinetic", "potential"):
        up, left, right, down = getattr(energy, what).reshape(4, n, n)
        numbers = (up - left - right + down) / (4 * h**2)
        assert np.abs(getattr(found, f"{what}_qq") - numbers).max() < 1e-6 * np.abs(numbers).max()


def test_hessian_of_single_coordinates_is_symmetric():
    model = la.models.chain(6).build()
    rng = np.random.default_rng(0)
    found = la.lagrangian_hessian(model, rng.normal(size=6), rng.normal(size=6))
    # measured 0: both entries of a pair are the same product
    assert np.abs(found.kinetic_qq - found.kinetic_qq.T).max() < 1e-12
    assert np.abs(found.potential_qq - found.potential_qq.T).max() < 1e-12


def test_refusals():
    model = la.models.pendulum().build()
    state, method = model.state(), la.Galerkin(2)
    with pytest.raises(la.UnsupportedError, match="no derivative by 'friction'"):
        la.linearize(model, method, state, None, 0.01, parameters=["friction"])
    with pytest.raises(la.UnsupportedError, match="no derivative of its step"):
        la.linearize(model, la.Adaptive(), state, None, 0.01)
    four = la.models.four_bar().build()
    with pytest.raises(la.UnsupportedError, match="loops"):
        la.linearize(four, la.RungeKutta(4), four.state(), None, 0.01)
    with pytest.raises(la.ModelError, match="dt"):
        la.linearize(model, method, state, None, -0.01)
    with pytest.raises(la.ModelError, match="method"):
        la.linearize(model, 4, state, None, 0.01)
    with pytest.raises(la.ModelError, match="state"):
        la.linearize(model, method, [0.0, 0.0], None, 0.01)
    with pytest.raises(la.ModelError, match="tau"):
        la.linearize(model, method, state, [1.0, 2.0, 3.0], 0.01)


def test_a_step_that_fails_raises():
    model = la.models.chain(10).build()
    with pytest.raises(la.ConvergenceError, match="did not converge"):
        la.linearize(model, la.Galerkin(2, solver=la.Newton(iterations=2)), model.state(np.full(10, 1.5)), None, 0.5)
