"""SO(3): accuracy of exp, log and the Jacobians, and the identities between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm

from leastaction.spatial import quaternion, so3

PI = np.pi
ANGLES = [
    0.0, 1e-300, 1e-12, 1e-8, 9.9e-5, 1.01e-4, 1e-3, 0.1, 0.5, 0.999, 1.0, 1.001, 1.3, 2.0, 3.0,
    PI - 1e-8, PI, PI + 1e-8, 4.0, 5.0, 6.0, 2 * PI - 1e-3, 2 * PI - 1e-6, 2 * PI + 1e-3, 7.0,
]  # fmt: skip

vectors = arrays(float, 3, elements=st.floats(-3.0, 3.0))


def near(a, b, tolerance):
    """Fail where a and b differ by more than the tolerance."""
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def central(function, x, h=1e-5):
    """Derivative by central differences, columns by the entries of x."""
    return np.stack([(function(x + h * e) - function(x - h * e)) / (2 * h) for e in np.eye(len(x))], axis=-1)


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_and_jacobians_are_exact_to_rounding(angle, axes, oracle):
    for u in axes[3:9]:
        w = angle * u
        L = so3.dlog(w)
        assert oracle.difference(so3.exp(w), oracle.so3_exp(w)) < 2e-15  # measured 8e-16
        assert oracle.difference(so3.dexp(w), oracle.so3_dexp(w)) < 1e-15  # measured 2e-16
        # relative to the condition number, which is 6e6 at 2 pi - 1e-6
        error = oracle.difference(L, oracle.so3_dlog(w)) / np.abs(L).max() / np.linalg.cond(L)
        assert error < 5e-16  # measured 2e-16


def test_exp_agrees_with_scipy():
    w = np.random.default_rng(0).normal(size=(50, 3))
    near(so3.exp(w), [expm(A) for A in so3.hat(w)], 2e-14)  # measured 3e-15


@pytest.mark.parametrize("offset", [0.0, 1e-16, 1e-15, 1e-12, 1e-8, 1e-6, 1e-4, 0.01])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_exp_of_log_returns_the_rotation_at_and_near_pi(offset, sign, axes):
    R = so3.exp((PI + sign * offset) * axes)
    w = so3.log(R)
    near(so3.exp(w), R, 1e-14)  # measured 1e-15
    assert np.linalg.norm(w, axis=1).max() <= PI * (1 + 1e-15)  # measured 1e-16 above


def test_log_of_exact_half_turns():
    # R = 2 u u^T - 1 is symmetric, so the scalar part of its quaternion is exactly zero; the sign of the axis is
    # such that the first nonzero component is positive
    np.testing.assert_array_equal(so3.log(np.diag([1.0, -1.0, -1.0])), [PI, 0, 0])
    np.testing.assert_array_equal(so3.log(np.diag([-1.0, 1.0, -1.0])), [0, PI, 0])
    np.testing.assert_array_equal(so3.log(np.diag([-1.0, -1.0, 1.0])), [0, 0, PI])
    u = np.array([-0.6, 0.0, 0.8])
    w = so3.log(2 * np.outer(u, u) - np.eye(3))
    near(w, -PI * u, 1e-15)  # measured 4e-16


@pytest.mark.parametrize("angle", [1e-150, 1e-12, 1e-9, 1e-8, 1e-4, 0.1, 1.0, 3.0, PI - 1e-3])
def test_log_of_exp_returns_the_vector(angle, axes):
    w = angle * axes
    near(so3.log(so3.exp(w)), w, 3e-15 * angle)  # measured 3e-16


def test_log_is_continuous_across_the_branches_of_the_quaternion():
    # around a cube of axes the largest component of the quaternion changes
    rng = np.random.default_rng(3)
    w = rng.normal(size=(4000, 3))
    w *= (rng.uniform(0, PI - 1e-6, size=4000) / np.linalg.norm(w, axis=1))[:, None]
    assert np.abs(so3.log(so3.exp(w)) - w).max() < 5e-15  # measured 9e-16
    assert np.abs(so3.exp(so3.log(so3.exp(w))) - so3.exp(w)).max() < 1e-14  # measured 1e-15


@given(vectors)
def test_rotations_are_orthonormal(w):
    R = so3.exp(w)
    assert np.abs(R @ R.T - np.eye(3)).max() < 3e-15  # measured 1e-15
    assert abs(np.linalg.det(R) - 1.0) < 3e-15  # measured 1e-15


@given(vectors)
def test_jacobians_invert_and_transpose(w):
    J, L = so3.dexp(w), so3.dlog(w)
    kappa = np.linalg.cond(J)
    assert np.abs(J @ L - np.eye(3)).max() < 2e-15 * kappa  # measured 3e-16
    np.testing.assert_array_equal(so3.dexp_right(w), so3.dexp(-w))
    near(so3.dexp_right(w), J.T, 1e-15)  # measured 0
    near(so3.dlog_right(w), L.T, 1e-15 * kappa)  # measured 0
    # the two trivialisations differ by the rotation
    near(so3.exp(w) @ so3.dexp_right(w), J, 5e-15)  # measured 4e-16


@given(vectors, vectors)
def test_hat_and_vee(a, b):
    near(so3.hat(a) @ b, np.cross(a, b), 1e-14)  # measured 2e-15
    np.testing.assert_array_equal(so3.vee(so3.hat(a)), a)


def test_dexp_is_the_derivative_of_exp():
    w = np.array([0.7, -1.1, 0.4])
    dR = central(so3.exp, w)
    for j in range(3):
        near(so3.vee(dR[..., j] @ so3.exp(w).T), so3.dexp(w)[:, j], 1e-9)  # measured 2e-11
        near(so3.vee(so3.exp(w).T @ dR[..., j]), so3.dexp_right(w)[:, j], 1e-9)  # measured 2e-11


@pytest.mark.parametrize("angle", [0.0, 1e-6, 0.3, 0.999, 1.001, 2.0, 3.1, PI, 4.0, 6.0])
def test_derivatives_of_the_jacobians(angle, axes, oracle):
    # the lower left block of the 6x6 Jacobian at (w; e_j) is the derivative of the 3x3 one by w_j
    for u in axes[5:9]:
        w, x = angle * u, np.array([0.3, -1.2, 0.7])
        for ours, exact in ((so3.dexp_derivative, oracle.se3_dexp), (so3.dlog_derivative, oracle.se3_dlog)):
            blocks = [exact(np.concatenate([w, e]))[3:, :3].astype(float) for e in np.eye(3)]
            expected = np.stack([B @ x for B in blocks], axis=-1)
            error = np.abs(ours(w, x) - expected).max()
            assert error < 5e-15 * max(1.0, np.linalg.cond(so3.dlog(w)) ** 2)  # measured 3e-16


def test_derivatives_of_the_jacobians_by_differences():
    w, x = np.array([0.9, 0.2, -1.4]), np.array([0.3, -1.2, 0.7])
    near(so3.dexp_derivative(w, x), central(lambda y: so3.dexp(y) @ x, w), 1e-9)  # measured 2e-11
    near(so3.dlog_derivative(w, x), central(lambda y: so3.dlog(y) @ x, w), 1e-9)  # measured 2e-11


@given(vectors)
def test_modified_rodrigues_jacobians(z):
    near(so3.mrp_dexp(z) @ so3.mrp_dlog(z), np.eye(3), 5e-15)  # measured 7e-16
    R = quaternion.to_matrix(quaternion.from_mrp(z))
    dR = central(lambda y: quaternion.to_matrix(quaternion.from_mrp(y)), z)
    for j in range(3):
        near(so3.vee(dR[..., j] @ R.T), so3.mrp_dexp(z)[:, j], 1e-9)  # measured 3e-11


@given(vectors, vectors)
def test_retract_and_local(a, b):
    R0, R1 = so3.exp(a), so3.exp(b)
    near(so3.retract(R0, so3.local(R0, R1)), R1, 1e-14)  # measured 9e-16
    near(so3.retract(R0, b), R0 @ R1, 1e-15)  # measured 1e-16
