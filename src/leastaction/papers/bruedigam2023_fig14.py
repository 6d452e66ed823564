"""An arm exoskeleton with two loops: gains tuned in simulation for a healthy and a spastic patient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.papers.exoskeleton import exoskeleton
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.checks import FloatArray

_DT, _LIMIT, _ORIGINAL = 0.001, 5.0, 1.0
_PATIENTS = {"healthy": False, "spastic": True}


class _Run(NamedTuple):
    """Times, torques of the elbow and its error, largest gap of the loops, and why it stopped."""

    t: FloatArray
    torque: FloatArray
    error: FloatArray
    gap: float
    failure: str


@experiment(
    "bruedigam2023-fig14",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 14",
    title="Gains of an arm exoskeleton, adapted in simulation to a healthy and a spastic patient",
    aliases=("bruedigam2023-fig14c", "bruedigam2023-fig14d"),
)
def figure14(context: Context) -> Result:
    """Algorithm 8 over two periods (one if quick), 0.001 s; then the largest scale of its gains within 5 N m.

    The paper gives neither the mechanism's numbers nor those of the patients: see ``papers/exoskeleton.py``. It tunes
    the scale by hand, here it is found by halving an interval.
    """
    periods = 1 if context.quick else 2
    steps = round(2 * np.pi * periods / _DT)
    runs: dict[tuple[str, float], _Run] = {}

    def largest(scale: float) -> float:
        for name, spastic in _PATIENTS.items():
            if (name, scale) not in runs:
                context.progress(f"scale {scale:.3g}, {name}")
                runs[name, scale] = _follow(spastic, scale, steps)
        return max(float(np.abs(runs[name, scale].torque).max()) for name in _PATIENTS)

    largest(_ORIGINAL)
    low, high = 0.0, _ORIGINAL
    for _ in range(5 if context.quick else 7):
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) <= _LIMIT else (low, middle)
    rows = [_row(name, scale, run) for (name, scale), run in sorted(runs.items(), key=lambda item: item[0][1])]
    return Result(_claims(runs, low), {"": rows}, {"": _figure(runs, low)})


def _follow(spastic: bool, scale: float, steps: int) -> _Run:
    """The rehabilitation task with one set of gains."""
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model = exoskeleton(spastic)
    shoulder, elbow = model.joints["shoulder"], model.joints["elbow"]
    quarter = np.pi / 4

    def torques(t: float, q: Any, v: Any) -> tuple[Any, Any]:
        # Algorithm 8
        wave, rate = quarter * np.sin(t), quarter * np.cos(t)
        at_elbow = 50 * (-quarter + wave - q[..., elbow.q.start]) + 5 * (rate - v[..., elbow.v.start])
        at_shoulder = 100 * (quarter + wave - q[..., shoulder.q.start]) + 10 * (rate - v[..., shoulder.v.start])
        return scale * at_elbow, scale * at_shoulder

    def control(t: float, state: Any) -> FloatArray:
        out = np.zeros(model.nv)
        out[elbow.v.start], out[shoulder.v.start] = torques(t, state.q, state.v)
        return out

    # on the trajectory at its start
    state = model.state({"shoulder": [quarter], "elbow": [-quarter]}, {"shoulder": [quarter], "elbow": [quarter]})
    run = simulate(model, state, dt=_DT, duration=steps * _DT, method=Maximal(), control=control, on_failure="keep")
    torque, _ = torques(run.t, run.q, run.v)  # type: ignore[arg-type]
    error = -quarter + quarter * np.sin(run.t) - run.q[:, elbow.q.start]
    return _Run(run.t, torque, error, float(run.constraint_error.max()), run.report.failure or "")


def _row(name: str, scale: float, run: _Run) -> dict[str, Any]:
    """One run in numbers."""
    return {
        "patient": name,
        "scale": scale,
        "largest elbow torque (N m)": float(np.abs(run.torque).max()),
        "largest elbow error (rad)": float(np.abs(run.error).max()),
        "largest gap (m)": run.gap,
        "stopped": run.failure,
    }


def _claims(runs: dict[tuple[str, float], _Run], adapted: float) -> list[Claim]:
    """Statements of the text on Fig. 14."""
    most = {key: float(np.abs(run.torque).max()) for key, run in runs.items()}
    stopped = [f"{name} {scale:.3g}" for (name, scale), run in runs.items() if run.failure]
    gap = max(run.gap for run in runs.values())
    healthy, spastic = most["healthy", _ORIGINAL], most["spastic", _ORIGINAL]
    found = adapted > 0
    pair = [most[name, adapted] for name in _PATIENTS] if found else []
    return [
        Claim(
            f"(c) original gains stay within {_LIMIT:g} N m for the healthy patient: largest, N m",
            f"below {_LIMIT:g}",
            round(healthy, 2),
            healthy <= _LIMIT,
        ),
        Claim("(c) and exceed it for the spastic one: N m", f"above {_LIMIT:g}", round(spastic, 2), spastic > _LIMIT),
        Claim(
            "(d) adapted gains adhere to it for both: scale; healthy and spastic, N m",
            f"below {_LIMIT:g}",
            f"{adapted:.3g}; {pair[0]:.2f} and {pair[1]:.2f}" if found else "none found",
            found and max(pair) <= _LIMIT,
        ),
        Claim("two connected loops stay closed: largest gap, m", "not given", f"{gap:.1e}", gap < 1e-9),
        Claim("every run comes to the end", "not given", ", ".join(stopped) or "yes", not stopped),
    ]


def _figure(runs: dict[tuple[str, float], _Run], adapted: float) -> Any:
    """Torques of the elbow with original and with adapted gains."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        for axes, scale, letter in zip(figure.subplots(1, 2, sharey=True), (_ORIGINAL, adapted), "cd", strict=True):
            for index, name in enumerate(_PATIENTS):
                if (name, scale) in runs:
                    run = runs[name, scale]
                    axes.plot(run.t, run.torque, label=name, **colour_of(index))
            for sign in (1, -1):
                axes.axhline(
                    sign * _LIMIT, color="black", linestyle=":", linewidth=1, label="limit" if sign > 0 else None
                )
            axes.set(title=f"({letter}) scale {scale:.3g}", xlabel="time  (s)", ylabel="torque of the elbow  (N m)")
        axes.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)

    return styled(draw, 10.5, 3.6)
