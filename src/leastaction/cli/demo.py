"""``leastaction demo``: a closed loop under two methods."""

from __future__ import annotations

from pathlib import Path

import click

from leastaction.cli.output import check_matplotlib, console, make_folder, say_when_compiling


@click.command(short_help="Simulate a linkage with two methods and compare them.")
@click.option(
    "--out-dir",
    metavar="DIR",
    default="out",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for the picture and the result file; made if missing.",
)
def demo(out_dir: Path) -> None:
    """Simulate a four-bar linkage with rk4 and euler, compare them, write a picture and a result file."""
    check_matplotlib("demo")
    make_folder(out_dir, "--out-dir")
    with say_when_compiling():
        from leastaction.demo import run_demo

        run_demo(out_dir, console())
