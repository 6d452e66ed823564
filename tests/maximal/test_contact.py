"""Hard contact and joint limits: exact answers, and what must never happen."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la

G = 9.81


def single(shape, friction=0.5, **ground):
    """One free body over the ground."""
    m = la.Mechanism("single")
    m.add_body("body", shape=shape, mass=1.0)
    m.add_joint("root", "free", parent="world", child="body")
    m.add_ground(friction=friction, **ground)
    return m.build()


@functools.cache
def box():
    return single(la.Box((0.2, 0.2, 0.2)))


def at(model, position, quat=(1, 0, 0, 0), angular=(0, 0, 0), linear=(0, 0, 0)):
    return model.state({"root": [*position, *quat]}, {"root": [*angular, *linear]})


def run_of(model, state, dt, duration, **options):
    return la.simulate(model, state, dt=dt, duration=duration, method=la.Maximal(), **options)


def mean_rate(run):
    """Velocity (3,) of the last step; v itself lacks the contact impulse at the end of the step."""
    return (run.q[-1, :3] - run.q[-2, :3]) / run.dt


@pytest.mark.parametrize("direction", [0.0, np.pi / 8, np.pi / 4])
def test_sliding_block_stops_where_it_must(direction):
    """v^2 / (2 mu g), in every direction alike: the cone is round."""
    along = np.array([np.cos(direction), np.sin(direction), 0.0])
    run = run_of(box(), at(box(), (0, 0, 0.1), linear=along), 0.01, 0.5)
    distance = 1.0 / (2 * 0.5 * G)
    assert run.q[-1, :3] @ along == pytest.approx(distance, rel=1e-3)  # measured 4e-4
    assert abs(np.cross(run.q[-1, :3], along)[2]) < 1e-8  # measured 5e-11
    # friction is mu times the weight while it slides, and inside the cone always
    c = run.contacts
    assert np.all(c.friction <= 0.5 * c.normal_force * (1 + 1e-6) + 1e-9)
    assert c.wrench("body")[5, 3:] @ along == pytest.approx(-0.5 * G, rel=1e-6)
    assert c.wrench("body")[5, 5] == pytest.approx(G, rel=1e-6)
    # about its middle, which moves by 5 mm in a step, the forces have no torque, as it does not turn
    assert np.abs(c.wrench("body")[5, :3]).max() < 1e-7  # measured 1.5e-8 N m


@pytest.mark.parametrize("degrees", [-0.5, 0.5])
def test_incline_at_the_angle_of_friction(degrees):
    a = np.arctan(0.5) + np.radians(degrees)
    normal = np.array([np.sin(a), 0.0, np.cos(a)])
    model = single(la.Box((0.2, 0.2, 0.2)), normal=normal)
    run = run_of(model, at(model, 0.1 * normal, quat=(np.cos(a / 2), 0, np.sin(a / 2), 0)), 0.01, 1.0)
    speed = mean_rate(run) @ [np.cos(a), 0, -np.sin(a)]
    if degrees < 0:
        assert abs(speed) < 1e-5  # measured 2e-6, the creep that the barrier leaves
    else:
        assert speed == pytest.approx((G * np.sin(a) - 0.5 * G * np.cos(a)) * 0.995, rel=1e-3)  # measured 2e-4


def test_sliding_sphere_ends_rolling():
    """At 5/7 of its speed, with an error of second order."""
    model = single(la.Sphere(0.1))
    errors = [
        mean_rate(run_of(model, at(model, (0, 0, 0.1), linear=(1, 0, 0)), dt, 1.0))[0] - 5 / 7 for dt in (0.02, 0.01)
    ]
    assert errors[1] == pytest.approx(1.7e-4, rel=0.1)
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.1)


@pytest.mark.slow
def test_lying_cylinder_rolls():
    model = single(la.Cylinder(0.1, 0.3))
    half = np.sqrt(0.5)
    run = run_of(model, at(model, (0, 0, 0.1), quat=(half, half, 0, 0), linear=(1, 0, 0)), 0.01, 1.0)
    assert mean_rate(run)[0] == pytest.approx(2 / 3, abs=3e-4)  # measured 1.6e-4
    assert run.q[:, 2].min() - 0.1 >= 0
    assert run.q[:, 2].max() - 0.1 < 1e-8


def corners(run):
    """Heights (rows, 8) of the corners of the box."""
    signs = np.array([[a, b, c] for a in (-0.1, 0.1) for b in (-0.1, 0.1) for c in (-0.1, 0.1)])
    poses = run.poses("body")
    return (poses[:, 2:3, :3] @ signs.T)[:, 0] + poses[:, 2:3, 3]


def test_dropped_box_ends_on_the_ground_and_never_below():
    run = run_of(box(), at(box(), (0, 0, 0.5)), 0.01, 1.0)
    assert corners(run).min() > 0.0  # measured 2e-11
    assert corners(run)[-1].max() - 0.2 < 50e-6  # measured 4e-10
    assert np.allclose(run.contacts.normal_force[-1], G / 4, rtol=1e-6)


def test_thrown_boxes():
    """No failed step, no corner below the ground, no energy from nowhere."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        quat = rng.normal(size=4)
        start = at(box(), (0, 0, 0.5), quat / np.linalg.norm(quat), 8 * rng.normal(size=3), 2 * rng.normal(size=3))
        run = run_of(box(), start, 0.005, 2.5)
        assert corners(run).min() > -1e-11  # measured 2e-12 above
        e = run.energy.total
        assert np.diff(e).max() < 1e-3 * e[0]  # measured 1e-6


