"""Motions that are known exactly, also a kilometre from the world's origin.

A position of a kilometre resolves 1e-13 m, so positions in the world are compared to that; everything else is as
accurate there as at the origin.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq
from scipy.special import ellipj, ellipk

import leastaction as la
from leastaction.spatial import quaternion, so3

G = 9.81
FAR = np.array([800.0, -500.0, 300.0])

METHODS = {"rk4": la.RungeKutta(4), "adaptive": la.Adaptive(1e-12, 1e-12)}


def simulate(method, model, state, dt, duration):
    """A run of a hundred rows; the adaptive method chooses its steps between them."""
    if isinstance(method, la.Adaptive):
        return la.simulate(model, state, dt=duration / 100, duration=duration, method=method)
    every = round(duration / dt / 100)
    return la.simulate(model, state, dt=dt, duration=duration, method=method, save_every=every)


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


@pytest.fixture(params=[0.0, 1.0], ids=["near", "far"])
def base(request):
    """Where the mechanism stands."""
    return request.param * FAR


def moved(m, base):
    """The mechanism with the frames of its root joints moved."""
    for joint in m.joints.values():
        if joint.parent == "world":
            joint.parent_frame = la.pose(xyz=base) @ joint.parent_frame
    return m


# --- pendulum ---------------------------------------------------------------------------------------------------------
def test_pendulum_swings(method, base):
    """From rest at an angle: sin(q / 2) = k sn(K + w t, k^2) with k = sin(angle / 2)."""
    length, angle = 0.8, 2.5
    model = moved(la.models.pendulum(length, mass=1.3), base).build()
    run = simulate(method, model, model.state(q=[angle]), 2e-3, 4.0)
    w, k = np.sqrt(G / length), np.sin(angle / 2)
    sn, cn, _, _ = ellipj(w * run.t + ellipk(k**2), k**2)
    assert np.abs(run.q[:, 0] - 2 * np.arcsin(k * sn)).max() < 1e-9  # measured 3e-10
    assert np.abs(run.v[:, 0] - 2 * k * w * cn).max() < 1e-9  # measured 5e-10
    # where the bob is
    angles = 2 * np.arcsin(k * sn)
    bob = base + length * np.column_stack([-np.sin(angles), np.zeros(len(angles)), -np.cos(angles)])
    ours = run.poses("bob") @ np.array([0.0, 0.0, -length, 1.0])
    assert np.abs(ours[:, :3] - bob).max() < 1e-9  # measured 2e-10


def test_pendulum_turns_over(method, base):
    """With more than the energy of the upright position: q = 2 am(W t, (w / W)^2), W half the speed below."""
    model = moved(la.models.pendulum(1.0), base).build()
    run = simulate(method, model, model.state(v=[8.0]), 1e-3, 3.0)
    W = 4.0
    _, _, dn, am = ellipj(W * run.t, G / W**2)
    assert np.abs(run.q[:, 0] - 2 * am).max() < 1e-9  # measured 3e-11
    assert np.abs(run.v[:, 0] - 2 * W * dn).max() < 1e-9  # measured 4e-11


# --- torque-free body -------------------------------------------------------------------------------------------------
INERTIA = np.array([0.010, 0.020, 0.025])


def elliptic_rates(inertia, w1, w3, t):
    """Body rates (rows, 3) that start at (w1, 0, w3): Landau and Lifshitz, Mechanics, sec. 37.

    Moments grow; both given rates are positive.
    """
    a, b, c = inertia
    E2, M2 = a * w1**2 + c * w3**2, (a * w1) ** 2 + (c * w3) ** 2
    # the axis about which the body goes round is the one on the side of the energy
    if (E2 * b > M2) == (c > a):
        return elliptic_rates(inertia[::-1], w3, w1, t)[:, ::-1]
    rate = np.sqrt((c - b) * (M2 - E2 * a) / (a * b * c))
    k2 = (b - a) * (E2 * c - M2) / ((c - b) * (M2 - E2 * a))
    sn, cn, dn, _ = ellipj(rate * t, k2)
    first = np.sqrt((E2 * c - M2) / (a * (c - a)))
    second = np.sqrt((E2 * c - M2) / (b * (c - b)))
    third = np.sqrt((M2 - E2 * a) / (c * (c - a)))
    return np.column_stack([first * cn, second * sn, third * dn])


def precession(inertia, w1, w3, t):
    """Angle about the angular momentum at time t, by quadrature of the exact rates."""
    a, b, _ = inertia

    def rate(s):
        x, y, z = elliptic_rates(inertia, w1, w3, np.array([s]))[0]
        M = np.sqrt(((inertia * [x, y, z]) ** 2).sum())
        return M * (a * x**2 + b * y**2) / ((a * x) ** 2 + (b * y) ** 2)

    return quad(rate, 0.0, t, epsabs=1e-13, epsrel=1e-13, limit=2000)[0]


def attitude(inertia, w, phi):
    """Rotation whose z axis in the world is along the angular momentum: Rz(phi) Rx(theta) Rz(psi)."""
    h = inertia * w / np.linalg.norm(inertia * w)
    theta, psi = np.arccos(h[2]), np.arctan2(h[0], h[1])
    return so3.exp([0, 0, phi]) @ so3.exp([theta, 0, 0]) @ so3.exp([0, 0, psi])


@pytest.mark.parametrize(("w1", "w3"), [(3.0, 4.0), (6.0, 1.5)], ids=["about the largest", "about the smallest"])
def test_torque_free_body(method, base, w1, w3):
    """Rates by Jacobi's functions, orientation by the constant angular momentum and the exact precession."""
    com, speed = np.array([0.1, -0.2, 0.05]), np.array([0.3, -0.1, 0.2])
    m = la.Mechanism("tumbling", gravity=(0, 0, 0))
    m.add_body("body", mass=1.7, com=com, inertia=INERTIA)
    m.add_joint("root", "free", parent="world", child="body")
    model = m.build()
    w = np.array([w1, 0.0, w3])
    R0 = attitude(INERTIA, w, 0.0)
    # the centre of mass starts at the base and moves on straight; the link frame turns about it
    state = model.state(q=[*(base - R0 @ com), *quaternion.from_matrix(R0)], v=[*w, *(R0.T @ speed - np.cross(w, com))])
    run = simulate(method, model, state, 1e-3, 2.0)
    expected = elliptic_rates(INERTIA, w1, w3, run.t)
    assert np.abs(run.v[:, :3] - expected).max() < 1e-9  # measured 2e-11
    for row in (40, 100):
        R = attitude(INERTIA, expected[row], precession(INERTIA, w1, w3, run.t[row]))
        assert np.abs(run.poses("body")[row, :3, :3] - R).max() < 1e-9  # measured 7e-12
        assert np.abs(run.q[row, :3] - (base + speed * run.t[row] - R @ com)).max() < 1e-9  # measured 8e-11
    # the angular momentum in the world, about the centre of mass
    center = la.center_of_mass(model, run.q)
    angular = run.momentum.angular - np.cross(center, run.momentum.linear)
    assert np.abs(angular - [0, 0, np.linalg.norm(INERTIA * w)]).max() < 1e-10  # measured 5e-13


