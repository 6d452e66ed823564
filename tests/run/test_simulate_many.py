"""Many environments: lanes, loop and threads give what ``simulate`` gives, and a failure stays with its environment."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cfunc, types

import leastaction as la
from leastaction.run.ensemble_lanes import has_lanes

DT, STEPS = 0.002, 50


def screws(passive: bool = True) -> la.Model:
    """A branching tree of every kind of screw, with massless rows, rotors, springs and dampers."""
    rng = np.random.default_rng(7)
    m = la.Mechanism("screws")
    kinds = ("revolute", "universal", "prismatic", "helical", "planar", "revolute", "cylindrical")
    parents = ("world", "b0", "b1", "b0", "b3", "b3", "world")
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        A = rng.normal(size=(3, 3)) * 0.2
        J = A @ A.T + 0.01 * np.eye(3)
        m.add_body(f"b{i}", mass=rng.uniform(0.5, 2), com=rng.normal(size=3) * 0.2, inertia=np.trace(J) * np.eye(3) - J)
        more = {"axis2": rng.normal(size=3)} if kind == "universal" else {"pitch": 0.1} if kind == "helical" else {}
        forces = {"armature": 0.05, "stiffness": 3.0, "damping": 0.2, "rest": 0.1} if passive and i % 2 else {}
        m.add_joint(
            f"j{i}",
            kind,
            parent=parent,
            child=f"b{i}",
            axis=rng.normal(size=3),
            parent_frame=la.pose(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            **more,
            **forces,
        )
    return m.build()


def starts(model: la.Model, number: int, seed: int = 0) -> list[la.State]:
    rng = np.random.default_rng(seed)
    return [model.state(rng.uniform(-0.5, 0.5, model.nq), rng.normal(size=model.nv)) for _ in range(number)]


def alone(model: la.Model, state: la.State, method, control=None, every: int = 1) -> la.Trajectory:
    return la.simulate(
        model, state, dt=DT, duration=STEPS * DT, method=method, control=control, save_every=every, on_failure="keep"
    )


def many(model: la.Model, states, method, **more):
    return la.simulate_many(model, states, dt=DT, duration=STEPS * DT, method=method, **more)


@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("guess", ["quadratic", "cubic", "euler", "hold"])
def test_lanes_give_what_single_environments_give(passive, guess):
    model, method = screws(passive), la.Galerkin(2, guess=guess)
    states = starts(model, 6)
    out = many(model, states, method)
    assert out.lanes
    assert not out.failed.any()
    runs = [alone(model, state, method) for state in states]
    for e, run in enumerate(runs):
        assert np.array_equal(out.t, run.t)
        # measured 3e-15 and 2e-13, from directions that are rounded in another place
        assert np.abs(out.q[e] - run.q).max() < 1e-13
        assert np.abs(out.v[e] - run.v).max() < 1e-11
    for name in ("iterations", "evaluations", "backtracks"):
        # measured 0; rounding may cost a lane an iteration
        assert abs(out.counters[name] - sum(run.report.counters[name] for run in runs)) <= 3


@pytest.mark.parametrize("shape", ["each", "all"])
def test_controls_of_each_environment_and_of_all(shape):
    model, method = screws(), la.Galerkin(2)
    states, rng = starts(model, 5), np.random.default_rng(1)
    controls = rng.normal(size=(5, STEPS, model.nv)) if shape == "each" else rng.normal(size=(STEPS, model.nv))
    out = many(model, states, method, control=controls)
    assert out.lanes
    free = many(model, states, method)
    for e, state in enumerate(states):
        run = alone(model, state, method, controls[e] if shape == "each" else controls)
        # measured 2e-16; the controls move it by 5e-3 at least
        assert np.abs(out.q[e] - run.q).max() < 1e-14
        assert np.abs(out.q[e] - free.q[e]).max() > 1e-3


def test_a_failure_stays_with_its_environment():
    model, method = la.models.chain(6).build(), la.Galerkin(2, solver=la.Newton(iterations=6))
    states = starts(model, 7)
    # far too fast for this step
    states[2] = model.state(states[2].q, 500.0 * np.ones(model.nv))
    out = many(model, states, method, save_every=4)
    assert out.failed.tolist() == [False, False, True, False, False, False, False]
    run = alone(model, states[2], method, every=4)
    (failure,) = out.failures
    assert failure.environment == 2
    assert failure.step == run.steps
    assert failure.t == pytest.approx(run.steps * DT)
    assert "did not converge" in failure.reason
    # the rest of its rows is its last good state; nothing is lost and nothing is not finite
    assert np.isfinite(out.q).all()
    assert np.isfinite(out.v).all()
    # measured 0
    assert np.abs(out.q[2, -1] - run.q[-1]).max() < 1e-14
    # the others do not notice
    good = [e for e in range(7) if e != 2]
    rest = many(model, [states[e] for e in good], method, save_every=4)
    # measured 0
    assert np.array_equal(out.q[good], rest.q)
    with pytest.raises(la.ConvergenceError, match="1 of 7 environments failed; environment 2: the root") as caught:
        many(model, states, method, on_failure="raise")
    assert caught.value.run.failed.sum() == 1


def test_a_failure_in_the_middle_goes_on_alone_from_there():
    model, method = la.models.chain(3).build(), la.Galerkin(2, solver=la.Newton(iterations=3))
    states = starts(model, 4)
    controls = np.zeros((4, STEPS, model.nv))
    # a blow in the middle of the run
    controls[1, 20] = 2e6
    out = many(model, states, method, control=controls)
    run = alone(model, states[1], method, controls[1])
    assert run.steps == 20
    assert [(f.environment, f.step) for f in out.failures] == [(1, 20)]
    # measured 8e-17
    assert np.abs(out.q[1, :21] - run.q).max() < 1e-14
    assert np.array_equal(out.q[1, 21:], np.repeat(out.q[1, 20:21], STEPS - 20, axis=0))
    for e in (0, 2, 3):
        # measured 0
        assert np.abs(out.q[e] - alone(model, states[e], method).q).max() < 1e-14


def test_lanes_cut_their_steps_one_by_one():
    model, method = la.models.chain(8).build(), la.Galerkin(2)
    rng = np.random.default_rng(3)
    states = [model.state(rng.uniform(-2, 2, 8), 8.0 * rng.normal(size=8)) for _ in range(8)]
    # steps so large that half of the environments fail, sooner or later, and the others need the line search
    out = la.simulate_many(model, states, dt=0.03, duration=0.3, method=method)
    runs = [la.simulate(model, x, dt=0.03, duration=0.3, method=method, on_failure="keep") for x in states]
    assert sum(runs[e].report.counters["backtracks"] for e in range(8) if not out.failed[e]) > 0
    assert [(f.environment, f.step) for f in out.failures] == [(0, 0), (1, 1), (3, 0), (7, 4)]
    for e, run in enumerate(runs):
        assert out.failed[e] == (run.report.failure is not None)
        # measured 3e-14
        assert np.abs(out.q[e, : run.steps + 1] - run.q).max() < 1e-12


def test_threads_change_nothing():
    model, method = screws(), la.Galerkin(2)
    states = starts(model, 11)
    one, two = many(model, states, method), many(model, states, method, threads=2)
    assert np.array_equal(one.q, two.q)
    assert np.array_equal(one.v, two.v)
    assert one.counters == two.counters


def test_rows_are_those_of_simulate():
    model, method = screws(), la.Galerkin(2)
    states = starts(model, 2)
    out = many(model, states, method, save_every=7)
    run = alone(model, states[1], method, every=7)
    assert np.array_equal(out.t, run.t)
    assert out.q.shape == (2, len(run.t), model.nq)
    # measured 6e-17 and 1e-15
    assert np.abs(out.q[1] - run.q).max() < 1e-14
    assert np.abs(out.v[1] - run.v).max() < 1e-13
    last = out.state(1)
    assert last.t == run.t[-1]
    assert np.array_equal(last.q, out.q[1, -1])


@pytest.mark.parametrize("method", ["rk4", "euler", "galerkin:4", "adaptive"])
def test_other_methods_loop_over_the_environments(method):
    model = la.models.chain(2).build()
    states = starts(model, 3)
    out = many(model, states, method)
    assert not out.lanes
    for e, state in enumerate(states):
        # measured 0: the same compiled calls
        assert np.array_equal(out.q[e], alone(model, state, method).q)


def test_what_has_lanes():
    ball = la.models.spherical_pendulum().build()
    pushed = la.models.chain(2)
    pushed.add_force(la.PointForce("link2", (0, 0, 0), (0, 0, 1.0)))
    assert has_lanes(la.Galerkin(2, guess="euler", solver=la.Newton(tolerance=1e-8, iterations=5)), screws())
    assert not has_lanes(la.Galerkin(2, guess="dynamics"), screws())
    assert not has_lanes(la.Galerkin(2, solver=la.RIQN()), screws())
    assert not has_lanes(la.Galerkin(4), screws())
    assert not has_lanes(la.RungeKutta(4), screws())
    assert not has_lanes(la.Galerkin(2), ball)
    assert not has_lanes(la.Galerkin(2), pushed.build())
    states = [ball.state(None, [0.1 * e, 0.2, 0.3]) for e in range(3)]
    out = many(ball, states, la.Galerkin(2))
    for e, state in enumerate(states):
        assert np.array_equal(out.q[e], alone(ball, state, la.Galerkin(2)).q)


def test_functions_of_the_user_are_asked():
    model, method = la.models.chain(2).build(), la.Galerkin(2)
    states = starts(model, 3)

    def brake(t, state):
        return -0.5 * state.v

    out = many(model, states, method, control=brake)
    for e, state in enumerate(states):
        assert np.array_equal(out.q[e], alone(model, state, method, brake).q)

    @cfunc(types.void(types.double, *[types.CPointer(types.double)] * 3))
    def push(t, q, v, out):
        out[0] = 0.5
        out[1] = 0.0

    out = many(model, states, method, control=push)
    for e, state in enumerate(states):
        assert np.array_equal(out.q[e], alone(model, state, method, push).q)
    with pytest.raises(la.ModelError, match="functions of the user run in one thread"):
        many(model, states, method, control=brake, threads=2)


def test_states_as_arrays():
    model, method = screws(), la.Galerkin(2)
    states = starts(model, 3)
    pair = (np.array([s.q for s in states]), np.array([s.v for s in states]))
    assert np.array_equal(many(model, states, method).q, many(model, pair, method).q)
    later = [model.state(s.q, s.v, 5.0) for s in states]
    out = many(model, later, method)
    assert out.t[0] == 5.0
    assert out.t[-1] == 5.0 + STEPS * DT


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"states": []}, "states must be a list of states, or a pair"),
        ({"states": (np.zeros((3, 2)), np.zeros((2, 2)))}, r"shapes \(3, 2\) and \(2, 2\)"),
        ({"states": (np.zeros((3, 2)), np.full((3, 2), np.nan))}, "simulate_many: v"),
        ({"states": (np.zeros((0, 2)), np.zeros((0, 2)))}, "E from 1 on"),
        ({"control": np.zeros((4, 5, 2))}, r"control has shape \(4, 5, 2\), expected \(2, 5, 2\) or \(5, 2\)"),
        ({"control": np.full((5, 2), np.inf)}, "simulate_many: control"),
        ({"save_every": 0}, "save_every must be a whole number"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"method": 3}, "expected a method"),
        ({"on_failure": "ignore"}, "on_failure"),
        ({"dt": -1.0}, "dt"),
    ],
)
def test_bad_input_is_named(change, words):
    model = la.models.chain(2).build()
    given = {"states": starts(model, 2), "dt": 0.1, "duration": 0.5, "method": "rk4", **change}
    with pytest.raises(la.ModelError, match=words):
        la.simulate_many(model, given.pop("states"), **given)


def test_a_bad_start_names_its_environment():
    model = la.models.four_bar().build()
    states = [model.state(), model.state(), model.state([0.3, 0.0, 0.0])]
    with pytest.raises(la.ModelError, match=r"environment 2: .*project"):
        la.simulate_many(model, states, dt=0.01, duration=0.1, method="galerkin:2")


def test_states_of_different_times_are_refused():
    model = la.models.chain(2).build()
    with pytest.raises(la.ModelError, match="different times"):
        la.simulate_many(model, [model.state(), model.state(t=1.0)], dt=0.1, duration=0.5)


def test_loops_run_one_after_the_other():
    model, method = la.models.four_bar().build(), la.Galerkin(2)
    assert not has_lanes(method, model)
    state = la.project(model, model.state())
    out = many(model, [state, state], method)
    assert np.array_equal(out.q[1], alone(model, state, method).q)


def test_what_the_method_cannot_honour_is_refused():
    m = la.models.chain(2)
    m.add_ground()
    model = m.build()
    with pytest.raises(la.UnsupportedError, match="contact"):
        many(model, [model.state()], la.Galerkin(2))


@pytest.mark.parametrize("kind", ["law", "cable"])
def test_arrays_of_controls_act_beside_functions_of_the_user(kind):
    """They were dropped where the mechanism had any function."""
    m = la.Mechanism("p")
    m.add_body("a", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.05))
    law = {"stiffness": la.Law(lambda q: -(q**3), lambda q: -3 * q**2)} if kind == "law" else {}
    m.add_joint("j", "revolute", parent="world", child="a", axis=(0, 1, 0), **law)
    if kind == "cable":
        m.add_force(la.Cable([("world", (1, 0, 0)), ("a", (0, 0, -0.5))], stiffness=1.0, rest_length=0.1))
    model = m.build()
    states, own = [model.state(), model.state(q=[0.3])], np.array([np.full((30, 1), 5.0), np.full((30, 1), -2.0)])
    for controls in (own, own[0]):
        many = la.simulate_many(model, states, dt=0.01, duration=0.3, method="rk4", control=controls)
        for e, state in enumerate(states):
            one = controls[e] if controls.ndim == 3 else controls
            alone = la.simulate(model, state, dt=0.01, duration=0.3, method="rk4", control=one)
            assert np.array_equal(many.q[e], alone.q)
            assert not np.allclose(alone.q, la.simulate(model, state, dt=0.01, duration=0.3, method="rk4").q)
