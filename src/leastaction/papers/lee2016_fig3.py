"""Time of 10 000 frames against the number of bodies: {DRNEA, SVI} x {RIQN, Newton, Broyden}."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers.common import columns, few_ticks, legend_outside, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.methods.base import Method

_DT, _FRAMES = 0.001, 10_000
_EVALUATIONS = ("DRNEA", "SVI")
_ROOTS = ("RIQN", "Newton", "Broyden")
_OWN = "DRNEA + Newton in O(n)"
# bodies: frames that are run
_FULL = {5: 10_000, 10: 10_000, 20: 10_000, 40: 4000, 70: 1000, 100: 500}
_QUICK = {5: 1000, 10: 1000, 20: 1000, 40: 300}


@experiment(
    "lee2016-fig3",
    paper="Lee, Liu, Park, Srinivasa 2016, Fig. 3",
    title="Time of 10 000 frames of a chain: {DRNEA, SVI} x {RIQN, Newton, Broyden}",
)
def figure3(context: Context) -> Result:
    """Chains of 5 to 100 bodies (to 40 if quick). Long chains run fewer frames, and times are scaled to 10 000.

    "Newton" has a dense Jacobian, as in the paper: its Algorithm 4 with DRNEA, the O(n^3) one with SVI. The exact
    direction in O(n) is ours and stands beside.
    """
    frames = _QUICK if context.quick else _FULL
    names = [f"{evaluation} + {root}" for evaluation in _EVALUATIONS for root in _ROOTS] + [_OWN]
    rows: list[dict[str, Any]] = []
    for n in frames:
        for name in names:
            context.progress(f"{n} bodies, {name}")
            rows.append({"bodies": n, "method": name, **_time(n, _method(name), frames[n])})
    return Result(_claims(rows, tuple(frames)), {"": rows}, {"": _figure(rows, names)})


def _method(name: str) -> Method:
    """A method by its name in the figure."""
    from leastaction.comparators.svi.method import SVI
    from leastaction.solve.solvers import RIQN, Broyden, DenseNewton, Newton
    from leastaction.trapezoid.method import LieTrapezoid

    if name == _OWN:
        return LieTrapezoid(Newton(tolerance=1e-10), guess="euler", form="printed")
    evaluation, root = name.split(" + ")
    solver = {"RIQN": RIQN, "Newton": DenseNewton, "Broyden": Broyden}[root](tolerance=1e-10)
    return LieTrapezoid(solver, guess="euler", form="printed") if evaluation == "DRNEA" else SVI(solver, guess="euler")


def _time(n: int, method: Method, frames: int) -> dict[str, Any]:
    """Seconds (processor time) of 10 000 frames, from the first ``frames``, the better of two; iterations per frame."""
    from leastaction import models
    from leastaction.methods.base import Clock, Control

    model = models.chain(n).build()
    start, clock, none = model.state(q={"joint1": np.pi / 2}), Clock(0.0, _DT), Control(np.zeros((0, model.nv)))
    method.rollout(model, method.start(model, start), clock, 0, 0, 1, none)
    seconds, iterations, done = [], 0, 0
    for _ in range(2):
        memory = method.start(model, start)
        begin = time.process_time()
        chunk = method.rollout(model, memory, clock, 0, frames, _FRAMES, none)
        seconds.append(time.process_time() - begin)
        done, iterations = chunk.steps, chunk.counters["iterations"]
    scale = max(done, 1)
    return {"seconds": min(seconds) * _FRAMES / scale, "frames run": done, "iterations": iterations / scale}


def _claims(rows: list[dict[str, Any]], sizes: tuple[int, ...]) -> list[Claim]:
    """The paper's factors at 10 and 100 bodies, and who is best."""
    seconds = {(row["bodies"], row["method"]): row["seconds"] for row in rows}

    def factor(n: int, slow: str, fast: str) -> float:
        return float(seconds[n, slow] / seconds[n, fast])

    claims = []
    for n, evaluation, root in ((10, 15.0, 3.8), (100, 32.0, 53.0)):
        texts = (
            (f"evaluation: SVI over DRNEA with RIQN, {n} bodies", "SVI + RIQN", evaluation),
            (f"root finder: Newton over RIQN with DRNEA, {n} bodies", "DRNEA + Newton", root),
        )
        for text, slow, paper in texts:
            if n in sizes:
                ours = factor(n, slow, "DRNEA + RIQN")
                claims.append(Claim(text, paper, round(ours, 2), ours >= paper))
            else:
                claims.append(Claim(text, paper, "only in the full version", None))
    best = [min((seconds[n, f"{e} + {r}"], f"{e} + {r}") for e in _EVALUATIONS for r in _ROOTS)[1] for n in sizes]
    others = sorted({name for name in best if name != "DRNEA + RIQN"})
    words = "at every size" if not others else f"at {best.count('DRNEA + RIQN')} of {len(sizes)}; {', '.join(others)}"
    claims.append(Claim("DRNEA + RIQN is the fastest of the six", "best", words, not others))
    ratios = [factor(n, f"SVI + {r}", f"DRNEA + {r}") for n in sizes for r in _ROOTS]
    text = "with the same root finder DRNEA is faster than SVI (factor, smallest to largest)"
    claims.append(Claim(text, "faster", f"{min(ratios):.3g} to {max(ratios):.3g}", min(ratios) > 1.0))
    # the gain of the Jacobian's approximation overtakes that of the evaluation
    n = sizes[-1]
    by_root, by_evaluation = factor(n, "DRNEA + Newton", "DRNEA + RIQN"), factor(n, "SVI + RIQN", "DRNEA + RIQN")
    words = f"{by_root:.3g} against {by_evaluation:.3g} at {n} bodies"
    claims.append(
        Claim("the gain of RIQN over Newton exceeds that of DRNEA over SVI", "yes", words, by_root > by_evaluation)
    )
    large = [m for m in sizes if m >= 20]
    found = slope(large, [seconds[m, "DRNEA + RIQN"] for m in large])
    claims.append(Claim("exponent of DRNEA + RIQN in n", 1, round(found, 2), found < 1.2))
    own = factor(n, "DRNEA + RIQN", _OWN)
    claims.append(
        Claim(f"DRNEA + RIQN over our Newton in O(n), {n} bodies (no claim of the paper)", "-", round(own, 2), None)
    )
    return claims


def _figure(rows: list[dict[str, Any]], names: list[str]) -> Any:
    """Time against bodies, logarithmic."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for name in names:
            evaluation, _, root = name.partition(" + ")
            index = _ROOTS.index(root) if root in _ROOTS else 3
            style = {**colour_of(index), "linestyle": "-" if evaluation == "DRNEA" else "--"}
            axes.loglog(
                *columns(rows, "bodies", "seconds", method=name), marker="o", markersize=3.5, label=name, **style
            )
        axes.set_xlabel("bodies")
        axes.set_ylabel("time of 10 000 frames  (s)")
        few_ticks(axes)
        legend_outside(axes)

    return styled(draw, 7.5, 3.8)