# --- spherical pendulum -----------------------------------------------------------------------------------------------
def test_spherical_pendulum(method, base):
    """Against an independent integration of the two spherical angles."""
    length, radius = 0.9, 0.1
    model = moved(la.models.spherical_pendulum(length, 1.2, radius), base).build()
    same = length + 0.4 * radius**2 / length
    theta0, turn = 1.1, 2.3
    # horizontal start, the rod without spin: angular velocity perpendicular to it
    R0 = so3.exp([0, -theta0, 0])
    rod = np.array([0.0, 0.0, -1.0])
    w = np.cross(rod, R0.T @ [0.0, turn * np.sin(theta0), 0.0])
    state = model.state(q=quaternion.from_matrix(R0), v=w)
    run = simulate(method, model, state, 1e-3, 4.0)
    # theta from below, phi about the vertical
    h = turn * np.sin(theta0) ** 2

    def rates(t, y):
        return [y[1], h**2 * np.cos(y[0]) / np.sin(y[0]) ** 3 - G / same * np.sin(y[0]), h / np.sin(y[0]) ** 2]

    exact = solve_ivp(rates, (0.0, 4.0), [theta0, 0.0, 0.0], "DOP853", run.t, rtol=1e-13, atol=1e-14)
    theta, _, phi = exact.y
    bob = base + length * np.column_stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), -np.cos(theta)])
    ours = (run.poses("bob") @ np.array([0.0, 0.0, -length, 1.0]))[:, :3]
    assert np.abs(ours - bob).max() < 1e-10  # measured 6e-12
    # what the motion keeps
    assert np.ptp(run.energy.total) < 1e-9  # measured 3e-12
    vertical = (run.momentum.angular - np.cross(base, run.momentum.linear))[:, 2]
    assert np.ptp(vertical) < 1e-10  # measured 3e-12


def test_spherical_pendulum_through_the_vertical(base):
    """Where two hinges would be singular: a swing through the lowest point and over the top stays in its plane."""
    length = 1.0
    model = moved(la.models.spherical_pendulum(length, radius=0.1), base).build()
    same = length + 0.4 * 0.1**2 / length
    run = la.simulate(model, model.state(v=[0.0, 7.0, 0.0]), dt=1e-3, duration=2.0)
    W = 3.5
    _, _, dn, am = ellipj(W * run.t, G / same / W**2)
    assert np.abs(run.v - np.column_stack([0 * dn, 2 * W * dn, 0 * dn])).max() < 1e-9  # measured 2e-11
    expected = quaternion.exp(np.outer(2 * am, [0.0, 1.0, 0.0]))
    turn = quaternion.to_matrix(run.q) - quaternion.to_matrix(expected)
    assert np.abs(turn).max() < 1e-9  # measured 2e-11


