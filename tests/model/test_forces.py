"""Forces: derivatives against central differences, action and reaction, power balance, energy."""

from __future__ import annotations

import numpy as np
import pytest

from leastaction.errors import ModelError
from leastaction.model.forces import Force, PointForce, PointSpring, Potential, Wrench, force_from_dict
from leastaction.spatial import se3, so3

STEP = 1e-6


def attraction(name: str | None = None, hessian: bool = True) -> Potential:
    """V = ln |xb - xa|^2 between the link origins, with its derivatives by hand."""

    def energy(poses):
        r = poses[1, :3, 3] - poses[0, :3, 3]
        return np.log(r @ r)

    def world(poses):
        """Gradient (3,) and Hessian (3, 3) by r."""
        r = poses[1, :3, 3] - poses[0, :3, 3]
        s = r @ r
        return 2 * r / s, 2 * np.eye(3) / s - 4 * np.outer(r, r) / s**2

    def gradient(poses):
        g, _ = world(poses)
        out = np.zeros((2, 6))
        out[0, 3:], out[1, 3:] = -poses[0, :3, :3].T @ g, poses[1, :3, :3].T @ g
        return out

    def second(poses):
        g, H = world(poses)
        out = np.zeros((12, 12))
        for i, si in enumerate((-1, 1)):
            Ri = poses[i, :3, :3]
            a = si * Ri.T @ g
            # R^T g with R <- R (1 + [theta])
            out[6 * i + 3 : 6 * i + 6, 6 * i : 6 * i + 3] = so3.hat(a)
            for j, sj in enumerate((-1, 1)):
                out[6 * i + 3 : 6 * i + 6, 6 * j + 3 : 6 * j + 6] = si * sj * Ri.T @ H @ poses[j, :3, :3]
        return out

    return Potential(("a", "b"), energy, gradient, second if hessian else None, name)


