"""Limits of balls, inequalities of the user and friction pyramids under Maximal: exact answers, momenta, names."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la

G = 9.81
SIDES = 8


def run_of(model: la.Model, state: la.State, dt: float, duration: float, **options) -> la.Trajectory:
    return la.simulate(model, state, dt=dt, duration=duration, method=la.Maximal(**options))


# --- limits of balls ------------------------------------------------------------------------------------------------
def pendulum(kind: str, limits: tuple[float, float], gravity: float = -G) -> la.Model:
    m = la.Mechanism("pendulum", gravity=(0.0, 0.0, gravity))
    m.add_body("rod", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.09, 0.09, 0.01))
    m.add_joint("joint", kind, parent="world", child="rod", axis=(0.0, 1.0, 0.0), limits=limits)
    m.enforce_limits()
    return m.build()


def test_a_ball_stops_where_a_hinge_does():
    """In a plane the angle of a ball is that of a hinge."""
    ball, hinge = pendulum("spherical", (0.0, 0.5)), pendulum("revolute", (-0.5, 0.5))
    one = run_of(ball, ball.state(v=[0.0, 6.0, 0.0]), 0.005, 1.5)
    two = run_of(hinge, hinge.state(v=[6.0]), 0.005, 1.5)
    angle = 2 * np.arctan2(one.q[:, 2], one.q[:, 0])
    assert np.abs(angle - two.q[:, 0]).max() < 1e-5  # measured 2e-6, what the barriers differ by
    assert np.abs(angle).max() <= 0.5 + 1e-12  # measured 3e-12 below
    assert np.abs(angle).max() > 0.5 - 1e-7


def test_a_ball_swings_round_inside_its_limit():
    """The limit turns with the body: what symmetry keeps is kept, to rounding."""
    model = pendulum("spherical", (0.0, 0.8))
    run = run_of(model, model.state(v=[2.0, 3.0, 0.5]), 0.005, 3.0)
    angle = 2 * np.arccos(np.minimum(np.abs(run.q[:, 0]), 1.0))
    assert angle.max() <= 0.8 + 1e-10  # measured 2e-11 below
    assert angle.max() > 0.8 - 1e-7
    # an axisymmetric body: the angular momenta about the vertical and about its own axis differ by a constant
    about = run.momentum.angular[:, 2] - 0.01 * run.v[:, 2]
    assert np.abs(about - about[0]).max() < 1e-9  # measured 3e-12
    assert np.diff(run.energy.total).max() < 2e-3  # measured 5e-4 J of 1.5


def test_a_ball_beyond_its_limit_is_refused():
    model = pendulum("spherical", (0.0, 0.5))
    with pytest.raises(la.ModelError, match=r"joint 'joint' starts at 0\.6, beyond its enforced limit 0\.5"):
        run_of(model, model.state([np.cos(0.3), 0.0, np.sin(0.3), 0.0]), 0.01, 0.1)


def test_translation_of_a_free_joint_is_limited_at_the_centre_of_mass_only():
    def falling(com: tuple[float, float, float]) -> la.Model:
        m = la.Mechanism("falling")
        m.add_body("box", mass=1.0, com=com, inertia=(0.1, 0.1, 0.1))
        m.add_joint("root", "free", parent="world", child="box", limits=[None, None, (-0.1, None), None])
        m.enforce_limits()
        return m.build()

    model = falling((0.0, 0.0, 0.0))
    run = run_of(model, model.state(v=[1.0, 2.0, 3.0, 0.5, 0.0, 0.0]), 0.01, 0.5)
    assert run.q[:, 2].min() >= -0.1 - 1e-12
    assert run.q[-1, 2] < -0.1 + 1e-8
    assert run.q[-1, 0] > 0.1
    model = falling((0.1, 0.0, 0.0))
    with pytest.raises(la.UnsupportedError, match="joint 'root': limits of the translation of a free joint"):
        run_of(model, model.state(), 0.01, 0.1)


# --- inequalities ---------------------------------------------------------------------------------------------------
def above(body: str, height: float, name: str | None = None) -> la.Constraint:
    """The origin of a body stays above a height."""

    def jacobian(poses: np.ndarray) -> np.ndarray:
        return np.array([[0.0, 0.0, 0.0, *poses[0, 2, :3]]])

    return la.Constraint((body,), lambda poses: [poses[0, 2, 3] - height], jacobian, kind="inequality", name=name)


def rope(a: str, b: str, length: float) -> la.Constraint:
    """Two bodies no farther apart than a length: (length^2 - distance^2) / (2 length)."""

    def jacobian(poses: np.ndarray) -> np.ndarray:
        d = poses[0, :3, 3] - poses[1, :3, 3]
        turn = [0.0, 0.0, 0.0]
        return np.array([[*turn, *(-poses[0, :3, :3].T @ d / length), *turn, *(poses[1, :3, :3].T @ d / length)]])

    def value(poses: np.ndarray) -> list[float]:
        d = poses[0, :3, 3] - poses[1, :3, 3]
        return [(length**2 - d @ d) / (2 * length)]

    return la.Constraint((a, b), value, jacobian, kind="inequality", name="rope")


@functools.cache
def two_bodies(gravity: float = 0.0) -> la.Model:
    """Two boxes on a rope over frictional ground; one kind of mechanism, so one program, for all that follows."""
    m = la.Mechanism("two", gravity=(0.0, 0.0, gravity))
    for name in "ab":
        m.add_body(name, shape=la.Box((0.2, 0.2, 0.2)), mass=1.0)
        m.add_joint(name, "free", parent="world", child=name)
    m.add_constraint(rope("a", "b", 1.0))
    m.add_ground(friction=0.5)
    m.exclude_contact("a", "b")
    return m.build()


def test_a_rope_between_two_bodies_keeps_momentum():
    model = two_bodies()
    q = {"a": [0.0, 0.0, 3.0, 1, 0, 0, 0], "b": [0.5, 0.0, 3.2, 1, 0, 0, 0]}
    state = model.state(q, {"a": [1.0, 2.0, 0.5, -1.0, 0.3, 0.0], "b": [0.0, 1.0, 0.0, 2.0, -0.4, 0.5]})
    run = run_of(model, state, 0.01, 1.0, cone=SIDES)
    apart = run.poses("b")[:, :3, 3] - run.poses("a")[:, :3, 3]
    distance = np.linalg.norm(apart, axis=1)
    assert distance.max() <= 1.0 + 1e-10  # measured 2e-11 below
    # taut at the end, and never slack again: the bodies turn about each other
    assert np.abs(distance[-50:] - 1.0).max() < 1e-6  # measured 2e-8
    p, L = run.momentum.linear, run.momentum.angular
    assert np.abs(p - p[0]).max() < 1e-9  # measured 5e-15
    assert np.abs(L - L[0]).max() < 1e-9  # measured 1e-14
    # the jerk took the radial part of the relative motion and nothing else
    spin = np.cross(apart[0], (run.v[0, 9:] - run.v[0, 3:6]))
    mean = np.diff(run.q[:, 7:10] - run.q[:, :3], axis=0)[-1] / 0.01
    assert np.linalg.norm(mean) == pytest.approx(np.linalg.norm(spin), rel=1e-4)  # measured 3e-6


def test_an_inequality_is_a_contact_without_friction():
    """A ball that may not go below a height, against one on frictionless ground."""

    def ball(ground: bool) -> la.Model:
        m = la.Mechanism("ball")
        m.add_body("ball", shape=la.Sphere(0.1), mass=1.0)
        m.add_joint("root", "free", parent="world", child="ball")
        if ground:
            m.add_ground(friction=0.0)
        # one that is far away makes it the same program
        m.add_constraint(above("ball", -10.0 if ground else 0.1))
        return m.build()

    runs = []
    for ground in (True, False):
        model = ball(ground)
        state = model.state({"root": [0, 0, 0.4, 1, 0, 0, 0]}, {"root": [1.0, 2.0, 3.0, 1.0, 0.0, 0.0]})
        runs.append(run_of(model, state, 0.01, 1.0, cone=SIDES))
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-8  # measured 1e-10
    assert runs[1].q[:, 2].min() >= 0.1 - 1e-12


def test_inequalities_are_named():
    model = two_bodies()
    apart = {"a": [0.0, 0.0, 3.0, 1, 0, 0, 0], "b": [2.0, 0.0, 3.0, 1, 0, 0, 0]}
    with pytest.raises(la.ModelError, match=r"'two': Constraint 'rope': value -1\.5 of row 0 is negative"):
        run_of(model, model.state(apart), 0.01, 0.1, cone=SIDES)
    # no solution in one iteration
    tight = {"a": [0.0, 0.0, 3.0, 1, 0, 0, 0], "b": [1.0, 0.0, 3.0, 1, 0, 0, 0]}
    away = model.state(tight, {"b": [0.0, 0.0, 0.0, 5.0, 0.0, 0.0]})
    with pytest.raises(la.ConvergenceError, match="worst at Constraint 'rope'"):
        run_of(model, away, 0.01, 0.1, cone=SIDES, solver=la.InteriorPoint(iterations=1))


# --- friction pyramids ----------------------------------------------------------------------------------------------
def slide(cone: int | str, angle: float) -> la.Trajectory:
    """Two boxes, one of which slides at an angle with 1 m/s, until it lies."""
    model = two_bodies(-G)
    q = {"a": [0.0, 0.0, 0.1, 1, 0, 0, 0], "b": [0.0, 0.5, 0.1, 1, 0, 0, 0]}
    state = model.state(q, {"a": [0.0, 0.0, 0.0, np.cos(angle), np.sin(angle), 0.0]})
    return run_of(model, state, 0.01, 0.5, cone=cone)


def test_a_pyramid_has_the_friction_of_the_cone_at_its_corners_only():
    exact = 1.0 / (2 * 0.5 * G)
    corner, side = slide(SIDES, np.pi / 4), slide(SIDES, np.pi / 8)
    assert np.linalg.norm(corner.q[-1, :2]) == pytest.approx(exact, rel=1e-3)  # measured 4e-4
    assert np.linalg.norm(side.q[-1, :2]) == pytest.approx(exact / np.cos(np.pi / 8), rel=1e-3)  # 1e-5
    # the force is that of a corner, and always inside
    assert corner.contacts.wrench("a")[5, 3:5] == pytest.approx(-0.5 * G * np.sqrt(0.5) * np.ones(2), rel=1e-5)  # 5e-7
    between = slide(SIDES, 0.3)
    assert between.contacts.wrench("a")[2, 3:5] == pytest.approx([-0.5 * G, 0.0], abs=1e-4)  # 1e-5
    normals = 2 * np.pi * (np.arange(SIDES) + 0.5) / SIDES
    for run in (corner, side, between):
        for force in run.contacts.force:
            inside = 0.5 * np.cos(np.pi / SIDES) * force[:, 2:] - force[:, :2] @ [np.cos(normals), np.sin(normals)]
            assert inside.min() > 0.0  # measured 2e-7 N


def test_a_pyramid_becomes_the_cone():
    """The error of the worst direction is 1/cos(pi/n) - 1, of second order in 1/n."""
    exact = 1.0 / (2 * 0.5 * G)
    errors = [np.linalg.norm(slide(n, np.pi / n).q[-1, :2]) / exact - 1 for n in (4, 8, 16, 32)]
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(rates > 1.9)  # measured 2.33, 2.08, 2.19


def test_the_cone_is_checked():
    for wrong in (3, 2, 5, True, 8.0, "round"):
        with pytest.raises(la.ModelError, match="cone must be"):
            la.Maximal(cone=wrong)
    m = la.Mechanism("ball")
    m.add_body("ball", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(restitution=0.5)
    with pytest.raises(la.UnsupportedError, match='cone="exact"'):
        run_of(m.build(), m.build().state({"root": [0, 0, 1, 1, 0, 0, 0]}), 0.01, 0.1, cone=4)
