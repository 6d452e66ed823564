"""The live viewer of a model: a slider for each coordinate; loops stay closed where they can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastaction.dynamics import quantities
from leastaction.errors import ConvergenceError
from leastaction.model.checks import FloatArray
from leastaction.model.joints import layout
from leastaction.model.model import Model
from leastaction.run import observe
from leastaction.run.export import coordinate_units
from leastaction.spatial import quaternion
from leastaction.view.guard import plain
from leastaction.view.live import PORT, Bodies, Stage, _present
from leastaction.view.record import Recording, body_motion
from leastaction.view.scene import model_size, scene_of
from leastaction.view.serve import LOCAL


@dataclass(frozen=True)
class Slider:
    """One slider: its label, where its number goes in q, and its range.

    Attributes:
        label: joint, and coordinate where it has several.
        q: the coordinate, or the four of a rotation.
        axis: None for a coordinate; 0, 1, 2 for a component of a rotation vector.
        low: smallest value, metres or radians.
        high: largest value.
    """

    label: str
    q: slice
    axis: int | None
    low: float
    high: float


def sliders_of(model: Model) -> list[Slider]:
    """Sliders of every moving joint, in the order of q; three for a rotation."""
    out, size = [], model_size(model)
    for name, view in model.joints.items():
        joint, units = view.joint, coordinate_units(view.joint)
        for piece in layout(joint):
            where = slice(view.q.start + piece.q.start, view.q.start + piece.q.stop)
            if piece.factor == "ball":
                out += [Slider(f"{name} r{axis}", where, k, -3.142, 3.142) for k, axis in enumerate("xyz")]
                continue
            low, high = joint.limits[piece.limit]
            reach = np.pi if units[piece.q.start] == "rad" else 2 * size
            label = name if joint.nq == 1 else f"{name} {joint.coordinate_names[piece.q.start]}"
            bounds = (low if np.isfinite(low) else -reach, high if np.isfinite(high) else reach)
            # a joint that is held by its limits has a slider with no way to go
            out.append(Slider(label, where, None, *_rounded(*bounds)))
    return out


def _rounded(low: float, high: float) -> tuple[float, float]:
    """A range with numbers short enough to be read, never empty."""
    a, b = round(float(low), 3), round(float(high), 3)
    return (a, b) if b > a else (float(low), float(low) + 1e-6)


def position(model: Model, sliders: list[Slider], values: list[float]) -> FloatArray:
    """Coordinates (nq,) at the values of the sliders."""
    q = model.neutral()
    turns: dict[int, FloatArray] = {}
    for slider, value in zip(sliders, values, strict=True):
        if slider.axis is None:
            q[slider.q] = value
        else:
            turns.setdefault(slider.q.start, np.zeros(3))[slider.axis] = value
    for start, turn in turns.items():
        q[start : start + 4] = quaternion.exp(turn)
    return q


def values_at(sliders: list[Slider], q: FloatArray) -> list[float]:
    """What the sliders show at coordinates (nq,), within their ranges."""
    out = []
    for s in sliders:
        value = q[s.q.start] if s.axis is None else np.asarray(quaternion.log(q[s.q]))[s.axis]
        out.append(float(np.clip(value, s.low, s.high)))
    return out


def closed(model: Model, q: FloatArray) -> tuple[FloatArray, str]:
    """The nearest position with closed loops, and words about it; as given where there is none."""
    if not model.is_closed:
        return q, ""
    try:
        return observe.project(model, model.state(q)).q, "The loops are closed: the joints follow each other."
    except ConvergenceError:
        gap = float(observe.constraint_error(model, q[None])[0])
        return q, f"The loops cannot be closed from here: they are open by {gap:.3g} m or rad."


def still(model: Model, q: FloatArray) -> Recording:
    """A recording of one position."""
    positions, rotations = body_motion(model, q[None])
    com = np.atleast_2d(quantities.center_of_mass(model, q[None]))
    nothing = np.zeros((1, 0, 6))
    return Recording(
        model.name, model, scene_of(model), np.zeros(1), positions, rotations, com, None, None, None, nothing, None, 0.0
    )


def view_model(model: Model, *, q: Any = None, host: str = LOCAL, port: int = PORT, block: bool | None = None) -> Stage:
    """Show a model with a slider for each coordinate; see ``la.view``."""
    start = model.check_q(q)
    recording = still(model, start)
    stage = Stage(model.name, host, port)
    stage.frame([recording], [np.zeros(3)])
    stage.notes += recording.scene.notes
    Poser(stage, model, recording, start)
    return _present(stage, block)


class Poser:
    """A model on a stage that follows its sliders."""

    def __init__(self, stage: Stage, model: Model, recording: Recording, start: FloatArray) -> None:
        self.stage, self.model = stage, model
        self.bodies = Bodies(stage, "/model", recording.scene, np.zeros(3))
        size, api, n = model_size(model), stage.server.scene, len(recording.scene.carriers)
        axes = {"axes_length": 0.25 * size, "axes_radius": 0.008 * size, "visible": False}
        self.frames = api.add_batched_axes("/model/frames", np.tile([1.0, 0, 0, 0], (n, 1)), np.zeros((n, 3)), **axes)
        self.com = api.add_icosphere("/model/com", 0.04 * size, (20, 20, 25), visible=False)
        gui = stage.server.gui
        self.home = gui.add_button("Neutral position")
        self.sliders = sliders_of(model)
        self.handles = [
            gui.add_slider(s.label, s.low, s.high, (s.high - s.low) / 500, value)
            for s, value in zip(self.sliders, values_at(self.sliders, start), strict=True)
        ]
        self.words = gui.add_markdown("")
        shown = {"frames": self.frames, "centre of mass": self.com}
        for name, handle in shown.items():
            box = gui.add_checkbox(name, False)
            box.on_update(lambda _, box=box, handle=handle: setattr(handle, "visible", box.value))
        for handle in self.handles:
            handle.on_update(lambda _: self.update())
        self.home.on_click(lambda _: self.go_home())
        self.update()

    def wanted(self) -> FloatArray:
        """Coordinates (nq,) that the sliders ask for."""
        return position(self.model, self.sliders, [float(handle.value) for handle in self.handles])

    def update(self) -> None:
        """Follow the sliders."""
        q, words = closed(self.model, self.wanted())
        self.words.content = plain(words)
        self.place(q)

    def go_home(self) -> None:
        """All sliders to zero, or as near as their limits let them."""
        for value, handle in zip(values_at(self.sliders, self.model.neutral()), self.handles, strict=True):
            handle.value = value
        self.update()

    def place(self, q: FloatArray) -> None:
        """Show a position."""
        positions, rotations = body_motion(self.model, q[None])
        with self.stage.server.atomic():
            self.bodies.move(positions[0], rotations[0])
            self.frames.batched_positions = positions[0].astype(np.float32)
            self.frames.batched_wxyzs = rotations[0].astype(np.float32)
            self.com.position = np.asarray(quantities.center_of_mass(self.model, q))
