"""Galerkin variational integrators: residual, exact Newton direction, symplectic step, momenta, energy, orders."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import entries
from leastaction.galerkin import probe as galerkin_probe
from leastaction.galerkin.method import across, balance, couplings, lobatto, row_count, with_body_forces
from leastaction.model.configuration import difference, retract
from leastaction.spatial import quaternion, so3
from leastaction.tree.layout import BALL, IU, IX, KIND

KINDS = ("free", "revolute", "spherical", "universal", "prismatic", "helical", "planar", "cylindrical", "spherical")
PARENTS = ("world", "b0", "b1", "b0", "b3", "b3", "b4", "b5", "b6")


class Drag(la.Force):
    """Resistance to the motion of one body, in its own axes."""

    name, bodies, conservative = "drag", ("b6",), False
    D = -np.diag([0.3, 0.2, 0.1, 2.0, 1.0, 3.0])

    def wrenches(self, t, poses, twists):
        return twists @ self.D

    def derivatives(self, t, poses, twists):
        return np.zeros((6, 6)), self.D


def tree(seed: int, *, springs: bool = False, forces: bool = False) -> la.Model:
    """A floating, branching tree with every kind of row, armature, and springs and forces on bodies if asked for."""
    rng = np.random.default_rng(seed)
    m = la.Mechanism("tree", gravity=(1.0, 2.0, -9.0))
    for i, (kind, parent) in enumerate(zip(KINDS, PARENTS, strict=True)):
        A = rng.normal(size=(3, 3)) * 0.2
        J = A @ A.T + 0.01 * np.eye(3)
        m.add_body(f"b{i}", mass=rng.uniform(0.5, 2), com=rng.normal(size=3) * 0.2, inertia=np.trace(J) * np.eye(3) - J)
        more = {"axis2": rng.normal(size=3)} if kind == "universal" else {"pitch": 0.1} if kind == "helical" else {}
        if springs and kind != "free":
            more |= {"stiffness": 3.0, "damping": 0.4}
        m.add_joint(
            f"j{i}",
            kind,
            parent=parent,
            child=f"b{i}",
            axis=rng.normal(size=3),
            parent_frame=la.pose(xyz=rng.normal(size=3) * 0.3, rpy=rng.normal(size=3)),
            armature=0.0 if kind == "free" else 0.05,
            **more,
        )
    if forces:
        spring = {"stiffness": 40.0, "damping": 3.0, "rest_length": 0.2}
        m.add_force(la.PointSpring("world", (0.5, 0.2, 0.1), "b4", (0.1, -0.2, 0.3), **spring))
        m.add_force(la.PointSpring("b8", (0.2, 0.1, 0.1), "world", (0.1, 0.4, -0.3), **spring))
        m.add_force(la.PointForce("b2", (0.1, 0.3, -0.2), (3.0, -2.0, 1.0)))
        m.add_force(la.PointForce("b1", (0.2, 0.1, 0.2), (1.0, 2.0, -1.0), frame="body"))
        m.add_force(la.Wrench("b5", (0.5, -0.4, 0.3, 1.0, 2.0, 3.0)))
        m.add_force(Drag())
    return m.build()


class Probe:
    """One step of a model at fixed start: residual, momentum and direction as functions of the local coordinates."""

    def __init__(self, model: la.Model, s: int, h: float, seed: int, control: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.model, self.s, self.h = model, s, h
        self.c, self.w, self.b, self.ahead = lobatto(s)
        q = retract(model, model.neutral(), rng.normal(size=model.nv) * 0.4)
        self.x, u = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(model.system, q, np.zeros(model.nv), self.x, u)
        self.xi = np.zeros((model.nv, s + 1))
        self.xi[:, 1:] = h * rng.normal(size=(model.nv, s))
        self.p = rng.normal(size=model.nv) * 0.1
        self.control = np.zeros(model.nv)
        if control:
            # the turning of a control on a free joint is left out of the direction
            self.control[6:] = rng.normal(size=model.nv - 6)
        passive = model.system.passive
        self.active = control or bool(len(passive.screw) or len(passive.ball))

    def __call__(self, xi: np.ndarray, x: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, s = self.model.nv, self.s
        r, pn, y = np.zeros((n, s)), np.zeros(n), np.zeros(n * s)
        galerkin_probe.galerkin_probe(
            self.model.system, tuple(self.w.tolist()), with_body_forces(self.model), None, couplings(self.model, s),
            (self.b, self.c, self.ahead, balance(s)), across(self.model.system.tree.gravity), 0.0,
            self.h, self.x if x is None else x, self.p, self.control[None], self.active, xi,
            np.zeros((s, row_count(self.model))), r, pn, y,
        )  # fmt: skip
        return r, pn, y

    def columns(self) -> list[tuple[int, int, int]]:
        """(place in y, rate, node) of every unknown."""
        out = []
        for i in range(1, len(self.model.system.tree.rows)):
            _, kind, _, d = self.model.system.tree.rows[i]
            n = 3 if kind == BALL else 1
            out += [(d * self.s + n * a + j, d + j, a) for a in range(self.s) for j in range(n)]
        return sorted(out)

    def action(self, x: np.ndarray, xi: np.ndarray) -> float:
        """Discrete action sum_a w_a h L(q^a, v^a), from the energies of the library."""
        total, rows = 0.0, self.model.system.tree.rows
        rates = xi @ self.b.T / self.h
        for a in range(self.s + 1):
            xa, ua = x.copy(), rates[:, a].copy()
            for row in rows[1:]:
                k, d = row[IX], row[IU]
                if row[KIND] == BALL:
                    z = xi[d : d + 3, a]
                    turn = quaternion.multiply(quaternion.from_mrp(z), x[k : k + 4])
                    xa[k : k + 4] = turn
                    spin = so3.mrp_dexp(z) @ rates[d : d + 3, a]
                    ua[d : d + 3] = quaternion.rotate(quaternion.conjugate(turn), spin)
                else:
                    xa[k] += xi[d, a]
            q, v = np.zeros(self.model.nq), np.zeros(self.model.nv)
            entries.leave(self.model.system, xa, ua, q, v)
            e = la.energy(self.model, q, v)
            total += self.w[a] * self.h * (e.kinetic - e.potential)
        return total

    def displaced(self, d: int, eps: float) -> tuple[np.ndarray, np.ndarray]:
        """x and xi when node 0 of rate d moves by eps along its parent's axes and all other nodes stay."""
        x, xi = self.x.copy(), self.xi.copy()
        row = next(r for r in self.model.system.tree.rows[1:] if r[IU] <= d < r[IU] + (3 if r[KIND] == BALL else 1))
        k, first = row[IX], row[IU]
        if row[KIND] != BALL:
            x[k] += eps
            xi[d, 1:] -= eps
            return x, xi
        turn = np.zeros(3)
        turn[d - first] = eps
        step = quaternion.exp(turn)
        x[k : k + 4] = quaternion.multiply(step, x[k : k + 4])
        for a in range(1, self.s + 1):
            moved = quaternion.multiply(quaternion.from_mrp(xi[first : first + 3, a]), quaternion.conjugate(step))
            xi[first : first + 3, a] = quaternion.to_mrp(moved)
        return x, xi


