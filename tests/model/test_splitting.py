"""Bodies that are cut at loop joints which carry something: what is cut, names, states, files, what stays the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import leastaction as la
from leastaction.reference.samples import four_pins

SPRING = {"stiffness": 0.3, "damping": 0.003, "rest": 0.1}
PINS = "ABCD"


def worst(a, b) -> float:
    """Largest difference."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max())


def closed(model: la.Model, q: dict, v: dict) -> la.State:
    return la.project(model, model.state(q, v))


def plain_and_cut(last: str = "D", q: float = 0.3, v: float = 1.0):
    """The linkage without and with springs in all pins, and a state of each in the same position."""
    plain, cut = four_pins(last).build(), four_pins(last, **dict.fromkeys(PINS, SPRING)).build()
    x = closed(plain, {plain.joint_names[0]: q}, {plain.joint_names[0]: v})
    views = plain.joints.items()
    return plain, x, cut, cut.state({k: x.q[j.q] for k, j in views}, {k: x.v[j.v] for k, j in views})


# --- what is cut ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("last", PINS)
def test_the_body_is_cut_and_nothing_else_changes(last):
    plain, x, cut, y = plain_and_cut(last)
    child = plain.mechanism.joints[last].child
    assert cut.body_names == plain.body_names
    assert cut.frame_names == plain.frame_names
    assert cut.loop_names == (f"{last} (weld)",)
    assert last in cut.joint_names
    assert list(cut.twins) == [f"{child} (at {last})"]
    assert cut.features == plain.features == {"loops"}
    assert repr(cut) == "Model('four_pins', 3 bodies, nq=4, nv=4, 1 loops)"
    # mass, momentum and energy
    assert cut.total_mass == pytest.approx(plain.total_mass, rel=1e-15)  # measured 0
    assert worst(la.energy(cut, y.q, y.v).kinetic, la.energy(plain, x.q, x.v).kinetic) < 1e-14  # measured 6e-17
    ours, theirs = la.momentum(cut, y.q, y.v), la.momentum(plain, x.q, x.v)
    assert worst(ours.linear, theirs.linear) < 1e-12  # measured 7e-15
    assert worst(ours.angular, theirs.angular) < 1e-12  # measured 4e-15
    assert worst(la.center_of_mass(cut, y.q), la.center_of_mass(plain, x.q)) < 1e-11  # measured 2e-13
    # the user's mechanism is as it was
    assert cut.mechanism.bodies[child].mass == plain.mechanism.bodies[child].mass
    assert list(cut.mechanism.joints) == list(plain.mechanism.joints)


@pytest.mark.parametrize("last", PINS)
def test_accelerations_are_those_of_the_uncut_linkage_under_the_same_forces(last):
    """Springs of the loop joint by hand: the angle of each pin is a sum of the three others."""
    plain, x, cut, y = plain_and_cut(last)
    names = list(plain.joint_names)
    # A + B + C = D
    signs = {"A": 1.0, "B": 1.0, "C": 1.0, "D": -1.0}
    row = np.array([-signs[name] / signs[last] for name in names])
    assert worst(row @ x.q, y.q[cut.joint(last).q]) < 1e-14  # measured 1.1e-16
    assert worst(row @ x.v, y.v[cut.joint(last).v]) < 1e-14  # measured 0
    force = -0.3 * (x.q - 0.1) - 0.003 * x.v
    tau = force + row * (-0.3 * (row @ x.q - 0.1) - 0.003 * (row @ x.v))
    expected = la.forward_dynamics(plain, x.q, x.v, tau)
    found = la.forward_dynamics(cut, y.q, y.v)
    assert np.abs(expected).max() > 3.0
    assert worst([found[cut.joint(name).v.start] for name in names], expected) < 1e-8  # measured 8e-10


def test_what_is_not_carried_is_not_cut():
    for data in ({}, {"limits": (-1.0, 1.0)}, {"effort": 1.0}, {"speed": 1.0}):
        assert not four_pins(D=data).build().twins
    m = four_pins(D=SPRING)
    m.lock("D")
    assert m.build().loop_names == ("D",)
    for data in (
        {"stiffness": 1.0},
        {"damping": 1.0},
        {"friction": 0.1},
        {"armature": 1.0},
        {"damping": la.Law(lambda x: -x, lambda x: -1.0)},
    ):
        assert four_pins(D=data).build().twins
    for data in ({"limits": (-1.0, 1.0)}, {"effort": 1.0}):
        m = four_pins(D=data)
        m.enforce_limits()
        assert m.build().twins
    m = four_pins()
    m.add_actuator("motor", "D")
    assert m.build().twins


