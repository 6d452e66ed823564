"""Limits and efforts of files: in force, or data that runs only report on."""

from __future__ import annotations

import numpy as np

from leastaction.errors import ModelError
from leastaction.model.joints import layout
from leastaction.model.mechanism import Mechanism

LIMITS = ("enforce", "report")
"""What can become of the limits of a file."""


def check_limits(limits: str | None) -> None:
    """Raise unless ``limits`` is one of ``LIMITS``, or None."""
    if limits is not None and limits not in LIMITS:
        raise ModelError(f"limits: expected one of {', '.join(map(repr, LIMITS))}, got {limits!r}.")


def apply_limits(m: Mechanism, limits: str) -> None:
    """Put limits and efforts in force, and the default state within them; or leave them as data."""
    joints = any(joint.has_limits or np.isfinite(joint.effort).any() for joint in m.joints.values())
    motors = any(a.effort is not None or a.input_range is not None for a in m.actuators.values())
    if not joints and not motors and not any(tendon.has_limits for tendon in m.tendons.values()):
        return
    m.enforce_limits(limits == "enforce")
    if limits == "report":
        m.notes.append('limits of joints and tendons and bounds of actuators are data, as limits="report" asks.')
        return
    m.notes.append(
        "limits of joints and tendons and bounds of actuators are in force; for methods without them load the file "
        'with limits="report", which makes them data.'
    )
    _start_within(m)


def _start_within(m: Mechanism) -> None:
    """Move joints whose default position is beyond a limit onto it; coupled ones stay where the coupling holds."""
    coupled = {name for coupling in m.couplings.values() for name in coupling.joints}
    for joint in m.joints.values():
        if joint.kind == "free" or joint.name in coupled or joint.locked is not None or not joint.has_limits:
            continue
        pieces = [piece for piece in layout(joint) if piece.factor == "screw"]
        start = np.zeros(joint.nq) if joint.start is None else np.array(joint.start)
        moved = []
        for piece in pieces:
            at = piece.q.start
            low, high = np.reshape(joint.limits[piece.limit], 2)
            inside = float(np.clip(start[at], low, high))
            if inside != start[at]:
                moved.append(f"{start[at]:g} is beyond [{low:g}, {high:g}]")
                start[at] = inside
        if moved and len(pieces) == len(layout(joint)):
            joint.start = start
            m.notes.append(f"joint '{joint.name}': {moved[0]}; the default state has it on its limit.")
