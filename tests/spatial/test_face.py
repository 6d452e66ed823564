"""The array face: batch shapes, one result for a batch and for its entries, refusal of bad input, light import."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.spatial import quaternion, se3, so3

RNG = np.random.default_rng(11)
W = RNG.normal(size=(4, 1, 3)) * np.array([0.0, 1e-9, 1.0, 2.0])[:, None, None]
U = RNG.normal(size=(5, 3))
V = RNG.normal(size=(4, 1, 6))
Q = quaternion.normalize(RNG.normal(size=(5, 4)))
R = quaternion.to_matrix(Q)
T = se3.exp(RNG.normal(size=(5, 6)))

# function, its arguments, how many trailing axes of each make one item, the trailing shape of the result
CASES = [
    (so3.hat, (W,), (1,), (3, 3)), (so3.vee, (R,), (2,), (3,)),
    (so3.exp, (W,), (1,), (3, 3)), (so3.log, (R,), (2,), (3,)),
    (so3.dexp, (W,), (1,), (3, 3)), (so3.dlog, (W,), (1,), (3, 3)),
    (so3.dexp_right, (W,), (1,), (3, 3)), (so3.dlog_right, (W,), (1,), (3, 3)),
    (so3.dexp_derivative, (W, U), (1, 1), (3, 3)), (so3.dlog_derivative, (W, U), (1, 1), (3, 3)),
    (so3.mrp_dexp, (W,), (1,), (3, 3)), (so3.mrp_dlog, (W,), (1,), (3, 3)),
    (so3.retract, (R, W), (2, 1), (3, 3)), (so3.local, (R, R), (2, 2), (3,)),
    (quaternion.multiply, (Q, Q), (1, 1), (4,)), (quaternion.conjugate, (Q,), (1,), (4,)),
    (quaternion.normalize, (Q,), (1,), (4,)), (quaternion.canonical, (Q,), (1,), (4,)),
    (quaternion.rotate, (Q, W), (1, 1), (3,)), (quaternion.to_matrix, (Q,), (1,), (3, 3)),
    (quaternion.from_matrix, (R,), (2,), (4,)), (quaternion.exp, (W,), (1,), (4,)),
    (quaternion.log, (Q,), (1,), (3,)), (quaternion.from_mrp, (W,), (1,), (4,)),
    (quaternion.to_mrp, (Q,), (1,), (3,)), (quaternion.from_xyzw, (Q,), (1,), (4,)),
    (quaternion.to_xyzw, (Q,), (1,), (4,)), (quaternion.retract, (Q, W), (1, 1), (4,)),
    (quaternion.local, (Q, Q), (1, 1), (3,)),
    (se3.pose, (R, W), (2, 1), (4, 4)), (se3.rotation, (T,), (2,), (3, 3)), (se3.position, (T,), (2,), (3,)),
    (se3.compose, (T, T), (2, 2), (4, 4)), (se3.inverse, (T,), (2,), (4, 4)), (se3.act, (T, W), (2, 1), (3,)),
    (se3.hat, (V,), (1,), (4, 4)), (se3.vee, (T,), (2,), (6,)), (se3.exp, (V,), (1,), (4, 4)),
    (se3.log, (T,), (2,), (6,)), (se3.Ad, (T,), (2,), (6, 6)), (se3.Ad_inv, (T,), (2,), (6, 6)),
    (se3.ad, (V,), (1,), (6, 6)), (se3.adD, (V,), (1,), (6, 6)), (se3.dexp, (V,), (1,), (6, 6)),
    (se3.dlog, (V,), (1,), (6, 6)), (se3.dexp_right, (V,), (1,), (6, 6)), (se3.dlog_right, (V,), (1,), (6, 6)),
    (se3.retract, (T, V), (2, 1), (4, 4)), (se3.local, (T, T), (2, 2), (6,)),
]  # fmt: skip
NAMES = [f"{case[0].__module__.rsplit('.', 1)[1]}.{case[0].__name__}" for case in CASES]


def near(a, b, tolerance):
    """Fail where a and b differ by more than the tolerance."""
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("function", "arguments", "axes", "tail"), CASES, ids=NAMES)
def test_a_batch_equals_its_entries(function, arguments, axes, tail):
    result = function(*arguments)
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - k] for x, k in zip(arguments, axes, strict=True)))
    assert result.shape == (*batch, *tail)
    wide = [np.broadcast_to(x, (*batch, *x.shape[x.ndim - k :])) for x, k in zip(arguments, axes, strict=True)]
    for index in np.ndindex(*batch):
        one = function(*(x[index] for x in wide))
        assert one.shape == tail
        # NumPy's array and scalar sine may differ in the last bit
        near(result[index], one, 1e-15 * (1.0 + np.abs(one).max()))  # measured 0


@pytest.mark.parametrize(("function", "arguments", "axes", "tail"), CASES, ids=NAMES)
def test_an_empty_batch_gives_an_empty_result(function, arguments, axes, tail):
    empty = [np.zeros((0, *x.shape[x.ndim - k :])) for x, k in zip(arguments, axes, strict=True)]
    assert function(*empty).shape == (0, *tail)


@pytest.mark.parametrize(("function", "arguments", "axes", "tail"), CASES, ids=NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_numbers_that_are_not_finite_are_refused(function, arguments, axes, tail, bad):
    for k in range(len(arguments)):
        spoiled = [x.copy() for x in arguments]
        spoiled[k].flat[-2] = bad
        with pytest.raises(ModelError, match="NaN, infinity or a number beyond"):
            function(*spoiled)


@pytest.mark.parametrize(("function", "arguments", "axes", "tail"), CASES, ids=NAMES)
def test_a_wrong_shape_is_refused(function, arguments, axes, tail):
    for k in range(len(arguments)):
        wrong = list(arguments)
        wrong[k] = wrong[k][..., :-1]
        with pytest.raises(ModelError, match="expected"):
            function(*wrong)
        wrong[k] = 1.0
        with pytest.raises(ModelError, match="expected"):
            function(*wrong)


def test_text_is_refused():
    with pytest.raises(ModelError, match="w: not an array of real numbers"):
        so3.exp(["a", "b", "c"])


@pytest.mark.parametrize(
    ("function", "argument", "reason"),
    [
        (so3.log, 1.1 * np.eye(3), "not a rotation matrix"),
        (so3.log, np.diag([1.0, 1.0, -1.0]), "a reflection"),
        (quaternion.from_matrix, np.ones((3, 3)), "not a rotation matrix"),
        (quaternion.to_matrix, [2.0, 0, 0, 0], "not a unit quaternion"),
        (quaternion.log, np.zeros(4), "not a unit quaternion"),
        (se3.log, np.diag([1.0, 1.0, 1.0, 2.0]), "last row"),
        (se3.Ad, np.diag([2.0, 1.0, 1.0, 1.0]), "not a rotation matrix"),
    ],
)
def test_what_is_not_a_rotation_is_refused(function, argument, reason):
    with pytest.raises(ModelError, match=reason):
        function(argument)


def test_lists_and_integers_are_accepted():
    np.testing.assert_array_equal(so3.exp([0, 0, 0]), np.eye(3))
    np.testing.assert_array_equal(se3.log(np.eye(4, dtype=int)), np.zeros(6))


def test_inputs_are_left_alone_and_results_are_fresh():
    q = np.array([1.0, 0, 0, 0])
    quaternion.to_xyzw(q)[:] = 9.0
    quaternion.normalize(q)[:] = 9.0
    np.testing.assert_array_equal(q, [1, 0, 0, 0])


def test_import_touches_neither_numba_nor_scipy():
    code = "import sys, leastaction.spatial; print(sorted({'numba', 'scipy', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
