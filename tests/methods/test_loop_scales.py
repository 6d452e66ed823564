"""Loops of any size, of any mass, in any units, and beside others: nothing but the mechanism itself counts."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la


def scaled(m, length, mass=1.0):
    """The mechanism with all lengths, gravity included, and all masses multiplied."""
    for body in m.bodies.values():
        body.mass, body.com = body.mass * mass, body.com * length
        body.inertia = body.inertia * mass * length**2
    for joint in m.joints.values():
        for side in ("parent_frame", "child_frame"):
            frame = np.array(getattr(joint, side))
            frame[:3, 3] *= length
            setattr(joint, side, frame)
    m.gravity = m.gravity * length
    return m


def beside(length, mass):
    """Two four-bars, one of them of another size, that have nothing to do with each other."""
    both = la.Mechanism("both")
    for tag, m in (("light_", scaled(la.models.four_bar(), length, mass)), ("heavy_", la.models.four_bar())):
        for body in m.bodies.values():
            both.add_body(tag + body.name, mass=body.mass, com=body.com, inertia=body.inertia)
        for joint in m.joints.values():
            frame, parent = np.array(joint.parent_frame), joint.parent
            frame[1, 3] += 5.0 * (tag == "heavy_" and parent == "world")
            both.add_joint(
                tag + joint.name, joint.kind, axis=joint.axis, parent=parent if parent == "world" else tag + parent,
                child=tag + joint.child, parent_frame=frame, child_frame=joint.child_frame,
            )  # fmt: skip
    return both.build()


def held(seed, length):
    """A body on a planar joint that a hinge of another direction holds altogether."""
    rng = np.random.default_rng(seed)

    def axis():
        z = rng.normal(size=3)
        return z / np.linalg.norm(z)

    def frame():
        return la.pose(xyz=0.3 * length * rng.normal(size=3), rpy=rng.normal(size=3))

    m = la.Mechanism("held")
    m.add_body("b", mass=1.0, com=0.1 * length * rng.normal(size=3), inertia=length**2 * np.array([0.05, 0.06, 0.07]))
    m.add_joint("plane", "planar", parent="world", child="b", axis=axis(), parent_frame=frame(), child_frame=frame())
    free = m.build()
    pose, at = la.poses(free, free.neutral())["b"], frame()
    m.add_joint(
        "hinge", "revolute", parent="world", child="b", axis=axis(), parent_frame=at,
        child_frame=np.linalg.inv(pose) @ at,
    )  # fmt: skip
    return m.build()


@pytest.mark.parametrize("length", [1e-6, 1e-4, 1e3, 1e6])
def test_accelerations_in_any_units(length):
    """Rows of loops below 1e-5 m were dropped: accelerations were those of an open chain."""
    one = la.models.four_bar().build()
    x = la.project(one, one.state(v={"crank_hinge": 2.0}))
    a = la.forward_dynamics(one, x.q, x.v)
    for mass in (1.0, length**3):
        other = scaled(la.models.four_bar(), length, mass).build()
        y = la.project(other, other.state(v={"crank_hinge": 2.0}))
        assert np.abs(y.q - x.q).max() < 1e-12
        assert np.abs(la.forward_dynamics(other, y.q, y.v) - a).max() < 1e-9 * np.abs(a).max()


@pytest.mark.parametrize(("length", "mass"), [(1.0, 1e-4), (0.002, 1e-8), (300.0, 1e9)])
def test_a_linkage_beside_another_one(length, mass):
    """The larger diagonal entry set the proximal term of all rows: the heavy linkage fell apart."""
    model, alone = beside(length, mass), la.models.four_bar().build()
    x, y = la.project(alone, alone.state()), la.project(model, model.state())
    first = model.joint("heavy_crank_hinge").v.start
    a = la.forward_dynamics(alone, x.q, x.v)
    b = la.forward_dynamics(model, y.q, y.v)[first : first + 3]
    assert np.abs(b - a).max() < 1e-9 * np.abs(a).max()


@pytest.mark.parametrize("length", [1.0, 0.01, 0.003])
@pytest.mark.parametrize("name", ["maximal", "galerkin:2"])
def test_a_held_body_stays_where_it_is(name, length):
    """Maximal moved it with 55 J at 1 cm and 1e8 J at 3 mm."""
    for seed in (1, 3, 14):
        run = la.simulate(held(seed, length), dt=0.01, duration=0.2, method=name)
        assert run.energy.kinetic.max() < 1e-25  # measured at most 5e-33
        assert run.constraint_error.max() < 1e-11  # measured 1.4e-13: within tolerance of an angle


@pytest.mark.parametrize("name", ["bdf:2", "maximal", "galerkin:2"])
def test_a_slider_crank_in_millimetres(name):
    """Gear, Gupta and Leimkuhler's drift added turns and slides: 1e-6 to 2e-4 between metres and millimetres."""
    runs = []
    for length in (1.0, 1e3):
        model = scaled(la.models.slider_crank(), length).build()
        state = la.project(model, model.state(q={"crank_hinge": 0.7}, v={"crank_hinge": 3.0}))
        run = la.simulate(model, state, dt=0.01, duration=0.3, method=name)
        runs.append(run.q / np.where(_slides(model), length, 1.0))
    assert np.abs(runs[0] - runs[1]).max() < 1e-10


def _slides(model):
    """Whether each coordinate is a length."""
    return np.concatenate([np.full(j.nv, j.joint.kind == "prismatic") for j in model.joints.values()])


def test_how_far_a_start_may_be_open():
    """A part of the bodies' size: a loop of micrometres that was open by half of them ran."""
    small = scaled(la.models.four_bar(), 1e-6).build()
    closed = la.project(small, small.state())
    with pytest.raises(la.ModelError, match="'loop' is open by"):
        la.simulate(small, small.state(closed.q + 0.1), dt=0.01, duration=0.01, method="rk4")
    large = scaled(la.models.four_bar(), 1e6).build()
    closed = la.project(large, large.state())
    la.simulate(large, large.state(closed.q + 1e-9), dt=0.01, duration=0.01, method="rk4")
