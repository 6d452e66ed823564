"""Servos whose effort is enforced, under Maximal: free inside the band, the effort outside, and the corner between."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

G, H = 9.81, 0.01


def slide(servos: list[dict], mass: float = 2.0, **joint) -> la.Mechanism:
    """A mass on a vertical rail, whose discrete momentum is mass times displacement over the step, exactly."""
    m = la.Mechanism("slide", gravity=(0.0, 0.0, -G))
    m.add_body("mass", mass=mass, inertia=(0.1, 0.1, 0.1))
    m.add_joint("rail", "prismatic", parent="world", child="mass", axis=(0.0, 0.0, 1.0), **joint)
    for k, servo in enumerate(servos):
        m.add_actuator(f"servo{k}", "rail", **servo)
    m.enforce_limits()
    return m


def arm(**servo) -> la.Mechanism:
    """A link with inertia 0.35 kg m^2 about its hinge, that hangs sideways: 4.9 N m hold it."""
    m = la.Mechanism("arm", gravity=(0.0, -G, 0.0))
    m.add_body("link", mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.1, 0.1))
    m.add_joint("hinge", "revolute", parent="world", child="link")
    m.add_actuator("servo", "hinge", **servo)
    return m


def chain(efforts: tuple[float, float, float], limits: bool = True) -> la.Mechanism:
    m = la.Mechanism("chain", gravity=(0.0, 0.0, -G))
    for k in range(3):
        at = la.pose((0.4 if k else 0.0, 0.0, 0.0))
        m.add_body(f"link{k}", mass=1.0 - 0.2 * k, com=(0.2, 0.0, 0.0), inertia=(0.02, 0.03, 0.04))
        m.add_joint(
            f"joint{k}", "revolute", parent=f"link{k - 1}" if k else "world", child=f"link{k}",
            axis=((0.0, 1.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))[k], parent_frame=at, damping=0.05, stiffness=1.0,
        )  # fmt: skip
        gains = {"kp": 60.0, "target": (-0.3, 0.4, 0.2)[k]} if k < 2 else {}
        m.add_actuator(f"servo{k}", f"joint{k}", kd=2.0, gear=(1.0, 2.0, -1.0)[k], effort=efforts[k], **gains)
    m.enforce_limits(limits)
    return m


def exact(servos: list[dict], mass: float, tau: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray, int]:
    """Positions and forces of the slide, and steps with a servo at its effort.

    The step's one equation is monotone, and solved by bisection.
    """
    stiff = np.array([s.get("gear", 1.0) ** 2 * s.get("kp", 0.0) for s in servos])
    damp = np.array([s.get("gear", 1.0) ** 2 * s.get("kd", 0.0) for s in servos])
    rest = np.array([s.get("target", 0.0) / s.get("gear", 1.0) for s in servos])
    most = np.array([abs(s.get("gear", 1.0)) * s.get("effort", np.inf) for s in servos])
    share = stiff / stiff.sum() if stiff.any() else damp / damp.sum()
    q, p, places, forces, cut = 0.0, 0.0, [0.0], [], 0
    for input_force in tau:

        def pull(xi: float, q: float = q, input_force: float = input_force) -> np.ndarray:
            return stiff * (rest - q - 0.5 * xi) - damp * xi / dt + share * input_force

        low, high = -1.0, 1.0
        for _ in range(100):
            xi = 0.5 * (low + high)
            if mass * xi / dt - p - 0.5 * dt * (np.clip(pull(xi), -most, most).sum() - mass * G) > 0.0:
                high = xi
            else:
                low = xi
        forces.append(np.clip(pull(xi), -most, most).sum())
        cut += bool((np.abs(pull(xi)) > most).any())
        q, p = q + xi, mass * xi / dt + 0.5 * dt * (forces[-1] - mass * G)
        places.append(q)
    return np.array(places), np.array(forces), cut


def forces_of(run: la.Trajectory, mass: float, dt: float) -> np.ndarray:
    """What acted on the slide beside gravity, from its momenta."""
    return mass * (np.diff(run.v[:, 0]) / dt + G)


SEVERAL = [
    {"gear": 2.0, "kp": 300.0, "kd": 20.0, "target": 0.4, "effort": 14.0},
    {"gear": -1.0, "kp": 50.0, "kd": 1.0, "target": -0.6, "effort": 6.0},
    {"kd": 3.0},
]
STIFF = [{"kp": 1e6, "kd": 2e3, "target": 0.4, "effort": 30.0}]
RATE = [{"gear": 3.0, "kd": 40.0, "effort": 8.0}]


@pytest.mark.parametrize(
    ("servos", "size", "places", "forces"),
    [
        # measured 8e-10 m and 6e-6 N of 34, what the barrier of 2e-9 J leaves
        (SEVERAL, 20.0, 1e-8, 1e-4),
        # measured 1e-9 m and 1.3e-7 N of 30
        (STIFF, 2000.0, 1e-8, 2e-6),
        # measured 4e-7 m and 7e-5 N of 24, at the corner; what a damper leaves adds up
        (RATE, 1000.0, 4e-6, 1e-3),
    ],
)
def test_a_slide_moves_as_the_exact_clip_of_its_servos_says(servos, size, places, forces):
    """Several servos on a coordinate with a band each, a stiff one that crosses its band, one without a spring."""
    model, tau = slide(servos).build(), size * np.sin(0.05 * np.arange(300))
    run = la.simulate(model, dt=H, duration=3.0, method="maximal", control=tau[:, None])
    q, f, cut = exact(servos, 2.0, tau, H)
    assert np.abs(run.q[:, 0] - q).max() < places
    assert np.abs(forces_of(run, 2.0, H) - f).max() < forces
    assert cut > 100  # 300, 299 and 226 of 300 steps
    assert run.report.limits == {}
    assert run.report.counters["iterations"] < 3.2 * run.steps  # measured 3.01 to 3.12
    assert run.report.counters["restarts"] == 0


def test_a_wide_bound_changes_nothing():
    control = np.outer(np.ones(200), [3.0, -2.0, 1.0])
    free, bounded = chain((1e4,) * 3, limits=False).build(), chain((1e4,) * 3).build()
    one, two = (la.simulate(m, dt=H, duration=2.0, method="maximal", control=control) for m in (free, bounded))
    assert np.abs(one.q - two.q).max() < 1e-9  # measured 3e-14


def test_an_arm_that_a_weak_servo_cannot_lift_moves_as_under_its_effort():
    """Every step gives the effort: the motion is that of a motor with this torque, and momentum is balanced."""
    weak = arm(kp=100.0, kd=5.0, target=0.5, effort=3.0)
    weak.enforce_limits()
    motor = arm().build()
    one = la.simulate(weak.build(), dt=H, duration=0.5, method="maximal")
    two = la.simulate(motor, dt=H, duration=0.5, method="maximal", control=np.full((50, 1), 3.0))
    assert np.abs(one.q - two.q).max() < 1e-9  # measured 2e-10
    # without gravity every step adds the same
    weak = arm(kp=1e6, target=2.0, effort=3.0)
    weak.gravity = np.zeros(3)
    weak.enforce_limits()
    run = la.simulate(weak.build(), dt=H, duration=0.5, method="maximal")
    gained = np.diff(run.momentum.angular[:, 2])
    assert np.abs(gained - 3.0 * H).max() < 1e-9  # measured 6e-12 N m s of 0.03


def test_a_stiff_servo_crosses_its_band_without_chatter():
    """Gain 1e6 and effort 10 at 10 ms: the band is 40 microradians wide, a step moves by 3 000 of them."""
    m = arm(kp=1e6, target=0.5, effort=10.0)
    m.gravity = np.zeros(3)
    m.enforce_limits()
    run = la.simulate(m.build(), dt=H, duration=10.0, method="maximal")
    torque = 0.35 * np.diff(run.v[:, 0]) / H
    assert np.abs(torque).max() < 10.0 + 1e-8  # measured 1.6e-10 above
    # one change of sign for each time the arm passes its target, the effort in all other steps, and energy stays
    passed = np.count_nonzero(np.diff(np.sign(run.q[:, 0] - 0.5)))
    assert passed > 20  # measured 26 in 1000 steps
    assert np.count_nonzero(np.diff(np.sign(torque))) == passed
    assert np.count_nonzero(np.abs(torque) < 10.0 - 1e-6) <= passed
    energy = run.energy.total
    assert 0.99 * energy[0] < energy.min() <= energy.max() < 1.1 * energy[0]  # measured 5.00 to 5.32 J of 5
    assert run.report.counters["iterations"] < 3.2 * run.steps  # measured 2.99
    assert run.report.counters["restarts"] == 0


def test_a_quadruped_with_limits_contacts_and_bounded_servos():
    """It lands and stands on servos that are strong enough, and sinks to the ground on others."""
    heights = {}
    for effort in (33.5, 3.0):
        m = la.models.quadruped()
        for name, motor in list(m.actuators.items()):
            target = {"hip": 0.0, "thigh": 0.9, "calf": -1.8}[name.split("_")[1]]
            del m.actuators[name]
            m.add_actuator(name, motor.joint, kp=100.0, kd=3.0, target=target, effort=effort)
        m.add_ground(friction=0.8)
        m.enforce_limits()
        model = m.build()
        assert {"contact", "enforced limits", "bounded servos"} <= model.features
        q = model.neutral()
        q[2] = 0.35
        for name, view in model.joints.items():
            q[view.q] = 1.2 if "thigh" in name else -1.6 if "calf" in name else q[view.q]
        run = la.simulate(model, model.state(q), dt=0.005, duration=1.5, method="maximal")
        heights[effort] = run.q[-1, 2]
        assert run.report.counters["iterations"] < 6.0 * run.steps  # measured 3.2 and 3.9
    assert heights[33.5] > 0.25  # measured 0.261 of 0.269 without weight
    assert heights[3.0] < 0.15  # measured 0.129


def test_derivative_of_a_step_by_finite_differences():
    """A servo at its effort, one inside its band, one that is a damper at its effort."""
    model = chain((4.0, 30.0, 0.2)).build()
    method = la.Maximal(solver=la.InteriorPoint(tolerance=1e-13))
    x, u = model.state([0.5, 0.1, 0.25], [0.3, -0.4, 0.5]), np.array([0.5, -0.2, 0.1])
    found = la.linearize(model, method, x, u, H)

    def end(z: np.ndarray) -> np.ndarray:
        run = la.simulate(model, model.state(z[:3], z[3:6]), dt=H, duration=H, method=method, control=z[None, 6:])
        return np.concatenate([run.q[-1], run.v[-1]])

    z, columns = np.concatenate([x.q, x.v, u]), []
    for k in range(9):
        step = np.zeros(9)
        step[k] = 1e-5 if k < 6 else 1e-3
        columns.append((end(z + step) - end(z - step)) / (2.0 * step[k]))
    difference = np.array(columns).T
    # a run ends its iterations near the barrier, the derivative is taken at it
    assert np.abs(found.A - difference[:, :6]).max() < 5e-6  # measured 2.5e-7 of 26
    assert np.abs(found.B - difference[:, 6:]).max() < 5e-7  # measured 2.2e-8 of 0.1
    # the input of a servo at its effort does nothing
    assert np.abs(found.B[:, [0, 2]]).max() < 1e-6  # measured 8e-8
    assert np.abs(found.B[:, 1]).max() > 0.1


@pytest.mark.slow
def test_whole_systems_give_the_same_steps():
    model, control = chain((4.0, 30.0, 0.2)).build(), np.outer(np.ones(20), [0.5, -0.2, 0.1])
    runs = [
        la.simulate(model, dt=H, duration=0.2, method=la.Maximal(linear=linear), control=control)
        for linear in ("nullspace", "graph", "dense", "scipy")
    ]
    for run in runs[1:]:
        assert np.abs(run.q - runs[0].q).max() < 1e-11  # measured 1e-15
        assert run.report.counters == runs[0].report.counters


def test_what_is_refused():
    weak = {"kp": 10.0, "effort": 1.0}
    beside = slide([weak])
    beside.add_actuator("motor", "rail")
    cases = [
        (slide([weak]), la.Maximal(start="seed"), 'effort know start="legendre" only'),
        (slide([weak]), la.Maximal(4), "bounded servos, which maximal:4 cannot honour"),
        (
            slide([weak]), la.Maximal(linear="graph", solver=la.InteriorPoint(variant="seed")),
            'bounded servos; InteriorPoint(variant="exact") honours them',
        ),
        (slide([weak, weak], effort=1.5), la.Maximal(), "would bound 2 servos together"),
        (beside, la.Maximal(), "actuator 'motor': its control cannot be told from that of servo 'servo0' on"),
    ]  # fmt: skip
    for m, method, words in cases:
        with pytest.raises(la.UnsupportedError) as caught:
            la.simulate(m.build(), dt=H, duration=H, method=method)
        assert words in str(caught.value)
    # efforts of their own within that of the joint are fine
    la.simulate(slide([weak, weak], effort=2.0).build(), dt=H, duration=H, method="maximal")