def test_several_joints_share_one_body():
    """Three parts of a third each where two such joints end at a body."""
    m = four_pins(D=SPRING)
    m.add_joint("E", "prismatic", parent="world", child="rocker", axis=(1.0, 0.0, 0.0), stiffness=1.0)
    m.remove_joint("D")
    m.add_joint("D", "planar", parent="world", child="rocker", axis=(0.0, 1.0, 0.0), damping=0.1)
    model = m.build()
    assert list(model.twins) == ["rocker (at E)", "rocker (at D)"]
    masses = [model.split.bodies[name].mass for name in ("rocker", *model.twins)]
    assert worst(masses, m.bodies["rocker"].mass / 3) < 1e-16  # measured 1.4e-17
    assert [part for _, part in model.shares("rocker")] == pytest.approx([1 / 3] * 3, rel=1e-15)
    assert [part for _, part in model.shares("crank")] == [1.0]


def test_a_child_without_mass_takes_a_share_of_what_it_is_fixed_to():
    """A pin on a massless lug is the same pin on the body itself."""
    plain, lugged = four_pins(D=SPRING), four_pins()
    lugged.remove_joint("D")
    at = la.pose((0.05, 0.02, -0.03), rpy=(0.3, -0.2, 0.5))
    lugged.add_body("lug")
    lugged.add_joint("lug_joint", "fixed", parent="rocker", child="lug", parent_frame=at)
    lugged.add_joint("D", "revolute", parent="world", child="lug", axis=at[:3, :3].T @ (0.0, -1.0, 0.0),
                     parent_frame=la.pose((0.25, 0.0, 0.0), matrix=at[:3, :3]),
                     child_frame=np.linalg.inv(at) @ la.pose(matrix=at[:3, :3]), **SPRING)  # fmt: skip
    a, b = plain.build(), lugged.build()
    assert list(b.twins) == ["lug (at D)"]
    x = closed(a, {"A": 0.3}, {"A": 1.0})
    found = la.forward_dynamics(b, x.q, x.v)
    assert worst(found, la.forward_dynamics(a, x.q, x.v)) < 1e-11  # measured 5e-14
    assert b.total_mass == pytest.approx(a.total_mass, rel=1e-15)  # measured 0


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical", "cylindrical"])
def test_a_child_that_does_not_move_cuts_the_parent(kind):
    """The joint is reversed inside; coordinates and forces are those of the joint that was described."""
    axis = np.array([0.3, -0.5, 0.8])
    data = {"axis": axis, "stiffness": 3.0, "damping": 0.2, "rest": 0.3}
    if kind == "helical":
        data["pitch"] = 0.1
    there = {"parent_frame": la.pose((0.1, 0.2, 0.3), rpy=(0.1, 0.2, 0.3)), "child_frame": la.pose((0.3, 0.0, -0.1))}
    m = la.Mechanism("held")
    m.add_body("base", mass=5.0, inertia=(1.0, 1.0, 1.0))
    m.add_body("body", mass=2.0, com=(0.1, 0.0, 0.2), inertia=(0.2, 0.3, 0.4))
    m.add_joint("foot", "fixed", parent="world", child="base", parent_frame=la.pose((0.0, 0.0, 1.0)))
    tree = m.copy()
    tree.add_joint("pin", kind, parent="base", child="body", **{**data, "axis": -axis},
                   parent_frame=there["child_frame"], child_frame=there["parent_frame"])  # fmt: skip
    m.add_joint("float", "free", parent="world", child="body")
    m.add_joint("pin", kind, parent="body", child="base", **data, **there)
    model, other = m.build(), tree.build()
    assert list(model.twins) == ["body (at pin)"]
    assert model.total_mass == pytest.approx(2.0, rel=1e-15)  # measured 0
    n = other.nq
    x = other.state({"pin": [0.4, -0.7][:n]}, {"pin": [0.5, 0.6][:n]})
    motion = la.to_maximal(other, x.q, x.v)
    y = la.to_minimal(model, motion.poses, motion.twists)
    assert worst(y.q[model.joint("pin").q], x.q) < 1e-14  # measured 3e-16
    a = la.forward_dynamics(model, y.q, y.v)[model.joint("pin").v]
    assert worst(a, la.forward_dynamics(other, x.q, x.v)) < 1e-13  # measured 2.7e-15


