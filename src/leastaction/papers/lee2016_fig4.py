"""Convergence of RIQN and Newton: residuals from q = 0, and iterations of each frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.papers.common import legend_outside
from leastaction.papers.registry import Claim, Context, Result, experiment

if TYPE_CHECKING:
    from leastaction.model.checks import FloatArray
    from leastaction.model.model import Model, State

_BODIES, _DT = 10, 0.001
_GUESSES = ("hold", "euler", "dynamics", "quadratic")


def _chain(angle: float = np.pi / 2) -> tuple[Model, State]:
    """Ten links, released with the first hinge turned by an angle: horizontally, if not said otherwise."""
    from leastaction import models

    model = models.chain(_BODIES).build()
    return model, model.state(q={"joint1": angle})


@experiment(
    "lee2016-fig4a",
    paper="Lee, Liu, Park, Srinivasa 2016, Fig. 4(a)",
    title="Residuals of one frame from the guess q = 0: Newton against RIQN",
)
def figure4a(context: Context) -> Result:
    """One frame of a moving chain of ten bodies, both root finders started from the zero configuration.

    The chain was released at 1 rad and moved for 0.3 s; it is 0.5 rad from zero then. From much farther away (0.8 rad)
    neither root finder converges without a line search.
    """
    from leastaction.run.simulate import simulate
    from leastaction.trapezoid.method import LieTrapezoid

    model, start = _chain(1.0)
    context.progress("a moving state")
    state = simulate(model, start, dt=_DT, duration=0.3, method=LieTrapezoid(form="printed"), save_every=300).final
    histories = {name: _residuals(model, state, name) for name in ("Newton", "RIQN")}
    rows = [
        {"solver": name, "iteration": k, "residual": size}
        for name, sizes in histories.items()
        for k, size in enumerate(sizes)
    ]
    # iterations until the residual has fallen by ten orders
    counts = {name: int(np.argmax(np.array(sizes) < 1e-10 * sizes[0])) for name, sizes in histories.items()}
    words = f"{counts['Newton']} against {counts['RIQN']} iterations for ten orders"
    newton = np.log(histories["Newton"])
    usable = newton[newton > newton[0] + np.log(1e-12)]
    order = float((usable[-1] - usable[-2]) / (usable[-2] - usable[-3])) if len(usable) > 2 else float("nan")
    slower = 0 < counts["Newton"] < counts["RIQN"]
    claims = [
        Claim("RIQN converges more slowly than Newton", "more slowly", words, slower),
        Claim("order of Newton's convergence, from its last residuals", "2 (theory)", round(order, 2), order > 1.5),
    ]
    return Result(claims, {"": rows}, {"": _residual_figure(histories)})


def _residuals(model: Model, state: State, name: str, most: int = 30) -> list[float]:
    """Largest residual of each iterate of DRNEA's equation from q = 0, until it stops falling."""
    from leastaction.dynamics.quantities import mass_matrix
    from leastaction.trapezoid import step as trapezoid_step
    from leastaction.trapezoid.method import LieTrapezoid

    n = model.nv
    memory = LieTrapezoid(form="printed").start(model, state)
    start = trapezoid_step.State._make(memory[name] for name in trapezoid_step.State._fields)
    xi, r, pn, y, dense, J = -memory["x"], np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((n, n))
    out, none = trapezoid_step.Probe(r, pn, y, dense, J), np.zeros(n)
    M = mass_matrix(model, state.q)
    sizes: list[float] = []
    while len(sizes) < most:
        trapezoid_step.trapezoid_probe(model.system, True, start, 0.0, _DT, none, False, xi, out)
        sizes.append(float(np.abs(r).max()))
        # until rounding rules
        if len(sizes) > 2 and sizes[-1] >= 0.5 * sizes[-2] and sizes[-1] < 1e-9 * sizes[0]:
            break
        # the Jacobian is near plus or minus M / dt, by the sign of the residual
        sign = -np.sign(np.trace(J))
        xi = xi + (dense if name == "Newton" else sign * _DT * np.linalg.solve(M, r))
    return sizes


