"""Pictures of runs: which panels, which curves, and files whole or not at all."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import leastaction as la
from leastaction.plot import LARGEST_LEGEND, plot_comparison, plot_run


def run_of(name, q=None, v=None, **options):
    model = la.models.by_name(name).build()
    return la.simulate(model, model.state(q, v), **{"method": "rk4", "dt": 0.002, "duration": 0.1, **options})


def panels(figure):
    """Axes by their titles."""
    return {axes.get_title(loc="left"): axes for axes in figure.axes}


def labels(axes):
    legend = axes.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def test_panels_of_a_pendulum():
    run = run_of("pendulum", {"hinge": 1.0})
    found = panels(plot_run(run))
    assert list(found) == ["Energy drift", "Energy", "Angles", "Angular velocities"]
    assert found["Angles"].get_ylabel() == "angle  (rad)"
    assert labels(found["Energy"]) == ["kinetic", "potential", "total"]
    assert labels(found["Angles"]) == ["hinge"]

    # the curves are the run
    (line,) = found["Angles"].lines
    assert np.array_equal(line.get_xdata(), run.t)
    assert np.array_equal(line.get_ydata(), run.q[:, 0])
    drift = found["Energy drift"].lines[0].get_ydata()
    assert np.array_equal(drift, run.energy.total - run.energy.total[0])


def test_units_have_their_own_panels_and_loops_a_logarithmic_axis():
    found = panels(plot_run(run_of("slider_crank", {"crank_hinge": 0.0})))
    assert labels(found["Displacements"]) == ["slide"]
    assert labels(found["Angles"]) == ["crank_hinge", "rod_hinge"]
    assert found["Constraint error"].get_ylabel() == "largest gap  (m or rad)"
    found = panels(plot_run(run_of("four_bar")))
    assert found["Constraint error"].get_yscale() == "log"


def test_a_gap_that_is_zero_everywhere():
    # at rest on the loop nothing moves, so there is no number to show on a logarithmic axis
    run = run_of("four_bar", duration=0.0)
    run.__dict__["constraint_error"] = np.zeros(1)
    axes = panels(plot_run(run))["Constraint error"]
    assert axes.get_yscale() == "linear"
    assert axes.texts[0].get_text() == "zero everywhere"


def test_a_ball_is_shown_by_its_angle():
    # constant spin about its own axis: the angle grows to pi and comes back
    run = run_of("spherical_pendulum", v={"pivot": (0, 0, 4.0)}, dt=0.01, duration=1.0)
    found = panels(plot_run(run))
    angle = found["Angles"].lines[0].get_ydata()
    expected = np.abs((4.0 * run.t + np.pi) % (2 * np.pi) - np.pi)
    assert np.abs(angle - expected).max() < 1e-9  # measured 2e-15
    assert labels(found["Angular velocities"]) == ["pivot.wx", "pivot.wy", "pivot.wz"]


def test_momentum_of_what_floats():
    found = panels(plot_run(run_of("free_body", v={"root": (1, 2, 3, 0, 0, 1)})))
    assert labels(found["Linear momentum"]) == ["x", "y", "z"]
    assert found["Angular momentum about the origin"].get_ylabel() == "momentum  (N m s)"
    assert "Linear momentum" not in panels(plot_run(run_of("pendulum")))


def test_many_curves_have_no_legend_but_a_word():
    found = panels(plot_run(run_of(f"chain:{LARGEST_LEGEND + 1}")))
    axes = found["Angles"]
    assert len(axes.lines) == LARGEST_LEGEND + 1
    assert axes.get_legend() is None
    assert axes.get_title(loc="right").startswith(f"{LARGEST_LEGEND + 1} curves")
    assert len({line.get_color() for line in axes.lines}) == LARGEST_LEGEND + 1
    assert len(labels(panels(plot_run(run_of(f"chain:{LARGEST_LEGEND}")))["Angles"])) == LARGEST_LEGEND


@pytest.mark.parametrize("name", ["chain:12", "chain:4:spherical", "four_bar", "quadruped", "cart_pole"])
def test_nothing_overlaps(name):
    figure = plot_run(run_of(name, dt=0.001, duration=0.02))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    # no panel, with its labels and legend, touches another one or leaves the picture
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    for i, a in enumerate(boxes):
        assert 0 <= a.x0 < a.x1 <= figure.bbox.x1
        assert 0 <= a.y0 < a.y1 <= figure.bbox.y1
        assert not any(a.overlaps(b) for b in boxes[i + 1 :])
    # no legend covers its title or the curves
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            box = legend.get_window_extent(renderer)
            assert not box.overlaps(axes._left_title.get_window_extent(renderer))
            inside = axes.get_window_extent(renderer)
            assert box.x0 >= inside.x1 or box.y0 >= inside.y1 - 4.0


def test_comparison():
    runs = [run_of("four_bar", method=method) for method in ("rk4", "euler")]
    figure = plot_comparison(runs)
    found = panels(figure)
    assert list(found) == ["Energy drift", "Constraint error"]
    assert labels(found["Energy drift"]) == ["rk4, dt = 0.002 s", "euler, dt = 0.002 s"]
    assert all(axes.get_yscale() == "log" for axes in found.values())
    assert list(panels(plot_comparison([run_of("pendulum", {"hinge": 1.0})]))) == ["Energy drift"]


def test_comparison_of_runs_of_different_length():
    runs = [run_of("pendulum", {"hinge": 1.0}, duration=length) for length in (0.05, 0.2)]
    axes = panels(plot_comparison(runs, labels=["short", "long"]))["Energy drift"]
    assert [len(line.get_xdata()) for line in axes.lines] == [len(run.t) for run in runs]
    assert axes.get_xlim() == (0.0, 0.2)


def test_comparison_refuses_what_makes_no_sense():
    with pytest.raises(la.ModelError, match="no runs"):
        plot_comparison([])
    with pytest.raises(la.ModelError, match="expected 1 labels"):
        plot_comparison([run_of("pendulum")], labels=["a", "b"])


class TestFiles:
    @pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
    def test_formats(self, tmp_path, ending, start):
        path = tmp_path / f"run.{ending}"
        run_of("pendulum").plot(path)
        assert path.read_bytes().startswith(start)
        assert list(tmp_path.iterdir()) == [path]

    def test_unknown_ending(self, tmp_path):
        with pytest.raises(la.ModelError, match=r"unknown ending '\.bmpp'"):
            run_of("pendulum").plot(tmp_path / "run.bmpp")
        assert list(tmp_path.iterdir()) == []

    def test_folder_that_does_not_exist(self, tmp_path):
        with pytest.raises(la.ModelError, match="does not exist"):
            run_of("pendulum").plot(tmp_path / "no" / "run.png")

    def test_names_are_no_mathematics(self, tmp_path):
        m = la.Mechanism("$\\broken_name")
        m.add_body("b", mass=1.0)
        m.add_joint("_$x$", "prismatic", parent="world", child="b")
        run = la.simulate(m.build(), dt=0.01, duration=0.01)
        figure = run.plot(tmp_path / "run.png")
        assert labels(panels(figure)["Displacements"]) == [" _\\$x\\$"]


def test_a_run_of_one_row():
    figure = plot_run(run_of("pendulum", {"hinge": 1.0}, duration=0.0))
    FigureCanvasAgg(figure).draw()
    assert len(figure.axes[0].lines[0].get_xdata()) == 1


def test_settings_of_the_user_are_left_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    figure = plot_run(run_of("pendulum"))
    assert dict(matplotlib.rcParams) == before
    assert figure.axes[0].spines["top"].get_visible() is False


def test_no_pyplot():
    code = """
import sys
import leastaction as la
la.simulate(la.models.pendulum().build(), dt=0.01, duration=0.02).plot()
print("matplotlib.pyplot" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr


def test_missing_extra_is_named(monkeypatch):
    run = run_of("pendulum")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(la.ModelError, match=r"leastaction\[plot\]"):
        run.plot()


def test_far_below_rounding_the_logarithmic_axis_ends():
    run = run_of("four_bar", duration=0.01)
    run.__dict__["constraint_error"] = np.geomspace(1e-59, 1e-12, len(run.t))
    axes = panels(plot_run(run))["Constraint error"]
    shown = axes.lines[0].get_ydata()
    assert shown.min() == 1e-18
    assert shown.max() == pytest.approx(1e-12)
    assert axes.get_ylim()[0] > 1e-19
