"""Derivatives of steps with closed loops and constraints: against differences, on the manifold, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.methods.tangent import Tangent
from leastaction.model.configuration import difference, retract
from leastaction.reference.samples import chosen_tree
from leastaction.spatial import so3

KINDS = ("free", "revolute", "spherical", "universal", "helical", "spherical")
PARENTS = ("world", "b0", "b1", "b0", "b3", "b4")
LINKAGES = {
    "four_bar": la.models.four_bar,
    "n_four_bar:2": lambda: la.models.n_four_bar(2),
    "bricard": la.models.bricard,
}
TIGHT = la.Newton(1e-14)


def more_of(kind: str, rng: np.random.Generator) -> dict:
    return {"axis2": rng.normal(size=3)} if kind == "universal" else {"pitch": 0.1} if kind == "helical" else {}


def floating_tree(seed: int, *, stiffness: float = 0.0, damping: float = 0.0) -> la.Mechanism:
    """Two floating branches with screws and balls, off-centre masses and armature."""
    return chosen_tree(KINDS, PARENTS, np.random.default_rng(seed), stiffness=stiffness, damping=damping)


def close_loop(m: la.Mechanism, kind: str) -> la.Mechanism:
    """Join the ends of the branches by a joint that is closed in the neutral position."""
    rng, tree = np.random.default_rng(5), m.build()
    at, frame = la.poses(tree, tree.neutral()), la.pose(xyz=rng.normal(size=3) * 0.2, rpy=rng.normal(size=3))
    other = np.linalg.inv(at["b2"]) @ at["b5"] @ frame
    axis = rng.normal(size=3)
    m.add_joint(
        "loop", kind, parent="b2", child="b5", axis=axis, parent_frame=other, child_frame=frame, **more_of(kind, rng)
    )
    return m


def add_rod(m: la.Mechanism, *, hessian: bool) -> la.Mechanism:
    """Keep the distance of a point of b4 and the origin of b2, by a constraint of the user."""
    r, tree = np.array([0.1, 0.2, -0.1]), m.build()
    at = la.poses(tree, tree.neutral())

    def between(poses):
        return poses[0, :3, :3] @ r + poses[0, :3, 3] - poses[1, :3, 3]

    def by_poses(poses):
        Ra, Rb = poses[0, :3, :3], poses[1, :3, :3]
        return np.hstack([-Ra @ so3.hat(r), Ra, np.zeros((3, 3)), -Rb])

    length = between(np.array([at["b4"], at["b2"]]))

    def curvature(poses, multipliers):
        d, J = between(poses), by_poses(poses)
        a, b, H = so3.hat(poses[0, :3, :3].T @ d), so3.hat(poses[1, :3, :3].T @ d), J.T @ J
        H[:3, :3] += so3.hat(r) @ a
        H[3:6, :3] += a
        H[9:, 6:9] -= b
        return 2.0 * multipliers[0] * H

    rod = la.Constraint(
        ("b4", "b2"),
        lambda poses: np.array([between(poses) @ between(poses) - length @ length]),
        lambda poses: 2.0 * (between(poses) @ by_poses(poses))[None],
        hessian=curvature if hessian else None,
        name="rod",
    )
    rod.check()
    m.add_constraint(rod)
    return m


def moving(model: la.Model, seed: int) -> la.State:
    """A state on the manifold."""
    rng = np.random.default_rng(seed)
    q = retract(model, model.neutral(), 0.2 * rng.normal(size=model.nv))
    return la.project(model, model.state(q, rng.normal(size=model.nv)), tolerance=1e-14)


def differences(model, method, state, tau, dt, eps=2e-5):
    """A and B by central differences of steps after ``project``."""
    base, n = method.step(model, state, dt, tau), model.nv

    def end(change: np.ndarray) -> np.ndarray:
        start = model.state(retract(model, state.q, change[:n]), state.v + change[n : 2 * n], state.t)
        out = method.step(model, la.project(model, start, tolerance=1e-14), dt, tau + change[2 * n :])
        return np.concatenate([difference(model, base.q, out.q), out.v])

    whole = np.array([(end(eps * e) - end(-eps * e)) / (2 * eps) for e in np.eye(3 * n)]).T
    return whole[:, : 2 * n], whole[:, 2 * n :]


def check(model: la.Model, order: int, push: float, dt: float = 0.02) -> None:
    method, state = la.Galerkin(order, solver=TIGHT), moving(model, 1)
    tau = push * np.random.default_rng(2).normal(size=model.nv)
    found = la.linearize(model, method, state, tau, dt)
    A, B = differences(model, method, state, tau, dt)
    # measured 7.1e-10 and 7.8e-10 at most, the errors of the differences, of entries up to 1.1 and 5.7
    assert np.abs(found.A - A).max() < 2e-8
    assert np.abs(found.B - B).max() < 1e-8
    end = method.step(model, state, dt, tau)
    assert np.array_equal(found.state.q, end.q)
    assert np.array_equal(found.state.v, end.v)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LINKAGES)
def test_linkages(name, order):
    check(LINKAGES[name]().build(), order, 1.0)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind", ["spherical", "revolute", "universal", "helical", "planar", "prismatic", "cylindrical"]
)
def test_loop_joints_of_every_kind_on_a_floating_tree(kind, order):
    check(close_loop(floating_tree(1), kind).build(), order, 0.0)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("hessian", [True, False])
def test_constraints_of_the_user(hessian, order):
    # springs, dampers, control, and beside the constraint a loop
    m = close_loop(floating_tree(1, stiffness=3.0, damping=0.4), "spherical")
    check(add_rod(m, hessian=hessian).build(), order, 1.0)


@pytest.mark.slow
def test_three_stages():
    check(close_loop(floating_tree(1), "revolute").build(), 6, 1.0)


@pytest.mark.slow
def test_forces_on_bodies_beside_loops():
    m = close_loop(floating_tree(1, stiffness=3.0, damping=0.4), "spherical")
    m.add_force(la.PointSpring("b5", (0.1, 0, 0.2), "b2", (0, 0.1, 0), stiffness=20.0, damping=0.4, rest_length=0.4))
    m.add_force(la.PointForce("b3", (0.1, 0.1, 0), (1, 2, 3)))
    check(add_rod(m, hessian=True).build(), 4, 1.0)


def test_differences_replace_a_missing_hessian():
    given, missing = (add_rod(floating_tree(1), hessian=hessian).build() for hessian in (True, False))
    state = moving(given, 3)
    a, b = (la.linearize(model, la.Galerkin(4, solver=TIGHT), state, None, 0.02) for model in (given, missing))
    # measured 7.0e-11 and 2.1e-14
    assert np.abs(a.A - b.A).max() < 1e-9
    assert np.abs(a.B - b.B).max() < 1e-11


def on_manifold(model: la.Model, state: la.State, change: np.ndarray) -> float:
    """How far columns of changes of a state are from tangent to the manifold."""
    tangent = Tangent(model, state)
    return float(np.abs(tangent.projector() @ change - change).max())


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LINKAGES)
def test_results_are_tangent_and_the_step_is_symplectic(name, order):
    model = LINKAGES[name]().build()
    state, n = moving(model, 1), model.nv
    found = la.linearize(model, la.Galerkin(order, solver=TIGHT), state, None, 0.02)
    # one degree of freedom; the third singular value measured 1.3e-15 at most
    assert np.linalg.matrix_rank(found.A, tol=1e-9) == 2
    # measured 2.1e-14 and 8.9e-16 at most
    assert on_manifold(model, found.state, found.A) < 1e-9
    assert on_manifold(model, found.state, found.B) < 1e-9
    forms = []
    for at in (state, found.state):
        hessian = la.lagrangian_hessian(model, at.q, at.v)
        to_momenta = np.block([[np.eye(n), np.zeros((n, n))], [hessian.kinetic_vq, hessian.kinetic_vv]])
        form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
        forms.append(to_momenta.T @ form @ to_momenta)
    P = Tangent(model, state).projector()
    before = P.T @ forms[0] @ P
    # measured 1.2e-13 of it at most
    assert np.abs(found.A.T @ forms[1] @ found.A - before).max() < 1e-9 * np.abs(before).max()


def test_refusals():
    def sideways(poses, twists):
        return np.array([twists[0, 4]])

    def by_twist(poses, twists):
        return np.eye(6)[4][None]

    m = la.Mechanism("sleigh")
    m.add_body("sleigh", mass=1.5, inertia=(0.2, 0.2, 0.3))
    m.add_joint("floor", "planar", parent="world", child="sleigh")
    m.add_constraint(la.Constraint(("sleigh",), sideways, by_twist, kind="velocity", name="knife"))
    sleigh = m.build()
    with pytest.raises(la.UnsupportedError, match="velocity constraints"):
        la.linearize(sleigh, "galerkin:2", sleigh.state(), None, 0.01)
    four = la.models.four_bar().build()
    with pytest.raises(la.UnsupportedError, match="closed loops"):
        la.linearize(four, "rk4", four.state(), None, 0.01)
    with pytest.raises(la.ModelError, match="loop joint 'loop' is open"):
        la.linearize(four, "galerkin:2", four.state([0.1, 0.0, 0.0]), None, 0.01)


def test_a_singular_step_raises(monkeypatch):
    def fails(*arguments):
        raise np.linalg.LinAlgError("Singular matrix")

    four = la.models.four_bar().build()
    monkeypatch.setattr("leastaction.galerkin.method.linked_derivative", fails)
    with pytest.raises(la.ConvergenceError, match="singular"):
        la.linearize(four, "galerkin:2", four.state(), None, 0.01)
