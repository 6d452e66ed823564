"""Experiments of Bruedigam et al. 2020 and 2023: the quick forms run, can be written, and say what is known to hold."""

from __future__ import annotations

import json

import pytest

from leastaction.papers.registry import Context, find
from leastaction.papers.writing import write_result


def verdicts(name, tmp_path):
    """Run the quick form and write it; the claims as (text, ours, holds), and the result."""
    said = []
    result = find(name).function(Context(True, tmp_path, said.append))
    written = write_result(result, find(name), tmp_path, quick=True)
    assert said
    assert {path.suffix for path in written} == {".png", ".csv", ".json"}
    claims = json.loads((tmp_path / f"{name}.json").read_text())["claims"]
    return [(claim["text"], claim["ours"], claim["holds"]) for claim in claims], result


def failing(claims):
    """Texts of the claims that do not hold."""
    return [text for text, _, holds in claims if not holds]


def test_table_of_joints(tmp_path):
    claims, result = verdicts("bruedigam2023-tableB2", tmp_path)
    assert failing(claims) == []
    assert len(result.tables[""]) == 14
    assert [ours for _, ours, _ in claims[:3]] == ["12 of 12", "14 of 14", "14 of 14"]


@pytest.mark.parametrize("name", ["bruedigam2020-fig3", "bruedigam2023-fig4", "bruedigam2023-fig6"])
def test_fill_in(name, tmp_path):
    claims, result = verdicts(name, tmp_path)
    assert failing(claims) == []
    counts = {row["order"]: row["fill-in blocks"] for row in result.tables[""]}
    expected = {
        "bruedigam2020-fig3": {"as numbered": 12, "from leaves to root": 0, "degree": 0, "depth": 0},
        "bruedigam2023-fig4": {"as numbered": 14, "degree": 0, "depth": 0},
        "bruedigam2023-fig6": {"as numbered": 32, "degree": 10, "depth": 12},
    }
    assert counts == expected[name]


def test_figure_3_is_that_of_both_papers():
    assert find("bruedigam2023-fig3") is find("bruedigam2020-fig3")
