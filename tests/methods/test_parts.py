"""No part of a model is solved more coarsely because another part is heavier, larger or farther away."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def add_arm(m: la.Mechanism, name: str, mass: float, length: float, at: float = 0.0) -> None:
    """A double pendulum that hangs at (0, at, 0)."""
    inertia = np.diag([1.0, 1.0, 0.1]) * mass * length**2 / 12
    for body, parent, x in (("1", "world", (0, at, 0)), ("2", name + "1", (0, 0, -length))):
        m.add_body(name + body, mass=mass, com=(0, 0, -length / 2), inertia=inertia)
        frame = la.pose(xyz=x)
        m.add_joint(
            f"{name}{body} joint", "revolute", parent=parent, child=name + body, axis=(0, 1, 0), parent_frame=frame
        )


def arms(*of: tuple[float, float, float]) -> tuple[la.Model, la.State]:
    """Double pendulums of given mass, length and place, and a state in which all of them swing."""
    m = la.Mechanism("arms")
    for k, (mass, length, at) in enumerate(of):
        add_arm(m, f"arm{k} ", mass, length, at)
    model = m.build()
    return model, model.state(q=[1.5, 0.7] * len(of))


LIGHT, HEAVY, LONG = (1e-3, 0.2, 0.0), (1e6, 1.0, 0.0), (1.0, 200.0, 0.0)
METHODS = ["galerkin:2", "galerkin:4", "galerkin:2:gauss", "lie-trapezoid"]


@pytest.mark.parametrize("other", [HEAVY, LONG], ids=["heavy", "long"])
@pytest.mark.parametrize("method", METHODS)
def test_a_light_arm_swings_as_alone(method: str, other: tuple[float, float, float]) -> None:
    """A gram beside 1000 t, or beside 200 m: what swings alone in one iteration a step is 0.01 rad and more apart."""
    runs = [la.simulate(*arms(*each), dt=0.005, duration=1.0, method=method) for each in ((LIGHT,), (LIGHT, other))]
    # measured: 4e-12
    assert np.abs(runs[1].q[:, :2] - runs[0].q).max() < 1e-10


def test_lanes_judge_parts_by_themselves() -> None:
    """Environments that are done four at a time."""
    alone, together = arms(LIGHT), arms(LIGHT, HEAVY)
    one, both = (
        la.simulate_many(m, [x] * 4, dt=0.005, duration=1.0, method="galerkin:2") for m, x in (alone, together)
    )
    assert np.abs(both.q[..., :2] - one.q).max() < 1e-10


def test_parts_are_what_joints_loops_and_forces_connect() -> None:
    """Bodies that hang side by side in the world are parts of their own; a spring, a loop or a coupling joins two."""
    m = la.Mechanism("parts")
    for k in range(8):
        at = la.pose(xyz=(0, k, 0))
        m.add_body(f"b{k}", mass=1.0 + k, com=(0, 0, -1), inertia=np.eye(3))
        m.add_joint(f"j{k}", "revolute", parent="world", child=f"b{k}", axis=(0, 1, 0), parent_frame=at)
    m.add_force(la.PointSpring("b0", (0, 0, -1), "b1", (0, 0, -1), stiffness=1.0, rest_length=1.0))
    m.add_force(la.PointSpring("b2", (0, 0, -1), "world", (0, 0, -1), stiffness=1.0, rest_length=1.0))
    m.add_joint(
        "loop",
        "spherical",
        parent="b3",
        child="b4",
        parent_frame=la.pose(xyz=(0, 1, -1)),
        child_frame=la.pose(xyz=(0, 0, -1)),
    )
    m.add_coupling("gear", {"j5": 1.0, "j6": 2.0})
    tree = m.build().system.tree
    assert tree.part[1:].tolist() == [0, 0, 1, 2, 2, 3, 3, 4]
    np.testing.assert_allclose(tree.parts[:, 0], [3, 3, 9, 13, 8])
    np.testing.assert_allclose(
        tree.parts[:, 1], np.sqrt([1 + 1.5 * 2 / 3, 1 + 1.5 / 3, 1 + 3 / 9, 1 + 3 / 13, 1 + 1.5 / 8])
    )


def test_a_part_without_momentum_converges() -> None:
    """Two bodies at rest, without gravity, that a stretched spring pulls on: there is no scale but its impulse."""
    m = la.Mechanism("spring", gravity=(0, 0, 0))
    for name in ("a", "b"):
        m.add_body(name, mass=1.0, inertia=np.eye(3))
        m.add_joint(name + " joint", "free", parent="world", child=name)
    m.add_force(la.PointSpring("a", (0, 0, 0), "b", (0, 0, 0), stiffness=1.0, rest_length=1.0))
    model = m.build()
    x = model.state(q={"b joint": [2, 0, 0, 1, 0, 0, 0]})
    for method in ("galerkin:2", "galerkin:4", "lie-trapezoid"):
        run = la.simulate(model, x, dt=0.01, duration=1.0, method=method)
        # the reduced mass is a half
        assert abs(run.q[-1, 7] - run.q[-1, 0] - 1 - np.cos(np.sqrt(2.0))) < 1e-4
