"""Sensors: quantities of a mechanism's state that have a name, as robots measure them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leastaction.errors import ModelError
from leastaction.model.checks import WORLD, check_name, check_number, quoted
from leastaction.model.record import Record

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism

SENSORS: dict[str, tuple[str, int]] = {
    "jointpos": ("joint", 1),
    "jointvel": ("joint", 1),
    "ballquat": ("ball", 4),
    "ballangvel": ("ball", 3),
    "framepos": ("frame", 3),
    "framequat": ("frame", 4),
    "framexaxis": ("frame", 3),
    "frameyaxis": ("frame", 3),
    "framezaxis": ("frame", 3),
    "framelinvel": ("frame", 3),
    "frameangvel": ("frame", 3),
    "framelinacc": ("frame", 3),
    "frameangacc": ("frame", 3),
    "accelerometer": ("frame", 3),
    "velocimeter": ("frame", 3),
    "gyro": ("frame", 3),
    "subtreecom": ("body", 3),
    "clock": ("", 1),
}
"""Kinds of sensors: what each looks at, and how many numbers it gives."""

RELATIVE = frozenset({"framepos", "framequat", "framexaxis", "frameyaxis", "framezaxis", "framelinvel", "frameangvel"})
"""Kinds that may be seen from another frame."""


@dataclass(eq=False)
class Sensor(Record):
    """A quantity that a robot measures; kinds are named as in MJCF.

    Attributes:
        name: unique among sensors.
        kind: jointpos, jointvel (joints of one coordinate); ballquat, ballangvel (spherical joints); framepos,
            framequat, framexaxis, frameyaxis, framezaxis, framelinvel, frameangvel, framelinacc, frameangacc (world
            axes, or as seen from ``reference``); accelerometer, velocimeter, gyro (axes of the frame); subtreecom
            (centre of mass of a body and all that it carries); clock.
        target: name of the joint, or of the body or frame.
        reference: body or frame from which a frame is seen, "" for the world.
        scale, offset: the reading is scale times the quantity, plus the offset.
        cutoff: largest size of each number, 0 for none.

    Accelerations are those that an accelerometer feels: gravity counts as an acceleration upwards.
    """

    name: str
    kind: str
    target: str = ""
    reference: str = ""
    scale: float = 1.0
    offset: float = 0.0
    cutoff: float = 0.0


def check_sensor(sensor: Sensor, m: Mechanism) -> None:
    """Check a sensor against the mechanism it looks at."""
    where = f"sensor '{check_name(sensor.name, 'sensor')}'"
    if sensor.kind not in SENSORS:
        raise ModelError(f"{where}: unknown kind {sensor.kind!r}; the kinds are {', '.join(SENSORS)}.")
    looks_at = SENSORS[sensor.kind][0]
    frames = {**m.bodies, **m.frames, WORLD: None}
    tables: dict[str, Any] = {"joint": m.joints, "ball": m.joints, "body": m.bodies, "frame": frames}
    known = tables.get(looks_at, {})
    if looks_at and sensor.target not in known:
        raise ModelError(f"{where}: there is no {looks_at} {sensor.target!r}; there are {quoted(list(known)[:20])}.")
    if looks_at == "joint" and m.joints[sensor.target].nq != 1:
        names = ", ".join(m.joints[sensor.target].coordinate_names)
        raise ModelError(f"{where}: joint '{sensor.target}' has not one coordinate but ({names}).")
    if looks_at == "ball" and m.joints[sensor.target].kind != "spherical":
        raise ModelError(f"{where}: joint '{sensor.target}' is {m.joints[sensor.target].kind}, not spherical.")
    if sensor.reference and (sensor.kind not in RELATIVE or sensor.reference not in frames):
        raise ModelError(f"{where}: reference '{sensor.reference}' is no frame, or {sensor.kind} is not seen from one.")
    sensor.scale, sensor.offset = check_number(sensor.scale, f"{where}: scale"), check_number(sensor.offset, where)
    sensor.cutoff = check_number(sensor.cutoff, f"{where}: cutoff", nonnegative=True)


def kept_sensors(m: Mechanism) -> dict[str, Sensor]:
    """Those whose joints, bodies and frames are still there."""
    known = {*m.joints, *m.bodies, *m.frames, WORLD, ""}
    return {name: each for name, each in m.sensors.items() if {each.target, each.reference} <= known}
