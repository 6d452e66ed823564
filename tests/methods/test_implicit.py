"""Implicit methods: their Newton matrix and step derivative against differences, charts, restarts, stiff springs."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.kernels import entries, implicit_step
from leastaction.methods.implicit import chart_codes
from leastaction.model.configuration import difference, retract
from leastaction.reference import samples as make

METHODS = {"bdf:1": la.BDF(1), "bdf:2": la.BDF(2), "sdirk2": la.SDIRK2()}


@functools.cache
def everything() -> la.Model:
    """A branching tree with every kind of joint, springs and dampers in all of them, and every force on bodies."""
    rng = np.random.default_rng(1)
    kinds = ["free", *(kind for kind in make.MOVING_KINDS if kind != "free")]
    m = make.random_tree(kinds, rng, springs=True)
    make.add_every_force(m, "b3", "b7", rng)
    m.forces = [force for force in m.forces if not isinstance(force, la.Potential)]
    m.add_force(Pull("b5", "b0"))
    return m.build()


class Pull(la.Force):
    """A force of the user on two bodies with a damper, and its derivatives by differences of its own wrenches."""

    name = None

    def __init__(self, a: str, b: str) -> None:
        self.bodies = (a, b)

    @property
    def conservative(self) -> bool:
        return False

    def wrenches(self, t, poses, twists):
        f = 2.0 * (poses[1, :3, 3] - poses[0, :3, 3]) + 0.5 * poses[1, :3, :3] @ twists[1, 3:]
        out = np.zeros((2, 6))
        out[0, 3:], out[1, 3:] = poses[0, :3, :3].T @ f, -poses[1, :3, :3].T @ f
        return out

    def derivatives(self, t, poses, twists):
        from leastaction.spatial import se3

        K, D = np.zeros((12, 12)), np.zeros((12, 12))
        for j in range(12):
            e = np.zeros((2, 6))
            e[j // 6, j % 6] = 1e-6
            moved = [np.array([p @ se3.exp(s * d) for p, d in zip(poses, e, strict=True)]) for s in (1, -1)]
            K[:, j] = (self.wrenches(t, moved[0], twists) - self.wrenches(t, moved[1], twists)).ravel() / 2e-6
            D[:, j] = (self.wrenches(t, poses, twists + e) - self.wrenches(t, poses, twists - e)).ravel() / 2e-6
        return K, D


@pytest.mark.parametrize("chart", ["exp", "xyz", "zxz"])
def test_the_matrix_of_a_stage_is_the_derivative_of_its_residual(chart):
    model = everything()
    rng, n = np.random.default_rng(2), model.nv
    q, v = make.random_state(model, rng)
    x, u = np.zeros(model.nq), np.zeros(n)
    entries.enter(model.system, q, v, x, u)
    _, code = chart_codes(chart, "")
    charts = np.full(len(model.system.tree.rows), code)
    xi, xih = 0.3 * rng.normal(size=n), 0.3 * rng.normal(size=n)
    tau, gh = rng.normal(size=n), 0.3

    def probe(xi):
        r, H, Kx, Ku = np.zeros(n), *(np.zeros((n, n)) for _ in range(3))
        assert implicit_step.probe(model.system, charts, 0.2, gh, x, xi, xih, u, tau, r, H, Kx, Ku)
        return r, H

    H = probe(xi)[1]
    e = 1e-6
    found = np.array([gh**2 * (probe(xi + e * d)[0] - probe(xi - e * d)[0]) / (2 * e) for d in np.eye(n)]).T
    assert np.abs(found - H).max() < 1e-7 * np.abs(H).max()  # measured 5e-9


@pytest.mark.parametrize("method", [*METHODS.values(), la.BDF(1, chart="zyz"), la.SDIRK2(chart="yxz")], ids=repr)
def test_the_derivative_is_that_of_the_step(method):
    model = everything()
    rng, n, dt = np.random.default_rng(3), model.nv, 0.02
    q, v = make.random_state(model, rng)
    state, tau = model.state(q, v), rng.normal(size=n)
    found = la.linearize(model, method, state, tau, dt)
    base = method.step(model, state, dt, tau)

    def end(change):
        start = model.state(retract(model, state.q, change[:n]), state.v + change[n : 2 * n])
        out = method.step(model, start, dt, tau + change[2 * n :])
        return np.concatenate([difference(model, base.q, out.q), out.v])

    e = 1e-5
    whole = np.array([(end(e * d) - end(-e * d)) / (2 * e) for d in np.eye(3 * n)]).T
    assert np.abs(whole[:, : 2 * n] - found.A).max() < 1e-6 * np.abs(found.A).max()  # measured
    assert np.abs(whole[:, 2 * n :] - found.B).max() < 1e-6 * np.abs(found.B).max()  # measured
