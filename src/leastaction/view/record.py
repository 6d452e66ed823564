"""Runs as pictures to be: rows picked at a steady rate, poses of the moving bodies, energy, gaps, contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leastaction.dynamics import quantities
from leastaction.errors import ModelError, UnsupportedError
from leastaction.model.checks import FloatArray, check_vector
from leastaction.model.model import Model
from leastaction.spatial import quaternion
from leastaction.view.scene import Scene, scene_of

if TYPE_CHECKING:
    from leastaction.run.trajectory import Trajectory

RATE = 60.0
"""Pictures in a second of simulated time, if the run has as many rows."""

MOST_POSES = 120_000
"""Poses (bodies times pictures) of one run that are kept; longer runs get fewer pictures in a second."""

# a coordinate or velocity beyond this, in metres, radians and seconds, is that of a run which has blown up
_BEYOND_SENSE = 1e5


@dataclass(eq=False)
class Recording:
    """A run as viewers draw it.

    Attributes:
        label: words for the run.
        model: the model that ran.
        scene: what there is to draw.
        t: times (rows,), seconds.
        positions: of the moving bodies (rows, bodies, 3), metres.
        rotations: quaternions (rows, bodies, 4), without jumps of sign.
        com: centre of mass (rows, 3), metres.
        energy: change of the total energy since the start (rows,), joules, or None where it is not known.
        kinetic: kinetic energy (rows,), joules, or None.
        gap: largest gap of loops and constraints (rows,), or None where there are none.
        contacts: points and forces (rows, contacts, 6), metres and newtons, NaN where there is no contact.
        stopped: why the run stopped early, or None.
        wall: seconds of wall time that the run took.
    """

    label: str
    model: Model
    scene: Scene
    t: FloatArray
    positions: FloatArray
    rotations: FloatArray
    com: FloatArray
    energy: FloatArray | None
    kinetic: FloatArray | None
    gap: FloatArray | None
    contacts: FloatArray
    stopped: str | None
    wall: float


def record(run: Trajectory, label: str | None = None, rate: float = RATE, scene: Scene | None = None) -> Recording:
    """A recording of a run, with at most ``rate`` pictures in a second of simulated time."""
    model, kept, scene = run.model, sensible_rows(run), scene or scene_of(run.model)
    rows = pick_rows(run.t[:kept], rate, max(MOST_POSES // max(len(model.body_names), 1), 2))
    q, v = run.q[rows], run.v[rows]
    positions, rotations = body_motion(model, q)
    # what should stay the same; a force of the user may have no energy that is known
    try:
        energy = quantities.energy(model, np.concatenate([run.q[:1], q]), np.concatenate([run.v[:1], v]))
        drift, kinetic = energy.total[1:] - energy.total[0], energy.kinetic[1:]
    except UnsupportedError:
        drift = kinetic = None
    gap = None
    if model.is_closed:
        from leastaction.run import observe

        gap = observe.constraint_error(model, q)
    # a run from a file may have lost the function that was its control
    try:
        contacts = contact_arrows(run, rows)
    except ModelError as error:
        contacts = np.zeros((len(rows), 0, 6))
        scene.notes.append(f"contact forces are not drawn: {error}")
    return Recording(
        label=label or f"{run.method.label}, dt = {run.clock.words}",
        model=model,
        scene=scene,
        t=run.t[rows],
        positions=positions,
        rotations=rotations,
        com=np.atleast_2d(quantities.center_of_mass(model, q)),
        energy=drift,
        kinetic=kinetic,
        gap=gap,
        contacts=contacts,
        stopped=_stop(run, kept),
        wall=run.report.wall_time,
    )


def sensible_rows(run: Trajectory) -> int:
    """How many rows of a run there are before its numbers grow beyond all sense; at least one."""
    size = np.maximum(np.abs(run.q).max(axis=1, initial=0.0), np.abs(run.v).max(axis=1, initial=0.0))
    over = np.flatnonzero(size > _BEYOND_SENSE)
    return max(int(over[0]), 1) if len(over) else len(run.q)


def trimmed(run: Trajectory) -> Trajectory:
    """The run up to where its numbers grow beyond all sense; the run itself if they do not."""
    kept = sensible_rows(run)
    if kept == len(run.q):
        return run
    report = replace(run.report, failure=run.report.failure or _stop(run, kept))
    return replace(run, q=run.q[:kept], v=run.v[:kept], steps=(kept - 1) * run.every, report=report)


def _stop(run: Trajectory, kept: int) -> str | None:
    """Why the picture ends before the time that was asked for, or None."""
    if kept == len(run.q):
        return run.report.failure
    return f"beyond all sense from t = {run.t[kept]:.4g} s on"


def pick_rows(t: FloatArray, rate: float, most: int) -> NDArray[np.int64]:
    """Numbers of rows that are about 1 / rate apart in time, with the first and the last, at most ``most``."""
    length = float(t[-1] - t[0])
    count = min(int(np.ceil(length * rate)) + 1, most)
    if count >= len(t):
        return np.arange(len(t))
    # for each time of a steady rate the row that is nearest
    wanted = np.linspace(t[0], t[-1], max(count, 2))
    after = np.clip(np.searchsorted(t, wanted), 1, len(t) - 1)
    before = after - 1
    return np.unique(np.where(wanted - t[before] < t[after] - wanted, before, after))


def body_motion(model: Model, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positions (rows, bodies, 3) and quaternions (rows, bodies, 4) of the moving bodies' link frames."""
    poses = quantities.frame_poses(model, q, list(model.body_names))
    rotations = np.asarray(quaternion.from_matrix(poses[..., :3, :3])).reshape(len(q), -1, 4)
    # of the two signs the one that is nearer to the picture before
    turn = np.sign(np.einsum("rbk,rbk->rb", rotations[1:], rotations[:-1]))
    signs = np.cumprod(np.where(turn < 0, -1.0, 1.0), axis=0)
    rotations[1:] *= signs[..., None]
    return poses[..., :3, 3], rotations


