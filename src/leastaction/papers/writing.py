"""Files of a result: figures, tables, and the claims with their verdicts."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leastaction._version import __version__
from leastaction.errors import ModelError
from leastaction.model.files import write_beside
from leastaction.papers.registry import Experiment, Result
from leastaction.plot import save_figure


def write_result(result: Result, experiment: Experiment, out: Path, *, quick: bool) -> list[Path]:
    """Write ``name.png``, ``name.csv`` and ``name.json`` (further figures and tables as ``name-part.*``)."""
    written: list[Path] = []
    for part, figure in result.figures.items():
        written.append(out / f"{_stem(experiment.name, part)}.png")
        save_figure(figure, written[-1])
    for part, rows in result.tables.items():
        written.append(out / f"{_stem(experiment.name, part)}.csv")
        _write_text(written[-1], csv_text(rows))

    # the claims, with what is needed to know what was run
    about = {
        "experiment": experiment.name,
        "paper": experiment.paper,
        "title": experiment.title,
        "quick": quick,
        "leastaction": __version__,
        "claims": [{key: _finite(value) for key, value in asdict(claim).items()} for claim in result.claims],
        "files": [path.name for path in written],
    }
    written.append(out / f"{experiment.name}.json")
    _write_text(written[-1], json.dumps(about, indent=1, allow_nan=False) + "\n")
    return written


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; all have the columns of the first, and numbers keep all digits."""
    if not rows:
        raise ModelError("a table of an experiment has no rows.")
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _stem(name: str, part: str) -> str:
    """Name of a file without its ending."""
    return f"{name}-{part}" if part else name


def _write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_beside(path, lambda stream: stream.write(text.encode()))


def _finite(value: Any) -> Any:
    """JSON has no infinities: words instead."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.item() if hasattr(value, "item") else value
