"""The live viewer in the browser, on viser (extra ``view``): runs with a time slider, models with joint sliders."""

from __future__ import annotations

import contextlib
import io
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.model import Model
from leastaction.spatial import quaternion
from leastaction.view.guard import guarded, plain
from leastaction.view.page import framing, record_all
from leastaction.view.record import Recording, arrows_of, bounds, trace_points
from leastaction.view.scene import Scene, model_size
from leastaction.view.serve import LOCAL, first_free

if TYPE_CHECKING:
    from leastaction.run.trajectory import Trajectory

PORT = 8080

# colours of runs (0 to 255), and pictures in a second
RUN_COLOURS = ((0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (230, 159, 0), (86, 180, 233))
_PICTURES = 30.0
_SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4", "10")


class Stage:
    """A viewer that is running, with the controls in ``server.gui``.

    Attributes:
        server: the ``viser.ViserServer``.
        url: its address.
        notes: what was drawn or served otherwise than asked, one line each.
    """

    def __init__(self, title: str, host: str, port: int) -> None:
        viser = _viser()
        port, note = _free_port(host, port)
        # what viser prints of itself is said in our own words
        with contextlib.redirect_stdout(io.StringIO()), guarded(host):
            self.server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
        self.url = f"http://{host}:{self.server.get_port()}/"
        self.notes: list[str] = [note] if note else []
        self._over = threading.Event()
        # nothing that would ask another machine, and a light that needs no picture of a sky
        self.server.gui.configure_theme(show_logo=False, show_share_button=False)
        self.server.gui.main_panel.dock_right()
        self.server.scene.configure_environment_map(None)
        sky = {"sky_color": (255, 255, 255), "ground_color": (190, 190, 190), "intensity": 2.4}
        self.server.scene.add_light_hemisphere("/sky", **sky)
        self.server.scene.set_up_direction("+z")

    def frame(self, recordings: Sequence[Recording], offsets: Sequence[FloatArray]) -> None:
        """Ground and camera for recordings that stand at offsets (3,)."""
        camera, ground, spacing, _ = framing(recordings)
        reach = float(np.linalg.norm(offsets[-1] - offsets[0])) / 2
        radius = camera["radius"] + reach
        centre = np.array(camera["centre"]) + (offsets[-1] + offsets[0]) / 2
        a, e = camera["azimuth"], camera["elevation"]
        out = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
        first = self.server.initial_camera
        first.position, first.look_at, first.fov = centre + 3.4 * radius * out, centre, 0.61
        if ground is not None:
            wide = 20 * radius
            self.server.scene.add_grid(
                "/ground",
                width=wide,
                height=wide,
                cell_size=spacing,
                section_size=5 * spacing,
                cell_color=(214, 218, 224),
                section_color=(176, 182, 192),
                plane_color=(248, 249, 251),
                plane_opacity=1.0,
                shadow_opacity=0.25,
                position=(centre[0], centre[1], ground),
            )

    def wait(self) -> None:
        """Stay until Ctrl-C or ``close``."""
        try:
            while not self._over.wait(0.5):
                pass
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Stop the viewer."""
        self._over.set()
        with contextlib.redirect_stdout(io.StringIO()):
            self.server.stop()


def _viser() -> Any:
    try:
        import viser
    except ImportError as error:
        raise ModelError("the viewer needs viser; install the extra: pip install 'leastaction[view]'.") from error
    return viser


def _free_port(host: str, port: int) -> tuple[int, str | None]:
    """A port that nobody listens at, and a line if it is not the one asked for."""

    def make(chosen: int) -> int:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as test:
            test.bind((host, chosen))
            return int(test.getsockname()[1])

    return first_free(make, host, port)


class Bodies:
    """The bodies of a scene on a stage, under a name of their own, moved together."""

    def __init__(
        self, stage: Stage, name: str, scene: Scene, offset: FloatArray, tint: tuple[int, int, int] | None = None
    ) -> None:
        api, self.name = stage.server.scene, name
        self.root = api.add_frame(name, show_axes=False, position=tuple(offset))
        self.handles = [api.add_frame(f"{name}/{k}", show_axes=False) for k in range(len(scene.carriers))]
        api.add_frame(f"{name}/world", show_axes=False)
        for number, item in enumerate(scene.items):
            surface = scene.surfaces[item.surface]
            colour = tuple(round(255 * c) for c in item.colour[:3])
            carrier = "world" if item.carrier < 0 else str(item.carrier)
            api.add_mesh_simple(
                f"{name}/{carrier}/{number}",
                surface.points.astype(np.float32),
                surface.faces.astype(np.uint32),
                color=colour if tint is None else tint,
                opacity=0.45 if tint else None if item.colour[3] >= 1 else item.colour[3],
                wxyz=np.asarray(quaternion.from_matrix(item.pose[:3, :3])),
                position=item.pose[:3, 3],
                side="double",
            )

    def move(self, positions: FloatArray, rotations: FloatArray) -> None:
        """Put the bodies at positions (bodies, 3) with quaternions (bodies, 4)."""
        for handle, position, rotation in zip(self.handles, positions, rotations, strict=True):
            handle.position, handle.wxyz = position, rotation


class Player:
    """Runs on a stage, with play, speed, time, and what else is to be seen."""

    def __init__(self, stage: Stage, recordings: Sequence[Recording], layout: str, traces: Any) -> None:
        self.stage, self.recordings = stage, list(recordings)
        self.first = min(float(r.t[0]) for r in recordings)
        self.last = max(float(r.t[-1]) for r in recordings)
        self.size = model_size(recordings[0].model)
        offsets = side_by_side(recordings) if layout == "side" else [np.zeros(3)] * len(recordings)
        stage.frame(recordings, offsets)
        self.bodies = [
            Bodies(stage, f"/run{k}", r.scene, offsets[k], RUN_COLOURS[k % 6] if layout == "overlay" and k else None)
            for k, r in enumerate(recordings)
        ]
        self._add_extras(traces)
        self._add_controls()
        self.time = self.first
        self.show(self.first)
        self._thread = threading.Thread(target=self._play, name="leastaction player", daemon=True)
        self._thread.start()

    def _add_extras(self, traces: Any) -> None:
        """Frames, centres of mass, traces and contacts, each in a list by run; hidden until asked for."""
        api = self.stage.server.scene
        self.frames, self.coms, self.traces, self.arrows = [], [], [], []
        for k, recording in enumerate(self.recordings):
            n = len(recording.scene.carriers)
            axes = {"axes_length": 0.25 * self.size, "axes_radius": 0.008 * self.size}
            still = np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), np.zeros((n, 3))
            self.frames.append(api.add_batched_axes(f"/run{k}/frames", *still, visible=False, **axes))
            self.coms.append(api.add_icosphere(f"/run{k}/com", 0.04 * self.size, (20, 20, 25), visible=False))
            for number, (carrier, point) in enumerate(trace_points(recording.model, traces)):
                path = trace(recording, carrier, point)
                pairs = np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)
                if len(pairs):
                    name, thick = f"/run{k}/trace{number}", 0.008 * self.size
                    self.traces.append(api.add_line_segments(name, pairs, RUN_COLOURS[k % 6], thickness=thick))
            self.arrows.append(_Arrows(api, f"/run{k}/contacts", recording, self.size))

    def _add_controls(self) -> None:
        gui = self.stage.server.gui
        length = max(self.last - self.first, 1e-9)
        still = self.last <= self.first
        self.play = gui.add_button("Play", disabled=still)
        self.moving = False
        self.reset = gui.add_button("Reset", disabled=still)
        self.speed = gui.add_dropdown("speed", _SPEEDS, initial_value="1")
        span = self.first, self.first + length, length / 1000, self.first
        self.slider = gui.add_slider("time (s)", *span, disabled=still)
        self.follow = gui.add_checkbox("follow", False)
        switches = {"frames": self.frames, "centre of mass": self.coms, "traces": self.traces}
        self.switches = {name: gui.add_checkbox(name, name == "traces") for name, found in switches.items() if found}
        self.words = gui.add_markdown("")
        self.play.on_click(lambda _: self.toggle(not self.moving))
        self.reset.on_click(lambda _: self.show(self.first))
        for name, box in self.switches.items():
            box.on_update(lambda _, name=name: _set_visible(switches[name], self.switches[name].value))
        self.slider.on_update(lambda event: self._dragged(event))
        self.toggle(not still)

    def toggle(self, moving: bool) -> None:
        """Play or stand still."""
        self.moving = moving
        self.play.label = "Pause" if moving else "Play"

    def _dragged(self, event: Any) -> None:
        # only a hand on the slider stops the play, not the play itself
        if event.client is not None:
            self.toggle(False)
            self.show(float(self.slider.value), from_slider=True)

    def show(self, t: float, from_slider: bool = False) -> None:
        """Show the picture at time t, seconds."""
        self.time = min(max(t, self.first), self.last)
        before = [self.recordings[0].com[_row(self.recordings[0], self.slider.value)]] if self.follow.value else []
        with self.stage.server.atomic():
            for k, recording in enumerate(self.recordings):
                row = _row(recording, self.time)
                self.bodies[k].move(recording.positions[row], recording.rotations[row])
                self.frames[k].batched_positions = recording.positions[row].astype(np.float32)
                self.frames[k].batched_wxyzs = recording.rotations[row].astype(np.float32)
                self.coms[k].position = recording.com[row]
                self.arrows[k].show(row)
            if before:
                self._follow(self.recordings[0].com[_row(self.recordings[0], self.time)] - before[0])
            if not from_slider:
                self.slider.value = self.time
            self.words.content = "\n\n".join(_words(r, _row(r, self.time)) for r in self.recordings)

    def _follow(self, moved: FloatArray) -> None:
        """Move every visitor's camera with the centre of mass."""
        for client in self.stage.server.get_clients().values():
            client.camera.position = np.asarray(client.camera.position) + moved
            client.camera.look_at = np.asarray(client.camera.look_at) + moved

    def _play(self) -> None:
        before = time.monotonic()
        while not self.stage._over.wait(1 / _PICTURES):
            now = time.monotonic()
            if self.moving:
                ahead = self.time + (now - before) * float(self.speed.value)
                self.show(self.first if self.time >= self.last else ahead)
            before = now


class _Arrows:
    """Contact points and forces of a run."""

    def __init__(self, api: Any, name: str, recording: Recording, size: float) -> None:
        self.api, self.name = api, name
        self.points, self.arrows = recording.contacts[..., :3], arrows_of(recording)
        self.handle: Any = None
        self.size = size

    def show(self, row: int) -> None:
        """The arrows of a picture."""
        if self.points.shape[1] == 0:
            return
        there = np.isfinite(self.arrows[row]).all(axis=1)
        points, arrows = self.points[row][there], self.arrows[row][there]
        if self.handle is not None:
            self.handle.remove()
            self.handle = None
        if len(points):
            ends = np.stack([points, points + arrows], axis=1).astype(np.float32)
            widths = {
                "shaft_radius": 0.008 * self.size,
                "head_radius": 0.02 * self.size,
                "head_length": 0.05 * self.size,
            }
            self.handle = self.api.add_arrows(self.name, ends, (200, 30, 30), **widths)


def _row(recording: Recording, t: float) -> int:
    """The picture nearest to a time."""
    return int(np.clip(np.searchsorted(recording.t, t - 1e-9), 0, len(recording.t) - 1))


def _words(recording: Recording, row: int) -> str:
    """Label, energy and gap of a picture, in Markdown."""
    lines = [f"**{plain(recording.label)}**"]
    if recording.energy is not None:
        lines.append(f"energy change {recording.energy[row]:.2e} J")
    if recording.gap is not None:
        lines.append(f"loop gap {recording.gap[row]:.2e}")
    if recording.stopped and row == len(recording.t) - 1:
        lines.append(plain(recording.stopped))
    return "  \n".join(lines)


def _set_visible(handles: Sequence[Any], visible: bool) -> None:
    for handle in handles:
        handle.visible = visible


def trace(recording: Recording, carrier: int, point: FloatArray) -> FloatArray:
    """Positions (rows, 3) of a point of a body."""
    turned = np.asarray(
        quaternion.rotate(recording.rotations[:, carrier], np.broadcast_to(point, (len(recording.t), 3)))
    )
    return recording.positions[:, carrier] + turned


def side_by_side(recordings: Sequence[Recording]) -> list[FloatArray]:
    """Offsets (3,) along x that put the runs one beside the other."""
    out, x = [], 0.0
    for k, recording in enumerate(recordings):
        low, high = bounds(recording, 0)
        x += 0.6 * float(high[0] - low[0]) if k else 0.0
        out.append(np.array([x, 0.0, 0.0]))
        x += 0.9 * float(high[0] - low[0])
    return out


# --- what users call -----------------------------------------------------------------------------------------------
def show_runs(
    runs: Sequence[Trajectory],
    *,
    labels: Sequence[str] = (),
    layout: str = "overlay",
    traces: Mapping[str, Any] | Sequence[str] = (),
    host: str = LOCAL,
    port: int = PORT,
    block: bool | None = None,
) -> Stage:
    """Show runs in the browser; see ``view``."""
    recordings = record_all(runs, labels=labels, layout=layout)
    stage = Stage(recordings[0].model.name, host, port)
    Player(stage, recordings, layout, traces)
    stage.notes += dict.fromkeys(note for recording in recordings for note in recording.scene.notes)
    return _present(stage, block)


def view(what: Model | Trajectory | Sequence[Trajectory], **options: Any) -> Stage:
    """Show a model with a slider for each joint, a run, or several runs, in the browser (extra ``view``).

    Args:
        what: a model, a run, or a list of runs.
        **options: ``host`` and ``port`` of the page, by default 127.0.0.1, which only this machine reaches, and 8080 or
            the next free one; ``block``, whether to stay until Ctrl-C, by default in scripts only. For runs also
            ``labels``, ``layout`` ("overlay" or "side"), and ``traces`` (see ``run.to_html``). For a model ``q``, where
            it starts.

    Returns:
        The running viewer: ``url``, ``notes``, ``wait()``, ``close()``.
    """
    from leastaction.run.trajectory import Trajectory

    if isinstance(what, Model):
        from leastaction.view.posing import view_model

        return view_model(what, **options)
    return show_runs([what] if isinstance(what, Trajectory) else what, **options)


def _present(stage: Stage, block: bool | None) -> Stage:
    """Say where the viewer is, and stay there in a script."""
    for note in stage.notes:
        print(note)
    print(f"the viewer is at {stage.url}")
    # a session that goes on by itself keeps the viewer; a script would end it
    if (not hasattr(sys, "ps1") and "IPython" not in sys.modules) if block is None else block:
        print("Ctrl-C ends it.")
        stage.wait()
    return stage
