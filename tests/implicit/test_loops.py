"""Loops and equality constraints under the implicit methods: closure, drift, derivatives of steps, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract
from leastaction.reference.samples import chosen_tree

TIGHT = la.DenseNewton(1e-14)


def linkage() -> tuple[la.Model, la.State]:
    model = la.models.four_bar().build()
    return model, la.project(model, model.state(v=[3.0, 0.0, 0.0]))


def test_positions_and_velocities_keep_a_redundant_loop():
    model, state = linkage()
    for method in (la.BDF(1), la.BDF(2), la.SDIRK2()):
        run = la.simulate(model, state, dt=0.02, duration=1.0, method=method)
        assert np.abs(run.constraint_error).max() < 1e-13  # measured 7e-16
        # every state is one to start from
        again = la.project(model, run.final, tolerance=1e-14)
        assert np.abs(run.final.v - again.v).max() < 1e-11  # measured 1e-12
        assert run.iterations[1:].max() <= 8  # measured 4
    with pytest.raises(la.ModelError, match="loop joint 'loop' is open"):
        la.simulate(model, model.state([0.1, 0.0, 0.0]), dt=0.01, duration=0.1, method="bdf:2")


def test_drift_of_the_linear_method_is_held_by_baumgarte():
    model, state = linkage()
    drift = []
    for share in (0.0, 0.5):
        method = la.LinearlyImplicitEuler(baumgarte=share)
        drift.append(np.abs(la.simulate(model, state, dt=0.01, duration=1.0, method=method).constraint_error).max())
    assert drift[0] > 5 * drift[1]  # measured 7.9
    with pytest.raises(la.UnsupportedError, match=r"closed loops or constraints.*linear=\"direct\""):
        la.simulate(model, state, dt=0.01, duration=0.1, method=la.LinearlyImplicitEuler("cg"))
    for wrong in ({"baumgarte": 2.0}, {"baumgarte": -1.0}, {"linear": "lu"}, {"tolerance": 0.0}):
        with pytest.raises(la.ModelError, match=next(iter(wrong))):
            la.LinearlyImplicitEuler(**wrong)


# --- derivatives ------------------------------------------------------------------------------------------------------
KINDS = ("free", "revolute", "spherical", "universal", "helical", "spherical")
PARENTS = ("world", "b0", "b1", "b0", "b3", "b4")


def floating_loop(kind: str, *, rod: bool = False) -> la.Mechanism:
    """Two floating branches with springs, joined at their ends; and a rod of the user's own between two bodies."""
    m = chosen_tree(KINDS, PARENTS, np.random.default_rng(1), stiffness=3.0, damping=0.4)
    rng, tree = np.random.default_rng(5), m.build()
    at, frame = la.poses(tree, tree.neutral()), la.pose(xyz=0.2 * rng.normal(size=3), rpy=rng.normal(size=3))
    more = {"universal": {"axis2": rng.normal(size=3)}, "helical": {"pitch": 0.1}}.get(kind, {})
    other = np.linalg.inv(at["b2"]) @ at["b5"] @ frame
    m.add_joint(
        "loop", kind, parent="b2", child="b5", axis=rng.normal(size=3), parent_frame=other, child_frame=frame, **more
    )
    if rod:
        far = at["b4"][:3, 3] - at["b2"][:3, 3]

        def between(poses):
            return poses[0, :3, 3] - poses[1, :3, 3]

        def by_poses(poses):
            d, none = between(poses), np.zeros(3)
            return 2.0 * np.concatenate([none, d @ poses[0, :3, :3], none, -d @ poses[1, :3, :3]])[None]

        m.add_constraint(la.Constraint(("b4", "b2"), lambda p: [between(p) @ between(p) - far @ far], by_poses))
    return m


def moving(model: la.Model) -> la.State:
    rng = np.random.default_rng(1)
    q = retract(model, model.neutral(), 0.2 * rng.normal(size=model.nv))
    return la.project(model, model.state(q, rng.normal(size=model.nv)), tolerance=1e-14)


