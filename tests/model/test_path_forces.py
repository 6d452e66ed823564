"""Springs and cables along paths, and penalty contact: derivatives, balance, energy, files, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.model.force_base import Force
from leastaction.model.forces import force_from_dict
from leastaction.model.path_forces import Cable, PathSpring
from leastaction.model.penalty import PenaltyContact
from leastaction.spatial import se3

STEP = 1e-6
ENDS = [("a", (0.1, 0.2, 0.3)), ("world", (2.0, 0.1, 0.2)), ("b", (-0.3, 0.1, 0.2)), ("a", (0.4, 0.0, 0.1))]
POINTS = [[0.1, 0.2, -2.0], [0.3, -0.1, -1.5], [0.0, 0.0, 5.0]]

FORCES: dict[str, Force] = {
    "path": PathSpring(ENDS, lambda l, v: (l**2 + 0.3 * v + 0.2 * l * v, 2 * l + 0.2 * v, 0.3 + 0.2 * l)),
    "hard path": PathSpring(ENDS[:3], lambda l, v: (l**3, 3 * l**2, 0.0), lambda l: l**4 / 4),
    "cable": Cable(ENDS, stiffness=7.0, damping=0.3, rest_length=0.5),
    "spring cable": Cable(ENDS[1:3], stiffness=7.0, rest_length=0.5),
    "slack cable": Cable(ENDS[:3], stiffness=7.0, damping=1.0, rest_length=50.0),
    "sliding": PenaltyContact("a", POINTS, stiffness=30.0, damping=0.2, friction=0.4, sticking=1e4, normal=(0.1, 0, 1)),
    "sticking": PenaltyContact("a", POINTS, stiffness=30.0, damping=0.2, friction=1e3, sticking=3.0),
    "smooth": PenaltyContact("a", POINTS, stiffness=30.0, height=0.3),
}


def state(force: Force, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Poses and twists in general position; those of the world are at rest."""
    rng = np.random.default_rng(seed)
    poses = np.array([se3.exp(rng.uniform(-1, 1, 6)) for _ in force.bodies])
    twists = rng.uniform(-1, 1, (len(force.bodies), 6))
    for i, body in enumerate(force.bodies):
        if body == "world":
            poses[i], twists[i] = np.eye(4), 0
    return poses, twists


def differences(f, n: int) -> np.ndarray:
    """Central differences of a function of n numbers at zero."""
    return np.array([(f(STEP * d) - f(-STEP * d)).ravel() / (2 * STEP) for d in np.eye(n)]).T


def moved(poses: np.ndarray, xi: np.ndarray) -> np.ndarray:
    return poses @ se3.exp(xi.reshape(-1, 6))


@pytest.mark.parametrize("what", FORCES)
def test_derivatives_against_central_differences(what):
    force, n = FORCES[what], 6 * len(FORCES[what].bodies)
    poses, twists = state(force)
    K, D = force.derivatives(0.3, poses, twists)
    expected_K = differences(lambda xi: force.wrenches(0.3, moved(poses, xi), twists), n)
    expected_D = differences(lambda xi: force.wrenches(0.3, poses, twists + xi.reshape(-1, 6)), n)
    assert K.any() != (what == "slack cable")
    np.testing.assert_allclose(K, expected_K, rtol=0, atol=1e-7 * max(1.0, np.abs(K).max()))  # measured 2e-9
    np.testing.assert_allclose(D, expected_D, rtol=0, atol=1e-7 * max(1.0, np.abs(D).max()))  # measured 6e-10


@pytest.mark.parametrize("what", [key for key, force in FORCES.items() if force.conservative])
def test_conservative_wrenches_are_minus_the_derivative_of_the_energy(what):
    force = FORCES[what]
    poses, twists = state(force)
    slope = differences(lambda xi: np.array(force.energy(0.0, moved(poses, xi))), 6 * len(force.bodies)).ravel()
    found = force.wrenches(0.0, poses, twists).ravel()
    np.testing.assert_allclose(found, -slope, rtol=0, atol=1e-8 * np.abs(slope).max())  # measured 9e-10


@pytest.mark.parametrize("what", ["path", "cable"])
def test_action_is_reaction(what):
    force = FORCES[what]
    poses, twists = state(force)
    total = sum(np.linalg.inv(se3.Ad(T)).T @ w for T, w in zip(poses, force.wrenches(0.0, poses, twists), strict=True))
    np.testing.assert_allclose(total, 0, rtol=0, atol=1e-13)  # measured 2e-14


def test_which_forces_are_conservative():
    assert {key for key, force in FORCES.items() if force.conservative} == {"hard path", "spring cable", "smooth"}


@pytest.mark.parametrize("what", ["sliding", "sticking"])
def test_the_ground_pushes_and_friction_brakes(what):
    force = FORCES[what]
    poses, twists = np.eye(4)[None], np.array([[0.0, 0.0, 0.0, 1.0, 0.0, -0.5]])
    f = force.wrenches(0.0, poses, twists)[0, 3:]
    assert f[2] > 0
    assert f[0] < 0
    if what == "sliding":
        by = force.friction_derivative(0.0, poses, twists)
        more = PenaltyContact("a", POINTS, stiffness=30.0, damping=0.2, friction=0.5, sticking=1e4, normal=(0.1, 0, 1))
        change = more.wrenches(0.0, poses, twists) - force.wrenches(0.0, poses, twists)
        np.testing.assert_allclose(by, change / 0.1, rtol=1e-12, atol=1e-12)  # linear in the coefficient


@pytest.mark.parametrize("what", ["cable", "slack cable", "sliding", "smooth"])
def test_dictionaries_round_trip_to_the_last_bit(what):
    force = FORCES[what]
    made = force_from_dict(force.to_dict())
    assert type(made) is type(force)
    assert made.to_dict() == force.to_dict()
    poses, twists = state(force)
    assert np.array_equal(made.wrenches(0.0, poses, twists), force.wrenches(0.0, poses, twists))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cable(ENDS, stiffness=1.0, rest_length=0.0), "length zero"),
        (lambda: Cable([("a", (0, 0, 0)), ("a", (0, 0, 1))], stiffness=1.0, rest_length=1.0), "two bodies"),
        (lambda: Cable([*ENDS, ENDS[-1]], stiffness=1.0, rest_length=1.0, name="c"), "'c'.*same point of 'a'"),
        (lambda: Cable(3, stiffness=1.0, rest_length=1.0), "pairs of a body and a point"),
        (lambda: PathSpring(ENDS, 3.0), "must be functions"),
        (lambda: PenaltyContact("a", (0, 0), stiffness=1.0), "points must be"),
        (lambda: PenaltyContact("a", stiffness=-1.0), "stiffness"),
        (lambda: FORCES["path"].to_dict(), "cannot be written"),
    ],
)
def test_bad_forces(make, message):
    with pytest.raises(ModelError, match=message):
        make()


def test_points_that_meet_are_named():
    cable = Cable([("a", (0, 0, 0)), ("b", (0, 0, 0))], stiffness=1.0, rest_length=0.1, name="rope")
    with pytest.raises(ModelError, match=r"'rope'.*points 0 and 1.*meet"):
        cable.wrenches(0.0, np.array([np.eye(4)] * 2), np.zeros((2, 6)))
