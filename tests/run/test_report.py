"""The report of a run: as text, as a table, from a file."""

from __future__ import annotations

import io

import pytest

import leastaction as la
from leastaction.run.report import Report

GOOD = Report("rk4", 10, 0.1, 0.5, {"evaluations": 40}, None, {"[red]arm[/red]": "crossed by [bold]1"}).to_dict()


def test_names_are_no_markup():
    from rich.console import Console

    out = Console(file=io.StringIO(), width=120)
    out.print(Report(**GOOD))
    assert "limit of [red]arm[/red]" in out.file.getvalue()
    assert "crossed by [bold]1" in out.file.getvalue()


def test_back_from_plain_types():
    assert Report.from_dict(GOOD) == Report(**GOOD)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("method", 4),
        ("steps", -1),
        ("steps", True),
        ("steps", 1.5),
        ("dt", "0.1"),
        ("dt", float("nan")),
        ("wall_time", float("inf")),
        ("counters", {"evaluations": "many"}),
        ("counters", [1]),
        ("limits", {"arm": 3}),
        ("failure", 7),
        ("more", 1),
    ],
)
def test_damaged(key, value):
    with pytest.raises(la.ModelError, match=f"report: {key}"):
        Report.from_dict({**GOOD, key: value})
    with pytest.raises(la.ModelError, match="report"):
        Report.from_dict([])
    with pytest.raises(la.ModelError, match="report: method is missing"):
        Report.from_dict({k: v for k, v in GOOD.items() if k != "method"})
