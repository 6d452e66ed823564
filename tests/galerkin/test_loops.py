"""Loops and constraints of the user under the Galerkin integrators; forces on bodies; other root finders; guesses."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.galerkin.method import row_count

TIGHT = la.Newton(1e-14)


def point_distance(poses):
    """Distance of the body's origin from the world's, squared, minus one."""
    p = poses[0, :3, 3]
    return np.array([p @ p - 1.0])


def point_distance_jacobian(poses):
    R, p = poses[0, :3, :3], poses[0, :3, 3]
    return np.concatenate([np.zeros(3), 2.0 * p @ R])[None]


def rod() -> la.Model:
    """A body on three slides that a constraint of the user holds at one metre from the origin: a spherical pendulum."""
    m = la.Mechanism("rod")
    m.add_body("carrier", mass=0.0)
    m.add_body("middle", mass=0.0)
    m.add_body("bob", mass=2.0, inertia=(0.01, 0.01, 0.01))
    m.add_joint("x", "prismatic", parent="world", child="carrier", axis=(1, 0, 0))
    m.add_joint("y", "prismatic", parent="carrier", child="middle", axis=(0, 1, 0))
    m.add_joint("z", "prismatic", parent="middle", child="bob", axis=(0, 0, 1))
    m.add_constraint(la.Constraint(("bob",), point_distance, point_distance_jacobian, name="rod"))
    return m.build()


def sleigh(pull: float = 0.0) -> la.Model:
    """Chaplygin's sleigh with its centre of mass at the knife edge, which cannot slip sideways; ``pull`` along x."""

    def sideways(poses, twists):
        return np.array([twists[0, 4]])

    def by_twist(poses, twists):
        return np.eye(6)[4][None]

    m = la.Mechanism("sleigh", gravity=(pull, 0, 0))
    m.add_body("sleigh", mass=1.5, inertia=(0.2, 0.2, 0.3))
    m.add_joint("floor", "planar", parent="world", child="sleigh")
    m.add_constraint(la.Constraint(("sleigh",), sideways, by_twist, kind="velocity", name="knife"))
    return m.build()


def disc(radius: float = 0.5) -> la.Model:
    """A thin disc that rolls on the floor z = 0: its lowest point is on the floor and does not slip."""

    def lowest(pose):
        # from the centre to the lowest point, in link axes; the axis of the disc is the link's y
        down = pose[:3, :3].T @ np.array([0.0, 0.0, -1.0])
        down[1] = 0.0
        return radius * down / np.linalg.norm(down)

    def height(poses):
        return (poses[0, :3, 3] + poses[0, :3, :3] @ lowest(poses[0]))[2:]

    def height_jacobian(poses):
        c, R = lowest(poses[0]), poses[0, :3, :3]
        return np.hstack([np.cross(c, R[2]), R[2]])[None]

    def slip(poses, twists):
        c, R = lowest(poses[0]), poses[0, :3, :3]
        return (R @ (twists[0, 3:] + np.cross(twists[0, :3], c)))[:2]

    def slip_jacobian(poses, twists):
        c, R = lowest(poses[0]), poses[0, :3, :3]
        cross = np.array([[0, c[2], -c[1]], [-c[2], 0, c[0]], [c[1], -c[0], 0]])
        return (R @ np.hstack([cross, np.eye(3)]))[:2]

    m = la.Mechanism("disc")
    mass = 2.0
    m.add_body("disc", mass=mass, inertia=mass * radius**2 * np.array([0.25, 0.5, 0.25]))
    m.add_joint("root", "free", parent="world", child="disc")
    m.add_constraint(la.Constraint(("disc",), height, height_jacobian, name="floor"))
    m.add_constraint(la.Constraint(("disc",), slip, slip_jacobian, kind="velocity", size=2, name="rolling"))
    return m.build()


# --- loops ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_loops_stay_closed_and_the_energy_stays_in_a_band(order):
    model = la.models.four_bar().build()
    x0 = la.project(model, model.state(v=[3.0, 0.0, 0.0]))
    run = la.simulate(model, x0, dt=0.005, duration=20.0, method=la.Galerkin(order))
    assert run.constraint_error.max() < 2e-12  # measured 8e-13: a gap within tolerance is not closed further
    energy = run.energy.total
    # bands of the first and the last quarter
    first, last = np.ptp(energy[:1000]), np.ptp(energy[-1000:])
    assert last < 1.5 * first
    assert abs(energy[-1000:].mean() - energy[:1000].mean()) < 0.2 * first


def test_a_mechanism_that_is_redundant_everywhere():
    model = la.models.bricard().build()
    run = la.simulate(model, dt=0.01, duration=4.0, method=la.Galerkin(2, solver=TIGHT))
    assert run.constraint_error.max() < 1e-12
    # against explicit steps at the level of accelerations, whose loops drift
    other = la.simulate(model, dt=0.001, duration=1.0, method="rk4")
    fine = la.simulate(model, dt=0.001, duration=1.0, method=la.Galerkin(2))
    assert np.abs(fine.q[-1] - other.q[-1]).max() < 1e-4
    assert np.ptp(run.energy.total) < 0.2


