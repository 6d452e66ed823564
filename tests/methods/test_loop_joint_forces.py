"""Springs, dampers, rotors, motors, servos and limits of joints that close loops, under every method with loops."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.reference.samples import four_pins

SPRING = {"stiffness": 0.3, "damping": 0.003, "rest": 0.1}
PINS = "ABCD"


def worst(a, b) -> float:
    """Largest difference."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


def pins(run: la.Trajectory) -> np.ndarray:
    """Angles (rows, 4) of the pins A to D."""
    return np.column_stack([run.q[:, run.model.joint(name).q] for name in PINS])


def everywhere(**data) -> dict:
    return dict.fromkeys(PINS, data)


# --- which pin closes the loop does not matter ----------------------------------------------------------------------
# methods that do not hold a loop at all times, in position and rate, differ between cuts by less than their error
AGREE = {
    "rk4": 1e-12,  # measured 6e-15
    "adaptive": 1e-12,  # measured 1.1e-15
    "galerkin:2": 5e-10,  # measured 5e-11
    "galerkin:4": 1e-12,  # measured 4e-15
    "maximal": 1e-11,  # measured 3e-13
    "maximal-euler": 5e-6,  # measured 1.3e-6
    "euler": 5e-7,  # measured 1.2e-7
    "bdf:1": 5e-7,  # measured 1.1e-7
    "bdf:2": 1e-8,  # measured 1.5e-9
    "sdirk2": 1e-9,  # measured 1.9e-10
    "linearly-implicit-euler": 5e-7,  # measured 1e-7
}


@pytest.mark.parametrize("method", AGREE)
def test_any_pin_may_close_the_loop(method):
    """Springs and dampers on all pins, with each of them as the one that closes the loop."""
    runs = [
        la.simulate(four_pins(last, **everywhere(**SPRING)).build(), dt=1e-3, duration=0.3, method=method)
        for last in PINS
    ]
    assert np.ptp(pins(runs[0])) > 0.03
    for run in runs[:3]:
        assert worst(pins(run), pins(runs[3])) < AGREE[method]


@pytest.mark.parametrize(
    ("method", "order"), [("galerkin:2", 2), ("galerkin:4", 4), ("maximal", 2), ("bdf:2", 2), ("rk4", 4)]
)
def test_order_is_kept(method, order):
    model = four_pins(**everywhere(stiffness=3.0, damping=0.003, rest=0.5)).build()
    exact = la.simulate(model, dt=0.01, duration=0.2, method=la.Adaptive(1e-13, 1e-13)).q[-1]
    steps = (0.002, 0.001) if method == "bdf:2" else (0.005, 0.0025)
    errors = [np.abs(la.simulate(model, dt=dt, duration=0.2, method=method).q[-1] - exact).max() for dt in steps]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)  # measured 2.01, 4.00, 1.99, 1.97, 3.96


@pytest.mark.parametrize("method", ["galerkin:2", "galerkin:4", "maximal"])
def test_energy_is_bounded_with_a_spring_on_the_loop_joint(method):
    model = four_pins(D={"stiffness": 3.0, "rest": 0.5}).build()
    run = la.simulate(model, dt=0.004, duration=20.0, method=method)
    error = np.abs(run.energy.total - run.energy.total[0]) / np.ptp(run.energy.kinetic)
    half = len(error) // 2
    assert error.max() < {"galerkin:2": 5e-3, "galerkin:4": 2e-6, "maximal": 5e-3}[method]  # measured 2e-3, 1e-6, 3e-3
    assert error[half:].max() < 1.01 * error[:half].max()  # measured 1.0002, 1.000003, 1.00002
    assert run.constraint_error.max() < 1e-12  # measured 1.5e-14


# --- other kinds ----------------------------------------------------------------------------------------------------
def joined(kind: str, loop: bool, **data) -> la.Mechanism:
    """A body on a joint to the world, held by a second joint of free motion that carries nothing; or the other way."""
    m = la.Mechanism(kind)
    m.add_body("body", mass=2.0, com=(0.1, 0.05, -0.2), inertia=(0.2, 0.3, 0.25))
    there = {"parent_frame": la.pose((0.1, 0.0, 0.4), rpy=(0.2, 0.1, 0.0)), "child_frame": la.pose((0.0, 0.1, 0.2))}
    if loop:
        m.add_joint("float", "free", parent="world", child="body")
    m.add_joint("joint", kind, parent="world", child="body", **there, **data)
    return m


