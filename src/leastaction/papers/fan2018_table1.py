"""Orders of the Simpson variational integrator and of Hermite-Simpson collocation, measured; sizes of the problems."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.papers.common import columns, few_ticks, legend_outside, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

_START = {"hinge1": 1.0, "hinge2": 0.5}
_COUNTS = (50, 100, 200, 400)
_TOLERANCE = 0.15

# integrator, the paper's order, its number of variables and of constraints for N stages, n freedoms, m constraints
_TABLE = (
    ("variational integrator", 4, "(4N + 3)n + (2N + 1)m", "3Nn + (2N + 1)m"),
    ("direct collocation (explicit)", 3, "(6N + 3)n + (2N + 1)m", "4Nn + (6N + 3)m"),
    ("direct collocation (implicit)", 3, "(8N + 4)n + (2N + 1)m", "(6N + 1)n + (6N + 3)m"),
)


@experiment(
    "fan2018-table1",
    paper="Fan, Schultz, Murphey 2018, Table 1",
    title="Orders measured on the double pendulum; variables and constraints of trajectory optimisation as formulas",
)
def table1(context: Context) -> Result:
    """Error after one second for four steps (three if quick) against a reference with tolerances of 1e-13."""
    from leastaction import models
    from leastaction.comparators.hermite_simpson.method import HermiteSimpson
    from leastaction.explicit.adaptive import Adaptive
    from leastaction.galerkin.method import Galerkin
    from leastaction.run.simulate import simulate

    model = models.double_pendulum().build()
    start = model.state(q=_START)
    final = simulate(model, start, dt=1.0, duration=1.0, method=Adaptive(1e-13, 1e-13)).final
    methods = (Galerkin(4), HermiteSimpson("explicit"), HermiteSimpson("implicit"))
    errors: list[dict[str, Any]] = []
    for (name, *_), method in zip(_TABLE, methods, strict=True):
        context.progress(name)
        for steps in _COUNTS[1 if context.quick else 0 :]:
            run = simulate(model, start, dt=1.0 / steps, duration=1.0, method=method, save_every=steps)
            error = np.concatenate([run.q[-1] - final.q, run.v[-1] - final.v])
            errors.append({"integrator": name, "dt": run.dt, "error": float(np.linalg.norm(error))})

    # the table of the paper with the measured order, and its claims
    rows, claims = [], []
    for name, order, variables, constraints in _TABLE:
        dt, error = columns(errors, "dt", "error", integrator=name)
        found = slope(dt.tolist(), error.tolist())
        claims.append(Claim(f"order of the {name}", order, round(found, 3), abs(found - order) <= _TOLERANCE))
        sizes = {"variables": variables, "constraints": constraints}
        rows.append({"integrator": name, "order (paper)": order, "order (measured)": round(found, 3), **sizes})
    mine, explicit, implicit = _sizes()
    fewer = all(a < b for a, b in zip(mine, explicit, strict=True)) and all(
        a < b for a, b in zip(mine, implicit, strict=True)
    )
    words = f"{mine} against {explicit} and {implicit} for N = 20, n = 12, m = 4"
    claims.append(Claim("fewer variables and constraints, by the formulas", "fewer", words, fewer))
    return Result(claims, {"": rows, "errors": errors}, {"": _figure(errors)})


def _sizes() -> list[tuple[int, int]]:
    """The formulas of the table for N = 20, n = 12, m = 4: they count unknowns of trajectory optimisation."""
    N, n, m = 20, 12, 4
    return [
        ((4 * N + 3) * n + (2 * N + 1) * m, 3 * N * n + (2 * N + 1) * m),
        ((6 * N + 3) * n + (2 * N + 1) * m, 4 * N * n + (6 * N + 3) * m),
        ((8 * N + 4) * n + (2 * N + 1) * m, (6 * N + 1) * n + (6 * N + 3) * m),
    ]


def _figure(errors: list[dict[str, Any]]) -> Any:
    """Error against the step, with slopes 3 and 4."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for index, (name, *_) in enumerate(_TABLE):
            dt, error = columns(errors, "dt", "error", integrator=name)
            style = {**colour_of(index), "linestyle": "--" if index == 2 else "-"}
            axes.loglog(dt, error, marker="o", markersize=3.5, label=name, **style)
        # slopes through the coarsest step of the last one
        for order, line in ((3, ":"), (4, "-.")):
            guide = 0.6 * error[0] * (dt / dt[0]) ** order
            axes.loglog(dt, guide, color="#999999", linewidth=0.8, linestyle=line, label=f"slope {order}")
        axes.set_xlabel("dt  (s)")
        axes.set_ylabel("error of q and v after 1 s")
        few_ticks(axes)
        legend_outside(axes)

    return styled(draw, 7.0, 3.4)
