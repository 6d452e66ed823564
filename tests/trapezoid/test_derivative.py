"""Derivative of a step of the Lie trapezoid: against differences, and the symplectic form."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.model.configuration import difference, retract
from leastaction.reference import samples as make

METHOD, DT = la.LieTrapezoid(la.Newton(1e-15)), 0.02
PRINTED = la.LieTrapezoid(la.Newton(1e-15), form="printed")
FORMS = pytest.mark.parametrize("method", [METHOD, PRINTED], ids=["invariant", "printed"])


def check(model: la.Model, method: la.LieTrapezoid, eps: float = 1e-5) -> la.StepDerivative:
    """A and B against central differences in some directions."""
    rng, n = np.random.default_rng(3), model.nv
    state, tau = model.state(*make.random_state(model, rng)), rng.normal(size=n)
    found, base = la.linearize(model, method, state, tau, DT), method.step(model, state, DT, tau)

    def end(change: np.ndarray) -> np.ndarray:
        start = model.state(retract(model, state.q, change[:n]), state.v + change[n : 2 * n])
        out = method.step(model, start, DT, tau + change[2 * n :])
        return np.concatenate([difference(model, base.q, out.q), out.v])

    for d in rng.normal(size=(4, 3 * n)):
        change = (end(eps * d) - end(-eps * d)) / (2 * eps)
        expected = found.A @ d[: 2 * n] + found.B @ d[2 * n :]
        assert np.abs(change - expected).max() < 1e-7 * np.abs(expected).max()  # measured 7e-9
    assert np.array_equal(found.state.q, base.q)
    return found


@pytest.mark.slow
@FORMS
def test_chain_and_symplectic_form(method):
    model = la.models.chain(3).build()
    check(model, method)
    state = model.state([0.5, -0.3, 0.8], [2.0, -1.0, 0.5])
    found, forms, n = la.linearize(model, method, state, None, DT), [], 3
    for at in (state, found.state):
        hessian = la.lagrangian_hessian(model, at.q, at.v)
        to_momenta = np.block([[np.eye(n), np.zeros((n, n))], [hessian.kinetic_vq, hessian.kinetic_vv]])
        form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
        forms.append(to_momenta.T @ form @ to_momenta)
    assert np.abs(found.A.T @ forms[1] @ found.A - forms[0]).max() < 1e-13  # measured 1e-15


@pytest.mark.slow
@FORMS
def test_every_joint_and_force(method):
    rng = np.random.default_rng(1)
    check(la.models.chain(2, joint="spherical", length=0.5).build(), method)
    m = make.random_tree(["free", *(kind for kind in make.MOVING_KINDS if kind != "free")], rng, springs=True)
    make.add_every_force(m, "b3", "b7", rng)
    m.forces = [force for force in m.forces if not isinstance(force, la.Potential)]
    m.add_force(
        la.Cable([("b1", (0.1, 0.0, 0.2)), ("b6", (0.2, 0.0, 0.0))], stiffness=5.0, damping=0.2, rest_length=0.1)
    )
    check(m.build(), method)