# --- Kepler -----------------------------------------------------------------------------------------------------------
def kepler(mu, e, t):
    """Position and velocity in the plane for semi-major axis 1, from the nearest point on."""
    n = np.sqrt(mu)
    x, v = [], []
    for M in n * t:
        E = brentq(lambda E, M=M: E - e * np.sin(E) - M, M - 1.0, M + 1.0, xtol=1e-15, rtol=1e-15)
        rate = n / (1 - e * np.cos(E))
        x.append([np.cos(E) - e, np.sqrt(1 - e**2) * np.sin(E), 0.0])
        v.append([-np.sin(E) * rate, np.sqrt(1 - e**2) * np.cos(E) * rate, 0.0])
    return np.array(x), np.array(v)


def gravity_of(mu, mass, center):
    """Newton's potential of a fixed centre on the link origin of body "planet"."""

    def energy(poses):
        return -mu * mass / np.linalg.norm(poses[0, :3, 3] - center)

    def gradient(poses):
        r = poses[0, :3, 3] - center
        pull = mu * mass * r / np.linalg.norm(r) ** 3
        return np.concatenate([np.zeros(3), poses[0, :3, :3].T @ pull])[None]

    return la.Potential("planet", energy, gradient)


@pytest.mark.parametrize("kind", ["translational", "free"])
def test_kepler(method, base, kind):
    """One revolution with eccentricity 0.4, against Kepler's equation."""
    mu, e, mass = 4.0 * np.pi**2, 0.4, 2.0
    m = la.Mechanism("kepler", gravity=(0, 0, 0))
    m.add_body("planet", mass=mass, inertia=[0.1, 0.1, 0.1])
    m.add_joint("orbit", kind, parent="world", child="planet", parent_frame=la.pose(xyz=base))
    m.add_force(gravity_of(mu, mass, base))
    model = m.build()
    x0, v0 = kepler(mu, e, np.zeros(1))
    spin = [0.3, -0.2, 0.5] if kind == "free" else []
    state = model.state(q=[*x0[0], 1, 0, 0, 0] if kind == "free" else x0[0], v=[*spin, *v0[0]])
    run = simulate(method, model, state, 5e-4, 1.0)
    x, v = kepler(mu, e, run.t)
    ours_x = run.q[:, :3]
    ours_v = run.v if kind == "translational" else np.einsum("rij,rj->ri", run.poses("planet")[:, :3, :3], run.v[:, 3:])
    assert np.abs(ours_x - x).max() < 1e-8  # measured 4e-10
    assert np.abs(ours_v - v).max() < 1e-7  # measured 6e-9
    assert np.ptp(run.energy.total) < 1e-7  # measured 2e-9


# --- projectile -------------------------------------------------------------------------------------------------------
def test_projectile_with_spin(method, base):
    """The centre of mass on a parabola; a symmetric body precesses: R = exp(L t / I1) R0 exp((1 - I3 / I1) w3 t z)."""
    inertia, com, mass = np.array([0.03, 0.03, 0.012]), np.array([0.05, 0.1, -0.08]), 0.9
    m = la.Mechanism("projectile")
    m.add_body("body", mass=mass, com=com, inertia=inertia)
    m.add_joint("root", "free", parent="world", child="body")
    model = m.build()
    w, speed = np.array([2.0, -1.0, 9.0]), np.array([3.0, 1.0, 6.0])
    R0 = so3.exp([0.4, -0.9, 1.3])
    state = model.state(q=[*(base - R0 @ com), *quaternion.from_matrix(R0)], v=[*w, *(R0.T @ speed - np.cross(w, com))])
    run = simulate(method, model, state, 1e-3, 1.5)
    L = R0 @ (inertia * w)
    t = run.t[:, None]
    turn = so3.exp(t * L / inertia[0]) @ R0 @ so3.exp(t * [0, 0, (1 - inertia[2] / inertia[0]) * w[2]])
    center = base + t * speed - 0.5 * G * t**2 * [0, 0, 1]
    assert np.abs(run.poses("body")[:, :3, :3] - turn).max() < 1e-9  # measured 5e-11
    # the sum of many small moves rounds in the last digit of the position, at most half a digit each
    rounding = 0.5 * run.steps * np.spacing(np.abs(center).max())
    assert np.abs(la.center_of_mass(model, run.q) - center).max() < 1e-11 + rounding  # measured 7e-11 far, 1e-12 near
    assert np.abs(run.q[:, :3] - (center - turn @ com)).max() < 1e-9  # measured 7e-11
