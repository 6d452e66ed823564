"""A chain of spheres that falls on the ground: penetration and time over the number of spheres."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers import peer_mujoco
from leastaction.papers.common import columns, few_ticks, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.model import Model

_RADIUS, _MASS, _DT = 0.25, 1.0, 0.01

# height of the first centre (m), angle over the horizontal (rad); friction 1 is MuJoCo's default
_STARTS = {"inclined": (0.75, 0.3), "flat": (0.75, 0.0)}
_FRICTION = 1.0

_OURS, _PEER = "maximal", "MuJoCo, defaults"


@experiment(
    "bruedigam2023-fig8",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 8(b)",
    title="A chain of spheres that falls on the ground: penetration and time over the number of spheres",
    aliases=("bruedigam2023-fig8b",),
)
def figure8(context: Context) -> Result:
    """Spheres of 0.25 m and 1 kg on ball joints, 1000 steps of 0.01 s (300 if quick), 5 to 100 spheres (5 to 20).

    The paper does not say how the chain starts: here straight, at 0.3 rad over the horizontal, and flat.
    """
    counts = (5, 10, 20) if context.quick else (5, 10, 20, 30, 40, 44, 50, 60, 80, 100)
    steps = 300 if context.quick else 1000
    rows: list[dict[str, Any]] = []
    for start in _STARTS:
        for n in counts:
            context.progress(f"{start}, {n} spheres")
            rows.append({"simulator": _OURS, "start": start, "spheres": n, **_ours(n, start, steps)})
            if peer_mujoco.available():
                rows.append({"simulator": _PEER, "start": start, "spheres": n, **_theirs(n, start, steps)})
    return Result([*_own_claims(rows, steps), *_peer_claims(rows, steps)], {"": rows}, {"": _figure(rows, steps)})


def chain(n: int) -> Model:
    """Spheres in a row along x, on ball joints where they touch; only the ground is touched."""
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.pose import pose
    from leastaction.model.shapes import Sphere

    m = Mechanism(f"chain of {n} spheres")
    right, left = pose(xyz=(_RADIUS, 0.0, 0.0)), pose(xyz=(-_RADIUS, 0.0, 0.0))
    for i in range(n):
        m.add_body(f"sphere{i}", shape=Sphere(_RADIUS), mass=_MASS)
        if i == 0:
            m.add_joint("root", "free", parent="world", child="sphere0")
        else:
            ends = f"sphere{i - 1}", f"sphere{i}"
            m.add_joint(f"ball{i}", "spherical", parent=ends[0], child=ends[1], parent_frame=right, child_frame=left)
    m.add_ground(friction=_FRICTION)
    return m.build()


def _ours(n: int, start: str, steps: int) -> dict[str, Any]:
    """Lowest point, steps that were possible, and processor time of a step."""
    from leastaction.dynamics.quantities import frame_poses
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model, (height, angle) = chain(n), _STARTS[start]
    state = model.state({"root": [0, 0, height, np.cos(angle / 2), 0, -np.sin(angle / 2), 0]})
    # the first call may compile
    simulate(model, state, dt=_DT, duration=2 * _DT, method=Maximal())
    begin = time.process_time()
    run = simulate(model, state, dt=_DT, duration=steps * _DT, method=Maximal(), on_failure="keep")
    spent = time.process_time() - begin
    lowest = float(frame_poses(model, run.q, list(model.body_names))[:, :, 2, 3].min()) - _RADIUS
    parts, each = run.report.counters.get("finer steps", 0), spent / max(run.steps, 1)
    return {"lowest (m)": lowest, "steps": run.steps, "steps in parts": parts, "time of a step (s)": each}


def _theirs(n: int, start: str, steps: int) -> dict[str, Any]:
    """The same of MuJoCo; its time has the call of every step from Python in it."""
    height, angle = _STARTS[start]
    begin = time.process_time()
    heights, _ = peer_mujoco.drop_chain(n, _RADIUS, _MASS, height, angle, _DT, steps)
    spent = time.process_time() - begin
    done, lowest = len(heights) - 1, float(heights.min())
    return {"lowest (m)": lowest, "steps": done, "steps in parts": 0, "time of a step (s)": spent / max(done, 1)}


def _own_claims(rows: list[dict[str, Any]], steps: int) -> list[Claim]:
    """Statements on our runs."""
    mine = [row for row in rows if row["simulator"] == _OURS]
    lowest = min(row["lowest (m)"] for row in mine)
    whole = [row for row in mine if row["steps"] == steps]
    claims = [
        Claim("no contact violation: lowest point of all runs, m", "0", f"{lowest:.1e}", lowest >= 0),
    ]
    for start in _STARTS:
        stopped = [f"{row['spheres']} ({row['steps']})" for row in mine if row["start"] == start and row not in whole]
        words = f"all {steps} steps" if not stopped else f"stopped at spheres (steps): {', '.join(stopped)}"
        claims.append(Claim(f"the chain is simulated for every number of spheres, {start}", "yes", words, not stopped))
    # times of the runs that came to their end, as a power of the number of spheres
    powers = {start: _power(whole, start) for start in _STARTS}
    claims.append(
        Claim(
            "linear complexity: time of a step as a power of the number of spheres",
            1,
            ", ".join(f"{power:.2f} {start}" for start, power in powers.items()),
            max(powers.values()) < 1.25,
        )
    )
    return claims


def _power(rows: list[dict[str, Any]], start: str) -> float:
    """Exponent of the time of a step, from ten spheres on."""
    n, seconds = columns([row for row in rows if row["spheres"] >= 10], "spheres", "time of a step (s)", start=start)
    return slope(n.tolist(), seconds.tolist())


def _peer_claims(rows: list[dict[str, Any]], steps: int) -> list[Claim]:
    """Statements on MuJoCo."""
    deep, fails = "MuJoCo: violations of 10 cm or more above 20 spheres", "MuJoCo fails above 44 spheres"
    theirs = [row for row in rows if row["simulator"] == _PEER]
    if not theirs:
        return [Claim(text, "yes", peer_mujoco.MISSING, None) for text in (deep, fails)]
    claims = []
    for start in _STARTS:
        chosen = [row for row in theirs if row["start"] == start]
        # runs that came to their end have a violation; the others fail
        whole = {row["spheres"]: -100 * row["lowest (m)"] for row in chosen if row["steps"] == steps}
        stopped = [row["spheres"] for row in chosen if row["steps"] < steps]
        words = ", ".join(f"{cm:.1f} ({n})" for n, cm in whole.items())
        long = [cm for n, cm in whole.items() if n > 20]
        verdict = all(cm >= 10 for cm in long) if long else None
        claims.append(Claim(f"{deep}, {start}: cm (spheres)", "10 or more", words, verdict))
        tried = max(row["spheres"] for row in chosen) > 44
        words = f"fails from {min(stopped)} on" if stopped else "none failed"
        verdict = bool(stopped) and all((row["spheres"] > 44) == (row["spheres"] in stopped) for row in chosen)
        claims.append(Claim(f"{fails}, {start}", "above 44", words, verdict if tried else None))
    return claims


def _figure(rows: list[dict[str, Any]], steps: int) -> Any:
    """Penetration and time of a step over the number of spheres; runs that stopped are crosses."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2)
        for i, simulator in enumerate((_OURS, _PEER)):
            for start, line in zip(_STARTS, ("-", "--"), strict=True):
                chosen = [row for row in rows if (row["simulator"], row["start"]) == (simulator, start)]
                style = {**colour_of(i), "linestyle": line, "marker": "o", "markersize": 3.5}
                # a picture of depths down to half a metre; what is not below the ground is at zero
                n = [row["spheres"] for row in chosen]
                depth = [min(max(-100 * row["lowest (m)"], 0.0), 50.0) for row in chosen]
                panels[0].plot(n, depth, label=f"{simulator}, {start}", **style)
                panels[1].loglog(n, [1e6 * row["time of a step (s)"] for row in chosen], **style)
                late = [(a, b) for a, b, row in zip(n, depth, chosen, strict=True) if row["steps"] < steps]
                if late:
                    panels[0].plot(*zip(*late, strict=True), "x", color="black", markersize=8)
        panels[0].plot([], [], "x", color="black", label="stopped early")
        panels[0].set(xlabel="spheres", ylabel="deepest penetration  (cm), cut at 50")
        panels[1].set(xlabel="spheres", ylabel="processor time of a step  (µs)")
        few_ticks(panels[1])
        handles, labels = panels[0].get_legend_handles_labels()
        panels[1].legend(handles, labels, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)

    return styled(draw, 10.5, 3.6)
