"""The Lie trapezoid: residual, exact Newton direction, solvers, orders, symplectic and symmetric step, momenta."""

from __future__ import annotations

import numpy as np
import pytest

import leastaction as la
from leastaction.dynamics import entries
from leastaction.model.configuration import difference, retract
from leastaction.reference import lie_trapezoid as reference
from leastaction.reference import samples as make
from leastaction.run.registry import method_by_name
from leastaction.spatial import quaternion, so3
from leastaction.trapezoid import step as trapezoid_step
from leastaction.tree.layout import BALL

SOLVERS = {"newton": la.Newton, "riqn": la.RIQN, "broyden": la.Broyden, "dense": la.DenseNewton}


KINDS = [kind for kind in make.MOVING_KINDS if kind != "free"]


def tree(seed: int, kinds: list[str], *, springs: bool = False, damping: bool = True) -> la.Model:
    """A branching tree with a joint of each kind in any order; with ``springs`` also springs, rotors and dampers.

    A random composite joint may be singular without rotors, so it is left out there.
    """
    rng = np.random.default_rng(seed)
    shuffled = [str(kind) for kind in rng.permutation(kinds) if springs or kind != "composite"]
    m = make.random_tree(["free", *shuffled], rng)
    if springs:
        for name in m.joints:
            if m.joints[name].kind != "free":
                make.add_springs(m, name, rng, damping)
            if damping and m.joints[name].kind == "revolute":
                m.joints[name].damping = make.drag(0.5)
    return m.build()


