"""Several runs of one mechanism in one figure: what each method keeps, how far apart they are, what an error costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ModelError, UnsupportedError
from leastaction.model.checks import FloatArray
from leastaction.plot import (
    COLUMN_WIDTH,
    DASHES,
    ROW_HEIGHT,
    Curve,
    Panel,
    colour_of,
    draw_panel,
    drift_of,
    gap_panel,
    plain,
    save_figure,
    styled,
)

if TYPE_CHECKING:
    from leastaction.run.trajectory import Trajectory

MARKERS = "osD^vP*X"

# errors of this size and below are rounding
_FLOOR = 1e-17


def compare(
    runs: Sequence[Trajectory],
    path: str | Path | None = None,
    *,
    labels: Sequence[str] = (),
    reference: Trajectory | None = None,
) -> Any:
    """A figure that lays runs of one mechanism over each other and shows what their precision cost.

    Energy drift and, with loops, their gaps over time; with a reference the distance to it; and work against precision:
    the wall time of each run over its error, with a line through the runs of one method. The error is the largest
    distance to the reference, or without one the largest energy drift.

    Args:
        runs: the runs, from the same start.
        path: a .png, .pdf or .svg file to write, or None.
        labels: one for each run; by default method and step.
        reference: a run that is much more accurate, with rows at some of the same times.

    Returns:
        The ``matplotlib.figure.Figure``.
    """
    several, names = check_runs(runs, labels, reference)
    # curves over time, one for each run, sizes on logarithmic axes
    drifts = [np.abs(drift_of(run)) for run in several]
    panels = [Panel("Energy drift", "|E \N{MINUS SIGN} E(0)|  (J)", _curves(names, drifts), log=True)]
    times = [[run.t for run in several]]
    if any(run.model.is_closed for run in several):
        panels.append(gap_panel(_curves(names, [run.constraint_error for run in several])))
        times.append(times[0])
    errors, axis = [float(drift.max()) for drift in drifts], "largest energy drift  (J)"
    if reference is not None:
        far = [distance(run, reference) for run in several]
        panels.append(
            Panel("Distance to the reference", "distance  (m)", _curves(names, [d for _, d in far]), log=True)
        )
        times.append([t for t, _ in far])
        errors, axis = [float(d.max()) for _, d in far], "largest distance to the reference  (m)"
    figure = _figure(panels, times, several, errors, axis)
    if path is not None:
        save_figure(figure, path)
    return figure


def check_runs(
    runs: Sequence[Trajectory], labels: Sequence[str], reference: Trajectory | None
) -> tuple[list[Trajectory], list[str]]:
    """The runs and their labels, checked."""
    from leastaction.run.trajectory import Trajectory

    several: list[Trajectory] = [runs] if isinstance(runs, Trajectory) else list(runs)
    if not several:
        raise ModelError("compare: there are no runs.")
    for run in [*several, *([] if reference is None else [reference])]:
        if not isinstance(run, Trajectory):
            raise ModelError(f"compare: expected a run from simulate, got {type(run).__name__}.")
        if run.model.body_names != several[0].model.body_names:
            raise ModelError(
                f"compare: '{run.model.name}' has other bodies than '{several[0].model.name}'; compare runs of one "
                "mechanism."
            )
    names = list(labels) or [f"{run.method.label}, dt = {run.clock.words}" for run in several]
    if len(names) != len(several):
        raise ModelError(f"compare: expected {len(several)} labels, got {len(names)}.")
    try:
        for run in several:
            drift_of(run)
    except UnsupportedError as error:
        raise UnsupportedError(f"compare: {error}") from error
    return several, names


def distance(run: Trajectory, reference: Trajectory) -> tuple[FloatArray, FloatArray]:
    """Times (rows,) that both runs have, and the largest distance (rows,) between the same body's link frames."""
    near = np.clip(np.searchsorted(reference.t, run.t - 1e-9), 0, len(reference.t) - 1)
    rows = np.flatnonzero(np.abs(reference.t[near] - run.t) <= 1e-9 * np.maximum(1.0, np.abs(run.t)))
    # the first state is the same for all
    if len(rows) < 2:
        raise ModelError(
            f"compare: the run with dt = {run.clock.words} and the reference have no times in common after the start; "
            "choose steps of which one is a multiple of the other."
        )
    names = list(run.model.body_names)
    ours = quantities.frame_poses(run.model, run.q[rows], names)[..., :3, 3]
    theirs = quantities.frame_poses(reference.model, reference.q[near[rows]], names)[..., :3, 3]
    return run.t[rows], np.linalg.norm(ours - theirs, axis=2).max(axis=1)


def _curves(names: Sequence[str], several: Sequence[FloatArray]) -> list[Curve]:
    return [Curve(name, y) for name, y in zip(names, several, strict=True)]


def _figure(
    panels: list[Panel], times: list[list[FloatArray]], runs: list[Trajectory], errors: list[float], axis: str
) -> Any:
    """The panels over time, and the diagram of work against precision, in two columns."""
    rows = -(-(len(panels) + 1) // 2)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, 2, squeeze=False).flat
        figure.suptitle(plain(f"{runs[0].model.name}, {runs[0].t[-1] - runs[0].t[0]:g} s"), fontsize=10.5)
        for axes, panel, t in zip(grid, panels, times, strict=False):
            draw_panel(axes, panel, t, _styles(runs), "colours as under work and precision")
            axes.set_xlabel("time  (s)")
        _work_precision(grid[len(panels)], runs, errors, axis)
        for axes in grid[len(panels) + 1 :]:
            axes.remove()

    return styled(draw, 2 * COLUMN_WIDTH, (ROW_HEIGHT + 0.35) * rows + 0.4)


def _styles(runs: list[Trajectory]) -> list[dict[str, Any]]:
    """One colour for each method, other dashes for each further run of it."""
    methods = list(dict.fromkeys(run.method.label for run in runs))
    out: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for run in runs:
        number = seen[run.method.label] = seen.get(run.method.label, -1) + 1
        colour = colour_of(methods.index(run.method.label))["color"]
        out.append({"color": colour, "linestyle": DASHES[number % len(DASHES)], "linewidth": 1.0})
    return out


def _work_precision(axes: Any, runs: list[Trajectory], errors: list[float], axis: str) -> None:
    """Wall time over error, with a line through the runs of one method in the order of their steps."""
    methods = list(dict.fromkeys(run.method.label for run in runs))
    for index, method in enumerate(methods):
        mine = [k for k, run in enumerate(runs) if run.method.label == method]
        mine.sort(key=lambda k: np.mean(runs[k].clock.dt))
        x = [max(errors[k], _FLOOR) for k in mine]
        y = [max(runs[k].report.wall_time, 1e-6) for k in mine]
        style = {**colour_of(index), "marker": MARKERS[index % len(MARKERS)], "markersize": 5}
        axes.plot(x, y, label=plain(method), **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title("Work and precision")
    axes.set_xlabel(axis)
    axes.set_ylabel("wall time  (s)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0.0, handlelength=1.6)