def check(model: la.Model, method: la.BDF | la.SDIRK2, dt: float = 0.02, eps: float = 2e-5) -> None:
    """The derivative of a step against central differences of steps after ``project``, in some directions."""
    state, n, rng = moving(model), model.nv, np.random.default_rng(2)
    tau = rng.normal(size=n)
    found, base = la.linearize(model, method, state, tau, dt), method.step(model, state, dt, tau)

    def end(change: np.ndarray) -> np.ndarray:
        start = model.state(retract(model, state.q, change[:n]), state.v + change[n : 2 * n])
        out = method.step(model, la.project(model, start, tolerance=1e-14), dt, tau + change[2 * n :])
        return np.concatenate([difference(model, base.q, out.q), out.v])

    for d in rng.normal(size=(4, 3 * n)):
        change = (end(eps * d) - end(-eps * d)) / (2 * eps)
        expected = found.A @ d[: 2 * n] + found.B @ d[2 * n :]
        assert np.abs(change - expected).max() < 1e-7 * np.abs(expected).max()  # measured 5e-9
    assert np.array_equal(found.state.q, base.q)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["revolute", "universal", "helical", "planar"])
def test_derivative_of_a_step_with_every_kind_of_loop(kind):
    model = floating_loop(kind).build()
    for method in (la.BDF(1, solver=TIGHT), la.SDIRK2(solver=TIGHT), la.SDIRK2(chart="euler", solver=TIGHT)):
        check(model, method)


@pytest.mark.slow
def test_derivative_of_a_step_with_a_constraint_of_the_user():
    model = floating_loop("spherical", rod=True).build()
    check(model, la.BDF(2, solver=TIGHT))
    check(la.models.four_bar().build(), la.BDF(2, solver=TIGHT))


def result(model, method, state, controls, objective, dt):
    """The objective of a run."""
    run = la.simulate(model, state, dt=dt, duration=dt * len(controls), method=method, control=controls)
    states = [model.state(q, v, t) for t, q, v in zip(run.t, run.q, run.v, strict=True)]
    total = sum(objective.step(model, k, states[k], controls[k]).value for k in range(len(controls)))
    return total + objective.final(model, states[-1]).value


@pytest.mark.slow
def test_gradient_through_loops():
    dt, method, names = 0.02, la.BDF(2, solver=TIGHT), ("q", "v", "controls", "mass", "inertia", "damping")
    model, rng = floating_loop("revolute", rod=True).build(), np.random.default_rng(3)
    state, controls = moving(model), rng.normal(size=(5, model.nv))
    objective = la.Reach("b2", (0.1, 0.2, 0.3), (0.1, 0.0, 0.2), weight=3.0) + la.Effort(0.1)
    found = la.gradient(model, method, state, controls, dt, objective, names)
    # parts of the run computed twice
    again = la.gradient(model, method, state, controls, dt, objective, ("q", "mass"), memory=0.0)
    assert again["q"] == pytest.approx(found["q"], rel=1e-9, abs=1e-12)
    assert again["mass"] == pytest.approx(found["mass"], rel=1e-9)
    directions = {name: rng.normal(size=np.shape(found[name])) for name in ("q", "v", "controls")}
    I = np.array([[1.0, 0.2, -0.3], [0.2, 0.8, 0.1], [-0.3, 0.1, 1.2]])

    def changed(name: str, e: float) -> float:
        m, start, push = floating_loop("revolute", rod=True), state, controls
        if name == "mass":
            m.bodies["b4"].mass += e
        elif name == "inertia":
            m.bodies["b5"].inertia = m.bodies["b5"].inertia + e * I
        elif name == "damping":
            m.joints["j1"].damping = m.joints["j1"].damping + e
        elif name == "controls":
            push = controls + e * directions[name]
        else:
            moved = e * directions[name]
            q = retract(model, state.q, moved) if name == "q" else state.q
            start = model.state(q, state.v + moved if name == "v" else state.v)
            start = la.project(model, start, tolerance=1e-14)
        return result(m.build(), method, start, push, objective, dt)

    here = {name: float((found[name] * directions[name]).sum()) for name in directions}
    here |= {"mass": found["mass"]["b4"], "inertia": (found["inertia"]["b5"] * I).sum()}
    here |= {"damping": found["damping"][model.joint("j1").v][0]}
    for name, value in here.items():
        e = 1e-4
        there = (8 * (changed(name, e) - changed(name, -e)) - (changed(name, 2 * e) - changed(name, -2 * e))) / (12 * e)
        size = max(abs(there), np.linalg.norm(found[name]) if name in directions else 0.0)
        assert abs(value - there) < 1e-6 * size, name  # measured 1e-8
    with pytest.raises(la.UnsupportedError, match="no gradient by placement"):
        la.gradient(model, method, state, controls, dt, objective, ["placement"])
