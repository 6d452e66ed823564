"""The kernels against the slow NumPy of ``leastaction.reference``, on random trees with every kind of joint."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leastaction as la
from leastaction.model.configuration import difference, retract
from leastaction.reference import dynamics as reference
from leastaction.reference import kinematics
from leastaction.reference import samples as make
from leastaction.run import observe

# Relative to the largest entry of the result; measured beside each use.
CLOSE = 1e-11

STATES = 2


def one_kind(kind):
    """A joint of one kind on the world, one on a branch and one at the end, with hinges between."""
    rng = np.random.default_rng(list(kind.encode()))
    return make.random_tree([kind, "revolute", kind, "prismatic", kind], rng, springs=True)


def every_kind():
    """All kinds in one branching tree, with springs, dampers and rotor inertia."""
    rng = np.random.default_rng(11)
    return make.random_tree(rng.permutation(make.MOVING_KINDS).tolist(), rng, springs=True)


def merged():
    """Fixed joints, one of them on the world, locked joints, massless links between joints, named frames."""
    rng = np.random.default_rng(12)
    kinds = ["revolute", "fixed", "spherical", "fixed", "free", "universal", "helical", "planar_free", "fixed"]
    m = make.random_tree(kinds, rng, springs=False)
    for name in ("helical", "spherical"):
        joint = next(joint for joint in m.joints.values() if joint.kind == name)
        m.lock(joint.name, make.random_coordinates(joint, rng))
    # a wall that does not move, and something on it
    make.add_random_body(m, "wall", rng)
    make.add_random_joint(m, "wall_joint", "fixed", "world", "wall", rng)
    make.add_random_body(m, "on_wall", rng)
    make.add_random_joint(m, "on_wall_joint", "cylindrical", "wall", "on_wall", rng)
    # two massless links in a row
    m.add_body("thin1")
    m.add_body("thin2")
    make.add_random_body(m, "end", rng)
    make.add_random_joint(m, "thin1_joint", "revolute", "b4", "thin1", rng)
    make.add_random_joint(m, "thin2_joint", "prismatic", "thin1", "thin2", rng)
    make.add_random_joint(m, "end_joint", "revolute", "thin2", "end", rng)
    # a massless link that only its rotor gives inertia
    m.add_body("rotor")
    make.add_random_joint(m, "rotor_joint", "revolute", "end", "rotor", rng, armature=0.2)
    m.add_frame("tool", "end", make.random_pose(rng))
    m.add_frame("mark", "wall", make.random_pose(rng))
    return m


def laws():
    """Nonlinear springs and dampers on some coordinates, linear ones on others."""
    rng = np.random.default_rng(13)
    m = make.random_tree(["planar", "cylindrical_free", "universal", "revolute"], rng)
    m.joints["j0"].stiffness = (make.hard_spring(2.0, 1.5), 1.0, make.hard_spring(0.5, 3.0))
    m.joints["j0"].damping = (0.3, make.drag(0.4), 0.0)
    m.joints["j1"].stiffness = (make.hard_spring(1.0, 1.0), 2.0, 2.5, 1.5)
    m.joints["j1"].rest = make.random_coordinates(m.joints["j1"], rng)
    m.joints["j3"].damping = make.drag(0.2)
    return m


def forces(conservative=False):
    """Every kind of force between bodies of two trees, also on a body that is fixed to another."""
    rng = np.random.default_rng(14)
    m = make.random_tree(["spherical", "revolute", "planar"], rng, springs=not conservative)
    make.add_random_body(m, "free", rng)
    make.add_random_joint(m, "free_joint", "free", "world", "free", rng)
    make.add_random_body(m, "fixed", rng)
    make.add_random_joint(m, "fixed_joint", "fixed", "free", "fixed", rng)
    make.add_every_force(m, "b2", "fixed", rng, conservative)
    make.add_every_force(m, "free", "b1", rng, conservative)
    return m


MECHANISMS = {
    **{kind: functools.partial(one_kind, kind) for kind in make.MOVING_KINDS},
    "every kind": every_kind,
    "merged": merged,
    "laws": laws,
    "forces": forces,
}


@functools.cache
def built(name):
    return MECHANISMS[name]().build()


@pytest.fixture(params=MECHANISMS)
def model(request):
    return built(request.param)


def states(model, seed=1):
    rng = np.random.default_rng(seed)
    for _ in range(STATES):
        q, v = make.random_state(model, rng)
        yield q, v, rng.normal(size=model.nv)


def error(ours, expected):
    """Largest difference relative to the largest entry."""
    return np.abs(ours - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-300)


def check_dynamics(model, q, v, a):
    """Everything that is a function of one state."""
    # kinematics
    expected = kinematics.poses(model, q)
    ours = la.poses(model, q)
    assert set(ours) == set(expected)
    assert max(np.abs(ours[name] - expected[name]).max() for name in ours) < CLOSE  # measured 4e-15
    body, point = model.body_names[-1], np.array([0.3, -0.2, 0.5])
    J = kinematics.jacobian(model, q, body, point)
    assert error(la.jacobian(model, q, body, point), J) < CLOSE  # measured 2e-15
    # inertia
    M = reference.mass_matrix(model, q)
    assert error(la.mass_matrix(model, q), M) < CLOSE  # measured 3e-15
    assert error(la.centroidal_map(model, q), reference.centroidal_map(model, q)) < CLOSE  # measured 4e-15
    assert error(la.center_of_mass(model, q), reference.center_of_mass(model, q)) < CLOSE  # measured 1e-15
    # forces
    zero = np.zeros(model.nv)
    bias = reference.inverse_dynamics(model, q, v, zero, passive=False)
    assert error(la.bias_forces(model, q, v), bias) < CLOSE  # measured 4e-15
    gravity = reference.inverse_dynamics(model, q, zero, zero, passive=False)
    assert error(la.gravity_forces(model, q), gravity) < CLOSE  # measured 4e-15
    for t in (0.0, 0.7):
        tau = reference.inverse_dynamics(model, q, v, a, t)
        assert error(la.inverse_dynamics(model, q, v, a, t=t), tau) < CLOSE  # measured 4e-15
        # accelerations, up to the condition of the mass matrix
        expected = reference.forward_dynamics(model, q, v, a, t)
        tolerance = max(CLOSE, 1e-14 * np.linalg.cond(M))
        assert error(la.forward_dynamics(model, q, v, a, t=t), expected) < tolerance  # measured 0.006 of it
    # sums
    check_sums(model, q, v, M)


def check_sums(model, q, v, M):
    """Energy and momentum."""
    energy = la.energy(model, q, v)
    kinetic, potential = reference.energy(model, q, v)
    assert energy.kinetic == pytest.approx(kinetic, rel=1e-12)  # measured 2e-15
    assert energy.kinetic == pytest.approx(0.5 * v @ M @ v, rel=1e-12)  # measured 2e-15
    assert energy.potential == pytest.approx(potential, rel=1e-12, abs=1e-12)  # measured 1e-14
    momentum = la.momentum(model, q, v)
    linear, angular = reference.momentum(model, q, v)
    assert error(momentum.linear, linear) < CLOSE  # measured 3e-15
    assert error(momentum.angular, angular) < CLOSE  # measured 6e-15
    centroidal = la.centroidal_map(model, q) @ v
    about = angular - np.cross(la.center_of_mass(model, q), linear)
    assert error(centroidal, np.concatenate([about, linear])) < CLOSE  # measured 6e-15


def test_dynamics(model):
    for q, v, a in states(model):
        check_dynamics(model, q, v, a)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 7))
def test_any_tree(seed, size):
    rng = np.random.default_rng(seed)
    m = make.random_tree(rng.choice(make.MOVING_KINDS, size=size).tolist(), rng, springs=True)
    model = m.build()
    q, v = make.random_state(model, rng)
    check_dynamics(model, q, v, rng.normal(size=model.nv))


@pytest.mark.slow
@settings(max_examples=300)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 30))
def test_many_trees(seed, size):
    rng = np.random.default_rng(seed)
    m = make.random_tree(rng.choice(make.MOVING_KINDS, size=size).tolist(), rng, springs=True)
    model = m.build()
    q, v = make.random_state(model, rng)
    check_dynamics(model, q, v, rng.normal(size=model.nv))


def test_rows_of_states(model):
    """Rows give to the last bit what single states give."""
    qs, vs, accelerations = (np.array(rows) for rows in zip(*states(model), strict=True))
    tau = la.inverse_dynamics(model, qs, vs, accelerations)
    forward = la.forward_dynamics(model, qs, vs, accelerations)
    M, energy = la.mass_matrix(model, qs), la.energy(model, qs, vs)
    momentum, place = la.momentum(model, qs, vs), la.poses(model, qs)[model.body_names[0]]
    for r, (q, v, a) in enumerate(zip(qs, vs, accelerations, strict=True)):
        assert np.array_equal(tau[r], la.inverse_dynamics(model, q, v, a))
        assert np.array_equal(forward[r], la.forward_dynamics(model, q, v, a))
        assert np.array_equal(M[r], la.mass_matrix(model, q))
        assert energy.total[r] == la.energy(model, q, v).total
        assert np.array_equal(momentum.angular[r], la.momentum(model, q, v).angular)
        assert np.array_equal(place[r], la.poses(model, q)[model.body_names[0]])


def test_joint_forces(model):
    for q, v, tau in states(model):
        ours, _ = observe.joint_forces(model, np.zeros(1), q[None], v[None], tau[None])
        expected = reference.joint_reactions(model, q, v, la.forward_dynamics(model, q, v, tau), {})
        assert set(ours) == set(expected)
        scale = max(np.abs(wrench).max() for wrench in expected.values())
        worst = max(np.abs(ours[name][0] - expected[name]).max() for name in ours)
        assert worst < 1e-10 * scale  # measured 3e-13
        # what the joint lets pass is the motor, springs and dampers, less what the rotor takes
        moved = tau + reference.joint_springs(model, q, v)
        moved -= reference.armature(model) * la.forward_dynamics(model, q, v, tau)
        for name, view in model.joints.items():
            if view.kind in ("free", "spherical", "revolute", "prismatic"):
                S = {"free": np.eye(6), "spherical": np.eye(6)[:, :3]}.get(view.kind)
                if S is None:
                    axis, zero = view.joint.axis, np.zeros(3)
                    S = np.concatenate([axis, zero] if view.kind == "revolute" else [zero, axis])[:, None]
                assert np.abs(S.T @ ours[name][0] - moved[view.v]).max() < 1e-10 * scale  # measured 6e-15


# --- identities that need no reference --------------------------------------------------------------------------------
def along(model, q, v, a, function, h=1e-2):
    """Derivative of function(q(t), v(t)) at t = 0, by central differences of sixth order."""
    out = 0.0
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        ahead = function(retract(model, q, k * h * v), v + k * h * a)
        behind = function(retract(model, q, -k * h * v), v - k * h * a)
        out = out + weight / h * (ahead - behind)
    return out


@pytest.mark.parametrize("name", [*make.MOVING_KINDS, "every kind", "merged", "laws", "conservative forces"])
def test_power_balance(name):
    """The energy grows by the power of the generalised forces, and by nothing else, where nothing is damped."""
    if name == "conservative forces":
        model = forces(conservative=True).build()
    else:
        model = MECHANISMS[name]().without("damping").build()
    for q, v, tau in states(model, 2):
        a = la.forward_dynamics(model, q, v, tau)
        rate = along(model, q, v, a, lambda q, v: la.energy(model, q, v).total, h=1e-3)
        scale = np.abs(v * tau).sum() + np.abs(v * la.bias_forces(model, q, v)).sum()
        assert abs(rate - v @ tau) < 1e-10 * scale  # measured 1e-12, the differences' own error


def test_damping_takes_energy(model):
    """Dampers take the power v . D v: the same as an inverse dynamics with and without them."""
    bare = model.mechanism.without("damping", "forces", "stiffness").build()
    whole = model.mechanism.without("forces", "stiffness").build()
    for q, v, a in states(model, 3):
        taken = (la.inverse_dynamics(whole, q, v, a) - la.inverse_dynamics(bare, q, v, a)) @ v
        linear = sum(view.joint.damping_values @ v[view.v] ** 2 for view in model.joints.values())
        law = sum(
            0.0 - damper.force(v[view.v][k]) * v[view.v][k]
            for view in model.joints.values()
            for k, damper in view.joint.damping_laws.items()
        )
        assert taken == pytest.approx(linear + law, rel=1e-10, abs=1e-10)  # measured 4e-14


@pytest.mark.parametrize("kind", make.MOVING_KINDS)
def test_momentum_rate(kind):
    """What floats gains momentum by its weight alone, whatever its joints, springs and dampers do inside."""
    rng = np.random.default_rng([4, *kind.encode()])
    m = make.random_tree(["free", kind, "revolute"], rng)
    make.add_springs(m, "j1", rng)
    if kind == "free":
        m.joints["j1"].stiffness = m.joints["j1"].damping = 0.0
    model = m.build()
    for q, v, tau in states(model, 4):
        tau[:6] = 0.0
        a = la.forward_dynamics(model, q, v, tau)
        center, weight = la.center_of_mass(model, q), model.total_mass * m.gravity
        linear = along(model, q, v, a, lambda q, v: la.momentum(model, q, v).linear, h=1e-3)
        angular = along(model, q, v, a, lambda q, v: la.momentum(model, q, v).angular, h=1e-3)
        assert error(linear, weight) < 1e-10  # measured 2e-13
        assert np.abs(angular - np.cross(center, weight)).max() < 1e-8  # measured 8e-11


def test_jacobian_is_the_derivative_of_the_pose(model):
    for q, v, _ in states(model, 5):
        for name in model.frame_names:
            if name == "world":
                continue
            pose = la.poses(model, q)[name]
            rate = along(model, q, v, np.zeros(model.nv), lambda q, v, name=name: la.poses(model, q)[name], h=1e-3)
            J = la.jacobian(model, q, name) @ v
            spin = rate[:3, :3] @ pose[:3, :3].T
            expected = np.array([spin[2, 1], spin[0, 2], spin[1, 0], *rate[:3, 3]])
            assert np.abs(J - expected).max() < 1e-10 * max(1.0, np.abs(expected).max())  # measured 1e-12


def test_gravity_is_the_derivative_of_the_potential(model):
    bare = model.mechanism.without("damping", "stiffness", "forces").build()
    for q, v, _ in states(model, 6):
        slope = along(bare, q, v, np.zeros(model.nv), lambda q, v: la.energy(bare, q).potential, h=1e-3)
        gravity = la.gravity_forces(bare, q)
        assert abs(slope - gravity @ v) < 1e-10 * np.abs(gravity * v).sum()  # measured 5e-13


def test_retract_and_difference(model):
    for q, v, _ in states(model, 7):
        assert np.abs(difference(model, q, retract(model, q, 0.3 * v)) - 0.3 * v).max() < 1e-13  # measured 4e-16


def test_a_kilometre_away_loses_no_digits(model):
    """Moving the whole mechanism changes no force and no acceleration beyond what the world's numbers resolve."""
    far = model.mechanism.copy()
    shift = np.array([800.0, -500.0, 400.0])
    roots = [joint for joint in far.joints.values() if joint.parent == "world"]
    for joint in roots:
        joint.parent_frame = la.pose(xyz=shift) @ joint.parent_frame
    far.forces = []
    near = model.mechanism.copy()
    near.forces = []
    far_model, near_model = far.build(), near.build()
    for q, v, tau in states(model, 8):
        a, b = la.forward_dynamics(near_model, q, v, tau), la.forward_dynamics(far_model, q, v, tau)
        # poses of a kilometre resolve 1e-13 m; nothing else may be lost
        assert error(b, a) < 1e-11  # measured 6e-13
        M = la.mass_matrix(near_model, q)
        assert error(la.mass_matrix(far_model, q), M) < 1e-12  # measured 8e-16
        energy = la.energy(near_model, q, v).kinetic
        assert la.energy(far_model, q, v).kinetic == pytest.approx(energy, rel=1e-12)  # measured 7e-16