def test_what_cannot_be_cut_is_refused_by_name():
    m = la.Mechanism("held")
    m.add_body("base")
    m.add_body("body", mass=2.0, inertia=(0.2, 0.3, 0.4))
    m.add_joint("foot", "fixed", parent="world", child="base")
    m.add_joint("float", "free", parent="world", child="body")
    m.add_joint("pin", "spherical", parent="body", child="base", damping=1.0)
    with pytest.raises(
        la.ModelError, match=r"joint 'pin' closes a loop.*'base'.*spherical joint cannot be reversed. Swap"
    ):
        m.build()
    m.joints["pin"].parent = "world"
    with pytest.raises(
        la.ModelError, match=r"joint 'pin' closes a loop.*neither 'world' nor 'base' has mass that moves"
    ):
        m.build()
    # a rod has no inertia about itself, so a share of it has none either
    m = la.Mechanism("rod")
    m.add_body("rod", mass=1.0, inertia=(0.1, 0.1, 0.0))
    m.add_joint("float", "prismatic", parent="world", child="rod")
    m.add_joint("pin", "revolute", parent="world", child="rod", damping=1.0)
    found = m.build().undetermined
    assert re.match(r"joint 'pin' of body .*a part of 'rod', cut there.*nothing that it moves", found)


def test_the_order_in_which_joints_were_added_does_not_matter():
    """A pin that names its child first but closes the loop all the same, as its parent hangs on that child."""

    def rods(names: tuple[str, ...]) -> la.Model:
        m = la.Mechanism("rods")
        for name in ("one", "two"):
            m.add_body(name, mass=1.0, com=(0.0, 0.1, 0.0), inertia=(0.02, 0.02, 0.02))
        joints = {
            "back": {"parent": "two", "child": "one", "damping": 0.1, "stiffness": 1.0},
            "out": {"parent": "one", "child": "two"},
            "base": {"parent": "world", "child": "one"},
        }
        for name in names:
            m.add_joint(name, "revolute", axis=(1.0, 0.0, 0.0), **joints[name])
        return m.build()

    first, last = rods(("back", "out", "base")), rods(("base", "out", "back"))
    assert list(first.twins) == list(last.twins) == ["one (at back)"]
    q, v = {"base": 0.3, "out": 0.5}, {"base": 1.0, "out": -2.0}
    one, two = first.state(q, v), last.state(q, v)
    assert one.q[first.joint("back").q] == pytest.approx(-0.5, abs=1e-14)  # measured 0
    a, b = la.forward_dynamics(first, one.q, one.v), la.forward_dynamics(last, two.q, two.v)
    assert worst(a[::-1], b) < 1e-11  # measured 0


def test_names_that_are_taken_get_a_number():
    m = four_pins(D=SPRING)
    m.add_frame("rocker (at D)", "crank")
    m.add_body("rocker (at D) 2", mass=1.0)
    m.add_joint("D (weld)", "fixed", parent="world", child="rocker (at D) 2")
    model = m.build()
    assert list(model.twins) == ["rocker (at D) 3"]
    assert model.loop_names == ("D (weld) 2",)
    assert la.simulate(model, dt=0.01, duration=0.02).q.shape == (3, 4)


# --- states ---------------------------------------------------------------------------------------------------------
def test_the_coordinate_of_a_loop_joint_follows_from_the_others():
    _, _, model, y = plain_and_cut()
    at, rate = model.joint("D").q, model.joint("D").v
    assert model.neutral()[at] == 0.0
    assert model.state().q[at] == 0.0
    assert worst(y.q[at], y.q[:3].sum()) < 1e-14  # measured 6e-17
    assert worst(y.v[rate], y.v[:3].sum()) < 1e-14  # measured 0
    # given ones are kept, be they right or wrong
    turned = model.state({"A": 0.3, "D": 7.0}, {"A": 1.0, "D": 3.0})
    assert turned.q[at] == 7.0
    assert turned.v[rate] == 3.0
    with pytest.raises(la.ModelError, match=r"loop joint 'D \(weld\)' is open by .*project"):
        la.simulate(model, turned, dt=0.01, duration=0.01, method="galerkin:2")
    near = la.project(model, turned)
    assert worst(near.q[:3].sum() + 2 * np.pi, near.q[at]) < 1e-14  # measured 0
    # full arrays are complete
    with pytest.raises(la.ModelError, match=r"q has shape \(3,\), expected \(4,\)"):
        model.state(y.q[:3])
    # dictionaries of functions too
    names = ("A", "B", "C")
    some = [{k: x[model.joint(k).q] for k in names} for x in (y.q, y.v)]
    assert worst(la.energy(model, *some).kinetic, la.energy(model, y.q, y.v).kinetic) < 1e-15  # measured 0


