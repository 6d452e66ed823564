"""The bench: what it measures, its table and its file. Speed itself is judged by the slow tests, on a quiet machine."""

from __future__ import annotations

import json

import pytest

from leastaction.bench import main as bench
from leastaction.errors import ModelError


def test_a_row_keeps_its_bound_or_not():
    assert bench.Row("g", "w", "us", 1.0, 2.0, 0.5, 0.75).holds is True
    assert bench.Row("g", "w", "us", 2.0, 2.0, 1.0, 0.75).holds is False
    assert bench.Row("g", "w", "us", 2.0, 2.0, 1.0, None).holds is None


def test_the_table_and_the_file_say_the_same(tmp_path, monkeypatch, capsys):
    rows = [
        bench.Row("one", "a thing", "us", 1.0, 2.0, 0.5, 0.75),
        bench.Row("one", "another", "s", 3.0, None, 3.0, 2.0),
    ]
    monkeypatch.setattr(bench, "GROUPS", {"one": lambda: rows})
    path = tmp_path / "bench.json"
    assert bench.run_bench(["one"], path) == rows
    text = capsys.readouterr().out
    assert "a thing" in text
    assert "NO" in text
    written = json.loads(path.read_text())
    assert [row["holds"] for row in written] == [True, False]
    assert written[0]["ratio"] == 0.5


def test_an_unknown_group_is_named():
    with pytest.raises(ModelError, match="no group 'nothing'"):
        bench.run_bench(["nothing"])


@pytest.mark.slow
@pytest.mark.parametrize("group", ["import", "kernels", "growth", "rollout", "lanes", "redmax", "cold", "compile"])
def test_every_bound_is_kept(group):
    rows = bench.GROUPS[group]()
    assert rows
    assert [row.what for row in rows if row.holds is False] == []
