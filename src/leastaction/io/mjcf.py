"""MJCF reader: MuJoCo compiles the model, its numbers become a Mechanism. Needs the extra ``mjcf``.

MuJoCo opens files itself, so the XML, its includes and every file it names are checked by our own parser first.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from leastaction.errors import ModelError
from leastaction.io import (
    mjcf_actuators,
    mjcf_contacts,
    mjcf_features,
    mjcf_joints,
    mjcf_keys,
    mjcf_medium,
    mjcf_sensors,
    mjcf_shapes,
    mjcf_tendons,
)
from leastaction.io.mjcf_files import check_files
from leastaction.io.mjcf_names import unused
from leastaction.io.mjcf_source import Source
from leastaction.io.notes import Notes, located
from leastaction.io.roots import Roots
from leastaction.io.xml import Element
from leastaction.model.mechanism import Mechanism
from leastaction.model.pose import pose


def read_mjcf(
    root: Element,
    path: Path,
    *,
    package_dirs: Iterable[str | os.PathLike[str]] = (),
    allow: Iterable[str] = (),
    name: str | None = None,
    inertia: str = "file",
) -> Mechanism:
    """Mechanism of a parsed MJCF file.

    Bodies, joints and their order are MuJoCo's. A body with several joints gets a massless body ``<body>/<joint>``
    for each joint but the last. Coordinates are zero at the pose of the file (MuJoCo's ``qpos`` minus ``ref``); those
    of a free joint are the pose in the world, as in MuJoCo, and its default state is that of the file.

    Args:
        root: the ``<mujoco>`` element.
        path: the file, for MuJoCo and for the folders it may read.
        package_dirs: further folders that may be read.
        allow: what may be dropped although it changes the motion, see ``leastaction.io.notes.ALLOW``.
        name: name of the mechanism, the model's own by default.
        inertia: "repair" is MuJoCo's ``balanceinertia``, "shapes" its ``inertiafromgeom``.
    """
    # every file first, then MuJoCo
    files = check_files(root, path, Roots(path, package_dirs))
    notes = Notes(str(path), allow)
    model_name, mj = _compile(root, path, notes, inertia)
    source = Source(root, files.elements(), mj)

    # what is refused or honoured by a flag, before anything is built
    settings = mjcf_joints.read_settings(source, notes)
    touches = None if "contact" in settings.off else mjcf_contacts.touching(source)
    mjcf_contacts.find_ground(source, notes, touches or [])
    with located(root):
        m = Mechanism(name or model_name or path.stem, gravity=settings.gravity)
    _add_bodies(m, source, settings, notes)
    mjcf_shapes.add_static_shapes(m, source, notes)
    sites = mjcf_shapes.add_sites(m, source, notes)

    # what acts on the bodies
    mjcf_features.add_equalities(m, source, settings, notes)
    mjcf_medium.add_medium(m, source, settings, notes)
    mjcf_medium.add_compensation(m, source, settings, notes)
    tendons = mjcf_tendons.add_tendons(m, source, settings, notes)
    inputs = mjcf_actuators.add_actuators(m, source, settings, tendons, notes)
    mjcf_contacts.add_contacts(m, source, touches, notes)
    mjcf_sensors.add_sensors(m, source, sites, notes)
    mjcf_keys.add_starts(m, source)
    mjcf_keys.add_keys(m, source, inputs, notes)
    mjcf_features.note_the_rest(source, notes)
    m.notes.extend(notes.lines())
    return m


def _compile(root: Element, path: Path, notes: Notes, inertia: str) -> tuple[str, Any]:
    """Name of the model and MuJoCo's compiled model."""
    try:
        import mujoco
    except ImportError as error:
        raise ModelError(
            f"{path}: reading MJCF needs mujoco; install it with pip install 'leastaction[mjcf]'."
        ) from error
    # an absolute path, since that is what was checked; errors become one line, warnings notes
    with _caught_warnings(mujoco) as caught:
        try:
            spec = mujoco.MjSpec.from_file(os.path.abspath(path))
            if inertia == "repair":
                spec.compiler.balanceinertia = True
            elif inertia == "shapes":
                spec.compiler.inertiafromgeom = int(mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE)
            mj = spec.compile()
        except (ValueError, RuntimeError, mujoco.FatalError) as error:
            text = f"MuJoCo refuses the model: {_one_line(error)}."
            where = _key_in(root, str(error))
            raise where.error(text) if where else ModelError(f"{path}: {text}") from error
    for warning in caught:
        notes.add(f"{path}: MuJoCo warns: {_one_line(warning)}.")
    return spec.modelname or "", mj


def _key_in(root: Element, message: str) -> Element | None:
    """The key frame that a message of MuJoCo names without its line."""
    keys = [key for part in root.all("keyframe") for key in part.all("key")]
    found = re.search(r"keyframe (?:'([^']*)'|(\d+))", message)
    if found is None:
        return None
    name, number = found.groups()
    return next((key for k, key in enumerate(keys) if key.attrib.get("name") == name or str(k) == number), None)


@contextmanager
def _caught_warnings(mujoco: Any) -> Iterator[list[object]]:
    """Collect MuJoCo's warnings, which it would otherwise also write to a file in the working folder."""
    texts: list[object] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(texts.append)
    try:
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            yield texts
    finally:
        mujoco.set_mju_user_warning(before)
        texts.extend(warning.message for warning in raised)


def _one_line(message: object) -> str:
    return "; ".join(line.strip() for line in str(message).splitlines() if line.strip()).removesuffix(".")


def _add_bodies(m: Mechanism, source: Source, settings: mjcf_joints.Settings, notes: Notes) -> None:
    """Bodies with their joints; intermediate bodies where several joints stand on one body."""
    mj, bodies, joints, taken = source.mj, source.bodies, source.joints, set(source.bodies)
    fixed = set(source.joints)
    for b in range(1, mj.nbody):
        element = source.element("body", bodies[b])
        first, count = int(mj.body_jntadr[b]), int(mj.body_jntnum[b])
        stack = list(range(first, first + count))
        shapes = mjcf_shapes.body_shapes(source, b, notes)
        R = pose(quat=mj.body_iquat[b])[:3, :3]
        with located(element):
            # massless bodies between the joints of the stack
            links = []
            for j in stack[:-1]:
                links.append(unused(f"{bodies[b]}/{joints[j]}", taken))
                taken.add(links[-1])
                m.add_body(links[-1])
            m.add_body(
                bodies[b],
                mass=float(mj.body_mass[b]),
                com=mj.body_ipos[b],
                inertia=R @ np.diag(mj.body_inertia[b]) @ R.T,
                shapes=shapes,
            )
            _add_stack(m, source, settings, notes, b, stack, links, fixed)


def _add_stack(
    m: Mechanism,
    source: Source,
    settings: mjcf_joints.Settings,
    notes: Notes,
    b: int,
    stack: list[int],
    links: list[str],
    taken: set[str],
) -> None:
    """The joints of one body, from its parent through the links between them; ``taken``: names of joints."""
    mj, bodies = source.mj, source.bodies
    parent = bodies[mj.body_parentid[b]]
    frame = pose(xyz=mj.body_pos[b], quat=mj.body_quat[b])
    # no joint at all: fixed to its parent
    if not stack:
        label = unused(f"{bodies[b]}/fixed", taken)
        taken.add(label)
        m.add_joint(label, "fixed", parent=parent, child=bodies[b], parent_frame=frame)
        if mj.body_mocapid[b] >= 0:
            notes.add(f"{source.element('body', bodies[b]).where}: a mocap body; it stays where the file puts it.")
        return
    # MuJoCo turns every joint about its anchor, given in the body frame
    for place, (j, child) in enumerate(zip(stack, [*links, bodies[b]], strict=True)):
        anchor = pose(xyz=mj.jnt_pos[j])
        data = mjcf_joints.joint_data(source, settings, notes, j)
        kind = data.pop("kind")
        # free joints have the pose in the world, not relative to where the file puts the body
        if kind != "free":
            data["parent_frame"] = (frame if place == 0 else np.eye(4)) @ anchor
            data["child_frame"] = anchor
        with located(source.element("joint", source.joints[j])):
            m.add_joint(source.joints[j], kind, parent=parent if place == 0 else links[place - 1], child=child, **data)
