"""Small mechanisms against textbook formulas."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction import models
from leastaction.spatial import quaternion

G = 9.81


def turn(axis, angle):
    return quaternion.to_matrix(quaternion.exp(angle * np.asarray(axis, dtype=float)))


def test_chain_is_the_chain_of_the_speed_figures():
    m = models.chain(6)
    L = 0.2
    expected = np.diag([L * L + 0.03**2, L * L + 0.04**2, 0.03**2 + 0.04**2]) / 12
    for i in range(1, 7):
        body, joint = m.bodies[f"link{i}"], m.joints[f"joint{i}"]
        assert body.mass == 1.0
        np.testing.assert_array_equal(body.com, [0, 0, -L / 2])
        np.testing.assert_allclose(body.inertia, expected, rtol=0, atol=1e-18)  # measured 5e-19
        np.testing.assert_array_equal(joint.axis, [0, 1, 0] if i % 2 else [1, 0, 0])
        assert joint.parent == ("world" if i == 1 else f"link{i - 1}")
        np.testing.assert_array_equal(joint.child_frame, np.eye(4))


@pytest.mark.parametrize("kind", ["revolute", "spherical"])
def test_chain_moves_as_its_rotations_say(kind):
    n, L = 5, 0.3
    model = models.chain(n, kind, length=L, mass=2.0).build()
    angles = np.random.default_rng(5).uniform(-1, 1, n)
    # the spherical chain in the same position
    axes = [[0, 1, 0] if i % 2 == 0 else [1, 0, 0] for i in range(n)]
    quats = [quaternion.exp(a * np.array(axis, float)) for a, axis in zip(angles, axes, strict=True)]
    q = angles if kind == "revolute" else np.concatenate(quats)
    # links one after the other
    R, p, height = np.eye(3), np.zeros(3), 0.0
    for axis, angle in zip(axes, angles, strict=True):
        R = R @ turn(axis, angle)
        height += (p + R @ [0, 0, -L / 2])[2]
        p = p + R @ [0, 0, -L]
    assert la.energy(model, q).potential == pytest.approx(2.0 * G * height, rel=1e-13)  # measured 2e-16


def test_pendulum_is_a_point_on_a_massless_rod():
    model = models.pendulum(length=0.7, mass=1.3).build()
    q = np.array([0.4])
    assert la.mass_matrix(model, q)[0, 0] == pytest.approx(1.3 * 0.49, rel=1e-14)  # measured 2e-16
    assert la.forward_dynamics(model, q, [0.0])[0] == pytest.approx(-G / 0.7 * np.sin(0.4), rel=1e-14)  # measured 0


def test_double_pendulum_has_the_textbook_mass_matrix():
    (l1, l2), (m1, m2) = (0.8, 0.5), (1.5, 0.7)
    model = models.double_pendulum((l1, l2), (m1, m2)).build()
    q = np.array([0.3, -1.1])
    c = np.cos(q[1])
    M12 = m2 * (l2**2 + l1 * l2 * c)
    M = [[m1 * l1**2 + m2 * (l1**2 + l2**2 + 2 * l1 * l2 * c), M12], [M12, m2 * l2**2]]
    np.testing.assert_allclose(la.mass_matrix(model, q), M, rtol=1e-14)  # measured 4e-16
    # gravity
    g2 = m2 * G * l2 * np.sin(q.sum())
    tau = [(m1 + m2) * G * l1 * np.sin(q[0]) + g2, g2]
    np.testing.assert_allclose(la.gravity_forces(model, q), tau, rtol=1e-13)  # measured 4e-16


def test_spherical_pendulum_has_its_equivalent_length():
    length, radius, mass = 0.9, 0.1, 2.0
    model = models.spherical_pendulum(length, mass, radius).build()
    # swinging in a plane: q'' = -g sin(q) / equivalent length
    q = quaternion.exp(np.array([0.5, 0.0, 0.0]))
    a = la.forward_dynamics(model, q, np.zeros(3))
    equivalent = length + 2 * radius**2 / (5 * length)
    np.testing.assert_allclose(a, [-G / equivalent * np.sin(0.5), 0, 0], rtol=0, atol=1e-14)  # measured 2e-15


def test_cart_pole_has_the_textbook_mass_matrix():
    model = models.cart_pole().build()
    q = np.array([0.2, 0.6])
    half, m = 0.5, 0.1
    M12 = m * half * np.cos(0.6)
    np.testing.assert_allclose(
        la.mass_matrix(model, q), [[1.1, M12], [M12, 4 / 3 * m * half**2]], rtol=1e-14
    )  # measured 3e-16
    # upright, and falling away from it
    np.testing.assert_allclose(
        la.gravity_forces(model, q), [0, -m * G * half * np.sin(0.6)], rtol=0, atol=1e-15
    )  # measured 0
    np.testing.assert_array_equal(model.joint("slider").joint.limits, [[-2.4, 2.4]])


def test_spinning_top_starts_as_the_benchmark():
    model = models.spinning_top().build()
    h = np.sqrt(0.5)
    x = model.state(q={"tip": (h, -h, 0, 0)}, v={"tip": (0, 4.61538, 150)})
    # the centre lies at y = 1, and turns about y and the vertical
    np.testing.assert_allclose(la.center_of_mass(model, x.q), [0, 1, 0], rtol=0, atol=1e-15)  # measured 5e-32
    omega = la.jacobian(model, x.q, "top")[:3] @ x.v
    np.testing.assert_allclose(omega, [0, 150, -4.61538], rtol=0, atol=1e-12)  # measured 0
    # kinetic energy about the fixed point
    across = 0.234375 + 15.0
    expected = 0.5 * (0.46875 * 150**2 + across * 4.61538**2)
    assert la.energy(model, x.q, x.v).kinetic == pytest.approx(expected, rel=1e-14)  # measured 0


@pytest.mark.parametrize(
    "inertia",
    [
        (0.01, 0.02, 0.025),
        [[0.03, 0.005, 0.0], [0.005, 0.02, -0.004], [0.0, -0.004, 0.028]],
        (0.03, 0.005, 0.0, 0.02, -0.004, 0.028),
    ],
)
def test_free_body_is_drawn_as_the_ellipsoid_of_its_inertia(inertia):
    body = models.free_body(mass=1.7, inertia=inertia).bodies["body"]
    drawn = body.shapes[0].mass_properties(mass=1.7)
    np.testing.assert_allclose(drawn.inertia, body.inertia, rtol=0, atol=1e-16)  # measured 3e-17
    np.testing.assert_array_equal(body.com, 0)


def test_flat_free_body_is_drawn_and_built():
    # a thin plate: the largest moment is the sum of the others
    model = models.free_body(inertia=(0.01, 0.02, 0.03)).build()
    np.testing.assert_allclose(
        la.mass_matrix(model, None), np.diag([0.01, 0.02, 0.03, 1, 1, 1]), rtol=0, atol=1e-16
    )  # measured 0
