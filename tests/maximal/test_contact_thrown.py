"""Solids thrown on the plane and on height fields: no failed step, nothing below the ground, no energy from nowhere."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

SHAPES = {
    "box": la.Box((0.2, 0.2, 0.2)),
    "plate": la.Box((0.4, 0.3, 0.05)),
    "cylinder": la.Cylinder(0.1, 0.2),
    "disc": la.Cylinder(0.15, 0.04),
    "rod": la.Cylinder(0.04, 0.5),
    "capsule": la.Capsule(0.05, 0.4),
}
GROUNDS = {
    "plane": {},
    "rough": {"heights": 0.02 * np.random.default_rng(3).uniform(-1, 1, (21, 21)), "spacing": 0.18},
    "steep": {"heights": 0.06 * np.random.default_rng(3).uniform(-1, 1, (21, 21)), "spacing": 0.18},
    "fine": {"heights": 0.01 * np.random.default_rng(3).uniform(-1, 1, (61, 61)), "spacing": 0.05},
    "ridges": {"heights": 0.05 * (np.arange(31) % 4 == 3)[:, None] * np.ones(31), "spacing": 0.1},
}


def model_of(shape, ground):
    m = la.Mechanism("thrown")
    m.add_body("body", shape=SHAPES[shape], mass=1.0)
    m.add_joint("root", "free", parent="world", child="body")
    m.add_ground(friction=0.5, **GROUNDS[ground])
    return m.build()


def starts(model, n, seed=0):
    """n random starts, 0.45 m above the ground."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        quat = rng.normal(size=4)
        q = [*rng.uniform(-0.3, 0.3, 2), 0.45, *(quat / np.linalg.norm(quat))]
        yield model.state({"root": q}, {"root": [*(3 * rng.normal(size=3)), *(rng.normal(size=3) * [1, 1, 0.3])]})


def surface(shape, n=3000):
    """Points (n, 3) of a solid's surface, a third of them on its edges."""
    rng = np.random.default_rng(0)
    if isinstance(shape, la.Box):
        p = rng.uniform(-1, 1, (n, 3))
        for row in p:
            axes = rng.choice(3, rng.integers(1, 3), replace=False)
            row[axes] = np.sign(row[axes])
        return p * shape.size / 2
    turn, z = rng.uniform(0, 2 * np.pi, n), rng.uniform(-1, 1, n)
    ring = np.column_stack([np.cos(turn), np.sin(turn)]) * shape.radius
    if isinstance(shape, la.Capsule):
        u = rng.normal(size=(n, 3))
        u *= shape.radius / np.linalg.norm(u, axis=1)[:, None]
        u[:, 2] += np.sign(u[:, 2]) * shape.length / 2
        side = np.column_stack([ring, z * shape.length / 2])
        return np.where((np.arange(n) % 2 == 0)[:, None], u, side)
    # rims, caps, side
    which = np.arange(n) % 3
    ring *= np.where(which == 1, np.sqrt(rng.uniform(0, 1, n)), 1.0)[:, None]
    return np.column_stack([ring, np.where(which == 2, z, np.sign(z)) * shape.length / 2])


def height_at(ground, x, y):
    """Heights of the ground; none beyond the grid, where it goes on in straight lines."""
    if not GROUNDS[ground]:
        return np.zeros_like(x)
    z, step = np.asarray(GROUNDS[ground]["heights"]), GROUNDS[ground]["spacing"]
    f, g = x / step + 0.5 * (len(z) - 1), y / step + 0.5 * (z.shape[1] - 1)
    i, j = np.clip(np.floor(f).astype(int), 0, len(z) - 2), np.clip(np.floor(g).astype(int), 0, z.shape[1] - 2)
    u, v = f - i, g - j
    low = z[i, j] + u * (z[i + 1, j] - z[i, j]) + v * (z[i, j + 1] - z[i, j])
    far = z[i + 1, j + 1]
    high = far + (1 - u) * (z[i, j + 1] - far) + (1 - v) * (z[i + 1, j] - far)
    inside = (f >= 0) & (f <= len(z) - 1) & (g >= 0) & (g <= z.shape[1] - 1)
    return np.where(inside, np.where(u + v <= 1, low, high), -np.inf)


