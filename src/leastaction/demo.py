"""The demo: a mechanism under a method of this library, beside the same mechanism under RK4.

``run_report`` prints, writes a picture and an animation and ends; ``run_page`` serves the page and goes on simulating.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism
    from leastaction.model.model import Model, State
    from leastaction.run.trajectory import Trajectory

BASELINE = "rk4"
METHODS = ("galerkin:4", "galerkin:2", "maximal", "lie-trapezoid", "euler", "rk2", "rk4")

# seconds of simulated time between two lines of the live table, seconds of wall time, and where it ends
_STRETCH, _PAUSE, _END = 5.0, 0.25, 3600.0


@dataclass(frozen=True)
class Setting:
    """A mechanism of the demo.

    Attributes:
        name: of the built-in mechanism.
        words: for it.
        dt: step, seconds.
        duration: of the run, seconds.
        q: first position, as ``Model.state`` takes it; made closed.
        v: first velocity.
        traces: points that leave a line.
        prepare: changes the mechanism before it is built, or None.
        method: the one to begin with.
    """

    name: str
    words: str
    dt: float = 0.005
    duration: float = 20.0
    q: Any = None
    v: Any = None
    traces: Any = ()
    prepare: Callable[[Mechanism], None] | None = None
    method: str = METHODS[0]

    def start(self) -> tuple[Model, State]:
        """The model, and the nearest state that keeps the loops closed."""
        from leastaction import models
        from leastaction.run import observe

        mechanism = models.by_name(self.name)
        if self.prepare is not None:
            self.prepare(mechanism)
        model = mechanism.build()
        return model, observe.project(model, model.state(self.q, self.v))


_STANCE = {"hip": 0.0, "thigh": 0.9, "calf": -1.8}
_LEGS = ("FR", "FL", "RR", "RL")


def _hold_stance(m: Mechanism) -> None:
    """Ground under a quadruped, and springs in its joints that stand for motors."""
    m.add_ground(friction=0.7)
    for leg in _LEGS:
        for part, angle in _STANCE.items():
            joint = m.joints[f"{leg}_{part}_joint"]
            joint.stiffness, joint.damping, joint.rest = np.array([60.0]), np.array([1.5]), np.array([angle])


_DROP = {f"{leg}_{part}_joint": angle for leg in _LEGS for part, angle in _STANCE.items()}
_DROP_Q: Any = {"root": (0.0, 0.0, 0.5, 0.995, 0.1, 0.0, 0.0), **_DROP}

SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("four_bar", "four-bar linkage", v={"crank_hinge": 8.0}, traces={"coupler": (0.1, 0.0, 0.05)}),
        Setting("slider_crank", "slider-crank", q={"crank_hinge": 1.2}, v={"crank_hinge": 9.0}, dt=0.01),
        Setting("bricard", "Bricard's linkage (redundant loop)", dt=0.02),
        Setting("double_pendulum", "double pendulum", q=[2.0, 1.0], dt=0.02, traces=["bob2"]),
        Setting("chain:10", "chain of ten links", q=np.full(10, 0.4), dt=0.01),
        Setting(
            "quadruped",
            "quadruped landing (contact)",
            duration=4.0,
            q=_DROP_Q,
            v={"root": (0.5, 0.0, 0.0, 0.6, 0.0, 0.0)},
            prepare=_hold_stance,
            method="maximal",
        ),
        Setting("spinning_top", "spinning top", q={"tip": (0.966, 0.259, 0, 0)}, v={"tip": (0, 0, 90.0)}),
    )
}


def simulate_pair(setting: Setting, method: str, duration: float | None = None) -> list[Trajectory]:
    """The mechanism under the method, and under RK4 if that can; a run that fails is kept as far as it went."""
    from leastaction.run.registry import method_by_name
    from leastaction.run.simulate import simulate

    model, start = setting.start()
    beside = method != BASELINE and model.features <= method_by_name(BASELINE).supports
    names = [method, BASELINE] if beside else [method]
    length = setting.duration if duration is None else duration
    return [simulate(model, start, dt=setting.dt, duration=length, method=name, on_failure="keep") for name in names]


# --- without a browser ---------------------------------------------------------------------------------------------
def run_report(out_dir: Path, console: Any) -> list[Path]:
    """Simulate, print reports and a comparison, write ``demo.png``, ``demo.html`` and ``demo.npz``; their paths."""
    from leastaction.plot import plot_comparison
    from leastaction.view.page import write_html

    setting = SETTINGS["four_bar"]
    runs = simulate_pair(setting, METHODS[0])
    model = runs[0].model
    console.print(
        f"A four-bar linkage: {len(model.body_names)} moving bars, {len(model.loop_names)} joint that closes the loop, "
        f"{setting.duration:g} s at dt = {setting.dt:g} s.",
        soft_wrap=True,
    )
    for run in runs:
        console.print()
        console.print(run.report)
    console.print()
    console.print(comparison([Line.of(run) for run in runs]))

    # a picture of both, an animation of both, and the better run with its mechanism
    picture, movie, result = (out_dir / f"demo.{ending}" for ending in ("png", "html", "npz"))
    plot_comparison(runs, picture)
    write_html(runs, movie, layout="side", traces=setting.traces, title=_title(setting))
    runs[0].save(result)
    console.print()
    console.print(f"wrote {picture}", markup=False, soft_wrap=True)
    console.print(f"wrote {movie}; open it in a browser, it needs nothing else", markup=False, soft_wrap=True)
    console.print(f'wrote {result}; leastaction.Trajectory.load("{result}") reads it', markup=False, soft_wrap=True)
    return [picture, movie, result]


def _title(setting: Setting) -> str:
    return f"leastaction demo: {setting.words}"


@dataclass
class Line:
    """A line of the comparison: a method, seconds simulated, and what should be zero."""

    method: str
    t: float
    drift: float
    share: float
    gap: float | None
    stopped: str | None = None

    @staticmethod
    def of(run: Trajectory, first: float | None = None, before: Line | None = None) -> Line:
        """The line of a run; ``first`` is the energy that counts as zero, ``before`` the line up to its start."""
        from leastaction.dynamics import quantities
        from leastaction.run import observe
        from leastaction.view.record import sensible_rows

        # a run that has blown up counts as far as its numbers mean something
        kept = sensible_rows(run)
        q, v = run.q[:kept], run.v[:kept]
        energy = quantities.energy(run.model, q, v)
        drift = float(np.abs(energy.total - (energy.total[0] if first is None else first)).max())
        kinetic = float(energy.kinetic.max())
        gap = float(observe.constraint_error(run.model, q).max()) if run.model.loop_names else None
        share = drift / kinetic if kinetic > 0 else 0.0
        if before is not None:
            drift, share = max(drift, before.drift), max(share, before.share)
            gap = None if gap is None or before.gap is None else max(gap, before.gap)
        stopped = run.report.failure if kept == len(run.q) else "blown up"
        return Line(run.method.label, float(run.t[kept - 1]), drift, share, gap, stopped)


def comparison(lines: list[Line], title: str = "what should stay zero") -> Any:
    """A table of what should stay zero."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for column in ("method", "time (s)", "energy drift (J)", "of the motion", "loop gap (m, rad)", ""):
        table.add_column(column, justify="left" if column in ("method", "") else "right")
    for line in lines:
        gap = "-" if line.gap is None else f"{line.gap:.2e}"
        stopped = "" if line.stopped is None else f"stopped: {line.stopped.partition(';')[0]}"
        table.add_row(line.method, f"{line.t:.5g}", f"{line.drift:.2e}", f"{line.share:.2e}", gap, stopped)
    return table


