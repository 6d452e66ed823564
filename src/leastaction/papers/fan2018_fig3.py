"""The Simpson variational integrator against Hermite-Simpson collocation on a 12-link pendulum, and Table 1."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers.common import columns, few_ticks, legend_outside, pendulum, slope, starts
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.methods.base import Method
    from leastaction.model.checks import FloatArray
    from leastaction.model.model import Model, State

_LINKS, _DURATION, _REFERENCE = 12, 10.0, 5e-4
_STEPS = (0.05, 0.025, 0.0125, 0.01, 0.005, 0.0025)
_NAMES = ("Simpson variational", "Hermite-Simpson explicit", "Hermite-Simpson implicit")


@experiment(
    "fan2018-fig3",
    paper="Fan, Schultz, Murphey 2018, Fig. 3",
    title="A 12-link pendulum for 10 s: Simpson variational integrator against Hermite-Simpson collocation",
    aliases=("fan2018-fig3a", "fan2018-fig3b", "fan2018-fig3c"),
)
def figure3(context: Context) -> Result:
    """100 starts at rest with angles in +-pi/12 (2 if quick, for 2 s); error against Hermite-Simpson at 0.5 ms."""
    count, duration = (2, 2.0) if context.quick else (100, _DURATION)
    model = pendulum(_LINKS)
    states = [model.state(q) for q in starts(count, _LINKS, np.pi / 12, 0.0)[0]]
    references = []
    for k, state in enumerate(states):
        context.progress(f"reference {k + 1} of {count}")
        references.append(_run(model, state, "Hermite-Simpson implicit", _REFERENCE, duration)[0])

    # errors (1/T) int |q - q_d| dt and times, means over the starts
    rows: list[dict[str, Any]] = []
    for name in _NAMES:
        for dt in _STEPS:
            context.progress(f"{name}, dt = {dt} s")
            found = [_error(model, *pair, name, dt, duration) for pair in zip(states, references, strict=True)]
            error, seconds = np.mean(found, axis=0)
            row = {"method": name, "dt": dt, "error": float(error), "seconds": float(seconds)}
            rows.append({**row, "starts": count, "failed": int(np.isnan([one for one, _ in found]).sum())})
    parts = _parts(model, states[0], context)
    return Result(_claims(rows, parts), {"": rows, "parts": parts}, {"": _figure(rows, duration)})


def _method(name: str) -> Method:
    """A method by its name in the figure."""
    from leastaction.comparators.hermite_simpson.method import HermiteSimpson
    from leastaction.galerkin.method import Galerkin

    return Galerkin(4) if name == _NAMES[0] else HermiteSimpson(name.split()[-1])


def _run(model: Model, state: State, name: str, dt: float, duration: float) -> tuple[FloatArray, float]:
    """Coordinates (steps + 1, n) and the seconds of processor time that the steps took."""
    from leastaction.methods.base import Clock, Control

    method, steps, none = _method(name), round(duration / dt), Control(np.zeros((0, model.nv)))
    method.rollout(model, method.start(model, state), Clock(0.0, dt), 0, 0, 1, none)
    memory = method.start(model, state)
    begin = time.process_time()
    chunk = method.rollout(model, memory, Clock(0.0, dt), 0, steps, 1, none)
    seconds = time.process_time() - begin
    # a run that stops early has no error: the last state stays
    q = np.full((steps + 1, model.nq), np.nan)
    q[0], q[1 : chunk.steps + 1] = state.q, chunk.q
    return q, seconds


def _error(
    model: Model, state: State, reference: FloatArray, name: str, dt: float, duration: float
) -> tuple[float, float]:
    """Mean distance to the reference over time, and the seconds of the run."""
    q, seconds = _run(model, state, name, dt, duration)
    distance = np.linalg.norm(q - reference[:: round(dt / _REFERENCE)], axis=1)
    return float(np.trapezoid(distance, dx=dt) / duration), seconds


def _parts(model: Model, state: State, context: Context) -> list[dict[str, Any]]:
    """Microseconds of one evaluation and of one linearisation of either integrator: what the paper does not show."""
    from leastaction.papers.timing import galerkin_times, hermite_simpson_times

    context.progress("evaluation and linearisation")
    dt = 0.01
    rows = [{"method": _NAMES[0], **galerkin_times(model, [state] * 100, 4, dt)}]
    rows += [{"method": name, **hermite_simpson_times(model, state, name.split()[-1], dt)} for name in _NAMES[1:]]
    return [{key: row[key] for key in ("method", "evaluation", "linearisation")} for row in rows]


def _claims(rows: list[dict[str, Any]], parts: list[dict[str, Any]]) -> list[Claim]:
    """Accuracy at the same step, time at the same error, and the parts."""
    error = {name: columns(rows, "dt", "error", method=name)[1] for name in _NAMES}
    seconds = {name: columns(rows, "dt", "seconds", method=name)[1] for name in _NAMES}
    ours, best = _NAMES[0], min(_NAMES[1:], key=lambda name: float(np.sum(seconds[name])))
    # a step at which a run failed has no error and is not compared
    both = np.isfinite(error[best] + error[ours])
    error = {name: found[both] for name, found in error.items()}
    seconds = {name: found[both] for name, found in seconds.items()}
    steps = np.array(_STEPS)[both]
    gain, quicker = error[best] / error[ours], seconds[best] / seconds[ours]
    claims = [
        Claim(
            "at the same step the variational integrator has the smaller error (ratio, smallest to largest)",
            "more accurate",
            f"{gain.min():.2g} to {gain.max():.2g}",
            bool((gain > 1.0).all()),
        ),
        Claim(
            "at the same step the variational integrator is faster (ratio, smallest to largest)",
            "more efficient",
            f"{quicker.min():.2g} to {quicker.max():.2g}",
            bool((quicker > 1.0).all()),
        ),
    ]
    # time at equal error: interpolate the other's time at our errors
    order = np.argsort(error[best])
    inside = (error[ours] >= error[best].min()) & (error[ours] <= error[best].max())
    theirs = np.exp(np.interp(np.log(error[ours]), np.log(error[best][order]), np.log(seconds[best][order])))
    ratio = (theirs / seconds[ours])[inside]
    text = f"{ratio.min():.2g} to {ratio.max():.2g}" if len(ratio) else "no common range of errors"
    holds = bool((ratio > 1.0).all()) if len(ratio) else None
    claims.append(Claim("time at the same error, Hermite-Simpson over variational", "more efficient", text, holds))
    # orders from the errors that lie above the reference's own
    fine = slice(-3, None)
    for name, order_of_paper in ((ours, 4), (_NAMES[1], 3)):
        found = slope(steps[fine].tolist(), error[name][fine].tolist())
        text = f"order of {name} in this figure"
        claims.append(Claim(text, order_of_paper, round(found, 2), abs(found - order_of_paper) < 0.35))
    for part in ("evaluation", "linearisation"):
        mine = parts[0][part]
        peer = min(row[part] for row in parts[1:])
        words, faster = f"{mine:.3g} against {peer:.3g} µs", mine < peer
        # what is timed of the other is only a part: being slower than that says nothing
        if part == "linearisation":
            words += f" for one of its {3 * _LINKS} solves"
        holds = faster if part == "evaluation" or faster else None
        claims.append(Claim(f"{part} is faster (not shown there)", "faster", words, holds))
    return claims


def _figure(rows: list[dict[str, Any]], duration: float) -> Any:
    """Error and time against the step, and error against time."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        axes_of = (("dt", "error"), ("dt", "seconds"), ("seconds", "error"))
        labels = {"dt": "dt  (s)", "error": "mean error of q  (rad)", "seconds": f"time for {duration:g} s  (s)"}
        for axes, (x, y) in zip(panels, axes_of, strict=True):
            for index, name in enumerate(_NAMES):
                style = {**colour_of(index), "linestyle": "--" if name == _NAMES[2] else "-"}
                axes.loglog(*columns(rows, x, y, method=name), marker="o", markersize=3.5, label=name, **style)
            axes.set_xlabel(labels[x])
            axes.set_ylabel(labels[y])
            few_ticks(axes)
        legend_outside(panels[-1])

    return styled(draw, 12.0, 3.2)
