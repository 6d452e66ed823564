"""Hermite-Simpson collocation: its rows, its Newton directions, its two forms, its order, bad input."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.comparators.hermite_simpson import step as hermite_simpson_step
from leastaction.dynamics import entries
from leastaction.reference import samples as make

FORMS = ("explicit", "implicit")
H = 0.05


@pytest.fixture(scope="module")
def tree():
    """Every kind of row, springs and dampers, a control; the free joint without springs, which count approximately."""
    rng = np.random.default_rng(4)
    m = make.random_tree(["free", "helical", "universal", "spherical", "planar", "revolute"], rng, True)
    m.joints["j0"].stiffness, m.joints["j0"].damping = np.zeros(6), np.zeros(6)
    model = m.build()
    x, u = np.zeros(model.nq), np.zeros(model.nv)
    entries.enter(model.system, *make.random_state(model, rng), x, u)
    unknowns = np.array([H * u, u, 0 * u, 0 * u]) + 0.05 * rng.normal(size=(4, model.nv))
    return model, x, u, unknowns, 0.1 * rng.normal(size=model.nv)


def probe(tree, form, unknowns, what=0):
    """Rows (4, nv) and Newton's direction (4, nv)."""
    model, x, u, _, control = tree
    rows, y = np.zeros((4, model.nv)), np.zeros((4, model.nv))
    implicit = form == "implicit"
    assert hermite_simpson_step.hermite_simpson_probe(
        model.system, implicit, H, x, u, *unknowns, control, rows, y, what, 1
    )
    return rows, y


@pytest.mark.parametrize("form", FORMS)
def test_newton_direction_is_that_of_finite_differences(tree, form):
    unknowns = tree[3]
    count = 2 if form == "explicit" else 4
    rows, y = probe(tree, form, unknowns, 2)
    size = count * tree[0].nv
    J = np.zeros((size, size))
    for k in range(size):
        shift = np.zeros(unknowns.size)
        shift[k] = 1e-6
        shift = shift.reshape(unknowns.shape)
        ahead, back = probe(tree, form, unknowns + shift)[0], probe(tree, form, unknowns - shift)[0]
        J[:, k] = (ahead - back)[:count].ravel() / 2e-6
    exact = np.linalg.solve(J, -rows[:count].ravel())
    assert np.abs(y[:count].ravel() - exact).max() < 1e-6 * np.abs(exact).max()  # measured 4e-8


def test_both_forms_have_the_same_solution():
    model = la.models.chain(6).build()
    start = model.state(q=np.linspace(0.2, 1.0, 6))
    runs = [la.simulate(model, start, dt=0.01, duration=1.0, method=la.HermiteSimpson(form)) for form in FORMS]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9  # measured 8e-13


def test_rows_are_those_of_the_rule():
    """One step of a pendulum, from its equation of motion alone."""
    model, h = la.models.pendulum().build(), 0.1
    state = la.HermiteSimpson(solver=la.DenseNewton(tolerance=1e-14)).step(model, model.state(q=[1.0], v=[0.5]), h)
    (q0, v0), (q1, v1) = (1.0, 0.5), (state.q[0], state.v[0])
    a = lambda q: -9.81 * np.sin(q)  # noqa: E731
    qm, vm = (q0 + q1) / 2 + h / 8 * (v0 - v1), (v0 + v1) / 2 + h / 8 * (a(q0) - a(q1))
    assert abs(q1 - q0 - h / 6 * (v0 + 4 * vm + v1)) < 1e-14  # measured 1e-16
    assert abs(v1 - v0 - h / 6 * (a(q0) + 4 * a(qm) + a(q1))) < 1e-14  # measured 1e-16


def test_a_step_back_undoes_a_step_on_screws():
    model = la.models.chain(4).build()
    method = la.HermiteSimpson(solver=la.DenseNewton(tolerance=1e-14))
    start = model.state(q=[0.3, 0.5, -0.2, 0.1], v=[1.0, -1.0, 0.5, 2.0])
    there = method.step(model, start, 0.01)
    back = method.step(model, model.state(there.q, -there.v), 0.01)
    assert np.abs(back.q - start.q).max() < 1e-12  # measured 1e-17
    assert np.abs(back.v + start.v).max() < 1e-10  # measured 2e-15


def test_a_resumed_run_is_the_same_to_the_last_bit(tmp_path):
    model = la.models.chain(3).build()
    start = model.state(q=[0.3, 0.5, -0.2])
    whole = la.simulate(model, start, dt=0.01, duration=0.4, method=la.HermiteSimpson())
    half = la.simulate(model, start, dt=0.01, duration=0.2, method=la.HermiteSimpson())
    half.save(tmp_path / "half.npz")
    rest = la.resume(la.Trajectory.load(tmp_path / "half.npz"), duration=0.2)
    assert np.array_equal(rest.q[-1], whole.q[-1])
    assert np.array_equal(rest.v[-1], whole.v[-1])


def test_bad_input():
    with pytest.raises(la.ModelError, match="form must be one of explicit, implicit"):
        la.HermiteSimpson("other")
    with pytest.raises(la.UnsupportedError, match="no solver RIQN"):
        la.HermiteSimpson(solver=la.RIQN())
    with pytest.raises(la.UnsupportedError, match="loops"):
        la.simulate(la.models.four_bar().build(), dt=0.01, duration=0.1, method=la.HermiteSimpson())


def test_a_step_that_is_too_large_fails_in_words():
    model = la.models.chain(8).build()
    method = la.HermiteSimpson(solver=la.DenseNewton(iterations=8))
    with pytest.raises(la.ConvergenceError, match="take a smaller dt"):
        la.simulate(model, model.state(v=20 * np.ones(8)), dt=1.0, duration=5.0, method=method)
