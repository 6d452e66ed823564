"""What flies by moves as what is at rest: a common velocity leaves the steps of variational integrators exactly."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import leastaction as la
from leastaction.galerkin.flight_derivative import flight_of
from leastaction.model.configuration import difference, retract
from leastaction.spatial import quaternion

G = (0.0, 0.0, -9.81)


def hinged(gravity: tuple[float, ...] = G) -> la.Mechanism:
    """Two bodies on a hinge; the frame of the free joint is turned."""
    m = la.Mechanism("pair", gravity=gravity)
    m.add_body("a", mass=1.0, com=(0.05, 0, 0.02), inertia=np.diag([0.02, 0.03, 0.04]))
    m.add_body("b", mass=0.7, com=(0, 0, -0.3), inertia=np.diag([0.03, 0.03, 0.01]))
    m.add_joint("root", "free", parent="world", child="a", parent_frame=la.pose(xyz=(1, 2, 3), rpy=(0.4, 0.2, -0.3)))
    m.add_joint("hinge", "revolute", parent="a", child="b", axis=(0, 1, 0), parent_frame=la.pose(xyz=(0.1, 0, -0.1)))
    return m


def twins(gravity: tuple[float, ...] = G) -> la.Mechanism:
    """Two such pairs with a spring between them."""
    m = hinged(gravity)
    m.add_body("c", mass=0.5, com=(0.1, 0, 0), inertia=np.diag([0.01, 0.02, 0.02]))
    m.add_body("d", mass=0.4, com=(0, 0.2, 0), inertia=np.diag([0.02, 0.01, 0.02]))
    m.add_joint("second", "free", parent="world", child="c")
    m.add_joint("elbow", "spherical", parent="c", child="d", parent_frame=la.pose(xyz=(0.2, 0, 0)))
    m.add_force(la.PointSpring("b", (0, 0, -0.5), "d", (0, 0.4, 0), stiffness=20.0, damping=0.3, rest_length=0.5))
    return m


def at(model: la.Model, V: np.ndarray) -> la.State:
    """A state in motion, with V added to the velocity of everything."""
    rng = np.random.default_rng(3)
    q, v = retract(model, model.neutral(), 0.5 * rng.normal(size=model.nv)), 1.5 * rng.normal(size=model.nv)
    for view in model.joints.values():
        if view.kind == "free":
            R = view.joint.parent_frame[:3, :3] @ quaternion.to_matrix(q[view.q][3:])
            v[view.v.start + 3 : view.v.stop] += R.T @ V
    return model.state(q, v)


def apart(m: la.Mechanism, method: object, V: np.ndarray, control: np.ndarray | None = None) -> float:
    """How far a flight of half a second is from the motion at rest, in poses of all bodies."""
    model = m.build()
    options = {"dt": 0.01, "duration": 0.5, "method": method, "control": control}
    one, other = (la.simulate(model, at(model, each), **options) for each in (0.0 * V, V))
    worst = 0.0
    for body in m.bodies:
        there = other.poses(body).copy()
        there[:, :3, 3] -= np.outer(other.t, V)
        worst = max(worst, float(np.abs(one.poses(body) - there).max()))
    return worst


METHODS = ["galerkin:2", "galerkin:4", "lie-trapezoid", pytest.param("galerkin:6", marks=pytest.mark.slow)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gravity", [(0.0, 0.0, 0.0), G], ids=["weightless", "gravity"])
def test_a_flight_is_the_motion_at_rest(method, gravity):
    # without the frames galerkin:2 is apart by 3e-3 and galerkin:4 by 1e-8, the printed Lie trapezoid by 0.08
    assert apart(hinged(gravity), method, np.array([10.0, 0, 0])) < 1e-12  # measured 5e-15
    # at 50 m a position is rounded to 7e-15 m in every step
    assert apart(hinged(gravity), method, np.array([60.0, -64.0, 48.0])) < 1e-11  # measured 9e-13


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 4])
def test_with_other_solvers_and_quadratures(order):
    V = np.array([60.0, -64.0, 48.0])
    for method in (
        la.Galerkin(order, quadrature="gauss"), la.Galerkin(order, solver=la.RIQN()),
        la.Galerkin(order, solver=la.Broyden()), la.Galerkin(order, guess="dynamics"),
        la.Galerkin(order, solver=la.DenseNewton(), guess="hold"),
    ):  # fmt: skip
        # what a quasi-Newton method leaves is its tolerance
        assert apart(hinged(), method, V) < 1e-9


@pytest.mark.parametrize("method", ["galerkin:2", "lie-trapezoid", pytest.param("galerkin:4", marks=pytest.mark.slow)])
def test_a_control_that_pushes_the_root_and_bodies_that_a_spring_ties(method):
    V = np.array([60.0, -64.0, 48.0])
    push = np.tile([0.2, -0.1, 0.3, 2.0, -3.0, 5.0, 0.4], (50, 1))
    assert apart(hinged(), method, V, push) < 1e-11  # measured 1e-12
    # the Lie trapezoid's direction takes forces on bodies for constant, so it ends at its tolerance of the momentum
    assert apart(twins(), method, V) < (1e-8 if method == "lie-trapezoid" else 1e-11)  # measured 7e-10 and 3e-12


def test_a_tossed_brick_stays_on_its_parabola():
    m = la.Mechanism("brick")
    m.add_body("brick", shape=la.Box((0.2, 0.1, 0.05)), mass=2.0)
    m.add_joint("root", "free", parent="world", child="brick")
    model = m.build()
    x0 = model.state(v=[7.0, 2.0, -3.0, 30.0, -20.0, 40.0])
    for method in ("lie-trapezoid", "galerkin:2", "galerkin:4"):
        run = la.simulate(model, x0, dt=0.01, duration=1.0, method=method)
        path = np.outer(run.t, [30.0, -20.0, 40.0]) + np.outer(0.5 * run.t**2, G)
        assert np.abs(run.q[:, :3] - path).max() < 1e-12  # measured 1e-13, of 35 m
    # the logarithm on SE(3) bends it
    run = la.simulate(model, x0, dt=0.01, duration=1.0, method="lie-trapezoid:printed")
    assert np.abs(run.q[-1, :3] - path[-1]).max() > 1e-4


def center(model: la.Model, q: np.ndarray) -> np.ndarray:
    return np.asarray(la.center_of_mass(model, q))


@pytest.mark.parametrize("order", [2, 4])
def test_the_centre_of_mass_is_on_its_parabola_and_momenta_stay(order):
    model = hinged().build()
    x0 = at(model, np.array([3.0, 4.0, 5.0]))
    run = la.simulate(model, x0, dt=0.02, duration=1.0, method=la.Galerkin(order))
    start, P = center(model, x0.q), run.momentum.linear[0]
    path = start + np.outer(run.t, P / 1.7) + np.outer(0.5 * run.t**2, G)
    assert max(np.abs(center(model, q) - X).max() for q, X in zip(run.q, path, strict=True)) < 1e-12  # measured 5e-15
    still = hinged((0.0, 0.0, 0.0)).build()
    run = la.simulate(still, at(still, np.array([3.0, 4.0, 5.0])), dt=0.02, duration=1.0, method=la.Galerkin(order))
    assert np.abs(run.momentum.linear - run.momentum.linear[0]).max() < 1e-11  # measured 7e-15
    assert np.abs(run.momentum.angular - run.momentum.angular[0]).max() < 1e-10  # measured 1e-13, of 25


def flying(change: Callable[[la.Mechanism], object], m: la.Mechanism | None = None) -> int:
    """Number of groups that fly after a change of the two bodies."""
    m = hinged() if m is None else m
    change(m)
    found = flight_of(m.build())
    return 0 if found is None else len(found.mass)


def test_what_flies():
    assert flying(lambda m: None) == 1
    assert flying(lambda m: None, twins()) == 1
    assert flying(lambda m: m.forces.clear(), twins()) == 2
    assert flying(lambda m: None, la.models.chain(3)) == 0
    # a single body has its path anyway
    assert flying(lambda m: None, la.models.free_body()) == 0
    # what holds on to the world
    assert flying(lambda m: m.add_force(la.PointSpring("b", (0, 0, 0), "world", (0, 0, 0), stiffness=1.0))) == 0
    assert flying(lambda m: m.add_force(la.PointForce("b", (0, 0, 0), (1, 2, 3), "body"))) == 0
    assert flying(lambda m: setattr(m.joints["root"], "damping", 0.1)) == 0
    # the one pair of twins is held, and with it the other that the spring ties to it; alone it flies
    spring = la.PointSpring("b", (0, 0, 0), "world", (0, 0, 0), stiffness=1.0)
    assert flying(lambda m: m.add_force(spring), twins()) == 0
    assert flying(lambda m: (m.forces.clear(), m.add_force(spring)), twins()) == 1
    # a constant force falls with the body
    m = hinged()
    m.add_force(la.PointForce("b", (0, 0, 0), (1.7, 0, 0)))
    assert np.abs(flight_of(m.build()).fall - [[1.0, 0, -9.81]]).max() < 1e-14


def held_apart(m: la.Mechanism, order: int, tau: np.ndarray | None, parameters: tuple[str, ...] = ()) -> None:
    """Derivative of a step in flight against differences."""
    model, method, dt, eps = m.build(), la.Galerkin(order, solver=la.Newton(1e-14)), 0.02, 2e-5
    n, state = model.nv, at(model, np.array([6.0, -8.0, 5.0]))
    tau = np.zeros(n) if tau is None else tau
    found, base = la.linearize(model, method, state, tau, dt), method.step(model, state, dt, tau)

    def end(change: np.ndarray) -> np.ndarray:
        start = model.state(retract(model, state.q, change[:n]), state.v + change[n : 2 * n])
        out = method.step(model, start, dt, tau + change[2 * n :])
        return np.concatenate([difference(model, base.q, out.q), out.v])

    whole = np.array([(end(eps * e) - end(-eps * e)) / (2 * eps) for e in np.eye(3 * n)]).T
    assert np.abs(found.A - whole[:, : 2 * n]).max() < 1e-7  # measured 3e-9, the error of the differences
    assert np.abs(found.B - whole[:, 2 * n :]).max() < 1e-8
    assert np.array_equal(found.state.q, base.q)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_derivative_with_a_push_on_the_root(order):
    held_apart(hinged(), order, np.array([0.2, -0.1, 0.3, 20.0, -30.0, 50.0, 0.4]))
    m = hinged()
    m.add_force(la.PointForce("b", (0.1, 0, 0), (1.7, 2, 3)))
    held_apart(m, order, None)


@pytest.mark.slow
@pytest.mark.parametrize("order", [2, 4])
def test_the_derivative_of_trees_that_a_spring_ties(order):
    held_apart(twins(), order, 5.0 * np.random.default_rng(4).normal(size=16))


@pytest.mark.parametrize("order", [2, 4])
def test_the_derivative_by_masses_and_places(order):
    method, dt = la.Galerkin(order, solver=la.Newton(1e-14)), 0.02
    tau, V = np.array([0.2, -0.1, 0.3, 20.0, -30.0, 50.0, 0.4]), np.array([6.0, -8.0, 5.0])
    model = hinged().build()
    state = at(model, V)
    found = la.linearize(model, method, state, tau, dt, ("mass", "placement"))
    base = method.step(model, state, dt, tau)

    def end(change: Callable[[la.Mechanism, float], None], eps: float) -> np.ndarray:
        m = hinged()
        change(m, eps)
        out = method.step(m.build(), state, dt, tau)
        return np.concatenate([difference(model, base.q, out.q), out.v])

    def mass(m: la.Mechanism, eps: float) -> None:
        m.bodies["b"].mass += eps

    def place(m: la.Mechanism, eps: float) -> None:
        m.joints["hinge"].parent_frame = la.pose(xyz=(0.1 + eps, 0, -0.1))

    for change, got in ((mass, found.C["mass"]["b"]), (place, found.C["placement"]["hinge"][:, 0])):
        slope = (end(change, 1e-4) - end(change, -1e-4)) / 2e-4
        assert np.abs(slope - np.asarray(got)).max() < 1e-6 * max(1.0, np.abs(slope).max())
