"""Newton against quasi-Newton for one step of the trapezoidal integrator of a 32-link pendulum."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leastaction.papers.common import columns, few_ticks, legend_outside, pendulum, starts
from leastaction.papers.registry import Claim, Context, Result, experiment

_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06)
_LINKS, _REPEATS = 32, 5
_SOLVERS = ("newton", "riqn")
# the paper does not say how its links are: a plane pendulum of rods of 1 m, and the chain with hinges along y and x
_SYSTEMS = ("plane", "chain")


@experiment(
    "fan2018-fig1",
    paper="Fan, Schultz, Murphey 2018, Fig. 1",
    title="One step of a 32-link pendulum: O(n) Newton against O(n) quasi-Newton",
    aliases=("fan2018-fig1a", "fan2018-fig1b", "fan2018-fig1c"),
)
def figure1(context: Context) -> Result:
    """1000 starts with angles and velocities in +-pi/2 (50 if quick), one step at nine sizes, both solvers."""
    count = 50 if context.quick else 1000
    rows = []
    for system in _SYSTEMS:
        for dt in _STEPS:
            context.progress(f"{system}, dt = {dt} s")
            rows += _rows(system, dt, count)

    # the paper: Newton outperforms in all aspects, at every step
    claims = []
    for system in _SYSTEMS:
        table = {(row["dt"], row["solver"]): row for row in rows if row["system"] == system}
        pairs = [(table[dt, "newton"], table[dt, "riqn"]) for dt in _STEPS]
        claims += [
            _everywhere(f"{system}: Newton takes less time", pairs, "microseconds", -1.0),
            _everywhere(f"{system}: Newton takes fewer iterations", pairs, "iterations", -1.0),
            _everywhere(f"{system}: Newton succeeds at least as often", pairs, "success", 1.0),
        ]
        lowest = min(newton["success"] for newton, _ in pairs)
        claims.append(
            Claim(
                f"{system}: Newton succeeds on every start up to 0.06 s",
                "not in the text",
                f"lowest rate {lowest:g}",
                lowest == 1.0,
            )
        )
    return Result(claims, {"": rows}, {"": _figure(rows)})


def _everywhere(text: str, pairs: list[tuple[dict[str, Any], dict[str, Any]]], column: str, sign: float) -> Claim:
    """Whether Newton is better at every step, and where it is not; where RIQN never succeeds it has lost."""
    losses = []
    for newton, riqn in pairs:
        if column != "success" and riqn["success"] == 0.0:
            continue
        # equal success counts as no loss
        better = sign * (newton[column] - riqn[column]) >= 0.0
        if newton["success"] == 0.0 or not better:
            losses.append(f"{newton['dt']:g}")
    return Claim(text, "every dt", "every dt" if not losses else f"not at dt = {', '.join(losses)} s", not losses)


def _rows(system: str, dt: float, count: int) -> list[dict[str, Any]]:
    """For each solver the median time and the mean iterations over the starts that succeed, and how many do.

    Time is that of a call with one step less that of a call without steps.
    """
    from leastaction import models
    from leastaction.galerkin.method import Galerkin
    from leastaction.methods.base import Clock, Control
    from leastaction.solve.solvers import SOLVERS

    model = pendulum(_LINKS) if system == "plane" else models.chain(_LINKS).build()
    methods = {solver: Galerkin(2, solver=SOLVERS[solver](), guess="euler") for solver in _SOLVERS}
    none, clock = Control(np.zeros((0, model.nv))), Clock(0.0, dt)

    def call(solver: str, state: Any, steps: int) -> tuple[float, Any]:
        """Seconds of processor time of a call, and what it did."""
        memory = methods[solver].start(model, state)
        begin = time.process_time()
        chunk = methods[solver].rollout(model, memory, clock, 0, steps, 1, none)
        return time.process_time() - begin, chunk

    # compiled before anything is timed; what a call costs by itself
    idle = {solver: min(call(solver, model.state(), 0)[0] for _ in range(100)) for solver in _SOLVERS}
    times: dict[str, list[float]] = {solver: [] for solver in _SOLVERS}
    iterations: dict[str, list[int]] = {solver: [] for solver in _SOLVERS}
    for q, v in zip(*starts(count, _LINKS, np.pi / 2, np.pi / 2), strict=True):
        state = model.state(q, v)
        # the smallest of repeats of the same step, the solvers in turn, so that a busy machine slows both alike
        repeats = [{solver: call(solver, state, 1) for solver in _SOLVERS} for _ in range(_REPEATS)]
        for solver in _SOLVERS:
            chunk = repeats[0][solver][1]
            if chunk.failure is None:
                times[solver].append(1e6 * (min(one[solver][0] for one in repeats) - idle[solver]))
                iterations[solver].append(chunk.counters["iterations"])
    return [
        {
            "system": system,
            "dt": dt,
            "solver": solver,
            "microseconds": float(np.median(times[solver])) if times[solver] else float("nan"),
            "iterations": float(np.mean(iterations[solver])) if times[solver] else float("nan"),
            "success": len(times[solver]) / count,
            "starts": count,
        }
        for solver in _SOLVERS
    ]


def _figure(rows: list[dict[str, Any]]) -> Any:
    """Time, iterations and success against the step."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        labels = {"microseconds": "time of a step  (µs)", "iterations": "iterations", "success": "success rate"}
        for axes, (column, label) in zip(panels, labels.items(), strict=True):
            for index, solver in enumerate(_SOLVERS):
                for system, line in zip(_SYSTEMS, ("-", "--"), strict=True):
                    dt, y = columns(rows, "dt", column, solver=solver, system=system)
                    name = {"newton": "Newton", "riqn": "quasi-Newton"}[solver]
                    style = {**colour_of(index), "linestyle": line}
                    axes.semilogx(dt, y, marker="o", markersize=3.5, label=f"{name}, {system}", **style)
            axes.set_xlabel("dt  (s)")
            axes.set_ylabel(label)
            axes.set_ylim(bottom=0.0)
            few_ticks(axes, "x")
        legend_outside(panels[-1])

    return styled(draw, 11.0, 3.2)
