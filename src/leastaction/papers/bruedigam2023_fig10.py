"""Pendulums of many links at three tolerances: which integrators come to the end, and in what time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers.common import columns, few_ticks, pendulum
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.methods.base import Method

_DT = 0.01
_TOLERANCES = (1e-6, 1e-8, 1e-10)
_ITERATIONS = 100

# angle of the straight pendulum to the vertical at the start, radians
_STARTS = (0.3, 0.5, 1.2, np.pi / 2)
_MAXIMAL, _SECOND, _FOURTH, _OWN = "maximal", "lie-trapezoid, RIQN", "galerkin:4, RIQN", "galerkin:2, Newton"
_NAMES = (_MAXIMAL, _SECOND, _FOURTH, _OWN)


@experiment(
    "bruedigam2023-fig10",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 10; Brüdigam, Manchester 2020, Fig. 8",
    title="Pendulums of many links at tolerances 1e-6, 1e-8, 1e-10: who comes to the end of 1000 steps",
    aliases=("bruedigam2020-fig8", "bruedigam2023-fig10a", "bruedigam2023-fig10b", "bruedigam2023-fig10c"),
)
def figure10(context: Context) -> Result:
    """Rods of 1 m and 1 kg, 1000 steps of 0.01 s, up to 100 links (300 steps and 20 links if quick).

    The paper does not give the start: here straight and at rest at four angles. Its minimal-coordinate integrators are
    those of Lee et al. 2016 and Fan et al. 2018, with quasi-Newton methods; here they are ours of the same equations.
    """
    counts = (5, 20) if context.quick else (2, 5, 10, 20, 50, 100)
    steps = 300 if context.quick else 1000
    rows: list[dict[str, Any]] = []
    for n in counts:
        for tolerance in _TOLERANCES:
            context.progress(f"{n} links, tolerance {tolerance:g}")
            rows += [_run(name, n, tolerance, start, steps) for name in _NAMES for start in _STARTS]
    return Result(_claims(rows, steps), {"": rows}, {"": _figure(rows, steps)})


def _method(name: str, tolerance: float) -> Method:
    """A method with a solver of this tolerance."""
    from leastaction.galerkin.method import Galerkin
    from leastaction.maximal.method import Maximal
    from leastaction.solve.solvers import RIQN, Newton
    from leastaction.trapezoid.method import LieTrapezoid

    newton, riqn = Newton(tolerance, _ITERATIONS), RIQN(tolerance, _ITERATIONS)
    if name == _MAXIMAL:
        return Maximal(solver=newton)
    if name == _OWN:
        return Galerkin(2, solver=newton)
    return LieTrapezoid(riqn, form="printed") if name == _SECOND else Galerkin(4, solver=riqn)


def _run(name: str, n: int, tolerance: float, start: float, steps: int) -> dict[str, Any]:
    """Steps that were possible, iterations and processor time of a step, and why it ended early."""
    from leastaction.run.simulate import simulate

    model, method = pendulum(n), _method(name, tolerance)
    state = model.state(q=[start] + [0.0] * (n - 1))
    # the first call of a method may compile
    simulate(model, state, dt=_DT, duration=2 * _DT, method=method)
    begin = time.process_time()
    run = simulate(model, state, dt=_DT, duration=steps * _DT, method=method, save_every=steps, on_failure="keep")
    spent = time.process_time() - begin
    done = max(run.steps, 1)
    return {
        "method": name,
        "links": n,
        "tolerance": tolerance,
        "start": round(start, 4),
        "steps": run.steps,
        "iterations": run.report.counters["iterations"] / done,
        "time of a step (s)": spent / done,
        "stopped": run.report.failure or "",
    }


def _claims(rows: list[dict[str, Any]], steps: int) -> list[Claim]:
    """Runs that came to the end, for each method."""
    claims = []
    for name in _NAMES:
        mine = [row for row in rows if row["method"] == name]
        early = [row for row in mine if row["steps"] < steps]
        words = f"{len(mine) - len(early)} of {len(mine)} runs"
        # which ones stopped
        if early:
            where = sorted({(row["links"], row["tolerance"], row["start"]) for row in early})
            shown = "; ".join(f"{n} links {tolerance:.0e} {start:.2g} rad" for n, tolerance, start in where[:6])
            words += f"; stopped: {shown}{' and more' if len(where) > 6 else ''}"
        if name == _MAXIMAL:
            claims.append(
                Claim("maximal coordinates: every tolerance and length comes to the end", "all", words, not early)
            )
        elif name != _OWN:
            # more failures at tighter tolerances and with more links, as the paper has it
            tight = sum(row["tolerance"] < 1e-9 for row in early) > sum(row["tolerance"] > 1e-7 for row in early)
            claims.append(
                Claim(f"{name}: fails at smaller tolerances and with more links", "fails", words, bool(early) and tight)
            )
        else:
            claims.append(Claim(f"{name}, which the paper does not have: comes to the end", "-", words, not early))
    gentle = [row for row in rows if row["method"] == _MAXIMAL and row["steps"] == steps]
    most = max(row["iterations"] for row in gentle)
    words = f"{most:.2f} at most, of {len(gentle)} runs"
    claims.append(
        Claim("maximal coordinates: iterations of a step where the run came to its end", "not given", words, most < 5)
    )
    return claims


def _figure(rows: list[dict[str, Any]], steps: int) -> Any:
    """Time of a step over the links, the mean over starts, and the share of runs that came to the end."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(2, len(_TOLERANCES), sharex=True, sharey="row")
        counts = sorted({row["links"] for row in rows})
        for (top, bottom), tolerance in zip(panels.T, _TOLERANCES, strict=True):
            for index, name in enumerate(_NAMES):
                means, shares = [], []
                for n in counts:
                    done, seconds = columns(
                        rows, "steps", "time of a step (s)", method=name, links=n, tolerance=tolerance
                    )
                    means.append(1e6 * float(np.mean(seconds)))
                    shares.append(float(np.mean(done == steps)))
                style = {**colour_of(index), "marker": "o", "markersize": 3.5}
                top.loglog(counts, means, label=name, **style)
                # side by side where they are equal
                bottom.semilogx(counts, np.array(shares) - 0.012 * index, **style)
            top.set_title(f"tolerance {tolerance:.0e}")
            bottom.set(xlabel="links", ylim=(-0.08, 1.05))
            few_ticks(bottom, "x")
        few_ticks(panels[0, 0], "y")
        panels[0, 0].set_ylabel("processor time of a step  (µs)")
        panels[1, 0].set_ylabel("share of runs that came to the end\n(curves shifted apart)")
        panels[0, -1].legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)

    return styled(draw, 10.5, 5.6)