@pytest.mark.slow
def test_many_thrown_boxes():
    rng = np.random.default_rng(2)
    for _ in range(100):
        quat = rng.normal(size=4)
        start = at(box(), (0, 0, 0.5), quat / np.linalg.norm(quat), 8 * rng.normal(size=3), 2 * rng.normal(size=3))
        assert run_of(box(), start, 0.005, 2.5, save_every=500).report.failure is None


def test_frictionless_contact_keeps_horizontal_momentum():
    model = single(la.Box((0.2, 0.2, 0.2)), friction=0.0)
    rng = np.random.default_rng(3)
    quat = rng.normal(size=4)
    run = run_of(model, at(model, (0, 0, 0.4), quat / np.linalg.norm(quat), (3, -2, 4), (1, 0.5, 0)), 0.005, 1.0)
    p, L = run.momentum.linear, run.momentum.angular
    assert np.abs(p[:, :2] - p[0, :2]).max() < 1e-8  # measured 1e-12
    assert np.abs(L[:, 2] - L[0, 2]).max() < 1e-8  # measured 2e-13


def test_energy_rises_by_second_order_only():
    """A box that rolls over a sticking edge is a pendulum: its energy oscillates like dt squared."""
    model, tilt = single(la.Box((0.2, 0.2, 0.2)), friction=2.0), 0.7
    c, s = np.cos(tilt), np.sin(tilt)
    turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    position, spin = -turn @ [0.1, 0, -0.1], np.array([0, 1.0, 0])
    quat = (np.cos(tilt / 2), 0, np.sin(tilt / 2), 0)
    start = at(model, position, quat, spin, turn.T @ np.cross(spin, position))
    rises = []
    for dt in (0.01, 0.005, 0.0025, 0.00125):
        run = run_of(model, start, dt, 0.4)
        # energies in the middle of the steps: kinetic of the mean rates, potential half way
        rate = np.diff(run.q[:, :3], axis=0) / dt
        turning = 2 * (run.q[:-1, 3] * run.q[1:, 5] - run.q[:-1, 5] * run.q[1:, 3]) / dt
        kinetic = 0.5 * ((rate**2).sum(axis=1) + 0.2**2 / 6 * turning**2)
        rises.append(np.maximum(np.diff(kinetic + G * 0.5 * (run.q[1:, 2] + run.q[:-1, 2])), 0).sum())
    assert rises[0] < 2e-5  # measured 1.1e-5 J
    assert np.polyfit(np.log([8, 4, 2, 1]), np.log(rises), 1)[0] > 1.7  # measured 1.95


