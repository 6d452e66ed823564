"""Physical accuracy: gaps of a loop, energy of a double pendulum, a damped pendulum, a cube that is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers import peer_mujoco
from leastaction.papers.common import pendulum
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.checks import FloatArray
    from leastaction.model.model import Model

_DT = 0.01
_SHORT = float(np.sqrt(2) / 2)

# the cube of panel (d)
_EDGE, _MASS, _HEIGHT, _FALL = 0.5, 1.0, 0.4, 1.5

# The interior point method of the paper, with the loosest tolerance of its Fig. 10; it does not say which it used here.
_PRINTED, _TOLERANCE = "maximal, Algorithm 5", 1e-6

Curves = dict[str, tuple[Any, Any]]
Part = tuple[list[Claim], Curves, list[dict[str, Any]]]


@experiment(
    "bruedigam2023-fig7",
    paper="Brüdigam, Sosnowski, Manchester, Hirche 2023, Fig. 7",
    title="Physical accuracy: constraint drift, energy conservation, dissipation and contact violation",
    aliases=("bruedigam2023-fig7a", "bruedigam2023-fig7b", "bruedigam2023-fig7c", "bruedigam2023-fig7d"),
)
def figure7(context: Context) -> Result:
    """All four panels; 60 s of the loop and 600 s of the double pendulum (a third if quick), drops from ten heights."""
    duration = 20.0 if context.quick else 60.0
    claims: list[Claim] = []
    panels: dict[str, Curves] = {}
    tables: dict[str, list[dict[str, Any]]] = {}
    context.progress("a loop")
    parts = {"loop": loop_drift(duration)}
    context.progress("a double pendulum")
    parts["energy"] = _double_pendulum(10 * duration)
    context.progress("a damped pendulum")
    parts["damping"] = _damped()
    context.progress("a cube")
    parts["contact"] = _cube(np.array([0.1, 0.4, 0.7, 1.0]) if context.quick else np.linspace(0.1, 1.0, 10))
    for name, (said, curves, rows) in parts.items():
        claims += said
        panels[name] = curves
        tables[name if tables else ""] = rows
    return Result(claims, tables, {"": _figure(panels)})


# --- (a) -----------------------------------------------------------------------------------------------------------
def loop_drift(duration: float) -> Part:
    """Links of 1, 0.707 and 1 m that hang between two points 1 m apart, released above them at rest.

    The paper gives neither the distance of the points nor the start.
    """
    from leastaction import models
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model = models.four_bar(ground=1.0, crank=1.0, coupler=_SHORT, rocker=1.0, angle=np.pi / 2).build()
    curves: Curves = {}
    largest, energies = {}, {}
    for label, method in (("maximal", Maximal()), ("rk4", RungeKutta(4))):
        run = simulate(model, dt=_DT, duration=duration, method=method, save_every=5)
        curves[label] = (run.t, run.constraint_error)
        largest[label] = float(run.constraint_error.max())
        energies[label] = float(np.abs(run.energy.total - run.energy.total[0]).max())
    claims = [
        Claim(
            f"(a) no drift with the variational integrator: largest gap of the loop in {duration:g} s, m",
            "0",
            f"{largest['maximal']:.1e}",
            largest["maximal"] < 1e-9,
        ),
        Claim(
            "(a) it drifts under RK4 with the loop closed by accelerations: largest gap, m",
            "drifts",
            f"{largest['rk4']:.2g}",
            largest["rk4"] > 1e-3,
        ),
        Claim(
            "(a) largest energy error of the loop, J: variational against RK4",
            "not given",
            f"{energies['maximal']:.2g} against {energies['rk4']:.2g}",
            energies["maximal"] < energies["rk4"],
        ),
    ]
    return claims, curves, _rows(curves)


# --- (b) -----------------------------------------------------------------------------------------------------------
def _double_pendulum(duration: float) -> Part:
    """Two rods of 1 m and 1 kg, released horizontally at rest; the paper does not give the start."""
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    model = pendulum(2)
    start = model.state(q=[np.pi / 2, 0.0])
    curves: Curves = {}
    methods = {
        "maximal": Maximal(),
        "maximal, start of the paper": Maximal(start="seed"),
        "rk2 (Heun)": RungeKutta(2),
    }
    for label, method in methods.items():
        run = simulate(model, start, dt=_DT, duration=duration, method=method)
        curves[label] = (run.t, run.energy.total - run.energy.total[0])
    swing = float(np.ptp(run.energy.potential))
    halves = {label: _halves(error) for label, (_, error) in curves.items()}
    # change of the energy over the whole run, by a line
    drift = {label: float(np.polyfit(t, error, 1)[0] * duration) for label, (t, error) in curves.items()}
    claims = [
        Claim(
            f"(b) bounded with the variational integrator: largest error of each half of {duration:g} s, J"
            f" (the potential swings by {swing:.3g} J)",
            "bounded",
            "; ".join("{:.2g} and {:.2g}".format(*halves[label]) for label in list(methods)[:2]),
            all(halves[label][1] < 2 * halves[label][0] for label in list(methods)[:2]),
        ),
        Claim(
            "(b) Heun's method injects energy: change by a line fit, Heun against variational, J",
            "injects",
            f"{drift['rk2 (Heun)']:.3g} against {drift['maximal']:.1g}",
            drift["rk2 (Heun)"] > 10 * abs(drift["maximal"]),
        ),
    ]
    return claims, curves, _rows(curves, every=50)


def _halves(error: FloatArray) -> tuple[float, float]:
    """Largest error of the first and of the second half."""
    middle = len(error) // 2
    return float(np.abs(error[:middle]).max()), float(np.abs(error[middle:]).max())


# --- (c) -----------------------------------------------------------------------------------------------------------
def _damped() -> Part:
    """A rod of 1 m and 1 kg with damping 1/2 in its hinge, steps of 0.1 s; released horizontally, 10 s."""
    from leastaction.explicit.adaptive import Adaptive
    from leastaction.explicit.runge_kutta import RungeKutta
    from leastaction.maximal.method import Maximal
    from leastaction.run.simulate import simulate

    m = pendulum(1).mechanism.copy()
    m.joints["hinge1"].damping = np.array([0.5])
    model: Model = m.build()
    start = model.state(q=[np.pi / 2])
    exact = simulate(model, start, dt=0.1, duration=10.0, method=Adaptive(1e-12, 1e-12))
    curves: Curves = {"exact": (exact.t, exact.energy.total)}
    errors = {}
    for label, method in (
        ("maximal", Maximal()),
        ("maximal, start of the paper", Maximal(start="seed")),
        ("rk1 (Euler)", RungeKutta(1)),
    ):
        run = simulate(model, start, dt=0.1, duration=10.0, method=method)
        curves[label] = (run.t, run.energy.total)
        errors[label] = np.abs(run.energy.total - exact.energy.total)
    lost = float(exact.energy.total[0] - exact.energy.total[-1])
    ours, seed, euler = errors.values()
    claims = [
        Claim(
            f"(c) small error with damping at dt = 0.1 s: largest energy error, J (of {lost:.3g} J that are lost)",
            "small",
            f"{ours.max():.2g}; {seed.max():.2g} with the start of the paper",
            bool(max(ours.max(), seed.max()) < 0.1 * lost),
        ),
        Claim(
            "(c) Euler's method damps far too little: its energy error at the end, and the largest, J",
            "large",
            f"{curves['rk1 (Euler)'][1][-1] - exact.energy.total[-1]:.3g}; {euler.max():.3g}",
            bool(curves["rk1 (Euler)"][1][-1] - exact.energy.total[-1] > 5 * ours[-1] and euler.max() > 0.5 * lost),
        ),
    ]
    return claims, curves, _rows(curves)


# --- (d) -----------------------------------------------------------------------------------------------------------
def _cube(heights: FloatArray) -> Part:
    """A cube of 0.5 m and 1 kg, dropped flat; heights are those of its bottom. From 0.4 m by Algorithm 5 too."""
    from leastaction.maximal.method import Maximal
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.shapes import Box
    from leastaction.run.simulate import simulate
    from leastaction.solve.solvers import InteriorPoint

    m = Mechanism("cube")
    m.add_body("cube", shape=Box((_EDGE, _EDGE, _EDGE)), mass=_MASS)
    m.add_joint("root", "free", parent="world", child="cube")
    # friction 1 is MuJoCo's default
    m.add_ground(friction=1.0)
    model = m.build()
    rows: list[dict[str, Any]] = []
    curves: Curves = {}
    steps = round(_FALL / _DT)
    printed = Maximal(linear="graph", solver=InteriorPoint(_TOLERANCE, variant="seed"))
    for height in heights.tolist():
        start = model.state({"root": [0, 0, _EDGE / 2 + height, 1, 0, 0, 0]})
        run = simulate(model, start, dt=_DT, duration=_FALL, method=Maximal())
        bottoms = {"maximal": run.poses("cube")[:, 2, 3] - _EDGE / 2}
        if abs(height - _HEIGHT) < 1e-12:
            other = simulate(model, start, dt=_DT, duration=_FALL, method=printed)
            bottoms[_PRINTED] = other.poses("cube")[:, 2, 3] - _EDGE / 2
        if peer_mujoco.available():
            bottoms["MuJoCo, defaults"] = peer_mujoco.drop_box(height, _EDGE, _MASS, _DT, steps)
        for label, z in bottoms.items():
            row = {"simulator": label, "height": height, "lowest (m)": float(z.min()), "end (m)": float(z[-1])}
            rows.append(row)
            if abs(height - _HEIGHT) < 1e-12:
                curves[label] = (run.t, z)
    return _cube_claims(rows), curves, rows


def _cube_claims(rows: list[dict[str, Any]]) -> list[Claim]:
    """Statements on the drops."""
    mine = [row for row in rows if row["simulator"] == "maximal"]
    theirs = [row for row in rows if not row["simulator"].startswith("maximal")]
    printed = next(row["end (m)"] for row in rows if row["simulator"] == _PRINTED)
    end = next(row["end (m)"] for row in mine if abs(row["height"] - _HEIGHT) < 1e-12)
    lowest = min(row["lowest (m)"] for row in mine)
    claims = [
        Claim("(d) never below the ground, from any height: lowest, m", "0", f"{lowest:.1e}", lowest >= 0),
        Claim(
            "(d) stops at most 43 um above the ground, from 0.4 m: height at the end, m",
            "4.3e-5",
            f"{end:.1e}",
            0 < end <= 4.3e-5,
        ),
        Claim(
            f"(d) the same with Algorithm 5 as printed, tolerance {_TOLERANCE:g}: the gap that its barrier leaves, m",
            "4.3e-5",
            f"{printed:.1e}",
            4.3e-6 < printed < 4.3e-4,
        ),
    ]
    text, similar = "(d) MuJoCo's violation from 0.4 m, cm", "(d) MuJoCo: similar from other heights up to 1 m, cm"
    if not theirs:
        return [*claims, *(Claim(words, "2.7", peer_mujoco.MISSING, None) for words in (text, similar))]
    depths = {row["height"]: -100 * row["lowest (m)"] for row in theirs}
    depth = next(deep for height, deep in depths.items() if abs(height - _HEIGHT) < 1e-12)
    low, high = min(depths.values()), max(depths.values())
    return [
        *claims,
        Claim(text, 2.7, round(depth, 2), abs(depth - 2.7) < 0.05),
        Claim(similar, "similar", f"{low:.2f} to {high:.2f}", low > 1.35),
    ]


# --- tables and figure ---------------------------------------------------------------------------------------------
def _rows(curves: Curves, every: int = 1) -> list[dict[str, Any]]:
    """Curves over the same times as rows."""
    times = next(iter(curves.values()))[0]
    return [
        {"t": float(times[k]), **{label: float(values[k]) for label, (_, values) in curves.items()}}
        for k in range(0, len(times), every)
    ]


def _figure(panels: dict[str, Curves]) -> Any:
    """The four panels of the paper."""
    from leastaction.plot import colour_of, styled

    titles = {
        "loop": ("(a) loop: gap", "m"),
        "energy": ("(b) double pendulum: E \N{MINUS SIGN} E(0)", "J"),
        "damping": ("(c) damped pendulum: E", "J"),
        "contact": ("(d) cube: height of the bottom", "m"),
    }

    def draw(figure: Any) -> None:
        for axes, (name, curves) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
            title, unit = titles[name]
            for index, (label, (t, y)) in enumerate(curves.items()):
                style = {**colour_of(index), "linestyle": ("-", "--", "-.", ":")[index]}
                if name == "loop":
                    axes.semilogy(t[1:], np.abs(y[1:]) + 1e-18, label=label, **style)
                else:
                    axes.plot(t, y, label=label, **style)
            axes.set(title=title, xlabel="time  (s)", ylabel=unit)
            if name == "contact":
                axes.set(xlim=(0.15, 0.6), ylim=(-0.04, 0.12))
            axes.legend(loc="best")

    return styled(draw, 10.5, 6.4)
