"""Composite and free joints in both orders: S, Sdot and their derivatives, and which of the two drifts."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.build import turned_model
from leastaction.model.configuration import difference, retract
from leastaction.model.motion import joint_motion
from leastaction.spatial import quaternion, se3, so3

TR = [("translational", {}), ("spherical", {})]
RT = [("spherical", {}), ("translational", {})]
H = 1e-6


def one_body(parts, gravity=(0.0, 0.0, 0.0), force=False):
    """One body on a composite joint, at whose frame its twist is S v; with a force, for the program that is there."""
    m = la.Mechanism("one", gravity=gravity)
    m.add_body("b", mass=1.0, inertia=(0.02, 0.03, 0.04))
    m.add_joint("j", "composite", parent="world", child="b", parts=parts)
    if force:
        m.add_force(la.PointForce("b", (0, 0, 0), (0, 0, 0)))
    return m.build()


def test_axes_of_composite_joints_and_their_derivatives():
    """S = (A_2^-1 S_1, S_2) and Sdot by (2.54) to (2.58); dS/dq and dSdot/dq against central differences."""
    rng = np.random.default_rng(4)
    parts = [
        ("universal", {"axis2": (1, 0, 0), "frame": la.pose((0.1, 0.2, 0.3), rpy=(0.3, 0.1, 0.2))}),
        ("spherical", {"frame": la.pose((0.3, 0, 0.1))}),
        ("helical", {"axis": (0.0, 0.6, 0.8), "pitch": 0.2}),
    ]
    model = one_body(parts, force=True)
    q = model.state(q=rng.normal(size=model.nq)).q
    v = rng.normal(size=model.nv)
    found = la.redmax.jacobian_derivatives(model, q, v)
    # columns from the motion itself
    joint = model.joint("j").joint
    for k, e in enumerate(H * np.eye(model.nv)):
        ahead, behind = (joint_motion(joint, retract(model, q, s * e)) for s in (1.0, -1.0))
        twist = se3.log(np.linalg.inv(behind) @ ahead) / (2 * H)
        assert np.abs(twist - found.J[:, k]).max() < 1e-8  # measured 3e-10
        ahead, behind = (la.redmax.jacobian_derivatives(model, retract(model, q, s * e), v) for s in (1.0, -1.0))
        assert np.abs((ahead.J - behind.J) / (2 * H) - found.dJ[:, :, k]).max() < 1e-8  # measured 3e-10
        assert np.abs((ahead.Jdot - behind.Jdot) / (2 * H) - found.dJdot[:, :, k]).max() < 1e-8  # measured 1e-9
    assert np.abs(found.dJ @ v - found.Jdot).max() < 1e-13  # measured 7e-16
    # free joints in both orders, (2.63) to (2.66), with rates of the ball along child axes
    for parts in (TR, RT):
        model = one_body(parts, force=True)
        q = model.state(q=rng.normal(size=model.nq)).q
        v = rng.normal(size=6)
        S, Sdot = la.redmax.jacobian(model, q), la.redmax.jacobian_rate(model, q, v)
        zero, one = np.zeros((3, 3)), np.eye(3)
        if parts is TR:
            R = quaternion.to_matrix(q[3:])
            right = np.block([[zero, one], [R.T, zero]])
            rate = np.block([[zero, zero], [-so3.hat(v[3:]) @ R.T, zero]])
        else:
            right = np.block([[one, zero], [-so3.hat(q[4:]), one]])
            rate = np.block([[zero, zero], [-so3.hat(v[3:]), zero]])
        assert np.abs(S - right).max() < 1e-14  # measured 4e-16
        assert np.abs(Sdot - rate).max() < 1e-14  # measured 4e-16


def test_rotation_first_drifts_with_euler_and_not_with_small_errors():
    """A spinning body thrown straight on: with T R it stays on its line, with R T not, but for accurate methods."""
    off = {}
    for name, parts in (("TR", TR), ("RT", RT)):
        model = one_body(parts)
        speed, spin = np.array([3.0, 1.0, 0.0]), np.array([0.05, 0.1, 0.5])
        v = np.concatenate([speed, spin] if name == "TR" else [spin, speed])
        for method in (la.SemiImplicitEuler(), la.Adaptive(1e-10, 1e-10)):
            run = la.simulate(model, model.state(v=v), dt=0.01, duration=2.0, method=method)
            place = joint_motion(model.joint("j").joint, run.q[-1])[:3, 3]
            off[name, method.label] = float(np.linalg.norm(place - 2.0 * speed))
    assert off["TR", "euler"] < 1e-12  # measured 5e-15 m
    assert 0.01 < off["RT", "euler"] < 0.1  # measured 0.050 m
    assert off["RT", "adaptive"] < 1e-8  # measured 1e-14 m


def free_body():
    """A free body with springs and a second one behind it."""
    m = la.Mechanism("body", gravity=(0.2, -0.1, -9.81))
    m.add_body("b", mass=1.3, com=(0.1, -0.05, 0.2), inertia=(0.02, 0.03, 0.025))
    springs = {"stiffness": [1, 2, 1.5, 20, 30, 25], "damping": [0.1, 0.2, 0.1, 0.5, 0.4, 0.3]}
    frames = {"parent_frame": la.pose((0.3, 0, 0), rpy=(0.2, 0.1, 0.4)), "child_frame": la.pose((0, 0.1, 0))}
    m.add_joint("root", "free", parent="world", child="b", rest=[0.1, 0.2, 0.3, 1, 0, 0, 0], **frames, **springs)
    m.add_body("c", mass=0.5, com=(0, 0, -0.2), inertia=(0.01, 0.01, 0.01))
    m.add_joint("j", "universal", parent="b", child="c", axis2=(1, 0, 0), stiffness=3.0)
    model = m.build()
    rng = np.random.default_rng(0)
    q = {"root": [0.5, -0.3, 0.8, 0.9, 0.2, -0.1, 0.3], "j": [0.3, -0.2]}
    return model, model.state(q=q, v=rng.normal(size=model.nv)), rng.normal(size=model.nv)


def test_coordinates_of_the_other_order():
    """q and v survive the way to the rows and back; u is the rate of x; a wrong order is refused."""
    from leastaction.dynamics import entries

    model, x, _ = free_body()
    turned = turned_model(model)
    assert turned.places.keys() == model.places.keys()

    def enter(q, v):
        rows, rates = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(turned.system, q, v, rows, rates)
        return rows, rates

    rows, rates = enter(x.q.copy(), x.v.copy())
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    entries.leave(turned.system, rows, rates, q, v)
    assert np.abs(q - x.q).max() < 1e-14  # measured 1e-16
    assert np.abs(v - x.v).max() < 1e-14  # measured 4e-16
    ahead, behind = (enter(retract(model, x.q, s * H * x.v), x.v.copy())[0] for s in (1.0, -1.0))
    assert np.abs((ahead - behind)[4:] / (2 * H) - rates[3:]).max() < 1e-8  # measured 1.3e-10
    with pytest.raises(la.ModelError, match='free must be "TR"'):
        la.BDF(2, free="R")
    with pytest.raises(la.UnsupportedError, match='free="RT" has no adjoint'):
        la.gradient(model, la.SDIRK2(free="RT"), x, np.zeros((2, model.nv)), 0.01, la.Reach("c", (0, 0, 0)), ("q",))
    assert repr(la.BDF(1, free="RT")) == "BDF(order=1, chart='exp', free='RT', " + repr(la.BDF(1)).split("'TR', ")[1]


@pytest.mark.slow
def test_both_orders_have_the_order_of_the_method_and_exact_derivatives():
    model, x0, tau = free_body()
    T = 0.2
    final = la.simulate(model, x0, dt=T, duration=T, method=la.Adaptive(1e-12, 1e-12), control=tau[None]).final
    for method in (
        la.BDF(1, free="RT"),
        la.SDIRK2(free="RT"),
        la.BDF(2, free="RT"),
        la.LinearlyImplicitEuler(free="RT"),
    ):
        errors = []
        for steps in (80, 160):
            control = np.tile(tau, (steps, 1))
            run = la.simulate(model, x0, dt=T / steps, duration=T, method=method, control=control)
            errors.append([np.linalg.norm(difference(model, run.q[-1], final.q)), np.linalg.norm(run.v[-1] - final.v)])
        slopes = np.log2(np.array(errors[0]) / errors[1])
        assert np.abs(slopes - method.order).max() < 0.1  # measured 0.05
    # the derivative of a step
    method, dt, n = la.BDF(1, free="RT", solver=la.DenseNewton(tolerance=1e-13)), 0.01, model.nv
    found = la.linearize(model, method, x0, tau, dt)
    end, columns = method.step(model, x0, dt, tau), []
    for e in H * np.eye(2 * n):
        starts = [model.state(retract(model, x0.q, s * e[:n]), x0.v + s * e[n:]) for s in (1, -1)]
        ends = [method.step(model, start, dt, tau) for start in starts]
        both = [np.concatenate([difference(model, end.q, step.q), step.v]) for step in ends]
        columns.append((both[0] - both[1]) / (2 * H))
    A = np.array(columns).T
    assert np.abs(found.A - A).max() / np.abs(A).max() < 1e-7  # measured 2.5e-9


@pytest.mark.slow
def test_drift_of_a_thrown_body_in_both_orders():
    """What the text warns of: with R T errors of a step grow with spin and with the distance from the origin."""
    m = la.Mechanism("thrown", gravity=(0, 0, 0))
    m.add_body("b", mass=1.0, inertia=(0.02, 0.03, 0.04))
    m.add_joint("root", "free", parent="world", child="b")
    model = m.build()
    off = {}
    for far in (0.0, 100.0):
        q, v = {"root": [far, 0, 0, 1, 0, 0, 0]}, {"root": [0.05, 0.1, 0.5, 3.0, 1.0, 0.0]}
        for free in ("TR", "RT"):
            for method in (la.LinearlyImplicitEuler(free=free), la.BDF(1, free=free), la.SDIRK2(free=free)):
                run = la.simulate(model, model.state(q, v), dt=0.01, duration=10.0, method=method)
                off[far, free, method.label] = np.linalg.norm(run.q[-1, :3] - [far + 30.0, 10.0, 0.0])
    for far, label in ((0.0, "linearly-implicit-euler"), (100.0, "bdf:1"), (100.0, "sdirk2")):
        assert off[far, "TR", label] < 1e-10  # measured 1e-12 m
    assert off[0.0, "RT", "linearly-implicit-euler"] == pytest.approx(1.21, rel=0.02)  # measured 1.21 m
    assert off[100.0, "RT", "linearly-implicit-euler"] == pytest.approx(7.4, rel=0.02)  # measured 7.37 m
    assert off[0.0, "RT", "bdf:1"] == pytest.approx(0.44, rel=0.02)  # measured 0.441 m
    assert off[100.0, "RT", "bdf:1"] == pytest.approx(1.67, rel=0.02)  # measured 1.67 m
    assert off[100.0, "RT", "sdirk2"] < 1e-3  # measured 6.9e-4 m
