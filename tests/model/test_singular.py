"""Directions without inertia are found whatever their axis, units and place; long chains are not mistaken for them."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.model import check_determined

FAR = la.pose(xyz=(1000.0, 20.0, 3.0), rpy=(1, 2, 3))


def _determined(m: la.Mechanism) -> None:
    """Build, and raise what dynamics raises first."""
    check_determined(m.build(), "dynamics")


def _one(kind: str, *, mass: float = 1.0, com=(0, 0, 0), inertia=None, **joint) -> la.Mechanism:
    m = la.Mechanism("one")
    m.add_body("body", mass=mass, com=com, inertia=inertia)
    m.add_joint("joint", kind, parent="world", child="body", **joint)
    return m


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("com", [(0, 0, -1), (1, 0, 0), (0, 1, 0), (0.3, 0.4, 0.5)])
def test_a_point_has_no_inertia_about_a_line_through_it(scale, com):
    place = scale * np.array(com)
    with pytest.raises(la.ModelError, match=r"joint 'joint' of body 'body'.*one of its directions.*armature"):
        _determined(_one("spherical", mass=scale, com=place, parent_frame=FAR))
    with pytest.raises(la.ModelError, match="nothing that it moves"):
        _determined(_one("revolute", mass=scale, com=place, axis=com, parent_frame=FAR))
    with pytest.raises(la.ModelError, match="nothing that it moves"):
        _determined(_one("free", mass=scale, com=place))
    # what it can do, it may
    _determined(_one("spherical", mass=scale, com=place, armature=1e-3 * scale**3))
    _determined(_one("translational", mass=scale, com=place))
    _determined(_one("revolute", mass=scale, com=place, axis=np.roll(com, 1)))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("thin", [0, 1, 2])
@pytest.mark.parametrize("kind", ["free", "spherical"])
def test_a_thin_rod_has_none_about_itself(scale, thin, kind):
    I, com = np.ones(3), np.zeros(3)
    I[thin], com[thin] = 0.0, 0.7
    with pytest.raises(la.ModelError, match="thin rod"):
        _determined(_one(kind, mass=scale, inertia=scale * I, com=com, child_frame=la.pose(rpy=(1, 2, 3))))
    # a wire of a tenth of a millimetre on three metres is a body
    I[thin] = 1e-9
    _determined(_one(kind, mass=scale, inertia=scale * I, com=com))


def test_a_universal_joint_carries_a_rod():
    _determined(_one("universal", inertia=(1, 1, 0), com=(0, 0, -0.5), axis=(1, 0, 0), axis2=(0, 1, 0)))
    with pytest.raises(la.ModelError, match="nothing that it moves"):
        _determined(_one("cylindrical", inertia=(1, 1, 0), com=(0, 0, -0.5), axis=(0, 0, 1)))


def test_inertia_without_mass_is_refused_where_it_moves():
    with pytest.raises(la.ModelError, match=r"'body' .*inertia and no mass.*armature of joint 'joint'"):
        _determined(_one("revolute", mass=0.0, inertia=(0.5, 0.5, 0.5)))
    # together with a mass it counts, and what does not move may have any
    m = _one("fixed", mass=0.0, inertia=(0.5, 0.5, 0.5))
    m.add_body("base", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joints["joint"].parent = "base"
    m.add_joint("turn", "revolute", parent="world", child="base")
    model = m.build()
    # measured 0
    assert abs(la.mass_matrix(model, [0.0])[0, 0] - 0.6) < 1e-15


def test_a_small_wheel_behind_a_heavy_arm_is_no_rounding():
    m = la.Mechanism("crane")
    m.add_body("arm", mass=1e6, com=(100, 0, 0), inertia=(1e8, 1e8, 1e8))
    m.add_body("wheel", mass=1e-6, inertia=(1e-12, 1e-12, 1e-12))
    m.add_joint("turn", "revolute", parent="world", child="arm", parent_frame=FAR)
    m.add_joint("spin", "revolute", parent="arm", child="wheel", parent_frame=la.pose(xyz=(200, 0, 0)))
    _determined(m)
    # and a heavy load behind small massless or light links
    _determined(la.models.chain(300))


def test_a_joint_that_moves_its_own_body_is_not_refused_for_the_length_of_the_chain():
    """What hangs on it has a rounding larger than the inertia about its axis; as does a chain of 100 000."""
    m, parent = la.Mechanism("chain"), "world"
    for i in range(300):
        m.add_body(f"b{i}", mass=1e-3, inertia=(1e9, 1e-3, 1e9))
        at = la.pose((0, 0, -1.0 if i else 0.0))
        m.add_joint(f"j{i}", "revolute", parent=parent, child=f"b{i}", axis=(0, 1, 0), parent_frame=at)
        parent = f"b{i}"
    _determined(m)
    # a direction without any inertia is refused there all the same
    m.bodies["b200"].mass, m.bodies["b200"].inertia = 1.0, np.zeros((3, 3))
    m.remove_body("b201")
    for i in range(202, 300):
        m.remove_body(f"b{i}")
    with pytest.raises(la.ModelError, match="joint 'j200' of body 'b200': nothing that it moves"):
        _determined(m)


def test_kinematics_without_inertia_and_no_dynamics():
    """Everything that only needs geometry works; whatever needs the motion says which joint lacks inertia."""
    m = la.Mechanism("bare")
    for i, parent in enumerate(("world", "l0", "l1")):
        m.add_body(f"l{i}", shape=la.Box((0.1, 0.1, 0.3)))
        m.add_joint(f"j{i}", "revolute", parent=parent, child=f"l{i}", axis=(0, 1, 0), stiffness=1.0)
    model = m.build()
    state = model.state({"j0": 0.3}, {"j1": 1.0})
    assert la.poses(model, state.q)["l2"][0, 0] == pytest.approx(np.cos(0.3), rel=1e-15)  # measured 0
    assert np.isfinite(la.jacobian(model, state.q, "l2")).all()
    # the file's numbers, which are zero
    assert not la.mass_matrix(model, state.q).any()
    assert la.energy(model, state.q, state.v).kinetic == 0.0
    assert not la.momentum(model, state.q, state.v).linear.any()
    assert not la.gravity_forces(model, state.q).any()
    with pytest.raises(la.ModelError, match="nothing that moves has mass"):
        la.center_of_mass(model, state.q)
    # what needs the inverse
    wanted = r"joint 'j0' of body 'l0', and 2 more: nothing that it moves has inertia.*inertia=\"shapes\""
    for entry in (
        lambda: la.forward_dynamics(model, state.q, state.v),
        lambda: la.forward_dynamics_derivatives(model, state.q, state.v),
        lambda: la.hybrid_dynamics(model, state),
        lambda: la.redmax.acceleration(model, state.q, state.v),
        lambda: la.simulate(model, state, dt=0.01, duration=0.1),
        lambda: la.simulate(model, state, dt=0.01, duration=0.1, method=la.RungeKutta(4)),
        lambda: la.simulate_many(model, [state], dt=0.01, duration=0.1),
        lambda: la.linearize(model, la.Galerkin(2), state, None, 0.01),
        lambda: la.gradient(model, la.BDF(1), state, np.zeros((2, 3)), 0.01, la.Effort(1.0)),
    ):
        with pytest.raises(la.ModelError, match=wanted):
            entry()
    # massless frames at the end are no joints
    m.bodies["l2"].mass, m.bodies["l2"].com = 1.0, np.array([0.0, 0.0, 1.0])
    m.bodies["l1"].mass, m.bodies["l1"].com = 1.0, np.array([0.0, 0.0, 1.0])
    m.add_body("tip")
    m.add_joint("tip", "fixed", parent="l2", child="tip")
    for joint in ("j0", "j1"):
        m.joints[joint].parent_frame = la.pose((0, 0, 1))
    m.bodies["l0"].mass, m.bodies["l0"].com = 1.0, np.array([0.0, 0.0, 1.0])
    _determined(m)


def test_an_inertia_that_no_body_has_is_kept_for_kinematics():
    m = _one("revolute", mass=1.0, inertia=(1, 1, 2))
    m.bodies["body"].inertia = np.diag([1.0, 1.0, 9.0])
    model = m.build()
    assert la.mass_matrix(model, [0.0])[0, 0] == 9.0
    with pytest.raises(la.ModelError, match=r"body 'body' with what is fixed to it: .*triangle.*inertia=\"repair\""):
        la.forward_dynamics(model, [0.0], [0.0])
