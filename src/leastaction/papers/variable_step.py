"""Variable steps and long-time energy: constant step, classic and reversible step control. No paper's figure.

Two conservative motions with fast and slow phases: an eccentric orbit about a fixed centre, which is regular, and a
double pendulum thrown from high up, which is chaotic. The constant step takes as many steps as the reversible control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.model import Model, State
    from leastaction.run.trajectory import Trajectory

_ECCENTRICITY = 0.8
_CONTROLS = ("constant", "classic", "reversible")

# rows of a curve in the figure
_DRAWN = 400


class _Case(NamedTuple):
    """A motion: its words, seconds in full and if quick, and by order of the method tolerance and longest step."""

    words: str
    seconds: float
    quick: float
    settings: dict[int, tuple[float, float]]


_CASES = {
    "orbit": _Case("orbit", 100 * np.pi, 20 * np.pi, {2: (2e-3, 0.2), 4: (1e-2, 0.4)}),
    "pendulum": _Case("double pendulum", 100.0, 20.0, {2: (1e-3, 0.1), 4: (5e-3, 0.1)}),
}


def orbit() -> tuple[Model, State]:
    """A unit mass in the plane under the potential -1/r, at the near end of an ellipse with half axis 1."""
    from leastaction.model.forces import Potential
    from leastaction.model.mechanism import Mechanism

    m = Mechanism("orbit", gravity=(0.0, 0.0, 0.0))
    m.add_body("mass", mass=1.0, com=(0.0, 0.0, 0.0), inertia=(1e-3, 1e-3, 1e-3))
    m.add_joint("plane", "planar_translation", parent="world", child="mass")

    def energy(poses: Any) -> float:
        return -1.0 / float(np.linalg.norm(poses[0, :3, 3]))

    def gradient(poses: Any) -> Any:
        r = poses[0, :3, 3]
        return np.concatenate([np.zeros(3), poses[0, :3, :3].T @ r / np.linalg.norm(r) ** 3])[None]

    m.add_force(Potential("mass", energy, gradient))
    model, e = m.build(), _ECCENTRICITY
    return model, model.state([1.0 - e, 0.0], [0.0, np.sqrt((1.0 + e) / (1.0 - e))])


def pendulum() -> tuple[Model, State]:
    """The double pendulum of the built-in models, released at rest from high up."""
    from leastaction import models

    model = models.double_pendulum().build()
    return model, model.state([2.5, 1.5])


def energy_error(run: Trajectory) -> Any:
    """E - E(0) by row, as a share of the largest kinetic energy."""
    energy = run.energy
    return (energy.total - energy.total[0]) / energy.kinetic.max()


def drift_and_band(error: Any) -> tuple[float, float]:
    """How far the mean of the last quarter of the rows lies from that of the first, and the largest error in that."""
    quarter = max(len(error) // 4, 1)
    first, last = error[:quarter], error[-quarter:]
    return float(abs(last.mean() - first.mean())), float(np.abs(first).max())


@experiment("variable-step", paper="", title="Energy under a constant step, classic and reversible step control")
def variable_step(context: Context) -> Result:
    """Runs of Galerkin(2) and Galerkin(4) over about ten thousand steps each (two thousand if quick)."""
    rows: list[dict[str, Any]] = []
    curves: dict[tuple[str, int, str], tuple[Any, Any]] = {}
    for name, case in _CASES.items():
        for order, (tolerance, most) in case.settings.items():
            context.progress(f"{case.words}, order {order}")
            seconds = case.quick if context.quick else case.seconds
            for control, run in _runs(name, order, tolerance, most, seconds).items():
                error = energy_error(run)
                drift, band = drift_and_band(error)
                lengths = np.atleast_1d(run.dt)
                rows.append(
                    {
                        "motion": case.words,
                        "order": order,
                        "control": control,
                        "steps": run.steps,
                        "dt_least": float(lengths.min()),
                        "dt_most": float(lengths.max()),
                        "band": band,
                        "drift": drift,
                        "largest": float(np.abs(error).max()),
                    }
                )
                curves[name, order, control] = _thin(run.t, np.abs(error))
    return Result(_claims(rows), {"": rows}, {"": _figure(curves)})


def _runs(name: str, order: int, tolerance: float, most: float, seconds: float) -> dict[str, Trajectory]:
    """The run of each control."""
    from leastaction.galerkin.method import Galerkin
    from leastaction.run.simulate import simulate
    from leastaction.run.steps import ClassicSteps, ReversibleSteps

    model, start = orbit() if name == "orbit" else pendulum()
    method = Galerkin(order)
    out = {
        "reversible": simulate(model, start, dt=ReversibleSteps(tolerance, most), duration=seconds, method=method),
        "classic": simulate(model, start, dt=ClassicSteps(tolerance, most), duration=seconds, method=method),
    }
    equal = seconds / out["reversible"].steps
    out["constant"] = simulate(model, start, dt=equal, duration=seconds, method=method)
    return {control: out[control] for control in _CONTROLS}


def _claims(rows: list[dict[str, Any]]) -> list[Claim]:
    """What is expected of reversible control, and of the other two."""
    found = {(row["motion"], row["order"], row["control"]): row for row in rows}
    claims = []
    for motion, order in dict.fromkeys((row["motion"], row["order"]) for row in rows):
        here = f"{motion}, order {order}"
        ours, classic, constant = (found[motion, order, c] for c in ("reversible", "classic", "constant"))
        claims += [
            Claim(
                f"{here}: reversible control keeps the energy in its band",
                "drift below band (theory, regular motions)",
                f"drift {ours['drift']:.1e}, band {ours['band']:.1e}",
                ours["drift"] < ours["band"],
            ),
            Claim(
                f"{here}: classic control drifts faster than reversible",
                "by the missing symmetry",
                f"drift {classic['drift']:.1e} against {ours['drift']:.1e}",
                classic["drift"] > ours["drift"],
            ),
            Claim(
                f"{here}: reversible control beats a constant step with as many steps",
                "largest error",
                f"{ours['largest']:.1e} against {constant['largest']:.1e}",
                ours["largest"] < constant["largest"],
            ),
        ]
    return claims


def _thin(t: Any, error: Any) -> tuple[Any, Any]:
    """Times and the largest error of equally many rows around each, few enough to draw."""
    size = max(len(error) // _DRAWN, 1)
    count = len(error) // size
    return t[: count * size : size], error[: count * size].reshape(count, size).max(axis=1)


def _figure(curves: dict[tuple[str, int, str], tuple[Any, Any]]) -> Any:
    """Size of the energy error against time, a panel for each motion and order."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(2, 2)
        for i, (name, case) in enumerate(_CASES.items()):
            for j, order in enumerate(case.settings):
                axes = panels[i, j]
                for index, control in enumerate(_CONTROLS):
                    t, error = curves[name, order, control]
                    axes.semilogy(t, np.maximum(error, 1e-16), label=control, **colour_of(index))
                axes.set_title(f"{case.words.capitalize()}, Galerkin({order})")
                axes.set_xlabel("t  (s)")
                axes.set_ylabel("|E \N{MINUS SIGN} E(0)| / largest T")
        panels[0, 1].legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0.0)

    return styled(draw, 10.0, 6.0)