def test_multipliers_of_the_steps_are_forces():
    model = la.models.four_bar().build()
    x0 = la.project(model, model.state(v=[1.0, 0.0, 0.0]))
    dt = 1e-3
    run = la.simulate(model, x0, dt=dt, duration=0.2, method=la.Galerkin(2))
    # the impulse at a node belongs to half a step on either side; the last step starts one row before the last
    impulses = run.memory["multipliers"][0]
    forces = run.multipliers["loop"]
    assert np.abs(impulses / dt - forces[-2]).max() < 1e-3 * np.abs(forces).max()


def test_a_start_that_is_open_is_refused_and_the_way_out_named():
    model = la.models.four_bar().build()
    with pytest.raises(la.ModelError, match=r"loop joint 'loop' is open by .*project"):
        la.simulate(model, model.state([0.1, 0.0, 0.0]), dt=0.01, duration=0.1, method=la.Galerkin(2))
    with pytest.raises(la.ModelError, match=r"loop joint 'loop' is opening at .*project"):
        la.simulate(model, model.state(v=[1.0, 0.0, 0.0]), dt=0.01, duration=0.1, method=la.Galerkin(2))
    with pytest.raises(la.ModelError, match=r"Constraint 'rod' is open by .*project"):
        la.simulate(rod(), dt=0.01, duration=0.1, method=la.Galerkin(2))


# --- constraints of the user ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_an_equality_constraint_is_a_rod(order):
    model = rod()
    assert row_count(model) == 1
    x0 = la.project(model, model.state([0.6, 0.0, -0.8], [0.0, 1.0, 0.0]))
    # the same as a spherical pendulum of a point mass with the same inertia, which does not turn here
    errors = []
    for n in (40, 80):
        run = la.simulate(model, x0, dt=0.4 / n, duration=0.4, method=la.Galerkin(order, solver=TIGHT))
        errors.append(run.q[-1])
        assert run.constraint_error.max() < 1e-13
    fine = la.simulate(model, x0, dt=0.4 / 320, duration=0.4, method=la.Galerkin(4, solver=TIGHT)).q[-1]
    slope = np.log2(np.linalg.norm(errors[0] - fine) / np.linalg.norm(errors[1] - fine))
    assert abs(slope - order) < 0.15
    # energy and the angular momentum about the vertical through the origin
    assert np.ptp(run.energy.total) < (2e-3 if order == 2 else 2e-7)


@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("pull", [0.0, 4.0], ids=["level", "slope"])
def test_a_knife_edge_keeps_the_order(order, pull):
    """On level ground it goes in circles, on a slope along a cycloid that does not lead downhill."""
    model = sleigh(pull)
    speed, spin, t = 0.7, 1.3, 2.0
    turn = spin * t
    place = speed / spin * np.array([np.sin(turn), 1.0 - np.cos(turn)])
    place += pull / (2.0 * spin) * np.array([np.sin(turn) ** 2 / spin, t - np.sin(2.0 * turn) / (2.0 * spin)])
    rate = (speed + pull / spin * np.sin(turn)) * np.array([np.cos(turn), np.sin(turn)])
    errors = []
    for n in {2: (40, 80), 4: (10, 20), 6: (8, 16)}[order]:
        run = la.simulate(
            model, model.state(v=[speed, 0.0, spin]), dt=t / n, duration=t, method=la.Galerkin(order, solver=TIGHT)
        )
        errors.append((np.linalg.norm(run.q[-1, :2] - place), np.linalg.norm(run.v[-1, :2] - rate)))
        # the angle is exact, and no end of a step slips
        assert run.q[-1, 2] == pytest.approx(turn, abs=1e-12)
        assert run.constraint_error.max() < 1e-12
    slopes = np.log2(np.array(errors[0]) / np.array(errors[1]))
    # measured 2.00, 4.00 and 5.99 on the slope; the speed on level ground is exact
    assert abs(slopes[0] - order) < 0.1
    assert errors[1][1] < 1e-12 or abs(slopes[1] - order) < 0.1


def test_a_disc_rolls_without_slipping():
    model = disc()
    x0 = la.project(model, model.state([0, 0, 0.5, 1, 0, 0, 0], [0.1, 3.0, 0.2, 1.5, 0, 0]))
    run = la.simulate(model, x0, dt=0.002, duration=1.0, method=la.Galerkin(2))
    assert run.constraint_error.max() < 1e-11
    energy = run.energy.total
    assert np.abs(energy - energy[0]).max() < 1e-4 * run.energy.kinetic[0]
    # the order, with a constraint of positions beside those of velocities
    ends = [
        la.simulate(model, x0, dt=0.5 / n, duration=0.5, method=la.Galerkin(2, solver=TIGHT)).q[-1]
        for n in (20, 40, 320)
    ]
    # measured 2.02
    assert abs(np.log2(np.linalg.norm(ends[0] - ends[2]) / np.linalg.norm(ends[1] - ends[2])) - 2.0) < 0.1