# --- numbers that are not numbers -------------------------------------------------------------------------------------
def spring_that_fails(value):
    m = la.models.pendulum()
    m.joints["hinge"].stiffness = (la.Law(lambda x: value, lambda x: 0.0, lambda x: value),)
    return m.build()


def test_not_a_number_never_travels():
    """A law without a value is an error in every function that asks for it, not a NaN in its result."""
    model = spring_that_fails(np.nan)
    for function in (
        lambda: la.forward_dynamics(model, None, None),
        lambda: la.inverse_dynamics(model, None, None, None),
        lambda: la.energy(model, None),
    ):
        with pytest.raises((la.ConvergenceError, la.ModelError)):
            function()


def test_overflow_is_an_error():
    model = la.models.double_pendulum().build()
    fast = [1e200, 1e200]
    for function in (
        lambda: la.forward_dynamics(model, None, fast),
        lambda: la.inverse_dynamics(model, None, fast, None),
        lambda: la.energy(model, None, fast),
    ):
        with pytest.raises((la.ConvergenceError, la.ModelError)):
            function()


def test_rows_are_checked_like_single_states():
    model = built("spherical")
    q, v = make.random_state(model, np.random.default_rng(9))
    scaled = q.copy()
    scaled[:4] *= 1.5
    assert error(la.mass_matrix(model, scaled[None])[0], la.mass_matrix(model, q)) < CLOSE  # measured 1e-15
    with pytest.raises(la.ModelError, match="quaternion is zero"):
        la.mass_matrix(model, np.zeros((1, model.nq)))
    with pytest.raises(la.ModelError, match=r"q: row 0 is not finite"):
        la.mass_matrix(model, np.full((1, model.nq), np.nan))
    with pytest.raises(la.ModelError, match="v has shape"):
        la.bias_forces(model, q, v[:-1])
    for nonsense, words in (("abc", "no key frame 'abc'"), ([["a"]], "q ")):
        with pytest.raises(la.ModelError, match=words):
            la.mass_matrix(model, nonsense)
