"""Comparing runs: curves, distances to a reference, work against precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import leastaction as la
from leastaction.run.compare import distance

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"


def swing(method, dt, duration=1.0, name="double_pendulum", q=(1.0, 0.5)):
    model = la.models.by_name(name).build()
    return la.simulate(model, model.state(q=list(q)), dt=dt, duration=duration, method=method)


@pytest.fixture(scope="module")
def runs():
    return [swing(method, dt) for method in ("galerkin:4", "rk4", "rk2") for dt in (0.02, 0.01, 0.005)]


@pytest.fixture(scope="module")
def reference():
    return swing("adaptive:1e-12", 0.005)


def panels(figure):
    return {axes.get_title(loc="left") or axes.get_title(): axes for axes in figure.axes}


def test_panels(runs, reference):
    figure = la.compare(runs, reference=reference)
    found = panels(figure)
    assert list(found) == ["Energy drift", "Distance to the reference", "Work and precision"]
    assert len(found["Energy drift"].lines) == 9
    axes = found["Work and precision"]
    assert [line.get_label() for line in axes.lines] == ["galerkin:4", "rk4", "rk2"]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    # the errors of methods of order 4 and 2 over halved steps, the smallest step first
    for line, order in zip(axes.lines, (4, 4, 2), strict=True):
        slopes = np.diff(np.log2(line.get_xdata()))
        assert slopes == pytest.approx([order, order], abs=0.5)  # measured within 0.3
    # without a reference the error is the drift of the energy
    plain = panels(la.compare(runs))
    assert list(plain) == ["Energy drift", "Work and precision"]
    assert plain["Work and precision"].get_xlabel().startswith("largest energy drift")


def test_distance_to_itself_is_zero_and_times_are_matched(runs, reference):
    t, far = distance(runs[0], runs[0])
    assert far.max() == 0.0
    t, far = distance(runs[0], reference)
    assert t == pytest.approx(runs[0].t)
    tips = np.linalg.norm(runs[0].poses("bob2")[:, :3, 3] - reference.poses("bob2")[::4, :3, 3], axis=1)
    assert (far >= tips - 1e-15).all()


def test_loops_have_their_panel():
    model = la.models.four_bar().build()
    runs = [la.simulate(model, dt=0.01, duration=0.1, method=method) for method in ("galerkin:4", "rk4")]
    assert "Constraint error" in panels(la.compare(runs))


def test_nothing_overlaps_and_a_picture_is_written(runs, reference, tmp_path):
    path = tmp_path / "a.png"
    figure = la.compare(runs, path, reference=reference)
    assert path.read_bytes().startswith(b"\x89PNG")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    (SCREENSHOTS / "compare.png").write_bytes(path.read_bytes())
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    boxes = [axes.get_tightbbox(canvas.get_renderer()) for axes in figure.axes]
    for i, a in enumerate(boxes):
        assert 0 <= a.x0 < a.x1 <= figure.bbox.x1
        assert not any(a.overlaps(b) for b in boxes[i + 1 :])


def test_bad_input(runs):
    with pytest.raises(la.ModelError, match="no runs"):
        la.compare([])
    with pytest.raises(la.ModelError, match="expected a run"):
        la.compare(["run"])
    with pytest.raises(la.ModelError, match="expected 9 labels"):
        la.compare(runs, labels=["a"])
    with pytest.raises(la.ModelError, match="other bodies"):
        la.compare([runs[0], swing("rk4", 0.01, name="pendulum", q=(1.0,))])
    with pytest.raises(la.ModelError, match="no times in common"):
        la.compare(runs, reference=swing("rk4", 0.003, 0.009))


def test_panels_of_a_run_by_name(tmp_path):
    run = swing("galerkin:4", 0.01)
    figure = run.plot(tmp_path / "run.png", panels=["momentum"])
    assert list(panels(figure)) == ["Linear momentum", "Angular momentum about the origin"]
    assert "iterations in a step" in figure.get_suptitle()
    assert "iterations" not in swing("rk4", 0.01).plot().get_suptitle()
    with pytest.raises(la.ModelError, match="there are the panels energy, joints"):
        run.plot(panels=["colour"])
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    run.plot(SCREENSHOTS / "plot.png")
