"""What contacts, limits and inequalities do at the end of a step: velocities are physical, forces account for them."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def _box(friction: float = 0.5, gravity: tuple[float, float, float] = (0, 0, -9.81)) -> la.Model:
    m = la.Mechanism("box", gravity=gravity)
    m.add_body("box", shape=la.Box((0.2, 0.2, 0.1)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="box")
    m.add_ground(friction=friction)
    return m.build()


def _slider(limits: tuple[float, float], gravity: float = -9.81) -> la.Model:
    m = la.Mechanism("slider", gravity=(0, 0, gravity))
    m.add_body("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("j", "prismatic", parent="world", child="b", axis=(0, 0, 1), limits=limits)
    m.enforce_limits()
    return m.build()


def _at(z: float) -> dict[str, list[float]]:
    return {"root": [0, 0, z, 1, 0, 0, 0]}


# --- at rest --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [0.01, 0.001])
@pytest.mark.parametrize("height", [0.05, 0.1])
def test_a_box_at_rest_has_no_velocity(dt: float, height: float) -> None:
    model = _box()
    run = la.simulate(model, model.state(_at(height)), dt=dt, duration=0.4, method="maximal")
    # 6e-14 m/s; half a step of free fall is 5e-2 and 5e-3
    assert np.abs(run.v[-5:]).max() < 1e-11
    assert run.energy.kinetic[-1] < 1e-24
    assert np.abs(run.momentum.linear[-1]).max() < 1e-11


def test_a_falling_box_keeps_its_velocity_up_to_the_touch() -> None:
    model = _box()
    run = la.simulate(model, model.state(_at(0.15)), dt=0.001, duration=0.2, method="maximal")
    falls = run.q[:, 2] - 0.05 > 1e-4
    # 2e-8 m/s by the barrier of contacts that are near
    assert np.abs(run.v[falls, 5] + 9.81 * run.t[falls]).max() < 1e-6
    landed = int(np.argmin(falls))
    assert abs(run.v[landed, 5]) < 1e-7  # 5e-9


@pytest.mark.parametrize("kp", [1e2, 1e5])
@pytest.mark.parametrize("dt", [0.005, 0.001])
def test_a_link_that_a_servo_presses_on_a_wall_stands_still(kp: float, dt: float) -> None:
    m = la.Mechanism("servo")
    m.add_body("link", shape=la.Capsule(0.03, 0.5, at=la.pose(xyz=(0, 0, -0.25))), mass=1.0)
    m.add_joint("j", "revolute", parent="world", child="link", axis=(0, 1, 0), parent_frame=la.pose(xyz=(0, 0, 1.0)))
    m.add_body("wall", shape=la.Box((0.1, 1, 1)), mass=1.0)
    m.add_joint("w", "fixed", parent="world", child="wall", parent_frame=la.pose(xyz=(0.3, 0, 0.6)))
    m.add_contact("link", "wall")
    m.add_actuator("s", "j", kp=kp, kd=kp / 100, target=-1.5)
    model = m.build()
    run = la.simulate(model, model.state({"j": 0.3}), dt=dt, duration=0.5, method="maximal")
    # 1e-12 rad/s; it was 300 rad/s and 4 kJ
    assert np.abs(run.v[-3:]).max() < 1e-8
    assert run.energy.kinetic[-1] < 1e-16


@pytest.mark.parametrize("push", [0.0, -1000.0])
def test_what_is_pressed_on_a_limit_has_no_velocity(push: float) -> None:
    model = _slider((-0.1, 1.0))
    run = la.simulate(model, model.state(), dt=0.01, duration=0.5, method="maximal", control=np.full((50, 1), push))
    assert np.abs(run.v[-3:]).max() < 1e-10  # 1e-15
    assert abs(run.q[-1, 0] + 0.1) < 1e-8


def test_a_control_on_a_limit_sees_no_velocity() -> None:
    model, seen = _slider((-1.0, 0.0), gravity=0.0), []

    def control(t: float, state: la.State) -> list[float]:
        seen.append(state.v[0])
        return [10.0 - 100.0 * state.v[0]]

    run = la.simulate(model, model.state(), dt=0.01, duration=0.5, method="maximal", control=control)
    # 1e-15; it saw 0.033 m/s and gave 6.7 N
    assert np.abs(seen[5:]).max() < 1e-10
    assert np.abs(run.tau[5:] - 10.0).max() < 1e-8


def test_an_inequality_holds_what_it_holds() -> None:
    model = _below_a_ceiling()
    run = la.simulate(model, model.state(q=[0.05], v=[1.0]), dt=0.01, duration=0.3, method="maximal",
                      control=np.full((30, 1), 50.0))  # fmt: skip
    assert run.q[:, 0].max() < 0.1 + 1e-9
    assert np.abs(run.v[-3:]).max() < 1e-10  # 1e-14


def _below_a_ceiling() -> la.Model:
    m = la.Mechanism("ceiling", gravity=(0, 0, 0))
    m.add_body("b", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("j", "prismatic", parent="world", child="b", axis=(0, 0, 1))

    def room(poses: np.ndarray) -> np.ndarray:
        return np.array([0.1 - poses[0, 2, 3]])

    def slope(poses: np.ndarray) -> np.ndarray:
        return np.array([[0, 0, 0, *(-poses[0, :3, :3].T[:, 2])]])

    m.add_constraint(la.Constraint("b", room, slope, size=1, kind="inequality"))
    return m.build()


# --- sticking -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_a_block_that_sticks_does_not_creep(dt: float) -> None:
    a = np.radians(26.5)
    model = _box(gravity=(9.81 * np.sin(a), 0, -9.81 * np.cos(a)))
    run = la.simulate(model, model.state(_at(0.05)), dt=dt, duration=10.0, method="maximal", save_every=10)
    # 6.3e-7 m with both steps; it was 8e-5 and 8e-4
    assert abs(run.q[-1, 0]) < 1e-6


def test_friction_of_its_own_barrier() -> None:
    with pytest.raises(la.ModelError, match="friction"):
        la.InteriorPoint(friction=-1.0)
    assert la.InteriorPoint(barrier=1e-4, warm=1e-4).creep == np.inf
    assert la.InteriorPoint(friction=3e-8).options()["friction"] == 3e-8


# --- contacts that joints block -------------------------------------------------------------------------------------
@pytest.mark.parametrize("gap", [0.0, 1e-6, 1e-4])
def test_a_puck_on_a_slide_does_not_stick_to_the_ground(gap: float) -> None:
    m = la.Mechanism("puck")
    m.add_body("puck", mass=1.0, shape=la.Box((0.2, 0.2, 0.2)))
    m.add_joint("x", "prismatic", parent="world", child="puck", axis=(1, 0, 0), parent_frame=la.pose((0, 0, 0.1 + gap)))
    m.add_ground(friction=0.8)
    model = m.build()
    run = la.simulate(model, model.state(v={"x": 0.5}), dt=0.002, duration=0.5, method="maximal")
    assert abs(run.q[-1, 0] - 0.25) < 1e-9  # 1e-16
    assert run.contacts.normal_force.max(initial=0.0) < 1e-6


def test_a_blocked_contact_may_be_deep() -> None:
    # margins of a file make it so; nothing can take the bodies apart, and nothing has to
    def puck(kind: str, *at: float) -> la.Model:
        m = la.Mechanism("puck")
        m.add_body("puck", mass=1.0, shape=la.Box((0.2, 0.2, 0.2)))
        frames = {"parent_frame": la.pose(np.add(at, (0, 0, 0.096))), "child_frame": la.pose(at)}
        m.add_joint("x", kind, parent="world", child="puck", axis=(1, 0, 0), **frames)
        m.add_ground(friction=0.8)
        return m.build()

    model = puck("prismatic", 0, 0, 0)
    run = la.simulate(model, model.state(v={"x": 0.5}), dt=0.002, duration=0.5, method="maximal")
    assert abs(run.q[-1, 0] - 0.25) < 1e-9  # 1e-16
    assert run.report.notes == []
    # a hinge at its lower edge can: it is noted, and the other edge turns out of the ground
    hinged = puck("revolute", 0, -0.1, -0.1)
    turned = la.simulate(hinged, hinged.state(), dt=0.002, duration=0.1, method="maximal")
    assert "interpenetrate by 0.004 m" in turned.report.notes[0]
    assert turned.q[-1, 0] > 0.004


@pytest.mark.parametrize("room", [0.0, 1e-10])
def test_a_puck_that_limits_hold_does_not_stick_to_the_ground(room: float) -> None:
    m = la.Mechanism("puck")
    m.add_body("slide", mass=0.1, inertia=(0.1, 0.1, 0.1))
    m.add_joint("x", "prismatic", parent="world", child="slide", axis=(1, 0, 0), parent_frame=la.pose((0, 0, 0.1)))
    m.add_body("puck", mass=1.0, shape=la.Box((0.2, 0.2, 0.2)))
    m.add_joint("z", "prismatic", parent="slide", child="puck", axis=(0, 0, 1), limits=(0.0, room))
    m.add_ground(friction=0.8)
    m.enforce_limits()
    model = m.build()
    run = la.simulate(model, model.state(v={"x": 0.5}), dt=0.002, duration=0.5, method="maximal")
    assert abs(run.q[-1, 0] - 0.25) < 1e-9  # 1e-15; it was glued, by 5 kN
    assert run.contacts.normal_force.max(initial=0.0) < 1e-6


def test_a_puck_between_two_slides_is_pushed_along_them() -> None:
    # along the slides the normal of the other one's side moves, across them it does not
    m = la.Mechanism("pushed", gravity=(0, 0, 0))
    for name, x in (("a", 0.0), ("b", 0.3)):
        m.add_body(name, mass=1.0, shape=la.Box((0.2, 0.2, 0.2)))
        m.add_joint(name, "prismatic", parent="world", child=name, axis=(1, 0, 0), parent_frame=la.pose((x, 0, 0.1)))
    m.add_ground(friction=0.8)
    m.add_contact("a", "b", friction=0.8)
    model = m.build()
    run = la.simulate(model, model.state(v={"a": 1.0}), dt=0.002, duration=0.5, method="maximal")
    # plastic: 0.5 m/s both; the barrier opens what nothing presses with 3e-4 m/s
    assert np.abs(run.v[-1] - 0.5).max() < 1e-3


# --- forces and momenta ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dt", [0.005, 0.01])
def test_forces_account_for_the_change_of_momentum(seed: int, dt: float) -> None:
    rng = np.random.default_rng(seed)
    m = la.Mechanism("pile")
    shapes = [la.Box((0.2, 0.15, 0.1)), la.Sphere(0.08), la.Box((0.1, 0.1, 0.2)), la.Capsule(0.05, 0.2)]
    state: dict[str, list[float]] = {}
    for k, shape in enumerate(shapes):
        m.add_body(f"b{k}", mass=0.5 + k, shape=shape)
        m.add_joint(f"j{k}", "free", parent="world", child=f"b{k}")
        turn = rng.normal(size=4)
        state[f"j{k}"] = [*rng.uniform(-0.05, 0.05, 2), 0.2 + 0.3 * k, *(turn / np.linalg.norm(turn))]
    m.add_ground(friction=0.6)
    for i in range(4):
        for j in range(i):
            m.add_contact(f"b{i}", f"b{j}", friction=0.4)
    model = m.build()
    run = la.simulate(model, model.state(state), dt=dt, duration=0.7, method="maximal")
    contacts = run.contacts
    for name, body in m.bodies.items():
        speed = np.array([la.jacobian(model, q, name, body.com)[3:] @ v for q, v in zip(run.q, run.v, strict=True)])
        force = contacts.wrench(name)[:-1, 3:] + body.mass * np.array([0, 0, -9.81])
        off = np.abs(body.mass * np.diff(speed, axis=0) - dt * force).max()
        # 4e-9 of the largest impulse; it was 0.3
        assert off < 1e-6 * np.abs(dt * force).max()
    friction = np.where(contacts.pair >= 0, contacts.friction, 0.0)
    assert (friction <= 0.6 * contacts.normal_force + 1e-9).all()


def test_contacts_of_a_control_that_gives_other_forces_are_an_error() -> None:
    model, rng = _box(), np.random.default_rng(0)
    run = la.simulate(model, model.state(_at(0.05)), dt=0.01, duration=0.1, method="maximal",
                      control=lambda t, x: rng.normal(size=6))  # fmt: skip
    with pytest.raises(la.ModelError, match="gave other forces"):
        _ = run.contacts


def test_contacts_of_a_run_that_went_on() -> None:
    model = _box()
    push = np.zeros((20, 6))
    push[:, 3] = 2.0
    x0 = model.state(_at(0.06))
    run = la.simulate(model, x0, dt=0.01, duration=0.2, method="maximal", control=push, save_every=3)
    more = la.resume(run, 0.2, control=lambda t, x: [0, 0, 0, -2.0 * t, 0, 0])
    whole = more.contacts
    assert len(whole.count) == len(more.q)
    np.testing.assert_array_equal(whole.normal_force[: len(run.q) - 1, :4], run.contacts.normal_force[:-1, :4])
    assert abs(whole.normal_force[-2].sum() - 9.81) < 1e-6


# --- (q, v) is the state --------------------------------------------------------------------------------------------
def test_a_run_from_any_row_goes_on_as_the_run_did() -> None:
    model = _box()
    start = model.state({"root": [0, 0, 0.12, 0.96, 0.2, 0.1, 0.16]}, {"root": [2.0, 1.0, 0.0, 0.5, 0.0, 0.0]})
    run = la.simulate(model, start, dt=0.002, duration=0.6, method="maximal")
    for row in (40, 150, 220):
        again = la.simulate(model, run.state(row), dt=0.002, duration=0.1, method="maximal")
        # 3e-8; products end within five per cent of the barrier
        assert np.abs(again.q - run.q[row : row + 51]).max() < 1e-6


def test_gradient_through_a_slide_that_ends_rolling() -> None:
    m = la.Mechanism("ball")
    m.add_body("ball", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(friction=0.3)
    model = m.build()
    method = la.Maximal(solver=la.InteriorPoint(tolerance=1e-12, barrier=1e-4, warm=1e-4))
    target, at, e = np.array([0.4, 0.1, 0.1]), {"root": [0, 0, 0.1005, 1, 0, 0, 0]}, 1e-3

    def value(v: np.ndarray) -> float:
        run = la.simulate(model, model.state(at, v), dt=0.01, duration=0.3, method=method)
        return 0.5 * float(np.sum((run.q[-1, :3] - target) ** 2))

    v = np.array([0.0, 0.0, 0.0, 1.0, 0.2, 0.0])
    objective = la.Reach("ball", target)
    found = la.gradient(model, method, model.state(at, v), np.zeros((30, 6)), 0.01, objective, ["v"])["v"]
    for k in (1, 3, 4):
        step = np.zeros(6)
        step[k] = e
        wanted = (value(v + step) - value(v - step)) / (2 * e)
        # 2e-4, as steps end within five per cent of the barrier
        assert abs(found[k] - wanted) < 1e-2 * abs(wanted)


# --- impacts at the end of a step -----------------------------------------------------------------------------------
def _thrown(seed: int) -> tuple[la.Model, la.State]:
    """A pile of two to five random bodies, thrown: masses from 0.1 to 10 kg, any friction."""
    rng = np.random.default_rng(seed)
    m, names = la.Mechanism("pile"), [f"b{k}" for k in range(2 + seed % 4)]
    for name in names:
        kind, s = str(rng.choice(("box", "sphere", "cylinder", "capsule"))), rng.uniform(0.05, 0.15, 3)
        shapes = {
            "box": la.Box(2 * s), "sphere": la.Sphere(s[0]), "cylinder": la.Cylinder(s[0], 2 * s[1]),
            "capsule": la.Capsule(s[0] / 2, 2 * s[1]),
        }  # fmt: skip
        m.add_body(name, shape=shapes[kind], mass=float(10 ** rng.uniform(-1, 1)))
        m.add_joint(f"j{name}", "free", parent="world", child=name)
    m.add_ground(friction=rng.uniform(0, 1))
    for i in range(len(names)):
        for j in range(i):
            m.add_contact(names[i], names[j], friction=float(rng.uniform(0, 1)))
    q, v = {}, {}
    for k, name in enumerate(names):
        turn = rng.normal(size=4)
        q[f"j{name}"] = [*(0.05 * rng.normal(size=2)), 0.3 + 0.45 * k, *(turn / np.linalg.norm(turn))]
        v[f"j{name}"] = np.concatenate([3 * rng.normal(size=3), 0.5 * rng.normal(size=3)])
    model = m.build()
    return model, model.state(q, v)


@pytest.mark.parametrize(("seed", "dt"), [(5, 0.005), (101, 0.005), (101, 0.01), (278, 0.002)])
def test_an_impact_of_uneven_bodies_has_an_end(seed: int, dt: float) -> None:
    # their momenta are stopped by products a million times those of the step before
    model, start = _thrown(seed)
    run = la.simulate(model, start, dt=dt, duration=200 * dt, method="maximal")
    assert np.diff(run.energy.total).max() < 1e-2 * run.energy.kinetic.max()  # 9e-3 at most
