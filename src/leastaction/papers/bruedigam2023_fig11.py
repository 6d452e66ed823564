"""Half a swing of pendulums of three sizes, over four decades of the step: iterations and error of the last angle."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.papers.common import columns, pendulum
from leastaction.papers.registry import Claim, Context, Result, experiment

_SCALES = (1.0, 0.5, 0.1)
_GRAVITY = 9.81
_SEED, _OURS = "start of the paper", "maximal"


@experiment(
    "bruedigam2023-fig11",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 11",
    title="Half a swing of pendulums of scale 1, 0.5, 0.1: iterations and error of the last angle over the step",
    aliases=("bruedigam2023-fig11a", "bruedigam2023-fig11b"),
)
def figure11(context: Context) -> Result:
    """Rods of mass s and length s^2 from 90 degrees at rest, until they rest again; 10 to 1e5 steps (1e4 if quick).

    The paper ends at half of T = 2 pi sqrt(2 l / (3 g)), the period of small swings. From 90 degrees half a swing takes
    18 % longer, and only then the angle is -90 degrees: here the true time is taken.
    """
    counts = np.unique(
        np.round(np.geomspace(10, 1e4 if context.quick else 1e5, 7 if context.quick else 17)).astype(int)
    )
    rows: list[dict[str, Any]] = []
    for scale in _SCALES:
        context.progress(f"scale {scale:g}")
        rows += [_run(scale, int(n), name) for name in (_OURS, _SEED) for n in counts]
    return Result(_claims(rows), {"": rows}, {"": _figure(rows)})


def half_swing(scale: float) -> float:
    """Seconds from 90 degrees at rest to -90 degrees: 2 K(1/2) / w, by the arithmetic-geometric mean."""
    a, b = 1.0, float(np.sqrt(0.5))
    for _ in range(6):
        a, b = (a + b) / 2, float(np.sqrt(a * b))
    return float(np.pi / a / np.sqrt(1.5 * _GRAVITY / scale**2))


def _run(scale: float, n: int, name: str) -> dict[str, Any]:
    """One pendulum with n steps."""
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model, end = pendulum(1, length=scale**2, mass=scale), half_swing(scale)
    method = Maximal(start="seed" if name == _SEED else "legendre")
    state = model.state(q=[np.pi / 2])
    run = simulate(model, state, dt=end / n, duration=end, method=method, save_every=n, on_failure="keep")
    whole = run.steps == n
    return {
        "scale": scale,
        "start": name,
        "steps": n,
        "dt/s": end / n / scale,
        "iterations": run.report.counters["iterations"] / max(run.steps, 1),
        "error (rad)": abs(float(run.q[-1, 0]) + np.pi / 2) if whole else float("inf"),
        "stopped": run.report.failure or "",
    }


def _claims(rows: list[dict[str, Any]]) -> list[Claim]:
    """Statements of the text on Fig. 11."""
    whole = [row for row in rows if not row["stopped"]]
    early = sorted({(row["scale"], row["steps"], row["start"]) for row in rows if row["stopped"]})
    shown = "; ".join(f"scale {scale:g}, {n} steps, {name}" for scale, n, name in early)
    words = f"{len(whole)} of {len(rows)} runs" + (f"; stopped: {shown}" if shown else "")
    # from few steps to many, of the scale one and of all
    first, last = min(row["steps"] for row in whole), max(row["steps"] for row in whole)
    few, many = (np.mean([row["iterations"] for row in whole if row["steps"] == n]) for n in (first, last))
    small = max(row["error (rad)"] for row in whole if row["steps"] >= 1000)
    least = {scale: min(row["error (rad)"] for row in whole if row["scale"] == scale) for scale in _SCALES}
    # same numbers for every scale: the problems are the same in other units
    same = []
    for n in {row["steps"] for row in whole if 50 < row["steps"] < 500}:
        errors = [row["error (rad)"] for row in whole if row["steps"] == n and row["start"] == _SEED]
        same.append(max(errors) / min(errors))
    return [
        Claim("every scale comes to the end of its half swing, for every step", "successful", words, not early),
        Claim(
            "(a) more iterations for smaller steps: mean at the largest and at the smallest step",
            "increase",
            f"{few:.2f} and {many:.2f}",
            bool(many > few),
        ),
        Claim(
            "(b) accurate results even for small steps: largest error with 1000 steps or more, rad",
            "accurate",
            f"{small:.1e}",
            small < 1e-4,
        ),
        Claim(
            "(b) smallest error of each scale, rad",
            "not given",
            ", ".join(f"{value:.0e} (s = {scale:g})" for scale, value in least.items()),
            max(least.values()) < 1e-6,
        ),
        Claim(
            "scaled steps give the scales the same error: largest ratio between 50 and 500 steps",
            "not in the text",
            f"{max(same):.3g}",
            max(same) < 1.1,
        ),
    ]


def _figure(rows: list[dict[str, Any]]) -> Any:
    """Iterations and error over the scaled step."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        a, b = figure.subplots(1, 2)
        whole = [row for row in rows if not row["stopped"]]
        for index, scale in enumerate(_SCALES):
            for name, line in ((_OURS, "-"), (_SEED, "--")):
                style = {**colour_of(index), "linestyle": line, "marker": "o", "markersize": 3}
                x, count = columns(whole, "dt/s", "iterations", scale=scale, start=name)
                _, error = columns(whole, "dt/s", "error (rad)", scale=scale, start=name)
                label = f"s = {scale:g}" + (", start of the paper" if name == _SEED else "")
                a.semilogx(x, count, label=label, **style)
                b.loglog(x, error + 1e-17, label=label, **style)
        a.set(title="(a) iterations of a step, mean", xlabel="dt / s  (s)")
        b.set(title="(b) error of the last angle", xlabel="dt / s  (s)", ylabel="rad")
        b.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)

    return styled(draw, 10.5, 3.6)
