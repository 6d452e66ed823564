"""Whole runs inside JAX and PyTorch: values of ``simulate``, derivatives against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.reference import samples as make
from leastaction.sensitivity.rollouts import tangent


def problem():
    """A free body with a hinge on it, a first state, controls, weights of a result."""
    rng = np.random.default_rng(1)
    model = make.random_tree(["free", "revolute"], rng).build()
    q, v = make.random_state(model, rng)
    controls = rng.normal(size=(4, model.nv))
    return model, q, v, controls, rng.normal(size=(5, model.nq)), rng.normal(size=(5, model.nv))


def differences(model, q0, v0, controls, a, b):
    """Derivatives of sum(a q) + sum(b v) by velocities and controls, and along the sphere by q0."""

    def result(dq, dv, du):
        state = model.state(q0 + dq, v0 + dv)
        run = la.simulate(model, state, dt=0.01, duration=0.04, method="bdf:2", control=controls + du)
        return (a * run.q).sum() + (b * run.v).sum()

    e = 1e-5
    directions = tangent(model, q0).T
    by_q = [(result(e * d, 0, 0) - result(-e * d, 0, 0)) / (2 * e) for d in directions]
    by_v = [(result(0, e * d, 0) - result(0, -e * d, 0)) / (2 * e) for d in np.eye(model.nv)]
    shapes = np.eye(controls.size).reshape(-1, *controls.shape)
    by_u = [(result(0, 0, e * d) - result(0, 0, -e * d)) / (2 * e) for d in shapes]
    return np.array(by_q), np.array(by_v), np.array(by_u).reshape(controls.shape)


def check(found, model, q0, v0, controls, a, b):
    by_q, by_v, by_u = differences(model, q0, v0, controls, a, b)
    assert tangent(model, q0).T @ found[0] == pytest.approx(by_q, rel=1e-6, abs=1e-7)  # measured 4e-9
    assert found[1] == pytest.approx(by_v, rel=1e-6, abs=1e-7)  # measured 1e-9
    assert found[2] == pytest.approx(by_u, rel=1e-6, abs=1e-7)  # measured 5e-9


def test_jax():
    jax = pytest.importorskip("jax", reason="JAX is not installed; pip install 'leastaction[jax]'")
    model, q0, v0, controls, a, b = problem()
    with jax.enable_x64(True):
        rollout = la.jax.rollout(model, "bdf:2", 0.01)

        def result(q, v, u):
            rows_q, rows_v = rollout(q, v, u)
            return (a * rows_q).sum() + (b * rows_v).sum()

        value, found = jax.value_and_grad(jax.jit(result), argnums=(0, 1, 2))(q0, v0, controls)
        run = la.simulate(model, model.state(q0, v0), dt=0.01, duration=0.04, method="bdf:2", control=controls)
        assert float(value) == pytest.approx((a * run.q).sum() + (b * run.v).sum(), rel=1e-13)
        check([np.asarray(part) for part in found], model, q0, v0, controls, a, b)


def test_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; pip install 'leastaction[torch]'")
    model, q0, v0, controls, a, b = problem()
    given = [torch.tensor(part, requires_grad=True) for part in (q0, v0, controls)]
    q, v = la.torch.rollout(model, "bdf:2", 0.01)(*given)
    ((torch.tensor(a) * q).sum() + (torch.tensor(b) * v).sum()).backward()
    check([part.grad.numpy() for part in given], model, q0, v0, controls, a, b)


def test_a_method_without_a_gradient_is_refused():
    pytest.importorskip("jax", reason="JAX is not installed; pip install 'leastaction[jax]'")
    with pytest.raises(la.UnsupportedError, match="linearly-implicit-euler has no derivative"):
        la.jax.rollout(la.models.pendulum().build(), "linearly-implicit-euler", 0.01)
