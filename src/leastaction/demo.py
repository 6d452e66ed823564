"""The demo: a four-bar linkage, whose loop shows what a method does to energy and constraints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from leastaction.trajectory import Trajectory

DT, DURATION, CRANK_RATE = 0.001, 5.0, 8.0
"""Step (s), length of the runs (s), and rate of the crank from which the first state is found (rad/s)."""


def run_demo(out_dir: Path, console: Any) -> list[Path]:
    """Simulate, print reports and a comparison, write ``demo.png`` and ``demo.npz``; returns their paths."""
    from leastaction import models, observe
    from leastaction.plot import plot_comparison
    from leastaction.simulate import simulate

    # the nearest state that keeps the loop closed: the other joints follow the crank
    model = models.four_bar().build()
    start = observe.project(model, model.state(v={"crank_hinge": CRANK_RATE}))
    console.print(
        f"A four-bar linkage: {len(model.body_names)} moving bars, {len(model.loop_names)} joint that closes the loop, "
        f"{DURATION:g} s at dt = {DT:g} s.",
        soft_wrap=True,
    )

    # the same motion with two methods, and what each did
    runs = []
    for name in ("rk4", "euler"):
        runs.append(simulate(model, start, dt=DT, duration=DURATION, method=name))
        console.print()
        console.print(runs[-1].report)
    console.print()
    console.print(_comparison(runs))

    # a picture of both, and the better run with its mechanism
    picture, result = out_dir / "demo.png", out_dir / "demo.npz"
    plot_comparison(runs, picture)
    runs[0].save(result)
    console.print()
    console.print(f"wrote {picture}", markup=False, soft_wrap=True)
    console.print(f'wrote {result}; leastaction.Trajectory.load("{result}") reads it', markup=False, soft_wrap=True)
    return [picture, result]


def _comparison(runs: list[Trajectory]) -> Any:
    """A table of what should stay zero."""
    from rich.table import Table

    table = Table(title="what should stay zero", title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("method", "energy drift (J)", "of the largest kinetic energy", "loop gap (m or rad)"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for run in runs:
        drift = float(np.abs(run.energy.total - run.energy.total[0]).max())
        share = drift / float(run.energy.kinetic.max())
        table.add_row(run.method.label, f"{drift:.2e}", f"{share:.2e}", f"{run.constraint_error.max():.2e}")
    return table
