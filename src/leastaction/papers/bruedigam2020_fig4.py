"""Main properties: energy over an hour, drift of a loop, sparse against dense Newton steps, quadratic convergence."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from leastaction.papers.bruedigam2023_fig7 import loop_drift
from leastaction.papers.common import columns, few_ticks, pendulum, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

_DT = 0.01
_LINKS = (1, 10, 100)

# no residual is below rounding
_FLOOR = 1e-16

Rows = list[dict[str, Any]]


@experiment(
    "bruedigam2020-fig4",
    paper="Brüdigam, Manchester 2020, Fig. 4",
    title="Energy over an hour, drift of a loop, sparse against dense Newton steps, convergence",
    aliases=("bruedigam2020-fig4a", "bruedigam2020-fig4b", "bruedigam2020-fig4c", "bruedigam2020-fig4d"),
)
def figure4(context: Context) -> Result:
    """60 minutes of the double pendulum (6 if quick), 60 s of the loop (20 s), systems of up to 128 links (32)."""
    context.progress("a double pendulum")
    energy_claims, energy = _energy(360.0 if context.quick else 3600.0)
    context.progress("a loop")
    loop_claims, gaps, _ = loop_drift(20.0 if context.quick else 60.0)
    context.progress("sparse and dense")
    time_claims, times = _sparse((4, 8, 16, 32) if context.quick else (4, 8, 16, 32, 64, 128))
    context.progress("convergence")
    order_claims, residuals = _convergence()
    claims = [*energy_claims, *(_relabel(claim) for claim in loop_claims[:2]), *time_claims, *order_claims]
    figure = _figure(energy, gaps, times, residuals)
    return Result(claims, {"": energy, "times": times, "residuals": residuals}, {"": figure})


def _relabel(claim: Claim) -> Claim:
    """The loop is panel (b) here."""
    return Claim(claim.text.replace("(a)", "(b)"), claim.paper, claim.ours, claim.holds)


# --- (a) -----------------------------------------------------------------------------------------------------------
def _energy(duration: float) -> tuple[list[Claim], Rows]:
    """Two rods of 1 m and 1 kg, released horizontally at rest; the paper does not give the start."""
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model = pendulum(2)
    start = model.state(q=[np.pi / 2, 0.0])
    methods = {
        "maximal": Maximal(),
        "maximal, start of the paper": Maximal(start="seed"),
        "rk2 (Heun)": RungeKutta(2),
    }
    errors, drift, band = {}, {}, {}
    for label, method in methods.items():
        run = simulate(model, start, dt=_DT, duration=duration, method=method, save_every=25)
        errors[label] = run.energy.total - run.energy.total[0]
        drift[label] = float(np.polyfit(run.t, errors[label], 1)[0] * duration)
        band[label] = float(np.abs(errors[label]).max())
    swing = float(np.ptp(run.energy.potential))
    minutes, (ours, seed, heun) = duration / 60, tuple(methods)
    claims = [
        Claim(
            f"(a) constant energy over {minutes:g} minutes: change by a line fit, J (of {swing:.3g} J exchanged)",
            "constant",
            f"{drift[ours]:.1g}; {drift[seed]:.1g} with the start of the paper",
            max(abs(drift[ours]), abs(drift[seed])) < 1e-3 * swing,
        ),
        Claim(
            "(a) largest energy error, J", "not given", f"{band[ours]:.2g}; {band[seed]:.2g}", band[ours] < 0.02 * swing
        ),
        Claim(
            "(a) the error of Heun's method increases: change by a line fit, J",
            "increases substantially",
            f"{drift[heun]:.2g}",
            drift[heun] > 0.01 * swing,
        ),
    ]
    rows = [{"t": float(t), **{label: float(error[k]) for label, error in errors.items()}} for k, t in enumerate(run.t)]
    return claims, rows


# --- (c) -----------------------------------------------------------------------------------------------------------
def _sparse(counts: tuple[int, ...]) -> tuple[list[Claim], Rows]:
    """Time of one Newton direction of n hinged links, 11 n rows: the graph's factorisation against a dense one."""
    from leastaction.solve.graph_system import GraphSystem

    rng = np.random.default_rng(0)
    rows: Rows = []
    worst = 0.0
    for n in counts:
        bodies, joints = range(n), range(n, 2 * n)
        edges = [(n + k, k) for k in bodies] + [(n + k, k - 1) for k in range(1, n)]
        sizes = {**dict.fromkeys(bodies, 6), **dict.fromkeys(joints, 5)}
        system = GraphSystem(sizes, edges, constraints=joints)
        # masses over the step, and rows of the joints
        blocks: dict[tuple[int, int], Any] = {
            (k, k): 100.0 * (np.eye(6) + 0.1 * rng.normal(size=(6, 6))) for k in bodies
        }
        for joint, body in edges:
            blocks[joint, body], blocks[body, joint] = rng.normal(size=(5, 6)), rng.normal(size=(6, 5))
        F, rhs = system.dense(blocks), rng.normal(size=system.size)
        x = system.solve(blocks, rhs)
        worst = max(worst, float(np.abs(F @ x - rhs).max()))
        rows.append({"links": n, "solver": "graph", "time (s)": _best(partial(system.solve, blocks, rhs))})
        rows.append({"links": n, "solver": "dense", "time (s)": _best(partial(np.linalg.solve, F, rhs))})
    # exponents from the larger half
    powers = {}
    for solver in ("graph", "dense"):
        n_links, seconds = columns(rows[len(rows) // 2 :], "links", "time (s)", solver=solver)
        powers[solver] = slope(n_links.tolist(), seconds.tolist())
    claims = [
        Claim("(c) sparse Newton steps grow as n: exponent", 1, round(powers["graph"], 2), powers["graph"] < 1.3),
        Claim(
            "(c) dense ones grow faster: exponent of a dense solution",
            3,
            round(powers["dense"], 2),
            powers["dense"] > 1.5 * powers["graph"],
        ),
        Claim("(c) largest residual of the sparse solution", "not given", f"{worst:.1e}", worst < 1e-9),
    ]
    return claims, rows


def _best(call: Callable[[], Any], repeats: int = 5) -> float:
    """Smallest processor time of a call in this thread, seconds; each measurement takes a few milliseconds at least."""
    call()
    times = []
    for _ in range(repeats):
        begin, count = time.thread_time(), 0
        while count == 0 or time.thread_time() - begin < 0.005:
            call()
            count += 1
        times.append((time.thread_time() - begin) / count)
    return min(times)


# --- (d) -----------------------------------------------------------------------------------------------------------
def _convergence() -> tuple[list[Claim], Rows]:
    """Residuals of one step after each iteration, for pendulums that were released horizontally 0.1 s before."""
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate
    from leastaction.solve.solvers import Newton

    tolerances = 10.0 ** -np.arange(0.0, 16.01, 0.25)
    rows: Rows = []
    needed = {}
    for n in _LINKS:
        model = pendulum(n)
        start = model.state(q=[np.pi / 2] + [0.0] * (n - 1))
        state = simulate(model, start, dt=_DT, duration=0.1, method=Maximal()).final
        # the solver says how many iterations a tolerance takes: the last one that k of them reach bounds the residual
        reached: dict[int, float] = {}
        for tolerance in tolerances.tolist():
            method = Maximal(solver=Newton(tolerance))
            count = simulate(model, state, dt=_DT, duration=_DT, method=method).report.counters["iterations"]
            reached[count] = min(reached.get(count, 1.0), tolerance)
            if tolerance >= 0.99e-10:
                needed[n] = count
        rows += [{"links": n, "iteration": k, "residual": max(size, _FLOOR)} for k, size in sorted(reached.items())]
    # digits after each iteration, until rounding rules
    doubled = []
    for n in _LINKS:
        _, sizes = columns(rows, "iteration", "residual", links=n)
        digits = -np.log10(sizes)
        doubled += [float(b / a) for a, b in pairwise(digits) if 0 < a < 8]
    words = ", ".join(f"{count} at {n}" for n, count in needed.items())
    claims = [
        Claim(
            "(d) quadratic convergence: an iteration doubles the digits, or better; smallest factor",
            2,
            round(min(doubled), 2),
            min(doubled) >= 1.8,
        ),
        Claim(
            "(d) iterations for 1e-10 at 1, 10 and 100 links",
            "three to four, typically",
            words,
            max(needed.values()) <= 4,
        ),
    ]
    return claims, rows


def _figure(energy: Rows, gaps: dict[str, tuple[Any, Any]], times: Rows, residuals: Rows) -> Any:
    """The four panels of the paper."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        (a, b), (c, d) = figure.subplots(2, 2)
        t = np.array([row["t"] for row in energy]) / 60
        for index, label in reversed(list(enumerate(list(energy[0])[1:]))):
            a.plot(t, [row[label] for row in energy], label=label, **colour_of(index))
        a.set(title="(a) double pendulum: E \N{MINUS SIGN} E(0)", xlabel="time  (min)", ylabel="J")
        for index, (label, (t, y)) in enumerate(gaps.items()):
            b.semilogy(t[1:], np.abs(y[1:]) + 1e-18, label=label, **colour_of(index))
        b.set(title="(b) loop: gap", xlabel="time  (s)", ylabel="m")
        for index, solver in enumerate(("graph", "dense")):
            n, seconds = columns(times, "links", "time (s)", solver=solver)
            c.loglog(n, 1e6 * seconds, marker="o", markersize=3.5, label=solver, **colour_of(index))
        c.set(title="(c) one Newton direction", xlabel="links", ylabel="processor time  (µs)")
        few_ticks(c)
        for index, n_links in enumerate(_LINKS):
            k, size = columns(residuals, "iteration", "residual", links=n_links)
            d.semilogy(k, size, marker="o", markersize=3.5, label=f"{n_links} links", **colour_of(index))
        d.set(title="(d) one step", xlabel="iteration", ylabel="relative residual", xticks=range(int(k.max()) + 1))
        for axes in (a, b, c, d):
            axes.legend(loc="best")

    return styled(draw, 10.5, 6.4)
