"""Couplings between joints: against closed forms, dense algebra and differences, in every method that takes them."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import leastaction as la
from leastaction.model.configuration import difference, retract

TIGHT = la.Newton(1e-14)
# method, and its error at the end of ``test_methods_agree``, measured
METHODS = {
    "rk4": (la.RungeKutta(4), 1e-9),
    "euler": (la.SemiImplicitEuler(), 1e-2),
    "adaptive": (la.Adaptive(1e-11, 1e-11), 1e-8),
    "galerkin:2": (la.Galerkin(2), 2e-4),
    "galerkin:4": (la.Galerkin(4), 1e-8),
    "maximal": (la.Maximal(), 2e-4),
    "maximal:4": (la.Maximal(4), 1e-7),
    "bdf:2": (la.BDF(2), 1e-3),
    "sdirk2": (la.SDIRK2(), 1e-3),
    "linearly-implicit-euler": (la.LinearlyImplicitEuler(), 1e-2),
}


def mixed(*, stiffness: float = 0.0, damping: float = 0.0) -> la.Mechanism:
    """A floating base with a turn, a slide, two turns of a universal joint and a screw, coupled three times."""
    own = {"stiffness": stiffness, "damping": damping}
    m = la.Mechanism("mixed", gravity=(0.3, -0.2, -9.81))
    m.add_body("base", mass=3.0, com=(0.05, 0.02, -0.03), inertia=(0.2, 0.25, 0.3))
    m.add_joint("free", "free", parent="world", child="base")
    m.add_body("arm", mass=1.0, com=(0.3, 0.0, 0.05), inertia=(0.02, 0.05, 0.06))
    at = la.pose(xyz=(0.2, 0.1, 0.0))
    m.add_joint("elbow", "revolute", parent="base", child="arm", axis=(0.2, 1, 0.1), parent_frame=at, **own)
    m.add_body("cart", mass=0.7, com=(0.0, 0.1, 0.05), inertia=(0.01, 0.02, 0.03))
    at = la.pose(xyz=(0.5, 0.0, 0.0))
    m.add_joint("slide", "prismatic", parent="arm", child="cart", axis=(1, 0.3, 0), parent_frame=at, **own)
    m.add_body("hand", mass=0.5, com=(0.1, 0.0, 0.2), inertia=(0.01, 0.015, 0.02))
    at = la.pose(xyz=(0.0, 0.2, 0.0))
    m.add_joint(
        "wrist", "universal", parent="cart", child="hand", axis=(1, 0, 0), axis2=(0, 1, 0.3), parent_frame=at, **own
    )
    m.add_body("nut", mass=0.4, com=(0.05, 0.0, 0.1), inertia=(0.01, 0.012, 0.008))
    at = la.pose(xyz=(-0.3, 0.0, 0.0))
    m.add_joint("screw", "helical", parent="base", child="nut", pitch=0.05, parent_frame=at, **own)
    m.add_coupling("rack", {"elbow": 0.3, "slide": -1.0}, 0.02)
    m.add_coupling("cam", {("wrist", 1): 1.0, "screw": [-0.5, -0.4, 0.2, 0.1]}, 0.1)
    m.add_coupling("sum", {("wrist", 0): 1.0, "elbow": -0.5, "screw": 0.7})
    return m


@functools.cache
def model_of(stiffness: float = 0.0, damping: float = 0.0) -> la.Model:
    return mixed(stiffness=stiffness, damping=damping).build()


def moving(model: la.Model, seed: int, speed: float = 0.6) -> la.State:
    """A closed state in motion."""
    rng = np.random.default_rng(seed)
    q = retract(model, model.neutral(), 0.3 * rng.normal(size=model.nv))
    return la.project(model, model.state(q, speed * rng.normal(size=model.nv)))


def rows_of(model: la.Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gaps (3,) and rows (3, nv) of ``mixed``, written out."""
    e, s, w, n = (model.joints[name] for name in ("elbow", "slide", "wrist", "screw"))
    (x,), (y,), (a, b), (z,) = (q[view.q] for view in (e, s, w, n))
    J = np.zeros((3, model.nv))
    J[0, [e.v.start, s.v.start]] = 0.3, -1.0
    J[1, [w.v.start + 1, n.v.start]] = 1.0, -0.5 - 0.8 * z + 0.6 * z**2 + 0.4 * z**3
    J[2, [w.v.start, e.v.start, n.v.start]] = 1.0, -0.5, 0.7
    cam = b - 0.5 * z - 0.4 * z**2 + 0.2 * z**3 + 0.1 * z**4
    return np.array([0.3 * x - y - 0.02, cam - 0.1, a - 0.5 * x + 0.7 * z]), J


