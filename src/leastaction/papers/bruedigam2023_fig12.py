"""The double four-bar linkage, which passes singular positions: maximal coordinates against the GGL method."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.comparators import ggl
from leastaction.model.checks import FloatArray
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.model import Model, State
    from leastaction.run.trajectory import Trajectory

_DURATION, _LARGE, _SMALL = 10.0, 0.01, 0.001
_OURS, _SEED, _PEER = "maximal", "maximal, start of the paper", "GGL"


class _Curve(NamedTuple):
    """One run: times, place of the first top, energies, violation of the constraints, and what it took."""

    t: FloatArray
    top: FloatArray
    kinetic: FloatArray
    potential: FloatArray
    violation: FloatArray
    seconds: float
    iterations: float
    failure: str

    @property
    def error(self) -> FloatArray:
        """E - E(0), joules."""
        total = self.kinetic + self.potential
        out: FloatArray = total - total[0]
        return out


@experiment(
    "bruedigam2023-fig12",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 12",
    title="The double four-bar linkage through its singular positions, against the variational GGL method",
    aliases=("bruedigam2023-fig12a", "bruedigam2023-fig12b", "bruedigam2023-fig12c", "bruedigam2023-fig12d"),
)
def figure12(context: Context) -> Result:
    """Five rods of 1 m and 1 kg, upright, tops at 1 m/s: 10 s at 0.01 s, and at 0.001 s (2 s of them if quick).

    The start is that of González et al. 2006, which Kinon et al. 2023 take too: rods turn as the tops move. GGL is
    written in NumPy with dense matrices, the other one is compiled.
    """
    runs: dict[float, dict[str, _Curve]] = {}
    for dt, duration in ((_LARGE, _DURATION), (_SMALL, 2.0 if context.quick else _DURATION)):
        context.progress(f"dt = {dt:g} s")
        runs[dt] = {
            _OURS: _maximal(dt, duration, "legendre"),
            _SEED: _maximal(dt, duration, "seed"),
            _PEER: _ggl(dt, duration),
        }
    context.progress("a solution of fourth order")
    exact = _top(_exact())
    # its rows that are those of a larger step
    tops = {dt: exact[:: round(dt / _SMALL)] for dt in runs}
    return Result(_claims(runs, tops), {"": _rows(runs)}, {"": _figure(runs)})


def _linkage() -> tuple[Model, State]:
    """The model and its start."""
    from leastaction import models

    model = models.n_four_bar(2).build()
    return model, model.state(v={**{f"base{i}": -1.0 for i in range(3)}, "bar1_hinge": 1.0, "bar2_hinge": 1.0})


def _top(run: Trajectory) -> FloatArray:
    """Place (steps + 1, 2) of the top of the first rod, x and z; its angle is 0 where it is upright."""
    angle = run.q[:, run.model.joints["base0"].q].ravel()
    return np.stack([-np.sin(angle), np.cos(angle)], axis=1)


def _exact() -> Trajectory:
    """A run of fourth order at the smaller step: twice the step changes the last angle by 6e-12 rad."""
    from leastaction.galerkin.method import Galerkin
    from leastaction.run.simulate import simulate

    model, state = _linkage()
    return simulate(model, state, dt=_SMALL, duration=_DURATION, method=Galerkin(4))


def _maximal(dt: float, duration: float, start: str) -> _Curve:
    """The library's own run; its processor time is that of a second call."""
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model, state = _linkage()
    method = Maximal(start=start)
    simulate(model, state, dt=dt, duration=2 * dt, method=method)
    begin = time.process_time()
    run = simulate(model, state, dt=dt, duration=duration, method=method)
    spent = time.process_time() - begin
    energy = run.energy
    iterations = run.report.counters["iterations"] / run.steps
    return _Curve(run.t, _top(run), energy.kinetic, energy.potential, run.constraint_error, spent, iterations, "")


def _ggl(dt: float, duration: float) -> _Curve:
    """The same linkage by the GGL method."""
    system, q, v = ggl.windows(2, 1.0, 1.0, 9.81)
    steps = round(duration / dt)
    begin = time.process_time()
    run = ggl.run(system, q, v, dt, steps)
    spent = (time.process_time() - begin) * steps / max(len(run.q) - 1, 1)
    kinetic, potential = ggl.energy(system, run)
    t: FloatArray = np.arange(float(len(run.q))) * dt
    return _Curve(
        t, run.q[:, 2:4], kinetic, potential, run.position, spent, run.iterations / (len(run.q) - 1), run.failure
    )


def _halves(values: FloatArray) -> tuple[float, float]:
    """Largest size in the first and in the second half."""
    middle = len(values) // 2
    return float(np.abs(values[:middle]).max()), float(np.abs(values[middle:]).max())


