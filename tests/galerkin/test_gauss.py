"""Galerkin steps with Gauss quadrature: residual, Newton direction, orders, symplectic form, momenta."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.galerkin.method import gauss
from leastaction.model.configuration import difference, retract
from leastaction.reference.galerkin_action import Probe, discrete_action, start_moved
from leastaction.reference.samples import random_tree
from leastaction.run.registry import method_by_name
from leastaction.spatial import so3

# each of these compiles a program of its own
SLOW = pytest.mark.slow

KINDS = ("free", "revolute", "spherical", "prismatic", "helical", "spherical")


def tree(seed: int, *, springs: bool = False, forces: bool = False, gravity: bool = True) -> la.Model:
    """A floating, branching tree with balls and screws, and springs, rotors and forces on bodies if asked for."""
    rng = np.random.default_rng(seed)
    m = random_tree(KINDS, rng, springs=springs)
    # forces of the translation of a free joint are simplified in the direction
    m.joints["j0"].stiffness = m.joints["j0"].damping = np.zeros(6)
    if not gravity:
        m.gravity = np.zeros(3)
    if forces:
        m.add_force(la.PointSpring("world", (0.5, 0.2, 0.1), "b4", (0.1, -0.2, 0.3), stiffness=40.0, damping=3.0))
        m.add_force(la.PointForce("b2", (0.1, 0.3, -0.2), (3.0, -2.0, 1.0)))
        m.add_force(la.Wrench("b5", (0.5, -0.4, 0.3, 1.0, 2.0, 3.0), frame="body"))
    return m.build()


@pytest.mark.slow
@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_residual_is_the_gradient_of_the_discrete_action(s):
    probe = Probe(tree(1), s, 0.05, 2, "gauss")
    model, x, xi = probe.model, probe.x, probe.xi
    r, _, _ = probe(xi)
    (c, w, *_), eps = gauss(s), 1e-5

    def action(place, curve):
        return discrete_action(model, place, curve, probe.h, c, w)

    worst = 0.0
    for d in range(model.nv):
        for a in range(1, s):
            bump = np.zeros(xi.shape)
            bump[d, a] = eps
            slope = (action(x, xi + bump) - action(x, xi - bump)) / (2 * eps)
            worst = max(worst, abs(r[d, a] - slope))
        # node 0: the centre of the chart moves with it
        up, down = (action(*start_moved(model, x, xi, d, sign * eps)) for sign in (1, -1))
        worst = max(worst, abs(r[d, 0] - probe.p[d] - (up - down) / (2 * eps)))
    # measured 7e-9 at most, of rows up to 323
    assert worst < 1e-7


@pytest.mark.parametrize(
    ("s", "loaded"),
    [pytest.param(1, True, marks=SLOW), pytest.param(2, True, marks=SLOW), pytest.param(3, False, marks=SLOW)],
)
def test_the_newton_direction_is_exact(s, loaded):
    # measured 4e-14, 4e-14, 4e-12
    assert Probe(tree(3, springs=loaded, forces=loaded), s, 0.05, 4, "gauss", control=loaded).left() < 1e-9


CASES = {
    "double pendulum": (lambda: la.models.double_pendulum().build(), 0.5),
    "tree": (lambda: tree(5), 0.3),
}


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=SLOW), pytest.param(6, marks=SLOW)])
@pytest.mark.parametrize("case", list(CASES))
def test_the_order_holds_for_q_and_v(case, order):
    make, T = CASES[case]
    model, rng = make(), np.random.default_rng(5)
    x0 = model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv) * 0.5)
    exact = la.simulate(model, x0, dt=T / 10, duration=T, method=la.Adaptive(1e-13, 1e-13))
    errors = []
    for n in {2: (40, 80), 4: (20, 40), 6: (8, 16)}[order]:
        method = la.Galerkin(order, solver=la.Newton(1e-13), quadrature="gauss")
        run = la.simulate(model, x0, dt=T / n, duration=T, method=method)
        errors.append((np.abs(difference(model, exact.q[-1], run.q[-1])).max(), np.abs(run.v[-1] - exact.v[-1]).max()))
    slopes = np.log2(np.array(errors[0]) / np.array(errors[1]))
    # measured 1.999 to 2.002, 3.997 to 3.999, 5.996 to 6.055
    assert np.abs(slopes - order).max() < 0.15


def test_order_2_is_the_midpoint_rule():
    model, h = la.models.pendulum().build(), 0.1
    q, v = 0.8, 1.5
    out = la.Galerkin(2, solver=la.Newton(1e-15), quadrature="gauss").step(model, model.state([q], [v]), h)
    middle = 0.5 * (q + out.q[0])
    # both equations of the rule; measured 0 and 2e-16
    assert out.q[0] - q == pytest.approx(0.5 * h * (v + out.v[0]), abs=1e-14)
    assert out.v[0] - v == pytest.approx(h * la.forward_dynamics(model, [middle], [0.0])[0], abs=1e-13)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=SLOW)])
def test_the_step_map_of_balls_is_symplectic(order):
    model, rng = la.models.chain(2, joint="spherical").build(), np.random.default_rng(11)
    n, eps = model.nv, 1e-4
    method = la.Galerkin(order, solver=la.Newton(1e-15), quadrature="gauss")
    q0 = retract(model, model.neutral(), rng.normal(size=n) * 0.4)
    M0, v0 = la.mass_matrix(model, q0), rng.normal(size=n)

    def step(change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Next q and momentum in child axes; the start is displaced in child axes, its momentum by M0 times a rate."""
        q = retract(model, q0, change[:n])
        v = np.linalg.solve(la.mass_matrix(model, q), M0 @ (v0 + change[n:]))
        out = method.step(model, model.state(q, v), 0.05)
        return out.q, la.mass_matrix(model, out.q) @ out.v

    def form(p: np.ndarray) -> np.ndarray:
        """Displacements of rotations do not commute: p . (d1 x d2) stands beside dp2 . d1 - dp1 . d2."""
        out = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
        for k in range(0, n, 3):
            out[k : k + 3, k : k + 3] = -so3.hat(p[k : k + 3])
        return out

    q1, p1 = step(np.zeros(2 * n))
    columns = []
    for unit in np.eye(2 * n):
        slopes = []
        for size in (eps, 2 * eps):
            (qa, pa), (qb, pb) = step(size * unit), step(-size * unit)
            moved = difference(model, q1, qa) - difference(model, q1, qb)
            slopes.append(np.concatenate([moved, pa - pb]) / (2 * size))
        columns.append((4 * slopes[0] - slopes[1]) / 3)
    A, T = np.array(columns).T, np.kron(np.diag([1.0, 0.0]), np.eye(n)) + np.kron(np.diag([0.0, 1.0]), M0)
    # measured 1.4e-12
    assert np.abs(A.T @ form(p1) @ A - T.T @ form(M0 @ v0) @ T).max() < 1e-10


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=SLOW)])
def test_momenta_of_a_floating_tree_are_conserved(order):
    model, rng = tree(6, gravity=False), np.random.default_rng(7)
    x0 = model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv) * 0.5)
    run = la.simulate(model, x0, dt=0.01, duration=1.0, method=la.Galerkin(order, quadrature="gauss"))
    linear, angular = run.momentum.linear, run.momentum.angular
    # measured 3e-14 of 31 N s, 4e-14 of 6.5 N m s
    assert np.abs(linear - linear[0]).max() < 1e-12
    assert np.abs(angular - angular[0]).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("solver", [la.RIQN(1e-13), la.Broyden(1e-13)])
