"""Work and precision: the time that a given error of the trajectory costs, ``leastaction bench precision``.

A planar pendulum of twelve links swings for 10 s from small angles. Galerkin of orders 2 to 8 and MuJoCo's RK4 at
several steps, and SciPy's DOP853 on Pinocchio's ABA at several tolerances, each give points (error, time). The time
that an error costs is read from the lines through the points of one curve, both axes logarithmic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from leastaction.bench import main as bench
from leastaction.errors import ConvergenceError, ModelError
from leastaction.galerkin.method import Galerkin
from leastaction.methods.base import Clock, Control
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model, State
from leastaction.solve.solvers import Newton

LINKS = 12
DURATION = 10.0

INTERVALS = 50
"""The trajectory is compared at the ends of so many equal intervals of the duration."""

PARTS: dict[int, tuple[int, ...]] = {
    2: (200, 800),
    4: (40, 80, 160, 320),
    6: (14, 20, 28, 40, 56),
    8: (6, 8, 11, 16, 22, 32),
}
"""Steps of Galerkin in each interval, by order."""

TOLERANCE = 1e-11
"""Of Newton's method: below the errors asked for, at every step above."""

RK4_PARTS = (50, 100, 200, 400)
"""Steps of MuJoCo's RK4 in each interval."""

DOP853_TOLERANCES = (1e-7, 1e-8, 1e-9, 1e-10)
"""Relative and absolute tolerances of DOP853."""


@dataclass(frozen=True)
class Point:
    """One run: whose it is, at which setting, its error in radians and its time in seconds."""

    curve: str
    setting: str
    error: float
    seconds: float


def planar_pendulum(links: int = LINKS) -> Model:
    """The chain of ``models.chain`` with all axes along y."""
    from leastaction import models

    m = models.chain(links)
    for joint in m.joints.values():
        joint.axis = np.array([0.0, 1.0, 0.0])
    return m.build()


def starts(model: Model) -> dict[str, State]:
    """At rest: straight at 15 degrees, and bent by seeded angles of up to 2 degrees, which excites all modes."""
    straight = np.zeros(model.nq)
    straight[0] = np.pi / 12
    bent = np.random.default_rng(1).uniform(-np.pi / 90, np.pi / 90, model.nq)
    return {"straight": model.state(straight), "bent": model.state(bent)}


def reference(model: Model, state: State, parts: int = 50) -> FloatArray:
    """Positions (INTERVALS, n) by Galerkin(8) with small steps."""
    return _galerkin(model, state, 8, parts, 1e-14)[0]


def distance(q: FloatArray, exact: FloatArray) -> float:
    """Mean over time of the distance to the reference, radians: the measure of Fan et al. 2018, Fig. 3."""
    return float(np.linalg.norm(q - exact, axis=1).mean())


def _galerkin(
    model: Model, state: State, order: int, parts: int, tolerance: float
) -> tuple[FloatArray, Callable[[], Any]]:
    """Positions at the ends of the intervals, and a function that runs all steps again."""
    method, steps = Galerkin(order, solver=Newton(tolerance)), INTERVALS * parts
    start, clock, idle = method.start(model, state), Clock(0.0, DURATION / steps), Control(np.zeros((0, model.nv)))

    def run() -> Any:
        memory = {name: array.copy() for name, array in start.items()}
        return method.rollout(model, memory, clock, 0, steps, parts, idle)

    chunk = run()
    if chunk.failure is not None:
        raise ConvergenceError(f"bench precision: {method.label}, {steps} steps: {chunk.failure}")
    return chunk.q[-INTERVALS:], run


def galerkin_points(model: Model, state: State, exact: FloatArray) -> list[Point]:
    """Points of every order and step of ours."""
    out = []
    for order, several in PARTS.items():
        for parts in several:
            q, run = _galerkin(model, state, order, parts, TOLERANCE)
            setting = f"dt={DURATION / INTERVALS / parts * 1e3:.3g} ms"
            out.append(Point(f"galerkin:{order}", setting, distance(q, exact), bench.best(run, seconds=0.2, least=3)))
    return out


