"""Every experiment runs in its quick form and returns claims, tables and figures that can be written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leastaction.papers.common import columns, pendulum, slope, starts
from leastaction.papers.registry import Context, experiments, find
from leastaction.papers.writing import write_result

NAMES = [name for name in experiments() if name.startswith(("lee2016", "fan2018"))]


def test_all_figures_are_there():
    assert set(NAMES) == {
        "fan2018-fig1", "fan2018-fig2", "fan2018-fig3", "fan2018-table1",
        "lee2016-fig2b", "lee2016-fig3", "lee2016-fig4a", "lee2016-fig4b",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_form_runs(name, tmp_path):
    if name == "fan2018-fig2":
        pytest.importorskip("jax")
    said = []
    result = find(name).function(Context(True, tmp_path, said.append))
    written = write_result(result, find(name), tmp_path, quick=True)
    assert said
    assert {path.suffix for path in written} == {".png", ".csv", ".json"}
    claims = json.loads((tmp_path / f"{name}.json").read_text())["claims"]
    assert len(claims) >= 2
    # at least one statement of each paper's figure was judged, and holds
    assert any(claim["holds"] for claim in claims)


def test_pendulum_is_one_of_rods():
    """The period of one rod of 1 m: small swings of a physical pendulum."""
    from leastaction import mass_matrix

    assert abs(mass_matrix(pendulum(1), [0.0])[0, 0] - 1 / 3) < 1e-15  # measured 0
    assert pendulum(3).joint_names == ("hinge1", "hinge2", "hinge3")


def test_helpers():
    q, v = starts(200, 3, 0.5, 0.1)
    assert q.shape == (200, 3)
    assert 0.45 < np.abs(q).max() <= 0.5
    assert 0.09 < np.abs(v).max() <= 0.1
    assert abs(slope([1.0, 2.0, 4.0], [3.0, 12.0, 48.0]) - 2.0) < 1e-12  # measured 4e-16
    x, y = columns([{"a": 1, "b": 2, "c": "x"}, {"a": 3, "b": 4, "c": "y"}], "a", "b", c="y")
    assert x.tolist() == [3.0]
    assert y.tolist() == [4.0]
