"""Joints that close loops, of every kind, against the slow NumPy of ``leastaction.reference``."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import entries, quantities
from leastaction.model.configuration import difference, retract
from leastaction.model.joints import KINDS
from leastaction.model.motion import joint_motion
from leastaction.reference import dynamics as reference
from leastaction.reference import loops
from leastaction.reference import samples as make
from leastaction.run import observe
from leastaction.spatial import quaternion

# every kind that can close a loop, and one that is locked
LOOPS = (*(kind for kind in KINDS if kind not in ("composite", "spline")), "locked universal")
# rows of Bruedigam et al. 2023, Table B.2, one per direction that the joint holds
ROWS = {
    "fixed": 6,
    "revolute": 5,
    "continuous": 5,
    "prismatic": 5,
    "helical": 5,
    "cylindrical": 4,
    "universal": 4,
    "planar": 3,
    "planar_translation": 4,
    "translational": 3,
    "axis_rotation_free_translation": 2,
    "spherical": 3,
    "cylindrical_free": 2,
    "planar_free": 1,
    "free": 0,
    "locked universal": 6,
}


def joined(kind, second=None, far=0.0):
    """A floating body with a hinge and a second floating body, joined by a loop joint (and by a second one)."""
    rng = np.random.default_rng(list(kind.encode()))
    m = make.random_tree(["free", "revolute"], rng, springs=True)
    make.add_random_body(m, "other", rng)
    make.add_random_joint(m, "other_joint", "free", "world", "other", rng)
    for joint in m.joints.values():
        if joint.parent == "world":
            joint.parent_frame = la.pose(xyz=(far, -far, 0.5 * far)) @ joint.parent_frame
    make.add_random_joint(m, "loop", kind.removeprefix("locked "), "b1", "other", rng)
    if kind.startswith("locked"):
        m.lock("loop", make.random_coordinates(m.joints["loop"], rng))
    if second is not None:
        make.add_random_joint(m, "second", second, "b0", "other", rng)
    return m


@functools.cache
def built(kind, second=None, far=0.0):
    return joined(kind, second, far).build()


@pytest.fixture(params=LOOPS)
def model(request):
    return built(request.param)


def closed_state(model, rng):
    """A state in which the loop is closed: the other body is put where the loop joint wants it."""
    q, v = make.random_state(model, rng)
    joint = model.mechanism.joints["loop"]
    coordinates = joint.locked if joint.locked is not None else make.random_coordinates(joint, rng)
    # pose of the other body, then the coordinates of its free joint
    other = model.joint("other_joint")
    poses = la.poses(model, q)
    target = poses["b1"] @ joint.parent_frame @ joint_motion(joint, coordinates) @ np.linalg.inv(joint.child_frame)
    X = np.linalg.inv(other.joint.parent_frame) @ target @ other.joint.child_frame
    q[other.q] = [*X[:3, 3], *quaternion.from_matrix(X[:3, :3])]
    # a velocity that keeps it closed
    G = loops.jacobian(model, q)
    return q, v - np.linalg.pinv(G) @ G @ v


def gaps_and_jacobian(model, q, v):
    m = model.constraint_size
    gaps, rates, J = np.zeros((1, m)), np.zeros((1, m)), np.zeros((1, m, model.nv))
    entries.loop_gaps(model.system, q[None], v[None], gaps, rates, J)
    return gaps[0], rates[0], J[0]


def error(ours, expected):
    """Largest difference relative to the largest entry, or to one."""
    return np.abs(ours - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1.0)


def test_rows(model, request):
    kind = request.node.callspec.params["model"]
    assert model.constraint_size == ROWS[kind]
    assert model.nv == 13


def test_gap_is_zero_where_closed(model):
    rng = np.random.default_rng(1)
    for _ in range(3):
        q, v = closed_state(model, rng)
        gaps, rates = observe.loop_gaps(model, q[None], v[None])
        assert np.abs(gaps).max(initial=0.0) < 1e-13  # measured 2e-15
        assert np.abs(rates).max(initial=0.0) < 1e-13  # measured 2e-14
        assert observe.constraint_error(model, q[None])[0] < 1e-13  # measured 2e-15


def test_gap_is_not_zero_where_open(model):
    """Moving against a row opens it by as much as the row says."""
    rng = np.random.default_rng(2)
    q, v = closed_state(model, rng)
    _, _, J = gaps_and_jacobian(model, q, v)
    for k in range(model.constraint_size):
        step = 1e-5 * np.linalg.pinv(J)[:, k]
        moved, _ = observe.loop_gaps(model, retract(model, q, step)[None], v[None])
        expected = 1e-5 * np.eye(model.constraint_size)[k]
        assert np.abs(moved[0] - expected).max() < 1e-8  # measured 5e-11, of second order


def test_gaps_and_rows_against_reference(model):
    """Also where the loop is open."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        for q, v in (make.random_state(model, rng), closed_state(model, rng)):
            gaps, rates, J = gaps_and_jacobian(model, q, v)
            assert error(gaps, loops.gaps(model, q)) < 1e-12  # measured 2e-15
            assert error(J, loops.jacobian(model, q)) < 1e-12  # measured 5e-15
            assert error(rates, J @ v) < 1e-12  # measured 7e-16


