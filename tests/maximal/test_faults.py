"""Maximal where frames, starts and faults are unusual: impacts of offset bodies, starts, controls, reports, names."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la

G = 9.81


@pytest.mark.parametrize("off", [-0.05, 0.0])
def test_a_ball_beside_its_frame_bounces_as_one_in_it(off):
    m = la.Mechanism("ball")
    m.add_body("ball", shape=la.Sphere(0.1, at=la.pose((0, 0, off))), mass=1.0)
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(friction=0.3, restitution=0.8)
    model = m.build()
    start = model.state({"root": [0, 0, 0.5 - off, 1, 0, 0, 0]})
    run = la.simulate(model, start, dt=0.005, duration=0.6, method="maximal")
    height = (run.poses("ball") @ [0, 0, off, 1])[:, 2]
    # it falls by 0.4 m and rises by 0.64 of it; measured 0.35599
    assert height[60:].max() == pytest.approx(0.1 + 0.64 * 0.4, abs=1e-3)
    assert run.report.counters["impacts"] == 1


def block(**more) -> la.Model:
    m = la.Mechanism("block")
    m.add_body("block", shape=la.Box((0.2, 0.2, 0.2)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="block")
    m.add_ground(friction=0.5, **more)
    return m.build()


def test_contacts_after_the_start_of_the_papers():
    model = block()
    start = model.state({"root": [0, 0, 0.1, 1, 0, 0, 0]})
    run = la.simulate(model, start, dt=0.01, duration=0.1, method=la.Maximal(start="seed"))
    # measured 9.81 from the second row on
    assert run.contacts.wrench("block")[2:, 5] == pytest.approx(G, rel=1e-3)


def test_a_control_is_asked_once_a_step_with_an_impact():
    model, asked = block(restitution=0.5), []

    def control(t: float, state: la.State) -> np.ndarray:
        asked.append(t)
        return np.zeros(6)

    start = model.state({"root": [0, 0, 0.3, 1, 0, 0, 0]})
    run = la.simulate(model, start, dt=0.01, duration=0.3, method="maximal", control=control)
    assert run.report.counters["impacts"] >= 1
    # the step that holds an impact is begun a second time, at the same time
    assert np.unique(asked) == pytest.approx(run.t[:-1], abs=1e-12)


def test_a_joint_held_by_its_limit_has_no_known_force():
    m = la.models.pendulum()
    m.joints["hinge"].limits = np.array([[-0.5, 0.5]])
    m.enforce_limits()
    model = m.build()
    free = la.simulate(model, model.state([0.2]), dt=0.01, duration=0.1, method="maximal")
    assert np.isfinite(free.joint_forces["hinge"]).all()
    run = la.simulate(model, model.state([0.2], [3.0]), dt=0.01, duration=0.3, method="maximal")
    with pytest.raises(la.UnsupportedError, match="limit of joint 'hinge' holds it at t = "):
        _ = run.joint_forces


def test_a_body_that_turns_too_fast_is_named():
    m = la.Mechanism("top")
    m.add_body("top", mass=1.0, inertia=(0.1, 0.2, 0.3))
    m.add_joint("root", "free", parent="world", child="top")
    model = m.build()
    with pytest.raises(la.ConvergenceError, match="body 'top' turns by 172 degrees"):
        la.simulate(model, model.state(v=[300.0, 1, 0, 0, 0, 0]), dt=0.01, duration=0.1, method="maximal")


def test_a_body_that_turns_too_fast_for_order_four_is_named():
    m = la.Mechanism("top")
    m.add_body("top", mass=1.0, inertia=(0.1, 0.2, 0.3))
    m.add_joint("root", "free", parent="world", child="top")
    model = m.build()
    with pytest.raises(la.ConvergenceError, match="body 'top' turns by 129 degrees in half a step"):
        la.simulate(model, model.state(v=[450.0, 1, 2, 0, 0, 0]), dt=0.01, duration=0.1, method=la.Maximal(4))


def test_tolerance_and_iterations_of_newtons_method_count_with_contacts():
    model, start = block(), {"root": [0, 0, 0.1001, 1, 0, 0, 0]}
    state = model.state(start, {"root": [0, 1, 0, 1, 0, 0]})

    def numbers(solver) -> tuple[float, int]:
        method = la.Maximal(solver=solver)
        _, _, (tolerance, *_), iterations = method._contact_numbers(model, method.start(model, state))
        return tolerance, iterations

    # what is given; defaults of Newton's method are not meant for contacts
    assert numbers(None) == numbers(la.Newton()) == numbers(la.InteriorPoint()) == (1e-10, 18)
    assert numbers(la.Newton(1e-14)) == (1e-14, 18)
    assert numbers(la.Newton(1e-6, 30)) == (1e-6, 30)
    with pytest.raises(la.ConvergenceError, match=r"\(1 iterations allowed\), worst at the contact of 'block'"):
        la.simulate(model, state, dt=0.01, duration=0.1, method=la.Maximal(solver=la.Newton(iterations=1)))
    # a tolerance below rounding is one of rounding
    run = la.simulate(model, state, dt=0.01, duration=0.1, method=la.Maximal(solver=la.Newton(1e-14)))
    assert run.report.failure is None


def test_an_option_that_a_solver_does_not_have_is_named():
    with pytest.raises(la.ModelError, match="solver 'newton' has no option 'foo'; its options are tolerance, iterat"):
        la.Maximal(solver={"name": "newton", "foo": 1})
    with pytest.raises(la.ModelError, match="Galerkin: solver 'riqn' has no option 'barrier'"):
        la.Galerkin(2, solver={"name": "riqn", "barrier": 1e-6})
    with pytest.raises(la.ModelError, match=r"there is no solver \['newton'\]; the solvers are newton, riqn"):
        la.Maximal(solver={"name": ["newton"]})