def _residual_figure(histories: dict[str, list[float]]) -> Any:
    """Residual against iteration."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for index, (name, sizes) in enumerate(histories.items()):
            axes.semilogy(range(len(sizes)), sizes, marker="o", markersize=3.5, label=name, **colour_of(index))
        axes.set_xlabel("iteration")
        axes.set_ylabel("largest residual  (N m s)")
        legend_outside(axes)

    return styled(draw, 6.5, 3.2)


@experiment(
    "lee2016-fig4b",
    paper="Lee, Liu, Park, Srinivasa 2016, Fig. 4(b)",
    title="Iterations of every frame: Newton against RIQN",
)
def figure4b(context: Context) -> Result:
    """Ten bodies, 10 000 frames (1000 if quick) with each guess. The paper gives neither guess nor tolerance."""
    frames = 1000 if context.quick else 10_000
    counts: dict[tuple[str, str], FloatArray] = {}
    rows: list[dict[str, Any]] = []
    for name in ("Newton", "RIQN"):
        for guess in _GUESSES:
            context.progress(f"{name}, guess '{guess}'")
            counts[name, guess] = _iterations(name, guess, frames)
            found = counts[name, guess]
            sizes = {"mean": float(found.mean()), "deviation": float(found.std())}
            rows.append({"solver": name, "guess": guess, "frames": len(found), **sizes})
    claims = []
    for name, mean, deviation in (("Newton", 4.0, 0.0), ("RIQN", 5.69, 1.16)):
        # the guess whose mean is nearest to the paper's
        row = min((row for row in rows if row["solver"] == name), key=lambda row: abs(row["mean"] - mean))
        words = f"{row['mean']:.2f} ({row['deviation']:.2f}) with guess '{row['guess']}'"
        near = abs(row["mean"] - mean) <= 0.5 and abs(row["deviation"] - deviation) <= 0.5
        claims.append(Claim(f"iterations of {name}: mean (deviation)", f"{mean:g} ({deviation:g})", words, near))
    fewer = all(counts["Newton", guess].mean() < counts["RIQN", guess].mean() for guess in _GUESSES)
    claims.append(Claim("Newton takes fewer iterations, whatever the guess", "fewer", "yes" if fewer else "no", fewer))
    return Result(claims, {"": rows}, {"": _iteration_figure(counts)})


def _iterations(name: str, guess: str, frames: int) -> FloatArray:
    """Iterations of each frame (frames,)."""
    from leastaction.methods.base import Clock, Control
    from leastaction.solve.solvers import RIQN, DenseNewton
    from leastaction.trapezoid.method import LieTrapezoid

    model, start = _chain()
    method = LieTrapezoid({"Newton": DenseNewton, "RIQN": RIQN}[name](), guess=guess, form="printed")
    memory, none = method.start(model, start), Control(np.zeros((0, model.nv)))
    out = []
    for k in range(frames):
        chunk = method.rollout(model, memory, Clock(0.0, _DT), k, 1, 1, none)
        if chunk.failure:
            break
        out.append(chunk.counters["iterations"])
    return np.array(out, dtype=float)


def _iteration_figure(counts: dict[tuple[str, str], FloatArray]) -> Any:
    """How often each number of iterations occurs."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        top = int(max(found.max() for found in counts.values()))
        for axes, name in zip(panels, ("Newton", "RIQN"), strict=True):
            for index, guess in enumerate(_GUESSES):
                share = np.bincount(counts[name, guess].astype(int), minlength=top + 1) / len(counts[name, guess])
                axes.plot(range(top + 1), share, marker="o", markersize=3.5, label=guess, **colour_of(index))
            axes.set_title(name)
            axes.set_xlabel("iterations of a frame")
        panels[0].set_ylabel("share of frames")
        legend_outside(panels[-1])

    return styled(draw, 9.0, 3.2)