# --- closed forms -----------------------------------------------------------------------------------------------------
def test_geared_pendulums_are_one_pendulum():
    m = la.Mechanism("geared")
    for name, mass, x in (("a", 1.0, 0.0), ("b", 0.5, 1.0)):
        m.add_body(name, mass=mass, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
        at = la.pose(xyz=(x, 0, 0))
        m.add_joint(f"j{name}", "revolute", parent="world", child=name, axis=(0, 1, 0), parent_frame=at)
    m.add_coupling("gear", {"ja": 1.0, "jb": 2.0})
    model = m.build()
    # inertia and weight of b count as seen from a
    inertia = 0.1 + 1.0 * 0.25 + (0.1 + 0.5 * 0.25) / 4

    def rates(t, y):
        turn = -9.81 * 0.5 * np.sin(y[0]) + 0.5 * 9.81 * 0.5 * 0.5 * np.sin(-0.5 * y[0])
        return [y[1], turn / inertia]

    expected = solve_ivp(rates, (0, 1), [0.4, 1.0], rtol=1e-12, atol=1e-12).y[0, -1]
    start = model.state({"ja": 0.4, "jb": -0.2}, {"ja": 1.0, "jb": -0.5})
    run = la.simulate(model, start, method="galerkin:4", dt=0.01, duration=1.0)
    # measured 2.2e-9
    assert abs(run.q[-1, 0] - expected) < 1e-7
    assert run.constraint_error.max() < 1e-14


def test_a_rack_and_its_pinion_are_a_cylinder_that_rolls():
    r, mass, slope = 0.2, 3.0, 0.3
    m = la.Mechanism("roll", gravity=(9.81 * np.sin(slope), 0.0, -9.81 * np.cos(slope)))
    m.add_body("axle")
    m.add_joint("along", "prismatic", parent="world", child="axle", axis=(1, 0, 0))
    m.add_body("cylinder", mass=mass, inertia=(0.05, 0.5 * mass * r**2, 0.05))
    m.add_joint("turn", "revolute", parent="axle", child="cylinder", axis=(0, 1, 0))
    m.add_coupling("rolls", {"along": 1.0, "turn": -r})
    model = m.build()
    a = 9.81 * np.sin(slope) / 1.5
    # measured 8.9e-16
    np.testing.assert_allclose(la.forward_dynamics(model, model.neutral(), np.zeros(2)), [a, a / r], atol=1e-13)
    run = la.simulate(model, model.state(), method="maximal", dt=0.01, duration=0.5)
    # the friction that makes it roll holds back a third of its weight along the slope; measured 1.8e-15
    np.testing.assert_allclose(run.multipliers["rolls"][:, 0], -mass * a / 2, rtol=1e-12)
    assert abs(run.q[-1, 0] - 0.5 * a * 0.5**2) < 1e-3


def test_a_differential_shares_its_torque():
    m = la.Mechanism("differential", gravity=(0, 0, 0))
    for name, inertia in (("carrier", 0.3), ("left", 0.1), ("right", 0.2)):
        m.add_body(name, mass=1.0, inertia=(inertia, inertia, inertia))
        m.add_joint(name, "revolute", parent="world", child=name, axis=(1, 0, 0))
    m.add_coupling("ring", {"left": 0.5, "right": 0.5, "carrier": -1.0})
    model = m.build()
    a = la.forward_dynamics(model, model.neutral(), np.zeros(3), {"carrier": 2.0})
    # torque t on the ring: half of it on each wheel
    t = 2.0 / (1.0 + 0.3 * (0.25 / 0.1 + 0.25 / 0.2))
    np.testing.assert_allclose(a, [(2.0 - t) / 0.3, 0.5 * t / 0.1, 0.5 * t / 0.2], rtol=1e-13)


def test_turns_are_counted():
    # a worm that turns far: poses do not know how often
    m = la.Mechanism("worm", gravity=(0, 0, 0))
    m.add_body("worm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("worm_joint", "revolute", parent="world", child="worm")
    m.add_body("wheel", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("wheel_joint", "revolute", parent="world", child="wheel", axis=(0, 1, 0))
    m.add_coupling("gear", {"worm_joint": 1.0, "wheel_joint": -30.0}, 0.5)
    model = m.build()
    start = model.state({"worm_joint": 0.5}, {"worm_joint": 60.0, "wheel_joint": 2.0})
    for method in ("maximal", "galerkin:2"):
        run = la.simulate(model, start, method=method, dt=0.01, duration=2.0)
        # a step of ``Maximal`` turns by the arc sine of h times the rate; measured 2.8e-14 and 1.4e-13
        angle = 60.0 * 2.0 if method == "galerkin:2" else 200 * np.arcsin(0.6)
        np.testing.assert_allclose(run.q[-1], [0.5 + angle, angle / 30], rtol=1e-2)
        assert abs(run.q[-1] @ [1.0, -30.0] - 0.5) < 1e-9
        assert run.constraint_error.max() < 1e-9


# --- against dense algebra --------------------------------------------------------------------------------------------
def test_forward_dynamics_against_dense_algebra():
    model = model_of(3.0, 0.4)
    state, tau = moving(model, 1), np.random.default_rng(2).normal(size=model.nv)
    gap, J = rows_of(model, state.q)
    assert np.abs(gap).max() < 1e-12
    z, u = state.q[model.joints["screw"].q][0], state.v[model.joints["screw"].v][0]
    bias = np.array([0.0, (-0.8 + 1.2 * z + 1.2 * z**2) * u**2, 0.0])
    M, f = la.mass_matrix(model, state.q), la.inverse_dynamics(model, state.q, state.v, np.zeros(model.nv))
    both = np.block([[M, -J.T], [J, np.zeros((3, 3))]])
    found = np.linalg.solve(both, np.concatenate([tau - f, -bias]))
    # measured 2.2e-14 of entries up to 50
    np.testing.assert_allclose(la.forward_dynamics(model, state.q, state.v, tau), found[:-3], atol=1e-11)
    run = la.simulate(model, state, method="rk4", dt=1e-3, duration=1e-3, control=tau[None])
    lam = np.array([run.multipliers[name][0, 0] for name in ("rack", "cam", "sum")])
    np.testing.assert_allclose(lam, found[-3:], atol=1e-11)


def test_hybrid_dynamics_moves_couplings_as_prescribed():
    model = model_of(3.0, 0.4)
    state = moving(model, 3)
    free = la.forward_dynamics(model, state.q, state.v)
    # with the acceleration that the joint has anyway, nothing is needed there; with another one, what is found fits
    for more in (0.0, 2.0):
        wanted = free[model.joints["elbow"].v] + more
        found = la.hybrid_dynamics(model, state, {"elbow": wanted})
        again = la.forward_dynamics(model, state.q, state.v, found.force)
        np.testing.assert_allclose(again, found.acceleration, atol=1e-9)  # measured 1.4e-12
        np.testing.assert_allclose(again[model.joints["elbow"].v], wanted, atol=1e-9)
        assert (np.abs(found.forces["elbow"]).max() < 1e-10) == (more == 0.0)


# --- methods ----------------------------------------------------------------------------------------------------------
@functools.cache
def expected_end() -> np.ndarray:
    model = model_of()
    return la.simulate(model, moving(model, 3), method=METHODS["galerkin:4"][0], dt=0.001, duration=0.1).q[-1]


@pytest.mark.parametrize("name", METHODS)
def test_methods_agree(name):
    method, bound = METHODS[name]
    model = model_of()
    run = la.simulate(model, moving(model, 3), method=method, dt=0.002, duration=0.1)
    assert np.abs(difference(model, run.q[-1], expected_end())).max() < bound
    # methods that close positions close them to rounding; accelerations alone drift
    gap = max(np.abs(rows_of(model, q)[0]).max() for q in run.q)
    assert gap < (1e-12 if name not in ("rk4", "euler", "adaptive", "linearly-implicit-euler") else bound)
    assert gap == pytest.approx(run.constraint_error.max(), abs=1e-14)


def test_momentum_and_energy_are_kept():
    m = mixed()
    m.gravity = np.zeros(3)
    model = m.build()
    start = moving(model, 5)
    run = la.simulate(model, start, method="galerkin:4", dt=0.002, duration=0.2)
    before, after = la.momentum(model, start.q, start.v), la.momentum(model, run.q[-1], run.v[-1])
    # couplings act between bodies; measured 1.2e-12
    np.testing.assert_allclose(after.angular, before.angular, atol=1e-10)
    np.testing.assert_allclose(after.linear, before.linear, atol=1e-10)
    assert np.abs(run.energy.total - run.energy.total[0]).max() < 1e-6


def differences(model: la.Model, method: la.Method, state: la.State, tau: np.ndarray, dt: float):
    """A and B by differences of fourth order of whole steps, of starts that are projected onto the couplings."""
    n, columns = model.nv, []
    end = method.step(model, state, dt, tau)
    for k in range(3 * n):
        out = np.zeros(2 * n)
        for weight, size in ((8.0, 1e-4), (-1.0, 2e-4)):
            for sign in (1.0, -1.0):
                d = np.zeros(3 * n)
                d[k] = sign * size
                start = model.state(retract(model, state.q, d[:n]), state.v + d[n : 2 * n])
                to = method.step(model, la.project(model, start, tolerance=1e-15), dt, tau + d[2 * n :])
                change = np.concatenate([difference(model, end.q, to.q), to.v - end.v])
                out += weight * sign * change / (12e-4)
        columns.append(out)
    M = np.array(columns).T
    return M[:, : 2 * n], M[:, 2 * n :]


@pytest.mark.parametrize(
    "method", [la.Galerkin(2, solver=TIGHT), la.Galerkin(4, solver=TIGHT), la.Maximal(solver=TIGHT)]
)
def test_linearize_against_differences(method):
    model = model_of(3.0, 0.4)
    state, tau = moving(model, 1), np.random.default_rng(2).normal(size=model.nv)
    found = la.linearize(model, method, state, tau, 0.02)
    A, B = differences(model, method, state, tau, 0.02)
    assert np.abs(found.A - A).max() < 1e-6
    assert np.abs(found.B - B).max() < 1e-6


@pytest.mark.parametrize("method", ["galerkin:2", "bdf:2", "maximal"])
def test_gradient_against_differences(method):
    model = model_of(3.0, 0.4)
    start, rng = moving(model, 1), np.random.default_rng(4)
    controls, weights = rng.normal(size=(10, model.nv)), rng.normal(size=model.nv)

    def cost(U):
        run = la.simulate(model, start, method=method, dt=0.01, duration=0.1, control=U)
        return float(weights @ run.v[-1])

    objective = la.Objective(final=lambda model, state: (float(weights @ state.v), np.zeros(model.nv), weights))
    found = la.gradient(model, method, start, controls, 0.01, objective, ("controls",))
    d = rng.normal(size=controls.shape)
    by = (cost(controls + 1e-5 * d) - cost(controls - 1e-5 * d)) / 2e-5
    assert float((found["controls"] * d).sum()) == pytest.approx(by, rel=1e-5)