def test_rows_are_the_derivative_of_the_gap(model):
    rng = np.random.default_rng(4)
    h = 1e-3
    q, v = make.random_state(model, rng)
    _, _, J = gaps_and_jacobian(model, q, v)
    for k in range(model.nv):
        column = np.zeros(model.constraint_size)
        for j, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
            step = j * h * np.eye(model.nv)[k]
            ahead, behind = retract(model, q, step), retract(model, q, -step)
            column += weight / h * (gaps_and_jacobian(model, ahead, v)[0] - gaps_and_jacobian(model, behind, v)[0])
        assert np.abs(J[:, k] - column).max(initial=0.0) < 1e-10  # measured 2e-12


def test_forward_dynamics_against_dense_least_squares(model):
    """Accelerations and multipliers, where the loop is closed and where it is open."""
    rng = np.random.default_rng(5)
    for _ in range(3):
        for q, v in (make.random_state(model, rng), closed_state(model, rng)):
            tau = rng.normal(size=model.nv)
            a, lam = loops.forward_dynamics(model, q, v, tau)
            assert error(la.forward_dynamics(model, q, v, tau), a) < 1e-11  # measured 3e-13
            assert error(quantities.loop_forces(model, q, v, tau), lam) < 1e-11  # measured 4e-13


def test_second_derivative_of_the_gap_vanishes(model):
    rng = np.random.default_rng(6)
    q, v = closed_state(model, rng)
    a = la.forward_dynamics(model, q, v)
    second = loops.jacobian(model, q) @ a + loops.bias(model, q, v)
    assert np.abs(second).max(initial=0.0) < 1e-11 * max(1.0, np.abs(a).max())  # measured 9e-14


def test_multipliers_do_no_work(model):
    """With closed loops the needed generalised forces are those given plus G^T lambda, and these take no power."""
    rng = np.random.default_rng(7)
    q, v = closed_state(model, rng)
    tau = rng.normal(size=model.nv)
    a, lam = la.forward_dynamics(model, q, v, tau), quantities.loop_forces(model, q, v, tau)
    needed = la.inverse_dynamics(model, q, v, a)
    push = loops.jacobian(model, q).T @ lam
    assert error(needed, tau + push) < 1e-11  # measured 4e-14
    assert abs((needed - tau) @ v) < 1e-11 * max(1.0, np.abs(push).max())  # measured 2e-13


def test_joint_forces(model):
    """Reactions of the tree's joints, with the loop joint's wrench on both of its bodies."""
    rng = np.random.default_rng(8)
    q, v = closed_state(model, rng)
    tau = rng.normal(size=model.nv)
    ours, lam = observe.joint_forces(model, np.zeros(1), q[None], v[None], tau[None])
    a = la.forward_dynamics(model, q, v, tau)
    expected = reference.joint_reactions(model, q, v, a, loops.body_loads(model, q, lam[0]))
    assert set(ours) == set(expected)
    for name, wrench in expected.items():
        assert error(ours[name][0], wrench) < 1e-11  # measured 4e-14


def test_run_stays_closed(model):
    """Along an accurate run the gap stays zero: only the solver's error opens it."""
    rng = np.random.default_rng(9)
    q, v = closed_state(model, rng)
    run = la.simulate(model, model.state(q, 0.5 * v), dt=0.05, duration=0.3, method=la.Adaptive(1e-11, 1e-11))
    assert run.constraint_error.max() < 1e-11  # measured 9e-14


def test_project(model):
    """A state moved off the loop comes back, and a closed one is left alone."""
    rng = np.random.default_rng(10)
    q, v = closed_state(model, rng)
    same = la.project(model, model.state(q, v))
    assert np.abs(difference(model, q, same.q)).max() < 1e-11  # measured 2e-16
    assert np.abs(same.v - v).max() < 1e-11  # measured 4e-15
    moved = model.state(retract(model, q, 0.02 * rng.normal(size=model.nv)), v + 0.1 * rng.normal(size=model.nv))
    back = la.project(model, moved)
    gaps, rates = observe.loop_gaps(model, back.q[None], back.v[None])
    assert np.abs(gaps).max(initial=0.0) <= 1e-12  # measured 1e-12, the tolerance of project
    assert np.abs(rates).max(initial=0.0) < 1e-12  # measured 2e-15
    # the velocity is the nearest one in the mass metric: M (v - v0) lies in the span of the rows
    push = la.mass_matrix(model, back.q) @ (back.v - moved.v)
    G = loops.jacobian(model, back.q)
    assert error(G.T @ np.linalg.lstsq(G.T, push)[0], push) < 1e-10  # measured 2e-15