def mujoco_points(model: Model, state: State, exact: FloatArray) -> list[Point]:
    """Points of MuJoCo's RK4, all steps in one call."""
    import mujoco
    from mujoco import rollout

    out, n = [], model.nv
    full = np.concatenate([[0.0], state.q, state.v])
    for parts in RK4_PARTS:
        steps = INTERVALS * parts
        peer = bench._mujoco_chain(model, DURATION / steps, "RK4")
        data = mujoco.MjData(peer)
        run = _bind(rollout.rollout, peer, data, initial_state=full, nstep=steps)
        q = run()[0][0, parts - 1 :: parts, 1 : 1 + n]
        setting = f"dt={DURATION / steps * 1e3:.3g} ms"
        out.append(Point("MuJoCo RK4", setting, distance(q, exact), bench.best(run, seconds=0.2, least=3)))
    return out


def pinocchio_points(model: Model, state: State, exact: FloatArray) -> list[Point]:
    """Points of DOP853 on Pinocchio's ABA; timed without the output at the ends of the intervals."""
    import pinocchio as pin
    from scipy.integrate import solve_ivp

    peer, n, out = bench._pinocchio_chain(model), model.nv, []
    data, none = peer.createData(), np.zeros(n)
    start, at = np.concatenate([state.q, state.v]), np.linspace(0.0, DURATION, INTERVALS + 1)[1:]

    def rate(t: float, y: FloatArray) -> FloatArray:
        return np.concatenate([y[n:], pin.aba(peer, data, y[:n], y[n:], none)])

    for tolerance in DOP853_TOLERANCES:
        options = {"method": "DOP853", "rtol": tolerance, "atol": tolerance}
        q = solve_ivp(rate, (0.0, DURATION), start, t_eval=at, **options).y[:n].T
        run = _bind(solve_ivp, rate, (0.0, DURATION), start, **options)
        seconds = bench.best(run, seconds=0.2, least=3)
        out.append(Point("DOP853 on Pinocchio ABA", f"tolerance {tolerance:.0e}", distance(q, exact), seconds))
    return out


def _bind(function: Callable[..., Any], *arguments: Any, **options: Any) -> Callable[[], Any]:
    """The call with these arguments, to be made later."""
    return lambda: function(*arguments, **options)


def seconds_at(points: Iterable[Point], error: float) -> tuple[float, str]:
    """Least time at which a curve reaches the error, seconds, and the curve.

    Between neighbours of a curve the logarithm of time is linear in that of the error.
    """
    curves: dict[str, list[Point]] = {}
    for point in points:
        curves.setdefault(point.curve, []).append(point)
    found: list[tuple[float, str]] = []
    for name, several in curves.items():
        for a, b in pairwise(several):
            if min(a.error, b.error) <= error <= max(a.error, b.error) and a.error != b.error:
                share = np.log(error / a.error) / np.log(b.error / a.error)
                found.append((float(a.seconds * (b.seconds / a.seconds) ** share), name))
    if not found:
        raise ModelError(f"bench precision: no curve has points on both sides of an error of {error:.0e}.")
    return min(found)


def bench_precision() -> list[bench.Row]:
    """Time to an error of 1e-6 against MuJoCo's RK4 and of 1e-8 against DOP853: at most a third of theirs."""
    model, points, asked = planar_pendulum(), [], []
    for name, state in starts(model).items():
        exact = reference(model, state)
        ours = galerkin_points(model, state, exact)
        rk4, dop853 = mujoco_points(model, state, exact), pinocchio_points(model, state, exact)
        # a row for each point; the time of a peer stands in the first column too
        for p in (*ours, *rk4, *dop853):
            what, ms = f"{name}: {p.curve}, {p.setting}, error {p.error:.1e}", p.seconds * 1e3
            points.append(bench.Row("precision", what, "ms", ms, None, ms, None))
        for error, peers in ((1e-6, rk4), (1e-8, dop853)):
            (mine, curve), (theirs, other) = seconds_at(ours, error), seconds_at(peers, error)
            what = f"{name}: time to error {error:.0e}, {curve}, {other}"
            asked.append(bench.Row("precision", what, "ms", mine * 1e3, theirs * 1e3, mine / theirs, 1 / 3))
    return [*points, *asked]
