"""Projection onto the loops: from near and from far."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import derivatives, quantities
from leastaction.model.configuration import difference
from leastaction.run import observe


def four_bar():
    return la.models.four_bar().build()


def reach(model, q0, q):
    """Distance in the mass metric at the start."""
    xi = difference(model, q0, q)
    return float(np.sqrt(xi @ la.mass_matrix(model, q0) @ xi))


@pytest.mark.parametrize("q", [{"crank_hinge": 1.2, "rocker_hinge": -2.0}, {"crank_hinge": 0.9}, {"coupler_hinge": 1}])
def test_far_from_closed(q):
    model = four_bar()
    q = {name: value for name, value in q.items() if name in model.joint_names}
    x = la.project(model, model.state(q, v=np.ones(model.nv)))
    assert observe.constraint_error(model, x.q[None])[0] < 1e-12  # measured 2e-16
    assert np.abs(observe.loop_gaps(model, x.q[None], x.v[None])[1]).max() < 1e-12  # measured 4e-16


@pytest.mark.parametrize("crank", [0.05, 0.3, 1.2])
def test_the_nearest_one(crank):
    """No closed position a little to either side is nearer."""
    model = four_bar()
    start = model.state({"crank_hinge": crank})
    found = la.project(model, start)
    best = reach(model, start.q, found.q)
    # the one way in which the closed linkage moves
    _, G, _, _ = observe._constraints(model, found.q, found.v)
    way = np.linalg.svd(G)[2][-1]
    for step in (0.01, -0.01):
        beside = la.project(model, model.state(found.q + step * way))
        assert observe.constraint_error(model, beside.q[None])[0] < 1e-12
        assert reach(model, start.q, beside.q) > best


def test_what_cannot_close_is_an_error_with_the_gap():
    m = la.Mechanism("short")
    m.add_body("rod", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    m.add_joint("hinge", "revolute", parent="world", child="rod", axis=(0, 1, 0))
    m.add_joint("far", "spherical", parent="world", child="rod", parent_frame=la.pose(xyz=(5, 0, 0)))
    model = m.build()
    with pytest.raises(la.ConvergenceError, match="the largest gap is still 5") as raised:
        la.project(model, model.state([0.3]))
    assert np.isfinite(raised.value.state.q).all()


def test_every_crossing_is_named():
    m = la.Mechanism("sled")
    m.add_body("sled", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    limits = [(-1.0, 1.0), (-2.0, 2.0), (None, None)]
    m.add_joint("slide", "planar", parent="world", child="sled", limits=limits, speed=5.0, effort=3.0)
    model = m.build()
    names, rates = m.joints["slide"].coordinate_names, m.joints["slide"].velocity_names
    t, q, v = np.array([0.0, 0.5]), np.array([[0.0, 0, 0], [1.5, -2.25, 9.0]]), np.array([[7.0, 0, 0], [0, -6, 0]])
    tau = np.array([[0.0, 0, 0], [0, 0, -3.5]])
    found = [
        f"{names[0]} crossed by 0.5, first at t = 0.5 s",
        f"{names[1]} crossed by 0.25, first at t = 0.5 s",
        f"speed of {rates[0]} crossed by 2, first at t = 0 s",
        f"speed of {rates[1]} crossed by 1, first at t = 0.5 s",
    ]
    assert observe.limits_crossed(model, t, q, v) == {"slide": "; ".join(found)}
    # efforts where the forces are known
    found.append(f"effort of {rates[2]} crossed by 0.5, first at t = 0.5 s")
    assert set(observe.limits_crossed(model, t, q, v, tau)["slide"].split("; ")) == set(found)
    assert observe.limits_crossed(model, t, 0 * q, 0 * v, 0 * tau) == {}


@pytest.mark.parametrize("state", [None, {"crank_hinge": 0.3}, np.zeros(3)])
def test_project_wants_a_state(state):
    with pytest.raises(la.ModelError, match=r"project: expected a state, got \w+; make one by model\.state"):
        la.project(four_bar(), state)


CALLS = {
    "mass_matrix": ([0],),
    "inverse_dynamics": ([0], [0], [0]),
    "forward_dynamics": ([0], [0]),
    "loop_forces": ([0], [0]),
    "bias_forces": ([0], [0]),
    "gravity_forces": ([0],),
    "energy": ([0], [0]),
    "momentum": ([0], [0]),
    "center_of_mass": ([0],),
    "centroidal_map": ([0],),
    "poses": ([0],),
    "jacobian": ([0], "bob"),
    "body_twists": ([0], [0]),
    "wrench_forces": ([0], {}),
    "inverse_dynamics_derivatives": ([0], [0], [0]),
    "forward_dynamics_derivatives": ([0], [0]),
    "project": (None,),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mechanism_is_not_a_model(name):
    function = next(getattr(place, name) for place in (quantities, derivatives, observe) if hasattr(place, name))
    with pytest.raises(la.ModelError, match=r"expected a model, got Mechanism; call mechanism\.build\(\)"):
        function(la.models.pendulum(), *CALLS[name])


def test_forces_of_wrenches_are_for_one_state():
    model = la.models.pendulum().build()
    wrench = {model.body_names[0]: (0, 1.0, 0, 0, 0, 0)}
    assert np.abs(quantities.wrench_forces(model, [0.3], wrench)).max() == pytest.approx(1.0)
    with pytest.raises(la.ModelError, match="wrench_forces takes one state, got 2 rows"):
        quantities.wrench_forces(model, [[0.3], [0.4]], wrench)


def stacked(way):
    """A box of 2 kg on the ground and a body of 1 kg above it, 0.1 m beside, with a joint along z between them."""
    m = la.Mechanism("stack")
    m.add_body("low", mass=2.0, shape=la.Box((0.4, 0.4, 0.2)))
    m.add_body("top", mass=1.0, inertia=(0.1, 0.1, 0.1))
    above, below = la.pose(xyz=(0.1, 0, 0.2)), la.pose(xyz=(-0.1, 0, -0.2))
    m.add_joint("root", "free", parent="world", child="top" if way == "down" else "low")
    if way == "loop":
        m.add_joint("other", "free", parent="world", child="top")
    if way == "down":
        m.add_joint("tie", "revolute", parent="top", child="low", axis=(0, 0, 1), parent_frame=below)
    else:
        m.add_joint("tie", "revolute", parent="low", child="top", axis=(0, 0, 1), parent_frame=above)
    m.add_ground(friction=0.5)
    return m


def slide(model, way, speed, method="maximal"):
    low, top, v = [0, 0, 0.1, 1, 0, 0, 0], [0.1, 0, 0.3, 1, 0, 0, 0], [0, 0, 0, speed, 0, 0]
    start = {"root": top if way == "down" else low} | ({"other": top} if way == "loop" else {})
    state = model.state(start, dict.fromkeys(start, v))
    return la.simulate(model, state, dt=0.005, duration=0.1, method=method)


class TestForcesUnderContact:
    @pytest.mark.parametrize("speed", [0.0, 2.0])
    @pytest.mark.parametrize("way", ["up", "down", "loop"])
    def test_a_stack_that_rests_or_slides(self, way, speed):
        run = slide(stacked(way).build(), way, speed)
        weight, drag = 9.81, -0.5 * 9.81 * (speed > 0)
        # a free joint passes nothing; measured 1.1e-14
        assert np.abs(run.joint_forces["root"]).max() < 1e-11
        if way == "loop":
            # measured 7e-9 at rest, 2.5e-7 while it slides
            assert run.multipliers["tie"][10] == pytest.approx([drag, 0, weight, 0, 0], abs=2e-6)
        elif way == "up":
            assert run.joint_forces["tie"][10] == pytest.approx([0, 0, 0, drag, 0, weight], abs=2e-6)
        else:
            torque = 0.1 * weight - 0.2 * drag
            assert run.joint_forces["tie"][10] == pytest.approx([0, torque, 0, -drag, 0, -weight], abs=2e-6)

    def test_the_same_under_the_euler_step(self):
        run = slide(stacked("up").build(), "up", 2.0, "maximal-euler")
        # measured 2.2e-10
        assert run.joint_forces["tie"][10] == pytest.approx([0, 0, 0, -0.5 * 9.81, 0, 9.81], abs=1e-8)

    def test_what_is_not_known_is_said(self):
        m = stacked("up")
        m.add_constraint(la.Constraint(("top",), lambda p: [p[0, 2, 3]], lambda p: [[0, 0, 0, *p[0, 2, :3]]],
                                       kind="inequality", name="floor"))  # fmt: skip
        run = slide(m.build(), "up", 0.0)
        words = r"joint forces and multipliers: 'stack' has inequality constraints.*mechanism\.without"
        with pytest.raises(la.UnsupportedError, match=words):
            run.joint_forces  # noqa: B018
