"""Chains of four-link segments, with a loop in each, through their singular positions."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from leastaction.papers import peer_mujoco
from leastaction.papers.bruedigam_chains import LENGTH, MASS, WIDTH, segments
from leastaction.papers.common import columns, few_ticks, legend_outside, slope
from leastaction.papers.registry import Claim, Context, Result, experiment

_DT, _STEPS, TILT = 0.01, 1000, 0.5
_OURS, _PEER, _FINE, _MUJOCO = "maximal", "rk4", "rk4, 1 ms", "MuJoCo, defaults"

# a loop is open for this comparison beyond a centimetre
_OPEN = 0.01

Rows = list[dict[str, Any]]


@experiment(
    "bruedigam2020-fig6",
    paper="Brüdigam, Manchester 2020, Fig. 6; Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 9(a)",
    title="1000 steps of chains of four-link segments through their singular positions",
    aliases=("bruedigam2023-fig9a",),
)
def figure6(context: Context) -> Result:
    """Rhombi of links of 1 m and 1 kg, open by 45 degrees and tilted by 0.5 rad, at rest; 1 to 64 (1 to 8 if quick).

    The papers do not give the start. Their integrator in minimal coordinates is RigidBodyDynamics.jl; here
    ``RungeKutta(4)``, with loops closed by accelerations only, at the same step and at a tenth of it.
    """
    counts = (1, 2, 4, 8) if context.quick else (1, 2, 4, 8, 16, 32, 64)
    rows: Rows = []
    for n in counts:
        context.progress(f"{n} segments")
        rows.append(segment_run(n, _OURS))
        if n <= 4:
            rows += [segment_run(n, _PEER), segment_run(n, _FINE)]
        if peer_mujoco.available():
            rows.append(_mujoco_run(n))
    return Result(_claims(rows), {"": rows}, {"": _figure(rows)})


def segment_run(n: int, name: str) -> dict[str, Any]:
    """10 s of a chain: steps, gaps, energy and the smallest processor time of three runs."""
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model, method = segments(n, tilt=TILT), (Maximal() if name == _OURS else RungeKutta(4))
    fine = 10 if name == _FINE else 1
    times = []
    for _ in range(3 if name == _OURS else 1):
        begin = time.process_time()
        run = simulate(model, dt=_DT / fine, duration=_STEPS * _DT, method=method, save_every=fine, on_failure="keep")
        times.append(time.process_time() - begin)
    # until the first loop is open
    gaps = run.constraint_error
    wide = np.flatnonzero(~(gaps < _OPEN))
    last = int(wide[0]) if len(wide) else len(gaps)
    total = _energy(run, last)
    return {
        "method": name,
        "segments": n,
        "steps": run.steps // fine,
        "closed until (s)": float(run.t[last - 1]),
        "largest gap (m)": float(gaps[:last].max()),
        "energy error (J)": float(np.abs(total - total[0]).max()),
        "energy lost": float(total[0] - total[-1]) / _available(n, float(total[0])),
        "iterations": run.report.counters.get("iterations", 0) / max(run.steps, 1),
        "time (s)": min(times) if run.steps == _STEPS * fine else float("nan"),
        "stopped": run.report.failure or "",
    }


def _mujoco_run(n: int) -> dict[str, Any]:
    """The same by MuJoCo, whose loops are soft."""
    peer = peer_mujoco.segments_model(n, np.pi / 4, TILT, (LENGTH, MASS, WIDTH), _DT)
    begin = time.process_time()
    total, gaps, whole = peer_mujoco.swing_segments(peer, _STEPS)
    spent = time.process_time() - begin
    wide = np.flatnonzero(gaps > _OPEN)
    last = int(wide[0]) if len(wide) else len(gaps)
    return {
        "method": _MUJOCO,
        "segments": n,
        "steps": len(total) - 1,
        "closed until (s)": _DT * (last - 1),
        "largest gap (m)": float(gaps.max()),
        "energy error (J)": float(np.abs(total - total[0]).max()),
        "energy lost": float(total[0] - total[-1]) / _available(n, float(total[0])),
        "iterations": 0.0,
        "time (s)": spent,
        "stopped": "" if whole else "MuJoCo warned",
    }


def _available(n: int, total: float) -> float:
    """Energy over that of the stretched chain at rest, joules."""
    return total + 4 * n**2 * 9.81 * MASS * LENGTH


def _energy(run: Any, rows: int) -> Any:
    """Total energy of the first rows, joules."""
    from leastaction.dynamics import quantities

    energy = quantities.energy(run.model, run.q[:rows], run.v[:rows])
    return energy.kinetic + energy.potential


def _claims(rows: Rows) -> list[Claim]:
    """Statements of both papers on these chains."""
    mine = [row for row in rows if row["method"] == _OURS]
    whole = [row for row in mine if not row["stopped"]]
    early = [f"{row['segments']} ({row['steps']})" for row in mine if row["stopped"]]
    words = f"{len(whole)} of {len(mine)} chains" + (
        f"; stopped at segments (steps): {', '.join(early)}" if early else ""
    )
    gap = max(row["largest gap (m)"] for row in mine)
    errors = max(row["energy error (J)"] / row["segments"] ** 2 for row in whole)
    power = _power(whole)
    claims = [
        Claim("maximal coordinates simulate every chain for 1000 steps", "yes", words, not early),
        Claim("largest gap of a loop, m", "not given", f"{gap:.1e}", gap < 1e-9),
        Claim(
            "largest energy error of a chain that came to the end, over the square of its segments, J",
            "not given",
            f"{errors:.2g}",
            errors < 1.0,
        ),
        Claim(
            "no longer fully linear, but modest: exponent of the time", "above 1, modest", round(power, 2), power < 1.5
        ),
    ]
    for name in (_PEER, _FINE):
        runs = [row for row in rows if row["method"] == name]
        words = ", ".join(f"{row['closed until (s)']:.3g} ({row['segments']})" for row in runs)
        lost = all(row["closed until (s)"] < _STEPS * _DT for row in runs if row["segments"] > 1)
        text = f"{name} is unable to simulate two or more segments: seconds until a loop is open by 1 cm (segments)"
        claims.append(Claim(text, "unable", words, lost))
    return [*claims, *_mujoco_claims(rows)]


def _mujoco_claims(rows: Rows) -> list[Claim]:
    """What MuJoCo's soft loops do: to the steps, and to the energy of the chains that it simulates."""
    whole = "MuJoCo can simulate the chains"
    text = "MuJoCo's loops damp: part of the energy that is lost in 10 s (segments); maximal"
    theirs = [row for row in rows if row["method"] == _MUJOCO]
    if not theirs:
        return [Claim(words, "yes", peer_mujoco.MISSING, None) for words in (whole, text)]
    early = [f"{row['segments']} ({row['steps']})" for row in theirs if row["stopped"]]
    told = f"unstable at segments (steps): {', '.join(early)}" if early else "all"
    ours = [abs(row["energy lost"]) for row in rows if row["method"] == _OURS and not row["stopped"]]
    lost = {row["segments"]: row["energy lost"] for row in theirs if not row["stopped"]}
    words = ", ".join(f"{value:.2f} ({n})" for n, value in lost.items())
    damps = min(value for n, value in lost.items() if n > 1) > 0.2 and max(ours) < 0.05
    return [
        Claim(whole, "yes", told, not early),
        Claim(text, "high damping", f"{words}; at most {max(ours):.2g}", damps),
    ]