def test_turns_are_counted_from_rest_or_limits():
    wide = {"stiffness": 1.0, "rest": 2 * np.pi + 0.1}
    assert worst(four_pins(D=wide).build().neutral()[3], 2 * np.pi) < 1e-14  # measured 0
    m = four_pins(D={"limits": (5.0, 8.0)})
    m.enforce_limits()
    assert worst(m.build().neutral()[3], 2 * np.pi) < 1e-14  # measured 0


def test_a_joint_without_coordinates_says_how_to_get_some():
    with pytest.raises(
        la.ModelError, match=r"'D' closes a loop, so it has no coordinates \(an actuator, spring, damper"
    ):
        four_pins().build().joint("D")


def test_poses_of_the_bodies_are_enough():
    _, _, model, y = plain_and_cut()
    motion = la.to_maximal(model, y.q, y.v)
    assert motion.poses.shape == (3, 4, 4)
    back = la.to_minimal(model, motion.poses, motion.twists)
    assert worst(back.q, y.q) < 1e-14  # measured 1.1e-16
    assert worst(back.v, y.v) < 1e-14  # measured 6e-17


# --- files and pictures ---------------------------------------------------------------------------------------------
def test_files_keep_what_was_described(tmp_path):
    m = four_pins(D=SPRING)
    m.add_actuator("motor", "D")
    model = m.build()
    la.save(model.mechanism, tmp_path / "m.json")
    again = la.load(tmp_path / "m.json")
    assert list(again.bodies) == list(m.bodies)
    assert list(again.joints) == list(m.joints)
    run = la.simulate(model, dt=0.01, duration=0.1, method="galerkin:2")
    run.save(tmp_path / "run.npz")
    loaded = la.Trajectory.load(tmp_path / "run.npz")
    assert loaded.model.twins == model.twins
    assert np.array_equal(loaded.q, run.q)
    further = [la.resume(each, 0.05) for each in (run, loaded)]
    assert np.array_equal(further[0].q, further[1].q)
    # what was built can be built again
    assert model.mechanism.build().row_names == model.row_names


def test_pictures_and_tables_know_the_bodies_of_the_user(tmp_path):
    from leastaction.view.scene import scene_of

    plain, cut = la.models.four_bar(), la.models.four_bar()
    cut.joints["loop"].damping = 0.01
    ours, theirs = scene_of(cut.build()), scene_of(plain.build())
    assert ours.carriers == theirs.carriers
    assert len(ours.items) == len(theirs.items)
    run = la.simulate(cut.build(), dt=0.01, duration=0.1)
    assert set(run.multipliers) == {"loop (weld)"}
    assert "loop" in run.joint_forces
    assert run.poses("rocker").shape == (11, 4, 4)
    run.to_html(tmp_path / "run.html")
    other = la.simulate(plain.build(), dt=0.01, duration=0.1)
    assert la.compare([run, other]) is not None


def test_contacts_frames_and_forces_stay_with_the_body():
    """A body that is cut touches the ground once, and is pushed once."""
    m = four_pins(D=SPRING)
    m.add_frame("tip", "rocker", la.pose((0.03, 0.0, 0.22)))
    m.add_force(la.PointForce("rocker", (0.0, 0.0, 0.1), (1.0, 0.0, 0.0)))
    plain = four_pins()
    plain.add_force(la.PointForce("rocker", (0.0, 0.0, 0.1), (1.0, 0.0, 0.0)))
    model = m.without("stiffness", "damping")
    model.add_actuator("motor", "D")
    cut, uncut = model.build(), plain.build()
    assert cut.twins
    assert not uncut.twins
    a, b = (
        la.forward_dynamics(cut, cut.neutral(), np.zeros(4)),
        la.forward_dynamics(uncut, uncut.neutral(), np.zeros(3)),
    )
    assert worst(a[:3], b) < 1e-11  # measured 4e-14
    assert cut.place("tip").row == cut.place("rocker").row


def test_the_force_in_the_pin_is_that_of_the_uncut_linkage():
    """In the plane, where it is determined: of the pin that closes the loop and is cut, and of the pin in the tree."""
    cut, tree = four_pins("D"), four_pins("C")
    cut.add_actuator("motor", "D")
    runs = [la.simulate(m.build(), dt=1e-3, duration=0.1) for m in (cut, tree)]
    ours, theirs = (run.joint_forces["D"][:, [1, 3, 5]] for run in runs)
    assert np.abs(theirs).max() > 1.0
    assert worst(ours, theirs) < 1e-11  # measured 6e-14
