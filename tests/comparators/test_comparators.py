"""The comparators of the papers solve the same equations as the library's own methods."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.comparators.svi import step as svi_step
from leastaction.comparators.svi.method import SVI
from leastaction.galerkin import parts as galerkin_parts
from leastaction.galerkin.method import across, balance, lobatto
from leastaction.papers.common import pendulum, starts
from leastaction.papers.timing import guesses
from leastaction.reference import samples as make

SOLVERS = (la.RIQN(), la.DenseNewton(), la.Broyden())


def galerkin(model, s, h, X, P, XI):
    """Residuals and Newton directions of our own."""
    c, w, b, _ = lobatto(s)
    tree, count = model.system.tree, len(X)
    r, y = np.zeros((count, model.nv, s)), np.zeros((count, model.nv * s))
    what = galerkin_parts.DIRECTION
    args = (tuple(w.tolist()), b, c, across(tree.gravity), balance(s), h)
    galerkin_parts.parts(tree, *args, X, P, XI, what, r, y)
    return r, y


@pytest.mark.slow
@pytest.mark.parametrize("branching", [False, True])
def test_svi_has_the_residual_and_the_newton_direction_of_galerkin(branching):
    rng = np.random.default_rng(1)
    kinds = ["revolute", "prismatic", "helical", "universal", "revolute"]
    model = make.random_tree(kinds, rng).build() if branching else la.models.chain(6).build()
    n, h = model.nv, 0.01
    x, p, z = rng.uniform(-1, 1, n), rng.normal(size=n), 0.01 * rng.normal(size=n)
    r, p1, A = np.zeros(n), np.zeros(n), np.zeros((n, n))
    svi_step.svi_probe(model.system, h, x, p, z, r, p1, A)
    theirs, y = galerkin(model, 1, h, x[None], p[None], np.stack([0 * z, z], axis=1)[None])
    assert np.abs(r - theirs[0, :, 0]).max() < 1e-13 * np.abs(r).max()  # measured 9e-15 of it
    assert np.abs(np.linalg.solve(A, -r) - y[0]).max() < 1e-12 * np.abs(y).max()  # measured 8e-15 of it


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: solver.name)
def test_svi_has_the_trajectory_of_galerkin(solver):
    model = la.models.chain(4).build()
    start = model.state(q=[1.0, 0.5, 0.2, 0.3])
    ours = la.simulate(model, start, dt=0.002, duration=0.5, method=la.Galerkin(2))
    theirs = la.simulate(model, start, dt=0.002, duration=0.5, method=SVI(solver))
    assert np.abs(ours.q - theirs.q).max() < 1e-9  # measured 1e-10
    assert np.abs(ours.v - theirs.v).max() < 1e-8  # measured 2e-9


@pytest.mark.slow
def test_svi_refuses_what_it_has_not():
    with pytest.raises(la.UnsupportedError, match="screws only"):
        la.simulate(la.models.spherical_pendulum().build(), dt=0.01, duration=0.1, method=SVI())
    sprung = la.models.pendulum()
    sprung.joints["hinge"].stiffness = np.array([1.0])
    with pytest.raises(la.UnsupportedError, match="gravity only"):
        la.simulate(sprung.build(), dt=0.01, duration=0.1, method=SVI())
    with pytest.raises(la.UnsupportedError, match="no control"):
        la.simulate(la.models.pendulum().build(), dt=0.01, duration=0.1, method=SVI(), control=np.zeros((10, 1)))
    with pytest.raises(la.ModelError, match="guess must be one of"):
        SVI(guess="luck")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("kind", ["chain", "pendulum"])
def test_automatic_differentiation_has_our_residual_and_newton_direction(mode, kind):
    pytest.importorskip("jax")
    from leastaction.papers.autodiff import Simpson

    model = la.models.chain(5).build() if kind == "chain" else pendulum(5)
    h = 0.01
    states = [model.state(q, v) for q, v in zip(*starts(3, 5, np.pi / 2, np.pi / 2), strict=True)]
    X, P, XI = guesses(model, states, 2, h)
    r, y = galerkin(model, 2, h, X, P, XI)
    automatic = Simpson(model, h, mode)
    Y = np.concatenate([X + XI[:, :, 1], X + XI[:, :, 2]], axis=1)
    theirs = automatic.evaluate("evaluation", X, P, Y).reshape(3, 2, 5).transpose(0, 2, 1)
    assert np.abs(theirs - r).max() < 1e-12 * np.abs(P).max()  # measured 5e-14 of it
    # our directions go row by row, theirs node by node
    found = automatic.evaluate("direction", X, P, Y).reshape(3, 2, 5).transpose(0, 2, 1).reshape(3, 10)
    assert np.abs(found - y).max() < 1e-9 * np.abs(y).max()  # measured 8e-13 of it


@pytest.mark.slow
def test_linearisation_by_automatic_differentiation_is_symplectic():
    """A step map (q, p) -> (q, p) of a variational integrator, where its residual vanishes."""
    pytest.importorskip("jax")
    from leastaction.papers.autodiff import Simpson

    model, h, n = pendulum(3), 0.01, 3
    state = model.state(q=[0.5, -0.3, 0.8], v=[1.0, 0.0, -1.0])
    X, P, XI = guesses(model, [state], 2, h)
    automatic, Y = Simpson(model, h), np.concatenate([X + XI[:, :, 1], X + XI[:, :, 2]], axis=1)
    for _ in range(6):
        Y = Y + automatic.evaluate("direction", X, P, Y)
    A = automatic.evaluate("linearisation", X, P, Y)[0]
    omega = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.abs(A.T @ omega @ A - omega).max() < 1e-10  # measured 3e-13


def test_automatic_differentiation_refuses_other_mechanisms():
    from leastaction.papers.autodiff import Simpson, chain_data

    with pytest.raises(la.UnsupportedError, match="serial chain of revolute"):
        chain_data(la.models.spherical_pendulum().build())
    with pytest.raises(la.ModelError, match="mode must be one of"):
        Simpson(la.models.chain(2).build(), 0.01, "sideways")
