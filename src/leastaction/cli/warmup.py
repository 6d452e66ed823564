"""``leastaction warmup``: compile every kernel ahead of the first run."""

from __future__ import annotations

import os

import click

from leastaction.cli.output import console


@click.command(short_help="Compile every kernel ahead of the first run.")
@click.option("--list", "listed", is_flag=True, help="Only show which entry points are compiled, and where.")
@click.option("--form", type=click.Choice(["plain", "full"]), help="Only without loops and forces on bodies, or with.")
@click.option("--processes", type=click.IntRange(1, 64), help="Processes that compile; two, or one on a single core.")
@click.option("--store", is_flag=True, help="For all common processors, into the package, as `make wheel` does.")
def warmup(listed: bool, form: str | None, processes: int | None, store: bool) -> None:
    """Compile every kernel ahead of the first run, for mechanisms with and without loops and forces."""
    from leastaction import warmup as work

    if listed:
        work.show_cache(console())
        return
    count = min(2, os.cpu_count() or 1) if processes is None else processes
    if store:
        work.make_store(console(), processes=count)
    else:
        work.warm_up(console(), None if form is None else work.FORMS[form == "full"], count)
