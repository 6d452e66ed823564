"""Implicit methods: their Newton matrix and step derivative against differences, charts, restarts, stiff springs."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import entries
from leastaction.implicit import stage as implicit_stage
from leastaction.implicit import step as implicit_step
from leastaction.implicit.method import EULER_CHARTS, chart_codes, one_form
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
    ends = [("b1", (0.1, 0.0, 0.2)), ("world", (0.0, 0.3, 0.1)), ("b6", (0.2, 0.0, 0.0))]
    m.add_force(la.Cable(ends, stiffness=5.0, damping=0.2, rest_length=0.1))
    m.add_force(
        la.PenaltyContact("b2", [(0.1, 0, 0), (0, 0.1, 0)], stiffness=9.0, damping=0.1, friction=0.4, height=5.0)
    )
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


@pytest.mark.slow
@pytest.mark.parametrize("chart", ["exp", *EULER_CHARTS])
def test_the_matrix_of_a_stage_is_the_derivative_of_its_residual(chart):
    model = everything()
    rng, n = np.random.default_rng(2), model.nv
    q, v = make.random_state(model, rng)
    x, u = np.zeros(model.nq), np.zeros(n)
    entries.enter(model.system, q, v, x, u)
    _, code = chart_codes(chart, "")
    charts = np.full(len(model.system.tree.rows), code)
    xi, xih = 0.3 * rng.normal(size=n), 0.3 * rng.normal(size=n)
    tau, gh, none = rng.normal(size=n), 0.3, np.zeros(0)

    def probe(xi):
        r, H, Kx, Ku = np.zeros(n), *(np.zeros((n, n)) for _ in range(3))
        known = implicit_stage.Known(one_form(model), charts, 0.2, gh, x, xih, u, tau)
        assert implicit_step.stage_probe(known, xi, none, none, implicit_step.Probe(r, H, Kx, Ku))
        return r, H

    H = probe(xi)[1]
    e = 1e-6
    found = np.array([gh**2 * (probe(xi + e * d)[0] - probe(xi - e * d)[0]) / (2 * e) for d in np.eye(n)]).T
    assert np.abs(found - H).max() < 1e-7 * np.abs(H).max()  # measured 5e-9


@pytest.mark.parametrize(
    "method",
    [
        la.BDF(2),
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (la.BDF(1), la.BDF(1, chart="zyz"), la.SDIRK2(chart="yxz"))
        ),
    ],
    ids=repr,
)
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
    directions = np.random.default_rng(4).normal(size=(6, 3 * n))
    for d in directions:
        change = (end(e * d) - end(-e * d)) / (2 * e)
        expected = found.A @ d[: 2 * n] + found.B @ d[2 * n :]
        assert np.abs(change - expected).max() < 1e-6 * np.abs(expected).max()  # measured 5e-9


@pytest.mark.parametrize("method", [*METHODS.values(), la.LinearlyImplicitEuler(), la.BDF(2, chart="euler")], ids=repr)
def test_a_run_in_parts_is_the_run_to_the_last_bit(method, tmp_path):
    model = la.models.chain(3, joint="spherical", length=0.5).build()
    state = model.state(*make.random_state(model, np.random.default_rng(1)))
    whole = la.simulate(model, state, dt=0.01, duration=0.2, method=method)
    half = la.simulate(model, state, dt=0.01, duration=0.1, method=method)
    half.save(tmp_path / "half.npz")
    both = la.resume(tmp_path / "half.npz", 0.1)
    assert np.array_equal(both.q, whole.q)
    assert np.array_equal(both.v, whole.v)


def top(chart: str, dt: float) -> la.Trajectory:
    """A ball joint that turns over several times in one second."""
    model = la.models.chain(2, joint="spherical", length=0.5).build()
    state = model.state(v=[6.0, 2.0, 9.0, 1.0, -3.0, 2.0])
    return la.simulate(model, state, dt=dt, duration=1.0, method=la.BDF(2, chart=chart))


def test_charts_agree_as_the_step_goes_to_zero():
    ends = {chart: [top(chart, dt).q[-1] for dt in (0.002, 0.001)] for chart in ("exp", "euler")}
    apart = [np.linalg.norm(a - b) for a, b in zip(*ends.values(), strict=True)]
    assert 0 < apart[1] < 0.35 * apart[0]  # measured 0.25
    run = top("euler", 0.001)
    assert set(run.memory["chart"][1:]) <= set(range(27))


def test_a_fixed_chart_ends_at_its_singularity():
    m = la.Mechanism("wheel", gravity=(0, 0, 0))
    m.add_body("disk", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("hub", "spherical", parent="world", child="disk")
    model = m.build()
    state = model.state(v=[0.0, 1.0, 0.0])
    with pytest.raises(la.ConvergenceError, match=r"joint 'hub' is at a singularity of its Euler chart 'xyz'"):
        la.simulate(model, state, dt=np.pi / 200, duration=np.pi, method=la.BDF(1, chart="xyz"))
    # neutral is a singularity of this one
    with pytest.raises(la.ConvergenceError, match="'zxz'"):
        la.simulate(model, state, dt=0.01, duration=0.1, method=la.BDF(1, chart="zxz"))
    for chart in ("exp", "euler"):
        run = la.simulate(model, state, dt=np.pi / 200, duration=np.pi, method=la.BDF(2, chart=chart))
        assert np.abs(run.q[-1]) == pytest.approx([0.0, 0.0, 1.0, 0.0], abs=1e-12)  # measured 4e-14


def atwood(stiffness: float) -> la.Model:
    """Masses of 1 and 3 kg on the ends of a cable over two points of the ceiling, which starts relaxed."""
    m = la.Mechanism("atwood")
    for name, mass, at in (("light", 1.0, -0.2), ("heavy", 3.0, 0.2)):
        m.add_body(name, mass=mass, inertia=(0.01, 0.01, 0.01))
        frame = la.pose(xyz=(at, 0.0, 0.0))
        m.add_joint(f"{name} rail", "prismatic", parent="world", child=name, axis=(0, 0, 1), parent_frame=frame)
    over = [("world", (-0.2, 0.0, 2.0)), ("world", (0.2, 0.0, 2.0))]
    points = [("light", (0, 0, 0)), *over, ("heavy", (0, 0, 0))]
    m.add_force(la.Cable(points, stiffness=stiffness, damping=100.0, rest_length=4.4))
    return m.build()


@pytest.mark.parametrize("method", [la.BDF(1), la.BDF(2), la.SDIRK2()], ids=lambda method: method.label)
def test_a_stiff_cable_runs_at_ten_milliseconds(method):
    model = atwood(1e6)
    run = la.simulate(model, dt=0.01, duration=0.4, method=method)
    # the masses move as one, with half the acceleration of gravity
    assert np.abs(run.q.sum(axis=1)).max() < 1e-4  # measured 2e-5
    assert run.v[-1] == pytest.approx([0.2 * 9.81, -0.2 * 9.81], rel=1e-6)  # measured 1e-9
    if method.order == 2:
        assert run.q[-1, 1] == pytest.approx(-0.25 * 9.81 * 0.4**2, rel=1e-4)  # measured 1e-5
    # an explicit method throws the masses about
    other = la.simulate(model, dt=0.01, duration=0.4, method="rk4")
    assert np.abs(other.q.sum(axis=1)).max() > 1.0  # measured 4.4


def test_unequal_steps_keep_the_order():
    model = la.models.double_pendulum().build()
    state = model.state(q=[1.2, 0.9], v=[1.0, -2.0])
    exact = la.simulate(model, state, dt=0.1, duration=0.4, method=la.Adaptive(1e-12, 1e-12)).final
    errors = []
    for n in (50, 100, 200):
        lengths = np.tile([0.6, 1.4, 0.8, 1.2], n // 2)
        run = la.simulate(model, state, dt=lengths * 0.4 / lengths.sum(), method=la.BDF(2))
        errors.append(np.linalg.norm(run.q[-1] - exact.q))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.abs(slopes - 2).max() < 0.05  # measured 0.01


def test_agreement_with_galerkin():
    model = la.models.chain(4).build()
    state = model.state(q=[0.5, 0.3, -0.4, 0.2])
    other = la.simulate(model, state, dt=0.001, duration=0.5, method=la.Galerkin(4)).final
    apart = []
    for dt in (0.01, 0.005, 0.0025):
        final = la.simulate(model, state, dt=dt, duration=0.5, method=la.BDF(2)).final
        apart.append(np.linalg.norm(difference(model, other.q, final.q)))
    assert apart[0] > 3 * apart[1] > 9 * apart[2]
    assert apart[2] < 1e-3  # measured 6e-4


def test_what_is_not_there_is_refused():
    with pytest.raises(la.ModelError, match="order must be 1 or 2"):
        la.BDF(3)
    with pytest.raises(la.ModelError, match="chart must be exp"):
        la.BDF(1, chart="xxz")
    model = la.models.pendulum().build()
    with pytest.raises(la.UnsupportedError, match="linearly-implicit-euler has no derivative"):
        la.linearize(model, la.LinearlyImplicitEuler(), model.state(), None, 0.01)
