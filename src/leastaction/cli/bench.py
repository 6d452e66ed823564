"""``leastaction bench``: measure speed."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from leastaction.cli.output import check_output


@click.command(short_help="Measure speed and print a table.")
@click.argument("names", metavar="[GROUP]...", nargs=-1)
@click.option(
    "--json",
    "json_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write the measurements to this .json file.",
)
def bench(names: tuple[str, ...], json_path: Path | None) -> None:
    """Measure speed against Pinocchio and MuJoCo, all groups or the named ones, and print a table."""
    check_output(json_path, (".json",), "--json")
    importlib.import_module("leastaction.bench.main").run_bench(names, json_path)
