"""Restitution: impacts are located inside a step, and obey Newton's law with Coulomb friction."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.maximal.impacts import free_inverse, held_rows, strike
from leastaction.maximal.limits import bound_rows
from leastaction.model.configuration import retract
from leastaction.reference.samples import random_tree

G = 9.81


def thrown(shape: la.Sphere | la.Box, restitution: float, friction: float = 0.5) -> la.Model:
    m = la.Mechanism("thrown")
    m.add_body("body", shape=shape, mass=1.0)
    m.add_joint("root", "free", parent="world", child="body")
    m.add_ground(friction=friction, restitution=restitution)
    return m.build()


def dropped(model: la.Model, height: float, **more: object) -> la.State:
    q = model.neutral()
    q[2] = height
    return model.state(q, **more)


class TestBall:
    def test_it_hits_at_the_exact_times(self):
        model, dt, e = thrown(la.Sphere(0.1), 0.8), 0.01, 0.8
        run = la.simulate(model, dropped(model, 1.1), dt=dt, duration=3.0, method=la.Maximal())
        speed = np.sqrt(2.0 * G)
        exact = speed / G + np.concatenate([[0.0], np.cumsum(2.0 * speed * e ** np.arange(1, 6) / G)])
        vz = run.v[:, 5]
        hits = run.t[1:][(vz[:-1] < 0.0) & (vz[1:] > 0.0)]
        # a row follows on each hit: measured 0.0057 to 0.0099 s later
        assert len(hits) == 6
        assert np.all(hits - exact > -1e-4 * dt)
        assert np.all(hits - exact < 1.05 * dt)
        # never below the ground: lowest row measured 1.1e-4 m above it
        assert (run.q[:, 2] > 0.1).all()
        assert run.report.counters["impacts"] == 6

    def test_without_loss_it_keeps_its_energy(self):
        model = thrown(la.Sphere(0.1), 1.0)
        run = la.simulate(model, dropped(model, 1.1), dt=0.01, duration=10.0, method=la.Maximal())
        assert run.report.counters["impacts"] == 11
        # measured 5e-7 in 11 impacts
        assert np.ptp(run.energy.total) < 3e-6 * run.energy.total[0]

    def test_it_comes_to_rest(self):
        model = thrown(la.Sphere(0.1), 0.5)
        run = la.simulate(model, dropped(model, 0.4), dt=0.01, duration=3.0, method=la.Maximal())
        # measured 1e-10 m above the ground
        assert 0.0 < run.q[-1, 2] - 0.1 < 1e-8
        # slower than the rest speed nothing bounces
        calm = la.simulate(model, dropped(model, 0.4), dt=0.01, duration=3.0, method=la.Maximal(rest_speed=10.0))
        assert calm.report.counters["impacts"] == 0

    def test_friction_makes_it_roll_at_once(self):
        model = thrown(la.Sphere(0.1), 0.5, friction=5.0)
        state = dropped(model, 0.6, v=[0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
        run = la.simulate(model, state, dt=0.01, duration=0.5, method=la.Maximal())
        forward = run.momentum.linear[-1, 0]
        # the point that touches sticks: 5/7 of the speed. measured to 2e-9, what the barrier leaves in flight
        assert forward == pytest.approx(5.0 / 7.0, abs=1e-8)

    def test_a_run_goes_on_as_if_it_had_not_stopped(self):
        model = thrown(la.Sphere(0.1), 0.8)
        start = dropped(model, 0.3, v=[1.0, 2.0, 3.0, 0.5, 0.0, 0.0])
        whole = la.simulate(model, start, dt=0.01, duration=0.6, method=la.Maximal())
        half = la.simulate(model, start, dt=0.01, duration=0.3, method=la.Maximal())
        both = la.resume(half, 0.3)
        assert np.array_equal(whole.q, both.q)
        assert np.array_equal(whole.v, both.v)

    def test_an_impact_is_no_contact_force(self):
        model = thrown(la.Sphere(0.1), 0.8)
        run = la.simulate(model, dropped(model, 0.3), dt=0.01, duration=0.5, method=la.Maximal())
        # a plastic step would push with many times the weight; measured 3e-7 N
        assert run.contacts.normal_force.max(initial=0.0) < 0.1 * G


def test_a_tumbling_box_never_gains_energy():
    model = thrown(la.Box((0.2, 0.3, 0.1)), 0.5)
    q = model.neutral()
    q[2], q[3:] = 0.5, np.array([0.9, 0.3, 0.2, 0.1]) / np.linalg.norm([0.9, 0.3, 0.2, 0.1])
    run = la.simulate(model, model.state(q, v=[1.0, 2, 0, 0.5, 0, 0]), dt=0.01, duration=4.0, method=la.Maximal())
    energy = run.energy.total
    assert run.report.counters["impacts"] >= 5
    # measured 3e-9
    assert np.diff(energy).max() < 1e-7 * energy[0]
    # it lies still: what is left is one step of falling
    assert np.abs(run.v[-1]).max() < G * 0.01


class TestStrike:
    @pytest.mark.parametrize("seed", range(5))
    def test_the_law_holds_at_every_point(self, seed):
        rng = np.random.default_rng(seed)
        n, nv = 3, 12
        A = rng.normal(size=(nv, nv))
        inverse = A @ A.T + np.eye(nv)
        J, v = rng.normal(size=(n, 3, nv)), rng.normal(size=nv)
        e, mu = rng.uniform(0.0, 1.0, n), rng.uniform(0.0, 1.0, n)
        after = strike(inverse, J, v, e, mu)
        # impulses from the jump, as the Jacobian has full rank
        rows = J.reshape(3 * n, nv)
        impulse = np.linalg.lstsq(inverse @ rows.T, after - v, rcond=None)[0].reshape(n, 3)
        before, then = (rows @ v).reshape(n, 3), (rows @ after).reshape(n, 3)
        slack = then[:, 0] + e * np.minimum(before[:, 0], 0.0)
        size = np.abs(before).max()
        # each measured below 4e-15
        assert slack.min() > -1e-10 * size
        assert impulse[:, 0].min() > -1e-10 * size
        assert np.abs(slack * impulse[:, 0]).max() < 1e-10 * size**2
        assert (np.linalg.norm(impulse[:, 1:], axis=1) < mu * impulse[:, 0] + 1e-10 * size).all()
        # where it slides, friction is largest and points against the slip
        for k in range(n):
            inside = np.linalg.norm(impulse[k, 1:]) < 0.999 * mu[k] * impulse[k, 0]
            slip = then[k, 1:]
            if impulse[k, 0] > 1e-9 and inside:
                assert np.linalg.norm(slip) < 1e-9 * size
            elif impulse[k, 0] > 1e-9:
                assert impulse[k, 1:] @ slip < 1e-9 * size

    def test_loops_stay_closed(self):
        model = la.models.four_bar().build()
        state = la.project(model, model.state(v={"crank_hinge": 8.0}))
        inverse = free_inverse(model, 0.0, state.q)
        # one degree of freedom is left, and the loop's own motion is along it
        values = np.linalg.eigvalsh(inverse)
        assert values[-2] < 1e-9 * values[-1]
        ahead = np.linalg.eigh(inverse)[1][:, -1]
        # measured 4e-16
        assert np.linalg.norm(state.v - ahead * (ahead @ state.v)) < 1e-9 * np.linalg.norm(state.v)


def carriage(restitution: float, limits: tuple[float, float], mass: float = 10.0) -> la.Model:
    """A carriage on a vertical slide with a foot of 1 kg below it, on a slide with limits."""
    m = la.Mechanism("carriage")
    m.add_body("carriage", mass=mass, inertia=(1, 1, 1))
    m.add_joint("lift", "prismatic", parent="world", child="carriage", axis=(0, 0, 1))
    m.add_body("foot", mass=1.0, shape=la.Sphere(0.1))
    m.add_joint("leg", "prismatic", parent="carriage", child="foot", axis=(0, 0, 1), limits=limits)
    m.add_ground(friction=0.5, restitution=restitution)
    m.enforce_limits()
    return m.build()


class TestBounds:
    """Limits and inequalities that are closed take part in an impact, without friction and without restitution."""

    @pytest.mark.parametrize("e", [0.5, 1.0])
    @pytest.mark.parametrize("dt", [0.01, 0.002])
    def test_a_foot_at_its_limit_lifts_the_carriage(self, e, dt):
        model = carriage(e, (-1.0, 0.0))
        run = la.simulate(model, model.state({"lift": 0.6}), dt=dt, duration=0.9, method=la.Maximal())
        top = run.q[run.t > 0.45, 0].max()
        # as one body; measured 9e-5 to 1.2e-4 m above: the barrier opens the limit by as much as they fall
        assert top == pytest.approx(0.1 + 0.5 * e**2, abs=3e-4)
        assert run.q[:, 1].max() < 1e-9
        # measured 1.2e-8 of 65 J, and 0.012 without loss: the barrier had opened the limit at 4e-4 m/s
        assert np.diff(run.energy.total).max() < 0.02

    def test_a_limit_that_opens_does_not_pull(self):
        # the foot hangs on its lower limit and is pushed up into its leg
        model = carriage(0.5, (0.0, 1.0))
        run = la.simulate(model, model.state({"lift": 0.6}), dt=0.01, duration=0.33, method=la.Maximal())
        speed = np.sqrt(2.0 * G * 0.5)
        after = 0.33 - speed / G
        # the carriage falls on, the foot rises at half the speed; measured 3e-5 and 1.2e-4
        assert run.v[-1, 0] == pytest.approx(-speed - G * after, abs=2e-3)
        assert run.v[-1].sum() == pytest.approx(0.5 * speed - G * after, abs=2e-3)

    @pytest.mark.parametrize("linear", ["nullspace", pytest.param("dense", marks=pytest.mark.slow)])
    def test_a_taut_rope_takes_part(self, linear):
        # a ball strikes another one, which a taut rope ties to a third behind it
        m = la.Mechanism("rope", gravity=(0, 0, 0))
        for name, mass, y in (("a", 1.0, 0.0), ("b", 3.0, 1.0), ("c", 1.0, 0.0)):
            m.add_body(name, mass=mass, shape=la.Sphere(0.1))
            at = la.pose(xyz=(0.0, y, 0.0))
            m.add_joint(f"slide {name}", "prismatic", parent="world", child=name, axis=(1, 0, 0), parent_frame=at)
        m.add_contact("a", "c", friction=0.0, restitution=0.5)
        x = np.array([1.0, 0.0, 0.0])
        m.add_constraint(
            la.Constraint(
                ("a", "b"),
                lambda p: [0.5 - (p[0, 0, 3] - p[1, 0, 3])],
                lambda p: [[0, 0, 0, *(-p[0, :3, :3].T @ x), 0, 0, 0, *(p[1, :3, :3].T @ x)]],
                kind="inequality",
                name="rope",
            )
        )
        model = m.build()
        start = model.state({"slide a": 0.5, "slide c": -0.155}, {"slide c": 2.0})
        run = la.simulate(model, start, dt=0.01, duration=0.3, method=la.Maximal(linear=linear))
        # 2 = c + 4 a and a - c = 1; measured 7e-5
        assert run.v[-1] == pytest.approx([0.6, 0.6, -0.4], abs=1e-3)
        assert run.report.counters["impacts"] == 1

    @pytest.mark.parametrize("kind", ["revolute", "cylindrical", "spherical", "planar_free", "free"])
    def test_rows_of_limits_are_their_rates(self, kind):
        rng = np.random.default_rng(3)
        m = random_tree(["free", kind], rng)
        joint = m.joints["j1"]
        limits = np.tile([-5.0, 5.0], (len(joint.limits), 1))
        if "qw" in joint.coordinate_names:
            limits[-1] = 0.0, 2.5
        joint.limits = limits
        m.enforce_limits()
        x = np.array([0.3, 0.4, 0.5])

        def value(p):
            d = p[0, :3, 3] + p[0, :3, :3] @ x - p[1, :3, 3]
            return [9.0 - d @ d]

        def matrix(p):
            d, R = p[0, :3, 3] + p[0, :3, :3] @ x - p[1, :3, 3], p[0, :3, :3]
            return [[*(-2 * np.cross(x, R.T @ d)), *(-2 * R.T @ d), 0, 0, 0, *(2 * p[1, :3, :3].T @ d)]]

        m.add_constraint(la.Constraint(("b0", "b1"), value, matrix, kind="inequality"))
        model = m.build()
        q, v, h = retract(model, model.neutral(), rng.uniform(-0.7, 0.7, model.nv)), rng.normal(size=model.nv), 1e-6
        gaps, rows = bound_rows(model, q)
        ahead, behind = (bound_rows(model, retract(model, q, s * h * v))[0] for s in (1, -1))
        assert len(gaps) >= 2
        # measured 7e-10
        assert np.abs((ahead - behind) / (2 * h) - rows @ v).max() < 1e-7

    @pytest.mark.parametrize("seed", range(5))
    def test_the_law_holds_at_every_row(self, seed):
        rng = np.random.default_rng(seed)
        n, k, nv = 2, 3, 12
        A = rng.normal(size=(nv, nv))
        inverse = A @ A.T + np.eye(nv)
        J, B, v = rng.normal(size=(n, 3, nv)), rng.normal(size=(k, nv)), rng.normal(size=nv)
        # the last bound is open, and has no part in it
        held = held_rows(inverse, np.array([0.0, 1e-8, 0.1]), B, 1e-10)
        assert held.shape == (2, 3, nv)
        e, mu = np.array([0.3, 0.8, 0.0, 0.0]), np.array([0.5, 0.2, 0.0, 0.0])
        after = strike(inverse, np.concatenate([J, held]), v, e, mu)
        rows = np.concatenate([J.reshape(-1, nv), B[:2]])
        impulse = np.linalg.lstsq(inverse @ rows.T, after - v, rcond=None)[0][3 * n :]
        rate = B[:2] @ after
        # each measured above -1.2e-15, and below 4e-16
        assert min(rate.min(), impulse.min()) > -1e-10
        assert np.abs(rate * impulse).max() < 1e-10


def test_a_bad_rest_speed():
    with pytest.raises(la.ModelError, match="rest_speed"):
        la.Maximal(rest_speed=-1.0)


def test_contacts_of_a_step_that_was_taken_in_parts_are_found_with_restitution():
    """Parts of a step touch at other features than the whole one; their numbers differed, which NumPy refused."""
    rng = np.random.default_rng(0)
    m = la.Mechanism("two")
    for k in range(2):
        rng.choice(("cylinder",))
        s = rng.uniform(0.05, 0.15, 3)
        m.add_body(f"b{k}", shape=la.Cylinder(s[0], 2 * s[1]), mass=float(10 ** rng.uniform(-1, 1)))
        m.add_joint(f"j{k}", "free", parent="world", child=f"b{k}")
    m.add_ground(friction=rng.uniform(0, 1), restitution=0.5)
    m.add_contact("b1", "b0", friction=float(rng.uniform(0, 1)), restitution=0.5)
    model, q, v = m.build(), {}, {}
    for k in range(2):
        z = rng.normal(size=4)
        q[f"j{k}"] = [*(0.05 * rng.normal(size=2)), 0.3 + 0.45 * k, *(z / np.linalg.norm(z))]
        v[f"j{k}"] = np.concatenate([3 * rng.normal(size=3), 0.5 * rng.normal(size=3)])
    run = la.simulate(model, model.state(q, v), dt=0.005, duration=1.0, method="maximal")
    assert run.contacts.normal_force.min() >= 0
    assert run.contacts.count.max() > 1