FORCES: dict[str, Force] = {
    "spring": PointSpring("a", (0.1, 0.2, 0.3), "b", (-0.3, 0.1, 0.2), stiffness=7.0, damping=1.3, rest_length=0.4),
    "linear": PointSpring("a", (0.1, 0.2, 0.3), "b", (-0.3, 0.1, 0.2), stiffness=7.0),
    "damper": PointSpring("a", (0.1, 0.2, 0.3), "world", (1.0, 0.1, 0.2), damping=2.0),
    "point force, world": PointForce("a", (0.1, -0.2, 0.5), (1.0, 2.0, 3.0)),
    "point force, body": PointForce("a", (0.1, -0.2, 0.5), (1.0, 2.0, 3.0), "body"),
    "point force of time": PointForce("a", (0.1, -0.2, 0.5), lambda t: (np.sin(t), 1.0, t)),
    "wrench, world": Wrench("a", (1.0, -2.0, 0.5, 0.3, 0.2, 0.1)),
    "wrench, body": Wrench("a", (1.0, -2.0, 0.5, 0.3, 0.2, 0.1), "body"),
    "wrench of time": Wrench("a", lambda t: (t, 1, 2, 3, 4, np.cos(t))),
    "pull": Wrench("a", (0, 0, 0, 0.3, 0.2, 0.1)),
    "potential": attraction(),
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
    columns = []
    for j in range(n):
        d = np.zeros(n)
        d[j] = STEP
        columns.append((f(d) - f(-d)).ravel() / (2 * STEP))
    return np.array(columns).T


def moved(poses: np.ndarray, xi: np.ndarray) -> np.ndarray:
    return poses @ se3.exp(xi.reshape(-1, 6))


@pytest.mark.parametrize("what", FORCES)
@pytest.mark.parametrize("seed", range(3))
def test_derivatives_against_central_differences(what, seed):
    force = FORCES[what]
    poses, twists = state(force, seed)
    K, D = force.derivatives(0.3, poses, twists)
    n = 6 * len(force.bodies)
    expected_K = differences(lambda xi: force.wrenches(0.3, moved(poses, xi), twists), n)
    expected_D = differences(lambda xi: force.wrenches(0.3, poses, twists + xi.reshape(-1, 6)), n)
    # measured 2e-9, the rounding of the differences
    np.testing.assert_allclose(K, expected_K, rtol=0, atol=3e-8)
    np.testing.assert_allclose(D, expected_D, rtol=0, atol=3e-8)


@pytest.mark.parametrize("what", [k for k, f in FORCES.items() if f.conservative])
def test_conservative_wrenches_are_minus_the_derivative_of_the_energy(what):
    force = FORCES[what]
    poses, twists = state(force)
    gradient = differences(lambda xi: np.array(force.energy(0.0, moved(poses, xi))), 6 * len(force.bodies))
    # measured 6e-9
    np.testing.assert_allclose(force.wrenches(0.0, poses, twists).ravel(), -gradient.ravel(), rtol=0, atol=5e-8)


def test_which_forces_are_conservative():
    conservative = {key for key, force in FORCES.items() if force.conservative}
    assert conservative == {"linear", "point force, world", "pull", "potential"}
    energies = {key: force.energy(0.0, state(force)[0]) for key, force in FORCES.items()}
    # forces without an energy report none; the spring's part of a damped spring counts
    assert {key for key, energy in energies.items() if energy != 0} == conservative | {"spring"}


@pytest.mark.parametrize("what", ["spring", "linear", "damper", "potential"])
def test_action_is_reaction(what):
    """In world axes about the world origin the two wrenches cancel."""
    force = FORCES[what]
    poses, twists = state(force)
    total = sum(np.linalg.inv(se3.Ad(T)).T @ w for T, w in zip(poses, force.wrenches(0.0, poses, twists), strict=True))
    # measured 4e-15
    np.testing.assert_allclose(total, 0, rtol=0, atol=2e-14)


@pytest.mark.parametrize("what", ["spring", "damper"])
def test_power_is_the_rate_of_energy_minus_the_dissipation(what):
    force = FORCES[what]
    poses, twists = state(force)
    power = float((force.wrenches(0.0, poses, twists) * twists).sum())
    ahead, behind = (force.energy(0.0, moved(poses, s * STEP * twists.ravel())) for s in (1, -1))
    rate = (ahead - behind) / (2 * STEP)
    # dissipation d (dl/dt)^2 from the lengths themselves
    lengths = []
    for s in (1, -1):
        T = moved(poses, s * STEP * twists.ravel())
        pa, pb = (T[i] @ [*p, 1] for i, p in enumerate((force.point_a, force.point_b)))
        lengths.append(np.linalg.norm(pb - pa))
    dissipation = force.damping * ((lengths[0] - lengths[1]) / (2 * STEP)) ** 2
    assert dissipation > 0
    # measured 3e-10
    np.testing.assert_allclose(power, -rate - dissipation, rtol=0, atol=5e-9)


def test_a_spring_by_hand():
    spring = PointSpring("a", (0, 0, 0), "world", (0, 0, 2), stiffness=3, rest_length=0.5)
    wrench = spring.wrenches(0.0, np.array([np.eye(4)] * 2), np.zeros((2, 6)))
    # measured 0
    np.testing.assert_allclose(wrench, [[0, 0, 0, 0, 0, 4.5], [0, 0, -0.0, 0, 0, -4.5]], rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("rest_length", [0.0, 0.5])
@pytest.mark.parametrize("distance", [0.0, 1e-300, 1e-12, 1e-9, 1e-6])
def test_a_spring_whose_ends_meet_stays_finite(rest_length, distance):
    spring = PointSpring("a", (0, 0, 0), "b", (distance, 0, 0), stiffness=3, damping=2, rest_length=rest_length)
    poses, twists = np.array([np.eye(4)] * 2), np.ones((2, 6)) * [[1], [-2]]
    wrenches = spring.wrenches(0.0, poses, twists)
    K, D = spring.derivatives(0.0, poses, twists)
    for made in (wrenches, K, D, spring.energy(0.0, poses)):
        assert np.isfinite(made).all()
    # never more than spring and damper can give: 3 rest_length, and 2 times the relative speed of about 5.2
    assert np.abs(wrenches).max() <= 3 * rest_length + 2 * 5.3
    if distance == 0:
        assert not wrenches.any()


def test_the_smooth_length_is_exact_for_ordinary_lengths():
    spring = PointSpring("a", (0, 0, 0), "b", (0.3, 0, 0), stiffness=1, rest_length=0.1)
    assert spring.energy(0.0, np.array([np.eye(4)] * 2)) == 0.5 * (0.3 - 0.1) ** 2


def test_world_and_body_axes_agree_when_the_body_is_not_turned():
    poses, twists = np.eye(4)[None], np.zeros((1, 6))
    for make in (lambda f: PointForce("a", (1, 2, 3), (4, 5, 6), f), lambda f: Wrench("a", (1, 2, 3, 4, 5, 6), f)):
        a, b = (make(frame).wrenches(0.0, poses, twists) for frame in ("world", "body"))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PointSpring("a", (0, 0, 0), "a", (0, 0, 0)), "both ends are on 'a'"),
        (lambda: PointSpring("a", (0, 0), "b", (0, 0, 0)), "point_a"),
        (lambda: PointSpring("a", (0, 0, 0), "b", (0, 0, 0), stiffness=-1), "stiffness"),
        (lambda: PointSpring("a", (0, 0, 0), "b", (0, 0, 0), damping=np.nan), "damping"),
        (lambda: PointSpring("a", (0, 0, 0), "b", (0, 0, 0), rest_length=-1, name="s"), "'s': rest_length"),
        (lambda: PointSpring("", (0, 0, 0), "b", (0, 0, 0)), "name"),
        (lambda: PointForce("a", force=(0, 0, np.nan)), "force"),
        (lambda: PointForce("a", frame="link"), "frame must be 'world' or 'body'"),
        (lambda: Wrench("a", (1, 2, 3)), "wrench: expected 6"),
        (lambda: Potential((), abs, abs), "bodies"),
        (lambda: Potential(("a", "a"), abs, abs), "different bodies"),
        (lambda: Potential("a", 3, abs), "energy must be a function"),
        (lambda: Potential("a", abs, abs, 3), "hessian must be a function"),
    ],
)
def test_bad_forces(make, message):
    with pytest.raises(ModelError, match=message):
        make()