KINDS = {
    "prismatic": {"stiffness": 40.0, "damping": 0.5, "rest": 0.1, "axis": (0.3, 0.5, 0.8)},
    "spherical": {"stiffness": (3.0, 4.0, 5.0), "damping": 0.1},
    "cylindrical": {"stiffness": (40.0, 3.0), "damping": 0.2, "armature": (0.3, 0.05), "axis": (0.3, 0.5, 0.8)},
    "universal": {"stiffness": 3.0, "damping": 0.1, "axis": (1, 0, 0), "axis2": (0, 1, 0)},
    "planar": {"stiffness": 20.0, "damping": 0.3, "axis": (0.0, 0.6, 0.8)},
    "planar_free": {"stiffness": 20.0, "damping": 0.3, "axis": (0.0, 0.6, 0.8)},
    "free": {"stiffness": 20.0, "damping": 0.3},
}


@pytest.mark.parametrize("method", ["rk4", "galerkin:4", "maximal"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_joint_of_any_kind_moves_as_in_the_tree(kind, method):
    """A floating body that a joint with springs ties to the world, and the body that this joint carries."""
    tree, loop = joined(kind, False, **KINDS[kind]).build(), joined(kind, True, **KINDS[kind]).build()
    first = tree.state(v=0.3 * np.arange(1.0, tree.nv + 1.0))
    motion = la.to_maximal(tree, first.q, first.v)
    start = la.to_minimal(loop, motion.poses, motion.twists)
    runs = [la.simulate(*each, dt=2e-3, duration=0.3, method=method) for each in ((tree, first), (loop, start))]
    bodies = [run.poses("body") for run in runs]
    assert np.ptp(bodies[0], axis=0).max() > 0.02
    # measured 9e-11, 2e-11, 3e-11
    assert worst(bodies[1], bodies[0]) < 1e-9
    at = loop.joint("joint").q
    assert worst(runs[1].q[:, at], runs[0].q) < 1e-9  # measured 1.4e-11


def test_two_springs_on_one_body_and_rotors():
    """A rod between two sliders; both hinges, which close the loops, carry springs and rotors."""

    def rod(last: bool) -> la.Mechanism:
        m = la.Mechanism("rod")
        for k, axis in enumerate(((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))):
            m.add_body(f"slider{k}", mass=0.5 + k, inertia=(0.01, 0.01, 0.01))
            m.add_joint(f"rail{k}", "prismatic", parent="world", child=f"slider{k}", axis=axis)
        m.add_body("rod", mass=1.0, com=(0.2, 0.0, 0.0), inertia=(0.01, 0.02, 0.02))
        data = {"axis": (0.0, 1.0, 0.0), "stiffness": 2.0, "damping": 0.05, "armature": 0.02, "rest": 0.2}
        hinges = [
            ("hinge0", {"parent": "slider0", **data}),
            ("hinge1", {"parent": "slider1", "child_frame": la.pose((0.4, 0.0, 0.0)), **data}),
        ]
        if last:
            m.add_joint("float", "planar", parent="world", child="rod", axis=(0.0, 1.0, 0.0))
        for name, each in hinges:
            m.add_joint(name, "revolute", child="rod", **each)
        return m

    free, carried = rod(True).build(), rod(False).build()
    assert len(free.twins) == 2
    assert len(carried.twins) == 1
    q = {"rail0": -0.4 * np.cos(0.5), "rail1": -0.4 * np.sin(0.5), "hinge0": 0.5}
    one = carried.state(q)
    motion = la.to_maximal(carried, one.q)
    order = [carried.body_names.index(name) for name in free.body_names]
    two = la.to_minimal(free, motion.poses[order], motion.twists[order])
    for method in ("rk4", "galerkin:4", "maximal"):
        runs = [la.simulate(*each, dt=2e-3, duration=0.3, method=method) for each in ((carried, one), (free, two))]
        ours, theirs = (np.hstack([run.q[:, run.model.joint(k).q] for k in ("hinge0", "hinge1")]) for run in runs)
        assert np.ptp(ours) > 0.1
        assert worst(ours, theirs) < 1e-10  # measured 6e-12, 1.2e-12, 2e-14


# --- actuators ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["rk4", "galerkin:2", "maximal", "bdf:2", "maximal-euler"])
def test_a_motor_on_the_loop_joint_is_that_on_the_same_pin_of_the_tree(method):
    """Motors on two pins, of which one or the other closes the loop."""
    runs = []
    for last in "BD":
        m = four_pins(last)
        m.add_actuator("one", "B", gear=2.0)
        m.add_actuator("two", "D")
        model = m.build()
        assert model.nv == 4
        t = 1e-3 * np.arange(200)
        control = model.actuate({"one": 0.02 * np.sin(30 * t), "two": 0.05 * np.cos(20 * t)})
        runs.append(la.simulate(model, dt=1e-3, duration=0.2, method=method, control=control))
    assert np.ptp(pins(runs[0])) > 0.1
    # measured 6e-13, 9e-8, 2e-13, 7e-8, 7e-5
    bound = {"rk4": 1e-11, "galerkin:2": 1e-6, "maximal": 1e-11, "bdf:2": 1e-6, "maximal-euler": 5e-4}[method]
    assert worst(pins(runs[0]), pins(runs[1])) < bound


@pytest.mark.parametrize("bounded", [False, True])
def test_a_servo_on_the_loop_joint(bounded):
    runs = []
    for last in "BD":
        m = four_pins(last, B={"damping": 0.001}, D={"damping": 0.001})
        m.add_actuator("servo", "D", kp=10.0, kd=0.1, target=0.4, effort=0.8)
        m.enforce_limits(bounded)
        model = m.build()
        assert ("bounded servos" in model.features) == bounded
        runs.append(la.simulate(model, dt=1e-3, duration=0.5, method="maximal"))
    assert runs[0].q[-1, runs[0].model.joint("D").q] > 0.2
    assert worst(pins(runs[0]), pins(runs[1])) < 1e-9  # measured 1.2e-10


@pytest.mark.parametrize("method", ["maximal", "maximal-euler"])
def test_a_limit_on_the_loop_joint_holds(method):
    """It is never crossed, and holds as it does on the same pin in the tree."""
    runs, rates = [], {}
    for last in "BD":
        m = four_pins(last, B={"damping": 1e-4}, D={"limits": (-0.3, 1.0)})
        m.enforce_limits()
        model = m.build()
        assert "enforced limits" in model.features
        if not rates:
            start = la.project(model, model.state(v={"A": -4.0}))
            rates = {name: start.v[view.v] for name, view in model.joints.items()}
        runs.append(la.simulate(model, model.state(v=rates), dt=2e-3, duration=0.25, method=method))
    angles = [run.q[:, run.model.joint("D").q] for run in runs]
    for angle in angles:
        # measured -0.3 + 2e-11, and -0.3 - 3e-8
        assert -0.3 - {"maximal": 0.0, "maximal-euler": 1e-6}[method] < angle.min() < -0.2999
    # measured 1.6e-11 and 7e-4
    assert worst(pins(runs[0]), pins(runs[1])) < {"maximal": 2e-10, "maximal-euler": 3e-3}[method]


def test_an_effort_on_the_loop_joint_bounds_its_control():
    m = four_pins(D={"effort": 0.05})
    m.enforce_limits()
    model = m.build()
    runs = [
        la.simulate(model, dt=1e-3, duration=0.1, method="maximal", control=np.tile([0.0, 0.0, 0.0, size], (100, 1)))
        for size in (0.05, 5.0)
    ]
    assert worst(runs[0].q, runs[1].q) == 0.0


def test_friction_beside_a_spring_on_the_loop_joint():
    """``MaximalEuler`` takes both; friction holds what a spring alone would move."""
    angles = {}
    for friction in (0.0, 0.5):
        m = four_pins(D={"stiffness": 1.0, "rest": 0.2, "friction": friction})
        m.gravity = np.zeros(3)
        run = la.simulate(m.build(), dt=1e-3, duration=0.05, method="maximal-euler")
        angles[friction] = np.abs(pins(run)).max()
    assert angles[0.0] > 0.02
    assert angles[0.5] < 1e-9


# --- derivatives ----------------------------------------------------------------------------------------------------
CONTROL, DT = np.array([0.1, 0.2, 0.3, -0.2]), 0.01


def stepped(model: la.Model, state: la.State, method: str, control: np.ndarray = CONTROL) -> np.ndarray:
    """The next state (2 nv,)."""
    run = la.simulate(model, model.state(state.q, state.v), dt=DT, duration=DT, method=method, control=control[None])
    return np.concatenate([run.q[-1], run.v[-1]])


@pytest.mark.parametrize("method", ["galerkin:2", "galerkin:4", "maximal", "bdf:1"])
def test_derivatives_by_state_and_control(method):
    model = four_pins(**everywhere(**SPRING)).build()
    state = la.project(model, model.state({"A": 0.3}, {"A": 1.0}))
    found = la.linearize(model, method, state, CONTROL, DT)
    for j in range(4):
        ends = [stepped(model, state, method, CONTROL + sign * 1e-4 * np.eye(4)[j]) for sign in (1.0, -1.0)]
        assert worst((ends[0] - ends[1]) / 2e-4, found.B[:, j]) < 1e-8  # measured 4e-10
    for part in range(2):
        ends, starts = [], []
        for sign in (1e-5, -1e-5):
            change = np.zeros((2, 4))
            change[part] = sign * np.array([1.0, 0.3, -0.2, 0.5])
            near = la.project(model, model.state(state.q + change[0], state.v + change[1]))
            starts.append(np.concatenate([near.q, near.v]))
            ends.append(stepped(model, near, method))
        by = (ends[0] - ends[1]) / 2e-5
        assert np.abs(by).max() > 0.1
        assert worst(found.A @ (starts[0] - starts[1]) / 2e-5, by) < 1e-8  # measured 9e-10


def changed(body: str, mass: float, inertia: float) -> la.Model:
    m = four_pins(**everywhere(**SPRING))
    m.bodies[body].mass += mass
    m.bodies[body].inertia = m.bodies[body].inertia + inertia * np.diag([0.0, 1.0, 0.0])
    return m.build()


@pytest.mark.parametrize("method", ["galerkin:2", "galerkin:4", "maximal"])
def test_derivatives_by_mass_and_inertia_are_those_of_the_whole_body(method):
    model = four_pins(**everywhere(**SPRING)).build()
    state = la.project(model, model.state({"A": 0.3}, {"A": 1.0}))
    found = la.linearize(model, method, state, CONTROL, DT, parameters=("mass", "inertia")).C
    assert list(found["mass"]) == list(found["inertia"]) == ["crank", "coupler", "rocker"]
    for body in ("coupler", "rocker"):
        ends = [stepped(changed(body, sign * 1e-5, 0.0), state, method) for sign in (1.0, -1.0)]
        assert np.abs(found["mass"][body]).max() > 0.5
        assert worst((ends[0] - ends[1]) / 2e-5, found["mass"][body]) < 1e-7  # measured 1.1e-8
        ends = [stepped(changed(body, 0.0, sign * 1e-7), state, method) for sign in (1.0, -1.0)]
        assert np.abs(found["inertia"][body]).max() > 3.0
        assert worst((ends[0] - ends[1]) / 2e-7, found["inertia"][body][:, 1, 1]) < 1e-5  # measured 1e-6


@pytest.mark.parametrize("method", ["bdf:2", "sdirk2", "galerkin:2"])
def test_gradients_by_masses_stiffness_and_damping(method):
    """Of a sum over the last state, against differences over mechanisms that are built anew."""
    steps, controls = 20, np.tile(CONTROL, (20, 1))
    weights = np.arange(1.0, 5.0)

    def value(model: la.Model) -> float:
        run = la.simulate(model, dt=DT, duration=steps * DT, method=method, control=controls)
        return float(weights @ run.q[-1] + 0.1 * weights @ run.v[-1])

    def goal(_: la.Model, state: la.State) -> tuple:
        return float(weights @ state.q + 0.1 * weights @ state.v), weights, 0.1 * weights

    model = four_pins(**everywhere(**SPRING)).build()
    names = ("mass", "inertia", "stiffness", "damping")
    found = la.gradient(model, method, model.state(), controls, DT, la.Objective(final=goal), names)
    for body in ("coupler", "rocker"):
        by = [value(changed(body, sign * 1e-5, 0.0)) for sign in (1.0, -1.0)]
        assert worst((by[0] - by[1]) / 2e-5, found["mass"][body]) < 1e-8  # measured 6e-10
        by = [value(changed(body, 0.0, sign * 1e-7)) for sign in (1.0, -1.0)]
        assert worst((by[0] - by[1]) / 2e-7, found["inertia"][body][1, 1]) < 1e-6  # measured 1.2e-8
    for name in ("stiffness", "damping"):
        ends = []
        for sign in (1.0, -1.0):
            data = everywhere(**SPRING)
            data["D"] = {**SPRING, name: SPRING[name] + sign * 1e-5}
            ends.append(value(four_pins(**data).build()))
        assert worst((ends[0] - ends[1]) / 2e-5, found[name][3]) < 1e-8  # measured 1.5e-9


# --- contact --------------------------------------------------------------------------------------------------------
def test_a_body_that_is_cut_touches_the_ground_once():
    """A box on a rail with a damper, that falls on the ground: the rail closes a loop, or carries the box."""
    runs = []
    for loop in (False, True):
        m = la.Mechanism("box")
        m.add_body("box", mass=2.0, shape=la.Box((0.2, 0.2, 0.2)))
        if loop:
            m.add_joint("float", "free", parent="world", child="box")
        m.add_joint("rail", "prismatic", parent="world", child="box", damping=3.0, parent_frame=la.pose((0, 0, 0.15)))
        m.add_ground(friction=0.5)
        model = m.build()
        assert model.features >= {"contact"}
        start = model.state({"float": (0, 0, 0.15, 1, 0, 0, 0)}) if loop else model.state()
        runs.append(la.simulate(model, start, dt=0.005, duration=0.5, method="maximal"))
    heights = [run.q[:, run.model.joint("rail").q] for run in runs]
    assert worst(heights[0], heights[1]) < 1e-9  # measured 5e-12
    assert heights[0][-1] == pytest.approx(-0.05, abs=1e-8)  # measured 4e-10
    for run in runs:
        assert run.contacts.wrench("box")[-1, 5] == pytest.approx(2.0 * 9.81, rel=1e-6)  # measured 1e-7