def test_the_other_root_finders_find_the_same_steps(solver):
    model = tree(8)
    x0 = model.state(v=np.full(model.nv, 0.2))
    runs = [
        la.simulate(model, x0, dt=0.002, duration=0.02, method=la.Galerkin(4, solver=root, quadrature="gauss"))
        for root in (la.Newton(1e-13), solver)
    ]
    # measured 2e-16
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-11


@pytest.mark.slow
def test_a_control_may_have_a_value_at_each_point():
    model, n = la.models.double_pendulum().build(), 20
    method = la.Galerkin(4, quadrature="gauss")
    assert method.control_points == 2
    held = np.ones((n, 2)) * [0.3, -0.1]
    a = la.simulate(model, model.state([0.2, 0.1]), dt=0.01, duration=0.2, method=method, control=held)
    each = np.repeat(held[:, None], 2, axis=1)
    b = la.simulate(model, model.state([0.2, 0.1]), dt=0.01, duration=0.2, method=method, control=each)
    assert np.array_equal(a.q, b.q)


def test_what_it_cannot_do_is_said_by_name(tmp_path):
    with pytest.raises(la.ModelError, match="quadrature must be lobatto or gauss"):
        la.Galerkin(2, quadrature="simpson")
    with pytest.raises(la.UnsupportedError, match="DenseNewton"):
        la.Galerkin(2, quadrature="gauss", solver=la.DenseNewton())
    linkage = la.models.four_bar().build()
    with pytest.raises(la.UnsupportedError, match="no loops or constraints"):
        la.simulate(linkage, dt=0.01, duration=0.1, method=la.Galerkin(2, quadrature="gauss"))
    model = la.models.pendulum().build()
    with pytest.raises(la.UnsupportedError, match="no derivative of its step"):
        la.linearize(model, la.Galerkin(2, quadrature="gauss"), model.state(), None, 0.01)


def test_it_has_a_name_and_is_saved_with_a_run(tmp_path):
    method = method_by_name("galerkin:2:gauss")
    assert method.label == "galerkin:2:gauss"
    assert method.quadrature == "gauss"
    model = la.models.double_pendulum().build()
    x0 = model.state([0.3, 0.2])
    la.simulate(model, x0, dt=0.01, duration=0.05, method=method).save(tmp_path / "run.npz")
    again = la.resume(tmp_path / "run.npz", 0.05)
    assert repr(again.method) == repr(method)
    assert np.array_equal(again.q, la.simulate(model, x0, dt=0.01, duration=0.1, method=method).q)