@pytest.mark.parametrize("s", [1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_the_residual_is_the_gradient_of_the_discrete_action(s):
    probe = Probe(tree(1), s, 0.05, 2)
    r, _, _ = probe(probe.xi)
    eps, n = 1e-5, probe.model.nv
    for d in range(n):
        # inner nodes: local coordinates are free
        for a in range(1, s):
            up, down = probe.xi.copy(), probe.xi.copy()
            up[d, a] += eps
            down[d, a] -= eps
            slope = (probe.action(probe.x, up) - probe.action(probe.x, down)) / (2 * eps)
            # measured 1.3e-9, of rows up to 226
            assert r[d, a] == pytest.approx(slope, abs=1e-7)
        # node 0: the centre of the chart moves with it
        slope = (probe.action(*probe.displaced(d, eps)) - probe.action(*probe.displaced(d, -eps))) / (2 * eps)
        assert r[d, 0] - probe.p[d] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(
    ("s", "springs", "forces"),
    [
        *((s, springs, False) for s in (1, 2) for springs in (False, True)),
        (1, True, True),
        pytest.param(2, True, True, marks=pytest.mark.slow),
        pytest.param(3, False, False, marks=pytest.mark.slow),
        pytest.param(3, True, False, marks=pytest.mark.slow),
    ],
)
def test_the_newton_direction_is_exact(s, springs, forces):
    probe = Probe(tree(3, springs=springs, forces=forces), s, 0.05, 4, control=springs)
    r, _, y = probe(probe.xi)
    columns, eps = probe.columns(), 1e-6
    J = np.zeros((len(columns), len(columns)))
    for c, d, a in columns:
        up, down = probe.xi.copy(), probe.xi.copy()
        up[d, a + 1] += eps
        down[d, a + 1] -= eps
        change = (probe(up)[0] - probe(down)[0]) / (2 * eps)
        for row, e, k in columns:
            J[row, c] = change[e, k]
    rows = np.array([r[d, a] for _, d, a in columns])
    exact = -np.linalg.solve(J, rows)
    # measured 3.6e-9 at most, the error of the differences
    assert np.abs(y - exact).max() < 2e-8 * np.abs(exact).max()


def test_the_nodes_are_those_of_lobatto():
    c, w, b, ahead = lobatto(3)
    assert np.allclose(c, [0, (1 - 5**-0.5) / 2, (1 + 5**-0.5) / 2, 1], atol=1e-15)
    assert np.allclose(w, np.array([1, 5, 5, 1]) / 12, atol=1e-15)
    for s in range(1, 9):
        c, w, b, ahead = lobatto(s)
        # quadrature exact to degree 2s - 1, derivative and extrapolation to degree s; measured 2e-16, 7e-15, 2e-11
        for k in range(2 * s):
            assert w @ c**k == pytest.approx(1 / (k + 1), abs=1e-14)
        for k in range(s + 1):
            assert np.abs(b @ c**k - (k * c ** max(k - 1, 0))).max() < 1e-13
            assert np.abs(ahead @ c**k - (1 + c) ** k).max() < 1e-9


def spherical_chain(n: int = 3) -> la.Model:
    return la.models.chain(n, joint="spherical").build()


CASES = {
    "double pendulum": (lambda: la.models.double_pendulum().build(), 0.5),
    "tumbling body": (lambda: la.models.free_body().build(), 1.0),
    "spherical chain": (spherical_chain, 0.3),
}


@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("case", list(CASES))
def test_the_order_holds_for_q_and_v(case, order):
    make, T = CASES[case]
    model = make()
    rng = np.random.default_rng(5)
    x0 = model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv))
    exact = la.simulate(model, x0, dt=T / 10, duration=T, method=la.Adaptive(1e-13, 1e-13))
    errors = []
    for n in (40, 80, 160) if order == 2 else (20, 40, 80):
        run = la.simulate(model, x0, dt=T / n, duration=T, method=la.Galerkin(order, solver=la.Newton(1e-13)))
        errors.append((np.abs(difference(model, exact.q[-1], run.q[-1])).max(), np.abs(run.v[-1] - exact.v[-1]).max()))
    slopes = np.log2(np.array(errors[-2]) / np.array(errors[-1]))
    # measured 1.941 to 2.000 and 3.945 to 4.014
    assert np.abs(slopes - order).max() < 0.2


