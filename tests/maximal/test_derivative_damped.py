"""The derivative of a Maximal step under strongly damped forces, whose slopes the recursion of the step leaves out."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract


class Drag(la.Force):
    """A force of the user: drag along the axes of a body."""

    def __init__(self, body: str, damping: float) -> None:
        self.name, self.bodies, self.damping = "drag", (body,), damping

    @property
    def conservative(self) -> bool:
        return False

    def wrenches(self, t: float, poses: np.ndarray, twists: np.ndarray) -> np.ndarray:
        return -self.damping * np.array([0.1, 0.2, 0.1, 1.0, 2.0, 1.0]) * twists

    def derivatives(self, t: float, poses: np.ndarray, twists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((6, 6)), -self.damping * np.diag([0.1, 0.2, 0.1, 1.0, 2.0, 1.0])


def mechanism(damping: float, mass: float = 1.0) -> la.Mechanism:
    """A free body with a ball and a slider on it, all of them damped, and damped forces of four kinds."""
    m = la.Mechanism("damped")
    frames = {"free": (0, 0, 0), "spherical": (0.1, 0.0, -0.3), "prismatic": (0.0, 0.1, 0.2)}
    for name, parent, kind in (("a", "world", "free"), ("b", "a", "spherical"), ("c", "a", "prismatic")):
        m.add_body(name, mass=mass if name == "a" else 1.0, com=(0.1, 0.05, -0.1), inertia=(0.05, 0.04, 0.03))
        m.add_joint(name, kind, parent=parent, child=name, parent_frame=la.pose(frames[kind]), damping=0.1 * damping)
    points = [("world", (0.3, 0, -3.0)), ("a", (0.1, 0.2, 0)), ("c", (0, 0.2, 0.1))]
    m.add_force(la.Cable(points, stiffness=30.0, damping=damping, rest_length=0.1))
    law = lambda length, rate: (20.0 * length + damping * rate, 20.0, damping)  # noqa: E731
    m.add_force(la.PathSpring([("world", (2.0, 0, 1.0)), ("b", (0, 0.1, 0))], law))
    foot = la.PenaltyContact("b", (0, 0, -0.2), stiffness=60.0, damping=0.3, friction=0.5, sticking=20.0, height=0.5)
    m.add_force(foot)
    m.add_force(Drag("c", 0.2 * damping))
    return m


def start(model: la.Model) -> la.State:
    rng = np.random.default_rng(1)
    return model.state(retract(model, model.neutral(), 0.5 * rng.normal(size=model.nv)), rng.normal(size=model.nv))


def differences(model: la.Model, state: la.State, dt: float, e: float = 1e-5) -> np.ndarray:
    """Central differences (2 nv, 2 nv) of the step by q and v."""
    n, columns, method = model.nv, [], la.Maximal(solver=la.Newton(tolerance=1e-13))
    for d in np.eye(2 * n):
        ends = [
            method.step(model, model.state(retract(model, state.q, s * d[:n]), state.v + s * d[n:]), dt)
            for s in (e, -e)
        ]
        columns.append(np.concatenate([difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / (2 * e))
    return np.array(columns).T


@pytest.mark.parametrize("damping", [1.0, 10.0, 20.0])
def test_damped_forces_and_joints(damping):
    model, dt = mechanism(damping).build(), 0.02
    state = start(model)
    out = la.linearize(model, la.Maximal(), state, None, dt, parameters=("mass",))
    expected = differences(model, state, dt)
    # six plain corrections leave 2e-2 and more at a damping of 20
    assert np.abs(out.A - expected).max() < 1e-6 * np.abs(expected).max()
    ends = [la.Maximal().step(mechanism(damping, 1.0 + e).build(), state, dt) for e in (1e-5, -1e-5)]
    by_mass = np.concatenate([difference(model, ends[1].q, ends[0].q), ends[0].v - ends[1].v]) / 2e-5
    assert np.abs(out.C["mass"]["a"] - by_mass).max() < 1e-6 * max(1.0, np.abs(by_mass).max())