@functools.cache
def stack(n=10):
    m = la.Mechanism("stack")
    for i in range(n):
        m.add_body(f"b{i}", shape=la.Box((0.2, 0.2, 0.2)), mass=1.0)
        m.add_joint(f"f{i}", "free", parent="world", child=f"b{i}")
        if i:
            m.add_contact(f"b{i - 1}", f"b{i}", friction=0.5)
    m.add_ground(friction=0.5)
    return m.build()


def test_a_stack_of_ten_boxes_stays():
    model = stack()
    q = {f"f{i}": [0.005 * (i % 2), 0.004 * (i % 3), 0.1 + 0.2 * i + 1e-4 * (i + 1), 1, 0, 0, 0] for i in range(10)}
    run = run_of(model, model.state(q), 0.01, 2.0)
    ends = np.array([run.poses(f"b{i}")[-1, :3, 3] for i in range(10)])
    assert np.abs(ends[:, 2] - 0.1 - 0.2 * np.arange(10)).max() < 1e-6  # measured 1e-8
    assert np.abs(ends[:, 0] - 0.005 * (np.arange(10) % 2)).max() < 1e-6  # measured 3e-8
    # the ground carries all of them, the top box only itself
    assert run.contacts.wrench("b0")[-1, 5] == pytest.approx(G, rel=1e-5)
    here = run.contacts.pair[-1] == [names == ("b0", "world") for names in run.contacts.names].index(True)
    assert run.contacts.normal_force[-1][here].sum() == pytest.approx(10 * G, rel=1e-6)


def spheres(n):
    """A chain of spheres on ball joints."""
    m, r = la.Mechanism("spheres"), 0.25
    for i in range(n):
        m.add_body(f"s{i}", shape=la.Sphere(r), mass=1.0)
        if i == 0:
            m.add_joint("root", "free", parent="world", child="s0")
        else:
            ends = {"parent_frame": la.pose(xyz=(r, 0, 0)), "child_frame": la.pose(xyz=(-r, 0, 0))}
            m.add_joint(f"j{i}", "spherical", parent=f"s{i - 1}", child=f"s{i}", **ends)
    m.add_ground(friction=0.3)
    return m.build()


@pytest.mark.parametrize("n", [10, 100])
def test_a_chain_of_spheres_drops_on_the_ground(n):
    model = spheres(n)
    run = run_of(model, at(model, (0, 0, 0.5), linear=(1, 0.5, 0)), 0.01, 1.0)
    lowest = min(run.poses(f"s{i}")[:, 2, 3].min() for i in range(n)) - 0.25
    assert lowest > -1e-10  # measured 6e-11 above


def test_a_step_without_a_solution_is_taken_in_parts():
    model, angle = spheres(40), 0.3
    state = model.state({"root": [0, 0, 0.75, np.cos(angle / 2), 0, -np.sin(angle / 2), 0]})
    run = run_of(model, state, 0.01, 2.0)
    # some steps of the chain that whips down were not solved in one; measured 2
    assert run.report.counters["finer steps"] > 0
    heights = np.array([run.poses(name)[:, 2, 3] for name in model.body_names])
    # measured 2e-11 m above the ground
    assert heights.min() > 0.25