class Probe:
    """One step of a model from a random state with a random displacement."""

    def __init__(self, model: la.Model, h: float, seed: int, speed: float = 1.0, form: str = "invariant") -> None:
        rng = np.random.default_rng(seed)
        self.model, self.h, self.form = model, h, form
        self.q, _ = make.random_state(model, rng)
        self.x, u = np.zeros(model.nq), np.zeros(model.nv)
        entries.enter(model.system, self.q, np.zeros(model.nv), self.x, u)
        self.xi = speed * h * rng.normal(size=model.nv)
        passive = model.system.passive
        self.active = bool(len(passive.screw) or len(passive.ball) or len(passive.free))
        self.p = rng.normal(size=model.nv)

    def __call__(self, xi: np.ndarray, p: np.ndarray | None = None) -> dict[str, np.ndarray]:
        n = self.model.nv
        out = {"r": np.zeros(n), "pn": np.zeros(n), "y": np.zeros(n), "dense": np.zeros(n), "J": np.zeros((n, n))}
        start = trapezoid_step.State(self.x, np.zeros(n) if p is None else p, *np.zeros((2, n)), np.zeros(1, int))
        inside = trapezoid_step.trapezoid_probe(
            self.model.system, self.form == "printed", start, 0.0, self.h, np.zeros(n), self.active, xi,
            trapezoid_step.Probe(**out),
        )  # fmt: skip
        assert inside
        return out

    def balls(self) -> list[tuple[int, int]]:
        """First coordinate and first rate of every ball."""
        return [(row[2], row[3]) for row in self.model.system.tree.rows[1:] if row[1] == BALL]

    def end(self) -> tuple[np.ndarray, np.ndarray]:
        """Row coordinates and the user's q at the end of the step."""
        moved = self.xi.copy()
        x = self.x.copy()
        for row in self.model.system.tree.rows[1:]:
            k, d = row[2], row[3]
            if row[1] == BALL:
                x[k : k + 4] = quaternion.multiply(quaternion.exp(moved[d : d + 3]), x[k : k + 4])
            else:
                x[k] += moved[d]
        q = np.zeros(self.model.nq)
        entries.leave(self.model.system, x, np.zeros(self.model.nv), q, np.zeros(self.model.nv))
        return x, q

    def along_user(self, x: np.ndarray, q: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Row components, balls along parent axes, as components along the user's velocities."""
        f = f.copy()
        for k, d in self.balls():
            f[d : d + 3] = quaternion.rotate(quaternion.conjugate(x[k : k + 4]), f[d : d + 3])
        T = np.zeros((self.model.nv, self.model.nv))
        for k, v in enumerate(np.eye(self.model.nv)):
            entries.enter(self.model.system, q, v, np.zeros(self.model.nq), T[k])
        return T @ f


@pytest.mark.parametrize("kinds", [KINDS[0::3], KINDS[1::3], KINDS[2::3]])
@pytest.mark.parametrize("springs", [False, True])
@pytest.mark.parametrize("form", ["invariant", "printed"])
def test_the_residual_is_minus_the_gradient_of_the_discrete_action(kinds, springs, form):
    probe = Probe(tree(1, kinds, springs=springs, damping=False), 0.05, 2, 2.0, form)
    got = probe(probe.xi)
    x, q = probe.end()
    first, second = reference.slopes(probe.model, probe.q, q, probe.h, form)
    # of entries from 20 to 500
    assert np.abs(probe.along_user(probe.x, probe.q, got["r"]) + first).max() < 1e-7  # measured 4e-9
    assert np.abs(probe.along_user(x, q, got["pn"]) - second).max() < 1e-7  # measured 2e-9


def test_the_momenta_are_those_of_algorithm_2_in_body_axes():
    m = tree(3, KINDS).mechanism.copy()
    m.gravity = np.zeros(3)
    probe = Probe(m.build(), 0.05, 4, 2.0, "printed")
    got = probe(probe.xi)
    x, q = probe.end()
    first, second = reference.momenta(probe.model, probe.q, q, probe.h)
    assert np.abs(probe.along_user(probe.x, probe.q, got["r"]) - first).max() < 1e-10  # measured 5e-13, of 40
    assert np.abs(probe.along_user(x, q, got["pn"]) - second).max() < 1e-10  # measured 6e-13


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("springs", [False, True])
@pytest.mark.parametrize("form", ["invariant", "printed"])
def test_the_newton_direction_is_exact(seed, springs, form):
    probe = Probe(tree(seed, KINDS, springs=springs), 0.05, seed, 2.0, form)
    got, eps, n = probe(probe.xi, probe.p), 1e-6, probe.model.nv
    columns = [
        (probe(probe.xi + eps * e, probe.p)["r"] - probe(probe.xi - eps * e, probe.p)["r"]) / (2 * eps)
        for e in np.eye(n)
    ]
    J = np.array(columns).T
    exact = -np.linalg.solve(J, got["r"])
    size = np.abs(exact).max()
    assert np.abs(got["y"] - got["dense"]).max() < 1e-10 * size  # measured 9e-14
    assert np.abs(got["y"] - exact).max() < 1e-6 * size  # measured 2e-8, the error of the differences
    # Algorithm 4: derivative along the parent's axes of balls
    T = np.eye(n)
    for _, d in probe.balls():
        T[d : d + 3, d : d + 3] = so3.dlog(probe.xi[d : d + 3])
    assert np.abs(got["J"] - J @ T).max() < 1e-9 * np.abs(J).max()  # measured 5e-11


def test_half_a_turn_is_outside():
    model = la.models.free_body().build()
    probe = Probe(model, 0.1, 1)
    probe.xi[3:] = [0.0, 3.2, 0.0]
    with pytest.raises(AssertionError):
        probe(probe.xi)
    # two joints of less than half a turn each, and a body of more
    model = la.models.double_pendulum().build()
    probe = Probe(model, 0.1, 1)
    with pytest.raises(AssertionError):
        probe(np.array([1.6, 1.6]))
    probe(np.array([1.5, 1.5]))


CASES = {
    "double pendulum": (lambda: la.models.double_pendulum().build(), 0.5),
    "tumbling body": (lambda: la.models.free_body().build(), 1.0),
    "spherical chain": (lambda: la.models.chain(3, joint="spherical").build(), 0.3),
}


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("form", ["invariant", "printed"])
def test_the_order_holds_for_q_and_v(case, form):
    build, T = CASES[case]
    model = build()
    rng = np.random.default_rng(5)
    x0 = model.state(retract(model, model.neutral(), rng.normal(size=model.nv) * 0.3), rng.normal(size=model.nv))
    exact = la.simulate(model, x0, dt=T / 10, duration=T, method=la.Adaptive(1e-13, 1e-13))
    errors = []
    for n in (80, 160):
        run = la.simulate(
            model, x0, dt=T / n, duration=T, method=la.LieTrapezoid(la.Newton(tolerance=1e-14), form=form)
        )
        errors.append((np.abs(difference(model, exact.q[-1], run.q[-1])).max(), np.abs(run.v[-1] - exact.v[-1]).max()))
    slopes = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert np.abs(slopes - 2).max() < 0.15  # measured 0.087


@pytest.mark.parametrize("form", ["invariant", "printed"])
def test_the_step_map_is_symplectic(form):
    model = la.models.double_pendulum().build()
    method = la.LieTrapezoid(la.Newton(tolerance=1e-14), form=form)

    def step(state: np.ndarray) -> np.ndarray:
        """One step in canonical coordinates (q, p)."""
        x = model.state(state[:2], np.linalg.solve(la.mass_matrix(model, state[:2]), state[2:]))
        out = method.step(model, x, 0.05)
        return np.concatenate([out.q, la.mass_matrix(model, out.q) @ out.v])

    q, eps = np.array([0.7, -0.4]), 1e-5
    start = np.concatenate([q, la.mass_matrix(model, q) @ np.array([1.0, 0.5])])
    A = np.array([(step(start + eps * e) - step(start - eps * e)) / (2 * eps) for e in np.eye(4)]).T
    Omega = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    assert np.abs(A.T @ Omega @ A - Omega).max() < 1e-8  # measured 2e-10, the error of the differences


@pytest.mark.parametrize("form", ["invariant", "printed"])
def test_the_step_is_its_own_inverse_when_the_velocity_turns_round(form):
    model = tree(4, KINDS)
    rng = np.random.default_rng(6)
    q, v = make.random_state(model, rng)
    method = la.LieTrapezoid(la.Newton(tolerance=1e-14), form=form)
    there = la.simulate(model, model.state(q, v), dt=0.005, duration=0.1, method=method).final
    back = la.simulate(model, model.state(there.q, -there.v), dt=0.005, duration=0.1, method=method).final
    assert np.abs(difference(model, q, back.q)).max() < 1e-9  # measured 3e-14
    assert np.abs(back.v + v).max() < 1e-8  # measured 4e-13


@pytest.mark.parametrize("form", ["invariant", "printed"])
def test_momenta_of_a_floating_tree_are_conserved(form):
    m = tree(6, KINDS).mechanism.copy()
    m.gravity = np.zeros(3)
    model = m.build()
    q, v = make.random_state(model, np.random.default_rng(7))
    method = la.LieTrapezoid(la.Newton(tolerance=1e-14), form=form)
    run = la.simulate(model, model.state(q, 0.5 * v), dt=0.002, duration=0.4, method=method)
    # of 67 N s and 141 N m s
    assert np.abs(run.momentum.linear - run.momentum.linear[0]).max() < 1e-9  # measured 2e-13
    assert np.abs(run.momentum.angular - run.momentum.angular[0]).max() < 1e-9  # measured 7e-13


def chain_run(method: la.LieTrapezoid) -> la.Trajectory:
    """Ten links released from the horizontal, 1 ms, 1.5 s."""
    model = la.models.chain(10).build()
    q = np.zeros(10)
    q[0] = np.pi / 2
    return la.simulate(model, model.state(q), dt=0.001, duration=1.5, method=method)


def test_energy_of_a_chain_stays_in_a_band():
    error = chain_run(la.LieTrapezoid()).energy
    error = error.total - error.total[0]
    # measured -6.1e-4 to 1.9e-3 J and 2.1e-5 J at the end, of about 100 J of kinetic energy
    assert np.abs(error).max() < 0.01
    assert abs(error[-1]) < 0.001


def test_all_solvers_and_guesses_give_the_same_trajectory():
    model = la.models.chain(10).build()
    x0 = model.state(np.full(10, 0.3))
    runs = {}
    for name, kind in SOLVERS.items():
        for guess in ("hold", "euler", "dynamics", "quadratic"):
            method = la.LieTrapezoid(kind(), guess=guess)
            runs[name, guess] = la.simulate(model, x0, dt=0.001, duration=0.5, method=method)
    exact = runs["newton", "quadratic"]
    for run in runs.values():
        assert np.abs(run.q - exact.q).max() < 1e-9  # measured 3e-10
    # iterations per step; measured: Newton 2.98, 2, 1.05, 1.96 with the guesses in this order; quadratic RIQN 3.11,
    # Broyden 3.16
    per_step = {key: run.report.counters["iterations"] / 500 for key, run in runs.items()}
    assert per_step["newton", "quadratic"] < 2.1
    assert per_step["newton", "dynamics"] < per_step["newton", "euler"] < per_step["newton", "hold"] <= 3.1
    assert per_step["dense", "quadratic"] == per_step["newton", "quadratic"]
    assert per_step["newton", "quadratic"] < per_step["riqn", "quadratic"] < 4.0
    assert per_step["newton", "quadratic"] < per_step["broyden", "quadratic"] < 4.0


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_springs_dampers_forces_and_control_agree_with_runge_kutta(solver):
    rng = np.random.default_rng(8)
    m = make.random_tree(["free", "spherical", "revolute", "universal"], rng, springs=True)
    m.joints["j2"].damping = make.drag(0.3)
    make.add_every_force(m, "b1", "b3", rng)
    model = m.build()
    q, v = make.random_state(model, rng)

    def control(t: float, state: la.State) -> np.ndarray:
        return 0.2 * np.sin(3 * t + np.arange(model.nv))

    # the control is held over a step by both, so they differ by the methods' errors alone
    errors = []
    for n in (100, 200):
        options = {"dt": 0.2 / n, "duration": 0.2, "control": control}
        a = la.simulate(model, model.state(q, v), method=la.LieTrapezoid(solver), **options).final
        b = la.simulate(model, model.state(q, v), method=la.RungeKutta(4), **options).final
        errors.append((np.abs(difference(model, a.q, b.q)).max(), np.abs(a.v - b.v).max()))
    slopes = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert np.abs(slopes - 2).max() < 0.05  # measured 0.0012
    assert np.max(errors[1]) < 1e-5  # measured 3.2e-6


@pytest.mark.parametrize("solver", list(SOLVERS))
def test_chunks_and_resume_do_not_change_a_bit(solver, tmp_path):
    model = tree(8, KINDS, springs=True)
    x0 = model.state(v=np.full(model.nv, 0.1))
    method = la.LieTrapezoid(solver)
    whole = la.simulate(model, x0, dt=0.005, duration=0.1, method=method)
    la.simulate(model, x0, dt=0.005, duration=0.05, method=method).save(tmp_path / "half.npz")
    again = la.resume(tmp_path / "half.npz", 0.05, model=model)
    assert repr(again.method) == repr(method)
    assert np.array_equal(whole.q, again.q)
    assert np.array_equal(whole.v, again.v)
    # one step at a time
    piece = la.simulate(model, x0, dt=0.005, duration=0.005, method=method)
    for _ in range(19):
        piece = la.resume(piece, 0.005)
    assert np.array_equal(whole.q, piece.q)
    assert np.array_equal(whole.v, piece.v)


def test_a_step_that_is_too_large_fails_loudly_and_keeps_what_it_had():
    model = la.models.chain(10).build()
    x0 = model.state(np.full(10, 1.5))
    with pytest.raises(la.ConvergenceError, match="RIQN did not converge, after 7 of 7 iterations") as caught:
        la.simulate(model, x0, dt=0.01, duration=10.0, method=la.LieTrapezoid(la.RIQN(iterations=7)))
    assert np.isfinite(caught.value.run.q).all()
    spinning = la.models.free_body().build()
    with pytest.raises(la.ConvergenceError, match="half a turn"):
        la.simulate(spinning, spinning.state(v=[40.0, 0, 0, 0, 0, 0]), dt=0.1, duration=1.0, method="lie-trapezoid")


def test_names_and_labels():
    assert method_by_name("lie-trapezoid").label == "lie-trapezoid"
    assert method_by_name("lie-trapezoid:riqn").label == "lie-trapezoid:riqn"
    assert isinstance(method_by_name("lie-trapezoid:broyden").solver, la.Broyden)
    assert method_by_name("lie-trapezoid:printed").label == "lie-trapezoid:printed"
    assert method_by_name("lie-trapezoid:printed").form == "printed"
    assert method_by_name("lie-trapezoid:printed:riqn").label == "lie-trapezoid:printed:riqn"
    assert la.LieTrapezoid(**la.LieTrapezoid(form="printed").options()).form == "printed"
    again = la.LieTrapezoid(**la.LieTrapezoid(la.RIQN(tolerance=1e-9), guess="hold").options())
    assert again.solver == la.RIQN(tolerance=1e-9)
    assert again.guess == "hold"


def test_bad_options():
    with pytest.raises(la.ModelError, match="guess must be one of"):
        la.LieTrapezoid(guess="luck")
    with pytest.raises(la.ModelError, match="form must be one of invariant, printed"):
        la.LieTrapezoid(form="luck")
    with pytest.raises(la.ModelError, match="no solver 'luck'"):
        method_by_name("lie-trapezoid:luck")
    with pytest.raises(la.ModelError, match="expected a solver"):
        la.LieTrapezoid(3)


def test_loops_are_refused_by_name():
    with pytest.raises(la.UnsupportedError, match="loops"):
        la.simulate(la.models.four_bar().build(), dt=0.01, duration=0.1, method=la.LieTrapezoid())