@pytest.mark.parametrize(
    ("force", "message"),
    [
        (PointForce("a", force=lambda t: (1, np.nan, 0), name="wind"), "'wind' at t = 0.5.*finite"),
        (PointForce("a", force=lambda t: (1, 2), name="wind"), "'wind' at t = 0.5.*shape"),
        (Wrench("a", lambda t: "x", name="push"), "'push' at t = 0.5.*numbers"),
        (Potential("a", lambda p: 0, lambda p: np.full((1, 6), np.nan), name="V"), "'V': gradient.*finite"),
        (Potential("a", lambda p: 0, lambda p: np.zeros(6), name="V"), "'V': gradient.*shape"),
    ],
)
def test_what_users_functions_return_is_checked(force, message):
    with pytest.raises(ModelError, match=message):
        force.wrenches(0.5, np.eye(4)[None], np.zeros((1, 6)))


def test_a_potential_without_hessian_has_its_derivative_by_differences():
    given, force = attraction("well"), attraction("well", hessian=False)
    (K, _), (found, D) = (each.derivatives(0.0, *state(force)) for each in (given, force))
    assert np.abs(found - K).max() < 1e-9 * np.abs(K).max()  # measured 2e-12
    assert not D.any()


WRITABLE = {key: force for key, force in FORCES.items() if "time" not in key and key != "potential"}


@pytest.mark.parametrize("what", WRITABLE)
def test_dictionaries_round_trip_to_the_last_bit(what):
    force = WRITABLE[what]
    made = force_from_dict(force.to_dict())
    assert type(made) is type(force)
    assert made.to_dict() == force.to_dict()
    poses, twists = state(force)
    assert np.array_equal(made.wrenches(0.0, poses, twists), force.wrenches(0.0, poses, twists))


@pytest.mark.parametrize("what", sorted(set(FORCES) - set(WRITABLE)))
def test_functions_cannot_be_written(what):
    with pytest.raises(ModelError, match=f"{type(FORCES[what]).__name__}.*cannot be written"):
        FORCES[what].to_dict()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "magnet"}, "force.kind: unknown force 'magnet'"),
        ({"point_a": [0, 0]}, "force.point_a"),
        ({"stiffness": "3"}, "force.stiffness: expected a finite number"),
        ({"colour": "red"}, "force.colour: unknown key"),
        ({"b": "a"}, "force: PointSpring.*both ends"),
    ],
)
def test_the_reader_is_strict(change, message):
    with pytest.raises(ModelError, match=message):
        force_from_dict({**FORCES["spring"].to_dict(), **change})
