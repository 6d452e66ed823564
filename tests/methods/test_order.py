"""Every method has the order that it declares, in q and in v, on every kind of joint manifold and with a loop."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference
from leastaction.reference import samples as make
from leastaction.run.registry import METHODS

DURATION = 0.4

# steps in DURATION for a method of each order: where its error is regular and far above rounding
STEPS = {1: (400, 800, 1600, 3200), 2: (100, 200, 400, 800), 4: (80, 160, 320, 640)}

FIXED_STEP = {name: method for name, (method, _) in METHODS.items() if not isinstance(method, la.Adaptive)}
# the variational ones with a tolerance well below their error, and where that error is regular
FIXED_STEP |= {f"galerkin:{order}": la.Galerkin(order, solver=la.Newton(1e-13)) for order in (2, 4)}
STEPS_OF = {"galerkin:2": (200, 400, 800, 1600), "galerkin:4": (40, 80, 160, 320)}
# a plain Python program, which takes milliseconds for a step
STEPS_OF |= {"maximal-euler": (100, 200, 400)}
SLOW = [("galerkin:4", "four_bar"), ("maximal-euler", "spherical_chain"), ("maximal-euler", "four_bar")]
# the violent one needs smaller steps
STEPS_IN = {("galerkin:4", "spherical_chain"): (100, 200, 400, 800)}
STEPS_IN |= {pair: (800, 1600, 3200) for pair in SLOW if pair[0] == "maximal-euler"}
# here the two parts of its error are of opposite sign at longer steps
STEPS_IN |= {("bdf:2", "four_bar"): (800, 1600, 3200, 6400)}
# and here the error of Hermite-Simpson soon meets rounding
CALM = ("double_pendulum", "tumbling_body", "floating_robot")
STEPS_IN |= {("hermite-simpson", system): (20, 40, 80, 160) for system in CALM}


def double_pendulum():
    model = la.models.double_pendulum().build()
    return model, model.state(q=[1.2, 0.9], v=[1.0, -2.0])


def spherical_chain():
    model = la.models.chain(3, joint="spherical", length=0.5).build()
    return model, model.state(*make.random_state(model, np.random.default_rng(1)))


def tumbling_body():
    """Its centre of mass is off the link frame."""
    m = la.Mechanism("tumbling")
    m.add_body("body", mass=1.5, com=(0.2, -0.1, 0.15), inertia=(0.02, 0.05, 0.06))
    m.add_joint("root", "free", parent="world", child="body")
    model = m.build()
    q, _ = make.random_state(model, np.random.default_rng(2))
    return model, model.state(q, v=[3.0, 4.0, -2.0, 0.5, 1.0, -0.5])


def floating_robot():
    """Two bodies, a hinge with a spring and a damper between them."""
    rng = np.random.default_rng(3)
    m = make.random_tree(["free", "revolute"], rng)
    m.joints["j1"].stiffness, m.joints["j1"].damping = 4.0, 0.1
    model = m.build()
    return model, model.state(*make.random_state(model, rng))


def every_joint():
    """One tree with every kind of joint that is not in the others."""
    rng = np.random.default_rng(4)
    m = make.random_tree(["helical", "universal", "cylindrical_free", "planar", "planar_free", "composite"], rng, True)
    model = m.build()
    return model, model.state(*make.random_state(model, rng))


def four_bar():
    model = la.models.four_bar().build()
    return model, la.project(model, model.state(v=[3.0, 0.0, 0.0]))


BUILDERS = (double_pendulum, spherical_chain, tumbling_body, floating_robot, every_joint, four_bar)
SYSTEMS = {builder.__name__: builder for builder in BUILDERS}


@functools.cache
def accurate(name):
    """The system, its first state and an accurate last one."""
    model, state = SYSTEMS[name]()
    run = la.simulate(model, state, dt=DURATION / 4, duration=DURATION, method=la.Adaptive(1e-13, 1e-13))
    return model, state, run.final


def errors(name, method, steps):
    """Errors of q and of v at the end."""
    model, state, final = accurate(name)
    run = la.simulate(model, state, dt=DURATION / steps, duration=DURATION, method=method, save_every=steps)
    return np.linalg.norm(difference(model, final.q, run.q[-1])), np.linalg.norm(run.v[-1] - final.v)


# a method is not asked for what it does not support
PAIRS = [
    # one compiles a program of its own, the others take many slow steps
    pytest.param(method, system, marks=pytest.mark.slow if (method, system) in SLOW else ())
    for method, chosen in FIXED_STEP.items()
    for system in SYSTEMS
    if system != "four_bar" or "loops" in chosen.supports
    # its composite joint has more coordinates than the poses of two bodies can tell apart
    if (method, system) != ("maximal-euler", "every_joint")
]


@pytest.mark.parametrize(("method", "system"), PAIRS)
def test_order(method, system):
    chosen = FIXED_STEP[method]
    steps = np.array(STEPS_IN.get((method, system), STEPS_OF.get(method, STEPS[chosen.order])))
    found = np.array([errors(system, chosen, int(n)) for n in steps])
    assert found.min() > 1e-13  # above rounding
    # slope of the logarithm of the error against that of dt
    for column, what in zip(found.T, "qv", strict=True):
        slope = np.polyfit(-np.log(steps), np.log(column), 1)[0]
        assert abs(slope - chosen.order) < 0.15, f"{what}: slope {slope:.3f}"  # measured 1e-1


@pytest.mark.parametrize("system", SYSTEMS)
def test_adaptive_follows_its_tolerance(system):
    """The error falls with the tolerance, whatever the interval of output, and the work grows."""
    model, state, final = accurate(system)
    work = []
    for tolerance in (1e-4, 1e-7, 1e-10):
        for intervals in (1, 4, 10):
            method = la.Adaptive(tolerance, tolerance)
            run = la.simulate(model, state, dt=DURATION / intervals, duration=DURATION, method=method)
            error = np.linalg.norm(run.v[-1] - final.v) + np.linalg.norm(difference(model, final.q, run.q[-1]))
            assert error < 100 * tolerance  # measured 10
        work.append(run.report.counters["evaluations"])
    assert work == sorted(work)


def test_the_accurate_solution_is_accurate():
    """A second, independent method agrees with it: Runge-Kutta with small steps."""
    for name in SYSTEMS:
        q, v = errors(name, la.RungeKutta(4), 4000)
        assert q < 1e-10  # measured 5e-12
        assert v < 1e-9  # measured 4e-11


def test_registry_is_covered():
    assert {"euler", "rk1", "rk2", "rk4", "adaptive"} <= set(METHODS)
    assert all(method.order in STEPS for method in FIXED_STEP.values())
