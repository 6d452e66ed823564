"""Iterations of the root finder: in every row of a run, in its file, in its report and in its picture."""

import numpy as np
import pytest

import leastaction as la
from leastaction.errors import ModelError
from leastaction.plot import plot_run
from leastaction.run.report import Report

METHODS = ["galerkin:2", "maximal", "bdf:2", "linearly-implicit-euler"]


@pytest.fixture(scope="module")
def start():
    model = la.models.chain(2).build()
    return model, model.state([1.0, 0.5], [3.0, -2.0])


def test_rows_sum_up_the_steps_and_survive_resuming_and_files(start, tmp_path):
    model, x0 = start
    for method in METHODS:
        fine = la.simulate(model, x0, dt=0.02, duration=1.0, method=method)
        assert fine.iterations.dtype == np.int64
        assert fine.iterations[0] == 0
        assert fine.iterations[1:].min() >= 1
        assert fine.iterations.sum() == fine.report.counters["iterations"]
        assert fine.iterations.max() == fine.report.most_iterations
        # every seventh row: sums of the fine ones, the last of a single step
        coarse = la.simulate(model, x0, dt=0.02, duration=1.0, method=method, save_every=7)
        assert np.array_equal(coarse.iterations, np.diff(np.cumsum(fine.iterations)[coarse.step_numbers], prepend=0))
        # a run that was cut between rows, written, read and continued
        la.simulate(model, x0, dt=0.02, duration=0.5, method=method, save_every=7).save(tmp_path / "a.npz")
        whole = la.resume(tmp_path / "a.npz", 0.5)
        assert np.array_equal(whole.iterations, coarse.iterations)
        assert whole.report.most_iterations == coarse.report.most_iterations


def test_under_step_control(start):
    model, x0 = start
    run = la.simulate(model, x0, dt=la.ReversibleSteps(1e-3, 0.1), duration=1.0, method="galerkin:2", save_every=3)
    assert len(run.iterations) == len(run.q)
    assert run.iterations.sum() == run.report.counters["iterations"]


def test_methods_without_a_root_finder_have_none(start):
    model, x0 = start
    run = la.simulate(model, x0, dt=0.02, duration=0.1, method="rk4")
    assert run.iterations is None
    assert "iterations" not in run.to_xarray()
    assert "Iterations" not in [axes.get_title(loc="left") for axes in plot_run(run).axes]
    with pytest.raises(ModelError, match="rk4 has no root finder"):
        plot_run(run, panels=["iterations"])


def test_files_without_iterations_are_read_and_wrong_ones_refused(start, tmp_path):
    model, x0 = start
    run = la.simulate(model, x0, dt=0.02, duration=0.1, method="galerkin:2")
    run.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as file:
        arrays = dict(file)
    # an older file, which also goes on without them
    numbers = arrays.pop("iterations")
    np.savez(tmp_path / "old.npz", **arrays)
    assert la.Trajectory.load(tmp_path / "old.npz").iterations is None
    assert la.resume(tmp_path / "old.npz", 0.1).iterations is None
    for wrong in (numbers[:-1], -numbers, numbers.astype(float)):
        np.savez(tmp_path / "bad.npz", **arrays, iterations=wrong)
        with pytest.raises(ModelError, match=r"bad\.npz: iterations must be 6 whole numbers"):
            la.Trajectory.load(tmp_path / "bad.npz")


def test_the_panel_and_the_report(start):
    model, x0 = start
    run = la.simulate(model, x0, dt=0.02, duration=1.0, method="galerkin:2", save_every=7)
    axes = {axes.get_title(loc="left"): axes for axes in plot_run(run).axes}["Iterations, mean over 7 steps"]
    (line,) = axes.lines
    mean = run.iterations[1:] / np.array([7] * 7 + [1])
    assert np.array_equal(line.get_ydata()[1:], mean)
    assert axes.get_ylim()[0] == 0.0
    assert run.to_xarray()["iterations"].values.sum() == run.iterations.sum()
    total, most = run.report.counters["iterations"], run.report.most_iterations
    assert f"{total} ({total / 50:.3g} in a step, at most {most})" in str(run.report)
    assert Report.from_dict(run.report.to_dict()) == run.report
