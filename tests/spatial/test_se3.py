"""SE(3): accuracy of exp, log, adjoints and Jacobians, and the identities between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import expm

from leastaction.spatial import se3, so3
from leastaction.spatial._source import se3 as source

PI = np.pi
ANGLES = [
    0.0,
    1e-12,
    1e-8,
    1e-3,
    0.3,
    0.999,
    1.001,
    1.5,
    2.5,
    PI,
    PI + 1e-8,
    4.0,
    6.0,
    2 * PI - 1e-3,
    2 * PI + 1e-3,
    7.0,
]
twists = arrays(float, 6, elements=st.floats(-3.0, 3.0))


def near(a, b, tolerance):
    """Fail where a and b differ by more than the tolerance."""
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def poses(count, seed=0):
    return se3.exp(np.random.default_rng(seed).normal(size=(count, 6)))


@pytest.mark.parametrize("angle", ANGLES)
def test_exp_and_jacobians_are_exact_to_rounding(angle, axes, oracle):
    rng = np.random.default_rng(5)
    for u in axes[4:8]:
        V = np.concatenate([angle * u, rng.normal(size=3)])
        L = se3.dlog(V)
        assert oracle.difference(se3.exp(V), oracle.se3_exp(V)) < 2e-15  # measured 6e-16
        assert oracle.difference(se3.dexp(V), oracle.se3_dexp(V)) < 2e-15  # measured 3e-16
        error = oracle.difference(L, oracle.se3_dlog(V)) / np.abs(L).max() / np.linalg.cond(L)
        assert error < 5e-16  # measured 1e-16


def test_jacobians_when_the_linear_part_is_large(oracle):
    V = np.array([0.4, -0.8, 1.3, 2e3, -1e3, 5e3])
    scale = np.abs(V).max()
    assert oracle.difference(se3.dexp(V), oracle.se3_dexp(V)) < 2e-15 * scale  # measured 5e-17
    assert oracle.difference(se3.dlog(V), oracle.se3_dlog(V)) < 2e-15 * scale  # measured 6e-17


def test_exp_agrees_with_scipy():
    V = np.random.default_rng(0).normal(size=(30, 6))
    near(se3.exp(V), [expm(A) for A in se3.hat(V)], 5e-14)  # measured 3e-15
    np.testing.assert_array_equal(se3.vee(se3.hat(V)), V)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 1e-3, 1.0, 3.0, PI - 1e-8, PI, PI + 1e-8, 4.0])
def test_exp_of_log_returns_the_pose(angle, axes):
    p = np.random.default_rng(1).normal(size=axes.shape)
    T = se3.pose(so3.exp(angle * axes), p)
    V = se3.log(T)
    near(se3.exp(V), T, 1e-14)  # measured 1e-15
    assert np.linalg.norm(V[:, :3], axis=1).max() <= PI * (1 + 1e-15)  # measured 1e-16 above


@given(twists, twists)
def test_group_operations(a, b):
    A, B = se3.exp(a), se3.exp(b)
    near(se3.compose(A, B), A @ B, 1e-14)  # measured 9e-16
    near(se3.inverse(A) @ A, np.eye(4), 5e-14)  # measured 1e-15
    near(se3.act(A, b[:3]), (A @ np.append(b[:3], 1.0))[:3], 1e-14)  # measured 9e-16
    np.testing.assert_array_equal(se3.pose(se3.rotation(A), se3.position(A)), A)


@given(twists, twists)
def test_adjoint_is_conjugation(a, s):
    T = se3.exp(a)
    scale = 1.0 + np.abs(T).max() ** 2
    conjugated = se3.vee(T @ se3.hat(s) @ se3.inverse(T))
    near(se3.Ad(T) @ s, conjugated, 2e-14 * scale)  # measured 2e-15
    near(se3.Ad_inv(T) @ se3.Ad(T), np.eye(6), 1e-14 * scale)  # measured 7e-16
    # Ad(exp V) = exp(ad V)
    near(se3.Ad(T), expm(se3.ad(a)), 1e-13 * scale)  # measured 1e-14


@given(twists, twists, twists)
def test_brackets(a, b, f):
    commutator = se3.hat(a) @ se3.hat(b) - se3.hat(b) @ se3.hat(a)
    near(se3.ad(a) @ b, se3.vee(commutator), 2e-14)  # measured 2e-15
    near(se3.adD(f) @ b, se3.ad(b).T @ f, 2e-14)  # measured 2e-15
    np.testing.assert_array_equal(se3.adD(f), -se3.adD(f).T)


@given(twists)
def test_jacobians_invert_and_relate(V):
    J, L = se3.dexp(V), se3.dlog(V)
    kappa = np.linalg.cond(J)
    assert np.abs(J @ L - np.eye(6)).max() < 2e-15 * kappa  # measured 2e-16
    np.testing.assert_array_equal(se3.dexp_right(V), se3.dexp(-V))
    np.testing.assert_array_equal(se3.dlog_right(V), se3.dlog(-V))
    # left = Ad(exp V) right
    near(se3.Ad(se3.exp(V)) @ se3.dexp_right(V), J, 2e-13)  # measured 8e-16


@given(twists, twists, twists)
def test_wrench_maps_are_the_transposes(V, s, f):
    T = source.exp(tuple(V))
    M = se3.exp(V)
    pairs = [
        (source.Ad_dual(T, tuple(f)), se3.Ad(M).T @ f),
        (source.Ad_inv_dual(T, tuple(f)), se3.Ad_inv(M).T @ f),
        (source.dexp_dual(tuple(V), tuple(f)), se3.dexp(V).T @ f),
        (source.dexp_inv_dual(tuple(V), tuple(f)), se3.dlog(V).T @ f),
        (source.dexp_right_dual(tuple(V), tuple(f)), se3.dexp_right(V).T @ f),
        (source.dexp_right_inv_dual(tuple(V), tuple(f)), se3.dlog_right(V).T @ f),
    ]
    for ours, expected in pairs:
        near(ours, expected, 1e-14 * (1.0 + np.abs(expected).max()))  # measured 5e-16


def test_dexp_is_the_derivative_of_exp():
    V, h = np.array([0.7, -1.1, 0.4, 0.3, 1.2, -0.8]), 1e-5
    T = se3.exp(V)
    for j, e in enumerate(np.eye(6)):
        dT = (se3.exp(V + h * e) - se3.exp(V - h * e)) / (2 * h)
        near(se3.vee(dT @ se3.inverse(T)), se3.dexp(V)[:, j], 1e-9)  # measured 2e-11
        near(se3.vee(se3.inverse(T) @ dT), se3.dexp_right(V)[:, j], 1e-9)  # measured 2e-11


def test_dlog_is_the_closed_form_of_the_bernoulli_series():
    # Lee et al. 2016, (13): dlog_V = 1 - A/2 + c2 A^2 + c4 A^4 with A = ad(V)
    V = np.array([0.9, -0.2, 1.1, 0.3, -2.0, 0.5])
    A, th = se3.ad(V), np.linalg.norm(V[:3])
    c2 = 2 / th**2 + (th + 3 * np.sin(th)) / (4 * th * (np.cos(th) - 1))
    c4 = 1 / th**4 + (th + np.sin(th)) / (4 * th**3 * (np.cos(th) - 1))
    expected = np.eye(6) - A / 2 + c2 * A @ A + c4 * A @ A @ A @ A
    near(se3.dlog(V), expected, 2e-14)  # measured 3e-16


@given(twists, twists)
def test_retract_and_local(a, b):
    T0, T1 = se3.exp(a), se3.exp(b)
    scale = 1.0 + np.abs(T0).max() + np.abs(T1).max()
    near(se3.retract(T0, se3.local(T0, T1)), T1, 1e-14 * scale)  # measured 1e-15
    near(se3.retract(T0, b), T0 @ T1, 1e-14)  # measured 9e-16


def test_local_of_a_pose_with_itself_is_zero():
    T = poses(20)
    assert np.abs(se3.local(T, T)).max() < 2e-15  # measured 0
