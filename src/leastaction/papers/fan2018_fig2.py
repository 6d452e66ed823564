"""Recursive algorithms against automatic differentiation for the Simpson variational integrator."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.papers.common import columns, few_ticks, legend_outside, pendulum, slope, starts
from leastaction.papers.registry import Claim, Context, Result, experiment

_DT = 0.01
_PARTS = ("evaluation", "direction", "linearisation")
_TITLES = {"evaluation": "Evaluation", "direction": "Newton direction", "linearisation": "Linearisation"}
_OURS, _AD = "recursive", ("automatic (forward)", "automatic (reverse)")
# exponents of the paper's text
_EXPONENTS = {_OURS: (1, 1, 2), "automatic": (2, 3, 3)}


@experiment(
    "fan2018-fig2",
    paper="Fan, Schultz, Murphey 2018, Fig. 2",
    title="Simpson variational integrator: recursive algorithms against automatic differentiation (JAX)",
    aliases=("fan2018-fig2a", "fan2018-fig2b", "fan2018-fig2c"),
)
def figure2(context: Context) -> Result:
    """Pendulums of 4 to 128 links (8 to 32 if quick), 100 starts in +-pi/2 (20 if quick), time of each part per start.

    Automatic differentiation runs fewer starts of the longer pendulums, and its forward mode stops at 64 links
    (none if quick: most of the time goes into its compilation).
    """
    links, count, most = ((8, 16, 32), 20, 0) if context.quick else ((4, 8, 16, 32, 64, 128), 100, 64)
    rows: list[dict[str, Any]] = []
    for n in links:
        rows += _rows(n, count, n <= most, context)
    return Result(_claims(rows, links), {"": rows}, {"": _figure(rows)})


def _rows(n: int, count: int, forward: bool, context: Context) -> list[dict[str, Any]]:
    """Microseconds of each part for one pendulum."""
    from leastaction.papers.autodiff import Simpson
    from leastaction.papers.timing import best, galerkin_times, guesses

    model = pendulum(n)
    Q, V = starts(count, n, np.pi / 2, np.pi / 2)
    states = [model.state(q, v) for q, v in zip(Q, V, strict=True)]
    context.progress(f"{n} links, recursive")
    ours = galerkin_times(model, states, 4, _DT)
    rows = [{"links": n, "method": _OURS, "part": part, "microseconds": ours[part]} for part in _PARTS]
    # the same starts; a hinge's coordinate of the row is that of the user
    X, P, XI = guesses(model, states, 2, _DT)
    Y = np.concatenate([X + XI[:, :, 1], X + XI[:, :, 2]], axis=1)
    for name, mode in zip(_AD, ("forward", "reverse"), strict=True):
        if mode == "forward" and not forward:
            continue
        context.progress(f"{n} links, {name}")
        automatic = Simpson(model, _DT, mode)
        for part in _PARTS:
            few = slice(0, max(1, min(count, 2 * count // n)))
            args = (part, X[few], P[few], Y[few])
            automatic.evaluate(*args)
            time = best(lambda args=args, this=automatic: this.evaluate(*args), 0.5, 5) / len(X[few])
            rows.append({"links": n, "method": name, "part": part, "microseconds": time})
    return rows


def _claims(rows: list[dict[str, Any]], links: tuple[int, ...]) -> list[Claim]:
    """Exponents from the upper half of the pendulums, and who is faster."""
    claims = []
    for index, part in enumerate(_PARTS):
        for method in (_OURS, *_AD):
            n, time = columns(rows, "links", "microseconds", method=method, part=part)
            text = f"exponent of the {part} in n, {method}"
            paper = _EXPONENTS[_OURS if method == _OURS else "automatic"][index]
            if len(n) < 2:
                claims.append(Claim(text, paper, "only in the full version", None))
                continue
            keep = slice(max(0, len(n) // 2 - 1), None)
            found = slope(n[keep].tolist(), time[keep].tolist())
            # ours may not exceed the paper's; the other is asked whether it grows as said
            holds = found <= paper + 0.2 if method == _OURS else abs(found - paper) <= 0.5
            claims.append(Claim(text, paper, round(found, 2), holds))
        mine = columns(rows, "links", "microseconds", method=_OURS, part=part)[1]
        # the faster of the two modes
        peer = columns(rows, "links", "microseconds", method=_AD[1], part=part)[1]
        text = f"{part}: recursive is faster (ratio at {links[0]} and at {links[-1]} links)"
        ratio = peer / mine
        words = f"{ratio[0]:.3g} and {ratio[-1]:.3g}"
        claims.append(Claim(text, "much more efficient", words, bool(ratio.min() > 1)))
    return claims


def _figure(rows: list[dict[str, Any]]) -> Any:
    """Time of each part against the number of links."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 3)
        for axes, part in zip(panels, _PARTS, strict=True):
            for index, method in enumerate((_OURS, *_AD)):
                n, time = columns(rows, "links", "microseconds", method=method, part=part)
                if len(n):
                    axes.loglog(n, time, marker="o", markersize=3.5, label=method, **colour_of(index))
            axes.set_title(_TITLES[part])
            axes.set_xlabel("links")
            axes.set_ylabel("time  (µs)")
            few_ticks(axes)
        legend_outside(panels[-1])

    return styled(draw, 12.0, 3.2)
