"""Energy of a passive chain of ten bodies under the variational integrator and under semi-implicit Euler."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastaction.papers.common import legend_outside
from leastaction.papers.registry import Claim, Context, Result, experiment

_BODIES, _DT = 10, 0.001


@experiment(
    "lee2016-fig2b",
    paper="Lee, Liu, Park, Srinivasa 2016, Fig. 2(b)",
    title="Energy of a chain of ten bodies: RIQN variational integrator against semi-implicit Euler",
)
def figure2b(context: Context) -> Result:
    """Ten links released horizontally, 10 s at 1 ms (3 s if quick). The paper gives neither lengths nor masses."""
    from leastaction import models
    from leastaction.explicit.semi_implicit_euler import SemiImplicitEuler
    from leastaction.run.simulate import simulate
    from leastaction.solve.solvers import RIQN
    from leastaction.trapezoid.method import LieTrapezoid

    model = models.chain(_BODIES).build()
    start = model.state(q={"joint1": np.pi / 2})
    duration = 3.0 if context.quick else 10.0
    errors, times = {}, np.zeros(0)
    for name, method in (("RIQN", LieTrapezoid(RIQN(), form="printed")), ("semi-implicit Euler", SemiImplicitEuler())):
        context.progress(name)
        run = simulate(model, start, dt=_DT, duration=duration, method=method, save_every=10)
        times, errors[name] = run.t, run.energy.total - run.energy.total[0]
    swing = float(np.ptp(run.energy.potential))

    # drift: a line through the energy, over the whole run; band: largest error
    drift = {name: float(np.polyfit(times, error, 1)[0] * duration) for name, error in errors.items()}
    band = {name: float(np.abs(error).max()) for name, error in errors.items()}
    last = {name: float(error[-len(error) // 10 :].mean()) for name, error in errors.items()}
    claims = [
        Claim(
            f"RIQN does not dissipate: energy change by a line fit, J (the potential swings by {swing:.3g} J)",
            "no artificial dissipation",
            f"{drift['RIQN']:.2g}; largest error {band['RIQN']:.2g}",
            abs(drift["RIQN"]) < 1e-3 * swing,
        ),
        Claim(
            "semi-implicit Euler dissipates: mean energy change of the last tenth, J",
            "dissipates",
            round(last["semi-implicit Euler"], 4),
            last["semi-implicit Euler"] < -1e-3 * swing,
        ),
        Claim(
            "largest energy error, Euler over RIQN",
            "not given",
            round(band["semi-implicit Euler"] / band["RIQN"], 1),
            band["semi-implicit Euler"] > band["RIQN"],
        ),
    ]
    rows = [{"t": float(t), **{name: float(error[k]) for name, error in errors.items()}} for k, t in enumerate(times)]
    return Result(claims, {"": rows}, {"": _figure(times, errors)})


def _figure(times: Any, errors: dict[str, Any]) -> Any:
    """Energy error over time, as it is and enlarged."""
    from leastaction.plot import colour_of, styled

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 2)
        for index, (name, error) in enumerate(errors.items()):
            panels[0].plot(times, error, label=name, **colour_of(index))
            panels[1].semilogy(times[1:], np.abs(error[1:]) + 1e-12, label=name, **colour_of(index))
        for axes, label in zip(panels, ("E \N{MINUS SIGN} E(0)  (J)", "|E \N{MINUS SIGN} E(0)|  (J)"), strict=True):
            axes.set_xlabel("time  (s)")
            axes.set_ylabel(label)
        legend_outside(panels[-1])

    return styled(draw, 10.0, 3.2)