def _power(rows: Rows) -> float:
    """Exponent of the time from two segments on."""
    n, seconds = columns([row for row in rows if row["segments"] > 1], "segments", "time (s)")
    return slope(n.tolist(), seconds.tolist())


def _figure(rows: Rows) -> Any:
    """Time over segments, and how long the loops stay closed; runs that stopped before are marked."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        a, b = figure.subplots(1, 2)
        n, seconds = columns(rows, "segments", "time (s)", method=_OURS)
        a.loglog(n, 1e3 * seconds, marker="o", markersize=3.5, label=_OURS, **colour_of(0))
        a.set(title="1000 steps, where all were done", xlabel="segments", ylabel="processor time  (ms)")
        few_ticks(a, "y")
        for index, name in enumerate((_OURS, _PEER, _FINE, _MUJOCO)):
            n, end = columns(rows, "segments", "closed until (s)", method=name)
            if not len(n):
                continue
            b.semilogx(n, end, marker="o", markersize=3.5, label=name, **colour_of(index))
        # loops of a run that stopped may have been closed at its end
        still = [row for row in rows if row["stopped"] and row["steps"] * _DT <= row["closed until (s)"] + 0.5 * _DT]
        if still:
            n, end = columns(still, "segments", "closed until (s)")
            b.plot(n, end, "x", color="black", markersize=8, label="stopped with closed loops")
        b.set(title="loops closed to 1 cm until", xlabel="segments", ylabel="s", ylim=(0, 1.05 * _STEPS * _DT))
        for axes in (a, b):
            counts = sorted({row["segments"] for row in rows})
            axes.set_xticks(counts, [str(n) for n in counts])
            axes.set_xticks([], minor=True)
        legend_outside(b)

    return styled(draw, 10.5, 3.6)