def deepest(shape, ground, run):
    """How far a solid is below the ground at most, metres."""
    points, deep = surface(SHAPES[shape]), 0.0
    for pose in run.poses("body")[:: max(1, len(run.t) // 100)]:
        p = points @ pose[:3, :3].T + pose[:3, 3]
        deep = max(deep, (height_at(ground, p[:, 0], p[:, 1]) - p[:, 2]).max())
    return deep


def check(shape, ground, n, dt, gain, deep):
    model = model_of(shape, ground)
    for start in starts(model, n):
        run = la.simulate(model, start, dt=dt, duration=1.5, method=la.Maximal())
        assert np.diff(run.energy.total).max() < gain
        assert deepest(shape, ground, run) < deep


@pytest.mark.parametrize("shape", ["disc", "cylinder"])
def test_on_the_plane(shape):
    # measured 1.3e-2 J and 0.88 mm for the disc, 7.0e-3 J and 0.42 mm for the cylinder
    check(shape, "plane", 12, 0.01, 2e-2, 1.5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["rough", "steep", "fine", "ridges"])
@pytest.mark.parametrize("shape", SHAPES)
def test_on_a_height_field(shape, ground):
    # measured at most in 20 throws each: discs 19 and 5.2 mJ, others 5.2 and 1.2 mJ; 0.65 mm and 30 um
    discs = shape == "disc"
    check(shape, ground, 12, 0.01, 5e-2 if discs else 5e-3, 1e-3)
    check(shape, ground, 12, 0.0025, 1e-2 if discs else 1e-3, 1e-4)


def peak():
    heights = np.zeros((5, 5))
    heights[2, 2] = 0.1
    return {"heights": heights, "spacing": 1.0}


@pytest.mark.slow
def test_a_plate_balances_on_a_peak():
    """The force of the peak is the weight, up; the plate stays where it is put."""
    m = la.Mechanism("plate")
    m.add_body("plate", shape=la.Box((0.4, 0.4, 0.1)), mass=2.0)
    m.add_joint("root", "free", parent="world", child="plate")
    m.add_ground(friction=0.5, **peak())
    model = m.build()
    start = model.state({"root": [0, 0, 0.15, 1, 0, 0, 0]})
    run = la.simulate(model, start, dt=0.01, duration=0.2, method=la.Maximal())
    assert np.abs(run.q[:, 2] - 0.15).max() < 1e-8
    assert np.allclose(run.contacts.wrench("plate")[-1], [0, 0, 0, 0, 0, 2 * 9.81], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "ground"), [("box", "rough"), ("cylinder", "rough"), ("disc", "plane")])
def test_every_linear_solver_takes_the_same_steps(shape, ground):
    model = model_of(shape, ground)
    start = next(starts(model, 1, seed=4))
    runs = [
        la.simulate(model, start, dt=0.01, duration=0.45, method=la.Maximal(linear=linear))
        for linear in ("nullspace", "graph", "dense", "scipy")
    ]
    assert runs[0].contacts.gap[-1].size > 0
    for run in runs[1:]:
        assert np.abs(run.q - runs[0].q).max() < 1e-9


def test_a_disc_that_lands_flat_and_spins():
    """Eight points share the friction of a disc that slides and spins; iterations must not crawl along their cones."""
    model, rng = model_of("disc", "plane"), np.random.default_rng(0)
    # on its way down, as a run has it
    landing = np.array([4.147, -2.771, 1.137, -0.540, 0.235, -0.745])
    for _ in range(10):
        v = landing * np.exp(0.3 * rng.normal(size=6))
        start = model.state({"root": [0, 0, 0.02 + 1e-10, 1, 0, 0, 0]}, {"root": v})
        run = la.simulate(model, start, dt=0.0025, duration=0.0025, method=la.Maximal())
        # measured at most 18; 55 where a step must stay inside the cones
        assert run.report.counters["iterations"] < 25
        assert run.report.counters["restarts"] == 0


def over(shape, obstacle):
    """A free body "a" and an obstacle "b" that is fixed to the world."""
    m = la.Mechanism("two")
    m.add_body("a", shape=shape, mass=1.0)
    m.add_joint("root", "free", parent="world", child="a")
    m.add_body("b", shape=obstacle, mass=1.0)
    m.add_joint("fix", "fixed", parent="world", child="b")
    m.add_contact("a", "b", friction=0.5)
    return m.build()


@pytest.mark.slow
def test_a_contact_that_stays_open_pushes_nothing():
    """A cylinder that flies past a capsule: the solution of another motion has 697 N and 30 J more."""
    model = over(la.Cylinder(0.1, 0.2), la.Capsule(0.15, 0.5))
    q = [-0.0696159506, 0.3175625968, 0.1174435643, 0.6690838249, 0.3014804988, 0.6770325248, -0.0553471270]
    start = model.state(q, [-0.97722206, -9.00833998, -11.68032962, 2.69912356, -0.24130072, -0.25149932])
    energy = la.simulate(model, start, dt=0.01, duration=0.02, method=la.Maximal()).energy.total
    assert np.ptp(energy) < 1e-6  # measured 1e-9


@pytest.mark.slow
def test_what_is_over_a_thin_disc_is_not_behind_its_lower_rim():
    model = over(la.Capsule(0.05, 0.3), la.Cylinder(0.35, 0.06))
    start = model.state({"root": [0.0192, 0.4714, 0.0913, 0.6943, -0.5757, -0.408, -0.1413]})
    run = la.simulate(model, start, dt=0.01, duration=0.02, method=la.Maximal())
    assert np.abs(run.contacts.force).max(initial=0.0) < 1e-6  # it falls


@pytest.mark.slow
@pytest.mark.parametrize("dt", [0.01, 0.005])
def test_capsules_that_have_passed_each_other_do_not_push(dt):
    """Their axes have ends: a contact of the frozen lines gained 5 J of 1 J at 10 ms, and 0.25 J at 5 ms."""
    m = la.Mechanism("capsules", gravity=(0, 0, 0))
    for name in "ab":
        m.add_body(name, mass=1.0, shape=la.Capsule(0.06, 0.2))
        m.add_joint(f"to_{name}", "free", parent="world", child=name)
    m.add_contact("a", "b", friction=0.5)
    model = m.build()
    q = np.array([0.0848, 0.0058, -0.0488, 0.4792, 0.8066, -0.2744, -0.2106,
                  -0.0116, 0.0059, 0.085, -0.1735, -0.4592, -0.7851, 0.3777])  # fmt: skip
    q[3:7] /= np.linalg.norm(q[3:7])
    q[10:] /= np.linalg.norm(q[10:])
    v = [9.148, 1.024, -7.153, -0.566, 0.426, 0.234, 5.547, 1.899, -5.397, -0.18, 0.699, 0.191]
    run = la.simulate(model, model.state(q, v), dt=dt, duration=0.1, method=la.Maximal())
    assert np.diff(run.energy.total).max() < 1e-6  # measured 4e-8
    # free bodies keep their momenta
    assert np.abs(run.momentum.linear - run.momentum.linear[0]).max() < 1e-9  # measured 3e-14


@pytest.mark.slow
def test_a_cylinder_that_falls_over_on_a_cap_does_not_fall_through_it():
    model = over(la.Cylinder(0.1, 0.2), la.Cylinder(0.1, 0.2))
    quat = np.array([-0.3753, 0.6266, 0.0795, -0.6784])
    q = [-0.0258, -0.0017, 0.42, *(quat / np.linalg.norm(quat))]
    start = model.state(q, [-1.8879, -1.464, -2.1399, 0.2767, -0.0315, -0.1768])
    run = la.simulate(model, start, dt=0.005, duration=0.5, method=la.Maximal())
    assert np.diff(run.energy.total).max() < 1e-3  # measured 6e-14
    # its middle is over the cap, at least a radius above it
    inside = np.hypot(run.q[:, 0], run.q[:, 1]) < 0.1
    assert run.q[inside, 2].min() > 0.19  # measured 0.2000
