"""Pictures of runs with matplotlib (extra ``plot``). No pyplot, so nothing of the user's session is touched.

``plot_run`` shows one run, ``plot_comparison`` several. Colours are those of Okabe and Ito (Color Universal Design,
2008), which people with every kind of colour vision can tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.files import write_beside
from leastaction.model.joints import layout
from leastaction.run.export import coordinate_units, velocity_units

if TYPE_CHECKING:
    from leastaction.run.trajectory import Trajectory

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", ":", "-.")
LARGEST_LEGEND = 12

# what is smaller is drawn here on logarithmic axes
_LOG_FLOOR = 1e-18

# black on white whatever the user's own defaults are; text in vector files stays text
_STYLE = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.7,
    "axes.formatter.use_mathtext": True,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "agg.path.chunksize": 20000,
}

# inches, dots per inch, and how many letters the line of a title holds
COLUMN_WIDTH, ROW_HEIGHT, _DPI, _TITLE_LETTERS = 5.6, 2.35, 150, 76


# with a minus sign, which is longer than a hyphen
_DRIFT = "E \N{MINUS SIGN} E(0)"


class Curve(NamedTuple):
    """One line of a panel."""

    label: str
    y: FloatArray


class Panel(NamedTuple):
    """One pair of axes: a title, the label of its vertical axis, its curves, whether it is logarithmic or from 0 on."""

    title: str
    ylabel: str
    curves: list[Curve]
    log: bool = False
    from_zero: bool = False


def plot_run(run: Trajectory, path: str | Path | None = None, panels: Sequence[str] | None = None) -> Any:
    """A figure of a run: energy, joint motion, gaps of the loops, momentum of a floating mechanism, iterations.

    The title has the mean number of iterations in a step, where the method iterates.

    Args:
        run: the run.
        path: a .png, .pdf or .svg file to write, or None.
        panels: groups of panels to draw instead, of ``PANELS``: "energy", "joints", "momentum", "constraints",
            "iterations".

    Returns:
        The ``matplotlib.figure.Figure``.
    """
    floats = any(view.kind == "free" and view.joint.parent == "world" for view in run.model.joints.values())
    holds = run.model.is_closed
    usual = ["energy", "joints", *(["momentum"] if floats else []), *(["constraints"] if holds else [])]
    usual += ["iterations"] if run.iterations is not None and run.steps else []
    chosen = usual if panels is None else [panels] if isinstance(panels, str) else list(panels)
    unknown = [name for name in chosen if name not in PANELS]
    if unknown or not chosen:
        raise ModelError(f"plot: there are the panels {', '.join(PANELS)}; got {panels!r}.")
    title = f"{run.model.name}, {run.method.label}, dt = {run.clock.words}"
    if run.steps and "iterations" in run.report.counters:
        title += f", {run.report.counters['iterations'] / run.steps:.2g} iterations in a step"
    return _figure([panel for name in chosen for panel in PANELS[name](run)], [run.t], title, path)


def plot_comparison(runs: Sequence[Trajectory], path: str | Path | None = None, labels: Sequence[str] = ()) -> Any:
    """A figure that lays the energy drift and the gaps of several runs of one mechanism over each other.

    Args:
        runs: the runs.
        path: a .png, .pdf or .svg file to write, or None.
        labels: one for each run; by default method and step.

    Returns:
        The ``matplotlib.figure.Figure``.
    """
    if not runs:
        raise ModelError("plot_comparison: there are no runs.")
    names = list(labels) or [f"{run.method.label}, dt = {run.clock.words}" for run in runs]
    if len(names) != len(runs):
        raise ModelError(f"plot_comparison: expected {len(runs)} labels, got {len(names)}.")

    # sizes on logarithmic axes: methods differ by many powers of ten
    drift = [Curve(name, np.abs(drift_of(run))) for name, run in zip(names, runs, strict=True)]
    panels = [Panel("Energy drift", f"|{_DRIFT}|  (J)", drift, log=True)]
    if any(run.model.is_closed for run in runs):
        panels.append(gap_panel([Curve(name, run.constraint_error) for name, run in zip(names, runs, strict=True)]))
    return _figure(panels, [run.t for run in runs], runs[0].model.name, path)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure in the format of the file's ending, whole or not at all."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    known = sorted(figure.canvas.get_supported_filetypes())
    if kind not in known:
        raise ModelError(f"{path}: unknown ending '{path.suffix}' of a picture; there are {', '.join(known)}.")
    write_beside(path, lambda stream: figure.savefig(stream, format=kind, dpi=_DPI))


def styled(draw: Callable[[Any], None], width: float, height: float) -> Any:
    """A figure (inches) on which ``draw`` was called, in the style of this module."""
    matplotlib = _matplotlib()
    from matplotlib.figure import Figure

    # the styles of the user do not reach in, nor ours out
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        draw(figure)
    return figure


def colour_of(index: int) -> dict[str, Any]:
    """Colour and dashes of the curve with this number."""
    return {"color": PALETTE[index % len(PALETTE)], "linestyle": DASHES[index // len(PALETTE) % len(DASHES)]}


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise ModelError("pictures need matplotlib; install the extra: pip install 'leastaction[plot]'.") from error
    return matplotlib


# --- panels ------------------------------------------------------------------------------------------------------
def drift_of(run: Trajectory) -> FloatArray:
    """Total energy less that of the first row, joules."""
    total = run.energy.total
    return np.asarray(total - total[0])


def _energy_panels(run: Trajectory) -> list[Panel]:
    """Change of the total energy, and its parts."""
    parts = [
        Curve("kinetic", run.energy.kinetic),
        Curve("potential", run.energy.potential),
        Curve("total", run.energy.total),
    ]
    return [
        Panel("Energy drift", f"{_DRIFT}  (J)", [Curve("", drift_of(run))]),
        Panel("Energy", "energy  (J)", parts),
    ]


def _joint_panels(run: Trajectory) -> list[Panel]:
    """Positions and velocities, one panel for each unit."""
    groups: dict[tuple[str, str], list[Curve]] = {
        ("Angles", "angle  (rad)"): [],
        ("Angular velocities", "angular velocity  (rad/s)"): [],
        ("Displacements", "displacement  (m)"): [],
        ("Linear velocities", "velocity  (m/s)"): [],
    }
    angles, rates, displacements, speeds = groups.values()
    for view in run.model.joints.values():
        joint = view.joint
        q, v = run.q[:, view.q], run.v[:, view.v]
        balls = [piece.q for piece in layout(joint) if piece.factor == "ball"]
        # screws as they are
        for k, unit in enumerate(coordinate_units(joint)):
            if unit != "1":
                curve = Curve(_label(joint.name, joint.coordinate_names, k), q[:, k])
                (angles if unit == "rad" else displacements).append(curve)
        # a rotation by its angle
        for ball in balls:
            turned = 2.0 * np.arctan2(np.linalg.norm(q[:, ball][:, 1:], axis=1), np.abs(q[:, ball][:, 0]))
            angles.append(Curve(f"{joint.name} (angle)", turned))
        for k, unit in enumerate(velocity_units(joint)):
            curve = Curve(_label(joint.name, joint.velocity_names, k), v[:, k])
            (rates if unit == "rad/s" else speeds).append(curve)
    return [Panel(title, label, curves) for (title, label), curves in groups.items() if curves]


def _label(joint: str, names: Sequence[str], index: int) -> str:
    """Name of a curve: the joint alone where it has one coordinate."""
    return joint if len(names) == 1 else f"{joint}.{names[index]}"


def gap_panel(curves: list[Curve]) -> Panel:
    """Largest gap of the loops on a logarithmic axis."""
    return Panel("Constraint error", "largest gap  (m or rad)", curves, log=True)


def _momentum_panels(run: Trajectory) -> list[Panel]:
    """Momentum of everything that moves, by world axes."""
    linear = [Curve(axis, run.momentum.linear[:, k]) for k, axis in enumerate("xyz")]
    angular = [Curve(axis, run.momentum.angular[:, k]) for k, axis in enumerate("xyz")]
    return [
        Panel("Linear momentum", "momentum  (N s)", linear),
        Panel("Angular momentum about the origin", "momentum  (N m s)", angular),
    ]


def _iteration_panels(run: Trajectory) -> list[Panel]:
    """Iterations of a step, as a mean over the steps since the row before."""
    if run.iterations is None:
        raise ModelError(
            f"plot: there are no iterations to draw: {run.method.label} has no root finder, or the file of the run is "
            "older than they are."
        )
    mean = np.full(len(run.q), np.nan)
    mean[1:] = run.iterations[1:] / np.diff(run.step_numbers)
    title = "Iterations" if run.every == 1 else f"Iterations, mean over {run.every} steps"
    return [Panel(title, "iterations in a step", [Curve("", mean)], from_zero=True)]


PANELS: dict[str, Callable[[Any], list[Panel]]] = {
    "energy": _energy_panels,
    "joints": _joint_panels,
    "momentum": _momentum_panels,
    "constraints": lambda run: [gap_panel([Curve("", run.constraint_error)])],
    "iterations": _iteration_panels,
}
"""Groups of panels by the names that ``plot_run`` takes."""


# --- drawing -----------------------------------------------------------------------------------------------------
def _figure(panels: list[Panel], times: list[FloatArray], title: str, path: str | Path | None) -> Any:
    """All panels in two columns, over one time axis."""
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
        figure.suptitle(plain(title), fontsize=10.5)
        for axes, panel in zip(grid.flat, panels, strict=False):
            draw_panel(axes, panel, times)
        # the lowest panel of each column carries the time axis
        for axes in grid.flat[len(panels) :]:
            axes.remove()
        for axes in grid.flat[max(len(panels) - columns, 0) : len(panels)]:
            axes.set_xlabel("time  (s)")
            axes.tick_params(labelbottom=True)

    figure = styled(draw, COLUMN_WIDTH * columns, ROW_HEIGHT * rows + 0.4)
    if path is not None:
        save_figure(figure, path)
    return figure


def draw_panel(
    axes: Any, panel: Panel, times: list[FloatArray], styles: Sequence[dict[str, Any]] = (), note: str = ""
) -> None:
    """One panel: its curves, its axis, its legend; ``styles`` of the curves and a note for many of them, if given."""
    many = len(panel.curves) > LARGEST_LEGEND
    for index, curve in enumerate(panel.curves):
        t = times[index] if len(times) > 1 else times[0]
        # too many to name: from dark to light in the order of the joints
        style = _gradient(index, len(panel.curves)) if many else colour_of(index)
        style = dict(styles[index]) if styles else style
        # far below rounding nothing is to be seen: such numbers would only stretch the axis
        y = np.where(curve.y > 0, np.maximum(curve.y, _LOG_FLOOR), np.nan) if panel.log else curve.y
        axes.plot(t, y, label=plain(curve.label), marker="." if len(t) == 1 else None, **style)
    axes.set_title(panel.title)
    axes.set_ylabel(panel.ylabel)
    first, last = min(t[0] for t in times), max(t[-1] for t in times)
    if last > first:
        axes.set_xlim(first, last)
    if panel.log:
        _log_axis(axes, panel)
    elif panel.from_zero:
        axes.set_ylim(bottom=0.0)
    if many:
        note = note or f"{len(panel.curves)} curves, in build order from dark to light"
        axes.set_title(note, loc="right", fontsize=7.5, color="#555555")
    elif any(curve.label for curve in panel.curves):
        _legend(axes, panel)


def _legend(axes: Any, panel: Panel) -> None:
    """The legend in the line of the title where it fits, else on the right."""
    letters = len(panel.title) + sum(len(curve.label) + 6 for curve in panel.curves)
    if letters <= _TITLE_LETTERS:
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 0.99), "ncols": len(panel.curves), "columnspacing": 1.0}
    else:
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.02), "labelspacing": 0.25}
    axes.legend(borderaxespad=0.0, handlelength=1.6, handletextpad=0.5, **place)


def _log_axis(axes: Any, panel: Panel) -> None:
    """A logarithmic axis; words where there is nothing above zero to show."""
    if any((curve.y > 0).any() for curve in panel.curves):
        axes.set_yscale("log")
    else:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "zero everywhere", transform=axes.transAxes, ha="center", va="center", color="#555555")


def _gradient(index: int, count: int) -> dict[str, Any]:
    """Colour on the way from dark to light."""
    import matplotlib

    return {"color": matplotlib.colormaps["viridis"](0.92 * index / max(count - 1, 1)), "linewidth": 0.8}


def plain(text: str) -> str:
    """Text in which matplotlib finds no mathematics, and which begins with no underscore (it would hide it)."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
