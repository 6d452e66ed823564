"""Constraints of the user: the check of their derivatives finds every kind of mistake."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.model.constraints import Constraint
from leastaction.spatial import se3, so3

ARM = np.array([0.1, 0.2, 0.3])


def point(poses):
    return poses[0, :3, 3] + poses[0, :3, :3] @ ARM


def point_jacobian(poses):
    return poses[0, :3, :3] @ np.hstack([-so3.hat(ARM), np.eye(3)])


def on_a_sphere(**options) -> Constraint:
    """|point|^2 = 1 for a point of one body, with all derivatives."""

    def jacobian(poses):
        return 2 * point(poses)[None] @ point_jacobian(poses)

    def bias(poses, twists):
        w, u = twists[0, :3], twists[0, 3:] + np.cross(twists[0, :3], ARM)
        velocity, acceleration = poses[0, :3, :3] @ u, poses[0, :3, :3] @ np.cross(w, u)
        return np.array([2 * velocity @ velocity + 2 * point(poses) @ acceleration])

    def hessian(poses, multipliers):
        R, J = poses[0, :3, :3], np.hstack([-so3.hat(ARM), np.eye(3)])
        turning = np.zeros((6, 6))
        turning[:, :3] = J.T @ so3.hat(R.T @ point(poses))
        return 2 * multipliers[0] * (J.T @ J + turning)

    functions = {"velocity_bias": bias, "hessian": hessian, **options}
    return Constraint(
        "a",
        lambda p: np.array([point(p) @ point(p) - 1]),
        functions.pop("jacobian", jacobian),
        name="leash",
        **functions,
    )


def skate(**options) -> Constraint:
    """No velocity along the body's own y, seen from another body."""

    def function(poses, twists):
        return np.array([poses[0, :3, 1] @ poses[1, :3, :3].T[0] * twists[0, 4] ** 2])

    def jacobian(poses, twists):
        out = np.zeros((1, 12))
        out[0, 4] = 2 * twists[0, 4] * (poses[0, :3, 1] @ poses[1, :3, :3].T[0])
        return out

    return Constraint(("a", "b"), function, jacobian, kind="velocity", **options)


def test_right_derivatives_pass():
    on_a_sphere().check()
    on_a_sphere(kind="inequality").check()
    skate().check()


def test_check_takes_the_users_state():
    rng = np.random.default_rng(4)
    on_a_sphere().check(np.array([se3.exp(rng.normal(size=6))]), rng.normal(size=(1, 6)))


@pytest.mark.parametrize("what", ["jacobian", "velocity_bias", "hessian"])
def test_a_wrong_entry_is_named(what):
    right = getattr(on_a_sphere(), what)

    def wrong(*arguments):
        out = np.array(right(*arguments))
        out.flat[-1] += 1e-3
        return out

    entry = {"jacobian": r"\[0, 5\]", "velocity_bias": r"\[0\]", "hessian": r"\[5, 5\]"}[what]
    with pytest.raises(ModelError, match=f"Constraint 'leash': {what}{entry} is .*central differences give"):
        on_a_sphere(**{what: wrong}).check()


def test_a_wrong_jacobian_by_the_twists_is_named():
    bad = Constraint(("a", "b"), skate().function, lambda p, v: np.zeros((1, 12)), kind="velocity", name="skate")
    with pytest.raises(ModelError, match=r"Constraint 'skate': jacobian\[0, 4\]"):
        bad.check()


def test_the_bias_of_a_velocity_constraint_is_its_rate_at_constant_twists():
    def bias(poses, twists):
        w = [poses[i, :3, :3] @ twists[i, :3] for i in range(2)]
        y, x = poses[0, :3, 1], poses[1, :3, :3].T[0]
        # rows of the transposed rotation are not vectors of the body, so by components
        rate_x = (poses[1, :3, :3] @ so3.hat(twists[1, :3])).T[0]
        return np.array([(np.cross(w[0], y) @ x + y @ rate_x) * twists[0, 4] ** 2])

    skate(velocity_bias=bias).check()


def test_results_are_checked():
    bad = Constraint("a", lambda p: np.zeros(2), lambda p: np.full((1, 6), np.nan), name="c")
    with pytest.raises(ModelError, match=r"Constraint 'c': function.*shape \(1,\)"):
        bad.value(np.eye(4)[None])
    with pytest.raises(ModelError, match=r"Constraint 'c': jacobian.*finite"):
        bad.matrix(np.eye(4)[None])
    with pytest.raises(ModelError, match="velocity_bias is needed"):
        bad.bias(np.eye(4)[None], np.zeros((1, 6)))
    with pytest.raises(ModelError, match="needs the twists"):
        skate().value(np.array([np.eye(4)] * 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "soft"}, "unknown kind 'soft'; the kinds are equality, velocity, inequality"),
        ({"size": 0}, "size"),
        ({"size": 1.5}, "size"),
        ({"bodies": ()}, "bodies"),
        ({"bodies": ("a", "a")}, "different bodies"),
        ({"bodies": "world"}, "bodies"),
        ({"bodies": (3,)}, "name"),
        ({"function": 3}, "function must be a function"),
        ({"jacobian": None}, "jacobian must be a function"),
        ({"hessian": 3}, "hessian must be a function"),
        ({"name": ""}, "name"),
    ],
)
def test_bad_constraints(options, message):
    with pytest.raises(ModelError, match=message):
        Constraint(**{"bodies": "a", "function": abs, "jacobian": abs, **options})