def contact_arrows(run: Trajectory, rows: NDArray[np.int64]) -> FloatArray:
    """Contact points and forces on the first body (rows, contacts, 6) in world axes; NaN where there is none."""
    if not run.method.contact_pairs(run.model):
        return np.zeros((len(rows), 0, 6))
    found = run.contacts
    both = np.concatenate([found.point, found.force], axis=-1)[rows]
    both[~(np.abs(both[..., 3:]).sum(axis=-1) > 0)] = np.nan
    return both


def arrows_of(recording: Recording) -> FloatArray:
    """Arrows (rows, contacts, 3) of the contact forces in metres: the weight is as long as the mechanism is large.

    The blow of a landing is many weights; its arrow ends at one and a half of that.
    """
    force = recording.contacts[..., 3:]
    low, high = bounds(recording, 0)
    size, weight = float(np.linalg.norm(high - low)), _weight(recording.model)
    if weight == 0:
        strong = np.linalg.norm(force, axis=-1)
        weight = float(np.nanmedian(strong)) if np.isfinite(strong).any() else 1.0
    arrow = force * (size / weight)
    length = np.linalg.norm(arrow, axis=-1, keepdims=True)
    return np.asarray(arrow * np.minimum(1.0, 1.5 * size / np.maximum(length, np.finfo(float).tiny)))


def _weight(model: Model) -> float:
    """Weight of everything that moves, newtons."""
    return model.total_mass * float(np.linalg.norm(model.mechanism.gravity))


def trace_points(model: Model, traces: Mapping[str, Any] | Sequence[str]) -> list[tuple[int, FloatArray]]:
    """Carrier and point in its link frame of each trace: names of bodies or frames, with a point (3,) of them each."""
    if isinstance(traces, str):
        raise ModelError(f"traces: expected names of bodies or a dict of points, got {traces!r}.")
    given = traces if isinstance(traces, Mapping) else dict.fromkeys(traces, (0.0, 0.0, 0.0))
    carriers = {model.places[name].row: (k, name) for k, name in enumerate(model.body_names)}
    out = []
    for name, point in given.items():
        place = model.place(name)
        if place.row not in carriers:
            raise ModelError(f"traces: '{name}' does not move.")
        index, carrier = carriers[place.row]
        there = np.linalg.solve(model.places[carrier].pose, place.pose)
        at = check_vector(point, 3, f"traces: point of '{name}'")
        out.append((index, there[:3, :3] @ at + there[:3, 3]))
    return out


def bounds(recording: Recording, row: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest corner (3,) of the mechanism as it is drawn, over all pictures or in one of them."""
    lows, highs = [], []
    rows = slice(None) if row is None else slice(row, row + 1)
    for item in recording.scene.items:
        if item.ground:
            continue
        points = recording.scene.surfaces[item.surface].points
        # the eight corners of the surface's box, moved with the body
        low, high = points.min(axis=0), points.max(axis=0)
        corners = np.array(np.meshgrid(*np.stack([low, high], axis=1), indexing="ij")).reshape(3, -1).T
        local = corners @ item.pose[:3, :3].T + item.pose[:3, 3]
        if item.carrier < 0:
            world = local
        else:
            R = np.asarray(quaternion.to_matrix(recording.rotations[rows, item.carrier]))
            world = np.einsum("rij,kj->rki", R, local) + recording.positions[rows, item.carrier][:, None]
        flat = world.reshape(-1, 3)
        lows.append(flat.min(axis=0))
        highs.append(flat.max(axis=0))
    if not lows:
        return np.full(3, -0.5), np.full(3, 0.5)
    return np.min(lows, axis=0), np.max(highs, axis=0)
