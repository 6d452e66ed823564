"""The frame of the experiments: what one gets, what it returns, and the names by which it is run."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leastaction import papers
from leastaction.errors import ModelError


@dataclass(frozen=True)
class Context:
    """What an experiment gets.

    Attributes:
        quick: a smaller version that takes seconds; the claims are the same.
        out: folder for anything it writes itself; figures and tables of the result are written by the frame.
        progress: called with a few words when a part of the work begins.
    """

    quick: bool
    out: Path
    progress: Callable[[str], None]


@dataclass(frozen=True)
class Claim:
    """One statement and whether it holds here.

    Attributes:
        text: the statement.
        paper: the paper's number or words.
        ours: our number or words.
        holds: whether it holds; None where it could not be judged, which the text of ``ours`` then explains.
    """

    text: str
    paper: str | float
    ours: str | float
    holds: bool | None


@dataclass(frozen=True)
class Result:
    """What an experiment returns.

    Attributes:
        claims: the verdicts.
        tables: rows by the name of the table, the first one "" for the experiment itself; columns are the keys.
        figures: matplotlib figures by name, in the same way.
    """

    claims: Sequence[Claim]
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """An experiment with its names.

    Attributes:
        name: by which it is run.
        paper: the paper, with the figure or table; empty for one of our own.
        title: one line.
        aliases: other names, such as the panels of a figure.
        function: does the work.
    """

    name: str
    paper: str
    title: str
    aliases: tuple[str, ...]
    function: Callable[[Context], Result]


_REGISTRY: dict[str, Experiment] = {}

Work = Callable[[Context], Result]


def experiment(name: str, *, paper: str, title: str, aliases: Sequence[str] = ()) -> Callable[[Work], Work]:
    """Register a function as an experiment; a name is given once."""

    def register(function: Work) -> Work:
        taken = {word for known in _REGISTRY.values() for word in (known.name, *known.aliases)}
        for word in (name, *aliases):
            if word in taken or word in ("list", "all"):
                raise ModelError(f"experiment '{name}': the name '{word}' is taken.")
        _REGISTRY[name] = Experiment(name, paper, title, tuple(aliases), function)
        return function

    return register


def experiments() -> dict[str, Experiment]:
    """All experiments by name, in order of their names."""
    for module in pkgutil.iter_modules(papers.__path__):
        importlib.import_module(f"{papers.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items()))


def find(name: str) -> Experiment:
    """An experiment by its name or one of its aliases."""
    known = experiments()
    words = {word: found for found in known.values() for word in (found.name, *found.aliases)}
    if name not in words:
        close = difflib.get_close_matches(name, words, n=1)
        hint = f" Did you mean '{close[0]}'?" if close else ""
        raise ModelError(f"there is no experiment '{name}'; there are {', '.join(known)}.{hint}")
    return words[name]