@pytest.mark.parametrize("kind", ["revolute", "helical", "universal", "fixed"])
def test_a_kilometre_away(kind):
    near, far = built(kind), built(kind, far=1000.0)
    rng = np.random.default_rng(11)
    q, v = closed_state(near, rng)
    tau = rng.normal(size=near.nv)
    a = la.forward_dynamics(near, q, v, tau)
    assert error(la.forward_dynamics(far, q, v, tau), a) < 1e-10  # measured 5e-14
    # a position of a kilometre resolves 1e-13 m
    assert observe.constraint_error(far, q[None])[0] < 1e-11  # measured 1e-13


def test_two_loops_share_a_body():
    model = built("revolute", "planar_free")
    assert model.constraint_size == 6
    rng = np.random.default_rng(12)
    q, v = make.random_state(model, rng)
    tau = rng.normal(size=model.nv)
    a, lam = loops.forward_dynamics(model, q, v, tau)
    assert error(la.forward_dynamics(model, q, v, tau), a) < 1e-11  # measured 3e-14
    assert error(quantities.loop_forces(model, q, v, tau), lam) < 1e-11  # measured 2e-13


@pytest.mark.parametrize("name", ["four_bar", "n_four_bar:3", "slider_crank", "minitaur"])
def test_redundant_rows(name):
    """Planar linkages hold out-of-plane directions several times; accelerations and least multipliers agree."""
    model = la.models.by_name(name).build()
    rng = np.random.default_rng(13)
    state = la.project(model, model.state(v=rng.normal(size=model.nv)))
    G = loops.jacobian(model, state.q)
    assert np.linalg.matrix_rank(G, tol=1e-8) < model.constraint_size
    tau = rng.normal(size=model.nv)
    a, lam = loops.forward_dynamics(model, state.q, state.v, tau)
    assert error(la.forward_dynamics(model, state.q, state.v, tau), a) < 1e-10  # measured 6e-13
    assert error(quantities.loop_forces(model, state.q, state.v, tau), lam) < 1e-6  # measured 5e-9


def test_composite_closes_a_loop():
    """It has no rows of its own, so the body behind it is cut and welded."""
    rng = np.random.default_rng(14)
    m = make.random_tree(["free", "revolute"], rng)
    make.add_random_joint(m, "loop", "composite", "world", "b1", rng)
    model = m.build()
    assert model.loop_names == ("loop (weld)",)
    assert "loop" in model.joint_names
    q, v = make.random_state(model, rng)
    tau = rng.normal(size=model.nv)
    a, lam = loops.forward_dynamics(model, q, v, tau)
    assert error(la.forward_dynamics(model, q, v, tau), a) < 1e-11  # measured 7e-14
    assert error(quantities.loop_forces(model, q, v, tau), lam) < 1e-11  # measured 1.2e-13


def test_helical_loop_with_zero_pitch():
    """A screw without pitch holds what a hinge holds."""
    rng = np.random.default_rng(15)
    m = joined("helical")
    m.joints["loop"].pitch = 0.0
    model = m.build()
    q, v = make.random_state(model, rng)
    a, _ = loops.forward_dynamics(model, q, v, np.zeros(model.nv))
    assert np.isfinite(observe.constraint_error(model, q[None])).all()
    assert error(la.forward_dynamics(model, q, v), a) < 1e-11  # measured 6e-14


@pytest.mark.parametrize("parent", ["world", "bob1"])
def test_loop_inside_one_rigid_group(parent):
    """A loop joint between bodies that move together anyway holds nothing; its multipliers are zero."""
    plain = la.models.double_pendulum()
    plain.add_body("x", mass=1.0)
    plain.add_joint("x_joint", "fixed", parent=parent, child="x")
    looped = plain.copy()
    looped.add_joint("loop", "revolute", parent=parent, child="x")
    model = looped.build()
    q, v = [0.3, 0.2], [1.0, -2.0]
    a = la.forward_dynamics(plain.build(), q, v)
    assert error(la.forward_dynamics(model, q, v), a) < 1e-13  # measured 0
    assert np.abs(quantities.loop_forces(model, q, v)).max() == 0.0
