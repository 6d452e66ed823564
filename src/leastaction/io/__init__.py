"""Files of mechanisms: URDF, MJCF and the package's own JSON.

``load`` and ``save`` choose by the file's ending. What a reader could not honour is listed in ``mechanism.notes``;
what would change the motion is an error unless it is allowed by name.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from leastaction.errors import ModelError
from leastaction.model.files import check_path, check_regular_file

if TYPE_CHECKING:
    from leastaction.model.mechanism import Mechanism

__all__ = ["load", "save"]

READ = (".urdf", ".xml", ".json")
"""Endings that ``load`` reads."""

INERTIA = ("file", "repair", "shapes")
"""Where ``load`` takes mass and inertia from."""

WRITTEN = (".json", ".urdf")
"""Endings that ``save`` writes."""


def load(
    path: str | os.PathLike[str],
    *,
    floating: bool = False,
    package_dirs: Iterable[str | os.PathLike[str]] = (),
    allow: Iterable[str] = (),
    name: str | None = None,
    inertia: str = "file",
    limits: str | None = None,
) -> Mechanism:
    """Read a mechanism from a file.

    Args:
        path: a ``.urdf`` file, an ``.xml`` file (MJCF, or URDF if its outermost element is ``<robot>``), or a
            ``.json`` file written by ``save``.
        floating: URDF only: the root link moves freely, by a free joint "root", instead of being fixed.
        package_dirs: folders that hold the packages of ``package://`` names; files inside them may be read.
        allow: names of what may be dropped although it changes the motion, such as "mimic"; the error that asks for
            one names it.
        name: name of the mechanism instead of the one in the file.
        inertia: where mass and inertia come from. "file": as they are; where they do not determine the motion,
            kinematics works all the same, and dynamics says which body or joint it is. "repair": an inertia that no
            body has is replaced by the nearest that one has. "shapes": what a file lacks is computed from collision
            shapes, else from visual ones, with the mass of the file or 1000 kg/m^3; the rest is repaired.
        limits: "enforce", the default for URDF and MJCF: limits of joints, efforts and bounds of actuators are in
            force (``Mechanism.enforce_limits``). "report": they are data, and runs report where they are crossed.
            A ``.json`` file says itself.

    Returns:
        The mechanism; ``notes`` lists what could not be honoured.
    """
    from leastaction.io.limits import apply_limits, check_limits
    from leastaction.io.notes import check_allow

    check_limits(limits)
    # the file first: no hang on a pipe, and a clear word about a wrong path
    file = check_path(path)
    check_regular_file(file)
    names = check_allow(allow)
    if inertia not in INERTIA:
        raise ModelError(f"inertia: expected one of {', '.join(map(repr, INERTIA))}, got {inertia!r}.")
    ending = file.suffix.lower()
    if ending not in READ:
        if ending == ".xacro":
            from leastaction.io.urdf_extensions import xacro_command

            raise ModelError(f"{file}: a template, which is not read itself. {xacro_command(file.name)}")
        raise ModelError(f"{file}: unknown ending {file.suffix!r}; {', '.join(READ)} are read.")

    # our own format
    if ending == ".json":
        from leastaction.io.json_file import read_json

        _refuse_floating(file, floating)
        if inertia != "file":
            raise ModelError(f"{file}: inertia={inertia!r} is for URDF and MJCF; change the bodies instead.")
        m = read_json(file, package_dirs=package_dirs, name=name)
        if limits is not None:
            m.enforce_limits(limits == "enforce")
        return m

    # XML: the outermost element says which kind
    from leastaction.io.xml import parse_file

    root = parse_file(file)
    if ending == ".urdf" or root.tag == "robot":
        from leastaction.io.urdf import read_urdf

        m = read_urdf(root, file, floating=floating, package_dirs=package_dirs, allow=names, name=name, inertia=inertia)
        apply_limits(m, limits or "enforce")
        return m
    if root.tag in ("mujoco", "mujocoinclude"):
        from leastaction.io.mjcf import read_mjcf

        _refuse_floating(file, floating)
        m = read_mjcf(root, file, package_dirs=package_dirs, allow=names, name=name, inertia=inertia)
        apply_limits(m, limits or "enforce")
        return m
    raise root.error("expected <mujoco> or <robot> as the outermost element.")


def save(mechanism: Mechanism, path: str | os.PathLike[str]) -> None:
    """Write a mechanism to a file, whole or not at all.

    ``.json`` is the package's own format and reads back to the last bit. ``.urdf`` reads back to 1e-12; what URDF
    cannot express is an error that names it.
    """
    from leastaction.model.mechanism import Mechanism

    file = check_path(path)
    if not isinstance(mechanism, Mechanism):
        raise ModelError(
            f"{file}: save writes a mechanism, got {type(mechanism).__name__}; that of a model is model.mechanism."
        )
    ending = file.suffix.lower()
    if ending == ".json":
        from leastaction.io.json_file import write_json

        write_json(mechanism, file)
    elif ending == ".urdf":
        from leastaction.io.urdf_write import write_urdf

        write_urdf(mechanism, file)
    else:
        raise ModelError(f"{file}: unknown ending {file.suffix!r}; {' and '.join(WRITTEN)} are written.")


def _refuse_floating(file: os.PathLike[str], floating: bool) -> None:
    """Only URDF leaves open how the root is carried."""
    if floating:
        raise ModelError(f"{file}: floating=True is for URDF; this format says itself which bodies move freely.")
