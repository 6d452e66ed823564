"""Compiled laws of forces: against plain NumPy, closed forms and other forces, alone and inside every method."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.forces import force_from_dict
from leastaction.run.registry import method_by_name
from leastaction.spatial import se3

POINT = np.array([0.1, -0.2, 0.3])
FRAME = la.pose(xyz=(0.2, 0.1, -0.1), rpy=(0.3, -0.5, 0.8))
METHODS = ("euler", "rk4", "adaptive", "galerkin:2", "galerkin:4", "lie-trapezoid", "maximal", "bdf:2", "sdirk2")


def matrix(seed=3):
    """A damping matrix (6, 6) with a part that only turns velocities."""
    A = np.random.default_rng(seed).normal(size=(6, 6))
    return 0.1 * (A @ A.T + A - A.T)


def damping(**more):
    return la.BodyDamping("a", matrix(), POINT, **more)


def fluid(wind=(1.0, -2.0, 0.5), **more):
    return la.FluidDrag("a", (0.3, 0.5, 0.2), density=1.2, viscosity=0.7, wind=wind, frame=FRAME, **more)


def spring_wrench(t, bodies, numbers, out):
    # a spring of zero length from the link origin to a point of the world
    for r in range(3):
        out[0, r] = 0.0
        out[0, 3 + r] = 0.0
        for c in range(3):
            out[0, 3 + r] -= numbers[0] * bodies[0, 3 * c + r] * (bodies[0, 9 + c] - numbers[1 + c])


def spring_derivatives(t, bodies, numbers, K, D):
    K[:], D[:] = 0.0, 0.0
    f = np.zeros((1, 6))
    spring_wrench_compiled(t, bodies, numbers, f)
    for r in range(3):
        K[3 + r, 3 + r] = -numbers[0]
    # the link turns under the force
    K[3, 1], K[3, 2], K[4, 0] = -f[0, 5], f[0, 4], f[0, 5]
    K[4, 2], K[5, 0], K[5, 1] = -f[0, 3], -f[0, 4], f[0, 3]


def of_user(derivatives=True, **more):
    global spring_wrench_compiled
    import numba

    spring_wrench_compiled = numba.njit(spring_wrench)
    numbers = (7.0, 0.1, 0.2, 0.3)
    return la.NumbaForce("a", spring_wrench, spring_derivatives if derivatives else None, numbers=numbers, **more)


FORCES = {"damping": damping, "fluid": fluid, "user": of_user, "user by differences": lambda: of_user(False)}


def state(seed=0):
    rng = np.random.default_rng(seed)
    return se3.exp(rng.uniform(-1, 1, (1, 6))), rng.uniform(-1, 1, (1, 6))


@pytest.mark.parametrize("name", FORCES)
def test_derivatives(name):
    # measured 1e-9 for the fluid, 4e-10 and less for the others
    assert FORCES[name]().check() < 1e-7


def test_a_wrong_derivative_is_named():
    def wrong(t, bodies, numbers, K, D):
        K[:], D[:] = 0.0, 0.0

    force = la.NumbaForce("a", spring_wrench, wrong, numbers=(7.0, 0.0, 0.0, 0.0), name="pull")
    with pytest.raises(la.ModelError, match=r"NumbaForce 'pull': K\[\d, \d\] is 0, central differences give"):
        force.check()


def test_damping_against_numpy():
    force, (poses, twists) = damping(), state()
    w, v = twists[0, :3], twists[0, 3:]
    at = -matrix() @ np.concatenate([w, v + np.cross(w, POINT)])
    expected = np.concatenate([at[:3] + np.cross(POINT, at[3:]), at[3:]])
    np.testing.assert_allclose(force.wrenches(0.0, poses, twists)[0], expected, rtol=1e-13)  # measured 4e-16
    assert np.sum(force.wrenches(0.0, poses, twists) * twists) < 0


def test_fluid_against_numpy():
    force, (poses, twists) = fluid(), state()
    R, wind, b = FRAME[:3, :3], np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.5, 0.2])
    w = R.T @ twists[0, :3]
    v = R.T @ (twists[0, 3:] + np.cross(twists[0, :3], FRAME[:3, 3]) - poses[0, :3, :3].T @ wind)
    f, torque = np.zeros(3), np.zeros(3)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        f[i] = -0.5 * 1.2 * b[j] * b[k] * abs(v[i]) * v[i] - 3 * np.pi * b.mean() * 0.7 * v[i]
        torque[i] = -1.2 * b[i] * (b[j] ** 4 + b[k] ** 4) / 64 * abs(w[i]) * w[i] - np.pi * b.mean() ** 3 * 0.7 * w[i]
    f, torque = R @ f, R @ torque
    expected = np.concatenate([torque + np.cross(FRAME[:3, 3], f), f])
    np.testing.assert_allclose(force.wrenches(0.0, poses, twists)[0], expected, rtol=1e-13)  # measured 3e-16


def ball(*forces):
    m = la.Mechanism("ball", gravity=(0, 0, 0))
    m.add_body("a", shape=la.Sphere(0.1), mass=2.0)
    m.add_joint("free", "free", parent="world", child="a")
    for force in forces:
        m.add_force(force)
    return m.build()


@pytest.mark.parametrize("method", METHODS)
def test_damping_of_a_ball_against_its_closed_form(method):
    # I w' = -c w and m v' = -d v about the centre
    model = ball(la.BodyDamping("a", (0.01, 0.01, 0.01, 3.0, 3.0, 3.0)))
    v0 = np.array([1.0, 0.0, 0.0, 0.5, -1.0, 2.0])
    run = la.simulate(model, model.state(v=v0), dt=0.001, duration=0.2, method=method)
    inertia = 0.4 * 2.0 * 0.01
    w = np.exp(-0.01 / inertia * 0.2) * v0[:3]
    # rates in body axes turn against the world's
    speed = np.exp(-3.0 / 2.0 * 0.2) * np.linalg.norm(v0[3:])
    tolerance = 5e-3 if method == "euler" else 1e-6  # measured 2e-4 for euler, 4e-8 for maximal
    np.testing.assert_allclose(run.v[-1, :3], w, atol=tolerance)
    assert np.linalg.norm(run.v[-1, 3:]) == pytest.approx(speed, abs=tolerance)


def test_a_body_takes_the_speed_of_the_wind():
    # m v' = -b (v - u) with the viscous part alone
    model = ball(la.FluidDrag("a", (0.2, 0.2, 0.2), viscosity=1.0, wind=(0.0, 3.0, 0.0)))
    run = la.simulate(model, dt=0.01, duration=4.0, method="galerkin:4")
    rate = 3 * np.pi * 0.2 / 2.0
    np.testing.assert_allclose(run.v[:, 4], 3.0 * (1 - np.exp(-rate * run.t)), atol=1e-7)  # measured 2e-10


def mechanism(*forces):
    """Two links on a free base, a loop-free tree with a ball between them."""
    m = la.Mechanism("tree")
    m.add_body("a", shape=la.Box((0.3, 0.2, 0.4)), mass=2.0)
    m.add_body("b", shape=la.Box((0.1, 0.2, 0.5)), mass=1.0)
    m.add_joint("free", "free", parent="world", child="a")
    m.add_joint("ball", "spherical", parent="a", child="b", child_frame=la.pose(xyz=(0, 0, 0.4)))
    for force in forces:
        m.add_force(force)
    return m


@pytest.mark.parametrize("method", ["galerkin:2", "galerkin:4", "lie-trapezoid", "maximal", "bdf:2", "sdirk2"])
def test_all_methods_find_one_motion(method):
    model = mechanism(damping(), fluid(), of_user(), la.FluidDrag("b", (0.1, 0.2, 0.3), density=20.0)).build()
    rng = np.random.default_rng(1)
    x0 = model.state(q=model.neutral(), v=0.5 * rng.normal(size=model.nv))
    exact = la.simulate(model, x0, dt=0.0005, duration=0.1, method="rk4").final
    ends = [la.simulate(model, x0, dt=dt, duration=0.1, method=method).final for dt in (0.002, 0.001)]
    errors = [np.abs(end.v - exact.v).max() for end in ends]
    # second order at least: measured ratios 3.7 to 17
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] > 3.3 or errors[1] < 1e-8


@pytest.mark.parametrize("method", ["galerkin:2", "galerkin:4", "maximal", "bdf:2", "sdirk2", "rk4"])
def test_linearize_against_differences(method):
    model = mechanism(damping(), fluid(), of_user(), of_user(False)).build()
    rng = np.random.default_rng(2)
    x0 = model.state(q=model.neutral(), v=0.5 * rng.normal(size=model.nv))
    control, h, dt, nv = np.zeros(model.nv), 1e-5, 0.01, model.nv
    found = la.linearize(model, method_by_name(method), x0, control, dt)

    def end(v, tau):
        return la.simulate(model, model.state(x0.q, v), dt=dt, duration=dt, method=method, control=tau[None]).final.v

    for j in range(0, nv, 4):
        step = np.zeros(nv)
        step[j] = h
        by_v = (end(x0.v + step, control) - end(x0.v - step, control)) / (2 * h)
        by_control = (end(x0.v, control + step) - end(x0.v, control - step)) / (2 * h)
        # measured 5e-9
        np.testing.assert_allclose(found.A[nv:, nv + j], by_v, atol=1e-6)
        np.testing.assert_allclose(found.B[nv:, j], by_control, atol=1e-6)


@pytest.mark.parametrize("make", [damping, fluid])
def test_files(make, tmp_path):
    force = make(name="drag")
    again = force_from_dict(force.to_dict())
    np.testing.assert_array_equal(again.numbers, force.numbers)
    m = mechanism(force)
    la.save(m, tmp_path / "m.json")
    assert la.load(tmp_path / "m.json").forces[0].name == "drag"


def test_functions_of_the_user_cannot_be_written():
    with pytest.raises(la.ModelError, match=r"NumbaForce.*cannot be written"):
        of_user().to_dict()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: la.BodyDamping("a", (1, 2, 3)), "damping must be six numbers or a matrix"),
        (lambda: la.BodyDamping("a", (1, 2, 3, 4, 5, -1)), "must not push"),
        (lambda: la.BodyDamping("a", (1, 2, 3, 4, 5, np.nan)), "finite"),
        (lambda: la.FluidDrag("a", (0.1, 0.2, 0.0)), "three positive sides"),
        (lambda: la.FluidDrag("a", (0.1, 0.2, 0.3), density=-1), "density"),
        (lambda: la.NumbaForce("a", 3), "wrench must be a function"),
        (lambda: la.NumbaForce(("a", "a"), spring_wrench), "several different bodies"),
        (lambda: la.NumbaForce("a", lambda t, bodies, numbers, out: exec("x")), "Numba cannot compile wrench"),
    ],
)
def test_bad_input(make, words):
    with pytest.raises(la.ModelError, match=words):
        make()


def test_a_force_that_is_not_finite_ends_the_run():
    def bad(t, bodies, numbers, out):
        out[:] = np.nan if t > 0.05 else 0.0

    model = ball(la.NumbaForce("a", bad))
    with pytest.raises(la.ConvergenceError):
        la.simulate(model, dt=0.01, duration=0.1, method="galerkin:2")