# --- with a browser ------------------------------------------------------------------------------------------------
def run_page(console: Any, *, host: str, port: int, open_browser: bool, until: float | None = None) -> None:
    """Serve the page, show a live table of the first mechanism, go on until Ctrl-C or for ``until`` seconds."""
    import webbrowser

    from leastaction.view.page import page
    from leastaction.view.serve import serve

    choices = {
        "title": "leastaction demo",
        "mechanism": [[setting.name, setting.words, setting.method] for setting in SETTINGS.values()],
        "method": [[name, name] for name in METHODS],
    }
    answers = Answers()
    served = serve(page(choices), answers.answer, host=host, port=port)
    try:
        if served.note:
            console.print(served.note, soft_wrap=True)
        # the browser opens while the first mechanism is simulated
        console.print(f"{served.url} shows the mechanism moving; Ctrl-C ends.", soft_wrap=True)
        if open_browser:
            webbrowser.open(served.url)
        answers.answer({"mechanism": "four_bar", "method": METHODS[0]})
        _go_on(console, until)
    except KeyboardInterrupt:
        console.print("ended.")
    finally:
        served.close()


class Answers:
    """Data of the page for a mechanism and a method, each made once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[str, str], dict[str, Any]] = {}

    def answer(self, words: dict[str, str]) -> dict[str, Any]:
        """What the page shows for its two choices."""
        from leastaction.view.page import payload

        mechanism, method = words.get("mechanism", ""), words.get("method", "")
        if mechanism not in SETTINGS or method not in METHODS:
            raise ModelError(f"the demo has no mechanism '{mechanism}' with the method '{method}'.")
        # one simulation at a time
        with self._lock:
            key = (mechanism, method)
            if key not in self._made:
                setting = SETTINGS[mechanism]
                runs = simulate_pair(setting, method)
                data = payload(runs, layout="side", traces=setting.traces, title=_title(setting))
                # numbers that no browser reads are found here
                json.dumps(data, allow_nan=False)
                self._made[key] = data
            return self._made[key]


def _go_on(console: Any, until: float | None) -> None:
    """Simulate the first mechanism further and further, and show a table that changes with it."""
    from rich.live import Live

    setting = SETTINGS["four_bar"]
    stretches = [_Stretch(setting, name) for name in (METHODS[0], BASELINE)]
    title = f"{setting.words}, dt = {setting.dt:g} s: what should stay zero"
    end = None if until is None else time.monotonic() + until
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while end is None or time.monotonic() < end:
            for stretch in stretches:
                stretch.go_on()
            live.update(comparison([stretch.line for stretch in stretches], title), refresh=console.is_terminal)
            time.sleep(_PAUSE)


class _Stretch:
    """A run that goes on, of which only the last stretch and the line are kept."""

    def __init__(self, setting: Setting, method: str) -> None:
        from leastaction.dynamics import quantities
        from leastaction.run.simulate import simulate

        model, state = setting.start()
        self.first = float(quantities.energy(model, state.q, state.v).total)
        self.run = simulate(model, state, dt=setting.dt, duration=0.0, method=method)
        self.line = Line(method, 0.0, 0.0, 0.0, 0.0)

    def go_on(self) -> None:
        """Simulate a little further, unless it stopped or is long enough."""
        from leastaction.run.simulate import resume

        if self.line.stopped is not None or self.line.t >= _END:
            return
        # the last row with what the method remembers is a run of no steps
        run, last = self.run, slice(-1, None)
        clock = replace(run.clock, t0=float(run.t[-1]))
        rest = replace(run, clock=clock, steps=0, q=run.q[last], v=run.v[last], iterations=None)
        self.run = resume(rest, _STRETCH, on_failure="keep")
        self.line = Line.of(self.run, self.first, self.line)