def _claims(runs: dict[float, dict[str, _Curve]], tops: dict[float, FloatArray]) -> list[Claim]:
    """Statements of the text on Fig. 12."""
    large, small = runs[_LARGE], runs[_SMALL]
    energy = {name: _halves(curve.error) for name, curve in large.items()}
    away = {
        dt: {name: _halves(np.linalg.norm(c.top - tops[dt][: len(c.top)], axis=1)) for name, c in chosen.items()}
        for dt, chosen in runs.items()
    }
    gaps = {name: float(curve.violation.max()) for name, curve in large.items()}
    stopped = large[_PEER].failure
    factor = large[_PEER].seconds / large[_OURS].seconds
    swing = float(np.ptp(large[_OURS].potential))
    near = max(away[_SMALL][_PEER]), max(away[_SMALL][_OURS])
    words = "{:.3g} and {:.3g}".format
    return [
        Claim(
            f"(b) bounded energy error of the maximal-coordinate method at dt = {_LARGE:g} s: largest of each half, J"
            f" (the potential swings by {swing:.3g} J)",
            "bounded",
            f"{words(*energy[_OURS])}; {words(*energy[_SEED])} with the start of the paper",
            max(energy[_OURS][1], energy[_SEED][1]) < 1.2 * max(energy[_OURS][0], energy[_SEED][0]),
        ),
        Claim(
            "(b) increasing energy error of GGL: largest of each half, J",
            "increases",
            words(*energy[_PEER]) + (f"; stopped: {stopped}" if stopped else ""),
            energy[_PEER][1] > 1.2 * energy[_PEER][0],
        ),
        Claim(
            "(b) the energy error of GGL is the larger one: times",
            "larger",
            round(max(energy[_PEER]) / max(energy[_OURS]), 1),
            max(energy[_PEER]) > 2 * max(energy[_OURS]),
        ),
        Claim(
            "(a) GGL's trajectory is increasingly wrong: distance of the first top to a fine solution in each half, m"
            " (maximal)",
            "increases",
            f"{words(*away[_LARGE][_PEER])} ({words(*away[_LARGE][_OURS])})",
            away[_LARGE][_PEER][1] > 1.2 * away[_LARGE][_PEER][0] and away[_LARGE][_PEER][1] > away[_LARGE][_OURS][1],
        ),
        Claim(
            "(c) very low violation of the constraints, maximal and GGL: largest",
            "very low",
            f"{gaps[_OURS]:.1e}, {gaps[_PEER]:.1e}",
            max(gaps[_OURS], gaps[_PEER]) < 1e-8,
        ),
        Claim("(c) GGL's is the smaller one", "yes", _yes(gaps[_PEER] < gaps[_OURS]), gaps[_PEER] < gaps[_OURS]),
        Claim(
            f"almost no difference at dt = {_SMALL:g} s: largest distance to the fine solution, GGL and maximal, m",
            "almost none",
            f"{near[0]:.2g} and {near[1]:.2g} in {small[_PEER].t[-1]:g} s",
            near[0] < 0.02,
        ),
        Claim(
            "faster than GGL (here compiled against NumPy with dense matrices, there compiled against Matlab): times",
            "more than 100",
            round(factor),
            factor > 100,
        ),
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _rows(runs: dict[float, dict[str, _Curve]]) -> list[dict[str, Any]]:
    """A row for every hundredth of a second of each run."""
    out = []
    for dt, chosen in runs.items():
        for name, curve in chosen.items():
            for k in range(0, len(curve.t), round(_LARGE / dt)):
                row = {"dt": dt, "method": name, "t": float(curve.t[k])}
                row |= {"x": float(curve.top[k, 0]), "z": float(curve.top[k, 1]), "error (J)": float(curve.error[k])}
                row |= {"kinetic (J)": float(curve.kinetic[k]), "potential (J)": float(curve.potential[k])}
                out.append(row | {"violation": float(curve.violation[k])})
    return out


def _figure(runs: dict[float, dict[str, _Curve]]) -> Any:
    """The four panels of the paper, at the larger step."""
    from leastaction.plot import colour_of, styled

    large = runs[_LARGE]

    def draw(figure: Any) -> None:
        (a, b), (c, d) = figure.subplots(2, 2)
        for index, name in enumerate((_OURS, _PEER)):
            curve, style = large[name], {**colour_of(index), "linestyle": ("-", "--")[index]}
            a.plot(curve.t, curve.top[:, 0], label=f"{name}, x", **style)
            b.plot(curve.t, curve.error, label=name, **style)
            c.semilogy(curve.t[1:], curve.violation[1:] + 1e-18, label=name, **style)
        ours = large[_OURS]
        parts = {"kinetic": ours.kinetic, "potential": ours.potential, "total": ours.kinetic + ours.potential}
        for index, (name, values) in enumerate(parts.items()):
            d.plot(ours.t, values, label=name, **colour_of(index + 2))
        a.set(title="(a) top of the first rod", xlabel="time  (s)", ylabel="x  (m)")
        b.set(title="(b) E \N{MINUS SIGN} E(0)", xlabel="time  (s)", ylabel="J")
        c.set(title="(c) largest constraint", xlabel="time  (s)", ylabel="m, rad")
        d.set(title="(d) energies, maximal", xlabel="time  (s)", ylabel="J")
        for axes in (a, b, c, d):
            axes.legend(loc="best")

    return styled(draw, 10.5, 6.4)
