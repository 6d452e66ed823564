"""Filters and integrators between inputs and forces: against closed forms, differences and MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.activation import followed, with_activations


def slide(**actuator):
    m = la.Mechanism("slide", gravity=(0, 0, 0))
    m.add_body("a", mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("x", "prismatic", parent="world", child="a", axis=(1, 0, 0))
    m.add_actuator("motor", "x", **actuator)
    return m


def test_a_filter_against_its_closed_form():
    model, dt = slide(lag=0.2).build(), 0.01
    times = dt * np.arange(101)
    acts = with_activations(model, {"motor": 3.0}, times)["motor"]
    np.testing.assert_allclose(acts, 3.0 * (1 - np.exp(-times[:-1] / 0.2)), rtol=1e-12)
    # at uneven steps too
    uneven = np.cumsum(np.random.default_rng(1).uniform(0.001, 0.05, 20))
    acts = with_activations(model, np.full((19, 1), 3.0), uneven)["motor"]
    np.testing.assert_allclose(acts, 3.0 * (1 - np.exp(-(uneven[:-1] - uneven[0]) / 0.2)), rtol=1e-12)


def test_an_integrator_adds_up_and_stays_in_its_range():
    model = slide(integrates=True, activation_range=(-0.5, 0.25)).build()
    inputs = np.concatenate([np.full(50, 1.0), np.full(100, -1.0)])
    acts = with_activations(model, {"motor": inputs}, 0.01 * np.arange(151))["motor"]
    assert acts[0] == 0
    assert acts.max() == 0.25
    assert acts[-1] == -0.5
    assert acts[60] == pytest.approx(0.15)


def test_inputs_are_cut_before_they_are_filtered():
    m = slide(lag=0.2, input_range=(-1.0, 2.0))
    m.enforce_limits()
    model, times = m.build(), 0.01 * np.arange(101)
    acts = with_activations(model, {"motor": 30.0}, times)["motor"]
    np.testing.assert_allclose(acts, 2.0 * (1 - np.exp(-times[:-1] / 0.2)), rtol=1e-12)


def test_a_function_gives_what_an_array_gives_also_where_steps_are_taken_again():
    model, inputs = slide(lag=0.2).build(), np.sin(np.arange(30.0))
    times = 0.01 * np.arange(31)
    acts = with_activations(model, {"motor": inputs}, times)["motor"]
    call = followed(model, lambda t, state: {"motor": inputs[round(t / 0.01)]})
    for k in (*range(20), *range(12, 30), 5):
        assert call(times[k], None)["motor"] == pytest.approx(acts[k], abs=1e-15)


def test_a_run_under_a_filter():
    """m x'' = 3 (1 - exp(-t/lag)) with the activation of the start of each step."""
    model, dt = slide(lag=0.2).build(), 0.001
    runs = [
        la.simulate(model, dt=dt, duration=1.0, method="rk4", ctrl=ctrl)
        for ctrl in ({"motor": 3.0}, np.full((1000, 1), 3.0), lambda t, state: [3.0])
    ]
    speed = 1.5 * (1.0 - 0.2 * (1 - np.exp(-5.0)))
    assert runs[0].v[-1, 0] == pytest.approx(speed, abs=2e-3)
    for other in runs[1:]:
        np.testing.assert_allclose(other.v, runs[0].v, atol=1e-13)
    with pytest.raises(la.UnsupportedError, match=r"'motor'.* have activations, which a run does not keep"):
        la.resume(runs[0], duration=0.1, ctrl={"motor": 3.0})


def test_gradient_by_inputs_behind_a_filter():
    m = slide(lag=0.05, input_range=(-1.0, 1.0))
    m.enforce_limits()
    m.add_actuator("other", "x", integrates=True, activation_range=(-0.03, 0.05))
    model, dt = m.build(), 0.01
    rng = np.random.default_rng(3)
    inputs = rng.uniform(-2, 2, (12, 2))
    objective = la.Objective(final=lambda model, state: (float(state.q @ state.q), 2 * state.q, None, None))
    x0 = model.state(v=[0.3])
    found = la.gradient(model, "rk4", x0, None, dt, objective, ("ctrl",), ctrl=inputs)["ctrl"]

    def value(u):
        end = la.simulate(model, x0, dt=dt, duration=0.12, method="rk4", ctrl=u).final
        return float(end.q @ end.q)

    for k in range(12):
        for j in range(2):
            step = np.zeros((12, 2))
            step[k, j] = 1e-5
            assert found[k, j] == pytest.approx((value(inputs + step) - value(inputs - step)) / 2e-5, abs=1e-8)


def test_files(tmp_path):
    m = slide(integrates=True, activation_range=(-0.5, 0.25))
    m.add_actuator("lag", "x", lag=0.3)
    la.save(m, tmp_path / "m.json")
    back = la.load(tmp_path / "m.json").actuators
    assert (back["motor"].integrates, back["motor"].activation_range) == (True, (-0.5, 0.25))
    assert back["lag"].lag == 0.3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lag": -1.0}, "lag"),
        ({"lag": np.nan}, "lag"),
        ({"lag": 1.0, "integrates": True}, "give a lag or integrates"),
        ({"lag": 1.0, "activation_range": (2.0, 1.0)}, "2 is above 1"),
        ({"activation_range": (1.0, 2.0)}, "neither a lag nor integrates"),
    ],
)
def test_bad_input(options, words):
    with pytest.raises(la.ModelError, match=words):
        slide(**options)


@pytest.mark.parametrize(
    "actuator",
    [
        '<general joint="x" dyntype="filterexact" dynprm="0.1" gainprm="3" ctrlrange="-1 0.5" ctrllimited="true"/>',
        '<general joint="x" dyntype="filterexact" dynprm="0.1" gainprm="3" forcerange="-1 1"/>',
        '<intvelocity joint="x" kp="20" kv="1" actrange="-0.1 0.05"/>',
        '<position joint="x" kp="20" kv="2" timeconst="0.05"/>',
        '<general joint="x" dyntype="integrator" gainprm="2"/>',
    ],
)
def test_runs_against_mujoco(tmp_path, actuator):
    """MuJoCo integrates activations within its steps, here they are held: a difference of half a step."""
    mujoco = pytest.importorskip("mujoco")
    text = (
        '<mujoco><option gravity="0 0 0" timestep="0.0005" integrator="RK4"/><worldbody><body>'
        '<joint name="x" type="slide" ref="0.02"/><geom size="0.1" mass="1"/></body></worldbody>'
        f"<actuator>{actuator}</actuator></mujoco>"
    )
    mj = mujoco.MjModel.from_xml_string(text)
    data, steps = mujoco.MjData(mj), 600
    (tmp_path / "model.xml").write_text(text)
    m = la.load(tmp_path / "model.xml")
    name, each = next(iter(m.actuators.items()))
    inputs = np.sin(0.02 * np.arange(steps))
    expected = []
    for u in inputs:
        data.ctrl[0] = u
        mujoco.mj_step(mj, data)
        expected.append(data.qpos[0] - 0.02)
    # inputs as the reader maps them: a servo's target counts from ref, rates do not
    shift = each.target if each.is_servo and not each.integrates else 0.0
    m.enforce_limits(not each.is_servo)
    run = la.simulate(m.build(), dt=0.0005, duration=0.3, method="rk4", ctrl={name: inputs + shift})
    np.testing.assert_allclose(run.q[1:, 0], expected, atol=1e-2 * np.abs(expected).max())
