"""Time of 1000 steps over the number of links: maximal coordinates against explicit Runge-Kutta-Munthe-Kaas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers.bruedigam_chains import links
from leastaction.papers.common import columns, few_ticks, legend_outside, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.methods.base import Chunk, Method
    from leastaction.model.model import Model, State

_DT, _STEPS = 0.01, 1000
_OURS, _PEER = "maximal", "rk4"
_KINDS = ("revolute", "spherical")

# angle of the straight pendulum to the vertical at the start, radians
_ANGLE = 0.5

Rows = list[dict[str, Any]]


@experiment(
    "bruedigam2020-fig5",
    paper="Brüdigam, Manchester 2020, Fig. 5; Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 8(a)",
    title="Time of 1000 steps of pendulums and closed chains: maximal coordinates against an explicit integrator",
    aliases=("bruedigam2020-fig5a", "bruedigam2020-fig5b", "bruedigam2023-fig8a"),
)
def figure5(context: Context) -> Result:
    """Links of 1 m and 1 kg on hinges and on ball joints, 0.01 s; best of 100 runs, up to 100 links (5, 20 if quick).

    The explicit integrator is ``RungeKutta(4)``: of fourth order on the groups of the joints (Munthe-Kaas), with loops
    closed by accelerations only and nothing that stabilises them, in minimal coordinates and linear time. It is
    compiled as the other one is.
    """
    counts = (3, 5, 10, 20) if context.quick else (3, 5, 10, 20, 50, 100)
    repeats = 5 if context.quick else 100
    rows: Rows = []
    for closed in (False, True):
        for kind in _KINDS:
            for n in counts:
                context.progress(f"{n} links, {kind}, {'closed' if closed else 'open'}")
                rows += _time(n, kind, closed, repeats)
    claims = [*_claims([row for row in rows if not row["closed"]], "(a)")]
    claims += _claims([row for row in rows if row["closed"]], "(b)")
    return Result(claims, {"": rows}, {"": _figure(rows)})


def _start(n: int, kind: str, closed: bool) -> tuple[Model, State]:
    """Chains at rest, open ones straight at an angle, closed ones on their arc; the papers do not give the start."""
    model = links(n, kind, closed)
    if closed:
        return model, model.state()
    turn = [_ANGLE] if kind == "revolute" else [np.cos(_ANGLE / 2), 0.0, np.sin(_ANGLE / 2), 0.0]
    return model, model.state(q={"joint1": turn})


def _time(n: int, kind: str, closed: bool, repeats: int) -> Rows:
    """Both integrators on one chain, in turn; the smallest processor time of the steps of each."""
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.maximal.method import Maximal
    from leastaction.methods.base import Clock, Control

    model, state = _start(n, kind, closed)
    methods: dict[str, Method] = {_OURS: Maximal(), _PEER: RungeKutta(4)}
    best = dict.fromkeys(methods, np.inf)
    chunks: dict[str, Chunk] = {}
    clock, idle = Clock(0.0, _DT), Control(np.zeros((0, model.nv)))
    for _ in range(repeats):
        for name, method in methods.items():
            if name in chunks and chunks[name].failure:
                continue
            memory = method.start(model, state)
            begin = time.process_time()
            chunks[name] = method.rollout(model, memory, clock, 0, _STEPS, _STEPS, idle)
            best[name] = min(best[name], time.process_time() - begin)
    return [
        {
            "method": name,
            "links": n,
            "joint": kind,
            "closed": closed,
            "steps": chunk.steps,
            "time (s)": float("nan") if chunk.failure else float(best[name]),
            "iterations": chunk.counters.get("iterations", 0) / max(chunk.steps, 1),
            "stopped": chunk.failure or "",
        }
        for name, chunk in chunks.items()
    ]


def _claims(rows: Rows, panel: str) -> list[Claim]:
    """Statements on one panel, from runs that came to their end."""
    whole = [row for row in rows if not row["stopped"]]
    early = [f"{row['method']} {row['joint']} {row['links']} ({row['steps']})" for row in rows if row["stopped"]]
    words = f"{len(whole)} of {len(rows)} runs" + (f"; stopped (steps): {', '.join(early)}" if early else "")
    claims = [Claim(f"{panel} 1000 steps of every chain", "yes", words, not early)]
    for kind in _KINDS:
        times = {name: _times(whole, name, kind) for name in (_OURS, _PEER)}
        ratio = {n: seconds / times[_PEER][n] for n, seconds in times[_OURS].items() if n in times[_PEER]}
        shown = ", ".join(f"{value:.2f} ({n})" for n, value in ratio.items())
        if kind == "revolute":
            text, paper, holds = "the explicit integrator is faster with hinges", "faster", min(ratio.values()) > 1
        else:
            text, paper, holds = "maximal coordinates are faster with ball joints", "faster", max(ratio.values()) < 1
        claims.append(Claim(f"{panel} {text}: time of maximal over explicit (links)", paper, shown, holds))
        long = {n: seconds for n, seconds in times[_OURS].items() if n >= 5}
        power = slope(list(long), list(long.values()))
        claims.append(
            Claim(f"{panel} linear, {kind}: exponent of maximal from 5 links", 1, round(power, 2), power < 1.2)
        )
    ours = {kind: _times(whole, _OURS, kind) for kind in _KINDS}
    ratio = {n: seconds / ours["revolute"][n] for n, seconds in ours["spherical"].items() if n in ours["revolute"]}
    claims.append(
        Claim(
            f"{panel} maximal coordinates are faster with ball joints than with hinges: ratio (links)",
            "faster",
            ", ".join(f"{value:.2f} ({n})" for n, value in ratio.items()),
            max(ratio.values()) < 1,
        )
    )
    return claims


def _times(rows: Rows, name: str, kind: str) -> dict[int, float]:
    """Seconds by the number of links."""
    return {row["links"]: row["time (s)"] for row in rows if (row["method"], row["joint"]) == (name, kind)}


def _figure(rows: Rows) -> Any:
    """Time over links, open and closed."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        titles = ("(a) pendulums", "(b) closed chains, where all steps were done")
        for axes, closed, title in zip(panels, (False, True), titles, strict=True):
            for index, name in enumerate((_OURS, _PEER)):
                for kind, line in zip(_KINDS, ("-", "--"), strict=True):
                    n, seconds = columns(rows, "links", "time (s)", method=name, joint=kind, closed=closed)
                    style = {**colour_of(index), "linestyle": line, "marker": "o", "markersize": 3.5}
                    axes.loglog(n, 1e3 * seconds, label=f"{name}, {kind}", **style)
            axes.set(title=title, xlabel="links")
        panels[0].set_ylabel("processor time of 1000 steps  (ms)")
        few_ticks(panels[0])
        legend_outside(panels[1])

    return styled(draw, 10.5, 3.6)