def test_momenta_of_a_floating_tree_are_conserved():
    model = tree(6)
    free = model.mechanism.copy()
    free.gravity = np.zeros(3)
    model = free.build()
    rng = np.random.default_rng(7)
    x0 = model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv) * 0.5)
    run = la.simulate(model, x0, dt=0.005, duration=1.0, method=la.Galerkin(2))
    # measured 7.1e-15 of 7.7 N s, and 2.1e-11 of 9.7 N m s, which the solver's tolerance sets
    assert np.abs(run.momentum.linear - run.momentum.linear[0]).max() < 1e-12
    assert np.abs(run.momentum.angular - run.momentum.angular[0]).max() < 1e-9


def test_the_step_map_is_symplectic():
    model = la.models.double_pendulum().build()
    q, v = np.array([0.7, -0.4]), np.array([1.0, 0.5])

    def step(state: np.ndarray) -> np.ndarray:
        """One step in canonical coordinates (q, p)."""
        M = la.mass_matrix(model, state[:2])
        x = model.state(state[:2], np.linalg.solve(M, state[2:]))
        out = la.Galerkin(2, solver=la.Newton(1e-14)).step(model, x, 0.05)
        return np.concatenate([out.q, la.mass_matrix(model, out.q) @ out.v])

    start = np.concatenate([q, la.mass_matrix(model, q) @ v])
    eps = 1e-5
    A = np.array([(step(start + eps * e) - step(start - eps * e)) / (2 * eps) for e in np.eye(4)]).T
    Omega = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    # measured 1.6e-10, the error of the differences
    assert np.abs(A.T @ Omega @ A - Omega).max() < 1e-8


def test_energy_stays_in_a_band_where_euler_drifts():
    model = la.models.double_pendulum().build()
    x0 = model.state(np.array([0.3, 0.1]))
    run = la.simulate(model, x0, dt=0.02, duration=400.0, method=la.Galerkin(2), save_every=10)
    e = run.energy.total - run.energy.total[0]
    quarters = [np.abs(part).max() for part in np.array_split(e, 4)]
    slope = np.polyfit(run.t, e, 1)[0] * run.t[-1]
    # measured: 9.48e-4 to 9.49e-4 J in the quarters, line fit 5.8e-7 J over the run, of 1.6 J of kinetic energy
    assert max(quarters) < 1.05 * min(quarters)
    assert abs(slope) < 0.01 * max(quarters)
    # the same run with semi-implicit Euler goes up by 0.03 J in every quarter
    other = la.simulate(model, x0, dt=0.02, duration=400.0, method="euler", save_every=10)
    drift = [np.abs(part).max() for part in np.array_split(other.energy.total - other.energy.total[0], 4)]
    assert drift[3] > 2 * drift[0]


