"""One page for a moving picture: our own viewer with the data inside, or asking its own server for it."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray
from leastaction.model.files import check_path, write_file
from leastaction.model.model import Model
from leastaction.view.record import RATE, Recording, arrows_of, bounds, record, trace_points
from leastaction.view.scene import WORLD, plain_note, scene_of
from leastaction.view.surfaces import Surface, ball

if TYPE_CHECKING:
    from leastaction.run.trajectory import Trajectory

LAYOUTS = ("overlay", "side")
SCRIPTS = ("gl.js", "runs.js", "charts.js", "app.js")
MOST_RUNS = 6

# a mechanism that moves by more than this many of its own sizes is followed by the camera
_FAR = 3.0


def write_html(
    runs: Sequence[Trajectory],
    path: str | Path,
    *,
    labels: Sequence[str] = (),
    layout: str = "overlay",
    traces: Mapping[str, Any] | Sequence[str] = (),
    title: str | None = None,
    follow: bool | None = None,
    rate: float = RATE,
) -> list[str]:
    """Write runs to one .html file that plays from disk and asks for nothing outside; returns its notes.

    Args:
        runs: one run or several, of one mechanism or of different ones.
        path: the file.
        labels: one for each run; by default method and step.
        layout: "overlay", or "side" for one beside the other.
        traces: bodies or frames whose origins leave a line; or a dict of them with a point (3,) in each, metres.
        title: words above the picture; by default the mechanism's name.
        follow: whether the camera follows the centre of mass; by default where the mechanism travels far.
        rate: pictures in a second of simulated time, at most; the viewer fills in between.
    """
    path = check_path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ModelError(f"{path}: the ending of an animation must be .html.")
    data = payload(runs, labels=labels, layout=layout, traces=traces, title=title, follow=follow, rate=rate)
    write_file(path, page(data))
    return list(data["notes"])


def page(data: Mapping[str, Any]) -> str:
    """The page with its data inside."""
    folder = resources.files("leastaction.view") / "assets"
    words = {
        "title": html.escape(str(data["title"])),
        "style": _asset("style.css"),
        "script": "\n".join(_asset(name) for name in SCRIPTS),
        # a script ends at the first "</", wherever it stands
        "data": json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
    }
    text = (folder / "page.html").read_text(encoding="utf-8")
    # by pieces, as the data may hold the marks themselves
    parts = text.split("{{")
    out = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}}")
        out += [words[name], rest]
    return "".join(out)


@cache
def _asset(name: str) -> str:
    return (resources.files("leastaction.view") / "assets" / name).read_text(encoding="utf-8")


def payload(
    runs: Sequence[Trajectory],
    *,
    labels: Sequence[str] = (),
    layout: str = "overlay",
    traces: Mapping[str, Any] | Sequence[str] = (),
    title: str | None = None,
    follow: bool | None = None,
    rate: float = RATE,
) -> dict[str, Any]:
    """What the page shows, as plain JSON types; see ``write_html``."""
    recordings = record_all(runs, labels=labels, layout=layout, rate=rate)
    geometries: list[Any] = [_geometry(ball(np.ones(3)))]
    firsts: dict[int, int] = {}
    out = []
    for recording in recordings:
        # equal models share their surfaces
        key = id(recording.scene)
        if key not in firsts:
            firsts[key] = len(geometries)
            geometries += [_geometry(surface) for surface in recording.scene.surfaces]
        out.append(_run(recording, firsts[key], traces))
    camera, ground, spacing, far = framing(recordings)
    names = list(dict.fromkeys(recording.model.name for recording in recordings))
    notes = [plain_note(note) for recording in recordings for note in recording.scene.notes]
    return {
        "title": title or ", ".join(names),
        "layout": layout if len(recordings) > 1 else "overlay",
        "geometries": geometries,
        "runs": out,
        "camera": camera,
        "ground": ground,
        "spacing": spacing,
        "follow": bool(far if follow is None else follow),
        "notes": list(dict.fromkeys(notes)),
    }


def record_all(
    runs: Sequence[Trajectory], *, labels: Sequence[str] = (), layout: str = "overlay", rate: float = RATE
) -> list[Recording]:
    """Recordings of several runs, with labels that tell them apart; checked."""
    from leastaction.run.trajectory import Trajectory

    several = [runs] if isinstance(runs, Trajectory) else list(runs)
    if not several:
        raise ModelError("view: there are no runs.")
    for run in several:
        if not isinstance(run, Trajectory):
            raise ModelError(f"view: expected a run from simulate, got {type(run).__name__}.")
    if len(several) > MOST_RUNS:
        raise ModelError(f"view: at most {MOST_RUNS} runs are shown together, got {len(several)}.")
    if layout not in LAYOUTS:
        raise ModelError(f"view: layout must be 'overlay' or 'side', got {layout!r}.")
    if labels and len(labels) != len(several):
        raise ModelError(f"view: expected {len(several)} labels, got {len(labels)}.")
    if not (isinstance(rate, int | float) and 0 < rate < math.inf):
        raise ModelError(f"view: rate must be a positive number of pictures in a second, got {rate!r}.")
    scenes = {id(run.model): scene_of(run.model) for run in several}
    names: list[str | None] = list(labels) or [None] * len(several)
    pairs = zip(several, names, strict=True)
    return [record(run, label, rate, scenes[id(run.model)]) for run, label in pairs]


def _run(recording: Recording, first: int, traces: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """One run as plain types."""
    items = []
    for item in recording.scene.items:
        position, rotation = _split(item.pose)
        items.append(
            {
                "carrier": item.carrier,
                "geometry": first + item.surface,
                "position": position,
                "rotation": rotation,
                "colour": [round(c, 4) for c in item.colour],
            }
        )
    contacts = np.concatenate([recording.contacts[..., :3], arrows_of(recording)], axis=-1)
    return {
        "label": recording.label,
        "bodies": len(recording.scene.carriers),
        "items": items,
        "traces": [[index, point.tolist()] for index, point in trace_points(recording.model, traces)],
        "t": encode(recording.t, "f4"),
        "positions": encode(recording.positions, "f4"),
        "rotations": encode(np.round(recording.rotations * 32767), "i2"),
        "com": encode(recording.com, "f4"),
        "energy": None if recording.energy is None else encode(recording.energy, "f4"),
        "gap": None if recording.gap is None else encode(recording.gap, "f4"),
        "contacts": encode(contacts, "f4"),
        "contactCount": contacts.shape[1],
        "stopped": recording.stopped,
        "wall": recording.wall,
    }


def framing(recordings: Sequence[Recording]) -> tuple[dict[str, Any], float | None, float, bool]:
    """Camera, height of the ground, spacing of its grid, and whether the mechanism travels far."""
    first = recordings[0]
    low, high = bounds(first, 0)
    size = float(np.linalg.norm(high - low)) or 1.0
    all_low, all_high = bounds(first)
    # a mechanism that stays is framed with its whole motion, one that travels where it begins
    far = _travels(first.model) and bool(np.linalg.norm(all_high - all_low) > _FAR * size)
    if not far:
        low, high = all_low, all_high
    centre, extent = (low + high) / 2, high - low
    radius = float(np.linalg.norm(extent)) / 2 or 0.5
    # a planar mechanism is seen almost from its front
    flat = int(np.argmin(extent))
    planar = extent[flat] < 0.3 * np.sort(extent)[1]
    azimuth = {0: -0.35, 1: -np.pi / 2 + 0.35}.get(flat, -1.05) if planar else -1.05
    camera = {
        "centre": centre.tolist(),
        "radius": radius,
        "azimuth": float(azimuth),
        "elevation": 0.28 if planar and flat != 2 else 0.38,
        "followed": first.com[0].tolist(),
    }
    height = _ground(first, float(low[2] - 0.04 * radius), far)
    # one, two or five times a power of ten, about a quarter of the size
    rough = radius / 2
    power = 10.0 ** math.floor(math.log10(rough))
    spacing = power * next(m for m in (1, 2, 5, 10) if m * power >= rough * 0.7)
    return camera, height, float(spacing), far


def _travels(model: Model) -> bool:
    """Whether nothing holds the mechanism by a hinge or a ball joint to the world."""
    held = ("revolute", "spherical", "universal", "fixed")
    return not any(joint.parent == WORLD and joint.kind in held for joint in model.mechanism.joints.values())


def _ground(recording: Recording, below: float, far: bool) -> float | None:
    """Height of the ground to draw: the mechanism's own, else just below it, none below what falls without end."""
    ground = recording.model.mechanism.ground
    if any(item.ground for item in recording.scene.items):
        return None
    if ground is not None:
        return float(ground.height)
    travels_down = far and bool(recording.com[:, 2].min() < below - 0.5)
    return None if travels_down else below


def _split(pose: FloatArray) -> tuple[list[float], list[float]]:
    """Position and quaternion of a pose, as lists."""
    from leastaction.spatial import quaternion

    return pose[:3, 3].tolist(), np.asarray(quaternion.from_matrix(pose[:3, :3])).tolist()


def _geometry(surface: Surface) -> dict[str, Any]:
    """A surface with its points as 16-bit shares of its box and its normals as bytes."""
    low, high = surface.points.min(axis=0), surface.points.max(axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, 1e-9)
    kind = "u2" if len(surface.points) <= 65536 else "u4"
    return {
        "points": encode(np.round((surface.points - middle) / half * 32767), "i2"),
        "normals": encode(np.round(surface.normals * 127), "i1"),
        "faces": encode(surface.faces, kind),
        "middle": middle.tolist(),
        "half": half.tolist(),
    }


def encode(numbers: Any, kind: str) -> str:
    """Numbers in base64, with their kind in front; what is too large for the kind becomes its largest."""
    array = np.asarray(numbers)
    if kind == "f4":
        largest = float(np.finfo(np.float32).max)
        array = np.clip(array, -largest, largest)
    return f"{kind}:{base64.b64encode(array.astype('<' + kind).tobytes()).decode('ascii')}"