def test_constraints_need_a_method_that_has_them():
    with pytest.raises(la.UnsupportedError, match="galerkin"):
        la.simulate(sleigh(), dt=0.01, duration=0.1, method="rk4")
    with pytest.raises(la.UnsupportedError, match="velocity constraints"):
        la.simulate(sleigh(), dt=0.01, duration=0.1, method=la.Galerkin(2, solver=la.RIQN()))
    with pytest.raises(la.UnsupportedError, match="Broyden"):
        la.simulate(la.models.four_bar().build(), dt=0.01, duration=0.1, method=la.Galerkin(2, solver=la.Broyden()))


# --- root finders and guesses ---------------------------------------------------------------------------------------
def test_all_root_finders_find_the_same_steps():
    model = la.models.chain(6).build()
    x0 = model.state(np.linspace(0.3, 0.9, 6))
    runs = {
        solver.name: la.simulate(model, x0, dt=0.002, duration=0.2, method=la.Galerkin(2, solver=solver))
        for solver in (la.Newton(1e-13), la.RIQN(1e-13), la.Broyden(1e-13))
    }
    counts = {name: run.report.counters["iterations"] / run.steps for name, run in runs.items()}
    for run in runs.values():
        assert np.abs(run.q[-1] - runs["newton"].q[-1]).max() < 1e-10
    assert counts["newton"] < counts["broyden"] < counts["riqn"]


@pytest.mark.parametrize("guess", ["hold", "euler", "dynamics", "quadratic", "cubic"])
def test_every_guess_leads_to_the_same_steps(guess):
    model = la.models.chain(6).build()
    x0 = model.state(np.linspace(0.3, 0.9, 6))
    run = la.simulate(model, x0, dt=0.002, duration=0.2, method=la.Galerkin(2, guess=guess, solver=TIGHT))
    best = la.simulate(model, x0, dt=0.002, duration=0.2, method=la.Galerkin(2, solver=TIGHT))
    assert np.abs(run.q[-1] - best.q[-1]).max() < 1e-11


# --- controls at the nodes ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_control_may_have_a_value_at_each_node(order, tmp_path):
    model = la.models.double_pendulum().build()
    x0 = model.state([0.4, -0.2])

    def torque(t):
        return np.array([np.sin(6.0 * t), np.cos(4.0 * t)])

    exact = la.simulate(
        model, x0, dt=0.01, duration=0.4, method=la.Adaptive(1e-12, 1e-12), control=_fine(torque, 0.01, 40)
    )
    errors = []
    nodes = (0.0, 1.0) if order == 2 else (0.0, 0.5, 1.0)
    for n in (20, 40):
        dt = 0.4 / n
        control = np.array([[torque((k + c) * dt) for c in nodes] for k in range(n)])
        run = la.simulate(model, x0, dt=dt, duration=0.4, method=la.Galerkin(order, solver=TIGHT), control=control)
        errors.append(run.q[-1])
        assert np.allclose(run.tau[:-1], control[:, 0])
    fine = la.simulate(
        model, x0, dt=0.4 / 640, duration=0.4, method=la.Galerkin(4, solver=TIGHT),
        control=np.array([[torque((k + c) * 0.4 / 640) for c in (0.0, 0.5, 1.0)] for k in range(640)]),
    ).q[-1]  # fmt: skip
    slope = np.log2(np.linalg.norm(errors[0] - fine) / np.linalg.norm(errors[1] - fine))
    assert abs(slope - order) < 0.2
    # held controls, of whatever method, are of first order here
    assert np.linalg.norm(exact.q[-1] - fine) > 20 * np.linalg.norm(errors[1] - fine)  # measured 59 for order 2
    # a file keeps them
    run.save(tmp_path / "run.npz")
    assert np.array_equal(la.Trajectory.load(tmp_path / "run.npz").controls[0].control, control)


def _fine(torque, dt, n):
    """A control of one value in each step."""
    return np.array([torque(k * dt) for k in range(n)])


def test_controls_at_nodes_are_refused_where_there_are_none():
    model = la.models.pendulum().build()
    with pytest.raises(la.ModelError, match=r"expected \(10, 1\)"):
        la.simulate(model, dt=0.01, duration=0.1, method="rk4", control=np.zeros((10, 2, 1)))
    with pytest.raises(la.ModelError, match=r"or \(10, 3, 1\)"):
        la.simulate(model, dt=0.01, duration=0.1, method=la.Galerkin(4), control=np.zeros((10, 2, 1)))
