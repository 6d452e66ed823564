"""``Maximal(order=4)``: order, what it keeps, what it refuses, and the slow reference that it agrees with."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract
from leastaction.reference import maximal_action
from leastaction.reference import samples as make
from leastaction.run.registry import check_supported, method_by_name
from leastaction.spatial import quaternion

METHOD = la.Maximal(4)


def double_pendulum():
    model = la.models.double_pendulum().build()
    return model, model.state(q=[1.2, 0.9], v=[1.0, -2.0]), (10, 20, 40)


def spherical_tree():
    """A free body, a hinge and two balls with springs, dampers and rotors; far from where a ball's spring jumps."""
    rng = np.random.default_rng(3)
    model = make.random_tree(["free", "spherical", "revolute", "spherical"], rng, springs=True).build()
    q = retract(model, model.neutral(), 0.5 * rng.normal(size=model.nv))
    return model, model.state(q, rng.normal(size=model.nv)), (20, 40, 80)


def spinning_top():
    m = la.Mechanism("top")
    m.add_body("top", mass=1.0, com=(0, 0, 0.1), inertia=(0.01, 0.01, 0.004))
    m.add_joint("tip", "spherical", parent="world", child="top")
    model = m.build()
    return model, model.state(quaternion.exp(np.array([0.5, 0.1, 0.0])), v=[0.3, 0.2, 40.0]), (40, 80, 160)


def four_bar():
    model = la.models.four_bar().build()
    return model, la.project(model, model.state(v=[3.0, 0.0, 0.0])), (80, 160, 320)


def pulled_chain():
    """A spring with a damper between two bodies."""
    m = la.models.chain(3, joint="spherical", length=0.5)
    m.add_force(
        la.PointSpring("link1", (0.1, 0, 0), "link3", (0, 0, -0.1), stiffness=20.0, damping=0.3, rest_length=0.2)
    )
    model = m.build()
    return model, model.state(*make.random_state(model, np.random.default_rng(1))), (100, 200, 400)


def rod():
    """A bob on three sliders, held at a constant distance by a constraint of the user; it starts on a slant."""

    def distance(poses):
        return np.array([0.5 * (poses[0, :3, 3] @ poses[0, :3, 3] - 1.0)])

    def jacobian(poses):
        return np.concatenate([np.zeros(3), poses[0, :3, :3].T @ poses[0, :3, 3]])[None]

    m = la.Mechanism("rod")
    for name in ("carrier", "middle", "bob"):
        m.add_body(name, mass=1.0 if name == "bob" else 0.1, inertia=(0.01, 0.01, 0.01))
    m.add_joint("x", "prismatic", parent="world", child="carrier", axis=(1, 0, 0))
    m.add_joint("y", "prismatic", parent="carrier", child="middle", axis=(0, 1, 0))
    m.add_joint("z", "prismatic", parent="middle", child="bob", axis=(0, 0, 1))
    m.add_constraint(la.Constraint(("bob",), distance, jacobian, name="rod"))
    model = m.build()
    return model, la.project(model, model.state(q=[0.8, 0.0, -0.6], v=[0.0, 1.5, 0.0])), (10, 20, 40)


def slopes(model, state, steps, duration=0.4):
    """Orders in q and v, from a run with Adaptive at 1e-13, or with small steps of Galerkin(8) where it refuses."""
    plain = "equality constraints" not in model.features
    method, dt = (la.Adaptive(1e-13, 1e-13), duration) if plain else (la.Galerkin(8), duration / 40)
    final = la.simulate(model, state, dt=dt, duration=duration, method=method).final
    errors = []
    for n in steps:
        run = la.simulate(model, state, dt=duration / n, duration=duration, method=METHOD, save_every=n)
        q, v = run.q[-1], run.v[-1]
        errors.append([np.linalg.norm(difference(model, final.q, q)), np.linalg.norm(v - final.v)])
    return np.polyfit(-np.log(steps), np.log(errors), 1)[0]


@pytest.mark.parametrize(
    "system",
    [
        double_pendulum,
        spherical_tree,
        spinning_top,
        pytest.param(four_bar, marks=pytest.mark.slow),
        pytest.param(pulled_chain, marks=pytest.mark.slow),
        pytest.param(rod, marks=pytest.mark.slow),
    ],
)
def test_order_four_in_q_and_v(system):
    found = slopes(*system())
    assert np.abs(found - 4.0).max() < 0.1, found  # measured 0.05


def test_gradient_of_the_reference_action():
    rng, h = np.random.default_rng(0), 0.1
    x, q = rng.normal(size=(3, 3)), quaternion.normalize(np.eye(4)[0] + 0.2 * rng.normal(size=(3, 4)))
    A = rng.normal(size=(3, 3))
    body = (1.3, A @ A.T)
    torque, force = maximal_action.body_gradient(*body, x, q, h)
    eps, found = 1e-5, np.zeros((2, 3, 3))
    for j in range(3):
        for k, axis in enumerate(np.eye(3)):
            ends = []
            for sign in (1.0, -1.0):
                moved, turned = x.copy(), q.copy()
                moved[j] += sign * eps * axis
                turned[j] = quaternion.multiply(quaternion.exp(sign * eps * axis), q[j])
                action = maximal_action.body_action
                ends.append([action(*body, x, turned, h), action(*body, moved, q, h)])
            found[:, j, k] = np.subtract(*ends) / (2 * eps)
    assert np.abs(found - [torque, force]).max() < 1e-6 * np.abs(torque).max()  # measured 3e-9
    # momentum: the three torques and forces of a free body add up to zero
    assert np.abs(torque.sum(axis=0)).max() < 1e-12  # measured 7e-15
    assert np.abs(force.sum(axis=0)).max() < 1e-12  # measured 3e-14


