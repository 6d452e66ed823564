"""The baseline integrators on the double pendulum: do they have the order they are said to have? No paper's figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.papers.registry import Claim, Context, Result, experiment

_START = {"hinge1": 1.0, "hinge2": 0.5}
_DURATION, _TOLERANCE = 1.0, 0.15

# method, its order in theory, and steps per second: where the leading term of the error rules, above rounding
_METHODS = {
    "rk1": (1, (1600, 3200, 6400, 12800)),
    "euler": (1, (1600, 3200, 6400, 12800)),
    "rk2": (2, (200, 400, 800, 1600)),
    "rk4": (4, (100, 200, 400, 800)),
}


@experiment("baselines", paper="", title="Order and energy error of the baseline integrators on the double pendulum")
def baselines(context: Context) -> Result:
    """Errors after one second against a reference with tolerances of 1e-12, for four steps each (three if quick)."""
    from leastaction import models
    from leastaction.explicit.adaptive import Adaptive
    from leastaction.run.simulate import simulate

    model = models.double_pendulum().build()
    start = model.state(q=_START)
    context.progress("reference")
    reference = simulate(model, start, dt=_DURATION, duration=_DURATION, method=Adaptive(1e-12, 1e-12)).final

    # error of the last state, and largest change of the energy on the way
    rows: list[dict[str, Any]] = []
    for method, (_, counts) in _METHODS.items():
        context.progress(method)
        for steps in counts[1 if context.quick else 0 :]:
            run = simulate(model, start, dt=_DURATION / steps, duration=_DURATION, method=method)
            error = np.concatenate([run.q[-1] - reference.q, run.v[-1] - reference.v])
            rows.append(
                {
                    "method": method,
                    "dt": run.dt,
                    "state_error": float(np.linalg.norm(error)),
                    "energy_error": float(np.abs(run.energy.total - run.energy.total[0]).max()),
                }
            )

    # the slope of error against step is the order
    claims = []
    for method, (order, _) in _METHODS.items():
        mine = [row for row in rows if row["method"] == method]
        slope = float(np.polyfit(np.log([r["dt"] for r in mine]), np.log([r["state_error"] for r in mine]), 1)[0])
        claims.append(
            Claim(f"order of {method}", f"{order} (theory)", round(slope, 3), abs(slope - order) <= _TOLERANCE)
        )
    return Result(claims, {"": rows}, {"": _figure(rows)})


def _figure(rows: list[dict[str, Any]]) -> Any:
    """Error and energy error against the step, with the slopes of the theory."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2)
        titles = {"state_error": "error of q and v after 1 s", "energy_error": "largest |E \N{MINUS SIGN} E(0)|  (J)"}
        for axes, (column, label) in zip(panels, titles.items(), strict=True):
            for index, (method, (order, _)) in enumerate(_METHODS.items()):
                dt = np.array([row["dt"] for row in rows if row["method"] == method])
                error = np.array([row[column] for row in rows if row["method"] == method])
                style = colour_of(index)
                axes.loglog(dt, error, marker="o", markersize=3.5, label=f"{method} (order {order})", **style)
                # the guide passes through the coarsest step
                if column == "state_error":
                    axes.loglog(dt, error[0] * (dt / dt[0]) ** order, color="#999999", linewidth=0.7, zorder=1)
            axes.set_xlabel("dt  (s)")
            axes.set_ylabel(label)
        panels[0].set_title("Error (grey: slope of the order)")
        panels[1].set_title("Energy error")
        panels[1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0.0)

    return styled(draw, 10.0, 3.2)