def test_forces_on_bodies_and_control_agree_with_runge_kutta():
    m = la.models.chain(3)
    m.add_force(la.PointSpring("link3", (0, 0, -0.2), "world", (0.3, 0.1, -0.2), stiffness=40.0, damping=0.3))
    m.add_force(la.PointForce("link2", (0, 0, -0.1), (1.0, -2.0, 0.5)))
    for joint in m.joints.values():
        joint.damping = np.array([0.02])
    model = m.build()
    x0 = model.state(np.array([0.4, -0.3, 0.2]))

    def control(t: float, state: la.State) -> np.ndarray:
        return np.array([0.1 * np.sin(t), 0.0, -0.05 * state.v[2]])

    # the control is held over a step by both, so they differ by the methods' errors alone
    a = la.simulate(model, x0, dt=0.002, duration=0.5, method=la.Galerkin(4), control=control)
    b = la.simulate(model, x0, dt=0.002, duration=0.5, method=la.RungeKutta(4), control=control)
    # measured 2.3e-8
    assert np.abs(a.q - b.q).max() < 1e-7


def test_a_resumed_run_is_the_same_to_the_last_bit(tmp_path):
    model = tree(8)
    x0 = model.state(v=np.full(model.nv, 0.1))
    whole = la.simulate(model, x0, dt=0.01, duration=0.2, method=la.Galerkin(4))
    la.simulate(model, x0, dt=0.01, duration=0.1, method=la.Galerkin(4)).save(tmp_path / "half.npz")
    again = la.resume(tmp_path / "half.npz", 0.1)
    assert np.array_equal(whole.q, again.q)
    assert np.array_equal(whole.v, again.v)


@pytest.mark.parametrize("order", [0, 1, 3, -2, 2.0, True, "4", 18])
def test_orders_that_do_not_exist(order):
    with pytest.raises(la.ModelError, match="order"):
        la.Galerkin(order)


def test_other_bad_options():
    with pytest.raises(la.ModelError, match="guess"):
        la.Galerkin(2, guess="luck")
    with pytest.raises(la.ModelError, match="tolerance"):
        la.Galerkin(2, solver=la.Newton(tolerance=0.0))
    with pytest.raises(la.ModelError, match="iterations"):
        la.Galerkin(2, solver=la.Newton(iterations=0))


def test_a_step_that_is_too_large_fails_loudly_and_keeps_what_it_had():
    model = la.models.chain(10).build()
    x0 = model.state(np.full(10, 1.5))
    with pytest.raises(la.ConvergenceError, match="did not converge") as caught:
        la.simulate(model, x0, dt=0.5, duration=10.0, method=la.Galerkin(2, solver=la.Newton(iterations=5)))
    assert np.isfinite(caught.value.run.q).all()


@pytest.mark.parametrize(
    "kind", ["revolute", "prismatic", "helical", "spherical", "planar_free", "cylindrical_free", "free"]
)
@pytest.mark.parametrize("order", [2, 4])
def test_chunks_and_resume_do_not_change_a_bit(kind, order):
    rng = np.random.default_rng(9)
    m = la.Mechanism("two")
    for i, parent in enumerate(("world", "b0")):
        m.add_body(f"b{i}", mass=1.0 + i, com=rng.normal(size=3) * 0.2, inertia=(0.1, 0.12, 0.15))
        more = {"pitch": 0.1} if kind == "helical" else {}
        frame = la.pose(xyz=rng.normal(size=3) * 0.1, rpy=rng.normal(size=3))
        m.add_joint(f"j{i}", kind, parent=parent, child=f"b{i}", axis=rng.normal(size=3), child_frame=frame, **more)
    model = m.build()
    x0 = model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv))
    method = la.Galerkin(order)
    whole = la.simulate(model, x0, dt=0.005, duration=0.1, method=method)
    # one step at a time
    piece = la.simulate(model, x0, dt=0.005, duration=0.005, method=method)
    for _ in range(19):
        piece = la.resume(piece, 0.005)
    assert np.array_equal(whole.q, piece.q)
    assert np.array_equal(whole.v, piece.v)
