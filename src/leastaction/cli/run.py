"""``leastaction run``: simulate a mechanism, print the report, write the run, its picture and its animation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from leastaction.cli.inputs import (
    Decorator,
    build_model,
    check_motion,
    mechanism_options,
    read_mechanism,
    read_settings,
)
from leastaction.cli.output import (
    PICTURES,
    check_output,
    check_viser,
    console,
    one_line,
    say_when_compiling,
    tell,
    tell_notes,
)
from leastaction.errors import ConvergenceError, ModelError

if TYPE_CHECKING:
    from leastaction.model.model import Model, State
    from leastaction.run.trajectory import Trajectory

# Rows of a run that need more memory than this are refused before they fill it.
_LARGEST_RUN = 4e9


def file_option(name: str, text: str) -> Decorator:
    """An option that names an output file."""
    return click.option(name, metavar="FILE", type=click.Path(path_type=Path), help=text)


@dataclass(frozen=True)
class Outputs:
    """What a run leaves and shows: files or None, and whether the viewer opens."""

    out: Path | None
    plot: Path | None
    html: Path | None
    view: bool

    def check(self) -> None:
        """Raise for what cannot be written or shown, before anything is simulated."""
        check_output(self.out, (".npz",), "--out")
        check_output(self.plot, PICTURES, "--plot")
        check_output(self.html, (".html", ".htm"), "--html")
        if self.view:
            check_viser("--view")


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of what a run leaves and shows, the same for every command that simulates."""
    options: list[Decorator] = [
        file_option("--out", "Write the run to this .npz file."),
        file_option("--plot", "Draw the run to this .png, .pdf or .svg file."),
        file_option("--html", "Write an animation to this .html file, which plays from disk."),
        click.option("--view", is_flag=True, help="Show the run in the live viewer of the browser, until Ctrl-C."),
        click.option(
            "--progress/--no-progress", default=None, help="Show a bar; by default if the error stream is a terminal."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command(short_help="Simulate a mechanism.")
@mechanism_options
@click.option(
    "--method",
    default=None,
    show_default="chosen by what the mechanism needs",
    help="euler, rk1, rk2, rk4, galerkin:2, galerkin:4 and so on, lie-trapezoid, maximal, hermite-simpson, adaptive or "
    "adaptive:1e-10.",
)
@click.option("--dt", default=0.001, show_default=True, type=float, help="Step in seconds.")
@click.option("--duration", default=5.0, show_default=True, type=float, help="Seconds, a whole number of steps.")
@click.option("--key", metavar="NAME", help="Start from this key frame of the file; --set changes it.")
@click.option(
    "--set",
    "positions",
    metavar="JOINT=VALUE",
    multiple=True,
    help="First position of a joint, in radians or metres; numbers separated by commas where it has several "
    "coordinates (a quaternion is w,x,y,z). May be repeated; the other joints start neutral.",
)
@click.option(
    "--set-velocity",
    "velocities",
    metavar="JOINT=VALUE",
    multiple=True,
    help="First velocity of a joint, in the same way; the other joints start at rest.",
)
@click.option("--project", is_flag=True, help="Move the first state to the nearest one that closes the loops.")
@click.option("--save-every", default=1, show_default=True, type=int, help="Keep every so many steps.")
@click.option(
    "--compare",
    metavar="METHOD,METHOD",
    default="",
    help="Simulate with these methods too; picture, animation and viewer then show all of them.",
)
@output_options
def run(
    source: str,
    floating: bool,
    package_dirs: tuple[str, ...],
    allow: tuple[str, ...],
    without: tuple[str, ...],
    gravity: str | None,
    inertia: str,
    limits: str | None,
    method: str | None,
    dt: float,
    duration: float,
    key: str | None,
    positions: tuple[str, ...],
    velocities: tuple[str, ...],
    project: bool,
    save_every: int,
    compare: str,
    out: Path | None,
    plot: Path | None,
    html: Path | None,
    view: bool,
    progress: bool | None,
) -> None:
    """Simulate a mechanism from a file (.urdf, .xml, .json) or a built-in one, such as pendulum or chain:10."""
    from leastaction.run.registry import check_supported, method_by_name
    from leastaction.run.simulate import simulate
    from leastaction.view.record import trimmed

    # everything that can be wrong is looked at before the run: mechanism, state, method, outputs
    mechanism = read_mechanism(
        source,
        floating=floating,
        package_dirs=package_dirs,
        allow=allow,
        without=without,
        gravity=gravity,
        inertia=inertia,
        limits=limits,
    )
    model = build_model(mechanism, source)
    check_motion(model, source)
    state = _described_state(model, key, read_settings(positions, "--set"), read_settings(velocities, "--set-velocity"))
    chosen = method_by_name(method) if method is not None else None
    others = [method_by_name(name.strip()) for name in compare.split(",") if name.strip()]
    for one in (*((chosen,) if chosen is not None else ()), *others):
        check_supported(one, model)
    if save_every < 1:
        raise ModelError(f"--save-every: must be a whole number from 1 on, got {save_every}.")
    check_length(model, dt, duration, save_every, "give a larger --save-every")
    outputs = Outputs(out, plot, html, view)
    outputs.check()
    tell_notes(mechanism.notes, where=source)

    with say_when_compiling():
        state = _first_state(model, state, project)
        settings: dict[str, Any] = {"dt": dt, "duration": duration, "save_every": save_every}
        settings["progress"] = show_bar(progress)
        # a method that fails beside another is kept as far as it makes sense
        beside = [trimmed(simulate(model, state, method=one, on_failure="keep", **settings)) for one in others]
        carry_out(lambda: simulate(model, state, method=chosen, **settings), outputs, beside)


def show_bar(asked: bool | None) -> bool:
    """Whether to show a bar: as asked for, or if somebody can see it."""
    return sys.stderr.isatty() if asked is None else asked


def carry_out(simulation: Callable[[], Trajectory], outputs: Outputs, beside: Sequence[Trajectory] = ()) -> None:
    """Simulate, print the report, write and show what was asked for; what stops early leaves what was reached.

    Args:
        simulation: makes the run.
        outputs: what to write and show.
        beside: runs with other methods, to compare with.
    """
    stop: ConvergenceError | KeyboardInterrupt | None = None
    try:
        done = simulation()
    except (ConvergenceError, KeyboardInterrupt) as error:
        if getattr(error, "run", None) is None:
            raise
        done, stop = error.run, error  # type: ignore[union-attr]
    _print_run(done)
    for other in beside:
        click.echo()
        _print_run(other)
    written = _write(done, outputs, beside)
    if stop is None:
        if outputs.view:
            _show([done, *beside])
        return
    kept = f"; the run up to there is in {' and '.join(written)}" if written else "; no file was asked for"
    if isinstance(stop, KeyboardInterrupt):
        raise KeyboardInterrupt(f"interrupted{kept}.") from stop
    raise ConvergenceError(f"{stop}{kept}.", report=done.report, state=done.final, run=done) from stop


def check_length(model: Model, dt: float, duration: float, save_every: int, hint: str) -> None:
    """Raise for a run that is not made of steps, or whose rows do not fit into memory; ``hint`` says what to do."""
    from leastaction.model.checks import check_number
    from leastaction.run.simulate import count_steps

    dt = check_number(dt, "--dt", positive=True)
    duration = check_number(duration, "--duration", nonnegative=True)
    rows = count_steps(duration, dt) // save_every + 1
    size = rows * (model.nq + model.nv) * 8
    if size > _LARGEST_RUN:
        raise ModelError(f"{rows} rows would need {size / 1e9:.3g} GB of memory; {hint}.")


def _described_state(model: Model, key: str | None, q: dict[str, Any], v: dict[str, Any]) -> State:
    """The state that the options name: that of a key frame or the default one, but for some joints."""
    if key is None:
        return model.state(q, v)
    state = model.state(key)
    if not q and not v:
        return state
    # what is named wins
    rest_q = {name: state.q[view.q] for name, view in model.joints.items()}
    rest_v = {name: state.v[view.v] for name, view in model.joints.items()}
    return model.state({**rest_q, **q}, {**rest_v, **v}, state.t)


def _first_state(model: Model, state: State, project: bool) -> State:
    """The first state, projected if asked for; open loops are refused otherwise, as ``simulate`` refuses them."""
    from leastaction.methods.closing import check_first
    from leastaction.run import observe

    if project:
        return observe.project(model, state)
    try:
        check_first(model, observe.closed_key(model, state)[0])
    except ModelError as error:
        raise ModelError(f"{error} The option --project does that.") from None
    return state


def _print_run(done: Trajectory) -> None:
    """The report, and what energy and loops did."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    rows = [("mechanism", done.model.name), *done.report.rows(), ("energy", energy_words(done))]
    if done.model.is_closed:
        rows.append(("loops", f"largest gap {done.constraint_error.max():.3g} m or rad"))
    # a newcomer's first run starts in balance more often than not
    if done.steps and not done.v.any():
        rows.append(("motion", "none: at rest and in balance; --set JOINT=VALUE starts elsewhere"))
    for label, value in rows:
        table.add_row(f"[dim]{escape(one_line(label))}[/dim]", escape(one_line(value)))
    console().print(table)


def energy_words(done: Trajectory) -> str:
    """What the total energy did, and whether it could have stayed the same."""
    total = done.energy.total
    change = float(abs(total - total[0]).max())
    largest = float(abs(done.energy.kinetic).max())
    words = f"started at {total[0]:.6g} J, largest change {change:.3g} J"
    if largest > 0:
        words += f" ({change / largest:.2g} of the largest kinetic energy)"
    return words + (f"; {_DISSIPATIVE}" if dissipates(done.model) else "")


_DISSIPATIVE = "dampers or forces of this mechanism take or give energy"


def dissipates(model: Model) -> bool:
    """Whether something in the mechanism takes or gives energy."""
    moving = [view.joint for view in model.joints.values()]
    dampers = any(joint.damping_values.any() or joint.damping_laws for joint in moving)
    laws = any(law.energy is None for joint in moving for law in joint.stiffness_laws.values())
    return dampers or laws or not all(force.conservative for force in model.mechanism.forces)


def _write(done: Trajectory, outputs: Outputs, beside: Sequence[Trajectory]) -> list[str]:
    """Write what was asked for; returns the names of the files."""
    written: list[str] = []
    if outputs.out is not None:
        done.save(outputs.out)
        written.append(str(outputs.out))
    if outputs.plot is not None:
        if beside:
            from leastaction.plot import plot_comparison

            plot_comparison([done, *beside], outputs.plot)
        else:
            done.plot(outputs.plot)
        written.append(str(outputs.plot))
    if outputs.html is not None:
        from leastaction.view.page import write_html

        for note in write_html([done, *beside], outputs.html, layout=_layout(beside)):
            tell(f"note: {note}")
        written.append(str(outputs.html))
    for path in written:
        click.echo(f"wrote {one_line(path)}")
    return written


def _layout(beside: Sequence[Trajectory]) -> str:
    """Few runs stand beside each other, many over each other."""
    return "side" if len(beside) <= _MOST_BESIDE else "overlay"


# a run with so many others still has room beside them
_MOST_BESIDE = 2


def _show(runs: Sequence[Trajectory]) -> None:
    """The live viewer, until Ctrl-C."""
    from leastaction.view.live import show_runs

    show_runs(runs, layout=_layout(runs[1:]), block=True)
