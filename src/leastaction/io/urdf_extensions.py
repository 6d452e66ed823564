"""Elements of URDF files that are not read: which of them are known, and which may change the motion."""

from __future__ import annotations

from leastaction.io.notes import HARMLESS, UNKNOWN, Notes
from leastaction.io.xml import Element

_HARMLESS = frozenset(
    {
        "calibration",
        "gazebo",
        "material",
        "mujoco",
        "ros2_control",
        "safety_controller",
        "self_filter",
        "sensor",
        "transmission",
        "verbose",
    }
)
"""Elements that other programs read and that move nothing here: simulators, controllers, sensors, looks."""

_CONTACT = frozenset({"contact", "contact_coefficients", "collision_checking", "self_collision_checking"})
"""Elements about contact, which is left to the user."""


def ignore_extension(element: Element, notes: Notes) -> None:
    """Note an element that is not read, with what is known about it."""
    notes.ignore(element, _known(element) or UNKNOWN)


def refuse_unknown(element: Element, read: frozenset[str], notes: Notes) -> None:
    """Note the known ones among the children that are not read; an unknown one is an error unless allowed.

    Args:
        element: one that decides how the mechanism moves.
        read: tags of the children that are read.
        notes: collects what is not honoured.
    """
    for child in element:
        if child.tag in read:
            continue
        if _known(child):
            ignore_extension(child, notes)
            continue
        known = f"; read are {', '.join(sorted(read))}" if read else ""
        notes.unless_allowed("unknown", child.error(f"unknown element inside {element.short}{known}."))


def _known(element: Element) -> str | None:
    """Why an element is not read; None for one that is not known."""
    if element.tag in _CONTACT:
        return "not read, contact is given by m.add_contact and m.add_ground"
    return HARMLESS if element.tag in _HARMLESS else None
