"""Experiments of Bruedigam et al. 2020 and 2023 on robustness and speed, and the GGL method they compare with."""

from __future__ import annotations

import json

import numpy as np
import pytest

from leastaction.comparators import ggl
from leastaction.papers import bruedigam2023_fig11
from leastaction.papers.registry import Context, find
from leastaction.papers.writing import write_result


def verdicts(name, tmp_path):
    """Run the quick form and write it; the verdicts by text, and the result."""
    said = []
    result = find(name).function(Context(True, tmp_path, said.append))
    write_result(result, find(name), tmp_path, quick=True)
    assert said
    claims = json.loads((tmp_path / f"{name}.json").read_text())["claims"]
    return {claim["text"]: claim["holds"] for claim in claims}, result


def failing(verdict):
    """Texts of the claims that do not hold, up to their colon."""
    return [text.partition(":")[0] for text, holds in verdict.items() if not holds]


def windows_angle(t, steps=2000):
    """Angle of the rods of the double four-bar linkage after a time, by RK4 on 3 a'' = 3.5 g sin a."""
    y, h = np.array([0.0, 1.0]), t / steps

    def rate(y):
        return np.array([y[1], 3.5 * 9.81 / 3 * np.sin(y[0])])

    for _ in range(steps):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3))
    return y[0]


def test_ggl_is_of_first_order_and_keeps_both_kinds_of_constraints():
    system, q, v = ggl.windows(2, 1.0, 1.0, 9.81)
    exact = windows_angle(0.5)
    errors = []
    for dt in (0.01, 0.005):
        run = ggl.run(system, q, v, dt, round(0.5 / dt))
        assert run.failure == ""
        assert run.position.max() < 1e-9  # measured 8e-11
        # rates are kept where the velocity leads, not quite at the end of a step
        assert run.velocity.max() < 20 * dt**2  # measured 8e-4 and 1e-4
        # the start is symmetric, and the angle better than the order
        assert abs(np.arctan2(run.q[-1, 2], run.q[-1, 3]) - exact) < dt**2  # measured 2.7e-5 and 6.5e-6
        total = np.sum(ggl.energy(system, run), axis=0)
        errors.append(np.abs(total - total[0]).max())
    assert 1.8 < errors[0] / errors[1] < 2.3  # measured 2.0
    assert errors[1] < 0.2  # measured 0.16


def test_ggl_says_where_it_stops():
    system, q, v = ggl.windows(1, 1.0, 1.0, 9.81)
    run = ggl.run(system, q, v, 0.01, 5, most=1)
    assert run.failure.startswith("step 0 ")
    assert len(run.q) == 1


def test_time_of_half_a_swing():
    # K(1/2) = 1.8540746773013719 (Abramowitz and Stegun, table 17.1)
    assert bruedigam2023_fig11.half_swing(0.5) == pytest.approx(
        2 * 1.8540746773013719 / np.sqrt(1.5 * 9.81 / 0.25), rel=1e-14
    )


@pytest.mark.slow
def test_double_four_bar(tmp_path):
    verdict, result = verdicts("bruedigam2023-fig12", tmp_path)
    # the factor of the times is not judged here
    bad = [text for text in failing(verdict) if "faster" not in text]
    assert bad == ["(b) increasing energy error of GGL", "(c) GGL's is the smaller one"]
    errors = [abs(row["error (J)"]) for row in result.tables[""] if (row["dt"], row["method"]) == (0.01, "maximal")]
    assert max(errors) < 0.05  # measured 0.041


@pytest.mark.slow
def test_half_swings_of_three_scales(tmp_path):
    verdict, result = verdicts("bruedigam2023-fig11", tmp_path)
    assert failing(verdict) == ["(a) more iterations for smaller steps"]
    assert not [row for row in result.tables[""] if row["stopped"]]
    assert max(row["error (rad)"] for row in result.tables[""] if row["steps"] == 1000) < 2e-8  # measured 1.1e-8


@pytest.mark.slow
def test_times_of_chains(tmp_path):
    verdict, result = verdicts("bruedigam2020-fig5", tmp_path)
    # times are not judged here; every chain of up to 20 links runs
    assert [verdict[f"({panel}) 1000 steps of every chain"] for panel in "ab"] == [True, True]
    assert len(result.tables[""]) == 2 * 2 * 4 * 2


@pytest.mark.slow
def test_segments(tmp_path):
    pytest.importorskip("mujoco")
    verdict, result = verdicts("bruedigam2020-fig6", tmp_path)
    assert [text for text in failing(verdict) if "exponent" not in text and "fully linear" not in text] == []
    ours = [row for row in result.tables[""] if row["method"] == "maximal"]
    assert [row["segments"] for row in ours] == [1, 2, 4, 8]
    assert max(row["largest gap (m)"] for row in ours) < 1e-10  # measured 7e-12


@pytest.mark.slow
def test_ladders_nets_and_crystals(tmp_path):
    verdict, result = verdicts("bruedigam2023-fig9", tmp_path)
    # times are not judged here, but the solutions and the sizes are
    assert verdict["(b-d) largest relative difference of the solutions"]
    sizes = {(row["graph"], row["nodes"]): row["fill-in blocks"] for row in result.tables[""]}
    assert sizes["ladder", 64] == 62
    assert ("crystal", 216) in sizes


@pytest.mark.slow
def test_exoskeleton(tmp_path):
    verdict, result = verdicts("bruedigam2023-fig14", tmp_path)
    assert failing(verdict) == []
    torque = {(row["patient"], row["scale"]): row["largest elbow torque (N m)"] for row in result.tables[""]}
    assert torque["healthy", 1.0] == pytest.approx(4.70, abs=0.01)  # measured 4.696
    assert torque["spastic", 1.0] == pytest.approx(6.60, abs=0.01)  # measured 6.599


@pytest.mark.slow
def test_quadruped_learns(tmp_path):
    verdict, result = verdicts("bruedigam2023-fig13", tmp_path)
    # distance and velocity are not judged in the quick form
    assert list(verdict.values()) == [None, None, True, True, True]
    rows = result.tables[""]
    assert len(rows) == 11
    assert [row["steps"] for row in rows] == [2000] * 11
    assert abs(rows[0]["distance (m)"]) < 0.01  # measured -0.0018, standing
