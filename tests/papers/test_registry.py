"""The frame of the experiments: names, aliases, files."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import leastaction as la
from leastaction.papers import registry
from leastaction.papers.registry import Claim, Context, Result, experiment, find
from leastaction.papers.writing import csv_text, write_result


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Experiments of a test do not stay."""
    registry.experiments()
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))


def work(context):
    return Result([])


def test_names_and_aliases_lead_to_the_experiment():
    experiment("fig9", paper="Someone 1999", title="A figure", aliases=("fig9a", "fig9b"))(work)
    assert find("fig9b") is find("fig9")
    assert find("fig9").function is work
    assert list(registry.experiments()) == sorted(registry.experiments())


@pytest.mark.parametrize("names", [("baselines", ()), ("new", ("baselines",)), ("list", ()), ("all", ())])
def test_a_name_is_given_once(names):
    with pytest.raises(la.ModelError, match="is taken"):
        experiment(names[0], paper="", title="", aliases=names[1])(work)


def test_unknown_name_has_a_hint():
    with pytest.raises(la.ModelError, match=r"there are .*baselines.*Did you mean 'baselines'"):
        find("baseline")


def test_files(tmp_path):
    from leastaction.plot import styled

    figure = styled(lambda f: f.subplots(), 2.0, 1.0)
    claims = [Claim("a", 1.0, np.float64(2.0), np.bool_(True)), Claim("b", "words", float("inf"), None)]
    result = Result(claims, {"": [{"x": 0.1, "y": "a,b"}], "more": [{"z": 1}]}, {"": figure, "more": figure})
    experiment("fig9", paper="Someone 1999", title="A figure")(work)
    written = write_result(result, find("fig9"), tmp_path, quick=False)
    names = ["fig9.png", "fig9-more.png", "fig9.csv", "fig9-more.csv", "fig9.json"]
    assert [path.name for path in written] == names
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())

    # what is in them
    about = json.loads((tmp_path / "fig9.json").read_text())
    assert about["claims"][0] == {"text": "a", "paper": 1.0, "ours": 2.0, "holds": True}
    assert about["claims"][1] == {"text": "b", "paper": "words", "ours": "inf", "holds": None}
    assert about["files"] == names[:-1]
    assert list(csv.DictReader(io.StringIO((tmp_path / "fig9.csv").read_text()))) == [{"x": "0.1", "y": "a,b"}]


def test_csv_keeps_all_digits():
    number = 0.1 + 0.2
    rows = list(csv.DictReader(io.StringIO(csv_text([{"x": number}]))))
    assert float(rows[0]["x"]) == number
    with pytest.raises(la.ModelError, match="no rows"):
        csv_text([])


def test_baselines_measures_the_orders(tmp_path):
    said = []
    result = find("baselines").function(Context(True, tmp_path, said.append))
    orders = {claim.text.split()[-1]: claim.ours for claim in result.claims}
    # measured 1.001, 1.000, 2.025, 4.049
    expected = {"rk1": 1, "euler": 1, "rk2": 2, "rk4": 4}
    assert orders == pytest.approx(expected, abs=0.06)
    assert all(claim.holds for claim in result.claims)
    assert said == ["reference", *expected]
    # nothing but the frame writes
    assert list(tmp_path.iterdir()) == []
