"""Key frames: states of a mechanism that have a name, by joint."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leastaction.errors import ModelError
from leastaction.model.checks import FloatArray, check_array, check_name, check_number, frozen, quoted
from leastaction.model.elements import Actuator, Joint
from leastaction.model.joints import check_coordinates
from leastaction.model.record import Record

if TYPE_CHECKING:
    from leastaction.model.model import Model


@dataclass(eq=False)
class KeyFrame(Record):
    """A state with a name.

    Attributes:
        name: unique among key frames.
        q: coordinates (nq of the joint,) by joint; the others have those of their default state.
        v: velocities (nv of the joint,) by joint; the others rest.
        t: time in seconds.
        inputs: of actuators by name, for ``model.actuate``.
    """

    name: str
    q: dict[str, FloatArray] = field(default_factory=dict)
    v: dict[str, FloatArray] = field(default_factory=dict)
    t: float = 0.0
    inputs: dict[str, float] = field(default_factory=dict)

    def copy(self) -> KeyFrame:
        """An independent copy."""
        return KeyFrame(self.name, dict(self.q), dict(self.v), self.t, dict(self.inputs))

    def forget(self, joint: str, actuators: Mapping[str, Actuator]) -> None:
        """Drop a joint, and the inputs of actuators that are not there any more."""
        self.q.pop(joint, None)
        self.v.pop(joint, None)
        self.inputs = {name: value for name, value in self.inputs.items() if name in actuators}


def made_key_frame(
    name: str, q: Any, v: Any, t: float, inputs: Any, joints: Mapping[str, Joint], actuators: Mapping[str, Actuator]
) -> KeyFrame:
    """A checked key frame."""
    key = KeyFrame(name, q or {}, v or {}, t, inputs or {})
    check_key_frame(key, joints, actuators)
    return key


def check_key_frame(key: KeyFrame, joints: Mapping[str, Joint], actuators: Mapping[str, Actuator]) -> None:
    """Check every entry against joints and actuators, and bring it into its stored form, in place."""
    where = f"key frame '{check_name(key.name, 'key frame')}'"
    key.t = check_number(key.t, f"{where}: t")
    for what, entries in (("q", key.q), ("v", key.v), ("inputs", key.inputs)):
        if not isinstance(entries, Mapping):
            raise ModelError(f"{where}: {what} must be a dict by name, got {entries!r}.")
        known: Mapping[str, Any] = actuators if what == "inputs" else joints
        for name in entries:
            if name not in known:
                raise ModelError(
                    f"{where}: {what}: {_unknown('actuator' if what == 'inputs' else 'joint', name, known)}"
                )
    key.q = {name: check_coordinates(joints[name], value, f"{where}: '{name}'") for name, value in key.q.items()}
    key.v = {name: _velocities(joints[name], value, f"{where}: v of '{name}'") for name, value in key.v.items()}
    key.inputs = {name: check_number(value, f"{where}: input '{name}'") for name, value in key.inputs.items()}


def key_motion(model: Model, name: str) -> tuple[dict[str, FloatArray], dict[str, FloatArray], float]:
    """Coordinates and velocities of a key frame by joint, of those that move, and its time."""
    known = model.mechanism.key_frames
    if name not in known:
        raise ModelError(f"state: {_unknown('key frame', name, known)}")
    key = known[name]
    q = {joint: value for joint, value in key.q.items() if joint in model.joints}
    return q, {joint: value for joint, value in key.v.items() if joint in model.joints}, key.t


def _velocities(joint: Joint, value: Any, where: str) -> FloatArray:
    """Velocities (nv,) of a joint."""
    array = check_array([value] if joint.nv == 1 and not hasattr(value, "__len__") else value, where)
    if array.shape != (joint.nv,):
        raise ModelError(f"{where}: expected {joint.nv} numbers ({', '.join(joint.velocity_names)}), got {value!r}.")
    return frozen(array)


def _unknown(what: str, name: Any, known: Mapping[str, Any]) -> str:
    """Words for a name that is not there, with those that are close to it."""
    close = difflib.get_close_matches(str(name), list(known), n=3)
    there = f"there are {quoted(list(known)[:20])}" if known else "there are none"
    return f"there is no {what} {str(name)!r}; " + (f"did you mean {quoted(close)}?" if close else f"{there}.")
