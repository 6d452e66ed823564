"""Linear solvers of Maximal by name: the same step from the whole system; the interior point method of the paper."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.maximal.full_system.plan import planner_of
from leastaction.maximal.method import couplings
from leastaction.reference import samples as make
from leastaction.tree.layout import ADDED, ON_DIAGONAL, STAYS, TURNED

WHOLE = ({"linear": "graph"}, {"linear": "graph", "loops": "last"}, {"linear": "dense"}, {"linear": "scipy"})
PUSH = (0.1, 0.0, 0.0)


@functools.cache
def everything():
    """A redundant four-bar with a rotor, a damper and a spring across; a thrown box with a ball on it; an arm with
    limits behind a body without mass.
    """
    m = la.models.four_bar()
    crank, coupler, rocker = list(m.bodies)
    first, second = list(m.joints)[:2]
    m.joints[first].armature, m.joints[second].damping = np.array([0.01]), np.array([0.05])
    m.add_force(la.PointSpring(crank, (0, 0, 0.1), rocker, (0, 0, -0.1), stiffness=50.0, damping=0.5, rest_length=0.1))
    m.add_force(la.PointForce(coupler, np.zeros(3), np.array(PUSH)))
    m.add_body("box", shape=la.Box((0.2, 0.2, 0.2)), mass=1.0)
    m.add_body("ball", shape=la.Sphere(0.1), mass=0.5)
    for name in ("box", "ball"):
        m.add_joint(f"{name} root", "free", parent="world", child=name)
        m.exclude_contact(name, crank)
    m.add_ground(friction=0.5, height=-2.0)
    m.add_contact("box", "ball", friction=0.3)
    inertia = (0.01, 0.01, 0.001)
    m.add_body("slider", mass=0.0)
    m.add_joint("slide", "prismatic", parent="world", child="slider", axis=(1, 0, 0), parent_frame=la.pose((5, 0, 1)))
    m.add_body("arm", mass=0.5, com=(0, 0, -0.2), inertia=inertia)
    m.add_joint("swing", "revolute", parent="slider", child="arm", axis=(0, 1, 0), limits=(-0.1, 0.1))
    m.add_body("hand", mass=0.5, com=(0, 0, -0.2), inertia=inertia)
    m.add_joint(
        "wrist", "universal", parent="arm", child="hand", axis=(0, 1, 0), axis2=(1, 0, 0), damping=(0.01, 0.01),
        parent_frame=la.pose((0, 0, -0.4)), limits=[(-0.3, 0.4), (-0.2, 0.2)],
    )  # fmt: skip
    m.enforce_limits()
    model = m.build()
    state = model.state(
        {"box root": [0, 0, -1.895, 1, 0, 0, 0], "ball root": [0.02, 0.01, -1.69, 1, 0, 0, 0]},
        {first: 3.0, "swing": 2.0, "wrist": [1.0, 1.0], "box root": [0.0, 0.0, 0.0, 1.0, 0.5, 0.0]},
    )
    return model, la.project(model, state)


def run_of(model, state, duration, dt=0.01, **options):
    return la.simulate(model, state, dt=dt, duration=duration, method=la.Maximal(**options))


def same(model, state, duration, bound, dt=0.01, options=WHOLE, counts=True, **more):
    """Compare every whole solver with the recursion: coordinates, and if asked iterations of every step, counters."""
    exact = run_of(model, state, duration, dt, **more)
    for option in options:
        run = run_of(model, state, duration, dt, **option, **more)
        assert np.abs(run.q - exact.q).max() < bound, option
        if counts:
            assert run.report.counters == exact.report.counters
            assert np.array_equal(run.iterations, exact.iterations)
    return exact


@pytest.mark.slow
def test_the_same_steps_from_the_whole_system():
    """Loop, rotor, springs, contacts between bodies, friction, limits, a body without mass: all in one."""
    model, state = everything()
    run = same(model, state, 0.2, 1e-11)  # measured 6e-13
    # what it is about does happen
    contacts = run.contacts
    for pair in (("box", "world"), ("box", "ball")):
        held = contacts.pair == next(k for k, names in enumerate(contacts.names) if set(names) == set(pair))
        assert contacts.normal_force[held].max() > 1.0
    swing = run.q[:, model.joint("swing").q]
    assert swing.max() > 0.1 - 1e-6
    assert swing.max() <= 0.1 + 1e-9


def test_a_run_goes_on_to_the_last_bit_and_its_method_is_made_again():
    model, state = everything()
    method = la.Maximal(linear="graph", loops="last")
    whole = la.simulate(model, state, dt=0.01, duration=0.1, method=method)
    part = la.simulate(model, state, dt=0.01, duration=0.06, method=method)
    rest = la.resume(part, 0.04)
    assert np.array_equal(rest.q, whole.q)
    assert np.array_equal(rest.v, whole.v)
    again = la.Maximal(**method.options())
    assert again.options() == method.options()
    assert (again.choice.linear, again.choice.loops) == ("graph", "last")


def test_the_interior_point_of_the_paper_stops_above_the_ground():
    """Its gap is the barrier that it happens to end with over the force: some 1e-5 m for a tolerance of 1e-6."""
    m = la.Mechanism("cube")
    m.add_body("cube", shape=la.Box((0.5, 0.5, 0.5)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="cube")
    m.add_ground(friction=1.0)
    # the form of the kernels that the tests above compile
    m.add_force(la.PointForce("cube", np.zeros(3), np.zeros(3)))
    model = m.build()
    state = model.state({"root": [0, 0, 0.3, 1, 0, 0, 0]}, {"root": [0, 0, 0, 0.2, 0, 0]})
    solver = la.InteriorPoint(1e-6, variant="seed")
    runs = [run_of(model, state, 0.3, linear=name, solver=solver) for name in ("graph", "dense")]
    bottom = runs[0].poses("cube")[:, 2, 3] - 0.25
    assert bottom.min() > 0  # measured 5e-7
    assert 1e-6 < bottom[-1] < 1e-4  # measured 2.6e-5
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9  # measured 6e-17
    # along a side of the pyramid friction is that of the cone
    exact = run_of(model, state, 0.3)
    assert abs(runs[0].q[-1, 0] - exact.q[-1, 0]) < 1e-4  # measured 5e-6
    assert np.allclose(runs[0].contacts.normal_force[-1].sum(), 9.81, rtol=1e-6)  # measured 1e-8


def test_what_does_not_go_together_is_refused():
    with pytest.raises(la.ModelError, match="linear must be one of nullspace, graph, dense, scipy"):
        la.Maximal(linear="sparse")
    with pytest.raises(la.ModelError, match="loops must be one of graph, last"):
        la.Maximal(linear="graph", loops="first")
    with pytest.raises(la.ModelError, match="leave it out"):
        la.Maximal(linear="dense", loops="last")
    with pytest.raises(la.ModelError, match='take linear="graph", "dense" or "scipy"'):
        la.Maximal(solver=la.InteriorPoint(variant="seed"))
    with pytest.raises(la.ModelError, match="four sides"):
        la.Maximal(linear="graph", cone=8, solver=la.InteriorPoint(variant="seed"))
    with pytest.raises(la.ModelError, match="variant must be one of exact, seed"):
        la.InteriorPoint(variant="mine")
    with pytest.raises(la.ModelError, match="leave barrier= and warm= out"):
        la.InteriorPoint(barrier=1e-8, variant="seed")
    m = la.Mechanism("ball")
    m.add_body("ball", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.add_joint("joint", "spherical", parent="world", child="ball", limits=(0.0, 0.5))
    m.enforce_limits()
    model = m.build()
    with pytest.raises(la.UnsupportedError, match="joint 'joint': the limit of a ball's angle"):
        la.Maximal(linear="graph", solver=la.InteriorPoint(variant="seed")).start(model, model.state())


def test_bodies_from_leaves_to_root_and_loops_where_they_close():
    """A chain has no fill-in; loops come right before the body that they hang on, or last."""
    chain = la.models.chain(5).build()
    plan = planner_of(chain, 1, False).plan(None, (), ())
    assert plan.graph.fill_in == ()
    assert plan.size == 55
    assert plan.graph.order[:2] == (("body", 5), ("joint", 5))
    assert plan.graph.order[-1] == ("joint", 1)
    # a thin rod is one node with its joint
    model = la.models.four_bar().build()
    for last in (False, True):
        plan = planner_of(model, 1, last).plan(couplings(model), (), ())
        assert plan.graph.order == (("body", 3), ("body", 2), ("body", 1), ("part", 0))
        assert plan.graph.rows(("body", 2)) == slice(11, 22)


# --- more mechanisms ------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_trees_with_joints_of_every_kind():
    rng = np.random.default_rng(5)
    kinds = ["free", "spherical", "revolute", "universal", "prismatic", "helical", "cylindrical", "planar", "revolute"]
    model = make.random_tree(kinds, rng).build()
    same(model, model.state(*make.random_state(model, rng)), 0.1, 1e-11)  # measured 3e-14


@pytest.mark.slow
def test_springs_between_all_bodies_of_a_tree():
    """Couplings of every kind in the elimination: with a parent, across branches in both orders, balls and screws."""
    rng = np.random.default_rng(8)
    m = make.random_tree(["free", "revolute", "spherical", "prismatic", "spherical", "universal", "helical"], rng)
    bodies = list(m.bodies)
    for k, a in enumerate(bodies):
        for b in bodies[:k]:
            m.add_force(la.PointSpring(a, rng.normal(size=3), b, rng.normal(size=3), stiffness=20.0, damping=0.3))
    model = m.build()
    assert set(couplings(model).moves[:, 2].tolist()) == {STAYS, ADDED, TURNED, ON_DIAGONAL}
    run = same(model, model.state(*make.random_state(model, rng)), 0.1, 1e-11)  # measured 1e-14
    assert run.iterations.max() <= 4


@pytest.mark.slow
def test_a_hundred_links():
    model = la.models.chain(100).build()
    state = model.state(0.3 * np.sin(np.arange(100)))
    same(model, state, 0.025, 1e-11, dt=0.005, options=WHOLE[:1] + WHOLE[3:])  # measured 1.6e-13


@pytest.mark.slow
@pytest.mark.parametrize("build", [la.models.bricard, functools.partial(la.models.n_four_bar, 8)])
def test_redundant_loops(build):
    model = build().build()
    state = la.project(model, model.state(v=np.ones(model.nv)))
    same(model, state, 0.2, 1e-11)  # measured 4e-15


@pytest.mark.slow
def test_loops_through_singular_positions():
    """Where the recursion goes on with least squares, the whole solvers do the same."""
    from leastaction.papers.bruedigam_chains import segments

    model = segments(4, tilt=1.0)
    run = run_of(model, model.state(), 3.6, 0.02)
    state = la.State(run.t[165], run.q[165], run.v[165])
    exact = same(model, state, 0.28, 1e-11, dt=0.02)  # measured 9e-14
    assert exact.report.counters["backtracks"] > 3
    # bars that are flat together may go on in several ways: closed in all of them
    model = la.models.n_four_bar(4).build()
    state = la.project(model, model.state(v=np.full(model.nv, 2.0)))
    for option in ({}, *WHOLE):
        run = run_of(model, state, 3.0, **option)
        assert run.constraint_error.max() < 1e-11, option  # measured 1.2e-13
        assert run.report.counters["backtracks"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("restitution", [0.0, 0.8])
def test_velocity_constraints_and_restitution(restitution):
    """A skate that is pushed from the side, and a ball that rolls off or bounces."""
    m = la.Mechanism("skate and ball")
    m.add_body("skate", mass=1.0, inertia=(0.02, 0.03, 0.04))
    m.add_joint("glide", "planar", parent="world", child="skate")
    m.add_constraint(
        la.Constraint(
            ("skate",), lambda poses, twists: [twists[0, 4] - 0.1 * twists[0, 2]],
            lambda poses, twists: [[0.0, 0.0, -0.1, 0.0, 1.0, 0.0]], kind="velocity", name="blade",
        )
    )  # fmt: skip
    m.add_force(la.PointForce("skate", np.array([0.3, 0.0, 0.0]), np.array([0.5, 1.0, 0.0])))
    m.add_body("ball", shape=la.Sphere(0.1), mass=0.5)
    m.add_joint("root", "free", parent="world", child="ball")
    m.add_ground(friction=0.3, restitution=restitution, height=-1.0)
    model = m.build()
    state = model.state({"root": [0, 0, -0.7, 1, 0, 0, 0]}, {"root": [0, 1, 0, 1, 0, 0], "glide": [1.0, 0.05, 0.5]})
    run = same(model, la.project(model, state), 0.6, 1e-11)  # measured 4e-14
    assert run.report.counters.get("impacts", 0) == (2 if restitution else 0)
    assert abs(run.v[-1, model.joint("glide").v][2]) > 0.5


@pytest.mark.slow
def test_chain_of_spheres_on_the_ground():
    from leastaction.bench.maximal import sphere_chain

    model = sphere_chain(20).build()
    state = model.state({"root": [0, 0, 0.4, 1, 0, 0, 0]}, {"root": [0, 0, 0, 1, 0.5, 0]})
    same(model, state, 0.3, 1e-11, options=WHOLE[:1] + WHOLE[3:])  # measured 2e-12


@pytest.mark.slow
def test_limits_of_balls_inequalities_and_pyramids():
    m = la.Mechanism("rod")
    m.add_body("rod", mass=1.0, com=(0.0, 0.0, -0.5), inertia=(0.09, 0.09, 0.01))
    m.add_joint("joint", "spherical", parent="world", child="rod", axis=(0.0, 1.0, 0.0), limits=(0.0, 0.5))
    m.enforce_limits()
    for name in ("puck", "marble"):
        m.add_body(name, shape=la.Sphere(0.1), mass=1.0)
        m.add_joint(f"{name} root", "free", parent="world", child=name)
    m.add_ground(friction=0.4, height=-2.0)

    def jacobian(poses):
        return np.concatenate([np.zeros(3), -poses[0, 0, :3]])[None]

    m.add_constraint(
        la.Constraint(("puck",), lambda poses: [0.05 - poses[0, 0, 3]], jacobian, kind="inequality", name="wall")
    )
    model = m.build()

    # the puck flies against the wall, the marble slides on the ground
    def start(spin):
        return model.state(
            {"puck root": [0, 0, -1.0, 1, 0, 0, 0], "marble root": [0, 2, -1.9, 1, 0, 0, 0]},
            {"joint": [2, spin, 1], "puck root": [0, 0, 0, 1, 0.3, 0], "marble root": [0, 0, 0, 1, 0.3, 0]},
        )

    run = same(model, start(5.2), 0.09, 1e-11, cone=8)  # measured 6e-15
    assert run.poses("puck")[:, 0, 3].max() == pytest.approx(0.05, abs=1e-6)
    # from this start the first step is at the tolerance, and the solvers end it an iteration apart
    same(model, start(5.0), 0.09, 1e-9, counts=False, cone=8)  # measured 2.2e-10


@pytest.mark.slow
def test_the_interior_point_of_the_paper_with_limits_and_loops():
    model, state = everything()
    run = run_of(model, state, 0.2, linear="graph", solver=la.InteriorPoint(1e-8, variant="seed"))
    exact = run_of(model, state, 0.2)
    assert run.constraint_error.max() < 1e-8
    assert np.abs(run.q - exact.q)[:, model.joint("swing").q].max() < 1e-3


@pytest.mark.parametrize("linear", ["graph", "dense", "scipy"])
def test_a_step_with_restitution_that_has_no_solution_is_taken_in_parts(linear):
    # four iterations are too few for some steps of 10 ms
    m = la.Mechanism("thrown")
    m.add_body("body", shape=la.Box((0.2, 0.3, 0.1)), mass=1.0)
    m.add_joint("root", "free", parent="world", child="body")
    m.add_ground(friction=0.5, restitution=0.5)
    model, rng = m.build(), np.random.default_rng(6)
    q = model.neutral()
    q[2], q[3:] = 0.3, rng.normal(size=4)
    state = model.state(q, rng.normal(size=6) * [5, 5, 5, 1, 1, 1])
    few = la.InteriorPoint(iterations=4)
    runs = [
        la.simulate(model, state, dt=0.01, duration=0.4, method=la.Maximal(linear=name, solver=few))
        for name in ("nullspace", linear)
    ]
    # measured 1.4e-14
    assert np.abs(runs[1].q - runs[0].q).max() < 1e-10
    for run in runs:
        assert run.report.counters["finer steps"] >= 1
        assert run.report.counters["impacts"] == 1
