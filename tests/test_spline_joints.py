"""Joints along splines: axes and their derivatives, dynamics, and every method that takes them."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract
from leastaction.spatial import se3

H = 1e-6


def mechanism(forces=True):
    """A branching tree with open and closed curves and a surface between other joints."""
    rng = np.random.default_rng(7)
    m = la.Mechanism("rails", gravity=(0.3, -0.2, -9.81))
    frames = [la.pose(0.4 * rng.normal(size=3), rpy=0.5 * rng.normal(size=3)) for _ in range(6)]
    curve, ring = la.SplineCurve(frames), la.SplineCurve(frames, closed=True)
    surface = la.SplineSurface(rng.normal(size=(5, 6, 6)) * [0.4, 0.4, 0.4, 0.2, 0.2, 0.2])
    for body, parent, kind, options in (
        ("a", "world", "revolute", {"axis": (0, 1, 0)}),
        ("b", "a", "spline", {"spline": curve, "stiffness": 2.0, "rest": 1.0}),
        ("c", "b", "universal", {"axis2": (1, 0, 0)}),
        ("d", "c", "spline", {"spline": surface}),
        ("e", "d", "spherical", {}),
        ("f", "b", "spline", {"spline": ring, "armature": 0.05}),
    ):
        m.add_body(body, mass=rng.uniform(0.5, 1.5), com=0.1 * rng.normal(size=3), inertia=(0.02, 0.026, 0.022))
        parent_frame = la.pose(0.2 * rng.normal(size=3), rpy=rng.normal(size=3))
        child_frame = la.pose(0.1 * rng.normal(size=3), rpy=rng.normal(size=3))
        frames_of = {"parent_frame": parent_frame, "child_frame": child_frame}
        m.add_joint(f"j{body}", kind, parent=parent, child=body, **frames_of, **options)
    if forces:
        m.add_force(la.PointSpring("a", (0.1, 0, 0), "e", (0, 0.1, 0), stiffness=5.0, damping=0.3, rest_length=0.1))
        m.add_force(la.PointForce("f", (0.1, 0.2, 0.0), (1.0, 2.0, 0.5)))
        m.joints["jd"].damping = np.array([0.1, 0.2])
    return m


def state_of(model):
    q = {"ja": 0.3, "jb": 1.4, "jc": [0.2, -0.4], "jd": [0.7, 1.2], "je": [0.9, 0.1, -0.3, 0.2], "jf": 4.6}
    return model.state(q=q, v=np.random.default_rng(1).normal(size=model.nv))


def by_q(model, q, function):
    """Central differences by displacements of q, along a new last axis."""
    steps = H * np.eye(model.nv)
    return np.stack([(function(retract(model, q, e)) - function(retract(model, q, -e))) / (2 * H) for e in steps], -1)


def by_v(v, function):
    """Central differences by v, along a new last axis."""
    return np.stack([(function(v + e) - function(v - e)) / (2 * H) for e in H * np.eye(len(v))], -1)


def relative(found, expected):
    return np.abs(found - expected).max() / max(1.0, np.abs(expected).max())


def test_axes_and_their_derivatives_against_differences():
    """S, dS/dq and the second derivatives of which Sdot and dSdot/dq are made, of each spline."""
    from leastaction.tree import splines

    model = mechanism(False).build()
    table = model.system.tree.splines

    def probe(j, s):
        S, dS, ddS = np.zeros((2, 6)), np.zeros((2, 2, 6)), np.zeros((2, 3, 6))
        Q = np.array(splines.spline_probe(table, j, np.array(s, dtype=float), S, dS, ddS))
        return Q, S, dS, ddS

    for j, (name, s) in enumerate((("jb", [2.3]), ("jd", [0.7, 1.2]), ("jf", [-3.4]))):
        spline = model.joint(name).joint.spline
        pose, axes = spline.motion(np.array(s))
        Q, S, dS, ddS = probe(j, s)
        n = len(s)
        assert np.abs(Q[:9].reshape(3, 3) - pose[:3, :3]).max() < 1e-14  # measured 4e-16
        assert np.abs(Q[9:] - pose[:3, 3]).max() < 1e-14  # measured 2e-16
        assert np.abs(S[:n].T - axes).max() < 1e-14  # measured 1e-15
        for k, e in enumerate(H * np.eye(n)):
            ahead, behind = probe(j, s + e), probe(j, s - e)
            assert np.abs((ahead[1] - behind[1]) / (2 * H) - dS[:, k]).max() < 1e-8  # measured 4e-10
            # dSdot/dq at rates u is sum ddS u: by (11, 12) and by (12, 22)
            assert np.abs((ahead[2] - behind[2]) / (2 * H) - ddS[:, k : k + 2]).max() < 1e-8  # measured 9e-10


def test_jacobians_inverse_dynamics_and_their_derivatives():
    model = mechanism(False).build()
    x, a = state_of(model), np.random.default_rng(2).normal(size=model.nv)
    q, v = x.q, x.v
    found = la.redmax.jacobian_derivatives(model, q, v)
    assert relative(found.dJ, by_q(model, q, lambda p: la.redmax.jacobian(model, p))) < 1e-8  # measured 3e-10
    assert relative(found.Jdot, found.dJ @ v) < 1e-13  # measured 3e-16
    rate = by_q(model, q, lambda p: la.redmax.jacobian_rate(model, p, v))
    assert relative(found.dJdot, rate) < 1e-8  # measured 3e-10
    # the equations of the bodies through J are the recursion in O(n): M (J a + Jdot v) - ad(phi)^T M phi
    M, phi = la.redmax.maximal_inertia(model), (found.J @ v).reshape(-1, 6)
    push = np.einsum("bij,bj->bi", M, (found.J @ a + found.Jdot @ v).reshape(-1, 6))
    push -= [se3.ad(twist).T @ m @ twist for m, twist in zip(M, phi, strict=True)]
    rotors = np.concatenate([view.joint.armature for view in model.joints.values()])
    given = la.inverse_dynamics(model, q, v, a, passive=False) - la.gravity_forces(model, q)
    assert relative(given, found.J.T @ push.ravel() + rotors * a) < 1e-12  # measured 7e-16
    D = la.inverse_dynamics_derivatives(model, q, v, a)
    assert relative(D.dq, by_q(model, q, lambda p: la.inverse_dynamics(model, p, v, a))) < 1e-7  # measured 4e-10
    assert relative(D.dv, by_v(v, lambda w: la.inverse_dynamics(model, q, w, a))) < 1e-7  # measured 2e-9


def test_energy_on_a_ring_and_the_end_of_an_open_curve():
    """A car on a closed track keeps its energy; on an open one it leaves at the end, with a clear error."""
    turn = 2 * np.pi * np.arange(8) / 8
    track = [la.pose((np.cos(t), np.sin(t), 0.3 * np.sin(2 * t)), rpy=(0, 0, t)) for t in turn]
    for closed in (True, False):
        m = la.Mechanism("track")
        m.add_body("car", mass=1.0, com=(0.0, 0.1, 0.1), inertia=(0.01, 0.02, 0.02))
        m.add_joint("rail", "spline", parent="world", child="car", spline=la.SplineCurve(track, closed))
        model = m.build()
        x0 = model.state(q=[0.5], v=[6.0])
        if closed:
            run = la.simulate(model, x0, dt=0.005, duration=3.0, method=la.RungeKutta(4))
            assert run.q[-1, 0] > 16  # two rounds
            # the third derivative of a cubic spline jumps, so that the error is not that of a smooth motion
            wander = np.ptp(run.energy.total) / run.energy.kinetic[0]
            assert wander < 1e-5  # measured 1.6e-6
            continue
        with pytest.raises(la.ConvergenceError, match=r"joint 'rail' comes to the end of its spline, s = 5"):
            la.simulate(model, x0, dt=0.005, duration=3.0, method=la.RungeKutta(4))
        with pytest.raises(la.ConvergenceError, match=r"left its spline.*joint 'rail' comes to the end"):
            la.SemiImplicitEuler().step(model, model.state(q=[4.99], v=[6.0]), 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "order"),
    [
        (la.SemiImplicitEuler(), 1),
        (la.RungeKutta(4), 4),
        (la.BDF(1), 1),
        (la.BDF(2), 2),
        (la.SDIRK2(), 2),
        (la.LinearlyImplicitEuler(), 1),
        (la.HermiteSimpson(), 4),
        (la.MaximalEuler(), 1),
    ],
    ids=lambda each: each.label if hasattr(each, "label") else str(each),
)
def test_orders(method, order):
    model = mechanism().build()
    x = state_of(model)
    x0, T = model.state(x.q, 0.5 * x.v), 0.1
    final = la.simulate(model, x0, dt=T, duration=T, method=la.Adaptive(1e-12, 1e-12)).final
    errors = []
    for steps in (20, 40):
        run = la.simulate(model, x0, dt=T / steps, duration=T, method=method)
        errors.append([np.linalg.norm(difference(model, run.q[-1], final.q)), np.linalg.norm(run.v[-1] - final.v)])
    slopes = np.log2(np.array(errors[0]) / errors[1])
    assert np.abs(slopes - order).max() < 0.12  # measured 0.09 for bdf:2, whose start is better; 0.04 for the others


@pytest.mark.slow
def test_forward_and_hybrid_dynamics_linearize_and_gradient():
    model = mechanism().build()
    x, tau = state_of(model), np.random.default_rng(2).normal(size=model.nv)
    q, v, n = x.q, x.v, model.nv
    f = la.redmax.reduced_forces(model, q, v)
    assert relative(f.K, by_q(model, q, lambda p: la.redmax.reduced_forces(model, p, v).force)) < 1e-7  # measured 5e-10
    assert relative(f.D, by_v(v, lambda w: la.redmax.reduced_forces(model, q, w).force)) < 1e-7  # measured 1e-9
    a = la.forward_dynamics(model, q, v, tau)
    assert relative(la.inverse_dynamics(model, q, v, a), tau) < 1e-11  # measured 2e-13
    assert relative(la.redmax.acceleration(model, q, v, tau), a) < 1e-11  # measured 3e-13
    hybrid = la.hybrid_dynamics(model, x, {"jd": a[model.joint("jd").v], "jb": a[model.joint("jb").v]}, control=tau)
    assert relative(hybrid.acceleration, a) < 1e-10  # measured 1e-12
    assert relative(hybrid.force, tau) < 1e-10  # measured 1e-12
    # the derivative of a step, by its adjoint
    method, dt = la.BDF(1, solver=la.DenseNewton(tolerance=1e-13)), 0.01
    found = la.linearize(model, method, x, tau, dt)
    end, columns = method.step(model, x, dt, tau), []
    for e in H * np.eye(2 * n):
        steps = [method.step(model, model.state(retract(model, q, s * e[:n]), v + s * e[n:]), dt, tau) for s in (1, -1)]
        both = [np.concatenate([difference(model, end.q, step.q), step.v]) for step in steps]
        columns.append((both[0] - both[1]) / (2 * H))
    assert relative(found.A, np.array(columns).T) < 1e-7  # measured 1.4e-9
    # a whole run, by the mass of a body behind a surface and by the placement of a curve
    target = la.Reach("e", (0.3, 0.2, 0.1))

    def value(change, shift):
        m = mechanism()
        m.bodies["d"].mass += change
        frame = m.joints["jb"].parent_frame.copy()
        frame[0, 3] += shift
        m.joints["jb"].parent_frame = frame
        made = m.build()
        return la.gradient(made, la.BDF(2), made.state(q, v), np.tile(tau, (5, 1)), dt, target, ())

    by = la.gradient(model, la.BDF(2), x, np.tile(tau, (5, 1)), dt, target, ("mass", "placement")).by
    for got, one, two in (
        (by["mass"]["d"], value(H, 0.0), value(-H, 0.0)),
        (by["placement"]["jb"][0], value(0.0, H), value(0.0, -H)),
    ):
        assert got == pytest.approx((one.value - two.value) / (2 * H), rel=1e-5)
