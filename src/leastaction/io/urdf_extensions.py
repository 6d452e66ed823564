"""Elements of URDF files that are not read, and those that are read once."""

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


def ignore_others(element: Element, read: frozenset[str], notes: Notes) -> None:
    """Note the children of an element that are not read; ``read``: tags of those that are."""
    for child in element:
        if child.tag not in read:
            ignore_extension(child, notes)


def first(element: Element, tag: str, notes: Notes) -> Element | None:
    """The first child with this tag, None without one; others, which other readers pass over too, are noted."""
    found = element.all(tag)
    for extra in found[1:]:
        notes.ignore(extra, f"a second <{tag}> of one <{element.tag}>; only the first is kept")
    return found[0] if found else None


def refuse_xacro(root: Element) -> None:
    """Raise if a file is a template: URDF is what xacro makes of it."""
    stack = [root]
    while stack:
        element = stack.pop()
        marked = [value for value in element.attrib.values() if "${" in value or "$(" in value]
        if element.tag.startswith("xacro:") or marked:
            what = f'"{marked[0]}" is' if marked else "this is"
            name = element.file.replace("\\", "/").rpartition("/")[2]
            raise element.error(f"{what} for xacro to expand. {xacro_command(name)}")
        stack.extend(reversed(element.children))


def xacro_command(name: str) -> str:
    """The command that makes a URDF of a template."""
    stem = name.removesuffix(".xacro").removesuffix(".urdf")
    return f'Run "xacro {name} -o {stem}_expanded.urdf" and load what it writes.'


def _known(element: Element) -> str | None:
    """Why an element is not read; None for one that is not known."""
    if element.tag in _CONTACT:
        return "not read, contact is given by m.add_contact and m.add_ground"
    return HARMLESS if element.tag in _HARMLESS else None
