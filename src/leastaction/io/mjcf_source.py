"""A compiled MuJoCo model together with the XML it came from, so that messages can name a line."""

from __future__ import annotations

from typing import Any

from leastaction.io.mjcf_names import body_names, joint_names, object_name
from leastaction.io.xml import Element

_PARENTS = ("equality", "tendon", "actuator", "sensor")


class Source:
    """MuJoCo's compiled model, names for all its bodies and joints, and the elements of the file by name.

    Args:
        root: outermost element of the main file.
        elements: every element of every file of the model.
        mj: the compiled ``mujoco.MjModel``.

    Attributes:
        ground: the geom of the fixed plane that is the ground, or None; set by ``mjcf_contacts.find_ground``.
        terrain: geoms of further fixed planes and of height fields that something touches.
    """

    def __init__(self, root: Element, elements: list[Element], mj: Any) -> None:
        self.root = root
        self.mj = mj
        self.ground: int | None = None
        self.terrain: set[int] = set()
        self.bodies = body_names(mj)
        self.joints = joint_names(mj)
        # named elements by what they are; the children of equality, tendon and actuator have many tags
        self._elements: dict[tuple[str, str], Element] = {}
        self._ordered: dict[str, list[Element]] = {}
        self.first: dict[str, Element] = {}
        for element in elements:
            inside = element.parent.tag if element.parent is not None else ""
            if element.tag in _PARENTS and inside not in _PARENTS:
                continue
            kind = inside if inside in _PARENTS else {"freejoint": "joint"}.get(element.tag, element.tag)
            self.first.setdefault(kind, element)
            self._ordered.setdefault(kind, []).append(element)
            if "name" in element.attrib:
                self._elements.setdefault((kind, element.attrib["name"]), element)

    def element(self, kind: str, name: str) -> Element:
        """The element of this name, else the outermost one."""
        return self._elements.get((kind, name)) or self.root

    def named(self, kind: str, index: int) -> tuple[str, Element]:
        """Name and element of an object; ``equality_3`` where it has no name."""
        name = object_name(self.mj, kind, index)
        if name:
            return name, self.element(kind, name)
        # without a name: by its place, if the file lists exactly what MuJoCo compiled
        listed = self._ordered.get(kind, [])
        counts = {
            "equality": self.mj.neq,
            "tendon": self.mj.ntendon,
            "actuator": self.mj.nactuator,
            "sensor": self.mj.nsensor,
            "key": self.mj.nkey,
        }
        whole = len(listed) == counts.get(kind) and all(element.file == self.root.file for element in listed)
        return f"{kind}_{index}", listed[index] if whole else self.root
