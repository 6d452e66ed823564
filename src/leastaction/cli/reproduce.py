"""``leastaction reproduce``: repeat experiments and say which claims hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leastaction.cli.output import check_matplotlib, console, make_folder, say_when_compiling

if TYPE_CHECKING:
    from leastaction.papers.registry import Claim, Experiment


@click.command(short_help="Repeat experiments and say which claims hold.")
@click.argument("names", metavar="list | all | NAME...", nargs=-1, required=True)
@click.option("--quick", is_flag=True, help="A smaller version that takes seconds.")
@click.option(
    "--out",
    metavar="DIR",
    default="out/reproduce",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for figures (.png), tables (.csv) and verdicts (.json); made if missing.",
)
def reproduce(names: tuple[str, ...], quick: bool, out: Path) -> None:
    """Repeat experiments and print which claims hold; 'list' shows their names.

    A claim that does not hold is reported as such; the exit code is 0 all the same, as the experiment itself ran.
    """
    from leastaction.papers.registry import experiments, find

    if names == ("list",):
        console().print(_listing(list(experiments().values())))
        return

    # every name is looked up before anything runs
    chosen = list(experiments().values()) if names == ("all",) else list(dict.fromkeys(find(name) for name in names))
    check_matplotlib("reproduce")
    make_folder(out, "--out")
    with say_when_compiling():
        for experiment in chosen:
            _run(experiment, quick, out)


def _run(experiment: Experiment, quick: bool, out: Path) -> None:
    """One experiment: its work, its files, its verdicts."""
    from leastaction.papers.registry import Context
    from leastaction.papers.writing import write_result

    screen = console()
    with screen.status(experiment.name) as status:
        progress = lambda words: status.update(f"{experiment.name}: {words}")  # noqa: E731
        result = experiment.function(Context(quick, out, progress))
    written = write_result(result, experiment, out, quick=quick)
    screen.print(_verdicts(experiment, list(result.claims)))
    for path in written:
        screen.print(f"wrote {path}", markup=False, soft_wrap=True)


def _listing(known: list[Experiment]) -> Any:
    """Names, papers and titles."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("name", "paper", "title", "also called"):
        table.add_column(column)
    for experiment in known:
        table.add_row(experiment.name, experiment.paper or "-", experiment.title, ", ".join(experiment.aliases))
    return table


def _verdicts(experiment: Experiment, claims: list[Claim]) -> Any:
    """Claim, the paper's number, ours, and whether it holds."""
    from rich.table import Table
    from rich.text import Text

    title = experiment.title + (f" ({experiment.paper})" if experiment.paper else "")
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("claim", "paper", "ours", "holds"):
        table.add_column(column)
    words = {True: Text("yes", style="green"), False: Text("NO", style="bold red"), None: Text("not judged")}
    for claim in claims:
        table.add_row(Text(claim.text), Text(_number(claim.paper)), Text(_number(claim.ours)), words[claim.holds])
    return table


def _number(value: str | float) -> str:
    """Words as they are, numbers with a few digits."""
    return value if isinstance(value, str) else f"{value:.4g}"
