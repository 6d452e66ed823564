"""What a reader could not honour: notes for what does not change the motion, errors for what does unless allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from leastaction.errors import ModelError
from leastaction.io.xml import Element
from leastaction.model.mechanism import LEFT_OUT

ALLOW = {
    "mimic": "URDF: a joint that follows another one is coupled to it; allowed, it moves on its own",
    "actuators": "MJCF: an actuator of another law, or not on one coordinate of a joint; allowed, it is dropped",
    "armature": "MJCF: armature where it has no meaning here (free joints, tendons)",
    "contacts": "MJCF: adhesion, moving surfaces; friction "
    "of two sizes; allowed, it touches nothing or has no such effect",
    "effort": "MJCF: bounds of a joint's or servo's force that are not symmetric; allowed, there is no bound",
    "equality": "MJCF: an equality constraint of a tendon through space, of powers of a sum of joints, or of "
    "deformable bodies; allowed, it is dropped",
    "flex": "MJCF: deformable bodies",
    "fluid": "MJCF: drag of the medium on an ellipsoid (fluidshape); allowed, it has none",
    "friction": "MJCF: friction loss where it has no meaning here (free joints)",
    "gravcomp": "MJCF: gravity compensation that a bounded motor carries; allowed, it has no bound",
    "muscle": "MJCF: muscle actuators",
    "nonlinear": "MJCF: stiffness or damping with polynomial terms, springs that yield",
    "plugins": "MJCF: forces of plugins",
    "tendon": "MJCF: a tendon that passes through a sphere or cylinder, with its side inside; allowed, it is dropped",
    "torsion": "MJCF: torsional and rolling friction of contacts (condim 4 and 6), which is left out; allowed, the "
    "reports of runs do not repeat it",
}
"""Names for ``allow=``: what changes the motion, cannot be honoured, and is dropped only on request."""

HARMLESS = "not read, it does not change the motion"
"""Reason for an element that is known, and is known not to move anything."""

UNKNOWN = "unknown element, not read"
"""Reason for an element that the reader does not know."""


def check_allow(allow: Iterable[str]) -> frozenset[str]:
    """The set of allowed names; an unknown one is an error that lists the known ones."""
    names = frozenset((allow,) if isinstance(allow, str) else allow)
    unknown = sorted(str(name) for name in names if name not in ALLOW)
    if unknown:
        raise ModelError(f"allow: unknown {', '.join(unknown)}; known are {', '.join(sorted(ALLOW))}.")
    return names


class Notes:
    """Collects what was not honoured while one file is read.

    Args:
        file: name of the file as the user gave it.
        allow: names from ``ALLOW`` that may be dropped.
    """

    def __init__(self, file: str, allow: Iterable[str] = ()) -> None:
        self.file = file
        self.allow = check_allow(allow)
        self._lines: dict[str, None] = {}
        self._ignored: dict[tuple[str, str], list[int]] = {}

    def add(self, text: str) -> None:
        """One note; the same one twice is kept once."""
        self._lines.setdefault(text)

    def ignore(self, element: Element, reason: str = UNKNOWN) -> None:
        """Note an element that is not read; many of one tag become one line."""
        self._ignored.setdefault((element.tag, reason), []).append(element.line)

    def unless_allowed(self, name: str, error: ModelError) -> None:
        """Raise the error, or note it where ``name`` is allowed."""
        if name not in self.allow:
            raise ModelError(f'{error} To load it all the same, give allow=("{name}",).') from error
        self.add(f"allowed by {name!r}: {error}")

    def left_out(self, name: str, text: str) -> None:
        """Note what changes the motion little and is left out; the report of every run repeats it, unless allowed."""
        self.add(f"allowed by {name!r}: {text}" if name in self.allow else f"{LEFT_OUT}{text}")

    def lines(self) -> list[str]:
        """All notes, in order."""
        out = list(self._lines)
        for (tag, reason), found in self._ignored.items():
            times = "once" if len(found) == 1 else f"{len(found)} times"
            out.append(f"{self.file}:{found[0]}: <{tag}> ({times}): {reason}.")
        return out


@contextmanager
def located(element: Element) -> Iterator[None]:
    """Put file, line and element before the message of a ``ModelError`` raised inside that has none yet."""
    try:
        yield
    except ModelError as error:
        if str(error).startswith(f"{element.file}:"):
            raise
        raise element.error(str(error)) from error
