"""``leastaction resume``: go on with a run from its file."""

from __future__ import annotations

from pathlib import Path

import click

from leastaction.cli.output import say_when_compiling
from leastaction.cli.run import Outputs, carry_out, check_length, output_options, show_bar


@click.command(short_help="Go on with a run from its file.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--duration", required=True, type=float, help="Further seconds, a whole number of equal steps.")
@output_options
def resume(
    file: Path,
    duration: float,
    out: Path | None,
    plot: Path | None,
    html: Path | None,
    view: bool,
    progress: bool | None,
) -> None:
    """Go on with a run from the .npz file that --out of run wrote; the result holds the old states and the new ones."""
    from leastaction.run.simulate import resume as go_on
    from leastaction.run.trajectory import Trajectory

    outputs = Outputs(out, plot, html, view)
    outputs.check()
    with say_when_compiling():
        half = Trajectory.load(file)
        # how many steps a step control will take is not known
        if isinstance(half.dt, float):
            check_length(half.model, half.dt, duration, half.every, "take a shorter --duration")
        carry_out(lambda: go_on(half, duration, progress=show_bar(progress)), outputs)