def test_a_step_without_any_solution_names_the_contact():
    model = single(la.Sphere(0.1))
    state = at(model, (0, 0, 0.1), linear=(1.0, 0, 0))
    with pytest.raises(la.ConvergenceError, match="contact of 'body' and the ground"):
        la.simulate(model, state, dt=0.01, duration=0.1, method=la.Maximal(solver=la.InteriorPoint(iterations=1)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [la.Sphere(0.1), la.Capsule(0.1, 0.3), la.Cylinder(0.1, 0.3), la.Ellipsoid((0.1, 0.1, 0.15))]
)
def test_what_rolls_over_the_ridge_of_a_ramp_gains_no_energy(shape):
    """Flat, then a slope down. A step reports (g dt)^2 / 8 more energy where the body begins to fall."""
    heights = (-0.5 * np.maximum(np.linspace(-1, 1, 11), 0.0))[:, None] * np.ones(11)
    model, half = single(shape, heights=heights, spacing=0.2), np.sqrt(0.5)
    # it rolls about its axis z, which lies along -y
    start = at(model, (-0.1, 0.05, 0.1), (half, half, 0, 0), angular=(0, 0, -5.0), linear=(0.5, 0, 0))
    for dt in (0.01, 0.005, 0.0025):
        run = run_of(model, start, dt, 0.6)
        e = run.energy.total
        assert np.diff(e).max() < 13.0 * dt**2  # measured 12.03 dt^2 for all shapes and steps
        assert e.max() - e[0] < 20.0 * dt**2  # measured 12.03 dt^2, cylinder and ellipsoid 17.8 dt^2
        # over the ridge and down
        assert run.q[:, 2].max() < 0.1 + 1e-8  # measured 4e-10
        assert run.q[-1, 0] > 0.3  # measured 0.349


def test_limits_hold():
    """A pendulum that falls onto its stop, and stays there."""
    m = la.models.pendulum()
    joint = next(iter(m.joints.values()))
    joint.limits = np.array([[-2.0, 0.5]])
    m.enforce_limits()
    model = m.build()
    run = run_of(model, model.state([0.0], [8.0]), 0.005, 3.0)
    assert run.q.max() <= 0.5 + 1e-12
    assert run.q.max() > 0.5 - 1e-6
    assert run.q.min() >= -2.0 - 1e-12
    with pytest.raises(la.ModelError, match="beyond its enforced limit"):
        run_of(model, model.state([0.7]), 0.005, 0.1)


def test_efforts_bound_the_control():
    m = la.models.pendulum()
    joint = next(iter(m.joints.values()))
    joint.effort = np.array([0.3])
    m.enforce_limits()
    bounded, free = m.build(), la.models.pendulum().build()
    push = np.full((50, 1), 5.0)
    one = la.simulate(bounded, dt=0.01, duration=0.5, method=la.Maximal(), control=push)
    two = la.simulate(free, dt=0.01, duration=0.5, method=la.Maximal(), control=np.full((50, 1), 0.3))
    assert np.abs(one.q - two.q).max() < 1e-9


def test_a_run_goes_on_where_it_stopped(tmp_path):
    """Saved, loaded and resumed: the same to the last bit."""
    start = at(box(), (0, 0, 0.3), angular=(2, 1, 0), linear=(1, 0, 0))
    whole = run_of(box(), start, 0.01, 1.0)
    run_of(box(), start, 0.01, 0.5).save(tmp_path / "half.npz")
    rest = la.resume(tmp_path / "half.npz", duration=0.5)
    assert np.array_equal(rest.q, whole.q)
    # and (q, v) alone begins the same motion
    again = run_of(box(), box().state(whole.q[50], whole.v[50], whole.t[50]), 0.01, 0.5)
    assert np.abs(again.q[-1] - whole.q[-1]).max() < 1e-6  # measured 1e-16


def test_refuses_bodies_that_interpenetrate_by_more_than_their_size():
    with pytest.raises(la.ModelError, match=r"'body' and the ground interpenetrate by 0\.11 m"):
        run_of(box(), at(box(), (0, 0, -0.01)), 0.01, 0.1)


def test_methods_without_contact_name_those_that_have_it():
    with pytest.raises(la.UnsupportedError, match="maximal"):
        la.simulate(box(), dt=0.01, duration=0.1, method=la.Galerkin(2))


def on_cylinder(shape, place, tilt=0.0, height=0.25):
    """A free body over the cap, at z = 0.1, of a cylinder with a radius of 0.3 m."""
    m = la.Mechanism("two")
    m.add_body("a", shape=shape, mass=1.0)
    m.add_body("t", shape=la.Cylinder(0.3, 0.2), mass=1.0)
    m.add_joint("tj", "fixed", parent="world", child="t")
    m.add_joint("root", "free", parent="world", child="a")
    m.add_contact("a", "t", friction=0.4)
    model = m.build()
    return model, at(model, (place, 0.0, height), (np.cos(tilt / 2), 0.0, np.sin(tilt / 2), 0.0))


@pytest.mark.slow
def test_what_lies_on_a_cylinder_stays_wherever_it_lies():
    for shape, height in ((la.Box((0.2, 0.15, 0.1)), 0.1501), (la.Cylinder(0.08, 0.2), 0.2001)):
        for place in (0.0, 0.08, 0.12, 0.15, 0.18, 0.23, 0.24, 0.25):
            model, start = on_cylinder(shape, place, height=height)
            run = run_of(model, start, 0.005, 0.3)
            assert np.abs(run.q[1:, 2] - height + 1e-4).max() < 1e-6  # measured 7.2e-9
            assert np.ptp(run.energy.total) < 1e-3  # measured 6.9e-4, of the fall


@pytest.mark.slow
def test_what_drops_on_the_rim_of_a_cylinder_gains_no_energy():
    shapes = (la.Box((0.2, 0.15, 0.1)), la.Cylinder(0.08, 0.2), la.Capsule(0.05, 0.2))
    for shape in shapes:
        for place in (0.12, 0.25, 0.31):
            for tilt in (0.02, 0.3, 0.8, np.pi / 2):
                for dt in (0.01, 0.0025):
                    model, start = on_cylinder(shape, place, tilt, 0.3)
                    energy = run_of(model, start, dt, 0.5).energy.total
                    assert energy.max() - energy[0] < 1e-12  # measured 3.6e-15


def unbalanced(run):
    """What the forces of contacts with the ground lack in the change of momentum, over the largest force; (rows,)."""
    c, m = run.contacts, run.model.total_mass
    push = c.force[:-1].sum(axis=1)
    needed = np.diff(run.momentum.linear, axis=0) / run.dt + [0, 0, m * G]
    return np.abs(needed - push).max(axis=1) / np.abs(push).max()


def test_forces_of_contacts_are_what_changes_the_momentum():
    rng = np.random.default_rng(0)
    for _ in range(4):
        quat = rng.normal(size=4)
        start = at(box(), (0, 0, 0.4), quat / np.linalg.norm(quat), *(2 * rng.normal(size=(2, 3))))
        assert unbalanced(run_of(box(), start, 0.01, 1.0)).max() < 1e-4  # measured 2e-5


@pytest.mark.slow
def test_forces_of_steps_in_parts_are_means_over_the_step():
    """A chain of spheres, dropped on one end, takes steps in parts; their force was that of the first part."""
    m = la.Mechanism("chain")
    for i in range(40):
        m.add_body(f"b{i}", shape=la.Sphere(0.25), mass=1.0)
        free, joint = ("world", "free"), (f"b{i - 1}", "spherical")
        parent, kind = free if i == 0 else joint
        m.add_joint(
            f"j{i}", kind, parent=parent, child=f"b{i}", parent_frame=la.pose(xyz=(0.25 * (i > 0), 0, 0)),
            child_frame=la.pose(xyz=(-0.25 * (i > 0), 0, 0)),
        )  # fmt: skip
    m.add_ground(friction=0.3)
    model = m.build()
    start = model.state({"j0": [0, 0, 0.75, np.cos(0.15), 0, -np.sin(0.15), 0]})
    run = run_of(model, start, 0.01, 2.0)
    off = unbalanced(run)
    assert run.report.counters["finer steps"] > 0
    assert np.count_nonzero(off > 1e-3) <= 1