def test_the_reference_takes_the_same_steps():
    rng = np.random.default_rng(5)
    model = make.random_tree(["free", "spherical", "helical"], rng).build()
    q, v = make.random_state(model, rng)
    run = la.simulate(model, model.state(q, v), dt=0.02, duration=0.06, method=METHOD)
    end, rate = maximal_action.run(model, run.q[0], v, 0.02, 3)
    assert np.linalg.norm(difference(model, end, run.q[-1])) < 1e-11  # measured 1e-14
    assert np.abs(rate - run.v[-1]).max() < 1e-9  # measured 2e-13


def test_momentum_time_reversal_and_energy():
    rng = np.random.default_rng(7)
    m = make.random_tree(["free", "spherical", "revolute", "prismatic"], rng)
    m.gravity = np.zeros(3)
    model = m.build()
    state, method = model.state(*make.random_state(model, rng)), la.Maximal(4, solver=la.Newton(1e-14))
    run = la.simulate(model, state, dt=0.01, duration=2.0, method=method)
    momentum = la.momentum(model, run.q[[0, -1]], run.v[[0, -1]])
    assert np.abs(np.diff([momentum.linear, momentum.angular], axis=1)).max() < 1e-9  # measured 2e-11
    energy = run.energy.total
    assert np.abs(energy - energy[0]).max() < 1e-8 * abs(energy[0])  # measured 2e-10
    # the way back is the same steps
    back = la.simulate(model, model.state(run.q[-1], -run.v[-1]), dt=0.01, duration=2.0, method=method)
    assert np.linalg.norm(difference(model, run.q[0], back.q[-1])) < 1e-9  # measured 1e-11


def test_resume_is_exact_and_a_controlled_run_differs():
    model, state, _ = spherical_tree()
    push = np.random.default_rng(2).normal(size=(20, model.nv))
    whole = la.simulate(model, state, dt=0.01, duration=0.2, method=METHOD, control=push)
    half = la.simulate(model, state, dt=0.01, duration=0.1, method=METHOD, control=push[:10])
    again = la.resume(half, duration=0.1, control=push[10:])
    assert np.array_equal(again.q[-1], whole.q[-1])
    assert np.array_equal(again.v[-1], whole.v[-1])
    free = la.simulate(model, state, dt=0.01, duration=0.2, method=METHOD)
    assert np.abs(free.q[-1] - whole.q[-1]).max() > 1e-4


def test_what_order_four_refuses_is_named():
    assert method_by_name("maximal:4").options() == METHOD.options()
    assert METHOD.label == "maximal:4"
    with pytest.raises(la.ModelError, match="order must be 2 or 4, got 3"):
        la.Maximal(3)
    with pytest.raises(la.UnsupportedError, match="has no solver InteriorPoint"):
        la.Maximal(4, solver=la.InteriorPoint())
    with pytest.raises(la.UnsupportedError, match="belong to order 2"):
        la.Maximal(4, start="seed")
    with pytest.raises(la.UnsupportedError, match="belong to order 2"):
        la.Maximal(4, rest_speed=0.1)
    model, state, _ = double_pendulum()
    with pytest.raises(la.UnsupportedError, match=r"maximal:4 has no derivative of its step; order 2 has one"):
        la.linearize(model, METHOD, state, None, 0.01)
    # features
    m = la.Mechanism("ball")
    m.add_body("ball", shape=la.Sphere(0.1), mass=1.0)
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(restitution=0.5)
    with pytest.raises(la.UnsupportedError, match=r"has contact, which maximal:4 cannot honour; these can: .*maximal"):
        check_supported(METHOD, m.build())
    limited = la.models.chain(2)
    limited.joints["joint1"].limits = np.array([[-1.0, 1.0]])
    limited.enforce_limits(True)
    with pytest.raises(la.UnsupportedError, match="has enforced limits, which maximal:4 cannot honour"):
        check_supported(METHOD, limited.build())
    # and a body that turns too far in a step
    m = la.Mechanism("rotor")
    m.add_body("disc", mass=1.0, inertia=(0.1, 0.1, 0.2))
    m.add_joint("axle", "revolute", parent="world", child="disc", axis=(0, 0, 1))
    rotor = m.build()
    with pytest.raises(la.ConvergenceError, match="body 'disc' turns by 90 degrees or more in half a step"):
        la.simulate(rotor, rotor.state(v=[35.0]), dt=0.1, duration=0.1, method=METHOD)
    run = la.simulate(rotor, rotor.state(v=[29.0]), dt=0.1, duration=0.1, method=METHOD)
    assert abs(run.v[-1, 0] - 29.0) < 1e-10  # measured 0


@pytest.mark.slow
def test_loops_stay_closed_at_every_node():
    model, state, _ = four_bar()
    run = la.simulate(model, state, dt=0.01, duration=10.0, method=METHOD)
    assert np.abs(run.constraint_error).max() < 1e-12  # measured 3e-15
    energy = run.energy.total
    assert np.ptp(energy) < 2e-4 * np.abs(energy).max()  # measured 4e-5, the same in both halves
    # the middle node of the last step
    from leastaction.dynamics import legendre

    gap, rate = np.zeros(model.constraint_size), np.zeros(model.constraint_size)
    memory = run.memory
    legendre.gaps_and_rates(model.system, 0.0, memory["past"][0], np.zeros(model.nv), gap, rate)
    assert np.abs(gap).max() < 1e-12  # measured 4e-16
