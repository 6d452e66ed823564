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


@pytest.mark.slow
def test_physical_accuracy(tmp_path):
    pytest.importorskip("mujoco")
    claims, result = verdicts("bruedigam2023-fig7", tmp_path)
    # the cube sinks into MuJoCo's ground by 3 mm or by 27 mm, as the height has it
    assert failing(claims) == ["(d) MuJoCo: similar from other heights up to 1 m, cm"]
    assert len(claims) == 12
    ours = [row for row in result.tables["contact"] if row["simulator"] == "maximal"]
    assert all(0 < row["end (m)"] < 1e-9 for row in ours)  # measured 4e-10
    gaps = [row["maximal"] for row in result.tables[""]]
    assert max(gaps) < 1e-11  # measured 1.5e-13


def test_without_mujoco_the_claims_on_it_are_left_open(monkeypatch):
    from leastaction.papers import bruedigam2023_fig7, peer_mujoco

    monkeypatch.setattr(peer_mujoco, "available", lambda: False)
    rows = [
        {"simulator": "maximal", "height": 0.4, "lowest (m)": 1e-11, "end (m)": 4e-10},
        {"simulator": "maximal, Algorithm 5", "height": 0.4, "lowest (m)": 4e-6, "end (m)": 2.6e-5},
    ]
    claims = bruedigam2023_fig7._cube_claims(rows)
    assert [claim.holds for claim in claims] == [True, True, True, None, None]
    assert "leastaction[peers]" in claims[-1].ours


@pytest.mark.slow
def test_chain_of_spheres(tmp_path):
    pytest.importorskip("mujoco")
    claims, result = verdicts("bruedigam2023-fig8", tmp_path)
    verdict = {text: holds for text, _, holds in claims}
    # the time is not judged here; MuJoCo's failures begin above what the quick form tries
    assert [holds for text, holds in verdict.items() if "linear" not in text] == [True] * 3 + [None] * 4
    rows = result.tables[""]
    ours = [row["lowest (m)"] for row in rows if row["simulator"] == "maximal"]
    theirs = [row["lowest (m)"] for row in rows if row["simulator"] != "maximal"]
    assert len(ours) == len(theirs) == 6
    assert min(ours) > 0  # measured 1e-11
    assert max(theirs) < -0.01  # measured -0.018


@pytest.mark.slow
def test_energy_drift_and_convergence(tmp_path):
    claims, result = verdicts("bruedigam2020-fig4", tmp_path)
    # exponents of times are not judged here
    assert [text for text in failing(claims) if "exponent" not in text] == []
    assert len(claims) == 10
    needed = {row["links"]: row["iteration"] for row in result.tables["residuals"] if row["residual"] > 1e-10}
    assert needed == {1: 1, 10: 1, 100: 1}


@pytest.mark.slow
def test_tolerances(tmp_path):
    claims, result = verdicts("bruedigam2023-fig10", tmp_path)
    # short runs of up to 20 links: nothing fails, also not what fails in the paper
    assert [text.split(":")[0] for text in failing(claims)] == ["lie-trapezoid, RIQN", "galerkin"]
    rows = result.tables[""]
    assert len(rows) == 2 * 3 * 4 * 4
    assert {row["stopped"] for row in rows} == {""}
    assert max(row["iterations"] for row in rows if row["method"] == "maximal") < 2.2  # measured 1.96
