"""Derivatives of dynamics against central differences, on trees with every joint kind and force."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract

KINDS = (
    "free", "revolute", "spherical", "universal", "prismatic", "helical", "planar", "cylindrical", "planar_free",
    "translational", "cylindrical_free", "axis_rotation_free_translation", "planar_translation", "continuous",
)  # fmt: skip


def everything(seed: int) -> la.Model:
    """A random branching tree with every kind of joint, springs, dampers, laws and forces."""
    rng = np.random.default_rng(seed)
    m = la.Mechanism("everything", gravity=rng.normal(size=3) * 5)
    for i, kind in enumerate(KINDS):
        A = rng.normal(size=(3, 3)) * 0.2
        J = A @ A.T + 0.01 * np.eye(3)
        m.add_body(f"b{i}", mass=rng.uniform(0.5, 2), com=rng.normal(size=3) * 0.2, inertia=np.trace(J) * np.eye(3) - J)
        more = {"axis2": rng.normal(size=3)} if kind == "universal" else {"pitch": 0.1} if kind == "helical" else {}
        law = la.Law(lambda q: -(q**3), lambda q: -3 * q**2)
        drag = la.Law(lambda v: -v * abs(v), lambda v: -2 * abs(v))
        m.add_joint(
            f"j{i}",
            kind,
            parent="world" if i == 0 else f"b{rng.integers(max(0, i - 3), i)}",
            child=f"b{i}",
            axis=rng.normal(size=3),
            parent_frame=la.pose(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            child_frame=la.pose(xyz=rng.normal(size=3) * 0.1, rpy=rng.normal(size=3)),
            stiffness=law if kind == "revolute" else 2.0,
            damping=drag if kind == "revolute" else 0.3,
            armature=0.0 if kind == "free" else 0.05,
            **more,
        )
    m.add_force(la.PointSpring("b9", (0.1, 0.2, 0.3), "b7", (0, 0.1, 0), stiffness=20.0, damping=0.5, rest_length=0.4))
    m.add_force(la.PointSpring("b4", (0.1, 0.2, 0.3), "world", (0, 0.1, 0), stiffness=10.0, damping=0.2))
    m.add_force(la.PointForce("b8", (0.1, 0.2, 0.3), (1, 2, 3)))
    m.add_force(la.Wrench("b6", (0.1, 0.2, 0.3, 1, 2, 3), "body"))
    return m.build()


def central(function, n: int, h: float = 1e-5) -> np.ndarray:
    return np.array([(function(h * e) - function(-h * e)) / (2 * h) for e in np.eye(n)]).T


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("passive", [False, True])
def test_inverse_dynamics_derivatives(seed, passive):
    model = everything(seed)
    rng = np.random.default_rng(10 + seed)
    q = retract(model, model.neutral(), rng.normal(size=model.nv) * 0.5)
    v, a, n = rng.normal(size=model.nv), rng.normal(size=model.nv), model.nv
    found = la.inverse_dynamics_derivatives(model, q, v, a, passive=passive)

    def tau(q, v, a):
        return la.inverse_dynamics(model, q, v, a, passive=passive)

    by_q = central(lambda e: tau(retract(model, q, e), v, a), n)
    by_v = central(lambda e: tau(q, v + e, a), n)
    # measured 6.3e-11 of the largest entry, all of it from the differences
    assert np.abs(found.dq - by_q).max() < 1e-8 * np.abs(by_q).max()
    assert np.abs(found.dv - by_v).max() < 1e-8 * np.abs(by_v).max()
    # measured 7.1e-15
    assert np.abs(found.da - la.mass_matrix(model, q)).max() < 1e-12


def test_forward_dynamics_derivatives():
    model = everything(3)
    rng = np.random.default_rng(20)
    q = retract(model, model.neutral(), rng.normal(size=model.nv) * 0.5)
    v, tau, n = rng.normal(size=model.nv), rng.normal(size=model.nv), model.nv
    found = la.forward_dynamics_derivatives(model, q, v, tau)
    by_q = central(lambda e: la.forward_dynamics(model, retract(model, q, e), v, tau), n)
    by_v = central(lambda e: la.forward_dynamics(model, q, v + e, tau), n)
    by_tau = central(lambda e: la.forward_dynamics(model, q, v, tau + e), n)
    for left, right in ((found.dq, by_q), (found.dv, by_v), (found.dtau, by_tau)):
        # measured 3.6e-10 of the largest entry
        assert np.abs(left - right).max() < 1e-7 * np.abs(right).max()


def test_a_mechanism_with_loops_is_refused_by_name():
    model = la.models.four_bar().build()
    with pytest.raises(la.UnsupportedError, match="closed loops"):
        la.forward_dynamics_derivatives(model, model.neutral(), np.zeros(model.nv))


def test_retract_and_difference_are_inverse():
    model = everything(4)
    rng = np.random.default_rng(30)
    q = retract(model, model.neutral(), rng.normal(size=model.nv))
    xi = rng.normal(size=model.nv)
    # measured 4.4e-16
    assert np.abs(difference(model, q, retract(model, q, xi)) - xi).max() < 1e-13
